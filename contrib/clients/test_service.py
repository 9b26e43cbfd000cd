"""The bridge as a service: its limits, new keys, other addresses, slow readers, other names."""
import http.client
import json
import os
import signal
import socket
import time

import checkers
from checkers import refusal
from dialects import ALL, CHAT, OLLAMA, RESPONSES, equal
from raw import Server
from scripted_model import text_of
from servers import Pair, until
from test_complaints import opened
from test_principals import batch_of, chat_line, client, finished, lines_of
from test_openai_sdk import raised

HELLO = text_of("hello").decode()


def test_keys_are_read_again_and_old_ones_end(build):
    pair = Pair(build, "scripted")
    new = "a-new-key-of-anna-0123456789"
    equal("before", Server(pair.port, new).get("/v1/models").status, 401)
    (pair.folder / "keys").write_text("# changed\n%s anna\n" % new)
    pair.programs["bridge"].send_signal(signal.SIGHUP)
    until("the new key serves", lambda: Server(pair.port, new).get("/v1/models").status == 200)
    equal("the old key", pair.server().get("/v1/models").status, 401)
    (pair.folder / "keys").write_text("short anna\n")
    pair.programs["bridge"].send_signal(signal.SIGHUP)
    until("the log tells", lambda: "key" in pair.log("bridge").split("reload")[-1] and "line 1" in pair.log("bridge"))
    equal("as before", Server(pair.port, new).get("/v1/models").status, 200)


def test_connections_beyond_the_limit_are_told(build):
    pair = Pair(build, "scripted", bridge=["--connections", 4])
    idle = [pair.server().tunnel() for _ in range(8)]
    equal("idle ones make place", pair.server().get("/health").status, 200)
    held = []
    for _ in range(4):
        held.append(pair.server().stream(CHAT.path, CHAT.body("scripted", "say forever.")))
        next(held[-1])
    equal("one more", pair.server().get("/health").status, 503)
    for stream in held:
        next(stream)
        stream.leave()
    until("there is room again", lambda: pair.server().get("/health").status == 200)
    for tunnel in idle:
        tunnel.close()


def test_a_unix_socket_serves_its_own_user_without_a_key(build):
    pair = Pair(build, "scripted", bridge=["--listen-unix", "http"])
    path = str(pair.folder / "http")
    equal("mode", os.stat(path).st_mode & 0o777, 0o600)
    with socket.socket(socket.AF_UNIX) as tunnel:
        tunnel.connect(path)
        body = json.dumps(CHAT.body("scripted", "say hello.")).encode()
        tunnel.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        said = b""
        while piece := tunnel.recv(65536):
            said += piece
    assert said.startswith(b"HTTP/1.1 200 "), said[:200]
    equal("text", checkers.chat_answer(json.loads(said.partition(b"\r\n\r\n")[2]))[0].text, HELLO)


def test_a_reader_that_is_too_slow_holds_no_more_than_it_may(build):
    pair = Pair(build, "scripted", bridge=["--queue-bytes", "512K"])
    slow = [opened(pair.server(), dialect, dialect.body("scripted", "say forever.", most=10**6), buffer=4096) for dialect in ALL]
    until("they run", lambda: pair.alive() == len(slow))

    def memory():
        for line in open("/proc/%d/status" % pair.programs["bridge"].pid):
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    before, tokens = memory(), pair.status()["tokens_out"]
    # Other streams go on meanwhile.
    for _ in range(20):
        equal("another", CHAT.whole(pair.server(1), CHAT.body("scripted", "say hello.")).text, HELLO)
    until("the slow ones end or stand still", lambda: pair.alive() == 0 or still(pair), seconds=40)
    assert pair.status()["tokens_out"] > tokens and memory() - before < 16 << 10, (before, memory())
    for tunnel in slow:
        tunnel.close()
    pair.until_idle()


def still(pair):
    """Whether nothing is generated for a while, although requests are open."""
    tokens = pair.status()["tokens_out"]
    time.sleep(0.5)
    return pair.status()["tokens_out"] == tokens


def test_other_names_for_models_are_taken(build):
    pair = Pair(build, "scripted", bridge=["--alias", "gpt-4o=scripted,*=scripted"])
    for name in ("gpt-4o", "claude-sonnet-4-5", "scripted"):
        for dialect in ALL:
            equal(name, dialect.whole(pair.server(), dialect.body(name, "say hello.")).text, HELLO)


