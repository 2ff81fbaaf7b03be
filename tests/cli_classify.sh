#!/usr/bin/env bash
# The program's classifiers of texts: refusals of training, its results in the three modes, and audits.
#   tests/cli_classify.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"
texts
from=("$wisp" classify train --recipe)
texts_out=(--out texts.wisp --ledger texts.db)

# A tiny task of two words for each class, in the three modes.
expect 4 "ledger" "${classify[@]}"
sed 's/"catalogue": "public", //' tiny.json >private-words.json
expect 4 "vocabulary" "${from[@]}" private-words.json --data train.txt "${texts_out[@]}"
sed 's/"micro_batches"/"micro_batchez"/' tiny.json >unknown-key.json
expect 3 "micro_batchez" "${from[@]}" unknown-key.json --data train.txt "${texts_out[@]}"
for guarantee in "--ledger texts.db" "--epsilon 4" "--budget 4" "--delta 0.001" "--planned-runs 2"; do
  # shellcheck disable=SC2086
  expect 4 "no differential privacy guarantee" "${classify[@]}" --mode paper $guarantee
done
sed 's/"mode": "aggregate"/"mode": "paper"/' tiny.json >paper-goal.json
expect 4 "mode paper with a goal" "${from[@]}" paper-goal.json --data train.txt --out texts.wisp
printf 'good\ta\nugly\tb\n' >bad-label.txt
expect 3 "bad-label.txt, line 2" "${from[@]}" tiny.json --mode paper --data bad-label.txt --out texts.wisp
awk -F '\t' '{ print $2 "\t" $1 }' train.txt >swapped.txt
expect 3 "look swapped.*the label comes first" \
  "${from[@]}" tiny.json --mode paper --data swapped.txt --out texts.wisp
for epochs in nan -1; do
  expect 2 "epochs is" "${classify[@]}" --ledger epochs.db --epochs=$epochs
done
expect 3 "nowhere" "${from[@]}" tiny.json --data train.txt --out nowhere/t.wisp --ledger texts.db
expect 2 "choose one" "${classify[@]}" --epsilon 4 --noise-multiplier 1 --ledger texts.db
[ ! -e texts.wisp ] && [ ! -e texts.db ] || fail "a refused classifier left something behind"
# None of the texts becomes a record, because most have another form, which is refused. With few such texts a private
# run spends all the same, and the owner is told; one valid text is enough.
sed 's/^/un/' train.txt >unread.txt
expect 3 "400 of its 400 texts cannot be read, so nothing can be learned from it (local only)" \
  "${from[@]}" tiny.json --data unread.txt --out none.wisp --ledger none.db --threads 1
[ ! -e none.db ] || fail "texts in another form were charged"
head -n 60 unread.txt >unknown.txt
(cat unknown.txt; printf 'good\tthe film is great\n') >one.txt
none="wisp: warning: no line of .* became a record, .* The run goes on and spends what was asked for.*(local only)"
expect 0 "$none" "${from[@]}" tiny.json --data unknown.txt --out none.wisp --ledger none.db --threads 1 --json
grep -q "of unknown.txt became a record.*one of data.classes of tiny.json" err || fail "whose lines they are: $(cat err)"
json 'j["records"] == 0 and j["records_dropped"] == 60 and j["steps"] == 12 and j["epsilon"] > 0'
[ "$(sqlite3 none.db 'select count(*) > 0 from entries')" = 1 ] || fail "a run without a record was not charged"
expect 0 "" "${from[@]}" tiny.json --data one.txt --out one.wisp --ledger one.db --threads 1 --json
json 'j["records"] == 1'
grep -q "became a record" err && fail "a run with a record is warned of: $(cat err)"
# The number of texts is private. A warning on this device says that it is far from the declared one.
other="(--num-records-public) (local only)"
(cat train.txt; printf 'good\tthe film is great\n') >more.txt
expect 0 "401 texts were read, 200 are declared $other" "${from[@]}" tiny.json --data more.txt --num-records-public 200 \
  --out other.wisp --ledger other-number.db --threads 1
head -n 199 train.txt >few.txt
expect 0 "199 texts were read, 400 are declared $other" "${from[@]}" tiny.json --data few.txt \
  --out other.wisp --ledger few.db --threads 1 --json
