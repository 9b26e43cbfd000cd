"""The command `llm`, with models of the kind that its file extra-openai-models.yaml names."""
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from dialects import equal
from scripted_model import text_of

HELLO = text_of("hello").decode()


def command(pair, arguments, folder=None):
    """What to run, and in which environment."""
    folder = folder or Path(tempfile.mkdtemp(prefix="samovar-llm-"))
    (folder / "extra-openai-models.yaml").write_text(
        "- model_id: ours\n  model_name: %s\n  api_base: %s/v1\n  api_key_name: ours\n  supports_tools: true\n  supports_schema: true\n" % (pair.model, pair.url))
    (folder / "keys.json").write_text('{"ours": "%s"}' % pair.key)
    return [sys.executable, "-m", "llm", *arguments], {**os.environ, "LLM_USER_PATH": str(folder)}


def llm(pair, *arguments, folder=None):
    words, environment = command(pair, arguments, folder)
    run = subprocess.run(words, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL, env=environment)
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


def test_an_interrupt_or_a_kill_ends_its_stream_in_the_daemon(scripted):
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        words, environment = command(scripted, ["-m", "ours", "say forever."])
        # A job in the background of a shell has no interrupts, and neither have its children.
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as asked:
            equal("%s: the beginning" % end.name, asked.stdout.read(5), text_of("forever")[:5])
            equal("%s: alive" % end.name, scripted.alive(), 1)
            asked.send_signal(end)
            scripted.until_idle()
            asked.stdout.read()         # what it wrote before; then it has ended
        assert asked.returncode != 0, end
