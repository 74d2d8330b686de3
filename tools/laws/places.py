# SPDX-License-Identifier: MIT
"""What may stand in few places only: system calls, the compilers' names, accesses to registers."""

import re

from . import code

OS_CALLS = """open close read write pread pwrite fsync rename unlink link symlink readlink mkdir
    stat lstat fstat mmap munmap msync ftruncate fallocate posix_fallocate flock clock_gettime
    gettimeofday time localtime localtime_r gmtime_r getenv secure_getenv getpid gettid fork syscall
    gethostname uname sysconf sigaction pthread_sigmask pthread_atfork pthread_key_create
    pthread_setspecific getauxval QueryPerformanceCounter issetugid sched_yield nanosleep usleep""".split()
COMPILERS = ("__GNUC__", "__clang__", "_MSC_VER", "__TINYC__")
# (what, the parts that may have it)
PLACES = [
    (re.compile(r"(?<![\w.>])(?:" + "|".join(OS_CALLS) + r")\s*\("), re.compile(r"src/os/|src/npu/map")),
    (re.compile(r"\b(?:" + "|".join(COMPILERS) + r")\b"), re.compile(r"src/(?:public|npu)/compiler")),
    (re.compile(r"\*\s*\((?:const )?volatile"), re.compile(r"src/(?:npu/mmio|public/compiler)")),
]


def places(tree):
    for part in (part for part in tree.parts if part.startswith("src/")):
        only = code.code_only(tree.texts[part])
        for pattern, allowed in PLACES:
            for m in pattern.finditer(only) if not allowed.match(part) else ():
                yield part, code.line_of(only, m.start()), f"{m.group(0)} has its place in {allowed.pattern}"
