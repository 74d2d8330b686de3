# SPDX-License-Identifier: MIT
"""Rigs of SysTick as a clock, of the four ways to read a trace out, and of RTOSes: the small kernel of
rtos/kernel.c has the hooks of each of them, runs three tasks and two interrupts on an emulated Cortex-M, and
notes itself who ran when."""
import json
import shutil
import struct
import subprocess
import time

from baremetal.base import BUILD, ROOT, command, need

TASKS = ["IDLE", "report", "compute", "sample"]
SLACK = 15.0                                # us between the kernel's note and the trace's stamp


def expect(is_so, what):
    if not is_so:
        raise AssertionError(what)


class Trace:
    def __init__(self, text):
        self.events = json.loads(text)["traceEvents"]
        self.tracks = {e["tid"]: e["args"]["name"] for e in self.events if e["name"] == "thread_name"}

    def spans(self, track):
        return sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in self.events
                      if e["ph"] == "X" and self.tracks[e["tid"]] == track)

    def counters(self, name):
        return [e["args"]["value"] for e in self.events if e["ph"] == "C" and e["name"] == name]


def check_switches(trace, log, rtos):
    """The track CPU shows what the kernel noted: who, and when. ThreadX has no idle task."""
    shown = trace.spans("CPU")
    noted = [(time, TASKS[what], log[i + 1][0] if i + 1 < len(log) else None)
             for i, (time, what) in enumerate(log)]
    if rtos == "threadx":
        noted = [n for n in noted if n[1] != "IDLE"]
    expect([s[2] for s in shown] == [n[1] for n in noted],
           f"{len(shown)} switches shown, {len(noted)} noted: {shown[:8]}, {noted[:8]}")
    expect(len({s[2] for s in shown}) == (3 if rtos == "threadx" else 4) and len(shown) > 60, "too few")
    offset = shown[0][0] - noted[0][0]
    for (start, end, name), (begun, _, over) in zip(shown, noted):
        expect(abs(start - begun - offset) < SLACK and (over is None or abs(end - over - offset) < SLACK),
               f"{name}: {start} to {end} us, noted {begun + offset} to {over and over + offset}")


def check_tasks(trace, counts):
    """Each task's spans are on the track of its name, and begin and end while it runs."""
    running = trace.spans("CPU")
    for name, count in zip(("sample", "compute", "report"), counts):
        spans = trace.spans(name)
        expect([s[2] for s in spans] == [name] * count, f"{name}: {len(spans)} spans, ran {count}")
        for at in (at for start, end, _ in spans for at in (start, end)):
            expect(any(a <= at <= b and who == name for a, b, who in running), f"{name} at {at}: not running")
    others = [a for a, _, who in running if who == "sample"]
    preempted = [s for s in trace.spans("compute") if any(s[0] < a < s[1] for a in others)]
    expect(len(preempted) > 3, "compute was not preempted")


def check_interrupts(trace, counts, has_ticks):
    """uart with its own span, and dma inside it; ticks may come between."""
    spans = trace.spans("interrupts")
    names = [s[2] for s in spans]
    expect([names.count(n) for n in ("uart", "receive", "dma")] == [counts[0], counts[0], counts[1]],
           f"interrupts: {names.count('uart')} uart, {names.count('dma')} dma, ran {counts}")
    expect((names.count("tick") >= 60) == has_ticks, f"{names.count('tick')} ticks")
    uarts = [s for s in spans if s[2] == "uart"]
    for start, end, name in spans:
        if name in ("receive", "dma"):
            expect(any(a <= start and end <= b for a, b, _ in uarts), f"{name} at {start}: in no uart")
    for (_, end, one), (start, over, other) in zip(spans, spans[1:]):
        expect(end <= start or over <= end, f"{one} and {other} at {start} overlap")


