"""What users of other servers complain about most, in the order of how many do."""
import json
import re
import socket
import threading

import checkers
from checkers import refusal
from dialects import (ALL, CHAT, MESSAGES, OLLAMA, OPENAI_AND_ANTHROPIC, RESPONSES, TOOLS, WEATHER, both, chat_tools,
                      equal, responses_tools)
from raw import Server
from scripted_model import PARTY, text_of
from servers import Pair, until

HELLO = text_of("hello").decode()


def hello(dialect, pair, **more):
    return both(dialect, pair.server(), dialect.body("scripted", "say hello.", **more))


def opened(server, dialect, body, buffer=None):
    """A connection on which a streamed answer was asked for, of which nothing is read."""
    data = json.dumps({**body, "stream": True}).encode()
    tunnel = server.tunnel(buffer)
    tunnel.sendall(("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                    "Content-Length: %d\r\n\r\n" % (dialect.path, server.key, len(data))).encode() + data)
    return tunnel


def read_lines(tunnel, count):
    """Reads the beginning of a stream."""
    said, seen = b"", 0
    while seen < count:
        piece = tunnel.recv(65536)
        assert piece, "the stream ends: %r" % said[-300:]
        said, seen = piece, seen + piece.count(b"\n")
    assert not said.startswith(b"HTTP/1.1 4"), said


# 1


def test_a_client_that_leaves_while_its_answer_is_written_ends_it(scripted):
    server = scripted.server()
    for dialect in ALL:
        for choices in ((1, 4) if dialect is CHAT else (1,)):
            more = {"n": choices} if choices > 1 else {}
            tunnel = opened(server, dialect, dialect.body("scripted", "say forever.", most=10**6, **more))
            read_lines(tunnel, 100)
            assert scripted.alive() == choices, "%s: %d of %d streams" % (dialect.name, scripted.alive(), choices)
            tunnel.close()
            scripted.until_idle()


def test_a_client_that_leaves_while_its_prompt_is_read_ends_it(scripted):
    server = scripted.server()
    text = "Read all of this before you answer, please. " * 6000 + "say hello."
    for dialect in ALL:
        tunnel = opened(server, dialect, dialect.body("scripted", dialect.name + text, most=10**6))
        until("the request is there", lambda: scripted.alive() > 0)
        tunnel.close()
        scripted.until_idle()


def test_a_client_that_leaves_while_it_waits_in_the_queue_ends_only_its_own(build):
    pair = Pair(build, "scripted", daemon=["--max-seqs", 1])
    server = pair.server()
    first = server.stream(CHAT.path, CHAT.body("scripted", "say forever."))
    next(first)
    waiting = [opened(server, dialect, dialect.body("scripted", "say forever.", most=10**6)) for dialect in ALL]
    until("all are there", lambda: pair.alive() == 1 + len(waiting))
    for left, tunnel in zip(reversed(range(len(waiting))), waiting):
        tunnel.close()
        until("one less waits", lambda: pair.alive() == 1 + left)
    next(first)
    first.leave()
    pair.until_idle()


def test_a_client_that_leaves_before_a_whole_answer_ends_it(scripted):
    server = scripted.server()
    for dialect in ALL:
        body = dialect.body("scripted", "say forever.", most=10**6)
        data = json.dumps({**body, "stream": False}).encode()
        tunnel = server.tunnel()
        tunnel.sendall(("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                        "Content-Length: %d\r\n\r\n" % (dialect.path, server.key, len(data))).encode() + data)
        until("it runs", lambda: scripted.alive() == 1)
        tunnel.close()
        scripted.until_idle()


def test_a_client_that_does_not_read_stops_only_its_own_stream(scripted):
    server = scripted.server()
    silent = [opened(server, CHAT, CHAT.body("scripted", "say forever.")) for _ in range(4)]
    until("they run", lambda: scripted.alive() >= 4)
    for _ in range(20):
        equal("another", CHAT.whole(server, CHAT.body("scripted", "say hello.")).text, HELLO)
    for tunnel in silent:
        tunnel.close()
    scripted.until_idle()


# 2


def test_a_stream_has_its_headers_while_it_waits_and_pings_in_silence(build):
    pair = Pair(build, "scripted", daemon=["--max-seqs", 1], bridge=["--ping-ms", 1000])
    server = pair.server()
    first = server.stream(CHAT.path, CHAT.body("scripted", "say forever."))
    next(first)
    # A reader that stands still would give its place to those that wait.
    threading.Thread(target=lambda: list(first), daemon=True).start()
    waiting = {dialect.name: opened(server, dialect, dialect.body("scripted", "say hello.", most=10**6)) for dialect in ALL}
    for name, tunnel in waiting.items():
        wanted = {"messages": rb"event: ping", "ollama": rb'"done": ?false'}.get(name, rb"\n: ")
        until("%s: a sign of life" % name, lambda: sign(tunnel, wanted), seconds=25)


SEEN = {}


def sign(tunnel, wanted):
    """Whether `wanted` has come on the connection so far."""
    tunnel.settimeout(0.01)
    try:
        SEEN[tunnel] = SEEN.get(tunnel, b"") + tunnel.recv(65536)
    except socket.timeout:
        pass
    assert not SEEN.get(tunnel, b"").startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), SEEN[tunnel]
    return re.search(wanted, SEEN.get(tunnel, b"")) is not None


# 3 and 4


def test_streamed_calls_have_index_id_and_name_once(scripted):
    body = CHAT.body("scripted", "say calls.", tools=TOOLS)
    said = checkers.chat_stream(scripted.server().events(CHAT.path, body))[0]
    equal("cities", [call.arguments["city"] for call in said.calls], ["Oslo", "Turin", "Lima"])


def check_no_call(dialect, pair, body, part, finish):
    """What is no whole call stands in the answer, as text or as a call that was cut, but a client
    is not told that it may make it."""
    for said in (dialect.whole(pair.server(), body), dialect.streamed(pair.server(), body)):
        assert said.finish in (finish, dialect.ends["cut call"]), "%s: finish %r" % (dialect.name, said.finish)
        assert not any(map(checkers.is_call, said.calls)), "%s: a call: %r" % (dialect.name, said)
        assert part in said.text or part in str([call.arguments for call in said.calls]), "%s: it is lost: %r" % (dialect.name, said)


def test_a_call_that_can_not_be_read_becomes_text(scripted):
    for dialect in ALL:
        check_no_call(dialect, scripted, dialect.body("scripted", "say broken_call.", tools=TOOLS), '"city": ', dialect.ends["eos"])


def test_a_call_that_breaks_off_is_not_lost_and_not_made(scripted):
    for dialect in ALL:
        check_no_call(dialect, scripted, dialect.body("scripted", "say open_call.", tools=TOOLS), "Ky", dialect.ends["eos"])


def test_a_call_of_a_tool_that_was_not_given_does_not_break_the_answer(scripted):
    for dialect in ALL:
        said = both(dialect, scripted.server(), dialect.body("scripted", "say unknown_call.", tools=TOOLS))
        assert said.calls or "no_such_tool" in said.text, said


# 5


ANSWER = {"type": "object", "properties": {"word": {"enum": ["red", "blue"]}, "answer": {"type": "integer", "minimum": 0, "maximum": 9}},
          "required": ["word", "answer"], "additionalProperties": False}
FORMATS = (
    (CHAT, "response_format", {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER, "strict": True}}}),
    (CHAT, "response_format", {"response_format": {"type": "json_schema", "schema": ANSWER}}),
    (CHAT, "response_format", {"response_format": {"type": "json_object", "schema": ANSWER}}),
    (CHAT, "json_schema", {"json_schema": ANSWER}),
    (CHAT, "guided_json", {"guided_json": ANSWER}),
    (CHAT, "guided_json", {"guided_json": json.dumps(ANSWER)}),
    (CHAT, "structured_outputs.json", {"structured_outputs": {"json": ANSWER}}),
    (RESPONSES, "text.format", {"text": {"format": {"type": "json_schema", "name": "a", "schema": ANSWER, "strict": False}}}),
    (MESSAGES, "output_config.format", {"output_config": {"format": {"type": "json_schema", "schema": ANSWER}}}),
    (MESSAGES, "output_format", {"output_format": {"type": "json_schema", "schema": ANSWER}}),
    (OLLAMA, "format", {"format": ANSWER}))


def constrained(dialect, teaspoon, **more):
    cold = {"options": {"temperature": 0}} if dialect is OLLAMA else {"temperature": 0}
    return both(dialect, teaspoon.server(), dialect.body("teaspoon", "Name a colour and a number.", most=100, **cold, **more)).text


def test_a_schema_is_obeyed(teaspoon):
    for dialect, field, more in FORMATS:
        text = constrained(dialect, teaspoon, **more)
        said = json.loads(text)
        equal(field, list(said), ["word", "answer"])  # the order of the schema
        assert said["word"] in ("red", "blue") and said["answer"] in range(10), text


def test_a_schema_that_can_not_be_enforced_is_refused_with_its_field_and_place(teaspoon):
    for dialect, field, more in FORMATS:
        body = json.loads(json.dumps({**dialect.body("teaspoon", "hi", most=9), **more}).replace("minimum", "minimal"))
        for stream in (False, True):
            answer = teaspoon.server().post(dialect.path, {**body, "stream": stream})
            message, _, _ = refusal(dialect.path, answer, 400)
            assert message.startswith(field + ": ") and "/properties/answer/minimal" in message, message
            if dialect in (CHAT, RESPONSES):
                equal("param", answer.json()["error"]["param"], field)


def test_members_that_no_schema_names_are_not_added(teaspoon):
    named = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}}}
    for more in ({"response_format": {"type": "json_schema", "schema": named}}, {"structured_outputs": {"json": named}},
                 {"structured_outputs": {"json": named, "disable_additional_properties": True}}):
        for seed in range(8):
            assert set(json.loads(constrained(CHAT, teaspoon, seed=seed, **more))) <= {"a"}, more
    needs = {"type": "object", "properties": {"a": {"type": "integer"}}, "minProperties": 1, "maxProperties": 1}
    opened = {"structured_outputs": {"json": {**needs, "properties": {"a": False}}, "disable_additional_properties": False}}
    equal("others", len(json.loads(constrained(CHAT, teaspoon, **opened))), 1)


