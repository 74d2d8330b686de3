# test: thorough alone - examples/digits against the truth that its simulator knows
# SPDX-License-Identifier: MIT
"""Builds and runs examples/digits and compares its trace with the simulator's true clock.

By hand, for a trace made with `digits --output digits.json --truth truth.txt`:

    python3 tests/npu/test_digits.py digits.json truth.txt

The counter of npusim is moved by a thread that the host may preempt. npusim logs those stalls; a device span
whose clock anchors were read in a stall is left out, and more than 20 % left out is a failure.
"""

import bisect
import collections
import contextlib
import decimal
import fractions
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
LEFT_OUT_MOST = 0.20
STALL_MARGIN_NS = 500    # the words are this close to the stamps that npusim logs
EXECUTION, TRANSFERS = "Execution", ("Load", "Store")


# ---- the two files -------------------------------------------------------------------------------

class Truth:
    """The simulator's clock: ticks(now) = start_ticks + floor((now - origin_ns) * rate_millihertz /
    10^12)."""

    def __init__(self, path):
        values, stalls = {}, []
        for line in pathlib.Path(path).read_text().splitlines():
            key, _, value = line.partition("=")
            if key == "stall":
                stalls.append(tuple(map(int, value.split(","))))
            else:
                values[key] = value
        self.origin_ns, self.start_ticks = int(values["origin_ns"]), int(values["start_ticks"])
        self.rate_millihertz = int(values["rate_millihertz"])
        self.stalls_lost = int(values["stalls_lost"])
        self.stall_starts_ns = sorted(first for first, _ in stalls)
        self.stalled_ns = sum(last - first for first, last in stalls)
        self.length_ns = int(values["end_ns"]) - self.origin_ns

    def rate_hz(self):
        return fractions.Fraction(self.rate_millihertz, 1000)

    def monotonic_ns(self, ticks):
        """The first moment at which the counter shows `ticks`."""
        return self.origin_ns + fractions.Fraction((ticks - self.start_ticks) * 10**12, self.rate_millihertz)

    def read_in_stall(self, ticks):
        """Whether a stall began while the words showed this value: who reads it may have read it too late."""
        shown_ns = self.monotonic_ns(ticks)
        first = bisect.bisect_left(self.stall_starts_ns, shown_ns - STALL_MARGIN_NS)
        return first < len(self.stall_starts_ns) and self.stall_starts_ns[first] <= shown_ns + STALL_MARGIN_NS


def nanoseconds(microseconds):
    return int(decimal.Decimal(microseconds) * 1000)


class Span:
    def __init__(self, event):
        self.name, self.tid, self.args = event["name"], event["tid"], event.get("args", {})
        self.start_ns = nanoseconds(event["ts"])
        self.end_ns = self.start_ns + nanoseconds(event["dur"])

    def contains(self, start_ns, end_ns, slack_ns=0):
        return self.start_ns - slack_ns <= start_ns and end_ns <= self.end_ns + slack_ns


class Trace:
    def __init__(self, path):
        data = json.loads(pathlib.Path(path).read_text(), parse_float=decimal.Decimal)
        self.meta = data["metadata"]["npuprof"]
        self.sync = self.meta["devices"][0]["clock_sync"]
        events = data["traceEvents"]
        spans = [Span(event) for event in events if event["ph"] == "X"]
        self.device = [span for span in spans if "start_ticks" in span.args]
        self.host = collections.defaultdict(list)
        for span in spans:
            if "start_ticks" not in span.args:
                self.host[span.tid].append(span)
        self.starts = {event["id"]: event for event in events if event["ph"] == "s"}
        self.stamps = sorted((nanoseconds(event["ts"]),
                              nanoseconds(event["ts"]) + nanoseconds(event.get("dur", 0))) for event in events
                              if "ts" in event)
        self.arrows = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "f":
                self.arrows[event["tid"], nanoseconds(event["ts"])].append(event)
        self.executions = [span for span in self.device if span.name == EXECUTION]
        # A job's spans share PE and execution number.
        self.jobs = collections.defaultdict(list)
        for span in self.device:
            self.jobs[span.args["pe_index"], span.args["execution_index"]].append(span)

    def enclosing(self, name, event):
        """The host span of that name around an event."""
        at_ns = nanoseconds(event["ts"])
        return next((s for s in self.host[event["tid"]] if s.name == name and s.contains(at_ns, at_ns)), None)

    def submit_of(self, execution):
        """The arrow that ends at this execution; its start. None without one."""
        for end in self.arrows[execution.tid, execution.start_ns]:
            start = self.starts.get(end["id"])
            if start and self.enclosing("Submit", start):
                return start
        return None


# ---- the checks: each returns (problems, what was measured) ---------------------------------------

