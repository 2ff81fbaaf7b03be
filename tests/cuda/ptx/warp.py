"""What the lanes of a warp do together: barriers, shuffles, votes, and products on tensor cores."""
import re

import numpy as np

from memory import Fault


class Together:
    """An instruction of whole warps or of the lanes that a mask names."""

    def __init__(self, machine, mask, run):
        self.machine, self.mask = machine, machine.read(mask, "u32")
        self.run = run

    def complete(self, lanes):
        mask = np.array(self.mask(lanes))
        if not ((mask >> (lanes % 32).astype(np.uint32)) & 1).all():
            raise Fault("a lane takes part that the mask leaves out")
        needed = np.unpackbits(mask.view(np.uint8).reshape(-1, 4), axis=1).sum(axis=1)
        return np.bincount(lanes // 32)[lanes // 32] == needed


def make(machine, i):
    name = i.words[0]
    if name in ("bar", "barrier"):
        def run_barrier(lanes):
            machine.shared.warp_barriers[lanes] += 1
        return Together(machine, i.operands[0], run_barrier)
    if name == "shfl":
        return Together(machine, i.operands[4], make_shuffle(machine, i))
    if name == "vote":
        return Together(machine, i.operands[2], make_vote(machine, i))
    return Together(machine, "-1", make_product(machine, i))


def make_shuffle(machine, i):
    mode = i.words[2]
    target, _, flag = i.operands[0].partition("|")
    value, write = machine.read(i.operands[1], "b32"), machine.write(target, "b32")
    write_flag = machine.write(flag or "_", "pred")
    distance, limit = machine.read(i.operands[2], "u32"), machine.read(i.operands[3], "u32")

    def run(lanes):
        lane = lanes % 32
        b, c = distance(lanes).astype(np.int64) & 31, limit(lanes).astype(np.int64)
        clamp, segment = c & 31, c >> 8 & 31
        first, last = lane & segment, (lane & segment) | (clamp & ~segment & 31)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment & 31)}[mode]
        inside = source >= last if mode == "up" else source <= last
        source = lanes - lane + np.where(inside, source, lane)
        here = np.searchsorted(lanes, source)
        if (here >= len(lanes)).any() or (lanes[here] != source).any():
            raise Fault("a lane reads from one that takes no part")
        write(lanes, value(lanes)[here])
        write_flag(lanes, inside)
    return run


def make_vote(machine, i):
    mode, kind = i.words[2], i.words[3]
    value, write = machine.read(i.operands[1].lstrip("!"), "pred"), machine.write(i.operands[0], kind)
    negated = i.operands[1][0] == "!"

    def run(lanes):
        votes = value(lanes) != negated
        ballot = np.zeros(machine.count // 32, np.uint32)
        np.bitwise_or.at(ballot, lanes // 32, votes.astype(np.uint32) << (lanes % 32).astype(np.uint32))
        if mode == "ballot":
            return write(lanes, ballot[lanes // 32])
        if mode == "any":
            return write(lanes, (ballot != 0)[lanes // 32])
        raise NotImplementedError(i.text)
    return run


def numbers(words, kind):
    """The numbers in words of 32 bits, as doubles, in a new last dimension."""
    words = np.ascontiguousarray(words)
    if kind == "tf32":
        return (words & np.uint32(0xffffe000)).view(np.float32)[..., None].astype(np.float64)
    if kind == "bf16":
        return np.stack([words << np.uint32(16), words & np.uint32(0xffff0000)], -1).view(np.float32).astype(np.float64)
    dtype = {"f16": np.float16, "s8": np.int8, "u8": np.uint8}[kind]
    return words.view(dtype).reshape(*words.shape, -1).astype(np.float64)


def make_product(machine, i):
    """mma of 16 rows, 8 columns and 8 words. Lane 4 g + t holds the words of the PTX ISA's "matrix fragments": of A
    rows g and g + 8, words t and t + 4; of B column g, the same words; of C rows as of A, columns 2t and 2t + 1."""
    rows, columns, depth = map(int, re.match(r"m(\d+)n(\d+)k(\d+)", i.words[3]).groups())
    kind, sums = i.words[7], "s32" if i.words[9] == "s32" else "f32"
    per_word = {"tf32": 1, "f16": 2, "bf16": 2, "s8": 4, "u8": 4}[kind]
    if (rows, columns, depth) != (16, 8, 8 * per_word) or i.words[4:6] != ["row", "col"] or i.words[8] != kind:
        raise NotImplementedError(i.text)
    names = [[n.strip() for n in o.strip("{}").split(",")] for o in i.operands]
    a, b = ([machine.read(n, "b32") for n in part] for part in names[1:3])
    c, d = [machine.read(n, sums) for n in names[3]], [machine.write(n, sums) for n in names[0]]
    lane = np.arange(32)
    g, t = lane // 4, lane % 4

    def run(lanes):
        warps = len(lanes) // 32
        of = lambda read: read(lanes).reshape(warps, 32)  # noqa: E731
        left = np.zeros((warps, 16, 8, per_word))
        right = np.zeros((warps, 8, 8, per_word))
        total = np.zeros((warps, 16, 8))
        for r in range(4):
            left[:, g + 8 * (r % 2), t + 4 * (r // 2)] = numbers(of(a[r]), kind)
            total[:, g + 8 * (r // 2), 2 * t + r % 2] = of(c[r])
        for r in range(2):
            right[:, g, t + 4 * r] = numbers(of(b[r]), kind)
        total += left.reshape(warps, 16, -1) @ right.reshape(warps, 8, -1).transpose(0, 2, 1)
        for r in range(4):
            d[r](lanes, total[:, g + 8 * (r // 2), 2 * t + r % 2].reshape(-1))
    return run
