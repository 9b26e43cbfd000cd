"""Whether a reply is what was asked for. A check is an object; all that it says has to hold.

    answer      lists of alternatives; of every list one occurs, as whole words
    without     none of these occurs
    exact       the reply is one of these, but for case and its last punctuation
    pattern     a regular expression that the reply contains
    call        the reply is one call of that tool with those arguments, but for case
    number      {"is": 5, "asked": [[2, 3]]}: of all numbers in the reply, in digits or in words, those of one
                way to repeat the question may stand there once; what is left says 5 and nothing else.
                So "5 + 0" is no answer to 5 + 0, nor "seventeen" to 3 + 4
    numbers     {"are": [1, 2, 3], "asked": [[1, 3]]}: the same of several numbers in this order
    among       the reply has no numbers but these
    min_words, max_words
"""
import json
import re

UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SPOKEN = UNITS + [ten + ("-" + unit if unit != "zero" else "") for ten in TENS for unit in UNITS[:10]] + ["one hundred"]
NUMBER = re.compile(r"(?:(?<!\w)(?<!\d )(-))?(\d+)|\b(one hundred|a hundred|(?:%s)(?:[- ](?:%s))?|%s)\b"
                    % ("|".join(TENS), "|".join(UNITS[1:10]), "|".join(UNITS)))


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


def numbers(text, known=()):
    """Those of a text up to a hundred in words, and all in digits. "One" is a number only where 1 is
    known to be about: "the larger one" is none."""
    out = []
    for minus, digits, spoken in NUMBER.findall(text.lower()):
        if digits:
            out.append(int(minus + digits))
        elif spoken != "one" or 1 in known:
            out.append(SPOKEN.index(spoken.replace(" ", "-").replace("one-h", "one h").replace("a-h", "one h")))
    return out


def known(want):
    return sum(want.get("asked", []), [want["is"]] if "is" in want else want["are"])


def number(want, reply):
    said = numbers(reply, known(want))
    for repeated in [[]] + want.get("asked", []):
        left = list(said)
        for one in repeated:
            if one in left:
                left.remove(one)
            else:
                left = []
        if left and set(left) == {want["is"]}:
            return True
    return False


def several(want, reply):
    return numbers(reply, known(want)) in [asked + want["are"] for asked in [[]] + want.get("asked", [])]


HOLDS = {
    "answer": lambda want, reply: all(any(occurs(a, reply) for a in some) for some in want),
    "without": lambda want, reply: not any(occurs(phrase, reply) for phrase in want),
    "exact": lambda want, reply: bare(reply) in map(bare, want),
    "pattern": lambda want, reply: re.search(want, reply) is not None,
    "call": calls,
    "number": number,
    "numbers": several,
    "among": lambda want, reply: set(numbers(reply, want)) <= set(want),
    "min_words": lambda want, reply: len(reply.split()) >= want,
    "max_words": lambda want, reply: len(reply.split()) <= want,
}


def passes(check, reply):
    return all(HOLDS[name](want, reply) for name, want in check.items())
