#!/usr/bin/env bash
# The program from outside: commands, exit codes, JSON on standard output, nothing half-written.
#   tests/cli.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

# Accounting without a ledger.
expect 0 "" "$wisp" privacy epsilon --sigma 1 --q 0.01 --steps 1000 --delta 1e-5 --json
json 'abs(j["pld"] - 1.82824) < 1e-4 and j["rdp"] > j["pld"] and abs(j["gdp_clt"] - 1.61771) < 1e-4'
expect 0 "" "$wisp" privacy calibrate --epsilon 8 --delta 1e-5 --q 0.04 --steps 2000 --json
json '1.289 < j["sigma"] < 1.291 and j["pld"] <= 8'

# Usage.
expect 2 "required" "$wisp" evaluate
expect 2 "^wisp: wisp inspect: 'model' is required, by its place or as --model" "$wisp" inspect
expect 2 "there is no command 'no-such-command'; the commands of wisp are synth, new, train" "$wisp" no-such-command
expect 2 "there is no command 'foo'; the commands of wisp audit are step, run" "$wisp" audit foo --json
expect 2 "wisp train has no option '--epsilom'; wisp train --help lists all; did you mean --epsilon?$" "$wisp" train --epsilom 3
expect 2 "wisp train has no option '--epsilom'.*--epsilon?" "$wisp" train --recipe r.json --epsilom=3
expect 2 "wisp privacy epsilon has no option '-sigma'.*--sigma?" "$wisp" privacy epsilon -sigma 3
expect 2 "wisp has no option '--zzz'; wisp --help lists all$" "$wisp" --zzz
expect 2 "there is no command 'foo'; the commands of wisp privacy are" "$wisp" privacy --json foo
expect 3 "nowhere.wisp" "$wisp" classify predict --model nowhere.wisp --text --looks-like-an-option
expect 2 "the name of a table is needed: .*phantom-table-2" sh -c 'cd "$1" && "$2" reproduce' sh "$root" "$wisp"
expect 2 "population" "$wisp" synth --out x.db --population martian
expect 2 "ledger" "$wisp" privacy
expect 0 "" "$wisp" --version
grep -qx "wisp [0-9]*\.[0-9]*\.[0-9]*" out || fail "--version says $(cat out)"
expect 0 "" "$wisp" train --help
grep -q "fine-tune" out || fail "train --help does not explain itself"

# Data.
"$wisp" synth --out log.db --population device --users 60 --seed 3 --json >out 2>err || fail "synth"
json 'j["users"] == 60 and j["items"] == 480'
cp "$root/models/cafe.wisp" base.wisp
for log in log.txt log.csv log.tsv log.inter; do
  expect 0 "" "$wisp" synth --out $log --population device --users 60 --seed 3
  expect 0 "" "$wisp" evaluate --model base.wisp --data $log
  [ -s err ] && fail "reading $log warns: $(cat err)"
  sort out >"$log.quality"
  cmp -s log.txt.quality "$log.quality" || fail "$log is read as another log: $(cat out)"
done
[ "$(head -n 1 log.csv)" = "user,item,time" ] || fail "log.csv begins with $(head -n 1 log.csv)"
tr ',' ';' <log.csv >semicolons.csv
expect 3 "semicolons.csv, line 1: the header is one column, 'user;item;time'; the separator seems to be ';'; allowed are ','" "$wisp" evaluate --model base.wisp --data semicolons.csv
cut -d , -f 1,2 log.csv >timeless.csv
expect 3 "no column 'time' or 'timestamp'; the columns are 'user', 'item'; times are needed, as numbers such as seconds" "$wisp" evaluate --model base.wisp --data timeless.csv
printf 'user,item,time\na,tea-mint,2024-05-01\n' >dates.csv
expect 3 "dates.csv, line 2: the time is '2024-05-01'; allowed is a number" "$wisp" evaluate --model base.wisp --data dates.csv
expect 3 "nowhere.wisp" "$wisp" evaluate --model nowhere.wisp --data log.db
echo "not a model" >text.wisp
expect 3 "text.wisp" "$wisp" inspect text.wisp
head -c 70000 base.wisp >cut.wisp
expect 3 "cut.wisp" "$wisp" inspect cut.wisp
printf '1 2 3\n' >bad.txt
expect 3 "bad.txt, line 1" "$wisp" evaluate --model base.wisp --data bad.txt
expect 0 "" "$wisp" inspect --model base.wisp
expect 0 "" "$wisp" inspect base.wisp --verify --json
json 'j["architecture"]["items"] == 480 and j["item_names"] and j["provenance"][0]["epsilon"] is None'
expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --json
json '0 < j["ndcg@10"] < 1 and j["hit@10"] >= j["ndcg@10"] and j["users"] == 60'
expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --backend int8 --json
json '0 < j["ndcg@10"] < 1 and j["users"] == 60'
expect 2 "allowed are simd and int8; XNNPACK's packed weights belong to one thread each" "$wisp" evaluate --model base.wisp --data log.db --backend xnnpack
expect 0 "" "$wisp" recommend --model base.wisp --data log.db --user u00003 --count 4 --json
json 'len(j) == 4 and j[0]["score"] >= j[3]["score"] and j[0]["name"]'
expect 0 "" "$wisp" recommend --model base.wisp --data log.db --user u00003 --count 4 --backend int8 --json
json 'len(j) == 4 and j[0]["score"] >= j[3]["score"] and j[0]["name"]'
expect 2 "allowed are simd, int8 and xnnpack" "$wisp" recommend --model base.wisp --data log.db --user u00003 --backend float
expect 2 "not for --private" "$wisp" recommend --model base.wisp --data log.db --user u00003 --backend int8 --private
expect 2 "u99999" "$wisp" recommend --model base.wisp --data log.db --user u99999

expect 2 "'bagel-sesame', which the model does not have; did you mean bagel-s.* or bagel-.*?" "$wisp" recommend --model base.wisp --history tea-mint,bagel-sesame
expect 2 "did you mean tea-mint or tea-maple?" "$wisp" recommend --model base.wisp --history tea-mint --candidates tea-minty
expect 2 "'xyz', which the model does not have$" "$wisp" recommend --model base.wisp --history xyz
# The examples of the help, for the model that comes along.
expect 0 "" "$wisp" recommend --help
history=$(grep -o -- '--history [^ ]*,[^ ]*' out)
# shellcheck disable=SC2086
expect 0 "" "$wisp" recommend --model base.wisp $history --count 5

