#!/usr/bin/env bash
# An app's language changes no number and no sentence of the library. Tests of the library, and the program, run in a
# process whose locale writes a comma where "C" writes a point. The program never sets the locale but reads the numbers
# of its own command line by it, so no number with a fraction is given here.
#   tests/locale.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
command -v localedef >/dev/null || { echo "localedef is missing (Debian: libc-bin)"; exit 77; }
mkdir locales
cat >comma.src <<'LOCALE'
comment_char %
escape_char /
LC_NUMERIC
decimal_point "<U002C>"
thousands_sep "<U002E>"
grouping 3;3
END LC_NUMERIC
LOCALE
localedef -c -i comma.src -f ANSI_X3.4-1968 locales/comma >made 2>&1
[ -d locales/comma ] || { echo "localedef made no locale; it needs the character maps (Debian: locales): $(tail -1 made)"; exit 77; }
# Apps with windows ask for the user's locale. This library, preloaded into a program, does the same.
printf '#include <locale.h>\n__attribute__((constructor)) static void begin(void) { setlocale(LC_ALL, ""); }\n' >begin.c
printf '#include <stdio.h>\nint main(void) { return printf("%%.1f", 1.5) != 3; }\n' >shows.c
cc -shared -fPIC begin.c -o begin.so && cc shows.c -o shows || { fail "cc"; finish; }
with_comma() { LD_PRELOAD=$PWD/begin.so LOCPATH=$PWD/locales LC_ALL=comma "$@"; }
[ "$(with_comma ./shows)" = 1,5 ] || { echo "this system has no locale with a comma: $(with_comma ./shows)"; exit 77; }

for name in decimal json statement ledger_statement ledger_anchor checkpoint_parts; do
  with_comma "$build/${name}_test" >out 2>&1 || fail "${name}_test under a comma: $(grep -m3 -A4 Failure out)"
done

# The program's bytes are the same.
"$wisp" synth --out log.db --population device --users 60 --seed 3 >out 2>err || fail "synth: $(cat err)"
cp "$root/models/cafe.wisp" base.wisp
train=(--recipe "$root/models/recipes/cafe-device.json" --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1
  --epsilon 7)
with_comma "$wisp" train "${train[@]}" --ledger log.ledger --out mine.wisp >out 2>err || fail "train: $(cat err)"
alike() {  # COMMAND...
  LC_ALL=C "$@" >point 2>&1
  with_comma "$@" >comma 2>&1
  [ -s point ] && cmp -s point comma || fail "$* says something else under a comma: $(diff point comma | head -4)"
}
alike "$wisp" privacy --ledger log.ledger
alike "$wisp" privacy --ledger log.ledger --json
alike "$wisp" inspect mine.wisp
alike "$wisp" inspect mine.wisp --json
alike "$wisp" recommend --model mine.wisp --history tea-mint --json
alike "$wisp" train "${train[@]}" --ledger log.ledger --budget 1 --out other.wisp
alike "$wisp" train "${train[@]}" --ledger nowhere/log.ledger --out other.wisp
finish
