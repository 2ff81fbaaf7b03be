"""Vectors, scores, items alike, frames of lists, held-out evaluation, and pickled models."""

import math
import pickle
import shutil

import numpy
import pytest
import wisp
from conftest import CAFE

PAIRS = [("pandas", "pandas"), ("polars", "polars"), ("dict", None)]


def frame_of(kind, columns):
    if kind == "dict":
        return columns
    return pytest.importorskip(kind, reason=f"{kind} is not installed").DataFrame(columns)


def test_scores_rank_items_as_recommend_does(cafe):
    items, scores = cafe.recommend([12, 7, 31], len(cafe), allow_seen=True)
    every = cafe.scores([12, 7, 31])
    assert every.dtype == numpy.float32 and every.shape == (len(cafe),)
    assert numpy.array_equal(every[items], scores)
    assert numpy.array_equal(cafe.scores(cafe.keys([12, 7, 31])), every)
    popular, popularity = cafe.recommend([], 5)
    assert numpy.array_equal(cafe.scores([])[popular], popularity)
    with pytest.raises(wisp.InvalidArgument, match="names item 480"):
        cafe.scores([480])


def test_vectors_give_the_scores(cafe):
    items, users = cafe.item_vectors(), cafe.user_vectors([[12, 7, 31], cafe.keys([5]), numpy.array([1, 2])])
    assert items.shape == (len(cafe), cafe.info.width) and users.shape == (3, cafe.info.width)
    # The rest of a score is the item's bias, the same after every history, and what followed the last item.
    left = [cafe.scores(history) - items @ user for history, user in zip([[12, 7, 31], [5], [1, 2]], users)]
    assert numpy.median(abs(left[0] - left[1])) < 1e-4 and numpy.median(abs(left[0] - left[2])) < 1e-4
    assert cafe.user_vectors([]).shape == (0, cafe.info.width)
    with pytest.raises(wisp.InvalidArgument, match="no item that the model has learned"):
        cafe.user_vectors([[]])


def test_similar_items_have_the_largest_cosines(cafe):
    items, cosines = cafe.similar_items("tea-mint", 5)
    vectors = cafe.item_vectors().astype(float)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    own = cafe.find("tea-mint")
    every = vectors @ vectors[own]
    every[own] = -2
    assert items.tolist() == numpy.argsort(-every)[:5].tolist()
    assert cosines == pytest.approx(every[items], abs=1e-5)
    assert cafe.similar_items(own, 0)[0].tolist() == [] and len(cafe.similar_items(own, 10_000)[0]) == len(cafe) - 1
    for item in ("nothing", 480, -1):
        with pytest.raises(wisp.InvalidArgument, match="the model has no such item"):
            cafe.similar_items(item)


@pytest.mark.parametrize(("kind", "package"), PAIRS)
def test_frames_come_back_as_frames(cafe, kind, package):
    columns = {"who": [7, 8, 7], "sku": ["tea-mint", "never heard", "bagel-lentil"], "at": [1, 2, 0]}
    made = cafe.recommend_frame(frame_of(kind, columns), 3, user="who", item="sku", time="at")
    assert (package or "builtins") in type(made).__module__
    table = {name: list(made[name]) for name in ("who", "sku", "rank", "score")}
    after = cafe.recommend(["bagel-lentil", "tea-mint"], 3)
    of = {who: [at for at, one in enumerate(table["who"]) if one == who] for who in (7, 8)}
    assert [table["sku"][at] for at in of[7]] == cafe.keys(after[0])
    assert [table["score"][at] for at in of[7]] == after[1].tolist()
    assert [table["rank"][at] for at in of[7]] == [1, 2, 3]
    assert [table["sku"][at] for at in of[8]] == cafe.keys(cafe.recommend([], 3)[0])


def test_a_log_and_lists_become_frames(cafe, guests):
    with wisp.Log.open(guests) as log:
        made = cafe.recommend_frame(log, 2, to="dict")
        user = made["user"][0]
        assert made["item"][:2] == cafe.keys(cafe.recommend(log.history(cafe, user), 2)[0])
        every = log.to_frame("dict")
        assert len(every["time"]) == log.count().events
        assert list(zip(every["user"], every["item"], every["time"]))[:50] == list(log)[:50]
    assert cafe.recommend_frame([[1], ["tea-mint"]], 1)["user"] == [0, 1]
    for wrong in (["tea-mint"], [[1.5]]):
        with pytest.raises(TypeError):
            cafe.recommend_frame(wrong)
    with pytest.raises(wisp.InvalidArgument, match="to is 'arrow'"):
        cafe.recommend_frame([[1]], to="arrow")


