"""The tab Live: with a daemon that does what the test wants, and with the real one."""
import re

from playwright.sync_api import expect

from browser import Skip, until
from servers import KEYS
from states import live_data


def open_live(browser, fake, size="desktop"):
    live_data(fake)
    visit = browser.visit(fake, size)
    visit.page.get_by_role("tab", name="Live").click()
    expect(visit.button("End sequence 41")).to_be_visible()
    return visit


def test_the_map_shows_state_sharing_and_user(browser, fake, size):
    visit = open_live(browser, fake, size)
    totals = visit.page.get_by_role("list", name="Totals of the pool")
    picture = visit.page.get_by_role("img", name=re.compile("^Map of the block pool"))
    for mode, words in (("State", ["Free: 295", "Cached: 30", "In use: 60", "Pinned: 10", "Of other users: 5"]),
                        ("Sharing", ["Used by one: ", "Shared by 3 or 4: 20"]),
                        ("User", ["anna: 60", "uid 0: 10"])):
        visit.page.get_by_role("combobox", name="Colour by").select_option(mode)
        for each in words:
            expect(totals).to_contain_text(each)
            expect(picture).to_have_accessible_name(re.compile(each.replace(":", "").strip()))
    picture.focus()
    for key in ("ArrowRight", "ArrowRight"):
        visit.page.keyboard.press(key)
    expect(visit.page.locator(".map-detail")).to_have_text("Block 2: in use, used by 1 sequence, of anna (you)")
    colours = picture.evaluate("""(canvas) => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
        for (let at = 0; at < data.length; at += 4) if (data[at + 3]) found.add(data.slice(at, at + 3).join());
        return found.size;
    }""")
    assert colours >= 3, colours


def test_sequences_users_figures_and_the_model_are_shown(browser, fake, size):
    visit = open_live(browser, fake, size)
    region = lambda name: visit.page.get_by_role("region", name=name, exact=True)     # noqa: E731
    for words in ("41", "anna", "normal", "running", "33 %", "waiting: slot"):
        expect(region("Sequences")).to_contain_text(words)
    expect(region("Handles")).to_contain_text("88")
    expect(region("Users")).to_contain_text("anna")
    expect(region("Users")).to_contain_text("1,234")
    for words in ("scripted", "llama", "F32", "1,048,576 tokens"):
        expect(region("Model")).to_contain_text(words)
    expect(region("Now")).to_contain_text("Pool in use")
    expect(visit.page.get_by_role("img", name=re.compile("^Tokens per second: Generated"))).to_be_visible()
    expect(visit.page.get_by_role("img", name=re.compile("^Latency: First token"))).to_be_visible()


def test_a_sequence_and_a_handle_are_ended(browser, fake, size):
    visit = open_live(browser, fake, size)
    for what, number in (("sequence", 41), ("handle", 7)):
        visit.button("End %s %d" % (what, number)).click()
        dialog = visit.page.get_by_role("dialog", name="End %s %d?" % (what, number))
        dialog.get_by_role("button", name="End it").click()
        until("it is asked for", lambda: fake.count("DELETE", "/samovar/work/%d" % number) == 1)
    visit.button("End sequence 42").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert fake.count("DELETE", "/samovar/work/42") == 0


def test_the_focus_stays_while_the_figures_change(browser, fake):
    visit = open_live(browser, fake)
    visit.button("End sequence 42").focus()
    asked = fake.count("GET", "/samovar/work")
    until("it is asked again, twice", lambda: fake.count("GET", "/samovar/work") > asked + 2)
    expect(visit.button("End sequence 42")).to_be_focused()


def test_nothing_is_asked_while_the_tab_is_not_seen(browser, fake):
    visit = open_live(browser, fake)
    visit.page.get_by_role("tab", name="Chat").click()
    visit.page.wait_for_timeout(1200)
    asked = fake.count("GET", "/samovar/pool")
    visit.page.wait_for_timeout(1500)
    assert fake.count("GET", "/samovar/pool") == asked


