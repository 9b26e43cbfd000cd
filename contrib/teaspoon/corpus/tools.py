"""Tools: offered as JSON, called as JSON, and told about when their result is there.

A tool's name and its fields must be copied out of the offer, so most of the tools here are made up
anew for every document: whoever learned only a dozen names would call only these.
"""
from . import arithmetic, dates, lists, nature
from .phrase import a, number, say, upper_first
from .words import ANIMALS, GOODS, NAMES, PET_NAMES, SHORT, TOWNS

DEVICES = "lamp radio heater fan oven television printer alarm computer fridge kettle light camera music heating dishwasher".split()
TITLES = ("Blue River", "Morning Song", "Autumn Leaves", "The Old Mill", "Moonlight", "Summer Rain", "Little Star", "Silver Bells", "Green Hills", "Night Train", "Slow Dance", "Winter Waltz", "Red Kite", "Golden Days")
TOPICS = ("old clocks", "red foxes", "bread recipes", "train times", "apple trees", "boat trips", "the history of tea", "bees in winter", "wooden toys", "cheap flights", "good books", "garden tools", "stone bridges", "music lessons", "bicycle repair", "card games", "mushrooms", "paper planes")
TEXTS = ("I am late", "dinner is ready", "see you tomorrow", "call me back", "the train is on time", "happy birthday", "I will be there soon", "thank you for the book", "the door is open", "we are at home", "buy some milk", "good night", "I found the key", "come at six")
UNITS = ("metres", "feet", "kilograms", "pounds", "litres", "cups", "miles", "kilometres", "euros", "dollars", "inches", "grams", "hours", "minutes")


def word(rng):
    return rng.choice(rng.choice((SHORT, GOODS, list(ANIMALS))))


