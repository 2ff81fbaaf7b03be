"""From a data frame to a recommender, with and without privacy."""

import inspect
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import wisp
from conftest import CAFE
from wisp import _folder

PRIVATE = {
    "epsilon": 3, "delta": 1e-4, "num_records_public": 300, "epochs": 2, "num_threads": 1, "dataset": "members",
}  # fmt: skip
NAMES = {"user": "who", "item": "sku", "time": "at"}


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
    for left_out in ("delta", "num_records_public", "ledger", "dataset"):
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
    with pytest.raises(AttributeError, match="no privacy: it is not fitted; call fit first"):
        print(wisp.SequenceRecommender().privacy)
    assert list(inspect.signature(wisp.SequenceRecommender.fit).parameters) == ["self", "X", "y"]


def test_learns_privately_from_an_ordinary_fit_of_other_people(orders, tmp_path):
    base = tmp_path / "base.wisp"
    wisp.fit(orders, **NAMES, epochs=1, output=base)
    options = {**NAMES, **PRIVATE, "base": base, "ledger": tmp_path / "l"}
    tuned = wisp.fit(orders, **options)
    assert tuned.privacy.startswith("private: epsilon") and tuned.model_.provenance[-1].dataset == "members"
    with pytest.raises(wisp.PrivacyRefused, match="on 'events' before, without a guarantee.*other_data=True"):
        wisp.fit(orders, **{**options, "dataset": "events", "ledger": tmp_path / "l2"})
    assert wisp.fit(orders, **{**options, "dataset": "events", "ledger": tmp_path / "l2"}, other_data=True).is_private_


@pytest.mark.parametrize(
    "given",
    [
        {"delta": 1e-4},
        {"ledger": "l"},
        {"num_records_public": 9},
        {"budget_epsilon": 0},
        {"unit": "day"},
        {"catalogue": "public"},
        {"other_data": True},
    ],
)
def test_what_only_a_private_run_reads_is_refused_without_epsilon(orders, given):
    with pytest.raises(wisp.InvalidArgument, match=f"^{[*given][0]} is .*only a private run reads"):
        wisp.fit(orders, **NAMES, epochs=0.01, **given)


def test_sessions_are_refused(orders, tmp_path):
    with pytest.raises(wisp.InvalidArgument, match="does not keep the log .*wisp.Log, and give it to wisp.personalise"):
        wisp.fit(orders, **NAMES, **PRIVATE, unit="session", base=CAFE, ledger=tmp_path / "l")
    assert not (tmp_path / "l").exists()


def test_the_promise_is_that_of_the_fit(orders, tmp_path):
    shop = wisp.fit(orders, **NAMES, **PRIVATE, catalogue="public", ledger=tmp_path / "l", budget_epsilon=3)
    said = shop.privacy
    shop.set_params(delta=1e-9, unit="day")
    assert shop.privacy == said and "at delta 0.0001 for one user" in said
    with pytest.raises(wisp.PrivacyRefused):
        shop.fit(orders)
    assert shop.privacy == said and "1e-09" not in shop._repr_html_() and "those of the fit" in shop._repr_html_()
    with pytest.raises(wisp.InvalidArgument):
        shop.set_params(epsilon=None).fit(orders)
    assert shop.privacy == said and shop.is_private_


def test_saves_the_model_that_was_fitted(orders, shop, tmp_path):
    made, copy = tmp_path / "made.wisp", tmp_path / "copy.wisp"
    of_file = wisp.fit(orders, **NAMES, epochs=0.1, output=made)
    earlier = os.umask(0)
    try:
        of_file.save(copy)
    finally:
        os.umask(earlier)
    assert copy.read_bytes() == made.read_bytes() and copy.stat().st_mode & 0o777 == 0o600
    shop.save(tmp_path / "shop.wisp")
    os.replace(tmp_path / "shop.wisp", made)
    with pytest.raises(wisp.InvalidData, match="made.wisp: is another model than the one that was fitted"):
        of_file.save(tmp_path / "other.wisp")
    with pytest.raises(wisp.IoError, match="none/m.wisp: cannot be written: No such file"):
        shop.save(tmp_path / "none" / "m.wisp")
    planted = tmp_path / f"shop.wisp.{os.getpid()}.part"
    planted.symlink_to(copy)
    before = copy.read_bytes()
    shop.save(tmp_path / "shop.wisp")
    assert copy.read_bytes() == before and sorted(one.name for one in tmp_path.iterdir()) == sorted(
        ["copy.wisp", "made.wisp", "shop.wisp", planted.name]
    )


