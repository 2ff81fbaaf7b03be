#!/usr/bin/env bash
# An existing file is only replaced by one of its own kind, whichever command writes it, and a file of events only if
# wisp generated it.
#   tests/cli_outputs.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
cp "$root/models/cafe.wisp" base.wisp
expect 0 "" "$wisp" synth --out log.db --population device --users 60 --seed 3
printf 'soup-pea\tPea soup\n' >new.tsv
printf 'bagel-lentil\n' >gone.txt

# Each command that writes, with its option last and the file's name after it.
kept() {  # KIND COMMAND... OPTION: refuses a file of another kind, and replaces its own and an empty one
  local kind=$1 file=$2; shift 2
  echo "Dear Bob," >"$file"
  expect 2 "is $file, a file that is there and is not $kind: it will not be replaced; name another file" "$@" "$file"
  [ "$(cat "$file")" = "Dear Bob," ] || fail "$* replaced a letter"
  : >"$file"
  expect 0 "" "$@" "$file"
  [ -s "$file" ] || fail "$* left a file of no bytes"
  expect 0 "" "$@" "$file"
}
model="a wisp model"
kept "$model" o.wisp "$wisp" catalogue add --model base.wisp --items new.tsv --out
kept "$model" o.wisp "$wisp" catalogue retire --model base.wisp --items gone.txt --out
kept "$model" o.wisp "$wisp" catalogue restore --model base.wisp --items gone.txt --out
kept "$model" o.wisp "$wisp" compress base.wisp --out
kept "a safetensors file" o.safetensors "$wisp" export base.wisp --out
kept "$model" o.wisp "$wisp" convert o.safetensors --out
kept "$model" o.wisp "$wisp" new --recipe "$root/models/recipes/cafe.json" --num-items 480 --out
kept "$model" o.wisp "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data log.db --epochs 1 --batch 60 --out
synth=("$wisp" synth --population device --users 60 --seed 3 --out)
for file in s.csv s.tsv s.inter s.txt; do kept 'one that `wisp synth` made' $file "${synth[@]}"; done
# Events of others are in tables of the same form.
foreign() {  # SENTENCE FILE COMMAND...: refuses the file, and leaves it as it is
  cp "$2" foreign
  expect 2 "is $2, a file that is there$1: it will not be replaced; name another file" "${@:3}" "$2"
  cmp -s "$2" foreign || fail "${*:3} replaced events of others"
}
untold=", and nothing says whose events it holds"
printf 'user,item,time\nanna,tea-mint,5\n' >s.csv
foreign ' and is not one that `wisp synth` made' s.csv "${synth[@]}"
printf 'user,item,time\nu00003,tea-mint,5\n' >u.csv
foreign "$untold" u.csv "${synth[@]}"
printf 'user\titem\ttime\nanna\ttea-mint\t5\n' >o.tsv
for file in u.csv o.tsv; do foreign "$untold" $file "$wisp" log export log.db --out; done
: >o.csv
expect 0 "" "$wisp" log export log.db --out o.csv
[ "$(head -n 1 o.csv)" = user,item,time ] || fail "an empty file was not replaced"
foreign "$untold" o.csv "$wisp" log export log.db --out
echo "Dear Bob," >letter.txt.items.tsv
expect 2 "letter.txt.items.tsv, a file that is there and is not a table of items and their names" "${synth[@]}" letter.txt
[ ! -e letter.txt ] || fail "a refused synth left a file"
# A log is never replaced, neither by another nor by a copy.
echo "Dear Bob," >letter.db
expect 2 "letter.db, a file that is there and is not a log" "${synth[@]}" letter.db
expect 2 "is an SQLite database" "${synth[@]}" log.db
expect 2 "will not be replaced by a copy of a log" "$wisp" log backup log.db --out letter.db
expect 2 "is an SQLite database" "$wisp" catalogue add --model base.wisp --items new.tsv --out log.db
expect 2 "other.wisp, a file that is there and is not $model" bash -c "echo 'Dear Bob,' >other.wisp; \"$wisp\" rebase --from base.wisp --to base.wisp --out other.wisp"
[ "$(cat letter.db other.wisp)" = $'Dear Bob,\nDear Bob,' ] || fail "a letter was replaced"
# Files that a private run writes beside its model.
plan=(--recipe "$root/models/recipes/cafe-device.json" --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --noise-multiplier 4 --delta 0.001)
echo "Dear Bob," >statement.json
expect 2 "statement.json, a file that is there and is not JSON" "$wisp" train "${plan[@]}" --out p.wisp --ledger p.ledger --privacy-json statement.json
[ ! -e p.wisp ] && [ ! -e p.ledger ] || fail "a refused run left a file"
expect 0 "" "$wisp" plan --data log.db --model base.wisp --epsilon 4 --unit user --num-records-public 60 --for "2 days" --steps 1 --judge none --ledger life.ledger
kept "a page of HTML" o.html "$wisp" report --ledger life.ledger --html
expect 2 "is not a page of HTML" "$wisp" report --ledger life.ledger --html base.wisp

# A full disk is called full, and existing files stay.
cp log.db full.db
before=$(sha256sum full.db)
full() {  # WORD COMMAND...
  local word=$1; shift
  # The limit would also cut off Bash's own files.
  (trap '' XFSZ; ulimit -f 0; "$@" 2>&1; echo "code $?") | cat >told
  grep -q "code 3" told && grep -q -- "$word" told || fail "$* on a full disk says $(head -c 300 told)"
}
disk="the disk refuses to write, as one that is full does; free space and try again"
full "event log 'none.db': cannot be opened to write: $disk" "$wisp" log import none.db --data o.csv
full "event log 'full.db': cannot append: $disk" "$wisp" log import full.db --data o.csv
full "event log 'full.db': cannot be restored: $disk" "$wisp" log restore full.db --from log.db
full "event log 'full.db': cannot forget: $disk" "$wisp" log erase full.db --user u00003
full "full.ledger' cannot be read or written: $disk" "$wisp" plan --data log.db --model base.wisp --epsilon 4 --unit user \
  --num-records-public 60 --for "2 days" --steps 1 --judge none --ledger full.ledger
full "writing failed: " "$wisp" log export log.db --out full.csv
[ "$(sha256sum full.db)" = "$before" ] || fail "a full disk changed the log"
finish
