#!/usr/bin/env bash
# The C interface as earlier programs rely on it: constants, functions, sizes, and the places of fields. The record in
# tests/abi/lp64.txt must not change; a change that adds something records it. Structs that begin with `size` may grow.
# Names in the ports to Swift and JavaScript are compared with the headers.
# tests/program/elf.py compares the functions that the libraries show with this record and with the headers.
#   tests/abi.sh BUILD_FOLDER             fails if something recorded changed, or something new is not recorded
#   tests/abi.sh BUILD_FOLDER --update    records what is new; refused if something recorded changed
source "$(dirname "$0")/shell.sh"
update=${2:-}
record=$root/tests/abi/lp64.txt interface=$root/tests/abi/interface.py
export PATH=/usr/bin:$PATH  # Debian's Python, which has Debian's pycparser
python3 -c 'import pycparser' 2>/dev/null || { echo "FAILED: pycparser is missing (Debian: python3-pycparser)"; exit 1; }

# describe FOLDER FILE writes what its headers say, laid out by this machine's compiler.
describe() {
  python3 "$interface" program "$1" >program.c && cc -std=c99 -Wall -Wextra -Werror -I"$1" program.c -o program &&
    ./program >"$2" || fail "the headers in ${1#"$root/"} were not read"
}
# holds RECORDED NOW NAME
holds() { python3 "$interface" compare "$1" "$2" >out 2>err || fail "$3: $(cat out err)"; }

describe "$root/ports/c" now.txt
if [ "$(grep -c '^function ' now.txt)" -lt 50 ]; then fail "few functions were found: $(grep -c . now.txt) lines"; fi
holds "$record" now.txt "programs of tests/abi/lp64.txt"
if [ "$update" = --update ] && [ "$failures" -eq 0 ]; then
  { grep '^#' "$record"; cat now.txt; } >new.txt
  cp new.txt "$record"
fi
grep -v '^#' "$record" | diff - now.txt >out || fail "not recorded (tests/abi.sh BUILD_FOLDER --update): $(cat out)"

# No C compiler reads the ports to Swift and JavaScript: they name only what the headers have.
mapfile -t swift < <(find "$root/ports/apple" -name '*.swift' ! -name Package.swift)
python3 "$root/tests/apple/swift.py" now.txt "${swift[@]}" >out 2>&1 || fail "ports/apple: $(cat out)"
scripts() { python3 "$root/ports/wasm/layout.py" functions "$@" <now.txt >out 2>&1; }
scripts "$root"/ports/wasm/source/*.js || fail "ports/wasm: $(cat out)"
sed 's/wisp_run_planned/wisp_run_plan/' "$root/ports/wasm/source/worker.js" >worker.js
scripts worker.js && fail "a function that JavaScript calls and the headers lack is not seen"

# A change that would break a program is noticed.
broken() {  # NAME SED
  sed "$2" now.txt >broken.txt
  cmp -s now.txt broken.txt && fail "$1: nothing was changed"
  python3 "$interface" compare now.txt broken.txt >out && fail "$1 is not seen"
}
broken "another value" 's/^constant WISP_IO 5/constant WISP_IO 6/'
broken "a function that is gone" '/^function void wisp_model_close/d'
broken "another argument" 's/\(^function wisp_code wisp_model_open(const char \*path\)/\1, int flags/'
broken "a field that moved" 's/^field wisp_open_options.backend at [0-9]*/field wisp_open_options.backend at 4/'
broken "a struct that shrank" 's/^struct wisp_open_options [0-9]*/struct wisp_open_options 8/'
broken "a struct that grew without a size" 's/^struct wisp_error 1028/struct wisp_error 1032/'
broken "another alignment" 's/^\(struct wisp_open_options .*\) [0-9]*$/\1 16/'
sed 's/^struct wisp_open_options [0-9]*/struct wisp_open_options 4096/' now.txt >grown.txt
holds now.txt grown.txt "a struct with a size that grew"
finish
