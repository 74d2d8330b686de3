# test: thorough - functions without marks: every call against gcov's counts, names after strip; also of zlib
# SPDX-License-Identifier: MIT
import functools
import pathlib
import shutil
import subprocess
import tarfile
import unittest

import auto_traces
import helpers
from auto_traces import FLAGS, counted, lost, must, names, record, split
from helpers import CC, CXX, PROGRAMS, scratch

SMALL = "64K"          # an arena that is full long before the end


class Program:
    """A program with its modules, run once with room for all."""

    def __init__(self, folder, program, modules, *arguments):
        auto_traces.need_gcov()
        self.folder, self.program, self.modules, self.arguments = folder, program, modules, arguments
        self.json = self.run("all.json", NPUPROF_ARENA_BYTES="256M")
        self.calls = counted(folder)
        self.image = self.run("all.npuprof", NPUPROF_ARENA_BYTES="256M")

    def run(self, output, **variables):
        path = self.folder / output
        record(self.program, self.folder, *self.arguments, NPUPROF_OUTPUT_PATH=str(path), **variables)
        return path


def calls_program(name, *flags):
    """The program made here, with its shared library and its plugin."""
    folder = auto_traces.copied(scratch(), name)
    plain = [flag for flag in FLAGS if flag not in ("-Wl,--build-id",)] + ["-fPIC", "-Wl,--build-id"]
    for target, define in (("libshared.so", "-DSHARED"), ("plugin.so", "-DPLUGIN")):
        must([*CC, *plain, define, "-shared", PROGRAMS / "auto_shared.c", "-o", target], cwd=folder)
    must([*CXX, "-std=c++17", *FLAGS, *flags, PROGRAMS / "auto_calls.cpp", auto_traces.recorder(folder),
          "libshared.so", "-Wl,-rpath,$ORIGIN", "-ldl", "-o", "auto_calls"], cwd=folder)
    modules = [folder / module for module in ("auto_calls", "libshared.so", "plugin.so")]
    return Program(folder, folder / "auto_calls", modules, "./plugin.so", 200)


@functools.cache
def zlib_source():
    """Debian's source of zlib, unpacked, or the test is skipped."""
    apt, folder = helpers.need("apt-get"), scratch() / "source"
    (folder / "lists" / "partial").mkdir(parents=True)
    system = pathlib.Path("/etc/os-release").read_text()
    release = dict(line.split("=", 1) for line in system.splitlines() if "=" in line)
    keys = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if release.get("ID") != "debian" or not keys.exists():
        raise unittest.SkipTest("the source of zlib comes from Debian's archive, and this is no Debian")
    (folder / "sources.list").write_text(f"deb-src [signed-by={keys}] http://deb.debian.org/debian "
                                         f"{release['VERSION_CODENAME']} main\n")
    options = [f"-oDir::Etc::SourceList={folder}/sources.list", "-oDir::Etc::SourceParts=/dev/null",
               f"-oDir::State::Lists={folder}/lists", f"-oDir::Cache={folder}", "-oAcquire::Retries=1",
               "-oAcquire::http::Timeout=15", "-oAPT::Sandbox::User=root"]
    said = ""
    for words in (["update"], ["source", "--download-only", "zlib"]):
        try:
            done = helpers.run([apt, "-q", *options, *words], cwd=folder)
        except subprocess.TimeoutExpired:
            raise unittest.SkipTest(f"Debian's archive does not answer apt-get {words[0]} in 100 s") from None
        said += done.stderr
        if done.returncode:
            why = " ".join(said.split())[:200]
            raise unittest.SkipTest(f"apt-get {words[0]} cannot get zlib's source: {why}")
    archive, = folder.glob("zlib_*.orig.tar.*")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    found, = (folder / "unpacked").glob("*/zlib.h")
    return found.parent


