"""Runs rounds of our program and of another one in turns, and prints a table of the results."""
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build-bench-release"


def logged(name, command):
    """Runs a command whose output matters only when it fails."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{name} failed")


def build(targets):
    if not (BUILD / "build.ninja").exists():
        logged("meson setup", ["meson", "setup", BUILD, "-Dbuildtype=release", "-Dbench=enabled", "-Dtests=disabled",
                               "-Dcuda=disabled"])
    logged("meson compile", ["meson", "compile", "-C", BUILD] + targets)


def parse_table(text):
    """Reads a table with one round: figure and percent by row's name."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        found = [re.match(r"(-?[\d.]+) \(", cell) for cell in cells]
        if len(cells) >= 3 and cells[0] and found[1]:
            rows[cells[0]] = float(found[1][1]), float(found[2][1]) if found[2] else None
    return rows


def ours(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} failed")
    return parse_table(done.stdout)


class Duel:
    """Rounds of our program and of theirs, in turns, and the table of the results."""

    def __init__(self):
        self.mine, self.percent = defaultdict(list), defaultdict(list)
        self.theirs = defaultdict(lambda: defaultdict(list))  # by row and variant

    def add_mine(self, rows):
        for row, (value, percent) in rows.items():
            self.mine[row].append(value)
            if percent is not None:
                self.percent[row].append(percent)

    def add_theirs(self, told):
        for variant, row, value in told:
            if row is None:
                print(f"# peer, {variant}: {value}", flush=True)
            else:
                self.theirs[row][variant].append(value)

    def best(self, row):
        """The variant that is best at this row, and its figures: few tokens/s are bad, few milliseconds are
        good.  Only variants that took part in the largest number of rounds count."""
        less_is_better = "first token" in row
        rounds = max(map(len, self.theirs[row].values()), default=0)
        medians = {v: statistics.median(f) for v, f in self.theirs[row].items() if len(f) == rounds}
        if not medians:
            return None
        name = (min if less_is_better else max)(medians, key=medians.get)
        return name, self.theirs[row][name], less_is_better

    def show(self, unit):
        print(f"\n| {unit} | ours | % of the ceiling | peer | its variant | ratio |\n|---|---|---|---|---|---|")
        for row, values in self.mine.items():
            cells = [row, cell(values), cell(self.percent[row]) if row in self.percent else ""]
            best = self.best(row) if row in self.theirs else None
            if best:
                name, figures, less = best
                ratio = statistics.median(values) / statistics.median(figures)
                cells += [cell(figures), name, f"{1 / ratio if less else ratio:.2f}"]
            else:
                cells += ["", "", ""]
            print("| " + " | ".join(cells) + " |")
        sys.stdout.flush()


def short(value):
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def cell(values):
    return f"{short(statistics.median(values))} ({short(min(values))}-{short(max(values))})"


def duel(rounds, parts, mine, theirs, unit):
    """Runs rounds of each part of the rows.  In every other round the peer begins."""
    result = Duel()
    for part in parts:
        for number in range(rounds):
            if number % 2:
                result.add_theirs(theirs(part))
            result.add_mine(mine(part))
            if number % 2 == 0:
                result.add_theirs(theirs(part))
    result.show(unit)