def test_words_and_expressions_are_obeyed(teaspoon):
    for more, pattern in (({"guided_regex": "[0-9]{3} [ab]"}, "[0-9]{3} [ab]"), ({"structured_outputs": {"choice": ["left", "right"]}}, "left|right"),
                          ({"grammar": 'root ::= "<" [0-9] [0-9]? ">"'}, "<[0-9]{1,2}>"), ({"guided_choice": ["one"]}, "one")):
        said = constrained(CHAT, teaspoon, **more)
        assert re.fullmatch(pattern, said), "%s: %r" % (more, said)


def test_a_schema_beside_tools_leaves_calls_or_the_schema(teaspoon):
    for dialect, field, more in FORMATS:
        cold = {"options": {"temperature": 0}} if dialect is OLLAMA else {"temperature": 0}
        said = both(dialect, teaspoon.server(), dialect.body("teaspoon", "Name a colour.", most=200, tools=TOOLS, **cold, **more))
        if not said.calls:
            equal(field, list(json.loads(said.text)), ["word", "answer"])
        if dialect is not OLLAMA:
            any_, none = ({"type": "any"}, {"type": "none"}) if dialect is MESSAGES else ("required", "none")
            answer = teaspoon.server().post(dialect.path, dialect.body("teaspoon", "hi", tools=TOOLS, tool_choice=any_, **more))
            message, _, _ = refusal(dialect.path, answer, 400)
            assert message.startswith(field) and "tool_choice" in message, message
            json.loads(constrained(dialect, teaspoon, tools=TOOLS, tool_choice=none, **more))


