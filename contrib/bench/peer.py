"""The benchmark programs of llama.cpp and of its forks: which of them are there, their flags, their
output.

Forks and versions differ in flags and in the layout of their output.  So a flag is only used if the
program's help names it, and figures are looked for by the names of their fields and columns.
"""
import itertools
import re
import subprocess
import tempfile
from pathlib import Path

PROMPT, BATCHES, BATCH_PROMPT = 512, (4, 8, 16, 32), 128
DEPTHS = (4096, 16384)
HOPEFUL = 0.8  # share of a row's best that a variant must reach in some row to run again

LEAVINGS = tempfile.gettempdir()  # they write logs into their working directory


class Failed(Exception):
    """A program ended badly, or printed no figures."""


def find(folder, name):
    """The program of this name, in a folder of programs or of a build; None: it is not there."""
    for place in (".", "bin", "build/bin"):
        path = Path(folder) / place / name
        if path.is_file():
            return str(path.resolve())
    return None


def help_of(program):
    done = subprocess.run([program, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, cwd=LEAVINGS)
    return done.stdout


def has_flag(text, flag):
    return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text) is not None


def flash(text, on):
    """The flags that turn flash attention on or off in this program; None: it has no such flags."""
    line = next((line for line in text.splitlines() if has_flag(line, "-fa")), None)
    if line is None:
        return None
    if re.search(r"\bon\b *[|,]|[|,] *\bon\b", line):
        return ["-fa", "on" if on else "off"]
    if re.search(r"0 *[|,] *1", line):
        return ["-fa", "1" if on else "0"]
    if on:
        return ["-fa"]
    return ["-no-fa"] if has_flag(text, "-no-fa") else []


def repack(text, on):
    """The flags that make this program repack weights when it loads them, or not; None: it has no such
    flags.  A fork repacks if told to, others repack unless told not to."""
    def has(flag):
        return lambda line: has_flag(line, flag)

    lines = text.splitlines()
    line = next(filter(has("-rtr"), lines), None)
    if line is not None:
        return ["-rtr", "1" if on else "0"] if re.search(r"0 *[|,] *1", line) else ["-rtr"] if on else []
    line = next(filter(has("--repack"), lines), None)
    if line is not None and re.search(r"0 *[|,] *1", line):
        return ["--repack", "1" if on else "0"]
    if any(map(has("--no-repack"), lines)):
        return [] if on else ["--no-repack"]
    return None


def variants(text, flashes=(True, False)):
    """Name and flags of each way to run a program with this help."""
    found = {}
    for fa, rp in itertools.product(flashes, (False, True)):
        fa_flags, rp_flags = flash(text, fa), repack(text, rp)
        if rp and rp_flags is None:
            continue
        flags = (fa_flags or []) + (rp_flags or [])
        name = " ".join((["fa"] if fa and fa_flags is not None else []) + (["repack"] if rp else []))
        if flags not in found.values():
            found[name or "plain"] = flags
    return found


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          check=False, cwd=LEAVINGS)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise Failed(f"{' '.join(command)}: ended with {done.returncode}: {last}")
    return done.stdout, done.stderr


def fields(text):
    """The objects of a list in JSON, as texts.  Some forks print values that are not JSON, so the list is
    not parsed."""
    for block in re.findall(r"\{(.*?)^\s*\}", text, re.S | re.M):
        yield {key: value.strip().strip('"')
               for key, value in re.findall(r'"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,\n]*)', block)}


def parse_bench(text):
    """Reads llama-bench's output with -o json: tokens/s by the name of our row."""
    figures = {}
    for found in fields(text):
        if "avg_ts" not in found:
            continue
        prompt, made = int(found.get("n_prompt", 0)), int(found.get("n_gen", 0))
        at = re.search(r"@pp(\d+)", found.get("test", ""))
        depth = int(found.get("n_depth", 0)) or (int(at[1]) if at else 0)
        if made and depth:
            name = f"one stream at {depth}"
        elif made and not prompt:
            name = "one stream"
        elif prompt and not made and not depth:
            name = f"prompt of {prompt}"
        else:
            continue
        figures[name] = float(found["avg_ts"])
    if not figures:
        raise Failed("llama-bench printed no figures")
    return figures