def test_what_a_user_may_not_see_is_said(browser, fake):
    live_data(fake)
    status = dict(fake.routes["GET /samovar/status"])
    for name in ("rates", "latency", "users"):
        status.pop(name, None)
    fake.routes["GET /samovar/status"] = status
    fake.routes["GET /samovar/work"] = lambda stream, body: stream.json(503, {"error": {"message": "the daemon is away"}})
    del fake.routes["GET /samovar/pool"]
    visit = browser.visit(fake)
    visit.page.get_by_role("tab", name="Live").click()
    expect(visit.page.get_by_role("region", name="Latency")).to_contain_text("owner")
    expect(visit.page.get_by_role("region", name="Sequences")).to_contain_text("the daemon is away")
    expect(visit.page.get_by_role("region", name="Block pool")).to_contain_text("does not tell it")


def test_a_pool_that_comes_in_parts_is_shown_whole(browser, fake):
    live_data(fake)
    half = {"blocks": 400, "positions": 16, "all_users": True, "users": [{"uid": 0, "principal": "", "own": True}]}

    def pool(stream, body):
        at = int((re.search(r"from=(\d+)", stream.handler.path) or [0, 0])[1])
        return stream.json(200, {**half, "from": at, "next": min(400, at + 200), "runs": [[100, 2, 1, 0], [100, 1, 0, -1]]})
    fake.routes["GET /samovar/pool"] = pool
    visit = browser.visit(fake)
    visit.page.get_by_role("tab", name="Live").click()
    totals = visit.page.get_by_role("list", name="Totals of the pool")
    expect(totals).to_contain_text("In use: 200")
    expect(totals).to_contain_text("Cached: 200")


def needs_live(pair):
    if pair.server().get("/samovar/pool").status == 404:
        raise Skip("this samovar-http has no /samovar/pool")


def test_the_work_of_a_real_daemon_is_seen(browser, scripted, size):
    needs_live(scripted)
    chat = browser.visit(scripted)
    chat.send("say forever.")
    chat.streams()
    visit = browser.visit(scripted, size, path="/#live")
    visit.page.get_by_role("tab", name="Live").click()
    end = visit.page.get_by_role("button", name=re.compile("^End sequence"))
    expect(end).to_have_count(1)
    totals = visit.page.get_by_role("list", name="Totals of the pool")
    expect(totals).to_contain_text(re.compile(r"In use: [1-9]"))
    expect(visit.page.get_by_role("region", name="Now")).to_contain_text(re.compile(r"Running\s*1(?!\d)"))
    until("the curve has a rate", lambda: re.search(r"Generated [1-9]", visit.page.get_by_role(
        "img", name=re.compile("^Tokens per second")).get_attribute("aria-label")))
    end.click()
    visit.page.get_by_role("dialog").get_by_role("button", name="End it").click()
    scripted.until_idle()
    expect(end).to_have_count(0)
    chat.whole()


def test_a_user_sees_only_its_own_blocks(browser, keyed):
    needs_live(keyed)
    for number, key in enumerate(KEYS):
        visit = browser.visit(keyed, ready=False)
        visit.page.get_by_role("dialog").get_by_role("textbox").fill(key)
        visit.page.keyboard.press("Enter")
        visit.ready()
        if number == 0:
            visit.send("say forever.")
            visit.streams()
            anna = visit
        visit.page.get_by_role("tab", name="Live").click()
        ends = visit.page.get_by_role("button", name=re.compile("^End sequence"))
        expect(ends).to_have_count(1 - number)
        expect(visit.page.get_by_role("list", name="Totals of the pool")).to_contain_text(
            re.compile(r"In use: [1-9]" if number == 0 else r"Of other users: [1-9]"))
    anna.page.get_by_role("tab", name="Chat").click()
    anna.button("Stop").click()
    anna.whole()
    keyed.until_idle()
