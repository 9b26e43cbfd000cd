"""Lists: naming, counting, sorting, turning around; opposites and the letters of words."""
from .phrase import a, listed, number, say, spelled, upper_first
from .words import (ANIMALS, COLOURS, DAYS, FRUITS, GOODS, MONTHS, NAMES, OPPOSITES, SHORT, STORY_THINGS, TOOLS, VEGETABLES, plural)

KINDS = {"colours": COLOURS, "animals": list(ANIMALS), "fruits": FRUITS, "days of the week": DAYS, "months": MONTHS, "tools": TOOLS, "vegetables": VEGETABLES}
ONE = {"colours": "colour", "animals": "animal", "fruits": "fruit", "days of the week": "day of the week", "months": "month", "tools": "tool", "vegetables": "vegetable"}
WORDS = sorted(set(SHORT + GOODS + FRUITS + TOOLS + VEGETABLES + STORY_THINGS + list(ANIMALS) + list(COLOURS)))
SPELLABLE = [word for word in WORDS if 3 <= len(word) <= 6]


def names_of(rng, kind=None, count=None, without=()):
    """(question, answer, the words) so that a talk can ask for more."""
    kind = kind or rng.choice(list(KINDS))
    count = count or rng.randint(1, 5)
    left = [word for word in KINDS[kind] if word not in without]
    words = rng.sample(left, min(count, len(left)))
    many, one = number(rng, count), ONE[kind]
    if count == 1:
        question = say(rng, ("[Name|Tell me|Give me|Think of|Write|Say] [a|one|any] {o}[.|]", "[Can you|Could you|Please] [name|tell me|give me|think of] [a|one] {o}[?|.|]", "[Which|What] {o} do you [know|like][?|]",
                             "I need [a|one] {o}[.|]", "[An example of|For example] a {o}[?|, please.|]"), o=one).replace(" a a", " an a").replace(" a o", " an o")
        return question, f"{upper_first(words[0])}.", words
    question = say(rng, ("[Name|List|Tell me|Give me|Write|Say|Think of|Write down] {n} {k}[.|]", "[Name|List|Give me] {n} different {k}[.|]",
                         "[Can you|Could you|Please|Would you] [name|list|tell me|give me|write down|think of] {n} {k}[?|.|, please.]", "[Which|What] {n} {k} [can you name|do you know|come to mind][?|]",
                         "I [need|want|would like] {n} {k}[.|, please.|, please]", "{N} {k}[, please.| please|.|?]", "[A list of|Make a list of|Make me a list of|Write a list with|Show me] {n} {k}[.|, please|]",
                         "[I am looking for|Help me find] {n} {k}[.|]", "Do you know {n} {k}[?|]", "[Name|List|Tell me] {n} {k}, [whichever you like|any you like|it does not matter which|as you like][.|]", "[Any|Just any] {n} {k}[.|, please.|]", "{N} {k} [would be nice|will do|are enough][.|]", "[My homework is to|I have to|I must] [name|list] {n} {k}[.|. Help me.]", "[What are|Which are] {n} [examples of |]{k}[?|]"), n=many, N=upper_first(many), k=kind)
    return question, f"{upper_first(listed(words))}.", words


def naming(rng):
    return names_of(rng)[:2]


def counting(rng):
    up = rng.random() < 0.65
    low = rng.randint(0, 17)
    high = rng.randint(low + 2, min(20, low + 12))
    start, end = (low, high) if up else (high, low)
    step = 1 if up else -1
    words = rng.random() < 0.25
    way = ("[Count|Please count|Can you count|Could you count|Let us count|I want you to count]" + (" up" if up and rng.random() < 0.2 else "" if up else " [down|backwards|back|downwards]"))
    question = say(rng, (way + " from {a} to {b}[.|?|, please.]", way + " from {a} [until|till|up to|and stop at] {b}[.|]" if up else way + " from {a} [until|and stop at] {b}[.|]",
                         "[List|Write|Write down|Say|Give me|Tell me] the numbers from {a} [to|down to|until] {b}[.|]" if not up else "[List|Write|Write down|Say|Give me|Tell me|Name] [all |]the numbers [from {a} to {b}|between {a} and {b}, both included][.|]",
                         "[Count|Please count] for me from {a}" + (" to {b}[.|]" if up else " down to {b}[.|]"), "[Start at|Begin with|Begin at] {a} and count" + (" [to|up to]" if up else " [down to|back to]") + " {b}[.|]", "{a} to {b}, [count|counting][.|]" if up else "{a} [down|back] to {b}, [count|please count][.|]",
                         "[What are|Which are] the numbers from {a} to {b}[?|]"), a=number(rng, start, words), b=number(rng, end, words))
    return upper_first(question), upper_first(", ".join(number(rng, n, words) for n in range(start, end + step, step)) + ".")


