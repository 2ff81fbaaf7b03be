"""Backends, histories in batches, and the speed of scoring: by the program and in C."""

import pytest
from program import c_program, exists, label, plain, run, says

pytestmark = pytest.mark.usefixtures("cafe")


memory = "wisp inspect base.wisp --memory"


def test_c_serves_batches_and_chooses_backends():
    plain("plain.wisp")
    # Several histories at once, in C.
    c_program("recommend_batch")
    run("./recommend_batch base.wisp")
    # A backend can be chosen in C as on the command line, with equal scores.
    c_program("open_with")
    backends = run(f"./open_with base.wisp plain.wisp backends.db '{label}'")
    assert not exists("backends.db"), "a refused recommender left a ledger behind"
    # So can its memory be planned; a backend that the build lacks is refused in the words of the runtime.
    whole = run(f"{memory} --threads 1 --json")
    for backend in ("simd", "int8", "xnnpack"):
        if says(f"^{backend}:none", backends.out):
            why = "no 8-bit kernels" if backend == "int8" else "has no XNNPACK"

            run(f"{memory} --backend {backend}", 3, why)
            continue
        r = run(f"{memory} --threads 1 --backend {backend} --json")
        assert r["inference"]["backend"] == backend and ("batch_of_32" in r.json) == (backend != "xnnpack")
        assert (r.json == whole.json) == (backend == "simd")
    run(f"{memory} --backend int4", 2, "allowed are simd, int8 and xnnpack")
    run("wisp inspect base.wisp --backend int8", 2, "memory")
    for line in backends.out.splitlines():
        backend, history, scores = line.split(":")
        if "none" in line:
            continue
        r = run(f"wisp recommend --model base.wisp --history {history} --count 5 --backend {backend} --json")
        assert [i["item"] + "=%.9g" % i["score"] for i in r.json] == scores.split(",")


def test_threads_that_share_a_history_change_no_score():
    history = "tea-mint,bagel-lentil"
    alone = run(f"wisp recommend --model base.wisp --history {history} --json")
    r = run(f"wisp recommend --model base.wisp --history {history} --threads 2 --json")
    assert r.out == alone.out, "two threads recommend something else"
    r = run("lab bench --what score --length 20 --items 300 --repeats 1 --threads 2 --json")
    assert all(0 < r["batch"][b]["histories_per_s"]["median"] for b in ("1", "8", "32")) and r["batch"]["threads"] == 2
    assert r["scoring"]["several_threads"]["threads"] == 2
    assert r["scoring"]["several_threads"]["over_one_thread"]["median"] > 0
