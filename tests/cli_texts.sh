#!/usr/bin/env bash
# The program's texts: a folder of Hugging Face becomes an encoder that embeds, every method makes a classifier of it,
# and a decoder continues a prompt. Refusals leave nothing behind and charge nothing.
#   tests/cli_texts.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
golden=$root/tests/golden/hugging_face

# Random weights of a tiny BERT, whose vocabulary is word5 to word59; and a task that its words decide.
cp -r "$golden/bert" encoder && cp "$golden/bert_classes/vocab.txt" encoder/ && rm -f encoder/tokenizer.json encoder/special_tokens_map.json
expect 0 "" "$wisp" convert encoder --out e.wisp --pooling mean --dataset "public texts"
python3 - >train.tsv <<'PY'
import random
random.seed(5)
words = [["word7", "word8"], ["word30", "word31"]]
print("sentence\tlabel")
for i in range(400):
    label = random.randrange(2)
    print("word5 %s word6 word9\t%d" % (random.choice(words[label]), label))
PY
cat >r.json <<'JSON'
{"name": "tiny",
 "training": {"method": "phantom", "epochs": 8, "expected_batch": 100, "num_records_public": 400,
  "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
 "privacy": {"noise_multiplier": 0.6, "delta": 0.0005, "steps_per_charge": 50, "unit": "interaction"},
 "data": {"classes": ["bad", "good"]}}
JSON
classify=("$wisp" classify train --recipe r.json --base e.wisp --data train.tsv --threads 1)
again=(--reproducible-noise 7)  # so that it learns equally well each time

# Texts and ids give the same result.
expect 0 "" "$wisp" embed e.wisp --text "Word7 word8" --json
cp out texts.json
expect 0 "" "$wisp" embed e.wisp --ids 2,7,8,3 --json
cmp -s out texts.json || fail "a text and its ids have other embeddings"
expect 2 "exactly one of --text, --input and --ids is needed" "$wisp" embed e.wisp
printf 'Word7 word8\n\nword9 word9 word9\n' >lines.txt
printf 'good\n\377\n' >bad-line.txt
printf '\n \n' >blank.txt
expect 2 "blank.txt: it has no text" "$wisp" embed e.wisp --input blank.txt
expect 3 "bad-line.txt, line 2: .*byte 0 of the text (value 255) is not UTF-8" "$wisp" embed e.wisp --input bad-line.txt
expect 0 "" "$wisp" embed e.wisp --input lines.txt --json
json 'j["embeddings"][0] == __import__("json").load(open("texts.json"))["embeddings"][0] and len(j["embeddings"]) == 2'
json 'j["lines"] == [1, 3]'
expect 0 "" "$wisp" embed e.wisp --text "Word7 word8 word9 word9" --max-length 4 --json
cmp -s out texts.json || fail "a text that is cut is not the one that is left of it"
expect 2 "--max-length is 2, allowed are 3 to 20" "$wisp" embed e.wisp --text a --max-length 2
expect 2 "excludes" "$wisp" embed e.wisp --ids 2,7,3 --max-length 5
expect 3 "UTF-8" "$wisp" embed e.wisp --text $'a\xff'
expect 2 "see wisp privacy decoding --help" "$wisp" privacy decoding --draws many
expect 0 "" "$wisp" convert encoder --out bare.wisp --no-tokenizer
expect 3 "brings no tokenizer" "$wisp" embed bare.wisp --text a
expect 3 "is an encoder of texts, a recommender or a decoder is needed" "$wisp" recommend --model e.wisp --history a

# Every method trains exactly the requested part.
accuracy() {  # MODEL LEAST OPTIONS...
  expect 0 "" "$wisp" classify evaluate --model "$1" --data train.tsv --json "${@:3}"
  json "j['accuracy'] >= $2"
}
for how in "phantom all" "phantom blocks" "phantom head" "rgp all" "ordinary blocks"; do
  read -r method trains <<<"$how"
  ledger=(--ledger "$method-$trains.db" "${again[@]}")
  [ "$method" = ordinary ] && ledger=()
  expect 0 "" "${classify[@]}" --method "$method" --trains "$trains" --out c.wisp "${ledger[@]}" --json
  json "j['method'] == '$method' and 'mode' not in j"
  least=0.9
  [ "$trains" = head ] && least=0.5  # means of random vectors do not tell the words
  accuracy c.wisp "$least"
  [ "$trains" = all ] || python3 - "$wisp" <<'PY' || fail "$how trained a table"
import json, subprocess, sys
tables = []
for model in ("e.wisp", "c.wisp"):
    report = json.loads(subprocess.run([sys.argv[1], "inspect", model, "--json"], capture_output=True, check=True).stdout)
    tables.append({t["name"]: t["hash"] for t in report["tensors"] if t["name"].endswith("_embedding")})
assert len(tables[0]) == 3 and tables[0] == tables[1], tables
PY
done
expect 3 "bad-line.txt, line 2: .*byte 0 of the text (value 255) is not UTF-8" \
  "$wisp" classify predict --model c.wisp --input bad-line.txt
expect 0 "" "$wisp" classify predict --model c.wisp --input lines.txt --json
json '[r["line"] for r in j] == [1, 3]'
expect 0 "" "$wisp" classify predict --model c.wisp --text "word5 word31 word6" --json
json 'j[0]["class"] == "good" and j[0]["probability"] > 0.5'
cp out uncut.json
expect 0 "" "$wisp" classify predict --model c.wisp --text "word5 word31 word6 word9" --max-length 5 --json
json 'j[0]["probability"] == __import__("json").load(open("uncut.json"))[0]["probability"]'
expect 2 "--max-length is 99, allowed are 3 to 20" "$wisp" classify predict --model c.wisp --text a --max-length 99

expect 0 "" "${classify[@]}" --trains blocks --out p.wisp --ledger p.db --json
json 'j["epsilon"] > 0 and j["noise_multiplier"] == 0.6'
expect 0 "" "$wisp" inspect p.wisp --json
json 'j["provenance"][-1]["epsilon"] > 0'
json 'j["tokenizer"]["tokens"] == 60 and j["tokenizer"]["sep"] == {"id": 3, "text": "[SEP]"} and j["tokenizer"]["bytes"] > 60'
expect 0 "" "$wisp" inspect bare.wisp --json
json '"tokenizer" not in j'

# An adapter with a head of its own for the encoder, and both merged.
expect 0 "" "${classify[@]}" --lora 2 --epochs 20 --learning-rate 0.03 "${again[@]}" --out a.wisp --ledger a.db
tail -n 1 out | grep -q "wisp classify predict .*--model e.wisp --adapter a.wisp; wisp merge" || fail "how the adapter is used is not said: $(cat out)"
expect 0 "" "$wisp" embed e.wisp --adapter a.wisp --ids 2,7,8,3 --json
cmp -s out texts.json && fail "an adapter changed no vector"
[ "$(stat -c %s a.wisp)" -lt "$(stat -c %s e.wisp)" ] || fail "the adapter is as large as its base"
accuracy e.wisp 0.9 --adapter a.wisp
expect 0 "" "$wisp" merge e.wisp --adapter a.wisp --out merged.wisp
# With the encoder stored in blocks of integers, and with recomputed blocks of the model.
expect 0 "" "$wisp" compress e.wisp --int8 --out e8.wisp
expect 0 "" "${classify[@]/e.wisp/e8.wisp}" --lora 2 --epochs 20 --learning-rate 0.03 "${again[@]}" --out a8.wisp --ledger a8.db
accuracy e8.wisp 0.9 --adapter a8.wisp
expect 3 "a8.wisp: it belongs to another base" "$wisp" classify evaluate --model e.wisp --adapter a8.wisp --data train.tsv
expect 0 "" "${classify[@]/e.wisp/e8.wisp}" --lora 2 --epochs 20 --learning-rate 0.03 "${again[@]}" --recompute-blocks --out r8.wisp --ledger r8.db
hashes() { "$wisp" inspect "$1" --json | python3 -c 'import json, sys; print({t["name"]: t["hash"] for t in json.load(sys.stdin)["tensors"]})'; }
[ "$(hashes a8.wisp)" = "$(hashes r8.wisp)" ] || fail "blocks that are computed again changed what was trained"
accuracy merged.wisp 0.9
# It resumes where it stopped, without steps unchanged; the base's weights do not change.
cp a.wisp first.wisp
expect 0 "" "${classify[@]}" --adapter a.wisp --other-data --epochs 5 --learning-rate 1e-12 "${again[@]}" --out b.wisp --ledger a.db
accuracy e.wisp 0.9 --adapter b.wisp
expect 0 "" "${classify[@]}" --adapter a.wisp --other-data --epochs 5 "${again[@]}" --out b.wisp --ledger a.db
cmp -s a.wisp b.wisp && fail "an adapter that was trained further is as it was"
cmp -s a.wisp first.wisp || fail "an adapter changed that another one was made of"
expect 0 "" "$wisp" inspect b.wisp --json
json 'len(j["provenance"]) == 3 and all(p["epsilon"] is None for p in j["provenance"][1:])'
expect 2 "without --base" "$wisp" classify train --recipe r.json --adapter a.wisp --data train.tsv --out refused.wisp --ledger refused.db
expect 2 "leave one of the two out" "${classify[@]}" --adapter a.wisp --lora 2 --out refused.wisp --ledger refused.db
expect 4 "a.wisp: it was trained on 'train.tsv' before, without a guarantee" "${classify[@]}" --adapter a.wisp --out refused.wisp --ledger refused.db
expect 3 "adapter" "$wisp" classify evaluate --model a.wisp --data train.tsv
expect 3 "is no classifier" "$wisp" classify evaluate --model e.wisp --data train.tsv
# The sound modes of DP-FP on the same encoder.
expect 0 "" "${classify[@]}" --method dp-fp --epochs 2 --out d.wisp --ledger d.db --json
json 'j["method"] == "dp-fp" and j["mode"] == "aggregate"'

# The planned memory: an adapter takes less than everything. A checkpoint for texts cut to another length is not
# resumed.
expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json --threads 1 --json
cp out whole.json
sed 's/"training"/"adapter": {"rank": 2}, "training"/' r.json >adapter.json
expect 0 "" "$wisp" inspect e.wisp --memory --recipe adapter.json --threads 1 --json
json 'j["training"]["total"] < __import__("json").load(open("whole.json"))["training"]["total"] and j["training"]["mode"] == "phantom"'
cp out adapter.json.out
expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json --lora 2 --threads 1 --json
json '{**j["training"], "recipe": "adapter.json"} == __import__("json").load(open("adapter.json.out"))["training"]'
expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json --lora 2 --recompute-blocks --threads 1 --json
json 'j["training"]["activations"] < __import__("json").load(open("adapter.json.out"))["training"]["activations"]'
expect 2 "beside a model an adapter trains, no head alone" "$wisp" inspect e.wisp --memory --recipe r.json --lora 2 --trains head
expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json --adapter a.wisp --threads 1 --json
json '{**j["training"], "recipe": "adapter.json"} == __import__("json").load(open("adapter.json.out"))["training"]'
json '"records_at_most" not in j["training"]'
expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json
grep -q "exact, however many records a step draws" out || fail "a plan of phantom clipping depends on the draw: $(tail -n 2 out)"
for less in "--trains head" "--max-length 5"; do
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" inspect e.wisp --memory --recipe r.json $less --threads 1 --json
  json 'j["training"]["total"] < __import__("json").load(open("whole.json"))["training"]["total"]'
  # shellcheck disable=SC2086
  expect 2 "give --recipe" "$wisp" inspect e.wisp --memory $less
done
planned=("$wisp" inspect e.wisp --memory --recipe r.json)
expect 2 "--trains is 'tables', allowed are all, blocks and head" "${planned[@]}" --trains tables
expect 2 "--max-length is 2, allowed are 3 to 20" "${planned[@]}" --max-length 2
expect 2 "leave one of the two out" "${planned[@]}" --adapter a.wisp --lora 2
expect 3 "trained by DP-FP" "$wisp" classify train --recipe r.json --base d.wisp --data train.tsv --lora 2 --other-data --out refused.wisp \
  --ledger refused.db

# These are refused before anything is charged.
for length in 0 1 2 99; do
  expect 2 "--max-length is $length, allowed are 3 to 20" "${classify[@]}" --max-length $length --out refused.wisp --ledger refused.db
  expect 2 "--max-length is $length, allowed are 3 to 20" "$wisp" classify evaluate --model c.wisp --data train.tsv --max-length $length
done
for refused in "2:--method is 'adam'.*allowed are dp-fp, phantom, rgp and ordinary:--method adam" \
  "2:--trains is 'tables':--trains tables" "2:--trains is .head., and dp-fp says by --mode what trains:--method dp-fp --trains head" \
  "2:an adapter trains, no head alone:--lora 2 --trains head" "2:--mode is of dp-fp:--mode clipped" \
  "4:does not go with the method ordinary:--method ordinary" "3:adapter.rank is 900:--lora 900"; do
  IFS=: read -r code sentence options <<<"$refused"
  # shellcheck disable=SC2086
  expect "$code" "$sentence" "${classify[@]}" $options --out refused.wisp --ledger refused.db
done
expect 2 "start from one (--base)" "$wisp" classify train --recipe r.json --lora 2 --data train.tsv --vocabulary encoder/vocab.txt \
  --out refused.wisp --ledger refused.db
[ ! -e refused.wisp ] && [ ! -e refused.db ] || fail "a refusal left a file behind"

# A decoder: equal seeds give equal texts; a prompt that does not fit is refused.
cp -r "$golden/gpt2" decoder
expect 0 "" "$wisp" convert decoder --out g.wisp --dataset "public texts"
expect 2 "brings no tokenizer" "$wisp" generate g.wisp --prompt a
python3 "$root/tests/small_decoder.py" decoder "$root/tests/golden/tokenizers/gpt2.json"
expect 0 "" "$wisp" convert decoder --out g.wisp --dataset "public texts"
generate=("$wisp" generate g.wisp --prompt "Once" --max-tokens 8 --json)
expect 0 "" "${generate[@]}" --seed 3
json 'j["ended"] in ("max_new_tokens", "end", "context") and j["prompt_tokens"] >= 1 and len(j["tokens"]) <= 8'
cp out first.json
expect 0 "" "${generate[@]}" --seed 3
python3 -c 'import json; a, b = json.load(open("out")), json.load(open("first.json")); assert a["text"] == b["text"]' || fail "the same seed gave another text"
# Several prompts: each gets the text that it gets alone with its own seed.
printf 'Once\r\n\nthe tea\n  \nand so' >prompts.txt
together=("$wisp" generate g.wisp --prompts prompts.txt --max-tokens 8 --seed 3)
expect 0 "" "${together[@]}" --at-once 2 --threads 2 --json
json '[t["text"] for t in j["texts"]][0] == __import__("json").load(open("first.json"))["text"] and len(j["texts"]) == 3'
cp out together.json
expect 0 "" "$wisp" generate g.wisp --prompt "and so" --max-tokens 8 --seed 5 --json
json 'j["text"] == __import__("json").load(open("together.json"))["texts"][2]["text"]'
expect 0 "after 3 prompts" "${together[@]}"
[ "$(grep -c '^--- [123] of 3 ---$' out)" = 3 ] || fail "nothing stands between the texts: $(head -c 300 out)"
grep -q "^the tea" out || fail "a prompt is not shown before its text: $(head -c 300 out)"
expect 2 "there is no prompt" "$wisp" generate g.wisp
expect 2 "" "${together[@]}" --prompt Once
expect 2 "" "$wisp" generate g.wisp --prompt Once --at-once 2
expect 2 "--prompts is not for --private" "${together[@]}" --private
expect 3 "cannot read gone.txt" "$wisp" generate g.wisp --prompts gone.txt
printf '\n \n' >blank.txt
expect 2 "blank.txt: it has no prompt" "$wisp" generate g.wisp --prompts blank.txt
{ echo Once && printf 'x%.0s' {1..200}; } >long.txt
expect 2 "long.txt: prompt 2: the prompt has" "$wisp" generate g.wisp --prompts long.txt
# A damaged weight: plain generation only checks weights on request; private generation always does.
python3 - g.wisp damaged.wisp <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data.rstrip(b"\0")) - 2] ^= 1  # of the last tensor
open(sys.argv[2], "wb").write(data)
END
expect 0 "" "$wisp" generate damaged.wisp --prompt "Once" --max-tokens 2
expect 3 "damaged" "$wisp" generate damaged.wisp --prompt "Once" --max-tokens 2 --verify
expect 3 "damaged" "$wisp" generate --private --model damaged.wisp --prompt "Once" --max-tokens 2
expect 0 "" "${generate[@]}" --seed 3 --verify
json '0 < j["open_seconds"] < 60 and 0 < j["seconds"]'
expect 2 "temperature is -1" "${generate[@]}" --temperature=-1
expect 2 "top_p is 2" "${generate[@]}" --top-p 2
# A refused request prints nothing of the prompt.
for bad in --temperature=-1 --top-p=2 --stop=; do
  expect 2 "" "$wisp" generate g.wisp --prompt "Once" "$bad"
  [ ! -s out ] || fail "generate $bad printed $(cat out)"
