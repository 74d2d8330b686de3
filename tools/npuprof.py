#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command, as it is in a clone and as bin/npuprof of an installation; the package npuprof has everything.

Why so few words: a Python that is too old must be able to read this file, to say so."""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit("npuprof: needs Python 3.11 or newer; %s is older" % sys.executable)

HERE = os.path.dirname(os.path.realpath(__file__))
for FOLDER in HERE, os.path.join(os.path.dirname(HERE), "lib", "npuprof"):
    if os.path.exists(os.path.join(FOLDER, "npuprof", "__main__.py")):
        sys.path.insert(0, FOLDER)
        break

if __name__ == "__main__":
    try:
        from npuprof.__main__ import main
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