# Recipes.
sed 's/"epochs"/"epochz"/' "$root/models/recipes/cafe-device.json" >unknown.json
expect 3 "epochz" "$wisp" train --recipe unknown.json --model base.wisp --data log.db --out o.wisp --ledger l.db
printf '{"training": {"epsilon": 3}}' >misplaced.json
expect 3 "training has the unknown key 'epsilon', allowed are method, .*; 'epsilon' belongs in 'training.optimizer' or 'privacy'$" "$wisp" train --recipe misplaced.json --data log.db --out o.wisp
printf '{"privacy": {"delta": 1e-6, "num_records_public": 3}}' >misplaced.json
expect 3 "'num_records_public' belongs in 'training'$" "$wisp" train --recipe misplaced.json --data log.db --out o.wisp
printf '{"dp_fp": {"classes": ["a", "b"]}}' >misplaced.json
expect 3 "'classes' belongs in 'data'$" "$wisp" classify train --recipe misplaced.json --data log.db --out o.wisp
printf '{"data": {"name": "x", "catalog": "public"}}' >misplaced.json
expect 3 "data has the unknown key 'catalog', allowed are min_user_events, .*, hold_out$" "$wisp" train --recipe misplaced.json --data log.db --out o.wisp
printf '{"data": {"name": "x"}}' >misplaced.json
expect 3 "'name' belongs in the top level$" "$wisp" train --recipe misplaced.json --data log.db --out o.wisp
expect 0 "" python3 "$root/tests/recipe_keys.py" "$wisp" "$root/models/README.md"
sed 's/"expected_batch": [0-9]*/"expected_batch": "many"/' "$root/models/recipes/cafe-device.json" >type.json
expect 3 "expected_batch" "$wisp" train --recipe type.json --model base.wisp --data log.db --out o.wisp --ledger l.db

sed 's/"epsilon": [0-9.]*/"epsilon": 1000/' "$root/models/recipes/cafe-device.json" >absurd.json
expect 3 "1e-06 to 100" "$wisp" train --recipe absurd.json --model base.wisp --data log.db --out o.wisp --ledger l.db
expect 2 "1e-06 to 100" "$wisp" privacy calibrate --epsilon 1000 --delta 1e-5 --q 0.04 --steps 2000

expect 3 "is the recipe of a classifier" "$wisp" train --recipe "$root/models/recipes/sst2-dp-fp.json" --data log.db --out o.wisp
expect 3 "is the recipe of a recommender" "$wisp" classify train --recipe "$root/models/recipes/cafe.json" --data log.db --out o.wisp
echo '{"name": nothing}' >no-json.json
expect 3 "no-json.json: not JSON: parse error at line 1" "$wisp" train --recipe no-json.json --data log.db --out o.wisp
grep -q "json.exception" err && fail "the library's name is in an error: $(cat err)"

# What has no guarantee.
recipe=$root/models/recipes/cafe-device.json
tiny=(--model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1)
small=("${tiny[@]}" --delta 0.001)
expect 4 "ledger" "$wisp" train --recipe "$recipe" "${small[@]}" --out o.wisp
sed 's/"sampling": "poisson"/"sampling": "shuffled"/' "$recipe" >shuffled.json
expect 4 "shuffled" "$wisp" train --recipe shuffled.json "${small[@]}" --out o.wisp --ledger l.db
expect 4 "not below 1 / 60" "$wisp" train --recipe "$recipe" "${tiny[@]}" --delta 0.016666666666666666 --out o.wisp --ledger l.db
expect 4 "cannot be met" "$wisp" train --recipe "$recipe" "${tiny[@]}" --delta 1e-9 --epsilon 0.000001 --out o.wisp --ledger l.db
expect 4 "public" "$wisp" train --recipe "$root/models/recipes/cafe.json" --method phantom --data log.db --out o.wisp --ledger l.db
expect 2 "1e-06 to 100" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 1000 --out o.wisp --ledger l.db
expect 2 "epochs is" "$wisp" train --recipe "$recipe" --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs nan --delta 0.001 --out o.wisp --ledger l.db
[ ! -e o.wisp ] || fail "a refused run left a model behind"
[ ! -e l.db ] || fail "a refused run was charged, or made a ledger"

# Options that would mean nothing are refused; what --rows and a selection need is named.
for option in "--epsilon 1" "--noise-multiplier 1" "--ledger x.db" "--budget 1" "--rows 4" "--re-attention" "--histogram-noise 5" "--privacy-json p.json" "--reproducible-noise 3"; do
  # shellcheck disable=SC2086
  expect 2 "${option%% *} is given, but the method is ordinary, which protects nothing" "$wisp" train --recipe "$recipe" "${small[@]}" --method ordinary $option --out o.wisp
done
expect 2 "choose one" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --noise-multiplier 2 --out o.wisp --ledger x.db
for method in phantom rgp adafest; do
  expect 2 "--rows is given, but the method is $method" "$wisp" train --recipe "$recipe" "${small[@]}" --method $method --rows 4 --out o.wisp --ledger x.db
done
fest=(train --recipe "$recipe" "${small[@]}" --out o.wisp --ledger fest.db --dataset "cafe log" --epsilon 4)
expect 2 "fest with a private selection needs .*--histogram-noise, or privacy.histogram_noise" "$wisp" "${fest[@]}" --method fest --rows 20
expect 2 "adafest+: rows .*--rows, or training.sparse.rows" "$wisp" "${fest[@]}" --method adafest+
expect 2 "--histogram-noise is" "$wisp" "${fest[@]}" --method fest --rows 20 --histogram-noise 0
[ ! -e x.db ] && [ ! -e fest.db ] || fail "a refused run was charged, or made a ledger"
expect 0 "" "$wisp" "${fest[@]}" --method fest --rows 20 --histogram-noise 5
[ "$(sqlite3 fest.db 'select purpose from entries limit 1')" = "item popularity" ] || fail "--histogram-noise releases no histogram"

# A ledger is of one data set, and the file's name is what data is called where no name is given.
paid=$(sqlite3 fest.db 'select count(*) from entries')
for name in "--dataset other" ""; do
  # shellcheck disable=SC2086
  expect 4 "is of the data set 'cafe log', and what is to be charged is '$([ -n "$name" ] && echo other || echo log.db)'" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 1 --out o.wisp --ledger fest.db $name
done
[ "$(sqlite3 fest.db 'select count(*) from entries')" = "$paid" ] || fail "a run on other data was charged"
expect 0 "" "$wisp" inspect o.wisp --json
json 'j["provenance"][-1]["dataset"] == "cafe log"'
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 1 --out o.wisp --ledger fest.db --dataset "cafe log"
expect 0 "" "$wisp" inspect o.wisp --json
json 'j["provenance"][-1]["dataset"] == "cafe log"'
rm -f o.wisp

# What cannot be written is found before anything is charged.
mkdir folder.wisp
for out in nowhere/o.wisp folder.wisp o/; do
  expect "$([ $out = nowhere/o.wisp ] && echo 3 || echo 2)" "${out%/}" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --out $out --ledger unwritten.db
done
for option in --privacy-json --checkpoint; do
  expect 3 "nowhere" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --out o.wisp $option nowhere/p --ledger unwritten.db
done
[ ! -e unwritten.db ] && [ ! -e o.wisp ] || fail "a run whose files cannot be written left something behind"

