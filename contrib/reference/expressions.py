#!/usr/bin/env python3
"""Pieces of texts that the library tokenizers gives: the golden of tests/golden/test-expressions.c.

    python3 -m venv V && V/bin/pip install tokenizers
    V/bin/python contrib/reference/expressions.py --sets --data SAMOVAR_DATA >tests/golden/texts/expressions.txt

tokenizers has Oniguruma in it.  The cuts are those of daemon/files/splitters.c, those of the files
tokenizer.json in the folder --data (each once), some that are written here, and random ones.
--sets: also which characters, of all, each property and class matches; that takes minutes.  More,
with another --seed, is a check by hand; contrib/dev/makers does it, too:

    V/bin/python contrib/reference/expressions.py --texts 2000 --random 1000 --seed 7 >/tmp/more
    EXPRESSIONS=/tmp/more build/tests/test-expressions
"""
import argparse
import ast
import glob
import json
import os
import random
import re
import subprocess

from tokenizers import Regex, pre_tokenizers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KINDS = ("isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next")
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Where expressions of tokenizers have their corners.
PARTS = (
    "a|b|c|Z|I|\xe9|\xdf|\u017f|\u212a|k|K|\u0130|\u0131| |  |    |\n|\r|\r\n|\n\n|\t|\x0b|\x85|\u2028|\xa0|\u3000|\u200b|\x00|0|1|23|123|4567|"
    "\u0663|\u0969|\u2167|\xbd|\xb2|\u2070|'|'s|'S|'LL|'ve|'d|\u2019s|-|_|!|?|...|\u2026|\u3002|,|$|+|<|=|^|`|(|)|[|]|/|\\|{|}|*|\u4e2d|\u65e5\u672c|\u3072|\u30ab|"
    "\uac00|\ud55c|\u0e01|\u0e33|\u0301|\u05b7|\u094d|\u093f|\u0928|\u0345|\u24b6|\u01c5|\xaa|\u02b0|\u03a9|\u03c3|\u03c2|\u0416|\u0436|\U0001d7d8|"
    "\U0001f44d|\U0001f1e9\U0001f1ea|\u200d|\ufffd|\ufb01|\U00010330|\U000105c0|\U000f0000|\u0378|IMGIMGABZ|<sentinel:12>"
).split("|") + ["|", "x" * 70, "1" * 10, " " * 66]

# The syntax that expression/parser.h promises, a corner at a time.
CORNERS = (
    r"a*b|a",
    r"(?:ab|a)(?:c|bcd)?",
    r"(?:|a)+",
    r"(?:|a)*b?",
    r"(?:a|b??)*c?",
    r"(?:a*)*b|c",
    r"(?:a?)+?b|(?:a??)*c",
    r"(?:(?:a|b)*|1)*Z|(?:a|ab)(?:bc|c)?",
    r"a{2}?|b{2}?c",
    r"a{2,2}?|b{1,1}?c",
    r"a{1,2}?b|b{0,2}+c|a{,2}c",
    r"a{2,}?b|(?:ab?){2,3}",
    r"a{,}|b{1,x}|c{|{",
    r"[ab]++c|a?+b|\s*+\S",
    r".*+|\n",
    r"\R\n|\R",
    r"a\R?b|\R+",
    r"^.|.$|\A\s|\s\z",
    r"^\s*|\s*$",
    r"\S\Z|\s+\Z",
    r"\bA|\Bb+|\b\d",
    r"\b|\B-",
    r"(?<=\s)\S|(?<!\d)\d+",
    r"(?<=a)|(?<!a)(?=b)",
    r"(?<=[ab])c+|(?<![\s\d])\d",
    r"(?=(\d{3})+(?!\d))",
    r"\d{1,3}(?=(?:\d{3})*\b)",
    r"\d+?(?=\d|$)|a(?!b|c)",
    r"(?=ab(?=c|$))a|b(?!.*\d)",
    r"(?!(?!a)|b).|x+",
    r"(?=a|\s(?!\s))[\s\S]",
    r"(?:\r?\n)+(?!\r?\n)|\s+(?!\S)",
    r"\w+|[^\w\s]+",
    r"[\w]+|[[:word:]]|\W",
    r"[[:graph:]]+|[[:print:]]",
    r"[[:alpha:]]+|[[:punct:]]|[[:digit:]]{2}|[[:^space:]]",
    r"[[:upper:]]+|[[:lower:]]|[[:alnum:]&&[^\d]]",
    r"[[:blank:]]+|[[:cntrl:]]|[[:xdigit:]]{2}",
    r"\h+|\H\h|[\h-]",
    r"[a-c&&[^b]]+|[\d-]+|[]x]|[^]a-z]",
    r"[a-z&&[^aeiou]&&[^x]]|[^a-z&&b-y]+",
    r"[[a-c][x-z]\d]+|[^[ab][cd]]",
    r"[a&&]|[&&a]|b",
    r"[a-]+|[-b]+|[+--]|[\]\[^]+",
    r"\p{Greek}+|\p{Hiragana}+|\P{L}",
    r"\p{Han}+|[\p{Thai}\p{Devanagari}]+|\p{^Lu}",
    r"[\p{L}&&\p{Latin}]+|[\P{N}&&[^\p{L}\s]]+",
    r"\p{Alphabetic}+|\p{White_Space}|\p{Upper}|\p{lower case letter}",
    r"\u4e2b|个+|丫?中",
    r"[^\x00-\x7f]+|\x{4e2d}|\u65e5|\x41",
    r"\t|\x0b|\v|\f|\a|\e|\0|\.|\-|\\|\/",
    r"(?i)a|k|\x{3c3}",
    r"(?i)[a-cs]+|[^k-z]",
    r"(?i)[^[^a]b]|[a-k&&[^k]]|[^\p{Lu}]",
    r"(?i:[sdmt]|ll|ve|re)|(?i)Z(?-i)a",
    r"b(?i)a|c",
    r"(?:b(?i)a|c)Z|1",
    r"(?i)\p{Lu}|\w",
    r"(?m).a|(?m:.)(?-m:.)|.",
    r"a(?#comment)b|(?#(\))c",
    r"(?<name>a)(b)|(?:c)",
    r"\s{2,}|[\n\r\t]",
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    r"|a",
    r"",
)


