#!/usr/bin/env bash
# Tests the build for 64-bit Windows without Windows, under wine: the DLLs and what they need, a C
# program over wisp.dll, the program with words and paths in UTF-8, the unit tests, and kills of a private run.
#   tests/windows.sh BUILD_FOLDER [KILLS]     BUILD_FOLDER is of tools/cross/windows; KILLS: 20
# Exits 77 if the cross compiler or wine is missing.
. "$(dirname "$0")/shell.sh"
for program in x86_64-w64-mingw32-gcc-posix wine; do
  command -v $program >/dev/null || { echo "skipped: $program is missing (Debian: g++-mingw-w64-x86-64-posix, wine, wine64)"; exit 77; }
done
grep -q '^CMAKE_SYSTEM_NAME.*=Windows\|CMAKE_TOOLCHAIN_FILE.*windows.cmake' "$build/CMakeCache.txt" ||
  { echo "skipped: $build is not built for Windows; tools/cross/windows does that"; exit 77; }
export WINEPREFIX=${WINEPREFIX:-$build/wine} WINEDEBUG=-all LC_ALL=C.UTF-8  # wine reads words in the locale's encoding
wine "$build/wisp.exe" --version >out 2>err || { echo "skipped: wine does not run here: $(head -c 300 err)"; exit 77; }

# The libraries show the functions of the headers and nothing else, and need no DLL that Windows does not have.
names() { x86_64-w64-mingw32-objdump -p "$1" | sed -n '/Ordinal\/Name Pointer/,/^$/p' | grep -oE '[A-Za-z_][A-Za-z_0-9]*$' | grep -v '^Table$' | sort; }
sed -nE 's/^function [^(]*\b(wisp_[a-z0-9_]+)\(.*/\1/p' "$root/tests/abi/lp64.txt" | sort >wanted
names "$build/wisp.dll" >shown
cmp -s wanted shown || fail "wisp.dll shows other functions than the headers have: $(diff wanted shown | head -4)"
for file in "$build"/wisp.dll "$build"/wisp-runtime.dll "$build"/wisp-text.dll "$build"/wisp.exe; do
  needs=$(x86_64-w64-mingw32-objdump -p "$file" | sed -n 's/.*DLL Name: //p' | grep -viE '^(advapi32|bcrypt|kernel32|msvcrt|shell32)\.dll$')
  [ -z "$needs" ] || fail "${file##*/} needs $needs"
done

# A program in C over the DLL, on a log that the program made.
mkdir 'größe 日本' app
expect 0 "" wine "$build/wisp.exe" synth --out 'größe 日本\log.db' --population device --users 100 --seed 7
[ -s 'größe 日本/log.db' ] || fail "a path in UTF-8 names another file: $(ls)"
expect 0 "" x86_64-w64-mingw32-gcc-posix -std=c99 -pedantic-errors -Wall -Wextra -Werror -I"$build/include" "$root/tests/abi/consumer.c" \
  -o app/consumer.exe -L"$build" -lwisp
cp "$build/wisp.dll" app
cp 'größe 日本/log.db' log.db
expect 0 "" wine app/consumer.exe "$root/models/cafe.wisp" log.db log.ledger out.wisp
[ "$(wc -l <out)" = 6 ] || fail "the consumer printed: $(cat out err)"
expect 2 "größe" wine "$build/wisp.exe" größe

left_out=$(grep -oE '^[A-Z][A-Za-z]+\.[A-Za-z_]+' "$root/tests/windows/left_out.txt" | paste -sd:)
programs=(core_tests data_tests privacy_tests kernels_tests layers_tests gradients_tests model_tests text_tests private_sampling_tests)
for program in "${programs[@]}"; do
  [ -f "$build/$program.exe" ] || { fail "$program.exe is not built"; continue; }
  GTEST_FILTER="-$left_out" wine "$build/$program.exe" --gtest_brief=1 >tests.txt 2>&1 ||
    fail "$program: $(grep -aE '^\[  FAILED|Unhandled' tests.txt | head -n 30)"
  echo "$program: $(grep -a 'tests ran' tests.txt)"
done
"$root/tests/windows/kills.py" "$build" "${2:-20}" >kills.txt 2>&1 || fail "kills: $(tail -n 5 kills.txt)"
tail -n 1 kills.txt
finish
