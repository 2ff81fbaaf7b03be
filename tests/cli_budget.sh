#!/usr/bin/env bash
# The program's private run, with its output and charges, and a ledger's limit that holds, rises and falls.
#   tests/cli_budget.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
runs() { sqlite3 l.db 'select count(distinct run) from entries'; }
limits() { sqlite3 l.db 'select count(*) from limits'; }

# A private run, then a budget that is spent.
expect 0 "" "${train[@]}" --epsilon 4 --budget 5 --out o.wisp --ledger l.db --privacy-json p.json --json
json 'abs(j["epsilon"] - 4) < 0.01 and j["steps"] == 3'
local_only='{"records", "records_dropped", "gradient_norm", "clipped", "seconds", "planned_bytes", "validation", "test"}'
json 'set(j["not_private"]) == set(j) & '"$local_only"' and "test" in j["not_private"]'
json '0 < j["gradient_norm"] and 0 <= j["clipped"] <= 1 and {"gradient_norm", "clipped"} <= set(j["not_private"])'
cp p.json out
json 'any("psilon" in k or "psilon" in json.dumps(v) for k, v in j.items())'
expect 4 "nothing was charged" "${train[@]}" --epsilon 4 --out o2.wisp --ledger l.db
[ ! -e o2.wisp ] || fail "a run stopped by its budget left a model behind"
grep -q "this run would bring the data set to epsilon .* at delta 0.001, the limit is 5, spent 3.9" err ||
  fail "a run that does not fit says: $(head -c 300 err)"
[ "$(runs)" = 1 ] || fail "a run that does not fit was charged in part"
expect 4 "the budget is to be 3, but epsilon 3.9.* is spent" \
  "${train[@]}" --epsilon 4 --budget 3 --out o2.wisp --ledger l.db
[ "$(limits)" = 1 ] || fail "a budget below what is spent was written"
expect 0 "limit raised from 5 to 8" "${train[@]}" --epsilon 0.5 --budget 8 --out o2.wisp --ledger l.db
expect 0 "" "${train[@]}" --epsilon 0.1 --budget 7 --out o2.wisp --ledger l.db
grep -q "raised" err && fail "a limit that is lowered is called raised"
expect 0 "" "$wisp" privacy --ledger l.db --delta 0.001
grep -q "epsilon" out || fail "the statement states no epsilon"

# A first limit after a charge is enforced, but promises nothing. The spent epsilon may exceed it, and the output says
# so.
late="(the limit was set after a charge: it is enforced, and promises nothing)"
together() { json "(lambda t: $1)(j['everything_together'])"; }
paid o.wisp late.db --json
together 't["limit"] is None and t["limit_is_passed"] is False'
paid o.wisp late.db --budget 0.9 --json
together 't["limit"] == 0.9 < t["epsilon"] and t["limit_is_passed"] is True'
cp late.db higher.db
paid o.wisp late.db --budget 1
grep -qF " of 1 at delta 0.001 $late" out || fail "a limit that is passed is no news: $(tail -n 3 out)"
expect 4 "nothing was charged" "${train[@]}" --noise-multiplier 1 --out o2.wisp --ledger late.db
expect 0 "" "$wisp" privacy --ledger late.db --delta 0.001
grep -q "the limit: was set after a charge" out || fail "the statement says of the limit: $(grep limit out)"
paid o.wisp higher.db --budget 4
grep -qF "everything together: epsilon 1.41" out || fail "what is spent together is not said: $(tail -n 3 out)"
grep -qF "$late" out && fail "a limit that is not passed is called so"
expect 0 "" "${train[@]}" --noise-multiplier 4 --budget 5 --out o.wisp --ledger higher.db --json
together 't["limit"] == 5 > t["epsilon"] and t["limit_is_passed"] is False'

finish
