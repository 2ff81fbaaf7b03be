#!/usr/bin/env bash
# Memory is known before a run: the plan equals the run's figure, and the C interface says the same.
#   tests/cli_memory.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
held=("${train[@]}" --reproducible-noise 1 --threads 2 --out held.wisp)
memory=("$wisp" inspect held.wisp --memory)
of_out() { python3 -c 'import json, sys; j = json.load(open("out")); print(*(j[k] for k in sys.argv[1:]))' "$@"; }
# recipe_with NAME CODE writes NAME.json: the recipe, changed by Python code on its training section `t`.
recipe_with() {
  python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); t = r["training"]; exec(sys.argv[3])
json.dump(r, open(sys.argv[2] + ".json", "w"))' "$recipe" "$1" "$2"
}

# The run's figure, and the parts of the total.
expect 0 "" "${held[@]}" --ledger held.db --json
read -r planned records < <(of_out planned_bytes records)
expect 0 "" "${memory[@]}" --method phantom --threads 2 --records "$records" --json
said='("total", "file_mapped", "threads", "method", "backend", "records", "another_thread", "for_a_newcomer", "noise_multiplier")'
json 'j["training"]["total"] == '"$planned"
json 'all(p["total"] == sum(v for k, v in p.items() if k not in '"$said"') for p in j.values())'
# For every method the plan equals the run's figure before the first step.
recipe_with method 't["rgp"] = {"rank": 3}'
cat >methods.txt <<'END'
rgp --rank 3
fest --rows 90
adafest --noise-multiplier 1 --batch 32
adafest+ --noise-multiplier 1 --batch 32 --rows 90
END
while read -r method rest; do
  rows=
  [[ $rest != *rows* ]] || rows="--rows 90 --histogram-noise 5"
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" train --recipe method.json "${small[@]}" --method $method $rows --reproducible-noise 1 \
    --threads 2 --out held.wisp --ledger "held-$method.db" --json
  planned=$(of_out planned_bytes)
  # shellcheck disable=SC2206
  figures=(--method $method $rest --threads 2 --records "$records")
  expect 0 "" "${memory[@]}" "${figures[@]}" --json
  json 'j["training"]["total"] == '"$planned"
  json '("growth_at_most" in j["training"]) == ("'$method'".startswith("adafest"))'
  expect 0 "" "${memory[@]}" --recipe method.json "${figures[@]}"
  grep -q "gradient_sums" out || fail "inspect --memory --method $method printed $(head -c 300 out)"
done <methods.txt
grep -q "records_at_most" out && grep -q "1e-12" out ||
  fail "inspect --memory does not say what its bound holds for: $(tail -n 3 out)"
expect 0 "" "${memory[@]}"
grep -q "activations" out && grep -q "not copied" out || fail "inspect --memory printed $(head -c 300 out)"
expect 2 "memory" "$wisp" inspect held.wisp --method phantom
expect 2 "rank is 1000, allowed are 1 to" "${memory[@]}" --method rgp --rank 1000
recipe_with full 't["rgp"] = {p: "full" for p in ("item_tables", "positions", "matrices", "vectors")}'
expect 2 "rank is 4294967295, allowed are 1 to 8192" "${memory[@]}" --recipe full.json --method rgp --rank 4294967295
expect 2 "the method is not rgp" "${memory[@]}" --method phantom --rank 2
expect 2 "^wisp: --batch is given" "${memory[@]}" --method phantom --batch 32
expect 2 "^wisp: --noise-multiplier is given" "${memory[@]}" --method rgp --noise-multiplier 1
expect 2 "--batch is 61, more than the 60" \
  "${memory[@]}" --method adafest --noise-multiplier 1 --batch 61 --records 60
for figure in "--rank 3" "--rows 9" "--batch 32" "--noise-multiplier 1" "--records 60" "--num-records-public 60"; do
  # shellcheck disable=SC2086
  expect 2 "need --method or --recipe" "${memory[@]}" $figure
done
expect 2 "need --rows" "${memory[@]}" --method fest
expect 2 "neither fest nor adafest+" "${memory[@]}" --method adafest --rows 9
expect 2 "need --noise-multiplier" "${memory[@]}" --method adafest --records 60
expect 2 "need --records" "${memory[@]}" --method adafest --noise-multiplier 1
# Values out of range are named, whatever the method and the recipe are.
for figure in "--batch 0" "--records 0" "--num-records-public 0" "--noise-multiplier 0" "--noise-multiplier=-1"; do
  # shellcheck disable=SC2086
  expect 2 "^wisp: ${figure/[= ]*/} is ${figure##*[= ]}, allowed are" \
    "${memory[@]}" --recipe method.json --method adafest $figure
