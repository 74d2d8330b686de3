# test: time=120 - npuprof.py export --ctf: babeltrace2 reads every event of golden and random traces
# SPDX-License-Identifier: MIT
import json
import lzma
import os
import random
import subprocess
import unittest
from collections import Counter, defaultdict
from decimal import Decimal

import helpers
from helpers import scratch
from npuprof.base import files

PYTHON = "/usr/bin/python3"            # Debian's, which has the binding of babeltrace2
TEXTS = ("conv1", "", "é 漢字 😀", 'a "b" \\c', "tab\tline\n", "%s ; { } = /* */", "x" * 3000)
KEYS = ("n", "name", "category", "value", "ne.type", "ne_type", "ne type", "3d", "int", "_int", "é", "",
        "key_of", "a_2", "a.2", "a")
VALUES = (0, -1, 2**63 - 1, -2**63, 2**63, 2**64 - 1, 2**64, -2**63 - 1, 1.5, -0.0, 5e-324, 1e300, True,
          False, None, [1, "x"], {"a": {}}, "text", "")


def need_binding():
    if subprocess.run([PYTHON, "-c", "import bt2"], capture_output=True).returncode:
        raise unittest.SkipTest("babeltrace2 and its binding are not installed: babeltrace2, python3-bt2")


def export(*words, **options):
    return helpers.npuprof_py("export", *words, **options)


def ns(value):
    return int(Decimal(value) * 1000)


def shown(value):
    """An argument as CTF holds it: what has no type there is JSON."""
    fits = isinstance(value, (bool, float, str)) or isinstance(value, int) and -2**63 <= value < 2**64
    value = value if fits else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{type(value).__name__} {value!r}"


def arguments(args):
    return tuple(sorted((key, shown(value)) for key, value in args.items()))


def of_json(text):
    """The events of a JSON, in the terms of of_ctf()."""
    file = json.loads(text, parse_float=str)
    floats = json.loads(text)
    found, arrows = Counter(), {}
    for event, same in zip(file["traceEvents"], floats["traceEvents"]):
        where, args = (event["pid"], event.get("tid")), same.get("args", {})
        at = ns(event.get("ts", 0))
        if event["ph"] == "X":
            found["span", *where, at, at + ns(event["dur"]), event["name"], event.get("cat", ""),
                  arguments(args)] += 1
        if event["ph"] == "b":             # an asynchronous span has a track of its name
            arrows[event["id"]] = at
        if event["ph"] == "e":
            where = event["pid"], event["name"]
            found["span", *where, arrows[event["id"]], at, event["name"], event.get("cat", ""), ()] += 1
            found["track", *where, event["name"]] += 1
        if event["ph"] == "i":
            if event.get("derived"):       # it repeats a counter, which is on the track of the process
                where, args = (event["pid"], None), {"change": 0} | args
            found["instant", *where, at, event["name"], event.get("cat", ""), arguments(args)] += 1
        for key, value in args.items() if event["ph"] == "C" else ():
            found["counter", event["pid"], at, event["name"], key, float(value)] += 1
        if event["ph"] == "s":
            arrows[event["id"]] = *where, at
        if event["ph"] == "f":
            found["arrow", event["name"], *arrows[event["id"]], *where, at] += 1
        if event["ph"] == "M" and event["name"] == "thread_name":
            found["track", *where, args["name"]] += 1
    used = {key[at:at + 2] for key in found for at in {"arrow": (2, 5), "counter": ()}.get(key[0], (1,))
            if key[0] != "track"}
    for key in [key for key in found if key[0] == "track" and key[1:3] not in used]:
        del found[key]                     # the tools leave a track without events out
    return found, floats.get("metadata", {}).get("npuprof", {})


