# SPDX-License-Identifier: MIT
"""Rigs of FreeRTOS on two cores: rtos/smp.c, whose traps know who runs where, whatever the hooks say."""
import collections
import struct

from baremetal.base import BUILD, ROOT, command, need
from baremetal.rtos_rigs import Trace, expect

RTOS = ROOT / "tests" / "baremetal" / "rtos"
INCLUDE = [f"-I{RTOS / 'smp'}", f"-I{ROOT / 'examples' / 'rtos'}"]
HARTS, SEEDS = 2, 4
SLACK = 25.0                                # us between a hook and the end of its trap
ICOUNT = ["-smp", "2", "-icount", "shift=5,sleep=off"]


class Truth:
    """smp.log: counts, the jobs of each worker, and for each hart who goes on when."""
    def __init__(self, data):
        numbers = struct.unpack_from("<9I", data)
        logged, self.interrupts, self.idle = numbers[:2], numbers[2:4], numbers[5:7]
        self.ticks, self.late, ids, at = numbers[4], numbers[7], numbers[8], 36
        self.ids = [(name.split(b"\0")[0].decode(), *rest)
                    for name, *rest in struct.iter_unpack("<8s3I", data[at:at + 20 * (ids + 1)])]
        at += 20 * (ids + 1)
        self.log = []
        for count in logged:
            rows = struct.iter_unpack("<2I8s", data[at:at + 16 * count])
            self.log.append([(time / 10, name.split(b"\0")[0].decode()) for time, _, name in rows])
            at += 16 * count
        expect(at == len(data), "the log is cut off")


