# SPDX-License-Identifier: MIT
"""What each record costs on bare machines, and that the page says so: the rig `fields`, of fields.c."""
import itertools
import re

from baremetal.base import ROOT, need

PAGE = ROOT / "examples" / "firmware" / "README.md"
MACHINES = {"cortex-m0": [], "cortex-m4": ["-DTICK_PS=40000"], "riscv32": []}
RING, STREAM = (f"-DNPUPROF_WHEN_FULL=NPUPROF_{policy}" for policy in ("KEEP_NEWEST", "STREAM"))
SINK = "-DNPUPROF_SINK(bytes,count)=count"
POLICIES = {"oldest": [], "newest": [RING], "stream": [STREAM, SINK]}
# Record of fields.c: what the page calls it.
ROWS = {"span": "`PROF_SCOPE`", "span_with_one": "`PROF_SCOPE_ARGS` with one integer",
        "span_with_two": "with two", "span_with_four": "with four", "span_with_text": "with a string",
        "begin_end": "`PROF_BEGIN`, `PROF_END` of literals", "begin_end_of_text": "of another string",
        "counter": "`PROF_COUNTER`", "instant": "`PROF_INSTANT`", "instant_with_one": "with one integer",
        "flow": "`PROF_FLOW_OUT`", "switch": "`npuprof_switch()`", "count": "`npuprof_count()`",
        "name": "`npuprof_name()`, 11 letters", "metadata": "`npuprof_metadata()`",
        "kernel": "`WITH_NPU_PROFILER`", "poll": "`npuprof_poll()`, nothing to do",
        "part": "`npuprof_poll()`, 16 cells"}
OF_STREAM = ("poll", "part")
SHORT = ("span_with_one", "counter", "instant", "instant_with_one", "flow", "begin_end")
# Of a ring: Cortex-M0+, Cortex-M4.
GOALS = {"counter": (120, 100), "span_with_two": (220, 180)}


def records(rig, name, policy, *flags):
    """{record: (instructions, bytes of stack)} on a machine, clock reads included."""
    emulator = rig.ICOUNT if name == "riscv32" else []
    folder, _ = rig.on_machine(name, "fields.c", *MACHINES[name], *flags, *POLICIES[policy],
                               emulator=emulator)
    lines = re.findall(r"^(\S+) +(\d+) +(\d+)$", (folder / "fields.txt").read_text(), re.M)
    found = {record: (int(n), int(stack)) for record, n, stack in lines}
    wanted = [record for record in ROWS if policy == "stream" or record not in OF_STREAM]
    if sorted(found) != sorted(wanted) or min(min(pair) for pair in found.values()) < 8:
        raise AssertionError(f"{name} {policy}: {found}")
    return found


def rows_of(figures, which):
    """{record: the cells of its row}: oldest, newest and stream of each machine. which: 0 instructions, 1
    stack."""
    rows = {}
    for record, title in ROWS.items():
        cells = [" / ".join(str(figures[machine, policy][record][which]) for policy in POLICIES
                          if record in figures[machine, policy]) for machine in MACHINES]
        rows[record] = f"| {title} | " + " | ".join(cells) + " |"
    return rows


def said(text, heading):
    """The rows of the table of the page under the line that begins so."""
    table = text.partition(heading)[2].partition("\n\n")[2].partition("\n\n")[0]
    return table.splitlines()[2:]


def compare(figures):
    """The page says what the rig found, within 5 %."""
    text = PAGE.read_text(encoding="utf-8")
    for which, heading in enumerate(("Instructions of a record", "Bytes of stack")):
        rows, page = list(rows_of(figures, which).values()), said(text, heading)
        numbers = [[[int(n) for n in re.findall(r"\b\d+\b", cell)] for cell in row.split("|")[2:]]
                   for row in (*rows, *page)]
        names = [row.split("|")[1] for row in (*rows, *page)]
        pairs = list(zip(numbers[:len(rows)], numbers[len(rows):]))
        same = len(page) == len(rows) and names[:len(rows)] == names[len(rows):] and all(
            [len(cell) for cell in a] == [len(cell) for cell in b] and
            all(abs(x - y) <= 0.05 * x for p, q in zip(a, b) for x, y in zip(p, q)) for a, b in pairs)
        if not same:
            raise AssertionError(f"{PAGE.name} must say under \"{heading}\":\n" + "\n".join(rows))


def check_goals(figures):
    for machine, policy in figures:
        cost = {record: n for record, (n, _) in figures[machine, policy].items()}
        dear = [record for record in SHORT if cost[record] > 1.5 * cost["span"]]
        if machine != "riscv32" and policy == "newest":
            dear += [record for record, goals in GOALS.items()
                     if cost[record] > goals[machine == "cortex-m4"]]
        if dear:
            raise AssertionError(f"{machine}, {policy}: {', '.join(dear)} of {cost}")


def fields(rig):
    """What a record takes of instructions and stack, on three machines with each policy, is what the page
    says. Values and literals take at most 1.5 times the instructions of a plain span. A name takes at most
    600 in a ring of any size."""
    need("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
    figures = {(machine, policy): records(rig, machine, policy)
               for machine, policy in itertools.product(MACHINES, POLICIES)}
    for which in (0, 1):
        print("\n".join(f"   {row}" for row in rows_of(figures, which).values()))
    for machine, policy in itertools.product(("cortex-m0", "cortex-m4"), ("newest", "stream")):
        small = records(rig, machine, policy, "-DNPUPROF_ARENA_BYTES=2048")
        if max(small["name"][0], figures[machine, policy]["name"][0]) > 600:
            raise AssertionError(f"{machine}, {policy}: {small['name'][0]} instructions for a name")
    check_goals(figures)
    compare(figures)
