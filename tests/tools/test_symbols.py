# names of functions from ELF files: where they may be, what does not fit, hostile files, all tools
# SPDX-License-Identifier: MIT
import functools
import json
import os
import pathlib
import random
import re
import shutil
import unittest

import auto_traces
import helpers
import pftrace
from auto_traces import build_id, must, names, split
from helpers import CC, CXX, run, scratch

BASE = 0x7F1234560000
LIBRARY = """
namespace deep { struct Net { int run(int, const char *); template <class T> T one(T); };
template <class T> T Net::one(T t) { return t * 2; }
int Net::run(int a, const char *) { return a + one(3) + (int)one(2.5); }
long double operator"" _wide(long double d) { return d; } }
static int hidden(int a) { return a - 1; }
extern "C" int plain(int a) { deep::Net n; return n.run(hidden(a), ""); }
"""
NAMES = {"deep::Net::run(int, char const*)", "int deep::Net::one<int>(int)", "hidden(int)", "plain",
         "double deep::Net::one<double>(double)", 'deep::operator"" _wide(long double)'}


@functools.cache
def library():
    """A shared library as the compiler leaves it."""
    helpers.need("nm")
    (scratch() / "lib.cpp").write_text(LIBRARY)
    must([*CXX, "-O0", "-g", "-fPIC", "-shared", "-Wl,--build-id", "lib.cpp", "-o", "libdeep.so"])
    return scratch() / "libdeep.so"


@functools.cache
def functions(module, *options):
    """Address in the file -> name in the file, of the functions of a module."""
    lines = [line.split() for line in must(["nm", "--defined-only", *options, module]).splitlines()]
    return {int(line[0], 16): line[2] for line in lines
            if line[1] in "tTwW" and line[2].startswith(("_ZN", "_ZL", "plain", "begin", "leaf"))}


def module(path, build, base=BASE, size=0x10000):
    return {"path": str(path), "build_id": build, "bias": hex(base), "start": hex(base),
            "end": hex(base + size)}


def trace(name, addresses, modules, repeat=1):
    """A trace as the library writes it, with a span at each address."""
    lines = ['{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"p"}}']
    lines += [f'{{"ph":"X","name":"0x{address:x}","cat":"auto","pid":1,"tid":1,"ts":{n}.000,"dur":0.500}}'
              for n, address in enumerate(list(addresses) * repeat)]
    lines.append('{"ph":"X","name":"0x1","cat":"mine","pid":1,"tid":1,"ts":9000000.000,"dur":0.500,'
                 '"args":{"text":"\\"name\\":\\"0x7f1234561000\\",\\"cat\\":\\"auto\\""}}')
    about = {"version": "0.1.0", "start_unix_ns": 10**18, "start_boottime_ns": 10**9, "pid": 1, "host": "h",
             "program": "p", "clock": {"source": "monotonic", "hz": 10**9, "error_ns": 1}, "lost": {},
             "user": {}, "devices": [], "modules": modules}
    path = scratch() / name
    path.write_text('{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n"displayTimeUnit":"ns",\n"metadata":'
                    + json.dumps({"npuprof": about}, separators=(",", ":")) + "}\n")
    return path


def spans(path):
    return [event["name"] for event in helpers.load(path)["traceEvents"] if event.get("cat") == "auto"]


def converted(path, *options, tool=None, code=0, **variables):
    """Names that npuprof-convert gives the spans, and what it says."""
    target = scratch() / "named.json"
    target.unlink(missing_ok=True)
    done = run([tool or helpers.tool("npuprof-convert"), path, "-o", target, *options], code=code,
               env=helpers.environment(**variables))
    return spans(target), done.stderr


