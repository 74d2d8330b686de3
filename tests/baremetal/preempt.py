# SPDX-License-Identifier: MIT
"""An interrupt that records, at every instruction of every record function: the rigs of preempt.c.

What is true is known from the rounds that the program logs: the clock moves only in the interrupt, so the
times of each record, and its number, are known. Which instructions ran is known from the emulator's own list
of a run without interrupts.
"""
import bisect
import collections
import json
import re
import struct

from baremetal.base import command
from baremetal.masked import MOST

# For each operation of preempt.c, in its order: the events that it records, and how many are notes.
OPERATIONS = [["X span"], ["X first", "X second"], ["X list"], ["X one"], ["C counter"], ["i instant"],
              ["i instant of one"], ["i instant of two"], ["X outer by hand", "X by hand"], ["X record"], [],
              ["X async"], ["X finished"], ["C host", "i tag"], ["C host", "i tag"],
              [], ["C number 7"], ["X number 5"], [], [], [], ["X number 6", "X number 8"], [],
              ["X result"], [], [], [], ["X sent", "X sent inner"]]
SLEPT, LEFT = 22, 24
STARTED_BEFORE = "X number 4"                      # what LEFT as an interrupt ends, in context 1
SENT_OPEN = (STARTED_BEFORE, "X sent", "X sent inner")   # whose end may be lost alone
SLEEP = 1 << 33
VALUE_OF = {"result": "n", "sent inner": "n", "list": "n", "one": "n", "instant of one": "n",
            "instant of two": "n", "counter": "value"}
OF_TRACKS = ("X async", "X finished")              # of no context
RING_EVENTS = 5                                    # that surely fit into the 59 cells of a ring
FIRST = 100                                        # the clock at the start of the trace


def rounds_of(path):
    words = struct.iter_unpack("<5I", path.read_bytes())
    return [{"operation": a >> 24, "interrupt": a >> 16 & 255, "context": a >> 8 & 255, "fired": a & 3,
             "unread": a & 4, "ticks": b, "before": c, "number": d, "where": e} for a, b, c, d, e in words]


def events_of(text):
    """Host events: name with its phase, start, end, context, arguments. Sleep is taken out of the times."""
    found = []
    for e in json.loads(text)["traceEvents"]:
        if e["ph"] not in "XCi" or e["name"] in ("fills", "slept"):
            continue
        start = round(e["ts"] * 1000) + FIRST
        end = start + round(e.get("dur", 0) * 1000)
        found.append((f"{e['ph']} {e['name']}", start % SLEEP, end % SLEEP, e["tid"] - 1, e.get("args", {})))
    return found


def check_round(r, events, jump, full):
    """The events of one round. The clock stands at four times: the operation's are of the first and the
    third, the interrupt's of the second, and of the fourth if it is another hart that was stopped, too.
    full: some may be missing."""
    wanted = [(name, True) for name in OPERATIONS[r["operation"]]]
    wanted += [(name, False) for name in OPERATIONS[r["interrupt"]] if r["fired"]]
    wanted += [(STARTED_BEFORE, True)] * (r["interrupt"] == LEFT)
    times = [r["before"] + n * jump for n in range(4)]
    got = []
    for name, start, end, context, args in events:
        of_task = start not in times[1::2]
        if full and name in SENT_OPEN and end > times[3]:
            end = times[2 if name != STARTED_BEFORE and r["fired"] else 1 if r["fired"] else 0]
        if name == STARTED_BEFORE:
            if start != times[0] or end not in (times[1::2] if r["fired"] else times[:1]) or context != 1:
                raise AssertionError(f"{r}: {name} from {start} to {end} in context {context}")
            got.append((name, True))
            continue
        could = times[0::2] if r["fired"] and of_task else times[0:1] if of_task else times[1::2][:r["fired"]]
        if name != "X finished" and not {start, end} <= set(could):         # which has times of its own
            raise AssertionError(f"{r}: {name} from {start} to {end}")
        number = args.get(VALUE_OF.get(name[2:]), r["number"] if full else None)
        if name[2:] in VALUE_OF and number != r["number"]:
            raise AssertionError(f"{r}: {name} has {args}")
        if name not in OF_TRACKS and context != (0 if of_task else r["context"]):
            raise AssertionError(f"{r}: {name} in context {context}")
        got.append((name, of_task))
    missing, more = collections.Counter(wanted), collections.Counter(got)
    if more - missing or missing - more and not full:
        raise AssertionError(f"{r}: has {sorted(got)}, wanted {sorted(wanted)}")


