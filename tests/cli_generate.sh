#!/usr/bin/env bash
# The program's private text generation: charges and output, a spent budget, refusals, and that the ledger remembers
# everything.
#   tests/cli_generate.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
cp -r "$root/tests/golden/hugging_face/gpt2" decoder
python3 "$root/tests/small_decoder.py" decoder "$root/tests/golden/tokenizers/gpt2.json"
expect 0 "" "$wisp" convert decoder --out base.wisp --dataset "public texts"
expect 0 "" "$wisp" convert decoder --out tuned.wisp --dataset notes
printf 'the tea is cold\n\na bagel, and another\r\n\xff\xfe\n' >notes.txt
entries() { sqlite3 "$1" 'select count(*) from entries'; }
public=(--public-dataset "public texts")
plain=("$wisp" generate --private --model tuned.wisp --prompt Once)
generate=("${plain[@]}" --max-new-tokens 6)
beside=(--base base.wisp "${public[@]}")
anchored=("${generate[@]}" "${beside[@]}")
target=(--epsilon 8 --delta 1e-6)

# Times a prompt and tokens, and checks their scores.
expect 0 "" "$lab" bench --what decoder --model base.wisp --length 4 --threads 2 --repeats 1 --tensors scores.safetensors --json
json 'j["decoder"]["prompt_tokens"] == 4 and j["decoder"]["token_ms"]["median"] > 0 and j["decoder"]["read_gb_per_s"] > 0'
[ -s scores.safetensors ] || fail "bench --tensors wrote nothing"
expect 2 "needs --model" "$lab" bench --what decoder
expect 2 "are for tokens one at a time" "$lab" bench --what decoder --model base.wisp --length 4000

# These are refused before anything is charged.
expect 4 "needs a ledger" "${anchored[@]}" --clip 1
expect 2 "exactly one of --clip (mode anchored)" "${anchored[@]}" --ledger n.db
expect 2 "exactly one of --lambda (mode mixed)" "${generate[@]}" --ledger n.db
expect 4 "base model must be public: .*not declared public (--public-dataset 'public texts')" "${generate[@]}" --base base.wisp --ledger n.db --clip 1
expect 4 "arg-max" "${anchored[@]}" --ledger n.db --clip 1 --temperature 0
expect 4 "arg-max" "${anchored[@]}" --ledger n.db --clip 1 --select best
expect 4 "after mixing" "${anchored[@]}" --ledger n.db --lambda 0.1 --mode mixed --after-mixing top-p
expect 4 "truncation by private scores" "${anchored[@]}" --ledger n.db --clip 1 --top-k 5
expect 4 "--repetition-penalty with --private" "${anchored[@]}" --ledger n.db --clip 1 --repetition-penalty 1.2
expect 4 "--min-p with --private" "${anchored[@]}" --ledger n.db --clip 1 --min-p 0.1
expect 4 "tell of the model's records" "${anchored[@]}" --ledger n.db --clip 1 --support model:5
expect 2 "--support is 'base:0'" "${anchored[@]}" --ledger n.db --clip 1 --support base:0
expect 2 "--backend is not for --private" "${anchored[@]}" --ledger n.db --clip 1 --backend int8
expect 2 "--mode is 'beam', allowed are mixed, mixed-with-base, anchored, aggregate" "${anchored[@]}" --ledger n.db --clip 1 --mode beam
expect 2 "" "$wisp" generate --model tuned.wisp --prompt a --ledger n.db
of_texts=("$wisp" generate --private --model base.wisp --prompt Once)
texts=("${of_texts[@]}" --max-new-tokens 6 --private-texts notes.txt)
expect 2 "" "${texts[@]}" --ledger n.db --clip 1
texts+=(--contexts 4)
aggregate=("${texts[@]}" "${public[@]}" --ledger n.db)
expect 2 "exactly one of --clip (mode aggregate), --epsilon-per-draw and --epsilon (for --lifetime draws together, at --delta) is needed$" "${aggregate[@]}"
expect 2 "is needed; --budget limits the ledger alone" "${aggregate[@]}" --budget 8
expect 2 "and --epsilon is not given" "${aggregate[@]}" --lifetime 8
expect 2 "--lambda is of the mode mixed; the mode here is aggregate, which has --clip" "${aggregate[@]}" --lambda 0.5
expect 2 "--mode is mixed, but with --private-texts" "${aggregate[@]}" --mode mixed --lambda 0.5
expect 2 "--mode is aggregate, which needs --private-texts and --contexts" "${anchored[@]}" --ledger n.db --mode aggregate --clip 1
expect 2 "--base does not go with --private-texts" "${aggregate[@]}" --base base.wisp --clip 1
expect 4 "voids the mode aggregate" "${aggregate[@]}" --clip 1 --top-k 5
expect 4 "--seed with --private" "${aggregate[@]}" --clip 1 --seed 1
expect 3 "UTF-8" "$wisp" generate --private --model base.wisp "${public[@]}" --contexts 4 --ledger n.db --epsilon 8 \
  --private-texts notes.txt --prompt $'\xff'
