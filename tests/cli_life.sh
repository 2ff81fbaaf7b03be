#!/usr/bin/env bash
# The program's deployments: a plan is made once and before the first look, training sessions follow it and stop at its
# end, and the log is maintained.
#   tests/cli_life.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.db --population device --users 300 --seed 3 >out 2>err || fail "synth"
plan=("$wisp" plan --data log.db --model base.wisp --epsilon 4 --num-records-public 300 --unit user --typical-events 26)

expect 2 "wisp plan needs --epsilon, --unit (what one record is, .*), --num-records-public and --for; missing is --for;" "${plan[@]}"
expect 2 "missing is --epsilon, --num-records-public;" "$wisp" plan --data log.db --model base.wisp --unit user --for "1 year"
# Errors name the option and what is allowed.
expect 2 "missing is --unit;" "$wisp" plan --data log.db --model base.wisp --epsilon 4 --num-records-public 300 --for "1 year"
expect 2 "missing is --epsilon, --unit, --num-records-public, --for;" "$wisp" plan --data log.db --model base.wisp
for wrong in "--batch 5000|--batch is 5000, allowed are 1 to 240" "--learning-rate 2|--learning-rate is 2, allowed is above 0, up to 1" \
  "--judgings 0|--judgings is 0, allowed are 1 and more" "--judging-share 1|--judging-share is 1, allowed is above 0 and below 1" \
  "--steps 0|--steps is 0, allowed are 1" "--steps 999999999|--steps: a plan has 365 nights of 999999999 steps" "--epsilon 1000|--epsilon: epsilon is 1000" \
  "--delta 0.5|--delta: delta is 0.5" "--session-gap 5|--session-gap: the session gap is 5 seconds" \
  "--times-per-second 0|--times-per-second: the log has 0 times" "--judge none --judgings 3|--judgings is given, and with --judge none"; do
  got=0
  # shellcheck disable=SC2086
  case $wrong in --epsilon*) few=("${plan[@]:0:6}" "${plan[@]:8}") ;; *) few=("${plan[@]}") ;; esac
  "${few[@]}" --for "1 year" ${wrong%%|*} >out 2>err || got=$?
  [ "$got" -ne 0 ] || fail "${wrong%%|*} is taken"
  grep -q -- "${wrong##*|}" err || fail "${wrong%%|*} is refused with: $(head -c 300 err)"
done
[ ! -e log.ledger ] || fail "a refused plan left a ledger"
expect 2 "--for is 'a while', allowed is a number and second, minute" "${plan[@]}" --for "a while"
expect 2 "has 0 times --every 1 day" "${plan[@]}" --for "1 hour"
expect 4 "has no plan for a life, and was charged: a plan would promise nothing any more" bash -c "\"$wisp\" train --recipe \"$root/models/recipes/cafe-device.json\" --model base.wisp \
  --data log.db --out t.wisp --ledger t.ledger --num-records-public 300 --epochs 1 --batch 50 --epsilon 1 --delta 1e-4 >/dev/null 2>&1; \
  \"$wisp\" plan --left --data log.db --model base.wisp --ledger t.ledger"
expect 4 "has charges: a plan for a life is made before the first of them" "${plan[@]}" --for "1 year" --ledger t.ledger
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --dry-run
grep -q "written   nothing: --dry-run" out || fail "a dry run does not say so"
[ ! -e log.ledger ] || fail "a dry run left a ledger"
expect 4 "has no plan for a life" bash -c "cp t.ledger none.ledger; \"$wisp\" personalise --data log.db --model base.wisp --out mine.wisp --ledger none.ledger"
expect 3 "log.ledger" "$wisp" personalise --data log.db --model base.wisp --out mine.wisp

expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --steps 4 --judgings 2 --json
json 'j["runs"] == 6 and j["steps_per_run"] == 4 and j["records_that_train"] == 240 and j["records_that_judge"] == 60'
json 'j["outlook"] in ("some gain", "hopeless", "new items only") and j["noise_of_an_item"] > 0 and len(j["power"]) == 6 and j["epsilon_of_one_run"] < 4'
json '0 < j["cpu_seconds_of_run"] and 0 < j["cpu_seconds_of_judging"] and j["bytes"] > 100000'
json '"made_before" not in j'
# An equal plan is found again; another one is refused unless --replace is given.
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --judgings 2
grep -q "written   nothing: the ledger has had this plan since" out || fail "a plan that was there is not said to be"
expect 4 "the number of nights is 6, asked for is 12" "${plan[@]}" --for "1 year" --every "1 month"
expect 0 "" "${plan[@]}" --for "1 year" --every "1 month" --steps 4 --judgings 2 --replace
grep -q "^written   log.ledger, the ledger of this plan$" out || fail "a plan does not say where it was written: $(tail -n 2 out)"
grep -q "^plan      log.ledger: 12 nights of 4 steps" out || fail "a plan does not count in nights: $(head -n 1 out)"
grep -q "larger batch (--batch)" out || fail "advice does not name its option: $(grep advice out)"
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --steps 4 --judgings 2 --replace
compgen -G "log.ledger.measuring*" >/dev/null && fail "what was measured left files"
# Two calls at once, by two names of one ledger, make one plan, and change no other file.
: >two.ledger
ln -s two.ledger two.link
for file in two.ledger.measuring two.link.measuring two.ledger.measuring.plan; do echo mine >$file; done
two() { "${plan[@]:0:6}" --num-records-public 300 --unit user --for "6 months" --every "1 month" --steps 4 --judgings 2 --epsilon "$@"; }
two 4 --ledger two.ledger >out.1 2>err.1 & first=$!
two 4 --ledger two.link >out.2 2>err.2; second=$?
wait $first; [ $? = 0 ] && [ $second = 0 ] || fail "two calls at once with the same wishes: $(cat err.1 err.2)"
[ "$(cat out.1 out.2 | grep -c "written   nothing: the ledger has had this plan since")" = 1 ] || fail "of two calls at once not one found the plan"
rm two.ledger
two 4 --ledger two.ledger >out.1 2>err.1 & first=$!
two 8 --ledger two.ledger >out.2 2>err.2; second=$?
wait $first; [ $(($? + second)) = 4 ] || fail "two calls at once with other wishes: $(cat err.1 err.2)"
cat err.1 err.2 | grep -q "has another plan than was asked for: epsilon" || fail "the second call says $(cat err.1 err.2)"
[ "$(cat two.*.measuring*)" = "$(printf 'mine\nmine\nmine')" ] || fail "measuring took a file that was not its own"
expect 2 "--out and --model name the same file" "$wisp" personalise --data log.db --model base.wisp --out base.wisp
for night in 1 2 3 4 5 6; do
  expect 0 "" "$wisp" personalise --data log.db --model base.wisp --out mine.wisp --json
  json "j['steps'] == 4 and j['steps_of_model'] == 4 * $night and j['runs_left'] == 6 - $night and j['judged'] == ($night % 3 == 0)"
  json '"records" in j["not_private"] and "verdict" not in j["not_private"]'
  # The log has no event since the plan was made: only the owner is told that an evaluation used no records.
  json "('events_that_judged' in j) == j['judged'] == ('events_that_judged' in j['not_private']) and j.get('events_that_judged', 0) == 0"
done
# A mistyped name trains nothing, and leaves nothing.
expect 2 "mien.wisp: it is not there, or not of this life, though 24 steps were trained under the plan" "$wisp" personalise --data log.db --model base.wisp --out mien.wisp
ls mien.wisp* >/dev/null 2>&1 && fail "a refused night left a file"
: >empty.wisp && head -c 5000 base.wisp >other.wisp
for name in empty other; do
  expect 2 "$name.wisp: it is not there, or not of this life" "$wisp" personalise --data log.db --model base.wisp --out $name.wisp
