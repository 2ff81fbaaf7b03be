#!/usr/bin/env bash
# The program's adapters: trained with a model that does not change, used with it, merged into it.
#   tests/adapters.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

"$wisp" synth --out log.db --population device --users 80 --seed 3 >out 2>err || fail "synth"
cp "$root/models/cafe.wisp" base.wisp
recipe() {  # NAME MEMBERS: a recipe with an adapter and what else is given
  printf '{"name": "small", "adapter": {"rank": 4, "alpha": 8}, %s}' "$2" >"$1"
}
recipe ordinary.json '"training": {"method": "ordinary", "sampling": "shuffled", "epochs": 2, "expected_batch": 20}'
recipe private.json '"training": {"method": "phantom", "sampling": "poisson", "steps": 6, "expected_batch": 20, "num_records_public": 80},
  "privacy": {"noise_multiplier": 1, "delta": 0.001, "unit": "user"}'

# Trains with a model, which does not change.
before=$(sha256sum <base.wisp)
expect 2 "has an adapter, which trains beside the weights of a model" "$wisp" train --recipe ordinary.json --data log.db --out a.wisp
expect 2 "the file of the adapter and its base name the same file" "$wisp" train --recipe ordinary.json --model base.wisp --data log.db --out base.wisp
expect 0 "" "$wisp" train --recipe ordinary.json --model base.wisp --data log.db --out a.wisp
expect 0 "" "$wisp" train --recipe private.json --model base.wisp --data log.db --out b.wisp --ledger log.ledger
[ "$(sha256sum <base.wisp)" = "$before" ] || fail "training an adapter changed its base"
[ "$(stat -c %s a.wisp)" -lt $(($(stat -c %s base.wisp) / 3)) ] || fail "the adapter's file is $(stat -c %s a.wisp) bytes"
[ "$(find . -name '*.tmp*' | wc -l)" -eq 0 ] || fail "something is left: $(ls)"

# The file says that it is an adapter, and of which base.
expect 0 "" "$wisp" inspect a.wisp --json
json 'j["architecture"]["adapter"] == {"rank": 4, "alpha": 8, "matrices": ["qkv", "attention_out", "feed_forward_in", "feed_forward_out"]}'
json 'len(j["tensors"]) == 16 and all("adapter" in t["name"] for t in j["tensors"]) and not j["item_keys"]'
hash=$(python3 -c 'import json; print(json.load(open("out"))["base_hash"])')
expect 0 "" "$wisp" inspect base.wisp --json
json "j['hash'] == '$hash'"
expect 0 "" "$wisp" inspect b.wisp --json
json 'j["provenance"][-1]["epsilon"] > 0 and j["provenance"][-1]["privacy_unit"] == "user"'
expect 3 "is an adapter, which is used together with its base" "$wisp" evaluate --model a.wisp --data log.db
expect 3 "a.wisp: is an adapter" "$wisp" train --recipe ordinary.json --model a.wisp --data log.db --out c.wisp

# The adapter is used with its base, and merged into it.
expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --json
alone=$(cat out)
expect 0 "" "$wisp" evaluate --model base.wisp --adapter a.wisp --data log.db --json
beside=$(cat out)
[ "$alone" != "$beside" ] || fail "the adapter changes nothing"
expect 0 "" "$wisp" merge base.wisp --adapter a.wisp --out merged.wisp
expect 0 "" "$wisp" evaluate --model merged.wisp --data log.db --json
[ "$(cat out)" = "$beside" ] || fail "merged: $(cat out), beside its base: $beside"
expect 0 "" "$wisp" inspect merged.wisp --json
json '"adapter" not in j["architecture"] and len(j["provenance"]) == 2 and "base_hash" not in j'
user=$(sqlite3 log.db 'SELECT user FROM events LIMIT 1' 2>/dev/null || echo u00001)
expect 0 "" "$wisp" recommend --model base.wisp --adapter a.wisp --data log.db --user "$user" --json
expect 3 "it belongs to another base than merged.wisp" "$wisp" recommend --model merged.wisp --adapter a.wisp --data log.db --user "$user"
expect 3 "is a whole model, an adapter is needed" "$wisp" merge base.wisp --adapter merged.wisp --out x.wisp

