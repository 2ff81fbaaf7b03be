#!/usr/bin/env bash
# The program's required declarations before private data leaves a trace, and that declarations are recorded.
#   tests/declarations.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
recipe=$root/models/recipes/cafe-device.json
label="synthetic public cafe guests"
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"
fit=(--data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001)

# A model without training would list the items of a private log: an item of a single user would stand in the file.
"$wisp" synth --out lone.txt --population device --users 60 --seed 3 >out 2>err && echo "u00001 item-of-one-user" >>lone.txt
cat >plain.json <<'END'
{"name": "plain", "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch": 10, "seed": 7}}
END
expect 4 "declare the list of items public (--catalogue public" "$wisp" new --recipe plain.json --data lone.txt --out new.wisp
sed 's/"training"/"data": {"min_item_events": 2}, "training"/' plain.json >rare.json
expect 4 "data.min_item_events is 2" "$wisp" new --recipe rare.json --catalogue public --data lone.txt --out new.wisp
# So would a minimum of events per user: with one more event of that user, its items are in the list.
sed 's/"training"/"data": {"min_user_events": 2}, "training"/' plain.json >idle.json
expect 4 "data.min_user_events is 2" "$wisp" new --recipe idle.json --catalogue public --data lone.txt --out new.wisp
sed 's/"method": "ordinary", "sampling": "shuffled"/"method": "phantom", "sampling": "poisson"/; s/"training"/"data": {"catalogue": "public", "min_user_events": 2}, "training"/' plain.json >idle-dp.json
expect 4 "data.min_user_events is 2" "$wisp" train --recipe idle-dp.json --data lone.txt --num-records-public 60 --epsilon 2 --delta 0.001 --ledger idle.ledger --out new.wisp
[ ! -e idle.ledger ] || fail "a refused run left a ledger"
[ ! -e new.wisp ] || fail "a refused model was written"
expect 2 "catalogue" "$wisp" new --recipe plain.json --catalogue secret --data lone.txt --out new.wisp
expect 0 "" "$wisp" new --recipe plain.json --catalogue public --data lone.txt --out new.wisp
expect 0 "" "$wisp" inspect new.wisp
grep -q "the list of items is that of 'lone.txt', which was declared public" out || fail "the file does not say whose items it lists: $(tail -n 3 out)"
sed 's/"training"/"data": {"catalogue": "public"}, "training"/' plain.json >public.json
expect 0 "" "$wisp" new --recipe public.json --data lone.txt --out new.wisp
expect 0 "" "$wisp" new --recipe plain.json --num-items 9 --out new.wisp
# In a model without keys, a history is given by the numbers that a list shows.
expect 0 "" "$wisp" recommend --model new.wisp --history 3,8 --count 2 --json
json 'len(j) == 2 and all(i["item"] in range(9) for i in j)'
expect 2 "--history names item '9'; the model has no keys, allowed are numbers 0 to 8" "$wisp" recommend --model new.wisp --history 9
expect 2 "--history names item 'tea'; the model has no keys" "$wisp" recommend --model new.wisp --history tea

# Private training must not take items from private data either, or let one user decide if others' events stay.
bare=("$wisp" train --model base.wisp "${fit[@]}" --epsilon 2 --out bare.wisp --ledger bare.ledger)
expect 4 "private training takes the catalogue from the data: declare it public" "$wisp" train --recipe "$recipe" "${fit[@]}" --epsilon 2 --out bare.wisp --ledger bare.ledger
sed 's/"hold_out"/"min_item_events": 2, "hold_out"/' "$recipe" >rare.json
expect 4 "private training with data.min_item_events 2: one user could decide" "${bare[@]}" --recipe rare.json
[ ! -e bare.wisp ] && [ ! -e bare.ledger ] || fail "a refused run left a model or a ledger behind"

# Sampling needs a ledger that includes the charges of model and base on the same data.
expect 0 "" "$wisp" train --recipe "$recipe" --model base.wisp "${fit[@]}" --epsilon 2 --out paid.wisp --ledger paid.ledger
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model paid.wisp --data log.db --epochs 1 --batch 20 --out plain.wisp
draw=("$wisp" recommend --history tea-mint --private --count 2 --public-dataset "$label")
expect 4 "the model: it was trained on 'log.db' before, for epsilon 2 at delta 0.001, and ledger 'other.ledger' did not pay for it" "${draw[@]}" --model paid.wisp --dataset log.db --ledger other.ledger
expect 4 "the model: it was trained on 'log.db' before" "${draw[@]}" --model plain.wisp --ledger other.ledger --lambda 0.5
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data log.db --epochs 1 --batch 20 --out open.wisp
expect 4 "the base model: it was trained on 'log.db' before" "${draw[@]}" --model open.wisp --base paid.wisp --ledger other.ledger --clip 0.5
[ ! -e other.ledger ] || fail "a refused draw left a ledger behind"
expect 0 "" "${draw[@]}" --model open.wisp --base paid.wisp --ledger paid.ledger --clip 0.5
expect 0 "" "${draw[@]}" --model plain.wisp --ledger paid.ledger --lambda 0.5
expect 0 "" "${draw[@]}" --model paid.wisp --ledger paid.ledger
expect 0 "" "${draw[@]}" --model open.wisp --base base.wisp --ledger other.ledger --clip 0.5
expect 0 "" "${draw[@]}" --model plain.wisp --ledger other.ledger --lambda 0.5 --other-data
expect 2 "private" "$wisp" recommend --history tea-mint --model plain.wisp --other-data