expect 4 "the model itself must be public" "${texts[@]}" --ledger n.db --clip 1
contexts=("${public[@]}" --contexts 4 --ledger n.db --clip 1)
expect 3 "cannot read gone.txt" "${of_texts[@]}" "${contexts[@]}" --private-texts gone.txt
expect 2 "one at least is needed for a text" "${of_texts[@]}" "${contexts[@]}" --private-texts notes.txt --max-new-tokens 400
long=$(printf 'Once %.0s' {1..400})
expect 2 "positions" "$wisp" generate --private --model base.wisp "${public[@]}" --contexts 4 --ledger n.db --epsilon 8 \
  --delta 1e-6 --private-texts notes.txt --prompt "$long"
[ ! -e n.db ] || fail "a refused text was charged, or made a ledger"

# A target for this text alone is charged to its end, and then spent. The ledger remembers it.
expect 0 "warning: without --lifetime this text may spend the whole limit of the ledger n.db, epsilon 8 at delta 1e-06" \
  "${anchored[@]}" --ledger n.db "${target[@]}" --json
json 'j["privacy"]["mode"] == "anchored" and j["privacy"]["draws_charged"] == 6 and len(j["tokens"]) <= 6'
json '7 < j["privacy"]["spent"] <= 8 and j["privacy"]["limit"]["epsilon"] == 8'
expect 4 "the budget has room for 0 tokens, and up to 6 are asked for" "${anchored[@]}" --ledger n.db "${target[@]}"
[ ! -s out ] || fail "a text was shown without a budget: $(head -c 300 out)"
[ "$(entries n.db)" = 1 ] || fail "what was refused was charged"
expect 4 "is of the data set 'notes'" "${texts[@]}" "${public[@]}" --ledger n.db --dataset other --clip 1
expect 4 "is of the data set 'notes', and what is to be charged is 'notes.txt': .*--dataset 'notes'" "${texts[@]}" "${public[@]}" --ledger n.db --clip 1
# A line of a file is less than everything that its user wrote: without a chosen unit, nobody is told that users are
# protected.
expect 0 "" "$wisp" privacy --ledger n.db --delta 1e-6
grep -q "privacy unit: one interaction" out || fail "a ledger of a decoder's records protects something else: $(cat out)"
expect 0 "" "${anchored[@]}" --ledger u.db "${target[@]}" --unit user
expect 4 "protects one user" "${texts[@]}" "${public[@]}" --ledger u.db --dataset notes --clip 1
# A lifetime over several texts.
life=("${plain[@]}" "${beside[@]}" --ledger l.db "${target[@]}" --lifetime 10 --max-new-tokens)
expect 0 "" "${life[@]}" 6
grep -q "without --lifetime" err && fail "a lifetime is asked for that was given: $(head -c 300 err)"
grep -q "^Once" out || fail "the text does not begin with its prompt"
grep -q "6 tokens charged to l.db" err || fail "the cost is not said: $(head -c 300 err)"
grep -q "of the lifetime of 10 tokens, 4 are left" err || fail "what is left is not said: $(head -c 600 err)"
# Without --lifetime the tokens have another cost, and the plan does not cover them.
expect 4 "begun with a plan of 10 draws, of which 4 are left;.*--lifetime 10" "${plain[@]}" "${beside[@]}" --ledger l.db "${target[@]}" --max-new-tokens 4
expect 4 "the budget has room for 4 tokens" "${life[@]}" 6
expect 0 "" "${life[@]}" 1 --json
json 'j["privacy"]["lifetime"] == 10 and j["privacy"]["lifetime_left"] == 3'
expect 4 "the budget has room for 3 tokens, and up to 4 are asked for" "${life[@]}" 4
expect 0 "1 token charged" "${life[@]}" 1
expect 0 "" "${life[@]}" 1
expect 4 "the budget has room for 1 token, and up to 2 are asked for" "${life[@]}" 2
expect 0 "of the lifetime of 10 tokens, 0 are left" "${life[@]}" 1
expect 4 "the lifetime of 10 tokens is used up, all of it is charged to l.db: nothing more was charged" "${life[@]}" 1

