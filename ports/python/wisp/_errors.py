"""The library's errors. The text of each is its sentence: it names the file, the value and what is allowed."""

from __future__ import annotations

from typing import ClassVar

from . import _core


class Error(Exception):
    """Every error of the library; `code` is the number of the C interface's wisp_code."""

    code: ClassVar[int] = 0


class InternalError(Error):
    """Out of memory, or a defect of the library."""

    code = 1


class InvalidArgument(Error, ValueError):
    """Asked for something that does not exist or is out of range."""

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


class Closed(InvalidArgument):
    """The object was closed before."""


_BY_CODE = (Error, InternalError, InvalidArgument, InvalidData, PrivacyRefused, IoError, Unsupported, Cancelled)
for _class in (*_BY_CODE, Closed):
    _class.__module__ = "wisp"  # where people find it
_core.set_errors(_BY_CODE, Closed)
