"""Sums, tables, neighbours and comparisons of small numbers, bare and in one-step stories.

An answer says the sum again before its result: a model of this size reckons better when it has
both numbers just before the place where the result goes.
"""
from .phrase import listed, number, say, spelled, upper_first
from .words import GOODS, NAMES, counted, plural

BARE = ("[What is|What's|How much is|Calculate|Compute|Work out|Tell me|Find|Can you tell me|Give me|Do you know|"
        "What do you get for|Please calculate|Please work out|I need|Solve] {sum}[?|.|]",
        "{sum}[?| =| = ?| is what?| equals?| equals what?| makes?| is how much?|, how much is that?|, what is it?]",
        "[What does|How much does] {sum} [make|equal|come to|give|give you|yield][?|]",
        "[What|How much] [do I get|do you get|is the result|is the answer|comes out|would it be] [if I work out|for|of] {sum}[?|]",
        "[The result|The answer|The value] of {sum}[?| is?|, please.]",
        "[What is the result|What is the answer|What is the value] of {sum}[?|]",
        "[I am stuck on|Help me with|My homework says|Next one:|Another one:|And now|Now] {sum}[.|?|]")
PLUS = ("{a} plus {b}", "{a} plus {b}", "{a} and {b}", "{a} added to {b}", "the sum of {a} and {b}")
MINUS = ("{a} minus {b}", "{a} minus {b}", "{a} take away {b}", "{a} less {b}",
         "the difference between {a} and {b}", "the difference of {a} and {b}")
TIMES = ("{a} times {b}", "{a} times {b}", "{a} multiplied by {b}", "the product of {a} and {b}")
MADE_PLUS = ("[What|How much] [do you get|do I get|is it|comes out|will I have|does it make] [if|when] [you|I|we] add {b} [to|and] {a}[?|]",
             "[Add|Please add|Can you add|Could you add] {a} and {b}[.|?|, please.| for me.| together.]",
             "[What|How much] do {a} and {b} [make|add up to|come to|make together|sum to|give][?|]",
             "[Add|Please add] {b} to {a}[.|]",
             "[What number|Which number] is {b} more than {a}[?|]", "[What is|What's] {b} more than {a}[?|]",
             "[If you|When I|If I] [put together|add up|combine] {a} and {b}, [what do you get|what is it|how much is it|what do I have][?|]",
             "{a} and {b} [together|added up|in all|combined][?| make?| make what?]")
MADE_MINUS = ("[What|How much] [is left|remains|do you get|do I get|do I have left] [if|when] [you|I|we] [take|subtract|remove|take away] {b} from {a}[?|]",
              "[Subtract|Take|Please subtract|Can you take|Could you subtract] {b} [away from|from] {a}[.|?|, please.]",
              "[What number|Which number] is {b} [less|fewer|smaller] than {a}[?|]", "[What is|What's] {b} less than {a}[?|]",
              "[From {a} I take {b}|Take {b} off {a}|{a}, and {b} less|{a}, without {b}]. [What is left|What remains|How much is left][?|]",
              "[How far is it|How many steps are there] from {b} to {a}[?|]",
              "[How much|How many] [must I add|do I add|is missing|do I need] [to get from {b} to {a}|from {b} to {a}][?|]")
MADE_TIMES = ("[Multiply|Please multiply|Can you multiply|Could you multiply] {a} [by|and|with] {b}[.|?|, please.]",
              "[What|How much] [do you get|do I get|is it|comes out] [if|when] [you|I|we] multiply {a} [by|with] {b}[?|]",
              "[How much|What] [are|is] {a} {b}s[?|]",
              "[In the times table|In the {a} times table], [what is|how much is] {a} times {b}[?|]",
              "{a} groups of {b}[?|, how much is that?|: how many?]",
              "[What|How much] do {a} and {b} make when [multiplied|you multiply them][?|]")


def _sum(rng, a, b, sign, words, result):
    """The sentence that answers."""
    name = {"+": "plus", "-": "minus", "x": "times"}[sign]
    x, y, z = (spelled(n) if words else str(n) for n in (a, b, result))
    if words:
        return upper_first(f"{x} {name} {y} is {z}.")
    return f"{x} {sign} {y} = {z}"


def _operands(rng, sign):
    if sign == "x":
        a, b = rng.randint(1, 10), rng.randint(1, 10)
        return a, b, a * b
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    if rng.random() < 0.15:
        a, b = rng.randint(0, 40), rng.randint(0, 12)
    if sign == "+":
        return a, b, a + b
    a, b = max(a, b), min(a, b)
    return a, b, a - b


