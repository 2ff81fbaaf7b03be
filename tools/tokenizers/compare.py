#!/usr/bin/env python3
"""Compares our tokenizers with the reference, the package `tokenizers`: every id, every decoded text, and the speed.

    python3 -m venv build/tokenizers && build/tokenizers/bin/pip install tokenizers sentencepiece
    ninja -C build/release encode_lines
    build/tokenizers/bin/python tools/tokenizers/compare.py --build build/release --strings 1000000 TEXT...

For each kind of kinds.py it trains a small vocabulary on docs/*.md and the texts given, and compares: every code point
alone, behind a letter and between letters; so many random strings of mixed scripts, emoji, marks, white space and
control characters; each text given, line by line and whole; pairs; and decoding. Ends with 1 if one id differs.
"""

import argparse
import array
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

os.environ['TOKENIZERS_PARALLELISM'] = 'false'
os.environ['RAYON_NUM_THREADS'] = '1'
try:
    import tokenizers
    import kinds
except ImportError as error:
    sys.exit(f'compare.py: a Python package is missing ({error}); the head of this file says how to install it')

ROOT = pathlib.Path(__file__).resolve().parents[2]
SURROGATES = range(0xD800, 0xE000)


class Ours:
    def __init__(self, build, path):
        self.program, self.path = str(pathlib.Path(build) / 'encode_lines'), str(path)

    def run(self, how, data):
        done = subprocess.run([self.program, self.path, how], input=data, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f'compare.py: encode_lines {how} failed on {self.path}')
        return done.stdout

    def encode(self, texts, how='encode'):
        return lists(self.run(how, b''.join(packed(t.encode()) for t in texts)), 4)

    def decode(self, ids, how='decode'):
        return [
            t.decode()
            for t in lists(self.run(how, b''.join(packed(array.array('i', i).tobytes(), len(i)) for i in ids)), 1)
        ]


def packed(data, count=None):
    return struct.pack('<I', len(data) if count is None else count) + data


def lists(data, width):
    at, found = 0, []
    while at < len(data):
        size = struct.unpack_from('<I', data, at)[0] * width
        at += 4
        part = data[at : at + size]
        found.append(part if width == 1 else list(array.array('i', part)))
        at += size
    return found


def characters():
    for c in range(0x110000):
        if c in SURROGATES:
            continue
        yield chr(c)
        yield 'a' + chr(c)
        yield 'x' + chr(c) + 'y'


BLOCKS = [
    (0x20, 0x7F),
    (0x20, 0x7F),
    (0x20, 0x7F),
    (0, 0x20),
    (0x80, 0x250),
    (0x250, 0x370),
    (0x370, 0x400),
    (0x400, 0x530),
    (0x590, 0x700),
    (0x900, 0xE00),
    (0xE00, 0x1000),
    (0x1100, 0x1200),
    (0x1E00, 0x2000),
    (0x2000, 0x2070),
    (0x20A0, 0x2C00),
    (0x2E80, 0x3400),
    (0x4E00, 0x9FFF),
    (0xA000, 0xABFF),
    (0xAC00, 0xD7A4),
    (0xF900, 0x10000),
    (0x10000, 0x12000),
    (0x16000, 0x17000),
    (0x1B000, 0x1B300),
    (0x1D000, 0x1D800),
    (0x1E000, 0x1F000),
    (0x1F000, 0x1FB00),
    (0x20000, 0x20100),
    (0x2F800, 0x2FA20),
    (0xE0000, 0xE0200),
    (0xFE00, 0xFE10),
]
PIECES = [
    "'s",
    "'S",
    "'\u017f",
    "'ll",
    "'LL",
    "'Re",
    "n't",
    ' ',
    '  ',
    '   ',
    '\n',
    '\r\n',
    '\t',
    '\u00a0',
    '\u3000',
    '\u2028',
    '\u200b',
    '\u200d',
    '\ufeff',
    '\u0301',
    '\u0308',
    '\u0345',
    '\u0327\u0301',
    '\u1100\u1161\u11a8',
    '\u0130',
    '\u1e9e',
    '\u212a',
    '\u2581',
    '\u2581\u2581',
    '\0',
    '\x7f',
    '👩\u200d👩\u200d👧',
    '🇩🇪',
    '👍🏽',
    '\ufb01',
    '\uff21',
    '①',
    '½',
    '12345',
    '3.14',
    '--',
    '...',
    '<|im_start|>',
    '<|im',
    '<strip>',
    '<left>',
    '<right>',
    'lone',
    'Yesterday',
    'yesterday',
    'New York',
    '[MASK]',
    '[CLS]',
    '<mask>',
    '</s>',
    '<s>',
    '<unk>',
    '<|endoftext|>',
    '<0x0A>',
    '<0xE2>',
    '##',
    '\u0915\u094d\u0937',
    '\u0ba8\u0bbf',
    '\u0e33',
    '\u200c',
    '\u0600',
    '\U000110bd',
    '\U0001f3fb',
    'ﷺ',
    '㌔',
]
WORDS = (
    'the a The film is good and of to it was I never seen such an un believ able story isn\'t don\'t we\'ll '
    'café naïve Straße'
).split()


