"""The page for everyone: names and roles, the keyboard, the focus, contrast, sizes; in each state of the page."""
import importlib.util
import re
import threading
from pathlib import Path

from playwright.sync_api import expect

from browser import until
from controls import CONTROLS
from fake_server import say
from states import MARKDOWN, states

HERE = Path(__file__).resolve().parent
MEASURE = (HERE / "measure.js").read_text()
AXE = (Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js").read_text()
TARGET = 24                         # px, of WCAG 2.2's AA
INTERACTIVE = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "spinbutton", "slider", "tab",
               "listbox", "treeitem", "menuitem", "DisclosureTriangle", "switch"}
# Where another round by Tab may find something new.
KEYBOARD_STATES = {"welcome", "tokens", "side by side", "calls", "edit", "settings", "tree", "history", "rename", "shortcuts",
                   "live", "toast", "key"}
AXE_STATES = {"welcome", "attached", "markdown", "tokens", "side by side", "calls", "edit", "settings", "results", "tree", "history",
              "rename", "live", "running and away", "toast", "key"}
WIDTHS = (320, 360, 480, 560, 768, 860, 861, 1100, 1280, 1920, 3840)


def measure(visit, check, *arguments):
    visit.page.evaluate("() => { if (!window.measure) { %s } }" % MEASURE)
    return visit.page.evaluate("([check, list]) => measure[check](...list)", [check, list(arguments)])


def told(faults, limit=25):
    assert not faults, "%d faults:\n%s" % (len(faults), "\n".join(faults[:limit]))


WALKED = {}


def walk(browser, fake, size):
    """Goes through all states once, and looks at everything; each test judges its part."""
    if size in WALKED:
        return WALKED[size]
    found = {"contrast": set(), "overflow": [], "names": set(), "axe": [], "tab": [], "least": 21, "texts": 0, "stops": 0,
             "seen": set()}
    for state, visit in states(browser, fake, size, reduced_motion="reduce"):
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            measured = measure(visit, "checkContrast")
            found["least"] = min(found["least"], measured["least"])
            found["texts"] += measured["texts"]
            found["contrast"] |= {"%s, %s: %s" % (state, scheme, each) for each in measured["faults"]}
        checks = ["checkOverflow", "checkCovered"] + (["checkTargets"] if size == "phone" else [])
        for check in checks:
            found["overflow"] += ["%s: %s" % (state, each) for each in measure(
                visit, check, *([TARGET] if check == "checkTargets" else []))]
        look_at_names(visit, state, found)
        if state in AXE_STATES:
            found["axe"] += ["%s: %s" % (state, each) for each in axe(visit)]
        if state in KEYBOARD_STATES:
            go_by_tab(visit, state, found)
    WALKED[size] = found
    return found


def look_at_names(visit, state, found):
    for role, name in ax_nodes(visit):
        if role not in INTERACTIVE:
            continue
        rows = [row for row in CONTROLS if row[0] == role and re.fullmatch(row[1], name)]
        found["seen"].update(rows)
        if not name:
            found["names"].add("%s: a %s without a name" % (state, role))
        elif not rows:
            found["names"].add("%s: %s %r is not in controls.py" % (state, role, name))


def axe(visit):
    visit.page.evaluate("() => { if (!window.axe) { %s } }" % AXE)
    return visit.page.evaluate("""() => axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa',
        'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) => violations.flatMap((each) =>
            each.nodes.slice(0, 3).map(({ target }) => `${each.id} (${each.impact}): ${each.help}: ${target.join(' ')}`)))""")


def go_by_tab(visit, state, found):
    """One round by Tab, from the first control on. The focus returns to where it was."""
    visit.page.evaluate("() => { window.before = document.activeElement; }")
    dialog = visit.page.locator("dialog[open]")
    first = dialog.locator("input, button").first if dialog.count() else visit.page.locator("a.skip")
    first.focus()
    for key in ("Tab", "Shift+Tab"):
        visit.page.keyboard.press(key)
    measure(visit, "tabbed")
    for _ in range(250):
        visit.page.keyboard.press("Tab")
        if not measure(visit, "tabbed"):
            break
    round_trip = measure(visit, "checkTabbed")
    found["tab"] += ["%s: %s" % (state, each) for each in round_trip["faults"]]
    found["stops"] += round_trip["count"]
    visit.page.evaluate("() => { window.before?.focus(); }")


def test_contrast_in_light_and_dark(browser, fake, size):
    found = walk(browser, fake, size)
    told(sorted(found["contrast"]))
    return "%d texts; the least is %.2f" % (found["texts"], found["least"])


def test_nothing_reaches_beyond_the_page_and_all_can_be_hit(browser, fake, size):
    told(walk(browser, fake, size)["overflow"])


def test_axe_finds_nothing(browser, fake, size):
    told(walk(browser, fake, size)["axe"])


