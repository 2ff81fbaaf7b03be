"""Evaluation: at which ranks of the lists that a model gives is what its users did last."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy
import numpy.typing

from ._errors import InvalidArgument
from ._html import Row, Shown

Metric = Literal["ndcg", "hit", "recall", "precision", "mrr", "map", "coverage"]
Numbers = numpy.typing.NDArray[numpy.int32]
_MAY_HAVE_TRAINED = "If the model was trained on these events too, the figures are too good."


@dataclasses.dataclass(frozen=True)
class Ranking(Shown):
    """The quality of lists for each user's last events. Local only: not private, do not send it anywhere."""

    metrics: dict[str, float]  #: means over the users, as "ndcg@10"
    num_users: int  #: users that were evaluated
    held_out: int = 1  #: events of each user that were looked for
    note: str = _MAY_HAVE_TRAINED  #: whether these events trained the model

    def __getitem__(self, name: str) -> float:
        return self.metrics[name]

    @property
    def not_private(self) -> list[str]:
        """The names of all figures: each was computed from the log, without noise."""
        return [*self.metrics, "num_users"]

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [(name, f"{value:.4f}") for name, value in self.metrics.items()]
        events = "event" if self.held_out == 1 else f"{self.held_out} events"
        note = f"Local only: not private. {self.note}".rstrip()
        return f"Each user's last {events}", [*rows, ("users", self.num_users)], note


def read_ks(k: int | Sequence[int]) -> list[int]:
    """The lengths of lists, as whole numbers from 1 on."""
    ks = list(k) if isinstance(k, Sequence) else [k]
    for one in ks:
        if isinstance(one, bool) or operator.index(one) < 1:
            raise InvalidArgument(f"k is {k!r}; allowed are whole numbers from 1 on")
    if not ks:
        raise InvalidArgument("k is empty; allowed are whole numbers from 1 on")
    return ks


def read_metrics(metrics: str | Iterable[str]) -> list[str]:
    """The names of metrics, checked."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        if name not in get_args(Metric):
            raise InvalidArgument(f"metrics has {name!r}; allowed are {', '.join(get_args(Metric))}")
    return names


class Sums:
    """Sums of the metrics over users, who come in blocks."""

    def __init__(self, ks: list[int], metrics: list[str], num_items: int, num_offered: int) -> None:
        self._metrics = metrics
        self._totals = {(name, k): 0.0 for k in ks for name in metrics}
        self._listed = {k: numpy.zeros(num_items, bool) for k in ks}
        self._num_offered = num_offered
        self._discounts = 1 / numpy.log2(numpy.arange(max(ks)) + 2)
        self._ideal = numpy.concatenate([[0], numpy.cumsum(self._discounts)])
        self.num_users = 0

    def add(self, items: Numbers, held_out: Numbers) -> None:
        """items: lists, padded with -1. held_out: the items to be found, each once, padded with -2."""
        hits = (items[:, :, None] == held_out[:, None, :]).any(axis=2)
        wanted = (held_out >= 0).sum(axis=1)
        self.num_users += len(items)
        for k, listed in self._listed.items():
            top = hits[:, :k]
            found, most = top.sum(axis=1), numpy.minimum(wanted, k)
            ranks = numpy.arange(top.shape[1]) + 1
            of_user = {
                "ndcg": (top * self._discounts[: top.shape[1]]).sum(axis=1) / self._ideal[most],
                "hit": found > 0,
                "recall": found / wanted,
                "precision": found / k,
                "mrr": numpy.where(found > 0, 1 / (top.argmax(axis=1) + 1), 0),
                "map": (top * top.cumsum(axis=1) / ranks).sum(axis=1) / most,
            }
            shown = items[:, :k]
            listed[shown[shown >= 0]] = True
            for name in self._metrics:
                if name in of_user:
                    self._totals[name, k] += float(of_user[name].sum())

    def ranking(self, held_out: int) -> Ranking:
        """The means. held_out: events of each user that were looked for."""
        metrics = {f"{name}@{k}": total / max(1, self.num_users) for (name, k), total in self._totals.items()}
        for k, listed in self._listed.items():
            if "coverage" in self._metrics:
                metrics[f"coverage@{k}"] = float(listed.sum()) / max(1, self._num_offered)
        return Ranking(metrics, self.num_users, held_out)
