# The common parts of tests/cpp.sh and tests/amalgamation.sh, sourced after shell.sh.
golden=$root/tests/golden/hugging_face

# Makes an encoder, a classifier and a decoder of a few random weights, and a log of 300 guests: e.wisp, c.wisp, g.wisp,
# log.db.
cpp_models() {
  cp -r "$golden/bert" encoder && cp "$golden/bert_classes/vocab.txt" encoder/ && rm -f encoder/tokenizer.json
  expect 0 "" "$wisp" convert encoder --out e.wisp --pooling mean --dataset "public texts"
  printf 'sentence\tlabel\n' >train.tsv
  for i in $(seq 20); do printf 'word5 word%d\t%d\n' $((7 + i % 2 * 23)) $((i % 2)); done >>train.tsv
  echo '{"name": "tiny", "training": {"method": "ordinary", "epochs": 1, "expected_batch": 10, "num_records_public": 20,
    "optimizer": {"kind": "adamw", "learning_rate": 0.01}}, "data": {"classes": ["bad", "good"]}}' >r.json
  expect 0 "" "$wisp" train --recipe r.json --model e.wisp --labelled train.tsv --threads 1 --out c.wisp
  cp -r "$golden/gpt2" decoder
  python3 "$root/tests/small_decoder.py" decoder "$root/tests/golden/tokenizers/gpt2.json"
  expect 0 "" "$wisp" convert decoder --out g.wisp --dataset "public texts"
  expect 0 "" "$wisp" synth --out log.db --population device --users 300 --seed 7
}

# cpp_runs APP LIBRARY runs every function that the library has.
cpp_runs() {
  local arguments=("$root/models/cafe.wisp")
  [ "$2" = wisp-runtime ] || arguments+=("$work/e.wisp" "$work/c.wisp" "$work/g.wisp")
  rm -rf deployment && mkdir deployment
  [ "$2" = wisp ] && arguments+=("$work/log.db" "$work/deployment")
  expect 0 "" "$1" "${arguments[@]}"
}

# golden_answers_hold COMPILER LINKS... makes a program of tests/golden_answers.cc, which opens the files that every port
# opens.
golden_answers_hold() {
  "$1" -std=c++20 -Wall -Wextra -Wpedantic -Werror "$root/tests/golden_answers.cc" "${@:2}" -o golden_answers 2>err ||
    { fail "golden_answers.cc: $(head -c 600 err)"; return; }
  rm -rf answered && cp -r "$root/tests/golden/0.1" answered
  expect 0 "" ./golden_answers answered
  grep -q '^11 answers hold' out || fail "golden_answers.cc: $(head -c 300 out)"
}
