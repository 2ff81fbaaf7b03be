"""Runs a kernel: all threads of all blocks at once, those at the lowest instruction first.

Threads wait where a block or a warp has to come together. It is a fault if the others never come, and if a thread takes
part in an exchange whose mask leaves it out.
"""
import numpy as np

import arithmetic
import warp
from memory import UNSIGNED, Fault, SharedMemory, dtype_of

PARAMETERS = 1 << 60  # the address of the first parameter
MOST_STEPS = 2_000_000
ALL = slice(None)


class Machine:
    def __init__(self, kernel, memory, parameters, grid, threads):
        if len(parameters) < kernel.parameter_bytes:
            raise Fault(f"the kernel has {kernel.parameter_bytes} bytes of parameters, the launch {len(parameters)}")
        self.kernel, self.memory, self.threads = kernel, memory, threads
        self.blocks = grid[0] * grid[1]
        self.count = self.blocks * threads
        self.parameters = np.frombuffer(parameters.ljust(kernel.parameter_bytes + 8, b"\0"), np.uint8)
        self.shared = SharedMemory(self.blocks, kernel.shared_bytes, threads)
        lanes = np.arange(self.count)
        block = lanes // threads
        self.block = block
        self.alive = np.full(self.blocks, threads)  # lanes of each block that have not returned
        zero = np.zeros(self.count, np.uint32)
        self.registers = {
            "%tid.x": zero + (lanes % threads).astype(np.uint32), "%laneid": zero + (lanes % 32).astype(np.uint32),
            "%ctaid.x": zero + (block % grid[0]).astype(np.uint32), "%ntid.x": zero + np.uint32(threads),
            "%ctaid.y": zero + (block // grid[0]).astype(np.uint32), "%nctaid.x": zero + np.uint32(grid[0]),
            "%nctaid.y": zero + np.uint32(grid[1]), "%tid.y": zero, "%tid.z": zero, "%ctaid.z": zero,
        }
        self.steps = [self.step(i) for i in kernel.instructions]
        self.now = None  # the instruction that runs

    # ---- Operands. ---------------------------------------------------------------------------------------------------
    def register(self, name):
        if name not in self.registers:
            prefix = name.rstrip("0123456789")
            kind = self.kernel.registers.get(prefix) or self.kernel.registers[name]
            dtype = bool if kind == "pred" else UNSIGNED[int(kind[1:]) // 8]
            self.registers[name] = np.zeros(self.count, dtype)
        return self.registers[name]

    def constant(self, operand):
        """A number, or the address of a parameter or of an array in shared memory, as bits; None for a register."""
        if operand in self.kernel.parameters:
            return PARAMETERS + self.kernel.parameters[operand]
        if operand in self.kernel.shared:
            return self.kernel.shared[operand]
        if operand[:2] in ("0f", "0F", "0d", "0D"):
            return int(operand[2:], 16)
        if operand[0] == "%":
            return None
        return int(operand.rstrip("U"), 0)

    def read(self, operand, kind):
        """A function that gives the operand's values for some lanes."""
        dtype = dtype_of(kind)
        bits = self.constant(operand)
        if bits is not None:
            value = np.full(1, bits & ((1 << 8 * dtype.itemsize) - 1), UNSIGNED[dtype.itemsize]).view(dtype)
            return lambda m: np.broadcast_to(value, self.count if m is ALL else m.shape)
        register = self.register(operand)
        if register.dtype.itemsize == dtype.itemsize:
            view = register if kind == "pred" else register.view(dtype)
            return lambda m: view[m]
        unsigned = UNSIGNED[dtype.itemsize]
        return lambda m: np.ascontiguousarray(register[m].astype(unsigned)).view(dtype)

    def write(self, operand, kind):
        """A function that sets the register `operand` for some lanes. A wider register is filled up by the sign."""
        if operand == "_":
            return lambda m, values: None
        register, dtype = self.register(operand), dtype_of(kind)
        if kind == "pred":
            view = register
        elif register.dtype.itemsize == dtype.itemsize:
            view = register.view(dtype)
        else:
            view = register.view(np.dtype(("i" if dtype.kind == "i" else "u") + str(register.dtype.itemsize)))

        def write(m, values):
            view[m] = values
        return write

    def address(self, operand):
        base, _, offset = operand[1:-1].partition("+")
        kind = "u32" if base.strip() in self.kernel.shared else "u64"
        if base[0] == "%" and self.register(base.strip()).dtype == np.uint32:
            kind = "u32"
        read, offset = self.read(base.strip(), kind), np.uint64(int(offset or "0", 0) & (2**64 - 1))
        return lambda m: read(m).astype(np.uint64) + offset

    # ---- Instructions. Each becomes a pair: what kind of step it is, and a function of lanes. ------------------------
    def step(self, i):
        name = i.words[0]
        if name in ("ret", "exit"):
            return "return", None
        if name == "bra":
            return "branch", self.kernel.labels[i.operands[-1]]
        if name in ("bar", "barrier") and "warp" not in i.words:
            if i.operands != ["0"]:
                raise NotImplementedError(i.text)
            return "barrier", None
        if name in ("bar", "barrier", "shfl", "vote", "mma"):
            return "warp", warp.make(self, i)
        if name in ("ld", "st", "atom", "red"):
            return "plain", self.access(i)
        return "plain", arithmetic.make(self, i)

    def access(self, i):
        name, kind = i.words[0], i.words[-1]
        size = int(kind[1:]) // 8
        space = next((s for s in ("shared", "param", "local", "const") if s in i.words), "global")
        if name in ("atom", "red"):
            if space != "global" or "add" not in i.words or kind[0] == "f":
                raise NotImplementedError(i.text)
            target = "_" if name == "red" else i.operands[0]
            address, values = self.address(i.operands[-2]), self.read(i.operands[-1], kind)
            write = self.write(target, kind)
            return lambda m: write(m, self.memory.add(address(m), size, values(m), dtype_of(kind)))
        at, names = (i.operands[1], i.operands[0]) if name == "ld" else (i.operands[0], i.operands[1])
        names = [n.strip() for n in names.strip("{}").split(",")]
        address, dtype = self.address(at), dtype_of(kind)
        if space == "param":
            load = self.load_parameters
        elif space in ("global", "shared"):
            load = (self.memory if space == "global" else self.shared).load
            store = (self.memory if space == "global" else self.shared).store
        else:
            raise NotImplementedError(i.text)
        if name == "ld":
            writes = [self.write(n, kind) for n in names]

            def run_load(m):
                lanes = np.arange(self.count) if m is ALL else m
                for write, values in zip(writes, load(address(m), size, len(writes), lanes)):
                    write(m, np.ascontiguousarray(values).view(dtype))
            return run_load
        unsigned = "b" + kind[1:]
        reads = [self.read(n, unsigned) for n in names]
        return lambda m: store(address(m), size, [read(m) for read in reads], np.arange(self.count) if m is ALL else m)

    def load_parameters(self, addresses, size, parts, lanes):
        at = (addresses - np.uint64(PARAMETERS)).astype(np.int64)
        if (at < 0).any() or (at + size * parts > self.kernel.parameter_bytes).any():
            raise Fault("an address outside of the parameters")
        if (at % (size * parts)).any():
            raise Fault(f"an address that is not a multiple of {size * parts}")
        values = [self.parameters[at[:, None] + (i * size + np.arange(size))] for i in range(parts)]
        return [np.ascontiguousarray(v).view(UNSIGNED[size])[:, 0] for v in values]

    # ---- Running. ----------------------------------------------------------------------------------------------------
    def run(self):
        try:
            with np.errstate(all="ignore"):
                self.run_all()
        except (Fault, NotImplementedError) as fault:
            i = self.now
            raise type(fault)(f"{i.place}: {fault}: {i.text}" if i is not None else str(fault)) from None

    def run_all(self):
        groups, waiting, steps = {0: np.arange(self.count)}, {}, 0
        while groups or waiting:
            if not groups:
                self.release(groups, waiting)
            pc = min(groups)
            lanes = groups.pop(pc)
            while lanes is not None and len(lanes):
                steps += 1
                if steps > MOST_STEPS:
                    raise Fault(f"no end after {MOST_STEPS} steps")
                pc, lanes = self.run_one(pc, lanes, groups, waiting)
                if lanes is None or pc not in groups and (not groups or min(groups) > pc):
                    continue
                add(groups, pc, lanes)
                break
        return steps

    def run_one(self, pc, lanes, groups, waiting):
        """Runs one instruction for these lanes. Returns those that continue, and where; the others are put away."""
        kind, function = self.steps[pc]
        self.now = i = self.kernel.instructions[pc]
        chosen = lanes
        if i.predicate:
            chosen = lanes[self.register(i.predicate)[lanes] != i.negated]
            if not len(chosen):
                return pc + 1, lanes
        rest = lanes if len(chosen) == len(lanes) else np.setdiff1d(lanes, chosen, assume_unique=True)
        if kind == "plain":
            function(ALL if len(chosen) == self.count else chosen)
            return pc + 1, lanes
        if rest is not lanes:
            add(groups, pc + 1, rest)
        if kind == "branch":
            return function, chosen
        if kind == "return":
            self.alive -= np.bincount(self.block[chosen], minlength=self.blocks)
            return pc, None
        arrived = np.sort(np.concatenate([waiting.pop(pc, chosen[:0]), chosen]))
        complete = self.complete(pc, arrived)
        if not complete.all():
            waiting[pc] = arrived[~complete]
        return pc + 1, self.pass_together(pc, arrived[complete])

    def complete(self, pc, arrived):
        """Which of the lanes that have arrived at this instruction have all others beside them."""
        kind, function = self.steps[pc]
        if kind == "barrier":
            return (np.bincount(self.block[arrived], minlength=self.blocks) == self.alive)[self.block[arrived]]
        return function.complete(arrived)

    def pass_together(self, pc, lanes):
        if len(lanes):
            kind, function = self.steps[pc]
            if kind == "barrier":
                self.shared.block_barriers[lanes] += 1
            else:
                function.run(lanes)
        return lanes

    def release(self, groups, waiting):
        """When nothing runs: those at a barrier whose missing threads have returned go on."""
        for pc, lanes in list(waiting.items()):
            complete = self.complete(pc, lanes)
            if complete.any():
                self.now = self.kernel.instructions[pc]
                add(groups, pc + 1, self.pass_together(pc, lanes[complete]))
                waiting[pc] = lanes[~complete]
                if not len(waiting[pc]):
                    del waiting[pc]
        if not groups:
            self.now = self.kernel.instructions[next(iter(waiting))]
            raise Fault("threads wait here for others that do not come")


def add(groups, pc, lanes):
    if len(lanes):
        groups[pc] = np.sort(np.concatenate([groups[pc], lanes])) if pc in groups else lanes
