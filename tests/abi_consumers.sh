#!/usr/bin/env bash
# Apps that were compiled against an older header run with today's library, and the headers can be called from C99 and
# C++11: tests/abi/consumer.c, against every header of tests/golden/headers and today's, by g++ and by clang, strictly.
#   tests/abi_consumers.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
strict=(-pedantic-errors -Wall -Wextra -Werror)
expect 0 "" "$wisp" synth --out log.db --population device --users 100 --seed 7
tries=0

# tries_header FOLDER: what the program says in each language and by each compiler, beside `wanted`.
tries_header() {
  local folder=$1 with=() compiler language
  [ -e "$folder/wisp/wisp_life.h" ] && with+=(-DWITH_LIFE)
  [ -e "$folder/wisp/wisp_text.h" ] && with+=(-DWITH_TEXT)
  for compiler in gcc clang; do
    command -v $compiler >/dev/null || { echo "without $compiler: it is not installed (Debian: $compiler)"; continue; }
    for language in "c99 c" "c++11 c++"; do
      rm -rf app ledger* out.wisp
      $compiler -std="${language% *}" -x "${language#* }" "${strict[@]}" "${with[@]}" -I"$folder" "$root/tests/abi/consumer.c" \
        -o app -L"$build" -lwisp -Wl,-rpath,"$build" 2>err ||
        { fail "$compiler, ${language% *}, ${folder#"$root/"}: $(head -c 900 err)"; continue; }
      expect 0 "" ./app "$root/models/cafe.wisp" "$work/log.db" "$work/ledger" "$work/out.wisp"
      [ -e wanted ] || cp out wanted
      cmp -s out wanted || fail "$compiler, ${language% *}, ${folder#"$root/"}: it says something else: $(diff wanted out | head -4)"
      tries=$((tries + 1))
    done
  done
}
tries_header "$build/include"
[ "$(wc -l <wanted)" = 6 ] || fail "the program says $(wc -l <wanted) lines, not 6"
for header in "$root"/tests/golden/headers/*; do tries_header "$header"; done
[ "$tries" -ge 6 ] || fail "only $tries programs were run"

# The C++ header says which C++ it needs, in a sentence of its own.
echo '#include <wisp/wisp.hpp>' >older.cc
g++ -std=c++17 -I"$build/include" -fsyntax-only older.cc 2>err && fail "wisp.hpp compiles as C++17, and says C++20"
grep -q "wisp.hpp needs C++20" err || fail "wisp.hpp does not say that it needs C++20: $(head -c 300 err)"
finish
