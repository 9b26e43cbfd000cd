"""Colours and animals."""
from .phrase import a, listed, number, say, spelled, upper_first
from .words import ANIMALS, COLOURS, FLIERS, MIXES, PLURALS, THINGS_COLOUR, plural

UNKNOWN = "I do not know."
LEGGED = ("no", "_", "two", "_", "four", "_", "six", "_", "eight")


def mixing(rng):
    known = rng.random() < 0.85
    if known:
        pair = list(rng.choice(list(MIXES)))
        result = MIXES[tuple(pair)]
    else:
        while True:
            pair = rng.sample(COLOURS, 2)
            if tuple(pair) not in MIXES and tuple(pair[::-1]) not in MIXES:
                break
        result = None
    rng.shuffle(pair)
    if known and rng.random() < 0.2:
        question = say(rng, ("[How|From what|From which colours] [do I|can I|do you|does one] [make|get|mix|obtain] {r}[?|]",
                             "[Which|What] [two |]colours [make|give|do I mix for|are in|do I need for|must I mix to get] {r}[?|]",
                             "[What|Which colours] [do I|should I|must I] mix to [get|make|obtain|have] {r}[?|]", "{R} is a mix of [which|what] [two |]colours[?|]", "[Of|From] [which|what] [two |]colours is {r} [made|mixed][?|]", "[Which|What] [two |]colours [give|become|turn into|make up|result in] {r}[?|]", "[The recipe for|Recipe for|The way to] {r}[?|, please.|: which colours?]",
                             "[There is no|I have no|I ran out of] {r}[ paint|][.|,] [which|what] [two |]colours [make it|do I mix|can I mix][?|]", "[Name|Tell me] [the |]two colours that make {r}[.|]",
                             "I [need|want|would like] {r}[ paint|], [which|what] [two |]colours [do I mix|should I mix|go together][?|]"), r=result, R=upper_first(result))
        return question, rng.choice((f"{upper_first(pair[0])} and {pair[1]}.", f"Mix {pair[0]} and {pair[1]}.", f"{upper_first(pair[0])} and {pair[1]} make {result}."))
    question = say(rng, (
        "[What|Which] colour [do I get|do you get|comes out|is made|results] [when|if] [I|you|we] mix {a} [and|with] {b}[?|]",
        "[What|Which colour] do {a} and {b} [make|give|become|make together|make when mixed][?|]",
        "[Mixing|If I mix|When I mix|I mix|Mix] {a} [paint |]and {b}[ paint|][?|, what colour?| gives what?|. What colour is it?|, what do I get?|. What do I get?]",
        "[What|Which colour] [is|gives] {a} [mixed with|plus|and|stirred into] {b}[?|]", "{A} [plus|and|with|mixed with] {b}[?| is what colour?| makes?| is?| gives which colour?]",
        "[What happens|What do I get|What colour appears] [when|if] I [put|stir|pour|add|blend] {a} [into|to|with|and] {b}[?|]",
        "[What is|Tell me|Name] the [mix|mixture|blend|combination] of {a} and {b}[?|]", "[Which|What] colour [do I get|do you get|will it be|comes|is it] from {a} [and|with] {b}[?|]", "[Take|Use|I take|I use] {a} and {b}[.|,|:] [which|what] colour [do they make|is the result|do I get][?|]",
        "[Adding|Pouring|Stirring] {a} [to|into] {b}[ gives| makes|][?|...| what?]", "[On my palette|In my paint box|In the pot] {a} [meets|runs into|flows into] {b}[.|,] [which|what] colour [appears|is that|do I see][?|]", "[I mixed|She mixed|We mixed] {a} [with|and] {b}[.|:] [Which|What|which] colour [is it|came out|did it become|is it now][?|]", "The colour [between|out of|from] {a} and {b}[?| is?|, please.]",
        "[Into what|To what] do {a} and {b} [turn|mix|combine|blend][?|]", "[Mix|Blend|Combine] {a} [and|with] {b} for me[.|. Which colour?|: which colour?]", "[Mixing|To mix|Stirring together] {a} and {b} [gives|makes|yields|results in][...| what?|?]", "[If|When] [somebody|one|a child] [puts|stirs|mixes] {a} [into|and|with] {b}[ paint|], [it becomes what|what does it become|what colour is it|the result is][?|]", "[I have|I've got|There is] {a} and {b} paint[.|,] [what|which colour] [can I mix|comes out|do I get from them][?|]", "{A} and {b} [together|mixed|in one pot|on one brush][?| give?| become what?|, what is it?]",
        "A painter [mixes|stirs together|blends] {a} and {b}. [What|Which] colour [does he see|is that|does she get|comes out|is it]?"),
        a=pair[0], A=upper_first(pair[0]), b=pair[1])
    if not known:
        return question, UNKNOWN
    return question, rng.choice((f"{upper_first(result)}.", f"{upper_first(pair[0])} and {pair[1]} make {result}.", f"You get {result}."))