done
[ ! -s empty.wisp ] && [ "$(stat -c %s other.wisp)" -eq 5000 ] && [ ! -e empty.wisp.candidate ] || fail "a file that was named by mistake was replaced"
expect 0 "" "$wisp" personalise --data log.db --model base.wisp --out mien.wisp --anew
cmp -s mien.wisp base.wisp || fail "a model that begins anew is not the base"
expect 0 "" "$wisp" personalise --data log.db --model base.wisp --out mine.wisp
grep -q "the plan has no step left" out || fail "a plan that is used up is not said to be"
cp log.db others.db
expect 4 "ledger 'log.ledger' is of the data set 'log.db'.*'others.db'" "$wisp" personalise --data others.db --ledger log.ledger \
  --model base.wisp --out mine.wisp
expect 0 "" "$wisp" plan --left --data log.db --model base.wisp
grep -q "of 6 nights 0 are left" out || fail "what is left is not counted in nights: $(cat out)"
expect 0 "" "$wisp" plan --left --data log.db --model base.wisp --json
json 'j["runs_left"] == 0 and j["judgings_left"] == 0 and j["epsilon"] == 4'
expect 0 "" "$wisp" privacy --ledger log.ledger --json
json '3.9 < j["accounting"]["ledger_epsilon"] <= 4'
expect 4 "has charges: a plan for a life is made before the first of them" "${plan[@]}" --for "1 year"

