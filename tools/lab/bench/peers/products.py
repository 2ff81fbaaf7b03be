#!/usr/bin/env python3
"""The matrix products of a training step on a GPU, shape by shape: wisp's kernels beside PyTorch's, which are cuBLAS,
both in floats of 32 bits.

    tools/lab/bench/peers/products.py --wisp build/release/wisp --recipe models/recipes/ml-1m-dp-10.json
    tools/lab/bench/peers/products.py --wisp build/release/wisp --device cpu          # on the processor, one thread

Last line: the geometric mean of the shares of their speed that wisp reaches. A record's own products are a batch of
products to PyTorch.
Exit codes: 0 measured, 1 wisp failed, 77 there is no PyTorch, or it sees no GPU.
"""
import argparse
import json
import math
import os
import sys
import time

SAMPLE_SECONDS = 2e-3  # as in `wisp-lab bench --what products`


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wisp", default="build/release/wisp", help="the program")
    parser.add_argument("--recipe", help="products of this recipe's model; default: the bench's own")
    parser.add_argument("--batch", type=int, help="records of the step; default: the recipe's or the bench's own")
    parser.add_argument("--inner-width", type=int, help="inner width of feed-forward layers, without --recipe")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--device-module", metavar="FILE", help="wisp's kernels of that device")
    parser.add_argument("--repeats", type=int, default=11, help="samples of each product")
    parser.add_argument("--json", metavar="FILE", help="write lines of JSON")
    a = parser.parse_args()
    if a.repeats < 1:
        parser.error(f"--repeats is {a.repeats}, allowed are 1 and above")
    if not os.access(a.wisp, os.X_OK):
        parser.error(f"--wisp is {a.wisp!r}: there is no program; build it first (tools/dev build)")
    return a


def product_of(torch, shape, device):
    """Returns a function that computes it once."""
    rows, n, k, records = (shape[key] for key in ("rows", "n", "k", "records"))
    x, w, y = (torch.rand(size, device=device) for size in ((rows, k), (n, k), (rows, n)))
    out, dx, dw = torch.empty_like(y), torch.empty_like(x), torch.empty_like(w)
    of_records = torch.empty(records, n, k, device=device)
    return {
        "forward": lambda: torch.mm(x, w.T, out=out), "gradient of rows": lambda: torch.mm(y, w, out=dx),
        "gradient of weights": lambda: torch.mm(y.T, x, out=dw), "gradient of each record's weights": lambda: torch.bmm(
            y.view(records, -1, n).transpose(1, 2), x.view(records, -1, k), out=of_records)
    }[shape["product"]]


def microseconds(torch, product, device, repeats):
    def run(calls):
        if device == "cpu":
            begin = time.perf_counter()
            for _ in range(calls):
                product()
            return (time.perf_counter() - begin) / calls
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            product()
        end.record()
        torch.cuda.synchronize()
        return 1e-3 * begin.elapsed_time(end) / calls
    run(1)
    calls = max(1, min(10000, int(SAMPLE_SECONDS / max(run(1), 1e-9))))
    return sorted(1e6 * run(calls) for _ in range(repeats))


def main():
    a = arguments()
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # before torch is loaded
    try:
        import torch
    except ImportError:
        print("products: PyTorch is not installed, nothing was compared", file=sys.stderr)
        return 77
    if a.device == "cuda" and not torch.cuda.is_available():
        print("products: PyTorch sees no GPU, nothing was compared", file=sys.stderr)
        return 77
    import figures
    from wisp_program import Wisp, WispError
    torch.backends.cuda.matmul.allow_tf32 = False
    device = () if a.device == "cpu" else ("--device", a.device,
                                           *(("--device-module", a.device_module) if a.device_module else ()))
    report = figures.Report(a.json)
    try:
        chosen = (("--recipe", a.recipe), ("--batch", a.batch), ("--inner-width", a.inner_width))
        ours = Wisp(os.path.abspath(a.wisp), device).bench(
            "--what", "products", "--repeats", a.repeats, *(word for pair in chosen if pair[1] for word in pair)
        )
    except (WispError, json.JSONDecodeError) as error:
        print(f"products: {error}", file=sys.stderr)
        return 1
    report.title(f"Products of a step on {ours['device']}")
    logs = []
    for shape in ours["products"]:
        theirs = figures.spread(microseconds(torch, product_of(torch, shape, a.device), a.device, a.repeats))
        share = theirs["median"] / shape["us"]["median"]
        logs.append(math.log(share))
        name = f"{shape['product']}, {shape['rows']} x {shape['n']} x {shape['k']}"
        report.row(
            "products", name, {**shape, "torch_us": theirs, "share_of_its_speed": share},
            f"{figures.shown(shape['us'], ' us')}, torch {figures.shown(theirs, ' us')}: {100 * share:.0f} % of its "
            f"speed"
        )
    mean = math.exp(sum(logs) / len(logs))
    report.row("products", "geometric mean", {"share_of_its_speed": mean}, f"{100 * mean:.0f} % of PyTorch's speed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
