#!/usr/bin/env python3
"""Runs the tests of this folder: functions `test_...` of the modules `test_*.py`.

    run.py BUILD [--list] [NAME ...]

NAME is a module without `test_`, or a part of a test's name.  A test takes the servers that its
parameters name (`teaspoon`, `scripted`), or `build` if it starts its own.  Each test runs in a
process of its own, which is ended with all that it started after a minute.  The last line is
`N passed, N failed, N skipped`.
"""
import argparse
import importlib
import inspect
import os
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

from servers import STARTED, Pair

HERE = Path(__file__).resolve().parent
LIMIT = 60                          # seconds of a test
ASKED_FOR = {"agents", "templates"}  # modules that run only if they are named
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def raise_loopback():
    """In a network namespace of its own nothing but the loopback device is there, and it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        import fcntl
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def offline():
    """Environment in which no client looks for the world outside, nor finds keys of a user."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "HOME", "TMPDIR", "OWN_NETWORK", "SAMOVAR_DATA") if name in os.environ}
    os.environ.clear()
    os.environ.update(keep)
    os.environ.update({"NO_PROXY": "*", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false",
                       "LITELLM_TELEMETRY": "False", "DO_NOT_TRACK": "1", "PYTHONWARNINGS": "ignore"})


class Test:
    def __init__(self, module, function):
        self.module, self.function = module, function
        self.name = function.__name__.removeprefix("test_")
        self.wants = list(inspect.signature(function).parameters)
        self.limit = getattr(function, "limit", LIMIT)

    def named(self, names):
        if not names:
            return self.module not in ASKED_FOR
        return self.module in names or any(name in self.name for name in names if name not in modules())


def modules():
    return [path.stem.removeprefix("test_") for path in sorted(HERE.glob("test_*.py"))]


def load(names):
    """All tests that are named, and the modules that can not be imported."""
    tests, broken = [], []
    only = [name for name in names if name in modules()]
    for short in only if len(only) == len(names) and only else modules():
        if short in ASKED_FOR and short not in names:
            continue
        try:
            module = importlib.import_module("test_" + short)
        except Exception:
            broken.append((short, traceback.format_exc()))
            continue
        tests += [Test(short, function) for name, function in vars(module).items()
                  if name.startswith("test_") and callable(function) and function.__module__ == module.__name__]
    return [test for test in tests if test.named(names)], broken


def child(test, arguments):
    """In a process group of its own. The exit status tells how it went."""
    os.setsid()
    STARTED.clear()
    status = 1
    try:
        test.function(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    for pair in STARTED:
        pair.end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(test, arguments):
    """Whether the test passed, and how many seconds it took."""
    began, log = time.monotonic(), os.memfd_create(test.name)
    pid = os.fork()
    if pid == 0:
        os.dup2(log, 1)
        os.dup2(log, 2)
        child(test, arguments)
    status = None
    while time.monotonic() - began < test.limit:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        status = None
        time.sleep(0.01)
    try:
        os.killpg(pid, signal.SIGKILL)      # the test itself if it hangs, and what it left
    except ProcessLookupError:
        pass
    if status is None:
        os.waitpid(pid, 0)
    os.lseek(log, 0, 0)
    said = b""
    while piece := os.read(log, 65536):
        said += piece
    os.close(log)
    text = said.decode("utf-8", "replace")
    if status is None:
        text += "\nit took longer than %d seconds\n" % test.limit
    return status == 0, time.monotonic() - began, text


def report(test, passed, seconds, text):
    print("%-4s %5.1f s  %s: %s" % ("ok" if passed else "NOT", seconds, test.module, test.name.replace("_", " ")))
    if not passed:
        lines = text.rstrip().split("\n")
        print("\n".join("        " + line[:400] for line in lines[-25:]))
    sys.stdout.flush()


def main():
    with tempfile.TemporaryDirectory(prefix="samovar-clients-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            return run_all()
        finally:
            for pair in STARTED:
                pair.end()


def run_all():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("build")
    ask.add_argument("names", nargs="*")
    ask.add_argument("--list", action="store_true")
    args = ask.parse_args()
    sys.path.insert(0, str(HERE))
    offline()
    tests, broken = load(args.names)
    if args.list:
        print("\n".join("%s: %s" % (test.module, test.name) for test in tests))
        return 0
    if os.environ.get("OWN_NETWORK"):
        raise_loopback()
    pairs, failed, refused = {"build": args.build}, [], {}
    for name, trace in broken:
        print("NOT  the module %s can not be imported\n%s" % (name, trace))
        failed.append(name)
    for test in tests:
        for want in test.wants:
            if want not in pairs and want not in refused:
                try:
                    pairs[want] = Pair(args.build, want)
                except (AssertionError, OSError) as error:
                    refused[want] = "its server did not start"
                    print("%s did not start: %s" % (want, error))
        missing = [refused[want] for want in test.wants if want in refused]
        if missing:
            passed, seconds, text = False, 0, missing[0]
        else:
            passed, seconds, text = run(test, [pairs[want] for want in test.wants])
        report(test, passed, seconds, text)
        if not passed:
            failed.append(test.name)
            revive(pairs, args.build, test)
    total = len(tests) + len(broken)
    for name, pair in pairs.items():
        if name != "build" and "bridge" in pair.programs:
            status, total = pair.stop("bridge"), total + 1
            if status:
                failed.append("the_bridge_of_%s_ends_cleanly" % name)
                print("NOT  the bridge of %s ended with %d\n%s" % (name, status, pair.log("bridge")[-2000:]))
    if failed:
        print("\nfailed:\n" + "\n".join("    " + name for name in failed))
    print("%d passed, %d failed, 0 skipped" % (total - len(failed), len(failed)))
    return 1 if failed else 0


def revive(pairs, build, test):
    """A failed test may have ended or blocked a server. The next one gets a sound one."""
    for want in test.wants:
        pair = pairs.get(want)
        if pair is None or want == "build":
            continue
        dead = [name for name, program in pair.programs.items() if program.poll() is not None]
        for name in dead:
            print("        the %s of %s has ended with %d" % (name, want, pair.programs[name].returncode))
            print("\n".join("        " + line for line in pair.log(name).split("\n")[-15:]))
        if dead or not pair.healthy():
            pair.end()
            try:
                pairs[want] = Pair(build, want)
            except AssertionError as error:
                print("        it does not start again: %s" % error)


if __name__ == "__main__":
    sys.exit(main())
