"""Nightly training: a plan, runs, new bases and items."""

import shutil

import pytest
import wisp
from conftest import CAFE


@pytest.fixture
def deployment(files, tmp_path):
    plan = {
        "model": CAFE, "ledger": files["ledger"], "dataset": "the cafe's log", "epsilon": 4, "delta": 1e-3,
        "num_records_public": 60, "runs": 3, "unit": "user", "steps_per_run": 2, "num_threads": 1,
    }  # fmt: skip
    served = tmp_path / "mine.wisp"
    shutil.copy(CAFE, served)
    return plan, {"model": CAFE, "log": files["log"], "output": served, "ledger": files["ledger"], "num_threads": 1}


def test_lives_its_runs(deployment):
    plan, planned_run = deployment
    made = wisp.make_plan(**plan)
    assert made.runs == 3 and made.training_noise > 0 and made.noise_of_an_item > 0
    assert made.succession_releases == 0 and made.succession_share == 0 == made.succession_noise  # too few records
    many = wisp.make_plan(**{**plan, "num_records_public": 6000, "delta": 1e-4}, dry_run=True)
    assert many.succession_releases == 1 and 0 < many.succession_share < 1 and many.succession_signal > 0
    assert many.succession_noise > 0
    assert many.bias_weight_releases == 0 and many.bias_weight_share == 0 == many.bias_weight_noise  # no bias
    assert not made.was_there and wisp.make_plan(**plan).was_there
    with pytest.raises(wisp.PrivacyRefused, match="the number of runs is 3, asked for is 2"):
        wisp.make_plan(**{**plan, "runs": 2})
    steps = []
    report = wisp.run_planned(**planned_run, progress=steps.append)
    assert report.steps == 2 == len(steps) and report.runs_left == 2
    assert report.line().startswith("2 steps") and report.line().endswith("2 runs left")
    assert all(kind in ("info", "warning") and sentence for kind, sentence in report.sentences)
    left = wisp.budget(plan["ledger"])
    assert left.has_plan and left.runs_left == 2 and left.epsilon_limit == 4
    assert left.succession_releases_left == 0 == left.bias_weight_releases_left
    changed, factor = wisp.change_plan(CAFE, plan["ledger"], runs=4, dry_run=True)
    assert changed.runs >= 4 and factor == 1
    assert [wisp.run_planned(**planned_run).runs_left for _ in range(2)] == [1, 0]
    with wisp.Recommender.open(planned_run["output"]) as model:
        assert model.recommend([1])[0].tolist()
    assert wisp.make_plan(**plan, output=planned_run["output"]).was_there
    plan["ledger"].unlink()
    with pytest.raises(wisp.PrivacyRefused, match="would forget what they spent"):
        wisp.make_plan(**plan, output=planned_run["output"])


def test_a_run_may_be_stopped(deployment):
    plan, planned_run = deployment
    wisp.make_plan(**plan)
    with pytest.raises(wisp.Cancelled):
        wisp.run_planned(**planned_run, progress=lambda step: False)
    with pytest.raises(KeyboardInterrupt):
        wisp.run_planned(**planned_run, progress=lambda step: (_ for _ in ()).throw(KeyboardInterrupt))
    assert wisp.run_planned(**planned_run).runs_left < 3


def test_a_dry_run_writes_nothing(deployment):
    plan, _ = deployment
    assert wisp.make_plan(**plan, dry_run=True, measure=True).seconds_of_run > 0
    assert not plan["ledger"].exists()


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"evaluation": "me"}, wisp.InvalidArgument, "evaluation is 'me' .*allowed are 'private', 'local', 'none'"),
        ({"runs": 0}, wisp.InvalidArgument, "a plan has 0 runs"),
        ({"runs": 1.5}, TypeError, "runs is 1.5"),
        ({"epsilon": float("nan")}, wisp.InvalidArgument, "epsilon"),
        ({"unit": None}, wisp.InvalidArgument, "unit"),
        ({"model": "none.wisp"}, wisp.IoError, "none.wisp"),
    ],
)
def test_a_wrong_plan_is_a_sentence(deployment, changed, error, sentence):
    plan, _ = deployment
    with pytest.raises(error, match=sentence):
        wisp.make_plan(**{**plan, **changed})
    assert not plan["ledger"].exists()


