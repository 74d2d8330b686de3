# test: time=240 - npuprof.py with input it cannot use: one line that names the file, exit code 2, no output;
# --help of every command
# SPDX-License-Identifier: MIT
import contextlib
import gzip
import io
import json
import pathlib
import random
import re
import unittest

import helpers
from helpers import ROOT, scratch
from npuprof import cli
from npuprof.base.messages import HARMFUL

COLUMNS = ("trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,execution_index,"
           "instruction_index,operator_index,dur")
ROW = "0" * 31 + "1,," + "0" * 15 + "1,5,9,,a,1,,,,,,4"

# command -> its arguments around the broken file; GOOD is a trace that can be used.
COMMANDS = {
    "check": ["check", "BROKEN"],
    "report": ["report", "BROKEN"],
    "report --html": ["report", "BROKEN", "--html", "OUT.html"],
    "report --csv": ["report", "BROKEN", "--csv", "OUT.csv"],
    "convert to csv": ["convert", "BROKEN", "-o", "OUT.csv"],
    "convert to json": ["convert", "BROKEN", "-o", "OUT.json"],
    "convert to otlp": ["convert", "BROKEN", "-o", "OUT.otlp.json"],
    "merge": ["merge", "GOOD", "BROKEN", "-o", "OUT.json"],
    "diff, before": ["diff", "BROKEN", "GOOD"],
    "diff, after": ["diff", "GOOD", "BROKEN"],
    "view": ["view", "BROKEN"],
    "gen": ["gen", "BROKEN", "-o", "OUT.h"],
}