def parse_batches(text):
    """Reads the table of llama-batched-bench, wherever in its output: tokens/s of all sequences by the
    name of our row."""
    figures, columns = {}, None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|"):
            continue
        if any(cell.startswith("S_TG") for cell in cells):
            columns = {cell.split()[0]: i for i, cell in enumerate(cells) if cell}
        elif columns and len(cells) == len(columns) and re.fullmatch(r"\d+", cells[columns["B"]]):
            figures[f"batch of {cells[columns['B']]}"] = float(cells[columns["S_TG"]])
    if not figures:
        raise Failed("llama-batched-bench printed no figures")
    return figures


def bench(program, flags, model, threads, tokens, asked):
    """Runs a program; `asked` says whether a row of this name is wanted."""
    common = [program, "-m", model, "-t", str(threads), "-r", "1", "-o", "json"] + flags
    prompt = PROMPT if asked(f"prompt of {PROMPT}") else 0
    made = tokens if asked("one stream") else 0
    figures = parse_bench(run(common + ["-p", str(prompt), "-n", str(made)])[0]) if prompt or made else {}
    text = help_of(program)
    for depth in filter(lambda depth: asked(f"one stream at {depth}"), DEPTHS):
        if has_flag(text, "-d"):
            at = ["-p", "0", "-n", str(tokens), "-d", str(depth)]
        elif has_flag(text, "-gp"):
            at = ["-p", "0", "-n", "0", "-gp", f"{depth},{tokens}"]
        else:
            break
        figures |= parse_bench(run(common + at)[0])
    return figures


def batches(program, flags, model, threads, tokens, asked):
    sizes = [size for size in BATCHES if asked(f"batch of {size}")]
    if not sizes:
        return {}
    context = (max(sizes) * (BATCH_PROMPT + tokens) + 255) // 256 * 256
    out, err = run([program, "-m", model, "-t", str(threads), "-c", str(context), "-b", "2048", "-ub", "512",
                    "-npp", str(BATCH_PROMPT), "-ntg", str(tokens), "-npl", ",".join(map(str, sizes))] + flags)
    return parse_batches(out + "\n" + err)


def named(arguments):
    """Splits arguments [NAME=]DIR: the beginning of the names of a peer's variants, and its folder."""
    found = []
    for argument in arguments:
        name, is_named, folder = argument.partition("=")
        found.append((f"{name}: ", folder) if is_named else ("", argument))
    if len({name for name, _ in found}) < len(found):
        raise Failed("several peers want names of their own: NAME=DIR")
    return found


def hopeful(found):
    """From the figures of each variant, by row: the names of variants that might be best at some row."""
    best = {}
    for figures in found.values():
        for row, value in figures.items():
            best[row] = max(value, best.get(row, 0))
    return {name for name, figures in found.items()
            if any(value >= HOPEFUL * best[row] for row, value in figures.items())}


class Peer:
    """The programs in a folder.  measure() runs one round of them in every variant, for the rows whose
    names have `part` in them.  If a model and a part have had a round, it runs only the variants that
    might be best at some row."""

    def __init__(self, prefix, folder, threads, tokens, deep):
        self.prefix, self.threads, self.tokens, self.deep = prefix, threads, tokens, deep
        self.bench, self.batched = find(folder, "llama-bench"), find(folder, "llama-batched-bench")
        self.asked_again = {}  # names of variants, by model, program and part
        if not self.bench and not self.batched:
            raise Failed(f"{folder} has neither llama-bench nor llama-batched-bench")

    def ask(self, program, flags, model, part):
        def asked(row):
            return part in row and (self.deep or " at " not in row)

        measure = bench if program == self.bench else batches
        return measure(program, flags, model, self.threads, self.tokens, asked)

    def measure(self, model, part):
        """Yields the name of a variant, a row's name and tokens/s; for a failure, None and the reason."""
        for program in filter(None, (self.bench, self.batched)):
            again, found = self.asked_again.get((model, program, part)), {}
            for name, flags in variants(help_of(program)).items():
                if again is not None and name not in again:
                    continue
                try:
                    found[name] = self.ask(program, flags, model, part)
                    yield from ((self.prefix + name, row, value) for row, value in found[name].items())
                except Failed as failed:
                    yield self.prefix + name, None, str(failed)
            if again is None:
                self.asked_again[model, program, part] = hopeful(found)
