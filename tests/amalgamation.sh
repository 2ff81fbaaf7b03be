#!/usr/bin/env bash
# The library as two headers and one translation unit (tools/amalgamate): it is made, compiles without a warning, and
# gives the results of the library, to the bit. The commands are those of docs/c.md.
#   tests/amalgamation.sh BUILD_FOLDER        makes it and checks its syntax
#   tests/amalgamation.sh BUILD_FOLDER --all  builds and runs it too, by g++, clang++, and for 64-bit Arm: 9 minutes of a core
. "$(dirname "$0")/shell.sh"
. "$root/tests/cpp_fixtures.sh"
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
strict=(-Wall -Wextra -Werror)
page=$root/docs/c.md

"$root/tools/amalgamate/amalgamate" made >out 2>err || { fail "it was not made: $(head -c 600 err)"; finish; }
"$root/tools/amalgamate/amalgamate" again >out 2>err
diff -r made again >out || fail "made twice, the files differ: $(head -c 300 out)"
grep -lF -e "$root" -e "$work" made/* && fail "these files name folders of this machine"

# Runs the page's first line that has these words, but strictly and with this compiler.
compiles() {  # COMPILER WORDS OBJECT [OPTIONS...]
  local line
  line=$(grep -E '^    c\+\+ ' "$page" | grep -E -m 1 -- "$2")
  [ -n "$line" ] || { fail "docs/c.md has no command with '$2'"; return 1; }
  [[ " $* " != *" -fsyntax-only "* ]] || line=${line/ -c / }  # newer versions of clang++ refuse the two together
  (cd made && eval "${line/c++/$1 ${strict[*]} ${*:4}} -o '$work/$3'") 2>err || { fail "$1, $2: $(head -c 900 err)"; return 1; }
}

# An app in C and one in C++ print the same with the unit and with the library, scores to the bit.
same() {  # NAME LIBRARY DEFINE LINKS...
  local name=$1 library=$2 define=$3
  shift 3
  cc -std=c99 "${strict[@]}" -Wpedantic -Imade -c recommend.c -o recommend.o 2>err || fail "an app in C99: $(head -c 600 err)"
  c++ recommend.o "$name.o" -o recommend_unit -pthread "$@" 2>err || { fail "$name, linked: $(head -c 600 err)"; return; }
  cc recommend.o -o recommend_library -L"$build" "-l$library" -Wl,-rpath,"$build"
  expect 0 "" ./recommend_library "$root/models/cafe.wisp"
  mv out wanted
  expect 0 "" ./recommend_unit "$root/models/cafe.wisp"
  [ "$(wc -l <wanted)" -ge 30 ] && cmp -s out wanted || fail "$name recommends otherwise than $library: $(diff out wanted | head -4)"
  c++ -std=c++20 "${strict[@]}" $define -Imade "$root/tests/cpp_app.cc" "$name.o" -o cpp_app -pthread "$@" 2>err ||
    { fail "$name, an app in C++: $(head -c 600 err)"; return; }
  cpp_runs ./cpp_app "$library"
  head -n 10 wanted | cmp -s - out || fail "$name, C++: recommends otherwise"
}
cat >recommend.c <<'C'
#include <stdio.h>
#include "wisp.h"

/* The best of several histories, by every backend that there is, scores to the bit. */
int main(int argc, char** argv) {
  static const int32_t items[] = {12, 7, 31, 400, 5, 77, 12, 9};
  static const wisp_backend backends[] = {WISP_BACKEND_SIMD, WISP_BACKEND_INT8};
  size_t b, n, i;
  for (b = 0; b < 2; ++b) {
    wisp_error error;
    wisp_model* model = NULL;
    wisp_open_options options = WISP_INIT(wisp_open_options);
    options.backend = backends[b];
    if (argc != 2 || wisp_model_open_with(argv[1], &options, &model, &error) != WISP_OK) return puts(error.message), 1;
    for (n = 3; n <= 8; n += 5) {
      wisp_recommendation top[10];
      size_t count = 10;
      if (wisp_recommend(model, items, n, NULL, top, &count, &error) != WISP_OK) return puts(error.message), 1;
      for (i = 0; i < count; ++i) printf("%d %a %s\n", top[i].item, top[i].score, wisp_model_item_name(model, top[i].item));
    }
    wisp_model_close(model);
  }
  return 0;
}
C

# Every fast run checks the syntax of the whole unit, and so notices sources whose names collide.
compiles g++ DWISP_TRAINING nothing -fsyntax-only

# The stand-in for Highway's library finds the same instruction sets, on this processor and on those that qemu shows.
cat >targets.cc <<'CC'
#include "kernels/simd/processor.h"
#include "hwy/targets.h"
#include <cstdio>
int main() { std::printf("%llx\n", static_cast<long long>(wisp::kernels::FoundTargets() & (HWY_AVX3 | HWY_AVX2 | HWY_SSE4))); }
CC
c++ -std=c++20 "${strict[@]}" -I"$root" targets.cc "$root/kernels/highway/found_targets.cc" -lhwy -o targets_highway &&
  c++ -std=c++20 "${strict[@]}" -I"$root" targets.cc "$root/kernels/stand_in/found_targets.cc" -o targets_own ||
  fail "the instruction sets are not asked for"
