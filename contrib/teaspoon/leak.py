#!/usr/bin/env python3
"""Are the evaluation's prompts in the corpus?

    leak.py CORPUS_DIR PROMPTS.jsonl

No six words in a row of a prompt's last message may stand anywhere in the corpus; of a shorter one, not
the whole as what a user says.  Prints how many do and which, never the words: nobody who works on the
generator should read the prompts.
"""
import json
import pathlib
import re
import sys

RUN = 6


def words(text):
    """Lower-cased, without punctuation."""
    return [word for word in re.sub(r"[^a-z0-9_-]+", " ", text.lower()).split() if word.strip("-_")]


def runs(text):
    """All runs of six words."""
    found = words(text)
    return {tuple(found[at:at + RUN]) for at in range(len(found) - RUN + 1)}


def asked(prompt):
    """The part of a prompt that is to be answered."""
    return next(m["content"] for m in reversed(prompt["messages"]) if m["role"] == "user")


def blocked(prompts):
    """What no document may hold: (runs of six, shorter prompts as a whole)."""
    long, short = set(), set()
    for prompt in prompts:
        text = asked(prompt)
        long |= runs(text)
        if len(words(text)) < RUN:
            short.add(tuple(words(text)))
    return long, short


def texts(document):
    return [document["text"]] if "text" in document else [m["content"] for m in document["messages"] if isinstance(m.get("content"), str)]


def holds(blocked, document):
    long, short = blocked
    for text in texts(document):
        if not long.isdisjoint(runs(text)):
            return True
    return any(m["role"] == "user" and tuple(words(m["content"])) in short for m in document.get("messages", ()))


def main():
    corpus, prompts = pathlib.Path(sys.argv[1]), [json.loads(line) for line in open(sys.argv[2])]
    of = {}
    for prompt in prompts:
        for run in runs(asked(prompt)) or {tuple(words(asked(prompt)))}:
            of.setdefault(run, set()).add(prompt["id"])
    found, documents = set(), 0
    for name in ("train.jsonl", "valid.jsonl"):
        for line in (corpus / name).open():
            document = json.loads(line)
            documents += 1
            for text in texts(document):
                for run in runs(text) & of.keys():
                    found |= of[run]
            for message in document.get("messages", ()):
                if message["role"] == "user" and len(words(message["content"])) < RUN:
                    found |= of.get(tuple(words(message["content"])), set())
    print(f"{len(prompts)} prompts, {documents} documents: {len(found)} prompts stand in the corpus {sorted(found)}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
