#!/usr/bin/env bash
# Every function, field and constant of the public headers is explained, and Doxygen reads it without a warning.
#   tests/reference.sh     exits 77 if there is no Doxygen (tools/dev site installs it)
set -uo pipefail
cd "$(dirname "$0")/.."
command -v doxygen >/dev/null || { echo "not checked: there is no doxygen (tools/dev site installs it)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
read_headers() { tools/site/read_headers "$1" "$work/xml" >"$work/said" 2>&1; }

read_headers . || fail "the headers have what is not explained: $(head -n 20 "$work/said")"
for name in wisp_model_open wisp_model_open_memory wisp_plan_make wisp_text_open wisp::api::Model; do
  grep -qr ">$name<" "$work/xml" || fail "the reference lacks $name"
done

# A field and a function without an explanation are noticed.
mkdir -p "$work/tree/tools"
cp -r ports "$work/tree" && cp -r tools/site "$work/tree/tools"
unexplained() {  # NAME SED FILE
  sed -i "$2" "$work/tree/$3"
  read_headers "$work/tree" && fail "$1: nothing is said"
  grep -q "$1.*is not documented" "$work/said" || fail "$1 is not named: $(head -n 5 "$work/said")"
}
unexplained wisp_model_close 's:^\(WISP_API void wisp_model_close.*;\) /\*.*:\1:' ports/c/wisp.h
unexplained num_retired 's:^\( *uint32_t num_retired;\).*:\1:' ports/c/wisp_embed.h
unexplained ClassName 's:^\( *std..string_view ClassName.*}\) *//.*:\1:' ports/cpp/wisp.hpp

[ "$failures" -eq 0 ] && echo "all held" || { echo "$failures failures"; exit 1; }