def rig(rtos, machine, on_machine, convert):
    def test():
        for version in (10, 11) if rtos == "freertos" else (0,):
            once(version)
        if rtos == "threadx":
            without_tick()

    def without_tick():
        """The kernel's tick has no hook: the converter says that times are wrong."""
        folder, _ = on_machine(machine, "rtos/kernel.c", *common(0), "-DTHREADX_NO_TICK_HOOK")
        done = command([BUILD.parent / "npuprof-convert", folder / "rtos.img", "--elf", folder / "fw.elf"])
        expect("warning: the tick has no hook, so times are too short" in done.stdout, "no warning")

    def common(version):
        return [f"-I{ROOT / 'tests' / 'baremetal' / 'rtos' / rtos}", f"-I{ROOT / 'examples' / 'rtos'}",
                f"-I{ROOT / 'examples' / 'firmware'}", "-Wno-missing-prototypes",
                *(["-DMICROBIT"] if machine == "cortex-m0" else []), f"-DFREERTOS_VERSION={version}"]

    def once(version):
        flags = common(version)
        if rtos != "threadx":
            on_machine(machine, "rtos/kernel.c", *flags, "-DNPUPROF_OFF")
        folder, _ = on_machine(machine, "rtos/kernel.c", *flags)
        trace = Trace(convert(folder / "rtos.img", "--elf", folder / "fw.elf"))
        note = (folder / "kernel.log").read_bytes()
        counts, left = struct.unpack_from("<5I", note), struct.unpack_from("<4I", note, 20)
        hz = 16e6 if machine == "cortex-m0" else 25e6
        log = [(time / hz * 1e6, what) for time, what in struct.iter_unpack("<2I", note[36:])]
        check_switches(trace, log, rtos)
        check_tasks(trace, counts[:3])
        check_interrupts(trace, counts[3:], version != 10)
        for name, bytes_left in list(zip(TASKS, left))[rtos == "threadx":]:
            seen = trace.counters(f"stack free {name}")
            expect(seen and seen[-1] >= bytes_left > 0 and seen == sorted(seen, reverse=True),
                   f"stack of {name}: {seen}, {bytes_left} bytes left")
        ticks = trace.counters("tick")
        expect(len(ticks) > 3 and ticks == sorted(ticks) and ticks[-1] > 60, f"counter tick: {ticks}")
        idle = trace.counters("idle" if rtos == "zephyr" else "idle ticks")
        expect(idle == sorted(idle) and idle[-1] > 0, f"counter idle: {idle}")
        print(f"   {rtos} {version or ''} on {machine}: {len(log)} switches, "
              f"{sum(counts)} spans and interrupts")
    return test


def systick(machine, on_machine):
    def test():
        on_machine(machine, "systick.c", f"-I{ROOT / 'examples' / 'firmware'}",
                   *(["-DMICROBIT"] if machine == "cortex-m0" else []))
    return test


def first(convert):
    """examples/firmware/first.c, as its README builds it, read out in each of the four ways."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    folder, source = BUILD / "first", ROOT / "examples" / "firmware"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build = ["arm-none-eabi-gcc", *"-mcpu=cortex-m4 -mthumb -Os -Wall -Wextra -Werror".split(),
             *"-ffreestanding -nostdlib -nostartfiles -ffunction-sections -fdata-sections".split(),
             "-Wl,--gc-sections", f"-I{source}", f"-I{ROOT}", "-T", source / "firmware.ld"]
    machine = ["qemu-system-arm", *"-M mps2-an386 -display none -icount shift=5".split(), "-kernel"]
    for way in ("file_write", "uart_write", "rtt_write", None):
        elf = folder / f"{way}.elf"
        command([*build, *([f"-DREAD_OUT={way}"] if way else []), source / "first.c", "-lgcc", "-o", elf])
        if way == "file_write":
            command([*machine, elf, "-semihosting"], cwd=folder)
            image = folder / "first.img"
        else:
            image = folder / f"{way}.bin"
            done = subprocess.Popen([*machine, elf, "-monitor", "stdio", "-serial",
                                     f"file:{image}" if way == "uart_write" else "null"],
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=folder, text=True)
            time.sleep(2)
            dump = "" if way == "uart_write" else f"pmemsave 0x20000000 0x10000 {image.name}\n"
            done.communicate(f"{dump}quit\n", timeout=30)
        if way == "rtt_write":
            memory = image.read_bytes()
            at = memory.index(b"SEGGER RTT\0\0\0\0\0\0")
            up, down, _, where, size, written, read, _ = struct.unpack_from("<8I", memory, at + 16)
            expect((up, down, size, read) == (1, 0, 1024, 0), "the block of the RTT")
            image.write_bytes(memory[where - 0x20000000:][:written])
        events = json.loads(convert(image, "--elf", elf))["traceEvents"]
        names = [e["name"] for e in events if e["ph"] in "XC"]
        expect(sorted(names) == ["sum"] * 10 + ["work"] * 10, f"{way}: {names}")


def rigs(on_machine, convert):
    clocks = {f"systick-{machine}": systick(machine, on_machine) for machine in ("cortex-m0", "cortex-m3")}
    machines = ("cortex-m0", "cortex-m3", "cortex-m4")
    kernels = {f"rtos-{rtos}-{machine}": rig(rtos, machine, on_machine, convert)
               for rtos in ("freertos", "zephyr", "threadx") for machine in machines}
    return {"first": lambda: first(convert), **clocks, **kernels}
