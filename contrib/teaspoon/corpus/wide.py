"""Values to be copied: half of them from long lists, half made up, so that nobody can learn them by heart.

What is told to the model and asked for again (a name, a town, where the key lies) can be answered only by
reading it in the conversation, if the values are too many to be remembered.
"""
from . import made
from .phrase import a, say, spelled, upper_first
from .words import COLOURS, GOODS, HIDING, NAMES, PET_NAMES, SHORT, STORY_THINGS, TOWNS

MORE_NAMES = (
    "Aaron Abdul Adele Agnes Ahmed Aisha Alan Albert Alex Alice Alma Amir Amira Andrew Anja Anita April Arno Arthur Astrid August Aurora "
    "Barbara Basil Beatrice Bella Benno Bernard Berta Betty Bianca Bjorn Bruno Carla Carmen Cecil Celia Charles Chiara Chloe Claude Colin "
    "Daisy Dalia Daphne Darius David Deborah Denise Diana Diego Dmitri Donald Doris Edgar Edith Eduardo Eileen Elena Eli Elias Elin Elsa Enzo Eric "
    "Erna Esther Ethan Eugene Fabian Farid Fatima Fiona Frank Freya Frida Gabriel Gerda Gina Giulia Gloria Gordon Greta Gustav Hassan Hazel Hector Heidi "
    "Helen Henrik Henry Hilda Horst Ian Ilse Imran Inga Ingrid Irene Isabel Ismail Jakob James Jasmin Jasper Javier Jens Joan Jonas Jorge Josef Joyce Juan "
    "Judith Jules Kamal Karin Kaspar Katya Kenji Kenneth Kirsten Klara Klaus Konrad Kurt Larissa Lars Laura Layla Leila Leonard Lewis Lisbeth Lorenz Louise "
    "Luca Ludwig Luis Lydia Magda Malik Manuel Marcel Margaret Mario Martin Matilda Maud Maurice Mehmet Melanie Michael Miguel Mikael Milan Milo Minna Miriam "
    "Mohamed Moritz Naomi Natasha Nathan Nelly Nico Niels Noah Noor Norbert Odette Olaf Oliver Omar Orla Osman Otis Paloma Patrick Paula Pearl Pedro Penny "
    "Philip Piotr Priya Quentin Rachel Rafael Ralph Ramona Rana Raymond Rebecca Regina Rene Ricardo Richard Robert Robin Roger Roland Roman Ronja Rory "
    "Rosalind Rupert Sabine Said Salma Samira Sandra Saskia Sebastian Selma Sergei Sheila Sigrid Silas Silvia Stefan Steven Sunita Susan Svetlana Sylvester "
    "Takeshi Tamara Tariq Teresa Thea Thomas Tilda Tobias Trudy Ulla Ulrich Ursula Valentin Vanessa Vernon Victoria Viktor Vincent Viola Walter Wendy Werner "
    "Wilhelm Willa Winona Xavier Yasmin Yuki Yusuf Yves Zara Zelda").split()
MORE_TOWNS = (
    "Aachen Aberdeen Accra Amsterdam Ankara Antwerp Augsburg Austin Baku Bangkok Barcelona Basel Bath Bergen Bilbao Bogota Bologna Bonn Bremen Brighton Bristol "
    "Bruges Brussels Budapest Calgary Cambridge Canberra Cardiff Cologne Copenhagen Cork Dakar Dallas Denver Dover Dresden Durban Edinburgh Essen Exeter "
    "Florence Freiburg Galway Gdansk Genoa Ghent Glasgow Graz Hanoi Havana Houston Innsbruck Istanbul Izmir Jakarta Kassel Kiel Kiev Krakow Leipzig Lille "
    "Linz Liverpool Lucerne Lund Luxor Mainz Malaga Malmo Manila Marseille Melbourne Memphis Montreal Mumbai Nantes Nice Norwich Odessa Osaka Ottawa Palermo "
    "Perth Pisa Potsdam Reims Rostock Rotterdam Salzburg Santiago Seoul Seville Sheffield Siena Split Stockholm Stuttgart Sydney Tampere Tbilisi Toledo "
    "Trieste Tunis Ulm Uppsala Utrecht Valencia Verona Vilnius Weimar Wellington Winchester Worms Zagreb").split()