def check_inferences(trace, truth):
    """Every execution has an arrow from a submit, and the host's inference around that contains the job's
    spans."""
    problems, slack_ns = [], int(trace.sync["max_error_ns"])
    inferences, anchored = set(), set(map(id, well_anchored(trace, truth)))
    executions = [execution for execution in trace.executions if id(execution) in anchored]
    for execution in executions:
        where = f"execution {execution.args['execution_index']} of PE {execution.args['pe_index']}"
        start = trace.submit_of(execution)
        if not start:
            problems.append(f"{where}: no arrow from a Submit span")
            continue
        inference = trace.enclosing("Inference", start)
        if not inference:
            problems.append(f"{where}: submitted outside of an Inference span")
            continue
        inferences.add((inference.tid, inference.start_ns))
        for span in trace.jobs[execution.args["pe_index"], execution.args["execution_index"]]:
            if not inference.contains(span.start_ns, span.end_ns, slack_ns):
                problems.append(f"{where}: {span.name} lies outside of its inference")
    total = sum(span.name == "Inference" for spans in trace.host.values() for span in spans)
    if len(executions) != len(inferences) or total != len(trace.executions) or total == 0:
        problems.append(f"{total} inferences, {len(trace.executions)} executions, {len(inferences)} of them "
                        f"together")
    return problems, f"{total} inferences contain their {len(trace.device)} device spans"


def check_rate(trace, truth):
    rate, true = fractions.Fraction(trace.sync["rate_hz"]), truth.rate_hz()
    off_ppm = abs(rate - true) / true * 10**6
    uncertainty_ppm = fractions.Fraction(trace.sync["rate_uncertainty_ppm"])
    anchors = trace.sync["anchor_list"]
    seconds = (anchors[-1][0] - anchors[0][0]) / 1e9
    problems = []
    measured = (f"rate off by {float(off_ppm):.4f} ppm, stated +-{float(uncertainty_ppm):.4f} ppm, "
                f"{len(anchors)} anchors over {seconds:.2f} s")
    if truth.read_in_stall(anchors[0][2]) or truth.read_in_stall(anchors[-1][2]):
        return [], measured + " (not checked: first or last anchor read in a stall)"
    if off_ppm > uncertainty_ppm:
        problems.append(measured)
    if seconds > 1 and off_ppm > 2:
        problems.append(f"rate off by {float(off_ppm):.3f} ppm after {seconds:.2f} s")
    return problems, measured


def well_anchored(trace, truth):
    """The device spans none of whose clock anchors were read in a stall."""
    anchors = sorted(anchor[2] for anchor in trace.sync["anchor_list"])
    stalled = [truth.read_in_stall(ticks) for ticks in anchors]
    for span in trace.device:
        last = min(max(bisect.bisect_right(anchors, span.args["start_ticks"]), 1), len(anchors) - 1)
        if not any(stalled[last - 1:bisect.bisect_left(anchors, span.args["end_ticks"], last) + 1]):
            yield span


def left_out(trace, truth):
    """The share of the device spans that stalls of the simulator spoil."""
    return 1 - sum(1 for _ in well_anchored(trace, truth)) / len(trace.device) if trace.device else 1


def check_error(trace, truth):
    """|start and end in the trace - the truth| is at most the stated error, for the span and for the
    device."""
    start_ns, stated_ns = int(trace.meta["start_monotonic_ns"]), int(trace.sync["max_error_ns"])
    host_error_ns = int(trace.meta["clock"]["error_ns"])
    problems, worst_ns = [], 0
    for span in well_anchored(trace, truth):
        ticks = span.args["start_ticks"], span.args["end_ticks"]
        for shown_ns, shown_ticks in zip((span.start_ns, span.end_ns), ticks):
            error_ns = float(abs(start_ns + shown_ns - truth.monotonic_ns(shown_ticks)))
            worst_ns = max(worst_ns, error_ns)
            allowed_ns = min(stated_ns, int(span.args["error_ns"])) + host_error_ns
            if error_ns > allowed_ns:
                problems.append(f"{span.name} at {shown_ns} ns is {error_ns:.0f} ns off, stated "
                                f"{allowed_ns} ns")
    share = left_out(trace, truth)
    if share > LEFT_OUT_MOST:
        problems.append(f"{share:.0%} of the device spans left out for stalls of the simulator")
    if truth.stalls_lost:
        problems.append(f"{truth.stalls_lost} stalls are not in the truth file")
    return problems, (f"largest true error {worst_ns:.0f} ns, stated {stated_ns} ns (+ {host_error_ns} ns "
                      f"of the host's clock); "
                      f"{round(share * len(trace.device))} of {len(trace.device)} device spans left out; "
                      f"counter stalled "
                      f"{truth.stalled_ns / truth.length_ns:.1%} of the time")


