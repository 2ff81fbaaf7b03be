"""Recommender and Session."""

from __future__ import annotations

import array
import operator
import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypedDict, Unpack

import numpy
import numpy.typing

from . import _core
from ._errors import InvalidArgument
from ._results import ModelInfo, ModelMemory, Provenance

Path = str | os.PathLike[str]
Backend = Literal["simd", "xnnpack", "int8"]
Verify = Literal["always", "once", "never"]
Items = numpy.typing.ArrayLike | AbstractSet[int | str]
ItemsAndScores = tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float32]]


class OpenOptions(TypedDict, total=False):
    """How a model is opened; what is left out has its default.

    backend: "simd", 32-bit floats, the default; "int8", 8-bit integers, scores slightly off; "xnnpack", in a build that
      has it.
    verify: whether the weights are looked at: "always", the default; "once", unless `verified`, a bytearray of 32 bytes
      that the app keeps (zeros at first), says that this very file was found whole before; "never".
    adapter: file of an adapter that was trained beside the model.
    num_threads: share the positions of one history; the same scores, to the bit. 0 and 1: the caller's alone.
    half_cache: keys and values as 16-bit floats, slightly off.
    device, device_module, arithmetic, device_bytes: "cuda", its module, what its products multiply, its memory.
    max_bytes: InvalidArgument where the model would hold more; 0: no ceiling.
    """

    backend: Backend
    verify: Verify
    verified: bytearray | None
    adapter: Path | None
    num_threads: int
    half_cache: bool
    device: str | None
    device_module: Path | None
    arithmetic: str | None
    device_bytes: int
    max_bytes: int


class Recommender(_core.Recommender):
    """A model that ranks items, in one mapped file.

    An item has a number from 0 on and a key, the name it carries in the app's own data. Any thread may call; calls of
    one object follow one another, those of several run at once. A context manager: closed at the end of the block.
    """

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__({"path": path, **options})

    @classmethod
    def open(cls, path: Path, **options: Unpack[OpenOptions]) -> Recommender:
        """Maps the file read-only and checks it, its weights included.

        Options: see `wisp.OpenOptions`. The file must not be changed in place while open; replacing it is fine.
        Raises IoError, InvalidData, Unsupported, InvalidArgument, with a sentence that names the file.
        """
        return cls(path, **options)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "bytes", **options: Unpack[OpenOptions]
    ) -> Recommender:
        """A model in memory: bytes, or anything that has them in one piece.

        bytes, and an mmap that was opened to be read, are used where they lie and kept alive if they start on 64 bytes;
        other memory is copied.
        `name` is used in sentences.
        """
        made = cls.__new__(cls)
        _core.Recommender.__init__(made, data, name, dict(options))
        return made

    def __enter__(self) -> Recommender:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.Recommender, closed>" if self.closed else f"<wisp.Recommender of {len(self)} items>"

    @property
    def info(self) -> ModelInfo:
        """What the model is."""
        return ModelInfo(**self._info())

    @property
    def provenance(self) -> list[Provenance]:
        """The runs that touched the weights, the oldest first."""
        return [Provenance(**run) for run in self._provenance()]

    def names(self, items: Iterable[int]) -> list[str]:
        """The items' names for people; the key of an item that has none."""
        return [self.item_name(item) or self.item_key(item) for item in items]

    def keys(self, items: Iterable[int] | None = None) -> list[str]:
        """The items' keys; None: of all items."""
        return [self.item_key(item) for item in (range(len(self)) if items is None else items)]

    def session(self, history: Iterable[int] = ()) -> Session:
        """A history that grows, for one person who goes on clicking."""
        return Session(self, history)


class Session:
    """A history that grows. The model keeps the keys and values of the history it saw last: while it is this one, an
    event more costs one position. Several sessions of one model are right, and cost whole histories when they take
    turns: open the file once for each to avoid that."""

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
        """One event more: an item's number, or its key. Raises InvalidArgument for a key that the model lacks."""
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
        """Recommender.recommend of this history."""
        # Of the bytes: an array that is being read could not grow in another thread.
        history = numpy.array(self._history, dtype=numpy.int32)
        return self.model.recommend(history, k, exclude=exclude, candidates=candidates, allow_seen=allow_seen)


def plan_memory(path: Path, **options: Unpack[OpenOptions]) -> ModelMemory:
    """Bytes that the model in that file will hold, opened with these options (`wisp.OpenOptions`). Reads its
    description alone."""
    return ModelMemory(**_core.plan_memory({"path": path, **options}))


def describe_device(
    device: str = "cuda", *, device_module: Path | None = None, arithmetic: str | None = None, device_bytes: int = 0
) -> str:
    """What the device is, in words. Raises Unsupported, with the reason, where there is none."""
    return _core.describe_device(dict(locals()))


__all__: Sequence[str] = ("OpenOptions", "Recommender", "Session", "describe_device", "plan_memory")
