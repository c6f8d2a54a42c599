"""Runs the tests of carriers, or measures; see Tests/carriers."""

import argparse
import concurrent.futures
import pathlib
import signal
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).absolute().parent
AT_ONCE = 6


class Result(unittest.TextTestResult):
    """Tells for each test how long it took, after what it says itself."""

    def startTest(self, test):
        self.began = time.monotonic()
        unittest.TestResult.startTest(self, test)
        self.stream.writeln(f"{type(test).__name__}: {test.shortDescription() or test.id()}")

    def _end(self, word):
        sys.stdout.flush()
        self.stream.writeln(f"    {word}  {time.monotonic() - self.began:.1f} s")

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self._end("ok")

    def addFailure(self, test, error):
        unittest.TestResult.addFailure(self, test, error)
        self._end("FAILED")

    def addError(self, test, error):
        unittest.TestResult.addError(self, test, error)
        self._end("FAILED")

    def addSkip(self, test, reason):
        unittest.TestResult.addSkip(self, test, reason)
        self._end(f"skipped, because {reason}")


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def beside_each_other(tests):
    """Runs each test in a process, some at once: they mostly wait. Yields whether each was fine."""
    def run(test):
        return subprocess.run(
            [sys.executable, "-B", str(HERE / "run.py"), "--only", test.id()],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = [pool.submit(run, test) for test in tests]
        ended = []
        for result in concurrent.futures.as_completed(results):
            done = result.result()
            print(done.stdout.split("\n\n-----")[0] if done.returncode == 0 else done.stdout)
            ended.append(done.returncode == 0)
    print(f"{sum(ended)} of {len(ended)} tests are fine")
    return ended


def main():
    parser = argparse.ArgumentParser(description="Tests of carriers with real processes.")
    parser.add_argument("--only", metavar="NAME", default="",
                        help="only tests whose module, name or description holds NAME")
    parser.add_argument("--figures", action="store_true", help="measures instead; prints a table")
    arguments = parser.parse_args()
    sys.path[:0] = [str(HERE), str(HERE.parent / "Member")]
    # What was made on the host is removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.stdout.reconfigure(line_buffering=True)
    if arguments.figures:
        import figures

        sys.exit(figures.main(arguments.only))
    found = flat(unittest.defaultTestLoader.discover(str(HERE)))
    tests = [test for test in found
             if arguments.only.lower() in f"{test.id()} {test.shortDescription()}".lower()]
    if not tests:
        sys.exit(f"no test is named {arguments.only}")
    if len(tests) > 1:
        sys.exit(not all(beside_each_other(tests)))
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
    sys.exit(not runner.run(unittest.TestSuite(tests)).wasSuccessful())


if __name__ == "__main__":
    main()
