"""Sums, tables, neighbours and comparisons of small numbers, bare and in one-step stories.

An answer says the sum again before its result: a model of this size reckons better when it has
both numbers just before the place where the result goes.
"""
from . import made
from .phrase import listed, number, say, spelled, upper_first
from .words import GOODS, NAMES, counted, plural

BARE = ("[What is|What's|How much is|Calculate|Compute|Work out|Tell me|Find|Can you tell me|Give me|Do you know|"
        "What do you get for|Please calculate|Please work out|I need|Solve] {sum}[?|.|]",
        "{sum}[?| =| = ?| is what?| equals?| equals what?| makes?| is how much?|, how much is that?|, what is it?]",
        "[What does|How much does] {sum} [make|equal|come to|give|give you|yield][?|]",
        "[What|How much] [do I get|do you get|is the result|is the answer|comes out|would it be] [if I work out|for|of] {sum}[?|]",
        "[The result|The answer|The value] of {sum}[?| is?|, please.]",
        "[What is the result|What is the answer|What is the value] of {sum}[?|]",
        "[I am stuck on|Help me with|My homework says|Next one:|Another one:|And now|Now] {sum}[.|?|]",
        "[Could you work out|Would you calculate|Do the sum|Please do|Reckon|Solve this:|Can you do|Quick:|How about|What about|Try|The sum is] {sum}[?|.|]",
        "{sum} [is|makes|gives|equals|comes to][ what number?|...| how much?| which number?|]", "{sum}[, please|, quickly|: the answer?|: what do you get?|: the result?|, what's the answer?|, what does it make?| - how much?|. The answer?]",
        "[I cannot work out|I never know|I forgot|I always forget|My child asks|The teacher asks|Somebody asks] [how much is|how much|what is] {sum}[ is|][.|?|]",
        "[Which|What] number [is|equals|is the same as|do I write for] {sum}[?|]", "[If I calculate|When I calculate|If I type] {sum}, [what is the result|what comes out|what do I get|what will it say][?|]")
PLUS = ("{a} plus {b}", "{a} plus {b}", "{a} and {b}", "{a} added to {b}", "the sum of {a} and {b}", "the total of {a} and {b}", "{a} increased by {b}", "{b} more than {a}", "{a} with {b} added", "{a} and another {b}", "{a} and {b} together")
MINUS = ("{a} minus {b}", "{a} minus {b}", "{a} take away {b}", "{a} less {b}",
         "the difference between {a} and {b}", "the difference of {a} and {b}", "{a} reduced by {b}", "{b} less than {a}", "{b} from {a}", "{b} subtracted from {a}", "{b} taken from {a}", "{a} without {b}")
TIMES = ("{a} times {b}", "{a} times {b}", "{a} multiplied by {b}", "the product of {a} and {b}", "{a} lots of {b}", "{a} by {b}", "{a} multiplied with {b}", "{a} groups of {b}")
MADE_PLUS = ("[What|How much] [do you get|do I get|is it|comes out|will I have|does it make] [if|when] [you|I|we] add {b} [to|and] {a}[?|]",
             "[Add|Please add|Can you add|Could you add] {a} and {b}[.|?|, please.| for me.| together.]",
             "[What|How much] do {a} and {b} [make|add up to|come to|make together|sum to|give][?|]",
             "[Add|Please add] {b} to {a}[.|]",
             "[What number|Which number] is {b} more than {a}[?|]", "[What is|What's] {b} more than {a}[?|]",
             "[If you|When I|If I] [put together|add up|combine] {a} and {b}, [what do you get|what is it|how much is it|what do I have][?|]",
             "{a} and {b} [together|added up|in all|combined][?| make?| make what?]",
             "[I have|I start with|Start with|Take] {a}[ and|,] [then |]add {b}[.|:] [What|what] [is that|do I get|is it|comes out][?|]",
             "[Put|Lay|Count] {b} [on top of|onto|to] {a}[. What is it?|, what do I get?|.]", "[What number|Which number] [is {b} above|lies {b} above|comes {b} after] {a}[?|]", "[Raise|Increase] {a} by {b}[.|]",
             "[What is the total|What's the total|The total], if [I add|there are] {a} and {b}[?|]", "[Going|I go|I count] up {b} from {a}[.|,] [where am I|where do I land|what number do I reach][?|]")
