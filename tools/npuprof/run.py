# SPDX-License-Identifier: MIT
"""Records a command that uses ITT or NVTX, or npuprof.h, without a change: npuprof run -- ./program

ITT is in oneTBB, oneDNN, OpenVINO, LLVM's OpenMP and PyTorch; NVTX in CUDA's libraries and what uses them.
The command gets three environment variables: INTEL_LIBITTNOTIFY64 and NVTX_INJECTION64_PATH name
build/libnpuprof-collect.so (`make tools`), NPUPROF_OUTPUT_PATH says where the trace goes. All other variables
of npuprof work as always: NPUPROF_LEVEL, NPUPROF_CATEGORIES, NPUPROF_WHEN_FULL ...

Input, output, exit code and signals are the command's own. When it has ended, stderr gets one or two lines:
how many spans came by which API, what was lost, and what the APIs said that npuprof cannot hold, by kind. If
several processes recorded, each has a file of its own, with its number before the extension.

Exit code: the command's; if a signal ended it, the same signal ends this. 127: there is no such command;
126: it cannot be run; 2: nothing was started.
"""

import collections
import os
import pathlib
import re
import signal
import sys

from .base.built import BUILD, remedy
from .base.files import renamed
from .base.losses import counted
from .base.messages import Refused
from .base.metadata import sources
from .read import load

COLLECTOR = BUILD / "libnpuprof-collect.so"
NOT_HELD = "npuprof.collect.not_held."      # in the metadata: what the APIs said and npuprof cannot hold
FRAME = "ITT frame"                         # the category of spans that ITT gave with both their times
# What somebody may send to this process and means for the command.
PASSED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}


def add_arguments(parser):
    parser.add_argument("-o", "--output", default="trace.json", metavar="FILE",
                        help="the trace: .json or .npuprof (default trace.json)")
    parser.add_argument("program", nargs="...", metavar="-- COMMAND", help="the command with its arguments")


def run(arguments):
    words = arguments.program[arguments.program[:1] == ["--"]:]
    if not words:
        raise Refused("run: no command is given: npuprof run -- ./program")
    if not COLLECTOR.exists():
        raise Refused(f"{COLLECTOR}: not built, and run needs it: {remedy()}")
    target = pathlib.Path(arguments.output).absolute()
    if target.suffix not in (".json", ".npuprof"):
        raise Refused(f"{arguments.output}: unknown extension, write .json or .npuprof")
    if target.exists() and not target.is_file() or not os.access(target.parent, os.W_OK | os.X_OK):
        raise Refused(f"{arguments.output}: not a file in a folder that can be written to: name another")
    before = traces_beside(target)
    try:
        code = outcome(words, environment(target))
    except OSError as error:
        print(f"{words[0]}: cannot be started: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    say(arguments.output, target, sorted(traces_beside(target) - before), code)
    if code < 0:
        end_by_signal(-code)
    return code


def environment(target):
    """What the command gets. Why a number of the process: it may start others, each with a trace."""
    path = str(target.with_name(f"{target.stem}-")).replace("%", "%%") + "%p" + target.suffix
    return {**os.environ, "NPUPROF_OUTPUT_PATH": path, "INTEL_LIBITTNOTIFY64": str(COLLECTOR),
            "NVTX_INJECTION64_PATH": str(COLLECTOR)}


def traces_beside(target):
    """The files of single processes, each with what tells it from an older one of the same name. A second
    number: npuprof.h is in the process twice, and the program does not export its own."""
    shape = re.compile(re.escape(f"{target.stem}-") + r"\d+(-\d+)?" + re.escape(target.suffix))
    with os.scandir(target.parent) as entries:
        return {(entry.name, entry.inode(), entry.stat().st_mtime_ns) for entry in entries
                if shape.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)}


# ---- The command


def outcome(words, env):
    """Runs the command, and passes signals on: its exit code, or -n if signal n ended it.

    What the terminal sends goes to the command by itself, so only what a process sent is passed on."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED | {signal.SIGCHLD})
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:      # then nobody would learn the exit code
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Why these two: Python ignores them.
    ignored_here = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        sys.stdout.flush()
        process = os.posix_spawnp(words[0], words, env, setsigmask=mask, setsigdef=ignored_here)
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            told = signal.sigwaitinfo(PASSED | {signal.SIGCHLD})
            if told.si_signo != signal.SIGCHLD and told.si_code <= 0:
                os.kill(process, told.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def end_by_signal(number):
    """Ends this process as the command ended. Why no core: that of the command is there, if one is wanted."""
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.flush()
    sys.stderr.flush()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


# ---- What it saw


def say(name, target, written, code):
    if not written and code < 0:
        print(f"npuprof: nothing is written: signal {-code} ended the program. What it records stays with "
              "NPUPROF_ARENA_PATH=t.npuprof in the environment", file=sys.stderr)
    elif not written:
        print("npuprof: nothing recorded: the program uses neither ITT nor NVTX nor npuprof.h. Mark its code "
              f"with npuprof.h; if it does use one of them, try LD_PRELOAD={COLLECTOR}", file=sys.stderr)
    if len(written) == 1:
        renamed(target.parent / written[0][0], target)
        say_of(name, target)
        return
    for own, *_ in written:
        say_of(os.path.join(os.path.dirname(name), own), target.parent / own)


def say_of(name, path):
    """One line of spans by API, and one of losses if there are any."""
    try:
        trace = load(path)
    except Refused as refused:
        print(f"npuprof: {name} is written, and cannot be read: {refused}", file=sys.stderr)
        return
    spans, events = counts(trace)
    apis = ["ITT", "NVTX"] + ["npuprof.h"] * bool(spans["npuprof.h"] or events["npuprof.h"])
    texts = [f"{spans[api]} spans" + f" and {events[api]} events" * bool(events[api]) + f" by {api}"
             for api in apis]
    print(f"npuprof: {name}: {', '.join(texts)}", file=sys.stderr)
    lost = counted(trace.metadata.get("lost"))
    told = {**trace.metadata.get("user", {}), **{own.name: own.values[-1] for own in trace.counters}}
    held = {key.removeprefix(NOT_HELD): count for key, count in told.items() if key.startswith(NOT_HELD)}
    parts = [f"{word}: " + ", ".join(f"{count} {cause}" for cause, count in found.items())
             for word, found in (("lost", lost), ("not held", held)) if found]
    if parts:
        print(f"npuprof: {name}: {'; '.join(parts)}", file=sys.stderr)


def counts(trace):
    """(spans, events) by API. The source of a name says by which it came."""
    places = sources(trace.metadata)

    by_name = {name: found for (name, _), found in places.items()}

    def api(found, cat=""):
        source = next(iter(found or ()), "").partition(":")[0]
        return "ITT" if cat == FRAME else source if source in ("ITT", "NVTX") else "npuprof.h"

    spans, events = collections.Counter(), collections.Counter()
    for (name, cat), count in collections.Counter(zip(trace.name, trace.cat)).items():
        key = trace.names[name], trace.names[cat]
        spans[api(places.get(key), key[1])] += count
    for event in trace.instants:
        events[api(places.get((event.name, event.cat)))] += 1
    for counter in trace.counters:
        if counter.name.startswith(NOT_HELD):
            continue
        events[api(by_name.get(counter.name))] += len(counter.values)
    return spans, events