def test_too_many_files_are_refused(build):
    import io
    import openai
    pair = Pair(build, "scripted", bridge=["--files-max", 2])
    own = client(pair)
    files = [own.files.create(file=("a", io.BytesIO(b"x")), purpose="batch") for _ in range(2)]
    error = raised(openai.APIStatusError, own.files.create, file=("a", io.BytesIO(b"x")), purpose="batch")
    assert 400 <= error.status_code < 500 and "files" in str(error), error
    client(pair, 1).files.create(file=("a", io.BytesIO(b"x")), purpose="batch")
    own.files.delete(files[0].id)
    own.files.create(file=("a", io.BytesIO(b"x")), purpose="batch")


def test_a_batch_outlives_the_death_of_the_daemon(build):
    pair = Pair(build, "scripted")
    own = client(pair)
    batch = batch_of(own, lines_of([chat_line("long-%d" % at, "forever", max_tokens=20000) for at in range(8)] +
                                   [chat_line("short-%d" % at, "hello") for at in range(8)]))
    until("it runs", lambda: pair.alive() > 0)
    pair.kill("daemon")
    pair.start_daemon()
    done = finished(own, batch, seconds=50)
    counts = done.request_counts
    equal("all lines", (done.status, counts.completed + counts.failed), ("completed", 16))
    if counts.failed:
        for line in own.files.content(done.error_file_id).text.splitlines():
            line = json.loads(line)
            assert line["error"] or line["response"]["status_code"] >= 500, line
    assert counts.completed >= 8, counts


def test_a_batch_gives_way_to_a_person(build):
    pair = Pair(build, "scripted", daemon=["--max-seqs", 4], bridge=["--batch-parallel", 8])
    own = client(pair)
    batch = batch_of(own, lines_of([chat_line("endless-%d" % at, "forever") for at in range(8)]))
    until("it fills all places", lambda: pair.status()["requests"]["running"] >= 4)
    for dialect in ALL:
        equal(dialect.name, dialect.whole(pair.server(), dialect.body("scripted", "say hello.")).text, HELLO)
    own.batches.cancel(batch.id)
    pair.until_idle()


def test_what_a_response_was_asked_is_listed(scripted):
    own = client(scripted)
    said = own.responses.create(model="scripted", input=[{"role": "user", "content": "Hi."}, {"role": "user", "content": "say hello."}], store=True)
    items = list(own.responses.input_items.list(said.id))
    equal("items", len(items), 2)
    refusal(RESPONSES.path, scripted.server(1).get("/v1/responses/%s/input_items" % said.id), 404)


def test_settings_that_can_not_be_are_refused_at_the_start(build):
    pair = Pair(build, "scripted")
    pair.kill("bridge")
    keys = pair.keys
    for wrong, word in ((["--listen"], None), (["--ping-ms", "1"], "ping"), (["--no-such", "1"], "no-such"),
                        (["--keys", "/no/such/file"], "/no/such/file")):
        pair.more["bridge"] = wrong[:2] if len(wrong) > 1 else []
        if wrong[0] == "--listen":
            pair.keys, pair.address, word = None, "0.0.0.0", "key"
        if wrong[0] == "--keys":
            pair.keys = None
        try:
            pair.start_bridge()
        except AssertionError as error:
            assert word in str(error), error
        else:
            raise AssertionError("%s: it started" % wrong)
        pair.keys, pair.address = keys, "127.0.0.1"
        pair.programs.pop("bridge", None)


def test_head_is_answered_as_get_without_a_body(scripted):
    for path in ("/", "/health", "/v1/models", "/api/tags", "/api/version", "/metrics"):
        head, get = scripted.server().ask("HEAD", path), scripted.server().get(path)
        equal(path, (head.status, head.body, head.header("content-type")), (get.status, b"", get.header("content-type")))


def test_a_percent_sign_in_a_path_is_decoded_once(scripted):
    for path, status in (("/v1/models/%73cripted", 200), ("/v1/models/scripted%00", 400), ("/v1/models/%2573cripted", 404),
                         ("/v1/models/%zz", 400), ("/v1/%6dodels", 200)):
        equal(path, scripted.server().get(path).status, status)


def test_a_body_may_come_in_chunks(scripted):
    connection = http.client.HTTPConnection("127.0.0.1", scripted.port, timeout=20)
    body = json.dumps({**OLLAMA.body("scripted", "say hello."), "stream": False}).encode()
    connection.request("POST", OLLAMA.path, iter([body[at:at + 7] for at in range(0, len(body), 7)]), encode_chunked=True, headers={
        "Authorization": "Bearer " + scripted.key, "Transfer-Encoding": "chunked", "Content-Type": "application/json"})
    answer = connection.getresponse()
    equal("status", answer.status, 200)
    equal("text", json.loads(answer.read())["message"]["content"], HELLO)
    connection.close()
