# SPDX-License-Identifier: MIT
"""The grid by hand.

usage: python3 tests/tools/grid [--seed S] [--predictions N] [--details] [--misses K] [--write]

Prints how often the tool's intervals hold what the changed driver does. --details: also by question and by
value of each dimension. --misses: of each class the K worst that do not hold, with the dimensions it takes.
--write: puts the table into tools/README.md. What is published there is of seed 1 and 5000 predictions.
"""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[3] / "tools")]

from grid import publish, score                                            # noqa: E402
from grid.ask import is_missed, miss                                       # noqa: E402
from grid.reduce import smallest                                           # noqa: E402
from grid.shapes import class_of                                           # noqa: E402


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", default=publish.SEED)
    parser.add_argument("--predictions", type=int, default=publish.PREDICTIONS)
    parser.add_argument("--misses", type=int, default=0)
    for option in ("details", "write"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "grid.json"
        answers = publish.answers(options.seed, options.predictions, path)
        print(score.published(answers))
        for text in score.details(answers) if options.details else ():
            print("\n" + text)
        predictions, missed = [one for answer in answers for one in answer.predictions], {}
        for one in sorted(filter(is_missed, predictions), key=miss):
            missed.setdefault(class_of(one.case.shape), []).append(one)
        for name, found in sorted(missed.items()) if options.misses else ():
            print(f"\n{', '.join(name)}: {len(found)} misses")
            for one in reversed(found[-options.misses:]):
                print(score.said(smallest(one, path)), flush=True)
    if options.write:
        publish.write(answers)


if __name__ == "__main__":
    main()
