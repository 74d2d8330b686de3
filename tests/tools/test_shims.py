# test: time=120 - examples/shims: programs written against NVTX, ITT and Tracy's C API are compiled with
# those headers instead, and recorded; what npuprof cannot hold is counted
# SPDX-License-Identifier: MIT
import collections
import functools
import re
import unittest

import helpers
from helpers import environment, events, load, run, scratch

SHIMS = helpers.ROOT / "examples" / "shims"
INCLUDE = [f"-I{helpers.ROOT}", f"-I{SHIMS}", f"-I{SHIMS / 'include'}"]
KEY = "npuprof.collect.not_held."


@functools.cache
def compiled(source, language, *flags):
    """The object of a C file: npuprof_shims.c, which holds the library, is that of several programs."""
    target = scratch() / f"{source.stem}-{language}{''.join(flags)}.o"
    compiler = [*helpers.CXX, "-x", "c++", "-std=c++17"] if language == "c++" else [*helpers.CC, "-std=c99"]
    run([*compiler, *helpers.WARNINGS, "-O0", *flags, *INCLUDE, "-c", source, "-o", target], code=0)
    return target


def built(name, *flags, language="c"):
    """The program, with npuprof_shims.c, which has Tracy's half in each."""
    program, shims = scratch() / f"{name}-{language}", ["-DTRACY_ENABLE", *flags]
    run([*(helpers.CXX if language == "c++" else helpers.CC), "-o", program, "-pthread",
         compiled(helpers.PROGRAMS / f"{name}.c", language, *flags),
         compiled(SHIMS / "npuprof_shims.c", language, *dict.fromkeys(shims))], code=0)
    return program


def recorded(program, printed=""):
    path = scratch() / "t.json"
    path.unlink(missing_ok=True)
    run([program], code=0, said="", printed=printed, env=environment(NPUPROF_OUTPUT_PATH=str(path)))
    return load(path)


def user(trace):
    return trace["metadata"]["npuprof"]["user"]


def not_held(trace):
    return {key.removeprefix(KEY): int(n) for key, n in user(trace).items() if key.startswith(KEY)}


def seen(trace, phase):
    """(category, name, arguments) of all events of a phase, as often as they are there."""
    return collections.Counter((e.get("cat"), e["name"], str(e.get("args", {})))
                               for e in events(trace, phase) if not e["name"].startswith("npuprof"))


def counted(*known):
    return collections.Counter((category, name, str(args)) for category, name, args in known)


