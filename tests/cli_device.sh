#!/usr/bin/env bash
# --device: training and recommending in a GPU's memory, by the emulator's module if there is no GPU, and the output if
# there is neither.
#   tests/cli_device.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"

module=$build/libwisp_cuda_emulator.so
[ -e "$module" ] || { echo "skipped: this build has no emulator of a GPU"; exit 77; }
emulated=(--device cuda --device-module "$module")

"$wisp" synth --out log.db --population device --users 60 --seed 3 >/dev/null 2>&1 || fail "synth"
train=("$wisp" train --recipe "$root/models/recipes/cafe-device.json" --model "$root/models/cafe.wisp" --data log.db --dataset log
       --num-records-public 60 --batch 6 --epochs 1 --delta 0.001 --epsilon 8 --threads 2 --reproducible-noise 3 --json)

# One run on both sides gives the same charges, and a model that ranks as well, noise included.
figures='{k: j[k] for k in ("steps", "epsilon", "noise_multiplier", "records", "records_dropped", "test")}'
for side in cpu cuda; do
  device=()
  [ $side = cuda ] && device=("${emulated[@]}")
  expect 0 "" "${train[@]}" --out $side.wisp --ledger $side.ledger --privacy-json $side.json "${device[@]}"
  cp out $side.out
done
python3 - <<'END' || fail "the run on the device is another than on the processor"
import json
cpu, cuda = json.load(open("cpu.out")), json.load(open("cuda.out"))
for key in ("steps", "epsilon", "noise_multiplier", "records", "records_dropped"):
    assert cpu[key] == cuda[key], key
assert abs(cpu["test"]["ndcg@10"] - cuda["test"]["ndcg@10"]) < 0.01
assert "device" not in cpu and cuda["device"].startswith("cuda (emulator, ")
END
python3 - <<'END' || fail "the weights of the two runs are not alike"
import array
cpu, cuda = (array.array("f", open(f"{side}.wisp", "rb").read()[-61440:]) for side in ("cpu", "cuda"))
assert cpu != cuda, "rounding alone makes them differ"
assert max(abs(a - b) for a, b in zip(cpu, cuda)) < 0.01
END
expect 0 "" "$wisp" recommend --model cuda.wisp --data log.db --user u00003

# A device that shares the host's memory, in either kind of memory, gives the same bytes as one that does not.
for kind in managed device; do
  expect 0 "" env WISP_TEST_INTEGRATED=1 WISP_CUDA_MEMORY=$kind "${train[@]}" --out $kind.wisp --ledger $kind.ledger "${emulated[@]}"
  python3 -c "a, b = (open(f, 'rb').read()[-61440:] for f in ('$kind.wisp', 'cuda.wisp')); assert a == b" ||
    fail "other weights in $kind memory"
  grep -q "shared with the processor" out || fail "the run does not say that memory is shared: $(head -c 300 out)"
  [ "$(grep -c "managed memory" out)" = $([ $kind = managed ] && echo 1 || echo 0) ] || fail "the run does not say which kind it has"
done
inspect=("$wisp" inspect "$root/models/cafe.wisp" --memory --method phantom --records 60 "${emulated[@]}")
expect 0 "" env WISP_TEST_INTEGRATED=1 "${inspect[@]}" --json
json '"managed memory, shared with the processor" in j["training"]["device"]'
expect 3 "WISP_CUDA_MEMORY names no kind of memory; allowed are device and managed" env WISP_CUDA_MEMORY=pinned "${inspect[@]}"
expect 3 "WISP_CUDA_MEMORY is managed, which is for GPUs that share" env WISP_CUDA_MEMORY=managed "${inspect[@]}"

# A run resumes on the device from the processor's checkpoint.
"$wisp" train --help >/dev/null
expect 0 "" timeout 120 "${train[@]}" --out part.wisp --ledger part.ledger --checkpoint part.ckpt --checkpoint-every 2 "${emulated[@]}"

# Without such a device the run continues on the processor, and says so; its bytes are the processor's.
cp cpu.wisp before.wisp
rm -f cpu.wisp cpu.ledger
without=(env WISP_TEST_NO_GPU=1)
expect 0 "there is no device cuda: the emulator plays a machine without a GPU. What follows runs on the processor" \
  "${without[@]}" "${train[@]}" --out cpu.wisp --ledger cpu.ledger "${emulated[@]}"
python3 -c 'a, b = (open(f, "rb").read()[-61440:] for f in ("cpu.wisp", "before.wisp")); assert a == b' || fail "other weights without a device"
# A named module must exist and be one: a mistyped path spends nothing.
for wrong in "$work/none.so" libm.so.6; do
  expect 2 "the device cuda cannot be opened: .*\(was not loaded\|is no module of wisp\)" \
    "${train[@]}" --out o.wisp --ledger o.ledger --device cuda --device-module "$wrong"