MADE_MINUS = ("[What|How much] [is left|remains|do you get|do I get|do I have left] [if|when] [you|I|we] [take|subtract|remove|take away] {b} from {a}[?|]",
              "[Subtract|Take|Please subtract|Can you take|Could you subtract] {b} [away from|from] {a}[.|?|, please.]",
              "[What number|Which number] is {b} [less|fewer|smaller] than {a}[?|]", "[What is|What's] {b} less than {a}[?|]",
              "[From {a} I take {b}|Take {b} off {a}|{a}, and {b} less|{a}, without {b}]. [What is left|What remains|How much is left][?|]",
              "[How far is it|How many steps are there] from {b} to {a}[?|]",
              "[How much|How many] [must I add|do I add|is missing|do I need] [to get from {b} to {a}|from {b} to {a}][?|]",
              "[I have|I start with|Start with|Take] {a}[ and|,] [then |]take away {b}[.|:] [What|what] [is that|do I get|is left|remains][?|]", "[What number|Which number] [is {b} below|lies {b} below] {a}[?|]",
              "[Lower|Reduce|Decrease] {a} by {b}[.|]", "[Remove|Take away] {b} from {a}[. What is left?|, what remains?|.]", "[If|When] {b} [is|are] [taken away from|subtracted from|removed from] {a}, [what is left|what remains|how much is left][?|]",
              "[Going|I go|I count] [down|back] {b} from {a}[.|,] [where am I|where do I land|what number do I reach][?|]", "[What|Which number] [and|plus] {b} [makes|gives] {a}[?|]", "By how much is {a} [larger|more|bigger] than {b}[?|]")
MADE_TIMES = ("[Multiply|Please multiply|Can you multiply|Could you multiply] {a} [by|and|with] {b}[.|?|, please.]",
              "[What|How much] [do you get|do I get|is it|comes out] [if|when] [you|I|we] multiply {a} [by|with] {b}[?|]",
              "[How much|What] [are|is] {a} {b}s[?|]",
              "[In the times table|In the {a} times table], [what is|how much is] {a} times {b}[?|]",
              "{a} groups of {b}[?|, how much is that?|: how many?]",
              "[What|How much] do {a} and {b} make when [multiplied|you multiply them][?|]",
              "[I have|There are|Take] {a} [rows|groups|bags] [of|with] {b} [each|in each][.|:] [How much is that|What is that|How many|What is it in all][?|]",
              "[Count|I count|Take] {b}, {a} times[.|:|,] [What|what] [is that|do I get|comes out][?|]", "[What|How much] is {b} taken {a} times[?|]", "[Multiplying|Multiply] {a} [by|with] {b}[ gives| makes| is|][?|...| what?]")


# As most people ask; among so many other ways it would hardly ever be said.
PLAIN = "[What is|What is|How much is|What's] {a} {name} {b}[?|?|?|]"
PLAIN_DOUBLE, PLAIN_HALF = "[What is|What's|How much is] [double|twice] {n}[?|?|]", "[What is|What's|How much is] half of {n}[?|?|]"
PLAIN_AFTER, PLAIN_BEFORE = "[What|What number|Which number] comes after {n}[?|?|]", "[What|What number|Which number] comes before {n}[?|?|]"
NAMES_OF_SIGNS = {"+": "plus", "-": "minus", "x": "times"}


