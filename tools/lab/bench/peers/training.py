"""Training steps, ordinary and private: wisp beside torch and Opacus, time and peak memory."""
import importlib.util
import json
import os
import subprocess
import sys

import torch

from figures import over, shown, spread
from wisp_program import LENGTH, NUM_ITEMS, Problem

LOSS_LIMIT = 1e-4      # relative; wisp prints three decimals of about 8.1, which is 6e-5
# Relative, for each parameter. A step of rate 1 rounds weights of about 1 to 6e-8, and gradients are small.
GRADIENT_LIMIT = 1e-3
NORM_LIMIT = 1e-3  # for both modes of Opacus
STEPS_OF_A_TURN = 5  # for wisp on a device


class WorkerError(Exception):
    """Returns the last line that an ended worker wrote to standard error."""


class Worker:
    """A process that holds one contender (training_worker.py)."""

    def __init__(self, name, problem, a, gradients):
        self.name, self.seconds, self.peak = name, [], 0
        given, said = problem.file(f"{name.replace(' ', '-')}.pt"), problem.file(f"{name.replace(' ', '-')}.err")
        torch.save(
            {
                "contender": name, "tensors": problem.model.tensors, "inputs": problem.inputs,
                "targets": problem.targets, "threads": a.threads, "gradients": gradients, "device": a.device
            }, given)
        self.said = open(said, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable,
             os.path.join(os.path.dirname(os.path.abspath(__file__)), "training_worker.py"), given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True)
        self.found = self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.close()
        self.said.seek(0)
        lines = [line for line in self.said.read().splitlines() if line.strip()]
        raise WorkerError(lines[-1] if lines else f"it ended with {self.process.returncode} and said nothing")

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        answer = self.answer()
        self.seconds.append(answer["seconds"])
        self.peak = answer["peak_bytes"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(report, what, names, problem, a, loss, gradients):
    """Returns the contenders that run and agree."""
    workers, clipped = [], None
    for name in names:
        if name in a.without:
            continue
        if name.startswith("opacus") and importlib.util.find_spec("opacus") is None:
            report.skip(what, name, "it is not installed")
            continue
        try:
            worker = Worker(name, problem, a, gradients)
        except WorkerError as error:
            report.skip(what, name, f"it cannot run this step ({error})")
            continue
        found = worker.found
        good = report.check(what, name, "loss", abs(found["loss"] - loss) / loss, LOSS_LIMIT)
        if "gradient_difference" in found:
            good &= report.check(what, name, "gradient", found["gradient_difference"], GRADIENT_LIMIT)
        if "clipped_norm" in found:
            clipped = clipped or found["clipped_norm"]
            good &= report.check(what, name, "clipped gradient's norm",
                                 abs(found["clipped_norm"] - clipped) / clipped, NORM_LIMIT)
        if good:
            workers.append(worker)
        else:
            worker.close()
    return workers


def measure(wisp, workers, problem, a):
    """Returns the seconds of wisp's steps, ordinary and private, and of the steps in their workers, taking turns."""
    ordinary, private = [], []
    command = ("--what", "train", "--batch", problem.batch, "--threads", a.threads, "--repeats", 1)
    if a.device != "cpu":
        command += ("--repeats", STEPS_OF_A_TURN)  # each turn opens the device anew
    if problem.inner_width != 256:  # older programs have this width
        command += ("--inner-width", problem.inner_width)
    for r in range(a.rounds):
        turns = [None, *workers]
        for turn in turns[r % len(turns):] + turns[:r % len(turns)]:
            if turn is not None:
                turn.step()
                continue
            figures = wisp.bench(*command)["training"]
            problem.planned = figures["ordinary_bytes"], figures["private_bytes"]
            ordinary.append(figures["ordinary_step_seconds"]["median"])
            private.append(figures["private_step_seconds"]["median"])
    return ordinary, private


def mib(size):
    return f"{size / 2**20:.0f} MiB"


def row_of_wisp(report, what, name, setting, seconds, peak, more=None):
    more = more or {}
    text = f"{shown(spread(seconds), ' s')}, peak {mib(peak)}" + "".join(f", {key.replace('_', ' ')} {shown(value)}"
                                                                         for key, value in more.items())
    report.row(what, name, {**setting, "step_seconds": spread(seconds), "peak_bytes": peak, **more}, text)


def row_of_peer(report, what, worker, setting, ours, our_peak, baseline=None):
    values = {
        **setting, "step_seconds": spread(worker.seconds), "peak_bytes": worker.peak,
        "over_wisp": over(worker.seconds, ours), "peak_over_wisp": worker.peak / our_peak,
        "resident_before_bytes": worker.found["resident_bytes"]
    }
    text = (f"{shown(values['step_seconds'], ' s')}, {shown(values['over_wisp'])} times wisp; peak {mib(worker.peak)} "
            f"({mib(values['resident_before_bytes'])} before the step), {values['peak_over_wisp']:.1f} times wisp")
    if baseline is not None:
        values["private_over_ordinary"] = over(worker.seconds, baseline.seconds)
        text += f"; private over ordinary {shown(values['private_over_ordinary'])}"
    report.row(what, worker.name, values, text)


def prepare(report, wisp, a, folder, batch, title):
    problem = Problem(wisp, folder, batch, a.inner_width)
    report.title(
        f"{title}: {batch} records of {LENGTH}, {NUM_ITEMS} items, width 64, 2 blocks, feed-forward {a.inner_width}, "
        f"all items in the loss, "
        f"{a.device}, {a.threads} thread(s), {a.rounds} rounds; {problem.model.created_by}")
    stepped, loss, peak = problem.ordinary_step(a.threads)
    gradients = {name: (before - stepped[name]).detach() for name, before in problem.model.module.named_parameters()}
    return problem, {"batch": batch, "inner_width": a.inner_width, "threads": a.threads}, loss, gradients, peak


def run_ordinary(report, wisp, a, folder):
    what = "training"
    problem, setting, loss, gradients, peak = prepare(report, wisp, a, folder, a.batch or 256, "Ordinary step")
    workers = start(report, what, ("torch", "torch fast", "torch fast compiled"), problem, a, loss, gradients)
    ordinary, _ = measure(wisp, workers, problem, a)
    peak = peak if a.device == "cpu" else problem.planned[0]  # of a device's memory
    row_of_wisp(report, what, "wisp", setting, ordinary, peak)
    for worker in workers:
        worker.close()
        row_of_peer(report, what, worker, setting, ordinary, peak)


def run_private(report, wisp, a, folder):
    """Opacus does not share a parameter between layers, so its model has a second table at the output, and so has
    "torch untied"."""
    what = "private"
    problem, setting, loss, _, ordinary_peak = prepare(report, wisp, a, folder, a.batch or 64,
                                                       "Private step, clipped by record")
    peak = problem.private_step_bytes(a.threads)
    workers = start(report, what, ("torch untied", "opacus hooks", "opacus ghost"), problem, a, loss, None)
    ordinary, private = measure(wisp, workers, problem, a)
    if a.device != "cpu":
        ordinary_peak, peak = problem.planned
    baseline = next((worker for worker in workers if worker.name == "torch untied"), None)
    row_of_wisp(report, what, "wisp ordinary", setting, ordinary, ordinary_peak)
    row_of_wisp(report, what, "wisp phantom", setting, private, peak,
                {"private_over_ordinary": over(private, ordinary)})
    for worker in workers:
        worker.close()
        row_of_peer(report, what, worker, setting,
                    *((ordinary, ordinary_peak) if worker is baseline else (private, peak)),
                    None if worker is baseline else baseline)
