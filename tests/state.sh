#!/usr/bin/env bash
# The library has no global state: tests/abi/state.txt lists all memory that it can write to beside its callers', where
# each variable has its reason.
#   tests/state.sh BUILD_FOLDER
. "$(dirname "$0")/shell.sh"
list=$root/tests/abi/state.txt
command -v objdump >/dev/null || { echo "objdump is missing (Debian: binutils)"; exit 77; }
sed 's/ | .*//' <(grep -v '^#' "$list") | sort >named
grep -v '^#' "$list" | grep -vE '^[^ ]+ \| .{10,}' && fail "tests/abi/state.txt: these lines are not 'name | reason'"

# variables LIBRARY prints the names without arguments, template's types, unnamed namespaces and the compiler's
# additions.
variables() {
  objdump -tC "$1" | grep -E ' \.(data|bss|tdata|tbss)	' | sed -E 's/^.*	[0-9a-f]+ +//; s/^\.hidden //' |
    sed -E ':a; s/\[abi:[a-z0-9]+\]//; s/\(anonymous namespace\):://; s/<[^<>]*>//; s/ const(::|$)/\1/; s/\([^()]*\)//; ta' |
    grep -vE '^(guard variable for .*|completed\.[0-9]+|__bss_start|_edata|_end|DW\.ref\..*|__dso_handle|__TMC_END__|\.(data|bss|tdata|tbss))$' |
    sed -E 's/^.* ([^ ]+)$/\1/; s/::N_[A-Z0-9]+::/::N_*::/' | sort -u
}
touch seen
for library in "$build"/libwisp.so "$build"/libwisp-runtime.so "$build"/libwisp-text.so; do
  [ -e "$library" ] || continue
  [ "$(objdump -t "$library" | grep -c ' O ')" -gt 0 ] || { fail "$(basename "$library") has no symbols: it is stripped"; continue; }
  variables "$library" >found
  comm -23 found named >new
  [ ! -s new ] || fail "$(basename "$library") can write to these, and tests/abi/state.txt does not say why: $(paste -sd ' ' new)"
  sort -u seen found -o seen
done
[ -s seen ] || fail "no variable was found: the libraries were not read"
# A build without XNNPACK, and other compilers, lack some.
if grep -q '^WISP_XNNPACK:.*=ON' "$build/CMakeCache.txt" && grep -q '^CMAKE_CXX_COMPILER:.*c++' "$build/CMakeCache.txt" && [ -e "$build/libwisp.so" ]; then
  comm -13 seen named >gone
  [ ! -s gone ] || fail "tests/abi/state.txt names these, and no library has them: $(paste -sd ' ' gone)"
fi

# A variable in which a program could leave something is noticed.
printf 'namespace wisp { int last_user; extern "C" int wisp_next() { return ++last_user; } }\n' >planted.cc
g++ -shared -fPIC planted.cc -o planted.so && variables planted.so | comm -23 - named | grep -qx 'wisp::last_user' ||
  fail "a planted variable is not seen: $(variables planted.so | head -3)"
finish
