# npuprof.py merge: processes of one host by the clock since boot, hosts by their Unix clocks, refusals in
# words
# SPDX-License-Identifier: MIT
import json
import re
import unittest
from collections import namedtuple

import helpers
import npuprof
from npuprof.base import contract
from npuprof.merging import arrows
from npuprof.read.image import converter
from npuprof.tables.executions import npu_executions
from npuprof.tables.labelled import external_operators, inferences


def setUpModule():
    global A, B, IMAGE
    program = helpers.build("published.c", "published")
    A, B, IMAGE = (helpers.scratch() / name for name in ("a.json", "b.json", "b.npuprof"))
    for command in ([program, "edges", A], [program, "2", B, IMAGE]):
        helpers.run(command, code=0, env=helpers.environment())


def merge(*arguments, out="merged.json"):
    path = helpers.scratch() / out
    path.unlink(missing_ok=True)
    return helpers.npuprof_py("merge", *arguments, "-o", path), path


def changed(path, name, **changes):
    """A copy of a trace with other metadata; layout kept."""
    text = path.read_text(encoding="utf-8")
    about = helpers.load(path)["metadata"]["npuprof"]
    for key, value in changes.items():
        old = f'"{key}":{json.dumps(about[key], separators=(",", ":"))}'
        assert old in text, old
        text = text.replace(old, f'"{key}":{json.dumps(value, separators=(",", ":"))}')
    if "pid" in changes:
        text = re.sub(r'"pid":\d+', f'"pid":{changes["pid"]}', text)
    copy = helpers.scratch() / name
    copy.write_text(text, encoding="utf-8")
    return copy


def clock_error(path):
    clock = about(path)["clock"]
    return clock["error_ns"] + clock["drift_ns"]


def about(path):
    return helpers.load(path)["metadata"]["npuprof"]


