#!/usr/bin/env bash
# A checkout may lie anywhere. Below folders that are named like parts of the tree, and with spaces, CMake makes the
# same tests and targets.
#   tests/anywhere.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
git -C "$root" rev-parse --git-dir >/dev/null 2>&1 || { echo "not checked: this is no checkout of git"; exit 77; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
elsewhere="$work/cuda/unit/text/kernels/entry.cc/two words"
mkdir -p "$elsewhere"
(cd "$root" && git ls-files -coz --exclude-standard | tar --null -T - --ignore-failed-read -cf - 2>/dev/null) | tar -xf - -C "$elsewhere"
options=(-G Ninja "-DCMAKE_BUILD_TYPE=$(cached CMAKE_BUILD_TYPE)" "-DWISP_CUDA=$(cached WISP_CUDA)" "-DWISP_XNNPACK=$(cached WISP_XNNPACK)")
for place in "$root" "$elsewhere"; do
  cmake -S "$place" -B "made" "${options[@]}" >out 2>&1 || { fail "cmake in $place: $(tail -n 5 out)"; finish; }
  ctest --test-dir made -N | sed -n 's/^ *Test *#[0-9]*: //p' | sort >tests
  ninja -C made -t targets all | sed "s|$work||; s|$place||" | cut -d: -f1 | grep -v '/' | sort >targets
  [ -e first_tests ] || { mv tests first_tests && mv targets first_targets; }
  rm -rf made
done
[ "$(wc -l <first_tests)" -gt 100 ] || fail "there are but $(wc -l <first_tests) tests to compare"
diff first_tests tests >out || fail "elsewhere there are other tests: $(head -c 300 out)"
diff first_targets targets >out || fail "elsewhere there are other targets: $(head -c 300 out)"
finish
