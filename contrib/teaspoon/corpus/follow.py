"""Questions that go on: a subject asked about once in full, and then only `and a cat?`.

A series is (how it is asked at first, how it may go on besides `And {x}?`, its items); an item is (the names for the
templates, the answer as one word, the answer as sentences).
"""
from . import arithmetic
from .lists import OPPOSITES, SPELLABLE
from .phrase import a, number, say, upper_first
from .words import ANIMALS, DAYS, MIXES, MONTH_DAYS, MONTHS, ORDINALS, SEASON_MONTHS, THINGS_COLOUR, plural

AND = ("[And|And what about|What about|And how about|How about|And for|And of|Now|And then|Then|And now|Ok, and|Good, and|Thanks, and|Okay, what about|Hm, and|What of|And with|Same for|The same for|And the same for|And again for] {x}[?|]",
       "And {x}[?|?|, please?|]", "{X}[?| too?| as well?| then?|, please?]",
           "[Fine|Right|Good|Great|Thank you|I see|Nice|Interesting|Aha]. [And|And what about|What about|Now] {x}[?|]",
           "[How is it|What is it|And how is it] [for|with] {x}[?|]",
       "[I also want to know about|Tell me about|And tell me about|Now the same for|Next:|Next,] {x}[.|]")


def _legs(rng):
    items = [({"x": rng.choice((a(n), a(n), "the " + n)), "n": n, "p": plural(n)}, number(rng, ANIMALS[n][2], rng.random() < 0.6),
        "{W}.|{X} has {w} legs.|{W} legs.") for n in rng.sample(list(ANIMALS), 3)]
    return ("How many legs does {x} have?", "How many legs has {x}?", "How many legs has {x} got?", "What number of legs does {x} have?",
        "On how many legs does {x} walk?", "{X} has how many legs?", "Legs of {x}?",
            "Tell me how many legs {x} has.", "Count the legs of {x}."), ("And how many has {x}[?|]", "And how many does {x} have[?|]", "And {p}[?|]"), items


def _young(rng):
    items = [({"x": a(n), "n": n, "p": plural(n)}, ANIMALS[n][3][0],
        "{AW}.|A young {n} is {aw}.|{AW}.|It is called {aw}.|A baby {n} is called {aw}.") for n in rng.sample(list(ANIMALS), 3)]
    return ("What is a young {n} called?", "What is the young of {x}?", "What do you call a baby {n}?", "What is a baby {n}?",
        "What do we call the young of {x}?", "How is a young {n} called?", "Which word is there for a baby {n}?",
            "The young of {x} is called what?", "The child of {x} is called?", "What name has a baby {n}?"), ("And of {x}[?|]",
                "And a [baby|young|little] {n}[?|]", "What about [a baby|a young|the young of a] {n}[?|]", "And the young of {x}[?|]", "And that of {x}[?|]",
                "A young {n}[?| too?]", "And {p}[?|]"), items


def _home(rng):
    items = [({"x": rng.choice((a(n), "the " + n)), "n": n, "p": plural(n)}, None,
        f"{upper_first(ANIMALS[n][4])}.|{{X}} lives {ANIMALS[n][4]}.") for n in rng.sample(list(ANIMALS), 3)]
    return ("Where does {x} live?", "What is the home of {x}?", "Where is {x} at home?", "In what place does {x} live?", "Where would I find {x}?",
        "Where do {p} live?", "Tell me where {x} lives."), ("And where does {x} live[?|]", "And {p}[?|]"), items


def _food(rng):
    items = [({"x": rng.choice((a(n), "the " + n)), "n": n, "p": plural(n)}, ANIMALS[n][5], "{W}.|{X} eats {w}.") for n in rng.sample(list(ANIMALS), 3)]
    return ("What does {x} eat?", "What do {p} eat?", "What is the food of {x}?", "What does {x} like to eat?", "What does {x} feed on?",
        "What would you give {x} to eat?"), ("And what does {x} eat[?|]", "And {p}[?|]", "And what do {p} eat[?|]"), items


