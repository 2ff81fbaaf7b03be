"""Errors of calls: one sentence, with Python's names."""

import inspect
import pickle
import re

import pytest
import wisp
from conftest import CAFE, ROOT
from wisp._errors import in_python

OBJECTS = (wisp.Log, wisp.PrivateGenerator, wisp.PrivateRecommender, wisp.Recommender, wisp.Session, wisp.TextModel)
METHODS = [
    (kind, name) for kind in OBJECTS for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
]
# functions that accept further names
OPEN = {"convert", "export", "run_program", "train", "train_classifier", "train_texts"}
FUNCTIONS = [name for name in wisp.__all__ if inspect.isfunction(getattr(wisp, name)) and name not in OPEN]


def test_a_wrong_keyword_is_one_sentence(cafe):
    with pytest.raises(TypeError) as raised:
        cafe.recommend([1, 2], n=3)
    allowed = "allowed are history, k, exclude, candidates and allow_seen"
    assert str(raised.value) == f"Recommender.recommend has no argument 'n'; {allowed}"
    with pytest.raises(TypeError) as raised:
        cafe.recommend([1, 2], candidate=[3])
    assert str(raised.value) == (
        f"Recommender.recommend has no argument 'candidate'; {allowed}; did you mean candidates?"
    )
    with pytest.raises(TypeError, match="^Recommender.recommend: missing a required argument: 'history'$"):
        cafe.recommend()
    with pytest.raises(TypeError, match="^Recommender.open has no argument 'bakend'; .*; did you mean backend?"):
        wisp.Recommender.open(CAFE, bakend="int8")
    with pytest.raises(TypeError, match="^PrivateRecommender has no argument 'lamda'; .*; did you mean lambda_?"):
        wisp.PrivateRecommender(cafe, lamda=0.5)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_of_every_method(kind, name):
    method = getattr(kind, name)
    of = () if inspect.ismethod(method) else (None,)
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__}\.{name} has no argument 'wrong'; allowed (is|are) [a-z0-9_, ]+$"
    ):
        method(*of, wrong=1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_every_function(name):
    with pytest.raises(TypeError, match=rf"^{name} has no argument 'wrong'; allowed are [a-z0-9_, ]+$"):
        getattr(wisp, name)(wrong=1)
    assert pickle.loads(pickle.dumps(getattr(wisp, name))) is getattr(wisp, name)


def test_what_a_method_takes_is_seen():
    assert list(inspect.signature(wisp.Recommender.recommend).parameters)[:3] == ["self", "history", "k"]
    assert wisp.Recommender.recommend.__doc__.startswith("The best k items after a history")


def test_an_error_of_ones_own_function_is_raised_as_it_is(files):
    def wrong(step):
        raise TypeError("mine")

    with pytest.raises(TypeError) as raised:
        wisp.personalise(**files, progress=wrong)
    assert raised.value.args == ("mine",)


@pytest.mark.parametrize("name", ["model", "log", "output", "ledger", "unit", "epsilon", "delta", "num_records_public"])
def test_what_is_required_is_named(files, name):
    with pytest.raises(wisp.InvalidArgument, match=f"^personalise: {name} is None, and is required$"):
        wisp.personalise(**{**files, name: None})
    assert not files["output"].exists()


def test_what_is_required_of_others_is_named():
    for call, sentence in (
        (lambda: wisp.budget(None), "budget: ledger"),
        (lambda: wisp.privacy_statement(None, 1e-3), "privacy_statement: ledger"),
        (lambda: wisp.run_planned(CAFE, "log.db", "mine.wisp", None), "run_planned: ledger"),
        (lambda: wisp.rebase(CAFE, None, "mine.wisp", "log.ledger"), "rebase: to_model"),
        (lambda: wisp.Recommender.open(None), "Recommender.open: path"),
        (lambda: wisp.Log.open(None), "Log.open: path"),
        (lambda: wisp.convert(None, "m.wisp"), "convert: source"),
    ):
        with pytest.raises(wisp.InvalidArgument, match=f"^{sentence} is None, and is required$"):
            call()


def test_a_budget_without_a_limit_needs_a_delta(files):
    wisp.personalise(**files)
    with pytest.raises(
        wisp.InvalidArgument, match="^ledger '.*log.ledger' has no limit, so budget needs delta: a number"
    ):
        wisp.budget(files["ledger"])
    assert wisp.budget(files["ledger"], delta=1e-3).delta == 1e-3


def test_sentences_have_pythons_names(files, cafe, tmp_path):
    with pytest.raises(wisp.InvalidArgument, match="^output and log name the same file"):
        wisp.personalise(**{**files, "output": files["log"]})
    with pytest.raises(wisp.InvalidArgument, match="^num_records_public is required"):
        wisp.personalise(**{**files, "num_records_public": 0})
    with pytest.raises(wisp.InvalidArgument, match=", max_bytes allows 1000"):
        wisp.Recommender.open(CAFE, max_bytes=1000)
    with pytest.raises(wisp.PrivacyRefused, match=r"\(public_datasets=\['synthetic public cafe guests'\]\)$"):
        wisp.PrivateRecommender(cafe, lambda_=0.5, delta=1e-6)
    wisp.personalise(**files)
    with pytest.raises(wisp.PrivacyRefused, match="in a file of another name: dataset='log.db'"):
        wisp.personalise(**files, dataset="another")


def test_none_for_a_list_or_a_text_is_a_type_error(cafe):
    with pytest.raises(TypeError, match="^Recommender.recommend: history is None, and is required$"):
        cafe.recommend(None)
    with pytest.raises(TypeError, match="^Recommender.find: key is None, and is required$"):
        cafe.find(None)


@pytest.mark.parametrize("name", ["wisp_model", "log_path", "output_path"])
def test_files_keep_their_names(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("no model")
    with pytest.raises(wisp.InvalidData, match=f"^{name}: is not a wisp model"):
        wisp.Recommender.open(name)


def literals(path):
    """The text of a source, with X for each value inside a literal."""
    text = path.read_text(encoding="utf-8")
    for value, shown in ((r"InShell\(OneLine\([\w.()]*\)\)", "'X'"), (r"OneLine\([\w.()]*\)", "X")):
        text = re.sub(rf'"\s*[,+]\s*{value}\s*[,+]\s*"', shown, text)
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*,?\s*"', "", text))


def test_no_sentence_names_an_option_or_the_c_interface():
    told = [line for path in (ROOT / "runtime").rglob("*.cc") for line in literals(path)]
    told += [line for path in (ROOT / "runtime").rglob("*.h") for line in literals(path)]
    assert not [line for line in told if "C interface" in line or re.search(r"[ (]--[a-z]", line)]
    named = [line for line in told if re.search("`[a-z0-9_]+`", line)]
    assert len(named) >= 20
    for line in named:
        assert not re.search(r"`[a-z0-9_]+`|_path\b|\bwisp_", in_python(line)), line


def test_settings_are_arguments():
    assert in_python("(the same data: `dataset` 'Anna'\\''s log.db')") == """(the same data: dataset="Anna's log.db")"""
    assert in_python("declared public (`public_datasets` 'films')") == "declared public (public_datasets=['films'])"
    assert in_python("(`ledger_path`) and (`other_data`)") == "(ledger) and (other_data=True)"
    assert in_python("make one (`wisp_plan_make`)") == "make one (wisp.make_plan)"
    assert in_python("set `float16_cache`") == "set float16_cache"


@pytest.mark.parametrize(
    "sentence",
    [
        "the log 'model_path' is of the data set 'wisp_log'",
        "/data/ledger_path.db: cannot be opened: No such file or directory",
        "wisp_log: cannot be opened: No such file or directory",
        "epsilon is 0, allowed is a positive number",
    ],
)
def test_what_others_named_stays(sentence):
    assert in_python(sentence) == sentence and str(wisp.IoError(sentence)) == sentence
