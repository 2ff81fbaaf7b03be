#!/usr/bin/env bash
# Interrupted or killed runs resume, within their own budget, and nobody else on the machine can read the written files.
#   tests/interrupted.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
umask 000
recipe=$root/models/recipes/cafe-device.json
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"

# expect_private FILE... fails for files that others can read. tests/ledgers.sh checks ledgers and the files that SQLite
# keeps beside them.
expect_private() {
  for file in "$@"; do [ "$(stat -c %a "$file")" = 600 ] || fail "$file has mode $(stat -c %a "$file") under umask 000"; done
}
charged() { sqlite3 "$1" "select coalesce(sum(cast(substr(mechanism, instr(mechanism, 'steps=') + 6) as integer)), 0) from entries where purpose = '${2:-training}'"; }
# interrupted SIGNAL LEDGER COMMAND... ends the command by the signal once three charges and a checkpoint are there.
interrupted() {
  local signal=$1 ledger=$2
  shift 2
  "$@" >out 2>err &
  local pid=$!
  for _ in $(seq 1000); do
    [ -e run.ckpt ] && [ "$(sqlite3 "$ledger" 'select count(*) from entries' 2>/dev/null || echo 0)" -ge 3 ] && break
    sleep 0.02
  done
  [ -e run.ckpt ] || fail "no checkpoint after three charges: $(head -c 300 err)"
  expect_private run.ckpt
  kill "-$signal" "$pid" 2>/dev/null || fail "the run was over before it could be interrupted"
  ended=0
  wait "$pid" 2>/dev/null || ended=$?
}

train=("$wisp" train --recipe "$recipe" --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 200 --delta 0.001 --epsilon 4 --budget 4
  --checkpoint run.ckpt --threads 1)
for signal in INT TERM KILL; do
  ledger=$signal.ledger
  interrupted $signal $ledger "${train[@]}" --out m.wisp --ledger $ledger --json
  if [ $signal = KILL ]; then
    [ -n "$(find . -name 'm.wisp.tmp-*')" ] || fail "no room was kept for the model"
  else
    [ "$ended" = 130 ] || fail "a run that was interrupted by $signal exited $ended"
    grep -q "run.ckpt goes on from step" err || fail "it is not said from where the run goes on: $(tail -n 1 err)"
    [ -z "$(find . -name '*.tmp-*')" ] || fail "an interrupted run left $(find . -name '*.tmp-*')"
  fi
  [ ! -e m.wisp ] || fail "an interrupted run left a model"
  expect 0 "" "${train[@]}" --out m.wisp --ledger $ledger --privacy-json p.json --json
  python3 - <<'PY' || fail "what went on says: $(head -c 400 out)"
import json
j = json.load(open("out"))
assert j["resumed_from"] > 0 and j["steps"] <= 600 and j["epsilon"] <= 4 and j["epsilon"] > 3.8, j
assert j["steps"] == 600 or (j["steps_planned"] == 600 and "more was not allowed" in j["ended_early"]), j
# Its statement has all charges, used or not, and names the filter as the source of the figure, because steps were paid
# for beyond the plan.
a = json.load(open("p.json"))["accounting"]
assert a["steps"] >= j["steps"] and a["loss_slack"] > 0 and a["epsilon"] == j["epsilon"], a
assert a["accountant"].startswith("Renyi filter") == (a["composition"] == "adaptive"), a
PY
  [ ! -e run.ckpt ] && [ -z "$(find . -name '*.tmp-*')" ] || fail "a run that is complete left $(ls)"
  expect_private m.wisp p.json
  rm -f m.wisp p.json
done
# Without a limit it continues beyond its target, and says so; an uninterrupted run has nothing to say.
words=${train[*]}
read -ra unlimited <<<"${words/--budget 4/}"
# A kill between a save and the next charge loses nothing; then it is tried once more.
for try in 1 2 3 4 5; do
  rm -f no.ledger m.wisp
  interrupted KILL no.ledger "${unlimited[@]}" --out m.wisp --ledger no.ledger --json
  expect 0 "" "${unlimited[@]}" --out m.wisp --ledger no.ledger --json
  [ "$(charged no.ledger)" -gt 600 ] && break
done
grep -q "its target was 4: it was interrupted" err || fail "five kills, and nothing is said of the target: $(head -c 300 err)"
json "j['resumed_from'] > 0 and j['steps'] == 600 and j['epsilon'] > 4.1"
expect 0 "" "${unlimited[@]}" --out m.wisp --ledger whole.ledger --json
! grep -q "its target was" err || fail "a whole run says: $(grep 'its target was' err)"
rm -f m.wisp

