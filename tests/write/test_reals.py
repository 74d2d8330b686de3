# Reals in the JSON: the shortest digits that read back as the same double, against Python's repr()
# SPDX-License-Identifier: MIT
import decimal
import math
import random
import re
import struct
import unittest

import helpers
from helpers import run, scratch


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def hard_cases():
    """Edges of the binary and of the decimal grid, and their neighbours; what drivers measure."""
    values = {0, 1 << 63, 1, 2, 3, (1 << 52) - 1, (0x7FF << 52) - 1}
    for exponent in range(0x7FF):
        values |= {exponent << 52 | f for f in (0, 1, 2, 1 << 51, (1 << 52) - 2, (1 << 52) - 1)}
    for exponent in range(-324, 309):
        for digit in (1, 2, 5, 9):
            middle = bits_of(float(f"{digit}e{exponent}"))
            values |= {b for b in range(middle - 2, middle + 3) if 0 <= b < 0x7FF << 52}
    values |= {bits_of(n / 10 ** d) for n in (1, 7, 99, 12345, 123456789, 10 ** 15 + 1) for d in range(12)}
    values |= {bits_of(float(2 ** 53 + n)) for n in range(-20, 20)}
    return sorted(values)


def random_cases(count):
    generator = random.Random(1)
    found = []
    while len(found) < count:
        bits = generator.getrandbits(64)
        if math.isfinite(double(bits)):
            found.append(bits)
    return found


def digits_of(text):
    """Sign, digits and exponent, without zeros at the end."""
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    stripped = "".join(map(str, digits)).rstrip("0")
    return sign, stripped, exponent + len(digits) - len(stripped) if stripped else 0


class Reals(unittest.TestCase):
    def check(self, cases):
        source, out = scratch() / "reals.bin", scratch() / "reals.json"
        source.write_bytes(struct.pack(f"<{len(cases)}Q", *cases))
        run([helpers.build("reals.c", "reals"), source, out], code=0, said="")
        texts = re.findall(r'"args":\{"x":([^}]*)\}', out.read_text(encoding="utf-8"))
        self.assertEqual(len(texts), len(cases))
        wrong = [(hex(bits), text, repr(double(bits))) for bits, text in zip(cases, texts)
                 if text != repr(double(bits)) and digits_of(text) != digits_of(repr(double(bits)))]
        self.assertEqual(wrong[:10], [])
        return dict(zip(cases, texts))

    def test_hard_cases(self):
        self.check(hard_cases())

    def test_random(self):
        self.check(random_cases(20_000))

    @helpers.thorough
    def test_million_random(self):
        self.check(random_cases(1_000_000))

    def test_spelling(self):
        """Which of the spellings of these digits it is."""
        wanted = {-0.0: "-0", 1.0: "1", -2.5: "-2.5", 0.1: "0.1", 0.0001: "0.0001", 1e-5: "1e-05",
                  123456789012345.0: "123456789012345", 1e15: "1e+15", 1234567890123456.0: "1234567890123456",
                  5e-324: "5e-324", 1.5e300: "1.5e+300", 1 / 3: "0.3333333333333333"}
        found = self.check([bits_of(value) for value in wanted])
        self.assertEqual(list(found.values()), list(wanted.values()))


if __name__ == "__main__":
    unittest.main()
