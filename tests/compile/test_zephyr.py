# the Zephyr module: its YAML, Kconfig and CMake, and that it has hooks which Zephyr calls
# SPDX-License-Identifier: MIT
import os
import pathlib
import re
import subprocess
import unittest

import helpers
from helpers import ROOT, run, scratch

PYTHON = "/usr/bin/python3"            # Debian's, which has kconfiglib and yaml
MODULE = ROOT / "zephyr"
STUB = ROOT / "tests" / "baremetal" / "rtos" / "zephyr"
# The functions of subsys/tracing/user/tracing_user.h that Zephyr 4 calls for threads and interrupts. With
# ZEPHYR=FOLDER in the environment, the file there says.
HOOKS = {f"sys_trace_{name}_user" for name in """thread_create thread_abort thread_suspend thread_resume
    thread_name_set thread_switched_in thread_switched_out thread_info thread_priority_set thread_sched_ready
    thread_pend isr_enter isr_exit idle sys_init_enter sys_init_exit""".split()}
# What of Zephyr's own Kconfig the module names.
ZEPHYR = "".join(f"config {name}\n\tbool \"{name}\"\n"
                 for name in ("TRACING_USER", "SMP", "THREAD_NAME", "INIT_STACKS", "THREAD_STACK_INFO"))
READ = """import json, sys, kconfiglib
kconf = kconfiglib.Kconfig(sys.argv[1], warn_to_stderr=False)
for line in sys.argv[2:]:
    name, value = line.split("=")
    kconf.syms[name].set_value(value)
print(json.dumps([{name: kconf.syms[name].str_value for name in kconf.syms}, kconf.warnings]))
"""
# CMake's functions of Zephyr print what they are given.
CMAKE = """foreach(name zephyr_include_directories zephyr_compile_definitions zephyr_library
    zephyr_library_compile_definitions zephyr_library_sources)
  cmake_language(EVAL CODE "function(${name})\\nmessage(\\"${name} \\${ARGV}\\")\\nendfunction()")
endforeach()
include(%s/CMakeLists.txt)
"""


def debian(module, *arguments):
    """What Debian's Python prints that has a module."""
    if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode:
        raise unittest.SkipTest(f"python3-{module} is not installed")
    return run([PYTHON, *arguments], code=0, said="").stdout


class Module(unittest.TestCase):
    def test_yaml(self):
        text = debian("yaml", "-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load("
                                    "open(sys.argv[1]))))", MODULE / "module.yml")
        about = helpers.strict_json(text)
        self.assertEqual(about, {"name": "npuprof",
                                 "build": {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}})
        self.assertTrue((ROOT / about["build"]["kconfig"]).is_file())
        self.assertTrue((ROOT / about["build"]["cmake"] / "CMakeLists.txt").is_file())

    def settings(self, *given):
        (scratch() / "Kconfig").write_text(f'{ZEPHYR}source "{MODULE}/Kconfig"\n')
        said = debian("kconfiglib", "-c", READ, scratch() / "Kconfig", *given)
        values, warnings = helpers.strict_json(said)
        self.assertEqual(warnings, [])
        return values

    def test_kconfig(self):
        values = self.settings("TRACING_USER=y", "NPUPROF=y", "NPUPROF_CONTEXTS=8")
        for name in ("NPUPROF", "THREAD_NAME", "INIT_STACKS", "THREAD_STACK_INFO"):
            self.assertEqual(values[name], "y", name)
        self.assertEqual((values["NPUPROF_CONTEXTS"], values["NPUPROF_ARENA_BYTES"], values["NPUPROF_LEVEL"]),
                         ("8", "16384", "1"))
        self.assertEqual(self.settings("NPUPROF=y")["NPUPROF"], "n")
        self.assertEqual(self.settings("TRACING_USER=y", "SMP=y", "NPUPROF=y")["NPUPROF"], "n")

    def test_cmake(self):
        helpers.need("cmake")
        (scratch() / "say.cmake").write_text(CMAKE % MODULE)
        said = run(["cmake", "-DCONFIG_NPUPROF=y", "-DCONFIG_NPUPROF_CONTEXTS=8",
                    "-DCONFIG_NPUPROF_ARENA_BYTES=4096", "-P", "say.cmake"], code=0).stderr
        calls = dict(line.partition(" ")[::2] for line in said.splitlines())
        self.assertEqual(calls["zephyr_compile_definitions"], "NPUPROF_CONTEXTS=8")
        self.assertEqual(calls["zephyr_library_compile_definitions"], "NPUPROF_ARENA_BYTES=4096")
        folders = [pathlib.Path(path) for path in calls["zephyr_include_directories"].split(";")]
        for header in ("npuprof.h", "npuprof_zephyr.h"):
            self.assertTrue(any((folder / header).is_file() for folder in folders), header)
        self.assertTrue(pathlib.Path(calls["zephyr_library_sources"]).is_file())
        self.assertEqual(run(["cmake", "-P", "say.cmake"], code=0).stderr, "")


class Hooks(unittest.TestCase):
    def test_zephyr_calls_them(self):
        """The module compiles, and each of its hooks is one that Zephyr calls."""
        helpers.need("arm-none-eabi-gcc")
        run(["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-Os", *helpers.WARNINGS,
             "-Wno-missing-prototypes", f"-I{STUB}", f"-I{ROOT}", f"-I{ROOT / 'examples' / 'rtos'}",
             "-DCONFIG_NPUPROF_LEVEL=1", "-DNPUPROF_CONTEXTS=8", "-DNPUPROF_ARENA_BYTES=4096",
             "-ffreestanding", "-c", MODULE / "npuprof.c", "-o", "npuprof.o"], code=0)
        names = run(["arm-none-eabi-nm", "npuprof.o"], code=0).stdout
        found = set(re.findall(r" T (sys_trace_\w+)", names))
        self.assertGreaterEqual(len(found), 7)
        hooks = HOOKS
        if os.environ.get("ZEPHYR"):
            header = pathlib.Path(os.environ["ZEPHYR"]) / "subsys" / "tracing" / "user" / "tracing_user.h"
            hooks = set(re.findall(r"\b(sys_trace_\w+_user)\(", header.read_text()))
            self.assertLessEqual(HOOKS, hooks)
        self.assertLessEqual(found, hooks)
        self.assertIn(" sys_init_POST_KERNEL_0", names)


if __name__ == "__main__":
    unittest.main()
