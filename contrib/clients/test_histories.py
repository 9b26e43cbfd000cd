"""Stored responses continue on handles of the daemon, and say what all their items say."""
import json
import random
import socket
import threading
import time

import openai
from openai import OpenAI

from dialects import TIME, WEATHER, equal, responses_tools
from scripted_model import text_of
from servers import Pair, until
from test_openai_sdk import client, raised

QUESTIONS = ["What is samovar?", "What is two plus three?", "How do I stop it?", "Say it again.", "Thank you."]
MOST = 64                           # HISTORIES_MAX of bridge/core/history.h
WAYS = ("continued", "rendered", "none")


def ways(pair):
    """How many stored responses began in each way."""
    text = pair.server().get("/metrics").body.decode()
    return tuple(int(text.split('histories_total{history="%s"} ' % way)[1].split("\n")[0]) for way in WAYS)


def handles(pair):
    return pair.status()["handles"]["open"]


def user(text):
    return {"role": "user", "content": text}


class Talk:
    """A conversation that is stored, and at each turn asked again with all its items."""

    def __init__(self, pair, **more):
        self.asked, self.more = client(pair).responses, {"model": pair.model, "temperature": 0, **more}
        self.items, self.last = [], None

    def branch(self):
        other = Talk.__new__(Talk)
        other.__dict__.update(self.__dict__, items=list(self.items))
        return other

    def say(self, *items, **more):
        more = {**self.more, **more}
        said = self.asked.create(previous_response_id=self.last and self.last.id, input=list(items), **more)
        self.items += items
        whole = self.asked.create(input=self.items, store=False, **more)
        equal("text", said.output_text, whole.output_text)
        equal("tokens of the prompt", said.usage.input_tokens, whole.usage.input_tokens)
        equal("the same tokens", whole.usage.input_tokens_details.cached_tokens, whole.usage.input_tokens - 1)
        equal("kinds", [item.type for item in said.output], [item.type for item in whole.output])
        self.items += [item.model_dump(exclude_none=True) for item in said.output]
        self.last = said
        return said

    def call(self):
        return [item for item in self.last.output if item.type == "function_call"][0]

    def result(self, output):
        return {"type": "function_call_output", "call_id": self.call().call_id, "output": output}


