"""A fleet in this process: the server's rounds with devices that answer at once."""

from __future__ import annotations

import collections
import json
import math
import os
import pathlib
from typing import Any

from .. import _core
from .._deployment import evaluate as quality_of
from .._errors import InvalidArgument
from .._recommender import Path
from ._link import Ask
from ._server import PrivateFleet

_GROUP = 50  # devices whose answers are in memory at once


class SimulatedLink:
    """The users of a log, each a device."""

    tick, whole = 0.0, True

    def __init__(self, fleet: Any) -> None:
        self._fleet = fleet
        self._queue: collections.deque[int] = collections.deque()
        self.absences: collections.Counter[str] = collections.Counter()

    def nodes(self) -> list[int]:
        nodes: list[int] = self._fleet.nodes()
        return nodes

    def begin(self, ask: Ask) -> None:
        self._ask = ask
        self.absences.clear()

    def push(self, nodes: list[int]) -> None:
        self._queue.extend(nodes)

    def collect(self) -> list[tuple[int, bytes]]:
        nodes = [self._queue.popleft() for _ in range(min(_GROUP, len(self._queue)))]
        ask = self._ask
        updates = self._fleet.answer(ask.task, ask.round, ask.weights, nodes)
        answers = [(node, update) for node, update in zip(nodes, updates) if len(update) == ask.answer_bytes > 0]
        self.absences["absent"] += len(nodes) - len(answers) if ask.answer_bytes else 0
        return answers

    def waiting(self) -> int:
        return len(self._queue)

    def forget(self) -> None:
        self._queue.clear()


def simulate(
    plan: Path,
    model: Path,
    log: Path,
    *,
    folder: Path,
    rounds: int | None = None,
    seed: int | None = None,
    threads: int = 2,
    evaluate: Path | None = None,
    nodes: list[int] | None = None,
) -> dict[str, Any]:
    """Runs a plan with the users of a log as devices, with the server and the gradients of a real fleet.

    folder: for ledgers, model.wisp, rounds.jsonl and report.html. A call resumes what the folder holds.
    rounds: stop after so many in all; None: all of the plan. seed: noise and choices repeat, and there is no guarantee.
    log: an SQLite log or a text of one, of which each user is a device. nodes: numbers of the devices.
    evaluate: a log on which the base and the result are compared, without privacy: the newest event of each user is
      found again. It should not be in `log`. Not for plans that train an adapter.

    Returns what PrivateFleet.run returns, and with `evaluate` also "quality": wisp.Quality of "base" and "fleet".
    """
    plan, model, log = os.fspath(plan), os.fspath(model), os.fspath(log)
    if evaluate is not None and json.loads(pathlib.Path(plan).read_text()).get("part") == "adapter":
        raise InvalidArgument(f"{plan}: trains an adapter, which `evaluate` cannot open; leave evaluate out, and use"
                              " `wisp evaluate --model BASE --adapter model.wisp`")
    fleet = PrivateFleet(plan, model, folder, seed=seed, round_seconds=math.inf)
    link = SimulatedLink(_core.FleetSimulation(plan, model, log, nodes=nodes, threads=threads))
    result = fleet.run_over(link, rounds=rounds)
    if evaluate is not None:
        tuned = pathlib.Path(folder) / "model.wisp"
        result["quality"] = {"base": quality_of(model, evaluate), "fleet": quality_of(tuned, evaluate)}
    return result
