# test: time=300 - bit flips in a dump of firmware's memory: with NPUPROF_CHECKED each is named, what is shown
# beside it is true, and nothing is invented
# SPDX-License-Identifier: MIT
import json
import random
import struct

import helpers
from firmware.target import build

HEADER, CELLS, USED = 80, 28, 32
LAYERS = 20


def events_of(text):
    return [json.dumps(e, sort_keys=True) for e in json.loads(text)["traceEvents"] if e["ph"] in "XCi"]


class Flips(helpers.Folder):
    @classmethod
    def setUpClass(cls):
        cls.programs = {checked: build("firmware_image.c", *(["-DNPUPROF_CHECKED"] if checked else []),
                                       name=f"checked_{checked}") for checked in (True, False)}

    def dump(self, checked):
        """The memory of a program, and what is in it."""
        self.program = self.programs[checked]
        helpers.run([self.program, "plain", LAYERS], code=0, cwd=self.folder)
        memory = (self.folder / "ram.bin").read_bytes()
        return memory, events_of(self.convert(memory)[0])

    def convert(self, memory):
        (self.folder / "flipped.bin").write_bytes(memory)
        done = helpers.run([helpers.tool("npuprof-convert"), "flipped.bin", "--elf", self.program],
                           cwd=self.folder)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout, done.returncode, done.stderr

    def flip(self, checked, count):
        """Flips one bit after the other in cells that are taken. Returns how many changed an event silently,
        and how many events at most a flip cost."""
        memory, whole = self.dump(checked)
        used, = struct.unpack_from("<I", memory, USED)
        chance, silent, cost = random.Random(29), 0, 0
        for _ in range(count):
            flipped = bytearray(memory)
            flipped[HEADER + chance.randrange(16 * used)] ^= 1 << chance.randrange(8)
            text, code, said = self.convert(flipped)
            found = events_of(text)
            silent += code == 0 and found != whole
            if checked:
                self.assertEqual(code, 1)
                self.assertIn("16 cells that do not match their check", said)
                self.assertFalse(set(found) - set(whole))
            cost = max(cost, len(whole) - len(found))
        return silent, cost

    def check(self, count):
        unchecked, _ = self.flip(False, count)
        silent, cost = self.flip(True, count)
        print(f"note of {count} flips {unchecked} were silent, with checks {silent}; one cost {cost} events")
        self.assertGreater(unchecked, count // 4)
        self.assertEqual(silent, 0)
        self.assertLess(cost, 17)

    def test_flips(self):
        self.check(40)

    @helpers.thorough
    def test_seven_hundred(self):
        self.check(700)

    def test_same_trace(self):
        """Checks change no event; those of a dump that is cut off in front of them are not looked at."""
        memory, whole = self.dump(True)
        self.assertEqual(whole, self.dump(False)[1])
        cells, = struct.unpack_from("<I", memory, CELLS)
        self.program = self.programs[True]
        self.assertEqual(self.convert(memory[:HEADER + 16 * cells])[1], 0)

    def test_a_flip_in_a_check(self):
        memory, whole = self.dump(True)
        cells, = struct.unpack_from("<I", memory, CELLS)
        flipped = bytearray(memory)
        flipped[HEADER + 16 * cells + 5] ^= 1
        text, code, _ = self.convert(flipped)
        self.assertEqual(code, 1)
        self.assertFalse(set(events_of(text)) - set(whole))
