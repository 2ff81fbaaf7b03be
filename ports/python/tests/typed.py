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
    model.recommend([1], kay=5)  # type: ignore[call-overload, call-arg, unused-ignore]
    wisp.personalise("a.wisp", "log.db", "b.wisp", "l.ledger", epsilon=3)  # type: ignore[call-arg]
    wisp.Recommender.open("a.wisp", backend="gpu")  # type: ignore[arg-type]
    wisp.Recommender.open("a.wisp", bakend="int8")  # type: ignore[call-arg]
    wisp.evaluate("a.wisp", 5)  # type: ignore[arg-type]
    print(best, found, vectors, report.epsilon)
    return items, text