def random_string(draw):
    parts = []
    for _ in range(draw.randrange(1, 14)):
        kind = draw.random()
        if kind < 0.3:
            parts.append(draw.choice(WORDS))
            if draw.random() < 0.7:
                parts.append(' ')
        elif kind < 0.6:
            parts.append(draw.choice(PIECES))
        else:
            low, high = draw.choice(BLOCKS)
            parts.extend(chr(draw.randrange(low, high)) for _ in range(draw.randrange(1, 4)))
    return ''.join(parts)


def random_strings(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        text = random_string(draw)
        yield ''.join(c for c in text if ord(c) not in SURROGATES)


class Counter:
    """Counts comparisons and differences, by kind and subject."""

    def __init__(self):
        self.compared, self.wrong = 0, 0

    def add(self, kind, subject, inputs, ours, theirs):
        assert len(ours) == len(theirs) == len(inputs), (kind, subject, len(ours), len(theirs), len(inputs))
        self.compared += len(inputs)
        faults = [i for i in range(len(inputs)) if ours[i] != theirs[i]]
        self.wrong += len(faults)
        for i in faults[:5]:
            print(f'  {kind}, {subject}: {inputs[i]!r}\n    ours   {ours[i]!r}\n    theirs {theirs[i]!r}')
        if len(faults) > 5:
            print(f'  {kind}, {subject}: {len(faults)} differ')


def batches(items, size=50000):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def compare_texts(kind, subject, texts, ours, reference, counter, special=True, decode=False):
    for batch in batches(texts):
        theirs = [e.ids for e in reference.encode_batch_fast(batch, add_special_tokens=special)]
        counter.add(kind, subject, batch, ours.encode(batch, 'encode' if special else 'plain'), theirs)
        if not decode:
            continue
        texts_of = reference.decode_batch(theirs)
        counter.add(kind, subject + ', decoded', theirs, ours.decode(theirs), texts_of)
        # A stream ends like the whole; before that, the reference leaves out characters that it never completes.
        whole = [i for i, t in enumerate(texts_of) if '\ufffd' not in t]
        counter.add(
            kind,
            subject + ', streamed',
            [theirs[i] for i in whole],
            ours.decode([theirs[i] for i in whole], 'stream'),
            [texts_of[i] for i in whole],
        )


def compare_kind(kind, ours, reference, options, counter):
    if not options.no_code_points:
        compare_texts(kind, 'code points', characters(), ours, reference, counter, special=False)
    compare_texts(kind, 'random strings', random_strings(options.strings, options.seed), ours, reference, counter)
    some = list(random_strings(min(options.strings, 20000), options.seed + 1))
    compare_texts(kind, 'random strings', some, ours, reference, counter, decode=True)
    pairs = list(zip(some[0::2], some[1::2]))
    counter.add(
        kind,
        'pairs',
        pairs,
        ours.encode([t for pair in pairs for t in pair], 'pair'),
        [e.ids for e in reference.encode_batch_fast(pairs)],
    )
    draw = random.Random(options.seed)
    size = reference.get_vocab_size()
    ids = [[draw.randrange(size) for _ in range(draw.randrange(1, 12))] for _ in range(min(options.strings, 20000))]
    counter.add(kind, 'random ids, decoded', ids, ours.decode(ids), reference.decode_batch(ids))
    for path in options.texts:
        text = pathlib.Path(path).read_bytes().decode(errors='replace')
        compare_texts(kind, path, text.splitlines(keepends=True), ours, reference, counter, decode=True)
        compare_texts(kind, path + ', whole', [text], ours, reference, counter)


def speed(kind, path, reference, ours, texts, times=5):
    """Returns the seconds of one pass over all lines: the median of several, ours and theirs in turns of this run."""
    lines = [line for text in texts for line in text]
    data = b''.join(packed(t.encode()) for t in lines)
    theirs, ids = [], 0
    for _ in range(times):
        begin = time.perf_counter()
        encodings = reference.encode_batch_fast(lines, add_special_tokens=False)
        theirs.append(time.perf_counter() - begin)
        ids = sum(len(e.ids) for e in encodings)
    rows = [row.split() for row in ours.run('time', data).decode().splitlines()]
    assert int(rows[0][1]) == ids, (kind, path)
    mine = statistics.median(float(row[0]) for row in rows)
    other = statistics.median(theirs)
    size = sum(len(t.encode()) for t in lines) / 1e6
    print(
        f'  {kind}, {path}: ours {size / mine:.1f} MB/s, theirs {size / other:.1f} MB/s, '
        f'{other / mine:.2f} times as fast'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, help='the folder with encode_lines')
    parser.add_argument('--strings', type=int, default=100000, help='number of random strings')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--no-code-points', action='store_true', help='leave out the 3,336,192 single code points')
    parser.add_argument('--kinds', default=','.join(kinds.KINDS), help='kinds, separated by commas')
    parser.add_argument('--vocabulary', type=int, default=4000, help='tokens of each vocabulary')
    parser.add_argument('--speed', action='store_true', help='time both instead of comparing')
    parser.add_argument('--json', help='compare with this tokenizer.json instead')
    parser.add_argument('texts', nargs='*', help='texts in UTF-8 to compare and to train on')
    options = parser.parse_args()
    lines = [
        line for path in sorted((ROOT / 'docs').glob('*.md')) for line in path.read_text().splitlines(keepends=True)
    ]
    given = {
        path: pathlib.Path(path).read_bytes().decode(errors='replace').splitlines(keepends=True)
        for path in options.texts
    }
    for part in given.values():
        lines += part
    counter = Counter()
    print(f'tokenizers {tokenizers.__version__}, {options.strings} random strings, seed {options.seed}')
    with tempfile.TemporaryDirectory() as folder:
        for kind in ['json'] if options.json else options.kinds.split(','):
            reference = (
                tokenizers.Tokenizer.from_file(options.json)
                if options.json
                else kinds.train(kind, lines, options.vocabulary)
            )
            path = os.path.join(folder, kind + '.json')
            reference.save(path)
            reference = tokenizers.Tokenizer.from_file(path)
            ours = Ours(options.build, path)
            if options.speed:
                for name, part in given.items():
                    speed(kind, name, reference, ours, [part])
                continue
            before = counter.compared, counter.wrong
            begin = time.perf_counter()
            compare_kind(kind, ours, reference, options, counter)
            print(
                f'{kind}: {counter.compared - before[0]} compared, {counter.wrong - before[1]} differ, '
                f'{time.perf_counter() - begin:.0f} s',
                flush=True,
            )
    if not options.speed:
        print(f'{counter.compared} compared, {counter.wrong} differ')
    sys.exit(1 if counter.wrong else 0)


main()