# The output says how much the samples are worth before they come.
"${anchored[@]}" --ledger weak.db --clip 0.1 >both 2>&1 || fail "a small clip is refused: $(head -c 300 both)"
head -n 1 both | grep -q "the clip is 0.1" || fail "a small clip is warned of behind the text: $(head -c 300 both)"
# The statement uses the limit's delta, a given one, or 1e-5, and names it.
for case in "n.db|1e-06|" "n.db|0.001|--delta 0.001" "weak.db|1e-05|"; do
  IFS='|' read -r ledger delta options <<<"$case"
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" privacy --ledger "$ledger" $options
  grep -q "^  epsilon of the data set, all runs: .*(delta $delta)" out || fail "the statement of $ledger is not at delta $delta: $(grep delta out)"
done

# The other laws.
expect 0 "" "${generate[@]}" --ledger m.db --lambda 0.9 --budget 100 --json
json 'j["privacy"]["mode"] == "mixed" and j["privacy"]["random_share"] > 0.09'
expect 0 "" "${anchored[@]}" --mode mixed-with-base --ledger b.db --lambda 0.5 --support base:20 --json
json 'j["privacy"]["mode"] == "mixed-with-base" and 5.2 < j["privacy"]["pure_epsilon_per_draw"] < 5.4'
expect 0 "add nothing" "${texts[@]}" "${public[@]}" --ledger t.db --dataset notes --clip 2 --context-before "Note: "
expect 0 "" "${texts[@]}" "${public[@]}" --ledger t.db --dataset notes --clip 2 --json
json 'j["privacy"]["mode"] == "aggregate" and abs(j["privacy"]["pure_epsilon_per_draw"] - 1) < 1e-6 and "left_out" not in j'
# The number of texts is private. Warnings about it appear on this device, before the text, and refuse nothing.
printf '\n \n' >blank.txt
: >empty.txt
for none in blank.txt empty.txt; do
  few=("${of_texts[@]}" "${public[@]}" --max-new-tokens 1 --contexts 4 --private-texts "$none" --dataset none --clip 2)
  "${few[@]}" --ledger none.db >both 2>&1 || fail "an empty file of texts is refused: $(head -c 300 both)"
  head -n 1 both | grep -q "no line of $none became a private text.*charged all the same (local only)" ||
    fail "nobody is told that there is no text: $(head -c 300 both)"
