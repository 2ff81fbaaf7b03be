"""The rounds of a fleet's server, whatever carries its messages. The library (runtime/fleet/server) sums, draws noise
and charges; this asks, waits and writes down."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core
from .._errors import InvalidArgument, IoError
from .._recommender import Path
from . import _flower, _report
from ._link import Ask, Link

_LOOK_SECONDS = 5.0  # between two looks for nodes that came online
_GAIN_BYTES = 8  # of an answer to "evaluate"


class Server(_core.FleetServer):
    """The library's server, and its plan as a dictionary."""

    def __init__(self, plan: str, model: str, folder: str, seed: int | None) -> None:
        super().__init__(plan, model, folder, seed=seed)
        self.plan_text: str = self.look()["plan"]
        self.plan: dict[str, Any] = json.loads(self.plan_text)

    @property
    def round(self) -> int:
        """The next round, from 0; after the last one the number of rounds."""
        number: int = self.look()["round"]
        return number


class Journal:
    """rounds.jsonl: one line a round or evaluation, durable. Counts in it are of devices, without noise: it is for the
    operator."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.lines: list[dict[str, Any]] = []
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a line that a crash cut off
                self.lines.append(json.loads(line))
        if text and not text.endswith("\n"):
            self._append("\n")

    def add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        self._append(json.dumps(line) + "\n")

    def _append(self, text: str) -> None:
        with open(self._path, "a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "server.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IoError(f"{folder}: another server works in this folder") from None
        yield


def _sign(key: Path | None, text: str) -> bytes:
    """The operator's signature of a round; empty without a key."""
    if key is None:
        return b""
    hashes = _flower.flower("cryptography.hazmat.primitives.hashes")
    curves = _flower.flower("cryptography.hazmat.primitives.asymmetric.ec")
    load = _flower.flower("cryptography.hazmat.primitives.serialization").load_pem_private_key
    private = load(pathlib.Path(key).read_bytes(), password=None)
    if not isinstance(private, curves.EllipticCurvePrivateKey) or private.curve.name != "secp256r1":
        raise InvalidArgument(f"{os.fspath(key)}: operator_key is no private key on P-256, which devices check")
    signature: bytes = private.sign(text.encode(), curves.ECDSA(hashes.SHA256()))
    return signature


