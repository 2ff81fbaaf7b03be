#!/usr/bin/env bash
# Folders of Hugging Face: converted with a report, embedded, exported, and converted again to the same file. Refusals
# are one sentence and leave nothing behind. hugging_face_test checks the models' results.
#   tests/convert_folders.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
golden=$root/tests/golden/hugging_face
# config FOLDER CODE runs Python on the object `c` of its config.json.
config() { python3 -c "import json,sys; p=sys.argv[1]+'/config.json'; c=json.load(open(p)); exec(sys.argv[2]); json.dump(c, open(p,'w'))" "$1" "$2" || fail "the change $2 does not run"; }
# fresh FAMILY copies it to ./m.
fresh() { rm -rf m && cp -r "$golden/$1" m; }

# A sentence encoder: its report, its embedding, its notes.
expect 0 "sentence-transformers cuts texts of this folder after 16 tokens; --max-length 16" "$wisp" convert "$golden/sentence/" --out s.wisp --report r.json --dataset "golden"
grep -q "BertModel, 60 tokens, .* data set 'golden'" out || fail "the summary is $(cat out)"
grep -q "left out: 'pooler.dense.bias' and 1 more: the pooling of this model does not pass it" out || fail "what is left out is not said: $(cat out)"
cp r.json out
json 'len(j["tensors"]) == 37 and len(j["left_out"]) == 2 and j["model_class"] == "BertModel" and j["family"] == "bert"'
json 'all(set(t) == {"file", "name", "shape", "type", "parameter", "parameter_shape", "done", "xxh3"} and len(t["xxh3"]) == 16 for t in j["tensors"])'
json '[t["done"] for t in j["tensors"] if t["parameter"] == "block1.qkv.weight"] == ["stacked, %d of 3" % i for i in (1, 2, 3)]'
json 'j["architecture"]["pooling"] == "mean" and j["architecture"]["token_separator"] == 3 and j["notes"]'
expect 0 "" "$wisp" inspect s.wisp --verify --json
json 'j["provenance"][0]["description"].startswith("imported from sentence, not trained by wisp") and j["provenance"][0]["dataset"] == "golden"'
expect 0 "" "$wisp" embed s.wisp --ids 2,9,3 --ids 2,8,3,7,3 --json
json 'j["width"] == 24 and len(j["embeddings"]) == 2 and abs(sum(x * x for x in j["embeddings"][0]) - 1) < 1e-5'
expect 0 "" "$wisp" embed s.wisp --ids 2,9,3
[ "$(wc -w <out)" -eq 24 ] || fail "embed printed $(wc -w <out) numbers"
expect 2 "'x' is no token; allowed are whole numbers from 0" "$wisp" embed s.wisp --ids 2,x
expect 2 "'' is no token" "$wisp" embed s.wisp --ids 2,,3
expect 2 "names token 60; the model has tokens 0 to 59" "$wisp" embed s.wisp --ids 60

