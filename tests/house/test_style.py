# the laws that tools/house.py holds: the tree obeys them, and each is seen when it is broken
# SPDX-License-Identifier: MIT
import shutil
import sys
import unittest

import helpers
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import house  # noqa: E402
from laws import alone, code, joined, tree  # noqa: E402

MAP = """# src
| room | built for | names begin with | what it does |
|---|---|---|---|
| `public/` | both | | what a user's file compiles |
| `os/` | hosted | os | system calls |
| `arena/` | hosted | arena chunk | memory |
| `firmware/` | firmware | fw | a microcontroller's half |
"""
PUBLIC = """
#include <stdint.h>
typedef struct npuprof_thing { int n; } npuprof_thing;
int npuprof_begin_(npuprof_thing *thing);
"""
LINUX = """
#include "../public/types.h"
static inline int npuprof_os_page_(void) { return 4096; }
"""
CHUNKS = """
#include "../os/linux.h"
typedef struct npuprof_chunk_ { int pages; } npuprof_chunk_;
static struct { int count; } npuprof_chunk_now_;

static int npuprof_chunk_size_(npuprof_chunk_ *chunk)
{
    if (chunk->pages > 0) {
        return chunk->pages * npuprof_os_page_();
    }
    return 0;
}

int npuprof_begin_(npuprof_thing *thing)
{
    npuprof_chunk_ chunk = { thing->n };
    return npuprof_chunk_size_(&chunk);
}
#ifdef __linux__
""" + "\n" * 22 + """
#endif /* __linux__ */
"""
FIRMWARE = """
#include "../public/types.h"

int npuprof_begin_(npuprof_thing *thing) { return thing->n; }
"""
ARENA, OS, FW = "src/arena/chunks.h", "src/os/linux.h", "src/firmware/record.h"
WELL = {"src/README.md": MAP, "src/public/types.h": PUBLIC, OS: LINUX, ARENA: CHUNKS, FW: FIRMWARE}
DEEP = "".join("if (chunk->pages > %d) {\n" % n for n in range(5)) + "}" * 5
LONG = "\n" * 60
MANY = ["int a", "int (*b)(int, int)", "int c", "int d", "int e", "int f", "int g"]

