# SPDX-License-Identifier: MIT
"""How long interrupts are off: the longest way from cpsid to msr PRIMASK in a disassembly."""
import functools
import re

from baremetal.base import command

LINE = re.compile(r"^\s+([0-9a-f]+):\t[0-9a-f ]+\t(\S+)\s*(.*)")
NAME = re.compile(r"^[0-9a-f]+ <([^>]+)>:")


def instructions(program):
    """Of each function its instructions: address, mnemonic, operands."""
    functions, now = {}, None
    for line in command(["arm-none-eabi-objdump", "-d", program]).stdout.splitlines():
        if NAME.match(line):
            now = functions.setdefault(NAME.match(line).group(1), [])
        elif LINE.match(line) and now is not None:
            address, word, rest = LINE.match(line).groups()
            now.append((int(address, 16), word.removesuffix(".n"), rest))
    return functions


def longest(code, begin):
    """Instructions between the one at `begin` and the msr that ends the mask; a loop counts once."""
    at = {address: index for index, (address, *_) in enumerate(code)}

    @functools.cache
    def way(index, seen):
        address, word, rest = code[index]
        if word == "msr" or index in seen:
            return 0
        if word in ("bl", "blx", "bx", "pop"):
            raise AssertionError(f"{word} {rest} with interrupts off at {address:x}")
        seen = seen | {index}
        target = at.get(int(rest.split()[0], 16)) if re.match(r"b(?!ic|kpt)", word) else None
        ways = [way(target, seen)] if target is not None else []
        if word != "b":
            ways.append(way(index + 1, seen))
        return 1 + max(ways)
    return way(begin + 1, frozenset())


def sections(program):
    """The function and the length of each masked section."""
    return [(name, longest(code, index)) for name, code in instructions(program).items()
            for index, (_, word, rest) in enumerate(code) if word == "cpsid"]
