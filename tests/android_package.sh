#!/usr/bin/env bash
# The device package of ports/android, as far as it can be tested without an NDK: the AAR's layout, refused libraries,
# imports of our libraries compared with bionic, rules for R8, and sources compiled for Android's triple.
#   tests/android_package.sh BUILD_FOLDER     exits 77 if a compiler for 64-bit Arm or clang is missing
source "$(dirname "$0")/shell.sh"
export PATH=/usr/bin:/bin:$PATH PYTHONDONTWRITEBYTECODE=1
arm=aarch64-linux-gnu-gcc
for needed in $arm gcc clang++ python3; do
  command -v $needed >/dev/null || { echo "not checked: $needed is missing; tools/dev android installs what the port needs"; exit 77; }
done
[ -e "$build/libwisp.so" ] || { echo "not checked: $build has no libwisp.so"; exit 77; }
port=$root/ports/android
flags=(-shared -fPIC -nostdlib -Wl,-z,now,-z,relro,-z,noexecstack)
aligned=-Wl,-z,max-page-size=16384

# libraries DIR [FLAGS] makes small libraries that look like the NDK's, for both ABIs. FLAGS make libwisp.so wrong on
# purpose.
echo 'int getpid(void) { return 1; }' >libc.c
echo 'int getpid(void); int wisp_version(void) { return getpid(); }' >wisp.c
echo 'int getpid(void); int wisp_version(void); int JNI_OnLoad(void) { return wisp_version() + getpid(); }' >jni.c
libraries() {
  local abi cc
  for abi in arm64-v8a x86_64; do
    mkdir -p "$1/$abi" "system/$abi"
    cc=gcc
    [ $abi = x86_64 ] || cc=$arm
    $cc "${flags[@]}" -Wl,-soname,libc.so libc.c -o system/$abi/libc.so
    $cc "${flags[@]}" $aligned -Wl,-soname,libwisp.so "${@:2}" wisp.c system/$abi/libc.so -o "$1/$abi/libwisp.so"
    $cc "${flags[@]}" $aligned -Wl,-soname,libwisp-jni.so jni.c "$1/$abi/libwisp.so" system/$abi/libc.so -o "$1/$abi/libwisp-jni.so"
  done
  echo "licences" >"$1/NOTICE"
  echo "versions" >"$1/wisp.spdx.json"
}
mkdir -p classes/dev/wisp classes/META-INF
for class in Native 'Native$Progress' Recommender SealedAnchor KeyStoreAnchor; do echo "$class" >"classes/dev/wisp/$class.class"; done
echo module >classes/META-INF/main.kotlin_module
aar() { python3 "$port/aar" "$@" --classes classes; }
refuses() {  # WORD DIR: an AAR of these libraries is not made
  rm -f bad.aar
  expect 1 "$1" aar bad.aar --libraries "$2"
  [ ! -e bad.aar ] || fail "an AAR was made of libraries where '$1'"
}

