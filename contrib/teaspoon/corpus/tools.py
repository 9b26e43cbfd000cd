"""Tools: offered as JSON, called as JSON, and told about when their result is there.

A tool's name and its fields must be copied out of the offer, so most of the tools here are made up
anew for every document: whoever learned only a dozen names would call only these.
"""
from . import arithmetic, dates, lists, nature, samovar, stories, talk, wide
from .phrase import a, listed, say, upper_first
from .words import ANIMALS, GOODS, SHORT

DEVICES = "lamp radio heater fan oven television printer alarm computer fridge kettle light camera music heating dishwasher".split()
MORE_DEVICES = "toaster mixer blender speaker tablet laptop screen projector pump sprinkler fountain vacuum robot washer dryer boiler ventilator siren doorbell router scanner coffee_machine dish_washer hair_dryer air_conditioner night_light freezer grill aquarium".split()
TITLES = ("Blue River", "Morning Song", "Autumn Leaves", "The Old Mill", "Moonlight", "Summer Rain", "Little Star", "Silver Bells", "Green Hills",
    "Night Train", "Slow Dance", "Winter Waltz", "Red Kite", "Golden Days")
TOPICS = ("old clocks", "red foxes", "bread recipes", "train times", "apple trees", "boat trips", "the history of tea", "bees in winter", "wooden toys",
    "cheap flights", "good books", "garden tools", "stone bridges", "music lessons", "bicycle repair", "card games", "mushrooms", "paper planes")
TEXTS = ("I am late", "dinner is ready", "see you tomorrow", "call me back", "the train is on time", "happy birthday", "I will be there soon",
    "thank you for the book", "the door is open", "we are at home", "buy some milk", "good night", "I found the key", "come at six")
UNITS = ("metres", "feet", "kilograms", "pounds", "litres", "cups", "miles", "kilometres", "euros", "dollars", "inches", "grams", "hours", "minutes")


def word(rng):
    return rng.choice(rng.choice((SHORT, GOODS, list(ANIMALS)))) if rng.random() < 0.5 else wide.word(rng)


def topic(rng):
    return rng.choice(TOPICS) if rng.random() < 0.2 else wide.topic(rng)


def title(rng):
    return rng.choice(TITLES) if rng.random() < 0.2 else wide.title(rng)


def message(rng):
    return rng.choice(TEXTS) if rng.random() < 0.2 else wide.sentence(rng)


def device(rng):
    kind = rng.random()
    return rng.choice(DEVICES) if kind < 0.4 else rng.choice(MORE_DEVICES) if kind < 0.75 else rng.choice(HOUSE + CREATURES + ["desk", "wall",
        "street"]) + " " + rng.choice(("lamp", "light", "fan", "radio", "heater")) if kind < 0.9 else wide.made_word(rng)


