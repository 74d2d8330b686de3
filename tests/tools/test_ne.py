# test: time=240 - npuprof.py report --csv: the Neural Engine sheet cell by cell, recalculated by LibreOffice
# SPDX-License-Identifier: MIT
import csv
import io
import json
import shutil
import unittest

import helpers
import npuprof


def setUpModule():
    global TRACE
    TRACE = helpers.scratch() / "neural.json"
    helpers.run([helpers.build("neural.c", "neural"), TRACE], code=0, env=helpers.environment())


def sheet(*options, trace=None):
    """The written CSV's text and rows."""
    path = helpers.scratch() / "sheet.csv"
    helpers.npuprof_py("report", trace or TRACE, "--csv", path, *options, printed="", said="")
    text = path.read_bytes().decode()
    return text, list(csv.reader(io.StringIO(text, newline="")))


def cells(rows):
    """{"A1": text} of all that is not empty."""
    return {f"{chr(65 + c)}{r + 1}": value for r, row in enumerate(rows) for c, value in enumerate(row)
            if value != ""}


def hand_made(spans):
    """A trace of such (name, ns, arguments), one behind the other."""
    path, at, events = helpers.scratch() / "hand.json", 0, []
    for name, ns, args in spans:
        events.append({"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": at / 1000, "dur": ns / 1000,
                       "args": args})
        at += max(ns, 1)          # of two that begin at once, the longer one is first
    path.write_text(json.dumps({"traceEvents": events}))
    return path


class Layout(unittest.TestCase):
    def test_cells(self):
        cell = cells(sheet()[1])
        self.assertEqual([cell[f"{c}1"] for c in "ABCDE"],
                         ["weight shape", "90% 4x1 perf ratio", "80% 4x1 perf ratio", "70% 4x1 perf ratio",
                          "others"])
        self.assertEqual([[cell[f"{c}{r}"] for c in "ABCDE"] for r in (2, 3)],
                         [["256x256", "4", "4", "4", "1"], ["1024x256", "4", "4", "4", "1"]])
        self.assertEqual([cell[f"{chr(65 + c)}4"] for c in range(16)], [
            "operator type", "post op", "operator name", "input tensor name", "input shape", "input dtype",
            "output tensor name", "output shape",
            "output dtype", "weight shape", "weight sparse ratio", "sparse support", "operator latency (ms)",
            "aim to weight sparse ratio",
            "sparse kernel pref ratio", "aim to sparse latency(ms)"])
        self.assertEqual([cell.get(f"{c}6", "") for c in "ABCDEFGHIJKLMN"], [
            "InnerProduct", "gelu_tanh", "Add_37", "116:0;641:0;bias:0", "1024x256;256x256;256",
            "fp32;fp32;fp32", "Add_37:0", "1024x256", "fp32",
            "256x256", "0.00%", "true", "0.075000", "90%"])
        self.assertEqual([cell.get(f"{c}9", "") for c in "ACJLMNOP"],
                         ["Softmax", 'Soft;"max"', "", "", "0.385000", "", "", "=M9"])
        self.assertEqual([cell[f"M{r}"] for r in range(5, 10)],
                         ["1.000000", "0.075000", "0.002000", "3.050000", "0.385000"])
        self.assertEqual(cell["C8"], "'=Add_284", "a name is no formula")
        self.assertEqual(cell["P6"], "=IF(O6>0,M6/O6,M6)")
        for column, place in (("B", "0.9"), ("C", "0.8"), ("D", "0.7")):
            self.assertRegex(cell["O6"], rf"N6={place},[^)]*\),{column}2")
            self.assertRegex(cell["O8"], rf"N8={place},[^)]*\),{column}3")
        self.assertEqual({c: cell[c] for c in ("L10", "O10", "Q10", "L11", "O11", "L12", "O12")}, {
            "L10": "total latency(ms)", "O10": "total aim to sparse latency(ms)", "Q10": "sparse improve",
            "L11": "sparse support latency(ms)",
            "O11": "aim to sparse support latency(ms)", "L12": "sparse support latency ratio",
            "O12": "aim to sparse support latency ratio"})
        self.assertEqual(cell["M12"], "=M11/(M10+0.000001)")
        self.assertEqual(cell["R10"], "=IF(P10>0,M10/P10,1)")
        self.assertIn("mean of 2 spans", cell["A13"])

    def test_options(self):
        cell = cells(sheet("--aim", "70%", "--ratio", "256x256=4,2.5,2", "--ratio",
                           "1024x256=5,3.5,3,1.5")[1])
        self.assertEqual([[cell[f"{c}{r}"] for c in "BCDE"] for r in (2, 3)],
                         [["4", "2.5", "2", "1"], ["5", "3.5", "3", "1.5"]])
        self.assertEqual(cell["N6"], "70%")

    def test_refusals(self):
        for options, words in ((["--ratio", "256x256=4,0,2"], "--ratio"),
                               (["--ratio", "7x7=4,3,2"], "weight of 7x7"),
                               (["--aim", "50%"], "unknown word: did you mean 90% or 80%?")):
            done = helpers.npuprof_py("report", TRACE, "--csv", helpers.scratch() / "no.csv", *options,
                                      code=2)
            self.assertIn(words, done.stderr)
        self.assertFalse((helpers.scratch() / "no.csv").exists())

    def test_trace_without_keys_gives_its_device_operators(self):
        path = helpers.scratch() / "published.json"
        helpers.run([helpers.build("published.c", "published"), "2", path], env=helpers.environment())
        cell = cells(sheet(trace=path)[1])
        found = {cell[f"C{r}"]: cell[f"M{r}"] for r in range(3, 10)}
        self.assertEqual(found["LowLevelConv2d"], "0.005328")
        self.assertEqual(found["LowLevelReshape"], "0.000002")
        self.assertEqual(len(found), 7)

    def test_texts_and_ratios_that_are_none(self):
        """Only texts are texts, only 0 to 1 is a ratio; line breaks and quotes stay in their cell."""
        path = hand_made([("a\rb,\"", 1, {"ne.type": "x\ny", "ne.post_op": 5, "ne.sparse_ratio": 0.00005}),
                          ("no", 1, {"ne.type": 5}),
                          ("c", 1, {"ne.type": "+1", "ne.sparse_ratio": 2})])
        text, rows = sheet(trace=path)
        self.assertIn('"x\ny",,"a\rb,""",', text)
        self.assertEqual([row[10] for row in rows[2:4]], ["0.01%", ""])
        self.assertEqual(rows[3][0], "'+1")
        self.assertIn("total latency(ms)", rows[4])


