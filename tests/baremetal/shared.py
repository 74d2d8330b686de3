# SPDX-License-Identifier: MIT
"""The rig of an NPU's firmware in shared memory: examples/firmware/shared_npu.c on an emulated RISC-V,
shared_host.c and npuprof-convert --live on the host, and merge. One timeline comes out, and what it states of
its error is compared with the truth.

The truth: QEMU's timer is CLOCK_MONOTONIC less a constant, and the firmware's clock and the engine's counter
are made of that timer. So their ticks, which another reader takes from the same memory, say when each event
was. The constant follows from many exchanges that no trace knows of.
"""
import json
import re
import statistics
import subprocess
import sys
import time

import helpers
from baremetal.base import BUILD, ROOT, WARNINGS, Skip, command, need
from image import second_reader

SOURCE = ROOT / "examples" / "firmware"
CROSS = ["riscv64-unknown-elf-gcc", *"-march=rv32imac -mabi=ilp32 -mcmodel=medany -Os -ffreestanding".split(),
         *"-nostdlib -nostartfiles -ffunction-sections -fdata-sections -Wl,--gc-sections".split(),
         "-Wl,--no-warn-rwx-segments"]
MACHINE = ["qemu-system-riscv32", *"-M virt,memory-backend=ram -m 32M -bios none -display none -serial none"
           .split(), *"-monitor none -object".split(),
           "memory-backend-file,id=ram,size=32M,mem-path=npu.ram,share=on"]
JOBS, SECONDS = 600, 3
ARENA, ARENA_BYTES = 0x101000, 65536
TICK_NS = 100                                # of QEMU's timer
READ_NS = 3000                               # the firmware reads the engine's counter


def inverse(of, ticks):
    """The timer at which a clock that is made of it shows these ticks."""
    low, high = 0, ticks + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if of(middle) < ticks else (low, middle)
    if of(low) != ticks:
        raise AssertionError(f"no clock of the firmware shows {ticks}")
    return low


def core(timer):
    return timer + (timer >> 12)


def engine(timer):
    return 4 * timer - (timer >> 13)


def build(folder):
    command([*CROSS, *WARNINGS, f"-I{ROOT}", "-T", SOURCE / "shared.ld", SOURCE / "shared_npu.c", "-lgcc",
             "-o", folder / "npu.elf"])
    for source in (SOURCE / "shared_host.c", ROOT / "tests" / "programs" / "shared_witness.c"):
        command([*helpers.CC, "-O0", *WARNINGS, "-Wno-unused-function", f"-I{ROOT}", source, "-o",
                 folder / source.stem, "-pthread"])


def run(folder, converter):
    """What the host and the witness said, and the memory at the end."""
    env = helpers.environment()
    npu = subprocess.Popen([*MACHINE, "-kernel", "npu.elf"], cwd=folder)
    try:
        while not (folder / "npu.ram").exists():
            time.sleep(0.05)
        said = command(["./shared_host", "npu.ram", "npu.elf", JOBS], cwd=folder, env=env).stdout
        witness = command(["./shared_witness", "npu.ram", SECONDS], cwd=folder).stdout
        command([converter, "--live", "npu.ram", "--elf", "npu.elf", "-o", "again.json"], cwd=folder)
        if npu.poll() is not None:
            raise AssertionError("the emulator ended")
    finally:
        npu.kill()
        npu.wait()
    with open(folder / "npu.ram", "rb") as memory:
        memory.seek(ARENA)
        return said, witness, memory.read(ARENA_BYTES)


def constant(witness):
    """(least, most) of CLOCK_MONOTONIC less QEMU's timer, as all exchanges allow."""
    least, most = -2**63, 2**63
    for line in witness.splitlines():
        ticks, before, after = map(int, line.split())
        timer = inverse(core, ticks) * TICK_NS
        least, most = max(least, before - timer - TICK_NS), min(most, after - timer)
    if least > most:
        raise AssertionError(f"exchanges contradict each other: {least} to {most}")
    return least, most


def check_true(found, timer, bound, range_of, what):
    """A time of the trace is the truth, as far as that is known, within what the trace states."""
    least, most = (timer * TICK_NS + end for end in range_of)
    if not least - bound <= found <= most + TICK_NS + bound:
        raise AssertionError(f"{what}: {found} ns, true is {least} to {most}, stated +-{bound}")