# name: (description, {field: (type, maker)}, how users ask, what a result may be)
FIXED = {
    "get_weather": ("The weather of a city.", {"city": ("string", wide.town)},
                    ("[What is|What's|How is|How's] the weather [in|like in] {city}[?| today?| now?]",
                        "[Is it|Does it] [warm|cold|raining|sunny|rain] in {city}[?| today?| now?]",
                        "[Do I need|Should I take] [an umbrella|a coat|a hat] in {city}[?| today?]",
                        "[Weather in|The weather in|Weather for] {city}[?|, please.|]",
                        "[Tell me|Check|Look up|Find out] the weather [in|for|of] {city}[.|, please.|]", "[How warm|How cold] is it in {city}[?| now?]",
                        "[I travel|I go|I am going] to {city}[. How is the weather?|, what will the weather be?]"),
                    lambda r: (f"{r.choice(('sunny', 'rain', 'cloudy', 'snow', 'windy', 'fog', 'clear'))}, {r.randint(-5, 35)} degrees",)),
    "get_time": ("The time in a city.", {"city": ("string", wide.town)},
        ("[What time is it|What is the time|What's the time|How late is it] in {city}[?| now?]", "[Tell me|Give me] the time in {city}[.|, please.|]",
        "[Time in|The time in] {city}[?|, please.]", "[Is it|Is it already] [late|night|morning|evening] in {city}[?]",
        "[I call|I want to call] somebody in {city}[. What time is it there?|, how late is it there?]"),
                 lambda r: (f"{r.randint(0, 23):02}:{r.randint(0, 59):02}",)),
    "add": ("Adds two numbers.", {"a": ("number", lambda r: r.randint(0, 999)), "b": ("number", lambda r: r.randint(0, 999))},
        ("[What is|How much is|Calculate|Compute|Add up] {a} [plus|+|and] {b}[?|.|]", "[Add|Please add] {a} [and|to] {b}[.|]",
        "[The sum of|Sum of] {a} and {b}[?|, please.]", "{a} + {b}[?| =]"), None),
    "multiply": ("Multiplies two numbers.", {"a": ("number", lambda r: r.randint(2, 999)), "b": ("number", lambda r: r.randint(2, 99))},
        ("[What is|How much is|Calculate|Compute] {a} [times|x|multiplied by] {b}[?|.|]", "[Multiply|Please multiply] {a} [by|with|and] {b}[.|]",
        "The product of {a} and {b}[?|, please.]", "{a} x {b}[?| =]"), None),
    "search": ("Searches the web.", {"query": ("string", topic)}, ("[Search|Look|Please search] [the web |the internet |]for {query}[.|, please.|]",
        "[Find|Look up|Find me|Find out about] [something about |something on |pages about |]{query}[.|]", "[Search|Look up|Google]: {query}[.|]",
        "[I want|I need] to [know more|read|find something] about {query}[.|]",
        "[What can you find|What is there|Can you find anything] [about|on] {query}[?|]"),
               lambda r: (f"{r.randint(2, 90)} pages found", "three good pages", f"the best page is {word(r)} house")),
    "set_timer": ("Sets a timer.", {"minutes": ("integer", lambda r: r.randint(1, 90))},
        ("[Set|Start|Please set|Can you set] a timer [for|of|to] {minutes} minutes[.|, please.|?|]", "[Timer|A timer], {minutes} minutes[.|, please.|]",
        "[Wake me|Tell me|Remind me|Ring] in {minutes} minutes[.|]", "[I need|I want] a timer [of|for] {minutes} minutes[.|]",
        "The [eggs|noodles|cake|tea] must have {minutes} minutes[.|, set a timer.]"), lambda r: ("the timer is set", "set", "done", "the timer runs")),
    "send_message": ("Sends a message to somebody.", {"to": ("string", wide.name), "text": ("string", message)},
        ("[Tell|Write to|Please tell] {to}[:| that] {text}[.|]", "[Send|Please send|Can you send] {to} [the message|a message]: {text}[.|]",
        "[Send|Write] a message to {to}: {text}[.|]", "[Send|Text|Message] {to}: {text}[.|]", "[Send|Write] \"{text}\" to {to}[.|, please.|]",
        "[Message|A message] [for|to] {to}: {text}[.|]"), lambda r: ("sent", "the message is sent", "delivered", "done")),
    "play_music": ("Plays a piece of music.", {"title": ("string", title)}, ("[Play|Please play|Can you play|Put on] {title}[.|, please.|]",
        "[I want|I would like|I'd like] to hear {title}[.|]", "[Start|Play] the [song|piece|music] {title}[.|]", "[Music|Some music], please: {title}[.|]"),
        lambda r: ("playing", "it plays", "the music plays")),
    "turn_on": ("Turns a device on.", {"device": ("string", device)}, ("[Turn|Switch|Please turn|Can you turn|Please switch] on the {device}[.|, please.|]",
        "[Turn|Switch|Please turn] the {device} on[.|, please.|]", "The {device} on, please[.|]", "[I need|I want] the {device} [on|to be on][.|]",
        "[Make|Let] the {device} [run|go][.|]"), lambda r: ("on", "it is on", "done")),
    "turn_off": ("Turns a device off.", {"device": ("string", device)}, ("[Turn|Switch|Please turn|Can you turn|Please switch] off the {device}[.|, please.|]",
        "[Turn|Switch|Please turn] the {device} off[.|, please.|]", "The {device} off, please[.|]",
        "[I do not need|I don't need] the {device} [any more|now][.|, turn it off.]",
        "[The {device} is still on|I forgot the {device}], [turn it off|switch it off][.|]"), lambda r: ("off", "it is off", "done")),
    "convert": ("Converts an amount from one unit to another.", {"amount": ("number", lambda r: r.randint(1, 500)), "from": ("string",
        lambda r: r.choice(UNITS)), "to": ("string", lambda r: r.choice(UNITS))},
                ("[Convert|Please convert|Change|Turn|Can you convert] {amount} {from} [to|into] {to}[.|?|]",
                    "[How many|How many] {to} [are|is] {amount} {from}[?|]", "[What is|What are|How much is] {amount} {from} in {to}[?|]",
                    "{amount} {from} in {to}[?|, please.]"), None),
    "lookup_word": ("Looks up a word in the dictionary.", {"word": ("string", word)},
        ("[Look up|Please look up|Find|Can you look up] [the word |]{word}[ in the dictionary| for me|][.|?|]",
        "[What does the dictionary say|What stands in the dictionary] [about|under|for] {word}[?|]", "[What does|What might] the word {word} mean[?|]",
        "[Dictionary|In the dictionary]: {word}[.|, please.|]", "[I want|I need] the meaning of [the word |]{word}[.|]"), lambda r: (f"a kind of {word(r)}",
        f"something for the {word(r)}", "a thing of every day")),
}
VERBS = {
    "find": "find|look for|search for|find me", "open": "open|please open", "close": "close|shut", "book": "book|reserve|order", "order": "order|buy|get me",
        "buy": "buy|order|get me", "paint": "paint", "get": "get|fetch|show me|tell me", "read": "read|read me|read out",
    "count": "count", "delete": "delete|remove|erase|throw away", "create": "create|make|make me", "start": "start|run|begin",
        "check": "check|look at|have a look at", "clean": "clean|tidy", "call": "call|ring|phone", "show": "show|show me|display", "move": "move|shift",
        "lock": "lock", "wash": "wash|clean", "print": "print|print out",
    "cancel": "cancel|call off", "rent": "rent|hire", "repair": "repair|fix|mend", "feed": "feed|give food to", "water": "water|give water to",
        "save": "save|store|keep", "load": "load", "track": "track|follow|trace"}