def test_no_schema_is_no_schema(scripted):
    for dialect, more in ((CHAT, {"response_format": {"type": "text"}}), (RESPONSES, {"text": {"format": {"type": "text"}}}),
                          (CHAT, {"response_format": None}), (CHAT, {"response_format": {}}),
                          (RESPONSES, {"text": {"format": {}}}), (OLLAMA, {"format": ""})):
        equal(dialect.name, hello(dialect, scripted, **more).text, HELLO)


def test_a_tool_that_must_be_called_is_called(teaspoon):
    time = {"type": "function", "name": "get_time"}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [time]}
    for dialect, choice, named in (
            (CHAT, "required", False), (CHAT, {"type": "function", "function": {"name": "get_time"}}, True),
            (CHAT, {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_time"}}]}}, True),
            (RESPONSES, "required", False), (RESPONSES, time, True), (RESPONSES, allowed, True),
            (MESSAGES, {"type": "any"}, False), (MESSAGES, {"type": "tool", "name": "get_time"}, True)):
        one = {"parallel_tool_calls": False}
        if dialect is MESSAGES:
            one, choice = {}, {**choice, "disable_parallel_tool_use": True}
        said = both(dialect, teaspoon.server(), dialect.body("teaspoon", "Why is the sky blue?", most=300, tools=TOOLS,
                                                                 tool_choice=choice, temperature=0, **one))
        equal("%s, %s: calls" % (dialect.name, choice), (len(said.calls), said.text or ""), (1, ""))
        call = said.calls[0]
        assert call.name in (("get_time",) if named else [tool[0] for tool in TOOLS]), call.name
        assert isinstance(call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments), dict), call.arguments
        equal("finish", said.finish, dialect.ends["call"])


def test_a_tool_that_is_not_there_can_not_be_called(teaspoon):
    for dialect, choice in ((CHAT, {"type": "function", "function": {"name": "fly"}}), (RESPONSES, {"type": "function", "name": "fly"}),
                            (MESSAGES, {"type": "tool", "name": "fly"})):
        for tools in ({"tools": TOOLS}, {}):
            answer = teaspoon.server().post(dialect.path, dialect.body("teaspoon", "hi", tool_choice=choice, **tools))
            message, _, _ = refusal(dialect.path, answer, 400)
            assert "tool_choice" in message, message


def test_no_tool_is_called_if_none_may_be(scripted):
    for dialect, choice in ((CHAT, "none"), (RESPONSES, "none"), (MESSAGES, {"type": "none"})):
        said = both(dialect, scripted.server(), dialect.body("scripted", "say call.", tools=TOOLS, tool_choice=choice))
        equal(dialect.name, (said.calls, said.finish), ([], dialect.ends["eos"]))


# 6: test_ends.py; 7: test_death.py; 8 and 12: test_bodies.py


# 9


def test_a_page_of_this_machine_may_ask_and_read_errors(scripted):
    server = scripted.server()
    for origin in ("http://localhost:3000", "http://127.0.0.1:8080", "https://localhost", "http://[::1]:5173", "http://app.localhost:1"):
        for path, asked in ((CHAT.path, "POST"), (MESSAGES.path, "POST"), (OLLAMA.path, "POST"), ("/v1/models", "GET")):
            wanted = "authorization, content-type, x-api-key, anthropic-version, x-stainless-os, x-stainless-retry-count"
            answer = Server(scripted.port).ask("OPTIONS", path, headers={
                "Origin": origin, "Access-Control-Request-Method": asked, "Access-Control-Request-Headers": wanted})
            equal("preflight", answer.status, 204)
            equal("origin", answer.header("access-control-allow-origin"), origin)
            allowed = {name.strip().lower() for name in answer.header("access-control-allow-headers").split(",")}
            assert set(wanted.split(", ")) <= allowed, allowed
            assert asked in answer.header("access-control-allow-methods"), answer.header("access-control-allow-methods")
            assert "origin" in answer.header("vary").lower(), answer.header("vary")
            assert answer.header("access-control-max-age"), "no max-age"
        for who, status in ((server, 200), (Server(scripted.port, "wrong"), 401)):
            answer = who.get("/v1/models", headers={"Origin": origin})
            equal("status", answer.status, status)
            equal("origin", answer.header("access-control-allow-origin"), origin)
            assert "origin" in answer.header("vary").lower(), "no Vary"
            exposed = (answer.header("access-control-expose-headers") or "").lower()
            assert {"x-request-id", "retry-after", "x-samovar-stream-id"} <= set(exposed.split(", ")), exposed
        for path in (CHAT.path, "/no/such"):
            answer = server.ask("POST", path, b"{", headers={"Origin": origin})
            equal("origin of an error", answer.header("access-control-allow-origin"), origin)


def test_a_stream_has_the_headers_for_pages_too(scripted):
    stream = scripted.server().stream(CHAT.path, CHAT.body("scripted", "say hello."), headers={"Origin": "http://localhost:3000"})
    equal("origin", stream.response.getheader("access-control-allow-origin"), "http://localhost:3000")
    list(stream)


def test_a_page_from_elsewhere_may_not_ask(scripted):
    server = scripted.server()
    for origin in ("https://evil.test", "null", "http://localhost.evil.test", "http://evil.test:80", "file://", "http://127.0.0.1.evil.test",
                   "http://localhost@evil.test"):
        for method, path, body in (("POST", CHAT.path, CHAT.body("scripted", "say hello.")), ("GET", "/v1/models", None)):
            answer = server.ask(method, path, body, headers={"Origin": origin})
            message, _, _ = refusal(path, answer, 403)
            assert answer.header("access-control-allow-origin") in (None, ), origin
            assert "origin" in message.lower(), message


def test_a_page_must_say_that_it_sends_json(scripted):
    server, body = scripted.server(), CHAT.body("scripted", "say hello.")
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        answer = server.post(CHAT.path, body, headers={"Origin": "http://localhost:3000", "Content-Type": kind})
        assert 400 <= answer.status < 500, answer
    answer = server.post(OLLAMA.path, {**OLLAMA.body("scripted", "say hello."), "stream": False},
                         headers={"Content-Type": "application/x-www-form-urlencoded"})
    equal("curl without a type", answer.status, 200)


# 10


def test_thoughts_have_both_names_in_their_dialects_and_content_is_not_null(scripted):
    server = scripted.server()
    message = server.post(CHAT.path, CHAT.body("scripted", "say thought.")).json()["choices"][0]["message"]
    equal("reasoning_content", message["reasoning_content"].strip(), "Two and two make four.")
    message = server.post(CHAT.path, CHAT.body("scripted", "say open_thought.")).json()["choices"][0]["message"]
    equal("content", message["content"], "")
    message = server.post(OLLAMA.path, {**OLLAMA.body("scripted", "say thought."), "stream": False}).json()["message"]
    equal("thinking", message["thinking"].strip(), "Two and two make four.")


def test_thoughts_of_earlier_turns_may_be_sent_back(scripted):
    server = scripted.server()
    turns = [{"role": "user", "content": "say thought."},
             {"role": "assistant", "content": "The answer is four.", "reasoning_content": "Two and two make four."},
             {"role": "user", "content": "say hello."}]
    equal("chat", CHAT.whole(server, {"model": "scripted", "messages": turns}).text, HELLO)
    turns[1] = {"role": "assistant", "content": "The answer is four.", "thinking": "Two and two make four."}
    equal("ollama", OLLAMA.whole(server, {"model": "scripted", "messages": turns}).text, HELLO)
    turns[1] = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Two.", "signature": "any text"},
                                                 {"type": "redacted_thinking", "data": "abc"},
                                                 {"type": "text", "text": "The answer is four."}]}
    equal("messages", MESSAGES.whole(server, {"model": "scripted", "max_tokens": 99, "messages": turns}).text, HELLO)
    items = [{"role": "user", "content": "say thought."},
             {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Two."}],
              "encrypted_content": None},
             {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": "The answer is four.", "annotations": []}]},
             {"role": "user", "content": [{"type": "input_text", "text": "say hello."}]}]
    equal("responses", RESPONSES.whole(server, {"model": "scripted", "input": items}).text, HELLO)


# 11: each stream of each test goes through the checker


def test_responses_ids_are_equal_from_the_first_event_to_the_last(scripted):
    for script in ("hello", "calls", "thought_and_call", "words_and_call", "thought"):
        body = RESPONSES.body("scripted", "say %s." % script, tools=TOOLS)
        checkers.responses_stream(scripted.server().events(RESPONSES.path, body))


# 13


def test_system_and_developer_texts_become_one_first_message(scripted):
    server = scripted.server()
    shown = server.post("/apply-template", {"model": "scripted", "messages": [
        {"role": "system", "content": "First."}, {"role": "developer", "content": "Second."},
        {"role": "user", "content": "say hello."}]}).json()["prompt"]
    equal("system messages", shown.count("<|im_start|>system"), 1)
    assert shown.index("First.") < shown.index("Second.") < shown.index("say hello."), shown


def test_a_system_message_in_the_middle_is_not_refused(scripted):
    server = scripted.server()
    turns = [{"role": "user", "content": "Hi."}, {"role": "system", "content": "Be brief."}, {"role": "user", "content": "say hello."}]
    for dialect in OPENAI_AND_ANTHROPIC:
        body = dialect.body("scripted", "")
        body["input" if dialect is RESPONSES else "messages"] = turns
        equal(dialect.name, dialect.whole(server, body).text, HELLO)
    equal("ollama", OLLAMA.whole(server, {"model": "scripted", "messages": turns}).text, HELLO)
    turns = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi."}, {"role": "developer", "content": "Be kind."},
             {"role": "user", "content": "say hello."}]
    equal("chat", CHAT.whole(server, {"model": "scripted", "messages": turns}).text, HELLO)
    equal("responses", RESPONSES.whole(server, {"model": "scripted", "input": turns, "instructions": "Be."}).text, HELLO)


