"""Daemons and bridges that die and come back."""
from playwright.sync_api import expect

from browser import until
from servers import Pair

ENDLESS = ("--uid-resumable-bytes", "16G")


def test_a_daemon_that_is_killed_and_restarted(browser, build):
    pair = Pair(build, "scripted", keys=None, daemon=ENDLESS)
    visit = browser.visit(pair)
    visit.send("say forever.")
    visit.streams()
    pair.kill("daemon")
    expect(visit.page.locator("#banner")).to_contain_text("The daemon is away")
    expect(visit.last.get_by_role("alert")).not_to_be_empty(timeout=60000)
    visit.whole()
    assert "tick tock" in visit.answer_text()
    until("it is told to a screen reader", lambda: any("away" in text for text in visit.watched("told")))
    visit.write("say numbers.")
    expect(visit.last.get_by_role("alert")).not_to_be_empty(timeout=60000)
    visit.whole()
    pair.start_daemon()
    visit.ready()
    expect(visit.page.locator("#banner")).to_be_hidden()
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".body")).to_have_text("one two three four five six seven eight nine ten", timeout=20000)
    visit.whole()


def test_a_bridge_that_is_killed_and_restarted_has_forgotten_the_answer(browser, build):
    """Streams are kept in memory: the page says so, keeps what came, and works again."""
    pair = Pair(build, "scripted", keys=None, daemon=ENDLESS)
    visit = browser.visit(pair)
    visit.send("say forever.")
    visit.streams()
    until("the stream is stored", lambda: visit.stored()["messages"][-1].get("stream"))
    pair.kill("bridge")
    expect(visit.last.locator(".status")).to_contain_text("The connection is lost; trying again")
    expect(visit.page.locator("#banner")).to_contain_text("samovar-http does not answer")
    pair.start_bridge()
    visit.ready()
    expect(visit.last.get_by_role("alert")).to_contain_text("does not have this answer any more", timeout=30000)
    visit.whole()
    assert "tick tock" in visit.answer_text()
    assert visit.ask("say party.") == "left \U0001F389 right"


def test_a_page_that_is_opened_while_the_daemon_is_away(browser, build):
    pair = Pair(build, "scripted", keys=None)
    pair.kill("daemon")
    visit = browser.visit(pair, ready=False)
    expect(visit.page.locator("#banner")).to_contain_text("The daemon is away")
    visit.write("say hello.")
    expect(visit.last.get_by_role("alert")).not_to_be_empty(timeout=60000)
    pair.start_daemon()
    visit.ready()
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".body")).to_have_text("Hello there, how are you today?", timeout=20000)
