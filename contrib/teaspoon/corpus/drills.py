"""Drills: what is asked for stands in the prompt and has only to be found there and copied.

Nothing in them can be known, and most of their words and names occur nowhere else, so there is nothing to
learn from them but to look back: at the thing just said, at what stands next to a word, at what was said
of a name.  (The letters of words are the exception: they are drilled here, many in a document, because
there are so many words.)  They are given as they are, without slips of the finger, since what is copied must be exact.
"""
from . import made
from .lists import MANY, WORDS, about, joined, spellable
from .phrase import a, listed, say, upper_first
from .words import COLOURS, GOODS, NAMES, PET_NAMES, TOWNS


def thing(rng):
    """A word or a number, mostly one that nobody has heard."""
    kind = rng.random()
    if kind < 0.38:
        return made.word(rng)
    if kind < 0.70:
        return rng.choice(MANY)
    if kind < 0.80:
        return str(rng.randrange(10 ** rng.randint(1, 4)))
    return rng.choice((made.name, made.town))(rng)


def person(rng):
    return made.name(rng) if rng.random() < 0.75 else rng.choice(NAMES)


def place(rng):
    return made.town(rng) if rng.random() < 0.7 else rng.choice(TOWNS)


def different(rng, maker, count):
    found = []
    while len(found) < count:
        one = maker(rng)
        if all(one.lower() != other.lower() for other in found):
            found.append(one)
    return found


def things(rng, low, high):
    kind, count = rng.random(), rng.randint(low, high)
    if kind < 0.3:
        return different(rng, made.word, count)
    if kind < 0.4:
        return different(rng, person, count)
    if kind < 0.7:
        return rng.sample(WORDS if rng.random() < 0.5 else MANY, count)
    if kind < 0.76:
        return rng.sample([str(n) for n in range(100)], count)
    return different(rng, thing, count)


def sentence(rng):
    """A short one that nobody has said."""
    return say(rng, ("{P} [put|left|found|lost|saw|has|wants|likes|sold|forgot] the {w}.", "{P} [lives in|comes from|went to|is on the way to] {t}.",
                     "[The|A] {w} and [the|a] {v} [are|stand|lie] [in|near|behind|under] the {u}.",
                     "The {w} is [{c}|old|new|small|too big|very cold|full of {u}].", "{P} and {Q} [play|met|sing|sleep] in {t}.",
                     "My {w} costs {n} coins.", "The train to {t} leaves at {n}.", "{P} says {x} and {Q} says {y}.",
                     "I [bought|found|lost|dropped] {n} {x} and one {w}.", "There is a {x} in the {w}.", "[All|Some|No] {x} [are|eat] {y}.",
                     "Where is the {w} of {P}?", "Good evening, {P}!", "{Q} gave {P} a {c} {w}."),
               P=person(rng), Q=person(rng), t=place(rng), w=rng.choice(MANY if rng.random() < 0.3 else WORDS), v=rng.choice(WORDS), u=rng.choice(WORDS),
               c=rng.choice(COLOURS), n=rng.randint(2, 60), x=made.word(rng), y=made.word(rng))


