#!/usr/bin/env bash
# Training that would have no guarantee, or no place to write to, is refused before anything is charged.
#   tests/cli_refused.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# Runs that would have no guarantee.
expect 4 "ledger" "${train[@]}" --out o.wisp
sed 's/"sampling": "poisson"/"sampling": "shuffled"/' "$recipe" >shuffled.json
expect 4 "shuffled" "$wisp" train --recipe shuffled.json "${small[@]}" --out o.wisp --ledger l.db
expect 4 "not below 1 / 60" \
  "$wisp" train --recipe "$recipe" "${tiny[@]}" --delta 0.016666666666666666 --out o.wisp --ledger l.db
expect 4 "cannot be met" \
  "$wisp" train --recipe "$recipe" "${tiny[@]}" --delta 1e-9 --epsilon 0.000001 --out o.wisp --ledger l.db
expect 4 "public" "$wisp" train --recipe "$public_recipe" --method phantom --data log.db --out o.wisp --ledger l.db
expect 2 "1e-06 to 100" "${train[@]}" --epsilon 1000 --out o.wisp --ledger l.db
endless=(--model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs nan --delta 0.001)
expect 2 "epochs is" "$wisp" train --recipe "$recipe" "${endless[@]}" --out o.wisp --ledger l.db
[ ! -e o.wisp ] || fail "a refused run left a model behind"
[ ! -e l.db ] || fail "a refused run was charged, or made a ledger"

# Outputs that cannot be written are found before anything is charged.
mkdir folder.wisp
for out in nowhere/o.wisp folder.wisp o/; do
  code=2
  [ $out = nowhere/o.wisp ] && code=3
  expect $code "${out%/}" "${train[@]}" --epsilon 4 --out $out --ledger unwritten.db
done
for option in --privacy-json --checkpoint; do
  expect 3 "nowhere" "${train[@]}" --epsilon 4 --out o.wisp $option nowhere/p --ledger unwritten.db
done
[ ! -e unwritten.db ] && [ ! -e o.wisp ] || fail "a run whose files cannot be written left something behind"

finish
