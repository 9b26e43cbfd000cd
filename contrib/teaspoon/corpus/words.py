"""What is known: tables of facts and of words, without a single question."""

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
MONTH_DAYS = dict(zip(MONTHS, (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))
SEASON_MONTHS = {"winter": ("December", "January", "February"), "spring": ("March", "April", "May"),
                 "summer": ("June", "July", "August"),
                 "autumn": ("September", "October", "November")}
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()

# (the whole, the part, how many)
AMOUNTS = (("week", "days", 7), ("year", "days", 365), ("year", "weeks", 52), ("year", "months", 12),
           ("day", "hours", 24), ("hour", "minutes", 60), ("minute", "seconds", 60))

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black", "grey",
           "brown")
MIXES = {("red", "yellow"): "orange", ("blue", "yellow"): "green", ("red", "blue"): "purple",
         ("red", "white"): "pink", ("black", "white"): "grey"}
THINGS_COLOUR = {
    "the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow",
    "a tomato": "red", "a strawberry": "red", "a carrot": "orange", "an orange": "orange",
    "a lemon": "yellow", "a leaf": "green", "a frog": "green", "blood": "red", "milk": "white",
    "the night": "black", "the sun": "yellow", "an elephant": "grey", "chocolate": "brown",
    "earth": "brown", "a flamingo": "pink", "a plum": "purple", "the sea": "blue"}

# name: (sound, the noun of it, legs, young, home, food)
ANIMALS = {
    "dog": ("barks", "woof", 4, ("puppy",), "in a house", "meat"),
    "cat": ("meows", "meow", 4, ("kitten",), "in a house", "mice"),
    "cow": ("moos", "moo", 4, ("calf",), "on a farm", "grass"),
    "horse": ("neighs", "neigh", 4, ("foal",), "in a stable", "hay"),
    "sheep": ("bleats", "baa", 4, ("lamb",), "on a meadow", "grass"),
    "pig": ("oinks", "oink", 4, ("piglet",), "in a sty", "roots"),
    "duck": ("quacks", "quack", 2, ("duckling",), "on a pond", "weeds"),
    "hen": ("clucks", "cluck", 2, ("chick",), "in a coop", "grain"),
    "owl": ("hoots", "hoo", 2, ("owlet",), "in the forest", "mice"),
    "lion": ("roars", "roar", 4, ("cub",), "on the savanna", "meat"),
    "wolf": ("howls", "howl", 4, ("cub", "pup"), "in the forest", "meat"),
    "bee": ("buzzes", "buzz", 6, ("larva",), "in a hive", "nectar"),
    "frog": ("croaks", "croak", 4, ("tadpole",), "in a pond", "insects"),
    "bear": ("growls", "growl", 4, ("cub",), "in the forest", "honey and fish"),
    "mouse": ("squeaks", "squeak", 4, ("pup",), "in a hole", "cheese and grain"),
    "snake": ("hisses", "hiss", 0, ("hatchling",), "in the grass and sand", "mice"),
    "spider": (None, None, 8, ("spiderling",), "in a web", "flies"),
    "fish": (None, None, 0, ("fry",), "in the water", "worms"),
    "ant": (None, None, 6, ("larva",), "in a nest", "crumbs"),
    "rabbit": ("hardly a sound", None, 4, ("kitten", "bunny"), "in a burrow", "carrots and grass")}
FLIERS = ("duck", "hen", "owl", "bee")
PLURALS = {"sheep": "sheep", "wolf": "wolves", "mouse": "mice", "fish": "fish", "cherry": "cherries",
           "potato": "potatoes", "tomato": "tomatoes", "strawberry": "strawberries", "brush": "brushes",
           "knife": "knives", "box": "boxes", "leaf": "leaves", "cabbage": "cabbages"}

FRUITS = "apple banana cherry grape lemon orange pear plum".split()
TOOLS = "hammer saw drill knife spade brush".split()
VEGETABLES = "carrot potato onion cabbage pea bean".split()

