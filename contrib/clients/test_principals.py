"""Two keys are two principals: nothing of one is there for the other. Also files and batches."""
import io
import json

import openai
from openai import OpenAI

import checkers
from checkers import refusal
from dialects import CHAT, MESSAGES, RESPONSES, equal
from raw import Server
from scripted_model import text_of
from servers import Pair, until
from test_openai_sdk import raised, say

HELLO = text_of("hello").decode()


def client(pair, number=0):
    return OpenAI(base_url=pair.url + "/v1", api_key=list(pair.keys)[number], max_retries=0, timeout=30)


def lines_of(requests):
    return "".join(json.dumps(request) + "\n" for request in requests).encode()


def chat_line(name, script, **more):
    return {"custom_id": name, "method": "POST", "url": CHAT.path,
            "body": {"model": "scripted", "messages": say(script), **more}}


def upload(asked, data, name="batch.jsonl"):
    return asked.files.create(file=(name, io.BytesIO(data)), purpose="batch")


def batch_of(asked, data, endpoint=CHAT.path):
    file = upload(asked, data)
    return asked.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")


def finished(asked, batch, seconds=30):
    until("the batch ends", lambda: asked.batches.retrieve(batch.id).status in ("completed", "failed", "cancelled", "expired"), seconds)
    return asked.batches.retrieve(batch.id)


def test_a_response_is_only_there_for_its_own_key(scripted):
    own, other = client(scripted), client(scripted, 1)
    said = own.responses.create(model="scripted", input="say hello.", store=True)
    equal("own", own.responses.retrieve(said.id).output_text, HELLO)
    raised(openai.NotFoundError, other.responses.retrieve, said.id)
    raised(openai.NotFoundError, other.responses.delete, said.id)
    error = raised(openai.APIStatusError, other.responses.create, model="scripted", input="say hello.", previous_response_id=said.id)
    nothing = raised(openai.APIStatusError, other.responses.create, model="scripted", input="say hello.", previous_response_id="resp_none")
    equal("the same as for none", (error.status_code, error.code), (nothing.status_code, nothing.code))
    equal("still there", own.responses.retrieve(said.id).id, said.id)
    own.responses.delete(said.id)


def test_a_response_that_was_not_to_be_stored_is_not_there(scripted):
    said = client(scripted).responses.create(model="scripted", input="say hello.", store=False)
    raised(openai.NotFoundError, client(scripted).responses.retrieve, said.id)


def test_files_are_kept_listed_read_and_deleted_for_their_own_key(scripted):
    own, other = client(scripted), client(scripted, 1)
    data = lines_of([chat_line("a", "hello")])
    file = upload(own, data, "my file \u00fc.jsonl")
    equal("file", (file.bytes, file.filename, file.purpose, file.object), (len(data), "my file \u00fc.jsonl", "batch", "file"))
    assert file.id.startswith("file-"), file.id
    equal("content", own.files.content(file.id).read(), data)
    assert file.id in [one.id for one in own.files.list()], "it is not listed"
    assert file.id not in [one.id for one in other.files.list()], "it is listed for another"
    raised(openai.NotFoundError, other.files.retrieve, file.id)
    raised(openai.NotFoundError, other.files.content, file.id)
    raised(openai.NotFoundError, other.files.delete, file.id)
    raised(openai.NotFoundError, other.batches.create, input_file_id=file.id, endpoint=CHAT.path, completion_window="24h")
    equal("deleted", own.files.delete(file.id).deleted, True)
    raised(openai.NotFoundError, own.files.retrieve, file.id)


def test_a_file_of_any_bytes_is_kept_as_it_is(scripted):
    own = client(scripted)
    for data in (b"", b"\r\n--\r\n", b"\r\n\r\n" * 10, bytes(range(256)) * 300, b"--boundary" * 1000, b"x" * (3 << 20)):
        file = upload(own, data) if data else None
        if file:
            equal("content", own.files.content(file.id).read() == data, True)
            own.files.delete(file.id)


