"""Samples that are charged before they are made."""

import gc
import subprocess
import sys
import time
import weakref

import pytest
import wisp
from conftest import CAFE

PUBLIC = ["synthetic public cafe guests"]


@pytest.fixture
def plain(program, guests, tmp_path):
    """The shipped model, trained on the log without a guarantee."""
    path = tmp_path / "plain.wisp"
    recipe = CAFE.parent / "recipes" / "cafe.json"
    program("train", "--recipe", recipe, "--model", CAFE, "--data", guests, "--epochs", 1, "--batch", 20, "--out", path)
    with wisp.Recommender.open(path) as model:
        yield model


def test_samples_are_charged(plain, cafe, tmp_path):
    ledger = tmp_path / "samples.ledger"
    options = {"ledger": ledger, "public_datasets": PUBLIC, "epsilon": 4, "delta": 1e-6, "planned_samples": 6}
    with wisp.PrivateRecommender(plain, base=cafe, **options) as sampled:
        assert not sampled.is_free
        items = sampled.recommend([1, 2, 3], 4)
        assert len(set(items.tolist())) == 4 and items.dtype.name == "int32"
        assert len(sampled.recommend([1, 2], 2, exclude=items)) == 2
        with pytest.raises(wisp.PrivacyRefused):
            sampled.recommend([1, 2, 3], 4)
        with pytest.raises(TypeError, match="history is 'a'"):
            sampled.recommend("a")
        with pytest.raises(wisp.InvalidArgument, match="k is -1"):
            sampled.recommend([1], -1)
    assert 0 < wisp.budget(ledger).epsilon_stated <= 4


def test_models_stay_open_until_the_samples_end(plain, cafe, tmp_path):
    sampled = wisp.PrivateRecommender(
        plain, base=cafe, ledger=tmp_path / "d.ledger", public_datasets=PUBLIC, clip=0.5, delta=1e-6
    )
    plain.close()
    cafe.close()
    assert len(sampled.recommend([1], 2)) == 2
    sampled.close()
    sampled.close()
    for use in (lambda: sampled.recommend([1]), lambda: sampled.is_free):
        with pytest.raises(wisp.Closed, match="this PrivateRecommender is closed"):
            use()


def test_public_weights_are_free(cafe):
    with wisp.PrivateRecommender(cafe, public_datasets=PUBLIC) as sampled:
        assert sampled.is_free and len(sampled.recommend([1], 3)) == 3 and len(sampled.recommend([1], 0)) == 0


class Knows:
    """An anchor that refers to the object that calls it."""

    def __init__(self) -> None:
        self.data = b""

    def read(self) -> bytes:
        return self.data

    def write(self, data: bytes) -> None:
        self.data = data


def test_an_anchor_that_knows_its_samples_is_collected_with_them(plain, cafe, tmp_path):
    anchor = Knows()
    sampled = wisp.PrivateRecommender(
        plain, base=cafe, ledger=tmp_path / "d.ledger", public_datasets=PUBLIC, clip=0.5, delta=1e-6, anchor=anchor
    )
    anchor.samples = sampled
    gc.collect()
    assert len(sampled.recommend([1], 2)) == 2 and len(anchor.data) > 0
    seen = weakref.ref(anchor)
    del anchor, sampled
    gc.collect()
    assert seen() is None


def test_what_has_no_guarantee_is_refused(plain, cafe, tmp_path):
    with pytest.raises(wisp.PrivacyRefused, match="ledger"):
        wisp.PrivateRecommender(plain, lambda_=0.5)
    with pytest.raises(wisp.Error):
        wisp.PrivateRecommender(plain, ledger=tmp_path / "x", lambda_=0.5, clip=1)
    with pytest.raises(wisp.InvalidArgument, match="decoding is 'beam'"):
        wisp.PrivateRecommender(plain, decoding="beam")
    with pytest.raises(TypeError, match="lambda is|lambda_ is 'a'"):
        wisp.PrivateRecommender(plain, lambda_="a")
    with pytest.raises(TypeError, match="lamda"):
        wisp.PrivateRecommender(plain, lamda=0.5)
    with pytest.raises(TypeError, match="public_datasets is 'a'"):
        wisp.PrivateRecommender(plain, public_datasets="a")
    with pytest.raises(TypeError):
        wisp.PrivateRecommender("plain")
    with pytest.raises(wisp.Unsupported):
        with wisp.Recommender.open(CAFE, backend="int8") as small:
            wisp.PrivateRecommender(small, public_datasets=PUBLIC)


