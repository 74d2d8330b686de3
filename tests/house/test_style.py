# the laws of the house that tools/house.py checks, and that it sees each of them broken
# SPDX-License-Identifier: MIT
import sys
import unittest

import helpers
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import house  # noqa: E402

# (file, what stands in it once or first, what replaces it, what is said)
BROKEN = [
    ("npuprof.h", ">>hot ====", ">>warm ====", "sections: sections ["),
    ("npuprof.h", "==== ARENA =", "==== Arena =", "sections: a banner in small letters"),
    ("npuprof.h", "TAGS  >>doc >>version", "TAGS  >>version >>doc", "sections: the doc block's list of tags"),
    ("npuprof_npu.h", "end of header", "middle", 'sections: "end of header"'),
    ("npuprof_npu.h", "SPDX-License-Identifier: MIT", "", "sections: the SPDX line comes first"),
    ("npuprof.h", "\nNPUPROF_BEGIN_C_\n", "\nNPUPROF_BEGIN_C_\nstatic int f(void) { return getpid(); }\n", "places: getpid( in >>"),
    ("npuprof_npu.h", "\nNPUPROF_BEGIN_C_\n", "\nNPUPROF_BEGIN_C_\n#ifdef __GNUC__\n#endif\n", "places: __GNUC__ in >>types"),
    ("npuprof_npu.h", "\nNPUPROF_BEGIN_C_\n", "\nNPUPROF_BEGIN_C_\nint x = *(volatile int *)8;\n", "places: *(volatile in >>types"),
    ("npuprof.h", "#define NPUPROF_H\n", "#define NPUPROF_H\n#define _NPUPROF 1\n", "names: _NPUPROF is a reserved name"),
    ("npuprof.h", "#define NPUPROF_H\n", "#define NPUPROF_H\n#define PROFILE 1\n", "names: PROFILE is no name of ours"),
    ("npuprof.h", "#define NPUPROF_H\n", "#define NPUPROF_H\ntypedef int npuprof_x_t;\n", "ends in _t"),
    ("examples/01_hello.c", "npuprof_start(1);", "npuprof_ticks_();", "names: npuprof_ticks_ is private"),
    ("examples/01_hello.c", "int main", "int  \nmain", "text: white space at the end"),
    ("examples/01_hello.c", "int main", "\tint main", "text: a tab"),
    ("examples/01_hello.c", "int main", "// TO" + "DO\nint main", "text: an open end"),
    ("tests/helpers.py", "SPDX-License-Identifier: MIT", "", "text: no licence line"),
]


class House(unittest.TestCase):
    def test_in_order(self):
        """Every hand-written file."""
        seen = dict(house.files())
        self.assertGreater(len(seen), 100)
        for name in ("npuprof.h", "npuprof_npu.h", "README.md", "Makefile", "tests/run.py"):
            self.assertIn(name, seen)
        self.assertEqual([line for name, content in seen.items() for line in house.findings(name, content)], [])

    def test_sees_each_law_broken(self):
        for name, old, new, said in BROKEN:
            with self.subTest(said=said):
                content = (ROOT / name).read_text(encoding="utf-8")
                self.assertIn(old, content)
                found = house.findings(name, content.replace(old, new, 1))
                self.assertTrue(any(said in line for line in found), found)
        self.assertEqual(house.findings("x.c", None), ["x.c:1: text: not UTF-8"])
        self.assertTrue(any("no newline" in line for line in house.findings("x.md", "text")))

    def test_command(self):
        done = helpers.run([sys.executable, ROOT / "tools" / "house.py"])
        self.assertEqual((done.returncode, done.stdout), (0, "the house is in order\n"))


if __name__ == "__main__":
    unittest.main()
