#!/usr/bin/env bash
# No command replaces its inputs or a ledger, a ledger pays only for its own data set, and a refusal changes nothing.
#   tests/ledgers.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
recipe=$root/models/recipes/cafe-device.json
cp "$root/models/cafe.wisp" base.wisp
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth"
cp log.db other.db
run=("$wisp" train --recipe "$recipe" --model base.wisp --batch 20 --epochs 1 --delta 0.001)
fit=("${run[@]}")
run+=(--num-records-public 60)
entries() { sqlite3 "$1" 'select count(*) from entries'; }
limits() { sqlite3 "$1" 'select count(*) from limits'; }

# Files that would be lost. Links and other spellings of a path are the same file; so is a ledger that does not exist
# yet.
expect 0 "" "${run[@]}" --data log.db --epsilon 2 --out o.wisp --ledger l.db
ln -s l.db link.db
ln log.db hard.db
sum=$(cat log.db l.db base.wisp | md5sum)
expect 2 "--out and --data name the same file, ./log.db" "${run[@]}" --data log.db --epsilon 1 --out ./log.db --ledger l.db
expect 2 "--out and --data name the same file" "${run[@]}" --data log.db --epsilon 1 --out hard.db --ledger l.db
expect 2 "--out and --ledger name the same file" "${run[@]}" --data log.db --epsilon 1 --out link.db --ledger l.db
expect 2 "--out and --ledger name the same file" "${run[@]}" --data log.db --epsilon 1 --out new.db --ledger "$PWD/new.db"
expect 2 "--out and --privacy-json name the same file" "${run[@]}" --data log.db --epsilon 1 --out p.wisp --privacy-json p.wisp --ledger l.db
expect 2 "--privacy-json and --model name the same file" "${run[@]}" --data log.db --epsilon 1 --out p.wisp --privacy-json base.wisp --ledger l.db
expect 2 "--checkpoint and --data name the same file" "${run[@]}" --data log.db --epsilon 1 --out p.wisp --checkpoint log.db --ledger l.db
expect 2 "l.db: is an SQLite database, a log or a ledger, or may be one, and will not be replaced" "${run[@]}" --data log.db --epsilon 1 --out l.db --ledger m.db
for file in l.db link.db log.db; do expect 2 "will not be replaced" "$wisp" synth --out $file --users 20; done
expect 2 "--out and the model name the same file" "$wisp" export base.wisp --out ./base.wisp
expect 2 "--out and the model name the same file" "$wisp" compress base.wisp --out ./base.wisp
expect 2 "will not be replaced" "$wisp" export base.wisp --out l.db
expect 2 "--out and --item-keys name the same file" "$wisp" convert base.wisp --item-keys o.wisp --out o.wisp
expect 2 "--out and --data name the same file" "$wisp" new --recipe "$root/models/recipes/cafe.json" --data log.db --out log.db
printf 'good\ta film\nbad\ta bore\n' >texts.txt
sed 's/"classes": \[[^]]*\]/"classes": ["good", "bad"]/' "$root/models/recipes/sst2-dp-fp.json" >texts.json
expect 2 "--out and --data name the same file" "$wisp" classify train --recipe texts.json --data texts.txt --out texts.txt --ledger t.db
expect 2 "--out and --ledger name the same file" "$wisp" classify train --recipe texts.json --data texts.txt --out l.db --ledger l.db
[ "$(cat log.db l.db base.wisp | md5sum)" = "$sum" ] || fail "a refused command changed a file"
for file in new.db p.wisp m.db t.db; do [ ! -e $file ] || fail "a refused command left $file behind"; done
# The files that SQLite keeps beside a database, an unreadable file, a link to a future ledger, a ledger with a
# temporary file's name.
touch l.db-wal
expect 2 "will not be replaced" "$wisp" export base.wisp --out l.db-wal
rm -f l.db-wal
if [ "$(id -u)" != 0 ]; then
  chmod 000 l.db
  expect 2 "will not be replaced" "$wisp" export base.wisp --out l.db
  chmod 600 l.db
