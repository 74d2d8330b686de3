# test: time=200 - libnpuprof-collect.so: programs that use ITT or NVTX are recorded as they are, each task
# once, and what npuprof cannot hold is counted
# SPDX-License-Identifier: MIT
import collections
import re
import unittest

import helpers
from helpers import environment, events, load, run, scratch

KEY = "npuprof.collect.not_held."
# Takes so many bytes of the thread-local storage that libraries share which are opened late.
CROWD = """__thread char room[SIZE] __attribute__((tls_model("initial-exec")));
char *use(int n);
char *use(int n) { return room + n; }
"""


def library():
    return helpers.tool("libnpuprof-collect.so")


def recorded(program, *words, printed=None, **env):
    """The trace of a program that ITT or NVTX lead to the library."""
    path = scratch() / "t.json"
    path.unlink(missing_ok=True)
    env = {"INTEL_LIBITTNOTIFY64": str(library()), "NVTX_INJECTION64_PATH": str(library()), **env}
    run([program, *words], code=0, said="", printed=printed,
        env=environment(NPUPROF_OUTPUT_PATH=str(path), **env))
    return load(path)


def not_held(trace):
    """Counts by kind, of the metadata, and of counters where that has no place."""
    user = {**trace["metadata"]["npuprof"]["user"],
            **{e["name"]: e["args"]["value"] for e in events(trace, "C") if e["name"].startswith(KEY)}}
    return {key.removeprefix(KEY): int(count) for key, count in user.items() if key.startswith(KEY)}


def lost(trace):
    return {cause: count for cause, count in trace["metadata"]["npuprof"]["lost"].items() if count}


def threads(trace):
    """tid -> the system's number of the thread; other rows are not in it."""
    return {e["tid"]: e["args"]["native_id"] for e in events(trace, "M", "thread_name")
            if "native_id" in e["args"]}


def spans(trace):
    """(category, name, arguments) of all spans of threads, then of the others, each by their begins."""
    own = threads(trace)
    found = sorted(events(trace, "X"), key=lambda e: (e["tid"] not in own, e["ts"]))
    return [(e.get("cat"), e["name"], e.get("args", {})) for e in found]