def bare(thing):
    return thing.split(" ", 1)[1] if " " in thing else thing


def coloured(rng):
    thing = rng.choice(list(THINGS_COLOUR))
    colour = THINGS_COLOUR[thing]
    one = thing
    if thing.startswith(("a ", "an ")) and rng.random() < 0.3:
        one = plural(bare(thing))
    are = "are" if one != thing else "is"
    have = "have" if one != thing else "has"
    do = "do" if one != thing else "does"
    if rng.random() < 0.82:
        question = say(rng, (
            "[What|Which] colour {is} {t}[?|]", "[What|Which] colour {do} {t} have[?|]", "[Of what|Of which] colour {is} {t}[?|]",
            "{T} {is} [what|which] colour[?|]", "[What's|What is|Tell me|Name] the colour of {t}[?|]", "[Which|What] colour {has} {t}[?|]",
            "[Do you know|Can you tell me|Tell me|I wonder|Say] [what|which] colour {t} {is}[?|]", "{T}: [which|what] colour[?|]",
            "[I paint|I draw|I am painting|I am drawing|My daughter draws] {t}. [What|Which] colour [do I take|should I use|do I need|is right|does she need]?",
            "[How|In which colour] [do I|should I|would you] paint {t}[?|]", "[I have never seen|I've never seen|I never saw|I don't know] {t}[.|:] [What|Which] colour [is it|has it|does it have|are they]?", "[Think of|Imagine|Picture] {t}[.|:] [What|Which] colour [is it|do you see]?", "[Normally|Usually], [what|which] colour {is} {t}[?|]", "[The|A] colour to [paint|draw] {t}[?|, please.| is?]", "[Which|What] [crayon|pencil|paint] [do I need|do I take|should I take|is right] for {t}[?|]", "[A blind man asks|My child asks|Somebody asks] [what|which] colour {t} {is}[.|?|]",
            "{T}, [what|which] colour[ is that|][?|]", "[If I see|When I look at|Looking at] {t}, [what|which] colour do I see[?|]", "[As for|What about] the colour of {t}[?|]", "[Say|Guess] the colour of {t}[.|]", "{T} {is} coloured [how|in what way][?|]", "[What|Which] colour [would you give|would you call|comes to mind for|belongs to] {t}[?|]", "[The colour of|Colour of] {t}[?|, please.| is?]"), t=one, T=upper_first(one), do=do, has=have, **{"is": are})
        return question, rng.choice((f"{upper_first(colour)}.", f"{upper_first(one)} {are} {colour}.", f"{upper_first(one)} {are} {colour}."))
    if rng.random() < 0.5:
        asked = rng.choice((colour, rng.choice(COLOURS)))
        question = say(rng, ("{Is} {t} {c}[?|]", "Is it true that {t} {is} {c}[?|]", "{T} {is} {c}, [right|correct|isn't it|true]?", "Would you say {t} {is} {c}[?|]"),
                       t=one, T=upper_first(one), c=asked, Is=upper_first(are), **{"is": are})
        return question, (f"Yes, {one} {are} {colour}." if asked == colour else f"No, {one} {are} {colour}.")
    things = [t for t in THINGS_COLOUR if THINGS_COLOUR[t] == colour]
    question = say(rng, ("[Name|Tell me|Give me] [something|a thing|one thing] [that is |which is |]{c}[.|]", "[What is|Which thing is|What thing is] {c}[?|]", "[Something|A thing|Anything] {c}[?|, please.]", "[I am looking for|I need|I want to draw] something {c}[.|. What could it be?|: what?]", "[What|Which thing] in the world is {c}[?|]",
                         "[Do you know|Can you name|Can you think of] [something|a thing] {c}[?|]"), c=colour)
    return question, f"{upper_first(thing)} is {colour}." if len(things) < 9 else ""


