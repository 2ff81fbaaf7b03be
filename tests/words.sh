#!/usr/bin/env bash
# Checks that tests/words.py sees each kind of breach and passes sound text; then runs it on every source of the checkout.
#   tests/words.sh     prints the breaches; exits 1 if there is one, 77 where the sources are no checkout of git
set -uo pipefail
cd "$(dirname "$0")/.."
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "not checked: this is no checkout of git"; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failures=0

# NAME MARK LINE: one line of a file that ends in NAME. The planted lines are in two pieces, so that this file has no breach.
seen() {
  printf '%s\n' "$2$3" >"$work/planted$1"
  tests/words.py "$work/planted$1" >"$work/out" && { echo "not seen in planted$1: $2$3"; failures=$((failures + 1)); }
  grep -q "planted$1:1: " "$work/out" || { echo "no line number for planted$1: $2$3"; failures=$((failures + 1)); }
}
passes() {
  printf '%s\n' "$2$3" >"$work/planted$1"
  tests/words.py "$work/planted$1" >"$work/out" || { echo "refused in planted$1: $2$3"; failures=$((failures + 1)); }
}
for word in Of What Whether Nor As 'The same'; do
  seen .cc '// ' "$word two models the second is read."
  seen .h 'int first = 0;  // ' "$word two models the second is read."
  seen .sh '# ' "$word two models the second is read."
  seen .fbs '/// ' "$word two models the second is read."
done
for verb in is are was were; do
  seen .cc '// A key that ' "$verb none."
  seen .py 'message = "a key that ' "$verb none\""
done
seen .kt '    // ' 'what follows'
seen .md '' 'Each evaluation is a judg''ing of two models.'
seen .md '- ' "$(printf 'word %.0s' {1..31})."
passes .md '- ' "$(printf 'word %.0s' {1..30}). $(printf 'word %.0s' {1..30})."
passes .md '| cell ' "$(printf 'word %.0s' {1..40}) |"
passes .cc '// ' 'The second of two models is read.'
passes .cc '// ' 'Offsets of rows; what follows is copied.'
passes .cc 'const char* kUrl = "http:// ' 'what follows";'
passes .py 'of = 1  # ' 'The number of models; none is allowed.'
# A sentence may begin its second line with any of these words.
passes .cc '// A list holds the ids' $'\n// of two models.'

tests/words.py || failures=$((failures + 1))
[ "$failures" -eq 0 ]
