#!/usr/bin/env bash
# The program on models whose blocks have gates, RMS norm, rotary positions and fewer heads of keys: from a recipe to a
# resumed private run, an adapter, a safetensors file and scores.
#   tests/cli_blocks.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# Llama's architecture and eSASRec's block, both as recipes for the data of the other tests.
with() {  # OUT ARCHITECTURE: the private recipe with another architecture
  python3 - "$recipe" "$1" "$2" <<'PY'
import json, sys
recipe = json.load(open(sys.argv[1]))
recipe["architecture"] = {"max_length": 20, "width": 16, "num_heads": 4, "num_blocks": 2, "inner_width": 12,
                          **json.loads(sys.argv[3])}
recipe["data"]["catalogue"] = "public"
json.dump(recipe, open(sys.argv[2], "w"))
PY
}
with llama.json '{"num_kv_heads": 2, "rotary_width": 4, "norm_kind": "rms", "activation": "silu", "gated": true,
                  "biases": false, "position_table": "none"}'
with ligr.json '{"activation": "silu", "gated": true, "residual": "gated"}'
for kind in llama ligr; do
  short=(--recipe "$kind.json" --data log.db --num-records-public 60 --batch 20 --delta 0.001 --noise-multiplier 4)
  expect 0 "" "$wisp" train "${short[@]}" --epochs 2 --out "$kind.wisp" --ledger "$kind.db"
  expect 0 "" "$wisp" inspect --model "$kind.wisp" --verify
  expect 0 "" "$wisp" recommend --model "$kind.wisp" --history tea-mint,bagel-lentil --count 5
  expect 0 "" "$wisp" privacy --ledger "$kind.db"
done
shows() {  # MODEL TEXT
  expect 0 "" "$wisp" inspect --model "$1" --json
  grep -qF "$2" out || fail "inspect of $1 does not show $2"
}
shows llama.wisp '"rotary_width": 4'
shows llama.wisp '"norm_kind": "rms"'
shows ligr.wisp '"residual": "gated"'

# Blocks that differ in each newer switch, in an order in which the first has more than the second.
with mixed.json '{"temperature": 0.2, "blocks": [
  {"rotary_width": 4, "rotary_interleaved": true, "norm_kind": "rms", "gated": true, "biases": false, "num_kv_heads": 1,
   "residual": "gated"}, {}]}'
expect 0 "" "$wisp" new --recipe mixed.json --data log.db --catalogue public --out mixed.wisp

# Exported to other programs and converted back, the scores are the same.
for kind in llama ligr mixed; do
  expect 0 "" "$wisp" export --model "$kind.wisp" --out "$kind.safetensors"
  expect 0 "" "$wisp" convert --in "$kind.safetensors" --out back.wisp --dataset "cafe guests"
  expect 0 "" "$wisp" recommend --model "$kind.wisp" --history tea-mint,bagel-lentil --count 5 --json
  mv out before.json
  expect 0 "" "$wisp" recommend --model back.wisp --history tea-mint,bagel-lentil --count 5 --json
  cmp -s before.json out || fail "$kind scores otherwise after safetensors"
done

# Keys at their defaults beside a model without such a key, and keys that nothing reads.
echo '{"architecture": {"gated": false, "temperature": 0, "biases": true}}' >defaults.json
expect 0 "" "$wisp" train --recipe "$public_recipe" --model base.wisp --data log.db --epochs 1 --batch 20 --out o.wisp
python3 - "$public_recipe" <<'PY'
import json, sys
recipe = json.load(open(sys.argv[1]))
recipe["architecture"].update(gated=False, temperature=0, biases=True, norm_kind="rms")
json.dump(recipe, open("defaults.json", "w"))
PY
expect 0 'norm_kind as by default for "rms"' \
  "$wisp" train --recipe defaults.json --model base.wisp --data log.db --epochs 1 --batch 20 --out o.wisp
echo '{"architecture": {"rotary_base": 500}}' >base.json
expect 3 "rotary_base and rotary_interleaved need a rotary_width" \
  "$wisp" train --recipe base.json --data log.db --out o.wisp
finish
