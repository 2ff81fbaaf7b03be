"""What tests of fleets share: links that a test scripts, and what a folder holds."""

from __future__ import annotations

import collections
import json
import pathlib
from collections.abc import Callable

from conftest import CAFE
from wisp.fleet._server import Server


def weights_of(plan: pathlib.Path, folder: pathlib.Path, seed: int) -> bytes:
    """The weights that the fleet in a folder has learned."""
    server = Server(str(plan), str(CAFE), str(folder), seed)
    weights: bytes = server.weights()
    server.look()
    return weights


def journal_of(folder: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


class ScriptedLink:
    """answers(node, ask) gives the updates that come from a node, at once."""

    tick, whole = 0.01, True

    def __init__(self, nodes: list[int], answers: Callable[..., list[bytes]]) -> None:
        self._nodes, self._answers, self.asks = nodes, answers, []
        self.absences: collections.Counter[str] = collections.Counter()

    def nodes(self) -> list[int]:
        return self._nodes

    def begin(self, ask) -> None:
        self.asks.append(ask)
        self.asked: list[int] = []
        self.came: list[tuple[int, bytes]] = []
        self.absences.clear()

    def push(self, nodes: list[int]) -> None:
        for node in nodes:
            answers = self._answers(node, self.asks[-1])
            self.asked += [] if answers or not self.asks[-1].answer_bytes else [node]
            self.came += [(node, answer) for answer in answers]

    def collect(self) -> list[tuple[int, bytes]]:
        came, self.came = self.came, []
        return came

    def waiting(self) -> int:
        return len(self.asked)

    def forget(self) -> None:
        self.absences["absent"] += len(self.asked)
