#!/usr/bin/env bash
# docs/errors.md quotes the sources (tests/errors.py), and the program prints some of the sentences as quoted.
#   tests/errors.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
page=$root/docs/errors.md
python3 "$root/tests/errors.py" "$root" || fail "the page quotes what no source says"

# quoted COMMAND... checks that its sentence is on the page: all parts of one row stand in it, in their order.
quoted() {
  "$@" >out 2>err && fail "$* is not refused"
  python3 - "$page" err <<'PY' || fail "no row of docs/errors.md is what this says: $(head -c 300 err)"
import re, sys
said = " ".join(open(sys.argv[2]).read().split())
cells = re.findall(r"(?m)^\| (`[^`]*`(?: or `[^`]*`)*) \|", open(sys.argv[1]).read())
rows = [row for cell in cells for row in re.findall("`([^`]*)`", cell)]
sys.exit(0 if any(re.search(".*".join(map(re.escape, row.split("..."))), said) for row in rows) else 1)
PY
}
cp "$root/models/cafe.wisp" base.wisp
head -c 20000 base.wisp >cut.wisp
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth: $(cat err)"
quoted "$wisp" recommend --model nothing.wisp --history tea-mint
quoted "$wisp" recommend --model log.db --history tea-mint
quoted "$wisp" recommend --model cut.wisp --history tea-mint
quoted "$wisp" recommend --model base.wisp --history tea-nothing
quoted "$wisp" recommend --model base.wisp --data log.db --user nobody
quoted "$wisp" recommend --model base.wisp
quoted "$wisp" generate base.wisp --prompt x
quoted "$wisp" personalise --data log.db --model base.wisp --out mine.wisp
train=("$wisp" train --recipe "$root/models/recipes/cafe-device.json" --model base.wisp --data log.db --num-records-public 60
  --batch 20 --epochs 1 --out mine.wisp --noise-multiplier 4)
quoted "${train[@]}" --delta 0.001
quoted "${train[@]}" --delta 0.5 --ledger log.ledger
quoted "${train[@]}" --delta 0.001 --ledger log.ledger --budget 0.01
quoted "${train[@]}" --delta 0.001 --ledger log.db
quoted "${train[@]}" --delta 0.001 --ledger nowhere/log.ledger
quoted "$wisp" train --epoch 1
quoted "$wisp" train --epochs x
quoted "$wisp" log count nothing.db

# A row that no source says is noticed.
git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf tree.tar && mkdir tree && tar -C tree -xf tree.tar && git -C tree init -q
git -C tree add -A
sed -i 's/^| `has no plan for a life/| `has no plan for the day/' tree/docs/errors.md
python3 "$root/tests/errors.py" tree >out && fail "a sentence that no source says is not seen"
grep -q "no source says 'has no plan for the day" out || fail "it is not named: $(cat out)"
finish
