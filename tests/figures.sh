#!/usr/bin/env bash
# Figures for people and scripts. Spent epsilon is never shown smaller, and noise never larger, than it was. Every
# figure that is computed on private data is called so, each time.
#   tests/figures.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
recipe=$root/models/recipes/cafe-device.json
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.txt --population device --users 60 --seed 3 >out 2>err || fail "synth"
# number WORD prints the first number after the word in the output.
number() { grep -o -- "$1 [0-9.e+-]*" out | head -n 1 | sed "s/^$1 //"; }
# at_least SHOWN TRUE checks that the shown number, read back, is not smaller than the true one, and at most a
# thousandth larger.
at_least() { python3 -c "import sys; s, t = map(float, sys.argv[1:]); sys.exit(0 if t <= s <= t * 1.001 else 1)" "$1" "$2" || fail "shown is $1, $3 is $2"; }

# Epsilons over six orders of magnitude.
for at in "1 0.01 1000" "50 0.001 3" "2000 0.001 10" "1e5 1e-5 1" "0.7 0.04 2000" "3.3 0.01 777"; do
  read -r sigma q steps <<<"$at"
  accounted=("$wisp" privacy epsilon --sigma "$sigma" --q "$q" --steps "$steps" --delta 1e-6)
  expect 0 "" "${accounted[@]}" --json
  read -r pld rdp gdp < <(python3 -c 'import json; j = json.load(open("out")); print(j["pld"], j["rdp"], j["gdp_clt"])')
  expect 0 "" "${accounted[@]}"
  at_least "$(number "PLD      epsilon")" "$pld" "the epsilon of $at"
  at_least "$(number "RDP      epsilon")" "$rdp" "the epsilon by RDP of $at"
  at_least "$(number "GDP-CLT  epsilon")" "$gdp" "the epsilon by the limit theorem of $at"
done
# Calibrated noise is printed in full: reading it back gives the same noise, whose epsilon meets the target.
for target in 0.5 3 8; do
  found=("$wisp" privacy calibrate --epsilon $target --delta 1e-5 --q 0.04 --steps 500)
  expect 0 "" "${found[@]}" --json
  read -r sigma pld < <(python3 -c 'import json; j = json.load(open("out")); print(repr(j["sigma"]), j["pld"])')
  expect 0 "" "${found[@]}"
  [ "$(number "noise multiplier")" = "$sigma" ] || fail "calibrate prints noise $(number "noise multiplier"), and found $sigma"
  at_least "$(number epsilon)" "$pld" "the calibrated epsilon"
done
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-9 --draws 3 --delta 1e-6 --json
pure=$(python3 -c 'import json; print(json.load(open("out"))["pure"])')
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-9 --draws 3 --delta 1e-6
at_least "$(number "pure     epsilon")" "$pure" "the pure epsilon of draws"

# A run: the statements at its end, about its model and about its ledger.
fit=(--data log.txt --num-records-public 60 --batch 20 --epochs 10 --delta 0.001)
run=("$wisp" train --recipe "$recipe" --model base.wisp "${fit[@]}" --noise-multiplier 3.123456789 --out m.wisp)
expect 0 "train 1/30 loss" "${run[@]}" --ledger run.ledger
shown=$(number "privacy: epsilon") spent=$(number "everything together: epsilon")
grep -q "noise multiplier 3.123456789" out || fail "the noise is not printed in full: $(cat out)"
expect 0 "" "$wisp" inspect m.wisp --json
epsilon=$(python3 -c 'import json; print(json.load(open("out"))["provenance"][-1]["epsilon"])')
at_least "$shown" "$epsilon" "the epsilon of the run"
at_least "$spent" "$epsilon" "what is spent"

