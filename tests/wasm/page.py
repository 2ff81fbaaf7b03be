#!/usr/bin/env python3
"""Uses the demo in a headless browser.

page.py DEMO_FOLDER WISP MODEL
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, WebDriverException
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
    ("InvalidArgument", "items are numbers", "return m.recommend([0.5], {})"),
    ("InvalidArgument", 'history[1] is "tea", which is the key of no item', "return m.recommend([0, 'tea'])"),
    ("InvalidArgument", 'excluded[0] is "tea"', "return m.recommend([0], { excluded: ['tea'] })"),
    ("InvalidArgument", "histories[1][0] is 1.5", "return m.recommendBatch([[1], [1.5]])"),
    ("InvalidArgument", "must be a list of histories", "return m.recommendBatch('tea')"),
    ("Io", "cannot be loaded", "return await loadRuntime({ wasm: 'nowhere.wasm' })"),
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


def check_keys_and_json(browser):
    """Keys are histories as indices are, many histories get the lists of each alone, and the model's info is JSON."""
    told = browser.value("""
      const { loadRuntime } = await import('./wisp/runtime.js');
      const w = await loadRuntime(), m = w.openModel(await (await fetch('cafe.wisp')).arrayBuffer());
      const keys = ['tea-mint', 'bagel-lentil'], indices = keys.map((key) => m.findItem(key));
      const told = { info: JSON.parse(JSON.stringify(m.info)), alone: [indices, [], [7]].map((h) => m.recommend(h)) };
      Object.assign(told, { keys: m.recommend(keys), many: m.recommendBatch(new Set([keys, [], [7]])) });
      told.candidates = m.recommend([], { candidates: keys, excluded: ['tea-mint'] }).map(({ key }) => key);
      m.close();
      return told;""")
    check(told["keys"] == told["alone"][0], f"keys give another list than indices: {told['keys'][:2]}")
    check(told["many"] == told["alone"], f"many histories: {told['many']}")
    check(told["candidates"] == ["bagel-lentil"], f"keys as candidates: {told['candidates']}")
    stated = subprocess.run([wisp, "inspect", "--model", model, "--json"], capture_output=True, text=True)
    check(told["info"]["contentHash"] in stated.stdout, f"the hash {told['info']} is not the program's: {stated}")


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


def check_busy(browser):
    """A second page finds the folder in use, and says so."""
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.driver.get(browser.address)
    browser.wait_for(lambda: "another page" in browser.text("state"), "the sentence of a second page")
    browser.driver.close()
    browser.driver.switch_to.window(first)
    browser.driver.get_log("browser")  # that of the second page


def focused(browser):
    return browser.value("const at = document.activeElement; return [at.closest('[id]')?.id ?? '', at.textContent]")


def check_keyboard(browser):
    """A list is one tab stop with arrow keys; what is chosen keeps the focus; lists have names."""
    stops = browser.value(
        "return ['#menu', '#for-you'].map((list) => document.querySelectorAll(`${list} [tabindex='0']`).length)"
    )
    check(stops == [1, 1], f"tab stops of the menu and of the list: {stops}")
    unnamed = browser.value(
        "return [...document.querySelectorAll('ul, ol')].filter((list) => !list.getAttribute('aria-labelledby')"
        "?.split(' ').every((id) => document.getElementById(id)?.textContent)).map(({ id }) => id)"
    )
    check(not unnamed, f"lists without a name: {unnamed}")
    # The search is before the menu in the order of the tab key, and the next stop but one is behind all 480 buttons.
    browser.driver.find_element(By.ID, "search").click()
    keys = lambda key: browser.driver.switch_to.active_element.send_keys(key)
    keys(Keys.TAB)
    first = focused(browser)
    keys(Keys.ARROW_DOWN)
    keys(Keys.ARROW_DOWN)
    third = focused(browser)
    keys(Keys.END)
    last = focused(browser)
    check(first[0] == third[0] == last[0] == "menu", f"arrow keys leave the menu: {first}, {third}, {last}")
    check(len({first[1], third[1], last[1]}) == 3, f"arrow keys do not move: {first}, {third}, {last}")
    keys(Keys.TAB)
    check(focused(browser)[0] != "menu", f"the tab key stays in the menu: {focused(browser)}")
    keys(Keys.SHIFT + Keys.TAB)
    check(focused(browser) == last, f"back in the menu the focus is at {focused(browser)}, not at {last}")


