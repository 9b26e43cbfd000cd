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


def test_an_answer_goes_on_after_a_reload(browser, scripted, size):
    visit = browser.visit(scripted, size)
    visit.write("say forever.")
    visit.streams()
    until("a piece is stored", lambda: any(message.get("stream") for message in visit.stored()["messages"]))
    visit.page.reload()
    visit.ready()
    visit.streams()
    before = len(visit.answer_text())
    until("the text grows", lambda: len(visit.answer_text()) > before)
    assert scripted.alive() == 1
    visit.button("Stop").click()
    visit.whole()
    scripted.until_idle()
    without_a_gap(visit.stored()["messages"][-1]["text"])


def without_a_gap(text):
    """Nothing is missing of "say forever.", and nothing came twice."""
    words = text.split()
    assert words[0] == "start"
    cycle = ["tick", "tock", "tack", "tuck"]
    wrong = [at for at, word in enumerate(words[1:-1]) if word != cycle[at % 4]]
    assert not wrong, "after word %d: %s" % (wrong[0], words[wrong[0] - 3:wrong[0] + 5])


def test_answers_side_by_side_go_on_after_a_reload(browser, scripted, size):
    visit = browser.visit(scripted, size)
    visit.answers_wanted(3)
    visit.write("say forever.")
    cards = visit.page.get_by_role("group", name="3 answers side by side").get_by_role("article")
    texts = cards.locator(".body").all_inner_texts
    until("all answers have begun", lambda: len(texts()) == 3 and all("tock" in text for text in texts()))
    until("all streams are stored", lambda: sum(1 for message in visit.stored()["messages"]
                                                if message.get("stream")) == 3)
    visit.page.reload()
    visit.ready()
    until("all answers are read", lambda: len(texts()) == 3 and all("tock" in text for text in texts()))
    before = [len(text) for text in texts()]
    until("all texts grow", lambda: all(len(text) > old for text, old in zip(texts(), before)))
    assert scripted.alive() == 3
    visit.button("Stop").click()
    visit.whole()
    scripted.until_idle()
    for message in visit.stored()["messages"]:
        if message["role"] == "assistant":
            without_a_gap(message["text"])


def test_an_answer_that_ended_while_the_page_was_away_is_there(browser, scripted):
    visit = browser.visit(scripted)
    scripted.pause("daemon")
    visit.write("say numbers.")
    expect(visit.last.locator(".status")).to_contain_text("Waiting")
    scripted.go_on("daemon")
    until("the stream is stored", lambda: any(message.get("stream") or message["state"] == "done" for message
                                              in visit.stored()["messages"] if message["role"] == "assistant"))
    visit.page.goto("about:blank")
    scripted.until_idle()
    visit.page.goto(visit.url)
    visit.ready()
    visit.whole()
    assert visit.answer_text().endswith("eight nine ten")


def test_branches_read_the_prompt_once(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    long = "Here is a list. " + " ".join("Item %d is a kind of tea." % i for i in range(60))
    visit.ask(long)
    before = teaspoon.status()["tokens_in"]
    visit.answers_wanted(4)
    visit.write("What is two plus three?")
    group = visit.page.get_by_role("group", name="4 answers side by side")
    expect(group.get_by_role("article")).to_have_count(4)
    visit.whole()
    read = teaspoon.status()["tokens_in"] - before
    prompt = visit.stored()["messages"][-1]["stats"]["prompt"]
    assert prompt > 400 and read < prompt, "the prompt has %d tokens; %d were read" % (prompt, read)
    assert re.search(r"tokens in 4 answers.*, (9\d|100) % cached", group.locator(".status").first.inner_text())
    return "prompt of %d tokens for 4 answers: %d were read" % (prompt, read)


def test_regenerate_finds_the_prompt_in_the_cache(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    visit.ask("What is two plus three?")
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".place")).to_have_text("2/2")
    visit.whole()
    assert re.search(r"prompt \d+, (9\d|100) % cached", visit.last.locator(".status").inner_text())
    assert "five" in visit.answer_text().lower()


