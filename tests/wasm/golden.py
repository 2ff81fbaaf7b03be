#!/usr/bin/env python3
"""The page's device opens the files of tests/golden/0.1 and answers what answers.txt says (tests/golden/README.md).

golden.py DEMO_FOLDER
"""

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium.common.exceptions import WebDriverException

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, check  # noqa: E402  it lies beside the tests

GOLDEN = ROOT / "tests/golden/0.1"
# A device has one log and one ledger, under these names. The page puts them into the storage as store.js lays a file
# out, because a page may not write them through the device.
PLANT = """
  const [folder, name, text] = args;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const block = new Uint8Array(2048), view = new DataView(block.buffer), words = new TextEncoder().encode(name);
  view.setUint32(0, 0x77697370);
  view.setFloat64(8, 1);
  view.setUint32(16, 0o100600);
  view.setUint32(20, words.length);
  block.set(words, 32);
  let hash = 0x811c9dc5;
  for (const byte of block.subarray(8)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  view.setUint32(4, hash);
  const root = await navigator.storage.getDirectory(), place = await root.getDirectoryHandle(folder, { create: true });
  const slot = name === 'events.db' ? 'slot-1' : 'slot-2';
  const file = await (await place.getFileHandle(slot, { create: true })).createWritable();
  await file.write({ type: 'write', position: 0, data: block });
  await file.write({ type: 'write', position: 8192, data: bytes });
  await file.close();
"""
ASK = """
  const [folder, files, questions] = args, { Device } = await import('./wisp/device.js');
  const device = await Device.open(folder), answers = [];
  for (const [name, text] of files)
    await device.writeFile(name, Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  for (const [verb, ...words] of questions) {
    if (verb === 'recommend' || verb === 'adapter') {
      const [model, adapter] = verb === 'adapter' ? words : [words[0]];
      const history = words[verb === 'adapter' ? 2 : 1].split(',');
      const best = await device.recommend({ model, adapter, history, count: 7, allowSeen: true });
      answers.push(best.flatMap(({ key, score }) => [key, score]));
    } else if (verb === 'history') {
      const { items } = await device.describeModel(words[1]);
      const history = await device.history({ model: words[1], user: words[2] });
      answers.push(history.map((item) => items[item].key));
    } else if (verb === 'events') {
      answers.push([(await device.countEvents()).events]);
    } else {
      const delta = Number(words[1]), stated = JSON.parse(await device.statement({ delta, format: 'json' }));
      answers.push([stated.accounting.epsilon, (await device.budget({ delta })).epsilonStated]);
    }
  }
  await device.close();
  return answers;
"""
GIVEN = {"recommend": 2, "adapter": 3, "history": 3, "events": 1, "epsilon": 2}  # words of a question behind its verb


def text_of(name):
    return base64.b64encode((GOLDEN / name).read_bytes()).decode()


def near(told, seen):
    return abs(told - seen) <= 1e-5 * (1 + abs(told))


def alike(told, seen):
    """Words are equal; numbers may differ by the rounding of another processor."""
    return len(told) == len(seen) and all(
        near(float(a), b) if isinstance(b, (int, float)) else a == b for a, b in zip(told, seen, strict=True)
    )


def ask(browser, ledger, questions):
    """A device of its own for each ledger."""
    folder = ledger.replace(".", "-")
    browser.value(PLANT, folder, "events.db", text_of("log.db"))
    browser.value(PLANT, folder, "privacy.ledger", text_of(ledger))
    models = [[path.name, text_of(path.name)] for path in sorted(GOLDEN.glob("*.wisp"))]
    answers = browser.value(ASK, folder, models, [line.split()[: 1 + GIVEN[line.split()[0]]] for line in questions])
    for line, seen in zip(questions, answers, strict=True):
        told = line.split()[1 + GIVEN[line.split()[0]] :]
        if line.startswith("epsilon"):
            told *= 2
        check(alike(told, seen), f"{line[:40]}...: the page says {seen}")
    return len(answers)


def main():
    lines = (GOLDEN / "answers.txt").read_text().splitlines()
    work = tempfile.mkdtemp(prefix="wisp-golden.")
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", sys.argv[1], "0"], stdout=subprocess.PIPE, text=True)
    browser = None
    try:
        browser = Browser(f"{work}/profile", server.stdout.readline().strip())
        browser.wait_ready()
        others = [line for line in lines if " open.ledger " not in line]
        count = ask(browser, "closed.ledger", others)
        count += ask(browser, "open.ledger", [line for line in lines if line not in others])
        check(count == len(lines) == 11, f"{count} of {len(lines)} lines were answered, not 11")
        check(not alike(["i1", "1.0"], ["i1", 1.1]) and not alike(["i1"], ["i2"]), "other answers would not be seen")
        print("the files that every port opens: passed")
    except WebDriverException as error:
        sys.exit(f"golden.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
