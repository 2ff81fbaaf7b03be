"""Programs in documents: compiled, linked and run, or read by their language's own reader."""

import json
import re
import subprocess
import sys
from pathlib import Path

STRICT = ["-Wall", "-Wextra", "-Werror"]
# The parts that the text around a few lines of C says are there.
AROUND = """#include <stdio.h>
#include <wisp/wisp.h>
#include <wisp/wisp_deployment.h>
#include <wisp/wisp_text.h>
extern wisp_error error;
extern wisp_model* model;
extern wisp_text_model* text_model;
extern wisp_personalise_options options;
"""


def ran(command, **how):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, **how)


def said(result):
    return (result.stderr + result.stdout).strip()[:600]


class Programs:
    """Each method gives the faults of a block; `work` is a folder with the shipped model."""

    def __init__(self, root, build, work):
        self.root, self.build, self.work = Path(root), Path(build), Path(work)
        self.includes = [f"-I{self.build / 'include'}", f"-I{self.build / 'include/wisp'}"]
        self.links = [f"-L{self.build}", "-lwisp", f"-Wl,-rpath,{self.build}"]

    def compiled(self, compiler, standard, suffix, text, whole, runs):
        source, program = self.work / f"block{suffix}", self.work / "block"
        source.write_text(text, encoding="utf-8")
        flags = [compiler, f"-std={standard}", *STRICT, *self.includes, source]
        if whole:
            result = ran([*flags, "-o", program, *self.links])
        else:
            result = ran([*flags, "-Wno-unused-but-set-variable", "-fsyntax-only"])
        if result.returncode != 0:
            yield f"{compiler} says: {said(result)}"
        elif whole and runs:
            result = ran([program], cwd=self.work)
            if result.returncode != 0 or not result.stdout:
                yield f"it exits {result.returncode}: {said(result) or 'nothing is printed'}"

    def c(self, text, runs):
        whole = "int main(" in text
        if not whole:
            text = self.within_a_function(text)
        yield from self.compiled("cc", "c11", ".c", text, whole, runs)

    @staticmethod
    def within_a_function(text):
        """Puts lines of C into a function; functions that stand before them stay outside."""
        outside = re.match(r"(?:static [^\n]*\{[^\n]*\}\n+)*", text)[0]
        model = (
            "  wisp_text_model* model = text_model; (void)model;\n" if "text_" in text and "* model" not in text else ""
        )
        return f"{AROUND}{outside}void block(void);\nvoid block(void) {{\n{model}{{\n{text[len(outside):]}}}\n}}\n"

    def cpp(self, text, runs):
        yield from self.compiled("g++", "c++20", ".cc", text, "int main(" in text, runs)

    def json(self, text, _):
        try:
            json.loads(text)
        except ValueError as error:
            yield f"it is no JSON: {error}"

    def js(self, text, pages):
        """Reads a block as a module. Its imports must be exported, the methods that it calls must be in the types,
        and a browser runs it."""
        source = self.work / "block.mjs"
        source.write_text(text, encoding="utf-8")
        result = ran(["node", "--check", source])
        if result.returncode != 0:
            yield f"node says: {said(result)}"
            return
        folder = self.root / "ports/wasm/source"
        types = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.d.ts")))
        for names, module in re.findall(r"import \{ ([^}]*) \} from \"\./wisp/(\w+)\.js\"", text):
            exported = (folder / f"{module}.js").read_text(encoding="utf-8")
            for name in names.split(", "):
                if not re.search(rf"export (?:async )?(?:function|class|const) {name}\b", exported):
                    yield f"{module}.js exports no {name}"
        for name in re.findall(r"\b(?:device|Device|wisp|model)\.(\w+)\(", text):
            if not re.search(rf"\b{name}\(", types):
                yield f"no type of ports/wasm/source has {name}()"
        if pages:
            yield from pages.faults(text)

    def python(self, text, runs):
        try:
            compile(text, "block", "exec")
        except SyntaxError as error:
            yield f"Python says: {error}"
            return
        if runs:
            result = ran([runs, "-c", text], cwd=self.work)
            if result.returncode != 0 or not result.stdout:
                yield f"it exits {result.returncode}: {said(result) or 'nothing is printed'}"

    def cmake(self, text, _):
        """Configures a project with an app, against the build's installed files, or with these sources in an
        archive's place."""
        prefix, project = self.work / "prefix", self.work / "project"
        if not prefix.is_dir():
            result = ran(["cmake", "--install", self.build, "--prefix", prefix])
            if result.returncode != 0:
                yield f"cmake --install says: {said(result)}"
                return
        project.mkdir(exist_ok=True)
        (project / "app.c").write_text("int main(void) { return 0; }\n")
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(app C CXX)\nadd_executable(app app.c)\n" + text
        )
        result = ran(
            [
                "cmake",
                "-S",
                project,
                "-B",
                self.work / "configured",
                f"-DCMAKE_PREFIX_PATH={prefix}",
                f"-DFETCHCONTENT_SOURCE_DIR_WISP={self.root}",
            ]
        )
        if result.returncode != 0:
            yield f"cmake says: {said(result)}"

    def html(self, text, _):
        if not re.search(r'<script type="module" src="app\.js"></script>', text):
            yield "the page loads no app.js"


if __name__ == "__main__":
    sys.exit("tests/snippets.sh runs this")