def check_spans(trace, truth, range_of):
    """All spans of the firmware and the engine; returns how many, the clock's bound, the engine's."""
    about = trace["metadata"]["npuprof"]
    bound = about["clock"]["error_ns"] + about["clock"]["drift_ns"]
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and not e.get("args", {}).get("unfinished")]
    ticks = {name: iter([e for e in truth if e["name"] == name and e["kind"] != "device"])
             for name in ("job", "descriptors", "conv")}
    count, engine_bounds = 0, []
    for e in sorted(spans, key=lambda e: e["ts"]):
        at = about["start_monotonic_ns"] + round(e["ts"] * 1000)
        ends, args = (at, at + round(e["dur"] * 1000)), e.get("args", {})
        if "start_ticks" in args:
            timers = [inverse(engine, args[key]) for key in ("start_ticks", "end_ticks")]
        else:
            of = next(ticks[e["name"]])
            timers = [inverse(core, of[key]) for key in ("start", "end")]
        for found, timer in zip(ends, timers):
            check_true(found, timer, bound + args.get("error_ns", 0), range_of, e)
        if "error_ns" in args:
            engine_bounds.append(args["error_ns"])
        count += 1
    return count, bound, engine_bounds


def check_order(merged):
    """Each job on one timeline: the host submits, then the firmware begins, then the engine works."""
    events, about = merged["traceEvents"], merged["metadata"]["npuprof"]
    def by_job(name):
        return {e["args"]["job"]: e for e in events if e["name"] == name and "job" in e.get("args", {})}
    submits, jobs, convs = by_job("submit"), by_job("job"), by_job("conv")
    engines = [e for e in events if "start_ticks" in e.get("args", {})]
    slack = about["max_error_ns"] / 1000
    for job, e in jobs.items():
        host = submits[job]
        if not host["ts"] - slack <= e["ts"] <= e["ts"] + e["dur"] <= host["ts"] + host["dur"] + slack:
            raise AssertionError(f"job {job} is not in its submit: {e}, {host}")
    for e in engines:
        slack = (e["args"]["error_ns"] + about["max_error_ns"]) / 1000
        if not any(c["ts"] - slack <= e["ts"] and e["ts"] + e["dur"] <= c["ts"] + c["dur"] + slack
                   for c in convs.values()):
            raise AssertionError(f"in no span of the firmware: {e}")
    return len(jobs), len(engines)


def rig(converter):
    need(CROSS[0], MACHINE[0])
    if not sys.platform.startswith("linux"):
        raise Skip("npuprof-convert --live reads QEMU's memory on Linux only")
    folder = BUILD / "shared"
    folder.mkdir(parents=True, exist_ok=True)
    for old in ("npu.ram", *(f"{name}.json" for name in ("npu", "npu-live", "host", "again", "all"))):
        (folder / old).unlink(missing_ok=True)
    build(folder)
    said, witness, arena = run(folder, converter)
    tool = [sys.executable, ROOT / "tools" / "npuprof.py"]
    command([*tool, "merge", "host.json", "npu.json", "-o", "all.json"], cwd=folder)
    traces = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("npu", "again", "all")}
    truth = second_reader.read(arena, (folder / "npu.elf").read_bytes()).events
    range_of = constant(witness)
    for name in ("npu", "again"):
        count, bound, engine_bounds = check_spans(traces[name], truth, range_of)
        about = traces[name]["metadata"]["npuprof"]
        whole = about["recorded"] + about["lost"]["overwritten"]
        if count != about["recorded"] or whole != 4 * JOBS or about["changed_while_read"]:
            raise AssertionError(f"{name}: {count} spans, {about['recorded']} and {about['lost']}")
    exchange = int(re.search(r"\+-(\d+) ns", said)[1])
    allowed = 3 * (exchange + TICK_NS)
    seconds = max(e.get("ts", 0) for e in traces["npu"]["traceEvents"]) / 1e6
    # Of the engine's rate nothing is said but 2 ppm in a second. The median: the host may stop the emulator
    # for milliseconds while its firmware reads the counter, and what is stated around that read is as wide.
    engine_bound = int(statistics.median(engine_bounds))
    if bound > allowed or engine_bound > allowed + READ_NS * (1 + seconds * seconds):
        raise AssertionError(f"stated +-{bound} ns, engine +-{engine_bound}; exchanges allow +-{exchange}")
    jobs, works = check_order(traces["all"])
    live = json.loads((folder / "npu-live.json").read_text())["metadata"]["npuprof"]
    if not 0 < live["recorded"] + live["lost"]["overwritten"] < 4 * JOBS:
        raise AssertionError(f"while it ran: {live['recorded']}")
    print(f"   shared memory: {jobs} jobs and {works} of the engine on the host's timeline, {count} spans "
          f"true within the stated {bound} ns, the engine {engine_bound} (at most {max(engine_bounds)}); "
          f"exchanges allow {exchange} ns, the truth is known to {range_of[1] - range_of[0] + TICK_NS} ns")
