"""Measures OpenVINO GenAI, which reads the same GGUF file, in the rows that bench-cpu has."""
import contextlib
import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from peer import BATCH_PROMPT, BATCHES, LEAVINGS, PROMPT, Failed, hopeful

# Properties of the CPU plugin.  It may keep the default of its KV cache, which is bytes.
PRECISIONS = ("f32", "bf16")
VARIANTS = {f"openvino {precision}": {"INFERENCE_PRECISION_HINT": precision} for precision in PRECISIONS}
BLOCK = 32  # positions in a block of its KV cache
MISSING = "unordered_map::at"  # its message for any missing key
SIZES_NEEDED = 5  # times the model's file: more memory than a child takes while it loads


def requests(tokens):
    """By row: streams, tokens of each prompt, tokens that each decodes after its first one.  One stream
    starts with a prompt of one token, as near to an empty context as it can."""
    return {"one stream": (1, 1, tokens),
            **{f"batch of {streams}": (streams, BATCH_PROMPT, tokens) for streams in BATCHES},
            f"prompt of {PROMPT}": (1, PROMPT, 0)}


def blocks(tokens):
    """Enough for the largest batch."""
    return max(streams * ((prompt + made) // BLOCK + 1) for streams, prompt, made in requests(tokens).values())


def memory_available():
    """Bytes; None: the kernel does not tell."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def how_it_ended(code):
    if code == -signal.SIGKILL:
        return "was killed, probably because memory ran out"
    return f"ended with {code}"


class Child:
    """A process with one model in one variant, until close()."""

    def __init__(self, python, model, threads, tokens, properties):
        said = {"model": model, "threads": threads, "blocks": blocks(tokens), "properties": properties}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [python, Path(__file__).with_name("openvino_child.py"), json.dumps(said)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=LEAVINGS)
        try:
            self.threads = self.read()["threads"]
        except Failed:
            self.close()
            raise

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.errors.seek(0)
            last = (self.errors.read().decode(errors="replace").strip() or "nothing").splitlines()[-1]
            raise Failed(f"openvino_child.py {how_it_ended(code)}: {last}")
        told = json.loads(line)
        if "error" in told:
            raise Failed(told["error"].strip().splitlines()[-1])  # lines before name places in its source
        return told

    def ask(self, streams, prompt, tokens):
        """Tokens/s: of the prompt if no tokens are asked for, else of those after the first."""
        try:
            print(json.dumps({"streams": streams, "prompt": prompt, "tokens": tokens}), file=self.process.stdin,
                  flush=True)
        except OSError:
            pass  # it has ended, and read() says how
        told = self.read()
        return streams * tokens / told["decode_s"] if tokens else streams * prompt / told["prompt_s"]

    def close(self):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(BrokenPipeError):  # stdin has a question that it did not read
                stream.close()


class PeerOpenVino:
    """OpenVINO by way of a Python that has openvino-genai.  measure() is as Peer.measure().  The children
    of a model stay, with the model in memory, until another model is measured or memory is short."""

    def __init__(self, python, threads, tokens, reads=None, precision=None):
        """`reads`: a file that it reads instead of the model that is measured.  `precision`: the only one."""
        self.python, self.threads, self.tokens, self.reads = python, threads, tokens, reads
        self.variants = [f"openvino {precision}"] if precision else list(VARIANTS)
        self.model, self.children = None, {}  # a child is None if it could not start
        self.told = set()  # what was said of this model
        self.asked_again = {}  # names of variants, by part, of this model
        try:
            done = subprocess.run([python, "-c", "import openvino_genai, openvino_tokenizers"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        except OSError as problem:
            raise Failed(f"--openvino: {problem}") from problem
        if done.returncode:
            raise Failed(f"--openvino: {python}: {(done.stdout.strip() or 'it failed').splitlines()[-1]}")

    def close(self):
        for child in filter(None, self.children.values()):
            child.close()
        self.children, self.asked_again, self.told = {}, {}, set()

    def tell(self, name, why):
        """Yields a message, unless another variant has said the same."""
        if why not in self.told:
            self.told.add(why)
            yield name, None, why

    def make_room(self):
        """Ends the other children if memory is short."""
        available, model = memory_available(), Path(self.model)
        if available is None or not model.exists() or available >= SIZES_NEEDED * model.stat().st_size:
            return
        for name in [name for name, child in self.children.items() if child]:
            self.children.pop(name).close()

    def start(self, name):
        self.make_room()
        try:
            self.children[name] = child = Child(self.python, self.model, self.threads, self.tokens, VARIANTS[name])
            if child.threads and child.threads != self.threads:
                yield from self.tell(name, f"{child.threads} threads work, not {self.threads}")
        except Failed as failed:
            self.children[name] = None
            why = str(failed)
            if MISSING in why:
                why += " (its reader misses a tensor, or a key such as general.file_type)"
            yield from self.tell(name, why)

    def measure(self, model, part):
        """Yields the name of a variant, a row's name and tokens/s; for a failure, None and the reason."""
        wanted = {row: asked for row, asked in requests(self.tokens).items() if part in row}
        if not wanted:
            return
        model = self.reads or model
        if model != self.model:
            self.close()
            self.model = model
        again, found = self.asked_again.get(part), {}
        for name in self.variants:
            if again is not None and name not in again:
                continue
            if name not in self.children:
                yield from self.start(name)
            if not self.children[name]:
                continue
            try:
                found[name] = {row: self.children[name].ask(*asked) for row, asked in wanted.items()}
                yield from ((name, row, value) for row, value in found[name].items())
            except Failed as failed:
                yield from self.tell(name, str(failed))
                if self.children[name].process.poll() is not None:
                    self.children[name].close()
                    self.children[name] = None
        if again is None:
            self.asked_again[part] = hopeful(found)
