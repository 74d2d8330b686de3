# test: thorough time=900 - make dist and what installs the archive: CMake and Meson for real, Debian's
# package built, checked and unpacked. vcpkg and Conan are in no Debian package: stand-ins with their
# interfaces run them
# SPDX-License-Identifier: MIT
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

import helpers
from helpers import ROOT, run

sys.path.insert(0, str(ROOT / "tests" / "compile"))

from outside import Outside, check_command, dead_links, make  # noqa: E402

DIST = ROOT / "build/dist"
# What vcpkg offers a portfile, as far as this one asks.
VCPKG = """
function(vcpkg_extract_source_archive OUT)
  file(ARCHIVE_EXTRACT INPUT "${ARGV2}" DESTINATION "${WORK}/src")
  file(GLOB top "${WORK}/src/*")
  set(${OUT} "${top}" PARENT_SCOPE)
endfunction()
function(vcpkg_install_copyright)
  file(COPY "${ARGV1}" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
endfunction()
include("${PORTFILE}")
"""
# The same for Conan.
CONAN = {
    "conan/__init__.py": "class ConanFile:\n    pass\n",
    "conan/tools/__init__.py": "",
    "conan/tools/files.py": """import fnmatch, hashlib, os, shutil, tarfile
def check_sha256(recipe, name, sum):
    assert hashlib.sha256(open(name, "rb").read()).hexdigest() == sum
def unzip(recipe, name, strip_root):
    with tarfile.open(name) as tar:
        for member in tar.getmembers():
            member.name = member.name.split("/", 1)[-1]
            tar.extract(member)
def copy(recipe, pattern, source, to):
    os.makedirs(to, exist_ok=True)
    for name in fnmatch.filter(os.listdir(source), pattern):
        shutil.copy(os.path.join(source, name), to)
""",
    "create.py": """import os, types
import conanfile
recipe = conanfile.Npuprof()
recipe.source_folder, recipe.package_folder = os.getcwd(), os.path.abspath("../package")
recipe.settings = types.SimpleNamespace(os="Linux")
recipe.cpp_info = types.SimpleNamespace()
recipe.source()
recipe.package()
recipe.package_info()
print(recipe.name, recipe.version, recipe.cpp_info.system_libs)
"""}


def sums(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.rglob("*") if p.is_file()}


