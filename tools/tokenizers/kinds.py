"""Trains tokenizers of every kind that wisp reads, with the package `tokenizers`, on given texts.

kinds.train('gpt2', lines, vocab_size=2000)     # a tokenizers.Tokenizer
"""

import base64
import contextlib
import io
import os
import random
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r'\p{N}{1,3}', r'\p{N}')
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BERT_TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
# Tokens with each of the options that a token can have.
ADDED = [
    AddedToken('<strip>', lstrip=True, rstrip=True, special=True),
    AddedToken('<left>', lstrip=True, normalized=False),
    AddedToken('<right>', rstrip=True, normalized=False),
    AddedToken('lone', single_word=True, normalized=False),
    AddedToken('Yesterday', normalized=True),
    AddedToken('New York', normalized=True, lstrip=True),
    AddedToken('<|im_start|>', special=True),
    AddedToken('<|im', normalized=False),
]


def charsmap(rules=None):
    """SentencePiece's precompiled charsmap: of nmt_nfkc, or of rules 'from<tab>to' in hexadecimal code points."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        options = {'normalization_rule_name': 'nmt_nfkc'}
        if rules:
            path = os.path.join(folder, 'rules.tsv')
            with open(path, 'w') as file:
                file.write('\n'.join(rules) + '\n')
            options = {'normalization_rule_tsv': path}
        model = os.path.join(folder, 'm')
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(['a b c d'] * 9),
            model_prefix=model,
            vocab_size=9,
            hard_vocab_limit=False,
            minloglevel=3,
            **options,
        )
        with open(model + '.model', 'rb') as file:
            return precompiled_of(file.read())


def precompiled_of(proto):
    """The field precompiled_charsmap (2) of normalizer_spec (3) of a SentencePiece model."""

    def fields(data):
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        while at < len(data):
            key = varint()
            if key & 7 == 2:
                size = varint()
                yield key >> 3, data[at : at + size]
                at += size
            elif key & 7 == 0:
                varint()
            else:
                at += {1: 8, 5: 4}[key & 7]

    spec = next(value for number, value in fields(proto) if number == 3)
    return base64.b64encode(next(value for number, value in fields(spec) if number == 2)).decode()


def precompiled(rules=None):
    return normalizers.Precompiled(base64.b64decode(charsmap(rules)))


def byte_level(splitter, lines, size, normalizer=None, special=('<|endoftext|>',), **options):
    made = Tokenizer(models.BPE(**options))
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = splitter
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    return made


def by_pattern(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), 'isolated'),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def word_piece(lines, size, normalizer, splitter=None):
    made = Tokenizer(models.WordPiece(unk_token='[UNK]', max_input_chars_per_word=20))
    made.normalizer = normalizer
    made.pre_tokenizer = splitter or pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.train_from_iterator(
        lines, trainers.WordPieceTrainer(vocab_size=size, show_progress=False, special_tokens=BERT_TOKENS)
    )
    made.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]',
        pair='[CLS] $A [SEP] $B:1 [SEP]:1',
        special_tokens=[(t, made.token_to_id(t)) for t in ('[CLS]', '[SEP]')],
    )
    return made


def sentence_bpe(lines, size):
    made = Tokenizer(models.BPE(unk_token='<unk>', byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    made.pre_tokenizer = pre_tokenizers.Split('▁', 'merged_with_next')
    special = ['<unk>', '<s>', '</s>'] + [f'<0x{byte:02X}>' for byte in range(256)]
    made.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=size, show_progress=False, special_tokens=special[:3] + special[3:], limit_alphabet=200
        ),
    )
    # Trained with words and used without, like the files of Llama 2. Byte tokens belong to the model; they are not
    # added.
    import json

    parts = json.loads(made.to_str())
    parts['pre_tokenizer'] = None
    parts['added_tokens'] = [t for t in parts['added_tokens'] if t['id'] < 3]
    made = Tokenizer.from_str(json.dumps(parts))
    made.decoder = decoders.Sequence(
        [decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(' ', 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing(
        single='<s> $A', pair='<s> $A <s>:1 $B:1', special_tokens=[('<s>', 1)]
    )
    return made


def unigram(lines, size, normalizer, splitter, fallback=False):
    special = ['<pad>', '</s>', '<unk>'] + ([f'<0x{byte:02X}>' for byte in range(256)] if fallback else [])
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizer
    made.pre_tokenizer = splitter
    made.train_from_iterator(
        lines, trainers.UnigramTrainer(vocab_size=size, show_progress=False, special_tokens=special, unk_token='<unk>')
    )
    import json

    parts = json.loads(made.to_str())
    parts['model']['byte_fallback'] = fallback
    parts['added_tokens'] = [t for t in parts['added_tokens'] if t['id'] < 3]
    made = Tokenizer.from_str(json.dumps(parts))
    made.decoder = (
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]) if fallback else decoders.Metaspace()
    )
    made.post_processor = processors.TemplateProcessing(
        single='$A </s>', pair='$A </s> $B:1 </s>:1', special_tokens=[('</s>', 1)]
    )
    return made


def roberta(lines, size):
    tokens = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
    made = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), lines, size, special=tokens)
    made.post_processor = processors.RobertaProcessing(
        ('</s>', made.token_to_id('</s>')), ('<s>', made.token_to_id('<s>'))
    )
    made.add_special_tokens([AddedToken('<mask>', lstrip=True, special=True)])
    return made


def llama3(lines, size):
    made = byte_level(by_pattern(LLAMA3), lines, size, special=['<|begin_of_text|>'], ignore_merges=True)
    made.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single='<|begin_of_text|> $A',
                pair='<|begin_of_text|> $A <|begin_of_text|>:1 $B:1',
                special_tokens=[('<|begin_of_text|>', made.token_to_id('<|begin_of_text|>'))],
            ),
        ]
    )
    return made


def by_characters(normalizer, splitter=None):
    """A WordPiece that knows every assigned character, so that no difference hides in an unknown token."""
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ('Cs', 'Co', 'Cn')]
    vocabulary = BERT_TOKENS + known + ['##' + c for c in known]
    made = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token='[UNK]'))
    made.normalizer = normalizer
    made.pre_tokenizer = splitter or pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(cleanup=False)
    return made


def by_pairs(splitter, normalizer=None):
    """Byte-level BPE that merges any two bytes, so that each split shows."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(a, b) for a in letters for b in letters]
    random.Random(7).shuffle(merges)
    vocabulary = {token: i for i, token in enumerate(letters + [a + b for a, b in merges])}
    made = Tokenizer(models.BPE(vocabulary, merges))
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = splitter
    made.decoder = decoders.ByteLevel()
    return made


