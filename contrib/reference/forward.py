#!/usr/bin/env python3
"""The forward pass of a llama model, as plainly as it can be said, and goldens from it.

Written from the published description of the model and of the GGUF format, apart from the
daemon's own code, so that a mistake has to be made twice to go unseen.  Every number is a double
and there is no KV cache: each token is computed from the whole text again.  Slow, and meant to be:
for small models with weights in F32, F16 or BF16.  numpy, where it is installed, does the sums.

    forward.py MODEL.gguf TOKEN...            continues a text by 16 tokens, prints the case
    forward.py --maker TOY-MODEL GOLDEN.txt...   makes these files again, in place

A golden names its model by the arguments of contrib/dev/toy-model.c and then has its cases:

    toy-model ARGUMENTS                  the rest of the line
    fnv HEX                           FNV-1a, 64 bits, of the model file's bytes
    prompt N TOKEN...                 a case begins
    greedy N TOKEN...                 what follows: the likeliest each time, the lowest id of equals
    margin N NUMBER...                by how much, against the second best
    logits AT N NUMBER...             all logits that greedy token AT was chosen from

Made again, a file keeps its toy-model line, its prompts and how many tokens follow each.
"""
import math
import operator
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    numpy = None

# ---------------------------------------------------------------- the file

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, F16, BF16 = 0, 1, 30


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        count = self.scalar("Q")
        self.at += count
        return self.data[self.at - count : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.scalar("I"), self.scalar("Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def numbers(data, kind, at, count):
    if kind == F32:
        return struct.unpack_from(f"<{count}f", data, at)
    if kind == F16:
        return struct.unpack_from(f"<{count}e", data, at)
    if kind == BF16:  # the upper half of an F32
        halves = struct.unpack_from(f"<{count}H", data, at)
        return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(h << 16 for h in halves)))
    sys.exit(f"tensors of type {kind} are not for this program")