# 14


def test_fields_that_change_nothing_are_accepted(scripted):
    for dialect, more in (
            (CHAT, {"parallel_tool_calls": True, "verbosity": "low", "prediction": None, "metadata": {"a": "b"}, "store": False,
                    "prompt_cache_key": "k", "prompt_cache_retention": "24h", "safety_identifier": "s", "user": "u", "service_tier": "auto",
                    "seed": -1, "logit_bias": {}, "presence_penalty": 0, "frequency_penalty": 0.0, "n": 1, "top_k": -1, "min_p": 0,
                    "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}, "logprobs": False, "stop": None,
                    "tools": None, "cache_prompt": True, "repetition_penalty": 1.0, "no_such_field": [1, {"a": None}]}),
            (RESPONSES, {"truncation": "disabled", "include": ["reasoning.encrypted_content"], "client_metadata": {"a": "b"}, "store": False,
                         "prompt_cache_key": "k", "reasoning": {"effort": "low", "summary": "auto"}, "parallel_tool_calls": True,
                         "service_tier": "default", "text": {"verbosity": "low"}, "max_tool_calls": 3, "no_such_field": 1, "metadata": {},
                         "stream_options": {"include_obfuscation": False}, "top_logprobs": 0, "previous_response_id": None}),
            (MESSAGES, {"metadata": {"user_id": "u"}, "context_management": {"edits": []}, "betas": [], "service_tier": "auto",
                        "thinking": {"type": "adaptive"}, "temperature": 0.5, "top_k": 5, "output_config": {"effort": "high"},
                        "system": [{"type": "text", "text": "Be.", "cache_control": {"type": "ephemeral"}}], "no_such_field": "x"}),
            (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}}), (MESSAGES, {"thinking": {"type": "disabled"}}),
            (OLLAMA, {"keep_alive": -1, "think": False, "no_such_field": {}, "options": {
                "num_ctx": 8192, "num_gpu": 1, "num_thread": 4, "num_keep": 5, "seed": -1, "repeat_penalty": 1.0, "mirostat": 0, "no_such": 1}}),
            (OLLAMA, {"keep_alive": "5m"}), (OLLAMA, {"keep_alive": "-1m"}), (OLLAMA, {"keep_alive": 300})):
        equal("%s %s" % (dialect.name, sorted(more)), hello(dialect, scripted, **more).text, HELLO)


