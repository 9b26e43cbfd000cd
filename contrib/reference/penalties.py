#!/usr/bin/env python3
"""Writes tests/unit/history-golden.h: the logits after biases, penalties and bans.

Needs nothing but Python.  Rules and tokens are made from random integers, which the test makes in
the same way.  Each logit is computed by the definitions alone, in float64, from all tokens before,
with no counts that are carried on, no sorted vocabulary and no automaton.

    penalties.py >tests/unit/history-golden.h
"""
import math

CASES = 400
PIECES = [b"a", b"b", b"ab", b"ba", b"bab", b"\n", b"x:", b"c", b"abc", b"ca", b"", b"cb", b"b\n", b"aa", b"*", b"d"]
TEXTS = [b"ab", b"bc", b"abca", b"aab", b"c\n", b"babab", b"x:d", b"dd"]
BREAKERS = [b"\n", b":", b"*", b"aa"]
WINDOW = 3072


class Random:
    def __init__(self, state):
        self.state = state

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 32) * n >> 32

    def one_of(self, *numbers):
        return numbers[self.below(len(numbers))]

    def chance(self):
        return self.below(3) == 0


def make(random):
    n = {"long": random.below(40) == 0}
    kinds = random.one_of(2, 3, 5, 16)
    n["tokens"] = [random.below(kinds) for _ in range(3000 + random.below(2000) if n["long"] else 1 + random.below(60))]
    n["answer"] = random.below(len(n["tokens"]) + 1)
    n["presence"] = random.one_of(0.5, -0.25, 1.5) if random.chance() else 0
    n["frequency"] = random.one_of(0.125, -0.5, 2) if random.chance() else 0
    n["repetition"] = random.one_of(1.25, 0.5, 1.75) if random.chance() else 1
    n["repeat_window"] = random.one_of(1, 3, 20, WINDOW)
    n["multiplier"] = random.one_of(0.75, 2) if random.chance() else 0
    n["base"] = random.one_of(1.75, 1, 3)
    n["allowed"] = random.one_of(1, 2, 4)
    n["dry_window"] = random.one_of(2, 12, WINDOW)
    n["breakers"] = [b for b in BREAKERS if random.chance()]
    n["ngram"] = 1 + random.below(4) if random.chance() else 0
    n["min"] = random.below(12) if random.chance() else 0
    n["biases"] = {v: (random.below(64) - 32) / 8 for v in range(16) if random.below(6) == 0}
    n["legal"] = [v for v in range(16) if random.below(5)] if random.chance() else None
    n["banned"] = [v for v in range(16) if random.below(8) == 0] if random.chance() else []
    n["texts"] = [t for t in TEXTS if random.chance()] if random.chance() else []
    return n


def dry_length(n, v):
    """The longest end of the window that occurs earlier, followed by v, with no breaker in it."""
    breaks = lambda token: any(b in PIECES[token] for b in n["breakers"])
    t = n["tokens"][-n["dry_window"]:]
    best = 0
    for i in range(len(t) - 1):
        m = 0
        while t[i + 1] == v and m <= i and t[i - m] == t[-1 - m] and not breaks(t[i - m]):
            m += 1
        best = max(best, m)
    return 0 if breaks(v) else best


def is_banned(n, v):
    t, made = n["tokens"], n["tokens"][n["answer"]:]
    if n["legal"] is not None and v not in n["legal"] or v in n["banned"]:
        return True
    if v in (14, 15) and len(made) < n["min"]:  # the end tokens of the test
        return True
    if n["ngram"] and any(t[i:i + n["ngram"]] == t[len(t) - n["ngram"] + 1:] + [v]
                          for i in range(len(t) - n["ngram"] + 1) if len(t) >= n["ngram"] - 1):
        return True
    before = b"".join(PIECES[token] for token in made)
    after = before + PIECES[v]
    return any(after[end - len(s):end] == s for s in n["texts"] for end in range(len(before) + 1, len(after) + 1)
               if end >= len(s))


def logit(n, v, l):
    if is_banned(n, v):
        return -math.inf
    l += n["biases"].get(v, 0)
    if v in n["tokens"][-n["repeat_window"]:]:
        l = l / n["repetition"] if l > 0 else l * n["repetition"]
    count = n["tokens"][n["answer"]:][-WINDOW:].count(v)
    l -= n["presence"] * (count > 0) + n["frequency"] * count
    length = dry_length(n, v) if n["multiplier"] else 0
    if n["multiplier"] and length >= n["allowed"]:
        over = length - n["allowed"]
        if n["base"] > 1:
            over = min(over, math.floor(88.7 / math.log(n["base"])))
        l -= min(n["multiplier"] * n["base"] ** over, 1e30)
    return l


def main():
    random = Random(37)
    print(f"""/* Made by contrib/reference/penalties.py: the logits of 16 tokens, for each case. */
#ifndef TESTS_UNIT_HISTORY_GOLDEN_H
#define TESTS_UNIT_HISTORY_GOLDEN_H

#include <math.h>

/* clang-format off */
static const double history_golden[{CASES}][16] = {{""")
    for _ in range(CASES):
        n = make(random)
        row = [(random.below(256) - 128) / 16 for _ in range(16)]
        texts = ["-INFINITY" if x == -math.inf else f"{x:.10g}" for x in (logit(n, v, l) for v, l in enumerate(row))]
        print("        { " + ", ".join(texts) + " },")
    print("""};
/* clang-format on */

#endif""")


if __name__ == "__main__":
    main()