def setUpModule():
    global GOOD, BROKEN
    helpers.tool("npuprof-convert")
    program = helpers.build("published.c", "published")
    GOOD, table, image = (scratch() / name for name in ("good.json", "good.csv", "good.npuprof"))
    helpers.run([program, "edges", GOOD, table, image], code=0, env=helpers.environment())
    text, rows, raw = GOOD.read_bytes(), table.read_bytes(), image.read_bytes()
    second = text.index(b"\n", len(text) // 2)
    version = re.search(rb'"version":"[^"]*"', text)[0]
    # name: (ending, bytes, commands that can use it)
    everything = {
        "json cut off": (".json", text[:len(text) // 2], ()),
        "json cut off before its end": (".json", text[:-2], ()),
        "json cut at a line": (".json", text[:second + 1], ()),
        "json with a broken number": (".json", re.sub(rb'("ph":"X".*?"ts":)\d+', rb'\1 0.0', text, count=1),
                                      ()),
        "json with a time that is none": (".json", re.sub(rb'("ph":"X".*?"ts":)[\d.]+', rb'\1"soon"', text,
                                                          count=1), ("check", "view")),
        "json with a time out of all bounds": (".json",
                                               re.sub(rb'("ph":"X".*?"ts":)[\d.]+', rb'\g<1>1e999999999',
                                                      text, count=1), ("check",)),
        "json with a counter out of all bounds": (".json",
                                                  re.sub(rb'("ph":"C".*?"args":\{"[a-z]+":)[\d.]+',
                                                         rb'\g<1>1e999999999', text, count=1),
                                                         ("check", "merge")),
        "json with a counter of 5000 digits": (".json",
                                               re.sub(rb'("ph":"C".*?"args":\{"[a-z]+":)[\d.]+',
                                                      rb'\g<1>' + b"9" * 5000, text, count=1), ()),
        "json with losses that are none": (".json", re.sub(rb'"lost":\{[^}]*\}', b'"lost":["many"]', text),
                                           ("check",)),
        "json with a clock that is none": (".json", re.sub(rb'"error_ns":\d+', b'"error_ns":"x"', text),
                                           ("check",)),
        "json of something else": (".json", b'{"name":"package","version":"1.0.0"}', ()),
        "json list of numbers": (".json", b"[1, 2, 3]", ()),
        "json text": (".json", b'"traceEvents"', ()),
        "json of a newer version": (".json", text.replace(version, b'"version":"9.2.0"'), ("check",)),
        "json in utf-16": (".json", text.decode().encode("utf-16"), ()),
        "json with invalid utf-8": (".json", text.replace(b'"name":"Inference"', b'"name":"Inf\xff"', 1), ()),
        "json with data behind the end": (".json", text + text, ()),
        "csv cut off": (".csv", rows[:len(rows) - 9], ()),
        "csv without a column": (".csv", rows.replace(b",dur", b"", 1), ()),
        "csv with a cell too few": (".csv", f"{COLUMNS}\n{ROW}\n{ROW[:-2]}\n".encode(), ()),
        "csv with a word for a number": (".csv", f"{COLUMNS}\n{ROW}\n{ROW[:-1]}four\n".encode(), ()),
        "csv with a number out of 64 bits": (".csv", f"{COLUMNS}\n{ROW}\n{ROW[:-1]}{10**30}\n".encode(), ()),
        "csv with times that overflow": (".csv", (f"{COLUMNS}\n{ROW}\n{ROW}\n"
                                                  .replace(",5,9,", f",{2**63 - 9},{2**63 - 5},")
                                                  .replace(",4\n", f",{2**63 - 1}\n")).encode(), ()),
        "csv of something else": (".csv", b"date,price\n2020-01-01,5\n", ()),
        "empty": (".json", b"", ()),
        "empty csv": (".csv", b"", ()),
        "empty image": (".npuprof", b"", ()),
        "a blank line": (".json", b"\n", ()),
        "words": (".txt", b"perf: no trace here\n", ()),
        "binary": (".npuprof", bytes(range(256)) * 40, ()),
        "binary without zeros": (".bin", bytes(range(128, 256)) * 40, ()),
        "image of another version": (".npuprof", raw[:8] + bytes(b ^ 0x55 for b in raw[8:16]) + raw[16:], ()),
        "image of a few bytes": (".npuprof", raw[:40], ()),
        "gzip that was cut": (".json.gz", gzip.compress(text)[:-9], ()),
        "missing": (".json", None, ()),
        "a folder": (".json", "folder", ()),
        "unreadable": (".json", "unreadable", ()),
        # What other programs write is a trace for those that need no clock of npuprof.
        "another tool's": (".json", b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2.5}]',
                           tuple(c for c in COMMANDS if c not in ("merge", "gen"))),
        "another tool's, nothing in it": (".json", b'{"traceEvents":[]}', ("check", "view")),
    }
    BROKEN = {}
    for name, (ending, data, usable) in everything.items():
        path = scratch() / (re.sub(r"\W+", "_", name) + ending)
        if data == "folder":
            path.mkdir()
        elif data == "unreadable":
            path = pathlib.Path("/proc/self/mem")     # opens, and fails at the first read, for root too
        elif data is not None:
            path.write_bytes(data)
        BROKEN[name] = path, usable


class Broken(unittest.TestCase):
    def one(self, command, name):
        """None, or what is wrong with the answer."""
        path, _ = BROKEN[name]
        out = scratch() / f"{command} {name}".replace("/", "_")
        words = [{"BROKEN": str(path), "GOOD": str(GOOD)}.get(w, w.replace("OUT", str(out)))
                 for w in COMMANDS[command]]
        printed, said = io.StringIO(), io.StringIO()
        # Why in this process: four hundred interpreters take a minute. An exception that is no refusal would
        # be a traceback.
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            try:
                code = cli.main(words)
            except Exception as error:
                code = f"{type(error).__name__}: {error}"
        printed, said = printed.getvalue(), said.getvalue()
        if code != 2 or said.count("\n") != 1 or str(path) not in said or printed:
            return f"{command} of {name}: exit code {code}: {(printed[:200] + said)[-400:]!r}"
        left = [p.name for p in scratch().iterdir() if p.name.startswith(out.name)]
        if left:
            return f"{command} of {name}: leaves {left}"
        # Where in the file: a line or a byte, unless it cannot be read, or is not of the kind that is needed.
        if not re.search(r"byte \d|event \d|metadata.npuprof.\w|:\d+:|cannot be read|No such file|Is a "
                         r"directory|Input/output|only an image|written by npuprof|no metadata.npuprof|"
                         r"holds no trace|is for one trace|the file is empty",
                         said):
            return f"{command} of {name}: names no place: {said!r}"
        return None

    def all_of(self, command):
        names = [name for name in BROKEN if command not in BROKEN[name][1]]
        bad = [answer for name in names if (answer := self.one(command, name))]
        self.assertEqual(bad, [], "\n".join(bad))
        self.assertGreater(len(names), 25)

    @helpers.thorough
    def test_as_a_program(self):
        for command, words in COMMANDS.items():
            words = [{"BROKEN": BROKEN["json cut off"][0], "GOOD": GOOD}.get(w, w) for w in words]
            helpers.refused(*words)


class Mutated(unittest.TestCase):
    """Seeded damage to a trace of each form: an answer, or one line and exit code 2; never anything else,
    never what a terminal obeys."""
    VALUES = [b"1e999999999", b"-1e309", b"1e-999999999", b"null", b"true", b"[]", b"{}", b'"x"', b"-1",
              b"9" * 30, b"9" * 5000, b"18446744073709551616",
              b"NaN", b'"\xc2\x9b2J\xe2\x80\xae\\u001b[2J"', b'{"a":[1]}', b'"1e999999999"', b'"C"', b'"M"',
              b'"E"']
    CELLS = [b"", b"-", b"9" * 19, b"9" * 5000, b"-9223372036854775808", b'"', b"x", b"\xff", b"\0", b"1.5",
             b"\xd9\xa3", b'"\xc2\x9b2J"']
    TOKEN = re.compile(rb'"(?:\\.|[^"\\])*"(?!:)|-?\d+(?:\.\d+)?|true|false|null|\{\}|\[\]')

    def mutants(self, count):
        chance = random.Random(12)
        lines = (ROOT / "tests" / "golden" / "kinds.json").read_bytes()
        lines = re.sub(rb'"start_(unix|boottime)_ns":0', rb'"start_\1_ns":1700000000000000000', lines)
        value = json.loads(lines)
        forms = [lines, json.dumps(value).encode(), json.dumps(value["traceEvents"]).encode()]
        table = (ROOT / "tests" / "golden" / "kinds.csv").read_bytes().split(b"\n")
        for n in range(count):
            if n % 4 == 3:
                rows = list(table)
                row = chance.randrange(len(rows) - 1)
                cells = rows[row].split(b",")
                cells[chance.randrange(len(cells))] = chance.choice(self.CELLS)
                rows[row] = b",".join(cells)
                yield "mutant.csv", b"\n".join(rows)
                continue
            data = forms[n % 4]
            for _ in range(chance.choice((1, 1, 3))):
                tokens = list(self.TOKEN.finditer(data))
                about = [t for t in tokens if t.start() > data.find(b'"metadata"')]
                token = chance.choice(about if chance.random() < 0.3 and about else tokens)
                data = data[:token.start()] + chance.choice(self.VALUES) + data[token.end():]
            yield "mutant.json", data

    def answer(self, words):
        """(exit code, what was written to the terminal): one line of refusal for 2, and no exception."""
        printed, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = cli.main([str(word) for word in words])
        for text in (printed.getvalue(), said.getvalue()):
            self.assertFalse(set(map(ord, text)) & HARMFUL, (words, text[:300]))
        if code == 2:
            self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())
        return code, printed.getvalue() + said.getvalue()

    @helpers.thorough
    def test_every_command(self):
        refused = 0
        for name, data in self.mutants(60):
            path = scratch() / name
            path.write_bytes(data)
            commands = [["report", path], ["report", path, "--html", scratch() / "m.html"],
                        ["convert", path, "-o", scratch() / "m.otlp.json"],
                        ["convert", path, "-o", scratch() / "m.speedscope.json"], ["diff", GOOD, path]]
            commands += [["check", path],
                         ["merge", GOOD, path, "-o", scratch() / "m.json"]] if name.endswith("json") else []
            for words in commands:
                with self.subTest(words=words[0], data=data[-700:]):
                    code, _ = self.answer(words)
                    self.assertIn(code, (0, 1, 2))
                    refused += code == 2
        self.assertGreater(refused, 50)

    def test_texts_are_harmless_on_a_terminal(self):
        evil = "\x9b2J\u202etxt\u2066\x1b]0;x\x07\x85\u2028"
        (scratch() / "e.json").write_text(json.dumps({"traceEvents": [{"ph": "X", "name": evil, "cat": evil,
                                                                       "pid": -1, "tid": 1, "ts": 1,
                                                                       "dur": 2}]}))
        (scratch() / f"{evil}.json".replace("/", "")).write_text("{")
        (scratch() / "e.svd").write_text(f"<device><name>d</name><width>32</width><peripherals><peripheral>"
                                         f"<name>P\u202e\x9b</name><baseAddress>{chr(0x9b)}"
                                         "</baseAddress></peripheral></peripherals></device>")
        (scratch() / "e.toml").write_text('[device]\nname = "\u202e\u009b"\n')
        said = []
        for words, code in ((["report", scratch() / "e.json"], 0), (["check", scratch() / "e.json"], 1),
                            (["diff", scratch() / "e.json", scratch() / "e.json"], 0),
                            (["report", scratch() / f"{evil}.json"], 2),
                            (["gen", scratch() / "e.svd", "-o", scratch() / "e.h"], 2),
                            (["gen", scratch() / "e.toml", "-o", scratch() / "e.h"], 2),
                            (["merge", GOOD, scratch() / "e.json", "-o", scratch() / "m.json"], 2)):
            found, text = self.answer(words)
            self.assertEqual(found, code, text)
            said.append(text)
        self.assertIn("?2J?txt", said[0])


