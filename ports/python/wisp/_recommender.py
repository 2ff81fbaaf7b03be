"""Recommender and Session."""

from __future__ import annotations

import array
import functools
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypedDict, Unpack, cast

import numpy
import numpy.typing

from . import _core
from ._errors import InvalidArgument, InvalidData
from ._frames import Frame, Kind, is_frame, kind_of, make_frame, read_column, read_events
from ._html import make_table
from ._ranking import Metric, Numbers, Ranking, Sums, read_ks, read_metrics
from ._results import ModelInfo, ModelMemory, Provenance, shown_epsilon

Path = str | os.PathLike[str]
Backend = Literal["simd", "xnnpack", "int8"]
Verify = Literal["always", "once", "never"]
Items = numpy.typing.ArrayLike | AbstractSet[int | str]
Floats = numpy.typing.NDArray[numpy.float32]
ItemsAndScores = tuple[Numbers, Floats]
#: A list of histories, an event frame, or an open wisp.Log.
Histories = Frame | Iterable[Any] | _core.Log

_USERS_AT_ONCE = 1024


class OpenOptions(TypedDict, total=False):
    """How a model is opened; an option that is left out has its default.

    backend: "simd", 32-bit floats, the default; "int8", 8-bit integers, slightly different scores; "xnnpack", in a
      build that has it.
    verify: when the weights are verified: "always", the default; "once", unless `verified`, a bytearray of 32 bytes
      that the app stores (zeros at first), says that this very file was verified before; "never".
    adapter: file of an adapter that was trained for this model.
    num_threads: share the positions of one history; scores stay the same to the bit. 0 and 1: the caller's alone.
    float16_cache: float16 key/value cache, slightly less exact.
    device, device_module, arithmetic, device_bytes: "cuda", its module, the number format of products, its memory.
    one_history_on_device: recommend after one history on the device too; by default where opening measures less time.
    max_bytes: InvalidArgument if the model would hold more; 0: no limit.
    """

    backend: Backend
    verify: Verify
    verified: bytearray | None
    adapter: Path | None
    num_threads: int
    float16_cache: bool
    device: str | None
    device_module: Path | None
    arithmetic: str | None
    device_bytes: int
    one_history_on_device: bool
    max_bytes: int


