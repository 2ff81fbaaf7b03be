#!/usr/bin/env python3
"""Runs a contender of training in its own process, so that its peak memory is its own. run.py talks to it over
pipes.

Reads from the file named by its only argument, of torch.save: contender, tensors, inputs, targets, threads, device,
gradients (of a tied model, or None). On a GPU products are in floats of 32 bits, steps are waited for, and memory is
what torch has taken there. Writes lines of JSON: first, of a step that is not timed, {"loss", "gradient_difference" or
"clipped_norm", "resident_bytes" before it}, then for each line "step" that it reads {"seconds", "peak_bytes"}.
"""
import json
import resource
import sys
import time

import torch
from torch import nn

import sasrec_torch as peer
from plain import Plain

RATE = 1e-4
# Maps the twin's parameters to those of the fast model. The models that Opacus trains have no counterpart to the tied
# table's gradient.
FAST_NAMES = {
    "items.weight": "item_embedding.weight", "positions.weight": "position_embedding.weight",
    "qkv.": "attention.in_proj_", "out.": "attention.out_proj."
}


class Ordinary:
    """Adam on the mean cross-entropy over all items."""

    def __init__(self, module, loss):
        self.module, self.loss = module, loss
        self.optimizer = torch.optim.Adam(module.parameters(), lr=RATE)

    def step(self, inputs, targets, inspect=None):
        loss = self.loss(inputs, targets)
        loss.backward()
        if inspect is not None:
            inspect(self.module)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


class Opacus:
    """Runs Adam on clipped and noised gradients. Every batch is all of `inputs`; nothing is sampled here."""

    def __init__(self, module, mode, inputs, targets):
        from opacus import PrivacyEngine
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=len(inputs))
        criterion = nn.CrossEntropyLoss()
        made = PrivacyEngine(accountant="rdp").make_private(module=module.train(),
                                                            optimizer=torch.optim.Adam(module.parameters(), lr=RATE),
                                                            data_loader=loader,
                                                            criterion=criterion,
                                                            noise_multiplier=1.0,
                                                            max_grad_norm=1.0,
                                                            poisson_sampling=False,
                                                            grad_sample_mode=mode)
        self.module, self.optimizer = made[0], made[1]
        self.criterion = made[2] if mode == "ghost" else criterion
        self.ghost = mode == "ghost"

    def step(self, inputs, targets, inspect=None):
        logits = self.module(inputs)
        if self.ghost:
            loss = self.criterion(logits.flatten(0, 1), targets.flatten(), shape=logits.shape)  # by records
        else:
            loss = self.criterion(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        value = loss.item()
        self.optimizer.step()
        if inspect is not None:
            inspect(self.module)
        self.optimizer.zero_grad()
        return value


def twin_name(name):
    for mine, theirs in FAST_NAMES.items():
        name = theirs if name == mine else name
        if mine.endswith("."):
            name = name.replace("." + mine, "." + theirs)
    return name


def gradient_difference(module, expected):
    """Returns the largest |difference| / |expected| over the parameters, both in the 2-norm."""
    worst = 0.0
    for name, p in module.named_parameters():
        other = expected[twin_name(name)]
        worst = max(worst, ((p.grad - other).norm() / other.norm().clamp(min=1e-12)).item())
    return worst


def peak_bytes(device):
    return torch.cuda.max_memory_allocated() if device == "cuda" else 1024 * resource.getrusage(
        resource.RUSAGE_SELF).ru_maxrss


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def main():
    given = torch.load(sys.argv[1], **({"weights_only": False} if torch.__version__ >= "1.13" else {}))
    device = given["device"]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(given["threads"])
    torch.manual_seed(1)
    contender, expected = given["contender"], given["gradients"]
    inputs, targets = given["inputs"].to(device), given["targets"].to(device)
    if expected is not None:
        expected = {name: gradient.to(device) for name, gradient in expected.items()}
    twin = peer.load(given["tensors"])[0].train()
    module = (twin if contender == "torch" else Plain(twin, tied=contender.startswith("torch fast")).train()).to(device)
    if contender.startswith("opacus"):
        trained = Opacus(module, contender.split()[1], inputs, targets)
    else:
        trained = Ordinary(module, torch.compile(module.loss) if "compiled" in contender else module.loss)
    found = {"resident_bytes": peak_bytes(device)}

    def inspect(module):
        if contender.startswith("opacus"):  # before noise
            found["clipped_norm"] = torch.cat([p.summed_grad.flatten() for p in module.parameters()]).norm().item()
        elif expected is not None:
            found["gradient_difference"] = gradient_difference(module, expected)

    found["loss"] = trained.step(inputs, targets, inspect)  # with the given weights
    print(json.dumps(found), flush=True)
    for line in sys.stdin:
        if line.strip() != "step":
            break
        wait(device)
        begin = time.perf_counter()
        trained.step(inputs, targets)
        wait(device)
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes(device)}), flush=True)


if __name__ == "__main__":
    main()