def repeated(rng):
    """The thing itself."""
    kind = rng.random()
    what = thing(rng) if kind < 0.35 else " ".join(things(rng, 2, 5)) if kind < 0.55 else ", ".join(things(rng, 2, 6)) if kind < 0.72 else sentence(rng)
    mark = rng.choice(("", "", "", '"', "'"))
    quoted = mark + what + mark
    end = "" if what[-1] in ".?!" or mark else rng.choice(("", "", "."))
    question = say(rng, ("[Repeat|Say|Write|Type|Echo|Print|Please repeat|Please say|Please write|Just say|Only say|Just write|Answer with|Reply with|Respond "
                         "with|Answer only][:|] {q}{e}",
                         "[Repeat after me|Say after me|Repeat this|Copy this|Copy this line|Copy the following|Repeat the following|Write this down|Write "
                         "this|Say this|Say exactly|Repeat exactly|Echo this|Type this|Note this|Parrot this|Say it again|The line is|Same words, please][:| "
                         "-|:] {q}{e}",
                         "[Can you|Could you|Would you|I want you to|I'd like you to|Try to|Now|You must|Your task is to] [say|repeat|write|copy|type|echo][:|"
                         "] {q}{e}",
                         "{q}\n[Repeat that.|Say that again.|Copy the line above.|Copy this.|Repeat the line above, word for word.|Again, please.|Now you.]",
                         "[Copy|Repeat|Say|Write] [the words|this text|what follows|the next line|what comes now][:|:] {q}{e}",
                         "[Copy|Repeat|Write] [this line|the next line|the line below|what stands below][:|.]\n{q}",
                         "[Say|Write|Repeat] {q} [and nothing else|and no more|, that is all|, nothing more|, please].",
                         "[What I say is|I say]: {q}. [What did I say?|What do I say?|You say it too.|Repeat it.|Say it, too.]",
                         "[Please answer|Answer] [only |just |][with|by saying] {q}{e}"), q=quoted, e=end).replace(" ,", ",")
    return question, what + ("" if what[-1] in ".?!" else ".")


def several_times(rng):
    what = thing(rng) if rng.random() < 0.8 else " ".join(things(rng, 2, 2))
    times, said = rng.choice(((2, "twice"), (2, "two times"), (2, "twice"), (3, "three times"), (3, "3 times"), (4, "four times")))
    mark = rng.choice(("", "", '"', "'"))
    question = say(rng, ("[Write|Say|Repeat|Type|Print|Please say|Please write|Can you say|Could you write|I want you to say|Give me] {q} {n}[.|]",
                         "[Write|Say|Repeat] {n}: {q}[.|]", "{q}: [say|write|repeat] [it|that|this] {n}[.|, please.|]",
                         "[Say|Write|Type] the [word|following] {n}[:|] {q}[.|]"), q=mark + what + mark, n=said)
    return question, " ".join([what] * times) + "."


def two_things(rng):
    one, two = different(rng, thing, 2)
    question, answer = rng.choice((
        ("[Say|Write|Type] {a} and then {b}[.|]", "{a}, {b}."), ("[First say|First write] {a}, then {b}[.|]", "{a}, {b}."),
        ("[Say|Write] {b}, but [first|before that] {a}[.|]", "{a}, {b}."), ("[Say|Write] {b} after {a}[.|]", "{a}, {b}."),
        ("[Write|Say] {a} before {b}[.|]", "{a}, {b}."),
        ("[Join|Combine|Connect] {a} and {b} with [a plus|a plus sign][.|]", "{a} + {b}"), ("[Put|Write] {b} between {a} and {a}[.|]", "{a} {b} {a}."),
        ("[Swap|Exchange|Switch][:|] {b} {a}[.|]", "{a} {b}."), ("[Say|Write] not {b} but {a}[.|]", "{a}."), ("Do not say {b}, say {a}[.|]", "{a}."),
        ("[Don't write|Never write] {b}. [Write|Type] {a}[.|]", "{a}."),
        ("[Which word|What] did I say, {a} or {b}? I said {a}.", "{a}."), ("If I say {a}, you say {b}. {A}[!|.|]", "{b}."),
        ("[When|Whenever|If] somebody says {a}, [answer|say|reply] {b}. I say: {a}[.|]", "{b}."), ("{A} means {b}. What does {a} mean?", "{b}."),
        ("[In my language|In a secret language|In our code], {a} [means|is] {b}. What [means|is] {a}?", "{b}."),
        ("[In my language|In our code], {a} means {b}. Which word means {b}?", "{a}."), ("Let {a} be {b}. What is {a}?", "{b}."),
        ("[Greet|Say hello to] {p}[.|]", "Hello, {p}!"), ("[Say goodbye to|Say farewell to] {p}[.|]", "Goodbye, {p}!"),
        ("[Thank|Say thanks to] {p} for the {w}.", "Thank you for the {w}, {p}!"), ("[Wish {p} a good night|Say good night to {p}][.|]", "Good night, {p}!")))
    names = dict(a=one, b=two, A=upper_first(one), p=person(rng), w=rng.choice(WORDS))
    return say(rng, question, **names), answer.format(**names)


