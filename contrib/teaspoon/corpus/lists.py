"""Lists: naming, counting, sorting, turning around; opposites and the letters of words."""
from . import made
from .phrase import a, listed, number, say, spelled, upper_first
from .words import (ANIMALS, COLOURS, COMMON, DAYS, FRUITS, GOODS, MONTHS, NAMES, OPPOSITES, SHORT, STORY_THINGS, TOOLS, VEGETABLES, plural)

KINDS = {"colours": COLOURS, "animals": list(ANIMALS), "fruits": FRUITS, "days of the week": DAYS, "months": MONTHS, "tools": TOOLS, "vegetables": VEGETABLES}
ONE = {"colours": "colour", "animals": "animal", "fruits": "fruit", "days of the week": "day of the week", "months": "month", "tools": "tool",
       "vegetables": "vegetable"}
WORDS = sorted(set(SHORT + GOODS + FRUITS + TOOLS + VEGETABLES + STORY_THINGS + list(ANIMALS) + list(COLOURS)))
MANY = sorted(set(WORDS + COMMON))
SPELLABLE = [word for word in MANY if 3 <= len(word) <= 6]
NAMES_TO_SPELL = [name for name in NAMES if 3 <= len(name) <= 6]

# What people say before they come to the matter.
WHY = ("I'm making a quiz.", "My daughter asks.", "My son wants to know.", "We are playing a word game.", "This is for school.", "Homework help!",
       "I need this for a crossword.", "A little puzzle for you.",
       "I am learning English.", "Let us play.", "Small task:", "Next one.", "My teacher wants this.", "Test question.", "I cannot do this myself.",
       "Here is an easy one.", "Got a minute?", "I'm stuck.",
       "We are practising at home.", "Can you help?", "One for you:", "I have a job for you.", "For a friend:", "Warm-up:", "Let's see how clever you are.",
       "Help me, please.")
COMMAND = ("{c}.", "{c}.", "{c}", "Please {c}.", "{c}, please.", "Can you {c}?", "Could you {c}?", "Could you please {c}?", "Would you {c} for me?",
           "I want you to {c}.", "I'd like you to {c}.", "I have to {c}.", "Help me {c}.",
           "{c} for me.", "Now {c}.", "{c}, will you?", "Try to {c}.", "Your task is to {c}.", "How do I {c}?", "You could {c}.", "Let's {c}.",
           "Can anybody {c}?", "Kindly {c}.", "I need to {c}.", "Go ahead and {c}.", "Would you be so kind as to {c}?")
CLAUSE = ("{c}?", "{c}?", "{c}?", "{c}", "Tell me {c}.", "Can you tell me {c}?", "Could you tell me {c}?", "Do you know {c}?", "I want to know {c}.",
          "I wonder {c}.", "Please say {c}.", "Find out {c}.", "Say {c}.", "I'd like to know {c}.",
          "Can you see {c}?", "Do you see {c}?", "Show me {c}.", "Could you work out {c}?", "Any idea {c}?", "Let me know {c}.", "{c}, please?", "And {c}?")


def joined(rng, words, last="and"):
    """A list in a sentence, as people write one."""
    kind = rng.random()
    if kind < 0.34:
        return listed(words, last)
    if kind < 0.68:
        return ", ".join(words)
    if kind < 0.80:
        return " ".join(words)
    mark = rng.choice(("'", '"'))
    return rng.choice((f" {last} ".join(words), ",".join(words), "; ".join(words), " / ".join(words), mark + ", ".join(words) + mark,
                       mark + " ".join(words) + mark, ", ".join(mark + word + mark for word in words),
                       "(" + ", ".join(words) + ")", "[" + ", ".join(words) + "]", ", ".join(words[:-1]) + f", {last} " + words[-1], " - ".join(words)))


def about(rng, words, inline, commands=(), clauses=(), questions=(), last="and"):
    """A question about a list. Those that are `inline` have the list in them, {w}; the others go before it or
    after: `commands` ("sort these"), `clauses` ("which one is first") and whole `questions`, without an end."""
    if rng.random() < 0.4:
        question = say(rng, inline, w=joined(rng, words, last), W=upper_first(joined(rng, words, last)))
        if question[0].islower() and question.split()[0].rstrip(",:;.?") not in words and rng.random() < 0.8:
            question = upper_first(question)
    else:
        kinds = [(kind, COMMAND if kind is commands else CLAUSE if kind is clauses else ("{c}?", "{c}")) for kind in (commands, clauses, questions) if kind]
        kind, shells = rng.choice(kinds)
        task = say(rng, kind).strip()
        if kind is commands and " me " in task:
            shells = COMMAND[:8]
        task = upper_first(rng.choice(shells).replace("{c}", task))
        if rng.random() < 0.12:
            items = rng.choice(("\n".join(words), "\n".join("- " + word for word in words),
                                "\n".join("* " + word for word in words) if words[0].isdigit() else "\n".join(f"{at}. {word}" for at,
                                                                                                              word in enumerate(words, 1)), ",\n".join(words)))
            question = rng.choice((task.rstrip(".") + ("\n" if task[-1] == "?" else ":\n") + items, items + "\n" + task,
                                   task.rstrip(".") + ("" if task[-1] == "?" else ":") + "\n\n" + items, items + "\n\n" + task))
        else:
            items = joined(rng, words, last)
            bare = task.rstrip(".?")
            end = rng.choice(("", "", "."))
            question = rng.choice((f"{bare}: {items}{end}", f"{bare}: {items}{end}", f"{task} {items}{end}" if task[-1] in "?." else f"{bare}: {items}",
                                   f"{bare} - {items}", f"{bare}\n{items}", f"{bare}:\n{items}", f"{items}. {task}", f"{items} - {bare[0].lower() + bare[1:]}",
                                   f"{items}: {bare[0].lower() + bare[1:]}", f"{items}\n{task}", say(rng,
                                                                                                     "[Here is a list|Here is my list|My list|I have a list|"
                                                                                                     "This is the list|Look at this list|Look|Given this list|"
                                                                                                     "List]: {i}[.|;] {t}",
                                                                                                     i=items, t=task),
                                   say(rng, "[I have|Take|Look at|I wrote|Somebody wrote|We have|There is|Consider|Suppose I have] {i}. {t}", i=items, t=task)))
            if question[0].islower() and rng.random() < 0.3 and words[0][0].islower():
                question = upper_first(question)
    if rng.random() < 0.07:
        question = rng.choice(WHY) + " " + (question if question.startswith(tuple(words)) else upper_first(question))
    return question


