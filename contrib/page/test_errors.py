"""Answers that fail, stall, or come in pieces; and what the page sends."""
import re
import threading

from playwright.sync_api import expect

from browser import until
from fake_server import call, refuse, say


def test_a_refusal_is_shown_and_the_next_try_works(browser, fake, size):
    visit = browser.visit(fake, size)
    for status, words in ((400, "temperature is 9; the limit is 2"), (500, "the daemon broke"), (503, "the queue is full")):
        fake.will(refuse(status, words))
        visit.send("Hello?")
        expect(visit.last.get_by_role("alert")).to_contain_text(words)
        visit.whole()
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".body")).to_have_text("Hello.")
    expect(visit.last.get_by_role("alert")).to_be_hidden()
    assert any("failed" in text for text in visit.watched("told"))


def test_a_full_store_of_streams_does_not_hinder_an_answer(browser, fake):
    """The first request asks to keep the stream; a refusal of that is tried without."""
    fake.will(refuse(429, "you have 0 bytes of resumable streams left", Retry_After="1"), say("Here."))
    visit = browser.visit(fake)
    assert visit.ask("Hello?") == "Here."
    first, second = fake.chats()
    assert first["stream_keep_ms"] and "stream_keep_ms" not in second


def test_too_many_requests_are_told(browser, fake):
    fake.will(refuse(429, "you have 8 requests"), refuse(429, "you have 8 requests"))
    visit = browser.visit(fake)
    visit.send("Hello?")
    expect(visit.last.get_by_role("alert")).to_contain_text("you have 8 requests")


def test_an_error_in_the_stream_keeps_what_came(browser, fake, size):
    def answer(stream, body):
        stream.delta(content="The beginning")
        stream.event(error={"message": "the model met a number that is none", "code": "numeric"})
    fake.will(answer)
    visit = browser.visit(fake, size)
    visit.send("Hello?")
    expect(visit.last.get_by_role("alert")).to_contain_text("a number that is none")
    expect(visit.last.locator(".body")).to_have_text("The beginning")
    expect(visit.button("Send")).to_be_visible()


def test_a_cut_stream_without_an_id_is_an_error(browser, fake):
    seen = threading.Event()

    def answer(stream, body):
        stream.delta(content="The beginning")
        seen.wait(20)
        stream.cut()
    fake.will(answer)
    visit = browser.visit(fake)
    visit.send("Hello?")
    expect(visit.last.locator(".body")).to_have_text("The beginning")
    seen.set()
    expect(visit.last.get_by_role("alert")).not_to_be_empty()
    expect(visit.last.locator(".body")).to_have_text("The beginning")


def kept(pieces, cut_after, seen=None):
    """A stream that breaks, and the route that goes on with it: nothing may be lost, nothing come twice."""
    def first(stream, body):
        stream.head(x_samovar_stream_id="stream_1")
        for piece in pieces[:cut_after]:
            stream.delta(content=piece)
        if seen:
            seen.wait(20)
        stream.cut()

    def again(stream, body):
        at = int(re.search(r"from=(\d+)", stream.handler.path)[1])
        for piece in pieces[at:]:
            stream.delta(content=piece)
        stream.end()
    return first, again


def test_a_cut_stream_is_continued_at_its_place(browser, fake):
    pieces = ["%d " % at for at in range(40)]
    first, again = kept(pieces, 17)
    fake.will(first)
    fake.routes["GET /v1/streams/stream_1"] = again
    visit = browser.visit(fake)
    assert visit.ask("Count.") == "".join(pieces).strip()
    until("the stream is dropped", lambda: fake.count("DELETE", "/v1/streams/stream_1") == 1)


def test_a_stream_whose_server_is_away_for_a_while_goes_on(browser, fake):
    pieces = ["%d " % at for at in range(20)]
    first, again = kept(pieces, 5)
    tries = []

    def away_at_first(stream, body):
        tries.append(1)
        if len(tries) < 3:
            return refuse(503, "the daemon is away")(stream, body)
        return again(stream, body)
    fake.will(first)
    fake.routes["GET /v1/streams/stream_1"] = away_at_first
    visit = browser.visit(fake)
    visit.send("Count.")
    expect(visit.last.locator(".status")).to_contain_text("The connection is lost; trying again")
    visit.whole()
    assert visit.answer_text() == "".join(pieces).strip() and len(tries) == 3


def test_a_stream_that_the_server_has_forgotten_is_an_error(browser, fake):
    seen = threading.Event()
    first, _ = kept(["a ", "b "], 1, seen)
    fake.will(first)
    visit = browser.visit(fake)
    visit.send("Count.")
    expect(visit.last.locator(".body")).to_have_text("a")
    seen.set()
    expect(visit.last.get_by_role("alert")).to_contain_text("does not have this answer any more")
    expect(visit.last.locator(".body")).to_have_text("a")


