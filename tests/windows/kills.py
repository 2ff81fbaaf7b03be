#!/usr/bin/env python3
"""Kills a private run on Windows' program at many moments, and checks the ledger after each.

    tests/windows/kills.py BUILD_FOLDER [KILLS]     default: 20; BUILD_FOLDER has wisp.exe, and wine runs it

After each kill the ledger has at least the charges of every step that the program told of, and none that it had before
is gone. In the end the run resumes, stays within its budget, and leaves no temporary file. Everything lies in a folder
whose name is not ASCII, and nothing in it was made by another system.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "kiosk größe 日本"


def main():
    wisp = pathlib.Path(sys.argv[1]).resolve() / "wisp.exe"
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(os.environ.get("WISP_TEST_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    print(f"seed {seed} (WISP_TEST_SEED)", flush=True)
    # wine reads a command line in the encoding of the locale.
    environment = dict(os.environ, WINEDEBUG="-all", LC_ALL="C.UTF-8")
    work = pathlib.Path(tempfile.mkdtemp(prefix="wisp_windows_"))
    folder = work / FOLDER
    folder.mkdir()

    def start(*words):
        return subprocess.Popen(["wine", str(wisp), *words], cwd=work, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(*words, code=0):
        process = start(*words)
        out, err = process.communicate(timeout=600)
        assert process.returncode == code, f"{words}: exit code {process.returncode}: {err.decode()}"
        return out.decode()

    def path(name):
        return f"{FOLDER}\\{name}"  # the separator of Windows

    def charged():
        """The steps that the ledger says were paid for; 0 before the first."""
        if not (folder / "log.ledger").exists():
            return 0
        said = json.loads(run("privacy", "--ledger", path("log.ledger"), "--delta", "0.001", "--json"))
        return said["accounting"]["steps"]

    try:
        shutil.copy(ROOT / "models" / "cafe.wisp", folder / "base.wisp")
        run("synth", "--out", path("log.db"), "--population", "device", "--users", "60", "--seed", "7")
        train = ["train", "--recipe", str(ROOT / "models/recipes/cafe-device.json"), "--model", path("base.wisp"), "--data",
                 path("log.db"), "--num-records-public", "60", "--batch", "20", "--epochs", "200", "--delta", "0.001",
                 "--epsilon", "4", "--budget", "4", "--checkpoint", path("run.ckpt"), "--threads", "1", "--ledger",
                 path("log.ledger"), "--anchor", path("log.anchor"), "--out", path("mine.wisp"), "--json"]
        # How long a start takes here, so that kills fall on what follows it.
        began = time.monotonic()
        run("--version")
        least = time.monotonic() - began
        before = saved = ended = 0
        for i in range(kills):
            process = start(*train)
            try:
                process.wait(timeout=least + chance.random() * (0.3 + least))
                ended += 1
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)  # wine's process is the program's
                told = re.findall(r" (\d+)/\d+ ", process.communicate()[1].decode())
            now = charged()
            assert now >= before, f"kill {i}: {before} steps were charged, and the ledger has {now}"
            done = max(map(int, told), default=0)
            assert now >= done, f"kill {i}: step {done} was done, and the ledger has {now}"
            saved = max(saved, done)
            before = now
            print(f"kill {i + 1}: {now} steps charged, {done} told of", flush=True)
        assert before > 0 and saved > 0, f"no kill fell behind a charge and a step: {before}, {saved}"
        assert ended == 0, "the run ended before all kills: give it more steps"
        done = json.loads(run(*train))
        assert done["resumed_from"] > 0 and done["epsilon"] <= 4, done
        after = charged()
        assert after >= done["steps"] and after >= before, (after, before, done)
        left = [file.name for file in folder.iterdir() if ".tmp-" in file.name or file.name.endswith(("-journal", "-turn"))]
        assert not left, f"these are left: {left}"
        lists = run("recommend", "--model", path("mine.wisp"), "--data", path("log.db"), "--user", "u00003", "--count", "5")
        assert len(lists.splitlines()) == 5, lists
        print(f"passed: {kills} kills, {after} steps charged for {done['steps']}, epsilon {done['epsilon']:.4f}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
