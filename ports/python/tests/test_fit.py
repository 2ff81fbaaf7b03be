"""From a data frame to a recommender, with and without privacy."""

import inspect
import pickle
import random

import pytest
import wisp
from conftest import CAFE

PRIVATE = {"epsilon": 3, "delta": 1e-4, "num_records_public": 300, "epochs": 2, "num_threads": 1}


@pytest.fixture(scope="session")
def orders():
    """300 users who each choose from one of five shelves of eight items."""
    chance = random.Random(1)
    frame = {"who": [], "sku": [], "at": []}
    for user in range(300):
        shelf = [8 * (user % 5) + item for item in range(8)]
        for visit, item in enumerate(chance.sample(shelf, 6)):
            frame["who"].append(user)
            frame["sku"].append(100 + item)
            frame["at"].append(1000 * user + visit)
    return frame


@pytest.fixture(scope="session")
def shop(orders):
    return wisp.fit(orders, user="who", item="sku", time="at", epochs=20, hold_out=True)


def test_learns_the_shelves(shop, orders, caplog):
    assert not shop.is_private_ and "without privacy" in shop.privacy and "test" in shop.report_["not_private"]
    of_shelf = set(range(100, 108))
    assert set(shop.recommend([100, 101, 102], 5)) == of_shelf - {100, 101, 102}
    assert set(shop.similar_items(103, 7)) == of_shelf - {103}
    assert shop.score(orders) == pytest.approx(shop.report_["test"]["ndcg@10"], rel=1e-4) and shop.score(orders) > 0.4
    assert shop.evaluate(orders, (1, 8), "hit")["hit@8"] > 0.9
    lists = shop.predict(orders, 3)
    assert lists["who"][:3] == [0, 0, 0] and set(lists["sku"]) <= set(range(100, 140))


def test_says_that_it_is_not_private(orders, caplog):
    wisp.fit(orders, user="who", item="sku", time="at", epochs=0.01)
    assert [one.levelname for one in caplog.records if "without privacy" in one.message] == ["WARNING"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_takes_frames(orders, kind):
    package = pytest.importorskip(kind, reason=f"{kind} is not installed")
    shop = wisp.fit(package.DataFrame(orders), user="who", item="sku", time="at", epochs=0.1)
    made = shop.predict(package.DataFrame(orders), 2)
    assert type(made).__module__.startswith(kind) and list(made.columns) == ["who", "sku", "rank", "score"]
    assert made["who"].to_list()[:2] == [0, 0]


def test_learns_privately_from_fresh_weights(orders, tmp_path, caplog):
    ledger = tmp_path / "shop.ledger"
    options = {"user": "who", "item": "sku", "time": "at", "ledger": ledger, "catalogue": "public", **PRIVATE}
    shop = wisp.fit(orders, **options, budget_epsilon=4)
    assert shop.is_private_ and "private: epsilon" in shop.privacy
    assert not [one for one in caplog.records if "without privacy" in one.message]
    budget = wisp.budget(ledger)
    assert budget.epsilon_limit == 4 and 0 < budget.epsilon_charged <= budget.epsilon_stated <= 3
    assert shop.model_.provenance[-1].epsilon <= 3
    with pytest.raises(wisp.PrivacyRefused):
        wisp.fit(orders, **options)
    for left_out in ("delta", "num_records_public", "ledger"):
        with pytest.raises(wisp.InvalidArgument, match=f"^{left_out} is None, and is required with epsilon"):
            wisp.fit(orders, **{**options, left_out: None})
    with pytest.raises(wisp.InvalidArgument, match="catalogue='public' says that this list is no secret"):
        wisp.fit(orders, **{**options, "catalogue": None})
    with pytest.raises(wisp.InvalidArgument, match="hold_out is True"):
        wisp.fit(orders, **options, hold_out=True)


def test_learns_privately_from_a_base(guests, tmp_path):
    with wisp.Log.open(guests) as log:
        frame = log.to_frame("dict")
    options = {**PRIVATE, "num_records_public": 60, "delta": 1e-3, "expected_batch": 20}
    shop = wisp.fit(frame, base=CAFE, ledger=tmp_path / "l", output=tmp_path / "m.wisp", **options)
    assert shop.report_.epsilon <= 3 and shop.report_.epsilon_charged == shop.report_.epsilon_together
    assert (tmp_path / "m.wisp").exists() and len(shop.recommend(["tea-mint"], 3)) == 3


def test_parameters_are_those_of_scikit_learn(orders):
    one = wisp.SequenceRecommender(item="sku", epochs=2)
    assert one.get_params()["epochs"] == 2 and one.set_params(width=64) is one and one.width == 64
    assert repr(one) == "SequenceRecommender(item='sku', epochs=2, width=64)"
    assert set(wisp.FitParams.__annotations__) | {"user", "item", "time"} == set(one.get_params())
    with pytest.raises(wisp.InvalidArgument, match="no parameter 'depth'; allowed are user"):
        one.set_params(depth=3)
    with pytest.raises(TypeError, match="has no argument 'epoch'; .*did you mean epochs?"):
        wisp.SequenceRecommender(epoch=3)
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    copy = base.clone(one)
    assert copy is not one and copy.get_params() == one.get_params() and not hasattr(copy, "model_")


def test_a_fitted_one_is_pickled_saved_and_shown(shop, tmp_path):
    again = pickle.loads(pickle.dumps(shop))
    assert again.recommend([100, 101], 4) == shop.recommend([100, 101], 4) and again.get_params() == shop.get_params()
    shop.save(tmp_path / "shop.wisp")
    with wisp.Recommender.open(tmp_path / "shop.wisp") as model:
        assert model.info.content_hash == shop.model_.info.content_hash
    assert [path.name for path in tmp_path.iterdir()] == ["shop.wisp"]
    with pytest.raises(TypeError, match="history is '100'"):
        shop.recommend("100")
    assert "without privacy" in shop._repr_html_() and "is not fitted" in wisp.SequenceRecommender()._repr_html_()


def test_wrong_frames_are_sentences(orders):
    with pytest.raises(wisp.InvalidArgument, match="no column 'user'"):
        wisp.fit(orders)
    with pytest.raises(AttributeError, match="no model_: it is not fitted; call fit first"):
        wisp.SequenceRecommender().recommend(["tea"])
    assert list(inspect.signature(wisp.SequenceRecommender.fit).parameters) == ["self", "X", "y"]
