# test: - a ring that is read as slowly as a probe does, while it records: no record is made of two, and each
# that was left out is counted
# SPDX-License-Identifier: MIT
import json
import re
import struct
import subprocess
import time

import helpers
from firmware.target import build, convert

SPAN = re.compile(r'\{"ph":"(.)","name":"([^"]*)".*?"ts":([0-9.]+)(?:,"dur":([0-9.]+))?'
                  r'(?:.*"args":(\{.*?\}))?')
HEAD = re.compile(r"snapshot (\d+) (\d+) (\d+) (\d+)\n")


# How often the signal comes, in us, and for how many of them the program waits after 16 records: slower than
# the reader, which needs some 0.1 s for the ring; much slower; faster.
SLOWER, SLOW, FASTER = (1000, 1), (1000, 5), (137, 1)
SURVIVORS = 2


class Live(helpers.Folder):
    @classmethod
    def setUpClass(cls):
        cls.writer = build("firmware_live.c", name="writer")
        cls.oldest = build("firmware_live.c", "-DNPUPROF_WHEN_FULL=NPUPROF_KEEP_OLDEST", name="oldest")
        cls.reader = helpers.build("live_reader.c", "reader", "-O1")

    def record(self, program, *rate):
        """The program, which records from now on."""
        running = subprocess.Popen([program, "ring.bin", *map(str, rate)], cwd=self.folder)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        time.sleep(0.3)
        return running

    def snapshots(self, program, rate, count, way):
        running = self.record(program, *rate)
        done = helpers.run([self.reader, "ring.bin", program, count, way], code=0, cwd=self.folder)
        running.kill()
        parts = HEAD.split(done.stdout)[1:]
        for at in range(0, len(parts), 5):
            yield [int(n) for n in parts[at:at + 4]], parts[at + 4]

    def check_span(self, phase, name, start, dur, args):
        """A record whose parts do not belong to each other fails."""
        ticks, length = round(float(start) * 1000), round(float(dur or 0) * 1000)
        if name in ("p0", "p1", "p2", "p3"):
            i = ticks // 16
            self.assertEqual((ticks % 16, int(name[1])), (0, i % 4))
            if "unfinished" not in (args or ""):
                self.assertEqual(length, 3 + i % 5)
            if name == "p3":
                self.assertIn(f'"n":{i},"not_n":{~i & 0xFFFFFFFF}', args)
        elif name == "interrupt":
            n, not_n = (int(x) for x in re.findall(r":(\d+)", args))
            self.assertEqual(n ^ not_n, 0xFFFFFFFF)
        elif name == "long":
            self.assertTrue(length == 1600 or "unfinished" in args, (length, args))
        else:
            self.assertEqual(name, "open all the time")
        return ticks // 16

    def check(self, figures, text):
        """Returns how many events a snapshot has."""
        begun, recorded, begun_after, changed = figures
        plain, found = [], 0
        for phase, name, start, dur, args in SPAN.findall(text):
            if phase in "Xi":
                i = self.check_span(phase, name, start, dur, args)
                plain += [i] * name.startswith("p")
                found += 1
        about = {key: int(re.search(f'"{key}":(\\d+)', text)[1])
                 for key in ("recorded", "overwritten", "arena_full", "changed_while_read")}
        self.assertEqual((about["recorded"], about["changed_while_read"]), (found, changed))
        # Two events at most were begun and not yet counted, or counted and not yet noted.
        total = about["recorded"] + about["overwritten"] + about["arena_full"]
        self.assertLessEqual(recorded - 2, total)
        self.assertLessEqual(total, begun_after)
        plain.sort()
        # A signal that comes while a record is being claimed passes that one, which lives for a lap more.
        # It is whole, and older.
        for _ in range(SURVIVORS):
            if len(plain) > 1 and plain[1] - plain[0] > changed + 1:
                del plain[0]
        if plain:
            self.assertLessEqual(plain[-1] - plain[0] + 1 - len(plain), changed)
        return found

    def check_all(self, *how):
        found = [self.check(*snapshot) for snapshot in self.snapshots(*how)]
        print(f"note {how[1:]}: events in a snapshot: {min(found)}, median {sorted(found)[len(found) // 2]}")
        return found

    def test_mapped(self):
        """The reader is ahead of the target: next to nothing is left out."""
        self.assertGreater(min(self.check_all(self.writer, SLOWER, 10, "mapped")), 0)

    def test_overtaken(self):
        """The target is faster than the reader by far."""
        self.check_all(self.writer, FASTER, 10, "mapped")

    def test_dumps(self):
        self.assertGreater(max(self.check_all(self.writer, SLOW, 5, "dumps")), 0)

    def test_keep_oldest(self):
        self.check_all(self.oldest, SLOW, 5, "mapped")
        self.check_all(self.oldest, SLOW, 5, "dumps")

    @helpers.thorough
    def test_thousand(self):
        self.check_all(self.writer, SLOWER, 1000, "mapped")
        self.check_all(self.writer, SLOW, 200, "dumps")


