#!/usr/bin/env python3
"""A table, and a picture, of the results of bench-batching.

    contrib/dev/batching.py RESULTS [--picture FILE.svg] [--ttft S] [--tpot S]

Each run has its own percentiles over its requests.  The table shows their median over the rounds,
and how far the rounds lie apart. docs/internals/bench.md says what the figures mean.
"""
import argparse
import math
import statistics
from collections import defaultdict

from picture import (BLUE, CIRCLE, GAP, LEFT, ORANGE, PINK, RIGHT, SQUARE, TRIANGLE, WIDE, Across,
                     Panel, Scale, legend, nice, read_results, text, whole)

LOOKS = {"continuous": (BLUE, CIRCLE), "dynamic": (ORANGE, TRIANGLE), "static": (PINK, SQUARE)}
POLICIES = list(LOOKS)
NUMBERS = ["at", "sent", "first", "last", "prompt", "output"]


def read(path):
    """(notes, {(load, policy, round): requests}); a request's times are in seconds."""
    notes, rows = read_results(path)
    runs = defaultdict(list)
    for row in rows:
        runs[float(row["load"]), row["policy"], int(row["round"])].append(
            {name: float(row[name]) for name in NUMBERS})
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

LANES = 48

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
    across = Across(loads, "load, of what the machine can do", lambda load: "%.0f%%" % (load * 100))
    wide = (WIDE - LEFT - RIGHT - 2 * GAP) / 3
    out = []
    for row, line in enumerate(PANELS):
        for column, (title, label, name, unit, log, shared) in enumerate(line):
            # Panels that are to be compared share one scale.
            scale = Scale([v * unit for one in points.values() for s in shared
                           for v in one[s]], log)
            panel = Panel(LEFT + column * (wide + GAP), top + row * (high + 76), wide, high,
                          across, scale)
            out += panel.frame(title, label)
            for policy in policies:
                out += panel.curve(policy, LOOKS[policy][1],
                                   {load: tuple(v * unit for v in points[load, policy][name])
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
                   % (policy, x - 12, top - 16, LOOKS[policy][1]))
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
    used = {p: look for p, look in LOOKS.items() if any(key[1] == p for key in points)}
    head = ["The same requests, batched in three ways",
            "Above: %d of them at %.0f%% load, a line each; pale while it waits for its first "
            "token, full while it is answered." % (count, load * 100),
            "Below: all of them; times on a logarithmic scale. In time: first token within %g s, "
            "then %g ms a token or less."
            % (limits[0], limits[1] * 1e3)]
    body = rows + panels(points, 392, 170) + legend(used, 340)
    return whole(head, body, LOOKS, 392 + 2 * 170 + 76 + 62,
                 caption(notes, len({key[2] for key in runs})))


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
