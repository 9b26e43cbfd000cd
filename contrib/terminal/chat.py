"""samovar chat in a terminal."""
import json
import os
import signal
import stat
import termios
import time

from place import TEASPOON

PROMPT = ">>>"
HOSTILE = (b"one\x1b[2Jtwo\x1b]0;title\x07three\x1b[?1049hfour\xc2\x9b6nfive\rsix\x1b[31mseven\x1bcend\x08.")


def chat(place, daemon, *flags, **more):
    """A chat at its first prompt."""
    terminal = place.terminal("chat", "--socket", daemon.socket, "--temp", "0", *flags, **more)
    terminal.last_line(PROMPT)
    return terminal


def ask(terminal, question, answer):
    """Asks, waits for the answer and the next prompt."""
    terminal.send(question + "\r")
    terminal.until(lambda: answer in terminal.text() and terminal.lines()[-1].endswith(PROMPT),
                   "the answer %r and a prompt" % answer)


def stop(terminal):
    terminal.send("\x03")
    terminal.last_line(PROMPT)


def saved(place, terminal, name="saved.json"):
    """The conversation, as /save writes it."""
    path = place.folder / name
    terminal.send("/save %s\r" % path)
    terminal.until(path.exists, "the file is written")
    terminal.last_line(PROMPT)
    return json.loads(path.read_text())["messages"]


# ---- questions ----

def test_a_second_question_reads_only_itself(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "say hello.", "how are you today?")
    ask(terminal, "say numbers.", "nine ten")
    terminal.send("/stats\r")
    terminal.shows("opened 1 time, 1 turn appended")
    line = next(line for line in terminal.lines() if line.startswith("prompt"))
    tokens, cached = int(line.split()[1]), int(line.split("cached ")[1].split(",")[0])
    assert tokens > 2 and 0 < tokens - cached < tokens, line


def test_commands_are_listed_and_completed(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted(), rows=50)
    terminal.send("/help\r")
    for name in ("/help", "/bye", "/clear", "/system", "/set", "/show", "/undo", "/retry", "/fork", "/branches",
                 "/save", "/load", "/tools", "/stats"):
        terminal.shows("  %s" % name)
    terminal.send("/br\t")
    terminal.last_line(PROMPT + " /branches")
    terminal.send("\x15/set max\t10\r")
    terminal.shows("max-tokens is 10.")
    terminal.send("/hepl\r")
    terminal.shows("There is no command /hepl; is /help meant?")


def test_a_path_is_a_question_and_no_command(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "/etc/passwd say hello.", "how are you today?")
    ask(terminal, " /nothing say numbers.", "nine ten")


def test_undo_and_retry_change_the_conversation(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "say hello.", "how are you today?")
    ask(terminal, "say numbers.", "nine ten")
    terminal.send("/undo\r")
    terminal.shows("Taken back: say numbers.")
    assert [message["content"] for message in saved(place, terminal)] == ["say hello.", "Hello there, how are you today?"]
    terminal.send("/retry\r")
    terminal.until(lambda: terminal.text().count("Hello there, how are you today?") == 2, "the answer comes again")
    terminal.last_line(PROMPT)
    assert len(saved(place, terminal, "again.json")) == 2


def test_branches_fork_and_return(place):
    terminal = chat(place, place.scripted(), rows=40)
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("/fork side\r")
    terminal.last_line("side " + PROMPT)
    ask(terminal, "say numbers.", "nine ten")
    terminal.send("/branches main\r")
    terminal.last_line("main " + PROMPT)
    terminal.send("/branches name trunk\r")
    terminal.last_line("trunk " + PROMPT)
    terminal.send("/branches\r")
    terminal.until(lambda: any(line.startswith("* 1 trunk") and " 1 turn," in line for line in terminal.lines()) and
                   any(line.startswith("  2 side") and " 2 turns," in line for line in terminal.lines()), "the list")
    ask(terminal, "say party.", "right")
    terminal.send("/stats\r")
    terminal.shows("opened 1 time, 2 turns appended")


def test_a_saved_conversation_fits_ask_and_load(place):
    daemon = place.scripted()
    terminal = chat(place, daemon, "--system", "Be brief.")
    ask(terminal, "say hello.", "how are you today?")
    messages = saved(place, terminal)
    assert [message["role"] for message in messages] == ["system", "user", "assistant"], messages
    assert stat.S_IMODE(os.stat(place.folder / "saved.json").st_mode) == 0o600
    asked = place.run("ask", "--socket", daemon.socket, "--messages", place.folder / "saved.json")
    assert asked.returncode == 0 and asked.stdout, asked
    terminal.send("/clear\r/load %s\r" % (place.folder / "saved.json"))
    terminal.shows("Loaded: 3 messages")
    terminal.shows("assistant: Hello there")