# All figures that are computed on the data without a charge are listed.
expect 0 "" "${run[@]}" --ledger other.ledger --json
json 'set(j["not_private"]) == set(j) & {"records", "records_dropped", "gradient_norm", "clipped", "seconds", "planned_bytes", "validation", "test"} and "planned_bytes" in j["not_private"]'
expect 0 "" "$wisp" evaluate --model m.wisp --data log.txt --json
json 'set(j["not_private"]) == set(j) - {"not_private"}'
# Evaluation says whom it skips.
(cat log.txt; echo "short tea-mint"; echo "short bagel-lentil"; echo "u00001 unheard-of") >more.txt
expect 0 "1 event of 1 item that the model does not know left out.*(local only)" "$wisp" evaluate --model m.wisp --data more.txt
grep -q "over 60 users" out && grep -q "^skipped: 1 users with fewer than 3 events" out && grep -q "^local only" out || fail "evaluate says: $(cat out)"
expect 0 "" "$wisp" evaluate --model m.wisp --data more.txt --json
json 'j["users"] == 60 and j["users_skipped"] == 1 and j["unknown_events"] == 1 and j["unknown_items"] == 1'
# By sessions: each is a history of its own, even with two events.
python3 - <<'END'
items = [line.split()[1] for line in open("log.txt")]
with open("log.csv", "w") as log, open("sessions.csv", "w") as sessions:
    log.write("user,item,time\n"), sessions.write("user,item,time\n")
    for n in range(60):
        for k in range(3):
            for e in range(2 if n < 5 and k == 2 else 4):
                row = f"{items[(7 * n + 31 * k + e) % len(items)]},{100000 * k + 60 * e}\n"
                log.write(f"u{n},{row}"), sessions.write(f"u{n}s{k},{row}")
END
by_sessions=(--data log.csv --unit session --session-gap 1800)
expect 0 "" "$wisp" evaluate --model m.wisp "${by_sessions[@]}"
grep -q "over 180 sessions" out || fail "evaluate says: $(cat out)"
expect 0 "" "$wisp" evaluate --model m.wisp "${by_sessions[@]}" --split validation
grep -q "over 175 sessions" out && grep -q "^skipped: 5 sessions with fewer than 3 events" out || fail "evaluate says: $(cat out)"
expect 2 "--session-gap" "$wisp" evaluate --model m.wisp --data log.csv --unit session
expect 2 "--unit.* --data\|--unit is of --data" "$wisp" evaluate --model m.wisp --texts log.txt --unit day
# This equals a log in which each session is somebody's whole history.
grep -v '^u[0-4]s2,' sessions.csv >whole.csv
grep -v '^u[0-4],.*,200...$' log.csv >longer.csv
expect 0 "" "$wisp" evaluate --model m.wisp --data longer.csv --unit session --session-gap 1800 --json
found=$(cat out)
expect 0 "" "$wisp" evaluate --model m.wisp --data whole.csv --json
[ "$found" = "$(cat out)" ] || fail "sessions are evaluated as $found, people who have one each as $(cat out)"
# A plan says that sessions are evaluated by themselves, if lists leave out items of the history.
expect 0 "" "$wisp" export base.wisp --out base.safetensors
python3 - <<'END'
raw = open("base.safetensors", "rb").read()
assert raw.count(b'"wisp.allow_seen"') == 1
open("strict.safetensors", "wb").write(raw.replace(b'"wisp.allow_seen"', b'"else.allow_seen"'))
END
expect 0 "" "$wisp" convert strict.safetensors --out strict.wisp --dataset public
for base in base strict; do
  for unit in user session; do
    expect 0 "" "$wisp" plan --data log.csv --model $base.wisp --epsilon 8 --delta 1e-5 --for "2 days" --steps 2 --num-records-public 2000 --unit $unit \
      $([ $unit = session ] && echo --session-gap 1800) --dry-run --json
    json "any('each session is judged by itself' in a for a in j['advice']) == ('$base' == 'strict' and '$unit' == 'session')"
  done
