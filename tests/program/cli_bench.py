"""wisp-lab bench: its parts, the options that each of them reads, and --all, whose output is a row of
docs/processors.md."""

import json
import os

from program import run, size


def test_a_machine_is_measured_whole():
    r = run("lab bench --all --threads 2 --json")
    machine = r["machine"]
    assert machine["fma_peak_gflops"] > 0 and 0 < machine["read_gb_per_s"] and machine["processors"] > 0
    # Memory that is written takes longer than memory that is only read.
    assert machine["memory_gb_per_s"] < 5 * machine["read_gb_per_s"], "triads read memory that was never written"
    assert {"scoring", "batch", "sampling", "training", "each_op", "encoder", "decoders", "privacy"} <= set(r.json)
    assert r["encoder"]["threads"] == 1 and r["encoder"]["several_threads"]["threads"] == 2
    for form in ("f32", "int8", "int4"):
        assert r["decoders"][form]["token_ms"]["median"] > 0
    # A calibration that a process remembers takes a hundredth of a millisecond.
    assert r["privacy"]["calibration_epsilon_1_ms"]["median"] > 0.5
    run("lab bench --all --what score", 2, "--what is given, and --all too; allowed is one of the two")
    run("lab bench --all --items 300", 2, "--items does not go with --all, whose sizes are fixed")


def test_the_encoder():
    # The encoder, its weights and its results.
    r = run("lab bench --what encoder --items 50 --repeats 1 --threads 2 --tensors encoder.safetensors --json")
    assert r["encoder"]["ms"]["median"] > 0 and r["encoder"]["planned_bytes"] > r["encoder"]["planned_bytes_int8"]
    assert r["encoder"]["several_threads"]["threads"] == 2
    assert r["encoder"]["several_threads"]["over_one_thread"]["median"] > 0
    assert size("encoder.safetensors"), "bench --tensors wrote nothing"
    r = run("lab bench --what ops --length 20 --items 300 --repeats 2 --json")
    first, *ops = map(json.loads, r.out.splitlines())
    assert first["memory_gb_per_s"] > 0
    assert {o["op"] for o in ops} >= {"linear_forward", "attention_backward", "adam", "top_k"}
    assert all(o["percent_of_roofline"]["median"] > 0 for o in ops)


def test_an_option_that_the_bench_does_not_read_is_refused():
    # An option that the bench does not read is refused; a peak counts processors, not threads that wait for them.
    run("lab bench --what score --tensors x.safetensors",
        2, "--tensors is of --what decoder, encoder; --what score does not read it")
    run("lab bench --what score --batch 4",
        2, "--batch is of --what both, clipping, products, roofline, sparse, train; --what score does not")
    r = run("lab bench --what ops --threads 2", 2, "--threads is of .*; --what ops does not")
    processors = len(os.sched_getaffinity(0))
    bench = f"lab bench --what train --length 10 --items 100 --batch 8 --repeats 1 --threads {4 * processors} --json"
    r = run(bench, 0, f"there are {processors} processors")
    assert r["training"]["threads"] == 4 * processors and r["training"]["threads_in_peak"] == processors
