# the laws of the house that a small script can check
# SPDX-License-Identifier: MIT
import re
import unittest

import helpers
from helpers import ROOT

BANNER = re.compile(r"^\s*/?\*?\s*==== (.+?) =+ >>(\w+) ====", re.M)
SPINE = ["doc", "version", "config", "compiler", "types", "api", "hot", "macros", "impl", "platform", "arena"]
SPINE_NPU = ["doc", "version", "config", "compiler", "types", "api", "macros", "impl", "mmio", "map", "clock", "drain"]
OS_CALLS = """open close read write pread pwrite fsync rename unlink link symlink readlink mkdir stat lstat fstat mmap munmap msync ftruncate
    fallocate posix_fallocate flock clock_gettime gettimeofday time localtime localtime_r gmtime_r getenv secure_getenv getpid gettid fork
    syscall gethostname uname sysconf sigaction pthread_sigmask pthread_atfork pthread_key_create pthread_setspecific getauxval
    QueryPerformanceCounter issetugid sched_yield nanosleep usleep""".split()

# The C library of Windows has these, with the underscore.
WINDOWS_CALLS = "_chsize_s _close _dup _fstat64 _get_osfhandle _lseeki64 _mkdir _open _read _setmode _stat64 _stricmp _write".split()


def sources():
    """Every hand-written C file."""
    found = [*helpers.HEADERS, *ROOT.glob("examples/**/*.[ch]"), *ROOT.glob("tests/**/*.[ch]")]
    return [p for p in found if p.exists() and "build" not in p.relative_to(ROOT).parts and "data" not in p.relative_to(ROOT).parts]


def blank(text, pattern):
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def code_only(text):
    """Comments and the insides of strings blanked; lines stay where they are."""
    return blank(text, r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')


def section_at(text):
    """A function: offset to tag."""
    starts = [(m.start(), m.group(2)) for m in BANNER.finditer(text)]

    def tag(offset):
        found = ""
        for start, name in starts:
            if start > offset:
                break
            found = name
        return found
    return tag


def place(path, text, offset):
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}"


class Banners(unittest.TestCase):
    def check_spine(self, path, spine, last):
        if not path.exists():
            self.skipTest(f"{path.name} is not written yet")
        text = path.read_text(encoding="utf-8")
        tags = [m.group(2) for m in BANNER.finditer(text)]
        self.assertEqual(len(set(tags)), len(tags), tags)
        self.assertEqual([t for t in tags if t in spine], spine, "the sections or their order")
        self.assertEqual(tags[-1], last)
        for m in BANNER.finditer(text):
            self.assertEqual(m.group(1), m.group(1).upper())
        listed = re.search(r"\bTAGS\b(.*?)={20}", text, re.S)
        self.assertIsNotNone(listed, "the doc block ends with the list of tags")
        self.assertEqual(re.findall(r">>(\w+)", listed.group(1)), tags)
        end = text.find("end of header")
        self.assertGreater(end, 0)
        self.assertTrue(text.find(">>macros ====") < end < text.find(">>impl ===="))
        head = text[:600]
        self.assertRegex(head, r"SPDX-License-Identifier: MIT")
        self.assertIn("MIT", text[-3000:], "the licence text comes last")

    def test_npuprof(self):
        self.check_spine(ROOT / "npuprof.h", SPINE, "public")

    def test_npuprof_npu(self):
        path = ROOT / "npuprof_npu.h"
        if path.exists():
            tags = [m.group(2) for m in BANNER.finditer(path.read_text(encoding="utf-8"))]
            self.check_spine(path, [t for t in SPINE_NPU if t in tags or t in ("doc", "version", "api", "mmio", "map", "clock", "drain")],
                             tags[-1])
        else:
            self.skipTest("npuprof_npu.h is not written yet")


