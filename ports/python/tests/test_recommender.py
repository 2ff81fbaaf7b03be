"""Recommending: the same bits as C, every kind of list, every invalid one."""

import array
import gc
import json
import mmap
import os
import threading
import weakref

import numpy
import pytest
import wisp
from conftest import CAFE, bits, ticks_during
from hypothesis import given
from hypothesis import strategies as st

MODEL = wisp.Recommender.open(CAFE)
ITEMS = st.lists(st.integers(0, len(MODEL) - 1), max_size=60)


@pytest.mark.parametrize("history", [[], [0], [12, 7, 31], list(range(100, 180))])
def test_gives_the_bits_of_the_c_interface(cafe, library, history):
    items, scores = cafe.recommend(history, 20)
    assert items.dtype == numpy.int32 and scores.dtype == numpy.float32
    expected_items, expected_scores = library.recommend(CAFE, history, 20)
    assert items.tolist() == expected_items and bits(scores) == expected_scores


def test_gives_what_the_program_gives(cafe, program):
    keys = ["tea-mint", "bagel-lentil"]
    told = json.loads(program("recommend", "--model", CAFE, "--history", ",".join(keys), "--count", 7, "--json"))
    items, scores = cafe.recommend([cafe.find(key) for key in keys], 7)
    assert [one["item"] for one in told] == cafe.keys(items)
    assert bits(numpy.array([one["score"] for one in told], numpy.float32)) == bits(scores)


@given(ITEMS)
def test_every_kind_of_list_is_the_same_history(history):
    expected = MODEL.recommend(history)
    packed = numpy.zeros(2 * len(history), numpy.int32)
    packed[::2] = history
    kinds = [tuple(history), array.array("i", history), array.array("q", history), packed[::2]]
    kinds += [numpy.array(history, kind) for kind in ("int32", "int64", "uint16", "uint64")]
    backwards = numpy.array(history[::-1], numpy.int32)[::-1]
    read_only = numpy.array(history, numpy.int32)
    read_only.flags.writeable = False
    for kind in [*kinds, backwards, read_only, memoryview(numpy.array(history, numpy.int32))]:
        items, scores = MODEL.recommend(kind)
        assert items.tolist() == expected[0].tolist() and bits(scores) == bits(expected[1])


@given(st.lists(ITEMS.filter(len), max_size=6), st.integers(0, 600), st.integers(0, 3))
def test_a_batch_gives_the_bits_of_each(histories, k, num_threads):
    items, scores = MODEL.recommend_batch(histories, k, num_threads=num_threads)
    assert items.shape == scores.shape == (len(histories), min(k, len(MODEL)))
    for i, history in enumerate(histories):
        one, of_one = MODEL.recommend(history, k)
        assert items[i, : len(one)].tolist() == one.tolist() and bits(scores[i, : len(one)]) == bits(of_one)
        assert (items[i, len(one) :] == -1).all() and numpy.isnan(scores[i, len(one) :]).all()


@given(ITEMS, st.sets(st.integers(0, len(MODEL) - 1), max_size=20), st.sampled_from([None, False, True]))
def test_lists_of_items_are_kept_to(history, chosen, allow_seen):
    without, _ = MODEL.recommend(history, 480, exclude=chosen, allow_seen=allow_seen)
    allows = MODEL.info.allow_seen if allow_seen is None else allow_seen
    assert set(without.tolist()) == set(range(480)) - chosen - (set() if allows else set(history))
    only, _ = MODEL.recommend(history, 480, candidates=sorted(chosen), allow_seen=True)
    assert set(only.tolist()) == chosen


def test_keys_stand_for_items(cafe):
    keys = ["tea-mint", "bagel-lentil"]
    numbers = [cafe.find(key) for key in keys]
    expected = cafe.recommend(numbers, 5)[0].tolist()
    for history in (keys, tuple(keys), [numbers[0], keys[1]], numpy.array(keys), numpy.array(keys, object)):
        assert cafe.recommend(history, 5)[0].tolist() == expected
        assert cafe.recommend_batch([history, [1]], 5)[0][0].tolist() == expected
    first, second = (cafe.item_key(item) for item in expected[:2])
    assert cafe.recommend(keys, 1, exclude={first})[0].tolist() == expected[1:2]
    assert cafe.recommend(keys, 5, candidates=[second])[0].tolist() == expected[1:2]
    with pytest.raises(wisp.InvalidArgument, match=r"candidates\[0\] is 'nothing'"):
        cafe.recommend(keys, 5, candidates=["nothing"])
    with wisp.PrivateRecommender(cafe, public_datasets=["synthetic public cafe guests"]) as sampled:
        assert len(sampled.recommend(keys, 3)) == 3


