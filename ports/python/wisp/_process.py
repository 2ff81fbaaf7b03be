"""One run of the program: its arguments, its lines as they come, stopping it, and its errors."""

from __future__ import annotations

import collections
import logging
import numbers
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import NoReturn

from ._errors import (
    Cancelled,
    Error,
    InternalError,
    InvalidArgument,
    InvalidData,
    IoError,
    PrivacyRefused,
    TooEarly,
    Unsupported,
)

PROGRAM = pathlib.Path(os.environ.get("WISP_PROGRAM") or pathlib.Path(__file__).parent / "bin" / "wisp")

#: True prints the program's lines on standard error. A function receives each line, and its False stops the run.
Lines = bool | Callable[[str], object] | None

#: Errors by the program's exit code (`wisp --help`); codes 5 and 6 need _CODES.
_ERRORS: dict[int, type[Error]] = {
    1: InternalError,
    2: InvalidArgument,
    3: InvalidData,
    4: PrivacyRefused,
    5: IoError,
    6: Unsupported,
    8: TooEarly,
    130: Cancelled,
}
_CODES = {"WISP_EXIT_CODES": "c"}  # a missing file differs from invalid data, as in the C interface
# The program's name for a recipe that is only in memory (_program.py).
_RECIPE_IN_MEMORY = re.compile(r"/proc/\d+/fd/\d+")
_LINES_KEPT = 5
_SECONDS_BETWEEN_LOOKS = 0.2

_log = logging.getLogger("wisp")


def program() -> str:
    """The program's path; raises Unsupported if the package has no program."""
    if not PROGRAM.is_file():
        raise Unsupported(
            f"there is no program {PROGRAM}: install the wheel with --config-settings=cmake.define.WISP_TOOLS=ON, "
            "or name a program that was built in the variable WISP_PROGRAM"
        )
    return str(PROGRAM)


def _text(name: str, value: object) -> str:
    """A value in the form that the program reads."""
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Real, os.PathLike)):
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}); allowed are texts, numbers, paths and lists of them"
        )
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if not isinstance(text, str) or "\0" in text:
        raise InvalidArgument(f"{name} is {value!r}; allowed are texts without a zero byte")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} is {value!r}; allowed are texts without halves of surrogate pairs") from None
    return text


def arguments_of(words: tuple[object, ...], options: Mapping[str, object]) -> list[str]:
    """Converts ("privacy", "epsilon") and {"noise_multiplier": 1} to the program's arguments."""
    arguments = [_text("a word", word) for word in words]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            several = value if isinstance(value, (list, tuple)) else (value,)
            for text in (_text(name, one) for one in several):
                arguments += [f"{option}={text}"] if text else [option, ""]
    return arguments


def show_line(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def log_line(line: str) -> None:
    """Logs a line that nobody reads: warnings as warnings, others below the usual level."""
    said = line.removeprefix("wisp: ")
    if said.startswith("warning: "):
        _log.warning(said.removeprefix("warning: "))
    else:
        _log.debug(said)


class Process:
    """Runs the program to its end. A thread starts it and reads its lines, because only the main thread gets Ctrl-C:
    so no program keeps running unnoticed. The program also stops when this process ends (WISP_ENDS_WITH)."""

    code: int
    printed: str

    def __init__(self, arguments: list[str], progress: Lines) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress is {progress!r}; allowed are True, False and a function of a line")
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            raise Unsupported("SIGCHLD is ignored in this process, so it is not told how the program ends")
        self._command = [program(), *arguments]
        self._told: Callable[[str], object] = (
            show_line if progress is True else progress if callable(progress) else log_line
        )
        self._last: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._asked: signal.Signals | None = None  # the signal that was sent to end it
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        try:
            interrupt = self._follow()
        finally:
            self._ask(signal.SIGKILL)
        if interrupt is not None:
            interrupt.add_note(self._ended())
            raise interrupt
        if self._failure is not None:
            raise IoError(f"{PROGRAM} cannot be run: {self._failure.strerror}")

    def _serve(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            with self._lock:
                if self._asked is not None:
                    return
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**os.environ, **_CODES, "WISP_ENDS_WITH": str(os.getpid())},
                    process_group=0,  # this process receives Ctrl-C, also in a notebook, and passes it on
                )
            self._read(self._process)
        except OSError as error:
            self._failure = error
        finally:
            self._lines.put(None)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        printed: list[bytes] = []
        if process.stdout is None or process.stderr is None:
            return
        with process.stdout as out, process.stderr as err:
            reader = threading.Thread(target=lambda: printed.append(out.read()), daemon=True)
            reader.start()
            for line in err:
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self._lines.put(_RECIPE_IN_MEMORY.sub("the recipe", text))
            reader.join()
        self.printed = b"".join(printed).decode("utf-8", "replace")
        self.code = process.wait()

    def _follow(self) -> BaseException | None:
        """Waits until the program has ended. Returns Ctrl-C, or the exception of the caller's function."""
        interrupt: BaseException | None = None
        started = False
        while True:
            try:
                if not started:
                    started = True
                    self._thread.start()
                line = self._next_line()
                if line is None:
                    return interrupt
                self._last.append(line)
                if self._told(line) is False:
                    self._ask(signal.SIGTERM)
                    self._told = log_line
            except BaseException as raised:  # stops the program as Ctrl-C does; a second one stops it at once
                self._ask(signal.SIGKILL if interrupt is not None else signal.SIGTERM)
                interrupt = interrupt or raised
                self._told = log_line
                if self._thread.ident is None:  # the thread never began
                    return interrupt

    def _next_line(self) -> str | None:
        """The next line, or None at the end. Ctrl-C may lose a line that was being taken, even the end."""
        while True:
            try:
                return self._lines.get(timeout=_SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                if not self._thread.is_alive():
                    return None if self._lines.empty() else self._lines.get()

    def _ask(self, how: signal.Signals) -> None:
        """Sends a signal, unless the program has ended. A program that has not begun will not begin."""
        with self._lock:
            if self._process is None:
                self._asked = how
            elif self._process.poll() is None:
                self._asked = how
                self._process.send_signal(how)

    def _sentence(self) -> str:
        """The program's last line that is not a warning, if it failed by itself."""
        if self._failure is None and getattr(self, "code", -1) in _ERRORS:
            for line in reversed(self._last):
                if line.startswith("wisp: ") and not line.startswith("wisp: warning: "):
                    return line.removeprefix("wisp: ")
        return ""

    def _ended(self) -> str:
        code = getattr(self, "code", None)
        if code is None:
            return "the program was not started"
        if self._sentence():
            return self._sentence()
        how = f"the program ended with {code}" if code >= 0 else f"the program was ended by signal {-code}"
        return how + "; what was charged stays charged" + "".join(f"\n{line}" for line in self._last)

    def fail(self) -> NoReturn:
        """Raises the error of a program that ended with another code than 0."""
        stopped = self.code < 0 and self._asked is not None
        kind = Cancelled if stopped else _ERRORS.get(self.code, InternalError)
        raise kind(self._ended())
