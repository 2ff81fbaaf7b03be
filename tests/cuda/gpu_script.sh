#!/usr/bin/env bash
# tests/cuda/gpu with made-up programs: what it counts, a step that hangs, an interruption and its resumption, time that
# runs out, and a machine without a GPU.
#   tests/cuda/gpu_script.sh BUILD_FOLDER
. "$(dirname "$0")/../shell.sh" "$1"
root=$(cd "$root/.." && pwd)

# A build folder whose programs note that they ran.
mkdir made
program() { printf '#!/bin/sh\n%s\n' "$2" >"made/$1"; chmod +x "made/$1"; }
program wisp '[ ! -e no_gpu ] || { echo "wisp: there is no device cuda: there is no NVIDIA driver"; exit 3; }
[ ! -e wrong ] || { echo "wisp: that is no module of wisp"; exit 3; }'
program gpu_ops_tests 'is() { [ -e $1 ] && grep -q ${0##*/} $1; }
if is hangs; then echo $$ >process; exec sleep 60; fi
! is slow || sleep 1.2
! is lost || exit 77
! is fails || { echo "value is 1, FAILED"; exit 1; }
echo $0 >>ran'
set_to() { printf 'gpu_%s_test\n' "${@:2}" >"$1"; } # FILE TEST...
set_to fails b
ln -s "$lab" made/wisp-lab
: >made/libwisp_cuda.so
for test in a b c d e f g; do ln -s gpu_ops_tests made/gpu_${test}_test; done
gpu() { # CODE LAST_LINE OPTIONS...; a pattern
  local code=0
  "$root/tests/cuda/gpu" made "${@:3}" >out 2>&1 || code=$?
  [ $code -eq "$1" ] && [[ "$(tail -1 out)" =~ ^$2$ ]] || fail "${*:3}: expected $1 and '$2': $code, $(tail -3 out)"
}
ran() { [ "$(wc -l <ran)" -eq "$1" ] || fail "$1 steps should have run so far: $(cat ran)"; }

touch no_gpu
for part in ops graphs figures peers sanitize; do
  gpu 77 "skipped: wisp: there is no device cuda: there is no NVIDIA driver" --only $part --out none
done
[ -z "$(ls none)" ] || fail "results without a GPU: $(ls none)"
rm no_gpu
touch wrong
gpu 1 "FAILED: the GPU is not opened .exit code 3.: wisp: that is no module of wisp" --only ops --out none
rm wrong
gpu 77 "without graphs: this build has no program gpu_graphs_tests" --only graphs --out none
rm -r none

# One step fails and one hangs; the others run, and none runs again.
set_to hangs c
gpu 1 "5 passed, 2 failed, 0 wait" --only ops --out first --seconds 4
grep -q "FAILED  killed after 1 s: gpu_c_test" out || fail "the step that hangs is not named: $(cat out)"
grep -q "value is 1, FAILED" out || fail "what a failed step said is not shown"
ran 5
gpu 1 "5 passed, 2 failed, 0 wait" --only ops --out first
ran 5
rm hangs first/gpu_c_test.result
gpu 1 "6 passed, 1 failed, 0 wait" --only ops --out first
ran 6
gpu 0 "1 passed, 0 failed, 0 wait" --only ops --out first --steps 'gpu_a*'

# A part that is killed in a step leaves no result of it, and resumes.
rm ran && set_to hangs c
"$root/tests/cuda/gpu" made --only ops --out second >out 2>&1 &
while [ ! -e second/gpu_b_test.result ] || [ ! -e "$(echo second/.work.*/said)" ]; do sleep 0.05; done
sleep 0.2
kill $! && wait $!
[ $? -eq 130 ] || fail "it is not interrupted"
for _ in {1..50}; do ! kill -0 "$(cat process)" 2>/dev/null || sleep 0.1; done
! kill -0 "$(cat process)" 2>/dev/null || fail "the step goes on after an interruption"
[ ! -e second/gpu_c_test.result ] && [ -e second/gpu_a_test.result ] || fail "after an interruption: $(ls second)"
[ "$(find second -name '.work*')" = "" ] || fail "an interruption leaves its work folder"
"$root/tests/cuda/gpu" made --only ops --out second >out 2>&1 &
while [ ! -e "$(echo second/.work.*/said)" ]; do sleep 0.05; done
sleep 0.2
kill -9 $! && wait $! 2>/dev/null
kill "$(cat process)"
rm hangs
gpu 1 "6 passed, 1 failed, 0 wait" --only ops --out second
ran 6
[ "$(find second -name '.work*')" = "" ] || fail "the work folder of a killed call stays"

# Time runs out: what is cut short by the end of a part waits, like all after it, and runs at the next call.
set_to hangs a c d
gpu 1 "0 passed, 3 failed, 4 wait" --only ops --out third --seconds 5
[ ! -e third/gpu_d_test.result ] || fail "a step that waits has a result"
rm hangs
gpu 1 "4 passed, 3 failed, 0 wait" --only ops --out third
set_to slow a c d e f g
gpu 1 "[2-5] passed, 0 failed, [1-4] wait" --only ops --out fourth --seconds 5 --steps 'gpu_[!b]*'
rm slow

# After the first step a missing GPU is a fault, not a reason to skip.
set_to lost d
gpu 1 "5 passed, 2 failed, 0 wait" --only ops --out fifth
grep -q "exit code 77: gpu_d_test" out || fail "a GPU that is lost is not said"

# Results of another build are not mixed with these.
echo "another" >made/libwisp_cuda.so
gpu 2 "tests/cuda/gpu: $work/first has results of another build or size: name another folder, or remove it" --only ops --out first
gpu 77 "without peers: they need --peers PYTHON, with tools/lab/bench/peers/requirements.txt and a PyTorch that sees this GPU" \
  --only peers --out sixth
gpu 2 "tests/cuda/gpu: --only is 'all', allowed are ops, graphs, figures, peers and sanitize" --only all
finish
