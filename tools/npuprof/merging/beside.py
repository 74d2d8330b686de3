# SPDX-License-Identifier: MIT
"""A trace beside what the kernel's tracer wrote meanwhile: the options, and how every command reads both."""

import contextlib
import sys
import tempfile

from ..base.messages import Refused
from ..read import load
from .together import Together


def add_kernel_arguments(parser):
    group = parser.add_argument_group("what the kernel's tracer wrote meanwhile: see tools/README.md")
    group.add_argument("--ftrace", metavar="FILE",
                       help="on the trace's host: the text of tracefs, of trace-cmd report -t or of perf "
                            "script --ns, or a trace.dat. Then no trace is needed")
    group.add_argument("--ftrace-clock", choices=("mono", "boot", "x86-tsc"),
                       help="the trace_clock that it was recorded with (default: as its clock markers tell, "
                            "else mono)")
    group.add_argument("--ftrace-devices", action="append", default=[], metavar="FILE.toml",
                       help="which lines of other drivers tell of jobs")


def kernel_arguments(arguments):
    """What Together wants to know of them. Refuses those that have no text."""
    if not arguments.ftrace and (arguments.ftrace_clock or arguments.ftrace_devices):
        raise Refused("--ftrace-clock and --ftrace-devices say how to read a text: give it with --ftrace")
    return {"ftrace": arguments.ftrace, "clock": arguments.ftrace_clock, "devices": arguments.ftrace_devices}


def only_trace(paths, arguments):
    """The one trace of a command line, None if the text of --ftrace stands alone. Refuses other counts."""
    if len(paths) > 1:
        raise Refused("--ftrace: with one trace at a time: `merge` puts several beside a text")
    if not paths and not arguments.ftrace:
        raise Refused(f"usage: npuprof {arguments.command} TRACE, or --ftrace FILE: no trace is given")
    return paths[0] if paths else None


@contextlib.contextmanager
def beside(path, arguments):
    """(the path of a JSON file, what the converter said about damage) of a trace, None for none, and the text
    of --ftrace, until the block ends. What the user should know of the text goes to stderr."""
    shown = path or arguments.ftrace
    together = Together(shown, [path] if path else [], **kernel_arguments(arguments))
    with tempfile.NamedTemporaryFile(prefix="npuprof-", suffix=".json") as file:
        together.write(file)
        file.flush()
        print(*together.sentences(), sep="\n", file=sys.stderr)
        yield file.name, "".join(part.damage for part in together.parts)


def loaded(path, arguments):
    """As read.load(), with the text of --ftrace if there is one; path: None without a trace."""
    layers = getattr(arguments, "layers", None)
    if not arguments.ftrace:
        kernel_arguments(arguments)
        return load(path, progress=True, layers=layers)
    with beside(path, arguments) as (merged, damage):
        trace = load(merged, progress=True, layers=layers)
    # Why the file stays open: arguments of spans are read from it when they are asked for.
    trace.path, trace.damage = path or arguments.ftrace, damage
    return trace
