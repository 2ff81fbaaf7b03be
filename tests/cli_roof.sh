#!/usr/bin/env bash
# wisp-lab bench --what roof: its counts are compared with figures by hand, and with the work that a device is really asked
# to do, by the emulator's module if this build has it.
#   tests/cli_roof.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

small=(bench --what roof --length 6 --items 40 --inner-width 16 --threads 1 --json)
expect 0 "" "$lab" "${small[@]}" --batch 3
cp out counted.json
expect 0 "" "$lab" "${small[@]}" --batch 6
cp out twice.json
python3 - <<'END' || fail "the counts are not those of the model"
import json
counted, twice = json.load(open("counted.json")), json.load(open("twice.json"))
ops, ops_twice = ({o["op"]: o for o in j["training"]["ops"]} for j in (counted, twice))
B, T, M, D, F, blocks = 3, 6, 40, 64, 16, 2
R = B * T
# Products of a step: queries, keys and values, the output of attention, two of the feed-forward part, with a bias each;
# the logits forward and once more backward, with their bias.
of_block = 2 * R * (D * 3 * D + D * D + 2 * D * F) + R * (3 * D + D + F + D)
logits = 2 * R * M * D
assert ops["linear_forward"]["operations"] in (blocks * of_block + 2 * logits, blocks * of_block + 2 * (logits + R * M))
assert ops["linear_backward_input"]["operations"] == blocks * 2 * R * (D * 3 * D + D * D + 2 * D * F) + logits
pairs = B * T * (T + 1) // 2
assert ops["attention_forward"]["operations"] == blocks * pairs * (4 * D + 5)
assert ops["attention_forward"]["bytes"] == blocks * 4 * (4 * R * D + R)
parameters = M * D + T * D + blocks * (4 * D * D + 4 * D + 2 * D * F + D + F + 4 * D) + 2 * D
assert ops["adam"]["bytes"] in (28 * parameters, 28 * (parameters + M)), (ops["adam"]["bytes"] / 28, parameters)
assert counted["training"]["private"] and "squares_of_rows" in ops
# Work on records doubles with their number; work on parameters does not.
for op, times in (("attention_backward", 2), ("squares_of_rows", 2), ("adam", 1), ("noised_sum", 1)):
    assert ops_twice[op]["operations"] == times * ops[op]["operations"], op
# Every op takes the time of memory or of arithmetic, whichever is longer; the total is their sum.
for device in counted["devices"]:
    total = 0
    for o in counted["training"]["ops"]:
        ms = o["roof_ms"][device["name"]]
        memory, arithmetic = o["bytes"] / device["gb_per_s"] / 1e6, o["operations"] / device["gflops"] / 1e6
        assert max(memory, arithmetic) * 0.999999 <= ms <= (memory + arithmetic) * 1.000001, (o["op"], device["name"])
        total += ms
    assert abs(total - counted["training"]["total"]["roof_ms"][device["name"]]) < 1e-9 * total
assert {"H100", "H200", "Orin", "Thor"} <= {d["name"] for d in counted["devices"]}
assert "measured_ms" not in counted["training"]["total"]
END

# A recipe names model, method, batch and length.
expect 0 "" "$lab" bench --what roof --recipe "$root/models/recipes/ml-1m-dp-10.json" --json
json '[j["training"][k] for k in ("records", "length", "items")] == [2048, 192, 3416]'
# The counts include the product of one history's state with the table of 3,416 items, width 32.
json 'j["inference"]["total"]["operations"] > 2 * 3416 * 32 and "score_tiles" in [op["op"] for op in j["inference"]["ops"]]'
json 'j["inference"]["total"]["operations"] < j["training"]["total"]["operations"] / 2048'
expect 0 "Thor" sh -c '"$1" bench --what roof --batch 2 --length 4 --items 9 >&2' - "$lab"
expect 2 "allowed are 1 to 192" "$lab" bench --what roof --recipe "$root/models/recipes/ml-1m-dp-10.json" --length 193
expect 2 "is of --what products, roof, train" "$lab" bench --what score --recipe "$root/models/recipes/ml-1m-dp-10.json"

# A device gives the same counts, and is timed as well.
module=$build/libwisp_cuda_emulator.so
if grep -q '^WISP_CUDA:BOOL=ON' "$build/CMakeCache.txt" && [ -e "$module" ]; then
  expect 0 "" "$lab" "${small[@]}" --batch 3 --repeats 2 --device cuda --device-module "$module"
  python3 - <<'END' || fail "a device is asked for something else than what is counted without one"
import json
counted, timed = json.load(open("counted.json")), json.load(open("out"))
for part in ("training", "inference"):
    for figure in ("calls", "operations"):
        a, b = ({o["op"]: o[figure] for o in j[part]["ops"] if o["op"] != "pack_weights"} for j in (counted, timed))
        assert a == b, (part, figure, a, b)
    assert all(o["measured_ms"]["median"] > 0 and o["time_over_roof"] > 0 for o in timed[part]["ops"])
here = timed["devices"][-1]
assert here["name"] == "here" and here["gb_per_s"] > 0 and here["source"] == "measured copy"
END
  # Each product of a step, over all records that pass together and for each of them.
  tiny=(--length 6 --items 40 --repeats 1 --json --device cuda --device-module "$module")
  expect 0 "" "$lab" bench --what products --inner-width 16 --batch 2 "${tiny[@]}"
  python3 - <<'END' || fail "products are missing: $(cat out)"
import json
found = {(p["product"], p["n"], p["k"]) for p in json.load(open("out"))["products"]}
kinds = ("forward", "gradient of rows", "gradient of weights", "gradient of each record's weights")
assert found == {(kind, n, k) for kind in kinds for n, k in ((192, 64), (64, 64), (16, 64), (64, 16), (40, 64))}, found
assert all(p["rows"] == 12 and p["records"] == 2 and p["us"]["median"] > 0 for p in json.load(open("out"))["products"])
END
  # The goals stand beside the measured figures, also those that were not measured.
  mkdir goals
  expect 0 "" "$lab" bench --what train --batch 2 "${tiny[@]}" --recipe "$root/models/recipes/ml-1m-dp-10.json"
  cp out goals/train-2048.json
  json 'j["training"]["records"] == 2 and j["training"]["positions"] == 6'
  expect 0 "" "$lab" bench --what roof --batch 2 "${tiny[@]}"
  cp out goals/roof.json
  echo '{"contender": "opacus ghost", "over_wisp": {"median": 8.5}}' >goals/private.jsonl
  expect 0 "" "$root/tests/cuda/goals" goals
  grep -q "private over ordinary step.* missed$" out || fail "an emulator that meets a GPU's goal: $(cat out)"
  grep -q "ghost clipping.* 8.5 met$" out || fail "a goal that is met is not shown: $(cat out)"
  [ "$(grep -c "not measured$" out)" -ge 5 ] || fail "what was not measured is not said: $(cat out)"
fi
finish
