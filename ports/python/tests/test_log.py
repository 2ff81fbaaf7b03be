"""The log of events."""

import datetime
import sqlite3

import pytest
import wisp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wisp._frames import parse_time


@pytest.fixture
def log(tmp_path):
    with wisp.Log.open(tmp_path / "log.db") as log:
        yield log


def test_keeps_events_in_order(log, cafe):
    log.append("anna", "tea-mint", 100)
    log.append_all([("anna", "bagel-lentil", 200), ("bert", "tea-mint", 150), ("anna", "unknown", 300)])
    history = log.history(cafe, "anna")
    assert history.dtype.name == "int32"
    assert cafe.keys(history) == ["tea-mint", "bagel-lentil"]
    assert cafe.keys(log.history(cafe, "anna", 1)) == ["bagel-lentil"]
    assert len(log.history(cafe, "anna", 0)) == 0 == len(log.history(cafe, "nobody"))
    assert log.count() == wisp.LogCounts(events=4, users=2, items=3, oldest=100, newest=300, unreadable=0)
    assert list(log.users()) == ["anna", "bert"]


def test_counts_events_that_training_cannot_read(log, tmp_path):
    log.append("anna", "tea-mint", 100)
    with sqlite3.connect(tmp_path / "log.db") as other:
        other.execute("INSERT INTO events VALUES('bert', '', 200)")
    assert log.count().events == 2
    assert log.count().unreadable == 1


def test_takes_frames_and_gives_events_back(log):
    at = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.timezone.utc)
    frame = {"who": ["anna", "bert", 7], "sku": ["k1", "k2", 3], "at": [at, at.replace(tzinfo=None), 5]}
    log.append_frame(frame, user="who", item="sku", time="at")
    seconds = int(at.timestamp())
    events = [("7", "3", 5), ("anna", "k1", seconds), ("bert", "k2", seconds)]
    assert list(log) == events
    log.append("anna", "k0", 1)
    assert log.events("anna") == [("anna", "k0", 1), events[1]] and log.events("nobody") == []
    again = [event for event in log]
    for rows, sentence in (
        ({"user": ["a"], "item": ["k"]}, "no column 'time'; it has"),
        ({"user": ["a"], "item": ["k", "l"], "time": [1]}, "columns have 1, 2, 1 rows"),
        ({"user": ["a", None], "item": ["k", "l"], "time": [1, 2]}, "row 1 has user None"),
        ({"user": ["a"], "item": ["k"], "time": [float("nan")]}, "row 0 has time nan"),
        (7, "no column 'user'"),
    ):
        with pytest.raises(wisp.InvalidArgument, match=sentence):
            log.append_frame(rows)
    assert list(log) == again  # all rows of a frame or none


def test_takes_frames_of_pandas(log):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    times = pandas.to_datetime(["2026-05-01 12:00", "2026-05-01 12:01"])
    log.append_frame(pandas.DataFrame({"user": ["a", "b"], "item": [1, 2], "time": times}))
    assert [time for _, _, time in log] == [1777636800, 1777636860]
    with pytest.raises(wisp.InvalidArgument, match="row 1 has time NaT"):
        log.append_frame({"user": ["a", "b"], "item": ["k", "l"], "time": pandas.Series([times[0], pandas.NaT])})


def test_users_that_are_no_utf_8_are_counted_and_erased(tmp_path):
    path = tmp_path / "foreign.db"
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE events (user TEXT, item TEXT, time INTEGER)")
        foreign.execute("INSERT INTO events VALUES (CAST(x'61ff' AS TEXT), 'tea-mint', 1), ('bert', 'tea-mint', 2)")
    foreign.close()
    with wisp.Log.open(path) as log:
        assert list(log.users()) == ["bert"]
        assert log.count().unreadable == 1
        assert log.erase("a\udcff") == 1
        assert log.count().unreadable == 0
        with pytest.raises(wisp.InvalidArgument, match="user is"):
            log.erase("\ud800")


def test_forgets(log, cafe):
    log.append_all([("anna", "tea-mint", t) for t in range(10)] + [("bert", "tea-mint", 3)])
    assert log.prune("user", newest_per_user=4) == 6
    assert log.prune("user", before=8) == 3
    assert log.erase("anna") == 2 and log.erase("anna") == 0
    assert log.count().events == 0


