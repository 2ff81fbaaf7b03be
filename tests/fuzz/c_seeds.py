"""Seeds of the fuzz targets of the C interface: calls by number, and the bytes that they take."""

import struct


def all_seeds():
    """(target, name, calls) of each seed."""
    yield from c_interface_seeds()
    yield from c_deployment_seeds()
    yield from c_text_seeds()


def c_interface_seeds():
    """Calls by number and the bytes they take, as in c_interface_fuzz.cc."""
    open_model = bytes([0, 0, 0, 0, 0])  # open: choice, size, model, path
    open_tuned = bytes([0, 0, 0, 1, 2])
    history = bytes([3, 0, 1, 2])
    recommend = bytes([4, 0, 0, 0]) + history + bytes([5, 1])
    batch = bytes([5, 0, 0, 0, 2]) + history + history + bytes([112 + 2, 0, 3])
    log = bytes([8, 0]) + b"".join(
        bytes([9, user * 2 + 1, item]) + struct.pack("<q", item) for user in range(3) for item in range(4)
    )
    ask = bytes([3, 0, 2]) + b"10" + struct.pack("<i", 2)
    plan = bytes([2, 0, 0, 0, 0]) + struct.pack("<IHI", 100, 2, 0) + bytes([0, 0])
    ledgerless = (
        bytes([6, 0, 0, 0, 0, 1])
        + struct.pack("<d", 0.01)
        + struct.pack("<d", 1e-6)
        + struct.pack("<I", 100)
        + bytes([0, 1, 0])
    )
    sampler = bytes([6, 0, 0, 0, 0, 8 | 16 | 1]) + struct.pack("<d", 0.01) + bytes([0, 1, 0])
    sample = bytes([7, 0, 0]) + history + bytes([2, 1])
    state = bytes([12, 0, 100])
    yield ("c_interface", "recommend", open_model + ask + recommend + batch + recommend + bytes([1, 0]))
    yield ("c_interface", "plan", plan)
    yield ("c_interface", "log", open_model + log + bytes([10, 4, 0, 1]))
    yield ("c_interface", "sample-free", open_model + ledgerless + sample + sample + state)
    yield (
        "c_interface",
        "sample",
        open_tuned
        + bytes([6, 0, 1, 0, 0, 8 | 16 | 1])
        + struct.pack("<d", 0.01)
        + bytes([0, 1, 0])
        + bytes([7, 0, 0])
        + history
        + bytes([2, 1])
        + bytes([12, 2, 100]),
    )
    yield ("c_interface", "sample-shut", sampler + sample)
    yield ("c_interface", "personalise", log + bytes([11, 0x94, 0, 0, 255, 0, 0]) + state)
    yield ("c_interface", "refused", log + bytes([11, 0x88]) + struct.pack("<ddI", 8, 1e-3, 100) + bytes([0, 0, 0, 0]))


def c_deployment_seeds():
    """Makes the calls of c_deployment_fuzz.cc. A result's struct takes two bytes, its size and whether it is NULL."""
    result = bytes(2)
    whole = bytes([0, 0, 0, 0, 0, 0])  # how a model is opened: choice, backend, verify, threads, cache, size
    memory = bytes([0, 0, 0, 0, 0]) + whole + bytes([0])
    within = bytes([1, 0]) + whole + bytes(2)
    tell = bytes([2]) + result + result + bytes([0]) + result + whole + bytes([0]) + bytes([3, 0, 1, 2])
    events = bytes([3, 15]) + bytes((i * 37 + i // 3) % 200 // 7 * 7 + 1 for i in range(15)) + bytes(1)
    count = bytes([5]) + result + bytes([0, 100, 0, 0, 4])
    erase, prune = bytes([4, 3]), bytes([4, 192, 1, 1]) + bytes(8) + bytes(3)
    plan = lambda anchor: bytes([6, 0xF0, 0, 0, 1, 2, 0]) + anchor + bytes([0]) + result + bytes([0])
    run_planned = lambda anchor: bytes([7, 3, 0, 0, 0, 0, 3]) + anchor + bytes([0]) + result + bytes([0])
    budget = lambda anchor: bytes([8, 0]) + result + bytes([0]) + anchor + bytes([200, 0])
    none, kept = bytes([0]), bytes([200, 0, 0])
    add = bytes([10, 1, 0, 0, 2, 0, 1]) + b"x"
    retire = bytes([10, 0, 0, 0, 1, 2])
    rebase = bytes([9, 0, 0, 3, 0]) + result
    evaluate = bytes([11, 0, 0]) + result + bytes([1])
    describe = bytes([12, 1, 0, 0, 100, 0])
    yield ("c_deployment", "memory", memory + tell)
    yield ("c_deployment", "descriptor", within + tell + describe)
    yield ("c_deployment", "log", events + count + erase + count + prune + count + evaluate)
    yield ("c_deployment", "catalogue", add + retire + rebase)
    yield ("c_deployment", "deployment", events + plan(none) + run_planned(none) + run_planned(none) + budget(none))
    yield ("c_deployment", "anchored", events + plan(kept) + run_planned(kept) + budget(kept))


def c_text_seeds():
    """Makes the calls of c_text_fuzz.cc."""
    opened = lambda number, path: bytes([0, 0, 0, 8 | 4 | 2, 0, number, path])
    text = bytes([1])  # "a good film"
    options = bytes([0, 6, 0, 0])  # choice, new tokens, seed, size
    generate = lambda number: bytes([5, number]) + options + bytes([15, 0]) + text + bytes(2)
    together = bytes([5, 0]) + options + bytes([15, 1, 2]) + text + text + bytes([0, 0, 0, 2, 1])
    understand = lambda number: bytes([4, number]) + text + bytes([0, 0])
    tokenize = lambda number: bytes([3, number]) + text + bytes([40, 0])
    tell = lambda number: bytes([2, number, 0, 0]) + bytes(4)
    ending = bytes([1, 0, 0, 0]) + text + bytes(4)  # of a generator: samples a charge, size, model, texts
    free = bytes([6, 1 | 2, 16 | 32 | 64, 0]) + ending
    mixed = bytes([6, 0, 1 | 16 | 32 | 64, 1]) + struct.pack("<d", 0.01) + ending
    sample = bytes([7]) + options + text + bytes([0, 0, 1])
    train = bytes([8, 0, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0])
    yield ("c_text", "decoder", opened(0, 0) + tell(0) + tokenize(0) + generate(0) + generate(0) + together)
    yield ("c_text", "encoder", opened(1, 2) + tell(1) + tokenize(1) + understand(1))
    yield ("c_text", "classes", opened(2, 3) + tell(2) + understand(2))
    yield ("c_text", "free", opened(0, 0) + free + sample)
    yield ("c_text", "mixed", opened(0, 4) + mixed + sample + sample)
    yield ("c_text", "train", train)
