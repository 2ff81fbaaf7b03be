"""Times one history of 200 items and the best ten items outside of it, one thread: wisp beside torch, ONNX Runtime,
ExecuTorch and LiteRT."""
import os
import time

import numpy
import torch

import sasrec_torch as peer
from figures import over, shown, spread
from plain import Plain, Scorer
from runners import agreeing, executorch_opener, litert_opener, of_module, onnx_opener
from wisp_program import LENGTH, Model, Problem

COUNT, LIMIT = 10, 1e-5
CALLS = 20  # per contender and round, after three that are not timed
WHAT = "scoring"


class Contender:
    """`opener` makes, from a file in the page cache, a function from a history [1, T] of int64 (numpy) to scores
    [M]."""

    def __init__(self, name, opener):
        self.name, self.opener = name, opener
        self.score = opener()
        self.whole, self.opened = [], []

    @staticmethod
    def best(score, history):
        scores = score(history).copy()
        scores[history[0]] = -numpy.inf
        candidates = numpy.argpartition(scores, -COUNT)[-COUNT:]
        return candidates[numpy.argsort(-scores[candidates])]

    def difference(self, history, ours):
        scores = torch.from_numpy(self.score(history).copy()).double()
        return ((scores - ours).abs().max() / ours.abs().max()).item()

    def sample(self, histories):
        times = []
        for i in range(CALLS + 3):
            history = next(histories)
            begin = time.perf_counter()
            self.best(self.score, history)
            times.append(1e3 * (time.perf_counter() - begin))
        self.whole.append(spread(times[3:])["median"])
        begin = time.perf_counter()
        self.best(self.opener(), next(histories))
        self.opened.append(1e3 * (time.perf_counter() - begin))


def torch_opener(tensors, fast):
    def opener():
        return of_module(scorer(tensors) if fast else peer.load(tensors)[0])
    return opener


def compiled_opener(tensors):
    """Keeps the compiled program: opening it again would compile it again, which takes seconds to minutes."""
    module = torch.compile(Scorer(Plain(peer.load(tensors)[0])).eval())
    score = of_module(module)
    return lambda: score


def scorer(tensors, spelled_out=False):
    return Scorer(Plain(peer.load(tensors)[0], spelled_out=spelled_out)).eval()


def makers(tensors, folder):
    example = torch.zeros(1, LENGTH, dtype=torch.int64)

    def path(name):
        return os.path.join(folder, name)
    return {
        "torch": lambda: torch_opener(tensors, False), "torch fast": lambda: torch_opener(tensors, True),
        "torch fast compiled": lambda: compiled_opener(tensors),
        "onnxruntime": lambda: onnx_opener(peer.load(tensors)[0], example, path("scorer.onnx")),
        "onnxruntime fast": lambda: onnx_opener(scorer(tensors), example, path("scorer-fast.onnx")),
        "executorch xnnpack fast": lambda: executorch_opener(scorer(tensors, spelled_out=True), example,
                                                             path("scorer.pte")),
        "litert fast": lambda: litert_opener(scorer(tensors, spelled_out=True), example, path("scorer.tflite"))
    }


def histories(num_items):
    """Makes histories like `wisp-lab bench`: each differs from the one before in its oldest item."""
    items = numpy.array([[t * 7919 % num_items for t in range(LENGTH)]], dtype=numpy.int64)
    while True:
        items[0, 0] = (items[0, 0] + 1) % num_items
        yield items.copy()


def contenders(report, model, folder, left_out):
    module = model.module
    history = next(histories(module.architecture.num_items))
    ours = model.wisp_scores(history[0].tolist())

    def check(name, made):
        contender = Contender(name, made)
        return contender if report.check(WHAT, name, "scores", contender.difference(history, ours), LIMIT) else None
    return agreeing(report, WHAT, makers(model.tensors, folder), left_out, check)


def run(report, wisp, a, folder):
    torch.set_num_threads(1)
    model = Model(wisp, a.model, folder) if a.model else Problem(wisp, folder, 64, 256).model
    architecture = model.module.architecture
    report.title(
        f"Scoring: the best {COUNT} of {architecture.num_items} items after {LENGTH}, width {architecture.width}, "
        f"{architecture.num_blocks} blocks, 1 thread, {a.rounds} rounds; {model.created_by}")
    if architecture.max_length < LENGTH:
        report.skip(WHAT, "all", f"the model reads {architecture.max_length} items, histories have {LENGTH}")
        return
    peers = contenders(report, model, folder, a.without)
    ours = {"top_10_ms": [], "appended_event_top_10_ms": [], "open_and_top_10_ms": []}
    walk = histories(architecture.num_items)
    for r in range(a.rounds):
        turns = ["wisp", *peers]
        for turn in turns[r % len(turns):] + turns[:r % len(turns)]:
            if turn != "wisp":
                turn.sample(walk)
                continue
            figures = wisp.bench("--what", "score", "--model", model.path, "--repeats", CALLS, "--length",
                                 LENGTH)["scoring"]
            for name, samples in ours.items():
                samples.append(figures[name]["median"])
    whole, appended, opened = ours.values()
    report.row(
        WHAT, "wisp", {name: spread(samples)
                       for name, samples in ours.items()},
        f"{shown(spread(whole), ' ms')}, opening included {shown(spread(opened), ' ms')}, one more event "
        f"{shown(spread(appended), ' ms')}"
    )
    for p in peers:
        values = {
            "top_10_ms": spread(p.whole), "over_wisp": over(p.whole, whole),
            "over_wisp_appended_event": over(p.whole, appended)
        }
        text = f"{shown(values['top_10_ms'], ' ms')}, {shown(values['over_wisp'])} times wisp"
        if "compiled" not in p.name:
            values |= {"open_and_top_10_ms": spread(p.opened), "open_over_wisp": over(p.opened, opened)}
            text += (f"; opening included {shown(values['open_and_top_10_ms'], ' ms')}, "
                     f"{shown(values['open_over_wisp'])} times")
        report.row(WHAT, p.name, values, text)