def test_a_reload_in_mid_answer_loses_and_doubles_nothing(browser, fake, size):
    pieces = ["%d " % at for at in range(60)]
    go_on = threading.Event()

    def first(stream, body):
        stream.head(x_samovar_stream_id="stream_1")
        for piece in pieces[:25]:
            stream.delta(content=piece)
        stream.client_left()
    _, again = kept(pieces, 0)
    fake.will(first)

    def slowly(stream, body):
        go_on.wait(20)
        again(stream, body)
    fake.routes["GET /v1/streams/stream_1"] = slowly
    visit = browser.visit(fake, size)
    visit.send("Count.")
    expect(visit.last.locator(".body")).to_contain_text("24")
    until("it is stored", lambda: "24" in visit.stored()["messages"][-1]["text"])
    visit.page.reload()
    expect(visit.last.locator(".body")).to_contain_text("24")
    expect(visit.button("Stop")).to_be_visible()
    go_on.set()
    visit.whole()
    assert visit.answer_text() == "".join(pieces).strip()


def test_stop_closes_the_connection_and_drops_the_stream(browser, fake):
    left = []

    def answer(stream, body):
        stream.head(x_samovar_stream_id="stream_1")
        stream.delta(content="I go on and on")
        left.append(stream.client_left())
    fake.will(answer)
    visit = browser.visit(fake)
    visit.send("Talk.")
    expect(visit.last.locator(".body")).to_have_text("I go on and on")
    visit.button("Stop").click()
    visit.whole()
    until("the server sees the client leave", lambda: left == [True])
    until("the stream is dropped", lambda: fake.count("DELETE", "/v1/streams/stream_1") == 1)
    assert "Stopped" in visit.last.locator(".status").inner_text()


def test_a_stop_before_the_headers_still_drops_the_stream(browser, fake):
    """The id of the stream comes with the headers. Without it nobody could end the stream."""
    go_on = threading.Event()

    def answer(stream, body):
        go_on.wait(20)
        stream.head(x_samovar_stream_id="stream_1")
        stream.delta(content="x")
    fake.will(answer)
    visit = browser.visit(fake)
    visit.send("Talk.")
    visit.button("Stop").click()
    go_on.set()
    until("the stream is dropped", lambda: fake.count("DELETE", "/v1/streams/stream_1") == 1, seconds=5)


def test_the_queue_and_a_slow_prefill_are_shown(browser, fake, size):
    go_on = threading.Event()
    work = {"streams": [], "handles": []}
    row = {"stream_id": "stream_1", "state": "waiting", "waits_for": "slot", "prompt": 8000, "prompt_done": 0,
           "number": "1", "uid": 0, "priority": "normal", "tokens": 0, "age_ms": 5}

    def answer(stream, body):
        stream.head(x_samovar_stream_id="stream_1", x_samovar_queue_position="3")
        go_on.wait(20)
        stream.delta(content="Done.")
        stream.end(prompt=8000, cached=4000, cache_miss="evicted", queued_ms=1500)
    fake.will(answer)
    fake.routes["GET /samovar/work"] = work
    visit = browser.visit(fake, size)
    visit.send("A long text.")
    status = visit.last.locator(".status")
    expect(status).to_contain_text("place 3 in the queue")
    work["streams"] = [row]
    expect(status).to_contain_text("all slots are taken")
    work["streams"] = [{**row, "state": "prefill", "waits_for": None, "prompt_done": 2000}]
    expect(status).to_contain_text("Reading the prompt: 25 % of 8,000 tokens")
    work["streams"] = [{**row, "state": "prefill", "waits_for": None, "prompt_done": 6000}]
    expect(status).to_contain_text("Reading the prompt: 75 %")
    go_on.set()
    visit.whole()
    for words in ("queued 1.5 s", "prompt 8,000, 50 % cached", "evicted"):
        expect(status).to_contain_text(words)


def test_what_a_person_sets_is_sent(browser, fake, size):
    visit = browser.visit(fake, size)
    panel = visit.settings()
    values = {"System prompt": "Be brief.", "Temperature": "0.5", "Top p": "0.9", "Top k": "40", "Min p": "0.05",
              "Most tokens": "77", "Seed": "7", "Presence penalty": "0.5", "Frequency penalty": "-0.5",
              "Repeat penalty": "1.1", "Stop texts, one a line": "END\nSTOP"}
    for label, value in values.items():
        panel.get_by_label(label, exact=True).fill(value)
    panel.get_by_label("Reasoning", exact=True).select_option("low")
    panel.get_by_label("Priority", exact=True).select_option("flex")
    panel.get_by_text("Tools", exact=True).click()
    panel.get_by_label("Tools, as JSON").fill('{"name": "clock"}')
    panel.get_by_label("Use of tools").select_option("required")
    visit.close_panel()
    visit.ask("Hello?")
    body = fake.chats()[-1]
    sent = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "max_tokens": 77, "seed": 7, "presence_penalty": 0.5,
            "frequency_penalty": -0.5, "repeat_penalty": 1.1, "stop": ["END", "STOP"], "reasoning_effort": "low",
            "service_tier": "flex", "tool_choice": "required", "stream": True,
            "tools": [{"type": "function", "function": {"name": "clock"}}],
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]}
    assert {name: body.get(name) for name in sent} == sent
    # The settings are those of this chat only, and stay.
    visit.button("New chat").click() if size == "desktop" else visit.history().get_by_role("button", name="New chat").click()
    visit.ask("Who?")
    assert "temperature" not in fake.chats()[-1] and len(fake.chats()[-1]["messages"]) == 1
    visit.history().get_by_role("button", name=re.compile("^Hello")).click()
    expect(visit.page.get_by_role("heading", name="Hello?")).to_be_visible()
    visit.page.reload()
    expect(visit.page.get_by_role("heading", name="Hello?")).to_be_visible()
    expect(visit.settings().get_by_label("Temperature")).to_have_value("0.5")


