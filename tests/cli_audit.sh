#!/usr/bin/env bash
# The program's audits of steps, runs, membership and decoding.
#   tests/cli_audit.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# Sound mechanisms pass, false claims are refuted with exit code 4.
expect 2 "" "$lab" audit
repeated=(--reproducible-noise 3 --confidence 0.999 --json)
for method in phantom rgp; do
  expect 0 "" "$lab" audit step --method $method --noise-multiplier 1 --observations 1000 "${repeated[@]}"
  json 'not j["refuted"] and 0.3 < j["mu"]["bound"] < j["mu"]["claimed"] == 1'
  json 'j["reach"] > 0.8 and len(j["epsilon"]) == 3'
done
for method in fest adafest+; do
  expect 0 "" "$lab" audit step --method $method --observations 2000 "${repeated[@]}"
  json 'not j["refuted"] and j["mu"]["bound"] > 0.1 and j["reach"] > 0.5'
done
for method in phantom adafest; do
  expect 2 "noise-multiplier is 0, allowed is above 0" "$lab" audit step --method $method --noise-multiplier 0
done
expect 0 "" "$lab" audit run --method ordinary
grep -q "nothing was tested: this run trains without a guarantee" out || fail "an audit without a claim: $(cat out)"
expect 0 "" "$lab" audit run --canaries 100 --users 50 --steps 20 --noise-multiplier 20 --json
json 'not j["refuted"] and 0 < j["claimed"] < 2 and j["guesses"] >= 4'
expect 4 "REFUTED" "$lab" audit run --method ordinary --claim 1
grep -q "REFUTED, with 95% confidence" out || fail "a refuted run printed $(head -c 300 out)"
expect 4 "ledger" "$lab" audit run --data log.db --num-records-public 60
short=(--num-records-public 60 --batch 20 --steps 3)
expect 0 "" "$lab" audit run --data log.db --ledger a.db "${short[@]}" --noise-multiplier 4
grep -q "^charged to a.db like training: 3 steps" out && grep -q "^local only" out ||
  fail "an audit of private data: $(cat out)"
expect 0 "" "$lab" audit run --recipe "$recipe" --data log.db --ledger b.db "${short[@]}" --json
json 'j["delta"] == 1e-4 and j["charged_to"] == "b.db" and "bound" in j["not_private"]'
expect 0 "" "$wisp" privacy --ledger a.db --delta 0.001 --json
json 'any("psilon" in k or "psilon" in json.dumps(v) for k, v in j.items())'
json 'j["statement_version"] == 1 and j["created_by"].startswith("wisp ")'
expect 0 "" "$lab" audit membership --method ordinary --json
json 'j["auc"] > 0.7 and j["members"] == j["non_members"] == 200'
mixing="--mixing 0.4,0.3,0.2,0.1"
for mode in uniform mixed "non-uniform $mixing" "mixed $mixing" base-anchored anchored; do
  # shellcheck disable=SC2086
  decoding=("$lab" audit decoding --mode $mode)
  expect 0 "" "${decoding[@]}" --draws 2 --json
  json 'not j["refuted"] and 0.8 * j["claimed"] < j["exact"] <= j["claimed"] + 1e-9'
  json 'j["mode"] == ("anchored" if "anchored" in "'"$mode"'" else "mixed")'
  expect 4 "REFUTED" "${decoding[@]}" --claim 0.1
  expect 2 "--claim is nan, allowed is a number" "${decoding[@]}" --claim nan
done

finish
