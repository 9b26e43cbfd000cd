"""What a model may write against the page: it stays text, asks for nothing, and does not hold up the page.

The times are of the CPU, so a busy machine does not count.  LONGEST is what the page promises.
"""
import json
import re

from playwright.sync_api import expect

from browser import longest_task, until
from fake_server import call, say, think

LONGEST = 200                       # milliseconds of a task on the main thread
HEAP = 96 << 20                     # bytes more than at rest, for a text of a megabyte
NODES = 150_000                     # of the document, for the same

ATTACK = "window.watched.attacked = 1"


def payloads(elsewhere):
    return [
        '<script>%s</script>' % ATTACK,
        '<script src="%s/x.js"></script>' % elsewhere,
        '<img src=x onerror="%s">' % ATTACK,
        '<img src="%s/x.png" srcset="%s/y.png 2x">' % (elsewhere, elsewhere),
        '<svg/onload="%s">' % ATTACK,
        '<svg><script>%s</script><use href="%s/x.svg#a"/></svg>' % (ATTACK, elsewhere),
        '<style>@import "%s/x.css"; body { display: none }</style>' % elsewhere,
        '<link rel=stylesheet href="%s/x.css">' % elsewhere,
        '<iframe src="%s/frame" srcdoc="<script>parent.%s</script>"></iframe>' % (elsewhere, ATTACK),
        '<object data="%s/x"></object><embed src="%s/y">' % (elsewhere, elsewhere),
        '<base href="%s/">' % elsewhere,
        '<meta http-equiv=refresh content="0; url=%s/">' % elsewhere,
        '<form action="%s/steal"><input name=q><button>Send</button></form>' % elsewhere,
        '<video src="%s/x.mp4" autoplay></video><audio src="%s/x.mp3" autoplay></audio>' % (elsewhere, elsewhere),
        '<body onload="%s">' % ATTACK,
        '<details open ontoggle="%s"><summary>x</summary></details>' % ATTACK,
        '<a href="javascript:%s" autofocus onfocus="%s">here</a>' % (ATTACK, ATTACK),
        '<math><mtext></table><img src=x onerror="%s">' % ATTACK,
        '![a picture](%s/x.png)' % elsewhere,
        '![a picture][ref]\n\n[ref]: %s/ref.png' % elsewhere,
        '![p](data:image/svg+xml,<svg onload="%s"/>)' % ATTACK,
        '[here](javascript:%s)' % ATTACK.replace(" ", ""),
        '[here](JaVaScRiPt:%s)' % ATTACK.replace(" ", ""),
        '[here](\x01javascript:%s)' % ATTACK.replace(" ", ""),
        '[here](java\tscript:%s)' % ATTACK.replace(" ", ""),
        '[here](&#106;avascript:%s)' % ATTACK.replace(" ", ""),
        '[here](vbscript:x) [here](file:///etc/passwd) [here](data:text/html,<script>%s</script>)' % ATTACK,
        '<javascript:%s>' % ATTACK.replace(" ", ""),
        '[here](%s/a" onclick="%s)' % (elsewhere, ATTACK.replace(" ", "")),
        '&lt;script&gt;%s&lt;/script&gt; &#60;b&#62; &amp;amp; &nbsp;' % ATTACK,
        '```html" onclick="%s\n<script>%s</script>\n```' % (ATTACK, ATTACK),
        '| <img src=x onerror="%s"> | b |\n|---|---|\n| <script>%s</script> | ![x](%s/t.png) |' % (ATTACK, ATTACK, elsewhere),
        '<!-- <img src=x onerror="%s"> --><![CDATA[<script>%s</script>]]>' % (ATTACK, ATTACK),
        '<x-samovar id="input" name="watched">',
        '</article></section></main><h1>Your session has ended</h1>',
        '{{constructor.constructor("%s")()}} ${%s}' % (ATTACK, ATTACK),
    ]


def inert(visit, fake, elsewhere):
    """Nothing was executed, and nobody was asked but for the page's own routes."""
    visit.page.wait_for_timeout(100)
    assert not visit.watched("attacked") and not visit.watched("violations")
    foreign = [url for url in visit.requests if not url.startswith((fake.url, "blob:"))]
    assert not foreign and elsewhere.came == 0, (foreign, elsewhere.came)
    odd = [path for _, path, _, _ in fake.asked if not re.match(r"/(health|v1/|samovar/)", path)]
    assert not odd, odd
    found = visit.page.evaluate("""() => {
        const foreign = document.querySelectorAll('script:not([src="page/main.js"]), iframe, object, embed, base, ' +
            'meta[http-equiv], style, img, video, audio, link[rel=stylesheet]:not([href="page/style.css"]), x-samovar');
        const handlers = [...document.querySelectorAll('*')].filter((each) =>
            [...each.attributes].some(({ name }) => name.startsWith('on') || name === 'style' || name === 'srcdoc'));
        const links = [...document.querySelectorAll('a[href]:not(.skip)')].filter((each) =>
            !/^https?:$/.test(each.protocol) || each.target !== '_blank' || !/noopener/.test(each.rel) ||
            !/noreferrer/.test(each.rel));
        return [...foreign, ...handlers, ...links].map((each) => each.outerHTML.slice(0, 200));
    }""")
    assert not found, found


