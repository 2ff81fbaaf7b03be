#!/usr/bin/env bash
# Files that wisp 0.1.0 of 2026-11-21 wrote (tests/golden/README.md) are read, upgraded and gone on with.
#   tests/golden.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
find "$root/tests/golden" -maxdepth 1 -type f -exec cp {} . \;
rows="select id, time, run, purpose, noise, mechanism, loss_slack, state from entries order by id"
past="select name, unit, adjacency, created from dataset; select time, epsilon, delta from limits order by rowid; $rows"

# What the ledgers say is what they said, whoever asks; no total falls; and asking does not change them.
for ledger in *.ledger; do
  name=${ledger%.ledger}
  mkdir old
  cp "$ledger"* old
  sqlite3 "old/$ledger" "$past" >"$name.past"
  rm -rf old
  expect 0 "" "$wisp" privacy --ledger "$ledger" --delta 1e-3 --json
  python3 - "$name.json" out <<'PYTHON' || fail "$ledger says something else than it did, or less: $(cat out)"
import json, sys
old, new = (json.load(open(f)) for f in sys.argv[1:])
for key in ("dataset", "run", "privacy_unit", "adjacency"):
    assert old["definition"][key] == new["definition"][key], key
for key in ("mechanisms", "steps", "noise", "guarantee", "delta", "loss_slack", "limit"):
    assert old["accounting"].get(key) == new["accounting"].get(key), key
was, now = (j["accounting"]["epsilon"] for j in (old, new))
assert now is None if was is None else now >= was, (was, now)
PYTHON
  cp "$ledger" read.ledger
  [ "$(sqlite3 read.ledger 'pragma user_version')" != 4 ] || fail "$ledger was upgraded by who only reads"
  rm -f read.ledger
done
[ "$(wc -l <several.past)" = 8 ] && [ "$(wc -l <limits.past)" = 7 ] || fail "the old ledgers are not what this test expects: $(wc -l ./*.past)"