def sorting(rng):
    numbers = rng.sample(range(51), rng.randint(3, 5))
    down = rng.random() < 0.3
    order = " [from largest to smallest|from big to small|in descending order|downwards|with the largest first|largest first|the biggest first]" if down else \
        "[| from smallest to largest| from small to big| in ascending order| upwards| by size| with the smallest first|, smallest first|, smallest one first]"
    question = say(rng, ("[Sort|Please sort|Order|Arrange|Can you sort|Could you order] [these numbers|the numbers|]" + order + ": {n}[.|]", "[Sort|Order|Arrange|Please sort][:|] {n}" + order + "[.|]", "[Which|What] is the [right |]order of the numbers {n}" + order + "[?|]", "[I have|These are|Given are] {n}[.|:|,] [Sort|sort|Order|order] them" + order + "[.|, please.|]",
                         "[Put|Bring|Write] {n} in order" + order + "[.|]", "{n}[:|,] [sort them|put them in order|sort these|order them|please sort]" + order + "[.|]",
                         "[What is|Give me] the [right |sorted |]order of {n}" + order + "[?|]", "[Here are|I have] [some|the] numbers: {n}. [Sort them|Put them in order|Order them|Please sort]" + order + "[.|]"),
                   n=rng.choice((listed(map(str, numbers)), ", ".join(map(str, numbers)), " ".join(map(str, numbers)))))
    return question, ", ".join(str(n) for n in sorted(numbers, reverse=down)) + "."


def alphabet(rng):
    words = rng.sample(WORDS, 3)
    if len({word[0] for word in words}) < 3 and rng.random() < 0.7:
        return alphabet(rng)
    joined = rng.choice((listed(words), ", ".join(words), " ".join(words)))
    question = say(rng, ("[Put|Bring|Write|Place] [these words|the words|]  [in|into] [alphabetical order|the order of the alphabet|abc order]: {w}[.|]", "[Sort|Order|Arrange|Please sort|Can you sort] [these words |the words |][alphabetically|by the alphabet|by letter|from a to z]: {w}[.|]",
                         "[Sort|Order|Arrange|Put] {w} [alphabetically|by the alphabet|in alphabetical order|from a to z][.|]", "[What is|Give me] the alphabetical order of {w}[?|]",
                         "{w}: [sort them by the alphabet|alphabetical order|in the order of the alphabet][, please.|.|?|]", "[In which order|How] do {w} [come in the alphabet|stand in a dictionary|come in a dictionary][?|]"), w=joined).replace("  ", " ")
    if rng.random() < 0.2:
        question = say(rng, ("[Which|Which word|What] comes first in the [alphabet|dictionary][:|,] {w}[?|]", "[Which|Which word] of {w} is first in the alphabet[?|]"), w=listed(words, "or"))
        return question, f"{upper_first(min(words))}."
    return question, ", ".join(sorted(words)) + "."


def some_words(rng, low, high):
    count = rng.randint(low, high)
    pool = rng.choice((WORDS, WORDS, list(rng.choice(list(KINDS.values()))), NAMES))
    words = rng.sample(pool, min(count, len(pool)))
    return words


def turning(rng):
    words = some_words(rng, 3, 4)
    joined = rng.choice((listed(words), ", ".join(words), " ".join(words)))
    question = say(rng, ("[Reverse|Turn around|Turn round|Flip|Please reverse|Can you reverse|Invert] [this list|the list|the order of|the order|these words|this]: {w}[.|]", "[Reverse|Turn around|Flip] [the list |the words |]{w}[.|]",
                         "[Say|Write|Give me|List|Read] {w} [backwards|in reverse|in reverse order|the other way round|from the end to the start|from last to first|starting with the last][.|]", "{w}: [turn it around|the other way round|backwards|reverse it|reversed][, please.|.|]",
                         "[What is|What's|Give me|Tell me] [the reverse of|the reversed list of|the reverse of the list] {w}[?|]", "[If I|When I] read {w} backwards, [what do I get|what is it|what comes out][?|]", "[I want|I need] {w} [in reverse|backwards|the other way round][.|]", "[Put|Write] {w} in [reverse|the opposite] order[.|]"), w=joined)
    return question, ", ".join(reversed(words)) + "."


