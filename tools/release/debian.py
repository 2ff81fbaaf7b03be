"""Divides the files of cmake --install among five Debian packages (tools/release/README.md)."""

import os
import re
import shutil
import subprocess
from email.utils import formatdate
from pathlib import Path

from context import Refused, compressed

MAINTAINER = "The developers of wisp <developers@wisp.invalid>"
LIBRARY = "small Transformers on the device: %s"
TEXT = """ wisp loads small Transformers from one mapped file, runs them, and
 fine-tunes them with differential privacy on the device where the data is.
 .
 %s
"""
# Maps a name to (files below usr/, where LIB is the folder of libraries; section; short description; long description).
# A file goes to the first package that names it.
PACKAGES = {
    "libwisp-runtime0": (
        r"LIB/libwisp-runtime\.so\..*",
        "libs",
        LIBRARY % "library that recommends",
        "This package has the library that recommends, and does nothing else.",
    ),
    "libwisp-text0": (
        r"LIB/libwisp-text\.so\..*",
        "libs",
        LIBRARY % "library for texts",
        "This package has the library that recommends, and embeds, classifies and\n generates texts.",
    ),
    "libwisp0": (
        r"LIB/libwisp\.so\..*",
        "libs",
        LIBRARY % "whole library",
        "This package has the whole library, with private training.",
    ),
    "libwisp-dev": (
        r"include/.*|LIB/libwisp[a-z-]*\.(so|a)|LIB/(cmake|pkgconfig)/.*|share/doc/wisp/example\.c",
        "libdevel",
        LIBRARY % "for building apps",
        "This package has headers, archives, and files for CMake and pkg-config.",
    ),
    "wisp-tools": (
        r"bin/wisp(-node)?|share/wisp/.*",
        "science",
        LIBRARY % "the program wisp",
        "This package has the program that trains, converts, audits and recommends,\n with recipes and a small model.",
    ),
}
INLINED = ("libhwy-dev", "libflatbuffers-dev", "libxxhash-dev", "libeigen3-dev")  # compiled into every product
INLINED_IN_PROGRAM = ("nlohmann-json3-dev", "libcli11-dev")
SUGGESTED = "libutf8proc-dev, libsodium-dev, libsqlite3-dev"  # for those who link the archives


