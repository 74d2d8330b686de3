# SPDX-License-Identifier: MIT
"""How long interrupts are off: the longest way through a disassembly, from behind the instruction that masks
them to the one that lets them in again, which counts, too."""
import functools
import itertools
import re

from baremetal.base import BUILD, command, need

LINE = re.compile(r"^\s*([0-9a-f]+):\t[0-9a-f ]+\t(\S+)\s*(.*)")
NAME = re.compile(r"^[0-9a-f]+ <([^>]+)>:")
# Of each processor: masks interrupts; lets them in; leaves the function; branches; always.
WORDS = {"arm": (r"cpsid\b", r"msr\b.*PRIMASK", r"(bl|blx|bx|pop)\b", r"b(?!ic|kpt|l|x)", r"b\b"),
         "riscv": (r"csrr?ci?\b.*mstatus,8", r"csrs\b.*mstatus", r"(jal|jalr|jr|call|ret|tail|mret)\b",
                   r"(b[a-z]+|j)\b", r"j\b")}
MOST = 12
ARENAS = (0, 4096, 8192)                         # 0: of run time


def instructions(program, objdump):
    """Of each function its instructions: address, text, the address of its operand or None."""
    functions, now = {}, None
    for line in command([objdump, "-d", program]).stdout.splitlines():
        if NAME.match(line):
            now = functions.setdefault(NAME.match(line).group(1), [])
        elif LINE.match(line) and now is not None:
            address, word, rest = LINE.match(line).groups()
            place = re.search(r"\b([0-9a-f]+) <", rest)
            now.append((int(address, 16), f"{word.removesuffix('.n')} {rest}",
                        int(place.group(1), 16) if place else None))
    return functions


def longest(code, begin, words):
    """Instructions from the one behind `begin` to the one that lets interrupts in; a loop counts once."""
    _, unmasks, leaves, branches, always = words
    at = {address: index for index, (address, *_) in enumerate(code)}

    @functools.cache
    def way(index, seen):
        address, text, place = code[index]
        if re.match(unmasks, text):
            return 1
        if index in seen:
            return 0
        if re.match(leaves, text):
            raise AssertionError(f"{text} with interrupts off at {address:x}")
        seen, ways = seen | {index}, []
        if re.match(branches, text):
            ways.append(way(at[place], seen))
        if not re.match(always, text):
            ways.append(way(index + 1, seen))
        return 1 + max(ways)
    return way(begin + 1, frozenset())


def sections(program, objdump="arm-none-eabi-objdump", processor="arm"):
    """The function and the length of each masked section."""
    words = WORDS[processor]
    return [(name, longest(code, index, words)) for name, code in instructions(program, objdump).items()
            for index, (_, text, _) in enumerate(code) if re.match(words[0], text)]


def masked(rig):
    """Interrupts are off for at most 12 instructions: on processors without exclusive access, with each
    policy, optimisation and size of the arena. With exclusive access they never are."""
    folder = BUILD / "masked"
    folder.mkdir(parents=True, exist_ok=True)
    policies = {"oldest": [], "newest": ["-DNEWEST"], "stream": ["-DSTREAM"]}
    for machine, processor in (("cortex-m0", "arm"), ("riscv32-no-atomics", "riscv"), ("cortex-m3", "arm"),
                               ("riscv32", "riscv")):
        compiler = rig.MACHINES[machine]["cc"]
        need(compiler[0])
        masks, most = machine in ("cortex-m0", "riscv32-no-atomics"), {}
        for policy, optimise, arena in itertools.product(policies, ("-Os", "-O2"), ARENAS if masks else (0,)):
            program = folder / f"{machine}{policy}{optimise}{arena}.elf"
            command([*compiler, *rig.FREE, optimise, *policies[policy], f"-DNPUPROF_ARENA_BYTES={arena}",
                     "-Wno-unused-function", rig.HERE / "preempt.c", "-o", program, *rig.library(machine)])
            for name, count in sections(program, compiler[0].replace("gcc", "objdump"), processor):
                if name.startswith("npuprof_"):
                    most[policy] = max(most.get(policy, (0, "")), (count, name.split(".")[0]))
        told = ", ".join(f"{policy} {count} in {name}" for policy, (count, name) in most.items())
        print(f"   {machine}, instructions with interrupts off: {told or 'never'}")
        if bool(most) != masks or masks and max(most.values())[0] > MOST:
            raise AssertionError(f"{machine}: {most}")
