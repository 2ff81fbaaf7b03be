"""Results of calls: plain frozen dataclasses."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Sequence
from typing import Any, Literal

from ._frames import Kind, make_frame
from ._html import Row, Shown, axes_for


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """The properties of an open recommender."""

    num_items: int
    max_length: int  #: newest events of a history that the model reads
    width: int
    num_blocks: int
    num_retired: int  #: items that are never recommended
    allow_seen: bool  #: lists may hold items of the history, as the model's maker chose
    format: int  #: format version of the file
    has_keys: bool
    content_hash: int  #: equal files have equal hashes; with an adapter, of both files
    file_bytes: int


@dataclasses.dataclass(frozen=True)
class Provenance:
    """One run that changed a model's weights; "" where nothing is known."""

    description: str
    mechanisms: str  #: its private releases, a sentence a line; "": no private mechanism
    epsilon: float  #: NaN: no guarantee
    delta: float
    accountant: str
    privacy_unit: str
    adjacency: str
    sampling: str
    dataset: str
    date: str  #: ISO 8601
    steps: int
    base_hash: int  #: content hash of the model that the run started from; 0: none
    secure_noise: bool  #: False: there is no guarantee


@dataclasses.dataclass(frozen=True)
class ModelMemory:
    """Bytes that an open model will hold."""

    file_bytes: int  #: mapped: clean pages that the system shares and may drop
    activation_bytes: int
    packed_weights_bytes: int
    score_bytes: int
    name_bytes: int
    total_bytes: int  #: everything but the file
    device_bytes: int  #: the part of these in a device's memory
    cold_start_bytes: int  #: in addition, from the first empty history (cold start) on


@dataclasses.dataclass(frozen=True)
class TrainingMemory:
    """Bytes that private fine-tuning will hold while it steps."""

    weight_bytes: int
    packed_weights_bytes: int
    optimizer_bytes: int
    gradient_sum_bytes: int
    activation_bytes: int
    record_gradient_bytes: int
    list_bytes: int
    total_bytes: int


