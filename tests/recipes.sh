#!/usr/bin/env bash
# Every shipped recipe runs: a few steps of each on generated data. docs/ has its quality on its own data.
#   tests/recipes.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
recipes=$root/models/recipes
cp "$root/models/cafe.wisp" base.wisp
python3 - <<'PY'
import random
random.seed(5)
with open("events.txt", "w") as f:  # more items than the most negatives of any recipe
    for user in range(150):
        f.writelines(f"{user} {(20 * user + item) % 3000}\n" for item in range(20 + random.randrange(30)))
with open("texts.tsv", "w") as f:
    f.write("sentence\tlabel\n")
    f.writelines(f"the film is {('dull', 'great')[i % 2]} and {random.choice(('long', 'short'))}\t{('negative', 'positive')[i % 2]}\n" for i in range(400))
PY
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"

few=(--epochs 0.2 --threads 1 --dataset made-up)
private=(--num-records-public 150 --batch 30 --delta 0.001 --noise-multiplier 2)
ran=0
# run NAME DATA ARGUMENTS... writes NAME.wisp.
run() {
  expect 0 "" "$wisp" train --recipe "$recipes/$1.json" --data "$2" --out "$1.wisp" "${few[@]}" "${@:3}"
  ran=$((ran + 1))
}
run cafe log.db --batch 20
run ml-1m events.txt --batch 30
run ml-1m-wide events.txt --batch 30
run large-catalogue events.txt --batch 30
run shop events.txt --batch 30
for name in ml-1m-dp-10 ml-1m-dp-5 games-dp; do run $name events.txt "${private[@]}" --ledger $name.ledger; done
run large-catalogue-dp events.txt "${private[@]}" --model large-catalogue.wisp --other-data --ledger large.ledger
for name in cafe-device fine-tune-dp; do run $name log.db "${private[@]}" --model base.wisp --ledger $name.ledger; done
expect 0 "" "$wisp" classify train --recipe "$recipes/sst2-dp-fp.json" --data texts.tsv --out texts.wisp --epochs 0.2 --threads 1 --num-records-public 400 --batch 40 --delta 0.001 \
  --noise-multiplier 2 --ledger texts.ledger
ran=$((ran + 1))
# It has the shape of a golden encoder, whose words the texts do not have.
expect 0 "" "$wisp" convert "$root/tests/golden/hugging_face/bert_classes" --out encoder.wisp --dataset made-up
sed 's/negative/bad/; s/positive/good/' texts.tsv >classes.tsv
while read -r name options; do
  sed 's/"negative", "positive"/"bad", "fair", "good"/' "$recipes/$name.json" >"$name.json"
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" classify train --recipe "$name.json" --base encoder.wisp --other-data --data classes.tsv --out "$name.wisp" --epochs 0.2 --threads 1 \
    --num-records-public 400 --batch 40 --delta 0.001 --noise-multiplier 2 --ledger "$name.ledger" $options
  ran=$((ran + 1))
done <<'RECIPES'
sst2-minilm
sst2-minilm-lora --lora 2
sst2-minilm-rgp
RECIPES
sed 's/"negative", "positive"/"bad", "fair", "good"/' "$recipes/sst2-minilm-head.json" >head.json
expect 0 "" "$wisp" classify train --recipe head.json --base encoder.wisp --other-data --data classes.tsv --out head.wisp --epochs 2 --threads 1 \
  --num-records-public 400 --batch 400 --delta 0.001 --noise-multiplier 2 --ledger head.ledger
ran=$((ran + 1))
expect 0 "" "$wisp" train --recipe "$recipes/tinyshakespeare.json" --data texts.tsv --record line --out bytes.wisp "${few[@]}" --num-records-public 400 --batch 40 \
  --delta 0.001 --noise-multiplier 2 --ledger bytes.ledger
ran=$((ran + 1))
[ "$ran" = "$(find "$recipes" -name '*.json' | wc -l)" ] || fail "$ran recipes were run of $(find "$recipes" -name '*.json' | wc -l): a new one is to be added here"
finish
