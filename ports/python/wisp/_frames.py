"""Data frames in and out: of pandas, of Polars, or a dict of lists. Neither package is required."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import math
import numbers
import operator
import re
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

_NUMBER = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?P<separator>-?)(?P<month>[0-9]{2})(?P=separator)(?P<day>[0-9]{2})"
    r"([Tt ](?P<hour>[0-9]{2})(?P<colon>:?)(?P<minute>[0-9]{2})"
    r"((?P=colon)(?P<second>[0-9]{2})([.,](?P<fraction>[0-9]+))?)?"
    r"([Zz]|(?P<sign>[-+])(?P<east_hour>[0-9]{2})(:?(?P<east_minute>[0-9]{2}))?)?)?"
)
_DAY_0 = datetime.date(1970, 1, 1).toordinal()


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


def read_key(value: object) -> str | None:
    """A user or an item as a text; None: it is neither a text nor a whole number. A column of numbers with a missing
    value has fractions, 1218.0, of which the whole ones below 2^53 are exact."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return None if isinstance(value, bool) else str(value)
    with contextlib.suppress(TypeError):
        return str(operator.index(value))  # type: ignore[arg-type]  # of NumPy
    number = float(value) if isinstance(value, numbers.Real) else math.nan
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else None


def _key(name: str, row: int, value: object) -> str:
    key = read_key(value)
    if key is None:
        raise InvalidArgument(f"row {row} has {name} {value!r}; allowed are texts and whole numbers")
    return key


def parse_time(text: str) -> int | None:
    """Parses a number, rounded towards the past, or a date in seconds since 1970, as the program does for a CSV file
    (runtime/data/date_time.h); None: it is neither."""
    if len(text) > 100:
        return None
    if _NUMBER.fullmatch(text):
        near = float(text)
        whole = int(text) if text.lstrip("-").isdigit() else math.floor(near) if abs(near) < 9e18 else 2**63
        return whole if -(2**63) <= whole < 2**63 else None
    found = _DATE.fullmatch(text)
    if found is None or (not found["separator"] and found["hour"] is None):
        return None
    part = {name: int(value) for name, value in found.groupdict("0").items() if value.isdigit()}
    seconds = 3600 * part["hour"] + 60 * part["minute"] + part["second"]
    is_end_of_day = seconds == 86400 and part["hour"] == 24 and part["fraction"] == 0
    if (part["hour"] > 23 and not is_end_of_day) or max(part["minute"], part["second"] - 1, part["east_minute"]) > 59:
        return None
    try:
        days = datetime.date(part["year"], part["month"], part["day"]).toordinal() - _DAY_0
    except ValueError:
        return None
    east = 3600 * part["east_hour"] + 60 * part["east_minute"]
    return 86400 * days + seconds + (east if found["sign"] == "-" else -east) if part["east_hour"] < 24 else None


def _time(name: str, row: int, value: object) -> int:
    if isinstance(value, datetime.datetime) and value == value:  # a missing value is NaT, which does not equal itself
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return int((aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds() // 1)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    parsed = parse_time(value) if isinstance(value, str) else value
    if isinstance(parsed, bool) or not isinstance(parsed, int):
        raise InvalidArgument(
            f"row {row} has {name} {value!r}; allowed are whole numbers, dates with a time, and texts of these as "
            "2026-11-27 09:30:00, which pandas.to_datetime makes of others"
        )
    return parsed


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
