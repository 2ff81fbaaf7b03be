#!/usr/bin/env bash
# ports/python: a wheel of the current sources, what its extension shows and needs, its types, and its tests.
#   [WISP_PYTHON=ENVIRONMENT] tests/python.sh BUILD_FOLDER     default: build/python, which tools/dev python makes
source "$(dirname "$0")/shell.sh"
environment=${WISP_PYTHON:-$root/build/python}
python=$environment/bin/python
[ -x "$python" ] ||
  { echo "not checked: there is no virtual environment at $environment (tools/dev python makes it)"; exit 77; }
[ -x "$build/wisp" ] || { echo "not checked: $build has no program wisp"; exit 77; }

# Builds one wheel, without a network. The folder of its build stays, beside the build.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-1}
WISP_PYTHON=$environment "$root/ports/python/wheel" wheels "$build" >out 2>&1 ||
  { fail "ports/python/wheel: $(tail -n 15 out)"; finish; }
wheel=$(echo wheels/*)
[[ $wheel == wheels/wisp-*-linux_$(uname -m).whl ]] || fail "pip wheel made $wheel"
"$python" -m pip install -q --no-index --no-deps --target installed "$wheel" 2>err ||
  fail "the wheel: $(head -c 300 err)"
for file in __init__.py py.typed _core.pyi; do
  [ -f "installed/wisp/$file" ] || fail "the wheel lacks wisp/$file"
done
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
[[ $wheel == wheels/wisp-$version-* ]] || fail "$wheel is not of version $version"
for file in LICENSE NOTICE.md NOTICE.compiled-in; do
  find installed -path "*dist-info*" -name "$file" | grep -q . || fail "the wheel lacks $file"
done
for name in nanobind libhwy libflatbuffers libxxhash libeigen3 libcli11 nlohmann; do
  grep -q "^==== compiled in: .*$name" installed/*dist-info/licenses/NOTICE.compiled-in || fail "no notice of $name"
done
! grep -q "$root" installed/*dist-info/licenses/NOTICE.compiled-in || fail "the notices name a folder of this machine"

# Checks the extension and the program: what they show and need, how they are protected, their size.
/usr/bin/python3 "$root/tests/elf/hold.py" installed/wisp/_core.*.so installed/wisp/bin/wisp ||
  fail "the extension and the program are not as tests/elf.json says"

# Checks the types and runs the tests from elsewhere, so that they find the installed package.
export PYTHONPATH=$work/installed WISP_BUILD=$build PYTHONDONTWRITEBYTECODE=1
for checked in "-p wisp" "$root/ports/python/tests/typed.py"; do
  # shellcheck disable=SC2086  # an option and its value
  "$python" -m mypy --strict --cache-dir=mypy $checked >out 2>&1 || fail "mypy --strict $checked: $(head -n 20 out)"
done
"$python" -X faulthandler -m pytest -q -p no:cacheprovider "$root/ports/python/tests" >out 2>&1 ||
  fail "pytest: $(tail -n 60 out)"
tail -n 1 out
finish