# name: (description, {field: (type, maker)}, how users ask, what a result may be)
FIXED = {
    "get_weather": ("The weather of a city.", {"city": ("string", lambda r: r.choice(TOWNS))},
                    ("[What is|What's|How is|How's] the weather [in|like in] {city}[?| today?| now?]", "[Is it|Does it] [warm|cold|raining|sunny|rain] in {city}[?| today?| now?]", "[Do I need|Should I take] [an umbrella|a coat|a hat] in {city}[?| today?]", "[Weather in|The weather in|Weather for] {city}[?|, please.|]", "[Tell me|Check|Look up|Find out] the weather [in|for|of] {city}[.|, please.|]", "[How warm|How cold] is it in {city}[?| now?]", "[I travel|I go|I am going] to {city}[. How is the weather?|, what will the weather be?]"),
                    lambda r: (f"{r.choice(('sunny', 'rain', 'cloudy', 'snow', 'windy', 'fog', 'clear'))}, {r.randint(-5, 35)} degrees",)),
    "get_time": ("The time in a city.", {"city": ("string", lambda r: r.choice(TOWNS))}, ("[What time is it|What is the time|What's the time|How late is it] in {city}[?| now?]", "[Tell me|Give me] the time in {city}[.|, please.|]", "[Time in|The time in] {city}[?|, please.]", "[Is it|Is it already] [late|night|morning|evening] in {city}[?]", "[I call|I want to call] somebody in {city}[. What time is it there?|, how late is it there?]"),
                 lambda r: (f"{r.randint(0, 23):02}:{r.randint(0, 59):02}",)),
    "add": ("Adds two numbers.", {"a": ("number", lambda r: r.randint(0, 999)), "b": ("number", lambda r: r.randint(0, 999))}, ("[What is|How much is|Calculate|Compute|Add up] {a} [plus|+|and] {b}[?|.|]", "[Add|Please add] {a} [and|to] {b}[.|]", "[The sum of|Sum of] {a} and {b}[?|, please.]", "{a} + {b}[?| =]"), None),
    "multiply": ("Multiplies two numbers.", {"a": ("number", lambda r: r.randint(2, 999)), "b": ("number", lambda r: r.randint(2, 99))}, ("[What is|How much is|Calculate|Compute] {a} [times|x|multiplied by] {b}[?|.|]", "[Multiply|Please multiply] {a} [by|with|and] {b}[.|]", "The product of {a} and {b}[?|, please.]", "{a} x {b}[?| =]"), None),
    "search": ("Searches the web.", {"query": ("string", lambda r: r.choice(TOPICS))}, ("[Search|Look|Please search] [the web |the internet |]for {query}[.|, please.|]", "[Find|Look up|Find me|Find out about] [something about |something on |pages about |]{query}[.|]", "[Search|Look up|Google]: {query}[.|]", "[I want|I need] to [know more|read|find something] about {query}[.|]", "[What can you find|What is there|Can you find anything] [about|on] {query}[?|]"),
               lambda r: (f"{r.randint(2, 90)} pages found", "three good pages", f"the best page is {word(r)} house")),
    "set_timer": ("Sets a timer.", {"minutes": ("integer", lambda r: r.randint(1, 90))}, ("[Set|Start|Please set|Can you set] a timer [for|of|to] {minutes} minutes[.|, please.|?|]", "[Timer|A timer], {minutes} minutes[.|, please.|]", "[Wake me|Tell me|Remind me|Ring] in {minutes} minutes[.|]", "[I need|I want] a timer [of|for] {minutes} minutes[.|]", "The [eggs|noodles|cake|tea] must have {minutes} minutes[.|, set a timer.]"), lambda r: ("the timer is set", "set", "done", "the timer runs")),
    "send_message": ("Sends a message to somebody.", {"to": ("string", lambda r: r.choice(NAMES)), "text": ("string", lambda r: r.choice(TEXTS))}, ("[Tell|Write to|Please tell] {to}[:| that] {text}[.|]", "[Send|Please send|Can you send] {to} [the message|a message]: {text}[.|]", "[Send|Write] a message to {to}: {text}[.|]", "[Send|Text|Message] {to}: {text}[.|]", "[Send|Write] \"{text}\" to {to}[.|, please.|]", "[Message|A message] [for|to] {to}: {text}[.|]"), lambda r: ("sent", "the message is sent", "delivered", "done")),
    "play_music": ("Plays a piece of music.", {"title": ("string", lambda r: r.choice(TITLES))}, ("[Play|Please play|Can you play|Put on] {title}[.|, please.|]", "[I want|I would like|I'd like] to hear {title}[.|]", "[Start|Play] the [song|piece|music] {title}[.|]", "[Music|Some music], please: {title}[.|]"), lambda r: ("playing", "it plays", "the music plays")),
    "turn_on": ("Turns a device on.", {"device": ("string", lambda r: r.choice(DEVICES))}, ("[Turn|Switch|Please turn|Can you turn|Please switch] on the {device}[.|, please.|]", "[Turn|Switch|Please turn] the {device} on[.|, please.|]", "The {device} on, please[.|]", "[I need|I want] the {device} [on|to be on][.|]", "[Make|Let] the {device} [run|go][.|]"), lambda r: ("on", "it is on", "done")),
    "turn_off": ("Turns a device off.", {"device": ("string", lambda r: r.choice(DEVICES))}, ("[Turn|Switch|Please turn|Can you turn|Please switch] off the {device}[.|, please.|]", "[Turn|Switch|Please turn] the {device} off[.|, please.|]", "The {device} off, please[.|]", "[I do not need|I don't need] the {device} [any more|now][.|, turn it off.]", "[The {device} is still on|I forgot the {device}], [turn it off|switch it off][.|]"), lambda r: ("off", "it is off", "done")),
    "convert": ("Converts an amount from one unit to another.", {"amount": ("number", lambda r: r.randint(1, 500)), "from": ("string", lambda r: r.choice(UNITS)), "to": ("string", lambda r: r.choice(UNITS))},
                ("[Convert|Please convert|Change|Turn|Can you convert] {amount} {from} [to|into] {to}[.|?|]", "[How many|How many] {to} [are|is] {amount} {from}[?|]", "[What is|What are|How much is] {amount} {from} in {to}[?|]", "{amount} {from} in {to}[?|, please.]"), None),
    "lookup_word": ("Looks up a word in the dictionary.", {"word": ("string", word)}, ("[Look up|Please look up|Find|Can you look up] [the word |]{word}[ in the dictionary| for me|][.|?|]", "[What does the dictionary say|What stands in the dictionary] [about|under|for] {word}[?|]", "[What does|What might] the word {word} mean[?|]", "[Dictionary|In the dictionary]: {word}[.|, please.|]", "[I want|I need] the meaning of [the word |]{word}[.|]"), lambda r: (f"a kind of {word(r)}", f"something for the {word(r)}", "a thing of every day")),
}
VERBS = {
    "find": "find|look for|search for|find me", "open": "open|please open", "close": "close|shut", "book": "book|reserve|order", "order": "order|buy|get me", "buy": "buy|order|get me", "paint": "paint", "get": "get|fetch|show me|tell me", "read": "read|read me|read out",
    "count": "count", "delete": "delete|remove|erase|throw away", "create": "create|make|make me", "start": "start|run|begin", "check": "check|look at|have a look at", "clean": "clean|tidy", "call": "call|ring|phone", "show": "show|show me|display", "move": "move|shift", "lock": "lock", "wash": "wash|clean", "print": "print|print out",
    "cancel": "cancel|call off", "rent": "rent|hire", "repair": "repair|fix|mend", "feed": "feed|give food to", "water": "water|give water to", "save": "save|store|keep", "load": "load", "track": "track|follow|trace"}
