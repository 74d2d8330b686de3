# test: time=400 - does no harm: programs of Debian with a library that records in them, off, on, into a file
# and as a stream: exit codes, outputs, descriptors, signals, errno, stack and files are as without it
# SPDX-License-Identifier: MIT
import functools
import hashlib
import os
import re
import shutil
import sys
import unittest

import helpers
from helpers import environment, run, scratch

# name: (what must be installed, a command for the shell). Each prints and writes the same at each run.
PROGRAMS = {
    "python3": (sys.executable, """
import ctypes, json, os, resource, signal, subprocess, sys, threading
status = open('/proc/self/status').read().split('\\n')
print([line for line in status if line.startswith(('SigBlk', 'SigIgn', 'SigCgt', 'Threads'))])
print('fds=%d' % len(os.listdir('/proc/self/fd')), resource.getrlimit(resource.RLIMIT_STACK),
      threading.stack_size())
libc = ctypes.CDLL(None, use_errno=True)
ctypes.set_errno(77)
print(libc.write(-1, b'x', 1), ctypes.get_errno(), libc.close(-1), ctypes.get_errno())
hits = []
signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
threads = [threading.Thread(target=lambda: [os.getenv('HOME') for _ in range(50)]) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
os.kill(os.getpid(), signal.SIGUSR1)
child = os.fork()
if not child:
    os.write(1, b'child'); os._exit(7)
print(hits, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(subprocess.run(['kill -TERM $$'], shell=True).returncode, subprocess.run(['false']).returncode)
r, w = os.pipe(); os.close(r)
try: os.write(w, b'x')
except BrokenPipeError as error: print(error)
sys.stdout.flush(); os.close(1); sys.exit(3)"""),
    "bash": ("bash", """
ulimit -s; exec 7>seven; echo to seven >&7; echo fds=$(ls /proc/self/fd | wc -l);
trap 'echo caught' USR1; kill -USR1 $$
(exit 5); echo $?; sleep 0.01 & wait $!; echo a | cat | tr a b; exec 1>&-; echo x; exit 9"""),
    "perl": ("perl", """perl -e '$SIG{ALRM} = sub { print "alarm\\n" }; alarm 1;
select undef, undef, undef, 1.2;
print join(",", map { $_ * $_ } 1..9), "\\n"; opendir D, "/proc/self/fd";
print "fds=", scalar(grep /^\\d/, readdir D), "\\n";
open F, "<", "/none" or print "$!\\n"; $p = fork; exit 4 unless $p; waitpid $p, 0;
print $? >> 8, "\\n"; die "end\\n"'"""),
    "git": ("git", """
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
git -c init.defaultBranch=main init -q r && cd r && git config user.name a && git config user.email a@b
cp ../input.txt . && git add . && git commit -q -m one
sort input.txt > o && git add o && git commit -q -m two
git log --stat --format=%H; git fsck --full 2>&1; git gc -q; git rev-list --objects --all | sort;
git show nothing"""),
    "xz": ("xz", """xz -k -T2 input.txt; xz -t input.txt.xz && xz -dc input.txt.xz | sha256sum
xz -t input.txt"""),
    "gzip": ("gzip", """gzip -nk9 input.txt && zcat input.txt.gz | cmp - input.txt && sha256sum *.gz
gzip -t input.txt"""),
    "zstd": ("zstd", "zstd -qT2 -19 --long input.txt; zstd -dc input.txt.zst | sha256sum; zstd -t input.txt"),
    "tar": ("tar", "tar --mtime=@0 --owner=0 --group=0 --numeric-owner -czf t.tgz input.txt; tar -tvf t.tgz; "
                   "tar -xOf t.tgz | sha256sum; tar -xf nothing.tar"),
    "sort": ("sort", "sort --parallel=4 -S1M -k2n input.txt | sha256sum; sort -c input.txt; yes | head -n 3; "
                     "sort nothing"),
    "jq": ("jq", "jq -n '[range(3000)] | map(select(. % 7 == 0)) | add'; echo '{' | jq .; jq -n '1/0'; "
                 "jq -n 'env.HOME | length > 0, input'; "
                 "printf '.a\\n{\"a\":1}\\n1\\n\\n%%%%FAIL\\n{\\nx\\n' | jq --run-tests"),
    "openssl": ("openssl", """openssl dgst -sha512 input.txt
openssl enc -aes-128-cbc -K 00 -iv 00 -in input.txt 2>&1 | sha256sum
openssl prime 7919; openssl dgst nothing 2>&1 | sed 's/^[0-9A-F]*://'"""),
    "node": ("node", """node -e 'const fs = require("fs"), { Worker } = require("worker_threads");
console.log(fs.readFileSync("input.txt").length,
    require("crypto").createHash("md5").update("a").digest("hex"));
new Worker("require(\\"worker_threads\\").parentPort.postMessage(process.argv.length)", { eval: true })
    .on("message", m => { console.log(m); fs.writeFileSync("n.txt", "x"); process.exitCode = 6; });'"""),
    "tcc": ("tcc", """printf '#include <stdio.h>\\nint main(void){printf("%%d",6*7);return 42;}' > c.c
tcc c.c -o c && ./c; echo $?; tcc -run c.c; echo $?; rm -f c; tcc nothing.c"""),
    "sqlite3": ("sqlite3", """sqlite3 t.db 'PRAGMA journal_mode=WAL; CREATE TABLE t(a);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) INSERT INTO t SELECT i*i FROM n;
SELECT sum(a) FROM t; PRAGMA integrity_check;'; sqlite3 t.db 'SELECT nothing'"""),
    "bc": ("bc", "echo 'scale=300; 4*a(1)' | bc -l | md5sum; echo '1/0' | bc 2>&1"),
    "busybox": ("busybox", """busybox sh -c 'trap "echo caught" USR1; kill -USR1 $$; seq 9 | wc -l
busybox sha256sum input.txt; busybox awk "{n += \\$1} END {print n}" input.txt; busybox gzip -k input.txt
busybox vi nothing.txt </dev/null >/dev/null 2>&1; (exit 4); echo $?; ulimit -s; busybox none; exit 8'"""),
    "awk and find": ("awk", """
awk '{n[$1 % 7] += $2} END {for (i = 0; i < 7; i++) print i, n[i]; system("exit 3")}' input.txt
find . -name '*.txt' -exec wc -c {} + ; sed -n '5,7p;9q5' input.txt"""),
}
FDS = re.compile(r"fds=(\d+)")      # how many descriptors are open
MODES = {
    "off": {}, "json": {"NPUPROF_OUTPUT_PATH": "%s/t-%%p.json"},
    "mapped": {"NPUPROF_ARENA_PATH": "%s/t-%%p-%%i.npuprof", "NPUPROF_WHEN_FULL": "keep-newest",
               "NPUPROF_ARENA_BYTES": "1M"},
    "stream": {"NPUPROF_OUTPUT_PATH": "%s/t-%%p-%%i.npuprof", "NPUPROF_WHEN_FULL": "stream",
               "NPUPROF_ARENA_BYTES": "1M"},
}


