#!/usr/bin/env bash
# Each processor continues the files of the other: models, killed runs, ledgers, a deployment, from x86-64 to 64-bit Arm
# and back. Results that docs/platforms.md promises to the bit are compared so, weights within its tolerance.
#   tests/interchange.sh BUILD ARM64_BUILD      the program of the second runs under qemu; exit code 77 if it cannot
arm64=$(realpath "${2:?the build folder for 64-bit Arm is missing}")
source "$(dirname "$0")/shell.sh"
[ -x "$arm64/wisp" ] || { echo "not compared: $arm64 has no program wisp (tools/dev arm64 builds it)"; exit 77; }
command -v qemu-aarch64 >/dev/null || { echo "not compared: qemu-aarch64 is missing (Debian: qemu-user)"; exit 77; }
recipe=$root/models/recipes/cafe-device.json
# Two programs of one shape, so that a direction is a pair of names.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$wisp" >x86
printf '#!/bin/sh\nexec qemu-aarch64 -L /usr/aarch64-linux-gnu -U LD_LIBRARY_PATH "%s" "$@"\n' "$arm64/wisp" >arm
chmod +x x86 arm
cp "$root/models/cafe.wisp" base.wisp
[ "$(./arm --version)" = "$(./x86 --version)" ] || { fail "the versions are $(./x86 --version) and $(./arm --version)"; finish; }

# same NAME FILE_OF_X86 FILE_OF_ARM compares to the bit.
same() { cmp -s "$2" "$3" || fail "$1 differs: $(diff "$2" "$3" | head -c 300)"; }
charges() {
  sqlite3 "$1" "select id, seq, purpose, noise, mechanism, loss_slack, plan, part, state from entries order by id"
}
# near MODEL MODEL BOUND compares weights, exported by the first one's processor.
near() {
  ./x86 export "$1" --out one.safetensors >out 2>err && ./x86 export "$2" --out two.safetensors >out 2>err ||
    { fail "$1 and $2 are not exported: $(head -c 300 err)"; return; }
  python3 - "$1" "$2" "$3" <<'PYTHON' || fail "the weights of $1 and $2 differ by more than $3"
import array, json, struct, sys
def weights(path):
    data = open(path, "rb").read()
    start = 8 + struct.unpack_from("<Q", data)[0]
    tensors = json.loads(data[8:start])
    tensors.pop("__metadata__", None)
    assert all(t["dtype"] == "F32" for t in tensors.values()), tensors
    return array.array("f", data[start:])
one, two = weights("one.safetensors"), weights("two.safetensors")
assert len(one) == len(two) > 10000, (len(one), len(two))
most = max(abs(a - b) for a, b in zip(one, two))
equal = sum(a == b for a, b in zip(one, two))
print(f"{sys.argv[1]}, {sys.argv[2]}: {equal} of {len(one)} weights are equal, the others within {most:.1e}")
sys.exit(most > float(sys.argv[3]))
PYTHON
}
# alike FILE FILE compares lists of recommendations: equal items, and scores up to rounding.
alike() {
  python3 - "$1" "$2" <<'PYTHON' || fail "$1 and $2 recommend differently: $(head -c 200 "$1") $(head -c 200 "$2")"
import json, sys
one, two = (json.load(open(f)) for f in sys.argv[1:])
assert len(one) == len(two) == 10
for a, b in zip(one, two):
    assert a["item"] == b["item"] and abs(a["score"] - b["score"]) <= 1e-5 * (1 + abs(a["score"])), (a, b)
PYTHON
}

# 1. Both do the same work: the log, the charges and the statement agree to the bit.
for on in x86 arm; do
  mkdir $on.work && cd $on.work || exit 1
  expect 0 "" ../$on synth --out log.db --population device --users 60 --seed 3
  sqlite3 log.db "select * from events order by rowid" >events
  expect 0 "" ../$on train --recipe "$recipe" --model ../base.wisp --data log.db --num-records-public 60 --batch 10 --epochs 1 --delta 0.001 \
    --noise-multiplier 1 --reproducible-noise 5 --threads 1 --out m.wisp --ledger l.ledger --privacy-json statement.json
  charges l.ledger >charges
  sed 's/cafe-device 20[^"]*/RUN/; s/"created": "[^"]*"/TIME/' statement.json >statement
  expect 0 "" ../$on compress ../base.wisp --out half.wisp
  expect 0 "" ../$on compress ../base.wisp --int8 --out int8.wisp
  cd ..
