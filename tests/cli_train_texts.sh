#!/usr/bin/env bash
# Decoders that learn texts: from fresh weights with a tokenizer of bytes, fine-tuned with and without an adapter, by
# every method. What a record is, what is left out, and refusals, which leave nothing behind and charge nothing.
#   tests/cli_train_texts.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

# Lines that a model of bytes can learn: of few words, each of which comes twice.
python3 - <<'PY'
import random
random.seed(3)
words = ["abcd", "efgh", "ijkl", "mnop", "qrst", "uvwx", "yzab", "cdef"]
def line():
    first, second = random.choice(words), random.choice(words)
    return f"{first} {first} {second} {second}"
with open("train.txt", "w") as f:
    f.writelines(line() + "\n" for _ in range(300))
with open("dev.txt", "w") as f:
    f.writelines(line() + "\n" for _ in range(40))
PY
cat >r.json <<'JSON'
{"name": "tiny",
 "architecture": {"max_length": 24, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 32, "embedding_scale": 4},
 "training": {"method": "ordinary", "epochs": 12, "expected_batch": 30, "seed": 1,
  "optimizer": {"kind": "adam", "learning_rate": 0.01}},
 "text": {"record": "line", "tokenizer": "bytes", "hold_out_share": 0.1}}
JSON
private=(--num-records-public 300 --batch 60 --delta 0.001 --noise-multiplier 0.5)
again=(--reproducible-noise 7)
bits() {  # MODEL MOST OPTIONS...
  expect 0 "" "$wisp" evaluate --model "$1" --texts dev.txt --threads 1 --json "${@:3}"
  json "j['bits_per_byte'] < $2 and abs(j['perplexity_per_byte'] - 2 ** j['bits_per_byte']) < 1e-9 and set(j['not_private']) >= {'loss', 'bytes'}"
}

# From fresh weights. Held-out texts are measured; a line ends with its end token, which a model of bytes learns.
expect 0 "" "$wisp" train --recipe r.json --texts train.txt --out m.wisp --threads 1 --json
json "j['record'] == 'line' and 250 < j['records'] < 290 and j['test']['texts'] + j['records'] == 300 and j['test']['bits_per_byte'] < 2"
# With the same recipe, --data reads the same file.
expect 0 "" "$wisp" train --recipe r.json --data train.txt --out same.wisp --threads 1
cmp -s m.wisp same.wisp || fail "--data of a recipe of texts is another run than --texts"
grep -q "one line of text" out || fail "what a record is was not said"
bits m.wisp 2
# Each line predicts 19 tokens: 18 bytes of text and its end.
json "j['texts'] == 40 and j['tokens'] == 40 * 19 and j['bytes'] == 40 * 18"
bits m.wisp 2 --max-length 10
json "j['tokens'] == 400 and j['bytes'] == 400 and j['texts_cut'] == 40"
bits m.wisp 4 --record chunk:20
bits m.wisp 4 --record paragraph
json "j['texts'] == 1 and j['tokens'] == 24"
expect 0 "" "$wisp" generate m.wisp --prompt abcd --temperature 0 --json
json 'j["text"][:1] == " " and len(j["text"]) == 15 and j["ended"] == "end"'
expect 0 "" "$wisp" inspect m.wisp --json
json '"one record: one line of text" in j["provenance"][-1]["description"] and j["tokenizer"]["tokens"] == 257'

# A warm-up as long as the run gives a warning, a shorter one does not.
grep -q "warm-up" err && fail "a run without a warm-up is warned of one"
sed 's/"kind": "adam",/"kind": "adam", "warmup_steps": 5,/' r.json >warm.json
expect 0 "warning: the run has 5 steps and a warm-up of 5: the learning rate rises to its end, towards 0.01" \
  "$wisp" train --recipe warm.json --texts train.txt --out warm.wisp --num-records-public 300 --epochs 0.5 --method phantom \
  --ledger warm.db --noise-multiplier 1 --delta 0.001
expect 0 "" "$wisp" train --recipe warm.json --texts train.txt --out warm.wisp --epochs 1
grep -q "warm-up" err && fail "a warm-up of a part of the run is warned of"
expect 0 "the run has .* and a warm-up of 5: .*(local only)" \
  "$wisp" train --recipe warm.json --texts train.txt --out warm.wisp --epochs 0.1
