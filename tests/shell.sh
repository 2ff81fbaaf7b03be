# The common start of the shell tests. They source it with the build folder as $1: it sets $build, $root and $wisp, and
# enters a temporary work folder.
set -uo pipefail
build=$(cd "${1:?the build folder is missing}" && pwd) || exit 2
root=$(cd "$(dirname "$0")/.." && pwd)
wisp=$build/wisp lab=$build/wisp-lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# expect CODE WORD COMMAND... checks the exit code, and a word on standard error.
expect() {
  local code=$1 word=$2 got=0
  shift 2
  "$@" >out 2>err || got=$?
  [ "$got" -eq "$code" ] || fail "$* exited $got, expected $code: $(head -c 300 err)"
  [ -z "$word" ] || grep -q -- "$word" err || fail "$* did not say '$word': $(head -c 300 err)"
}
# json FILTER checks a Python expression over the parsed output `j`.
json() { python3 -c "import json,sys; j=json.load(open('out')); sys.exit(0 if ($1) else 1)" || fail "$1 does not hold: $(head -c 300 out)"; }
# Ends the test: 1 if anything failed.
finish() { [ "$failures" -eq 0 ] && echo "all held" || { echo "$failures failures"; exit 1; }; }
