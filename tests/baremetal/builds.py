# SPDX-License-Identifier: MIT
"""The rigs that only compile: every compiler, ways to build and link, NPUPROF_OFF everywhere."""
import json
import re
import shutil

import helpers
from baremetal.base import BUILD, ROOT, WARNINGS, Skip, command
from helpers import PROGRAMS

# The compilers of this machine: command, language, standards.
COMPILERS = [(["gcc"], "c", "c99 c11 c17 c2x"), (["g++"], "c++", "c++11 c++14 c++17 c++20"),
             (["x86_64-w64-mingw32-gcc"], "c", "c99 c17")]
# Of a row of versions the oldest and the newest with all standards: those between have nothing of their own.
COMPILERS += [([f"clang-{n}"], language, standards if n in (14, 19) else standards.split()[0])
              for language, standards in (("c", "c99 c11 c17 c2x"), ("c++", "c++11 c++14 c++17 c++20"))
              for n in (14, 15, 16, 19)]
CONFIGURATIONS = [["-DNPUPROF_IMPLEMENTATION"], ["-DNPUPROF_OFF"], ["-DNPUPROF_STATIC"]]
CONFIGURATIONS += [["-DNPUPROF_FREESTANDING", "-DTEST_WITH_NOW", "-ffreestanding", *more]
                   for more in (["-DNPUPROF_IMPLEMENTATION"], ["-DNPUPROF_STATIC"])]


def compilers():
    """Every compiler, standard and configuration, without a warning."""
    lacking = [words[0] for words, *_ in COMPILERS if not shutil.which(words[0])]
    count = 0
    for words, language, standards in COMPILERS:
        for standard in standards.split() if words[0] not in lacking else ():
            for flags in CONFIGURATIONS:
                command([*words, "-x", language, f"-std={standard}", *WARNINGS, f"-I{ROOT}", "-fsyntax-only",
                         *flags, PROGRAMS / "every_macro.c"])
                count += 1
    print(f"   {count} cells of compiler, standard and configuration")
    if lacking:
        raise Skip(f"not installed: {' '.join(sorted(set(lacking)))} (Debian packages of these names, "
                   f"gcc-mingw-w64-x86-64)")


def builds():
    """Ways to build and link: each program runs and writes its trace."""
    folder = BUILD / "builds"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "implementation.c").write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                                             '#include "npuprof_npu.h"\n')
    (folder / "user.c").write_text('#include "npuprof.h"\nint f(int n);\n'
                                   'int f(int n) { PROF_FUNCTION(); PROF_COUNTER("n", n); return n + 1; }\n')
    (folder / "main.c").write_text('#include "npuprof.h"\n#ifdef __cplusplus\nextern "C"\n#endif\n'
                                   'int f(int n);\nint main(void)\n{\n    npuprof_start(1);\n'
                                   '    { PROF_SCOPE("main"); if (f(1) != 2) return 1; }\n'
                                   '    return npuprof_dump("t.json") == NPUPROF_OK ? 0 : 1;\n}\n')
    ways = {"gcc -O2 -flto": [], "gcc -Os -ffunction-sections -fdata-sections": ["-Wl,--gc-sections"],
            "gcc -O0 -static": [], "clang -O1": [], "g++ -O1 -fno-exceptions -fno-rtti": []}
    for way, link in ways.items():
        if not shutil.which(way.split()[0]):
            raise Skip(f"{way.split()[0]} is not installed")
        words, language = way.split(), ["-x", "c++", "-std=c++17"] if "++" in way else ["-std=gnu11"]
        objects = []
        for name in ("implementation", "user", "main"):
            objects.append(folder / f"{name}.o")
            extra = ["-Dmain_is_cpp"] if language[0] == "-x" else []
            source = folder / f"{name}.c"
            if extra and name == "user":
                source = folder / "user_cpp.c"
                source.write_text('extern "C" { int f(int n); }\n'
                                  + (folder / "user.c").read_text().replace("int f(int n);\nint f",
                                                                            'extern "C" int f'))
            command([*words, *language, *WARNINGS, f"-I{ROOT}", "-c", source, "-o", objects[-1]], 200)
        command([*words, *objects, *link, "-o", folder / "program", "-pthread"], 200)
        run_build(folder, way)
    # A shared library with the implementation, hidden but for what it says; and one with only a user, beside
    # a program that has it.
    hidden = ["gcc", "-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}"]
    command([*hidden, "-shared", folder / "implementation.c", "-fvisibility=default", "-o",
             folder / "libimplementation.so", "-pthread"], 200)
    command([*hidden, "-shared", "-fvisibility=default", folder / "user.c", "-o", folder / "libuser.so"])
    command(["gcc", "-std=gnu11", f"-I{ROOT}", folder / "main.c", f"-L{folder}", "-luser", "-limplementation",
             f"-Wl,-rpath,{folder}", "-o", folder / "program"])
    run_build(folder, "shared")
    # Hidden in a plugin with a copy of its own, private to it: the host program's is another.
    (folder / "plugin.c").write_text('#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                                     '__attribute__((visibility("default"))) int f(int n);\n'
                                     'int f(int n) { PROF_SCOPE("plugin"); return n + 1; }\n')
    command([*hidden, "-shared", folder / "plugin.c", "-o", folder / "libuser.so", "-pthread"], 200)
    left = command(["nm", "-D", "--defined-only", folder / "libuser.so"]).stdout
    if "npuprof" in left:
        raise AssertionError(f"-fvisibility=hidden shows {left}")