class Files(unittest.TestCase):
    """Where names come from."""

    def setUp(self):
        self.folder = auto_traces.copied(scratch(), "module")
        self.module = pathlib.Path(shutil.copy(library(), self.folder))
        self.build = build_id(library())
        self.addresses = [BASE + address for address in functions(library())]
        self.trace = trace("t.json", self.addresses, [module(self.module, self.build)])

    def names_are(self, *options, said=r"^$"):
        names, text = converted(self.trace, *options)
        self.assertEqual(set(names), NAMES)
        self.assertRegex(text, said)

    def only_offsets(self, said, *options):
        names, text = converted(self.trace, *options)
        self.assertEqual(names, [f"libdeep.so+{address - BASE:#x}" for address in self.addresses])
        self.assertRegex(text, r"^npuprof-convert: names of functions: \S+libdeep\.so: [^\n]*" + said
                         + r"[^\n]*\n$")

    def test_in_the_module(self):
        self.names_are()

    def test_exported_names_are_left(self):
        debug = self.folder / "away.debug"
        split(self.module, debug)
        names, text = converted(self.trace)
        hidden, = (address for address, name in functions(library()).items() if "hidden" in name)
        self.assertEqual(set(names), NAMES - {"hidden(int)"} | {f"libdeep.so+{hidden:#x}"})
        self.assertIn("it exports no names for 1 of its functions", text)
        self.names_are("--symbols", debug)

    def test_debug_file_by_build_id(self):
        split(self.module, self.folder / "d" / ".build-id" / self.build[:2] / f"{self.build[2:]}.debug")
        self.names_are("--debug-dir", self.folder / "d")
        self.module.unlink()
        self.names_are("--debug-dir", scratch(), "--debug-dir", self.folder / "d")

    def test_module_in_a_folder(self):
        self.module.rename(self.folder / "elsewhere")
        self.only_offsets("it cannot be read")
        (self.folder / "d").mkdir()
        (self.folder / "elsewhere").rename(self.folder / "d" / "libdeep.so")
        self.names_are("--debug-dir", self.folder / "d")
        below = self.folder / "root" / str(self.module)[1:]
        below.parent.mkdir(parents=True)
        (self.folder / "d" / "libdeep.so").rename(below)
        self.names_are("--debug-dir", self.folder / "root")

    def test_debug_link(self):
        debug = self.folder / "libdeep.debug"
        split(self.module, debug)
        must(["objcopy", f"--add-gnu-debuglink={debug}", self.module])
        self.names_are()
        for place in (".debug", f"d{self.folder}", "flat"):
            moved = self.folder / place / "libdeep.debug"
            moved.parent.mkdir(parents=True, exist_ok=True)
            debug.rename(moved)
            debug = moved
            self.names_are("--debug-dir", self.folder / place.partition("/")[0])
        data = bytearray(debug.read_bytes())
        data[-1] ^= 1
        debug.write_bytes(data)
        names, _ = converted(self.trace, "--debug-dir", self.folder / "flat")
        self.assertEqual(NAMES - set(names), {"hidden(int)"})

    def test_another_build(self):
        self.trace = trace("t.json", self.addresses, [module(self.module, "00" * 20)])
        self.only_offsets("is another build than the one that ran")
        self.only_offsets("is another build than the one that ran", "--symbols", library())

    def test_no_elf_file(self):
        self.module.write_bytes(b"#!/bin/sh\n" * 20)
        self.only_offsets("it is no ELF file")

    def test_a_huge_file_is_not_read(self):
        os.truncate(self.module, 0)
        os.truncate(self.module, 1 << 42)
        self.only_offsets("it is no ELF file")

    def test_a_fifo_is_no_module(self):
        self.module.unlink()
        os.mkfifo(self.module)
        self.only_offsets("it cannot be read")

    def test_without_build_id(self):
        self.trace = trace("t.json", self.addresses, [module(self.module, "")])
        self.names_are(said="has no build id")

    def test_without_filter(self):
        names, _ = converted(self.trace, PATH="/nowhere")
        self.assertEqual(set(names), set(functions(library()).values()))

    def test_one_after_the_other(self):
        """Two modules at one place: a plugin was closed, and another came to where it had been."""
        other = self.folder / "other.so"
        (self.folder / "o.c").write_text(Machines.SOURCE)
        must([*CC, "-g", "-fPIC", "-shared", "-Wl,--build-id", self.folder / "o.c", "-o", other])
        mine = [BASE + address for address in functions(other)]
        both = [module(self.module, self.build), module(other, build_id(other))]
        path = trace("two.json", mine + self.addresses, both)
        names, _ = converted(path)
        self.assertEqual(set(names[:2]), {"leaf", "begin"})
        apart = [name for name, at in zip(names[2:], self.addresses) if at not in mine]
        self.assertLessEqual(set(apart), NAMES)

    def test_outside_of_all_modules(self):
        path = trace("t.json", [0x1000, BASE + 0x10000, 2**64 - 1], [module(self.module, self.build)])
        self.assertEqual(converted(path), (["0x1000", "0x7f1234570000", "0xffffffffffffffff"], ""))

    def test_long_trace(self):
        """The same wherever a piece of the file ends; what is no name of a function stays."""
        repeat = 12_000
        path = trace("long.json", self.addresses, [module(self.module, self.build)], repeat)
        self.assertGreater(path.stat().st_size, 5 << 20)
        names, _ = converted(path)
        self.assertEqual(names[:6] * repeat, names)
        self.assertEqual(set(names), NAMES)
        event, = (e for e in helpers.load(scratch() / "named.json")["traceEvents"] if e.get("cat") == "mine")
        self.assertEqual(event["name"], "0x1")
        self.assertEqual(event["args"]["text"], '"name":"0x7f1234561000","cat":"auto"')

    def test_cut_off(self):
        text = self.trace.read_text()
        self.trace.write_text(text[:text.index("displayTimeUnit")])
        done = run([helpers.tool("npuprof-convert"), self.trace, "-o", scratch() / "named.json"], code=2)
        self.assertIn("ends too early", done.stderr)


