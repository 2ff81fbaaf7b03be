#!/usr/bin/env python3
"""Times of the demo page: its first list, one more click, and learning beside the native library.

measure.py [--build build/release] [--wasm build/wasm] [--repeats 5]

Needs what `tools/dev build` and `tools/dev wasm` make, Chromium and python3-selenium. Nothing else should run.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parents[3]


def opened(address, profile):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_script_timeout(60)
    driver.get(address)
    return driver


def entry(driver, name, what):
    """The number `what` of the last entry of the page's timeline that has this name."""
    return driver.execute_async_script(
        "const [name, what, done] = arguments; const look = () => { const found = performance.getEntriesByName(name);"
        " found.length ? done(found[found.length - 1][what]) : setTimeout(look, 10); }; look();",
        name,
        what,
    )


def wait_for(driver, condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"measure.py: after {seconds} s the page says: {driver.find_element(By.ID, 'state').text}")
        time.sleep(0.05)


def press(driver, name):
    button = driver.find_element(By.ID, name)
    wait_for(driver, button.is_enabled, 60)
    button.click()


def starts(address, repeats):
    cold, cached, click = [], [], []
    for _ in range(repeats):
        profile = tempfile.mkdtemp(prefix="wisp-measure.")
        driver = opened(address, profile)
        cold.append(entry(driver, "first-list", "startTime"))
        entry(driver, "ready", "startTime")
        for _ in range(3):
            driver.find_element(By.CSS_SELECTOR, "#for-you button").click()
            time.sleep(0.3)
        click.append(entry(driver, "recommend", "duration"))
        driver.get(address)
        cached.append(entry(driver, "first-list", "startTime"))
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)
    return cold, cached, click


def learning_in_page(address):
    profile = tempfile.mkdtemp(prefix="wisp-measure.")
    driver = opened(address, profile)
    entry(driver, "ready", "startTime")
    press(driver, "guests")
    press(driver, "personalise")
    state = driver.find_element(By.ID, "state")
    wait_for(driver, lambda: state.text.startswith("Learned"), 600)
    seconds = entry(driver, "learn", "duration") / 1000
    driver.quit()
    shutil.rmtree(profile, ignore_errors=True)
    return seconds


def built(build, work):
    """A program that learns as the page does, and what limits the instruction sets that it finds."""
    learn, target = work / "learn", work / "target.so"
    subprocess.run(
        ["gcc", "-std=c11", f"-I{build}/include", Path(__file__).parent / "learn.c", f"-L{build}", "-lwisp"]
        + [f"-Wl,-rpath,{build}", "-o", learn],
        check=True,
    )
    subprocess.run(
        ["g++", "-std=c++17", "-shared", "-fPIC", ROOT / "tests/bits/target.cc", "-lhwy", "-o", target], check=True
    )
    return learn, target


def learning_natively(build, work, only, repeats):
    learn, target = built(build, work)
    log = work / "guests.db"
    # As ports/wasm/demo/build makes the guests of the page.
    if not log.exists():
        synth = [build / "wisp", "synth", "--out", log, "--population", "device", "--users", "2000", "--seed", "11"]
        subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)
    seconds = []
    for i in range(repeats):
        folder = work / f"{only or 'widest'}-{i}"
        folder.mkdir()
        environment = {**os.environ, **({"LD_PRELOAD": str(target), "WISP_TARGETS": only} if only else {})}
        answer = subprocess.run(
            [learn, ROOT / "models/cafe.wisp", log, folder], check=True, capture_output=True, text=True, env=environment
        )
        seconds.append(float(answer.stdout.split()[1]))
    return seconds


def show(what, values, unit):
    print(f"{what}: median {statistics.median(values):.4g} {unit} ({', '.join(f'{v:.4g}' for v in sorted(values))})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--wasm", type=Path, default=ROOT / "build/wasm")
    parser.add_argument("--repeats", type=int, default=5)
    a = parser.parse_args()
    build = a.build.resolve()
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", a.wasm / "demo", "0"], stdout=subprocess.PIPE, text=True)
    work = Path(tempfile.mkdtemp(prefix="wisp-measure."))
    try:
        address = server.stdout.readline().strip()
        cold, cached, click = starts(address, a.repeats)
        show("first list, cold", cold, "ms")
        show("first list, files in the browser's cache", cached, "ms")
        show("one more click", click, "ms")
        page = [learning_in_page(address) for _ in range(3)]
        show("learning in the page", page, "s")
        held = learning_natively(build, work, "SSE4", 3)
        show("learning natively, held to SSE4", held, "s")
        show("learning natively, the widest set", learning_natively(build, work, None, 3), "s")
        print(f"the page over SSE4: {statistics.median(page) / statistics.median(held):.2f}")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
