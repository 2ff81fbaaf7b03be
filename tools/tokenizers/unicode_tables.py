#!/usr/bin/env python3
"""Writes runtime/text/tokenizers/generated/unicode_flags.inc: the reference's answers for every code point.

    tools/tokenizers/unicode_tables.py > runtime/text/tokenizers/generated/unicode_flags.inc

The reference (the package `tokenizers`) takes its properties of characters from libraries of different Unicode
versions. So each property is asked of the reference itself, one code point after the other. Only where a flag is set
is utf8proc asked what a character becomes: a newer utf8proc, which knows more characters, changes nothing.
Needs the package `tokenizers` and the shared library of utf8proc (Debian: libutf8proc2).
"""

import ctypes
import ctypes.util
import sys

try:
    import tokenizers
    from tokenizers import Regex, normalizers, pre_tokenizers
except ImportError:
    sys.exit('unicode_tables.py: the Python package tokenizers is missing: pip install tokenizers')

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLOCK = 128
FLAGS = [
    'Letter',
    'Number',
    'PatternSpace',
    'White',
    'Punctuation',
    'Removed',
    'Nonspacing',
    'Mark',
    'Word',
    'Numeric',
    'Decomposes',
    'DecomposesCompat',
    'Reorders',
    'Lowers',
]


def isolated(splitter, separator):
    """Returns the code points that become a piece of their own between two separators."""
    found = set()
    for start in range(0, len(CODE_POINTS), 2000):
        part = CODE_POINTS[start : start + 2000]
        text = separator + separator.join(map(chr, part)) + separator
        for _, (begin, end) in splitter.pre_tokenize_str(text):
            if end == begin + 1 and begin % 2 == 1:
                found.add(part[begin // 2])
    return found


def removed(splitter):
    found = set()
    for start in range(0, len(CODE_POINTS), 2000):
        part = CODE_POINTS[start : start + 2000]
        text = 'a' + 'a'.join(map(chr, part)) + 'a'
        kept = {i for _, (begin, end) in splitter.pre_tokenize_str(text) for i in range(begin, end)}
        found.update(c for i, c in enumerate(part) if 2 * i + 1 not in kept)
    return found


def where(normalizer, holds):
    ask = normalizer.normalize_str
    return {c for c in CODE_POINTS if holds(chr(c), ask(chr(c)))}


def pattern(text):
    return isolated(pre_tokenizers.Split(Regex(text), 'isolated'), '!')


def properties():
    def bert(**on):
        base = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
        return normalizers.BertNormalizer(**{**base, **on})

    def changes(before, after):
        return before != after

    found = {
        'Letter': pattern(r'\p{L}'),
        'Number': pattern(r'\p{N}'),
        'PatternSpace': pattern(r'\s'),
        'White': removed(pre_tokenizers.WhitespaceSplit()),
        'Punctuation': isolated(pre_tokenizers.Punctuation(), 'a'),
        'Removed': where(bert(clean_text=True), lambda before, after: after == ''),
        'Nonspacing': where(bert(strip_accents=True), lambda before, after: after == ''),
        'Mark': where(normalizers.StripAccents(), lambda before, after: after == ''),
        'Word': isolated(pre_tokenizers.Whitespace(), '!'),
        'Numeric': isolated(pre_tokenizers.Digits(individual_digits=True), 'a'),
        'Decomposes': where(normalizers.NFD(), changes),
        'DecomposesCompat': where(normalizers.NFKD(), changes),
        # A mark with a class other than 0 moves before U+0345, whose class is the highest.
        'Reorders': {c for c in CODE_POINTS if normalizers.NFD().normalize_str('\u0345' + chr(c))[-1] == '\u0345'}
        | {0x345},
        'Lowers': where(normalizers.Lowercase(), changes),
    }
    assert list(found) == FLAGS
    return found


def lower_exceptions(lowers):
    """Returns the code points whose lower case in the reference belongs to another Unicode version than utf8proc's."""
    library = ctypes.CDLL(ctypes.util.find_library('utf8proc') or 'libutf8proc.so.2')
    lower = normalizers.Lowercase().normalize_str
    return [
        (c, lower(chr(c))) for c in sorted(lowers) if [library.utf8proc_tolower(c)] != list(map(ord, lower(chr(c))))
    ]


def rows(values):
    line = ''
    for value in values:
        text = f'{value},'
        if len(line) + len(text) > 118:
            yield line
            line = ''
        line += text
    yield line


def main():
    found = properties()
    bits = [0] * 0x110000
    for bit, name in enumerate(FLAGS):
        for c in found[name]:
            bits[c] |= 1 << bit
    sets = sorted(set(bits))
    assert len(sets) <= 256
    number = {flags: i for i, flags in enumerate(sets)}
    blocks, index, seen = [], [], {}
    for start in range(0, 0x110000, BLOCK):
        block = tuple(number[b] for b in bits[start : start + BLOCK])
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        index.append(seen[block])
    assert len(blocks) <= 256
    print(
        f'// Made by tools/tokenizers/unicode_tables.py of the package tokenizers {tokenizers.__version__}; '
        f'not edited by hand.'
    )
    print('\n'.join(f'inline constexpr uint16_t k{name} = 1 << {bit};' for bit, name in enumerate(FLAGS)))
    print(f'inline constexpr uint16_t kFlagSets[] = {{\n' + '\n'.join(rows(sets)) + '\n};')
    print(f'inline constexpr uint8_t kBlockIndex[] = {{\n' + '\n'.join(rows(index)) + '\n};')
    print(f'inline constexpr uint8_t kBlocks[][{BLOCK}] = {{')
    for block in blocks:
        print('{\n' + '\n'.join(rows(block)) + '\n},')
    print('};')
    exceptions = [(c, text) for c, text in lower_exceptions(found['Lowers']) if len(text) == 1]
    several = [(c, text) for c, text in lower_exceptions(found['Lowers']) if len(text) != 1]
    assert several == [(0x130, 'i\u0307')], several
    print('// The reference knows a lower case that utf8proc 2.8 does not.')
    print(
        'struct LowerException {\n  uint32_t upper, lower;\n};\ninline constexpr LowerException kLowerExceptions[] = {'
    )
    print('\n'.join(rows(f'{{{c},{ord(text)}}}' for c, text in exceptions)) + '\n};')
    for name in FLAGS:
        print(f'{name}: {len(found[name])}', file=sys.stderr)
    print(f'{len(blocks)} blocks, {len(sets)} sets, {len(exceptions)} exceptions', file=sys.stderr)


main()