def said(rng, animal):
    """One of it, or all of them: the words that a verb needs."""
    if rng.random() < 0.6:
        one = rng.choice((a(animal), a(animal), "the " + animal))
        return one, {"is": "is", "do": "does", "has": "has", "s": "s"}
    return plural(animal), {"is": "are", "do": "do", "has": "have", "s": ""}


def sounds(rng):
    animal = rng.choice(list(ANIMALS))
    verb, noise, *_ = ANIMALS[animal]
    one, w = said(rng, animal)
    if verb and verb != "hardly a sound" and rng.random() < 0.4:
        question = say(rng, ("[Which|What] animal {v}[?|]", "[Who|What] {v}[?|]", "[Name|Tell me] [an animal|the animal|one animal] that {v}[.|]", "It {v}. [What|Which animal|Who] is it[?|]",
                             "[I hear|Outside I hear|We hear] [something|an animal] that {v}[.|,] [which animal|what] is [that|it][?|]", "[An animal that|The animal that] {v} is[?| what?| called?]",
                             "[Which|What] animal is it that {v}[?|]",
                             "[There is|I have|My neighbour has] an animal[.|, and] it {v}[.|:] [What is it|Which animal is it]?", "[Something|Somebody] {v} [in the dark|outside|at night|behind the house][.|:] [Which animal|What] is it[?|]",
                             "[The one|The animal] that {v}[?| is?|: which animal?]", "[Guess|Say] [which animal|what animal|who] {v}[.|]", "[From which animal|Which animal] does one hear {n}[?|]" if noise else "[What|Who] {v}[?|]"), v=verb, n=noise)
        return question, rng.choice((f"{upper_first(a(animal))}.", f"{upper_first(a(animal))} {verb}.", f"The {animal}."))
    question = say(rng, (
        "[What|Which] [sound|noise] {do} {t} make[?|]", "What {do} {t} say[?|]", "How {do} {t} sound[?|]",
        "[What is|What's|Tell me|Name] the [sound|noise] of {t}[?|]", "[What|Which] [noise|sound] {is} {t} [known for|making][?|]",
        "[When|If] {t} make{s} a [sound|noise], what is it[?|]", "{T} make{s} [what|which] [sound|noise][?|]", "[Describe|Tell me] the [sound|noise] that {t} make{s}[.|]",
        "[What|Which sound] comes out of {t}[?|]", "What {do} {t} do to [make a noise|be heard|make a sound|call][?|]", "How {do} {t} [make itself heard|call|speak|talk][?|]" if w["s"] else "How do {t} [call|speak|talk][?|]", "[I heard|We heard|There is] {t}[.|,|:] [what|which] [sound|noise] was it[?|]" if w["s"] else "What sound comes from {t}[?|]", "[With what sound|How] {do} {t} [greet|answer|call out|cry][?|]", "[The|A] [sound|noise|cry|voice] of {t}[?|, please.| is?| is what?]", "[What|Which] [sound|noise] [comes from|do I hear from|does one hear from|would I hear from] {t}[?|]", "{T} open{s} [its|the] mouth[.|:] [what|which sound] [do I hear|comes out][?|]" if w["s"] else "[What|Which] noise do {t} make[?|]",
        "[What is|What's] [the verb for the sound of|the word for the sound of] {t}[?|]", "What {do} {t} do when it wants to be heard[?|]" if w["s"] else "What do {t} do to be heard[?|]", "[Make|Do|Imitate] [the sound|the noise] of {t}[.|]"), t=one, T=upper_first(one), **w)
    if verb is None:
        return question, f"{upper_first(a(animal)) if PLURALS.get(animal) != animal else 'A ' + animal} makes no sound."
    if verb == "hardly a sound":
        return question, "A rabbit makes hardly a sound."
    return question, rng.choice((f"It {verb}.", f"{upper_first(a(animal))} {verb}.", f"{upper_first(a(animal))} {verb}: {noise}!"))