def check_order(browser):
    """An order with the keyboard marks what moved beside the list before, and the focus stays in the list."""
    before = [row.text for row in browser.driver.find_elements(By.CSS_SELECTOR, "#for-you button")]
    button = browser.driver.find_element(By.CSS_SELECTOR, "#for-you button")
    button.send_keys(Keys.ENTER)
    browser.wait_for(lambda: before[0] in browser.text("ordered"), "the order")
    check(focused(browser)[0] == "for-you", f"after the order the focus is at {focused(browser)}")
    shown = browser.driver.find_elements(By.CSS_SELECTOR, "#before li")
    check([row.text for row in shown] == before, f"the list before is {[row.text for row in shown]}, was {before}")
    rows = browser.driver.find_elements(By.CSS_SELECTOR, "#for-you li")
    after = [row.find_element(By.TAG_NAME, "button").text for row in rows]
    marks = [[mark.get_attribute("aria-label") for mark in row.find_elements(By.CLASS_NAME, "mark")] for row in rows]
    for place, (name, mark) in enumerate(zip(after, marks)):
        was = before.index(name) if name in before else None
        moved = "new here" if was is None else f"{'up' if was > place else 'down'} {abs(was - place)}"
        check(mark == ([] if was == place else [moved]), f"'{name}' is marked {mark}; it was at {was}, is at {place}")
    check(any(marks), "nothing moved after an order")
    return before[0]


def while_reloading(asked, otherwise):
    """Asks a page that may just be replaced by the next one."""
    try:
        return asked()
    except (NoSuchElementException, StaleElementReferenceException):
        return otherwise


def answer(browser, button):
    """Answers the question that the page asks."""
    asked = browser.driver.find_element(By.ID, "ask")
    browser.wait_for(asked.is_displayed, "the page's question")
    asked.find_element(By.CSS_SELECTOR, f"button[value={button}]").click()
    browser.wait_for(lambda: while_reloading(lambda: not asked.is_displayed(), True), "the end of the question")


def check_asking(browser, ordered):
    """Deleting asks first."""
    for name in ("forget", "reset"):
        browser.click(name)
        answer(browser, "no")
        check(ordered in browser.text("ordered"), f"'{name}' deleted although the answer was no")
    browser.click("forget")
    answer(browser, "yes")
    browser.wait_for(lambda: ordered not in browser.text("ordered"), "the erasing of the orders")


def check_requests(browser, seen):
    """Nothing is asked for after the page was ready, and the counts would show it."""
    own = lambda: browser.text("requests-own").split()[0]
    check((browser.text("requests"), own()) == ("0", str(seen)), f"requests: {browser.text('requests')}, {own()}")
    browser.value("await fetch('guests.json')")
    browser.wait_for(lambda: own() == str(seen + 1), "the count of a request")
    check(browser.text("requests-own").endswith(": guests.json."), browser.text("requests-own"))
    check(browser.text("requests") == "0", f"a request of the page's own file was counted: {browser.text('requests')}")


def check_request_elsewhere(browser):
    """A request to another site is in the large figure, where no policy refuses it as that of `serve` does."""
    bypass = lambda on: browser.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": on})
    bypass(True)
    browser.driver.get(browser.address)
    browser.wait_ready()
    browser.value("await fetch('http://127.0.0.2:9/').catch(() => {})")
    browser.wait_for(lambda: browser.text("requests") == "1", "the count of a request to another site", 10)
    check(browser.text("requests-note").startswith("request to another"), browser.text("requests-note"))
    bypass(False)
    browser.driver.get(browser.address)
    browser.wait_ready()
    browser.driver.get_log("browser")  # nobody answered that request


def check_words_of_protection(browser):
    """The words near the slider say what its place means, and promise little only at its left end."""
    words = []
    for place in range(5):
        words.append(
            browser.value(
                "const slider = document.getElementById('protection'), was = slider.value; slider.value = args[0];"
                "slider.dispatchEvent(new Event('input'));"
                "const told = document.getElementById('protection-note').textContent;"
                "slider.value = was; slider.dispatchEvent(new Event('input'));"
                "return [told.split(':')[0], told.includes('say little')]",
                place,
            )
        )
    told = [["Well hidden", True]] * 2 + [["Half hidden", False]] + [["Hardly hidden", False]] * 2
    check(words == told, f"the words of the slider's five places: {words}")
    check("little" not in browser.text("jar-note"), f"the jar promises little: {browser.text('jar-note')}")


