# npuprof.py merge: processes of one host by the clock since boot, hosts by their Unix clocks, refusals in words
# SPDX-License-Identifier: MIT
import json
import re
import sys
import unittest

import helpers

TOOL = helpers.ROOT / "tools" / "npuprof.py"
sys.path.insert(0, str(TOOL.parent))
import npuprof  # noqa: E402
import npuprof_load  # noqa: E402
import npuprof_report  # noqa: E402


def setUpModule():
    global A, B, IMAGE
    program = helpers.build("published.c", "published")
    A, B, IMAGE = (helpers.scratch() / name for name in ("a.json", "b.json", "b.npuprof"))
    for command in ([program, "edges", A], [program, "2", B, IMAGE]):
        done = helpers.run(command, env=helpers.environment())
        assert done.returncode == 0, done.stderr


def merge(*arguments, out="merged.json"):
    path = helpers.scratch() / out
    path.unlink(missing_ok=True)
    return helpers.run([sys.executable, TOOL, "merge", *arguments, "-o", path]), path


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


def about(path):
    return helpers.load(path)["metadata"]["npuprof"]


class Merged(unittest.TestCase):
    def good(self, *arguments):
        done, path = merge(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        check = helpers.run([sys.executable, TOOL, "check", path])
        self.assertEqual(check.returncode, 0, check.stdout)
        return done.stdout, path

    def stamps(self, path, shift=0):
        """What every span, counter, instant and arrow says, moved by shift; without pids and arrow ids."""
        return sorted((e["ph"], round(e["ts"] * 1000) + shift, round(e.get("dur", 0) * 1000), e["name"], e["tid"], str(e.get("args")))
                      for e in helpers.load(path)["traceEvents"] if e["ph"] != "M")

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
        self.assertEqual(process["error_ns"], a["clock"]["error_ns"] + b["clock"]["error_ns"])
        self.assertIn("by boottime", said)

    def test_unix_clock_set_between(self):
        """The Unix clock moved by 0.4 s between two traces of one boot: the clock since boot knows."""
        b = changed(B, "set.json", start_unix_ns=about(B)["start_unix_ns"] + 400_000_000)
        _, path = self.good(A, b)
        shifts = [process["shift_ns"] for process in about(path)["processes"]]
        self.assertEqual(shifts[1] - shifts[0], about(B)["start_boottime_ns"] - about(A)["start_boottime_ns"])

    def test_two_hosts(self):
        b = changed(B, "host.json", host="node2", start_unix_ns=about(A)["start_unix_ns"] + 7_000_001, start_boottime_ns=5_000_000_000)
        said, path = self.good(A, b)
        process = about(path)["processes"][1]
        self.assertEqual((process["shift_ns"], process["aligned_by"], process["error_assumed"]), (7_000_001, "unix", True))
        anchors = about(A)["clock"]["error_ns"] + about(B)["clock"]["error_ns"]
        self.assertEqual(process["error_ns"], 20_000_000 + anchors)
        self.assertIn("assumed", said)
        said, path = self.good("--host-error", "1000", A, b)
        process = about(path)["processes"][1]
        self.assertEqual((process["error_ns"], process["error_assumed"]), (2000 + anchors, False))
        _, path = self.good(A, b, "--offset", f"{b}=-1000000")
        self.assertEqual(about(path)["processes"][1]["shift_ns"], 6_000_001)

    def test_hosts_say_their_clock_error(self):
        a = changed(A, "said_a.json", user={"clock_error_ns": "300", "rank": "0"})
        b = changed(B, "said_b.json", host="node2", user={"clock_error_ns": "500", "rank": "1"})
        _, path = self.good(a, b)
        process = about(path)["processes"][1]
        self.assertEqual(process["error_ns"], 800 + about(A)["clock"]["error_ns"] + about(B)["clock"]["error_ns"])
        self.assertEqual([p["label"][:8] for p in about(path)["processes"]], ["rank 0: ", "rank 1: "])

    def test_same_pid(self):
        b = changed(B, "pid.json", pid=about(A)["pid"])
        _, path = self.good(A, b, "--label", "one", "--label", "two")
        events = helpers.load(path)["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(sorted(names.values()), ["one", "two"])
        self.assertEqual(len({e["pid"] for e in events}), 2)
        self.assertEqual([p["original_pid"] for p in about(path)["processes"]], [about(A)["pid"]] * 2)

    def test_arrows_stay_apart(self):
        """The same file twice, as two processes: twice as many arrows, all ids different."""
        twin = changed(A, "twin.json", pid=about(A)["pid"] + 1)
        _, path = self.good(A, twin)
        begins = [e for e in helpers.load(path)["traceEvents"] if e["ph"] == "s"]
        self.assertEqual(len(begins), 2 * len(helpers.events(helpers.load(A), "s")))
        self.assertEqual(len({(e["name"], e["id"]) for e in begins}), len(begins))
        merged, single = npuprof.load(path), npuprof.load(A)
        self.assertEqual(len(merged.flows), 2 * len(single.flows))

    def test_tables_of_the_merged(self):
        """All executions and operators of both are there."""
        _, path = self.good(A, B)
        merged, parts = npuprof.load(path), [npuprof.load(A), npuprof.load(B)]
        for table in (npuprof_report.npu_executions, npuprof_report.inferences, npuprof_report.external_operators):
            self.assertEqual(sorted(table(merged)), sorted(row for part in parts for row in table(part)))
        self.assertEqual({t.pid for t in merged.tracks}, {about(A)["pid"], about(B)["pid"]})

    def test_layout_does_not_matter(self):
        """A reformatted trace gives the same as the writer's own lines."""
        loose = helpers.scratch() / "loose.json"
        loose.write_text(json.dumps(helpers.load(B), indent=2), encoding="utf-8")
        _, path = self.good(A, B)
        expected = self.stamps(path)
        _, path = self.good(A, loose)
        self.assertEqual(self.stamps(path), expected)

    def test_image(self):
        if not npuprof_load.converter():
            self.skipTest("npuprof-convert is not built: make tools")
        _, path = self.good(A, B)
        expected = self.stamps(path)
        _, path = self.good(A, IMAGE)
        self.assertEqual(self.stamps(path), expected)


class Refused(unittest.TestCase):
    def refused(self, words, *arguments):
        done, path = merge(*arguments, out="refused.json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"^[^\n]*{words}[^\n]*\n$")
        self.assertFalse(path.exists())
        self.assertFalse(list(helpers.scratch().glob("*.tmp")))

    def test_in_words(self):
        other = helpers.scratch() / "other.json"
        other.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]}')
        self.refused("not a trace of npuprof", A, other)
        board = changed(B, "board.json", start_unix_ns=0)
        self.refused("no absolute base", A, board)
        _, path = merge(A, B)
        self.refused("merge its parts", A, path)
        cut = helpers.scratch() / "cut.json"
        cut.write_bytes(B.read_bytes()[:-40])
        self.refused("cut off", A, cut)
        table = helpers.scratch() / "table.csv"
        table.write_text(",".join(npuprof_load.COLUMNS) + "\n")
        self.refused("CSV", A, table)
        far = changed(B, "far.json", host="node2", start_unix_ns=about(B)["start_unix_ns"] + 40 * 86400 * 10**9)
        self.refused("days apart", A, far)
        self.refused("one version", A, changed(B, "older.json", version="0.0.9"))
        self.refused("use the tool of that version", A, changed(B, "newer.json", version="9.2.0"))
        self.refused("--offset", A, B, "--offset", "nowhere=5")
        self.refused("--label", A, "--label", "a", "--label", "b")
        self.refused("cannot be read", A, helpers.scratch() / "missing.json")

    def test_board_by_hand(self):
        """A board without a clock, placed by --offset."""
        board = changed(B, "board.json", start_unix_ns=0, host="")
        at = about(A)["start_unix_ns"] + 12345
        done, path = merge(A, board, "--offset", f"{board}={at}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(about(path)["processes"][1]["shift_ns"], 12345)


if __name__ == "__main__":
    unittest.main()
