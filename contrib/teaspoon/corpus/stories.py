"""Stories: told when asked for, told as texts, and told with a question after them."""
from . import wide
from .phrase import a, listed, say, upper_first
from .words import ANIMALS, CHARACTER, COLOURS, NAMES, PLACES, STORY_THINGS, THINGS_COLOUR

BEINGS = list(ANIMALS) + ["fox", "hedgehog", "squirrel", "goat", "donkey", "goose", "swan", "stork", "badger", "beaver"]
MORE_BEINGS = "tiger monkey penguin elephant giraffe turtle parrot dolphin whale dragon giant witch king queen robot pirate knight princess wizard camel zebra crow raven hare deer mole lizard snail dwarf ghost baker fisherman miller sailor".split()
FINDS = ("found", "saw", "discovered", "came upon", "noticed")
TROUBLE = {
    "lantern": ("It was dark, and nobody could see the way.", "{Hero} lit the {t}, and its light showed the path."),
    "boat": ("The water was deep, and there was no bridge.", "{Hero} got into the {t} and rowed to the other side."),
    "key": ("The little door was locked, and it was cold outside.", "{Hero} put the {t} into the lock, and the door opened."),
    "kite": ("The wind was strong, and everybody stayed at home.", "{Hero} let the {t} fly, and it danced high in the sky."),
    "drum": ("It was a sad and quiet day.", "{Hero} beat the {t}, and soon everybody danced."),
    "hat": ("The sun was hot, and there was no tree.", "{Hero} put on the {t} and had shade all day."),
    "map": ("Nobody knew the way home.", "{Hero} looked at the {t} and found the right path."),
    "bell": ("A thick mist came, and the friends lost each other.", "{Hero} rang the {t} until all of them came back."),
    "basket": ("There were more berries than two hands can carry.", "{Hero} filled the {t} and carried them home."),
    "ladder": ("The sweetest pears hung high in the tree.", "{Hero} climbed the {t} and picked them all."),
    "kettle": ("It rained, and everybody was cold.", "{Hero} put the {t} on the fire and made tea for all."),
    "coin": ("There was no bread in the house.", "{Hero} took the {t} to the market and bought a warm loaf."),
}
# For things of which no trouble is known.
ANY_TROUBLE = (("Nobody knew whose it was.", "{Hero} kept the {t} and took good care of it."), ("It was dirty and lay in the mud.",
    "{Hero} washed the {t} until it shone."), ("A poor man had lost it.", "{Hero} gave the {t} back to him, and he was glad."),
               ("It was broken.", "{Hero} mended the {t} with some string."), ("It looked old, but it was full of magic.",
                   "{Hero} touched the {t} and made a wish."), ("A thief wanted to have it.", "{Hero} hid the {t} under a stone."),
                   ("Everybody wanted to see it.", "{Hero} showed the {t} to all the others."))
ENDS = ("That night {hero} slept well.", "From that day on, they were friends.", "{Hero} went home happy.", "And so the day ended well.",
    "Everybody laughed and was glad.",
        "{Hero} never forgot that day.", "Then the moon rose, and all was quiet.", "In the evening {hero} told everyone about it.",
            "It was the best day of the year.", "And {hero} smiled.")


def the(being):
    return being if being in NAMES or being[0].isupper() else "the " + being