MORE_PETS = (
    "Amber Apollo Archie Bandit Barney Bear Bertie Blue Bonnie Boots Bramble Buddy Bumble Buster Caramel Chester Chip Clover Cookie Crumble Daisy Dusty Echo Felix "
    "Fidget Flash Flip Frosty Fuzzy Gizmo Goldie Hazel Hoppy Jasper Jelly Jinx Juno Lola Luna Maple Marble Milo Mocha Monty Moose Muffin Nala Nemo Nutmeg Olive "
    "Oreo Oscar Peanut Pebbles Pickles Pixie Pumpkin Quackers Rascal Ruby Sandy Scout Simba Sky Socks Sprout Squeak Stripes Sugar Sunny Taffy Thunder Tinker "
    "Toby Truffle Turbo Twix Velvet Willow Winnie Wolfie Zorro").split()
JOBS = (
    "baker teacher doctor nurse farmer painter cook pilot driver carpenter plumber gardener singer dancer writer lawyer tailor butcher fisherman sailor "
    "miner mason librarian dentist engineer programmer waiter postman firefighter policeman potter shoemaker hairdresser builder actor judge clerk "
    "beekeeper blacksmith musician translator vet weaver watchmaker photographer electrician chemist florist cleaner student judge reporter").split()
FOODS = (
    "pizza,soup,bread,rice,pasta,noodles,pancakes,cheese,fried eggs,tomato soup,apple pie,potato salad,fish and chips,dumplings,lasagne,curry,porridge,"
    "chocolate cake,ice cream,salad,sausages,toast,pea soup,omelette,waffles,burgers,tacos,sushi,stew,beans,goulash,risotto,couscous,cherry cake,yoghurt,"
    "honey,popcorn,mushrooms,spinach,strudel,biscuits,onion soup,roast chicken,lentils,falafel,carrot cake,mango,olives,nuts,raisins,jam").split(",")
DRINKS = "tea coffee milk water lemonade cocoa juice cider soda cola wine beer buttermilk".split() + [
    "apple juice", "green tea", "hot chocolate", "mint tea", "orange juice", "iced tea", "grape juice", "ginger ale", "cold milk", "black coffee"]
HOBBIES = (
    "chess,swimming,painting,reading,cycling,running,cooking,knitting,sailing,dancing,singing,fishing,hiking,football,tennis,skating,gardening,drawing,"
    "climbing,photography,rowing,pottery,juggling,yoga,baking,stamp collecting,skiing,riding,card games,puzzles,archery,woodwork,origami,surfing,golf,judo").split(",")
INSTRUMENTS = "piano violin flute guitar drums trumpet cello harp organ accordion clarinet saxophone banjo trombone oboe harmonica".split()
MORE_COLOURS = "turquoise violet silver golden beige crimson scarlet magenta cyan indigo lilac cream maroon olive teal mint".split()
OBJECTS = (
    "key hat book lamp watch phone bag ring letter map ticket cup pen glove scarf ball shoe box knife coin coat wallet camera purse umbrella spoon notebook "
    "passport hammer rope torch candle brush comb mirror pillow blanket bottle jar plate fork bucket basket broom kettle flute whistle compass ruler pencil eraser "
    "sticker marble button needle thread ribbon necklace bracelet crown helmet backpack suitcase envelope postcard diary calendar magnet battery charger "
    "cable laptop tablet remote radio kite drum doll puzzle balloon trumpet violin guitar bell clock vase bowl pan pot teapot mug towel soap sponge toothbrush jacket "
    "sweater sock boot belt tie apron mask feather shell stone acorn pinecone rose tulip cactus egg pie cake pear peach melon pumpkin saddle anchor oar paddle net "
    "hook lantern ladder spade rake saw drill screwdriver wrench chisel axe bolt spring wheel tyre pump flag banner poster painting photo statue medal trophy stamp "
    "cushion rug curtain stool chair tray lid cork straw napkin parcel sack barrel crate chest trunk cart sledge scooter skateboard telescope microscope magnifier "
    "parachute tent hammock quilt shawl cloak glasses scissors").split()