def write_own(work, wrong="", people=1500):
    """A catalogue and a log as CSV, with what spreadsheets write: quotes, line ends of two characters, days."""
    names = [f'"Bowl ""{i}"", large"' for i in range(30)]
    (work / "catalogue.csv").write_bytes(
        ("\ufeffname,item\r\n" + "".join(f"{name},bowl-{i}\r\n" for i, name in enumerate(names))).encode()
    )
    lines = [
        f"bowl-{(user + step) % 30},user {user},2026-01-{1 + step:02}" for user in range(people) for step in range(9)
    ]
    (work / "log.csv").write_text("\n".join(["item,user,time", *lines, wrong]))


def check_own_files(browser, work):
    """A visitor's files replace the cafe; wrong ones are refused with file and line, and replace nothing."""
    browser.driver.execute_script("document.getElementById('own').closest('details').open = true")
    people = browser.driver.find_element(By.ID, "people")

    def give(number=1500):
        people.clear()
        people.send_keys(str(number))
        for name in ("catalogue", "log"):
            browser.driver.find_element(By.ID, name).send_keys(str(work / f"{name}.csv"))
        browser.driver.find_element(By.CSS_SELECTOR, "#own button").click()

    for wrong, sentence in (
        ("bowl-99,user 1,2026-01-01", "log.csv, line 13502: the catalogue has no item 'bowl-99'"),
        ("bowl-1,user 1,soon", "log.csv, line 13502: the time 'soon' is neither a date"),
        ("bowl-1,user 1", "log.csv, line 13502: has 2 fields, the header has 3"),
        ('bowl-1,"user 1,5', "log.csv, line 13502: a quote is not closed"),
        ("bowl-1,,5", "log.csv, line 13502: the user is empty"),
    ):
        write_own(work, wrong)
        give()
        browser.wait_for(lambda: sentence in browser.text("own-error"), f"'{sentence}'", 10)

    def use(number):
        write_own(work, people=number)
        give(number)
        answer(browser, "yes")
        browser.wait_for(lambda: browser.text("state").startswith("Your items"), "the visitor's files")

    use(60)
    check_few(browser)
    use(1500)
    browser.driver.find_element(By.ID, "protection").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    rows = browser.driver.find_elements(By.CSS_SELECTOR, "#menu button")
    menu = [row.text for row in rows]
    check(len(menu) == 30 and menu[3] == 'Bowl "3", large', f"the visitor's menu: {menu[:4]}")
    check("before it has learned" in browser.text("for-you-note"), browser.text("for-you-note"))
    check_progress(browser)
    names = [row.text for row in browser.driver.find_elements(By.CSS_SELECTOR, "#for-you button")]
    check(names and all(name.startswith("Bowl") for name in names), f"what was learned of the visitor's files: {names}")


def check_few(browser):
    """With few events well hidden, few items are learned. A sentence says why the list is short."""
    browser.driver.find_element(By.ID, "protection").send_keys(Keys.HOME)
    learn(browser)
    shown = len(browser.driver.find_elements(By.CSS_SELECTOR, "#for-you button"))
    note = browser.text("for-you-note")
    check(shown < 10, f"{shown} items were learned of few events")
    words = f"{shown} of 10 places are filled: other items were not learned yet. More events, or the slider"
    check(words in note, note)


def failed(browser):
    return browser.driver.find_elements(By.CSS_SELECTOR, "#state.failed")


def learn(browser):
    lessons = lambda: browser.value("return performance.getEntriesByName('learn').length")
    before = lessons()
    browser.click("learn")
    over = lambda: lessons() > before and browser.text("state").startswith("It has learned")
    browser.wait_for(lambda: over() or failed(browser), "the end of learning", 600)
    check(over(), f"learning failed: {browser.text('state')}")


def check_progress(browser):
    """From the press on something moves all along, also while the noise of a new plan is chosen."""
    browser.value("""
      window.seen = [performance.now()];
      performance.clearMarks('step');
      const note = () => {
        if (performance.now() - window.seen.at(-1) > 100) window.seen.push(performance.now());
      };
      new MutationObserver(note).observe(document.getElementById('working'),
        { childList: true, subtree: true, characterData: true, attributes: true });""")
    learn(browser)
    gap = browser.value("return Math.max(...window.seen.slice(1).map((time, i) => time - window.seen[i]))")
    first = browser.value(
        "const step = performance.getEntriesByName('step')[0].startTime;"
        "return [step - window.seen[0], window.seen.filter((time) => time < step).length]"
    )
    check(gap < 1500, f"learning was silent for {gap:.0f} ms")
    told = f"the first step came after {first[0]:.0f} ms; until then something was seen {first[1]} times"
    check(first[1] > first[0] / 300, told)
    print(told)