# 15


def test_all_names_of_the_longest_length_and_any_length(scripted):
    server = scripted.server()
    for name in ("max_tokens", "max_completion_tokens"):
        said = CHAT.whole(server, CHAT.body("scripted", "say forever.", **{name: 3}))
        equal(name, (said.finish, said.usage["output"]), ("length", 3))
        for most in (128000, 10**9, 2**31 - 1):
            equal(name, CHAT.whole(server, CHAT.body("scripted", "say hello.", **{name: most})).text, HELLO)
    for dialect in ALL:
        equal(dialect.name, hello(dialect, scripted, most=10**9).text, HELLO)
    for dialect in (CHAT, RESPONSES, OLLAMA):
        equal(dialect.name, hello(dialect, scripted).text, HELLO)
    for most in (-1, -2):
        equal("num_predict", hello(OLLAMA, scripted, most=most).text, HELLO)


def test_without_a_limit_an_answer_may_be_long(scripted):
    for dialect in (CHAT, RESPONSES, OLLAMA):
        tunnel = opened(scripted.server(), dialect, dialect.body("scripted", "say forever."))
        read_lines(tunnel, 10000)       # the daemon's own limit is 512 tokens
        tunnel.close()
    scripted.until_idle()


# 16: test_errors.py


# 17


def test_characters_are_never_split(scripted):
    for dialect in ALL:
        said = both(dialect, scripted.server(), dialect.body("scripted", "say emoji."))
        equal(dialect.name, said.text, text_of("emoji").decode())
        equal(dialect.name, both(dialect, scripted.server(), dialect.body("scripted", "say markup.")).text,
              text_of("markup").decode())


