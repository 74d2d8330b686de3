# test: time=180 - recording from Python through the shared library, each case in a process of its own
# SPDX-License-Identifier: MIT
import csv
import re
import shutil
import sys
import textwrap
import unittest

import helpers
from helpers import ROOT, environment, events, scratch

TOOLS = ROOT / "tools"


def python(code, tools=TOOLS, exit_code=0, said="", **env):
    """Runs a program that imports npuprof, and says nothing on stderr; its finished process."""
    return helpers.run([sys.executable, "-c", "import sys\nsys.path.insert(0, sys.argv[1])\nimport npuprof\n"
                        + textwrap.dedent(code), tools], code=exit_code, said=said, env=environment(**env))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("libnpuprof.so")

    def recorded(self, code, name, **env):
        """The trace that a program wrote to `name`, checked."""
        python(code, **env)
        helpers.npuprof_py("check", name)
        return helpers.load(scratch() / name)

    def names(self, trace):
        return [e["name"] for e in events(trace, "X")]


class Reading(Case):
    """npuprof.reader(): spans come back while the program runs."""

    def test_word_of_each_kind(self):
        """A kind that the library has is no mere number here."""
        header = (ROOT / "npuprof.h").read_text(encoding="utf-8")
        block = re.search(r"#define NPUPROF_KINDS\(X\)(.*?)\n#define", header, re.S)[1]
        names = re.findall(r"NPUPROF_KIND_(\w+)", block)
        words = [re.sub(r"^counter_.*", "counter", name.lower()) for name in names]
        line = re.search(r"bool npuprof_kind_is_real_\(.*", header)[0]
        reals = {names.index(name) for name in re.findall(r"NPUPROF_KIND_(\w+)", line)}
        python(f"""
            import npuprof.recording.reading as reading
            assert reading.KINDS == {tuple(words)}, reading.KINDS
            counters = [number for number, word in enumerate(reading.KINDS) if word == "counter"]
            assert set(counters) <= set(reading.COUNTERS), reading.COUNTERS
            assert {reals} == {{n for n, member in reading.COUNTERS.items() if member == "d"}}, {reals}
        """)

    def test_reader(self):
        python("""
            import threading
            with npuprof.profile(), npuprof.reader() as r:
                with npuprof.scope("outer", "cpu", rows=3, text="a", ok=True, ratio=0.5):
                    with npuprof.scope("inner"):
                        npuprof.counter("queue", -7)
                    (inner,) = r.read()
                    assert (inner.kind, inner.name, r.open, r.lost) == ("span", "inner", 1, 0), inner
                    assert inner.end_ns >= inner.start_ns and inner.error_ns < 100000
                    assert r.read() == []
                (outer,) = r.read()
                assert outer.args == {"rows": 3, "text": "a", "ok": True, "ratio": 0.5}, outer
                assert (outer.category, outer.id) == ("cpu", inner.parent)
                def work():
                    for i in range(1000):
                        with npuprof.scope("work"):
                            npuprof.instant("point")
                threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
                for t in threads:
                    t.start()
                got = []
                while any(t.is_alive() for t in threads):
                    got += r.read(kinds=("span", "instant"))
                got += r.read(kinds=("span", "instant"), drain=False)
                assert len(got) == 6000 == len({s.id for s in got}), len(got)
                assert {s.track for s in got} <= {f"worker {n}" for n in range(3)} and r.lost == 0
                npuprof.counter("queue", -7)
                npuprof.counter("load", 0.25)
                assert [s.value for s in r.read(kinds="counter")] == [-7, 0.25]
            r.close()
            try:
                r.read()
            except npuprof.Refused as refused:
                assert "this reader is closed" in str(refused), refused
            else:
                raise AssertionError("a read after the close")
            """)

    def test_refused(self):
        python("""
            import npuprof.recording.reading as reading
            with npuprof.profile(), npuprof.reader() as r:
                def inside(span):
                    r.read()
                reading.span_of = inside
                with npuprof.scope("one"):
                    pass
                try:
                    r.read()
                except npuprof.Refused as refused:
                    assert "this cursor is being read" in str(refused), refused
                else:
                    raise AssertionError("a read in a read")
                try:
                    r.read(kinds=("spam",))
                except npuprof.Refused as refused:
                    assert str(refused) == "read(): kind 'spam': unknown: did you mean span?", refused
                else:
                    raise AssertionError("an unknown kind")
            """)


