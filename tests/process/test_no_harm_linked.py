# test: time=300 - does no harm when it is linked: programs that Debian ships as objects or as source, some
# with their own tests, built with and without a recorder; what they show is the same, off and recording
# SPDX-License-Identifier: MIT
import functools
import os
import pathlib
import shlex
import unittest

import helpers
from helpers import ROOT, run, scratch
from process import test_no_harm

DOC, LIB = "/usr/share/doc", "/usr/lib/x86_64-linux-gnu"
PYTHON = "/usr/lib/python3.11/config-3.11-x86_64-linux-gnu"
BASH = ("-shared -fPIC -DHAVE_CONFIG_H -DSHELL -I/usr/lib/bash -I/usr/include/bash "
        f"-I/usr/include/bash/include -I/usr/include/bash/builtins {DOC}/bash/examples/loadables")
PNG = f"{DOC}/libpng-dev/examples/pngtest"
NETTLE = f"-DUNUSED= -DNORETURN= '-DPRINTF_STYLE(a,b)=' -I/usr/include/nettle {DOC}/nettle-dev/examples"
OWN_TESTS = """test_atexit test_errno test_fcntl test_mmap test_resource test_openpty
test_signal.PosixTests test_signal.PendingSignalsTests.test_sigpending test_thread.LockTests
test_subprocess.POSIXProcessTestCase.test_preexec test_os.FDInheritanceTests test_ctypes.test_errno"""

# name: (the package, what is built: program and words of the compiler, a command for the shell). A recorder
# of the C library's calls is linked with what is shipped as objects; of sources all functions are recorded.
PROGRAMS = {
    "python3": ("libpython3.11-testsuite", {
        "python": f"-no-pie -Wl,-E {PYTHON}/python.o {PYTHON}/libpython3.11.a -lexpat -lz -lm -ldl"},
        "export PYTHONHOME=/usr; python -m unittest "
        + " ".join("test." + name for name in OWN_TESTS.split())
        + " 2>&1 | sed 's/ in [0-9.]*s$//'; python -c '"
        + test_no_harm.PROGRAMS["python3"][1].replace("'", '"') + "'"),
    "perl": ("libperl-dev", {
        "perl": f"perlmain.c -I{LIB}/perl/5.36/CORE -D_FILE_OFFSET_BITS=64 -fno-strict-aliasing -fwrapv "
                f"{LIB}/libperl.a -Wl,-E -lm -ldl -lcrypt"},
        test_no_harm.PROGRAMS["perl"][1] + """
perl -MPOSIX -Mthreads -MTest::More -MTime::HiRes=usleep -e 'my @t = map { my $n = $_;
threads->create(sub { usleep 100; $n * $n }) } 1..8;
is_deeply([map { $_->join } @t], [1, 4, 9, 16, 25, 36, 49, 64]);
ok(!defined(POSIX::close(99)) && $! == POSIX::EBADF); done_testing; kill "TERM", $$'"""),
    "tclsh": ("tcl8.6-dev", {
        "tcl": f"-I/usr/include/tcl8.6 /usr/share/tcltk/tcl8.6/tclAppInit.c {LIB}/libtcl8.6.a "
               "-Wl,-E -lz -lm -ldl"},
        """tcl 2>&1 <<'end'
puts [info patchlevel]
after 5 {set done 1}
vwait done
puts [exec echo child | tr a-z A-Z]
puts fds=[llength [glob /proc/self/fd/*]]
puts [catch {open /none} m]/$m/$errorCode
puts [zlib crc32 abc]
load nothing.so
exit 5
end"""),
    "zlib's own tests": ("zlib1g-dev", {
        "example": f"{DOC}/zlib1g-dev/examples/example.c -lz",
        "enough": f"{DOC}/zlib1g-dev/examples/enough.c"},
        "example foo.gz && ls -l foo.gz | cut -c1-10; enough 30 9 15"),
    "minigzip": ("zlib1g-dev", {
        "minigzip": f"{DOC}/zlib1g-dev/examples/minigzip.c {LIB}/libz.a -static",
        "gun": f"{DOC}/zlib1g-dev/examples/gun.c -lz", "zpipe": f"{DOC}/zlib1g-dev/examples/zpipe.c -lz"},
        """zpipe <input.txt >z; zpipe -d <z | cmp - input.txt; minigzip input.txt; gun -t input.txt.gz
minigzip -d input.txt.gz && sha256sum input.txt; minigzip none; exec 1>&-; minigzip -c input.txt"""),
    "pngtest": ("libpng-dev", {"pngtest": f"-I/usr/include/libpng16 {PNG}.c -lpng16 -lz"},
                f"pngtest -m {PNG}.png; pngtest input.txt"),
    "xz": ("liblzma-dev", {
        "one": f"{DOC}/liblzma-dev/examples/01_compress_easy.c {LIB}/liblzma.a",
        "two": f"{DOC}/liblzma-dev/examples/02_decompress.c -llzma",
        "threads": f"{DOC}/liblzma-dev/examples/04_compress_easy_mt.c {LIB}/liblzma.a"},
        """one 6 <input.txt | sha256sum; threads <input.txt >t.xz; two t.xz | cmp - input.txt
two input.txt; one x"""),
    "expat": ("libexpat1-dev", {
        "outline": f"{DOC}/libexpat1-dev/examples/outline.c {LIB}/libexpat.a -lm",
        "elements": f"{DOC}/libexpat1-dev/examples/elements.c -lexpat"},
        "echo '<a b=\"c\"><d/><e>f</e></a>' | tee x | outline; elements <x; outline <input.txt"),
    "nettle": ("nettle-dev", {
        "sha": f"{NETTLE}/sha-example.c -lnettle",
        "keygen": f"{NETTLE}/rsa-keygen.c {DOC}/nettle-dev/examples/io.c -lhogweed -lnettle -lgmp"},
        "sha <input.txt; keygen -r none -o key; keygen -x 2>&1"),
    "bash's own plugins": ("bash-builtins", {
        f"{name}.so": f"{BASH}/{name}.c" for name in ("cut", "csv", "tee", "stat")}, """
for one in cut csv tee stat; do enable -f ${PATH%%:*}/$one.so $one || echo no $one; done
cut -d' ' -f2 input.txt | sha256sum; csv 'a,"b c",d'; echo "${CSV[1]}"; tee x y <input.txt | md5sum
stat -A s input.txt; echo ${s[size]}; enable -d cut; enable -d csv; enable -d tee
cut -d' ' -f1 x | head -n 2; echo fds=$(ls /proc/self/fd | wc -l); exit 7"""),
}