def gguf_read(data):
    """Metadata, and tensors: a list of doubles, or a list of rows."""
    r = Reader(data)
    magic, version = r.scalar("I"), r.scalar("I")
    if magic != 0x46554747 or version not in (2, 3):
        sys.exit("not a GGUF file of version 2 or 3")
    tensor_count, pair_count = r.scalar("Q"), r.scalar("Q")
    pairs = {}
    for _ in range(pair_count):
        key = r.string()
        pairs[key] = r.value(r.scalar("I"))
    infos = []
    for _ in range(tensor_count):
        name = r.string()
        shape = [r.scalar("Q") for _ in range(r.scalar("I"))]  # the fastest dimension first
        infos.append((name, shape, r.scalar("I"), r.scalar("Q")))
    align = pairs.get("general.alignment", 32)
    base = -(-r.at // align) * align
    tensors = {}
    for name, shape, kind, offset in infos:
        flat = numbers(data, kind, base + offset, math.prod(shape))
        columns = shape[0]
        rows = [list(flat[i : i + columns]) for i in range(0, len(flat), columns)]
        tensors[name] = rows[0] if len(shape) == 1 else matrix(rows)
    return pairs, tensors


# ---------------------------------------------------------------- arithmetic


def matrix(rows):
    return numpy.array(rows, dtype=numpy.float64) if numpy else rows


def times(xs, m):
    """For each vector x of xs: m x."""
    if numpy:
        return (numpy.asarray(xs, dtype=numpy.float64) @ numpy.asarray(m).T).tolist()
    return [[sum(map(operator.mul, row, x)) for row in m] for x in xs]


def add(xs, ys):
    return [[a + b for a, b in zip(x, y)] for x, y in zip(xs, ys)]


def rmsnorm(x, weight, eps):
    scale = 1 / math.sqrt(sum(a * a for a in x) / len(x) + eps)
    return [a * scale * w for a, w in zip(x, weight)]


def softmax(scores):
    top = max(scores)
    shares = [math.exp(s - top) for s in scores]
    total = sum(shares)
    return [s / total for s in shares]


def silu(a):
    return a / (1 + math.exp(-a)) if a > -700 else 0.0


# ---------------------------------------------------------------- the model


class Model:
    def __init__(self, data):
        pairs, self.tensors = gguf_read(data)
        if pairs["general.architecture"] != "llama":
            sys.exit("only the llama architecture is written down here")
        if pairs.get("llama.rope.scaling.type", "none") != "none" or "llama.expert_count" in pairs:
            sys.exit("scaled positions and experts are not written down here")

        def get(key, default=None):
            return pairs.get("llama." + key, default)

        self.layers = get("block_count")
        self.heads = get("attention.head_count")
        self.kv_heads = get("attention.head_count_kv", self.heads)
        self.head_dim = get("attention.key_length", get("embedding_length") // self.heads)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.scale = get("attention.scale", 0) or 1 / math.sqrt(self.head_dim)
        self.rope_dims = get("rope.dimension_count", self.head_dim)
        base = get("rope.freq_base", 10000.0)
        stretch = self.tensors.get("rope_freqs.weight", [1.0] * (self.rope_dims // 2))
        self.frequency = [base ** (-2 * i / self.rope_dims) / s for i, s in enumerate(stretch)]

    def linear(self, xs, name):
        ys = times(xs, self.tensors[name + ".weight"])
        bias = self.tensors.get(name + ".bias")
        return add(ys, [bias] * len(ys)) if bias else ys

    def rope(self, head, position):
        """Neighbours (0, 1), (2, 3) ... are points of the plane, each turned at its own speed."""
        out = list(head)
        for i, frequency in enumerate(self.frequency):
            c, s = math.cos(position * frequency), math.sin(position * frequency)
            a, b = head[2 * i], head[2 * i + 1]
            out[2 * i], out[2 * i + 1] = a * c - b * s, a * s + b * c
        return out

    def turned(self, xs, norm_name):
        """heads[h][t] of the projections xs[t]: normed if the model does that, then turned."""
        weight, n = self.tensors.get(norm_name), self.head_dim
        heads = [[x[h * n : (h + 1) * n] for x in xs] for h in range(len(xs[0]) // n)]
        if weight:
            heads = [[rmsnorm(x, weight, self.eps) for x in head] for head in heads]
        return [[self.rope(x, t) for t, x in enumerate(head)] for head in heads]

    def attention(self, xs, layer):
        q = self.turned(self.linear(xs, layer + "attn_q"), layer + "attn_q_norm.weight")
        k = self.turned(self.linear(xs, layer + "attn_k"), layer + "attn_k_norm.weight")
        v, n = self.linear(xs, layer + "attn_v"), self.head_dim
        out = [[] for _ in xs]
        for h in range(self.heads):
            g = h * self.kv_heads // self.heads  # the K and V head that this one shares
            shares = []
            for t, scores in enumerate(times(q[h], k[g])):
                seen = softmax([s * self.scale for s in scores[: t + 1]])
                shares.append(seen + [0.0] * (len(xs) - t - 1))
            columns = list(zip(*(x[g * n : (g + 1) * n] for x in v)))
            for t, mix in enumerate(times(shares, columns)):
                out[t] += mix
        return self.linear(out, layer + "attn_output")

    def feed_forward(self, xs, layer):
        gate, up = self.linear(xs, layer + "ffn_gate"), self.linear(xs, layer + "ffn_up")
        both = [[silu(a) * b for a, b in zip(g, u)] for g, u in zip(gate, up)]
        return self.linear(both, layer + "ffn_down")

    def norm(self, xs, name):
        return [rmsnorm(x, self.tensors[name], self.eps) for x in xs]

    def logits(self, tokens):
        """Of what follows the last of these tokens."""
        xs = [list(map(float, self.tensors["token_embd.weight"][t])) for t in tokens]
        for i in range(self.layers):
            layer = f"blk.{i}."
            xs = add(xs, self.attention(self.norm(xs, layer + "attn_norm.weight"), layer))
            xs = add(xs, self.feed_forward(self.norm(xs, layer + "ffn_norm.weight"), layer))
        tied = "output.weight" not in self.tensors
        last = self.norm(xs[-1:], "output_norm.weight")
        return self.linear(last, "token_embd" if tied else "output")[0]


# ---------------------------------------------------------------- goldens


def wrapped(words):
    return "".join("\n " + " ".join(words[i : i + 8]) for i in range(0, len(words), 8)) + "\n"


def case(model, prompt, count):
    tokens, margins, all_logits = list(prompt), [], []
    for _ in range(count):
        logits = model.logits(tokens)
        best, second = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:2]
        margins.append(logits[best] - logits[second])
        all_logits.append(logits)
        tokens.append(best)
    text = f"prompt {len(prompt)}" + wrapped([str(t) for t in prompt])
    text += f"greedy {count}" + wrapped([str(t) for t in tokens[len(prompt) :]])
    text += f"margin {count}" + wrapped([f"{m:.9g}" for m in margins])
    for at in sorted({0, count - 1}):
        numbers_of = [f"{a:.9g}" for a in all_logits[at]]
        text += f"logits {at} {len(numbers_of)}" + wrapped(numbers_of)
    return text


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def make_again(path, maker):
    with open(path, encoding="ascii") as f:
        first, rest = f.read().split("\n", 1)
    arguments = first.split()
    words, cases = rest.split(), []
    for i, word in enumerate(words):
        count = int(words[i + 1]) if word in ("prompt", "greedy") else 0
        if word == "prompt":
            cases.append([[int(t) for t in words[i + 2 : i + 2 + count]], 16])
        elif word == "greedy":
            cases[-1][1] = count
    assert arguments[0] == "toy-model" and cases, path
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.gguf")
        subprocess.run([maker, file] + arguments[1:], check=True)
        with open(file, "rb") as f:
            data = f.read()
    model = Model(data)
    text = f"{first}\nfnv {fnv(data):016x}\n" + "".join(case(model, *c) for c in cases)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "--maker":
        for path in arguments[2:]:
            make_again(path, arguments[1])
    elif len(arguments) >= 2 and not arguments[0].startswith("-"):
        with open(arguments[0], "rb") as f:
            model = Model(f.read())
        sys.stdout.write(case(model, [int(t) for t in arguments[1:]], 16))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