def test_continue_completes_an_answer_that_was_cut(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    panel = visit.settings()
    panel.get_by_label("Temperature").fill("0")
    panel.get_by_label("Most tokens").fill("3")
    panel.get_by_label("Most tokens").press("Tab")
    visit.close_panel()
    cut = visit.ask("What is two plus three?")
    assert "reached the token limit" in visit.last.locator(".status").inner_text()
    panel = visit.settings()
    panel.get_by_label("Most tokens").fill("")
    panel.get_by_label("Most tokens").press("Tab")
    visit.close_panel()
    visit.last.get_by_role("button", name="Continue").click()
    expect(visit.last.locator(".body")).not_to_have_text(cut)
    visit.whole()
    whole = visit.answer_text()
    assert whole.startswith(cut) and whole == "Two plus three is five.", (cut, whole)
    expect(visit.answers).to_have_count(1)


def test_edit_and_resend_makes_a_branch(browser, scripted, size):
    visit = browser.visit(scripted, size)
    visit.ask("say hello.")
    user = visit.page.locator("article.user")
    user.get_by_role("button", name="Edit", exact=True).click()
    visit.page.get_by_role("textbox", name="Edit message").fill("say party.")
    visit.page.keyboard.press("Enter")
    expect(user.locator(".body")).to_have_text("say party.")
    visit.whole()
    assert visit.answer_text() == "left \U0001F389 right"
    assert user.locator(".place").inner_text() == "2/2"
    user.get_by_role("button", name="Previous branch").click()
    expect(user.locator(".body")).to_have_text("say hello.")
    assert visit.answer_text() == "Hello there, how are you today?"
    visit.page.reload()
    expect(user.locator(".body")).to_have_text("say hello.")


def test_an_answer_that_a_person_has_edited_is_sent(browser, scripted):
    visit = browser.visit(scripted)
    visit.ask("say hello.")
    visit.last.get_by_role("button", name="Edit", exact=True).click()
    visit.page.get_by_role("textbox", name="Edit message").fill("I am a teapot.")
    visit.button("Save as a branch").click()
    expect(visit.last.locator(".body")).to_have_text("I am a teapot.")
    visit.ask("say numbers.")
    assert [message["text"] for message in visit.stored()["messages"] if message["role"] == "assistant"] == [
        "Hello there, how are you today?", "I am a teapot.", "one two three four five six seven eight nine ten"]


def test_a_schema_is_enforced_and_its_result_checked(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    panel = visit.settings()
    panel.get_by_text("Answer format").click()
    panel.get_by_label("JSON schema", exact=True).fill("{oops")
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    expect(panel.get_by_role("alert")).to_contain_text("the schema is not JSON")
    panel.get_by_label("JSON schema", exact=True).fill(
        '{"type": "object", "properties": {"sum": {"type": "integer", "maximum": 9}, "word": {"enum": ["five", "six"]}},'
        ' "required": ["sum", "word"], "additionalProperties": false}')
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    expect(panel.get_by_role("alert")).to_have_count(0)
    panel.get_by_label("Answers follow this schema").check()
    visit.close_panel()
    visit.ask("What is two plus three?")
    expect(visit.last.locator(".verdict")).to_have_text("Valid JSON, follows the schema")
    assert re.search(r'"word": "(five|six)"', visit.last.locator(".result pre").inner_text())


def test_a_click_that_ends_the_writing_of_a_schema_is_not_lost(browser, fake, size):
    """The words about a wrong schema vanish when the field loses the focus; nothing may jump then."""
    visit = browser.visit(fake, size)
    panel = visit.settings()
    panel.get_by_text("Answer format").click()
    panel.get_by_label("JSON schema", exact=True).fill("{oops")
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    expect(panel.get_by_role("alert")).to_contain_text("the schema is not JSON")
    panel.get_by_label("JSON schema", exact=True).fill("{}")
    panel.get_by_label("Answers follow this schema").check()


def test_token_probabilities_and_a_branch_at_a_token(browser, teaspoon, size):
    visit = browser.visit(teaspoon, size)
    panel = visit.settings()
    panel.get_by_text("Token probabilities", exact=True).click()
    panel.get_by_label("Ask for the probabilities of tokens").check()
    panel.get_by_label("Alternatives of each token").fill("4")
    panel.get_by_label("Alternatives of each token").press("Tab")
    visit.close_panel()
    said = visit.ask("What is two plus three?")
    visit.last.get_by_role("button", name="Token probabilities").click()
    tokens = visit.last.get_by_role("listbox", name="Tokens of the answer")
    expect(tokens.get_by_role("option")).not_to_have_count(0)
    assert tokens.inner_text() == said
    tokens.focus()
    tokens.press("ArrowRight")
    tokens.press("ArrowRight")
    detail = visit.last.locator(".token-detail")
    expect(detail.get_by_role("listitem")).to_have_count(4)
    assert re.search(r"\d+\.\d %", detail.inner_text())
    if size == "desktop":
        tokens.get_by_role("option").nth(3).hover()
        expect(tokens.get_by_role("option").nth(3)).to_have_attribute("aria-selected", "true")
    branch = detail.get_by_role("button", name=re.compile("^Branch with")).first
    word = branch.get_attribute("aria-label").removeprefix("Branch with ").replace("\u2423", " ")
    branch.click()
    expect(visit.last.locator(".place")).to_have_text("2/2")
    visit.whole()
    assert visit.answer_text().replace("\n", " ").find(word.strip()) >= 0, (word, visit.answer_text())


def test_a_character_in_two_tokens_is_whole(browser, scripted):
    visit = browser.visit(scripted)
    assert visit.ask("say emoji.") == "Ya\u00e7 \U0001F600 na\u00efve \u6f22\u5b57 \U0001F469\u200D\U0001F680 end."


def test_reasoning_is_folded_and_timed(browser, scripted, size):
    visit = browser.visit(scripted, size)
    assert visit.ask("say thought.") == "The answer is four."
    fold = visit.last.locator("details.reasoning")
    expect(fold).not_to_have_attribute("open", "")
    assert re.match(r"Thought for [\d.]+ m?s$", fold.locator("summary").inner_text())
    fold.locator("summary").press("Enter")
    expect(fold.get_by_text("Two and two make four.")).to_be_visible()


def test_tool_calls_are_answered_by_hand(browser, scripted, size):
    visit = browser.visit(scripted, size)
    panel = visit.settings()
    panel.get_by_text("Tools", exact=True).click()
    panel.get_by_label("Tools, as JSON").fill(
        '[{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]')
    panel.get_by_label("Tools, as JSON").press("Tab")
    visit.close_panel()
    visit.ask("say calls.")
    regions = visit.page.get_by_role("region", name=re.compile("^Tool call"))
    expect(regions).to_have_count(3)
    expect(regions.nth(1)).to_contain_text('"city": "Turin"')
    for at, sky in enumerate(("snow", "sun", "fog")):
        visit.page.get_by_label("Result of call %d" % (at + 1)).fill(sky)
    visit.button("Send results").click()
    expect(visit.last.locator(".body")).to_have_text("It is done, thank you.")
    visit.whole()
    results = visit.page.get_by_role("article", name="Tool result")
    assert results.locator(".body").all_inner_texts() == ["snow", "sun", "fog"]


def test_two_tabs_show_the_same_answer_and_each_can_stop_it(browser, scripted):
    first = browser.visit(scripted)
    first.write("say forever.")
    first.streams()
    second = browser.visit(scripted, context=first.page.context)
    second.history().get_by_role("button", name="say forever.", exact=False).first.click()
    second.streams()
    assert "another tab" in second.last.locator(".status").inner_text()
    before = len(second.answer_text())
    until("the text grows in the second tab", lambda: len(second.answer_text()) > before)
    second.button("Stop").click()
    first.whole()
    second.whole()
    scripted.until_idle()
    until("both tabs show the same", lambda: first.answer_text() == second.answer_text())


def test_a_tab_at_the_end_follows_what_another_tab_adds(browser, scripted):
    first = browser.visit(scripted)
    first.ask("say hello.")
    second = browser.visit(scripted, context=first.page.context)
    second.history().get_by_role("button", name="say hello.", exact=False).first.click()
    expect(second.last.locator(".body")).to_have_text("Hello there, how are you today?")
    first.ask("say numbers.")
    expect(second.last.locator(".body")).to_have_text("one two three four five six seven eight nine ten")


def test_the_answer_of_a_closed_tab_goes_on_in_another(browser, scripted):
    first = browser.visit(scripted)
    first.write("say forever.")
    first.streams()
    second = browser.visit(scripted, context=first.page.context)
    second.history().get_by_role("button", name="say forever.", exact=False).first.click()
    second.streams()
    first.page.close()
    browser.visits.remove(first)
    expect(second.last.locator(".status")).to_contain_text("tokens/s", timeout=30000)
    second.button("Stop").click()
    second.whole()
    scripted.until_idle()


def test_a_chat_that_is_deleted_while_it_is_answered_frees_its_slot(browser, scripted):
    visit = browser.visit(scripted)
    visit.write("say forever.")
    visit.streams()
    visit.history().get_by_role("button", name="Delete say forever.").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    visit.toast("The chat is deleted")
    scripted.until_idle()
    assert visit.stored() == {"chats": [], "messages": []}
