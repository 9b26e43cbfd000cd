"""Starts samovard and samovar-http in front of it, stops them, and looks at them."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import scripted_model
from raw import Server

ROOT = Path(__file__).resolve().parents[2]
TEASPOON = ROOT / "models" / "teaspoon-q8_0.gguf"
KEYS = {"a-key-of-anna-0123456789": "anna", "a-key-of-berta-0123456789": "berta"}
PATIENCE = 20                       # seconds until a program that was started must answer
STARTED = []                        # all pairs of this process
# The counts are asked for often, and all from one user; answers may become very long.
DAEMON = ["--threads", 1, "--kv-bytes", "512M", "--uid-connects-burst", 65536, "--uid-connects-per-s", 65536,
          "--uid-prompt-bytes", "16G"]
LENGTHS = {"teaspoon": 4096, "scripted": scripted_model.CONTEXT}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, true, seconds=PATIENCE, alive=()):
    """Waits until `true()` is. A program of `alive` that ends is the end of waiting."""
    deadline = time.monotonic() + seconds
    while not true():
        for program in alive:
            if program.poll() is not None:
                raise AssertionError("%s ended with %d while waiting: %s" % (
                    program.args[0], program.returncode, what))
        if time.monotonic() > deadline:
            raise AssertionError("not within %d seconds: %s" % (seconds, what))
        time.sleep(0.01)


class Pair:
    """A daemon and a bridge. `model`: teaspoon or scripted, whose context may be shorter. With keys they have two principals."""

    def __init__(self, build, model, keys=KEYS, daemon=(), bridge=(), context=scripted_model.CONTEXT):
        self.build, self.model = Path(build), model
        self.folder = Path(tempfile.mkdtemp(prefix="samovar-clients-"))
        STARTED.append(self)
        self.socket, self.port = self.folder / "sock", free_port()
        self.address = "127.0.0.1"
        self.programs, self.more = {}, {"daemon": daemon, "bridge": bridge}
        self.keys, self.context = keys, context
        if keys:
            listed = "".join("%s %s\n" % pair for pair in keys.items())
            (self.folder / "keys").write_text(listed)
            (self.folder / "keys").chmod(0o600)
        self.start_daemon()
        self.start_bridge()

    # -- programs

    def _start(self, name, arguments):
        log = open(self.folder / (name + ".log"), "ab")
        self.programs[name] = subprocess.Popen([str(part) for part in arguments], stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log, cwd=self.folder)
        log.close()

    def start_daemon(self):
        if self.model == "teaspoon":
            model = "%s=teaspoon" % TEASPOON
        else:
            model = self.folder / "scripted.gguf"
            if not model.exists():
                scripted_model.write(model, context=self.context)
            model = "%s=scripted" % model
        more = ["--gateway", os.getuid()] if self.keys else []
        self._start("daemon", [self.build / "daemon" / "samovard", "--model", model, *DAEMON,
                               "--socket", self.socket, *more, *self.more["daemon"]])
        self._until("daemon", "it listens", self.daemon_answers)

    def _until(self, name, what, true):
        try:
            until(what, true, alive=[self.programs[name]])
        except AssertionError as error:
            raise AssertionError("%s: %s\n%s" % (name, error, self.log(name)[-2000:])) from None

    def daemon_answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return self.status() is not None

    def start_bridge(self):
        more = ["--keys", self.folder / "keys"] if self.keys else []
        self._start("bridge", [self.build / "bridge" / "samovar-http", "--config", "none", "--listen",
                               "%s:%d" % (self.address, self.port), "--socket", self.socket, *more,
                               *self.more["bridge"]])
        self._until("bridge", "it serves", self.healthy)

    def healthy(self):
        try:
            return Server(self.port).get("/health", timeout=5).status == 200
        except OSError:
            return False

    def kill(self, name):
        program = self.programs.pop(name)
        program.kill()
        program.wait()

    def stop(self, name):
        """Its exit status, or that of SIGKILL if it does not end when it is told to."""
        program = self.programs.pop(name)
        program.terminate()
        try:
            return program.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            program.kill()
            return program.wait()

    def pause(self, name):
        self.programs[name].send_signal(signal.SIGSTOP)

    def go_on(self, name):
        self.programs[name].send_signal(signal.SIGCONT)

    def end(self):
        for name in list(self.programs):
            self.programs[name].send_signal(signal.SIGCONT)
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name):
        return (self.folder / (name + ".log")).read_text(errors="replace")

    # -- what they say

    def status(self):
        """The daemon's counts, by its own command."""
        run = subprocess.run([self.build / "cli" / "samovar", "status", "--json", "--socket", self.socket],
                             capture_output=True, timeout=PATIENCE)
        return json.loads(run.stdout) if run.returncode == 0 else None

    def alive(self):
        """How many requests run or wait."""
        return self.status()["requests"]["open"]

    def streams(self):
        """The rows of `samovar ps`: streams that run or wait."""
        run = subprocess.run([self.build / "cli" / "samovar", "ps", "--json", "--socket", self.socket],
                             capture_output=True, timeout=PATIENCE, check=True)
        return json.loads(run.stdout)["streams"]

    def until_idle(self):
        until("no request is alive", lambda: self.alive() == 0)

    # -- where to ask

    def server(self, number=0):
        """The bridge, with the first key, or another one."""
        return Server(self.port, list(self.keys)[number] if self.keys else None)

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    @property
    def key(self):
        return next(iter(self.keys)) if self.keys else "none"