def check_counts(trace, truth):
    """No causality violation, nothing lost, every span placed, one reset-free clock."""
    problems = [f"{key} is {trace.sync[key]}" for key in
                ("causality_violations", "unplaced_spans", "resets", "ring_lost") if trace.sync[key] != 0]
    problems += [f"lost by {cause}: {count}" for cause, count in trace.meta["lost"].items() if count]
    return problems, f"{trace.meta['recorded']} events recorded, none lost, {trace.sync['wraps']} wraps"


def overlap(a, b):
    return a.start_ns < b.end_ns and b.start_ns < a.end_ns


def check_engines(trace, truth):
    """Inside every job, loads overlap compute and two compute engines overlap."""
    loads = compute = 0
    for spans in trace.jobs.values():
        work = [s for s in spans if s.name not in (EXECUTION, *TRANSFERS)]
        loads += any(overlap(a, b) for a in spans if a.name == "Load" for b in work)
        compute += any(overlap(a, b) for n, a in enumerate(work) for b in work[:n])
    problems = [f"{what} in {count} of {len(trace.jobs)} jobs only" for what, count in
                (("loads overlap compute", loads), ("compute engines overlap", compute))
                if count != len(trace.jobs)]
    return problems, "loads and both compute engines overlap"


CHECKS = (check_inferences, check_rate, check_error, check_counts, check_engines)


# ---- as a test -----------------------------------------------------------------------------------

def children(pid):
    """Processes that `pid` started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (entry.name.isdigit()
                and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid):
                found.append(int(entry.name))
    return found


def runs(pid):
    """Whether a process is there and not just waiting to be collected."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipUnless(sys.platform == "linux", "npusim needs Linux")
