# .pftrace: every event equals the JSON's, by a decoder of its own; two traces that are put together
# SPDX-License-Identifier: MIT
import collections
import json
import lzma
import pathlib
import re
import signal
import subprocess
import sys
import unittest
from decimal import Decimal

import helpers
import pftrace
from helpers import events, run, scratch

KINDS = ("all", "device", "wrapped", "open", "stream", "arena", "arena-open", "arena-wrapped", "arena-device",
         "arena-tiny", "empty")
NAMES = [b"quote\"", b"\x01\x02\x1f\x7f", "é 漢字 😀 \u2028".encode(), b"\xff", b"a\xe2\x82z", b"", b" ",
         b"x" * 10240, "é".encode() * 5000, b"\xff" * 3000, b"y" * 1022 + "漢".encode(),
         b"</script>", b"trace_id", b"stamp"]


REAL = re.compile(r"-?\d+(?=[.eE])(\.\d+)?([eE][-+]?\d+)?")


def ns(value):
    return int(Decimal(value) * 1000)


def value_text(value):
    """An argument as the JSON writes it: reals that JSON has not and large integers are strings there. A text
    that was NULL is null there, and a word here."""
    if value is None:
        return "null"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, "NaN")
    if isinstance(value, (float, Decimal)):
        # A whole real may be written without a point in the JSON.
        value = float(value)
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def arguments(args):
    return json.dumps({key: value_text(value) for key, value in args.items()}, sort_keys=True)


def sum_of_json(file):
    """As pftrace.sum_of_spans(), of a JSON: a span is a line."""
    count = total = 0
    stamp = re.compile(rb'"name":"([^"]*)".*"ts": ?(\d+)\.(\d{3}),"dur": ?(\d+)\.(\d{3})')
    for line in file:
        if line.startswith(b'{"ph":"X"'):
            name, *digits = stamp.search(line).groups()
            count += 1
            total += hash((name, int(digits[0] + digits[1]), int(digits[2] + digits[3])))
    return count, total


class FromJson:
    """The content of a JSON in the terms of the decoder; all times after the beginning of the trace."""

    def __init__(self, path):
        trace = json.loads(path.read_bytes(), parse_float=Decimal)
        self.metadata = trace["metadata"]["npuprof"]
        self.metadata.pop("sites", None)       # each span has its own in a .pftrace
        self.spans = [(e["name"], e.get("cat", ""), ns(e["ts"]), ns(e["dur"]), arguments(e.get("args", {})),
                       (e["pid"], e["tid"]))
                      for e in events(trace, "X")]
        self.instants = collections.Counter(
            (e["name"], e.get("cat", ""), ns(e["ts"]), self.instant_arguments(e)) for e in events(trace, "i"))
        self.samples = collections.Counter()
        for e in events(trace, "C"):
            for key, value in e["args"].items():
                name = e["name"] if key == "value" else f"{e['name']} {key}"
                self.samples[name or "unnamed", ns(e["ts"]), float(value)] += 1
        starts = {e["id"]: e for e in events(trace, "s")}
        self.arrows = collections.Counter(
            (self.around(starts[e["id"]]), self.around(e)) for e in events(trace, "f"))

    @staticmethod
    def instant_arguments(e):
        args = dict(e.get("args", {}))
        if e.get("derived"):             # of a memory pool; the JSON leaves a change of 0 out
            args.setdefault("change", 0)
        return arguments(args)

    def attributes(self):
        """The metadata as attributes: the keys on the way to each value, but what the program itself said."""
        def of(value, path):
            if isinstance(value, (dict, list)):
                members = value.items() if isinstance(value, dict) else enumerate(value)
                return [leaf for key, inner in members if key != "sites"
                        for leaf in of(inner, f"{path}.{key}")]
            if isinstance(value, (bool, type(None), Decimal)):
                value = repr(float(value)) if isinstance(value, Decimal) else json.dumps(value)
            return [(path.removeprefix(f"{head}.user."), value)]
        head = f"npuprof.{self.metadata['pid']}"
        return dict(of(self.metadata, head))

    def around(self, end):
        """The innermost span around an end of an arrow, as viewers find it: name and start."""
        track, at = (end["pid"], end["tid"]), ns(end["ts"])
        inside = [s for s in self.spans if s[5] == track and s[2] <= at <= s[2] + s[3]]
        return max(inside, key=lambda s: (s[2], -s[3]))[:3:2] if inside else None