def legs(rng):
    animal = rng.choice(list(ANIMALS))
    count = ANIMALS[animal][2]
    one, w = said(rng, animal)
    if rng.random() < 0.15:
        b = rng.choice(list(ANIMALS))
        if ANIMALS[b][2] != count:
            more = rng.random() < 0.6
            question = say(rng, "[Which|Who|What] has {h} legs, {x} or {y}[?|]", h="more" if more else "fewer", x=a(animal), y=a(b))
            winner = animal if (count > ANIMALS[b][2]) == more else b
            return question, f"{upper_first(a(winner))}."
    question = say(rng, ("How many legs {do} {t} have[?|]", "How many legs {has} {t}[?|]", "[What is|Tell me|Give me] the number of legs of {t}[?|.|]", "{T} {has} how many legs[?|]",
                         "On how many legs {do} {t} [walk|stand|go][?|]", "[Count|Tell me about] the legs of {t}[.|]", "Legs of {t}[?|, how many?|: how many?]",
                         "How many [feet|legs] [are there on|can I count on|do I see on|belong to] {t}[?|]", "[Do you know|Can you tell me|I forgot|Tell me] how many legs {t} {has}[?|]", "[I draw|I am drawing|I want to draw] {t}[.|:|,] [How|how] many legs [must it have|do I draw|does it need][?|]", "How many shoes would {t} need[?|]", "[The number of legs|Number of legs|How many legs] of {t}[?|, please.]", "{T}: how many legs[?|]", "[What|Which] number of legs {do} {t} have[?|]", "How many legs [carry|support] {t}[?|]",
                         "[Does it have four or six|Two, four, six or eight|Six or eight] legs[:|,] {t}[?|]", "[Legs|Legs and more legs]: how many {do} {t} have[?|]", "How [many-legged|leggy] {is} {t}[?|]"),
                   t=one, T=upper_first(one), **w)
    if count != 4 and rng.random() < 0.3:
        alike = [x for x in ANIMALS if ANIMALS[x][2] == count]
        question = say(rng, ("[Which|What] animal has {n} legs[?|]", "[Name|Tell me|Give me] an animal with {n} legs[.|]", "[Who|What] has {n} legs[?|]", "[Which|What] animal [walks on|goes on|stands on|is the one with] {n} legs[?|]" if count else "[Which|What] animal is without legs[?|]",
                             "[I see|I found|There is] an animal with {n} legs[.|,] [which one|what] [is it|could it be][?|]", "An animal with {n} legs[?| is?|: which one?]"), n=LEGGED[count])
        return question, f"{upper_first(a(rng.choice(alike)))}."
    if not count:
        return question, rng.choice(("None, it has no legs: zero.", f"{upper_first(a(animal))} has no legs, zero."))
    return question, rng.choice((f"{upper_first(spelled(count))}.", f"{upper_first(a(animal))} has {number(rng, count)} legs.", f"{upper_first(a(animal))} has {spelled(count)} legs."))


def young(rng):
    animal = rng.choice(list(ANIMALS))
    names = ANIMALS[animal][3]
    if rng.random() < 0.3 and names[0] not in ("larva", "cub", "pup", "kitten"):
        name = rng.choice(names)
        question = say(rng, ("[What|Which animal|What animal] does {n} [become|grow into|turn into|grow up to be][?|]", "{N} is a young what[?|]", "[Which|What] animal is called {n} when it is [young|little|small][?|]", "{N}[: which animal is it?| is the young of what?| is the baby of which animal?|, and grown up?]", "[Whose|Which animal's] [child|young|baby] is {n}[?|]", "[When it grows up|Later|Grown up], what is {n}[?|]", "[Which|What] animal has {n} [as its young|as a baby|for a child][?|]", "Of which animal is {n} the young[?|]",
                             "[What is|Who is] the [parent|mother|father] of {n}[?|]", "{N} [grows up|gets older|is grown]. [What|Which animal] is it [then|now][?|]"), n=a(name), N=upper_first(a(name)))
        return question, f"{upper_first(a(animal))}."
    question = say(rng, ("[What is|What's] [a young|a baby|the young of a|the baby of a|the child of a] {t}[ called|][?|]", "[What|How] do [you|we|people] call [a young|a baby|the young of a|a little|a newborn] {t}[?|]",
                         "[What is|What's|Tell me|Name] the [name|word|term] for [a young|a baby|the young of a|the baby of a] {t}[?|]", "[A young|A baby|A little|A newborn] {t} is [called what|called|a][?|]",
                         "[The young|The baby|The child] of [a|the] {t} is [called|named|a][?| what?]", "[My|Our|The] {t} [had|has|got] [a baby|young ones|little ones]. [What are they called|What is it called|How are they called]?",
                         "[Which word means|What is the right word for] [a young|a baby] {t}[?|]", "[Young|Baby|Little] {t}: [name|what is it called|the word][?|, please.]", "[Which|What] is the young of [a|the] {t}[?|]", "[A|The] {t} has a young one[.|:|,] [What|what] is it called[?|]", "[A|The] mother {t} and her what?", "[What|Which] [word|name] do I use for [a young|a baby|a little] {t}[?|]", "[The|A] baby {t} [is|is called|has which name][?| what?]", "[If|When] a {t} has [a baby|young], what is it called[?|]", "[Tell me|I forgot|Do you know] [what a young {t} is called|the word for a baby {t}|the name of a young {t}][.|?|]",
                         "[The little one|The offspring|The baby|The young] of [a|the] {t}[?|, please.| is?| is what?]", "[What|Which animal child] is born to [a|the] {t}[?|]", "[What does|What would] a {t} [give birth to|raise|have as a child][?|]", "[How|What] [is|are] [the young|the offspring|the babies|the little ones] of [a|the] {t} called[?|]"), t=animal)
    question = question.replace(" a owl", " an owl").replace(" a ant", " an ant").replace("A owl", "An owl").replace("A ant", "An ant")
    name = " or ".join(names) if len(names) > 1 and rng.random() < 0.5 else names[0]
    return question, rng.choice((f"{upper_first(a(name))}.", f"A young {animal} is called {a(name)}."))


