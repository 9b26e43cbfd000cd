"""What contrib/dev/prose finds, and what it leaves alone.  One line for each case, as TAP has it."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("prose", str(Path(__file__).with_name("prose")))
SPEC = importlib.util.spec_from_loader("prose", LOADER)
prose = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(prose)


def of_links(text):
    return prose.links("README.md", text)


def of_glossary(rows):
    return prose.glossary("## Glossary\n\n| word | meaning |\n|---|---|\n" + rows)


LONG = "x" * 60 + " " + "y" * 60
CASES = [
    # (what, checker, text, kinds that are found)
    ("a plain comment", prose.of_c, "/* Frees the block. */\nint x;", []),
    ("a long comment", prose.of_c, f"/* {LONG} */\nint x;", ["width"]),
    ("a long line of code", prose.of_c, f'f("{LONG.replace(" ", "")}");', []),
    ("a sentence that begins with Who", prose.of_c, "/* Done. Who waits is told. */", ["riddle"]),
    ("a sentence that begins with What is", prose.of_c, "/*\n * What is shared is\n * charged. */", ["riddle"]),
    ("a question", prose.of_page, "Who? The loop.", []),
    ("a word that begins like one", prose.of_c, "/* Whole pages are copied. */", []),
    ("a word of earlier times", prose.of_c, "/* The scribe reads it. */", ["word"]),
    ("a word that has one in it", prose.of_c, "/* It was screwed, and described. */", []),
    ("he for a program", prose.of_c, "/* The engine frees what he holds. */", ["he"]),
    ("a word with he in it", prose.of_c, "/* The scheduler, then the history. */", []),
    ("a string that is a sentence", prose.of_c, 'say("Nobody may write to this socket");', ["riddle"]),
    ("a string that is none", prose.of_c, 'f("Who");', []),
    ("a torn declaration", prose.of_c, "        int most =\n                0; /* " + "z" * 60 + " */", ["torn"]),
    ("a body of one statement", prose.of_c,
     "        if (x)\n                return; /* " + "z" * 20 + " */", []),
    ("a statement that is too long for a line", prose.of_c,
     "        call(" + "a" * 70 + ",\n             " + "b" * 40 + "); /* why */", []),
    ("a wide line of a page", prose.of_page, LONG, ["width"]),
    ("a wide row of a table", prose.of_page, f"| {LONG} |", []),
    ("a wide line of code on a page", prose.of_page, f"```\n{LONG}\n```", []),
    ("he across two lines of a page", prose.of_page, "The client reads what\nhe asked for.", ["he"]),
    ("he in a script", prose.of_script, "#!/bin/sh\n# he stops\nx=1", ["he"]),
    ("a link to a page", of_links, "[a](HACKING.md), [b](HACKING.md#build-and-run), [c](#x)\n# X", []),
    ("links that lead nowhere", of_links, "[a](HACKED.md) [b](HACKING.md#no-such-headline)",
     ["link", "link"]),
    ("a link in code, one to another place", of_links, "`[a](b)` [c](https://example.org/d)", []),
    ("a glossary", of_glossary, "| block | 16 positions |\n| ring (memory) | records |\n", []),
    ("a glossary that is not sorted", of_glossary, "| ring | a |\n| block | b |\n", ["glossary"]),
    ("a word that stands twice", of_glossary, "| ring | a |\n| ring | b |\n", ["glossary"]),
    ("a word that no code has", of_glossary, "| samovarium | a |\n", ["glossary"]),
    ("a script's code", prose.of_script, "#!/bin/sh\necho he", []),
]


def main():
    bad = 0
    print(f"1..{len(CASES)}")
    for number, (name, checker, text, expected) in enumerate(CASES, 1):
        found = [kind for _, kind, _ in checker(text)]
        bad += found != expected
        print(f"{'ok' if found == expected else 'not ok'} {number} - {name}: {expected} {found}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
