#!/usr/bin/env python3
"""Scores of wisp against scores of the same graph in PyTorch, both ways through safetensors files.

    tools/lab/bench/peers/parity.py models/cafe.wisp --wisp build/release/wisp

1. MODEL is exported, read into sasrec_torch.SASRec, and both score random histories of 1, 5 and 200 items.
2. Modules with random weights, of every combination of switches (or --shapes of them), are saved, converted, and scored
   by both.
The largest difference must be at most 1e-5 of the largest |score|. A line of JSON for each model.
Exit codes: 0 within, 1 not, 77 there is no PyTorch.
"""
import argparse
import copy
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("parity: PyTorch is not installed, nothing was compared", file=sys.stderr)
    sys.exit(77)
import sasrec_torch as peer

LIMIT = 1e-5
LENGTHS = (1, 5, 200)


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"parity: {' '.join(command[:3])} ... exited {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def wisp_scores(wisp, model, keys, history):
    """Returns the scores of every item. wisp names items by their keys, which must not contain commas."""
    number = {key: i for i, key in enumerate(keys)}
    listed = json.loads(
        call(wisp, "recommend", "--model", model, "--history", ",".join(keys[i] for i in history), "--count",
             str(len(keys)), "--allow-seen", "--json"))
    scores = torch.empty(len(keys), dtype=torch.float64)
    for entry in listed:
        scores[number[entry["item"]]] = entry["score"]
    if len(listed) != len(keys):
        sys.exit(f"parity: {model} scored {len(listed)} of {len(keys)} items")
    return scores


class Differences:
    """Returns the largest differences over the largest |score|: between wisp and PyTorch, and of each from PyTorch
    in double precision."""

    def __init__(self):
        self.largest = self.wisp_from_double = self.torch_from_double = 0.0

    def add(self, wisp, model, keys, module, seed):
        """Compares after each history; returns the largest difference of this module."""
        choose, worst, exact = random.Random(seed), 0.0, copy.deepcopy(module).double()
        for length in LENGTHS:
            history = [choose.randrange(len(keys)) for _ in range(length)]
            with torch.no_grad():
                theirs, truth = module(torch.tensor(history)).double(), exact(torch.tensor(history))
            ours = wisp_scores(wisp, model, keys, history)
            worst = max(worst, ((ours - theirs).abs().max() / theirs.abs().max()).item())
            self.wisp_from_double = max(self.wisp_from_double, ((ours - truth).abs().max() / truth.abs().max()).item())
            self.torch_from_double = max(self.torch_from_double,
                                         ((theirs - truth).abs().max() / truth.abs().max()).item())
        self.largest = max(self.largest, worst)
        return worst


def report(figures, d):
    shown = {
        name: float(f"{value:.3g}")
        for name, value in (("largest_difference", d.largest), ("wisp_from_double", d.wisp_from_double),
                            ("torch_from_double", d.torch_from_double))
    }
    print(json.dumps({**figures, **shown, "limit": LIMIT, "within": d.largest <= LIMIT}), flush=True)
    return d.largest <= LIMIT


def check_export(a, folder):
    """MODEL in PyTorch. A model without keys gets numbers as keys, for `wisp recommend` to name items by."""
    tensors, model = os.path.join(folder, "exported.safetensors"), a.model
    call(a.wisp, "convert", a.model, "--out", tensors)
    module, metadata = peer.load(tensors)
    keys = json.loads(metadata.get("wisp.item_keys", "null"))
    if keys is None:
        keys, model = [str(i) for i in range(module.architecture.num_items)], os.path.join(folder, "keyed.wisp")
        with open(os.path.join(folder, "keys.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(keys) + "\n")
        call(a.wisp, "convert", tensors, "--out", model, "--item-keys", os.path.join(folder, "keys.txt"))
    differences = Differences()
    differences.add(a.wisp, model, keys, module, a.seed)
    return report({"check": "export", "model": os.path.basename(a.model), "items": len(keys)}, differences)


def architectures(count, seed):
    switches = {
        "norm": ("pre", "post"), "activation": ("gelu", "relu"), "output_table": ("tied", "untied"),
        "output_bias": ("none", "fixed", "trained"), "positions": ("start", "end"), "attend": ("causal", "all"),
        "attention_slope": (0.0, 0.5), "num_heads": (1, 4)
    }
    every = [dict(zip(switches, values)) for values in itertools.product(*switches.values())]
    random.Random(seed).shuffle(every)
    for chosen in every[:count or None]:
        yield peer.Architecture(num_items=300,
                                max_length=200,
                                width=32,
                                inner_width=48,
                                num_blocks=2,
                                embedding_scale=5.5,
                                norm_epsilon=1e-6,
                                **chosen)


def random_module(architecture):
    """Makes every parameter random, also those that start at zero or one, so that each of them counts."""
    module = peer.SASRec(architecture).eval()
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() == 1:
                p.normal_(mean=1.0 if name.endswith("norm.weight") else 0.0, std=0.3)
            else:
                p.normal_(std=0.5 if "embedding" in name else 1.5 / p.shape[1] ** 0.5)
    return module


def check_convert(a, folder, architecture, differences):
    """Checks that a random module comes back bit for bit, and adds the differences of its scores to `differences`."""
    tensors, model, back = (os.path.join(folder, name)
                            for name in ("random.safetensors", "random.wisp", "back.safetensors"))
    keys = [str(i) for i in range(architecture.num_items)]
    module = random_module(architecture)
    peer.save(module, tensors, {"wisp.item_keys": json.dumps(keys)})
    call(a.wisp, "convert", tensors, "--out", model)
    call(a.wisp, "convert", model, "--out", back)
    returned = peer.load(back)[0]
    same = returned.architecture == architecture and all(
        torch.equal(t.view(torch.int32),
                    returned.state_dict()[name].view(torch.int32)) for name, t in module.state_dict().items())
    if not same:
        print(f"parity: {architecture} did not come back bit for bit", file=sys.stderr)
    difference = differences.add(a.wisp, model, keys, module, a.seed)
    if difference > LIMIT:
        print(f"parity: {difference:.3g} in {architecture}", file=sys.stderr)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model",
                        nargs="?",
                        help="model file of a recommender; without one, only the way back is tested")
    parser.add_argument("--wisp", default="build/release/wisp", help="the program")
    parser.add_argument("--shapes", type=int, default=0, help="number of combinations of switches; 0: all 384")
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)  # the models are small: more only waits where other programs run
    good = True
    with tempfile.TemporaryDirectory() as folder:
        if a.model:
            good &= check_export(a, folder)
        differences = Differences()
        returned = [
            check_convert(a, folder, architecture, differences) for architecture in architectures(a.shapes, a.seed)
        ]
        good &= report({"check": "convert", "modules": len(returned), "bit_exact_round_trips": sum(returned)},
                       differences) and all(returned)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