class Tools(unittest.TestCase):
    """Names in all that the tools write."""

    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        addresses = [BASE + address for address in functions(library())]
        cls.trace = trace("tools.json", addresses, [module(library(), build_id(library()))])

    def tool(self, *arguments):
        done = helpers.npuprof_py(*arguments, said="")
        return done.stdout

    @helpers.thorough
    def test_each(self):
        folder = auto_traces.copied(scratch(), "outputs")
        self.tool("convert", self.trace, "-o", folder / "t.csv")
        self.tool("convert", self.trace, "-o", folder / "t.pftrace")
        self.tool("convert", self.trace, "-o", folder / "t.json")
        self.tool("merge", self.trace, "-o", folder / "merged.json")
        self.tool("report", self.trace, "--json", folder / "report.json", "--html", folder / "report.html",
                  "--annotate", folder / "annotated.json")
        self.tool("export", self.trace, "--sqlite", folder / "t.db")
        slices = pftrace.read((folder / "t.pftrace").read_bytes()).slices
        self.assertEqual({own.name for own in slices} - {"0x1"}, NAMES)
        for name in ("t.csv", "t.json", "merged.json", "report.html", "annotated.json", "t.db"):
            text = (folder / name).read_bytes()
            self.assertIn(b"deep::Net::run(int, char const*)", text, name)

    def test_without_the_file(self):
        trace("lost.json", [BASE + 0x1100], [module("/nowhere/libdeep.so", "ab" * 20)])
        done = helpers.npuprof_py("report", "lost.json")
        self.assertRegex(done.stderr, r"^warning: names of functions: /nowhere/libdeep\.so: it cannot be "
                                      r"read, [^\n]*\n$")
        done = helpers.npuprof_py("convert", "lost.json", "-o", "x.json", "--symbols", library())
        self.assertEqual(spans(scratch() / "x.json"), ["libdeep.so+0x1100"])


@helpers.thorough
class Machines(unittest.TestCase):
    """Both sizes and both byte orders; Thumb code, whose addresses are odd."""

    SOURCE = "int leaf(int a) { return a; }\nint begin(int a) { return leaf(a); }\n"

    def module_of(self, name, compiler, *flags):
        helpers.need(compiler)
        (scratch() / "machine.c").write_text(self.SOURCE)
        must([compiler, *flags, "-fPIC", "-shared", "-nostdlib", "-Wl,--build-id", "machine.c", "-o", name])
        return scratch() / name

    def check(self, name, compiler, *flags, odd=0):
        made = self.module_of(name, compiler, *flags)
        own = must([compiler.replace("gcc", "nm"), "--defined-only", made]).splitlines()
        own = [int(line.split()[0], 16) for line in own if line.split()[2] in ("leaf", "begin")]
        places = [BASE + (address | odd) for address in own]
        path = trace("machine.json", places, [module(made, build_id(made))])
        self.assertEqual(set(converted(path)[0]), {"leaf", "begin"})

    def test_arm_thumb(self):
        self.check("arm.so", "arm-linux-gnueabihf-gcc", "-mthumb", odd=1)

    def test_powerpc(self):
        self.check("powerpc.so", "powerpc-linux-gnu-gcc")

    def test_s390x(self):
        self.check("s390x.so", "s390x-linux-gnu-gcc")

    def test_32_bits(self):
        self.check("x32.so", "gcc", "-m32")


