#!/usr/bin/env python3
"""Makes the corpus that teaspoon learns from.

    corpus.py OUT_DIR [--seed N] [--documents N]

Writes train.jsonl and valid.jsonl, a document a line.  Every document has its own random numbers, keyed
by the seed and its place, so the same seed gives the same files byte for byte.  A document that has six
words in a row with a prompt of the evaluation is left out: those wordings are for the examination.
"""
import argparse
import json
import pathlib
import random

import leak
from corpus import arithmetic, dates, drills, lists, nature, samovar, stories, talk, tools

HERE = pathlib.Path(__file__).parent
BEFORE = ("Please tell me: ", "Hi! ", "Hello, ", "Hey, ", "Quick question: ", "A question: ", "Say, ", "Well, ", "So, ", "Ok, ", "Good morning. ", "Teaspoon, ", "One question: ", "I wonder: ", "Please: ", "Tell me, ", "Now, ", "Just a question: ", "And now: ", "Um, ",
          "Sorry to ask, but ", "I forgot: ", "My child asks: ", "Hi there, ", "For my homework: ", "Another question. ", "Listen, ", "Excuse me, ")
AFTER = (" Thanks!", " Thank you.", " Please.", ", please", " please", " Thanks", " I wonder.", ", teaspoon?", " (short answer)", " Tell me!", " I forgot.", " :)", " quickly", "??", "!", " ...", " exactly")


def slip(rng, text):
    """One slip of the finger, not in a number."""
    at = rng.randrange(1, max(2, len(text) - 1))
    if not text[at - 1:at + 1].isalpha():
        return text
    kind = rng.random()
    if kind < 0.4:
        return text[:at] + text[at + 1:]
    if kind < 0.7:
        return text[:at] + text[at] + text[at:]
    return text[:at - 1] + text[at] + text[at - 1] + text[at + 1:]


def surface(rng, question):
    """What a person types who means `question`."""
    if rng.random() < 0.14:
        before = rng.choice(BEFORE)
        question = before + (question if before[-2] in ":.!" or question[:2] == "I " else question[0].lower() + question[1:] if question[1:2].islower() else question)
    if rng.random() < 0.08 and "`" not in question:
        after = rng.choice(AFTER)
        question = (question.rstrip("?.!") if after[0] in ",?!." or after[1:2].islower() else question) + after
    if rng.random() < 0.14:
        question = question.rstrip("?.!")
    if rng.random() < 0.20:
        question = question[0].lower() + question[1:] if rng.random() < 0.5 else question.lower()
    if rng.random() < 0.02 and len(question) > 12:
        question = slip(rng, question)
    return question


def asked(subject):
    def document(rng):
        question, answer = subject(rng)
        messages = [{"role": "user", "content": surface(rng, question)}, {"role": "assistant", "content": answer}]
        if rng.random() < 0.03:
            messages.insert(0, {"role": "system", "content": rng.choice(talk.PLAIN_SYSTEM)})
        return {"messages": messages}
    return document


def text(teller):
    return lambda rng: {"text": teller(rng)}


# (how many of a hundred documents, maker)
SUBJECTS = (
    (15, asked(arithmetic.ask)),
    (8, asked(dates.ask)),
    (4, asked(nature.colours)),
    (7, asked(nature.animals)),
    (14, asked(lists.ask)),
    (5, drills.document),
    (8, asked(stories.ask)),
    (14, lambda rng: talk.document(rng, surface)),
    (17, asked(samovar.ask)),
    (5, lambda rng: tools.document(rng, surface)),
    (1, text(stories.told)),
    (1, text(nature.told)),
    (1, text(samovar.told)),
)


def make(rng):
    return rng.choices([maker for _, maker in SUBJECTS], [share for share, _ in SUBJECTS])[0](rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=400_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    prompts = [json.loads(line) for name in ("heldout.jsonl", "dev.jsonl") for line in (HERE / name).open()]
    blocked = leak.blocked(prompts)
    seen, left_out = set(), 0
    with (options.out / "train.jsonl").open("w") as train, (options.out / "valid.jsonl").open("w") as valid:
        for number in range(options.documents):
            document = make(random.Random(f"{options.seed}/{number}"))
            line = json.dumps(document, ensure_ascii=False)
            if line in seen or leak.holds(blocked, document):
                left_out += 1
                continue
            seen.add(line)
            (valid if number % 200 == 199 else train).write(line + "\n")
    print(f"{len(seen)} documents, {left_out} left out: said before, or too near to a prompt of the evaluation")


if __name__ == "__main__":
    main()
