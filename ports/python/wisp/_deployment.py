"""Nightly training: a plan for a year, one call a run, new bases and items."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, overload

from . import _core
from ._errors import InvalidArgument, IoError
from ._frames import Frame
from ._log import Log, Unit
from ._progress import Progress, run
from ._ranking import Metric, Ranking
from ._recommender import Path, Recommender
from ._results import Budget, BudgetHistory, Plan, Quality, Rebased, RunReport, Spent
from ._training import Anchor


def make_plan(
    model: Path,
    ledger: Path,
    *,
    dataset: str,
    epsilon: float,
    delta: float,
    num_records_public: int,
    runs: int,
    unit: Unit,
    times_per_second: int = 0,
    session_gap: int = 0,
    evaluation: Literal["private", "local", "none"] = "private",
    evaluations: int = 0,
    steps_per_run: int = 0,
    expected_batch: int = 0,
    num_threads: int = 0,
    learning_rate: float = 0,
    typical_events: int = 0,
    dry_run: bool = False,
    measure: bool = False,
    other_data: bool = False,
    trains_until: int = 0,
    output: Path | None = None,
    replace: bool = False,
    num_records_at_start: int = 0,
    anchor: Anchor | None = None,
) -> Plan:
    """Finds the noise of the whole plan and writes the plan into the ledger. Reads no event.

    Call it at each start: if the ledger already has the requested plan, nothing is written, and the result says so
    (was_there). A call that was killed or met a full disk leaves no plan, and the next call makes one.

    model: the base, as shipped. epsilon, delta: of the whole plan, for every record. runs: number of runs.
    num_records_public: a number of records that anybody may know. unit: the definition of one record.
    evaluation: who decides whether a personalised model is better: "private", an evaluation by later events that is
      charged; "local", one that is not, for models that never leave the device; "none".
    evaluations: runs that evaluate; 0: 12, or fewer if trains_until is set and records are few.
    steps_per_run: 0: 30 passes over the records in all runs together.
    trains_until: seconds since 1970; later events evaluate and do not train, for a log that does not grow. 0: each
      evaluation uses what came after the one before it.
    dry_run: write nothing. measure: fill the seconds of the plan, which takes two seconds.
    output: the file that runs write: a plan is refused if the ledger is gone and runs trained beside this file.
    num_records_at_start: records when the plan begins; runs share the steps in proportion.
    replace: replace another plan that nothing was charged under.

    Raises PrivacyRefused if the ledger has another plan, or charges and no plan, and for an epsilon that no noise
    meets.
    """
    return Plan(**_core.make_plan(dict(locals())))


def change_plan(
    model: Path,
    ledger: Path,
    *,
    runs: int = 0,
    steps_per_run: int = 0,
    expected_batch: int = 0,
    num_records_public: int = 0,
    learning_rate: float = 0,
    dry_run: bool = False,
    anchor: Anchor | None = None,
) -> tuple[Plan, float]:
    """Changes the plan for the runs that are left; what is 0 stays as it is. Returns the plan, and the factor by
    which the noise of a step grows."""
    plan, factor = _core.change_plan(dict(locals()))
    return Plan(**plan), factor


def budget(ledger: Path, *, delta: float = 0, anchor: Anchor | None = None) -> Budget:
    """Returns what is spent and what is left. delta: used if the ledger has no limit.

    epsilon_stated is an upper bound; with a plan it is that of the whole plan. It may reach the limit before the last
    charge that still fits.
    """
    try:
        return Budget(**_core.budget(dict(locals())))
    except InvalidArgument as error:
        if not str(error).startswith("delta is 0,"):
            raise
    raise InvalidArgument(
        f"ledger '{os.fspath(ledger)}' has no limit, so budget needs delta: a number between 0 and 1 for its epsilon"
    )


def budget_history(
    ledger: Path, *, delta: float = 0, points: int = 50, anchor: Anchor | None = None
) -> BudgetHistory:
    """The budget after the ledger's charges: at most so many points, spread evenly over them; plot() draws them. delta:
    used if the ledger has no limit. A point takes the accountant up to a second."""
    now = budget(ledger, delta=delta, anchor=anchor)
    found = _core.budget_history({"ledger": ledger, "delta": now.delta, "points": points, "anchor": anchor})
    spent = [Spent(datetime.datetime.fromisoformat(time), *others) for time, *others in found]
    return BudgetHistory(spent, now.delta, now.epsilon_limit)


def run_planned(
    model: Path,
    log: Path,
    output: Path,
    ledger: Path,
    *,
    progress: Progress = None,
    dataset: str | None = None,
    num_threads: int = 0,
    other_data: bool = False,
    max_bytes: int = 0,
    anchor: Anchor | None = None,
    device: str | None = None,
    device_module: Path | None = None,
    arithmetic: str | None = None,
    device_bytes: int = 0,
) -> RunReport:
    """One run of the plan: resumes the training of the run before, evaluates when an evaluation is due, and
    replaces the file at `output` if a candidate was found better than the base.

    model: the base. output: the model that people are served; files of the run lie beside it, private like the log.
    It may be stopped at any moment: what was paid for is kept, and the next call resumes. `report.sentences` are for
    the app's own log; print(report.line()).
    Raises PrivacyRefused: no plan, or the ledger did not pay. IoError: another run runs on the same output.
    """
    options = dict(locals())
    del options["progress"]
    made, steps = run(_core.run_planned, options, progress)
    return RunReport(**made, all_steps=steps)


@overload
def evaluate(model: Path, log: Path, *, num_threads: int = 0) -> Quality: ...
@overload
def evaluate(
    model: Path | Recommender,
    log: Path | Log | Frame,
    *,
    k: int | Sequence[int],
    metrics: Metric | Iterable[Metric] = ("ndcg", "hit"),
    held_out: int = 1,
    num_threads: int = 0,
) -> Ranking: ...
def evaluate(
    model: Path | Recommender,
    log: Path | Log | Frame,
    *,
    k: int | Sequence[int] | None = None,
    metrics: Metric | Iterable[Metric] = ("ndcg", "hit"),
    held_out: int = 1,
    num_threads: int = 0,
) -> Quality | Ranking:
    """The quality of the model on a log: the rank of each user's last item in the list that recommend gives.
    If the model was trained on these events too, the figures are too good.

    Without k, for files, NDCG and hits in lists of ten. With k, a number or several, and metrics: Recommender.evaluate,
    which explains them; the model and the log may then be open, and the log a data frame.
    The model says whether such a list may hold items of the history (info.allow_seen). Local only: not private."""
    if k is None:
        return Quality(**_core.evaluate({"model": model, "log": log, "num_threads": num_threads}))
    with contextlib.ExitStack() as opened:
        if not isinstance(model, Recommender):
            model = opened.enter_context(Recommender.open(model))
        if isinstance(log, (str, os.PathLike)):
            if not os.path.exists(log):  # opening would create it
                raise IoError(f"{os.fsdecode(log)}: there is no such file")
            log = opened.enter_context(Log.open(log))
        return model.evaluate(log, k, metrics, held_out=held_out, num_threads=num_threads)


def rebase(from_model: Path, to_model: Path, output: Path, ledger: Path, *, start_over: bool = False) -> Rebased:
    """Carries what was learned in `output` over to a new base, by the items' keys. Nothing is charged.

    If what was learned would be lost, `InvalidArgument` says why. `start_over` gives it up."""
    return Rebased(**_core.rebase(dict(locals())))


def rebase_adapter(from_model: Path, adapter: Path, to_model: Path, output: Path) -> None:
    """`rebase` for an adapter that was trained beside from_model; written to `output`."""
    _core.rebase_adapter(dict(locals()))


class NewItem(NamedTuple):
    """An item for a base. like: key of an item whose row is copied; None: the mean of items that share name words."""

    key: str
    name: str | None = None
    like: str | None = None


def _new_item(index: int, item: object) -> NewItem:
    """Converts an item. A str is a sequence of its letters, and a dict of its keys, which nobody means."""
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        raise TypeError(f"items[{index}] is {item!r}; allowed is a wisp.NewItem, or a tuple of key, name and like")
    return NewItem(*item)


def catalogue_add(model: Path, items: Iterable[NewItem], output: Path) -> None:
    """Writes a base with more items; they follow the existing ones. What is given here about an item is public."""
    all_items = [_new_item(i, item) for i, item in enumerate(items)]
    options = {
        "model": model,
        "output": output,
        "keys": [item.key for item in all_items],
        "names": [item.name or "" for item in all_items],
        "likes": [item.like or "" for item in all_items],
    }
    _core.catalogue_add(options)


def catalogue_retire(model: Path, keys: Sequence[str], output: Path, *, restore: bool = False) -> None:
    """Writes a base that never recommends these items, which keep their rows; restore=True: a base that offers them
    again."""
    _core.catalogue_retire(dict(locals()))
