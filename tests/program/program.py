"""The tests of the program share this: they run it, and read what it says.

A file is one story in a folder of its own (conftest.py): its tests run in order, and use the files of
those before them.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
build = Path(os.environ.get("WISP_BUILD", root / "build/release")).resolve()
ROOT, BUILD = shlex.quote(str(root)), shlex.quote(str(build))  # in a command
PROGRAMS = {"wisp": build / "wisp", "lab": build / "wisp-lab"}
ASSIGNMENT = re.compile(r"([A-Z_]+)=(.*)", re.DOTALL)


class Result:
    """The output of a command. `result["key"]` reads the JSON that it printed."""

    def __init__(self, code, out, err):
        self.code, self.bytes = code, out
        self.out, self.err = (text.decode(errors="surrogateescape") for text in (out, err))

    @property
    def json(self):
        return json.loads(self.out)

    def __getitem__(self, key):
        return self.json[key]

    def save(self, name):
        """Keeps what was printed for a later test, which reads it by `saved`."""
        Path(f"{name}.saved").write_bytes(self.bytes)


def saved(name):
    return Result(0, Path(f"{name}.saved").read_bytes(), b"")


def command_of(text):
    """Returns the words of a command and its environment. It may begin with NAME=VALUE; `wisp` and `lab` are the
    programs of the build."""
    words, environment = shlex.split(text), dict(os.environ)
    while found := ASSIGNMENT.fullmatch(words[0]):
        environment[found[1]] = found[2]
        words = words[1:]
    return [str(PROGRAMS.get(words[0], words[0])), *words[1:]], environment


def try_run(command, **options):
    words, environment = command_of(command)
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, **{"stderr": subprocess.PIPE, **options})
    return Result(done.returncode, done.stdout, done.stderr or b"")


def run(command, code=0, says_on_error="", **options):
    """Runs a command, and checks its exit code and a sentence on standard error, as `says` reads it."""
    result = try_run(command, **options)
    assert result.code == code
    assert says(says_on_error, result.err), f"{command}\ndid not say '{says_on_error}': {result.err[:1000]}"
    program = shlex.split(command)[0]
    if code and program in PROGRAMS:  # what is refused is refused with a sentence
        name = PROGRAMS[program].name
        assert re.search(rf"(?m)^({name}: .|.*REFUTED)", result.err + result.out)
    return result


@contextlib.contextmanager
def running(command, **options):
    """A command that runs beside the test, in a session of its own. It is killed if it is there at the end."""
    words, environment = command_of(command)
    with open("beside.out", "wb") as out, open("beside.err", "wb") as err:
        process = subprocess.Popen(words, env=environment, stdout=out, stderr=err, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(path, seconds=20):
    """Waits until a file is there. False if it does not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if exists(path):
            return True
        time.sleep(0.01)
    return False


def says(pattern, text):
    """True if a line of a text matches a pattern. As for grep, parentheses, braces, +, ? and | stand for themselves
    unless a backslash is before them."""
    swapped = re.sub(r"\\?[(){}|+?]", lambda m: m[0][1:] if m[0][0] == "\\" else "\\" + m[0], pattern)
    return re.search(swapped, text, re.MULTILINE) is not None


def read(path):
    return Path(path).read_text(errors="surrogateescape")


def write(path, text):
    Path(path).write_text(text, errors="surrogateescape")


def edit(source, path, pattern, new):
    """Writes a copy of a file in which something was replaced. It must be there."""
    text, count = re.subn(pattern, new, read(source))
    assert count > 0, f"{source} has no '{pattern}'"
    write(path, text)


def exists(path):
    return os.path.lexists(path)


def size(path):
    return Path(path).stat().st_size


def mode(path):
    """Who may read and write a file: 0o600 is its owner alone."""
    return Path(path).stat().st_mode & 0o777


def same(a, b):
    return Path(a).read_bytes() == Path(b).read_bytes()


def checksum(*paths):
    return hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).hexdigest()


def copy(source, path):
    shutil.copyfile(source, path)


def move(source, path):
    os.replace(source, path)


def remove(*paths):
    for path in paths:
        Path(path).unlink(missing_ok=True)


def sql(path, text):
    """Runs SQL on a database, and returns the first value of the first row."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        row = database.execute(text).fetchone()
    return row[0] if row else None


class Safetensors:
    """A file's header, a dictionary, and its data."""

    def __init__(self, path):
        raw = Path(path).read_bytes()
        begin = 8 + struct.unpack("<Q", raw[:8])[0]
        self.header, self.data = json.loads(raw[8:begin]), bytearray(raw[begin:])
        self.metadata = self.header.get("__metadata__", {})

    def entries(self):
        return {name: entry for name, entry in self.header.items() if name != "__metadata__"}

    def tensors(self):
        """Returns type, shape and bytes of each tensor."""
        return {k: (t["dtype"], t["shape"], self.data[slice(*t["data_offsets"])]) for k, t in self.entries().items()}

    def write(self, path):
        text = json.dumps(self.header).encode()
        Path(path).write_bytes(struct.pack("<Q", len(text)) + text + self.data)


