"""Whether a reply is what was asked for. A check is an object; all that it says has to hold.

    answer      lists of alternatives; of every list one occurs, as whole words
    without     none of these occurs
    exact       the reply is one of these, but for case and its last punctuation
    pattern     a regular expression that the reply contains
    call        the reply is one call of that tool with those arguments, but for case
    min_words, max_words
"""
import json
import re


def words(text):
    """A text as its words: letters, digits, "-", "_", and "." within a word."""
    kept = "".join(c if c.isalnum() or c in "-_." else " " for c in text.lower())
    return [word for word in (w.rstrip(".") for w in kept.split()) if word]


def occurs(phrase, text):
    return " %s " % " ".join(words(phrase)) in " %s " % " ".join(words(text))


def bare(text):
    return text.lower().strip().rstrip(".!?,;:").rstrip()


def lowered(value):
    if isinstance(value, dict):
        return {key: lowered(one) for key, one in value.items()}
    return value.lower() if isinstance(value, str) else value


def calls(want, reply):
    found = re.fullmatch(r"\s*<tool_call>(.*?)</tool_call>\s*", reply, re.S)
    if not found:
        return False
    try:
        got = json.loads(found[1])
    except ValueError:
        return False
    return isinstance(got, dict) and lowered(got) == lowered(want)


HOLDS = {
    "answer": lambda want, reply: all(any(occurs(a, reply) for a in some) for some in want),
    "without": lambda want, reply: not any(occurs(phrase, reply) for phrase in want),
    "exact": lambda want, reply: bare(reply) in map(bare, want),
    "pattern": lambda want, reply: re.search(want, reply) is not None,
    "call": calls,
    "min_words": lambda want, reply: len(reply.split()) >= want,
    "max_words": lambda want, reply: len(reply.split()) <= want,
}


def passes(check, reply):
    return all(HOLDS[name](want, reply) for name, want in check.items())