def cached(build, name):
    found = re.search(rf"^{name}:[A-Z]*=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def built(release):
    """The folder of a build for /usr, made of the release's sources, or the one that was named."""
    if release.build:
        if not (release.build / "CMakeCache.txt").is_file():
            raise Refused(f"--build {release.build}: there is no CMakeCache.txt; allowed is a folder that cmake made")
        for option in ("WISP_TRAINING", "WISP_TOOLS", "WISP_INSTALL"):
            if cached(release.build, option) != "ON":
                raise Refused(f"--build {release.build}: {option} is {cached(release.build, option)}; packages need ON")
        if cached(release.build, "CMAKE_SYSTEM_NAME"):
            raise Refused(f"--build {release.build} is for another processor; packages are made for this one alone")
        if cached(release.build, "CMAKE_PROJECT_VERSION") != release.version:
            raise Refused(
                f"--build {release.build} is of version {cached(release.build, 'CMAKE_PROJECT_VERSION')}, "
                f"the release of {release.version}"
            )
        return release.build
    build = release.tree / "build/release"  # as in a checkout, so that the compiler's cache sees the same paths
    release.run(
        "cmake",
        "-S",
        ".",
        "-B",
        build,
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_INSTALL_PREFIX=/usr",
        "-DWISP_TESTS=OFF",
        "-DWISP_LTO=ON",
    )
    release.run("cmake", "--build", build)
    return build


def divide(staged, lib):
    """Returns {package: names of its files}. A file that no package names is refused, so that none is forgotten."""
    divided = {name: [] for name in PACKAGES}
    patterns = {name: re.compile(about[0].replace("LIB", re.escape(lib))) for name, about in PACKAGES.items()}
    for path in sorted(p for p in staged.rglob("*") if p.is_symlink() or p.is_file()):
        file = str(path.relative_to(staged))
        if file in ("share/doc/wisp/LICENSE", "share/doc/wisp/NOTICE.md"):
            continue  # in every package's copyright
        owner = next((name for name, pattern in patterns.items() if pattern.fullmatch(file)), None)
        if not owner:
            raise Refused(f"cmake --install makes {file}, which no package of tools/release/debian.py has")
        divided[owner].append(file)
    empty = [name for name, files in divided.items() if not files]
    if empty:
        raise Refused(f"cmake --install makes nothing for {', '.join(empty)}")
    return divided


def copyright_text(release, package):
    """Combines our copyright with the notices of compiled-in libraries, as in Debian's packages of them."""
    text = (
        "wisp is under the Apache License 2.0, which is in /usr/share/common-licenses/Apache-2.0.\n\n"
        + (release.tree / "NOTICE.md").read_text()
    )
    for name in INLINED + (INLINED_IN_PROGRAM if package == "wisp-tools" else ()):
        notice = Path("/usr/share/doc") / name / "copyright"
        if not notice.is_file():
            raise Refused(f"there is no {notice}, the notice of what is compiled into {package}: install {name}")
        text += f"\n==== compiled in, from {name} ====\n\n{notice.read_text()}"
    return text


def changelog(release, package):
    date = formatdate(release.epoch)
    return (
        f"wisp ({release.version}-1) stable; urgency=medium\n\n  * {package} of commit {release.commit}.\n"
        f"  * What is new: changelog.gz.\n\n -- {MAINTAINER}  {date}\n"
    )


# Libraries that each package needs where it runs (tools/sbom). Headers are compiled in.
NEEDED = {
    "libwisp-text0": ("utf8proc",),
    "libwisp0": ("sqlite", "libsodium", "utf8proc"),
    "wisp-tools": ("sqlite", "libsodium", "utf8proc", "libcurl", "openssl"),
}


def documents(release, package, folder):
    doc = folder / "usr/share/doc" / package
    doc.mkdir(parents=True, exist_ok=True)
    contained = ["highway", "flatbuffers", "xxhash", "eigen"] + ["cli11", "nlohmann-json"] * (package == "wisp-tools")
    compiler = release.run("c++", "-dumpfullversion").strip()
    release.run(
        release.tree / "tools/sbom", doc / f"{package}.spdx.json", "--package", package, "--tool", f"g++ {compiler}",
        "--contains", *contained, "--needs", *NEEDED.get(package, ()),
    )
    (doc / "copyright").write_text(copyright_text(release, package))
    (doc / "changelog.Debian.gz").write_bytes(compressed(changelog(release, package).encode()))
    (doc / "changelog.gz").write_bytes(compressed((release.tree / "CHANGELOG.md").read_bytes()))


def depends(release, folder, package):
    """Returns the dependencies that dpkg-shlibdeps finds in the package's programs and libraries."""
    elves = [f for f in folder.rglob("*") if f.is_file() and not f.is_symlink() and f.read_bytes()[:4] == b"\x7fELF"]
    if not elves:
        return ""
    scratch = release.work / "shlibdeps"
    (scratch / "debian").mkdir(parents=True, exist_ok=True)
    (scratch / "debian/control").write_text(f"Source: wisp\n\nPackage: {package}\nArchitecture: any\n")
    found = release.run("dpkg-shlibdeps", "-O", *(f"-e{elf}" for elf in sorted(elves)), folder=scratch)
    line = next((line for line in found.splitlines() if line.startswith("shlibs:Depends=")), None)
    if not line:
        raise Refused(f"dpkg-shlibdeps finds nothing that {package} depends on: {found[:300]}")
    return line.removeprefix("shlibs:Depends=")


def control(release, package, folder, architecture, multiarch):
    _, section, first, text = PACKAGES[package]
    fields = {
        "Package": package,
        "Source": "wisp",
        "Version": f"{release.version}-1",
        "Architecture": architecture,
        "Maintainer": MAINTAINER,
    }
    # dpkg-gencontrol counts in this way: a file in whole KiB, everything else as one.
    fields["Installed-Size"] = sum(
        -(-p.stat().st_size // 1024) if p.is_file() and not p.is_symlink() else 1 for p in folder.rglob("*")
    )
    fields["Depends"] = depends(release, folder, package)
    if package == "libwisp-dev":
        fields["Depends"] = ", ".join(f"{name} (= {release.version}-1)" for name in PACKAGES if name.endswith("0"))
        fields["Suggests"] = SUGGESTED
    if multiarch and package.startswith("libwisp"):
        fields["Multi-Arch"] = "same"
    fields |= {"Section": section, "Priority": "optional", "Description": f"{first}\n{TEXT % text}"}
    return "".join(f"{name}: {value}\n" for name, value in fields.items()).rstrip("\n") + "\n"


def metadata(release, package, folder, architecture, multiarch):
    sums = "".join(
        release.run(
            "md5sum",
            *sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and not f.is_symlink()),
            folder=folder,
        )
    )
    text = control(release, package, folder, architecture, multiarch)
    debian = folder / "DEBIAN"
    debian.mkdir()
    (debian / "control").write_text(text)
    (debian / "md5sums").write_text(sums)
    if package.endswith("0"):
        # A program that calls functions added in this version does not run with an older one.
        (debian / "shlibs").write_text(f"{package[:-1]} 0 {package} (>= {release.version})\n")
        (debian / "triggers").write_text("activate-noawait ldconfig\n")


def settle(folder, epoch):
    """Sets modes and times that do not depend on umask or clock."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) and path.parent.name == "bin" else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def make(release):
    release.needs("a package of Debian", "dpkg-dev binutils", "dpkg-deb", "dpkg-shlibdeps", "strip")
    build = built(release)
    lib = cached(build, "CMAKE_INSTALL_LIBDIR")
    if cached(build, "WISP_CUDA") == "ON":
        raise Refused(f"{build} has WISP_CUDA=ON, which no package has; packages need OFF")
    staged = release.work / "staged"
    release.run("cmake", "--install", build, "--prefix", staged)
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for package, files in divide(staged, lib).items():
        folder = release.work / "packages" / package
        for file in files:
            place = folder / "usr" / (file.replace("share/doc/wisp/", f"share/doc/{package}/examples/"))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(staged / file, place, follow_symlinks=False)
        documents(release, package, folder)
        metadata(release, package, folder, architecture, lib.count("/") == 1)
        settle(folder, release.epoch)
        release.run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", folder, release.files)