def tale(rng, beings, thing, second=None, place=None):
    """Three to six sentences in which all of them occur."""
    first = beings[0]
    place = place or rng.choice(PLACES)
    trait = rng.choice(CHARACTER)
    named = first[0].isupper()
    hero, Hero = the(first), upper_first(the(first))
    lines = []
    if named:
        lines.append(say(rng, ("{h} lived {p}.", "Once there was a {c} child called {h}, who lived {p}.", "One day {h} went for a walk {p}.",
            "{h} was {c} and lived {p}."), h=first, p=place, c=trait))
    else:
        lines.append(say(rng, ("Once there was {ca} {h} who lived {p}.", "{Ca} {h} lived {p}.", "Once upon a time {ca} {h} lived {p}.",
            "There was once {ca} {h} {p}."), ca=a(trait), Ca=upper_first(a(trait)), h=first, p=place))
    friend = None
    if len(beings) > 1:
        friend = the(beings[1])
        new = beings[1] if beings[1][0].isupper() else a(beings[1])
        lines.append(say(rng, ("There {h} met {f}.", "One morning {f} came to visit.", "{H}'s best friend was {f}.", "One day {h} met {f}, who was {c}."),
            h=hero, H=Hero, f=new, c=rng.choice(CHARACTER)))
    adjective = rng.choice(("old", "small", "red", "golden", "little", "new", "blue", "shiny"))
    if thing:
        lines.append(say(rng, ("One day {h} {v} {t}.", "Under a tree {h} {v} {t}.", "{When} {h} {v} {t}."), h=hero, v=rng.choice(FINDS),
            t=a(f"{adjective} {thing}"), When=rng.choice(("In the morning", "One evening", "On the way", "At noon"))))
        if second:
            lines.append(say(rng, ("Next to it lay {t}.", "Beside it was {t}.", "{F} had brought {t}."), t=a(second), F=upper_first(friend or "a neighbour")))
        need, help_ = TROUBLE[thing] if thing in TROUBLE else rng.choice(ANY_TROUBLE)
        if rng.random() < 0.8:
            lines.append(need)
        lines.append(help_.format(Hero=Hero if not friend or rng.random() < 0.6 else upper_first(friend), t=thing))
    else:
        lines.append(say(rng, ("{H} looked for something to eat.", "{H} wanted to see the world.", "{H} could not sleep."), H=Hero))
        lines.append(say(rng, ("A {c} wind blew, and {h} went home again.", "After a long walk {h} came to a warm house.",
            "Then {h} heard music and began to dance."), h=hero, c=rng.choice(("cold", "soft", "strong"))))
    if len(lines) < 6:
        lines.append(say(rng, ENDS, hero=hero, Hero=Hero))
    return " ".join(lines)


def cast(rng):
    count = 1 if rng.random() < 0.6 else 2
    beings = []
    while len(beings) < count:
        new = (rng.choice(BEINGS) if rng.random() < 0.85 else rng.choice(MORE_BEINGS)) if rng.random() < 0.6 else wide.name(rng)
        if new not in beings:
            beings.append(new)
    return beings


def called(being):
    return being if being[0].isupper() else a(being)


MORE_WISHES = (
    "[story|tale|a story|short story|bedtime story|story please][:| -|,] {w}[.|]",
        "[Once upon a time there was|There once was|Once there was] {w}[. Go on.| ... How does it go on?|: tell me more.| - go on with the story.]",
        "[I'm in the mood for|I long for|It is time for|I am waiting for] [a story|a tale|a little story] [about|with|of] {w}[.|!|]",
    "[Can anybody|Can someone|Will you|Would you] tell a story [about|with] {w}[?|]",
        "[Entertain|Surprise|Delight|Amuse|Please] me with [a story|a tale|a little story] [about|of] {w}[.|!|]",
        "[Let|Make] {w} [appear|occur|meet|play a part] in a [story|tale|short story][.|, please.|]",
        "[What|How] about {w}: [could that be a story|can you make it a story|a story, please][?|]",
    "[Write|Tell|Invent|Compose|Create|Give] [me |us |]a [few sentences|story of four sentences|story in five sentences|small story|mini story|fairy tale|nice little tale] [about|with] {w}[.|, please.|]",
        "[We are going to bed|It is bedtime|The children cannot sleep|I cannot sleep|It rains outside]. [Tell us|Tell me|Please tell|We need] a story [about|with] {w}[.|!|]",
    "[The story should|Your story should|The tale must|It should] [be about|tell of|deal with|contain|have] {w}[.|]",
        "[My friend|My sister|Grandma|The teacher|My class] [likes|loves|wants|asks for] stories [about|with] {w}[. Tell one.|: tell one, please.|. Do you know one?]",
        "[I need|I have to write|For school I need] [a story|a text|a tale] [in which there is|with|about] {w}[. Help me.|, can you help?|.|]",
    "[Tell|Write] [me |]something about {w}, [a story|as a story|in a story][.|, please.|]", "[One|Another] story[, please,| please|] [about|with] {w}[.|!|]",
        "{W} [in one story|in a story|in a fairy tale][, please.|: go!|.|]",
        "[May|Could|Can] [I|we] [have|hear|get] a [story|tale|little story] [about|with] {w}[?|, please?|]")


