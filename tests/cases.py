# SPDX-License-Identifier: MIT
"""Runs the unittest cases of one Python file and prints the protocol's lines (see run.py): cases.py FILE
[NAME...]

A NAME is a case, such as Class.test_name; without one, all cases of the part that NPUPROF_TEST_PART names."""
import importlib.util
import os
import pathlib
import resource
import sys
import unittest

import helpers  # noqa: F401 - brings the folders that tests import from


def cpu():
    """Seconds of CPU so far, of this process and those it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.cpu_before = cpu()

    def startTest(self, test):
        super().startTest(test)
        self.bad_before = len(self.failures) + len(self.errors)

    def line(self, status, test, why=""):
        name = test.id() if "(" in test.id() else test.id().split(".", 1)[-1]
        name = name.replace(":", ";")
        why = " ".join(why.split())
        print(f"{status} {name}" + (f": {why}" if why else ""), flush=True)

    def addSuccess(self, test):
        # Why: a case whose subTest failed is not a success, and unittest says nothing of it here.
        if len(self.failures) + len(self.errors) == self.bad_before:
            used = cpu() - self.cpu_before                     # with the fixtures of the class
            self.line("ok", test, f"{used:.1f} s" if used >= 0.1 else "")

    def stopTest(self, test):
        super().stopTest(test)
        self.cpu_before = cpu()

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("skip", test, reason)

    def bad(self, test, err):
        print(self._exc_info_to_string(err, test))
        said = str(err[1]).strip().splitlines()
        self.line("FAIL", test, said[0][:300] if said else err[0].__name__)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.bad(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.bad(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad(subtest, err)

    def addExpectedFailure(self, test, err):
        self.line("ok", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.line("FAIL", test, "passes although it is marked as an expected failure")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def wanted(case, part):
    method = getattr(case, case._testMethodName, None)
    thorough = getattr(method, "thorough", False) or getattr(type(case), "thorough", False)
    return not part or thorough == (part == "rest")


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def main():
    try:
        module = load(pathlib.Path(sys.argv[1]))
    except unittest.SkipTest as reason:
        print(f"skip all: {reason}")
        return 0
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(sys.argv[2:],
                                      module) if sys.argv[2:] else loader.loadTestsFromModule(module)
    result = Result()
    part = os.environ.get("NPUPROF_TEST_PART")
    unittest.TestSuite(case for case in flat(suite) if wanted(case, part)).run(result)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
