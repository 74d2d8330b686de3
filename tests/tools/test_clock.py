# test: time=200 - npuprof clock: the lines against brute force; planted shifts and drifts, in random and real
# traces: the intervals hold the truth, and what is written has no arrow that goes backwards
# SPDX-License-Identifier: MIT
import itertools
import json
import random
import unittest
from fractions import Fraction

import helpers
from helpers import npuprof_py, run, scratch
from npuprof.clock.arrows import devices_of
from npuprof.clock.command import Answer, unit_of
from npuprof.clock.line import Lines
from npuprof.read import load


def corners(lower, upper):
    """All corners of what the points allow, as (shift, drift): by trying each pair."""
    limits = [(x, y, 1) for x, y in lower] + [(x, y, -1) for x, y in upper]
    found = []
    for (x0, y0, _), (x1, y1, _) in itertools.combinations(limits, 2):
        if x0 != x1:
            drift = Fraction(y1 - y0, x1 - x0)
            shift = y0 - drift * x0
            if all((shift + drift * x - y) * sign >= 0 for x, y, sign in limits):
                found.append((shift, drift))
    return found


class Exact(unittest.TestCase):
    def test_against_brute_force(self):
        counts = [0, 0]
        for seed in range(1500):
            r = random.Random(seed)
            lower = [(r.randint(0, 8), r.randint(-10, 2)) for _ in range(r.randint(1, 5))]
            upper = [(r.randint(0, 8), r.randint(-2, 10)) for _ in range(r.randint(1, 5))]
            lines, found = Lines(lower, upper), corners(lower, upper)
            counts[lines.drifts is None] += 1
            if lines.drifts is None:
                self.assertEqual(found, [], seed)
                excess, below, above = lines.contradiction()
                self.assertGreater(excess, 0)
                self.assertLessEqual(len(below) + len(above), 3)
                self.assertIsNone(Lines(below, above).drifts, seed)
                continue
            least, greatest = lines.drifts
            for end, pick, side in ((least, min, -1), (greatest, max, 1)):
                if end is None:
                    self.assertLessEqual(lines.excess(side * Fraction(10**6)), 0, seed)
                else:
                    self.assertEqual(end, pick(drift for _, drift in found), seed)
            if None not in lines.drifts:
                self.assertEqual(lines.shifts(lines.drifts), (min(found)[0], max(found)[0]), seed)
            shift, drift = lines.smallest()
            self.assertTrue(lines.low(drift) <= shift <= lines.high(drift))
            self.assertTrue(drift == 0 or lines.excess(Fraction(0)) > 0)
        self.assertGreater(min(counts), 100)