done
cp x86.work/log.db log.db
for what in events charges statement; do same "$what" x86.work/$what arm.work/$what; done
[ -s x86.work/charges ] || fail "nothing was charged"
near x86.work/m.wisp arm.work/m.wisp 1e-7
near base.wisp arm.work/m.wisp 1 >/dev/null  # they were trained

# 2. Models of either, opened by either: float32, float16, small integers, and products of integers.
history=(--history "tea-mint,bagel-lentil" --json)
for by in x86 arm; do
  for kind in m half int8; do
    expect 0 "" ./x86 inspect --model $by.work/$kind.wisp --verify
    cp out x86.said
    expect 0 "" ./arm inspect --model $by.work/$kind.wisp --verify
    same "what inspect says of $by's $kind.wisp" x86.said out
    for backend in simd int8; do
      expect 0 "" ./x86 recommend --model $by.work/$kind.wisp --backend $backend "${history[@]}" && cp out x86.list
      expect 0 "" ./arm recommend --model $by.work/$kind.wisp --backend $backend "${history[@]}" && cp out arm.list
      alike x86.list arm.list
    done
  done
  expect 0 "" ./x86 export $by.work/m.wisp --out x86.safetensors
  expect 0 "" ./arm export $by.work/m.wisp --out arm.safetensors
  same "the export of $by's model" x86.safetensors arm.safetensors
done
for kind in half int8; do same "$kind.wisp" x86.work/$kind.wisp arm.work/$kind.wisp; done

# 3. A run that is killed on one resumes on the other, and every charge is in the one ledger.
sed 's/"steps_per_charge": 10/"steps_per_charge": 4/' "$recipe" >short.json
steps=36
train=(train --recipe short.json --model base.wisp --data log.db --num-records-public 60 --batch 10 --epochs 6 --delta 0.001 --threads 1
  --noise-multiplier 1 --checkpoint run.ckpt --json)
# killed_on PROGRAM LEDGER OPTION... kills the run after three of nine charges; it starts again if the run ended before.
killed_on() {
  local on=$1 ledger=$2 pid
  shift 2
  for _ in $(seq 20); do
    rm -f run.ckpt "$ledger"
    ./"$on" "${train[@]}" --ledger "$ledger" "$@" >out 2>err &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
      [ -e run.ckpt ] && [ "$(sqlite3 "$ledger" 'select count(*) from entries' 2>/dev/null || echo 0)" -ge 3 ] && break
      sleep 0.01
    done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ -e run.ckpt ] && return
  done
  fail "the run on $on was over before it could be killed: $(head -c 300 err)"
}
expect 0 "" ./x86 "${train[@]}" --reproducible-noise 5 --out whole.wisp --ledger whole.ledger
for pair in "x86 arm" "arm x86"; do
  read -r from to <<<"$pair"
  # With the system's noise, the charges are compared.
  killed_on "$from" "$from.ledger" --out "$from-$to.wisp"
  charges "$from.ledger" >before
  expect 0 "" ./"$to" "${train[@]}" --out "$from-$to.wisp" --ledger "$from.ledger"
  json "j['resumed_from'] > 0 and j['steps'] == $steps"
  charges "$from.ledger" >after
  head -n "$(wc -l <before)" after >kept
  same "what $from had charged before $to went on" before kept
  [ "$(wc -l <after)" -gt "$(wc -l <before)" ] || fail "$to charged nothing for going on"
  # With a seed's noise, the weights are those of a run that was not killed.
  killed_on "$from" again.ledger --reproducible-noise 5 --out again.wisp
  expect 0 "" ./"$to" "${train[@]}" --reproducible-noise 5 --out again.wisp --ledger again.ledger
  json "j['resumed_from'] > 0 and j['steps'] == $steps"
  mv again.wisp "again-$from-$to.wisp" && rm again.ledger
  near whole.wisp "again-$from-$to.wisp" 3e-7