NOUNS = ("room table ticket book door window song picture recipe train bus flight hotel car bike file note list story photo box letter parcel game lesson film shop bank street house garden plant pet dish cake pizza coffee drink shirt shoe price stock map route bridge "
         "alarm event meeting task report page sheet card folder user account wall floor gate machine printer engine robot river lake island museum park school doctor team player score").split()
ASKED = {"price": "get_price", "height": "get_height", "age": "get_age", "length": "get_length", "weight": "get_weight", "size": "get_size",
    "capital": "get_capital", "distance": "get_distance", "population": "get_population", "temperature": "get_temperature", "author": "get_author",
    "owner": "get_owner", "score": "get_score", "address": "get_address", "number": "get_number", "colour": "get_colour", "date": "get_date",
    "status": "get_status", "balance": "get_balance", "level": "get_level", "speed": "get_speed", "result": "get_result", "menu": "get_menu",
    "name": "get_name"}


def made_up(rng):
    """A tool that nobody has seen: (name, entry as in FIXED)."""
    if rng.random() < 0.4:
        what = rng.choice(list(ASKED))
        field, maker = rng.choice((("city", wide.town), ("name", wide.name), ("item", word), ("thing", word), ("animal", lambda r: r.choice(list(ANIMALS))),
            ("product", word), ("person", wide.name), ("place", wide.town), ("town", wide.town), ("object", word)))
        name = rng.choice((ASKED[what], ASKED[what], f"find_{what}", what, f"{what}_of", f"lookup_{what}", f"{field}_{what}"))
        proper = field in ("city", "name", "person", "place", "town")
        x = "{" + field + "}" if proper else "[the |a |]{" + field + "}"
        extra = {"population": ("How many people live in " + x + "[?|]",), "price": ("[How much is|What does] " + x + " [cost|worth][?|]",
            "How expensive is " + x + "[?|]"), "age": ("How old is " + x + "[?|]",), "height": ("How [high|tall] is " + x + "[?|]",),
            "length": ("How long is " + x + "[?|]",), "weight": ("How [heavy is|much does] " + x + "[?|]",), "distance": ("How far is " + x + "[?|]",
            "How far is it to " + x + "[?|]"), "temperature": ("How [warm|hot|cold] is " + x + "[?|]",), "size": ("How [big|large] is " + x + "[?|]",),
            "speed": ("How fast is " + x + "[?|]",), "owner": ("[Who owns|To whom belongs] " + x + "[?|]",),
            "address": ("Where [is|does] " + x + " [live|to be found][?|]",)}.get(what, ())
        asks = ("[What is|What's|Tell me|Give me|Find|Show me|Get|Look up|I need|Please find] the " + what + " of " + x + "[?|.|, please.|]",
            "[Do you know|Can you tell me|Can you find|Could you look up] the " + what + " of " + x + "[?|]") + extra + extra
        return name, (rng.choice((f"The {what} of a {field}.", f"Gives the {what} of a {field}.", f"Finds the {what}.", f"Returns the {what} of a {field}.")),
            {field: ("string", maker)}, asks, (lambda r: (wide.name(r),)) if what in ("author", "owner", "name", "capital") else (lambda r: (wide.colour(r),
            )) if what == "colour" else lambda r: (str(r.randint(2, 9000)), str(r.randint(2, 99))))
    verb, noun = rng.choice(list(VERBS)), rng.choice(NOUNS)
    ways = VERBS[verb]
    kind = rng.random()
    if kind < 0.45:
        field, maker, tail = rng.choice((("name", wide.name, " [called|named|of] {name}"), ("city", wide.town, " in {city}"), ("town", wide.town, " in {town}"),
            ("number", lambda r: r.randint(1, 99), " number {number}"), ("colour", lambda r: r.choice(wide.COLOURS), " in {colour}"), ("id",
            lambda r: r.randint(1, 999), " [number |with the number |]{id}"), ("title", title, " [called|named] {title}"), ("owner", wide.name, " of {owner}"),
            ("person", wide.name, " for {person}"), ("topic", topic, " about {topic}"), ("day", lambda r: r.choice(("Monday", "Tuesday", "Wednesday",
            "Thursday", "Friday", "Saturday", "Sunday")), " [on|for] {day}")))
        kinds = {field: ("integer" if field in ("number", "id") else "string", maker)}
        thing = "[the|a] " + noun + tail
    elif kind < 0.8:
        field = rng.choice(("item", "thing", noun, "what", "object", "target", "name"))
        kinds = {field: ("string", word)}
        thing = "[the|a|my] {" + field + "}"
        noun = rng.choice((noun, "thing", "item"))
    else:
        field = rng.choice(("item", "thing", "what"))
        second, maker, tail = rng.choice((("count", lambda r: r.randint(2, 20), None), ("city", wide.town, " in {city}"), ("person", wide.name,
            " for {person}"), ("day", lambda r: r.choice(("Monday", "Tuesday", "Friday", "Sunday")), " on {day}")))
        kinds = {field: ("string", word), second: ("integer" if second == "count" else "string", maker)}
        thing = "{count} times the {" + field + "}" if tail is None else "[the|a] {" + field + "}" + tail
        noun = rng.choice((noun, "thing", "item"))
    name = rng.choice((f"{verb}_{noun}", f"{verb}_{noun}", f"{noun}_{verb}", f"{verb}_the_{noun}", f"do_{verb}", verb))
    asks = (f"[{ways}] " + thing + "[.|, please.|]", f"[Please|Can you|Could you|Would you] {verb} " + thing + "[.|?|]",
        f"[I want|I need|I would like] [you |]to {verb} " + thing + "[.|]", f"[It is time to|Help me to|We must] {verb} " + thing + "[.|]")
    return name, (rng.choice((f"{upper_first(verb)}s {a(noun)}.", f"{upper_first(verb)} {a(noun)}.", f"To {verb} {a(noun)}.", f"Can {verb} things.")), kinds,
        asks, lambda r: ("done", "ok", f"{noun} {verb}: done", str(r.randint(2, 99))))


