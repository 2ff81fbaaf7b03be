#!/usr/bin/env bash
# Float16 tables and weights in blocks of small integers: less memory for the same model, with its guarantee. Everything
# reads them, C too.
#   tests/cli_halves.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
paid o.wisp l.db

echo "not a model" >text.wisp
expect 2 "'f8', allowed is f16" "$wisp" compress o.wisp --out small.wisp --tables f8
expect 3 "text.wisp" "$wisp" compress text.wisp --out small.wisp
[ ! -e small.wisp ] || fail "a refused compress left a model behind"
expect 0 "" "$wisp" compress o.wisp --out small.wisp --tables f16 --json
json 'j["bytes"] < 0.85 * j["bytes_before"] and 0 < j["largest_rounding"] < 0.002'
expect 2 "small.wisp: its tables are f16 already" "$wisp" compress small.wisp --out smaller.wisp
expect 0 "" "$wisp" inspect small.wisp
grep -qE "item_embedding +480 x [0-9]+ +f16" out && grep -qE "block0.qkv.weight .* f32" out ||
  fail "inspect shows no element types: $(cat out)"
expect 0 "" "$wisp" inspect o.wisp --verify --json
cp out whole.json
expect 0 "" "$wisp" inspect small.wisp --verify --json
changed='("file", "bytes", "hash", "description", "tensors")'
json '(lambda w: all(j[k] == w[k] for k in w if k not in '"$changed"'))(json.load(open("whole.json")))'
json 'j["provenance"][-1]["epsilon"] is not None and "f16 by wisp compress" in j["description"]'
json '(lambda t: t["type"] == "f16" and t["bytes"] == 2 * t["rows"] * t["columns"])(j["tensors"][0])'
json 'j["tensors"][2]["type"] == "f32" and sum(t["bytes"] for t in j["tensors"]) < j["bytes"]'
# Lists and figures of a model whose noise differs in each run would depend on near ties.
expect 0 "" "$wisp" compress base.wisp --out small-base.wisp
alike='len(j) == 3 and all(a["name"] == b["name"] and abs(a["score"] - b["score"]) < 0.05 for a, b in zip(j, w))'
for backend in simd int8; do
  ask=(--data log.db --user u00003 --count 3 --backend $backend --json)
  expect 0 "" "$wisp" recommend --model base.wisp "${ask[@]}"
  cp out whole.json
  expect 0 "" "$wisp" recommend --model small-base.wisp "${ask[@]}"
  json "(lambda w: $alike)(json.load(open('whole.json')))"
  expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --backend $backend --json
  cp out whole.json
  expect 0 "" "$wisp" evaluate --model small-base.wisp --data log.db --backend $backend --json
  json 'abs(j["ndcg@10"] - json.load(open("whole.json"))["ndcg@10"]) < 0.02'
done
expect 0 "" "$wisp" inspect small.wisp --memory --json
cp out small.json
expect 0 "" "$wisp" inspect o.wisp --memory --json
json 'json.load(open("small.json"))["inference"]["packed_weights"] < j["inference"]["packed_weights"]'
expect 0 "" "$wisp" train --recipe "$public_recipe" --model small.wisp --data log.db --epochs 1 --batch 20 \
  --out from-small.wisp
expect 0 "" "$lab" audit step --model small.wisp --recipe "$recipe" --method phantom --noise-multiplier 1 \
  --observations 500 --reproducible-noise 3 --confidence 0.999
expect 0 "" "$wisp" export small.wisp --out small.safetensors
expect 0 "" "$lab" bench --what score --model small.wisp --repeats 1 --json

# These floats in the order of the products give the same scores, without a copy of them.
expect 0 "" "$wisp" compress o.wisp --panels --out panels.wisp --json
json 'j["weights"] == "f32 panels" and j["largest_rounding"] == 0'
expect 2 "panels.wisp: its weights are f32 panels already" "$wisp" compress panels.wisp --panels --out again.wisp
expect 2 "small.wisp: its tables are f16; allowed for --panels is a model that is f32" "$wisp" compress small.wisp \
  --panels --out again.wisp
