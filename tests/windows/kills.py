#!/usr/bin/env python3
"""Kills a private run on Windows' program at many moments, and checks the ledger after each.

    tests/windows/kills.py BUILD_FOLDER [KILLS]     default: 20; BUILD_FOLDER has wisp.exe, and wine runs it

After each kill the ledger has at least the charges of every step that the program told of, and none that it had before
is gone. In the end each run resumes, stays within its budget, and leaves no temporary file. Everything lies in a folder
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

    def charged(name):
        """The steps that the ledger says were paid for; 0 before the first."""
        if not (folder / f"{name}.ledger").exists():
            return 0
        said = json.loads(run("privacy", "--ledger", path(f"{name}.ledger"), "--delta", "0.001", "--json"))
        return said["accounting"]["steps"]

    def train(name):
        return ["train", "--recipe", path("recipe.json"), "--model", path("base.wisp"), "--data",
                path("log.db"), "--num-records-public", "60", "--batch", "20", "--epochs", "200", "--delta", "0.001",
                "--epsilon", "4", "--budget", "4", "--checkpoint", path(f"{name}.ckpt"), "--threads", "1", "--ledger",
                path(f"{name}.ledger"), "--anchor", path(f"{name}.anchor"), "--out", path(f"{name}.wisp"),
                "--json"]

    def check_end(name, before):
        done = json.loads(run(*train(name)))
        after = charged(name)
        assert done["epsilon"] <= 4 and after >= done["steps"] and after >= before, (name, after, before, done)
        assert before == 0 or done["resumed_from"] > 0 or before <= 3, (name, before, done)
        names = [file.name for file in folder.iterdir()]
        left = [name for name in names if ".tmp" in name or name.endswith(("-journal", "-turn"))]
        assert not left, f"these are left: {left}"
        lists = run("recommend", "--model", path(f"{name}.wisp"), "--data", path("log.db"), "--user", "u00003",
                    "--count", "5")
        assert len(lists.splitlines()) == 5, lists
        return done

    try:
        shutil.copy(ROOT / "models" / "cafe.wisp", folder / "base.wisp")
        recipe = json.loads((ROOT / "models/recipes/cafe-device.json").read_text())
        recipe["privacy"]["steps_per_charge"] = 3  # so that many kills fall beside a charge
        (folder / "recipe.json").write_text(json.dumps(recipe))
        run("synth", "--out", path("log.db"), "--population", "device", "--users", "60", "--seed", "7")
        began = time.monotonic()
        whole = check_end("whole", 0)
        longest = time.monotonic() - began
        number = before = within = 0
        for i in range(kills):
            process = start(*train(f"run{number}"))
            try:
                process.wait(timeout=chance.random() * longest)
                assert process.returncode == 0, process.communicate()[1].decode()
                told, killed = [], False
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)  # wine's process is the program's
                told, killed = re.findall(r" (\d+)/\d+ ", process.communicate()[1].decode()), True
            now, done = charged(f"run{number}"), max(map(int, told), default=0)
            assert now >= before, f"kill {i}: {before} steps were charged, and the ledger has {now}"
            assert now >= done, f"kill {i}: step {done} was done, and the ledger has {now}"
            within += before < now and killed
            before = now
            print(f"kill {i + 1} of run {number}: {now} steps charged, {done} told of", flush=True)
            if not killed or now >= 0.8 * whole["steps"]:
                if killed:
                    check_end(f"run{number}", before)
                number, before = number + 1, 0
        check_end(f"run{number}", before)
        assert within >= kills / 4, f"only {within} of {kills} kills fell behind a new charge"
        print(f"passed: {kills} kills, {within} of them behind new charges, {number + 1} runs")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
