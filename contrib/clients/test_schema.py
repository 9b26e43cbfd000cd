"""Random requests by our own OpenAPI description: no answer has status 5xx, none is undescribed."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from servers import ROOT, Pair

DESCRIPTION = ROOT / "docs" / "reference" / "openapi.json"
CASES = 2000                        # at least
# Many requests name no length; so the context is short.
CONTEXT = 512
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
LIMIT = 500


def endless(described):
    """How many operations have more than a few different requests: those with a body."""
    return sum(isinstance(how, dict) and "requestBody" in how for path in described["paths"].values()
               for how in path.values())


def for_the_served_model(described):
    """Nearly all random names of models would be refused."""
    for name, schema in described["components"]["schemas"].items():
        if name.endswith(("Request", "Named")) and "model" in schema["properties"]:
            schema["properties"]["model"] = {"const": "scripted"}
    return json.dumps(described)


def test_random_requests_are_answered_as_described(build):
    described, scripted = json.loads(DESCRIPTION.read_text()), Pair(build, "scripted", context=CONTEXT)
    each = -(-CASES // endless(described)) + 10
    with tempfile.TemporaryDirectory(prefix="samovar-schema-") as folder:
        description = Path(folder) / "openapi.json"
        description.write_text(for_the_served_model(described))
        run = subprocess.run(
            [Path(sys.executable).parent / "schemathesis", "run", description, "--url", scripted.url, "--phases", "fuzzing", "--checks", CHECKS,
             "--header", "Authorization: Bearer " + scripted.key, "--max-examples", str(each), "--seed", "1", "--no-shrink", "--request-timeout", "20",
             "--continue-on-failure", "--generation-with-security-parameters", "false", "--suppress-health-check", "all", "--report", "ndjson",
             "--report-dir", folder, "--no-color"], cwd=folder, capture_output=True, text=True, timeout=LIMIT - 10)
    said = run.stdout + run.stderr
    found = re.search(r"(\d+) generated", said)
    faults = re.findall(r"^(?:____.*|- .*| +`.*| +curl .*)$", said, re.M)
    assert run.returncode == 0, "\n".join(faults or said.splitlines())
    assert found and int(found.group(1)) >= CASES, "too few cases: %s" % said[-1500:]


test_random_requests_are_answered_as_described.limit = LIMIT