# The adapter is trained further, with the planned memory.
expect 0 "" "$wisp" train --recipe ordinary.json --model base.wisp --adapter a.wisp --data log.db --out c.wisp --json
planned=$(python3 -c 'import json; print(json.load(open("out"))["planned_bytes"])')
expect 0 "" "$wisp" inspect c.wisp --json
json 'len(j["provenance"]) == 3'
printf '{"adapter": {"rank": 2}}' >other.json
expect 2 "is another adapter than the one of the recipe" "$wisp" train --recipe other.json --model base.wisp --adapter a.wisp --data log.db --out d.wisp
expect 2 "adapter is given without --model" "$wisp" train --recipe ordinary.json --adapter a.wisp --data log.db --out d.wisp
expect 0 "" "$wisp" inspect base.wisp --memory --recipe ordinary.json --records 80 --json
json "j['training']['total'] == $planned"
printf '{"adapter": {"matrices": ["qkv", "head"]}}' >other.json
expect 3 "matrices has 'head', allowed are qkv, attention_out, feed_forward_in and feed_forward_out" "$wisp" train --recipe other.json --model base.wisp --data log.db --out d.wisp

# The run is interrupted and resumed.
printf '{"name": "long", "adapter": {"rank": 4}, "training": {"method": "ordinary", "sampling": "shuffled", "steps": 400, "expected_batch": 20}}' >long.json
timeout -s INT 2 "$wisp" train --recipe long.json --model base.wisp --data log.db --out e.wisp --checkpoint e.checkpoint --checkpoint-every 5 >out 2>err
if [ -e e.checkpoint ]; then
  [ "$(stat -c %s e.checkpoint)" -lt $(($(stat -c %s base.wisp))) ] || fail "the checkpoint holds more than the adapter: $(stat -c %s e.checkpoint)"
  expect 3 "began with another model" "$wisp" train --recipe long.json --model merged.wisp --data log.db --out e.wisp --checkpoint e.checkpoint
  expect 0 "" "$wisp" train --recipe long.json --model base.wisp --data log.db --out e.wisp --checkpoint e.checkpoint
else
  [ -e e.wisp ] || fail "neither a checkpoint nor a model: $(cat err)"
fi

# Audits train only the adapter, with a base; made-up data may use fresh weights.
audit() {  # WORD ARGUMENTS...: exit code 0, and a word on standard output
  local word=$1
  shift
  expect 0 "" "$lab" audit "$@" --recipe private.json
  grep -q "$word" out || fail "audit $* does not say '$word': $(cat out)"
}
expect 0 "" "$wisp" inspect b.wisp --json
coordinates=$(python3 -c 'import json; print(sum(t["rows"] * t["columns"] for t in json.load(open("out"))["tensors"]))')
audit '"refuted": false' step --model base.wisp --observations 100 --json
json "j['coordinates'] == $coordinates and 0.5 < j['reach'] < 1.001"
audit "not refuted" step --observations 100
audit "not refuted" run --model base.wisp --canaries 100 --users 50 --steps 10
audit "an attack, not a bound" membership --model base.wisp --users 50 --steps 10
# On data, audits are charged to its ledger, and only if a run could begin.
expect 4 "needs --ledger" "$lab" audit run --recipe private.json --model base.wisp --data log.db
expect 2 "start from one" "$lab" audit run --recipe private.json --data log.db --ledger audit.ledger
[ ! -e audit.ledger ] || fail "an audit that was refused made a ledger"
audit '"charged_to": "audit.ledger"' run --model base.wisp --data log.db --ledger audit.ledger --canaries 100 --steps 10 --json
expect 0 "" "$wisp" privacy --ledger audit.ledger --delta 1e-3 --json
json 'j["accounting"]["steps"] == 10'
finish
