#!/usr/bin/env bash
# Makes the files of this folder with the program of 2026-11-21: what newer ones must go on reading. To be run with that program only, never
# with a newer one: what is here is what somebody's device holds.
#   tests/golden/make.sh FOLDER OUT      FOLDER: a build of that day, with wisp, libwisp.so.0 and wisp.h
set -euo pipefail
golden=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
cd "$2"
wisp=$build/wisp

# The log, as an app writes it.
cc -I"$build" "$golden/append.c" "$build/libwisp.so.0" -Wl,-rpath,"$build" -o append
./append log.db
"$wisp" new --recipe "$golden/recipe.json" --data log.db --out base.wisp
run=("$wisp" train --model base.wisp --data log.db --dataset "golden log" --out out.wisp)

"${run[@]}" --recipe "$golden/recipe.json" --ledger closed.ledger --noise-multiplier 4
"${run[@]}" --recipe "$golden/recipe.json" --ledger limits.ledger --noise-multiplier 4 --budget 8
"${run[@]}" --recipe "$golden/recipe.json" --ledger limits.ledger --noise-multiplier 6 --budget 9 --seed 2
"${run[@]}" --recipe "$golden/recipe.json" --ledger reproducible.ledger --noise-multiplier 4 --reproducible-noise 7
# Several mechanisms: a histogram, rows of the item table, draws.
"${run[@]}" --recipe "$golden/recipe.json" --ledger several.ledger --noise-multiplier 4 --budget 20
"${run[@]}" --recipe "$golden/recipe.json" --ledger several.ledger --noise-multiplier 4 --method adafest+ --rows 4 --histogram-noise 4
"$wisp" train --recipe "$golden/recipe.json" --method ordinary --model base.wisp --data log.db --dataset "golden log" --out plain.wisp
"$wisp" recommend --model plain.wisp --base base.wisp --history i01,i02 --private --ledger several.ledger --dataset "golden log" \
  --clip 0.5 --count 3 --delta 1e-3

# Killed between two charges: the file alone does not hold what was spent.
sed 's/"steps_per_charge": 10/"steps_per_charge": 2000/' "$golden/recipe.json" >slow.json
"${run[@]}" --recipe slow.json --ledger killed.ledger --noise-multiplier 40 --epochs 2000 & pid=$!
until [ "$(sqlite3 "file:killed.ledger?mode=ro" "select count(*) from entries" 2>/dev/null || echo 0)" -ge 2 ]; do sleep 0.01; done
kill -KILL $pid
wait $pid || true
# Stopped: a checkpoint, and the ledger that paid for it so far.
"${run[@]}" --recipe "$golden/recipe.json" --ledger stopped.ledger --noise-multiplier 40 --epochs 2000 --checkpoint stopped.checkpoint & pid=$!
until [ -e stopped.checkpoint ]; do sleep 0.01; done
kill -INT $pid
wait $pid || true

# What that program says of them, of copies: it changes what it reads.
mkdir said
for ledger in *.ledger; do
  cp "$ledger"* said
  "$wisp" privacy --ledger "said/$ledger" --delta 1e-3 --json >"${ledger%.ledger}.json"
done
rm -rf said append plain.wisp out.wisp slow.json ./*-shm log.db-wal  # which is empty