def test_hostile_text_stays_text(browser, fake, elsewhere, size):
    visit = browser.visit(fake, size)
    each = payloads(elsewhere.url)
    fake.will(say("\n\n".join(each), piece=11))
    visit.ask("Attack me.")
    inert(visit, fake, elsewhere)
    shown = visit.last.locator(".body").inner_text()
    for words in ("<script>%s</script>" % ATTACK, "<iframe src=", "</article></section></main>", "&lt;script&gt;"):
        assert words in shown, words
    expect(visit.last.get_by_text("image: a picture").first).to_be_visible()


def test_hostile_text_in_all_other_places_stays_text(browser, fake, elsewhere):
    """Reasoning, calls, results, titles, names of models and files, errors, tokens, the tree."""
    bad = '<img src=x onerror="%s"><script>%s</script>' % (ATTACK, ATTACK)
    fake.routes["GET /v1/models"] = {"object": "list", "data": [{"id": bad, "max_model_len": 100, "meta": {
        "quantization": bad, "architecture": bad}}]}
    fake.routes["GET /health"] = {"status": "ok", "message": bad}
    visit = browser.visit(fake)
    visit.page.locator("#files").set_input_files({"name": bad.replace("/", "|") + ".txt", "mimeType": "text/plain",
                                                  "buffer": bad.encode()})
    expect(visit.page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(1)
    fake.will(think("\n\n".join(payloads(elsewhere.url)), bad))
    visit.ask(bad)
    visit.last.locator("summary").click()
    expect(visit.last.get_by_text("Your session has ended")).to_be_visible()

    fake.will(call((bad, '{"a": "%s"}' % ATTACK), ("x", bad)))
    visit.ask("Call.")
    for box in visit.page.get_by_label(re.compile("Result of call")).all():
        box.fill(bad)
    visit.button("Send results").click()
    visit.whole()

    def tokens(stream, body):
        each = {"token": bad, "logprob": -0.1, "bytes": list(bad.encode()), "top_logprobs": [
            {"token": bad, "logprob": -0.1, "bytes": None}, {"token": "</span>", "logprob": -3, "bytes": None}]}
        stream.delta(content=bad, logprobs={"content": [each]})
        stream.end(cache_miss=bad)
    fake.will(tokens)
    visit.ask("Tokens.")
    visit.last.get_by_role("button", name="Token probabilities").click()
    visit.last.get_by_role("listbox").focus()
    visit.page.keyboard.press("ArrowRight")

    def fail(stream, body):
        stream.delta(content=bad)
        stream.event(error={"message": bad})
        stream.raw(b"")
    fake.will(fail)
    visit.write("Fail.")
    expect(visit.last.get_by_role("alert")).to_contain_text("<img src=x")
    visit.button("Tree of branches").click()
    expect(visit.page.get_by_role("treeitem").first).to_contain_text("<img src=x")
    expect(visit.page.locator("#chats .chat-title")).to_contain_text("<img src=x")
    visit.history().get_by_role("searchbox").fill("onerror")
    inert(visit, fake, elsewhere)


def test_an_import_with_hostile_text_is_inert_or_refused(browser, fake, elsewhere):
    visit = browser.visit(fake)
    bad = '<img src=x onerror="%s">' % ATTACK

    def chat(**changes):
        message = {"id": "a", "parent": None, "role": "assistant", "text": "\n\n".join(payloads(elsewhere.url)), "at": 1,
                   "order": 0, "state": "done", "reasoning": bad, "model": bad, "error": bad, "finish": bad, **changes}
        return {"format": "samovar-chats", "version": 1, "chats": [
            {"id": "x", "title": bad, "leaf": "a", "settings": {"model": bad}, "messages": [message]}]}
    refused = [b"\xff\xfe", b"no JSON", b"[]", b"{}", json.dumps({"format": "samovar-chats", "chats": [{}]}).encode(),
               json.dumps(chat(role="system")).encode(), json.dumps(chat(text=5)).encode(),
               json.dumps(chat(calls=[{"id": 1}])).encode(), json.dumps(chat(parent="a")).encode(),
               json.dumps(chat(files="x")).encode(), json.dumps(chat(tokens=[{}])).encode()]
    visit.history()
    for at, data in enumerate(refused):
        visit.page.locator("#import-file").set_input_files(
            {"name": "chats.json", "mimeType": "application/json", "buffer": data})
        expect(visit.page.locator(".toast").filter(has_text="Not imported").last).to_be_visible()
        assert not visit.stored()["messages"], "import %d was taken" % at
    for changes in ({}, {"tokens": [{"t": bad, "p": -1}]}, {"calls": [{"id": bad, "name": bad, "arguments": bad}]},
                    {"stats": {"prompt": bad, "output": bad}}, {"schema": {"$ref": "#/" + bad, "type": bad}}):
        visit.page.locator("#import-file").set_input_files(
            {"name": "chats.json", "mimeType": "application/json", "buffer": json.dumps(chat(**changes)).encode()})
        expect(visit.page.locator(".toast").filter(has_text="1 chat imported").last).to_be_visible()
        visit.page.locator("#chats .chat-name").first.click()
        expect(visit.answers).to_have_count(1)
        if visit.last.get_by_role("button", name="Token probabilities").is_visible():
            visit.last.get_by_role("button", name="Token probabilities").click()
            visit.last.get_by_role("listbox").press("ArrowRight")
    inert(visit, fake, elsewhere)


def test_a_character_split_over_pieces_is_whole(browser, fake):
    text = "tea \u2615 \U0001F469\u200D\U0001F680 \u6f22\u5b57 na\u00efve"

    def answer(stream, body):
        data = ("data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]},
                                            ensure_ascii=False)).encode()
        for at in range(len(data)):
            stream.raw(data[at:at + 1])
        stream.end()
    fake.will(answer)
    visit = browser.visit(fake)
    assert visit.ask("Tea?") == text


