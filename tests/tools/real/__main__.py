# SPDX-License-Identifier: MIT
"""Real drivers by hand: threads and a device that takes real time, run with and without a change.

usage: python3 tests/tools/real [--rounds N] [--style STYLE]... [--idle | --loaded] [--ftrace] [--write]

Prints what halving the device's time brings the median inference, what the tool says, and how often its
intervals hold, and then each that does not. --write: puts the table into tools/README.md. A round is two
pairs of runs: as it is and with a faster device, as it is and with less work of the host. --ftrace: the five
ways to block, beside the kernel's text, which needs root.
"""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[3] / "tools"), str(HERE.parents[2])]

import helpers                                                             # noqa: E402
from grid import publish                                                   # noqa: E402
from real import runs, score                                               # noqa: E402


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--style", action="append", choices=runs.STYLES)
    for option in ("idle", "loaded", "ftrace", "write"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    program, found = helpers.build("real_driver.c", "real_driver"), ([], [])
    with tempfile.TemporaryDirectory() as folder:
        for loaded in (False, True):
            left_out = options.idle if loaded else options.loaded
            for case in () if left_out else runs.cases(loaded, options.ftrace):
                if case.style in (options.style or runs.STYLES):
                    found[loaded].append(runs.tried(program, case, options.rounds, pathlib.Path(folder)))
    text = score.table(*found)
    print(text)
    for one in (*found[0], *found[1]):
        for line in score.details(one):
            print(line)
    if options.write:
        publish.put(publish.KERNEL if options.ftrace else publish.REAL, text)


if __name__ == "__main__":
    main()