NOUNS = ("room table ticket book door window song picture recipe train bus flight hotel car bike file note list story photo box letter parcel game lesson film shop bank street house garden plant pet dish cake pizza coffee drink shirt shoe price stock map route bridge "
         "alarm event meeting task report page sheet card folder user account wall floor gate machine printer engine robot river lake island museum park school doctor team player score").split()
ASKED = {"price": "get_price", "height": "get_height", "age": "get_age", "length": "get_length", "weight": "get_weight", "size": "get_size", "capital": "get_capital", "distance": "get_distance", "population": "get_population", "temperature": "get_temperature", "author": "get_author", "owner": "get_owner", "score": "get_score", "address": "get_address", "number": "get_number", "colour": "get_colour", "date": "get_date", "status": "get_status", "balance": "get_balance", "level": "get_level", "speed": "get_speed", "result": "get_result", "menu": "get_menu", "name": "get_name"}


def made_up(rng):
    """A tool that nobody has seen: (name, entry as in FIXED)."""
    if rng.random() < 0.4:
        what = rng.choice(list(ASKED))
        field, maker = rng.choice((("city", lambda r: r.choice(TOWNS)), ("name", lambda r: r.choice(NAMES)), ("item", word), ("thing", word), ("animal", lambda r: r.choice(list(ANIMALS))), ("product", word), ("person", lambda r: r.choice(NAMES)), ("place", lambda r: r.choice(TOWNS)), ("town", lambda r: r.choice(TOWNS)), ("object", word)))
        name = rng.choice((ASKED[what], ASKED[what], f"find_{what}", what, f"{what}_of", f"lookup_{what}", f"{field}_{what}"))
        proper = field in ("city", "name", "person", "place", "town")
        x = "{" + field + "}" if proper else "[the |a |]{" + field + "}"
        extra = {"population": ("How many people live in " + x + "[?|]",), "price": ("[How much is|What does] " + x + " [cost|worth][?|]", "How expensive is " + x + "[?|]"), "age": ("How old is " + x + "[?|]",), "height": ("How [high|tall] is " + x + "[?|]",), "length": ("How long is " + x + "[?|]",), "weight": ("How [heavy is|much does] " + x + "[?|]",), "distance": ("How far is " + x + "[?|]", "How far is it to " + x + "[?|]"), "temperature": ("How [warm|hot|cold] is " + x + "[?|]",), "size": ("How [big|large] is " + x + "[?|]",), "speed": ("How fast is " + x + "[?|]",), "owner": ("[Who owns|To whom belongs] " + x + "[?|]",), "address": ("Where [is|does] " + x + " [live|to be found][?|]",)}.get(what, ())
        asks = ("[What is|What's|Tell me|Give me|Find|Show me|Get|Look up|I need|Please find] the " + what + " of " + x + "[?|.|, please.|]", "[Do you know|Can you tell me|Can you find|Could you look up] the " + what + " of " + x + "[?|]") + extra + extra
        return name, (rng.choice((f"The {what} of a {field}.", f"Gives the {what} of a {field}.", f"Finds the {what}.", f"Returns the {what} of a {field}.")), {field: ("string", maker)}, asks, lambda r: (str(r.randint(2, 900)), r.choice(NAMES), word(r)))
    verb, noun = rng.choice(list(VERBS)), rng.choice(NOUNS)
    ways = VERBS[verb]
    kind = rng.random()
    if kind < 0.45:
        field, maker, tail = rng.choice((("name", lambda r: r.choice(NAMES), " [called|named|of] {name}"), ("city", lambda r: r.choice(TOWNS), " in {city}"), ("town", lambda r: r.choice(TOWNS), " in {town}"), ("number", lambda r: r.randint(1, 99), " number {number}"), ("colour", lambda r: r.choice(("red", "blue", "green", "white", "black", "yellow")), " in {colour}"), ("id", lambda r: r.randint(1, 999), " [number |with the number |]{id}"), ("title", lambda r: r.choice(TITLES), " [called|named] {title}"), ("owner", lambda r: r.choice(NAMES), " of {owner}"), ("person", lambda r: r.choice(NAMES), " for {person}"), ("topic", lambda r: r.choice(TOPICS), " about {topic}"), ("day", lambda r: r.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")), " [on|for] {day}")))
        kinds = {field: ("integer" if field in ("number", "id") else "string", maker)}
        thing = "[the|a] " + noun + tail
    elif kind < 0.8:
        field = rng.choice(("item", "thing", noun, "what", "object", "target", "name"))
        kinds = {field: ("string", word)}
        thing = "[the|a|my] {" + field + "}"
        noun = rng.choice((noun, "thing", "item"))
    else:
        field = rng.choice(("item", "thing", "what"))
        second, maker, tail = rng.choice((("count", lambda r: r.randint(2, 20), None), ("city", lambda r: r.choice(TOWNS), " in {city}"), ("person", lambda r: r.choice(NAMES), " for {person}"), ("day", lambda r: r.choice(("Monday", "Tuesday", "Friday", "Sunday")), " on {day}")))
        kinds = {field: ("string", word), second: ("integer" if second == "count" else "string", maker)}
        thing = "{count} times the {" + field + "}" if tail is None else "[the|a] {" + field + "}" + tail
        noun = rng.choice((noun, "thing", "item"))
    name = rng.choice((f"{verb}_{noun}", f"{verb}_{noun}", f"{noun}_{verb}", f"{verb}_the_{noun}", f"do_{verb}", verb))
    asks = (f"[{ways}] " + thing + "[.|, please.|]", f"[Please|Can you|Could you|Would you] {verb} " + thing + "[.|?|]", f"[I want|I need|I would like] [you |]to {verb} " + thing + "[.|]", f"[It is time to|Help me to|We must] {verb} " + thing + "[.|]")
    return name, (rng.choice((f"{upper_first(verb)}s {a(noun)}.", f"{upper_first(verb)} {a(noun)}.", f"To {verb} {a(noun)}.", f"Can {verb} things.")), kinds, asks, lambda r: ("done", "ok", f"{noun} {verb}: done", str(r.randint(2, 99))))


def offer(name, entry):
    description, fields, *_ = entry
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": {field: {"type": kind} for field, (kind, _) in fields.items()}, "required": list(fields)}}}


def some_tools(rng, count):
    entries = {}
    while len(entries) < count:
        if rng.random() < 0.45:
            name = rng.choice(list(FIXED))
            entries[name] = FIXED[name]
        else:
            name, entry = made_up(rng)
            if name not in FIXED:
                entries[name] = entry
    return entries


def call(name, arguments):
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}


def told(rng, name, arguments, result):
    """What is said about a result."""
    if name == "get_weather":
        return say(rng, ("The weather in {c}: {r}.", "In {c} it is {r}.", "{c} has {r}."), c=arguments["city"], r=result)
    if name == "get_time":
        return say(rng, ("It is {r} in {c}.", "The time in {c} is {r}."), c=arguments["city"], r=result)
    if name == "add":
        return f"{arguments['a']} plus {arguments['b']} is {result}."
    if name == "multiply":
        return f"{arguments['a']} times {arguments['b']} is {result}."
    if name == "convert":
        return f"{arguments['amount']} {arguments['from']} are {result} {arguments['to']}."
    return say(rng, ("The result is: {r}.", "The answer is: {r}.", "Here it is: {r}.", "It says: {r}."), r=result)


def document(rng, surface):
    tools = some_tools(rng, rng.choice((1, 1, 2, 2, 3, 4)))
    name = rng.choice(list(tools))
    description, fields, asks, results = tools[name]
    messages = []
    if rng.random() < 0.22:
        for _ in range(20):
            question, answer = rng.choice((arithmetic.sums, nature.animals, nature.colours, dates.ask, lists.ask))(rng)
            if not ({"add", "multiply", "lookup_word", "convert", "search"} & set(tools)) and answer:
                return {"messages": [{"role": "user", "content": surface(rng, question)}, {"role": "assistant", "content": answer}],
                        "tools": [offer(*item) for item in tools.items()]}
            tools = some_tools(rng, 1)
    arguments = {field: maker(rng) for field, (_, maker) in fields.items()}
    question = upper_first(say(rng, asks, **arguments))
    if rng.random() < 0.3:
        question = surface(rng, question) if all(not isinstance(v, str) or v.islower() for v in arguments.values()) else question.rstrip(".?")
    messages += [{"role": "user", "content": question}, call(name, arguments)]
    if rng.random() < 0.4:
        if name == "add":
            result = str(arguments["a"] + arguments["b"])
        elif name == "multiply":
            result = str(arguments["a"] * arguments["b"])
        elif name == "convert":
            result = str(rng.randint(1, 900))
        else:
            result = rng.choice(results(rng))
        messages += [{"role": "tool", "content": result}, {"role": "assistant", "content": told(rng, name, arguments, result)}]
        if rng.random() < 0.2:
            messages += [{"role": "user", "content": say(rng, "[Thanks|Thank you|Good|Fine|Great][.|!|]")}, {"role": "assistant", "content": "You are welcome."}]
    return {"messages": messages, "tools": [offer(*item) for item in tools.items()]}