class Levels(unittest.TestCase):
    def test_model_iteration_operator_on_the_real_timeline(self):
        """Three levels by nesting, with real stamps: an iteration is longer than its operators, and they do
        not start at 0."""
        trace = npuprof.load(TRACE)
        above = {}
        for i in range(len(trace)):
            parent = trace.parents[i]
            above.setdefault(trace.text(i), []).append(trace.text(parent) if parent >= 0 else "")
        self.assertEqual(above["model_inference"], [""])
        self.assertEqual(above["Iteration1"] + above["Iteration2"], ["model_inference"] * 2)
        self.assertEqual(above["Add_37"], ["Iteration0", "Iteration1", "Iteration2"])
        first = next(i for i in range(len(trace)) if trace.text(i) == "Iteration1")
        inside = [i for i in range(len(trace)) if trace.parents[i] == first]
        self.assertEqual(trace.dur[first], sum(trace.dur[i] for i in inside) + 20)
        self.assertEqual(trace.start[inside[0]], trace.start[first] + 10)
        self.assertEqual(trace.args(inside[1])["ne.attributes"], "append_op:sum;src1_perm:1,0")


class Recalculated(unittest.TestCase):
    """What a spreadsheet makes of it."""

    def calculated(self, text):
        if not shutil.which("soffice"):
            self.skipTest("soffice is not installed (package libreoffice-calc)")
        folder = helpers.scratch() / "office"
        folder.mkdir(exist_ok=True)
        (folder / "in.csv").write_text(text, encoding="utf-8")
        # Separator ; quote ; UTF-8 ; from line 1 ; ... ; special numbers ; ... ; formulas are formulas.
        for source, kind, options in (("in.csv", "xlsx:Calc MS Excel 2007 XML",
                                       ["--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,-1,true"]),
                                      ("in.xlsx", "csv", [])):
            helpers.run(["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile",
                         "--convert-to", kind, *options, "--outdir", folder, folder / source], code=0,
                        env=helpers.environment(HOME=str(folder)))
        return cells(csv.reader(io.StringIO((folder / "in.csv").read_text(encoding="utf-8"))))

    def check(self, cell, latency, ratio):
        """latency, ratio: by row of the operator; ratio None: not sparse."""
        for r, ms in latency.items():
            aimed = ms / ratio[r] if ratio[r] else ms
            self.assertAlmostEqual(float(cell[f"P{r}"]), aimed, places=9)
            self.assertEqual(float(cell[f"O{r}"]) if f"O{r}" in cell else None, ratio[r])
        dense, sparse = sum(latency.values()), sum(ms for r, ms in latency.items() if ratio[r])
        aimed = sum(ms / (ratio[r] or 1) for r, ms in latency.items())
        aimed_sparse = sum(ms / ratio[r] for r, ms in latency.items() if ratio[r])
        expected = {"M10": dense, "P10": aimed, "R10": dense / aimed, "M11": sparse, "P11": aimed_sparse,
                    "M12": sparse / (dense + 1e-6),
                    "P12": aimed_sparse / aimed}
        for place, value in expected.items():
            self.assertAlmostEqual(float(cell[place]), value, places=9, msg=place)
        return cell

    LATENCY = {5: 1.0, 6: 0.075, 7: 0.002, 8: 3.05, 9: 0.385}

    @helpers.thorough
    def test_as_written(self):
        self.check(self.calculated(sheet()[0]), self.LATENCY, {5: None, 6: 4, 7: 4, 8: 4, 9: None})

    @helpers.thorough
    def test_nothing_is_divided_by_zero(self):
        """Operators of 0 ns, and a ratio that someone deleted."""
        path = hand_made([(name, ns, {"ne.type": "Matmul", "ne.weight_shape": "4x4",
                                      "ne.sparse_support": True}) for name, ns in (("a", 0), ("b", 2))])
        text, rows = sheet(trace=path)
        for value, ns in (("", 2), ("4", 0)):
            rows[1][1], rows[4][12] = value, f"{ns / 1e6:.6f}"
            cell = self.calculated("".join(",".join(f'"{c.replace(chr(34), 2 * chr(34))}"' for c in row)
                                           + "\n" for row in rows))
            self.assertFalse([value for value in cell.values() if value.startswith("#")], cell)
            self.assertEqual([float(cell[c]) for c in ("P6", "R6", "P8")], [ns / 1e6, 1, 0])

    @helpers.thorough
    def test_edited(self):
        """The published what-if: 70 % of a 256x256 weight at ratio 2 makes 0.0375 ms of 0.075 ms."""
        text, rows = sheet("--ratio", "256x256=4,2.5,2")
        rows[5][13] = rows[6][13] = "70%"
        rows[7][13] = "80%"
        rows[2][2] = "4"              # the ratio of 80 % of 1024x256
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        cell = self.check(self.calculated(out.getvalue()), self.LATENCY, {5: None, 6: 2, 7: 2, 8: 4, 9: None})
        self.assertEqual(float(cell["P6"]), 0.0375)
        # The published totals: 4.512, 3.127, 0.801; 0.693 and 0.366 (cut); 2.185 and 2.065 up to the rounding
        # of their parts.
        self.assertEqual([round(float(cell[c]), 3) for c in ("M10", "M11", "P11")], [4.512, 3.127, 0.801])
        self.assertEqual(int(float(cell["M12"]) * 1000), 693)
        self.assertEqual(int(float(cell["P12"]) * 1000), 366)
        self.assertAlmostEqual(float(cell["P10"]), 2.185, delta=0.0015)
        self.assertAlmostEqual(float(cell["R10"]), 2.065, delta=0.0015)