def wanted(rng):
    beings = cast(rng)
    thing = (rng.choice(STORY_THINGS) if rng.random() < 0.75 else rng.choice([t for t in wide.OBJECTS if t not in wide.PLURAL_ONLY])) if rng.random() < 0.85 else None
    second = rng.choice([t for t in STORY_THINGS if t != thing]) if thing and rng.random() < 0.08 else None
    if rng.random() < 0.04 and thing:
        # Only a thing is named.
        parts, beings = [a(thing)], [rng.choice(BEINGS)]
        second = None
    else:
        parts = [called(b) for b in beings] + ([rng.choice((a(thing), a(thing), "the " + thing))] if thing else []) + ([a(second)] if second else [])
        if rng.random() < 0.04:
            parts = ["the " + p[p.index(" ") + 1:] if p[:2] in ("a ", "an") and " " in p else p for p in parts]
    if rng.random() < 0.25:
        rng.shuffle(parts)
    place = rng.choice(PLACES) if rng.random() < 0.06 else None
    short = "[|short |little |small |nice |funny |tiny |new |bedtime |good ]"
    question = say(rng,
        ("[Tell|Please tell|Can you tell|Could you tell|Would you tell] [me |us |]a " + short + "[story|tale] [about|with|of] {w}[.|?|, please.|]",
        "[Write|Please write|Can you write|Make up|Invent|Think of] [me |]a " + short + "[story|tale] [about|with|in which there is] {w}[.|?|, please.|]",
                         "[I want|I would like|I'd like|I'd love|Give me|I need|Let me hear|We want|Let us hear] a " + short + "[story|tale] [about|with] {w}[.|, please.|]",
                             "A " + short + "[story|tale] [about|with|of] {w}[.|, please.|?|]", "[Story|Tale] about {w}[.|, please.|]",
                             "[What can you tell me|What happens in a story|Do you know a story|Have you got a story] about {w}[?|]",
                             "[There should be|It must have] {w} in it: [tell me|write] a " + short + "story[.|]",
                         "[My daughter|My son|The child|Our little one] wants a story [about|with] {w}[.|]",
                             "[Once more a story|Another story|Now a story], [this time|now] [about|with] {w}[.|]",
                             "{W}[:|.] [make a story of it|tell me a story about that|write a story][.|]",
                             "A " + short + "[story|tale] [about|with] {w} would be [nice|lovely|good|great][.|]",
                             "[Can|Could|Will] you [tell|make up|write] a " + short + "[story|tale] [with|about|in which we meet] {w}[?|]",
                             "[How about|What about|Let's have|I feel like] a " + short + "story [with|about] {w}[?|.|]",
                             "[Put|Use] {w} [in|into] a " + short + "story[.|]") + MORE_WISHES, w=listed(parts), W=upper_first(listed(parts)))
    if place:
        question = question.rstrip(".?!").removesuffix(", please") + say(rng, "[ that happens {p}| {p}|, and it happens {p}|, {p}][.|?|]", p=place)
    return question, tale(rng, beings, thing, second, place)


