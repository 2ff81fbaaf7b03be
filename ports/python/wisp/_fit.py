"""From a data frame to a recommender: wisp.fit, and an estimator with the parameters and methods of scikit-learn."""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from ._errors import InvalidArgument
from ._frames import Frame, read_column, read_events
from ._html import Row, make_table
from ._log import Log, Unit
from ._program import train
from ._ranking import Metric, Ranking
from ._recommender import Histories, Path, Recommender
from ._results import TrainingReport
from ._training import personalise

_log = logging.getLogger("wisp")
_OPEN = "trained without privacy (no epsilon was given): the model may reveal what single users did"


class FitParams(TypedDict, total=False):
    """The parameters of wisp.SequenceRecommender but the names of columns."""

    base: Path | None
    epsilon: float | None
    delta: float | None
    num_records_public: int | None
    unit: Unit
    ledger: Path | None
    budget_epsilon: float | None
    catalogue: Literal["public"] | None
    dataset: str
    epochs: float | None
    expected_batch: int | None
    learning_rate: float | None
    max_length: int
    width: int
    num_blocks: int
    allow_seen: bool
    hold_out: bool
    seed: int
    num_threads: int
    output: Path | None
    progress: bool


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class SequenceRecommender:
    """A recommender that learns in which order users choose items. Items and users are those of the frame: texts or
    whole numbers.

        shop = wisp.SequenceRecommender(user="who", item="sku", time="at").fit(orders)
        print(shop.recommend(["tea-mint"], k=5))
    """

    user: str = "user"  #: name of a column, as the next two
    item: str = "item"
    time: str = "time"
    base: Path | None = None  #: the model to start from; None: fresh weights
    epsilon: float | None = None  #: of this run; None: ordinary training, without privacy
    delta: float | None = None  #: required with epsilon, below 1 / num_records_public
    num_records_public: int | None = None  #: required with epsilon: how many records there are, as anybody may know
    unit: Unit = "user"  #: one record, which is protected as a whole, is all that one user did
    ledger: Path | None = None  #: required with epsilon: the file that remembers what was spent; never delete it
    budget_epsilon: float | None = None  #: limit over all runs on this data; None: the limit in the ledger, or none
    catalogue: Literal["public"] | None = None  #: "public": the list of items is no secret; for epsilon without a base
    dataset: str = "events"  #: name of the data in ledger and provenance: the same each time
    epochs: float | None = None  #: None: 30; private: 40, with a base 20
    expected_batch: int | None = None  #: records of a step; None: 64; private: a third of the records, with a base 64
    learning_rate: float | None = None  #: None: 0.002; private: 0.012, with a base 0.003
    max_length: int = 50  #: newest events that fresh weights read
    width: int = 32  #: of fresh weights, a multiple of 4
    num_blocks: int = 2  #: of fresh weights
    allow_seen: bool = False  #: lists may hold items of the history; a base says so itself
    hold_out: bool = False  #: True: each user's last event tests the model, and does not train it; not with epsilon
    seed: int = 1  #: of fresh weights and the order of records, never of private noise
    num_threads: int = 0  #: 0: at most 4
    output: Path | None = None  #: the model's file; None: the model stays in memory
    progress: bool = False  #: show it on standard error

    model_: Recommender = dataclasses.field(init=False)  #: after fit
    report_: TrainingReport | dict[str, Any] = dataclasses.field(init=False)  #: after fit: what training told
    is_private_: bool = dataclasses.field(init=False)  #: after fit
    _whole: bool = dataclasses.field(init=False)  # the items of the frame are whole numbers

    if not TYPE_CHECKING:  # type checkers see the fields alone

        def __getattr__(self, name: str) -> Any:
            why = ": it is not fitted; call fit first" if name in ("model_", "report_", "is_private_") else ""
            raise AttributeError(f"SequenceRecommender has no {name}{why}")

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls) if field.init]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name. deep: of scikit-learn; no parameter has parameters of its own."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters. A model that was fitted stays as it is."""
        for name, value in params.items():
            if name not in self._names():
                raise InvalidArgument(f"there is no parameter {name!r}; allowed are {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def fit(self, X: Frame, y: object = None) -> Self:
        """Trains on a frame of events: of pandas, of Polars, or a dict of lists. y: not read.

        Training from fresh weights, and ordinary training, run the program (wisp.train). Ctrl-C stops a run; what a
        private run had charged stays charged."""
        events = read_events(X, self.user, self.item, self.time)
        items = read_column(X, self.item)
        if self.epsilon is None:
            _log.warning(_OPEN)
        else:
            self._check_private()
        with tempfile.TemporaryDirectory(prefix="wisp-") as folder:
            data, made = os.path.join(folder, "events.db"), os.path.join(folder, "model.wisp")
            with Log.open(data) as log:
                log.append_all(zip(*events, strict=True))
            out = made if self.output is None else self.output
            if self.epsilon is not None and self.base is not None:
                report: TrainingReport | dict[str, Any] = self._tune(data, out)
            else:
                events_of = collections.Counter(events[0])
                report = self._train(data, out, sum(many > 1 + self.hold_out for many in events_of.values()))
            in_memory = self.output is None
            model = Recommender.from_bytes(pathlib.Path(made).read_bytes()) if in_memory else Recommender.open(out)
        self.model_, self.report_, self.is_private_ = model, report, self.epsilon is not None
        self._whole = all(not isinstance(one, str) for one in items)
        return self

    def _check_private(self) -> None:
        for name in ("delta", "num_records_public", "ledger"):
            if getattr(self, name) is None:
                raise InvalidArgument(f"{name} is None, and is required with epsilon")
        if self.hold_out:
            raise InvalidArgument("hold_out is True, whose test is not private; allowed with epsilon is False")
        if self.base is None and self.catalogue != "public":
            raise InvalidArgument(
                "without a base a private run takes the list of items from the data; catalogue='public' says that this "
                "list is no secret; otherwise give a base that has it"
            )

    def _tune(self, data: str, out: Path) -> TrainingReport:
        """The private run from a base."""
        names = ["epsilon", "delta", "num_records_public", "unit", "dataset", "num_threads", "progress"]
        names += ["budget_epsilon", "epochs", "expected_batch", "learning_rate"]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        assert self.base is not None and self.ledger is not None
        return personalise(self.base, data, out, self.ledger, **given)

    def _train(self, data: str, out: Path, records: int) -> dict[str, Any]:
        """Ordinary training, and private training from fresh weights; their recipes are shop's and ml-1m-dp-10's.
        records: how many there are, which only ordinary training may look at."""
        public = self.num_records_public or 0
        private = self.epsilon is not None
        training: dict[str, Any] = {
            "method": "ordinary",
            "loss": "position_mean",
            "epochs": self.epochs or 30,
            "expected_batch": self.expected_batch or min(64, max(1, records)),
            "seed": self.seed,
            "optimizer": {"kind": "adam", "learning_rate": self.learning_rate or 0.002, "decay": "linear"},
            "dropout": {"embedding": 0.2, "attention": 0.1, "residual": 0.2},
        }
        architecture = {
            "max_length": self.max_length,
            "width": self.width,
            "num_blocks": self.num_blocks,
            "inner_width": self.width,
            "embedding_scale": 6,
            "output_bias": "fixed",
        }
        recipe: dict[str, Any] = {"name": "wisp.fit", "architecture": architecture, "training": training}
        recipe["data"] = {"hold_out": "test" if self.hold_out else "nothing"}
        if self.base is None:
            recipe["data"]["allow_seen"] = self.allow_seen
        else:
            del recipe["architecture"]
        if private:
            architecture |= {"embedding_scale": 24, "num_heads": 4, "attention_slope": 1}
            recipe["initialisation"] = {"position_deviation": 0, "matrix_gain": 0.3}
            recipe["training"] = {
                "method": "phantom",
                "sampling": "poisson",
                "epochs": self.epochs or 40,
                "expected_batch": self.expected_batch or min(public, max(64, public // 3)),
                "num_records_public": public,
                "seed": self.seed,
                "optimizer": {"kind": "adam", "learning_rate": self.learning_rate or 0.012},
            }
            recipe["privacy"] = {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}
            recipe["privacy"] |= {"clipping": "automatic", "histogram_noise": 5, "steps_per_charge": 10}
            recipe["data"]["catalogue"] = "public"
        return train(
            recipe,
            data,
            out,
            progress=self.progress,
            model=self.base,
            dataset=self.dataset,
            threads=self.num_threads or None,
            ledger=self.ledger if private else None,
            budget=self.budget_epsilon if private else None,
        )

    def _keys(self, items: Iterable[Any]) -> list[str]:
        """Items of the frame as keys: numbers are keys too here, never the model's own numbers."""
        if isinstance(items, (str, bytes)):
            raise TypeError(f"history is {items!r}; allowed is a list of items")
        return [one if isinstance(one, str) else str(one) for one in items]

    def _items(self, numbers: Iterable[int]) -> list[Any]:
        keys = self.model_.keys(numbers)
        return [int(key) for key in keys] if self._whole else list(keys)

    def recommend(self, history: Iterable[Any], k: int = 10, *, allow_seen: bool | None = None) -> list[Any]:
        """The best k items after a history, whose items are as in the frame, the oldest first."""
        return self._items(self.model_.recommend(self._keys(history), k, allow_seen=allow_seen)[0].tolist())

    def similar_items(self, item: Any, k: int = 10) -> list[Any]:
        """The k items whose vectors are most like the item's."""
        return self._items(self.model_.similar_items(self._keys([item])[0], k)[0].tolist())

    def predict(self, X: Histories, k: int = 10) -> Any:
        """The best k items of every user of a frame, as a frame: Recommender.recommend_frame."""
        return self.model_.recommend_frame(X, k, user=self.user, item=self.item, time=self.time)

    def evaluate(
        self,
        X: Histories,
        k: int | Sequence[int] = 10,
        metrics: Metric | Iterable[Metric] = ("ndcg", "hit"),
        *,
        held_out: int = 1,
    ) -> Ranking:
        """Recommender.evaluate on a frame. Local only: not private."""
        return self.model_.evaluate(
            X, k, metrics, held_out=held_out, user=self.user, item=self.item, time=self.time
        )

    def score(self, X: Histories, y: object = None) -> float:
        """NDCG@10 on each user's last event, which should not have trained. Local only: not private."""
        return self.evaluate(X)["ndcg@10"]

    def save(self, path: Path) -> None:
        """Writes the model to a file, which every port of wisp opens. A file that exists is replaced at once."""
        of_file = self.model_._path
        data = self.model_._bytes() if of_file is None else pathlib.Path(of_file).read_bytes()
        part = pathlib.Path(f"{os.fsdecode(path)}.{os.getpid()}.part")
        try:
            part.write_bytes(data)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    @property
    def privacy(self) -> str:
        """Says in a sentence what the training promises."""
        if not self.is_private_:
            return _OPEN
        report = self.report_
        epsilon = report.epsilon if isinstance(report, TrainingReport) else report["epsilon"]
        return f"private: epsilon {epsilon:.4g} at delta {self.delta:g} for one {self.unit}, by this run"

    def __repr__(self) -> str:
        changed = (f for f in dataclasses.fields(self) if f.init and getattr(self, f.name) != f.default)
        return f"SequenceRecommender({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    def _repr_html_(self) -> str:
        rows: list[Row] = [(name, value) for name, value in self.get_params().items() if value is not None]
        fitted = hasattr(self, "model_")
        return make_table("SequenceRecommender", rows, self.privacy if fitted else "It is not fitted.") + (
            self.model_._repr_html_() if fitted else ""
        )


def fit(
    frame: Frame, *, user: str = "user", item: str = "item", time: str = "time", **params: Unpack[FitParams]
) -> SequenceRecommender:
    """Trains a recommender on a frame of events: SequenceRecommender(user=..., **params).fit(frame).

    user, item, time: the names of the columns. Without epsilon the model is trained without privacy, which a warning
    says. params: those of wisp.SequenceRecommender."""
    return SequenceRecommender(user=user, item=item, time=time, **params).fit(frame)
