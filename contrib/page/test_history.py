"""The history in the browser: search, rename, delete, undo, export, import; also over two tabs."""
import json
import re

from playwright.sync_api import expect

from browser import until
from fake_server import say


def three_chats(browser, fake, size="desktop"):
    visit = browser.visit(fake, size)
    for question, said in (("Of tea", "Green and black."), ("Of coffee", "Dark roast."), ("Of water", "Still, not black.")):
        visit.history().get_by_role("button", name="New chat").click()
        fake.will(say(said))
        visit.ask(question)
    visit.history()
    until("three chats are listed", lambda: visit.chats() == ["Of water", "Of coffee", "Of tea"])
    return visit


def test_search_finds_titles_and_texts(browser, fake, size):
    visit = three_chats(browser, fake, size)
    search = visit.page.get_by_role("searchbox", name="Search chats")
    for words, titles in (("BLACK", ["Of water", "Of tea"]), ("coffee", ["Of coffee"]), ("nowhere", []), ("", ["Of water", "Of coffee", "Of tea"])):
        search.fill(words)
        until("the list follows %r" % words, lambda: visit.chats() == titles)
    search.fill("nowhere")
    expect(visit.page.get_by_text("Nothing found.")).to_be_visible()
    search.fill("dark roast")
    expect(visit.page.locator("#chats .chat-note")).to_contain_text("Dark roast.")
    visit.page.locator("#chats .chat-name").click()
    expect(visit.last.locator(".body")).to_have_text("Dark roast.")


def test_a_chat_is_renamed(browser, fake, size):
    visit = three_chats(browser, fake, size)
    visit.button("Rename Of tea").click()
    dialog = visit.page.get_by_role("dialog", name="Rename the chat")
    expect(dialog.get_by_role("textbox", name="Name")).to_be_focused()
    dialog.get_by_role("textbox", name="Name").fill("Of  herbs ")
    visit.page.keyboard.press("Enter")
    until("it has its new name", lambda: "Of herbs" in [re.sub(r"\s+", " ", each) for each in visit.chats()])
    visit.button("Rename Of water").click()
    visit.page.get_by_role("dialog").get_by_role("textbox").fill("Nothing")
    visit.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert "Of water" in visit.chats()


def test_a_chat_is_deleted_and_comes_back(browser, fake, size):
    visit = three_chats(browser, fake, size)
    before = plain(visit.stored())
    visit.button("Delete Of tea").click()
    visit.page.get_by_role("dialog", name="Delete the chat?").get_by_role("button", name="Delete").click()
    until("it is gone", lambda: visit.chats() == ["Of water", "Of coffee"])
    assert "Green" not in json.dumps(visit.stored())
    visit.button("Undo").click()
    until("it is back", lambda: sorted(visit.chats()) == ["Of coffee", "Of tea", "Of water"])
    assert plain(visit.stored()) == before


def plain(data):
    """Chats and messages without their numbers, and with the parents by text: what an export must carry."""
    texts = {message["id"]: message["text"] for message in data["messages"]}
    titles = {chat["id"]: chat["title"] for chat in data["chats"]}
    made = [{**{name: value for name, value in message.items() if value is not None and name not in ("id", "chat", "parent", "group")},
             "chat": titles[message["chat"]], "parent": texts.get(message["parent"]), "grouped": bool(message.get("group"))}
            for message in data["messages"]]
    chats = [{"title": chat["title"], "leaf": texts.get(chat["leaf"]), "settings": chat["settings"], "created": chat["created"]}
             for chat in data["chats"]]
    return {"messages": sorted(made, key=lambda each: json.dumps(each, sort_keys=True)),
            "chats": sorted(chats, key=lambda each: each["title"])}


