#!/usr/bin/env python3
"""Writes tests/kernels/samplers-golden.h: which tokens picks draw, by the formulas alone.

Needs numpy.  Rows and picks are made from random integers, which the test makes in the same way.
Everything is computed in float64 by the definitions of kernels/cuts.h and kernels/draw.h, with whole
rows, plain sorting and no shortcuts.

    samplers.py >tests/kernels/samplers-golden.h
"""
import math

import numpy as np

ROWS = 1000
KINDS = ["n_sigma", "typical", "xtc", "dynamic", "last", "mask", "edits", "all", "mirostat"]
BESIDE_MIROSTAT = ["mirostat", "dynamic", "mask", "edits"]
F = np.float32
FAILED = 255


class Random:
    def __init__(self, state):
        self.state = state

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 32) * n >> 32

    def one_of(self, numbers):
        return F(numbers[self.below(len(numbers))])


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b % 2**32, (a >> 32) ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def words(pick, purpose, index):
    return philox([pick["position"], 0, 0, purpose << 28 | index], [pick["seed"], 0])


def word(pick, purpose, n):
    return words(pick, purpose, n // 64 * 16 + n % 16)[n // 16 % 4]


def wait(number):
    return -math.log((number + 0.5) / 2**32)


def time(pick, token):
    least = wait(word(pick, 1, token // 32)) / 32
    if word(pick, 2, token // 32) >> 27 == token % 32:
        return least
    return least + wait(word(pick, 3, token))


def make_row(random):
    kind, vocab = random.below(8), 1 + random.below(100)
    row = [0.0] * vocab
    for i in range(vocab):
        n = random.below(2048)
        if kind == 0:
            row[i] = (n % 12) / 2  # ties
        elif kind == 1:
            row[i] = (n % 9 - 4) * 2.0**-149  # around zero
        elif kind == 2:
            row[i] = 20.0 if i == vocab // 2 else -20.0
        elif kind == 3:
            row[i] = 0.5 if i == vocab // 3 else -math.inf
        elif kind == 4:
            row[i] = -math.inf if n % 3 else n / 256
        elif kind == 5:
            row[i] = -(n % 64) ** 2 / 128  # steep
        else:
            row[i] = (n - 1024) / 256
    if kind == 4:
        row[vocab - 1] = 1.5
    return np.array(row, dtype=F)


def make_pick(random, kind, vocab):
    has = lambda name: name in BESIDE_MIROSTAT if kind == "mirostat" else kind in (name, "all")
    pick = {"seed": random.below(2**32), "position": random.below(2**32)}
    pick["temperature"] = random.one_of([1, 0.75, 1.5, 0.5, 3, 0 if random.below(8) == 0 else 1])
    pick["top_k"] = int(random.one_of([0, 0, 1, 3, 17, 40]))
    pick["top_p"] = random.one_of([1, 1, 0.9, 0.62, 0.33])
    pick["min_p"] = random.one_of([0, 0, 0.07, 0.26])
    pick["n_sigma"] = random.one_of([0.3, 0.7, 1.1, 1.7]) if has("n_sigma") else F(0)
    pick["typical"] = random.one_of([0.2, 0.47, 0.81, 0.93]) if has("typical") else F(0)
    pick["xtc_chance"] = random.one_of([0.3, 0.7, 1]) if has("xtc") else F(0)
    pick["xtc_least"] = random.one_of([0.03, 0.07, 0.13, 0.37]) if has("xtc") else F(0)
    pick["range"] = random.one_of([0.25, 0.5, 1.5]) if has("dynamic") else F(0)
    pick["exponent"] = random.one_of([1, 0.5, 2]) if has("dynamic") else F(0)
    pick["last"] = bool(has("last") if kind != "all" else random.below(2))
    pick["mask"] = [random.below(3) > 0 for _ in range(vocab)] if has("mask") else None
    pick["edits"] = []
    for token in range(vocab if has("edits") else 0):
        if random.below(4) == 0:
            pick["edits"].append((token, (random.below(17) - 8) / 4, random.one_of([1, 1.3, 0.8]),
                                  math.inf if random.below(6) == 0 else random.below(9) / 8))
    pick["mu"] = float(random.one_of([0.5, 1, 2.1, 3.3, 5, 10])) if kind == "mirostat" else None
    return pick


def softmax(logits, temperature):
    e = np.exp((logits - logits[0]) / temperature)
    return e / sum(e)


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def find_temperature(pick, logits):
    t, r = float(pick["temperature"]), float(pick["range"])
    if r == 0 or len(logits) == 1:
        return t
    lo, hi = max(0.0, t - r), t + r
    h = entropy(softmax(logits, 1.0)) / math.log(len(logits))
    return lo + (hi - lo) * max(h, 0.0) ** float(pick["exponent"])


def reaches(p, order, wanted):
    kept, total = [], 0.0
    for i in order:
        kept.append(i)
        total += p[i]
        if total >= wanted:
            break
    return sorted(kept)


def edit(row, pick):
    row = row.astype(np.float64)
    for token, bias, theta, after in pick["edits"]:
        x = row[token] + bias
        row[token] = F((x / float(theta) if x > 0 else x * float(theta)) - after)
    if pick["mask"] is not None:
        row[[i for i, legal in enumerate(pick["mask"]) if not legal]] = -math.inf
    return row


def draw(row, pick):
    """The token, and its surprise in bits."""
    row = edit(row, pick)
    line = sorted((i for i in range(len(row)) if row[i] > -math.inf), key=lambda i: (-row[i], i))
    if not line:
        return FAILED, 0
    if pick["temperature"] == 0:
        return line[0], 0
    logits = lambda: row[line]
    if pick["n_sigma"] > 0:
        least = max(row) - float(pick["n_sigma"]) * np.std(logits())
        line = [i for i in line if row[i] >= least]
    t = 1.0 if pick["last"] else find_temperature(pick, logits())
    if t == 0:
        return line[0], 0
    if pick["top_k"]:
        line = line[: pick["top_k"]]
    if pick["typical"] > 0:
        p = softmax(logits(), t)
        h = entropy(p)
        far = lambda i: (abs(-math.log(p[i]) - h) if p[i] > 0 else math.inf, i)
        line = [line[i] for i in reaches(p, sorted(range(len(line)), key=far), float(pick["typical"]))]
    p = softmax(logits(), t)
    if pick["top_p"] < 1:
        line = [line[i] for i in reaches(p, range(len(line)), float(pick["top_p"]))]
    line = [token for i, token in enumerate(line) if not i or p[i] >= float(pick["min_p"]) * p[0]]
    if pick["mu"] is not None:
        p = softmax(logits(), t)
        line = [i for n, i in enumerate(line) if not n or p[n] >= 2.0 ** -pick["mu"]]
    if pick["xtc_chance"] > 0:
        a, b = words(pick, 0, 0)[:2]
        if ((a << 8 | b >> 24) + 0.5) / 2**40 < float(pick["xtc_chance"]):
            p = softmax(logits(), t)
            likely = sum(p >= float(pick["xtc_least"]))
            if likely >= 2:
                line = line[likely - 1:]
    if pick["last"]:
        t = find_temperature(pick, logits())
        if t == 0:
            return line[0], 0
    scores = [(row[i] / t - math.log(time(pick, i)), -i) for i in line]
    token = -max(scores)[1]
    return token, -math.log2(softmax(logits(), t)[line.index(token)])


def main():
    print("/* Made by contrib/reference/samplers.py: the token of each row; 255: none is legal. */")
    print("#ifndef TESTS_KERNELS_SAMPLERS_GOLDEN_H\n#define TESTS_KERNELS_SAMPLERS_GOLDEN_H\n")
    print("#include <stdint.h>\n\n/* clang-format off */")
    for kind in KINDS:
        random = Random(len(kind) * 1000003 + ord(kind[0]))
        tokens, surprises = [], []
        for _ in range(ROWS):
            row = make_row(random)
            token, surprise = draw(row, make_pick(random, kind, len(row)))
            tokens.append(token)
            surprises.append(surprise)
        print(f"static const uint8_t golden_{kind}[{ROWS}] = {{")
        for i in range(0, ROWS, 20):
            print("        " + " ".join(f"{t}," for t in tokens[i:i + 20]))
        print("};")
    print(f"static const float golden_surprise[{ROWS}] = {{")
    for i in range(0, ROWS, 10):
        print("        " + " ".join(f"{s:.8g}f," if s % 1 else f"{s or 0:.0f}," for s in surprises[i:i + 10]))
    print("};")
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
