#!/usr/bin/env python3
"""Takes part in a fleet from a page, in a headless browser.

fleet.py DEMO_FOLDER WISP MODEL
"""

import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from selenium.common.exceptions import WebDriverException

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, check  # noqa: E402  it lies beside the tests
from superlink import SuperLink, record_values  # noqa: E402  as above

demo, wisp, model = sys.argv[1:]
OPEN = """
  const { Device } = await import('./wisp/device.js');
  const sentences = [], device = await Device.open('test-fleet', { onSentence: ({ text }) => sentences.push(text) });
  const fleet = { policy: 'policy.json', model: 'base.wisp', output: 'fleet.wisp' };
  const told = async (promise) => promise.catch((error) => `${error.kind}: ${error.message}`);
"""


def plan_and_policy(folder, address, more=""):
    command = f"fleet plan --devices 100 --rounds 2 --epsilon 3 --out plan.json --policy policy.json {more}"
    subprocess.run(
        [wisp, *command.split(), "--model", model, "--server", f"{address}fleet"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (folder / "plan.json").read_text(), json.loads((folder / "policy.json").read_text())


def check_join(browser, link, policy):
    """Joins and asks with signed calls. After a reload the key is the same, and the node is known."""
    told = browser.value(
        OPEN + """
        await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
        await device.writeFile('policy.json', new TextEncoder().encode(args[0]));
        await device.appendEvents(Array.from({ length: 40 }, (_, i) => (
          { user: 'anna', item: i % 3 ? 'tea-mint' : 'espresso', time: 1000 * i })));
        const first = await device.workInFleet(fleet), second = await device.workInFleet({ ...fleet, seconds: 0.5 });
        const own = await told(device.writeFile('fleet.ledger.reply', new ArrayBuffer(1)));
        await device.close();
        return { first, second, own };""",
        json.dumps(policy),
    )
    check(told["first"]["participations"] == 0 and told["first"]["mostParticipations"] == 1, f"joining: {told}")
    check(15 <= told["second"]["waitSeconds"] <= 45, f"the time until the next question: {told}")
    check("kept by the library" in told["own"], f"a file of the library was written: {told}")
    joins = ["activate-node", "register-node", "activate-node"]
    check(link.calls == [*joins, "pull-messages", "pull-messages"], f"calls: {link.calls}")
    check(len(link.signed) == len({timestamp for timestamp, _ in link.signed}), "a minute was signed twice")
    key = link.key
    browser.driver.refresh()
    browser.wait_ready()
    link.calls.clear()
    browser.value(OPEN + "await device.workInFleet(fleet); await device.close();")
    check(link.calls == ["send-node-heartbeat", "pull-messages"], f"calls after a reload: {link.calls}")
    check(link.key == key and key.startswith(b"-----BEGIN PUBLIC KEY-----\n"), "the key changed, or is no key")


def check_clock(browser, link):
    """A device whose clock is an hour late takes the server's time, and signs once more."""
    link.calls.clear()
    link.clock = 3600
    browser.value(OPEN + "await device.workInFleet(fleet); await device.close();")
    link.clock = 0
    check(link.calls == ["send-node-heartbeat"] * 2 + ["pull-messages"], f"calls of a late device: {link.calls}")


def check_cancelled(browser, link):
    """A call that waits for a server is ended by its signal, and the next one works."""
    stalls = threading.Event()
    link.faults = [stalls]
    told = browser.value(
        OPEN + """
        const stop = new AbortController();
        setTimeout(() => stop.abort(), 500);
        const first = await told(device.workInFleet({ ...fleet, signal: stop.signal }));
        const { participations } = await device.workInFleet(fleet);
        await device.close();
        return { first, participations };"""
    )
    check(not stalls.is_set() and not link.faults, "the server did not stall")
    stalls.set()
    check(told["first"].startswith("Cancelled: ") and told["participations"] == 0, f"a cancelled call: {told}")


def ask_to_train(link, plan):
    """Returns the number of weights that train."""
    random.seed(5)
    num_weights = json.loads(plan)["num_weights"]
    weights = struct.pack(f"<{num_weights}e", *(random.gauss(0, 0.05) for _ in range(num_weights)))
    link.ask({"plan": plan, "task": "train", "round": 0, "weights": weights, "signature": b""})
    link.calls.clear()
    link.replies.clear()
    return num_weights


def check_round(browser, link, plan):
    """Trains in a round. The participation is charged, and its whole reply arrives."""
    num_weights = ask_to_train(link, plan)
    told = browser.value(
        OPEN + """
        const result = await device.workInFleet(fleet);
        const { epsilonStated } = await device.budget({ delta: 1e-5, fleet: true });
        const statement = await device.statement({ delta: 1e-5, fleet: true });
        const alone = await told(device.budget({ delta: 1e-5 }));
        await device.close();
        return { result, epsilonStated, statement, alone, sentences };"""
    )
    result = told["result"]
    check(result["answers"] == 1 and result["participations"] == 1, f"a round: {told}, {link.calls}")
    check(2.9 < told["epsilonStated"] <= 3 and "device" in told["statement"], f"the ledger of the fleet: {told}")
    check(str(told["alone"]).startswith("Io: "), f"learning alone was charged: {told}")
    check(any("the server has the answer to round 0" in sentence for sentence in told["sentences"]), f"{told}")
    check(set(link.replies) == {"ConfigRecord", "RecordDict", "Message"}, f"objects: {list(link.replies)}")
    reply = record_values(link.replies["ConfigRecord"])
    update = reply["update"]
    check(reply["task"] == b"train" and len(update) == num_weights, f"an update of {len(update)} bytes")
    check(any(update), "the events of the device changed nothing")


def check_refusals(browser, link, policy):
    faults = (
        (503, "Io", "with status 503"),
        (307, "InvalidArgument", "refuses to post"),
        (401, "InvalidArgument", "with status 401"),
    )
    for status, kind, sentence in faults:
        link.faults = [status] * 9
        told = browser.value(OPEN + "const t = await told(device.workInFleet(fleet)); await device.close(); return t;")
        check(told.startswith(f"{kind}: ") and sentence in told, f"status {status}: {told}")
    link.faults = []
    told = browser.value(
        OPEN + """
        const answers = [], policy = JSON.parse(args[0]);
        for (const changed of [{ operator_key: '-----BEGIN PUBLIC KEY-----\\nMFkw\\n-----END PUBLIC KEY-----\\n' },
                               { cohort: 0 }, { server: 'http://localhost:1/fleet' }]) {
          await device.writeFile('policy.json', new TextEncoder().encode(JSON.stringify({ ...policy, ...changed })));
          answers.push(await told(device.workInFleet(fleet)));
        }
        await device.writeFile('policy.json', new TextEncoder().encode(args[0]));
        for (const wrong of [{ policy: undefined }, { policy: 'none.json' }, { seconds: -1 }, { seconds: '1' },
                             { unit: 'session' }, { anchor: 64 }, { recordsLedgerPath: 'x' },
                             { output: 'fleet.ledger' }])
          answers.push(await told(device.workInFleet({ ...fleet, ...wrong })));
        await device.close();
        return answers;""",
        json.dumps(policy),
    )
    expected = (
        ("Unsupported", "operator's key"),
        ("InvalidData", '"cohort" is 0'),
        ("Io", "cannot be reached"),
        ("InvalidArgument", "policy is missing"),
        ("Io", "none.json: is not there"),
        ("InvalidArgument", "seconds is -1"),
        ("InvalidArgument", "seconds is a string"),
        ("InvalidArgument", "session gap is 0"),
        ("InvalidArgument", "no option 'anchor'"),
        ("InvalidArgument", "no option 'recordsLedgerPath'"),
        ("InvalidArgument", "kept by the library"),
    )
    check(len(told) == len(expected), f"refusals: {told}")
    for answer, (kind, sentence) in zip(told, expected):
        check(answer.startswith(f"{kind}: ") and sentence in answer, f"expected {kind} with '{sentence}', got {answer}")


def check_records(browser, link, plan, policy):
    """A device that was deleted comes back with another key. Its policy protects records, whose run is charged too."""
    browser.value("const { Device } = await import('./wisp/device.js'); await Device.delete('test-fleet');")
    before = link.key
    link.forget()
    ask_to_train(link, plan)
    told = browser.value(
        OPEN + """
        await device.writeFile('base.wisp', await (await fetch('cafe.wisp')).arrayBuffer());
        await device.writeFile('policy.json', new TextEncoder().encode(args[0]));
        await device.appendEvents(Array.from({ length: 400 }, (_, i) => (
          { user: `guest-${i % 40}`, item: i % 3 ? 'tea-mint' : 'espresso', time: 1000 * i })));
        const result = await device.workInFleet(fleet);
        const spent = await device.budget({ delta: 1e-3 });
        await device.close();
        await Device.delete('test-fleet');
        return { result, spent, sentences };""",
        json.dumps(policy),
    )
    check(link.key != before, "the key of a deleted device came back")
    check(told["result"]["answers"] == 1 and told["result"]["participations"] == 1, f"a round: {told}")
    check(0 < told["spent"]["epsilonStated"] <= 4, f"the ledger of records: {told}")
    check(any(record_values(link.replies["ConfigRecord"])["update"]), "an update of records is zeros")


def main():
    work = Path(tempfile.mkdtemp(prefix="wisp-fleet."))
    browser = None
    try:
        with SuperLink(demo) as link:
            plan, policy = plan_and_policy(work, link.address)
            browser = Browser(work / "profile", link.address)
            browser.wait_ready()
            check_join(browser, link, policy)
            check_clock(browser, link)
            check_cancelled(browser, link)
            check_round(browser, link, plan)
            check_refusals(browser, link, policy)
            protects = "--method local --local-steps 5 --local-learning-rate 0.5 --num-records-public 40 --batch 10"
            protects += " --records-epsilon 4 --records-delta 1e-3"
            check_records(browser, link, *plan_and_policy(work, link.address, protects))
            browser.quit()
            browser = None
        print("a fleet in the page: passed")
    except WebDriverException as error:
        sys.exit(f"fleet.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
