#!/usr/bin/env bash
# ports/apple, as far as it can be tested without a Mac: names, fields and arguments that the Swift sources use, the
# module map, the layout of structs for Apple's processors, the privacy manifest against the library's calls, the
# branches of the sources for Apple's systems, and the package itself. If there is `swift`, it compiles the sources for
# Swift 6, warnings as errors, and runs their tests.
#   tests/apple.sh BUILD_FOLDER         needs no other library's sources; Swift's tests run over libwisp.so
#   tests/apple.sh BUILD_FOLDER --all   makes the package, compiles it with clang and libc++, and runs what it links;
#                                       Swift builds and tests it
. "$(dirname "$0")/shell.sh"
export PATH=/usr/bin:$PATH  # first Debian's Python, which has Debian's pycparser
has_swift() { command -v swift >/dev/null; }
has_swift || echo "Swift did not run: there is no swift in PATH"
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
for program in clang clang++; do
  command -v $program >/dev/null || { echo "skipped: $program is missing (Debian: clang)"; exit 77; }
done
python3 -c 'import pycparser' 2>/dev/null || { echo "skipped: pycparser is missing (Debian: python3-pycparser)"; exit 77; }
port=$root/ports/apple here=$root/tests/apple

# The headers have everything that Swift uses of them.
python3 "$root/tests/abi/interface.py" program "$root/ports/c" >layout.c && cc -std=c99 -I"$root/ports/c" layout.c -o layout &&
  ./layout >layout.txt || fail "the headers were not read"
awk '/^```swift$/ { on = 1; file = "page_" ++n ".swift"; next } /^```$/ { on = 0 } on { print >file }' \
  "$root/docs/apple.md" "$root/docs/guide.md"
mapfile -t swift < <(find "$port" "$work"/page_*.swift -name '*.swift' ! -name Package.swift)
expect 0 "" python3 "$here/swift.py" layout.txt "${swift[@]}"
[ "${#swift[@]}" -ge 14 ] || fail "only ${#swift[@]} Swift files were found"
# planted NAME SENTENCE SED checks that a fault in a Swift source is noticed.
planted() {
  cp "$port"/Sources/Wisp/{Personaliser,Structs}.swift . && sed -i "$3" Personaliser.swift Structs.swift
  cmp -s Personaliser.swift "$port/Sources/Wisp/Personaliser.swift" && cmp -s Structs.swift "$port/Sources/Wisp/Structs.swift" &&
    fail "$1: nothing was changed"
  python3 "$here/swift.py" layout.txt Personaliser.swift Structs.swift >out && fail "$1 is not seen"
  grep -q "$2" out || fail "$1: it is not said that '$2': $(cat out)"
}
planted "a field that is not there" "has no field num_records" 's/options\.num_records_public/options.num_records/'
planted "a function that is not there" "wisp_personalize is not in the headers" 's/wisp_personalise(/wisp_personalize(/'
planted "an argument too few" "has 3 arguments, 2 are given" 's/wisp_personalise(&options, /wisp_personalise(/'
planted "a struct without a size" "sized() makes wisp_personalise_result" '/^extension wisp_personalise_result/d'

# The policy of the Swift tests is what the program writes.
expect 0 "" "$wisp" fleet plan --devices 100000 --rounds 100 --epsilon 3 --model "$root/models/cafe.wisp" --out plan.json \
  --policy policy.json --server https://fleet.example.org
cmp policy.json "$port/Tests/WispTests/policy.json" || fail "the policy of ports/apple/Tests is another"

# The one header as a module, in C11 and for Apple's processors, where structs have the layout of tests/abi/lp64.txt.
"$root/tools/amalgamate/amalgamate" made >out 2>err || { fail "the amalgamation was not made: $(head -c 300 err)"; finish; }
mkdir module && cp made/wisp.h "$port/Sources/CWisp/include/module.modulemap" module
awk '$1 == "struct" { printf "_Static_assert(sizeof(%s) == %d && _Alignof(%s) == %d, \"%s\");\n", $2, $3, $2, $6, $2 }
     $1 == "field" { split($2, name, "."); printf "_Static_assert(offsetof(%s, %s) == %d, \"%s\");\n", name[1], name[2], $4, $2 }
     $1 == "constant" { printf "_Static_assert(%s == %d, \"%s\");\n", $2, $3, $2 }' "$root/tests/abi/lp64.txt" >asserts
