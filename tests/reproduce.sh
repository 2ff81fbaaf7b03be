#!/usr/bin/env bash
# wisp reproduce and tools/reproduce/draw.py from outside: a tiny table on synthetic data, run, resumed, damaged, drawn.
#   tests/reproduce.sh BUILD_FOLDER
set -uo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
wisp=$build/wisp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp
export TMPDIR=$work/tmp PYTHONDONTWRITEBYTECODE=1
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# expect CODE WORD COMMAND...: exit code, and a word on standard error
expect() {
  local code=$1 word=$2 got=0
  shift 2
  "$@" >out 2>err || got=$?
  [ "$got" -eq "$code" ] || fail "$* exited $got, expected $code: $(head -c 300 err)"
  [ -z "$word" ] || grep -q -- "$word" err || fail "$* did not say '$word': $(head -c 300 err)"
}
# holds FILE FILTER: a Python expression over `j`, the list of the file's lines parsed, that must hold
holds() { python3 -c "import json,sys; j=[json.loads(l) for l in open('$1')]; sys.exit(0 if ($2) else 1)" || fail "$2 does not hold: $(head -c 300 "$1")"; }
lines() { [ "$(wc -l <r.jsonl)" -eq "$1" ] || fail "$2: $(wc -l <r.jsonl) lines, expected $1"; }

