#!/usr/bin/env bash
# Kernels compile for 64-bit Arm, without warnings: code that is written once for all instruction sets may still fit
# only one. Nothing runs here; tools/dev arm64 runs the tests under qemu. Exit code 77: there is no cross compiler.
#   tests/arm64_kernels.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
compiler=aarch64-linux-gnu-g++
command -v $compiler >/dev/null || { echo "not compiled: $compiler is missing (Debian: g++-aarch64-linux-gnu)"; exit 77; }
# Highway consists of headers, the same for every processor.
mkdir include && ln -s /usr/include/hwy include/hwy
for source in "$root"/kernels/{simd,int8}/*.cc; do
  [[ $source == *vnni* ]] && continue  # for x86-64 only
  $compiler -std=c++20 -O1 -Wall -Wextra -Wno-missing-field-initializers -Werror -I"$root" -isystem include \
    -c "$source" -o /dev/null 2>err || fail "${source#"$root/"}: $(head -c 600 err)"
done
finish