def position(rng):
    words = some_words(rng, 3, 5)
    which = rng.choice(("first", "last", "first", "last", "second", "third", "longest"))
    if which == "longest":
        best = max(words, key=len)
        if sum(len(word) == len(best) for word in words) > 1:
            return position(rng)
        answer = best
    else:
        answer = words[{"first": 0, "second": 1, "third": 2, "last": -1}[which]]
    joined = rng.choice((listed(words), ", ".join(words)))
    item = "[word|one]" if which == "longest" else "[word|item|thing|one|entry|element]"
    question = say(rng, ("[What|Which] is the {h} " + item + " [of|in] [this list|the list|this][:|?] {w}[.|?|]", "[Which|What] " + item + " is {h}[ in the list| here| in this list|][:|,] {w}[?|]", "[Name|Tell me|Give me|Say] the {h} " + item + " of {w}[.|]",
                         "[My list is|The list is|Here is a list|Look at this list|I have a list]: {w}. [What|Which word|Which one] is [the |]{h}[?| one?]", "{w}[:|.] [which one is {h}|which is the {h}|what is the {h} word|the {h}, please][?|.|]",
                         "[In|From|Of] the list {w}, [which|what] [word |]is [the |]{h}[?| one?]"), w=joined, h=which)
    return upper_first(question) if rng.random() < 0.5 else question, rng.choice((f"{upper_first(answer)}.", f"The {which} word is {answer}." if which == "longest" else f"The {which} one is {answer}."))


def how_many(rng):
    words = some_words(rng, 2, 6)
    joined = rng.choice((listed(words), ", ".join(words)))
    question = say(rng, ("How many [things|words|items|entries] [are in|are there in|has|stand in|does one count in|are on] [this|the] list: {w}[?|]", "[Count|Please count|Can you count] the [words|things|items|entries][ in this list| here|]: {w}[.|]", "How many [words|things|items] [is that|are these|are that|do you see|are listed][:|?] {w}[?|]",
                         "{w}[:|.] [how|How] many [words|things|items|] [are there|is that|are these|did I list|did I name][?|]", "[My list is|Here is a list|The list is]: {w}. How many [things|words|items|entries] [has it|are there|does it have|are in it]?", "[What is|Tell me] the [length|size] of [this|the] list[:|,] {w}[?|.]"), w=joined).replace("  ", " ")
    return question, rng.choice((f"{upper_first(spelled(len(words)))}.", f"{len(words)}.", f"The list has {spelled(len(words))} {rng.choice(('words', 'things'))}."))


def odd_one(rng):
    kinds = {"colours": COLOURS, "animals": list(ANIMALS), "fruits": [f for f in FRUITS if f != "orange"], "tools": TOOLS, "vegetables": VEGETABLES, "days": DAYS, "months": MONTHS}
    common, other = rng.sample(list(kinds), 2)
    words = rng.sample(kinds[common], 3)
    odd = rng.choice([word for word in kinds[other] if word not in kinds[common]])
    words.append(odd)
    rng.shuffle(words)
    question = say(rng, ("[Which|Which word|Which one|What] does not belong[| here| to the others| in this list| with the others][:|,|?] {w}[?|]", "[Which|Which word|Which one|What] is the odd one[ out|][:|,|?] {w}[?|]", "[Find|Pick|Name|Tell me] the [odd one out|word that does not belong|one that does not fit|one that is different|word that does not fit][:| of| in] {w}[.|]",
                         "[Which|Which word|Which one] does not fit[| in| with the rest][:|,] {w}[?|]", "{w}[:|.] [which|Which] [one |word |]does not [belong|fit][?|]", "[Of|Among] {w}, [which|what] [one |word |][does not belong|does not fit|is different|is the odd one out][?|]", "{w}[.|:] Which [of them |]is not like the others?", "[One of these|One of the words|One word] [does not belong|is different|is wrong here]: {w}[.|. Which?|. Which one is it?]", "[Three of these|Three of the words] go together, one does not: {w}. [Which|Which one]?"),
                   w=rng.choice((listed(words), ", ".join(words), listed(words, "or"))))
    return question, rng.choice((f"{upper_first(odd)}.", f"{upper_first(odd)}: the others are {common}.", f"{upper_first(odd)}, the others are {common}."))