done
expect 0 "1 token after .*ended by: --max-tokens" "$wisp" generate g.wisp --prompt "Once" --max-tokens 1
grep -q "^Once" out || fail "the text does not begin with its prompt: $(cat out)"
cp -r decoder broken && echo '{' >broken/tokenizer.json
expect 3 "broken/tokenizer.json" "$wisp" convert broken --out broken.wisp
expect 2 "positions, and one at least is needed" "$wisp" generate g.wisp --prompt "$(printf 'x%.0s' {1..200})"
expect 3 "e.wisp: is an encoder of texts, and generate needs a decoder; wisp embed reads it" "$wisp" generate e.wisp --prompt a
expect 3 "is a classifier, and generate needs a decoder; wisp classify predict reads it" "$wisp" generate c.wisp --prompt a
expect 3 "is a recommender, and generate needs a decoder; wisp recommend reads it" "$wisp" generate "$root/models/cafe.wisp" --prompt a
expect 2 "e.wisp: is an encoder of texts, .*give --family, allowed are bert, roberta, distilbert" "$wisp" export e.wisp --out e.safetensors
expect 2 "c.wisp: is a classifier, .*give --family, allowed are bert" "$wisp" export c.wisp --out e.safetensors
[ ! -e e.safetensors ] || fail "a refused export left a file"
finish