def neighbour(rng):
    """The word next to one."""
    words = things(rng, 3, 7)
    after = rng.random() < 0.6
    at = rng.randrange(len(words) - 1)
    known, answer = (words[at], words[at + 1]) if after else (words[at + 1], words[at])
    where = "[after|right after|directly after|just after]" if after else "[before|right before|directly before|just before]"
    inline = ["[What|Which word|Which one] [comes|stands|is|goes] @ {x} in {w}?", "[What|Which] is the [word|one|item] @ {x} in {w}[?|]",
              "{w}: what [comes|is|stands] @ {x}?", "{w}. [And @ {x}|@ {x}|What is @ {x}]?",
              "In [the list |]{w}, [what|which word] [follows|comes after] {x}?" if after else "In [the list |]{w}, [what|which word] [precedes|comes before] "
                                                                                               "{x}?"]
    commands = ["[name|say|write|give me|tell me|find] the [word|one|item] @ {x}"]
    clauses = ["[what|which word|which one] [comes|stands|is] @ {x}"]
    questions = ["[What|Which word] [follows|comes after|is next to the right of] {x}" if after else "[What|Which word] [precedes|comes before|is next to the "
                                                                                                     "left of] {x}",
                 "[What|Which] is the [word|item] @ {x}"]
    inline, commands, clauses, questions = ([text.replace("@", where).replace("{x}", known) for text in texts] for texts in (inline, commands, clauses,
                                                                                                                             questions))
    question = about(rng, words, inline, commands, clauses, questions)
    return question, f"{answer}." if rng.random() < 0.5 else f"{'After' if after else 'Before'} {known} comes {answer}."