# What more people say for the tools of FIXED, and how else their offers describe them.
MORE_ASKS = {
    "get_weather": ("[Will I need|Do I need|Must I take] [a coat|an umbrella|sunglasses|boots|gloves|a jacket] in {city}[?| tomorrow?| this week?]",
        "[How|What] is it [like |]outside in {city}[?|]",
        "[Is|Will] [the sun shining|it snowing|it windy|it foggy|it sunny|it cloudy|it nice] in {city}[?| today?]",
        "[I'm off|We drive|We fly|My train goes|My sister travels] to {city}[. What's the weather?|: how is the weather there?|. Is it cold there?|, is it warm there?]",
                    "{city}: [weather|how is the weather|sun or rain][?|, please|]",
                        "[What temperature|How many degrees] [is it|are there|does it have] in {city}[?|]",
                        "[Give me|Show me|I need|I want to know] the [weather|temperature|forecast] [in|for|of] {city}[.|, please.|]",
                        "[What do they have for weather|What weather do they have|What's it like|Can one swim outside] in {city}[?| today?]"),
    "get_time": ("[What|Which] [hour|time of day] is it in {city}[?| now?]", "{city}: [what time|how late|the time][?|, please|]",
        "[My friend|My aunt|A colleague|My son] [lives|is] in {city}[. What time is it there?|: is it night there?|, how late is it there now?]",
        "[I need|I want|Show me|Get|Look up] the [local |current |]time [in|of|for] {city}[.|, please.|]",
        "[Can|Could] [I|you] [call|tell me the time in] {city}[ now|][? How late is it there?|?]",
        "[What does the clock say|What do clocks show|What's the hour|Is it morning yet] in {city}[?|]"),
    "add": ("[Sum up|Put together|Total] {a} and {b}[.|]", "[What do|How much do] {a} and {b} [make|give|add up to][?|]",
        "[I have|There are] {a} and {b}: [how many together|what is the sum|how much in all][?|]",
        "[Can you|Could you|Would you] add {a} [and|to] {b}[?| for me?]", "{a} plus {b}[?| is?|, please|]", "[The total|Total] of {a} and {b}[?|, please.|]"),
    "multiply": ("[What do|How much do] {a} times {b} [make|give][?|]", "[Can you|Could you] multiply {a} [by|with|and] {b}[?| for me?]",
        "{a} times {b}[?| is?|, please|]", "[There are|I have] {a} boxes of {b}[: how many in all|. How many are that][?|]",
        "{a} [multiplied by|rows of|lots of] {b}[?|, please.|]"),
    "search": ("[Can you|Could you|Would you] [search|look|google] for {query}[?| on the web?| please?]",
        "[See|Check|Look] [online|on the web|on the internet|in the web] for {query}[.|]",
        "[What does the web|What does the internet] [say|know] about {query}[?|]", "[Search|Google|Web search] {query}[.|, please.| please|]",
        "[Do a search|Run a search|Make a web search|Start a search] [for|on] {query}[.|, please.|]",
        "[I am looking for|I'm interested in|Help me find|Show me pages on|Get me results for] {query}[.|, please search.|]",
        "[Search|Search the web] for \"{query}\"[.|]"),
    "set_timer": ("[Count|Count down] {minutes} minutes[.| for me.|]", "[{minutes} minutes|{minutes} min] [on the timer|timer|from now, ring], please[.|]",
        "[Let me know|Give a sign|Beep|Call me|Alert me|Ping me] [in|after] {minutes} minutes[.|, please.|]",
        "[My|The] [bread|soup|pizza|rice|egg|laundry|pie] [needs|takes|is ready in] {minutes} minutes[.|: set a timer.|, please tell me when.]",
        "[Put|Make it|Start] a timer[: | of ]{minutes} minutes[.|!|]",
        "[I|We] [nap|rest|wait|work] for {minutes} minutes[: set a timer.|, set the timer.|, then ring.]",
        "[Can|Could|Will] you [time|measure|set a timer for] {minutes} minutes[?| please?]"),
    "send_message": ("[Let|Please let] {to} know[:| that] {text}[.|]", "[Drop|Send|Shoot] {to} a [line|text|note|message]: {text}[.|]",
        "[Inform|Notify] {to}[:| that] {text}[.|]", "[I want|I need|I'd like] to [tell|write to|text] {to}: {text}[.|]",
        "[Can|Could|Would] you [tell|text|message|write to] {to}: {text}[?|]", "[Send|Pass|Give] {to} [this|this message|these words]: \"{text}\"[.|]",
        "To {to}: {text}[.|]", "[The message to|My message for|What I want to say to] {to} is: {text}[.|]"),
    "play_music": ("[Let me|Let us|I'd love to] hear {title}[.|, please.|!|]", "[Can|Could|Would] you [play|put on] {title}[?| for me?|, please?]",
        "[Play|Start|Put on] \"{title}\"[.|, please.|]", "[I am in the mood for|I feel like|Now|Next song:|Next,] {title}[.|, play it.|]",
        "[The song|The piece] {title}, please[.|]", "[Play|Play me] the [song|tune|piece|track] called {title}[.|]"),
    "turn_on": ("[Could you|Would you|Will you] [turn|switch] the {device} on[?| please?]", "[Put|Start|Power up|Activate] the {device}[.|, please.| now.]",
        "{device} on[!|.|, please.|]", "[It is dark|It is cold|I am here|I am home|It is too quiet]: [switch|turn] on the {device}[.|]",
        "[The {device} is off|The {device} does not run], [turn|switch] it on[.|, please.]", "[Get|Have] the {device} [going|running][.|, please.|]"),
    "turn_off": ("[Could you|Would you|Will you] [turn|switch] the {device} off[?| please?]",
        "[Stop|Kill|Shut down|Power off|Deactivate|Shut off] the {device}[.|, please.| now.]", "{device} off[!|.|, please.|]",
        "[It is bright|I go to bed|I am leaving|It is too loud|It is late]: [switch|turn] off the {device}[.|]",
        "[Nobody needs|We no longer need|I am done with] the {device}[.|, turn it off.|: switch it off.]"),
    "convert": ("{amount} {from} [to|into|as] {to}[.|?|, please.|]", "How many {to} do I get for {amount} {from}[?|]",
        "[Express|Give|Write|Show] {amount} {from} in {to}[.|, please.|]",
        "[I have|There are|It is|The recipe says] {amount} {from}[. How many {to} is that?|, what is that in {to}?|: convert it to {to}.]"),
    "lookup_word": ("[Define|Explain] [the word |]{word}[.|, please.|]", "[What is the meaning|What's the definition] of {word}[?|]",
        "[Check|See|Consult] the dictionary for {word}[.|]",
        "[I do not know|I have never heard|I don't understand|I read] the word {word}[.|: look it up.|. What is it?]",
        "[Can you|Could you] look {word} up[?| in the dictionary?| for me?]", "[Look up|Search] \"{word}\" in the dictionary[.|]"),
}
DESCRIBED = {
    "get_weather": ("Get the weather of a city", "Get the weather in a city", "Returns the current weather", "Weather report for a city",
        "Tells how the weather is"), "get_time": ("Get the time in a city", "Get the local time", "Returns the current time of a city",
        "Tells what time it is"),
    "add": ("Add two numbers", "The sum of two numbers", "Adds a and b"), "multiply": ("Multiply two numbers", "The product of two numbers",
        "Multiplies a by b"), "search": ("Search the web", "Find pages on the internet", "A web search", "Look something up on the web"),
        "set_timer": ("Set a timer", "Start a timer", "Rings after some minutes"),
    "send_message": ("Send a message", "Send a text to a person", "Send a message to someone"), "play_music": ("Play a song", "Play music",
        "Play a piece of music"), "turn_on": ("Turn a device on", "Switch on a device"), "turn_off": ("Turn a device off", "Switch off a device"),
        "convert": ("Convert units", "Convert between units", "Convert an amount"),
    "lookup_word": ("Look a word up", "Look up a word in the dictionary", "Find the meaning of a word", "Dictionary")}
