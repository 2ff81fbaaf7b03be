"""The folder in which wisp.fit keeps its log while it trains: in memory where there is room, else on disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

_PREFIX = "wisp-fit-"
_IN_MEMORY = "/dev/shm"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _has_room(parent: str, num_bytes: int) -> bool:
    try:
        return os.access(parent, os.W_OK | os.X_OK) and shutil.disk_usage(parent).free >= num_bytes
    except OSError:
        return False


def _remove_abandoned(parent: str) -> None:
    """Removes this user's folders of runs that were killed: nobody holds their locks."""
    with contextlib.suppress(OSError):
        for name in [name for name in os.listdir(parent) if name.startswith(_PREFIX)]:
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):
                folder = os.open(path, _FOLDER)
                try:
                    if os.fstat(folder).st_uid == os.geteuid():
                        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(path)
                finally:
                    os.close(folder)


def _make(parent: str) -> tuple[str, int]:
    """A new folder, and a descriptor that holds its lock until the process ends."""
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        with contextlib.suppress(FileNotFoundError):  # another run took it for abandoned before it was locked
            lock = os.open(path, _FOLDER)
            with contextlib.suppress(OSError):  # a file system without locks, where nothing is taken for abandoned
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.isdir(path):
                return path, lock
            os.close(lock)


@contextlib.contextmanager
def working_folder(num_bytes: int) -> Iterator[str]:
    """A folder for about so many bytes, which only this user can read. It is removed at the end, and by the user's next
    run if this one is killed."""
    on_disk = tempfile.gettempdir()
    for parent in (_IN_MEMORY, on_disk):
        _remove_abandoned(parent)
    path, lock = _make(_IN_MEMORY if _has_room(_IN_MEMORY, num_bytes) else on_disk)
    try:
        yield path
    finally:
        try:
            shutil.rmtree(path)
        finally:
            os.close(lock)