# A private run, then a budget that is spent.
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --budget 5 --out o.wisp --ledger l.db --privacy-json p.json --json
json 'abs(j["epsilon"] - 4) < 0.01 and j["steps"] == 3'
json 'set(j["not_private"]) == set(j) & {"records", "records_dropped", "seconds", "planned_bytes", "validation", "test"} and "test" in j["not_private"]'
cp p.json out
json 'any("psilon" in k or "psilon" in json.dumps(v) for k, v in j.items())'
expect 4 "nothing was charged" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --out o2.wisp --ledger l.db
[ ! -e o2.wisp ] || fail "a run stopped by its budget left a model behind"
grep -q "this run would bring the data set to epsilon .* at delta 0.001, the limit is 5, spent 3.9" err || fail "a run that does not fit says: $(head -c 300 err)"
[ "$(sqlite3 l.db 'select count(distinct run) from entries')" = 1 ] || fail "a run that does not fit was charged in part"
expect 4 "the budget is to be 3, but epsilon 3.9.* is spent" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --budget 3 --out o2.wisp --ledger l.db
[ "$(sqlite3 l.db 'select count(*) from limits')" = 1 ] || fail "a budget below what is spent was written"
expect 4 "reproducible" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --reproducible-noise 1 --out o2.wisp --ledger l.db
expect 0 "limit raised from 5 to 8" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 0.5 --budget 8 --out o2.wisp --ledger l.db
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 0.1 --budget 7 --out o2.wisp --ledger l.db
grep -q "raised" err && fail "a limit that is lowered is called raised"
expect 0 "" "$wisp" privacy --ledger l.db --delta 0.001
grep -q "epsilon" out || fail "the statement states no epsilon"
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --reproducible-noise 1 --out r.wisp --ledger r.db --privacy-json r.json --json
json 'j["epsilon"] is None'
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --reproducible-noise 1 --out r.wisp --ledger r.db
grep -q "local only, not private, for this device's owner: loss, records, records_dropped, seconds, planned_bytes, test" out || fail "a private run shows figures without a note: $(head -c 300 out)"
expect 0 "" "$wisp" privacy --ledger r.db
grep -q "no guarantee" out || fail "reproducible noise must be called what it is"
expect 4 "use a ledger of its own for experiments" "$wisp" train --recipe "$recipe" "${small[@]}" --epsilon 4 --out o2.wisp --ledger r.db

# Audits: sound mechanisms pass, false claims are refuted with exit code 4.
expect 2 "" "$wisp" audit
for method in phantom rgp; do
  expect 0 "" "$wisp" audit step --method $method --noise-multiplier 1 --observations 1000 --reproducible-noise 3 --confidence 0.999 --json
  json 'not j["refuted"] and 0.3 < j["mu"]["bound"] < j["mu"]["claimed"] == 1 and j["reach"] > 0.8 and len(j["epsilon"]) == 3'
done
for method in fest adafest+; do
  expect 0 "" "$wisp" audit step --method $method --observations 2000 --reproducible-noise 3 --confidence 0.999 --json
  json 'not j["refuted"] and j["mu"]["bound"] > 0.1 and j["reach"] > 0.5'
done
for method in phantom adafest; do
  expect 2 "noise-multiplier is 0, allowed is above 0" "$wisp" audit step --method $method --noise-multiplier 0
done
expect 0 "" "$wisp" audit run --method ordinary
grep -q "nothing was tested: this run trains without a guarantee" out || fail "an audit without a claim: $(cat out)"
expect 0 "" "$wisp" audit run --canaries 100 --users 50 --steps 20 --noise-multiplier 20 --json
json 'not j["refuted"] and 0 < j["claimed"] < 2 and j["guesses"] >= 4'
expect 4 "REFUTED" "$wisp" audit run --method ordinary --claim 1
grep -q "REFUTED, with 95% confidence" out || fail "a refuted run printed $(head -c 300 out)"
expect 4 "ledger" "$wisp" audit run --data log.db --num-records-public 60
expect 0 "" "$wisp" audit run --data log.db --ledger a.db --num-records-public 60 --batch 20 --steps 3 --noise-multiplier 4
grep -q "^charged to a.db like training: 3 steps" out && grep -q "^local only" out || fail "an audit of private data: $(cat out)"
expect 0 "" "$wisp" audit run --recipe "$root/models/recipes/cafe-device.json" --data log.db --ledger b.db --num-records-public 60 --batch 20 --steps 3 --json
json 'j["delta"] == 1e-4 and j["charged_to"] == "b.db" and "bound" in j["not_private"]'
expect 0 "" "$wisp" privacy --ledger a.db --delta 0.001 --json
json 'any("psilon" in k or "psilon" in json.dumps(v) for k, v in j.items())'
json 'j["statement_version"] == 1 and j["created_by"].startswith("wisp ")'
expect 0 "" "$wisp" audit membership --method ordinary --json
json 'j["auc"] > 0.7 and j["members"] == j["non_members"] == 200'
for mode in uniform mixed "non-uniform --mixing 0.4,0.3,0.2,0.1" "mixed --mixing 0.4,0.3,0.2,0.1" base-anchored anchored; do
  expect 0 "" "$wisp" audit decoding --mode $mode --draws 2 --json
  json 'not j["refuted"] and 0.8 * j["claimed"] < j["exact"] <= j["claimed"] + 1e-9'
  json 'j["mode"] == ("anchored" if "anchored" in "'"$mode"'" else "mixed")'
  expect 4 "REFUTED" "$wisp" audit decoding --mode $mode --claim 0.1
  expect 2 "cannot be tested" "$wisp" audit decoding --mode $mode --claim nan
done

