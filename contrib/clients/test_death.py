"""The daemon dies in the middle of a stream: an error in the dialect, a clean close, and recovery."""
import threading

import anthropic
import ollama
import openai

import checkers
from dialects import ALL, CHAT, MESSAGES, OLLAMA, RESPONSES, equal
from raw import strict_json
from scripted_model import text_of
from servers import Pair, until
from test_openai_sdk import raised, say

HELLO = text_of("hello").decode()


def recovers(pair):
    pair.start_daemon()
    until("the bridge serves again", lambda: pair.server().get("/health").status == 200)
    for dialect in ALL:
        equal(dialect.name, dialect.whole(pair.server(), dialect.body("scripted", "say hello.")).text, HELLO)


def test_a_stream_ends_with_an_error_event_and_a_clean_close(build):
    pair = Pair(build, "scripted")
    for dialect in (CHAT, RESPONSES, MESSAGES):
        stream = pair.server().stream(dialect.path, dialect.body("scripted", "say forever.", most=10**6))
        for _ in range(20):
            next(stream)
        pair.kill("daemon")
        rest = list(stream)             # asserts that each event is whole
        assert stream.ended, "%s: the body has no end" % dialect.name
        last = rest[-1]
        assert not last.done, "%s: [DONE] behind an error" % dialect.name
        if dialect is RESPONSES:
            assert last.name in ("response.failed", "error"), last
            data = last.json()
            assert (data["response"]["error"] if last.name == "response.failed" else data)["message"], data
        elif dialect is MESSAGES:
            equal("name", last.name, "error")
            equal("type", last.json()["type"], "error")
            assert last.json()["error"]["message"], last
        else:
            equal("name", last.name, None)
            assert isinstance(last.json()["error"]["message"], str), last
        recovers(pair)


def test_an_ollama_stream_ends_with_an_error_line(build):
    pair = Pair(build, "scripted")
    connection, response = pair.server().open("POST", OLLAMA.path, OLLAMA.body("scripted", "say forever."))
    for _ in range(20):
        strict_json(response.readline())
    pair.kill("daemon")
    lines = response.read().rstrip(b"\n").split(b"\n")
    error = strict_json(lines[-1])
    assert isinstance(error["error"], str) and error["error"], error
    connection.close()
    recovers(pair)


def test_a_whole_answer_becomes_an_error_with_a_status(build):
    pair = Pair(build, "scripted")
    for dialect in ALL:
        got = []
        asked = threading.Thread(target=lambda: got.append(
            pair.server().post(dialect.path, {**dialect.body("scripted", "say forever.", most=10**6), "stream": False})))
        asked.start()
        until("it runs", lambda: pair.alive() == 1)
        pair.kill("daemon")
        asked.join()
        assert got and got[0].status in (500, 502, 503), (dialect.name, got)
        checkers.refusal(dialect.path, got[0], got[0].status)
        pair.start_daemon()
        until("the bridge serves again", lambda: pair.server().get("/health").status == 200)


def test_each_official_client_raises(build):
    pair = Pair(build, "scripted")
    chat = openai.OpenAI(base_url=pair.url + "/v1", api_key=pair.key, max_retries=0, timeout=30)
    messages = anthropic.Anthropic(base_url=pair.url, api_key=pair.key, max_retries=0, timeout=30)
    local = ollama.Client(host=pair.url, headers={"Authorization": "Bearer " + pair.key}, timeout=30)
    for kind, ask in (
            (openai.APIError, lambda: chat.chat.completions.create(model="scripted", messages=say("forever"), stream=True)),
            (openai.APIError, lambda: chat.completions.create(model="scripted", prompt="x", max_tokens=10**6, stream=True)),
            (anthropic.APIStatusError, lambda: messages.messages.create(model="scripted", max_tokens=10**6, messages=say("forever"), stream=True)),
            (ollama.ResponseError, lambda: local.chat("scripted", say("forever"), stream=True))):
        stream = iter(ask())
        for _ in range(20):
            next(stream)
        pair.kill("daemon")
        error = raised(kind, lambda: list(stream))
        assert str(error), "an error without a message"
        recovers(pair)
    # The response's own event tells it; the client hands it on.
    stream = iter(chat.responses.create(model="scripted", input="say forever.", stream=True, store=False))
    for _ in range(20):
        next(stream)
    pair.kill("daemon")
    try:
        last = list(stream)[-1]
        assert last.type in ("response.failed", "error"), last
    except openai.APIError as error:
        assert str(error)
    recovers(pair)


def test_a_daemon_that_is_told_to_end_lets_answers_end_or_says_so(build):
    pair = Pair(build, "scripted", daemon=["--drain-timeout-ms", 500])
    stream = pair.server().stream(CHAT.path, CHAT.body("scripted", "say forever."))
    for _ in range(20):
        next(stream)
    pair.programs["daemon"].terminate()
    rest = list(stream)
    pair.programs.pop("daemon").wait()
    assert stream.ended, "the body has no end"
    if not rest[-1].done:
        assert rest[-1].json()["error"]["message"], rest[-1]
    recovers(pair)


def test_a_bridge_that_is_told_to_end_says_so_in_its_streams(build):
    pair = Pair(build, "scripted")
    stream = pair.server().stream(CHAT.path, CHAT.body("scripted", "say numbers."))
    pair.programs["bridge"].terminate()
    checkers.chat_stream(list(stream))
    equal("exit status", pair.programs.pop("bridge").wait(20), 0)
    pair.until_idle()
    pair.start_bridge()
    equal("again", CHAT.whole(pair.server(), CHAT.body("scripted", "say hello.")).text, HELLO)
