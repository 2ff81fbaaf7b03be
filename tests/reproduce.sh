#!/usr/bin/env bash
# wisp-lab reproduce and tools/reproduce/draw.py: a tiny table on synthetic data, run, resumed, damaged, drawn.
#   tests/reproduce.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
mkdir tmp
export TMPDIR=$work/tmp PYTHONDONTWRITEBYTECODE=1
# holds FILE FILTER checks a Python expression over `j`, the list of the file's parsed lines.
holds() { python3 -c "import json,sys; j=[json.loads(l) for l in open('$1')]; sys.exit(0 if ($2) else 1)" || fail "$2 does not hold: $(head -c 300 "$1")"; }
lines() { [ "$(wc -l <r.jsonl)" -eq "$1" ] || fail "$2: $(wc -l <r.jsonl) lines, expected $1"; }

# The shipped tables: every cell's recipe is read and checked.
for table in "$root"/models/reproduce/*.json; do
  name=$(basename "$table" .json)
  (cd "$root" && "$lab" reproduce "$name" --list --json) >out 2>err || fail "$name: $(head -c 300 err)"
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
 "data": {"label": "synthetic", "users": 60, "public": true}, "base": "base.json",
 "metrics": [{"field": "ndcg@10", "title": "NDCG@10 (%)", "scale": 100, "digits": 2}, {"field": "step_ms", "title": "Step (ms)"}],
 "plot": {"kind": "bars", "field": "ndcg@10"}, "notes": ["The answer.", "A note."],
 "cells": [{"row": "private", "column": "4", "seeds": [1, 2], "published": {"ndcg@10": 0.05}, "published_deviation": {"ndcg@10": 0.01}},
           {"row": "not private", "column": "none", "overrides": {"training": {"method": "ordinary", "sampling": "shuffled"}}, "seeds": [1, 2]},
           {"row": "private", "column": "speed", "kind": "bench",
            "bench": {"what": "clipping", "method": "phantom", "items": 50, "batch": 8, "length": 10, "repeats": 2}}]}
END

# These are refused before anything is run.
run=("$lab" reproduce tiny.json --data log.txt --out r.jsonl --threads 1)
expect 2 "private/4, not private/none, private/speed" "${run[@]}" --cell private/5
expect 2 "no-such-table" "$lab" reproduce no-such-table --list
expect 2 "seed 9" "${run[@]}" --seed 9
expect 2 "--out" "$lab" reproduce tiny.json --data log.txt
expect 2 "--data" "$lab" reproduce tiny.json --out r.jsonl
sed 's/"method": "ordinary"/"methd": "ordinary"/' tiny.json >typo.json
expect 3 "cells\[1\].*methd" "$lab" reproduce typo.json --list
sed 's/"overrides"/"override"/' tiny.json >key.json
expect 3 "'override'" "$lab" reproduce key.json --list
sed 's/"column": "speed", "kind": "bench"/"column": "4", "kind": "bench"/' tiny.json >twice.json
expect 3 "twice" "$lab" reproduce twice.json --list
sed 's/"kind": "bench"/"kind": "bench", "seeds": [1]/' tiny.json >seeds.json
expect 3 "'seeds'" "$lab" reproduce seeds.json --list
sed 's/"bench": {/"decode": {/' tiny.json >nothing.json
expect 3 "cells\[2\].bench is missing" "$lab" reproduce nothing.json --list
sed 's/"method": "phantom"/"method": "dense"/' tiny.json >method.json
expect 3 "ordinary, phantom and ghost" "$lab" reproduce method.json --list
sed 's/"users": 60/"users": 61/' tiny.json >users.json
expect 3 "60 users.*61" "$lab" reproduce users.json --data log.txt --out r.jsonl
# A cell that could not train is named before the first cell is run.
sed 's/"overrides": {"training": {"method": "ordinary", "sampling": "shuffled"}}/"overrides": {"privacy": {"delta": 0.5}}/' tiny.json >late.json
expect 4 "tiny, cell not private/none: delta is 0.5" "$lab" reproduce late.json --data log.txt --out r.jsonl
[ ! -s out ] || fail "a bad cell is found after a run: $(cat out)"
sed 's/"method": "ordinary", "sampling": "shuffled"/"sampling": "shuffled"/' tiny.json >late.json
expect 4 "cell not private/none: .*shuffled" "$lab" reproduce late.json --data log.txt --out r.jsonl
for lacks in 's/, "catalogue": "public"//|needs "catalogue": "public" under data' 's/"num_records_public": 60, //|needs training.num_records_public' \
             's/"hold_out"/"min_item_events": 2, "hold_out"/|data.min_item_events is 2, allowed is 1 where the list of items'; do
  sed "${lacks%|*}" base.json >lacking-base.json
  sed 's/"base.json"/"lacking-base.json"/' tiny.json >lacking.json
  expect 4 "tiny, cell private/4: .*${lacks##*|}" "$lab" reproduce lacking.json --data log.txt --out r.jsonl
done
[ ! -s out ] || fail "a cell that lacks a declaration is found after a run: $(cat out)"
expect 2 "tables are looked for in ./models/reproduce, which is not here.*path" "$lab" reproduce phantom-table-2 --list
mkdir a-folder
expect 3 "log.txt" "$lab" reproduce tiny.json --data log.txt --out log.txt/r.jsonl
[ ! -s out ] || fail "an --out in no folder was refused after a run"
expect 2 "a-folder" "$lab" reproduce tiny.json --data log.txt --out a-folder
[ ! -s out ] || fail "an --out that is a folder was refused after a run"
[ ! -e r.jsonl ] || fail "a refused run wrote results"

# Data that the table does not declare public, or whose size it does not say, is charged as wisp train charges it: to
# the named ledger.
for own in 's/, "public": true//' 's/"users": 60, //'; do
  sed "$own" tiny.json >own.json
  expect 4 "its data is not declared public: --ledger is needed" "$lab" reproduce own.json --data log.txt --out own.jsonl
  [ ! -e own.jsonl ] || fail "a run that was refused wrote results"
done
expect 0 "" "$lab" reproduce own.json --data log.txt --out own.jsonl --cell "private/4" --seed 1 --ledger own.ledger
[ "$(sqlite3 own.ledger 'select count(*) from entries')" -gt 0 ] || fail "a private run on own data was not charged"
grep -q "local only" out || fail "figures of own data are not called local: $(cat out)"
holds own.jsonl '"ndcg@10" in j[0]["not_private"] and "planned_bytes" in j[0]["not_private"] and "epsilon" not in j[0]["not_private"]'
expect 0 "" "$lab" reproduce own.json --data log.txt --out own.jsonl --cell "not private/none" --seed 1
expect 2 "runs on it are not charged" "$lab" reproduce tiny.json --data log.txt --out r.jsonl --ledger own.ledger

# One cell, then the missing ones, then nothing.
expect 0 "" "${run[@]}" --cell private/4 --seed 2 --json
holds out 'len(j) == 1 and j[0]["seed"] == 2'
lines 1 "one run"
expect 0 "" "${run[@]}" --skip-done
lines 5 "the missing runs"
holds r.jsonl '[(l["row"], l.get("seed")) for l in j] == [("private", 2), ("private", 1), ("not private", 1), ("not private", 2), ("private", None)]'
holds r.jsonl 'all(2.07 < l["epsilon"] < 2.08 and l["delta"] == 0.001 and l["noise_multiplier"] == 1.2 for l in j[:2]) and not any("epsilon" in l for l in j[2:])'
holds r.jsonl 'all(l["steps"] == 3 and l["threads"] == 1 and 0 <= l["ndcg@10"] <= l["hit@10"] <= 1 and l["users"] == 60 for l in j[:4])'
holds r.jsonl 'all(l["seconds"] > 0 and l["planned_bytes"] > l["record_state_bytes"] > 0 and "cores" in l["device"] for l in j[:2])'
holds r.jsonl 'j[2]["ndcg@10"] != j[3]["ndcg@10"] and j[2]["recipe"] == j[3]["recipe"]'
holds r.jsonl 'j[0]["recipe"] == j[1]["recipe"] != j[2]["recipe"] and len(j[0]["recipe"]) == 16'
holds r.jsonl "j[2][\"command\"] == \"wisp-lab reproduce tiny --data log.txt --out r.jsonl --cell 'not private/none' --seed 1 --threads 1\""
expect 0 "nothing is left" "${run[@]}" --skip-done
lines 5 "nothing left"
expect 0 "" "$lab" reproduce tiny.json --list --out r.jsonl
grep -q "private/4 .*2 of 2 done" out || fail "--list does not count: $(cat out)"
expect 0 "" "${run[@]}" --cell private/4 --seed 1
lines 6 "a run again without --skip-done"
[ -z "$(ls -A tmp)" ] || fail "temporary ledgers are left behind: $(ls tmp)"

# With another recipe, the old lines no longer count.
sed 's/1.2/1.3/' base.json >b && mv b base.json
expect 0 "" "$lab" reproduce tiny.json --list --out r.jsonl
grep -q "private/4 .*0 of 2 done" out || fail "results of another recipe count as done: $(cat out)"
sed 's/1.3/1.2/' base.json >b && mv b base.json

# A stopped run leaves nothing.
sed 's/"epochs": 1/"epochs": 1000000/' base.json >long-base.json
sed 's/"base.json"/"long-base.json"/; s/"tiny"/"long"/' tiny.json >long.json
"$lab" reproduce long.json --data log.txt --out long.jsonl --cell "not private/none" >out 2>err &
pid=$!
for _ in $(seq 200); do [ -n "$(ls -A tmp)" ] && break; sleep 0.02; done
sleep 0.3
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] && [ ! -e long.jsonl ] && [ -z "$(ls -A tmp)" ] || fail "a cancelled run left something, or another exit code: $(cat err)"

# Programs that append at once all succeed.
for i in $(seq 12); do "${run[@]}" --cell "not private/none" --seed 1 >/dev/null 2>&1 & done
wait
lines 18 "twelve at once"
holds r.jsonl 'len({l["ndcg@10"] for l in j if l["row"] == "not private" and l["seed"] == 1}) == 1'

# Measured cells. Those that differ only in the method are measured together; they need no data.
cat >measured.json <<'END'
{"name": "measured", "title": "Measured", "reference": "nobody", "data": {"label": "none"}, "metrics": [{"field": "step_seconds", "title": "Step"}],
 "plot": {"kind": "lines", "field": "step_seconds", "log": true},
 "cells": [{"row": "ordinary", "column": "8", "kind": "bench", "bench": {"what": "clipping", "method": "ordinary", "items": 50, "batch": 8, "length": 10, "repeats": 2}},
           {"row": "phantom", "column": "8", "kind": "bench", "bench": {"what": "clipping", "method": "phantom", "items": 50, "batch": 8, "length": 10, "repeats": 2}},
           {"row": "ghost", "column": "8", "kind": "bench", "bench": {"what": "clipping", "method": "ghost", "items": 50, "batch": 8, "length": 10, "repeats": 2}},
           {"row": "sparse", "column": "600", "kind": "bench", "bench": {"what": "sparse", "method": "adafest", "items": 600, "batch": 8, "repeats": 4}},
           {"row": "dense", "column": "600", "kind": "bench", "bench": {"what": "sparse", "method": "dense", "items": 600, "batch": 8, "repeats": 4}}]}
END
sed 's/"items": 600/"items": 50/' measured.json >few.json
expect 3 "512 items or more" "$lab" reproduce few.json --list
measured=("$lab" reproduce measured.json --out m.jsonl --threads 2)
expect 2 "--seed is of cells that train" "${measured[@]}" --seed 1
[ ! -e m.jsonl ] || fail "a refused measurement wrote results"
expect 0 "" "${measured[@]}"
holds m.jsonl 'len(j) == 5 and len({l["together"] for l in j[:3]}) == len({l["together"] for l in j[3:]}) == 1 and j[0]["together"] != j[3]["together"]'
holds m.jsonl 'all(abs(l["records_per_second"] * l["step_seconds"] - 8) < 1e-6 and l["batch"] == 8 and l["items"] == 50 for l in j[:3])'
holds m.jsonl 'j[2]["memory_bytes"] == j[1]["memory_bytes"] + 8 * 50 * 50 * 4 and j[2]["memory_bytes_one_record_per_thread"] == j[1]["memory_bytes"] + 2 * 50 * 50 * 4'
holds m.jsonl 'j[2]["step_seconds"] > j[1]["step_seconds"] and j[2]["gram_records_measured"] == 8 and j[2]["gram_sample_multiplied_by"] == 2'
holds m.jsonl 'j[3]["steps_measured"] == 4 and j[4]["steps_measured"] == 3 and abs(j[3]["dense_over_adafest"] * j[3]["step_seconds"] / j[4]["step_seconds"] - 1) < 1e-9'
holds m.jsonl 'j[0]["command"] == "wisp-lab reproduce measured --out m.jsonl --cell ordinary/8 --threads 2" and len({l["recipe"] for l in j}) == 5'
expect 0 "nothing is left" "${measured[@]}" --skip-done
expect 0 "" "${measured[@]}" --cell ghost/8
holds m.jsonl 'len(j) == 6 and j[5]["row"] == "ghost" and j[5]["together"] != j[2]["together"]'
expect 0 "" "$root/tools/reproduce/draw.py" --table measured.json --results m.jsonl --markdown m.md --svg m.svg

# The perplexity of private sampling.
awk '{ print >(substr($1, 2) % 3 == 0 ? "public.txt" : "private.txt") }' log.txt
cat >plain.json <<'END'
{"name": "plain", "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch": 10, "seed": 7}, "data": {"hold_out": "test"}}
END
expect 0 "" "$wisp" new --recipe plain.json --catalogue public --data log.txt --out new.wisp
expect 0 "" "$wisp" train --recipe plain.json --model new.wisp --data public.txt --dataset shipped --out shipped.wisp
expect 0 "" "$wisp" train --recipe plain.json --model shipped.wisp --data private.txt --dataset own --out own.wisp
expect 0 "" "$wisp" train --recipe base.json --model new.wisp --data log.txt --out safe.wisp --ledger safe.ledger
cat >decode.json <<'END'
{"name": "decode", "title": "Decode", "reference": "nobody", "data": {"label": "synthetic"}, "metrics": [{"field": "perplexity", "title": "Perplexity"}],
 "plot": {"kind": "lines", "field": "perplexity"},
 "cells": [{"row": "uniform", "column": "0", "kind": "decode", "decode": {"mode": "uniform", "composition": "pure", "epsilon": 1e-6, "draws": 100}},
           {"row": "uniform", "column": "all", "kind": "decode", "decode": {"mode": "uniform", "composition": "pure", "epsilon": 5000, "draws": 100}},
           {"row": "model", "column": "all", "kind": "decode", "decode": {"mode": "plain"}},
           {"row": "uniform base 9", "column": "0", "kind": "decode", "decode": {"mode": "uniform", "composition": "pure", "epsilon": 1e-6, "draws": 100, "support": "base:9"}},
           {"row": "base", "column": "all", "kind": "decode", "decode": {"mode": "base"}},
           {"row": "anchored", "column": "0", "kind": "decode", "decode": {"mode": "anchored", "composition": "pure", "epsilon": 1e-4, "draws": 100}},
           {"row": "anchored", "column": "4", "kind": "decode", "decode": {"mode": "anchored", "composition": "pld", "epsilon": 4, "delta": 1e-6, "draws": 100}}]}
END
expect 4 "whose perplexity no ledger pays for, and its data is not declared public" "$lab" reproduce decode.json --data private.txt --out d.jsonl --model own.wisp --base shipped.wisp --public-dataset shipped
sed "s/\"label\": \"synthetic\"/\"label\": \"synthetic\", \"public\": true, \"users\": $(cut -d ' ' -f 1 private.txt | sort -u | grep -c .)/" decode.json >d && mv d decode.json
decode=("$lab" reproduce decode.json --data private.txt --out d.jsonl --threads 2)
expect 2 "--model is needed" "${decode[@]}"
expect 2 "--data is needed" "$lab" reproduce decode.json --model own.wisp --out d.jsonl
expect 2 "--base is needed.*not public" "${decode[@]}" --model own.wisp
expect 4 "base model must be public.*'shipped'" "${decode[@]}" --model own.wisp --base shipped.wisp
expect 2 "draws from it are free" "${decode[@]}" --model safe.wisp --base new.wisp
expect 2 "draws from it are free" "${decode[@]}" --model shipped.wisp --public-dataset shipped --base shipped.wisp
"$wisp" new --recipe plain.json --catalogue public --data public.txt --out few.wisp >out 2>err
expect 2 "other items" "${decode[@]}" --model own.wisp --base few.wisp --cell base/all
sed 's/"support": "base:9"/"support": "model:9"/' decode.json >support.json
expect 3 "all and base:K" "$lab" reproduce support.json --list
sed 's/"delta": 1e-6, //' decode.json >delta.json
expect 3 "pld needs a delta" "$lab" reproduce delta.json --list
sed 's/"mode": "plain"/"mode": "plain", "draws": 3/' decode.json >target.json
expect 3 "without a target" "$lab" reproduce target.json --list
[ ! -e d.jsonl ] || fail "refused draws wrote results"
decode+=(--model own.wisp --base shipped.wisp --public-dataset shipped)
expect 0 "" "${decode[@]}"
python3 - <<'END' || fail "the perplexities: $(cat d.jsonl)"
import json, math
users = {}
for line in open("private.txt"):
    user, item = line.split()[:2]
    users.setdefault(user, []).append(item)
items = len({line.split()[1] for line in open("log.txt")})
new = [u for u in users.values() if u[-1] not in u[:-1]]
left = math.exp(sum(math.log(items - len(set(u[:-1]))) for u in new) / len(new))
j = {l["row"] + "/" + l["column"]: l for l in map(json.loads, open("d.jsonl"))}
value = lambda name: j[name]["perplexity"]
assert len(j) == 7 and abs(value("uniform/0") / left - 1) < 1e-5, left
assert abs(j["uniform/0"]["covered"] - len(new) / len(users)) < 1e-12 and j["uniform/0"]["users"] == len(users)
assert abs(value("uniform/all") / value("model/all") - 1) < 1e-6 and value("model/all") != value("base/all")
assert abs(value("uniform base 9/0") - 9) < 1e-6 and 0 < j["uniform base 9/0"]["covered"] < 0.5
assert abs(value("anchored/0") / value("base/all") - 1) < 1e-5
assert 3.99 < j["anchored/4"]["epsilon"] <= 4 and j["anchored/4"]["delta"] == 1e-6 and j["anchored/4"]["clip"] > 0
assert "base" in j["anchored/4"] and "base" not in j["uniform/0"] and len({l["together"] for l in j.values()}) == 1
END
expect 0 "nothing is left" "${decode[@]}" --skip-done
expect 0 "" "$lab" reproduce decode.json --list --model shipped.wisp --out d.jsonl
grep -q "model/all .*0 of 1 done" out || fail "figures of another model count as done: $(cat out)"
expect 0 "" "$root/tools/reproduce/draw.py" --table decode.json --results d.jsonl --markdown d.md --svg d.svg

# The drawing.
draw=("$root/tools/reproduce/draw.py" --table tiny.json --markdown t.md --svg t.svg)
echo '{"table": "tiny", "row": "private", "column": "speed", "step_ms": 12.5, "device": "a device", "date": "2026-01-01", "command": "wisp-lab bench"}' >bench
cat r.jsonl bench >drawn.jsonl
expect 0 "" "${draw[@]}" --results drawn.jsonl
python3 - <<'END' || fail "the table of NDCG: $(head -n 20 t.md)"
import json, statistics
ndcg = lambda row: [json.loads(l)["ndcg@10"] * 100 for l in open("drawn.jsonl") if f'"row":"{row}"' in l and "ndcg" in l]
cell = lambda v: f"{statistics.mean(v):.2f} ± {statistics.stdev(v):.2f} (n {len(v)})"
text = open("t.md").read()
assert len(ndcg("private")) == 3 and len(ndcg("not private")) == 14
assert f"| method | epsilon 4 | epsilon none | epsilon speed |" in text
assert f"| private | {cell(ndcg('private'))}; published 5.00 ± 1.00 |  | not run |" in text, cell(ndcg("private"))
assert f"| not private |  | {cell(ndcg('not private'))} |  |" in text, cell(ndcg("not private"))
assert "epsilon, accounted 2.071, delta 0.001," in text  # 2.0702: a bound is rounded up
assert text.startswith("# Tiny <table>\n\nThe answer.\n") and "(drawn.jsonl)" in text
assert "--cell" not in text and "--out drawn.jsonl --skip-done" in text
END
grep -q '| 12.500 (n 1) |' t.md || fail "a bench figure is not drawn, or has a deviation: $(cat t.md)"
for word in '# Tiny' 'nobody, table 0' '- A note' '(t.svg)' '; a device. Dates: ' '^wisp-lab bench$' 'Wall time'; do
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
# A bar is as high as its mean: both are compared with the axis' first ticks.
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
sed 's/ "plot": {"kind": "bars", "field": "ndcg@10"},//' tiny.json >plotless.json
rm t.svg
expect 0 'has no "plot"' "${draw[@]}" --table plotless.json --results drawn.jsonl
[ ! -e t.svg ] && ! grep -q "t.svg" <(head -n 20 t.md) || fail "a table without a plot was drawn"
sed 's/"metrics"/"metric"/' tiny.json >metricless.json
expect 3 'has no "metrics"' "${draw[@]}" --table metricless.json --results drawn.jsonl
sed 's/"recipe":"[0-9a-f]*"/"recipe":"older"/' r.jsonl | head -n 1 | cat - r.jsonl >mixed.jsonl
expect 0 "1 lines of an older recipe or model" "${draw[@]}" --results mixed.jsonl

# Damage is named by its line, and nothing is appended to it.
sed 's/"table":"tiny"/"table":"tinier"/' r.jsonl >other.jsonl
expect 3 "line 1: it belongs to another table" "$lab" reproduce tiny.json --list --out other.jsonl
expect 3 "line 1: it belongs to another table" "${draw[@]}" --results other.jsonl
sed '2s/}$//' r.jsonl >damaged.jsonl
expect 3 "damaged.jsonl, line 2: it is damaged" "$lab" reproduce tiny.json --list --out damaged.jsonl
expect 3 "damaged.jsonl, line 2: it is damaged" "${draw[@]}" --results damaged.jsonl
head -c -1 r.jsonl >torn.jsonl
cp torn.jsonl before
expect 3 "torn.jsonl, line 18: the last line is cut off" "$lab" reproduce tiny.json --data log.txt --out torn.jsonl
expect 3 "torn.jsonl, line 18: the last line is cut off" "${draw[@]}" --results torn.jsonl
cmp -s torn.jsonl before || fail "a damaged file was changed"

finish