def homes(rng):
    animal = rng.choice(list(ANIMALS))
    home = ANIMALS[animal][4]
    one, w = said(rng, animal)
    if rng.random() < 0.2:
        inside = [x for x in ANIMALS if ANIMALS[x][4] == home]
        question = say(rng, ("[Who|Which animal|What animal|What] lives {h}[?|]", "[Name|Tell me] [an animal|one animal] that lives {h}[.|]", "[What|Which animal] [has its home|is at home] {h}[?|]", "[What|Who|Which animal] [can I find|do I find|would I see|sleeps|spends the night] {h}[?|]", "[I look|I am] {h}[.|:] [Which|What] animal do I [see|find|meet][?|]", "[Which|What] animal [belongs|is found|is to be found|has its place] {h}[?|]"), h=home)
        return question, f"{upper_first(a(rng.choice(inside)))}."
    question = say(rng, ("Where {do} {t} live[?|]", "[Where|In what place] {do} {t} [sleep|live|stay][?|]", "[What is|Tell me] the home of {t}[?|]", "Where [can I find|do I find|would I find|should I look for|is the home of] {t}[?|]",
                         "{T} live{s} [where|in what place][?|]", "[The|A] home of {t}[?|, please.| is?| is where?]", "[What|Which place] is home [for|to] {t}[?|]", "Where {do} {t} [feel at home|rest|hide|have its home|stay at night][?|]" if w["s"] else "Where do {t} [rest|hide|feel at home][?|]", "[I lost|I miss|Have you seen] {t}[.|:|?] Where should I look[?|]", "{T}: where {do} it live[?|]" if w["s"] else "{T}: where do they live[?|]", "Where {is} {t} at home[?|]", "[In which place|In what kind of home] {do} {t} live[?|]", "{T} sleep{s} [where|in what place][?|]", "Where {do} {t} [go to sleep|go home to|spend the night|belong][?|]", "[I look for|I am looking for|I want to see] {t}[.|,|:] [Where|where] [should I look|do I go|do I find one][?|]", "[What|Which place] {do} {t} call home[?|]", "[Where does one|Where do you] [keep|see|meet|find] {t}[?|]"), t=one, T=upper_first(one), **w)
    return question, rng.choice((f"{upper_first(home)}.", f"{upper_first(a(animal))} lives {home}."))


