"""What contrib/dev/tally counts, and why it says that cases were skipped.  TAP, as of the others."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TALLY = Path(__file__).with_name("tally")
CASES = [
    # (what, result, output of the program, count, lines about skipped cases)
    ("cases are counted, not programs", "OK", "1..2\nok 1 - a\nok 2 - b\n", (2, 0, 0), []),
    ("a program without TAP is one case", "OK", "done\n", (1, 0, 0), []),
    ("a program that dies is one failure", "FAIL", "1..2\nok 1 - a\n", (1, 1, 0), []),
    ("a case is skipped with its reason", "OK", "ok 1 - a\n# only root can\nnot ok 2 # SKIP b\n", (1, 0, 1),
     ["skipped: x: b: only root can"]),
    ("a reason is of the next case only", "OK", "# no\nok 1 - a\nok 2 # SKIP b\n", (1, 0, 1),
     ["skipped: x: b: no reason given"]),
    ("a program is skipped as TAP has it", "SKIP", "1..0 # SKIP there is no python3\n", (0, 0, 1),
     ["skipped: x: all: there is no python3"]),
    ("a program is skipped with a word", "SKIP", "skipped: no data\n", (0, 0, 1), ["skipped: x: all: no data"]),
    ("a program is skipped without a word", "SKIP", "", (0, 0, 1), ["skipped: x: all: no reason given"]),
]


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (what, result, output, counts, reasons) in enumerate(CASES, 1):
        with tempfile.NamedTemporaryFile("w") as log:
            log.write(json.dumps({"name": "samovar:unit / x", "result": result, "stdout": output}) + "\n")
            log.flush()
            ran = subprocess.run([sys.executable, "-B", TALLY, log.name], capture_output=True, text=True, check=True)
        good = ran.stdout == "{} passed, {} failed, {} skipped\n".format(*counts) and ran.stderr.splitlines() == reasons
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
        if not good:
            print(f"# {ran.stdout!r} {ran.stderr!r}")
    return failed > 0


sys.exit(main())
