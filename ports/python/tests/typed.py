"""Calls that a type checker must accept, and, with ignores, those it must refuse (tests/python.sh: mypy --strict)."""

import numpy
import numpy.typing
import wisp


def use(model: wisp.Recommender, texts: wisp.TextModel) -> tuple[numpy.typing.NDArray[numpy.int32], str]:
    items, scores = model.recommend([1, 2], k=5, exclude={3})
    best: numpy.typing.NDArray[numpy.float32] = scores
    found: int | None = model.find("tea-mint")
    vectors: numpy.typing.NDArray[numpy.float32] = texts.embed(["a"])
    text: str = texts.generate("Once", on_text=print, max_new_tokens=3).text
    report: wisp.TrainingReport = wisp.personalise(
        "a.wisp", "log.db", "b.wisp", "l.ledger", epsilon=3, delta=1e-4, num_records_public=2000, unit="user"
    )
    shop: wisp.SequenceRecommender = wisp.fit({"user": ["a"], "item": ["k"], "time": [1]}, epochs=3)
    everything: numpy.typing.NDArray[numpy.float32] = model.scores([1]) + model.item_vectors()[0]
    everything = model.user_vectors([[1]])
    quality: wisp.Quality = wisp.evaluate("a.wisp", "log.db")
    ranking: wisp.Ranking = wisp.evaluate(shop.model_, "log.db", k=(5, 10), metrics="map")
    share: float = ranking["map@5"] + quality.ndcg_at_10 + wisp.budget("l.ledger").epsilon_charged
    shown: str = wisp.privacy_statement("l.ledger", 1e-4)._repr_html_() + shop._repr_html_()
    like, cosines = model.similar_items("tea-mint", k=3)
    print(everything, share, shown, like, cosines, shop.set_params(width=8).epochs)
    wisp.fit({}, epoch=3)  # type: ignore[call-arg]
    wisp.evaluate(shop.model_, "log.db", k=5, metrics=["auc"])  # type: ignore[list-item]
    model.recommend([1], kay=5)  # type: ignore[call-overload, call-arg, unused-ignore]
    wisp.personalise("a.wisp", "log.db", "b.wisp", "l.ledger", epsilon=3)  # type: ignore[call-arg]
    wisp.Recommender.open("a.wisp", backend="gpu")  # type: ignore[arg-type]
    wisp.Recommender.open("a.wisp", bakend="int8")  # type: ignore[call-arg]
    wisp.evaluate("a.wisp", 5)  # type: ignore[call-overload]
    print(best, found, vectors, report.epsilon)
    return items, text
