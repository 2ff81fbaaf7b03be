"""Things that the parts of a release share: the commit, its unpacked archive, running programs, writing archives."""

import gzip
import io
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Refused(Exception):
    """There is no release; the sentence says why."""


class Skipped(Exception):
    """A part cannot be made here; the sentence says what it needs."""


def version_of(tree):
    """Returns the version, which only CMakeLists.txt states."""
    found = re.search(r"^project\(wisp VERSION ([0-9.]+)", (tree / "CMakeLists.txt").read_text(), re.M)
    if not found:
        raise Refused(f"{tree / 'CMakeLists.txt'} has no line 'project(wisp VERSION X.Y.Z'")
    return found[1]


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise Refused(
            f"git {arguments[0]}: {done.stderr.decode().strip().splitlines()[-1:] or ['failed']}"
            f"; a release is made from a checkout of git"
        )
    return done.stdout


def write_tar(path, prefix, files, epoch):
    """Writes a .tar.gz of `files`, {name: path or bytes}: sorted, with one owner and time, executable where the file
    is."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            executable = isinstance(content, Path) and os.access(content, os.X_OK)
            content = content.read_bytes() if isinstance(content, Path) else content
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(compressed(packed.getvalue()))


def compressed(data):
    """Compresses like gzip -9n: without a name and a time."""
    return gzip.compress(data, 9, mtime=0)


def folder_files(folder):
    """Returns {name: path} of all files below a folder."""
    return {str(f.relative_to(folder)): f for f in folder.rglob("*") if f.is_file()}


class Release:
    """A commit, its source archive, and that archive unpacked in `work`, where the parts are built."""

    def __init__(self, work, build=None):
        self.work, self.build = work, build
        self.commit = git("rev-parse", "HEAD").decode().strip()
        self.epoch = int(git("log", "-1", "--format=%ct", self.commit))
        self.version = version_of(ROOT)
        self.files = work / "files"
        self.tree = work / f"wisp-{self.version}"

    def unpack(self):
        """Makes the source archive and unpacks it, so that no part contains uncommitted files."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.files.mkdir(parents=True)
        archive = self.work / "source.tar"
        archive.write_bytes(
            git("-c", "tar.umask=0022", "archive", "--format=tar", f"--prefix={self.tree.name}/", self.commit)
        )
        subprocess.run(["tar", "-xf", archive, "-C", self.work], check=True)
        if version_of(self.tree) != self.version:
            raise Refused(
                f"CMakeLists.txt says version {self.version}, HEAD says {version_of(self.tree)}: commit the change"
            )
        return archive

    def environment(self, **more):
        """Returns an environment that is equal on all machines, except for the paths of programs. The compiler must
        not record the path of the sources."""
        kept = {
            k: v
            for k, v in os.environ.items()
            if not re.fullmatch(r"(C|CXX|CPP|LD)FLAGS|LC_.*|LANG|LANGUAGE|TZ|PKG_CONFIG.*|PYTHON.*|DESTDIR", k)
        }
        flags = f"-ffile-prefix-map={self.work}=."
        # ccache shares its results between folders, also with the checkout's own build.
        return {
            **kept,
            "PATH": "/usr/bin:/bin:" + kept.get("PATH", ""),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "CFLAGS": flags,
            "CXXFLAGS": flags,
            "SOURCE_DATE_EPOCH": str(self.epoch),
            "CCACHE_BASEDIR": str(self.tree),
            "CCACHE_NOHASHDIR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def run(self, *command, folder=None, **environment):
        """Runs a program in the unpacked tree; its output is shown only if it fails."""
        done = subprocess.run(
            [str(c) for c in command],
            cwd=folder or self.tree,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            line = shlex.join(str(c) for c in command)
            raise Refused(
                f"{line} ended with {done.returncode}. Its last lines:\n"
                + "\n".join("  " + line for line in done.stdout.splitlines()[-30:])
            )
        return done.stdout

    def needs(self, part, packages, *programs):
        """Skips the part where a program is missing."""
        path = self.environment()["PATH"]
        missing = [p for p in programs if not shutil.which(p, path=path)]
        if missing:
            raise Skipped(f"{part} needs {', '.join(missing)} (Debian: {packages})")

    def bundle(self):
        """Fetches Debian's sources of libraries for ports that have no such packages, or takes those that
        tools/bundle has kept."""
        kept, wanted = ROOT / "build/bundle/sources", self.tree / "build/bundle/sources"
        if (kept / "complete").is_file() and not wanted.exists():
            wanted.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", "--preserve=mode,links,timestamps", kept, wanted], check=True)
