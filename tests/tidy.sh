#!/usr/bin/env bash
# What clang-tidy finds by .clang-tidy: nothing may be left.
#   tests/tidy.sh BUILD_FOLDER             the sources that the last commit and the work tree change, without the analyzer
#   tests/tidy.sh BUILD_FOLDER FILE...     these
#   tests/tidy.sh BUILD_FOLDER --all       everything, with the analyzer: an hour and a half on two cores
# Prints what it finds; exits 1 if that is something, 77 where it cannot look.
set -uo pipefail
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || { echo "not checked: there is no clang-tidy (tools/dev setup installs it)"; exit 77; }
git rev-parse --git-dir >/dev/null 2>&1 || { echo "not checked: this is no checkout of git"; exit 77; }

checks=-clang-analyzer-*
case ${1:-} in
  '')
    # A header is looked at with the source of its name.
    mapfile -t files < <({ git diff --name-only HEAD; git ls-files --others --exclude-standard
      git diff --name-only HEAD~1 HEAD 2>/dev/null; } | sed -nE 's/\.(h|cc)$/.cc/p' | sort -u) ;;
  --all) checks=; mapfile -t files < <(git ls-files '*.cc') ;;
  *) files=("$@") ;;
esac
# Only what this build compiles has a command line.
sources=()
for file in "${files[@]}"; do
  [ -f "$file" ] && grep -qF "/$file\"" "$build/compile_commands.json" && sources+=("$file")
done
[ ${#sources[@]} -gt 0 ] || { echo "no source has changed"; exit 0; }
echo "${#sources[@]} sources"
found=$(printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet --checks="$checks" 2>/dev/null | grep -E '(warning|error):' | sort -u)
[ -z "$found" ] || { echo "$found"; exit 1; }