def _sum(rng, a, b, sign, words, result):
    """The sentence that answers."""
    name = NAMES_OF_SIGNS[sign]
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
    if rng.random() < 0.35:
        question = say(rng, PLAIN, a=x, b=y, name=NAMES_OF_SIGNS[sign])
    elif not words and rng.random() < 0.5:
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
                             "[How much|What] is {n} doubled[?|]", "{n} [doubled|twice] is[?| what?]",
                             "[What is|Which number is] [twice as much as|twice as many as|the double of|two times] {n}[?|]", "{n} and {n} again[?| is what?| make?]", "[The double|Double] of {n}[?|, please.| is?]",
                             "[Take|I take] {n} [twice|two times][.|:] [What|what] is it[?|]", "[I have|She has] {n}, [you have|he has] twice as many. How many[ is that|][?|]", "[I need|I want|Do you know|I forgot] [double|twice|the double of] {n}[.|?|]"),
                       n=number(rng, n, words))
        if rng.random() < 0.25:
            question = say(rng, PLAIN_DOUBLE, n=number(rng, n, words))
        return upper_first(question), upper_first(f"twice {number(rng, n, words)} is {number(rng, 2 * n, words)}.")
    n = 2 * rng.randint(0, 10)
    words = rng.random() < 0.5
    question = say(rng, ("[What is|What's|Tell me|How much is|Give me] [the half of|half of|one half of] {n}[?|]",
                         "[Halve|Please halve|Can you halve] {n}[.|?|, please.]",
                         "[If I|When I] [halve|split|cut] {n} [in half|in two|into two equal parts|evenly in two], [how much is each part|what do I get|how much is each][?|]",
                         "{n} [divided by two|divided by 2|split in two|halved][?| is?| makes?]",
                         "[What is|How much is] {n} [divided by two|divided by 2|/ 2][?|]",
                         "[Which number|What] is [half|one half] of {n}[?|]", "[The half|Half|One half] of {n}[?|, please.| is?| is what?]", "[What is|Which number is] half as [much|many] as {n}[?|]", "[I want|Do you know|I forgot|Find] [half of|the half of] {n}[.|?|]",
                         "[Two of us|Two children|Two people] share {n}[.|,] [How many|how many] [for each|does each get|has each][?|]", "[Share|Split|Divide] {n} [between two|in two|by two|into two halves][.|, please.|: how much is each?|]", "Twice what is {n}[?|]"), n=number(rng, n, words))
    if rng.random() < 0.25:
        question = say(rng, PLAIN_HALF, n=number(rng, n, words))
    return upper_first(question), upper_first(f"half of {number(rng, n, words)} is {number(rng, n // 2, words)}.")


def neighbours(rng):
    after = rng.random() < 0.5
    n = rng.randint(0, 99) if after else rng.randint(1, 100)
    words = rng.random() < 0.5
    side = "[after|right after|directly after]" if after else "[before|right before|just before|directly before]"
    more = ("[Which|What] number [follows|is next after|comes next after] {n}[?|]", "[What follows|What is next after] {n}[?|]",
            "[I count and am at|I am counting and just said|After] {n}, [what comes next|what is next|what is the next number][?|]",
            "[What is|Tell me|Name] the [successor of|number following|next number after] {n}[?|]",
            "[What is|Which number is] one more than {n}[?|]", "[Next|The next number|One up] after {n}[?|, please.| is?]", "{n}[, and then|, and next|, then][?| what?| comes which number?]", "[I have|Page|I am on page|I am] {n}[.|, and] [what|What] is the next[ number|][?|]",
            "[If I go|Going|When I go] one [up|further] from {n}[?|, where am I?|, what is it?]", "[Counting up|Counting|Counting upwards|When you count], what [comes after|follows] {n}[?|]", "{n} is followed by [what|which number][?|]", "[Who is|What is] the [right|upper] neighbour of {n}[?|]")
    less = ("[Which|What] number [precedes|is in front of] {n}[?|]", "[What is|Tell me|Name] the [predecessor of|number preceding] {n}[?|]",
            "[Counting down|Counting backwards|Going down], what [comes after|follows] {n}[?|]",
            "[What is|Which number is] one less than {n}[?|]", "[One down|The last number|The number] before {n}[?|, please.| is?]", "[I am at|I stand at|Page|I am on page] {n}[.|,] [what|What] [was|came] [before|just before][?|]",
            "[If I go|Going|When I go] one [down|back] from {n}[?|, where am I?|, what is it?]", "{n} [comes after|follows] [what|which number][?|]", "[Which|What] number does {n} [follow|come after][?|]", "[Who is|What is] the [left|lower] neighbour of {n}[?|]", "Before {n} [there is|comes] [what|which number][?|]")
    question = say(rng, ("[What comes|Which number comes|What number comes|Tell me what comes|Which number is|What number is|What is the number] "
                         + side + " {n}[?|]",) + (more if after else less), n=number(rng, n, words))
    if rng.random() < 0.3:
        question = say(rng, PLAIN_AFTER if after else PLAIN_BEFORE, n=number(rng, n, words))
    result = n + 1 if after else n - 1
    return question, upper_first(f"{number(rng, result, words)} comes {'after' if after else 'before'} {number(rng, n, words)}.")


