# SPDX-License-Identifier: MIT
"""Programs for the device of the planted cases, and its description."""

from .model import Instr

PEAK = 1000                 # operations a ns, of one PE
NEAR = 0.98                 # of the peak, where an operator is as fast as it can be
TOML = """\
[device]
name = "npu0"
pe_count = {pes}
queue_slots = 16

[peaks]
ops_per_s = {peak}
bytes_per_s = 20_000_000_000

[operators]
LOAD = {{ code = 1, name = "Load", engine = "dma" }}
STORE = {{ code = 2, name = "Store", engine = "dma" }}
MATMUL = {{ code = 3, name = "MatMul", engine = "matrix", lanes = 4 }}
CONV2D = {{ code = 4, name = "Conv2d", engine = "matrix", lanes = 4 }}
PAD = {{ code = 5, name = "Pad", engine = "vector" }}
CONV1 = {{ code = 6, name = "conv1", engine = "matrix", lanes = 4 }}
OP1 = {{ code = 11, name = "op1", engine = "matrix", lanes = 4 }}
OP2 = {{ code = 12, name = "op2", engine = "matrix", lanes = 4 }}
OP3 = {{ code = 13, name = "op3", engine = "matrix", lanes = 4 }}
OP4 = {{ code = 14, name = "op4", engine = "matrix", lanes = 4 }}
OP5 = {{ code = 15, name = "op5", engine = "matrix", lanes = 4 }}
OP6 = {{ code = 16, name = "op6", engine = "matrix", lanes = 4 }}
OP7 = {{ code = 17, name = "op7", engine = "matrix", lanes = 4 }}
OP8 = {{ code = 18, name = "op8", engine = "matrix", lanes = 4 }}
"""


def ops(ns, share=NEAR):
    """The arguments of an operator that does that share of the peak."""
    return {"ops": int(ns * PEAK * share), "bytes": ns}


def load(ns, number, after=()):
    return Instr("Load", "dma", ns, after, None, number, {"bytes": int(ns * 20 * 0.97)})


def store(ns, after, number):
    return Instr("Store", "dma", ns, after, None, number, {"bytes": int(ns * 20 * 0.97)})


def one_op(ns):
    """Load, one operator near the peak, Store."""
    moved = min(4000, ns // 100)
    work = ns - 2 * moved

    def program(_):
        return [load(moved, 0), Instr("MatMul", "matrix", work, (0,), None, 0, ops(work)),
                store(moved, (1,), 1)]
    return program


def bank(long=("", 0), each=120_000, load_ns=20_000):
    """op1 to op8, each with weights that are loaded into one of two banks while the one before computes.

    long: (operator, ns of its Load)."""
    def program(_):
        out, users = [load(4000, 0)], []
        for k in range(1, 9):
            ns = long[1] if long[0] == f"op{k}" else load_ns
            out.append(load(4000 if k == 1 else ns, k, (users[k - 3],) if k > 2 else ()))
            before = (0, len(out) - 1, *users[-1:])
            users.append(len(out))
            out.append(Instr(f"op{k}", "matrix", each, before, None, k, ops(each)))
        out.append(store(4000, (users[-1],), 9))
        return out
    return program


def pipelined(matrix, vector):
    """A matrix operator, and a vector operator that follows it at half of its rows; and the same again."""
    def program(_):
        return [load(4000, 0), Instr("Conv2d", "matrix", matrix // 2, (0,), None, 0),
                Instr("Pad", "vector", vector // 2, (), (1, 0.5), 1),
                Instr("Conv2d", "matrix", matrix // 2, (2,), None, 2),
                Instr("Pad", "vector", vector // 2, (), (3, 0.5), 3), store(4000, (4,), 4)]
    return program


def padded(ns, channels):
    """conv1 with that many useful channels of 4, then an operator near the peak."""
    def program(_):
        useful = int(100_000 * PEAK * 0.96)
        conv = {"ops": useful, "executed_ops": useful * 4 // channels, "bytes": 1000}
        return [load(4000, 0), Instr("conv1", "matrix", ns, (0,), None, 0, conv),
                Instr("MatMul", "matrix", 500_000, (1,), None, 1, ops(500_000)), store(4000, (2,), 2)]
    return program


def capped(factor):
    """op1 to op3; factor(inference, name) stretches each, and also the transfers by factor(i, "Load")."""
    def program(i):
        out = [load(round(4000 * factor(i, "Load")), 0)]
        for k in (1, 2, 3):
            ns = round(330_000 * factor(i, f"op{k}"))
            out.append(Instr(f"op{k}", "matrix", ns, (len(out) - 1,), None, k - 1, ops(330_000)))
        out.append(store(round(4000 * factor(i, "Store")), (len(out) - 1,), 3))
        return out
    return program
