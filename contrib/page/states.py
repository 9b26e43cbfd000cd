"""The page in each of its states, one after the other, for checks that must hold in all of them."""
import re
import threading

from playwright.sync_api import expect

from fake_server import MODEL, call, say, think

MARKDOWN = """\
# A heading

Some *emphasis*, **weight**, ~~nothing~~, `code` and [a link](https://example.org/).

> A quote
> - of a list

1. one
2. two

- [x] done

| left | right |
|:-----|------:|
| a very long cell that needs much room | 1 |

```python
print("a long line of code that does not fit a phone, so that it must be scrolled" * 3)
```

""" + "```text\n" + "line\n" * 700 + "```\n\nThe end of a_long_word_%s\n" % ("x" * 200)

SETTINGS_TOOL = '[{"name": "clock", "parameters": {"type": "object"}}]'


def live_data(fake):
    """What the tab Live asks for, in the form of the real daemon."""
    status = fake.bridge.status()
    status["users"] = [{"uid": 1000, "principal": "anna", "running": 1, "waiting": 0, "blocks": 40, "cached_blocks": 3,
                        "tokens_out": 1234}]
    stream = {"stream_id": "stream_x", "number": "41", "uid": 1000, "principal": "anna", "priority": "normal",
              "state": "running", "prompt": 900, "prompt_done": 300, "tokens": 12, "age_ms": 5300}
    fake.routes.update({
        "GET /samovar/status": status,
        "GET /samovar/work": {"streams": [stream, {**stream, "number": "42", "state": "waiting", "waits_for": "slot"}],
                              "handles": [{"number": "7", "uid": 1000, "tokens": 88, "age_ms": 60000, "busy": False}]},
        "GET /samovar/pool": {"blocks": 400, "positions": 16, "from": 0, "next": 400, "all_users": True,
                              "users": [{"uid": 1000, "principal": "anna", "own": True}, {"uid": 0, "principal": ""}],
                              "runs": [[40, 2, 1, 0], [20, 2, 3, 0], [10, 3, 1, 1], [30, 1, 0, -1], [5, 4, 1, -1], [295, 0, 0, -1]]},
        "DELETE /samovar/work/.*": {"ended": True},
    })


def with_tokens(stream, body):
    for word, p in (("Tea", -0.01), (" is", -0.6), (" \u2615", -3.0)):
        each = {"token": word, "logprob": p, "bytes": list(word.encode())}
        stream.delta(content=word, logprobs={"content": [
            {**each, "top_logprobs": [each, {"token": " other", "logprob": -4.0, "bytes": None}]}]})
    stream.end(cache_miss="evicted")


def failing(stream, body):
    stream.delta(content="So far")
    stream.event(error={"message": "the daemon has ended"})


