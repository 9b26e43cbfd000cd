"""The curve of a training run: a table on disk, and a drawing of it."""
import csv
import os

FIELDS = ["tokens", "minutes", "rate", "train", "valid"]
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 56, 16, 20, 44
COLOURS = {"train": "#7a9cc6", "valid": "#c0392b"}


def save(path, rows):
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    os.replace(path + ".new", path)


def text(x, y, words, anchor="middle"):
    return '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (x, y, anchor, words)


def draw(path, rows, title):
    """Losses against tokens, as SVG. The first and highest few are cut off."""
    lines = {name: [(r["tokens"], r[name]) for r in rows if r[name] is not None]
             for name in ("train", "valid")}
    losses = sorted(y for points in lines.values() for _, y in points)
    if not losses:
        return
    last = max(r["tokens"] for r in rows)
    low, high = 0.0, losses[-1] if len(losses) < 20 else losses[int(len(losses) * 0.97)]

    def place(x, y):
        return (LEFT + x / last * (WIDE - LEFT - RIGHT),
                HIGH - BOTTOM - min(1.0, (y - low) / (high - low)) * (HIGH - TOP - BOTTOM))

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif"'
           ' font-size="12" fill="#333">' % (WIDE, HIGH),
           '<rect width="%d" height="%d" fill="#fff"/>' % (WIDE, HIGH)]
    for i in range(6):
        loss, tokens = low + (high - low) * i / 5, last * i / 5
        _, y = place(0, loss)
        x, _ = place(tokens, low)
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/>' % (LEFT, y, WIDE - RIGHT))
        out.append(text(LEFT - 6, y + 4, "%.2f" % loss, "end"))
        out.append(text(x, HIGH - BOTTOM + 16, "%.3g M" % (tokens / 1e6)))
    out.append(text((LEFT + WIDE - RIGHT) / 2, HIGH - 8, "tokens"))
    out.append(text(LEFT, 14, title, "start"))
    for i, (name, points) in enumerate(lines.items()):
        where = " ".join("%.1f,%.1f" % place(*p) for p in points)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>'
                   % (where, COLOURS[name]))
        at = WIDE - RIGHT - 130 + 70 * i
        out.append('<path d="M%d 10h16" stroke="%s" stroke-width="3"/>' % (at, COLOURS[name]))
        out.append(text(at + 20, 14, name, "start"))
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))
