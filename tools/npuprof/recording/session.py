# SPDX-License-Identifier: MIT
"""start, stop, get, clear, dump: one recording of the process, for code that has no `with` block around it.
AWS RAF's profiler has these names, and programs written for it find its JSON in get()."""

import os

from .library import check, library
from .profile import profile


def start(prof_level=1):
    """Records up to that level. What was recorded before stays."""
    check(library.load().start(prof_level), f"level {prof_level!r}")


def stop():
    library.load().stop()


def clear():
    """Forgets what is recorded so far."""
    library.load().clear()


def load():
    """What is recorded so far, as npuprof.load() gives it."""
    library.load()
    return profile().load()


def get():
    """What is recorded so far as an object: {"traceEvents": [...], "displayTimeUnit": "ms"}. Each span is two
    events, B and E, with name, cat, ts (whole us since the epoch), args.args_string, pid and tid. Reading
    changes nothing; a second get() gives the same."""
    trace, found = load(), []
    for i in range(len(trace)):
        track, args = trace.tracks[trace.track[i]], trace.args(i)
        text = args.get("args_string", ";".join(f"{key}: {value}" for key, value in args.items()))
        begin = trace.base_ns + trace.start[i]
        for phase, ns in (("B", begin), ("E", begin + trace.dur[i])):
            found.append({"name": trace.names[trace.name[i]], "cat": trace.names[trace.cat[i]], "ph": phase,
                          "ts": ns // 1000, "args": {"args_string": text}, "pid": os.getpid(),
                          "tid": track.name or track.tid})
    return {"traceEvents": found, "displayTimeUnit": "ms"}


def dump(filename="profile.json"):
    """Writes what is recorded so far: .npuprof, .csv, and .json as npuprof has it."""
    library.load()
    profile().dump(filename)