def test_export_and_import_make_the_same_history(browser, fake, size):
    visit = three_chats(browser, fake, size)
    visit.page.locator("#chats .chat-name").last.click()
    expect(visit.last.locator(".body")).to_have_text("Green and black.")
    visit.settings().get_by_label("System prompt").fill("Be \u00e9l\u00e9gant \U0001F375")
    visit.settings().get_by_label("System prompt").press("Tab")
    visit.close_panel()
    fake.will(say("One more."))
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".body")).to_have_text("One more.")
    visit.whole()

    fake.will(*(say("answer %d \u202e" % index) for index in range(3)))
    visit.answers_wanted(3)
    visit.send("Several?")
    visit.whole()
    visit.history()
    data = visit.download(visit.button("Export all").click)
    assert len(data["chats"]) == 3
    before = plain(visit.stored())

    other = browser.visit(fake, size)
    assert other.stored() == {"chats": [], "messages": []}
    other.history()
    other.page.locator("#import-file").set_input_files(
        {"name": "chats.json", "mimeType": "application/json", "buffer": json.dumps(data).encode()})
    other.toast("3 chats imported")
    assert plain(other.stored()) == before
    again = other.download(other.button("Export all").click)
    strip = re.compile(r'"(id|chat|parent|leaf|group|titled|updated)": ("[0-9a-f]{24}"|true|null|\d+)')
    as_text = [sorted(strip.sub("", json.dumps(chat)) for chat in each["chats"]) for each in (data, again)]
    assert [len(each) for each in as_text] == [3, 3]
    assert plain(other.stored()) == before
    # Import twice: nothing is overwritten.
    other.page.locator("#import-file").set_input_files(
        {"name": "chats.json", "mimeType": "application/json", "buffer": json.dumps(again).encode()})
    until("six chats", lambda: len(other.chats()) == 6)


def test_a_single_chat_is_exported(browser, fake, size):
    visit = three_chats(browser, fake, size)
    visit.page.locator("#chats .chat-name").nth(1).click()
    expect(visit.last.locator(".body")).to_have_text("Dark roast.")
    data = visit.download(visit.button("Export this chat").click)
    assert [chat["title"] for chat in data["chats"]] == ["Of coffee"]
    assert [message["text"] for message in data["chats"][0]["messages"]] == ["Of coffee", "Dark roast."]


def test_the_chat_stays_after_a_reload(browser, fake, size):
    visit = three_chats(browser, fake, size)
    visit.page.locator("#chats .chat-name").last.click()
    expect(visit.last.locator(".body")).to_have_text("Green and black.")
    visit.page.reload()
    expect(visit.last.locator(".body")).to_have_text("Green and black.")
    expect(visit.page.get_by_role("heading", name="Of tea")).to_be_visible()


def test_two_tabs_see_what_the_other_does(browser, fake):
    first = three_chats(browser, fake)
    second = browser.visit(fake, context=first.page.context)
    until("the second lists them", lambda: len(second.chats()) == 3)
    second.page.locator("#chats .chat-name").last.click()
    expect(second.last.locator(".body")).to_have_text("Green and black.")
    first.button("Rename Of tea").click()
    first.page.get_by_role("dialog").get_by_role("textbox").fill("Of herbs")
    first.page.keyboard.press("Enter")
    until("the second has the name", lambda: "Of herbs" in second.chats())
    expect(second.page.get_by_role("heading", name="Of herbs")).to_be_visible()
    first.button("Delete Of herbs").click()
    first.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    second.toast("deleted in another tab")
    until("it left the list", lambda: second.chats() == ["Of water", "Of coffee"])
    second.ask("New?")
    until("the first lists it", lambda: first.chats()[0] == "New?")


def test_two_tabs_that_write_at_once_lose_nothing(browser, fake):
    first = browser.visit(fake)
    fake.will(say("Zero."))
    first.ask("Of all")
    second = browser.visit(fake, context=first.page.context)
    second.page.locator("#chats .chat-name").first.click()
    expect(second.last.locator(".body")).to_have_text("Zero.")
    fake.will(say("For first or second."), say("For second or first."))
    first.write("From the first")
    second.write("From the second")
    until("all is stored", lambda: sorted(message["text"] for message in first.stored()["messages"]) == sorted(
        ["Of all", "Zero.", "From the first", "From the second", "For first or second.", "For second or first."]))
    first.page.reload()
    first.button("Tree of branches").click()
    expect(first.page.get_by_role("treeitem")).to_have_count(6)


def test_a_message_is_deleted_with_what_follows(browser, fake, size):
    visit = browser.visit(fake, size)
    fake.will(say("One."), say("Two."))
    visit.ask("First")
    visit.ask("Second")
    visit.answers.first.get_by_role("button", name="Delete message").click()
    dialog = visit.page.get_by_role("dialog", name="Delete the message?")
    assert "follows" in dialog.inner_text()
    dialog.get_by_role("button", name="Delete").click()
    expect(visit.messages).to_have_count(1)
    until("it is stored", lambda: [message["text"] for message in visit.stored()["messages"]] == ["First"])
