# SPDX-License-Identifier: MIT
"""npuprof: traces of programs that use an NPU, read, checked, compared and recorded.

    npuprof gen DEVICE -o HEADER [--check]         C header from a device description, TOML or CMSIS-SVD
    npuprof check TRACE.json [...]                 test traces against the rules of the viewers
    npuprof convert TRACE -o FILE                  image to JSON or CSV, any trace to OTLP
    npuprof export TRACE --sqlite FILE             every span, argument and counter as a database
    npuprof report TRACE [--html F] [--csv F]      tables; a page; the Neural Engine sheet
    npuprof merge TRACE [...] -o OUT.json          processes, ranks and hosts on one timeline
    npuprof diff A B [--fail-above 5%]             which spans got slower, and how certain that is
    npuprof view TRACE                             open it in the Perfetto UI, from this machine
    npuprof top ARENA                              what a running program records, once a second
    npuprof run [-o FILE] -- COMMAND               record a program that uses ITT or NVTX, as it is
    npuprof attach PID [-o FILE]                   record a program that is already running
    npuprof system-trace [-o F] [N | -- COMMAND]   what the Linux kernel sees of devices and threads
    npuprof counters [-o F] [N | -- COMMAND]       energy, clocks and memory of devices, sampled
    npuprof clock TRACE [-o FILE]                  do arrows between host and device go backwards; set right
    npuprof completion bash|zsh|fish               what the shell needs to complete all this

Exit codes: 0 all well; 1 the answer is no (check: a rule is broken; gen --check: the header is stale; diff
--fail-above: a span got slower); 2 wrong usage, or an input or output that cannot be used; 130 interrupted;
141 the reader of the output went away. Where a command is run, its exit code.

A subcommand is a module with a docstring (its --help), add_arguments(parser) and run(arguments), which
returns the exit code, and an entry in COMMANDS. If it cannot go on it raises Refused, with the line to print.
The module of another command is imported only where a command uses it: all of them take half a second.
"""

import argparse
import contextlib
import importlib
import os
import sys

from .base.built import version
from .base.messages import Harmless, Refused
from .parser import Parser
from .read.image import add_symbol_arguments, take_symbol_arguments

COMMANDS = {"gen": "gen.command", "check": "check", "convert": "convert.command", "export": "export.command",
            "report": "report.command", "merge": "merge", "diff": "diff", "view": "view", "top": "top",
            "run": "run", "attach": "attach.command", "system-trace": "system_trace",
            "counters": "counters.command", "clock": "clock.command", "completion": "completion"}
EXAMPLES = {
    "gen": ("gen npu.toml -o npu_regs.h", "gen --check npu.toml -o npu_regs.h"),
    "check": ("check t.json", "check run.npuprof --ftrace kernel.txt"),
    "convert": ("convert run.npuprof -o t.json", "zcat t.json.gz | npuprof convert - -o t.pftrace"),
    "export": ("export t.json --sqlite t.db",),
    "report": ("report t.json", "report t.json --table operators", "report t.json --html t.html",
               "report run.npuprof --verdict --fail-on sure", "report traces/ --jobs 4"),
    "merge": ("merge rank0.npuprof rank1.npuprof -o all.json",),
    "diff": ("diff before.json after.json --fail-above 5%",
             "diff b1.json b2.json b3.json --to a1.json a2.json a3.json --fail-above 5%"),
    "view": ("view t.json",),
    "top": ("top run.npuprof", "top 1234 --interval 0.5"),
    "run": ("run -o t.json -- ./program --its-option",),
    "attach": ("attach 1234 --seconds 10 -o t.json",),
    "system-trace": ("system-trace -o kernel.txt 10", "system-trace -o kernel.txt -- ./program"),
    "counters": ("counters -o power.json 10", "counters -o power.json -- ./program"),
    "clock": ("clock t.json", "clock profile.json --device 'stream' -o right.json"),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/npuprof",)}
TOO_LARGE = {MemoryError: "there is not enough memory for this trace: use a larger machine, or a part of it",
             RecursionError: "the input is nested too deep: `check` names the place",
             OverflowError: "the input has a number that is too large: `check` names the event"}
NAME_FUNCTIONS = ("convert", "export", "report", "merge", "diff", "view", "top", "attach")


class Version(argparse.Action):
    def __call__(self, parser, *_):
        print(f"npuprof {version()}")
        parser.exit()


def module_of(command):
    """The module that does it."""
    return importlib.import_module(f"{__package__}.{COMMANDS[command]}")


def make_parser(names=tuple(COMMANDS)):
    """The parser of the whole command line, or of these commands."""
    lines = __doc__.split("\n")
    parser = Parser(prog="npuprof", description=lines[0],
                    epilog="npuprof COMMAND --help says more, with examples. A trace may be - for standard "
                           "input, or a pipe.")
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in names:
        module = module_of(name)
        own = commands.add_parser(name, help=module.__doc__.partition("\n")[0], description=module.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(own)
        if name in NAME_FUNCTIONS:
            add_symbol_arguments(own)
        examples = "".join(f"\n  {'' if '|' in line else 'npuprof '}{line}" for line in EXAMPLES[name])
        own.epilog = f"{own.epilog or ''}\n\nexamples:{examples}".strip()
    return parser


def main(argv=None):
    """Runs one command line and returns its exit code. Wrong usage raises SystemExit(2), as argparse does."""
    with contextlib.redirect_stdout(Harmless(sys.stdout)), contextlib.redirect_stderr(Harmless(sys.stderr)):
        return run(argv)


def run(argv):
    """Runs a command line and returns its exit code."""
    command = "npuprof"
    try:
        arguments = parsed(argv)
        command = arguments.command
        take_symbol_arguments(arguments)
        code = module_of(command).run(arguments)
        sys.stdout.flush()
        return code
    except Refused as refused:
        say(refused)
        return 2
    except (MemoryError, RecursionError, OverflowError) as error:
        say(f"{command}: {TOO_LARGE[type(error)]}; nothing was written")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        end_of_output(sys.stdout)
        return 141


def parsed(argv):
    """The arguments of a command line."""
    argv = sys.argv[1:] if argv is None else argv
    # Why all of them for "completion": it describes them.
    is_one = bool(argv) and argv[0] in COMMANDS and argv[0] != "completion"
    parser = make_parser(argv[:1] if is_one else tuple(COMMANDS))
    try:
        arguments = parser.parse_args(argv, argparse.Namespace(parser=parser))
        if not arguments.command:
            parser.error("no command is given")
        return arguments
    except SystemExit:
        sys.stdout.flush()
        raise


def say(sentence):
    """Prints the last words on stderr. What stdout still holds is printed before, or cannot be."""
    try:
        sys.stdout.flush()
    except (Refused, BrokenPipeError):
        end_of_output(sys.stdout)
    try:
        print(sentence, file=sys.stderr, flush=True)
    except (Refused, BrokenPipeError):
        end_of_output(sys.stderr)


def end_of_output(stream):
    """Why: Python flushes once more at exit and would print a traceback there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
