"""Conversations: greetings, who teaspoon is, what was told before, the same again with another, and
system messages that say how to answer."""
from . import arithmetic, dates, lists, nature, samovar, stories
from .nature import UNKNOWN
from .phrase import a, listed, number, say, upper_first
from .words import (ANIMALS, COLOURS, DAYS, FRUITS, GOODS, HIDING, MONTHS, NAMES, PET_NAMES, PETS, PLACES, THINGS_COLOUR, TOWNS, VEGETABLES)

SMALL = (
    (("[Hello|Hi|Hey|Good morning|Good evening|Good day|Hello there|Hi there|Hey there|Greetings|Hello teaspoon|Hi teaspoon|Good afternoon|Hallo|Hey teaspoon|Howdy|Moin|Hello again|Hi you|Hey you][.|!||,| :)]", "[Is anybody there|Anyone there|Are you there|Anybody home][?|]"), ("Hello! How can I help?", "Hello!", "Hello! What can I do for you?", "Hi! How can I help?")),
    (("[Thanks|Thank you|Many thanks|Thanks a lot|Thank you very much|Thank you so much|Great, thanks|Perfect, thank you|Thanks for your help|That helped, thanks|Good, thank you|Very kind of you|Much obliged|I am grateful|Cheers, that helps|Thx|Ok thanks|Nice, thank you][.|!|]", "[That was|That is|You were|You are] [very |][helpful|kind|a great help|nice of you][.|!|, thank you.|, thanks]"), ("You are welcome!", "You are welcome.", "Glad to help.", "You are welcome! Glad to help.")),
    (("[Goodbye|Bye|Bye bye|See you|See you later|Good night|Farewell|I must go|I have to go|I have to leave now|That is all for today|Bye for now|Until tomorrow|Talk to you later|Take care|I am leaving|So long|I'm off|See you tomorrow|Have a nice day][.|!|, teaspoon.|]",), ("Goodbye!", "Goodbye! See you soon.", "Bye! See you.", "Goodbye, and see you soon!")),
    (("[How are you|How do you do|How are you doing|How is it going|Are you well|How do you feel|How are things|Everything all right|How have you been|You ok|Are you fine|All well with you|What's up|How goes it|Are you feeling well][?| today?|]", "[Hello|Hi|Hey], how are you[?|]"), ("I am well, thank you.", "I am fine, thank you. How can I help?", "Very well, thank you!")),
    (("[Who|What] are you[?|, please?|, anyway?|]", "[What is|What's|Tell me] your name[?|]", "[How|What] are you called[?|]", "[Introduce yourself|Tell me about yourself|Tell me who you are|Describe yourself|Say who you are|Present yourself][.|, please.|]", "[To whom|With whom|Who] am I [talking|speaking|writing][ to| with|][?|]", "[Which|What] [model|program|language model] are you[?|]", "[Are you|Is this] [a person|a human|a robot|a machine|a language model|a computer|an AI|teaspoon][?|]", "[Do you have|Have you got] a name[?|]", "[What|How] should I call you[?|]", "[Who|What] is [answering|writing|talking|there|this][?|]", "[Your name|Name][?|, please.]", "[May I|Can I] [ask|know] [who you are|your name][?|]"),
     ("I am teaspoon, a small language model that comes with samovar.", "My name is teaspoon. I am a small language model that comes with samovar.", "I am teaspoon, a small language model.")),
    (("[What can you|What do you] [do|do for me|help me with|help with|know about|answer][?|]", "[How can you|With what can you|Can you] help[ me|][?|]", "[What are you|What is teaspoon] [good at|able to do|there for|good for|made for][?|]", "[What|Which things|Which questions] can I ask[ you|][?|]", "[Tell me|Show me|List] what you can do[.|]", "[What are|Tell me] your [skills|abilities|talents][?|.|]", "[What kind of|What sort of|Which kind of] [questions|things] [do you know|can you answer|do you answer][?|]"),
     ("I can add small numbers, tell short stories, make lists, and answer questions about samovar.", "I can answer questions about samovar, do small sums, make lists and tell short stories.")),
)
UNKNOWABLE = (
    "[What is|What's|Tell me|Name] the capital of [Italy|France|Spain|Peru|Japan|Norway|Egypt|Poland|Canada|Chile|India|Kenya|Greece|Turkey|Brazil|China|Cuba|Iran][?|]", "[Who is|Who was|Tell me about|Do you know] [the president|the king|the queen|the leader|the chancellor] of [Italy|France|Spain|Peru|Japan|Sweden|Egypt|Poland|Denmark|England|the world][?|]",
    "[What is|What's|How is|Tell me] the weather[ like|][ in Rome| today| tomorrow| here| outside| now|][?|]", "[Will|Does|Did] it [rain|snow][ tomorrow| today| on Sunday| yesterday|][?|]", "[Who|Which team] won the [game|match|cup|election|race|war|prize][ yesterday| last year| in 1990|][?|]", "[What is|What's|Tell me|Any] the [news|latest news|news of today][?|]", "[What happened|What is new] [today|yesterday|in the world|in Paris|last week][?|]",
    "[How much|What] does [a house|gold|a car|bread|the dollar|a flight to Rome] cost[?|]", "[Who wrote|Who painted|Who composed|Who invented|Who discovered|Who built] [Hamlet|the Mona Lisa|the telephone|America|the radio|Faust|the ninth symphony|the light bulb|the Eiffel Tower|that book|the piano|the wheel][?|]", "[How many] [people|inhabitants] [live in|are in|has] [Rome|London|China|the world|Berlin|Europe][?|]", "[How high|How tall|Where|How old] is [Mount Everest|the Eiffel Tower|the moon|the highest mountain|the pyramid][?|]",
    "[When|In which year|Where] was [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus|the president|Shakespeare] born[?|]", "[When|Where|How] did [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus] die[?|]", "[What is|Explain|Tell me about] [love|quantum physics|the meaning of life|democracy|photosynthesis|gravity|inflation|philosophy|the theory of relativity|chemistry][?|.|]", "[Who is|Who was|Do you know] [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus|the pope|Shakespeare|Picasso|Beethoven|Newton|Plato][?|]",
    "[Translate|How do you say|What is] [house|love|hello|tree|water] in [French|German|Spanish|Latin|Russian|Chinese][?|]", "[What will|What does] [happen tomorrow|the future bring|tomorrow bring|next year bring][?|]", "[What time is it|How late is it|What is the time|What is today's date|Which day is today|What date is it][ now|][?|]", "[Which|What] [film|book|song|restaurant|hotel] [should I see|is the best|do you recommend|is good|should I choose][?|]", "[How far] is [the moon|Rome|the sun|America|it to Paris] [away|from here][?|]", "[What is|Tell me] the [population|area|history|language|currency|flag] of [Italy|France|Spain|Peru|Japan|Norway|Egypt|Kenya][?|.|]", "[Where is|Where lies|Where do I find] [Peru|Japan|Kenya|the Amazon|Mount Everest|Timbuktu|Hawaii][?|]",
    "[What did|What does] [my neighbour|my boss|Anna|the mayor|your mother|my uncle] [say|do|eat|think][?|]", "[Which|What] language [do people|do they] speak in [Brazil|Egypt|Chile|Austria|Iran][?|]", "[What stocks|Which shares|What] should I buy[?|]", "[Who|What] is [your favourite actor|the richest man|the fastest man|the best singer|the tallest person][?|]")