OPPOSITES = (
    "big small,hot cold,fast slow,up down,day night,wet dry,old new,old young,full empty,happy sad,"
    "open closed,light dark,light heavy,hard soft,early late,long short,high low,left right,near far,"
    "loud quiet,clean dirty,strong weak,thick thin,begin end,win lose")
OPPOSITES = [tuple(pair.split()) for pair in OPPOSITES.split(",")]

NAMES = ("Ada Ali Amy Ana Ann Anton Ben Boris Carl Clara Cora Dan Dora Ella Emil Emma Eva Felix Finn "
         "Flora Fred George Grace Hana Hans Hugo Ida Igor Ina Iris Ivan Jack Jan Jane Jim Joe John "
         "Julia Kai Karl Kate Kim Lara Lena Leo Lily Lina Lola Lucy Lukas Luna Maria Mark Marta Mary "
         "Max Maya Mia Mila Mona Nadia Nick Nina Nora Olga Oscar Otto Pam Paul Pavel Peter Petra Pia "
         "Rita Rob Rosa Ruth Sam Sara Simon Sofia Sonia Stella Sue Sven Tara Theo Tim Tina Tom Tony "
         "Uma Vera Victor Wanda Will Yara Zoe").split()
TOWNS = ("Athens Berlin Bern Boston Cairo Chicago Delhi Dublin Geneva Hamburg Helsinki Kyoto Lagos Leeds "
         "Lima Lisbon London Lyon Madrid Milan Moscow Munich Nairobi Naples Oslo Oxford Paris Porto "
         "Prague Quito Riga Rome Sofia Tallinn Tokyo Toronto Turin Venice Vienna Warsaw York "
         "Zurich").split()
PET_NAMES = ("Bello Biscuit Bubbles Button Cleo Coco Dot Fluffy Ginger Honey Kiwi Lucky Misty Mittens "
             "Nibbles Noodle Patch Pepper Pip Poppy Pudding Rex Rocky Rusty Shadow Smudge Snowy Sparky "
             "Spot Teddy Tiger Toffee Waffles Whiskers Ziggy").split()
PETS = "dog cat rabbit horse fish hen duck mouse frog snake sheep pig".split()

# Things a person can have, give and lose.
GOODS = ("apple pear plum cherry lemon banana orange grape carrot potato onion bean book pencil coin "
         "stamp button marble card key cup plate spoon shell stone flower egg cookie candle sticker ball "
         "balloon ticket nail ribbon bead hat sock shirt cake letter picture toy tree leaf feather "
         "star box brush").split()
STORY_THINGS = "lantern boat key kite drum hat map bell basket ladder kettle coin".split()

# Short words to be spelled, sorted and counted, besides all that stand above.
SHORT = ("arm art axe bag ball band bank barn bat bath bed belt bike bird boat body bone book boot bowl "
         "box boy bread brick bridge broom bus cake camp candle cap car card cart chair cheese chest "
         "child church circle city clay clock cloud coat coin cold cook corn corner cow cream cross crown "
         "cup dance dark desk dish doll door dot dream dress drum dust ear earth east egg elbow engine "
         "eye face fan farm feet field fig finger fire flag flat floor flour flower fly fog food foot "
         "fork forest fox friend fun game garden gate gift girl glass glove goat gold goose grain green "
         "guitar hair hall hand hat head heart hill home honey hook hope horn hotel hour house ice ink "
         "iron island jam jar jelly job joy juice jump key king kite knee lake lamp land leaf leg letter "
         "light line lip lock log love lunch map market mask meal melon milk mill mind mirror mist moon "
         "moss mouth mug music nail name neck needle nest net night north nose nut oak oil olive oven "
         "page paint pan paper park path paw pen pencil pepper piano pie pin pink pipe plan plant plate "
         "play pocket poem pool pot queen quilt rain ring river road rock roof room root rope rose sail "
         "salt sand school sea seed shell ship shirt shoe shop silk silver sky sleep snow soap sock song "
         "soup south spoon spring square stair star stick stone storm story street sugar summer sun swan "
         "table tail tea tent thing thumb tiger time toast tooth tower town toy train tree truck tulip "
         "turkey uncle valley van vase violin voice wagon wall water wave wax west wheel wind window wine "
         "wing winter wolf wood wool word world year yard zebra zoo").split()

