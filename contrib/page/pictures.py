#!/usr/bin/env python3
"""Takes the six pictures of docs/guide: pictures.py BUILD FOLDER.

The branches are answers of teaspoon, and the tab Live shows a real daemon.  What teaspoon is too small
for (code, a table, reasoning, tool calls) comes from the server of the tests, as a model "example".
"""
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]

from playwright.sync_api import expect  # noqa: E402

from browser import Browser  # noqa: E402
from fake_server import Fake, MODEL, call, say  # noqa: E402
from servers import STARTED, Pair  # noqa: E402

BYTES_MAX = 150 * 1024

TABLE = """\
A **KV cache** keeps what a model has computed for the tokens that it has read. Each token of the \
answer then needs only its own computation:

```python
def attend(query, cache):
    scores = [query @ key for key in cache.keys]
    weights = softmax(scores)
    return sum(w * value for w, value in zip(weights, cache.values))
```

| step    | reads              | keeps        |
|:--------|:-------------------|-------------:|
| prefill | the whole prompt   | all its keys |
| decode  | one token          | one more key |
| branch  | nothing that it has read | shared blocks |

1. The **prompt** is read once (*prefill*).
2. A second branch finds its blocks in the pool, and reads nothing again.
"""


def picture(visit, folder, name):
    """Saves it, with fewer colours if it would be too large."""
    visit.drawn()
    # Toasts and the caret come and go.
    expect(visit.page.locator(".toast")).to_have_count(0, timeout=15000)
    path = folder / ("page-%s.png" % name)
    visit.page.screenshot(path=str(path), animations="disabled", caret="hide")
    size = path.stat().st_size
    print("%-28s %4d KiB" % (path.name, size // 1024))
    assert size < BYTES_MAX, "%s has %d bytes; it may have %d" % (path, size, BYTES_MAX)


def as_example(bridge):
    fake = Fake(bridge)
    fake.name = "example"
    fake.routes["GET /v1/models"] = {"object": "list", "data": [{**MODEL, "id": "example", "max_model_len": 4096}]}
    return fake


def chat_with_code(browser, bridge, folder, name, **options):
    fake = as_example(bridge)
    fake.will(say(TABLE, piece=7, prompt=62, output=214, cached=48, cache_miss="messages_changed", predicted_per_second=412))
    visit = browser.visit(fake, **options)
    visit.ask("What is a KV cache good for? Show some code, and a table.")
    visit.page.locator("#scroll").evaluate("(box) => { box.scrollTop = 0; }")
    picture(visit, folder, name)
    fake.end()


def branches(browser, teaspoon, folder):
    visit = browser.visit(teaspoon)
    visit.ask("What is two plus three?")
    visit.answers_wanted("3")
    visit.send("What is the opposite of cold?")
    visit.whole()
    visit.page.locator(".choose").last.click()
    visit.answers_wanted("1")
    visit.ask("What is the capital of Italy?")
    visit.last.get_by_role("button", name="Regenerate").click()
    visit.whole()
    visit.page.locator("article.user").first.get_by_role("button", name="Edit", exact=True).click()
    visit.page.get_by_role("textbox", name="Edit message").fill("What is four plus five?")
    visit.page.keyboard.press("Enter")
    visit.whole()
    visit.button("Tree of branches").click()
    visit.page.get_by_role("treeitem", name=re.compile("^You: What is the opp")).click()
    picture(visit, folder, "branches")


def reasoning(browser, bridge, folder):
    fake, thinks = as_example(bridge), threading.Event()
    visit = browser.visit(fake)

    def think_and_call(stream, body):
        stream.delta(reasoning_content="The person asks for the weather in two cities.\n\nI cannot know it, but there is "
                                       "a tool for it. I call it *once for each city*.")
        thinks.wait(1.2)
        call(("get_weather", '{"city": "Oslo", "unit": "celsius"}'), ("get_weather", '{"city": "Turin", "unit": "celsius"}'),
             text="I look it up.")(stream, body)

    fake.will(think_and_call)
    visit.ask("Where is it warmer now, in Oslo or in Turin?")
    visit.last.locator("summary").first.click()
    visit.page.get_by_label("Result of call 1").fill('{"temperature": -2, "sky": "snow"}')
    visit.page.locator("#scroll").evaluate("(box) => { box.scrollTop = 0; }")
    picture(visit, folder, "reasoning")
    fake.end()


def live(browser, pair, folder):
    old = browser.visit(pair)
    for words in ("say numbers. " + "of old tea " * 300, "say numbers. " + "of new tea " * 200):
        old.ask(words)
    visits = [browser.visit(pair) for _ in range(2)]
    for visit in visits:
        visit.write("say forever.")
        visit.streams()
    visit = browser.visit(pair)
    visit.answers_wanted("3")
    visit.write("say forever.")
    visit.page.get_by_role("tab", name="Live").click()
    visit.page.wait_for_timeout(20000)
    picture(visit, folder, "live")
    for each in visits:
        each.page.keyboard.press("Escape")


def main():
    build, folder = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="samovar-page-") as place:
        os.environ["TMPDIR"] = tempfile.tempdir = place
        try:
            browser = Browser()
            teaspoon = Pair(build, "teaspoon", keys=None)
            chat_with_code(browser, teaspoon, folder, "chat")
            chat_with_code(browser, teaspoon, folder, "dark", color_scheme="dark")
            chat_with_code(browser, teaspoon, folder, "phone", size="phone", device_scale_factor=1.5)
            branches(browser, teaspoon, folder)
            reasoning(browser, teaspoon, folder)
            live(browser, Pair(build, "scripted", keys=None, daemon=("--kv-bytes", "24M")), folder)
            print("\n".join(browser.complaints()))
            browser.close()
        finally:
            for pair in STARTED:
                pair.end()


if __name__ == "__main__":
    main()
