# SPDX-License-Identifier: MIT
"""Law 1, by the compiler: each part compiles alone in each language and on each side it is built for."""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

WARNINGS = """-Wall -Wextra -Wshadow -Wconversion -Wundef -Werror -Wno-unused-function -Wno-unused-variable
    -Wno-unused-const-variable""".split()
FIRMWARE = ["-ffreestanding", "-DNPUPROF_FREESTANDING", "-DNPUPROF_NOW()=0u", "-DNPUPROF_NOW_HZ=1000000"]
MINGW = "x86_64-w64-mingw32-gcc"
C_STANDARDS = ("c99", "c11")
CXX_STANDARD = "c++11"
PUBLIC = "public/"
WINDOWS_ONLY, NOT_WINDOWS = r"os/windows", r"os/(linux|posix)|npu/(linux|posix)"


def compilers():
    """(how it is called, command, standards): for C, C++ and, if there is one, Windows."""
    found = [("C", shlex.split(os.environ.get("CC", "cc")), C_STANDARDS),
             ("C++", shlex.split(os.environ.get("CXX", "c++")) + ["-x", "c++"], (CXX_STANDARD,))]
    if shutil.which(MINGW):
        found.append(("Windows", [MINGW, "-DWIN32_LEAN_AND_MEAN"], ("c11",)))
    return found


def missing():
    return [] if shutil.which(MINGW) else [MINGW]


def ways(part, kind, is_top, quick=False):
    """(how, command) for each way in which this part must compile. is_top: no other includes it.
    Other languages, and Windows outside os/, are for those alone. Why: they compile the others, too, and an
    include that a part lacks is missing in C11 as well."""
    path = part.removeprefix("src/")
    for system, command, standards in compilers():
        if re.match(WINDOWS_ONLY if system != "Windows" else NOT_WINDOWS, path):
            continue
        for standard in standards:
            for side in ("hosted", "firmware"):
                if kind not in ("both", side) or side == "firmware" and system == "Windows":
                    continue
                other_language = standard != "c11" or system == "Windows"
                if other_language and not (is_top or system == "Windows" and path.startswith("os/")):
                    continue
                if quick and (other_language or kind == "both" and side == "firmware"):
                    continue
                flags = FIRMWARE if side == "firmware" else []
                flags = flags + ([] if path.startswith(PUBLIC) else ["-DNPUPROF_IMPLEMENTATION"])
                flags += [f"-std={standard}", "-fsyntax-only", *WARNINGS]
                yield f"{side} {system} {standard}", command + flags


def compile_alone(root, folder, part, how, command):
    """(file, line, what) for each error when nothing comes before this part; also in what it includes."""
    source = folder / (f"{part} {how}".replace("/", "_").replace(" ", "_") + ".c")
    source.write_text(f'#include "{root / part}"\n', encoding="utf-8")
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, errors="replace",
                          check=False, env={**os.environ, "LC_ALL": "C"})
    found = []
    for line in done.stderr.split("\n"):
        m = re.match(r"(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", line)
        if m:
            file = os.path.relpath(m.group(1), root)
            alone = "alone" if file == part else f"alone in {part}"
            found.append((file, int(m.group(2)), f"does not compile {alone}, {how}: {m.group(3)}"))
    if done.returncode and not found:
        found.append((part, 1, f"does not compile alone, {how}: {done.stderr.strip()[:200]}"))
    return found


def alone(tree, root, wanted=lambda part: True, quick=False):
    """All parts in all their ways; quick: once each, as C11."""
    included = {file for part in tree.parts for _, file in tree.includes(part)}
    jobs = [(part, how, command) for part in tree.parts if tree.room(part) and wanted(part)
            for how, command in ways(part, tree.room(part).kind, part not in included, quick)]
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            results = list(pool.map(lambda job: compile_alone(root, pathlib.Path(folder), *job), jobs))
    seen = set()
    for finding in (finding for found in results for finding in found):
        if finding[:2] not in seen:    # one finding a line: the other parts and ways say the same
            seen.add(finding[:2])
            yield finding