class ByHand(helpers.Folder):
    """Three dumps of a ring that stands, in which a word is as another moment would have it."""
    HEADER, USED = 80, 32

    @classmethod
    def setUpClass(cls):
        cls.program = build("firmware_ring.c")

    def setUp(self):
        super().setUp()
        helpers.run([self.program, 3, 0], code=0, cwd=self.folder)
        self.ram = (self.folder / "ram.bin").read_bytes()
        self.cells = (len(self.ram) - self.HEADER) // 16
        self.oldest = self.word(self.USED) & 0xFFFF

    def word(self, at):
        return struct.unpack_from("<I", self.ram, at)[0]

    def cell(self, index):
        """Words of a cell."""
        return struct.unpack_from("<4I", self.ram, self.HEADER + 16 * index)

    def records(self):
        """Index and length of each record, from the oldest on."""
        at, places = self.oldest, []
        for _ in range(2):
            while at < self.cells and not (places and at == self.oldest):
                length = self.cell(at + 1)[1] >> 20 & 0x7FF if self.cell(at)[0] & 1 else 1
                places.append((at, length))
                at += length
            at = 0
        return places

    def dumps(self, *changes):
        """Writes the dumps, each with words changed: {offset: word}."""
        for number, words in enumerate([*changes, {}, {}, {}][:3]):
            memory = bytearray(self.ram)
            for at, word in words.items():
                struct.pack_into("<I", memory, at, word)
            (self.folder / f"{number}.bin").write_bytes(memory)

    def converted(self, code=0, said=None):
        return helpers.run([helpers.tool("npuprof-convert"), "--live", "0.bin", "1.bin", "2.bin", "--elf",
                            self.program], code=code, said=said, cwd=self.folder)

    def figures(self, said=None):
        done = self.converted(said=said)
        about = json.loads(done.stdout)["metadata"]["npuprof"]
        return about["recorded"], about["lost"]["overwritten"], about["changed_while_read"]

    def left_out(self, cells):
        return (f"npuprof-convert: 0.bin: the target went on recording: {cells} cells of 16 bytes changed "
                "while they were read, and are left out\n")

    def spans(self):
        """Offsets of the closed spans of one cell."""
        return [self.HEADER + 16 * at for at, length in self.records()
                if length == 1 and not self.cell(at)[0] & 2 and not self.cell(at)[3] >> 31]

    def test_nothing_changed(self):
        self.dumps()
        recorded, lost, changed = self.figures(said="")
        self.assertEqual((recorded + lost, changed), (1 + 256 * 3, 0))
        plain = json.loads(convert(self.folder / "ram.bin", self.program))["metadata"]["npuprof"]
        self.assertEqual((recorded, lost), (plain["recorded"], plain["lost"]["overwritten"]))

    def test_end_of_two_moments(self):
        """The span's end is not the one that its upper half belongs to: it was open."""
        at = self.spans()[5]
        self.dumps({at + 8: 0x12345678})
        events = json.loads(self.converted(said="").stdout)["traceEvents"]
        before = json.loads(convert(self.folder / "ram.bin", self.program))["traceEvents"]
        self.assertEqual(len(events), len(before))
        opened = [(a, b) for a, b in zip(before, events) if a != b]
        self.assertEqual(len(opened), 1)
        self.assertTrue(opened[0][1]["args"]["unfinished"])

    def test_argument_of_two_moments(self):
        whole = self.recorded_of()
        at, length = next((at, n) for at, n in self.records() if n > 2 and self.says_event(at))
        self.dumps({self.HEADER + 16 * (at + 1) + 8: 0x12345678})
        self.assertEqual(self.figures(self.left_out(length)),
                         (whole - 1, 1 + 256 * 3 - whole + 1, length))

    def test_length_in_doubt(self):
        """What is behind it is left out, up to the first cell of the memory."""
        for at in [at for at, n in self.records() if n > 1][::20]:
            end = self.cells if at >= self.oldest else self.oldest
            self.dumps({self.HEADER + 16 * (at + 1) + 4: self.cell(at + 1)[1] + (1 << 20)})
            recorded, lost, changed = self.figures(self.left_out(end - at))
            self.assertEqual((recorded + lost, changed), (1 + 256 * 3, end - at))

    def test_taken_meanwhile(self):
        """header.used of the last dump is elsewhere: so many cells in the order of the ring."""
        used, places = self.word(self.USED), self.records()
        for number in (1, 30, len(places) - 20):
            moved = (places[number][0] - self.oldest) % self.cells
            to = (used & 0xFFFF0000) + (0x10000 if places[number][0] < self.oldest else 0) + places[number][0]
            self.dumps({}, {}, {self.USED: to})
            recorded, lost, changed = self.figures(self.left_out(moved))
            self.assertEqual((recorded + lost, changed), (1 + 256 * 3, moved))
        for to in (used + 0x10000, used + 0x50000, used | 0xFFFF):
            self.dumps({}, {}, {self.USED: to})
            self.assertEqual(self.figures(), (0, 1 + 256 * 3, self.cells))

    def recorded_of(self):
        return json.loads(convert(self.folder / "ram.bin", self.program))["metadata"]["npuprof"]["recorded"]

    def says_event(self, at):
        ref, half = self.cell(at)[0], self.cell(at)[3] >> 16
        return half & 0xC000 != 0xC000 and (not ref & 2 or 1 <= (ref >> 8 & 0xFF) < 64)

    def refused(self, words):
        self.assertIn(words, self.converted(code=2).stderr)

    def test_refused(self):
        self.dumps({self.USED: self.word(self.USED) | 0xFFFF})
        self.refused("the target is reading its ring, read it later")
        self.dumps({}, {}, {48: 17})
        self.refused("the target began anew while it was read")
        self.dumps()
        (self.folder / "2.bin").write_bytes(b"short")
        self.refused("the other dumps are not of the same memory")
        (self.folder / "0.bin").write_bytes(bytes(1000))
        self.refused("no arena of firmware is in it")
        tool = helpers.tool("npuprof-convert")
        (self.folder / "empty").write_bytes(b"")
        for words, says in ((["--live", "0.bin", "1.bin"], "a file that can be mapped, or three dumps"),
                            (["--live", "0.bin"], "no arena of firmware is in it"),
                            (["--live", "empty"], "no memory that can be mapped"),
                            (["--live", "nowhere"], "NPUPROF_ERR_"),
                            (["0.bin", "1.bin"], "usage"),
                            (["--live", "0.bin", "--follow", "1.bin"], "not with --follow")):
            done = helpers.run([tool, *words], code=2, cwd=self.folder)
            self.assertIn(says, done.stderr)
