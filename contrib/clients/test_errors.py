"""Refusals: each in the dialect of its route, with the right status, before anything is streamed."""
import json

from checkers import dialect_of, error_body, refusal
from dialects import ALL, CHAT, MESSAGES, OLLAMA, RESPONSES, equal
from raw import Server
from servers import Pair, until

BAD = {"openai": "invalid_request_error", "anthropic": "invalid_request_error", "ollama": None}
POSTS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
         "/v1/messages/count_tokens", "/api/chat", "/api/generate", "/api/show", "/v1/embeddings", "/api/embed")
GETS = ("/v1/models", "/api/tags", "/api/ps", "/api/version")


def one_body(path, model="scripted"):
    for dialect in ALL:
        if path == dialect.path:
            return dialect.body(model, "say hello.")
    return {"model": model, "prompt": "Hi!", "max_tokens": 5, "messages": [{"role": "user", "content": "say hello."}],
            "name": model, "input": "Hi!"}


def types(path, kind):
    return {"openai": kind[0], "anthropic": kind[1], "ollama": None}[dialect_of(path)]


def test_bad_json_is_refused_in_each_dialect(scripted):
    server = scripted.server()
    for path in POSTS:
        for body in (b"", b"{", b"[]", b"null", b'{"model": "scripted",}', b'{"a": "\xff"}', b'{"a": NaN}',
                     b'{"model": "scripted", "model": "scripted"}', b"[" * 100000, b'{"a": "\\ud800"}', b"\xef\xbb\xbf{}"):
            _, kind, _ = refusal(path, server.ask("POST", path, body), 400)
            equal("%s %r" % (path, body[:30]), kind, BAD[dialect_of(path)])


def test_a_field_of_a_wrong_type_is_refused_and_named(scripted):
    server = scripted.server()
    for dialect in ALL:
        good = dialect.body("scripted", "say hello.")
        for name, value in (("model", 7), ("messages", "x"), ("input", 7), ("stream", "yes"), ("temperature", "hot"),
                            ("max_tokens", "many"), ("max_output_tokens", -5), ("tools", "x"), ("top_p", []),
                            ("stream_keep_ms", "foo")):
            if name not in good and (name in ("messages", "input") or
                                     (name.startswith("max") and dialect.name not in ("chat", "messages"))):
                continue
            if dialect is OLLAMA and name in ("temperature", "top_p", "max_tokens", "max_output_tokens"):
                continue
            if name == "max_output_tokens" and dialect is not RESPONSES:
                continue
            answer = server.post(dialect.path, {**good, name: value})
            message, _, _ = refusal(dialect.path, answer, 400)
            assert name in message, "%s: %r does not name %s" % (dialect.name, message, name)
            if dialect in (CHAT, RESPONSES):
                equal("%s: param" % dialect.name, answer.json()["error"].get("param"), name)


def test_a_word_for_thinking_that_ollama_does_not_know_is_refused(scripted):
    body = OLLAMA.body("scripted", "say hello.")
    message, _, _ = refusal(OLLAMA.path, scripted.server().post(OLLAMA.path, {**body, "think": "foo"}), 400)
    equal("message", message, "think must be true, false, low, medium or high")
    equal("low", scripted.server().post(OLLAMA.path, {**body, "think": "low"}).status, 200)


def test_a_response_is_continued_without_new_items(scripted):
    server = scripted.server()
    first = server.post(RESPONSES.path, {**RESPONSES.body("scripted", "say hello."), "store": True}).json()
    for more in ({"input": []}, {}):
        answer = server.post(RESPONSES.path, {"model": "scripted", "previous_response_id": first["id"], **more})
        equal("status", answer.status, 200)
    message, _, _ = refusal(RESPONSES.path, server.post(RESPONSES.path, {"model": "scripted"}), 400)
    assert "input" in message, message


def test_fields_that_come_back_are_of_their_kind(scripted):
    server, good = scripted.server(), RESPONSES.body("scripted", "say hello.")
    for name in ("metadata", "truncation", "user", "parallel_tool_calls"):
        message, _, _ = refusal(RESPONSES.path, server.post(RESPONSES.path, {**good, name: 5}), 400)
        assert name in message, message