def check_nesting(r, events):
    """Spans of one context contain one another or do not meet."""
    spans = [(start, end, context) for name, start, end, context, _ in events if name[0] == "X" and
             name not in OF_TRACKS]
    for i, (start, end, context) in enumerate(spans):
        for other_start, other_end, other_context in spans[i + 1:]:
            if context == other_context and start < other_start < end < other_end:
                raise AssertionError(f"{r}: spans overlap: {spans}")


def check_newest(rounds, by_round):
    """The newest events are all there, as many as surely fit; what is missing is older."""
    found = 0
    for r, events in zip(reversed(rounds), reversed(by_round)):
        interrupt = OPERATIONS[r["interrupt"]] if r["fired"] else []
        if len(events) < len(OPERATIONS[r["operation"]]) + len(interrupt):
            break
        found += len(events)
    if found < min(RING_EVENTS, sum(len(OPERATIONS[r["operation"]]) for r in rounds)):
        raise AssertionError(f"{rounds[-1]}: only the newest {found} events are there")


def check_batch(text, rounds, jump, full, newest):
    by_round = [[] for _ in rounds]
    starts = [r["before"] for r in rounds]
    numbers = {r["number"]: i for i, r in enumerate(rounds)}
    for e in events_of(text):
        if e[0] == "X finished":                   # its times are its number, in ns since the start
            at = numbers.get(e[1] - FIRST, -1)
        else:
            at = bisect.bisect(starts, e[1]) - 1
        if at < 0:
            raise AssertionError(f"an event of no round: {e}")
        by_round[at].append(e)
    for r, events in zip(rounds, by_round):
        if r["unread"]:
            continue
        check_round(r, events, jump, full or newest)
        check_nesting(r, [e for e in events if not full or e[0] not in SENT_OPEN])
    if newest:
        check_newest(rounds, by_round)


def check_stream(folder, convert, jump, full):
    """All that the sink got is one trace, and what it lacks was counted."""
    rounds = [r for log in sorted(folder.glob("*.log")) for r in rounds_of(log)]
    text = convert(folder / "stream.img", "--elf", folder / "fw.elf")
    trace = json.loads(text)
    # A record of memory is two of them, sleep is a note, and an asynchronous span two records.
    weights = {"slept": 0, "tag": 0, "async": 2}
    count = sum(weights.get(e["name"], 1) for e in trace["traceEvents"] if e["ph"] in "XCi")
    recorded, lost = struct.unpack("<2I", (folder / "stats").read_bytes())
    if count != recorded or (lost == 0) == full:
        raise AssertionError(f"{count} events of {recorded} are there, {lost} were lost")
    check_batch(text, rounds, jump, full, False)
    return rounds


def check_images(folder, convert, jump, full, newest, every):
    """Every n-th batch; the rounds of all. full: some records did not fit. newest: of a ring."""
    rounds = []
    for log in sorted(folder.glob("*.log")):
        batch = rounds_of(log)
        rounds += batch
        if int(log.stem) % every == 0:
            check_batch(convert(log.with_suffix(".img"), "--elf", folder / "fw.elf"), batch, jump, full,
                        newest)
    return rounds


def instructions_of(folder, objdump):
    """Address and text of each instruction of the recorder's functions; where the first operation begins."""
    found, name, first = {}, "", 0
    for line in command([objdump, "-d", "--no-show-raw-insn", folder / "fw.elf"]).stdout.splitlines():
        if m := re.match(r"[0-9a-f]+ <(\S+)>:", line):
            name = m.group(1)
            first = int(line.split()[0], 16) if name == "span" else first
        elif name.startswith("npuprof_") and (m := re.match(r"\s*([0-9a-f]+):\s+(.*)", line)):
            found[int(m.group(1), 16)] = m.group(2)
    return found, first


MASKS = r"cpsid\s+i|csrrci?\s.*mstatus,8"
UNMASKS = r"msr\s+PRIMASK|csrs\s+mstatus"


