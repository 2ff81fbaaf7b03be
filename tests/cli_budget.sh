#!/usr/bin/env bash
# The program from outside: a private run, what it says and charges, and a ledger's limit that holds, rises and falls.
#   tests/cli_budget.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
runs() { sqlite3 l.db 'select count(distinct run) from entries'; }
limits() { sqlite3 l.db 'select count(*) from limits'; }

# A private run, then a budget that is spent.
expect 0 "" "${train[@]}" --epsilon 4 --budget 5 --out o.wisp --ledger l.db --privacy-json p.json --json
json 'abs(j["epsilon"] - 4) < 0.01 and j["steps"] == 3'
local_only='{"records", "records_dropped", "seconds", "planned_bytes", "validation", "test"}'
json 'set(j["not_private"]) == set(j) & '"$local_only"' and "test" in j["not_private"]'
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

finish