# The report is one page without script or network, and marks what is local.
expect 0 "" "$wisp" report --ledger log.ledger --html report.html --json
json 'not j["local_only"]'
grep -q "What it cost" report.html && grep -q "What the judges found" report.html || fail "the report lacks a part"
grep -q "Local only" report.html && fail "a report of a ledger alone says that it is local"
grep -qE "https?:|<script|@import|url\(" report.html && fail "the report needs something else than itself"
python3 - <<'END' || fail "the report is no page"
import html.parser
class Page(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link"): self.open.append(tag)
    def handle_startendtag(self, tag, attributes): pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
page = Page()
page.feed(open("report.html").read())
assert not page.open, page.open
END
grep -q "did to each layer" report.html && fail "a report of a ledger alone speaks of models"
expect 2 "" "$wisp" report --ledger log.ledger --html report.html --model base.wisp
expect 0 "" "$wisp" report --ledger log.ledger --html report.html --model base.wisp --out mine.wisp --json
json 'not j["local_only"]'
grep -q "block 2, attention" report.html || fail "the report says nothing of a layer"
grep -q "Local only" report.html && fail "a report of released models says that it is local"
expect 0 "" "$wisp" report --ledger log.ledger --html report.html --data log.db --model base.wisp --out mine.wisp --json
grep -q "gradients that were clipped" report.html || fail "the report lacks what the nights saw"
json 'j["local_only"]'
grep -q "Local only: counted on the data without noise" report.html || fail "the report does not mark what is local"
expect 2 "base.wisp, a file that is there and is not a page of HTML" "$wisp" report --ledger log.ledger --html base.wisp
expect 2 "--html and --ledger name the same file" "$wisp" report --ledger log.ledger --html log.ledger
expect 4 "has no plan for a life, and was charged" "$wisp" report --ledger t.ledger --html none.html
[ ! -e none.html ] || fail "a refused report left a file"

# If most users of a log have another form than the read one, the session ends before anything is charged, and leaves no
# model.
sqlite3 log.db "SELECT user, item, strftime('%d.%m.%Y', time, 'unixepoch') FROM events" >rows
{ echo "user|item|time"; cat rows; sqlite3 log.db "SELECT user, item, time FROM events LIMIT 40"; } | tr '|' '\t' >german.tsv
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --steps 4 --judgings 2 --ledger german.ledger
german=("$wisp" personalise --model base.wisp --out german.wisp --ledger german.ledger --dataset log.db)
expect 3 "users cannot be read, so nothing can be learned from it (local only). The first: german.tsv, line 2: the time is" "${german[@]}" --data german.tsv
[ "$(sqlite3 german.ledger 'select count(*) from entries')" = 0 ] && [ ! -e german.wisp ] || fail "a log that cannot be read was charged, or left a model"

# Names come from anywhere.
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --steps 4 --judgings 2 --ledger $'odd\xe2\x80\xae.ledger'
grep -q '^plan      odd?\.ledger: ' out || fail "a ledger's name reaches the terminal: $(head -c 200 out)"

# A plan is changed: other times are free, another batch costs noise, and nothing else can be changed.
life=(--data log.db --model base.wisp --ledger changed.ledger)
expect 0 "" "${plan[@]}" --for "6 months" --every "1 month" --steps 4 --judgings 2 --ledger changed.ledger
change=("$wisp" plan "${life[@]}" --change --for "2 months" --every "1 week")
expect 4 "has no charges yet" "${change[@]}"
expect 0 "" "$wisp" personalise "${life[@]}" --out changed.wisp
grep -q "^serves    changed.wisp: the base$" out || fail "a first night says $(grep serves out)"
grep -q "^left      5 of 6 nights" out || fail "a night does not count in nights: $(grep left out)"
expect 2 "--change excludes --epsilon" "${change[@]}" --epsilon 8
expect 2 "--batch is 241, allowed are 1 to 240" "${change[@]}" --batch 241
expect 2 "--learning-rate is 0, allowed is above 0, up to 1" "${change[@]}" --learning-rate 0
expect 2 "--change needs --for" "$wisp" plan "${life[@]}" --change
expect 0 "" "${change[@]}" --json
json 'j["free"] and j["runs"] == 7 and j["steps_per_run"] == 3 and j["until_now"]["steps_left"] == 20 and j["from_now_on"]["steps_left"] == 20'
expect 0 "" "$wisp" personalise "${life[@]}" --out changed.wisp --json
json 'j["steps"] == 3 and j["steps_of_model"] == 7'
expect 0 "" "${change[@]}" --batch 100 --dry-run --json
json 'not j["free"] and j["from_now_on"]["training_noise"] > 0'
expect 0 "" "${change[@]}" --batch 100
grep -q "the noise is the least with which all of it fits" out || fail "a plan that costs noise does not say so"
expect 0 "" "$wisp" personalise "${life[@]}" --out changed.wisp --json
json 'j["steps"] > 0 and j["steps_of_model"] == j["steps"]'
expect 0 "" "$wisp" report --ledger changed.ledger --html changed.html
grep -q "the plan was changed" changed.html || fail "a report does not say that the plan was changed"
grep -q "What it cost" changed.html && fail "a report draws what only some of the steps cost"
expect 0 "" "$wisp" privacy --ledger changed.ledger --json
json 'j["accounting"]["ledger_epsilon"] <= 4'

# The output says that evaluation is local. The newest plan counts, whoever evaluates.
for judge in private none; do
  expect 0 "" "${plan[@]}" --for "2 days" --judge $judge --ledger local.ledger --replace
done
expect 0 "" "${plan[@]}" --for "2 days" --judge local --ledger local.ledger --replace
grep -q "without noise and without a charge" out || fail "what judging locally leaks is not said"
expect 0 "" "$wisp" personalise --data log.db --model base.wisp --out local.wisp --ledger local.ledger --json
json 'j["judged"] and {"verdict", "evidence", "threshold", "serves", "changed", "records", "seconds"} <= set(j["not_private"])'
json '"judgings_left" not in j'
expect 0 "" "$wisp" personalise --data log.db --model base.wisp --out local.wisp --ledger local.ledger
grep -q "by no event: those who judge did nothing later than what the candidate learned from, so nothing better$" out ||
  fail "a judging without events is not said to be one: $(cat out)"
expect 0 "" "$wisp" plan --left --data log.db --model base.wisp --ledger local.ledger
grep -q "judgings" out && fail "judgings are counted, though each night judges"
expect 0 "" "$wisp" privacy --ledger local.ledger
grep -q "chosen on the same data without a charge: which model is served and trains on" out || fail "the statement does not name the local choice"

# A new base has more items: what was learned moves to it.
printf 'soup-pea\tPea soup\nradio\tRadio\nbagel-new\tNew bagel\tbagel-lentil\n' >new.tsv
expect 0 "" "$wisp" catalogue add --model base.wisp --items new.tsv --out base-2.wisp --json
json 'j["added"] == 3 and j["rows_from"] == {"neighbour": 1, "words": 1, "mean": 1}'
# Served lists do not change before the new items are trained.
for history in bagel-lentil,tea-mint tea-mint; do
  new=${history/,/,bagel-new,radio,}
  expect 0 "" "$wisp" recommend --model base.wisp --history "$history" --count 20 --json
  mv out before
  expect 0 "" "$wisp" recommend --model base-2.wisp --history "$new" --count 20 --json
  python3 -c 'import json; a, b = ([i["item"] for i in json.load(open(f))] for f in ("before", "out")); assert a == b, (a, b)' ||
    fail "new items change what follows $history"
done
# An item that no run has trained is ignored, and a warning says so once.
recommend=("$wisp" recommend --model base-2.wisp)
untrained="--history names 2 items that no run has trained yet, the first 'radio': the history is read as if the model did not know them"
expect 0 "$untrained" "${recommend[@]}" --history tea-mint,radio,radio --history bagel-new
[ "$(wc -l <err)" = 1 ] || fail "untrained items are said $(wc -l <err) times"
expect 0 "--candidates names 1 item that no run has trained yet, the first 'radio': no list holds them" "${recommend[@]}" \
  --history tea-mint --candidates radio,bagel-lentil
expect 0 "" "${recommend[@]}" --history tea-mint
[ ! -s err ] || fail "a history of trained items warns: $(cat err)"
expect 2 "is there already" "$wisp" catalogue add --model base-2.wisp --items new.tsv --out base-3.wisp
# One word written with a combined letter and with two characters is two keys: whoever adds the second gets a warning.
printf 'cafe\xcc\x81\tCafe\n' >marked.tsv
expect 0 "marked.tsv: 1 key with accents as characters of their own" \
  "$wisp" catalogue add --model base.wisp --items marked.tsv --out marked.wisp
expect 0 "" "$wisp" recommend --model marked.wisp --history $'tea-mint,cafe\xcc\x81'
expect 2 "the same letters written as one character are another key" \
  "$wisp" recommend --model base.wisp --history $'tea-mint,cafe\xcc\x81'
printf 'user,item,time\nbea,cafe\xcc\x81,5\nbea,cafe\xcc\x81,6\n' >marked.csv
expect 0 "marked.csv: 1 key with accents as characters of their own" "$wisp" log import marked.db --data marked.csv
expect 0 "" "$wisp" catalogue list --model base-2.wisp
[ "$(tail -n 1 out)" = "$(printf 'bagel-new\tNew bagel\tuntrained')" ] || fail "the newest item is $(tail -n 1 out)"
expect 2 "it is neither base-2.wisp nor was it personalised from it: carry it over with .wisp rebase." \
  "$wisp" personalise --data log.db --model base-2.wisp --out mine.wisp
expect 0 "" "$wisp" rebase --from base.wisp --to base-2.wisp --out mine.wisp --json
json 'j["carried"] and j["lost_items"] == 0'
cmp -s mine.wisp base-2.wisp || fail "another model than the new base is served, and nobody judged it"
expect 0 "" "$wisp" personalise --data log.db --model base-2.wisp --out mine.wisp --json

# A user without history gets popular items, unless these are retired.
expect 2 "one is allowed, 2 were given" "$wisp" recommend --model base-2.wisp --newcomer --history radio
expect 0 "" "$wisp" recommend --model base-2.wisp --newcomer --json
first=$(python3 -c 'import json; print(json.load(open("out"))[0]["item"])')
printf '%s\n' "$first" >gone.txt
expect 0 "" "$wisp" catalogue retire --model base-2.wisp --items gone.txt --out base-4.wisp --json
json 'j["retired"] == 1 and j["items"] == 483'
expect 0 "" "$wisp" recommend --model base-4.wisp --newcomer --count 483 --json
json "len(j) == 479 and '$first' not in [i['item'] for i in j]"
expect 0 "" "$wisp" catalogue list --model base-4.wisp --json
json "[i['key'] for i in j['items'] if i['retired']] == ['$first']"
expect 0 "" "$wisp" catalogue restore --model base-4.wisp --items gone.txt --out base-5.wisp --json
json 'j["retired"] == 0'
printf 'no-such-item\n' >none.txt
expect 2 "there is no item 'no-such-item' in it" "$wisp" catalogue retire --model base-2.wisp --items none.txt --out x.wisp
[ ! -e x.wisp ] || fail "a refused retirement left a file"
expect 0 "" "$wisp" rebase --from base-2.wisp --to base-4.wisp --out mine.wisp --json
json 'j["carried"] and j["lost_items"] == 0'
expect 0 "" "$wisp" personalise --data log.db --model base-4.wisp --out mine.wisp
expect 0 "" "$wisp" catalogue list --model mine.wisp.start --json
json "[i['key'] for i in j['items'] if i['retired']] == ['$first']"

# The provenance of the old base moves along, also back to the base that it was trained from.
printf '{"name": "plain", "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch": 50}}' >plain.json
expect 0 "" "$wisp" train --recipe plain.json --model base.wisp --data log.db --out known.wisp
expect 0 "" "${plan[@]}" --for "2 months" --every "1 month" --steps 2 --judge none --ledger known.ledger
expect 0 "" "$wisp" personalise --data log.db --model known.wisp --out moved.wisp --ledger known.ledger --other-data
expect 0 "" "$wisp" rebase --from known.wisp --to base.wisp --out moved.wisp
grep -q "serves the new base; what was learned is carried over" out || fail "a rebase to an ancestor says $(cat out)"
cmp -s moved.wisp base.wisp || fail "a rebase to an ancestor does not serve it"
expect 4 "was trained on 'log.db' before, without a guarantee" "$wisp" train --recipe "$root/models/recipes/cafe-device.json" \
  --model moved.wisp.start --data log.db --out t.wisp --ledger moved.ledger --num-records-public 300 --epochs 1 --batch 50 --epsilon 1 --delta 1e-4
label=$("$wisp" inspect base.wisp --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["provenance"][0]["dataset"])')
expect 4 "run 3 of the provenance, on the data set .log.db., states no epsilon" "$wisp" recommend --model moved.wisp.start --history tea-mint --private --public-dataset "$label"

# The log.
expect 3 "^wisp: none.db: the log cannot be opened: No such file or directory; give the SQLite file" \
  "$wisp" log count none.db
[ ! -e none.db ] || fail "counting made a log"
expect 0 "" "$wisp" log count log.db --json
json 'j["users"] == 300 and j["events"] > 5000 and j["oldest"] < j["newest"]'
user=$(sqlite3 log.db 'select user from events limit 1')
expect 0 "" "$wisp" log erase log.db --user "$user" --json
json 'j["erased"] > 1'
expect 0 "" "$wisp" log count log.db --json
json 'j["users"] == 299'
expect 0 "" "$wisp" log erase log.db --user "$user"
grep -q "^nothing matched: log.db has no event of '$user'" out || fail "an erasure of nobody says $(cat out)"
expect 0 "" "$wisp" log erase log.db --user "$user" --json
json 'j["erased"] == 0'
# A copy is one file and is a log. Restoring brings the log back to its state, also a lost log.
expect 0 "" "$wisp" log backup log.db --out copy.db
expect 2 "will not be replaced" "$wisp" log backup log.db --out copy.db
expect 2 "the copy and the log name the same file" "$wisp" log restore copy.db --from copy.db
[ "$(ls copy.db*)" = copy.db ] || fail "a copy is $(ls copy.db*)"
other=$(sqlite3 log.db 'select user from events limit 1')
expect 0 "" "$wisp" log erase log.db --user "$other"
expect 0 "" "$wisp" log restore log.db --from copy.db
grep -q "Whoever was erased since is back" out || fail "restoring says $(cat out)"
expect 0 "" "$wisp" log restore lost.db --from copy.db
sqlite3 other.db "create table contacts(name); insert into contacts values ('anna')"
expect 3 "there is no table 'events' in it" "$wisp" log restore other.db --from copy.db
[ "$(sqlite3 other.db .tables)" = contacts ] || fail "a refused restore left $(sqlite3 other.db .tables)"
sqlite3 shared.db "create table events(user text, item text, time integer); create table contacts(name)"
expect 2 "has a table 'contacts' that the copy 'copy.db' lacks" "$wisp" log restore shared.db --from copy.db
for log in log.db lost.db; do
  expect 0 "" "$wisp" log count "$log" --json
  json 'j["users"] == 299'
done
expect 3 "^wisp: none.db: the copy cannot be opened: No such file or directory; nothing was restored" "$wisp" log restore made.db --from none.db
expect 3 "^wisp: none.db: the log cannot be opened: No such file or directory; give the SQLite file" "$wisp" log export none.db --out none.csv
[ ! -e made.db ] || fail "a restoration from nothing made a log"
# Names come from anywhere: a listing has one line for each, without characters that a terminal acts on.
name=$'bad\nwisp: gone\xe2\x80\xae.db'
cp copy.db "$name"
expect 0 "" "$wisp" log count "$name"
grep -q '^bad?wisp: gone?\.db: ' out || fail "a name reaches the terminal: $(head -c 200 out)"
sqlite3 "$name" "update events set user = 'a' || char(0x202e) || 'b' where user = '$other'"
expect 0 "" "$wisp" log list "$name" --count 9999
grep -q '^a?b	' out || fail "a user's name reaches the terminal"
expect 0 "" "$wisp" log list "$name" --count 9999 --json
grep -qF 'a\u202eb' out || fail "JSON does not hold the user's name in escapes"
! grep -q $'\xe2\x80\xae' out || fail "JSON holds what a terminal acts on"
# Another program's log: integer users, one of them invalid, and dates.
sqlite3 app.db "create table events(user integer, item text, time text); insert into events values
  (17, 'tea', '2026-11-27T09:30:00Z'), (17, 'milk', '2026-11-26'), (9, 'tea', '2026-11-27'), (null, 'tea', '2026-11-27')"
expect 0 "" "$wisp" log count app.db
grep -q "4 events of 2 users.*training cannot read 1 of its events" out || fail "a count says $(cat out)"
grep -q "times of 4 events are dates, and given as numbers since 1970 with 1 to the second" out || fail "a count of dates says $(cat out)"
expect 2 "--times-per-second: the log has 0 times" "$wisp" log count app.db --times-per-second 0
expect 0 "" "$wisp" log list app.db --json
json '[(u["user"], u["events"], u["newest"]) for u in j["users"]] == [("17", 2, 1795771800), ("9", 1, 1795737600)] and j["unreadable"] == 1'
expect 0 "" "$wisp" log export app.db --out app.csv
grep -q "3 events of app.db written.*cannot read 1 of its events.*not exported" out || fail "an export says $(cat out)"
[ "$(cat app.csv)" = $'user,item,time\n17,milk,1795651200\n17,tea,1795771800\n9,tea,1795737600' ] || fail "exported is $(cat app.csv)"
expect 0 "" "$wisp" log export app.db --out app-ms.csv --times-per-second 1000
[ "$(cat app-ms.csv)" = $'user,item,time\n17,milk,1795651200000\n17,tea,1795771800000\n9,tea,1795737600000' ] || fail "exported is $(cat app-ms.csv)"
expect 0 "" "$wisp" log list app.db --times-per-second 1000 --json
json '[u["newest"] for u in j["users"]] == [1795771800000, 1795737600000] and j["dates"] == 4'
expect 0 "" "$wisp" log prune app.db --before 2026-11-27 --unit session --session-gap 60 --json
json 'j["pruned"] == 1 and j["unreadable"] == 1'
expect 0 "" "$wisp" log erase app.db --user 17 --json
json 'j["erased"] == 1'
expect 0 "" "$wisp" log list log.db --count 3
[ "$(grep -c " events" out)" = 3 ] || fail "log list shows $(grep -c " events" out) users, not 3"
expect 2 "--before is 'soon'" "$wisp" log prune log.db --before soon --unit user
expect 2 "--before is '-5', allowed is from 1970-01-01 on" "$wisp" log prune log.db --before=-5 --unit user
expect 2 "--newest-per-user is given, and --unit is day" "$wisp" log prune log.db --newest-per-user 5 --unit day
expect 2 "wisp log prune needs --before, or --newest-per-user" "$wisp" log prune log.db --unit user
expect 2 "--unit session needs --session-gap: the seconds without an event.*such as 1800; allowed are 1 to" "$wisp" log prune log.db --before 5 --unit session
expect 0 "" "$wisp" log prune log.db --before 1971-01-01 --unit user
grep -q "^nothing matched: every event of log.db is to be kept" out || fail "a pruning of nothing says $(cat out)"
# A log in seconds that is read as one in milliseconds would lose everything.
expect 2 "no time between 1990 and 2223 where a second has 1000 of them" \
  "$wisp" log prune log.db --before 1971-01-01 --unit user --times-per-second 1000
cp log.db other.db
for time in 5 8000000001; do  # one event is enough
  sqlite3 other.db "insert into events (user, item, time) select user, item, $time from events limit 1"
  expect 2 "the time of an event is $time" "$wisp" log prune other.db --before 1999-01-01 --unit user
  sqlite3 other.db "delete from events where time = $time"
done
expect 0 "" "$wisp" log prune log.db --newest-per-user 5 --unit user --json
expect 0 "" "$wisp" log count log.db --json
json 'j["events"] == 5 * 299'

# Exported as text and imported again, the events are equal.
expect 0 "" "$wisp" log export log.db --out events.csv
expect 0 "" "$wisp" log import again.db --data events.csv --json
json 'j["imported"] == 5 * 299 and j["not_private"] == ["imported"]'
expect 0 "" "$wisp" log export again.db --out EVENTS.TSV
diff <(tr '\t' ',' <EVENTS.TSV) events.csv >diff || fail "a log that went through a file is another: $(head -3 diff)"
for file in events.csv EVENTS.TSV again.db report.html mine.wisp log.ledger; do
  [ "$(stat -c %a $file)" = 600 ] || fail "$file can be read by others: its mode is $(stat -c %a $file)"
done
# Dates count in the log's unit, and a log with another unit than the given one is not accepted silently.
printf 'user,item,time\na,tea-mint,2026-11-27T09:30:00Z\n' >dates.csv
expect 0 "" "$wisp" log import ms.db --data dates.csv --times-per-second 1000
[ "$(sqlite3 ms.db 'select time from events')" = 1795771800000 ] || fail "a date in milliseconds is $(sqlite3 ms.db 'select time from events')"
expect 2 "--times-per-second: the log has 0 times" "$wisp" log import ms.db --data dates.csv --times-per-second 0
printf 'user,item,time\na,tea-mint,1795771800000\n' >ms.csv
expect 0 "ms.csv: times of 1 event look like milliseconds, and are read with 1 to the second.*(local only)" "$wisp" log import ms.db --data ms.csv
expect 0 "" "$wisp" log import ms.db --data ms.csv --times-per-second 1000
[ ! -s err ] || fail "a log of milliseconds warns: $(cat err)"
expect 0 "" "${plan[@]:0:2}" --data ms.db "${plan[@]:4}" --for "2 days" --steps 1 --judge none --ledger ms.ledger
expect 0 "ms.db: times of 3 events look like milliseconds, and are read with 1 to the second.*(local only)" \
  "$wisp" personalise --data ms.db --model base.wisp --out ms.wisp --ledger ms.ledger
printf '{"user": "a"}\n' >lines.txt
expect 3 "is JSON; allowed is a user and an item" "$wisp" log import again.db --data lines.txt
expect 2 "allowed are names that end in .csv or .tsv" "$wisp" log export log.db --out events.txt
expect 0 "" "$wisp" log count again.db --json
json 'j["events"] == 5 * 299'
finish