def of_ctf(read, base):
    """Its events, and that those of a track nest. base: the Unix time of the trace's 0."""
    keys = {field.removeprefix("key_of_"): key for field, key in read["env"].items()
            if field.startswith("key_of_")}
    tracks, stacks, leaves, found, last = {}, defaultdict(list), {}, Counter(), 0
    for at, kind, number, label, fields in read["events"]:
        assert at >= last, "events are not by time"
        last, at = at, at - base
        if kind == "track":
            tracks[number] = fields["pid"], fields.get("tid")
            if "tid" in fields and ("lane_of" not in fields or tracks[fields["lane_of"]] != tracks[number]):
                found["track", *tracks[number], label] += 1
            continue
        where, name = tracks[number], fields.pop("name")
        if kind == "counter":
            found["counter", where[0], at, name, fields["key"], float(fields["value"])] += 1
        elif kind == "flow_out":
            leaves[fields["id"]] = *where, at
        elif kind == "flow_in":
            found["arrow", name, *leaves[fields["id"]], *where, at] += 1
        elif kind == "span_end":
            start, cat, args, opened = stacks[number].pop()
            assert opened == name, "spans do not nest"
            found["span", *where, start, at, name, cat, args] += 1
        else:
            cat = fields.pop("category", "")
            args = arguments({keys.get(field, field): value for field, value in fields.items()})
            if kind == "instant":
                found["instant", *where, at, name, cat, args] += 1
            else:
                stacks[number].append((at, cat, args, name))
    assert not any(stacks.values()), "spans stay open"
    return found


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        need_binding()

    def read(self, path, name="ctf"):
        """What babeltrace2 reads of a trace's CTF, without a word of warning but that of lost events."""
        folder = scratch() / name
        helpers.run(["rm", "-rf", folder], code=0)
        export(path, "--ctf", folder)
        done = helpers.run([PYTHON, helpers.TESTS / "tools" / "read_ctf.py", folder], code=0, said="")
        self.assertEqual(helpers.run(["babeltrace2", "-o", "dummy", folder], code=0).stderr, "")
        return json.loads(done.stdout)

    def check(self, path, text=None):
        """All events, the clock and the losses."""
        found = self.read(path)
        wanted, about = of_json(text or (scratch() / path).read_text(encoding="utf-8"))
        read = of_ctf(found, about.get("start_unix_ns", 0))
        self.assertEqual((list(read - wanted)[:5], list(wanted - read)[:5]), ([], []), path)
        self.assertEqual(found["discarded"], sum(about.get("lost", {}).values()))
        clock = about.get("clock", {})
        self.assertEqual(found["clock"], [10**9, clock.get("error_ns", 0), about.get("start_unix_ns", 0) > 0,
                                          clock.get("source", "unknown")])
        return found, about


class Golden(Case):
    def test_golden(self):
        paths = sorted((helpers.TESTS / "golden").glob("*.json"))
        self.assertGreater(len(paths), 4)
        for path in paths:
            self.check(path)

    @helpers.thorough
    def test_images(self):
        """Those of this machine, of one with the other byte order, and of a microcontroller."""
        helpers.tool("npuprof-convert")
        paths = [path for of in ("x86_64", "s390x", "bare-cortex-m3")
                 for path in (helpers.TESTS / "image" / "corpus").glob(f"{of}-*.npuprof.xz")]
        self.assertGreater(len(paths), 18)
        for path in paths:
            (scratch() / "t.npuprof").write_bytes(lzma.decompress(path.read_bytes()))
            helpers.npuprof_py("convert", "t.npuprof", "-o", "t.json", code=None)
            self.check("t.json")

    def test_environment(self):
        """The members of metadata.npuprof by their path, each device with its clock."""
        found, about = self.check(helpers.TESTS / "golden" / "kinds.json")
        env, device = found["env"], about["devices"][0]
        self.assertEqual((env["tracer_name"], env["version"]), ("npuprof", about["version"]))
        self.assertEqual(env["devices_0_name"], device["name"])
        for key in ("max_error_ns", "anchors", "wraps"):
            self.assertEqual(env[f"devices_0_clock_sync_{key}"], device["clock_sync"][key])
        self.assertEqual(float(env["devices_0_clock_sync_rate_hz"]), device["clock_sync"]["rate_hz"])


