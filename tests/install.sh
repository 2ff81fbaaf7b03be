#!/usr/bin/env bash
# What is installed is what an app needs: library and header, which C and C++ compile without a warning; the program where it is built.
# What a library that only recommends lacks is missing at link time, as wisp.h says.
#   tests/install.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
training=$(cached WISP_TRAINING)
cmake --install "$build" --prefix "$work/prefix" >out 2>err || fail "cmake --install: $(head -c 300 err)"
lib=$work/prefix/$(cached CMAKE_INSTALL_LIBDIR)
[ -f "$work/prefix/include/wisp.h" ] || fail "there is no include/wisp.h"
[ -L "$lib/libwisp.so" ] && [ -L "$lib/libwisp.so.0" ] || fail "the library's version links are missing"
if [ "$training" = ON ] && [ "$(cached WISP_TOOLS)" = ON ]; then
  "$work/prefix/bin/wisp" --help >out 2>err || fail "the installed program does not run: $(head -c 300 err)"
fi

cat >app.c <<'C'
#include <stdio.h>
#include <string.h>
#include <wisp.h>

int main(int argc, char** argv) {
  wisp_model* model = NULL;
  wisp_error error;
  wisp_open_options how = WISP_INIT(wisp_open_options);
  wisp_personalise_options zeroes;
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  if (argc < 2 || wisp_model_open_with(argv[1], &how, &model, &error) != WISP_OK) return 1;
  wisp_model_close(model);
  memset(&zeroes, 0, sizeof(zeroes));
  zeroes.size = sizeof(zeroes);
  how = WISP_INIT(wisp_open_options);
  return how.size == sizeof(how) && options.size == zeroes.size && options.model_path == NULL && options.other_data == 0 ? 0 : 2;
}
C
cp app.c app.cc
flags=(-Wall -Wextra -Wpedantic -Werror -I"$work/prefix/include" -L"$lib" -Wl,-rpath,"$lib")
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
cc -std=c11 "${flags[@]}" app.c -o app -lwisp 2>err || fail "C: $(head -c 600 err)"
expect 0 "" ./app "$root/models/cafe.wisp"
for standard in 11 17 20; do
  c++ -std=c++$standard "${flags[@]}" app.cc -o app -lwisp 2>err || fail "C++$standard: $(head -c 600 err)"
  expect 0 "" ./app "$root/models/cafe.wisp"
done

# The parts of wisp.h that are marked, against what the library shows.
awk '/^\/\* ---- / { part = /not in a library that only recommends/ ? "training" : "always" }
     match($0, /^WISP_API .*wisp_[a-z_]*\(/) { name = substr($0, 1, RLENGTH - 1); sub(/.*[ *]/, "", name); print part ? part : "always", name }' \
  "$work/prefix/include/wisp.h" >declared
[ "$(wc -l <declared)" -gt 15 ] || fail "wisp.h's functions were not found"
nm -D --defined-only "$lib/libwisp.so" | awk '$2 == "T" { print $3 }' | sort >shown
awk -v training="$training" '$1 == "always" || training == "ON" { print $2 }' declared | sort | diff - shown >err ||
  fail "what wisp.h declares (<) is not what the library shows (>): $(cat err)"
finish