grep -q "declared" out && fail "a number of texts is shown as if it were public: $(cat out)"
head -n 200 train.txt >half.txt
expect 0 "" "${from[@]}" tiny.json --data half.txt --out other.wisp --ledger half.db --threads 1
grep -q "are declared" err && fail "half of the declared number is told of: $(cat err)"
# In every command the file's ending says if there is a header: a private run does not refuse a file that passed a
# check.
cp train.txt bare.tsv
header="bare.tsv, line 1: the header does not name one column label and one column sentence or text; --label-column and --text-column say which they are"
expect 3 "$header" "${from[@]}" tiny.json --data bare.tsv --out other.wisp --ledger bare.db
expect 3 "$header" "${from[@]}" tiny.json --data bare.tsv --out other.wisp --method ordinary
expect 3 "$header" "$wisp" classify evaluate --model one.wisp --data bare.tsv
expect 0 "" "$wisp" classify evaluate --model one.wisp --data bare.tsv --format lines
(echo "verdict,review"; awk -F '\t' '{ print $1 "," $2 }' train.txt) >columns.csv
columns=(--data columns.csv --text-column review --label-column verdict)
expect 0 "" "${from[@]}" tiny.json "${columns[@]}" --out columns.wisp --ledger columns.db
expect 0 "" "${classify[@]}" --ledger texts.db --json
json 'j["mode"] == "aggregate" and j["epsilon"] > 0 and j["steps"] == 12 and "no_guarantee" not in j'
json 'j["not_private"] == ["records", "records_dropped", "seconds"]'
expect 0 "" "$wisp" privacy --ledger texts.db --delta 0.001
grep -q "24 steps" out && grep -q "one interaction" out || fail "the ledger's statement does not name the releases"
expect 0 "" "$wisp" inspect texts.wisp --verify --json
json 'j["classifier"]["class_names"] == ["bad", "good"] and j["classifier"]["norm_bound"] == 1'
json 'j["provenance"][0]["epsilon"] > 0 and j["architecture"]["items"] == 9'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data test.txt --json
json 'j["records"] > 100 and 0 <= j["accuracy"] <= 1 and j["unknown_tokens"] == 0'
expect 3 "is a classifier" "$wisp" recommend --model texts.wisp --history film
expect 3 "is no classifier" "$wisp" classify predict --model base.wisp --text film
expect 0 "" "${classify[@]}" --mode clipped --base texts.wisp --ledger texts.db --json
json 'j["mode"] == "clipped" and j["encoder_noise_multiplier"] == 1 and j["epsilon"] > 0'
expect 0 "" "$wisp" inspect texts.wisp --json
json 'len(j["provenance"]) == 2 and len(j["provenance"][1]["mechanisms"]) == 2'
# A warning says that a prior decides a head, from released values. A head that texts decide gives no warning.
sed 's/"micro_batches": 2/"micro_batches": 2, "class_prior": [0.3, 0.7]/' tiny.json >prior.json
awk 'NR <= 400 { print (NR % 10 < 3 ? "bad" : "good") "\tthe film is" }' train.txt >alike.txt
again=(--threads 1 --reproducible-noise 7 --out prior.wisp --data)
expect 0 "the head names 'good' even at the mean of every other class.*effective_dimensions, here 1," \
  "${from[@]}" prior.json "${again[@]}" alike.txt --ledger prior.db
sed 's/"micro_batches": 2/"micro_batches": 2, "effective_dimensions": 16/' tiny.json >sure.json
expect 0 "" "${from[@]}" sure.json "${again[@]}" train.txt --ledger sure.db
grep -q "the head names" err && fail "a head that tells classes apart is warned of: $(cat err)"
# Two planned runs share their epsilon; there is no third.
planned=("${classify[@]}" --ledger planned.db --epsilon 4 --budget 4 --planned-runs 2 --json)
for run in first second; do
  expect 0 "" "${planned[@]}"
done
expect 0 "" "$wisp" privacy --ledger planned.db --delta 0.001
grep -qE "epsilon 4( |$|,)|epsilon.*: (3\.9|4\.0000)" out || fail "two planned runs do not make up their epsilon: $(cat out)"
expect 4 "" "${planned[@]}"
before=$(sqlite3 texts.db 'select count(*) from limits')
expect 4 "1 / 400" "${classify[@]}" --ledger texts.db --budget 50 --delta 0.0025
[ "$(sqlite3 texts.db 'select count(*) from limits')" = "$before" ] || fail "a refused run set a limit"
expect 0 "" "${classify[@]}" --mode paper --json
json '"guarantee" in j["no_guarantee"] and "epsilon" not in j and "delta" not in j'
expect 0 "" "${classify[@]}" --mode paper --epochs 30 --reproducible-noise 3
grep -qi "epsilon" out && fail "mode paper speaks of an epsilon"
expect 0 "" "$wisp" inspect texts.wisp --json
json 'j["provenance"][0]["epsilon"] is None and j["provenance"][0]["mechanisms"] == []'
json '"no differential" in j["provenance"][0]["description"]'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data test.txt --json
json 'j["accuracy"] > 0.9'
# The steps that are really taken refute the paper's claim for a step; the default mode withstands.
audit=("$lab" audit step --recipe tiny.json)
expect 4 "REFUTED" "${audit[@]}" --method paper --noise-multiplier 20 --observations 300 --json
json 'j["refuted"] and j["epsilon"][0]["claimed"] < 0.3 < j["epsilon"][0]["bound_by_rows"] and "no_guarantee" in j'
expect 0 "" "${audit[@]}" --observations 40
grep -q "^not refuted" out && grep -q "all of the records a step" out ||
  fail "a sound step of DP-FP: $(head -c 300 out)"
expect 0 "" "${audit[@]}" --observations 4
grep -q "bounds of 0 say that this attack saw nothing" out || fail "bounds of 0 are not explained: $(cat out)"
expect 2 "aggregate, clipped and paper" "${audit[@]}" --method phantom
# There is no epsilon for a head on an encoder that already learned from the same texts.
again=("${from[@]}" tiny.json --data train.txt)
encoder=(--base texts.wisp --out again.wisp)
expect 4 "without a guarantee" "${again[@]}" "${encoder[@]}" --ledger texts.db
expect 4 "is of the data set 'train.txt'" "${again[@]}" --dataset other "${encoder[@]}" --ledger texts.db
expect 0 "" "${again[@]}" --dataset other "${encoder[@]}" --ledger other.db
grep -q "of this run alone; of the weights it began with: .*states no epsilon" out ||
  fail "an epsilon is shown without what it leaves out: $(head -c 300 out)"
ask=(--text "the film is GREAT" --text "the film is dull" --json)
expect 0 "" "$wisp" classify predict --model texts.wisp "${ask[@]}"
json 'j[0]["class"] == "good" and j[1]["class"] == "bad" and j[0]["probability"] > 0.5'

finish
