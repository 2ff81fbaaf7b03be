#!/usr/bin/env bash
# Apps outside of the tree are built against the installed library and run: by CMake's find_package and by pkg-config,
# with the shared libraries and the archives, to recommend only, for texts and to train, in C and C++. The prefix is
# moved first. One more project embeds the tree.
#   tests/consumer.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
components=(runtime text)
[ "$(cached WISP_TRAINING)" = ON ] && components+=(training)
cmake --install "$build" --prefix "$work/made" >out 2>err || fail "cmake --install: $(head -c 300 err)"
mv made prefix
mkdir -p alone embed
cp "$root"/tests/consumer/{CMakeLists.txt,app.c} alone
cp "$root"/tests/consumer/embed/CMakeLists.txt alone/app.c embed
lib=$work/prefix/$(cached CMAKE_INSTALL_LIBDIR)
export PKG_CONFIG_PATH=$lib/pkgconfig
unset CFLAGS CXXFLAGS LDFLAGS

# runs APP KIND checks that it recommends, and if it has wisp's shared library.
runs() {
  expect 0 "" "$1" "$root/models/cafe.wisp" "$work/$(basename "$1").db"
  local needed=static
  readelf -d "$1" | grep -q 'NEEDED.*libwisp' && needed=shared
  [ "$needed" = "$2" ] || fail "$1 is linked $needed, not $2"
}

# build_alone COMPONENT KIND LANGUAGE builds the project that finds wisp. All use one folder, so compilers are checked
# once.
build_alone() {
  local static=OFF
  [ "$2" = static ] && static=ON
  cmake -S alone -B "built_$3" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCOMPONENT="$1" \
    -Dwisp_USE_STATIC_LIBS=$static -DLANGUAGE="$3" >out 2>&1 &&
    cmake --build "built_$3" >out 2>&1 || { fail "find_package, $*: $(tail -n 15 out)"; return; }
  for app in "built_$3/app_$1_$2"_*; do runs "$app" "$2"; done
}
for component in "${components[@]}"; do
  build_alone "$component" static C  # no C++ in the project at all
  for kind in shared static; do build_alone "$component" $kind CXX; done