def _sound(rng):
    items = []
    for n in rng.sample([n for n in ANIMALS if n != "rabbit"], 3):
        verb, noise = ANIMALS[n][:2]
        items.append(({"x": rng.choice((a(n), "the " + n)), "n": n, "p": plural(n)}, noise,
            f"It {verb}.|{{X}} {verb}.|{upper_first(noise)}!" if verb else "It makes no sound.|{X} makes no sound."))
    return ("What sound does {x} make?", "What does {x} say?", "Which noise does {x} make?", "What noise comes from {x}?", "How does {x} sound?",
        "What do you hear from {x}?", "What sound do {p} make?", "What is the sound of {x}?"), ("And what does {x} say[?|]", "And {p}[?|]",
        "And which sound does {x} make[?|]"), items


def _colour(rng):
    items = [({"x": t}, THINGS_COLOUR[t], "{W}.|{X} is {w}.|It is {w}.") for t in rng.sample(list(THINGS_COLOUR), 3)]
    return ("What colour is {x}?", "Which colour is {x}?", "What is the colour of {x}?", "Which colour does {x} have?", "{X} is of what colour?",
        "What colour has {x}?", "Tell me the colour of {x}.", "In which colour would you paint {x}?"), ("And what colour is {x}[?|]",
        "And the colour of {x}[?|]", "And which has {x}[?|]"), items


def _mix(rng):
    items = []
    for (one, two), result in rng.sample(list(MIXES.items()), 3):
        if rng.random() < 0.5:
            one, two = two, one
        items.append(({"x": f"{one} and {two}", "n": f"{one} with {two}"}, result, "{W}.|{X} make {w}.|They make {w}."))
    return ("What do {x} make?", "Which colour do I get from {x}?", "If I mix {x}, what do I get?", "What colour is {n}, mixed?", "Mix {x}: what colour is it?",
        "What do you get when you mix {x}?"), ("And {n}[?|]", "And if I mix {x}[?|]", "And mixing {x}[?|]"), items


def _next(rng):
    row, w = rng.choice(((DAYS, "day"), (DAYS, "day"), (MONTHS, "month")))
    step, s = rng.choice(((1, "after"), (1, "after"), (-1, "before")))
    if w == "day" and rng.random() < 0.15:
        step, s = 2, "two days after"
    items = [({"x": d, "s": s, "S": upper_first(s), "k": w}, row[(row.index(d) + step) % len(row)],
        "{W}.|It is {w}.|{W} comes " + s + " {x}." if step != 2 else "{W}.|It is {w}.") for d in rng.sample(row, 3)]
    firsts = ("Which {k} comes {s} {x}?", "What {k} is {s} {x}?", "What comes {s} {x}?", "Which {k} is {s} {x}?", "Tell me the {k} {s} {x}.",
        "The {k} {s} {x}?", "{S} {x} comes which {k}?", "What is the {k} {s} {x}?")
    return (firsts if step != 2 else ("Which day is two days after {x}?", "What day comes two days after {x}?")), (f"And {s} {{x}}[?|]",
        f"And what comes {s} {{x}}[?|]", f"{upper_first(s)} {{x}}[?|]"), items


def _month_days(rng):
    items = [({"x": m}, str(MONTH_DAYS[m]), "{W}.|{X} has {w} days.|{W} days.") for m in rng.sample([m for m in MONTHS if m != "February"], 3)]
    return ("How many days does {x} have?", "How many days has {x}?", "How long is {x}?", "How many days are there in {x}?", "The number of days in {x}?",
        "How many days are in the month of {x}?"), ("And in {x}[?|]", "And how many has {x}[?|]", "And how many are in {x}[?|]"), items


def _nth(rng):
    items = [({"x": f"the {ORDINALS[at]}", "n": ORDINALS[at]}, MONTHS[at], "{W}.|It is {w}.|The {n} month is {w}.") for at in rng.sample(range(12), 3)]
    return ("Which month is {x}?", "What is {x} month?", "What is {x} month of the year?", "Name {x} month.",
        "Which is {x} month of the year?"), ("And {x} one[?|]", "And which is {x}[?|]", "And {x} month[?|]"), items


def _season(rng):
    of = {m: season for season, months in SEASON_MONTHS.items() for m in months}
    items = [({"x": m}, of[m], "{W}.|{X} is in {w}.|In {w}.") for m in rng.sample(MONTHS, 3)]
    return ("Which season is {x} in?", "In which season is {x}?", "What season is it in {x}?", "{X} belongs to which season?",
        "Is {x} in summer, in winter, in spring or in autumn?", "What season does {x} belong to?", "{X} is part of which season?"), ("And in {x}[?|]",
        "And which is {x} in[?|]"), items