class OfTheLibrary(unittest.TestCase):
    """NPUPROF_OUTPUT_PATH=d/ writes the sheet that report --csv makes of the trace, byte for byte."""

    def written(self, program, *arguments):
        folder = helpers.scratch() / "library"
        shutil.rmtree(folder, ignore_errors=True)
        helpers.run([program, *arguments], code=0, said="",
                    env=helpers.environment(NPUPROF_OUTPUT_PATH=f"{folder}/"))
        (trace,) = (folder / "profiling_trace").iterdir()
        return trace, sorted(folder.glob("profiling_sheet/*"))

    def test_same_bytes(self):
        for program, *arguments in ((helpers.build("neural.c", "neural"),),
                                    (helpers.build("operators.c", "operators", "-Wno-clobbered"),)):
            trace, sheets = self.written(program, *arguments)
            self.assertEqual([path.stem for path in sheets], [trace.stem])
            text, _ = sheet(trace=trace)
            self.assertEqual(sheets[0].read_bytes().decode().splitlines(), text.splitlines())
            self.assertEqual(sheets[0].read_bytes(), text.encode())

    @helpers.thorough
    def test_no_operators(self):
        program = helpers.build("operators.c", "operators", "-Wno-clobbered")
        for how in ("none", "warm"):
            self.assertEqual(self.written(program, how)[1], [])

    @helpers.thorough
    def test_little_scratch(self):
        """More operators than it has room for: the last row says so."""
        program = helpers.build("operators.c", "little", "-Wno-clobbered", "-Wno-cpp", "-Wno-pedantic",
                                "-DNPUPROF_SCRATCH_BYTES=4096")
        _, sheets = self.written(program)
        self.assertRegex(sheets[0].read_text(errors="replace").splitlines()[-1],
                         r"^\d+ spans of further operators are left out: NPUPROF_SCRATCH_BYTES")
