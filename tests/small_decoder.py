#!/usr/bin/env python3
"""Gives a copy of the golden GPT-2 a tokenizer. It has 60 rows, a tokenizer of bytes alone has 256: it gets more rows.

    tests/small_decoder.py FOLDER TOKENIZER_JSON
"""
import json
import struct
import sys

folder, tokenizer = sys.argv[1:]
config = json.load(open(folder + "/config.json"))
raw = open(folder + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
name = next(k for k in header if k.endswith("wte.weight"))
tensors = {k: (v, data[v["data_offsets"][0]:v["data_offsets"][1]]) for k, v in header.items() if k != "__metadata__"}
rows, width = tensors[name][0]["shape"]
tensors[name] = ({**tensors[name][0], "shape": [460, width]}, (tensors[name][1] * 8)[:460 * width * 4])
config["vocab_size"] = 460
json.dump(config, open(folder + "/config.json", "w"))
at, out, body = 0, {}, b""
for key, (entry, bytes_) in tensors.items():
    out[key] = {**entry, "data_offsets": [at, at + len(bytes_)]}
    at += len(bytes_)
    body += bytes_
text = json.dumps(out).encode()
open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
open(folder + "/tokenizer.json", "w").write(open(tokenizer).read())