def test_items_of_the_history_come_as_the_model_or_the_call_says(cafe):
    assert cafe.info.allow_seen
    with wisp.PrivateRecommender(cafe, public_datasets=["synthetic public cafe guests"]) as sampled:
        for allow_seen, comes in ((None, True), (True, True), (False, False)):
            for items in (
                cafe.recommend([7], 2, candidates=[7, 8], allow_seen=allow_seen)[0],
                cafe.recommend_batch([[7]], 2, candidates=[7, 8], allow_seen=allow_seen)[0][0],
                sampled.recommend([7], 2, candidates=[7, 8], allow_seen=allow_seen),
            ):
                assert (7 in items) == comes


def test_rows_of_an_array_are_histories(cafe):
    table = numpy.arange(12).reshape(3, 4)
    for kind in (table, table.astype(numpy.int32), numpy.asfortranarray(table)):
        items, _ = cafe.recommend_batch(kind, 4)
        assert items.tolist() == [cafe.recommend(row.tolist(), 4)[0].tolist() for row in table]


@pytest.mark.parametrize(
    ("history", "error", "sentence"),
    [
        ([480], wisp.InvalidArgument, "the history names item 480; the model has items 0 to 479"),
        ([-1], wisp.InvalidArgument, "names item -1"),
        ([1, 2**31], wisp.InvalidArgument, r"history\[1\] is 2147483648 .*allowed are -2147483648 to 2147483647"),
        ([2**70], wisp.InvalidArgument, r"history\[0\] is 1180591620717411303424"),
        (numpy.array([2**31]), wisp.InvalidArgument, r"history\[0\] is no 32-bit integer"),
        (numpy.array([2**63], numpy.uint64), wisp.InvalidArgument, r"history\[0\] is no 32-bit integer"),
        ([1.0], TypeError, r"history\[0\] is 1.0 \(float\); allowed is a whole number"),
        ([float("nan")], TypeError, "is nan"),
        ([None], TypeError, "None"),
        (["tea-mint", "1"], wisp.InvalidArgument, r"\[1\] is '1' \(str\); the model has no item of this key"),
        (["tea\0mint"], wisp.InvalidArgument, "NUL"),
        ("12", TypeError, r"history is '12' \(str\); allowed is an int32 array, or a list of whole numbers or items'"),
        (b"12", TypeError, "bytes"),
        (7, TypeError, r"history is 7 \(int\)"),
        ({1: 2}, TypeError, "dict"),
        (iter([1]), TypeError, "list_iterator"),
        (numpy.array([1.0]), TypeError, "type 'd'"),
        (numpy.array([True]), TypeError, "type '?'"),
        (numpy.array([1], ">i4"), TypeError, "type '>i'"),
        (numpy.array([[1]]), TypeError, "2 dimensions"),
        (numpy.array(1), TypeError, "0 dimensions"),
        (numpy.array(["a"]), wisp.InvalidArgument, r"\[0\] is 'a'"),
        (numpy.array([object()]), TypeError, "object object"),
    ],
)
def test_a_wrong_history_is_a_sentence(cafe, history, error, sentence):
    with pytest.raises(error, match=sentence):
        cafe.recommend(history)
    with pytest.raises(error):
        cafe.recommend_batch([[1], history])
    with pytest.raises(error):
        cafe.recommend([1], exclude=history if error is TypeError else [2**40])


def test_a_wrong_history_of_a_batch_is_named(cafe):
    with pytest.raises(TypeError, match=r"histories\[1\]\[0\] is 1.5"):
        cafe.recommend_batch([[1], [1.5]])
    with pytest.raises(wisp.InvalidArgument, match=r"histories\[1\]\[0\] is 'x' .*the model has no item of this key"):
        cafe.recommend_batch([["tea-mint"], ["x"]])
    with pytest.raises(wisp.InvalidArgument, match="history 1"):
        cafe.recommend_batch([[1], [480]])
    with pytest.raises(wisp.InvalidArgument, match="history 1 is empty"):
        cafe.recommend_batch([[1], []])
    with pytest.raises(TypeError, match=r"histories\[0\] is None"):
        cafe.recommend_batch([None])
    with pytest.raises(TypeError, match="histories is 'ab'"):
        cafe.recommend_batch("ab")
    with pytest.raises(TypeError, match=r"histories\[0\] is 1 \(int\)"):
        cafe.recommend_batch([1, 2])