done
[ "$(entries none.db)" -gt 0 ] || fail "a text of no private texts was not charged"
share=("${of_texts[@]}" "${public[@]}" --max-new-tokens 1 --private-texts notes.txt --dataset notes --clip 2)
expect 0 "2 texts share 5 contexts: .*at most 2 / 5 of the clip.*(local only)" "${share[@]}" --ledger t5.db --contexts 5
expect 0 "2 texts share 1 context: " "${share[@]}" --ledger t1.db --contexts 1
expect 0 "" "${share[@]}" --ledger t4.db --contexts 4
grep -q "share 4" err && fail "texts for half of the contexts are told of: $(cat err)"
# The statement says what was sampled, from what, and what one record was. The weights were public, and this charge
# protects none.
expect 0 "" "$wisp" privacy --ledger t.db --delta 1e-6
for words in "released: the tokens that were drawn" "one record is: one private text in a prompt: who wrote k of them is protected less" \
  "not protected: the weights that private texts were given to" "not protected: whoever wrote several of the records"; do
  grep -q "$words" out || fail "the statement of private texts does not say '$words': $(cat out)"
done
grep -q "items\|weights as they are" out && fail "the statement of private texts speaks of items: $(cat out)"
# Sampling is free from public weights, and from those with a guarantee.
expect 0 "" "$wisp" generate --private --model base.wisp "${public[@]}" --prompt Once --max-new-tokens 6 --json
json 'j["privacy"]["free"]'

# Plans: the cost of tokens, the parameters for a target, and how many tokens it pays for.
decoding=("$wisp" privacy decoding --delta 1e-6 --json)
expect 0 "" "${decoding[@]}" --clip 2 --contexts 16 --draws 100
json 'j["mode"] == "aggregate" and abs(j["pure_per_draw"] - 0.25) < 1e-6 and j["pld"] < 7 and abs(j["pure"] - 25) < 1e-6'
cp out plan.json
expect 0 "" "${decoding[@]}" --clip 2 --contexts 16 --epsilon 8
json 'j["draws"] > 100 and 7.9 < min(j["pld"], j["rdp"]) <= 8'
expect 0 "" "${decoding[@]}" --calibrate --contexts 16 --epsilon "$(python3 -c 'import json; print(json.load(open("plan.json"))["pld"])')" --draws 100
json 'abs(j["clip"] - 2) < 0.01 and j["clip"] <= 2.0001'
expect 0 "" "${decoding[@]}" --support 20 --lambda 0.5 --mixing-floor 0.1 --draws 1
json 'j["mode"] == "mixed-with-base" and 5.2 < j["pure_per_draw"] < 5.4'
# The perplexity: an unbounded epsilon gives the model, a tiny one the base or the uniform.
printf 'the tea is cold\na bagel for lunch\n' >dev.txt
expect 0 "" "$wisp" train --model base.wisp --texts dev.txt --method ordinary --epochs 4 --batch 2 --out learned.wisp --threads 1
expect 0 "" "$wisp" convert decoder --out bare.wisp --no-tokenizer
perplexity=("$lab" perplexity --model learned.wisp --base base.wisp --texts dev.txt --draws 10)
expect 0 "" "${perplexity[@]}" --epsilon 0.001 --epsilon 100 --json
python3 - <<'PY' || fail "perplexities: $(head -c 600 out)"
import json
j = json.load(open("out"))
p = {(r["mode"], r.get("composition"), r.get("epsilon")): r["perplexity"] for r in j["laws"]}
assert j["not_private"] and j["tokens"] > 10 and len(p) == 10
model, base = p["model", None, None], p["base", None, None]
for composition in ("pure", "pld"):
    assert abs(p["mixed", composition, 0.001] - 450) < 0.1, p
    assert abs(p["anchored", composition, 0.001] / base - 1) < 1e-3, p
    assert abs(p["mixed", composition, 100] / model - 1) < 0.1, p  # epsilon 10 per token: a share of 0.02 is left
    assert abs(p["anchored", composition, 100] / model - 1) < 1e-3, p
PY
expect 2 "other tokens than" "$lab" perplexity --model learned.wisp --base bare.wisp --texts dev.txt
expect 2 "--draws is needed" "${decoding[@]}" --clip 2
expect 2 "--mixing-floor goes with --support" "${decoding[@]}" --clip 2 --mixing-floor 0.1 --draws 1
expect 4 "one draw costs more" "${decoding[@]}" --clip 90 --epsilon 1
finish
