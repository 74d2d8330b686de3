# SPDX-License-Identifier: MIT
"""What the rigs share: running a command, and a tool that is not there."""
import json
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "baremetal"
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror".split()
PACKAGES = {"arm-none-eabi-gcc": "gcc-arm-none-eabi", "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
            "avr-gcc": "gcc-avr avr-libc",
            "simavr": "simavr", "qemu-system-arm": "qemu-system-arm",
            "qemu-system-aarch64": "qemu-system-arm", "qemu-system-riscv32": "qemu-system-misc",
            "qemu-system-riscv64": "qemu-system-misc",
            "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
            "arm-linux-gnueabihf-gcc": "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross",
            "s390x-linux-gnu-gcc": "gcc-s390x-linux-gnu libc6-dev-s390x-cross",
            "powerpc-linux-gnu-gcc": "gcc-powerpc-linux-gnu libc6-dev-powerpc-cross",
            "qemu-aarch64": "qemu-user", "qemu-arm": "qemu-user",
            "qemu-s390x": "qemu-user", "qemu-ppc": "qemu-user",
            "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64", "wine": "wine wine64"}


class Skip(Exception):
    pass


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed (Debian package {PACKAGES.get(tool, tool)})")


def command(words, seconds=240, codes=(0,), **options):
    name = " ".join(pathlib.Path(str(w)).name for w in words)[:200]
    try:
        done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds,
                              **options)
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        raise AssertionError(f"{name}: had not ended after {seconds} s\n{text[-2000:]}") from late
    if codes is not None and done.returncode not in codes:
        raise AssertionError(f"{name}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done


def without_sites(text, folder):
    """A JSON of golden.c without its table of call sites, one of which must stand where the source has it."""
    source = folder / "golden.c"
    line = source.read_text(encoding="utf-8").partition('"queue"')[0].count("\n") + 1
    if f'{{"name":"queue","file":{json.dumps(str(source))},"line":{line}}}' not in text:
        raise AssertionError(f"the place of the call site \"queue\" is not {source}:{line}")
    return re.sub(r',"sites":\[[^\]]*\]', "", text)
