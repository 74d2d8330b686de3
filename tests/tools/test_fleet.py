# test: time=300 - npuprof.py report of many traces: the figures against the generator's truth, the same bytes
# by processes and by Dask, damaged traces left out by name
# SPDX-License-Identifier: MIT
import csv
import json
import math
import os
import resource
import select
import shutil
import subprocess
import sys
import tracemalloc
import unittest
from fractions import Fraction
from statistics import median

import helpers
from helpers import scratch
import fleet_traces
import planted
from npuprof.fleet.fleet import Fleet
from npuprof.fleet.histogram import Histogram
from npuprof.fleet.rank import rank_of
from npuprof.fleet.tables import TABLES

RANKS, INFERENCES = 9, 60
SLOW, LATE = 5, 2          # one rank's conv takes 10 % longer, one begins 90 us later


def setUpModule():
    folder = scratch() / "fleet"
    folder.mkdir()
    for r in range(RANKS):
        text, Truth.of[r] = fleet_traces.trace(r, INFERENCES + r, host=f"host{r // 4}", lost=r % 2,
                                               slow={"conv": 1.1} if r == SLOW else None,
                                               late=90_000 if r == LATE else 0)
        (folder / f"rank{r}.json").write_text(text)


class Truth:
    of = {}


def report(*arguments, **options):
    return helpers.npuprof_py("report", *arguments, **options)


def sheets(folder):
    """{table: [row as a dict]}, by Python's module."""
    found = {}
    for path in folder.iterdir():
        with open(path, encoding="utf-8", newline="") as file:
            found[path.stem] = list(csv.DictReader(file, strict=True))
    return found


def exactly(text, value, decimals):
    """Is the text the exact number, rounded half up?"""
    scaled = value * 10**decimals
    return Fraction(text) * 10**decimals == math.floor(scaled + Fraction(1, 2))


