#!/usr/bin/env bash
# Runs clang-tidy with .clang-tidy: it must find nothing.
#   tests/tidy.sh BUILD_FOLDER             the sources that the last commit and the work tree change, without the
# analyzer
#   tests/tidy.sh BUILD_FOLDER FILE...     these
#   tests/tidy.sh BUILD_FOLDER --all       everything, with the analyzer: an hour and a half on two cores
# A header is checked through the source of its name, or else through one that includes it. Prints the findings; exits 1
# if there are any or clang-tidy fails, 2 for wrong arguments, 77 if it cannot check.
set -uo pipefail
build=$(cd "${1:?the build folder is missing}" && pwd) || exit 2
shift
[ -f "$build/CMakeCache.txt" ] || { echo "$build is no build folder: configure it first" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 2
clang-tidy --version 2>/dev/null | grep -q 'version 14\.' ||
  { echo "not checked: there is no clang-tidy 14 (tools/dev setup installs Debian's)"; exit 77; }
git rev-parse --git-dir >/dev/null 2>&1 || { echo "not checked: this is no checkout of git"; exit 77; }

# Makes the same build with one command for each source: batches have one for several.
mapfile -t options < <(sed -nE 's/^((WISP_[A-Z]+|CMAKE_BUILD_TYPE|CMAKE_C(XX)?_COMPILER|CMAKE_TOOLCHAIN_FILE):[A-Z]+=.+)$/-D\1/p' "$build/CMakeCache.txt")
cmake -S . -B "$build/each" -G Ninja "${options[@]}" -DWISP_UNITY=OFF >/dev/null || { echo "$build/each cannot be configured"; exit 1; }
build=$build/each
commands=$build/compile_commands.json
# Lists the sources that this build compiles, one path on each line.
compiled=$(sed -nE "s|^ *\"file\": \"$PWD/(.*)\",?$|\1|p" "$commands" | sort -u)
is_compiled() { grep -qxF "$1" <<<"$compiled"; }
# source_of FILE prints the source through which a file is checked; nothing if no source includes it.
source_of() {
  local file=$1 source level=$1
  if [[ $file == *.h ]]; then
    file=${1%.h}.cc
    for _ in 1 2 3; do
      is_compiled "$file" && break
      # Finds the files that include it, or that include these.
      level=$(printf '"%s"\n' $level | git grep -lF -f - -- '*.h' '*.cc')
      for source in $level; do
        is_compiled "$source" && file=$source && break
      done
    done
  fi
  is_compiled "$file" && echo "$file"
}

checks=-clang-analyzer-*
named=no
case ${1:-} in
  '') mapfile -t files < <({ git diff --name-only HEAD; git ls-files --others --exclude-standard
    git diff --name-only HEAD~1 HEAD 2>/dev/null; } | grep -E '\.(h|cc)$' | grep -v /generated/ | sort -u) ;;
  --all) checks=; mapfile -t files < <(git ls-files '*.cc') ;;
  *) files=("$@"); named=yes ;;
esac
sources=()
for file in "${files[@]}"; do
  [ "$named" = yes ] || [ -f "$file" ] || continue
  source=$(source_of "$file")
  if [ -n "$source" ]; then
    sources+=("$source")
  elif [ "$named" = yes ]; then
    echo "$file: this build does not compile it, nor a source that includes it" >&2
    exit 2
  else
    echo "$file: not looked at, this build does not compile it"
  fi
done
[ ${#sources[@]} -gt 0 ] || { echo "no source has changed"; exit 0; }
mapfile -t sources < <(printf '%s\n' "${sources[@]}" | sort -u)
echo "${#sources[@]} sources"
printed=$(printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet --checks="$checks" 2>&1)
code=$?
found=$(grep -E ': (warning|error): |^Error' <<<"$printed" | sort -u)
[ -z "$found" ] || { echo "$found"; exit 1; }
[ "$code" -eq 0 ] || { echo "clang-tidy failed (exit code $code): $(tail -n 3 <<<"$printed")"; exit 1; }
