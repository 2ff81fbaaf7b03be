#!/usr/bin/env bash
# Python's wheel for 64-bit Arm Linux, cross-built (ports/python/arm64): its name and types, what its extension shows
# and needs, and its work on Debian's Python under qemu. It recommends the same as this processor's program, trains
# privately, and refuses.
#   [WISP_PYTHON=ENVIRONMENT] [WISP_ARM64_LIBRARIES=FOLDER] tests/python_arm64.sh BUILD_FOLDER
#   exits 77 if something that ports/python/arm64 needs is missing
source "$(dirname "$0")/shell.sh"
export PATH=/usr/bin:/bin:$PATH PYTHONDONTWRITEBYTECODE=1
export WISP_PYTHON=${WISP_PYTHON:-$root/build/python} WISP_ARM64_LIBRARIES=${WISP_ARM64_LIBRARIES:-$root/build/arm64-libraries}
for needed in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $needed >/dev/null || { echo "not checked: $needed is missing; tools/dev arm64 installs it"; exit 77; }
done
[ -x "$WISP_PYTHON/bin/python" ] ||
  { echo "not checked: there is no virtual environment at $WISP_PYTHON (tools/dev python makes it)"; exit 77; }
[ -x "$WISP_ARM64_LIBRARIES/usr/bin/python3.11" ] ||
  { echo "not checked: $WISP_ARM64_LIBRARIES has no Python (tools/cross/arm64-libraries FOLDER --python fetches it)"; exit 77; }
[ -x "$build/wisp" ] || { echo "not checked: $build has no program wisp"; exit 77; }
emulated=$root/tools/cross/arm64-python

# The script names what it needs and lacks.
arm64=$root/ports/python/arm64
expect 1 "no virtual environment with /nowhere/bin/python" env WISP_PYTHON=/nowhere "$arm64" wheels
expect 1 "Arm does not run from /nowhere" env WISP_ARM64_LIBRARIES=/nowhere "$arm64" wheels
mkdir -p other/bin && printf '#!/bin/sh\necho 3.12 .so\n' >other/bin/python && chmod +x other/bin/python
expect 1 "is Python 3.12, and that of" env WISP_PYTHON="$work/other" "$arm64" wheels

# The folder of its build stays, beside the build, so that unchanged parts are not built again.
"$arm64" wheels "$build-python-arm64" >out 2>&1 || { fail "ports/python/arm64: $(tail -n 15 out)"; finish; }
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
wheel=$(echo wheels/*)
[ "$wheel" = "wheels/wisp-$version-cp311-cp311-linux_aarch64.whl" ] || fail "ports/python/arm64 made $wheel"
python3 -m zipfile -e "$wheel" installed || { fail "$wheel is no zip"; finish; }
grep -qx "Tag: cp311-cp311-linux_aarch64" installed/*.dist-info/WHEEL || fail "the wheel's tag is $(grep Tag installed/*.dist-info/WHEEL)"
extension=installed/wisp/_core.cpython-311-aarch64-linux-gnu.so
program=installed/wisp/bin/wisp
for file in "$extension" "$program" installed/wisp/{__init__.py,py.typed,_core.pyi} installed/*.dist-info/licenses/{LICENSE,NOTICE.md}; do
  [ -f "$file" ] || fail "the wheel lacks $file"
done
/usr/bin/python3 "$root/tests/elf/hold.py" "$extension" "$program" || fail "the extension and the program are not as tests/elf.json says"
export PYTHONPATH=$work/installed
"$WISP_PYTHON/bin/python" -m mypy --strict --cache-dir=mypy -p wisp >out 2>&1 || fail "mypy --strict: $(head -n 20 out)"

# This processor's program and the wheel on the other processor say the same.
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "wisp synth: $(head -c 300 err)"
cat >use.py <<'PYTHON'
import json, platform, sys

import numpy
import wisp

keys = sys.argv[2].split(",")
with wisp.Recommender.open(sys.argv[1]) as model:
    items, scores = model.recommend([model.find(key) for key in keys], k=10)
    assert items.dtype == numpy.int32 and scores.dtype == numpy.float32
    best = [{"item": model.keys()[item], "score": float(score)} for item, score in zip(items, scores)]
refused = []
for wrong in (lambda: wisp.Recommender.open("log.db"), lambda: wisp.Recommender.open("nothing.wisp"), lambda: model.find("x")):
    try:
        wrong()
    except wisp.Error as error:
        refused.append(type(error).__name__)
steps = []
report = wisp.personalise(
    sys.argv[1], "log.db", "tuned.wisp", "log.ledger", epsilon=3, delta=1e-3, num_records_public=60, unit="user",
    expected_batch=30, epochs=1, num_threads=1, progress=lambda step: steps.append(step.step),
)
print(json.dumps({
    "machine": platform.machine(), "best": best, "refused": refused, "steps": steps, "epsilon": report.epsilon,
    "statement": wisp.privacy_statement("log.ledger", 1e-3),
}))
PYTHON
history=tea-mint,bagel-lentil
model=$root/models/cafe.wisp
"$wisp" recommend --model "$model" --history $history --json >best.json 2>err || fail "wisp recommend: $(head -c 300 err)"
"$emulated" use.py "$model" $history >used.json 2>err || { fail "the wheel on Arm: $(tail -c 1000 err)"; finish; }
"$wisp" privacy --ledger log.ledger --delta 1e-3 >statement 2>err || fail "wisp privacy: $(head -c 300 err)"
"$wisp" inspect tuned.wisp >out 2>err || fail "what the wheel wrote on Arm is refused here: $(head -c 300 err)"
python3 - <<'PYTHON' || fail "the wheel on Arm does otherwise: $(head -c 2000 used.json)"
import json
used, best = json.load(open("used.json")), json.load(open("best.json"))
assert used["machine"] == "aarch64", used["machine"]
assert len(best) == len(used["best"]) == 10
for here, there in zip(best, used["best"]):
    assert here["item"] == there["item"] and abs(here["score"] - there["score"]) <= 1e-4, (here, there)
assert used["refused"] == ["InvalidData", "IoError", "Closed"], used["refused"]
assert used["steps"] == [1, 2] and 0 < used["epsilon"] <= 3, used
assert used["statement"].strip() == open("statement").read().strip(), used["statement"]
most = max(abs(here["score"] - there["score"]) for here, there in zip(best, used["best"]))
print(f"the same {len(best)} items, scores within {most:.1e}; two private steps for epsilon {used['epsilon']:.2f}")
PYTHON
finish
