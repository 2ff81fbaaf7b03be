#!/usr/bin/env bash
# The program's warnings about private sampling, and about options for it that mean nothing.
#   tests/cli_draw_options.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
entries() { sqlite3 "$1" 'select count(*) from entries'; }
plain plain.wisp
one=("$wisp" recommend --model plain.wisp --history tea-mint,bagel-lentil --private --public-dataset "$label" --count)
draw=("${one[@]}" 4)

# Samples that depend little on the model, and options that mean nothing, in the words of the options.
expect 0 "99.9 % of the draws are random.*--base" "${draw[@]}" --ledger w.db --lambda 1e-3 --json
json 'abs(j["privacy"]["random_share"] - 0.999) < 1e-12'
grep -q "w.db was charged and has no limit" err || fail "a ledger without a limit is not spoken of: $(cat err)"
expect 0 "" "${draw[@]}" --ledger w.db --lambda 0.9 --budget 1e4 --delta 1e-6
grep -q "^10 % of the draws are random" out && [ ! -s err ] || fail "mixed draws: $(cat out err)"
anchored=("${draw[@]}" --ledger w.db --base base.wisp)
expect 0 "follow the base model almost entirely" "${anchored[@]}" --clip 0.1
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-4 --draws 100 --delta 1e-6 --json
json 'j["random_share"] == 1 - 1e-4 and j["mode"] == "mixed"'
before=$(entries w.db)
lifetime=("${draw[@]}" --ledger w.db --delta 1e-6)
expect 2 "--count is 4, but --lifetime allows 3" "${lifetime[@]}" --epsilon 2 --lifetime 3
expect 2 "--block is 9, but --lifetime allows 8" "${lifetime[@]}" --epsilon 2 --lifetime 8 --block 9
expect 2 "--lifetime is 0" "${lifetime[@]}" --epsilon 2 --lifetime 0
expect 2 "1e-06 to 100" "${lifetime[@]}" --epsilon 1000 --lifetime 8
expect 2 "1e-06 to 100" "$wisp" privacy decoding --calibrate --epsilon 1000 --draws 100 --delta 1e-6
expect 2 "--count is 0" "${one[@]}" 0 --ledger w.db --lambda 0.9
expect 2 "--count is 0" "$wisp" recommend --model plain.wisp --history tea-mint --count 0
expect 2 "--clip is of the mode anchored.*--lambda" "${draw[@]}" --ledger w.db --clip 0.5
expect 2 "--lambda is of the mode mixed" "${anchored[@]}" --lambda 0.5
expect 2 "--mode anchored needs --base" "${draw[@]}" --ledger w.db --mode anchored --clip 0.5
expect 2 "lambda is 1.5" "${draw[@]}" --ledger w.db --lambda 1.5
expect 2 "lambda is -1" "${draw[@]}" --ledger w.db --lambda -1
expect 4 "nothing is mixed in" "${draw[@]}" --ledger w.db --lambda 1
expect 2 "clip is 0" "${anchored[@]}" --public-dataset "$label" --clip 0
expect 2 "one is allowed, 2 were given" "$wisp" recommend --model plain.wisp --data log.db --user u00003 --history tea-mint
expect 0 "--allow-seen" "${one[@]}" 1 --ledger w.db --lambda 0.9 --candidates tea-mint --exclude-seen
expect 0 "nothing is left" "$wisp" recommend --model plain.wisp --history tea-mint --candidates tea-mint --exclude-seen
[ "$(entries w.db)" = "$before" ] || fail "a refused draw was charged"
expect 0 "" "$wisp" recommend --model plain.wisp --history " tea-mint , bagel-lentil" --json
cp out blanks.json
expect 0 "" "$wisp" recommend --model plain.wisp --history tea-mint,bagel-lentil --json
cmp -s out blanks.json || fail "blanks around the items of a history change the answer"
# A spent budget in words: one sample of epsilon 0.9 fits into 1, 4 do not.
spent="one costs epsilon 0.9 at delta 0, spent on this data is epsilon 0, the limit is epsilon 1 at delta 1e-06"
expect 4 "does not allow 4 draws: $spent; 1 more would fit" \
  "${draw[@]}" --ledger words.db --epsilon-per-draw 0.9 --budget 1 --delta 1e-6
expect 0 "" "${one[@]}" 1 --ledger words.db --epsilon-per-draw 0.9
expect 4 "no more draw fits: nothing was charged" "${one[@]}" 1 --ledger words.db --epsilon-per-draw 0.9
[ "$(entries words.db)" = 1 ] || fail "a draw beyond the budget was charged"

finish
