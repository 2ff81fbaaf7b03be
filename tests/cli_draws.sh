#!/usr/bin/env bash
# The program's private sampling of items. It is refused without a ledger or a guarantee, charged while the budget
# lasts, and free for weights that carry a guarantee.
#   tests/cli_draws.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
entries() { sqlite3 "$1" 'select count(*) from entries'; }

# Training without a guarantee says so, and samples from the model must be paid for.
expect 0 "" "$wisp" train --recipe "$public_recipe" --model base.wisp --data log.db --epochs 2 --batch 20 \
  --out plain.wisp --json
json 'set(j["not_private"]) == set(j) - {"not_private"}'
expect 0 "" "$wisp" train --recipe "$public_recipe" --model base.wisp --data log.db --epochs 1 --batch 20 \
  --out ordinary.wisp
grep -q "^not private: no guarantee; local only" out ||
  fail "a run that protects nothing does not say so: $(head -c 300 out)"
private=("$wisp" recommend --model plain.wisp --history tea-mint,bagel-lentil --private)
bare=("${private[@]}" --count)
one=("${private[@]}" --public-dataset "$label" --count)
draw=("${one[@]}" 4)
expect 4 "needs a ledger" "${draw[@]}" --lambda 1e-3
expect 2 "exactly one of --lambda (mode mixed)" "${draw[@]}" --ledger d.db
mixed=(--ledger d.db --lambda 1e-3)
sets="'$label', 'log.db'"
expect 4 "show the data sets $sets, and a ledger pays for one" "${bare[@]}" 4 "${mixed[@]}"
expect 2 "--public-dataset is 'guests', which no provenance here names: its data sets are $sets" \
  "${bare[@]}" 4 "${mixed[@]}" --public-dataset guests
expect 4 "base model must be public" "${bare[@]}" 4 --public-dataset log.db --ledger d.db --base base.wisp --clip 0.5
expect 4 "support computed from the private model" "${draw[@]}" "${mixed[@]}" --support model:20
expect 4 "arg-max" "${draw[@]}" "${mixed[@]}" --select best
expect 4 "after mixing" "${draw[@]}" "${mixed[@]}" --after-mixing top-k
expect 2 "private" "$wisp" recommend --model plain.wisp --history tea-mint --lambda 1e-3
target=(--ledger d.db --base base.wisp --epsilon 2 --lifetime 8)
expect 4 "1 / 1000" "${draw[@]}" "${target[@]}" --delta 0.001 --num-records-public 1000
[ ! -e d.db ] || fail "a refused draw was charged, or made a ledger"
expect 0 "" "${draw[@]}" "${target[@]}" --delta 1e-6 --json
json 'len(j["items"]) == 4 and all("score" not in i for i in j["items"]) and j["privacy"]["mode"] == "anchored"'
json 'j["privacy"]["draws_charged"] == 4 and 0 < j["privacy"]["spent"] < 2 and j["privacy"]["limit"]["epsilon"] == 2'
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6 --json
cp out first.json
json '0 < j["accounting"]["epsilon_of_used_part"] < j["accounting"]["epsilon"]'
json 'j["accounting"]["composition"] == "plan" and j["accounting"]["parts"][0]["purpose"] == "decoding"'
json 'j["accounting"]["draws"]["number"] == 4 and j["accounting"]["draws"]["pure_epsilon"] > 0'
expect 0 "" "${draw[@]}" "${target[@]}" --delta 1e-6
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6 --json
first='json.load(open("first.json"))["accounting"]["ledger_epsilon"]'
json 'j["accounting"]["ledger_epsilon"] == '"$first"' and j["accounting"]["ledger_epsilon"] <= 2'
expect 4 "nothing was charged" "${draw[@]}" "${target[@]}" --delta 1e-6
expect 4 "--dataset is 'other', but draws from plain.wisp show the data set 'log.db'" \
  "${draw[@]}" "${target[@]}" --delta 1e-6 --dataset other
paid cafe.wisp cafe.db --dataset "cafe log"
expect 4 "is of the data set 'cafe log', and what is to be charged is 'log.db'" \
  "${draw[@]}" --ledger cafe.db --lambda 1e-3
expect 4 "the budget is to be 0.5, but epsilon" "${draw[@]}" "${target[@]}" --delta 1e-6 --budget 0.5
[ "$(sqlite3 d.db 'select count(*) from limits')" = 1 ] || fail "a budget below what is spent was written"
[ ! -s out ] || fail "a refused draw printed $(head -c 300 out)"
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6
grep -q "draws alone: 8 draws: pure epsilon .* set by" out && grep -q "the figure was set by" out ||
  fail "the statement says of draws: $(grep draws out)"
expect 0 "limit raised from 2 to 4" "${draw[@]}" "${target[@]}" --delta 1e-6 --budget 4
# The unused rest of a block is lost; training and sampling add up to one figure.
block=(--ledger o.db --epsilon-per-draw 0.01 --block 50)
expect 0 "" "${one[@]}" 1 "${block[@]}" --json
json 'j["privacy"]["draws_charged"] == 50 and j["privacy"]["mode"] == "mixed"'
json 'j["privacy"]["pure_epsilon_per_draw"] <= 0.0100001'
expect 0 "" "${one[@]}" 1 "${block[@]}"
[ "$(sqlite3 o.db 'select group_concat(mechanism) from entries' | grep -o 'steps=50' | wc -l)" = 2 ] ||
  fail "blocks are not charged whole"
paid o.wisp l.db --budget 7
before=$(entries l.db)
free=("$wisp" recommend --model o.wisp --history tea-mint --private --public-dataset "$label")
expect 0 "" "${free[@]}" --ledger l.db
grep -q "guarantee for all data that is not declared public: drawing is free post-processing" out ||
  fail "free draws do not say so: $(head -c 300 out)"
[ "$(entries l.db)" = "$before" ] || fail "a free draw was charged"
expect 4 "nothing was charged" "${draw[@]}" --ledger l.db --epsilon-per-draw 3
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-4 --draws 100 --delta 1e-6 --json
json 'abs(j["pure"] - 69.3) < 0.1 and abs(j["pld"] - 1.38) < 0.01 and j["rdp"] > j["pld"] and j["set_by"] == "PLD"'
expect 0 "" "$wisp" privacy decoding --calibrate --epsilon 2 --draws 100 --delta 1e-6 --json
json '0 < j["clip"] and 1.99 < j["pld"] <= 2'
expect 0 "" "${free[@]}" --public-dataset log.db
grep -q "is declared public" out && ! grep -q "guarantee" out ||
  fail "data that is all declared public: $(head -c 300 out)"

# Sampling in C.
c_program private_recommend draws
expect 0 "" ./private_recommend plain.wisp base.wisp p.db "$label"

finish