def names_of(rng, kind=None, count=None, without=()):
    """(question, answer, the words) so that a talk can ask for more."""
    kind = kind or rng.choice(list(KINDS))
    count = count or rng.randint(1, 5)
    left = [word for word in KINDS[kind] if word not in without]
    words = rng.sample(left, min(count, len(left)))
    many, one = number(rng, count), ONE[kind]
    if count == 1:
        question = say(rng, ("[Name|Tell me|Give me|Think of|Write|Say|Pick|Choose|Mention|Suggest] [{a}|one|any|some] {o}[.|, please.|]",
                             "[Can you|Could you|Please|Would you] [name|tell me|give me|think of|pick|suggest|mention] [{a}|one] {o}[?|.|]",
                             "[Which|What] {o} do you [know|like|want to name|think of first][?|]", "I need [{a}|one|any] {o}[.|, please.]",
                             "[An example of|For example,|Example:] {a} {o}[?|, please.|]",
                             "[One|Any|Just one|A single|Just any] {o}[, please.|.| will do.| is enough.]",
                             "What is [{a}|one] {o}[?| for example?| you know?]", "Do you know [{a}|any] {o}[?| you can name?]",
                             "What would be [an example of |]{a} {o}?", "Give [me |us |][an example|one example] of {a} {o}[.|]",
                             "[Something|A word|One thing] that is {a} {o}[?|, please.|.]", "[Quick|Quickly], {a} {o}[!|.]"),
                       o=one, a=a(one).split()[0])
        return upper_first(question), f"{upper_first(words[0])}.", words
    question = say(rng, ("[Name|List|Tell me|Give me|Write|Say|Think of|Write down|Enumerate|Mention|Suggest|Pick|Choose|Type|Note] {n} {k}[.|]",
                         "[Name|List|Give me|Pick] {n} [different|random|nice|separate] {k}[.|]",
                         "[Can you|Could you|Please|Would you|Can anyone|Are you able to|Will you] [name|list|tell me|give me|write down|think of|come up "
                         "with|mention] {n} {k}[?|.|, please.]",
                         "[Which|What] {n} {k} [can you name|do you know|come to mind|would you name|could I write down][?|]",
                         "I [need|want|would like|could use|must have] {n} {k}[.|, please.|, please]", "{N} {k}[, please.| please|.|?|!]",
                         "[A list of|Make a list of|Make me a list of|Write a list with|Show me|Give me a list of|Create a list of|A short list with|Put "
                         "together a list of] {n} {k}[.|, please|]",
                         "[I am looking for|Help me find|Help me think of|Help me name] {n} {k}[.|]", "Do you know {n} {k}[?|]",
                         "[Name|List|Tell me] {n} {k}, [whichever you like|any you like|it does not matter which|as you like|no matter which|your choice][.|]",
                         "[Any|Just any|Simply|At random,] {n} {k}[.|, please.|]", "{N} {k} [would be nice|will do|are enough|are all I need][.|]",
                         "[My homework is to|I have to|I must|The task is to|We should] [name|list|write down] {n} {k}[.|. Help me.|. Which ones?]",
                         "[What are|Which are] {n} [examples of |]{k}[?|]",
                         "[Give|Name|Write] [me |us |]the names of {n} {k}[.|]", "[Examples of {k}|Some {k}|{K}|A few {k}][, {n}|: {n}| ({n})][, please.|.|]",
                         "[Let me hear|Let's hear|I'd like to hear|Let me have] {n} {k}[.|]", "What {n} {k} are there[, for example|]?", "How about {n} {k}?",
                         "[Tell|Give] [my|a] [child|son|daughter|friend] {n} {k}[.|]", "[Exactly|Only|Just] {n} {k}[.|, no more.|, not more.|, please.]",
                         "{k}: [name|give me|list] {n}[.|, please.|]"), n=many, N=upper_first(many), k=kind, K=upper_first(kind))
    if rng.random() < 0.05:
        question = rng.choice(WHY) + " " + upper_first(question)
    return upper_first(question), f"{upper_first(listed(words))}.", words


def naming(rng):
    return names_of(rng)[:2]


def counting(rng):
    up = rng.random() < 0.6
    low = rng.randint(0, 17)
    high = rng.randint(low + 2, min(20, low + 12))
    start, end = (low, high) if up else (high, low)
    step = 1 if up else -1
    words = rng.random() < 0.25
    names = dict(a=number(rng, start, words), b=number(rng, end, words), d="" if up else "[down|backwards|back|downwards]")
    if up:
        way = ("[Count|Please count|Can you count|Could you count|Let us count|I want you to count|Would you count|I'd like to hear you count|Start counting|"
               "Try counting|Just count|Show me how to count]" + ("" if rng.random() < 0.8 else " [up|upwards|forwards]"))
        shapes = (way + " from {a} to {b}[.|?|, please.|]", way + " from {a} [until|till|up to|and stop at|through|all the way to] {b}[.|]",
                  way + " {a} to {b}[.|]", way + " [for me|out loud|aloud|for us] from {a} to {b}[.|]",
                  "[List|Write|Write down|Say|Give me|Tell me|Name|Enumerate|Print|Show me|Recite|Type] [all |]the numbers [from {a} to {b}|between {a} and "
                  "{b}, both included|from {a} up to {b}|{a} to {b}|{a} through {b}][.|]",
                  "[Start at|Begin with|Begin at|Start with|Starting at|Beginning with] {a}[ and|,] [count|go] [to|up to|on to|until you reach] {b}[.|]",
                  "[What are|Which are] the numbers from {a} to {b}[?|]",
                  "{a} to {b}, [count|counting|in order|one by one|please][.|]",
                  "[From|Going from] {a} to {b}[, one by one|, count|: count|, one after the other][.|, please.|]",
                  "[All|Every] [the numbers|number] from {a} [to|up to] {b}[.|, please.|]",
                  "Up from {a} to {b}[, please|][.|]", "[A child is|My son is|We are] learning to count. [Show|Give us] {a} to {b}.",
                  "[Which numbers do I say|What do I say] when I count from {a} to {b}?",
                  "[I start counting|I count] at {a} and stop at {b}. [What do I say|Which numbers are those]?",
                  "[Can you|Could you] go from {a} [to|up to] {b}[?|, one at a time?| for me?]", "Numbers {a} to {b}[.|, please.|]",
                  "[Continue|Go on] until {b}: {a}, ..." if not words else "Numbers {a} to {b}.")
    else:
        way = ("[Count|Please count|Can you count|Could you count|Let us count|I want you to count|Would you count|Start counting|Try counting|Just count] "
               "[down|backwards|back|downwards|in reverse]")
        shapes = (way + " from {a} to {b}[.|?|, please.|]", way + " from {a} [until|till|and stop at|all the way to|down to] {b}[.|]", way + " {a} to {b}[.|]",
                  way + " [for me|out loud|aloud] from {a} to {b}[.|]", "[Count|Please count|Can you count] for me from {a} down to {b}[.|?]",
                  "[List|Write|Write down|Say|Give me|Tell me|Enumerate|Print|Recite] the numbers from {a} [down to|back to|downwards to] {b}[.|]",
                  "[List|Write|Say|Give me] the numbers {a} to {b} [backwards|in descending order|going down][.|]",
                  "[Start at|Begin with|Begin at|Start with|Starting at] {a}[ and|,] [count|go] [down to|back to|backwards to|down until you reach] {b}[.|]",
                  "[A countdown|Countdown|Do a countdown|Give me a countdown|I need a countdown] from {a} to {b}[.|, please.|]",
                  "{a} [down|back] to {b}, [count|please count|please|one by one][.|]",
                  "[From|Going from] {a} [down|back] to {b}[, one by one|, count|: count][.|, please.|]",
                  "[A rocket starts|The rocket is ready]: count down from {a} to {b}[.|!]", "Down from {a} to {b}[, please|][.|]",
                  "[Which numbers do I say|What do I say] when I count [down|backwards] from {a} to {b}?", "Backwards from {a} to {b}[, please|][.|]",
                  "[Can you|Could you] go [backwards|down] from {a} to {b}[?| for me?]", "Count from {a} to {b}[.|]",
                  "Numbers from {a} down to {b}[.|, please.|]")
    return upper_first(say(rng, shapes, **names)), upper_first(", ".join(number(rng, n, words) for n in range(start, end + step, step)) + ".")


