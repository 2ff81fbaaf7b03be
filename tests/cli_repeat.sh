#!/usr/bin/env bash
# Runs that repeat. Reproducible noise has no guarantee, is named so, and has ledgers of its own. A run that is stopped
# and resumed gives the same model as without a stop.
#   tests/cli_repeat.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

paid o.wisp l.db
expect 4 "reproducible" "${train[@]}" --epsilon 4 --reproducible-noise 1 --out o2.wisp --ledger l.db
expect 0 "" "${train[@]}" --reproducible-noise 1 --out r.wisp --ledger r.db --privacy-json r.json --json
json 'j["epsilon"] is None'
expect 0 "" "${train[@]}" --reproducible-noise 1 --out r.wisp --ledger r.db
figures="loss, records, records_dropped, gradient_norm, clipped, seconds, planned_bytes, test"
grep -q "local only, not private, for this device's owner: $figures" out ||
  fail "a private run shows figures without a note: $(head -c 300 out)"
expect 0 "" "$wisp" privacy --ledger r.db
grep -q "no guarantee" out || fail "reproducible noise must be called what it is"
expect 4 "use a ledger of its own for experiments" "${train[@]}" --epsilon 4 --out o2.wisp --ledger r.db
[ ! -e o2.wisp ] || fail "a refused run left a model behind"

# A run that is stopped and resumed gives the same model, bit for bit.
resume=(train --recipe "$public_recipe" --data log.db --epochs 60 --batch 20 --threads 2)
expect 0 "" "$wisp" "${resume[@]}" --out whole.wisp
"$wisp" "${resume[@]}" --out part.wisp --checkpoint run.ckpt >out 2>err &
pid=$!
for _ in $(seq 200); do [ -e run.ckpt ] && break; sleep 0.02; done
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
expect 0 "" "$wisp" "${resume[@]}" --out part.wisp --checkpoint run.ckpt
cmp -s whole.wisp part.wisp || fail "a resumed run gives another model"

finish