# The tables that are shipped: every cell's recipe is read and checked.
for table in "$root"/models/reproduce/*.json; do
  name=$(basename "$table" .json)
  (cd "$root" && "$wisp" reproduce "$name" --list --json) >out 2>err || fail "$name: $(head -c 300 err)"
  python3 -c "import json; j=json.load(open('out')); assert all(c['seeds'] for c in j if c['kind'] == 'train') and len({c['recipe'] for c in j}) == len(j)" 2>err ||
    fail "$name: a cell without seeds, or two with one recipe"
done

"$wisp" synth --out log.txt --population device --users 60 --seed 3 >out 2>err || fail "synth"
cat >base.json <<'END'
{"name": "tiny", "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "phantom", "sampling": "poisson", "epochs": 1, "expected_batch": 20, "num_records_public": 60, "seed": 7},
 "privacy": {"noise_multiplier": 1.2, "delta": 0.001}, "data": {"hold_out": "test", "catalogue": "public"}}
END
cat >tiny.json <<'END'
{"name": "tiny", "title": "Tiny <table>", "reference": "nobody, table 0", "row_title": "method", "column_title": "epsilon",
 "data": {"label": "synthetic", "users": 60}, "base": "base.json",
 "metrics": [{"field": "ndcg@10", "title": "NDCG@10 (%)", "scale": 100, "digits": 2}, {"field": "step_ms", "title": "Step (ms)"}],
 "plot": {"kind": "bars", "field": "ndcg@10"}, "notes": ["A note."],
 "cells": [{"row": "private", "column": "4", "seeds": [1, 2], "published": {"ndcg@10": 0.05}, "published_deviation": {"ndcg@10": 0.01}},
           {"row": "not private", "column": "none", "overrides": {"training": {"method": "ordinary", "sampling": "shuffled"}}, "seeds": [1, 2]},
           {"row": "private", "column": "speed", "kind": "bench"}]}
END

# What is refused before anything is run.
run=("$wisp" reproduce tiny.json --data log.txt --out r.jsonl --threads 1)
expect 2 "private/4, not private/none, private/speed" "${run[@]}" --cell private/5
expect 2 "no-such-table" "$wisp" reproduce no-such-table --list
expect 2 "seed 9" "${run[@]}" --seed 9
expect 2 "--out" "$wisp" reproduce tiny.json --data log.txt
expect 2 "--data" "$wisp" reproduce tiny.json --out r.jsonl
expect 2 "wisp bench" "${run[@]}" --cell private/speed
sed 's/"method": "ordinary"/"methd": "ordinary"/' tiny.json >typo.json
expect 3 "cells\[1\].*methd" "$wisp" reproduce typo.json --list
sed 's/"overrides"/"override"/' tiny.json >key.json
expect 3 "'override'" "$wisp" reproduce key.json --list
sed 's/"column": "speed", "kind": "bench"/"column": "4", "kind": "bench"/' tiny.json >twice.json
expect 3 "twice" "$wisp" reproduce twice.json --list
sed 's/"users": 60/"users": 61/' tiny.json >users.json
expect 3 "60 users.*61" "$wisp" reproduce users.json --data log.txt --out r.jsonl
mkdir a-folder
expect 3 "log.txt" "$wisp" reproduce tiny.json --data log.txt --out log.txt/r.jsonl
[ ! -s out ] || fail "an --out in no folder was refused after a run"
expect 2 "a-folder" "$wisp" reproduce tiny.json --data log.txt --out a-folder
[ ! -s out ] || fail "an --out that is a folder was refused after a run"
[ ! -e r.jsonl ] || fail "a refused run wrote results"

# One cell, then what is missing, then nothing.
expect 0 "" "${run[@]}" --cell private/4 --seed 2 --json
holds out 'len(j) == 1 and j[0]["seed"] == 2'
lines 1 "one run"
expect 0 "left out here" "${run[@]}" --skip-done
lines 4 "the missing runs"
holds r.jsonl '[(l["row"], l["seed"]) for l in j] == [("private", 2), ("private", 1), ("not private", 1), ("not private", 2)]'
holds r.jsonl 'all(2.07 < l["epsilon"] < 2.08 and l["delta"] == 0.001 and l["noise_multiplier"] == 1.2 for l in j[:2]) and not any("epsilon" in l for l in j[2:])'
holds r.jsonl 'all(l["steps"] == 3 and l["threads"] == 1 and 0 <= l["ndcg@10"] <= l["hit@10"] <= 1 and l["users"] == 60 for l in j)'
holds r.jsonl 'all(l["seconds"] > 0 and l["planned_bytes"] > l["record_state_bytes"] > 0 and "cores" in l["device"] for l in j[:2])'
holds r.jsonl 'j[2]["ndcg@10"] != j[3]["ndcg@10"] and j[2]["recipe"] == j[3]["recipe"]'
holds r.jsonl 'j[0]["recipe"] == j[1]["recipe"] != j[2]["recipe"] and len(j[0]["recipe"]) == 16'
holds r.jsonl "j[2][\"command\"] == \"wisp reproduce tiny --data log.txt --out r.jsonl --cell 'not private/none' --seed 1 --threads 1\""
expect 0 "nothing is left" "${run[@]}" --skip-done
lines 4 "nothing left"
expect 0 "" "$wisp" reproduce tiny.json --list --out r.jsonl
grep -q "private/4 .*2 of 2 done" out || fail "--list does not count: $(cat out)"
expect 0 "" "${run[@]}" --cell private/4 --seed 1
lines 5 "a run again without --skip-done"
[ -z "$(ls -A tmp)" ] || fail "temporary ledgers are left behind: $(ls tmp)"

# Another recipe makes the old lines old.
sed 's/1.2/1.3/' base.json >b && mv b base.json
expect 0 "" "$wisp" reproduce tiny.json --list --out r.jsonl
grep -q "private/4 .*0 of 2 done" out || fail "results of another recipe count as done: $(cat out)"
sed 's/1.3/1.2/' base.json >b && mv b base.json

# A run that is stopped leaves nothing.
sed 's/"epochs": 1/"epochs": 1000000/' base.json >long-base.json
sed 's/"base.json"/"long-base.json"/; s/"tiny"/"long"/' tiny.json >long.json
"$wisp" reproduce long.json --data log.txt --out long.jsonl --cell "not private/none" >out 2>err &
pid=$!
for _ in $(seq 200); do [ -n "$(ls -A tmp)" ] && break; sleep 0.02; done
sleep 0.3
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] && [ ! -e long.jsonl ] && [ -z "$(ls -A tmp)" ] || fail "a cancelled run left something, or another exit code: $(cat err)"

# Programs that append at once all succeed.
for i in $(seq 12); do "${run[@]}" --cell "not private/none" --seed 1 >/dev/null 2>&1 & done
wait
lines 17 "twelve at once"
holds r.jsonl 'len({l["ndcg@10"] for l in j if l["row"] == "not private" and l["seed"] == 1}) == 1'

# The drawing.
draw=("$root/tools/reproduce/draw.py" --table tiny.json --markdown t.md --svg t.svg)
echo '{"table": "tiny", "row": "private", "column": "speed", "step_ms": 12.5, "device": "a device", "date": "2026-01-01", "command": "wisp bench"}' >bench
cat r.jsonl bench >drawn.jsonl
expect 0 "" "${draw[@]}" --results drawn.jsonl
python3 - <<'END' || fail "the table of NDCG: $(head -n 20 t.md)"
import json, statistics
ndcg = lambda row: [json.loads(l)["ndcg@10"] * 100 for l in open("drawn.jsonl") if f'"row":"{row}"' in l]
cell = lambda v: f"{statistics.mean(v):.2f} ± {statistics.stdev(v):.2f} (n {len(v)})"
text = open("t.md").read()
assert len(ndcg("private")) == 3 and len(ndcg("not private")) == 14
assert f"| method | epsilon 4 | epsilon none | epsilon speed |" in text
assert f"| private | {cell(ndcg('private'))}; published 5.00 ± 1.00 |  | not run |" in text, cell(ndcg("private"))
assert f"| not private |  | {cell(ndcg('not private'))} |  |" in text, cell(ndcg("not private"))
assert "| 2.071 | 0.001 |" in text  # 2.0702: a bound is rounded up
END
grep -q '| 12.500 (n 1) |' t.md || fail "a bench figure is not drawn, or has a deviation: $(cat t.md)"
for word in '# Tiny' 'nobody, table 0' '- A note' '(t.svg)' 'Device: a device' '^wisp bench$' 'Wall time'; do
  grep -q -- "$word" t.md || fail "t.md does not say '$word'"
done
python3 - <<'END' || fail "the SVG's structure"
import json, xml.etree.ElementTree as E
tree = E.parse("t.svg")
kind = lambda tag: [e for e in tree.iter() if e.tag.endswith("}" + tag)]
texts = [e.text for e in kind("text")]
assert {"Tiny <table>", "NDCG@10 (%)", "epsilon", "4", "none", "private", "not private", "published", "0"} <= set(texts), texts
bars = [e for e in kind("rect") if float(e.get("height")) != 12]
assert len(bars) == 2 and sum(e.get("class") == "error" for e in kind("path")) == 2
# A bar is as high as its mean: both against the axis' first ticks.
ticks = sorted((float(e.get("y")) - 4, float(e.text)) for e in kind("text") if e.get("text-anchor") == "end")
(y1, v1), (y0, v0) = ticks[0], ticks[-1]
values = [json.loads(l)["ndcg@10"] * 100 for l in open("drawn.jsonl") if '"not private"' in l]
assert len(values) == 14
heights = [(float(b.get("height")) / (y0 - y1)) * (v1 - v0) for b in bars]
assert v0 == 0 and abs(heights[1] - sum(values) / 14) < 0.02 * v1, (heights, values)
assert "prefers-color-scheme: dark" in open("t.svg").read()
END
sed 's/"kind": "bars"/"kind": "lines", "log": true/' tiny.json >log.json
expect 0 "" "${draw[@]}" --table log.json --results drawn.jsonl
python3 -c "import xml.etree.ElementTree as E; t=E.parse('t.svg'); assert any(e.tag.endswith('circle') for e in t.iter())" || fail "lines are not drawn"
sed 's/"recipe":"[0-9a-f]*"/"recipe":"older"/' r.jsonl | head -n 1 | cat - r.jsonl >mixed.jsonl
expect 0 "1 lines of an older recipe" "${draw[@]}" --results mixed.jsonl

# Damage is named by its line, and nothing is added behind it.
sed 's/"table":"tiny"/"table":"tinier"/' r.jsonl >other.jsonl
expect 3 "line 1: it belongs to another table" "$wisp" reproduce tiny.json --list --out other.jsonl
expect 3 "line 1: it belongs to another table" "${draw[@]}" --results other.jsonl
sed '2s/}$//' r.jsonl >damaged.jsonl
expect 3 "damaged.jsonl, line 2: it is damaged" "$wisp" reproduce tiny.json --list --out damaged.jsonl
expect 3 "damaged.jsonl, line 2: it is damaged" "${draw[@]}" --results damaged.jsonl
head -c -1 r.jsonl >torn.jsonl
cp torn.jsonl before
expect 3 "torn.jsonl, line 17: the last line is cut off" "$wisp" reproduce tiny.json --data log.txt --out torn.jsonl
expect 3 "torn.jsonl, line 17: the last line is cut off" "${draw[@]}" --results torn.jsonl
cmp -s torn.jsonl before || fail "a damaged file was changed"

[ "$failures" -eq 0 ] && echo "all held" || { echo "$failures failures"; exit 1; }
