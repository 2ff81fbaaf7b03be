#!/usr/bin/env bash
# Makes the model files of one format, with what the program of that format says of them. To be run once, when a format has come to be:
# what is here is what somebody's device holds.
#   tests/golden/models/make.sh FORMAT BUILD OUT     FORMAT: 3 (blocks all alike), 4 (blocks one by one) or 5 (RMS norm, gates, rotary positions)
set -euo pipefail
format=$1
wisp=$(cd "$2" && pwd)/wisp
mkdir -p "$3"
cd "$3"

items() { for user in 0 1 2 3; do for i in 0 1 2 3 4 5; do echo "u$user i$(((3 * user + i) % 7))"; done; done; }
items >events.txt
recipe() { # NAME ARCHITECTURE: random weights that say something
  cat >"$1.json" <<JSON
{"architecture": {"max_length": 6, "width": 8, "num_heads": 2, "inner_width": 12, $2},
 "initialisation": {"table_deviation": 0.5, "position_deviation": 0.3, "matrix_gain": 1.5}, "data": {"catalogue": "public"}}
JSON
}
new() { # NAME ARCHITECTURE
  recipe "$1" "$2"
  "$wisp" new --recipe "$1.json" --data events.txt --out "v$format-$1.wisp"
}
case $format in
  3)
    new alike '"num_blocks": 2, "output_table": "untied", "positions": "end"'
    new slope '"num_blocks": 1, "norm": "post", "activation": "relu", "attention_slope": 0.5'
    "$wisp" compress "v3-alike.wisp" --tables f16 --out v3-halves.wisp
    ;;
  4)
    new mixed '"blocks": [{"num_heads": 3, "head_width": 2, "norm": "post", "activation": "relu"}, {"inner_width": 20, "attention_slope": 0.5}]'
    ;;
  5)
    new gates '"num_blocks": 1, "norm": "post", "residual": "gated", "activation": "gelu_tanh"'
    new rotary '"num_blocks": 2, "num_kv_heads": 1, "rotary_width": 4, "rotary_base": 100, "norm_kind": "rms", "gated": true, "activation": "silu", "biases": false, "position_table": "none"'
    ;;
esac
for model in v"$format"-*.wisp; do
  "$wisp" recommend --model "$model" --history i1,i2,i3 --count 7 --allow-seen --json >"${model%.wisp}.json"
done

# A classifier.
printf 'sentence\tlabel\n' >texts.tsv
for i in $(seq 40); do printf 'a dull film\tnegative\na great film\tpositive\n'; done >>texts.tsv
recipe text '"num_blocks": 1, "attend": "all"'
python3 - <<'PY'
import json
recipe = json.load(open("text.json"))
recipe.update(training={"epochs": 2, "expected_batch": 20, "num_records_public": 80}, data={"catalogue": "public", "classes": ["negative", "positive"]},
              dp_fp={"mode": "clipped", "micro_batches": 4, "encoder": {"noise_multiplier": 1}}, privacy={"delta": 0.001, "steps_per_charge": 2})
json.dump(recipe, open("text.json", "w"))
PY
"$wisp" classify train --recipe text.json --data texts.tsv --out "v$format-texts.wisp" --ledger texts.ledger --noise-multiplier 1 --threads 1
"$wisp" classify predict --model "v$format-texts.wisp" --text "a great film" --text "a dull film" --json >"v$format-texts.json"
rm -f events.txt texts.tsv texts.ledger* alike.json slope.json mixed.json gates.json rotary.json text.json