def test_directions_and_control_characters_stay_within_the_answer(browser, fake):
    """Characters that turn the direction of writing must not change the page around the answer."""
    bidi = "\u202e\u2066\u2067\u202d abc \u200f\u200e \u061c"
    controls = "".join(chr(code) for code in range(1, 32) if code not in (9, 10, 13)) + "\x7f\x85\ufeff\u2028\u2029\x1b[31mred"
    visit = browser.visit(fake)
    visit.ask("Hello?")
    place = "(element) => element.getBoundingClientRect().x"
    before = visit.last.locator(".who").evaluate(place), visit.last.locator("time").evaluate(place)
    visit.button("New chat").click()
    fake.will(say(bidi + "\n\n" + controls))
    visit.ask(bidi)
    assert (visit.last.locator(".who").evaluate(place), visit.last.locator("time").evaluate(place)) == before
    # Each text of others is isolated, so it cannot turn its neighbours.
    for where in ("#messages article.user .body", "#messages article.assistant .body", "#chat-title", "#chats .chat-title"):
        isolated = visit.page.locator(where).first.evaluate(
            "(element) => /isolate|plaintext/.test(getComputedStyle(element).unicodeBidi) || "
            "getComputedStyle(element).display !== 'inline'")
        assert isolated, where
    assert "[31mred" in visit.answer_text()


def measured(browser, fake, visit, answer, question="Much, please.", scroll=True):
    """The longest task while the answer comes, and with what a person does then."""
    with longest_task(browser, visit) as rest:
        visit.page.wait_for_timeout(500)
    heap, _ = footprint(browser, visit)
    fake.will(answer)
    with longest_task(browser, visit) as found:
        visit.send(question)
        expect(visit.last.locator(".status")).to_contain_text("tokens/s", timeout=60000)
        visit.whole()
        settle(visit)
        if scroll:
            visit.page.locator("#scroll").evaluate("(box) => { box.scrollTop = 0; }")
            visit.drawn()
            visit.page.locator("#scroll").evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
            visit.drawn()
        visit.input.press_sequentially("abc")
    more, nodes = footprint(browser, visit)
    assert found["cpu_ms"] < LONGEST, "a task of %(cpu_ms).0f ms CPU, %(wall_ms).0f ms in all" % found
    assert more - heap < HEAP, "the page has %d MiB more than at rest" % ((more - heap) >> 20)
    assert nodes < NODES, "the document has %d nodes" % nodes
    return "longest task %.0f ms, at rest %.0f ms; %.1f MiB more, %d nodes" % (
        found["cpu_ms"], rest["cpu_ms"], (more - heap) / 2**20, nodes)


def settle(visit):
    """All that came is drawn: the height stays the same."""
    last, same = -1, 0
    while same < 3:
        height = visit.page.locator("#messages").evaluate("(box) => box.scrollHeight + box.textContent.length")
        same, last = (same + 1, last) if height == last else (0, height)
        visit.page.wait_for_timeout(60)


def footprint(browser, visit):
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    nodes = visit.page.evaluate("document.getElementsByTagName('*').length")
    return int(metrics["JSHeapUsedSize"]), nodes


