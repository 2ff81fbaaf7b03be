"""Instructions that compute a lane's registers from its registers, rounded as the PTX ISA says."""
from fractions import Fraction

import numpy as np

from memory import UNSIGNED, Fault, dtype_of

COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}
ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def round_to(values, dtype, mode):
    """Rounds doubles to a narrower type of floats, down, up, to zero or to nearest."""
    near = values.astype(dtype)
    if mode in ("rn", ""):
        return near
    back = near.astype(np.float64)
    infinity = dtype.type(np.inf)
    lower, higher = np.nextafter(near, -infinity), np.nextafter(near, infinity)
    down = (mode == "rm") | ((mode == "rz") & (values > 0))
    up = (mode == "rp") | ((mode == "rz") & (values < 0))
    return np.where(down & (back > values), lower, np.where(up & (back < values), higher, near))


def multiply_add(x, y, z, mode):
    """x y + z of floats, rounded once: a double holds the product, and the sum is rounded to odd before."""
    product, z = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    bits = total.view(np.int64).copy()
    odd = (lost != 0) & np.isfinite(total) & (bits & 1 == 0)
    bits[odd] += np.where((lost[odd] > 0) == (total[odd] > 0), 1, -1)
    return round_to(bits.view(np.float64), np.dtype(np.float32), mode)


def multiply_add_doubles(x, y, z):
    def one(a, b, c):
        if not np.isfinite(a) or not np.isfinite(b) or not np.isfinite(c):
            return a * b + c
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        return float(exact) if exact != 0 else a * b + c
    return np.array([one(*numbers) for numbers in zip(x, y, z)])


def divide(x, y, kind, remainder):
    if kind[0] == "f":
        return x / y
    if (y == 0).any():
        raise Fault("a division by zero")
    if kind[0] == "s" and ((x < 0) | (y < 0)).any():
        quotient = np.abs(x) // np.abs(y) * (np.sign(x) * np.sign(y))
    else:
        quotient = x // y
    return x - quotient * y if remainder else quotient


def high_product(x, y):
    bits = 8 * x.dtype.itemsize
    return np.array([int(a) * int(b) >> bits for a, b in zip(x, y)]).astype(x.dtype)


def least(x, y, largest, spreads):
    """The smaller or the larger; of floats one that is a number, unless NaN spreads. -0 is below 0."""
    if x.dtype.kind != "f":
        return np.maximum(x, y) if largest else np.minimum(x, y)
    result = np.fmax(x, y) if largest else np.fmin(x, y)
    minus = np.signbit(x) & np.signbit(y) if largest else np.signbit(x) | np.signbit(y)
    result = np.where((x == 0) & (y == 0), np.copysign(x.dtype.type(0), np.where(minus, -1, 1)), result)
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), result) if spreads else result


def compare(x, y, how):
    if how in COMPARE:
        result = COMPARE[how](x, y)
        return result & ~np.isnan(x) & ~np.isnan(y) if how == "ne" and x.dtype.kind == "f" else result
    unordered = np.isnan(x) | np.isnan(y)
    return unordered if how == "nan" else ~unordered if how == "num" else COMPARE[how[:-1]](x, y) | unordered


def shift(x, by, left):
    bits = 8 * x.dtype.itemsize
    inside = np.minimum(by, np.uint32(bits - 1)).astype(x.dtype)
    result = x << inside if left else x >> inside
    return result if x.dtype.kind == "i" and not left else np.where(by >= bits, x.dtype.type(0), result)


def convert(x, source, target, words):
    dtype = dtype_of(target)
    if source[0] == "f" and target[0] != "f":
        whole = ROUND[next(w for w in words if w in ROUND)](x.astype(np.float64))
        limits = np.iinfo(dtype)
        inside = np.where(np.isnan(whole) | (whole <= limits.min) | (whole >= limits.max), 0, whole).astype(dtype)
        return np.where(np.isnan(whole), dtype.type(0), np.where(whole <= limits.min, limits.min, np.where(
            whole >= limits.max, limits.max, inside))).astype(dtype)
    if source[0] == "f":
        for mode in set(words) & set(ROUND):
            x = ROUND[mode](x)
        if "sat" in words:
            x = np.where(np.isnan(x), x.dtype.type(0), np.clip(x, 0, 1))
        if dtype.kind == "f":
            return round_to(x.astype(np.float64), dtype, next((w for w in words if w in ("rm", "rp", "rz")), "rn"))
    return x.astype(dtype)