@pytest.mark.parametrize("k", [-1, 2**63, 2**70])
def test_a_wrong_count_is_a_sentence(cafe, k):
    with pytest.raises(wisp.InvalidArgument, match=f"k is {k} .*allowed are 0 to"):
        cafe.recommend([1], k)


def test_wrong_arguments_are_sentences(cafe):
    with pytest.raises(TypeError, match="k is 'a'"):
        cafe.recommend([1], "a")
    with pytest.raises(TypeError, match="k is 1.5"):
        cafe.recommend([1], 1.5)
    with pytest.raises(TypeError, match=r"allow_seen is 'yes' \(str\); allowed are True and False"):
        cafe.recommend([1], allow_seen="yes")
    with pytest.raises(TypeError, match=r"k is None, and must not be; leave it out for 10"):
        cafe.recommend([1], None)
    with pytest.raises(TypeError, match=r"k is True"):
        cafe.recommend([1], True)
    with pytest.raises(TypeError, match=r"PrivateRecommender takes \(model: .*; it was given \(model: str\)"):
        wisp.PrivateRecommender("plain")
    with pytest.raises(TypeError):
        cafe.recommend()
    with pytest.raises(wisp.InvalidArgument, match="num_threads is -1"):
        cafe.recommend_batch([[1]], num_threads=-1)
    with pytest.raises(wisp.InvalidArgument, match="1024"):
        cafe.recommend_batch([[1]], num_threads=5000)


def test_an_empty_list_of_any_type_is_a_cold_start(cafe):
    expected = cafe.recommend([])[0].tolist()
    for empty in ((), numpy.array([]), numpy.zeros(0, numpy.int32), array.array("i")):
        assert cafe.recommend(empty)[0].tolist() == expected
    assert len(cafe.recommend([1], candidates=[])[0]) == 0
    assert len(cafe.recommend([1], 0)[0]) == 0
    assert cafe.recommend_batch([])[0].shape == (0, 10)


def test_a_list_that_changes_while_it_is_read_does_no_harm(cafe):
    class Number:
        def __index__(self):
            history.clear()
            return 3

    history = [Number(), 5, 7]
    assert cafe.recommend(history)[0].tolist() == cafe.recommend([3, 5, 7])[0].tolist()


def test_items_have_keys_and_names(cafe):
    assert len(cafe) == 480 and cafe.find("tea-mint") >= 0
    assert cafe.item_key(cafe.find("tea-mint")) == "tea-mint"
    assert cafe.find("no such item") is None
    assert len(set(cafe.keys())) == 480
    assert cafe.names([0, 1]) == [cafe.item_name(0), cafe.item_name(1)] and all(cafe.names([0, 1]))
    for wrong in (-1, 480, 2**40):
        with pytest.raises(wisp.InvalidArgument, match="allowed are 0 to 479"):
            cafe.item_name(wrong)
    with pytest.raises(TypeError, match="key is 5"):
        cafe.find(5)
    with pytest.raises(wisp.InvalidArgument, match="NUL character at byte 3"):
        cafe.find("tea\0mint")


def test_a_session_grows(cafe):
    session = cafe.session([1])
    session.append(2)
    session.append("tea-mint")
    history = [1, 2, cafe.find("tea-mint")]
    assert session.history == history
    items, scores = session.recommend(5)
    expected = cafe.recommend(history, 5)
    assert items.tolist() == expected[0].tolist() and bits(scores) == bits(expected[1])
    with pytest.raises(wisp.InvalidArgument, match="no item of the key 'x'"):
        session.append("x")
    for number in (2**40, -5, 480, True):
        with pytest.raises(wisp.InvalidArgument, match=f"item is {number}; the model's are 0 to 479"):
            session.append(number)
    for wrong in (b"\1\0\0\0", [[1]], [1.0]):
        with pytest.raises(TypeError, match="allowed are whole numbers and items' keys"):
            cafe.session(wrong)
    assert session.history == history and cafe.session(["tea-mint", 1]).history == [cafe.find("tea-mint"), 1]


