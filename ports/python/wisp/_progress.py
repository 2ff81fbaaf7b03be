"""Progress of training: a function to call, or one line that is overwritten."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from ._results import Step, shown_epsilon

#: True prints a line on standard error. A function is called after each step, and its False stops the run.
Progress = bool | Callable[[Step], object] | None

_SECONDS_BETWEEN = 0.2
_WIDTH = 20  # of the bar


class Line:
    """Overwrites one line with a run's progress, in a terminal and in a notebook; in a file it writes only the last."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr  # None without standard error
        self._next = 0.0
        self._width = 0
        self._began: tuple[float, float] | None = None  # the time of the first step here, and the share that was done
        # A notebook's stream is not a terminal, but supports a return to the line's start.
        self._live = self._stream is not None and (
            self._stream.isatty() or type(self._stream).__module__.startswith("ipykernel")
        )

    def __call__(self, step: Step) -> None:
        is_last = step.step >= step.num_steps
        now = time.monotonic()
        if not is_last and (not self._live or now < self._next):
            return
        self._next = now + _SECONDS_BETWEEN
        done = step.step / max(1, step.num_steps)
        text = f"step {step.step} of {step.num_steps}"
        if not math.isnan(step.epsilon):
            text += f", epsilon so far {shown_epsilon(step.epsilon)}"
        if not is_last:
            self._began = self._began or (now, done)
            began, before = self._began
            text = f"[{'#' * int(_WIDTH * done):{_WIDTH}}] {text}"
            if done > before:
                text += f", {(now - began) * (1 - done) / (done - before):.0f} s left"
        start = "\r" if self._live else ""
        self._write(start + text.ljust(self._width) + ("\n" if is_last else ""))
        self._width = 0 if is_last else len(text)

    def end(self) -> None:
        """Ends the line if a run stopped in its middle."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _write(self, text: str) -> None:
        """A run that is paid for must not end because its progress cannot be written."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or stream
            self._stream = None


def run(
    call: Callable[..., dict[str, Any]], options: dict[str, Any], progress: Progress
) -> tuple[dict[str, Any], list[Step]]:
    """call(options, told), where the extension calls `told` after each step. Returns its result, and the steps."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress is {progress!r}; allowed are True, False and a function of a wisp.Step")
    line = Line() if progress is True else None
    tell: Callable[[Step], object] | None = line or (progress if callable(progress) else None)
    steps: list[Step] = []

    def told(*values: Any) -> object:
        steps.append(Step(*values))
        return None if tell is None else tell(steps[-1])

    try:
        return call(options, told), steps
    finally:
        if line is not None:
            line.end()
