#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs npuprof on bare machines and other processors, all emulated, and prints its size on a
Cortex-M0+.

usage: run.py [--sizes | --soak] [NAME...]    --soak: the large versions

A rig prints `ok NAME`, `FAIL NAME: why` or `skip NAME: reason`; the last line is `N passed, N failed, N
skipped`. What the rigs make is kept in build/baremetal. TEST_GOLDEN=write in the environment writes the
golden files anew, from the first rig that ran.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = ROOT / "tests" / "golden"
HOSTED = ["-DNPUPROF_IMPLEMENTATION", HERE.parent / "programs" / "golden.c"]
sys.path.insert(0, str(ROOT / "tests"))
import helpers  # noqa: E402
from baremetal.base import BUILD, WARNINGS, Skip, command, need, without_sites  # noqa: E402
from baremetal import costs, masked, preempt, real_rtos, rtos_rigs, shared, smp_rigs, soak, uart  # noqa: E402
from baremetal.npu_truth import check_npu  # noqa: E402
from baremetal.builds import builds, compilers, off  # noqa: E402
from image import second_facts, second_reader  # noqa: E402

FREE = ["-std=c11", "-ffreestanding", "-ffunction-sections", "-fdata-sections", f"-I{ROOT}", *WARNINGS]
BARE = ["-nostdlib", "-nostartfiles", "-Wl,--gc-sections"]
SEMIHOSTING = "-display none -serial none -monitor none -semihosting-config enable=on,target=native".split()

M = ["arm-none-eabi-gcc", "-mthumb", "-T", HERE / "flash.ld", *BARE]
ICOUNT = ["-icount", "shift=5,sleep=off"]


def cortex_m(cpu, board, *flags):
    return {"cc": [*M, f"-mcpu={cpu}", *flags], "libs": ["-lgcc"],
            "run": ["qemu-system-arm", "-M", board, *SEMIHOSTING, *ICOUNT, "-kernel"]}


def riscv(bits, arch, abi):
    return {"cc": ["riscv64-unknown-elf-gcc", f"-march={arch}", f"-mabi={abi}", "-mcmodel=medany",
                   "-mno-relax", "-T", HERE / "ram.ld",
                   "-Wl,--defsym=start=0x80000000", *BARE], "libs": ["-lgcc"],
                   "library_of": [f"-march={arch.removesuffix('_zicsr')}", f"-mabi={abi}"],
            "run": [f"qemu-system-riscv{bits}", "-M", "virt", "-bios", "none", *SEMIHOSTING, "-kernel"]}


MACHINES = {
    "cortex-m0": cortex_m("cortex-m0", "microbit"),
    "cortex-m3": cortex_m("cortex-m3", "mps2-an385"),
    "cortex-m4": cortex_m("cortex-m4", "mps2-an386"),
    "cortex-m55": cortex_m("cortex-m55", "mps3-an547", "-mfloat-abi=soft"),
    "riscv32": riscv(32, "rv32imac_zicsr", "ilp32"),
    "riscv32-no-atomics": riscv(32, "rv32im_zicsr", "ilp32"),
    "riscv64": riscv(64, "rv64imac_zicsr", "lp64"),
    "aarch64": {"cc": ["aarch64-linux-gnu-gcc", "-U__linux__", "-mgeneral-regs-only", "-mno-outline-atomics",
                       "-fno-pic", "-no-pie", "-static", "-T", HERE / "ram.ld",
                       "-Wl,--defsym=start=0x40080000,--build-id=none", *BARE], "libs": [],
                "run": ["qemu-system-aarch64", "-M", "virt", "-nic", "none", "-cpu", "cortex-a53",
                        *SEMIHOSTING, "-kernel"]},
    "avr": {"cc": ["avr-gcc", "-mmcu=atmega1284p", "-Wl,--gc-sections"], "libs": [],
            "run": ["simavr", "-m", "atmega1284p", "-f", "16000000"]},
}
SYSTEMS = {
    "linux-aarch64": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64"]),
    "linux-armhf": (["arm-linux-gnueabihf-gcc"], ["qemu-arm"]),
    "linux-s390x": (["s390x-linux-gnu-gcc"], ["qemu-s390x"]),
    "linux-powerpc": (["powerpc-linux-gnu-gcc"], ["qemu-ppc"]),
    # Why an emulator: a kernel may run programs of 64 bits only.
    "linux-i386": (["gcc", "-m32", "-isystem", "/usr/include/x86_64-linux-gnu"], ["qemu-i386"]),
}