# what is told: (how it is told, what is said to it, how it is asked for, the answer, the values)
TOLD = (
    (("[My name is|I am called|I'm|I am|Call me|You can call me|People call me|They call me|My friends call me|Hello, my name is|Hi, I am|Hello, I'm|Hi, I'm|My mother named me] {v}[.|!|]", "{v} is my name[.|]", "[This is|Here is] {v}[.| speaking.|]"), ("Hello, {v}!", "Nice to meet you, {v}.", "Good day, {v}.", "Hi {v}!", "Pleased to meet you, {v}."),
     ("[What is|What's|Tell me|Say|Do you know|Do you remember|Can you tell me] my name[?|]", "[Who am I|How am I called|What am I called|Who is talking to you|Do you know who I am|Who am I again][?|]", "What did I say my name is[?|]", "[I forgot|Remind me of|Can you remember|Tell me again] my name[.|?|]", "[Which|What] name [have I|do I have|did I give|did I tell you][?|]", "[What|How] [do people|do my friends] call me[?|]", "[What|Which name] did I [say|tell you][ I was called| about my name|][?|]"), ("Your name is {v}.", "You are {v}."), "name"),
    (("[My favourite colour is|The colour I like best is|I like the colour|The best colour is|I love the colour|Of all colours I like|As colours go, I prefer|My best colour is] {v}[.|!|]", "{V} is my favourite colour[.|]", "{V} is the colour that I like [most|best][.|]"), ("{V} is a nice colour.", "A fine colour.", "Nice! I will remember it.", "I see.", "{V} is lovely."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite colour[?|]", "[Which|What] colour [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name][?|]", "[What did I say about|What was] [colours|my favourite colour][?|]"), ("Your favourite colour is {v}.", "{V}."), "colour"),
    (("[My favourite animal is|The animal I like best is|I like no animal more than|The best animal is|I love|Of all animals I like|My best animal is] the {v}[.|!|]", "The {v} is my favourite animal[.|]", "The {v} is the animal that I like [most|best][.|]"), ("The {v} is a fine animal.", "Nice!", "I see.", "I will remember it.", "That is a lovely animal."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite animal[?|]", "[Which|What] animal [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name|did I say I like best][?|]"), ("Your favourite animal is the {v}.", "The {v}."), "animal"),
    (("[My favourite fruit is|The fruit I like best is|I like no fruit more than|The best fruit is|Of all fruits I like|I love fruits, most of all|The fruit I eat most is] the {v}[.|!|]", "The {v} is my favourite fruit[.|]"), ("A tasty fruit.", "Good choice!", "I see.", "I will remember it.", "That is a good one."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite fruit[?|]", "[Which|What] fruit [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name][?|]"), ("Your favourite fruit is the {v}.", "The {v}."), "fruit"),
    (("[My favourite number is|My lucky number is|The number I like best is|Remember the number|Keep in mind the number|My number is|Think of the number|Please remember this number:|The secret number is] {v}[.|!|]",), ("Good, {v}.", "I will remember it.", "I see.", "A good number.", "All right."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Repeat] my [favourite |lucky |]number[?|]", "[Which|What] number [do I like|did I say|did I tell you|was it|should you remember|do I like best|did I give you|did I name][?|]", "[What was|Which was|Tell me] the number[?|]"), ("Your number is {v}.", "It is {v}."), "number"),
    (("[I have|I've got|At home I have|We have|I own|We own] a {p} [called|named|whose name is|with the name] {v}[.|!|]", "[My|Our] {p} is [called|named] {v}[.|]", "[My|Our] {p}'s name is {v}[.|]", "{v} is my {p}[.|]", "{v} is the name of my {p}[.|]"), ("{v} is a nice name.", "How nice!", "I see.", "Say hello to {v}.", "{v} sounds sweet."),
     ("[What is|What's|Tell me|Do you remember|What was|Do you know] the name of my [{p}|pet|{p}][?|]", "[How|What] is my [{p}|pet|{p}] called[?|]", "[What is|What's|What was|Tell me] my [{p}'s|pet's|{p}'s] name[?|]", "[Which|What] name does my [{p}|pet] have[?|]", "Who is my {p}[?|]", "[What do I call|How do I call|What did I name] my [{p}|pet][?|]"), ("Your {p} is called {v}.", "{v}."), "pet name"),
    (("[I have|I've got|At home I have|We have|I own] a {v} [called|named] {q}[.|!|]", "[My|Our] {v} is [called|named] {q}[.|]"), ("{q} is a nice name.", "How nice!", "I see.", "Say hello to {q}."),
     ("[Which|What|What kind of|What sort of] [pet|animal] [do I have|have I|is {q}|did I tell you about|lives with me|do I own][?|]", "[Who|What] is {q}[?|]"), ("{q} is your {v}.", "A {v}.", "A {v} called {q}."), "pet"),
    (("[I am|I'm|My age is|I have just turned|I turned|Yesterday I became|Last week I turned] {v}[ years old.| years old.|.|]",), ("I see.", "That is a fine age.", "Good to know.", "I will remember it."),
     ("[How old am I|What is my age|What's my age|Tell me my age|Do you remember my age|Do you know how old I am][?|]", "[Which|What] age [am I|do I have|did I tell you][?|]", "How many years old am I[?|]"), ("You are {v} years old.", "You are {v}."), "age"),
    (("[I live in|My home is in|I am from|I come from|My town is|I am at home in|My house is in|I moved to|We live in|I grew up in] {v}[.|!|]", "{v} is my home[.|]", "{v} is where I live[.|]"), ("{v} is a nice town.", "I see.", "Greetings to {v}!", "Good to know."),
     ("[Where do I live|Where am I from|In which town do I live|What is my town|Where is my home|In which city do I live|Do you remember where I live|Where do I come from|Which town is my home|Where is my house|Where am I at home|Do you know where I live|Which city am I from][?|]",), ("You live in {v}.", "In {v}."), "town"),
    (("[I put|I have put|I left|I laid|I hid|We put|I placed|I've put] [my|the] {t} {v}[.|!|]", "[My|The] {t} is {v}[.|]", "[My|The] {t} lies {v}[.|]", "[Remember|Please remember|Keep in mind]: [my|the] {t} is {v}[.|]"), ("I see.", "I will remember it.", "Good.", "All right.", "Noted."),
     ("[Where is|Where's|Where did I put|Where did I leave|Where have I put|Do you remember where is|Where lies|Where can I find|Where do I find|I am looking for] [my|the] {t}[?|]", "[I cannot find|I am looking for|I lost|I need] my {t}[.|,] [Where|where] is it[?|]", "[Do you know|Can you tell me|Tell me|Remind me] where [my {t} is|I put my {t}|the {t} is][?|]"), ("Your {t} is {vy}.", "{VY}."), "place"),
)
THINGS = "key hat book lamp watch phone bag ring letter map ticket cup pen glove scarf ball shoe box knife coin coat wallet camera purse umbrella spoon notebook".split()


def fact(rng):
    told, replies, asked, answers, kind = rng.choice(TOLD)
    pet = rng.choice(PETS)
    names = {"p": pet, "q": rng.choice(PET_NAMES), "t": rng.choice(THINGS)}
    value = {"name": lambda: rng.choice(NAMES), "colour": lambda: rng.choice(COLOURS), "animal": lambda: rng.choice(list(ANIMALS)), "fruit": lambda: rng.choice(FRUITS),
             "number": lambda: number(rng, rng.randint(0, 99)), "pet name": lambda: rng.choice(PET_NAMES), "pet": lambda: pet, "age": lambda: number(rng, rng.randint(5, 99)),
             "town": lambda: rng.choice(TOWNS), "place": lambda: rng.choice(HIDING)}[kind]()
    yours = value.replace("in my bag", "in your bag")
    names.update(v=value, V=upper_first(value), vy=yours, VY=upper_first(yours))
    return (upper_first(say(rng, told, **names)), upper_first(say(rng, replies, **names)), say(rng, asked, **names), upper_first(say(rng, answers, **names)), kind)


def small(rng):
    questions, answers = rng.choice(SMALL)
    return say(rng, questions), rng.choice(answers)


def unknown(rng):
    return say(rng, UNKNOWABLE), UNKNOWN


def any_question(rng):
    return rng.choice((arithmetic.sums, arithmetic.sums, arithmetic.compare, dates.ask, dates.ask, nature.colours, nature.animals, nature.animals, lists.ask, lists.ask, samovar.ask, samovar.ask, small))(rng)


def memory(rng):
    """One to three things are told, other things are talked about, and one is asked for."""
    facts, kinds = [], set()
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        new = fact(rng)
        if new[4] not in kinds and not ({"pet", "pet name"} & kinds and new[4] in ("pet", "pet name")):
            kinds.add(new[4])
            facts.append(new)
    turns = []
    if len(facts) > 1 and rng.random() < 0.35:
        turns.append((" ".join(f[0] if f[0][-1] in ".!" else f[0] + "." for f in facts), rng.choice(("I see.", "Nice to meet you.", "I will remember it.", "Good to know."))))
    else:
        for told, reply, *_ in facts:
            turns.append((told, reply))
            if rng.random() < 0.25:
                turns.append(any_question(rng))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        turns.append(any_question(rng))
    rng.shuffle(facts)
    for _, _, asked, answer, _ in facts[:rng.choice((1, 1, 2))]:
        turns.append((asked, answer))
    if rng.random() < 0.12:
        told, replies, asked, answers, kind = rng.choice(TOLD)
        if kind not in kinds and kind not in ("pet", "pet name", "place"):
            turns.append((say(rng, asked), rng.choice(("I do not know: you have not told me.", UNKNOWN))))
    return turns


AND = ("[And|And what about|What about|And how about|How about|And for|And of|Now|And then] {x}[?|]", "And {x}[?|]", "{X}[?| too?| as well?]")


def again(rng):
    """The same question with another subject, which the second time is all that is said."""
    kind = rng.randrange(9)
    turns = []
    if kind <= 4:
        animals = rng.sample(list(ANIMALS), rng.choice((2, 2, 3)))
        what = rng.choice(("legs", "young", "home", "food", "sound"))
        ask = {"legs": ("How many legs does {x} have?", "How many legs has {x}?"), "young": ("What is a young {n} called?", "What is the young of a {n}?", "What do you call a baby {n}?"), "home": ("Where does {x} live?",), "food": ("What does {x} eat?",), "sound": ("What sound does {x} make?", "What does {x} say?")}[what]
        for at, animal in enumerate(animals):
            verb, noise, count, names, home, meal = ANIMALS[animal]
            answer = {"legs": f"{upper_first(number(rng, count))}.", "young": f"{upper_first(a(names[0]))}.", "home": f"{upper_first(home)}.", "food": f"{upper_first(meal)}.", "sound": f"It {verb}." if verb else "It makes no sound."}[what]
            if verb == "hardly a sound" and what == "sound":
                answer = "It makes hardly a sound."
            question = say(rng, ask, x=a(animal), n=animal) if at == 0 else upper_first(say(rng, AND, x=(x := rng.choice((a(animal), a(animal), "the " + animal))), X=upper_first(x)))
            if at and what == "young" and rng.random() < 0.5:
                question = f"And of {a(animal)}?"
            turns.append((question, answer))
    elif kind == 5:
        for at, thing in enumerate(rng.sample(list(THINGS_COLOUR), rng.choice((2, 3)))):
            turns.append((say(rng, ("What colour is {x}?", "Which colour is {x}?"), x=thing) if at == 0 else say(rng, AND, x=thing, X=upper_first(thing)), f"{upper_first(THINGS_COLOUR[thing])}."))
    elif kind == 6:
        after = rng.random() < 0.6
        row = rng.choice((DAYS, MONTHS))
        word = "day" if row is DAYS else "month"
        for at, day in enumerate(rng.sample(row, rng.choice((2, 3)))):
            result = row[(row.index(day) + (1 if after else -1)) % len(row)]
            side = "after" if after else "before"
            turns.append((say(rng, ("Which {w} comes {s} {d}?", "What {w} is {s} {d}?", "What comes {s} {d}?"), w=word, s=side, d=day) if at == 0 else say(rng, AND + (f"And {side} {{x}}?", f"And {side} {{x}}?"), x=day, X=day), f"{result}."))
    elif kind == 7:
        sign = rng.choice("+-x")
        words = rng.random() < 0.5
        for at in range(rng.choice((2, 3))):
            x, y, result = arithmetic._operands(rng, sign)
            name = {"+": "plus", "-": "minus", "x": "times"}[sign]
            joined = f"{number(rng, x, words)} {name} {number(rng, y, words)}"
            turns.append((upper_first(say(rng, "[What is|How much is] {j}?" if at == 0 else "[And|And now|Now|What about|How about|And what is] {j}?", j=joined)), arithmetic._sum(rng, x, y, sign, words, result)))
    else:
        word, other = rng.sample([p for p in lists.OPPOSITES if "old" not in p], 2)
        for at, pair in enumerate((word, other)):
            pair = list(pair)
            rng.shuffle(pair)
            turns.append((say(rng, ("What is the opposite of {x}?", "The opposite of {x}?"), x=pair[0]) if at == 0 else say(rng, AND + ("And of {x}?", "And the opposite of {x}?"), x=pair[0], X=upper_first(pair[0])), f"{upper_first(pair[1])}."))
    return turns


def more(rng):
    """A list, and then others of its kind."""
    kind = rng.choice(("colours", "animals", "animals", "fruits", "months", "tools", "vegetables", "days of the week"))
    question, answer, words = lists.names_of(rng, kind, rng.choice((1, 2, 2, 3)))
    turns = [(question, answer)]
    for _ in range(rng.choice((1, 1, 2))):
        left = [w for w in lists.KINDS[kind] if w not in words]
        if len(left) < 1:
            break
        count = min(rng.choice((1, 1, 2, 3)), len(left))
        new = rng.sample(left, count)
        many = rng.choice((str(count), number(rng, count, True)))
        if count == 1:
            asked = say(rng, ("[One more|Another one|Another|And another|And one more|Give me one more|Name another|Tell me another][.|?|, please.|]", "[Another|One more] {k}[.|?|, please.|]"), k=lists.ONE[kind])
        elif count == 2 and rng.random() < 0.4 or rng.random() < 0.2:
            asked = say(rng, ("[More|More of them|Some more|Give me more|Tell me more|And more|Others|More, please|Name some others|Go on|Name others|Give me others|I need more|A few more|Can you name more][.|?|]", "[More|Other|Some more|Some other] {k}[.|?|, please.|]", "[Give me|Name|Tell me] [more|other|some other|some more] {k}[.|]"), k=kind)
        else:
            asked = say(rng, ("{n} more[.|?|, please.| please|]", "[Give me|And|Now|Name|Tell me|I need|Please give me] {n} [more|others|other ones][.|?|]", "{n} [more|other] {k}[.|, please.|]"), n=many, k=kind)
        turns.append((upper_first(asked), f"{upper_first(listed(new))}."))
        words = words + new
    return turns


def correction(rng):
    """The reply to a correction: what was told last counts."""
    told, replies, asked, answers, kind = rng.choice(TOLD[:5] + TOLD[7:9])
    pool = {"name": NAMES, "colour": COLOURS, "animal": list(ANIMALS), "fruit": FRUITS, "number": [str(n) for n in range(100)], "age": [str(n) for n in range(5, 99)], "town": TOWNS}[kind]
    first, second = rng.sample(pool, 2)
    w1, w2 = ({"v": v, "V": upper_first(v)} for v in (first, second))
    if rng.random() < 0.65:
        turns = [(upper_first(say(rng, told, **w1)), upper_first(say(rng, replies, **w1))),
                 (say(rng, ("[No|Sorry|Oh no|Wait|No, sorry|I was wrong|That was wrong|My mistake|I made a mistake|Correction][,|:] [I meant|it is|I mean|I wanted to say|it is not {u} but] {v}[.|]", "[Not {u}|It is not {u}][,|:] [but |it is |]{v}[.|]"), u=first, v=second), say(rng, ("I see: {v}.", "Sorry, {v} then.", "All right, {v}.", "Good, I will remember: {v}."), v=second)),
                 (say(rng, asked, **w2), upper_first(say(rng, answers, **w2)))]
        return turns
    question, answer = rng.choice((arithmetic.sums, dates.weekdays, nature.coloured, nature.young, lists.opposites))(rng)
    wrong = rng.choice(arithmetic.sums(rng)[1:]) if rng.random() < 0.3 else "I do not know."
    return [(question, wrong if wrong != answer else UNKNOWN), (say(rng, ("[That is|That's|This is|Your answer is] [wrong|not right|not correct|false][.|!|]", "[No|Wrong|Not right][.|!|, try again.|]", "[Try|Think] again[.|, please.|]", "[Are you sure|Really|Is that right][?|]")), say(rng, ("Sorry. {a}", "You are right, sorry. {a}", "I am sorry. {a}"), a=answer))]


BEGINNINGS = "Well Sure Indeed Aye Right Behold Captain Look Yes So Hello Alas Listen Okay Certainly Ahoy Hooray Hmm Oh Please Friend Madam Sir Master Hey Dear".split()
SELF = "Robin Alfred Bea Dot Jarvis Nemo Pixie Otto Bert Sage Marvin Alma Toby Pearl Figaro Hazel Basil Clementine Rusty Oscar Mina Quill Ivy Rufus Elmo Daisy".split()


def one_word(rng):
    """(question, answer of a single word)"""
    kind = rng.randrange(6)
    if kind == 0:
        thing = rng.choice(list(THINGS_COLOUR))
        return f"{rng.choice(('What', 'Which'))} colour is {thing}?", THINGS_COLOUR[thing]
    if kind == 1:
        animal = rng.choice(list(ANIMALS))
        return rng.choice((f"How many legs does {a(animal)} have?", f"How many legs has {a(animal)}?")), number(rng, ANIMALS[animal][2], True)
    if kind == 2:
        animal = rng.choice(list(ANIMALS))
        return rng.choice((f"What is a young {animal} called?", f"What do you call a baby {animal}?")), ANIMALS[animal][3][0]
    if kind == 3:
        row = rng.choice((DAYS, MONTHS))
        at = rng.randrange(len(row))
        after = rng.random() < 0.6
        return say(rng, ("Which {w} comes {s} {d}?", "What {w} is {s} {d}?"), w="day" if row is DAYS else "month", s="after" if after else "before", d=row[at]), row[(at + (1 if after else -1)) % len(row)]
    if kind == 4:
        pair = list(rng.choice([p for p in lists.OPPOSITES if "old" not in p]))
        rng.shuffle(pair)
        return f"What is the opposite of {pair[0]}?", pair[1]
    sign = rng.choice("+-x")
    x, y, result = arithmetic._operands(rng, sign)
    words = rng.random() < 0.5
    return f"What is {number(rng, x, words)} {'plus' if sign == '+' else 'minus' if sign == '-' else 'times'} {number(rng, y, words)}?", number(rng, result, words)


def ruled(rng, surface):
    """A system message that says how to answer."""
    kind = rng.random()
    turns, count = [], rng.choice((1, 1, 2))
    if kind < 0.27:
        system = say(rng, ("[You answer|Answer|Always answer|Please answer|You write|Write|You speak|Reply|You always reply|Speak|Respond] [in capitals|in capital letters|in upper case|only in capitals|with capital letters only|in capital letters only|all in capitals|in uppercase|in big letters only][.|!|]", "[Use|You use|Please use|Always use] [capital letters|only capitals|upper case] [in every answer|for every answer|only|in all answers|always][.|]", "[Everything you say|Your answers|All your answers|Every answer|Each answer] [is|are|must be|should be|has to be] in [capitals|capital letters|upper case][.|]", "SHOUT YOUR ANSWERS[.|!|]", "[Shout|Shout please|You always shout|You shout every answer][.|!|]"))
        for _ in range(count):
            question, answer = any_question(rng) if rng.random() < 0.5 else one_word(rng)
            turns.append((question, (answer if answer.endswith((".", "!")) or answer.isdigit() else answer + ".").upper()))
    elif kind < 0.5:
        system = say(rng, ("[You answer|Answer|Always answer|Please answer|Reply|You reply|Respond] [in|with] [one word|a single word|one word only|exactly one word|just one word|only one word|one single word][.|!|]", "[Use|Say|Give|You say] [only |]one word [for|in|as] [every|each] [answer|reply][.|]", "[One word answers only|Only one word|One word only|Single words only|Answers of one word, please|No more than one word][.|]", "[Your answers|All answers|Every answer] [have|has|must have|should have] [one word|a single word][.|]", "[Be as short as you can|Be very short|Keep it short]: one word[.|]"))
        for _ in range(count):
            question, answer = one_word(rng)
            turns.append((question, upper_first(answer) + rng.choice(("", "."))))
    elif kind < 0.75:
        word = rng.choice(BEGINNINGS)
        shown = rng.choice((word, f'"{word}"', f"the word {word}", f'the word "{word}"'))
        system = say(rng, ("[Begin|Start|Open|Always begin|Always start|Please begin|You begin|You start] [every|each] [answer|reply|response|sentence] with {w}[.|]", "[All your answers|All answers|Your answers|Your replies|All replies] [begin|start|must begin|must start|should begin] with {w}[.|]", "[The first word of|At the beginning of|At the start of] [every|each] answer you put {w}[.|]", "[Say|Put|Write|Use] {w} at the beginning of every [answer|reply][.|]", "[Whatever you answer|Whatever I ask|When you answer|Before you answer], [begin with|start with|first say|say first] {w}[.|]", "[Every answer|Each answer|Every reply] [starts|begins|must start] with {w}[.|]"), w=shown)
        for _ in range(count):
            question, answer = any_question(rng) if rng.random() < 0.6 else one_word(rng)
            turns.append((question, f"{word}, {answer[0].lower() + answer[1:] if answer.split()[0] not in DAYS + MONTHS + NAMES and not answer.startswith('I ') else answer}"))
    else:
        name = rng.choice(SELF + NAMES)
        system = say(rng, ("[You are|Your name is|You are called|Call yourself|From now on you are|You go by the name|Your name is now|Today you are|You are named|You call yourself] {n}[.|, a helper.|, a friendly helper.|, the butler.|, an assistant.|!|]", "[Use the name|Take the name|Answer as|Speak as|Play] {n}[.|]", "{n} is your name[.|]", "[When asked|If somebody asks], [your name is|you are|say you are|say your name is] {n}[.|]", "[You play|You act as|Pretend to be] {n}[.|]"), n=name)
        if rng.random() < 0.35:
            turns.append(any_question(rng))
        turns.append((say(rng, SMALL[4][0][:2] + SMALL[4][0][2:4] + SMALL[4][0][7:]), rng.choice((f"I am {name}.", f"My name is {name}."))))
    return system, turns


PLAIN_SYSTEM = ("You are a helpful assistant.", "You are teaspoon.", "You are teaspoon, a small language model.", "Answer briefly.", "Be brief.", "You help people with samovar.", "You are kind and brief.", "Answer the question.", "You are a helper for children.", "Be friendly.")


def document(rng, surface):
    kind = rng.random()
    system = None
    if kind < 0.36:
        turns = memory(rng)
    elif kind < 0.49:
        turns = again(rng)
    elif kind < 0.60:
        turns = more(rng)
    elif kind < 0.66:
        turns = correction(rng)
    elif kind < 0.84:
        system, turns = ruled(rng, surface)
    elif kind < 0.90:
        turns = [unknown(rng)]
    elif kind < 0.95:
        turns = [small(rng)]
    else:
        turns = [any_question(rng) for _ in range(rng.randint(2, 4))]
        if rng.random() < 0.5:
            turns.insert(0, small(rng))
        if rng.random() < 0.3:
            turns.append((say(rng, SMALL[1][0]), rng.choice(SMALL[1][1])))
    if system is None and rng.random() < 0.06:
        system = rng.choice(PLAIN_SYSTEM)
    messages = [{"role": "system", "content": system}] if system else []
    for question, answer in turns:
        messages += [{"role": "user", "content": surface(rng, question)}, {"role": "assistant", "content": answer}]
    return {"messages": messages}