done
# Without an option, the number of records, and the public one, come from the recipe.
recipe_with known 't["rgp"] = {"rank": 3}; t["num_records_public"] = 6040; t["expected_batch"] = 600'
known=("${memory[@]}" --recipe known.json --method adafest --noise-multiplier 1 --json)
expect 0 "" "${known[@]}"
json 'j["training"]["records"] == j["training"]["num_records_public"] == 6040'
json '600 < j["training"]["records_at_most"] < 1200'
expect 0 "" "${known[@]}" --records 600 --num-records-public 600
json 'j["training"]["num_records_public"] == j["training"]["records_at_most"] == 600'
expect 0 "" "${known[@]}" --num-records-public 3000
json 'j["training"]["records"] == j["training"]["num_records_public"] == 3000'
expect 2 "--batch is 600, more than the 599 records" "${known[@]}" --num-records-public 599
# So does the noise, if the recipe has an epsilon: it is the noise that a run would find.
recipe_with costs 't["method"] = "adafest"; t["num_records_public"] = 6040; t["expected_batch"] = 600; t["steps"] = 60; r["privacy"] = {"epsilon": 2, "delta": 1e-5, "unit": "user"}'
expect 0 "" "$wisp" privacy calibrate --epsilon 2 --delta 1e-5 --q 0.0993377 --steps 60 --json
noise=$(of_out sigma)
expect 0 "" "${memory[@]}" --recipe costs.json --json
json "0 <= j['training']['noise_multiplier'] - $noise < 0.001"
expect 0 "" "${memory[@]}" --recipe costs.json --noise-multiplier 2 --json
json 'j["training"]["noise_multiplier"] == 2'
sed 's/1e-05/0.5/' costs.json >published.json
expect 4 "delta is 0.5, which is not below 1 / 6040" "${memory[@]}" --recipe published.json
expect 2 "^wisp: --num-records-public is given, but" "${memory[@]}" --method phantom --num-records-public 60
expect 0 "" "${memory[@]}" --recipe known.json --method phantom --threads 2 --json
json 'j["training"]["records"] == 6040 and j["training"]["lists"] == 6040 * 12'

# A classifier.
texts
expect 0 "" "${classify[@]}" --ledger texts.db
of_texts=("$wisp" inspect texts.wisp --memory)
of_recipe=("${of_texts[@]}" --recipe tiny.json)
expect 0 "" "${of_recipe[@]}" --records 400 --threads 1 --json
json 'j["training"]["mode"] == "aggregate" and j["training"]["total"] > j["training"]["activations"] > 0'
json '200 < j["training"]["records_at_most"] < 400'
expect 0 "" "${of_recipe[@]}" --records 400
grep -q "exact while" out ||
  fail "inspect --memory of a classifier does not say what it holds for: $(tail -n 2 out)"
expect 2 "is a classifier" "${of_recipe[@]}" --method phantom
expect 2 "is a classifier.* --backend" "${of_recipe[@]}" --backend int8
for option in "--records 400" "--method phantom" "--batch 3"; do
  # shellcheck disable=SC2086
  expect 2 "is a classifier or an encoder, .*give --recipe" "${of_texts[@]}" $option
done
expect 0 "" "${of_texts[@]}" --json
json 'j.keys() == {"inference"} and j["inference"]["total"] == j["inference"]["activations"] + j["inference"]["packed_weights"]'
json 'j["inference"]["another_thread"] > 0 and j["inference"]["packed_weights"] > 0'
expect 0 "" "${of_texts[@]}"
grep -q "not copied" out || fail "inspect --memory of a classifier printed $(cat out)"
expect 0 "" "${of_recipe[@]}" --threads 1 --json
json 'j["training"]["records"] == j["training"]["num_records_public"] == 400'
json '200 < j["training"]["records_at_most"] < 400'
expect 0 "" "${of_recipe[@]}" --num-records-public 800 --records 400 --json
json 'j["training"]["num_records_public"] == 800 and 100 < j["training"]["records_at_most"] < 200'
expect 2 "--batch is 200, more than the 199 records" "${of_recipe[@]}" --num-records-public 199
sed 's/"num_records_public": 400, *//' tiny.json >uncounted.json
expect 2 "which needs --records" "${of_texts[@]}" --recipe uncounted.json

# In C an app lends its threads.
c_program lent_threads "lent threads"
expect 0 "" ./lent_threads base.wisp log.db lent.db lent.wisp
mv out lent.txt
expect 0 "" "$wisp" inspect base.wisp --memory --method phantom --threads 3 --records 60 --json
json '[str(j["inference"]["total"]), str(j["training"]["total"])] == open("lent.txt").read().split()'
# C copies keys and names: one string each, and an error for one that does not fit.
parts='("activations", "packed_weights", "scores", "names")'
json 'j["inference"]["names"] >= 2 * 480 * 24'
json 'j["inference"]["total"] == sum(j["inference"][p] for p in '"$parts"')'
expect 0 "" "$wisp" inspect base.wisp --memory
grep -qE "^  names +[0-9]{5}" out && grep -q "which the C interface copies" out ||
  fail "inspect --memory leaves out the names: $(cat out)"

finish
