#!/usr/bin/env python3
"""Writes the plain questions: what a newcomer types first, of everything in SUBJECTS.md.

    plain.py FILE.jsonl [--each 40]

dev.jsonl and heldout.jsonl ask in many words, few times each. A model may do well there and fail on "What
is two plus three?", so this asks in the words that most people take, and of small tables all that is in
them. FILE is for evaluate.py, and the same each time. With --each there are no more than so many of a kind,
always the same ones. The questions may stand in the corpus: who asks plainly should have been heard there.

A kind is a function; it yields questions, or what was said so far, and what has to hold of the reply.
"""
import argparse
import hashlib
import json
import re

from checks import SPOKEN
from plain_samovar import ASKED

KINDS = {}


def kind(name):
    def add(ask):
        KINDS[name] = ask
        return ask
    return add


def number(right, *asked):
    """`asked`: the numbers that a reply repeats, in the ways it may."""
    return {"number": {"is": right, "asked": [list(one) for one in asked]}, "max_words": 15}


def word(*right, without=(), most=15):
    return {"answer": [list(right)], "without": list(without), "max_words": most}


def others(table, *but):
    return sorted(set(table) - set(but))


def among(names):
    return "(?:%s)" % "|".join(names)


def a(thing):
    return ("an " if thing[0] in "aeiou" else "a ") + thing


# Arithmetic

SUMS = [(x, y) for x in range(21) for y in range(21)]
DIFFERENCES = [(x, y) for x, y in SUMS if x >= y]
TABLES = [(x, y) for x in range(1, 11) for y in range(1, 11)]


def sums(pairs, result, *questions):
    def ask():
        for x, y in pairs:
            for question in questions:
                check = number(result(x, y), (x, y))
                if x != y and "min" in question + result.__name__:
                    check["without"] = ["%s %s %s" % (p, sign, q) for sign in ("-", "minus")
                                        for p, q in ((y, x), (SPOKEN[y], SPOKEN[x]))]
                yield question.format(x=x, y=y, X=SPOKEN[x], Y=SPOKEN[y]), check
    return ask


def plus(x, y):
    return x + y


def minus(x, y):
    return x - y


def times(x, y):
    return x * y


KINDS["plus in words"] = sums(SUMS, plus, "What is {X} plus {Y}?")
KINDS["plus in digits"] = sums(SUMS, plus, "What is {x} plus {y}?", "{x} plus {y}")
KINDS["plus by sign"] = sums(SUMS, plus, "{x} + {y}", "What is {x} + {y}?")
KINDS["how much is"] = sums(SUMS, plus, "How much is {X} and {Y}?", "How much is {x} and {y}?")
KINDS["minus in words"] = sums(DIFFERENCES, minus, "What is {X} minus {Y}?")
KINDS["minus in digits"] = sums(DIFFERENCES, minus, "What is {x} minus {y}?", "{x} minus {y}")
KINDS["minus by sign"] = sums(DIFFERENCES, minus, "{x} - {y}", "What is {x} - {y}?")
KINDS["times in words"] = sums(TABLES, times, "What is {X} times {Y}?")
KINDS["times in digits"] = sums(TABLES, times, "What is {x} times {y}?", "{x} times {y}")
KINDS["times by sign"] = sums(TABLES, times, "{x} x {y}", "What is {x} x {y}?", "{x} * {y}")