HOUSE = "kitchen bathroom bedroom hall cellar attic garage office garden balcony library workshop".split()
CREATURES = "cat dog fish hamster rabbit parrot horse goat hen turtle pony donkey".split()


def _one_room(rng):
    return rng.choice(HOUSE) if rng.random() < 0.7 else wide.made_word(rng)


def _percent(rng):
    return rng.randint(1, 100)


def _day(rng):
    return rng.choice("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())


def errand(rng):
    """A tool for one thing, with fields that say what: (name, entry)."""
    pet, thing = rng.choice(CREATURES), rng.choice("door window gate curtain blind garage_door roof_window shutter".split())
    said = thing.replace("_", " ")
    number_, text = "integer", "string"
    return rng.choice((
        lambda: (f"feed_{pet}", (f"Feeds the {pet}.", {"grams": (number_, lambda r: r.randint(1, 500))},
            (f"[Feed|Please feed|Can you feed] the {pet} [with |]{{grams}} grams[.|?|, please.|]",
            f"[Give|Please give] the {pet} {{grams}} grams[ of food|][.|]", f"[The {pet} is hungry|Dinner for the {pet}]: {{grams}} grams[.|, please.|]",
            f"{{grams}} grams for [the|my] {pet}[.|, please.|]"), lambda r: ("fed", f"the {pet} has eaten", "done"))),
        lambda: (f"{(verb := rng.choice(('open', 'close', 'lock')))}_{thing}", (f"{upper_first(verb)}s a {said}.", {"room": (text, _one_room)},
            (f"[{upper_first(verb)}|Please {verb}|Can you {verb}|Could you {verb}] the {said} [in|of] the {{room}}[.|?|, please.|]",
            f"The {said} in the {{room}}: {verb} it[.|, please.|]", f"[I want|I need] the {said} of the {{room}} {verb}{'d' if verb[-1] == 'e' else 'ed'}[.|]"),
            lambda r: (f"{verb}{'d' if verb[-1] == 'e' else 'ed'}", "done"))),
        lambda: (rng.choice(("set_volume", "volume", "change_volume")), ("Sets how loud it is.", {rng.choice(("level", "percent", "volume")): (number_,
            _percent)}, None, lambda r: ("done", "the volume is set"))),
        lambda: (rng.choice(("set_brightness", "dim_light", "set_temperature", "set_heating", "set_speed")), None),
        lambda: (rng.choice(("add_to_list", "add_item", "shopping_add", "put_on_list")), ("Adds a thing to the shopping list.", {rng.choice(("item", "thing",
            "product")): (text, wide.object_)}, None, lambda r: ("added", "it is on the list"))),
        lambda: (rng.choice(("book_table", "reserve_table")), ("Books a table.", {(p := rng.choice(("people", "guests", "persons"))): (number_,
            lambda r: r.randint(1, 12)), (d := rng.choice(("day", "date"))): (text, _day)},
            (f"[Book|Reserve|Please book|Can you reserve|I need|I want] a table for {{{p}}} [people|persons|guests] [on|for] {{{d}}}[.|?|, please.|]",
            f"[On|This] {{{d}}} [we are|we come with] {{{p}}}: [book|reserve] a table[.|, please.|]"), lambda r: ("booked", f"table {r.randint(1, 40)}"))),
        lambda: (rng.choice(("book_train", "buy_ticket", "find_train", "book_flight")), ("Finds a way from one town to another.", {"from": (text, wide.town),
            "to": (text, wide.town)}, ("[I want|I need|I have|I would like] to [go|travel|get] from {from} to {to}[.|, please.|]",
            "[A ticket|One ticket|A seat|Book a seat] from {from} to {to}[.|, please.|]", "[How do I get|Bring me|Find a way|Take me] from {from} to {to}[?|]",
            "From {from} to {to}[.|, please.|?]"), lambda r: (f"{r.randint(5, 23)}:{r.randint(10, 59)}", f"{r.randint(9, 300)} euros",
            f"platform {r.randint(1, 20)}"))),
        lambda: (rng.choice(("call_person", "phone", "make_call", "call")), ("Calls a person.", {rng.choice(("name", "person", "who", "contact")): (text,
            wide.name)}, None, lambda r: ("it rings", "no answer", "busy"))),
        lambda: (rng.choice(("remind", "add_reminder", "set_reminder", "remember_task")), ("Reminds of something.", {rng.choice(("text", "task",
            "what")): (text, lambda r: say(r, ("[call|visit|write to|pay|thank|help] {n}", "[buy|clean|find|sell|mend|bring] the {t}",
            "[water the plants|feed the cat|pay the rent|go to the dentist|lock the door]"), n=wide.name(r), t=wide.object_(r))), (d := rng.choice(("day",
            "when"))): (text, _day)}, None, lambda r: ("done", "noted"))),
        lambda: (rng.choice(("add_note", "save_note", "write_note", "note")), ("Writes a note.", {rng.choice(("text", "note", "content")): (text,
            wide.sentence)}, None, lambda r: ("saved", "done", f"note {r.randint(2, 99)}"))),
        lambda: (rng.choice(("find_book", "play_film", "show_film", "read_book", "get_song", "find_recipe")), ("Finds something by its title.",
            {rng.choice(("title", "name", "called")): (text, wide.title)}, None, lambda r: ("found", f"shelf {r.randint(1, 99)}", "not there"))),
        lambda: (rng.choice(("add_contact", "new_guest", "register", "invite_guest")), ("Writes down a person.", {"name": (text, wide.name), "town": (text,
            wide.town)}, ("[Add|Register|Write down|Please add|Note] {name} from {town}[.|, please.|]",
            "{name} from {town} [is coming|is new|wants to come][: write it down.|, please add.|.]",
            "[New guest|New contact|A new one]: {name}, [from |]{town}[.|]"), lambda r: ("added", f"number {r.randint(2, 900)}"))),
        lambda: (rng.choice(("move_robot", "drive_robot", "walk")), ("Moves the robot.", {"direction": (text,
            lambda r: r.choice("left right forward back up down north south".split())), "steps": (number_, lambda r: r.randint(1, 50))},
            ("[Go|Move|Walk|Drive|Let the robot go|Move the robot] {steps} steps {direction}[.|, please.|]",
            "[Go|Move|Step] {direction} [by |]{steps} steps[.|]", "{steps} steps {direction}[.|, please.|]"), lambda r: ("done", "the robot is there"))),
        lambda: (rng.choice(("paint_wall", "colour_wall", "set_colour", "light_colour")), ("Gives something a colour.", {"room": (text, _one_room),
            rng.choice(("colour", "color")): (text, wide.colour)}, None, lambda r: ("done", "painted"))),
        lambda: (rng.choice(("translate", "say_in", "translate_text")), ("Translates a word.", {rng.choice(("word", "text")): (text, wide.word),
            (k := rng.choice(("language", "to"))): (text,
            lambda r: r.choice("French German Spanish Italian Polish Dutch Latin Greek Russian Turkish".split()))}, None, lambda r: (wide.made_word(r),))),
    ))()


def entry_of(rng):
    """errand() with its ways to ask filled in by the kind of its fields."""
    name, entry = errand(rng)
    if entry is None:
        what = {"set_brightness": "brightness", "dim_light": "light", "set_temperature": "temperature", "set_heating": "heating", "set_speed": "speed"}[name]
        field = rng.choice(("level", "value", "percent" if what not in ("temperature", "heating") else "degrees", "to"))
        return name, (f"Sets the {what}.", {field: ("integer", _percent)},
            (f"[Set|Put|Change|Bring|Please set|Can you set] the {what} to {{{field}}}[.|?|, please.|]",
            f"[I want|I need] the {what} [at|to be] {{{field}}}[.|]", f"{upper_first(what)} {{{field}}}[.|, please.|]",
            f"The {what} [should|must] be {{{field}}}[.|]"), lambda r: ("done", f"the {what} is set"))
    description, fields, asks, results = entry
    if asks:
        return name, entry
    one, two = ["{" + field + "}" for field in (list(fields) * 2)[:2]]
    asks = {"Sets how": (f"[Set|Put|Change|Turn|Please set] the volume to {one}[.|, please.|]", f"[Volume|Loudness][:| to|] {one}[.|, please.|]",
        f"[Make it|I want it] [as loud as|at volume] {one}[.|]"),
        "Adds a t": (f"[Put|Add|Write|Please put|Please add] [a |]{one} [on|to] [the|my] [shopping |]list[.|, please.|]",
        f"[I need|We need|I must buy|I want to buy] a {one}[.|: put it on the list.|]", f"Shopping list: {one}[.|]"),
            "Calls a ": (f"[Call|Phone|Ring|Please call|Can you call|Get me] {one}[.|?|, please.|]",
                f"[I want|I need|I have] to [speak to|talk to|call] {one}[.|]", f"Give {one} a [ring|call][.|, please.|]"),
                "Reminds ": (f"[Remind me|Tell me|Remember] on {two}: {one}[.|]", f"[Remind me|Please remind me|Do remind me] to {one} on {two}[.|, please.|]",
                f"On {two} I [must|have to|want to] {one}[: remind me.|, remind me.|.]"),
            "Writes a": (f"[Note|Write down|Make a note|Take a note|Note down|Save this]: {one}[.|]",
                f"[Write|Save|Keep] [a note|the note|a note that says]: {one}[.|]", f"[Please note|Note]: \"{one}\"[.|]"),
                "Finds so": (f"[Find|Get|Look for|Search|Show me|I am looking for|I want|Can you find] {one}[.|, please.|]",
                f"[Where is|Do you have|Is there] {one}[?|]", f"[The one called|It is called|The title is] {one}[.|]"),
            "Gives so": (f"[Make|Paint|Colour|Please make|Can you make] the {one} {two}[.|, please.|]",
                f"[I want|I would like] the {one} [in |to be |]{two}[.|]", f"{two} for the {one}[.|, please.|]"),
                "Translat": (f"[Translate|Please translate|Can you translate] {one} [into|to] {two}[.|]",
                f"[What is|What's|How do you say|How do they say] {one} in {two}[?|]", f"{one} in {two}[?|, please.|]")}[description[:8]]
    return name, (description, fields, asks, results)


SAID = {"a": "the first number", "b": "the second number", "to": "where to", "from": "where from", "query": "what to look for", "text": "what to say"}


def offer(rng, name, entry):
    description, fields, *_ = entry
    if rng.random() < 0.6 and name in DESCRIBED:
        description = rng.choice(DESCRIBED[name])
    if rng.random() < 0.35:
        description = description.rstrip(".")
    explained = rng.random() < 0.08
    properties = {field: {"type": kind, **({"description": SAID.get(field, "the " + field)} if explained else {})} for field, (kind, _) in fields.items()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(fields)}}}


