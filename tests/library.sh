#!/usr/bin/env bash
# The built library: what it shows and what it calls.
#   tests/library.sh BUILD_FOLDER
set -uo pipefail
libraries=("$1"/libwisp*.so)
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# Nothing printed, no process ended. __assert_fail and abort come with other libraries' headers only.
# The emulator of a GPU is no part of the library: it ends tests with a sentence.
for symbol in printf fprintf puts putchar fputs fputc perror exit _exit quick_exit __assert_fail; do
  for archive in "$1"/libwisp_*.a; do
    [[ $archive == */libwisp_cuda_emulated.a ]] && continue
    grep -qE " U (${symbol}|__${symbol}_chk)(@|$)" <<<"$(nm -u "$archive" 2>/dev/null)" && fail "$(basename "$archive") calls $symbol"
  done
done
nm -u "$1"/libwisp_*.a 2>/dev/null | grep -E ' U _ZSt4(cout|cerr|clog)$' | sort -u | while read -r _ s; do echo "$s"; done | grep . && fail "a library writes to a standard stream"
# Only the C interface is visible.
for library in "${libraries[@]}"; do
  nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | grep -v '^wisp_' | grep . && fail "$library shows more than wisp_*"
  [[ $library == */libwisp_cuda*.so ]] && continue  # modules: tests/cuda/module
  nm -D --defined-only "$library" | grep -q ' T wisp_recommend' || fail "$library does not show wisp_recommend"
done

# What a hardened release has (wisp_harden in CMakeLists.txt, docs/security.md).
cached() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt"; }
if [ "$(cached WISP_HARDENING "$1")" = ON ] && [ "$(cached CMAKE_BUILD_TYPE "$1")" = Release ]; then
  for file in libwisp.so libwisp-runtime.so libwisp-text.so wisp; do
    [ -e "$1/$file" ] || continue
    headers=$(readelf -Wld "$1/$file")
    grep -q ' GNU_RELRO ' <<<"$headers" || fail "$file has no part that becomes read-only after relocation"
    grep -qE '\(FLAGS\) +BIND_NOW|\(FLAGS_1\) .*NOW' <<<"$headers" || fail "$file binds its symbols late"
    grep -qE ' GNU_STACK .* RW +0x' <<<"$headers" || fail "$file does not say that its stack is no code"
    grep -q TEXTREL <<<"$headers" && fail "$file has relocations in its code"
    readelf -h "$1/$file" | grep -q 'Type: *DYN' || fail "$file lies at a fixed address"
    symbols=$(nm -D --undefined-only "$1/$file")
    grep -q ' __stack_chk_fail' <<<"$symbols" || fail "$file has no guards on its stack"
    grep -qE ' __(memcpy|memmove|snprintf|vsnprintf|read|realpath|memset|strncpy)_chk' <<<"$symbols" || fail "$file has no checked copies"
    if readelf -h "$1/$file" | grep -q X86-64; then
      objdump -d "$1/$file" | grep -c endbr64 | grep -qvx '[0-9]' || fail "$file does not mark where branches may go"
    fi
  done
  # Leaves nothing to see in small frames.
  grep -q -- -fstack-clash-protection "$1/compile_commands.json" || fail "large frames are not probed page by page"
fi

[ "$failures" -eq 0 ] || exit 1
