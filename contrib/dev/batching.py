#!/usr/bin/env python3
"""A table, and a picture, of the results of bench-batching.

    contrib/dev/batching.py RESULTS [--picture FILE.svg] [--ttft S] [--tpot S]

Each run has its own percentiles over its requests.  The table shows their median over the rounds,
and how far the rounds lie apart. docs/internals/bench.md says what the figures mean.
"""
import argparse
import csv
import math
import statistics
import sys
from collections import defaultdict
from html import escape

POLICIES = ["continuous", "dynamic", "static"]
NUMBERS = ["at", "sent", "first", "last", "prompt", "output"]


def read(path):
    """(notes, {(load, policy, round): requests}); a request's times are in seconds."""
    notes, lines, runs = [], [], defaultdict(list)
    with open(path, encoding="utf-8", newline="") as file:
        for line in file:
            if line.startswith("# "):
                notes.append(tuple(line[2:].strip().split(": ", 1)))
            else:
                lines.append(line)
    for row in csv.DictReader(lines):
        runs[float(row["load"]), row["policy"], int(row["round"])].append(
            {name: float(row[name]) for name in NUMBERS})
    if not runs:
        sys.exit(path + " has no results")
    return notes, dict(runs)


def percentile(values, share):
    """The least value that this share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def figures(requests, ttft_max, tpot_max):
    """The figures of one run."""
    ttft = [r["first"] - r["at"] for r in requests]
    tpot = [(r["last"] - r["first"]) / (r["output"] - 1) for r in requests if r["output"] > 1]
    good = [r for r in requests if r["first"] - r["at"] <= ttft_max
            and r["last"] - r["first"] <= tpot_max * (r["output"] - 1)]
    took = max(r["last"] for r in requests) - min(r["at"] for r in requests)
    one = {"tokens": sum(r["output"] for r in requests) / took,
           "good": sum(r["output"] for r in good) / took,
           "late": max(r["sent"] - r["at"] for r in requests)}
    for share in (50, 90, 99):
        one["ttft%d" % share] = percentile(ttft, share / 100)
        one["tpot%d" % share] = percentile(tpot, share / 100) if tpot else 0.0
        one["end%d" % share] = percentile([r["last"] - r["at"] for r in requests], share / 100)
    return one


def over_rounds(runs, ttft_max, tpot_max):
    """{(load, policy): {figure: (median, least, most)}}"""
    rounds = defaultdict(lambda: defaultdict(list))
    for (load, policy, _), requests in runs.items():
        for name, value in figures(requests, ttft_max, tpot_max).items():
            rounds[load, policy][name].append(value)
    return {key: {name: (statistics.median(v), min(v), max(v)) for name, v in one.items()}
            for key, one in rounds.items()}


# ---- the table

COLUMNS = [("tokens/s", "tokens", 1), ("goodput, tokens/s", "good", 1),
           ("TTFT p50, ms", "ttft50", 1e3), ("p90", "ttft90", 1e3), ("p99", "ttft99", 1e3),
           ("TPOT p50, ms", "tpot50", 1e3), ("p90", "tpot90", 1e3), ("p99", "tpot99", 1e3),
           ("whole p50, s", "end50", 1), ("p99", "end99", 1)]


def short(value):
    """Three significant digits."""
    return "0" if value == 0 else "%.*f" % (max(0, 2 - math.floor(math.log10(abs(value)))), value)


def cell(values, scale):
    middle, least, most = (v * scale for v in values)
    return short(middle) + (" (%s-%s)" % (short(least), short(most)) if least < most else "")


def in_order(points):
    return sorted(points, key=lambda key: (key[0], POLICIES.index(key[1])))


def table(points):
    lines = ["| load | batching | " + " | ".join(name for name, _, _ in COLUMNS) + " |",
             "|---" * (2 + len(COLUMNS)) + "|"]
    for load, policy in in_order(points):
        cells = [cell(points[load, policy][name], scale) for _, name, scale in COLUMNS]
        lines.append("| %.0f%% | %s | %s |" % (load * 100, policy, " | ".join(cells)))
    return "\n".join(lines)


# ---- the picture

WIDE, LEFT, GAP, RIGHT = 960, 60, 62, 18
# Okabe and Ito's colours, darker on paper; colour-blind readers can distinguish all of them.
COLOURS = {"continuous": ("#0072b2", "#56b4e9"), "dynamic": ("#b35c00", "#e69f00"),
           "static": ("#a3407f", "#e79ac7")}
PAPER = {".page": "fill: #ffffff", ".ink": "fill: #24292f", ".faint": "fill: #57606a",
         ".grid": "stroke: #d8dee4", ".axis": "stroke: #8c959f"}
NIGHT = {".page": "fill: #0d1117", ".ink": "fill: #e6edf3", ".faint": "fill: #9ea7b3",
         ".grid": "stroke: #30363d", ".axis": "stroke: #6e7681"}
LANES = 48
MARKS = {"continuous": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "dynamic": "M-4 4L4 4L0 -4.5z",
         "static": "M-3.5 -3.5H3.5V3.5H-3.5z"}


def text(x, y, words, kind="ink", anchor="middle", size=12, weight="normal"):
    return ('<text x="%.1f" y="%.1f" class="%s" text-anchor="%s" font-size="%d" font-weight="%s">'
            '%s</text>' % (x, y, kind, anchor, size, weight, escape(words)))


def style():
    """Light, and dark if the reader's screen is; without variables, which some viewers do not know."""
    def rules(colours, which):
        lines = ["%s { %s }" % rule for rule in colours.items()]
        for policy, pair in COLOURS.items():
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
            steps = (1, 2, 5) if self.high / self.low < 60 else (1, 3)
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