def changed(rng):
    """A list or a line with one thing other than before."""
    words = things(rng, 3, 6)
    at = rng.randrange(len(words))
    old = words[at]
    kind = rng.choice(("replace", "replace", "without", "without", "front", "end", "after", "swap", "missing", "missing", "added", "twice"))
    new = different(rng, thing, 1)[0]
    while new.lower() in [word.lower() for word in words]:
        new = thing(rng)
    comma = rng.random() < 0.6
    join = ", ".join if comma else " ".join

    def spoken(text, **names):
        return say(rng, text, l=join(words), o=old, n=new, **names)
    if kind == "replace":
        return spoken(("[Replace|Exchange] {o} [by|with] {n}[ in|:| in this list:| in this line:] {l}",
                       "[Write|Say|Put|Use] {n} instead of {o}[ in|:| in the list] {l}",
                       "{l}: [replace {o} by {n}|replace {o} with {n}|change {o} to {n}|now with {n} for {o}]",
                       "[Change|Turn] {o} [to|into] {n}[ in|:| in this list:] {l}", "[My list is|I have|The line is]: {l}. [Replace|Now replace] {o} with {n}.",
                       "{l}\n[Put {n} in place of {o}.|Change {o} to {n}.]")), join(words[:at] + [new] + words[at + 1:]) + "."
    if kind == "without":
        return spoken(("[Remove|Delete|Take out|Leave out|Drop|Strike out|Take away|Cross out|Omit] {o}[ from|:| from the list| from this list:] {l}",
                       "[Repeat|Write|Copy|Say] {l} without {o}", "{l}: [without {o}|remove {o}|leave out {o}|delete {o}]",
                       "{l}, but [without|no|not] {o}[, please|]",
                       "[I have|We have|My list is] {l}. [Take away|Remove|Delete] {o}. [What is left|What remains]?")), join(words[:at] + words[at + 1:]) + "."
    if kind == "front":
        return spoken(("[Put|Add|Write] {n} [at the beginning of|in front of|at the start of|before] [the list |]{l}",
                       "{l}: [add {n} at the front|put {n} first|begin with {n}]")), join([new] + words) + "."
    if kind == "end":
        return spoken(("[Put|Add|Append|Write] {n} [at the end of|to|to the end of|to the list] {l}",
                       "{l}: [add {n}|add {n} at the end|append {n}|put {n} last|and also {n}]",
                       "[My list|The list|My shopping list] is {l}. [Add {n}.|I also need {n}. What is the list now?|Put {n} on it, too.]")), join(words + [new]) + "."
    if kind == "after":
        return spoken("[Put|Insert|Add|Write] {n} after {o}[ in|:| in this list:] {l}"), join(words[:at + 1] + [new] + words[at + 1:]) + "."
    if kind == "swap":
        return spoken("[Swap|Exchange|Switch] the first and the last [word |one |][of|in] [the list |]{l}"), join([words[-1]] + words[1:-1] + [words[0]]) + "."
    fewer = words[:at] + words[at + 1:]
    if rng.random() < 0.4:
        rng.shuffle(fewer)
    if kind == "missing":
        return spoken(("[First|Before|Yesterday] there were {l}. [Now|Then|Today] there are {f}. [What|Which one] is [missing|gone]?",
                       "{l}\n{f}\n[What|Which word] is missing[ in the second line| below|]?",
                       "[I had|She had|We had] {l}, now [I have|she has|we have] {f}. [What|Which one] [was lost|is missing|is gone]?",
                       "{l} - {f}. [Which word is gone|What was left out|What did I leave out]?"), f=join(fewer)), f"{old}."
    if kind == "added":
        return spoken(("[First|Before|Yesterday] there were {f}. [Now|Then|Today] there are {l}. [What|Which one] is new?",
                       "{f}\n{l}\n[What|Which word] was added?",
                       "[I had|She had|We had] {f}, now [I have|she has|we have] {l}. [What came along|What is new|Which one was added]?"),
                       f=join(fewer)), f"{old}."
    doubled = list(words)
    doubled.insert(rng.randrange(at + 1, len(words) + 1), old)
    return say(rng, ("[Which word|What|Which one] [occurs|is there|stands there|did I say] twice[:|?| in] {l}",
                     "{l}: [which word|what|which one] [comes twice|is there twice|did I repeat|occurs two times]?",
                     "Find the word that [is repeated|comes twice]: {l}"), l=join(doubled)), f"{old}."


def going_on(rng):
    """A pattern that goes on."""
    words = things(rng, 2, 4)
    length = rng.randrange(len(words) + 1, 3 * len(words) + 1)
    row = [words[at % len(words)] for at in range(length)]
    join = rng.choice((", ".join, " ".join))
    if rng.random() < 0.5:
        return say(rng, ("[What comes next|What is next|What follows|Which one comes next|Next one][:|?] {r}[, ...|]",
                         "{r} [...|- what comes next?|and then?|- next?]", "[Continue|Go on] by one word: {r}[ ...|]"),
                         r=join(row)), words[length % len(words)] + "."
    more = [words[(length + at) % len(words)] for at in range(len(words))]
    return say(rng, ("[Continue|Go on|Continue the pattern|Go on like this|Keep going][:| with] {r}, ...", "{r} ... [go on|keep going|continue][.|, please.|]"),
               r=join(row)), join(more) + ", ..." * (join("ab") == "a, b")


