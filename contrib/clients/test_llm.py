"""The command `llm`, with models of the kind that its file extra-openai-models.yaml names."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dialects import equal
from scripted_model import text_of

HELLO = text_of("hello").decode()


def llm(pair, *arguments, folder=None):
    folder = folder or Path(tempfile.mkdtemp(prefix="samovar-llm-"))
    (folder / "extra-openai-models.yaml").write_text(
        "- model_id: ours\n  model_name: %s\n  api_base: %s/v1\n  api_key_name: ours\n  supports_tools: true\n  supports_schema: true\n" % (pair.model, pair.url))
    (folder / "keys.json").write_text('{"ours": "%s"}' % pair.key)
    run = subprocess.run([sys.executable, "-m", "llm", *arguments], capture_output=True, text=True, timeout=50,
                         stdin=subprocess.DEVNULL, env={**os.environ, "LLM_USER_PATH": str(folder)})
    return run.returncode, run.stdout.strip(), run.stderr.strip()


def test_it_answers_streamed_and_whole(scripted):
    for more in ([], ["--no-stream"]):
        equal(more, llm(scripted, "-m", "ours", "say hello.", *more), (0, HELLO, ""))


def test_it_goes_on_with_a_conversation_and_logs_what_was_used(teaspoon):
    folder = Path(tempfile.mkdtemp(prefix="samovar-llm-"))
    status, said, _ = llm(teaspoon, "-m", "ours", "What is two plus three?", "-o", "temperature", "0", folder=folder)
    assert status == 0 and "five" in said, said
    status, said, fault = llm(teaspoon, "-c", "What is four plus four?", "-o", "temperature", "0", "-u", folder=folder)
    assert status == 0 and "eight" in said, (said, fault)
    assert "input" in fault and "output" in fault, "no usage: %s" % fault


def test_it_calls_a_tool(scripted):
    code = "def get_weather(city: str) -> str:\n    \"The weather\"\n    return 'warm in ' + city\n"
    status, said, fault = llm(scripted, "-m", "ours", "say call.", "--functions", code, "--td")
    assert status == 0 and "warm in Athens" in fault, (status, said, fault)
    assert text_of("done").decode() in said, said


def test_it_fills_a_schema(teaspoon):
    schema = {"type": "object", "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 20}},
              "required": ["answer"], "additionalProperties": False}
    status, said, fault = llm(teaspoon, "-m", "ours", "What is two plus three?", "-o", "temperature", "0", "--schema", json.dumps(schema))
    assert status == 0 and json.loads(said)["answer"] in range(21), (status, said, fault)


def test_an_error_ends_it_with_a_message(scripted):
    status, _, fault = llm(scripted, "-m", "ours", "say hello.", "-o", "max_tokens", "-5")
    assert status != 0 and "max_tokens" in fault, (status, fault)
