"""What the pictures of contrib/dev/batching.py and contrib/dev/pool.py have in common.

A picture is an SVG of panels, with a line for each policy over the same measurements. It is light,
and dark if the reader's screen is.
"""
import csv
import math
import sys
from html import escape

WIDE, LEFT, GAP, RIGHT = 960, 60, 62, 18
PAPER = {".page": "fill: #ffffff", ".ink": "fill: #24292f", ".faint": "fill: #57606a",
         ".grid": "stroke: #d8dee4", ".axis": "stroke: #8c959f"}
NIGHT = {".page": "fill: #0d1117", ".ink": "fill: #e6edf3", ".faint": "fill: #9ea7b3",
         ".grid": "stroke: #30363d", ".axis": "stroke: #6e7681"}
# Okabe and Ito's colours, darker on paper; colour-blind readers can distinguish all of them.
BLUE, ORANGE = ("#0072b2", "#56b4e9"), ("#b35c00", "#e69f00")
PINK, GREEN = ("#a3407f", "#e79ac7"), ("#00795a", "#3ec9a0")
CIRCLE, TRIANGLE = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 4L4 4L0 -4.5z"
SQUARE, DIAMOND = "M-3.5 -3.5H3.5V3.5H-3.5z", "M0 -5L5 0L0 5L-5 0z"


def read_results(path):
    """(notes, rows) of a file of CSV whose first lines begin with "# " and are notes."""
    notes, lines = [], []
    with open(path, encoding="utf-8", newline="") as file:
        for line in file:
            if line.startswith("# "):
                notes.append(tuple(line[2:].strip().split(": ", 1)))
            else:
                lines.append(line)
    rows = list(csv.DictReader(lines))
    if not rows:
        sys.exit(path + " has no results")
    return notes, rows


def text(x, y, words, kind="ink", anchor="middle", size=12, weight="normal"):
    return ('<text x="%.1f" y="%.1f" class="%s" text-anchor="%s" font-size="%d" font-weight="%s">'
            '%s</text>' % (x, y, kind, anchor, size, weight, escape(words)))


def style(looks):
    """Without variables, which some viewers do not know."""
    def rules(colours, which):
        lines = ["%s { %s }" % rule for rule in colours.items()]
        for policy, (pair, _) in looks.items():
            lines.append(".%s .line { stroke: %s }" % (policy, pair[which]))
            lines.append(".%s .full { fill: %s }" % (policy, pair[which]))
        return "\n".join(lines)

    return ("\n.line { fill: none; stroke-width: 2 } .grid, .axis { fill: none }\n"
            ".band { opacity: .16 } .wait { opacity: .3 }\n%s\n"
            "@media (prefers-color-scheme: dark) {\n%s\n}\n" % (rules(PAPER, 0), rules(NIGHT, 1)))


def nice(span, parts):
    """A step of 1, 2 or 5 times a power of ten, so that about `parts` of them make the span."""
    base = 10.0 ** math.floor(math.log10(span / parts))
    return next(base * n for n in (1, 2, 5, 10) if base * n * parts >= span)


class Scale:
    """Maps values to heights. Logarithmic from the least to the most, or linear from 0."""

    def __init__(self, values, log):
        values = [v for v in values if v > 0] or [1.0]
        self.log = log
        if log:
            self.low = min(values) * 0.8
            self.high = max(max(values) * 1.25, self.low * 10)
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            span = self.high / self.low
            steps = (1, 2, 5) if span < 60 else (1, 3) if span < 1e4 else (1,)
            self.ticks = [m * 10.0 ** p for p in powers for m in steps]
        else:
            step = nice(max(values) * 1.05, 6)
            self.low, self.high = 0.0, step * math.ceil(max(values) * 1.05 / step)
            self.ticks = [step * i for i in range(round(self.high / step) + 1)]
        self.ticks = [t for t in self.ticks if self.low <= t <= self.high * 1.0001]

    def share(self, value):
        if self.log:
            value = max(value, self.low)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return value / self.high