# In a private run without a public number of records, nothing is counted.
expect 4 "needs the number of records" "$wisp" train --recipe warm.json --texts train.txt --out no.wisp --epochs 0.1 \
  --method phantom --ledger no.db --noise-multiplier 1 --delta 0.001
grep -q "warm-up" err && fail "the number of private records is shown"

# Fine-tuning by every method, without a recipe; the method must be given.
tune=("$wisp" train --model m.wisp --texts train.txt --other-data --threads 1)
for method in phantom rgp; do
  expect 0 "" "${tune[@]}" --method "$method" --out t.wisp --ledger "$method.db" "${private[@]}" "${again[@]}" --json
  bits t.wisp 2.5
done
expect 0 "" "${tune[@]}" --method ordinary --epochs 2 --out t.wisp
bits t.wisp 2
for method in fest adafest adafest+; do
  rows=()
  [ "$method" = adafest ] || rows=(--rows 40 --histogram-noise 5)
  expect 0 "" "${tune[@]}" --method "$method" "${rows[@]}" --out t.wisp --ledger "$method.db" "${private[@]}" "${again[@]}"
  bits t.wisp 4
done
expect 0 "" "${tune[@]}" --method phantom --trains blocks --out t.wisp --ledger blocks.db "${private[@]}" --privacy-json p.json --json
json 'j["epsilon"] > 0 and j["noise_multiplier"] == 0.5 and "records" in j["not_private"] and "test" not in j'
python3 - <<'PY' || fail "the statement does not say what is protected"
import json
s = json.load(open("p.json"))
text = json.dumps(s)
assert "a record is one line of text" in text and "whoever wrote several of the records" in text and "interaction" in text, text
PY

expect 0 "" "$wisp" privacy --ledger blocks.db --delta 0.001
grep -q "one record is: one line of text: who wrote k of them is protected less" out || fail "the ledger does not say what a record was: $(cat out)"
expect 4 "protects one line of text; asked for was one chunk of 16 bytes of text" "${tune[@]}" --method phantom --trains blocks \
  --out refused.wisp --ledger blocks.db "${private[@]}" --record chunk:16
# After a second run on a ledger without a limit, the output says what both cost, and that nothing limits it.
again_at=("${tune[@]}" --method phantom --trains blocks --out t.wisp --ledger blocks.db "${private[@]}" --epochs 1)
expect 0 "cost epsilon .* at delta 0.001 together, and its ledger blocks.db has no limit.*--budget" "${again_at[@]}"
expect 0 "" "${again_at[@]}" --budget 1000
grep -q "has no limit" err && fail "a ledger with a limit has none: $(cat err)"

# On a file without a text a private run spends all the same, and its owner is told; an ordinary run has nothing to do.
printf '\n  \n\n' >blank.txt
printf '\nabcd abcd\n' >one.txt
on=("$wisp" train --model m.wisp --other-data --threads 1 --out t.wisp)
expect 0 "blank.txt has no text to train on. The run goes on and spends what was asked for" \
  "${on[@]}" --texts blank.txt --method phantom --ledger none.db "${private[@]}" --epochs 1 --json
json 'j["records"] == 0 and j["steps"] == 5 and j["epsilon"] > 0'
expect 0 "" "${on[@]}" --texts one.txt --method phantom --ledger one.db "${private[@]}" --epochs 1 --json
json 'j["records"] == 1'
grep -q "no text to train on" err && fail "a run with a text is told that it has none: $(cat err)"
expect 3 "blank.txt: there is no text in it" "${on[@]}" --texts blank.txt --method ordinary

# Without a recipe, delta follows from the number of records.
for case in "300 0.001" "2000 0.00025" "10 1e-05"; do
  read -r number delta <<<"$case"
  expect 0 "" "${tune[@]}" --method phantom --out t.wisp --ledger "delta-$number.db" --num-records-public "$number" --batch 5 --epochs 0.1 --noise-multiplier 2 --json
  json "j['delta'] == $delta"
done

