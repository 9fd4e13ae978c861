"""Runs CPython's own tests and prints each one's outcome."""
import os
import sys
import unittest

try:
    import test.support
    import test.test_generators
except ImportError:
    print("the tests are not installed", flush=True)
    os._exit(0)

# An embedded interpreter does not know the program that tests start as a subprocess.
if executable := os.environ.get("SPARK_TEST_EXECUTABLE"):
    sys.executable = sys._base_executable = executable


# Places where the shadow stack did not hold as many functions as ran, and how many were looked at.
astray = []
compared = 0


def compare(place):
    """With a session, `depth` tells how many functions are followed."""
    global compared
    if "depth" not in globals():
        return
    running, frame = 0, sys._getframe()
    while frame:
        running, frame = running + 1, frame.f_back
    compared += 1
    if depth() != running:
        astray.append((place, depth(), running))


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def note(self, test, outcome):
        self.outcomes[test.id()] = outcome

    def startTest(self, test):
        super().startTest(test)
        self.outcomes.setdefault(test.id(), "passed")
        compare("before " + test.id())

    def stopTest(self, test):
        compare("after " + test.id())
        super().stopTest(test)

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "error")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "unexpected")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.note(test, "failed")


# Its subprocess, in which nothing of ours runs, recurses until an interrupt ends it; one that comes in the wrong moment does not, and it goes on for ever.
ENDLESS = "test_print_exception_gh_102056"


def load(modules):
    import test.test_threading as threads

    for kind in vars(threads).values():
        if isinstance(kind, type) and ENDLESS in vars(kind):
            setattr(kind, ENDLESS, unittest.skip("it may never end")(vars(kind)[ENDLESS]))
    return [unittest.defaultTestLoader.loadTestsFromName("test." + name) for name in modules.split()]


def run(modules):
    for suite in load(modules):
        result = Result()
        suite.run(result)
        for test, outcome in sorted(result.outcomes.items()):
            print("outcome", test, outcome, flush=True)
        for test, text in result.failures + result.errors:
            print(test, text, file=sys.stderr, flush=True)