def step_shown(browser):
    return browser.value("return performance.getEntriesByName('step').length") > 0


def spent(browser):
    """What the jar shows as spent, in percent, and whether it says that it may be more."""
    label = browser.driver.find_element(By.ID, "jar").get_attribute("aria-label")
    level = browser.value(
        "const [taken, rest] = [...document.querySelectorAll('#jar rect')].map((part) => part.height.baseVal.value);"
        "return 100 * taken / (taken + rest)"
    )
    percent = int(re.search(r"(\d+)% is spent", label)[1])
    check(abs(level - percent) < 1, f"the jar is drawn with {level} % spent, and says {label}")
    return percent, label.startswith("At least")


def charged(browser):
    """What the statement says is used of the plan, in percent of the limit."""
    text = browser.driver.find_element(By.ID, "statement").get_attribute("textContent")
    used, limit = (re.search(rf"{name}: ([0-9.]+) ", text) for name in ("plan that is used", "limit of the data set"))
    check(used and limit, f"the statement names no part that is used: {text}")
    return 100 * float(used[1]) / float(limit[1])


def check_jar(browser):
    """The jar shows what is charged, rounded up, once nothing runs."""
    check(charged(browser) <= spent(browser)[0] <= charged(browser) + 1.1, f"{spent(browser)}, {charged(browser)}")
    check(not spent(browser)[1], "the jar is unsure although nothing runs")
    check(f"{spent(browser)[0]}% is spent" in browser.text("jar-note"), browser.text("jar-note"))


def check_spending(browser):
    """The jar never fills again, and is empty after the last lesson. One more is refused before it is pressed."""
    left = lambda: int(re.search(r"(\d) of 4 lessons are left", browser.text("jar-note"))[1])
    before = (left(), spent(browser)[0])
    while before[0] > 0:
        check_jar(browser)
        learn(browser)
        after = (left(), spent(browser)[0])
        check(after[0] < before[0] and after[1] >= before[1], f"lessons left and percent: {before}, then {after}")
        before = after
    check(before == (0, 100), f"after the last lesson: {before}")
    learning = browser.driver.find_element(By.ID, "learn")
    check(learning.get_attribute("aria-disabled") == "true", "a fifth lesson may be pressed")
    browser.wait_for(lambda: "All lessons are spent" in browser.text("learn-why"), "why no lesson may be pressed", 10)
    protection = browser.driver.find_element(By.ID, "protection")
    check(not protection.is_enabled(), "the protection can be changed after the first lesson")


def check_phone(browser):
    """Learning is the first that the keyboard and the eye reach."""
    places = browser.value(
        "return ['learn', 'for-you', 'menu'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
    )
    check(places == sorted(places), f"on a phone learning is not first: {places}")
    inside = browser.value(
        "return [...document.querySelectorAll('button, input, summary')].filter((e) => e.offsetParent && "
        "e.getBoundingClientRect().height < 40 && e.type !== 'range').map((e) => e.id || e.textContent)"
    )
    check(not inside, f"too small for a finger: {inside[:5]}")


def check_lists_in_step(browser):
    """Rows of both lists have equal heights, and a phone's screen has the lists below the button that changes them."""
    heights, below, screen = browser.value("""
      const rows = (list) => [...document.querySelectorAll(`#${list} li`)].map((row) => row.offsetHeight);
      const [button, list] = ['learn', 'for-you'].map((id) => document.getElementById(id).getBoundingClientRect());
      return [[rows('for-you'), rows('before')], list.top - button.bottom, innerWidth < 640];""")
    check(heights[0] == heights[1] and len(heights[0]) == 10, f"heights of the rows: {heights}")
    check(not screen or 0 < below < 320, f"the list begins {below} px below the button that changes it")


def check_chart(browser):
    """The longest bar uses the width that its label leaves."""
    width, cell = browser.value(
        "return ['.bar', 'td'].map((part) => Math.max(...[...document.querySelectorAll(`#quality ${part}`)]"
        ".map((found) => found.offsetWidth)))"
    )
    check(width > 0.8 * cell, f"the longest bar has {width} of {cell} px")


