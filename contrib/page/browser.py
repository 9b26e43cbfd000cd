"""A Chromium, and visits to the page: what a person does, and what the browser noticed meanwhile.

One browser serves all tests.  Each visit has a context of its own, with its own history.
"""
import bisect
import contextlib
import json
import re
import shutil
import time

from playwright.sync_api import expect, sync_playwright

PATIENCE = 30                       # seconds; only a failure takes as long
ACTION = 12                         # seconds until a control must be there
SIZES = {"desktop": (1280, 800), "phone": (360, 740)}
BROWSERS = ("chromium-headless-shell", "chromium")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info",
         # Nothing but the page may be the reason of a request.
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--no-first-run"]
expect.set_options(timeout=ACTION * 1000)

# Runs before the page.  `attacked` is what hostile text would set.
WATCH = """
window.watched = { violations: [], tasks: [], told: [], attacked: 0 };
addEventListener('securitypolicyviolation', (event) => watched.violations.push(
    `${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`), true);
try {
    new PerformanceObserver((list) => list.getEntries().forEach(
        (task) => watched.tasks.push(task.duration))).observe({ type: 'longtask', buffered: true });
} catch { }
addEventListener('DOMContentLoaded', () => {
    for (const region of document.querySelectorAll('[aria-live], [role=status], [role=alert]'))
        new MutationObserver(() => region.textContent && watched.told.push(region.textContent))
            .observe(region, { childList: true, characterData: true, subtree: true });
});
"""


class Skip(Exception):
    """The test cannot say anything here; the text says why."""


class Browser:
    """Closes all visits of a test, and says what the browser complained about."""

    def __init__(self, flags=(), playwright=None):
        self.playwright, self.owns = playwright or sync_playwright().start(), not playwright
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        assert path, "there is no Chromium; contrib/dev/deps page installs it"
        self.chromium = self.playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        self.contexts, self.visits = [], []

    def context(self, size="desktop", **options):
        width, height = SIZES.get(size, size)
        if size == "phone":
            options = {"has_touch": True, "is_mobile": True, **options}
        made = self.chromium.new_context(viewport={"width": width, "height": height}, **options)
        made.set_default_timeout(ACTION * 1000)
        made.add_init_script(WATCH)
        self.contexts.append(made)
        return made

    def visit(self, server, size="desktop", context=None, ready=True, path="/", **options):
        """Opens the page of a server. With a context of an earlier visit it is another tab."""
        context = context or self.context(size, **options)
        visit = Visit(context.new_page(), server.url + path)
        self.visits.append(visit)
        visit.page.goto(visit.url)
        if ready:
            visit.ready()
        return visit

    def complaints(self):
        """Of all visits since the last call, which are closed."""
        found = []
        for visit in self.visits:
            with contextlib.suppress(Exception):
                found += ["policy: " + text for text in visit.watched("violations")]
                if visit.watched("attacked"):
                    found.append("hostile text was executed")
            found += visit.complaints
        self.visits.clear()
        for context in self.contexts:
            with contextlib.suppress(Exception):
                context.close()
        self.contexts.clear()
        return found

    def close(self):
        self.chromium.close()
        if self.owns:
            self.playwright.stop()

    @contextlib.contextmanager
    def other(self, *flags):
        """Another browser, with flags of its own."""
        made = Browser(flags, self.playwright)
        try:
            yield made
        finally:
            made.close()


