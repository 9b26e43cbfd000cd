"""The place of a test: a folder of its own, daemons, and terminals with a model of their screens."""
import fcntl
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "contrib" / "clients"))
import scripted_model  # noqa: E402

PATIENCE = 20                       # seconds until something that must happen has happened
TEASPOON = ROOT / "models" / "teaspoon-q8_0.gguf"


class Skip(Exception):
    """This test cannot run here; the argument says why."""


def until(true, what):
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError("not within %d seconds: %s" % (PATIENCE, what))
        time.sleep(0.01)


class Screen(pyte.HistoryScreen):
    """Also notes what a program does to a terminal besides showing text, and lines that scrolled away."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows, history=100000, ratio=1)
        self.answers = []           # reports that were asked for

    def write_process_input(self, data):
        self.answers.append(data)

    def above(self):
        return ["".join(line[x].data for x in range(self.columns)).rstrip() for line in self.history.top]


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, arguments, env, rows=24, columns=80):
        self.screen = Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status = None
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.clear()
            os.environ.update(env)
            # The size must be there before the program asks for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(arguments[0], arguments)
        self.usual = termios.tcgetattr(self.fd)

    # -- what the program shows

    def pump(self, seconds=0.0):
        """Takes what the program writes: all that is there, and what comes in that time."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self.fd], [], [], left)[0]:
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return
            self.raw += data
            self.stream.feed(data)

    def lines(self):
        """The screen, without blanks at the ends of lines and without empty lines below."""
        lines = [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def text(self):
        return "\n".join(self.lines())

    def all_text(self):
        return "\n".join(self.screen.above() + self.lines())

    def cursor(self):
        return self.screen.cursor.y, self.screen.cursor.x

    def until(self, true, what):
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError("not within %d seconds: %s" % (PATIENCE, what))
            self.pump(0.02)

    def shows(self, text):
        self.until(lambda: text in self.text(), "the screen shows %r" % text)

    def last_line(self, text):
        self.until(lambda: self.lines() and self.lines()[-1] == text, "the last line is %r" % text)

    # -- what the user does

    def send(self, text):
        data = text.encode() if isinstance(text, str) else text
        while data:
            self.pump()
            if select.select([], [self.fd], [], 0.05)[1]:
                data = data[os.write(self.fd, data[:512]):]

    def paste(self, text):
        self.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def resize(self, rows, columns):
        self.pump(0.05)
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def kill(self, number):
        os.kill(self.pid, number)

    def ended(self):
        """Waits for the end of the program; its exit status, or that of a signal as negative."""
        def over():
            self.pump(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return pid
        if self.status is None:
            self.until(over, "the program ends")
        return self.status

    def mode(self):
        return termios.tcgetattr(self.fd)

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Daemon:
    def __init__(self, place, model, more):
        self.place, self.model, self.more = place, model, more
        self.socket = place.folder / "sock"
        self.process = None
        self.start()

    def start(self):
        log = open(self.place.folder / "daemon.log", "ab")
        self.process = subprocess.Popen(
            [str(part) for part in [self.place.build / "daemon" / "samovard", "--model", self.model,
                                    "--threads", 1, "--socket", self.socket, *self.more]],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        until(self.answers, "the daemon answers")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("the daemon ended: " + (self.place.folder / "daemon.log").read_text()[-2000:])
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)


class Place:
    def __init__(self, build):
        self.build = build
        self.folder = Path(tempfile.mkdtemp(prefix="samovar-terminal-"))
        self.terminals, self.daemons = [], []

    def env(self, **more):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder),
                "XDG_STATE_HOME": str(self.folder / "state"), "TERM": "xterm-256color",
                "LANG": "C.UTF-8", "TMPDIR": str(self.folder), **more}

    def daemon(self, *more, model=TEASPOON):
        self.daemons.append(Daemon(self, model, more))
        return self.daemons[-1]

    def scripted(self, scripts=None, *more, context=scripted_model.CONTEXT):
        """A daemon whose model says what a question asks for: `say NAME.` (contrib/clients/scripted_model.py)."""
        scripted_model.SCRIPTS.update(scripts or {})
        model = self.folder / "scripted.gguf"
        scripted_model.write(model, context=context)
        return self.daemon("--kv-bytes", "64M", *more, model=model)

    def terminal(self, *arguments, rows=24, columns=80, env=None):
        program = [str(self.build / "cli" / "samovar"), *map(str, arguments)]
        self.terminals.append(Terminal(program, self.env(**(env or {})), rows, columns))
        return self.terminals[-1]

    def needs_libedit(self):
        if b"libedit.so" not in (self.build / "cli" / "samovar").read_bytes():
            raise Skip("samovar is built without libedit")

    def run(self, *arguments, env=None, **more):
        """Runs samovar without a terminal."""
        return subprocess.run([str(self.build / "cli" / "samovar"), *map(str, arguments)],
                              env=self.env(**(env or {})), text=True, capture_output=True, timeout=PATIENCE, **more)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def show(self):
        """The screens, for a test that failed."""
        for terminal in self.terminals:
            print("  the screen, cursor at %s:" % (terminal.cursor(),))
            print("\n".join("  |" + line for line in terminal.lines()))

    def close(self):
        for terminal in self.terminals:
            terminal.close()
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.signal(signal.SIGCONT)
                daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