def stop(browser):
    """Stopping is confirmed at once, and the jar shows what it had spent."""
    said = browser.value(
        "document.getElementById('stop').click(); return document.getElementById('state').textContent"
    )
    check(said == "Stopping.", f"after the press on Stop the page says: {said}")
    browser.wait_for(lambda: browser.text("state") == "Stopped. The jar shows what is spent.", "the end", 60)


def main():
    work = Path(tempfile.mkdtemp(prefix="wisp-page."))
    server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", demo, "0"], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    browser = None
    try:
        browser = Browser(f"{work}/profile", address)
        browser.wait_ready()
        browser.picture("first")
        check_requests(browser, 0)
        check_request_elsewhere(browser)
        check_words_of_protection(browser)
        check(browser.text("ordered-none"), "nothing is said of an empty list of orders")
        check_same_as_native(browser)
        check_refusals(browser)
        check_keys_and_json(browser)
        check_sets_and_crafted_models(browser)
        check_busy(browser)
        browser.driver.get_log("browser")  # that of nowhere.wasm
        check_keyboard(browser)
        check_asking(browser, check_order(browser))
        first = check_order(browser)
        browser.picture("ordered")
        browser.click("guests")
        browser.wait_for(lambda: "guests have been here" in browser.text("state"), "the guests")
        check(spent(browser) == (0, False), f"before the first lesson the jar shows {spent(browser)}")
        browser.click("learn")
        browser.wait_for(lambda: step_shown(browser), "the first step", 300)
        check(spent(browser)[0] > 50 and spent(browser)[1], f"in the first lesson the jar shows {spent(browser)}")
        browser.picture("learning")
        browser.kill()

        browser = Browser(f"{work}/profile", address)
        browser.wait_ready()
        check(first in browser.text("ordered"), "what was ordered before the browser was killed is gone")
        statement = browser.driver.find_element(By.ID, "statement").get_attribute("textContent")
        check("epsilon" in statement, f"nothing is charged: {statement}")
        labels = lambda: [row.text for row in browser.driver.find_elements(By.CSS_SELECTOR, "#quality tbody th")]
        check(labels() == ["as shipped", "lesson 1, stopped"], f"the chart after a lesson was killed: {labels()}")
        check_jar(browser)
        learn(browser)
        browser.picture("learned")
        check_requests(browser, 0)
        after = ["as shipped", "after lesson 1"]
        check(labels() == after, f"the chart after the lesson: {labels()}")
        check_chart(browser)
        print("of 100 guests:", browser.text("quality").replace("\n", " "))
        # Stopping ends the worker; a new one continues with the store.
        browser.value("performance.clearMarks('step')")
        browser.click("learn")
        browser.wait_for(lambda: step_shown(browser), "a step of the second lesson", 300)
        stop(browser)
        # A few steps change the model only if they were stored.
        check(labels() in (after, [*after, "lesson 2, stopped"]), f"the chart after a stop: {labels()}")
        check_spending(browser)
        browser.picture("spent")
        times = browser.value("return performance.getEntriesByName('recommend').map((e) => e.duration)")
        first_list = browser.value("return performance.getEntriesByName('first-list')[0].startTime")
        print(f"first list {first_list:.0f} ms after the page began; one more click {times[-1]:.1f} ms")
        check_own_files(browser, work)
        browser.picture("own")
        browser.click("reset")
        answer(browser, "yes")
        ready = lambda: while_reloading(lambda: browser.text("state") == "Ready.", False)
        browser.wait_for(ready, "the cafe after everything was deleted")
        check(not browser.text("ordered"), "orders are left after everything was deleted")
        browser.check_console()
        browser.quit()
        for width, dark in ((360, False), (360, True), (1280, False), (1280, True)):
            name = f"{width}-{'dark' if dark else 'light'}"
            browser = Browser(f"{work}/profile-{name}", address, width, dark)
            browser.wait_ready()
            check(
                browser.value("return document.documentElement.scrollWidth <= innerWidth"),
                f"the page is wider than {width} px",
            )
            if width < 500:
                check_phone(browser)
            browser.picture(name)
            check_order(browser)
            check_lists_in_step(browser)
            browser.click("guests")
            browser.wait_for(lambda: "guests have been here" in browser.text("state"), "the guests")
            learn(browser)
            check_lists_in_step(browser)
            browser.picture(f"{name}-learned")
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
