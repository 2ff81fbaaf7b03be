"""Data frames in and out: of pandas, of Polars, or a dict of lists. Neither package is required."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from ._errors import InvalidArgument, Unsupported

Kind = Literal["pandas", "polars", "dict"]


class DataFrame(Protocol):
    """A frame of pandas or Polars."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Frame = DataFrame | Mapping[str, Any]
Rows = tuple[list[str], list[str], list[int]]


def read_column(frame: Any, name: str) -> Sequence[Any]:
    """A column as Python's own values."""
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


def read_events(frame: Any, user: str, item: str, time: str) -> Rows:
    """The columns of a frame's events: users and items as texts, times as whole numbers."""
    columns = [read_column(frame, name) for name in (user, item, time)]
    if len({len(column) for column in columns}) != 1:
        rows = ", ".join(str(len(column)) for column in columns)
        raise InvalidArgument(f"the columns have {rows} rows; allowed is one number")
    users, items, times = columns
    return (
        [_key(user, row, value) for row, value in enumerate(users)],
        [_key(item, row, value) for row, value in enumerate(items)],
        [_time(time, row, value) for row, value in enumerate(times)],
    )


def is_frame(given: object) -> bool:
    """True for a data frame and for a dict of lists."""
    return isinstance(given, Mapping) or (hasattr(given, "columns") and hasattr(given, "__getitem__"))


def kind_of(given: object) -> Kind:
    """The package that a frame is of."""
    package = type(given).__module__.partition(".")[0]
    return "pandas" if package == "pandas" else "polars" if package == "polars" else "dict"


def make_frame(columns: dict[str, Any], kind: str) -> Any:
    """A frame of these columns: lists, or arrays of one dimension."""
    if kind == "dict":
        return {name: one.tolist() if hasattr(one, "tolist") else list(one) for name, one in columns.items()}
    if kind not in ("pandas", "polars"):
        raise InvalidArgument(f"to is {kind!r}; allowed are 'pandas', 'polars' and 'dict'")
    try:
        package = importlib.import_module(kind)
    except ImportError:
        raise Unsupported(f"{kind} is not installed here; to='dict' needs no package") from None
    return package.DataFrame(columns)