def check_places(folder, objdump, run, rounds):
    """Each instruction of the recorder that runs was interrupted once, but those with interrupts masked.
    Returns how many were, and the longest run of instructions with interrupts masked."""
    text, first = instructions_of(folder, objdump)
    (folder / "quiet").touch()
    log = ["-singlestep", "-d", "exec,nochain", "-D", "trace.txt"]
    command([*run[:-1], *log, run[-1], "fw.elf"], cwd=folder)
    (folder / "quiet").unlink()
    ran = [int(a, 16) for a in re.findall(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)",
                                          (folder / "trace.txt").read_text(), re.M)]
    where, open_places, masked, length, longest = {r["where"] for r in rounds}, set(), False, 0, 0
    for address in ran[ran.index(first):]:
        if not masked and address in text:
            open_places.add(address)
        length = length + 1 if masked else 0
        if re.match(MASKS, text.get(address, "")):
            masked = True
        elif re.match(UNMASKS, text.get(address, "")):
            longest, masked = max(longest, length), False
    missed = sorted(open_places - where)
    if missed:
        raise AssertionError(f"{len(missed)} of {len(open_places)} instructions were never interrupted: "
                             + ", ".join(f"{a:x} {text[a]}" for a in missed[:8]))
    return len(open_places), longest


# Rig: machine, flags, one in how many batches is read on the host.
QUICK = {"preempt-cortex-m0": ("cortex-m0", ["-DCLOCK_BITS=16"], 4),
         "preempt-cortex-m3": ("cortex-m3", ["-DCLOCK_BITS=16"], 4),
         "preempt-riscv32": ("riscv32", [], 8),
         "preempt-full": ("cortex-m3", ["-DFULL"], 8),
         "preempt-newest": ("cortex-m3", ["-DNEWEST"], 2),
         "preempt-newest-cortex-m0": ("cortex-m0", ["-DNEWEST"], 2),
         "preempt-stream-cortex-m0": ("cortex-m0", ["-DSTREAM"], 1),
         "preempt-stream-cortex-m3": ("cortex-m3", ["-DSTREAM"], 1),
         "preempt-stream-full": ("cortex-m3", ["-DSTREAM", "-DFULL"], 1),
         "preempt-stream-harts": ("riscv32", ["-DSTREAM", "-DHARTS"], 1),
         "preempt-harts": ("riscv32", ["-DHARTS"], 32)}
MACHINES = ("cortex-m0", "cortex-m3", "riscv32", "riscv32-no-atomics")
VARIANTS = [[], ["-DCLOCK_BITS=16"], ["-DFULL"], ["-DNEWEST"], ["-DSTREAM"], ["-DSTREAM", "-DFULL"]]
SOAK = {f"preempt-all-{machine}{''.join(flags).lower()}": (machine, flags, 1)
        for machine in MACHINES for flags in VARIANTS}
SOAK |= {f"preempt-all-harts{''.join(flags).lower()}": ("riscv32", ["-DHARTS", *flags], 16)
         for flags in VARIANTS}
# An instruction takes longer than two ticks of the machine's timer.
SHIFTS = {"cortex-m0": 6, "cortex-m3": 6, "riscv32": 8, "riscv32-no-atomics": 8}


def preempted(machine, flags, every, everything, rig):
    """rig: what runs programs, see run.py."""
    emulator = ["-icount", f"shift={SHIFTS[machine]},sleep=off"]
    emulator += ["-smp", "2"] if "-DHARTS" in flags else []
    jump = 0x6000 if "-DCLOCK_BITS=16" in flags else 7
    folder, _ = rig.on_machine(machine, "preempt.c", *flags, emulator=emulator,
                               files=["all"] if everything else [], seconds=7200 if everything else 240)
    full = "-DFULL" in flags
    if "-DSTREAM" in flags:
        rounds = check_stream(folder, rig.convert, jump, full)
    else:
        rounds = check_images(folder, rig.convert, jump, full, newest="-DNEWEST" in flags, every=every)
    print(f"   {machine} {' '.join(flags)}: {len(rounds)} rounds")
    if {"-DHARTS", "-DFULL", "-DNEWEST", "-DSTREAM"} & set(flags):
        return
    objdump = rig.MACHINES[machine]["cc"][0].replace("gcc", "objdump")
    count, longest = check_places(folder, objdump, rig.MACHINES[machine]["run"], rounds)
    print(f"   {machine}: {count} instructions were interrupted; at most {longest} with interrupts masked")
    if longest > MOST:
        raise AssertionError(f"{longest} instructions with interrupts masked, at most {MOST}")
