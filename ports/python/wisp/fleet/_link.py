"""How a round reaches devices: what a link does, and which answers count. A link is Flower (_flower.py) or devices in
this process (_simulate.py)."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

#: Why an answer is missing: nothing came; it was not complete at the deadline; it is no answer to this request; it is
#: outside of the bound of the plan; it is a second one; another node sent it.
ABSENCES = ("absent", "late", "malformed", "out of bound", "twice", "foreign")
NONCE_BYTES = 16


@dataclasses.dataclass(frozen=True)
class Ask:
    """One message to many nodes. answer_bytes: of an answer's update; 0: no answer is expected."""

    plan: str
    plan_hash: str
    task: str
    round: int
    weights: bytes
    signature: bytes
    answer_bytes: int
    seconds: float

    def record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("plan", "task", "round", "weights", "signature")}

    def update_of(self, answer: Mapping[str, Any]) -> bytes | None:
        """The update of an answer to this message; None: it is something else."""
        kinds = {"plan": str, "task": str, "round": int, "nonce": bytes, "update": bytes}
        if {name: type(value) for name, value in answer.items()} != kinds:
            return None
        if (answer["plan"], answer["task"], answer["round"]) != (self.plan_hash, self.task, self.round):
            return None
        if len(answer["nonce"]) != NONCE_BYTES or len(answer["update"]) != self.answer_bytes:
            return None
        update: bytes = answer["update"]
        return update


class Link(Protocol):
    """Messages to nodes, and their answers. Whatever a node does is at most an absence, which the link counts."""

    #: Seconds between two calls of collect.
    tick: float
    #: True if nodes() are all devices that there are.
    whole: bool
    absences: collections.Counter[str]

    def nodes(self) -> list[int]:
        """The nodes that can be reached now."""

    def begin(self, ask: Ask) -> None:
        """Begins a message, and forgets the one before."""

    def push(self, nodes: list[int]) -> None:
        """Sends the message to these nodes, soon."""

    def collect(self) -> list[tuple[int, bytes]]:
        """Some of the answers that are there, each once: the node that was asked, and its update."""

    def waiting(self) -> int:
        """How many nodes have not answered."""

    def forget(self) -> None:
        """Ends the message. Whatever did not come is an absence."""