class Itt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("collect_itt.c", "collect_itt", "-ldl")

    def test_everything(self):
        """Each kind of call, of two libraries; texts whose memory is reused."""
        trace = recorded(self.program, "everything", printed="1 1 1\n0\n")
        self.assertEqual(spans(trace)[:5], [
            ("early domain", "old name", {}),
            ("d", "inner", {"id": 5, "id.extra": 6, "parent": str(1 << 63)}), ("d", "qsort", {}),
            ("d", "(no name)", {}),
            ("d", "with metadata", {
                "id": 41, "u64": str(1 << 63), "s64": -1, "u32": 4000000000, "s32": -5, "u16": 60000,
                "s16": -6, "float": 0.5, "double": 0.25, "three": "4000000000;1;2", "two": "-6;7",
                "reals": "0.25;-1.0000000000000001e+300", "text": "text", "whole": "to its 0",
                "metadata": "3 of 4"})])
        self.assertEqual(collections.Counter(own[:2] for own in spans(trace)[5:]), {
            ("d", "overlapped"): 1, ("d", "inner"): 1, ("ITT frame", "d"): 3})
        self.assertEqual([e["dur"] for e in events(trace, "X", "d")][0], 3.0)       # as it was submitted
        self.assertEqual([e.get("args") for e in events(trace, "X", "d")], [None] * 3)
        self.assertEqual([(e["cat"], e["args"]) for e in events(trace, "i", "inner")],
                         [("d", {"scope": 2, "id": 3})])
        counted = collections.defaultdict(list)
        for event in events(trace, "C"):
            counted[event["name"]].append(event["args"]["value"])
        self.assertEqual(counted, {"of domain: plain": [3, 13, 12], "of domain: reals": [2.5],
                                   "of domain: shorts": [-9], "d: newer": [2.5], "d: named": [1, -3]})
        self.assertIn("worker of ITT", [e["args"]["name"] for e in events(trace, "M", "thread_name")])
        self.assertEqual(not_held(trace), {"itt.clock": 1, "itt.metadata": 3, "itt.other": 2, "itt.parent": 1,
                                           "itt.relation": 3, "itt.stitch": 1, "itt.sync": 5})
        self.assertEqual(lost(trace), {})

    def test_each_task_once(self):
        """8 threads; begins by one library, ends by the other."""
        trace = recorded(self.program, "threads", "5000")
        counts = collections.Counter((e["tid"], e["name"]) for e in events(trace, "X"))
        self.assertEqual(sorted(name for _, name in counts), [str(n) for n in range(8)])
        self.assertEqual(set(counts.values()), {5000})
        self.assertEqual((lost(trace), not_held(trace)), ({}, {}))

    def test_opened_where_little_room_is_left(self):
        """ITT says nothing if its library cannot be opened, and the program runs unrecorded. glibc keeps 1664
        bytes for all libraries that are opened late."""
        shape = run(["readelf", "-lW", library()], code=0).stdout
        size = int(re.search(r"^ +TLS +\S+ \S+ \S+ \S+ (0x[0-9a-f]+)", shape, re.M)[1], 16)
        self.assertLessEqual(size, 64)
        text = CROWD.replace("SIZE", "1472")
        crowd = helpers.compile_text(text, scratch() / "crowd.so", "-fPIC", "-shared")
        trace = recorded(self.program, "crowded", crowd, printed="")
        self.assertEqual(spans(trace), [])

    def test_forked_child_counts_from_zero(self):
        path = scratch() / "forked-%p.json"
        for old in scratch().glob("forked-*.json"):
            old.unlink()
        run([self.program, "forks", "0"], code=0, said="", env=environment(
            NPUPROF_OUTPUT_PATH=str(path), INTEL_LIBITTNOTIFY64=str(library())))
        for _ in range(200):
            found = [not_held(load(own)) for own in scratch().glob("forked-*.json")]
            if len(found) == 2:
                break
            run(["sleep", "0.05"])
        self.assertEqual(sorted(own["itt.relation"] for own in found), [1, 3])

    def test_names_without_end(self):
        """As of PyTorch, which makes a name for each shape: tasks go on, and the names are counted."""
        trace = recorded(self.program, "forks", "66000", NPUPROF_ARENA_BYTES="64M")
        names = collections.Counter(e["name"] for e in events(trace, "X"))
        unnamed = names.pop("(no name)", 0)
        self.assertEqual(set(names.values()), {1})
        self.assertEqual((len(names), unnamed), (1 << 16, 66000 - (1 << 16)))
        self.assertEqual(set(lost(trace)), {"notes"})
        self.assertEqual(not_held(trace), {"itt.relation": 1, "names": unnamed})

    def test_cost(self):
        cost = {}
        for name, env in (("without", {}), ("with", {"INTEL_LIBITTNOTIFY64": str(library()),
                                                     "NPUPROF_OUTPUT_PATH": "/dev/null"})):
            cost[name] = float(run([self.program, "cost", "20000"], code=0, env=environment(**env)).stdout)
        print(f"note an ITT task takes {cost['with']:.0f} ns with the collector, {cost['without']:.1f} "
              "without")
        self.assertLess(cost["with"], 2000)


