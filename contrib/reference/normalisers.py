#!/usr/bin/env python3
"""Texts that the library `tokenizers` normalises: golden for tests/golden/test-normalisers.c.

    python3 -m venv V && V/bin/pip install tokenizers
    V/bin/python -I contrib/reference/normalisers.py >tests/golden/texts/normalisers.txt

A line that begins with ':' names a step as the test knows it; each line behind it has a text and what
the step makes of it, both in hexadecimal.
"""
import random

from tokenizers import Regex, normalizers

PARTS = (
    " |  |\t|\n|\r\n|\x0b|\x85|\xa0|\u1680|\u2003|\u200b|\u200d|\u2028|\u3000|\ufeff|\u2581|\x00|\x01|\x07|\x1f|\x7f|\x8f|\x9f|"
    "a|A|The|STRASSE|stra\xdfe|\xc9|\xe9|e\u0301|\u0130|\u0131|\u01c5|\u03a3|\u03c2|\u1e9e|\u0345|\u0308|\u0327\u0301|\u0316\u0300|\u05c1|\u0903|\u20e3|"
    "\u212b|\u2126|\uac00|\u1100\u1161\u11a8|\u6211|\u4e00\u9fff|\u3400|\uf900|\U00020000|\U0002ceb0|\u3042|\u30ab|\ufb01|\u2460|1|12|'|-|_|<s>|"
    "\U0001f680|\ufffd|\u0378|\ue000|\U000e0001|\u202e|aab|abab"
).split("|")
STEPS = {
    "nfc": normalizers.NFC(), "nfd": normalizers.NFD(), "lower": normalizers.Lowercase(),
    "drop-marks": normalizers.StripAccents(),
    "trim-left": normalizers.Strip(True, False), "trim-right": normalizers.Strip(False, True),
    "replace": normalizers.Replace(Regex(r"a+|\s{2,}"), "<>"), "replace-empty": normalizers.Replace(Regex("b*"), "."),
    "prepend": normalizers.Prepend("\u2581x"), "nmt": normalizers.Nmt(),
    "bert": normalizers.BertNormalizer(True, True, None, True), "bert-cased": normalizers.BertNormalizer(True, True, None, False),
}


def changed(step):
    """Each character that the step changes, 64 in a text."""
    all_of_them = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    found = [c for c in all_of_them if step.normalize_str(c) != c]
    return [" ".join(found[at:at + 64]) for at in range(0, len(found), 64)]


def main():
    rng = random.Random(3)
    texts = [""] + ["".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 9))) for _ in range(60)]
    for name, step in STEPS.items():
        print(":" + name)
        for text in texts + (changed(step) if name == "lower" else []):
            print(text.encode().hex() or "-", step.normalize_str(text).encode().hex() or "-")


main()
