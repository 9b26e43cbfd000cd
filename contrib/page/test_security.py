"""Who may read the page and ask from it: keys, hosts, origins, frames."""
import http.client
import json

from playwright.sync_api import expect

from browser import until
from fake_server import say
from servers import KEYS


def ask_for_key(visit, key, again=False):
    dialog = visit.page.get_by_role("dialog", name="The key is not known here" if again else "This server wants a key")
    dialog.get_by_role("textbox", name="API key").fill(key)
    dialog.get_by_role("button", name="Use key").click()


def test_a_wrong_key_is_asked_for_again_and_a_right_one_works(browser, keyed, size):
    visit = browser.visit(keyed, size, ready=False)
    ask_for_key(visit, "no-such-key-0123456789")
    ask_for_key(visit, next(iter(KEYS)), again=True)
    visit.ready()
    assert visit.ask("say party.") == "left \U0001F389 right"
    key = next(iter(KEYS))
    assert not any(key in url for url in visit.requests), "a key stands in an address"
    kept = visit.page.evaluate("({ session: JSON.stringify(sessionStorage), local: JSON.stringify(localStorage), cookie: document.cookie })")
    assert key in kept["session"] and key not in kept["local"] and kept["cookie"] == ""
    visit.page.reload()
    visit.ready()
    expect(visit.page.get_by_role("dialog")).to_have_count(0)
    # Another tab is another session.
    other = browser.visit(keyed, context=visit.page.context, ready=False)
    expect(other.page.get_by_role("dialog", name="This server wants a key")).to_be_visible()


def test_a_person_without_a_key_can_cancel(browser, keyed):
    visit = browser.visit(keyed, ready=False)
    visit.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(visit.page.get_by_role("dialog")).to_have_count(0)
    visit.write("Hello?")
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(visit.last.get_by_role("alert")).to_contain_text("key")


def test_each_key_sees_only_its_own_work(browser, keyed):
    anna, berta = KEYS
    visit = browser.visit(keyed, ready=False)
    ask_for_key(visit, anna)
    visit.ready()
    visit.send("say forever.")
    visit.streams()
    stream = visit.page.evaluate("""async () => {
        const opened = await new Promise((done) => { indexedDB.open('samovar').onsuccess = ({ target }) => done(target.result); });
        return new Promise((done) => { opened.transaction('messages').objectStore('messages').getAll().onsuccess =
            ({ target }) => done(target.result.find(({ stream }) => stream)?.stream.id); });
    }""")
    assert stream
    assert keyed.server(1).get("/v1/streams/%s?from=0" % stream).status == 404
    visit.button("Stop").click()
    visit.whole()
    keyed.until_idle()


def test_a_rebound_name_gets_nothing(browser, scripted):
    """DNS rebinding: a name of the attacker that leads to this machine."""
    with browser.other("--host-resolver-rules=MAP evil.test 127.0.0.1") as other:
        page = other.context().new_page()
        for path in ("/", "/page/main.js", "/health", "/v1/models"):
            answer = page.goto("http://evil.test:%d%s" % (scripted.port, path))
            assert answer.status == 403 and "evil.test" in answer.text(), (path, answer.status)
        assert "<script" not in page.content()


ATTEMPTS = """async (server) => {
    const tries = {
        simple: () => fetch(server + '/v1/models'),
        page: () => fetch(server + '/page/main.js'),
        json: () => fetch(server + '/v1/chat/completions', { method: 'POST', body: '{}',
                                                             headers: { 'content-type': 'application/json' } }),
        text: () => fetch(server + '/v1/chat/completions', { method: 'POST', body: '{}' }),
        opaque: () => fetch(server + '/v1/models', { mode: 'no-cors' }),
    };
    const found = {};
    for (const [name, attempt] of Object.entries(tries))
        found[name] = await attempt().then(async (answer) => [answer.type, answer.status, await answer.text()],
                                           (error) => [String(error)]);
    found.frame = await new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.src = server + '/';
        frame.onload = () => { try { done(['loaded', frame.contentDocument?.body?.innerText ?? null]); } catch (e) { done(['closed']); } };
        setTimeout(done, 3000, ['never']);
        document.body.append(frame);
    });
    found.script = await new Promise((done) => {
        const script = document.createElement('script');
        script.type = 'module';
        script.src = server + '/page/main.js';
        script.onload = () => done(['loaded']);
        script.onerror = () => done(['refused']);
        document.body.append(script);
    });
    return found;
}"""