@dataclasses.dataclass(frozen=True)
class TextInfo:
    """The properties of an open model of texts."""

    width: int  #: length of an embedding; 0: the model is a decoder
    num_classes: int  #: 0: it is not a classifier
    max_length: int  #: tokens of a text, including those that the tokenizer adds around it
    num_tokens: int
    is_decoder: bool
    bytes: int  #: bytes held beside the mapped file


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that was generated, without its prompt."""

    text: str
    num_tokens: int  #: tokens generated
    prompt_tokens: int  #: tokens of the prompt
    #: max_new_tokens was reached; the model's end token; one of `stop`; no position left; the callback
    ended: Literal["length", "token", "stop", "context", "caller"]


@dataclasses.dataclass(frozen=True)
class LogCounts:
    """Counts of what a log holds. Local only: not private."""

    events: int
    users: int
    items: int
    oldest: int  #: time; 0 in an empty log
    newest: int
    unreadable: int  #: events whose user, item or time training cannot read


@dataclasses.dataclass(frozen=True)
class Step:
    """The progress of a training run."""

    step: int
    num_steps: int
    loss: float  #: mean per position. Local only: not private, do not send it anywhere
    epsilon: float  #: spent by this run so far; NaN while unknown


def _plot_steps(steps: Sequence[Step], axes: Any) -> Any:
    """Draws the loss of each step and, on a second axis, the epsilon by then, if there is one. Local only: the loss is
    not private."""
    axes = axes_for(axes)
    at = [one.step for one in steps]
    axes.plot(at, [one.loss for one in steps], label="loss (local only)")
    axes.set_xlabel("step")
    axes.set_ylabel("loss (local only)")
    if all(math.isnan(one.epsilon) for one in steps):
        return axes
    right = axes.twinx()
    right.plot(at, [one.epsilon for one in steps], color="C1", label="epsilon of the run")
    right.set_ylabel("epsilon of the run so far")
    right.set_ylim(bottom=0)
    return axes


@dataclasses.dataclass(frozen=True)
class TrainingReport(Shown):
    """The outcome of a run of private fine-tuning.

    From `num_records` on numbers are counted on the log. Local only: not private, do not send them anywhere.
    """

    num_steps: int
    planned_steps: int  #: above num_steps: the ledger's limit allowed no more
    resumed_from: int  #: the step of the checkpoint that the run resumed from; 0: none
    epsilon: float  #: the epsilon that may be stated for this run, at its delta
    #: of everything that was ever charged to the ledger, and of what a plan reserves for later;
    #: None: it could not be read
    epsilon_together: float | None
    #: of what was charged alone, as in wisp.Budget; None: it could not be read
    epsilon_charged: float | None
    delta_together: float | None  #: the delta of these two: the limit's, or that of this run
    noise_multiplier: float
    checkpoint_failed: bool  #: the last checkpoint could not be written, and the run continued without it
    on_device: bool  #: False: on the processor
    num_records: int  #: records trained on
    records_too_short: int  #: left out: fewer than two events that the model knows
    gradients_dropped: int  #: times a record was left out of a step: its gradient could not be bounded
    num_events: int  #: in the log
    unknown_events: int  #: left out: their items are unknown to the model
    unknown_items: int
    bad_rows: int  #: left out: user, item or time is missing or invalid
    all_steps: list[Step] = dataclasses.field(default_factory=list, repr=False, compare=False)  #: of this call

    def plot(self, axes: Any = None) -> Any:
        """Draws the loss and the epsilon of each step; returns matplotlib's axes. The loss is local only."""
        return _plot_steps(self.all_steps, axes)

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [
            ("steps", f"{self.num_steps} of {self.planned_steps}"),
            ("epsilon of this run", shown_epsilon(self.epsilon)),
            ("noise multiplier", f"{self.noise_multiplier:.4g}"),
        ]
        if self.epsilon_together is not None and self.epsilon_charged is not None:
            rows += _spent(self.epsilon_together, self.epsilon_charged, self.delta_together or math.nan)
        if self.resumed_from:
            rows.append(("resumed from step", self.resumed_from))
        rows.append(("records, events (local only)", f"{self.num_records}, {self.num_events}"))
        return "Private run", rows, "What is local only is not private: do not send it anywhere."


class FitReport(dict[str, Any], Shown):
    """The outcome of a run of the program, by the names of its JSON. `not_private` names the figures that are local
    only."""

    def __init__(self, made: dict[str, Any], all_steps: list[Step]) -> None:
        super().__init__(made)
        self.all_steps = all_steps  #: those that the program told, of which there is one a second or so

    def plot(self, axes: Any = None) -> Any:
        """Draws the loss and the epsilon of each step; returns matplotlib's axes. The loss is local only."""
        return _plot_steps(self.all_steps, axes)

    def _table(self) -> tuple[str, Sequence[Row], str]:
        local = self.get("not_private", ())
        rows: list[Row] = [
            (f"{name} (local only)" if name in local else name, value)
            for name, value in self.items()
            if name != "not_private"
        ]
        return "Training", rows, "What is local only is not private: do not send it anywhere."


