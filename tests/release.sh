#!/usr/bin/env bash
# The files of a release (tools/release): their contents, an app that is built with them, and equal bytes when they are
# made twice.
#   tests/release.sh BUILD_FOLDER          source archive, amalgamation, and Debian's packages out of that build
#   tests/release.sh BUILD_FOLDER --all    everything that can be made here, built twice in two folders
# The commit is tested: uncommitted changes are left out, except for those of tools/release itself.
. "$(dirname "$0")/shell.sh"
grep -q '^CMAKE_SYSTEM_NAME' "$build/CMakeCache.txt" && exit 77  # built for another processor
export PATH=/usr/bin:/bin:$PATH
git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "not checked: $root is no checkout of git"; exit 77; }
for program in dpkg-deb dpkg-shlibdeps; do
  command -v $program >/dev/null || { echo "not checked: $program is missing (Debian: dpkg-dev)"; exit 77; }
done
release=$root/tools/release/release
version=$(sed -n 's/^project(wisp VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")

if [ "${2:-}" = --all ]; then
  "$release" --allow-dirty --check --out made >out 2>err || fail "made twice: $(grep -v '^==' err | head -n 20) $(head -n 30 out)"
  cat out
else
  "$release" --allow-dirty --check --only source,amalgamation,deb --build "$build" --out made >out 2>err ||
    fail "made twice: $(grep -v '^==' err | head -c 900) $(head -n 20 out)"
  grep -q 'equal bytes' out || fail "nothing says that the bytes are equal: $(tail -n 3 out)"
  grep -E '^not made|made twice' out | sort -u
fi
[ -s made/SHA256SUMS ] || { fail "there is no SHA256SUMS"; finish; }
(cd made && sha256sum --quiet --strict -c SHA256SUMS) >err 2>&1 || fail "SHA256SUMS: $(head -c 300 err)"
[ "$(wc -l <made/SHA256SUMS)" = "$(($(ls made | wc -l) - 1))" ] || fail "SHA256SUMS names other files than there are: $(ls made)"

# The sources are the commit's, and owned by nobody.
source_archive=made/wisp-$version-source.tar.gz
tar -tzf $source_archive | grep -v '/$' | sort >listed
git -C "$root" ls-tree -r --name-only HEAD | sed "s:^:wisp-$version/:" | sort | diff - listed >err || fail "the source archive: $(head -n 5 err)"
[ "$(gzip -dc $source_archive | git get-tar-commit-id)" = "$(git -C "$root" rev-parse HEAD)" ] || fail "the source archive does not name its commit"
for archive in made/*.tar.gz; do
  tar -tvzf "$archive" | awk '$2 != "root/root" && $2 != "0/0" { print; exit }' | grep . && fail "$archive has files of an owner"
  tar -tvzf "$archive" | grep -vE '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) ' | grep . && fail "$archive has files of other modes"
done
tar -xzf "made/wisp-$version-amalgamation.tar.gz"
[ "$(ls "wisp-$version-amalgamation" | paste -sd' ')" = "LICENSE NOTICE.md wisp.cc wisp.h wisp.hpp wisp.spdx.json" ] ||
  fail "the amalgamation has $(ls "wisp-$version-amalgamation" | paste -sd' ')"

# A project takes the archive by FetchContent, and refuses other bytes.
mkdir embed && cp "$root"/tests/consumer/{embed/CMakeLists.txt,app.c} embed
fetch() { cmake -S embed -B fetched -G Ninja -DARCHIVE="$work/$source_archive" -DSHA256="$1" -DCOMPONENT=runtime >out 2>&1; }
fetch "$(sed -n 's/ .*-source\.tar\.gz$//p' made/SHA256SUMS)" && ninja -C fetched CMakeFiles/app.dir/app.c.o >out 2>&1 ||
  fail "by FetchContent: $(tail -n 15 out)"
rm -rf fetched
fetch "$(printf '0%.0s' {1..64})" && fail "FetchContent takes an archive of another checksum"

# Debian's packages: their statements, lintian's output, and an app that is built with their contents.
said() { dpkg-deb -f "made/$1_$version-1_$(dpkg --print-architecture).deb" "$2"; }
packages="libwisp-runtime0 libwisp-text0 libwisp0 libwisp-dev wisp-tools"
for package in $packages; do
  dpkg-deb -x "made/${package}_$version-1_$(dpkg --print-architecture).deb" installed || fail "$package is not unpacked"
  [ "$(said "$package" Version)" = "$version-1" ] || fail "$package is of version $(said "$package" Version)"
  for notice in 'Apache License' 'compiled in, from libhwy-dev' 'Redistribution and use in source and binary forms'; do
    grep -q "$notice" "installed/usr/share/doc/$package/copyright" || fail "$package has no notice with '$notice'"
  done
done
# Each says what it consists of, with the versions that are installed here.
spdx() {  # FILE LIBRARY RELATION
  python3 - "$@" "$(dpkg-query -W -f='${source:Version}' "$4")" <<'END' || fail "$1 does not say that it $3 $2 of Debian's version"
import json, sys
said = json.load(open(sys.argv[1]))
found = {p["SPDXID"]: p for p in said["packages"]}
related = {(r["relationshipType"], found[r["relatedSpdxElement"]]["name"]) for r in said["relationships"] if r["relatedSpdxElement"] in found}
versions = {p["name"]: p["versionInfo"] for p in said["packages"]}
sys.exit(not (said["spdxVersion"] == "SPDX-2.3" and (sys.argv[3], sys.argv[2]) in related and versions[sys.argv[2]] == sys.argv[5]))
END
}
for package in $packages; do spdx "installed/usr/share/doc/$package/$package.spdx.json" highway CONTAINS libhwy-dev; done
spdx installed/usr/share/doc/libwisp0/libwisp0.spdx.json libsodium DEPENDS_ON libsodium-dev
spdx "wisp-$version-amalgamation/wisp.spdx.json" xxhash CONTAINS libxxhash-dev
[ "$(ls made/*.deb | wc -l)" = 5 ] || fail "there are other packages: $(ls made/*.deb)"
for need in libc6 libstdc++6; do
  for package in libwisp-runtime0 libwisp-text0 libwisp0 wisp-tools; do
    [[ "$(said $package Depends)" =~ (^|, )"$need " ]] || fail "$package does not depend on $need: $(said $package Depends)"
  done
done
for need in libsodium23 libsqlite3-0 libutf8proc2; do
  [[ "$(said libwisp0 Depends)" == *"$need "* ]] || fail "libwisp0 does not depend on $need"
  [[ "$(said libwisp-runtime0 Depends)" == *"$need"* ]] && fail "libwisp-runtime0, which only recommends, depends on $need"
done
for library in libwisp-runtime0 libwisp-text0 libwisp0; do
  shlibs=$(dpkg-deb -I "made/${library}_$version-1_$(dpkg --print-architecture).deb" shlibs)
  [ "$shlibs" = "${library%0} 0 $library (>= $version)" ] || fail "programs built with $library ask for '$shlibs'"
  [[ "$(said libwisp-dev Depends)" == *"$library (= $version-1)"* ]] || fail "libwisp-dev does not depend on $library of its version"
done
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,initial-upload-closes-no-bugs made/*.deb >out 2>&1 || fail "lintian: $(cat out)"
  sed 's/^W: /lintian warns: /' out | sort | uniq | head -n 12
else
  echo "lintian was not asked: it is not installed"
fi
pkgconfig=$(dirname "$(find installed -name wisp.pc)")
for component in runtime text training; do
  name=wisp-$component define=()
  [ $component = text ] && define=(-DWITH_TEXT)
  [ $component = training ] && name=wisp define=(-DWITH_TRAINING)
  read -ra flags < <(PKG_CONFIG_PATH=$pkgconfig pkg-config --define-prefix --cflags --libs $name)
  cc -std=c11 -Wall -Wextra -Werror "${define[@]}" "$root/tests/consumer/app.c" -o app "${flags[@]}" -Wl,-rpath,"$(realpath "$pkgconfig/..")" 2>err &&
    expect 0 "" ./app installed/usr/share/wisp/models/cafe.wisp app.db || fail "an app with $name: $(head -c 600 err)"
  [[ "$(ldd app)" == *"=> $work/installed/"*"/lib$name.so.0 "* ]] || fail "an app with $name runs with another library: $(ldd app)"
  rm -f app app.db
done
[ "$(installed/usr/bin/wisp --version)" = "wisp $version" ] || fail "the packaged program is $(installed/usr/bin/wisp --version)"
expect 0 "" installed/usr/bin/wisp recommend --model installed/usr/share/wisp/models/cafe.wisp --history tea-mint

# The wheel, if it was made, comes from the source distribution.
for wheel in made/*.whl; do
  [ -e "$wheel" ] || continue
  python=${WISP_PYTHON:-$root/build/python}/bin/python
  "$python" -m pip install -q --no-index --no-deps --target wheel "$wheel" 2>err || fail "the wheel: $(head -c 300 err)"
  [ "$(cd wheel && "$python" -c 'import wisp; print(wisp.__file__.startswith("'"$work"'"), wisp.version())')" = "True $version" ] ||
    fail "the wheel is not of version $version"
done

# A difference is found, and the sentence names the file and the member.
differs() {  # SENTENCE
  "$root/tools/release/check.py" made other >out 2>&1 && fail "check.py finds no difference: $1"
  grep -qF -- "$1" out || fail "check.py does not say '$1': $(head -n 5 out)"
}
packed_again() { SOURCE_DATE_EPOCH=$(stat -c %Y unpacked/usr) dpkg-deb --root-owner-group -Zxz -z1 -b unpacked "other/$deb" >/dev/null; }
deb=libwisp-dev_$version-1_$(dpkg --print-architecture).deb
cp -r made other && dpkg-deb -R "made/$deb" unpacked
archive=$(find unpacked -name libwisp-runtime.a)
printf 'other' | dd of="$archive" bs=1 seek=$(($(stat -c %s "$archive") - 40)) conv=notrunc status=none
packed_again
differs "differs: $deb: data.tar.xz: .${archive#unpacked}: $(ar t "$archive" | tail -n 1) differs: "
touch -d @99 unpacked/usr/include/wisp/wisp.h && packed_again
differs "time 99' in the second"
cp "made/$deb" other && (gzip -dc $source_archive; head -c 512 /dev/zero) | gzip -9n >other/"$(basename $source_archive)"
differs "the members are equal, packed otherwise"
rm other/"$deb"
differs "only the first has $deb"

# An incomplete release is refused in a sentence, and nothing is removed.
refused() {  # SENTENCE OPTIONS...
  expect 1 "$@"
}
git clone -q --shared "$root" copy 2>err || fail "git clone: $(head -c 300 err)"
rm -rf copy/tools/release && cp -r "$root/tools/release" copy/tools && git -C copy add -A &&
  git -C copy -c user.name=test -c user.email=test@localhost commit -q --allow-empty -m "The tools as they are"
echo novel >copy/novel.txt
refused "novel.txt of this checkout: not committed" copy/tools/release/release --only source --out clean
expect 0 "" copy/tools/release/release --only source --out clean --allow-dirty
grep -q "left out: novel.txt" out || fail "nothing says what is left out: $(head -n 2 out)"
rm copy/novel.txt
refused "there is no part 'teleport' of a release" copy/tools/release/release --only source,teleport --out clean
mkdir foreign && echo mine >foreign/file
refused "is no earlier release" copy/tools/release/release --only source --out foreign
[ -s foreign/file ] || fail "a folder that is no release was removed"
(cd foreign && sha256sum file >SHA256SUMS)
refused "file is no file of wisp that its SHA256SUMS lists" copy/tools/release/release --only source --out foreign
[ -s foreign/file ] || fail "another project's release was removed"
echo mine >clean/wisp-notes.txt
refused "wisp-notes.txt is no file of wisp that its SHA256SUMS lists" copy/tools/release/release --only source --out clean
[ -s clean/wisp-notes.txt ] || fail "a file that is no part of the release was removed"
rm clean/wisp-notes.txt
expect 0 "" copy/tools/release/release --only source --out clean
refused "names of folders may have letters" copy/tools/release/release --only source --out "with space"
refused "there is no CMakeCache.txt" copy/tools/release/release --only deb --build foreign --out clean
WISP_PYTHON=$work/nowhere refused "need a virtual environment at $work/nowhere.*--all asks for it" copy/tools/release/release --only python --all --out clean
WISP_PYTHON=$work/nowhere ANDROID_NDK_HOME='' expect 0 "" copy/tools/release/release --only source,python,android --out clean
grep -qE "^not made: the archive for Android (needs an NDK|is not made: there is no)" out || fail "nothing says that there is no AAR: $(cat out)"
grep -q "^not made: .*virtual environment" out || fail "nothing says that Python's packages were not made: $(cat out)"
[ "$(cd clean && ls)" = "$(printf 'SHA256SUMS\nwisp-%s-source.tar.gz' "$version")" ] || fail "the folder has $(ls clean)"
sed -i "s/^NOTICES = .*/NOTICES = (\"LICENSE\",)/" copy/tools/release/parts.py
refused "amalgamation.tar.gz has no NOTICE" copy/tools/release/release --only amalgamation --allow-dirty --out clean
finish