# A told scene: (the text, [(questions, answer)]) with names filled in.
def scene(rng):
    p = wide.name(rng) if rng.random() < 0.5 else None
    animal, animal2 = rng.sample(BEINGS, 2)
    q = next(n for n in wide.names(rng, 2) if n != p)
    who = p or "the " + animal
    Who = upper_first(who) if p or rng.random() < 0.8 else upper_first(a(animal))
    other = q if rng.random() < 0.5 else "the " + animal2
    thing, thing2 = rng.sample(STORY_THINGS + ["book", "ball", "cup", "spoon", "apple", "flute", "rope", "shell", "feather", "scarf", "umbrella", "clock",
        "ring", "stone", "egg", "letter"], 2) if rng.random() < 0.4 else wide.things(rng, 2)
    colour, colour2 = rng.sample(COLOURS, 2)
    spots = ("forest river hill town garden market lake mill island valley bridge harbour barn school castle station bakery library well beach field cellar kitchen tower tent cave").split()
    spot, spot2 = rng.sample(spots, 2)
    prep = {"river": "at", "hill": "on", "market": "at", "lake": "at", "island": "on", "bridge": "on", "harbour": "at", "station": "at", "well": "at",
        "beach": "on", "field": "on"}
    at, at2 = f"{prep.get(spot, 'in')} the {spot}", f"{prep.get(spot2, 'in')} the {spot2}"
    verb, past = rng.choice((("find", "found"), ("lose", "lost"), ("see", "saw"), ("buy", "bought"), ("hide", "hid"), ("carry", "carried"), ("bring",
        "brought"), ("drop", "dropped"), ("pick up", "picked up")))
    give = rng.choice((("gave it to", "get"), ("brought it to", "get"), ("sold it to", "get"), ("showed it to", "see")))
    facts = [
        (f"{Who} {past} {a(colour + ' ' + thing)} {at}.", [
            (("What did {w} {v}[?|]", "[Which thing|What thing|What] was it that {w} {p}[?|]"), f"{upper_first(a(thing))}."),
            (("Where did {w} {v} [the {t}|it][?|]", "[Where|In what place] was the {t}[?|]", "[Where|In which place] did it happen[?|]"), f"{upper_first(at)}."),
            (("[What|Which] colour was the {t}[?|]", "[What|Which] colour did the {t} have[?|]", "[Of what colour|Of which colour] was the {t}[?|]"),
                f"{upper_first(colour)}."),
            (("Who {p} [the {t}|a {t}|it|something][?|]",), f"{upper_first(who)}.")])]
    if rng.random() < 0.75:
        facts.append((f"{rng.choice(('Then', 'Later', 'In the evening', 'After that', 'The next day'))} {rng.choice(('he', 'she')) if p else 'it'} {give[0]} {other}.",
            [
            (("Who got [the {t}|it] [then|in the end|at last|][?|]", "[To whom|Who] did {w} [give|bring] [it|the {t}][?| to?]",
                "Who has the {t} [now|in the end][?|]") if give[1] == "get" else ("Who saw the {t}[ too| then|][?|]",
                "[To whom|Whom] did {w} show the {t}[?|]"), f"{upper_first(other)}.")]))
    if rng.random() < 0.6:
        act = rng.choice(("slept", "danced", "sang", "waited", "worked", "played", "cooked soup", "read", "laughed", "cried", "jumped", "swam"))
        third = next(x for x in wide.names(rng, 3) if x not in (p, q)) if rng.random() < 0.5 else "the " + rng.choice([x for x in BEINGS if x not in (animal,
            animal2)])
        fact = (f"{upper_first(third)} {act} {at2}.", [
            (("Who {a}[ there| {at}|][?|]", "Who was it that {a}[?|]"), f"{upper_first(third)}."),
            (("Where did {x} do that[?|]", "Where was {x}[?|]"), f"{upper_first(at2)}."),
            (("What did {x} do[?|]",), f"{upper_first(third)} {act}.")])
        facts.insert(rng.choice((0, len(facts))) if len(facts) == 1 else len(facts), fact)
        names = {"a": act, "x": third, "at": at2}
    else:
        names = {}
    if rng.random() < 0.3:
        other_thing = f"{upper_first(a(thing2))} was there too, and it was {colour2}."
        facts.append((other_thing, [(("[What|Which] colour was the {t2}[?|]", "[What|Which] colour did the {t2} have[?|]"), f"{upper_first(colour2)}.")]))
    text = " ".join(fact[0] for fact in facts)
    asked = [pair for fact in facts for pair in fact[1]]
    questions, answer = rng.choice(asked)
    question = say(rng, questions, w=who, v=verb, p=past, t=thing, t2=thing2, **names)
    return text, question, answer


MOVES = (("danced", "dance"), ("slept", "sleep"), ("sang", "sing"), ("swam", "swim"), ("laughed", "laugh"), ("ran away", "run away"), ("jumped", "jump"),
    ("waited", "wait"), ("cried", "cry"), ("hid", "hide"), ("fell down", "fall down"), ("came out", "come out"), ("went home", "go home"), ("won", "win"),
    ("woke up", "wake up"), ("sat down", "sit down"))