class Recommender(_core.Recommender):
    """A model that ranks items, in one mapped file.

    An item has a number from 0 on and a key, the name it carries in the app's own data. Any thread may call; calls of
    one object run one after another, those of several objects in parallel. A context manager that closes the model.
    """

    _path: str | None  # None: from bytes
    _options: OpenOptions

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__({"path": path, **options})
        self._path, self._options = os.path.abspath(os.fsdecode(path)), options

    @classmethod
    def open(cls, path: Path, **options: Unpack[OpenOptions]) -> Recommender:
        """Maps the file read-only and verifies it, weights included.

        Options: see `wisp.OpenOptions`. The file must not be changed in place while open; replacing it is fine.
        Raises IoError, InvalidData, Unsupported, InvalidArgument, with a sentence that names the file.
        """
        return cls(path, **options)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "bytes", **options: Unpack[OpenOptions]
    ) -> Recommender:
        """Opens a model in memory: bytes, or any contiguous buffer.

        bytes, and an mmap opened for reading, are used in place and kept alive if they start on a multiple of 64 bytes;
        other memory is copied.
        `name` is used in messages.
        """
        made = cls.__new__(cls)
        _core.Recommender.__init__(made, data, name, dict(options))
        made._path, made._options = None, options
        return made

    def __enter__(self) -> Recommender:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.Recommender, closed>" if self.closed else f"<wisp.Recommender of {len(self)} items>"

    @property
    def info(self) -> ModelInfo:
        """The properties of the model."""
        return ModelInfo(**self._info())

    @property
    def provenance(self) -> list[Provenance]:
        """The runs that changed the weights, oldest first."""
        return [Provenance(**run) for run in self._provenance()]

    def names(self, items: Iterable[int]) -> list[str]:
        """The items' names for people; the key if an item has no name."""
        return [self.item_name(item) or self.item_key(item) for item in items]

    def keys(self, items: Iterable[int] | None = None) -> list[str]:
        """The items' keys; None: of all items."""
        return [self.item_key(item) for item in (range(len(self)) if items is None else items)]

    def session(self, history: Iterable[int] = ()) -> Session:
        """A growing history, for one person who keeps clicking."""
        return Session(self, history)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        keys = self.keys() if self.info.has_keys else map(str, range(len(self)))
        return {key: item for item, key in enumerate(keys)}

    @functools.cached_property
    def _offered(self) -> Numbers:
        """The items that a list may hold."""
        return numpy.sort(self.recommend([], len(self), allow_seen=True)[0])

    @functools.cached_property
    def _directions(self) -> Floats:
        vectors = self.item_vectors()
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        made: Floats = (vectors / lengths).astype(numpy.float32, copy=False)
        return made

    def similar_items(self, item: int | str, k: int = 10) -> ItemsAndScores:
        """The k items whose vectors have the largest cosine with the item's, best first: (items, cosines). Of a model
        with a guarantee they are as private as its lists."""
        number = self._numbers.get(item) if isinstance(item, str) else operator.index(item)
        if number is None or not 0 <= number < len(self):
            raise InvalidArgument(f"item is {item!r}; the model has no such item")
        others = self._offered[self._offered != number]
        cosines = self._directions[others] @ self._directions[number]
        best = numpy.argsort(-cosines, kind="stable")[: max(0, operator.index(k))]
        return others[best], cosines[best]

    def user_vectors(self, histories: Sequence[numpy.typing.ArrayLike]) -> Floats:
        """The vectors after several histories: float32 of shape (n, width). Their products with item_vectors() rank the
        items. Raises InvalidArgument for a history without an item that was learned: it has no vector."""
        rows = [self._history_vector(history) for history in histories]
        return numpy.stack(rows) if rows else numpy.empty((0, self.info.width), numpy.float32)

    def _by_user(self, data: Histories, user: str, item: str, time: str) -> dict[Any, list[int]]:
        """The known items of each user, oldest first."""
        numbers = self._numbers
        found: dict[Any, list[int]] = {}
        if isinstance(data, _core.Log):
            for who, key, _ in data:  # type: ignore[attr-defined]  # the class in Python has an iterator
                known = found.setdefault(who, [])
                if key in numbers:
                    known.append(numbers[key])
        elif is_frame(data):
            users, items, times = read_events(data, user, item, time)
            for row in sorted(range(len(times)), key=times.__getitem__):
                known = found.setdefault(users[row], [])
                if items[row] in numbers:
                    known.append(numbers[items[row]])
        else:
            for at, history in enumerate(cast(Iterable[Any], data)):
                if isinstance(history, (str, bytes)):
                    raise TypeError(f"histories[{at}] is {history!r}; allowed is a list of items or of their keys")
                found[at] = [self._number(f"histories[{at}]", one) for one in history]
        return found

    def _number(self, where: str, item: Any) -> int:
        if not isinstance(item, str):
            return operator.index(item)
        if item not in self._numbers:
            raise InvalidArgument(f"{where} has {item!r}; the model has no item of this key")
        return self._numbers[item]

    def recommend_frame(
        self,
        histories: Histories,
        k: int = 10,
        *,
        to: Kind | None = None,
        user: str = "user",
        item: str = "item",
        time: str = "time",
        allow_seen: bool | None = None,
        num_threads: int = 0,
    ) -> Any:
        """The best k items of every user as a frame with the columns user, item (its key), rank (from 1 on) and score.

        histories: a frame of events, whose users come back; an open Log; or a list of histories, whose users are 0, 1
        and so on. to: "pandas", "polars" or "dict", a dict of lists; None: what `histories` is.
        A user without an item that the model knows gets what is popular.
        """
        kind = kind_of(histories) if to is None else to
        found = self._by_user(histories, user, item, time)
        lists = [*found.values()]
        items = numpy.full((len(lists), min(k, len(self))), -1, numpy.int32)
        scores = numpy.zeros(items.shape, numpy.float32)
        known = [at for at, history in enumerate(lists) if history]
        if known:
            items[known], scores[known] = self.recommend_batch(
                [lists[at] for at in known], k, allow_seen=allow_seen, num_threads=num_threads
            )
        if len(known) < len(lists):
            popular = self.recommend([], k, allow_seen=allow_seen)
            for at in (at for at, history in enumerate(lists) if not history):
                items[at, : len(popular[0])], scores[at, : len(popular[0])] = popular
        rows, ranks = numpy.nonzero(items >= 0)
        users, keys = [*found], self.keys(items[rows, ranks].tolist())
        if is_frame(histories):
            users, keys = _as_in(histories, user, users), _as_in(histories, item, keys)
        columns = {
            user: [users[row] for row in rows],
            item: keys,
            "rank": ranks + 1,
            "score": scores[rows, ranks],
        }
        return make_frame(columns, kind)

    def evaluate(
        self,
        data: Histories,
        k: int | Sequence[int] = 10,
        metrics: Metric | Iterable[Metric] = ("ndcg", "hit"),
        *,
        held_out: int = 1,
        allow_seen: bool | None = None,
        user: str = "user",
        item: str = "item",
        time: str = "time",
        num_threads: int = 0,
        progress: Callable[[int, int], object] | None = None,
    ) -> Ranking:
        """Looks for each user's newest events in the lists after the events before. If the model was trained on the
        newest events too, the figures are too good. Local only: not private.

        data: as in recommend_frame. k: the length of lists, or several. metrics: ndcg, hit, recall, precision, mrr,
        map, coverage (the share of the items that are in anybody's list). held_out: how many events of each user; only
        users with two more that the model knows count. progress: called with the users done, and all.
        """
        ks, names = read_ks(k), read_metrics(metrics)
        if isinstance(held_out, bool) or operator.index(held_out) < 1:
            raise InvalidArgument(f"held_out is {held_out!r}; allowed are whole numbers from 1 on")
        lists = [one for one in self._by_user(data, user, item, time).values() if len(one) >= held_out + 2]
        sums = Sums(ks, names, len(self), len(self._offered))
        for at in range(0, len(lists), _USERS_AT_ONCE):
            block = lists[at : at + _USERS_AT_ONCE]
            before = [one[:-held_out] for one in block]
            wanted = numpy.full((len(block), held_out), -2, numpy.int32)
            for row, one in enumerate(block):
                distinct = [*dict.fromkeys(one[-held_out:])]
                wanted[row, : len(distinct)] = distinct
            sums.add(self.recommend_batch(before, max(ks), allow_seen=allow_seen, num_threads=num_threads)[0], wanted)
            if progress is not None:
                progress(min(at + _USERS_AT_ONCE, len(lists)), len(lists))
        return sums.ranking(held_out)

    def __reduce__(self) -> tuple[Callable[..., Recommender], tuple[object, ...]]:
        """A model from a file is pickled as its path, and opened again; one from bytes with its bytes."""
        source = self._bytes() if self._path is None else self._path
        return _reopened, (source, dict(self._options), self.info.content_hash)

    def _repr_html_(self) -> str:
        if self.closed:
            return make_table("Recommender", [], "It is closed.")
        info, runs = self.info, self.provenance
        rows: list[tuple[str, object]] = [
            ("items", info.num_items),
            ("events that it reads", info.max_length),
            ("width, blocks", f"{info.width}, {info.num_blocks}"),
            ("file", f"{info.file_bytes:,} bytes"),
        ]
        for run in runs:
            epsilon = "no guarantee" if run.epsilon != run.epsilon else f"epsilon {shown_epsilon(run.epsilon)}"
            rows.append((f"learned from {run.dataset or 'data that nobody named'}", f"{run.steps} steps, {epsilon}"))
        return make_table("Recommender", rows)


