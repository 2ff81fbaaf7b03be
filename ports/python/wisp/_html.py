"""Results as tables of HTML, for notebooks, and as plots. Nothing of a file or of data is taken for markup."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import Unsupported

Row = tuple[str, object]


def make_table(title: str, rows: Iterable[Row], note: str = "") -> str:
    """A title, a row of each name and value, and a sentence below."""
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in rows
    )
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<div class='wisp'><b>{html.escape(title)}</b><table>{body}</table>{below}</div>"


class Shown:
    """A result that a notebook shows as a table."""

    def _table(self) -> tuple[str, Sequence[Row], str]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return make_table(*self._table())


class Statement(str):
    """A privacy statement: a text, which a notebook shows with its sections as tables."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        parts: list[str] = []
        title = ""
        rows: list[Row] = []
        for line in [*self.splitlines(), "end"]:
            if line.startswith("  "):
                name, _, value = line.strip().partition(": ")
                rows.append((name, value))
                continue
            if rows or (title and line.strip()):
                parts.append(make_table(title, rows))
                title, rows = "", []
            title = line.strip() or title
        return "".join(parts)


def axes_for(given: Any) -> Any:
    """The axes to draw on: those given, or new ones of matplotlib."""
    if given is not None:
        return given
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise Unsupported("matplotlib is not installed here, which plots need") from None
    return pyplot.subplots()[1]
