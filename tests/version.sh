#!/usr/bin/env bash
# CMakeLists.txt says the version. Every other place that names one agrees.
#   tests/version.sh BUILD_FOLDER
source "$(dirname "$0")/shell.sh"
version=$(sed -n 's/^project(wisp VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { fail "CMakeLists.txt says version '$version', not three numbers"; finish; }
held=0
# same WHO SAYS
same() {
  held=$((held + 1))
  [ "$2" = "$version" ] || fail "$1 says version '$2', CMakeLists.txt $version"
}

same CHANGELOG.md "$(sed -n 's/^## \[\([^]]*\)\].*/\1/p' "$root/CHANGELOG.md" | head -n 1)"
same wisp.h "$(sed -n 's:^/\* "\([0-9.]*\)"\. Never NULL\. \*/$:\1:p' "$root/ports/c/wisp.h")"
same "the build" "$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")"
cross=$(sed -n 's/^CMAKE_SYSTEM_NAME:[A-Z]*=//p' "$build/CMakeCache.txt")
for library in "$build"/libwisp.so "$build"/libwisp-runtime.so "$build"/libwisp-text.so; do
  [ -e "$library" ] || continue
  same "$(basename "$library"), a link," "$(readlink -f "$library" | sed 's/.*\.so\.//')"
  [ -n "$cross" ] || same "wisp_version() of $(basename "$library")" "$(python3 -c 'import ctypes, sys
version = ctypes.CDLL(sys.argv[1]).wisp_version
version.restype = ctypes.c_char_p
print(version().decode())' "$library")"
done
[ -n "$cross" ] || [ ! -x "$wisp" ] || same "wisp --version" "$("$wisp" --version | sed 's/^wisp //')"

# The installed files.
for file in "$build"/ports/cmake/*.pc; do same "$(basename "$file")" "$(sed -n 's/^Version: //p' "$file")"; done
same wisp-config-version.cmake "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$build/ports/cmake/wisp-config-version.cmake")"
# An app asks for the part of the version that identifies compatible versions.
while IFS=: read -r file said; do
  same "$file, which asks for $said," "$said${version#"${version%.*}"}"
done < <(cd "$root" && grep -roE 'find_package\(wisp [0-9.]+' --include=*.md --include=*.cmake --include=CMakeLists.txt docs ports tests/consumer |
  sed 's/find_package(wisp //')

# The ports, by the programs that read the version there.
"$root/tools/amalgamate/amalgamate" made >out 2>err || fail "tools/amalgamate: $(head -c 300 err)"
same "wisp.cc, made by tools/amalgamate," "$(sed -n 's/^#define WISP_VERSION "\(.*\)"$/\1/p' made/wisp.cc)"
same "the first line of that" "$(sed -n '1s/^.. wisp \([0-9.]*\),.*/\1/p' made/wisp.cc)"
same "wisp.h, made by tools/amalgamate," "$(sed -n '1s/^.. wisp \([0-9.]*\):.*/\1/p' made/wisp.h)"
same ports/python/pyproject.toml "$(python3 -c 'import pathlib, re, sys, tomllib
project = pathlib.Path(sys.argv[1])
asks = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["scikit-build"]["metadata"]["version"]
print(re.search(asks["regex"], (project / asks["input"]).read_text())["value"])' "$root/ports/python")"
{
  echo "set(root $root)"
  echo "set(package $work)"
  echo "set(CMAKE_CURRENT_SOURCE_DIR $root/ports/wasm)"
  sed -n '/^file(STRINGS .* version /,/package\.json\.in/p' "$root/ports/wasm/CMakeLists.txt" | sed 's:(source/:(${CMAKE_CURRENT_SOURCE_DIR}/source/:'
} >version.cmake
cmake -P version.cmake >out 2>err || fail "ports/wasm/CMakeLists.txt: $(head -c 300 err)"
same "package.json of ports/wasm" "$(python3 -c 'import json; print(json.load(open("package.json"))["version"])' 2>err)"
[ "$held" -ge 14 ] || fail "only $held places say a version"
[ "$failures" -gt 0 ] || echo "$held places say $version"
finish