HOLDS = (("beat", "drum"), ("wore", "hat"), ("rang", "bell"), ("lit", "lantern"), ("flew", "kite"), ("filled", "basket"), ("climbed", "ladder"), ("opened",
    "box"), ("read", "map"), ("rowed", "boat"), ("painted", "door"), ("ate", "apple"), ("baked", "cake"), ("built", "house"), ("wrote", "letter"), ("bought",
    "book"), ("broke", "cup"), ("washed", "shirt"), ("found", "coin"), ("lost", "key"), ("saw", "star"), ("carried", "stone"), ("drew", "picture"), ("mended",
    "chair"))
SPOTS = "at the bridge,in the garden,on the hill,by the river,at the market,in the kitchen,in the forest,on the beach,at school,in the barn,near the mill,at the lake,in the tower,on the roof,under a tree,behind the house,at the station,in the street".split(",")


def two(rng):
    """Two act; who did what, with which thing, where?"""
    pool = wide.names(rng, 2) + ["the " + b for b in rng.sample(BEINGS, 2)]
    first, second = rng.sample(pool, 2)
    (did, thing), (past, verb) = rng.choice(HOLDS), rng.choice(MOVES)
    colour, spot = rng.choice(COLOURS), rng.choice(SPOTS)
    (did2, thing2), other = rng.choice(HOLDS), rng.choice(COLOURS)
    one = f"{upper_first(first)} {did} {a(colour + ' ' + thing)} {spot}."
    another = rng.random() < 0.5 and did2 != did
    then = f"{upper_first(second)} {did2} {a(other + ' ' + thing2)}." if another else say(rng, ("{S} {p}.", "Then {s} {p}.", "When {s} saw it, {s} {p}."),
        S=upper_first(second), s=second, p=past)
    if second.startswith("the ") and rng.random() < 0.4:
        then = then.replace("The ", "A ", 1) if not second[4] in "aeiou" else then.replace("The ", "An ", 1)
    asked = [("Who {p}[?|]" if not another else "Who {d2} {t2}[?|]", upper_first(second)), ("Who {d} the {t}[?|]", upper_first(first)), ("Where was {f}[?|]",
        upper_first(spot)), ("[What|Which] colour was the {t}[?|]", upper_first(colour)), ("Where did it happen[?|]", upper_first(spot)),
        ("What [colour did the {t} have|was the colour of the {t}][?|]", upper_first(colour))]
    if another:
        asked.append(("[What|Which] colour was the {t2}[?|]", upper_first(other)) if thing2 != thing else asked[0])
    question, answer = rng.choice(asked)
    return f"{one} {then}", say(rng, question, p=past, d=did, t=thing, f=first, d2=did2, t2="the " + thing2 if "{d2}" in question else thing2), answer + "."

DEEDS = (("found", "find"), ("lost", "lose"), ("bought", "buy"), ("sold", "sell"), ("hid", "hide"), ("carried", "carry"), ("dropped", "drop"), ("painted",
    "paint"), ("saw", "see"), ("broke", "break"), ("mended", "mend"), ("washed", "wash"),
         ("made", "make"), ("forgot", "forget"), ("brought", "bring"), ("left", "leave"), ("picked up", "pick up"), ("took", "take"), ("held", "hold"),
             ("wanted", "want"), ("cleaned", "clean"), ("got", "get"), ("opened", "open"), ("kept", "keep"))
FILLERS = ("It was a sunny day.", "The wind blew.", "Nobody was there.", "It was late.", "It rained a little.", "Everybody was happy.", "The moon shone.",
    "It was very quiet.", "That was long ago.", "The sun went down.", "It was a cold morning.")


def persons(rng, count):
    """Names and animals, different ones."""
    found = []
    while len(found) < count:
        kind = rng.random()
        new = wide.name(rng) if kind < 0.55 else "the " + rng.choice(BEINGS) if kind < 0.85 else "the " + rng.choice(wide.JOBS) if kind < 0.95 else "the old " + rng.choice(("man",
            "woman", "king", "queen", "farmer", "witch"))
        if new not in found:
            found.append(new)
    return found