# An adapter, which resumes where it stopped; its base does not change.
cp m.wisp kept.wisp
expect 0 "" "${tune[@]}" --method phantom --lora 2 --out a.wisp --ledger a.db "${private[@]}" "${again[@]}"
tail -n 1 out | grep -q "wisp generate .*--model m.wisp --adapter a.wisp; wisp merge" || fail "how the adapter is used is not said: $(cat out)"
[ "$(stat -c %s a.wisp)" -lt "$(stat -c %s m.wisp)" ] || fail "the adapter is as large as its base"
bits m.wisp 2.5 --adapter a.wisp
expect 0 "" "${tune[@]}" --adapter a.wisp --method phantom --out b.wisp --ledger a.db "${private[@]}" "${again[@]}"
bits m.wisp 2.5 --adapter b.wisp
cmp -s m.wisp kept.wisp || fail "the base of an adapter changed"
cmp -s a.wisp b.wisp && fail "an adapter that was trained further is as it was"
expect 0 "" "$wisp" merge m.wisp --adapter b.wisp --out merged.wisp
bits merged.wisp 2.5
# With a base in blocks of integers, an adapter may change less than one step of these. Merging keeps such changes.
for bits in int8 int4; do
  expect 0 "" "$wisp" compress m.wisp "--$bits" --out blocks.wisp
  expect 0 "" "$wisp" train --model blocks.wisp --texts train.txt --method ordinary --lora 2 --epochs 1 --learning-rate 1e-3 --threads 1 --out small.wisp
  expect 0 "" "$wisp" merge blocks.wisp --adapter small.wisp --out merged.wisp
  for model in blocks merged; do
    expect 0 "" "$wisp" export $model.wisp --out $model.safetensors
  done
  python3 - <<'PY' || fail "merged with a base in $bits: what the adapter changed is lost"
import array, json, struct
def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: array.array("f", data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items() if name != "__metadata__"}
base, merged = tensors("blocks.safetensors"), tensors("merged.safetensors")
changed = {name: sum(x != y for x, y in zip(base[name], merged[name])) / len(base[name]) for name in base}
largest = max(abs(x - y) for name in base for x, y in zip(base[name], merged[name]))
assert 0 < largest < 0.02, largest  # below half a step of 8 bits of most blocks
assert len([share for share in changed.values() if share > 0]) >= 4, changed
assert all(share == 0 or share > 0.99 for share in changed.values()), changed
assert changed["item_embedding.weight"] == 0
PY
done

# With the model in blocks of integers, whose storage does not change.
expect 0 "" "$wisp" compress m.wisp --int4 --out m4.wisp
expect 0 "" "${tune[@]/m.wisp/m4.wisp}" --method phantom --lora 2 --out a4.wisp --ledger a4.db "${private[@]}" "${again[@]}" --recompute-blocks
bits m4.wisp 2.5 --adapter a4.wisp
expect 0 "" "$wisp" inspect m.wisp --memory --method phantom --records 80 --lora 2 --json
cp out of_floats.json
expect 0 "" "$wisp" inspect m4.wisp --memory --method phantom --records 80 --lora 2 --json
json 'j["training"]["packed_weights"] < __import__("json").load(open("of_floats.json"))["training"]["packed_weights"] / 2'

# A memory plan with the options of training, compared with the run's figure.
for how in "--lora 2 --max-length 10" "--trains blocks" "--adapter a.wisp"; do
  # shellcheck disable=SC2086
  expect 0 "" "${tune[@]}" --method phantom $how --epochs 0.1 --out p.wisp --ledger "planned ${how:2:2}.db" "${private[@]}" "${again[@]}" --json
  read -r planned records < <(python3 -c 'import json; j = json.load(open("out")); print(j["planned_bytes"], j["records"])')
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" inspect m.wisp --memory --method phantom $how --threads 1 --records "$records" --json
  json 'j["training"]["total"] == '"$planned"
done
of_memory=("$wisp" inspect m.wisp --memory --method phantom --records 80)
expect 2 "--trains is 'head', allowed of a decoder are all and blocks" "${of_memory[@]}" --trains head
expect 2 "--max-length is 25, allowed are 1 to 24" "${of_memory[@]}" --max-length 25
expect 2 "--max-length is of texts" "$wisp" inspect "$root/models/cafe.wisp" --memory --method phantom --records 80 --max-length 5
expect 2 "need --method or --recipe" "$wisp" inspect m.wisp --memory --trains blocks
expect 2 "--batch is 301, more than the 300 records; allowed are 1 to 300" "${tune[@]}" --method phantom --out refused.wisp --ledger refused.db \
  "${private[@]/60/301}"
[ ! -e refused.wisp ] || fail "a refused batch left a model"
rm -f refused.db