done
[ "$(ls built_CXX/app_*_* | wc -l)" = $((8 * ${#components[@]})) ] || fail "apps are missing: $(ls built_*)"

# A sentence refuses a missing component, one that was not installed, and another version.
refused() {  # SENTENCE OPTIONS...
  local sentence=$1
  shift
  cmake -S alone -B built_C "$@" >out 2>&1 && fail "find_package takes $*"
  tr -s ' \n' ' ' <out | grep -q "$sentence" || fail "find_package, $*, does not say '$sentence': $(tail -n 12 out)"
}
cmake --install "$build" --prefix "$work/only" --component wisp_runtime >out 2>err ||
  fail "cmake --install --component: $(head -c 300 err)"
find only -type f | grep -E '/libwisp(-text)?\.|/wisp(-text)?\.pc|bin/|training|recipes' && fail "these come with runtime alone"
refused "there are runtime, text and training" -DCOMPONENT=teleport
refused "without its component 'training'" -DCOMPONENT=training \
  -Dwisp_DIR="$work/only/${lib#"$work/prefix/"}/cmake/wisp"
sed -i 's/find_package(wisp 0.1/find_package(wisp 0.2/' alone/CMakeLists.txt
refused "compatible with requested version" -DCOMPONENT=runtime
expect 0 "" pkg-config --exists wisp-runtime
# An app that links the shared library needs no packages of that library's dependencies.
for name in wisp-runtime $([ "$(cached WISP_TRAINING)" = ON ] && echo wisp wisp-text); do
  PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_PATH='' expect 0 "" pkg-config --cflags --libs "$name"
done

# pkg-config, with the command line of the .pc file.
for component in "${components[@]}"; do
  name=wisp-$component define=()
  [ "$component" = text ] && define=(-DWITH_TEXT)
  [ "$component" = training ] && name=wisp define=(-DWITH_TRAINING)
  grep -q "sed 's/-l$name /-l:lib$name.a /'" "$lib/pkgconfig/$name.pc" ||
    fail "$name.pc does not say how to link the archive"
  [ "$(pkg-config --modversion $name)" = "$(cached CMAKE_PROJECT_VERSION)" ] || fail "$name.pc has another version"
  read -ra shared < <(pkg-config --cflags --libs $name)
  read -ra static < <(pkg-config --cflags --libs --static $name | sed "s/-l$name /-l:lib$name.a /")
  for kind in shared static; do
    declare -n flags=$kind
    for language in "cc -std=c11 -xc" "c++ -std=c++11 -xc++" "c++ -std=c++17 -xc++" "c++ -std=c++20 -xc++"; do
      rm -f app
      $language -Wall -Wextra -Wpedantic -Werror "${define[@]}" alone/app.c -xnone -o app "${flags[@]}" \
        -Wl,-rpath,"$lib" 2>err ||
        { fail "pkg-config, $component, $kind, $language: $(head -c 600 err)"; continue; }
      runs "$work/app" $kind
    done
  done
done

# An app that links the archive and also Highway's shared library keeps Highway's own answers.
cat >highway.cc <<'CC'
#include <hwy/targets.h>
#include <wisp/wisp.h>
int main(int, char** argv) {
  hwy::SetSupportedTargetsForTest(HWY_STATIC_TARGET);
  wisp_model* model = nullptr;
  wisp_error error;
  if (wisp_model_open(argv[1], &model, &error) != WISP_OK) return 2;
  wisp_model_close(model);
  return hwy::SupportedTargets() == HWY_STATIC_TARGET ? 0 : 1;
}
CC
read -ra static < <(pkg-config --cflags --libs --static wisp-runtime | sed "s/-lwisp-runtime /-l:libwisp-runtime.a /")
c++ -std=c++17 highway.cc -o highway "${static[@]}" -lhwy 2>err || fail "an app with Highway: $(head -c 600 err)"
expect 0 "" ./highway "$root/models/cafe.wisp"

# Embedded: no tests, no program, no rules to install, nothing built that is not linked, no flags for the project around
# it.
for component in "${components[@]}"; do
  for static in OFF ON; do
    cmake -S embed -B embedded -G Ninja -DWISP="$root" -DCOMPONENT="$component" \
      -Dwisp_USE_STATIC_LIBS=$static >out 2>&1 ||
      { fail "embedded, $component, static $static: $(tail -n 15 out)"; continue; }
    ninja -C embedded CMakeFiles/app.dir/app.c.o >out 2>&1 ||
      fail "embedded, the header is not found: $(tail -n 5 out)"
  done
done
cmake -S embed -B fetched -G Ninja -DWISP="$root" -DFETCH=ON -DCOMPONENT=runtime >out 2>&1 &&
  ninja -C fetched CMakeFiles/app.dir/app.c.o >out 2>&1 || fail "by FetchContent: $(tail -n 15 out)"
(cd "$root" && cmake --list-presets=all) >out 2>&1 || fail "CMakePresets.json: $(tail -n 3 out)"
ninja -C embedded -t targets all >targets
grep -E '_(test|fuzz):|^(wisp/)?wisp(_tool|_example|[_-]lab)?:|gate_runs|fast_tests' targets &&
  fail "a project that embeds wisp has its tests or programs"
grep -rl add_test --include=CTestTestfile.cmake embedded && fail "a project that embeds wisp has its tests"
grep -q '^build all: .*wisp/all' embedded/build.ninja && fail "a project that embeds wisp builds what it does not link"
grep -rq 'file(INSTALL' --include=cmake_install.cmake embedded/wisp && fail "a project that embeds wisp installs it unasked"
cmake -DWISP_INSTALL=ON embedded >out 2>&1 || fail "embedded, with WISP_INSTALL: $(tail -n 15 out)"
grep -rq 'file(INSTALL' --include=cmake_install.cmake embedded/wisp || fail "a project that embeds wisp cannot install it"
# Without texts, CMake leaves out the text part of the C interface, and the rest works by itself.
if [ "$(cached WISP_TRAINING)" = ON ]; then
  library=libwisp.so.$(cached CMAKE_PROJECT_VERSION)
  cmake -S "$root" -B without -G Ninja -DCMAKE_BUILD_TYPE=Release -DWISP_TEXTS=OFF >out 2>&1 ||
    fail "WISP_TEXTS=OFF: $(tail -n 15 out)"
  objects() { ninja -C "$1" -t inputs "$library" | grep -o 'ports/c/[a-z_]*\.cc\.o$' | sort; }
  comm -23 <(objects "$build") <(objects without) | xargs -n 1 basename >texts
  [ "$(paste -sd' ' texts)" = "wisp_generate.cc.o wisp_text.cc.o wisp_text_training.cc.o" ] ||
    fail "WISP_TEXTS=OFF leaves out $(paste -sd' ' texts)"
  command=$(ninja -C "$build" -t commands "$library" | tail -n 1)
  while read -r object; do command=$(sed "s# [^ ]*/$object##" <<<"$command"); done <texts
  command=$(sed "s#-o $library#-Wl,--no-undefined -Wl,--as-needed -o $work/$library#" <<<"$command")
  ninja -C without -t commands "$library" | tail -n 1 | grep -q utf8proc && fail "WISP_TEXTS=OFF keeps utf8proc"
  (cd "$build" && eval "$command") >out 2>&1 || fail "the library without texts: $(tail -n 5 out)"
  nm -D --defined-only "$library" | grep -q 'T wisp_personalise$' || fail "the library without texts does not learn"
  nm -D --defined-only "$library" | grep -E 'T wisp_(text|private_gener|classifier)' && fail "it has texts all the same"
  readelf -d "$library" | grep -q utf8proc && fail "the library without texts needs utf8proc"
fi

finish
