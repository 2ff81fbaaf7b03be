"""--help fits a screen, --help-all has every option, and the first example of each command runs as it stands, after
those of the commands before it, in a folder with models/ and the models of texts that the examples name."""

import os
import re

import pytest
from program import classify, move, remove, root, run, small_decoder, small_encoder, texts

LINES, COLUMNS, OPTIONS = 24, 100, 15  # --json is not counted


def commands(path=()):
    """Yields the words of each command below `path`, in the order of the help."""
    for name in re.findall(r"(?m)^  ([a-z]+)  ", run(" ".join(("wisp", *path, "--help"))).out):
        yield (*path, name)
        yield from commands((*path, name))


COMMANDS = [" ".join(path) for path in commands()]
FIRST = [command for command in COMMANDS if " " not in command]


def options(text):
    return set(re.findall(r"(?m)^  \[?(--[\w-]+)", text))


def examples(command):
    """Yields the examples of a command, each as one line."""
    said = run(f"wisp {command} --help").out
    for example in re.findall(r"(?m)^  (wisp .*(?:\n      .*)*)", said):
        yield " ".join(example.split())


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_screen(command):
    lines = run(f"wisp {command} --help").out.splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert len(options("\n".join(lines)) - {"--json"}) <= OPTIONS


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_all_has_every_option_in_a_named_group(command):
    few, all_of_it = run(f"wisp {command} --help").out, run(f"wisp {command} --help-all").out
    assert options(few) <= options(all_of_it) and "\nOthers:\n" not in all_of_it
    assert max(map(len, all_of_it.splitlines())) <= COLUMNS
    more = re.search(r"--help-all shows (\d+) more", few)
    assert (int(more[1]) if more else 0) == len(options(all_of_it) - options(few) - {"--help", "--help-all"})


@pytest.fixture(scope="module")
def demo(work_folder):
    """What the examples begin with: the repository's models, and small models of texts under the examples' names."""
    os.symlink(root / "models", "models")
    small_encoder("encoder")
    run("wisp convert encoder --out minilm.wisp --dataset public")
    small_decoder("decoder")
    run("wisp convert decoder --out gpt2.wisp --dataset public")
    texts()
    run(f"{classify} --method ordinary")
    move("texts.wisp", "sst2.wisp")


@pytest.mark.parametrize("command", [command for command in FIRST if command != "node"])  # needs a server
def test_the_first_example_runs(demo, command):
    if command in ("tune", "plan"):  # a device has a search or a plan in place of runs by hand
        remove("log.ledger")
    run(next(examples(command)))


def test_every_example_names_its_command_and_its_options():
    for command in COMMANDS:
        for example in examples(command):
            words = example.split()
            below = [name for name in COMMANDS if f"{example} ".startswith(f"wisp {name} ")]
            assert below, f"{example}: of no command"
            known = options(run(f"wisp {max(below, key=len)} --help-all").out)
            given = {word for word in words if re.fullmatch(r"--[a-z][\w-]*", word)}
            assert given <= known, f"{example}: {given - known}"


def test_the_document_lists_the_commands():
    listed = re.search(r"(?m)^    wisp (synth(?:.|\n)*?)\n    wisp-lab", (root / "docs/program.md").read_text())[1]
    assert listed.replace("|", " ").split() == FIRST