class Pftrace(unittest.TestCase):
    def compare(self, image, elf=None):
        """Converts an image to both forms and compares; returns the decoded trace and the JSON's content."""
        both = {}
        for extension in ("json", "pftrace"):
            out = scratch() / f"same.{extension}"
            done = run([helpers.tool("npuprof-convert"), image, "-o", out, *(["--elf", elf] if elf else [])])
            self.assertIn(done.returncode, (0, 1), done.stderr)
            both[extension] = out
        ours, found = FromJson(both["json"]), pftrace.read(both["pftrace"].read_bytes())
        self.same(found, ours)
        self.correlated(found)
        # The tool that needs no compiler makes the same of the JSON.
        again = scratch() / "again.pftrace"
        tool = helpers.ROOT / "tools" / "npuprof.py"
        run([sys.executable, tool, "convert", both["json"], "-o", again], code=0)
        same = pftrace.read(again.read_bytes())
        self.correlated(same)
        self.same(same, ours)
        return found, ours

    def correlated(self, found):
        """The ends of an arrow to a device have one number, which no other span of a host has."""
        threads = {track.ids[1] for track in found.tracks.values() if track.kind == "thread"}
        for mark in found.instants:
            if mark.cats == "memory" and "tid" in mark.args:
                self.assertIn(mark.args["tid"], threads)
        hosts = [s.correlation for s in found.slices if s.track.kind == "thread" and s.correlation]
        self.assertEqual(len(hosts), len(set(hosts)))
        for begin, end in found.arrows:
            reached = found.slices[end]
            if begin is not None and reached.track.kind == "track" and "stamp" in reached.args:
                self.assertTrue(reached.correlation)
                self.assertEqual(found.slices[begin].correlation, reached.correlation)

    def same(self, found, ours):
        """Is a decoded trace the same as the JSON, event by event?"""
        base = found.snapshots[0][6]
        self.assertEqual(found.errors, [])
        spans = collections.Counter((s.name, s.cats, s.start - base, s.dur, arguments(s.args))
                                    for s in found.slices)
        self.assertEqual(spans, collections.Counter(s[:5] for s in ours.spans))
        said = {key: repr(float(value)) if REAL.fullmatch(str(value)) else value
                for key, value in found.attributes.items()}
        self.assertEqual(said, ours.attributes())
        for mark in (i for i in found.instants if "pool" in i.args and i.cats == "memory"):
            self.assertEqual(mark.track.name, mark.args["pool"] or "unnamed")
            mark.args.pop("tid", None)
        marks = collections.Counter((i.name, i.cats, i.start - base, arguments(i.args))
                                    for i in found.instants)
        self.assertEqual(marks, ours.instants)
        samples = collections.Counter((s.track.name, s.start - base, float(s.value)) for s in found.samples)
        self.assertEqual(samples, ours.samples)
        short = [(found.slices[n].name, found.slices[n].start - base) if n is not None else None
                 for pair in found.arrows for n in pair]
        self.assertEqual(collections.Counter(zip(short[::2], short[1::2])), ours.arrows)

    def test_every_kind_of_image(self):
        program = helpers.build("images.c", "images")
        for kind in KINDS:
            with self.subTest(kind=kind):
                image = scratch() / f"{kind}.npuprof"
                run([program, kind, image], code=0, env=helpers.environment())
                self.compare(image)

    def test_every_kind_of_event(self):
        """The program of the golden files; digits that viewers garble, and threads by their native number."""
        program = helpers.build("golden_kinds.c", "golden_kinds")
        run([program, "kinds.npuprof"], code=0, env=helpers.environment())
        found, ours = self.compare(scratch() / "kinds.npuprof")
        pid = ours.metadata["pid"]
        threads = [t for t in found.tracks.values() if t.kind == "thread"]
        self.assertEqual({t.ids[0] for t in threads}, {pid})
        self.assertIn(pid, {t.ids[1] for t in threads})
        self.assertEqual([(t.name, t.ids) for t in found.tracks.values() if t.kind == "process"],
                         [(ours.metadata["program"], pid)])
        # Engines are tracks under their device, and the device is no thread.
        parents = {t.parent for t in found.tracks.values() if t.name.startswith("PE ")}
        self.assertEqual({found.tracks[parent].name for parent in parents},
                         {device["name"] for device in ours.metadata["devices"]})
        pools = [t for t in found.tracks.values()
                 if t.kind == "counter" and t.name.endswith((" used", " allocated"))]
        self.assertEqual({t.ids for t in pools}, {3})     # bytes
        clocks, = found.snapshots               # one for all threads
        self.assertEqual(len(clocks.keys() - {1, 3, 6}), 1)
        self.assertEqual((clocks[6], clocks[3], clocks[1]),
                         tuple(ours.metadata[f"start_{name}_ns"]
                               for name in ("boottime", "monotonic", "unix")))

    def test_points_of_a_device(self):
        """Instants and values in device spans close none; what has one name is not one track."""
        for seed in range(1, 7):
            program = helpers.build("points.c", "points")
            image = scratch() / "points.npuprof"
            run([program, str(seed), image], code=0, env=helpers.environment())
            both = self.compare(image)[0], pftrace.read((scratch() / "again.pftrace").read_bytes())
            for found in both:
                devices = [t for t in found.tracks.values() if t.name == "sim"]
                self.assertEqual(len(devices), 2)
                for device in devices:
                    lanes = {t.key for t in found.tracks.values() if t.parent == device.uuid}
                    self.assertEqual(len(lanes), 4, lanes)     # executions and instructions of two PEs
                copies = [t for t in found.tracks.values() if t.name == "copy"]
                self.assertEqual((len(copies), len({t.key for t in copies})), (3, 2))

    def test_queues_of_a_device(self):
        program, image = helpers.build("queues.c", "queues"), scratch() / "queues.npuprof"
        self.assertEqual(run([program, image], env=helpers.environment()).returncode, 0)
        self.compare(image)

    @helpers.thorough
    def test_every_image_of_the_corpus(self):
        for path in sorted((helpers.TESTS / "image" / "corpus").glob("*.npuprof.xz")):
            with self.subTest(path=path.name):
                elf = path.with_name(path.name.replace(".npuprof.xz", ".elf.xz"))
                for packed in filter(pathlib.Path.exists, (path, elf)):
                    (scratch() / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))
                self.compare(scratch() / path.stem, scratch() / elf.stem if elf.exists() else None)

    def test_hostile_names(self):
        program = helpers.build("hostile.c", "hostile")
        (scratch() / "names").write_bytes(b"".join(name + b"\0" for name in NAMES))
        run([program, "names", "hostile.npuprof"], code=0, env=helpers.environment())
        self.compare(scratch() / "hostile.npuprof")

    def test_killed(self):
        """A mapped arena of a program that was killed in the middle of its spans."""
        source = scratch() / "killed.c"
        source.write_text('#include "npuprof.h"\n#include <signal.h>\n'
                          'int main(void) { npuprof_start(1); PROF_SCOPE("outer");\n'
                          'for (int i = 0; i < 300; i++) { PROF_SCOPE("a"); PROF_FLOW_OUT(i); }\n'
                          '{ PROF_SCOPE("open"); raise(SIGKILL); } return 0; }\n')
        image = scratch() / "killed.npuprof"
        run([helpers.build(source, "killed")], code=-signal.SIGKILL,
            env=helpers.environment(NPUPROF_ARENA_PATH=image))
        found, _ = self.compare(image)
        self.assertEqual([s.name for s in found.slices if s.args.get("unfinished")], ["outer", "open"])

    def test_with_a_trace_of_the_system(self):
        """A hand-made trace of the scheduler and ours, one behind the other, are on one clock."""
        program = helpers.build("golden_kinds.c", "golden_kinds")
        run([program, "kinds.npuprof"], env=helpers.environment())
        out = scratch() / "ours.pftrace"
        run([helpers.tool("npuprof-convert"), scratch() / "kinds.npuprof", "-o", out], code=0)
        ours = out.read_bytes()
        alone = pftrace.read(ours)
        begin = min(s.start for s in alone.slices)

        def number(field, value):
            return encoded(field << 3) + encoded(value)

        def encoded(value):
            text = bytearray()
            while value > 127:
                text.append(value & 127 | 128)
                value >>= 7
            return bytes(text + bytearray([value]))

        def inside(field, content):
            return encoded(field << 3 | 2) + encoded(len(content)) + content

        # An event of the kernel a microsecond before our first span; a slice of another writer right on it,
        # on a sequence with a number that we use, too.
        switch = number(1, begin - 1000) + number(2, 0) + inside(4, inside(5, b"ours") + number(6, 7))
        kernel = inside(1, inside(1, number(1, 0) + inside(2, switch)))
        snapshot = inside(6, inside(1, number(1, 6) + number(2, begin)) +
                          inside(1, number(1, 64) + number(2, begin) + number(3, 1)) + number(2, 6))
        other = inside(1, number(10, 1) + number(13, 1) + snapshot +
                       inside(59, number(58, 64) + inside(11, number(11, 99))))
        other += inside(1, inside(60, number(1, 99) + inside(2, b"other")))
        for kind, step in ((1, 0), (2, 500)):
            event = number(9, kind) + (inside(23, b"theirs") if kind == 1 else b"")
            other += inside(1, number(10, 1) + number(13, 2) + number(8, step) + inside(11, event))
        for both in (other + ours, ours + other):
            found = pftrace.read(both)
            self.assertEqual(found.errors, [])
            (theirs,) = [s for s in found.slices if s.name == "theirs"]
            self.assertEqual((theirs.start, theirs.dur), (begin, 500))
            self.assertEqual(len(found.slices), len(alone.slices) + 1)
            self.assertEqual(found.arrows and len(found.arrows), len(alone.arrows))
        found = pftrace.read(kernel + ours)
        self.assertEqual(found.errors, [])
        self.assertEqual([(event[0], event[3]) for event in found.kernel], [(begin - 1000, 4)])

    @helpers.thorough
    def test_twice_is_the_same_and_files_are_whole(self):
        program = helpers.build("images.c", "images")
        image = scratch() / "all.npuprof"
        run([program, "all", image], env=helpers.environment())
        convert, out = helpers.tool("npuprof-convert"), scratch() / "again.pftrace"
        run([convert, image, "-o", out])
        first = out.read_bytes()
        run([convert, image, "-o", out])
        self.assertEqual(out.read_bytes(), first)
        self.assertEqual(run([convert, image, "-o", "/no/such/t.pftrace"]).returncode, 2)
        self.assertEqual(run([convert, image, "-o", "/dev/full"]).returncode, 2)
        done = subprocess.run([convert, image, "-o", "/dev/stdout.pftrace"], capture_output=True)
        self.assertEqual(done.returncode, 2)

    @helpers.thorough
    def test_digits(self):
        """The demo: four threads, a device with four PEs and their engines."""
        helpers.make("build/examples/digits/digits", "build/examples/digits/npusim")
        image = scratch() / "digits.npuprof"
        run([helpers.ROOT / "build/examples/digits/digits", "--output", image, "--images", "8", "--seconds",
             "0.1", "--", "--slower", "4"], code=0)
        found, _ = self.compare(image)
        self.assertGreater(len([s for s in found.slices if s.track.name.startswith("PE ")]), 8)

    def test_units(self):
        """A counter has the unit that the program says last; by both writers."""
        source = scratch() / "units.c"
        source.write_text("""
            #include "npuprof.h"
            int main(void)
            {
                npuprof_metadata("npuprof.unit.load", "W");
                npuprof_metadata("npuprof.unit.load", "%");
                npuprof_metadata("npuprof.unit.loads", "J");
                npuprof_start(1);
                PROF_COUNTER("load", 42);
                PROF_COUNTER("queued", 3);
                return npuprof_dump("units.npuprof");
            }""")
        run([helpers.build(source, "units", "-pthread")], code=0, env=helpers.environment())
        for found in (self.compare(scratch() / "units.npuprof")[0],
                      pftrace.read((scratch() / "again.pftrace").read_bytes())):
            counters = {track.name: track.ids for track in found.tracks.values() if track.kind == "counter"}
            self.assertEqual(counters, {"load": "%", "queued": 0})
            self.assertEqual(found.attributes["npuprof.unit.load"], "%")

    @helpers.thorough
    def test_merged(self):
        """Two processes on one timeline: merge writes the same as JSON and as .pftrace."""
        program = helpers.build("golden_kinds.c", "golden_kinds")
        tool = [sys.executable, helpers.ROOT / "tools" / "npuprof.py", "merge"]
        for name in ("one", "two"):
            run([program, f"{name}.npuprof"], code=0, env=helpers.environment())
        for out in ("both.json", "both.pftrace"):
            run([*tool, "one.npuprof", "two.npuprof", "--label", "a", "--label", "b", "-o", out], code=0)
        found, ours = pftrace.read((scratch() / "both.pftrace").read_bytes()), FromJson(
            scratch() / "both.json")
        self.same(found, ours)
        self.assertEqual(len([t for t in found.tracks.values() if t.kind == "process"]), 2)

    @helpers.thorough
    def test_many_spans(self):
        """Span by span equal to the JSON, by a sum over all."""
        count = 200_000
        program = helpers.build("many_spans.c", f"many_spans_{count}", f"-DNPUPROF_ARENA_BYTES={64 << 20}u")
        image = scratch() / "many.npuprof"
        run([program, "host", str(count), image], code=0, env=helpers.environment())
        sums = {}
        for extension, summed in (("json", sum_of_json), ("pftrace", pftrace.sum_of_spans)):
            out = scratch() / f"many.{extension}"
            run([helpers.tool("npuprof-convert"), image, "-o", out], code=0)
            with out.open("rb") as file:
                sums[extension] = summed(file)
            out.unlink()
        self.assertEqual(sums["pftrace"], sums["json"])
        self.assertEqual(sums["json"][0], count // 10 * 10)

    @helpers.thorough
    def test_bytes_of_a_span(self):
        """At most 30 bytes a plain span with a category and its place in the code; the JSON has 80."""
        source = scratch() / "plain.c"
        source.write_text('#include "npuprof.h"\n'
                          'int main(void) { npuprof_start(1);\n'
                          'for (int i = 0; i < 20000; i++) { PROF_SCOPE_ARGS("cat", "outer"); '
                          '{ PROF_SCOPE_ARGS("cat", "inner"); } }\n'
                          'return (int)npuprof_dump("plain.npuprof"); }\n')
        self.assertEqual(run([helpers.build(source, "plain")], env=helpers.environment()).returncode, 0)
        out = scratch() / "plain.pftrace"
        run([helpers.tool("npuprof-convert"), scratch() / "plain.npuprof", "-o", out])
        self.assertLess(out.stat().st_size / 40000, 30)
