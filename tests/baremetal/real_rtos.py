# SPDX-License-Identifier: MIT
"""Rigs of the real RTOSes, of which Debian has none. FREERTOS and THREADX are folders with their sources, as
in https://github.com/FreeRTOS/FreeRTOS-Kernel and https://github.com/eclipse-threadx/threadx."""
import os
import pathlib
import shutil
import struct

from baremetal.base import BUILD, ROOT, Skip, command, need
from baremetal.rtos_rigs import Trace, expect

HERE = pathlib.Path(__file__).resolve().parent / "real"
INCLUDE = [f"-I{HERE}", f"-I{ROOT / 'examples' / 'rtos'}", f"-I{ROOT / 'examples' / 'firmware'}", f"-I{ROOT}"]
SEEDS = 10
HOMES = {"FREERTOS": "https://github.com/FreeRTOS/FreeRTOS-Kernel",
         "THREADX": "https://github.com/eclipse-threadx/threadx"}
SYMBOLS = "-Wl,--defsym=ram_bytes=4M,--defsym=_vectors=0,--defsym=__RAM_segment_used_end__=stack_end"


def sources(variable):
    """The folder that a variable names."""
    folder = os.environ.get(variable)
    if not folder:
        raise Skip(f"{variable} is not set: git clone {HOMES[variable]}, and {variable}=that folder")
    return pathlib.Path(folder)


def freertos(port):
    """Flags and files of a kernel for a port."""
    at = sources("FREERTOS")
    ports = at / "portable" / "GCC" / port
    chip = ports / "chip_specific_extensions" / "RV32I_CLINT_no_extensions"
    return [f"-I{at / 'include'}", f"-I{ports}", f"-I{chip}"], [
        *(at / name for name in ("tasks.c", "list.c", "queue.c")), *ports.glob("port*.[cS]"),
        at / "portable" / "MemMang" / "heap_4.c"]


def threadx(has_tick=True):
    """has_tick: the file with the tick is compiled as step 1 of npuprof_threadx.h says."""
    at = sources("THREADX")
    port, common = at / "ports" / "cortex_m3" / "gnu", at / "common"
    notify = "-DTX_ENABLE_EXECUTION_CHANGE_NOTIFY"
    files = [f for start in ("initialize", "thread", "time") for f in common.glob(f"src/tx_{start}*.c")]
    low = port / "example_build" / "tx_initialize_low_level.S"
    if not has_tick:
        made = BUILD / "real-low-level.o"
        command(["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m3", "-c", low, "-o", made])
        low = made
    return [notify, "-DREAL_THREADX", "-DTX_INCLUDE_USER_DEFINE_FILE", "-DTX_DISABLE_ERROR_CHECKING",
            f"-I{common / 'inc'}", f"-I{port / 'inc'}", "-Wl,--wrap=_tx_execution_thread_exit"], [
                *files, *port.glob("src/*.S"), low]


def runs(names):
    """A list without those that are the same as the one before."""
    return [n for i, n in enumerate(names) if not i or names[i - 1] != n]


def check(trace, log, machine):
    """The trace is what the kernel and the handlers said themselves."""
    count, irq0, irq1, ticks = struct.unpack_from("<4I", log)
    noted = [(time, name.split(b"\0")[0].decode()) for time, name in struct.iter_unpack("<I4s", log[16:])]
    expect(len(noted) == count, "the log is cut off")
    shown = [(e, n[:4]) for _, e, n in trace.spans("CPU") if n != "start-up"]
    names = runs([n for _, n in noted])
    mine = runs([n for _, n in shown])
    expect(mine[:len(names)] == names and len(mine) - len(names) in (0, 1),
           f"{len(mine)} switches, the kernel noted {len(names)}: {mine[:20]}, {names[:20]}")
    interrupts = [n for *_, n in trace.spans("interrupts")]
    has_tick = machine != "riscv32"
    for name, so_many in (("irq0", irq0), ("irq1", irq1), ("receive", irq0)):
        expect(interrupts.count(name) == so_many, f"{interrupts.count(name)} {name}, there were {so_many}")
    seen = trace.counters("tick")
    expect(seen[-1] == ticks, f"{seen[-1]} ticks, the kernel counted {ticks}")
    if has_tick:
        expect(abs(interrupts.count("tick") - ticks) <= 1, f"{interrupts.count('tick')} ticks of {ticks}")
    # No tick is lost: by the other timer the trace lasts as long.
    hz = 10e6 if machine == "riscv32" else 25e6
    ends = [e for i, (e, n) in enumerate(shown) if i + 1 == len(shown) or shown[i + 1][1] != n]
    theirs = [t for i, (t, n) in enumerate(noted) if i + 1 == len(noted) or noted[i + 1][1] != n]
    worst = max(abs((a - ends[0]) - (b - theirs[0]) % 2**32 / hz * 1e6) for a, b in zip(ends, theirs))
    expect(worst < 20, f"a switch is {worst} us off")
    return len(names), irq0 + irq1, ticks


def build(name, kernel, on):
    """An empty folder with the program fw.elf."""
    flags, files = kernel()
    need(on["cc"][0], on["run"][0])
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Why without warnings: the kernels' own are not ours.
    command([*on["cc"], "-std=gnu11", "-O2", "-w", "-ffreestanding", "-ffunction-sections", SYMBOLS, *INCLUDE,
             *flags, HERE / "real.c", *files, *on["libs"], "-o", folder / "fw.elf"])
    return folder


def run_seed(folder, seed, on):
    """A folder with what the program wrote."""
    at, run = folder / str(seed), on["run"]
    at.mkdir()
    (at / f"seed-{seed}").touch()
    command([*run[:-1], "-icount", "shift=5,sleep=off", run[-1], folder / "fw.elf"], cwd=at)
    return at


def without_tick(on):
    """Without the option of step 1 the tick has no hook: the converter says that times are wrong."""
    folder = build("real-threadx-no-tick", lambda: threadx(False), on)
    image = run_seed(folder, 0, on) / "real.img"
    done = command([BUILD.parent / "npuprof-convert", image, "--elf", folder / "fw.elf", "-o",
                    folder / "t.json"])
    expect("warning: the tick has no hook, so times are too short" in done.stdout, "no warning")


def rig(rtos, machine, kernel, on, convert):
    def test():
        folder = build(f"real-{rtos}-{machine}", kernel, on)
        sums = [0, 0, 0]
        for seed in range(SEEDS):
            at = run_seed(folder, seed, on)
            text = convert(at / "real.img", "--elf", folder / "fw.elf")
            sums = [a + b for a, b in zip(sums, check(Trace(text), (at / "real.log").read_bytes(), machine))]
        print(f"   the real {rtos} on {machine}, {SEEDS} seeds: {sums[0]} switches, {sums[1]} interrupts, "
              f"{sums[2]} ticks, all as the kernel says")
    return test


def rigs(machines, convert):
    kernels = {("freertos", "cortex-m3"): lambda: freertos("ARM_CM3"),
               ("freertos", "riscv32"): lambda: freertos("RISC-V"), ("threadx", "cortex-m3"): threadx}
    return {f"real-{rtos}-{machine}": rig(rtos, machine, kernel, machines[machine], convert)
            for (rtos, machine), kernel in kernels.items()} | {
                "real-threadx-no-tick": lambda: without_tick(machines["cortex-m3"])}
