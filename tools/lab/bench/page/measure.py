#!/usr/bin/env python3
"""Times of the demo page: its first list, one more click, and learning beside the native library.

measure.py [--build build/release] [--wasm build/wasm] [--repeats 5]

Needs what `tools/dev build` and `tools/dev wasm` make, Chromium and python3-selenium. Nothing else should run.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser  # noqa: E402  it lies beside the tests


def entry(browser, name, what):
    """Waits for an entry with this name in the page's timeline, and returns the number `what` of the last one."""
    return browser.value(
        "const [name, what] = args; for (;;) { const found = performance.getEntriesByName(name);"
        " if (found.length) return found[found.length - 1][what]; await new Promise((go) => setTimeout(go, 10)); }",
        name,
        what,
    )


# A browser that was just started is left alone for this long, because it is busy with its own start.
SETTLED_S = 3


def first_in_a_new_browser(address):
    with tempfile.TemporaryDirectory(prefix="wisp-measure.", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, address)
        first = entry(browser, "first-list", "startTime")
        browser.quit()
        return first


def starts(address, repeats):
    """First lists in a new tab of a running browser and from its cache, and clicks; nothing of the page is cached."""
    cold, cached, click = [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="wisp-measure.", ignore_cleanup_errors=True) as profile:
            browser = Browser(profile, "about:blank")
            time.sleep(SETTLED_S)
            browser.driver.switch_to.new_window("tab")
            browser.driver.get(address)
            cold.append(entry(browser, "first-list", "startTime"))
            browser.wait_ready()
            browser.driver.find_element(By.CSS_SELECTOR, "#for-you button").click()
            browser.wait_for(lambda: "Ordered" in browser.text("state"), "the order")
            click.append(entry(browser, "recommend", "duration"))
            browser.driver.get(address)
            cached.append(entry(browser, "first-list", "startTime"))
            browser.quit()
    return cold, cached, click


# One run of RECIPE, one of four that were planned, over the page's guests.
LEARNS = """
  const { Device } = await import('./wisp/device.js');
  const device = await Device.open('measured'), { items, guests } = await (await fetch('guests.json')).json();
  await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
  await device.appendEvents(guests.flatMap(({ user, orders }) =>
    orders.map(([item, time]) => ({ user, item: items[item], time }))));
  const begin = performance.now();
  await device.personalise({
    model: 'base.wisp', output: 'mine.wisp', epsilon: 4, plannedRuns: 4, budgetEpsilon: 4, delta: 1e-5, unit: 'user',
    numRecordsPublic: 2000, expectedBatch: 128, epochs: 3, learningRate: 0.003
  });
  return (performance.now() - begin) / 1000;
"""


def learning_in_page(address):
    with tempfile.TemporaryDirectory(prefix="wisp-measure.", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, address)
        browser.wait_ready()
        seconds = browser.value(LEARNS)
        browser.quit()
        return seconds


RECIPE = {
    "name": "page",
    "training": {
        "method": "phantom",
        "sampling": "poisson",
        "loss": "record_mean",
        "epochs": 3,
        "expected_batch": 128,
        "num_records_public": 2000,
        "optimizer": {"kind": "adam", "learning_rate": 0.003},
    },
    "privacy": {"epsilon": 4, "delta": 1e-5, "clipping_norm": 1, "unit": "user"},
}


def learning_natively(wisp, work, only, repeats):
    log, recipe = work / "guests.db", work / "page.json"
    recipe.write_text(json.dumps(RECIPE))
    # ports/wasm/demo/build makes the guests of the page in the same way.
    if not log.exists():
        synth = [wisp, "synth", "--out", log, "--population", "device", "--users", "2000", "--seed", "11"]
        subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)
    environment = dict(os.environ)
    if only:
        environment["WISP_TARGETS"] = only
    seconds = []
    for i in range(repeats):
        out = work / f"{only or 'widest'}-{i}"
        train = [
            wisp,
            "train",
            "--recipe",
            recipe,
            "--model",
            ROOT / "models/cafe.wisp",
            "--data",
            log,
            "--threads",
            "1",
        ]
        files = ["--out", f"{out}.wisp", "--ledger", f"{out}.ledger", "--json"]
        public = ["--dataset", "guests", "--public-dataset", "synthetic public cafe guests"]
        answer = subprocess.run(train + files + public, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        seconds.append(json.loads(answer.stdout)["seconds"])
    return seconds


def show(what, values, unit):
    print(f"{what}: median {statistics.median(values):.4g} {unit} ({', '.join(f'{v:.4g}' for v in sorted(values))})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--wasm", type=Path, default=ROOT / "build/wasm")
    parser.add_argument("--repeats", type=int, default=5)
    a = parser.parse_args()
    wisp = a.build.resolve() / "wisp"
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", a.wasm / "demo", "0"], stdout=subprocess.PIPE, text=True)
    work = Path(tempfile.mkdtemp(prefix="wisp-measure."))
    try:
        address = server.stdout.readline().strip()
        cold, cached, click = starts(address, a.repeats)
        show("first list, cold, in a new tab", cold, "ms")
        show("first list, cold, in a new browser", [first_in_a_new_browser(address) for _ in range(a.repeats)], "ms")
        show("first list, files in the browser's cache", cached, "ms")
        show("one more click", click, "ms")
        page = [learning_in_page(address) for _ in range(3)]
        show("learning in the page", page, "s")
        held = learning_natively(wisp, work, "SSE4", 3)
        show("learning natively, held to SSE4", held, "s")
        show("learning natively, the widest set", learning_natively(wisp, work, None, 3), "s")
        print(f"the page over SSE4: {statistics.median(page) / statistics.median(held):.2f}")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