def test_the_system_message_can_change(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "say hello.", "how are you today?")
    terminal.send('/system """Be\rvery brief."""\r')
    terminal.shows("The system message is set.")
    assert saved(place, terminal)[0] == {"role": "system", "content": "Be\nvery brief."}
    ask(terminal, "say numbers.", "nine ten")
    terminal.send('/system ""\r')
    terminal.shows("no system message any more")


def test_tool_calls_are_answered_by_hand(place):
    tools = place.write("tools.json", json.dumps([{"type": "function", "function": {
        "name": "get_weather", "description": "the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]))
    terminal = chat(place, place.scripted())
    terminal.send("/tools %s\r" % tools)
    terminal.shows("get_weather: the weather of a city")
    terminal.send("say call.\r")
    terminal.shows('get_weather({"city": "Athens"})')
    terminal.last_line("get_weather returns:")
    terminal.send("21 degrees\r")
    terminal.shows("It is done, thank you.")
    terminal.last_line(PROMPT)
    roles = [message["role"] for message in saved(place, terminal)]
    assert roles == ["user", "assistant", "tool", "assistant"], roles
    # The user may leave a call without its result.
    terminal.send("say call.\r")
    terminal.last_line("get_weather returns:")
    terminal.send("\x03")
    terminal.last_line(PROMPT)
    ask(terminal, "say numbers.", "nine ten")


def test_a_full_context_is_told_and_the_oldest_turns_dropped(place):
    terminal = chat(place, place.scripted(context=640), rows=40)
    for count in range(4):
        ask(terminal, "say numbers." + " padding" * 12, "nine ten")
        if "The context is full" in terminal.text():
            break
        terminal.send("/branches\r")
    terminal.send("say hello." + " padding" * 40 + "\r")
    terminal.until(lambda: "Drop the oldest" in terminal.text(), "the offer")
    terminal.send("\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    messages = saved(place, terminal)
    assert messages[-1]["content"] == "Hello there, how are you today?" and len(messages) < 10, messages


def test_a_private_daemon_serves_a_file(place):
    terminal = place.terminal("chat", "--model", TEASPOON, "--temp", "0")
    terminal.last_line(PROMPT)
    terminal.send("What is 3 + 4?\r")
    terminal.shows("3 + 4 = 7")
    terminal.last_line(PROMPT)
    terminal.send("\x04")
    assert terminal.ended() == 0


# ---- the line ----

def test_wide_characters_are_edited_where_they_stand(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted(), rows=10, columns=40)
    terminal.send("漢字漢字")
    terminal.last_line(PROMPT + " 漢字漢字")
    assert terminal.cursor()[1] == 4 + 8
    terminal.send("\x01ab")
    terminal.last_line(PROMPT + " ab漢字漢字")
    terminal.pump(0.1)
    assert terminal.cursor()[1] == 4 + 2
    terminal.send("\x1b[C\x1b[C\x7f")
    terminal.last_line(PROMPT + " ab漢漢字")
    terminal.pump(0.1)
    assert terminal.cursor()[1] == 4 + 4
    terminal.send("\x05é\u0301😀")
    terminal.until(lambda: "漢漢字" in terminal.text() and "😀" in terminal.text(), "more characters")
    terminal.send("\x15" + "字" * 30)
    terminal.until(lambda: terminal.text().count("字") == 30, "a line that wraps")
    terminal.send("\x01x")
    terminal.until(lambda: PROMPT + " x字" in terminal.text(), "an insertion before it")
    assert terminal.text().count("字") == 30
    stop(terminal)


def test_resizing_does_not_break_the_line(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted(), rows=12, columns=60)
    words = "".join("w%02d " % number for number in range(20))
    terminal.send(words)
    terminal.shows("w19")
    for rows, columns in ((12, 40), (20, 100), (8, 25), (30, 80), (12, 20), (24, 60)):
        terminal.resize(rows, columns)
        shown = lambda: "".join(line.ljust(columns) for line in terminal.screen.display)  # noqa: E731
        terminal.until(lambda: (PROMPT + " " + words).rstrip() in shown(), "the line at %d columns" % columns)
        terminal.send("+")
        words += "+"
        terminal.until(lambda: (PROMPT + " " + words).rstrip() in shown(), "typing at %d columns" % columns)
    terminal.send("say hello.\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    assert saved(place, terminal)[0]["content"] == words + "say hello."


def test_resizing_an_answer_does_not_stop_it(place):
    terminal = chat(place, place.scripted(), "--ignore-eos", "--max-tokens", "1000000")
    terminal.send("say forever.\r")
    terminal.shows("tick tock")
    for columns in (40, 100, 30, 80):
        terminal.resize(24, columns)
        terminal.pump(0.05)
    stop(terminal)
    terminal.send("typed")
    terminal.last_line(PROMPT + " typed")
    stop(terminal)


def test_a_paste_of_many_lines_is_one_question(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted())
    lines = ["line %d" % number for number in range(200)]
    terminal.paste("\n".join(lines) + "\nsay hello.\n")
    terminal.last_line("say hello.")
    terminal.pump(0.1)
    assert "how are you" not in terminal.text()     # it is not sent
    terminal.send(" More.\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    assert saved(place, terminal)[0]["content"] == "\n".join(lines) + "\nsay hello. More."


def test_a_paste_cannot_control_the_terminal(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted())
    terminal.paste("a\x1b[2Jb\x07c\x9b2Jd\x7f\x00e\tf\n/bye\nsay hello.")
    terminal.last_line("say hello.")
    terminal.send("\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    assert saved(place, terminal)[0]["content"] == "a[2Jbc2Jde\tf\n/bye\nsay hello."


def test_an_interrupted_paste_leaves_a_clean_prompt(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted())
    terminal.send("\x1b[200~this paste has no end")
    terminal.pump(0.1)
    terminal.send("\x03")
    terminal.last_line(PROMPT)
    ask(terminal, "say hello.", "how are you today?")


def test_blocks_and_continued_lines_are_one_question(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted())
    terminal.send('"""one\r')
    terminal.last_line("...")
    terminal.send('/bye\rsay hello."""\r')
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    terminal.send("one\\\r")
    terminal.last_line("...")
    terminal.send("say numbers.\r")
    terminal.shows("nine ten")
    terminal.last_line(PROMPT)
    terminal.send("a\x1b\rsay party.\r")
    terminal.shows("right")
    terminal.last_line(PROMPT)
    questions = [message["content"] for message in saved(place, terminal) if message["role"] == "user"]
    assert questions == ["one\n/bye\nsay hello.", "one\nsay numbers.", "a\nsay party."], questions


def test_the_history_outlives_the_chat_and_is_private(place):
    place.needs_libedit()
    daemon = place.scripted()
    terminal = chat(place, daemon)
    ask(terminal, "say hello.", "how are you today?")
    terminal.paste("two\nlines say numbers.")
    ask(terminal, "", "nine ten")
    terminal.send("\x04")
    assert terminal.ended() == 0
    path = place.folder / "state" / "samovar" / "chat-history"
    assert path.read_text() == "say hello.\ntwo\\nlines say numbers.\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    terminal = chat(place, daemon)
    terminal.send("\x1b[A")
    terminal.last_line("lines say numbers.")
    terminal.send("\x1b[A")
    terminal.last_line(PROMPT + " say hello.")
    terminal.send("\x04\x03/bye\r")
    assert terminal.ended() == 0
    terminal = chat(place, daemon, "--no-history")
    terminal.send("\x1b[A")
    ask(terminal, "say party.", "right")
    terminal.send("\x04")
    assert terminal.ended() == 0
    assert "party" not in path.read_text()


def test_an_editor_of_the_user_changes_the_line(place):
    place.needs_libedit()
    editor = place.write("editor", '#!/bin/sh\nprintf "%s and\\nsay hello." "$(cat "$1")" >"$1.new"\nmv "$1.new" "$1"\n')
    editor.chmod(0o755)
    terminal = chat(place, place.scripted(), env={"EDITOR": str(editor)})
    terminal.send("draft")
    terminal.last_line(PROMPT + " draft")
    terminal.send("\x07")
    terminal.last_line("say hello.")
    terminal.send("\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    assert saved(place, terminal)[0]["content"] == "draft and\nsay hello."


def test_a_terminal_without_abilities_gets_plain_lines(place):
    terminal = chat(place, place.scripted(), env={"TERM": "dumb"})
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("half")
    terminal.shows("half")
    terminal.send("\x03")
    terminal.last_line(PROMPT)
    terminal.paste("one\nsay numbers.")
    terminal.send("\r")
    terminal.shows("nine ten")
    terminal.last_line(PROMPT)
    questions = [message["content"] for message in saved(place, terminal) if message["role"] == "user"]
    assert questions == ["say hello.", "one\nsay numbers."], questions
    terminal.send("\x04")
    assert terminal.ended() == 0


# ---- ^C and other signals ----

def test_an_interrupt_before_the_first_token_takes_the_question_back(place):
    daemon = place.scripted()
    terminal = chat(place, daemon)
    ask(terminal, "say hello.", "how are you today?")
    daemon.signal(signal.SIGSTOP)
    terminal.send("say numbers.\r")
    terminal.shows("waiting for the daemon")
    terminal.send("\x03")
    terminal.last_line(PROMPT)
    daemon.signal(signal.SIGCONT)
    terminal.shows("The question is taken back")
    terminal.send("/retry\r")
    terminal.shows("nine ten")
    terminal.last_line(PROMPT)
    assert len(saved(place, terminal)) == 4


def test_an_interrupt_in_the_middle_keeps_what_has_come(place):
    terminal = chat(place, place.scripted(), "--ignore-eos", "--max-tokens", "1000000")
    terminal.send("say forever.\r")
    terminal.shows("tick tock")
    stop(terminal)
    messages = saved(place, terminal)
    assert len(messages) == 2 and messages[1]["content"].startswith("start tick tock"), messages[0]
    ask(terminal, "/set ignore-eos off", "ignore-eos is off.")
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("/stats\r")
    terminal.shows("opened 1 time, 1 turn appended")


def test_interrupts_at_the_prompt_only_clear_the_line(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted())
    for _ in range(3):
        stop(terminal)
    terminal.send("never sent")
    terminal.last_line(PROMPT + " never sent")
    stop(terminal)
    terminal.shows("never sent^C")
    terminal.send('"""a block\r')
    terminal.last_line("...")
    terminal.send("more")
    terminal.shows("... more")
    stop(terminal)
    terminal.send("\x12hist")                       # within a search
    terminal.pump(0.2)
    stop(terminal)
    ask(terminal, "say hello.", "how are you today?")
    assert saved(place, terminal)[0]["content"] == "say hello."


def test_interrupts_at_random_moments_never_end_the_chat(place):
    terminal = chat(place, place.scripted(), "--ignore-eos", "--max-tokens", "1000000")
    for number in range(25):
        terminal.send("say forever.\r")
        time.sleep(0.002 * number)
        terminal.send("\x03")
        terminal.until(lambda: terminal.lines()[-1] == PROMPT, "a prompt after ^C number %d" % number)
        terminal.send("x\x7f")
    ask(terminal, "/set ignore-eos off", "ignore-eos is off.")
    ask(terminal, "say numbers.", "nine ten")


def test_what_is_typed_during_an_answer_waits_for_the_prompt(place):
    place.needs_libedit()
    terminal = chat(place, place.scripted(), "--ignore-eos", "--max-tokens", "1000000")
    terminal.send("say forever.\r")
    terminal.shows("tick tock")
    terminal.send("typed")
    terminal.pump(0.2)
    assert "typed" not in terminal.text()
    terminal.kill(signal.SIGINT)                    # not from the keyboard: nothing is flushed
    terminal.last_line(PROMPT + " typed")
    stop(terminal)


def test_end_of_input_typed_during_an_answer_leaves_behind_it(place):
    terminal = chat(place, place.scripted(), "--ignore-eos", "--max-tokens", "1000000")
    terminal.send("say forever.\r")
    terminal.shows("tick tock")
    terminal.send("\x04")
    terminal.pump(0.1)
    terminal.kill(signal.SIGINT)
    assert terminal.ended() == 0


def test_end_of_input_leaves_and_restores_the_terminal(place):
    daemon = place.scripted()
    terminal = chat(place, daemon)
    terminal.send("abc\x04")
    terminal.pump(0.1)
    terminal.send("\x15\x04")
    assert terminal.ended() == 0
    assert terminal.mode()[3] == terminal.usual[3]
    for number in (signal.SIGTERM, signal.SIGHUP):
        terminal = chat(place, daemon)
        terminal.kill(number)
        assert terminal.ended() == 128 + number
        assert terminal.mode()[3] == terminal.usual[3]
        terminal = chat(place, daemon, "--ignore-eos", "--max-tokens", "1000000")
        terminal.send("say forever.\r")
        terminal.shows("tick tock")
        terminal.kill(number)
        assert terminal.ended() == 128 + number
        assert terminal.mode()[3] == terminal.usual[3]


def test_a_signal_to_end_ends_an_offer_too(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "say hello.", "how are you today?")
    path = place.write("there", "")
    terminal.send("/save %s\r" % path)
    terminal.shows("Overwrite it?")
    terminal.kill(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM
    assert path.read_text() == ""


def test_a_stopped_chat_continues_where_it_was(place):
    terminal = chat(place, place.scripted())
    terminal.send("half")
    terminal.last_line(PROMPT + " half")
    terminal.kill(signal.SIGTSTP)
    terminal.until(lambda: os.waitid(os.P_PID, terminal.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT), "it stops")
    assert terminal.mode()[3] & termios.ICANON
    terminal.kill(signal.SIGCONT)
    terminal.send(" say hello.\r")
    terminal.shows("how are you today?")
    terminal.last_line(PROMPT)
    assert saved(place, terminal)[0]["content"] == "half say hello."


# ---- the daemon ----

def test_a_daemon_that_dies_in_an_answer_loses_no_conversation(place):
    daemon = place.scripted()
    terminal = chat(place, daemon)
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("/set ignore-eos on\r")
    terminal.send("say forever.\r")
    terminal.shows("tick tock")
    daemon.kill()
    terminal.shows("The daemon is gone.")
    terminal.last_line(PROMPT)
    terminal.send("say numbers.\r")
    terminal.shows("There is no daemon now")
    terminal.shows("The question is taken back")
    terminal.last_line(PROMPT)
    daemon.start()
    terminal.send("/set ignore-eos off\r/retry\r")
    terminal.shows("Connected again")
    terminal.shows("nine ten")
    terminal.last_line(PROMPT)
    messages = saved(place, terminal)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 3, messages
    assert messages[3]["content"].startswith("start tick tock") and messages[4]["content"] == "say numbers."


def test_a_daemon_that_dies_at_the_prompt_is_found_again(place):
    daemon = place.scripted()
    terminal = chat(place, daemon)
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("/fork side\r")
    terminal.last_line("side " + PROMPT)
    daemon.kill()
    daemon.start()
    ask(terminal, "say numbers.", "nine ten")
    terminal.shows("Connected again")
    terminal.send("/branches main\r")
    ask(terminal, "say party.", "right")
    terminal.send("/stats\r")
    terminal.shows("opened 3 times")


def test_a_private_daemon_that_dies_is_started_again(place):
    terminal = place.terminal("chat", "--model", TEASPOON, "--temp", "0")
    terminal.last_line(PROMPT)
    ask(terminal, "What is 3 + 4?", "3 + 4 = 7")
    children = (place_children(terminal.pid))
    assert len(children) == 1, children
    os.kill(children[0], signal.SIGKILL)
    ask(terminal, "What is 2 + 2?", "Connected again")
    terminal.shows("2 + 2 = 4")
    terminal.last_line(PROMPT)


def place_children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        return [int(child) for child in children.read().split()]


# ---- what a model says ----

def test_hostile_output_cannot_control_the_terminal(place):
    terminal = chat(place, place.scripted({"hostile": HOSTILE}))
    ask(terminal, "say hello.", "how are you today?")
    terminal.send("say hostile.\r")
    terminal.shows("end?.")
    terminal.last_line(PROMPT)
    shown = "one?[2Jtwo?]0;title?three?[?1049hfour?6nfive?six?[31mseven?cend?."
    assert shown in terminal.text(), terminal.text()
    assert "how are you today?" in terminal.text()  # the screen was not cleared
    assert not terminal.screen.answers and terminal.screen.title == ""
    # Nor when the conversation is shown again.
    terminal.send("/show 2\r")
    terminal.until(lambda: terminal.text().count(shown) == 2, "it is shown again")
    terminal.send("/branches\r/show\r")
    terminal.shows("1 main")
    assert "how are you today?" in terminal.text()
    assert not terminal.screen.answers and terminal.screen.title == ""


def test_reasoning_is_dim_and_plain_without_colours(place):
    daemon = place.scripted()
    terminal = chat(place, daemon)
    ask(terminal, "say thought.", "The answer is four.")
    assert b"\x1b[2mTwo" in terminal.raw.replace(b"\r", b"").replace(b"\n", b"")
    assert b"\x1b[0m" in terminal.raw.split(b"\x1b[2m")[1].split(b"The answer")[0]
    assert saved(place, terminal)[1]["reasoning_content"].strip() == "Two and two make four."
    terminal = chat(place, daemon, env={"NO_COLOR": "1"})
    ask(terminal, "say thought.", "The answer is four.")
    assert "Two and two make four." in terminal.text()
    assert b"\x1b[2m" not in terminal.raw


def test_wide_characters_of_an_answer_are_whole(place):
    terminal = chat(place, place.scripted())
    ask(terminal, "say emoji.", "漢字")
    # The screen's model does not join characters, so these are the bytes.
    assert "Ya\u00e7 \U0001F600 na\u00efve \u6f22\u5b57 \U0001F469\u200D\U0001F680 end.\r\n".encode() in terminal.raw
