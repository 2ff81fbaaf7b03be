"""TextModel: encoders, classifiers and decoders of texts."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict, Unpack

from . import _core
from ._recommender import OpenOptions, Path
from ._results import Generated, TextInfo


class GenerateOptions(TypedDict, total=False):
    """How a text is drawn; what is left out, and 0, is the default.

    max_new_tokens: 0: 128. temperature: scores are divided by it; 0: 1. greedy: always the most likely token.
    top_k: so many of the most likely tokens; 0: all. top_p: the fewest tokens with so much probability together; 0: 1.
    min_p: those with at least so much of the most likely one's. repetition_penalty: 0: 1, none.
    stop: the text ends before any of these.
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
    """An encoder (`embed`), a classifier (`classify`) or a decoder (`generate`) that brings its tokenizer.

    Any thread may call; calls of one object follow one another. A context manager.
    """

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__({"path": path, **options})

    @classmethod
    def open(cls, path: Path, **options: Unpack[OpenOptions]) -> TextModel:
        """Opens the file. Options: see `wisp.OpenOptions`; another than backend, half_cache, verify, verified, adapter
        and num_threads raises Unsupported. InvalidArgument where the model brings no tokenizer."""
        return cls(path, **options)

    def __enter__(self) -> TextModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<wisp.TextModel, closed>" if self.closed else f"<wisp.TextModel, {self.info}>"

    @property
    def info(self) -> TextInfo:
        """What the model is."""
        return TextInfo(**self._info())

    @property
    def classes(self) -> list[str]:
        """The names of a classifier's classes."""
        return self._classes()

    def generate(
        self, prompt: str, *, on_text: Callable[[str], object] | None = None, **options: Unpack[GenerateOptions]
    ) -> Generated:
        """Goes on with a prompt. Options: see `wisp.GenerateOptions`.

        on_text is told what is new, whole characters; False from it ends the text. What it raises, and Ctrl-C, ends it
        and is raised here. Draws are not private: for weights that learned without a guarantee see PrivateGenerator.
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
        """Goes on with several prompts, at_once (1 to 256; 0: 16) together. Prompt i draws with seed + i: its text is,
        to the bit, what `generate` makes of it alone. on_text is told the prompt's index too."""
        given = {"prompts": prompts, "at_once": at_once, **options}
        return [Generated(**one) for one in self._generate_batch(given, on_text)]

    def stream(self, prompt: str, **options: Unpack[GenerateOptions]) -> Iterator[str]:
        """The same as `generate`, piece by piece: for piece in model.stream("Once"): print(piece, end="").

        A thread generates. Leaving the loop ends the text after the next token; until then calls of this model wait."""
        return stream(lambda on_text: self.generate(prompt, on_text=on_text, **options))


def stream(
    generate: Callable[[Callable[[str], object]], object], waits: Callable[[bool], bool] | None = None
) -> Iterator[str]:
    """The pieces that generate(on_text) tells, as it tells them; what it raises is raised.

    waits: told True while generating waits for the reader, who has not asked for more yet; it says whether generating
    may go on. None: generating does not wait.
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
        except BaseException as error:  # noqa: B036  it is raised in the reader's thread
            pieces.put(error)

    thread = threading.Thread(target=work, name="wisp stream", daemon=True)

    def end() -> None:
        left.set()
        asked.release()
        thread.join()

    atexit.register(end)  # of a program that ends with a stream that was not read to its end
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