@dataclasses.dataclass(frozen=True)
class Plan(Shown):
    """The expected cost and gain of a plan of runs."""

    runs: int
    evaluations: int
    steps_per_run: int
    expected_batch: int
    outlook: Literal["gain", "some gain", "hopeless", "new items only"]
    training_noise: float  #: multiplier
    evaluation_noise: float  #: multiplier; 0: no evaluation, or a local one
    noise_to_signal: float
    found_gain: float  #: the smallest gain, in NDCG, detected in four of five plans; NaN: none can be
    bytes: int  #: bytes that a run holds while it steps, beside the log
    cpu_seconds_of_run: float  #: these four are measured on this device with measure=True; else 0
    seconds_of_run: float
    cpu_seconds_of_evaluation: float
    seconds_of_evaluation: float
    was_there: bool  #: the ledger already had the plan, and nothing was written
    noise_of_an_item: float
    succession_releases: int  #: of the counts of which item follows which; 0: none
    succession_share: float  #: of the plan's budget, which these releases take
    succession_noise: float  #: multiplier of a release
    succession_signal: float  #: an item's counts in a release, beside its noise
    bias_weight_releases: int  #: of the weight of the output bias; 0: none
    bias_weight_share: float  #: of the plan's budget, which these releases take
    bias_weight_noise: float  #: multiplier of a release

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [
            ("outlook", self.outlook),
            ("runs", self.runs),
            ("evaluations", self.evaluations),
            ("steps of a run", self.steps_per_run),
            ("records of a step, expected", self.expected_batch),
            ("noise of training, a multiplier", f"{self.training_noise:.4g}"),
            ("noise of an evaluation, a multiplier", f"{self.evaluation_noise:.4g}"),
            ("smallest gain that is found, in NDCG", f"{self.found_gain:.4f}"),
            ("memory of a run", f"{self.bytes:,} bytes"),
        ]
        if self.seconds_of_run:
            rows.append(("seconds of a run, here", f"{self.seconds_of_run:.1f}"))
        return "Plan", rows, "It was there before; nothing was written." if self.was_there else ""


def _spent(stated: float, charged: float, delta: float) -> list[Row]:
    """The rows of what a ledger says is spent: of a plan that is left both figures, the whole plan's first."""
    at = f" (delta {delta:.3g})"
    if charged == stated:
        return [("epsilon of all that was charged", shown_epsilon(stated) + at)]
    return [
        ("epsilon stated: of the whole plan, however it stops", shown_epsilon(stated) + at),
        ("epsilon of what was charged, if results stopped nobody", shown_epsilon(charged) + at),
    ]


@dataclasses.dataclass(frozen=True)
class Budget(Shown):
    """What a ledger says is spent and left.

    epsilon_stated is what may be stated. Under a plan, and a single run is a plan of its steps, it is the epsilon of
    the whole plan from the first charge on. epsilon_charged is that of what was charged, as if it had been planned: it
    holds only if nobody stopped because of what training showed.
    """

    epsilon_stated: float  #: an upper bound of everything so far; inf: it cannot be bounded
    epsilon_charged: float  #: of what was charged; equal to epsilon_stated where no plan has something left
    delta: float
    epsilon_limit: float  #: NaN: the ledger has no limit
    has_plan: bool  #: the ledger has a plan of runs, and the next three are its
    runs_left: int
    steps_left: int
    evaluations_left: int
    succession_releases_left: int  #: with has_plan
    bias_weight_releases_left: int  #: with has_plan

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows = _spent(self.epsilon_stated, self.epsilon_charged, self.delta)
        rows.append(("limit", "none" if math.isnan(self.epsilon_limit) else f"{self.epsilon_limit:g}"))
        if self.has_plan:
            left = (self.runs_left, self.steps_left, self.evaluations_left)
            rows += zip(("runs left", "steps left", "evaluations left"), left, strict=True)
        return "Budget", rows, ""


@dataclasses.dataclass(frozen=True)
class Spent:
    """The budget after one of a ledger's charges."""

    time: datetime.datetime  #: of the charge, in UTC
    charges: int  #: so many charges by then
    epsilon_stated: float  #: as in wisp.Budget
    epsilon_charged: float  #: as in wisp.Budget