UPWARDS = ("[from smallest to largest|from small to big|in ascending order|upwards|by size|with the smallest first|smallest first|from low to high|in "
           "increasing order|from least to greatest|starting with the smallest|from the lowest to the highest|going up]")
DOWNWARDS = ("[from largest to smallest|from big to small|in descending order|downwards|with the largest first|largest first|with the biggest first|from high "
             "to low|in decreasing order|from greatest to least|starting with the largest|from the highest to the lowest|biggest first|going down]")


def sorting(rng):
    numbers = rng.sample(range(51), rng.randint(3, 5))
    down = rng.random() < 0.35
    order = DOWNWARDS if down else UPWARDS
    maybe = order if down else "[|" + order + "]"
    inline = ("[Sort|Order|Arrange|Please sort|Rearrange|Rank|Line up][:|] {w} " + maybe + "[.|]",
              "[Which|What] is the [right |]order of [the numbers |]{w} " + maybe + "[?|]", "[Put|Bring|Write|Place] {w} in order " + maybe + "[.|]",
              "{w}[:|,] [sort them|put them in order|sort these|order them|please sort|sorted] " + maybe + "[.|]",
              "[What is|Give me] the [right |sorted |]order of {w} " + maybe + "[?|]", "[What do you get|What comes out] [if|when] you sort {w} " + maybe + "?",
              "How do {w} [look|go|read] " + order + "?", "[Write|List|Say|Give me|Repeat] {w} " + order + "[.|]",
              "[I want|I need|I would like] {w} [sorted |]" + order + "[.|, please.]", "{w} " + order + "[, please|?|.|]",
              "Can {w} be put in order " + maybe + "?")
    commands = ("[sort|order|arrange|rearrange|rank|line up] [these numbers|the numbers|these|them|the following numbers|the following|this list|my numbers] " + maybe,
                "[put|bring|write|place] [these numbers|the numbers|them|these|the following] [in order|in the right order|into order] " + maybe,
                "[write|list|say|read|enumerate] [these numbers|the numbers|them] " + order,
                "[put|set] [these|them|the numbers] in [descending|decreasing] order" if down else "[put|set] [these|them|the numbers] in [ascending|"
                                                                                                   "increasing] order",
                "[tidy up|sort out|organise] these numbers " + maybe, "sort " + maybe)
    questions = ("[What|Which] is the [right|correct] order of these numbers " + maybe, "How [do|would] [these|these numbers] go " + order,
                 "[What|Which] order [do these have|do they go in] " + order, "How do these numbers look " + order)
    question = about(rng, [str(n) for n in numbers], inline, commands, (), questions)
    if not down and rng.random() < 0.2:
        question = say(rng, "[Sort|Sort|Order|Please sort] [|these numbers: |the numbers ]{w}[.|.|]",
                       w=rng.choice((", ", " ")).join(map(str, numbers)))
    for mark in ".?,:\n":
        question = question.replace(" " + mark, mark)
    answer = ", ".join(str(n) for n in sorted(numbers, reverse=down)) + "."
    return question.replace("  ", " ").rstrip(" "), answer


ALPHABETICALLY = ("[alphabetically|by the alphabet|in alphabetical order|from a to z|from A to Z|in abc order|in the order of the alphabet|as in a dictionary|"
                  "in dictionary order|the way a dictionary does]")


