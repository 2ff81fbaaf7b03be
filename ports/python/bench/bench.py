#!/usr/bin/env python3
"""Compares Python's recommend with C's, alternating in one process. Prints the median times of a history with their
middle half, and the ratio of the medians.

    WISP_PYTHON=build/python ports/python/bench/bench.py BUILD_FOLDER [MODEL ...]

BUILD_FOLDER has libwisp.so. MODEL: models/cafe.wisp. One thread. The histories are as long as the model reads, and
each differs from the one before, so that no answer comes from a cache.
"""

import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy
import wisp

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, K = 201, 10
CALLS = 32  # calls per history in each round: shorter than the time slice of a process
BATCHES = 64, 512


def contender(build: pathlib.Path, work: str) -> ctypes.CDLL:
    """loop.c, linked with the build's library."""
    library = os.path.join(work, "loop.so")
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", HERE / "loop.c", f"-I{build}/include", f"-L{build}", "-lwisp", "-o", library]
        + [f"-Wl,-rpath,{build}"],
        check=True,
    )
    loop = ctypes.CDLL(library)
    for name in ("loop_one", "loop_batch", "loop_growing"):
        function = getattr(loop, name)
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_size_t] * 3
    return loop


class Pair:
    """One model, open in both."""

    def __init__(self, loop: ctypes.CDLL, build: pathlib.Path, path: str) -> None:
        self.loop = loop
        library = ctypes.CDLL(str(build / "libwisp.so"))
        self.handle = ctypes.c_void_p()
        assert library.wisp_model_open(path.encode(), ctypes.byref(self.handle), None) == 0, path
        self.model = wisp.Recommender.open(path)
        info = self.model.info
        generator = numpy.random.default_rng(7)
        shape = (max(BATCHES), info.max_length)
        self.histories = generator.integers(0, info.num_items, shape, dtype=numpy.int32)
        self.rows = list(self.histories)

    def c(self, name: str, count: int) -> float:
        seconds = getattr(self.loop, name)(self.handle, self.histories.ctypes.data, self.histories.shape[1], count, K)
        assert seconds >= 0
        return seconds / count

    def c_growing(self) -> float:
        return self.c("loop_growing", CALLS)

    def growing(self) -> float:
        recommend, row = self.model.recommend, self.rows[0]
        first = len(row) - CALLS
        recommend(row[:first], K)
        start = time.perf_counter()
        for i in range(CALLS):
            recommend(row[: first + i + 1], K)
        return (time.perf_counter() - start) / CALLS

    def one(self) -> float:
        recommend, rows = self.model.recommend, self.rows[:CALLS]
        start = time.perf_counter()
        for row in rows:
            recommend(row, K)
        return (time.perf_counter() - start) / CALLS

    def batch(self, count: int) -> float:
        histories = self.histories[:count]
        start = time.perf_counter()
        self.model.recommend_batch(histories, K, num_threads=1)
        return (time.perf_counter() - start) / count


def report(what: str, goal: str, c: list[float], python: list[float]) -> None:
    middle = [statistics.quantiles(times, n=4) for times in (c, python)]
    of_c, of_python = (f"{q[1] * 1e6:.2f} us ({q[0] * 1e6:.2f} to {q[2] * 1e6:.2f})" for q in middle)
    print(f"{what}: C {of_c}, Python {of_python}; ratio {middle[1][1] / middle[0][1]:.3f}, goal {goal}")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    models = sys.argv[2:] or [str(HERE.parents[2] / "models" / "cafe.wisp")]
    with tempfile.TemporaryDirectory() as work:
        loop = contender(build, work)
        for path in models:
            pair = Pair(loop, build, path)
            info = pair.model.info
            print(f"{path}: {info.num_items} items, {info.max_length} positions, width {info.width}, {ROUNDS} rounds")
            for what, goal, c, python in (
                ("one history", "1.2", lambda: pair.c("loop_one", CALLS), pair.one),
                *(
                    (f"a batch of {n}", "1.02", partial(pair.c, "loop_batch", n), partial(pair.batch, n))
                    for n in BATCHES
                ),
                ("one event more", "none", pair.c_growing, pair.growing),
            ):
                c(), python()  # the first call allocates the buffers
                rounds = [(c(), python()) if i % 2 == 0 else (python(), c())[::-1] for i in range(ROUNDS)]
                report(what, goal, *map(list, zip(*rounds)))


if __name__ == "__main__":
    main()