def sums(rng):
    sign = rng.choice("++--x")
    a, b, result = _operands(rng, sign)
    words = rng.random() < 0.5
    x, y = number(rng, a, words), number(rng, b, words)
    said, made = {"+": (PLUS, MADE_PLUS), "-": (MINUS, MADE_MINUS), "x": (TIMES, MADE_TIMES)}[sign]
    if not words and rng.random() < 0.5:
        written = {"+": "+", "-": "-", "x": rng.choice("x*")}[sign]
        space = rng.choice((" ", " ", ""))
        question = say(rng, BARE, sum=f"{x}{space}{written}{space}{y}")
    elif rng.random() < 0.55:
        question = say(rng, BARE, sum=say(rng, said, a=x, b=y))
    else:
        question = say(rng, made, a=x, b=y)
    return upper_first(question), _sum(rng, a, b, sign, words, result)


def twice(rng):
    if rng.random() < 0.5:
        n = rng.randint(0, 20)
        words = rng.random() < 0.5
        question = say(rng, ("[What is|What's|Tell me|How much is|Give me] [the double of|double|twice|two times] {n}[?|]",
                             "[Double|Please double|Can you double] {n}[.|?|, please.]",
                             "[If I double|When I double|Doubling] {n}, what [do I get|is it|comes out|is the result][?|]",
                             "[How much|What] is {n} doubled[?|]", "{n} [doubled|twice] is[?| what?]"),
                       n=number(rng, n, words))
        return upper_first(question), upper_first(f"twice {number(rng, n, words)} is {number(rng, 2 * n, words)}.")
    n = 2 * rng.randint(0, 10)
    words = rng.random() < 0.5
    question = say(rng, ("[What is|What's|Tell me|How much is|Give me] [the half of|half of|one half of] {n}[?|]",
                         "[Halve|Please halve|Can you halve] {n}[.|?|, please.]",
                         "[If I|When I] [halve|split|cut] {n} [in half|in two|into two equal parts|evenly in two], [how much is each part|what do I get|how much is each][?|]",
                         "{n} [divided by two|divided by 2|split in two|halved][?| is?| makes?]",
                         "[What is|How much is] {n} [divided by two|divided by 2|/ 2][?|]"), n=number(rng, n, words))
    return upper_first(question), upper_first(f"half of {number(rng, n, words)} is {number(rng, n // 2, words)}.")


def neighbours(rng):
    after = rng.random() < 0.5
    n = rng.randint(0, 99) if after else rng.randint(1, 100)
    words = rng.random() < 0.35 and n < 100
    side = "[after|right after|directly after]" if after else "[before|right before|just before|directly before]"
    more = ("[Which|What] number [follows|is next after|comes next after] {n}[?|]", "[What follows|What is next after] {n}[?|]",
            "[I count and am at|I am counting and just said|After] {n}, [what comes next|what is next|what is the next number][?|]",
            "[What is|Tell me|Name] the [successor of|number following|next number after] {n}[?|]",
            "[What is|Which number is] one more than {n}[?|]")
    less = ("[Which|What] number [precedes|is in front of] {n}[?|]", "[What is|Tell me|Name] the [predecessor of|number preceding] {n}[?|]",
            "[Counting down|Counting backwards|Going down], what [comes after|follows] {n}[?|]",
            "[What is|Which number is] one less than {n}[?|]")
    question = say(rng, ("[What comes|Which number comes|What number comes|Tell me what comes|Which number is|What number is|What is the number] "
                         + side + " {n}[?|]",) + (more if after else less), n=number(rng, n, words))
    result = n + 1 if after else n - 1
    return question, upper_first(f"{number(rng, result, words)} comes {'after' if after else 'before'} {number(rng, n, words)}.")


