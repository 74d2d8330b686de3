# headers of two versions, sizes or configurations in one program are refused in words
# SPDX-License-Identifier: MIT
import re
import shutil
import unittest

import helpers
from helpers import ROOT, environment, run

USER = r"""
#include "npuprof.h"
int use(void);
int use(void)
{
    npuprof_desc desc = { 0 };
    npuprof_result r = npuprof_init(&desc);
    printf("%d %s\n", (int)r, npuprof_result_string(r));
    npuprof_start(1);
    { PROF_SCOPE("s"); }
    return 0;
}
"""
MAIN = """
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
int use(void);
int main(void)
{
    npuprof_stats s;
    int r = use();
    { PROF_SCOPE("of the implementing file"); }
    npuprof_get_stats(&s);
    return r || s.recorded + s.lost == 0;
}
"""


class Handshake(helpers.Folder):
    def setUp(self):
        super().setUp()
        (self.folder / "other").mkdir()
        self.text = (ROOT / "npuprof.h").read_text()

    def mixed(self, changed):
        """One file with a changed header, one with today's: (exit code or None when it does not link, what it
        said)."""
        (self.folder / "other" / "npuprof.h").write_text(changed)
        helpers.compile_text(USER, self.folder / "user.o", "-std=gnu11", f"-I{self.folder / 'other'}", "-c")
        helpers.compile_text(MAIN, self.folder / "main.o", "-std=gnu11", "-c")
        done = run([*helpers.CC, "-pthread", self.folder / "user.o", self.folder / "main.o", "-o",
                    self.folder / "program"])
        if done.returncode:
            return None, done.stderr
        done = run([self.folder / "program"], env=environment())
        return done.returncode, done.stdout + done.stderr

    @helpers.thorough
    def test_alike(self):
        self.assertEqual(self.mixed(self.text), (0, "0 NPUPROF_OK: ok\n"))

    @helpers.thorough
    def test_another_version(self):
        changed, n = re.subn(r"(#define NPUPROF_VERSION_MINOR) (\d+)", lambda m: f"{m[1]} {int(m[2]) + 1}",
                             self.text)
        self.assertEqual(n, 1)
        code, said = self.mixed(changed)
        self.assertRegex(said, "version|rebuild")
        if code is not None:
            self.assertEqual((code, said.split()[0] != "0"), (0, True),
                             "refused at init, and the program lives on")

    @helpers.thorough
    def test_another_size(self):
        """A desc that grew without a new version number, as in the middle of development."""
        changed, n = re.subn(r"\} npuprof_desc;", "    void *one_more_field;\n} npuprof_desc;", self.text)
        self.assertEqual(n, 1)
        code, said = self.mixed(changed)
        self.assertRegex(said, "version|rebuild")

    def test_backend_of_another_version(self):
        """npuprof_npu.h refuses a core of another version when it is compiled."""
        changed = re.sub(r"(#define NPUPROF_VERSION_MINOR) (\d+)", lambda m: f"{m[1]} {int(m[2]) + 1}",
                         self.text)
        (self.folder / "other" / "npuprof.h").write_text(changed)
        shutil.copy(ROOT / "npuprof_npu.h", self.folder / "other")
        (self.folder / "npu.c").write_text('#include "npuprof.h"\n#include "npuprof_npu.h"\n'
                                           'int main(void) { return 0; }\n')
        done = run([*helpers.CC, "-std=gnu11", f"-I{self.folder / 'other'}", "-c", self.folder / "npu.c",
                    "-o", self.folder / "npu.o"])
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"error: #error .*version")