def food(rng):
    animal = rng.choice(list(ANIMALS))
    meal = ANIMALS[animal][5]
    one, w = said(rng, animal)
    question = say(rng, ("What {do} {t} eat[?|]", "[What is|What's|Tell me] the food of {t}[?|]", "[What|Which food] {do} {t} [like to eat|like|feed on|live on|eat most|need][?|]", "{T} eat{s} what[?|]",
                         "[What|Which food] [do I|should I|can I|does one] [give|feed|offer] [to |]{t}[?|]", "What [do you|does one|do people] feed {t}[ with|][?|]", "[I have|I want to feed] {t}. What [do I give it|does it eat|should it eat]?" if w["s"] else "What {do} {t} eat[?|]",
                         "[On what|From what] {do} {t} live[?|]", "[What|Which food] {is} {t} [fond of|fed with|looking for][?|]", "[The|A] [meal|favourite food|dinner|breakfast] of {t}[?|, please.| is?]", "[With what|On what] [do I|can I|should I] feed {t}[?|]", "{T}[: what food?|: what to feed?|, what food?]", "What [goes into|fills] the stomach of {t}[?|]", "[What|Which food] [would|should|will] {t} [eat|choose|want][?|]", "[Tell me|Say|Do you know] what {t} eat{s}[.|?|]", "[What|Which food] makes {t} happy[?|]", "{T} is hungry[.|:|,] [What|what] {do} it [want|get|eat][?|]" if w["s"] else "Hungry {t} eat what[?|]", "[Food for|The food of] {t}[?|, please.]", "[What is for dinner|What is on the menu|What is dinner] for {t}[?|]"), t=one, T=upper_first(one), **w)
    return question, rng.choice((f"{upper_first(meal)}.", f"It eats {meal}." if w["s"] else f"They eat {meal}.", f"{upper_first(a(animal))} eats {meal}."))


def flying(rng):
    animal = rng.choice(list(ANIMALS))
    one, w = said(rng, animal)
    question = say(rng, ("Can {t} fly[?|]", "{Do} {t} fly[?|]", "Is it true that {t} can fly[?|]", "{T} can fly, [right|true|correct|can't it]?", "{Is} {t} able to fly[?|]"), t=one, T=upper_first(one), Is=upper_first(w["is"]), Do=upper_first(w["do"]))
    if animal == "hen":
        return question, "Yes, a little."
    return question, f"Yes, {one} can fly." if animal in FLIERS else f"No, {one} cannot fly."


def question_of_both(rng):
    """The same fact, asked as yes or no."""
    animal = rng.choice(list(ANIMALS))
    verb, _, count, names, home, meal = ANIMALS[animal]
    other = rng.choice(list(ANIMALS))
    kind = rng.choice(("legs", "home", "food"))
    truth = rng.random() < 0.5
    source = ANIMALS[animal] if truth else ANIMALS[other]
    at = {"legs": 2, "home": 4, "food": 5}[kind]
    truth = source[at] == ANIMALS[animal][at]
    value = source[at]
    x = a(animal)
    if kind == "legs":
        return say(rng, "[Does {x} have|Has {x} got] {v} legs[?|]", x=x, v=LEGGED[value]), f"{'Yes' if truth else 'No'}, {x} has {LEGGED[count]} legs."
    if kind == "home":
        return say(rng, "[Does {x} live|Do you find {x}|Is {x} at home] {v}[?|]", x=x, v=value), f"{'Yes' if truth else 'No'}, {x} lives {home}."
    return say(rng, "[Does {x} eat|Does {x} like] {v}[?|]", x=x, v=value), f"{'Yes' if truth else 'No'}, {x} eats {meal}."


def statement(rng):
    """The facts as a text tells them."""
    animal = rng.choice(list(ANIMALS))
    verb, noise, count, names, home, meal = ANIMALS[animal]
    x = a(animal)
    lines = [f"{upper_first(x)} has {LEGGED[count]} legs.", f"{upper_first(x)} lives {home}.", f"{upper_first(x)} eats {meal}.", f"A young {animal} is called {a(names[0])}."]
    if verb and noise:
        lines.append(f"{upper_first(x)} {verb}.")
    rng.shuffle(lines)
    return " ".join(lines[:rng.randint(2, 5)])


def colours(rng):
    return rng.choice((mixing, mixing, coloured, coloured, coloured))(rng)


def animals(rng):
    return rng.choice((sounds, sounds, legs, legs, young, young, homes, homes, food, food, flying, question_of_both))(rng)


def told(rng):
    lines = [statement(rng) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.4:
        thing = rng.choice(list(THINGS_COLOUR))
        lines.append(f"{upper_first(thing)} is {THINGS_COLOUR[thing]}.")
    if rng.random() < 0.3:
        pair, result = rng.choice(list(MIXES.items()))
        lines.append(f"{upper_first(listed(pair))} make {result}.")
    return " ".join(lines)