def compare(rng):
    a, b = rng.sample(range(101), 2)
    if rng.random() < 0.4:
        b = min(100, max(0, a + rng.choice((-3, -2, -1, 1, 2, 3, 10, -10))))
        if a == b:
            return compare(rng)
    words = rng.random() < 0.3 and max(a, b) < 100
    large = rng.random() < 0.55
    how = "[larger|bigger|greater|higher|more]" if large else "[smaller|less|lower]"
    best = "[largest|biggest|greatest]" if large else "[smallest|lowest|least]"
    question = say(rng, ("[Which|What] is " + how + ", {a} or {b}[?|]", "[Which number|Which one|Which] is [the |]" + how + "[:|,] {a} or {b}[?|]",
                         "[Tell me|Say|Pick|Name|Give me] the " + how + " [number|one] of {a} and {b}[.|]",
                         "Of {a} and {b}, which [number |one |]is [the |]" + how + "[?|]",
                         "[What is|Which is] the " + how + " number, {a} or {b}[?|]",
                         "{a} or {b}[?|:|,] which [one |]is " + how + "[?|]",
                         "[Between|Comparing] {a} and {b}, which [one |number |]is [the |]" + how + "[?|]",
                         "[Which of these two|Which of the two numbers|Which of the numbers] is [the |]" + how + ": {a} or {b}[?|]",
                         "Out of {a} and {b}, which is the " + best + "[?|]"), a=number(rng, a, words), b=number(rng, b, words))
    high, low = max(a, b), min(a, b)
    if large:
        return question, upper_first(f"{number(rng, high, words)} is larger.")
    return question, upper_first(f"{number(rng, low, words)} is smaller.")


def parity(rng):
    n = rng.randint(0, 100)
    words = rng.random() < 0.3 and n < 100
    kind = "even" if n % 2 == 0 else "odd"
    asked = rng.choice(("even", "odd"))
    x = number(rng, n, words)
    if rng.random() < 0.5:
        question = say(rng, ("Is {n} [even or odd|odd or even|an even or an odd number|an odd or an even number][?|]",
                             "{n}[: |, ][even or odd|odd or even][?|]",
                             "[Tell me|Say|I want to know] [whether|if] {n} is [even or odd|odd or even][.|]",
                             "[What kind of number is|Which is it,] {n}[: |, ][even or odd|odd or even][?|]"), n=x)
        return upper_first(question), upper_first(f"{x} is {kind}.")
    question = say(rng, ("Is {n} {asked}[?|]", "Is {n} an {asked} number[?|]", "Is the number {n} {asked}[?|]",
                         "Is {n} [a number that is|one of the numbers that are] {asked}[?|]",
                         "Would you say {n} is {asked}[?|]",
                         "{n} is {asked}, [right|isn't it|true or not|correct]?"), n=x, asked=asked)
    return upper_first(question), ("Yes, " if asked == kind else "No, ") + f"{x} is {kind}."