# The layout is right, and the bytes are the same twice, also at another time.
libraries good
aar one.aar --libraries good || fail "no AAR of good libraries"
touch -d 2001-01-01 good/*/*.so classes/dev/wisp/*
aar two.aar --libraries good && cmp one.aar two.aar || fail "two AARs of the same files differ"
python3 - one.aar >seen <<'END'
import io, json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
print(*archive.namelist(), sep="\n")
print(*zipfile.ZipFile(io.BytesIO(archive.read("classes.jar"))).namelist(), sep="\n")
print(archive.read("prefab/modules/libwisp/libs/android.x86_64/abi.json").decode().split())
print(json.loads(archive.read("prefab/prefab.json"))["version"])
END
version=$(sed -n 's/^project(wisp VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
cat >wanted <<END
AndroidManifest.xml
R.txt
classes.jar
jni/arm64-v8a/libwisp-jni.so
jni/arm64-v8a/libwisp.so
jni/x86_64/libwisp-jni.so
jni/x86_64/libwisp.so
prefab/modules/libwisp/include/wisp/wisp.h
prefab/modules/libwisp/include/wisp/wisp.hpp
prefab/modules/libwisp/include/wisp/wisp_deployment.h
prefab/modules/libwisp/include/wisp/wisp_embed.h
prefab/modules/libwisp/include/wisp/wisp_fleet.h
prefab/modules/libwisp/include/wisp/wisp_text.h
prefab/modules/libwisp/libs/android.arm64-v8a/abi.json
prefab/modules/libwisp/libs/android.arm64-v8a/libwisp.so
prefab/modules/libwisp/libs/android.x86_64/abi.json
prefab/modules/libwisp/libs/android.x86_64/libwisp.so
prefab/modules/libwisp/module.json
prefab/prefab.json
proguard.txt
META-INF/main.kotlin_module
META-INF/wisp/LICENSE
META-INF/wisp/NOTICE
META-INF/wisp/wisp.spdx.json
dev/wisp/KeyStoreAnchor.class
dev/wisp/Native\$Progress.class
dev/wisp/Native.class
dev/wisp/Recommender.class
dev/wisp/SealedAnchor.class
['{', '"abi":', '"x86_64",', '"api":', '28,', '"ndk":', '28,', '"static":', 'false,', '"stl":', '"none"', '}']
$version
END
diff wanted seen || fail "the AAR holds other things"

# Libraries that are not for Android are refused, with the reason.
expect 1 "needs an NDK" aar bad.aar
expect 1 "android.toolchain.cmake" env ANDROID_NDK_HOME=/nowhere "$port/libraries" "$work/none"
libraries small -Wl,-z,max-page-size=4096
refuses "aligned to 4096" small
libraries showing -Dwisp_version=other_version
refuses "shows the symbol other_version" showing
libraries named -Wl,-soname,libwisp.so.0
refuses "calls itself 'libwisp.so.0'" named
libraries glibc -Wl,--no-as-needed,-l:libc.so.6
refuses "needs libc.so.6" glibc
libraries searching -Wl,-rpath,/somewhere
refuses "looks for libraries in /somewhere" searching
libraries stack -Wl,-z,execstack
refuses "stack can be run" stack
libraries tables -Wl,-z,norelro
refuses "tables stay writable" tables
cp -r good swapped
cp good/x86_64/libwisp.so swapped/arm64-v8a/
refuses "it is for x86-64, and arm64-v8a is arm64" swapped
cp -r good desktop
cp -L "$build/libwisp.so" desktop/x86_64/libwisp.so
refuses "needs libc.so.6" desktop
cp -r good text
echo text >text/x86_64/libwisp.so
refuses "no shared library in ELF" text
cp -r good half
head -c 600 good/x86_64/libwisp-jni.so >half/x86_64/libwisp-jni.so
refuses "libwisp-jni.so' is no shared library in ELF: it is cut short" half
rm half/x86_64/libwisp-jni.so
refuses "libwisp-jni.so' is missing" half
rm half/NOTICE && cp good/x86_64/libwisp-jni.so half/x86_64/
refuses "NOTICE' is missing" half
mkdir -p classes/androidx && echo stub >classes/androidx/Work.class
refuses "is not of the library" good
rm -r classes/androidx
rm good/wisp.spdx.json
refuses "wisp.spdx.json' is missing" good

# Symbols that our libraries import are in bionic, at the level that apps must have. A newer or an unknown symbol is
# named.
expect 0 "" python3 "$port/imports.py" "$build/libwisp.so"
[ ! -s out ] || fail "$(cat out)"
echo 'int timespec_get(void); int quick_exit_of_mine(void); int f(void) { return timespec_get() + quick_exit_of_mine(); }' >new.c
gcc "${flags[@]}" new.c -o new.so
python3 "$port/imports.py" new.so >out && fail "imports.py takes what bionic has not"
grep -q "timespec_get is in bionic from level 29 on, and minSdk is 28" out || fail "no word of timespec_get"
grep -q "quick_exit_of_mine is not in bionic.txt" out || fail "no word of quick_exit_of_mine"

# R8 keeps every class that the JNI layer names, and the example asks for the library's level.
rules=$port/consumer-rules.pro
named=$( (grep -ohE 'dev/wisp/[A-Za-z$]+' "$port"/jni/*.cc | sed 's:dev/wisp/::'
  grep -ohE 'Choice<[a-z_]+>\("[a-zA-Z]+", "[A-Za-z]+"' "$port"/jni/*.cc | sed 's/.*"\(.*\)"/\1/') | sort -u)
[ "$(echo "$named" | wc -l)" -gt 15 ] || fail "the JNI layer names only: $named"
while read -r class; do
  grep -qE "dev\.wisp\.${class//\$/\\\$}[ ,]" "$rules" || fail "consumer-rules.pro does not keep dev.wisp.$class, which the JNI layer names"
done <<<"$named"
levels=$(sed -n 's/.*minSdk = //p' "$port/build.gradle.kts" "$port/example/build.gradle.kts" | sort -u)
[ "$(echo "$levels" | wc -l)" = 1 ] || fail "minSdk is $levels"

# An app includes the Gradle files with its own plugin: they name no version of it, only the settings do. They use no
# plugin for Kotlin, which the Android Gradle plugin 9 refuses, and no folder of the app.
builds=("$port/build.gradle.kts" "$port/example/build.gradle.kts")
fits_apps() { ! grep -nE 'kotlin\("android"\)|kotlinOptions|rootDir|rootProject|id\("com\.android\.[a-z]+"\) version' "$@"; }
fits_apps "${builds[@]}" || fail "these lines keep an app from including the project"
for wrong in 'kotlin("android")' 'kotlinOptions { }' 'rootDir.resolve("a")' 'id("com.android.library") version "9"'; do
  echo "$wrong" >wrong.kts
  fits_apps wrong.kts >/dev/null && fail "a build file with '$wrong' is not seen"
done
# The plugin finds a prefab module's library by the name of its CMake target, as CMake's file API gives it.
module=$(sed -n 's/.*create("\([a-z]*\)") { headers.*/\1/p' "$port/build.gradle.kts")
mkdir -p api/.cmake/api/v1/query && touch api/.cmake/api/v1/query/codemodel-v2
cmake -S "$root" -B api -G Ninja -DWISP_TESTS=OFF -DWISP_TOOLS=OFF >out 2>&1 || fail "cmake: $(tail -n 5 out)"
python3 - "$module" api/.cmake/api/v1/reply/target-*.json <<'END' || fail "no CMake target '$module' makes libwisp.so: prefab's module would have no library"
import json, sys
made = {t["name"]: t.get("nameOnDisk", "") for t in map(json.load, map(open, sys.argv[2:]))}
sys.exit(0 if made.get(sys.argv[1], "").startswith("libwisp.so") else 1)
END
grep -q "^prefab/modules/$module/" wanted || fail "ports/android/aar calls prefab's module otherwise than '$module'"

