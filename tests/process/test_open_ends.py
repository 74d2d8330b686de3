# spans that are open when the trace is written end then; after a kill no table adds them up unmarked
# SPDX-License-Identifier: MIT

import helpers
from helpers import environment, events

OPEN_US = 60_000


class OpenEnds(helpers.Folder):
    SOURCE = "open_ends.c"

    def check_open(self, path):
        """Both spans last as long as the program slept, and not longer than it lived."""
        for span in self.open_spans(path):
            self.assertGreaterEqual(span["dur"], OPEN_US, (path, span))

    def open_spans(self, path):
        """Both, which end no later than the program did, though another span ends much later."""
        trace = self.read(path)
        deadline, = events(trace, "X", "deadline")
        self.assertAlmostEqual(deadline["dur"], 1e9, 3)
        spans = [events(trace, "X", name)[0] for name in ("outer", "waiting")]
        for span in spans:
            self.assertIs(span["args"]["unfinished"], True)
            self.assertLess(span["dur"], 100 * OPEN_US, (path, span))
        return spans

    def test_dumped(self):
        for path in ("t.json", "t.npuprof"):
            self.assertEqual(self.start(path).returncode, 0)
            self.check_open(path)

    def test_at_exit(self):
        for path, more in (("t.json", {}), ("t.npuprof", {}), ("s.npuprof", {"NPUPROF_WHEN_FULL": "stream"})):
            self.assertEqual(self.start("exit", NPUPROF_OUTPUT_PATH=path, **more).returncode, 0)
            self.check_open(path)

    def test_mapped(self):
        self.start("exit", NPUPROF_ARENA_PATH="m.npuprof")
        self.check_open("m.npuprof")

    def test_csv(self):
        self.start("t.csv")
        rows = [line.split(",") for line in (self.folder / "t.csv").read_text().splitlines()]
        at = rows[0].index("dur")
        for row in rows[1:]:
            if not {'"done"', '"deadline"'} & set(row):
                self.assertGreaterEqual(int(row[at]), 1000 * OPEN_US, row)

    def test_killed(self):
        """No later moment is known than the last stamp: the tables say whose sums are a lower bound."""
        self.start("kill", NPUPROF_ARENA_PATH="k.npuprof")
        self.open_spans("k.npuprof")
        report = helpers.npuprof_py("report", "k.npuprof", "--table", "all", cwd=self.folder,
                                    env=environment())
        text = "at least so long, because spans were open when the recording ended: "
        self.assertIn(text + "outer, waiting\n", report.stdout)
        self.assertIn(text + "(none), c\n", report.stdout)
        self.assertIn("Open when it ended, for at least so long", report.stdout)