class Spans(Case):
    def test_all_kinds(self):
        trace = self.recorded("""
            with npuprof.profile(file="kinds.json") as p:
                with p.record("warm up", warm_up=True):
                    pass
                with p.record("main"):
                    with p.inference(batch=8):
                        with p.operator(3, "Quantize"):
                            pass
                        with p.scope("decode", "cpu", rows=2**63, sign=-1, ratio=0.5, ok=True,
                                     text="a\\0b", other=None, huge=2**70):
                            p.counter("queue", 7)
                            p.counter("load", 0.25)
                p.instant("mark", "cpu", n=1)
                p.memory(10, 20, "conv", "npu0")
                p.alloc(100, "weights")
                p.alloc(50, "scratch")
                p.free(50, "scratch")
                p.metadata("model", "digits")
                now = p.now_ns()
                p.finished("irq", "handler", now - 5000, now, "hw", line=3)
                job = p.asynchronous("job", "npu").begin()
                job.end()
                job.end()
            """, "kinds.json")
        spans = {e["name"]: e for e in events(trace, "X")}
        self.assertEqual(set(spans), {"warm up", "main", "Inference", "Quantize", "decode", "handler", "job"})
        kinds = {name: e.get("args", {}).get("kind") for name, e in spans.items()}
        self.assertEqual(kinds, {"warm up": "warm_up", "main": "record", "Inference": "inference",
                                 "Quantize": "operator", "decode": None,
                                 "handler": None, "job": None})
        args = spans["decode"]["args"]
        self.assertEqual(args, {"rows": str(2**63), "sign": -1, "ratio": 0.5, "ok": True, "text": "a\ufffdb",
                                "other": "None",
                                "huge": str(2**70)})
        self.assertEqual((spans["decode"]["cat"], spans["Quantize"]["args"]["operator_index"]), ("cpu", 3))
        self.assertEqual(spans["Inference"]["args"]["batch"], 8)
        self.assertEqual(spans["handler"]["dur"], 5)
        pool = [(e["tag"], e["args"]["used"]) for e in events(trace, "C", "host")]
        self.assertEqual(pool, [("weights", 100), ("scratch", 150), ("scratch", 100)])
        counters = {e["name"]: e["args"] for e in events(trace, "C") if e["name"] != "host"}
        self.assertEqual(counters, {"queue": {"value": 7}, "load": {"value": 0.25},
                                    "npu0": {"used": 10, "allocated": 20}})
        self.assertEqual([e["name"] for e in events(trace, "i") if not e.get("derived")], ["mark"])
        self.assertEqual(trace["metadata"]["npuprof"]["user"]["model"], "digits")

    def test_nesting_and_ids(self):
        """Children lie in their parents; the CSV's ids say the same."""
        self.recorded("""
            with npuprof.profile(file="nest.json") as p:
                with p.record("outer"):
                    with p.scope("middle"):
                        with p.scope("inner"):
                            pass
                p.dump("nest.csv")
            """, "nest.json")
        rows = list(csv.reader((scratch() / "nest.csv").open(newline="")))[1:]
        by_name = {row[6]: row for row in rows}
        self.assertEqual(by_name["inner"][1], by_name["middle"][2])
        self.assertEqual(by_name["middle"][1], by_name["outer"][2])
        self.assertEqual({row[0] for row in rows}, {by_name["outer"][0]})

    def test_threads(self):
        trace = self.recorded("""
            import threading
            with npuprof.profile(file="threads.json") as p:
                barrier = threading.Barrier(4)
                def work():
                    barrier.wait()
                    for i in range(200):
                        with p.scope("outer"):
                            with p.scope("inner", "", n=i):
                                pass
                threads = [threading.Thread(target=work, name=f"worker {n} \\u00e9") for n in range(4)]
                for t in threads: t.start()
                for t in threads: t.join()
            """, "threads.json")
        self.assertEqual(len(self.names(trace)), 4 * 400)
        names = {e["args"]["name"] for e in events(trace, "M", "thread_name")}
        self.assertLessEqual({f"worker {n} \u00e9" for n in range(4)}, names)
        per_thread = {}
        for e in events(trace, "X"):
            per_thread[e["tid"]] = per_thread.get(e["tid"], 0) + 1
        self.assertEqual(sorted(per_thread.values()), [400] * 4)

    def test_decorators_exceptions_and_generators(self):
        trace = self.recorded("""
            @npuprof.scope("fib", "py")
            def fib(n):
                '''Doc.'''
                return n if n < 2 else fib(n - 1) + fib(n - 2)
            @npuprof.scope("raises")
            def raises():
                raise ValueError
            def numbers():
                with npuprof.scope("generator"):
                    yield 1
                    yield 2
            assert fib.__name__ == "fib" and fib.__doc__ == "Doc."
            fib(3)                                   # nothing is recorded yet
            with npuprof.profile(file="deco.json") as p:
                fib(4)
                try: raises()
                except ValueError: pass
                for n in numbers(): break
            fib(3)
            """, "deco.json")
        names = self.names(trace)
        self.assertEqual((names.count("fib"), names.count("raises"), names.count("generator")), (9, 1, 1))
        self.assertFalse([e for e in events(trace, "X", "raises") if "unfinished" in e.get("args", {})])

    def test_awaits(self):
        trace = self.recorded("""
            import asyncio
            async def one(n):
                with npuprof.asynchronous(f"task {n}"):
                    await asyncio.sleep(0.001 * (5 - n))
            async def main():
                await asyncio.gather(*(one(n) for n in range(4)))
            with npuprof.profile(file="await.json") as p:
                asyncio.run(main())
            """, "await.json")
        spans = {e["name"]: e for e in events(trace, "X")}
        self.assertEqual(len(spans), 4)
        self.assertTrue(all(e["dur"] > 500 and "args" not in e for e in spans.values()), spans)