# A recipe's permission for its own delta does not apply to another delta.
sed 's/"epsilon": 7.9, *$/"allow_delta_of_one_record": true, &/' "$recipe" >allow.json
expect 4 "delta is 0.02, which is not below 1 / 50 records" "$wisp" train --recipe allow.json --model base.wisp --data log.db --num-records-public 50 --batch 20 --epochs 1 --delta 0.02 --out bare.wisp --ledger bare.ledger
python3 - >texts.txt <<'END'
for i in range(200): print("%s\tthe film is %s" % (("bad", "dull"), ("good", "great"))[i % 2])
END
cat >texts.json <<'END'
{"name": "texts", "architecture": {"max_length": 8, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8, "attend": "all"},
 "training": {"epochs": 1, "expected_batch": 50, "num_records_public": 2000}, "dp_fp": {"micro_batches": 2},
 "privacy": {"noise_multiplier": 1, "delta": 0.0005, "allow_delta_of_one_record": true, "uncharged_tuning": "the width"},
 "data": {"catalogue": "public", "classes": ["bad", "good"]}}
END
classify=("$wisp" classify train --recipe texts.json --data texts.txt --out texts.wisp --ledger texts.ledger --threads 1)
expect 4 "not below 1 / 2000" "${classify[@]}" --delta 0.0005
expect 0 "" "${classify[@]}"
# With one record, the output says how little that is worth.
expect 0 "there is one record, one interaction" "$wisp" classify train --recipe texts.json --data texts.txt --out one.wisp --ledger one.ledger --threads 1 --num-records-public 1 --batch 1 --delta 1e-5
# The statement says if somebody chose the unit. Nobody did here.
expect 0 "" "$wisp" privacy --ledger texts.ledger --json
json 'j["definition"]["privacy_unit_chosen"] is False'

# Choices that were made on the same data without a charge stand in the statement of the run, of the ledger, and in the
# model.
expect 0 "" "$wisp" privacy --ledger texts.ledger --json
json 'j["definition"]["uncharged_tuning"] == ["the width"]'
expect 0 "" "$wisp" inspect texts.wisp
grep -q "chosen on the same data without a charge: the width" out || fail "the classifier does not say what was tuned: $(tail -n 3 out)"
tuned=("$wisp" train --recipe "$recipe" --model base.wisp "${fit[@]}" --epsilon 1 --out tuned.wisp --ledger tuned.ledger)
expect 2 "has a semicolon" "${tuned[@]}" --uncharged-tuning "rate; batch"
expect 2 "which protects nothing" "$wisp" train --recipe "$recipe" --model base.wisp --data log.db --method ordinary --out tuned.wisp --uncharged-tuning rate
[ ! -e tuned.ledger ] || fail "a refused run was charged"
expect 0 "" "${tuned[@]}" --privacy-json p.json
cp p.json out
json 'j["definition"]["uncharged_tuning"] == []'
expect 0 "" "${tuned[@]}" --privacy-json p.json --uncharged-tuning "learning rate (3 values), batch"
cp p.json out
json 'j["definition"]["uncharged_tuning"] == ["learning rate (3 values), batch"]'
expect 0 "" "$wisp" privacy --ledger tuned.ledger --delta 0.001 --json
json 'j["definition"]["privacy_unit_chosen"] is True'
expect 0 "" "${draw[@]}" --model open.wisp --ledger drawn.ledger --lambda 0.5 --uncharged-tuning "lambda"
expect 0 "" "$wisp" privacy --ledger drawn.ledger --json
json 'j["definition"]["uncharged_tuning"] == ["lambda"] and j["definition"]["privacy_unit_chosen"] is False'
expect 0 "" "${draw[@]}" --model open.wisp --ledger day.ledger --lambda 0.5 --unit day
expect 0 "" "$wisp" privacy --ledger day.ledger --json
json 'j["definition"]["privacy_unit"] == "day" and j["definition"]["privacy_unit_chosen"] is True'
expect 0 "" "$wisp" privacy --ledger tuned.ledger --delta 0.001
grep -q "chosen on the same data without a charge: learning rate (3 values), batch" out || fail "the ledger's statement does not say what was tuned: $(grep chosen out)"
expect 0 "" "$wisp" inspect tuned.wisp
grep -q "chosen on the same data without a charge: learning rate (3 values), batch on log.db" out || fail "the model does not say what was tuned: $(tail -n 3 out)"
finish