class Across:
    """The values that all panels have below them: how they are spaced, and what is said of them."""

    def __init__(self, values, words, form, log=False):
        self.values, self.words, self.form, self.log = values, words, form, log

    def share(self, value):
        low, high, value = (math.log(v) if self.log else v
                            for v in (min(self.values), max(self.values), value))
        return (value - low) / (high - low) if high > low else 0.5


class Panel:
    """One figure over the values across, a line for each policy; the band is the rounds' range."""

    def __init__(self, x, y, wide, high, across, scale):
        self.x, self.y, self.wide, self.high = x, y, wide, high
        self.across, self.scale = across, scale

    def place(self, at, value):
        return (self.x + 14 + self.across.share(at) * (self.wide - 28),
                self.y + self.high * (1 - self.scale.share(value)))

    def frame(self, title, label):
        out = [text(self.x, self.y - 12, title, anchor="start", size=13, weight="bold")]
        for tick in self.scale.ticks:
            _, y = self.place(self.across.values[0], tick)
            out.append('<path class="grid" d="M%.1f %.1fh%.1f"/>' % (self.x, y, self.wide))
            out.append(text(self.x - 6, y + 4, "%g" % tick, "faint", "end", 11))
        for at in self.across.values:
            x, _ = self.place(at, self.scale.high)
            out.append(text(x, self.y + self.high + 16, self.across.form(at), "faint", size=11))
        out.append('<path class="axis" d="M%.1f %.1fv%.1fh%.1f"/>'
                   % (self.x, self.y, self.high, self.wide))
        out.append(text(self.x + self.wide / 2, self.y + self.high + 32, self.across.words, "faint",
                        size=11))
        out.append('<g transform="translate(%.1f %.1f) rotate(-90)">%s</g>'
                   % (self.x - 44, self.y + self.high / 2, text(0, 0, label, "faint", size=11)))
        return out

    def curve(self, policy, mark, values):
        """values: {across: (median, least, most)}; without a band if all of them are equal."""
        at = sorted(values)
        middle = [self.place(a, values[a][0]) for a in at]
        around = ([self.place(a, values[a][2]) for a in at]
                  + [self.place(a, values[a][1]) for a in reversed(at)])
        out = ['<g class="%s">' % policy]
        if any(values[a][1] < values[a][2] for a in at):
            out.append('<polygon class="band full" points="%s"/>'
                       % " ".join("%.1f,%.1f" % p for p in around))
        out.append('<polyline class="line" points="%s"/>'
                   % " ".join("%.1f,%.1f" % p for p in middle))
        out += ['<path class="full" transform="translate(%.1f %.1f)" d="%s"/>' % (*p, mark)
                for p in middle]
        return out + ["</g>"]


def legend(looks, y):
    """A line, its mark and its name for each policy."""
    out, x = [], LEFT
    for policy, (_, mark) in looks.items():
        out.append('<g class="%s"><path class="line" d="M%d %dh26"/><path class="full" '
                   'transform="translate(%d %d)" d="%s"/></g>' % (policy, x, y, x + 13, y, mark))
        out.append(text(x + 34, y + 4, policy, anchor="start", size=13))
        x += 130
    return out


def whole(head, body, looks, foot, notes):
    """The SVG: a title and lines about it on top, and small notes from `foot` on."""
    out = [text(LEFT, 24, head[0], anchor="start", size=17, weight="bold")]
    out += [text(LEFT, 44 + 17 * i, line, "faint", "start") for i, line in enumerate(head[1:])]
    out += [text(LEFT, foot + 17 * i, line, "faint", "start", 11) for i, line in enumerate(notes)]
    return "\n".join(
        ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif">'
         % (WIDE, foot + 17 * len(notes) + 8),
         "<title>%s</title>" % escape(head[0]), "<style>%s</style>" % style(looks),
         '<rect class="page" width="%d" height="%d"/>' % (WIDE, foot + 17 * len(notes) + 8)]
        + body + out + ["</svg>\n"])
