#!/usr/bin/env bash
# The README's C programs.
#   tests/readme.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# The README's example compiles as it stands, and its three command lines hold where they say: in the repository's root.
# The programs find the library from elsewhere too.
mkdir -p checkout/build
ln -s "$root/ports" "$root/models" checkout
ln -s "$build" checkout/build/release
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/README.md" >checkout/main.c
cc -std=c11 -Wall -Wextra -Werror -I"$build/include" checkout/main.c -o readme -L"$build" -lwisp -Wl,-rpath,"$build" \
  2>err || fail "the README's example: $(head -c 300 err)"
cp log.db checkout/log.db
grep -E '^    (gcc|\./example)' "$root/README.md" >commands
[ "$(grep -c . commands)" = 3 ] ||
  fail "the README has $(grep -c . commands) lines that compile or run the C programs, not 3"
while read -r command; do
  expect 0 "" sh -c "cd checkout && $command"
  [ -s out ] || [[ $command != *./* ]] || fail "$command prints nothing"
done <commands
mkdir -p a
cp log.db a
cp -r "$root/models" a/models
expect 0 "" sh -c 'cd a && ../checkout/main'

finish