done
[ ! -e o.wisp ] && [ ! -e o.ledger ] || fail "a run with a wrong module wrote something"

# Other methods give the processor's charges and weights.
alike() {  # CPU_MODEL CUDA_MODEL BYTES: the weights at the end of both files
  python3 - "$@" <<'END' || fail "the weights of $1 and $2 are not alike"
import array, sys
cpu, cuda = (array.array("f", open(f, "rb").read()[-int(sys.argv[3]):]) for f in sys.argv[1:3])
assert cpu != cuda, "rounding alone makes them differ"
assert max(abs(a - b) for a, b in zip(cpu, cuda)) < 0.01
END
}
for method in rgp adafest; do
  expect 0 "" "${train[@]}" --method $method --out $method.cpu --ledger $method.ledger
  expect 0 "" "${train[@]}" --method $method --out $method.cuda --ledger $method.ledger2 "${emulated[@]}"
  json 'j["device"].startswith("cuda (emulator")'
  alike $method.cpu $method.cuda 61440
done

# A run that does not fit into the device's memory is refused before anything is charged.
expect 3 "there is no room on the device cuda, or on the host, for the run, which takes" "${train[@]}" --out o.wisp --ledger o.ledger "${emulated[@]}" --device-memory 1
[ -e o.wisp ] && fail "a run without room wrote a model"
grep -q '"steps"' <<<"$("$wisp" privacy --ledger o.ledger --delta 1e-3 --json 2>/dev/null)" && fail "a refused run was charged"
expect 2 "--device" "${train[@]}" --out o.wisp --ledger o.ledger --device opencl
expect 2 "" "${train[@]}" --out o.wisp --ledger o.ledger --device-memory 5

# The needed memory is known before.
expect 0 "" "$wisp" inspect "$root/models/cafe.wisp" --memory --method phantom --records 60 --threads 2 --json "${emulated[@]}"
json 'j["training"]["device"].startswith("cuda (emulator") and j["training"]["record_gradients"] > 135232'
expect 0 "" "$wisp" inspect "$root/models/cafe.wisp" --memory --method phantom --records 60 --threads 2 --batch 6 --json "${emulated[@]}"
json '135232 < j["training"]["record_gradients"] < 7 * 135232 and j["training"]["batch"] == 6'
expect 3 "there is no device cuda" "${without[@]}" "$wisp" inspect "$root/models/cafe.wisp" --memory --method phantom --records 60 "${emulated[@]}"
expect 0 "" "$lab" bench --what train --batch 2 --length 10 --items 40 --inner-width 16 --repeats 1 --json "${emulated[@]}"
json 'j["training"]["records_at_once"] == 2 and "fma_peak_gflops" not in j["training"]'
expect 2 "is of --what train, score, encoder, products and roofline" "$lab" bench --what ops --device cuda

# Recommending on the device gives the same items with similar scores; without a device, exactly the processor's answer.
recommend=("$wisp" recommend --model cuda.wisp --data log.db --user u00003 --json)
expect 0 "" "${recommend[@]}"
cp out on_cpu.out
expect 0 "" "${recommend[@]}" "${emulated[@]}"
cp out on_cuda.out
python3 - <<'END' || fail "the device recommends something else"
import json
cpu, cuda = json.load(open("on_cpu.out")), json.load(open("on_cuda.out"))
assert len(cuda) == 10 and [i["item"] for i in cpu] == [i["item"] for i in cuda]
assert all(abs(a["score"] - b["score"]) < 1e-4 for a, b in zip(cpu, cuda))
END
expect 0 "there is no device cuda: .*What follows runs on the processor" "${without[@]}" "${recommend[@]}" "${emulated[@]}"
cmp -s out on_cpu.out || fail "another answer without a device"
for machine in env "${without[0]} ${without[1]}"; do
  # shellcheck disable=SC2086
  expect 3 "a session on the device cuda has kernels of its own" $machine "${recommend[@]}" "${emulated[@]}" --backend int8
done
expect 0 "" "${recommend[@]}" "${emulated[@]}" --threads 2
cmp -s out on_cuda.out || fail "threads of the processor change what a device gives"
expect 2 "is not for --private" "${recommend[@]}" "${emulated[@]}" --private
expect 0 "" "$wisp" inspect cuda.wisp --memory --json "${emulated[@]}"
json '0 < j["inference"]["on_device"] < j["inference"]["total"] and j["inference"]["device"].startswith("cuda (emulator") and j["batch_of_32"]["on_device"] > 0'
expect 0 "" "$lab" bench --what score --length 10 --items 40 --inner-width 16 --repeats 2 --json "${emulated[@]}"
json 'j["scoring"]["top_10_ms"]["median"] > 0 and j["scoring"]["appended_event_top_10_ms"]["median"] > 0 and j["batch"]["32"]["histories_per_s"]["median"] > 0'

