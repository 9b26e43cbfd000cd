"""samovar top and samovar doctor in a terminal."""
import json
import os
import pty
import random
import re
import signal
import subprocess
import termios
import time

from place import Terminal, until

KEYS = "h help  q quit"
LEAVES = b"\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m")


def quick_model(place, context=1048576):
    """A model that is so fast and patient that a stream does not end by itself."""
    path = place.folder / "quick.gguf"
    maker = place.build / "contrib" / "dev" / "toy-model"
    subprocess.run([maker, path, "--context", str(context), "--layers", "1", "--width", "32", "--heads", "2",
                    "--kv-heads", "1", "--head-dim", "8", "--ffn", "32"], check=True)
    return path


class Streams:
    """Programs that read endless streams; they end with the test."""

    def __init__(self, place, daemon, count, *flags):
        command = [str(place.build / "cli" / "samovar"), "complete", "--socket", str(daemon.socket), "--ignore-eos",
                   "--max-tokens", "1000000", *flags]
        self.programs = [subprocess.Popen([*command, "Once upon %d" % i], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                         for i in range(count)]

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()


def look(place, daemon):
    ran = place.run("top", "--socket", daemon.socket, "--once", "--json", "--interval", "0.1")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def await_streams(place, daemon, count):
    until(lambda: len(look(place, daemon)["streams"]) == count, "%d streams" % count)


def top(place, daemon, *flags, **more):
    terminal = place.terminal("top", "--socket", daemon.socket, "--interval", "0.1", *flags, **more)
    terminal.until(lambda: "pool " in terminal.text(), "the pool")
    return terminal


def rows(terminal):
    """The rows of streams on the screen."""
    lines = terminal.lines()
    if terminal.screen.columns < 28:    # rows have no state
        return lines[3:-1]
    head = next(i for i, line in enumerate(lines) if line.startswith("user "))
    return [line for line in lines[head + 1:] if re.search(r" (waiting|running|prefill|paused|encoding|ending) ", line)]


def usual_mode():
    """That of a terminal which no program has changed."""
    ours, theirs = pty.openpty()
    mode = termios.tcgetattr(ours)
    os.close(ours)
    os.close(theirs)
    return mode


def quits(terminal):
    terminal.send("q")
    assert terminal.ended() == 0
    assert terminal.raw.endswith(LEAVES), terminal.raw[-100:]
    assert terminal.mode() == usual_mode()


# ---- sizes ----

def test_it_fits_every_size(place):
    daemon = place.daemon("--kv-bytes", "64M", "--max-seqs", "4", model="%s=wíde名前モデル" % quick_model(place))
    streams = Streams(place, daemon, 12)
    await_streams(place, daemon, 12)
    terminal = top(place, daemon)
    for height, width in ((24, 80), (10, 40), (60, 200), (5, 20), (36, 120), (1, 1), (24, 80)):
        terminal.resize(height, width)
        terminal.raw = b""
        terminal.until(lambda: terminal.raw.count(b"\x1b[?2026l") >= 3, "frames of %dx%d" % (width, height))
        lines = terminal.lines()
        assert lines[0].startswith("samovar top"[:width]), lines[0]
        assert b"\n" not in terminal.raw, "a line that scrolls"
        if height >= 5:
            assert lines[-1].startswith("sort: "[:width]), lines[-1]
            assert rows(terminal), lines
        if width >= 80:
            assert "wíde名前モデル" in terminal.text().replace(" ", "") and KEYS in lines[-1], lines
    assert len(rows(terminal)) == 12
    quits(terminal)
    streams.end()


def test_a_small_screen_keeps_what_matters(place):
    daemon = place.daemon("--kv-bytes", "64M", "--max-seqs", "2", model=quick_model(place))
    streams = Streams(place, daemon, 5)
    await_streams(place, daemon, 5)
    terminal = top(place, daemon, rows=10, columns=40)
    terminal.until(lambda: len(rows(terminal)) == 3, "three rows")
    for part in ("pool     [", "slots    [", "tokens/s "):
        assert part in terminal.text()
    terminal.send("\x1b[F")
    terminal.shows("stream ")
    quits(terminal)
    streams.end()


# ---- streams ----

def test_more_streams_than_rows_are_scrolled(place):
    daemon = place.daemon("--kv-bytes", "64M", "--max-seqs", "3", "--uid-prompt-bytes", "1G",
                          model=quick_model(place))
    streams = Streams(place, daemon, 40)
    await_streams(place, daemon, 40)
    terminal = top(place, daemon)
    terminal.shows("of 40")
    shown = len(rows(terminal))
    assert 10 <= shown < 20, shown
    place_of = re.compile(r"streams (\d+) to (\d+) of 40")
    assert place_of.search(terminal.text()).groups() == ("1", str(shown))
    terminal.send("\x1b[F")         # the last row is selected, and on the screen
    terminal.shows("stream ")
    terminal.send("\x1b")           # nothing is selected, and the place stays
    terminal.until(lambda: place_of.search(terminal.text()), "the place")
    assert place_of.search(terminal.text()).group(2) == "40"
    terminal.send("\x1b[H\x1b")
    terminal.shows("streams 1 to %d of 40" % shown)
    terminal.send("\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b")
    terminal.shows("to 40 of 40")
    streams.end()
    terminal.until(lambda: not rows(terminal), "no rows")
    quits(terminal)


def test_streams_are_sorted_by_every_key(place):
    daemon = place.daemon("--kv-bytes", "64M", "--max-seqs", "2", model=quick_model(place))
    streams = Streams(place, daemon, 6)
    await_streams(place, daemon, 6)
    terminal = top(place, daemon, columns=120)
    terminal.until(lambda: len(rows(terminal)) == 6, "six rows")

    def tokens():
        return [int(re.search(r" (?:waiting|running|prefill|paused)\s+\S+\s+\S+\s+(\d+) ", row).group(1))
                for row in rows(terminal)]

    terminal.send("t")
    terminal.until(lambda: "t tokens+" in terminal.text() and tokens() == sorted(tokens(), reverse=True),
                   "the most tokens first")
    terminal.send("t")
    terminal.until(lambda: "t tokens-" in terminal.text() and tokens() == sorted(tokens()), "the fewest first")
    for key, word in (("u", "u user+"), ("r", "r rate+"), ("a", "a age+"), ("a", "a age-")):
        terminal.send(key)
        terminal.shows(word)
    quits(terminal)
    streams.end()


def test_a_stream_is_ended_only_after_yes(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    streams = Streams(place, daemon, 1)
    await_streams(place, daemon, 1)
    terminal = top(place, daemon)
    terminal.until(lambda: rows(terminal), "a row")
    terminal.send("k")
    terminal.shows("select a stream first")
    terminal.send("\x1b[B")
    terminal.send("k")
    terminal.shows("? y: end it; other keys: no")
    terminal.send("q")              # the answer is no, and the view stays
    terminal.until(lambda: "end it" not in terminal.text(), "no question")
    assert len(look(place, daemon)["streams"]) == 1
    terminal.send("k")
    terminal.shows("? y: end it")
    terminal.send("y")
    terminal.shows("the stream is being ended")
    until(lambda: not look(place, daemon)["streams"], "no streams")
    quits(terminal)
    streams.end()


# ---- the daemon ----

def test_a_daemon_that_dies_and_comes_back(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    streams = Streams(place, daemon, 2)
    await_streams(place, daemon, 2)
    terminal = top(place, daemon)
    terminal.until(lambda: len(rows(terminal)) == 2, "two rows")
    daemon.kill()
    terminal.shows("no daemon for ")
    assert "trying again" in terminal.text() and "running " not in terminal.text()
    terminal.send("k")              # keys work meanwhile
    terminal.send("h")
    terminal.shows("this page")
    terminal.send("h")
    streams.end()
    daemon.start()
    terminal.until(lambda: "no daemon" not in terminal.text() and "0 of 64; queue 0" in terminal.text(),
                   "the new daemon")
    quits(terminal)


def test_a_daemon_that_hangs_is_told(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    terminal = top(place, daemon)
    daemon.signal(signal.SIGSTOP)
    terminal.shows("the daemon has not answered for ")
    terminal.send("h")              # keys work meanwhile
    terminal.shows("this page")
    terminal.send("h")
    daemon.signal(signal.SIGCONT)
    terminal.until(lambda: "has not answered" not in terminal.text(), "an answer")
    quits(terminal)


def test_a_daemon_that_stops_says_so(place):
    daemon = place.daemon("--kv-bytes", "64M", "--drain-timeout-ms", "60000", model=quick_model(place))
    streams = Streams(place, daemon, 1)
    await_streams(place, daemon, 1)
    terminal = top(place, daemon)
    terminal.until(lambda: rows(terminal), "a row")
    daemon.signal(signal.SIGTERM)
    terminal.shows("streams that still run are ended in ")
    streams.end()
    terminal.shows("no daemon for ")
    quits(terminal)


# ---- the terminal ----

def test_every_end_leaves_the_terminal_as_it_was(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
        terminal = top(place, daemon)
        terminal.kill(number)
        assert terminal.ended() == -number
        assert terminal.raw.endswith(LEAVES), (number, terminal.raw[-100:])
        assert terminal.mode() == usual_mode()
    terminal = top(place, daemon)
    terminal.send("\x03")
    assert terminal.ended() == 130
    assert terminal.raw.endswith(LEAVES) and terminal.mode() == usual_mode()


def test_it_is_stopped_and_continued_by_a_shell(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], place.env(PS1="shell: "), 24, 80)
    place.terminals.append(terminal)
    terminal.shows("shell:")
    terminal.send("%s top --socket %s --interval 0.1\r" % (place.build / "cli" / "samovar", daemon.socket))
    terminal.shows(KEYS)
    terminal.raw = b""
    terminal.send("\x1a")
    terminal.until(lambda: b"Stopped" in terminal.raw, "it is stopped")
    assert LEAVES in terminal.raw
    terminal.screen.reset()
    terminal.send("fg\r")
    terminal.shows(KEYS)
    terminal.raw = b""
    terminal.send("q")
    terminal.until(lambda: b"shell: " in terminal.raw, "the shell")
    terminal.send("exit\r")
    assert terminal.ended() == 0


def test_no_colour_without_wish(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    streams = Streams(place, daemon, 1)
    await_streams(place, daemon, 1)
    coloured = top(place, daemon)
    plain = top(place, daemon, env={"NO_COLOR": "1"})
    for terminal in (coloured, plain):
        terminal.until(lambda: rows(terminal), "a row")
        quits(terminal)
    assert COLOUR.search(coloured.raw)
    assert not COLOUR.search(plain.raw), COLOUR.search(plain.raw)
    streams.end()


def test_without_utf8_the_curve_is_ascii(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    terminal = top(place, daemon, env={"LANG": "C"})
    terminal.until(lambda: "tokens/s 0.0; mean 0.0, prompts 0.0 ___" in terminal.text(), "a curve of letters")
    terminal.raw.decode("ascii")
    quits(terminal)


def test_names_do_not_control_the_terminal(place):
    """What turns the direction of text around is shown as ?, and so is every control character."""
    name = "turn\u202eed\u2066\u200f"
    daemon = place.daemon("--kv-bytes", "64M", model="%s=%s" % (quick_model(place), name))
    terminal = top(place, daemon)
    terminal.shows("turn?ed??")
    assert not re.search("[\u202e\u2066\u200f]", terminal.raw.decode())
    ran = place.run("top", "--socket", daemon.socket, "--once")
    assert "turn?ed??" in ran.stdout and "\x1b" not in ran.stdout
    quits(terminal)


def test_keys_that_mean_nothing_do_nothing(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    streams = Streams(place, daemon, 3)
    await_streams(place, daemon, 3)
    terminal = top(place, daemon)
    # Function keys, keys with modifiers, a mouse, a paste, characters beyond ASCII.
    terminal.send("\x1bOP\x1b[15~\x1b[1;5A\x1b[1;2B\x1b[<0;10;10M\x1b[200~\x1b[201~öß名\x1bx\x00\x7f")
    draws = random.Random(38)
    for _ in range(40):
        terminal.send(bytes(draws.choice([c for c in range(256) if c not in (3, 26, *b"qQyY")])
                            for _ in range(draws.randrange(1, 30))))
        terminal.pump(0.01)
    terminal.send("\x1b")
    time.sleep(0.2)
    terminal.send("n")              # a question may be open
    terminal.pump(0.3)
    assert terminal.status is None and os.waitpid(terminal.pid, os.WNOHANG) == (0, 0)
    assert len(look(place, daemon)["streams"]) == 3
    terminal.resize(30, 100)
    terminal.shows("samovar top")
    quits(terminal)
    streams.end()


def test_a_key_that_comes_in_pieces_is_one_key(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    streams = Streams(place, daemon, 1)
    await_streams(place, daemon, 1)
    terminal = top(place, daemon)
    terminal.until(lambda: rows(terminal), "a row")
    os.write(terminal.fd, b"\x1b[")
    os.write(terminal.fd, b"B")
    terminal.shows("stream ")
    quits(terminal)
    streams.end()


def test_a_terminal_that_is_dumb_is_refused(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    terminal = place.terminal("top", "--socket", daemon.socket, env={"TERM": "dumb"})
    assert terminal.ended() == 2
    assert "--once prints one frame" in terminal.text().replace("\n", "")


# ---- doctor ----

def test_doctor_breaks_lines_and_has_colours(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    terminal = place.terminal("doctor", "--socket", daemon.socket, rows=90, columns=60)
    assert terminal.ended() in (0, 1)
    terminal.pump()
    assert re.search(r"\d+ checks: \d+ ok, \d+ warn, \d+ fail", terminal.text())
    assert b"\x1b[32mok" in terminal.raw
    # No line goes on in the first cells of the next one.
    assert all(re.match(r"$|[a-z]+$|  (ok|warn|fail) |                      \S|                      -> |   {22}|\d+ checks",
                        line) for line in terminal.lines()), terminal.text()
    plain = place.terminal("doctor", "--socket", daemon.socket, rows=90, env={"NO_COLOR": "1"})
    plain.ended()
    plain.pump()
    assert b"\x1b" not in plain.raw


def test_doctor_says_that_it_waits(place):
    daemon = place.daemon("--kv-bytes", "64M", model=quick_model(place))
    daemon.signal(signal.SIGSTOP)
    terminal = place.terminal("doctor", "--socket", daemon.socket, "--timeout", "2", rows=90)
    terminal.shows("waiting for the daemon (--timeout)")
    assert terminal.ended() == 1
    assert "fail" in terminal.text()