# Chunks of one text, with Re-Attention; the output says what they do not protect.
tr '\n' ' ' <train.txt >long.txt
expect 0 "that protects no person" "$wisp" train --recipe r.json --texts long.txt --record chunk:24 --method phantom --re-attention --out c.wisp \
  --ledger c.db "${private[@]}" --privacy-json p.json --json
json 'j["record"] == "chunk:24"'
grep -q "any person: whoever wrote the text is in many chunks of it" p.json || fail "the statement takes a chunk for a person"

# A text that is not UTF-8 is left out of a private run and refused otherwise.
{ head -20 train.txt; printf 'bad \xff\n'; head -20 train.txt; } >bad.txt
expect 3 "bad.txt, line 21: .*UTF-8" "$wisp" train --recipe r.json --texts bad.txt --out refused.wisp
expect 0 "1 text left out, the first: bad.txt, line 21" "$wisp" train --model m.wisp --texts bad.txt --other-data --threads 1 --method phantom --epochs 1 --out t.wisp --ledger bad.db "${private[@]}" --json
: >none.txt
expect 3 "there is no text in it" "$wisp" train --recipe r.json --texts none.txt --out refused.wisp

# These are refused before anything is charged.
while IFS='|' read -r code sentence options; do
  # shellcheck disable=SC2086
  expect "$code" "$sentence" "$wisp" train $options --out refused.wisp --threads 1 --ledger refused.db
done <<'CASES'
2|--recipe is required|--data train.txt
2|without --recipe the method must be named|--model m.wisp --texts train.txt
2|texts fine-tune one: name it, --model|--texts train.txt --method phantom
2|which is for a head of classes|--model m.wisp --texts train.txt --method dp-fp
2|--record is 'word'|--model m.wisp --texts train.txt --method phantom --record word
2|--trains is 'head', allowed are all and blocks: a decoder's head is its table|--model m.wisp --texts train.txt --method phantom --trains head
2|--max-length (in a recipe text.max_length) is 25, allowed are 1 to 24|--model m.wisp --texts train.txt --method phantom --max-length 25
2|is 0, allowed are 1 to 24|--model m.wisp --texts train.txt --method phantom --max-length 0
2|--tokenizer does not go with --model|--model m.wisp --texts train.txt --method phantom --tokenizer bytes
2|--texts and --data are both given|--model m.wisp --texts train.txt --data train.txt --method phantom
4|number of records declared as public|--model m.wisp --texts train.txt --method phantom --epsilon 8 --other-data
CASES
sed 's/, "tokenizer": "bytes"//' r.json >bare.json
expect 2 "fresh weights have no tokenizer" "$wisp" train --recipe bare.json --texts train.txt --out refused.wisp
expect 0 "" "$wisp" train --recipe bare.json --texts train.txt --tokenizer "$root/tests/golden/tokenizers/gpt2.json" --epochs 1 --out g.wisp
expect 3 "cannot be opened" "$wisp" train --recipe bare.json --texts train.txt --tokenizer nowhere.json --out refused.wisp
expect 2 "is of texts: give them with --texts" "$wisp" train --recipe "$root/models/recipes/cafe.json" --data x --record line --out refused.wisp
expect 2 "brings no tokenizer" "$wisp" train --model "$root/models/cafe.wisp" --texts train.txt --method ordinary --out refused.wisp
expect 2 "brings no tokenizer" "$wisp" evaluate --model "$root/models/cafe.wisp" --texts dev.txt
expect 2 "--data is required, or --texts" "$wisp" evaluate --model m.wisp
expect 0 "" "$wisp" convert "$root/tests/golden/hugging_face/bert_classes" --out e.wisp
expect 3 "" "$wisp" train --model e.wisp --texts train.txt --method ordinary --out refused.wisp
expect 3 "it is a recipe of texts" "$wisp" new --recipe r.json --num-items 300 --out refused.wisp
expect 3 "audits read events" "$lab" audit run --recipe r.json --data train.txt --ledger refused.db
sed 's/"record": "line"/"record": "line", "max_length": 6/' r.json >short.json
expect 0 "" "$wisp" inspect m.wisp --memory --recipe r.json --records 300 --threads 1 --json
cp out whole.json
expect 0 "" "$wisp" inspect m.wisp --memory --recipe short.json --records 300 --threads 1 --json
json 'j["training"]["total"] < __import__("json").load(open("whole.json"))["training"]["total"]'
[ ! -e refused.wisp ] && [ ! -e refused.db ] || fail "a refusal left a file behind"
finish
