# test: thorough time=200 - make demo-stack: Python, C++, C and the NPU on one timeline. The arrows of each
# inference are followed in the JSON as viewers bind them, and in .pftrace
# SPDX-License-Identifier: MIT
import re
import shutil
import sys
import unittest

import helpers
import pftrace
from helpers import ROOT, run, scratch

IMAGES = 24
# A busy machine may stop the thread that moves the simulator's clock (npu/test_digits.py). So times of the
# device are compared with this allowance, and a run in which they contradict the host's, or lie ahead of the
# counter that stands (lost_stamps), is made again.
STALL_NS, RUNS = 5000000, 8
STALLED = re.compile("causality_violations|lost_stamps")
# A layer's tracks; each span of a chain is on one of the layer that is said beside it.
LAYERS = {"Python": r"model \d \(Python\)", "C++": r"runtime \d \(C\+\+\)", "C": r"driver \(C\)",
          "NPU": r"npusim PE \d"}


class Timeline:
    """The spans of a trace, and its arrows: number, category, and the spans at each end."""

    def __init__(self, trace):
        self.tracks = {e["tid"]: e["args"]["name"] for e in helpers.events(trace, "M", "thread_name")}
        self.spans = [(e["tid"], e["name"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e.get("args", {}))
                      for e in helpers.events(trace, "X")]
        starts = {(e["cat"], e["name"], e["id"]): self.around(e) for e in helpers.events(trace, "s")}
        self.arrows = [(number, e["cat"], starts[e["cat"], e["name"], e["id"]], self.around(e))
                       for number, e in enumerate(helpers.events(trace, "f"))]

    def around(self, end):
        """The innermost span that is open at the time of this end, as viewers find it. Also the one around it
        if the inner one begins at that very time: the mark then stands in either of them."""
        at = ns(end["ts"])
        spans = sorted((s for s in self.spans if s[0] == end["tid"] and s[2] <= at < s[3]),
                       key=lambda s: (-s[2], s[3]))
        return spans[:1 + (spans[0][2] == at)]

    def arrow(self, end, span, category="flow"):
        """The one arrow with this span at its beginning (2) or its end (3)."""
        (found,) = [a for a in self.arrows if a[1] == category and span in a[end]]
        return found

    def inside(self, span, name):
        """The one span of this name inside another one of its track."""
        (found,) = [s for s in self.spans
                    if s[:2] == (span[0], name) and span[2] <= s[2] and s[3] <= span[3]]
        return found

    def outside(self, span, name):
        (found,) = [s for s in self.spans
                    if s[:2] == (span[0], name) and s[2] <= span[2] and span[3] <= s[3]]
        return found

    def layer(self, span):
        (found,) = [layer for layer, names in LAYERS.items() if re.fullmatch(names, self.tracks[span[0]])]
        return found


def ns(microseconds):
    return round(microseconds * 1000)


class Stack(unittest.TestCase):
    def demo(self, name, *compilers):
        """Runs make demo-stack in a folder of its own; the path of its trace."""
        if not shutil.which(helpers.CXX[0]):
            self.skipTest(f"{helpers.CXX[0]} is not installed: the runtime of the stack is in C++")
        for part in ("libnpuprof.so", "examples/digits/npusim"):
            helpers.tool(part)
        folder = scratch() / name
        for _ in range(RUNS):
            done = run(["make", "--no-print-directory", "-C", ROOT, "demo-stack", f"STACK={folder}",
                        f"STACK_JSON={folder / 'stack.json'}", *compilers],
                       env=helpers.environment())
            if not STALLED.search(done.stdout + done.stderr):
                break
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{IMAGES} images", done.stdout)
        self.assertIn("scores equal to Python's: yes", done.stdout)
        self.assertRegex(done.stdout, rf"Inference counts +: {IMAGES}\n")
        self.assertRegex(done.stdout, r"stack\.json: ok, \d+ events\n")
        return folder / "stack.json"

    def check_chains(self, path):
        trace = helpers.load(path)
        own = trace["metadata"]["npuprof"]
        self.assertEqual(sum(own["lost"].values()), 0)
        line = Timeline(trace)
        heads = [s for s in line.spans if s[1] == "Inference"]
        self.assertEqual(sorted(s[4]["image"] for s in heads), list(range(IMAGES)))
        used = set()
        for head in heads:
            with self.subTest(image=head[4]["image"]):
                used |= self.check_chain(line, head)
        # Five arrows an inference, and there are no others but those to the parts of an execution.
        self.assertEqual(len(used), 5 * IMAGES)
        self.assertEqual(sum(arrow[1] == "flow" for arrow in line.arrows), 4 * IMAGES)
        return line

    def check_chain(self, line, head):
        """Follows the arrows of an inference down to the NPU, and back from the answer. Their numbers."""
        def named(arrow, end, name):
            (found,) = [s for s in arrow[end] if s[1] == name]
            return found

        start, wait = line.inside(head, "start"), line.inside(head, "wait")
        to_runtime = line.arrow(2, start)
        graph = named(to_runtime, 3, "run graph")
        network = line.inside(graph, "Network")
        to_driver = line.arrow(2, network)
        submit = named(to_driver, 3, "submit")
        to_npu = line.arrow(2, submit, "submit")
        execution = named(to_npu, 3, "Execution")
        to_model = line.arrow(3, wait)
        classify = named(to_model, 2, "Classify")
        graph_again = line.outside(classify, "run graph")
        resumed = line.arrow(3, graph_again)
        resume = named(resumed, 2, "resume graph")
        self.assertEqual([line.layer(s) for s in (start, graph, network, submit, execution)],
                         ["Python", "C++", "C++", "C", "NPU"])
        complete = line.outside(resume, "complete")
        self.assertEqual([line.layer(s) for s in (complete, graph_again, classify, wait)],
                         ["C", "C++", "C++", "Python"])
        # In time: nobody works before he is asked.
        error = execution[4]["error_ns"] + STALL_NS
        begins = [head[2], start[2], graph[2], network[2], submit[2], execution[2] + error]
        self.assertEqual(begins, sorted(begins))
        ends = [execution[3] - error, resume[2], graph_again[2], classify[2], wait[3], head[3]]
        self.assertEqual(ends, sorted(ends))
        return {arrow[0] for arrow in (to_runtime, to_driver, to_npu, resumed, to_model)}

    def test_default_compiler(self):
        path = self.demo("default")
        line = self.check_chains(path)
        sites = {s["file"].rsplit("/", 1)[-1] for s in helpers.load(path)["metadata"]["npuprof"]["sites"]}
        self.assertTrue({"runtime.cpp", "driver.c"} <= sites, sites)
        with self.subTest(form="pftrace"):
            out = path.with_suffix(".pftrace")
            helpers.npuprof_py("convert", path, "-o", out)
            found = pftrace.read(out.read_bytes())
            self.assertEqual(found.errors, [])
            base = found.snapshots[0][6]
            # There the engines of a device are tracks below one of its name.
            tracks = {number: name.removeprefix("npusim ") for number, name in line.tracks.items()}
            arrows = [[(found.slices[n].track.name, found.slices[n].name, found.slices[n].start - base)
                       for n in pair] for pair in found.arrows]
            self.assertEqual(len(arrows), len(line.arrows))
            for _, _, *ends in line.arrows:
                first, last = ([(tracks[s[0]], *s[1:3]) for s in spans] for spans in ends)
                self.assertEqual(sum(a in first and b in last for a, b in arrows), 1, (first, last))

    def test_clang(self):
        helpers.need("clang++")
        self.check_chains(self.demo("clang", "CC=clang", "CXX=clang++"))

    def test_no_device(self):
        """Without the simulator: one sentence, and the program ends."""
        self.demo("default")
        (scratch() / "model.py").write_text(
            f"import sys\nsys.path.insert(0, {str(ROOT / 'examples/stack')!r})\nimport model\n"
            "model.BUILD = model.Path('/nonexistent')\nsys.exit(model.main())\n")
        run([sys.executable, scratch() / "model.py", "--libraries", scratch() / "default"], code=1,
            said="model.py: cannot start the simulated NPU: run `make demo` to build it\n",
            env=helpers.environment())
