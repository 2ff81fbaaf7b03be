"""Results of calls: plain frozen dataclasses."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """The properties of an open recommender."""

    num_items: int
    max_length: int  #: of a history that is read: the newest events
    width: int
    num_blocks: int
    num_retired: int  #: items that are never recommended
    allow_seen: bool  #: its lists may hold items of the history, as whoever made it chose
    format: int  #: of the file
    has_keys: bool
    content_hash: int  #: equal files have equal hashes; with an adapter of both
    file_bytes: int


@dataclasses.dataclass(frozen=True)
class Provenance:
    """One run that changed a model's weights; "" where nothing is known."""

    description: str
    mechanisms: str  #: what was released, a sentence a line; "": no private mechanism
    epsilon: float  #: NaN: no guarantee
    delta: float
    accountant: str
    privacy_unit: str
    adjacency: str
    sampling: str
    dataset: str
    date: str  #: ISO 8601
    steps: int
    base_hash: int  #: content hash of the model that the run began with; 0: none
    secure_noise: bool  #: without it there is no guarantee


@dataclasses.dataclass(frozen=True)
class ModelMemory:
    """Bytes that an open model will hold."""

    file_bytes: int  #: mapped: clean pages that the system shares and may drop
    activation_bytes: int
    packed_weights_bytes: int
    score_bytes: int
    name_bytes: int
    total_bytes: int  #: of all but the file
    device_bytes: int  #: of these, in a device's memory
    newcomer_bytes: int  #: beside these, from the first history of none on


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

    width: int  #: numbers of an embedding; 0: it is a decoder
    num_classes: int  #: 0: it is no classifier
    max_length: int  #: tokens of a text, those that the tokenizer puts around it included
    num_tokens: int
    is_decoder: bool
    bytes: int  #: held beside the mapped file


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that was generated, without its prompt."""

    text: str
    num_tokens: int  #: that were generated
    prompt_tokens: int  #: that were read
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
    epsilon: float  #: spent by this run so far; NaN while not yet known


@dataclasses.dataclass(frozen=True)
class TrainingReport:
    """The outcome of a run of private fine-tuning.

    From `num_records` on numbers are counted on the log. Local only: not private, do not send them anywhere.
    """

    num_steps: int
    planned_steps: int  #: above num_steps: the ledger's limit allowed no more
    resumed_from: int  #: the step of the checkpoint that was gone on from; 0: there was none
    epsilon: float  #: what may be stated of this run, at its delta
    #: of everything that was ever charged to the ledger, and of what a plan reserves for later;
    #: None: it could not be read
    epsilon_together: float | None
    delta_together: float | None  #: of that: the limit's, or that of this run
    noise_multiplier: float
    checkpoint_failed: bool  #: the last checkpoint could not be written; the run went on without
    on_device: bool  #: else on the processor
    num_records: int  #: trained on
    records_too_short: int  #: left out: of fewer than two events that the model knows
    gradients_dropped: int  #: how often a record was left out of a step
    num_events: int  #: in the log
    unknown_events: int  #: left out: of items that the model does not know
    unknown_items: int
    bad_rows: int  #: left out: without a user, an item or a time that can be one


@dataclasses.dataclass(frozen=True)
class Plan:
    """The expected cost and gain of a plan of nights."""

    runs: int
    judgings: int
    steps_per_run: int
    expected_batch: int
    records_that_train: int
    records_that_judge: int
    outlook: Literal["gain", "some gain", "hopeless", "new items only"]
    training_noise: float  #: multiplier
    judging_noise: float  #: multiplier; 0: nobody judges, or locally
    noise_to_signal: float
    found_gain: float  #: the smallest gain, in NDCG, found in four lives of five; NaN: none is
    bytes: int  #: that a night holds while it steps, beside the log
    cpu_seconds_of_run: float  #: these four with measure=True, of this device; else 0
    seconds_of_run: float
    cpu_seconds_of_judging: float
    seconds_of_judging: float
    was_there: bool  #: the ledger had the plan, and nothing was written
    noise_of_an_item: float


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a ledger says is spent and left."""

    epsilon_stated: float  #: of everything so far, an upper bound; inf: it cannot be bounded
    delta: float
    epsilon_limit: float  #: NaN: the ledger has none
    has_plan: bool  #: the next three are of a plan for a life
    runs_left: int
    steps_left: int
    judgings_left: int


@dataclasses.dataclass(frozen=True)
class NightReport:
    """The outcome of a night.

    From `num_events` on numbers are counted on the log. Local only: not private, do not send them anywhere. The same
    holds for `served`, `changed`, `verdict` and `line()` if the plan's judge is "local".
    """

    served: Literal["base", "earlier", "newest"]
    changed: bool  #: the file at `output` is another one than before: open it anew
    judged: bool  #: this night
    verdict: Literal["undecided", "better", "worse"]  #: after the newest judging
    on_device: bool
    steps: int  #: of this night; 0: the plan has none left
    steps_of_model: int
    runs_left: int
    steps_left: int
    judgings_left: int
    sentences: list[tuple[Literal["info", "warning"], str]]  #: for the app's own log
    num_events: int
    unknown_events: int
    unknown_items: int
    bad_rows: int
    num_records: int

    def line(self) -> str:
        """The night in one line."""
        judged = f", judged {self.verdict}" if self.judged else ""
        return f"{self.steps} steps{judged}; the {self.served} model is served; {self.runs_left} nights left"


@dataclasses.dataclass(frozen=True)
class Quality:
    """The quality of a model on a log. Local only: not private, do not send it anywhere."""

    ndcg_at_10: float
    hit_at_10: float
    num_users: int  #: of three events or more that the model knows


@dataclasses.dataclass(frozen=True)
class Rebased:
    """The part of what was learned that a new base keeps."""

    carried: bool  #: False: nothing was learned yet, or training begins anew
    shared_items: int
    lost_items: int


def shown_epsilon(epsilon: float) -> str:
    """Formats two decimals, rounded up: an epsilon is never shown smaller than it is."""
    if not math.isfinite(epsilon):
        return "not known" if math.isnan(epsilon) else "not bounded"
    return f"{math.ceil(epsilon * 100) / 100:.2f}"