def test_tab_leads_to_each_control_and_is_seen(browser, fake, size):
    found = walk(browser, fake, size)
    told(found["tab"])
    return "%d stops" % found["stops"]


def test_each_control_has_a_name_and_a_test(browser, fake, size):
    """A control that controls.py does not know has no test; one that it knows must be there."""
    found = walk(browser, fake, size)
    functions = {name for path in HERE.glob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)}
    faults = list(found["names"])
    faults += ["%s %s was never seen" % row[:2] for row in CONTROLS if row not in found["seen"] and size in (*row[3:], size)[0]]
    faults += ["%s %s: there is no test %s" % row[:3] for row in CONTROLS if row[2] not in functions]
    told(sorted(faults))
    return "%d kinds of controls" % len(CONTROLS)


def test_all_widths_from_320_px_to_4k(browser, fake):
    fake.will(say(MARKDOWN))
    visit = browser.visit(fake)
    visit.ask("long_" * 60)
    faults = []
    for panel in ("", "Chat settings", "Tree of branches"):
        if panel:
            visit.page.set_viewport_size({"width": 1280, "height": 800})
            visit.button(panel).click()
        for width in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": 740})
            visit.drawn()
            faults += ["%d px, %s: %s" % (width, panel, each) for each in measure(visit, "checkOverflow")]
    told(faults)


def ax_nodes(visit):
    session = visit.page.context.new_cdp_session(visit.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [(node["role"]["value"], node.get("name", {}).get("value", "").strip())
            for node in nodes if not node["ignored"] and "role" in node]


def test_the_list_of_controls_of_the_page_is_complete(browser):
    """Each name of bridge/page/README.md is known here."""
    text = (HERE.parents[1] / "bridge" / "page" / "README.md").read_text()
    table = text.split("## Controls")[1]
    table = table.replace(", of the one that is used:", ",").replace("a long message of a person has ", "button: ")
    missing = []
    for role, names in re.findall(r"(button|tab|combobox|textbox|spinbutton|checkbox|searchbox|treeitem|listbox|option): ([^;|]+)", table):
        for name in re.split(r", (?=[A-Z])", names.strip().replace("Stop texts, one a line", "Stop texts").replace("Tools, as JSON", "Tools")):
            name = re.sub(r"\b(TITLE|TOKEN|FILE|N)\b", "1", name.split("(")[0].split(" / ")[0].strip())
            if role in ("treeitem", "option") or name in ("1",):
                continue
            if not any(row[0] == role and (re.fullmatch(row[1], name) or row[1].startswith(name)) for row in CONTROLS):
                missing.append("%s: %s" % (role, name))
    told(missing)


def test_a_dialog_keeps_the_focus_and_gives_it_back(browser, fake, size):
    fake.will(say("Hello."))
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    openers = [("Delete message", lambda: visit.last.get_by_role("button", name="Delete message"), "Delete the message?")]
    if size == "desktop":
        openers += [("Keyboard shortcuts", lambda: visit.button("Keyboard shortcuts"), "Keyboard shortcuts"),
                    ("Rename", lambda: visit.button("Rename Hi"), "Rename the chat"),
                    ("Delete", lambda: visit.button("Delete Hi"), "Delete the chat?")]
    for what, opener, title in openers:
        opener().focus()
        visit.page.keyboard.press("Enter")
        dialog = visit.page.get_by_role("dialog", name=title)
        expect(dialog).to_be_visible()
        for key in ["Tab"] * 5 + ["Shift+Tab"] * 5:
            visit.page.keyboard.press(key)
            where = visit.page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
            assert where, "%s: %s left the dialog" % (what, key)
        visit.page.keyboard.press("Escape")
        expect(visit.page.get_by_role("dialog")).to_have_count(0)
        expect(opener()).to_be_focused()
    assert visit.answers.count() == 1


def test_a_panel_gives_the_focus_back(browser, fake, size):
    visit = browser.visit(fake, size)
    visit.ask("Hi")
    for name in ("Chat settings", "Tree of branches"):
        visit.button(name).click()
        expect(visit.button(name)).to_have_attribute("aria-expanded", "true")
        visit.close_panel()
        expect(visit.button(name)).to_be_focused()
        expect(visit.button(name)).to_have_attribute("aria-expanded", "false")


DRAWERS = (("History", "#history", 350), ("Chat settings", "#side", 8), ("Tree of branches", "#side", 8))     # and the shade's x


def test_a_drawer_keeps_what_it_covers_out_of_reach(browser, fake):
    """In a narrow window; Escape and a click beside the drawer close it."""
    visit = browser.visit(fake, "phone")
    visit.ask("Hi")
    for name, panel, shade in DRAWERS:
        drawer, button = visit.page.locator(panel), visit.button(name)
        button.press("Enter")
        expect(drawer).to_be_visible()
        for key in ["Tab"] * 25 + ["Shift+Tab"] * 25:
            visit.page.keyboard.press(key)
            assert not visit.page.evaluate("document.activeElement.closest('#talk')"), "%s: %s went below it" % (name, key)
        drawer.locator("button").first.focus()
        visit.page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()
        expect(button).to_be_focused()
        button.click()
        expect(drawer).to_be_visible()
        visit.page.mouse.click(shade, 400)
        expect(drawer).to_be_hidden()
        expect(button).to_be_focused()
        expect(button).to_have_attribute("aria-expanded", "false")
    visit.ask("Ho")


def test_a_press_that_begins_in_a_drawer_does_not_close_it(browser, fake):
    visit = browser.visit(fake, (360, 740))
    panel = visit.settings()
    box = panel.get_by_role("textbox", name="System prompt").bounding_box()
    visit.page.mouse.move(box["x"] + 60, box["y"] + 10)
    visit.page.mouse.down()
    visit.page.mouse.move(4, box["y"] + 10)
    visit.page.mouse.up()
    visit.drawn()
    expect(panel).to_be_visible()


def test_escape_closes_a_drawer_before_it_stops_an_answer(browser, fake):
    done = threading.Event()

    def answer(stream, body):
        stream.delta(content="I begin")
        done.wait(20)
        stream.delta(content=" and end.")
        stream.end()
    fake.will(answer)
    visit = browser.visit(fake, "phone")
    visit.send("Hi")
    visit.settings()
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("#side")).to_be_hidden()
    done.set()
    visit.whole()
    expect(visit.last.locator(".body")).to_have_text("I begin and end.")


