# test: - what a line does to a firmware's stream: every undamaged part is recovered, every gap counted,
# nothing invented; npuprof-convert --follow reads as npuprof-convert does
# SPDX-License-Identifier: MIT
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import signal
import struct
import subprocess
import termios
import time
import tty
import unittest
import zlib

import helpers
from firmware import line
from helpers import run, scratch

SLEPT = 71
SITES = [0x10000 + 8 * i for i in range(7)]


def stream(count, order="<", start=1000, seed=1):
    """A stream of so many spans, some of three cells."""
    chance, target = random.Random(seed), line.Target(order=order, start=start)
    for i in range(count):
        if chance.random() < 0.3:
            target.event(chance.choice(SITES), i)
        else:
            target.span(chance.choice(SITES), chance.randrange(1, 50))
        while len(target.pending) >= 16:
            target.part(chance.choice((16, 16, 16, 5)))
    target.part()
    return target


def damaged(target, chance):
    """The stream as a bad line brings it."""
    data, places = bytes(target.bytes), target.places
    for _ in range(chance.randrange(1, 8)):
        at, kind = chance.randrange(1, len(data)), chance.randrange(8)
        size = chance.choice((1, 1, 2, 17, 300, 900))
        if kind == 0:
            data = data[:at] + data[at + size:]                                         # lost
        elif kind == 1:
            data = data[:at] + data[at:at + size] + data[at:]                           # doubled
        elif kind == 2:
            data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]
        elif kind == 3:
            data = data[:at] + chance.randbytes(size) + data[at:]                       # other output
        elif kind == 4:
            data = data[:at] + chance.choice((b"NPBT", b"NPST")) + chance.randbytes(8) + data[at:]   # a mark
        elif kind == 5:
            data = data[:at]                                                            # cut off
        else:
            first, second = sorted(chance.sample(range(1, len(places)), 2))
            a, b = places[first], places[second if kind == 6 else min(first + 1, len(places) - 1)]
            one, other = target.bytes[a[0]:sum(a)], target.bytes[b[0]:sum(b)]
            if kind == 6:
                data = data.replace(bytes(one), b"", 1)                                 # a part lost
            else:
                data = data.replace(bytes(one + other), bytes(other + one), 1)          # two swapped
        if len(data) < 500:
            break
    return data


def truth(target, data, order="<"):
    """The spans whose cells came, how many runs of cells are missing, from the target's first one on, and how
    many cells; None: no header came. And whether the last record is cut off, or a part behind the last whole
    one: that is damage."""
    parts, headers = line.parts_in(data, order), line.headers_in(data, order)
    if not headers:
        return None
    cells = {n for first, (count, _, _) in parts.items() for n in range(first, first + count)}
    end = max([max(cells) + 1] + [used for _, used in headers]) if cells else 0
    missing = sorted(set(range(end)) - cells)
    runs = sum(n == 0 or missing[n - 1] + 1 != cell for n, cell in enumerate(missing))
    is_cut = any(n in cells and n + length - 1 > max(cells) for n, length in target.lengths.items())
    *_, (at, _, count, _, _) = line.parts_at(data, order)
    is_cut |= struct.pack(order + "I", line.MARK) in data[at + line.HEAD + line.CELL * count:]
    return sorted(span for n, span in target.spans.items() if n in cells), runs, len(missing), is_cut