class PrivateFleet:
    """The server of a fleet: it follows a plan that `wisp fleet plan` made, and a crash or a restart loses no round.

    plan, model: the files of the plan and of the base. folder: of the fleet's ledgers, its model and its report; one
    plan, one folder. Paths should be absolute if Flower starts the app.
    operator_key: a PEM file with a private key on P-256, which signs plan and weights of each round for the devices.
    seed: noise and choices repeat, and there is NO guarantee: for tests.
    early: a round ends before its deadline once as many nodes as the plan has devices are online and all that were
      asked have answered. False for phones: each round lasts until its deadline.
    least_online: a round begins when so many nodes are online; one that hardly anybody answers is noise alone.
    round_seconds: the deadline of a round; None: the plan's.
    report: write report.html and statement.txt at the end.
    """

    def __init__(
        self,
        plan: Path = "plan.json",
        model: Path = "base.wisp",
        folder: Path = "films",
        *,
        operator_key: Path | None = None,
        seed: int | None = None,
        early: bool = True,
        least_online: int = 1,
        round_seconds: float | None = None,
        report: bool = True,
    ) -> None:
        self._plan, self._model, self._folder = os.fspath(plan), os.fspath(model), pathlib.Path(folder)
        self._key, self._seed, self._early = operator_key, seed, early
        self._least, self._seconds, self._reports = least_online, round_seconds, report
        self._say: Callable[[str], None] = lambda sentence: None

    def server_app(self) -> Any:
        """The fleet as a ServerApp of Flower, which prints a line a round."""
        return _flower.server_app(lambda grid: self.run(grid, say=lambda sentence: print(sentence, flush=True)))

    def run(self, grid: Any, *, rounds: int | None = None, say: Callable[[str], None] | None = None) -> dict[str, Any]:
        """Runs the rounds that are left, over a Grid of Flower. rounds: stop after so many in all. say: gets a sentence
        a round.

        Returns the fleet's plan, round, figures (epsilon_readers, epsilon_device, delta), what every round and
        evaluation did ("rounds"), and the path of its model.
        """
        return self.run_over(_flower.link_to(grid), rounds=rounds, say=say)

    def run_over(
        self, link: Link, *, rounds: int | None = None, say: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        """`run` over any link."""
        self._say = say or self._say
        with _locked(self._folder):
            server = Server(self._plan, self._model, str(self._folder), self._seed)
            journal = Journal(self._folder / "rounds.jsonl")
            last = server.plan["rounds"] if rounds is None else min(rounds, server.plan["rounds"])
            while True:
                if server.look()["evaluation_due"]:
                    self._evaluate(server, link, journal)
                if server.round >= last:
                    break
                self._round(server, link, journal)
            model = self._folder / "model.wisp"
            server.write_model(str(model))
            if self._reports:
                _report.write(self._folder, server, journal.lines)
            if server.look()["done"]:
                self._keep(server, link, journal)
            return {
                "plan": server.plan,
                "round": server.round,
                "figures": _report.figures_of(server),
                "rounds": journal.lines,
                "model": str(model),
            }

    def _round(self, server: Server, link: Link, journal: Journal) -> None:
        number = server.round
        while (online := len(link.nodes())) < self._least:
            self._say(f"round {number + 1} waits until {self._least} devices are online; {online} are")
            time.sleep(_LOOK_SECONDS)
        server.begin()
        line = self._ask(server, link, "train", server.plan["num_weights"] * server.plan["bits"] // 8, server.add)
        server.end()
        journal.add({"round": number, **line})
        self._tell(f"round {number + 1} of {server.plan['rounds']}", line)

    def _evaluate(self, server: Server, link: Link, journal: Journal) -> None:
        server.begin(evaluation=True)
        line = self._ask(server, link, "evaluate", _GAIN_BYTES, server.add)
        found = server.end()
        journal.add({**line, **found})
        self._tell(
            f"evaluation after {server.round} rounds: gain {found['mean_gain']:+.4f} NDCG@10, noise"
            f" {found['deviation']:.4f}, {found['verdict']}",
            line,
        )

    def _keep(self, server: Server, link: Link, journal: Journal) -> None:
        """Sends the last model to the devices that are online, unless the last evaluation found it worse."""
        verdicts = [line["verdict"] for line in journal.lines if "verdict" in line]
        if verdicts[-1:] == ["worse"]:
            self._say("the model was found worse than the base, and is not sent to the devices")
        else:
            line = self._ask(server, link, "keep", 0, None)
            self._say(f"the model was sent to {line['asked']} devices")

    def _tell(self, what: str, line: dict[str, Any]) -> None:
        absent = ", ".join(f"{count} {why}" for why, count in line["absent"].items())
        self._say(
            f"{what}: {line['added']} of {line['asked']} devices in {line['seconds']} s" + (absent and f" ({absent})")
        )

    def _ask(self, server: Server, link: Link, task: str, answer_bytes: int, add: Any) -> dict[str, Any]:
        """One message to the nodes that the server asks, until its deadline. `add` takes an answer."""
        plan_hash = hashlib.sha256(server.plan_text.encode()).hexdigest()
        weights = server.weights()
        signed = "\n".join(("wisp fleet", task, str(server.round), plan_hash, hashlib.sha256(weights).hexdigest()))
        seconds = server.plan["round_seconds"] if self._seconds is None else self._seconds
        ask = Ask(
            plan=server.plan_text,
            plan_hash=plan_hash,
            task=task,
            round=server.round,
            weights=weights,
            signature=_sign(self._key, signed),
            answer_bytes=answer_bytes,
            seconds=seconds,
        )
        began = look = time.monotonic()
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        looked: set[int] = set()  # nodes that this message was decided for
        asked = added = 0
        link.begin(ask)
        try:
            while (now := time.monotonic()) < began + seconds:
                if now >= look:
                    look = now + _LOOK_SECONDS
                    new = [node for node in link.nodes() if node not in looked]
                    looked.update(new)
                    wanted = new if task == "keep" else [n for n, asks in zip(new, server.asks(new)) if asks]
                    asked += len(wanted)
                    link.push(wanted)
                for node, update in link.collect():
                    word = add(node, update)
                    added += word == "added"
                    if word != "added":
                        link.absences[word] += 1
                is_whole = link.whole or task == "keep" or len(looked) >= server.plan["devices"]
                if self._early and is_whole and link.waiting() == 0:
                    break
                time.sleep(min(link.tick, max(0, began + seconds - time.monotonic())))
        finally:
            link.forget()
        absent = {why: count for why, count in link.absences.items() if count}
        return {
            "asked": asked,
            "added": added,
            "absent": absent,
            "seconds": round(time.monotonic() - began, 1),
            "bytes_down": asked * len(weights),
            "bytes_up": added * answer_bytes,
            "time": at,
        }