def with_added(made):
    made.add_tokens(ADDED)
    return made


KINDS = {
    'bert': lambda lines, size: word_piece(lines, size, normalizers.BertNormalizer()),
    'bert-added': lambda lines, size: with_added(word_piece(lines, size, normalizers.BertNormalizer())),
    'bert-cased': lambda lines, size: word_piece(lines, size, normalizers.BertNormalizer(lowercase=False)),
    'bert-accents': lambda lines, size: word_piece(
        lines,
        size,
        normalizers.BertNormalizer(lowercase=True, strip_accents=False, clean_text=False, handle_chinese_chars=False),
    ),
    'words': lambda lines, size: word_piece(
        lines,
        size,
        normalizers.Sequence(
            [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]
        ),
        pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=False)]),
    ),
    'words-cut': lambda lines, size: word_piece(
        lines,
        size,
        normalizers.Sequence([normalizers.NFD(), normalizers.Replace('ab', 'ba'), normalizers.Strip(right=False)]),
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.WhitespaceSplit(),
                pre_tokenizers.Punctuation(),
                pre_tokenizers.Digits(individual_digits=True),
            ]
        ),
    ),
    'bert-characters': lambda lines, size: by_characters(normalizers.BertNormalizer()),
    'bert-cased-characters': lambda lines, size: by_characters(normalizers.BertNormalizer(lowercase=False)),
    'bert-accents-characters': lambda lines, size: by_characters(
        normalizers.BertNormalizer(lowercase=True, strip_accents=False, clean_text=False)
    ),
    'words-characters': lambda lines, size: by_characters(
        normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=False)]),
    ),
    'words-cut-characters': lambda lines, size: by_characters(
        normalizers.NFC(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    ),
    'gpt2-pairs': lambda lines, size: by_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    'llama3-pairs': lambda lines, size: by_pairs(by_pattern(LLAMA3)),
    'qwen2-pairs': lambda lines, size: by_pairs(by_pattern(QWEN2), normalizers.NFC()),
    'nfd-pairs': lambda lines, size: by_pairs(
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False), normalizers.NFD()
    ),
    'nfkd-pairs': lambda lines, size: by_pairs(
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False), normalizers.NFKD()
    ),
    'nfkc-pairs': lambda lines, size: by_pairs(
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False), normalizers.NFKC()
    ),
    'gpt2': lambda lines, size: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), lines, size),
    'gpt2-added': lambda lines, size: with_added(
        byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), lines, size, normalizers.NFKC())
    ),
    'roberta': roberta,
    'llama3': llama3,
    'qwen2': lambda lines, size: byte_level(by_pattern(QWEN2), lines, size, normalizers.NFC()),
    'llama2': lambda lines, size: sentence_bpe(lines, size),
    'llama2-added': lambda lines, size: with_added(sentence_bpe(lines, size)),
    't5': lambda lines, size: unigram(
        lines,
        size,
        normalizers.Sequence([precompiled(), normalizers.Replace(Regex(' {2,}'), ' ')]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
    ),
    'xlmr': lambda lines, size: unigram(
        lines,
        size,
        normalizers.Sequence(
             [precompiled(), normalizers.Strip(left=False), normalizers.Replace(Regex(' {2,}'), '▁')]),
        pre_tokenizers.Metaspace(),
    ),
    'xlmr-bytes': lambda lines, size: unigram(
        lines,
        size,
        normalizers.Sequence(
             [precompiled(), normalizers.Strip(left=False), normalizers.Replace(Regex(' {2,}'), '▁')]),
        pre_tokenizers.Metaspace(),
        fallback=True,
    ),
    'unigram-bytes': lambda lines, size: with_added(
        unigram(
            lines,
            size,
            normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]),
            pre_tokenizers.Metaspace(prepend_scheme='first'),
            fallback=True,
        )
    ),
}


def train(kind, lines, vocab_size):
    return KINDS[kind](lines, vocab_size)
