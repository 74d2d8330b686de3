# test: thorough - Other systems' declarations, on this one: what they lack is poisoned, what they name
# otherwise has that name. Compiled only: nothing of it runs
# SPDX-License-Identifier: MIT
import itertools
import unittest

import helpers
from helpers import ROOT, TESTS, need, run, scratch

HEADERS = ("errno fcntl link pthread signal stdio stdlib string sys/file sys/mman sys/stat sys/types "
           "sys/auxv sys/syscall time unistd").split()
SYSTEMS = {
    "macOS": ("-U__linux__ -D__APPLE__ -D__MACH__",
              "#define st_mtimespec st_mtim\n#define st_ctimespec st_ctim\n",
              "sigtimedwait posix_fallocate st_mtim st_ctim getauxval"),
    "Android 5": ("-D__ANDROID__ -D__ANDROID_API__=21", "", "sigtimedwait"),
    "QNX": ("-U__linux__ -D__QNX__", "", "getauxval"),
}
COMPILERS = (["gcc", "-std=gnu11"], ["clang", "-std=gnu11"], ["g++", "-xc++", "-std=c++11"])


class Systems(unittest.TestCase):
    def test_declarations(self):
        source, folder = scratch() / "system.c", TESTS / "compile" / "systems" / "apple"
        for system, words in itertools.product(SYSTEMS, COMPILERS):
            flags, names, lacks = SYSTEMS[system]
            with self.subTest(system=system, compiler=words[0]):
                source.write_text("".join(f"#include <{h}.h>\n" for h in HEADERS)
                                  + f"#undef __GLIBC__\n{names}#pragma GCC poison {lacks}\n"
                                  + '#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                                  + "#if !NPUPROF_THREAD_KEY\n#error thread-local\n#endif\n")
                run([need(words[0]), *words[1:], *flags.split(), "-fsyntax-only", "-Wall", "-Wextra",
                     "-Werror", "-D_GNU_SOURCE=1", f"-I{folder}", f"-I{ROOT}", source], code=0)
