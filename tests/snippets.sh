#!/usr/bin/env bash
# Every block of code in the documents is compiled, run or read, or named with a reason in tests/snippets/check.py. Each
# test that they name exists, and none tells of the past.
#   [WISP_PYTHON=ENVIRONMENT] [WISP_WASM=FOLDER] tests/snippets.sh BUILD_FOLDER
# Default: build/python, which tools/dev python makes, and build/wasm. Without them programs of these languages are only
# read.
. "$(dirname "$0")/shell.sh"
export PATH=/usr/bin:/bin:$PATH PYTHONDONTWRITEBYTECODE=1  # Debian's Python, which has its selenium
command -v node >/dev/null || { echo "not checked: there is no node (tools/dev wasm installs it)"; exit 77; }
check() { WISP_PYTHON=${WISP_PYTHON:-$root/build/python} WISP_WASM=${WISP_WASM:-$root/build/wasm} \
  python3 "$root/tests/snippets/check.py" "$1" "$build" "$work"; }
mkdir models
cp "$root/models/cafe.wisp" .
cp "$root/models/cafe.wisp" models
check "$root" || fail "blocks of the documents do not hold"

# Faults are noticed: one document has each kind of fault. Programs are only read here.
git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf tree.tar && mkdir tree && tar -C tree -xf tree.tar && git -C tree init -q
wrong() {  # SENTENCE TEXT
  printf '%b' "$2" >tree/wrong.md
  git -C tree add wrong.md
  WISP_PYTHON=none WISP_WASM=none check tree >said 2>&1 && fail "not seen: $1"
  grep -q -- "^FAILED: wrong.md:.*$1" said || fail "not said: $1: $(grep FAILED said)"
}
find tree -name '*.md' -delete
git -C tree add -A
wrong "wisp train has no option '--epoch'" '    wisp train --recipe r.json --epoch 2 --out m.wisp\n'
wrong "there is no command 'wisp improve'" 'Say `wisp improve`.\n'
wrong "tools/dev has no 'everything'" '    tools/dev everything\n'
wrong "tells of the past" 'Since 2026-01-01 this takes 3 ms.\n'
wrong "there is no test nothing_test" 'The bound holds (`nothing_test`).\n'
wrong "there is no test tests/unit/nothing.cc" 'The bound holds (`tests/unit/nothing.cc`).\n'
wrong "there is no tests/nothing.sh" '    tests/nothing.sh build/release\n'
wrong "which no reader takes" '    a ~ b\n'
wrong "cc says" '```c\nwisp_model_open(3);\n```\n'
wrong "g++ says" '```cpp\n#include <wisp/wisp.hpp>\nint main() { wisp::api::Model model; }\n```\n'
wrong "it exits 3" '```c\n#include <stdlib.h>\nint main(void) { exit(3); }\n```\n'
wrong "Python says" '```python\nimport wisp as\n```\n'
wrong "runtime.js exports no loadModel" '```js\nimport { loadModel } from "./wisp/runtime.js";\n```\n'
wrong "node says" '```js\nconst a = ;\n```\n'
wrong "it is no JSON" '```json\n{"a": }\n```\n'
wrong "cmake says" '    find_package(wisp 99 CONFIG REQUIRED COMPONENTS training)\n'
finish