# Other arithmetics give the same items here, with other scores. Two of them train.
for arithmetic in tf32 float16 bfloat16 int8; do
  expect 0 "" "${recommend[@]}" "${emulated[@]}" --device-arithmetic $arithmetic
  python3 - <<'END' || fail "$arithmetic recommends something else"
import json
floats, others = json.load(open("on_cuda.out")), json.load(open("out"))
assert others != floats and len({i["item"] for i in floats} & {i["item"] for i in others}) >= 8
assert abs(floats[0]["score"] - others[0]["score"]) < 0.05 * abs(floats[0]["score"])
END
done
expect 2 "--device-arithmetic" "${recommend[@]}" "${emulated[@]}" --device-arithmetic float8
expect 2 "--device" "${recommend[@]}" --device-arithmetic tf32
expect 0 "" "${train[@]}" --out tf32.wisp --ledger tf32.ledger "${emulated[@]}" --device-arithmetic tf32
json 'j["device"].startswith("cuda tf32 (emulator")'
alike cpu.wisp tf32.wisp 61440
# These are refused with a device, without one, and if no device was asked for: no run may use another arithmetic than
# the one that was asked for.
refused=("${train[@]}" --out o.wisp --ledger refused.ledger)
expect 2 "the arithmetic float16 is for inference only" "${refused[@]}" "${emulated[@]}" --device-arithmetic float16
expect 2 "the arithmetic int8 is for inference only" "${without[@]}" "${refused[@]}" "${emulated[@]}" --device-arithmetic int8
expect 2 "the processor's arithmetic is float32" "${refused[@]}" --device cpu --device-arithmetic tf32
expect 2 "the processor's arithmetic is float32" "${recommend[@]}" --device cpu --device-arithmetic int8
[ ! -e o.wisp ] && [ ! -e refused.ledger ] || fail "a refused run wrote something"

# Classifiers.
mkdir texts && cd texts
PYTHONPATH=$root/tests/program python3 -B -c 'import program; program.texts()'
classify=("$wisp" train --recipe tiny.json --labelled train.txt --reproducible-noise 4 --threads 1 --json)
for mode in aggregate clipped; do
  expect 0 "" "${classify[@]}" --mode $mode --out $mode.cpu --ledger $mode.ledger
  expect 0 "" "${classify[@]}" --mode $mode --out $mode.cuda --ledger $mode.ledger2 "${emulated[@]}"
  json 'j["device"].startswith("cuda (emulator")'
  alike $mode.cpu $mode.cuda 1024
done
expect 0 "" "$wisp" evaluate --model aggregate.cuda --labelled test.txt
predict=("$wisp" classify --model aggregate.cpu --text "good film" --text ugly --json)
expect 0 "" "${predict[@]}"
cp out on_cpu.out
expect 0 "" "${predict[@]}" "${emulated[@]}"
python3 - <<'END' || fail "the device predicts something else"
import json
cpu, cuda = json.load(open("on_cpu.out")), json.load(open("out"))
assert [t["class"] for t in cpu] == [t["class"] for t in cuda] and len(cuda) == 2
assert all(abs(a["probability"] - b["probability"]) < 1e-5 for a, b in zip(cpu, cuda))
END
expect 0 "computing on cuda float16" "${predict[@]}" "${emulated[@]}" --device-arithmetic float16
embed=("$wisp" embed aggregate.cpu --text "good film" --text ugly --json)
expect 0 "" "${embed[@]}"
cp out vectors.out
expect 0 "" "${embed[@]}" "${emulated[@]}"
python3 - <<'END' || fail "the device embeds otherwise"
import json
cpu, cuda = (json.load(open(f))["embeddings"] for f in ("vectors.out", "out"))
assert len(cuda) == 2 and all(abs(x - y) < 1e-5 for a, b in zip(cpu, cuda) for x, y in zip(a, b)) and cpu != [[0] * 16] * 2
END
# Training holds the planned memory on the device: more than on the processor.
plan=("$wisp" inspect clipped.cpu --memory --recipe tiny.json --records 60 --json)
expect 0 "" "${plan[@]}"
cp out plan_cpu.out
expect 0 "" "${plan[@]}" "${emulated[@]}"
python3 - <<'END' || fail "the plan does not know the device"
import json
cpu, cuda = (json.load(open(f))["training"] for f in ("plan_cpu.out", "out"))
assert cuda["device"].startswith("cuda (emulator") and cuda["total"] > cpu["total"] and "device" not in cpu
END
expect 0 "there is no device cuda: .*What follows runs on the processor" "${without[@]}" "${predict[@]}" "${emulated[@]}"
cmp -s out on_cpu.out || fail "another class without a device"
finish
