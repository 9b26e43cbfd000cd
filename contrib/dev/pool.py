#!/usr/bin/env python3
"""A table, and a picture, of the results of bench-pool.

    contrib/dev/pool.py RESULTS [--picture FILE.svg]

docs/internals/bench.md says what the figures mean.
"""
import argparse

from picture import (BLUE, CIRCLE, DIAMOND, GAP, GREEN, LEFT, ORANGE, PINK, RIGHT, SQUARE, TRIANGLE,
                     WIDE, Across, Panel, Scale, legend, read_results, whole)

LOOKS = {"learned": (BLUE, CIRCLE), "reserve": (PINK, SQUARE), "oracle": (GREEN, DIAMOND),
         "vllm": (ORANGE, TRIANGLE)}
HIGH, TOP = 220, 130


def read(path):
    """(notes, {(pool, policy): figures}), in the order of the results."""
    notes, rows = read_results(path)
    return notes, {(float(row["pool"]), row["policy"]):
                   {name: float(value) for name, value in row.items() if name != "policy"}
                   for row in rows}


# ---- the table

HEADS = ["pool", "policy", "requests/s", "tokens/s", "running, mean", "p95", "preemptions per 100",
         "recomputed tokens", "TTFT mean, s", "p50", "p95", "in use, %"]


def seconds(value):
    """About three significant digits."""
    return "%.*f" % (0 if value >= 99.95 else 1 if value >= 9.995 else 2, value)


def table(points):
    lines = ["| " + " | ".join(HEADS) + " |", "|---" * len(HEADS) + "|"]
    for (pool, policy), one in points.items():
        cells = ["%g (%d)" % (pool, one["blocks"]), policy, "%.2f" % one["requests_s"],
                 "%.0f" % one["tokens_s"], "%.1f" % one["running_mean"],
                 "%.0f" % one["running_p95"], "%.1f" % one["preemptions_100"],
                 "%d" % one["recomputed"],
                 seconds(one["ttft_mean"]), seconds(one["ttft_p50"]), seconds(one["ttft_p95"]),
                 "%.0f" % (one["in_use"] * 100)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


# ---- the picture

PANELS = [[("Running sequences", "mean by time", "running_mean", False),
           ("Preemptions", "per 100 requests", "preemptions_100", False)],
          [("Throughput", "tokens a second", "tokens_s", False),
           ("First token, half within (TTFT p50)", "seconds", "ttft_p50", True)]]


def panels(points, looks):
    pools = sorted({pool for pool, _ in points})
    across = Across(pools, "size of the pool, in mean needs", lambda pool: "%g" % pool, log=True)
    wide = (WIDE - LEFT - RIGHT - GAP) / 2
    out = []
    for row, line in enumerate(PANELS):
        for column, (title, label, name, log) in enumerate(line):
            panel = Panel(LEFT + column * (wide + GAP), TOP + row * (HIGH + 76), wide, HIGH, across,
                          Scale([one[name] for one in points.values()], log))
            out += panel.frame(title, label)
            for policy, (_, mark) in looks.items():
                out += panel.curve(policy, mark, {pool: (points[pool, policy][name],) * 3
                                                  for pool in pools if (pool, policy) in points})
    return out


def picture(notes, points):
    looks = {policy: look for policy, look in LOOKS.items() if any(p == policy for _, p in points)}
    about = dict(note for note in notes if len(note) == 2)
    head = ["The same requests, admitted to the KV pool in %d ways" % len(looks),
            "Simulated time; pools and TTFT on logarithmic scales. A pool of 1 mean need has as "
            "many blocks as the requests use on average."]
    small = ["%s." % about.get("trace", ""), "Load: %s." % about.get("load", ""),
             "Steps: %s. Asked: %s." % (about.get("steps", ""), about.get("asked", ""))]
    if "command" in about:
        small.append("Made by: " + about["command"])
    return whole(head, panels(points, looks) + legend(looks, 84), looks, TOP + 2 * HIGH + 76 + 62,
                 small)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results")
    parser.add_argument("--picture", metavar="FILE.svg")
    asked = parser.parse_args()
    notes, points = read(asked.results)
    for note in notes:
        print("# " + ": ".join(note))
    print("\n" + table(points))
    if asked.picture:
        with open(asked.picture, "w", encoding="utf-8") as file:
            file.write(picture(notes, points))


if __name__ == "__main__":
    main()