@dataclasses.dataclass(frozen=True)
class BudgetHistory(Shown):
    """A ledger's budget over time."""

    points: list[Spent]  #: the oldest first
    delta: float
    epsilon_limit: float  #: NaN: the ledger has no limit

    def plot(self, axes: Any = None) -> Any:
        """Draws what was stated, what was charged, and the limit over time; returns matplotlib's axes."""
        axes = axes_for(axes)
        at = [one.time for one in self.points]
        axes.step(at, [one.epsilon_stated for one in self.points], where="post", label="stated")
        axes.step(at, [one.epsilon_charged for one in self.points], where="post", label="charged")
        if not math.isnan(self.epsilon_limit):
            axes.axhline(self.epsilon_limit, color="black", linestyle=":", label="limit")
        axes.set_xlabel("time of the charge (UTC)")
        axes.set_ylabel(f"epsilon at delta {self.delta:.3g}")
        axes.set_ylim(bottom=0)
        axes.legend()
        return axes

    def to_frame(self, to: Kind = "pandas") -> Any:
        """The points as a data frame of pandas or Polars, or as a dict of lists."""
        names = [field.name for field in dataclasses.fields(Spent)]
        return make_frame({name: [getattr(one, name) for one in self.points] for name in names}, to)

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [
            (f"{one.time:%Y-%m-%d %H:%M:%S}, {one.charges} charges", f"epsilon {shown_epsilon(one.epsilon_stated)}")
            for one in self.points
        ]
        return f"Budget over time, at delta {self.delta:.3g}", rows, ""


@dataclasses.dataclass(frozen=True)
class RunReport(Shown):
    """The outcome of a run.

    From `num_events` on numbers are counted on the log. Local only: not private, do not send them anywhere. The same
    holds for `served`, `changed`, `verdict` and `line()` if the plan's evaluation is "local".
    """

    served: Literal["base", "earlier", "newest"]
    changed: bool  #: the file at `output` was replaced: open it again
    evaluated: bool  #: this run evaluated the candidate
    verdict: Literal["undecided", "better", "worse"]  #: after the newest evaluation
    on_device: bool
    steps: int  #: steps of this run; 0: the plan has none left
    #: steps of the candidate over all runs; from 0 again after a lost checkpoint, a rebase, or a change of the plan
    #: that costs noise, although what was learned stays
    steps_of_model: int
    runs_left: int
    steps_left: int
    evaluations_left: int
    sentences: list[tuple[Literal["info", "warning"], str]]  #: for the app's own log
    num_events: int
    unknown_events: int
    unknown_items: int
    bad_rows: int
    num_records: int
    all_steps: list[Step] = dataclasses.field(default_factory=list, repr=False, compare=False)  #: of this run

    def plot(self, axes: Any = None) -> Any:
        """Draws the loss and the epsilon of each step; returns matplotlib's axes. The loss is local only."""
        return _plot_steps(self.all_steps, axes)

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [
            ("served", self.served),
            ("the file was replaced", "yes" if self.changed else "no"),
            ("steps of this run, of the model", f"{self.steps}, {self.steps_of_model}"),
            ("runs, steps, evaluations left", f"{self.runs_left}, {self.steps_left}, {self.evaluations_left}"),
        ]
        if self.evaluated:
            rows.append(("evaluated", self.verdict))
        rows += self.sentences
        return "Planned run", rows, ""

    def line(self) -> str:
        """The run in one line."""
        evaluated = f", evaluated {self.verdict}" if self.evaluated else ""
        return f"{self.steps} steps{evaluated}; the {self.served} model is served; {self.runs_left} runs left"


@dataclasses.dataclass(frozen=True)
class Quality(Shown):
    """The quality of a model on a log. Local only: not private, do not send it anywhere."""

    ndcg_at_10: float
    hit_at_10: float
    num_users: int  #: users with three events or more that the model knows

    def _table(self) -> tuple[str, Sequence[Row], str]:
        rows: list[Row] = [("ndcg@10", f"{self.ndcg_at_10:.4f}"), ("hit@10", f"{self.hit_at_10:.4f}")]
        return "Each user's last event", [*rows, ("users", self.num_users)], "Local only: not private."


@dataclasses.dataclass(frozen=True)
class Rebased:
    """The part of what was learned that a new base keeps."""

    carried: bool  #: False: nothing was learned yet, or training starts over
    shared_items: int
    lost_items: int


def shown_epsilon(epsilon: float) -> str:
    """Formats two decimals, rounded up: an epsilon is never shown smaller than it is."""
    if not math.isfinite(epsilon):
        return "not known" if math.isnan(epsilon) else "not bounded"
    return f"{math.ceil(epsilon * 100) / 100:.2f}"