LOCK = threading.Lock()


def converter():
    with LOCK:
        return helpers.tool("npuprof-convert")


def convert(*words):
    done = subprocess.run([str(w) for w in (converter(), *words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    if done.returncode:
        raise AssertionError(f"npuprof-convert {done.stderr.decode()}: exit code {done.returncode}")
    return done.stdout.decode()


def same(text, golden):
    path = GOLDEN / golden
    if os.environ.get("TEST_GOLDEN") == "write" and golden not in same.written:
        same.written.add(golden)
        path.write_text(text, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8")
    for number, (a, b) in enumerate(zip(text.splitlines() + [""], wanted.splitlines() + [""]), 1):
        if a != b:
            raise AssertionError(f"differs from {golden} in line {number}:\n  is     {a}\n  wanted {b}")


same.written = set()


def library(name):
    """The compiler's own library for a machine. Why by another name of the machine: it finds none for one
    with an extension in its name."""
    machine = MACHINES[name]
    if "library_of" not in machine:
        return machine["libs"]
    return [command([machine["cc"][0], *machine["library_of"], "-print-libgcc-file-name"]).stdout.strip()]


def on_machine(name, source, *flags, optimise="-Os", codes=(0,), emulator=(), seconds=240, files=()):
    """Builds a program and runs it, with more options of the emulator, beside empty files of those names; its
    folder and its exit code. Why a folder of each worker: rigs at one time may build the same program."""
    machine = MACHINES[name]
    need(machine["cc"][0], machine["run"][0])
    words = "".join(str(flag) for flag in flags).replace(str(ROOT), "")
    worker = threading.current_thread().name.rsplit("_", 1)[-1]
    folder = BUILD / f"{worker}-{name}-{pathlib.Path(source).stem}{words}".replace("/", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command([*machine["cc"], *FREE, optimise, *flags, HERE / source, "-o", folder / "fw.elf",
             *library(name)])
    for file in files:
        (folder / file).touch()
    run = [*machine["run"][:-1], *emulator, machine["run"][-1]]
    done = command([*run, "fw.elf"], seconds, codes=None if name == "avr" else codes, cwd=folder)
    if name == "avr":
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        text = "\n".join(line.rstrip(". \r") for line in text.splitlines())
        for file, digits in re.findall(r"^>(\S+)\n([0-9a-f\n]*)", text, re.M):
            (folder / file).write_bytes(bytes.fromhex(digits.replace("\n", "")))
        if "=0" not in text.split():
            raise AssertionError(f"no success:\n{text[-1000:]}")
    return folder, done.returncode


def golden_on(name):
    def test():
        folder, _ = on_machine(name, "golden.c")
        same((folder / "golden.json").read_text(), "firmware_target.json")
        same(convert(folder / "golden.img", "--elf", folder / "fw.elf"), "firmware.json")
        folder, _ = on_machine(name, "golden.c", "-DTICK_BITS=32", optimise="-O2")
        same(convert(folder / "golden.img", "--elf", folder / "fw.elf"), "firmware.json")
    return test


def npu_on(name):
    """npuprof_npu.h on a machine without an OS: what the host makes of it is true, and the same from every
    machine."""
    def test():
        folder, _ = on_machine(name, "npu.c")
        text = convert(folder / "npu.img", "--elf", folder / "fw.elf")
        check_npu(text)
        same(text, "firmware_npu.json")
        same((folder / "npu.json").read_text(), "firmware_npu_target.json")
        folder, _ = on_machine(name, "npu.c", "-DNPUPROF_NO_JSON", optimise="-O2")
        check_npu(convert(folder / "npu.img", "--elf", folder / "fw.elf"))
    return test


def corpus_on(name):
    """A ring of today's recorder says what the images in the corpus say, to the reader that is written from
    the format's text alone. It may keep older events besides: each of them was overwritten there."""
    folder, _ = on_machine(name, ROOT / "tests" / "programs" / "corpus_firmware.c",
                           "-DPOLICY=NPUPROF_KEEP_NEWEST")
    for kind in ("parts", "ram"):
        image, elf = ((folder / file).read_bytes() for file in (f"{kind}.img", "fw.elf"))
        truth = json.loads((ROOT / "tests/image/corpus/truth" / f"ring-{kind}.json").read_text("utf-8"))
        found = second_facts.of_trace(second_reader.read(image, elf)).document()
        older = [sum(found["lost"]) - sum(truth["lost"])]
        for what in ("counters", "instants", "spans"):
            more = [fact for fact in found[what] if fact not in truth[what]]
            found[what] = [fact for fact in found[what] if fact in truth[what]]
            older.append(len(more))
        wrong = [what for what in truth if what != "lost" and found[what] != truth[what]]
        if wrong or sum(older):
            raise AssertionError(f"ring-{kind}: other {', '.join(wrong)} than in the corpus")


def names_on_host():
    """The names lie in a section that is not loaded: not one is in the flash, and the host finds them."""
    folder, _ = on_machine("cortex-m3", "golden.c", '-DNPUPROF_NAMES_SECTION="npuprof_names"',
                           "-DNPUPROF_NO_JSON")
    same(without_sites(convert(folder / "golden.img", "--elf", folder / "fw.elf"), HERE), "firmware.json")
    command(["arm-none-eabi-objcopy", "-O", "binary", "--only-section=.text", folder / "fw.elf",
             folder / "flash.bin"])
    if b"queue" in (folder / "flash.bin").read_bytes():
        raise AssertionError("a name is in the flash")


def interrupts_on(name):
    def test():
        folder, _ = on_machine(name, "interrupts.c", optimise="-O2")
        convert(folder / "interrupts.img", "--elf", folder / "fw.elf")
    return test


def cost():
    """A whole span on a Cortex-M4 takes at most 45 instructions, its two clock reads excluded, and a switch
    of tasks at most 110, its one clock read included."""
    for what, limit, *flags in (("a span", 45), ("a switch", 110, "-DSWITCHES")):
        _, code = on_machine("cortex-m4", "cost.c", *flags, optimise="-O2", codes=range(255))
        print(f"   {code} instructions {what}")
        if not 10 < code <= limit:
            raise AssertionError(f"{code} instructions {what}")


def dump():
    """A dump of memory that holds the arena somewhere, and a core file's worth of other bytes, are read,
    too."""
    folder, _ = on_machine("cortex-m3", "golden.c")
    image = (folder / "golden.img").read_bytes()
    (folder / "ram.bin").write_bytes(b"\xa5" * 4172 + image + b"\x5a" * 5000)
    same(convert(folder / "ram.bin", "--elf", folder / "fw.elf"), "firmware.json")


def on_system(name):
    def test():
        compiler, runner = SYSTEMS[name]
        need(compiler[0], *runner[:1])
        folder = BUILD / name
        folder.mkdir(parents=True, exist_ok=True)
        libs = ["-latomic"] if "powerpc" in name else []
        try:
            command([*compiler, "-std=gnu11", "-O1", "-static", f"-I{ROOT}", f"-I{HERE.parent}",
                     *HOSTED, "-o", folder / "golden", "-pthread", *libs], 200)
        except AssertionError as e:
            if "-m32" in compiler and not pathlib.Path("/usr/lib32/libc.a").exists():
                raise Skip("no 32-bit C library (Debian packages libc6-dev-i386 lib32gcc-12-dev)") from e
            raise
        # Both headers, strictly: what is 64 bits wide elsewhere may be 32 here.
        (folder / "strict.c").write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                                         '#include "npuprof_npu.h"\n')
        command([*compiler, "-std=c11", *WARNINGS, "-Wsign-conversion", "-Wcast-qual", "-Werror", "-O1",
                 f"-I{ROOT}", "-c", folder / "strict.c", "-o", folder / "strict.o"], 200)
        env = helpers.environment()
        command([*runner, folder / "golden", "golden.json"], cwd=folder, env=env)
        same(helpers.normalised(folder / "golden.json"), "trace.json")
        # The image written there, and read here.
        command([*runner, folder / "golden", "golden.npuprof"], cwd=folder, env=env)
        (folder / "here.json").write_text(convert(folder / "golden.npuprof"))
        same(helpers.normalised(folder / "here.json"), "trace.json")
        # The recorder for bare machines there: its image is of that byte order and word size, too.
        command([*compiler, *FREE, "-Os", "-static", HERE / "golden.c", "-o", folder / "fw.elf"])
        (folder / "bare").mkdir(exist_ok=True)
        command([*runner, folder / "fw.elf"], cwd=folder / "bare", env=env)
        same((folder / "bare" / "golden.json").read_text(), "firmware_target.json")
        same(convert(folder / "bare" / "golden.img", "--elf", folder / "fw.elf"), "firmware.json")
        (folder / "bare" / "core").write_bytes(b"\x5a" * 5000 + (folder / "bare" / "golden.img").read_bytes()
                                               + b"\xa5" * 999)
        same(convert(folder / "bare" / "core", "--elf", folder / "fw.elf"), "firmware.json")
        command([*compiler, *FREE, "-Os", "-static", HERE / "npu.c", "-o", folder / "npu.elf"])
        command([*runner, folder / "npu.elf"], cwd=folder / "bare", env=env)
        text = convert(folder / "bare" / "npu.img", "--elf", folder / "npu.elf")
        check_npu(text)
        same(text, "firmware_npu.json")
    return test


def firmware():
    """The example: its spans nest in the inferences, and both files show them."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    folder = BUILD / "firmware"
    folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / "examples" / "firmware"
    command(["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4", "-Os", *FREE, *BARE, f"-I{source}", "-T",
             source / "firmware.ld", source / "firmware.c",
             "-o", folder / "fw.elf", "-lgcc"])
    command([*MACHINES["cortex-m4"]["run"], "fw.elf"], cwd=folder)
    for text in ((folder / "firmware.json").read_text(),
                 convert(folder / "firmware.img", "--elf", folder / "fw.elf")):
        names = [e["name"] for e in json.loads(text)["traceEvents"] if e["ph"] == "X"]
        counts = [names.count(n) for n in ("digit", "conv1", "depthwise2", "dense")]
        if counts != [10] * 4 or "tick" not in names:
            raise AssertionError(f"{counts} spans, ticks: {names.count('tick')}")


def windows():
    need("x86_64-w64-mingw32-gcc", "wine")
    folder = BUILD / "windows"
    folder.mkdir(parents=True, exist_ok=True)
    env = helpers.environment(WINEPREFIX=str(folder / "prefix"), WINEDEBUG="-all",
                              WINEDLLOVERRIDES="mscoree,mshtml=")
    build = ["x86_64-w64-mingw32-gcc", "-std=gnu11", "-O1", *WARNINGS, "-D__USE_MINGW_ANSI_STDIO=1",
             f"-I{ROOT}", f"-I{HERE.parent}", "-static"]
    command([*build, *HOSTED, "-o", folder / "golden.exe"], 200)
    command([*build, HERE / "windows.c", "-o", folder / "windows.exe"], 200)
    command(["wine", folder / "golden.exe", "golden.json"], 120, cwd=folder, env=env)
    same(helpers.normalised(folder / "golden.json").replace("golden.exe", "golden"), "trace.json")
    command(["wine", folder / "windows.exe"], 120, cwd=folder, env=env)
    # A process that ends writes what the environment asked for.
    command(["wine", folder / "golden.exe", "other.json"], 120, cwd=folder,
            env={**env, "NPUPROF_OUTPUT_PATH": "at_exit.json"})
    if not (folder / "at_exit.json").exists():
        raise AssertionError("NPUPROF_OUTPUT_PATH wrote nothing")


def size_of(folder, size, *flags, optimise="-Os", cpu="m0plus"):
    program = folder / f"size{size}{len(flags)}{optimise}{cpu}.elf"
    command([*M, f"-mcpu=cortex-{cpu}", optimise, *FREE, "-Wno-unused-function", f"-DSIZE={size}", *flags,
             HERE / "size.c", "-o", program, "-lgcc"])
    text, data, bss = (int(n)
                       for n in command(["arm-none-eabi-size", program]).stdout.splitlines()[1].split()[:3])
    return text, data + bss


def site_size(folder, cpu):
    """Bytes of code that PROF_SCOPE adds to a function that calls another."""
    site = []
    for scope in ("", 'PROF_SCOPE("f");'):
        (folder / "site.c").write_text("#define NPUPROF_NOW() 0u\n#define NPUPROF_NOW_HZ 1000u\n"
                                       "#define NPUPROF_FREESTANDING\n#include \"npuprof.h\"\n"
                                       f"void work(void); void f(void); void f(void) {{ {scope} work(); }}\n")
        command(["arm-none-eabi-gcc", "-mthumb", f"-mcpu=cortex-{cpu}", "-Os", *FREE, "-c", folder / "site.c",
                 "-o", folder / "site.o"])
        found = command(["arm-none-eabi-size", "-A", folder / "site.o"]).stdout
        site.append(int(re.search(r"^\.text\.f\s+(\d+)", found, re.M).group(1)))
    return site[1] - site[0]


# what, SIZE of size.c, with JSON
SIZES = [("recording only", 1, False), ("with a span that has one integer", 7, False),
         ("with that, a counter and an instant", 2, False), ("recording and the image", 5, False),
         ("recording and the JSON writer", 3, True), ("recording and a device, npuprof_npu.h", 4, False),
         ("the same, begin and end as calls", 6, False)]


def sizes_on(folder, cpu):
    """(flash, RAM beyond the arena) of each row of the table, linked: the program without npuprof is
    subtracted. The call site's own bytes are part of it."""
    text0, ram0 = size_of(folder, 0, cpu=cpu)
    found = [size_of(folder, size, *([] if json else ["-DNPUPROF_NO_JSON"]), cpu=cpu)
             for _, size, json in SIZES]
    return [(text - text0, ram - ram0 - 4096) for text, ram in found] + [(site_size(folder, cpu), None)]


def sizes():
    need("arm-none-eabi-gcc")
    folder = BUILD / "size"
    folder.mkdir(parents=True, exist_ok=True)
    rows, on_m4 = sizes_on(folder, "m0plus"), sizes_on(folder, "m4")
    print("   arm-none-eabi-gcc -Os, bytes of flash:  Cortex-M0+  Cortex-M4   RAM beyond the arena")
    for (what, *_), (flash, ram), (m4, _) in zip([*SIZES, ("one call site, code",)], rows, on_m4):
        of_recorder = ram is not None and not what.endswith(("npuprof_npu.h", "calls"))
        print(f"   {what:40} {flash:10} {m4:10}" + (f"   {ram:6}" if of_recorder else ""))
    recorder = rows[:5]
    (npu, _), (calls, _), (site, _) = rows[5:]
    flags = ["-DNPUPROF_NO_JSON"]
    table = {what: [size_of(folder, size, *flags, optimise=o)[0] - size_of(folder, 0, optimise=o)[0]
                    for o in ("-Os", "-O2")]
             for what, size in (("oldest", 1), ("newest", 8), ("stream", 10), ("stream by desc.sink", 9))}
    print("   recording and what happens when the arena is full, -Os and -O2: "
          + ", ".join(f"{what} {a} {b}" for what, (a, b) in table.items()))
    limits = ((table["newest"][0], 512 + 160, "a ring"), (table["stream"][0], 1724, "a stream"),
              (rows[0][0], 496, SIZES[0][0]), (rows[3][0], 1152, SIZES[3][0]),
              (rows[1][0] - rows[0][0], 300, "one integer more"), (rows[4][0], 4352, SIZES[4][0]),
              (max(ram for _, ram in recorder), 96, "RAM"),
              (npu, 12000, "recording and a device"),
              (calls, 12280, "a device, begin and end as calls"), (site, 40, "one call site"))
    for value, limit, what in limits:
        if value > limit:
            raise AssertionError(f"{what}: {value} bytes, at most {limit}")


def cores():
    """Several cores without exclusive access need NPUPROF_MASK(): what lacks it does not compile."""
    need("arm-none-eabi-gcc", "avr-gcc")
    m0, m3 = (["arm-none-eabi-gcc", "-mthumb", f"-mcpu=cortex-{cpu}"] for cpu in ("m0plus", "m3"))
    avr = ["avr-gcc", "-mmcu=atmega1284p"]
    masks = ["-DNPUPROF_MASK()=0u", "-DNPUPROF_UNMASK(before)=(void)before"]
    for compiler, count, more, fits in ((m0, 1, [], True), (m0, 2, [], False), (m0, 2, masks, True),
                                        (m3, 2, [], True), (avr, 2, [], False)):
        done = command([*compiler, *FREE, f"-DNPUPROF_CORES={count}", *more, "-DSIZE=1", "-fsyntax-only",
                        "-Wno-unused-function", HERE / "size.c"], codes=(0, 1))
        if (done.returncode == 0) != fits or ("needs NPUPROF_MASK()" in done.stdout) == fits:
            raise AssertionError(f"{compiler[-1]}, {count} cores: {done.stdout[:300]}")


RIGS = {"windows": windows, "compilers": compilers, "builds": builds, "off": off,
        **{name: on_system(name) for name in SYSTEMS},
        **{name: golden_on(name) for name in MACHINES}, **{f"npu-{name}": npu_on(name) for name in MACHINES},
        "names-on-host": names_on_host, "corpus-avr": lambda: corpus_on("avr"), "dump": dump,
        **{f"interrupts-{name}": interrupts_on(name) for name in ("cortex-m0", "cortex-m3", "cortex-m4",
                                                                  "cortex-m55")},
        "cost": cost, "fields": lambda: costs.fields(sys.modules[__name__]), "sizes": sizes,
        "uart": lambda: uart.rig(converter(), MACHINES["cortex-m3"], FREE), "cores": cores,
        "masked": lambda: masked.masked(sys.modules[__name__]),
        "firmware": firmware, "shared": lambda: shared.rig(converter()),
        **rtos_rigs.rigs(on_machine, convert), **smp_rigs.rigs(on_machine, convert),
        **real_rtos.rigs(MACHINES, convert)}
RIGS |= {name: functools.partial(preempt.preempted, *how, False, sys.modules[__name__])
         for name, how in preempt.QUICK.items()}
RIGS |= {f"soak-{name}": functools.partial(soak.soaked, name, 10000 if name == "avr" else 200000,
                                           sys.modules[__name__]) for name in soak.MACHINES}
SOAK = {name: functools.partial(preempt.preempted, *how, True, sys.modules[__name__])
        for name, how in preempt.SOAK.items()}
SOAK |= {f"soak-long-{name}": functools.partial(soak.soaked, name, 10**6 if name == "avr" else 10**8,
                                               sys.modules[__name__]) for name in soak.MACHINES}


def one(name):
    """ok, FAIL or skip, and the line to print."""
    start = time.monotonic()
    try:
        {**RIGS, **SOAK}[name]()
    except Skip as why:
        return "skip", f"skip {name}: {why}"
    except (AssertionError, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as why:
        return "FAIL", f"FAIL {name}: {why}"
    return "ok", f"ok {name} ({time.monotonic() - start:.1f} s)"


def main(names):
    BUILD.mkdir(parents=True, exist_ok=True)
    if names == ["--sizes"]:
        names = ["sizes"]
    if names == ["--soak"]:
        names = list(SOAK)
    unknown = [n for n in names if n not in RIGS and n not in SOAK]
    if unknown:
        print(f"no such rig: {' '.join(unknown)}; there are {' '.join([*RIGS, *SOAK])}")
        return 2
    results = []
    workers = 1 if os.environ.get("TEST_GOLDEN") == "write" else max(2, os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, name) for name in names or RIGS]):
            result, line = done.result()
            results.append(result)
            print(line, flush=True)
    print(f"{results.count('ok')} passed, {results.count('FAIL')} failed, {results.count('skip')} skipped")
    return 1 if "FAIL" in results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
