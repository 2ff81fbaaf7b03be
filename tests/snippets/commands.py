"""Checks commands in documents against the program's commands and options, tools/dev's, and files of the repository."""

import re
import shlex
import subprocess
from pathlib import Path

# Programs of others, and files that the commands around them make.
OTHERS = set(
    """adduser apt-get awk c++ cat cc cd chown cmake cp ctest cut echo env export g++ gcc git head make mkdir mount
ninja node npm nvpmodel jetson_clocks pip pkg-config python3 sed sqlite3 strip sudo systemctl tail
tar tee time""".split()
)
MADE = re.compile(r"^(?:\./\w+|(?:\w+/)*bin/(?:python|pip)|VENV/bin/python|build/gemm_peers|ROOT/\S+)$")
OPERATORS = {"&&", "||", ";", "|", "&", "(", ")", "\n"}
OTHERS |= {"sha256sum", "swift"}


def joined(text):
    """Joins continued lines, and drops placeholders of a document."""
    text = re.sub(r"\\\n\s*", " ", text)
    return re.sub(r"(?m)(^|\s)#.*$", "", text)


def words_of(text):
    """Returns the commands of a text, each as its words."""
    text = joined(text)
    inner = re.compile(r"\$\(([^()]*)\)")
    for line in [*inner.sub("", text).splitlines(), *inner.findall(text)]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        command = []
        for word in [*lexer, "\n"]:
            if word in OPERATORS:
                if command:
                    yield command
                command = []
            else:
                command.append(word)


class Program:
    """Returns the program's own list of commands and options."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def help(self, command):
        if command not in self.known:
            said = subprocess.run([self.program, *command, "--help-all"], capture_output=True, text=True)
            options = {"-h", *re.findall(r"(?m)^  \[?(--[\w-]+)", said.stdout)}
            self.known[command] = (options, set(re.findall(r"(?m)^  ([a-z]+)  ", said.stdout)))
        return self.known[command]

    def faults(self, words):
        command = ()
        while words and words[0] in self.help(command)[1]:
            command, words = (*command, words[0]), words[1:]
        name = " ".join((self.program.name, *command))
        options, subcommands = self.help(command)
        if words and subcommands and re.fullmatch(r"[a-z]+", words[0]) and command == ():
            yield f"there is no command '{self.program.name} {words[0]}'"
            return
        for word in words:
            option = re.match(r"^(--?[A-Za-z][\w-]*)(?:=.*)?$", word)
            if option and option[1] not in options:
                yield f"{name} has no option '{option[1]}'"


class Commands:
    def __init__(self, root, build):
        self.root = Path(root)
        self.programs = {name: Program(Path(build) / name) for name in ("wisp", "wisp-lab")}
        dev = (self.root / "tools/dev").read_text(encoding="utf-8")
        self.dev = set(re.findall(r"(?m)^  (\w+)\)", dev))

    def of_file(self, name, words):
        """Checks a program of the repository: it exists, it can be run, and its text has the options."""
        path = self.root / name
        if not path.is_file():
            yield f"there is no {name}"
            return
        if not path.stat().st_mode & 0o100 and path.suffix != ".py":
            yield f"{name} cannot be run"
        beside = sorted(path.parent.glob("*.py")) if path.suffix == ".py" or path.name == "run" else []
        text = "".join(file.read_text(encoding="utf-8") for file in {path, *beside})
        for word in words:
            option = word.split("=")[0]
            if re.fullmatch(r"--[\w-]+", option) and option not in text:
                yield f"{name} has no option '{option}'"

    def of_command(self, words):
        while words and (re.match(r"^\w+=", words[0]) or words[0] in ("sudo", "time", "/usr/bin/time", "-v", "env")):
            words = words[3:] if words[:2] in (["sudo", "-u"], ["env", "-C"]) else words[1:]
        for redirection in (">", ">>", "<", "2>"):
            while redirection in words:
                at = words.index(redirection)
                words = words[:at] + words[at + 2 :]
        if not words:
            return
        program, rest = words[0], words[1:]
        name = program.removeprefix("ROOT/")
        if program.removeprefix("build/release/") in self.programs:
            yield from self.programs[program.removeprefix("build/release/")].faults(rest)
        elif name == "tools/dev":
            if rest and rest[0] not in self.dev:
                yield f"tools/dev has no '{rest[0]}'"
        elif re.match(r"^(?:tools|tests|ports|models)/", name):
            # A command may follow "--".
            own = rest.index("--") if "--" in rest else len(rest)
            yield from self.of_file(name, rest[:own])
            yield from self.of_command(rest[own + 1 :])
        elif re.search(r"bin/python3?$", program) and rest and rest[0].startswith(("tools/", "tests/", "ports/")):
            yield from self.of_file(rest[0], rest[1:])
        elif program not in OTHERS and not MADE.match(program):
            yield f"'{program}' is no program that tests/snippets/commands.py knows"

    def faults(self, text):
        checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
        if checked.returncode != 0:
            yield f"bash says: {checked.stderr.strip()}"
            return
        for words in words_of(text):
            yield from self.of_command(words)

    @staticmethod
    def looks_like(text):
        """Returns True if an indented block consists of commands."""
        first = re.sub(r"^(?:\w+=\S*\s+)*", "", text.strip()).split()[0]
        return bool(
            first in OTHERS
            or first in ("wisp", "wisp-lab")
            or MADE.match(first)
            or re.match(r"^(?:build/release/wisp(?:-lab)?|(?:ROOT/)?(?:tools|tests|ports|build)/\S+)$", first)
        )