def hexed(text):
    return text.encode().hex() or "-"


class Cuts:
    """One list of cuts, as tokenizers does them."""

    def __init__(self, cuts):
        self.cuts = cuts
        self.steps = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), k, i) for p, k, i in cuts])

    def head(self, maybe=False):
        lines = ["cut %s %d %s" % (k, i, hexed(p)) for p, k, i in self.cuts]
        return "\n".join(lines + ["maybe"] * maybe)

    def line(self, text):
        """None: Oniguruma gives up."""
        try:
            pieces = self.steps.pre_tokenize_str(text)
        except BaseException:  # a panic of Rust is no Exception
            return None
        at, lengths = 0, []
        for _, (begin, end) in pieces:
            if begin > at:
                lengths.append(-len(text[at:begin].encode()))
            lengths.append(len(text[begin:end].encode()))
            at = end
        return " ".join(["text", hexed(text)] + [str(n) for n in lengths])


def cuts_of(cuts):
    try:
        return Cuts(cuts)
    except BaseException:
        return None


# ---- expressions ----


def splitters():
    """[name, cuts] of each row of splitters.c, as the preprocessor leaves it."""
    command = ["cc", "-E", "-P", "-I", ROOT, os.path.join(ROOT, "daemon/files/splitters.c")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = text[text.index("splitters[] = {"):text.rindex("*splitter_named(")].split("(const char *const[])")
    string = r'"(?:[^"\\]|\\.)*"'
    for row in rows[1:]:
        cuts = re.findall(r"((?:%s\s*)+),\s*CUT_APART" % string, row.partition("sizeof")[0])
        if cuts:
            name = ast.literal_eval(re.search(string, row).group())
            yield name, [(ast.literal_eval("(" + c + ")"), "isolated", False) for c in cuts]


def steps_of(step):
    if not step:
        return
    if step["type"] == "Sequence":
        for inner in step["pretokenizers"]:
            yield from steps_of(inner)
    elif step["type"] == "Split" and "Regex" in step["pattern"]:
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", step["behavior"]).lower()
        yield step["pattern"]["Regex"], kind, step.get("invert", False)


def stored(folder):
    seen = set()
    for path in sorted(glob.glob(folder + "/**/tokenizer*.json", recursive=True)):
        try:
            cuts = list(steps_of(json.load(open(path)).get("pre_tokenizer")))
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
        if cuts and str(cuts) not in seen:
            seen.add(str(cuts))
            yield cuts


class Maker:
    """Random expressions over a small alphabet."""

    CHARACTERS = "aaabbbcckKZ1123 -_\u00e9\u0436\u4e2d\u0301"
    NAMES = "L Lu Ll Lo M N Nd P S Z Han Latin Cyrillic Greek Alphabetic".split()
    POSIX = "alpha digit upper lower punct space word alnum xdigit blank cntrl".split()
    SHORT = r"\s \S \d \D \w \W \h \H".split()

    def __init__(self, rng):
        self.rng = rng
        self.looks = 0  # of more than one character, of which an expression may have three
        self.folds = False  # under (?i); then a class may have no character that equals several

    def one_of(self, *makers):
        return self.rng.choice(makers)()

    def character(self):
        c = self.rng.choice(self.CHARACTERS)
        return "\\" + c if c in "-_" and self.rng.random() < 0.3 else c

    def name(self):
        return self.rng.choice([r"\p{%s}", r"\P{%s}", r"\p{^%s}"][:self.rng.choice([1, 1, 3])]) % self.rng.choice(self.NAMES)

    def short(self):
        return self.rng.choice(self.SHORT)

    def range(self):
        return self.rng.choice(["a-c", "a-z", "A-Z", "0-9", "b-k", " -~", "\u0400-\u04ff", r"\x00-\x7f"])

    def posix(self):
        return "[:%s%s:]" % (self.rng.choice(["", "", "^"]), self.rng.choice(self.POSIX))

    def set(self, depth=0):
        inverted = self.rng.random() < 0.33 and not (depth and self.folds)
        kinds = [self.character, self.character, self.range]
        if inverted and not depth or not self.folds:
            kinds += [self.name, self.short, self.posix]
        if depth < 2:
            kinds.append(lambda: self.set(depth + 1))
        members = [self.one_of(*kinds) for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        if self.rng.random() < 0.2:
            members.insert(self.rng.randrange(1, len(members) + 1), "&&" + self.one_of(*kinds))
        return "[" + "^" * inverted + "".join(members) + "]"

    def one(self):
        return self.one_of(self.character, self.character, self.character, self.set, self.name, self.short, lambda: ".")

    def look(self):
        sign = self.rng.choice("=!")
        if self.rng.random() < 0.3:
            return "(?<%s%s)" % (sign, self.one())
        if self.rng.random() < 0.5 or self.looks == 3:
            return "(?%s%s)" % (sign, self.one())
        self.looks += 1
        return "(?%s%s)" % (sign, self.choice(1))

    def place(self):
        known = [r"\b", r"\B", "^", "$", r"\A", r"\z"]
        if self.looks < 3:
            known.append(r"\Z")
        place = self.rng.choice(known)
        self.looks += place == r"\Z"
        return place

    def quantifier(self):
        q = self.rng.choice(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{3}"])
        return q + self.rng.choice(["", "", "", "?"])

    def part(self, depth):
        rng = self.rng
        kind = rng.random()
        if kind < 0.12:
            return self.look()
        if kind < 0.22:
            return self.place()
        if kind < 0.25:
            return r"\R"
        if kind < 0.32:
            return self.one() + rng.choice(["*+", "++", "?+"])
        quantifier = self.quantifier() if rng.random() < 0.45 else ""
        if kind > 0.55 or depth == 3:
            return self.one() + quantifier
        begin = rng.choice(["(?:", "(", "(?i:", "(?m:", "(?<n%d>" % rng.randrange(10**6)])
        folds, self.folds = self.folds, self.folds or begin == "(?i:"
        # A part that is repeated by a number may not be empty.
        inner = self.one() + self.row(depth + 1) if quantifier[:1] == "{" else self.choice(depth + 1)
        self.folds = folds
        return begin + inner + ")" + quantifier

    def row(self, depth):
        return "".join(self.part(depth) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3] if depth else [1, 1, 2, 3, 4])))

    def choice(self, depth):
        return "|".join(self.row(depth) for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3])))

    def expression(self):
        """Before `.*` under (?m), Oniguruma takes a look ahead or a place for nothing, and then searches at one
        place only: expressions that may have both are not compared."""
        while True:
            flags = self.rng.choice(["", "", "", "", "(?i)", "(?m)"])
            self.looks, self.folds = 0, flags == "(?i)"
            out = flags + self.choice(0)
            if not ("(?m" in out and re.search(r"\(\?<?[=!]|[$^]|\\[bBAzZ]", out) and re.search(r"\.[*+{]", out)):
                return out