def test_a_character_that_is_never_finished_does_not_break_the_json(scripted):
    for dialect in ALL:
        said = both(dialect, scripted.server(), dialect.body("scripted", "say half."))
        assert said.text.startswith("cut here "), said.text
        assert said.text[9:] in ("", "\ufffd", "\ufffd\ufffd"), ascii(said.text)


def test_characters_that_a_length_cuts_are_valid(scripted):
    for dialect in ALL:
        for most in range(1, 20):
            said = both(dialect, scripted.server(), dialect.body("scripted", "say emoji.", most=most))
            assert text_of("emoji").decode().startswith(said.text.rstrip("\ufffd")), ascii(said.text)


# 18: test_ends.py


def test_usage_is_not_sent_unless_it_was_asked_for(scripted):
    server = scripted.server()
    for tools in (None, TOOLS):
        for script in ("hello", "calls", "thought"):
            body = CHAT.body("scripted", "say %s." % script, tools=tools)
            checkers.chat_stream(server.events(CHAT.path, body))
            for count in (1, 3):
                more = {"n": count, "stream_options": {"include_usage": True}}
                checkers.chat_stream(server.events(CHAT.path, {**body, **more}), n=count, include_usage=True)


# 19


def test_a_stop_string_is_never_shown(scripted):
    for dialect in (CHAT, MESSAGES, OLLAMA):
        for stop, left in ((PARTY, "left "), ("t " + PARTY, "lef"), (PARTY + " r", "left "), ("ht", "left %s rig" % PARTY),
                           ("left", ""), ("no such", "left %s right" % PARTY)):
            said = both(dialect, scripted.server(), dialect.body("scripted", "say party.", stop=[stop]))
            equal("%s %s" % (dialect.name, ascii(stop)), said.text, left)
            if dialect is MESSAGES:
                equal("which", said.stop, None if stop == "no such" else stop)


def test_stop_is_a_text_or_a_list_and_may_be_empty(scripted):
    server = scripted.server()
    for stop in ("five", ["five"], ["", "five"], ["x", "five", "y", "z"]):
        equal(stop, CHAT.whole(server, {**CHAT.body("scripted", "say numbers."), "stop": stop}).text, "one two three four ")
    for stop in ([], "", [""], None):
        equal(stop, CHAT.whole(server, {**CHAT.body("scripted", "say numbers."), "stop": stop}).text, text_of("numbers").decode())
    refusal(CHAT.path, server.post(CHAT.path, {**CHAT.body("scripted", "say numbers."), "stop": ["x%d" % i for i in range(40)]}), 400)


def test_a_stop_string_in_the_arguments_of_a_call_makes_it_none(scripted):
    for dialect in (CHAT, MESSAGES, OLLAMA):
        body = dialect.body("scripted", "say stop_in_call.", tools=TOOLS, stop=["STOP"])
        check_no_call(dialect, scripted, body, "please ", dialect.ends["stop"])


# 20


def test_the_routes_that_clients_take_by_default_exist(scripted):
    server = scripted.server()
    for path in ("/v1/models", "/v1/models/scripted", "/api/tags", "/api/ps", "/api/version", "/health", "/metrics"):
        equal(path, server.get(path).status, 200)
    equal("root", server.get("/").status, 200)
    for path in (RESPONSES.path, CHAT.path, MESSAGES.path, OLLAMA.path):
        refusal(path, server.post(path, {}), 400)
    refusal("/v1/responses/resp_none", server.get("/v1/responses/resp_none"), 404)


# 21