def story(rng):
    """Somebody has some; a thing happens; how many now?  The answer shows the sum."""
    thing, name, other = rng.choice(GOODS), *rng.sample(NAMES + ["I"] * 8, 2)
    if other == "I":
        name, other = other, rng.choice(NAMES)
    if name != "I" and rng.random() < 0.25:
        name = rng.choice(WHO)
    words = rng.random() < 0.5
    i = name == "I"
    has, have = ("have", "have") if i else ("has", "have")
    do = "do" if i else "does"
    s = "" if i else "s"
    sign = rng.choice("+++---x")
    if sign == "x":
        a, b = rng.randint(2, 10), rng.randint(2, 10)
        group = rng.choice(("box basket bag jar plate pocket shelf room table child tray drawer nest bowl".split()))
        groups = {"shelf": "shelves", "child": "children"}.get(group) or plural(group)
        things = plural(thing)
        holder = "[has|gets]" if group == "child" else "[holds|has|contains]"
        question = say(rng, (
            "{A} {groups} [hold|have|contain] {b} {things} each. How many {things} are [there|that|there in all][?|]",
            "There are {a} {groups}, [and each|each one|and every one] " + holder + " {b} {things}. How many {things} [are there|are there in all|in total|altogether][?|]",
            "{name} {has} {a} {groups} with {b} {things} in each. How many {things} [is that|are there][?|]" if group != "child" else
            "{name} give{s} {a} children {b} {things} each. How many {things} [is that|are needed][?|]",
            "[If each|Each|Every] {group} [has|gets|holds] {b} {things}[, how many|. How many] {things} do {a} {groups} [have|get|hold|need][?|]",
            "{name} buy{s} {a} {groups} of {b} {things}. How many {things} is that[?|]" if group != "child" else "{b} {things} for each of {a} {groups}: how many {things}[?|]"),
            A=upper_first(number(rng, a, words)), a=number(rng, a, words), b=number(rng, b, words), groups=groups, group=group,
            things=things, name=name, has=has, s=s)
        tail = f"there are {counted(a * b, thing, number(rng, a * b, words))}."
        return question, _sum(rng, a, b, "x", words, a * b).rstrip(".") + ", so " + tail
    a, b = rng.randint(1, 20), rng.randint(1, 20)
    if sign == "-":
        a, b = max(a, b), min(a, b)
    x, y = number(rng, a, words), number(rng, b, words)
    A = counted(a, thing, x)
    if sign == "+":
        act = rng.choice(("get{s} {y} more", "buy{s} {y} more", "find{s} {y} more", "pick{s} {y} more", "collect{s} {y} more",
                          "get{s} {y} from {o}", "win{s} {y}", "make{s} {y} more", "receive{s} {y} from {o}", "add{s} {y}",
                          "get{s} another {y}", "get{s} {y} as a present", "is given {y} more" if not i else "am given {y} more", "later find{s} another {y}", "take{s} {y} more", "borrow{s} {y} from {o}", "bring{s} {y} more"))
    else:
        act = rng.choice(("give{s} {y} to {o}", "give{s} {y} away", "lose{s} {y}", "sell{s} {y}", "drop{s} {y}", "use{s} {y}",
                          "hand{s} {y} to {o}", "lend{s} {y} to {o}", "throw{s} {y} away", "break{s} {y}", "send{s} {y} to {o}",
                          "pass{es} {y} to {o}", "leave{s} {y} at home", "spend{s} {y}", "forget{s} {y}",
                          "put{s} {y} away", "share{s} {y} with {o}", "take{s} {y} back", "miss{es} {y}"))
    act = act.format(s=s, es="es" if s else "", y=y, o=other)
    now = rng.choice(("now", "then", "in the end", "")) if sign == "+" else rng.choice(("now", "left", "left", "still", ""))
    now = " " + now if now else ""
    things = plural(thing)
    later = name[0].lower() + name[1:] if name in WHO else name
    subject = name
    ask_left = (f"How many {things} are left", f"How many {things} remain", f"How many are left") if sign == "-" else (
        f"How many {things} is that in all", f"How many {things} are there now", f"How many is that")
    ask = rng.choice((f"How many {things} {do} {subject} have{now}", f"How many {things} {do} {subject} have{now}",
                      f"How many {do} {subject} have{now}", rng.choice(ask_left)))
    if sign == "-" and "still" in now:
        ask = f"How many {things} {do} {subject} still have"
    opening = rng.choice((f"{name} {has} {A} and {act}.", f"{name} {has} {A}. Then {'I' if i else name} {act}.",
                          f"{name} {has} {A}, then {act}.", f"{name} {has} {A} but {act}." if sign == "-" else f"{name} {has} {A} and then {act}.",
                          f"If {name} {has} {A} and {act}"))
    if opening.startswith("If"):
        question = f"{opening.replace('If ' + name, 'If ' + later)}, {ask[0].lower() + ask[1:]}?"
    else:
        question = f"{opening} {ask}{rng.choice(('?', '?', '?', ''))}"
    result = a + b if sign == "+" else a - b
    who = "you have" if i else f"{later.replace('my ', 'your ').replace('our ', 'your ')} has"
    if name in WHO:
        question = question.replace(f". Then {name}", f". Then {rng.choice(('he', 'she', later))}").replace(f" do{'es'} {name} ", f" does {later.replace('a ', 'the ', 1) if later.startswith('a ') else later} ")
        who = who.replace("a ", "the ", 1) if who.startswith("a ") else who
    return question, _sum(rng, a, b, sign, words, result).rstrip(".") + f", so {who} {counted(result, thing, number(rng, result, words))}."


PLACED = (("bird", "on a tree", "fly away", "fly to it"), ("sheep", "on a meadow", "run away", "come to them"), ("child", "in a room", "go home", "come in"), ("duck", "on a pond", "swim away", "swim to them"), ("person", "on a bus", "get off", "get on"),
          ("apple", "on a tree", "fall down", "grow"), ("car", "on a street", "drive away", "arrive"), ("egg", "in a box", "break", "are added"), ("cookie", "on a plate", "are eaten", "are added"), ("candle", "on a cake", "go out", "are lit as well"), ("fish", "in a pond", "swim away", "are put in"), ("guest", "at a party", "leave", "arrive"), ("frog", "in a pond", "jump out", "jump in"),
          ("cow", "on a farm", "are sold", "are bought"), ("book", "on a shelf", "are taken away", "are put there"), ("star", "in the sky", "fade", "appear"), ("hen", "in a coop", "run away", "come in"), ("boat", "in a harbour", "sail away", "arrive"), ("rabbit", "in a burrow", "hop away", "hop in"), ("balloon", "in a room", "burst", "are brought"))
WHO = ("A farmer", "My sister", "My brother", "A baker", "The teacher", "Our neighbour", "The gardener", "My grandmother", "A boy", "A girl", "My father", "My mother", "A shopkeeper", "The cook", "A sailor", "My friend", "A painter", "My uncle", "My aunt")