# Parts of names that say nothing about what a tool does, and tools that could do each other's work.
EMPTY = ("thing", "item", "the", "do", "of", "get", "set", "add", "to", "on")
LIKE = (("search", "find", "lookup", "look", "show", "book", "read", "song", "film", "recipe", "play", "track", "check", "load"), ("word", "translate", "say",
    "in"), ("turn", "light", "start", "heating", "temperature", "brightness", "open", "load"),
        ("message", "call", "phone", "contact", "note", "remind", "reminder", "remember", "save", "print"), ("timer", "remind", "reminder", "alarm",
            "remember"), ("weather", "temperature"), ("time", "date"), ("order", "buy", "book", "list", "ticket", "reserve", "shopping"),
        ("colour", "paint", "wall"), ("volume", "music"), ("guest", "register", "contact", "invite"), ("open", "lock", "close", "door", "window", "gate"),
            ("number", "address", "phone"), ("move", "walk", "drive"))


def alike(one, other):
    """Could a question for one tool be meant for the other?"""
    parts = [[part for part in name.split("_") if part not in EMPTY] for name in (one, other)]
    return bool(set(parts[0]) & set(parts[1])) or any(any(part in group for part in parts[0]) and any(part in group for part in parts[1]) for group in LIKE)


def some_tools(rng, count):
    entries = {}
    for _ in range(40):
        kind = rng.random()
        name = rng.choice(list(FIXED))
        entry = FIXED[name]
        if kind >= 0.45:
            name, entry = entry_of(rng) if kind < 0.68 else made_up(rng)
            if name in FIXED:
                continue
        if not any(alike(name, other) and not {name, other} <= set(FIXED) or name == other for other in entries):
            entries[name] = entry
        if len(entries) == count:
            break
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
    if name == "search":
        return say(rng, ("The search for {q} says: {r}.", "About {q}: {r}.", "I found: {r}.", "The result is: {r}."), q=arguments["query"], r=result)
    if name == "lookup_word":
        return say(rng, ("A {w} is {r}.", "The word {w} means: {r}.", "The dictionary says: {r}."), w=arguments["word"], r=result)
    if name in ("turn_on", "turn_off"):
        return say(rng, ("The {d} is {o}.", "Done, the {d} is {o}."), d=arguments["device"], o=name[5:])
    if name == "send_message":
        return say(rng, ("The message to {t} is sent: {r}.", "Your message to {t}: {r}.", "It says: {r}."), t=arguments["to"], r=result)
    if name == "set_timer":
        return say(rng, ("The timer of {m} minutes: {r}.", "{m} minutes: {r}.", "It says: {r}."), m=arguments["minutes"], r=result)
    if name == "play_music":
        return say(rng, ("{t}: {r}.", "It says: {r}."), t=arguments["title"], r=result)
    what = next((w for w in ASKED if w in name), None)
    if what and len(arguments) == 1 and rng.random() < 0.7:
        return say(rng, ("The {w} of {x} is {r}.", "The {w} of {x}: {r}."), w=what, x=next(iter(arguments.values())), r=result)
    if rng.random() < 0.3:
        return say(rng, ("For {x} it says: {r}.", "The answer for {x}: {r}."), x=listed([str(v) for v in arguments.values()]), r=result)
    return say(rng, ("The result is: {r}.", "The answer is: {r}.", "Here it is: {r}.", "It says: {r}."), r=result)