def alphabet(rng):
    pool = rng.choice((WORDS, WORDS, MANY, MANY, FRUITS, list(ANIMALS), NAMES, None))
    count = rng.choice((3, 3, 3, 3, 3, 2, 4))
    words = [made.word(rng) for _ in range(count)] if pool is None else rng.sample(pool, count)
    if len({word[0] for word in words}) < count and (rng.random() < 0.8 or len(set(words)) < count):
        return alphabet(rng)
    thing = "names" if pool is NAMES else "words"
    if rng.random() < 0.18:
        inline = ("[Which|Which word|What|Which one] [comes|is|stands] first in [the alphabet|the dictionary|a dictionary|alphabetical order][:|,] {w}[?|]",
                  "[Which|Which word|Which one] [of|out of|among] {w} [is|comes] first in the alphabet[?|]",
                  "{w}: [which|what] comes first [alphabetically|in the alphabet|in a dictionary]?",
                  "Of {w}, which [comes|is] first [alphabetically|in the alphabet]?", "[Alphabetically|In the alphabet], [which|what] is first, {w}?")
        clauses = ("which [one |word |of these |of them |]comes first [in the alphabet|in a dictionary|alphabetically]",
                   "which of these [words |]is first in the alphabet", "which would a dictionary have first")
        question = about(rng, words, inline, (), clauses, last=rng.choice(("or", "or", "and")))
        first = min(words)
        return question, rng.choice((f"{upper_first(first)}.", f"{upper_first(first)} comes first.")) if pool is not None else f"The first one is {first}."
    inline = ("[Sort|Order|Arrange|Put|Rearrange|Please sort] {w} " + ALPHABETICALLY + "[.|]", "[What is|Give me|Tell me] the alphabetical order of {w}[?|]",
              "{w}: [sort them by the alphabet|alphabetical order|in the order of the alphabet|alphabetical|a to z|abc order|alphabetise][, please.|.|?|]",
              "[In which order|How] do {w} [come in the alphabet|stand in a dictionary|come in a dictionary|appear in a dictionary][?|]",
              "[If|When] [I|you] sort {w} " + ALPHABETICALLY + ", what [do I get|is the order|comes out]?", "[Alphabetise|Alphabetize] {w}[.|]",
              "[List|Write|Give me|Say] {w} " + ALPHABETICALLY + "[.|]", "[I want|I need|I'd like] {w} " + ALPHABETICALLY + "[.|, please.]",
              "[Alphabetical order|The alphabetical order|By the alphabet|In abc order][:|, please:] {w}[.|]", "How would a [dictionary|phone book] order {w}?")
    commands = ("[put|bring|write|place] [these {t}|the {t}|them|the following {t}|these] [in|into] [alphabetical order|the order of the alphabet|abc order|"
                "dictionary order]",
                "[sort|order|arrange|rearrange|list|rank] [these {t}|the {t}|them|these|the following] " + ALPHABETICALLY,
                "[alphabetise|alphabetize] [these {t}|these|them|this list|the list]", "sort this list " + ALPHABETICALLY,
                "[sort|order] by [letter|first letter|the alphabet]")
    questions = ("[What|Which] is the alphabetical order of these [{t}|three {t}|]" if count == 3 else "[What|Which] is the alphabetical order of these",
                 "[In which|In what] order do these [{t} |][come|stand] in [the alphabet|a dictionary]", "How do these go " + ALPHABETICALLY)
    commands = [text.replace("{t}", thing) for text in commands]
    questions = [text.replace("{t}", thing) for text in questions]
    return about(rng, words, inline, commands, (), questions).replace("  ", " "), ", ".join(sorted(words)) + "."


def some_words(rng, low, high, known=False):
    """Words of one kind, or of none; `known` are those whose length can be known."""
    count = rng.randint(low, high)
    kind = rng.random()
    if not known and kind < 0.14:
        words = [rng.choice((made.word, made.word, made.name, made.town))(rng) for _ in range(count)] if kind < 0.06 else [made.word(rng) for _ in range(count)]
        return words if len(set(words)) == count else some_words(rng, low, high)
    if not known and kind < 0.20:
        return rng.sample([str(n) for n in range(100)], count)
    if not known and kind < 0.24:
        return rng.sample("abcdefghijklmnopqrstuvwxyz" if rng.random() < 0.5 else "ABCDEFGHIJKLMNOPQRSTUVWXYZ", count)
    if not known and kind < 0.30:
        return rng.sample([spelled(n) for n in range(1, 21)], count)
    pool = rng.choice((WORDS, WORDS, WORDS, MANY, MANY, list(rng.choice(list(KINDS.values()))), list(rng.choice(list(KINDS.values()))), NAMES))
    return rng.sample(pool, min(count, len(pool)))


BACKWARDS = ("[backwards|in reverse|in reverse order|the other way round|the other way around|from the end to the start|from last to first|starting with the "
             "last|starting from the end|back to front|last one first|from back to front|in the opposite order|from right to left|from bottom to top]")


def turning(rng):
    words = some_words(rng, 3, 4) if rng.random() < 0.7 else some_words(rng, 2, 5)
    inline = ("[Reverse|Turn around|Flip|Turn round|Invert|Please reverse] [the list |the words |the order of |the sequence |]{w}[.|]",
              "[Say|Write|Give me|List|Read|Repeat|Type|Print|Put] {w} " + BACKWARDS + "[.|]",
              "{w}[:|,|.] [turn it around|the other way round|backwards|reverse it|reversed|now reversed|now backwards|in reverse|flip it|flip them][, "
              "please.|.|]",
              "[What is|What's|Give me|Tell me] [the reverse of|the reversed list of|the reverse order of] {w}[?|]",
              "[If I|When I|Suppose I] [read|write|say] {w} " + BACKWARDS + ", [what do I get|what is it|what comes out|what does it say][?|]",
              "[I want|I need|I'd like|I would like] {w} " + BACKWARDS + "[.|, please.]", "[Put|Write] {w} in [reverse|the opposite|the reverse] order[.|]",
              "[What does|How does] {w} [look like|read|sound] " + BACKWARDS + "?", "{w} " + BACKWARDS + "[.|?|, please|]",
              "[How would you|Can you|Could you] [say|write|list] {w} " + BACKWARDS + "?", "[Backwards|Reversed|In reverse|The other way round]: {w}[.|]",
              "[Start with the last|Begin at the end|Begin with the last one]: {w}[.|]",
              "[The list is|My list is|Our list was] {w}. [What is it|How does it go|What would it be] " + BACKWARDS + "?",
              "[What happens to|What becomes of] {w} when [it is reversed|you turn it around|it is flipped|we reverse the order]?")
    commands = ("[reverse|turn around|flip|invert|turn round|switch round] [this list|the list|the order|these words|these|them|the following|the following "
                "list|this|the order of these|the order of these words|the sequence|it]",
                "[say|write|list|read|repeat|give me|name|type] [these|them|these words|this list|the list|the following|the words] " + BACKWARDS,
                "[put|write|place] [these|them|these words|the words|the list] in [reverse|the opposite|the reverse] order",
                "turn [the list|this list|these|the order|it] around", "[mirror|reverse the order of] [the list|these words|these]",
                "[swap the order so|rearrange the list so|reorder these so] that the last [comes first|one is first|is first]")
    questions = ("[What is|What's] this list " + BACKWARDS, "What is the reverse [of this|of this list|order of these|order]",
                 "How does this [list |]go " + BACKWARDS, "What do I get [when|if] I [read|write] this " + BACKWARDS, "How would these be " + BACKWARDS,
                 "What does this [look like|become] [reversed|backwards|turned around]")
    return about(rng, words, inline, commands, (), questions), ", ".join(reversed(words)) + "."


