#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The laws of the house that a script can check, on every hand-written file of the repository.

    sections   the headers' banners: order, list of tags, "end of header", licence
    places     system calls, compilers' names and volatile accesses stand in their sections
    names      nothing reserved; public macros are PROF_, WITH_ or NPUPROF_; private names end in an underscore and stay in the headers
    text       no tabs, no white space at the end, UTF-8, licence lines, marked reasons

One line for each finding, `file:line: law: what`. Exit code 1 when there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ("npuprof.h", "npuprof_npu.h")
BANNER = re.compile(r"^\s*/?\*?\s*==== (.+?) =+ >>(\w+) ====", re.M)
SPINE = {"npuprof.h": "doc version config compiler types api hot macros impl platform arena public".split(),
         "npuprof_npu.h": "doc version compiler types api hot macros impl mmio map clock drain public".split()}
OS_PLACE = {"npuprof.h": "platform", "npuprof_npu.h": "map"}
OS_CALLS = """open close read write pread pwrite fsync rename unlink link symlink readlink mkdir stat lstat fstat mmap munmap msync ftruncate
    fallocate posix_fallocate flock clock_gettime gettimeofday time localtime localtime_r gmtime_r getenv secure_getenv getpid gettid fork
    syscall gethostname uname sysconf sigaction pthread_sigmask pthread_atfork pthread_key_create pthread_setspecific getauxval
    QueryPerformanceCounter issetugid sched_yield nanosleep usleep""".split()
# The C library of Windows has these, with the underscore.
WINDOWS_CALLS = "_chsize_s _close _dup _environ _fstat64 _get_osfhandle _lseeki64 _mkdir _open _read _setmode _stat64 _stricmp _write".split()
FEATURES = ("_GNU_SOURCE", "_DEFAULT_SOURCE", "_POSIX_C_SOURCE")
TEXTS = (".c", ".h", ".py", ".mjs", ".md", ".toml", ".json", ".yml", ".sh", "")


def blank(text, pattern):
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def code_only(text):
    """Comments and the insides of strings blanked; lines stay where they are."""
    return blank(text, r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


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


REPLACES_BUILT_INS = "tests/schedule/fibers.h"      # the compiler's own names are macros there
# Each check takes a file's name and text and yields (line, what).

def sections(name, text):
    if name not in SPINE:
        return
    spine = SPINE[name]
    banners = list(BANNER.finditer(text))
    tags = [m.group(2) for m in banners]
    if len(set(tags)) != len(tags):
        yield 1, f"a section twice: {tags}"
    if [t for t in tags if t in spine] != spine:
        yield 1, f"sections {[t for t in tags if t in spine]}, wanted {spine}"
    if not tags or tags[-1] != spine[-1]:
        yield 1, f"the last section is not >>{spine[-1]}"
    for m in banners:
        if m.group(1) != m.group(1).upper():
            yield line_of(text, m.start()), "a banner in small letters"
    listed = re.search(r"\bTAGS\b(.*?)={20}", text, re.S)
    if not listed or re.findall(r">>(\w+)", listed.group(1)) != tags:
        yield 1, "the doc block's list of tags is not that of the banners"
    if not 0 < text.find(">>macros ====") < text.find("end of header") < text.find(">>impl ===="):
        yield 1, '"end of header" is not between >>macros and >>impl'
    if "SPDX-License-Identifier: MIT" not in text[:600] or "MIT" not in text[-3000:]:
        yield 1, "the SPDX line comes first, the licence text last"


def places(name, text):
    if name not in SPINE:
        return
    tag, code = section_at(text), code_only(text)
    for pattern, allowed in ((r"(?<![\w.>])(?:" + "|".join(OS_CALLS) + r")\s*\(", OS_PLACE[name]),
                             (r"\b(?:__GNUC__|__clang__|_MSC_VER|__TINYC__)\b", "compiler"),
                             (r"\*\s*\((?:const )?volatile", "mmio" if name == "npuprof_npu.h" else None)):
        for m in re.finditer(pattern, code) if allowed else ():
            if tag(m.start()) != allowed:
                yield line_of(text, m.start()), f"{m.group(0)} in >>{tag(m.start())}, its place is >>{allowed}"


def names(name, text):
    if not name.endswith((".c", ".h")):
        return
    code = code_only(text)
    for m in re.finditer(r"#\s*define\s+(\w+)", code):
        if m.group(1).startswith("_") and m.group(1) not in FEATURES and name != REPLACES_BUILT_INS:
            yield line_of(text, m.start()), f"{m.group(1)} is a reserved name"
        if name in HEADERS and not re.match(r"PROF_|WITH_|NPUPROF_|npuprof_|_DEFAULT_SOURCE$|_GNU_SOURCE$", m.group(1)):
            yield line_of(text, m.start()), f"{m.group(1)} is no name of ours"
    for m in re.finditer(r"\b(?:struct|enum|union)\s+(_\w+)|(?<![\w.>])(_[a-z]\w*)\s*(?:\(|=[^=]|;|\[)", code):
        found = m.group(1) or m.group(2)
        if not found.startswith("__") and found not in ("_exit", *WINDOWS_CALLS):
            yield line_of(text, m.start()), f"{found} is a reserved name"
    for m in re.finditer(r"\btypedef\b[^;{]*\b(\w+_t)\s*;|\b(?:struct|enum|union)\s+(\w+_t)\b|\}\s*(\w+_t)\s*;|\b(npuprof\w*_t)\b", code):
        yield line_of(text, m.start()), f"{m.group(0)} ends in _t"
    if name.startswith("examples/"):
        for m in re.finditer(r"\b(?:npuprof\w*_|NPUPROF_\w*_|PROF_\w*_)\b", code):
            yield line_of(text, m.start()), f"{m.group(0)} is private to the headers"


def text(name, content):
    for number, line in enumerate(content.split("\n"), 1):
        if line[-1:] in (" ", "\t", "\r"):
            yield number, "white space at the end"
        if "\t" in line and name.endswith((".c", ".h", ".py", ".mjs")):
            yield number, "a tab"
        if re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b", line) and name not in ("tools/house.py", "tests/house/test_style.py"):
            yield number, "an open end"
    if content and not content.endswith("\n"):
        yield content.count("\n") + 1, "no newline at the end"
    if name.endswith((".c", ".h", ".py", ".mjs")) and not re.search("SPDX-License-Identifier: ", content[:1500]) and "enerated" not in content[:500] \
            and "/data/" not in f"/{name}":
        yield 1, "no licence line"


CHECKS = (sections, places, names, text)


def files():
    """(name, text) of every text of the repository; what is no UTF-8 has None."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if not path.is_file() or {".git", "build", "__pycache__"} & set(parts) or path.suffix not in TEXTS or path.stat().st_size > 4 << 20:
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            try:
                yield path.relative_to(ROOT).as_posix(), data.decode("utf-8")
            except UnicodeDecodeError:
                yield path.relative_to(ROOT).as_posix(), None


def findings(name, content, checks=CHECKS):
    if content is None:
        return [f"{name}:1: text: not UTF-8"]
    found = []
    for check in checks:
        if check in (names,) and "data" in name.split("/"):
            continue
        found += [f"{name}:{line}: {check.__name__}: {what}" for line, what in check(name, content)]
    return found


def main():
    found = [line for name, content in files() for line in findings(name, content)]
    print("\n".join(found) if found else "the house is in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
