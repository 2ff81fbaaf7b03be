"""A device's life: a plan for a year, one call a night, new bases and items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from . import _core
from ._errors import InvalidArgument
from ._log import Unit
from ._progress import Progress, run
from ._recommender import Path
from ._results import Budget, NightReport, Plan, Quality, Rebased
from ._training import Anchor


def plan_life(
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
    judge: Literal["private", "local", "none"] = "private",
    judgings: int = 0,
    judging_share: float = 0,
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
    """Finds the noise of a whole life and writes the plan into the ledger. Reads no event.

    Call it at each start: where the ledger has the plan that is asked for, nothing is written, and the plan says so
    (was_there). What a kill or a full disk left of an earlier call is no plan, and the next call makes one.

    model: the base, as shipped. epsilon, delta: of the whole life, for every record. runs: nights.
    num_records_public: so many records as may be known to anybody. unit: what one record is.
    judge: who decides whether a personalised model is better: "private" is charged; "local" is not, for models that
      never leave the device; "none".
    judgings: 0: every night, up to 12 times. judging_share: 0: 0.2. steps_per_run: 0: 30 passes in the whole life.
    trains_until: events after this second since 1970 judge, and do not train: for a log that does not grow. 0: each
      judging is by what came after the one before it.
    dry_run: write nothing. measure: fill the seconds of the plan, which takes two seconds.
    output: what nights write: a plan is refused where the ledger is gone and nights trained beside this file.
    num_records_at_start: so many are there when the life begins; nights share the steps by how many are there.
    replace: put this plan in the place of another one that nothing was charged under.

    Raises PrivacyRefused where the ledger has another plan, or charges and no plan, and for an epsilon that no noise
    meets.
    """
    return Plan(**_core.plan_life(dict(locals())))


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
    """Another plan for what is left of a life; what is 0 stays as it is. Returns the plan, and what the noise of a step
    is multiplied by."""
    plan, factor = _core.change_plan(dict(locals()))
    return Plan(**plan), factor


def budget(ledger: Path, *, delta: float = 0, anchor: Anchor | None = None) -> Budget:
    """What is spent and what is left. delta: for a ledger without a limit.

    epsilon_stated is an upper bound, and with a plan that of the whole plan. It may reach the limit before the last
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


def night(
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
) -> NightReport:
    """One night of the plan: goes on with the training of the night before, judges when it is time, and replaces the
    file at `output` where a candidate was found better than the base.

    model: the base. output: what people are served; files of the night lie beside it, private like the log.
    It may be stopped at any moment: what was paid for is kept, and the next call goes on. `report.sentences` are for
    the app's own log; print(report.line()).
    Raises PrivacyRefused: no plan, or the ledger did not pay. IoError: another night runs on the same output.
    """
    options = dict(locals())
    del options["progress"]
    return NightReport(**run(_core.night, options, progress))


def evaluate(model: Path, log: Path, *, num_threads: int = 0) -> Quality:
    """How good the model is on a log: where each user's last item stands in the list of ten that recommend gives.

    Whether such a list may hold items of the history the model says (info.allow_seen). Local only: not private."""
    return Quality(**_core.evaluate(dict(locals())))


def rebase(from_model: Path, to_model: Path, output: Path) -> Rebased:
    """Carries what was learned in `output` over to a new base, by the items' keys. Nothing is charged."""
    return Rebased(**_core.rebase(dict(locals())))


def rebase_adapter(from_model: Path, adapter: Path, to_model: Path, output: Path) -> None:
    """The same for an adapter that was trained beside from_model; written to `output`."""
    _core.rebase_adapter(dict(locals()))


class NewItem(NamedTuple):
    """An item that a base gets. like: key of an item whose row it gets; None: of items that share words of its name."""

    key: str
    name: str | None = None
    like: str | None = None


def _new_item(index: int, item: object) -> NewItem:
    """A str is a sequence of its letters, and a dict of its keys, which nobody means."""
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        raise TypeError(f"items[{index}] is {item!r}; allowed is a wisp.NewItem, or a tuple of key, name and like")
    return NewItem(*item)


def catalogue_add(model: Path, items: Iterable[NewItem], output: Path) -> None:
    """Writes a base with more items, behind those that it has. What is known of them is public."""
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
    """Writes a base that never recommends these items, which keep their rows; restore=True: one that offers them
    again."""
    _core.catalogue_retire(dict(locals()))