[ "$(wc -l <asserts)" -gt 300 ] || fail "the record of layouts was not read"
{ echo '#include <stddef.h>'; echo '@import CWisp;'; cat asserts; echo 'wisp_code (*const opens)(const char*, wisp_model**, wisp_error*) = wisp_model_open;'; } >module.m
compiles_module() {  # TARGET
  clang --target="$1" -ffreestanding -std=c11 -Wall -Wextra -Wpedantic -Werror -fmodules -fmodules-cache-path="$work/cache" \
    -fmodule-map-file=module/module.modulemap -fsyntax-only module.m 2>err
}
for target in arm64-apple-ios16.0 arm64-apple-ios16.0-simulator arm64-apple-macos13.0 x86_64-apple-macos13.0 x86_64-linux-gnu; do
  compiles_module $target || fail "the module CWisp for $target: $(head -c 600 err)"
done
sed -i '0,/sizeof(wisp_device) == /s//sizeof(wisp_device) == 1/' module.m
compiles_module arm64-apple-ios16.0 && fail "a struct of another size is not seen"

# A newer clang reads module maps in C++20: a header that is not textual is then a module, which SwiftPM does not build.
for map in "$port"/Sources/C{Sodium,Utf8proc}/include/module.modulemap; do
  grep -E 'header "' "$map" | grep -qv 'textual header' && fail "${map#"$root/"}: CWisp includes this header, so it must be textual"
done

