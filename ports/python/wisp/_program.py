"""Work that the C interface does not offer: models of other programs, training from scratch. The wheel's
program does it: each call runs it once, as a process of its own (_process.py)."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NoReturn

from ._errors import InternalError, InvalidArgument, Unsupported
from ._process import Lines, Process, arguments_of, program
from ._recommender import Path

#: A JSON file like those in models/recipes, or the content of one.
Recipe = Path | Mapping[str, Any]


def _run(words: tuple[object, ...], options: Mapping[str, object], progress: Lines) -> Process:
    return Process(arguments_of(words, options), progress)


def _parsed(run: Process) -> Any:
    try:
        return json.loads(run.printed)
    except json.JSONDecodeError:
        raise InternalError(
            f"the program printed no JSON, which json_result=False allows: {run.printed[:60]!r}"
        ) from None


def _made(
    words: tuple[object, ...], own: Mapping[str, object], options: Mapping[str, object], progress: Lines
) -> dict[str, Any]:
    """own: what the function's arguments give; `options` may not repeat it."""
    twice = own.keys() & {name.rstrip("_") for name in options}
    if twice:
        raise InvalidArgument(f"{min(twice)} is given, which this function sets by itself")
    run = _run(words, {**own, **options, "json": True}, progress)
    if run.code != 0:
        run.fail()
    made: dict[str, Any] = _parsed(run)
    return made


def run_program(*words: object, json_result: bool = True, progress: Lines = None, **options: object) -> Any:
    """Runs `wisp WORDS... --option=value...`, and returns what it prints: parsed, or as text if json_result is False.

        wisp.run_program("privacy", "epsilon", sigma=1, q=0.01, steps=1000, delta=1e-5)["stated"]

    options: those of the command (`wisp COMMAND --help-all`), with `_` for `-`. True gives a switch, a list a repeated
    option; None and False leave it out. A name that Python reserves gets an underscore behind it: `for_`.
    progress: True prints the program's lines on standard error; a function receives each line, and its False stops the
    run. Without it warnings go to the log "wisp".

    Errors have the program's sentence: InvalidArgument, InvalidData, IoError (a missing file), PrivacyRefused,
    Cancelled. After Ctrl-C, and when this process ends, the program is stopped. What was charged stays charged:
    see `wisp.budget`.
    """
    if not words and not options:
        raise InvalidArgument("no command is given; run_program('--help', json_result=False) lists them")
    run = _run(words, {**options, "json": json_result}, progress)
    if run.code != 0:
        run.fail()
    return _parsed(run) if json_result else run.printed


def convert(source: Path, output: Path, *, progress: Lines = None, **options: object) -> dict[str, Any]:
    """Makes a model file from a folder of Hugging Face, or from a PyTorch state_dict in a safetensors file.

    dataset: a label of what the model learned from, for its provenance. max_length: tokens of a text that it reads.
    report: a JSON file to write, with the fate of each tensor. Others: `wisp convert --help-all`, docs/convert.md.

    Returns the model's class, family, number of tokens, parameters and tensors, and notes.
    """
    return _made(("convert",), {"in": source, "out": output}, options, progress)


def export(model: Path, output: Path, *, progress: Lines = None, **options: object) -> dict[str, Any]:
    """Exports a model: a safetensors file, or with `family` a folder of Hugging Face (`wisp convert --help`)."""
    return _made(("convert",), {"in": model, "out": output}, options, progress)


def compress(
    model: Path, output: Path, weights: Literal["f16", "int8", "int4", "panels"], *, progress: Lines = None
) -> dict[str, Any]:
    """Writes a model in fewer bytes: tables as 16-bit numbers, or weights as 8-bit or 4-bit integers in blocks.

    "panels" keeps the bytes, in an order that needs no copy when the model is opened: a large model opens at once.
    """
    if weights not in ("f16", "int8", "int4", "panels"):
        raise InvalidArgument(f"weights is {weights!r}; allowed are 'f16', 'int8', 'int4' and 'panels'")
    return _made(("convert",), {"in": model, "out": output, weights: True}, {}, progress)


def _plain(value: Any) -> Any:
    """Converts a number or an array of NumPy in a recipe."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        f"{value!r} ({type(value).__name__}) is in a recipe; allowed are texts, numbers, lists and mappings"
    )


@contextlib.contextmanager
def _recipe_file(recipe: Recipe | None) -> Iterator[Path | None]:
    """The program reads files: a mapping becomes a file in memory, which is gone with both processes."""
    if recipe is None or isinstance(recipe, (str, os.PathLike)):
        yield recipe
        return
    if not isinstance(recipe, Mapping):
        raise TypeError(f"recipe is {recipe!r} ({type(recipe).__name__}); allowed are a path and a dictionary")
    try:
        text = json.dumps({"name": "recipe", **recipe}, default=_plain, allow_nan=False)
    except ValueError as error:
        raise InvalidArgument(f"the recipe is no JSON: {error}") from None
    memory = os.memfd_create("recipe")
    try:
        with open(memory, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        yield pathlib.Path(f"/proc/{os.getpid()}/fd/{memory}")
    finally:
        os.close(memory)


def train(
    recipe: Recipe | None, data: Path, output: Path, *, progress: Lines = None, **options: object
) -> dict[str, Any]:
    """Trains a recommender or a decoder by a recipe, from scratch or from `model`.

    data: a log of events, or texts if the recipe is for texts. With recipe None the decoder `model` learns the texts of
    `data`. A private method needs `ledger`. Others: `wisp train --help-all`, docs/program.md.

    `not_private` in the result names the figures that are local only.
    """
    texts = {"texts": data} if recipe is None else {"data": data}
    with _recipe_file(recipe) as path:
        return _made(("train",), {"recipe": path, "out": output, **texts}, options, progress)


def train_classifier(
    recipe: Recipe, data: Path, output: Path, *, progress: Lines = None, **options: object
) -> dict[str, Any]:
    """Trains a classifier of labelled texts, from scratch or from an encoder `model`; docs/texts.md.

    `lora`, `trains`, `method`, `ledger`, `epsilon` and others: `wisp train --help-all`.
    """
    with _recipe_file(recipe) as path:
        return _made(("train",), {"recipe": path, "labelled": data, "out": output}, options, progress)


def main() -> NoReturn:
    """The command `wisp` in an environment."""
    try:
        path = program()
    except Unsupported as error:
        sys.exit(f"wisp: {error}")
    # Python ignores these signals, and a program that replaces it would too
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    os.execv(path, [path, *sys.argv[1:]])
