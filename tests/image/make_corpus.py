#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/image/corpus/: images of every processor and byte order, and what is in them.

usage: make_corpus.py [MACHINE...]
       make_corpus.py NAME=FOLDER   images of another version, by its sources in FOLDER and this machine

A release has images of its own: make_corpus.py release-1.2.0=. before it is tagged. NAME may be another word.
The images of a release stay for ever, so this is run for a new kind of image or machine, not for each change.
Each image is MACHINE-KIND.npuprof.xz; of firmware, MACHINE-KIND.elf.xz has the names. truth/KIND.json is
what is in it, the same from every machine, or truth/MACHINE-KIND.json where a machine's own sizes matter.
The truth is what the second reader finds, and nothing is written unless npuprof-convert finds the same.
It needs the compilers and emulators of tests/baremetal/run.py, and qemu-user."""
import functools
import json
import lzma
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = HERE / "corpus"
sys.path.insert(0, str(ROOT / "tests"))
import helpers  # noqa: E402
from baremetal import run as rigs  # noqa: E402
from image import second_facts, second_firmware, second_reader  # noqa: E402

HOST_KINDS = ("device", "open", "stream", "wrapped", "arena-open", "arena-wrapped", "arena-device")
# Compiler, and what runs its programs.
HOSTS = {"x86_64": (["gcc"], []),
         "i386": (["gcc", "-m32", "-isystem", "/usr/include/x86_64-linux-gnu"], []),
         "aarch64": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
         "armhf": (["arm-linux-gnueabihf-gcc"], ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]),
         "s390x": (["s390x-linux-gnu-gcc"], ["qemu-s390x", "-L", "/usr/s390x-linux-gnu"]),
         "powerpc": (["powerpc-linux-gnu-gcc"], ["qemu-ppc", "-L", "/usr/powerpc-linux-gnu"])}
STREAM = 2
BARE = ("cortex-m0", "cortex-m3", "riscv32", "riscv64", "aarch64", "avr")
# Firmware in the other byte order: no board here has it, so its recorder runs in a program of Linux.
BIG = ("powerpc", "s390x")
FIRMWARE_KINDS = {"KEEP_OLDEST": ("parts", "ram"), "KEEP_NEWEST": ("parts", "ram"), "STREAM": ("stream",)}
FIRMWARE_NAMES = {"KEEP_OLDEST": "firmware", "KEEP_NEWEST": "ring", "STREAM": "line"}


class Asked(second_firmware.Elf):
    """An ELF file that remembers which of its bytes somebody asked for."""

    def __init__(self, data):
        super().__init__(data)
        self.asked, self.wide = set(), data[4] == 2

    def bytes(self, address, count=None):
        found = super().bytes(address, count)
        self.asked.update(range(address & ~7, (address + len(found) + 8) & ~7))
        return found

    def small(self):
        """An ELF file of these bytes alone."""
        starts = sorted(a for a in self.asked if a - 1 not in self.asked)
        ranges = [(a, next(b for b in range(a, a + (1 << 24)) if b not in self.asked)) for a in starts]
        pieces = [(a, super(Asked, self).bytes(a, b - a)) for a, b in ranges]
        code = "IIQQQQIIQQ" if self.wide else "10I"
        head, names = 64 if self.wide else 52, b"\0.rodata\0.shstrtab\0"
        body, rows = b"", [(0,) * 10]
        for address, data in pieces:
            body += bytes(-len(body) % 8)
            rows.append((1, 1, 2, address, head + len(body), len(data), 0, 0, 8, 0))
            body += data
        rows.append((9, 3, 0, 0, head + len(body), len(names), 0, 0, 1, 0))
        body += names
        body += bytes(-len(body) % 8)
        order, word = self.order, "Q" if self.wide else "I"
        start = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
        start += struct.pack(f"{order}HHI3{word}IHHHHHH", 2, self.machine, 1, 0, 0, head + len(body), 0, head,
                             0, 0, struct.calcsize(order + code), len(rows), len(rows) - 1)
        return start + body + b"".join(struct.pack(order + code, *row) for row in rows)


def facts_of_converter(image, elf=None):
    """What npuprof-convert finds: it must find no fault."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "t.npuprof"
        path.write_bytes(image)
        more = []
        if elf:
            (path.parent / "t.elf").write_bytes(elf)
            more = ["--elf", path.parent / "t.elf"]
        done = subprocess.run([helpers.tool("npuprof-convert"), path, *more], capture_output=True)
    if done.returncode:
        raise SystemExit(f"npuprof-convert: {done.stderr.decode()}")
    return second_facts.of_json(json.loads(done.stdout)).document()


