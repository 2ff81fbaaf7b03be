# The common start of tests/cli_*.sh, sourced after shell.sh: the shipped model as base.wisp, a log of 60 users as
# log.db, and the options of short runs on them. The functions make things that only some tests need.
recipe=$root/models/recipes/cafe-device.json
public_recipe=$root/models/recipes/cafe.json
label="synthetic public cafe guests"  # the data of the shipped model
cp "$root/models/cafe.wisp" base.wisp
expect 0 "" "$wisp" synth --out log.db --population device --users 60 --seed 3

# A private run of three steps. `tiny` leaves its delta open.
tiny=(--model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1)
small=("${tiny[@]}" --delta 0.001)
train=("$wisp" train --recipe "$recipe" "${small[@]}")

# The accountant is quick if there is much noise: a guarantee of epsilon 0.35 takes a second, epsilon 4 takes ten.
paid() {  # MODEL LEDGER OPTIONS...: trained with a guarantee that the ledger paid for
  expect 0 "" "${train[@]}" --noise-multiplier 4 --out "$1" --ledger "$2" "${@:3}"
}
plain() {  # MODEL: trained on the log without a guarantee
  expect 0 "" "$wisp" train --recipe "$public_recipe" --model base.wisp --data log.db --epochs 2 --batch 20 --out "$1"
}
c_program() {  # NAME WHAT: ./NAME from tests/NAME.c, with the library
  cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/$1.c" -o "$1" -L"$build" -lwisp -Wl,-rpath,"$build" 2>err ||
    fail "the C test of $2: $(head -c 300 err)"
}

# A task for classifiers: train.txt and test.txt have two words for each class, tiny.json is its recipe, and `classify`
# trains on it.
texts() {
  python3 - >train.txt <<'PY'
import random
random.seed(5)
words = [["awful", "dull"], ["charming", "great"]]
for i in range(400):
    label = random.randrange(2)
    print("%s\t%s" % (("bad", "good")[label], " ".join(["the", "film", "is", random.choice(words[label])])))
PY
  head -c 6000 train.txt >test.txt
  cat >tiny.json <<'JSON'
{"name": "tiny",
 "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16, "attend": "all"},
 "initialisation": {"table_deviation": 0.5},
 "training": {"epochs": 6, "expected_batch": 200, "num_records_public": 400,
  "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
 "dp_fp": {"mode": "aggregate", "micro_batches": 2,
  "paper": {"noise_multiplier": 0.5}, "encoder": {"noise_multiplier": 1}},
 "privacy": {"noise_multiplier": 1, "delta": 0.001, "steps_per_charge": 12},
 "data": {"catalogue": "public", "classes": ["bad", "good"]}}
JSON
  classify=("$wisp" classify train --recipe tiny.json --data train.txt --out texts.wisp --threads 1)
}