def approximate(name, x):
    """A GPU gives a few last places more or less."""
    wide = x.astype(np.float64)
    function = {
        "ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v),
        "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    }[name]
    return function(wide).astype(x.dtype)


def flush(x):
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def permute(x, y, selector):
    both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
    result = np.zeros(len(both), np.uint32)
    for i in range(4):
        choice = selector >> np.uint32(4 * i)
        byte = (both >> (np.uint64(8) * (choice & np.uint32(7)).astype(np.uint64)) & np.uint64(255)).astype(np.uint32)
        byte = np.where(choice & np.uint32(8), np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0)), byte)
        result |= byte << np.uint32(8 * i)
    return result


def insert_bits(x, y, position, length):
    dtype = x.dtype.type
    position, length = position.astype(x.dtype), length.astype(x.dtype)
    bits = 8 * x.dtype.itemsize
    ones = np.where(length >= bits, ~dtype(0), (dtype(1) << np.minimum(length, dtype(bits - 1))) - dtype(1))
    return (y & ~(ones << position)) | ((x & ones) << position)


def bits_of(x):
    """The bits of each number, the highest first."""
    highest_first = np.ascontiguousarray(x).astype(x.dtype.newbyteorder(">")).view(np.uint8)
    return np.unpackbits(highest_first.reshape(len(x), -1), axis=1)


def count_ones(x):
    return bits_of(x).sum(axis=1).astype(np.uint32)


def count_leading_zeros(x):
    bits = bits_of(x)
    return np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1]).astype(np.uint32)


def reverse_bits(x):
    return np.packbits(bits_of(x)[:, ::-1], axis=1).view(x.dtype.newbyteorder(">"))[:, 0].astype(x.dtype)


SIMPLE = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "neg": np.negative, "abs": np.abs,
    "copysign": lambda x, y: np.copysign(y, x), "popc": count_ones, "clz": count_leading_zeros, "brev": reverse_bits,
}


def make(machine, i):
    """A function that runs instruction `i` for some lanes."""
    name, kind, words, operands = i.words[0], i.words[-1], i.words, i.operands
    if name == "mov":
        return make_move(machine, i)
    if name == "trap":
        return trap
    # Bits of floats and of whole numbers are moved, compared and combined alike.
    read = lambda n, k=kind: machine.read(operands[n], k)  # noqa: E731
    if name == "cvta":
        x, write = read(1, "u64"), machine.write(operands[0], "u64")
        return lambda m: write(m, x(m))
    if name == "cvt":
        source, target = words[-1], words[-2]
        if set(words[1:-2]) - ({*ROUND, "rn", "rm", "rp", "rz", "sat"} if source[0] == "f" else {"rn"}):
            raise NotImplementedError(i.text)
        x, write = read(1, source), machine.write(operands[0], target)
        return lambda m: write(m, convert(x(m), source, target, words))
    if name == "setp":
        if len(operands) != 3 or "|" in operands[0] or words[2] != kind:
            raise NotImplementedError(i.text)
        x, y, write = read(1), read(2), machine.write(operands[0], "pred")
        return lambda m: write(m, compare(x(m), y(m), words[1]))
    if name == "selp":
        kind = "b" + kind[1:]
        x, y, p, write = read(1, kind), read(2, kind), read(3, "pred"), machine.write(operands[0], kind)
        return lambda m: write(m, np.where(p(m), x(m), y(m)))
    if name in ("shl", "shr"):
        x, by, write = read(1), read(2, "u32"), machine.write(operands[0], kind)
        return lambda m: write(m, shift(x(m), by(m), name == "shl"))
    if name == "prmt" and len(words) == 2:
        x, y, selector, write = read(1), read(2), read(3), machine.write(operands[0], kind)
        return lambda m: write(m, permute(x(m), y(m), selector(m)))
    if name == "bfi":
        x, y, position, length = read(1), read(2), read(3, "u32"), read(4, "u32")
        write = machine.write(operands[0], kind)
        return lambda m: write(m, insert_bits(x(m), y(m), position(m), length(m)))
    if name == "bfind" and kind[0] == "u":
        x, write, bits = read(1), machine.write(operands[0], "u32"), int(kind[1:])
        none, last = np.uint32(0xffffffff), np.uint32(0 if "shiftamt" in words else bits - 1)
        return lambda m: write(m, np.where(x(m) == 0, none, count_leading_zeros(x(m)) ^ last))
    if name in ("mul", "mad", "fma"):
        return make_product(machine, i)
    if name in ("div", "rem", "rcp", "sqrt", "ex2", "lg2", "rsqrt", "sin", "cos", "tanh"):
        return make_division(machine, i)
    if name in ("min", "max"):
        x, y, write = read(1), read(2), machine.write(operands[0], kind)
        if set(words[1:-1]) - {"NaN"}:
            raise NotImplementedError(i.text)
        return lambda m: write(m, least(x(m), y(m), name == "max", "NaN" in words))
    if name not in SIMPLE or set(words[1:-1]) - {"rn"}:
        raise NotImplementedError(i.text)
    write = machine.write(operands[0], "u32" if name in ("popc", "clz") else kind)
    reads, function = [read(n) for n in range(1, len(operands))], SIMPLE[name]
    return lambda m: write(m, function(*(r(m) for r in reads)))