@kind("double, half")
def doubles():
    for n in range(1, 21):
        for said in (n, SPOKEN[n]):
            yield f"What is double {said}?", number(2 * n, (n,), (n, n), (2, n))
            if n % 2 == 0:
                yield f"What is half of {said}?", number(n // 2, (n,), (n, 2))


@kind("next number")
def neighbours():
    for n in range(1, 100):
        for said in (n, SPOKEN[n]) if n <= 20 else (n,):
            yield f"What number comes after {said}?", number(n + 1, (n,))
            yield f"What number comes before {said}?", number(n - 1, (n,))
            yield f"What comes after {said}?", number(n + 1, (n,))


def either(right, wrong, is_not):
    """Of two numbers one is named as asked, or the other as the opposite of it."""
    yes, no = (r"(?<![\w-])(?<!ty )(?:%d|%s)(?!\w|[- ]%s\b)" % (n, SPOKEN[n].replace("-", "[- ]"), among(SPOKEN[1:10]))
               for n in (right, wrong))
    both = r"\W*(?:of |between )?(?:%s\W+(?:and|or)\W+%s|%s\W+(?:and|or)\W+%s)\W" % (yes, no, no, yes)
    return {"pattern": r"(?is)^(?!.*(?:%s|equal|\?))(?:%s)?(?:(?!%s).)*%s|^\W*(?:%s) is (?:%s)" % (among(is_not), both, no, yes, no, among(is_not)),
            "max_words": 15}


@kind("larger, smaller")
def larger():
    for n in range(1, 101):
        m = (n * 37 + 11) % 101
        if n != m:
            low, high = sorted((n, m))
            yield f"Which is larger, {n} or {m}?", either(high, low, ("smaller", "less"))
            yield f"Which is bigger, {n} or {m}?", either(high, low, ("smaller", "less"))
            yield f"Which number is smaller, {n} or {m}?", either(low, high, ("larger", "bigger", "greater", "more"))


@kind("even, odd")
def even():
    for n in range(1, 101):
        right, wrong = ("odd", "even") if n % 2 else ("even", "odd")
        yield f"Is {n} even or odd?", {"pattern": rf"(?is)^(?!.*\?)(?:(?!\b{wrong}\b|\bnot {right}\b).)*\b{right}\b", "among": [n, 1, 2], "max_words": 15}
        yes, no = (["yes"], ["no", "not", wrong]), (["no", "not", right], ["yes"])
        for asked in ("even", "odd"):
            said, never = yes if asked == right else no
            yield f"Is {n} {asked}?", {"answer": [said], "without": never, "among": [n, 1, 2], "max_words": 15}


@kind("told in a story")
def apples():
    for x, y in ((3, 2), (5, 4), (7, 1), (10, 5), (8, 6), (12, 3), (9, 9), (15, 4), (6, 2), (20, 10)):
        yield f"I have {x} apples and buy {y} more. How many apples do I have?", number(x + y, (x, y))
        yield f"Tom has {x} apples. He eats {y}. How many are left?", number(x - y, (x, y))
        yield f"Anna has {x} coins and gets {y} more. How many coins does she have?", number(x + y, (x, y))
        if x <= 10:
            yield f"Two boys have {x} books each. How many books are that?", number(2 * x, (2, x), (x, x))


# Dates

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NTH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
SEASONS = {"winter": (11, 0, 1), "spring": (2, 3, 4), "summer": (5, 6, 7), "autumn": (8, 9, 10)}


def step(names, at, by):
    """The name that many after the one at a place. It may be said the other way round, if it is true."""
    here, there = names[at], names[(at + by) % len(names)]
    wrong = ("after", "before") if by > 0 else ("before", "after")
    return word(there, without=others(names, here, there) + [f"{here} comes {wrong[0]}", f"{here} is {wrong[0]}", f"{there} comes {wrong[1]}", f"{there} is {wrong[1]}"])


@kind("day after, before")
def days():
    for at, day in enumerate(DAYS):
        for by, where in ((1, "after"), (-1, "before")):
            yield f"What day comes {where} {day}?", step(DAYS, at, by)
            yield f"Which day is {where} {day}?", step(DAYS, at, by)
            yield f"What is the day {where} {day}?", step(DAYS, at, by)
        yield f"What day is two days after {day}?", step(DAYS, at, 2)
        yield f"Today is {day}. What day is tomorrow?", step(DAYS, at, 1)


@kind("month after, before")
def months():
    for at, month in enumerate(MONTHS):
        for by, where in ((1, "after"), (-1, "before")):
            yield f"What month comes {where} {month}?", step(MONTHS, at, by)
            yield f"Which month is {where} {month}?", step(MONTHS, at, by)
        yield f"What is the {NTH[at]} month?", word(month, without=others(MONTHS, month))
        yield f"What is the {NTH[at]} month of the year?", word(month, without=others(MONTHS, month))


@kind("days in a month")
def lengths():
    for month, many in zip(MONTHS, LENGTHS):
        check = {"answer": [["28", "twenty-eight"]], "among": [28, 29, 1], "max_words": 15} if many == 28 else number(many)
        for question in ("How many days are in {m}?", "How many days does {m} have?", "How many days has {m}?"):
            yield question.format(m=month), check
    yield "How many days does February have in a leap year?", number(29, (28,))


@kind("days, hours, weeks")
def units():
    for what, whole, many in (("days", "a week", 7), ("months", "a year", 12), ("weeks", "a year", 52), ("hours", "a day", 24),
                              ("minutes", "an hour", 60), ("seconds", "a minute", 60), ("days", "a year", 365)):
        check = number(many) if many < 100 else {"answer": [["365", "three hundred and sixty-five", "three hundred sixty-five"]], "max_words": 15}
        for question in ("How many {what} are in {whole}?", "How many {what} are there in {whole}?", "How many {what} does {whole} have?", "How many {what} in {whole}?", "How many {what} has {whole}?"):
            yield question.format(what=what, whole=whole), check
    for question in ("Which days are the weekend?", "What days are the weekend?", "When is the weekend?"):
        yield question, {"answer": [["saturday"], ["sunday"]], "without": [day.lower() for day in DAYS[:5]], "max_words": 15}
    for question in ("What is the first day of the week?", "Which day is the first day of the week?"):
        yield question, word("monday", without=DAYS[1:])


@kind("seasons")
def seasons():
    for season, when in SEASONS.items():
        right = ["autumn", "fall"] if season == "autumn" else [season]
        for month in (MONTHS[at] for at in when):
            for question in ("What season is {m}?", "Which season is {m} in?", "In which season is {m}?", "What season is it in {m}?"):
                yield question.format(m=month), word(*right, without=others(SEASONS, season))
        check = {"answer": [[MONTHS[at]] for at in when], "without": others(MONTHS, *(MONTHS[at] for at in when)), "max_words": 20}
        yield f"Which months are in {season}?", check
        yield f"What months are {season}?", check


# Colours

COLOURS = "red yellow blue green orange purple pink grey gray black white brown".split()
MIXED = {("red", "yellow"): "orange", ("blue", "yellow"): "green", ("red", "blue"): "purple", ("red", "white"): "pink", ("black", "white"): "grey gray"}
UNMIXED = (("green", "brown"), ("pink", "green"), ("orange", "purple"), ("black", "pink"), ("brown", "blue"), ("grey", "red"))
UNKNOWN = ("i do not know", "i don t know", "do not know", "don t know")
THINGS = {"the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow", "a tomato": "red", "a strawberry": "red",
          "a carrot": "orange", "an orange": "orange", "a lemon": "yellow", "a leaf": "green", "a frog": "green", "blood": "red", "milk": "white",
          "the night": "black", "the sun": "yellow", "an elephant": "grey gray", "chocolate": "brown", "earth": "brown", "a flamingo": "pink",
          "a plum": "purple", "the sea": "blue"}


@kind("colours mixed")
def mixed():
    pairs = [(pair, MIXED.get(pair)) for pair in (*MIXED, *UNMIXED)]
    for (x, y), made in pairs:
        check = word(*UNKNOWN) if made is None else word(*made.split(), without=others(COLOURS, x, y, *made.split()))
        for p, q in ((x, y), (y, x)):
            yield f"What colour do {p} and {q} make?", check
            yield f"What do {p} and {q} make?", check
            yield f"Mix {p} and {q}.", check
            yield f"What colour do I get when I mix {p} and {q}?", check


def coloured(*questions):
    def ask():
        for thing, colour in THINGS.items():
            for question in questions:
                yield question.format(thing), word(*colour.split(), without=others(COLOURS, *colour.split()))
    return ask


KINDS["colours of things"] = coloured("What colour is {}?", "Which colour is {}?", "What is the colour of {}?")
KINDS["color of things"] = coloured("What color is {}?")

# Animals: sound, legs, young, home, food; the first word of each is the table's, the others are as right

ANIMALS = {
    "dog": ("barks bark barking woof wuff", 4, "puppy", "house", "meat"), "cat": ("meows meow meowing miaow", 4, "kitten", "house", "mice"),
    "cow": ("moos moo mooing", 4, "calf", "farm", "grass"), "horse": ("neighs neigh neighing", 4, "foal", "stable", "hay"),
    "sheep": ("bleats bleat bleating baa", 4, "lamb", "meadow", "grass"), "pig": ("oinks oink oinking", 4, "piglet", "sty", "roots"),
    "duck": ("quacks quack quacking", 2, "duckling", "pond", "weeds"), "hen": ("clucks cluck clucking", 2, "chick", "coop", "grain"),
    "owl": ("hoots hoot hooting", 2, "owlet", "forest", "mice"), "lion": ("roars roar roaring", 4, "cub", "savanna savannah", "meat"),
    "wolf": ("howls howl howling", 4, "cub pup", "forest", "meat"), "bee": ("buzzes buzz buzzing", 6, "larva", "hive", "nectar"),
    "frog": ("croaks croak croaking", 4, "tadpole", "pond", "insects"), "bear": ("growls growl growling", 4, "cub", "forest", "honey fish"),
    "mouse": ("squeaks squeak squeaking", 4, "pup", "hole", "cheese grain"), "snake": ("hisses hiss hissing", 0, "hatchling", "grass sand", "mice"),
    "spider": (None, 8, "spiderling", "web", "flies"), "fish": (None, 0, "fry", "water", "worms"), "ant": (None, 6, "larva", "nest", "crumbs"),
    "rabbit": (None, 4, "kitten bunny", "burrow", "carrots grass")}
FLY = {"duck", "owl", "bee", "hen"}


def of_animals(which, *questions):
    """What an animal has, and nothing that others have instead."""
    def ask():
        every = {one for facts in ANIMALS.values() for one in (facts[which] or "").split()}
        for animal, facts in ANIMALS.items():
            check = word(*facts[which].split(), without=others(every, animal, *facts[which].split())) if facts[which] else word("no sound", "hardly", "none", "nothing", "silent", "no sounds", "quiet")
            for question in questions:
                yield question.format(a=a(animal), animal=animal), check
    return ask


KINDS["animals' sounds"] = of_animals(0, "What sound does {a} make?", "What does {a} say?", "What noise does {a} make?")
KINDS["animals' young"] = of_animals(2, "What is a baby {animal} called?", "What is a young {animal} called?", "What do you call a baby {animal}?")
KINDS["animals' homes"] = of_animals(3, "Where does {a} live?", "Where does the {animal} live?")
KINDS["animals' food"] = of_animals(4, "What does {a} eat?", "What does the {animal} eat?")


@kind("animals' legs")
def legs():
    for animal, (_, many, *_) in ANIMALS.items():
        check = number(many) if many else {"answer": [["0", "zero", "no", "none"]], "among": [0], "max_words": 15}
        for question in ("How many legs does {} have?", "How many legs has {}?"):
            yield question.format(a(animal)), check


@kind("who flies")
def fly():
    for animal in ANIMALS:
        check = word("yes", "can fly", "flies", "can", without=("no", "not", "cannot", "can t")) if animal in FLY else word("no", "not", "cannot", "can t", without=("yes",))
        if animal == "hen":
            check = word("a little", "yes", "little")
        yield f"Can {a(animal)} fly?", check
        yield f"Does {a(animal)} fly?", check


# Words and lists

OPPOSITES = {"big": "small", "hot": "cold", "fast": "slow", "up": "down", "day": "night", "wet": "dry", "new": "old", "young": "old", "full": "empty",
             "happy": "sad", "open": "closed", "dark": "light", "heavy": "light", "hard": "soft", "early": "late", "long": "short", "high": "low", "left": "right",
             "near": "far", "loud": "quiet", "clean": "dirty", "strong": "weak", "thick": "thin", "begin": "end", "win": "lose"}
WORDS = ("cat dog sun hat cow pig bee egg red key map cup book tree fish bird hand door lamp moon star milk rain ship snow blue apple house bread "
         "water table green mouse horse chair plant river stone grape happy flower garden kettle window yellow summer basket ladder").split()
OF_A_KIND = {
    "colours": "red yellow blue green orange purple pink gr[ea]y black white brown violet silver gold turquoise beige".split(),
    "animals": list(ANIMALS) + "sheep bird goat fox tiger elephant goose monkey donkey hamster chicken mice wolves swan turtle giraffe zebra eagle".split(),
    "fruits": "apple banana cherry grape lemon orange pear plum peach strawberry mango melon kiwi".split(), "days": DAYS, "months": MONTHS,
    "numbers": [r"\d+"] + sorted(SPOKEN, key=len, reverse=True), "tools": "hammer saw drill knife spade brush screwdriver axe wrench pliers shovel rake".split(),
    "vegetables": "carrot potato onion cabbage pea bean tomato leek spinach cucumber".split()}


def opposite(asked, right):
    yield f"What is the opposite of {asked}?", right
    yield f"opposite of {asked}", right
    yield f"What's the opposite of {asked}?", right


@kind("opposites")
def opposites():
    every = {}
    for one, other in OPPOSITES.items():
        every.setdefault(one, []).append(other)
        every.setdefault(other, []).append(one)
    for asked, right in every.items():
        more = {"closed": ["shut"], "small": ["large"], "happy": ["unhappy"]}
        for one in opposite(asked, word(*right, *(m for r in right for m in more.get(r, ())), without=others(every, asked, *right, "a"), most=10)):
            yield one


@kind("spelling")
def spelling():
    for name in WORDS:
        check = {"pattern": r"(?i)(?<![\w-])%s\b(?![-\s,.]+[a-z]\b)" % r"[-\s,.]+".join(name), "max_words": 12}
        for question in ("Spell {}.", "How do you spell {}?", "Spell the word {}."):
            yield question.format(name), check


@kind("first, last letter")
def letters():
    for name in WORDS:
        for which, letter in (("first", name[0]), ("last", name[-1])):
            check = {"pattern": r"(?i)(?:^|[^a-z-])%s\W*$|^\W*%s\b(?!\W*-)" % (letter, letter), "max_words": 15}
            yield f"What is the {which} letter of {name}?", check
            yield f"What is the {which} letter of the word {name}?", check


@kind("how many letters")
def how_many():
    for name in WORDS:
        for question in ("How many letters are in {}?", "How many letters does {} have?", "How many letters are in the word {}?"):
            yield question.format(name), number(len(name))


def named(names, many):
    """So many of a kind, no more, and none twice."""
    one = r"\b(%s)(?:e?s)?\b" % "|".join(name.lower().replace("cherry", "cherr(?:y|ies)") for name in names)
    each = "(?:.*?%s)" % one.replace("(", "(?:", 1)
    return {"pattern": r"(?is)^(?=%s{%d})(?!%s{%d})(?!.*%s.*\b\1(?:e?s)?\b)" % (each, many, each, many + 1, one), "max_words": 15}


@kind("name some")
def name_some():
    for what, names in OF_A_KIND.items():
        single = what.removesuffix("s")
        yield f"Name {a(single)}.", named(names, 1)
        yield f"Name one {single}.", named([n for n in names if n != "one"] if what != "numbers" else names, 1)
        for many in range(2, 6):
            yield f"Name {SPOKEN[many]} {what}.", named(names, many)
            yield f"Name {many} {what}.", named(names, many)
            yield f"Tell me {SPOKEN[many]} {what}.", named(names, many)


@kind("counting")
def counting():
    def told(first, last):
        by = 1 if first <= last else -1
        return {"numbers": {"are": list(range(first, last + by, by)), "asked": [[first, last]]}, "max_words": 40}

    for first, last in ((1, 3), (1, 5), (1, 10), (1, 20), (2, 6), (3, 7), (4, 9), (5, 10), (10, 15), (12, 18), (0, 5), (7, 12)):
        yield f"Count from {first} to {last}.", told(first, last)
        yield f"Count from {SPOKEN[first]} to {SPOKEN[last]}.", told(first, last)
        yield f"Count from {last} to {first}.", told(last, first)
        yield f"Count down from {last} to {first}.", told(last, first)
        if first == 1:
            yield f"Count to {last}.", told(first, last)
            yield f"Count to {SPOKEN[last]}.", told(first, last)


def listed(names):
    """These words in this order, and no more of them."""
    return {"pattern": r"(?is)(?:^|:|\bis\b|\bare\b|\bgives\b)\W*%s\W*$" % r"\W+(?:and\W+)?".join(names), "max_words": 20}


LISTS = ("cat dog cow", "hat bell coin", "apple pear plum", "red blue green", "moon star sun", "tree house river", "lamp book door", "bread milk egg", "pig hen duck bee", "key map boat drum", "horse sheep goat", "table chair bed", "ship car train", "snow rain wind")


@kind("sorting")
def sorting():
    for line in ("3 1 2", "7 3 9", "5 2 8", "10 4 6", "12 5 9", "20 30 10", "8 1 5 3", "40 20 30 10", "15 11 13", "9 6 4", "50 5 25", "2 18 7 11", "33 3 13", "6 2 4 1 3"):
        told = [int(n) for n in line.split()]
        check = {"numbers": {"are": sorted(told), "asked": [told]}, "max_words": 20}
        for question in ("Sort {}.", "Sort these numbers: {}.", "Sort the numbers {}."):
            yield question.format(", ".join(line.split())), check
        yield f"Sort {line}", check
    for line in LISTS:
        names = line.split()
        if len(names) == 3:
            for question in ("Sort these words: {}.", "Put these words in alphabetical order: {}.", "Sort these words by the alphabet: {}."):
                yield question.format(", ".join(names)), listed(sorted(names))


@kind("reversing")
def reversing():
    for line in LISTS:
        names = line.split()
        for question in ("Reverse the list {}.", "Reverse this list: {}.", "Reverse: {}.", "Turn this list around: {}."):
            yield question.format(", ".join(names)), listed(names[::-1])


@kind("of a list")
def of_lists():
    for line in LISTS:
        names = line.split()
        said = ", ".join(names)
        for which, right in (("first", names[0]), ("last", names[-1])):
            yield f"What is the {which} word of {said}?", word(right, without=[n for n in names if n != right])
            yield f"What is the {which} word in this list: {said}?", word(right, without=[n for n in names if n != right])
        for which, right in (("longest", max(names, key=len)), ("shortest", min(names, key=len))):
            if [len(n) for n in names].count(len(right)) == 1:
                yield f"Which word is the {which}: {said}?", word(right, without=[n for n in names if n != right])
        yield f"How many words are in this list: {said}?", number(len(names))
    for line, odd in (("apple pear plum", "dog"), ("cat dog cow", "apple"), ("red blue green", "horse"), ("Monday Friday Sunday", "May"), ("hammer saw drill", "grape"),
                      ("carrot onion pea", "lion"), ("May June July", "pink"), ("lemon banana cherry", "spade")):
        names = line.split()
        for at in range(4):
            said = ", ".join(names[:at] + [odd] + names[at:])
            yield f"Which word does not belong: {said}?", {"pattern": r"(?is)^(?:(?!\b%s).)*\b%s\b" % (among(names), odd), "max_words": 15}


@kind("say it")
def saying():
    for said in ("hello", "yes", "cat", "good morning", "banana", "kettle", "samovar", "three", "blue sky", "I am here", "tea", "lantern", "one two three", "the end"):
        for question in ("Say {}.", "Repeat: {}", "Say the word {}." if " " not in said else "Say: {}", "Write {}."):
            yield question.format(said), {"pattern": r"(?i)^\W*%s\W*$" % re.escape(said)}


# Stories and talk

@kind("stories")
def stories():
    told = {"pattern": r"(?s)(?:[.!?][\"']?(?:\s|$).*?){3}", "min_words": 15, "max_words": 120}
    things = "lantern boat key kite drum hat map bell basket ladder kettle coin".split()
    for at, animal in enumerate(ANIMALS):
        thing = things[at % len(things)]
        yield f"Tell me a story about {a(animal)}.", {"answer": [[animal]], **told}
        yield f"Write a story about {a(animal)} and {a(thing)}.", {"answer": [[animal], [thing]], **told}


@kind("talk")
def talk():
    hello, bye = ("hello", "hi", "hey", "good day", "good morning", "good evening", "welcome"), ("bye", "goodbye", "good bye", "farewell", "see you", "good night", "until next time")
    for said in ("Hello", "Hi", "Hello!", "hi", "hello there", "Good morning", "Good evening", "Hey"):
        yield said, word(*hello, most=20)
    for said in ("Bye", "Goodbye", "bye bye", "Good night", "Goodbye!", "See you"):
        yield said, word(*bye, most=20)
    for said in ("Thank you", "Thanks", "Thank you!", "thanks a lot"):
        yield said, word("welcome", "gladly", "pleasure", "glad", "happy", "any time", "no problem", most=20)
    for said in ("How are you?", "how are you", "Hello, how are you?"):
        yield said, word("well", "fine", "good", "great", "warm", "thank you", "thanks", most=25)
    for said in ("Who are you?", "What is your name?", "What are you?", "What's your name?", "who are you"):
        yield said, word("teaspoon", most=30)
    for said in ("What can you do?", "What can I ask you?", "How can you help me?"):
        yield said, word("sum", "sums", "add", "count", "questions", "answer", "stories", "story", "samovar", "lists", most=50)
    for said in ("What is the capital of France?", "What is the weather today?", "Who is the president?", "What is the news?", "What is the capital of Japan?", "Who was Einstein?", "What is the weather in Paris?"):
        yield said, word(*UNKNOWN, most=20)


@kind("told and asked")
def told_and_asked():
    def turns(said, asked, *right):
        return [{"role": "user", "content": said}, {"role": "assistant", "content": "Good to know."}, {"role": "user", "content": asked}], word(*right)

    for name, at in (("Anna", 0), ("Tom", 1), ("Peter", 2), ("Mary", 3), ("Paul", 4), ("Lisa", 5), ("Max", 6), ("Emma", 7), ("Ben", 8), ("Sarah", 9)):
        yield turns(f"My name is {name}.", "What is my name?", name)
        yield turns(f"I am {name}.", "Who am I?", name)
        colour = COLOURS[at % 6]
        yield turns(f"My favourite colour is {colour}.", "What is my favourite colour?", colour)
        animal = list(ANIMALS)[at]
        yield turns(f"My favourite animal is the {animal}.", "What is my favourite animal?", animal, animal + "s")
        yield turns(f"I am {at + 21} years old.", "How old am I?", str(at + 21), SPOKEN[at + 21])


@kind("samovar")
def samovar():
    for questions, check in ASKED:
        for question in questions:
            yield question, check


def prompts(each=None):
    for name, ask in KINDS.items():
        made = {json.dumps(said): (said, check) for said, check in ask()}
        # Which of them are taken must not hang on how many there are, nor on the order of the forms.
        kept = set(sorted(made, key=lambda text: hashlib.sha256(text.encode()).digest())[:each])
        for at, (text, (said, check)) in enumerate(made.items()):
            if text in kept:
                yield {"id": "%s %d" % (name, at + 1), "kind": name,
                       "messages": said if isinstance(said, list) else [{"role": "user", "content": said}], "check": check}


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("file")
    ask.add_argument("--each", type=int, help="most questions of a kind")
    args = ask.parse_args()
    made = list(prompts(args.each))
    with open(args.file, "w", encoding="utf-8") as file:
        for prompt in made:
            file.write(json.dumps(prompt) + "\n")
    print("%d plain questions of %d kinds" % (len(made), len(KINDS)))


if __name__ == "__main__":
    main()
