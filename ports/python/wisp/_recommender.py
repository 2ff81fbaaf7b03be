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

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__({"path": path, **options})

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
