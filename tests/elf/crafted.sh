# Tests the reader of ELF files. This machine's compiler makes files that are wrong in one way each, and each must be
# refused for that and nothing else. Sourced by tests/elf.sh, in the work folder.
machine=$(uname -m)
case $machine in
  x86_64) name=x86-64 page=4096 marks=-fcf-protection=full no_marks=-fcf-protection=none ;;
  aarch64) name=arm64 page=65536 marks=-mbranch-protection=standard no_marks=-mbranch-protection=none ;;
  *) fail "tests/elf/crafted.sh knows no $machine" ;;
esac
mkdir crafted
cat >table.json <<TABLE
{"pages": {"$name": $page}, "groups": {"c": ["libc.so.6"]}, "files": [
  {"name": "lib.so", "soname": "lib.so.1", "shows": ["f", "g"], "needs": ["c"],
   "needs_with": {"MATHS": ["libm.so.6"]}, "bytes": {"$name": 300000}},
  {"name": "program", "shows": [], "needs": ["c"]}]}
TABLE
cat >crafted.c <<'SOURCE'
#include <stdio.h>
#include <string.h>
#define SHOWN __attribute__((visibility("default")))
char g[64];
#ifdef LARGE
SHOWN const char f[400000] = {1};
#endif
#ifdef LONELY /* an address in the code */
__asm__(".pushsection .text\n.quad g\n.popsection");
#endif
#ifdef MORE
int more;
#endif
#ifndef NO_F
int f(const char* from, size_t n) {
  char to[64];
  memcpy(to, from, n);
  return to[n / 2];
}
#endif
#ifdef PROGRAM /* `stdout` is a copy of the C library's */
int main(int argc, char** argv) { return fputs("", stdout) + f(argv[0], (size_t)argc); }
#endif
SOURCE
protected=(-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-all "$marks")
linked=(-s -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,-z,max-page-size=$page)
make() { gcc "${protected[@]}" "${linked[@]}" crafted.c "$@" 2>err || fail "gcc $*: $(head -c 300 err)"; }
library() { make -shared -fPIC -Wl,-soname,lib.so.1 -o crafted/lib.so "$@"; }
program() { make -DPROGRAM -fPIE -pie -o crafted/program "$@"; }
wrong() {  # SENTENCE [ARGUMENT...]
  local sentence=$1
  shift
  hold --table table.json "$@" crafted >out 2>&1 && fail "not seen: $sentence"
  grep -qF -- "$sentence" out || fail "'$sentence' is not said: $(head -c 600 out)"
  grep -vF -- "$sentence" out | grep -E '^FAILED|Traceback' && fail "besides '$sentence'"
}
right() { hold --table table.json "$@" crafted >out 2>&1 || fail "what is right is refused: $(head -c 600 out)"; }
library && right
grep -qx 'not read: program is not there' out || fail "what is not there is not named: $(cat out)"
right --must lib.so
wrong "gone.so is not in crafted" --must gone.so
bad() {  # SENTENCE OPTION...
  local sentence=$1
  shift
  library "$@"
  wrong "$sentence"
}
bad "it binds its symbols late" -Wl,-z,lazy
bad "no part that becomes read-only" -Wl,-z,norelro
bad "a stack that can be run" -Wl,-z,execstack
bad "in a folder of its own: /opt/lib" -Wl,-rpath,/opt/lib
bad "in a folder of its own: /opt/lib" -Wl,-rpath,/opt/lib,--disable-new-dtags
bad "it has no guards on its stack" -fno-stack-protector
bad "it has no checked copies" -U_FORTIFY_SOURCE
bad "relocations in its code" -DLONELY -Wl,-z,notext
bad "aligned to $((page * 4)) bytes; the table has $page" -Wl,-z,max-page-size=$((page * 4))
bad "it shows, and the table does not have, more" -DMORE
bad "it does not show f" -fvisibility=hidden -Dg='SHOWN g'
bad "it needs, and the table does not have, libm.so.6" -Wl,--no-as-needed -lm
right --with MATHS
library && wrong "it does not need libm.so.6" --with MATHS
bad "the loader is 'other.so'; the table has 'lib.so.1'" -Wl,-soname,other.so
bad "where branches may go" "$no_marks" -nostartfiles
library && strip -o crafted/lib.so crafted/lib.so && gcc -shared -fPIC "${protected[@]}" "${linked[@]:1}" \
  -Wl,-soname,lib.so.1 crafted.c -o crafted/lib.so && wrong "it is not stripped"
library && sed 's/300000/3000/' table.json >small.json && ! hold --table small.json crafted >out &&
  grep -q 'bytes; the table allows 3,000$' out || fail "a large file is not seen: $(cat out)"
rm crafted/lib.so

program && right
program -no-pie -fno-pie && wrong "it lies at a fixed address"
program -Wl,--export-dynamic-symbol=f && wrong "it shows, and the table does not have, f"
rm crafted/program

# Changes bytes of a good library. In `patch OFFSET_EXPRESSION BYTES`, `header(KIND)` is the beginning of a segment's
# header.
patch() {
  library
  python3 - "$@" <<'PYTHON'
import struct, sys
data = bytearray(open("crafted/lib.so", "rb").read())
start, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
def header(kind, flags=None):
    for at in range(start, start + 56 * count, 56):
        if struct.unpack_from("<I", data, at)[0] == kind and flags in (None, data[at + 4]):
            return at
at, new = eval(sys.argv[1]), bytes.fromhex(sys.argv[2])
data[at:at + len(new)] = new
open("crafted/lib.so", "wb").write(data)
PYTHON
}
patch 'header(1, 5) + 4' 07 && wrong "both written and run"
patch 'header(0x6474e551)' 00 && wrong "does not say that its stack cannot be"
patch 'header(1, 6) + 16' 08 && wrong "lies elsewhere in its page"
patch 'header(1, 6) + 48' 03 && wrong "is no power of two"
patch 18 08 && wrong "it is for machine 8; known are x86-64 (62), arm64 (183)"
patch 4 01 && wrong "it is not of 64 bits"
patch 32 ffffffffffffffff && wrong "it is cut short"
patch 'header(2)' 00 && wrong "it has no dynamic section"
patch 60 0000 && wrong "it has no section of dynamic symbols"
library && mv crafted/lib.so crafted/unknown.so && wrong "the table does not know it"
rm crafted/unknown.so
wrong "there is no ELF file in crafted"
# Cut anywhere, or with any byte changed, it is read or refused with a sentence.
library
python3 - "$root/tools/elf" <<'PYTHON' || fail "a damaged file is not refused with a sentence"
import random, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import elf_file
good = open("crafted/lib.so", "rb").read()
seed = random.SystemRandom().randrange(2**32)
print(f"seed {seed}")
chance = random.Random(seed)
refused = 0
for case in range(3000):
    data = bytearray(good)
    if case % 2: data = data[:chance.randrange(len(data))]
    else: data[chance.randrange(1024 if case % 4 else len(data))] = chance.randrange(256)
    open("damaged", "wb").write(data)
    try: elf_file.read("damaged")
    except elf_file.NotElf: refused += 1
if refused < 1000: sys.exit(f"only {refused} of 3000 damaged files were refused")
PYTHON
