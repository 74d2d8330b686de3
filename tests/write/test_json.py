# the JSON is strict whatever the names, holds its metadata, and equals the golden file
# SPDX-License-Identifier: MIT
import json
import os
import re
import socket
import sys
import unittest

import helpers
from helpers import ROOT, events, need, run, scratch

NAMES = [b"plain", b"quote\"quote", b"back\\slash", b"/slash/", b"\x01\x02\x1f\x7f control",
         b"tab\tnewline\nreturn\r", b"\b\f",
         "é ü 漢字 😀 \u2028 \ufeff".encode(), b"\xff", b"\xc3", b"a\xe2\x82z", b"\xed\xa0\x80 surrogate",
         b"\xc0\xaf overlong",
         b"\xf4\x90\x80\x80 above", b"\xf8\x88\x80\x80\x80 five", b"\x80 alone", b"", b" ", b"%s %n %d",
         b"\\u0041", b"</script>",
         b"]}]}", b"x" * 10240, "é".encode() * 5000, b"\xff" * 3000, b"\"" * 4000, b"\x01" * 4000,
         b"y" * 1023 + "é".encode(),
         b"y" * 1022 + "漢".encode(), b"y" * 1021 + "😀".encode()]
WHOLE = 1000     # bytes of a name that must be there at least


def as_text(name):
    """What a reader sees: one U+FFFD for a run of bad bytes."""
    return re.sub("\ufffd+", "\ufffd", name.decode("utf-8", "replace"))


