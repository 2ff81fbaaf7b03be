#!/usr/bin/env bash
# Training options that mean nothing, or lack others, are refused; and the effects of a data set's name.
#   tests/cli_options.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# Options that would mean nothing are refused; the needs of --rows and of a selection are named.
protecting=("--epsilon 1" "--noise-multiplier 1" "--ledger x.db" "--budget 1" "--rows 4" "--re-attention"
  "--histogram-noise 5" "--privacy-json p.json" "--reproducible-noise 3")
for option in "${protecting[@]}"; do
  # shellcheck disable=SC2086
  expect 2 "${option%% *} is given, but the method is ordinary, which protects nothing" \
    "${train[@]}" --method ordinary $option --out o.wisp
done
expect 2 "choose one" "${train[@]}" --epsilon 4 --noise-multiplier 2 --out o.wisp --ledger x.db
for method in phantom rgp adafest; do
  expect 2 "--rows is given, but the method is $method" \
    "${train[@]}" --method $method --rows 4 --out o.wisp --ledger x.db
done
fest=("${train[@]}" --out o.wisp --ledger fest.db --dataset "cafe log" --epsilon 4)
expect 2 "fest with a private selection needs .*--histogram-noise, or privacy.histogram_noise" \
  "${fest[@]}" --method fest --rows 20
expect 2 "adafest+: rows .*--rows, or training.sparse.rows" "${fest[@]}" --method adafest+
expect 2 "--histogram-noise is" "${fest[@]}" --method fest --rows 20 --histogram-noise 0
[ ! -e x.db ] && [ ! -e fest.db ] || fail "a refused run was charged, or made a ledger"
expect 0 "" "${fest[@]}" --method fest --rows 20 --histogram-noise 5
[ "$(sqlite3 fest.db 'select purpose from entries limit 1')" = "item popularity" ] ||
  fail "--histogram-noise releases no histogram"

# A ledger belongs to one data set. Without a name, the data set has the file's name.
entries() { sqlite3 fest.db 'select count(*) from entries'; }
before=$(entries)
refused="is of the data set 'cafe log', and what is to be charged is"
expect 4 "$refused 'other'" "${train[@]}" --epsilon 1 --out o.wisp --ledger fest.db --dataset other
expect 4 "$refused 'log.db'" "${train[@]}" --epsilon 1 --out o.wisp --ledger fest.db
[ "$(entries)" = "$before" ] || fail "a run on other data was charged"
expect 0 "" "$wisp" inspect o.wisp --json
json 'j["provenance"][-1]["dataset"] == "cafe log"'
expect 0 "" "${train[@]}" --epsilon 1 --out o.wisp --ledger fest.db --dataset "cafe log"
expect 0 "" "$wisp" inspect o.wisp --json
json 'j["provenance"][-1]["dataset"] == "cafe log"'

finish