def test_a_bad_query_is_refused_in_each_dialect(scripted):
    server = scripted.server()
    for path in POSTS:
        refusal(path, server.ask("POST", path + "?a=%00", b"{}"), 400)


def test_a_missing_field_is_named(scripted):
    server = scripted.server()
    for dialect in ALL:
        # Without a model the daemon's own one answers, as llama-server has it.
        needed = ["input" if dialect is RESPONSES else "messages"]
        if dialect is MESSAGES:
            needed.append("max_tokens")
        for name in needed:
            body = dialect.body("scripted", "say hello.")
            if dialect is OLLAMA and name == "messages":
                continue                # an empty chat only loads the model
            del body[name]
            message, _, _ = refusal(dialect.path, server.post(dialect.path, body), 400)
            assert name in message, "%s: %r does not name %s" % (dialect.name, message, name)


def test_a_number_out_of_range_is_refused(scripted):
    server = scripted.server()
    for name, value in (("temperature", -1), ("temperature", 1000), ("top_p", 2), ("top_p", -0.1), ("n", 0), ("n", 1000),
                        ("top_logprobs", 1000), ("max_tokens", -5), ("presence_penalty", 5), ("frequency_penalty", -5)):
        body = {**CHAT.body("scripted", "say hello."), "logprobs": True, name: value}
        answer = server.post(CHAT.path, body)
        message, _, _ = refusal(CHAT.path, answer, 400)
        assert name in message, "%r does not name %s" % (message, name)


def test_a_body_that_has_an_overflowing_number_is_refused(scripted):
    server = scripted.server()
    for text in ("1e400", "-1e400", "99999999999999999999999999"):
        body = json.dumps(CHAT.body("scripted", "say hello."))[:-1] + ', "temperature": %s}' % text
        refusal(CHAT.path, server.ask("POST", CHAT.path, body.encode()), 400)


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(teaspoon):
    server = teaspoon.server()
    for dialect in ALL:
        for stream in (False, True):
            body = {**dialect.body("teaspoon", "word " * 6000), "stream": stream}
            answer = server.post(dialect.path, body)
            message, kind, code = refusal(dialect.path, answer, 400)
            assert "4096" in message, "%s: no limit in %r" % (dialect.name, message)
            numbers = [int(word) for word in message.replace(",", " ").split() if word.isdigit()]
            assert any(number > 6000 for number in numbers), "%s: no length in %r" % (dialect.name, message)
            if dialect is MESSAGES:
                assert message.startswith("prompt is too long: "), message
                equal("type", kind, "invalid_request_error")
            if dialect in (CHAT, RESPONSES):
                equal("code", code, "context_length_exceeded")


def test_an_unknown_model_is_not_found(scripted):
    server = scripted.server()
    for path in POSTS:
        if path in ("/v1/embeddings", "/api/embed"):
            continue
        message, kind, code = refusal(path, server.post(path, one_body(path, "no-such-model")), 404)
        assert "no-such-model" in message, message
        if dialect_of(path) == "openai":
            equal(path, code, "model_not_found")
        if dialect_of(path) == "anthropic":
            equal(path, kind, "not_found_error")
        if path == "/api/chat":
            equal(path, message, "model 'no-such-model' not found")
    refusal("/v1/models", server.get("/v1/models/no-such-model"), 404)


def test_an_unknown_route_is_not_found_and_says_so_in_json(scripted):
    server = scripted.server()
    for path in ("/v1/no/such", "/v1/messages/no/such", "/api/no-such", "/nothing", "/v1", "/v1/chat", "/v2/responses"):
        for method in ("GET", "POST"):
            body = {"model": "scripted"} if method == "POST" else None
            refusal(path, server.ask(method, path, body), 404)


