#!/usr/bin/env bash
# How the program's commands are called, the answers to unknown ones, and the commands that need neither model nor data.
#   tests/cli_usage.sh BUILD_FOLDER
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
expect 2 "there is no command 'foo'; the commands of wisp-lab audit are step, run" "$lab" audit foo --json
expect 2 "wisp train has no option '--epsilom'; wisp train --help lists all; did you mean --epsilon?$" \
  "$wisp" train --epsilom 3
expect 2 "wisp train has no option '--epsilom'.*--epsilon?" "$wisp" train --recipe r.json --epsilom=3
expect 2 "wisp privacy epsilon has no option '-sigma'.*--sigma?" "$wisp" privacy epsilon -sigma 3
expect 2 "wisp has no option '--zzz'; wisp --help lists all$" "$wisp" --zzz
# An empty value does not take the next option as its value, which would drop a limit.
expect 2 "wisp train: --ledger= has nothing behind it; give --ledger a value or leave it out$" \
  "$wisp" train --recipe r.json --ledger= --budget=0.01
expect 2 "there is no command 'foo'; the commands of wisp privacy are" "$wisp" privacy --json foo
# An error about a value names the option, the value, and what is allowed.
while IFS='|' read -r sentence words; do
  # shellcheck disable=SC2086
  expect 2 "^wisp: $sentence; see wisp ${words%% -*} --help$" "$wisp" $words
done <<'CASES'
--epochs is 'x', allowed is a number|train --epochs x
--count is -5, allowed is a whole number from 0 on|recommend --count=-5
--count is 4294967296, allowed is a whole number up to 4294967295|recommend --count 4294967296
--steps is 2.5, allowed is a whole number from 0 on|privacy epsilon --steps 2.5
--threads is 5000, allowed are 0 to 1024|train --threads 5000
--threads is 'x', allowed are 0 to 1024|train --threads x
--seed is -1, allowed is a whole number from 0 on|train --seed -1
--steps is -60, allowed is a whole number from 0 on|privacy epsilon --steps -60
--draws is -100, allowed is a whole number from 0 on|privacy decoding --draws -100
--device is 'gpu', allowed are cpu and cuda|train --device gpu
--allow-large-delta is 'no', allowed is yes|train --allow-large-delta no
--re-attention is 'maybe', allowed is --re-attention alone, without a value|train --re-attention=maybe
--recipe needs a value behind it|train --recipe
--recipe is given 2 times, allowed is once|train --recipe r --recipe s
CASES
expect 2 "^wisp-lab: --temperature is 0, allowed are 0.001 to 1000" "$lab" perplexity --temperature 0
expect 2 "^wisp: 'b' is more than wisp inspect takes; see wisp inspect --help$" "$wisp" inspect a b
expect 2 "^wisp: 'b c' is more than wisp inspect takes; see wisp inspect --help$" "$wisp" inspect a b c
expect 2 "^wisp: --stop needs a value behind it; see wisp generate --help$" "$wisp" generate m.wisp --prompt a --stop
expect 2 "^wisp: a command is needed; the commands of wisp catalogue are add, .*; see wisp catalogue --help$" \
  "$wisp" catalogue
# A program that starts this one can tell missing files and features that this build lacks from wrong data.
expect 3 "nowhere.wisp: cannot be opened" "$wisp" inspect nowhere.wisp
expect 5 "nowhere.wisp: cannot be opened" env WISP_EXIT_CODES=c "$wisp" inspect nowhere.wisp
expect 3 "its first bytes are others" env WISP_EXIT_CODES=c "$wisp" inspect "$root/README.md"
expect 3 "nowhere.wisp" "$wisp" classify predict --model nowhere.wisp --text --looks-like-an-option
expect 2 "the name of a table is needed: .*phantom-table-2" sh -c 'cd "$1" && "$2" reproduce' sh "$root" "$lab"
expect 2 "population" "$wisp" synth --out x.db --population martian
expect 2 "ledger" "$wisp" privacy
expect 0 "" "$wisp" --version
grep -qx "wisp [0-9]*\.[0-9]*\.[0-9]*" out || fail "--version says $(cat out)"
expect 0 "" "$wisp" train --help
grep -q "fine-tune" out || fail "train --help does not explain itself"
for default in "recipe 64" "recipe 0.0002" "recipe 3"; do
  tr -s ' \n' ' ' <out | grep -q "without a $default" || fail "train --help does not say 'without a $default'"
done
for command in train "classify train"; do
  # shellcheck disable=SC2086
  expect 0 "" "$wisp" $command --help
  tr -s ' \n' ' ' <out | grep -q "Short texts, such as single sentences, take several times as long" ||
    fail "$command --help does not say what --recompute-blocks costs"
done

# The encoder, its weights and its results.
expect 0 "" "$lab" bench --what encoder --items 50 --repeats 1 --threads 2 --tensors encoder.safetensors --json
json 'j["encoder"]["ms"]["median"] > 0 and j["encoder"]["planned_bytes"] > j["encoder"]["planned_bytes_int8"]'
json 'j["encoder"]["several_threads"]["threads"] == 2 and j["encoder"]["several_threads"]["over_one_thread"]["median"] > 0'
[ -s encoder.safetensors ] || fail "bench --tensors wrote nothing"
expect 0 "" "$lab" bench --what ops --length 20 --items 300 --repeats 2 --json
python3 - <<'PY' || fail "bench --what ops printed $(head -c 300 out)"
import json
first, *ops = map(json.loads, open("out"))
assert first["memory_gb_per_s"] > 0
assert {o["op"] for o in ops} >= {"linear_forward", "attention_backward", "adam", "top_k"}
assert all(o["percent_of_roof"]["median"] > 0 for o in ops)
PY
# An option that the bench does not read is refused; a peak counts processors, not threads that wait for them.
expect 2 "--tensors is of --what decoder, encoder; --what score does not read it" \
  "$lab" bench --what score --tensors x.safetensors
expect 2 "--batch is of --what all, clipping, products, roof, sparse, train; --what score does not" "$lab" bench --what score --batch 4
expect 2 "--threads is of .*; --what ops does not" "$lab" bench --what ops --threads 2
expect 0 "there are $(nproc) processors" \
  "$lab" bench --what train --length 10 --items 100 --batch 8 --repeats 1 --threads $((4 * $(nproc))) --json
json 'j["training"]["threads"] == 4 * '"$(nproc)"' and j["training"]["threads_in_peak"] == '"$(nproc)"

# A command whose output is lost does not exit with 0.
for words in --version --help "privacy epsilon --sigma 1 --q 0.1 --steps 10 --delta 1e-5"; do
  expect 3 "standard output could not be written: .*its charges stay" \
    sh -c "'$wisp' $words >/dev/full"
done

finish