class Packaging(Outside):
    @classmethod
    def setUpClass(cls):
        helpers.need("git")
        if not (ROOT / ".git").exists():
            raise unittest.SkipTest("no git checkout: make dist makes the archive of a commit")
        make("dist")
        cls.archive = next(DIST.glob("npuprof-*.tar.gz"))
        cls.version = re.search(r"npuprof-(.*)\.tar\.gz", cls.archive.name)[1]

    def find_package(self, project, version, *options):
        """A program with find_package(npuprof VERSION), built."""
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(app C CXX)\n"
            f"find_package(npuprof {version} REQUIRED)\n"
            "add_executable(app main.c)\nadd_executable(app2 main.cpp)\n"
            "target_link_libraries(app npuprof::npuprof)\ntarget_link_libraries(app2 npuprof::npuprof)\n")
        return run(["cmake", "-S", project, "-B", project / "b", *options])

    def check_find_package(self, project, *options):
        done = self.find_package(project, self.version, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.commands(["cmake", "--build", project / "b"])
        self.check_program(project / "b/app")
        self.check_program(project / "b/app2")

    def test_sum(self):
        """The checksum is of the archive, in every file that has one."""
        sha256 = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        for name in (f"{self.archive.name}.sha256", "meson/npuprof.wrap", "vcpkg/npuprof/portfile.cmake",
                     "conan/conanfile.py"):
            self.assertIn(sha256, (DIST / name).read_text(), name)
        left = [p for p in DIST.rglob("*") if p.is_file() and not p.name.endswith(".gz")
                and re.search(r"@\w+@", p.read_text())]
        self.assertEqual(left, [], "words that were not filled in")

    def test_archive(self):
        """The same bytes from another folder, with another umask, time zone, locale and files that are not
        committed; what is in it is what git has, of one date and nobody's."""
        first = sums(DIST)
        clone = self.folder("clone") / "other name"
        self.commands(["git", "clone", "-q", ROOT, clone])
        for changed in ("npuprof.h", "tools/packaging/debian/rules", "new.c"):
            with open(clone / changed, "a") as file:
                file.write("changed\n")
        done = run(["sh", "-c", "umask 077; make -s -C \"$1\" dist", "sh", clone], code=0,
                   env=helpers.environment(TZ="Asia/Tokyo", LC_ALL="C"))
        self.assertIn("what is changed and not committed is not in it", done.stdout)
        self.assertEqual(sums(clone / "build/dist"), first)
        self.commands(["sha256sum", "-c", f"{self.archive.name}.sha256"], cwd=DIST)
        listed = run(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", "HEAD"]).stdout.splitlines()
        with tarfile.open(self.archive) as tar:
            members = tar.getmembers()
        self.assertEqual([m.name.split("/", 1)[1] for m in members], sorted(listed))
        self.assertEqual({(m.uid, m.gid, m.uname, m.mtime) for m in members},
                         {(0, 0, "", members[0].mtime)})
        done = run(["make", "-s", "-C", clone, "dist"], env=helpers.environment(SOURCE_DATE_EPOCH="today"))
        self.assertIn("SOURCE_DATE_EPOCH is no number of seconds: today", done.stderr)

    def test_without_git(self):
        """The unpacked archive installs, runs tests, and says why it makes no archive."""
        work = self.folder("unpacked")
        with tarfile.open(self.archive) as tar:
            tar.extractall(work)
        tree, prefix = work / f"npuprof-{self.version}", work / "prefix"
        self.commands(["make", "-s", "-C", tree, "install", f"PREFIX={prefix}", "CFLAGS=-O0"])
        for header in ("npuprof.h", "npuprof_npu.h"):
            self.assertEqual((prefix / "include" / header).read_bytes(), (tree / header).read_bytes())
        done = run([sys.executable, tree / "tests/run.py", "unit/spans"], env=helpers.environment())
        self.assertRegex(done.stdout, r"\n[1-9]\d* passed, 0 failed\n$")
        done = run(["make", "-s", "-C", tree, "dist"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("make dist: an archive is made of a commit, and this is no git checkout", done.stderr)

    def test_cmake_package(self):
        helpers.need("cmake")
        prefix, project = self.folder("prefix"), self.project("with-find-package")
        make("install", f"PREFIX={prefix}")
        self.check_find_package(project, f"-DCMAKE_PREFIX_PATH={prefix}")
        major = int(self.version.split(".")[0])
        for wrong in (f"{major}.999", f"{major + 1}.0"):
            shutil.rmtree(project / "b")
            done = self.find_package(project, wrong, f"-DCMAKE_PREFIX_PATH={prefix}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("compatible with requested version", " ".join(done.stderr.split()))
        (prefix / "include/npuprof.h").unlink()
        shutil.rmtree(project / "b")
        done = self.find_package(project, self.version, f"-DCMAKE_PREFIX_PATH={prefix}")
        self.assertIn("install npuprof again", " ".join(done.stderr.split()))

    def test_meson_wrap(self):
        helpers.need("meson")
        helpers.need("ninja")
        project = self.project("with-wrap", meson__build="project('app', 'c')\n"
                               "executable('app', 'main.c', dependencies: dependency('npuprof'))\n")
        shutil.copytree(DIST / "meson", project / "subprojects")
        self.commands(["meson", "setup", "--wrap-mode=forcefallback", project / "b", project],
                      ["meson", "compile", "-C", project / "b"])
        self.check_program(project / "b/app")

    def test_vcpkg_port(self):
        helpers.need("cmake")
        work, project = self.folder("vcpkg"), self.project("with-vcpkg")
        (work / "run.cmake").write_text(VCPKG)
        port = work / "port"
        shutil.copytree(DIST / "vcpkg/npuprof", port)
        options = [f"-DWORK={work}", "-DPORT=npuprof", f"-DCURRENT_PACKAGES_DIR={work / 'installed'}",
                   f"-DPORTFILE={port / 'portfile.cmake'}", "-P", work / "run.cmake"]
        self.commands(["cmake", *options])
        self.assertEqual(helpers.load(port / "vcpkg.json")["version"], self.version)
        self.assertTrue((work / "installed/share/npuprof/LICENSE").exists())
        self.check_find_package(project, f"-DCMAKE_PREFIX_PATH={work / 'installed'}")
        with open(port / self.archive.name, "ab") as file:
            file.write(b"x")
        done = run(["cmake", *options])
        self.assertIn("is not the release", " ".join(done.stderr.split()))

    def test_conan_recipe(self):
        work = self.folder("conan")
        shutil.copytree(DIST / "conan", work / "recipe")
        for name, text in CONAN.items():
            (work / "recipe" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "recipe" / name).write_text(text)
        done = run([sys.executable, "create.py"], cwd=work / "recipe")
        self.assertEqual((done.stdout, done.stderr), (f"npuprof {self.version} ['pthread']\n", ""))
        for header in helpers.HEADERS:
            self.assertEqual((work / "package/include" / header.name).read_bytes(),
                             subprocess.check_output(["git", "-C", ROOT, "show", f"HEAD:{header.name}"]))
        self.assertTrue((work / "package/licenses/LICENSE").exists())

    def debian(self):
        """The folder with the binary packages that dpkg-buildpackage makes, and the unpacked source.
        Why noopt: the optimiser takes two minutes."""
        helpers.need("dpkg-buildpackage")
        helpers.need("dh")
        helpers.need("dh_python3")
        work = self.folder("debian")
        tree = work / f"npuprof-{self.version}"
        with tarfile.open(self.archive) as tar:
            tar.extractall(work)
        shutil.copy(self.archive, work / f"npuprof_{self.version}.orig.tar.gz")
        shutil.copytree(DIST / "debian", tree / "debian")
        self.commands(["dpkg-buildpackage", "-us", "-uc"], cwd=tree, timeout=800,
                      env=helpers.environment(DEB_BUILD_OPTIONS="noopt"))
        self.assertTrue((work / f"npuprof_{self.version}-1.dsc").exists())
        return work, tree

    def test_debian_package(self):
        """They build and run their tests; what is in them; a program built with them; Debian's own checks."""
        work, tree = self.debian()
        root, packages = work / "root", [
            work / f"libnpuprof-dev_{self.version}-1_all.deb",
            *(path for path in work.glob(f"npuprof-tools_{self.version}-1_*.deb"))]
        self.assertEqual(len(packages), 2)
        self.commands(["dpkg-deb", "-x", packages[0], root])
        files = {str(p.relative_to(root / "usr")) for p in root.rglob("*") if p.is_file()}
        self.assertEqual({f for f in files if not f.startswith("share/doc/")},
                         {"include/npuprof.h", "include/npuprof_npu.h", "share/pkgconfig/npuprof.pc",
                          "share/cmake/npuprof/npuprof-config.cmake",
                          "share/cmake/npuprof/npuprof-config-version.cmake",
                          "share/lintian/overrides/libnpuprof-dev"})
        self.assertLessEqual({f"share/doc/libnpuprof-dev/{name}" for name in
                              ("copyright", "changelog.gz", "README.md", "tools/README.md",
                               "examples/01_hello.c")}, files)
        self.assertEqual(dead_links(root), [])
        # As autopkgtest runs it, but without installing the package here.
        env = helpers.environment(AUTOPKGTEST_TMP=str(self.folder("autopkgtest")),
                                  PKG_CONFIG_SYSROOT_DIR=str(root), PKG_CONFIG_PATH="",
                                  PKG_CONFIG_LIBDIR=str(root / "usr/share/pkgconfig"),
                                  CMAKE_PREFIX_PATH=str(root / "usr"))
        done = run([tree / "debian/tests/build"], env=env)
        self.assertEqual((done.returncode, done.stdout.splitlines(), done.stderr),
                         (0, ["./app: ok", "./app2: ok", "b/c: ok", "b/cpp: ok"], ""))
        helpers.need("lintian")
        done = run(["lintian", "--allow-root", "--fail-on", "error,warning", *packages,
                    work / f"npuprof_{self.version}-1.dsc"])
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        # The command, as after dpkg -x: Debian's Python would find the package by itself.
        self.commands(["dpkg-deb", "-x", packages[1], root])
        for name in ("share/man/man1/npuprof.1.gz", "share/zsh/vendor-completions/_npuprof"):
            self.assertTrue((root / "usr" / name).exists(), name)
        modules = str(root / "usr/lib/python3/dist-packages")
        check_command(self, [sys.executable, root / "usr/bin/npuprof"], [sys.executable], modules, modules)