class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(dir=os.environ.get("NPUPROF_TEST_TMP"))
        cls.addClassCleanup(cls.directory.cleanup)
        cls.path = pathlib.Path(cls.directory.name)
        for name in ("npusim", "digits"):
            subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-O2", "-Wall", "-Wextra",
                            "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror",
                            *shlex.split(os.environ.get("NPUPROF_TEST_CFLAGS", "")), f"-I{ROOT}", "-pthread",
                            DIGITS / f"{name}.c", "-o", cls.path / name], check=True)
        cls.run_result, cls.files = cls.compared()

    @classmethod
    def digits(cls, *arguments):
        return subprocess.run([cls.path / "digits", *arguments], cwd=cls.path, capture_output=True, text=True)

    @classmethod
    def compared(cls, *arguments):
        """Runs digits; (its result, (trace, truth))."""
        files = None
        # Why again: a host too busy for the simulator says nothing of npuprof.
        for _ in range(3):
            result = cls.digits("--output", "digits.json", "--truth", "truth.txt", *arguments)
            if result.returncode != 0:
                break
            files = Trace(cls.path / "digits.json"), Truth(cls.path / "truth.txt")
            if left_out(*files) == 0:
                break
        return result, files

    def check(self, check):
        self.assertEqual(self.run_result.returncode, 0, self.run_result.stderr)
        problems, measured = check(*self.files)
        print(measured)
        self.assertFalse(problems, f"{len(problems)} problems: " + "; ".join(problems[:3]))

    def test_network(self):
        self.assertEqual((self.run_result.returncode, self.run_result.stderr), (0, ""))
        right, total = map(int,
                           re.search(r"^Accuracy: (\d+) of (\d+)", self.run_result.stdout, re.M).groups())
        self.assertEqual(total, 500)
        self.assertGreater(right / total, 0.95)
        self.assertIn("NPU results equal to the host reference: yes", self.run_result.stdout)

    def test_inferences_contain_their_device_spans(self):
        self.check(check_inferences)

    def test_rate(self):
        self.check(check_rate)

    def test_stated_error_is_true(self):
        self.check(check_error)

    def test_counts(self):
        self.check(check_counts)

    def test_no_emptiness(self):
        """A viewer opens with the whole trace in sight: most of it shows something."""
        stamps = self.files[0].stamps
        end, longest = stamps[0][1], 0
        for start, stop in stamps:
            longest, end = max(longest, start - end), max(end, stop)
        share = longest / (end - stamps[0][0])
        print(f"longest stretch without an event: {share:.0%}")
        self.assertLess(share, 0.9)        # on a busy machine its end may come late

    def test_engines(self):
        self.check(check_engines)

    def test_operators(self):
        """The network on the host: model, iterations, operators, each inside the one above it, with their
        figures."""
        trace, _ = self.files
        spans = [span for spans in trace.host.values() for span in spans]
        model, = (span for span in spans if span.name == "model_inference")
        iterations = [span for span in spans if re.fullmatch(r"Iteration\d", span.name)]
        self.assertEqual([model.contains(i.start_ns, i.end_ns) for i in iterations],
                         [False, True, True, True])
        for iteration in iterations:
            inside = [s for s in trace.host[iteration.tid] if iteration.contains(s.start_ns, s.end_ns)
                      and "ne.type" in s.args]
            self.assertEqual([s.name for s in inside],
                             ["pad1", "conv1", "pad2", "depthwise1", "conv2", "pad3", "depthwise2", "conv3",
                                                        "reshape", "dense"])
            self.assertEqual([inside[-1].args[key] for key in ("ne.type", "ne.input_shapes",
                                                               "ne.output_shapes", "ne.weight_shape")],
                             ["InnerProduct", "1x512;512x10;10", "1x10", "512x10"])
            self.assertTrue(0 < inside[-1].args["ne.sparse_ratio"] < 0.1)

    def test_memory_and_bench(self):
        """Of the pools only what is not warm-up; at the end nothing is in use but the network."""
        out = self.run_result.stdout
        for pool, records in (("npusim", 8 + 2 * 16), ("host", 1 + 3 * 20)):
            self.assertIn(f"Memory of {pool} (MB of 2^20 bytes): {records} records", out)
        # its input and its result: 8 x 8 x 24 + 10 x 10 x 24
        self.assertRegex(out, r"peak used +: 0\.003754 at #\d+ pad3")
        for name in ("host", "one PE", "every PE"):
            self.assertRegex(out, rf"(?m)^digits, {name} +\d+\.\d{{3}} ")

    def test_other_devices(self):
        """Two PEs, a rate far from the nominal one, images at full speed with more threads than PEs. Why 200:
        their entries fit in the ring, so that a busy machine does not overrun it."""
        result, files = self.compared("--images", "200", "--seconds", "0", "--workers", "6",
                                      "--", "--pes", "2", "--slower", "16", "--rate", "24000000", "--drift",
                                      "-40",
                                      "--start", str(2**32 - 6000000))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        trace, truth = files
        # A thread moves the simulated counter. Where that comes late, stamps are later than the counter, and
        # the library refuses and counts such records.
        lost = trace.sync.get("records", {}).get("lost_stamps", 0)
        self.assertEqual((trace.sync["spans"] + lost, trace.sync["ring_lost"]), (208 * 19, lost))
        self.assertLess(lost, 200)
        self.assertEqual(check_rate(trace, truth)[0], [])
        if not lost:
            self.assertEqual((len(trace.executions), check_counts(trace, truth)[0]), (208, []))
        spoilt, stood = left_out(trace, truth), "class" in trace.sync
        if not lost and not stood and spoilt < 0.1:
            self.assertEqual(check_inferences(trace, truth)[0], [])
        else:
            print(f"inferences not checked: {lost} records refused, stalls spoil {spoilt:.0%} of the spans"
                  f"{', the clock was found standing' if stood else ''}")
        first, second = ([e for e in trace.executions if e.args["pe_index"] == pe] for pe in (0, 1))
        self.assertTrue(any(overlap(a, b) for a in first for b in second), "PEs work at the same time")
        words = {span.args["start_ticks"] >> 32 for span in trace.device}
        self.assertEqual(words, {0, 1}, "the low word of the counter wraps inside the trace")

    def test_bad_input_says_one_sentence(self):
        for arguments, code, words in (
                (["--npusim", "/nonexistent/npusim"], 1, "cannot start /nonexistent/npusim"),
                (["--npusim", "/bin/false"], 1, "npusim did not start"),
                (["--truth", "/nonexistent/truth.txt"], 1, "/nonexistent/truth.txt"),
                (["--output", "/nonexistent/t.json", "--seconds", "0"], 1, "/nonexistent/t.json"),
                (["--images", "501"], 2, "--images")):
            result = self.digits(*arguments)
            self.assertEqual(result.returncode, code, arguments)
            self.assertIn(words, result.stderr)
            self.assertLessEqual(len(result.stderr.splitlines()), 2)

    def test_npusim_ends_with_its_runtime(self):
        process = subprocess.Popen([self.path / "digits", "--seconds", "30"], cwd=self.path,
                                   stdout=subprocess.DEVNULL)
        limit = time.monotonic() + 10
        started = []
        while not started and time.monotonic() < limit:
            time.sleep(0.02)
            started = children(process.pid)
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(len(started), 1)
        while runs(started[0]) and time.monotonic() < limit:
            time.sleep(0.02)
        self.assertFalse(runs(started[0]), "npusim still runs")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__)
        return 2
    trace, truth = Trace(arguments[0]), Truth(arguments[1])
    bad = 0
    for check in CHECKS:
        problems, measured = check(trace, truth)
        print(f"{'FAIL' if problems else 'ok'} {check.__name__}: {measured}")
        for problem in problems[:10]:
            print(f"    {problem}")
        bad += len(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
