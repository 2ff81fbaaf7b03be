#!/usr/bin/env bash
# Checks every program and library of a build, as it is installed, against tests/elf.json: symbols, libraries, pages,
# protection, size. Before that it tests the reader itself (tests/elf/crafted.sh).
#   tests/elf.sh BUILD_FOLDER      of this or another processor; the output names what the build lacks
# Files of the table that are not installed are checked where they are made: tests/python.sh, tests/python_arm64.sh,
# tests/cuda/module.
source "$(dirname "$0")/shell.sh"
hold() { python3 "$root/tests/elf/hold.py" "$@"; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
source "$root/tests/elf/crafted.sh"

options=()
for option in WISP_XNNPACK WISP_CUDA; do [ "$(cached $option)" = ON ] && options+=(--with $option); done
[ "$(cached WISP_HARDENING)$(cached CMAKE_BUILD_TYPE)" = ONRelease ] || options+=(--plain)
cmake --install "$build" --prefix "$work/prefix" >log 2>err || { fail "cmake --install: $(head -c 300 err)"; finish; }
shipped=("$work/prefix")
[ -e "$build/wisp_example" ] && shipped+=("$build/wisp_example")
# A missing file would not be noticed, so these must be there, or the build is not whole.
version=$(cached CMAKE_PROJECT_VERSION)
must=(--must "libwisp-runtime.so.$version" --must "libwisp-text.so.$version")
[ "$(cached WISP_TRAINING)" = ON ] && must+=(--must "libwisp.so.$version")
[ "$(cached WISP_TRAINING)$(cached WISP_TOOLS)" = ONON ] && must+=(--must wisp)
hold "${options[@]}" "${must[@]}" "${shipped[@]}" || fail "files of $build are not as tests/elf.json says"
finish