# Common words of three to six letters, of every kind: to be copied, moved around, spelled and put in order.
COMMON = ("able about above actor add adult after again age agree air alarm alive all allow alone along also always amber angel anger angry ankle "
          "answer any apron area argue around arrive arrow artist ask asleep aunt autumn awake away baby back bad badge bake baker ballet bamboo bang "
          "bare bark base basin basket beach bead beak beam beard beat beauty become beef beer before beg behind bell below bench bend berry best "
          "better big bill bind bite bitter blade blame bless blind block bloom blow blue blunt board boil bold bolt boring borrow boss both bottle "
          "bottom bounce bow brain branch brass brave break breath breeze bride bright bring broad broken brook bubble bucket build bulb bull bump "
          "bunch bundle burn bush busy butter buy cable cage calf call calm camel camera canal cancel cannon canoe carbon care carpet carry carve case "
          "cast castle catch cave cellar cement centre chain chalk chance change charm chase cheap check cheek chef cherry chew chief chin choir choose "
          "clap claw clean clear clever cliff climb cloak close cloth clover clown club coach coal coast cobweb coffee cold collar colour comb come "
          "comet common copper copy coral cost cotton cough count cousin cover cradle crane crash crate crawl crayon create crisp crow crowd crumb "
          "crust cry cub cube curl curly cut dairy damp danger daring date dawn dead deal dear deep deer desert design dew dig dine dinner dip dirt "
          "dive doctor donkey double dove down dragon drain draw drawer drift drink drive drop dry duke dull dusk duty eager eagle earn easy eat echo "
          "edge effort eight elder elf empty end enjoy enough enter equal error even event ever every exam exit expect expert extra fable fact fade "
          "fail faint fair fairy faith fall family famous fancy far fast father fault fear feast feed feel fence fern ferry fetch fever few fiddle "
          "fight fill film find fine finish firm first fit five fix flame flash flat fleet float flock flood flow flute foam fold follow fool fork form "
          "four frame free fresh fridge frost frozen fruit fry full funny fur fuss gain gap gas gather gentle giant giggle ginger give glad glide globe "
          "glow glue good gown grab grace grand grape grave gravel gravy great greedy greet grey grin grip ground group grow guard guess guest guide "
          "gum habit half ham handle hang happy hard harp haste hatch have hawk hazel head health hear heat heavy hedge heel height helmet help herb "
          "hero hide high hike hill hire hit hive hobby hold hole hollow hop host hot hug huge hum human humble hunt hurry hurt hut idea idle inch "
          "indoor insect inside invent invite itch ivory ivy jacket jaw jazz jewel join joke judge jug jungle junior just keen keep kennel kick kind "
          "kiss kitten knit knock knot know ladder lady lamb large last late laugh law lawn lazy lead leak lean learn leave left lemon lend lens less "
          "lesson level lid lie life lift like lily limb limit linen list listen little live lively lizard load loaf lobby local lonely long look loop "
          "loose lord lose lost loud low lucky lump lung magic magnet maid mail main make mammal manage mango maple marble march mark mast match mate "
          "maze meadow mean meat meet melt memory mend menu merry metal meter middle mighty mild mile mine mint minute mix model modern moist monk "
          "monkey moral moss most moth mother motor mount move mud muffin mule muscle must mutton myth narrow nation nature near neat nephew nerve "
          "never new nice niece nine noble nod noise normal note notice novel number nurse nylon obey object ocean offer office often once one onion "
          "only open orchid order organ otter out outfit outer over owl own oyster pace pack paddle pain pair palace pale palm panda panel panic parade "
          "parcel parent park parrot part party pass past pastry patch peace peach peanut pearl pebble peel people period person pet phone photo pick "
          "picnic piece pile pilot pinch pitch pizza place plain planet plough plug plus point police polish polite pond pony poor porch pork port post "
          "potter pound pour powder power praise pray press pretty price pride prince print prize proof proud pull pulse pump pupil puppet pure purse "
          "push puzzle quick quiet quit quite quiz rabbit race radio raft rail raise ranch rare rate raw reach read ready real reason recipe record "
          "reef refuse remain rent repair reply rescue rest return rhyme ribbon rice rich ride right riot ripe rise risk roar roast robe robin robot "
          "rocket roll rough round route row royal rub rubber rude rug ruin rule run rush rust sack sad saddle safe saint salad salmon sample sand "
          "sauce save say scale scar scarf scene scent school score scout screen screw scrub seal search season seat second secret see seem sell send "
          "sense serve seven sew shade shadow shake shape share shark sharp shave shawl shed sheet shelf shield shine shock shoot shore short shout "
          "shovel show shower shrimp shut shy side sigh sign silent silly simple sing sink sister sit six size skate sketch ski skill skin skirt slice "
          "slide slim slip slope slow small smart smell smile smoke smooth snack snail snap sneeze sock soft soil solid solve some son soon sorry sort "
          "sound sour space spare spark speak speed spell spend spice spill spin split spoil sport spot spray spread squad squash stable stack staff "
          "stage stain stale stamp stand stare start state statue stay steam steel steep stem step stew stiff sting stir stool stop store stork storm "
          "straw strike string stripe strong study style such suit sunny supper sure surf swap sweet swift swim swing switch sword system tablet tailor "
          "take talk tall tame tank tap tape target task taste taxi teach team tear tell temple ten tennis tent term test thank thick thief thin think "
          "thirst thread three throat throne throw ticket tide tidy tie tight tile timber tin tiny tip tired title toad today toe token tomato tongue "
          "tool top torch touch tough towel track trade trail tram trap travel tray treat tribe trick trip trot true trunk trust try tube tug tune "
          "tunnel turn turtle twice twig twin twist two type ugly unable under unit untie until upset urban use useful usual vacuum vapour vast veil "
          "velvet very vest view villa vine visit vivid volume vote voyage wage waist wait wake walk wander want war warm wash wasp waste watch way "
          "weak wealth wear weary weave wedge weed week weigh well west wet whale wheat when whip whole wicked wide widow wife wild willow win wipe "
          "wire wisdom wise wish witch wonder word work worm worry worth wrap wreath wrist write wrong yarn yawn yellow yes yet yogurt young zero "
          "zigzag zipper").split()

# More beings, places and traits that stories are made of.
PLACES = ("in the forest", "by the river", "on a hill", "in a small town", "near the sea", "on a farm",
          "in a garden", "at the market", "by the lake", "in an old mill", "on an island",
          "in a quiet valley", "under a bridge", "in a little house", "at the harbour", "behind the barn")
HIDING = ("under the bed", "on the table", "in the drawer", "behind the door", "in the kitchen",
          "in the red box", "on the shelf", "under the chair", "in the garden", "in the cupboard",
          "next to the lamp", "in my bag", "on the roof", "in the blue basket", "behind the clock",
          "in the car", "under the stairs", "in the top drawer", "beside the stove", "in the shed")
CHARACTER = "brave kind curious clever shy cheerful gentle patient tired lonely hungry proud".split()


def plural(noun):
    if noun in PLURALS:
        return PLURALS[noun]
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun[-1] in "sx" or noun[-2:] in ("ch", "sh") else "s")


def counted(number, noun, said):
    """`3 apples`, `one apple`; `said` is the number as it is written."""
    return f"{said} {noun if number == 1 else plural(noun)}"