def entries(ledger):
    return sql(ledger, "select count(*) from entries")


def limits(ledger):
    return sql(ledger, "select count(*) from limits")


def copy_folder(source, path):
    shutil.copytree(source, path)


def last_line(text):
    return text.rstrip("\n").rpartition("\n")[2]


def c_program(name):
    """Makes ./NAME from tests/NAME.c, with the library."""
    run(f"cc -std=c11 -Wall -Wextra -Werror -I{ROOT} {ROOT}/tests/{name}.c -o {name} -L{BUILD} -lwisp"
        f" -Wl,-rpath,{BUILD}")


# ---- Things that several files need. Each is made once for a program, and kept in the build folder.


def hash_of_programs():
    whole = hashlib.sha256()
    for path in (PROGRAMS["wisp"], root / "models/cafe.wisp", Path(__file__)):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def kept(name, make):
    """Copies a file that `make` makes in an empty folder, unless this program made it before."""
    store = build / "tests_of_program"
    folder = store / hash_of_programs()
    store.mkdir(exist_ok=True)
    with open(store / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in store.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            folder.mkdir()
        if not (folder / name).exists():
            here, making = os.getcwd(), folder / "making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            os.chdir(making)
            try:
                make()
            finally:
                os.chdir(here)
            for made in making.iterdir():
                made.rename(folder / made.name)
            making.rmdir()
        shutil.copy(folder / name, name)  # with its mode


# ---- The shipped model as base.wisp, a log of 60 users as log.db (the fixture `cafe`), and short runs on them.

recipe = f"{ROOT}/models/recipes/cafe-device.json"
public_recipe = f"{ROOT}/models/recipes/cafe.json"
label = "synthetic public cafe guests"  # the data of the shipped model
# A private run of three steps. `tiny` leaves its delta open.
tiny = "--model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1"
small = f"{tiny} --delta 0.001"
train = f"wisp train --recipe {recipe} {small}"


def paid(model, ledger, options=""):
    """Trains a model with a guarantee, which the ledger pays for. The accountant is quick if there is much noise: a
    guarantee of epsilon 0.35 takes a second, epsilon 4 takes ten."""
    return run(f"{train} --noise-multiplier 4 --out {model} --ledger {ledger} {options}")


def plain(model):
    """Trains a model on the log without a guarantee."""

    def make():
        copy(root / "models/cafe.wisp", "base.wisp")
        run("wisp synth --out log.db --population device --users 60 --seed 3")
        run(f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 2 --batch 20 --out"
            " plain.wisp")
        remove("base.wisp", "log.db", "log.db.items.tsv")

    kept("plain.wisp", make)
    if model != "plain.wisp":
        move("plain.wisp", model)


def texts():
    """A task for classifiers: train.txt and test.txt have two words for each class, tiny.json is its recipe, and the
    command `classify` trains on it."""
    import random

    random.seed(5)
    words = [["awful", "dull"], ["charming", "great"]]
    with open("train.txt", "w") as out:
        for _ in range(400):
            choice = random.randrange(2)
            print(("bad", "good")[choice], "the film is " + random.choice(words[choice]), sep="\t", file=out)
    write("test.txt", read("train.txt")[:6000])
    write(
        "tiny.json",
        """{"name": "tiny",
 "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16, "attend": "all"},
 "initialisation": {"table_deviation": 0.5},
 "training": {"epochs": 6, "expected_batch": 200, "num_records_public": 400,
  "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
 "dp_fp": {"mode": "aggregate", "micro_batches": 2,
  "paper": {"noise_multiplier": 0.5}, "encoder": {"noise_multiplier": 1}},
 "privacy": {"noise_multiplier": 1, "delta": 0.001, "steps_per_charge": 12},
 "data": {"catalogue": "public", "classes": ["bad", "good"]}}
""",
    )


golden = root / "tests/golden/hugging_face"


def small_decoder(folder):
    """Makes a folder of Hugging Face: a decoder of a few random weights, with a tokenizer of bytes."""
    copy_folder(golden / "gpt2", folder)
    run(f"/usr/bin/python3 {ROOT}/tests/small_decoder.py {folder} {ROOT}/tests/golden/tokenizers/gpt2.json")


def small_encoder(folder):
    """Makes a folder of Hugging Face: a BERT of a few random weights, whose vocabulary is word5 to word59."""
    copy_folder(golden / "bert", folder)
    copy(golden / "bert_classes/vocab.txt", f"{folder}/vocab.txt")
    remove(f"{folder}/tokenizer.json", f"{folder}/special_tokens_map.json")


classify = "wisp train --recipe tiny.json --labelled train.txt --out texts.wisp --threads 1"