def fork_and_recommend(model):
    """The error that a forked process gets when it uses the model; "" for none."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            model.recommend([1], 3)
            os.write(writer, b"nothing")
        except wisp.InvalidArgument as error:
            os.write(writer, str(error).encode())
            with wisp.Recommender.open(CAFE) as own:
                os.write(writer, b", and then %d items" % len(own.recommend([1], 3)[0]))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text


def test_a_process_that_is_forked_off_opens_its_own(cafe):
    cafe.recommend_batch([[1], [2]], num_threads=2)  # starts helper threads, which a fork does not copy
    told = fork_and_recommend(cafe)
    assert told == "this object was opened before this process was forked off; open it here again, and then 3 items"
    assert len(cafe.recommend([1], 3)[0]) == 3


def test_says_what_it_is(cafe):
    assert cafe.info.num_items == 480 and cafe.info.max_length == 40 and cafe.info.has_keys
    assert [run.dataset for run in cafe.provenance] == ["synthetic public cafe guests"]
    assert cafe.on_device is False
    assert repr(cafe) == "<wisp.Recommender of 480 items>"
    memory = wisp.plan_memory(CAFE)
    assert memory.file_bytes == CAFE.stat().st_size and memory.total_bytes > 0
    assert wisp.plan_memory(CAFE, backend="int8").total_bytes != memory.total_bytes


def test_every_use_after_close_is_an_error(cafe):
    session = cafe.session([1])
    cafe.close()
    cafe.close()
    assert cafe.closed and repr(cafe) == "<wisp.Recommender, closed>"
    uses = [
        lambda: cafe.recommend([1]),
        lambda: cafe.recommend_batch([[1]]),
        lambda: cafe.find("a"),
        lambda: cafe.item_key(0),
        lambda: cafe.item_name(0),
        lambda: len(cafe),
        lambda: cafe.info,
        lambda: cafe.provenance,
        lambda: cafe.on_device,
        lambda: session.recommend(),
        lambda: wisp.PrivateRecommender(cafe),
    ]
    for use in uses:
        with pytest.raises(wisp.Closed, match="this Recommender is closed"):
            use()


@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_object_that_was_never_opened_is_an_error():
    made = wisp.Recommender.__new__(wisp.Recommender)
    with pytest.raises(TypeError):
        made.recommend([1])


def test_memory_is_kept_alive(library):
    data = CAFE.read_bytes()
    expected = library.recommend(CAFE, [1, 2, 3], 10)[0]
    for kind in (bytes, bytearray, memoryview, lambda raw: numpy.frombuffer(raw, numpy.uint8)):
        model = wisp.Recommender.from_bytes(kind(data))
        gc.collect()
        assert model.recommend([1, 2, 3])[0].tolist() == expected
    changing = bytearray(data)
    model = wisp.Recommender.from_bytes(changing)
    changing[:] = bytes(len(changing))
    assert model.recommend([1, 2, 3])[0].tolist() == expected


def test_memory_that_is_mapped_is_used_where_it_lies(library):
    with open(CAFE, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    model = wisp.Recommender.from_bytes(mapped)
    with pytest.raises(BufferError):
        mapped.close()  # fails while it is in use
    assert model.recommend([1, 2, 3])[0].tolist() == library.recommend(CAFE, [1, 2, 3], 10)[0]
    model.close()
    mapped.close()


@pytest.mark.parametrize("length", [0, 1, 63, 64, 1000, 100_000, 167_935])
def test_a_short_file_is_an_error(tmp_path, length):
    short = CAFE.read_bytes()[:length]
    (tmp_path / "short.wisp").write_bytes(short)
    with pytest.raises(wisp.InvalidData, match="short.wisp"):
        wisp.Recommender.open(tmp_path / "short.wisp")
    with pytest.raises(wisp.InvalidData, match="a buffer"):
        wisp.Recommender.from_bytes(short, name="a buffer")


@given(st.integers(0, 167_935), st.integers(1, 255))
def test_a_damaged_file_is_an_error_or_a_model(at, change):
    data = bytearray(CAFE.read_bytes())
    data[at] ^= change
    with pytest.raises(wisp.Error):
        wisp.Recommender.from_bytes(data).recommend([1, 2])


def test_what_cannot_be_opened_is_a_sentence(tmp_path):
    with pytest.raises(wisp.IoError, match="none.wisp.*No such file"):
        wisp.Recommender.open(tmp_path / "none.wisp")
    with pytest.raises(OSError):
        wisp.Recommender.open(str(tmp_path))
    with pytest.raises(TypeError, match="path is 5"):
        wisp.Recommender.open(5)
    with pytest.raises(wisp.InvalidArgument):
        wisp.Recommender.open(None)
    with pytest.raises(ValueError, match="path is .* allowed is a path without NUL characters"):
        wisp.Recommender.open("a\0b")
    with pytest.raises(TypeError, match="data is 'text'"):
        wisp.Recommender.from_bytes("text")
    with pytest.raises(TypeError, match="Recommender.from_bytes has no argument 'path'"):
        wisp.Recommender.from_bytes(CAFE.read_bytes(), path=CAFE)


def test_masked_arrays_are_refused(cafe):
    masked = numpy.ma.masked_array([1, 2, 3], mask=[False, True, False], dtype=numpy.int32)
    calls = {
        "history": lambda: cafe.recommend(masked),
        "exclude": lambda: cafe.recommend([1], exclude=masked),
        r"histories\[1\]": lambda: cafe.recommend_batch([[1], masked]),
        "histories": lambda: cafe.recommend_batch(masked.reshape(1, 3)),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=name + " is a masked array"):
            call()
    for whole in (
        masked.compressed(),
        numpy.ma.masked_array([1, 3], dtype=numpy.int32),
        numpy.ma.masked_array([1], [0]),
    ):
        assert len(cafe.recommend(whole, 3)[0]) == 3
    subclass = numpy.array([1, 2], numpy.int32).view(numpy.recarray)
    assert len(cafe.recommend(subclass, 3)[0]) == 3


def test_options_are_checked(tmp_path):
    with pytest.raises(wisp.InvalidArgument, match="backend is 'gpu' .*allowed are 'simd', 'xnnpack', 'int8'"):
        wisp.Recommender.open(CAFE, backend="gpu")
    with pytest.raises(TypeError, match="bakend"):
        wisp.Recommender.open(CAFE, bakend="int8")
    with pytest.raises(TypeError, match="float16_cache is 1"):
        wisp.Recommender.open(CAFE, float16_cache=1)
    with pytest.raises(wisp.InvalidArgument, match="max_bytes|bytes"):
        wisp.Recommender.open(CAFE, max_bytes=1000)
    with pytest.raises(wisp.InvalidArgument, match="num_threads is 4294967296"):
        wisp.Recommender.open(CAFE, num_threads=2**32)
    with pytest.raises(TypeError, match="bytearray of 32 bytes"):
        wisp.Recommender.open(CAFE, verify="once", verified=b"x")
    with pytest.raises(wisp.InvalidArgument):
        wisp.Recommender.open(CAFE, verify="once")
    with pytest.raises(wisp.IoError, match="none.wisp"):
        wisp.Recommender.open(CAFE, adapter=tmp_path / "none.wisp")
    with pytest.raises(wisp.Unsupported):
        wisp.describe_device("cuda")


def test_options_are_followed():
    kept = bytearray(32)
    assert wisp.Recommender.open(CAFE, verify="once", verified=kept).find("tea-mint") >= 0 and any(kept)
    exact = MODEL.recommend([1, 2, 3])[1]
    assert bits(wisp.Recommender.open(CAFE, num_threads=2).recommend([1, 2, 3])[1]) == bits(exact)
    rough = wisp.Recommender.open(CAFE, backend="int8").recommend([1, 2, 3])[1]
    assert bits(rough) != bits(exact) and rough == pytest.approx(exact, rel=0.2)


def test_threads_share_a_model(cafe):
    expected = {i: cafe.recommend([i, i + 1])[0].tolist() for i in range(40)}
    wrong = []

    def work(first: int) -> None:
        for i in [*range(first, 40), *range(first)] * 8:
            if cafe.recommend([i, i + 1])[0].tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(7 * i,)) for i in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_a_model_may_be_closed_while_it_is_used():
    for _ in range(20):
        model = wisp.Recommender.open(CAFE)
        answers = []

        def work() -> None:
            try:
                while True:
                    answers.append(model.recommend_batch([[1, 2]] * 20, num_threads=1)[0][0].tolist())
            except wisp.Closed:
                answers.append(None)

        thread = threading.Thread(target=work)
        thread.start()
        while not answers:
            pass
        model.close()
        thread.join(60)
        assert not thread.is_alive() and answers[-1] is None


def test_computing_lets_other_threads_run(cafe):
    histories = [list(range(40))] * 4000  # takes a tenth of a second or more
    assert ticks_during(lambda: cafe.recommend_batch(histories, num_threads=1)) > 5


def test_nothing_leaks():
    model = wisp.Recommender.open(CAFE)
    history = numpy.array([1, 2], numpy.int32)
    gone = weakref.ref(history)
    items, _ = model.recommend(history)
    del history
    assert gone() is None and items.base is None