@helpers.thorough
class Hostile(unittest.TestCase):
    """Damaged modules: strict JSON, no crash, nothing read out of bounds."""

    @staticmethod
    @functools.cache
    def checked():
        """npuprof-convert with sanitizers, or the test is skipped."""
        tool = scratch() / "convert-checked"
        flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined",
                 "-fno-sanitize-recover=all", f"-I{helpers.ROOT}", "-pthread"]
        done = run([*CC, *flags, helpers.ROOT / "tools" / "npuprof_convert.c", "-o", tool])
        if done.returncode:
            raise unittest.SkipTest(f"the compiler has no address sanitizer: {done.stderr.strip()[-100:]}")
        return tool

    def test_damaged_modules(self):
        whole = self.linked()
        chance = random.Random(16)
        target = scratch() / "damaged.so"
        places = [BASE + address for address in functions(library())]
        path = trace("hostile.json", places, [module(target, "")])
        for round_number in range(150):
            data = self.damaged(whole, chance)
            target.write_bytes(data)
            done = run([self.checked(), path, "-o", scratch() / "named.json"])
            if done.returncode != 0:
                kept = scratch() / "crash.so"
                kept.write_bytes(data)
                self.fail(f"round {round_number}: exit code {done.returncode}: {done.stderr[:1000]}")
            helpers.load(scratch() / "named.json")

    def test_damaged_images(self):
        folder = auto_traces.copied(scratch(), "image")
        (folder / "m.c").write_text(Machines.SOURCE + "int main(void) { return begin(0); }\n")
        must([*CC, "-finstrument-functions", "m.c", auto_traces.recorder(folder), "-o", "m", "-pthread"],
             cwd=folder)
        auto_traces.record(folder / "m", folder, NPUPROF_OUTPUT_PATH="m.npuprof")
        whole, chance = (folder / "m.npuprof").read_bytes(), random.Random(17)
        self.assertEqual(set(names(folder / "m.npuprof")[0]), {"main", "begin", "leaf"})
        places = [m.start() for m in re.finditer(rb"0x[0-9a-f]{8}|auto\0|/m\0|libc", whole)]
        for round_number in range(100):
            data = bytearray(whole)
            for _ in range(chance.choice((1, 2, 8, 40))):
                at = chance.choice(places) + chance.randrange(-100, 100)
                data[max(0, min(at, len(data) - 1))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
            (folder / "damaged.npuprof").write_bytes(data)
            done = run([self.checked(), "damaged.npuprof", "-o", "named.json"], cwd=folder)
            self.assertIn(done.returncode, (0, 1, 2), f"round {round_number}: {done.stderr[:1000]}")
            if done.returncode < 2:
                helpers.load(folder / "named.json")

    def linked(self):
        """A stripped module with a .gnu_debuglink, and one with everything."""
        stripped = pathlib.Path(shutil.copy(library(), scratch() / "stripped.so"))
        split(stripped, scratch() / "stripped.debug")
        must(["objcopy", f"--add-gnu-debuglink={scratch() / 'stripped.debug'}", stripped])
        return [library().read_bytes(), stripped.read_bytes()]

    def damaged(self, whole, chance):
        """Bytes changed: in the head, in the table of sections, or anywhere; or the end cut off."""
        data = bytearray(chance.choice(whole))
        table = int.from_bytes(data[40:48], "little")
        edges = [0, 1, 0x7F, 0x80, 0xFF]
        for _ in range(chance.choice((1, 2, 8, 64))):
            kind = chance.randrange(4)
            at = (chance.randrange(64) if kind == 0 else chance.randrange(table, len(data)) if kind < 3
                  else chance.randrange(len(data)))
            if kind == 1:
                at = at // 8 * 8
                number = chance.choice((0, 1, len(data), 2**32, 2**63, 2**64 - 1))
                data[at:at + 8] = number.to_bytes(8, "little")
            else:
                data[at] = chance.choice(edges + [chance.randrange(256)])
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)):]
        data[:4] = b"\x7fELF"[:len(data)]
        return bytes(data)
