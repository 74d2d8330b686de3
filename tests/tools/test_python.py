# test: time=200 - Python as its users have it: types (mypy), the example notebook without a screen, and
# columns for pandas and Arrow
# SPDX-License-Identifier: MIT
import json
import shutil
import sys
import unittest

import helpers
from helpers import ROOT, environment, run, scratch

DEBIAN = "/usr/bin/python3"
USER = """
import asyncio
import npuprof

@npuprof.scope("decode", "cpu", rows=3)
def decode(rows: int) -> str:
    return str(rows)

@npuprof.scope("fetch")
async def fetch() -> int:
    return 1

async def main() -> None:
    async with npuprof.scope("all") as s:
        s.set(got=await fetch())

def columns(trace: npuprof.Trace) -> list[str]:
    verdict: npuprof.Verdict = trace.verdict(wait=["all"])
    table: npuprof.Table = trace.tables["names"]
    return [trace.text(i) for i in range(len(trace)) if trace.dur[i] > 0] + [*table.columns, str(verdict)]

with npuprof.profile("t.json", format=npuprof.RecordFormat.ChromeTrace) as p, npuprof.reader() as r:
    asyncio.run(main())
    print(decode(3).upper(), [span.end_ns - span.start_ns for span in r.read()], p.stats()["recorded"])
    print(columns(p.load()))
"""


def needs(command, package):
    if not shutil.which(command):
        raise unittest.SkipTest(f"{command} is not installed (package {package})")


class Types(unittest.TestCase):
    def setUp(self):
        needs("mypy", "mypy")
        self.stubs = scratch() / "types"
        (self.stubs / "npuprof").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tools/npuprof/__init__.pyi", self.stubs / "npuprof")
        self.env = environment(MYPYPATH=str(self.stubs), PYTHONPATH=str(ROOT / "tools"))

    def mypy(self, text, code):
        (self.stubs / "user.py").write_text(text)
        return run([DEBIAN, "-m", "mypy", "--strict", "--cache-dir", scratch() / "cache",
                    self.stubs / "user.py"], code=code, env=self.env, cwd=self.stubs).stdout

    @helpers.thorough
    def test_user(self):
        """A program of a user is clean by `mypy --strict`, and its mistakes are found."""
        helpers.tool("libnpuprof.so")
        every = "".join(f"print(npuprof.{name})\n" for name in self.public())
        self.mypy(USER + every, 0)
        run([sys.executable, self.stubs / "user.py"], code=0, said="",
            env=environment(PYTHONPATH=str(ROOT / "tools")), cwd=scratch())
        mistakes = "npuprof.scope(3)", "npuprof.load('t').spam", "npuprof.counter('n', 'x')"
        wrong = self.mypy("\n".join(["import npuprof", *mistakes]), 1)
        self.assertEqual(wrong.count(": error:"), 3, wrong)

    def public(self):
        out = run([sys.executable, "-c", "import npuprof; print(*npuprof.__all__)"], code=0, env=self.env)
        return out.stdout.split()

    @helpers.thorough
    def test_types_are_those_of_the_module(self):
        """stubtest compares each name and parameter. Why the list: it knows no cached_property in a stub."""
        allowed = scratch() / "allowed"
        allowed.write_text("npuprof.Trace.(callers|parents|roots)\n")
        run([DEBIAN, "-m", "mypy.stubtest", "npuprof", "--ignore-missing-stub", "--concise", "--allowlist",
             allowed], code=0, env=self.env, cwd=self.stubs)


class Notebook(unittest.TestCase):
    @helpers.thorough
    def test_example(self):
        """examples/notebook.ipynb runs from top to bottom: trace, verdict, table, picture."""
        helpers.tool("libnpuprof.so")
        needs("jupyter-nbconvert", "jupyter-nbconvert")
        if run([DEBIAN, "-c", "import ipykernel"]).returncode:
            self.skipTest("ipykernel is not installed (package python3-ipykernel)")
        folder = scratch() / "tree" / "examples"
        folder.mkdir(parents=True)
        (folder.parent / "tools").symlink_to(ROOT / "tools")
        shutil.copy(ROOT / "examples/notebook.ipynb", folder)
        run([DEBIAN, shutil.which("jupyter-nbconvert"), "--to", "notebook", "--execute", "--output",
             "done.ipynb", folder / "notebook.ipynb"], code=0, env=environment(HOME=str(scratch())),
            cwd=folder)
        cells = json.loads((folder / "done.ipynb").read_text())["cells"]
        shown = [output["data"] for cell in cells for output in cell.get("outputs", ()) if "data" in output]
        self.assertEqual(len(shown), 4)
        trace, verdict, table = ("".join(data["text/html"]) for data in shown[:3])
        self.assertIn("60 spans", trace)
        self.assertIn("20 inferences", verdict)
        self.assertIn("<caption>Spans by name", table)
        self.assertIn("<td>decode</td>", table)
        self.assertEqual("".join(shown[3]["image/svg+xml"]).count("<rect"), 3)


class Columns(unittest.TestCase):
    def test_pandas_and_arrow(self):
        """The columns of trace.spans; without pyarrow one sentence says what to do."""
        helpers.tool("libnpuprof.so")
        code = """
import npuprof
with npuprof.profile() as p:
    with npuprof.scope("outer", "cpu", n=1):
        with npuprof.scope("inner"): pass
trace = p.load()
columns = trace.spans.columns()
assert (columns["name"], columns["parent"], columns["args"]) == (["outer", "inner"], [None, 0],
                                                                  [{"n": 1}, {}])
assert columns["error_ns"] == [0, 0] and columns["flags"] == ["", ""] and columns["source"] == [None, None]
import importlib.util
there = [name for name in ("pandas", "pyarrow") if importlib.util.find_spec(name)]
print(*there)
if "pandas" in there:
    frame = trace.spans.to_pandas()
    assert list(frame.columns) == list(columns) and list(frame["dur_ns"]) == list(trace.dur)
try:
    print(trace.spans.to_arrow().num_rows)
except npuprof.Refused as refused:
    print(refused)
"""
        out = run([DEBIAN, "-c", code], code=0, env=environment(PYTHONPATH=str(ROOT / "tools"))).stdout
        there, _, out = out.partition("\n")
        sentence = "to_arrow() needs pyarrow, which is not installed; columns() gives the same as lists\n"
        self.assertEqual(out, "2\n" if "pyarrow" in there else sentence)
        if "pandas" not in there:
            self.skipTest(f"pandas is not installed for {DEBIAN} (package python3-pandas)")


if __name__ == "__main__":
    unittest.main()