def test_a_wrong_method_is_told_which_are_right(scripted):
    server = scripted.server()
    for path, method, right in ((CHAT.path, "GET", "POST"), (RESPONSES.path, "PUT", "POST"), (MESSAGES.path, "DELETE", "POST"),
                                (OLLAMA.path, "GET", "POST"), ("/v1/models", "POST", "GET"), ("/api/tags", "POST", "GET")):
        answer = server.ask(method, path, {} if method in ("POST", "PUT") else None)
        refusal(path, answer, 405)
        assert right in answer.header("allow"), answer.header("allow")


def test_a_wrong_or_missing_key_is_refused_in_each_dialect(scripted):
    for path in (*POSTS, *GETS):
        method = "GET" if path in GETS else "POST"
        body = None if method == "GET" else one_body(path)
        for key in (None, "wrong", scripted.key + "x", scripted.key[:-1], ""):
            answer = Server(scripted.port, key).ask(method, path, body)
            _, kind, code = refusal(path, answer, 401)
            if dialect_of(path) == "anthropic":
                equal(path, kind, "authentication_error")
            if dialect_of(path) == "openai":
                equal(path, code, "invalid_api_key")


def test_a_key_is_taken_from_either_header(scripted):
    server = Server(scripted.port)
    for headers in ({"x-api-key": scripted.key}, {"Authorization": "Bearer " + scripted.key},
                    {"authorization": "bearer " + scripted.key}, {"X-Api-Key": scripted.key, "Authorization": None}):
        equal(headers, server.get("/v1/models", headers=headers).status, 200)


def test_health_and_the_root_need_no_key(scripted):
    server = Server(scripted.port)
    for path in ("/health", "/"):
        for method in ("GET", "HEAD"):
            answer = server.ask(method, path)
            equal("%s %s" % (method, path), answer.status, 200)
            if method == "HEAD":
                equal("the body of HEAD", answer.body, b"")
    equal("health", server.get("/health").json()["status"], "ok")


def test_a_body_that_is_too_large_is_refused_and_the_client_is_told(scripted):
    server = scripted.server()
    for path in (CHAT.path, MESSAGES.path, OLLAMA.path):
        body = b'{"model": "' + b"x" * (33 << 20) + b'"}'
        connection = server.tunnel()
        head = ("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                "Content-Length: %d\r\n\r\n" % (path, scripted.key, len(body)))
        try:
            connection.sendall(head.encode() + body)
        except (BrokenPipeError, ConnectionResetError):
            pass                        # it need not read all of it
        said = b""
        while piece := connection.recv(65536):
            said += piece
        assert said.startswith(b"HTTP/1.1 413 "), said[:100]
        error_body(dialect_of(path), json.loads(said.split(b"\r\n\r\n", 1)[1]))


def test_headers_that_are_too_large_are_refused(scripted):
    server = scripted.server()
    answer = server.get("/v1/models", headers={"x-long": "x" * 40000})
    equal("long header", answer.status, 431)
    answer = server.get("/v1/models?" + "x" * 20000)
    equal("long line", answer.status, 414)


def test_a_setting_that_can_not_be_honoured_is_refused(scripted):
    server = scripted.server()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for dialect, more in (
            (CHAT, {"messages": [{"role": "user", "content": [image]}]}),
            (CHAT, {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]}),
            (CHAT, {"logit_bias": {"5": 1000}}),
            (CHAT, {"use_beam_search": True}),
            (CHAT, {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}),
            (RESPONSES, {"background": True}),
            (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]}),
            (RESPONSES, {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}),
            (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]}]}),
            (OLLAMA, {"messages": [{"role": "user", "content": "say hello.", "images": ["AAAA"]}]})):
        answer = server.post(dialect.path, {**dialect.body("scripted", "say hello."), **more})
        refusal(dialect.path, answer, 400)
    for body in ({"prompt": "a", "suffix": "b"}, {"prompt": "a", "echo": True, "logprobs": 1}):
        answer = server.post("/v1/completions", {"model": "scripted", "max_tokens": 2, **body})
        if answer.status != 200 or "suffix" in body:    # logprobs of a prompt may become possible
            refusal("/v1/completions", answer, 400)