def zlib_program():
    source, folder = zlib_source(), auto_traces.copied(scratch(), "zlib")
    must([*CC, *FLAGS, "-D_LARGEFILE64_SOURCE", "-DHAVE_UNISTD_H", f"-I{source}", PROGRAMS / "auto_zlib.c",
          *sorted(source.glob("*.c")), auto_traces.recorder(folder), "-o", "auto_zlib"], cwd=folder)
    return Program(folder, folder / "auto_zlib", [folder / "auto_zlib"], "lines.gz")


class Counts:
    """What holds for each program."""

    def test_every_call(self):
        program = self.made()
        self.assertGreater(sum(program.calls.values()), 10_000)
        for path in (program.json, program.image):
            found, said = names(path)
            self.assertEqual((found, said), (program.calls, ""), path.name)
        self.assertEqual(lost(program.json), 0)

    def test_every_call_is_recorded_or_lost(self):
        program = self.made()
        total = sum(program.calls.values())
        for when_full in ("keep-oldest", "keep-newest"):
            path = program.run(f"{when_full}.json", NPUPROF_ARENA_BYTES=SMALL, NPUPROF_WHEN_FULL=when_full)
            found, _ = names(path)
            self.assertEqual(counted(program.folder), program.calls)
            self.assertLess(sum(found.values()), total // 2, when_full)
            self.assertEqual(sum(found.values()) + lost(path), total, when_full)
            self.assertFalse(found - program.calls, when_full)
        path = program.run("stream.npuprof", NPUPROF_ARENA_BYTES="1M", NPUPROF_WHEN_FULL="stream")
        self.assertEqual(names(path)[0], program.calls)

    def test_names_after_strip(self):
        program = self.made()
        folder = auto_traces.copied(program.folder, "stripped")
        kept = {module: module.read_bytes() for module in program.modules}
        try:
            for module in program.modules:
                build = auto_traces.build_id(module)
                split(module, folder / ".build-id" / build[:2] / f"{build[2:]}.debug")
            bare, said = names(program.json)
            self.assertNotEqual(bare, program.calls)
            self.assertEqual(sum(bare.values()), sum(program.calls.values()))
            self.assertIn("is stripped, no debug file of this build is there", said)
            for path in (program.json, program.image):
                self.assertEqual(names(path, "--debug-dir", folder), (program.calls, ""), path.name)
            self.linked(program, folder)
        finally:
            for module, data in kept.items():
                module.write_bytes(data)

    def linked(self, program, folder):
        """The debug files are beside the modules, found by .gnu_debuglink alone."""
        for module in program.modules:
            build = auto_traces.build_id(module)
            debug = folder / ".build-id" / build[:2] / f"{build[2:]}.debug"
            beside = module.with_name(f"{module.name}.debug")
            shutil.copy(debug, beside)
            must(["objcopy", f"--add-gnu-debuglink={beside}", module])
        for path in (program.json, program.image):
            self.assertEqual(names(path), (program.calls, ""), path.name)
        for module in program.modules:
            with open(module.with_name(f"{module.name}.debug"), "ab") as file:
                file.write(b"\0")
        self.assertNotEqual(names(program.json)[0], program.calls, "a checksum that does not fit")


class Own(Counts, unittest.TestCase):
    @classmethod
    @functools.cache
    def made(cls):
        return calls_program("own")

    def test_kinds_of_functions(self):
        calls = self.made().calls
        self.assertEqual(calls["work::Tree::sum(int) const"], 200 * 127)
        self.assertEqual(calls["int work::twice<int>(int)"], 200)
        self.assertEqual(calls["plugin_step"], 400)
        self.assertIn('work::operator"" _half(long double)', calls)


class FixedAddresses(unittest.TestCase):
    @classmethod
    @functools.cache
    def made(cls):
        return calls_program("fixed", "-no-pie")

    test_every_call = Counts.test_every_call


class Zlib(Counts, unittest.TestCase):
    @classmethod
    @functools.cache
    def made(cls):
        return zlib_program()

    def test_functions(self):
        calls = self.made().calls
        self.assertGreater(len(calls), 60)
        self.assertGreater(calls["longest_match"], 1000)
