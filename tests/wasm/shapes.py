#!/usr/bin/env python3
"""Runs the package where pages put it: in a module worker, a service worker, an extension, a bundle, and from another
origin. The types are checked, and the example is used.

shapes.py PACKAGE MODEL
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, check  # noqa: E402  it lies beside the tests

package, model = map(Path, sys.argv[1:])

RECOMMENDS = """
const wisp = await loadRuntime(LOAD);
const model = wisp.openModel(await (await fetch("cafe.wisp")).arrayBuffer());
const best = model.recommend(["tea-mint"], { count: 5 }).map(({ key }) => key);
"""
# Static imports alone: service workers refuse import().
SERVICE_WORKER = """
import { loadRuntime } from "./wisp/runtime.js";
import { loadTexts } from "./wisp/text.js";
const listed = (async () => {
  const wisp = await loadRuntime();
  const model = wisp.openModel(await (await fetch("cafe.wisp")).arrayBuffer());
  const list = model.recommend(["tea-mint"], { count: 5 }).map(({ key }) => key);
  return (await loadTexts()).version === wisp.version ? list : "the versions differ";
})();
self.addEventListener("message", ({ ports }) => {
  listed.then((list) => ports[0].postMessage(list), (error) => ports[0].postMessage(String(error)));
});
"""
MODULE_WORKER = 'import { loadRuntime } from "./wisp/runtime.js";' + RECOMMENDS + "self.postMessage(best);"
BUNDLED = 'import { loadRuntime } from "wisp/runtime.js";' + (
    "(async () => {" + RECOMMENDS + "window.told = best; })().catch((error) => { window.told = String(error); });"
)
EXTENSION = """
import { loadRuntime } from "./wisp/runtime.js";
async function list() {
  const wisp = await loadRuntime();
  const model = wisp.openModel(await (await fetch("cafe.wisp")).arrayBuffer());
  return JSON.stringify(model.recommend(["tea-mint"], { count: 5 }).map(({ key }) => key));
}
list().catch(String).then((told) => fetch("ADDRESS/told", { method: "POST", body: told }));
"""
USES_TYPES = """
import { Device, WispError } from "./wisp/device.js";
import { loadRuntime } from "./wisp/runtime.js";
import { loadTexts } from "./wisp/text.js";
const wisp = await loadRuntime({ vectors: "auto" }), model = wisp.openModel(new ArrayBuffer(0));
const key: string = model.recommend(["tea-mint", 5], { excluded: new Set([1]) })[0].key;
const lists: number = model.recommendBatch([[1], ["tea-mint"]]).length;
const hash: string = model.info.contentHash;
const device = await Device.open("x", { worker: () => new Worker("worker.js") });
const drawn = await device.recommendPrivately({ model: "m.wisp", history: ["a"], lambda: 0.1 });
await device.personalise({ model: "m.wisp", output: "a", adapterRank: 2, epsilon: 1, delta: 1e-5, numRecordsPublic: 9,
  unit: "user", onProgress: ({ step }) => console.log(step) });
const texts = await loadTexts(), probability: number = texts.openModel(new Uint8Array(1)).classify("x")[0].probability;
const ended: "length" | "token" | "stop" | "context" | "caller" =
  texts.openModel(new Uint8Array(1)).generate("x", { onText: (piece) => piece !== "." }).ended;