def opposites(rng):
    pair = list(rng.choice(OPPOSITES))
    if pair[0] != "old":
        rng.shuffle(pair)
    word, other = pair
    question = say(rng, ("[What is|What's|Tell me|Name|Give me] the opposite of [the word |]{w}[?|.|]", "[What|Which word] is opposite to {w}[?|]", "[What|Which word|Which] is the [opposite|contrary|reverse|other side] of {w}[?|]", "The opposite of {w}[?| is| is?| is what?|, please.]", "[If|When] [something|it|a thing] is not {w}, [it is|what is it|then it is][?|]" if word not in ("begin", "end", "win", "lose", "day", "night", "up", "down", "left", "right") else "Opposite of {w}[?|]",
                         "[Which|What] word means the opposite of {w}[?|]", "{w} - [opposite|the opposite|what is the opposite][?|]", "[Not|The contrary of] {w} [is|means][?| what?]" if word not in ("begin", "end", "win", "lose") else "What is the contrary of {w}[?|]", "[Give|Say|Find] [me |]a word that is the opposite of {w}[.|]", "Opposite of {w}[?|]", "[What would|What might|What could] be the opposite of {w}[?|]", "[I need|I am looking for|Help me find] [the opposite of|a word opposite to|an opposite for] {w}[.|]", "{W} and its opposite[:|?| are?| is?]", "[Not {w} but what|If not {w}, then what][?|]"), w=word, W=upper_first(word))
    answer = "new" if word == "old" and other == "new" else other
    if word == "old":
        answer = "new, or young"
    return upper_first(question), rng.choice((f"{upper_first(answer)}.", f"The opposite of {word} is {answer}."))


def letters(rng):
    word = rng.choice(SPELLABLE)
    kind = rng.random()
    dashed = "-".join(word)
    if kind < 0.35:
        spaces = rng.random() < 0.3
        how = " [with spaces|with spaces between the letters|letter by letter, with spaces]" if spaces else "[| with hyphens| letter by letter| for me]"
        question = say(rng, ("[Spell|Please spell|Can you spell|Could you spell|Spell out] [the word |]{w}" + how + "[.|?|, please.]", "How [do you|do I|does one|would you] [spell|write] {w}" + how + "[?|]", "[What is|Give me|Tell me] the spelling of {w}" + how + "[?|.|]", "How is {w} [spelled|written|spelt]" + how + "[?|]", "[Write|Say] {w} [letter by letter|one letter at a time]" + (" with spaces" if spaces else "") + "[.|]",
                             "[What are|Which are|Tell me|List] the letters of [the word |]{w}[?|.|]"), w=word)
        return question, (" ".join(word) if spaces else dashed)
    if kind < 0.57:
        question = say(rng, ("[What is|What's|Tell me|Give me|Name] the first letter [of|in] [the word |]{w}[?|.|]", "[With which|With what|Which] letter does [the word |]{w} [begin|start][?| with?]", "[Which|What] letter [is first in|begins|starts|comes first in] [the word |]{w}[?|]", "{w} [begins|starts] with [which|what] letter[?|]", "The word {w}[: its|, its] first letter[?| is?]"), w=word)
        return question, rng.choice((f"{word[0].upper()}.", f"The first letter of {word} is {word[0]}."))
    if kind < 0.78:
        question = say(rng, ("[What is|What's|Tell me|Give me|Name] the last letter [of|in] [the word |]{w}[?|.|]", "[With which|With what|Which] letter does [the word |]{w} end[?| with?]", "[Which|What] letter [is last in|ends|comes last in] [the word |]{w}[?|]", "{w} ends [with|in] [which|what] letter[?|]", "The word {w}[: its|, its] last letter[?| is?]"), w=word)
        return question, f"{upper_first(dashed)}: the last letter is {word[-1]}."
    question = say(rng, ("How many letters [has|are in|are there in|make up|does one count in] [the word |]{w}[?|]", "How many letters does [the word |]{w} have[?|]", "[Count|Please count] the letters [of|in] [the word |]{w}[.|]", "[What is|Tell me] the number of letters [in|of] {w}[?|.|]", "[How long is|What is the length of] the word {w}[?|]", "{w} has how many letters[?|]"), w=word)
    return question, f"{upper_first(dashed)}: {number(rng, len(word))} letters."


def ask(rng):
    return rng.choice((naming, naming, naming, counting, counting, sorting, sorting, alphabet, turning, turning, position, position, how_many, how_many, odd_one, odd_one, opposites, opposites, opposites, letters, letters, letters))(rng)