expect 2 "is given without --checkpoint" "$wisp" train --recipe "$recipe" --model base.wisp --data log.db --checkpoint-every 5 --out m.wisp --ledger x.ledger
expect 2 "allowed are 1 step and more" "${train[@]}" --checkpoint-every 0 --out m.wisp --ledger x.ledger
grep -q -- "--checkpoint-every.*" <<<"$("$wisp" train --help)" || fail "the interval is not in the help"

# Classifiers.
python3 - >texts.txt <<'PY'
import random
random.seed(5)
for i in range(400):
    label = random.randrange(2)
    print("%s\t%s" % (("bad", "good")[label], " ".join(["the", "film", "is", ("dull", "great")[label]])))
PY
cat >tiny.json <<'JSON'
{"name": "tiny", "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16, "attend": "all"},
 "initialisation": {"table_deviation": 0.5},
 "training": {"epochs": 100, "expected_batch": 200, "num_records_public": 400},
 "dp_fp": {"mode": "aggregate", "micro_batches": 2},
 "privacy": {"noise_multiplier": 4, "delta": 0.001, "steps_per_charge": 10},
 "data": {"classes": ["bad", "good"], "catalogue": "public"}}
JSON
classify=("$wisp" classify train --recipe tiny.json --data texts.txt --checkpoint run.ckpt --threads 1 --out c.wisp --ledger texts.ledger --json)
interrupted INT texts.ledger "${classify[@]}"
[ "$ended" = 130 ] || fail "a classifier's training that was interrupted exited $ended"
expect 0 "" "${classify[@]}"
python3 -c 'import json; j = json.load(open("out")); assert j["resumed_from"] > 0 and j["steps"] == 200, j' || fail "classify went on: $(head -c 300 out)"
expect_private c.wisp

# This also holds for the head of an encoder that stays in its file, whose checkpoint holds only the head, and for its
# blocks.
expect 0 "" "$wisp" convert "$root/tests/golden/hugging_face/bert_classes" --out encoder.wisp --dataset made-up
for part in head blocks; do
  rm -f run.ckpt
  python3 - "$part" <<'PY'
import json, sys
json.dump({"name": "part", "training": {"method": "phantom", "trains": sys.argv[1], "steps": 2000, "expected_batch": 40, "num_records_public": 400},
           "privacy": {"noise_multiplier": 40, "delta": 0.001, "steps_per_charge": 10, "unit": "interaction"}, "data": {"classes": ["bad", "fair", "good"]}},
          open("part.json", "w"))
PY
  part_run=("$wisp" classify train --recipe part.json --base encoder.wisp --other-data --data texts.txt --checkpoint run.ckpt --threads 1 --out "$part.wisp"
    --ledger $part.ledger --json)
  interrupted INT $part.ledger "${part_run[@]}"
  [ "$ended" = 130 ] || fail "a run of the $part that was interrupted exited $ended"
  expect 0 "" "${part_run[@]}"
  python3 -c 'import json; j = json.load(open("out")); assert j["resumed_from"] > 0 and j["steps"] == 2000, j' || fail "the $part went on: $(head -c 300 out)"
done

# The files that other commands write about models and data are private too.
expect 0 "" "$wisp" export base.wisp --out base.safetensors
expect 0 "" "$wisp" compress base.wisp --out small.wisp
expect 0 "" "$wisp" new --recipe "$root/models/recipes/cafe.json" --num-items 10 --out new.wisp
expect_private base.safetensors small.wisp new.wisp

# A malformed text, or one of an unknown class, is left out; a refusal would reveal it. So would a refusal because no
# text is left.
{ printf 'ugly\tthe film\n'; head -n 40 texts.txt; printf 'no tab\n'; } >odd.txt
expect 0 "2 texts left out, the first: odd.txt, line 42: 1 field;" "$wisp" classify train --recipe tiny.json --data odd.txt --epochs 1 --out c.wisp --ledger odd.ledger --json
python3 -c 'import json; j = json.load(open("out")); assert j["records_dropped"] == 2 and "records_dropped" in j["not_private"] and j["steps"] == 2, j' || fail "texts left out: $(head -c 300 out)"
: >none.txt
printf 'dull\ngreat\n' >words.txt
expect 0 "" "$wisp" classify train --recipe tiny.json --data none.txt --vocabulary words.txt --epochs 1 --out c.wisp --ledger none.ledger
[ "$(sqlite3 none.ledger 'select count(*) from entries')" = 1 ] || fail "a run on no texts was not charged like any other"
expect 3 "odd.txt, line 42: 1 field;" "$wisp" classify train --recipe tiny.json --mode paper --data odd.txt --epochs 1 --out c.wisp
finish