# Swift's compiler takes the package, its example and the page, over stand-ins for parts that only Apple's systems
# have.
swift_port() { swiftc -swift-version 6 -warnings-as-errors -I module -I . "$@" >err 2>&1; }
wisp_module() { swift_port -emit-module -enable-testing -module-name Wisp -o Wisp.swiftmodule "$@"/*.swift; }
swift_tests() {  # FOLDER OPTION...
  swift test -j 1 --package-path "$1" -Xswiftc -warnings-as-errors "${@:2}" >out 2>&1 || fail "swift test: $(tail -n 30 out)"
  grep -q 'Executed [1-9][0-9]* tests, with 0 failures' out || fail "swift test ran no test: $(tail -n 30 out)"
}
if has_swift; then
  swift_port -parse-as-library -emit-module -module-name Security -o Security.swiftmodule "$here/stubs/Security.swift" ||
    fail "the stand-in for Security: $(head -n 20 err)"
  wisp_module "$port/Sources/Wisp" || fail "the package in Swift: $(head -n 20 err)"
  swift_port -parse-as-library -emit-module -module-name BackgroundTasks -o BackgroundTasks.swiftmodule "$here/stubs/BackgroundTasks.swift" ||
    fail "the stand-in for BackgroundTasks: $(head -n 20 err)"
  sed '/^#if os(iOS)/d; /^#endif/d' "$port/Examples/NightlyLearning.swift" >example.swift
  swift_port -typecheck -parse-as-library example.swift "$here/stubs/OnApple.swift" || fail "the example in Swift: $(head -n 20 err)"
  for page in page_*.swift; do
    cp "$page" main.swift
    swift_port -typecheck main.swift "$here/stubs/OnApple.swift" || fail "a program of docs/apple.md in Swift: $(head -n 20 err)"
  done
  mkdir sources && cp "$port"/Sources/Wisp/*.swift sources && sed -i '/^extension wisp_budget/d' sources/Structs.swift
  wisp_module sources && fail "Swift takes a struct that does not conform"

  # The tests over this build's library, which takes seconds.
  if ! grep -qE '^WISP_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    mkdir -p over/Sources && cp -r module over/Sources/CWisp && cp -r "$port/Sources/Wisp" over/Sources && cp -r "$port/Tests" over &&
      cp "$root/models/cafe.wisp" over/Tests/WispTests && cp -r "$root/tests/golden/0.1" over/Tests/WispTests/golden
    { sed '/^  targets: \[/q' "$port/Package.swift" && echo '    .systemLibrary(name: "CWisp"),' &&
      sed -n '/name: "Wisp", dependencies/,/^  \]/p' "$port/Package.swift" && echo ')'; } >over/Package.swift
    swift_tests over -Xlinker "-L$build" -Xlinker -lwisp -Xlinker -rpath -Xlinker "$build"
  fi
fi

# In a unit with that pragma the compiler makes no fused operations of its own, not even in templates.
printf '%s\ntemplate <class T> T f(T a, T b, T c) { return a * b + c; }\nfloat g(float a, float b, float c) { return f(a, b, c); }\n' \
  "$(grep '^#pragma' "$port/Sources/CWisp/unit.cc")" >contract.cc
clang++ --target=arm64-apple-ios16.0 -Wno-stdlibcxx-not-found -O2 -S contract.cc -o with.s && sed 1d contract.cc >without.cc &&
  clang++ --target=arm64-apple-ios16.0 -Wno-stdlibcxx-not-found -O2 -ffp-contract=on -S without.cc -o without.s || fail "the pragma was not tried"
grep -q fmadd with.s && fail "unit.cc does not keep the compiler from fusing products and sums"
grep -q fmadd without.s || fail "without the pragma nothing is fused: this test shows nothing"

# Code that differs on Apple's systems compiles over stand-ins for their headers, which are not here.
for source in runtime/core/platform_posix.cc runtime/core/reason.cc kernels/pages.cc; do
  clang++ -std=c++20 -D__APPLE__ -Wall -Wextra -Wno-missing-field-initializers -Werror -DWISP_VERSION='"0"' -I"$here/stubs" \
    -include apple.h -I"$root" -c "$root/$source" -o apple.o 2>err || fail "$source for Apple's systems: $(head -c 600 err)"
  nm -u apple.o | grep -E ' (getentropy|getrandom|posix_fallocate|fallocate|renameat2|fdatasync|sync_file_range|memfd_create)$' &&
    fail "$source calls these for Apple's systems, which do not have them, or refuse apps that call them"
done

# The privacy manifest is a property list, and agrees with the library's symbols.
cat >manifest.py <<'PYTHON'
import plistlib, re, subprocess, sys
manifest = plistlib.load(open(sys.argv[1], "rb"))
assert set(manifest) == {"NSPrivacyTracking", "NSPrivacyTrackingDomains", "NSPrivacyCollectedDataTypes", "NSPrivacyAccessedAPITypes"}
assert manifest["NSPrivacyTracking"] is False and not manifest["NSPrivacyTrackingDomains"] and not manifest["NSPrivacyCollectedDataTypes"]
declared = {t["NSPrivacyAccessedAPIType"]: t["NSPrivacyAccessedAPITypeReasons"] for t in manifest["NSPrivacyAccessedAPITypes"]}
# Apple's list of functions that need a reason, and the reasons that it allows, as of 2025.
needs = {"FileTimestamp": ({"stat", "fstat", "lstat", "fstatat", "getattrlist", "fgetattrlist", "getattrlistbulk", "getattrlistat"},
                           {"DDA9.1", "C617.1", "3B52.1", "0A2A.1"}),
         "DiskSpace": ({"statfs", "statvfs", "fstatfs", "fstatvfs"}, {"85F4.1", "E174.1", "7D9E.1", "B728.1"}),
         "SystemBootTime": ({"mach_absolute_time"}, {"35F9.1", "8FFB.1", "3D61.1"})}
called = set()
for library in sys.argv[2:]:
    for line in subprocess.run(["nm", "-u", library], capture_output=True, text=True).stdout.splitlines():
        called.add(re.sub(r"(64)?(@.*)?$", "", line.split()[-1]))
assert len(called) > 50, "the libraries were not read"
for name, (functions, reasons) in needs.items():
    category = "NSPrivacyAccessedAPICategory" + name
    used = sorted(called & functions)
    assert bool(used) == (category in declared), f"{name}: called are {used}, declared is {declared.get(category)}"
    assert set(declared.get(category, [])) <= reasons, f"{name}: {declared[category]}"
assert all(c[len("NSPrivacyAccessedAPICategory"):] in needs for c in declared), declared
PYTHON
manifest=$port/Sources/Wisp/PrivacyInfo.xcprivacy
libraries=("$build/libwisp.so")
holds_manifest() { python3 manifest.py "$1" "${libraries[@]}" >out 2>err; }
holds_manifest "$manifest" || fail "PrivacyInfo.xcprivacy: $(tail -n 1 err)"
sed 's/CategoryFileTimestamp/CategoryDiskSpace/' "$manifest" >wrong.xcprivacy
holds_manifest wrong.xcprivacy && fail "a manifest that declares another category is not seen"
grep -q 'kSecUseDataProtectionKeychain as String: true' "$port/Sources/Wisp/KeychainAnchor.swift" ||
  fail "on macOS the anchor goes to the login keychain, which is copied to other devices"
# Swift's own sources use none of these either.
grep -nE '\b(UserDefaults|systemUptime|volumeAvailableCapacity|activeInputModes|creationDate|contentModificationDate)' "${swift[@]}" &&
  fail "these need a reason in the privacy manifest"

expect 1 "runs on a Mac with Xcode" "$port/xcframework" package frameworks

# Only a package that the script made is replaced. A refusal comes before it asks for sources, and changes nothing.
stays() {  # FOLDER SENTENCE, of a folder that has a file
  expect 1 "$2" "$port/package" "$1" no_sources
  [ -f "$1/file" ] || fail "ports/apple/package removed '$1', which it did not make"
}
mkdir foreign cloned && touch foreign/file foreign/Package.swift cloned/file cloned/.git
stays foreign "has files, and none that says that ports/apple/package made it"
echo ports/apple/package | tee foreign/.made-by >cloned/.made-by
stays cloned "is a checkout of git"
mkdir -p outer/ports/apple outer/tools && cp "$port/package" outer/ports/apple && cp "$root/tools/made_folder.sh" outer/tools
cp foreign/.made-by outer && touch outer/file file
expect 1 "contains the sources" outer/ports/apple/package outer no_sources
[ -f outer/file ] || fail "ports/apple/package removed the checkout that it lies in"
expect 1 "is no folder" "$port/package" file no_sources

[ "${2:-}" = --all ] || { finish; exit; }

# The package is made twice, with equal bytes. Listed files are there, and nothing needs a flag.
sources=${WISP_BUNDLE:-$root/build/bundle/sources}
"$root/tools/bundle/sources" "$sources" >out 2>&1 || { echo "skipped: the libraries' sources cannot be had: $(tail -n 1 out)"; exit 77; }
expect 0 "" "$port/package" package "$sources"
expect 0 "" "$port/package" again "$sources"
diff -r package again >out || fail "made twice, the packages differ: $(head -c 300 out)"
grep -rlF -e "$root" -e "$work" package && fail "these files name folders of this machine"
[ "$(find package -name sodium.h | wc -l)" = 1 ] && [ "$(find package -name '*.S' | wc -l)" = 0 ] || fail "libsodium is not in the package as it should be"
touch again/old
expect 0 "" "$port/package" again "$sources"
[ ! -e again/old ] || fail "a package that the script made is not replaced"
expect 0 "" python3 "$here/package.py" check package
listed() {  # NAME SENTENCE SED
  sed "$3" "$port/Package.swift" >again/Package.swift
  python3 "$here/package.py" check again >out && fail "$1 is not seen"
  grep -q "$2" out || fail "$1: $(cat out)"
}
listed "a flag" "unsafeFlags occurs" 's/\.define("WISP_TRAINING")/.unsafeFlags(["-O3"])/'
listed "a file that is not there" "'utf8.c' is listed and is not there" 's/utf8proc_data\.c/utf8.c/'
listed "a source in no target" "CSodium is no target" 's/name: "CSodium"/name: "CNatrium"/'

if has_swift; then swift_tests package; fi

# Compiled like SwiftPM does, with Apple's C++ library, and linked with the system's SQLite. Without optimisation, as by
# `swift test`.
echo '#include <version>' | clang++ -std=c++20 -stdlib=libc++ -x c++ -fsyntax-only - 2>/dev/null ||
  { echo "without libc++: it is not installed (Debian: libc++-dev libc++abi-dev)"; finish; exit; }
objects=()
for target in CSodium CUtf8proc CWisp; do
  mapfile -t flags < <(python3 "$here/package.py" flags package $target)
  while read -r source; do
    object=$target-${#objects[@]}.o compiler=(clang -w)
    [[ $source == *.cc ]] && compiler=(clang++ -stdlib=libc++ -Werror)
    "${compiler[@]}" -O0 "${flags[@]}" -c "$source" -o "$object" 2>err || fail "$target, ${source#package/}: $(head -c 600 err)"
    objects+=("$object")
  done < <(python3 "$here/package.py" sources package $target)
done
libraries=("${objects[@]}")
holds_manifest "$manifest" || fail "PrivacyInfo.xcprivacy, of what the package compiles: $(tail -n 1 err)"

# The README's program and the consumer of tests/abi, built from these objects, recommend what the library recommends.
mkdir -p include/wisp && cp package/Sources/CWisp/include/wisp.h include/wisp
for header in wisp_embed.h wisp_deployment.h wisp_fleet.h wisp_text.h; do echo '#include "wisp.h"' >"include/wisp/$header"; done
clang -std=c11 -Iinclude -c "$root/tests/abi/consumer.c" -o consumer.o &&
  clang++ -stdlib=libc++ consumer.o "${objects[@]}" -pthread -lsqlite3 -o consumer 2>err || fail "linked: $(head -c 600 err)"
cc -I"$build/include" "$root/tests/abi/consumer.c" -o wanted -L"$build" -lwisp -Wl,-rpath,"$build" ||
  fail "the library's consumer is not built"
expect 0 "" "$wisp" synth --out log.db --population device --users 100 --seed 7
for app in wanted consumer; do
  expect 0 "" ./$app "$root/models/cafe.wisp" "$work/log.db" "$work/$app.ledger" "$work/$app.wisp"
  mv out "$app.txt"
done
[ "$(wc -l <wanted.txt)" = 6 ] && cmp -s wanted.txt consumer.txt || fail "the package recommends otherwise: $(diff wanted.txt consumer.txt | head -4)"

finish
