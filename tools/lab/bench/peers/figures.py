"""Computes spreads, and writes a table for people, lines of JSON for machines, and the machine on which a figure was
measured."""
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import sys

PACKAGES = ("torch", "numpy", "onnx", "onnxruntime", "executorch", "ai-edge-litert", "litert-torch", "opacus",
            "llama_cpp_python", "transformers")


def spread(samples):
    """Computes the spread as `wisp-lab bench` does."""
    ordered, n = sorted(samples), len(samples)
    return {"median": ordered[n // 2], "quartiles": [ordered[n // 4], ordered[n * 3 // 4]]}


def over(theirs, ours):
    """Spread of the ratios, round by round."""
    return spread([a / b for a, b in zip(theirs, ours, strict=True)])


def versions():
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def device():
    name = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line.split(":", 1) for line in file if ":" in line]
        name = next((value.strip() for key, value in lines if key.strip() == "model name"), name)
    except OSError:
        pass
    return {
        "processor": name, "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
        "system": platform.platform(terse=True)
    }


def rounded(value):
    """Writes at most four digits, since more are not reliable on a busy machine."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def shown(s, unit=""):
    return f"{s['median']:.4g}{unit} ({s['quartiles'][0]:.4g}-{s['quartiles'][1]:.4g})"


class Report:
    """Prints lines as they come; with a path, also writes them as JSON. `good` turns false if contenders disagree;
    `compared` has the parts in which another program was measured beside wisp."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8") if path else None
        self.good, self.compared = True, set()
        setup = {
            "device": device(), "date": datetime.date.today().isoformat(), "versions": versions(),
            "command": shlex.join(sys.argv)
        }
        print(
            f"{setup['device']['processor']}, {os.cpu_count()} processors, load {setup['device']['load']}, "
            f"{setup['date']}; "
            + ", ".join(f"{name} {version}" for name, version in setup["versions"].items()))
        self.line({"what": "setup", **setup})

    def line(self, values):
        if self.file:
            self.file.write(json.dumps(rounded(values)) + "\n")
            self.file.flush()

    def title(self, text):
        print(f"\n{text}", flush=True)

    def skip(self, what, contender, reason):
        reason = " ".join(str(reason).split())
        reason = reason if len(reason) <= 300 else reason[:297] + "..."
        print(f"  {contender}: left out, {reason}", flush=True)
        self.line({"what": what, "contender": contender, "left_out": reason})

    def check(self, what, contender, name, difference, limit):
        """Returns True if a contender agrees; otherwise it is not timed."""
        within = bool(difference <= limit)  # false for NaN
        self.good &= within
        self.line({
            "what": what, "contender": contender, "check": name, "difference": difference, "limit": limit,
            "within": within
        })
        if not within:
            print(f"  {contender}: not timed, {name} off by {difference:.3g}, allowed is {limit:g}", flush=True)
        return within

    def row(self, what, contender, values, text):
        if not contender.startswith("wisp"):
            self.compared.add(what)
        print(f"  {contender:<28} {text}", flush=True)
        self.line({"what": what, "contender": contender, **values})
