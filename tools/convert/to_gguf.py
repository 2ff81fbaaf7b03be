#!/usr/bin/env python3
"""Writes a folder of Hugging Face with GPT-2 or Llama weights as GGUF, for comparing wisp with llama.cpp.

    python3 -m venv build/gguf && build/gguf/bin/pip install numpy gguf
    build/gguf/bin/python tools/convert/to_gguf.py FOLDER --out model.gguf --type q8_0    # f32, f16, q8_0 or q4_0

Matrices and the table of tokens take the type; biases, norms and positions stay f32. No tokenizer is written: programs
that read the file give it ids. What is there already is not replaced.
"""

import argparse
import json
import os
import pathlib
import struct
import sys

TYPES = ('f32', 'f16', 'q8_0', 'q4_0')
READ = {'F32': '<f4', 'F16': '<f2'}

# Maps names of Hugging Face to those of GGUF; {} is the block. `turned`: stored [in, out], where GGUF has [out, in].
GPT2 = {
    'wte.weight': ('token_embd.weight', False),
    'wpe.weight': ('position_embd.weight', False),
    'ln_f.weight': ('output_norm.weight', False),
    'ln_f.bias': ('output_norm.bias', False),
}
GPT2_BLOCK = {
    'h.{}.ln_1': ('blk.{}.attn_norm', False),
    'h.{}.attn.c_attn': ('blk.{}.attn_qkv', True),
    'h.{}.attn.c_proj': ('blk.{}.attn_output', True),
    'h.{}.ln_2': ('blk.{}.ffn_norm', False),
    'h.{}.mlp.c_fc': ('blk.{}.ffn_up', True),
    'h.{}.mlp.c_proj': ('blk.{}.ffn_down', True),
}
LLAMA = {
    'model.embed_tokens.weight': ('token_embd.weight', False),
    'model.norm.weight': ('output_norm.weight', False),
    'lm_head.weight': ('output.weight', False),
}
LLAMA_BLOCK = {
    'model.layers.{}.input_layernorm': ('blk.{}.attn_norm', False),
    'model.layers.{}.self_attn.q_proj': ('blk.{}.attn_q', False),
    'model.layers.{}.self_attn.k_proj': ('blk.{}.attn_k', False),
    'model.layers.{}.self_attn.v_proj': ('blk.{}.attn_v', False),
    'model.layers.{}.self_attn.o_proj': ('blk.{}.attn_output', False),
    'model.layers.{}.post_attention_layernorm': ('blk.{}.ffn_norm', False),
    'model.layers.{}.mlp.gate_proj': ('blk.{}.ffn_gate', False),
    'model.layers.{}.mlp.up_proj': ('blk.{}.ffn_up', False),
    'model.layers.{}.mlp.down_proj': ('blk.{}.ffn_down', False),
}


def fail(sentence):
    sys.exit(f'to_gguf.py: {sentence}')


def load_modules():
    try:
        import gguf
        import numpy
    except ImportError as error:
        fail(f'{error.name} is not installed; pip install numpy gguf, in a virtual environment')
    return gguf, numpy


def read_weights(folder, numpy):
    """Returns every tensor of the folder by its name, as f32."""
    paths = sorted(folder.glob('*.safetensors'))
    if not paths:
        fail(f'{folder}: there is no *.safetensors')
    tensors = {}
    for path in paths:
        data = path.read_bytes()
        (length,) = struct.unpack_from('<Q', data)
        header = json.loads(data[8:8 + length])
        for name, entry in header.items():
            if name == '__metadata__':
                continue
            if entry['dtype'] not in READ:
                fail(f"{path}: {name} is {entry['dtype']}, allowed are {' and '.join(READ)}")
            begin, end = (8 + length + at for at in entry['data_offsets'])
            values = numpy.frombuffer(data[begin:end], READ[entry['dtype']]).reshape(entry['shape'])
            tensors[name.removeprefix('transformer.')] = values.astype('<f4')
    return tensors


