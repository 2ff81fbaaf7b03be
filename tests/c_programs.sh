#!/usr/bin/env bash
# The main task through the C interface, and its refusals.
#   tests/c_programs.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
. "$root/tests/cli_fixtures.sh"

# The C example: the main task through the C interface.
expect 0 "epsilon so far" "$build/wisp_example" base.wisp log.db c.db c.wisp u00003 8
grep -q "after" out && grep -q "Privacy statement" out || fail "the C example printed $(head -c 300 out)"

# The calls that it refuses before anything is spent.
c_program personalise_refused refusals
expect 0 "" "$wisp" export base.wisp --out base.safetensors
expect 0 "" "$wisp" convert base.safetensors --out imported.wisp
plain ordinary.wisp
expect 0 "" ./personalise_refused base.wisp "$PWD/log.db" c.db imported.wisp ordinary.wisp c.wisp
[ ! -e refused.wisp ] && [ ! -e unpaid.db ] || fail "a refused personalisation left a model behind"

finish