class Nvtx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("collect_nvtx.c", "collect_nvtx", "-ldl")

    def test_everything(self):
        trace = recorded(self.program, "everything", printed="-2 1 1 -2 -2\n")
        values = [{"payload": value} for value in (str(2**64 - 1), -7, 0.125, 4000000000, -9, 0.5)]
        wide = "w\u00eft \u20ac \U0001F600"
        self.assertEqual(spans(trace), [
            (None, "lives in the caller", {}), ("lib", "lives in the caller", {"category": "kernels"}),
            (None, "\u00fcber", {}), *(("lib", "payload", value) for value in values), ("lib", "payload", {}),
            ("lib", "(no message)", {}), ("lib", "first", {"out_of_order": True}),
            (wide, "second", {"out_of_order": True}),
            (None, "started here", {}), (None, "also", {}), (wide, "with payload", {})])
        self.assertEqual([(e.get("cat"), e["name"], e.get("args")) for e in events(trace, "i")], [
            ("lib", "lives in the caller", {"category": 4}), (None, "mark", None), (None, "wide mark", None),
            (None, "valued", {"payload": 5})])
        self.assertIn("named by NVTX", [e["args"]["name"] for e in events(trace, "M", "thread_name")])
        self.assertEqual(not_held(trace),
                         {"nvtx.object": 2, "nvtx.order": 2, "nvtx.payload": 2, "nvtx.thread": 1})
        self.assertEqual(lost(trace), {"ends": 2})

    @helpers.thorough
    def test_eight_threads(self):
        """Each range and mark once, with its payload, inside the range around it."""
        count = 3000
        trace = recorded(self.program, "threads", str(count))
        counts = collections.Counter((e.get("cat"), e["name"]) for e in events(trace, "X"))
        self.assertEqual(counts, {(None, "outer"): 8 * count, ("threads", "registered"): 8 * count,
                                  (None, "range"): 8 * count,
                                  **{("threads", str(n)): count for n in range(8)}})
        self.assertEqual(len(events(trace, "i", "registered")), 8 * count)
        for name in map(str, range(8)):
            payloads = [e["args"]["payload"] for e in events(trace, "X", name)]
            self.assertEqual(payloads, list(range(count)), name)
        self.assertEqual((lost(trace), not_held(trace)), ({}, {}))


@helpers.thorough
class Real(unittest.TestCase):
    """Debian's libraries, against a collector of sixty lines that stands between them and ours."""

    def check(self, source, library_name, rounds, **env):
        compiler = helpers.need(helpers.CXX[0])
        program, log = scratch() / source, scratch() / "log"
        done = run([compiler, "-std=c++17", "-O1", helpers.PROGRAMS / f"{source}.cpp", "-o", program,
                    f"-l{library_name}", "-pthread"])
        if done.returncode and "No such file" in done.stderr:
            raise unittest.SkipTest(f"the headers of lib{library_name} are not installed")
        self.assertEqual(done.returncode, 0, done.stderr)
        reference = helpers.build("collect_reference.c", "reference.so", "-fPIC", "-shared", "-Wno-pedantic")
        expected = run([program, str(rounds)], code=0, env=environment(**env)).stdout
        trace = recorded(program, str(rounds), printed=expected, INTEL_LIBITTNOTIFY64=str(reference),
                         COLLECT_NEXT=str(library()), COLLECT_LOG=str(log), **env)
        wanted, found = collections.defaultdict(list), collections.defaultdict(list)
        for line in log.read_text().splitlines():
            thread, what, domain, name = line.split("\t")
            if what == "B":
                wanted[int(thread)].append((domain, name))
        native = threads(trace)
        for event in sorted(events(trace, "X"), key=lambda e: (e["ts"], -e["dur"])):
            if event["tid"] in native:
                found[native[event["tid"]]].append((event["cat"], event["name"]))
        self.assertEqual(found, wanted)
        # A worker of TBB may still be in a task when the trace is written; then it ends there.
        end = max((e["ts"] + e["dur"] for e in events(trace, "X")), default=0)
        for event in events(trace, "X"):
            if event["tid"] in native and "unfinished" in event.get("args", {}):
                self.assertAlmostEqual(event["ts"] + event["dur"], end, 2)
        self.assertEqual(lost(trace), {})
        count = sum(map(len, found.values()))
        print(f"note {source}: {count} tasks on {len(found)} threads as the reference has them")
        return collections.Counter(name for own in found.values() for _, name in own)

    def test_onednn(self):
        for level in (2, 1):               # tasks of worker threads, too; of the calling thread alone
            counts = self.check("collect_dnnl", "dnnl", 20, OMP_NUM_THREADS="2",
                                ONEDNN_ITT_TASK_LEVEL=str(level))
            self.assertEqual((counts["matmul"], counts["convolution"]), (20 * level, 20 * level))

    def test_onetbb(self):
        counts = self.check("collect_tbb", "tbb", 20)
        self.assertEqual(counts["body"], 20 * 40)
        self.assertGreaterEqual(counts["tbb_flow_graph"], 20)
        self.assertGreaterEqual(counts["tbb_parallel_for"], 20 * 6)
