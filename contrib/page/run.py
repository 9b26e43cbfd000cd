#!/usr/bin/env python3
"""Runs the tests of this folder: functions `test_...` of the modules `test_*.py`.

    run.py BUILD [--list] [NAME ...]

NAME is a module without `test_`, or a part of a test's name.  A test takes what its parameters name:
`browser`, a server (SERVERS below), `fake` (a server that answers as the test says), `elsewhere` (one
that must not be asked), or `build` if it starts servers of its own.  A test with the parameter `size`
runs at the width of a desktop and at that of a phone.  It fails, too, if a script of the page throws,
or if the browser reports a violation of the content policy.  The last line is
`N passed, N failed, N skipped`.
"""
import argparse
import importlib
import inspect
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

from browser import SIZES, Browser, Skip  # noqa: E402
from fake_server import Elsewhere, Fake  # noqa: E402
from servers import KEYS, STARTED, Pair, until  # noqa: E402
import loopback  # noqa: E402

LIMIT = 400                         # seconds of a test, which a stuck browser would exceed; the longest takes 45
# Streams that are resumed are long here, and many.
DAEMON = ("--uid-resumable-bytes", "16G", "--uid-resumable", 1024)
SERVERS = {
    "scripted": lambda build: Pair(build, "scripted", keys=None, daemon=DAEMON),
    "teaspoon": lambda build: Pair(build, "teaspoon", keys=None, daemon=DAEMON),
    "keyed": lambda build: Pair(build, "scripted", keys=KEYS, daemon=DAEMON),
}


class Test:
    def __init__(self, module, function, size=None):
        self.module, self.function, self.size = module, function, size
        self.name = function.__name__.removeprefix("test_")
        self.wants = list(inspect.signature(function).parameters)

    @property
    def words(self):
        return self.name.replace("_", " ") + (" [%s]" % self.size if self.size else "")


def modules():
    return [path.stem.removeprefix("test_") for path in sorted(HERE.glob("test_*.py"))]


def load(names):
    tests = []
    for short in modules():
        module = importlib.import_module("test_" + short)
        for name, function in vars(module).items():
            if not name.startswith("test_") or getattr(function, "__module__", "") != module.__name__:
                continue
            if names and short not in names and not any(part in name for part in names):
                continue
            sizes = SIZES if "size" in inspect.signature(function).parameters else [None]
            tests += [Test(short, function, size) for size in sizes]
    return tests


class Bench:
    """What the tests take.  Servers start when the first test wants them."""

    def __init__(self, build):
        self.build, self.browser, self.servers, self.own = build, None, {}, []

    @staticmethod
    def is_sound(pair):
        """A test that failed may have ended a program, or left a stream that runs on."""
        if len(pair.programs) < 2 or any(program.poll() is not None for program in pair.programs.values()):
            return False
        try:
            until("no request is alive", lambda: pair.alive() == 0, seconds=3)
        except (AssertionError, TypeError):
            return False
        return pair.healthy()

    def bridge(self):
        """Serves the files of the page to the fakes."""
        return self.server("scripted")

    def server(self, name):
        pair = self.servers.get(name)
        if pair and not self.is_sound(pair):
            pair.end()
            pair = None
        if not pair:
            pair = self.servers[name] = SERVERS[name](self.build)
        return pair

    def get(self, want, test):
        if want == "size":
            return test.size
        if want == "build":
            return self.build
        if want == "browser":
            if not self.browser or not self.browser.chromium.is_connected():
                self.browser = Browser()
            return self.browser
        if want in ("fake", "elsewhere"):
            self.own.append(Fake(self.bridge()) if want == "fake" else Elsewhere())
            return self.own[-1]
        return self.server(want)

    def tidy(self):
        """After each test."""
        for server in self.own:
            server.end()
        self.own.clear()
        return self.browser.complaints() if self.browser else []

    def end(self):
        if self.browser:
            self.browser.close()
        for pair in STARTED:
            pair.end()


def on_alarm(number, frame):
    raise TimeoutError("the test took longer than %d seconds" % LIMIT)


def run(bench, test):
    """ok, skip or NOT, the seconds, and what to print."""
    began, state, text, notes = time.monotonic(), "ok", "", None
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(LIMIT)
    started = len(STARTED)
    try:
        notes = test.function(*[bench.get(want, test) for want in test.wants])
    except Skip as why:
        state, text = "skip", str(why)
    except Exception:
        state, text = "NOT", traceback.format_exc()
    signal.alarm(0)
    found = bench.tidy()
    kept = bench.servers.values()
    for pair in STARTED[started:]:
        if pair not in kept:
            pair.end()
            STARTED.remove(pair)
    if found and state == "ok":
        state, text = "NOT", "the browser complained:\n" + "\n".join(found)
    return state, time.monotonic() - began, text or notes or ""


def report(test, state, seconds, text):
    print("%-4s %5.1f s  %s: %s%s" % (state, seconds, test.module, test.words,
                                      " (%s)" % text if text and state != "NOT" else ""))
    if state == "NOT":
        lines = text.rstrip().split("\n")
        print("\n".join("        " + line[:600] for line in (lines[:18] + lines[-12:] if len(lines) > 30 else lines)))
    sys.stdout.flush()


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("build")
    ask.add_argument("names", nargs="*")
    ask.add_argument("--list", action="store_true")
    args = ask.parse_args()
    tests = load(args.names)
    if args.list:
        print("\n".join("%s: %s" % (test.module, test.words) for test in tests))
        return 0
    if os.environ.get("OWN_NETWORK"):
        loopback.up()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))    # so what was started is ended
    began, counts = time.monotonic(), {"ok": 0, "NOT": 0, "skip": 0}
    failed = []
    with tempfile.TemporaryDirectory(prefix="samovar-page-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        bench = Bench(args.build)
        try:
            for test in tests:
                state, seconds, text = run(bench, test)
                report(test, state, seconds, text)
                counts[state] += 1
                if state == "NOT":
                    failed.append("%s: %s" % (test.module, test.words))
        finally:
            bench.end()
    if failed:
        print("\nfailed:\n" + "\n".join("    " + name for name in failed))
    print("%.0f seconds" % (time.monotonic() - began))
    print("%d passed, %d failed, %d skipped" % (counts["ok"], counts["NOT"], counts["skip"]))
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
