#!/usr/bin/env bash
# The C programs of the README and of docs/guide.md.
#   tests/readme.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# The README's example compiles unchanged, and its command line works where it says: in the repository's root. So does
# the longer example. The programs find the library from elsewhere too.
mkdir -p checkout/build
ln -s "$root/ports" "$root/models" checkout
ln -s "$build" checkout/build/release
program() { "$root/tools/site/snippets.py" "$root/$1" c "${@:2}"; }
program README.md >checkout/main.c || fail "the README has no program in C"
cc -std=c11 -Wall -Wextra -Werror -I"$build/include" checkout/main.c -o readme -L"$build" -lwisp -Wl,-rpath,"$build" \
  2>err || fail "the README's example: $(head -c 300 err)"
cp log.db checkout/log.db
grep -E '^    gcc' "$root/README.md" >commands
[ "$(grep -c . commands)" = 1 ] || fail "the README has $(grep -c . commands) lines that compile the C program, not 1"
cat >>commands <<'COMMANDS'
gcc -std=c99 -Ibuild/release/include ports/c/example.c -Lbuild/release -lwisp -Wl,-rpath,"$PWD/build/release" -o example
./example models/cafe.wisp log.db log.ledger tuned.wisp u00003 3
COMMANDS
while read -r command; do
  expect 0 "" sh -c "cd checkout && $command"
  [ -s out ] || [[ $command != *./* ]] || fail "$command prints nothing"
done <commands
mkdir -p a
cp log.db a
cp -r "$root/models" a/models
expect 0 "" sh -c 'cd a && ../checkout/main'

# The guide's program: 40 lines, in a folder with only the shipped model; then with a log of many guests.
program docs/guide.md "In C" >guide.c || fail "the guide has no program in C"
[ "$(grep -c . guide.c)" -le 40 ] || fail "the guide's program has $(grep -c . guide.c) lines, not 40"
cc -std=c11 -Wall -Wextra -Werror -I"$build/include" guide.c -o guide -L"$build" -lwisp -Wl,-rpath,"$build" 2>err ||
  fail "the guide's example: $(head -c 300 err)"
mkdir app
cp "$root/models/cafe.wisp" app
for night in 364 363; do
  expect 0 "" sh -c 'cd app && ../guide'
  grep -q "; $night nights left" out || fail "the guide's program does not count its nights: $(cat out)"
  [ "$(wc -l <out)" = 6 ] || fail "the guide's program does not recommend: $(cat out)"
done
cmp -s app/year.wisp app/cafe.wisp || fail "with one guest another model than the base is served"

finish
