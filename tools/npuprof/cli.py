# SPDX-License-Identifier: MIT
"""npuprof: the command for device headers and traces.

    npuprof.py gen DEVICE -o HEADER [--check]         C header from a device description, TOML or CMSIS-SVD
    npuprof.py check TRACE.json [...]                 test traces against the rules of the viewers
    npuprof.py convert TRACE -o FILE                  image to JSON or CSV, any trace to OTLP
    npuprof.py export TRACE --sqlite FILE             every span, argument and counter as a database
    npuprof.py report TRACE [--html F] [--csv F]      tables; a page; the Neural Engine sheet
    npuprof.py merge TRACE [...] -o OUT.json          processes, ranks and hosts on one timeline
    npuprof.py diff A B [--fail-above 5%]             which spans got slower, and how certain that is
    npuprof.py view TRACE                             open it in the Perfetto UI, from this machine
    npuprof.py top ARENA                              what a running program records, once a second

Exit codes: 0 all well; 1 the answer is no (check: a rule is broken; gen --check: the header is stale; diff
--fail-above: a span got slower); 2 wrong usage, or an input or output that cannot be used; 130 interrupted;
141 the reader of the output went away.

A subcommand is a module with a docstring (its --help), add_arguments(parser) and run(arguments), which
returns the exit code, and an entry in COMMANDS. If it cannot go on it raises Refused, with the line to print.
"""

import argparse
import contextlib
import os
import sys

from . import check, diff, merge, top, view
from .base.messages import Harmless, Refused
from .convert import command as convert
from .export import command as export
from .gen import command as gen
from .read.image import add_symbol_arguments, take_symbol_arguments
from .report import command as report

COMMANDS = {"gen": gen, "check": check, "convert": convert, "export": export, "report": report,
            "merge": merge, "diff": diff, "view": view, "top": top}
TOO_LARGE = {MemoryError: "there is not enough memory for this trace: use a larger machine, or a part of it",
             RecursionError: "the input is nested too deep: `check` names the place",
             OverflowError: "the input has a number that is too large: `check` names the event"}
NAME_FUNCTIONS = (convert, export, report, merge, diff, view, top)


def main(argv=None):
    """Runs one command line and returns its exit code. Wrong usage raises SystemExit(2), as argparse does."""
    parser = argparse.ArgumentParser(prog="npuprof.py", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        own = commands.add_parser(name, help=module.__doc__.partition("\n")[0], description=module.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(own)
        if module in NAME_FUNCTIONS:
            add_symbol_arguments(own)
    with contextlib.redirect_stdout(Harmless(sys.stdout)), contextlib.redirect_stderr(Harmless(sys.stderr)):
        return run(parser.parse_args(argv))


def run(arguments):
    """Runs a command and returns its exit code."""
    take_symbol_arguments(arguments)
    try:
        code = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return code
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    except (MemoryError, RecursionError, OverflowError) as error:
        print(f"{arguments.command}: {TOO_LARGE[type(error)]}; nothing was written", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Why: Python flushes stdout once more at exit and would print a traceback there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
