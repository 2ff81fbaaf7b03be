#!/usr/bin/env bash
# The steps and the sampling probability of private runs are those of the declared number of users or texts, in the
# program and through the C interface. The log has 60 users; 30 and 180 are declared.
#   tests/declared.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"
# charged LEDGER STEPS Q NAME checks that this many steps were charged in total, each mechanism with that probability.
charged() {
  local got
  got=$(sqlite3 "$1" 'select mechanism from entries' | python3 -c '
import re, sys
steps, probabilities = 0, set()
for line in sys.stdin:
    steps += int(re.search(r"steps=(\d+)", line).group(1))
    probabilities.add(re.search(r"sampling_probability=(\S+)", line).group(1))
print(steps, " ".join(sorted(probabilities)))')
  [ "$got" = "$2 $3" ] || fail "$4: charged are (steps, probabilities) $got, expected $2 $3"
}

for declared in 30 180; do
  steps=$(((declared + 19) / 20))  # one epoch of batches of 20
  q=$(python3 -c "print(repr(20 / $declared))")
  expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe-device.json" --model base.wisp --data log.db --batch 20 --epochs 1 --noise-multiplier 3 --delta 1e-4 \
    --num-records-public $declared --out o$declared.wisp --ledger p$declared.db
  charged p$declared.db $steps "$q" "wisp train, $declared declared"
done

cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/declared.c" -o declared -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test: $(head -c 300 err)"
for declared in 30 180; do
  steps=$(((declared + 19) / 20))
  expect 0 "" ./declared base.wisp log.db c$declared.db c$declared.wisp $declared
  [ "$(cat out)" = "$steps" ] || fail "wisp_personalise with $declared declared takes $(cat out) steps, expected $steps"
  charged c$declared.db $steps "$(python3 -c "print(repr(20 / $declared))")" "wisp_personalise, $declared declared"
done

for _ in $(seq 40); do printf 'good\ta fine film\nbad\ta dull bore\n'; done >texts.txt
sed 's/"classes": \[[^]]*\]/"classes": ["good", "bad"]/; s/"micro_batches": 32/"micro_batches": 2/' "$root/models/recipes/sst2-dp-fp.json" >texts.json
for declared in 40 400; do
  expect 0 "" "$wisp" classify train --recipe texts.json --data texts.txt --num-records-public $declared --batch 20 --epochs 1 --noise-multiplier 3 --delta 1e-4 \
    --out t$declared.wisp --ledger t$declared.db
  charged t$declared.db $((declared / 20 * 2)) "$(python3 -c "print(repr(20 / $declared / 2))")" "wisp classify train, $declared declared"
done
finish
