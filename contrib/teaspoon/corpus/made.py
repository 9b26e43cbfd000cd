"""Names and words that nobody has heard before, put together from syllables: what is asked about them can only be copied, never known."""
from .phrase import upper_first

STARTS = "b br c cl d dr f fl g gl gr h j k kl l m n p pl pr r s sh sk sl st t tr v w y z".split() + [""] * 2
MIDDLES = "b d f g k l m n p r s t v z ll nd nt rk rl rm rn st sk th mb ld".split()
VOWELS = "a a e e i i o o u u ai ea oo ei".split()
ENDS = "l m n r s t k p d nd rn sk x th nt".split() + [""] * 8
NAME_ENDS = "a o e i in an el is us en or ar ia ika ona ette ir il um ek ov".split()
TOWN_ENDS = "ton ville burg ham field ford mouth port by stad wick dale bridge haven grad ino ora eno ica um ow".split()

# A few that nobody wants to read.
RUDE = "shit tit cum kum fuk nig dik dick kok cunt slut pis poo nazi fag rap bum ass sex".split()


def _fair(text, low, high):
    return low <= len(text) <= high and not any(part in text for part in RUDE)


def _stem(rng, syllables):
    text = rng.choice(STARTS)
    for at in range(syllables):
        text += (rng.choice(MIDDLES) if at else "") + rng.choice(VOWELS)
    return text


def word(rng):
    """A word in lower case, of one to three syllables: `plon`, `taberi`, `grintoo`."""
    text = _stem(rng, rng.choice((1, 2, 2, 2, 3))) + rng.choice(ENDS)
    return text if _fair(text, 3, 8) else word(rng)


def name(rng):
    """A first name: `Tabor`, `Melika`, `Lir`."""
    text = _stem(rng, rng.choice((1, 1, 1, 2)))
    text += rng.choice(MIDDLES) + rng.choice(NAME_ENDS) if rng.random() < 0.75 else rng.choice("lnrsmtkd")
    return upper_first(text) if _fair(text, 3, 8) else name(rng)


def town(rng):
    """A town: `Maldon`, `Brenaford`, `Sloville`."""
    text = _stem(rng, rng.choice((1, 1, 1, 2)))
    text += rng.choice(("", "l", "n", "r", "m", "s")) + rng.choice(TOWN_ENDS)
    return upper_first(text) if _fair(text, 4, 11) else town(rng)
