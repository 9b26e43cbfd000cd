"""Runs samovar bench, and computes its figures again with numpy: see contrib/bench/percentiles."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

SPREADS = ["ttft", "tpot", "itl", "e2e", "ttft_sent", "e2e_sent", "late"]
PERCENTILES = {"least": 0, "p50": 50, "p90": 90, "p95": 95, "p99": 99, "most": 100}
ROUNDING = 1e-9                     # of a mean: sums are added up in another order
# A run at 32 streams, an open loop with prefixes and a target, and two servers in turns.
RUNS = [
    ["--concurrency", "1,32", "--input", "16-64", "--output", "exp:32"],
    ["--rate", "40", "--burstiness", "0.5", "--requests", "80", "--input", "32", "--output", "8-24",
     "--prefix", "0.5:64:2", "--slo", "ttft=20ms,e2e=200ms"],
    ["--against", "URL", "--rounds", "2", "--input", "32", "--output", "16", "--concurrency", "8"],
    ["--url", "URL", "--api", "chat", "--input", "64", "--output", "16", "--concurrency", "32"],
]


def wait_for(check):
    deadline = time.monotonic() + 60
    while not check():
        if time.monotonic() > deadline:
            sys.exit("a server did not start")
        time.sleep(0.02)


def start(folder, build):
    """A daemon and samovar-http beside it: (processes, socket, URL)."""
    socket, log = folder / "sock", folder / "http.log"
    daemon = subprocess.Popen([build / "daemon/samovard", "--config", "none", "--socket", socket],
                              stderr=subprocess.DEVNULL)
    wait_for(socket.exists)
    with open(log, "wb") as out:
        http = subprocess.Popen([build / "bridge/samovar-http", "--config", "none", "--listen",
                                 "127.0.0.1:0", "--socket", socket], stderr=out, stdout=out)
    found = []
    wait_for(lambda: found.extend(re.findall(r"address=(127\.0\.0\.1:\d+)", log.read_text())) or found)
    return [http, daemon], socket, "http://%s/v1" % found[0]


def key_of(run):
    """What a run and its samples have in common."""
    return tuple(run.get(name) for name in ("server", "round", "concurrency", "rate"))


def read_samples(path):
    samples = {}
    for line in path.read_text().splitlines():
        sample = json.loads(line)
        samples.setdefault(key_of(sample), []).append(sample)
    return samples


def values_of(samples, spread):
    good = [sample for sample in samples if "error" not in sample]
    if spread == "itl":
        return [gap for sample in good for gap in sample["itl_ms"]]
    return [sample[spread + "_ms"] for sample in good if spread + "_ms" in sample]


def differences(ours, values):
    """The names of our figures that are not numpy's."""
    if ours["count"] != len(values):
        return ["count"]
    if not values:
        return []
    wrong = [name for name, percent in PERCENTILES.items()
             if ours[name] != float(numpy.percentile(values, percent))]
    wrong += [name for name, value in (("mean", numpy.mean(values)), ("deviation", numpy.std(values)))
              if abs(ours[name] - value) > ROUNDING * max(1.0, abs(value))]
    return wrong


def compare(command, folder):
    """(passed, failed) of one command."""
    raw = folder / "raw"
    ran = subprocess.run([*command, "--json", "--raw", raw], text=True, stdout=subprocess.PIPE)
    if ran.returncode:
        print("FAIL  status %d: %s" % (ran.returncode, " ".join(map(str, command[1:]))))
        return 0, 1
    samples, passed, failed = read_samples(raw), 0, 0
    for run in json.loads(ran.stdout)["runs"]:
        name = "%s, own load %.2f %% of a core" % (
            ", ".join("%s %s" % (key, run[key]) for key in ("server", "round", "concurrency", "rate")
                      if key in run), run["own_cpu_percent"])
        for spread in SPREADS:
            values = values_of(samples[key_of(run)], spread)
            wrong = differences(run[spread + "_ms"], values)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print("%s %s of %d values: %s%s" % ("FAIL " if wrong else "ok   ", spread, len(values), name,
                                                ": " + ", ".join(wrong) if wrong else ""))
    return passed, failed


def main():
    build = Path(sys.argv[1]).resolve()
    os.environ.pop("SAMOVAR_SOCKET", None)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        processes, socket, url = start(Path(name), build)
        try:
            for run in RUNS:
                given = [url if word == "URL" else word for word in run]
                server = [] if "--url" in given else ["--socket", socket]
                one = compare([build / "cli/samovar", "bench", *server, *given], Path(name))
                passed, failed = passed + one[0], failed + one[1]
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(1 if failed else 0)


main()