def test_a_broken_upload_is_refused(scripted):
    server = scripted.server()
    for kind, body in (("multipart/form-data", b"x"), ("multipart/form-data; boundary=a", b"x"), ("application/json", b"{}"),
                       ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--a--\r\n"),
                       ("multipart/form-data; boundary=" + "a" * 71, b"x"),
                       ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nbat")):
        refusal("/v1/files", server.ask("POST", "/v1/files", body, headers={"Content-Type": kind}), 400)


def test_a_batch_answers_each_line(scripted):
    own = client(scripted)
    scripts = ("hello", "numbers", "emoji", "party")
    batch = batch_of(own, lines_of([chat_line("line-%d" % at, scripts[at % 4]) for at in range(40)]))
    assert batch.id.startswith("batch_") and batch.status in ("validating", "in_progress", "finalizing", "completed"), batch
    done = finished(own, batch)
    equal("batch", (done.status, done.request_counts.total, done.request_counts.completed, done.request_counts.failed),
          ("completed", 40, 40, 0))
    out = [json.loads(line) for line in own.files.content(done.output_file_id).text.splitlines()]
    equal("ids", sorted(line["custom_id"] for line in out), sorted("line-%d" % at for at in range(40)))
    for line in out:
        equal("status", (line["response"]["status_code"], line["error"]), (200, None))
        said = checkers.chat_answer(line["response"]["body"])[0]
        equal("text", said.text, text_of(scripts[int(line["custom_id"][5:]) % 4]).decode())
        assert line["id"] and line["response"]["request_id"], line


def test_a_batch_has_its_failed_lines_in_a_file_of_their_own(scripted):
    own = client(scripted)
    batch = batch_of(own, lines_of([chat_line("good", "hello"), chat_line("bad", "hello", temperature=999),
                                    {**chat_line("model", "hello"), "body": {"model": "no-such", "messages": say("hello")}}]))
    done = finished(own, batch)
    equal("batch", (done.status, done.request_counts.completed, done.request_counts.failed), ("completed", 1, 2))
    failed = {line["custom_id"]: line for line in map(json.loads, own.files.content(done.error_file_id).text.splitlines())}
    equal("failed", {name: line["response"]["status_code"] for name, line in failed.items()}, {"bad": 400, "model": 404})


def test_a_batch_that_can_not_be_read_fails_and_names_the_lines(scripted):
    own = client(scripted)
    for data, line in ((b"{\n", 1), (lines_of([chat_line("a", "hello")]) + b"no json\n", 2),
                       (lines_of([chat_line("a", "hello"), chat_line("a", "hello")]), 2),
                       (lines_of([{**chat_line("a", "hello"), "url": RESPONSES.path}]), 1), (lines_of([{"custom_id": "a"}]), 1)):
        try:
            done = finished(own, batch_of(own, data))
        except openai.BadRequestError:
            continue
        equal("status", done.status, "failed")
        equal("line", done.errors.data[0].line, line)
        assert done.errors.data[0].message, done


def test_batches_of_all_endpoints(scripted):
    own = client(scripted)
    for endpoint, body in ((CHAT.path, {"messages": say("hello")}), ("/v1/completions", {"prompt": "Go!"}),
                           (RESPONSES.path, {"input": "say hello."})):
        data = lines_of([{"custom_id": "a", "method": "POST", "url": endpoint, "body": {"model": "scripted", **body}}])
        done = finished(own, batch_of(own, data, endpoint))
        equal(endpoint, done.status, "completed")
        assert HELLO in own.files.content(done.output_file_id).text, endpoint


def test_a_batch_is_cancelled(scripted):
    own = client(scripted)
    batch = batch_of(own, lines_of([chat_line("endless-%d" % at, "forever") for at in range(5)]))
    until("it runs", lambda: scripted.alive() > 0)
    own.batches.cancel(batch.id)
    equal("status", finished(own, batch).status, "cancelled")
    scripted.until_idle()


def test_batches_are_only_there_for_their_own_key(scripted):
    own, other = client(scripted), client(scripted, 1)
    batch = batch_of(own, lines_of([chat_line("a", "hello")]))
    raised(openai.NotFoundError, other.batches.retrieve, batch.id)
    raised(openai.NotFoundError, other.batches.cancel, batch.id)
    assert batch.id in [one.id for one in own.batches.list()] and batch.id not in [one.id for one in other.batches.list()]
    done = finished(own, batch)
    raised(openai.NotFoundError, other.files.content, done.output_file_id)


def test_lists_come_in_pages(scripted):
    own = client(scripted)
    files = [upload(own, b"x%d\n" % at).id for at in range(5)]
    page = own.files.list(limit=2)
    assert len(page.data) == 2 and page.has_more, page
    listed = [one.id for one in own.files.list(limit=2)]
    assert set(files) <= set(listed) and len(listed) == len(set(listed)), listed
    for name in files:
        own.files.delete(name)


def test_no_prompt_is_cached_for_another_key(scripted):
    text = "A secret that only one of them has. " * 40 + "say hello."
    for number, cached in ((0, False), (0, True), (1, False), (1, True)):
        usage = CHAT.whole(scripted.server(number), CHAT.body("scripted", text)).usage
        assert (usage["cached"] > 1000) == cached, (number, usage)


def test_a_key_that_uses_all_its_requests_leaves_the_other_its_own(build):
    pair = Pair(build, "scripted", daemon=["--uid-requests", 4])
    held = [pair.server().stream(CHAT.path, CHAT.body("scripted", "say forever.")) for _ in range(4)]
    for stream in held:
        next(stream)
    equal("own", pair.server().post(MESSAGES.path, MESSAGES.body("scripted", "say hello.")).status, 429)
    for _ in range(10):
        equal("the other", MESSAGES.whole(pair.server(1), MESSAGES.body("scripted", "say hello.")).text, HELLO)


def test_without_keys_only_the_own_user_is_served(build):
    pair = Pair(build, "scripted", keys=None)
    for key in (None, "any"):
        equal(key, CHAT.whole(Server(pair.port, key), CHAT.body("scripted", "say hello.")).text, HELLO)


def test_a_file_of_keys_that_others_can_read_is_refused(build):
    pair = Pair(build, "scripted")
    pair.kill("bridge")
    (pair.folder / "keys").chmod(0o644)
    try:
        pair.start_bridge()
    except AssertionError:
        assert "keys" in pair.log("bridge"), pair.log("bridge")
    else:
        raise AssertionError("it started")