fi
ln -s target.wisp dangling.db
expect 2 "--out and --ledger name the same file" "${run[@]}" --data log.db --epsilon 1 --out target.wisp --ledger dangling.db
expect 3 "taken as they are, not as URIs" "${run[@]}" --data log.db --epsilon 1 --out p.wisp --ledger file:l.db
cp l.db z.wisp.tmp-1
expect 0 "" "$wisp" export base.wisp --out z.wisp
[ -e z.wisp.tmp-1 ] || fail "a ledger was taken for a temporary file"
expect 2 "is not text" "${run[@]}" --data log.db --epsilon 1 --out p.wisp --ledger name.db --dataset $'bad\xff'
[ ! -e p.wisp ] && [ ! -e name.db ] || fail "a refused command left something behind"
python3 -c 'print("{\"training\":" + "[" * 100000 + "]" * 100000 + "}")' >deep.json
expect 3 "objects lie deeper than 32" "$wisp" train --recipe deep.json --data log.db --out p.wisp
# A model may be replaced by the one that is trained from it.
cp base.wisp own.wisp
expect 0 "" "$wisp" train --recipe "$recipe" --model own.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --epsilon 0.5 --out own.wisp --ledger l.db

# Weights that one ledger paid for are not trained further on another, which knows nothing of it.
again=("$wisp" train --recipe "$recipe" --model o.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001)
expect 4 "trained on 'log.db' before, for epsilon 2 at delta 0.001, and ledger 'fresh.db' did not pay for it" "${again[@]}" --epsilon 1 --out a.wisp --ledger fresh.db
[ ! -e fresh.db ] && [ ! -e a.wisp ] || fail "a refused run left something behind"
expect 0 "" "$wisp" train --recipe "$recipe" --model base.wisp --data other.db --dataset log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --epsilon 3 --out a.wisp --ledger less.db
# A ledger with as much spent on the same data does not serve either, nor does a copy of the right one from before the
# run.
expect 4 "for epsilon 2.* and ledger 'less.db' did not pay for it" "${again[@]}" --epsilon 1 --out a.wisp --ledger less.db
cp l.db before.db
expect 0 "" "${again[@]}" --epsilon 0.2 --out later.wisp --ledger l.db
expect 4 "and ledger 'before.db' did not pay for it" "$wisp" train --recipe "$recipe" --model later.wisp "${again[@]:6}" --epsilon 0.2 --out a.wisp --ledger before.db
expect 0 "" "${again[@]}" --epsilon 0.5 --out a.wisp --ledger l.db
expect 0 "" "${again[@]}" --epsilon 0.5 --out a.wisp --ledger fresh.db --dataset "another log"
expect 0 "" "${again[@]}" --epsilon 0.5 --out a.wisp --ledger less.db --other-data
# A run does not resume from a checkpoint under the name of another base.
going=(--data log.db --epsilon 1 --ledger check.db --dataset "a third log" --checkpoint c.ck --epochs 30 --batch 20 --num-records-public 60 --delta 0.001)
"$wisp" train --recipe "$recipe" --model base.wisp "${going[@]}" --out a.wisp >out 2>err & run_pid=$!
for _ in $(seq 200); do [ -e c.ck ] && break; sleep 0.05; done
kill -INT $run_pid; wait $run_pid; [ -e c.ck ] || fail "no checkpoint was left: $(cat err)"
expect 3 "it belongs to a run that began with another model" "$wisp" train --recipe "$recipe" --model own.wisp "${going[@]}" --budget 60 --out a.wisp
[ "$(limits check.db)" = 0 ] || fail "a run that was refused at its checkpoint set a limit"
expect 0 "" "$wisp" train --recipe "$recipe" --model base.wisp "${going[@]}" --budget 60 --out a.wisp
[ "$(limits check.db)" = 1 ] && [ ! -e c.ck ] || fail "a run that was gone on with set no limit"

# A ledger pays only for its own data set.
paid=$(entries l.db)
expect 4 "is of the data set 'log.db', and what is to be charged is 'other.db'" "${run[@]}" --data other.db --epsilon 0.5 --out b.wisp --ledger l.db
expect 4 "is of the data set 'log.db', and what is to be charged is 'other.db'" "$lab" audit run --recipe "$recipe" --model base.wisp --data other.db --num-records-public 60 --canaries 20 --steps 1 --ledger l.db
[ "$(entries l.db)" = "$paid" ] || fail "data of another name was charged to the ledger"
expect 0 "" "${run[@]}" --data other.db --dataset log.db --epsilon 0.5 --out b.wisp --ledger l.db