@functools.cache
def library():
    """The library for LD_PRELOAD."""
    path = scratch() / "libharmless.so"
    run([*helpers.CC, "-O2", "-D_GNU_SOURCE", "-I", helpers.ROOT, "-fPIC", "-shared",
         helpers.PROGRAMS / "harmless.c", "-o", path, "-pthread", "-ldl"], code=0)
    return path


def outcome(words, mode, **more):
    """What the program shows of itself in this mode; None: without the library."""
    folder, traces = scratch() / "run", scratch() / "traces"
    for path in (folder, traces):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    lines = (f"{i * 7919 % 4001} {i * i % 997} line\n" for i in range(6000))
    (folder / "input.txt").write_text("".join(lines))
    if mode is not None:
        more.update({key: value.replace("%s", str(traces)).replace("%%", "%")
                     for key, value in MODES[mode].items()})
    done = run(words, cwd=folder, env=environment(HOME=str(folder), LC_ALL="C", **more))
    files = {str(path.relative_to(folder)): (path.stat().st_mode,
                                             hashlib.sha256(path.read_bytes()).hexdigest())
             for path in folder.rglob("*") if path.is_file() and ".git/" not in str(path)}
    return (done.returncode, done.stdout, done.stderr, files), list(traces.iterdir())


def same(test, name, words, without, linked):
    """Checks that a command shows the same in the environment without the library and, in each mode, with
    it."""
    expected, _ = outcome(words, None, **without)
    test.assertNotEqual(expected[1], "", expected)
    for mode in MODES:
        found, traces = outcome(words, mode, **linked)
        # A mapped arena and a stream keep one descriptor.
        kept = mode in ("mapped", "stream")
        for now, before in zip(FDS.findall(found[1]), FDS.findall(expected[1])):
            test.assertIn(int(now) - int(before), (0, kept), (name, mode))
        test.assertEqual((found[0], FDS.sub("", found[1]), *found[2:]),
                         (expected[0], FDS.sub("", expected[1]), *expected[2:]), (name, mode))
        test.assertEqual(bool(traces), mode != "off", (name, mode))
        test.assertEqual([path for path in traces if path.suffix == ".tmp"], [], mode)


class NoHarm(unittest.TestCase):
    def check(self, name):
        tool, command = PROGRAMS[name]
        helpers.need(tool)
        words = [tool, "-c", command] if name == "python3" else ["bash", "-c", command]
        same(self, name, words, {}, {"LD_PRELOAD": str(library())})


def case(name):
    """The test of a program; that of bash is quick."""
    def test(self):
        self.check(name)
    return test if name == "bash" else helpers.thorough(test)


for one in PROGRAMS:
    setattr(NoHarm, "test_" + one.replace(" ", "_"), case(one))
