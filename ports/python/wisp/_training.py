"""Private fine-tuning, and reading the ledger."""

from __future__ import annotations

import inspect
import json
import logging
import os
from collections.abc import Callable
from typing import Any, Literal, Protocol

from . import _core
from ._calls import no_argument
from ._errors import Cancelled
from ._html import Statement
from ._log import Unit
from ._progress import Progress, run
from ._recommender import Path
from ._results import TrainingMemory, TrainingReport, shown_epsilon

_log = logging.getLogger("wisp")


def _of_ledger(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.get(name) for name in ("ledger", "delta", "anchor")}


def _note_spent(stopped: BaseException, options: dict[str, Any]) -> None:
    """Adds to the exception of a run that was stopped what its ledger states, and for what."""
    if not os.path.exists(options["ledger"]):
        return
    try:
        budget = _core.budget(_of_ledger(options))
    except Exception:  # an anchor may raise anything; the run's own sentence is there already
        return
    stated, charged = (shown_epsilon(budget[name]) for name in ("epsilon_stated", "epsilon_charged"))
    if stated != charged:
        stopped.add_note(
            f"the ledger states epsilon {stated}, that of the whole plan, which holds however the run was stopped; "
            f"what was charged alone has epsilon {charged}, if the run was not stopped because of what it showed"
        )


def _trained(call: Callable[..., dict[str, Any]], options: dict[str, Any], progress: Progress) -> TrainingReport:
    ledger = options["ledger"]
    is_new = isinstance(ledger, (str, os.PathLike)) and not os.path.exists(ledger)
    try:
        made, steps = run(call, options, progress)
    except (KeyboardInterrupt, Cancelled) as stopped:
        _note_spent(stopped, options)
        raise
    if is_new:  # a mistyped path creates one too
        _log.warning("ledger %s was not there and was made: it counts from this run on", ledger)
    together: dict[str, Any] = {}
    try:
        together = _core.budget(_of_ledger(options))
    except Exception as error:  # an anchor may raise anything, but the run is complete
        _log.warning("what all runs on %s cost together could not be read: %s", options["ledger"], error)
    report = TrainingReport(
        **made,
        epsilon_together=together.get("epsilon_stated"),
        epsilon_charged=together.get("epsilon_charged"),
        delta_together=together.get("delta"),
        all_steps=steps,
    )
    # A run without records is not refused, because a refusal would reveal something about the data. Whoever started it
    # is told here, on the device.
    if report.num_records == 0:
        _log.warning(
            "%s had nothing to train on, and epsilon %s is spent: a record needs two events of items that the model "
            "knows (local only)",
            options["log"],
            shown_epsilon(report.epsilon),
        )
    return report


class Anchor(Protocol):
    """The ledger's progress, stored where restoring files does not restore it: the platform's key store, say.

    A true attribute `begin` allows that the anchor is missing although something was charged: for the first time
    only. Each ledger has its own anchor, which is given always or never.
    """

    def read(self) -> bytes:
        """The bytes of the last write, at most 64; b"" if there was no write."""

    def write(self, data: bytes) -> None:
        """Replaces the stored bytes, all or none; they are durable when it returns."""


def personalise(
    model: Path,
    log: Path,
    output: Path,
    ledger: Path,
    *,
    epsilon: float,
    delta: float,
    num_records_public: int,
    unit: Unit,
    budget_epsilon: float = 0,
    progress: Progress = None,
    expected_batch: int = 0,
    epochs: float = 0,
    learning_rate: float = 0,
    clipping_norm: float = 0,
    num_threads: int = 0,
    dataset: str | None = None,
    other_data: bool = False,
    times_per_second: int = 0,
    session_gap: int = 0,
    checkpoint: Path | None = None,
    checkpoint_every: int = 0,
    anchor: Anchor | None = None,
    uncharged_tuning: str | None = None,
    planned_runs: int = 0,
    adapter_rank: int = 0,
    adapter: Path | None = None,
    device: str | None = None,
    device_module: Path | None = None,
    arithmetic: str | None = None,
    device_bytes: int = 0,
) -> TrainingReport:
    """Fine-tunes a recommender with DP-SGD on a log, and writes the result to `output`.

    model: the start. log: a SQLite file (wisp.Log). output: may be `model`, which is replaced atomically at the end.
    ledger: the log's privacy ledger; created by the first charge. Never delete it.
    epsilon, delta: of this run; delta below 1 / num_records_public.
    num_records_public: a number of records that anybody may know. unit: defines one record, protected as a whole.
    budget_epsilon: limit over everything ever done with this log; 0: the limit already in the ledger, or none.
    progress: True prints a line on standard error; a function receives a wisp.Step, and its False stops the run.
    expected_batch, epochs, learning_rate (up to 1), clipping_norm: 0: 64, 20, 0.003, 1. num_threads: 0: at most 4.
    session_gap: seconds; for "session". times_per_second: of the log's times, with every unit; 1000: milliseconds.
    checkpoint: a file, private like the log; a run that stopped resumes from it with the same options.
    adapter_rank, adapter: train two small matrices beside each of the model's; `output` is then the adapter.
    planned_runs: number of runs that share `epsilon`. uncharged_tuning: choices made by looking at the data, in words.

    In the result, `epsilon` is that of this run, `epsilon_together` that of everything that was ever charged to the
    ledger, and of what a plan reserves for later.
    Ctrl-C stops within a second, or after the step: KeyboardInterrupt, with notes that say what is spent. What was
    charged stays charged, even if the run fails or is cancelled (Cancelled). PrivacyRefused: before anything is spent.
    """
    options = dict(locals())
    del options["progress"]
    return _trained(_core.personalise, options, progress)


def train_texts(
    model: Path,
    log: Path,
    output: Path,
    ledger: Path,
    *,
    record: Literal["line", "paragraph", "chunk"],
    epsilon: float,
    delta: float,
    num_records_public: int,
    unit: Unit,
    chunk_bytes: int = 0,
    max_length: int = 0,
    progress: Progress = None,
    **options: Any,
) -> TrainingReport:
    """`personalise` for a decoder that learns texts. log: a file of texts. record: the definition of one record in it.

    unit: "interaction", or "user" if each record is all that one user wrote. num_records_public: how many records
    anybody may know the file to have. chunk_bytes: for "chunk", 8 to 1048576. max_length: positions read of a record.
    Other options as those of `personalise`; another name raises TypeError.
    """
    given = {key: value for key, value in locals().items() if key not in ("progress", "options")}
    names = [*given, *(name for name in inspect.signature(personalise).parameters if name not in given)]
    for name in options:
        if name not in names:
            raise no_argument("train_texts", name, names)
    return _trained(_core.train_texts, {**given, **options}, progress)


def plan_training_memory(
    model: Path, num_records_public: int, *, num_threads: int = 0, device: str | None = None
) -> TrainingMemory:
    """Bytes that `personalise` will hold while it steps. Reads the model's description; spends nothing."""
    return TrainingMemory(**_core.plan_training_memory(dict(locals())))


def privacy_statement(ledger: Path, delta: float, *, anchor: Anchor | None = None) -> Statement:
    """The privacy statement over everything in the ledger, at delta, for people: a text, in a notebook tables."""
    return Statement(_core.privacy_statement({**locals(), "format": "text"}))


def privacy_statement_json(ledger: Path, delta: float, *, anchor: Anchor | None = None) -> dict[str, Any]:
    """`privacy_statement` as JSON, for programs."""
    statement: dict[str, Any] = json.loads(_core.privacy_statement({**locals(), "format": "json"}))
    return statement