# A refused run sets no limit; a run that fits does, and a raised limit is mentioned.
expect 4 "not below 1 / 2000" "${fit[@]}" --num-records-public 2000 --data log.db --epsilon 1 --budget 50 --out c.wisp --ledger l.db
expect 4 "the limit is 5, spent" "${run[@]}" --data log.db --epsilon 4.5 --budget 5 --out c.wisp --ledger l.db
expect 3 "nowhere" "${run[@]}" --data nowhere.db --dataset log.db --epsilon 1 --budget 50 --out c.wisp --ledger l.db
expect 2 "--budget is -3, allowed is an epsilon above 0" "${run[@]}" --data log.db --epsilon 1 --budget -3 --out c.wisp --ledger l.db
[ "$(limits l.db)" = 0 ] && [ ! -e c.wisp ] || fail "a refused run changed the limit"
expect 0 "" "${run[@]}" --data log.db --epsilon 0.5 --budget 9 --out c.wisp --ledger l.db
[ "$(limits l.db)" = 1 ] || fail "--budget sets no limit"
expect 3 "ledger 'gone.db' is not there" "$wisp" privacy --ledger gone.db --delta 1e-3

# The output about a run names what it began with, unless that is declared public, and an architecture that is not used.
expect 0 "" "${run[@]}" --data log.db --epsilon 0.2 --out d.wisp --ledger l.db
grep -q "of this run alone; of the weights it began with" out || fail "nothing is said of the weights that a run began with: $(cat out)"
expect 2 "--public-dataset is 'guests', which no provenance here names" "${run[@]}" --data log.db --epsilon 0.2 --out d.wisp --ledger l.db --public-dataset guests
expect 0 "" "${run[@]}" --data log.db --epsilon 0.2 --out d.wisp --ledger l.db --public-dataset "synthetic public cafe guests"
grep -q "of this run alone" out && fail "a base from public data is spoken of: $(cat out)"
sed 's/"name"/"architecture": {"width": 16}, "name"/' "$recipe" >wide.json
expect 0 "what is trained is --model, which has other settings than the recipe's architecture: width 32 for 16$" "$wisp" train --recipe wide.json --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --epsilon 0.2 --out d.wisp --ledger l.db

# After a run the output says the total of all, and the ledger's limit. It also says what the weights carry from data of
# another name.
grep -q "spent on this data, everything together: epsilon [0-9.]* of 9 at delta 0.001" out || fail "a run does not say what is spent in all: $(cat out)"
expect 0 "" "${again[@]}" --epsilon 0.2 --out e.wisp --ledger other.ledger --dataset "a fourth log" --public-dataset "synthetic public cafe guests"
grep -q "the weights it began with carry epsilon .* on 'log.db' besides: where both are data of the same people, add the two" out || fail "what the weights carry is not said: $(cat out)"
# A key that stands twice, and a delta without the recipe's permission.
sed 's/"epsilon": 7.9/"epsilon": 7.9, "epsilon": 79/' "$recipe" >twice.json
expect 3 "the key 'epsilon' is there twice" "$wisp" train --recipe twice.json --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001 --out f.wisp --ledger l.db
sed 's/"epsilon": 7.9/"epsilon": 7.9, "allow_delta_of_one_record": true/' "$recipe" >allow.json
expect 4 "not below 1 / 50" "$wisp" train --recipe allow.json --model base.wisp --data log.db --num-records-public 50 --batch 20 --epochs 1 --delta 0.02 --out f.wisp --ledger l.db
expect 2 "threads" "${run[@]}" --data log.db --threads 99999 --out f.wisp --ledger l.db
[ ! -e f.wisp ] || fail "a refused run left a model behind"

# The run that made a model and a later evaluation test it on the same users: those with three events or more.
sqlite3 log.db "select user || ' ' || item from (select user, item, row_number() over (partition by user order by time) as n from events) where n <= 3" >short.txt
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data short.txt --epochs 1 --batch 20 --out short.wisp --json
trained=$(python3 -c 'import json; t = json.load(open("out"))["test"]; print(t["users"], t["ndcg@10"])')
expect 0 "" "$wisp" evaluate --model short.wisp --data short.txt --json
[ "$(python3 -c 'import json; t = json.load(open("out")); print(t["users"], t["ndcg@10"])')" = "$trained" ] && [ "${trained%% *}" = 60 ] || fail "train tested $trained, evaluate $(cat out)"
expect 3 "no user has enough events to be tested: 4 of items that the model knows" "$wisp" evaluate --model short.wisp --data short.txt --split validation