PLURAL_ONLY = ("glasses", "scissors")
_SPOTS = ("bed table chair sofa desk shelf cupboard drawer wardrobe fridge oven stove sink bath door window curtain carpet rug lamp clock piano mirror fireplace stairs bench "
          "basket box bucket bag backpack suitcase chest barrel crate trunk jar vase teapot pillow blanket mat tree hedge shed garage attic cellar kitchen bathroom hall "
          "garden greenhouse barn car van boat tent letterbox locker safe bookcase dresser cradle wheelbarrow washing machine").replace("washing machine",
              "washing_machine").split()
_INSIDE = set("shelf cupboard drawer wardrobe fridge oven sink bath basket box bucket bag backpack suitcase chest barrel crate trunk jar vase teapot shed garage attic cellar "
              "kitchen bathroom hall garden greenhouse barn car van boat tent letterbox locker safe bookcase dresser cradle wheelbarrow washing_machine".split())
_ROOMS = set("shed garage attic cellar kitchen bathroom hall garden greenhouse barn tent".split())
_WHICH = "red blue green yellow white black brown grey old new big small wooden top little round".split()
SCENES = (
    "at the bridge,in the garden,on the hill,by the river,at the market,in the kitchen,in the forest,on the beach,at school,in the barn,near the mill,at the lake,in the tower,"
    "on the roof,under a tree,behind the house,at the station,in the street,in the cellar,in the library,at the harbour,in the cave,on the island,in the valley,by the well,"
    "in the church,in the park,at the bakery,in the attic,on the ship,on the train,in the castle,near the pond,in the museum,at the zoo,in the desert,by the fire,on the stairs,"
    "behind the barn,in the meadow,near the sea,at the fair,in the hotel,on the balcony,in the classroom,at the airport,under the bridge,in the stable,beside the road,"
    "at the theatre,in the swamp,on the farm,in the mine,at the post office,in the shop,by the waterfall,in the tent,on the square,near the lighthouse,in the corridor").split(",")


def name(rng):
    kind = rng.random()
    return rng.choice(NAMES) if kind < 0.30 else rng.choice(MORE_NAMES) if kind < 0.60 else upper_first(made.name(rng))


def names(rng, count):
    """Different ones."""
    found = []
    while len(found) < count:
        new = name(rng)
        if new not in found:
            found.append(new)
    return found


def town(rng):
    kind = rng.random()
    return rng.choice(TOWNS) if kind < 0.30 else rng.choice(MORE_TOWNS) if kind < 0.60 else upper_first(made.town(rng))


def pet(rng):
    kind = rng.random()
    return rng.choice(PET_NAMES) if kind < 0.25 else rng.choice(MORE_PETS) if kind < 0.55 else upper_first(made.name(rng)) if kind < 0.85 else upper_first(made.word(rng))


def made_word(rng):
    return made.word(rng).lower()


def thing(rng):
    """A thing one can have, in the singular, without an article."""
    kind = rng.random()
    if kind < 0.86:
        return rng.choice(OBJECTS if kind < 0.6 else GOODS if kind < 0.7 else STORY_THINGS if kind < 0.8 else SHORT) if kind < 0.8 else rng.choice(GOODS)
    return made_word(rng)


def object_(rng):
    """Something one puts somewhere."""
    return rng.choice([word for word in OBJECTS if word not in PLURAL_ONLY]) if rng.random() < 0.88 else made_word(rng)


def things(rng, count):
    found = []
    while len(found) < count:
        new = object_(rng)
        if new not in found:
            found.append(new)
    return found


def word(rng):
    kind = rng.random()
    return rng.choice(SHORT) if kind < 0.3 else rng.choice(OBJECTS) if kind < 0.5 else made_word(rng)


def colour(rng):
    return rng.choice(COLOURS) if rng.random() < 0.7 else rng.choice(MORE_COLOURS)


def spot(rng):
    """Where a thing can lie."""
    if rng.random() < 0.2:
        return rng.choice(HIDING)
    place = rng.choice(_SPOTS)
    ways = ("in", "in", "in", "behind", "under", "on", "next to") if place in _INSIDE else ("on", "under", "behind", "next to", "beside", "near")
    way = rng.choice(("in", "in", "behind", "near") if place in _ROOMS else ways)
    return f"{way} the {rng.choice(_WHICH) + ' ' if rng.random() < 0.35 else ''}{place.replace('_', ' ')}"


def scene(rng):
    return rng.choice(SCENES) if rng.random() < 0.85 else "in " + town(rng)