# (file, what stands in it, what replaces it, the law, what is said)
BROKEN = [
    (OS, "public/types.h", "arena/chunks.h", "law 1", "upwards: arena/ is above os/"),
    (OS, "public/types.h", "arena/chunks.h", "law 1", "a circle"),
    (OS, "public/types.h", "public/none.h", "law 1", "src/public/none.h, which is no part"),
    (OS, "return 4096", "return npuprof_chunk_size_(0)", "law 1",
     "npuprof_chunk_size_ of src/arena/chunks.h, above it"),
    (ARENA, "os/linux.h", "public/types.h", "law 1", "npuprof_os_page_ of src/os/linux.h, which it does not"),
    (OS, "return 4096", "return npuprof_chunk_now_.count", "law 1",
     "npuprof_chunk_now_ of src/arena/chunks.h, above it"),
    (OS, "static inline", "static int npuprof_chunk_size_(void *chunk);\nstatic inline", "law 1",
     "npuprof_chunk_size_ of src/arena/chunks.h, above it"),
    (FW, "public/types.h", "os/linux.h", "law 1", "which is hosted code, this is for firmware"),
    (ARENA, "#pragma once   ", "", "law 1", "no #pragma once"),
    ("src/README.md", "| `arena/` |", "| `other/` |", "law 1", "in no room of the map"),
    (ARENA, "return 0;", LONG + "return 0;", "law 3", "npuprof_chunk_size_() has 67 lines, at most 60"),
    (ARENA, "return 0;", LONG * 9 + "return 0;", "law 3", "a part of 643 lines, at most 500"),
    (OS, "\n" * 9, "\n", "law 3", "a part of 15 lines, at least 50"),
    (ARENA, "return 0;", DEEP + "return 0;", "law 3", "npuprof_chunk_size_() nests 5 deep, at most 4"),
    (ARENA, "npuprof_chunk_size_(npuprof_chunk_ *chunk)", f"npuprof_chunk_size_({', '.join(MANY)})", "law 3",
     "npuprof_chunk_size_() has 7 parameters, at most 6"),
    (ARENA, "return 0;", "return 0;" + " " * 100 + ";", "law 3", "114 columns, at most 110"),
    (ARENA, "}\n\nint npuprof", "}\nint npuprof", "law 3", "no blank line between npuprof_chunk_size_() and"),
    (ARENA, "/* __linux__ */", "", "law 3", "#endif is 24 lines from its #if and does not bear its cond"),
    (ARENA, "return 0;", "\n#ifdef NPUPROF_FREESTANDING\n#endif\n", "law 3", "asks for NPUPROF_FREESTANDING"),
    (ARENA, "npuprof_chunk_now_", "npuprof_now_", "law 4", "npuprof_now_ does not say its room"),
    (ARENA, "npuprof_chunk_size_", "npuprof_size_", "law 4", "npuprof_size_ does not say its room"),
    (FW, "int npuprof_begin_", "struct npuprof_chunk_ { int x; };\n\nint npuprof_begin_", "law 4",
     "npuprof_chunk_ is also in src/arena/chunks.h"),
    (OS, "npuprof_os_page_(void)", "npuprof_os_page_t(void)", "law 4", "npuprof_os_page_t ends in _t"),
    (ARENA, "#pragma once", "#define _NPUPROF 1\n#pragma once", "law 4", "_NPUPROF is a reserved name"),
    (ARENA, "#pragma once", "#define PROFILE 1\n#pragma once", "law 4", "PROFILE is no name of ours"),
    (ARENA, "return 0;", "return getpid();", "places", "getpid( has its place in src/os/"),
    (ARENA, "#ifdef __linux__", "#ifdef __GNUC__", "places", "__GNUC__ has its place in"),
    (ARENA, "return 0;", "return *(volatile int *)8;", "places", "*(volatile has its place in"),
    (ARENA, "return 0;", "return 0; ", "text", "white space at the end"),
    (ARENA, "    return 0;", "\treturn 0;", "text", "a tab"),
    (ARENA, "return 0;", "return 0; /* TO" + "DO */", "text", "an open end"),
]
# (what a whole file holds, the law, what is said)
FILES = [
    ("src/npuprof.h", "/* TAGS >>arena/ ==== */\n", "law 2", "TAGS and the parts differ in arena"),
    ("x.c", None, "text", "not UTF-8"),
    ("x.md", "text", "text", "no newline"),
    ("x.c", "int x;\n", "text", "no licence line"),
    ("examples/x.c", "int x = npuprof_ticks_();\n", "law 4", "npuprof_ticks_ is private"),
    ("tools/join.py", "\n" * 100, "law 2", "join.py has 100 lines, fewer than 100"),
    ("tools/x.py", "\n" * 501, "law 3", "a file of 501 lines, at most 500"),
    ("tools/npuprof/report/page/x.js", "\n" * 401, "law 3", "a file of 401 lines, at most 400"),
    ("tools/npuprof/a.py", "from . import a\n", "law 3", "npuprof.a imports itself"),
]


def well_kept(name, text):
    """A part of the synthetic tree, long enough to be one."""
    first = "#pragma once   /* SPDX-License-Identifier: MIT */\n"
    return text if name.endswith(".md") else (first + text).rstrip() + "\n" * 60


def said(texts, **options):
    found = house.findings(tree.Tree(texts), **options)
    return [f"{name}:{line}: {law}: {what}" for name, line, law, what, _ in found]


