"""A headless browser for tests of pages. Needs chromium, chromedriver and python3-selenium."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

pictures = os.environ.get("WISP_SCREENSHOTS")


def check(holds, sentence):
    if not holds:
        sys.exit(f"{Path(sys.argv[0]).name}: {sentence}")


class Browser:
    def __init__(self, profile, address, width=1200, dark=False, flags=()):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={profile}",
            f"--window-size={width},1000",
            *flags,
        ):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(300)
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        self.address = address
        self.driver.get(address)

    def run(self, body, *arguments):
        """Returns the value of an async function's body; a refused promise gives {"kind", "message"} under "error"."""
        script = (
            "const done = arguments[arguments.length - 1], args = Array.from(arguments).slice(0, -1);"
            "const told = (error) => ({ error: { kind: error.kind, message: String(error.message) } });"
            "(async () => {" + body + "})().then((value) => done({ value }), (error) => done(told(error)));"
        )
        return self.driver.execute_async_script(script, *arguments)

    def value(self, body, *arguments):
        answer = self.run(body, *arguments)
        check("value" in answer or "error" not in answer, f"{body[:80]}... was refused: {answer.get('error')}")
        return answer.get("value")

    def text(self, name):
        return self.driver.find_element(By.ID, name).text

    def wait_for(self, holds, what, seconds=120):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if holds():
                return
            time.sleep(0.1)
        shown = self.driver.find_element(By.TAG_NAME, "body").text[:300]
        check(False, f"{what} did not come within {seconds} s; the page says: {shown}")

    def wait_ready(self):
        self.wait_for(
            lambda: self.value("return performance.getEntriesByName('ready').length > 0"), "the page's storage"
        )

    def click(self, name):
        button = self.driver.find_element(By.ID, name)
        enabled = lambda: button.is_enabled() and button.get_attribute("aria-disabled") != "true"
        self.wait_for(enabled, f"the button '{name}'")
        button.click()

    def picture(self, name):
        if pictures:
            Path(pictures).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(f"{pictures}/{name}.png")

    def check_console(self):
        errors = [
            entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]
        check(not errors, f"the console has {errors}")

    def kill(self):
        """Kills the browser's processes at once."""
        listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        children = {}
        for line in listing.splitlines():
            pid, parent = map(int, line.split())
            children.setdefault(parent, []).append(pid)
        found = [self.driver.service.process.pid]
        for pid in found:  # grows while the loop runs
            found += children.get(pid, [])
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.driver.service.process.wait()

    def quit(self):
        self.driver.quit()