# The ledger's anchor notices an old copy that was put back, in every command that takes one.
kept=(--ledger kept.db --anchor kept.anchor)
anchored=("${run[@]}" --data log.db --dataset "a fourth log" --epsilon 0.5 --out a.wisp)
expect 2 "--anchor and --ledger name the same file" "${anchored[@]}" --ledger kept.db --anchor ./kept.db
expect 2 "--out and --anchor name the same file" "${anchored[@]}" --ledger kept.db --anchor a.wisp
expect 0 "" "${anchored[@]}" "${kept[@]}"
cp kept.db old.db
expect 0 "" "${anchored[@]}" "${kept[@]}"
cp kept.db new.db
cp old.db kept.db
sum=$(cat kept.db kept.anchor | md5sum)
expect 4 "is an old copy" "${anchored[@]}" "${kept[@]}"
expect 4 "is an old copy" "$wisp" privacy "${kept[@]}"
expect 4 "is an old copy" "$lab" audit run --recipe "$recipe" --data log.db --dataset "a fourth log" "${kept[@]}" --batch 20 --epochs 1 --epsilon 0.5
[ "$(cat kept.db kept.anchor | md5sum)" = "$sum" ] || fail "a refused command changed the ledger or its anchor"
mv kept.db away.db
expect 4 "is not there, and its anchor knows" "${anchored[@]}" "${kept[@]}"
cp new.db kept.db
expect 0 "" "$wisp" privacy "${kept[@]}"
expect 4 "say once that the anchor begins now" "$wisp" privacy --ledger l.db --anchor l.anchor
expect 0 "" "$wisp" privacy --ledger l.db --anchor l.anchor --begin-anchor
expect 0 "" "$wisp" privacy --ledger l.db --anchor l.anchor
rm -f new.db

# The ledger's limit, which was set before, does not cover the lifetime.
expect 0 "" "$wisp" train --recipe "$root/models/recipes/cafe.json" --model base.wisp --data log.db --epochs 1 --batch 20 --out plain.wisp
draw=("$wisp" recommend --model plain.wisp --history tea-mint --private --base base.wisp --public-dataset "synthetic public cafe guests" --count 2)
expect 4 "the new limit's delta is 0.999, which is not below 1 / 10000 records.* assumed where nobody declares" "${draw[@]}" --ledger huge.db --clip 0.5 --budget 0.1 --delta 0.999
expect 4 "the target's delta is 0.9" "${draw[@]}" --ledger huge.db --epsilon 8 --lifetime 20 --delta 0.9
[ ! -e huge.db ] || fail "a delta that protects nothing was written down"
expect 0 "" "${draw[@]}" --ledger draws.db --clip 0.5 --budget 20 --delta 1e-6
cp draws.db old-draws.db
expect 0 "" "${draw[@]}" --ledger draws.db --anchor draws.anchor --begin-anchor --clip 0.5
cp old-draws.db draws.db
expect 4 "is an old copy" "${draw[@]}" --ledger draws.db --anchor draws.anchor --clip 0.5
# A second query under the same plan continues the plan.
plan=("${draw[@]}" --ledger plan.db --epsilon 2 --delta 1e-6 --lifetime 5)
expect 0 "" "${plan[@]}"
grep -q "lifetime" err && fail "the first draws of a plan speak of it: $(cat err)"
expect 0 "" "${plan[@]}"
grep -q "lifetime" err && fail "the second query of a plan warns: $(cat err)"
expect 0 "of the --lifetime of 40 draws the ledger's limit, epsilon 20 at delta 1e-06 over everything, leaves room for [1-9]" "${draw[@]}" --ledger draws.db --epsilon 19 --delta 1e-6 --lifetime 40
# A kept statement is checked later, against the ledger and against models.
expect 0 "" "$wisp" privacy --ledger l.db --delta 1e-6 --model o.wisp --json
cp out kept.json
[ "$(python3 -c 'import json; print(json.load(open("kept.json"))["verification"]["models"][0]["sha256"])')" = "$(sha256sum o.wisp | cut -d" " -f1)" ] ||
  fail "the statement has another SHA-256 than sha256sum"