# A run charges each of them, as it was left: what was there stays, in one chain with what is new; the write-ahead log is gone.
cp "$root"/tests/golden/*.ledger* .
run=("$wisp" train --recipe recipe.json --model base.wisp --data log.db --dataset "golden log")
for name in closed limits several killed; do
  expect 0 "" "${run[@]}" --ledger $name.ledger --noise-multiplier 8 --epochs 1 --out $name.wisp
  [ ! -e $name.ledger-wal ] || fail "$name.ledger-wal is still there"
  [ "$(sqlite3 $name.ledger 'pragma user_version')" = 4 ] || fail "$name.ledger was not upgraded"
  sqlite3 $name.ledger "$past" >now
  [ "$(head -n "$(wc -l <$name.past)" now)" = "$(cat $name.past)" ] || fail "$name.ledger lost something: $(diff $name.past now)"
  [ "$(wc -l <now)" = $(($(wc -l <$name.past) + 1)) ] || fail "$name.ledger has not one charge more: $(cat now)"
  expect 0 "" "$wisp" privacy --ledger $name.ledger --delta 1e-3 --json
  json "j['accounting']['epsilon'] >= json.load(open('$name.json'))['accounting']['epsilon']"
  json "j['definition']['privacy_unit'] == 'user' and j['definition']['privacy_unit_chosen'] is False"  # version 1 did not say
done
expect 0 "" "${run[@]}" --ledger reproducible.ledger --noise-multiplier 8 --epochs 1 --reproducible-noise 1 --out r.wisp
expect 4 "reproducible" "${run[@]}" --ledger reproducible.ledger --noise-multiplier 8 --epochs 1 --out r.wisp

# Within one second nobody knows which came first: the first limit, then the first charge, and any other limit after it.
cp "$root/tests/golden/limits.ledger" tie.ledger
sqlite3 tie.ledger "update limits set time = (select min(time) from entries)"
expect 0 "" "${run[@]}" --ledger tie.ledger --noise-multiplier 8 --epochs 1 --out t.wisp
order=$(sqlite3 tie.ledger "select group_concat(kind, '') from (select seq, 'L' as kind from limits union all select seq, 'c' from entries order by seq)")
[[ "$order" == LcL* ]] || fail "limits and charges of one second came to be $order"

# A limit that was set then holds now.
expect 4 "the limit is 9" "${run[@]}" --ledger limits.ledger --epsilon 8.9 --epochs 1 --out l.wisp

# The write-ahead log of a killed program is part of its ledger.
cp "$root/tests/golden/killed.ledger" alone.ledger
expect 3 "the '-wal' file that held its charges is not beside it" "$wisp" privacy --ledger alone.ledger --delta 1e-3
expect 3 "the '-wal' file that held its charges is not beside it" "${run[@]}" --ledger alone.ledger --noise-multiplier 8 --epochs 1 --out a.wisp

# The log, and a run that is gone on with from its checkpoint. Of its 8000 steps 100 were paid for, the last 50 after the checkpoint: they are again.
[ "$(sqlite3 log.db 'select count(*) from events')" = 160 ] || fail "the log is not what this test expects"
expect 0 "" "$wisp" evaluate --model base.wisp --data log.db --json
json 'j["users"] == 20'
[ "$(wc -l <stopped.past)" = 11 ] || fail "the stopped ledger is not what this test expects"
expect 0 "" "${run[@]}" --ledger stopped.ledger --noise-multiplier 40 --epochs 2000 --checkpoint stopped.checkpoint --out s.wisp
[ "$(sqlite3 stopped.ledger "$rows" | head -n 10)" = "$(tail -n +2 stopped.past)" ] || fail "the run that was gone on with lost charges"
[ "$(sqlite3 stopped.ledger 'select count(*), count(distinct run) from entries')" = "805|1" ] || fail "the run was begun anew"
[ ! -e stopped.checkpoint ] || fail "a finished run leaves its checkpoint"
# Ledgers of format 2 (tests/golden/ledgers2): what they say is what they said, and asking changes nothing.
rm -f ./*.ledger*
cp "$root"/tests/golden/ledgers2/* .
chains="select seq, hex(chain) from (select seq, chain from limits union select seq, chain from plans union select seq, chain from entries)
  order by seq"
for name in planned several raised; do
  sqlite3 $name.ledger "$past" >$name.past
  sqlite3 $name.ledger "$chains" >$name.chains
  before=$(sha256sum $name.ledger)
  expect 0 "" "$wisp" privacy --ledger $name.ledger --delta 1e-3 --json
  json "j['accounting'] == json.load(open('$name.json'))['accounting']"
  [ "$(sha256sum $name.ledger)" = "$before" ] || fail "$name.ledger was changed by who only reads"
done
# The next run upgrades them: every row keeps its hash, so anchors and models that know one stay good.
second=("$wisp" train --recipe recipe.json --model planned.wisp --data log.db --dataset "golden log" --ledger planned.ledger
  --anchor planned.anchor --planned-runs 3 --epsilon 4 --out p.wisp)
expect 0 "" "${second[@]}"
for name in several raised; do
  expect 0 "" "${run[@]}" --ledger $name.ledger --noise-multiplier 8 --epochs 1 --out p.wisp
done
for name in planned several raised; do
  [ "$(sqlite3 $name.ledger 'pragma user_version')" = 4 ] || fail "$name.ledger was not upgraded"
  for what in past chains; do
    sqlite3 $name.ledger "${!what}" >now
    while read -r row; do grep -qxF "$row" now || fail "$name.ledger lost '$row'"; done <$name.$what
  done
  expect 0 "" "$wisp" privacy --ledger $name.ledger --delta 1e-3 --json
  json "j['accounting']['epsilon'] >= json.load(open('$name.json'))['accounting']['epsilon']"
done
# The second of three planned runs costs nothing beyond the plan.
expect 0 "" "$wisp" privacy --ledger planned.ledger --anchor planned.anchor --delta 1e-3 --json
json "j['accounting']['composition'] == 'plan' and j['accounting']['epsilon'] == json.load(open('planned.json'))['accounting']['epsilon']"
cp "$root/tests/golden/ledgers2/planned.ledger" .
expect 4 "anchor" "${second[@]}"
finish