def said_before(rng):
    """Several turns: what was said comes back."""
    kind = rng.random()
    sure = rng.choice(("Ok.", "All right.", "Yes.", "I see.", "Good."))
    if kind < 0.4:
        what = sentence(rng) if rng.random() < 0.5 else thing(rng) if rng.random() < 0.5 else ", ".join(things(rng, 2, 4))
        end = "" if what[-1] in ".?!" else "."
        asked = say(rng, ("What did I [just say|say|just write|write]?",
                          "[What was that|Repeat that|Repeat what I said|Say that again|Once more|Again|Can you repeat that|Could you say that again][?|, "
                          "please.|.]",
                          "What were my last words?"))
        return [what, sure, asked, rng.choice((f"You said: {what}{end}", what + end))]
    if kind < 0.75:
        code = thing(rng)
        what = rng.choice(("code", "password", "magic word", "secret word", "number", "key", "answer", "word", "code word", "name of the ship",
                           "name of the house"))
        told = say(rng, ("The {k} is {c}.", "[Remember|Keep in mind|Note|Don't forget]: the {k} is {c}.", "My {k} is {c}.", "{C} is the {k}.",
                         "[Please remember|Remember] the {k} {c}.", "I tell you the {k}: {c}."), k=what, c=code, C=upper_first(code))
        turns = [told, sure]
        if rng.random() < 0.3:
            turns += [*two_things(rng)]
        return turns + [say(rng, ("What [is|was] the {k}?", "[And|So|Now] what [is|was] the {k}[?|]", "[Tell me|Say|Give me] the {k}[.|, please.|]",
                                  "[Do you remember|Do you still know|Can you tell me] the {k}?", "The {k}, please."), k=what),
                                  rng.choice((f"The {what} is {code}.", f"{code}."))]
    words = things(rng, 3, 5)
    at = rng.randrange(len(words))
    turns = [say(rng, ("[Here is a list|My list|Remember this list|A list]: {w}.", "{w}", "I have {w}."), w=", ".join(words)), sure]
    asked, answer = rng.choice((("[What was|Which was|Tell me] the first one[?|]", words[0]), ("[What was|Which was|Tell me] the last one[?|]", words[-1]),
                                ("[Repeat|Say] [it|the list][.|, please.|]", ", ".join(words)), ("[Now|And] backwards[.|?|, please.|]",
                                                                                                 ", ".join(reversed(words))),
                                ("[Leave out|Now without|Remove] " + words[at] + "[.|, please.|]", ", ".join(words[:at] + words[at + 1:])),
                                ("[Reverse it|Turn it around|Flip it][.|]", ", ".join(reversed(words)))))
    return turns + [say(rng, asked), answer + "."]


def of_each(rng):
    """The letters of several words, or how many they are: what the questions about one word build on."""
    words = [spellable(rng) if rng.random() < 0.85 else made.word(rng) for _ in range(rng.randint(3, 7))]
    kind = rng.random()
    if kind < 0.74:
        asked = ("[Spell|Please spell|Can you spell|Spell out|Could you spell] [these words|each word|all of these|each of these|the words|these]: {w}",
                 "[What is|Give me] the spelling of {w}[?|.]", "{w}: [spell them|spell each|letter by letter]", "How do you spell {w}?", "Spell {w}[.|]")
        parts = ["-".join(word) for word in words]
    elif kind < 0.87:
        asked = ("[What are the|The|Tell me the|Give me the|Write the] first letters of {w}[?|.|]", "[With which letters|Which letters] do {w} [begin|start]?",
                 "{w}: [first letters|the first letter of each|how do they begin]?")
        parts = [word[0] for word in words]
    else:
        asked = ("[How long are|How many letters have|How many letters are in|Count the letters of] [these words|each of these]: {w}[?|]",
                 "{w}: [how many letters has each|how long is each word|count the letters of each]?", "[How many letters are in|How long is] each of {w}?")
        parts = [str(len(word)) for word in words]
    form = rng.choice(("{w}: {p}", "{w}: {p}", "{p}"))
    return say(rng, asked, w=joined(rng, words)), rng.choice((", ", "\n")).join(form.format(w=word, p=part) for word, part in zip(words, parts))