def check_switches(trace, truth, hart):
    """The track of a core shows who ran there, and when. Why not all to the point: the emulator may run the
    other hart between a hook and the end of its trap."""
    shown = []
    for start, _, name in trace.spans(f"CPU {hart}"):
        if not shown or shown[-1][1] != name:
            shown.append((start, name))
    noted = truth.log[hart]
    names, wanted = [s[1] for s in shown], [n[1] for n in noted]
    at = next((i for i, (a, b) in enumerate(zip(names, wanted)) if a != b), min(len(names), len(wanted)))
    expect(names == wanted, f"core {hart}: {len(names)} switches, {len(wanted)} noted; from {at} on "
                            f"{names[at:at + 8]}, noted {wanted[at:at + 8]}")
    late = sorted(n[0] - s[0] for n, s in zip(noted, shown))
    late = [time - late[0] for time in late]
    expect(late[len(late) * 9 // 10] < SLACK and late[-1] < 2000,
           f"core {hart}: switches are {late[len(late) // 2:]} us off")
    return len(noted)


def check_jobs(trace, truth):
    """A job is on the track of its task, begins and ends while that runs on some core, and none is lost."""
    running = collections.defaultdict(list)
    for hart in range(HARTS):
        for start, end, name in trace.spans(f"CPU {hart}"):
            running[name].append((start - 0.01, end + 0.01))
    jobs, tracks, moved = collections.Counter(), {}, 0
    done = [e for e in trace.events if e["name"] == "job" and "unfinished" not in e["args"]]
    for e in done:
        which, start, end = e["args"]["id"], e["ts"], e["ts"] + e["dur"]
        jobs[which] += 1
        expect(tracks.setdefault(which, e["tid"]) == e["tid"], f"worker {which} is on two tracks")
        mine = running[truth.ids[which][0]]
        expect(all(any(a <= t <= b for a, b in mine) for t in (start, end)), f"{which} did not run: {e}")
        moved += not any(a <= start and end <= b for a, b in mine)
    for which, (name, begun, ended, deleted) in enumerate(truth.ids):
        expect(ended <= jobs[which] <= begun and begun - ended <= 1,
               f"worker {which}, {name}: {jobs[which]} jobs, began {begun}, ended {ended}, deleted {deleted}")
    return len(done), moved


def check_nesting(trace):
    """Spans of one track contain each other or do not meet."""
    for track in {e["tid"] for e in trace.events if e["ph"] == "X"}:
        spans = sorted((round(e["ts"] * 1000), -round((e["ts"] + e["dur"]) * 1000), e["name"])
                       for e in trace.events if e["ph"] == "X" and e["tid"] == track)
        ends = []
        for start, end, name in spans:
            while ends and ends[-1] <= start:
                ends.pop()
            expect(not ends or -end <= ends[-1], f"{trace.tracks[track]}: {name} at {start} overlaps another")
            ends.append(-end)


def check_interrupts(trace, truth):
    for hart in range(HARTS):
        names = [n for *_, n in trace.spans(f"interrupts {hart}")]
        for name in ("irq", "receive"):
            expect(names.count(name) == truth.interrupts[hart],
                   f"core {hart}: {names.count(name)} {name}, there were {truth.interrupts[hart]}")
        ticks = names.count("tick")
        expect(abs(ticks - truth.ticks) <= 1 if hart == 0 else not ticks, f"core {hart}: {ticks} ticks")
        idle = trace.counters(f"idle ticks {hart}")[-1]
        expect(idle == truth.idle[hart] and truth.late,
               f"core {hart}: {idle} idle ticks of {truth.idle[hart]}, {truth.late} came late")
    expect(trace.counters("tick")[-1] == truth.ticks, "the counter tick")


def check(text, log):
    trace, truth = Trace(text), Truth(log)
    switches = [check_switches(trace, truth, hart) for hart in range(HARTS)]
    check_nesting(trace)
    jobs, moved = check_jobs(trace, truth)
    check_interrupts(trace, truth)
    return (*switches, jobs, moved, sum(truth.interrupts), truth.ticks)


def rig(on_machine, convert, flags):
    def test():
        sums = [0] * 6
        on_machine("riscv32", "rtos/smp.c", *INCLUDE, "-DNPUPROF_OFF", emulator=ICOUNT)
        for seed in range(SEEDS):
            folder, _ = on_machine("riscv32", "rtos/smp.c", *INCLUDE, *flags, emulator=ICOUNT,
                                   files=[f"seed-{seed}"])
            text = convert(folder / "smp.img", "--elf", folder / "fw.elf")
            found = check(text, (folder / "smp.log").read_bytes())
            sums = [a + b for a, b in zip(sums, found)]
        print(f"   freertos on two cores {' '.join(flags)}, {SEEDS} seeds: {sums[0]} and {sums[1]} switches, "
              f"{sums[2]} jobs, {sums[3]} of them moved, {sums[4]} interrupts, {sums[5]} ticks")
        expect(min(sums) > 100, "too few")
    return test


def refused():
    """What cannot be right does not compile, and a sentence says why; beside it what does."""
    clock = ["-DNPUPROF_NOW()=0u", "-DNPUPROF_NOW_HZ=1u"]
    masks = ["-DNPUPROF_MASK()=0u", "-DNPUPROF_UNMASK(before)=(void)(before)"]
    cases = [("m33", clock, None), ("m33", [], "each core has a SysTick of its own"),
             ("m0plus", clock, "needs NPUPROF_MASK()"), ("m0plus", clock + masks, None),
             ("m33", [*clock, "-DNPUPROF_CONTEXTS=6"], "NPUPROF_CONTEXTS must be"),
             ("m33", [*clock, "-DconfigNUMBER_OF_CORES=10"], "configNUMBER_OF_CORES must be"),
             ("m33", [*clock, "-DconfigNUM_CORES=2"], "several cores need FreeRTOS 11"),
             ("m33", [*clock, "-include", "npuprof_freertos.h"], "behind configNUMBER_OF_CORES")]
    need("arm-none-eabi-gcc")
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "smp-refused.c"
    freertos = ('#include "FreeRTOS.h"\n#include "task.h"\n#include "npuprof_freertos.h"\n', INCLUDE)
    threadx = ('#include "tx_api.h"\n#include "npuprof_threadx.h"\n',
               [f"-I{RTOS / 'threadx'}", INCLUDE[1], "-Dkernel_state=int", *clock])
    cases = [(*freertos, *case) for case in cases] + [
        (*threadx, "m33", [], None), (*threadx, "m33", ["-DTX_SMP_CORE_ID=0"], "ThreadX SMP runs several")]
    for text, include, cpu, flags, sentence in cases:
        program.write_text("#define NPUPROF_IMPLEMENTATION\n#define NPUPROF_NO_JSON\n"
                           "#define NPUPROF_ARENA_BYTES 4096\n" + text)
        done = command(["arm-none-eabi-gcc", "-mthumb", f"-mcpu=cortex-{cpu}", "-std=c11", "-ffreestanding",
                        "-fsyntax-only", f"-I{ROOT}", *include, *flags, program], codes=(0, 1))
        expect(done.returncode == (1 if sentence else 0) and (sentence or "") in done.stdout,
               f"{cpu} {flags}: {done.stdout[:600]}")


def rigs(on_machine, convert):
    return {"rtos-smp-refused": refused, "rtos-freertos-smp": rig(on_machine, convert, []),
            "rtos-freertos-smp-by-handle": rig(on_machine, convert, ["-DNPUPROF_FREERTOS_BY_HANDLE"]),
            "rtos-freertos-smp-mask": rig(on_machine, convert, ["-DSMP_MASK"])}