class Control(Case):
    def test_pause_categories_levels(self):
        trace = self.recorded("""
            with npuprof.profile(file="control.json", level=1, categories="cpu,npu") as p:
                with p.scope("a", "cpu"): pass
                with p.scope("b", "gpu"): pass
                with p.scope("detail", "cpu", level=2): pass
                p.pause(); p.pause()
                with p.scope("c", "cpu"): pass
                p.resume(); p.resume()
                with p.scope("d", "npu"): pass
            with p.scope("after", "cpu"): pass
            """, "control.json")
        self.assertEqual(self.names(trace), ["a", "d"])
        self.assertEqual([e["name"] for e in events(trace, "i")], ["npuprof paused", "npuprof resumed"])

    def test_one_after_another(self):
        """A second profile starts empty and without the categories of the first; the level counts."""
        second = self.recorded("""
            with npuprof.profile(file="first.json", categories="x") as p:
                with p.scope("one", "x"): pass
            with npuprof.profile(file="second.json", level=2) as p:
                with p.scope("two", "y", level=2): pass
                assert [p.load().text(i) for i in range(len(p.load()))] == ["two"]
                p.clear()
                with p.scope("three"): pass
                stats = p.stats()
                assert stats["recorded"] == 1 and stats["lost"] == 0 and stats["arena_full"] == 0, stats
            """, "second.json")
        self.assertEqual(self.names(helpers.load(scratch() / "first.json")), ["one"])
        self.assertEqual(self.names(second), ["three"])

    def test_in_a_child(self):
        """A child of fork() has no profile of its own yet: one that it opens is new, and the parent's goes
        on."""
        parent = self.recorded("""
            import os
            with npuprof.profile(file="parent.json"):
                with npuprof.scope("around"):
                    child = os.fork()
                    if not child:
                        with npuprof.scope("in no profile"): pass
                        with npuprof.profile(file="child.json"):
                            with npuprof.scope("own"): pass
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
            """, "parent.json")
        self.assertEqual(self.names(parent), ["around"])
        self.assertEqual(self.names(helpers.load(scratch() / "child.json")), ["own"])

    def test_arena(self):
        """A small arena loses and says how much; an arena in a file is an image."""
        trace = self.recorded("""
            with npuprof.profile(file="small.json", arena_bytes=65536) as p:
                for i in range(10000):
                    with p.scope("a"): pass
                stats = p.stats()
            assert stats["recorded"] + stats["lost"] == 10000 and stats["lost"] > 0, stats
            assert stats["bytes_total"] == 65536, stats
            """, "small.json")
        lost = trace["metadata"]["npuprof"]["lost"]["arena_full"]
        self.assertEqual(len(self.names(trace)) + lost, 10000)
        done = python("""
            import os, signal
            with npuprof.profile(arena_path="live.npuprof", arena_bytes=2**20) as p:
                with p.scope("kept"): pass
                os.kill(os.getpid(), signal.SIGKILL)
            """, exit_code=-9)
        sys.path.insert(0, str(TOOLS))
        import npuprof
        trace = npuprof.load(scratch() / "live.npuprof")
        self.assertEqual([trace.text(i) for i in range(len(trace))], ["kept"])

    def test_stream_and_newest(self):
        done = python("""
            with npuprof.profile(file="stream.npuprof", when_full="stream", arena_bytes=65536) as p:
                for i in range(50000):
                    with p.scope("a"): pass
            trace = npuprof.load("stream.npuprof")
            assert len(trace) == 50000 and not trace.damage, trace
            """)
        done = python("""
            with npuprof.profile(when_full="keep-newest", arena_bytes=65536) as p:
                for i in range(10000):
                    with p.scope("a", "", n=i): pass
                trace = p.load()
            assert trace.args(len(trace) - 1) == {"n": 9999}, trace.args(len(trace) - 1)
            """)

    def test_environment(self):
        """NPUPROF_OUTPUT_PATH records a program that has marks and no profile(); TRACEPARENT joins it to a
        trace."""
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        trace = self.recorded("""
            with npuprof.scope("marked"): pass
            """, "env.json", NPUPROF_OUTPUT_PATH=str(scratch() / "env.json"), TRACEPARENT=parent)
        self.assertEqual(self.names(trace), ["marked"])
        self.assertEqual(trace["metadata"]["npuprof"]["traceparent"], parent)
        # Capture control counts inferences as in C. (env.0.json is the file of its first window.)
        self.recorded("""
            for i in range(9):
                with npuprof.inference("Inference", batch=i): pass
            """, "env.json", NPUPROF_OUTPUT_PATH=str(scratch() / "env.json"),
                      NPUPROF_SCHEDULE="wait=2,warmup=1,active=3,repeat=1")
        batches = [e["args"]["batch"] for e in helpers.events(helpers.load(scratch() / "env.0.json"), "X")]
        self.assertEqual(sorted(batches), [2, 3, 4, 5])
        # A profile inside such a recording neither ends nor empties it.
        trace = self.recorded("""
            with npuprof.scope("before"): pass
            with npuprof.profile(file="part.json") as p:
                with p.scope("within"): pass
            with npuprof.scope("after"): pass
            """, "env2.json", NPUPROF_OUTPUT_PATH=str(scratch() / "env2.json"))
        self.assertEqual(self.names(trace), ["before", "within", "after"])
        self.assertEqual(self.names(helpers.load(scratch() / "part.json")), ["before", "within"])

    def test_the_command_records_nothing(self):
        helpers.npuprof_py("--help", env=environment(NPUPROF_OUTPUT_PATH=str(scratch() / "no.json")))
        self.assertFalse((scratch() / "no.json").exists())


