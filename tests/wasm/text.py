#!/usr/bin/env python3
"""Embeds, classifies and generates texts in a headless browser, and compares with the native program.

text.py PACKAGE WISP MODELS     MODELS: a folder with e.wisp, an encoder, c.wisp, a classifier, and g.wisp, a decoder
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium.common.exceptions import WebDriverException

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, check  # noqa: E402  it lies beside the tests

package, wisp, models = (str(Path(given).resolve()) for given in sys.argv[1:])
TEXT = "word5 word7 word30"
OPEN = """
  const { loadTexts } = await import('./wisp/text.js');
  const texts = await loadTexts();
  const opened = async (name, more) => texts.openModel(await (await fetch(name)).arrayBuffer(), { name, ...more });
"""
# In a worker of the page's own, pieces of a text are shown as they come.
WORKER = """
import { loadTexts } from "./wisp/text.js";
const texts = await loadTexts();
const model = texts.openModel(await (await fetch("g.wisp")).arrayBuffer());
const onText = (piece) => self.postMessage({ piece });
const { text, ended } = model.generate("once", { maxNewTokens: 12, greedy: true, onText });
self.postMessage({ text, ended });
"""
REFUSED = (
    ("InvalidArgument", "has no option 'topp'", "(await opened('g.wisp')).generate('a', { topp: 1 })"),
    ("InvalidArgument", "onText is a number", "(await opened('g.wisp')).generate('a', { onText: 1 })"),
    ("InvalidArgument", "text is a number; it must be a string", "(await opened('e.wisp')).embed(5)"),
    ("InvalidArgument", "stop is a string; it must be a list", "(await opened('g.wisp')).generate('a', { stop: 'a' })"),
    ("InvalidArgument", "stop[0] is a number", "(await opened('g.wisp')).generate('a', { stop: [1] })"),
    ("InvalidArgument", "seed is -1", "(await opened('g.wisp')).generate('a', { seed: -1 })"),
    ("InvalidArgument", "", "(await opened('e.wisp')).generate('a')"),
    ("InvalidArgument", "names no file", "texts.openModel(new ArrayBuffer(8), { name: '../x' })"),
    ("InvalidData", "short.wisp", "texts.openModel(new ArrayBuffer(8), { name: 'short.wisp' })"),
    ("InvalidArgument", "was closed", "const m = await opened('e.wisp'); m.close(); m.embed('a')"),
)


def native(*command):
    told = subprocess.run([wisp, *command, "--json"], cwd=models, capture_output=True, text=True)
    check(told.returncode == 0, f"wisp {command}: {told.stderr}")
    return told.stdout


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 2e-4 * max(1, abs(y)) for x, y in zip(a, b))


def numbers_of(value):
    """The longest list of numbers in a JSON value."""
    if isinstance(value, list) and value and all(isinstance(entry, (int, float)) for entry in value):
        return value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((numbers_of(entry) for entry in inner), key=len, default=[])


def check_same_as_native(browser):
    told = browser.value(
        OPEN + """
        const encoder = await opened('e.wisp'), classifier = await opened('c.wisp'), decoder = await opened('g.wisp');
        const pieces = [], greedy = { maxNewTokens: 12, greedy: true };
        const result = {
          tokens: Array.from(encoder.tokenize(args[0])), vector: Array.from(encoder.embed(args[0])),
          info: encoder.info, classes: classifier.classify(args[0]), names: classifier.classes,
          whole: decoder.generate('once', { ...greedy, onText: (piece) => { pieces.push(piece); } }), pieces,
          again: [1, 1, 2].map((seed) => decoder.generate('once', { maxNewTokens: 12, seed }).text),
          cut: decoder.generate('once', { ...greedy, onText: () => false })
        };
        let thrown = '';
        try {
          decoder.generate('once', { onText: () => { throw new RangeError('not now'); } });
        } catch (error) { thrown = error.message; }
        for (const model of [encoder, classifier, decoder]) model.close();
        return { ...result, thrown };""",
        TEXT,
    )
    vector = numbers_of(json.loads(native("embed", "e.wisp", "--text", TEXT)))
    check(close(told["vector"], vector), f"the vector is {told['vector'][:4]}, natively {vector[:4]}")
    check(told["info"]["width"] == len(vector) and told["info"]["isDecoder"] is False, f"the encoder: {told['info']}")
    there = native("classify", "--model", "c.wisp", "--text", TEXT)
    best = max(told["classes"], key=lambda entry: entry["probability"])
    check(told["names"] == ["bad", "good"] and f'"{best["name"]}"' in there, f"classes: {told['classes']}, {there}")
    check(abs(sum(entry["probability"] for entry in told["classes"]) - 1) < 1e-5, f"probabilities: {told['classes']}")
    whole = told["whole"]
    check("".join(told["pieces"]) == whole["text"] and len(told["pieces"]) > 1, f"pieces {told['pieces']} of {whole}")
    check(whole["numTokens"] == 12 and whole["ended"] == "length", f"a text of 12 tokens: {whole}")
    there = json.loads(native("generate", "g.wisp", "--prompt", "once", "--max-tokens", "12", "--top-k", "1"))
    check(whole["text"] == there["text"], f"the text is {whole}, natively {there}")
    check(told["again"][0] == told["again"][1] != told["again"][2], f"seeds 1, 1 and 2 give {told['again']}")
    check(told["cut"]["ended"] == "caller", f"a text that onText ended: {told['cut']}")
    check(told["thrown"] == "not now", f"an exception of onText: {told['thrown']}")


def check_refusals(browser):
    for kind, sentence, action in REFUSED:
        error = browser.run(OPEN + action).get("error") or {}
        check(
            error.get("kind") == kind and sentence in error.get("message", ""),
            f"{action}: expected {kind} with '{sentence}', got {error}",
        )


def check_worker(browser):
    told = browser.value("""
      const worker = new Worker('worker.js', { type: 'module' }), pieces = [];
      return new Promise((resolve, reject) => {
        worker.onmessage = ({ data: { piece, ...last } }) =>
          piece === undefined ? resolve({ ...last, pieces }) : pieces.push(piece);
        worker.onerror = (event) => reject(new Error(event.message));
      });""")
    check(told["ended"] == "length" and "".join(told["pieces"]) == told["text"] != "", f"texts in a worker: {told}")


def main():
    work = Path(tempfile.mkdtemp(prefix="wisp-text."))
    site = work / "site"
    shutil.copytree(package, site / "wisp")
    for name in ("e.wisp", "c.wisp", "g.wisp"):
        shutil.copy(Path(models) / name, site)
    (site / "index.html").write_text('<!doctype html><title>x</title><link rel="icon" href="data:,">')
    (site / "worker.js").write_text(WORKER)
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", site, "0"], stdout=subprocess.PIPE, text=True)
    browser = None
    try:
        browser = Browser(work / "profile", server.stdout.readline().strip())
        check_same_as_native(browser)
        check_refusals(browser)
        check_worker(browser)
        browser.check_console()
        print("texts in the browser: passed")
    except WebDriverException as error:
        sys.exit(f"text.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
