"""How the program's commands are called, the answers to unknown ones, and the commands that need neither model nor
data."""

import platform
import re

import pytest
from program import BUILD, ROOT, root, run, says, try_run


def test_accounting_without_a_ledger():
    r = run("wisp privacy epsilon --sigma 1 --q 0.01 --steps 1000 --delta 1e-5 --json")
    assert abs(r["pld"] - 1.82824) < 1e-4 and r["rdp"] > r["pld"] and abs(r["gdp_clt"] - 1.61771) < 1e-4
    r = run("wisp privacy calibrate --epsilon 8 --delta 1e-5 --q 0.04 --steps 2000 --json")
    assert 1.289 < r["sigma"] < 1.291 and r["pld"] <= 8


def test_words_that_are_unknown_or_missing():
    run("wisp evaluate", 2, "required")
    run("wisp inspect", 2, "^wisp: wisp inspect: 'model' is required, by its place or as --model")
    run("wisp no-such-command", 2, "there is no command 'no-such-command'; the commands of wisp are synth, new, train")
    run("lab audit foo --json", 2, "there is no command 'foo'; the commands of wisp-lab audit are step, run")
    run("wisp train --epsilom 3",
        2, "wisp train has no option '--epsilom'; wisp train --help-all lists all; did you mean --epsilon?$")
    run("wisp train --recipe r.json --epsilom=3", 2, "wisp train has no option '--epsilom'.*--epsilon?")
    run("wisp privacy epsilon -sigma 3", 2, "wisp privacy epsilon has no option '-sigma'.*--sigma?")
    run("wisp --zzz", 2, "wisp has no option '--zzz'; wisp --help-all lists all$")


CASES = """\
--epochs is 'x', allowed is a number|train --epochs x
--count is -5, allowed is a whole number from 0 on|recommend --count=-5
--count is 4294967296, allowed is a whole number up to 4294967295|recommend --count 4294967296
--steps is 2.5, allowed is a whole number from 0 on|privacy epsilon --steps 2.5
--threads is 5000, allowed are 0 to 1024|train --threads 5000
--threads is 'x', allowed are 0 to 1024|train --threads x
--seed is -1, allowed is a whole number from 0 on|train --seed -1
--steps is -60, allowed is a whole number from 0 on|privacy epsilon --steps -60
--samples is -100, allowed is a whole number from 0 on|privacy decoding --samples -100
--device is 'gpu', allowed are cpu and cuda|train --device gpu
--allow-large-delta is 'no', allowed is yes|train --allow-large-delta no
--re-attention is 'maybe', allowed is --re-attention alone, without a value|train --re-attention=maybe
--anchor is given, and --ledger is not, which it needs|privacy --anchor a
--recipe needs a value behind it|train --recipe
--recipe is given 2 times, allowed is once|train --recipe r --recipe s"""


def test_an_empty_value_does_not_take_the_next_option_as_its_value():
    # An empty value does not take the next option as its value, which would drop a limit.
    run("wisp train --recipe r.json --ledger= --budget=0.01",
        2, "wisp train: --ledger= has nothing behind it; give --ledger a value or leave it out$")
    run("wisp privacy --json foo", 2, "there is no command 'foo'; the commands of wisp privacy are")
    # An error about a value names the option, the value, and what is allowed.
    for case in CASES.splitlines():
        sentence, words = case.split("|")
        command = words.split(" -")[0]
        run(f"wisp {words}", 2, f"^wisp: {sentence}; see wisp {command} --help$")
    run("lab perplexity --temperature 0", 2, "^wisp-lab: --temperature is 0, allowed are 0.001 to 1000")
    run("wisp inspect a b", 2, "^wisp: 'b' is more than wisp inspect takes; see wisp inspect --help$")
    run("wisp inspect a b c", 2, "^wisp: 'b c' is more than wisp inspect takes; see wisp inspect --help$")
    run(
        "wisp generate m.wisp --prompt a --stop", 2, "^wisp: --stop needs a value behind it; see wisp generate --help$"
    )
    run("wisp catalogue",
        2, "^wisp: a command is needed; the commands of wisp catalogue are add, .*; see wisp catalogue --help$")


def test_a_program_that_starts_this_one_can_tell_missing_files_and_features_tha():
    run("wisp inspect nowhere.wisp", 3, "nowhere.wisp: cannot be opened")
    run("WISP_EXIT_CODES=c wisp inspect nowhere.wisp", 5, "nowhere.wisp: cannot be opened")
    run(f"WISP_EXIT_CODES=c wisp inspect {ROOT}/README.md", 3, "its first bytes are others")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="processors other than x86 have one instruction set")
def test_an_unknown_instruction_set_is_refused():
    for wanted in ("avx2", "AVX512", "SSE4+VNNI"):
        r = try_run(f"WISP_TARGETS={wanted} wisp --version")
        assert r.code == 2 and says("WISP_TARGETS is '.*', allowed on this processor are .*SSE4$", r.err), r.err
    run("WISP_TARGETS= wisp --version")
    run("WISP_TARGETS=SSE4 wisp --version")
    run("wisp classify --model nowhere.wisp --text --looks-like-an-option", 3, "nowhere.wisp")
    run("lab reproduce", 2, "the name of a table is needed: .*phantom-table-2", cwd=root)
    run("wisp synth --out x.db --population martian", 2, "population")
    run("wisp privacy", 2, "ledger")
    r = run("wisp --version")
    assert re.fullmatch(r"wisp \d+\.\d+\.\d+\n", r.out)
    r = run("wisp train --help-all")
    assert "fine-tune" in r.out, "train --help does not explain itself"
    for default in ("recipe 64", "recipe 0.0002", "recipe 3"):
        assert f"without a {default}" in " ".join(r.out.split())
    said = "Short texts, such as single sentences, take several times as long"
    assert said in " ".join(r.out.split()), "train --help-all does not say what --recompute-blocks costs"


def test_a_command_whose_output_is_lost_does_not_exit_with_0():
    for words in ("--version", "--help", "privacy epsilon --sigma 1 --q 0.1 --steps 10 --delta 1e-5"):
        run(f"sh -c '{BUILD}/wisp {words} >/dev/full'", 3, "standard output could not be written: .*its charges stay")