def compare(rng):
    a, b = rng.sample(range(101), 2)
    if rng.random() < 0.4:
        b = min(100, max(0, a + rng.choice((-3, -2, -1, 1, 2, 3, 10, -10))))
        if a == b:
            return compare(rng)
    words = rng.random() < 0.5
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
                         "Out of {a} and {b}, which is the " + best + "[?|]", "What is " + how + "[:|,] {a} or {b}[?|]", "{a} [and|or|versus|vs] {b}[:|,|.] [the|which is the|what is the|tell me the] " + how + "[ one| number|][?|]",
                         "[The|Find the|Show me the|Choose the|I want the] " + how + " of {a} and {b}[?|.|, please.]", "[I have|There are|Here are|Look at] two numbers, {a} and {b}[.|:] [Which|which] [one |]is " + how + "[?|]",
                         "[I have {a}, you have {b}|She has {a}, he has {b}][.|:] [Which|which] number is " + how + "[?|]", "[Which would|What would] be [the |]" + how + ", {a} or {b}[?|]", "[The " + best + "|Which is the " + best + "] of {a} and {b}[?|]"), a=number(rng, a, words), b=number(rng, b, words))
    high, low = max(a, b), min(a, b)
    if large:
        return question, upper_first(f"{number(rng, high, words)} is larger.")
    return question, upper_first(f"{number(rng, low, words)} is smaller.")


def parity(rng):
    n = rng.randint(0, 100)
    words = rng.random() < 0.5
    kind = "even" if n % 2 == 0 else "odd"
    asked = rng.choice(("even", "odd"))
    x = number(rng, n, words)
    if rng.random() < 0.5:
        question = say(rng, ("Is {n} [even or odd|odd or even|an even or an odd number|an odd or an even number][?|]",
                             "{n}[: |, ][even or odd|odd or even][?|]",
                             "[Tell me|Say|I want to know] [whether|if] {n} is [even or odd|odd or even][.|]",
                             "[What kind of number is|Which is it,] {n}[: |, ][even or odd|odd or even][?|]", "[Even or odd|Odd or even][: |? |, ]{n}[?|.|]", "[Do you call|Would you call] {n} [even or odd|odd or even][?|]", "The number {n}[, |: ][even or odd|odd or even][?|]",
                             "[Can you tell me|Do you know] [whether|if] {n} is [an even or an odd number|even or odd|odd or even][?|]", "[Even|Odd] or not: {n}[?|]", "{n} is [even or odd|odd or even|what, even or odd|what, odd or even][?|]"), n=x)
        return upper_first(question), upper_first(f"{x} is {kind}.")
    question = say(rng, ("Is {n} {asked}[?|]", "Is {n} an {asked} number[?|]", "Is the number {n} {asked}[?|]",
                         "Is {n} [a number that is|one of the numbers that are] {asked}[?|]",
                         "Would you say {n} is {asked}[?|]",
                         "{n} is {asked}, [right|isn't it|true or not|correct]?", "[I think|They say|My friend says] {n} is {asked}[. Is that right?|, right?|. True?]", "Is it true that {n} is {asked}[?|]", "[Can|Could] {n} be {asked}[?|]",
                         "[Tell me|Say] [whether|if] {n} is {asked}[.|]", "[Does|Would] {n} [count as|belong to the] {asked}[ numbers|][?|]", "{n}: {asked}[, yes or no|][?|]"), n=x, asked=asked)
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


