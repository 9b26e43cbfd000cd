"""How a stream ends and how its tokens are counted, in each dialect: each row, whole and streamed."""
from dialects import (ALL, CHAT, MESSAGES, OLLAMA, OPENAI_AND_ANTHROPIC, RESPONSES, TIME, TOOLS, both, equal)
from scripted_model import text_of

HELLO = text_of("hello").decode()


def ask(dialect, pair, script, **more):
    return both(dialect, pair.server(), dialect.body("scripted", "say %s." % script, **more))


def test_an_answer_that_ends_by_itself(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "hello")
        equal(dialect.name, (said.text, said.finish), (HELLO, dialect.ends["eos"]))
        assert said.usage["output"] > 1 and said.usage["input"] + said.usage.get("cached", 0) > 9, said.usage


def test_an_answer_that_meets_a_stop_string(scripted):
    for dialect in (CHAT, MESSAGES, OLLAMA):
        said = ask(dialect, scripted, "numbers", stop=["ten", "ve si"])
        equal(dialect.name, (said.text, said.finish), ("one two three four fi", dialect.ends["stop"]))
    equal("which", ask(MESSAGES, scripted, "numbers", stop=["ten", "ve si"]).stop, "ve si")


def test_an_answer_that_is_as_long_as_was_asked(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "forever", most=7)
        equal(dialect.name, (said.finish, said.usage["output"]), (dialect.ends["length"], 7))


def test_an_answer_of_one_token(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "forever", most=1)
        equal(dialect.name, (said.finish, said.usage["output"]), (dialect.ends["length"], 1))


def test_an_answer_that_fills_the_context(teaspoon):
    # Without eos nothing but the context ends it.
    for dialect in ALL:
        more = {"options": {"ignore_eos": True, "num_predict": -1}} if dialect is OLLAMA else {"ignore_eos": True}
        most = {} if dialect in (OLLAMA, RESPONSES) else {"most": 10**6}
        body = dialect.body("teaspoon", "Tell me a story about a fox. " * 300, **most, **more)
        said = dialect.streamed(teaspoon.server(), body)
        equal(dialect.name, said.finish, dialect.ends["full"])
        total = said.usage["input"] + said.usage["output"] + (said.usage["cached"] if dialect is MESSAGES else 0)
        equal(dialect.name + ": tokens", total, 4096)


def test_a_whole_tool_call(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "call", tools=TOOLS)
        equal(dialect.name, (said.text, said.finish), ("", dialect.ends["call"]))
        equal(dialect.name, [(call.name, call.arguments) for call in said.calls], [("get_weather", {"city": "Athens"})])


def test_text_before_a_tool_call(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "words_and_call", tools=TOOLS)
        equal(dialect.name, (said.text.rstrip("\n"), said.finish), ("Let me look at that.", dialect.ends["call"]))
        equal(dialect.name, [(call.name, call.arguments) for call in said.calls], [("get_weather", {"city": "Bergen"})])


def test_three_tool_calls_at_once(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "calls", tools=TOOLS)
        equal(dialect.name, [call.arguments["city"] for call in said.calls], ["Oslo", "Turin", "Lima"])
        equal(dialect.name, (said.text.strip(), said.finish), ("", dialect.ends["call"]))


def test_a_tool_call_without_arguments(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "no_arguments", tools=TOOLS)
        equal(dialect.name, [(call.name, call.arguments) for call in said.calls], [("get_time", {})])


def test_arguments_with_every_kind_of_character(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "deep_arguments", tools=TOOLS)
        equal(dialect.name, [call.arguments for call in said.calls],
              [{"to": "Zo\u00eb", "text": 'tea \u2615 "hot" \\ {brace} </tool> \U0001F389', "n": [1, 2.5, None]}])


def test_a_length_that_cuts_a_tool_call(scripted):
    for dialect in ALL:
        for most in range(1, 8):
            said = ask(dialect, scripted, "call", most=most, tools=TOOLS)
            equal("%s, %d tokens" % (dialect.name, most), said.finish, dialect.ends["cut call"])