def renamed(tensors, named, of_block, blocks):
    """Yields (GGUF's name, values) of every tensor in the tables; a tensor that they do not name is an error."""
    table = dict(named)
    for block in range(blocks):
        for theirs, (ours, turned) in of_block.items():
            for part in ('weight', 'bias'):
                table[f'{theirs.format(block)}.{part}'] = (f'{ours.format(block)}.{part}', turned and part == 'weight')
    left = [name for name in tensors if name not in table and not name.endswith(('.attn.bias', '.attn.masked_bias'))]
    left = [name for name in left if not (name == 'lm_head.weight' and 'wte.weight' in tensors)]
    if left:
        fail(f'the tensor {left[0]} has no place in GGUF')
    for name, (ours, turned) in table.items():
        if name in tensors:
            yield ours, tensors[name].T if turned else tensors[name]


def paired(values, heads):
    """Orders the rows of queries or keys for llama.cpp's rotation: it rotates neighbours together instead of the two
    halves."""
    size = values.shape[0] // heads
    return values.reshape(heads, 2, size // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def describe_gpt2(writer, config):
    writer.add_context_length(config['n_positions'])
    writer.add_embedding_length(config['n_embd'])
    writer.add_feed_forward_length(config.get('n_inner') or 4 * config['n_embd'])
    writer.add_block_count(config['n_layer'])
    writer.add_head_count(config['n_head'])
    writer.add_layer_norm_eps(config['layer_norm_epsilon'])


def describe_llama(writer, config):
    heads = config['num_attention_heads']
    writer.add_context_length(config['max_position_embeddings'])
    writer.add_embedding_length(config['hidden_size'])
    writer.add_feed_forward_length(config['intermediate_size'])
    writer.add_block_count(config['num_hidden_layers'])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get('num_key_value_heads', heads))
    writer.add_layer_norm_rms_eps(config['rms_norm_eps'])
    writer.add_rope_dimension_count(config.get('head_dim') or config['hidden_size'] // heads)
    rope = config.get('rope_parameters') or {}
    writer.add_rope_freq_base(config.get('rope_theta') or rope.get('rope_theta', 10000.0))


def tensors_of(config, tensors):
    if config['model_type'] == 'gpt2':
        yield from renamed(tensors, GPT2, GPT2_BLOCK, config['n_layer'])
        return
    heads = config['num_attention_heads']
    turning = {'attn_q': heads, 'attn_k': config.get('num_key_value_heads', heads)}
    for name, values in renamed(tensors, LLAMA, LLAMA_BLOCK, config['num_hidden_layers']):
        part = name.split('.')[2] if name.startswith('blk.') else ''
        yield name, paired(values, turning[part]) if part in turning else values


def write(folder, out, wanted):
    gguf, numpy = load_modules()
    path = folder / 'config.json'
    if not path.is_file():
        fail(f'{folder}: there is no config.json')
    config = json.loads(path.read_text(encoding='utf-8'))
    kind = config.get('model_type')
    if kind not in ('gpt2', 'llama'):
        fail(f"{path}: model_type is {kind!r}, allowed are 'gpt2' and 'llama'")
    if out.exists():
        fail(f'{out}: it is there already')
    part = out.with_name(out.name + f'.{os.getpid()}')
    writer = gguf.GGUFWriter(part, kind)
    (describe_gpt2 if kind == 'gpt2' else describe_llama)(writer, config)
    writer.add_vocab_size(config['vocab_size'])
    writer.add_tokenizer_model('none')
    types = {'f32': 'F32', 'f16': 'F16', 'q8_0': 'Q8_0', 'q4_0': 'Q4_0'}
    for name, values in tensors_of(config, read_weights(folder, numpy)):
        small = values.ndim < 2 or name == 'position_embd.weight'
        to = gguf.GGMLQuantizationType['F32' if small else types[wanted]]
        data = numpy.ascontiguousarray(values)
        writer.add_tensor(name, gguf.quants.quantize(data, to), raw_dtype=to)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--type', choices=TYPES, default='f32')
    a = parser.parse_args()
    write(a.folder, a.out, a.type)


if __name__ == '__main__':
    main()
