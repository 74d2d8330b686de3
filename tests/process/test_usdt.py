# test: time=300 - NPUPROF_USDT: what perf, bpftrace, SystemTap and gdb find in a program with it, and what
# gdb sees there while nothing is recorded
# SPDX-License-Identifier: MIT
import functools
import re
import shutil
import unittest

import helpers
from helpers import environment, events, load, run, scratch

# name: how many arguments
PROBES = {"begin": 3, "end": 0, "instant": 2, "value": 3}
SEEN = ["begin 1 cat loop", "begin 1 - leaf", "value 7 count 0", "instant cat moment", "end",
        "begin 1 cat made at run time", "end", "end",
        "begin 1 cat loop", "begin 1 - leaf", "value 7 count 1", "end",
        "begin 1 cat made at run time", "end", "end",
        "begin 1 cat block", "begin 1 cat made at run time", "end", "end",
        "begin 1 - one", "end", "begin 1 - two", "end", "value 11 flow 7", "begin 4 Runtime inference", "end"]
# What gdb prints at each probe. A category may be NULL.
SCRIPT = """set pagination off
break -probe-stap npuprof:begin
commands
silent
if $_probe_arg1
printf "begin %d %s %s\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
else
printf "begin %d - %s\\n", $_probe_arg0, $_probe_arg2
end
continue
end
break -probe-stap npuprof:end
commands
silent
printf "end\\n"
continue
end
break -probe-stap npuprof:instant
commands
silent
printf "instant %s %s\\n", $_probe_arg0, $_probe_arg1
continue
end
break -probe-stap npuprof:value
commands
silent
printf "value %d %s %d\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
run
"""


def linked(*flags, compiler=(*helpers.CC, "-std=c99", "-O1")):
    """The program's own half, which has all probes. What calls the library cannot run."""
    program = scratch() / f"{compiler[0]}{''.join(flags)}"
    run([*compiler, *helpers.WARNINGS, "-g", f"-I{helpers.ROOT}", "-Wl,--unresolved-symbols=ignore-all",
         *flags, helpers.PROGRAMS / "usdt.c", "-o", program, "-pthread"], code=0)
    return program


@functools.cache
def built():
    return helpers.build("usdt.c", "usdt", *helpers.WARNINGS, "-std=c99", "-DNPUPROF_USDT")


def notes(program):
    """name -> arguments, of the notes that readelf finds."""
    text = run(["readelf", "-n", program], code=0).stdout
    found = re.findall(r"Provider: npuprof\n\s+Name: (\w+)\n\s+Location: (0x\w+), Base: (0x\w+), "
                       r"Semaphore: (0x\w+)\n\s+Arguments: (.*)\n", text)
    for _, *addresses, _ in found:
        assert 0 not in [int(address, 16) for address in addresses], text
    return [(name, len(arguments.split())) for name, *_, arguments in found]


class Probes(unittest.TestCase):
    def test_notes(self):
        for compiler in ((*helpers.CC, "-std=c99", "-O1"), ("clang", "-std=c11"),
                         ("g++", "-x", "c++", "-std=c++11"), ("aarch64-linux-gnu-gcc",),
                         ("arm-linux-gnueabihf-gcc",), ("s390x-linux-gnu-gcc",)):
            if not shutil.which(compiler[0]):
                print(f"note {compiler[0]} is not installed")
                continue
            found = notes(linked("-DNPUPROF_USDT", compiler=compiler))
            self.assertEqual((dict(found), len(found)), (PROBES, len(PROBES)), compiler)

    def test_nothing_without_the_knob(self):
        for program in (helpers.build("usdt.c", "plain"), linked("-DNPUPROF_OFF", "-DNPUPROF_USDT")):
            self.assertEqual(notes(program), [])
            self.assertNotIn(".probes", run(["readelf", "-SW", program], code=0).stdout)

    def seen(self, program, **env):
        script = scratch() / "script"
        script.write_text(SCRIPT)
        text = run([helpers.need("gdb"), "-nx", "-q", "-batch", "-x", script, program],
                   env=environment(DEBUGINFOD_URLS="", **env)).stdout
        if "Operation not permitted" in text:
            raise unittest.SkipTest("gdb may not trace a program here")
        return [line for line in text.splitlines() if re.match(r"(begin|end|instant|value)\b", line)]

    def test_a_debugger_sees_each_mark(self):
        """Nothing is recorded; then all is, too."""
        program = built()
        self.assertEqual(self.seen(program), SEEN)
        path = scratch() / "seen.json"
        self.assertEqual(self.seen(program, NPUPROF_OUTPUT_PATH=str(path)), SEEN)
        self.assertEqual(len(events(load(path), "X")), sum(line.startswith("begin") for line in SEEN))

    @helpers.thorough
    def test_in_cpp_beside_a_file_without_it(self):
        """C++ merges functions of the same name, and these are not the same."""
        other = scratch() / "other.o"
        cxx = [*helpers.CXX, "-x", "c++", "-std=c++11"]
        for flag in ("-O0", "-O2"):
            run([*cxx, *helpers.WARNINGS, flag, f"-I{helpers.ROOT}", "-DOTHER", "-c",
                 helpers.PROGRAMS / "usdt.c", "-o", other], code=0)
            program = scratch() / "beside"
            run([*cxx, *helpers.WARNINGS, flag, "-g", f"-I{helpers.ROOT}", "-DTWO", "-DNPUPROF_USDT",
                 "-DNPUPROF_IMPLEMENTATION", helpers.PROGRAMS / "usdt.c", "-x", "none", other, "-o", program,
                 "-pthread"], code=0)
            lines = [re.sub(r"- .*leaf.*", "- leaf", line) for line in self.seen(program)]
            self.assertEqual(lines, SEEN)

    @helpers.thorough
    def test_tools_list_them(self):
        program = built()
        listed = 0
        if shutil.which("bpftrace"):
            text = run(["bpftrace", "-l", f"usdt:{program}:*"]).stdout
            if text:
                self.assertEqual(re.findall(r":npuprof:(\w+)", text), sorted(PROBES))
                listed += 1
        if shutil.which("perf"):
            env = environment(HOME=str(scratch()))
            added = run(["perf", "buildid-cache", "--add", program], env=env)
            if not added.returncode:
                text = run(["perf", "list", "sdt"], env=env).stdout
                self.assertEqual(re.findall(r"sdt_npuprof:(\w+)", text), sorted(PROBES))
                listed += 1
        if not listed:
            raise unittest.SkipTest("neither bpftrace (as root) nor perf is installed")

    def test_refused(self):
        """Where there are no such notes, a sentence says so."""
        text = "#define NPUPROF_FREESTANDING\n#define NPUPROF_NOW() 0u\n#define NPUPROF_NOW_HZ 1\n"
        path = scratch() / "refused.c"
        path.write_text(text + '#define NPUPROF_USDT\n#include "npuprof.h"\n')
        said = run([*helpers.CC, "-ffreestanding", "-fsyntax-only", f"-I{helpers.ROOT}", path]).stderr
        self.assertIn("NPUPROF_USDT needs gcc or clang, a system with ELF files", said)


if __name__ == "__main__":
    unittest.main()