done
audit=("$lab" audit run --recipe "$recipe" --model base.wisp --data log.txt --num-records-public 60 --batch 20 --steps 2 --canaries 20)
expect 0 "" "${audit[@]}" --ledger audit.ledger --json
json 'set(j["not_private"]) == {"records", "guesses", "mean_drop_included", "mean_drop_excluded", "correct", "bound", "refuted"}'
expect 0 "" "$lab" audit membership --method ordinary --model base.wisp --data log.txt --steps 2 --json
json 'set(j["not_private"]) == set(j) - {"confidence", "not_private"}'
expect 0 "" "$lab" audit membership --method ordinary --model base.wisp --data log.txt --steps 2
grep -q "^local only" out || fail "an attack on private data: $(cat out)"
expect 0 "" "$lab" audit step --model base.wisp --noise-multiplier 4 --observations 40 --json
json 'set(j["not_private"]) == {"reach", "mu", "epsilon", "refuted"}'
printf 'good\tthe film is great\nbad\tthe film is dull\ngood\tgreat\nbad\tdull\n' >texts.txt
cat >texts.json <<'END'
{"name": "texts", "architecture": {"max_length": 8, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8, "attend": "all"},
 "training": {"epochs": 1, "expected_batch": 2, "num_records_public": 4}, "dp_fp": {"micro_batches": 1, "paper": {"noise_multiplier": 1}},
 "privacy": {"noise_multiplier": 1, "delta": 0.00001}, "data": {"catalogue": "public", "classes": ["bad", "good"]}}
END
expect 0 "" "$wisp" classify train --recipe texts.json --data texts.txt --out texts.wisp --ledger texts.ledger --threads 1 --json
json 'j["not_private"] == ["records", "records_dropped", "seconds"]'
expect 0 "" "$wisp" classify train --recipe texts.json --mode paper --data texts.txt --out paper.wisp --threads 1 --json
json 'set(j["not_private"]) == set(j) - {"not_private", "no_guarantee"}'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data texts.txt --json
json 'set(j["not_private"]) == set(j) - {"not_private"}'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data texts.txt
grep -q "^local only" out || fail "the accuracy on private texts: $(cat out)"

# Every command that reads a log reads two that differ in one user: any difference in its output must be marked.
"$wisp" synth --out whole.db --population device --users 30 --seed 5 >/dev/null 2>&1 || fail "synth of a log"
neighbours() { # NAME COMMAND...: in folders with a log each
  local name=$1 which
  shift
  for which in whole less; do
    rm -rf work.$which && mkdir work.$which && cp whole.db work.$which/log.db
    [ $which = whole ] || "$wisp" log erase work.less/log.db --user u00007 >/dev/null 2>&1 || fail "one user less"
    (cd work.$which && ln -s ../base.wisp . && "$@" >../$name.$which.json 2>err) || fail "$name: $(head -c 300 work.$which/err)"
  done
  python3 - $name.whole.json $name.less.json <<'PYTHON' || fail "$name has an exact figure without a mark"
import json, sys
whole, less = (json.load(open(f)) for f in sys.argv[1:])
for key in (set(whole) | set(less)) - {"not_private"}:
    if whole.get(key) != less.get(key):
        assert all(key in j.get("not_private", []) for j in (whole, less)), (key, whole.get(key), less.get(key))
PYTHON
}
log=(--data log.db --model base.wisp)
neighbours count "$wisp" log count log.db --json
neighbours list "$wisp" log list log.db --json
neighbours erase "$wisp" log erase log.db --user u00007 --json
neighbours prune "$wisp" log prune log.db --unit user --newest-per-user 2 --json
neighbours evaluate "$wisp" evaluate "${log[@]}" --json
neighbours train "$wisp" train --recipe "$recipe" "${log[@]}" --num-records-public 30 --batch 10 --epochs 2 --delta 0.001 --threads 1 \
  --noise-multiplier 3 --reproducible-noise 1 --ledger l.ledger --out m.wisp --json
night='"$0" plan --data log.db --model base.wisp --epsilon 4 --delta 1e-4 --for "4 days" --every "1 day" --unit user --num-records-public 30 \
  --judge "$1" >/dev/null && "$0" personalise --data log.db --model base.wisp --out m.wisp --json'
neighbours local bash -c "$night" "$wisp" local
neighbours none bash -c "$night" "$wisp" none
neighbours report bash -c "$night >/dev/null && \"\$0\" report --ledger log.ledger --model base.wisp --out m.wisp --data log.db --html p.html --json" \
  "$wisp" none
finish