def tree(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        report("fleet", "--csv-dir", "one", "--json", "one.json", "--jobs", "1", printed="", said="")
        cls.sheets, cls.truth = sheets(scratch() / "one"), Truth.of

    def test_fleet(self):
        [row] = self.sheets["fleet"]
        everything = sorted(ns for t in self.truth.values() for ns in t["durations"])
        keys = "ranks", "left_out", "hosts", "spans", "inferences", "max_ns", "lost", "max_error_ns"
        self.assertEqual([int(row[key]) for key in keys],
                         [RANKS, 0, 3, sum(t["spans"] for t in self.truth.values()), len(everything),
                          everything[-1], RANKS // 2, 100 + RANKS - 1])
        for key, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
            exact = everything[math.ceil(share * (len(everything) - 1))]
            self.assertTrue(exact * 127 / 128 <= int(row[key]) <= exact, key)
        windows = {r: t["starts"][-1] + t["durations"][-1] - t["starts"][0] for r, t in self.truth.items()}
        self.assertTrue(exactly(row["rate_per_s"], sum(Fraction(len(t["durations"]) * 10**9, windows[r])
                                                       for r, t in self.truth.items()), 3))
        busy = sum(t["busy_ns"] for t in self.truth.values())
        self.assertTrue(exactly(row["busy_pct"], Fraction(100 * busy, sum(windows.values())), 2))

    def test_ranks(self):
        rows = self.sheets["ranks"]
        self.assertEqual([int(row["rank"]) for row in rows][0], SLOW)
        middles = [int(median(t["durations"]) + 0.5) for t in self.truth.values()]
        for row in rows:
            truth = self.truth[int(row["rank"])]
            n, durations = len(truth["durations"]), truth["durations"]
            self.assertEqual((int(row["inferences"]), int(row["spans"]), int(row["max_ns"])),
                             (n, truth["spans"], max(durations)))
            self.assertEqual(int(row["p50_ns"]), int(median(durations) + 0.5))
            self.assertEqual(int(row["device_ns"]), int(Fraction(truth["busy_ns"], n) + Fraction(1, 2)))
            self.assertAlmostEqual(int(row["host_ns"]), (sum(durations) - truth["busy_ns"]) / n, delta=1)
            self.assertTrue(exactly(row["over_pct"],
                                    Fraction(100 * int(row["p50_ns"]), int(median(middles))) - 100, 2)
                            or Fraction(row["over_pct"]) < 0)
            self.assertEqual(row["file"], f"fleet/rank{row['rank']}.json")
        self.assertEqual([int(row["p50_ns"]) for row in rows],
                         sorted((int(row["p50_ns"]) for row in rows), reverse=True))

    def test_hosts(self):
        rows = {row["host"]: row for row in self.sheets["hosts"]}
        self.assertEqual({host: int(row["ranks"]) for host, row in rows.items()},
                         {"host0": 4, "host1": 4, "host2": 1})
        slowest = int(median(self.truth[SLOW]["durations"]) + 0.5)
        self.assertEqual(int(rows["host1"]["slowest_p50_ns"]), slowest)

    def test_stragglers(self):
        """The slow rank alone, because of its device, because of that operator."""
        rows = self.sheets["stragglers"]
        self.assertEqual({(row["rank"], row["figure"]) for row in rows},
                         {(str(SLOW), "device"), (str(SLOW), "latency p50")})
        [device] = [row for row in rows if row["figure"] == "device"]
        per = [t["busy_ns"] / len(t["durations"]) for t in self.truth.values()]
        self.assertAlmostEqual(int(device["median_ns"]), median(per), delta=1)
        conv = [t["operators"]["conv"][1] / len(t["durations"]) for t in self.truth.values()]
        self.assertEqual(device["operator"], "conv")
        self.assertAlmostEqual(int(device["excess_ns"]), conv[SLOW] - median(conv), delta=1)

    def test_an_operator_that_only_one_rank_has(self):
        folder = scratch() / "extra"
        folder.mkdir()
        for r in range(5):
            more = {"extra": 9_000} if r == 3 else {}
            (folder / f"{r}.json").write_text(fleet_traces.trace(r, 20, more=more)[0])
        report("extra", "--csv-dir", "extra.csv", "--table", "stragglers")
        [row] = [row for row in sheets(scratch() / "extra.csv")["stragglers"] if row["figure"] == "device"]
        self.assertEqual((row["rank"], row["operator"]), ("3", "extra"))
        self.assertAlmostEqual(int(row["excess_ns"]), 2 * 9_150, delta=100)

    def test_percentiles_of_small_numbers(self):
        """Below 256 ns a cell is one ns: the percentile is a value, by the nearest rank from above."""
        values = [ns * ns % 251 for ns in range(1, 90)]
        histogram = Histogram()
        for ns in values:
            histogram.add(ns)
        for per_mille in (0, 1, 250, 500, 900, 990, 999, 1000):
            place = math.ceil(Fraction(per_mille, 1000) * (len(values) - 1))
            self.assertEqual(histogram.percentile(per_mille), sorted(values)[place])

    def test_skew(self):
        rows = {row["moment"]: row for row in self.sheets["skew"]}
        for moment in ("start", "end"):
            spreads, last = [], []
            for n in range(INFERENCES + RANKS - 2):       # by two ranks or more
                at = {r: t["starts"][n] + (t["durations"][n] if moment == "end" else 0)
                      for r, t in self.truth.items() if n < len(t["starts"])}
                spreads.append(max(at.values()) - min(at.values()))
                last.append(max(at, key=at.get))
            row = rows[moment]
            self.assertEqual((int(row["inferences"]), int(row["max_ns"]), int(row["p50_ns"])),
                             (len(spreads), max(spreads), int(median(spreads) + 0.5)))
            self.assertEqual(int(row["last_rank"]), LATE)
            self.assertTrue(exactly(row["last_pct"], Fraction(100 * last.count(LATE), len(last)), 2))
            steps = [int(step[f"{moment}_spread_ns"]) for step in self.sheets["steps"]]
            self.assertEqual(steps[:len(spreads)], spreads)

    def test_operators(self):
        rows = {row["name"]: row for row in self.sheets["operators"]}
        self.assertEqual(set(rows), set(fleet_traces.OPERATORS))
        for name, row in rows.items():
            counts, totals = zip(*(t["operators"][name] for t in self.truth.values()))
            self.assertEqual((int(row["count"]), int(row["total_ns"])), (sum(counts), sum(totals)))
            self.assertTrue(exactly(row["mean_ns"], Fraction(sum(totals), sum(counts)), 3))
            slowest = max(range(RANKS), key=lambda r: Fraction(totals[r], counts[r]))
            self.assertEqual(int(row["slowest_rank"]), slowest)
        self.assertEqual(rows["conv"]["slowest_rank"], str(SLOW))

    def test_json_and_text(self):
        document = helpers.strict_json((scratch() / "one.json").read_text())
        self.assertEqual(set(document["tables"]), set(self.sheets))
        self.assertEqual(document["fleet"], {"traces": RANKS, "left_out": 0})
        done = report("fleet", said="")
        self.assertIn("Stragglers: ", done.stdout)
        self.assertRegex(done.stdout, rf"\n +{SLOW}  host1  device ")

    def test_ranks_of_one_host_by_its_clock_since_boot(self):
        """The Unix clock of the second was set 5 ms later; the clock since boot tells when it really was."""
        folder = scratch() / "boots"
        folder.mkdir()
        for r, set_later in ((0, 0), (1, 5_000_000)):
            text, _ = fleet_traces.trace(r, 20, host="h", boot=10**12)
            base = fleet_traces.BASE
            (folder / f"{r}.json").write_text(text.replace(str(base), str(base + set_later)))
        report("boots", "--csv-dir", "boots.csv", "--table", "skew")
        for row in sheets(scratch() / "boots.csv")["skew"]:
            self.assertLess(int(row["max_ns"]), 10_000)

    def test_hosts_that_are_not_named(self):
        """How many they are is not known, and when one was later than another one is not, either."""
        for name, named in (("none", 0), ("some", 2)):
            folder = scratch() / name
            folder.mkdir()
            for r in range(4):
                text, _ = fleet_traces.trace(r, 20, host="h" if r < named else "", late=20_000_000 * (r == 3))
                (folder / f"{r}.json").write_text(text)
            said = report(name, "--csv-dir", f"{name}.csv").stdout + report(name, "--table", "skew").stdout
            self.assertIn(f"{4 - named} of 4 ranks name no host", said)
            found = sheets(scratch() / f"{name}.csv")
            self.assertEqual(found["fleet"][0]["hosts"], "")
            self.assertEqual({row["host"]: row["ranks"] for row in found["hosts"]},
                             {"(not known)": str(4 - named)} | ({"h": "2"} if named else {}))
            self.assertEqual([row["max_ns"] for row in found["skew"] if int(row["max_ns"]) > 10_000_000], [])
            self.assertEqual(len(found["skew"]), 2 if named else 0)
            self.assertEqual({row["last_to_end"] == "" for row in found["steps"]}, {not named})
            self.assertEqual({row["ranks"] for row in found["steps"]}, {"4"})


@helpers.thorough
class Verdict(unittest.TestCase):
    """Planted traces: two with two bottlenecks, one with one of these, one clean."""

    CASES = "P25", "P25", "P2", "P1"

    @classmethod
    def setUpClass(cls):
        folder = scratch() / "planted"
        folder.mkdir()
        cls.single = []
        for n, name in enumerate(cls.CASES):
            planted.case(name).write(folder / f"{n}.json")
            done = report(folder / f"{n}.json", "--verdict", "json")
            cls.single.append(json.loads(done.stdout)["findings"])

    def test_all_ranks_together(self):
        """In how many ranks, the median gain and the largest, from the reports of the single traces."""
        report("planted", "--json", "planted.json", "--csv-dir", "planted.csv", said="")
        rows = sheets(scratch() / "planted.csv")["findings"]
        wanted = {}
        for n, findings in enumerate(self.single):
            for finding in findings:
                gain = finding["gain"]["inference_pct"] or [0, 0]
                wanted.setdefault((finding["rule"], finding["subject"]), []).append((gain[1], n))
        self.assertEqual({(row["rule"], row["subject"]): int(row["ranks"]) for row in rows},
                         {key: len(found) for key, found in wanted.items()})
        self.assertEqual(wanted[("host_bound", "tokenize")][-1][1], 2)
        for row in rows:
            found = wanted[row["rule"], row["subject"]]
            gains = [gain for gain, _ in found]
            self.assertAlmostEqual(float(row["median_gain_pct"]), median(gains), delta=0.011)
            self.assertAlmostEqual(float(row["max_gain_pct"]), max(gains), delta=0.006)
            self.assertAlmostEqual(float(row["ranks_pct"]), 25 * len(found))
            self.assertIn((max(gains), int(row["file"][-6])), found)
        worth = [float(row["median_gain_pct"]) * int(row["ranks"]) for row in rows]
        self.assertEqual(worth, sorted(worth, reverse=True))

    def test_devices_of_ranks_are_one(self):
        """What each rank finds on a device with a number of its own is told once; stragglers are named."""
        folder = scratch() / "numbered"
        folder.mkdir()
        for n in range(5):
            planted.case("P6").write(folder / f"{n}.json")
            text = (folder / f"{n}.json").read_text()
            (folder / f"{n}.json").write_text(text.replace('"npu0', f'"npu{n}'))
        done = report("numbered", "--verdict", said="")
        words = " ".join(done.stdout.split())
        self.assertIn("npu0 and 4 more: ", words)
        self.assertIn("in 5 of 5 ranks", words)
        self.assertEqual(done.stdout.count("npu0 and 4 more"), 1, done.stdout)
        words = " ".join(report("fleet", "--verdict", said="").stdout.split())
        self.assertIn(f"! rank {SLOW} (host1) is slower than the others: device ", words)
        self.assertEqual(words.count("is slower than the others"), 1)

    def test_text_and_gates(self):
        done = report("planted", "--verdict", said="")
        self.assertRegex(done.stdout,
                         r"^1 host_bound tokenize: latency at most -[\d.]+ % in 3 of 4 ranks, ")
        self.assertIn("evidence: sure", " ".join(done.stdout.split()))
        self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()))
        for condition, code in (("any", 1), ("host_bound", 1), ("V18?", 0), ("tail", 0)):
            report("planted", "--verdict", "--fail-on", condition, code=code)
        done = report("planted", "--verdict", "--fail-on", "p99_ns>5", code=2)
        self.assertIn("here are several", done.stderr)
        report("planted", "--verdict", "json", code=2)

    def test_gate_with_a_trace_that_cannot_be_used(self):
        broken = scratch() / "planted" / "broken.json"
        broken.write_text('{"traceEvents":[')
        self.addCleanup(broken.unlink)
        for condition, code in (("host_bound", 1), ("tail", 2), ("tail?", 0)):
            report("planted", "--verdict", "--fail-on", condition, code=code)
        done = report("planted", "--verdict", "--fail-on", "tail", code=2)
        self.assertIn("--fail-on tail: 1 of 5 traces cannot be used", done.stderr)


class SameBytes(unittest.TestCase):
    def written(self, name, *arguments, **options):
        report("fleet", "--csv-dir", name, "--json", f"{name}.json", *arguments, printed="",
               **options)
        return tree(scratch() / name), (scratch() / f"{name}.json").read_bytes()

    def test_processes(self):
        self.assertEqual(self.written("jobs1", "--jobs", "1"), self.written("jobs3", "--jobs", "3"))

    @helpers.thorough
    def test_dask(self):
        """Two workers, which have never seen npuprof; a broken trace among the others."""
        python = next((p for p in (sys.executable, "/usr/bin/python3") if shutil.which(p) and not helpers.run(
            [p, "-c", "import sys, distributed; sys.exit(sys.version_info < (3, 11))"]).returncode), None)
        if python is None:
            self.skipTest("Dask is not installed (package python3-distributed)")
        broken = scratch() / "fleet" / "broken.json"
        broken.write_text('{"traceEvents":[')
        self.addCleanup(broken.unlink)
        cluster = subprocess.Popen([python, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, cwd=scratch())
        self.addCleanup(cluster.communicate)
        self.assertTrue(select.select([cluster.stdout], [], [], 60)[0], "the Dask cluster does not start")
        address = cluster.stdout.readline().strip()
        self.assertEqual(self.written("dask", "--dask", address, python=python),
                         self.written("jobs2", "--jobs", "2", python=python))

    def test_without_dask(self):
        blocked = scratch() / "blocked"
        blocked.mkdir()
        (blocked / "distributed.py").write_text("raise ImportError")
        self.assertRegex(helpers.refused("report", "fleet", "--dask", "tcp://127.0.0.1:1",
                                         env=helpers.environment(PYTHONPATH=str(blocked))),
                         r"^--dask needs Dask \(Debian: python3-distributed\).*\n$")


CLUSTER = """
if __name__ == "__main__":
    import sys, tempfile
    from distributed import LocalCluster
    with tempfile.TemporaryDirectory() as folder:
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                          local_directory=folder) as cluster:
            print(cluster.scheduler_address, flush=True)
            sys.stdin.read()
"""


class Damaged(unittest.TestCase):
    def test_named_and_left_out(self):
        folder = scratch() / "damaged"
        folder.mkdir()
        whole = (scratch() / "fleet" / "rank0.json").read_bytes()
        (folder / "a.json").write_bytes(whole)
        (folder / "cut.json").write_bytes(whole[:len(whole) // 2])
        (folder / "empty.json").write_bytes(b"")
        (folder / "text.csv").write_text("a,b\n")
        (folder / "image.npuprof").write_bytes(b"NPUPROF\0" + bytes(200))
        (folder / "notes.txt").write_text("no trace")
        (folder / "deep").mkdir()
        (folder / "deep" / "b.json").write_bytes(whole)
        done = report("damaged", "--csv-dir", "left", "--jobs", "2", printed="")
        found = sheets(scratch() / "left")
        names = ["cut.json", "empty.json", "image.npuprof", "text.csv"]
        self.assertEqual([row["file"] for row in found["left_out"]], [f"damaged/{name}" for name in names])
        self.assertEqual([line.split(":")[1].strip() for line in done.stderr.splitlines()],
                         [f"damaged/{name}" for name in names])
        self.assertEqual({row["file"] for row in found["ranks"]}, {"damaged/a.json", "damaged/deep/b.json"})
        self.assertEqual((found["fleet"][0]["ranks"], found["fleet"][0]["left_out"]), ("2", "4"))
        self.assertEqual(found["stragglers"], [])

    def test_refusals(self):
        (scratch() / "nothing").mkdir(exist_ok=True)
        for name in ("bad.json", "worse.json"):
            (scratch() / name).write_text("{")
        for arguments, says in ((("nothing",), "nothing: holds no trace"),
                                (("bad.json", "worse.json"), "none of these traces can be used"),
                                (("fleet", "none.json"), "none.json: cannot be read: No such file"),
                                (("fleet", "--html", "x.html"), "--html is for one trace"),
                                (("fleet", "--table", "names"), "--table names: of several traces there are"),
                                (("fleet/rank0.json", "--table", "skew"), "skew: is for several traces"),
                                (("fleet", "--jobs", "0"), "not a number from 1")):
            self.assertIn(says, report(*arguments, code=2, printed="").stderr)


LOADED = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).iterdir():
    with path.open() as file:
        json.load(file)
"""


@helpers.thorough
class Bounds(unittest.TestCase):
    def test_memory_of_a_rank(self):
        """What is kept of a trace does not grow with its inferences."""
        text, _ = fleet_traces.trace(1, 400)
        path = scratch() / "long.json"
        path.write_text(text)
        fleet, rank = Fleet(), rank_of(str(path))
        rank["steps"] *= 10           # 4000
        fleet.add(dict(rank, histogram=dict(rank["histogram"]), operators=dict(rank["operators"])))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(60):
            fleet.add(dict(rank, histogram=dict(rank["histogram"]), operators=dict(rank["operators"])))
        kept = (tracemalloc.get_traced_memory()[0] - before) / 60
        tracemalloc.stop()
        print(f"note of a trace {kept:.0f} bytes are kept")
        self.assertLess(kept, 20_000)
        self.assertEqual(TABLES["skew"](fleet).rows[0][4], 0)

    def test_a_hundred_of_ten_thousand_spans(self):
        """At most 12 times what json.load() takes for the same files (it is 6 to 9); 80 MB in each process.
        Why not seconds: a busy machine takes half as long again."""
        folder = scratch() / "hundred"
        folder.mkdir()
        for r in range(4):
            (folder / f"{r}.json").write_text(fleet_traces.trace(r, 1000)[0])
        for n in range(4, 100):
            os.link(folder / f"{n % 4}.json", folder / f"{n}.json")

        def cpu():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        def ratio():
            since = cpu()
            done = report("hundred", "--json", "hundred.json", "--jobs", "2")
            took, after = cpu() - since, resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(after.ru_maxrss, 80 * 1024)
            since = cpu()
            subprocess.run([sys.executable, "-c", LOADED, folder], check=True)
            loading = cpu() - since
            print(f"note a hundred traces of 10^4 spans: {took:.1f} s of CPU, json.load() {loading:.1f}, "
                  f"{after.ru_maxrss // 1024} MB")
            return took / loading
        self.assertLess(helpers.measured(12, ratio), 12)
        document = json.loads((scratch() / "hundred.json").read_text())
        self.assertEqual(document["tables"]["fleet"]["rows"][0][:2], [100, 0])