def test_the_latest_setting_counts_though_the_field_has_the_focus(browser, fake):
    """A person types a number and presses a shortcut or Enter: no field was left."""
    visit = browser.visit(fake)
    visit.settings().get_by_label("Temperature").fill("0.25")
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Alt+m")
    visit.ask("Hello?")
    assert fake.chats()[-1]["temperature"] == 0.25


def test_attached_files_are_sent_as_text(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.page.locator("#files").set_input_files([
        {"name": "a.py", "mimeType": "text/x-python", "buffer": b"print('````')\n"},
        {"name": "b.txt", "mimeType": "text/plain", "buffer": "caf\u00e9".encode()},
        {"name": "c.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff\xfe"}])
    files = visit.page.get_by_role("list", name="Attached files")
    expect(files.get_by_role("listitem")).to_have_count(2)
    expect(visit.page.locator("#composer-error")).to_contain_text("c.bin is not a text file")
    files.get_by_role("button", name="Remove b.txt").click()
    expect(files.get_by_role("listitem")).to_have_count(1)
    visit.ask("What is this?")
    expect(files.get_by_role("listitem")).to_have_count(0)
    content = fake.chats()[-1]["messages"][0]["content"]
    assert content == "a.py:\n`````\nprint('````')\n`````\n\nWhat is this?", content
    expect(visit.page.get_by_role("list", name="Attachments").get_by_text("a.py")).to_be_visible()


def test_a_file_that_is_too_large_is_refused(browser, fake):
    visit = browser.visit(fake)
    visit.page.locator("#files").set_input_files({"name": "big.txt", "mimeType": "text/plain", "buffer": b"x" * ((1 << 20) + 1)})
    expect(visit.page.locator("#composer-error")).to_contain_text("big.txt has 1.0 MiB")
    expect(visit.page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(0)


def test_the_conversation_is_sent_with_its_calls_and_results(browser, fake):
    fake.will(call(("clock", '{"zone": "UTC"}'), text="I look."), say("It is noon."))
    visit = browser.visit(fake)
    visit.ask("What time is it?")
    visit.page.get_by_label("Result of call 1").fill("12:00")
    visit.button("Send results").click()
    expect(visit.last.locator(".body")).to_have_text("It is noon.")
    assert fake.chats()[-1]["messages"] == [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "12:00"}]


def test_half_a_character_in_a_question_is_no_error(browser, fake):
    """JavaScript's texts may have halves of pairs, which JSON may not."""
    visit = browser.visit(fake)
    visit.input.evaluate("(input) => { input.value = 'a\\uD83Db'; input.dispatchEvent(new Event('input')); }")
    visit.input.press("Enter")
    visit.whole()
    until("it was asked", lambda: fake.chats())
    assert fake.chats()[-1]["messages"][0]["content"] == "a\ufffdb"


def test_an_empty_answer_and_an_odd_stream_are_no_trouble(browser, fake):
    def odd(stream, body):
        stream.raw(b": ping\n\n")
        stream.raw(b"event: message\ndata: {\"choices\": []}\n\n")
        stream.event(choices=[{"index": 7, "delta": {"content": "of nobody"}}])
        stream.event(unknown=True)
        stream.delta(content="")
        stream.delta(content="Fine.")
        stream.end()
    fake.will(odd, say(""))
    visit = browser.visit(fake)
    assert visit.ask("Odd?") == "Fine."
    visit.ask("Empty?")
    expect(visit.button("Send")).to_be_visible()


def test_the_page_gives_up_nothing_when_the_history_cannot_be_written(browser, fake):
    """A disk that is full: the question stays in the field, and the person is told."""
    visit = browser.visit(fake)
    visit.page.evaluate("() => { IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); }; }")
    visit.write("Keep me.")
    expect(visit.page.locator("#composer-error")).to_contain_text("Not stored")
    expect(visit.input).to_have_value("Keep me.")
