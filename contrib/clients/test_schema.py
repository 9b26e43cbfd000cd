"""Random requests by our own OpenAPI description: no answer has status 5xx, none is undescribed."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from servers import ROOT, Pair

DESCRIPTION = ROOT / "docs" / "reference" / "openapi.json"
CASES = 2000                        # at least
EACH = 65                           # of an operation; some have only a few different requests
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
LIMIT = 300


def test_random_requests_are_answered_as_described(build):
    # With a short context, so that no answer is long.
    pair = Pair(build, "scripted", daemon=["--ctx", 512])
    with tempfile.TemporaryDirectory(prefix="samovar-schema-") as folder:
        run = subprocess.run(
            [Path(sys.executable).parent / "schemathesis", "run", DESCRIPTION, "--url", pair.url, "--phases", "fuzzing", "--checks", CHECKS,
             "--header", "Authorization: Bearer " + pair.key, "--max-examples", str(EACH), "--seed", "1", "--workers", "2", "--no-shrink", "--request-timeout", "20",
             "--continue-on-failure", "--generation-with-security-parameters", "false", "--suppress-health-check", "all", "--report", "ndjson",
             "--report-dir", folder, "--no-color"], cwd=folder, capture_output=True, text=True, timeout=LIMIT - 10)
    said = run.stdout + run.stderr
    found = re.search(r"(\d+) generated", said)
    assert run.returncode == 0, said[-6000:]
    assert found and int(found.group(1)) >= CASES, "too few cases: %s" % said[-1500:]


test_random_requests_are_answered_as_described.limit = LIMIT
