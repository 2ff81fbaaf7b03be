"""Programs of pages, run in a headless browser beside the package of ports/wasm."""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def missing(package):
    """Returns the reason why no page can be opened; "" if one can."""
    if not (Path(package) / "wisp.wasm").is_file():
        return f"{package} has no package (tools/dev wasm makes it)"
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return "" if importlib.util.find_spec("selenium") else "python3-selenium is not installed"


class Pages:
    def __init__(self, root, package, page):
        """page: the text of an index.html that loads app.js."""
        self.root, self.package, self.page, self.told = Path(root), Path(package), page, []
        sys.path.insert(0, str(self.root / "tests"))

    def faults(self, program):
        from browser import Browser

        self.told = []
        with tempfile.TemporaryDirectory() as work:
            site = Path(work) / "site"
            shutil.copytree(self.package, site / "wisp")
            shutil.copy(self.root / "models/cafe.wisp", site)
            (site / "index.html").write_text(self.page, encoding="utf-8")
            (site / "app.js").write_text(f"{program}\ndocument.title = 'done';\n", encoding="utf-8")
            server = subprocess.Popen(
                [self.root / "ports/wasm/demo/serve", site, "0"], stdout=subprocess.PIPE, text=True
            )
            browser = Browser(f"{work}/profile", server.stdout.readline().strip())
            try:
                browser.wait_for(
                    lambda: browser.driver.title == "done" or self.severe(browser), "the program's end", 120
                )
                yield from (f"the browser says: {sentence}" for sentence in self.told)
                if "list" in program and not browser.driver.find_elements("css selector", "#list li"):
                    yield "the page shows no list"
            finally:
                browser.quit()
                server.terminate()
                server.wait()

    def severe(self, browser):
        """Reads the log, which empties it. A missing icon of a page is not a fault of these programs."""
        self.told += [
            entry["message"]
            for entry in browser.driver.get_log("browser")
            if entry["level"] == "SEVERE" and "favicon.ico" not in entry["message"]
        ]
        return self.told
