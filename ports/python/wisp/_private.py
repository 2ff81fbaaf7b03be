"""Samples from weights without a guarantee, each charged before it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NoReturn, TypedDict, Unpack

import numpy
import numpy.typing

from . import _core
from ._log import Unit
from ._recommender import Items, Path, Recommender
from ._results import Generated
from ._texts import TextModel, stream
from ._training import Anchor


class SampleOptions(TypedDict, total=False):
    """How samples are made and charged; an option that is left out, or 0, has its default.

    ledger: of the data that the model learned from; required if samples are charged.
    decoding: "mixed", the model with probability lambda_, else uniform; "anchored", the base moved by at most `clip`
      logits; None: anchored if there is a base, else mixed.
    public_datasets: labels of data sets in the models' provenance that are public: your word.
    Exactly one of lambda_, clip, epsilon_per_sample, and epsilon (of planned_samples together, at delta).
    budget_epsilon: limit over everything ever done with this data. samples_per_charge: charged samples are spent even
      if unused; 0: 1. num_records_public: a number of records that anybody may know; delta must be below 1 over it.
    """

    ledger: Path | None
    decoding: Literal["mixed", "anchored"] | None
    public_datasets: Sequence[str]
    lambda_: float
    clip: float
    epsilon_per_sample: float
    epsilon: float
    delta: float
    planned_samples: int
    budget_epsilon: float
    num_records_public: int
    allow_large_delta: bool
    temperature: float
    top_k: int
    top_p: float
    samples_per_charge: int
    other_data: bool
    uncharged_tuning: str | None
    unit: Unit | None
    anchor: Anchor | None


class PrivateRecommender(_core.PrivateRecommender):
    """Items are sampled instead of ranked, and the ledger is charged before each sample. Samples from weights with a
    guarantee, or of public data alone, are free. Keeps the models open. A context manager."""

    def __init__(
        self, model: Recommender, *, base: Recommender | None = None, **options: Unpack[SampleOptions]
    ) -> None:
        """Options: see `wisp.SampleOptions`. PrivacyRefused: the sentence says what has no guarantee."""
        super().__init__(model, base, dict(options))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateRecommender cannot be pickled: two copies would charge its ledger; open another one")

    def __enter__(self) -> PrivateRecommender:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def recommend(
        self,
        history: numpy.typing.ArrayLike,
        k: int = 10,
        *,
        exclude: Items | None = None,
        candidates: Items | None = None,
        allow_seen: bool | None = None,
    ) -> numpy.typing.NDArray[numpy.int32]:
        """Samples at most k distinct items after a history: int32 of shape (found,), in the order of the samples. The
        candidates must be public. PrivacyRefused when the budget is spent: then nothing was sampled."""
        return self._recommend(history, k, exclude, candidates, allow_seen)


class PrivateGenerator(_core.PrivateGenerator):
    """Samples tokens and charges the ledger before each. It protects either what the weights learned from, or the
    private texts in the prompt of public weights; the prompt itself is not protected. Keeps the models open. A context
    manager."""

    def __init__(
        self,
        model: TextModel,
        *,
        base: TextModel | None = None,
        private_texts: Sequence[str] = (),
        contexts: int = 0,
        mix_with_base: bool = False,
        base_top: int = 0,
        mixing_floor: float = 0,
        context_before: str | None = None,
        context_after: str | None = None,
        public_text: str | None = None,
        dataset: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> None:
        """Options: see `wisp.SampleOptions`; a sample is a token.

        base: the public decoder as shipped. private_texts: each one record; `contexts`: their public number.
        mix_with_base, base_top, mixing_floor: for mixed samples. context_before, context_after, public_text are public.
        """
        given = {
            key: value
            for key, value in locals().items()
            if key not in ("self", "__class__", "model", "base", "options")
        }
        super().__init__(model, base, {**given, **options})

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateGenerator cannot be pickled: two copies would charge its ledger; open another one")

    def __enter__(self) -> PrivateGenerator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def generate(
        self,
        prompt: str,
        *,
        max_new_tokens: int = 0,
        stop: Sequence[str] = (),
        on_text: Callable[[str], object] | None = None,
    ) -> Generated:
        """TextModel.generate with a guarantee. PrivacyRefused, before anything is charged, if the budget has no room
        for max_new_tokens (0: 128): the sentence says for how many it has."""
        return Generated(**self._generate(prompt, {"max_new_tokens": max_new_tokens, "stop": stop}, on_text))

    def stream(self, prompt: str, *, max_new_tokens: int = 0, stop: Sequence[str] = ()) -> Iterator[str]:
        """`generate`, piece by piece: each piece is sampled, and charged, when the loop asks for it. Until the loop
        ends, or is left, other calls of this object and its models are refused."""
        options = {"max_new_tokens": max_new_tokens, "stop": stop}
        return stream(lambda told: self._generate(prompt, options, told), self._waits)