expect 2 "two of --int8, --int4 and --panels are given" "$wisp" compress o.wisp --panels --int8 --out again.wisp
expect 0 "" "$wisp" evaluate --model o.wisp --data log.db --json
grep -v '"model"' out >whole.json
expect 0 "" "$wisp" evaluate --model panels.wisp --data log.db --json
grep -v '"model"' out | cmp - whole.json || fail "panels change what an evaluation says"
expect 0 "" "$wisp" inspect panels.wisp --memory --json
cp out panels.json
expect 0 "" "$wisp" inspect o.wisp --memory --json
json 'json.load(open("panels.json"))["inference"]["packed_weights"] < j["inference"]["packed_weights"] / 4'
expect 0 "" "$wisp" compress panels.wisp --int8 --out from-panels.wisp
expect 0 "" "$wisp" compress o.wisp --int8 --out from-floats.wisp
for model in from-panels from-floats; do
  "$wisp" export $model.wisp --out $model.safetensors >out 2>&1 || fail "$(cat out)"
done
cmp from-panels.safetensors from-floats.safetensors || fail "panels are rounded to other integers than their floats"

# Blocks of small integers: even fewer bytes, and similar scores.
for bits in int8 int4; do
  expect 0 "" "$wisp" compress o.wisp --$bits --out $bits.wisp --json
  json 'j["weights"] == "'$bits'" and j["bytes"] < 0.6 * j["bytes_before"] and 0 < j["largest_rounding"] < 0.2'
  expect 2 "$bits.wisp: its weights are $bits already" "$wisp" compress $bits.wisp --$bits --out smaller.wisp
  expect 2 "$bits.wisp: its tables are $bits already" "$wisp" compress $bits.wisp --out smaller.wisp
  expect 0 "" "$wisp" inspect $bits.wisp --verify --json
  json 'j["provenance"][-1]["epsilon"] is not None and "integers" in j["description"]'
  json '{t["name"]: t["type"] for t in j["tensors"]}["block0.qkv.weight"] == "'$bits'"'
  expect 0 "" "$wisp" compress base.wisp --$bits --out $bits-base.wisp
  for backend in simd int8; do
    expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --backend $backend --json
    cp out whole.json
    expect 0 "" "$wisp" evaluate --model $bits-base.wisp --data log.db --backend $backend --json
    json 'abs(j["ndcg@10"] - json.load(open("whole.json"))["ndcg@10"]) < 0.02'
  done
  expect 0 "" "$wisp" inspect $bits.wisp --memory --json
  json 'j["inference"]["packed_weights"] < 4096'
  expect 0 "" "$wisp" train --recipe "$public_recipe" --model $bits.wisp --data log.db --epochs 1 --batch 20 --out from.wisp
  expect 0 "" "$wisp" export $bits.wisp --out blocks.safetensors
done
expect 0 "warning: int8.wisp has weights that were rounded to int8 before" "$wisp" compress int8.wisp --int4 --out twice.wisp
grep -q "twice.wisp" out || fail "what was rounded twice was not written: $(cat out)"
expect 0 "" "$wisp" compress o.wisp --int4 --out smaller.wisp
grep -q "rounded to int8 before" err && fail "one rounding is taken for two"
rm smaller.wisp
expect 2 "one of them" "$wisp" compress o.wisp --int8 --int4 --out smaller.wisp

# A classifier.
texts
expect 0 "" "${classify[@]}" --mode paper --epochs 30 --reproducible-noise 3
expect 0 "" "$wisp" compress texts.wisp --out small-texts.wisp
ask=(--text "the film is GREAT" --text "the film is dull" --json)
expect 0 "" "$wisp" classify predict --model small-texts.wisp "${ask[@]}"
json 'j[0]["class"] == "good" and j[1]["class"] == "bad"'
expect 0 "" "$wisp" classify evaluate --model small-texts.wisp --data train.txt --json

# In C.
expect 0 "epsilon so far" "$build/wisp_example" small-base.wisp log.db s.db s.wisp u00003 8
grep -q "after" out || fail "the C example printed $(head -c 300 out)"
c_program lent_threads "lent threads"
expect 0 "" ./lent_threads small-base.wisp log.db lent-small.db lent.wisp
mv out lent.txt
expect 0 "" "$wisp" inspect small-base.wisp --memory --json
json 'str(j["inference"]["total"]) == open("lent.txt").read().split()[0]'

finish