class Panel:
    """One figure against the load, a line for each policy; the band shows the range of the rounds."""

    def __init__(self, x, y, wide, high, loads, scale):
        self.x, self.y, self.wide, self.high = x, y, wide, high
        self.loads, self.scale = loads, scale

    def place(self, load, value):
        low, high = min(self.loads), max(self.loads)
        across = (load - low) / (high - low) if high > low else 0.5
        return (self.x + 14 + across * (self.wide - 28),
                self.y + self.high * (1 - self.scale.share(value)))

    def frame(self, title, label):
        out = [text(self.x, self.y - 12, title, anchor="start", size=13, weight="bold")]
        for tick in self.scale.ticks:
            _, y = self.place(self.loads[0], tick)
            out.append('<path class="grid" d="M%.1f %.1fh%.1f"/>' % (self.x, y, self.wide))
            out.append(text(self.x - 6, y + 4, "%g" % tick, "faint", "end", 11))
        for load in self.loads:
            x, _ = self.place(load, self.scale.high)
            out.append(text(x, self.y + self.high + 16, "%.0f%%" % (load * 100), "faint", size=11))
        out.append('<path class="axis" d="M%.1f %.1fv%.1fh%.1f"/>'
                   % (self.x, self.y, self.high, self.wide))
        out.append(text(self.x + self.wide / 2, self.y + self.high + 32,
                        "load, of what the machine can do", "faint", size=11))
        out.append('<g transform="translate(%.1f %.1f) rotate(-90)">%s</g>'
                   % (self.x - 44, self.y + self.high / 2, text(0, 0, label, "faint", size=11)))
        return out

    def curve(self, policy, values):
        """values: {load: (median, least, most)}"""
        at = sorted(values)
        middle = [self.place(load, values[load][0]) for load in at]
        around = ([self.place(load, values[load][2]) for load in at]
                  + [self.place(load, values[load][1]) for load in reversed(at)])
        out = ['<g class="%s">' % policy,
               '<polygon class="band full" points="%s"/>' % " ".join("%.1f,%.1f" % p for p in around),
               '<polyline class="line" points="%s"/>' % " ".join("%.1f,%.1f" % p for p in middle)]
        out += ['<path class="full" transform="translate(%.1f %.1f)" d="%s"/>' % (*p, MARKS[policy])
                for p in middle]
        return out + ["</g>"]


PANELS = [[("Throughput", "tokens a second", "tokens", 1, False, ["tokens"]),
           ("First token, half within (TTFT p50)", "milliseconds", "ttft50", 1e3, True,
            ["ttft50", "ttft99"]),
           ("First token, 99% within (TTFT p99)", "milliseconds", "ttft99", 1e3, True,
            ["ttft50", "ttft99"])],
          [("Throughput in time (goodput)", "tokens a second", "good", 1, False, ["tokens"]),
           ("Next token, half within (TPOT p50)", "milliseconds each", "tpot50", 1e3, True,
            ["tpot50", "tpot99"]),
           ("Next token, 99% within (TPOT p99)", "milliseconds each", "tpot99", 1e3, True,
            ["tpot50", "tpot99"])]]


def panels(points, top, high):
    policies = [p for p in POLICIES if any(key[1] == p for key in points)]
    loads = sorted({key[0] for key in points})
    wide = (WIDE - LEFT - RIGHT - 2 * GAP) / 3
    out = []
    for row, line in enumerate(PANELS):
        for column, (title, label, name, unit, log, shared) in enumerate(line):
            # Panels that are to be compared share one scale.
            scale = Scale([v * unit for one in points.values() for s in shared
                           for v in one[s]], log)
            panel = Panel(LEFT + column * (wide + GAP), top + row * (high + 76), wide, high, loads,
                          scale)
            out += panel.frame(title, label)
            for policy in policies:
                out += panel.curve(policy, {load: tuple(v * unit for v in points[load, policy][name])
                                            for load in loads if (load, policy) in points})
    return out