def placed(rng):
    """Things that are somewhere; some go, or more come."""
    noun, where, go, come = rng.choice(PLACED)
    sign = rng.choice("+--")
    a, b = rng.randint(2, 20), rng.randint(1, 19)
    if sign == "-":
        a, b = max(a, b) + (a == b), min(a, b)
    words = rng.random() < 0.5
    x, y = number(rng, a, words), number(rng, b, words)
    many = {"child": "children", "person": "people"}.get(noun) or plural(noun)
    does = go if sign == "-" else come
    if b == 1:
        does = {"go": "goes", "fly": "flies", "are": "is"}.get(does.split()[0], does.split()[0] + "s") + does[len(does.split()[0]):]
    who = rng.choice(WHO) if rng.random() < 0.3 else None
    opening = say(rng, ("There are {x} {m} {w}.", "{X} {m} are {w}.", "{W} there are {x} {m}.", "I see {x} {m} {w}."), x=x, X=upper_first(x), m=many, w=where, W=upper_first(where))
    if who:
        opening = f"{who} has {x} {many} {where}."
    then = say(rng, ("{Y} {d}.", "Then {y} {d}.", "{Y} of them {d}." if sign == "-" else "{Y} more {d}.", "Now {y} {d}."), y=y, Y=upper_first(y), d=does)
    if rng.random() < 0.3:
        opening, then = opening.rstrip(".") + rng.choice((", and ", ", then ", " and ")), then[0].lower() + then[1:]
    question = say(rng, ("How many {m} are [left|still there|still {w}|there now]?" if sign == "-" else "How many {m} are [there now|there|there in all|{w} now]?", "How many [remain|stay|are left]?" if sign == "-" else "How many is that?", "How many {m} [remain|stay|are left]?" if sign == "-" else "How many {m} are there then?"), m=many, w=where)
    result = a + b if sign == "+" else a - b
    noun_now = noun if result == 1 else many
    return (opening + then if opening[-1] == " " else f"{opening} {then}") + " " + question, _sum(rng, a, b, sign, words, result).rstrip(".") + f", so there {'is' if result == 1 else 'are'} {number(rng, result, words)} {noun_now}."


def gathered(rng):
    """Several have some: how many together, or who has more."""
    thing = rng.choice(GOODS)
    p, q = rng.sample(NAMES, 2)
    a, b = rng.sample(range(1, 21), 2)
    words = rng.random() < 0.5
    A, B = counted(a, thing, number(rng, a, words)), number(rng, b, words)
    things = plural(thing)
    opening = say(rng, ("{p} has {A} and {q} has {B}.", "{p} has {A}, {q} has {B}.", "{p} got {A}, and {q} got {B}.",
                        "{p} brings {A} and {q} brings {B}.", "{p} found {A}, and {q} found {B}."), p=p, q=q, A=A, B=B)
    kind = rng.random()
    if kind < 0.6:
        question = opening + " " + say(rng, ("How many {t} do they have [together|in all|altogether|in total]?", "How many {t} are there [in all|together|altogether]?",
                                             "How many [do they have together|is that together|are that together|is that]?"), t=things)
        return question, _sum(rng, a, b, "+", words, a + b).rstrip(".") + f", so they have {counted(a + b, thing, number(rng, a + b, words))} together."
    more = rng.random() < 0.6
    question = opening + " " + say(rng, "Who has {how}[ {t}|]?", how="more" if more else rng.choice(("fewer", "less")), t=things)
    winner = (p if a > b else q) if more else (p if a < b else q)
    return question, f"{winner} has {'more' if more else 'fewer'}."


def three(rng):
    numbers = [rng.randint(1, 9) for _ in range(3)]
    words = rng.random() < 0.4
    a, b, c = (number(rng, n, words) for n in numbers)
    joined = f"{a} plus {b} plus {c}" if words or rng.random() < 0.4 else f"{a} + {b} + {c}"
    question = say(rng, BARE, sum=joined) if rng.random() < 0.7 else say(
        rng, "[Add up|Add|What is the sum of|What do you get from adding] {l}[.|?|]", l=listed((a, b, c)))
    first = numbers[0] + numbers[1]
    return upper_first(question), (
        _sum(rng, numbers[0], numbers[1], "+", words, first).rstrip(".") + ", and " +
        _sum(rng, first, numbers[2], "+", words, sum(numbers)).lower())


def ask(rng):
    kinds = (sums, sums, sums, sums, twice, neighbours, neighbours, compare, compare, parity, story, story, story, placed, placed, gathered, three)
    return rng.choice(kinds)(rng)
