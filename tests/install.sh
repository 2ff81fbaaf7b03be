#!/usr/bin/env bash
# The installed files: everything that an app and the program need, and nothing that names this machine.
# tests/program/elf.py reads its libraries and programs, tests/consumer.sh builds apps against it.
#   tests/install.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
training=$(cached WISP_TRAINING)
program=$([ "$training" = ON ] && cached WISP_TOOLS)
lib=prefix/$(cached CMAKE_INSTALL_LIBDIR)
cmake --install "$build" --prefix "$work/prefix" >out 2>err || fail "cmake --install: $(head -c 300 err)"

libraries=(libwisp-runtime libwisp-text)
[ "$training" = ON ] && libraries+=(libwisp)
# The installed files are those that `tools/dev build` builds: all libraries and the program, and no test.
if [ -f "$build/build.ninja" ]; then
  ninja -C "$build" -t query installed >targets 2>err || fail "ninja does not know what is installed: $(head -c 300 err)"
  for target in "${libraries[@]/%/.a}" "${libraries[@]/%/.so}" ${program:+wisp}; do
    grep -qx "    $target" targets || fail "$target is installed and not among what is built for that"
  done
  ninja -C "$build" -t inputs installed >inputs
  ! grep "_test" inputs || fail "a test is among what is built to be installed"
fi
for library in "${libraries[@]}"; do
  [ -f "$lib/$library.a" ] || fail "there is no $library.a"
  [ -L "$lib/$library.so" ] && [ -L "$lib/$library.so.0" ] || fail "$library.so: the version links are missing"
  [ -f "$lib/pkgconfig/${library#lib}.pc" ] || fail "there is no ${library#lib}.pc"
done
for file in include/wisp/wisp.h include/wisp/wisp_embed.h include/wisp/wisp_deployment.h include/wisp/wisp_fleet.h include/wisp/wisp_text.h include/wisp/wisp.hpp share/doc/wisp/LICENSE share/doc/wisp/NOTICE.md; do
  [ -f "prefix/$file" ] || fail "there is no $file"
done
if [ "$program" = ON ]; then
  diff -r "$root/models/recipes" prefix/share/wisp/recipes >out || fail "the recipes differ: $(head -c 300 out)"
  cmp -s "$root/models/cafe.wisp" prefix/share/wisp/models/cafe.wisp ||
    fail "share/wisp/models/cafe.wisp is not the shipped model"
  for unit in wisp-personalise.service wisp-personalise.timer; do
    cmp -s "$root/ports/linux-arm64/$unit" "prefix/share/wisp/systemd/$unit" || fail "share/wisp/systemd/$unit is not the unit of the port"
  done
fi
if [ "$training" != ON ]; then
  find prefix -type f | grep -E '/libwisp\.|/wisp\.pc|wisp-training|example' &&
    fail "a build without training installs it"
fi

# After tools/dev demo the build has only the program and libwisp: these are installed, and the output names the rest.
# The scripts are those of this build, with a folder that has no more.
if [ "$training" = ON ] && [ "$program" = ON ]; then
  mkdir -p partial && (cd "$build" && find . \( -name cmake_install.cmake -o -path './CMakeFiles/Export/*' -o -path './ports/cmake/*' \) \
    -type f -exec cp --parents -t "$work/partial" {} +)
  find partial -type f -exec sed -i "s|$build|$work/partial|g" {} +
  cp -a "$build"/libwisp.* "$build/wisp" partial/
  cmake --install partial --prefix "$work/after_demo" >out 2>err || fail "cmake --install after the demo: $(head -c 300 err)"
  for name in runtime text; do
    grep -q "Without wisp_$name: libwisp-$name.so.* is not built" out || fail "nothing is said of libwisp-$name, which is not built"
    [ ! -e "after_demo/lib/cmake/wisp/wisp-$name.cmake" ] || fail "find_package would find libwisp-$name, which is not there"
  done
  diff <(cd prefix && find . -type f | grep -vE 'wisp-(runtime|text|node)|wisp_cuda|wisp-config-version' | sort) \
    <(cd after_demo && find . -type f | grep -v wisp-config-version | sort) >out || fail "after the demo other files are installed: $(head -c 400 out)"
  cmake --install partial --prefix "$work/none" --component wisp_text >out 2>err && fail "a component that is not built is installed"
  grep -q 'libwisp-text.so.* is not built: cmake --build' err || fail "no sentence for a component that is not built: $(head -c 300 err)"
fi

# A path of this machine in a file would break after the prefix is moved, and reveal where it was built.
grep -rlF -e "$root" -e "$build" -e "$work" -e /usr/lib/ prefix && fail "these files name folders of this machine"

# The kernels of a GPU lie beside the libraries, if they were built.
[ ! -e "$build/libwisp_cuda.so" ] || cmp -s "$build/libwisp_cuda.so" "$lib/libwisp_cuda.so" ||
  fail "$lib/libwisp_cuda.so is not the module that was built"

# A build for another processor is not run.
machine_of() { od -An -tx1 -j18 -N2 "$1"; }
[ "$program" != ON ] || [ "$(machine_of prefix/bin/wisp)" = "$(machine_of /bin/sh)" ] || program=OFF
if [ "$program" = ON ]; then
  expect 0 "" prefix/bin/wisp --help
  expect 0 "" prefix/bin/wisp recommend --model prefix/share/wisp/models/cafe.wisp --history tea-mint
  expect 0 "" prefix/bin/wisp new --recipe prefix/share/wisp/recipes/cafe.json --num-items 10 --out new.wisp
  # The program finds its module there. The emulator's module replaces it.
  if [ "$(cached WISP_CUDA)" = ON ] && [ -e "$build/libwisp_cuda_emulator.so" ]; then
    cp "$build/libwisp_cuda_emulator.so" "$lib/libwisp_cuda.so"
    device=(recommend --model prefix/share/wisp/models/cafe.wisp --history tea-mint --device cuda)
    expect 0 "" prefix/bin/wisp "${device[@]}"
    [ "$(wc -l <out)" -ge 10 ] || fail "recommended with the installed module: $(cat out)"
    mkdir -p elsewhere && mv prefix/bin/wisp elsewhere/wisp
    expect 3 "there is no device cuda: its module was not loaded" elsewhere/wisp "${device[@]}"
  fi
fi
finish