class House(unittest.TestCase):
    def setUp(self):
        self.well = {name: well_kept(name, text) for name, text in WELL.items()}

    @helpers.thorough
    def test_in_order(self):
        """Every hand-written file of the repository, by reading it; `make house` compiles the parts, too."""
        real = tree.load()
        self.assertGreater(len(real.texts), 100)
        self.assertEqual(house.findings(real, quick=True), [])

    def test_sees_each_law_broken(self):
        self.assertEqual(said(self.well), [])
        for name, old, new, law, what in BROKEN:
            with self.subTest(what=what):
                self.assertIn(old, self.well[name])
                found = said(self.well | {name: self.well[name].replace(old, new)})
                self.assertTrue(any(f": {law}: " in line and what in line for line in found), found)
        for name, text, law, what in FILES:
            with self.subTest(what=what):
                found = said({name: text})
                self.assertTrue(any(f": {law}: " in line and what in line for line in found), found)

    def test_circle_of_modules(self):
        texts = {"tools/npuprof/__init__.py": "", "tools/npuprof/a.py": "def f():\n    from .b import c\n",
                 "tools/npuprof/b/__init__.py": "", "tools/npuprof/b/c.py": "import npuprof.a\n"}
        found = said({name: "# SPDX-License-Identifier: MIT\n" + text for name, text in texts.items()})
        self.assertEqual(len(found), 2, found)
        self.assertIn("npuprof.a imports itself", found[0])

    def test_joined_headers(self):
        """One line of either header edited, or a part that comes before one it uses."""
        root = helpers.scratch() / "joined"
        shutil.copytree(ROOT / "src", root / "src")
        (root / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "join.py", root / "tools")

        def check():
            return [what for _, _, what in joined.joined(root)]

        for name in tree.ROOTS.values():
            shutil.copy(ROOT / name, root)
        self.assertEqual(check(), [])
        for name in tree.ROOTS.values():
            lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
            lines[len(lines) // 2] += " "
            (root / name).write_text("\n".join(lines), encoding="utf-8")
            self.assertEqual(check(), [f"{name}: not what src/ gives; edit src/, then run: make headers"])
            shutil.copy(ROOT / name, root)
        source = root / "src" / "npuprof.h"
        text = source.read_text(encoding="utf-8")
        source.write_text(text.replace('#include "numbers/hash.h"\n', ""), encoding="utf-8")
        self.assertIn("has not been joined yet", check()[0])

    def test_compiles_alone(self):
        """A name that stands above, a name that stands nowhere, and what only one language or side takes."""
        helpers.need(helpers.CXX[0])
        upward = ("static int npuprof_up_(void);\nstatic int npuprof_down_(void) { return npuprof_up_(); }\n"
                  "static inline")
        error = "<stdint.h>\n#ifdef NPUPROF_FREESTANDING\n#error no\n#endif"
        cases = [(OS, "4096", "4096", ""),
                 (OS, "return 4096;", "return npuprof_up_();", "hosted C c11: "),
                 (OS, "static inline", upward, "'npuprof_up_' used but never defined"),
                 (OS, "return 4096;", "int *p = (void *)0; return p != 0;", "hosted C++ c++11: "),
                 ("src/public/types.h", "<stdint.h>", error, "firmware C c11: ")]
        for name, old, new, what in cases:
            with self.subTest(what=what):
                texts = self.well | {name: self.well[name].replace(old, new)}
                for part, text in texts.items():
                    path = helpers.scratch() / part
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                found = list(alone.alone(tree.Tree(texts), helpers.scratch()))
                if what:
                    self.assertTrue(any(what in line for _, _, line in found), found)
                else:
                    self.assertEqual(found, [])


class Reader(unittest.TestCase):
    """What the reader of C takes for a function, a block and a type."""

    def test_functions(self):
        source = code.read("""
#define MACRO(x) do { if (x) { } } while (0)
extern "C" {
static const struct pair { int a; } pairs[] = { { 1 }, { 2 } };
typedef void (*callback)(int);
typedef struct { int b; } box;
int declared(int (*f)(void)); extern int elsewhere;
static int sized[2] ALIGNED_; int count;
#ifdef X
static int two(int a) {
#else
static int two(int a, int b) {
#endif
    for (int i = 0; i < a; i++) {
        box value = (box){ 1 };
        switch (a) { case 1: { do { } while (0); } }
    }
    return 0;
}
__attribute__((noinline)) static box
last(void)
{
    return (box){ 2 };
}
}
""")
        found = [(f.name, f.line, f.end, f.depth) for f in source.functions]
        self.assertEqual(found, [("two", 12, 19, 4), ("last", 20, 24, 0)])
        self.assertEqual(set(source.types), {"pair", "callback", "box"})
        self.assertEqual(source.declared, {"declared": 7, "elsewhere": 7})
        self.assertEqual(set(source.variables), {"pairs", "sized", "count"})
