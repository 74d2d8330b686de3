# SPDX-License-Identifier: MIT
"""A ring of 4 KiB that runs for long, soak.c: the newest are there, counts are exact, the clock is right."""
import json
import struct

# Machine: seconds asleep, how far the clock may be off in seconds: what the other timer counts in. The
# emulated nRF51 timer gains up to half a ns in each read, two of them a span.
MACHINES = {"cortex-m0": (10800, 0.0005), "cortex-m3": (10800, 0.02), "riscv32": (10800, 0.0005),
            "avr": (3, 0.0005)}


def soaked(machine, spans, rig):
    """rig: what runs programs, see run.py."""
    asleep, off = MACHINES[machine]
    emulator = ["-icount", "shift=5,sleep=off"] if machine == "riscv32" else []
    flags = [f"-DSPANS={spans}", f"-DSECONDS={asleep}"]
    folder, _ = rig.on_machine(machine, "soak.c", *flags, emulator=emulator, seconds=3600)
    count, last, first, rate = struct.unpack("<4Q", (folder / "soak.log").read_bytes())
    trace = json.loads(rig.convert(folder / "soak.img", "--elf", folder / "fw.elf"))
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] != "slept"]
    numbers = [e["args"]["n"] for e in events if e["name"] == "numbered"]
    if count != spans or numbers != list(range(spans - 2 * len(numbers), spans, 2)) or len(numbers) < 80:
        raise AssertionError(f"{count} spans, {len(numbers)} numbers up to {numbers[-1:]}")
    overwritten = trace["metadata"]["npuprof"]["lost"]["overwritten"]
    if len(events) + overwritten != spans:
        raise AssertionError(f"{len(events)} spans are there, {overwritten} overwritten, of {spans}")
    seconds, truth = events[-2]["ts"] / 1e6, (last - first) / rate
    us = (seconds - truth) * 1e6
    print(f"   {machine}: {spans} spans; after {truth:.3f} s the clock is off by {us:.0f} us")
    gained = 0.5e-9 * 2 * spans if machine == "cortex-m0" else 0
    if abs(seconds - truth) > off + gained:
        raise AssertionError(f"the last spans began at {seconds} s, truly {truth}")