done

# said NAME FILE FILE compares words, and numbers up to the difference of two C libraries in exp and log.
said() {
  python3 - "$2" "$3" <<'PYTHON' || fail "$1 differs: $(diff "$2" "$3" | head -c 300)"
import re, sys
number = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
one, two = (re.split(number, open(f).read()) for f in sys.argv[1:])
same = lambda a, b: a == b or "." in a and "." in b and abs(float(a) - float(b)) <= 1e-9 * abs(float(a))
sys.exit(len(one) != len(two) or one[::2] != two[::2] or not all(map(same, one[1::2], two[1::2])))
PYTHON
}

# 4. Ledgers: both state the same epsilon; a budget that one set and spent is refused by the other.
for ledger in x86.ledger arm.ledger; do
  for on in x86 arm; do
    expect 0 "" ./$on privacy --ledger $ledger --delta 0.001 --json && cp out $on.said
  done
  said "what is said of $ledger" x86.said arm.said
  grep -q '"ledger_epsilon": [0-9]' x86.said || fail "no epsilon is said of $ledger: $(head -c 300 x86.said)"
done
small=(train --recipe "$recipe" --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --threads 1)
for pair in "x86 arm" "arm x86"; do
  read -r from to <<<"$pair"
  expect 0 "" ./"$from" "${small[@]}" --epsilon 2 --budget 2 --out spent.wisp --ledger "spent-$from.ledger"
  charges "spent-$from.ledger" >before
  expect 4 "" ./"$to" "${small[@]}" --epsilon 2 --out more.wisp --ledger "spent-$from.ledger"
  charges "spent-$from.ledger" >after
  same "a ledger whose run was refused" before after
  [ ! -e more.wisp ] || fail "a refused run on $to left a model"
done

# 5. A deployment, each training session on the other processor: the plan, and the charges of a deployment on one.
plan=(plan --data log.db --model base.wisp --epsilon 4 --num-records-public 60 --unit user --typical-events 26 --for "4 months"
  --every "1 month" --steps 4 --evaluations 2 --json)
for from in x86 arm whole; do
  on=${from/whole/x86}
  expect 0 "" ./"$on" "${plan[@]}" --ledger deployment-$from.ledger
  python3 -c 'import json, sys; j = json.load(open("out")); json.dump({k: v for k, v in j.items() if "seconds" not in k and k not in ("ledger", "bytes")}, sys.stdout)' >plan.$from
  deployment=(--data log.db --model base.wisp --ledger deployment-$from.ledger)
  for planned_run in 1 2 3 4; do
    expect 0 "" ./"$on" personalise "${deployment[@]}" --early --out deployment-$from.wisp --json
    json "j['steps'] == 4 and j['steps_of_model'] == 4 * $planned_run and j['runs_left'] == 4 - $planned_run"
    [ $from = whole ] || on=$([ $on = x86 ] && echo arm || echo x86)
  done
  charges deployment-$from.ledger >charges.$from
  for by in x86 arm; do expect 0 "" ./$by privacy --ledger deployment-$from.ledger --json && cp out said.$by; done
  said "what is said of the deployment of $from" said.x86 said.arm
  python3 -c 'import json; print(json.load(open("said.x86"))["accounting"]["ledger_epsilon"])' >epsilon.$from
  expect 0 "" ./$on plan --left "${deployment[@]}" --json
  json 'j["runs_left"] == 0 and j["evaluations_left"] == 0'
done
same "what a deployment begun on x86-64 is charged" charges.whole charges.x86  # on whichever processor its sessions run
for from in x86 arm; do
  said "the plan made on $from" plan.whole plan.$from
  said "what a deployment begun on $from is charged" charges.whole charges.$from
  said "the epsilon of a deployment begun on $from" epsilon.whole epsilon.$from
done
finish