class Follow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch() / "follow"
        cls.folder.mkdir(exist_ok=True)
        cls.converter = helpers.tool("npuprof-convert")

    def convert(self, data, *words):
        (self.folder / "line.bin").write_bytes(data)
        out = self.folder / "line.json"
        for old in self.folder.glob("line*.json"):
            old.unlink()
        done = run([self.converter, *(words or [self.folder / "line.bin"]), "-o", out])
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        paths = sorted(self.folder.glob("line*.json"), key=lambda p: (len(p.name), p))
        return done.returncode, [json.loads(path.read_bytes()) for path in paths], done.stderr

    def spans(self, trace):
        return sorted((e["name"], round(e["ts"]), round(e["dur"])) for e in trace["traceEvents"]
                      if e["ph"] == "X" and e.get("cat") != "npuprof")

    def gaps(self, trace):
        return [e["args"]["cells"] for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "gap"]

    def check_line(self, target, data, order="<"):
        wanted = truth(target, data, order)
        code, traces, said = self.convert(data)
        if wanted is None or not wanted[0]:              # no header came, or no span
            self.assertTrue(not traces or not self.spans(traces[0]), said)
            return None
        self.assertEqual(len(traces), 1, said)
        self.assertEqual(self.spans(traces[0]), wanted[0])
        gaps = self.gaps(traces[0])
        self.assertEqual(sum(gaps), wanted[2], said)
        self.assertEqual(code, 1 if wanted[2] or wanted[3] else 0, said)
        self.assertIn(f"{wanted[1]} gaps, {wanted[2]} cells", self.about(traces[0]))
        return traces[0]

    def about(self, trace):
        return trace["metadata"]["npuprof"]["unused_environment"].get("NPUPROF_LINE", "0 gaps, 0 cells")

    def damage_many(self, times, order):
        chance, missing = random.Random(15), 0
        for n in range(times):
            target = stream(chance.choice((60, 200, 1500)), order, seed=n)
            data = damaged(target, chance)
            with self.subTest(n=n):
                trace = self.check_line(target, data, order)
                missing += trace is not None and len(self.gaps(trace)) > 0
        self.assertGreater(missing, times // 3)

    def test_whole(self):
        for order in "<>":
            target = stream(3000, order)
            trace = self.check_line(target, bytes(target.bytes), order)
            self.assertEqual((len(self.spans(trace)), self.gaps(trace)), (3000, []))

    def test_damaged(self):
        self.damage_many(30, "<")

    @helpers.thorough
    def test_damaged_often(self):
        self.damage_many(300, "<")
        self.damage_many(60, ">")

    @helpers.thorough
    def test_cuts(self):
        """Every 97th place: what came before it is there."""
        target = stream(1500)
        for at in range(1, len(target.bytes), 397):
            with self.subTest(at=at):
                self.check_line(target, bytes(target.bytes[:at]))
                self.check_line(target, bytes(target.bytes[at:]))

    def test_late(self):
        """The host comes when many cells were sent: they are a gap at the beginning, and what --follow shows
        is what the file says."""
        target = stream(1500)
        headers = [(offset, used) for offset, used in line.headers_in(target.bytes)]
        alone = target.bytes[headers[1][0]:headers[1][0] + line.HEADER]          # the part behind it is lost
        for at in (headers[1][0], headers[1][0] + 1, target.places[3][0], headers[1][0] + 500):
            data = bytes((alone if at == headers[1][0] + 500 else b"") + target.bytes[at:])
            with self.subTest(at=at):
                trace = self.check_line(target, data)
                before = min(line.parts_in(data))
                self.assertEqual(self.gaps(trace)[0], before)
                self.assertIn(f", {before} of them before the first that came;", self.about(trace))
                first = min((e for e in trace["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"])
                self.assertEqual((first["name"], first["ts"]), ("gap", 0))
                said, traces = self.piped(data, "-")
                self.assertEqual(traces, [trace])
                gaps, cells = re.search(r"(\d+) gaps, (\d+) cells", self.about(trace)).groups()
                self.assertIn(f", {gaps} gaps of {cells} cells ({before} before the first that came), ", said)

    def test_late_to_open(self):
        """Open spans that are sent again in each lap: --follow counts as many as the file has, from wherever
        the host comes, and whatever is lost."""
        target = line.Target(cells=64)
        for n in range(64 * 5):
            target.clock = 5000 + n
            if n % 64 in (3, 40):
                target.cell(SITES[n % 2], 4000 + n % 64, 0, 0, line.OPEN)
            else:
                target.span(SITES[2], 1)
        while target.pending:
            target.part()
            if target.parts % 3 == 0:
                target.header()
        items = [bytes(target.bytes[at:at + size]) for at, size in target.places]
        for skip in range(5):
            said, (trace,) = self.piped(b"".join(items[skip:8] + items[8 + skip:]), "-")
            shown = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] != "gap"]
            with self.subTest(skip=skip):
                self.assertEqual(len([e for e in shown if e["name"] != f"@{SITES[2]:08x}"]), 2)
                self.assertIn(f" s: {len(shown)} spans, 0 events, ", said)

    def test_one_cell(self):
        """A gap of one cell, at the beginning, within and at the end, is one gap."""
        for lost in (0, 10, 39):
            target = line.Target()
            for n in range(40):
                target.span(SITES[0], 5)
                begins = len(target.bytes)
                target.part()
                if n == lost:
                    del target.bytes[begins + (0 if n else line.HEADER):]
            target.header()
            with self.subTest(lost=lost):
                trace = self.check_line(target, bytes(target.bytes))
                self.assertEqual(self.gaps(trace), [1])
                self.assertIn("1 gaps, 1 cells", self.about(trace))

    def test_impossible_part(self):
        """A part that is right by its checksum, with more cells that continue a record than it has cells, or
        with none, or with 17: none is taken."""
        for count, lead in ((0, 0), (17, 0)):
            target = line.Target()
            for _ in range(33):
                target.span(SITES[0], 5)
            target.part()
            good = bytes(target.bytes)
            at = len(good)
            target.part(count or 16)
            cells = bytes(target.bytes[at + line.HEAD:at + line.HEAD + line.CELL * count])
            rest = struct.pack("<I2H", 16 + count, count, lead) + cells
            bad = struct.pack("<2I", line.MARK, zlib.crc32(rest)) + rest
            with self.subTest(count=count, lead=lead):
                _, traces, said = self.convert(good + bad)
                self.assertEqual(len(self.spans(traces[0])), 16, said)

    def test_began_anew(self):
        """A new start is a new trace, also if its first header, or the end of the old one, is lost."""
        first, second = stream(900), stream(1200, start=77, seed=2)
        for cut, skip in ((0, 0), (0, 80), (100, 0), (40, 30)):
            data = bytes(first.bytes[:len(first.bytes) - cut] + second.bytes[skip:])
            with self.subTest(cut=cut, skip=skip):
                _, traces, said = self.convert(data)
                self.assertEqual(len(traces), 2, said)
                self.assertIn("began anew", said)
                for target, trace, part in ((first, traces[0], first.bytes[:len(first.bytes) - cut]),
                                            (second, traces[1], second.bytes[skip:])):
                    self.assertEqual(self.spans(trace), truth(target, bytes(part))[0])
                follow = ["--follow", self.folder / "line.bin", "--seconds", "0"]
                self.assertEqual(self.convert(data, *follow)[1], traces)

    def test_began_anew_unseen(self):
        """The header of the new start is lost, and the next one comes after more cells than the old one had:
        the parts before it are of the new trace alone. Its clock began later, earlier, or at the same tick;
        the first parts are lost, too; a part of the old one came twice, which is no part of the new one."""
        for start, skip, again in ((5000, 0, 0), (77, 0, 0), (1000, 0, 0), (77, 3, 0), (77, 12, 4),
                                   (78, 0, 0)):
            first = stream(15 if start == 78 else 200)
            second = stream(1500, start=start, seed=2)
            old = bytes(first.bytes)
            if again:
                old += old[first.places[-again][0]:]
            new = bytes(second.bytes[second.places[1 + skip][0]:])
            with self.subTest(start=start, skip=skip):
                self.check_both(first, old, second, new, skip)

    def test_began_anew_in_a_gap(self):
        """The header and more cells than the old trace had are lost: the clock of the next header tells."""
        first, second = stream(400, start=1 << 20), stream(1500, start=77, seed=2)
        lost = second.places[50][0]
        self.check_both(first, bytes(first.bytes), second, bytes(second.bytes[lost:]), lost)

    def check_both(self, first, old, second, new, late):
        code, traces, said = self.convert(old + new)
        self.assertEqual((code, len(traces)), (1 if late else 0, 2), said)
        sums = [0, 0]
        for target, data, trace in ((first, old, traces[0]), (second, new, traces[1])):
            spans, *wanted, _ = truth(target, data)
            self.assertEqual(self.spans(trace), spans)
            self.assertEqual([len(self.gaps(trace)), sum(self.gaps(trace))], wanted)
            sums = [a + b for a, b in zip(sums, wanted)]
        code, same, said = self.convert(old + new, "--follow", self.folder / "line.bin", "--seconds", "0")
        self.assertEqual(same, traces)
        spans = sum(len(self.spans(trace)) for trace in traces)
        self.assertIn(f" s: {spans} spans, 0 events, {sums[0]} gaps of {sums[1]} cells", said)

    def test_start_moved(self):
        """Between two headers the start goes back, and the clock on, while cells are lost: it may be a sleep
        or a new start, and the trace says so. A sleep that came explains it."""
        for comes in (True, False):
            target = line.Target()
            target.span(SITES[0], 5)
            target.part()
            target.cell(SLEPT << 8 | 2, target.clock, 400, 0, 0)
            begins = len(target.bytes)
            target.part()
            if not comes:
                del target.bytes[begins:]
            target.start -= 400
            target.header()
            target.span(SITES[0], 5)
            target.part()
            with self.subTest(comes=comes):
                _, traces, said = self.convert(bytes(target.bytes))
                self.assertEqual(len(traces), 1, said)
                moved = "the start moved back by 400 ticks in a gap: the target slept there, or began anew"
                self.assertEqual(moved in self.about(traces[0]), not comes, self.about(traces[0]))

    def test_no_header(self):
        """Parts of a new start, of which no header comes, are counted and in no trace."""
        first, second = stream(200), stream(100, start=77, seed=2)
        code, traces, said = self.convert(bytes(first.bytes + second.bytes[line.HEADER:]))
        self.assertEqual((code, len(traces)), (1, 1), said)
        self.assertEqual(self.spans(traces[0]), sorted(first.spans.values()))
        self.assertIn("parts of a trace whose headers are all missing", said)
        self.assertIn(f"; {len(second.places) - 1} parts are of a start without a header",
                      self.about(traces[0]))

    def test_overlap(self):
        """Of a part the cells in the middle came before, as of another trace: each cell once."""
        target = line.Target()
        target.header()
        target.parts = 1
        for first, count in ((4, 4), (0, 16), (16, 4)):
            target.sent = first
            for n in range(first, first + count):
                target.clock = 1000 + 10 * n
                target.span(SITES[0], 5)
            target.part()
        code, traces, said = self.convert(bytes(target.bytes))
        self.assertIn(code, (0, 1), said)
        self.assertEqual([start for _, start, _ in self.spans(traces[0])], [10 * n for n in range(20)])

    def test_long_silence(self):
        """Records that are 2^44 ticks apart, more than a chunk of a host's arena can say."""
        target = line.Target()
        for _ in range(7):
            end = target.clock + 5
            target.cell(SITES[0], target.clock, end, target.clock >> 32, end >> 32)
            target.part()
            target.clock += 1 << 44
        code, traces, said = self.convert(bytes(target.bytes))
        self.assertEqual((code, len(self.spans(traces[0]))), (0, 7), said)

    def test_open(self):
        """Spans of one start, sent while open, on both sides of a gap: each end finds one. A lost end
        is said, also by check."""
        for ends in (2, 1, 0):
            target = line.Target()
            for n in range(2):
                target.sent += 3 * n
                target.cell(SITES[n], 5000, 0, 0, line.OPEN)
                target.part()
            for end in range(5010, 5010 + ends):
                target.cell(line.CLOSE << 8 | 2, end, 5000, 0, 0)
            target.part()
            _, traces, said = self.convert(bytes(target.bytes))
            about = traces[0]["metadata"]["npuprof"]["unused_environment"]["NPUPROF_LINE"]
            self.assertIn("; 0 spans ended whose beginning is not there", about)
            self.assertIn(f"; {2 - ends} are open", about)
            done = helpers.npuprof_py("check", self.folder / "line.json", code=None)
            self.assertIn(f"line: {about}", done.stdout + done.stderr)

    def test_many_of_one_start(self):
        """It does not take hours."""
        target = line.Target(cells=1 << 20)
        for n in range(40000):
            target.cell(SITES[0] + 4 * n, 5000, 0, 0, line.OPEN)
        while target.pending:
            target.part()
        started = time.process_time()
        (self.folder / "line.bin").write_bytes(target.bytes)
        run([self.converter, self.folder / "line.bin", "-o", self.folder / "line.json"], code=0)
        self.assertLess(time.process_time() - started, 20)

    def test_follows_as_it_reads(self):
        """From a file, pipe and terminal: what the captured bytes give. A file's cut part may still come."""
        target, chance = stream(1500), random.Random(4)
        whole, last = bytes(target.bytes), target.places[-1][0]
        flipped = whole[:last + 40] + bytes([whole[last + 40] ^ 1]) + whole[last + 41:]
        cut = [whole[:last + 40], flipped]
        for n, data in enumerate([*cut, whole, *(damaged(target, chance) for _ in range(5))]):
            _, wanted, _ = self.convert(data)
            self.assertTrue(n >= len(cut) or wanted[0]["metadata"]["npuprof"]["damaged_places"] == 1)
            if not wanted:
                continue
            with self.subTest(n=n):
                _, traces, _ = self.convert(data, "--follow", self.folder / "line.bin", "--seconds", "0")
                self.assertEqual(traces == wanted, n >= len(cut))
                self.assertEqual(self.piped(data, "-")[1], wanted)
                self.assertEqual(self.through_terminal(data), wanted)

    def piped(self, data, source, *words):
        out = self.folder / "pipe.json"
        out.unlink(missing_ok=True)
        done = subprocess.run([self.converter, "--follow", source, "-o", out, *words], input=data,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        return done.stderr.decode(), [json.loads(out.read_bytes())] if out.exists() else []

    def through_terminal(self, data):
        """A pty in place of a serial device, whose other end closes at last."""
        out = self.folder / "pty.json"
        out.unlink(missing_ok=True)
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        process = subprocess.Popen([self.converter, "--follow", os.ttyname(theirs), "-o", out],
                                   stderr=subprocess.PIPE)
        for at in range(0, len(data), 1000):
            os.write(ours, data[at:at + 1000])
        quiet = 0                           # what is not read when it ends is lost, and may be on its way
        while quiet < 30:
            quiet = 0 if struct.unpack("i", fcntl.ioctl(theirs, termios.FIONREAD, bytes(4)))[0] else quiet + 1
            time.sleep(0.01)
        os.close(theirs)
        os.close(ours)
        said = process.communicate(timeout=300)[1].decode()
        self.assertRegex(said, "the device is gone|the other end closed")
        return [json.loads(out.read_bytes())]

    def test_split(self):
        """A long stream becomes several files of a fixed size; the newest ones are kept, and none begins with
        a gap."""
        target = stream(150000)
        words = ["--follow", self.folder / "line.bin", "--seconds", "0", "--split", "1"]
        _, traces, _ = self.convert(bytes(target.bytes), *words, "--every", "0")
        self.assertGreater(len(traces), 2)
        every = set()
        for trace in traces:
            self.assertEqual(self.gaps(trace), [])
            every |= set(self.spans(trace))
        self.assertEqual(every, set(target.spans.values()))
        self.convert(bytes(target.bytes), *words, "--files", "2")
        names = sorted(path.name for path in self.folder.glob("line*.json"))
        self.assertEqual(names, [f"line-{n}.json" for n in (len(traces) - 1, len(traces))])

    def test_interrupted(self):
        """A signal ends it, and the file is whole; while it runs, too."""
        target, out = stream(2000), self.folder / "grows.json"
        path = self.folder / "grows.bin"
        for number in (signal.SIGINT, signal.SIGTERM):
            out.unlink(missing_ok=True)
            half = target.places[len(target.places) // 2][0]
            path.write_bytes(target.bytes[:half])
            process = subprocess.Popen([self.converter, "--follow", path, "-o", out, "--every", "1"],
                                       stderr=subprocess.PIPE)
            while not out.exists():
                time.sleep(0.05)
            before = len(self.spans(json.loads(out.read_bytes())))
            with path.open("ab") as file:
                file.write(target.bytes[half:])
            fds = pathlib.Path("/proc", str(process.pid), "fd")
            (fd,) = [fd.name for fd in fds.iterdir() if os.path.realpath(fd) == os.path.realpath(path)]
            while f"pos:\t{len(target.bytes)}\n" not in (fds.parent / "fdinfo" / fd).read_text():
                time.sleep(0.01)
            process.send_signal(number)
            said = process.communicate(timeout=300)[1].decode()
            self.assertEqual(process.returncode, 0, said)
            self.assertIn(": interrupted\n", said)
            self.assertLess(before, 2000)
            self.assertEqual(len(self.spans(json.loads(out.read_bytes()))), 2000)

    def test_sentences(self):
        """What cannot be done is said in one sentence, with exit code 2."""
        data, out = bytes(stream(60).bytes), self.folder / "no.json"
        (self.folder / "line.bin").write_bytes(data)
        for words, said in ((["--follow", "/no/such"], "/no/such: No such file"),
                            (["--follow", self.folder], "is a folder"),
                            (["--follow", "-", "-o", "/no/such/t.json"], "/no/such/t.json: No such file"),
                            (["--follow", "-", "--elf", self.folder / "line.bin"], "is not an ELF file"),
                            (["--follow", "--elf", self.folder / "line.bin"], "--follow: usage"),
                            (["--follow", "-", "--baud", "123"], "is no baud rate"),
                            (["--follow", "-", "--baud", "x"], "--baud: usage"),
                            (["--follow", "-", "--report"], "--report: not with --follow"),
                            ([self.folder / "line.bin", "--seconds", "1"], "only with --follow"),
                            (["--follow", "-", "-o", out], "nothing of npuprof came")):
            done = subprocess.run([self.converter, *words], input=b"hello" * 100, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=300)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr.decode())
            self.assertFalse(out.exists())
        # A pipe behind it that closes, and a file that cannot be written any more.
        with open("/dev/full", "w") as file:
            done = subprocess.run([self.converter, "--follow", "-"], input=data, stdout=file,
                                  stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no space", done.stderr.decode())
        said = self.folder / "said"
        subprocess.run(f"'{self.converter}' --follow - 2>'{said}' | true", input=data, shell=True,
                       timeout=300)
        self.assertRegex(said.read_text(), "NPUPROF_ERR|no part")

    def test_shows(self):
        """At the end one line with the counts; no flood where nobody looks."""
        said, _ = self.piped(bytes(stream(500).bytes[:-1000]), "-")
        self.assertEqual(len(said.splitlines()), 3, said)
        self.assertIn("names are addresses: give the program that sends, --elf FIRMWARE.elf\n", said)
        self.assertRegex(said, r"(?s)s: \d+ spans, 0 events, 0 gaps of 0 cells.*the other end closed")