def plot(rng):
    """One to three do something, each with another thing at another place; one of it is asked for."""
    count = rng.choice((1, 2, 2, 2, 3))
    who, things = persons(rng, count), wide.things(rng, count)
    deeds, colours, places = rng.sample(DEEDS, count), [], []
    while len(colours) < count:
        new = wide.colour(rng)
        colours += [new] if new not in colours else []
    while len(places) < count:
        new = wide.scene(rng)
        places += [new] if new not in places else []
    lines, asked = [], []
    for s, t, (past, verb), c, at in zip(who, things, deeds, colours, places):
        coloured, placed = rng.random() < 0.7, rng.random() < 0.7
        what = f"{c} {t}" if coloured else t
        first = a(s[4:]) if s.startswith("the ") and rng.random() < 0.4 else s
        names = {"s": s, "S": upper_first(s), "F": upper_first(first), "f": first, "t": t, "p": past, "v": verb, "x": a(what), "c": c, "at": at,
            "At": upper_first(at)}
        lines.append(say(rng, ("{F} {p} {x} {at}.", "{F} {p} {x} {at}.", "{At} {f} {p} {x}.", "{At}, {f} {p} {x}.", "{F} was {at} and {p} {x}.",
            "One day {f} {p} {x} {at}.", "Yesterday {f} {p} {x} {at}.") if placed else
                         ("{F} {p} {x}.", "One day {f} {p} {x}.", "In the evening {f} {p} {x}.", "Then {f} {p} {x}.", "First {f} {p} {x}."), **names))
        if not coloured and rng.random() < 0.4:
            lines.append(say(rng, ("The {t} was {c}.", "It was {c}.", "The colour of the {t} was {c}."), **names))
            coloured = True
        asked += [(("Who {p} [the|a] {t}[?|]", "Who was it that {p} the {t}[?|]", "[Do you know|Can you say|Tell me] who {p} the {t}[?|]",
            "By whom was the {t} [seen|found]?" if past in ("saw", "found") else "Who {p} it, the {t}[?|]", "Which [of them|one] {p} the {t}[?|]"), ("{S}.",
            "{S} {p} it.", "{S} {p} the {t}."), names),
                  (("What did {s} {v}[?|]", "What was it that {s} {p}[?|]", "[Which|What] thing did {s} {v}[?|]", "{S} {p} what?",
                      "[Tell me|Say] what {s} {p}[.|]"), (("{X}.", "{S} {p} {x}."), ("{T}.", "{S} {p} {x}."))[rng.random() < 0.5], {**names,
                      "X": upper_first(a(what)), "T": upper_first(a(t))})]
        if placed:
            asked += [(("Where did {s} {v} [it|the {t}|that]?", "Where was {s}[?|]", "[In|At] [which|what] place did {s} {v} the {t}[?|]",
                "Where [was it that {s} {p} the {t}|did that happen to {s}][?|]", "[Tell me|Do you know] where {s} {p} the {t}[.|?|]") , ("{At}.",
                "{S} {p} it {at}."), names)] * 2
            asked += [(("Who was {at}[?|]", "[Who|Which of them] did something {at}[?|]"), ("{S}.", "{S} was {at}."), names)]
        if coloured:
            asked += [(("[What|Which] colour was the {t}[?|]", "[What|Which] colour did the {t} have[?|]", "What was the colour of the {t}[?|]",
                "The {t} was of [what|which] colour[?|]", "Of [what|which] colour was the {t}[?|]", "How was the {t} coloured[?|]"), ("{C}.",
                "The {t} was {c}.", "It was {c}."), {**names, "C": upper_first(c)})] * 2
    if rng.random() < 0.25:
        lines.insert(rng.randrange(len(lines) + 1) if "It was" not in " ".join(lines) else 0, rng.choice(FILLERS))
    questions, answers, names = rng.choice(asked)
    return " ".join(lines), upper_first(say(rng, questions, **names)), upper_first(say(rng, answers, **names))