# The output names the tokens that end texts and the file that says so; the model keeps them.
fresh bert && rm m/*token*.json && cp "$golden/bert_classes/vocab.txt" m/ && echo '{"eos_token_id": [3, 7], "temperature": 0.5}' >m/generation_config.json
expect 0 "m/generation_config.json: temperature '0.5': how texts are drawn is not taken over" "$wisp" convert m --out e.wisp
grep -q "^token: end is 7, .* (generation_config.json)$" out || fail "the ends are not printed: $(cat out)"
expect 0 "" "$wisp" convert m --out e.wisp --json
json '[t["id"] for t in j["special_tokens"] if t["meaning"] == "end"] == [3, 7] and j["notes"]'
expect 0 "" "$wisp" inspect e.wisp --json
json 'j["tokenizer"]["eos"]["id"] == 3 and [t["id"] for t in j["tokenizer"]["other_ends"]] == [7]'

# Exported and converted again, the second model file equals the first, except for its origin.
for pair in sentence:bert bert:bert bert_classes:bert roberta_classes:roberta distilbert:distilbert distilbert_classes:distilbert gpt2:gpt2 \
  llama:llama mistral_window:llama qwen2:qwen2 qwen2_window:qwen2; do
  family=${pair#*:}
  rm -rf there && mkdir there
  expect 0 "" "$wisp" convert "$golden/${pair%:*}" --out a.wisp --no-tokenizer --json
  expect 0 "" "$wisp" export a.wisp --family "$family" --out there/m --json
  json "j['family'] == '$family' and j['tensors'] > 10"
  cp "$golden/${pair%:*}/"*.txt "$golden/${pair%:*}/"*token*.json there/m/ 2>/dev/null
  expect 0 "" "$wisp" convert there/m --out b.wisp --no-tokenizer
  "$wisp" inspect a.wisp --json >a.json && "$wisp" inspect b.wisp --json >b.json
  python3 -c "import json; a, b = json.load(open('a.json')), json.load(open('b.json')); assert all(a[k] == b[k] for k in ('architecture', 'tensors'))" ||
    fail "$pair came back as another model"
  expect 0 "" "$wisp" export a.wisp --family "$family" --out alone.safetensors
  cmp -s alone.safetensors there/m/model.safetensors || fail "$pair: tensors alone differ from those of the folder"
done
expect 2 "--family is 'mpnet', allowed are bert, roberta, distilbert, gpt2, llama, qwen2" "$wisp" export a.wisp --family mpnet --out x
expect 3 "models have no such head" "$wisp" export s.wisp --family gpt2 --out x
expect 3 "not one of GPT2LMHeadModel, whose models differ in embedding_scale; wisp inspect" "$wisp" export "$root/models/cafe.wisp" --family gpt2 --out x
expect 3 "whose models differ in .*position_table, .*feed_forward of block 0; wisp inspect" "$wisp" export "$root/models/cafe.wisp" --family llama --out x
[ ! -e x ] || fail "a refused export made a folder"
# If one file of an existing folder cannot be replaced, none is.
mkdir -p kept/config.json && echo 'length: {old' >kept/model.safetensors
expect 2 "kept/config.json" "$wisp" export s.wisp --family bert --out kept
[ "$(cat kept/model.safetensors)" = "length: {old" ] && [ "$(ls kept | wc -l)" = 2 ] || fail "half a folder was replaced: $(ls kept)"

mkdir mistyped && echo "Dear Bob," >mistyped/config.json
expect 2 "mistyped/config.json, a file that is there and is not JSON" "$wisp" export s.wisp --family bert --out mistyped
[ "$(cat mistyped/config.json)" = "Dear Bob," ] && [ "$(ls mistyped | wc -l)" = 1 ] || fail "a letter was replaced: $(ls mistyped)"

# A refusal is a sentence and leaves no model. Masks of other types are ignored.
cp s.wisp kept.wisp
fresh gpt2
python3 - <<'END'
import json, struct
raw = open("m/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h, d = json.loads(raw[8:8 + n]), raw[8 + n:]
for name, dtype, size in (("transformer.h.0.attn.bias", "BOOL", 4), ("transformer.h.1.attn.bias", "U8", 4)):
    h[name] = {"dtype": dtype, "shape": [1, 1, 2, 2], "data_offsets": [len(d), len(d) + size]}
    d += bytes([1, 0, 1, 1])
text = json.dumps(h).encode()
open("m/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + d)
END
expect 0 "" "$wisp" convert m --out g.wisp
grep -q "left out: 'transformer.h.0.attn.bias' and 1 more: the causal mask" out || fail "masks are not reported: $(cat out)"
config m 'c["model_type"] = "gpt_neo"'
expect 3 "m/config.json: model_type is 'gpt_neo', supported are bert, .*, gpt2, llama, mistral, qwen2" "$wisp" convert m --out kept.wisp
fresh llama && config m 'c["rope_scaling"] = {"rope_type": "llama3"}'
expect 3 "rope_type is 'llama3', supported is default" "$wisp" convert m --out kept.wisp
fresh mistral && config m 'c["sliding_window"] = 8'
expect 0 "" "$wisp" convert m --out w.wisp
expect 0 "" "$wisp" convert m --out w.wisp --max-length 8
expect 2 "--max-length is 21, the model has 20 positions" "$wisp" convert m --out kept.wisp --max-length 21
fresh bert && printf '{"model_type": "be\033[2Jrt"}' >m/config.json
expect 3 "m/config.json: it is not JSON" "$wisp" convert m --out kept.wisp
grep -q $'\033' err && fail "an escape sequence reached the terminal"
fresh bert && head -c 20000 "$golden/bert/model.safetensors" >m/model.safetensors
expect 3 "m/model.safetensors: it is cut short, or damaged" "$wisp" convert m --out kept.wisp
# For weights that torch saved, the error says what to do, and the script for it says what it lacks if torch is missing.
script=$root/tools/exchange/to_safetensors.py
fresh bert && mv m/model.safetensors m/pytorch_model.bin
expect 3 "supported is safetensors: tools/exchange/to_safetensors.py" "$wisp" convert m --out kept.wisp
expect 1 "nothing: there is no such file or folder" python3 "$script" nothing
if python3 -c "import torch" 2>/dev/null; then
  expect 1 "torch cannot read it" python3 "$script" m
  python3 -c "import torch; torch.save({'model': {'a.b': torch.ones(2, 3).T}}, 'w.pt')"
  expect 0 "" python3 "$script" w.pt
  grep -q "w.safetensors: 1 tensors of 1 file" out || fail "the script says $(cat out)"
  expect 1 "w.safetensors: it is there already" python3 "$script" w.pt
else
  expect 1 "the Python package torch is missing" python3 "$script" m
fi
[ ! -e m/model.safetensors ] || fail "the script wrote weights that it could not read"
mkdir empty
expect 3 "empty: there is no config.json; a folder has config.json and model.safetensors" "$wisp" convert empty --out kept.wisp
fresh bert
expect 2 "--item-keys is of safetensors files of our recommender, m is a folder" "$wisp" convert m --out kept.wisp --item-keys keys.txt
expect 2 "--pooling" "$wisp" convert m --out kept.wisp --pooling max
expect 2 "--report" "$wisp" convert m --out kept.wisp --report kept.wisp
expect 2 "--report, --max-length and --pooling are for folders of Hugging Face" "$wisp" convert m/model.safetensors --out kept.wisp --max-length 3
expect 3 "nowhere" "$wisp" convert m --out nowhere/o.wisp
expect 3 "is a recommender or a decoder, an encoder of texts or a classifier is needed" "$wisp" embed w.wisp --ids 1
cmp -s s.wisp kept.wisp || fail "a refused folder changed the model that was there"
ls | grep -q tmp && fail "a temporary file was left: $(ls)"
finish
