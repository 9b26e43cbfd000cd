"""Does a real Prometheus understand what samovar-http exports, and what the dashboard asks?

    check.py BUILD

Called by `check`.  A fresh pair of samovard and samovar-http answers some requests, Prometheus
scrapes it, and each panel's expression is asked.
"""
import json
import re
import subprocess
import sys
import tempfile
import traceback
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "contrib" / "clients"))

from run import raise_loopback                     # noqa: E402
from servers import Pair, free_port, until         # noqa: E402

PAGE = ROOT / "docs" / "reference" / "http.md"
DASHBOARD = json.loads((HERE / "dashboard.json").read_text())
NAME = re.compile(r"\b(?:samovar|gen_ai)_\w+")
OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")
VLLM_NAME = "samovar_iteration_tokens_total "       # a histogram, which promtool would name in another way
OF_USERS = "samovar_user_"                         # are not for the holder of a key
SCRAPES = 4                                        # at least, so that rates are known
RANGE = "1m"


def targets():
    """(title, expression) of all panels."""
    return [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]


def filled_in(expression):
    return expression.replace("$__rate_interval", RANGE).replace("$job", "samovar")


class Prometheus:
    def __init__(self, pair, folder):
        self.port = free_port()
        key = folder / "key"
        key.write_text(pair.key)
        text = (HERE / "prometheus.yml").read_text()
        text = text.replace("127.0.0.1:7266", "127.0.0.1:%d" % pair.port)
        text = text.replace("/etc/prometheus/samovar-key", str(key))
        self.config = folder / "prometheus.yml"
        self.config.write_text("global: {scrape_interval: 1s}\n" + text)
        self.log = open(folder / "prometheus.log", "wb")
        self.program = subprocess.Popen(
            ["prometheus", "--config.file=%s" % self.config, "--storage.tsdb.path=%s" % (folder / "data"),
             "--web.listen-address=127.0.0.1:%d" % self.port], stdout=self.log, stderr=self.log)

    def until_it_has_scraped(self):
        until("Prometheus has scraped", self.has_scraped, 60, [self.program])

    def ask(self, expression):
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?%s" % (self.port, query), timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def has_scraped(self):
        try:
            result = self.ask('sum_over_time(up{job="samovar"}[5m]) >= %d' % SCRAPES)
        except (OSError, ValueError):       # it starts
            return False
        return bool(result["data"]["result"])

    def end(self):
        self.program.kill()
        self.program.wait()
        self.log.close()


def work(pair):
    """Requests of several kinds, so that each metric has a value."""
    server, say = pair.server(), [{"role": "user", "content": "What is two plus three?"}]
    chat = {"model": "teaspoon", "messages": say}
    for more in ({}, {}, {"n": 2}, {"max_tokens": 2}):
        assert server.post("/v1/chat/completions", {**chat, **more}).status == 200
    assert list(server.stream("/v1/chat/completions", chat))[-1].done
    assert server.post("/v1/completions", {"prompt": "Once"}).status == 200
    assert server.post("/v1/chat/completions", {**chat, "model": 'none "such"'}).status == 404


def exported(text):
    """Names of the metrics, without the suffixes of histograms."""
    return set(re.findall(r"^# TYPE (\w+) ", text, re.M))


def described():
    """Names in the tables of the reference page."""
    return {name for line in PAGE.read_text().splitlines() if line.startswith("| `")
            for name in NAME.findall(line.split("|")[1])}


# ---- the checks

def check_the_text_is_as_promtool_wants_it(pair, prometheus):
    run = subprocess.run(["promtool", "check", "metrics"], input=pair.text, text=True, capture_output=True)
    complaints = [line for line in (run.stdout + run.stderr).splitlines() if not line.startswith(VLLM_NAME)]
    assert not any(line.strip() for line in complaints), complaints


def check_the_configuration_is_right(pair, prometheus):
    run = subprocess.run(["promtool", "check", "config", prometheus.config], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr


def check_every_metric_of_the_dashboard_is_exported(pair, prometheus):
    names = {OF_HISTOGRAM.sub("", name) if OF_HISTOGRAM.sub("", name) in exported(pair.text) else name
             for _, expression in targets() for name in NAME.findall(expression)}
    missing = sorted(names - exported(pair.text))
    assert len(names) > 20 and not missing, missing


def check_the_reference_page_has_every_metric(pair, prometheus):
    both = {name for name in described() if not name.startswith(OF_USERS)} ^ exported(pair.text)
    assert not both, "only in one of http.md and /metrics: %s" % sorted(both)


def check_prometheus_stores_every_metric(pair, prometheus):
    for name in sorted(exported(pair.text)):
        series = '{__name__=~"%s(_bucket|_sum|_count)?"}' % name
        assert prometheus.ask("count(%s)" % series)["data"]["result"], name


def check_every_panel_has_a_value(pair, prometheus):
    for title, expression in targets():
        answer = prometheus.ask(filled_in(expression))
        assert answer["status"] == "success" and not answer.get("warnings"), (title, answer)
        assert answer["data"]["result"], "%s: no value of %s" % (title, expression)


def check_tokens_are_those_of_the_requests(pair, prometheus):
    ours = prometheus.ask("samovar_generation_tokens_total")["data"]["result"][0]["value"][1]
    otel = prometheus.ask('sum(gen_ai_client_token_usage_sum{gen_ai_token_type="output"})')["data"]["result"][0]["value"][1]
    assert float(ours) == float(otel) > 20, (ours, otel)


def main():
    raise_loopback()
    passed, failed = 0, []
    pair = Pair(sys.argv[1], "teaspoon", bridge=["--otel"])
    prometheus = None
    with tempfile.TemporaryDirectory(prefix="samovar-metrics-") as folder:
        try:
            work(pair)
            pair.text = pair.server().get("/metrics").body.decode()
            prometheus = Prometheus(pair, Path(folder))
            prometheus.until_it_has_scraped()
            for name, check in [(n, c) for n, c in globals().items() if n.startswith("check_")]:
                try:
                    check(pair, prometheus)
                    passed += 1
                except Exception:
                    failed.append(name)
                    print("NOT %s\n%s" % (name, traceback.format_exc()))
        finally:
            if prometheus:
                prometheus.end()
            pair.end()
    print("%d passed, %d failed, 0 skipped" % (passed, len(failed)))
    return 1 if failed else 0


sys.exit(main())