def position(rng):
    which = rng.choice(("first", "last", "first", "last", "first", "last", "second", "third", "longest", "longest", "shortest"))
    size = which in ("longest", "shortest")
    words = some_words(rng, 3, 5, known=size)
    if size:
        lengths = sorted((len(word) for word in words), reverse=which == "longest")
        if abs(lengths[0] - lengths[1]) < (1 if rng.random() < 0.25 else 2):
            return position(rng)
        answer = (max if which == "longest" else min)(words, key=len)
    else:
        answer = words[{"first": 0, "second": 1, "third": 2, "last": -1}[which]]
    item = "[word|one]" if size else "[word|item|thing|one|entry|element|member]"

    def fill(texts):
        return [text.replace("{h}", which).replace("{item}", item) for text in texts]
    inline = ["[What|Which] is the {h} {item} [of|in|out of] {w}[?|]", "[What|Which] is the {h} {item} [of|in] [this list|the list|this]? {w}[.|]",
              "[Which|What] {item} is {h}[:|,| in| of] {w}[?|]", "[Name|Tell me|Give me|Say|Write|Pick|Repeat] the {h} {item} of {w}[.|]",
              "{w}[:|.| -] [which one is {h}|which is the {h}|what is the {h} word|the {h}, please|the {h} one|{h} one][?|.|]",
              "[In|From|Of|Out of|Among] [the list |]{w}, [which|what] [word |one |][is the {h}|is {h}][?| one?]",
              "[In|From] the list {w}, [pick|take|give me|name|tell me] the {h} {item}[.|]",
              "{w}. [The|Just the|Only the|I want the|I need the|Now the] {h}[ one|][, please|][.|]", "The {h} {item} of {w} is[| what]?",
              "The {h} [of|among] {w}[?|]"]
    clauses = ["which [word |one |of these |of them |][is {h}|is the {h}|is the {h} one]", "which {item} is {h}[ here| in this list| in the list|]",
               "what the {h} {item} [is|in this list is|of the list is]", "what is the {h} {item}[ here| in this list| of the list|]"]
    commands = ["[name|say|write|pick|give me|tell me|find|repeat|show me|take|copy|print] the {h} {item}[ of this list| in this list| here| of the list|]",
                "[name|say|give me|tell me|pick] only the {h} {item}"]
    questions = ["[What|Which] is the {h} {item} [of|in] [this list|the list|this|my list]", "[What|Which] is the {h}", "{h} {item}"]
    if size:
        more = "most" if which == "longest" else "fewest"
        inline += [f"Which [word |]has the {more} letters[:|,] {{w}}[?|]", f"[Of|Among] {{w}}, which has the {more} letters?",
                   f"Which [of|one of] {{w}} is [the |]{'longer than the others' if which == 'longest' else 'shorter than the others'}?"]
        clauses += [f"which [word |one |]has the {more} letters",
                    f"which of these [words |]{'takes the most space' if which == 'longest' else 'is shorter than the rest'}"]
    elif which in ("first", "last"):
        inline += ["{w}: [what|which one] [comes|stands] {h}?",
                   "With which word does {w} [begin|start]?" if which == "first" else "With which word does {w} end?",
                   "[What|Which one] did I [name|mention|say|write] {h}: {w}?",
                   "What does the list {w} [begin|start] with?" if which == "first" else "What does the list {w} end with?"]
        clauses += ["[what|which one|which word] [comes|stands|was named] {h}[ in this list| here|]",
                    "[what|which word] this list begins with" if which == "first" else "[what|which word] this list ends with"]
        questions += ["[What|Which one] did I [name|mention|say|write] {h}",
                      "[What|Which word] does [this|the|my] list [begin|start] with" if which == "first" else "[What|Which word] does [this|the|my] list end "
                                                                                                              "[with|on]",
                      "Which word is at the [start|beginning|front|top]" if which == "first" else "Which word is at the [end|very end|back|bottom]"]
    else:
        inline += ["{w}: what is in {h} place?", "Which word is number " + ("2" if which == "second" else "3") + " in {w}?"]
        clauses += ["[what|which one|which word] [comes|stands|is] [{h}|in {h} place|number " + ("two" if which == "second" else "three") + "]"]
    question = about(rng, words, fill(inline), fill(commands), fill(clauses), fill(questions))
    kind = "word" if answer.islower() and answer.isalpha() and len(answer) > 1 and rng.random() < 0.6 else "one"
    short = upper_first(answer) if answer in KNOWN else answer
    return question, f"{short}." if rng.random() < 0.4 and (size or answer in KNOWN) else f"The {which} {'word' if size else kind} is {answer}."


def how_many(rng):
    words = some_words(rng, 2, 7 if rng.random() < 0.3 else 6)
    if words[0].isdigit():
        return how_many(rng)
    item = "[words|things|items|entries|words|things]"
    inline = ("How many [things|words|items|entries] [are in|are there in|has|are on|does one count in|do you count in|do you find in] [this|the|my] list[:|,|"
              "?| ] {w}[?|]",
              "[Count|Please count|Can you count|Tally|Could you count up] the [words|things|items|entries] in [the list |]{w}[.|]",
              "How many [words|things|items] [is that|are these|are that|do you see|are listed|are there|did I write][:|?] {w}[?|]",
              "{w}[:|.| -] how many [words|things|items|] [are there|is that|are these|did I list|did I name|do I have|are listed|did you count][?|]",
              "[What is|Tell me|What's|Give me] the [length|size] of [this|the] list[:|,| ] {w}[?|.]", "[How long is|What is the length of] the list {w}[?|]",
              "[I bought|I have|I packed|She brought|We need|On the table are|In the box are|My bag holds|I can see] {w}. How many [things|items|] [is that|"
              "are that|are there|do I have to carry|in all|altogether|in total]?",
              "{w} - [number of words|count them|how many|count|the number of things][?|.|]", "{w} [is|makes|are] how many [things|words|items][?|]",
              "[I count|I see|There are] {w}. [That is|That makes|So that is] how many[?| in all?]",
              "How many [is|are|does that make,] {w}[ together| in all|]?")
    commands = ("[count|count up|tally] [these {n}|the {n}|these|them|the {n} in this list|what is in this list|my list|the {n} here]",
                "[tell me|give me|say|write|find] [the number of {n}|the number of {n} in this list|the length of this list|how many {n} there are|how many "
                "{n} I listed|how many {n} are in this list]")
    clauses = ("how many {n} [there are|are there|are in this list|are here|are in the list|I have|you see|these are|that makes|the list has]",)
    questions = ("How many {n} [are in this list|are here|are there|is that|do you see|do I have|did I list|did I write|does this list have|has this list|"
                 "stand here|can you count]",
                 "How long is [this|my|the] list", "How many [are these|are there|is that|do I have|in total|in all|did I name]",
                 "[What is|What's] the [length of this list|number of {n}]")
    commands, clauses, questions = ([text.replace("{n}", item) for text in texts] for texts in (commands, clauses, questions))
    question = about(rng, words, inline, commands, clauses, questions).replace("  ", " ")
    count = spelled(len(words))
    return question, rng.choice((f"{upper_first(count)}.", f"{len(words)}.", f"The list has {count} {rng.choice(('words', 'things', 'items'))}.",
                                 f"There are {count}."))


