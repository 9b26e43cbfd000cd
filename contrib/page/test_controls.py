"""Controls whose effect no other test shows, at the width of a desktop and of a phone; and the shortcuts."""
import re
import threading

from playwright.sync_api import expect

from browser import SIZES, until
from fake_server import MODEL, say, think

CODE = "Look:\n\n```python\nprint('tea')\n```\n\n" + "```\n" + "".join("line %d\n" % at for at in range(700)) + "```\n"


def allow_clipboard(visit):
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])


def clipboard(visit):
    return visit.page.evaluate("navigator.clipboard.readText()")


def test_the_first_tab_skips_to_the_message(browser, fake, size):
    visit = browser.visit(fake, size)
    skip = visit.page.get_by_role("link", name="Skip to the message")
    assert skip.bounding_box()["x"] < 0
    # On a desktop the field has the focus at first, and what lies before it is reached backwards.
    for _ in range(60):
        visit.page.keyboard.press("Shift+Tab" if size == "desktop" else "Tab")
        if skip.evaluate("(link) => link === document.activeElement"):
            break
    expect(skip).to_be_focused()
    assert skip.bounding_box()["x"] >= 0
    assert visit.page.evaluate("document.querySelector('a, button, input, select, textarea').className") == "skip"
    visit.page.keyboard.press("Enter")
    expect(visit.input).to_be_focused()


def test_the_history_opens_and_closes(browser, fake, size):
    visit = browser.visit(fake, size)
    panel = visit.page.get_by_role("navigation", name="History")
    opened = size == "desktop"
    for _ in range(2):
        expect(panel).to_be_visible(visible=opened)
        expect(visit.button("History")).to_have_attribute("aria-expanded", "true" if opened else "false")
        visit.button("History").press("Enter")
        opened = not opened
    if size == "phone":
        visit.button("History").click()
        visit.page.keyboard.press("Escape")
        expect(panel).to_be_hidden()


def test_the_tabs_change_the_view(browser, fake, size):
    visit = browser.visit(fake, size)
    chat, live = visit.page.get_by_role("tab", name="Chat"), visit.page.get_by_role("tab", name="Live")
    live.click()
    expect(visit.page.get_by_role("tabpanel", name="Live")).to_be_visible()
    expect(visit.input).to_be_hidden()
    live.press("ArrowLeft")
    expect(chat).to_be_focused()
    expect(chat).to_have_attribute("aria-selected", "true")
    expect(visit.input).to_be_visible()
    chat.press("ArrowRight")
    expect(visit.page.get_by_role("tabpanel", name="Live")).to_be_visible()
    visit.page.reload()
    expect(visit.page.get_by_role("tabpanel", name="Live")).to_be_visible()


def test_another_model_is_asked(browser, fake, size):
    fake.routes["GET /v1/models"] = {"object": "list", "data": [MODEL, {**MODEL, "id": "other"}]}
    visit = browser.visit(fake, size)
    visit.page.get_by_role("combobox", name="Model").select_option("other")
    visit.ask("Hi")
    assert fake.chats()[-1]["model"] == "other"


def test_the_theme_is_light_dark_or_automatic(browser, fake, size):
    visit = browser.visit(fake, size, color_scheme="dark")
    dark = "(s) => getComputedStyle(document.documentElement).colorScheme"
    button = visit.page.get_by_role("button", name=re.compile("^Theme"))
    for name, scheme in (("automatic", "dark"), ("light", "light"), ("dark", "dark"), ("automatic", "dark")):
        expect(button).to_have_accessible_name("Theme: " + name)
        assert visit.page.evaluate(dark) == scheme, name
        button.click()
    # It stays, in other tabs as well.
    other = browser.visit(fake, size, context=visit.page.context)
    expect(other.page.get_by_role("button", name="Theme: light")).to_be_visible()


