#!/usr/bin/env python3
"""Writes tests/golden/sasrec: small SASRec models with random weights in the layouts of SASRec.pytorch and of RecBole,
and what their equations give for random histories, in double precision. Needs numpy alone.

    tools/convert/sasrec_goldens.py tests/golden/sasrec

The equations are those of the two programs' models, written down here once more; nothing of theirs is run. Histories of
SASRec.pytorch fill the model's length, where padding plays no part.
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np

ITEMS, WIDTH, LENGTH, BLOCKS, HEADS, INNER, HISTORIES = 40, 12, 7, 2, 2, 20, 20
ERF = np.vectorize(math.erf)


def norm(x, weights, name, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * weights[name + '.weight'] + weights[name + '.bias']


def attention(x, qkv, qkv_bias, out, out_bias):
    size = WIDTH // HEADS
    q, k, v = np.split(x @ qkv.T + qkv_bias, 3, axis=1)
    hidden = np.tril(np.ones((len(x), len(x)))) == 0
    parts = []
    for h in range(HEADS):
        at = slice(h * size, (h + 1) * size)
        scores = q[:, at] @ k[:, at].T / math.sqrt(size)
        scores[hidden] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        parts.append(scores / scores.sum(-1, keepdims=True) @ v[:, at])
    return np.concatenate(parts, 1) @ out.T + out_bias


def pytorch_scores(w, history, norm_first):
    x = w['item_emb.weight'][history] * math.sqrt(WIDTH) + w['pos_emb.weight'][1 : LENGTH + 1]
    for b in range(BLOCKS):
        layer, forward = f'attention_layers.{b}', f'forward_layers.{b}'

        def attend(y):
            return attention(
                y,
                w[layer + '.in_proj_weight'],
                w[layer + '.in_proj_bias'],
                w[layer + '.out_proj.weight'],
                w[layer + '.out_proj.bias'],
            )

        def feed(y):
            inner = np.maximum(y @ w[forward + '.conv1.weight'][:, :, 0].T + w[forward + '.conv1.bias'], 0)
            return inner @ w[forward + '.conv2.weight'][:, :, 0].T + w[forward + '.conv2.bias']

        first, second = f'attention_layernorms.{b}', f'forward_layernorms.{b}'
        if norm_first:
            x = x + attend(norm(x, w, first, 1e-8))
            x = x + feed(norm(x, w, second, 1e-8))
        else:
            x = norm(x + attend(x), w, first, 1e-8)
            x = norm(x + feed(x), w, second, 1e-8)
    return w['item_emb.weight'] @ norm(x, w, 'last_layernorm', 1e-8)[-1]


def recbole_scores(w, history):
    x = w['item_embedding.weight'][history] + w['position_embedding.weight'][: len(history)]
    x = norm(x, w, 'LayerNorm', 1e-12)
    for b in range(BLOCKS):
        layer = f'trm_encoder.layer.{b}.'
        heads, forward = layer + 'multi_head_attention.', layer + 'feed_forward.'
        stacked = [np.concatenate([w[f'{heads}{n}.{kind}'] for n in ('query', 'key', 'value')])
                   for kind in ('weight', 'bias')]
        y = attention(x, *stacked, w[heads + 'dense.weight'], w[heads + 'dense.bias'])
        x = norm(x + y, w, heads + 'LayerNorm', 1e-12)
        inner = x @ w[forward + 'dense_1.weight'].T + w[forward + 'dense_1.bias']
        inner = inner * 0.5 * (1 + ERF(inner / math.sqrt(2)))
        y = inner @ w[forward + 'dense_2.weight'].T + w[forward + 'dense_2.bias']
        x = norm(x + y, w, forward + 'LayerNorm', 1e-12)
    return w['item_embedding.weight'] @ x[-1]


def pytorch_shapes():
    shapes = {'item_emb.weight': (ITEMS + 1, WIDTH), 'pos_emb.weight': (LENGTH + 1, WIDTH)}
    for b in range(BLOCKS):
        shapes |= {f'attention_layers.{b}.in_proj_weight': (3 * WIDTH, WIDTH)}
        shapes |= {f'attention_layers.{b}.in_proj_bias': (3 * WIDTH,)}
        shapes |= {f'attention_layers.{b}.out_proj.weight': (WIDTH, WIDTH)}
        shapes |= {f'attention_layers.{b}.out_proj.bias': (WIDTH,)}
        for conv in ('conv1', 'conv2'):
            shapes |= {f'forward_layers.{b}.{conv}.weight': (WIDTH, WIDTH, 1)}
            shapes |= {f'forward_layers.{b}.{conv}.bias': (WIDTH,)}
        for name in ('attention_layernorms', 'forward_layernorms'):
            shapes |= {f'{name}.{b}.weight': (WIDTH,), f'{name}.{b}.bias': (WIDTH,)}
    return shapes | {'last_layernorm.weight': (WIDTH,), 'last_layernorm.bias': (WIDTH,)}


def recbole_shapes():
    shapes = {'item_embedding.weight': (ITEMS + 1, WIDTH), 'position_embedding.weight': (LENGTH, WIDTH)}
    shapes |= {'LayerNorm.weight': (WIDTH,), 'LayerNorm.bias': (WIDTH,)}
    for b in range(BLOCKS):
        layer = f'trm_encoder.layer.{b}.'
        for name in ('query', 'key', 'value', 'dense'):
            shapes |= {f'{layer}multi_head_attention.{name}.weight': (WIDTH, WIDTH)}
            shapes |= {f'{layer}multi_head_attention.{name}.bias': (WIDTH,)}
        shapes |= {f'{layer}feed_forward.dense_1.weight': (INNER, WIDTH), f'{layer}feed_forward.dense_1.bias': (INNER,)}
        shapes |= {f'{layer}feed_forward.dense_2.weight': (WIDTH, INNER), f'{layer}feed_forward.dense_2.bias': (WIDTH,)}
        for name in ('multi_head_attention', 'feed_forward'):
            shapes |= {f'{layer}{name}.LayerNorm.weight': (WIDTH,), f'{layer}{name}.LayerNorm.bias': (WIDTH,)}
    return shapes


def draw(random, shapes):
    weights = {}
    for name, shape in shapes.items():
        is_gain = len(shape) == 1 and name.endswith('.weight')
        values = random.normal(1.0 if is_gain else 0.0, 0.3, shape).astype(np.float32)
        if name in ('item_emb.weight', 'pos_emb.weight'):
            values[0] = 0  # padding
        weights[name] = values
    return weights


def write(path, weights):
    header, at = {'__metadata__': {'format': 'pt'}}, 0
    for name, values in weights.items():
        header[name] = {'dtype': 'F32', 'shape': list(values.shape), 'data_offsets': [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    path.write_bytes(struct.pack('<Q', len(text)) + text + b''.join(v.tobytes() for v in weights.values()))


def cases(random, scores, least):
    """Histories hold item numbers of the original program, from 1; scores are those of items 1 to the last."""
    made = []
    for _ in range(HISTORIES):
        length = int(random.integers(least, LENGTH + 1))
        history = [int(i) for i in random.integers(1, ITEMS + 1, length)]
        made.append({'history': history, 'scores': [round(float(s), 7) for s in scores(history)[1:]]})
    return made


def main():
    if len(sys.argv) != 2:
        sys.exit('sasrec_goldens.py: one argument is needed, the folder to write')
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(27)
    pytorch, recbole = draw(random, pytorch_shapes()), draw(random, recbole_shapes())
    write(out / 'sasrec_pytorch.safetensors', pytorch)
    write(out / 'recbole.safetensors', recbole)
    wide = {name: values.astype(np.float64) for name, values in (pytorch | recbole).items()}
    expected = {
        'post': cases(random, lambda h: pytorch_scores(wide, h, False), LENGTH),
        'pre': cases(random, lambda h: pytorch_scores(wide, h, True), LENGTH),
        'recbole': cases(random, lambda h: recbole_scores(wide, h), 1),
    }
    (out / 'expected.json').write_text(json.dumps({'num_heads': HEADS} | expected) + '\n')


if __name__ == '__main__':
    main()