def test_a_chain_of_five_is_what_its_items_say(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    cached = [talk.say(user(question)).usage.input_tokens_details.cached_tokens for question in QUESTIONS]
    assert all(a < b for a, b in zip(cached, cached[1:])), cached
    equal("ways", ways(pair), (4, 1, 0))
    equal("handles", handles(pair), 5)


def test_a_streamed_chain_is_what_its_items_say(build):
    pair = Pair(build, "teaspoon")
    asked, last, items = client(pair).responses, None, []
    for question in QUESTIONS[:3]:
        items.append(user(question))
        with asked.stream(model="teaspoon", input=question, previous_response_id=last, temperature=0) as stream:
            list(stream)
            said = stream.get_final_response()
        whole = asked.create(model="teaspoon", input=items, temperature=0, store=False)
        equal("text", said.output_text, whole.output_text)
        items += [item.model_dump(exclude_none=True) for item in said.output]
        last = said.id
    equal("ways", ways(pair), (2, 1, 0))


def test_a_response_is_continued_many_times_at_once(build):
    pair = Pair(build, "teaspoon")
    talk, faults = Talk(pair), []
    talk.say(user(QUESTIONS[0]))

    def branch(number):
        try:
            talk.branch().say(user("What is %d plus two?" % number))
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=branch, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
    equal("ways", ways(pair), (8, 1, 0))
    equal("handles", handles(pair), 9)


def test_a_tool_is_called_and_its_result_is_read_on_the_same_handle(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair, tools=responses_tools((WEATHER,)))
    talk.say(user("Is it warm in Athens?"))
    equal("name", talk.call().name, "get_weather")
    said = talk.say(talk.result("sunny, 29 degrees"))
    assert "29" in said.output_text or "sunny" in said.output_text, said.output_text
    talk.say(user("Is it warm in Oslo?"))
    equal("parts are found on a handle", talk.call().name, "get_weather")
    equal("ways", ways(pair), (2, 1, 0))


def test_what_changes_the_head_renders_all_again(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    talk.say(user(QUESTIONS[0]))
    equal("at first", ways(pair), (0, 1, 0))
    for more in ({"instructions": "Be brief."}, {"tools": responses_tools((WEATHER,))},
                 {"tools": responses_tools((WEATHER, TIME))}, {"reasoning": {"effort": "low"}}):
        before = ways(pair)
        other = talk.branch()
        other.say(user(QUESTIONS[1]), **more)
        equal("changed: %s" % sorted(more), ways(pair), (before[0], before[1] + 1, 0))
        other.say(user(QUESTIONS[3]), **more)
        equal("kept: %s" % sorted(more), ways(pair), (before[0] + 1, before[1] + 1, 0))
    before = ways(pair)
    talk.branch().say({"role": "assistant", "content": "It is tea."}, user(QUESTIONS[1]))
    equal("an answer of the client", ways(pair), (before[0], before[1] + 1, 0))
    before = ways(pair)
    talk.branch().say({"role": "developer", "content": "Be brief."}, user(QUESTIONS[1]))
    equal("a late message of the developer", ways(pair), (before[0] + 1, before[1], 0))


def test_an_answer_that_its_items_do_not_tell_is_rendered_again(build):
    pair = Pair(build, "teaspoon")
    cut = Talk(pair, tools=responses_tools((WEATHER,)))
    cut.say(user("Is it warm in Athens?"), max_output_tokens=6)
    equal("status", cut.last.status, "incomplete")
    equal("no handle is left", handles(pair), 0)
    plain = Talk(pair)
    plain.say(user(QUESTIONS[0]), max_output_tokens=5)
    equal("status", plain.last.status, "incomplete")
    plain.say(user(QUESTIONS[1]))
    equal("a text that was cut is whole", ways(pair), (1, 2, 0))


def test_a_template_that_is_not_steady_is_rendered_again(build):
    """That of the scripted model writes a mark in front of the answer that it does not show later."""
    pair = Pair(build, "scripted")
    talk = Talk(pair, tools=responses_tools())
    talk.say(user("say call."))
    equal("text", talk.say(talk.result("warm")).output_text, text_of("done").decode())
    talk.say(user("say thought_and_call."))
    talk.say(talk.result("warm"))
    talk.say(user("say hello."))
    equal("ways", ways(pair), (0, 5, 0))


def test_the_handle_of_a_response_that_is_deleted_is_closed(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    for question in QUESTIONS[:3]:
        talk.say(user(question))
    other = talk.branch()
    talk.asked.delete(talk.last.id)
    until("it is closed", lambda: handles(pair) == 2)
    raised(openai.APIStatusError, talk.asked.create, model="teaspoon", input="Go on.", previous_response_id=talk.last.id)
    client(pair).responses.create(model="teaspoon", input="Hello", store=False)
    equal("without store", handles(pair), 2)
    other.asked.delete(other.asked.create(model="teaspoon", input="Hello").id)
    until("it is closed", lambda: handles(pair) == 2)


def test_keys_have_handles_of_their_own(build):
    pair = Pair(build, "teaspoon")
    other = OpenAI(base_url=pair.url + "/v1", api_key=list(pair.keys)[1], max_retries=0, timeout=30).responses
    talk = Talk(pair)
    talk.say(user(QUESTIONS[0]))
    theirs = other.create(model="teaspoon", input=QUESTIONS[0], temperature=0)
    equal("the same", theirs.output_text, talk.last.output_text)
    raised(openai.APIStatusError, other.create, model="teaspoon", input="Go on.", previous_response_id=talk.last.id)
    talk.say(user(QUESTIONS[1]))
    other.create(model="teaspoon", input=QUESTIONS[1], previous_response_id=theirs.id, temperature=0)
    equal("ways", ways(pair), (2, 2, 0))


def test_a_conversation_outlives_the_daemon(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    for question in QUESTIONS[:3]:
        talk.say(user(question))
    equal("before", ways(pair), (2, 1, 0))
    pair.kill("daemon")
    pair.start_daemon()
    until("the bridge serves again", pair.healthy)
    until("it is connected", lambda: pair.server().get("/health").status == 200)
    talk.say(user(QUESTIONS[3]))
    equal("all was rendered", ways(pair), (2, 2, 0))
    talk.say(user(QUESTIONS[4]))
    equal("on a handle again", ways(pair), (3, 2, 0))


def test_a_hundred_responses_have_no_more_handles_than_a_user_may_spare(build):
    pair = Pair(build, "teaspoon")
    asked, ids = client(pair).responses, []
    for number in range(100):
        ids.append(asked.create(model="teaspoon", input="Count to %d." % number, max_output_tokens=2).id)
        assert handles(pair) <= MOST, handles(pair)
    until("the oldest are closed", lambda: handles(pair) == MOST)
    for number in (0, 99, 50):
        said = asked.create(model="teaspoon", input="Go on.", previous_response_id=ids[number], max_output_tokens=2)
        equal("previous", said.previous_response_id, ids[number])
    equal("ways", ways(pair), (2, 101, 0))


def test_no_request_fails_for_want_of_handles(build):
    for most in (1, 2):
        pair = Pair(build, "teaspoon", daemon=["--uid-handles", most])
        talk = Talk(pair)
        for question in QUESTIONS:
            talk.say(user(question))
        equal("ways with %d" % most, ways(pair), (most - 1, 1, 5 - most))
    pair = Pair(build, "teaspoon", daemon=["--uid-prompt-bytes", 40000])
    for number in range(30):
        talk = Talk(pair)
        talk.say(user(" ".join(QUESTIONS)), max_output_tokens=2)


def leave(pair, body, seconds):
    """Asks, and leaves after that time."""
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", pair.port)) as peer:
        peer.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (pair.key.encode(), len(data), data))
        time.sleep(seconds)


def test_a_client_that_leaves_at_any_moment_leaves_no_handle(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    for question in QUESTIONS[:2]:
        talk.say(user(question))
    luck = random.Random(1)
    for number in range(150):
        previous = talk.last.id if number % 3 else None
        body = {"model": "teaspoon", "input": "Why? %d" % number, "previous_response_id": previous, "ignore_eos": True,
                "stream": number % 2 == 0, **({"instructions": "Be %d." % number} if number % 5 == 0 else {})}
        leave(pair, body, luck.random() * 0.004)
        # On a slow machine requests pile up.  With 64 histories of a user, the handles of the
        # conversation would be closed for them (bridge/core/history.h), so the bridge may catch up.
        if number % 25 == 24:
            pair.until_idle()
            until("their handles are closed", lambda: handles(pair) == 2)
    talk.say(user(QUESTIONS[2]))


def test_clients_that_leave_while_the_daemon_is_away_leave_no_handle(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    for question in QUESTIONS[:2]:
        talk.say(user(question))
    for previous in (None, talk.last.id):   # an open, and a fork
        pair.pause("daemon")
        for _ in range(3):
            leave(pair, {"model": "teaspoon", "input": "Why?", "previous_response_id": previous}, 0.05)
        pair.go_on("daemon")
        pair.until_idle()
        until("their handles are closed", lambda: handles(pair) == 2)


def test_a_bridge_that_stops_closes_its_handles(build):
    pair = Pair(build, "teaspoon")
    talk = Talk(pair)
    for question in QUESTIONS[:3]:
        talk.say(user(question))
    equal("handles", handles(pair), 3)
    equal("status", pair.stop("bridge"), 0)
    until("they are closed", lambda: handles(pair) == 0)
    pair.start_bridge()
