#!/usr/bin/env python3
"""Uses the worker of wisp/device.js in a headless browser: errors, runs, private draws, adapters, catalogues.

device.py DEMO_FOLDER WISP MODEL
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

demo, wisp, model = (str(Path(given).resolve()) for given in sys.argv[1:])


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
      await expect('InvalidArgument', 'worker is a number; it must be a function', Device.open('other', { worker: 5 }));
      const drawn = { model: 'base.wisp', history: [] };
      await expect('InvalidArgument', 'publicDatasets is a string; it must be a list of strings',
        device.recommendPrivately({ ...drawn, publicDatasets: 'x' }));
      await expect('InvalidArgument', 'decoding is "mixd"', device.recommendPrivately({ ...drawn, decoding: 'mixd' }));
      await expect('InvalidArgument', "no option 'ledgerPath'",
        device.recommendPrivately({ ...drawn, ledgerPath: 'x' }));
      const changed = { model: 'base.wisp', output: 'next.wisp' };
      await expect('InvalidArgument', 'keys is a string', device.retireItems({ ...changed, keys: 'tea-mint' }));
      await expect('InvalidArgument', 'item 0: key is undefined', device.addItems({ ...changed, items: [{}] }));
      for (const method of ['history', 'recommend', 'recommendBatch', 'recommendPrivately', 'budget', 'statement',
                            'rebase', 'rebaseAdapter', 'addItems', 'retireItems']) {
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
      for (const own of ['adapterPath', 'checkpointPath', 'numThreads'])
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
          onProgress: ({ step, numSteps }) => {
            if (calls++ === 0 && (step !== 0 || numSteps !== 0)) throw new Error('nothing was told at once');
            if (step > 0) throw new RangeError('not now');
          }
        });
      } catch (error) { thrown = `${error.name}: ${error.message}`; }
      const { epsilonStated } = await device.budget({ delta: 1e-5 }), files = await device.listFiles();
      // Behind close() too, which waits for the call that runs.
      const last = device.personalise({
        model: 'base.wisp', output: 'last.wisp', epsilon: 1, delta: 1e-5, numRecordsPublic: 100, unit: 'user',
        epochs: 900,
        onProgress: ({ step }) => { if (step > 0) throw new RangeError('not now'); }
      }).then(() => 'done', (error) => error.message);
      await device.close();
      const behind = await last;
      await Device.delete('test-throws');
      return { calls, thrown, behind, charged: epsilonStated > 0, files: files.join() };""")
    check(told["thrown"] == "RangeError: not now" and told["calls"] == 2 and told["charged"], f"onProgress: {told}")
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


def check_no_storage(browser):
    answer = browser.run(
        "const { Store } = await import('./wisp/store.js');"
        "StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('refused', 'SecurityError'));"
        "await Store.open('x');"
    )
    check("gives this page no storage" in answer.get("error", {}).get("message", ""), f"without storage: {answer}")


def check_batches(browser):
    """Many histories, of users or given, by indices or by keys, get the lists that each alone gets."""
    browser.value("""
      const { Device } = await import('./wisp/device.js');
      const device = await Device.open('test-batches'), model = 'base.wisp';
      await device.writeFile(model, await (await fetch('cafe.wisp')).arrayBuffer());
      await device.appendEvents([{ user: 'anna', item: 'tea-mint', time: 1 }]);
      const told = async (what, lists, alone) => {
        if (JSON.stringify(lists) !== JSON.stringify(alone)) throw new Error(`${what}: ${JSON.stringify(lists)}`);
      };
      const keys = [['tea-mint'], [], ['bagel-lentil', 'tea-mint']];
      const alone = [];
      for (const history of keys) alone.push(await device.recommend({ model, history, count: 5 }));
      await told('histories', await device.recommendBatch({ model, histories: keys, count: 5 }), alone);
      const users = await device.recommendBatch({ model, users: ['anna', 'nobody'], count: 5 });
      await told('users', users, alone.slice(0, 2));
      await device.close();
      await Device.delete('test-batches');""")