def run_build(folder, way):
    (folder / "t.json").unlink(missing_ok=True)
    command([folder / "program"], cwd=folder, env=helpers.environment())
    names = [e["name"] for e in json.loads((folder / "t.json").read_text())["traceEvents"] if e["ph"] in "XC"]
    function = "int f(int)" if "++" in way else "f"        # C++ says the class and the parameters, too
    if sorted(names) != sorted([function, "main", "n"]):
        raise AssertionError(f"{way}: {names}")


OFF_FREE = ["-ffreestanding", "-DNPUPROF_FREESTANDING"]
OFF = [(words, "", language, []) for words, language, _ in COMPILERS[:2] + COMPILERS[3:]] + [
    (["x86_64-w64-mingw32-gcc"], "x86_64-w64-mingw32-", "c", []), (["tcc"], "", "c", []),
    (["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0plus"], "arm-none-eabi-", "c", OFF_FREE),
    (["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4"], "arm-none-eabi-", "c", OFF_FREE),
    (["riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32"], "riscv64-unknown-elf-", "c", OFF_FREE),
    (["avr-gcc", "-mmcu=atmega1284p"], "avr-", "c", OFF_FREE),
    (["aarch64-linux-gnu-gcc"], "aarch64-linux-gnu-", "c", []),
    (["arm-linux-gnueabihf-gcc"], "arm-linux-gnueabihf-", "c", []),
    (["s390x-linux-gnu-gcc"], "s390x-linux-gnu-", "c", []),
    (["powerpc-linux-gnu-gcc"], "powerpc-linux-gnu-", "c", [])]


def off():
    """NPUPROF_OFF on every compiler: the same instructions as without the macros from -O1 up; at -O0 no
    symbol, string or call more."""
    count = 0
    lacking = set()
    for number, (words, prefix, language, flags) in enumerate(OFF):
        if not shutil.which(words[0]):
            lacking.add(words[0])
            continue
        folder = BUILD / "off" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        standard = ["-std=c++17" if language == "c++" else "-std=c11"] if words[0] != "tcc" else []
        for level in ("-O0",) if words[0] == "tcc" else ("-O0", "-O1", "-O2", "-Os"):
            # tcc inlines no function
            for api in ([], ["-DTEST_WITH_API"]) if words[0] != "tcc" else ([],):
                seen = []
                for way in ("-DNPUPROF_OFF", "-DTEST_PLAIN"):
                    (folder / way).mkdir(exist_ok=True)
                    path = folder / way / "sample.o"
                    kind = ["-x", language] if words[0] != "tcc" else []
                    command([*words, *kind, *standard, *flags, level, *api, way, f"-I{ROOT}", "-c",
                             PROGRAMS / "off_sample.c", "-o", path])
                    listing = re.sub(r"[ \t]+", " ", command([prefix + "objdump", "-dr", "--no-show-raw-insn",
                                                              path]).stdout.split("\n", 3)[3])
                    names = [line.split()[-1] for line in command([prefix + "nm", path]).stdout.splitlines()]
                    # of strings and sections; of kinds of code
                    names = sorted(n for n in names if not n.startswith((".", "L.", "$")))
                    calls = len(re.findall(r"\b(?:call[a-z]*|blx?|jalr?|brasl|rcall)\b", listing))
                    seen.append((listing if level != "-O0" else "", calls, names))
                    # Why not the strings there: they are arguments of inline functions, which only an
                    # optimiser takes away.
                    pattern = rb"npuprof|NPUPROF" if level == "-O0" and api else rb"zebra|npuprof|NPUPROF"
                    if way == "-DNPUPROF_OFF" and re.search(pattern, path.read_bytes()):
                        raise AssertionError(f"{words[0]} {language} {level}: something is left")
                # Why not the functions at -O0: a structure as an argument of a stub may be a memset there.
                if seen[0] != seen[1] and not (level == "-O0" and api):
                    kind = f"{' '.join(words)} {language} {level} {api}"
                    raise AssertionError(f"{kind}: off and without differ")
                count += 1
    print(f"   {count} objects alike")
    if lacking:
        raise Skip(f"not installed: {' '.join(sorted(lacking))}")
