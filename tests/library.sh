#!/usr/bin/env bash
# The built library: what it shows and what it calls.
#   tests/library.sh BUILD_FOLDER
set -uo pipefail
library=$1/libwisp.so
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# Nothing printed, no process ended. __assert_fail and abort come with other libraries' headers only.
for symbol in printf fprintf puts putchar fputs fputc perror exit _exit quick_exit __assert_fail; do
  for archive in "$1"/libwisp_*.a; do
    nm -u "$archive" 2>/dev/null | grep -qE " U (${symbol}|__${symbol}_chk)(@|$)" && fail "$(basename "$archive") calls $symbol"
  done
done
nm -u "$1"/libwisp_*.a 2>/dev/null | grep -E ' U _ZSt4(cout|cerr|clog)$' | sort -u | while read -r _ s; do echo "$s"; done | grep . && fail "a library writes to a standard stream"
# Only the C interface is visible.
nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | grep -v '^wisp_' | grep . && fail "the library shows more than wisp_*"
nm -D --defined-only "$library" | grep -q ' T wisp_recommend' || fail "the library does not show wisp_recommend"

[ "$failures" -eq 0 ] || exit 1