def check_draws(browser):
    """Draws from a model that learned without a guarantee are charged; from a public base they are free."""
    work = Path(tempfile.mkdtemp(prefix="wisp-draws."))
    synth = "synth --out log.db --population device --users 100 --seed 3"
    subprocess.run([wisp, *synth.split()], cwd=work, check=True, capture_output=True)
    (work / "recipe.json").write_text(
        '{"name": "secret", "training": {"method": "ordinary", "epochs": 1, "expected_batch": 32, '
        '"num_records_public": 100, "optimizer": {"kind": "adam", "learning_rate": 0.001}}}'
    )
    train = f"train --recipe recipe.json --model {model} --data log.db --dataset events --threads 1 --out secret.wisp"
    subprocess.run([wisp, *train.split()], cwd=work, check=True, capture_output=True)
    secret = base64.b64encode((work / "secret.wisp").read_bytes()).decode()
    shutil.rmtree(work)
    told = browser.value(
        """
      const { Device } = await import('./wisp/device.js');
      const device = await Device.open('test-draws'), delta = 1e-5;
      await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
      await device.writeFile('secret.wisp', Uint8Array.from(atob(args[0]), (byte) => byte.charCodeAt(0)));
      const query = { model: 'secret.wisp', base: 'base.wisp', history: ['tea-mint'], count: 3, unit: 'user', delta,
                      numRecordsPublic: 100, epsilon: 4, plannedSamples: 5,
                      publicDatasets: ['synthetic public cafe guests'] };
      const refused = async (options) => device.recommendPrivately(options).then(
        (value) => JSON.stringify(value), (error) => `${error.kind}: ${error.message}`);
      const ofBase = { model: 'base.wisp', history: ['tea-mint'], count: 3, publicDatasets: query.publicDatasets };
      const free = await device.recommendPrivately(ofBase).catch((error) => error.message);
      const files = (await device.listFiles()).join();
      const unnamed = await refused({ ...query, epsilom: 1 });
      const first = await device.recommendPrivately(query).catch((error) => error.message);
      const { epsilonStated, epsilonLimit } = await device.budget({ delta }).catch(() => ({}));
      const second = await refused(query), third = await refused(query);
      await device.close();
      await Device.delete('test-draws');
      return { free, files, unnamed, first, epsilonStated, epsilonLimit, second, third };""",
        secret,
    )
    check(isinstance(told["first"], dict) and isinstance(told["free"], dict), f"a draw was refused: {told}")
    check(told["first"]["free"] is False and len(told["first"]["items"]) == 3, f"the first draw: {told}")
    check(set(told["first"]["items"][0]) == {"item", "key", "name"}, f"a draw tells more than items: {told['first']}")
    check(0 < told["epsilonStated"] <= told["epsilonLimit"] == 4, f"what draws cost: {told}")
    check(told["third"].startswith("PrivacyRefused: "), f"draws beyond the limit: {told['second']}, {told['third']}")
    check("no option 'epsilom'" in told["unnamed"], f"a wrong option: {told['unnamed']}")
    check(told["free"]["free"] is True and "privacy.ledger" not in told["files"], f"draws from the base: {told}")


def check_adapters(browser):
    """An adapter trains beside the base, serves with it, and moves to a base with one more item."""
    told = browser.value("""
      const { Device } = await import('./wisp/device.js');
      const device = await Device.open('test-adapters'), base = 'base.wisp', user = 'guest-1';
      await device.writeFile(base, await (await fetch('cafe.wisp')).arrayBuffer());
      await device.appendEvents(Array.from({ length: 600 }, (_, i) => (
        { user: `guest-${i % 60}`, item: i % 2 ? 'tea-mint' : 'bagel-lentil', time: i })));
      await device.personalise({ model: base, output: 'a.adapter', adapterRank: 2, epsilon: 4, delta: 1e-3,
                                 numRecordsPublic: 60, unit: 'user', epochs: 2 });
      const sizes = [base, 'a.adapter'].map(async (name) => (await device.readFile(name)).length);
      await device.addItems({ model: base, items: [{ key: 'tea-nettle', name: 'Nettle Tea', like: 'tea-mint' }],
                              output: 'next.wisp' });
      await device.rebaseAdapter({ from: base, adapter: 'a.adapter', to: 'next.wisp', output: 'next.adapter' });
      const lists = [];
      for (const query of [{ model: base }, { model: base, adapter: 'a.adapter' },
                           { model: 'next.wisp', adapter: 'next.adapter' }])
        lists.push((await device.recommend({ ...query, user, count: 5 })).map(({ key, score }) => [key, score]));
      const wrong = await device.recommend({ model: base, adapter: base, user }).catch((error) => error.kind);
      await device.retireItems({ model: 'next.wisp', keys: [lists[0][0][0]], output: 'fewer.wisp' });
      const fewer = (await device.recommend({ model: 'fewer.wisp', user, count: 5 })).map(({ key }) => key);
      const unknown = await device.retireItems({ model: base, keys: ['nothing'], output: 'x.wisp' })
        .catch((error) => `${error.kind}: ${error.message}`);
      const { numItems, items } = await device.describeModel('next.wisp');
      await device.close();
      await Device.delete('test-adapters');
      return { sizes: await Promise.all(sizes), lists, wrong, fewer, unknown, numItems, last: items.at(-1) };""")
    check(told["sizes"][1] * 4 < told["sizes"][0], f"an adapter is not smaller than its base: {told['sizes']}")
    plain, adapted, moved = told["lists"]
    check(plain != adapted, f"the adapter changes nothing: {plain}")
    check([key for key, _ in adapted] == [key for key, _ in moved], f"the adapter on the next base: {adapted}, {moved}")
    check(told["wrong"] == "InvalidData" or told["wrong"] == "InvalidArgument", f"a base as adapter: {told['wrong']}")
    check(plain[0][0] not in told["fewer"], f"a retired item is recommended: {told['fewer']}")
    check(told["unknown"].startswith("InvalidArgument: "), f"retiring what is not there: {told['unknown']}")
    check(told["last"]["key"] == "tea-nettle" and told["numItems"] == 481, f"an added item: {told['last']}")


def main():
    work = tempfile.mkdtemp(prefix="wisp-device.")
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", demo, "0"], stdout=subprocess.PIPE, text=True)
    browser = None
    try:
        browser = Browser(f"{work}/profile", server.stdout.readline().strip())
        browser.wait_ready()
        check_device(browser)
        check_progress_that_throws(browser)
        check_deployment(browser)
        check_batches(browser)
        check_draws(browser)
        check_adapters(browser)
        check_full(browser)
        browser.check_console()
        check_no_storage(browser)
        print("the worker of a device: passed")
    except WebDriverException as error:
        sys.exit(f"device.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