# The example's files go into no backup and to no other device.
example=$port/example/src/main
rules=$example/res/xml/$(sed -n 's:.*dataExtractionRules="@xml/\([a-z_]*\)".*:\1:p' "$example/AndroidManifest.xml").xml
grep -q 'allowBackup="false"' "$example/AndroidManifest.xml" || fail "the example's files go into backups"
python3 - "$rules" <<'END' || fail "'$rules' does not exclude all from backups and transfers"
import sys, xml.etree.ElementTree as tree
wanted = {(domain, ".") for domain in ("root", "file", "database", "sharedpref", "external")}
found = {part.tag: {(e.get("domain"), e.get("path")) for e in part if e.tag == "exclude"} for part in tree.parse(sys.argv[1]).getroot()}
sys.exit(0 if found == {"cloud-backup": wanted, "device-transfer": wanted} else 1)
END

# Compiles for Android's triple, with glibc's headers and LLVM's C++ library, which would show code that is only for
# other systems. Bionic's headers may still lack functions that these have; bionic.txt covers that.
libcxx=$(ls -d /usr/lib/llvm-*/include/c++/v1 2>/dev/null | tail -n 1)
resource=$(clang++ -print-resource-dir)/include
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)" 2>/dev/null)")" 2>/dev/null)/include
if [ -z "$libcxx" ] || [ ! -f "$jdk/jni.h" ]; then
  echo "not compiled for Android's triple: LLVM's C++ library (libc++-dev) or a JDK's jni.h is missing"
else
  for source in "$port"/jni/*.cc "$root"/runtime/privacy/{noise,ledger}/*.cc "$root"/kernels/{host_memory,pages}.cc "$root"/runtime/core/*.cc; do
    clang++ --target=aarch64-linux-android28 -std=c++20 -fsyntax-only -Wall -Wextra -Wno-missing-field-initializers -Werror -nostdinc -isystem "$libcxx" -isystem "$resource" \
      -isystem /usr/aarch64-linux-gnu/include -isystem "$jdk" -isystem "$jdk/linux" -I"$root" -I"$build/include" -idirafter /usr/include \
      "$source" >out 2>&1 || fail "for Android: $(head -n 5 out)"
  done
fi
finish