def test_a_folder_of_a_killed_run_is_removed(orders, tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_IN_MEMORY", str(tmp_path))
    hold = (
        "import sys; from wisp import _folder; _folder._IN_MEMORY = sys.argv[1]\n"
        "with _folder.working_folder(1) as path: print(path, flush=True); sys.stdin.read()"
    )
    held = subprocess.Popen([sys.executable, "-c", hold, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    path = held.stdout.readline().decode().strip()
    assert os.path.dirname(path) == str(tmp_path) and os.stat(path).st_mode & 0o777 == 0o700
    elsewhere = tmp_path / "kept"
    elsewhere.mkdir()
    (tmp_path / "wisp-fit-link").symlink_to(elsewhere)
    wisp.fit(orders, **NAMES, epochs=0.01)
    assert os.path.isdir(path), "a living run lost its folder"
    held.send_signal(signal.SIGKILL)
    held.communicate()
    with monkeypatch.context() as other_user:
        other_user.setattr(os, "geteuid", lambda: os.stat(path).st_uid + 1)
        _folder._remove_abandoned(str(tmp_path))
    assert os.path.isdir(path), "another user's folder was removed"
    wisp.fit(orders, **NAMES, epochs=0.01)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept", "wisp-fit-link"]


def test_a_full_memory_leaves_the_log_to_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_IN_MEMORY", str(tmp_path / "memory"))
    monkeypatch.setattr(_folder.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "memory").mkdir()
    for num_bytes, parent in ((1, tmp_path / "memory"), (shutil.disk_usage(tmp_path).total + 1, tmp_path)):
        with _folder.working_folder(num_bytes) as path:
            assert os.path.dirname(path) == str(parent)
        assert not os.path.exists(path)


def test_an_evaluation_says_what_trained(orders, shop):
    shown = shop.evaluate(orders)._repr_html_()
    assert "Each user&#x27;s last event<" in shown and "trained" not in shown
    assert "all but the last event trained" in shop.evaluate(orders, held_out=2)._repr_html_()
    shown = wisp.fit(orders, **NAMES, epochs=0.01).evaluate(orders, held_out=2)._repr_html_()
    assert "last 2 events<" in shown and "these events trained the model" in shown
    assert "too good" in shop.model_.evaluate([[1, 2, 3, 4]])._repr_html_()


def test_numbers_with_a_missing_value_and_times_as_texts(orders):
    texts = [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) for at in orders["at"]]
    frame = {"who": [float(who) for who in orders["who"]], "sku": [float(sku) for sku in orders["sku"]], "at": texts}
    one, other = (wisp.fit(each, **NAMES, epochs=1, num_threads=1) for each in (frame, orders))
    assert one.model_.info.content_hash == other.model_.info.content_hash
    assert one.recommend([100.0, 101], 3) == other.recommend([100, 101], 3)
    assert one.predict(frame, 1)["who"][:2] == [0, 1]
    for wrong, said in (({"at": ["soon"] * len(texts)}, "pandas.to_datetime"), ({"who": [0.5] * len(texts)}, "whole")):
        with pytest.raises(wisp.InvalidArgument, match=said):
            wisp.fit({**frame, **wrong}, **NAMES)


def test_the_help_explains_every_argument():
    for name in wisp.SequenceRecommender().get_params():
        assert f"\n      {name}: " in wisp.fit.__doc__ or name in ("user", "item", "time"), name
    assert "user, item, time: " in wisp.fit.__doc__


def test_reports_are_drawn_and_name_no_file_that_is_gone(orders, shop, tmp_path):
    assert "model" not in shop.report_ and "model" not in shop.report_["not_private"]
    kept = wisp.fit(orders, **NAMES, epochs=0.1, output=tmp_path / "m.wisp")
    assert os.path.exists(kept.report_["model"])
    private = wisp.fit(orders, **NAMES, **PRIVATE, catalogue="public", ledger=tmp_path / "l")
    assert private.report_.all_steps[-1].epsilon == pytest.approx(private.report_["epsilon"], rel=0.01)
    assert "records (local only)" in private.report_._repr_html_()
    assert pickle.loads(pickle.dumps(private)).report_.all_steps == private.report_.all_steps
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    for report in (shop.report_, private.report_):
        assert report.plot().get_lines()[0].get_ydata().tolist() == [one.loss for one in report.all_steps] != []
