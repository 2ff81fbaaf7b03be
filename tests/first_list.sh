#!/usr/bin/env bash
# tools/lab/bench/first_list: the guide's first lists come about as it says, and are the same list in each language.
#   [WISP_WASM=FOLDER] [WISP_WHEEL=FILE] [WISP_SWIFT=FOLDER] tests/first_list.sh
# WISP_WASM is build/wasm by default, WISP_SWIFT build/apple. Without it or a browser JavaScript is left out, without a
# wheel Python, without Swift its package.
set -uo pipefail
export PATH=/usr/bin:/bin:$PATH PYTHONDONTWRITEBYTECODE=1
root=$(cd "$(dirname "$0")/.." && pwd)
wasm=${WISP_WASM:-$root/build/wasm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
languages=(c cpp)
swift=${WISP_SWIFT:-$root/build/apple}
if [ -f "$swift/Package.swift" ] && command -v swift >/dev/null; then
  languages+=(swift)
else
  echo "without Swift: $swift has no package (tools/dev apple makes it), or there is no swift"
fi
if [ -f "$wasm/package/wisp.wasm" ] && command -v chromedriver >/dev/null && python3 -c 'import selenium' 2>/dev/null; then
  languages+=(javascript)
else
  echo "without JavaScript: $wasm has no package, or there is no browser (tools/dev wasm makes and installs both)"
fi
wheel=()
if [ -f "${WISP_WHEEL:-}" ]; then
  languages+=(python)
  wheel=(--wheel "$WISP_WHEEL")
else
  echo "without Python: WISP_WHEEL names no wheel of ports/python; tests/python.sh builds one of the sources, which takes minutes"
fi
"$root/tools/lab/bench/first_list" "${languages[@]}" --wasm "$wasm" --swift "$swift" "${wheel[@]}" --json "$work/seen.json" ||
  fail "a first list does not come about as the guide says"
[ "$(grep -c '"language"' "$work/seen.json")" = ${#languages[@]} ] || fail "not every language was run: $(cat "$work/seen.json")"

# A guide whose program fails, is too long, or recommends something else is noticed; for C with an existing library.
git -C "$root" ls-files -z docs tools/lab/bench tools/site tests/browser.py models/cafe.wisp | tar -C "$root" --null -T - -cf - | tar -C "$work" -xf -
guide=$work/docs/guide.md
sed -i '/^    ROOT\/tools\/amalgamate\/amalgamate/d; /^    c++ .*-c wisp.cc$/d; /^    cc -c app.c/c\    cat app.c >all.c; grep -c . all.c; seq 4' "$guide"
cp "$guide" "$work/guide.md"
wrong() {  # SENTENCE SED
  sed "$2" "$work/guide.md" >"$guide"
  "$work/tools/lab/bench/first_list" c >"$work/said" 2>&1 && fail "not seen: $1"
  grep -q "$1" "$work/said" || fail "not said: $1: $(cat "$work/said")"
}
"$work/tools/lab/bench/first_list" c >"$work/said" 2>&1 || fail "the shortened guide does not run: $(cat "$work/said")"
wrong "exits 7" 's/; seq 4$/; exit 7/'
wrong "4 items are listed, not 5" 's/; seq 4$/; seq 3/'
wrong "lines; 30 are allowed" '/^  wisp_error error;$/{p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p}'

[ "$failures" -eq 0 ] && echo "all held" || { echo "$failures failures"; exit 1; }