class Names(unittest.TestCase):
    def test_no_reserved_names(self):
        """Nothing with a leading underscore is defined, no type ends in _t."""
        bad = []
        for path in sources():
            text = path.read_text(encoding="utf-8")
            code = code_only(text)
            for m in re.finditer(r"#\s*define\s+(_\w+)", code):
                if m.group(1) not in ("_GNU_SOURCE", "_DEFAULT_SOURCE", "_POSIX_C_SOURCE"):
                    bad.append(f"{place(path, text, m.start())}: {m.group(1)}")
            for m in re.finditer(r"\b(?:struct|enum|union)\s+(_\w+)|(?<![\w.>])(_[a-z]\w*)\s*(?:\(|=[^=]|;|\[)", code):
                name = m.group(1) or m.group(2)
                if not name.startswith("__") and name not in ("_exit", *WINDOWS_CALLS):
                    bad.append(f"{place(path, text, m.start())}: {name}")
            for m in re.finditer(r"\btypedef\b[^;{]*\b(\w+_t)\s*;|\b(?:struct|enum|union)\s+(\w+_t)\b|\}\s*(\w+_t)\s*;|\b(npuprof\w*_t)\b", code):
                bad.append(f"{place(path, text, m.start())}: {m.group(0)}")
        self.assertEqual(bad, [])

    def test_public_names(self):
        """What the headers define as a macro is PROF_, WITH_, NPUPROF_ or the like."""
        bad = []
        for path in helpers.HEADERS:
            if path.exists():
                text = path.read_text(encoding="utf-8")
                bad += [f"{place(path, text, m.start())}: {m.group(1)}" for m in re.finditer(r"#\s*define\s+(\w+)", code_only(text))
                        if not re.match(r"PROF_|WITH_|NPUPROF_|npuprof_|_DEFAULT_SOURCE$|_GNU_SOURCE$", m.group(1))]
        self.assertEqual(bad, [])


class Places(unittest.TestCase):
    def outside(self, path, pattern, allowed):
        text = path.read_text(encoding="utf-8")
        tag = section_at(text)
        return [f"{place(path, text, m.start())}: {m.group(0)} in >>{tag(m.start())}" for m in re.finditer(pattern, code_only(text))
                if tag(m.start()) not in allowed]

    def test_os_calls(self):
        """System calls stand in their section, and nowhere else."""
        pattern = r"(?<![\w.>])(?:" + "|".join(OS_CALLS) + r")\s*\("
        self.assertEqual(self.outside(ROOT / "npuprof.h", pattern, {"platform"}), [])
        if (ROOT / "npuprof_npu.h").exists():
            self.assertEqual(self.outside(ROOT / "npuprof_npu.h", pattern, {"map"}), [])

    def test_compilers(self):
        """Compilers are named in one section."""
        pattern = r"\b(?:__GNUC__|__clang__|_MSC_VER|__TINYC__)\b"
        for path in helpers.HEADERS:
            if path.exists():
                self.assertEqual(self.outside(path, pattern, {"compiler"}), [])

    def test_volatile(self):
        """The only volatile accesses are those of >>mmio; types may name it."""
        if not (ROOT / "npuprof_npu.h").exists():
            self.skipTest("npuprof_npu.h is not written yet")
        self.assertEqual(self.outside(ROOT / "npuprof_npu.h", r"\*\s*\((?:const )?volatile", {"mmio"}), [])


class Text(unittest.TestCase):
    def every_text(self):
        for path in sorted(ROOT.rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not {".git", "build", "__pycache__"} & set(parts) and path.suffix in (
                    ".c", ".h", ".py", ".md", ".toml", ".json", ".yml", "") and path.stat().st_size < 4 << 20:
                data = path.read_bytes()
                if b"\0" not in data:
                    yield path, data

    def test_whitespace(self):
        bad = []
        for path, data in self.every_text():
            name = path.relative_to(ROOT)
            bad += [f"{name}:{i}: white space at the end" for i, line in enumerate(data.split(b"\n"), 1) if re.search(rb"[ \t\r]$", line)]
            if path.suffix in (".c", ".h", ".py") and b"\t" in data:
                bad.append(f"{name}: a tab")
            if data and not data.endswith(b"\n"):
                bad.append(f"{name}: no newline at the end")
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                bad.append(f"{name}: not UTF-8")
        self.assertEqual(bad, [])

    def test_licence_lines(self):
        bad = [str(p.relative_to(ROOT)) for p, data in self.every_text()
               if p.suffix in (".c", ".h", ".py") and b"SPDX-License-Identifier: " not in data[:1500] and b"enerated" not in data[:500]
               and "data" not in p.relative_to(ROOT).parts]
        self.assertEqual(bad, [])


if __name__ == "__main__":
    unittest.main()