def test_the_shortcuts_are_listed(browser, fake, size):
    visit = browser.visit(fake, size)
    dialog = visit.page.get_by_role("dialog", name="Keyboard shortcuts")
    if size == "desktop":
        visit.button("Keyboard shortcuts").click()
    else:                           # few phones have a keyboard: there is no button, but the key
        visit.page.keyboard.press("?")
    expect(dialog.get_by_text("Alt+N")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    visit.page.evaluate("() => { document.activeElement.blur(); }")
    visit.page.keyboard.press("?")
    expect(dialog).to_be_visible()


def test_a_new_chat_is_empty(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    visit.history().get_by_role("button", name="New chat").click()
    expect(visit.messages).to_have_count(0)
    expect(visit.input).to_be_focused()
    expect(visit.page.get_by_text("Ask the model on this machine")).to_be_visible()
    visit.ask("Ho")
    assert [message["content"] for message in fake.chats()[-1]["messages"]] == ["Ho"]


def test_import_asks_for_a_file(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.history()
    with visit.page.expect_file_chooser() as chooser:
        visit.button("Import").click()
    assert not chooser.value.is_multiple()
    chooser.value.set_files({"name": "x.json", "mimeType": "application/json", "buffer": b"{}"})
    visit.toast("Not imported: the file is not an export of this page")


def test_attach_asks_for_files(browser, fake, size):
    visit = browser.visit(fake, size)
    with visit.page.expect_file_chooser() as chooser:
        visit.button("Attach text files").click()
    assert chooser.value.is_multiple()
    chooser.value.set_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"tea"})
    expect(visit.page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(1)


def test_files_are_dropped_and_pasted(browser, fake):
    visit = browser.visit(fake)
    for kind in ("drop", "paste"):
        visit.input.evaluate("""(input, kind) => {
            const data = new DataTransfer();
            data.items.add(new File(['tea'], `${kind}.txt`, { type: 'text/plain' }));
            input.dispatchEvent(kind === 'drop' ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
                                                : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        }""", kind)
    files = visit.page.get_by_role("list", name="Attached files").get_by_role("listitem")
    expect(files).to_have_count(2)
    assert visit.page.url.startswith(fake.url)


def test_an_example_fills_the_field(browser, fake, size):
    visit = browser.visit(fake, size)
    example = visit.page.get_by_role("group", name="Examples").get_by_role("button").first
    words = example.inner_text()
    example.click()
    expect(visit.input).to_have_value(words)
    expect(visit.input).to_be_focused()


def test_enter_sends_and_shift_enter_is_a_new_line(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.input.press_sequentially("one")
    visit.input.press("Shift+Enter")
    visit.input.press_sequentially("two")
    height = visit.input.bounding_box()["height"]
    visit.input.press("Enter")
    visit.whole()
    until("it was asked", lambda: fake.chats())
    assert fake.chats()[-1]["messages"][0]["content"] == "one\ntwo"
    expect(visit.input).to_have_value("")
    assert visit.input.bounding_box()["height"] < height
    visit.input.press("Enter")
    visit.input.fill("   ")
    visit.input.press("Enter")
    assert len(fake.chats()) == 1


def test_the_send_button_sends(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.input.fill("Hi")
    visit.button("Send").click()
    expect(visit.last.locator(".body")).to_have_text("Hello.")


def test_an_edit_can_be_cancelled(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    user = visit.page.locator("article.user")
    for way in ("button", "Escape"):
        user.get_by_role("button", name="Edit", exact=True).click()
        visit.page.get_by_role("textbox", name="Edit message").fill("changed")
        visit.button("Cancel").click() if way == "button" else visit.page.keyboard.press("Escape")
        expect(user.locator(".body")).to_have_text("Hi")
        expect(visit.page.get_by_role("textbox", name="Edit message")).to_have_count(0)
    assert len(fake.chats()) == 1


def test_an_edit_is_sent_by_its_button(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    visit.page.locator("article.user").get_by_role("button", name="Edit", exact=True).click()
    visit.page.get_by_role("textbox", name="Edit message").fill("Ho")
    fake.will(say("Second."))
    visit.button("Send as a branch").click()
    expect(visit.last.locator(".body")).to_have_text("Second.")
    assert fake.chats()[-1]["messages"] == [{"role": "user", "content": "Ho"}]


def test_settings_are_kept_for_new_chats(browser, fake, size):
    visit = browser.visit(fake, size)
    panel = visit.settings()
    panel.get_by_label("Temperature").fill("0.125")
    panel.get_by_role("button", name=re.compile("Keep as defaults|Use for new chats")).click()
    visit.close_panel()
    visit.history().get_by_role("button", name="New chat").click()
    visit.ask("Hi")
    assert fake.chats()[-1]["temperature"] == 0.125
    other = browser.visit(fake, size, context=visit.page.context)
    other.ask("Hi")
    assert fake.chats()[-1]["temperature"] == 0.125


def test_the_tree_leads_to_each_message(browser, fake, size):
    visit = browser.visit(fake, size)
    fake.will(say("First."), say("Second."), say("Third."))
    visit.ask("Hi")
    visit.last.get_by_role("button", name="Regenerate").click()
    expect(visit.last.locator(".body")).to_have_text("Second.")
    visit.whole()
    visit.ask("On")
    visit.button("Tree of branches").click()
    tree = visit.page.get_by_role("tree", name="Branches of the conversation")
    items = tree.get_by_role("treeitem")
    expect(items).to_have_count(5)
    assert [(item.get_attribute("aria-level"), item.get_attribute("aria-label")) for item in items.all()] == [
        ("1", "You: Hi"), ("2", "Answer: First."), ("2", "Answer: Second."), ("3", "You: On"), ("4", "Answer: Third.")]
    expect(items.nth(4)).to_have_attribute("aria-selected", "true")
    items.nth(4).focus()
    for key, at in (("Home", 0), ("ArrowDown", 1), ("End", 4), ("ArrowUp", 3), ("Home", 0), ("ArrowDown", 1)):
        visit.page.keyboard.press(key)
        expect(items.nth(at)).to_be_focused()
    visit.page.keyboard.press("Enter")
    expect(visit.last.locator(".body")).to_have_text("First.")
    expect(visit.messages).to_have_count(2)
    if size == "phone":
        expect(tree).to_be_hidden()
        visit.button("Tree of branches").click()
    items.nth(4).click()
    expect(visit.last.locator(".body")).to_have_text("Third.")
    if visit.page.locator("#side").is_visible():
        visit.button("Close tree").click()
    expect(tree).to_have_count(0)


def test_a_branch_from_here_and_back_to_the_end(browser, fake, size):
    visit = browser.visit(fake, size)
    fake.will(say("One."), say("Two."), say("Other."))
    visit.ask("First")
    visit.ask("Second")
    visit.answers.first.get_by_role("button", name="Branch from here").click()
    expect(visit.messages).to_have_count(2)
    expect(visit.page.get_by_text("The next message begins a branch here.")).to_be_visible()
    visit.button("Go back to the end").click()
    expect(visit.messages).to_have_count(4)
    visit.answers.first.get_by_role("button", name="Branch from here").click()
    visit.ask("Third")
    assert [message["content"] for message in fake.chats()[-1]["messages"]] == ["First", "One.", "Third"]
    assert visit.page.locator("article.user").last.locator(".place").inner_text() == "2/2"


def test_a_branch_from_a_question_is_answered(browser, fake, size):
    visit = browser.visit(fake, size)
    fake.will(say("One."), say("Two."))
    visit.ask("First")
    visit.page.locator("article.user").get_by_role("button", name="Branch from here").click()
    expect(visit.messages).to_have_count(1)
    visit.button("Answer").click()
    expect(visit.last.locator(".body")).to_have_text("Two.")
    assert fake.chats()[-1]["messages"] == [{"role": "user", "content": "First"}]
    expect(visit.last.locator(".place")).to_have_text("2/2")


def test_a_long_question_is_folded(browser, fake, size):
    visit = browser.visit(fake, size)
    text = "\n".join("line %d" % at for at in range(6000))
    visit.ask(text)
    assert fake.chats()[-1]["messages"][0]["content"] == text
    user = visit.page.locator("article.user")
    assert "line 5999" not in user.locator(".body").inner_text()
    user.get_by_role("button", name="Show all %s characters" % format(len(text), ",")).click()
    expect(user.locator(".body")).to_contain_text("line 5999")


def test_jump_to_the_end(browser, fake, size):
    fake.will(say("line\n\n" * 200))
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    scroll = visit.page.locator("#scroll")
    from_end = "(box) => box.scrollHeight - box.scrollTop - box.clientHeight"
    until("the view follows its end", lambda: scroll.evaluate(from_end) < 5)
    expect(visit.button("Jump to the end")).to_be_hidden()
    scroll.evaluate("(box) => { box.scrollTop = 0; }")
    visit.button("Jump to the end").click()
    until("the view is at its end", lambda: scroll.evaluate(from_end) < 5)
    expect(visit.button("Jump to the end")).to_be_hidden()


def test_a_view_that_a_person_has_moved_stays(browser, fake):
    go_on = threading.Event()

    def answer(stream, body):
        stream.delta(content="line\n\n" * 200)
        go_on.wait(20)
        stream.delta(content="line\n\n" * 200)
        stream.end()
    fake.will(answer)
    visit = browser.visit(fake)
    visit.send("Hi")
    expect(visit.last.locator(".body p")).to_have_count(200)
    scroll = visit.page.locator("#scroll")
    scroll.evaluate("(box) => { box.scrollTop = 100; }")
    visit.drawn()
    go_on.set()
    visit.whole()
    expect(visit.last.locator(".body p")).to_have_count(400)
    assert abs(scroll.evaluate("(box) => box.scrollTop") - 100) < 3


def test_a_message_is_copied(browser, fake, size):
    visit = browser.visit(fake, size)
    allow_clipboard(visit)
    fake.will(say("Some **text**.\n\n- one\n"))
    visit.ask("Hi")
    visit.last.get_by_role("button", name="Copy message").click()
    visit.toast("Copied")
    assert clipboard(visit) == "Some **text**.\n\n- one\n"
    visit.page.locator("article.user").get_by_role("button", name="Copy message").click()
    until("the question is copied", lambda: clipboard(visit) == "Hi")


def test_code_is_copied_whole(browser, fake, size):
    visit = browser.visit(fake, size)
    allow_clipboard(visit)
    fake.will(say(CODE, piece=50))
    visit.ask("Hi")
    blocks = visit.last.locator(".code")
    expect(blocks).to_have_count(2)
    blocks.first.get_by_role("button", name="Copy code").click()
    until("it is copied", lambda: clipboard(visit).rstrip("\n") == "print('tea')")
    expect(blocks.first.locator(".code-bar")).to_contain_text("python")
    more = blocks.last.get_by_role("button", name="Show all 700 lines")
    assert "line 699" not in blocks.last.locator("pre").inner_text()
    blocks.last.get_by_role("button", name="Copy code").click()
    until("all of it is copied", lambda: clipboard(visit).rstrip("\n").endswith("line 699"))
    more.click()
    expect(blocks.last.locator("pre")).to_contain_text("line 699")
    expect(more).to_be_hidden()


def test_the_result_of_a_schema_is_copied(browser, fake, size):
    visit = browser.visit(fake, size)
    allow_clipboard(visit)
    panel = visit.settings()
    panel.get_by_text("Answer format").click()
    panel.get_by_label("JSON schema", exact=True).fill('{"type": "object"}')
    panel.get_by_label("JSON schema", exact=True).press("Tab")
    panel.get_by_label("Answers follow this schema").check()
    visit.close_panel()
    fake.will(say('{"a":1}'))
    visit.ask("Hi")
    assert fake.chats()[-1]["response_format"]["json_schema"]["schema"] == {"type": "object"}
    visit.last.locator(".result").get_by_role("button", name="Copy code").click()
    until("it is copied", lambda: clipboard(visit) == '{\n  "a": 1\n}')


def test_a_link_of_an_answer_is_safe(browser, fake, size):
    fake.will(say("[a link](https://example.org/x?a=1&b=2) and https://example.org/bare."))
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    links = visit.last.get_by_role("link")
    assert [link.get_attribute("href") for link in links.all()] == ["https://example.org/x?a=1&b=2", "https://example.org/bare"]
    assert {(link.get_attribute("target"), link.get_attribute("rel")) for link in links.all()} == {("_blank", "noopener noreferrer")}


def test_a_task_list_is_shown(browser, fake, size):
    fake.will(say("- [x] done\n- [ ] open\n"))
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    boxes = visit.last.get_by_role("checkbox")
    expect(boxes).to_have_count(2)
    expect(boxes.first).to_be_checked()
    expect(boxes.first).to_be_disabled()
    expect(boxes.last).not_to_be_checked()


def test_answers_side_by_side_are_chosen(browser, fake, size):
    def one(stream, body):
        stream.delta(content="The answer with the number %d." % (body["seed"] - 7))
        stream.end()
    visit = browser.visit(fake, size)
    visit.settings().get_by_label("Seed").fill("7")
    visit.close_panel()
    fake.will(one, one, one, one, say("Fine."))
    visit.answers_wanted(4)
    visit.send("Hi")
    visit.whole()
    assert sorted(body["seed"] for body in fake.chats()) == [7, 8, 9, 10]
    group = visit.page.get_by_role("group", name="4 answers side by side")
    cards = group.get_by_role("article")
    assert cards.locator(".body").all_inner_texts() == ["The answer with the number %d." % at for at in range(4)]
    cards.nth(2).locator(".choose").click()
    expect(cards.nth(2).locator(".choose")).to_have_attribute("aria-pressed", "true")
    visit.answers_wanted(1)
    visit.ask("On")
    assert fake.chats()[-1]["messages"][1]["content"] == "The answer with the number 2."
    expect(group).to_have_count(0)
    visit.answers.first.get_by_role("button", name="Side by side").click()
    expect(group).to_be_visible()
    expect(cards).to_have_count(4)


def test_markdown_is_shown_as_it_is_meant(browser, fake, size):
    fake.will(say("# One\n\n1. a\n2. b\n   - c\n\n> quote\n\n| l | r |\n|:--|--:|\n| 1 | `x\\|y` |\n\n**b** *i* ~~s~~ `c` snake_case_word 2 * 3 * 4\n\n---\n", piece=3))
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    body = visit.last.locator(".body")
    expect(body.locator("hr")).to_have_count(1)
    assert body.locator("ol > li").all_inner_texts()[0] == "a"
    assert body.locator("ol ul li").inner_text() == "c"
    assert body.locator("blockquote").inner_text() == "quote"
    assert body.locator("td").all_inner_texts() == ["1", "x|y"]
    assert body.locator("td").nth(1).evaluate("(cell) => getComputedStyle(cell).textAlign") == "right"
    assert [body.locator(tag).count() for tag in ("strong", "em", "del")] == [1, 1, 1]
    assert "snake_case_word 2 * 3 * 4" in body.inner_text()
    expect(body.get_by_role("heading", name="One")).to_be_visible()


def test_the_thinking_is_timed_while_it_lasts(browser, fake):
    go_on = threading.Event()

    def answer(stream, body):
        stream.delta(reasoning_content="I think")
        go_on.wait(20)
        stream.delta(content="So.")
        stream.end()
    fake.will(answer)
    visit = browser.visit(fake)
    visit.send("Hi")
    summary = visit.last.locator("summary")
    expect(summary).to_contain_text(re.compile(r"Thinking… [\d.]+ s"))
    go_on.set()
    expect(summary).to_contain_text(re.compile(r"Thought for [\d.]+ s"))
    visit.whole()
    # The reasoning is sent back to the model.
    fake.will(think("Again.", "Yes."))
    visit.ask("More")
    assert fake.chats()[-1]["messages"][1]["reasoning_content"] == "I think"


def test_all_shortcuts(browser, fake):
    visit = browser.visit(fake)
    page, press = visit.page, visit.page.keyboard.press
    fake.will(say("One."), say("Two."))
    visit.ask("Hi")
    press("Alt+r")
    expect(visit.last.locator(".place")).to_have_text("2/2")
    visit.whole()
    press("Alt+ArrowLeft")
    expect(visit.last.locator(".body")).to_have_text("One.")
    press("Alt+ArrowRight")
    expect(visit.last.locator(".body")).to_have_text("Two.")
    press("Alt+m")
    expect(visit.input).to_be_focused()
    press("Alt+ArrowUp")
    expect(visit.last).to_be_focused()
    press("Alt+ArrowUp")
    expect(page.locator("article.user")).to_be_focused()
    press("Alt+ArrowDown")
    expect(visit.last).to_be_focused()
    press("Alt+e")
    expect(page.get_by_role("textbox", name="Edit message")).to_be_focused()
    press("Escape")
    press("Alt+t")
    expect(page.get_by_role("tree")).to_be_visible()
    press("Alt+s")
    expect(page.get_by_role("form", name="Chat settings")).to_be_visible()
    press("Escape")
    expect(page.locator("#side")).to_be_hidden()
    press("Alt+k")
    expect(page.get_by_role("searchbox", name="Search chats")).to_be_focused()
    press("Alt+l")
    expect(page.get_by_role("tabpanel", name="Live")).to_be_visible()
    press("Alt+l")
    expect(visit.input).to_be_visible()
    press("Alt+n")
    expect(visit.messages).to_have_count(0)
    # Within a text, the arrows with Alt move the caret as ever.
    visit.input.fill("some words")
    press("Alt+ArrowLeft")
    expect(visit.input).to_have_value("some words")


def test_keys_of_an_input_method_do_not_send(browser, fake):
    """Enter ends the choice of a Chinese or Japanese character."""
    visit = browser.visit(fake)
    visit.input.fill("ni")
    visit.input.evaluate("(input) => input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))")
    visit.drawn()
    assert not fake.chats()


def test_the_context_and_its_share_are_shown(browser, fake, size):
    visit = browser.visit(fake, size)
    fake.will(say("Hello.", prompt=16000, output=384))
    visit.ask("Hi")
    if size == "desktop":
        meter = visit.page.get_by_role("meter", name="Context used")
        assert abs(float(meter.evaluate("(meter) => meter.value")) - 0.5) < 0.01
    expect(visit.page.locator("#context")).to_contain_text("50 %")


def test_the_sizes_are_those_that_are_promised(browser, fake, size):
    visit = browser.visit(fake, size)
    assert visit.page.evaluate("[innerWidth, innerHeight]") == list(SIZES[size])