def test_a_tool_call_is_text_if_no_tools_were_given(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "call")
        equal(dialect.name, (said.text, said.calls, said.finish), (text_of("call").decode(), [], dialect.ends["eos"]))


def test_thoughts_are_told_from_the_answer(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "thought")
        equal(dialect.name, (said.text, said.finish), ("The answer is four.", dialect.ends["eos"]))
        equal(dialect.name, said.reasoning.strip(), "Two and two make four.")
        if dialect in (CHAT, RESPONSES):
            assert 0 < said.usage["reasoning"] < said.usage["output"], said.usage


def test_thoughts_before_a_tool_call(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "thought_and_call", tools=TOOLS)
        equal(dialect.name, said.reasoning.strip(), "I need the weather.")
        equal(dialect.name, [call.arguments for call in said.calls], [{"city": "Cairo"}])
        equal(dialect.name, (said.text, said.finish), ("", dialect.ends["call"]))


def test_a_thought_that_has_no_end(scripted):
    for dialect in ALL:
        said = ask(dialect, scripted, "open_thought")
        equal(dialect.name, (said.reasoning.strip(), said.text), ("This thought has no end", ""))


def test_what_a_prompt_has_cached_is_counted(scripted):
    text = "A long beginning that both share. " * 40 + "say %s."
    for dialect in OPENAI_AND_ANTHROPIC:
        body = dialect.body("scripted", dialect.name + text % "hello")
        first = dialect.whole(scripted.server(), body)
        again = dialect.whole(scripted.server(), body)
        assert first.usage["cached"] < 64, (dialect.name, first.usage)
        assert again.usage["cached"] > 1200, (dialect.name, again.usage)
        if dialect is MESSAGES:
            equal("all of the prompt", sum(first.usage[name] for name in ("input", "cached")),
                  sum(again.usage[name] for name in ("input", "cached")))
        else:
            equal(dialect.name, first.usage["input"], again.usage["input"])


def test_usage_counts_all_choices_and_calls(scripted):
    server = scripted.server()
    from checkers import chat_stream
    body = CHAT.body("scripted", "say calls.", tools=TOOLS)
    one = CHAT.streamed(server, body).usage
    three = chat_stream(server.events(CHAT.path, {**body, "n": 3, "stream_options": {"include_usage": True}}),
                        n=3, include_usage=True)
    equal("three", three[0].usage["output"], 3 * one["output"])
    equal("prompt", three[0].usage["input"], one["input"])


def test_usage_agrees_with_count_tokens(scripted):
    server = scripted.server()
    body = MESSAGES.body("scripted", "say hello.", tools=(TIME,), system="Be brief.")
    said = MESSAGES.whole(server, body)
    counted = server.post("/v1/messages/count_tokens", {name: body[name] for name in body if name != "max_tokens"})
    equal("count_tokens", counted.json(), {"input_tokens": said.usage["input"] + said.usage["cached"]})
    body = RESPONSES.body("scripted", "say hello.")
    counted = server.post("/v1/responses/input_tokens", {"model": "scripted", "input": "say hello."})
    equal("input_tokens", counted.json(), {"object": "response.input_tokens",
                                           "input_tokens": RESPONSES.whole(server, body).usage["input"]})


def test_completions_end_as_chats_do(scripted):
    import checkers
    server, path = scripted.server(), "/v1/completions"
    for body, finish, tokens in (({"max_tokens": 5}, "length", 5), ({}, "length", 16)):
        body = {"model": "scripted", "prompt": "Once upon", **body}
        whole = checkers.completion_answer(server.post(path, body).json())[0]
        streamed = checkers.completion_stream(
            server.events(path, {**body, "stream_options": {"include_usage": True}}), include_usage=True)[0]
        for said in (whole, streamed):
            equal("completion", (said.finish, said.usage["output"]), (finish, tokens))
        equal("text", whole.text, streamed.text)
