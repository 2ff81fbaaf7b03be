"""Reads PTX: the kernels of a module with their parameters, arrays in shared memory, and instructions."""
import dataclasses
import re

BYTES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4,
         "b64": 8, "u64": 8, "s64": 8, "f64": 8}


@dataclasses.dataclass
class Instruction:
    text: str
    predicate: str  # the register, or ""
    negated: bool
    words: list  # of its name: ["ld", "global", "f32"]
    operands: list
    place: str  # in the source


@dataclasses.dataclass
class Kernel:
    name: str
    parameters: dict  # offset of each
    parameter_bytes: int
    shared: dict  # offset of each array
    shared_bytes: int
    registers: dict  # the type of those whose names begin so
    instructions: list
    labels: dict


def align(n, alignment):
    return (n + alignment - 1) // alignment * alignment


def read_parameters(text):
    offsets, end = {}, 0
    pattern = r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr[^,\n]*?\s)?(\w+)(?:\[(\d+)\])?\s*(?:,|$)"
    for match in re.finditer(pattern, text):
        size = BYTES[match[2]] * int(match[4] or 1)
        offsets[match[3]] = align(end, int(match[1] or BYTES[match[2]]))
        end = offsets[match[3]] + size
    return offsets, end


def read_shared(module, body):
    """Arrays that a kernel names, which stand in it or before it."""
    offsets, end = {}, 0
    for match in re.finditer(r"\.shared\s+\.align\s+(\d+)\s+\.(\w+)\s+(\w+)(?:\[(\d+)\])?\s*;", module):
        if match[3] in offsets or not re.search(rf"\b{re.escape(match[3])}\b(?!\[)", body):
            continue
        offsets[match[3]] = align(end, int(match[1]))
        end = offsets[match[3]] + BYTES[match[2]] * int(match[4] or 1)
    return offsets, end


def read_body(body, files):
    instructions, labels, place = [], {}, ""
    for line in re.split(r"[;\n]", body):
        line = re.sub(r"^(?:[{}]\s*)*(?![%\w].*\})", "", line.strip())
        if match := re.match(r"\.loc\s+(\d+)\s+(\d+)(?:.*inlined_at (\d+) (\d+))?", line):
            place = f"{files.get(match[1], '?')}:{match[2]}"
            place += f", from {files.get(match[3], '?')}:{match[4]}" if match[3] else ""
            continue
        if match := re.match(r"(\$?\w+):\s*", line):
            labels[match[1]] = len(instructions)
            line = line[match.end():]
        if not line or line[0] in "{}." or line.startswith("//"):
            continue
        predicate, negated, text = "", False, line
        if line[0] == "@":
            guard, line = line[1:].split(None, 1)
            negated, predicate = guard[0] == "!", guard.lstrip("!")
        name, _, rest = line.partition("\t") if "\t" in line else line.partition(" ")
        operands = [o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        words = name.strip().split(".")
        instructions.append(Instruction(" ".join(text.split()), predicate, negated, words, operands, place))
    return instructions, labels


def read_module(text, root):
    """The kernels of a module, by their names."""
    files = {n: path.removeprefix(f"{root}/") for n, path in re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', text)}
    text = re.sub(r"//[^\n]*", "", text)
    kernels = {}
    for match in re.finditer(r"\.entry\s+(\w+)\s*\((.*?)\)([^{]*)\{\n(.*?)\n\}", text, re.S):
        parameters, parameter_bytes = read_parameters(match[2])
        shared, shared_bytes = read_shared(text, match[4])
        registers = {prefix: kind for kind, prefix in re.findall(r"\.reg\s+\.(\w+)\s+(%\w+?)(?:<\d+>)?\s*;", match[4])}
        kernels[match[1]] = Kernel(match[1], parameters, parameter_bytes, shared, shared_bytes, registers,
                                   *read_body(match[4], files))
    return kernels
