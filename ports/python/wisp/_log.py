"""Log: what happens on the device, one SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from . import _core
from ._recommender import Path
from ._results import LogCounts

Unit = Literal["user", "session", "day", "interaction"]


class Log(_core.Log):
    """Events (user, item key, time) in one SQLite file, which is made where there is none. Private to the device."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

    @classmethod
    def open(cls, path: Path) -> Log:
        """Opens the file, or makes it. Raises IoError, InvalidData, InvalidArgument with a sentence."""
        return cls(path)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.Log, closed>" if self.closed else "<wisp.Log>"

    def count(self) -> LogCounts:
        """How much it holds. Local only: not private."""
        return LogCounts(**self._count())

    def users(self) -> Iterator[str]:
        """The users, by key. Local only: not private."""
        page, after = 1000, ""
        while True:
            names = [name for name in self._users(after, page).split("\n") if name]
            yield from names
            if len(names) < page:
                return
            after = names[-1]

    def prune(
        self,
        unit: Unit,
        *,
        before: int | None = None,
        newest_per_user: int = 0,
        session_gap: int = 0,
        times_per_second: int = 0,
    ) -> int:
        """Forgets what is old, and returns how many events: of users their older events, of sessions and days whole
        ones. unit: as in the plan. before: in the log's own times. newest_per_user: for "user"; 0: all."""
        options = dict(locals())
        del options["self"]
        return self._prune(options)
