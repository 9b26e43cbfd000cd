"""The coding agents themselves, once each with a tool of theirs. Not run unless `agents` is named:
their packages (requirements-agents.txt) are large."""
import importlib.util
import json
import os
import subprocess
import tempfile
from pathlib import Path

from dialects import equal
from scripted_model import text_of

HELLO = text_of("hello").decode()


def packaged(package, *path):
    found = importlib.util.find_spec(package)
    assert found, "%s is not installed" % package
    binary = Path(found.submodule_search_locations[0]).joinpath(*path)
    binary.chmod(binary.stat().st_mode | 0o111)
    return str(binary)


LIMIT = 120


def run(command, environment):
    home = Path(tempfile.mkdtemp(prefix="samovar-agent-"))
    (home / "work").mkdir()
    (home / "codex").mkdir()
    more = {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home / "codex"), "TERM": "dumb", "LANG": "C.UTF-8"}
    done = subprocess.run(command, env={**more, **environment}, cwd=home / "work", capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT - 10)
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    equal("exit status", (done.returncode, done.stderr[-500:] if done.returncode else ""), (0, ""))
    return said


def codex(pair, text):
    provider = 'model_providers.ours={name="ours",base_url="%s/v1",env_key="OUR_KEY",wire_api="responses"}' % pair.url
    return run([packaged("codex_cli_bin", "bin", "codex"), "exec", "--skip-git-repo-check", "-s", "danger-full-access", "-m", "scripted",
                "-c", "model_provider=ours", "-c", provider, "--json", text], {"OUR_KEY": pair.key})


def claude(pair, text, *more):
    return run([packaged("claude_agent_sdk", "_bundled", "claude"), "-p", text, "--model", "scripted", "--output-format", "stream-json",
                "--verbose", *more],
               {"ANTHROPIC_BASE_URL": pair.url, "ANTHROPIC_AUTH_TOKEN": pair.key, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"})


def slow(test):
    test.limit = LIMIT
    return test


@slow
def test_codex_answers(scripted):
    said = codex(scripted, "Say hello.")
    equal("text", [one["item"]["text"] for one in said if one["type"] == "item.completed" and one["item"]["type"] == "agent_message"], [HELLO])
    assert said[-1]["type"] == "turn.completed" and said[-1]["usage"]["output_tokens"] > 1, said[-1]


@slow
def test_codex_runs_a_command_that_the_model_calls(scripted):
    said = codex(scripted, "say codex_command.")
    ran = [one["item"] for one in said if one["type"] == "item.completed" and one["item"]["type"] == "command_execution"]
    assert ran and "marker-42" in ran[0]["aggregated_output"], said
    assert any(one.get("item", {}).get("text") == text_of("done").decode() for one in said), said


@slow
def test_claude_code_answers(scripted):
    said = claude(scripted, "Say hello.")
    equal("end", (said[-1]["type"], said[-1]["result"], said[-1]["is_error"]), ("result", HELLO, False))
    assert said[-1]["usage"]["output_tokens"] > 1, said[-1]["usage"]


@slow
def test_claude_code_runs_a_command_that_the_model_calls(scripted):
    said = claude(scripted, "say claude_command.", "--allowedTools", "Bash")
    assert "marker-42" in json.dumps([one for one in said if one["type"] == "user"]), said
    equal("end", (said[-1]["result"], said[-1]["is_error"]), (text_of("done").decode(), False))
