#!/usr/bin/env bash
# The functions that the built library calls. tests/program/elf.py checks what it shows and needs.
#   tests/library.sh BUILD_FOLDER
set -uo pipefail
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# The library prints nothing and ends no process. __assert_fail and abort come only with other libraries' headers.
# Not part of the library are the emulator of a GPU, the main function of tests, and Highway's answer for programs: they
# end with a sentence.
for symbol in printf fprintf puts putchar fputs fputc perror exit _exit quick_exit __assert_fail; do
  for archive in "$1"/libwisp_*.a; do
    [[ $archive == */libwisp_@(cuda_emulated|test_main|highway).a ]] && continue
    grep -qE " U (${symbol}|__${symbol}_chk)(@|$)" <<<"$(nm -u "$archive" 2>/dev/null)" && fail "$(basename "$archive") calls $symbol"
  done
done
nm -u "$1"/libwisp_*.a 2>/dev/null | grep -E ' U _ZSt4(cout|cerr|clog)$' | sort -u | while read -r _ s; do echo "$s"; done | grep . && fail "a library writes to a standard stream"

# These protections leave no trace in small frames. tests/program/elf.py sees the rest of a hardened release in its files.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt"; }
if [ "$(cached WISP_HARDENING "$1")" = ON ] && [ "$(cached CMAKE_BUILD_TYPE "$1")" = Release ]; then
  grep -q -- -fstack-clash-protection "$1/compile_commands.json" || fail "large frames are not probed page by page"
fi

[ "$failures" -eq 0 ] || exit 1
