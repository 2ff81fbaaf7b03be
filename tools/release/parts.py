"""The parts of a release that are archives of files: each writes into release.files, or raises Skipped."""

import os
from pathlib import Path

import debian
import wheel
from context import Skipped, compressed, folder_files, write_tar

NOTICES = ("LICENSE", "NOTICE.md")


def source(release):
    """Writes the commit's files. The archive's comment is the commit: git get-tar-commit-id."""
    packed = (release.work / "source.tar").read_bytes()
    (release.files / f"wisp-{release.version}-source.tar.gz").write_bytes(compressed(packed))


def amalgamation(release):
    """wisp.h, wisp.hpp and wisp.cc (docs/c.md)."""
    made = release.work / "amalgamation"
    release.run("tools/amalgamate/amalgamate", made)
    needs = ("eigen", "sqlite", "libsodium", "utf8proc")  # with training or texts
    release.run("tools/sbom", made / "wisp.spdx.json", "--package", "wisp-amalgamation",
                "--contains", "highway", "flatbuffers", "xxhash", "--needs", *needs)
    files = folder_files(made) | {name: release.tree / name for name in NOTICES}
    name = f"wisp-{release.version}-amalgamation"
    write_tar(release.files / f"{name}.tar.gz", name, files, release.epoch)


def wasm(release):
    """Writes the same as npm pack: everything in a folder 'package' (docs/wasm.md)."""
    release.needs("the archive for WebAssembly", "emscripten esbuild nodejs", "emcmake", "esbuild", "node")
    release.bundle()
    made = release.work / "wasm"
    release.run("ports/wasm/build", made)
    files = folder_files(made / "package") | {"NOTICE.md": release.tree / "NOTICE.md"}
    write_tar(release.files / f"wisp-{release.version}-npm.tgz", "package", files, release.epoch)


def _script(release, script, what):
    if not (release.tree / script).is_file():
        raise Skipped(f"{what} is not made: there is no {script} in this commit")
    return script


def android(release):
    """Writes the AAR, from libraries of an NDK and from classes that a Kotlin compiler has made (README.md)."""
    script = _script(release, "ports/android/aar", "the archive for Android")
    ndk, classes = os.environ.get("ANDROID_NDK_HOME", ""), os.environ.get("WISP_ANDROID_CLASSES", "")
    if not Path(ndk, "build/cmake/android.toolchain.cmake").is_file() or not classes:
        raise Skipped(
            f"the archive for Android needs an NDK and compiled classes: ANDROID_NDK_HOME is '{ndk}', "
            f"WISP_ANDROID_CLASSES is '{classes}'; allowed are the folders of these"
        )
    libraries = release.work / "android"
    release.bundle()
    release.run("tools/bundle/sources", "build/bundle/sources")
    release.run("ports/android/libraries", libraries)
    release.run(
        script,
        release.files / f"wisp-{release.version}.aar",
        "--classes",
        Path(classes).absolute(),
        "--libraries",
        libraries,
    )


def apple(release):
    """The Swift package, with the sources that Apple's systems lack."""
    script = _script(release, "ports/apple/package", "the package for Swift")
    name = f"wisp-{release.version}-swift"
    release.bundle()
    release.run(script, release.work / name)
    files = folder_files(release.work / name)
    write_tar(release.files / f"{name}.tar.gz", name, files, release.epoch)


PARTS = {
    "source": source,
    "amalgamation": amalgamation,
    "deb": debian.make,
    "python": wheel.make,
    "python-arm64": wheel.make_arm64,
    "wasm": wasm,
    "android": android,
    "apple": apple,
}