class Visit:
    def __init__(self, page, url):
        self.page, self.url = page, url
        self.complaints, self.requests = [], []
        self.expected = [r"Failed to load resource"]    # that a server refuses is part of many tests
        page.on("pageerror", lambda error: self._complain("script", str(error)))
        page.on("console", self._on_console)
        page.on("dialog", self._on_dialog)
        page.on("request", lambda request: self.requests.append(request.url))

    def _complain(self, what, text):
        if not any(re.search(each, text) for each in self.expected):
            self.complaints.append("%s: %s" % (what, text))

    def _on_console(self, message):
        if message.type in ("error", "warning") or "Content Security Policy" in message.text:
            self._complain("console", message.text)

    def _on_dialog(self, dialog):
        self._complain("dialog", dialog.message)
        dialog.dismiss()

    def watched(self, name):
        return self.page.evaluate("(name) => watched[name]", name)

    # -- places of the page

    def button(self, name, **options):
        return self.page.get_by_role("button", name=name, exact=True, **options)

    @property
    def input(self):
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def messages(self):
        return self.page.locator("#messages article")

    @property
    def answers(self):
        return self.page.locator("#messages article.assistant")

    @property
    def last(self):
        return self.answers.last

    def answer_text(self):
        return self.last.locator(".body").inner_text()

    def ready(self):
        """The page knows the daemon and its model."""
        expect(self.page.locator("#health")).to_have_attribute("data-state", "ok", timeout=PATIENCE * 1000)
        expect(self.page.locator("#model option")).not_to_have_count(0)

    # -- what a person does

    def write(self, text):
        if "\n" in text:            # fill() types each line, which takes Chromium long; a paste would not
            self.input.evaluate("(input, text) => { input.value = text; input.dispatchEvent(new Event('input')); }", text)
        else:
            self.input.fill(text)
        self.input.press("Enter")

    def ask(self, text):
        """Sends it, and waits for the whole answer."""
        self.send(text)
        self.whole()
        return self.answer_text()

    def send(self, text):
        """Sends it; the answer has begun, or waits."""
        before = self.answers.count()
        self.write(text)
        expect(self.answers).not_to_have_count(before)

    def whole(self):
        """No answer is being written, and what came is drawn."""
        expect(self.page.locator("#messages article.is-running")).to_have_count(0, timeout=PATIENCE * 1000)
        expect(self.button("Send")).to_be_visible()
        self.drawn()

    def drawn(self):
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame("
                           "() => requestAnimationFrame(() => done(true))))")

    def streams(self, words="tock"):
        """The last answer has begun."""
        expect(self.last.locator(".body")).to_contain_text(words, timeout=PATIENCE * 1000)

    def answers_wanted(self, count):
        self.page.locator("#answers").select_option(str(count))

    def settings(self):
        """The open panel of the settings."""
        if self.button("Chat settings").get_attribute("aria-expanded") != "true":
            self.button("Chat settings").click()
        return self.page.get_by_role("form", name="Chat settings")

    def close_panel(self):
        self.page.locator("#side").get_by_role("button", name=re.compile("^Close")).click()

    def history(self):
        """The open list of chats."""
        if self.button("History").get_attribute("aria-expanded") != "true":
            self.button("History").click()
        return self.page.get_by_role("navigation", name="History")

    def close_history(self):
        if self.button("History").get_attribute("aria-expanded") == "true":
            self.page.keyboard.press("Escape")

    def chats(self):
        """The titles of the history."""
        return self.page.locator("#chats .chat-title").all_inner_texts()

    def toast(self, text):
        expect(self.page.locator("#toasts")).to_contain_text(text)

    def stored(self):
        """All chats and messages that the browser keeps."""
        return self.page.evaluate("""async () => {
            const opened = await new Promise((done, fail) => {
                const request = indexedDB.open('samovar');
                request.onsuccess = () => done(request.result);
                request.onerror = () => fail(request.error);
            });
            const all = (name) => new Promise((done) => {
                opened.transaction(name).objectStore(name).getAll().onsuccess =
                    ({ target }) => done(target.result);
            });
            const made = { chats: await all('chats'), messages: await all('messages') };
            opened.close();
            made.messages.sort((a, b) => a.at - b.at || a.order - b.order);
            return made;
        }""")

    def download(self, click):
        """The JSON of the file that this click downloads."""
        with self.page.expect_download() as found:
            click()
        return json.loads(open(found.value.path(), encoding="utf-8").read())


def until(what, true, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "not within %d seconds: %s" % (seconds, what)
        time.sleep(0.02)


@contextlib.contextmanager
def longest_task(browser, visit):
    """Measures the longest task of the page's main thread, in CPU time: a busy machine does not
    count, and nor does what the test itself asks by the DevTools.  Yields a dictionary that gets
    `cpu_ms`, and `wall_ms` for the report."""
    found, events, ended = {}, [], []
    session = browser.chromium.new_browser_cdp_session()
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda data: ended.append(True))
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": {
        "recordMode": "recordUntilFull", "includedCategories": ["toplevel", "mojom", "blink.user_timing"]}})
    mark = "page-%d" % time.monotonic_ns()
    visit.page.evaluate("(mark) => performance.mark(mark)", mark)
    try:
        yield found
    finally:
        session.send("Tracing.end")
        until("the trace is complete", lambda: visit.page.evaluate("1") and ended)
        session.detach()
    marked = next(event for event in events if event["name"] == mark)
    mine = [event for event in events if event.get("ph") == "X"
            and (event["pid"], event["tid"]) == (marked["pid"], marked["tid"])]
    of_test = sorted(event["ts"] for event in mine if "DevToolsSession" in str(event.get("args")))
    tasks = [event for event in mine if "RunTask" in event["name"] and "tdur" in event
             and not has_between(of_test, event["ts"], event["ts"] + event["dur"])]
    assert tasks and of_test, "the trace has no tasks"
    found.update(cpu_ms=max(task["tdur"] for task in tasks) / 1000,
                 wall_ms=max(task["dur"] for task in tasks) / 1000)


def has_between(times, begin, end):
    at = bisect.bisect_left(times, begin)
    return at < len(times) and times[at] <= end