# ---- the output ----


def text_of(rng, parts=PARTS, longest=24):
    out = []
    for _ in range(rng.randrange(1, rng.choice([4, 8, longest]))):
        if rng.random() < 0.05:
            part = chr(rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.choice(CODES)]))
            part = part if not 0xD800 <= ord(part) < 0xE000 else "a"
        else:
            part = rng.choice(parts)
        out.append(part * rng.choice([1, 1, 1, 1, 2, 3]))
    return "".join(out)


def show(cuts, head, texts):
    print(head)
    for text in texts:
        line = cuts.line(text)
        if line:
            print(line)


def show_set(expression):
    cuts = pre_tokenizers.Split(Regex(expression), "removed", True)
    count, digest = 0, 0xCBF29CE484222325
    text = "".join(map(chr, CODES))
    for _, (begin, end) in cuts.pre_tokenize_str(text):
        for c in CODES[begin:end]:
            count += 1
            for shift in 0, 8, 16, 24:
                digest = (digest ^ (c >> shift & 0xFF)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    print("set %s %d %016x" % (hexed(expression), count, digest))


CATEGORIES = "C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs".split()
CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper word xdigit".split()


def names_of_scripts():
    text = open(os.path.join(ROOT, "daemon/text/expression/property-tables.c")).read()
    return re.findall(r'"(\w+)"', text[:text.index("property_script_name_count")].partition("{")[2])


def cased(seed):
    """Half of the characters that have another case; without those that equal several letters."""
    text = open(os.path.join(ROOT, "daemon/text/expression/property-tables.c")).read()
    cases = re.findall(r"\{0x(\w+),0x\w+\}", text[text.index("property_cases[]"):])
    several = re.findall(r"\{0x(\w+),\{", text)
    rng = random.Random(seed)
    return "".join(chr(int(c, 16)) for c in sorted(set(cases) - set(several)) if rng.random() < 0.2)


def sets():
    yield from (r"(?i)[%s]" % cased(1), r"(?i)[^%s]" % cased(2))
    yield from (r"\p{%s}" % c for c in CATEGORIES)
    yield from (r"[[:%s:]]" % c for c in CLASSES)
    yield from (r"\p{%s}" % c for c in CLASSES if c != "word")
    yield from (r"\s", r"\d", r"\w", r"\h", r"[\w]", r"[\s]", r"[\d]", r".", r"\W", r"[^\w]", r"\P{L}", r"[^\p{L}]")
    yield from (r"\p{%s}" % c for c in "Alphabetic Lowercase Uppercase White_Space Any ASCII Letter Punctuation Number Mark Symbol Separator".split())
    # Each script by the bits of its number.
    names = names_of_scripts()
    for bit in range(len(names).bit_length()):
        yield "[" + "".join(r"\p{%s}" % name for i, name in enumerate(names, 1) if i >> bit & 1) + "]"


def main():
    parser = argparse.ArgumentParser(description="writes what tokenizers makes of expressions and texts")
    parser.add_argument("--texts", type=int, default=4, help="for each list of cuts")
    parser.add_argument("--random", type=int, default=150, help="random expressions; 0: only those of real tokenizers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", help="the folder SAMOVAR_DATA")
    parser.add_argument("--sets", action="store_true")
    parser.add_argument("--maybe", action="store_true", help="random expressions may be refused")
    args = parser.parse_args()
    rng = random.Random(args.seed)

    print("# Written by contrib/reference/expressions.py")
    for name, cuts in splitters():
        show(Cuts(cuts), "splitter " + name, [text_of(rng) for _ in range(args.texts)])
    for list_of_cuts in stored(args.data) if args.data else ():
        cuts = Cuts(list_of_cuts)
        show(cuts, cuts.head(), [text_of(rng) for _ in range(args.texts)])
    for expression in CORNERS if args.random else ():
        cuts = Cuts([(expression, rng.choice(KINDS), rng.random() < 0.3)])
        show(cuts, cuts.head(), [text_of(rng, longest=12) for _ in range(args.texts)])
        cuts = Cuts([(expression, "isolated", False)])
        show(cuts, cuts.head(), [text_of(rng, "aabbccZ123 \n\rxk-", 12) for _ in range(args.texts)])
    made = 0
    while made < args.random:
        maker = Maker(rng)
        count = rng.choice([1, 1, 1, 2])
        cuts = cuts_of([(maker.expression(), rng.choice(KINDS), rng.random() < 0.3) for _ in range(count)])
        if not cuts or sum(len(p) for p, _, _ in cuts.cuts) > 200:
            continue
        made += 1
        parts = rng.choice([PARTS, Maker.CHARACTERS + "\n\r", "ab\n", "abk1 \n"])
        show(cuts, cuts.head(args.maybe), [text_of(rng, parts, 12) for _ in range(args.texts)])
    for expression in sets() if args.sets else ():
        show_set(expression)


main()
