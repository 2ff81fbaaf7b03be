"""TextModel: encoders, classifiers and decoders of texts."""

from __future__ import annotations

import atexit
import functools
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict, Unpack

from . import _core
from ._recommender import OpenOptions, Path
from ._results import Generated, TextInfo


class GenerateOptions(TypedDict, total=False):
    """How a text is sampled; an option that is left out, or 0, has its default.

    max_new_tokens: 0: 128. temperature: divides the scores; 0: 1. greedy: always the most likely token.
    top_k: keep the k most likely tokens; 0: all. top_p: keep the fewest tokens with this probability together; 0: 1.
    min_p: keep tokens with at least this fraction of the largest probability. repetition_penalty: 0: 1, none.
    stop: the text ends before the first of these.
    """

    max_new_tokens: int
    top_k: int
    temperature: float
    top_p: float
    min_p: float
    repetition_penalty: float
    seed: int
    stop: Sequence[str]
    greedy: bool


class TextModel(_core.TextModel):
    """An encoder (`embed`), a classifier (`classify`) or a decoder (`generate`) with its tokenizer.

    Any thread may call; calls of one object run one after another. A context manager.
    """

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__({"path": path, **options})
        self._given = (os.path.abspath(os.fsdecode(path)), options)

    def __reduce__(self) -> tuple[Callable[[], TextModel], tuple[()]]:
        """A model is pickled as its path, and what lies there then is opened."""
        path, options = self._given
        return functools.partial(TextModel, path, **options), ()

    @classmethod
    def open(cls, path: Path, **options: Unpack[OpenOptions]) -> TextModel:
        """Opens the file. Options: see `wisp.OpenOptions`; others than backend, float16_cache, verify, verified,
        adapter and num_threads raise Unsupported. InvalidArgument if the model has no tokenizer."""
        return cls(path, **options)

    def __enter__(self) -> TextModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.TextModel, closed>" if self.closed else f"<wisp.TextModel, {self.info}>"

    @property
    def info(self) -> TextInfo:
        """The properties of the model."""
        return TextInfo(**self._info())

    @property
    def classes(self) -> list[str]:
        """The names of a classifier's classes."""
        return self._classes()

    def generate(
        self, prompt: str, *, on_text: Callable[[str], object] | None = None, **options: Unpack[GenerateOptions]
    ) -> Generated:
        """Continues a prompt. Options: see `wisp.GenerateOptions`.

        on_text receives what is new, whole characters; False ends the text. Its exceptions, and Ctrl-C, end the text
        and are raised here. Sampling is not private: for weights that learned without a guarantee see PrivateGenerator.
        """
        return Generated(**self._generate(prompt, dict(options), on_text))

    def generate_batch(
        self,
        prompts: Sequence[str],
        *,
        at_once: int = 0,
        on_text: Callable[[int, str], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> list[Generated]:
        """Continues several prompts, at_once (1 to 256; 0: 16) together. Prompt i is sampled with seed + i: its text
        equals, to the bit, what `generate` makes of it alone. on_text also receives the prompt's index."""
        given = {"prompts": prompts, "at_once": at_once, **options}
        return [Generated(**one) for one in self._generate_batch(given, on_text)]

    def stream(self, prompt: str, **options: Unpack[GenerateOptions]) -> Iterator[str]:
        """`generate`, piece by piece: for piece in model.stream("Once"): print(piece, end="").

        A thread generates. Leaving the loop ends the text after the next token; until then calls of this model wait."""
        return stream(lambda on_text: self.generate(prompt, on_text=on_text, **options))


def stream(
    generate: Callable[[Callable[[str], object]], object], waits: Callable[[bool], bool] | None = None
) -> Iterator[str]:
    """Yields the pieces that generate(on_text) passes on; raises what it raises.

    waits: called with True while generating waits for the reader, who has not asked for more yet; it returns whether
    generating may continue. None: generating does not wait.
    """
    pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
    asked, left = threading.Semaphore(0), threading.Event()

    def on_text(piece: str) -> bool:
        goes_on = waits is None or waits(True)
        pieces.put(piece)
        if waits is not None and goes_on:
            asked.acquire()
            waits(False)
        return goes_on and not left.is_set()

    def work() -> None:
        try:
            generate(on_text)
            pieces.put(None)
        except BaseException as error:  # noqa: B036 it is raised in the reader's thread
            pieces.put(error)

    thread = threading.Thread(target=work, name="wisp stream", daemon=True)

    def end() -> None:
        left.set()
        asked.release()
        thread.join()

    atexit.register(end)  # for a program that ends with an unfinished stream
    thread.start()
    try:
        while (piece := pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
            asked.release()
    finally:
        end()
        atexit.unregister(end)
