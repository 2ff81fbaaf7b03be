"""The program `wisp` as a contender: its JSON output, its peak memory, and models and records that both sides read."""
import json
import os
import random
import subprocess
import sys
import tempfile

import torch

import parity
import sasrec_torch as peer

NUM_ITEMS, LENGTH = 3416, 200  # those of MovieLens-1M, as in `wisp-lab bench`


class WispError(Exception):
    """An error of a call of the program: its sentence."""


# A process inherits the peak memory of its parent (Linux: getrusage(2), ru_maxrss survives exec). So a small process
# starts it, and reports its child's peak on file descriptor 3.
LAUNCHER = """import os, resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
os.write(3, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
sys.exit(code if code >= 0 else 1)"""


class Wisp:
    """`device`: the arguments for --device and its options, if it is not the processor."""

    def __init__(self, path, device=()):
        self.path, self.device = path, tuple(device)

    def measured(self, *arguments, program=None):
        """Runs `program`, by default wisp. Returns its standard output, standard error, and most resident bytes."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            read, write = os.pipe()
            code = f"import os; os.dup2({write}, 3); os.close({write})\n" + LAUNCHER if write != 3 else LAUNCHER
            process = subprocess.Popen([sys.executable, "-S", "-c", code, program or self.path, *map(str, arguments)],
                                       stdout=out,
                                       stderr=said,
                                       pass_fds=(write, ))
            os.close(write)
            with os.fdopen(read) as peak:
                peak_kib = int(peak.read() or 0)
            process.wait()
            texts = []
            for file in (out, said):
                file.seek(0)
                texts.append(file.read().decode())
        if process.returncode != 0:
            raise WispError(
                f"wisp {' '.join(map(str, arguments[:3]))} ... exited {process.returncode}: {texts[1].strip()}")
        return texts[0], texts[1], peak_kib * 1024

    def call(self, *arguments):
        return self.measured(*arguments)[0]

    def bench(self, *arguments):
        return json.loads(self.measured("bench", "--json", *arguments, *self.device, program=self.path + "-lab")[0])


class Model:
    """A model file of wisp, and the same weights in PyTorch."""

    def __init__(self, wisp, path, folder):
        self.wisp, self.path, tensors = wisp, path, os.path.join(folder, os.path.basename(path) + ".safetensors")
        wisp.call("convert", path, "--out", tensors)
        self.tensors = tensors
        self.module, metadata = peer.load(tensors)
        self.created_by = metadata.get("wisp.created_by", "wisp")
        self.keys = json.loads(metadata.get("wisp.item_keys", "null"))
        if not self.keys:
            raise WispError(
                f"{path} has no item keys, by which histories are named; `wisp convert --item-keys` gives it some")

    def wisp_scores(self, history):
        return parity.wisp_scores(self.wisp.path, self.path, self.keys, history)


def recipe(inner_width, batch, method):
    return {
        "architecture": {
            "max_length": LENGTH, "width": 64, "num_heads": 1, "num_blocks": 2, "inner_width": inner_width,
            "embedding_scale": 8, "activation": "gelu", "norm": "pre", "output_table": "tied"
        }, "training": {
            "method": method, "sampling": "shuffled" if method == "ordinary" else "poisson", "loss": "record_mean",
            "steps": 1, "expected_batch": batch, "num_records_public": batch, "seed": 1,
            "optimizer": {"kind": "sgd", "learning_rate": 1.0}
        }, **({"privacy": {"noise_multiplier": 1, "delta": 1e-6,
                           "histogram_noise": 1}} if method != "ordinary" else {}), "data": {
            "min_user_events": 1, "min_item_events": 1, "catalogue": "public", "hold_out": "nothing"
        }
    }


class Problem:
    """Makes records of full length over all items, like `wisp-lab bench`, an untrained model, and a recipe whose one
    step takes all of them."""

    def __init__(self, wisp, folder, batch, inner_width):
        self.wisp, self.folder, self.batch, self.inner_width = wisp, folder, batch, inner_width
        choose = random.Random(1)
        events = [choose.randrange(NUM_ITEMS) for _ in range(batch * (LENGTH + 1))]
        events[:NUM_ITEMS] = choose.sample(range(NUM_ITEMS),
                                           NUM_ITEMS)  # each item occurs; otherwise the catalogue would lack it
        self.records = [events[r * (LENGTH + 1):(r + 1) * (LENGTH + 1)] for r in range(batch)]
        self.data = self.file("records.txt")
        with open(self.data, "w", encoding="utf-8") as file:
            file.writelines(f"{user + 1} {item + 1}\n" for user, record in enumerate(self.records) for item in record)
        path = self.file("start.wisp")
        wisp.call("new", "--recipe", self.recipe("ordinary"), "--data", self.data, "--out", path)
        self.model = Model(wisp, path, folder)
        if len(self.model.keys) != NUM_ITEMS:
            raise WispError(f"the model has {len(self.model.keys)} items for {NUM_ITEMS}")
        number = {key: i for i, key in enumerate(self.model.keys)}
        numbered = torch.tensor([[number[str(item + 1)] for item in record] for record in self.records])
        self.inputs, self.targets = numbered[:, :-1].contiguous(), numbered[:, 1:].contiguous()

    def file(self, name):
        return os.path.join(self.folder, f"{self.batch}-{self.inner_width}-{name}")

    def recipe(self, method):
        path = self.file(f"{method}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe(self.inner_width, self.batch, method), file)
        return path

    def ordinary_step(self, threads):
        """Runs one step of gradient descent with rate 1. Returns the weights after it by name, the loss as printed
        (three decimals), and the peak bytes."""
        out = self.file("stepped.wisp")
        _, said, peak = self.wisp.measured("train", "--recipe", self.recipe("ordinary"), "--data", self.data, "--model",
                                           self.model.path, "--out", out, "--threads", threads, "--json",
                                           *self.wisp.device)
        loss = float(said.split("loss ")[-1].split(",")[0])
        stepped = Model(self.wisp, out, self.folder)
        return dict(stepped.module.named_parameters()), loss, peak

    def private_step_bytes(self, threads):
        ledger = self.file("ledger")
        for left in (ledger, ledger + "-journal", ledger + "-wal"):
            if os.path.exists(left):
                os.remove(left)
        return self.wisp.measured("train", "--recipe", self.recipe("phantom"), "--data", self.data, "--out",
                                  self.file("private.wisp"), "--ledger", ledger, "--threads", threads, "--json",
                                  *self.wisp.device)[2]
