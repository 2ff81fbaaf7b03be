"""The library's errors. The text of each is its sentence: it names the file, the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from . import _core

# Replaces names of the C interface and of the program in sentences by Python's. Only these prefixes are replaced,
# because a file may be called wisp_model.
_CALLED = (
    "allocator|budget_read|catalogue_(?:add|retire)|device_describe|evaluate|generate_options|generated|"
    "log_(?:append|append_all|count|erase|history|open|prune|users)|logger|model_(?:info_read|open|provenance)\\w*|"
    "open_options|personalise|personalise_\\w+|plan_\\w+|privacy_statement|private_\\w+|rebase|rebase_adapter|"
    "recommend|recommend_batch|run_planned|"
    "text_(?:classify|embed|generate|generate_batch|info_read|open|tokenize|train)"
)
_FUNCTIONS = {"wisp_plan_make": "make_plan", "wisp_plan_change": "change_plan"}
_FILES = {"out": "output", "from": "from_model", "to": "to_model"}


def _argument(found: re.Match[str]) -> str:
    """Converts "`dataset` 'log.db'" to dataset='log.db'."""
    name, value = found.groups()
    argument = {"ledger_path": "ledger", "other_data": "other_data=True"}.get(name, name)
    if argument.startswith("wisp_"):
        argument = "wisp." + _FUNCTIONS.get(argument, argument.removeprefix("wisp_"))
    if not value:
        return argument
    value = repr(value[1:-1].replace("'\\''", "'"))  # the value is quoted as for a shell
    return argument + (f"=[{value}]" if name == "public_datasets" else f"={value}")


_WORDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"`([a-z0-9_]+)`(?: ('(?:[^']|'\\'')*'))?"), _argument),
    (
        re.compile(r"(?<![\w./'-])(model|log|output|ledger|checkpoint|adapter|out|from|to)_path(?![\w./':-])"),
        lambda found: _FILES.get(found[1], found[1]),
    ),
    (re.compile(rf"^wisp_(?:{_CALLED}): (?!cannot)|\bwisp_open_options\.(?=max_bytes)"), ""),
    (re.compile(r"\bWISP_(?:UNIT|TEXT|VERIFY)_([A-Z]+)\b"), lambda found: f"'{found[1].lower()}'"),
    (re.compile(r"\bmust not be NULL\b"), "must not be None"),
)


def in_python(sentence: str) -> str:
    """The sentence with Python's names of arguments."""
    for words, here in _WORDS:
        sentence = words.sub(here, sentence)
    return sentence


class Error(Exception):
    """Every error of the library; `code` is the number of the C interface's wisp_code."""

    code: ClassVar[int] = 0

    def __init__(self, *values: object) -> None:
        super().__init__(*(in_python(value) if isinstance(value, str) else value for value in values))


class InternalError(Error):
    """Out of memory, or a defect of the library."""

    code = 1


class InvalidArgument(Error, ValueError):
    """The request names something that does not exist or is out of range."""

    code = 2


class InvalidData(Error, ValueError):
    """A file or a record is malformed."""

    code = 3


class PrivacyRefused(Error):
    """The request has no guarantee, or would pass the budget."""

    code = 4


class IoError(Error, OSError):
    """The operating system refused."""

    code = 5


class Unsupported(Error):
    """From a newer version, or not in this build."""

    code = 6


class Cancelled(Error):
    """The progress callback asked to stop. The sentence says what is spent."""

    code = 7


class TooEarly(Error):
    """A planned run came before its time: less than half of the time between runs has passed."""

    code = 8


class Closed(InvalidArgument):
    """The object was closed before."""


_BY_CODE = (
    Error, InternalError, InvalidArgument, InvalidData, PrivacyRefused, IoError, Unsupported, Cancelled, TooEarly,
)  # fmt: skip
for _class in (*_BY_CODE, Closed):
    _class.__module__ = "wisp"  # the public module
_core.set_errors(_BY_CODE, Closed)