class Output(Case):
    def test_file_objects(self):
        """In text and binary mode, of the standard library or not; the same JSON as under a path."""
        done = python("""
            import io, tempfile
            files = [io.StringIO(), io.BytesIO(), open("object.json", "w+", encoding="utf-8"),
                     open("object.bin", "w+b"), tempfile.NamedTemporaryFile("w+b")]
            texts = []
            for file in files:
                with npuprof.profile(file=file) as p:
                    with p.scope("Größe"):
                        pass
                file.flush()
                file.seek(0)
                text = file.read()
                texts.append(text if isinstance(text, str) else text.decode())
                assert '"name":"Größe"' in texts[-1] and texts[-1].endswith("\\n"), texts[-1]
                assert not file.closed
            p.dump("path.json")
            assert open("path.json", encoding="utf-8").read() == texts[-1]
            npuprof.load("object.json")
            """)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @helpers.thorough
    def test_printed_tables(self):
        """print_*() while it runs and after, as `report` prints them; all with report()."""
        done = python("""
            import io
            with npuprof.profile(file="printed.json") as p:
                with p.record("main"):
                    with p.inference():
                        with p.operator(3, "Quantize"):
                            pass
                p.memory(10, 20, "conv")
                p.print_inferences()
            for table in ("summary", "inferences", "npu_executions", "npu_operators",
                          "external_operators", "memory"):
                getattr(p, "print_" + table)()
            out = io.StringIO()
            p.print_summary(out)
            assert "Inference counts                : 1" in out.getvalue()
            p.report("names")
            p.report(file=out)
            assert "Spans by name" in out.getvalue() and "NPU operators" not in out.getvalue()
            """)
        tables = ("inferences", "summary", "inferences", "executions", "operators", "external", "memory",
                  "names")
        wanted = [helpers.npuprof_py("report", "printed.json", "--table", table).stdout for table in tables]
        self.assertEqual(done.stdout, "".join(wanted))


