#!/usr/bin/env bash
# Every file of tests/golden/0.1 is read, says what the JSON beside it says, and can be used further
# (tests/golden/README.md).
#   tests/golden.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
cp "$root"/tests/golden/0.1/* . 2>/dev/null

# says FILE checks that `out` says what FILE.json does, except for the rounding of another processor.
says() {
  python3 - "$1.json" out <<'PYTHON' || fail "$1 says something else than it did: $(head -c 300 out)"
import json, sys

def same(was, now, where=""):
    assert type(was) is type(now) or {type(was), type(now)} == {int, float}, (where, was, now)
    if isinstance(was, dict):
        for key in was:  # new keys may stand beside it
            assert key in now, (where, key)
            if key == "not_private":  # a list of names
                assert set(was[key]) <= set(now[key]), (where, key, was[key], now[key])
            elif key != "created_by":
                same(was[key], now[key], f"{where}.{key}")
    elif isinstance(was, list):
        assert len(was) == len(now), (where, was, now)
        for i, pair in enumerate(zip(was, now)):
            same(*pair, f"{where}[{i}]")
    elif isinstance(was, float):
        assert abs(was - now) <= 1e-5 * (1 + abs(was)), (where, was, now)
    else:
        assert was == now, (where, was, now)

same(*(json.load(open(name)) for name in sys.argv[1:]))
PYTHON
}

seen=0
for file in *; do
  before=$(sha256sum "$file")
  case $file in
    *.json) continue ;;
    adapter.wisp) expect 0 "" "$wisp" recommend --model f32.wisp --adapter adapter.wisp --history i1,i2,i3 --count 7 --allow-seen --json ;;
    *.wisp)
      expect 0 "" "$wisp" inspect "$file" --verify
      expect 0 "" "$wisp" recommend --model "$file" --history i1,i2,i3 --count 7 --allow-seen --json
      ;;
    closed.ledger) expect 0 "" "$wisp" privacy --ledger closed.ledger --anchor closed.anchor --delta 1e-3 --json ;;
    *.ledger) expect 0 "" "$wisp" privacy --ledger "$file" --delta 1e-3 --json ;;
    log.db) expect 0 "" "$wisp" log count log.db --json ;;
    closed.anchor | open.checkpoint | out | err) continue ;;  # read with their ledgers
    *) fail "nobody reads $file" && continue ;;
  esac
  says "$file"
  [ "$(sha256sum "$file")" = "$before" ] || fail "$file was changed by who only reads"
  seen=$((seen + 1))
done
[ "$seen" = 9 ] || fail "$seen files were read, expected 9"

# A kept statement agrees with its ledger.
expect 0 "" "$wisp" privacy check closed.ledger.json --ledger closed.ledger
grep -q "^closed.ledger.json: holds" out || fail "a check of the kept statement says $(cat out)"

# The stopped run resumes from its checkpoint: what was charged stays, and the run is not begun anew.
rows="select id, time, run, purpose, noise, mechanism, loss_slack from entries order by id"
sqlite3 open.ledger "$rows" >past
run=("$wisp" train --recipe recipe.json --model f32.wisp --data log.db --dataset "golden log" --threads 1)
expect 0 "" "${run[@]}" --ledger open.ledger --noise-multiplier 40 --epochs 2000 --checkpoint open.checkpoint --out out.wisp
sqlite3 open.ledger "$rows" >now
[ "$(head -n "$(wc -l <past)" now)" = "$(cat past)" ] || fail "open.ledger lost something: $(diff past now)"
[ "$(wc -l <now)" -ge 80 ] || fail "the run was not paid for to its end: $(wc -l <now) charges"
[ "$(sqlite3 open.ledger 'select count(distinct run) from entries')" = 1 ] || fail "the run was begun anew"
[ ! -e open.checkpoint ] || fail "a finished run leaves its checkpoint"
# The next run needs the anchor and stands in the same ledger.
expect 0 "" "${run[@]}" --ledger closed.ledger --anchor closed.anchor --noise-multiplier 8 --epochs 1 --out next.wisp
[ "$(sqlite3 closed.ledger 'select count(distinct run) from entries')" = 2 ] || fail "the next run is not in the ledger"

# A ledger of another version is refused in a sentence, and stays as it is.
cp "$root/tests/golden/0.1/open.ledger" other.ledger
sqlite3 other.ledger "pragma user_version = 2"
before=$(sha256sum other.ledger)
expect 3 "has version 2, this build reads version 1; a newer build wrote it" "$wisp" privacy --ledger other.ledger --delta 1e-3
[ "$(sha256sum other.ledger)" = "$before" ] || fail "a refused ledger was changed"
finish