def test_embeddings_are_refused_and_not_unknown(scripted):
    server = scripted.server()
    refusal("/v1/embeddings", server.post("/v1/embeddings", {"model": "scripted", "input": "x"}), 400)
    refusal("/api/embed", server.post("/api/embed", {"model": "scripted", "input": "x"}), 400)


def test_what_ollama_can_do_to_models_is_refused_with_a_reason(scripted):
    server = scripted.server()
    for method, path in (("POST", "/api/create"), ("POST", "/api/copy"), ("DELETE", "/api/delete"), ("POST", "/api/push")):
        message, _, _ = refusal(path, server.ask(method, path, {"model": "scripted"}), 400)
        assert len(message) > 10, message


def test_a_quota_is_429_with_retry_after(build):
    pair = Pair(build, "scripted", daemon=["--uid-requests", 2])
    server = pair.server()
    held = [server.stream(CHAT.path, CHAT.body("scripted", "say forever.")) for _ in range(2)]
    for stream in held:
        next(stream)
    for dialect in ALL:
        for stream in (False, True):
            answer = server.post(dialect.path, {**dialect.body("scripted", "say hello."), "stream": stream})
            _, kind, code = refusal(dialect.path, answer, 429)
            wait = answer.header("retry-after")
            assert wait and wait.isdigit() and 0 < int(wait) <= 120, "retry-after %r" % wait
            if dialect is MESSAGES:
                equal("type", kind, "rate_limit_error")
            if dialect in (CHAT, RESPONSES):
                equal("code", code, "rate_limit_exceeded")
    # Another principal has a quota of its own.
    equal("the other key", CHAT.whole(pair.server(1), CHAT.body("scripted", "say hello.")).finish, "stop")


def test_a_full_daemon_is_503_with_retry_after(build):
    pair = Pair(build, "scripted", daemon=["--requests", 8, "--uid-requests", 8])
    held, full = [], 0                  # a part of the places is kept for other users
    while full < 2:
        for number in (0, 1):
            try:
                held.append(pair.server(number).stream(CHAT.path, CHAT.body("scripted", "say forever.")))
                next(held[-1])
            except AssertionError:
                full += 1
    assert held
    for dialect in ALL:
        answer = pair.server().post(dialect.path, dialect.body("scripted", "say hello."))
        equal(dialect.name, answer.status in (503, 529), True)
        assert answer.header("retry-after"), "no retry-after"
        _, kind, _ = refusal(dialect.path, answer, answer.status)
        if dialect is MESSAGES:
            equal("type", kind, "overloaded_error")


def test_a_bridge_without_a_daemon_is_503_at_once(build):
    pair = Pair(build, "scripted")
    pair.kill("daemon")
    server = pair.server()
    until("health tells", lambda: server.get("/health").status == 503)
    for dialect in ALL:
        for stream in (False, True):
            answer = server.post(dialect.path, {**dialect.body("scripted", "say hello."), "stream": stream})
            _, kind, _ = refusal(dialect.path, answer, 503)
            if dialect is MESSAGES:
                assert kind in ("api_error", "overloaded_error"), kind


def test_requests_that_would_desynchronise_a_proxy_are_refused(scripted):
    chunk = b"0\r\n\r\n"
    for head, body in ((b"Content-Length: 5\r\nTransfer-Encoding: chunked", chunk), (b"Transfer-Encoding: xchunked", chunk),
                       (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", chunk), (b"Content-Length: +3", b"abc"),
                       (b"Content-Length: 3\r\nContent-Length: 4", b"abcd"), (b"Content-Length : 3", b"abc"),
                       (b"X-Folded: a\r\n b\r\nContent-Length: 0", b""), (b"X-Zero: a\0b\r\nContent-Length: 0", b"")):
        with scripted.server().tunnel() as tunnel:
            tunnel.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body +
                           b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = b""
            while piece := tunnel.recv(65536):
                said += piece
            assert said.startswith(b"HTTP/1.1 400 "), "%r: %r" % (head, said[:60])
            equal("answers to %r" % head, said.count(b"HTTP/1.1 "), 1)
