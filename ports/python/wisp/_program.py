"""What no function of C does: models of other programs, training from nothing, audits. The program does it, which the
wheel brings: each call runs it once, as a process of its own."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NoReturn

from ._errors import Cancelled, Error, InternalError, InvalidArgument, InvalidData, PrivacyRefused, Unsupported
from ._recommender import Path

_log = logging.getLogger("wisp")

PROGRAM = pathlib.Path(__file__).parent / "bin" / "wisp"

#: True: the program's lines on standard error. A function: is given each line; False from it stops the run.
Lines = bool | Callable[[str], object] | None

#: A file of JSON as those in models/recipes, or what is in one.
Recipe = Path | Mapping[str, Any]

#: By the program's exit code (`wisp --help`). What it refuses of data and files is InvalidData.
_ERRORS: dict[int, type[Error]] = {2: InvalidArgument, 3: InvalidData, 4: PrivacyRefused, 130: Cancelled}


def _program() -> str:
    if not PROGRAM.is_file():
        raise Unsupported(f"this installation of wisp has no program {PROGRAM}: it was built with WISP_TOOLS=OFF")
    return str(PROGRAM)


def _text(name: str, value: object) -> str:
    """A value as the program reads it."""
    if not isinstance(value, (str, int, float, os.PathLike)):
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}); allowed are texts, numbers, paths and lists of them"
        )
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if not isinstance(text, str) or "\0" in text:
        raise InvalidArgument(f"{name} is {value!r}; allowed are texts without a zero byte")
    return text


def _arguments(words: tuple[object, ...], options: Mapping[str, object]) -> list[str]:
    """("audit", "step") and {"noise_multiplier": 1} as the program has them."""
    arguments = [_text("a word", word) for word in words]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            several = value if isinstance(value, (list, tuple)) else (value,)
            arguments += [f"{option}={_text(name, one)}" for one in several]
    return arguments


def _tell(sentence: str) -> None:
    """Nobody reads the lines: what the program wants to be known goes to the log, warnings as such."""
    warning = "warning: "
    if sentence.startswith(warning):
        _log.warning(sentence[len(warning) :])
    else:
        _log.info(sentence)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class _Run:
    """One process of the program: what it prints, and the last sentence that it said."""

    def __init__(self, arguments: list[str], told: Callable[[str], object] | None) -> None:
        self._told = told
        self.said = ""
        self._printed: list[str] = []
        # A group of its own: it is this process that hears Ctrl-C, in a notebook too, and hands it on.
        self._process = subprocess.Popen(
            [_program(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
        try:
            interrupt = self._wait()
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self.code = self._process.returncode
        self.printed = "".join(self._printed)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if interrupt is not None:
            interrupt.add_note(self.said or self.ended())
            raise interrupt

    def _wait(self) -> BaseException | None:
        """Until the program has ended. What it gives is Ctrl-C, or what the caller's function raised."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        interrupt: BaseException | None = None
        while True:
            try:
                self._hear()
                self._process.wait()
                reader.join()
                return interrupt
            except BaseException as raised:  # the run ends as after Ctrl-C, and at the second at once
                self._stop(again=interrupt is not None)
                interrupt = interrupt or raised
                self._told = None

    def _read(self) -> None:
        if self._process.stdout is not None:
            self._printed.append(self._process.stdout.read())

    def _hear(self) -> None:
        if self._process.stderr is None:
            return
        for line in self._process.stderr:
            text = line.rstrip("\n")
            if text.startswith("wisp: "):
                self.said = text[len("wisp: ") :]
                if self._told is None:
                    _tell(self.said)
            if self._told is not None and self._told(text) is False:
                self._stop(again=False)
                self._told = None

    def _stop(self, *, again: bool) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL if again else signal.SIGINT)

    def ended(self) -> str:
        if self.code < 0:
            return f"the program was ended by signal {-self.code}"
        return f"the program ended with {self.code}"

    def fail(self) -> NoReturn:
        kind = Cancelled if self.code == -signal.SIGINT else _ERRORS.get(self.code, InternalError)
        raise kind(self.said or self.ended())


def _run(words: tuple[object, ...], options: Mapping[str, object], progress: Lines) -> _Run:
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress is {progress!r}; allowed are True, False and a function of a line")
    told = _say if progress is True else progress if callable(progress) else None
    return _Run(_arguments(words, options), told)