# What makes things fewer or more, in the past; {n} is who has them, {o} somebody else, {p} he or she.
LOST = ("{p} gave {y} to {o}", "{p} gave away {y}", "{p} lost {y}", "{p} sold {y}", "{p} broke {y}", "{p} dropped {y}", "{p} used {y}", "{p} lent {y} to {o}", "{p} threw {y} away", "{p} hid {y}", "{p} spent {y}", "{p} handed {y} to {o}", "{p} left {y} behind",
        "{o} took {y}", "{o} took {y} away", "{o} borrowed {y}", "{y} of them broke", "{y} of them were stolen", "{y} of them got lost", "{y} fell into the river", "the wind blew {y} away", "{y} of them disappeared", "{p} swapped {y} for a book", "{p} burnt {y}",
        "{o} stole {y}", "a dog ran off with {y}", "{p} donated {y}", "{p} mailed {y} to {o}", "{y} were eaten by mice", "{p} put {y} aside for {o}", "{p} forgot {y} on the bus", "{p} offered {y} to {o}, who took them")
GAINED = ("{p} found {y} more", "{p} bought {y} more", "{p} got {y} more", "{p} got {y} more from {o}", "{p} picked up {y} more", "{p} won {y} more", "{p} made {y} more", "{p} collected {y} more", "{p} was given {y} more", "{o} gave {h} {y} more", "{o} brought {y} more",
          "{o} added {y}", "{y} more came by post", "{o} lent {h} {y} more", "{p} received another {y}", "{p} earned {y} more", "{p} discovered {y} more in a drawer", "{p} found another {y}", "{o} handed {h} {y} more", "{p} took {y} more", "{p} added another {y}", "{p} was sent {y} by {o}",
          "{p} ordered {y} more", "{o} sold {h} {y} more", "{y} more were delivered", "{o} returned {y}")


SHE, HE = ("sister", "grandmother", "girl", "mother", "aunt"), ("brother", "boy", "father", "uncle")


def somebody(rng):
    """A name, known or made up."""
    return made.name(rng) if rng.random() < 0.5 else rng.choice(NAMES)