def odd_one(rng):
    kinds = {"colours": COLOURS, "animals": list(ANIMALS), "fruits": [f for f in FRUITS if f != "orange"], "tools": TOOLS, "vegetables": VEGETABLES,
             "days": DAYS, "months": MONTHS}
    common, other = rng.sample(list(kinds), 2)
    words = rng.sample(kinds[common], 3)
    odd = rng.choice([word for word in kinds[other] if word not in kinds[common]])
    words.append(odd)
    rng.shuffle(words)
    wrong = ("[does not belong|doesn't belong|does not fit|doesn't fit|is different|is the odd one out|is the odd one|does not match|is out of place|is the "
             "stranger|is not like the others|is wrong here|is not of the same kind|has nothing to do with the others|stands out|is an outsider|should not be "
             "here|doesn't match the others|is the odd man out]")
    inline = ("[Which|Which word|Which one|What] " + wrong + "[:|,|?| in| among| of] {w}[?|]",
              "[Which|Which word|Which one|What] is the odd one[ out|][:|,|?| in| among] {w}[?|]",
              "[Find|Pick|Name|Tell me|Spot|Give me|Choose|Point out] the [odd one out|word that does not belong|one that does not fit|one that is different|"
              "word that does not fit|odd man out|one that doesn't belong|intruder|outsider|misfit][:| of| in| among] {w}[.|]",
              "{w}[:|.| -] [which|Which] [one |word |of them |]" + wrong + "[?|]",
              "[Of|Among|Out of|In] {w}, [which|what] [one |word |]" + wrong + "[?|]",
              "[One of these|One of the words|One word|One of them] " + wrong + ": {w}[.|. Which?|. Which one is it?]",
              "[Three of these|Three of the words] [go together, one does not|are of a kind, one is not|belong together]: {w}. [Which|Which one|Which one is "
              "left|What is the fourth]?",
              "Odd one out[:|?| -| in] {w}[?|.|]", "{w}: odd one out[?|.|]",
              "[Remove|Strike out|Cross out|Take out|Leave out|Throw out] the [word|one] that " + wrong + ": {w}[.|]",
              "What is [wrong|strange|odd] in [the list |]{w}?", "Is there [a word|one] that does not fit in {w}?",
              "{w} - one of them " + wrong + "[.|. Which?|. Which one?]")
    commands = ("[find|pick|name|spot|choose|point out|pick out|show me|give me|tell me] the [odd one out|odd one|one that does not fit|word that does not "
                "belong|one that is different|odd man out|word that doesn't fit|intruder|outsider|misfit]",
                "[remove|strike out|cross out|take out|leave out] the [word|one] that " + wrong, "say which one " + wrong)
    clauses = ("which [one |word |of these |of them |of these words |item |]" + wrong, "what " + wrong + "[ here| in this list|]",
               "which of them does not go with the [others|rest]", "which is the odd one[ out| here|]")
    questions = ("[What|Which] is the odd one [out|here]", "Which [word|one] would you [leave out|take out|remove]", "Odd one out",
                 "Which [one|word] has no place here", "Who [does not belong|is the odd one out]")
    question = about(rng, words, inline, commands, clauses, questions, last=rng.choice(("and", "or")))
    return question, rng.choice((f"{upper_first(odd)}.", f"{upper_first(odd)}: the others are {common}.", f"{upper_first(odd)}, the others are {common}."))


def of_a_kind(rng):
    """Which one is a tool, or what a saw is."""
    kinds = {"colour": [c for c in COLOURS if c != "orange"], "animal": list(ANIMALS), "fruit": [f for f in FRUITS if f != "orange"], "tool": TOOLS,
             "vegetable": VEGETABLES, "day": DAYS, "month": MONTHS}
    chosen = rng.sample(list(kinds), rng.randint(2, 4))
    words = [rng.choice(kinds[kind]) for kind in chosen]
    word, kind = words[0], chosen[0]
    if rng.random() < 0.4:
        return say(rng, ("[What|What kind of thing|What sort of thing|What kind of word] is [the word |]{w}[?|, a {k} or a {o}?| - a {o} or a {k}?]",
                         "{W} is [what|what kind of thing|a kind of what]?", "[Which|What] kind does {w} belong to?", "[Is|Is the word] {w} a {k} or a {o}?",
                         "[Is|Is the word] {w} a {o} or a {k}?"),
                   w=word, W=upper_first(word), k=kind, o=chosen[1]).replace(" a animal", " an animal"), f"{upper_first(a(kind))}."
    rng.shuffle(words)
    which = a(kind)
    inline = ("[Which|Which word|Which one|What] is {k}[:|,] {w}[?|]", "[Of|Among|Out of] {w}, [which|which one|what] is {k}?",
              "[Find|Pick|Name] the {o} [in|among] {w}[.|]", "{w}[:|.] [which|which one] is {k}?")
    commands = ("[find|pick|name|pick out|choose|point out] the [{o}|one that is {k}]",)
    clauses = ("which [one |word |of these |of them |]is {k}", "which [one |]is the {o}")
    inline, commands, clauses = ([text.replace("{k}", which).replace("{o}", kind) for text in texts] for texts in (inline, commands, clauses))
    return about(rng, words, inline, commands, clauses, last=rng.choice(("and", "or"))), f"{upper_first(word)}."