def run_program(*words: object, json_result: bool = True, progress: Lines = None, **options: object) -> Any:
    """Runs `wisp WORDS... --option=value...`, and gives what it prints: parsed, or as a text where json_result is False.

        wisp.run_program("privacy", "epsilon", sigma=1, q=0.01, steps=1000, delta=1e-5)["stated"]

    options: those of the command (`wisp COMMAND --help`), with `_` for `-`. True gives a switch, a list an option that
    is repeated; None and False leave it out. A name that Python keeps for itself has a line behind it: `for_`.
    progress: True, the program's lines on standard error; or a function of a line, of which False stops the run.

    Errors have the program's sentence: InvalidArgument, InvalidData (data and files), PrivacyRefused, Cancelled. Ctrl-C
    stops as in the program: the KeyboardInterrupt has a note that says what is spent.
    """
    run = _run(words, {**options, "json": json_result}, progress)
    if run.code != 0:
        run.fail()
    return json.loads(run.printed) if json_result else run.printed


def _made(words: tuple[object, ...], options: Mapping[str, object], progress: Lines) -> dict[str, Any]:
    run = _run(words, {**options, "json": True}, progress)
    if run.code != 0:
        run.fail()
    made: dict[str, Any] = json.loads(run.printed)
    return made


def convert(source: Path, output: Path, *, progress: Lines = None, **options: object) -> dict[str, Any]:
    """Makes a model file of a folder of Hugging Face, or of a PyTorch state_dict in a safetensors file.

    dataset: a label of what the model learned from, for its provenance. max_length: tokens of a text that it reads.
    report: a JSON file to write, what became of each tensor. Others: `wisp convert --help`, docs/convert.md.

    What it gives: the model's class, family, number of tokens, parameters and tensors, and notes.
    """
    return _made(("convert",), {"in": source, "out": output, **options}, progress)


def export(model: Path, output: Path, *, progress: Lines = None, **options: object) -> dict[str, Any]:
    """Writes a model back: a safetensors file, or with `family` a folder of Hugging Face (`wisp export --help`)."""
    return _made(("export",), {"model": model, "out": output, **options}, progress)


def compress(
    model: Path, output: Path, weights: Literal["f16", "int8", "int4"], *, progress: Lines = None
) -> dict[str, Any]:
    """Writes a model in fewer bytes: tables as 16-bit numbers, or weights as 8-bit or 4-bit integers in blocks."""
    if weights not in ("f16", "int8", "int4"):
        raise InvalidArgument(f"weights is {weights!r}; allowed are 'f16', 'int8' and 'int4'")
    chosen: dict[str, object] = {"tables": "f16"} if weights == "f16" else {weights: True}
    return _made(("compress",), {"model": model, "out": output, **chosen}, progress)


@contextlib.contextmanager
def _recipe_file(recipe: Recipe | None) -> Iterator[Path | None]:
    """The program reads files."""
    if not isinstance(recipe, Mapping):
        yield recipe
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "recipe.json"
        path.write_text(json.dumps(recipe), encoding="utf-8")
        yield path


def train(
    recipe: Recipe | None, data: Path, output: Path, *, progress: Lines = None, **options: object
) -> dict[str, Any]:
    """Trains a recommender or a decoder by a recipe, from nothing or from `model`.

    data: a log of events, or the texts of a recipe for texts. recipe None: the decoder `model` learns the texts of
    `data`. A private method needs `ledger`. Others: `wisp train --help`, docs/program.md.

    Of what it gives, `not_private` names the figures that are local only.
    """
    texts = {"texts": data} if recipe is None else {"data": data}
    with _recipe_file(recipe) as path:
        return _made(("train",), {"recipe": path, "out": output, **texts, **options}, progress)


def train_classifier(
    recipe: Recipe, data: Path, output: Path, *, progress: Lines = None, **options: object
) -> dict[str, Any]:
    """Trains a classifier of labelled texts, from nothing or from an encoder `base`; docs/texts.md.

    `lora`, `trains`, `method`, `ledger`, `epsilon` and others: `wisp classify train --help`.
    """
    with _recipe_file(recipe) as path:
        return _made(("classify", "train"), {"recipe": path, "data": data, "out": output, **options}, progress)


def audit(
    what: Literal["step", "run", "membership", "decoding"], *, progress: Lines = None, **options: object
) -> dict[str, Any]:
    """Attacks training or decoding as they really run, and compares what is found with what is claimed.

    `refuted` of the result: the claim is wrong, with `confidence`. Not refuted proves nothing. An audit on data with a
    ledger is charged like training. Options: `wisp audit WHAT --help`, docs/privacy.md.
    """
    run = _run(("audit", what), {**options, "json": True}, progress)
    # Refuted is an answer here; other refusals print nothing.
    if run.code != 0 and not (run.code == 4 and run.printed):
        run.fail()
    found: dict[str, Any] = json.loads(run.printed)
    return found


def main() -> NoReturn:
    """The command `wisp` of an environment."""
    program = _program()
    os.execv(program, [program, *sys.argv[1:]])
