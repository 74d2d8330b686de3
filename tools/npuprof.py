#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command; the package npuprof beside this file has everything."""

import gc
import sys

from npuprof.cli import main

if __name__ == "__main__":
    # Why: a trace is millions of objects and no cycles; looking for cycles takes a third of the time.
    gc.disable()
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
