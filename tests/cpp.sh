#!/usr/bin/env bash
# The C++ header (ports/cpp/wisp.hpp): calls each of its functions once, over the three libraries.
#   tests/cpp.sh BUILD_FOLDER [COMPILER]     g++, or clang++
. "$(dirname "$0")/shell.sh"
. "$root/tests/cpp_fixtures.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
[ "$(wc -l <"$root/ports/cpp/wisp.hpp")" -lt 300 ] || fail "ports/cpp/wisp.hpp has 300 lines or more"

cpp_models
compiler=${2:-g++}
command -v "$compiler" >/dev/null || { echo "$compiler is not installed (Debian: clang)"; exit 77; }
for library in wisp-runtime wisp-text wisp; do
  flags=()
  [ $library = wisp-text ] && flags=(-DWITH_TEXT)
  [ $library = wisp ] && flags=(-DWITH_TRAINING)
  rm -f cpp_app
  "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" -I"$build/include/wisp" "$root/tests/cpp_app.cc" \
    -o cpp_app -L"$build" -l$library -Wl,-rpath,"$build" 2>err || { fail "$compiler, $library: $(head -c 600 err)"; continue; }
  cpp_runs ./cpp_app "$library"
  [ "$(wc -l <out)" = 10 ] || fail "$compiler, $library: $(wc -l <out) items were printed, not 10"
done
golden_answers_hold "$compiler" -I"$build/include/wisp" -L"$build" -Wl,-rpath,"$build" -lwisp
finish