def tale(rng):
    """One step, told in the past, or the question first, or by what is missing."""
    thing, n, o = rng.choice(GOODS), somebody(rng), somebody(rng)
    later = n
    if rng.random() < 0.25:
        n = rng.choice(WHO)
        later = "the " + n[2:] if n.startswith("A ") else n[0].lower() + n[1:]
    if rng.random() < 0.3:
        o = rng.choice(("a friend", "a neighbour", "a child", "an old man", "a girl", "a boy", "somebody", "a stranger"))
    p, h = rng.choice((("she", "her"), ("he", "him")))
    if n.split()[-1] in SHE + HE:
        p, h = ("she", "her") if n.split()[-1] in SHE else ("he", "him")
    words, sign = rng.random() < 0.5, rng.choice("+-")
    a, b = rng.randint(2, 20), rng.randint(2, 20)
    if sign == "-":
        a, b = max(a, b), min(a, b)
    x, y = number(rng, a, words), number(rng, b, words)
    A, t = counted(a, thing, x), plural(thing)
    result = a + b if sign == "+" else a - b
    z = number(rng, result, words)
    kind, answer = rng.random(), _sum(rng, a, b, sign, words, result).rstrip(".")
    owner = "your " + later.split(" ", 1)[1] if later.startswith(("my ", "our ")) else later
    has = f"{answer}, so {owner} has {counted(result, thing, z)}."
    event = rng.choice(LOST if sign == "-" else GAINED).format(p=rng.choice((p, p, later)), h=h, o=o, y=y)
    if kind < 0.5:
        opening = say(rng, ("{N} had {A}[.|,]", "[This morning|Yesterday|At first|In the beginning|On Monday|Before lunch|Once|Last week] {l} had {A}[.|,]", "{N} [started|began|set out] with {A}[.|,]", "{N} [collected|bought|owned|picked|packed|counted|got|found|carried] {A}[.|,]",
                            "There were {A} in {N}'s [bag|basket|box|pocket|room|house].", "In {N}'s [bag|basket|box|room|house] there were {A}."), N=n, l=later, A=A)
        link = rng.choice((" and then ", " but " if sign == "-" else " and ", " then ")) if opening[-1] == "," else None
        if "'s" in opening and n in WHO:
            opening = opening.replace(n + "'s", later + "'s")
        told = opening + link + event + "." if link else opening + " " + say(rng, ("{e}.", "[Then|Later|In the evening|The next day|After that|At noon|On the way|So far so good, but then|Today] {f}."), e=upper_first(event), f=event)
        asks = ("How many {t} [does {l} have now|has {l} now|did {l} have then|did {l} have in the end|does {l} have in the end]", "How many [does {l} have now|has {p} now|does {p} have|were there in the end]", "What number of {t} has {l} now")
        left = ("How many {t} [are left|were left|remained|are still there|stayed|does {l} still have|does that leave|is {l} left with]", "How many [are left|remain|does {l} keep|stayed with {l}|does {p} still have]")
        total = ("How many {t} [are there now|is that in all|is that altogether|were there then|does that make|are there in total]", "[What is the total|What's the total|How many is that together|How many in all]")
        question = told + " " + say(rng, rng.choice(rng.choice((asks, left if sign == "-" else total))) + "[?|?|?|]", t=t, l=later, p=p)
        return question, has
    if kind < 0.75:
        frames = ("How many {t} [are left|remain|does {l} have left|does {l} still have] [if|when] {l} [has|had] {A} and [gives away|loses|sells|breaks|uses|drops] {y}[?|]", "{N} [sold|lost|gave away|broke|used|dropped] {y} of {h} {x} {t}. How many [are left|remain|does {l} still have][?|]",
                  "[Of|Out of] {A}, {y} [broke|got lost|are gone|were sold|were taken][.|:] [How many|how many] [are left|remain|are still there|has {l} still][?|]", "How many {t} remain of {A} after {l} [gives {y} away|sells {y}|loses {y}|takes {y} out][?|]", "{Y} {t} are [gone|lost|sold]. Before, {l} had {x}. How many are left[?|]",
                  "[After|When] {l} [had given away|had lost|had sold] {y} of {x} {t}, how many were [left|still there][?|]") if sign == "-" else (
                  "How many {t} does {l} have [if|when] {l} [has|had] {A} and [gets|finds|buys|wins|receives] {y} more[?|]", "How many {t} [has {l}|does {l} have] [in all|altogether|in total|now], with {x} [from before|from yesterday|at home] and {y} [from today|from {o}|in the bag][?|]",
                  "{N} [bought|found|got] {A} on Monday and {y} on Tuesday. How many [is that|are that together|did {p} [buy|find|get] in all|{t} is that][?|]", "{X} {t} [are|lie] in one [box|bag], {y} in another. How many {t} does {l} have [together|in all|altogether][?|]", "[First|In the morning] {l} [found|picked|made] {A}, [later|in the afternoon] {y} more. How many [is that|{t} in all|{t} together][?|]",
                  "With {A} of {p2} own and {y} from {o}, how many {t} [has {l}|does {l} have][?|]")
        question = say(rng, frames, t=t, l=later, N=n, A=A, y=y, Y=upper_first(y), x=x, X=upper_first(x), h="her" if p == "she" else "his", p2="her" if p == "she" else "his", o=o, p=p)
        return upper_first(question), has
    if kind < 0.87:
        if a == b or sign == "+":
            a, b = a + b, b
            a = min(a, 20) if a > 20 else a
            if a <= b:
                a = b + 1
            x, y, A = number(rng, a, words), number(rng, b, words), counted(a, thing, number(rng, a, words))
        question = say(rng, ("{N} [needs|wants|would like|must have] {A} [and|but] [has|already has|has only|got] {y}. How many [more does {l} need|are missing|more {t} must {l} get|does {l} still need][?|]", "How many {t} are missing if {l} needs {x} and has {y}[?|]",
                             "{N} has {y} {t}. How many [more are needed for|more does {l} need to have|are missing to make] {x}[?|]", "{N} has {A}, {o} has {y}. How many more [does {l} have|{t} does {l} have than {o}|has {l}][?|]"), N=n, l=later, A=A, y=y, x=x, t=t, o=o)
        z = number(rng, a - b, words)
        return question, f"{_sum(rng, a, b, '-', words, a - b).rstrip('.')}, so it is {z} more." if "than" in question or "more" in question else f"{_sum(rng, a, b, '-', words, a - b).rstrip('.')}, so {z} {'is' if a - b == 1 else 'are'} missing."
    question = say(rng, ("{o} has {A}. {N} has {y} {more}. How many {t} [has {l}|does {l} have][?|]", "{N} has {y} {more} {t} than {o}, who has {x}. How many [has {l}|does {l} have|are that][?|]", "{o} has {A}, and {l} has {y} {more} than that. How many {t} [has {l}|does {l} have][?|]"),
                   o=upper_first(o), N=n, l=later, A=A, x=x, y=y, t=t, more="more" if sign == "+" else "fewer")
    return question.replace("than " + upper_first(o), "than " + o), has


