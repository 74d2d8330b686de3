# npuprof.py: what a newcomer types gets one sentence that says what to do instead
# SPDX-License-Identifier: MIT
import json
import unittest

import helpers


def trace(name, *events):
    path = helpers.scratch() / name
    path.write_text(json.dumps({"traceEvents": [{"pid": 1, "tid": 1, **event} for event in events]}))
    return path


def spans(name, first):
    return trace(name, *({"ph": "X", "name": "step", "ts": 1000 * n, "dur": first + n} for n in range(20)))


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = [spans(f"{n}.json", 100 + 100 * (n > 1) + n) for n in range(4)]

    def test_runs_that_tell_nothing(self):
        for sides in ((self.runs[:1], self.runs[2:]), (self.runs[:2], self.runs[2:3])):
            self.assertIn("two or more runs a side", helpers.refused("diff", *sides[0], "--to", *sides[1]))

    def test_who_got_slower(self):
        """Several runs are not called by the name of the last."""
        done = helpers.npuprof_py("diff", *self.runs[:2], "--to", *self.runs[2:], "--fail-above", "5%",
                                  code=1)
        self.assertRegex(done.stdout, r"(?m)^2 runs after the change: step \(host\) is slower by ")

    def test_the_same_trace_twice(self):
        out = helpers.scratch() / "merged.json"
        self.assertIn("is given twice", helpers.refused("merge", *self.runs[:2], self.runs[0], "-o", out))
        self.assertFalse(out.exists())

    def test_a_span_that_is_not_there(self):
        self.assertIn("--wait stepp: there is no such span",
                      helpers.refused("report", self.runs[0], "--wait", "stepp"))
        helpers.npuprof_py("report", self.runs[0], "--wait", "step", code=0, said="")

    def test_operators_of_the_host(self):
        """The table is of devices, and names the one of the host."""
        done = helpers.npuprof_py("report", self.runs[0], "--table", "operators", code=0)
        self.assertRegex(done.stderr, r"^operators: .*--table external\n$")

    def test_a_trace_that_is_not_there(self):
        """Among several, too: what is missing is no damaged trace."""
        self.assertIn("no.json: cannot be read", helpers.refused("report", self.runs[0], "no.json"))

    def test_a_name_that_is_empty(self):
        """As of a variable that is not set."""
        for words in (("check", ""), ("view", ""), ("export", "", "--sqlite", "t.db"),
                      ("convert", "", "-o", "t.csv"), ("convert", self.runs[0], "-o", ""),
                      ("merge", "", "", "-o", "t.json")):
            self.assertIn("the name of a file is empty", helpers.refused(*words))

    def test_counters_alone(self):
        path = trace("counters.json", *({"ph": "C", "name": "queue", "ts": n, "args": {"value": n}}
                                        for n in range(3)))
        done = helpers.npuprof_py("report", path, code=0)
        self.assertIn("counters.json: no spans; 3 values of counters: `npuprof view` draws them", done.stdout)

    def test_empty_image(self):
        path = helpers.scratch() / "empty.npuprof"
        path.write_bytes(b"")
        self.assertIn("the file is empty",
                      helpers.refused("convert", path, "-o", helpers.scratch() / "e.json"))

    def test_form_without_extension(self):
        self.assertIn("becomes what has no extension",
                      helpers.refused("convert", self.runs[0], "-o", "/dev/full"))

    def test_list_of_commands(self):
        """What a command is for is a whole sentence."""
        text = " ".join(helpers.npuprof_py("--help", code=0).stdout.split())
        self.assertIn("what got slower or faster, and how certain that is. view", text)
        self.assertIn("or in the Common Trace Format. report", text)


if __name__ == "__main__":
    unittest.main()
