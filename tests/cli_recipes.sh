#!/usr/bin/env bash
# Keys and values of a recipe that the program refuses, and that each of its keys is explained.
#   tests/cli_recipes.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
based=(--model base.wisp --data log.db --out o.wisp --ledger l.db)

sed 's/"epochs"/"epochz"/' "$recipe" >unknown.json
expect 3 "epochz" "$wisp" train --recipe unknown.json "${based[@]}"
misplaced=(--recipe misplaced.json --data log.db --out o.wisp)
printf '{"training": {"epsilon": 3}}' >misplaced.json
allowed="training has the unknown key 'epsilon', allowed are method, .*"
expect 3 "$allowed; 'epsilon' belongs in 'training.optimizer' or 'privacy'$" "$wisp" train "${misplaced[@]}"
printf '{"privacy": {"delta": 1e-6, "num_records_public": 3}}' >misplaced.json
expect 3 "'num_records_public' belongs in 'training'$" "$wisp" train "${misplaced[@]}"
printf '{"dp_fp": {"classes": ["a", "b"]}}' >misplaced.json
expect 3 "'classes' belongs in 'data'$" "$wisp" classify train "${misplaced[@]}"
printf '{"data": {"name": "x", "catalog": "public"}}' >misplaced.json
expect 3 "data has the unknown key 'catalog', allowed are min_user_events, .*, hold_out, allow_seen$" \
  "$wisp" train "${misplaced[@]}"
printf '{"data": {"name": "x"}}' >misplaced.json
expect 3 "'name' belongs in the top level$" "$wisp" train "${misplaced[@]}"
expect 0 "" python3 "$root/tests/recipe_keys.py" "$wisp" "$root/models/README.md"
# A text is one record, and belongs to no session or day.
sed 's/"unit": "interaction"/"unit": "day"/' "$root/models/recipes/sst2-minilm-head.json" >days.json
expect 3 'privacy.unit is "day", allowed are user, interaction' "$wisp" classify train --recipe days.json --data log.db \
  --base "$root/models/cafe.wisp" --out o.wisp
sed 's/"unit": "interaction"/"unit": "day"/' "$root/models/recipes/tinyshakespeare.json" >days.json
expect 3 "privacy.unit is day, allowed are interaction and user" "$wisp" train --recipe days.json --data log.db --out o.wisp
sed 's/"expected_batch": [0-9]*/"expected_batch": "many"/' "$recipe" >type.json
expect 3 "expected_batch" "$wisp" train --recipe type.json "${based[@]}"

# Whoever makes a model says once if its lists may hold items of the history: the file says it, and so do models that
# are made from it.
allows() {  # True|False MODEL
  expect 0 "" "$wisp" inspect --model "$2" --json
  json "j['allow_seen'] is $1"
}
shape='"architecture": {"max_length": 8, "width": 8}'
echo "{$shape}" >silent.json
echo "{$shape, \"data\": {\"allow_seen\": true}}" >allowing.json
echo '{"training": {"epochs": 1, "expected_batch": 20}, "data": {"allow_seen": false}}' >refusing.json
echo '{"training": {"epochs": 1, "expected_batch": 20}}' >short.json
expect 0 "" "$wisp" new --recipe silent.json --num-items 9 --out silent.wisp
expect 0 "" "$wisp" new --recipe allowing.json --num-items 9 --out allowing.wisp
for name in short refusing; do
  expect 0 "" "$wisp" train --recipe $name.json --model base.wisp --data log.db --out $name.wisp
done
grep -q "count as misses" err || fail "training for lists without repeats does not say that people repeat: $(cat err)"
for name in silent allowing base; do
  expect 0 "" "$wisp" export $name.wisp --out $name.safetensors
  expect 0 "" "$wisp" convert $name.safetensors --out $name-back.wisp
done
expect 0 "" "$wisp" convert silent.safetensors --out chosen.wisp --allow-seen
echo tea-mint >gone.txt
expect 0 "" "$wisp" compress base.wisp --out half.wisp
expect 0 "" "$wisp" catalogue retire --model base.wisp --items gone.txt --out fewer.wisp
for model in base allowing short base-back allowing-back chosen half fewer; do allows True $model.wisp; done
for model in silent refusing silent-back; do allows False $model.wisp; done
# Evaluation uses the shown lists, and asks only the model.
for model in short refusing; do
  [ $model = short ] && all=480 || all=479
  expect 0 "" "$wisp" recommend --model $model.wisp --history tea-mint --count 480 --json
  json "len(j) == $all"
done
expect 0 "" "$wisp" recommend --model short.wisp --history tea-mint --count 480 --exclude-seen --json
json "len(j) == 479"
expect 2 "exclude" "$wisp" recommend --model short.wisp --history tea-mint --exclude-seen --allow-seen
expect 2 "allow-seen" "$wisp" evaluate --model base.wisp --data log.db --allow-seen
expect 0 "" "$wisp" evaluate --model short.wisp --data log.db --json
json "j['hit@10'] > 0.2"
[ ! -s err ] || fail "a model that lets items come back is told that people repeat: $(cat err)"

# Architectures that a block cannot have.
block() {  # EXPECTED ARCHITECTURE
  echo "{\"architecture\": {$2}}" >block.json
  expect 3 "$1" "$wisp" train --recipe block.json --data log.db --out o.wisp
}
block "rotary_width is 3, allowed are even" '"width": 8, "rotary_width": 3'
block "num_kv_heads is 3, which does not divide num_heads 4" '"width": 8, "num_heads": 4, "num_kv_heads": 3'
block "norm_kind is \"batch\", allowed are layer, rms" '"norm_kind": "batch"'
block "activation is \"swish\", allowed are relu, gelu, gelu_tanh, silu" '"activation": "swish"'
block "gated is 1, allowed are true and false" '"gated": 1'
block "no variance is known for gated residuals" '"residual": "gated", "re_attention": "on"'

sed 's/"epsilon": [0-9.]*/"epsilon": 1000/' "$recipe" >absurd.json
expect 3 "1e-06 to 100" "$wisp" train --recipe absurd.json "${based[@]}"
expect 2 "1e-06 to 100" "$wisp" privacy calibrate --epsilon 1000 --delta 1e-5 --q 0.04 --steps 2000

classifier=$root/models/recipes/sst2-dp-fp.json
expect 3 "is the recipe of a classifier" "$wisp" train --recipe "$classifier" --data log.db --out o.wisp
expect 3 "is the recipe of a recommender" \
  "$wisp" classify train --recipe "$public_recipe" --data log.db --out o.wisp
echo '{"name": nothing}' >no-json.json
expect 3 "no-json.json: not JSON: parse error at line 1" "$wisp" train --recipe no-json.json --data log.db --out o.wisp
grep -q "json.exception" err && fail "the library's name is in an error: $(cat err)"
[ ! -e o.wisp ] && [ ! -e l.db ] || fail "a recipe that was refused left a model or a ledger behind"

finish