class UserClock(unittest.TestCase):
    @helpers.thorough
    def test_any_rate(self):
        """The rate of a user's clock is the metadata's, and the stamps are finite, whatever it is."""
        for hz in (1, 999, 10**9, 2 * 10**16, 2**63 + 1, 2**64 - 1):
            program = scratch() / "rate.c"
            program.write_text('#include <stdint.h>\nstatic uint64_t n;\n#define NPUPROF_NOW() (++n)\n'
                               f'#define NPUPROF_NOW_HZ {hz}u\n#define NPUPROF_IMPLEMENTATION\n'
                               f'#include "npuprof.h"\n'
                               'int main(void) { npuprof_start(1); { PROF_SCOPE("a"); } return '
                               '(int)npuprof_dump("rate.json"); }\n')
            run([*helpers.CC, "-std=gnu11", f"-I{ROOT}", program, "-o", scratch() / "rate", "-pthread"],
                code=0)
            self.assertEqual(run([scratch() / "rate"], env=helpers.environment()).returncode, 0)
            text = (scratch() / "rate.json").read_text()
            self.assertIn(f'"hz":{hz}.000', text)
            (span,) = events(json.loads(text), "X")
            self.assertGreaterEqual(span["ts"], 0)
            self.assertGreaterEqual(span["dur"], 0)
            if hz == 1:                # a second each reading
                self.assertGreater(span["dur"], 0)
                self.assertEqual(span["dur"] % 1_000_000, 0)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = helpers.build("hostile.c", "hostile")
        (scratch() / "names").write_bytes(b"".join(name + b"\0" for name in NAMES))
        done = run([program, "names", "hostile.json"], code=0, env=helpers.environment())
        cls.lost = int(done.stdout)
        cls.path = scratch() / "hostile.json"
        cls.trace = json.loads(cls.path.read_bytes())

    def test_strict(self):
        helpers.load(self.path)
        self.assertEqual(self.lost, 0)

    def test_raw_bytes(self):
        data = self.path.read_bytes()
        self.assertFalse(re.search(rb"[\x00-\x09\x0b-\x1f]", data), "a raw control character")
        self.assertFalse(re.search(rb"\\u[dD][89a-fA-F]", data), "a surrogate escape")

    def test_names_come_back(self):
        found = {re.sub("\ufffd+", "\ufffd", e["name"]) for e in events(self.trace, "X")}
        for name in NAMES:
            text = as_text(name)
            with self.subTest(name=name[:20], length=len(name)):
                if len(name) < 1024:
                    self.assertIn(text, found)
                else:
                    self.assertTrue(any(f[:WHOLE // 4] == text[:WHOLE // 4] for f in found))

    def test_every_kind_is_there(self):
        for name in NAMES:
            if len(name) >= 1024:
                continue
            text = as_text(name)
            same = [e for e in events(self.trace, "X") if re.sub("\ufffd+", "\ufffd", e["name"]) == text]
            # record, inference, operator, block, by hand, async, finished
            self.assertGreaterEqual(len(same), 7, name)

    @helpers.thorough
    def test_arguments_come_back(self):
        found = {re.sub("\ufffd+", "\ufffd", e["args"]["s"]) for e in events(self.trace, "X", "argument")}
        for name in NAMES:
            if len(name) <= 1024:
                self.assertIn(as_text(name), found, name[:20])
            else:
                self.assertTrue(any(f[:WHOLE // 4] == as_text(name)[:WHOLE // 4] for f in found), name[:20])
        whole = {n.decode()[:100] for n in NAMES if "\ufffd" not in n.decode("utf-8", "replace")}
        for text in found:
            if text[:100] in whole:
                self.assertNotIn("\ufffd", text, "half a character at the cut")
            self.assertLessEqual(len(text.encode().replace("\ufffd".encode(), b"")), 1100)

    def test_thread_names(self):
        self.assertTrue(all(isinstance(e["args"]["name"], str)
                            for e in events(self.trace, "M", "thread_name")))

    def test_literal_keys(self):
        (keys,) = events(self.trace, "X", "keys")
        self.assertEqual(keys["args"], {"\"": 1, "\\": 2, "\x02": 3, "": 4})

    def test_jq(self):
        need("jq")
        done = run(["jq", "-e", ".traceEvents | length", self.path], code=0)
        self.assertEqual(int(done.stdout), len(self.trace["traceEvents"]))

    def test_checker(self):
        tool = ROOT / "tools" / "npuprof.py"
        run([sys.executable, tool, "check", self.path], code=0)


class Golden(unittest.TestCase):
    """The whole file on a fixed clock. After a wanted change: TEST_GOLDEN=write in the environment."""
    golden = helpers.TESTS / "golden" / "trace.json"

    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("golden.c", "golden")

    def write(self, name, **env):
        run([self.program, name], code=0, env=helpers.environment(**env))
        return scratch() / name

    def test_golden(self):
        text = helpers.normalised(self.write("golden.json"))
        if os.environ.get("TEST_GOLDEN") == "write":
            self.golden.parent.mkdir(exist_ok=True)
            self.golden.write_text(text, encoding="utf-8")
        self.assertEqual(text, self.golden.read_text(encoding="utf-8"))

    def test_structure(self):
        trace = helpers.load(self.write("structure.json"))
        by_name = {e["name"]: e for e in events(trace, "X")}
        self.assertEqual([e["dur"] for e in events(trace, "X", "Inference")], [1000.266, 1000.266])
        self.assertEqual(by_name["trace"]["dur"], 2001.597)
        self.assertEqual(by_name["kernel"]["args"], {"n": -5, "s": "a\"b", "x": 0.5})
        self.assertEqual(by_name["job"]["dur"], 0.05)
        self.assertEqual(by_name["copy"]["dur"], 0.03)
        self.assertEqual([list(e["args"].values()) for e in events(trace, "C")], [[0], [1]])
        for e in trace["traceEvents"]:
            self.assertIn("pid", e)
            if e["ph"] != "M":
                self.assertGreaterEqual(e["ts"], 0)
            self.assertTrue(1 <= e.get("tid", 1) <= 10, e)

    def test_three_decimals(self):
        text = self.write("decimals.json").read_text()
        times = re.findall(r'"(?:ts|dur)":\s*([^,}\s]+)', text)
        self.assertGreater(len(times), 20)
        for t in times:
            self.assertRegex(t, r"^\d+\.\d{3}$")

    def test_metadata(self):
        path = self.write("metadata.json")
        trace = helpers.load(path)
        own = trace["metadata"]["npuprof"]
        for key in ("version", "host", "pid", "start_unix_ns", "start_monotonic_ns", "clock", "lost"):
            self.assertIn(key, own)
        version = re.search(r'NPUPROF_VERSION_STRING "(.*)"', (ROOT / "npuprof.h").read_text()).group(1)
        self.assertEqual(own["version"], version)
        self.assertEqual(own["host"], socket.gethostname())
        self.assertEqual(own["pid"], events(trace, "X")[0]["pid"])
        self.assertEqual(own["clock"]["hz"], 1e9)
        self.assertTrue(own["clock"]["source"])
        self.assertTrue(all(isinstance(n, int) for n in own["lost"].values()))
        self.assertGreater(int(own["start_unix_ns"]), 1.6e18)

    @helpers.thorough
    def test_locale(self):
        """A decimal comma of the locale does not come into the numbers."""
        need("localedef")
        folder = scratch() / "locale"
        folder.mkdir(exist_ok=True)
        done = run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"])
        if not (folder / "de_DE.UTF-8" / "LC_NUMERIC").exists():
            self.skipTest("the locale de_DE cannot be made: " + done.stderr.strip().splitlines()[-1][:80])
        source = scratch() / "locale.c"
        source.write_text('#include <locale.h>\n#include "fake_clock.h"\n#include "npuprof.h"\n'
                          'int main(void) { if (!setlocale(LC_ALL, "de_DE.UTF-8") || '
                          '*localeconv()->decimal_point != \',\') return 77;\n'
                          'npuprof_start(1); { PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_REAL("x", 0.5))); '
                          'fake_ticks += 1500; }\n'
                          'PROF_COUNTER("n", 1.25); npuprof_print_summary(stdout); return '
                          '(int)npuprof_dump("locale.json"); }\n')
        program = helpers.build(source, "locale-program")
        done = run([program], env=helpers.environment(LOCPATH=str(folder)))
        if done.returncode == 77:
            self.skipTest("the C library does not take a locale from LOCPATH")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = helpers.load(scratch() / "locale.json")
        (span,) = events(trace, "X", "s")
        self.assertEqual((span["dur"], span["args"]["x"]), (1.5, 0.5))
        self.assertEqual(list(events(trace, "C")[0]["args"].values()), [1.25])

    @helpers.thorough
    def test_exceptions(self):
        """C++: an exception through every form ends the spans; nothing stays open."""
        need(helpers.CXX[0])
        program = scratch() / "exceptions"
        run([*helpers.CXX, "-std=c++11", "-O0", *helpers.WARNINGS, f"-I{ROOT}",
             helpers.PROGRAMS / "exceptions.cpp", "-o", program, "-pthread"], code=0, said="")
        run([program, "exceptions.json"], code=0, env=helpers.environment())
        trace = helpers.load(scratch() / "exceptions.json")
        names = sorted(e["name"] for e in events(trace, "X"))
        # As the compiler has it; clang puts a space before the &.
        names = [name.replace(" &)", "&)") for name in names]
        self.assertEqual(names, sorted(2 * ["around", "void leave(int, const std::string&)", "scope",
                                            "inference", "phase 1", "phase 2", "block", "caught"]
                                       + ["name 0", "name 1", "lambda"]))
        for e in events(trace, "X"):
            self.assertNotIn("unfinished", e.get("args", {}), e)
        self.assertEqual([e["args"]["reached"] for e in events(trace, "X", "block")], [0, 1])
        self.assertEqual([e["args"] for e in events(trace, "X", "caught")], [{"status": 0}, {"status": 1}])
        around, caught = events(trace, "X", "around"), events(trace, "X", "caught")
        for a, c in zip(around, caught):
            self.assertLessEqual(round((a["ts"] + a["dur"]) * 1000), round(c["ts"] * 1000))

    @helpers.thorough
    def test_every_macro(self):
        """The program with every macro of the compile matrix, run: strict, by the viewers' rules."""
        program = helpers.build("every_macro.c", "every_macro", "-DNPUPROF_IMPLEMENTATION")
        run([program, "every.json"], code=0, env=helpers.environment())
        helpers.load(scratch() / "every.json")
        helpers.npuprof_py("check", scratch() / "every.json")