NOT_BEING = ("begin", "end", "win", "lose", "day", "night", "up", "down", "left", "right")


def opposites(rng):
    pair = list(rng.choice(OPPOSITES))
    if pair[0] != "old":
        rng.shuffle(pair)
    word, other = pair
    q = rng.choice(("", "", "", '"', "'"))
    is_quality = word not in NOT_BEING
    shapes = ["[What is|What's|Tell me|Name|Give me|Say|Find|Do you know|Can you tell me|Could you give me|Write] the opposite of [the word |]{w}[?|.|]",
              "[What|Which word] is opposite to {w}[?|]", "[What|Which word|Which] is the [opposite|contrary|reverse|other side|counterpart|antonym|exact "
                                                          "opposite|very opposite] of {w}[?|]",
              "The opposite of {w}[?| is| is?| is?| is what?|, please.]", "[Which|What] word means the opposite of {w}[?|]",
              "{w} - [opposite|the opposite|what is the opposite][?|]",
              "[Give|Say|Find|Tell] me [a|the] word that [is the opposite of|means the opposite of|is opposite to] {w}[.|]", "Opposite of {w}[?|]",
              "[What would|What might|What could] be the opposite of {w}[?|]",
              "[I need|I am looking for|Help me find|I want|I forgot|I can't remember] [the opposite of|a word opposite to|an opposite for|the opposite word "
              "to] {w}[.|]",
              "{W} and its opposite[:|?| are?| is?]", "[Not {w} but what|If not {w}, then what][?|]",
              "I say {w}, [you say|what do you say|you say the opposite][?|:|.|]", "{W} [is|means] the opposite of [what|which word][?|]",
              "{W} is the contrary of [what|which word]?", "[An|The] antonym [of|for] {w}[?|, please.|]", "How do you call the opposite of {w}?",
              "What do you call the opposite of {w}?", "If it's opposite day, {w} means [what|what?|...]",
              "Opposites: {w} and[ ...| ?| what?]", "{W}? [The opposite|Opposite], please.",
              "[We are learning opposites|Let us do opposites|A game of opposites|Opposites]: {w}[?|.|]", "[Turn|Change] {w} into its opposite[.|]",
              "[What|Which word] do I [use|say|write] for the opposite of {w}?",
              "[Which|What] word [stands against|goes against|pairs with] {w}[, as an opposite| as its opposite]?",
              "[Our|My|The] [crossword|puzzle|quiz|homework|teacher] asks for the opposite of {w}[.|]",
              "[As an opposite|The opposite|In opposites], {w} goes with[ what| which word|]?", "{w} vs[. what|.|]?", "Say the opposite: {w}[.|]"]
    if is_quality:
        shapes += ["[If|When] [something|it|a thing] is not {w}, [it is|what is it|then it is|then what is it][?|]",
                   "[Not|The contrary of] {w} [is|means][?| what?]",
                   "[Something that is not {w}|A thing that isn't {w}|What is not {w}] [is|must be|would be][?| what?|...]",
                   "It's not {w}, it's the opposite[. What is it?|: what?]",
                   "[What|How] is [something|a thing] that is [the opposite of {w}|not {w} at all|anything but {w}]?",
                   "My [box|house|bag|bed|book] is not {w}, it is ...?" if word in ("big", "small", "old", "new", "clean", "dirty", "light",
                                                                                    "heavy") else "The opposite of being {w}?"]
    else:
        shapes += ["What is the contrary of {w}[?|]"]
    question = say(rng, shapes, w=q + word + q, W=q + upper_first(word) + q)
    answer = "new, or young" if word == "old" else other
    if rng.random() < 0.06:
        question = rng.choice(WHY) + " " + upper_first(question)
    return upper_first(question) if rng.random() < 0.85 else question, rng.choice((f"{upper_first(answer)}.", f"The opposite of {word} is {answer}."))


def spellable(rng):
    """A word of three to six letters, more often one that stands for a thing."""
    word = rng.choice(WORDS if rng.random() < 0.5 else SPELLABLE)
    return word if 3 <= len(word) <= 6 else spellable(rng)