def street(rng):
    first = rng.choice(("Oak", "Mill", "Church", "River", "Garden", "Station", "Elm", "Bridge", "High", "Castle", "Rose", "Park", "Market", "Hill", "School",
        "Harbour")) if rng.random() < 0.4 else town(rng)
    return f"{first} {rng.choice(('Street', 'Street', 'Road', 'Lane', 'Square'))}"


def clock(rng):
    """A time of the day as people say it."""
    return rng.choice((str(rng.randint(1, 12)), f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}", f"half past {spelled(rng.randint(1, 12))}",
        f"{spelled(rng.randint(1, 12))} o'clock",
                       f"{rng.randint(1, 12)} o'clock", f"quarter to {spelled(rng.randint(1, 12))}", f"{rng.randint(1, 12)} pm"))


def sentence(rng):
    """A text that somebody sends to somebody."""
    t, c, p, s, n, k = object_(rng), colour(rng), town(rng), spot(rng), name(rng), clock(rng)
    return say(rng, (
        "[I am|we are|I will be] [late|on the way|at home|in {p}|ready|already there|nearly there|waiting at the station]",
            "[dinner|lunch|the cake|the {t}|your {t}|the soup|tea] is ready", "the {t} is {s}",
        "[see|call|meet] [you|me|us] [at {k}|tomorrow|in {p}|later|on {d}]", "[please |]bring [the|a|your] {c} {t}",
            "[buy|get|bring|fetch] [some |][milk|bread|eggs|apples|tea|a {t}|two {t}s]", "happy birthday[| {n}]",
        "I [found|lost|forgot|need|have] [the|my|your|a] {t}", "{n} is [coming|here|ill|late|asking for you|back from {p}]",
            "the train [leaves|comes|is] at {k}", "[the meeting|the party|the lesson|dinner|the film] [starts|begins|is] at {k}",
        "[good night|good luck|well done|many thanks|thank you for the {t}|get well soon|no, thanks|yes, please|I miss you|all is well]",
            "do not forget the {t}", "the {c} {t} is for {n}", "can you [come|help me|call {n}|bring the {t}]",
        "we [meet|eat|leave|start] at {k} in {p}", "I [leave|come|arrive] on {d}", "the [door|window|shop|gate] is [open|closed|locked]"),
        t=t, c=c, p=p, s=s, n=n, k=k, d=rng.choice("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()))


def topic(rng):
    """What somebody looks for."""
    t, c, p, n = object_(rng), colour(rng), town(rng), name(rng)
    return say(rng, (
        "[old|red|cheap|wooden|small|good|wild|used|rare|modern] [clocks|foxes|toys|flights|books|tools|bridges|bicycles|boats|pianos|mushrooms|maps|shoes|tents|stamps|coins|horses|roses]",
            "[bread|soup|cake|pancake|pizza|jam|curry] recipes",
        "[train|bus|boat] times [in|to|from] {p}", "[hotels|museums|parks|schools|bakeries|cafes|concerts|jobs|flats|doctors] in {p}",
            "the history of [tea|paper|chess|the {t}|{p}|glass|bicycles]", "how to [mend|clean|build|paint|buy] a {t}",
        "{c} {t}s", "[a|the] {c} {t}", "{t} [repair|shops|prices|museum]", "[the life|the songs|the books|the pictures] of {n}", "{w}", "{w} {t}", "{n} {w}",
            "bees in winter", "[piano|dance|swimming|guitar] lessons [in {p}|for children]"),
        t=t, c=c, p=p, n=n, w=made_word(rng))


def title(rng):
    """The name of a piece of music, a film, a book."""
    first = rng.choice("Blue Golden Silent Red Silver Slow Little Old Summer Winter Morning Midnight Green Lonely Broken Sweet White Wild Last Secret".split())
    second = rng.choice("River Song Leaves Mill Rain Star Bells Hills Train Dance Waltz Kite Days Moon Garden Road Heart Dream Harbour Sky Window Bird Forest Night Ocean Letter Lantern Tower".split())
    return say(rng, ("{a} {b}", "{a} {b}", "The {a} {b}", "{b} of {p}", "{m}", "{m} {b}", "{n} and the {b}", "Song for {n}", "The {b} of {n}", "{a} {m}"),
        a=first, b=second, p=town(rng), m=upper_first(made_word(rng)), n=name(rng))
