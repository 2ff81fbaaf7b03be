#!/usr/bin/env bash
# The port to WebAssembly: built, compared with the native library, and its page used as a person would, also killed in
# the middle.
#   tests/wasm.sh BUILD_FOLDER     exits 77 if Emscripten or a browser is missing; WISP_SCREENSHOTS=DIR keeps pictures
# of the page
. "$(dirname "$0")/shell.sh"
. "$root/tests/cpp_fixtures.sh"
for program in emcmake esbuild node chromium chromedriver openssl; do
  command -v $program >/dev/null || { echo "skipped: $program is missing; tools/dev wasm installs what the port needs"; exit 77; }
done
python3 -c 'import selenium' 2>/dev/null || { echo "skipped: python3-selenium is missing; tools/dev wasm installs what the port needs"; exit 77; }
set -e
out=$(dirname "$build")/wasm
"$root/ports/wasm/build" "$out"
"$root/ports/wasm/demo/build" "$out" "$wisp"
python3 "$root/tests/wasm/sizes.py" "$out/package"
python3 "$root/tests/wasm/shapes.py" "$out/package" "$root/models/cafe.wisp"
cpp_models
[ "$failures" -eq 0 ]
python3 "$root/tests/wasm/text.py" "$out/package" "$wisp" "$work"
python3 "$root/tests/wasm/device.py" "$out/demo" "$wisp" "$root/models/cafe.wisp"
python3 "$root/tests/wasm/golden.py" "$out/demo"
python3 "$root/tests/wasm/page.py" "$out/demo" "$wisp" "$root/models/cafe.wisp"
python3 "$root/tests/wasm/fleet.py" "$out/demo" "$wisp" "$root/models/cafe.wisp"
