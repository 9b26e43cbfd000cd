#!/usr/bin/env python3
"""Makes teaspoon's tokenizer from the corpus: byte-level BPE, 2,048 tokens in all.

    tokenizer.py CORPUS_DIR tokenizer.json

A text is composed (NFC) and cut into words by Qwen2's pattern (a digit is always a word of its
own), and within a word the most frequent pair of neighbours becomes a token, again and again. Of
pairs that are equally frequent the one whose left token has the lowest id is taken, then the lowest
right one: the same corpus gives the same file, byte for byte.

Ids: 256 bytes in the order of GPT-2's alphabet, then the merges in the order they were learnt, then
the special tokens.
"""
import collections
import heapq
import itertools
import json
import sys
import unicodedata

import regex

from documents import documents, render

SIZE = 2048
# What a program has to see in an answer (a tool's call) is no special token to Hugging Face, which
# drops special ones from a text: those are the ones that begin with "<|".
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>",
           "<tool_response>", "</tool_response>"] + ["<|spare_%d|>" % i for i in range(9)]
WORD = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def alphabet():
    """GPT-2's letters for the 256 bytes: printable ones stand for themselves."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [b for b in range(256) if b not in own]
    return {b: chr(b) for b in own} | {b: chr(256 + i) for i, b in enumerate(other)}


LETTER = alphabet()
BYTE = {letter: byte for byte, letter in LETTER.items()}


def pairs_of(word):
    return collections.Counter(itertools.pairwise(word))


def merged(word, pair, token):
    out, i = [], 0
    while i < len(word):
        if word[i : i + 2] == pair:
            out.append(token)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def learn(counts, many):
    """The pairs to merge, in order.  counts: how often each word (a tuple of ids) occurs."""
    words = sorted(counts)
    times = [counts[word] for word in words]
    total, where = collections.Counter(), collections.defaultdict(set)
    for i, word in enumerate(words):
        for pair, n in pairs_of(word).items():
            total[pair] += n * times[i]
            where[pair].add(i)
    # A pair is pushed anew when its count has changed; an entry that is out of date is passed over.
    heap = [(-n, pair) for pair, n in total.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(merges) < many:
        n, pair = heapq.heappop(heap)
        if -n != total[pair] or n == 0:
            continue
        token = 256 + len(merges)
        merges.append(pair)
        changed = set()
        for i in where.pop(pair):
            before, words[i] = words[i], merged(words[i], pair, token)
            was, now = pairs_of(before), pairs_of(words[i])
            for other in was.keys() | now.keys():
                if was[other] == now[other]:
                    continue
                total[other] += (now[other] - was[other]) * times[i]
                changed.add(other)
                if now[other]:
                    where[other].add(i)
                else:
                    where[other].discard(i)
        for other in changed:
            if total[other] > 0:
                heapq.heappush(heap, (-total[other], other))
    return merges


def train(texts):
    """What tokenizer.json says, as an object."""
    letters = list(LETTER.values())
    letters.sort()
    id_of = {BYTE[letter]: i for i, letter in enumerate(letters)}
    special, word = regex.compile("|".join(map(regex.escape, SPECIAL))), regex.compile(WORD)
    found = collections.Counter()
    for text in texts:
        for part in special.split(text):
            found.update(word.findall(unicodedata.normalize("NFC", part)))
    counts = {tuple(id_of[b] for b in w.encode()): n for w, n in found.items()}
    merges = learn(counts, SIZE - 256 - len(SPECIAL))
    if 256 + len(merges) + len(SPECIAL) != SIZE:
        raise SystemExit("the corpus is too small: %d merges in all" % len(merges))
    tokens = letters
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    return description(tokens, merges)


def description(tokens, merges):
    added = [{"id": len(tokens) + i, "content": text, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": text.startswith("<|")}
             for i, text in enumerate(SPECIAL)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                  "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": WORD}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {text: i for i, text in enumerate(tokens)},
                  "merges": [[tokens[left], tokens[right]] for left, right in merges]}}


class Tokenizer:
    """Encodes and decodes by a tokenizer.json that was made here."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        self.vocab = said["model"]["vocab"]
        self.merges = [tuple(pair) for pair in said["model"]["merges"]]
        self.special = {t["content"]: t["id"] for t in said["added_tokens"]}
        self.tokens = list(self.vocab) + list(self.special)
        self.rank = {pair: i for i, pair in enumerate(self.merges)}
        self.word = regex.compile(WORD)
        self.cut = regex.compile("(%s)" % "|".join(map(regex.escape, self.special)))
        self.known = {}

    def encode(self, text):
        ids = []
        for part in self.cut.split(text):
            if part in self.special:
                ids.append(self.special[part])
                continue
            for word in self.word.findall(unicodedata.normalize("NFC", part)):
                if word not in self.known:
                    self.known[word] = self.pieces(word)
                ids += self.known[word]
        return ids

    def pieces(self, word):
        """The ids of one word: the pair that was learnt first is merged first."""
        parts = [LETTER[b] for b in word.encode()]
        while len(parts) > 1:
            best = min(itertools.pairwise(parts), key=lambda p: self.rank.get(p, SIZE))
            if best not in self.rank:
                break
            parts = merged(tuple(parts), best, best[0] + best[1])
        return [self.vocab[part] for part in parts]

    def bytes_of(self, token):
        text = self.tokens[token]
        return text.encode() if text in self.special else bytes(BYTE[c] for c in text)

    def decode(self, ids):
        return b"".join(self.bytes_of(i) for i in ids).decode("utf-8", "replace")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    said = train(render(document) for document in documents(sys.argv[1], "train"))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(said, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
