"""Runs the tests in a browser; see Tests/browser."""

import argparse
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).parent


class Result(unittest.TextTestResult):
    """Tells for each test how long it took."""

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def getDescription(self, test):
        return f"{type(test).__name__}: {test.shortDescription() or test.id()}"

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok  {time.monotonic() - self.began:.1f} s")


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    parser = argparse.ArgumentParser(description="Tests of both pages in headless Chromium.")
    parser.add_argument("--only", metavar="NAME", default="",
                        help="only tests whose module, name or description holds NAME")
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    from case import Browsers

    found = flat(unittest.defaultTestLoader.discover(str(HERE)))
    tests = [test for test in found
             if arguments.only.lower() in f"{test.id()} {test.shortDescription()}".lower()]
    if not tests:
        sys.exit(f"no test is named {arguments.only}")
    try:
        runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
        result = runner.run(unittest.TestSuite(tests))
    except KeyboardInterrupt:
        for test in tests:
            test.doCleanups()
        raise
    finally:
        Browsers.quit()
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
