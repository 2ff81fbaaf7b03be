"""Shared fixtures of the tests: the program and library of a build folder (WISP_BUILD), and models made with them."""

import ctypes
import json
import os
import pathlib
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable

import numpy
import pytest
import wisp

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
CAFE = ROOT / "models" / "cafe.wisp"


def ticks_during(action: Callable[[], object]) -> int:
    """Counts how often another thread, which waits a millisecond each time, runs during the action."""
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        action()
    finally:
        done.set()
        thread.join()
    return len(ticks)


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    folder = os.environ.get("WISP_BUILD")
    if not folder:
        pytest.skip("WISP_BUILD does not name a build folder with the program wisp and libwisp.so")
    return pathlib.Path(folder).resolve()


@pytest.fixture(scope="session")
def program(build):
    """program("convert", ...) runs wisp, and returns what it prints."""

    def run(*arguments: object) -> str:
        done = subprocess.run([build / "wisp", *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


class Library:
    """The C interface itself, through libwisp.so, with which results are compared."""

    class Recommendation(ctypes.Structure):
        _fields_ = [("item", ctypes.c_int32), ("score", ctypes.c_float)]

    def __init__(self, path: pathlib.Path) -> None:
        self.dll = ctypes.CDLL(str(path))

    def recommend(self, model: pathlib.Path, history: list[int], k: int):
        handle = ctypes.c_void_p()
        assert self.dll.wisp_model_open(str(model).encode(), ctypes.byref(handle), None) == 0
        items = (ctypes.c_int32 * max(len(history), 1))(*history)
        out, count = (self.Recommendation * k)(), ctypes.c_size_t(k)
        assert (
            self.dll.wisp_recommend(handle, items, ctypes.c_size_t(len(history)), None, out, ctypes.byref(count), None)
            == 0
        )
        self.dll.wisp_model_close(handle)
        found = out[: count.value]
        return [one.item for one in found], [struct.pack("f", one.score) for one in found]

    def embed(self, model: pathlib.Path, text: str, width: int) -> bytes:
        handle = ctypes.c_void_p()
        assert self.dll.wisp_text_open(str(model).encode(), None, ctypes.byref(handle), None) == 0
        vector = (ctypes.c_float * width)()
        assert self.dll.wisp_text_embed(handle, text.encode(), vector, ctypes.c_size_t(width), None) == 0
        self.dll.wisp_text_close(handle)
        return bytes(vector)


@pytest.fixture(scope="session")
def library(build) -> Library:
    return Library(build / "libwisp.so")


@pytest.fixture
def cafe():
    with wisp.Recommender.open(CAFE) as model:
        yield model


@pytest.fixture(scope="session")
def guests(program, tmp_path_factory) -> pathlib.Path:
    """A log of 60 guests."""
    path = tmp_path_factory.mktemp("log") / "log.db"
    program("synth", "--out", path, "--population", "device", "--users", 60, "--seed", 3)
    return path


@pytest.fixture
def make_plan(program, tmp_path) -> Callable[..., pathlib.Path]:
    """make_plan(devices=60, rounds=4, ...) runs `wisp fleet plan` for the shipped model."""

    def make(**options: object) -> pathlib.Path:
        path = tmp_path / "plan.json"
        options = {"epsilon": 50, "delta": 1e-5, "name": "films", "takes-part": options["rounds"], **options}
        words = [f"--{name}={value}" for name, value in options.items()]
        program("fleet", "plan", "--model", CAFE, "--out", path, *words)
        return path

    return make


@pytest.fixture
def files(guests, tmp_path) -> dict:
    """The four files of a short run, and its budget: a noise that is quick to account for."""
    log = tmp_path / "log.db"
    shutil.copy(guests, log)
    return {
        "model": CAFE,
        "log": log,
        "output": tmp_path / "tuned.wisp",
        "ledger": tmp_path / "log.ledger",
        "epsilon": 0.5,
        "delta": 0.001,
        "num_records_public": 60,
        "unit": "user",
        "expected_batch": 20,
        "epochs": 1,
        "num_threads": 1,
    }


@pytest.fixture(scope="session")
def encoder(program, tmp_path_factory) -> pathlib.Path:
    """A tiny BERT with random weights, whose vocabulary is word5 to word59."""
    folder = tmp_path_factory.mktemp("encoder")
    shutil.copytree(GOLDEN / "hugging_face" / "bert", folder / "bert")
    shutil.copy(GOLDEN / "hugging_face" / "bert_classes" / "vocab.txt", folder / "bert")
    (folder / "bert" / "tokenizer.json").unlink()
    path = folder / "encoder.wisp"
    program("convert", folder / "bert", "--out", path, "--pooling", "mean", "--dataset", "public texts")
    return path


@pytest.fixture(scope="session")
def classifier(program, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("classifier") / "classifier.wisp"
    program("convert", GOLDEN / "hugging_face" / "bert_classes", "--out", path, "--dataset", "public texts")
    return path


@pytest.fixture(scope="session")
def decoder(program, tmp_path_factory) -> pathlib.Path:
    """A tiny GPT-2 with random weights and a tokenizer of bytes."""
    folder = tmp_path_factory.mktemp("decoder")
    shutil.copytree(GOLDEN / "hugging_face" / "gpt2", folder / "gpt2")
    tokenizer = GOLDEN / "tokenizers" / "gpt2.json"
    subprocess.run(["python3", ROOT / "tests" / "small_decoder.py", folder / "gpt2", tokenizer], check=True)
    config = json.loads((folder / "gpt2" / "config.json").read_text())
    end_of_text = 0  # the end token of this tokenizer
    (folder / "gpt2" / "config.json").write_text(
        json.dumps({**config, "bos_token_id": end_of_text, "eos_token_id": end_of_text})
    )
    path = folder / "decoder.wisp"
    program("convert", folder / "gpt2", "--out", path, "--dataset", "public texts")
    return path


def bits(scores: numpy.ndarray) -> list[bytes]:
    return [struct.pack("f", score) for score in scores]