class Errors(Case):
    def refused(self, code, *words):
        done = python("try:\n" + textwrap.indent(code, "    ")
                      + "\nexcept npuprof.Refused as refused:\n    print(refused)")
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)

    def test_sentences(self):
        self.refused("with npuprof.profile(file='/nowhere/t.json'): pass", "/nowhere/t.json: ",
                     "no such file")
        self.refused("with npuprof.profile(categories='a,-b'): pass", "categories 'a,-b'", "not both")
        self.refused("with npuprof.profile(arena_bytes=100): pass", "arena", "too small")
        self.refused("with npuprof.profile(when_full='never'): pass", "arena", "argument")
        self.refused("with npuprof.profile() as p: p.report('all')", "no table 'all'", "names")
        self.refused("import io\nnpuprof.profile(io.StringIO(), when_full='stream')", "a path")
        self.refused("with npuprof.profile():\n    with npuprof.profile(): pass", "one at a time")

    def test_library_not_built(self):
        """One sentence from profile(); marks alone do nothing, and say it once where the environment asks for
        a recording."""
        bare = scratch() / "bare" / "tools"
        shutil.copytree(TOOLS, bare, ignore=shutil.ignore_patterns("__pycache__"))
        done = python("""
            with npuprof.scope("quiet"): pass
            npuprof.counter("quiet", 1)
            try:
                npuprof.profile().__enter__()
            except npuprof.Refused as refused:
                print(refused)
            """, bare)
        self.assertRegex(done.stdout, r"libnpuprof\.so: not built: .*run `make tools` first")
        done = python("""
            with npuprof.scope("a"): pass
            with npuprof.scope("b"): pass
            """, bare, said=None, NPUPROF_OUTPUT_PATH="never.json")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("make tools", done.stderr)
