#!/usr/bin/env bash
# wisp.fleet over Flower: a real SuperLink on loopback, with honest nodes and liars.
#   [WISP_PYTHON=ENVIRONMENT] tests/python_fleet.sh BUILD_FOLDER     default: build/fleet-python of tools/dev fleet
source "$(dirname "$0")/shell.sh"
environment=${WISP_PYTHON:-$root/build/fleet-python}
python=$environment/bin/python
[ -x "$environment/bin/flower-superlink" ] ||
  { echo "not checked: there is no Flower in $environment (tools/dev fleet makes it)"; exit 77; }
[ -x "$build/wisp" ] || { echo "not checked: $build has no program wisp"; exit 77; }

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-1}
WISP_PYTHON=$environment "$root/ports/python/wheel" wheels "$build" >out 2>&1 ||
  { fail "ports/python/wheel: $(tail -n 15 out)"; finish; }
"$python" -m pip install -q --no-index --no-deps --target installed wheels/*.whl 2>err ||
  fail "the wheel: $(head -c 300 err)"

export PYTHONPATH=$work/installed WISP_BUILD=$build PYTHONDONTWRITEBYTECODE=1
"$python" -X faulthandler -m pytest -q -p no:cacheprovider "$root"/ports/python/tests/test_fleet*.py >out 2>&1 ||
  fail "pytest: $(tail -n 60 out)"
tail -n 1 out
finish
