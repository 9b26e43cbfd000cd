"""litellm, which speaks all four dialects, with quirks of its own."""
import json

import litellm

from dialects import WEATHER, chat_tools, equal
from scripted_model import text_of
from test_openai_sdk import raised, say

HELLO = text_of("hello").decode()


def roads(pair):
    yield "openai", {"model": "openai/" + pair.model, "api_base": pair.url + "/v1", "api_key": pair.key}
    yield "hosted_vllm", {"model": "hosted_vllm/" + pair.model, "api_base": pair.url + "/v1", "api_key": pair.key}
    yield "anthropic", {"model": "anthropic/" + pair.model, "api_base": pair.url, "api_key": pair.key}
    yield "ollama_chat", {"model": "ollama_chat/" + pair.model, "api_base": pair.url, "api_key": pair.key}


def ask(road, messages, **more):
    return litellm.completion(messages=messages, num_retries=0, timeout=30, **road, **more)


def test_each_road_answers_and_counts(scripted):
    for name, road in roads(scripted):
        said = ask(road, say("hello"))
        equal(name, said.choices[0].message.content, HELLO)
        assert said.usage.completion_tokens > 1 and said.usage.prompt_tokens > 1, (name, said.usage)


def test_each_road_streams(scripted):
    for name, road in roads(scripted):
        pieces = list(ask(road, say("hello"), stream=True, stream_options={"include_usage": True}))
        equal(name, "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices), HELLO)
        equal(name, [piece.choices[0].finish_reason for piece in pieces if piece.choices and piece.choices[0].finish_reason], ["stop"])


def test_each_road_calls_tools(scripted):
    for name, road in roads(scripted):
        said = ask(road, say("call"), tools=chat_tools((WEATHER,)))
        calls = said.choices[0].message.tool_calls
        equal(name, [(call.function.name, call.function.arguments.replace(" ", "")) for call in calls], [("get_weather", '{"city":"Athens"}')])
        equal(name, said.choices[0].finish_reason, "tool_calls")


def test_each_road_reads_the_answer_of_a_tool(scripted):
    for name, road in roads(scripted):
        tools = chat_tools((WEATHER,))
        first = ask(road, say("call"), tools=tools).choices[0].message
        turns = [*say("call"), first.model_dump(), {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "warm"}]
        equal(name, ask(road, turns, tools=tools).choices[0].message.content, text_of("done").decode())


def test_thoughts_reach_the_caller(scripted):
    for name, road in roads(scripted):
        said = ask(road, say("thought")).choices[0].message
        equal(name, (said.content, (said.reasoning_content or "").strip()), ("The answer is four.", "Two and two make four."))


def test_responses_answer(scripted):
    said = litellm.responses(model="openai/scripted", input="say hello.", api_base=scripted.url + "/v1", api_key=scripted.key)
    equal("text", said.output[0].content[0].text, HELLO)


def test_errors_are_raised_as_what_they_are(scripted, teaspoon):
    for name, road in roads(scripted):
        error = raised(Exception, ask, {**road, "model": road["model"].replace("scripted", "no-such")}, say("hello"))
        equal(name, getattr(error, "status_code", None), 404)
    for name, road in roads(teaspoon):
        error = raised(litellm.BadRequestError, ask, road, [{"role": "user", "content": "word " * 6000}])
        if name != "ollama_chat":
            assert isinstance(error, litellm.ContextWindowExceededError), (name, repr(error))


def test_teaspoon_answers_on_each_road(teaspoon):
    for name, road in roads(teaspoon):
        said = ask(road, [{"role": "user", "content": "What is two plus three?"}], temperature=0).choices[0].message.content
        assert "five" in said, (name, said)


def test_the_usage_of_a_stream_is_that_of_the_whole_answer(scripted):
    for name, road in roads(scripted):
        whole = ask(road, say("numbers")).usage
        pieces = list(ask(road, say("numbers"), stream=True, stream_options={"include_usage": True}))
        told = [piece.usage for piece in pieces if getattr(piece, "usage", None)]
        equal("%s: how often" % name, len(told), 1)
        equal(name, (told[0].prompt_tokens, told[0].completion_tokens), (whole.prompt_tokens, whole.completion_tokens))
        equal("%s: sum" % name, told[0].total_tokens, whole.prompt_tokens + whole.completion_tokens)


def test_logprobs_reach_the_caller(scripted):
    for name, road in roads(scripted):
        if not name.startswith(("openai", "hosted")):
            continue                    # litellm does not ask Anthropic or Ollama for them
        asked = {"logprobs": True, "top_logprobs": 2}
        entries = ask(road, say("numbers"), **asked).choices[0].logprobs.content
        equal(name, "".join(entry.token for entry in entries), text_of("numbers").decode())
        assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 2 for entry in entries), (name, entries)
        streamed = [entry for piece in ask(road, say("numbers"), stream=True, **asked) for choice in piece.choices
                    if getattr(choice, "logprobs", None) for entry in choice.logprobs.content]
        equal("%s: streamed" % name, [(entry["token"], entry["logprob"]) for entry in map(dict, streamed)],
              [(entry.token, entry.logprob) for entry in entries])


def test_a_stream_that_is_left_ends(scripted):
    for name, road in roads(scripted):
        stream = ask(road, say("forever"), stream=True, max_tokens=10**6)
        for _, _ in zip(range(5), stream):
            pass
        equal(name, scripted.alive(), 1)
        stream.close()
        del stream
        scripted.until_idle()


def test_teaspoon_calls_a_tool_and_reads_its_answer_on_each_road(teaspoon):
    for name, road in roads(teaspoon):
        tools, turns = chat_tools((WEATHER,)), [{"role": "user", "content": "Is it warm in Athens?"}]
        first = ask(road, turns, tools=tools, temperature=0)
        call = first.choices[0].message.tool_calls[0]
        equal(name, (call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Athens"}))
        turns += [first.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny, 29 degrees"}]
        said = ask(road, turns, tools=tools, temperature=0).choices[0].message.content
        assert "29" in said or "sunny" in said, (name, said)