def _sum(rng, sign=None):
    sign = sign or rng.choice("+-x")
    words = rng.random() < 0.4
    name = rng.choice({"+": ("plus", "plus", "and", "+"), "-": ("minus", "minus", "less", "-"), "x": ("times", "times", "multiplied by", "x")}[sign])
    items, seen = [], []
    while len(items) < 3:
        one, two, result = arithmetic._operands(rng, sign)
        if (one, two) in seen:
            continue
        seen.append((one, two))
        words_here = words and name.isalpha()
        joined = f"{number(rng, one, words_here)} {name} {number(rng, two, words_here)}"
        said = number(rng, result, words)
        items.append(({"x": joined}, said, "{W}.|{W}." if name in ("and", "less", "+", "-", "x") else "{W}.|{W}.|{X} is {w}.|It is {w}."))
    return ("What is {x}?", "How much is {x}?", "{X}?", "Calculate {x}.", "What do I get for {x}?", "{X} is?", "What does {x} make?", "Work out {x}.",
        "{X} makes how much?", "What's {x}?", "The result of {x}?"), ("And what is {x}[?|]", "And how much is {x}[?|]"), items


def _double(rng):
    half = rng.random() < 0.5
    items = []
    for value in rng.sample(range(0, 21, 2) if half else range(0, 21), 3):
        items.append(({"x": number(rng, value)}, number(rng, value // 2 if half else value * 2), "{W}.|It is {w}."))
    w = "half" if half else "double"
    firsts = (f"What is {w} of {{x}}?", f"What is {'half of' if half else 'the double of'} {{x}}?", f"{'Half of' if half else 'Twice'} {{x}} is how much?",
        f"How much is {'half of' if half else 'twice'} {{x}}?", f"{'Halve' if half else 'Double'} {{x}}.")
    return (firsts[1:] if not half else firsts), (("And of {x}[?|]", "And half of {x}[?|]") if half else ("And of {x}[?|]", "And twice {x}[?|]",
        "And double {x}[?|]")), items


def _beside(rng):
    step, s = rng.choice(((1, "after"), (-1, "before")))
    items = [({"x": str(v)}, str(v + step), "{W}.|It is {w}.|{W} comes " + s + " {x}.") for v in rng.sample(range(1, 100), 3)]
    return (f"What comes {s} {{x}}?", f"Which number is {s} {{x}}?", f"What is the number {s} {{x}}?",
        f"Which number comes {'next after' if step > 0 else 'right before'} {{x}}?", f"The number {s} {{x}}?"), (f"And {s} {{x}}[?|]",), items


def _even(rng):
    items = [({"x": str(v)}, "odd" if v % 2 else "even", "{W}.|{X} is {w}.|It is {w}.") for v in rng.sample(range(1, 101), 3)]
    return ("Is {x} even or odd?", "Is {x} an even or an odd number?", "Even or odd: {x}?", "{X}: odd or even?",
        "What is {x}, odd or even?"), ("And is {x}[?|]",), items


def _opposite(rng):
    items, seen = [], []
    while len(items) < 3:
        pair = list(rng.choice([p for p in OPPOSITES if "old" not in p and "light" not in p]))
        if sorted(pair) in seen:
            continue
        seen.append(sorted(pair))
        rng.shuffle(pair)
        items.append(({"x": pair[0]}, pair[1], "{W}.|The opposite of {x} is {w}.|It is {w}."))
    return ("What is the opposite of {x}?", "The opposite of {x}?", "What is the contrary of {x}?", "Which word is the opposite of {x}?",
        "{X} is the opposite of what?", "What do you call the opposite of {x}?", "If it is not {x}, but the opposite, what is it?"), ("And of {x}[?|]",
        "And the opposite of {x}[?|]", "And that of {x}[?|]"), items


def _letters(rng):
    chosen = rng.sample(SPELLABLE, 3)
    kind = rng.choice(("spell", "spell", "first", "last", "many"))
    if kind == "spell":
        between = rng.choice("- ")
        items = [({"x": w}, between.join(w), between.join(w) + "|" + between.join(w) + ".") for w in chosen]
        return ("Spell {x}.", "How do you spell {x}?", "Can you spell {x}?", "Spell the word {x}.", "How is {x} spelled?",
            "Please spell {x} for me."), ("And spell {x}[.|]", "Now spell {x}[.|]"), items
    if kind == "many":
        items = [({"x": w}, str(len(w)), "{W}.|{X} has {w} letters.|{W} letters.") for w in chosen]
        return ("How many letters does {x} have?", "How many letters are in {x}?", "How many letters has the word {x}?",
            "Count the letters of {x}."), ("And in {x}[?|]", "And how many has {x}[?|]"), items
    items = [({"x": w}, w[0 if kind == "first" else -1], "{W}|{W}.|It is {w}.") for w in chosen]
    return (f"What is the {kind} letter of {{x}}?", f"Which letter is the {kind} of {{x}}?", f"The {kind} letter of {{x}}?",
        f"With which letter does {{x}} {'begin' if kind == 'first' else 'end'}?"), ("And of {x}[?|]", f"And the {kind} letter of {{x}}[?|]"), items


SERIES = (_legs, _legs, _young, _young, _home, _food, _sound, _sound, _colour, _colour, _mix, _next, _next, _next, _month_days, _nth, _season, _season, _sum,
    _sum, _sum, _double, _beside, _even, _opposite, _opposite, _letters)


def _turn(rng, templates, item):
    names, word, texts = item
    names = {**names, "X": upper_first(names["x"])}
    question = upper_first(say(rng, rng.choice(templates), **names))
    w = word or ""
    answer = rng.choice(texts.split("|")).format(w=w, W=upper_first(w), aw=a(w) if w else "", AW=upper_first(a(w)) if w else "", **names)
    return question, upper_first(answer) if len(w) < 2 or w[1] not in "- " else answer


def again(rng):
    """The same question with another subject, which the second time is all that is said."""
    if rng.random() < 0.12:
        return same_one(rng)
    firsts, extra, items = rng.choice(SERIES)(rng)
    turns = [_turn(rng, firsts, items[0])]
    for item in items[1:rng.choice((2, 2, 3))]:
        turns.append(_turn(rng, AND if rng.random() < 0.65 else extra, item))
    return turns


def same_one(rng):
    """Several questions about one animal, which later is only `it`."""
    n = rng.choice([n for n in ANIMALS if n != "rabbit"])
    verb, noise, count, names, home, meal = ANIMALS[n]
    many = number(rng, count)
    asks = [(("How many legs does {x} have?",), ("[And h|H]ow many legs does it have[?|]", "And how many legs[?|]", "And its legs, how many[?|]"),
        f"{upper_first(many)}."), (("What is a young {n} called?",), ("[And w|W]hat is its young called[?|]", "And its young[?|]", "And a young one[?|]"),
        f"{upper_first(a(names[0]))}."),
            (("Where does {x} live?",), ("[And w|W]here does it live[?|]", "And its home[?|]"), f"{upper_first(home)}."), (("What does {x} eat?",),
                ("[And w|W]hat does it eat[?|]", "And its food[?|]"), f"{upper_first(meal)}."),
            (("What sound does {x} make?",), ("[And w|W]hat sound does it make[?|]", "And what does it say[?|]"), f"It {verb}." if verb else "It makes no sound.")]
    asks = rng.sample(asks, rng.choice((2, 3)))
    return [(say(rng, first if at == 0 else later, x=a(n), n=n), answer) for at, (first, later, answer) in enumerate(asks)]


def one_word(rng):
    """(question, answer of a single word)"""
    while True:
        firsts, _, items = rng.choice(SERIES)(rng)
        names, word, _ = items[0]
        if word and " " not in word and "-" not in word:
            return upper_first(say(rng, rng.choice(firsts), **{**names, "X": upper_first(names["x"])})), word


def mistaken(rng):
    """(question, answer, a wrong answer of the same kind)"""
    while True:
        firsts, _, items = rng.choice(SERIES)(rng)
        (names, word, _), wrong = items[0], items[1][1]
        if word and wrong and word != wrong and "-" not in word and " " not in word:
            return upper_first(say(rng, rng.choice(firsts), **{**names, "X": upper_first(names["x"])})), upper_first(word) + ".", upper_first(wrong) + "."