def test_a_megabyte_in_one_line(browser, fake):
    return measured(browser, fake, browser.visit(fake), say("x" * (1 << 20), piece=8192))


def test_sixty_thousand_elements_in_one_line(browser, fake):
    return measured(browser, fake, browser.visit(fake), say("tea *and* `cups` " * 20000, piece=4096))


def test_a_megabyte_in_one_piece(browser, fake):
    return measured(browser, fake, browser.visit(fake), say("tea and cups " * 80000))


def test_ten_thousand_lines(browser, fake, size):
    return measured(browser, fake, browser.visit(fake, size),
                    say("\n".join("%d bottles of **tea**" % at for at in range(10000)), piece=2000))


def test_ten_thousand_paragraphs(browser, fake):
    return measured(browser, fake, browser.visit(fake),
                    say("\n\n".join("%d bottles of **tea**" % at for at in range(10000)), piece=2000))


def test_a_fence_that_never_closes(browser, fake):
    return measured(browser, fake, browser.visit(fake),
                    say("```\n" + "\n".join("line %d of code" % at for at in range(10000)), piece=2000))


def test_a_huge_table(browser, fake):
    rows = ["| " + " | ".join("cell %d.%d" % (row, column) for column in range(12)) + " |" for row in range(1500)]
    return measured(browser, fake, browser.visit(fake),
                    say("\n".join([rows[0], "|" + "---|" * 12, *rows[1:]]), piece=3000))


def test_a_table_of_a_thousand_columns(browser, fake):
    rows = ["|" + "|".join("c" for _ in range(1000)) + "|" for _ in range(12)]
    return measured(browser, fake, browser.visit(fake), say("\n".join([rows[0], "|" + "-|" * 1000, *rows[1:]]), piece=3000))


def test_marks_that_never_close(browser, fake):
    """Each would be searched to the end of the text again, if the parser were naive."""
    return measured(browser, fake, browser.visit(fake), say(
        "**a _b `c ~~d [e](f " * 3000 + "\n\n" + "> " * 5000 + "\n\n" + "".join(" " * (at % 40) + "- x\n" for at in range(2000))
        + "[" * 20000 + "\n\n" + "`" * 5001 + "\n\n" + "*" * 20001 + "\n\n" + "<" * 20000, piece=3000))


def test_a_long_answer_is_let_go_with_its_chat(browser, fake):
    visit = browser.visit(fake)
    heap, nodes = footprint(browser, visit)
    for _ in range(3):
        fake.will(say("tea *and* `cups` " * 12000, piece=8192))
        visit.send("Much.")
        visit.whole()
        settle(visit)
    visit.button("New chat").click()
    visit.drawn()
    after, left = footprint(browser, visit)
    assert after - heap < 16 << 20 and left < nodes + 100, "%.1f MiB and %d nodes stay" % ((after - heap) / 2**20, left - nodes)
    return "%.1f MiB stay" % ((after - heap) / 2**20)


def test_reasoning_of_a_megabyte(browser, fake):
    def answer(stream, body):
        for _ in range(128):
            stream.delta(reasoning_content="I think that tea is good. " * 315)
        stream.delta(content="Tea.")
        stream.end()
    visit = browser.visit(fake)
    said = measured(browser, fake, visit, answer)
    with longest_task(browser, visit) as found:
        visit.last.locator("summary").click()
        settle(visit)
    assert found["cpu_ms"] < LONGEST, "unfolding: a task of %.0f ms CPU" % found["cpu_ms"]
    return said + "; unfolding: %.0f ms" % found["cpu_ms"]


def test_a_chat_with_long_answers_opens_without_a_freeze(browser, fake):
    visit = browser.visit(fake)
    for _ in range(4):
        fake.will(say("tea *and* `cups` of **tea**\n\n" * 3000, piece=20000))
        visit.send("Much.")
        visit.whole()
    visit.page.reload()
    visit.ready()
    settle(visit)
    visit.button("New chat").click()
    with longest_task(browser, visit) as found:
        visit.page.locator("#chats .chat-name").first.click()
        expect(visit.answers).to_have_count(4)
        settle(visit)
    assert found["cpu_ms"] < LONGEST, "a task of %(cpu_ms).0f ms CPU, %(wall_ms).0f ms in all" % found
    return "longest task %.0f ms" % found["cpu_ms"]


def test_a_task_that_is_too_long_would_be_noticed(browser, fake):
    """The measure itself: 300 ms of work in a timer of the page."""
    visit = browser.visit(fake)
    with longest_task(browser, visit) as found:
        visit.page.evaluate("""() => { setTimeout(() => {
            for (const end = performance.now() + 300; performance.now() < end; ) { }
            window.ended = true;
        }); }""")
        until("it has ended", lambda: visit.page.evaluate("window.ended"))
    assert found["wall_ms"] >= 300 and found["cpu_ms"] > 20, found
