#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/: small tokenizers of every kind, and what the reference makes of some texts.

    build/tokenizers/bin/python tools/tokenizers/make_goldens.py FOLDER

NAME.json is the tokenizer.json, NAME.cases.json a list of texts with their ids (with and without special tokens), what
the ids decode to, and the ids of the text beside the one before it. The unit tests need no Python.
"""

import json
import pathlib
import random
import sys

import kinds
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

WORDS = (
    'the a of and to in is was it that this film story people world never always good bad great believe '
    'believable unbelievable '
    'running runner runs walked walking house houses city cities music quietly slowly suddenly 12 345 2024 '
    'don\'t isn\'t we\'ll they\'re '
    'café naïve Straße Über señor Привет мир δοκιμή 你好 世界 東京 한국어 नमस्ते'
).split()
TEXTS = [
    '',
    ' ',
    'a',
    'The film is good.',
    ' Leading and trailing ',
    "It's an UNBELIEVABLE story, isn't it?",
    'two  spaces   three',
    'line\nbreak\r\n\r\nand\ttab',
    'I\'LL say WE\'VE, they\'re; don\'t\u2019t',
    '1234567890 3.14 $5',
    'café cafe\u0301 naïve Straße ẞ İ',
    'ﬁne Ａｂｃ ① ½ ㌔ ﷺ',
    '你好，世界。東京',
    '한국어 \u1112\u1161\u11ab',
    'नमस्ते क्षि',
    'ไทยำ',
    'Привет, мир!',
    '👍🏽 👩\u200d👩\u200d👧 🇩🇪🇫🇷',
    'a\u0301\u0327b\u0345\u0301',
    'zero\u200bwidth\u200djoin\ufeff',
    '\0\x01control\x7f\x9f',
    '\u00a0\u2003\u3000\u2028x',
    'tabs\t\t\tend\t',
    '\n\n\n',
    '   ',
    '▁metaspace ▁ ▁▁x',
    '<s>[CLS]</s> [MASK] <mask> <|endoftext|> <0x0A>',
    'unaffable##able',
    'x' * 120,
    'ab ' * 40,
    'Yesterday yesterday lone alone lone! New York <strip> a <left> b <right> c <|im_start|>',
    '\ue000\U0010ffff\ufffd',
    '\u212a\u017f\'\u017f \'S',
    '!?...--',
    'don\'t do not can \' t',
]


def training_lines():
    draw = random.Random(3)
    for _ in range(3000):
        words = [draw.choice(WORDS) for _ in range(draw.randrange(3, 12))]
        words[0] = words[0].capitalize()
        yield ' '.join(words) + draw.choice('.!?') + '\n'


def small_unigram(lines, size):
    rules = [
        'FB01\t66 69',
        'FF21\t41',
        '65 301\tE9',
        '61 301\tE1',
        '2460\t31',
        'A0\t20',
        '200B\t',
        'E33\tE4D E32',
        '1112 1161 11AB\tD55C',
    ]
    normal = normalizers.Sequence([kinds.precompiled(rules), normalizers.Replace(Regex(' {2,}'), ' ')])
    return kinds.unigram(
        lines, size, normal, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    )


def cases(made):
    listed = []
    for i, text in enumerate(TEXTS):
        ids = made.encode(text).ids
        pair = made.encode(TEXTS[i - 1], text).ids
        listed.append(
            {
                'text': text,
                'ids': ids,
                'plain': made.encode(text, add_special_tokens=False).ids,
                'decoded': made.decode(ids),
                'decoded_all': made.decode(ids, skip_special_tokens=False),
                'pair': pair,
            }
        )
    return listed


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(training_lines())
    made = {
        kind: kinds.train(kind, lines, size)
        for kind, size in [
            ('bert', 350),
            ('bert-added', 350),
            ('bert-cased', 350),
            ('words', 350),
            ('words-cut', 350),
            ('gpt2', 450),
            ('gpt2-added', 450),
            ('roberta', 450),
            ('llama3', 450),
            ('qwen2', 450),
            ('llama2', 550),
            ('llama2-added', 550),
            ('unigram-bytes', 500),
        ]
    }
    made['unigram'] = small_unigram(lines, 300)
    for name, tokenizer in made.items():
        text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=True, separators=(',', ':'))
        (folder / f'{name}.json').write_text(text + '\n')
        tokenizer = Tokenizer.from_str(text)
        rows = ',\n'.join(json.dumps(case, separators=(',', ':')) for case in cases(tokenizer))
        (folder / f'{name}.cases.json').write_text(f'[\n{rows}\n]\n')


main()
