#!/usr/bin/env bash
# Makes the ledgers of this folder with the program of 2026-11-23, which wrote format 2: what newer ones must go on reading. To be run with
# that program only, never with a newer one: what is here is what somebody's device holds.
#   tests/golden/ledgers2/make.sh PROGRAM OUT
set -euo pipefail
golden=$(cd "$(dirname "$0")/.." && pwd)
wisp=$(realpath "$1")
mkdir -p "$2"
cd "$2"
recipe=$golden/recipe.json
run=("$wisp" train --recipe "$recipe" --model "$golden/base.wisp" --data "$golden/log.db" --dataset "golden log")

# A limit and a plan of three runs, of which one was made; how far it got is known elsewhere.
"${run[@]}" --ledger planned.ledger --anchor planned.anchor --epsilon 4 --planned-runs 3 --budget 8 --out planned.wisp
# Charges under the plan of the first run and outside it, some of them marked as released.
"${run[@]}" --ledger several.ledger --noise-multiplier 4 --budget 20 --out out.wisp
"${run[@]}" --ledger several.ledger --noise-multiplier 4 --method adafest+ --rows 4 --histogram-noise 4 --out out.wisp
"$wisp" train --recipe "$recipe" --method ordinary --model "$golden/base.wisp" --data "$golden/log.db" --dataset "golden log" --out plain.wisp
"$wisp" recommend --model plain.wisp --base "$golden/base.wisp" --history i01,i02 --private --ledger several.ledger --dataset "golden log" \
  --clip 0.5 --count 3 --delta 1e-3
# A limit that was raised.
"${run[@]}" --ledger raised.ledger --noise-multiplier 4 --budget 8 --out out.wisp
"${run[@]}" --ledger raised.ledger --noise-multiplier 6 --budget 9 --seed 2 --out out.wisp
for ledger in *.ledger; do "$wisp" privacy --ledger "$ledger" --delta 1e-3 --json >"${ledger%.ledger}.json"; done
rm -f out.wisp plain.wisp