def test_a_run_needs_a_plan(deployment):
    _, planned_run = deployment
    with pytest.raises(wisp.Error):
        wisp.run_planned(**planned_run)
    with pytest.raises(wisp.Error):
        wisp.change_plan(CAFE, planned_run["ledger"], runs=4)


def test_evaluates(guests, program):
    quality = wisp.evaluate(CAFE, guests)
    assert 0 < quality.ndcg_at_10 < quality.hit_at_10 < 1 and 0 < quality.num_users <= 60
    with pytest.raises(wisp.Error, match="none.db"):
        wisp.evaluate(CAFE, "no folder/none.db")


def test_items_come_and_go(tmp_path, cafe):
    more, less, again = tmp_path / "more.wisp", tmp_path / "less.wisp", tmp_path / "again.wisp"
    wisp.catalogue_add(CAFE, [wisp.NewItem("tea-snow", "Snow Tea", "tea-mint"), ("tea-sun",)], more)
    with wisp.Recommender.open(more) as model:
        assert len(model) == 482 and model.item_name(model.find("tea-snow")) == "Snow Tea"
        assert model.item_name(model.find("tea-sun")) == "tea-sun"
    wisp.catalogue_retire(more, ["tea-snow"], less)
    with wisp.Recommender.open(less) as model:
        assert model.info.num_retired == 1
        assert model.find("tea-snow") not in model.recommend([1], 500)[0]
    wisp.catalogue_retire(less, ["tea-snow"], again, restore=True)
    with wisp.Recommender.open(again) as model:
        assert model.info.num_retired == 0
    with pytest.raises(wisp.InvalidArgument, match="no such item"):
        wisp.catalogue_retire(CAFE, ["no such item"], tmp_path / "x.wisp")
    with pytest.raises(TypeError, match="keys is 'tea-mint'"):
        wisp.catalogue_retire(CAFE, "tea-mint", tmp_path / "x.wisp")
    with pytest.raises(wisp.InvalidArgument, match="tea-mint"):
        wisp.catalogue_add(CAFE, [("tea-mint",)], tmp_path / "x.wisp")
    for wrong in [(5,), "ab", {"key": "a", "name": "b"}, 5, ()]:
        with pytest.raises(TypeError):
            wisp.catalogue_add(CAFE, [wrong], tmp_path / "x.wisp")
    with pytest.raises(TypeError, match=r"items\[0\] is 'a'; allowed is a wisp.NewItem, or a tuple"):
        wisp.catalogue_add(CAFE, "ab", tmp_path / "x.wisp")
    assert not (tmp_path / "x.wisp").exists()


def test_a_new_base_carries_what_was_learned(deployment, tmp_path):
    plan, planned_run = deployment
    wisp.make_plan(**plan)
    wisp.run_planned(**planned_run)
    newer = tmp_path / "newer.wisp"
    wisp.catalogue_add(CAFE, [("tea-snow",)], newer)
    rebased = wisp.rebase(CAFE, newer, planned_run["output"], planned_run["ledger"])
    assert rebased.carried and rebased.shared_items == 480 and rebased.lost_items == 0
    assert wisp.run_planned(**{**planned_run, "model": newer}).runs_left == 1


def test_what_would_be_lost_is_not_given_up_unasked(deployment, tmp_path):
    plan, planned_run = deployment
    wisp.make_plan(**plan)
    while wisp.run_planned(**planned_run).runs_left > 0:
        pass
    newer = tmp_path / "newer.wisp"
    wisp.catalogue_add(CAFE, [("tea-snow",)], newer)
    moves = (CAFE, newer, planned_run["output"], planned_run["ledger"])
    with pytest.raises(wisp.InvalidArgument, match="what was learned would be lost"):
        wisp.rebase(*moves)
    assert wisp.rebase(*moves, start_over=True).shared_items == 480


def test_an_adapter_is_carried_over(files, tmp_path):
    wisp.personalise(**files, adapter_rank=2)
    newer, carried = tmp_path / "newer.wisp", tmp_path / "carried.wisp"
    wisp.catalogue_add(CAFE, [("tea-snow",)], newer)
    wisp.rebase_adapter(CAFE, files["output"], newer, carried)
    with wisp.Recommender.open(newer, adapter=carried) as model:
        assert len(model) == 481
    with pytest.raises(wisp.IoError, match="none.wisp"):
        wisp.rebase_adapter(CAFE, "none.wisp", newer, carried)
