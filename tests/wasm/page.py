#!/usr/bin/env python3
"""Uses the demo in a headless browser.

page.py DEMO_FOLDER WISP MODEL
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, check  # noqa: E402  it lies beside the tests

demo, wisp, model = sys.argv[1:]
HISTORIES = ([], [0], [3, 1, 4], list(range(60)), [479, 479, 0])


def native(keys):
    """Returns the native program's recommendations after these items' keys."""
    after = ["--history", ",".join(keys)] if keys else ["--cold-start"]
    answer = subprocess.run(
        [wisp, "recommend", "--model", model, "--count", "8", "--json", *after], capture_output=True, text=True
    )
    check(answer.returncode == 0, f"wisp recommend {after}: {answer.stderr}")
    return json.loads(answer.stdout)


def check_same_as_native(browser):
    """Compares items and scores up to the order of sums: vectors here have 128 bits and no fused multiply-add."""
    for vectors, history in [(vectors, history) for vectors in ("auto", "off") for history in HISTORIES]:
        here = browser.value(
            "const { loadRuntime } = await import('./wisp/runtime.js');"
            "const w = await loadRuntime({ vectors: args[1] });"
            "const m = w.openModel(await (await fetch('cafe.wisp')).arrayBuffer());"
            "const best = m.recommend(args[0], { count: 8 }), keys = args[0].map((item) => m.itemKey(item));"
            "m.close(); return { best, keys };",
            history,
            vectors,
        )
        there = native(here["keys"])
        check(
            len(here["best"]) == len(there) == 8,
            f"{len(here['best'])} items here, {len(there)} natively, after {history}",
        )
        for a, b in zip(here["best"], there):
            check(
                abs(a["score"] - b["score"]) <= 1e-4 * max(1, abs(b["score"])),
                f"scores differ after {history}, vectors {vectors}: {a} and {b}",
            )
    loaded = browser.value("return performance.getEntriesByType('resource').map((e) => e.name.split('/').pop())")
    for name in ("wisp-runtime.wasm", "wisp-runtime-plain.wasm"):
        check(name in loaded, f"{name} was not loaded")


REFUSED = (
    ("InvalidArgument", "whole number", "return m.recommend([0], { count: -1 })"),
    ("InvalidArgument", "history", "return m.recommend([1e9], {})"),
    ("InvalidArgument", "has no option 'cuont'", "return m.recommend([0], { cuont: 3 })"),
    ("InvalidArgument", "allowSeen is a number; it must be true or false", "return m.recommend([0], { allowSeen: 1 })"),
    ("InvalidArgument", "item is", "return m.itemKey('tea')"),
    ("InvalidArgument", "items are numbers", "return m.recommend(['tea'], {})"),
    ("InvalidArgument", "must be a list", "return m.recommend(undefined, {})"),
    ("InvalidArgument", "was closed", "m.close(); return m.recommend([0])"),
    ("InvalidData", "", "return w.openModel(new ArrayBuffer(10), { name: 'short.wisp' })"),
    ("InvalidArgument", "ArrayBuffer", "return w.openModel('cafe.wisp')"),
    ("InvalidArgument", "vectors is 'on'", "return await loadRuntime({ vectors: 'on' })"),
    ("InvalidArgument", "has no option 'colour'", "return w.openModel(bytes, { colour: 1 })"),
)


def check_refusals(browser):
    for kind, sentence, action in REFUSED:
        answer = browser.run(
            "const { loadRuntime } = await import('./wisp/runtime.js'); const w = await loadRuntime();"
            "const bytes = await (await fetch('cafe.wisp')).arrayBuffer(); const m = w.openModel(bytes);" + action
        )
        error = answer.get("error") or {}
        check(
            error.get("kind") == kind and sentence in error.get("message", ""),
            f"{action}: expected {kind} with '{sentence}', got {answer}",
        )


def check_sets_and_crafted_models(browser):
    """Sets are lists too. A model whose sizes do not fit 32 bits is refused.

    2^25 more items make a table of the same size, modulo 2^32.
    """
    browser.value("""
      const { loadRuntime, WispError } = await import('./wisp/runtime.js');
      const w = await loadRuntime(), bytes = await (await fetch('cafe.wisp')).arrayBuffer(), m = w.openModel(bytes);
      const best = m.recommend([0]).map(({ item }) => item);
      const others = m.recommend(new Set([0]), { excluded: new Set(best) });
      if (others.some(({ item }) => best.includes(item))) throw new Error('an excluded item came');
      // The shipped model says that items of the history may come; a call may say otherwise.
      for (const [allowSeen, comes] of [[undefined, true], [true, true], [false, false]]) {
        const all = m.recommend([7], { count: 480, allowSeen }).map(({ item }) => item);
        if (!m.info.allowSeen || all.includes(7) !== comes) throw new Error(`allowSeen ${allowSeen}: ${all.length}`);
      }
      const view = new DataView(bytes);
      let refused = 0;
      for (let at = 0; at + 4 <= 8192; at += 4) {
        if (view.getUint32(at, true) !== m.numItems) continue;
        view.setUint32(at, m.numItems + 2 ** 25, true);
        try { w.openModel(bytes).close(); } catch (error) {
          if (!(error instanceof WispError) || error.kind === 'Internal') throw error;
          ++refused;
        }
        view.setUint32(at, m.numItems, true);
      }
      if (refused === 0) throw new Error('no crafted model was refused');
      m.close();""")


def check_device(browser):
    """Tests a device of its own: errors, and that written files are there."""
    browser.value("""
      const { Device, WispError } = await import('./wisp/device.js');
      const device = await Device.open('test-device');
      const expect = async (kind, part, promise) => {
        try { await promise; } catch (error) {
          if (error instanceof WispError && error.kind === kind && error.message.includes(part)) return;
          throw new Error(`expected ${kind} with '${part}', got ${error.kind}: ${error.message}`);
        }
        throw new Error(`expected ${kind} with '${part}', got no error`);
      };
      await expect('Io', 'is not there', device.readFile('none.wisp'));
      await expect('InvalidArgument', 'no name of a file', device.writeFile('a/b', new ArrayBuffer(1)));
      for (const kept of ['privacy.ledger', 'privacy.ledger-journal', 'events.db-wal']) {
        await expect('InvalidArgument', 'kept by the library', device.writeFile(kept, new ArrayBuffer(1)));
      }
      await expect('InvalidArgument', 'kept by the library', device.removeFile('events.db'));
      await expect('InvalidArgument', 'no name of a folder', Device.open('../x'));
      await device.writeFile('broken.wisp', new Uint8Array(100));
      await expect('InvalidData', 'broken.wisp', device.recommend({ model: 'broken.wisp', history: [] }));
      const bytes = await (await fetch('cafe.wisp')).arrayBuffer();
      await device.writeFile('base.wisp.new', bytes);
      await device.writeFile('base.wisp', bytes);
      if (!(await device.listFiles()).includes('base.wisp.new')) throw new Error('writing one file took another');
      await device.removeFile('base.wisp.new');
      const kept = await device.readFile('base.wisp');
      if (kept.length !== bytes.byteLength) throw new Error('a file changed its length');
      await device.appendEvents([{ user: 'anna', item: 'tea-mint', time: 1795000000000 }]);
      await expect('InvalidArgument', 'user', 
        device.appendEvents([{ user: 'anna', item: 'tea-mint', time: 1 }, { user: '', item: 'x', time: 2 }]));
      for (const [part, event] of [['user is undefined', { item: 'tea-mint', time: 1 }],
                                   ['item is a number', { user: 'anna', item: 12, time: 1 }]]) {
        await expect('InvalidArgument', `event 0: ${part}; it must be a string`, device.appendEvents([event]));
      }
      await expect('InvalidArgument', "open has no option 'onSentense'", Device.open('other', { onSentense() {} }));
      for (const method of ['history', 'recommend', 'budget', 'statement', 'rebase']) {
        await expect('InvalidArgument', `${method} takes an object of options, not undefined`, device[method]());
        await expect('InvalidArgument', `${method} has no option 'colour'`, device[method]({ colour: 1 }));
      }
      for (const both of [{}, { user: 'anna', history: [0] }]) {
        await expect('InvalidArgument', 'either user or history', device.recommend({ model: 'base.wisp', ...both }));
      }
      const deployment = { model: 'base.wisp', epsilon: 1, delta: 1e-5, numRecordsPublic: 100, runs: 3, unit: 'user' };
      for (const name of ['epsilon', 'delta', 'numRecordsPublic', 'runs', 'unit']) {
        await expect('InvalidArgument', `${name} is missing`, device.plan({ ...deployment, [name]: undefined }));
      }
      const users = device.plan({ ...deployment, unit: 'users' });
      await expect('InvalidArgument', `unit is "users"; allowed are the names`, users);
      const anna = { user: 'anna', item: 'tea-mint' };
      for (const event of [null, anna, { ...anna, time: 1, price: 2 }]) {
        await expect('InvalidArgument', 'event 0', device.appendEvents([event]));
      }
      for (const limit of [-1, 2 ** 30, Infinity, 0.5]) {
        await expect('InvalidArgument', 'limit is', device.history({ model: 'base.wisp', user: 'anna', limit }));
      }
      await expect('InvalidArgument', 'before', device.pruneLog({ unit: 'day', before: 'yesterday' }));
      const {events, unreadable} = await device.countEvents();
      if (events !== 1 || unreadable !== 0) throw new Error('a refused list of events left some behind');
      const privacy = { epsilon: 1, delta: 1e-5, numRecordsPublic: 100, unit: 'user' };
      const run = { model: 'base.wisp', output: 'out.wisp', ...privacy };
      // Addresses, which C would follow, are no options.
      for (const address of ['anchor', 'device', 'progress', 'runTasks', 'userData']) {
        await expect('InvalidArgument', `no option '${address}'`, device.personalise({ ...run, [address]: 64 }));
      }
      for (const own of ['adapterRank', 'adapterPath', 'checkpointPath', 'numThreads'])
        await expect('InvalidArgument', `no option '${own}' here`, device.personalise({ ...run, [own]: 1 }));
      await expect('InvalidArgument', 'kept by the library', device.personalise({ ...run, output: 'privacy.ledger' }));
      await expect('InvalidArgument', 'kept by the library',
        device.rebase({ from: 'base.wisp', to: 'base.wisp', output: 'privacy.ledger' }));
      await expect('InvalidArgument', "no option 'epsilon'", device.planChange({ model: 'base.wisp', epsilon: 1 }));
      await expect('InvalidArgument', 'delta is a bigint', device.budget({ delta: 1n }));
      await expect('InvalidArgument', 'user is a number', device.eraseUser(5));
      await expect('InvalidArgument', 'unit is "users"', device.personalise({ ...run, unit: 'users' }));
      await expect('InvalidArgument', 'epsilon', device.personalise({ ...run, epsilon: -1 }));
      await expect('InvalidArgument', "no option 'epsilom'", device.personalise({ ...run, epsilom: 1 }));
      // Names that every object has are no options either, and a truth is no number.
      await expect('InvalidArgument', 'it has model, output, ', device.personalise({ ...run, modelpath: 'base.wisp' }));
      await expect('InvalidArgument', 'takes an object of options', device.personalise());
      await expect('InvalidArgument', 'user is null', device.eraseUser(null));
      await expect('InvalidArgument', "no option 'toString'", device.personalise({ ...run, toString: 1 }));
      await expect('InvalidArgument', 'epsilon is a boolean', device.personalise({ ...run, epsilon: true }));
      await expect('InvalidArgument', 'must not end in', device.personalise({ ...run, output: 'out.checkpoint' }));
      await expect('InvalidArgument', 'must be a function', device.personalise({ ...run, onProgress: 5 }));
      await expect('InvalidArgument', 'must be an AbortSignal', device.personalise({ ...run, signal: 5 }));
      await expect('Io', '', device.statement({ delta: 1e-5 }));
      // So many texts that the library's memory grows while they are written into it.
      const many = Array.from({ length: 120000 }, (_, i) => (
        { user: 'many', item: `item-${i}-${'x'.repeat(i % 40)}`, time: i }));
      await device.appendEvents(many);
      if ((await device.eraseUser('many')) !== many.length) throw new Error('events were lost while memory grew');
      // The second call is dropped, the first continues.
      const stop = new AbortController();
      const first = device.evaluate('base.wisp').catch(() => {}), second = device.plan({ ...run, signal: stop.signal });
      stop.abort();
      await expect('Cancelled', 'before it began', second);
      await first;
      const closing = device.close();
      await expect('InvalidArgument', 'was closed', device.listFiles());
      await closing;
      await expect('InvalidArgument', 'was closed', device.cancel());
      const again = await Device.open('test-device');
      const files = (await again.listFiles()).join();
      if (files !== 'base.wisp,broken.wisp,events.db') throw new Error(`after opening again: ${files}`);
      await again.close();
      await Device.delete('test-device');""")


def check_progress_that_throws(browser):
    """An error in onProgress ends the run: the promise is refused with it, and charges stay."""
    told = browser.value("""
      const { Device } = await import('./wisp/device.js');
      const device = await Device.open('test-throws');
      await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
      const guests = Array.from({ length: 600 }, (_, i) => (
        { user: `guest-${i % 60}`, item: i % 2 ? 'tea-mint' : 'espresso', time: i }));
      await device.appendEvents(guests);
      let calls = 0, thrown = 'nothing';
      // So many epochs that a slow page ends the run before its last step.
      try {
        await device.personalise({
          model: 'base.wisp', output: 'out.wisp', epsilon: 1, delta: 1e-5, numRecordsPublic: 100, unit: 'user',
          epochs: 900,
          onProgress: () => { ++calls; throw new RangeError('not now'); }
        });
      } catch (error) { thrown = `${error.name}: ${error.message}`; }
      const { epsilonStated } = await device.budget({ delta: 1e-5 }), files = await device.listFiles();
      // Behind close() too, which waits for the call that runs.
      const last = device.personalise({
        model: 'base.wisp', output: 'last.wisp', epsilon: 1, delta: 1e-5, numRecordsPublic: 100, unit: 'user',
        epochs: 900,
        onProgress: () => { throw new RangeError('not now'); }
      }).then(() => 'done', (error) => error.message);
      await device.close();
      const behind = await last;
      await Device.delete('test-throws');
      return { calls, thrown, behind, charged: epsilonStated > 0, files: files.join() };""")
    check(told["thrown"] == "RangeError: not now" and told["calls"] == 1 and told["charged"], f"onProgress: {told}")
    check(told["behind"] == "not now", f"onProgress behind close(): {told}")
    check("out.wisp," not in told["files"], f"a run that was ended by onProgress made its output: {told}")


def check_deployment(browser):
    """A plan is made once and found later, another one is refused, and one of its sessions serves a model."""
    told = browser.value("""
      const { Device } = await import('./wisp/device.js');
      const device = await Device.open('test-deployment');
      await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
      await device.appendEvents(Array.from({ length: 600 }, (_, i) => (
        { user: `guest-${i % 60}`, item: i % 2 ? 'tea-mint' : 'espresso', time: i })));
      const deployment = { model: 'base.wisp', output: 'mine.wisp', epsilon: 4, delta: 1e-3, numRecordsPublic: 60,
                     runs: 3, unit: 'user', stepsPerRun: 2 };
      const plans = [];
      for (let i = 0; i < 2; ++i) plans.push((await device.plan(deployment)).wasThere);
      const refused = await device.plan({ ...deployment, runs: 2 }).catch((error) => `${error.kind}: ${error.message}`);
      const run = await device.runPlanned({ model: 'base.wisp', output: 'mine.wisp' });
      const list = await device.recommend({ model: 'mine.wisp', user: 'guest-1', count: 5 });
      plans.push((await device.plan(deployment)).wasThere);
      await device.close();
      await Device.delete('test-deployment');
      return { plans, refused, steps: run.steps, left: run.runsLeft, list: list.length };""")
    check(told["plans"] == [0, 1, 1], f"the plan of a deployment: {told}")
    check(told["refused"].startswith("PrivacyRefused: "), f"another plan: {told}")
    check("the number of runs is 3, asked for is 2" in told["refused"], f"another plan: {told}")
    check((told["steps"], told["left"], told["list"]) == (2, 2, 5), f"a run: {told}")


def check_full(browser):
    """If the browser has no space, work that needs none is done, and other work fails with a sentence."""
    origin = {"origin": browser.address.rstrip("/")}
    browser.value("""
      const { Device } = await import('./wisp/device.js');
      const device = window.fullDevice = await Device.open('test-full');
      await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
      await device.appendEvents([{ user: 'anna', item: 'tea-mint', time: 1 }]);
      await device.writeFile('spare.bin', new ArrayBuffer(1 << 20));""")
    used = browser.value("return (await navigator.storage.estimate()).usage;")
    browser.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {**origin, "quotaSize": used})
    told = browser.value("""
      const device = window.fullDevice, told = [];
      const call = async (name, promise) => {
        try { await promise; told.push(name); } catch (error) { told.push(`${name}: ${error.kind}, ${error.message}`); }
      };
      await call('list', device.listFiles());
      await call('recommend', device.recommend({ model: 'base.wisp', user: 'anna' }));
      await call('write', device.writeFile('more.bin', new ArrayBuffer(1 << 20)));
      await call('remove', device.removeFile('spare.bin'));
      await device.close();
      const { Device } = await import('./wisp/device.js');
      const again = await Device.open('test-full');
      await call('erase', again.eraseUser('anna'));
      await again.close();
      return told;""")
    browser.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", origin)
    write = "write: Io, more.bin: cannot be written: the browser has no room for it"
    check(told == ["list", "recommend", write, "remove", "erase"], f"a full storage: {told}")
    browser.value("const { Device } = await import('./wisp/device.js'); await Device.delete('test-full');")


def check_busy(browser):
    """A second page finds the folder in use, and says so."""
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.driver.get(browser.address)
    browser.wait_for(lambda: "another page" in browser.text("state"), "the sentence of a second page")
    browser.driver.close()
    browser.driver.switch_to.window(first)
    browser.driver.get_log("browser")  # that of the second page


def check_no_storage(browser):
    answer = browser.run(
        "const { Store } = await import('./wisp/store.js');"
        "StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('refused', 'SecurityError'));"
        "await Store.open('x');"
    )
    check("gives this page no storage" in answer.get("error", {}).get("message", ""), f"without storage: {answer}")


def epsilon_of(browser):
    return float(browser.driver.find_element(By.ID, "epsilon").get_attribute("value"))


def main():
    work = tempfile.mkdtemp(prefix="wisp-page.")
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", demo, "0"], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    browser = None
    try:
        browser = Browser(f"{work}/profile", address)
        browser.wait_ready()
        browser.picture("first")
        check_same_as_native(browser)
        check_refusals(browser)
        check_sets_and_crafted_models(browser)
        check_device(browser)
        check_progress_that_throws(browser)
        check_deployment(browser)
        check_full(browser)
        check_busy(browser)
        browser.check_console()
        # With the keyboard alone: goes to the first of the list, and orders it.
        button = browser.driver.find_element(By.CSS_SELECTOR, "#for-you button")
        first = button.text
        button.send_keys(Keys.ENTER)
        browser.wait_for(lambda: first in browser.text("ordered"), "the order")
        browser.click("guests")
        browser.wait_for(lambda: "guests have been here" in browser.text("state"), "the guests")
        # Stopping ends the worker; a new one continues with the store.
        browser.click("personalise")
        browser.wait_for(lambda: browser.text("state").startswith("Step"), "the first step", 300)
        browser.click("stop")
        browser.wait_for(lambda: browser.text("state").startswith("cancelled"), "the end of what was stopped", 60)
        browser.click("personalise")
        browser.wait_for(lambda: browser.text("state").startswith("Step"), "a step after the stop", 300)
        shown = browser.text("state")
        browser.kill()

        browser = Browser(f"{work}/profile", address)
        browser.wait_ready()
        check(first in browser.text("ordered"), "what was ordered before the browser was killed is gone")
        spent = epsilon_of(browser)
        check(spent > 0, f"nothing is charged after a browser was killed at '{shown}'")
        browser.click("personalise")
        browser.wait_for(
            lambda: browser.text("state").startswith("Learned")
            or browser.driver.find_elements(By.CSS_SELECTOR, "#state.failed"),
            "the end",
            600,
        )
        check(browser.text("state").startswith("Learned"), f"learning failed: {browser.text('state')}")
        check(epsilon_of(browser) >= spent, f"epsilon went from {spent} to {epsilon_of(browser)}")
        browser.wait_for(
            lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, "#quality tbody tr")) == 2, "a second quality"
        )
        check(
            "epsilon" in browser.driver.find_element(By.ID, "statement").get_attribute("textContent"),
            "the statement names no epsilon",
        )
        browser.check_console()
        browser.picture("learned")
        times = browser.value("return performance.getEntriesByName('recommend').map((e) => e.duration)")
        first_list = browser.value("return performance.getEntriesByName('first-list')[0].startTime")
        print(f"first list {first_list:.0f} ms after the page began; one more click {times[-1]:.1f} ms")
        print("quality:", browser.text("quality").replace("\n", " | "))
        check_no_storage(browser)
        browser.quit()
        for width, dark in ((360, False), (360, True), (1200, True)):
            browser = Browser(f"{work}/profile", address, width, dark)
            browser.wait_ready()
            check(
                browser.value("return document.documentElement.scrollWidth <= innerWidth"),
                f"the page is wider than {width} px",
            )
            browser.picture(f"{width}-{'dark' if dark else 'light'}")
            browser.check_console()
            browser.quit()
        browser = None
        print("the page: passed")
    except WebDriverException as error:
        sys.exit(f"page.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