@pytest.mark.parametrize("seen", [True, False])
def test_evaluates_as_the_library_does(cafe, guests, tmp_path, program, seen):
    model = CAFE
    if not seen:
        model = tmp_path / "unseen.wisp"
        with wisp.Log.open(guests) as log:
            wisp.fit(log.to_frame("dict"), epochs=1, output=model)
    whole = wisp.evaluate(model, guests)
    ranking = wisp.evaluate(model, guests, k=(5, 10), metrics=["ndcg", "hit", "mrr"])
    assert ranking["ndcg@10"] == pytest.approx(whole.ndcg_at_10, rel=1e-6) and whole.ndcg_at_10 > 0
    assert ranking["hit@10"] == pytest.approx(whole.hit_at_10) and ranking.num_users == whole.num_users
    assert ranking["hit@5"] <= ranking["hit@10"] and set(ranking.not_private) == {*ranking.metrics, "num_users"}
    assert "not private" in ranking._repr_html_() and "not private" in whole._repr_html_()


class Fixed(wisp.Recommender):
    """Gives a list by the first item of a history."""

    lists = {0: [10, 11, 12, 13], 1: [20, 21, 22, 23]}

    def recommend_batch(self, histories, k=10, **_):
        return numpy.array([self.lists[one[0]][:k] for one in histories], numpy.int32), None


def test_metrics_are_those_of_their_definitions():
    keys = {name: f"{name}@4" for name in ("ndcg", "hit", "recall", "precision", "mrr", "map", "coverage")}
    with Fixed(CAFE) as model:
        events = [[0, 5, 11, 13], [1, 5, 6, 20], [0, 5, 11, 11], [1, 2, 3]]  # the last has too few events
        got = model.evaluate(events, 4, [*keys], held_out=2)
    found = [[0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    wanted = [2, 2, 1]
    expected = {name: [] for name in keys}
    for hits, num in zip(found, wanted):
        gains = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits))
        expected["ndcg"].append(gains / sum(1 / math.log2(rank + 2) for rank in range(num)))
        expected["hit"].append(1)
        expected["recall"].append(sum(hits) / num)
        expected["precision"].append(sum(hits) / 4)
        expected["mrr"].append(1 / (1 + hits.index(1)))
        expected["map"].append(sum(sum(hits[: at + 1]) / (at + 1) for at in range(4) if hits[at]) / num)
    assert got.num_users == 3
    for name, key in keys.items():
        assert got[key] == pytest.approx(8 / 480 if name == "coverage" else sum(expected[name]) / 3), name


def test_wrong_questions_are_sentences(cafe, guests, tmp_path):
    for k in (0, -1, True, []):
        with pytest.raises(wisp.InvalidArgument, match="allowed are whole numbers from 1 on"):
            cafe.evaluate([[1, 2, 3]], k)
    with pytest.raises(wisp.InvalidArgument, match="metrics has 'auc'; allowed are ndcg, hit"):
        cafe.evaluate([[1, 2, 3]], metrics="auc")
    with pytest.raises(wisp.InvalidArgument, match="held_out is 0"):
        cafe.evaluate([[1, 2, 3]], held_out=0)
    with pytest.raises(wisp.IoError, match="none.db: there is no such file"):
        wisp.evaluate(CAFE, tmp_path / "none.db", k=5)
    assert not (tmp_path / "none.db").exists()
    assert cafe.evaluate([[1, 2]]).num_users == 0


def test_models_are_pickled_by_file(tmp_path):
    path = tmp_path / "m.wisp"
    shutil.copy(CAFE, path)
    held = wisp.Recommender.from_bytes(CAFE.read_bytes())
    with wisp.Recommender.open(path, float16_cache=True) as model, held:
        by_file, by_bytes = pickle.dumps(model), pickle.dumps(held)
        assert len(by_file) < 1000 < len(by_bytes)
        for again, first in ((pickle.loads(by_file), model), (pickle.loads(by_bytes), held)):
            assert numpy.array_equal(again.recommend([1, 2])[1], first.recommend([1, 2])[1])
        session = pickle.loads(pickle.dumps(model.session([1, 2])))
        assert session.history == [1, 2] and len(session.recommend(3)[0]) == 3
    with wisp.Recommender.open(CAFE) as other:
        wisp.catalogue_retire(CAFE, [other.item_key(0)], path)
    with pytest.raises(wisp.InvalidData, match="m.wisp: is another model than the one that was pickled"):
        pickle.loads(by_file)
    with pytest.raises(wisp.Closed):
        pickle.dumps(model)


def test_what_is_open_is_not_pickled(tmp_path, cafe):
    with wisp.Log.open(tmp_path / "log.db") as log:
        with pytest.raises(TypeError, match="an open Log cannot be pickled: pickle its path"):
            pickle.dumps(log)
    with wisp.PrivateRecommender(cafe, public_datasets=["synthetic public cafe guests"]) as sampled:
        with pytest.raises(TypeError, match="cannot be pickled: two copies would charge"):
            pickle.dumps(sampled)