def letters(rng):
    pick = rng.random()
    word = spellable(rng) if pick < 0.80 else rng.choice(NAMES_TO_SPELL) if pick < 0.86 else made.word(rng)
    while len(word) > 6:
        word = made.word(rng)
    kind = rng.random()
    dashed = "-".join(word)
    q = rng.choice(("", "", "", "", '"', "'"))
    names = dict(w=q + word + q)
    why = rng.choice(WHY) + " " if rng.random() < 0.06 else ""
    if kind < 0.38:
        spaces = rng.random() < 0.3
        how = (" [with spaces|with spaces between the letters|letter by letter, with spaces|with a space between the letters|separated by spaces|using spaces|"
               "with blanks in between|with a space after each letter]" if spaces else
            "[| with hyphens| letter by letter| for me| using hyphens| with hyphens between the letters| with dashes| one letter at a time| separated by "
            "hyphens]")
        how_do = ("[, with spaces| with spaces|? Use spaces|? Put spaces between the letters]" if spaces else
                  "[|| with hyphens|, letter by letter|? With hyphens, please|? Letter by letter|, exactly]")
        plain = "" if not spaces else ", with spaces"
        question = say(rng, ("[Spell|Please spell|Can you spell|Could you spell|Spell out|Would you spell|I want you to spell|Help me spell|Try to spell|Let "
                             "us spell|Now spell] [the word |the word |]{w}" + how + "[.|, please.|]",
                             "How [do you|do I|does one|would you|should I|can I|do people] [spell|write] [the word |]{w}" + how_do + "?",
                             "[What is|Give me|Tell me|What's|I need|I forgot] the spelling of [the word |]{w}" + how + "[.|]",
                             "How is [the word |]{w} [spelled|written|spelt]" + how_do + "?",
                             "[Write|Say|Type|Print|Read|Show me|Give me|Break up|Write out] [the word |]{w} [letter by letter|one letter at a time|as single "
                             "letters|in single letters]" + (" with spaces" if spaces else "") + "[.|]",
                             "[What are|Which are|Tell me|List|Name|Give me|Enumerate] [all |]the letters [of|in] [the word |]{w}" + plain + "[.|]",
                             "{w}: [spell it|how is it spelled|spell this word|spelling, please|letter by letter|the letters, please]" + plain + "[.|]",
                             "[Which|What] letters [are in|make up|make|does one need for|do I need for] [the word |]{w}" + plain + "[?|]",
                             "[The word is|My word is|The next word is|A word:] {w}. [Spell it|Please spell it|How is it spelled|Spell that|Can you spell "
                             "that|Spell it out for me]" + (" with spaces" if spaces else "[| with hyphens| letter by letter]") + "[.|]",
                             "[I cannot|I can't|I don't know how to] spell {w}" + plain + "[.|. Help me.|. Can you?]",
                             "{w}, [letter by letter|spelled out|spelled]" + plain + "[, please.|.|]",
                             "Put [a space|spaces] between the letters of {w}[.|]" if spaces else "Put [a hyphen|hyphens|dashes] between the letters of {w}[.|]",
                             "[Split|Divide|Take apart|Separate] {w} [into|in] [letters|its letters|single letters]" + plain + "[.|]",
                             "[At a spelling bee|In a spelling test|In a dictation] [they ask for|I get|somebody says] {w}. [What do I say|What is right|How "
                             "is it spelled]" + plain + "?"),
                             **names)
        return why + upper_first(question) if rng.random() < 0.8 else why + question, (" ".join(word) if spaces else dashed)
    if kind < 0.43:
        shape = rng.choice((dashed, " ".join(word), ", ".join(word), dashed.upper(), "".join(letter + "." for letter in word)))
        question = say(rng, ("[Which|What] word is {s}[?|]", "{s}: [which|what] word is that?", "[What|Which word] do the letters {s} [make|spell|give]?",
                             "[What does|What do] {s} spell[?|]", "[Join|Put together|Read] the letters {s}[.|]",
                             "[I spell|Somebody spells] {s}. [Which word is it|What is the word]?", "{s} [spells|makes|is] what?"), s=shape)
        return question, f"The word is {word}."
    if kind < 0.62:
        question = say(rng, ("[What is|What's|Tell me|Give me|Name|Say|Write|Find|Can you tell me|Do you know] the [first|first|first|very first|initial|"
                             "opening] letter [of|in] [the word |]{w}[?|.|]",
                             "[With which|With what|Which|What] letter does [the word |]{w} [begin|start][?| with?]",
                             "[Which|What] letter [is first in|begins|starts|comes first in|opens|is at the start of|is at the beginning of|stands first in|"
                             "leads] [the word |]{w}[?|]",
                             "{w} [begins|starts] with [which|what|which one|what] letter[?|]", "The word {w}[: its|, its] first letter[?| is?]",
                             "[What does|What letter does] [the word |]{w} [begin|start] with?",
                             "[Could you tell me|Tell me|I want to know|Do you know] [which|what] letter {w} [begins|starts] with[.|?]",
                             "First letter of {w}[?|.|]", "{w}: [first letter|the first letter|its first letter][?|, please.|]",
                             "[Take|Look at] the word {w}. [What is its first letter|Which letter is first|What does it begin with|Which letter does it start "
                             "with]?",
                             "[In a dictionary, under|Under] which letter [do I look for|do I find|is] {w}?",
                             "If I write {w}, [which letter do I write first|what do I write first|which letter comes first]?",
                             "[Only|Just] the first letter of {w}[, please|][.|]"), **names)
        return why + upper_first(question), rng.choice((f"{word[0].upper()}.", f"The first letter of {word} is {word[0]}."))
    if kind < 0.80:
        question = say(rng, ("[What is|What's|Tell me|Give me|Name|Say|Write|Find|Can you tell me|Do you know] the [last|last|last|very last|final|closing] "
                             "letter [of|in] [the word |]{w}[?|.|]",
                             "[With which|With what|Which|What|On which] letter does [the word |]{w} end[?| with?]",
                             "[Which|What] letter [is last in|ends|comes last in|closes|is at the end of|stands at the end of|stands last in|finishes] [the "
                             "word |]{w}[?|]",
                             "{w} ends [with|in|on] [which|what] letter[?|]", "The word {w}[: its|, its] last letter[?| is?]",
                             "[What does|Which letter does] [the word |]{w} [end|finish] [with|in|on]?",
                             "[Could you tell me|Tell me|I want to know|Do you know] [which|what] letter {w} ends [with|in|on][.|?]",
                             "Last letter of {w}[?|.|]", "{w}: [last letter|the last letter|its final letter][?|, please.|]",
                             "[Take|Look at] the word {w}. [What is its last letter|Which letter is last|What does it end with|Which letter does it end on]?",
                             "If I write {w}, [which letter do I write last|what do I write last|which letter comes last]?",
                             "[Only|Just] the last letter of {w}[, please|][.|]"), **names)
        return why + upper_first(question), f"{dashed}: the last letter is {word[-1]}."
    question = say(rng, ("How many letters [has|are in|are there in|make up|does one count in|do you count in|do I need for|can you find in] [the word |"
                         "]{w}[?|]",
                         "How many letters does [the word |]{w} [have|contain|consist of|need|take][?|]",
                         "[Count|Please count|Can you count|Tally|Count up|Could you count] the letters [of|in] [the word |]{w}[.|]",
                         "[What is|Tell me|Give me|What's] the number of letters [in|of] [the word |]{w}[?|.|]",
                         "[How long is|What is the length of|How long, in letters, is] the word {w}[?|]",
                         "{w} [has|is made of|contains|is written with|takes] how many letters[?|]",
                         "{w}: [how many letters|number of letters|count the letters|how many letters is that|letters?][?|, please.|]",
                         "[Could you tell me|Tell me|Do you know|I want to know|Find out] how many letters [are in|make up|there are in] [the word |]{w}[.|?]",
                         "[Take|Look at] the word {w}. How many letters [does it have|has it|are there]?",
                         "[Number of letters|Letter count|Letters] in {w}[?|.|]",
                         "[I write|If I write|When I write] {w}, how many letters [is that|do I write|are that]?",
                         "[The word|My word] is {w}. [How long is it|How many letters is that|Count its letters]."), **names)
    return why + upper_first(question), f"{dashed}: {number(rng, len(word))} letters."


KNOWN = frozenset(MANY + NAMES + DAYS + MONTHS)
ASKED = ((3, naming), (3, counting), (3, sorting), (4, alphabet), (5, turning), (5, position), (3, how_many), (4, odd_one), (1, of_a_kind), (4, opposites),
         (8, letters))


def ask(rng):
    return rng.choices([kind for _, kind in ASKED], [share for share, _ in ASKED])[0](rng)
