"""The parts of a release that are archives of files: each writes into release.files, or raises Skipped."""
import shutil

import debian
import wheel
from context import Skipped, compressed, folder_files, write_tar

NOTICES = ("LICENSE", "NOTICE.md")


def source(release):
    """The commit's files. The archive's comment is the commit: git get-tar-commit-id."""
    packed = (release.work / "source.tar").read_bytes()
    (release.files / f"wisp-{release.version}-source.tar.gz").write_bytes(compressed(packed))


def amalgamation(release):
    """wisp.h, wisp.hpp and wisp.cc (docs/amalgamation.md)."""
    made = release.work / "amalgamation"
    release.run("tools/amalgamate/amalgamate", made)
    files = folder_files(made) | {name: release.tree / name for name in NOTICES}
    name = f"wisp-{release.version}-amalgamation"
    write_tar(release.files / f"{name}.tar.gz", name, files, release.epoch)


def wasm(release):
    """What npm packs: everything in a folder 'package' (docs/wasm.md)."""
    release.needs("the archive for WebAssembly", "emscripten nodejs", "emcmake", "node")
    release.bundle()
    made = release.work / "wasm"
    release.run("ports/wasm/build", made)
    files = folder_files(made / "package") | {"NOTICE.md": release.tree / "NOTICE.md"}
    write_tar(release.files / f"wisp-{release.version}-npm.tgz", "package", files, release.epoch)


def _port(release, script, what):
    """A port with a script of its own, which writes files of a release into a folder."""
    if not (release.tree / script).is_file():
        raise Skipped(f"{what} is not made: there is no {script} in this commit")
    release.bundle()
    made = release.work / script.replace("/", "-")
    made.mkdir()
    release.run(script, made)
    for file in sorted(made.iterdir()):
        if file.is_file():
            shutil.copyfile(file, release.files / file.name)


def android(release):
    _port(release, "ports/android/aar", "the archive for Android")


def apple(release):
    _port(release, "ports/apple/package", "the package for Swift")


PARTS = {"source": source, "amalgamation": amalgamation, "deb": debian.make, "python": wheel.make, "wasm": wasm,
         "android": android, "apple": apple}
