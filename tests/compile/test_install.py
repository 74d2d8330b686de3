# make install and uninstall, and programs outside the tree: pkg-config, CMake and Meson as the texts print
# them, C and C++
# SPDX-License-Identifier: MIT
import re
import shlex
import shutil
import sys
import unittest

import helpers
from helpers import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "compile"))

from outside import Outside, make, tree  # noqa: E402

README, REFERENCE = ((ROOT / name).read_text(encoding="utf-8")
                     for name in ("README.md", "examples/README.md"))


class Install(Outside):
    files = ["include/npuprof.h", "include/npuprof_npu.h",
             "lib/cmake/npuprof/npuprof-config-version.cmake", "lib/cmake/npuprof/npuprof-config.cmake",
             "lib/pkgconfig/npuprof.pc"]

    def test_destdir_and_uninstall(self):
        root = self.folder("root")
        (root / "opt/x/include").mkdir(parents=True)
        (root / "opt/x/include/other.h").write_text("")
        make("install", f"DESTDIR={root}", "PREFIX=/opt/x")
        self.assertEqual(tree(root / "opt/x"), sorted(self.files + ["include/other.h"]))
        for header in helpers.HEADERS:
            self.assertEqual((root / "opt/x/include" / header.name).read_bytes(), header.read_bytes())
            self.assertEqual((root / "opt/x/include" / header.name).stat().st_mode & 0o777, 0o644)
        text = (root / "opt/x/lib/pkgconfig/npuprof.pc").read_text()
        self.assertIn("prefix=/opt/x\n", text)
        version = re.search(r'NPUPROF_VERSION_STRING "(.*)"', helpers.HEADERS[0].read_text())[1]
        self.assertIn(f"Version: {version}\nCflags:", text)
        make("uninstall", f"DESTDIR={root}", "PREFIX=/opt/x")
        self.assertEqual(tree(root), ["opt/x/include/other.h"])

    @helpers.thorough
    def test_pkg_config(self):
        """The README's command, for C and C++."""
        helpers.need("pkg-config")
        prefix, project = self.folder("prefix"), self.project("with-pkg-config")
        make("install", f"PREFIX={prefix}")
        command = re.search(r"`(cc main\.c [^`]*pkg-config[^`]*)`", README)[1]
        env = helpers.environment(PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
        for compiler, source in ((helpers.CC, "main.c"), (helpers.CXX, "main.cpp")):
            line = command.replace("cc ", shlex.join(compiler) + " ", 1).replace("main.c", source)
            run(["sh", "-c", line], code=0, said="", cwd=project, env=env)
            self.check_program(project / "app")
        run(["pkg-config", "--validate", "npuprof"], code=0, said="", env=env)
        done = run(["pkg-config", "--modversion", "npuprof"], env=env)
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+\n$")

    def vendor(self, project):
        folder = project / "third_party/npuprof"
        folder.mkdir(parents=True)
        for header in helpers.HEADERS:
            shutil.copy(header, folder)

    @helpers.thorough
    def test_cmake(self):
        helpers.need("cmake")
        snippet = re.search(r"^```cmake\n(.*?)^```", REFERENCE, re.M | re.S)[1]
        self.assertEqual(len(snippet.splitlines()), 5)
        for source, language in (("main.c", "C"), ("main.cpp", "CXX")):
            project = self.project(f"with-cmake-{language}")
            (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.16)\n"
                                                    f"project(app {language})\nadd_executable(app {source})\n"
                                                    + snippet)
            self.vendor(project)
            self.commands(["cmake", "-S", project, "-B", project / "b"], ["cmake", "--build", project / "b"])
            self.check_program(project / "b/app")

    @helpers.thorough
    def test_meson(self):
        helpers.need("meson")
        helpers.need("ninja")
        call = re.search(r"`(executable\('app'[^`]*)`", REFERENCE)[1]
        for source, language in (("main.c", "c"), ("main.cpp", "cpp")):
            project = self.project(f"with-meson-{language}")
            (project / "meson.build").write_text(f"project('app', '{language}')\n"
                                                 + call.replace("main.c", source) + "\n")
            self.vendor(project)
            self.commands(["meson", "setup", project / "b", project],
                          ["meson", "compile", "-C", project / "b"])
            self.check_program(project / "b/app")
