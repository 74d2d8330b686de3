# test: thorough time=600 - make install and uninstall, pip, and programs outside the tree: pkg-config,
# CMake and Meson as the texts print them and with the tree inside, C and C++; the installed command
# SPDX-License-Identifier: MIT
import re
import shlex
import shutil
import sys
import unittest

import helpers
from helpers import ROOT, run, scratch

sys.path.insert(0, str(ROOT / "tests" / "compile"))

from outside import Outside, check_command, dead_links, make, tree  # noqa: E402

README, GUIDE = ((ROOT / name).read_text(encoding="utf-8")
                     for name in ("README.md", "examples/README.md"))


class Install(Outside):
    files = {"include/npuprof.h", "include/npuprof_npu.h", "bin/npuprof",
             "lib/cmake/npuprof/npuprof-config-version.cmake", "lib/cmake/npuprof/npuprof-config.cmake",
             "lib/pkgconfig/npuprof.pc", "share/bash-completion/completions/npuprof",
             "share/zsh/site-functions/_npuprof", "share/fish/vendor_completions.d/npuprof.fish",
             "share/man/man1/npuprof.1"}
    folders = "lib/npuprof/npuprof/", "share/doc/npuprof/"

    def test_destdir_and_uninstall(self):
        root = self.folder("root")
        (root / "opt/x/include").mkdir(parents=True)
        (root / "opt/x/include/other.h").write_text("")
        make("install", f"DESTDIR={root}", "PREFIX=/opt/x")
        ours = {name for name in tree(root / "opt/x") if not name.startswith(self.folders)}
        self.assertEqual(ours, self.files | {"include/other.h"})
        self.assertEqual(dead_links(root), [])
        run([root / "opt/x/bin/npuprof", "--version"], code=0, env=helpers.environment())
        for header in helpers.HEADERS:
            self.assertEqual((root / "opt/x/include" / header.name).read_bytes(), header.read_bytes())
            self.assertEqual((root / "opt/x/include" / header.name).stat().st_mode & 0o777, 0o644)
        text = (root / "opt/x/lib/pkgconfig/npuprof.pc").read_text()
        self.assertIn("prefix=/opt/x\n", text)
        version = re.search(r'NPUPROF_VERSION_STRING "(.*)"', helpers.HEADERS[0].read_text())[1]
        self.assertIn(f"Version: {version}\nCflags:", text)
        make("uninstall", f"DESTDIR={root}", "PREFIX=/opt/x")
        self.assertEqual(tree(root), ["opt/x/include/other.h"])
        top = root / "opt/x"
        left = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_dir()}
        self.assertLessEqual(left, {"bin", "include", "lib", "lib/cmake", "lib/pkgconfig", "share",
                                    "share/doc", "share/man", "share/man/man1"})

    def test_command(self):
        """The installed command reads an image, from outside the tree; its package records."""
        prefix = self.folder("command")
        make("install", f"PREFIX={prefix}")
        check_command(self, [prefix / "bin/npuprof"], [sys.executable], str(prefix / "lib/npuprof"))
        # As it was moved, and by a link from elsewhere.
        moved = prefix.rename(prefix.with_name("moved"))
        (scratch() / "link").unlink(missing_ok=True)
        (scratch() / "link").symlink_to(moved / "bin/npuprof")
        run([scratch() / "link", "--version"], code=0, said="", env=helpers.environment())

    def test_without_compiler(self):
        """It is said at install and, once, by what takes longer; what needs an image says what to do."""
        tree_, prefix = self.folder("no-compiler"), self.folder("plain")
        run(["sh", "-c", f"cd {shlex.quote(str(ROOT))} && git ls-files -co --exclude-standard -z |"
             f" xargs -0 cp --parents -t {shlex.quote(str(tree_))} 2>/dev/null"])
        done = run(["make", "-s", "-C", tree_, "install", f"PREFIX={prefix}", "CC=no-such-compiler"], code=0)
        self.assertEqual(done.stderr.count("no C compiler built them"), 1)
        program, large = helpers.build("images.c", "images"), scratch() / "large.json"
        for name in ("t.json", "t.npuprof"):
            run([program, "all", scratch() / name], code=0, env=helpers.environment())
        event = '{"ph":"X","name":"n","pid":1,"tid":1,"ts":%d,"dur":1}'
        large.write_text('{"traceEvents":[' + ",\n".join(event % n for n in range(90_000)) + "]}")
        command = [prefix / "bin/npuprof"]
        run([*command, "report", "t.json"], code=0, said="", env=helpers.environment())
        done = run([*command, "diff", "large.json", "large.json"], code=0, env=helpers.environment())
        self.assertRegex(done.stderr, r"^note: without its C part [^\n]*: install one, then npuprof again\n$")
        done = run([*command, "report", "t.npuprof"], code=2, env=helpers.environment())
        self.assertIn("t.npuprof: an image needs npuprof-convert: npuprof was installed without a C "
                      "compiler: install one, then npuprof again\n", done.stderr)

    def test_pip(self):
        """pip builds and installs it from the tree, without network; uninstalled, nothing is left."""
        work = self.folder("pip")
        if run([sys.executable, "-m", "venv", work / "venv"]).returncode:
            self.skipTest("python3 -m venv does not work: install python3-venv")
        python = work / "venv/bin/python"
        before = tree(work / "venv")
        run([python, "-m", "pip", "install", "-q", "--no-index", ROOT], code=0)
        check_command(self, [work / "venv/bin/npuprof"], [python])
        check_command(self, [python, "-m", "npuprof"], [python])
        run([python, "-m", "pip", "uninstall", "-q", "-y", "npuprof"], code=0)
        left = [name for name in tree(work / "venv") if "npuprof" in name and name not in before]
        self.assertEqual(left, [])
        run([python, "-m", "pip", "install", "-q", "--no-index", "-e", ROOT], code=0)
        done = run([python, "-c", "import npuprof; print(npuprof.__file__)"], code=0)
        self.assertEqual(done.stdout.strip(), str(ROOT / "tools/npuprof/__init__.py"))

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

    def test_cmake(self):
        helpers.need("cmake")
        snippet = re.search(r"^```cmake\n(.*?)^```", GUIDE, re.M | re.S)[1]
        self.assertEqual(len(snippet.splitlines()), 5)
        for source, language in (("main.c", "C"), ("main.cpp", "CXX")):
            project = self.project(f"with-cmake-{language}")
            (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.16)\n"
                                                    f"project(app {language})\nadd_executable(app {source})\n"
                                                    + snippet)
            self.vendor(project)
            self.commands(["cmake", "-S", project, "-B", project / "b"], ["cmake", "--build", project / "b"])
            self.check_program(project / "b/app")

    def test_meson(self):
        helpers.need("meson")
        helpers.need("ninja")
        call = re.search(r"`(executable\('app'[^`]*)`", GUIDE)[1]
        for source, language in (("main.c", "c"), ("main.cpp", "cpp")):
            project = self.project(f"with-meson-{language}")
            (project / "meson.build").write_text(f"project('app', '{language}')\n"
                                                 + call.replace("main.c", source) + "\n")
            self.vendor(project)
            self.commands(["meson", "setup", project / "b", project],
                          ["meson", "compile", "-C", project / "b"])
            self.check_program(project / "b/app")

    def test_cmake_tree(self):
        """add_subdirectory and FetchContent of the tree, in C and in C++; and what it installs alone."""
        helpers.need("cmake")
        ways = {"add_subdirectory": f"add_subdirectory({ROOT} npuprof)\n",
                "fetch": f"include(FetchContent)\nFetchContent_Declare(npuprof SOURCE_DIR {ROOT})\n"
                         "FetchContent_MakeAvailable(npuprof)\n"}
        for way, text in ways.items():
            for source, language in (("main.c", "C"), ("main.cpp", "CXX")):
                project = self.project(f"{way}-{language}")
                (project / "CMakeLists.txt").write_text(
                    f"cmake_minimum_required(VERSION 3.16)\nproject(app {language})\n{text}"
                    f"add_executable(app {source})\ntarget_link_libraries(app npuprof::npuprof)\n")
                self.commands(["cmake", "-S", project, "-B", project / "b"],
                              ["cmake", "--build", project / "b"])
                self.check_program(project / "b/app")
        work = self.folder("cmake-alone")
        self.commands(["cmake", "-S", ROOT, "-B", work / "b"],
                      ["cmake", "--install", work / "b", "--prefix", work / "prefix"])
        self.assertEqual(set(tree(work / "prefix")), {name for name in self.files
                                                      if name.startswith(("include", "lib/cmake"))})

    def test_meson_subproject(self):
        helpers.need("meson")
        helpers.need("ninja")
        for source, language in (("main.c", "c"), ("main.cpp", "cpp")):
            project = self.project(f"subproject-{language}", meson__build=f"project('app', '{language}')\n"
                                   f"executable('app', '{source}', dependencies: dependency('npuprof', "
                                   "fallback: 'npuprof'))\n")
            (project / "subprojects").mkdir()
            (project / "subprojects/npuprof").symlink_to(ROOT)
            self.commands(["meson", "setup", project / "b", project],
                          ["meson", "compile", "-C", project / "b"])
            self.check_program(project / "b/app")