def test_one_drawer_is_open_at_a_time_and_none_in_a_wide_window(browser, fake):
    visit = browser.visit(fake)
    history, side, talk = (visit.page.locator(name) for name in ("#history", "#side", "#talk"))

    def look(width, *seen):
        visit.page.set_viewport_size({"width": width, "height": 740})
        for panel in (history, side):
            expect(panel).to_be_visible(visible=panel in seen)
        expect(talk).to_have_js_property("inert", width <= 860 and bool(seen))
    look(1280, history)
    look(860)
    visit.settings()
    look(860, side)
    visit.page.keyboard.press("Alt+k")
    look(860, history)
    visit.page.keyboard.press("Alt+s")
    look(360, side)
    look(861, history, side)
    visit.input.focus()
    look(860, side)
    assert visit.page.evaluate("!!document.activeElement.closest('#side')")
    visit.page.keyboard.press("Alt+m")
    expect(visit.input).to_be_focused()
    look(860)
    visit.history()
    visit.page.get_by_role("link", name="Skip to the message").focus()
    visit.page.keyboard.press("Enter")
    expect(visit.input).to_be_focused()
    look(860)


def test_a_screen_reader_is_told_little_and_enough(browser, fake):
    """The text of an answer is not in a live region: it would be read with each piece."""
    fake.will(say("tea " * 400, piece=4))
    visit = browser.visit(fake)
    visit.ask("Talk.")
    until("the end is told", lambda: any("complete" in text for text in visit.watched("told")))
    heard = visit.watched("told")
    assert len(heard) < 10 and not any("tea tea" in text for text in heard), heard
    assert visit.page.evaluate("!document.querySelector('#messages').closest('[aria-live]') && "
                               "!document.querySelector('#messages [aria-live]:not(.token-detail)')")
    expect(visit.last).to_have_attribute("aria-busy", "false")


def test_landmarks_headings_and_language(browser, fake):
    visit = browser.visit(fake)
    assert visit.page.evaluate("document.documentElement.lang") == "en"
    roles = [role for role, _ in ax_nodes(visit)]
    assert roles.count("main") == 1 and "navigation" in roles and "banner" in roles, roles
    assert visit.page.get_by_role("heading", level=1).count() == 1
    assert visit.page.title() == "samovar"
    visit.ask("Of tea")
    assert visit.page.title().startswith("Of tea")


def test_motion_stops_for_those_who_want_it(browser, fake):
    visit = browser.visit(fake, reduced_motion="reduce")
    visit.ask("Hi")
    assert visit.page.evaluate("document.getAnimations().length") == 0


def test_large_text_and_forced_colours_break_nothing(browser, fake):
    fake.will(say(MARKDOWN))
    visit = browser.visit(fake, "phone", forced_colors="active")
    visit.ask("Hi")
    visit.page.evaluate("() => { document.documentElement.style.fontSize = '31px'; }")
    visit.drawn()
    told(measure(visit, "checkOverflow"))
    visit.page.evaluate("() => { document.documentElement.removeAttribute('style'); }")
    expect(visit.button("Send")).to_be_visible()