def test_only_names_of_this_machine_may_be_asked(scripted):
    for host, status in (("localhost", 200), ("LOCALHOST", 200), ("127.0.0.1", 200), ("[::1]", 200), ("app.localhost", 200),
                         ("127.8.8.8", 200), ("evil.test", 403), ("localhost.evil.test", 403), ("127.0.0.1.evil.test", 403),
                         ("evil.test:80@localhost", 403), ("10.0.0.1", 403)):
        for port in ("", ":%d" % scripted.port, ":1"):
            answer = scripted.server().get("/v1/models", headers={"Host": host + port})
            if status == 403:
                assert answer.status in (400, 403), (host, answer)
            else:
                equal(host + port, answer.status, status)
    with scripted.server().tunnel() as tunnel:
        tunnel.sendall(b"GET http://evil.test/v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                       scripted.key.encode() + b"\r\nConnection: close\r\n\r\n")
        said = tunnel.recv(65536)
        assert said[9:12] in (b"400", b"403"), said[:50]


# 22


def test_health_answers_under_load_and_while_the_daemon_sleeps(build):
    """No answer needs the daemon: each comes while it is stopped, too."""
    pair = Pair(build, "scripted", daemon=["--max-seqs", 8])
    server = pair.server()
    running = [server.stream(CHAT.path, CHAT.body("scripted", "say forever.")) for _ in range(8)]
    for stream in running:
        next(stream)
    waiting = [opened(server, CHAT, CHAT.body("scripted", "say forever.")) for _ in range(24)]
    until("all are there", lambda: pair.alive() == len(running) + len(waiting))
    for _ in range(200):
        equal("under load", server.get("/health").json(), {"status": "ok"})
    equal("none was refused or has ended", pair.alive(), len(running) + len(waiting))
    pair.pause("daemon")
    for _ in range(200):
        equal("while it sleeps", server.get("/health").json(), {"status": "ok"})
    pair.go_on("daemon")
    for tunnel in waiting:
        tunnel.close()
    until("those that wait have left", lambda: pair.alive() <= len(running))


def test_health_tells_that_the_daemon_is_gone_and_that_it_is_back(build):
    pair = Pair(build, "scripted")
    server = pair.server()
    pair.kill("daemon")
    until("health says no", lambda: server.get("/health").status == 503)
    pair.start_daemon()
    until("health says yes", lambda: server.get("/health").status == 200)
    equal("as before", CHAT.whole(server, CHAT.body("scripted", "say hello.")).text, HELLO)


# 23


def test_the_end_of_one_stream_does_not_harm_the_others(scripted):
    server = scripted.server()
    streams = [server.stream(CHAT.path, CHAT.body("scripted", "say forever.")) for _ in range(8)]
    for stream in streams:
        next(stream)
    for at in (3, 0, 7, 1, 6, 2, 5, 4):
        streams[at].leave()
        streams[at] = None
        for stream in streams:
            for _ in range(50 if stream else 0):
                assert stream.status == 200 and next(stream).json()["choices"], "a stream was harmed"
    scripted.until_idle()


# 24


def test_what_home_assistants_and_editors_ask_of_ollama(scripted):
    server = scripted.server()
    tags = server.get("/api/tags").json()
    for model in tags["models"]:
        checkers.ollama_model(model)
        assert model["modified_at"], model
    running = server.get("/api/ps").json()
    for model in running["models"]:
        checkers.ollama_model(model)
        assert model["expires_at"] and model["size_vram"] >= 0, model
    for field in ("model", "name"):
        for name in ("scripted", "scripted:latest"):
            shown = server.post("/api/show", {field: name}).json()
            equal("architecture", shown["model_info"]["general.architecture"], "llama")
            equal("context", shown["model_info"]["llama.context_length"], 1 << 20)
            assert {"completion", "tools", "thinking"} <= set(shown["capabilities"]), shown["capabilities"]
            assert "<tool_call>" in shown["template"], "no template"
    version = server.get("/api/version").json()["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version), version
    equal("root", server.get("/").body.strip()[:17], b"Ollama is running")
    equal("latest", OLLAMA.whole(server, OLLAMA.body("scripted:latest", "say hello.")).text, HELLO)


def test_an_empty_prompt_loads_and_zero_unloads(scripted):
    server = scripted.server()
    for body, reason in (({"model": "scripted"}, "load"), ({"model": "scripted", "keep_alive": 0}, "unload")):
        for path in ("/api/generate", "/api/chat"):
            answer = server.post(path, {**body, "stream": False}).json()
            equal(path, (answer["done"], answer["done_reason"]), (True, reason))


def test_a_pull_of_a_served_model_succeeds_and_another_fails(scripted):
    server = scripted.server()
    equal("served", server.lines("/api/pull", {"model": "scripted"})[-1], {"status": "success"})
    connection, response = server.open("POST", "/api/pull", {"model": "no-such"})
    assert b'"error"' in response.read()
    connection.close()


# 25


def test_metrics_are_the_sums_of_what_was_answered(build):
    pair = Pair(build, "scripted")
    server = pair.server()
    sums = {"input": 0, "output": 0}
    for script in ("hello", "numbers", "calls", "thought"):
        usage = CHAT.whole(server, CHAT.body("scripted", "say %s." % script)).usage
        sums = {name: sums[name] + usage[name] for name in sums}
    answer = server.get("/metrics")
    equal("type", answer.header("content-type").split(";")[0], "text/plain")
    values = {}
    for line in answer.body.decode().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    total = {name: sum(value for key, value in values.items() if key.split("{")[0] == "samovar_" + name)
             for name in ("prompt_tokens_total", "generation_tokens_total", "request_success_total")}
    equal("metrics", total, {"prompt_tokens_total": sums["input"], "generation_tokens_total": sums["output"], "request_success_total": 4})


def test_metrics_can_be_read_by_prometheus(scripted):
    text = scripted.server().get("/metrics").body.decode()
    kinds, seen = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram"), line
            kinds[name] = kind
        elif line and not line.startswith("#"):
            found = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)', line)
            assert found, line
            float(found.group(3))
            assert found.group(1) + (found.group(2) or "") not in seen, "twice: %s" % line
            seen.add(found.group(1) + (found.group(2) or ""))
            base = re.sub("_(bucket|sum|count)$", "", found.group(1))
            assert found.group(1) in kinds or kinds.get(base) == "histogram", "no TYPE: %s" % line
    for name, kind in kinds.items():
        if kind != "histogram":
            continue
        rows = [line for line in text.splitlines() if line.startswith(name + "_bucket")]
        series = {}
        for row in rows:
            labels = re.sub(r'le="[^"]*",?', "", row.rsplit(" ", 1)[0])
            series.setdefault(labels, []).append((re.search(r'le="([^"]*)"', row).group(1), float(row.rsplit(" ", 1)[1])))
        for buckets in series.values():
            assert buckets[-1][0] == "+Inf", name
            assert [value for _, value in buckets] == sorted(value for _, value in buckets), name


# and: what the SDKs break on, besides


def test_http_is_kept_alive_and_closed_as_asked(scripted):
    head = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % scripted.key
    with scripted.server().tunnel() as tunnel:
        for _ in range(3):
            tunnel.sendall(head.encode() + b"\r\n")
            said = b""
            while b"\r\n\r\n" not in said or not said.endswith(b"}"):
                piece = tunnel.recv(65536)
                assert piece, "closed too early"
                said += piece
        tunnel.sendall(head.encode() + b"Connection: close\r\n\r\n")
        said = b""
        while piece := tunnel.recv(65536):
            said += piece
        assert said.startswith(b"HTTP/1.1 200"), said[:50]


def test_an_old_http_client_gets_a_stream_without_chunks(scripted):
    body = json.dumps({**CHAT.body("scripted", "say hello."), "stream": True}).encode()
    with scripted.server().tunnel() as tunnel:
        tunnel.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                       % (scripted.key.encode(), len(body), body))
        said = b""
        while piece := tunnel.recv(65536):
            said += piece
        head, _, rest = said.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower() and rest.startswith(b"data: ") and rest.endswith(b"data: [DONE]\n\n"), said