# How a key goes with its value, how to ask for the value, for the key; and what makes the keys, the values.
RELATIONS = (
    ("{k} lives in {v}", ("Where does {k} live", "In which town does {k} live"), ("Who lives in {v}",), person, place),
    ("{k} likes {v}", ("What does {k} like",), ("Who likes {v}",), person, made.word),
    ("{k} has {v}", ("What has {k}", "What does {k} have", "What has {k} got"), ("Who has {v}", "Who has got {v}"), person,
     lambda rng: a(rng.choice(WORDS if rng.random() < 0.6 else GOODS))),
    ("{k} has the {v}", ("What does {k} have", "What has {k}"), ("Who has the {v}",), person,
     lambda rng: rng.choice(MANY) if rng.random() < 0.6 else made.word(rng)),
    ("{k} is {v} years old", ("How old is {k}",), ("Who is {v}", "Who is {v} years old"), person, lambda rng: str(rng.randint(2, 99))),
    ("the {k} is {v}", ("Which colour is the {k}", "What colour has the {k}"), ("What is {v}", "Which thing is {v}"), lambda rng: rng.choice(WORDS),
     lambda rng: rng.choice(COLOURS)),
    ("{k} is in the {v}", ("Where is {k}",), ("Who is in the {v}",), person, lambda rng: rng.choice(WORDS)),
    ("{k} comes from {v}", ("Where does {k} come from", "Where is {k} from"), ("Who comes from {v}", "Who is from {v}"), person, place),
    ("{k}'s pet is called {v}", ("What is {k}'s pet called", "What is the name of {k}'s pet"), ("Whose pet is {v}", "Whose pet is called {v}"), person,
     lambda rng: rng.choice(PET_NAMES) if rng.random() < 0.5 else made.name(rng)),
    ("{k} is the friend of {v}", ("Whose friend is {k}",), ("Who is the friend of {v}",), person, person),
    ("{k} means {v}", ("What does {k} mean",), ("Which word means {v}", "What means {v}"), made.word, lambda rng: rng.choice(MANY)),
    ("the {k} costs {v} coins", ("How much does the {k} cost", "How many coins is the {k}"), ("What costs {v} coins",), lambda rng: rng.choice(WORDS),
     lambda rng: str(rng.randint(2, 99))),
    ("room {v} belongs to {k}", ("Which room belongs to {k}", "What is {k}'s room"), ("Who has room {v}", "To whom does room {v} belong"), person,
     lambda rng: str(rng.randint(1, 99))))
PLAIN = (("What has {k}", "What is {k}", "What goes with {k}", "What belongs to {k}", "What stands at {k}", "What is the value of {k}", "{k}", "And {k}",
          "Which is {k}'s", "Look up {k}", "Give me {k}", "What about {k}"),
         ("Who has {v}", "What goes with {v}", "Which one has {v}", "To whom belongs {v}", "Whose is {v}"))


