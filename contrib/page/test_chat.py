"""Chats with the real daemon: samovard behind samovar-http."""
import re

from playwright.sync_api import expect

from browser import until


def test_an_answer_streams_and_says_how_fast(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    said = visit.ask("What is two plus three?")
    assert "five" in said.lower(), said
    status = visit.last.locator(".status").inner_text()
    for words in (r"\d+ tokens", r"tokens/s", r"first after", r"prompt \d+, \d+ % cached"):
        assert re.search(words, status), status
    expect(visit.page.get_by_role("heading", name="What is two plus three?")).to_be_visible()
    until("the end is told to a screen reader",
          lambda: any("complete" in text for text in visit.watched("told")))


def test_stop_frees_the_slot_and_keeps_the_text(browser, scripted, size):
    visit = browser.visit(scripted, size)
    visit.write("say forever.")
    visit.streams()
    assert scripted.alive() == 1
    visit.button("Stop").click()
    visit.whole()
    scripted.until_idle()
    assert "tick tock" in visit.answer_text()
    assert "Stopped" in visit.last.locator(".status").inner_text()


def test_escape_stops_and_the_next_question_is_answered(browser, scripted):
    visit = browser.visit(scripted)
    visit.write("say forever.")
    visit.streams()
    visit.page.keyboard.press("Escape")
    visit.whole()
    scripted.until_idle()
    assert visit.ask("say numbers.") == "one two three four five six seven eight nine ten"


def test_a_stop_before_the_first_piece_frees_the_slot(browser, scripted):
    visit = browser.visit(scripted)
    scripted.pause("daemon")
    try:
        visit.write("say forever.")
        expect(visit.last.locator(".status")).to_contain_text("Waiting")
        visit.button("Stop").click()
    finally:
        scripted.go_on("daemon")
    visit.whole()
    scripted.until_idle()