def test_private_texts_are_charged(decoder, tmp_path):
    ledger = tmp_path / "notes.ledger"
    options = {
        "private_texts": ["the tea is cold", "a bagel"], "contexts": 8, "public_datasets": ["public texts"],
        "ledger": ledger, "dataset": "notes", "epsilon": 8, "delta": 1e-6, "planned_samples": 8,
    }  # fmt: skip
    with wisp.TextModel.open(decoder) as model, wisp.PrivateGenerator(model, **options) as generator:
        assert not generator.is_free
        pieces = []
        made = generator.generate("A note:", max_new_tokens=6, on_text=pieces.append)
        assert "".join(pieces) == made.text and made.num_tokens <= 6
        with pytest.raises(ZeroDivisionError) as raised:
            generator.generate("A note:", max_new_tokens=1, on_text=lambda text: 1 / 0)
        assert raised.value.__notes__ == ["wisp: the text was ended; the tokens that were sampled stay charged"]
        assert all(isinstance(piece, str) for piece in generator.stream("A note:", max_new_tokens=1))
        with pytest.raises(wisp.PrivacyRefused, match="room"):
            generator.generate("A note:", max_new_tokens=7)
        model.close()  # the generator keeps it open
        generator.close()
        with pytest.raises(wisp.Closed, match="this PrivateGenerator is closed"):
            generator.generate("A note:")
    assert ledger.exists()


def test_a_stream_pays_for_what_is_read(decoder, tmp_path):
    options = {
        "private_texts": ["the tea is cold", "a bagel"], "contexts": 8, "public_datasets": ["public texts"],
        "ledger": tmp_path / "notes.ledger", "dataset": "notes", "epsilon": 8, "delta": 1e-6, "planned_samples": 8,
    }  # fmt: skip
    with wisp.TextModel.open(decoder) as model, wisp.PrivateGenerator(model, **options) as generator:
        stream = generator.stream("A note:", max_new_tokens=8)
        next(stream)
        time.sleep(1)  # a reader that is slower than the model
        stream.close()
        generator.generate("A note:", max_new_tokens=2)  # half of them are left: a piece may take several tokens
        opened = generator.stream("A note:", max_new_tokens=2)
        next(opened)
        for call in (lambda: model.tokenize("a"), lambda: next(generator.stream("A note:", max_new_tokens=1))):
            with pytest.raises(wisp.InvalidArgument, match="a stream of this object is open; read it to its end"):
                call()
        generator.close()  # ends it
        list(opened)
        assert model.tokenize("a")


STREAM_AT_EXIT = """
import sys, wisp
model = wisp.TextModel.open(sys.argv[1])
options = {
    "private_texts": ["the tea is cold", "a bagel"], "contexts": 8, "public_datasets": ["public texts"],
    "ledger": sys.argv[2], "dataset": "notes", "epsilon": 8, "delta": 1e-6, "planned_samples": 8,
}
held = [model.stream("Once"), wisp.PrivateGenerator(model, **options).stream("A note:", max_new_tokens=8)]
print(next(held[int(sys.argv[3])]))
"""


@pytest.mark.parametrize("which", [0, 1])
def test_python_may_end_with_a_stream_that_is_open(decoder, tmp_path, which):
    command = [sys.executable, "-c", STREAM_AT_EXIT, decoder, tmp_path / "notes.ledger", str(which)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_public_decoders_are_free(decoder):
    with wisp.TextModel.open(decoder) as model:
        with wisp.PrivateGenerator(model, public_datasets=["public texts"]) as generator:
            assert generator.is_free and generator.generate("Once", max_new_tokens=3).num_tokens <= 3
        with pytest.raises(TypeError, match="context"):
            wisp.PrivateGenerator(model, context=8)