def given(rng):
    """Something goes from one to another."""
    (one, two, three), (thing, thing2), colour = persons(rng, 3), wide.things(rng, 2), wide.colour(rng)
    past, base, way = rng.choice((("gave", "give", "to"), ("sold", "sell", "to"), ("brought", "bring", "to"), ("lent", "lend", "to"), ("sent", "send", "to"),
        ("showed", "show", "to"), ("handed", "hand", "to"), ("threw", "throw", "to")))
    names = {"a": one, "A": upper_first(one), "b": two, "B": upper_first(two), "d": three, "D": upper_first(three), "t": thing, "x": a(thing),
        "X": upper_first(a(thing)), "xc": a(f"{colour} {thing}"), "c": colour, "C": upper_first(colour), "p": past, "v": base, "u": a(thing2),
        "U": upper_first(a(thing2))}
    text, pairs = rng.choice((
        ("{A} {p} {xc} to {b}. {D} had {u}.", ((("Who had [the|a] {u2}[?|]", "Whose was the {u2}[?|]"), "{D}."), (("What did {d} have[?|]",), "{U}."))),
        ("{A} {p} {b} {xc}. {D} watched them.", ((("Who watched[ them|][?|]", "Who [saw it|looked on][?|]"), "{D}."),)),
        ("{D} had {xc} and {p} it to {b}. {A} wanted it too.", None), ("{A} and {d} met {b}. {A} {p} {b} {xc}.", ((("Who [did they meet|was met]?",), "{B}."),))))
    names["u2"] = thing2
    giver = "d" if pairs is None else "a"
    common = ((("To whom did {g} {v} the {t}[?|]", "Who got the {t}[ from {g}|][?|]" if past != "showed" else "Who was shown the {t}[?|]",
        "Who did {g} {v} the {t} to[?|]"), "{B}."), (("Who {p} the {t} to {b}[?|]", "Who {p} {b} the {t}[?|]",
        "From whom [did {b} get|came] the {t}[?|]" if past not in ("showed",) else "Who {p} {b} something[?|]"), "{G}."),
              (("What did {g} {v} {b}[?|]", "What did {g} {v} to {b}[?|]", "What was it that {g} {p} {b}[?|]"), "{X}."),
                  (("[What|Which] colour [was the {t}|did the {t} have][?|]",), "{C}."))
    names.update(g=names[giver], G=names[giver.upper()])
    asked, answer = rng.choice(common + (pairs or ((("Who wanted it too[?|]", "Who else wanted the {t}[?|]"), "{A}."),)))
    return say(rng, text, **names), upper_first(say(rng, asked, **names)), say(rng, answer, **names)


FRAMES = ("[Listen|Here is a story|Read this|A story|A short story|Story|Listen to this|Remember this|I tell you something|A little tale|Here is what happened|Once|Hear this|Text|Read]: {s} {q}",
    "{s}\n{q}", "{s} [Question|My question|Now tell me|So tell me|Do you know|The question]: {q}", "{s} [Now|So|And now|Well]: {q}", "{asked} {s}",
          "[Answer this|Read and answer|A riddle for you]: {s} {q}", "\"{s}\" {q}", "{s}\n\n{q}", "[Question|Q]: {asked} [Story|Text]: {s}",
              "{s} [That is the story|End of the story|That is all I know]. {q}")


def about(rng):
    kind = rng.random()
    text, question, answer = (scene if kind < 0.22 else two if kind < 0.36 else given if kind < 0.52 else plot)(rng)
    frame = rng.random()
    if frame < 0.55:
        return f"{text} {question}", answer
    if frame < 0.85:
        return say(rng, FRAMES, s=text, q=question, asked=question.rstrip("?.") + "?"), answer
    return f"{text} {say(rng, '[So|And|Now|Well|Tell me|Then]')}, {question if question.split()[0][0] == question[0] and question.split()[0] not in ASKING else question[0].lower() + question[1:]}", answer


ASKING = ("Who", "What", "Where", "Which", "To", "From", "In", "At", "Of", "How", "Whose", "Do", "Can", "Tell", "Say", "By", "The")


def ask(rng):
    return (wanted if rng.random() < 0.5 else about)(rng)


def told(rng):
    beings = cast(rng)
    return tale(rng, beings, rng.choice(STORY_THINGS) if rng.random() < 0.7 else wide.object_(rng))