# With only these offered, news and presidents stay unknown.
HANDY = ("set_timer", "send_message", "play_music", "turn_on", "turn_off", "feed", "open", "close", "lock", "volume", "brightness", "note", "reserve")


def unhelped(rng, tools):
    """A question that none of the tools helps with: (question, answer)."""
    if all(any(part in name for part in HANDY) for name in tools) and rng.random() < 0.4:
        return talk.unknown(rng)
    if {"add", "multiply", "lookup_word", "convert", "search"} & set(tools):
        return talk.small(rng) if rng.random() < 0.5 else stories.wanted(rng) if rng.random() < 0.3 else nature.animals(rng)
    return rng.choice((arithmetic.sums, arithmetic.ask, nature.animals, nature.colours, dates.ask, lists.ask, lists.ask, samovar.ask, talk.small,
        stories.about))(rng)


def typed(rng, surface, question, arguments):
    """As a person types it; what has to be copied stays as it is."""
    values = [str(value) for value in arguments.values()]
    if rng.random() < 0.45:
        new = surface(rng, question)
        if all(value in new for value in values):
            return new
    return question.rstrip(".?") if rng.random() < 0.2 else question


def document(rng, surface):
    tools = some_tools(rng, rng.choice((1, 1, 2, 2, 3, 4)))
    offers = [offer(rng, *item) for item in tools.items()]
    if rng.random() < 0.2:
        question, answer = unhelped(rng, tools)
        return {"messages": [{"role": "user", "content": surface(rng, question)}, {"role": "assistant", "content": answer}], "tools": offers}
    name = rng.choice(list(tools))
    messages = []
    if rng.random() < 0.06:
        question, answer = talk.small(rng)
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    again = rng.random()
    messages += used(rng, surface, name, tools[name], again < 0.5)
    if again < 0.07:
        # The same again with other values, or another tool.
        name = rng.choice((name, rng.choice(list(tools))))
        messages += used(rng, surface, name, tools[name], rng.random() < 0.4)
    elif again < 0.11:
        messages += [{"role": "user", "content": say(rng, "[Thanks|Thank you|Good|Fine|Great][.|!|]")}, {"role": "assistant", "content": "You are welcome."}]
    elif again < 0.14:
        question, answer = unhelped(rng, tools)
        messages += [{"role": "user", "content": surface(rng, question)}, {"role": "assistant", "content": answer}]
    return {"messages": messages, "tools": offers}


def used(rng, surface, name, entry, result_too):
    """A question, the call, and perhaps what comes of it."""
    _, fields, asks, results = entry
    arguments = {field: maker(rng) for field, (_, maker) in fields.items()}
    while "from" in arguments and arguments["from"] == arguments["to"]:
        arguments["to"] = fields["to"][1](rng)
    if name in FIXED and rng.random() < 0.5:
        asks = MORE_ASKS[name]
    question = upper_first(say(rng, asks, **arguments))
    messages = [{"role": "user", "content": typed(rng, surface, question, arguments)}, call(name, arguments)]
    if result_too:
        if name == "add":
            result = str(arguments["a"] + arguments["b"])
        elif name == "multiply":
            result = str(arguments["a"] * arguments["b"])
        elif name == "convert":
            result = str(rng.randint(1, 900))
        else:
            result = rng.choice(results(rng))
        messages += [{"role": "tool", "content": result}, {"role": "assistant", "content": told(rng, name, arguments, result)}]
    return messages