def test_lists_many_users(log):
    log.append_all([(f"u{i:05d}", "tea-mint", i) for i in range(2500)])
    assert list(log.users()) == [f"u{i:05d}" for i in range(2500)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(user=st.text(max_size=20), item=st.text(max_size=20), time=st.integers(-(2**63), 2**63 - 1))
def test_every_text_is_kept_or_is_a_sentence(log, user, item, time):
    before = log.count().events
    try:
        log.append(user, item, time)
        assert log.count().events == before + 1
    except wisp.Error:
        assert log.count().events == before


def test_wrong_events_are_sentences_and_nothing_is_kept(log):
    allowed = r"allowed is a tuple \(user, item_key, time\)"
    with pytest.raises(TypeError, match=r"events\[1\] is \('anna', 'x'\) \(tuple\); " + allowed):
        log.append_all([("anna", "tea-mint", 1), ("anna", "x")])
    with pytest.raises(TypeError, match=r"events\[0\]'s time is 'now'"):
        log.append_all([("anna", "tea-mint", "now")])
    with pytest.raises(wisp.InvalidArgument, match=r"events\[0\]'s time is 9223372036854775808"):
        log.append_all([("anna", "tea-mint", 2**63)])
    with pytest.raises(TypeError, match="user is 5"):
        log.append(5, "tea-mint", 1)
    with pytest.raises(TypeError, match="time is 1.5"):
        log.append("anna", "tea-mint", 1.5)
    with pytest.raises(TypeError):
        log.append_all(5)
    with pytest.raises(ZeroDivisionError):
        log.append_all(("anna", "tea-mint", 1 // (1 - i)) for i in range(2))
    assert log.count().events == 0


def test_wrong_options_are_sentences(log, cafe):
    with pytest.raises(wisp.InvalidArgument, match="unit is 'week' .*allowed are 'user', 'session', 'day'"):
        log.prune("week")
    with pytest.raises(wisp.InvalidArgument, match="limit is -1"):
        log.history(cafe, "anna", -1)
    with pytest.raises(TypeError):
        log.history("cafe", "anna")


def test_what_cannot_be_opened_is_a_sentence(tmp_path):
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(wisp.Error, match="text.db"):
        wisp.Log.open(tmp_path / "text.db")
    with pytest.raises(wisp.Error):
        wisp.Log.open(":memory:")
    with pytest.raises(wisp.Error):
        wisp.Log.open(tmp_path / "no folder" / "log.db")
    with pytest.raises(TypeError, match="path is 5"):
        wisp.Log.open(5)
    with pytest.raises(wisp.Error):
        wisp.Log.open(None)


def test_every_use_after_close_is_an_error(log, cafe):
    log.close()
    log.close()
    for use in (
        lambda: log.append("a", "b", 1),
        lambda: log.append_all([]),
        lambda: log.history(cafe, "a"),
        lambda: log.erase("a"),
        lambda: log.prune("user"),
        lambda: log.count(),
        lambda: list(log.users()),
    ):
        with pytest.raises(wisp.Closed, match="this Log is closed"):
            use()
    assert repr(log) == "<wisp.Log, closed>"


def test_a_closed_model_is_an_error(log, cafe):
    cafe.close()
    with pytest.raises(wisp.Closed, match="Recommender"):
        log.history(cafe, "anna")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-27T09:30:00+01:00", 1795768200),
        ("2026-11-27 08:30", 1795768200),
        ("20261127T083000Z", 1795768200),
        ("2026-11-27", 1795737600),
        ("2026-11-27T24:00", 1795824000),
        ("2016-12-31 23:59:60", 1483228800),
        ("1969-12-31 23:59:59.5", -1),
        ("20261127", 20261127),
        ("8.8e8", 880000000),
        ("-3.5", -4),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("9" * 5000, None),
        ("2026-02-30", None),
        ("2026-W10-1", None),
        ("2026-11-27T09", None),
        ("2026-11-27T25:00", None),
        ("27.11.2026", None),
        ("", None),
    ],
)
def test_times_may_be_texts(text, seconds):
    assert parse_time(text) == seconds