def _as_in(frame: Any, name: str, texts: list[Any]) -> list[Any]:
    """Users or items as a frame has them: whole numbers where its column has only these."""
    return texts if any(isinstance(one, str) for one in read_column(frame, name)) else [int(text) for text in texts]


def _reopened(source: str | bytes, options: OpenOptions, content_hash: int) -> Recommender:
    if isinstance(source, bytes):
        return Recommender.from_bytes(source, **options)
    made = Recommender(source, **options)
    if made.info.content_hash != content_hash:
        made.close()
        raise InvalidData(f"{source}: is another model than the one that was pickled")
    return made


class Session:
    """A history that grows. The model caches keys and values of the last history that it read: while it is this one, a
    new event computes only one position. Several sessions may share a model, but recompute whole histories when they
    take turns: open the file once for each to avoid that."""

    def __init__(self, model: Recommender, history: Iterable[int] = ()) -> None:
        self.model = model
        if isinstance(history, (str, bytes, bytearray)):
            raise TypeError(f"history is {history!r}; allowed are whole numbers and items' keys, as a list or an array")
        self._history = array.array("i")
        for item in history:
            self.append(item)

    @property
    def history(self) -> list[int]:
        """The items so far, oldest first."""
        return self._history.tolist()

    def append(self, item: int | str) -> None:
        """Appends an event: an item's number, or its key. Raises InvalidArgument for a key that the model lacks."""
        number = self.model.find(item) if isinstance(item, str) else item
        if number is None:
            raise InvalidArgument(f"the model has no item of the key {item!r}")
        try:
            number = -1 if isinstance(number, bool) else operator.index(number)
        except TypeError:
            raise TypeError(f"item is {item!r}; allowed are whole numbers and items' keys") from None
        if not 0 <= number < len(self.model):
            raise InvalidArgument(f"item is {item!r}; the model's are 0 to {len(self.model) - 1}")
        self._history.append(number)

    def recommend(
        self,
        k: int = 10,
        *,
        exclude: Items | None = None,
        candidates: Items | None = None,
        allow_seen: bool | None = None,
    ) -> ItemsAndScores:
        """Recommender.recommend for this history."""
        # Copied from the bytes, because an array with an exported buffer cannot grow in another thread.
        history = numpy.array(self._history, dtype=numpy.int32)
        return self.model.recommend(history, k, exclude=exclude, candidates=candidates, allow_seen=allow_seen)


def plan_memory(path: Path, **options: Unpack[OpenOptions]) -> ModelMemory:
    """Bytes that the model in that file will hold if opened with these options (`wisp.OpenOptions`). Reads only its
    description."""
    return ModelMemory(**_core.plan_memory({"path": path, **options}))


def describe_device(
    device: str = "cuda", *, device_module: Path | None = None, arithmetic: str | None = None, device_bytes: int = 0
) -> str:
    """Describes the device in words. Raises Unsupported, with the reason, if it is not available."""
    return _core.describe_device(dict(locals()))


__all__: Sequence[str] = ("OpenOptions", "Recommender", "Session", "describe_device", "plan_memory")
