# SPDX-License-Identifier: MIT
"""The command npuprof, also as python3 -m npuprof."""

import gc
import os
import sys


def main():
    """Runs the command line of this process, and returns its exit code."""
    # Why: what is opened must not take the number of a closed standard stream.
    for number in 0, 1, 2:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w", encoding="utf-8")
                              for stream in (sys.stdout, sys.stderr))
    # Why: a trace is millions of objects and no cycles; looking for cycles takes a third of the time.
    gc.disable()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from . import cli
        return cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
