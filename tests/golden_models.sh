#!/usr/bin/env bash
# Model files of every format (tests/golden/models) say today what they said when their format was new.
#   tests/golden_models.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
# The same items in the same order, and numbers but for the rounding of another processor.
same() {
  python3 - "$1" out <<'PYTHON' || fail "$1 says something else than it did: $(head -c 300 out)"
import json, sys
old, new = (json.load(open(f)) for f in sys.argv[1:])
assert len(old) == len(new), (len(old), len(new))
for a, b in zip(old, new):
    assert a.keys() == b.keys(), (a, b)
    for key in a:
        close = abs(a[key] - b[key]) <= 1e-5 * (1 + abs(a[key])) if isinstance(a[key], float) else a[key] == b[key]
        assert close, (key, a[key], b[key])
PYTHON
}
seen=0
for model in "$root"/tests/golden/models/*.wisp; do
  said=${model%.wisp}.json
  expect 0 "" "$wisp" inspect --model "$model" --verify
  case $model in
    *-texts.wisp) expect 0 "" "$wisp" classify predict --model "$model" --text "a great film" --text "a dull film" --json ;;
    *) expect 0 "" "$wisp" recommend --model "$model" --history i1,i2,i3 --count 7 --allow-seen --json ;;
  esac
  same "$said"
  seen=$((seen + 1))
done
[ "$seen" -ge 9 ] || fail "$seen files were read"
# The first byte of the oldest reader that each names: blocks that differ need format 4, gates and rotary positions 5.
oldest() { od -An -tu1 -j12 -N1 "$root/tests/golden/models/$1.wisp" | tr -d ' '; }
for of in v3-alike=1 v3-slope=2 v3-halves=3 v4-mixed=4 v4-texts=1 v5-gates=5 v5-rotary=5 v5-texts=1; do
  [ "$(oldest "${of%=*}")" = "${of#*=}" ] || fail "${of%=*} is for readers of format $(oldest "${of%=*}"), expected ${of#*=}"
done
finish
