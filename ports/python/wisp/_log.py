"""Log: the events of the device, in one SQLite file."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from . import _core
from ._errors import InvalidArgument
from ._recommender import Path
from ._results import LogCounts

Unit = Literal["user", "session", "day", "interaction"]


def _column(frame: Any, name: str) -> Sequence[Any]:
    try:
        column = frame[name]
    except (KeyError, IndexError, TypeError):
        there = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
        raise InvalidArgument(f"the frame has no column {name!r}; it has {there}") from None
    except Exception as error:  # Polars has its own exceptions
        raise InvalidArgument(f"the frame has no column {name!r}: {error}") from None
    for as_list in ("to_list", "tolist"):
        if hasattr(column, as_list):
            return getattr(column, as_list)()  # type: ignore[no-any-return]
    return list(column)


def _key(name: str, row: int, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidArgument(f"row {row} has {name} {value!r}; allowed are texts and whole numbers")
    return value


def _time(name: str, row: int, value: object) -> int:
    if isinstance(value, datetime.datetime) and value == value:  # a missing value is NaT, which does not equal itself
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return int((aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds() // 1)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"row {row} has {name} {value!r}; allowed are whole numbers and dates with a time")
    return value


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

    def append_frame(self, frame: Any, *, user: str = "user", item: str = "item", time: str = "time") -> None:
        """Appends the rows of a data frame of pandas or Polars, or of a dict of lists: all of them or none. user, item,
        time: the names of its columns. Whole-number users and items are converted to texts. Dates are converted to
        seconds since 1970, those without a zone as UTC. Raises InvalidArgument for a missing column or value."""
        columns = [_column(frame, name) for name in (user, item, time)]
        if len({len(column) for column in columns}) != 1:
            rows = ", ".join(str(len(column)) for column in columns)
            raise InvalidArgument(f"the columns have {rows} rows; allowed is one number")
        users, items, times = columns
        self.append_all(
            [
                (_key(user, row, users[row]), _key(item, row, items[row]), _time(time, row, times[row]))
                for row in range(len(times))
            ]
        )

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
