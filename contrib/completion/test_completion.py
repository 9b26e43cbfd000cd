"""Tests the completions of a build: each script is read by its shell, which then completes.

    python3 contrib/completion/test_completion.py FOLDER    FOLDER has the scripts

Prints TAP.  A shell that is not installed is skipped.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()
LIMIT_S = 60  # for a shell to answer; it never decides what the answer is

# A line that ends where the tab key is pressed, words that the shell must offer, and words that it
# must not offer.  FILES stands for names of files.
FILES = "a-file.gguf"
CASES = [
    ("samovar st", {"status"}, {"ask", "attach"}),
    ("samovar ", {"ask", "status", "models", "inspect"}, {"--socket", FILES}),
    ("samovar --socket a-file.gguf sta", {"status"}, set()),
    ("samovar --json sta", {"status"}, set()),
    ("samovar status --w", {"--watch"}, {"--temp"}),
    ("samovar ask --te", {"--temp"}, {"--watch"}),
    ("samovar ask --priority ", {"normal", "interactive", "background"}, {FILES}),
    ("samovar ask --priority=b", {"background"}, {"normal"}),
    ("samovar complete --transport s", {"socket"}, {"ring"}),
    ("samovar ask --socket a-f", {FILES}, set()),
    ("samovar inspect a-f", {FILES}, set()),
    ("samovar ask a-f", set(), {FILES}),
    ("samovar cancel ", {"4711", "4712", "4713"}, {"number", FILES}),
    ("samovar cancel 471", {"4711", "4712", "4713"}, set()),
    ("samovar attach ", {"4712"}, {"4711", "4713", FILES}),
    ("samovar status --any-uid --w", {"--watch"}, {"--temp"}),
    ("samovar --socket other cancel ", {"5"}, {"4711"}),
    ("samovar cancel --socket=other ", {"5"}, {"4711"}),
    ("samovar rm ", {"tea-Q8_0", "coffee"}, {FILES}),
    ("samovar rm te", {"tea-Q8_0"}, {"coffee", FILES}),
    ("samovar ask --model ", {"tea-Q8_0", "coffee", FILES}, set()),
    ("samovard --model ", {"tea-Q8_0", "coffee", FILES}, set()),
    ("samovard --back", {"--backend"}, {"--threads"}),
    ("samovard --backend ", {"cpu", "cuda", "auto", "ref"}, set()),
    ("samovard --model a-f", {FILES}, set()),
    ("samovard --socket-mode ", {"0600", "0660", "0666"}, set()),
    ("samovar-http --unix-p", {"--unix-peers"}, {"--backend"}),
    ("samovar-http --unix-peers ", {"own", "all"}, set()),
    ("samovar-http --keys a-f", {FILES}, set()),
]


# The command that the scripts ask for numbers and names.
COMMAND = """#!/bin/sh
[ "$1 $2" != "models --names" ] || exec printf '%s\\n' tea-Q8_0 coffee
[ "$1" = ps ] || exit 1
echo "number               kind      state    user          process    tokens     age"
if [ "$2 $3" = "--socket other" ] || [ "$2" = --socket=other ]; then
        echo "5                    stream    running  root              8        20      1s"
        exit
fi
echo "4711                 stream    running  root              7        20      1s"
echo "4712                 resumable ended    root              -        20      1s kept"
echo "4713                 handle    idle     root              7        20      1s"
"""


def offered(lines):
    """The first word of each line; of --flag=value the value, of --flag= the flag."""
    words = (re.split(r"[\t ]", line)[0].rstrip("=") for line in lines if line)
    return {word.rpartition("=")[2] for word in words}


def complete_in_bash(line, place):
    program = line.split()[0]
    words = line.replace("=", " = ").split(" ")  # as bash does
    script = f"""source "$1"; shift; cd "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _{program} {program}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    ran = subprocess.run(["bash", "--norc", "-c", script, "bash", FOLDER / program, place, *words],
                         check=True, text=True, capture_output=True)
    assert not ran.stderr, ran.stderr
    return offered(ran.stdout.splitlines())


def complete_in_fish(line, place):
    program = line.split()[0]
    ran = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]',
                          FOLDER / f"{program}.fish", line],
                         check=True, text=True, capture_output=True, cwd=place,
                         env={**os.environ, "HOME": place})
    assert not ran.stderr, ran.stderr
    return offered(ran.stdout.splitlines())


class Zsh:
    """An interactive zsh on a terminal of its own."""

    # The key ^T prints the matches, each on a line between < and >, instead of showing them.  Calls
    # of compadd that only ask which words would match are left alone.
    SETUP = r"""PS1= PS2=
unsetopt zle_bracketed_paste prompt_cr prompt_sp
fpath=(%s $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
        local -a found
        if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
                builtin compadd -A found "$@"
                print -rl -- "<"${^found}">"
        fi
        builtin compadd "$@"
}
report() { _main_complete; print -r -- "<>END"; }
zle -C report list-choices report
bindkey '^T' report
bindkey '^U' kill-whole-line
print READY
"""

    def __init__(self, place):
        (Path(place) / ".zshrc").write_text(self.SETUP % FOLDER)
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.environ.update(TERM="dumb", HOME=place, ZDOTDIR=place)
            os.chdir(place)
            os.execlp("zsh", "zsh", "-d", "-i")
        self.read_to("READY")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_to(self, end):
        text, limit = "", time.monotonic() + LIMIT_S
        while end not in text:
            if not select.select([self.terminal], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError(f"zsh does not print {end!r}, but {text!r}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def complete(self, line, _):
        self.send(f"{line}\x14")
        found = re.findall(r"<([^>\r\n]*)>", self.read_to("<>END"))
        self.send("\x15")
        return offered(found)

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def parses(shell, program):
    script = {"bash": program, "zsh": f"_{program}", "fish": f"{program}.fish"}[shell]
    ran = subprocess.run([shell, "-n", FOLDER / script], text=True, capture_output=True)
    return ran.returncode == 0 and not ran.stderr


def check_shell(shell, place, report):
    for program in ("samovar", "samovard"):
        report(parses(shell, program), f"{shell}: the script for {program} parses")
    zsh = Zsh(place) if shell == "zsh" else None
    complete = {"bash": complete_in_bash, "fish": complete_in_fish}.get(shell) or zsh.complete
    for line, wanted, unwanted in CASES:
        found = complete(line, place)
        good = wanted <= found and not unwanted & found
        report(good, f"{shell}: completes `{line}`", "" if good else f"offers {sorted(found)}")
    if zsh:
        zsh.close()


def main():
    number = failed = 0

    def report(good, name, why=""):
        nonlocal number, failed
        number += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + (f"\n# {why}" if why else ""), flush=True)

    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as programs:
        (Path(place) / FILES).touch()
        command = Path(programs) / "samovar"
        command.write_text(COMMAND)
        command.chmod(0o755)
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                check_shell(shell, place, report)
            else:
                report(True, f"{shell} # SKIP it is not installed")
    print(f"1..{number}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
