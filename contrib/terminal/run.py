"""Runs the tests of this folder: the functions `test_...` of all its modules.

    run.py BUILD [--list] [NAME ...]

NAME is a module, or a part of a test's name.  A test takes a Place (place.py).  Each test runs in a
process of its own, which is ended with all that it started after a minute.  A test that cannot run
here raises Skip.  The last line is `N passed, N failed, N skipped`.
"""
import argparse
import importlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
from place import Place, Skip  # noqa: E402

HERE = Path(__file__).resolve().parent
LIMIT = 60                          # seconds of a test
SKIPPED = 77


def modules():
    return [path.stem for path in sorted(HERE.glob("*.py")) if path.stem != "run"]


def load(names):
    """[(module, function)] of those that are named."""
    tests = []
    for name in modules():
        module = importlib.import_module(name)
        tests += [(name, function) for key, function in vars(module).items()
                  if key.startswith("test_") and function.__module__ == name]
    return [(module, function) for module, function in tests
            if not names or module in names or any(
                name in function.__name__ for name in names if name not in modules())]


def run_here(function, build):
    """In a process of its own; its exit status."""
    os.setpgid(0, 0)
    place = Place(build)
    try:
        function(place)
    except Skip as skip:
        print("  skipped: %s" % skip)
        return SKIPPED
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        place.show()
        return 1
    finally:
        sys.stdout.flush()
        place.close()
    return 0


def run(function, build):
    child = os.fork()
    if not child:
        status = 1
        try:
            status = run_here(function, build)
        finally:
            sys.stdout.flush()
            os._exit(status)
    deadline, ended = time.monotonic() + LIMIT, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child, signal_number)
        except ProcessLookupError:
            pass
    if not ended:
        os.waitpid(child, 0)
        print("  not over within %d seconds" % LIMIT)
        return 1
    return os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    counts = {0: 0, 1: 0, SKIPPED: 0}
    for module, function in load(arguments.names):
        name = "%s: %s" % (module, function.__name__.removeprefix("test_"))
        if arguments.list:
            print(name)
            continue
        sys.stdout.flush()
        status = run(function, arguments.build.resolve())
        status = status if status in counts else 1
        counts[status] += 1
        print({0: "ok   ", 1: "FAIL ", SKIPPED: "skip "}[status] + name, flush=True)
    if not arguments.list:
        print("%d passed, %d failed, %d skipped" % (counts[0], counts[1], counts[SKIPPED]))
    sys.exit(1 if counts[1] else 0)


main()
