"""From a data frame to a recommender: wisp.fit, and an estimator with the parameters and methods of scikit-learn."""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import pathlib
import re
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from ._errors import InvalidArgument, InvalidData, IoError
from ._folder import working_folder
from ._frames import Frame, Rows, read_column, read_events, read_key
from ._html import Row, make_table
from ._log import Log, Unit
from ._process import log_line, show_line
from ._program import train
from ._ranking import Metric, Ranking
from ._recommender import Histories, Path, Recommender
from ._results import FitReport, Step, TrainingReport, shown_epsilon
from ._training import personalise

_log = logging.getLogger("wisp")
_OPEN = "trained without privacy (no epsilon was given): the model may reveal what single users did"
_FITTED = ("model_", "report_", "is_private_", "privacy")
_PRIVATE_ONLY = ("delta", "num_records_public", "unit", "ledger", "budget_epsilon", "catalogue", "other_data")
_STEP = re.compile(r"train (\d+)/(\d+) loss ([0-9.]+)(?:.*\bepsilon ([0-9.]+))?")


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
    dataset: str | None
    other_data: bool
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

    Arguments:
      user, item, time: the names of the columns.
      base: the model to start from; None: fresh weights.
      epsilon: of this run; None: ordinary training, without privacy.
      delta: required with epsilon, below 1 / num_records_public.
      num_records_public: required with epsilon: how many records there are, as anybody may know.
      unit: "user": one record, which is protected as a whole, is all that one user did; "day": what one did on a day.
      ledger: required with epsilon: the file that remembers what was spent; never delete it.
      budget_epsilon: limit over all runs on this data; None: the limit in the ledger, or none.
      catalogue: "public": the list of items is no secret; for epsilon without a base.
      dataset: the data's name in ledger and provenance, the same each time; required with epsilon; else "events".
      other_data: True: data of this name that the base learned from is other data.
      epochs: None: 30; private: 40, with a base 20.
      expected_batch: records of a step; None: 64; private: a third of the records, with a base 64.
      learning_rate: None: 0.002; private: 0.012, with a base 0.003.
      max_length: newest events that fresh weights read.
      width: of fresh weights, a multiple of 4.
      num_blocks: of fresh weights.
      allow_seen: lists may hold items of the history; a base says so itself.
      hold_out: True: each user's last event tests the model, and does not train it; not with epsilon.
      seed: of fresh weights and the order of records, never of private noise.
      num_threads: 0: at most 4.
      output: the model's file; None: the model stays in memory.
      progress: show it on standard error.

    After fit: model_ is the wisp.Recommender, report_ what training told, is_private_ whether it has a guarantee.
    """

    user: str = "user"
    item: str = "item"
    time: str = "time"
    base: Path | None = None
    epsilon: float | None = None
    delta: float | None = None
    num_records_public: int | None = None
    unit: Unit = "user"
    ledger: Path | None = None
    budget_epsilon: float | None = None
    catalogue: Literal["public"] | None = None
    dataset: str | None = None
    other_data: bool = False
    epochs: float | None = None
    expected_batch: int | None = None
    learning_rate: float | None = None
    max_length: int = 50
    width: int = 32
    num_blocks: int = 2
    allow_seen: bool = False
    hold_out: bool = False
    seed: int = 1
    num_threads: int = 0
    output: Path | None = None
    progress: bool = False

    model_: Recommender = dataclasses.field(init=False)
    report_: TrainingReport | FitReport = dataclasses.field(init=False)
    is_private_: bool = dataclasses.field(init=False)
    _fitted: dict[str, Any] = dataclasses.field(init=False)  # the parameters of the fit that made model_
    _privacy: str = dataclasses.field(init=False)  # the sentence of that fit
    _whole: bool = dataclasses.field(init=False)  # the items of the frame are whole numbers

    if not TYPE_CHECKING:  # type checkers see the fields alone

        def __getattr__(self, name: str) -> Any:
            why = ": it is not fitted; call fit first" if name in _FITTED else ""
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
        self._check_privacy()
        events = read_events(X, self.user, self.item, self.time)
        items = read_column(X, self.item)
        fitted = self.get_params()
        if self.epsilon is None:
            _log.warning(_OPEN)
        with working_folder(self._needed_bytes(events)) as folder:
            data, made = os.path.join(folder, "events.db"), os.path.join(folder, "model.wisp")
            with Log.open(data) as log:
                log.append_all(zip(*events, strict=True))
            out = made if self.output is None else self.output
            if self.epsilon is not None and self.base is not None:
                report: TrainingReport | FitReport = self._tune(data, out)
            else:
                events_of = collections.Counter(events[0])
                report = self._train(data, out, sum(many > 1 + self.hold_out for many in events_of.values()))
            in_memory = self.output is None
            model = Recommender.from_bytes(pathlib.Path(made).read_bytes()) if in_memory else Recommender.open(out)
        self.__dict__.update(  # all at once: an interrupt leaves the earlier fit whole
            model_=model,
            report_=report,
            is_private_=self.epsilon is not None,
            _fitted=fitted,
            _privacy=self._promise(report),
            _whole=all(not isinstance(one, str) for one in items),
        )
        return self

    def _needed_bytes(self, events: Rows) -> int:
        """About the bytes of the log and the model."""
        users, items, _ = events
        log = 3 * (64 * len(users) + sum(map(len, users)) + sum(map(len, items)))
        of_base = os.path.getsize(self.base) if self.base is not None and os.path.exists(self.base) else 0
        return log + of_base + 8 * self.width * len(set(items)) + (16 << 20)

    def _promise(self, report: TrainingReport | FitReport) -> str:
        """Says in a sentence what this training promises."""
        if self.epsilon is None:
            return _OPEN
        epsilon = report.epsilon if isinstance(report, TrainingReport) else report["epsilon"]
        return f"private: epsilon {shown_epsilon(epsilon)} at delta {self.delta:g} for one {self.unit}, by this run"

    def _check_privacy(self) -> None:
        if self.epsilon is None:
            private_only = (field for field in dataclasses.fields(self) if field.name in _PRIVATE_ONLY)
            given = [field.name for field in private_only if getattr(self, field.name) != field.default]
            if given:
                raise InvalidArgument(
                    f"{given[0]} is {getattr(self, given[0])!r}, which only a private run reads, and epsilon is None; "
                    f"give epsilon, or leave {given[0]} out and train without privacy"
                )
            return
        for name in ("delta", "num_records_public", "ledger"):
            if getattr(self, name) is None:
                raise InvalidArgument(f"{name} is None, and is required with epsilon")
        if not self.dataset:
            raise InvalidArgument(
                f"dataset is {self.dataset!r}, and is required with epsilon: by this name the ledger knows whose data "
                "it pays for, and a base is refused that learned from the same data without a guarantee; allowed is a "
                "text, the same for the same people each time"
            )
        if self.unit == "session":
            raise InvalidArgument(
                "unit is 'session', and fit does not keep the log whose sessions the ledger is charged for; keep one "
                "with wisp.Log, and give it to wisp.personalise"
            )
        if self.hold_out:
            raise InvalidArgument("hold_out is True, whose test is not private; allowed with epsilon is False")
        if self.base is None and self.other_data:
            raise InvalidArgument("other_data is True, which speaks of a base, and base is None; allowed is False")
        if self.base is None and self.catalogue != "public":
            raise InvalidArgument(
                "without a base a private run takes the list of items from the data; catalogue='public' says that this "
                "list is no secret; otherwise give a base that has it"
            )

    def _tune(self, data: str, out: Path) -> TrainingReport:
        """The private run from a base."""
        names = ["epsilon", "delta", "num_records_public", "unit", "dataset", "other_data"]
        names += ["budget_epsilon", "epochs", "expected_batch", "learning_rate", "num_threads", "progress"]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        assert self.base is not None and self.ledger is not None
        return personalise(self.base, data, out, self.ledger, **given)

    def _train(self, data: str, out: Path, records: int) -> FitReport:
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
        steps: list[Step] = []

        def told(line: str) -> None:
            (show_line if self.progress else log_line)(line)
            if found := _STEP.match(line):
                at, all_steps, loss, epsilon = found.groups()
                steps.append(Step(int(at), int(all_steps), float(loss), float(epsilon or "nan")))

        made = train(
            recipe,
            data,
            out,
            progress=told,
            model=self.base,
            dataset=self.dataset or "events",
            threads=self.num_threads or None,
            ledger=self.ledger if private else None,
            budget=self.budget_epsilon if private else None,
        )
        if self.output is None:  # the file is gone with its folder
            del made["model"]
        made["not_private"] = [name for name in made.get("not_private", ()) if name in made]
        return FitReport(made, steps)

    def _keys(self, items: Iterable[Any]) -> list[str]:
        """Items of the frame as keys: numbers are keys too here, never the model's own numbers."""
        if isinstance(items, (str, bytes)):
            raise TypeError(f"history is {items!r}; allowed is a list of items")
        keys = []
        for one in items:
            key = read_key(one)
            if key is None:
                raise InvalidArgument(f"item is {one!r}; allowed are texts and whole numbers")
            keys.append(key)
        return keys

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
        """Recommender.evaluate on a frame: each user's last events. Those of the frame of fit trained the model, but
        for the last one with hold_out. Local only: not private."""
        made = self.model_.evaluate(
            X, k, metrics, held_out=held_out, user=self.user, item=self.item, time=self.time
        )
        note = "The fit was without hold_out: if this is its frame, these events trained the model."
        if self._fitted["hold_out"]:
            note = "" if held_out == 1 else "If this is the frame of the fit, all but the last event trained the model."
        return dataclasses.replace(made, note=note)

    def score(self, X: Histories, y: object = None) -> float:
        """NDCG@10 on each user's last event, which trained the model unless hold_out was True or the frame is another.
        Local only: not private."""
        return self.evaluate(X)["ndcg@10"]

    def save(self, path: Path) -> None:
        """Writes the model to a file, which every port of wisp opens and only its owner can read. A file that exists is
        replaced at once."""
        of_file = self.model_._path
        data = self.model_._bytes() if of_file is None else pathlib.Path(of_file).read_bytes()
        with Recommender.from_bytes(data, name=of_file or "bytes") as written:
            if written.info.content_hash != self.model_.info.content_hash:
                raise InvalidData(f"{of_file}: is another model than the one that was fitted, and was not copied")
        target = os.path.abspath(os.fsdecode(path))
        folder = os.path.dirname(target)
        try:
            file, part = tempfile.mkstemp(prefix=f"{os.path.basename(target)}.", suffix=".part", dir=folder)
            try:
                with open(file, "wb") as out:
                    os.fchmod(file, 0o600)  # whatever the umask
                    out.write(data)
                    out.flush()
                    os.fsync(file)
                os.replace(part, target)
            except BaseException:
                os.unlink(part)
                raise
            listing = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(listing)
            finally:
                os.close(listing)
        except OSError as error:
            raise IoError(f"{os.fsdecode(path)}: cannot be written: {error.strerror}") from error

    @property
    def privacy(self) -> str:
        """Says in a sentence what the training of model_ promises."""
        return self._privacy

    def __repr__(self) -> str:
        changed = (f for f in dataclasses.fields(self) if f.init and getattr(self, f.name) != f.default)
        return f"SequenceRecommender({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    def _repr_html_(self) -> str:
        fitted = hasattr(self, "model_")
        given = self._fitted if fitted else self.get_params()
        rows: list[Row] = [(name, value) for name, value in given.items() if value is not None]
        if not fitted:
            return make_table("SequenceRecommender", rows, "It is not fitted.")
        changed = "" if given == self.get_params() else ". Parameters were changed since; these are those of the fit"
        return make_table("SequenceRecommender", rows, self.privacy + changed) + self.model_._repr_html_()


def fit(
    frame: Frame, *, user: str = "user", item: str = "item", time: str = "time", **params: Unpack[FitParams]
) -> SequenceRecommender:
    """Trains a recommender on a frame of events: SequenceRecommender(user=..., **params).fit(frame).

    Without epsilon the model is trained without privacy, which a warning says."""
    return SequenceRecommender(user=user, item=item, time=time, **params).fit(frame)


if fit.__doc__ and SequenceRecommender.__doc__:  # python -OO has none
    fit.__doc__ += "\n\n    Arguments:" + SequenceRecommender.__doc__.partition("Arguments:")[2]