def each(rng):
    """Several have some each, told in other ways than a story does."""
    a, b, words = rng.randint(2, 10), rng.randint(2, 10), rng.random() < 0.5
    thing, n = rng.choice(GOODS), somebody(rng)
    x, y, t = number(rng, a, words), number(rng, b, words), plural(thing)
    question = say(rng, (
        "{X} [friends|children|people|guests|sisters|boys|girls|neighbours] [each bring|each have|each get|bring|carry|find] {y} {t}{each}. How many {t} [are there|is that|are there in all|is that altogether|do they have together][?|]",
        "How many {t} [are in|do I find in|are there in] {x} [boxes|bags|baskets|drawers|jars] [with|of] {y}[ {t}|] each[?|]", "[One|A|Each|Every] [box|bag|basket|jar] [holds|has|contains] {y} {t}. [{N} has {x} of them.|{N} buys {x}.|There are {x} such.] How many {t} is that[?|]",
        "{N} [buys|finds|makes|gets|sells|collects|paints] {y} {t} [a day|every day|each day|per day] for {x} days. How many {t} [is that|are that in all|does {N} have then|are there in the end][?|]", "[One|A|Each] {g} costs {y} coins. [What|How many coins|How much] [do {x} cost|must I pay for {x}|are {x}][?|]",
        "{N} gives {y} {t} to each of {x} [children|friends|neighbours|guests]. How many {t} [is that|does {N} give away|are needed|does {N} need][?|]", "{X} times {N} [brings|carries|gets|finds] {y} {t}. How many[ {t}|] is that[?|]", "{X} rows of {y} {t}[.|:] [How many|how many] {t} [is that|are there|in all][?|]",
        "For {x} guests {N} needs {y} {t} each. How many {t} is that[?|]", "[There are|I see|{N} counts] {x} [tables|shelves|plates|boxes|trees] with {y} {t} [on each|each]. How many {t} [are there|is that|in all|altogether][?|]"),
        X=upper_first(x), x=x, y=y, t=t, g=thing, N=n, each=" each")
    question = question.replace("each bring ", "bring ").replace("each have ", "have ").replace("each get ", "get ")
    noun = "coins" if "costs" in question else t
    return question, f"{_sum(rng, a, b, 'x', words, a * b).rstrip('.')}, so {'it is' if noun == 'coins' else 'there are'} {number(rng, a * b, words)} {noun}."


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
    kinds = (sums, sums, sums, sums, twice, neighbours, neighbours, compare, compare, parity, story, story, tale, tale, tale, each, placed, placed, gathered, three)
    return rng.choice(kinds)(rng)