# Draws: refused without a ledger or a guarantee, charged while the budget lasts, free for weights that carry a guarantee.
label="synthetic public cafe guests"
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data log.db --epochs 2 --batch 20 --out plain.wisp --json
json 'set(j["not_private"]) == set(j) - {"not_private"}'
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data log.db --epochs 1 --batch 20 --out ordinary.wisp
grep -q "^not private: no guarantee; local only" out || fail "a run that protects nothing does not say so: $(head -c 300 out)"
bare=("$wisp" recommend --model plain.wisp --history tea-mint,bagel-lentil --private --count)
one=("${bare[@]:0:${#bare[@]}-1}" --public-dataset "$label" --count)
draw=("${one[@]}" 4)
expect 4 "needs a ledger" "${draw[@]}" --lambda 1e-3
expect 2 "exactly one of --lambda (mode mixed), --clip (mode anchored)" "${draw[@]}" --ledger d.db
expect 4 "show the data sets '$label', 'log.db', and a ledger pays for one" "${bare[@]}" 4 --ledger d.db --lambda 1e-3
expect 2 "--public-dataset is 'guests', which no provenance here names: its data sets are '$label', 'log.db'" "${bare[@]}" 4 --ledger d.db --lambda 1e-3 --public-dataset guests
expect 4 "base model must be public" "${bare[@]}" 4 --public-dataset log.db --ledger d.db --base base.wisp --clip 0.5
expect 4 "support computed from the private model" "${draw[@]}" --ledger d.db --lambda 1e-3 --support model:20
expect 4 "arg-max" "${draw[@]}" --ledger d.db --lambda 1e-3 --select best
expect 4 "after mixing" "${draw[@]}" --ledger d.db --lambda 1e-3 --after-mixing top-k
expect 2 "private" "$wisp" recommend --model plain.wisp --history tea-mint --lambda 1e-3
target=(--ledger d.db --base base.wisp --epsilon 2 --lifetime 8)
expect 4 "1 / 1000" "${draw[@]}" "${target[@]}" --delta 0.001 --num-records-public 1000
[ ! -e d.db ] || fail "a refused draw was charged, or made a ledger"
expect 0 "" "${draw[@]}" "${target[@]}" --delta 1e-6 --json
json 'len(j["items"]) == 4 and all("score" not in i for i in j["items"]) and j["privacy"]["mode"] == "anchored"'
json 'j["privacy"]["draws_charged"] == 4 and 0 < j["privacy"]["spent"] < 2 and j["privacy"]["limit"]["epsilon"] == 2'
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6 --json
cp out first.json
json '0 < j["accounting"]["epsilon_of_used_part"] < j["accounting"]["epsilon"] and j["accounting"]["composition"] == "plan" and j["accounting"]["draws"]["number"] == 4 and j["accounting"]["draws"]["pure_epsilon"] > 0 and j["accounting"]["parts"][0]["purpose"] == "decoding"'
expect 0 "" "${draw[@]}" "${target[@]}" --delta 1e-6
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6 --json
json 'j["accounting"]["ledger_epsilon"] == json.load(open("first.json"))["accounting"]["ledger_epsilon"] and j["accounting"]["ledger_epsilon"] <= 2'
expect 4 "nothing was charged" "${draw[@]}" "${target[@]}" --delta 1e-6
expect 4 "--dataset is 'other', but draws from plain.wisp show the data set 'log.db'" "${draw[@]}" "${target[@]}" --delta 1e-6 --dataset other
expect 4 "is of the data set 'cafe log', and what is to be charged is 'log.db'" "${draw[@]}" --ledger fest.db --lambda 1e-3
expect 4 "the budget is to be 0.5, but epsilon" "${draw[@]}" "${target[@]}" --delta 1e-6 --budget 0.5
[ "$(sqlite3 d.db 'select count(*) from limits')" = 1 ] || fail "a budget below what is spent was written"
[ ! -s out ] || fail "a refused draw printed $(head -c 300 out)"
expect 0 "" "$wisp" privacy --ledger d.db --delta 1e-6
grep -q "draws alone: 8 draws: pure epsilon .* set by" out && grep -q "the figure was set by" out || fail "the statement says of draws: $(grep draws out)"
expect 0 "limit raised from 2 to 4" "${draw[@]}" "${target[@]}" --delta 1e-6 --budget 4
# A block gives none back; training and draws are one figure.
expect 0 "" "${one[@]}" 1 --ledger o.db --epsilon-per-draw 0.01 --block 50 --json
json 'j["privacy"]["draws_charged"] == 50 and j["privacy"]["mode"] == "mixed" and j["privacy"]["pure_epsilon_per_draw"] <= 0.0100001'
expect 0 "" "${one[@]}" 1 --ledger o.db --epsilon-per-draw 0.01 --block 50
[ "$(sqlite3 o.db 'select group_concat(mechanism) from entries' | grep -o 'steps=50' | wc -l)" = 2 ] || fail "blocks are not charged whole"
before=$(sqlite3 l.db 'select count(*) from entries')
expect 0 "" "$wisp" recommend --model o.wisp --history tea-mint --private --public-dataset "$label" --ledger l.db
grep -q "guarantee for all data that is not declared public: drawing is free post-processing" out || fail "free draws do not say so: $(head -c 300 out)"
[ "$(sqlite3 l.db 'select count(*) from entries')" = "$before" ] || fail "a free draw was charged"
expect 4 "nothing was charged" "${draw[@]}" --ledger l.db --epsilon-per-draw 3
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-4 --draws 100 --delta 1e-6 --json
json 'abs(j["pure"] - 69.3) < 0.1 and abs(j["pld"] - 1.38) < 0.01 and j["rdp"] > j["pld"] and j["set_by"] == "PLD"'
expect 0 "" "$wisp" privacy decoding --calibrate --epsilon 2 --draws 100 --delta 1e-6 --json
json '0 < j["clip"] and 1.99 < j["pld"] <= 2'
expect 0 "" "$wisp" recommend --model o.wisp --history tea-mint --private --public-dataset "$label" --public-dataset log.db
grep -q "is declared public" out && ! grep -q "guarantee" out || fail "data that is all declared public: $(head -c 300 out)"
# Draws that say little of the model, and options that mean nothing, in the words of the options.
expect 0 "99.9 % of the draws are random.*--base" "${draw[@]}" --ledger w.db --lambda 1e-3 --json
json 'abs(j["privacy"]["random_share"] - 0.999) < 1e-12'
grep -q "w.db was charged and has no limit" err || fail "a ledger without a limit is not spoken of: $(cat err)"
expect 0 "" "${draw[@]}" --ledger w.db --lambda 0.9 --budget 1e4 --delta 1e-6
grep -q "^10 % of the draws are random" out && [ ! -s err ] || fail "mixed draws: $(cat out err)"
expect 0 "follow the base model almost entirely" "${draw[@]}" --ledger w.db --base base.wisp --clip 0.1
expect 0 "" "$wisp" privacy decoding --support 10000 --lambda 1e-4 --draws 100 --delta 1e-6 --json
json 'j["random_share"] == 1 - 1e-4 and j["mode"] == "mixed"'
before=$(sqlite3 w.db 'select count(*) from entries')
lifetime=("${draw[@]}" --ledger w.db --delta 1e-6)
expect 2 "--count is 4, but --lifetime allows 3" "${lifetime[@]}" --epsilon 2 --lifetime 3
expect 2 "--block is 9, but --lifetime allows 8" "${lifetime[@]}" --epsilon 2 --lifetime 8 --block 9
expect 2 "--lifetime is 0" "${lifetime[@]}" --epsilon 2 --lifetime 0
expect 2 "1e-06 to 100" "${lifetime[@]}" --epsilon 1000 --lifetime 8
expect 2 "1e-06 to 100" "$wisp" privacy decoding --calibrate --epsilon 1000 --draws 100 --delta 1e-6
expect 2 "--count is 0" "${one[@]}" 0 --ledger w.db --lambda 0.9
expect 2 "--count is 0" "$wisp" recommend --model plain.wisp --history tea-mint --count 0
expect 2 "--clip is of the mode anchored.*--lambda" "${draw[@]}" --ledger w.db --clip 0.5
expect 2 "--lambda is of the mode mixed" "${draw[@]}" --ledger w.db --base base.wisp --lambda 0.5
expect 2 "--mode anchored needs --base" "${draw[@]}" --ledger w.db --mode anchored --clip 0.5
expect 2 "lambda is 1.5" "${draw[@]}" --ledger w.db --lambda 1.5
expect 2 "lambda is -1" "${draw[@]}" --ledger w.db --lambda -1
expect 4 "nothing is mixed in" "${draw[@]}" --ledger w.db --lambda 1
expect 2 "clip is 0" "${draw[@]}" --ledger w.db --base base.wisp --public-dataset "$label" --clip 0
expect 2 "not both" "$wisp" recommend --model plain.wisp --data log.db --user u00003 --history tea-mint
expect 0 "--allow-seen" "${one[@]}" 1 --ledger w.db --lambda 0.9 --candidates tea-mint
expect 0 "nothing is left" "$wisp" recommend --model plain.wisp --history tea-mint --candidates tea-mint
[ "$(sqlite3 w.db 'select count(*) from entries')" = "$before" ] || fail "a refused draw was charged"
expect 0 "" "$wisp" recommend --model plain.wisp --history " tea-mint , bagel-lentil" --json
cp out blanks.json
expect 0 "" "$wisp" recommend --model plain.wisp --history tea-mint,bagel-lentil --json
cmp -s out blanks.json || fail "blanks around the items of a history change the answer"
# A budget that is spent, in words: one draw of epsilon 0.9 fits into 1, 4 do not.
expect 4 "does not allow 4 draws: one costs epsilon 0.9 at delta 0, spent on this data is epsilon 0, the limit is epsilon 1 at delta 1e-06; 1 more would fit" \
  "${draw[@]}" --ledger words.db --epsilon-per-draw 0.9 --budget 1 --delta 1e-6
