#!/usr/bin/env python3
"""Reads a built site in a headless browser.

page.py SITE
"""

import shutil
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser import Browser, check  # noqa: E402  it lies beside the tests

PAGES = (
    "",
    "overview/",
    "docs/",
    "docs/guide/",
    "docs/program/",
    "docs/personalise/",
    "docs/measured/",
    "reference/wisp.h/",
    "reference/wisp.hpp/",
    "source/ports/wasm/source/store.js/",
)
SEARCHES = (
    ("what privacy means on one person's device", "privacy"),
    ("wisp_model_open_descriptor", "wisp_embed.h"),
    ("PRIVACY_REFUSED ledger", ""),
)


class Handler(SimpleHTTPRequestHandler):
    """Serves the site with a policy that lets it load nothing from elsewhere: the console would report it."""

    def end_headers(self):
        self.send_header(
            "Content-Security-Policy",
            "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; worker-src 'self'",
        )
        super().end_headers()

    def log_message(self, *arguments):
        pass


def loaded_from_elsewhere(browser):
    return browser.value(
        "return performance.getEntriesByType('resource').map((e) => e.name)"
        ".filter((name) => !name.startsWith(location.origin) && !name.startsWith('data:'))"
    )


def read(browser, address):
    for page in PAGES:
        browser.driver.get(f"{address}/{page}")
        check(browser.driver.find_element(By.TAG_NAME, "h1").text, f"{page or 'the first page'} has no heading")
        elsewhere = loaded_from_elsewhere(browser)
        check(not elsewhere, f"{page} loads {elsewhere}")
        check(
            browser.value("return [...document.images].every((i) => i.complete && i.naturalWidth > 0)"),
            f"{page} has a figure that is not shown",
        )
        browser.check_console()
    browser.driver.get(address)
    browser.picture("site-first")


def first(browser, address):
    """The first screen says what it is, shows it work and leads to a start. The page that learns works in it."""
    browser.driver.get(address)
    top = "return document.querySelector(args[0])?.getBoundingClientRect().top ?? 1e9"
    for what in ("h1", ".lead", "a[href='#start']", ".demo, .absent"):
        check(browser.value(top, what) < 700, f"'{what}' is not on the first screen")
    groups = browser.value(
        "return [...document.querySelectorAll('.md-tabs__list, .md-nav--primary .md-nav__list')]"
        ".map((list) => list.children.length)"
    )
    check(max(groups) <= 7, f"a group of the navigation has {max(groups)} entries")
    frames = browser.driver.find_elements(By.CSS_SELECTOR, "iframe.demo")
    if not frames:
        print("the first page: without the page that learns, which tools/dev wasm builds")
        return
    browser.driver.switch_to.frame(frames[0])
    browser.wait_ready()
    browser.driver.find_element(By.CSS_SELECTOR, "#for-you button").click()
    browser.wait_for(lambda: browser.text("ordered"), "an order in the page that learns")
    browser.driver.switch_to.default_content()
    browser.check_console()
    browser.picture("site-learns")


def search(browser, address):
    for words, expected in SEARCHES:
        browser.driver.get(address)
        browser.driver.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys(words)
        results = lambda: browser.driver.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")
        browser.wait_for(lambda: len(results()) > 0, f"something found for '{words}'", 30)
        found = [result.get_attribute("href") for result in results()]
        check(
            any(expected in place for place in found[:5]),
            f"the first five found for '{words}' lack {expected}: {found[:5]}",
        )
        browser.picture(f"site-search-{expected or 'error'}")
        browser.driver.get(found[0])
        browser.check_console()
    browser.driver.get(address)
    browser.driver.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys("xqzwvk")
    browser.wait_for(
        lambda: "No matching" in browser.driver.find_element(By.CSS_SELECTOR, ".md-search-result").text,
        "the word that nothing was found",
        30,
    )


def fit(browser, address, name):
    """Checks that no page is wider than a telephone; tables and code scroll by themselves."""
    for page in PAGES:
        browser.driver.get(f"{address}/{page}")
        width = browser.value("return [document.documentElement.scrollWidth, innerWidth]")
        check(width[0] <= width[1], f"{page or 'the first page'} is {width[0]} px wide, of {width[1]}")
        browser.picture(f"site-{name}-{page.strip('/').replace('/', '-') or 'first'}")


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.html").is_file():
        sys.exit("usage: page.py SITE; SITE is a folder with an index.html")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, work, browser = f"http://localhost:{server.server_address[1]}", tempfile.mkdtemp(), None
    try:
        for name, width, dark in (
            ("wide", 1280, False),
            ("dark", 1280, True),
            ("360", 360, False),
            ("360-dark", 360, True),
        ):
            browser = Browser(f"{work}/{name}", address, width, dark)
            scheme = browser.driver.find_element(By.TAG_NAME, "body").get_attribute("data-md-color-scheme")
            check(scheme == ("slate" if dark else "default"), f"the page is {scheme} where the system is {name}")
            if name == "wide":
                read(browser, address)
                first(browser, address)
                search(browser, address)
            fit(browser, address, name)
            browser.check_console()
            browser.quit()
            browser = None
        print("the site: passed")
    except WebDriverException as error:
        sys.exit(f"page.py: the browser said: {error}")
    finally:
        if browser:
            browser.quit()
        server.shutdown()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
