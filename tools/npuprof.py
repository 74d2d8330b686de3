#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""npuprof: the command for device headers and traces.

    npuprof.py gen DEVICE.toml -o HEADER [--check]    C header from a device description
    npuprof.py check TRACE.json [...]                 test traces against the rules of the viewers

Exit codes: 0 all well; 1 the answer is no (check: a rule is broken; gen --check: the header is stale);
2 wrong usage, or an input or output that cannot be used; 130 interrupted; 141 the reader of the output went away.

A subcommand is a module npuprof_<name>.py beside this file with a docstring (its --help),
add_arguments(parser) and run(arguments) -> exit code, and one entry in COMMANDS. It raises Refused, with the
one line to print, where it cannot go on.
"""

import argparse
import os
import sys

import npuprof_check
import npuprof_gen
from npuprof_common import Refused

COMMANDS = {"gen": npuprof_gen, "check": npuprof_check}


def main(argv=None):
    """Runs one command line and returns its exit code. Wrong usage raises SystemExit(2), as argparse does."""
    parser = argparse.ArgumentParser(prog="npuprof.py", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        module.add_arguments(commands.add_parser(
            name, help=module.__doc__.partition("\n")[0], description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter))
    arguments = parser.parse_args(argv)
    try:
        code = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return code
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Why: Python flushes stdout once more at exit and would print a traceback there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