def trap(m):
    raise Fault("a trap")


def make_move(machine, i):
    kind = i.words[-1] if i.words[-1] == "pred" else "b" + i.words[-1][1:]
    target, source = i.operands
    if target[0] == "{":  # low part first
        parts = [n.strip() for n in target[1:-1].split(",")]
        bits = int(kind[1:]) // len(parts)
        read, writes = machine.read(source, kind), [machine.write(n, f"b{bits}") for n in parts]

        def split(m):
            values = read(m)
            for n, write in enumerate(writes):
                write(m, (values >> values.dtype.type(n * bits)).astype(UNSIGNED[bits // 8]))
        return split
    if source[0] == "{":
        parts = [n.strip() for n in source[1:-1].split(",")]
        bits, dtype = int(kind[1:]) // len(parts), dtype_of(kind)
        reads, write = [machine.read(n, f"b{bits}") for n in parts], machine.write(target, kind)
        return lambda m: write(m, sum(read(m).astype(dtype) << dtype.type(n * bits) for n, read in enumerate(reads)))
    read, write = machine.read(source, kind), machine.write(target, kind)
    return lambda m: write(m, read(m))


def make_product(machine, i):
    name, kind, words = i.words[0], i.words[-1], i.words
    wide = kind[0] + str(2 * int(kind[1:])) if "wide" in words else kind
    x, y = machine.read(i.operands[1], kind), machine.read(i.operands[2], kind)
    z = machine.read(i.operands[3], wide) if len(i.operands) == 4 else None
    write, dtype = machine.write(i.operands[0], wide), dtype_of(wide)
    if set(words[1:-1]) - ({"rn", "rm", "rp", "rz", "sat"} if name == "fma" else {"rn", "lo", "hi", "wide"}):
        raise NotImplementedError(i.text)
    if name == "fma" and kind == "f32":
        mode = next(w for w in words if w in ("rn", "rm", "rp", "rz"))
        saturate = (lambda v: np.where(np.isnan(v), np.float32(0), np.clip(v, 0, 1))) if "sat" in words else lambda v: v
        return lambda m: write(m, saturate(multiply_add(x(m), y(m), z(m), mode)))
    if name == "fma":
        if kind != "f64" or "rn" not in words:
            raise NotImplementedError(i.text)
        return lambda m: write(m, multiply_add_doubles(x(m), y(m), z(m)))
    product = high_product if "hi" in words else lambda a, b: a.astype(dtype) * b.astype(dtype)
    if z is None:
        return lambda m: write(m, product(x(m), y(m)))
    if kind[0] == "f":
        raise NotImplementedError(i.text)
    return lambda m: write(m, product(x(m), y(m)) + z(m))


def make_division(machine, i):
    name, kind, words = i.words[0], i.words[-1], i.words
    x, write = machine.read(i.operands[1], kind), machine.write(i.operands[0], kind)
    if set(words[1:-1]) - {"rn", "approx", "ftz"}:
        raise NotImplementedError(i.text)
    if name in ("div", "rem"):
        if kind[0] == "f" and "rn" not in words:
            raise NotImplementedError(i.text)
        y = machine.read(i.operands[2], kind)
        return lambda m: write(m, divide(x(m), y(m), kind, name == "rem"))
    if "approx" in words:
        before = flush if "ftz" in words else lambda v: v
        return lambda m: write(m, before(approximate(name, before(x(m)))))
    if "rn" not in words or name not in ("rcp", "sqrt"):
        raise NotImplementedError(i.text)
    return lambda m: write(m, np.sqrt(x(m)) if name == "sqrt" else x(m).dtype.type(1) / x(m))
