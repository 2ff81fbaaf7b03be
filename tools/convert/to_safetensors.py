#!/usr/bin/env python3
"""Turns weights that torch saved (pytorch_model.bin, its shards, *.pt, *.pth) into safetensors, for wisp convert.

    python3 -m venv build/torch && build/torch/bin/pip install torch
    build/torch/bin/python tools/convert/to_safetensors.py FOLDER      # writes FOLDER/model.safetensors
    build/torch/bin/python tools/convert/to_safetensors.py model.pt --out model.safetensors

The file is read with weights_only=True: it may hold tensors and plain containers, and no code in it is run. Numbers
are written as they are; tensors that share memory are written once each. What is there already is not replaced.
"""

import argparse
import json
import os
import pathlib
import struct
import sys
import tempfile

DTYPES = {
    'float64': 'F64',
    'float32': 'F32',
    'float16': 'F16',
    'bfloat16': 'BF16',
    'int64': 'I64',
    'int32': 'I32',
    'int16': 'I16',
    'int8': 'I8',
    'uint8': 'U8',
    'bool': 'BOOL',
}
# A training program's checkpoint may hold its weights under one of these keys.
NESTED = ('state_dict', 'model_state_dict', 'model', 'module')


def fail(sentence):
    sys.exit(f'to_safetensors.py: {sentence}')


def load_torch():
    try:
        import torch
    except ImportError:
        fail('the Python package torch is missing; the head of this file says how to install it')
    return torch


def tensors_of(torch, path):
    """{name: tensor} of one file."""
    try:
        held = torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # torch has no common class of its errors
        kind = type(error).__name__
        fail(
            f'{path}: torch cannot read it ({kind}): it is damaged, or holds more than tensors and plain containers, '
            "as RecBole's checkpoints do; then save the state_dict alone with the program that wrote it, "
            "torch.save(checkpoint['state_dict'], 'weights.pth')"
        )
    for _ in range(2):  # a state_dict within a model within a checkpoint
        if isinstance(held, dict) and not any(isinstance(v, torch.Tensor) for v in held.values()):
            held = next((held[key] for key in NESTED if isinstance(held.get(key), dict)), held)
    tensors = {name: v for name, v in held.items() if isinstance(v, torch.Tensor)} if isinstance(held, dict) else {}
    if not tensors:
        nested = ', '.join(NESTED)
        fail(f'{path}: it holds no tensors by name, supported is a state_dict, alone or under one of {nested}')
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            fail(f'{path}: a tensor is called {name!r}, supported are texts')
        if str(tensor.dtype).removeprefix('torch.') not in DTYPES:
            fail(f'{path}: tensor {name!r} is of {tensor.dtype}, supported are {", ".join(DTYPES)}')
    return tensors


def files_of(folder):
    """{file: names that it must have}: pytorch_model.bin, or the shards that its index names."""
    whole, index = folder / 'pytorch_model.bin', folder / 'pytorch_model.bin.index.json'
    if whole.is_file():
        return {whole: ()}
    if not index.is_file():
        fail(f'{folder}: there is no pytorch_model.bin and no pytorch_model.bin.index.json; name a .bin or .pt file')
    try:
        weight_map = json.loads(index.read_text())['weight_map']
        named = sorted(set(weight_map.values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        fail(f'{index}: there is no weight_map, an object of the file of each tensor')
    for name in named:
        if pathlib.PurePath(name).name != name or not (folder / name).is_file():
            fail(f'{index}: it names the shard {name!r}, which is not in the folder')
    return {folder / name: [tensor for tensor, file in weight_map.items() if file == name] for name in named}


def write(torch, tensors, out):
    header, at = {'__metadata__': {'format': 'pt'}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        dtype = DTYPES[str(tensor.dtype).removeprefix('torch.')]
        header[name] = {'dtype': dtype, 'shape': list(tensor.shape), 'data_offsets': [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with tempfile.NamedTemporaryFile(dir=out.parent, prefix=out.name, delete=False) as file:
        try:
            file.write(struct.pack('<Q', len(text)) + text)
            for tensor in tensors.values():
                file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.link(file.name, out)  # refuses if the file exists by now
        finally:
            os.unlink(file.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source', type=pathlib.Path, help='a folder with pytorch_model.bin, or a file')
    parser.add_argument('--out', type=pathlib.Path, help='default: model.safetensors in the folder, or beside the file')
    options = parser.parse_args()
    source = options.source
    if not source.exists():
        fail(f'{source}: there is no such file or folder')
    out = options.out or (source / 'model.safetensors' if source.is_dir() else source.with_suffix('.safetensors'))
    if out.exists():
        fail(f'{out}: it is there already; name another file with --out, or remove it')
    files = files_of(source) if source.is_dir() else {source: ()}
    torch = load_torch()
    tensors = {}
    for file, promised in files.items():
        found = tensors_of(torch, file)
        for name in promised:
            if name not in found:
                fail(f'{file}: the index says that it has the tensor {name!r}, which is not there')
        for name, tensor in found.items():
            if name in tensors:
                fail(f'{file}: tensor {name!r} is in another shard too')
            tensors[name] = tensor
    write(torch, tensors, out)
    print(f'{out}: {len(tensors)} tensors of {len(files)} {"file" if len(files) == 1 else "files"}')


if __name__ == '__main__':
    main()
