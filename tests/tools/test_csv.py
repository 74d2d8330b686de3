# what a CSV cannot say is not made up by who reads it: operators, device spans and devices, from the header's
# writer and from that of the tools
# SPDX-License-Identifier: MIT
import unittest

import helpers
from helpers import scratch
from npuprof import load
from npuprof.base.contract import DEVICE, OPERATOR, SPAN

PROGRAM = r"""
#include "npuprof.h"
#include "npuprof_npu.h"
static uint64_t counter(void *unused) { (void)unused; return (uint64_t)npuprof_now_ns(); }
int main(void)
{
    static npuprof_npu one, two;
    npuprof_npu_desc desc = { 0 };
    desc.read_ticks = counter;
    npuprof_start(1);
    desc.name = "one";
    npuprof_npu_open(&one, &desc);
    desc.name = "two";
    npuprof_npu_open(&two, &desc);
    const int64_t now = npuprof_now_ns();
    npuprof_span("mine", "own", "planned", now, now + 9,
                 PROF_ARGS(PROF_INT("pe_index", 3), PROF_INT("operator_index", 4)));
    { PROF_OPERATOR(7, "relu"); }
    { PROF_SCOPE_ARGS("own", "mine", PROF_ARGS(PROF_INT("operator_index", 900))); }
    WITH_NPU_PROFILER(&one, 0, "conv", "NPU", PROF_ARGS(PROF_INT("operator_index", 5)), {});
    WITH_NPU_PROFILER(&two, 0, "pool", "NPU", PROF_NO_ARGS, {});
    npuprof_npu_span(&two, 0, "job", "NPU", (uint64_t)now, (uint64_t)now + 1,
                     PROF_ARGS(PROF_INT("operator_index", 6)));
    npuprof_npu_close(&one);
    npuprof_npu_close(&two);
    npuprof_stop();
    return npuprof_dump("t.json") || npuprof_dump("t.csv");
}
"""
# (name, kind): operator_index, of the rows whose name or argument looks like another kind
WANTED = {("planned", SPAN): None, ("mine", SPAN): None, ("relu", OPERATOR): 7, ("conv", SPAN): None,
          ("conv", DEVICE): None, ("pool", SPAN): None, ("pool", DEVICE): None, ("job", DEVICE): 6}


def setUpModule():
    (scratch() / "csv.c").write_text(PROGRAM)
    helpers.run([helpers.build(scratch() / "csv.c", "csv")], code=0, env=helpers.environment(), cwd=scratch())
    helpers.npuprof_py("convert", "t.json", "-o", "tools.csv", cwd=scratch())


class Csv(unittest.TestCase):
    def test_arguments_named_as_columns(self):
        """The user's arguments make no operator, and no device span, of a row."""
        for name in ("t.csv", "tools.csv"):
            trace = load(scratch() / name)
            rows = {(row["name"], kind): row["operator_index"] for row, kind in zip(trace.rows(), trace.kind)}
            self.assertEqual(rows, WANTED, name)

    def test_byte_order_mark(self):
        """As a spreadsheet writes it."""
        data = (scratch() / "t.csv").read_bytes()
        for n, same in enumerate((data, data.replace(b"\n", b"\r\n"))):
            (scratch() / "marked.csv").write_bytes(b"\xef\xbb\xbf" + same)
            marked, plain = load(scratch() / "marked.csv"), load(scratch() / "t.csv")
            self.assertEqual([list(marked.rows()), marked.memory_peaks],
                             [list(plain.rows()), plain.memory_peaks], n)

    def test_two_devices(self):
        """They are one here, and who asks is told so; not where no device is."""
        for name in ("t.csv", "tools.csv"):
            trace = load(scratch() / name)
            self.assertEqual([track.name for track in trace.tracks if track.kind == "device"], ["PE 0"])
            for command in ("check", "report"):
                done = helpers.npuprof_py(command, scratch() / name)
                self.assertIn("a CSV does not name devices", " ".join(done.stdout.split()))
            helpers.npuprof_py("export", scratch() / name, "--sqlite", scratch() / "t.db")
            done = helpers.npuprof_py("check", scratch() / "t.db")
            self.assertIn("a CSV does not name devices", done.stdout)
            self.assertIn("a CSV does not say what was lost", done.stdout)
        rows = (scratch() / "t.csv").read_text().splitlines(keepends=True)
        (scratch() / "host.csv").write_text("".join(row for row in rows if ",,,0," not in row))
        self.assertEqual(load(scratch() / "host.csv").notes, [])


if __name__ == "__main__":
    unittest.main()
