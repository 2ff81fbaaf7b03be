#!/usr/bin/env bash
# The layout of C and C++ follows .clang-format. No line of these, of Python or of Kotlin is longer than 120 columns.
#   tests/format.sh [ROOT]     prints what differs; exits 1 if something does, 77 if there is no clang-format
#   tools/dev format           formats the files
set -uo pipefail
cd "${1:-$(dirname "$0")/..}"
command -v clang-format >/dev/null || { echo "not checked: there is no clang-format (tools/dev setup installs it)"; exit 77; }
mapfile -t sources < <(git ls-files '*.cc' '*.h' '*.hpp' '*.c' 2>/dev/null | grep -v '/generated/')
[ ${#sources[@]} -gt 0 ] || { echo "not checked: this is no checkout of git"; exit 77; }
faults=$(
  clang-format --dry-run --Werror "${sources[@]}" 2>&1 | sed -nE 's/^([^:]+:[0-9]+):.*error:.*/\1: laid out otherwise/p' | sort -u
  git ls-files -z '*.py' '*.kt' '*.kts' | python3 -c '
import sys
for name in sys.argv[1:] + [name for name in sys.stdin.read().split("\0") if name]:
    for number, line in enumerate(open(name, encoding="utf-8").read().split("\n"), 1):
        if len(line) > 120: print(f"{name}:{number}: {len(line)} columns")' "${sources[@]}"
)
[ -z "$faults" ] || { echo "$faults"; exit 1; }