@functools.cache
def recorder(name):
    """An object that holds npuprof: with a recorder of the C library's calls, or for all functions."""
    source = helpers.PROGRAMS / "harmless.c" if name == "calls" else scratch() / "auto.c"
    if name == "auto":
        source.write_text('#define NPUPROF_IMPLEMENTATION\n#define NPUPROF_AUTO\n#include "npuprof.h"\n')
    path = scratch() / f"{name}.o"
    run([*helpers.CC, "-O0", "-D_GNU_SOURCE", "-DNPUPROF_NO_REPORTS", "-I", ROOT, "-fPIC", "-c", source, "-o",
         path], code=0)
    return path


def built(name, linked):
    """The folder of a program's tools, built with npuprof or without."""
    package, tools, _ = PROGRAMS[name]
    folder = scratch() / ("with" if linked else "without") / name.split()[0]
    folder.mkdir(parents=True, exist_ok=True)
    for tool, flags in tools.items():
        words = shlex.split(flags)
        sources = [word for word in words if word.endswith((".c", ".o"))]
        if "perlmain.c" in sources:
            done = run(["perl", "-MExtUtils::Miniperl", "-e", "writemain(@ARGV)", "DynaLoader"])
            (folder / "perlmain.c").write_text(done.stdout)
        elif not all(pathlib.Path(source).exists() for source in sources):
            raise unittest.SkipTest(f"{package} is not installed")
        if linked:
            objects = any(word.endswith(".o") for word in words) or name == "perl"
            words += [] if objects else ["-finstrument-functions"]
            words += [recorder("calls" if objects else "auto")]
        run([*helpers.CC, "-w", "-O1", "-D_GNU_SOURCE", *words, "-o", folder / tool, "-pthread"], code=0,
            cwd=folder)
    return folder


class Linked(unittest.TestCase):
    def check(self, name):
        path = os.environ["PATH"]
        with_, without = ({"PATH": f"{built(name, linked)}:{path}"} for linked in (True, False))
        test_no_harm.same(self, name, ["bash", "-c", PROGRAMS[name][2]], without, with_)


def case(name):
    def test(self):
        self.check(name)
    return test if name == "expat" else helpers.thorough(test)


for one in PROGRAMS:
    setattr(Linked, "test_" + one.replace(" ", "_").replace("'", ""), case(one))