for command_ in COMMANDS:
    setattr(Broken, "test_" + re.sub(r"\W+", "_", command_), lambda self,
            command=command_: self.all_of(command))


class Outputs(unittest.TestCase):
    """Nothing is written over an input, under whatever name, nor under a name that says another form."""

    def refused(self, words, about, path):
        before = path.read_bytes() if path.exists() else None
        self.assertIn(about, helpers.refused(*words) if words[0] in cli.COMMANDS
                      else helpers.run(words, code=2, printed="").stderr)
        self.assertEqual(path.read_bytes() if path.exists() else None, before, words)

    @helpers.thorough
    def test_not_over_an_input(self):
        folder = scratch() / "inputs"
        folder.mkdir()
        for name in ("a.toml", "b.h", "c.html", "d.csv", "e.json", "f.npuprof", "g.h"):
            (folder / name).write_bytes(GOOD.read_bytes() if name[0] in "cde" else b"x")
        (folder / "f.npuprof").write_bytes((scratch() / "good.npuprof").read_bytes())
        (folder / "b.h").write_text('[device]\nname = "d"\nbar_bytes = 4\n')
        (folder / "a.toml").write_text('[device]\nname = "d"\nsvd = "g.h"\n')
        (folder / "g.h").write_text("<device><name>d</name><width>32</width><peripherals><peripheral>"
                                    "<name>P</name><baseAddress>0</baseAddress><registers><register>"
                                    "<name>R</name>"
                                    "<addressOffset>0</addressOffset></register></registers></peripheral>"
                                    "</peripherals></device>")
        (folder / "link.json").symlink_to(folder / "e.json")
        (folder / "link.npuprof").hardlink_to(folder / "f.npuprof")
        for command, *words in (["gen", "b.h", "-o", "b.h"], ["gen", "a.toml", "-o", "g.h"],
                                ["report", "c.html", "--html", "c.html"],
                                ["report", "d.csv", "--csv", "./d.csv"],
                                ["merge", str(GOOD), "e.json", "-o", "link.json"],
                                ["merge", "e.json", str(GOOD), "-o", "e.json"],
                                ["convert", "f.npuprof", "-o", "link.npuprof"],
                                ["convert", "link.json", "-o", "e.json"],
                                [ROOT / "build" / "npuprof-convert", "f.npuprof", "-o", "link.npuprof"]):
            words = [str(folder / word) if (folder / word).exists() else word for word in words]
            with self.subTest(command=command, words=words):
                self.refused([command, *words], "input", pathlib.Path(words[-1]))

    @helpers.thorough
    def test_not_under_another_forms_name(self):
        (scratch() / "d.toml").write_text('[device]\nname = "d"\nbar_bytes = 4\n')
        for words in (["gen", "d.toml", "-o", "d.pftrace"], ["gen", "d.toml", "-o", "d"],
                      ["report", "good.json", "--html", "d.csv"],
                      ["report", "good.json", "--csv", "d.xlsx"], ["merge", "good.json", "-o", "d.gz"],
                      ["merge", "good.json", "-o", "d.npuprof"],
                      ["convert", "good.json", "-o", "d.perfetto"],
                      ["convert", "good.npuprof", "-o", "d.gz"]):
            with self.subTest(words=words):
                self.refused(words, "unknown extension", scratch() / words[-1])


class Help(unittest.TestCase):
    @helpers.thorough
    def test_every_command_says_its_exit_codes(self):
        done = helpers.npuprof_py("--help")
        for command in ("gen", "check", "convert", "report", "merge", "diff", "view"):
            self.assertRegex(done.stdout, rf"(?m)^ +{command} ")
            said = helpers.npuprof_py(command, "--help", said="")
            self.assertRegex(said.stdout, r"Exit code 0", command)
            self.assertRegex(said.stdout, r"\b2: ", command)

    @helpers.thorough
    def test_wrong_usage(self):
        for arguments in ([], ["nonsense"], ["report"], ["convert", "a.json"], ["merge"], ["diff", "a.json"],
                          ["report", "a.json", "--nonsense"]):
            said = helpers.npuprof_py(*arguments, code=2, printed="").stderr
            self.assertRegex(said, r"^(npuprof|usage: npuprof)\b[^\n]*\n$")
