"""Texts: vectors, classes, tokens and generated texts equal those of the program and the C interface."""

import json
import threading

import numpy
import pytest
import wisp
from conftest import CAFE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ANY_TEXT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def bert(encoder):
    with wisp.TextModel.open(encoder) as model:
        yield model


@pytest.fixture
def gpt(decoder):
    with wisp.TextModel.open(decoder) as model:
        yield model


def test_embeds_the_bits_of_c_and_of_the_program(bert, encoder, library, program):
    texts = ["word7 word8", "Word30", ""]
    vectors = bert.embed(texts)
    assert vectors.dtype == numpy.float32 and vectors.shape == (3, bert.info.width)
    for text, vector in zip(texts, vectors):
        assert vector.tobytes() == library.embed(encoder, text, bert.info.width)
        assert vector.tobytes() == bert.embed(text).tobytes() and bert.embed(text).shape == (bert.info.width,)
    told = json.loads(program("embed", encoder, "--text", texts[0], "--json"))["embeddings"][0]
    assert numpy.array(told, numpy.float32).tobytes() == vectors[0].tobytes()
    assert bert.embed([]).shape == (0, bert.info.width)


@ANY_TEXT
@given(text=st.text(max_size=200))
def test_every_text_is_read_or_is_a_sentence(bert, text):
    try:
        assert numpy.isfinite(bert.embed(text)).all()
        tokens = bert.tokenize(text)
        assert tokens.dtype == numpy.int32 and 0 < len(tokens) <= bert.info.max_length
    except wisp.InvalidArgument as error:
        assert "\0" in text and "NUL character at byte" in str(error)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (5, r"texts is 5 \(int\); allowed is a list of str"),
        (None, "texts is None"),
        (b"word", "bytes|int"),
        (["a", 5], r"texts\[1\] is 5 \(int\); allowed is a str"),
        ([b"a"], r"texts\[0\] is b'a'"),
        (numpy.array([1.0]), "texts"),
    ],
)
def test_what_is_no_text_is_a_type_error(bert, texts, sentence):
    with pytest.raises(TypeError, match=sentence):
        bert.embed(texts)


def test_a_text_without_utf8_is_an_error(bert):
    with pytest.raises(ValueError):
        bert.embed("a\ud800")
    with pytest.raises(ValueError):
        bert.tokenize("a\ud800")
    with pytest.raises(TypeError, match="text is 5"):
        bert.tokenize(5)


def test_classifies(classifier, program):
    with wisp.TextModel.open(classifier) as model:
        probabilities = model.classify(["word7 word8", "word30"])
        assert probabilities.shape == (2, model.info.num_classes) and model.info.num_classes > 1
        assert probabilities.sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
        assert len(model.classes) == model.info.num_classes
        assert model.classify("word30").tobytes() == probabilities[1].tobytes()


def test_generates_what_the_program_generates(gpt, decoder, program):
    for options, flags in (
        ({"seed": 5}, ["--seed", 5]),
        ({"greedy": True}, ["--temperature", 0]),
        (
            {"seed": 2, "top_k": 9, "temperature": 0.7, "top_p": 0.9},
            ["--seed", 2, "--top-k", 9, "--temperature", 0.7, "--top-p", 0.9],
        ),
    ):
        told = json.loads(program("generate", decoder, "--prompt", "Once", "--max-tokens", 12, "--json", *flags))
        made = gpt.generate("Once", max_new_tokens=12, **options)
        assert made.text == told.get("text", told.get("generated")) and made.num_tokens <= 12


def test_streams_the_same_text(gpt):
    whole = gpt.generate("Once", max_new_tokens=12, seed=5)
    assert whole.ended in ("length", "token", "context")
    pieces = []
    told = gpt.generate("Once", max_new_tokens=12, seed=5, on_text=pieces.append)
    assert told == whole and "".join(pieces) == whole.text
    assert "".join(gpt.stream("Once", max_new_tokens=12, seed=5)) == whole.text