class Merged(unittest.TestCase):
    def good(self, *arguments):
        done, path = merge(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        helpers.npuprof_py("check", path)
        return done.stdout, path

    def stamps(self, path, shift=0):
        """What every span, counter, instant and arrow says, moved by shift; without pids and arrow ids."""
        return sorted((e["ph"], round(e["ts"] * 1000) + shift, round(e.get("dur", 0) * 1000), e["name"],
                       e["tid"], str(e.get("args")))
                      for e in helpers.load(path)["traceEvents"] if e["ph"] != "M")

    def test_other_layouts(self):
        """The same trace as other tools lay it out merges to the same events."""
        document = helpers.load(A)
        lines = ",\n".join(json.dumps(event) for event in document["traceEvents"])
        turned = [dict(reversed(event.items())) for event in document["traceEvents"]]
        about = json.dumps(document["metadata"], separators=(",", ":"))
        tail = f'\n],\n"displayTimeUnit":"ns",\n"metadata":{about}}}\n'
        for name, text in (("spaced.json", '{"traceEvents":[\n' + lines + tail),
                           ("turned.json", json.dumps(document | {"traceEvents": turned})),
                           ("indented.json", json.dumps(document, indent=1))):
            with self.subTest(name=name):
                (helpers.scratch() / name).write_text(text, encoding="utf-8")
                _, path = self.good(helpers.scratch() / name)
                self.assertEqual(self.stamps(path), self.stamps(A))

    def test_one_host(self):
        said, path = self.good(A, B)
        a, b = about(A), about(B)
        later = b["start_boottime_ns"] - a["start_boottime_ns"]
        shifts = [process["shift_ns"] for process in about(path)["processes"]]
        self.assertEqual(shifts[1] - shifts[0], later)
        self.assertEqual(min(shifts), 0)
        self.assertEqual(self.stamps(path), sorted(self.stamps(A, shifts[0]) + self.stamps(B, shifts[1])))
        self.assertEqual(about(path)["start_unix_ns"], a["start_unix_ns"] + min(0, later))
        process = about(path)["processes"][1]
        self.assertEqual((process["aligned_by"], process["error_assumed"]), ("boottime", False))
        self.assertEqual(process["error_ns"], clock_error(A) + clock_error(B))
        self.assertIn("by boottime", said)

    def test_native_threads(self):
        """Tids are changed, the system's numbers of the threads are kept."""
        def natives(path):
            return sorted((e["pid"], e["args"]["native_id"])
                          for e in helpers.events(helpers.load(path), "M", "thread_name")
                          if "native_id" in e["args"])
        path = self.good(A, B)[1]
        self.assertEqual(natives(path), sorted(natives(A) + natives(B)))
        self.assertTrue(natives(path))
        loaded = npuprof.load(path)
        self.assertEqual(sorted((t.pid, t.native_id) for t in loaded.tracks if t.native_id), natives(path))

    def test_unix_clock_set_between(self):
        """The Unix clock moved by 0.4 s between two traces of one boot: the clock since boot knows."""
        b = changed(B, "set.json", start_unix_ns=about(B)["start_unix_ns"] + 400_000_000)
        _, path = self.good(A, b)
        shifts = [process["shift_ns"] for process in about(path)["processes"]]
        self.assertEqual(shifts[1] - shifts[0], about(B)["start_boottime_ns"] - about(A)["start_boottime_ns"])

    @helpers.thorough
    def test_two_hosts(self):
        b = changed(B, "host.json", host="node2", start_unix_ns=about(A)["start_unix_ns"] + 7_000_001,
                    start_boottime_ns=5_000_000_000)
        said, path = self.good(A, b)
        process = about(path)["processes"][1]
        self.assertEqual((process["shift_ns"], process["aligned_by"], process["error_assumed"]),
                         (7_000_001, "unix", True))
        anchors = clock_error(A) + clock_error(B)
        self.assertEqual(process["error_ns"], 20_000_000 + anchors)
        self.assertIn("assumed", said)
        said, path = self.good("--host-error", "1000", A, b)
        process = about(path)["processes"][1]
        self.assertEqual((process["error_ns"], process["error_assumed"]), (2000 + anchors, False))
        _, path = self.good(A, b, "--offset", f"{b}=-1000000")
        self.assertEqual(about(path)["processes"][1]["shift_ns"], 6_000_001)

    def test_hosts_without_a_name(self):
        """Two that name no host may be of two: that they booted at one time joins no clocks."""
        _, path = self.good(*(changed(one, f"none{n}.json", host="") for n, one in enumerate((A, B))))
        process = about(path)["processes"][1]
        self.assertEqual((process["aligned_by"], process["error_assumed"]), ("unix", True))

    def test_hosts_say_their_clock_error(self):
        a = changed(A, "said_a.json", user={"clock_error_ns": "300", "rank": "0"})
        b = changed(B, "said_b.json", host="node2", user={"clock_error_ns": "500", "rank": "1"})
        _, path = self.good(a, b)
        process = about(path)["processes"][1]
        self.assertEqual(process["error_ns"], 800 + clock_error(A) + clock_error(B))
        self.assertEqual([p["label"][:8] for p in about(path)["processes"]], ["rank 0: ", "rank 1: "])

    def test_same_pid_by_chance(self):
        for changes in ({"host": "node2"}, {"program": "another"}):
            b = changed(B, "pid.json", pid=about(A)["pid"], **changes)
            _, path = self.good(A, b, "--label", "one", "--label", "two")
            events = helpers.load(path)["traceEvents"]
            names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
            self.assertEqual(sorted(names.values()), ["one", "two"])
            self.assertEqual(len({e["pid"] for e in events}), 2)
            self.assertEqual([p["original_pid"] for p in about(path)["processes"]], [about(A)["pid"]] * 2)

    def test_two_traces_of_one_process(self):
        """They keep the pid, and no thread of one gets the spans of another."""
        b = changed(B, "again.json", pid=about(A)["pid"])
        _, path = self.good(A, b)
        events = helpers.load(path)["traceEvents"]
        self.assertEqual({e["pid"] for e in events}, {about(A)["pid"]})
        self.assertEqual(len([e for e in events if e["name"] == "process_name"]), 1)
        shift = max(e["tid"] for e in helpers.load(A)["traceEvents"])
        self.assertEqual([p["tid_shift"] for p in about(path)["processes"]], [0, shift])
        self.assertEqual({e["tid"] for e in events if e["ph"] == "X"},
                         {e["tid"] + by for trace, by in ((A, 0), (b, shift))
                          for e in helpers.load(trace)["traceEvents"] if e["ph"] == "X"})
        merged, parts = npuprof.load(path), [npuprof.load(A), npuprof.load(b)]
        kinds = lambda trace: sorted((t.kind, t.name, t.base - t.number) for t in trace.tracks)  # noqa: E731
        self.assertEqual(kinds(merged), sorted(kinds(parts[0]) + kinds(parts[1])))

    @helpers.thorough
    def test_the_rate_of_a_users_clock_is_in_the_error(self):
        """The clock runs by 500 ppm beside what NPUPROF_NOW_HZ says, 0.4 s long: the bound holds the 0.2
        ms."""
        helpers.build("wrong_rate.c", "wrong_rate")
        for name in ("r0", "r1"):
            helpers.run([helpers.scratch() / "wrong_rate", helpers.scratch() / f"{name}.json",
                         helpers.scratch() / f"{name}.npuprof"], code=0, env=helpers.environment())
        for ending in (".json", ".npuprof"):
            said, path = self.good(helpers.scratch() / f"r0{ending}", helpers.scratch() / f"r1{ending}")
            merged = about(path)
            for process in merged["processes"]:
                spans = [e for e in helpers.events(helpers.load(path), "X", "late")
                         if e["pid"] == process["pid"]]
                # Why the least of many: a thread may be preempted between the two readings.
                zero = merged["processes"][0]["start_boottime_ns"] - merged["processes"][0]["shift_ns"]
                wrong = min(round(e["ts"] * 1000) - (e["args"]["boottime_ns"] - zero) for e in spans)
                self.assertGreater(wrong, 150_000)
                self.assertLessEqual(wrong,
                                     process["clock"]["drift_ns"] + process["clock"]["error_ns"] + 10_000)
                self.assertLess(process["clock"]["drift_ns"], 100 * wrong)
            self.assertGreaterEqual(merged["processes"][1]["error_ns"], wrong)
            self.assertFalse(merged["processes"][1]["error_assumed"])

    def test_arrows_stay_apart(self):
        """The same file twice, as two processes: twice as many arrows, all ids different."""
        twin = changed(A, "twin.json", pid=about(A)["pid"] + 1)
        _, path = self.good(A, twin)
        begins = [e for e in helpers.load(path)["traceEvents"] if e["ph"] == "s"]
        self.assertEqual(len(begins), 2 * len(helpers.events(helpers.load(A), "s")))
        self.assertEqual(len({(e["name"], e["id"]) for e in begins}), len(begins))
        merged, single = npuprof.load(path), npuprof.load(A)
        self.assertEqual(len(merged.flows), 2 * len(single.flows))

    def test_arrows_between_processes(self):
        """Ends without a partner of their own process find it in another; what is left is counted."""
        program, parts = helpers.build("apart.c", "apart"), []
        for words in (("+1", "+2", "=3", "+4", "+4", "-6", "+7"), ("-1", "-3", "-4", "+6", "-9", "-1", "+7"),
                      ("+8", "-7")):
            parts.append(helpers.scratch() / f"apart{len(parts)}.npuprof")
            helpers.run([program, *words, parts[-1]], code=0, env=helpers.environment())
        said, path = self.good(*parts)
        self.assertIn("arrows between processes: 4 joined; 6 ends are without a partner in another process; "
                      "1 end is backwards in time by more than that error\n", said)
        trace, pids = npuprof.load(path), [about(part)["pid"] for part in map(self.json_of, parts)]
        ends = [tuple(pids.index(trace.tracks[track].pid) for track in (flow.from_track, flow.to_track))
                for flow in trace.flows]
        self.assertEqual(sorted(ends), [(0, 0), (0, 1), (0, 1), (0, 1), (1, 2)])
        for flow in trace.flows:
            source, target = (trace.text(trace.finder.at(*end)) for end in
                              ((flow.from_track, flow.from_ns), (flow.to_track, flow.to_ns)))
            self.assertEqual((source, target), ("sends", "gets"))
        # A clock that may be wrong by 10 s leaves more than one choice.
        said, _ = self.good(*parts, "--offset", f"{parts[1]}=0", "--host-error", "5000000000")
        self.assertIn("ambiguous within the error", said)
        said, _ = self.good(self.json_of(parts[0]), parts[1])
        self.assertIn(f"{self.json_of(parts[0])}: JSON has no arrows to other processes", said)

    def json_of(self, image):
        out = image.with_suffix(".json")
        helpers.run([converter(), image, "-o", out], code=0)
        return out

    def test_choice_of_an_out(self):
        """Joined only if the error leaves one choice; one that seems to go back by less is drawn at once."""
        Part = namedtuple("Part", "pid error lead how", defaults=(None, "unix"))
        a, b, c = Part(1, 0), Part(2, 10), Part(3, 10)

        def joined(outs, arrives, first=0, last=1000):
            found, by_part = arrows.Arrows((), 0), {}
            for part, ns in outs:
                by_part.setdefault(part, []).append(arrows.End(ns, ns - 5, ns + 5, part, 1))
            found.join(by_part, [arrows.End(arrives, first, last, b, 2)])
            return [(source[0], source[2], target[2]) for source, target in found.drawn], +found.why
        alone, ambiguous, back = ({why: 1} for why in (arrows.ALONE, arrows.AMBIGUOUS, arrows.BACKWARDS))
        for case, drawn, why in (
                (([(a, 100)], 200), [(1, 100, 200)], {}),
                (([(a, 100)], 97), [(1, 97, 97)], {}),             # moved within the span of the out
                (([(a, 100)], 92), [(1, 95, 95)], {}),             # and of the in
                (([(a, 100)], 92, 90, 93), [], back),              # which ends before that span begins
                (([(a, 100)], 89), [], back),
                (([(b, 100)], 200), [], {arrows.ALONE: 2}),        # of its own process: no partner
                (([], 200), [], alone),
                (([(a, 100), (a, 150)], 200), [(1, 150, 200)], alone),
                (([(a, 100), (a, 195)], 200), [], ambiguous),      # the second may come behind the in
                (([(a, 100), (c, 105)], 200), [], ambiguous),      # which is the newer one?
                (([(a, 100), (c, 115)], 200), [(3, 115, 200)], alone),
                (([(a, 100), (c, 185)], 200), [], ambiguous),      # errors of both: 20
                (([(a, 100), (c, 225)], 200), [(1, 100, 200)], alone)):
            with self.subTest(case=case):
                self.assertEqual(joined(*case), (drawn, why))

    def test_tables_of_the_merged(self):
        """All executions and operators of both are there."""
        _, path = self.good(A, B)
        merged, parts = npuprof.load(path), [npuprof.load(A), npuprof.load(B)]
        for table in (npu_executions, inferences, external_operators):
            self.assertEqual(sorted(table(merged)), sorted(row for part in parts for row in table(part)))
        self.assertEqual({t.pid for t in merged.tracks}, {about(A)["pid"], about(B)["pid"]})

    @helpers.thorough
    def test_layout_does_not_matter(self):
        """A reformatted trace gives the same as the writer's own lines."""
        loose = helpers.scratch() / "loose.json"
        loose.write_text(json.dumps(helpers.load(B), indent=2), encoding="utf-8")
        _, path = self.good(A, B)
        expected = self.stamps(path)
        _, path = self.good(A, loose)
        self.assertEqual(self.stamps(path), expected)
        for text in (json.dumps(helpers.load(B)), "\ufeff "
                     + json.dumps(helpers.load(B), separators=(",", ":")), "\n" + loose.read_text()):
            loose.write_text(text, encoding="utf-8")       # on one line, and behind a byte order mark
            _, path = self.good(A, loose)
            self.assertEqual(self.stamps(path), expected)

    def test_image(self):
        helpers.tool("npuprof-convert")
        _, path = self.good(A, B)
        expected = self.stamps(path)
        _, path = self.good(A, IMAGE)
        self.assertEqual(self.stamps(path), expected)


class Refused(unittest.TestCase):
    def refused(self, words, *arguments):
        path = helpers.scratch() / "refused.json"
        self.assertRegex(helpers.refused("merge", *arguments, "-o", path), words)
        self.assertFalse(path.exists())
        self.assertFalse(list(helpers.scratch().glob("*.tmp")))

    @helpers.thorough
    def test_in_words(self):
        other = helpers.scratch() / "other.json"
        other.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]}')
        self.refused("not a trace of npuprof", A, other)
        other.write_text(json.dumps(helpers.load(A)["traceEvents"]))
        self.refused("not a trace of npuprof: no metadata.npuprof .an array of events alone has none", A,
                     other)
        board = changed(B, "board.json", start_unix_ns=0)
        self.refused("no absolute base", A, board)
        _, path = merge(A, B)
        self.refused("merge its parts", A, path)
        cut = helpers.scratch() / "cut.json"
        cut.write_bytes(B.read_bytes()[:-40])
        self.refused("cut off", A, cut)
        table = helpers.scratch() / "table.csv"
        table.write_text(",".join(contract.COLUMNS) + "\n")
        self.refused("CSV", A, table)
        far = changed(B, "far.json", host="node2",
                      start_unix_ns=about(B)["start_unix_ns"] + 40 * 86400 * 10**9)
        self.refused("days apart", A, far)
        self.refused("one major version", A, changed(B, "older.json", version="0.9.0"))
        self.refused("use the tool of that version", A, changed(B, "newer.json", version="9.2.0"))
        self.refused("--offset", A, B, "--offset", "nowhere=5")
        self.refused("--label", A, "--label", "a", "--label", "b")
        self.refused("cannot be read", A, helpers.scratch() / "missing.json")

    def test_board_by_hand(self):
        """A board without a clock, placed by --offset."""
        board = changed(B, "board.json", start_unix_ns=0, host="")
        at = about(A)["start_unix_ns"] + 12345
        _, path = merge(A, board, "--offset", f"{board}={at}")
        self.assertEqual(about(path)["processes"][1]["shift_ns"], 12345)
