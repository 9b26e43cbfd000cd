"""A grammar small enough to write by hand: `[a|b|]` is one of its alternatives, and they nest.

`say(rng, "[What is|How much is] {a} plus {b}[?|]", a=2, b=3)` chooses first and fills in names
after, so a value never is taken for grammar.
"""
from functools import lru_cache


@lru_cache(maxsize=None)
def _parse(text):
    """A tuple of parts; a part is a string, or a list of such tuples to choose from."""
    stack, parts, options, start = [], [], None, 0
    for at, char in enumerate(text):
        if char not in "[|]":
            continue
        if char == "|" and options is None:
            continue
        if at > start:
            parts.append(text[start:at])
        start = at + 1
        if char == "[":
            stack.append((parts, options))
            parts, options = [], []
        elif char == "|":
            options.append(tuple(parts))
            parts = []
        else:
            options.append(tuple(parts))
            choice = options
            parts, options = stack.pop()
            parts.append(choice)
    assert not stack, text
    if start < len(text):
        parts.append(text[start:])
    return tuple(parts)


def _choose(rng, parts):
    return "".join(part if isinstance(part, str) else _choose(rng, rng.choice(part)) for part in parts)


def say(rng, text, /, **names):
    """One of the things that `text` can mean; a list of texts is one more choice."""
    if not isinstance(text, str):
        text = rng.choice(text)
    words = _choose(rng, _parse(text))
    return words.format(**names) if "{" in words else words


def upper_first(text):
    return text[:1].upper() + text[1:]


def a(noun):
    """The noun with its article."""
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def listed(words, last="and"):
    """one / one and two / one, two and three"""
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} " + words[-1]


_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
          "sixteen seventeen eighteen nineteen").split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def spelled(number):
    """0 to 999 in words."""
    if number < 20:
        return _UNITS[number]
    if number < 100:
        return _TENS[number // 10] + ("-" + _UNITS[number % 10] if number % 10 else "")
    return _UNITS[number // 100] + " hundred" + (" and " + spelled(number % 100) if number % 100 else "")


def number(rng, value, words=None):
    """In digits or in words; `words` fixes which."""
    if words is None:
        words = rng.random() < 0.5
    return spelled(value) if words else str(value)