expect 0 "" "${one[@]}" 1 --ledger words.db --epsilon-per-draw 0.9
expect 4 "no more draw fits: nothing was charged" "${one[@]}" 1 --ledger words.db --epsilon-per-draw 0.9
[ "$(sqlite3 words.db 'select count(*) from entries')" = 1 ] || fail "a draw beyond the budget was charged"
cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/private_recommend.c" -o private_recommend -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test of draws: $(head -c 300 err)"
expect 0 "" ./private_recommend plain.wisp base.wisp p.db "$label"

# A run that is stopped and goes on gives the same model, bit for bit.
resume=(train --recipe "$root/models/recipes/cafe.json" --data log.db --epochs 60 --batch 20 --threads 2)
expect 0 "" "$wisp" "${resume[@]}" --out whole.wisp
"$wisp" "${resume[@]}" --out part.wisp --checkpoint run.ckpt >out 2>err &
pid=$!
for _ in $(seq 200); do [ -e run.ckpt ] && break; sleep 0.02; done
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
expect 0 "" "$wisp" "${resume[@]}" --out part.wisp --checkpoint run.ckpt
cmp -s whole.wisp part.wisp || fail "a resumed run gives another model"

# Classifiers: a tiny task of two words for each class, in the three modes.
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
{"name": "tiny", "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16, "attend": "all"},
 "initialisation": {"table_deviation": 0.5},
 "training": {"epochs": 6, "expected_batch": 200, "num_records_public": 400, "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
 "dp_fp": {"mode": "aggregate", "micro_batches": 2, "paper": {"noise_multiplier": 0.5}, "encoder": {"noise_multiplier": 1}},
 "privacy": {"noise_multiplier": 1, "delta": 0.001, "steps_per_charge": 12},
 "data": {"catalogue": "public", "classes": ["bad", "good"]}}
JSON
classify=(classify train --recipe tiny.json --data train.txt --out texts.wisp --threads 1)
expect 4 "ledger" "$wisp" "${classify[@]}"
sed 's/"catalogue": "public", //' tiny.json >private-words.json
expect 4 "vocabulary" "$wisp" classify train --recipe private-words.json --data train.txt --out texts.wisp --ledger texts.db
sed 's/"micro_batches"/"micro_batchez"/' tiny.json >unknown-key.json
expect 3 "micro_batchez" "$wisp" classify train --recipe unknown-key.json --data train.txt --out texts.wisp --ledger texts.db
for guarantee in "--ledger texts.db" "--epsilon 4" "--budget 4" "--delta 0.001"; do
  # shellcheck disable=SC2086
  expect 4 "no differential privacy guarantee" "$wisp" "${classify[@]}" --mode paper $guarantee
done
sed 's/"mode": "aggregate"/"mode": "paper"/' tiny.json >paper-goal.json
expect 4 "mode paper with a goal" "$wisp" classify train --recipe paper-goal.json --data train.txt --out texts.wisp
printf 'good\ta\nugly\tb\n' >bad-label.txt
expect 3 "bad-label.txt, line 2" "$wisp" classify train --recipe tiny.json --mode paper --data bad-label.txt --out texts.wisp
awk -F '\t' '{ print $2 "\t" $1 }' train.txt >swapped.txt
expect 3 "look swapped.*the label comes first" "$wisp" classify train --recipe tiny.json --mode paper --data swapped.txt --out texts.wisp
for epochs in nan -1; do
  expect 2 "epochs is" "$wisp" "${classify[@]}" --ledger epochs.db --epochs=$epochs
done
expect 3 "nowhere" "$wisp" classify train --recipe tiny.json --data train.txt --out nowhere/t.wisp --ledger texts.db
expect 2 "choose one" "$wisp" "${classify[@]}" --epsilon 4 --noise-multiplier 1 --ledger texts.db
[ ! -e texts.wisp ] && [ ! -e texts.db ] || fail "a refused classifier left something behind"
(echo "verdict,review"; awk -F '\t' '{ print $1 "," $2 }' train.txt) >columns.csv
expect 0 "" "$wisp" classify train --recipe tiny.json --data columns.csv --text-column review --label-column verdict --out columns.wisp --ledger columns.db
expect 0 "" "$wisp" "${classify[@]}" --ledger texts.db --json
json 'j["mode"] == "aggregate" and j["epsilon"] > 0 and j["steps"] == 12 and "no_guarantee" not in j'
json 'j["not_private"] == ["records", "records_dropped", "seconds"]'
expect 0 "" "$wisp" inspect texts.wisp --memory --recipe tiny.json --records 400 --threads 1 --json
json 'j["training"]["mode"] == "aggregate" and j["training"]["total"] > j["training"]["activations"] > 0 and 200 < j["training"]["records_at_most"] < 400'
expect 0 "" "$wisp" inspect texts.wisp --memory --recipe tiny.json --records 400
grep -q "exact while" out || fail "inspect --memory of a classifier does not say what it holds for: $(tail -n 2 out)"
expect 2 "is a classifier" "$wisp" inspect texts.wisp --memory --method phantom
expect 2 "is a classifier.* --backend" "$wisp" inspect texts.wisp --memory --recipe tiny.json --backend int8
expect 2 "is a classifier, .*give --recipe" "$wisp" inspect texts.wisp --memory
expect 0 "" "$wisp" inspect texts.wisp --memory --recipe tiny.json --threads 1 --json
json 'j["training"]["records"] == j["training"]["num_records_public"] == 400 and 200 < j["training"]["records_at_most"] < 400'
expect 0 "" "$wisp" inspect texts.wisp --memory --recipe tiny.json --num-records-public 800 --records 400 --json
json 'j["training"]["num_records_public"] == 800 and 100 < j["training"]["records_at_most"] < 200'
expect 2 "expected_batch is 200, more than the 199 records" "$wisp" inspect texts.wisp --memory --recipe tiny.json --num-records-public 199
sed 's/"num_records_public": 400, //' tiny.json >uncounted.json
expect 2 "which needs --records" "$wisp" inspect texts.wisp --memory --recipe uncounted.json
expect 0 "" "$wisp" privacy --ledger texts.db --delta 0.001
grep -q "24 steps" out && grep -q "one interaction" out || fail "the ledger's statement does not name the releases"
expect 0 "" "$wisp" inspect texts.wisp --verify --json
json 'j["classifier"]["class_names"] == ["bad", "good"] and j["classifier"]["norm_bound"] == 1 and j["provenance"][0]["epsilon"] > 0 and j["architecture"]["items"] == 9'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data test.txt --json
json 'j["records"] > 100 and 0 <= j["accuracy"] <= 1 and j["unknown_tokens"] == 0'
expect 3 "is a classifier" "$wisp" recommend --model texts.wisp --history film
expect 3 "is no classifier" "$wisp" classify predict --model base.wisp --text film
expect 0 "" "$wisp" "${classify[@]}" --mode clipped --base texts.wisp --ledger texts.db --json
json 'j["mode"] == "clipped" and j["encoder_noise_multiplier"] == 1 and j["epsilon"] > 0'
expect 0 "" "$wisp" inspect texts.wisp --json
json 'len(j["provenance"]) == 2 and len(j["provenance"][1]["mechanisms"]) == 2'
before=$(sqlite3 texts.db 'select count(*) from limits')
expect 4 "1 / 400" "$wisp" "${classify[@]}" --ledger texts.db --budget 50 --delta 0.0025
[ "$(sqlite3 texts.db 'select count(*) from limits')" = "$before" ] || fail "a refused run set a limit"
expect 0 "" "$wisp" "${classify[@]}" --mode paper --json
json '"guarantee" in j["no_guarantee"] and "epsilon" not in j and "delta" not in j'
expect 0 "" "$wisp" "${classify[@]}" --mode paper --epochs 30 --reproducible-noise 3
grep -qi "epsilon" out && fail "mode paper speaks of an epsilon"
expect 0 "" "$wisp" inspect texts.wisp --json
json 'j["provenance"][0]["epsilon"] is None and j["provenance"][0]["mechanisms"] == [] and "no differential" in j["provenance"][0]["description"]'
expect 0 "" "$wisp" classify evaluate --model texts.wisp --data test.txt --json
json 'j["accuracy"] > 0.9'
# What the paper claims for a step falls to steps that are really taken; the default mode stands.
expect 4 "REFUTED" "$wisp" audit step --recipe tiny.json --method paper --noise-multiplier 20 --observations 300 --json
json 'j["refuted"] and j["epsilon"][0]["claimed"] < 0.3 < j["epsilon"][0]["bound_by_rows"] and "no_guarantee" in j'
expect 0 "" "$wisp" audit step --recipe tiny.json --observations 40
grep -q "^not refuted" out && grep -q "all of the records a step" out || fail "a sound step of DP-FP: $(head -c 300 out)"
expect 0 "" "$wisp" audit step --recipe tiny.json --observations 4
grep -q "bounds of 0 say that this attack saw nothing" out || fail "bounds of 0 are not explained: $(head -c 500 out)"
expect 2 "aggregate, clipped and paper" "$wisp" audit step --recipe tiny.json --method phantom
# No epsilon for a head on an encoder that shows the same texts.
expect 4 "without a guarantee" "$wisp" classify train --recipe tiny.json --data train.txt --base texts.wisp --out again.wisp --ledger texts.db
expect 4 "is of the data set 'train.txt'" "$wisp" classify train --recipe tiny.json --data train.txt --dataset other --base texts.wisp --out again.wisp --ledger texts.db
expect 0 "" "$wisp" classify train --recipe tiny.json --data train.txt --dataset other --base texts.wisp --out again.wisp --ledger other.db
grep -q "of this run alone; of the weights it began with: .*states no epsilon" out || fail "an epsilon is shown without what it leaves out: $(head -c 300 out)"
expect 0 "" "$wisp" classify predict --model texts.wisp --text "the film is GREAT" --text "the film is dull" --json
json 'j[0]["class"] == "good" and j[1]["class"] == "bad" and j[0]["probability"] > 0.5'

# The README's example compiles as it stands, and its three command lines hold where they say: in the repository's root. The programs
# find the library from elsewhere too.
mkdir -p checkout/build
ln -s "$root/ports" "$root/models" checkout
ln -s "$build" checkout/build/release
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/README.md" >checkout/main.c
cc -std=c11 -Wall -Wextra -Werror -I"$build/include" checkout/main.c -o readme -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the README's example: $(head -c 300 err)"
cp log.db checkout/log.db
grep -E '^    (gcc|\./example)' "$root/README.md" >commands
[ "$(grep -c . commands)" = 3 ] || fail "the README has $(grep -c . commands) lines that compile or run the C programs, not 3"
while read -r command; do
  expect 0 "" sh -c "cd checkout && $command"
  [ -s out ] || [[ $command != *./* ]] || fail "$command prints nothing"
done <commands
expect 0 "" sh -c 'cp -r "$1/models" elsewhere && mkdir -p a && cp log.db a && cp -r elsewhere a/models && cd a && ../checkout/main' sh "$root"

# The C example: the main job through the C interface.
expect 0 "epsilon so far" "$build/wisp_example" base.wisp log.db c.db c.wisp u00003 8
grep -q "after" out && grep -q "Privacy statement" out || fail "the C example printed $(head -c 300 out)"

# What it refuses before anything is spent.
cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/personalise_refused.c" -o personalise_refused -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test of refusals: $(head -c 300 err)"
"$wisp" export base.wisp --out base.safetensors >/dev/null 2>&1 && "$wisp" convert base.safetensors --out imported.wisp >/dev/null 2>&1 || fail "the model does not go to safetensors and back"
expect 0 "" ./personalise_refused base.wisp "$PWD/log.db" c.db imported.wisp ordinary.wisp c.wisp
[ ! -e refused.wisp ] && [ ! -e unpaid.db ] || fail "a refused personalisation left a model behind"

# Memory is known before a run: what is planned is what the run says, and the C interface says the same. There an app lends its threads.
expect 0 "" "$wisp" train --recipe "$recipe" "${small[@]}" --reproducible-noise 1 --threads 2 --out held.wisp --ledger held.db --json
read -r held records < <(python3 -c 'import json; j = json.load(open("out")); print(j["planned_bytes"], j["records"])')
expect 0 "" "$wisp" inspect held.wisp --memory --method phantom --threads 2 --records "$records" --json
json 'j["training"]["total"] == '"$held"' and all(p["total"] == sum(v for k, v in p.items() if k not in ("total", "file_mapped", "threads", "method", "backend", "records")) for p in j.values())'
# Of every method: what its run says, before the first step.
cat >methods.txt <<'END'
rgp --rank 3
fest --rows 90
adafest --noise-multiplier 1 --batch 32
adafest+ --noise-multiplier 1 --batch 32 --rows 90
END
while read -r method rest; do
  rows=
  [[ $rest != *rows* ]] || rows="--rows 90 --histogram-noise 5"
  python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); r["training"]["rgp"] = {"rank": 3}; json.dump(r, open("method.json", "w"))' "$recipe"
  expect 0 "" "$wisp" train --recipe method.json "${small[@]}" --method $method $rows --reproducible-noise 1 --threads 2 --out held.wisp --ledger "held-$method.db" --json
  held=$(python3 -c 'import json; print(json.load(open("out"))["planned_bytes"])')
  expect 0 "" "$wisp" inspect held.wisp --memory --method $method $rest --threads 2 --records "$records" --json
  json 'j["training"]["total"] == '"$held"' and ("growth_at_most" in j["training"]) == ("'$method'".startswith("adafest"))'
  expect 0 "" "$wisp" inspect held.wisp --memory --recipe method.json --method $method $rest --threads 2 --records "$records"
  grep -q "gradient_sums" out || fail "inspect --memory --method $method printed $(head -c 300 out)"
done <methods.txt
grep -q "records_at_most" out && grep -q "1e-12" out || fail "inspect --memory does not say what its bound holds for: $(tail -n 3 out)"
expect 0 "" "$wisp" inspect held.wisp --memory
grep -q "activations" out && grep -q "not copied" out || fail "inspect --memory printed $(head -c 300 out)"
expect 2 "memory" "$wisp" inspect held.wisp --method phantom
expect 2 "rank is 1000, allowed are 1 to" "$wisp" inspect held.wisp --memory --method rgp --rank 1000
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); r["training"]["rgp"] = {p: "full" for p in ("item_tables", "positions", "matrices", "vectors")}; json.dump(r, open("full.json", "w"))' "$recipe"
expect 2 "rank is 4294967295, allowed are 1 to 8192" "$wisp" inspect held.wisp --memory --recipe full.json --method rgp --rank 4294967295
expect 2 "the method is not rgp" "$wisp" inspect held.wisp --memory --method phantom --rank 2
expect 2 "^wisp: --batch is given" "$wisp" inspect held.wisp --memory --method phantom --batch 32
expect 2 "^wisp: --noise-multiplier is given" "$wisp" inspect held.wisp --memory --method rgp --noise-multiplier 1
expect 2 "expected_batch is 61, more than the 60" "$wisp" inspect held.wisp --memory --method adafest --noise-multiplier 1 --batch 61 --records 60
for figure in "--rank 3" "--rows 9" "--batch 32" "--noise-multiplier 1" "--records 60" "--num-records-public 60"; do
  expect 2 "need --method or --recipe" "$wisp" inspect held.wisp --memory $figure
done
expect 2 "need --rows" "$wisp" inspect held.wisp --memory --method fest
expect 2 "neither fest nor adafest+" "$wisp" inspect held.wisp --memory --method adafest --rows 9
expect 2 "need --noise-multiplier" "$wisp" inspect held.wisp --memory --method adafest --records 60
expect 2 "need --records" "$wisp" inspect held.wisp --memory --method adafest --noise-multiplier 1
# Values out of range are named, whatever the method and the recipe.
for figure in "--batch 0" "--records 0" "--num-records-public 0" "--noise-multiplier 0" "--noise-multiplier=-1"; do
  expect 2 "^wisp: ${figure/[= ]*/} is ${figure##*[= ]}, allowed are" "$wisp" inspect held.wisp --memory --recipe method.json --method adafest $figure
done
# How many records there are, and may be known of, comes from the recipe where it is not said.
python3 -c 'import json; r = json.load(open("method.json")); r["training"]["num_records_public"] = 6040; r["training"]["expected_batch"] = 600; json.dump(r, open("known.json", "w"))'
known=("$wisp" inspect held.wisp --memory --recipe known.json --method adafest --noise-multiplier 1 --json)
expect 0 "" "${known[@]}"
json 'j["training"]["records"] == j["training"]["num_records_public"] == 6040 and 600 < j["training"]["records_at_most"] < 1200'
expect 0 "" "${known[@]}" --records 600 --num-records-public 600
json 'j["training"]["num_records_public"] == j["training"]["records_at_most"] == 600'
expect 0 "" "${known[@]}" --num-records-public 3000
json 'j["training"]["records"] == j["training"]["num_records_public"] == 3000'
expect 2 "expected_batch is 600, more than the 599 records" "${known[@]}" --num-records-public 599
expect 2 "^wisp: --num-records-public is given, but" "$wisp" inspect held.wisp --memory --method phantom --num-records-public 60
expect 0 "" "$wisp" inspect held.wisp --memory --recipe known.json --method phantom --threads 2 --json
json 'j["training"]["records"] == 6040 and j["training"]["lists"] == 6040 * 12'
cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/lent_threads.c" -o lent_threads -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test of lent threads: $(head -c 300 err)"
expect 0 "" ./lent_threads base.wisp log.db lent.db lent.wisp
mv out lent.txt
expect 0 "" "$wisp" inspect base.wisp --memory --method phantom --threads 3 --records 60 --json
json '[str(j["inference"]["total"]), str(j["training"]["total"])] == open("lent.txt").read().split()'
# What C copies of keys and names: a string each, and what does not fit into one.
json 'j["inference"]["names"] >= 2 * 480 * 24 and j["inference"]["total"] == sum(j["inference"][p] for p in ("activations", "packed_weights", "scores", "names"))'
expect 0 "" "$wisp" inspect base.wisp --memory
grep -qE "^  names +[0-9]{5}" out && grep -q "which the C interface copies" out || fail "inspect --memory leaves out the names: $(cat out)"

# Tables of 16-bit numbers: half their room, and the model it was, with its guarantee; everything reads them, C too.
expect 2 "'f8', allowed is f16" "$wisp" compress o.wisp --out small.wisp --tables f8
expect 3 "text.wisp" "$wisp" compress text.wisp --out small.wisp
[ ! -e small.wisp ] || fail "a refused compress left a model behind"
expect 0 "" "$wisp" compress o.wisp --out small.wisp --tables f16 --json
json 'j["bytes"] < 0.85 * j["bytes_before"] and 0 < j["largest_rounding"] < 0.002'
expect 2 "small.wisp: its tables are f16 already" "$wisp" compress small.wisp --out smaller.wisp
expect 0 "" "$wisp" inspect small.wisp
grep -qE "item_embedding +480 x [0-9]+ +f16" out && grep -qE "block0.qkv.weight .* f32" out || fail "inspect shows no element types: $(cat out)"
"$wisp" inspect o.wisp --verify --json >whole.json && expect 0 "" "$wisp" inspect small.wisp --verify --json
json '(lambda w: all(j[k] == w[k] for k in w if k not in ("file", "bytes", "hash", "description", "tensors")) and j["provenance"][-1]["epsilon"] is not None)(json.load(open("whole.json")))'
json '"f16 by wisp compress" in j["description"] and j["tensors"][0]["type"] == "f16" and j["tensors"][0]["bytes"] == 2 * j["tensors"][0]["rows"] * j["tensors"][0]["columns"]'
json 'j["tensors"][2]["type"] == "f32" and sum(t["bytes"] for t in j["tensors"]) < j["bytes"]'
for backend in simd int8; do
  "$wisp" recommend --model o.wisp --data log.db --user u00003 --count 3 --backend $backend --json >whole.json
  expect 0 "" "$wisp" recommend --model small.wisp --data log.db --user u00003 --count 3 --backend $backend --json
  json '(lambda w: len(j) == 3 and all(a["name"] == b["name"] and abs(a["score"] - b["score"]) < 0.05 for a, b in zip(j, w)))(json.load(open("whole.json")))'
  "$wisp" evaluate --model o.wisp --data log.db --backend $backend --json >whole.json
  expect 0 "" "$wisp" evaluate --model small.wisp --data log.db --backend $backend --json
  json 'abs(j["ndcg@10"] - json.load(open("whole.json"))["ndcg@10"]) < 0.02'
done
expect 0 "" "$wisp" inspect small.wisp --memory --json
cp out small.json && expect 0 "" "$wisp" inspect o.wisp --memory --json
json 'json.load(open("small.json"))["inference"]["packed_weights"] < j["inference"]["packed_weights"]'
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model small.wisp --data log.db --epochs 1 --batch 20 --out from-small.wisp
expect 0 "" "$wisp" audit step --model small.wisp --recipe "$recipe" --method phantom --noise-multiplier 1 --observations 500 --reproducible-noise 3 --confidence 0.999
expect 0 "" "$wisp" export small.wisp --out small.safetensors
expect 0 "" "$wisp" bench --what score --model small.wisp --repeats 1 --json
expect 0 "" "$wisp" compress texts.wisp --out small-texts.wisp
expect 0 "" "$wisp" classify predict --model small-texts.wisp --text "the film is GREAT" --text "the film is dull" --json
json 'j[0]["class"] == "good" and j[1]["class"] == "bad"'
expect 0 "" "$wisp" classify evaluate --model small-texts.wisp --data train.txt --json
expect 0 "" "$wisp" compress base.wisp --out small-base.wisp
expect 0 "epsilon so far" "$build/wisp_example" small-base.wisp log.db s.db s.wisp u00003 8
grep -q "after" out || fail "the C example printed $(head -c 300 out)"
expect 0 "" ./lent_threads small-base.wisp log.db lent-small.db lent.wisp
mv out lent.txt
expect 0 "" "$wisp" inspect small-base.wisp --memory --json
json 'str(j["inference"]["total"]) == open("lent.txt").read().split()[0]'
# Several histories at once, in C.
cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/recommend_batch.c" -o recommend_batch -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test of batches: $(head -c 300 err)"
expect 0 "" ./recommend_batch base.wisp
# A backend is chosen in C as on the command line, score for score.
cc -std=c11 -Wall -Wextra -Werror -I"$root" "$root/tests/open_with.c" -o open_with -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || fail "the C test of backends: $(head -c 300 err)"
expect 0 "" ./open_with base.wisp plain.wisp backends.db "$label"
[ ! -e backends.db ] || fail "a refused recommender left a ledger behind"
cp out backends.txt
# So is what it takes; what the build lacks is refused in the words of the runtime.
expect 0 "" "$wisp" inspect base.wisp --memory --threads 1 --json
cp out whole.json
for backend in simd int8 xnnpack; do
  if grep -q "^$backend:none" backends.txt; then
    expect 3 "$([ $backend = int8 ] && echo 'no 8-bit kernels' || echo 'has no XNNPACK')" "$wisp" inspect base.wisp --memory --backend $backend
    continue
  fi
  expect 0 "" "$wisp" inspect base.wisp --memory --threads 1 --backend $backend --json
  json 'j["inference"]["backend"] == "'$backend'" and ("batch_of_32" in j) == ("'$backend'" != "xnnpack") and (j == json.load(open("whole.json"))) == ("'$backend'" == "simd")'
done
expect 2 "allowed are simd, int8 and xnnpack" "$wisp" inspect base.wisp --memory --backend int4
expect 2 "memory" "$wisp" inspect base.wisp --backend int8
for line in $(grep -v none backends.txt); do
  IFS=: read -r backend history scores <<<"$line"
  expect 0 "" "$wisp" recommend --model base.wisp --history "$history" --count 5 --backend "$backend" --json
  json '[i["item"] + "=%.9g" % i["score"] for i in j] == "'"$scores"'".split(",")'
done
expect 0 "" "$wisp" bench --what score --length 20 --items 300 --repeats 1 --threads 2 --json
json 'all(0 < j["batch"][b]["histories_per_s"]["median"] for b in ("1", "8", "32")) and j["batch"]["threads"] == 2'

# The encoder, its weights and what it computed.
expect 0 "" "$wisp" bench --what encoder --items 50 --repeats 1 --tensors encoder.safetensors --json
json 'j["encoder"]["ms"]["median"] > 0 and j["encoder"]["planned_bytes"] > j["encoder"]["planned_bytes_int8"]'
[ -s encoder.safetensors ] || fail "bench --tensors wrote nothing"
expect 0 "" "$wisp" bench --what ops --length 20 --items 300 --repeats 2 --json
python3 -c 'import json; first, *ops = map(json.loads, open("out")); assert first["memory_gb_per_s"] > 0 and {o["op"] for o in ops} >= {"linear_forward", "attention_backward", "adam", "top_k"} and all(o["percent_of_roof"]["median"] > 0 for o in ops)' || fail "bench --what ops printed $(head -c 300 out)"
# An option that the bench does not read is refused; a peak is of processors, not of threads that wait for them.
expect 2 "--tensors is of --what encoder; --what score does not read it" "$wisp" bench --what score --tensors x.safetensors
expect 2 "--batch is of --what all, clipping, sparse, train; --what score does not" "$wisp" bench --what score --batch 4
expect 2 "--threads is of .*; --what ops does not" "$wisp" bench --what ops --threads 2
expect 0 "there are $(nproc) processors" "$wisp" bench --what train --length 10 --items 100 --batch 8 --repeats 1 --threads $((4 * $(nproc))) --json
json 'j["training"]["threads"] == 4 * '"$(nproc)"' and j["training"]["threads_in_peak"] == '"$(nproc)"

finish