class Shims(unittest.TestCase):
    def test_nvtx(self):
        for language in ("c", "c++"):
            trace = recorded(built("shim_nvtx", language=language))
            self.assertEqual(seen(trace, "X"), counted(
                (None, "lives in the caller", {}),
                ("lib", "payload", {"category": 4, "payload": str(2**64 - 1)}),
                (None, "payload", {"category": 4, "payload": -9}), (None, "(no message)", {"category": 4}),
                ("lib", "registered", {}), ("lib", "registered", {"out_of_order": True}),
                ("w\u00fc", "registered", {"out_of_order": True}), (None, "started", {})))
            self.assertEqual(seen(trace, "i"), counted(("lib", "registered", {}), (None, "wide \u20ac", {})))
            self.assertEqual(not_held(trace), {"nvtx.object": 1, "nvtx.order": 2, "nvtx.payload": 2,
                                               "nvtx.thread": 1})
            self.assertEqual((user(trace)["nvtx.category.4"], user(trace)["nvtx.category.lib.4"]),
                             ("kernels", "its kernels"))

    @helpers.thorough
    def test_itt(self):
        for language in ("c", "c++"):
            trace = recorded(built("shim_itt", language=language))
            (outer,) = [e for e in events(trace, "X", "task") if "id.extra" in e.get("args", {})]
            self.assertEqual([outer["args"][key] for key in ("id.extra", "key", "task", "whole")],
                             [7, -5, "a text", "to its 0"])
            (inner,) = [e for e in events(trace, "X", "key") if "metadata" in e.get("args", {})]
            self.assertEqual((inner["args"]["key"], inner["args"]["metadata"]), (-5, "3 of four"))
            names = collections.Counter((e["cat"], e["name"]) for e in events(trace, "X"))
            self.assertEqual(names, {("d", "task"): 2, ("d", "key"): 2, ("ITT frame", "d"): 2,
                                     ("ITT event", "event"): 1})
            self.assertIn(3.0, [e["dur"] for e in events(trace, "X", "d")])
            self.assertEqual(seen(trace, "i"), counted(("d", "task", {"scope": 4})))
            values = collections.defaultdict(list)
            for event in events(trace, "C"):
                values[event["name"]].append(event["args"]["value"])
            self.assertEqual(values, {"of domain: plain": [3, 2], "depth": [3], "real": [2.5],
                                      "d: key": [-1]})
            self.assertEqual(not_held(trace), {"itt.mark": 1, "itt.metadata": 2, "itt.parent": 1,
                                               "itt.relation": 1, "itt.sync": 2})

    def test_tracy(self):
        for language in ("c", "c++"):
            program = built("shim_tracy", "-DTRACY_ENABLE", language=language)
            trace = recorded(program, printed="1\n")
            self.assertEqual(seen(trace, "X"), counted(
                (None, "outer", {"text": "a text", "value": 9}), (None, "zones", {"name": "later"}),
                (None, "zones", {"name": "later"}), ("Tracy frame", "physics", {}),
                (None, "by function", {})))
            self.assertEqual(seen(trace, "i"), counted(
                ("Tracy frame", "frame", {}), ("Tracy frame", "view", {}),
                ("Tracy", "message", {"text": "ready"}), ("Tracy", "message", {"text": "in colour"})))
            self.assertEqual([(e["name"], e["args"]["value"]) for e in events(trace, "C")],
                             [("load", 0.5), ("depth", -3)])
            self.assertEqual(not_held(trace), {"tracy.lock": 2, "tracy.memory": 2, "tracy.order": 1})
            self.assertEqual(user(trace)["tracy.app_info"], "version 3")

    @helpers.thorough
    def test_tracy_without_its_switch(self):
        """As in Tracy: all macros are there, and nothing is recorded."""
        text = (helpers.PROGRAMS / "shim_tracy.c").read_text()
        path = scratch() / "off.c"
        path.write_text(text.replace("TracyCLockCtx lock;", "").replace("int memory", "static int memory"))
        program = scratch() / "off"
        run([*helpers.CC, "-std=c99", *INCLUDE, path, SHIMS / "npuprof_shims.c", "-o", program, "-pthread"],
            code=0)
        trace = recorded(program, printed="0\n")
        self.assertEqual((seen(trace, "X"), seen(trace, "i")), ({}, {}))

    @helpers.thorough
    def test_the_implementation_may_be_elsewhere(self):
        """A program that has npuprof.h's code already, and a build without it."""
        own = scratch() / "own.c"
        own.write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')
        program = scratch() / "elsewhere"
        run([*helpers.CC, *INCLUDE, "-DNPUPROF_SHIMS_ONLY", helpers.PROGRAMS / "shim_nvtx.c", own,
             SHIMS / "npuprof_shims.c", "-o", program, "-pthread"], code=0)
        self.assertEqual(len(events(recorded(program), "X", "started")), 1)
        off = built("shim_nvtx", "-DNPUPROF_OFF")
        path = scratch() / "off.json"
        run([off], code=0, env=environment(NPUPROF_OUTPUT_PATH=str(path)))
        self.assertFalse(path.exists())

    def test_each_header_is_short(self):
        for path in SHIMS.glob("*.h"):
            self.assertLessEqual(len(path.read_text().splitlines()), 200, path.name)

    def test_what_is_counted_is_named(self):
        """The head of each header names all that it counts."""
        code = "".join(path.read_text() for path in SHIMS.glob("*.[ch]"))
        found = re.findall(r'not_held\("(\w+)\.(\w+)"', code)
        found += [("tracy", what) for what in re.findall(r'TRACY_LOST\("(\w+)"', code)]
        self.assertGreater(len(found), 40)
        for api, what in found:
            head = (SHIMS / f"npuprof_{api}.h").read_text().split("#ifndef")[0]
            self.assertRegex(head, rf"\b{what}\b")


if __name__ == "__main__":
    unittest.main()