def test_many_ask_at_once_and_each_gets_its_own(scripted):
    scripts, faults = ("hello", "numbers", "emoji", "calls", "thought", "party", "markup", "done"), []

    def one(at):
        try:
            for turn in range(4):
                script = scripts[(at + turn) % len(scripts)]
                dialect = ALL[(at * 3 + turn) % len(ALL)]
                said = both(dialect, scripted.server(at % 2), dialect.body("scripted", "say %s." % script))
                if script in ("hello", "numbers", "emoji", "party", "markup", "done"):
                    equal(script, said.text, text_of(script).decode())
        except BaseException as error:
            faults.append("%d: %s" % (at, error))
    threads = [threading.Thread(target=one, args=(at,)) for at in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]


def test_tools_may_have_any_schema_and_type(scripted):
    odd = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False,
           "properties": {"a": {"enum": [1, 1.0, "x", None]}, "b": {"type": ["string", "null"], "pattern": "^\\d{1,3}$"}},
           "required": [], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    tool = ("odd-tool_1", "d" * 5000, odd)
    for dialect in ALL:
        equal(dialect.name, hello(dialect, scripted, tools=(WEATHER, tool)).text, HELLO)
    more = [*responses_tools(), {"type": "web_search"}, {"type": "namespace", "name": "n", "description": "", "tools": responses_tools()},
            {"type": "custom", "name": "c", "format": {"type": "text"}}, {"type": "no_such_type", "x": 1}]
    body = {**RESPONSES.body("scripted", "say hello."), "tools": more}
    equal("unknown types", RESPONSES.whole(scripted.server(), body).text, HELLO)
    body = {**CHAT.body("scripted", "say hello."), "tools": chat_tools(((WEATHER[0], WEATHER[1], WEATHER[2]),))}
    body["tools"][0]["function"]["strict"] = True
    answer = scripted.server().post(CHAT.path, body)
    equal("strict", answer.status, 200)
