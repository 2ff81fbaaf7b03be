#!/usr/bin/env bash
# The logs and models that the program reads, its words about others, and its recommendations from them.
#   tests/cli_data.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

expect 0 "" "$wisp" synth --out same.db --population device --users 60 --seed 3 --json
json 'j["users"] == 60 and j["items"] == 480'
for log in log.txt log.csv log.tsv log.inter; do
  expect 0 "" "$wisp" synth --out $log --population device --users 60 --seed 3
  expect 0 "" "$wisp" evaluate --model base.wisp --data $log
  [ -s err ] && fail "reading $log warns: $(cat err)"
  sort out >"$log.quality"
  cmp -s log.txt.quality "$log.quality" || fail "$log is read as another log: $(cat out)"
done
[ "$(head -n 1 log.csv)" = "user,item,time" ] || fail "log.csv begins with $(head -n 1 log.csv)"
evaluate=("$wisp" evaluate --model base.wisp --data)
separator="the header is one column, 'user;item;time'; the separator seems to be ';'; allowed are ','"
tr ',' ';' <log.csv >semicolons.csv
expect 3 "semicolons.csv, line 1: $separator" "${evaluate[@]}" semicolons.csv
times="no column 'time' or 'timestamp'; the columns are 'user', 'item'; --time-column says which it is; times are needed, as numbers such as seconds"
cut -d , -f 1,2 log.csv >timeless.csv
expect 3 "$times" "${evaluate[@]}" timeless.csv
printf 'user,item,time\na,tea-mint,01.05.2024\n' >dates.csv
expect 3 "dates.csv, line 2: the time is '01.05.2024'; allowed is a number .* or a date of ISO 8601" "${evaluate[@]}" dates.csv
# For a table of another program, each sentence names the next missing option, until it reads as a log.
sqlite3 shop.db "create table orders(who, what, at); insert into orders values('a', 'tea-mint', 1795771800)"
expect 3 "there is no table 'events' in it. Events of another table can be imported into a log of its own" "$wisp" log count shop.db
shop=("$wisp" log import shop-log.db --data shop.db)
expect 3 "the tables are 'orders'; --table says which it is" "${shop[@]}"
shop+=(--table orders)
for option in user=who item=what time=at; do
  expect 3 "no column '${option%=*}' or .* the columns are 'who', 'what', 'at'; --${option%=*}-column says which it is" "${shop[@]}"
  shop+=("--${option%=*}-column" "${option#*=}")
done
expect 0 "" "${shop[@]}"
# A log with dates for its times is the same log.
python3 - <<'PY'
import csv, datetime
with open("log.csv") as numbers, open("iso.csv", "w", newline="") as out:
    rows, dates = csv.DictReader(numbers), csv.writer(out)
    dates.writerow(["user", "item", "time"])
    for row in rows:
        dates.writerow([row["user"], row["item"], datetime.datetime.fromtimestamp(int(float(row["time"])), datetime.timezone.utc).isoformat()])
PY
expect 0 "" "${evaluate[@]}" iso.csv
sort out | cmp -s log.txt.quality - || fail "dates are read as another log: $(cat out)"
[ "$(stat -c %a log.db)" = 600 ] || fail "a log can be read by others: $(stat -c %a log.db)"
expect 3 "nowhere.wisp" "$wisp" evaluate --model nowhere.wisp --data log.db
echo "not a model" >text.wisp
expect 3 "text.wisp" "$wisp" inspect text.wisp
head -c 70000 base.wisp >cut.wisp
expect 3 "cut.wisp" "$wisp" inspect cut.wisp
printf '1 2 3\n' >bad.txt
expect 3 "bad.txt, line 1" "${evaluate[@]}" bad.txt
expect 0 "" "$wisp" inspect --model base.wisp
expect 0 "" "$wisp" inspect base.wisp --verify --json
json 'j["architecture"]["items"] == 480 and j["item_names"] and j["provenance"][0]["epsilon"] is None'
expect 0 "" "${evaluate[@]}" log.db --json
json '0 < j["ndcg@10"] < 1 and j["hit@10"] >= j["ndcg@10"] and j["users"] == 60'
expect 0 "" "${evaluate[@]}" log.db --backend int8 --json
json '0 < j["ndcg@10"] < 1 and j["users"] == 60'
expect 2 "allowed are simd and int8; XNNPACK's packed weights belong to one thread each" \
  "${evaluate[@]}" log.db --backend xnnpack