console.log(key, lists, hash, drawn.free, probability, ended, WispError.name);
"""
# One that the types must refuse, for each.
REFUSED_BY_TYPES = (
    'model.recommend("tea-mint", { cuont: 1 });',
    'await device.recommend({ model: "m.wisp" });',
    "const many: bigint = model.info.contentHash;",
    'texts.openModel(new Uint8Array(1)).generate("x", { onText: 5 });',
)


EMPTY = '<!doctype html><title>x</title><link rel="icon" href="data:,">'


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder. `cors`: to pages of every origin, like the servers of a CDN."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".js": "text/javascript"}

    def __init__(self, *arguments, cors, told, **others):
        self.cors, self.told = cors, told
        super().__init__(*arguments, **others)

    def end_headers(self):
        if self.cors:
            self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_POST(self):
        self.told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Served:
    def __init__(self, folder, cors=False):
        self.told = []
        handler = partial(Handler, directory=folder, cors=cors, told=self.told)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://localhost:{self.server.server_address[1]}"


def lay_out(folder):
    """A site with the package, the model and the pages that the checks load."""
    shutil.copytree(package, folder / "wisp")
    shutil.copy(model, folder / "cafe.wisp")
    shutil.copy(ROOT / "ports/wasm/example.html", folder)
    (folder / "index.html").write_text(EMPTY)
    (folder / "service_worker.js").write_text(SERVICE_WORKER)
    (folder / "module_worker.js").write_text(MODULE_WORKER.replace("LOAD", "{}"))
    (folder / "esm.in.js").write_text(BUNDLED.replace("LOAD", "{}"))
    # A script that is no module has no import.meta.url, so it is told where the WebAssembly lies.
    (folder / "iife.in.js").write_text(BUNDLED.replace("LOAD", '{ wasm: "wisp/wisp-runtime.wasm" }'))
    # Bundlers find an installed package by its name and its package.json.
    (folder / "node_modules").mkdir()
    (folder / "node_modules/wisp").symlink_to(folder / "wisp")
    for kind, into in (("esm", folder / "wisp/bundled.js"), ("iife", folder / "bundled.js")):
        bundle = ["esbuild", folder / f"{kind}.in.js", "--bundle", "--minify", "--log-level=error"]
        bundle += [f"--format={kind}", f"--outfile={into}", "--external:./wisp-runtime-plain.mjs"]
        subprocess.run([str(word) for word in bundle], check=True)
        tag = "<script type=module" if kind == "esm" else "<script"
        (folder / f"{kind}.html").write_text(f'{EMPTY}{tag} src="{into.relative_to(folder)}"></script>')


def check_list(what, told):
    check(isinstance(told, list) and len(told) == 5, f"{what}: {told}")
    return told


def check_workers(browser, expected):
    told = browser.value("""
      const worker = new Worker('module_worker.js', { type: 'module' });
      return new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
      });""")
    check(check_list("a module worker", told) == expected, f"a module worker recommends {told}, the page {expected}")
    told = browser.value("""
      await navigator.serviceWorker.register('service_worker.js', { type: 'module' });
      const { active } = await navigator.serviceWorker.ready, { port1, port2 } = new MessageChannel();
      active.postMessage('list', [port2]);
      return new Promise((resolve) => { port1.onmessage = ({ data }) => resolve(data); });""")
    check(check_list("a service worker", told) == expected, f"a service worker recommends {told}, the page {expected}")
    told = browser.value("return crossOriginIsolated")
    check(told is False, "the page is isolated, so this shows nothing about pages that are not")


def check_elsewhere(browser, cdn):
    """A page of one origin takes the package from another one: the runtime, texts, and the worker of a device."""
    told = browser.value(
        """
      const { loadRuntime } = await import(args[0] + '/wisp/runtime.js');
      const { Device } = await import(args[0] + '/wisp/device.js');
      const { loadTexts } = await import(args[0] + '/wisp/text.js');
      const bytes = await (await fetch('cafe.wisp')).arrayBuffer();
      const best = (await loadRuntime()).openModel(bytes).recommend(['tea-mint'], { count: 5 });
      const device = await Device.open('elsewhere');
      await device.writeFile('base.wisp', bytes);
      const learned = await device.recommend({ model: 'base.wisp', history: ['tea-mint'], count: 5 });
      const version = [await device.version(), (await loadTexts()).version];
      await device.close();
      await Device.delete('elsewhere');
      return { best: best.map(({ key }) => key), learned: learned.map(({ key }) => key), version };""",
        cdn,
    )
    check_list("a package from another origin", told["best"])
    check(told["best"] == told["learned"], f"a worker from another origin: {told}")
    check(told["version"][0] == told["version"][1] != "", f"versions of modules: {told['version']}")
    return told["best"]


def check_bundles(browser, address, expected):
    for kind in ("esm", "iife"):
        browser.driver.get(f"{address}/{kind}.html")
        there = lambda: browser.value("return window.told !== undefined")
        browser.wait_for(there, f"the list of the {kind} bundle", 30)
        told = browser.value("return window.told")
        check(told == expected, f"the {kind} bundle recommends {told}, the page {expected}")


def check_example(browser, address):
    browser.driver.get(f"{address}/example.html")
    rows = lambda: browser.driver.find_elements(By.CSS_SELECTOR, "#list button")
    browser.wait_for(lambda: len(rows()) == 5, "the example's list", 30)
    rows()[0].click()
    browser.wait_for(lambda: browser.text("state").startswith("1 choices"), "a choice in the example", 30)
    browser.click("learn")
    browser.wait_for(lambda: browser.text("state").startswith("Learned"), "the end of learning in the example", 120)
    browser.check_console()


def check_extension(work, expected):
    """An extension's background is a service worker of its own origin."""
    site = Served(work / "site")
    folder = work / "extension"
    folder.mkdir()
    shutil.copytree(package, folder / "wisp")
    shutil.copy(model, folder / "cafe.wisp")
    manifest = {
        "manifest_version": 3,
        "name": "wisp",
        "version": "1",
        "background": {"service_worker": "background.js", "type": "module"},
        "host_permissions": ["http://localhost/*"],
        "content_security_policy": {"extension_pages": "script-src 'self' 'wasm-unsafe-eval'"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "background.js").write_text(EXTENSION.replace("ADDRESS", site.address))
    flags = (f"--load-extension={folder}", "--disable-features=DisableLoadExtensionCommandLineSwitch")
    browser = Browser(work / "extension.profile", f"{site.address}/index.html", flags=flags)
    try:
        browser.wait_for(lambda: site.told, "the list of an extension", 60)
    finally:
        browser.quit()
    check(site.told[0] == json.dumps(expected, separators=(",", ":")), f"an extension says {site.told[0]}")


def check_types(folder):
    """The types accept what the checks above do, and refuse what the library refuses."""
    if not shutil.which("tsc"):
        print("types: not checked, as there is no tsc (Debian: node-typescript)")
        return
    tsc = "tsc --noEmit --strict --target es2022 --module es2022 --moduleResolution node --lib es2022,dom,dom.iterable"
    (folder / "use.ts").write_text(USES_TYPES)
    told = subprocess.run([*tsc.split(), "use.ts"], cwd=folder, capture_output=True, text=True)
    check(told.returncode == 0, f"types: {told.stdout}")
    for wrong in REFUSED_BY_TYPES:
        (folder / "use.ts").write_text(USES_TYPES + wrong)
        told = subprocess.run([*tsc.split(), "use.ts"], cwd=folder, capture_output=True, text=True)
        check(told.returncode != 0, f"the types accept {wrong}")


def main():
    work = Path(tempfile.mkdtemp(prefix="wisp-shapes."))
    (work / "site").mkdir()
    browser = None
    try:
        lay_out(work / "site")
        check_types(work / "site")
        site, cdn = Served(work / "site"), Served(work / "site", cors=True)
        browser = Browser(work / "profile", f"{site.address}/index.html")
        expected = check_elsewhere(browser, cdn.address)
        check_workers(browser, expected)
        check_bundles(browser, site.address, expected)
        check_example(browser, site.address)
        browser.quit()
        browser = None
        check_extension(work, expected)
        print("where the package runs: passed")
    except WebDriverException as error:
        sys.exit(f"shapes.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