[ "$(./targets_highway)" = "$(./targets_own)" ] || fail "Highway finds $(./targets_highway), its stand-in $(./targets_own)"
if command -v qemu-x86_64 >/dev/null; then
  for processor in Nehalem Westmere SandyBridge Haswell EPYC Denverton; do
    theirs=$(qemu-x86_64 -cpu $processor ./targets_highway 2>/dev/null) ours=$(qemu-x86_64 -cpu $processor ./targets_own 2>/dev/null)
    [ "$theirs" = "$ours" ] || fail "on $processor Highway finds $theirs, its stand-in $ours"
  done
else
  echo "only on this processor: qemu-x86_64 is missing (Debian: qemu-user)"
fi

# A sentence refuses a source in no library, a name with two meanings, and another Highway.
mkdir -p copy/ports copy/tools && cp -r "$root/CMakeLists.txt" "$root/kernels" "$root/runtime" "$root/schema" copy &&
  cp -r "$root/ports/c" "$root/ports/cpp" copy/ports && cp -r "$root/tools/amalgamate" copy/tools
refused() {  # SENTENCE [OPTIONS...]
  expect 1 "$1" copy/tools/amalgamate/amalgamate refused_folder "${@:2}"
  [ ! -e refused_folder ] || fail "refused, and written: $1"
}
mkdir copy/runtime/novel && echo 'int novel;' >copy/runtime/novel/novel.cc
refused "runtime/novel/novel.cc is in no part of a product"
rm -r copy/runtime/novel
echo 'namespace wisp { namespace { void StatusCode(int) {} } }' >>copy/runtime/core/hash.cc
sed -i 's:#include "runtime/core/hash.h":&\n#include "runtime/core/status.h":' copy/runtime/core/hash.cc
refused "runtime/core/hash.cc: 'StatusCode' is in the unnamed namespace, and runtime/core/status.h declares it too"
cp "$root/runtime/core/hash.cc" copy/runtime/core
mkdir -p other/hwy && echo '#define HWY_MAJOR many' >other/hwy/highway.h
refused "other/hwy/highway.h does not define HWY_MAJOR" --include other

[ "${2:-}" = --all ] || { finish; exit; }

cpp_models
# The file may have another name than wisp.cc, as the page says.
cp made/wisp.cc made/renamed.cc
(cd made && c++ -std=c++20 -O1 -ffp-contract=off "${strict[@]}" -DWISP_AMALGAMATION_FILE='"renamed.cc"' -c renamed.cc -o ../runtime.o) \
  2>err || fail "renamed: $(head -c 900 err)"
rm made/renamed.cc
# The unit needs no other library, and prints nothing.
nm -u runtime.o >asked
grep -E ' U (.*(hwy|XNN|xnn|utf8proc|sodium|sqlite3|XXH).*|(__)?(f?printf|f?puts|exit|abort)(_chk)?)$' asked &&
  fail "these are asked for"
same runtime wisp-runtime ""
for compiler in g++ clang++; do
  command -v "$compiler" >/dev/null || { echo "without $compiler: it is not installed (Debian: clang)"; continue; }
  [ "$compiler" = g++ ] || { compiles "$compiler" '-c wisp\.cc$' runtime.o && same runtime wisp-runtime ""; }
  compiles "$compiler" DWISP_TEXT text.o && same text wisp-text -DWITH_TEXT -lutf8proc
  compiles "$compiler" DWISP_TRAINING training.o &&
    same training wisp -DWITH_TRAINING -lutf8proc -lsodium -lsqlite3
done
golden_answers_hold c++ -Imade training.o -pthread -lutf8proc -lsodium -lsqlite3

# The README's program, which fine-tunes the shipped model on a log.
mkdir -p app/models include/wisp && cp made/wisp.h include/wisp && cp "$root/models/cafe.wisp" app/models && cp log.db app
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/README.md" >readme.c
cc -std=c11 "${strict[@]}" -Iinclude -c readme.c -o readme.o &&
  c++ readme.o training.o -pthread -lutf8proc -lsodium -lsqlite3 -o readme || fail "the README's program is not built"
expect 0 "" sh -c 'cd app && ../readme'
[ "$(wc -l <out)" = 10 ] && [ -s app/tuned.wisp ] || fail "the README's program recommends $(wc -l <out) items, not 10"

# For 64-bit Arm it is only compiled. Headers of libraries are the same for every processor.
if command -v aarch64-linux-gnu-g++ >/dev/null; then
  mkdir arm && ln -s /usr/include/{sqlite3.h,sodium.h,sodium,utf8proc.h} arm
  for words in '-c wisp\.cc$' DWISP_TEXT DWISP_TRAINING; do
    compiles aarch64-linux-gnu-g++ "$words" arm.o -I"$work/arm"
  done
else
  echo "without 64-bit Arm: aarch64-linux-gnu-g++ is missing (Debian: g++-aarch64-linux-gnu)"
fi
finish