def keep(machine, kind, image, elf=None):
    """Puts an image into the corpus, with its truth."""
    name = f"{machine}-{kind}"
    if elf:
        asked = Asked(elf)
        reader = second_firmware.Reader(*second_reader.start_of(image)[:1], asked)
        reader.read(image, second_reader.start_of(image)[1] == second_reader.COMPACT)
        elf = asked.small()
    truth = second_facts.of_trace(second_reader.read(image, elf)).document()
    said = facts_of_converter(image, elf)
    if truth != said:
        raise SystemExit(f"{name}: the two readers differ in "
                         f"{[key for key in truth if truth[key] != said.get(key)]}")
    text = json.dumps(truth, ensure_ascii=False, indent=None, sort_keys=True)
    text = text.replace("], [", "],\n[").replace('], "', '],\n"') + "\n"
    (CORPUS / "truth").mkdir(parents=True, exist_ok=True)
    common, own = CORPUS / "truth" / f"{kind}.json", CORPUS / "truth" / f"{name}.json"
    own.unlink(missing_ok=True)
    if not common.exists():
        common.write_text(text, encoding="utf-8")
    elif common.read_text(encoding="utf-8") != text:
        own.write_text(text, encoding="utf-8")
    (CORPUS / f"{name}.npuprof.xz").write_bytes(lzma.compress(image, preset=9))
    if elf:
        (CORPUS / f"{name}.elf.xz").write_bytes(lzma.compress(elf, preset=9))
    print(f"{name}: {len(image)} bytes, {sum(len(v) for v in truth.values())} facts"
          f"{', a truth of its own' if own.exists() else ''}")


def host(machine, folder, sources=ROOT):
    compiler, runner = HOSTS.get(machine, HOSTS["x86_64"])
    program = folder / "images"
    rigs.command([*compiler, "-std=gnu11", "-O1", f"-I{sources}", f"-I{sources / 'tests'}", "-pthread",
                  sources / "tests" / "programs" / "images.c", "-o", program,
                  *(["-latomic"] if machine == "powerpc" else [])], 200)
    for kind in HOST_KINDS:
        path = folder / f"{kind}.npuprof"
        rigs.command([*runner, program, kind, path], 60, env=helpers.environment())
        image = path.read_bytes()
        if second_reader.start_of(image)[1] != STREAM:      # which none writes any more
            keep(machine, kind, image)


def firmware(machine, built):
    """built(flags, source): the folder with fw.elf and the images that it wrote."""
    for policy, kinds in FIRMWARE_KINDS.items():
        folder, elf = built([f"-DPOLICY=NPUPROF_{policy}"], ROOT / "tests" / "programs" / "corpus_firmware.c")
        for kind in kinds:
            keep(machine, f"{FIRMWARE_NAMES[policy]}-{kind}", (folder / f"{kind}.img").read_bytes(),
                 elf.read_bytes())
    folder, elf = built(["-DNPUPROF_NO_JSON"], ROOT / "tests" / "baremetal" / "npu.c")
    keep(machine, "firmware-npu", (folder / "npu.img").read_bytes(), elf.read_bytes())


def bare(machine):
    def built(flags, source):
        folder, _ = rigs.on_machine(machine, source, *flags)
        return folder, folder / "fw.elf"
    firmware(f"bare-{machine}", built)


def big(machine, folder):
    compiler, runner = HOSTS[machine]

    def built(flags, source):
        rigs.command([*compiler, "-std=c11", "-ffreestanding", "-Os", "-no-pie", "-fno-pie", f"-I{ROOT}",
                      *flags, source, "-o", folder / "fw.elf"], 200)
        rigs.command([*runner, folder / "fw.elf"], 60, cwd=folder)
        return folder, folder / "fw.elf"
    firmware(f"bare-{machine}", built)


def main(machines):
    makers = {name: host for name in HOSTS} | {f"bare-{name}": lambda m, _: bare(m[5:]) for name in BARE}
    makers |= {f"bare-{name}": lambda m, folder: big(m[5:], folder) for name in BIG}
    for machine in machines or makers:
        machine, _, sources = machine.partition("=")
        if sources:
            makers[machine] = functools.partial(host, sources=pathlib.Path(sources).resolve())
        with tempfile.TemporaryDirectory() as folder:
            try:
                makers[machine](machine, pathlib.Path(folder))
            except rigs.Skip as skipped:
                print(f"{machine}: left out: {skipped}")


if __name__ == "__main__":
    main(sys.argv[1:])