recommend=("$wisp" recommend --model base.wisp)
guest=("${recommend[@]}" --data log.db --user u00003)
expect 0 "" "${guest[@]}" --count 4 --json
json 'len(j) == 4 and j[0]["score"] >= j[3]["score"] and j[0]["name"]'
expect 0 "" "${guest[@]}" --count 4 --backend int8 --json
json 'len(j) == 4 and j[0]["score"] >= j[3]["score"] and j[0]["name"]'
expect 2 "allowed are simd, int8 and xnnpack" "${guest[@]}" --backend float
expect 2 "not for --private" "${guest[@]}" --backend int8 --private
expect 2 "u99999" "${recommend[@]}" --data log.db --user u99999

expect 2 "'bagel-sesame', which the model does not have; did you mean bagel-s.* or bagel-.*?" \
  "${recommend[@]}" --history tea-mint,bagel-sesame
expect 2 "did you mean tea-mint or tea-maple?" "${recommend[@]}" --history tea-mint --candidates tea-minty
expect 2 "'xyz', which the model does not have$" "${recommend[@]}" --history xyz
# A value that is as a whole an item's key is that item, even with commas, and an option may be given several times.
printf 'tea, hot\tTea\n\xc5\xbburek\t\xc5\xbburek\nsoup\tSoup\n' >comma.tsv
expect 0 "" "$wisp" catalogue add --model base.wisp --items comma.tsv --out comma.wisp
several=("$wisp" recommend --model comma.wisp --allow-seen --json)
expect 0 "names 1 item that no run has trained yet, the first 'tea, hot'" "${several[@]}" --history "tea, hot" --history tea-mint,bagel-lentil
mv out before
expect 0 "" "${several[@]}" --history tea-mint --history bagel-lentil
cmp -s out before || fail "an option that is given twice is not what commas say"
expect 0 "" "${several[@]}" --history bagel-lentil,tea-mint
cmp -s out before && fail "the order of an option that is given twice is lost"
expect 0 "names 2 items" "${several[@]}" --history tea-mint --candidates "tea, hot" --candidates soup,bagel-lentil
json '[i["item"] for i in j] == ["bagel-lentil"]'
expect 2 "--history is ',', which names no item" "${several[@]}" --history ,
# Letters of every script are kept, and columns are aligned.
{ cat log.txt; printf 'u00003 \xc5\xbburek\n'; } >script.txt
expect 0 $'the first is \'\xc5\xbburek\'' "${evaluate[@]}" script.txt
"$wisp" catalogue list --model base.wisp | python3 -c '
import sys
for n, line in enumerate(sys.stdin):
    print(line.split("\t")[0], ("\u017burek", "cafe\u0301", "Tea", "\u62b9\u8336")[n % 4] + f" {n}", sep="\t")' >names.tsv
expect 0 "" "$wisp" new --recipe "$public_recipe" --data log.db --catalogue public --item-names names.tsv --out named.wisp
expect 0 "" "$wisp" recommend --model named.wisp --history tea-mint --count 40
python3 - <<'PY' || fail "columns of a list shift: $(head -n 5 out)"
import unicodedata
cells = lambda text: sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
lines = open("out", encoding="utf-8").read().splitlines()
assert len(lines) == 40 and len({cells(line) for line in lines}) == 1, {cells(line) for line in lines}
PY
# The help's examples work with the shipped model.
expect 0 "" "$wisp" recommend --help
history=$(grep -o -- '--history [^ ]*,[^ ]*' out)
# shellcheck disable=SC2086
expect 0 "" "${recommend[@]}" $history --count 5

finish
