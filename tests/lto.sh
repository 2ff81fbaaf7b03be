#!/usr/bin/env bash
# The library that only recommends, optimised as a whole (WISP_LTO): smaller than the build's, with the same functions
# and recommendations to the bit, and installed for such apps, with an archive for any compiler.
#   tests/lto.sh BUILD_FOLDER [training]   the same for all libraries
source "$(dirname "$0")/shell.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
[ -z "$(cached CMAKE_SYSTEM_NAME)" ] || exit 77  # built for another processor
if [ "$(cached CMAKE_BUILD_TYPE)" != Release ] || [ "$(cached WISP_LTO)" = ON ]; then exit 77; fi
"$(cached CMAKE_CXX_COMPILER)" --version | grep -q 'Free Software Foundation' || exit 77  # g++ alone has it
libraries=libwisp-runtime training=OFF
[ "${2:-}" = training ] && libraries="libwisp-runtime libwisp-text libwisp" training=ON
cmake -S "$root" -B whole -G Ninja -DCMAKE_BUILD_TYPE=Release -DWISP_LTO=ON -DWISP_TRAINING=$training \
  -DWISP_TOOLS=OFF -DWISP_TESTS=OFF -DWISP_XNNPACK="$(cached WISP_XNNPACK)" \
  -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" -DCMAKE_C_COMPILER="$(cached CMAKE_C_COMPILER)" >out 2>&1 &&
  cmake --build whole >out 2>&1 || fail "WISP_LTO=ON: $(tail -n 15 out)"

cat >scores.c <<'END'
#include <stdio.h>
#include <wisp/wisp.h>
int main(int argc, char** argv) {
  wisp_model* model = NULL;
  wisp_error error;
  if (argc != 2 || wisp_model_open(argv[1], &model, &error) != WISP_OK) return 1;
  for (int32_t first = 0; first < 20; ++first) {
    const int32_t history[] = {first, (first * 7 + 3) % 40, (first * 11 + 5) % 40};
    wisp_recommendation best[40];
    size_t count = 40;
    if (wisp_recommend(model, history, 1 + first % 3, NULL, best, &count, &error) != WISP_OK) return 1;
    for (size_t i = 0; i < count; ++i) printf("%d %a\n", (int)best[i].item, best[i].score);
  }
  wisp_model_close(model);
  return 0;
}
END
size() { strip -o stripped "$1" && stat -Lc %s stripped; }
shows() { nm -D --defined-only "$1" | cut -d' ' -f2-; }
for library in $libraries; do
  before=$(size "$build/$library.so") after=$(size "whole/$library.so")
  echo "$library: $before bytes, as a whole $after"
  [ "$after" -lt "$before" ] || fail "$library has $after bytes as a whole, else $before"
  cmp <(shows "$build/$library.so") <(shows "whole/$library.so") || fail "$library shows other functions as a whole"
  cc -I "$build/include" scores.c -o scores -L whole -l"${library#lib}" >out 2>&1 || fail "in C: $(head -c 300 out)"
  for made in "$build" whole; do
    LD_LIBRARY_PATH=$made ./scores "$root/models/cafe.wisp" >"scores_$(basename "$made")" ||
      fail "$library of $made does not recommend"
  done
  [ "$(wc -l <scores_whole)" -ge 400 ] || fail "there are $(wc -l <scores_whole) scores"
  cmp "scores_$(basename "$build")" scores_whole || fail "$library scores otherwise as a whole"
done

expect 0 "" "$root/tests/consumer.sh" "$work/whole"
cmake --install whole --prefix "$work/prefix" >out 2>&1 || fail "cmake --install: $(tail -n 5 out)"
for library in $libraries; do
  archive=$(find prefix -name "$library.a")
  readelf -SW "$archive" >sections 2>out || fail "the archive cannot be read: $(head -c 300 out)"
  grep -q '\.gnu\.lto' sections && fail "$archive has what only this version of g++ reads"
  grep -q '\.text' sections || fail "$archive has no instructions"
done
finish
