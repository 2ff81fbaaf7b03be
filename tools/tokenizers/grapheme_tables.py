#!/usr/bin/env python3
"""Writes runtime/text/tokenizers/generated/grapheme_classes.inc: where graphemes end otherwise than utf8proc 2.8
(Unicode 14) says.

    tools/tokenizers/grapheme_tables.py > runtime/text/tokenizers/generated/grapheme_classes.inc

Which characters join the one before them is asked of the reference: a charsmap that knows the letter a replaces all of
a short grapheme that begins with it. The other classes are those of the package `regex`, where the reference cannot be
asked. Needs the packages `tokenizers`, `sentencepiece` and `regex`, and utf8proc's shared library of version 2.8.
"""

import ctypes
import ctypes.util
import sys

try:
    import regex
    import tokenizers
    import kinds
except ImportError as error:
    sys.exit(f'grapheme_tables.py: a Python package is missing ({error}): pip install tokenizers sentencepiece regex')

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERYTHING = ''.join(map(chr, CODE_POINTS))
# The numbers are those of utf8proc_boundclass_t.
CLASSES = {
    'Other': 1,
    'CR': 2,
    'LF': 3,
    'Control': 4,
    'Extend': 5,
    'L': 6,
    'V': 7,
    'T': 8,
    'LV': 9,
    'LVT': 10,
    'Regional_Indicator': 11,
    'SpacingMark': 12,
    'Prepend': 13,
    'ZWJ': 14,
}
PICTOGRAPHIC, JOINS = 19, (5, 12, 14)


def members(name):
    return {ord(m.group()) for m in regex.finditer(r'\p{%s}' % name, EVERYTHING)}


def classes():
    library = ctypes.CDLL(ctypes.util.find_library('utf8proc') or 'libutf8proc.so.2')
    library.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_uint8)
    theirs = {c: library.utf8proc_get_property(c)[21] for c in CODE_POINTS}  # the byte boundclass
    assert theirs[0xD] == 2 and theirs[0xAC00] == 9 and theirs[0x1F600] == PICTOGRAPHIC, 'another utf8proc than 2.8'
    wanted = {c: number for name, number in CLASSES.items() for c in members('GCB=' + name)}
    replace_a = kinds.precompiled(['61\t58'])
    joins = {c for c in CODE_POINTS if replace_a.normalize_str('a' + chr(c)) == 'X'}
    for c in CODE_POINTS:
        if wanted[c] == 1 and theirs[c] == PICTOGRAPHIC:
            wanted[c] = PICTOGRAPHIC
        if c in joins and wanted[c] not in JOINS:
            wanted[c] = 5
        if c not in joins and wanted[c] in JOINS:
            wanted[c] = theirs[c] if theirs[c] not in JOINS else 1
    for c in members('Extended_Pictographic'):
        if wanted[c] == 1:
            wanted[c] = PICTOGRAPHIC
    return [(c, wanted[c]) for c in CODE_POINTS if wanted[c] != theirs[c]]


def ranges(pairs):
    runs = []
    for c, value in pairs:
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], c, value)
        else:
            runs.append((c, c, value))
    return runs


def show(name, runs):
    print(f'inline constexpr GraphemeRange k{name}[] = {{')
    line = ''
    for first, last, value in runs:
        text = f'{{{first},{last},{value}}},'
        if len(line) + len(text) > 118:
            print(line)
            line = ''
        line += text
    print(line + '\n};')


def main():
    consonants, linkers = members('InCB=Consonant'), members('InCB=Linker')
    print(
        f'// Made by tools/tokenizers/grapheme_tables.py of tokenizers {tokenizers.__version__} '
        f'and regex {regex.__version__};'
    )
    print('// not edited by hand.')
    print('struct GraphemeRange {\n  uint32_t first, last, kind;\n};')
    show('GraphemeClasses', ranges(classes()))
    show('IndicKinds', ranges(sorted([(c, 1) for c in consonants] + [(c, 2) for c in linkers])))


main()
