"""Plants faults beside a finished build: compiles the one unit that has the fault, and links the test with it.

The unit comes first on the link line, and the linker takes the first definition of each name. Sources and build stay as
they are, so several faults are tried at a time. For faults in .cc files whose tests are programs.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

from find_function import Stale, planted

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 300


class InPlace:
    def __init__(self, build):
        self.build = build
        # source, relative to the tree -> (the unit that is compiled, its command, the folder of the command)
        self.units = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            unit = pathlib.Path(entry["file"])
            sources = [unit]
            if "/Unity/" in entry["file"]:
                sources = [pathlib.Path(s) for s in re.findall(r'#include "(/[^"]+)"', unit.read_text())]
            for source in sources:
                if source.is_relative_to(ROOT):
                    self.units.setdefault(str(source.relative_to(ROOT)), []).append((unit, entry))
        self.links = {}
        # With older objects a fault would be linked with sources that nobody has any more. (A dry run does not tell: it
        # cannot look whether the lists of sources are still right.)
        made = subprocess.run(["ninja", "-C", str(build)], capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(f"{build} does not build:\n{made.stdout[-2000:]}")

    def link_command(self, program):
        if program not in self.links:
            commands = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", program], check=True,
                                      capture_output=True, text=True).stdout.splitlines()
            # The program's name may be a link to the program of its room.
            link = next(c for c in reversed(commands) if re.search(r"\s-o \S+_tests\s", c))
            self.links[program] = re.sub(r"^:\s*&&\s*|\s*&&\s*:$", "", link).split(" && ")[0]
        return self.links[program]

    def compile(self, fault, folder):
        """The object with the fault, or the compiler's complaint."""
        text = planted((ROOT / fault.file).read_text(), fault)
        copy = folder / pathlib.Path(fault.file).name
        copy.write_text(text)
        # A source may be in several libraries: the one of training has everything.
        unit, entry = self.units[fault.file][-1]
        source = copy
        if "/Unity/" in str(unit):
            source = folder / "unit.cc"
            source.write_text(unit.read_text().replace(f'"{ROOT / fault.file}"', f'"{copy}"'))
        words = [w for w in shlex.split(entry["command"]) if w not in ("-c", "-O2", "-O3", "-Werror", str(unit))]
        if words and words[0].endswith("ccache"):
            words = words[1:]
        del words[words.index("-o"):words.index("-o") + 2]
        output = folder / "fault.o"
        words += ["-O1", "-w", "-I", str((ROOT / fault.file).parent), "-o", str(output), "-c", str(source)]
        made = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
        return (output, "") if made.returncode == 0 else (None, made.stderr)

    def link(self, test, fault_object, folder):
        program = test.partition(":")[0].removeprefix("core/")
        words = shlex.split(self.link_command(program))
        at = words.index("-o") + 1
        output = folder / program
        words[at] = str(output)
        first = next(i for i, w in enumerate(words) if w.endswith(".o"))
        words[first:first] = ["-Wl,-z,muldefs", str(fault_object)]
        made = subprocess.run(words, cwd=self.build, capture_output=True, text=True)
        return (output, "") if made.returncode == 0 else (None, made.stderr)

    def kill(self, fault):
        """What came of it in a word or two, and a remark."""
        with tempfile.TemporaryDirectory(prefix="wisp-fault-") as name:
            folder = pathlib.Path(name)
            try:
                fault_object, complaint = self.compile(fault, folder)
            except Stale as stale:
                return "STALE", str(stale)
            if fault_object is None:
                return "DOES NOT BUILD", next((x for x in complaint.splitlines() if "error" in x), complaint[-300:])
            for test in fault.tests:
                program, complaint = self.link(test, fault_object, folder)
                if program is None:
                    return "DOES NOT LINK", complaint[-300:]
                try:
                    ended = subprocess.run([str(program), "--gtest_filter=" + test.partition(":")[2]], cwd=ROOT,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    return "TIMED OUT", test
                if ended.returncode == 0:
                    return "SURVIVES", test
                # Only a test that failed counts: not a program that could not start, or ran out of memory.
                if ended.returncode != 1 or b"[  FAILED  ]" not in ended.stdout:
                    return "ENDED OTHERWISE", f"{test}, {ended.returncode}"
        return "killed", ""

    def can_try(self, fault):
        return fault.file in self.units and all(not t.endswith((".sh", ".py")) for t in fault.tests)

    def kill_all(self, faults, jobs):
        """Yields (fault, outcome, remark), in the order in which they end."""
        def timed(fault):
            start = time.monotonic()
            outcome, remark = self.kill(fault)
            return fault, outcome, remark or f"{time.monotonic() - start:.0f} s"

        with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            for done in concurrent.futures.as_completed([pool.submit(timed, f) for f in faults]):
                yield done.result()
