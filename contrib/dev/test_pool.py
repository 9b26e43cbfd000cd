"""What contrib/dev/pool.py makes of the results of bench-pool: a table and a picture.  TAP."""
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

POOL = Path(__file__).with_name("pool.py")
RESULTS = """# trace: made up
pool,blocks,policy,requests_s,tokens_s,running_mean,running_p95,preemptions_100,recomputed,ttft_mean,ttft_p50,ttft_p95,in_use
0.5,50,reserve,1.234,99.6,9.949,10,0,0,120.4,12.34,0.123,0.256
0.5,50,learned,2,200,19,20,0.954,77,1,2,3,0.9
4,400,reserve,3,300,5,6,0,0,1,2,3,0.1
"""
ROWS = ["| 0.5 (50) | reserve | 1.23 | 100 | 9.9 | 10 | 0.0 | 0 | 120 | 12.3 | 0.12 | 26 |",
        "| 0.5 (50) | learned | 2.00 | 200 | 19.0 | 20 | 1.0 | 77 | 1.00 | 2.00 | 3.00 | 90 |",
        "| 4 (400) | reserve | 3.00 | 300 | 5.0 | 6 | 0.0 | 0 | 1.00 | 2.00 | 3.00 | 10 |"]


def points_of(svg):
    """How many points the lines of each policy have, over all panels."""
    counts = {}
    for group in svg.iter("{http://www.w3.org/2000/svg}g"):
        for line in group.findall("{http://www.w3.org/2000/svg}polyline"):
            policy = group.get("class")
            counts[policy] = counts.get(policy, 0) + len(line.get("points").split())
    return counts


def main():
    with tempfile.TemporaryDirectory() as folder:
        results, picture = Path(folder, "pool.csv"), Path(folder, "pool.svg")
        results.write_text(RESULTS, encoding="utf-8")
        ran = subprocess.run([sys.executable, "-B", POOL, results, "--picture", picture],
                             capture_output=True, text=True, check=True)
        svg = ElementTree.parse(picture).getroot()
    found = [("the table has each run, rounded", ran.stdout.splitlines()[-3:] == ROWS),
             ("four panels have a line for each policy, with a point for each pool",
              points_of(svg) == {"reserve": 8, "learned": 4})]
    print(f"1..{len(found)}")
    for number, (what, good) in enumerate(found, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
    return not all(good for _, good in found)


if __name__ == "__main__":
    sys.exit(main())