def lanes(runs, top, high):
    """Some requests of one load, a line each: pale until the first token, then full."""
    policies = [p for p in POLICIES if any(key[1] == p for key in runs)]
    loads = sorted({key[0] for key in runs})
    load = loads[len(loads) // 2]
    some = {p: runs[min((k for k in runs if k[0] == load and k[1] == p), key=lambda k: k[2])]
            for p in policies}
    # From the middle, when the machine has been busy for a long time.
    skip = len(some[policies[0]]) // 2 // LANES * LANES
    some = {p: rows[skip:skip + LANES] for p, rows in some.items()}
    count, began = len(some[policies[0]]), min(r["at"] for r in some[policies[0]])
    span = max(r["last"] for rows in some.values() for r in rows) - began or 1.0
    wide = (WIDE - LEFT - RIGHT - 2 * GAP) / 3
    step, each = nice(span, 6), high / count
    out = []
    for column, policy in enumerate(policies):
        x = LEFT + column * (wide + GAP)
        out.append(text(x, top - 12, policy, anchor="start", size=13, weight="bold"))
        out.append('<g class="%s"><path class="full" transform="translate(%.1f %.1f)" d="%s"/></g>'
                   % (policy, x - 12, top - 16, MARKS[policy]))
        for i in range(int(span / step) + 1):
            at = x + i * step / span * wide
            out.append('<path class="grid" d="M%.1f %.1fv%.1f"/>' % (at, top, high))
            out.append(text(at, top + high + 16, "%g s" % (i * step), "faint", size=11))
        out.append('<g class="%s">' % policy)
        for i, r in enumerate(some[policy]):
            y = top + i * each
            for kind, begin, end in (("wait full", "at", "first"), ("full", "first", "last")):
                out.append('<rect class="%s" x="%.1f" y="%.2f" width="%.1f" height="%.2f"/>'
                           % (kind, x + (r[begin] - began) / span * wide, y + each * 0.12,
                              max(0.6, (r[end] - r[begin]) / span * wide), each * 0.76))
        out.append("</g>")
        out.append('<path class="axis" d="M%.1f %.1fv%.1fh%.1f"/>' % (x, top, high, wide))
    out.append('<g transform="translate(%.1f %.1f) rotate(-90)">%s</g>'
               % (LEFT - 16, top + high / 2, text(0, 0, "requests, as they came", "faint", size=11)))
    return out, load, count


def caption(notes, rounds):
    about = dict(note for note in notes if len(note) == 2)
    lines = ["%s. %s." % (about.get("machine", ""), about.get("model", "")),
             "%s; lengths %s." % (about.get("trace", ""), about.get("lengths", "")),
             "Slots: %s. Capacity: %s; lines are medians of %d rounds, bands their span."
             % (about.get("slots", ""), about.get("capacity", ""), rounds)]
    return lines + (["Made by: " + about["command"]] if "command" in about else [])


def picture(notes, runs, points, limits):
    rows, load, count = lanes(runs, 102, 170)
    out = rows + panels(points, 392, 170)
    foot = 392 + 2 * 170 + 76 + 62
    lines = caption(notes, len({key[2] for key in runs}))
    high = foot + 17 * len(lines) + 8
    head = ["The same requests, batched in three ways",
            "Above: %d of them at %.0f%% load, a line each; pale while it waits for its first "
            "token, full while it is answered." % (count, load * 100),
            "Below: all of them; times on a logarithmic scale. In time: first token within %g s, "
            "then %g ms a token or less."
            % (limits[0], limits[1] * 1e3)]
    out += [text(LEFT, 24, head[0], anchor="start", size=17, weight="bold")]
    out += [text(LEFT, 44 + 17 * i, line, "faint", "start") for i, line in enumerate(head[1:])]
    out += [text(LEFT, foot + 17 * i, line, "faint", "start", 11) for i, line in enumerate(lines)]
    x = LEFT
    for policy in POLICIES:
        if any(key[1] == policy for key in points):
            out.append('<g class="%s"><path class="line" d="M%d 340h26"/><path class="full" '
                       'transform="translate(%d 340)" d="%s"/></g>' % (policy, x, x + 13, MARKS[policy]))
            out.append(text(x + 34, 344, policy, anchor="start", size=13))
            x += 130
    return "\n".join(
        ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif">'
         % (WIDE, high), "<title>%s</title>" % escape(head[0]), "<style>%s</style>" % style(),
         '<rect class="page" width="%d" height="%d"/>' % (WIDE, high)] + out + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results")
    parser.add_argument("--picture", metavar="FILE.svg")
    parser.add_argument("--ttft", type=float, default=1.0, help="seconds; later is not in time")
    parser.add_argument("--tpot", type=float, default=0.1, help="seconds a token, the same")
    asked = parser.parse_args()
    notes, runs = read(asked.results)
    points = over_rounds(runs, asked.ttft, asked.tpot)
    for note in notes:
        print("# " + ": ".join(note))
    print("# in time: first token within %g s, then %g s a token or less" % (asked.ttft, asked.tpot))
    print("# sent late: %.1f ms at most\n" % (1e3 * max(p["late"][2] for p in points.values())))
    print(table(points))
    if asked.picture:
        with open(asked.picture, "w", encoding="utf-8") as file:
            file.write(picture(notes, runs, points, (asked.ttft, asked.tpot)))


if __name__ == "__main__":
    main()
