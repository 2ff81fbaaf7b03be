#!/usr/bin/env bash
# The headers can be called from C99 and C++11. Structs that are shorter than today's are completed or refused as wisp.h
# says. tests/abi/consumer.c checks that, compiled strictly.
#   tests/abi_consumers.sh BUILD_FOLDER [COMPILER]     gcc, or clang
. "$(dirname "$0")/shell.sh"
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
strict=(-pedantic-errors -Wall -Wextra -Werror)
expect 0 "" "$wisp" synth --out log.db --population device --users 100 --seed 7
compiler=${2:-gcc}
command -v "$compiler" >/dev/null || { echo "$compiler is not installed (Debian: clang)"; exit 77; }
for language in "c99 c" "c++11 c++"; do
  rm -rf app ledger* out.wisp
  "$compiler" -std="${language% *}" -x "${language#* }" "${strict[@]}" -I"$build/include" "$root/tests/abi/consumer.c" \
    -o app -L"$build" -lwisp -Wl,-rpath,"$build" 2>err || { fail "$compiler, ${language% *}: $(head -c 900 err)"; continue; }
  expect 0 "" ./app "$root/models/cafe.wisp" "$work/log.db" "$work/ledger" "$work/out.wisp"
  [ -e wanted ] || cp out wanted
  cmp -s out wanted || fail "$compiler, ${language% *}: it says something else: $(diff wanted out | head -4)"
done
[ "$(wc -l <wanted)" = 6 ] || fail "the program says $(wc -l <wanted) lines, not 6"

# The C++ header says in a sentence of its own which C++ it needs.
echo '#include <wisp/wisp.hpp>' >older.cc
g++ -std=c++17 -I"$build/include" -fsyntax-only older.cc 2>err && fail "wisp.hpp compiles as C++17, and says C++20"
grep -q "wisp.hpp needs C++20" err || fail "wisp.hpp does not say that it needs C++20: $(head -c 300 err)"
finish
