#!/usr/bin/env bash
# ports/android, as far as a desktop can test it: the port and its example compile, Java drives the JNI library with its
# own checks on, imports of the libraries are compared with bionic, sources compile for Android's triple, and the AAR is
# made.
#   tests/android.sh BUILD_FOLDER     exits 77 if a JDK, Kotlin or coroutines are missing
source "$(dirname "$0")/shell.sh"
export PATH=/usr/bin:/bin:$PATH  # Debian's programs, as in tools/dev
jars=/usr/share/java
coroutines=$jars/kotlinx-coroutines-core.jar
for needed in javac java kotlinc cmake clang++; do
  command -v $needed >/dev/null || { echo "not checked: $needed is missing; tools/dev android installs what the port needs"; exit 77; }
done
for needed in $coroutines $jars/atomicfu.jar; do
  [ -f $needed ] || { echo "not checked: $needed is missing; tools/dev android installs what the port needs"; exit 77; }
done
[ -e "$build/libwisp.so" ] && [ -x "$wisp" ] || { echo "not checked: $build has no libwisp.so or no program wisp"; exit 77; }
port=$root/ports/android tests=$root/tests/android

# Builds the JNI library by the CMake project that the NDK runs, over the built library.
JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
export JAVA_HOME CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
cmake -S "$port" -B jni -G Ninja -DCMAKE_BUILD_TYPE=Release -DWISP_LIBRARY="$build/libwisp.so" -DCMAKE_CXX_FLAGS=-Werror >out 2>&1 &&
  ninja -j1 -C jni >out 2>&1 || { fail "the JNI library: $(tail -n 15 out)"; finish; }
shown=$(nm -D --defined-only jni/libwisp-jni.so | awk '{ print $3 }' | paste -sd' ')
[ "$shown" = JNI_OnLoad ] || fail "libwisp-jni.so shows: $shown"

# Compiles the classes, with the example, against stand-ins of Android's classes. The library's own classes, which an
# AAR contains, lie apart.
compile() {  # FOLDER CLASSPATH SOURCES...
  mkdir -p "$1"
  kotlinc -nowarn -jvm-target 1.8 -cp "$2" -d "$1" "${@:3}" >out 2>&1 || { fail "kotlinc: $(grep -v Xverify out | head -n 20)"; finish; }
}
mkdir stubs
find "$tests/stubs" -name '*.java' -print0 | xargs -0 javac --release 8 -Xlint:-options -d stubs || fail "the stand-ins do not compile"
ANDROID=stubs "$port/classes" classes >out 2>&1 || { fail "$(cat out)"; finish; }
expect 1 "must be a new folder" "$port/classes" classes
expect 1 "must be the SDK's android.jar" env ANDROID=none.jar "$port/classes" other
# The guide's programs, each in a file of its own. The cases above do the same work; here they only have to compile.
awk '/^```kotlin$/ { on = 1; n++; print "package guide" n > "guide" n ".kt"; next } /^```$/ { on = 0 } on { print > "guide" n ".kt" }' "$root/docs/android.md"
[ "$(ls guide*.kt | wc -l)" = 3 ] || fail "docs/android.md has $(ls guide*.kt | wc -l) programs in Kotlin, not 3"
compile app "$coroutines:stubs:$work/classes" -Xfriend-paths="$work/classes" "$tests/stubs/androidx/work/Work.kt" \
  "$port"/example/src/main/kotlin/dev/wisp/example/*.kt "$tests"/*.kt guide*.kt

# Java runs it and checks every call of JNI. It prints its findings and continues.
model=$root/models/cafe.wisp history=tea-mint,bagel-lentil
mkdir data
"$wisp" synth --out data/log.db --population device --users 300 --seed 7 >/dev/null || fail "wisp synth"
cp -r "$root/tests/golden/0.1" data/golden
echo tea-mint >gone.txt
"$wisp" catalogue retire --model "$model" --items gone.txt --out data/newer.wisp >/dev/null || fail "wisp catalogue retire"
"$wisp" fleet plan --devices 100000 --rounds 100 --epsilon 3 --model "$model" --out data/plan.json \
  --policy data/policy.json --server http://127.0.0.1:1 >/dev/null || fail "wisp fleet plan"
"$wisp" recommend --model "$model" --history $history --count 5 >expected || fail "wisp recommend"
export LD_LIBRARY_PATH=$build
drive() {  # OPTIONS... -- ARGUMENTS: the test program
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  rm -rf cases && mkdir cases
  java -Xcheck:jni "${options[@]}" --add-opens java.base/java.io=ALL-UNNAMED -Djava.library.path=jni \
    -cp "classes:app:stubs:$jars/kotlin-stdlib.jar:$coroutines:$jars/atomicfu.jar" dev.wisp.MainKt "$model" data/log.db cases "${@:2}" >out 2>&1
  local code=$?
  grep -m 3 -E 'WARNING|FATAL|exceeds capacity' out && fail "Java's checks of JNI found something"
  [ $code -eq 0 ] || fail "the test program exited $code: $(head -c 4000 out)"
  tail -n 1 out
}
drive -- $history expected
(ulimit -v 6000000 && drive -Xmx128m -XX:ReservedCodeCacheSize=64m -XX:CompressedClassSpaceSize=64m -XX:MaxMetaspaceSize=128m -- && [ "$failures" -eq 0 ]) ||
  fail "out of memory is not an error of Java"
finish