def looked_up(rng):
    """Keys and values; one or two are asked for, the value of a key or the key of a value."""
    count = rng.choice((2, 2, 3, 3, 3, 4, 5, 6))
    if rng.random() < 0.5:
        ask_value, ask_key = PLAIN
        keys = different(rng, rng.choice((person, person, thing, lambda rng: rng.choice(MANY))), count)
        values = different(rng, thing, count)
        while {key.lower() for key in keys} & {value.lower() for value in values}:
            values = different(rng, thing, count)
        link, gap = rng.choice((": ", ": ", ": ", "=", " = ", " - ", " -> ", " is ", " has ")), rng.choice((", ", ", ", "\n", "; ", ". "))
        facts = gap.join(key + link + value for key, value in zip(keys, values))
        tell = rng.choice(("{f}. ", "{f}. ", "{f}\n", "{f}\n\n", "Here is a table: {f}. ", "Given: {f}. ", "My notes: {f}. ",
                           "Read this: {f}. ")).format(f=facts)
    else:
        fact, ask_value, ask_key, key_maker, value_maker = rng.choice(RELATIONS)
        keys, values = different(rng, key_maker, count), different(rng, value_maker, count)
        while {key.lower() for key in keys} & {value.lower() for value in values}:
            values = different(rng, value_maker, count)
        facts = [fact.format(k=key, v=value) for key, value in zip(keys, values)]
        tell = rng.choice((". ".join(map(upper_first, facts)) + ". ", upper_first(listed(facts)) + ". ", upper_first(", ".join(facts)) + ". ",
                           ".\n".join(map(upper_first, facts)) + ".\n"))
    turns = []
    backwards = rng.random() < 0.3
    order = rng.sample(range(count), rng.choice((1, 1, 2, 2, 3)) if count > 2 else 1)
    for at in order:
        # A key that is asked for is said as it is; a question about one more is short.
        if turns and rng.random() < 0.5:
            question = rng.choice(("And {x}?", "And {x}", "{x}?", "What about {x}?", "And what about {x}?")).format(x=values[at] if backwards else keys[at])
        else:
            question = rng.choice(ask_key if backwards else ask_value).format(k=keys[at], v=values[at]) + rng.choice(("?", "?", "?", ""))
        turns += [question, (keys if backwards else values)[at] + "."]
    if rng.random() < 0.12:
        turns[0] = turns[0].rstrip("?") + "? " + tell.rstrip()
    elif rng.random() < 0.15:
        turns = [tell.strip(), rng.choice(("Ok.", "All right.", "I see.", "Good."))] + turns
    else:
        turns[0] = tell + turns[0]
    return turns


def in_sentence(rng):
    """The last or first word of a line, or the one next to a word in it."""
    words = sentence(rng).rstrip(".?!").replace(",", "").split()
    if len(set(words)) < len(words):
        return in_sentence(rng)
    line = " ".join(words) + "."
    at = rng.randrange(1, len(words))
    question, answer = rng.choice((("[What|Which] is the last word of[:| this line:| the sentence:] {l}", words[-1]),
                                   ("[What|Which] is the first word of[:| this line:| the sentence:] {l}", words[0]),
                                   ("{l} [What|Which word] [comes|stands] after {b}?", words[at]), ("{l} [What|Which word] [comes|stands] before {c}?",
                                                                                                    words[at - 1]),
                                   ("{l} [The last word of that?|What was the last word?|Repeat the last word.]", words[-1]),
                                   ("{l} [What was the first word?|Repeat the first word.]", words[0]), ("In \"{l}\", which word follows {b}?", words[at])))
    return say(rng, question, l=line, b=words[at - 1], c=words[at]), answer + "."


def capitals(rng):
    what = thing(rng) if rng.random() < 0.6 else " ".join(things(rng, 2, 3))
    if what.isdigit():
        return capitals(rng)
    if rng.random() < 0.75:
        return say(rng, ("[Write|Say|Type|Print|Put] {w} in [capitals|capital letters|upper case|big letters|all caps][.|, please.|]",
                         "{w} in capitals[.|, please.|?|]", "[In capitals|In capital letters|Upper case]: {w}[.|]", "[Shout|Capitalise]: {w}[.|]"),
                         w=what), what.upper() + "."
    return say(rng, ("[Write|Say|Type|Print] {w} in [small letters|lower case][.|]", "[In small letters|Lower case]: {w}[.|]"),
               w=what.upper()), what.lower() + "."


ASKED = ((5, repeated), (2, several_times), (3, two_things), (4, neighbour), (5, changed), (2, going_on), (4, said_before), (8, looked_up), (2, in_sentence),
         (1, capitals), (10, of_each))


def document(rng):
    turns = rng.choices([kind for _, kind in ASKED], [share for share, _ in ASKED])[0](rng)
    return {"messages": [{"role": ("user", "assistant")[at % 2], "content": content} for at, content in enumerate(turns)]}