def states(browser, fake, size, **options):
    """Yields (name, visit); the caller looks at the page, and changes nothing."""
    live_data(fake)
    fake.routes["GET /v1/models"] = {"object": "list", "data": [
        MODEL, {**MODEL, "id": "a-model-with-a-very-long-name-Q4_K_M-instruct-2026"}]}
    visit = browser.visit(fake, size, **options)
    phone = size == "phone"
    yield "welcome", visit

    fake.will(say(MARKDOWN, piece=300), think("I *think*.", "The end."), with_tokens, *3 * [say("One of the answers.")], failing,
              call(("clock", '{"zone": "UTC"}')))
    visit.page.locator("#files").set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"tea"})
    expect(visit.page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(1)
    yield "attached", visit
    visit.ask("Show all of Markdown, please. " + "long_" * 60 + "\nline" * 3000)
    yield "markdown", visit
    visit.ask("Think.")
    visit.last.locator("summary").click()
    yield "reasoning", visit
    visit.ask("Tokens.")
    visit.last.get_by_role("button", name="Token probabilities").click()
    visit.last.get_by_role("listbox").focus()
    visit.page.keyboard.press("ArrowRight")
    yield "tokens", visit
    visit.last.get_by_role("button", name="Token probabilities").click()
    visit.answers_wanted(3)
    visit.ask("Several.")
    yield "side by side", visit
    visit.answers_wanted(1)
    visit.ask("Fail.")
    yield "failed", visit
    visit.ask("Call.")
    yield "calls", visit

    visit.messages.nth(2).get_by_role("button", name="Branch from here").click()
    expect(visit.page.get_by_role("button", name="Answer", exact=True)).to_be_visible()
    yield "branch note", visit
    visit.button("Go back to the end").click()
    visit.page.locator("article.user").first.get_by_role("button", name="Edit", exact=True).click()
    visit.answers.first.get_by_role("button", name="Edit", exact=True).click()
    yield "edit", visit
    for _ in range(2):
        visit.button("Cancel").first.click()

    panel = visit.settings()
    while (folds := panel.locator("details:not([open]) > summary")).count():
        folds.first.click()
    panel.get_by_label("Tools, as JSON").fill("{")
    panel.get_by_label("JSON schema", exact=True).fill("[]")
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    yield "settings", visit
    panel.get_by_label("Tools, as JSON").fill("")
    panel.get_by_label("JSON schema", exact=True).fill('{"type": "object", "required": ["a"]}')
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    panel.get_by_label("Answers follow this schema").check()
    visit.close_panel()
    fake.will(say('{"a": 1}'), say('{"b": 1}'))
    visit.ask("As JSON.")
    visit.ask("As wrong JSON.")
    expect(visit.last.locator(".verdict")).to_contain_text("Invalid")
    yield "results", visit
    visit.button("Tree of branches").click()
    yield "tree", visit
    visit.close_panel()

    title = visit.page.locator("#chat-title").inner_text()
    visit.history()
    yield "history", visit
    visit.page.get_by_role("searchbox").fill("nowhere")
    expect(visit.page.get_by_text("Nothing found.")).to_be_visible()
    yield "nothing found", visit
    visit.page.get_by_role("searchbox").fill("")
    visit.button("Rename " + title).click()
    yield "rename", visit
    visit.page.keyboard.press("Escape")
    visit.button("Delete " + title).click()
    yield "delete", visit
    visit.page.keyboard.press("Escape")
    visit.close_history() if phone else None
    visit.page.evaluate("() => { document.activeElement?.blur(); }")
    visit.page.keyboard.press("?")
    expect(visit.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    yield "shortcuts", visit
    visit.page.keyboard.press("Escape")
    visit.page.locator("#scroll").evaluate("(box) => { box.scrollTop = 0; }")
    expect(visit.button("Jump to the end")).to_be_visible()
    yield "scrolled", visit

    visit.page.get_by_role("tab", name="Live").click()
    expect(visit.button("End sequence 41")).to_be_visible()
    yield "live", visit
    visit.button("End sequence 41").click()
    yield "end", visit
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("tab", name="Chat").click()

    done = threading.Event()

    def endless(stream, body):
        stream.delta(content="I begin")
        done.wait(60)
    fake.will(endless)
    panel = visit.settings()
    panel.get_by_label("Answers follow this schema").uncheck()
    visit.close_panel()
    visit.send("Run.")
    expect(visit.last.locator(".body")).to_have_text("I begin")
    fake.routes["GET /health"] = {"status": "unavailable", "message": "the daemon does not answer"}
    expect(visit.page.locator("#banner")).to_be_visible(timeout=20000)
    yield "running and away", visit
    done.set()
    visit.button("Stop").click()
    fake.routes["GET /health"] = {"status": "ok"}
    visit.history().get_by_role("button", name=re.compile("^Delete Show")).click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    visit.toast("The chat is deleted")
    yield "toast", visit
    fake.routes["GET /v1/models"] = lambda stream, body: stream.json(401, {"error": {"message": "an API key is needed"}})
    visit.page.reload()
    expect(visit.page.get_by_role("dialog", name="This server wants a key")).to_be_visible()
    yield "key", visit
