"""Log: the events of the device, in one SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NoReturn

from . import _core
from ._frames import Frame, Kind, make_frame, read_events
from ._recommender import Path
from ._results import LogCounts

Unit = Literal["user", "session", "day", "interaction"]


class Log(_core.Log):
    """Events (user, item key, time) in one SQLite file, which is created if absent. Private to the device."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

    @classmethod
    def open(cls, path: Path) -> Log:
        """Opens the file, or creates it. Raises IoError, InvalidData, InvalidArgument with a sentence."""
        return cls(path)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.Log, closed>" if self.closed else "<wisp.Log>"

    def append_frame(self, frame: Frame, *, user: str = "user", item: str = "item", time: str = "time") -> None:
        """Appends the rows of a data frame of pandas or Polars, or of a dict of lists: all of them or none. user, item,
        time: the names of its columns. Whole-number users and items are converted to texts. Dates, and texts of them,
        are converted to seconds since 1970, those without a zone as UTC. Raises InvalidArgument for a missing column or
        value."""
        self.append_all(zip(*read_events(frame, user, item, time), strict=True))

    def to_frame(self, to: Kind = "pandas", *, user: str = "user", item: str = "item", time: str = "time") -> Any:
        """All events as a data frame of pandas or Polars, or as a dict of lists: user by user, each one's oldest first.
        Local only: not private."""
        events = list(self)
        names = (user, item, time)
        return make_frame({name: [event[at] for event in events] for at, name in enumerate(names)}, to)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open Log cannot be pickled: pickle its path, and open the file again (wisp.Log.open)")

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """All events (user, item_key, time), user by user, each user's oldest first. Local only: not private."""
        for user in self.users():
            yield from self.events(user)

    def count(self) -> LogCounts:
        """Counts of what the log holds. Local only: not private."""
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
        """Deletes old events and returns their number: for users their older events, for sessions and days whole ones.
        unit: as in the plan. before: in the log's own time unit. newest_per_user: for "user"; 0: all."""
        options = dict(locals())
        del options["self"]
        return self._prune(options)