def events_of(r, unit):
    """(events, shift in ns, drift, ns from which it counts) of a random trace. Pid 2 is a device, and its
    clock is wrong."""
    shift, drift = r.randint(-10**9, 10**9), Fraction(r.randint(-200_000, 200_000), 10**9)
    begin, both = r.choice((0, 10**6, 17 * 10**17)), r.random() < 0.8

    def of_device(ns):
        """What its clock says at a time of the host."""
        return begin + (ns - begin - shift) / (1 + drift)

    def event(phase, pid, ns, **more):
        ns = round(Fraction(ns) / unit) * unit
        text = f"{ns // 1000}.{ns % 1000:03d}"
        return json.dumps({"ph": phase, "pid": pid, "tid": pid, **more})[:-1] + f', "ts": {text}}}'
    events = [json.dumps({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
              for pid, name in ((1, "python"), (2, "NPU 0"))]
    now = begin + 2 * 10**9
    for n in range(r.randint(1, 60)):
        now += r.randint(0, 10**8)
        start = now + r.choice((0, 0, r.randint(0, 10**6)))
        end = start + r.randint(0, 10**5)
        events += [event("X", 1, now, name="launch", dur=0.5), event("s", 1, now, name="go", id=n),
                   event("X", 2, of_device(start), name="k", dur=1),
                   event("f", 2, of_device(start), name="go", id=n, bp="e")]
        if both:
            events += [event("s", 2, of_device(end), name="done", id=n),
                       event("f", 1, end + r.choice((0, r.randint(0, 10**6))), name="done", id=n, bp="e")]
    r.shuffle(events)
    return events, shift, drift, begin


class Planted(unittest.TestCase):
    def holds(self, answer, shift, drift, begin):
        """The intervals hold the truth, which counts from another time."""
        said = answer.as_json()
        truth = shift + drift * (answer.start - begin), drift * 10**6
        self.assertIsNone(said["contradict"])
        for value, (least, greatest) in zip(truth, (said["shift_ns"], said["drift_ppm"])):
            self.assertTrue(least is None or least <= value, (value, least, greatest))
            self.assertTrue(greatest is None or value <= greatest, (value, least, greatest))
        return said

    def test_random(self):
        narrow, path = 0, scratch() / "planted.json"
        for seed in range(40 if helpers.QUICK else 300):
            r = random.Random(seed)
            unit = r.choice((1, 1, 1000))
            events, *truth = events_of(r, unit)
            path.write_text("[" + ",\n".join(events) + "]")
            trace = load(path)
            with self.subTest(seed):
                self.assertEqual(unit_of(trace) % unit, 0)
                (device,) = devices_of(trace)
                said = self.holds(Answer(device, unit_of(trace)), *truth)
                self.assertLessEqual(said["worst_after_ns"], unit + 1)
                ends = said["drift_ppm"]
                narrow += None not in ends and ends[1] - ends[0] < 50
        self.assertGreater(narrow, 10 if helpers.QUICK else 80)

    @helpers.thorough
    def test_demo(self):
        helpers.make("build/examples/digits/digits", "build/examples/digits/npusim")
        run([helpers.ROOT / "build/examples/digits/digits", "--output", scratch() / "digits.json"], code=0)
        self.check_real(scratch() / "digits.json")

    def test_firmware(self):
        self.check_real(helpers.TESTS / "golden/firmware_npu.json")

    def check_real(self, path):
        """A trace of npuprof, and copies with a device whose clock is wrong. Set right, no arrow goes
        backwards, and what is not on the device is as it was."""
        device = devices_of(load(path))[0]
        tracks = {(t.pid, t.tid) for t in load(path).tracks if t.number in device.tracks}
        self.assertFalse(any(arrow.back for arrow in device.arrows))
        for seed in range(6):
            r, doc = random.Random(seed), json.loads(path.read_text())
            shift, drift = r.randint(-10**7, 10**7), Fraction(r.randint(-100_000, 100_000), 10**9)
            for event in doc["traceEvents"]:
                if (event["pid"], event.get("tid")) in tracks and "ts" in event:
                    ns = round(event["ts"] * 1000)
                    event["ts"] = (10**8 + round((ns - shift - 10**8) / (1 + drift))) / 1000
            (scratch() / "wrong.json").write_text(json.dumps(doc))
            answer = next(Answer(d, 1) for d in devices_of(load(scratch() / "wrong.json"))
                          if d.name == device.name)
            said = self.holds(answer, shift, drift, 10**8)
            npuprof_py("clock", "wrong.json", code=1 if said["backwards"] else 0)
            npuprof_py("clock", "wrong.json", "-o", "right.json", code=0)
            fixed = json.loads((scratch() / "right.json").read_text())
            self.assertEqual(len(fixed["traceEvents"]), len(doc["traceEvents"]))
            for before, after in zip(doc["traceEvents"], fixed["traceEvents"]):
                if (before["pid"], before.get("tid")) not in tracks:
                    self.assertEqual(after, before)
            self.assertIn("none goes backwards", npuprof_py("clock", "right.json").stdout)


class Said(unittest.TestCase):
    def trace(self, *arrows, name="GPU 0"):
        """arrows: (cause in us, effect in us, to the device)."""
        events = [{"ph": "M", "name": "process_name", "pid": 2, "args": {"name": name}},
                  {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0.001, "dur": 1},
                  {"ph": "X", "name": "k", "pid": 2, "tid": 1, "ts": 0, "dur": 1}]
        for n, (cause, effect, to_device) in enumerate(arrows):
            pids = (1, 2) if to_device else (2, 1)
            events += [{"ph": "s", "name": f"a{n}", "id": n, "pid": pids[0], "tid": 1, "ts": cause},
                       {"ph": "f", "name": f"a{n}", "id": n, "pid": pids[1], "tid": 1, "ts": effect}]
        (scratch() / "said.json").write_text(json.dumps({"traceEvents": events}))

    def test_contradiction(self):
        self.trace((100, 90, True), (200, 210, True), (90, 95, False), (400, 420, False))
        done = npuprof_py("clock", "said.json", "-o", "none.json", code=1)
        self.assertRegex(done.stdout, r"fault: no shift and drift repairs all: 'a\d' from .* contradict each "
                                      r"other, by 5000 ns")
        self.assertFalse((scratch() / "none.json").exists())
        self.assertIn("'a0' from 100000 to 90000", done.stdout)
        self.assertIn("'a2' from 90000 back to 95000", done.stdout)

    def test_shift_alone(self):
        self.trace((100, 90, True), (200, 195, True), (190, 230, False))
        done = npuprof_py("clock", "said.json", code=1)
        self.assertIn("2 go backwards, by up to 10000 ns", done.stdout)
        self.assertIn("a shift alone repairs all: 9998 to 40002 ns", done.stdout)
        self.assertIn("the least change: a shift of 10000.0 ns\n", done.stdout)
        said = json.loads(npuprof_py("clock", "said.json", "--json", code=1).stdout)["devices"][0]
        self.assertEqual((said["backwards"], said["shift_alone_ns"]), (2, [9998, 40002]))

    def test_drift(self):
        self.trace((100, 90, True), (90, 101, False), (1100, 1110, True), (1110, 1101, False))
        done = npuprof_py("clock", "said.json", "-o", "drift.json", code=0)
        self.assertIn("no shift alone repairs all: the clocks drift apart", done.stdout)
        npuprof_py("clock", "drift.json", code=0)

    def test_chain_whose_step_is_early(self):
        """Three ends of one arrow: they lead from the begin to the end, whatever the times say."""
        self.trace()
        doc = json.loads((scratch() / "said.json").read_text())
        doc["traceEvents"] += [{"ph": phase, "name": "c", "id": 1, "pid": pid, "tid": 1, "ts": ts}
                               for phase, pid, ts in (("s", 1, 50), ("t", 2, 40), ("f", 1, 60))]
        (scratch() / "said.json").write_text(json.dumps(doc))
        said = json.loads(npuprof_py("clock", "said.json", "--json", code=1).stdout)["devices"][0]
        self.assertEqual((said["arrows_to"], said["arrows_from"], said["backwards"]), (1, 1, 1))

    def test_which_tracks(self):
        self.trace((100, 90, True), name="my accelerators")
        self.assertIn("no track looks like one of a device: --device REGEX says which have its clock; "
                      "there are: 1, my accelerators 1", helpers.refused("clock", "said.json"))
        npuprof_py("clock", "said.json", "--device", "^my", code=1)
        self.assertIn("no arrow leads between", helpers.refused("clock", "said.json", "--device", "."))
        self.assertIn("no regular expression", helpers.refused("clock", "said.json", "--device", "("))
        run([helpers.build("images.c", "images"), "all", scratch() / "t.csv"], env=helpers.environment())
        if (scratch() / "t.csv").exists():
            self.assertIn("a CSV has no arrows", helpers.refused("clock", "t.csv"))