def random_trace(seed):
    """A trace of what may come: spans that overlap, odd texts and keys, values of all types, several
    processes."""
    draw = random.Random(seed)
    threads = [(draw.choice((7, 8)), tid) for tid in range(1, draw.randrange(2, 6))]

    def of(ph, **more):
        pid, tid = draw.choice(threads)
        return {"ph": ph, "pid": pid, "tid": tid, "ts": draw.randrange(-50, 10**6) / 1000, **more}

    def args():
        return {draw.choice(KEYS): draw.choice(VALUES) for _ in range(draw.randrange(5))}

    events = [{"ph": "M", "name": "thread_name", "pid": pid, "tid": tid,
               "args": {"name": draw.choice(TEXTS) or "t"}} for pid, tid in threads]
    for _ in range(draw.randrange(60)):
        named = {"name": draw.choice(TEXTS), "cat": draw.choice(TEXTS)}
        events.append(draw.choice((
            of("X", **named, dur=draw.choice((0, 0.001, 5, 400)), args=args()), of("X", **named, dur=20),
            of("i", **named, s="t", args=args()),
            of("C", name=draw.choice(TEXTS[:3]), args={"value": draw.choice((1, -5, 0.25, 10**15))}))))
    for n in range(draw.randrange(5)):
        leave = of("s", name="submit", cat="submit", id=n)
        events += [leave, of("f", name="submit", cat="submit", id=n, bp="e") | {"ts": abs(leave["ts"]) + 1}]
    about = {"version": "1.0.0", "start_unix_ns": draw.choice((0, 10**6, 1700000000123456789)), "threads": 4,
             "pid": 7, "lost": {"arena_full": draw.choice((0, 0, 3)), "sink": draw.choice((0, 9))},
             "user": {draw.choice(KEYS): draw.choice(TEXTS)}}
    return json.dumps({"traceEvents": events, "metadata": {"npuprof": about}}, ensure_ascii=False)


class Random(Case):
    def some(self, seeds):
        for seed in seeds:
            (scratch() / "random.json").write_text(random_trace(seed), encoding="utf-8")
            with self.subTest(seed=seed):
                self.check("random.json")

    def test_few(self):
        self.some(range(8))

    @helpers.thorough
    def test_many(self):
        self.some(range(8, 60))


class Folder(unittest.TestCase):
    """It is new, and there when it is whole."""

    def setUp(self):
        self.golden = helpers.TESTS / "golden" / "kinds.json"

    def test_what_lies_there(self):
        """An empty folder gives way, nothing else; a link is not followed."""
        kept, link = scratch() / "kept", scratch() / "link"
        kept.mkdir()
        link.symlink_to(kept)
        (scratch() / "file").write_text("mine")
        for name in ("link", "link/", "file"):
            self.assertIn("name another one", helpers.refused("export", self.golden, "--ctf", name))
        self.assertEqual(list(kept.iterdir()), [])
        export(self.golden, "--ctf", "kept/", said="", printed="")
        self.assertEqual(sorted(os.listdir(kept)), ["events", "metadata"])
        self.assertIn("name another one", helpers.refused("export", self.golden, "--ctf", "kept"))
        self.assertIn("cannot be written", helpers.refused("export", self.golden, "--ctf", "none/there"))

    def test_whole_or_not_at_all(self):
        self.assertRaises(KeyError, self.broken)
        self.assertEqual([name for name in os.listdir(scratch()) if "npuprof" in name or name == "new"], [])
        (scratch() / "cut.json").write_bytes(self.golden.read_bytes()[:3000])
        self.assertIn("byte", helpers.refused("export", "cut.json", "--ctf", "new"))
        self.assertFalse((scratch() / "new").exists())

    def broken(self):
        with files.new_folder(str(scratch() / "new")) as create, create("events") as file:
            file.write(b"half")
            raise KeyError

    def test_equal_bytes_and_far_times(self):
        for name in ("one", "two"):
            export(self.golden, "--ctf", name)
        for name in ("metadata", "events"):
            self.assertEqual((scratch() / "one" / name).read_bytes(), (scratch() / "two" / name).read_bytes())
        far = {"ph": "X", "name": "x", "pid": 7, "tid": 1, "ts": 1, "dur": 5}
        about = {"version": "1.0.0", "start_unix_ns": 2**63 - 5000, "threads": 1, "pid": 7}
        far = {"traceEvents": [far], "metadata": {"npuprof": about}}
        (scratch() / "far.json").write_text(json.dumps(far))
        self.assertIn("beyond the year 2262", helpers.refused("export", "far.json", "--ctf", "far"))
        self.assertFalse((scratch() / "far").exists())


if __name__ == "__main__":
    unittest.main()