check=("$wisp" privacy check kept.json)
expect 0 "" "${check[@]}" --ledger l.db --model o.wisp
grep -q "^kept.json: holds; every figure was computed again, 1 model named in it$" out || fail "a check says $(cat out)"
expect 4 "names no model of SHA-256" "${check[@]}" --ledger l.db --model base.wisp
expect 4 "is an old copy, or another one" "${check[@]}" --ledger draws.db
python3 -c 'import json; j=json.load(open("kept.json")); j["verification"]["receipt"]="0"*64; json.dump(j, open("other.json","w"))'
expect 4 "the ledger does not have the charge" "$wisp" privacy check other.json --ledger l.db
python3 -c 'import json; j=json.load(open("kept.json")); j["accounting"]["ledger_epsilon"]/=2; json.dump(j, open("less.json","w"))'
expect 4 "says otherwise of accounting.ledger_epsilon" "$wisp" privacy check less.json --ledger l.db
echo '{"statement_version": 1}' >empty.json
expect 3 "it does not name the newest charge" "$wisp" privacy check empty.json --ledger l.db
cp l.db before.db
expect 0 "" "${run[@]}" --data log.db --epsilon 2 --budget 60 --out more.wisp --ledger l.db
expect 0 "" "${check[@]}" --ledger l.db
grep -q "^charged since: [0-9]* charge" out || fail "a check of a ledger that went on says $(cat out)"
# Later charges excuse nothing: the statement is that of the ledger with as many charges, in every word.
forge() { python3 -c "import json; j=json.load(open('kept.json')); v=j['verification']; a=j['accounting']; d=j['definition']; $1; json.dump(j, open('forged.json','w'))"; }
forged() { forge "$1" && expect 4 "$2" "$wisp" privacy check forged.json --ledger l.db; }
expect 0 "" "$wisp" privacy --ledger l.db --delta 1e-6 --json
cp out later.json
newest=$(python3 -c 'import json; print(json.load(open("later.json"))["verification"]["receipt"])')
forged "v.update(charges=0, receipt='')" "says otherwise of .*accounting.ledger_epsilon"
forged "v.update(charges=0, receipt='', models=[]); a.update(ledger_epsilon=0.001, epsilon=0.001)" "says otherwise of .*accounting.ledger_epsilon"
forged "v['charges'] = 0" "does not have the charge that the statement ends with as its charge 0"
forged "v['charges'] = 1" "does not have the charge that the statement ends with as its charge 1"
forged "v['receipt'] = '$newest'" "does not have the charge that the statement ends with as its charge "
forged "a['ledger_epsilon'] *= 0.99" "says otherwise of accounting.ledger_epsilon$"
forged "d['privacy_unit'] = 'session'" "says otherwise of definition.privacy_unit$"
forged "d['record'] = 'x'" "says otherwise of definition.record$"
forged "d['dataset'] = 'x'" "says otherwise of definition.dataset$"
forged "a['delta'] = 1e-9" "says otherwise of .*accounting"
forged "a['limit'] = {'epsilon': 1, 'delta': 1e-6}" "says otherwise of accounting.limit"
forged "j['audited'] = True" "says otherwise of audited$"
forge "j['created_by'] = 'another program'; v['ledger'] = 'as/it/was/called'"
expect 0 "" "$wisp" privacy check forged.json --ledger l.db
expect 4 "is an old copy, or another one" "$wisp" privacy check later.json --ledger before.db
# A file system without locks is named at once. Here each request for one is answered as such a file system does.
cat >no_locks.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
static int answer(const char *name, int file, int what, void *argument) {
  int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
  if (what != F_SETLK && what != F_SETLKW && what != F_GETLK) return real(file, what, argument);
  errno = atoi(getenv("LOCKS_FAIL_WITH"));
  return -1;
}
#define FUNCTION(name) \
  int name(int file, int what, ...) { \
    va_list list; \
    va_start(list, what); \
    void *argument = va_arg(list, void *); \
    va_end(list); \
    return answer(#name, file, what, argument); \
  }
FUNCTION(fcntl)
FUNCTION(fcntl64)
int flock(int file, int what) { return (void)file, (void)what, errno = atoi(getenv("LOCKS_FAIL_WITH")), -1; }
END
cc -O1 -shared -fPIC no_locks.c -o no_locks.so -ldl 2>err || fail "the stand-in: $(head -c 300 err)"
for number in 37 95; do  # ENOLCK, EOPNOTSUPP
  without=(timeout 10 env LD_PRELOAD="$PWD/no_locks.so" LOCKS_FAIL_WITH=$number)
  expect 3 "its file system cannot lock files" "${without[@]}" "$wisp" log count log.db
  expect 3 "its file system cannot lock files" "${without[@]}" "$wisp" log erase log.db --user nobody
  expect 3 "its file system cannot lock files" "${without[@]}" "$wisp" privacy --ledger draws.db --delta 1e-6
  expect 3 "its file system cannot lock files" "${without[@]}" "${draw[@]}" --ledger draws.db --clip 0.5
done
finish