def test_pages_of_foreign_origins_are_refused(browser, scripted, fake):
    """A page of another site, in the same browser, which knows the port."""
    fake.routes["GET /attack"] = lambda stream, body: stream.handler.reply(
        200, b"<!DOCTYPE html><title>attack</title><body>", {"Content-Type": "text/html"})
    # The browser's own guard of this machine is off, so the answers are those of samovar-http.
    with browser.other("--host-resolver-rules=MAP evil.test 127.0.0.1",
                       "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests") as other:
        page = other.context().new_page()
        page.goto("%s/attack" % fake.url.replace("127.0.0.1", "evil.test"))
        found = page.evaluate(ATTEMPTS, scripted.url)
        for name in ("simple", "page", "json", "text"):
            assert "TypeError" in found[name][0], (name, found[name])
        assert found["opaque"][0] == "opaque" and found["opaque"][2] == "" or "TypeError" in found["opaque"][0], found["opaque"]
        assert found["script"] == ["refused"], found["script"]
        frame = page.frames[-1]
        assert frame.evaluate("document.querySelector('#composer') === null"), "the page can be framed"


def test_a_framed_page_is_not_shown_even_to_itself(browser, fake):
    fake.routes["GET /frame"] = lambda stream, body: stream.handler.reply(
        200, b'<!DOCTYPE html><iframe src="/"></iframe>', {"Content-Type": "text/html"})
    page = browser.context().new_page()
    page.goto(fake.url + "/frame")
    page.wait_for_timeout(300)
    assert all(frame.locator("#composer").count() == 0 for frame in page.frames)


def test_the_headers_of_each_file_keep_it_safe(browser, scripted):
    visit = browser.visit(scripted)
    paths = {"/"} | {url.removeprefix(scripted.url) for url in visit.requests if "/page/" in url}
    assert len(paths) > 10
    for path in sorted(paths):
        asked = http.client.HTTPConnection("127.0.0.1", scripted.port)
        asked.request("GET", path, headers={"Accept": "text/html"})
        answer = asked.getresponse()
        answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        policy = headers["content-security-policy"]
        for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
                     "script-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"):
            assert part in policy, (path, policy)
        assert "unsafe" not in policy and "*" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-cache"
        asked.request("GET", path, headers={"Accept": "text/html", "If-None-Match": headers["etag"]})
        assert asked.getresponse().status == 304, path
        asked.close()


def test_the_policy_holds_against_scripts_in_the_page(browser, fake, elsewhere):
    """What a fault in the page could do at most: the browser refuses each of these."""
    visit = browser.visit(fake)
    found = visit.page.evaluate("""async (elsewhere) => {
        const tries = {
            html: () => { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); },
            eval: () => { (0, eval)('1'); },
            outside: () => fetch(elsewhere + '/x'),
            image: () => new Promise((done, fail) => { const image = new Image(); image.onerror = fail; image.onload = done; image.src = elsewhere + '/x.png'; }),
            style: () => { const made = document.createElement('div'); made.setAttribute('style', 'width: 7px'); document.body.append(made);
                           if (getComputedStyle(made).width !== '7px') throw new Error(); },
            inline: () => { const made = document.createElement('button'); made.setAttribute('onclick', 'watched.attacked = 1');
                            document.body.append(made); made.click(); if (!watched.attacked) throw new Error(); },
        };
        const passed = [];
        for (const [name, attempt] of Object.entries(tries))
            try { await attempt(); passed.push(name); } catch { }
        return passed;
    }""", elsewhere.url)
    # `eval` runs here: what the DevTools evaluate is not under the policy.
    assert set(found) <= {"eval"}, found
    assert elsewhere.came == 0
    until("they are reported", lambda: len(visit.watched("violations")) >= 4)
    reported = " ".join(visit.watched("violations"))
    for directive in ("require-trusted-types-for", "connect-src", "img-src", "style-src-attr"):
        assert directive in reported, (directive, reported)
    visit.page.evaluate("() => { watched.violations.length = 0; }")
    visit.complaints.clear()


def test_a_drop_of_another_page_is_text_only(browser, fake):
    """Pasted HTML becomes its text."""
    fake.will(say("Fine."))
    visit = browser.visit(fake)
    visit.input.evaluate("""(input) => {
        const data = new DataTransfer();
        data.setData('text/html', '<img src=x onerror="watched.attacked = 1">');
        data.setData('text/plain', 'plain');
        input.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    }""")
    visit.ask("Hello?")
    until("it was asked", lambda: json.dumps(fake.chats()))
    assert not visit.watched("attacked")
