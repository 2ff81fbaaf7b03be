"""An encoder of the size that sentence models have, from 128 tokens to its pooled first position, one thread: wisp
beside others.

The weights, the tokens and what came of them are those that `wisp-lab bench --what encoder --tensors FILE` writes.
"""
import json
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

import runners
import sasrec_torch as peer
from figures import over, shown, spread
from plain import attend

LIMIT = 1e-4
CALLS = 9  # per contender and round, after two that are not timed
WHAT = "encoder"


class Block(nn.Module):
    """Norms follow the sums; GELU is exact. spelled_out: attention in elementary operations. split: query, key and
    value each come from a Linear of their own, which ONNX Runtime's optimizer looks for."""

    def __init__(self, tensors, name, shape, spelled_out, split):
        super().__init__()
        self.num_heads, self.spelled_out = shape["heads"], spelled_out

        def linear(part, rows=slice(None)):
            weight, bias = tensors[f"{name}.{part}.weight"][rows], tensors[f"{name}.{part}.bias"][rows]
            made = nn.Linear(weight.shape[1], weight.shape[0])
            made.load_state_dict({"weight": weight, "bias": bias})
            return made

        def norm(part):
            made = nn.LayerNorm(tensors[f"{name}.{part}.gain"].shape[0], eps=shape["norm_epsilon"])
            made.load_state_dict({"weight": tensors[f"{name}.{part}.gain"], "bias": tensors[f"{name}.{part}.bias"]})
            return made
        width = tensors[f"{name}.qkv.weight"].shape[1]
        parts = [slice(i * width, (i + 1) * width) for i in range(3)] if split else [slice(None)]
        self.qkv = nn.ModuleList(linear("qkv", rows) for rows in parts)
        self.out = linear("attention_out")
        self.feed_forward_in, self.feed_forward_out = linear("feed_forward_in"), linear("feed_forward_out")
        self.attention_norm, self.feed_forward_norm = norm("attention_norm"), norm("feed_forward_norm")

    def heads(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def forward(self, x):
        parts = [linear(x) for linear in self.qkv] if len(self.qkv) == 3 else self.qkv[0](x).chunk(3, dim=-1)
        q, k, v = (self.heads(part) for part in parts)
        if self.spelled_out == "as BERT":
            attended = F.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v
        else:
            attended = attend(q, k, v) if self.spelled_out else F.scaled_dot_product_attention(q, k, v)
        attended = attended.transpose(1, 2).reshape(*x.shape)
        x = self.attention_norm(self.out(attended) + x)
        return self.feed_forward_norm(self.feed_forward_out(F.gelu(self.feed_forward_in(x))) + x)


class Encoder(nn.Module):
    """tanh(W x_0 + b) of the first position, [B, D]."""

    def __init__(self, tensors, shape, spelled_out=False, split=False):
        super().__init__()
        self.scale = shape["embedding_scale"]
        self.items = nn.Embedding.from_pretrained(tensors["item_embedding"])
        self.positions = nn.Parameter(tensors["position_embedding"], requires_grad=False)
        self.blocks = nn.ModuleList(
            Block(tensors, f"block{i}", shape, spelled_out, split) for i in range(shape["blocks"]))
        self.pooler = nn.Linear(*tensors["pooler.weight"].shape)
        self.pooler.load_state_dict({"weight": tensors["pooler.weight"], "bias": tensors["pooler.bias"]})

    def forward(self, tokens):
        x = self.items(tokens) * self.scale + self.positions
        for block in self.blocks:
            x = block(x)
        return torch.tanh(self.pooler(x[:, 0]))


def optimised(path, shape, width):
    """Returns the graph that onnxruntime.transformers makes of an exported BERT: nodes for attention, GELU, and
    norms with their sums. The optimizer finds attention after a norm. A BERT also has a norm before its first block;
    this encoder has none, so the attention of its first block stays in pieces."""
    with runners.quiet():
        from onnxruntime.transformers import optimizer
        model = optimizer.optimize_model(path, model_type="bert", num_heads=shape["heads"], hidden_size=width)
    fused = model.get_fused_operator_statistics()
    if fused.get("Attention", 0) < shape["blocks"] - 1:
        raise ValueError(f"the optimizer found attention {fused.get('Attention', 0)} times in {shape['blocks']} blocks")
    to = path.replace(".onnx", "-optimised.onnx")
    model.save_model_to_file(to)
    return to


def quantised(path):
    """Quantises dynamically as its manual recommends: weights ahead with a scale per channel, inputs as they come
    with a scale for each."""
    with runners.quiet():
        from onnxruntime.quantization import QuantType, quantize_dynamic
        to = path.replace(".onnx", "-int8.onnx")
        # In the optimizer's result, some nodes lack the types of their outputs.
        quantize_dynamic(path,
                         to,
                         per_channel=True,
                         weight_type=QuantType.QInt8,
                         extra_options={"DefaultTensorType": 1})
    return to


def makers(tensors, shape, tokens, folder):
    width = tensors["pooler.weight"].shape[0]
    bert = os.path.join(folder, "bert.onnx")

    def encoder(**how):
        return Encoder(tensors, shape, **how).eval()

    def optimised_bert():
        if not os.path.exists(bert):
            runners.export_onnx(encoder(spelled_out="as BERT", split=True), tokens, bert)
        return optimised(bert, shape, width)

    def path(name):
        return os.path.join(folder, name)
    return {
        "torch": lambda: lambda: runners.of_module(encoder()),
        "onnxruntime": lambda: runners.onnx_opener(encoder(), tokens, path("encoder.onnx")),
        "onnxruntime optimised": lambda: runners.onnx_file_opener(optimised_bert()),
        "executorch xnnpack": lambda: runners.executorch_opener(encoder(spelled_out=True), tokens, path("encoder.pte")),
        "litert": lambda: runners.litert_opener(encoder(spelled_out=True), tokens, path("encoder.tflite")),
        "onnxruntime int8": lambda: runners.onnx_file_opener(quantised(optimised_bert()))
    }


class Contender:
    def __init__(self, name, opener):
        self.name, self.run, self.ms = name, opener(), []

    def difference(self, tokens, ours):
        theirs = torch.from_numpy(self.run(tokens).copy()).double()
        return ((theirs - ours).abs().max() / ours.abs().max()).item()

    def sample(self, tokens):
        times = []
        for _ in range(CALLS + 2):
            begin = time.perf_counter()
            self.run(tokens)
            times.append(1e3 * (time.perf_counter() - begin))
        self.ms.append(spread(times[2:])["median"])


def contenders(report, tensors, shape, left_out, folder):
    tokens = tensors["tokens"].to(torch.int64)[None]
    ours = tensors["represented"].double()

    def check(name, made):
        contender = Contender(name, made)
        # Quantised models cannot agree exactly; if they are near, the graph is the same.
        limit = 0.1 if name.endswith("int8") else LIMIT
        return contender if report.check(WHAT, name, "pooled position", contender.difference(tokens.numpy(), ours),
                                         limit) else None
    return runners.agreeing(report, WHAT, makers(tensors, shape, tokens, folder), left_out, check)


def run(report, wisp, a, folder):
    torch.set_num_threads(1)
    path = os.path.join(folder, "encoder.safetensors")
    length = ("--length", a.length) if a.length else ()
    wisp.bench("--what", "encoder", *length, "--repeats", 1, "--tensors", path)
    tensors, metadata = peer.read_safetensors(path)
    shape = json.loads(metadata["wisp.encoder"])
    width, inner = tensors["block0.feed_forward_out.weight"].shape
    report.title(
        f"Encoder: {len(tensors['tokens'])} tokens, {shape['blocks']} blocks of width {width}, {shape['heads']} "
        f"heads, feed-forward {inner}, "
        f"1 thread, {a.rounds} rounds")
    peers = contenders(report, tensors, shape, a.without, folder)
    tokens = tensors["tokens"].to(torch.int64)[None].numpy()
    ours = {"ms": [], "ms_int8": []}
    for r in range(a.rounds):
        turns = ["wisp", *peers]
        for turn in turns[r % len(turns):] + turns[:r % len(turns)]:
            if turn != "wisp":
                turn.sample(tokens)
                continue
            figures = wisp.bench("--what", "encoder", *length, "--repeats", CALLS)["encoder"]
            for name, samples in ours.items():
                if name in figures:
                    samples.append(figures[name]["median"])
    report.row(WHAT, "wisp", {"ms": spread(ours["ms"])}, shown(spread(ours["ms"]), " ms"))
    if ours["ms_int8"]:
        report.row(WHAT, "wisp int8", {"ms": spread(ours["ms_int8"])}, shown(spread(ours["ms_int8"]), " ms"))
    for p in peers:
        beside, text = ("ms_int8", "wisp int8") if p.name.endswith("int8") and ours["ms_int8"] else ("ms", "wisp")
        values = {"ms": spread(p.ms), "over_wisp": over(p.ms, ours[beside])}
        report.row(WHAT, p.name, values | {"wisp": text},
                   f"{shown(values['ms'], ' ms')}, {shown(values['over_wisp'])} times {text}")