def test_a_batch_gives_the_text_of_each(gpt):
    prompts = ["Once", "The tea", "", "a"]
    pieces = {}
    made = gpt.generate_batch(
        prompts, at_once=2, max_new_tokens=8, seed=3, on_text=lambda i, text: pieces.setdefault(i, []).append(text)
    )
    for i, prompt in enumerate(prompts):
        assert made[i].text == gpt.generate(prompt, max_new_tokens=8, seed=3 + i).text == "".join(pieces.get(i, []))
    assert gpt.generate_batch([]) == []
    assert gpt.generate_batch(prompts, max_new_tokens=8, on_text=lambda i, text: i != 1)[1].ended == "caller"


def test_a_stream_may_be_left(gpt):
    before = threading.active_count()
    stream = gpt.stream("Once", max_new_tokens=40, seed=5)
    next(stream)
    stream.close()
    assert threading.active_count() == before
    assert gpt.generate("Once", max_new_tokens=2).num_tokens <= 2


def test_a_callback_may_end_a_text(gpt):
    made = gpt.generate("Once", max_new_tokens=12, on_text=lambda text: False)
    assert made.ended == "caller" and made.num_tokens < 12
    with pytest.raises(ZeroDivisionError):
        gpt.generate("Once", max_new_tokens=12, on_text=lambda text: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        gpt.generate("Once", on_text=lambda text: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(ZeroDivisionError):
        gpt.generate_batch(["a", "b"], on_text=lambda i, text: 1 / 0)


def test_a_callback_cannot_enter_the_model_again(gpt):
    with pytest.raises(wisp.InvalidArgument, match="in use by the call whose callback this is"):
        gpt.generate("Once", on_text=lambda text: gpt.tokenize("a"))
    assert len(gpt.tokenize("a")) > 0  # is still usable


def test_a_stream_raises_what_generating_raises(gpt):
    with pytest.raises(wisp.InvalidArgument, match="temperature"):
        list(gpt.stream("Once", temperature=-1))
    with pytest.raises(TypeError, match="temperatur"):
        list(gpt.stream("Once", temperatur=1))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": float("nan")},
        {"top_p": 2},
        {"min_p": -1},
        {"top_k": -1},
        {"max_new_tokens": 2**40},
        {"seed": -1},
    ],
)
def test_wrong_options_are_sentences(gpt, options):
    with pytest.raises(wisp.InvalidArgument, match=next(iter(options))):
        gpt.generate("Once", **options)


def test_wrong_types_of_options_are_type_errors(gpt):
    with pytest.raises(TypeError, match="stop is 'a'"):
        gpt.generate("Once", stop="a")
    with pytest.raises(TypeError, match="greedy is 1"):
        gpt.generate("Once", greedy=1)
    with pytest.raises(TypeError, match="temperature is 'hot'"):
        gpt.generate("Once", temperature="hot")
    with pytest.raises(TypeError, match="prompt is 5"):
        gpt.generate(5)
    with pytest.raises(TypeError):
        gpt.generate("Once", on_text=5)


def test_each_kind_does_its_own(bert, gpt):
    with pytest.raises(wisp.Error, match="decoder"):
        bert.generate("Once")
    with pytest.raises(wisp.Error):
        bert.classify("word7")
    with pytest.raises(wisp.Error):
        gpt.embed("Once")
    assert gpt.info.is_decoder and not bert.info.is_decoder and bert.info.width == 32 or bert.info.width > 0
    with pytest.raises(wisp.Error):
        wisp.TextModel.open(CAFE)
    with pytest.raises(wisp.Unsupported):
        wisp.TextModel.open(CAFE, max_bytes=1 << 30)


def test_every_use_after_close_is_an_error(bert):
    bert.close()
    uses = [
        lambda: bert.embed("a"),
        lambda: bert.classify("a"),
        lambda: bert.tokenize("a"),
        lambda: bert.generate("a"),
        lambda: bert.generate_batch(["a"]),
        lambda: list(bert.stream("a")),
        lambda: bert.info,
        lambda: bert.classes,
        lambda: wisp.PrivateGenerator(bert),
    ]
    for use in uses:
        with pytest.raises(wisp.Closed, match="this TextModel is closed"):
            use()


def test_a_short_file_is_an_error(encoder, tmp_path):
    short = tmp_path / "short.wisp"
    short.write_bytes(encoder.read_bytes()[:5000])
    with pytest.raises(wisp.InvalidData, match="short.wisp"):
        wisp.TextModel.open(short)
    with pytest.raises(wisp.IoError, match="none.wisp"):
        wisp.TextModel.open(tmp_path / "none.wisp")
