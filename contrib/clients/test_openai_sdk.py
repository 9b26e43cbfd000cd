"""The official Python client of OpenAI against chat/completions, completions, responses and models."""
import base64

import openai
import pydantic
from openai import OpenAI

from dialects import TOOLS, WEATHER, chat_tools, equal, responses_tools
from scripted_model import END, text_of
from servers import Pair

HELLO = text_of("hello").decode()
SUM = [{"role": "user", "content": "What is two plus three?"}]


def client(pair, **more):
    return OpenAI(base_url=pair.url + "/v1", api_key=pair.key, max_retries=0, timeout=30, **more)


def say(script):
    return [{"role": "user", "content": "say %s." % script}]


def test_teaspoon_answers_streams_and_counts(teaspoon):
    asked = client(teaspoon).chat.completions
    said = asked.create(model="teaspoon", messages=SUM, temperature=0)
    assert "five" in said.choices[0].message.content, said
    pieces = list(asked.create(model="teaspoon", messages=SUM, temperature=0, stream=True, stream_options={"include_usage": True}))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    equal("streamed", text, said.choices[0].message.content)
    equal("usage", pieces[-1].usage.completion_tokens, said.usage.completion_tokens)
    assert len([piece for piece in pieces if piece.choices and piece.choices[0].delta.content]) > 1, "it was not streamed"


def test_teaspoon_calls_a_tool_and_reads_its_answer(teaspoon):
    asked, tools = client(teaspoon).chat.completions, chat_tools((WEATHER,))
    turns = [{"role": "user", "content": "Is it warm in Athens?"}]
    first = asked.create(model="teaspoon", messages=turns, tools=tools, temperature=0)
    equal("finish", first.choices[0].finish_reason, "tool_calls")
    call = first.choices[0].message.tool_calls[0]
    equal("name", call.function.name, "get_weather")
    assert "Athens" in call.function.arguments, call
    turns += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny, 29 degrees"}]
    last = asked.create(model="teaspoon", messages=turns, tools=tools, temperature=0)
    equal("finish", last.choices[0].finish_reason, "stop")
    assert "29" in last.choices[0].message.content or "sunny" in last.choices[0].message.content, last


def test_the_helper_for_streams_gathers_three_calls(scripted):
    with client(scripted).chat.completions.stream(model="scripted", messages=say("calls"), tools=chat_tools()) as stream:
        events = [event.type for event in stream]
        said = stream.get_final_completion()
    calls = said.choices[0].message.tool_calls
    equal("cities", [call.function.arguments for call in calls], ['{"city": "%s"}' % city for city in ("Oslo", "Turin", "Lima")])
    equal("ends of calls", events.count("tool_calls.function.arguments.done"), 3)
    equal("finish", said.choices[0].finish_reason, "tool_calls")


def test_choices_come_in_order_and_each_has_its_text(scripted):
    with client(scripted).chat.completions.stream(model="scripted", messages=say("hello"), n=4) as stream:
        list(stream)
        said = stream.get_final_completion()
    equal("texts", [choice.message.content for choice in said.choices], [HELLO] * 4)


def test_logprobs_are_of_the_tokens_that_were_sent(teaspoon):
    asked = client(teaspoon).chat.completions
    said = asked.create(model="teaspoon", messages=SUM, temperature=0, logprobs=True, top_logprobs=3)
    entries = said.choices[0].logprobs.content
    equal("text", b"".join(bytes(entry.bytes) for entry in entries).decode(), said.choices[0].message.content)
    for entry in entries:
        equal("likeliest", (entry.top_logprobs[0].token, entry.top_logprobs[0].logprob), (entry.token, entry.logprob))
        equal("alternatives", len(entry.top_logprobs), 3)
    streamed = asked.create(model="teaspoon", messages=SUM, temperature=0, logprobs=True, top_logprobs=3, stream=True)
    again = [entry for piece in streamed if piece.choices and piece.choices[0].logprobs for entry in piece.choices[0].logprobs.content]
    equal("streamed", [(entry.token, entry.logprob) for entry in again], [(entry.token, entry.logprob) for entry in entries])


def test_logprobs_of_split_characters_have_their_bytes(scripted):
    said = client(scripted).chat.completions.create(model="scripted", messages=say("emoji"), logprobs=True, top_logprobs=2)
    entries = said.choices[0].logprobs.content
    equal("bytes", b"".join(bytes(entry.bytes) for entry in entries), text_of("emoji"))
    pieces = client(scripted).chat.completions.create(model="scripted", messages=say("emoji"), logprobs=True, stream=True)
    text, data = "", b""
    for piece in pieces:
        text += piece.choices[0].delta.content or ""
        data += b"".join(bytes(entry.bytes) for entry in (piece.choices[0].logprobs.content if piece.choices[0].logprobs else []))
        assert text.encode().startswith(data), "logprobs of a character that has not come: %r, %r" % (data, text)
    equal("in the end", data, text.encode())


def test_a_seed_draws_the_same_again(teaspoon):
    def story(seed):
        return client(teaspoon).chat.completions.create(
            model="teaspoon", messages=[{"role": "user", "content": "Tell me a story about a fox."}], temperature=1.5, seed=seed,
            max_tokens=60, extra_body={"min_p": 0}).choices[0].message.content
    for seed in (1, -1, 2**63 - 1, -2**63):
        equal(seed, story(seed), story(seed))
    assert story(1) != story(2), "two seeds draw the same"


def test_the_client_closes_a_stream_and_it_ends(scripted):
    stream = client(scripted).chat.completions.create(model="scripted", messages=say("forever"), stream=True)
    for _, _ in zip(range(20), stream):
        pass
    equal("alive", scripted.alive(), 1)
    stream.close()
    scripted.until_idle()
    stream = client(scripted).responses.create(model="scripted", input="say forever.", stream=True, store=False)
    for _, _ in zip(range(20), stream):
        pass
    stream.close()
    scripted.until_idle()


def raised(kind, ask, *more, **named):
    try:
        ask(*more, **named)
    except kind as error:
        return error
    raise AssertionError("no %s" % kind.__name__)


def test_errors_are_raised_as_what_they_are(scripted, teaspoon):
    asked = client(scripted)
    error = raised(openai.NotFoundError, asked.chat.completions.create, model="no-such", messages=say("hello"))
    equal("code", (error.code, error.status_code), ("model_not_found", 404))
    assert error.request_id, "no request id"
    raised(openai.BadRequestError, asked.chat.completions.create, model="scripted", messages=say("hello"), temperature=9999)
    error = raised(openai.BadRequestError, client(teaspoon).chat.completions.create, model="teaspoon",
                   messages=[{"role": "user", "content": "word " * 6000}])
    equal("code", error.code, "context_length_exceeded")
    error = raised(openai.AuthenticationError, OpenAI(base_url=scripted.url + "/v1", api_key="wrong").models.list)
    equal("code", error.code, "invalid_api_key")
    error = raised(openai.BadRequestError, asked.embeddings.create, model="scripted", input="x")
    raised(openai.NotFoundError, asked.responses.retrieve, "resp_none")


def test_a_deadline_of_the_client_ends_the_stream(scripted):
    asked = client(scripted).with_options(timeout=0.5)
    raised(openai.APITimeoutError, asked.chat.completions.create, model="scripted", messages=say("forever"))
    scripted.until_idle()


def test_models_are_listed_and_found(scripted):
    asked = client(scripted)
    models = asked.models.list().data
    equal("models", [model.id for model in models], ["scripted"])
    assert models[0].created > 0 and models[0].object == "model" and models[0].owned_by, models
    equal("one", asked.models.retrieve("scripted").id, "scripted")


def test_completions_of_texts_and_ids(scripted):
    asked = client(scripted).completions
    said = asked.create(model="scripted", prompt="Say it!")
    equal("text", (said.choices[0].text, said.choices[0].finish_reason), (HELLO, "stop"))
    said = asked.create(model="scripted", prompt=["One!", "Two?"], max_tokens=40)
    equal("two prompts", [(choice.index, choice.text) for choice in said.choices],
          [(0, HELLO), (1, text_of("numbers").decode())])
    said = asked.create(model="scripted", prompt=[ord("!")], max_tokens=40)
    equal("ids", said.choices[0].text, HELLO)
    said = asked.create(model="scripted", prompt=[[ord("!")], [ord("?")]], max_tokens=40, n=2)
    equal("lists of ids", [choice.text for choice in said.choices], [HELLO, HELLO] + [text_of("numbers").decode()] * 2)
    said = asked.create(model="scripted", prompt="Say it!", echo=True)
    equal("echo", said.choices[0].text, "Say it!" + HELLO)
    pieces = list(asked.create(model="scripted", prompt="Say it!", stream=True, logprobs=2, stream_options={"include_usage": True}))
    equal("streamed", "".join(piece.choices[0].text for piece in pieces if piece.choices), HELLO)
    tokens = [token for piece in pieces if piece.choices and piece.choices[0].logprobs for token in piece.choices[0].logprobs.tokens]
    equal("tokens", "".join(tokens), HELLO + END)
    assert pieces[-1].usage.completion_tokens > 1


def test_a_client_may_stop_and_look_at_both_kinds_of_stop(scripted):
    said = client(scripted).chat.completions.create(model="scripted", messages=say("numbers"), stop=["four"])
    equal("text", said.choices[0].message.content, "one two three ")


def test_responses_answer_stream_and_count(teaspoon):
    asked = client(teaspoon).responses
    said = asked.create(model="teaspoon", input="What is two plus three?", temperature=0, store=False)
    assert "five" in said.output_text, said
    with asked.stream(model="teaspoon", input="What is two plus three?", temperature=0, store=False) as stream:
        kinds = [event.type for event in stream]
        again = stream.get_final_response()
    equal("streamed", again.output_text, said.output_text)
    equal("usage", again.usage.output_tokens, said.usage.output_tokens)
    assert kinds.count("response.output_text.delta") > 1, kinds
    equal("first and last", (kinds[0], kinds[-1]), ("response.created", "response.completed"))


def test_responses_call_tools_and_read_their_answers(teaspoon, scripted):
    asked, tools = client(teaspoon).responses, responses_tools((WEATHER,))
    turns = [{"role": "user", "content": "Is it warm in Athens?"}]
    first = asked.create(model="teaspoon", input=turns, tools=tools, temperature=0, store=False)
    call = [item for item in first.output if item.type == "function_call"][0]
    turns += [item.model_dump() for item in first.output]
    turns.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny, 29 degrees"})
    last = asked.create(model="teaspoon", input=turns, tools=tools, temperature=0, store=False)
    assert "29" in last.output_text or "sunny" in last.output_text, last
    with client(scripted).responses.stream(model="scripted", input="say calls.", tools=responses_tools(), store=False) as stream:
        list(stream)
        said = stream.get_final_response()
    equal("cities", [item.arguments for item in said.output], ['{"city": "%s"}' % city for city in ("Oslo", "Turin", "Lima")])


def test_the_tool_helpers_get_arguments_of_their_models(teaspoon):
    class Weather(pydantic.BaseModel):
        city: str = pydantic.Field(max_length=20)
        days: int = pydantic.Field(ge=0, le=30)

    tool = openai.pydantic_function_tool(Weather)
    named = {"type": "function", "function": {"name": "Weather"}}
    for choice in ("required", named):
        for text in ("How is the weather in Tula?", "Why is the sky blue?", "Tell me a story."):
            asked = {"model": "teaspoon", "messages": [{"role": "user", "content": text}], "tools": [tool], "max_tokens": 400}
            said = client(teaspoon).chat.completions.parse(tool_choice=choice, parallel_tool_calls=False, **asked)
            calls = said.choices[0].message.tool_calls
            equal("calls", len(calls), 1)
            assert isinstance(calls[0].function.parsed_arguments, Weather), calls
            with client(teaspoon).chat.completions.stream(tool_choice=choice, parallel_tool_calls=False, **asked) as stream:
                calls = stream.get_final_completion().choices[0].message.tool_calls
            assert isinstance(calls[0].function.parsed_arguments, Weather), calls


def test_forced_calls_go_on_from_a_stored_response(teaspoon):
    asked = client(teaspoon).responses
    first = asked.create(model="teaspoon", input="hi", tools=responses_tools(), max_output_tokens=100)
    for _ in range(3):
        said = asked.create(model="teaspoon", previous_response_id=first.id, input="What time is it?", tools=responses_tools(),
                            tool_choice={"type": "function", "name": "get_time"}, max_output_tokens=400)
        equal("items", [(item.type, item.name) for item in said.output], [("function_call", "get_time")])
        first = asked.create(model="teaspoon", previous_response_id=said.id, tools=responses_tools(), max_output_tokens=100, input=[
            {"type": "function_call_output", "call_id": said.output[0].call_id, "output": "noon"}])


def test_a_response_goes_on_from_an_earlier_one(scripted):
    asked = client(scripted).responses
    first = asked.create(model="scripted", input="say call.", tools=responses_tools(), store=True)
    call = first.output[0]
    last = asked.create(model="scripted", previous_response_id=first.id, tools=responses_tools(),
                        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "warm"}])
    equal("text", last.output_text, text_of("done").decode())
    assert last.usage.input_tokens > first.usage.input_tokens, (first.usage, last.usage)
    equal("stored", asked.retrieve(first.id).output[0].call_id, call.call_id)
    asked.delete(first.id)
    raised(openai.NotFoundError, asked.retrieve, first.id)
    raised(openai.APIStatusError, asked.create, model="scripted", input="say hello.",
           previous_response_id="resp_none")


def test_an_async_client_is_served_too(scripted):
    import asyncio

    async def many():
        asked = openai.AsyncOpenAI(base_url=scripted.url + "/v1", api_key=scripted.key, max_retries=0)
        said = await asyncio.gather(*(asked.chat.completions.create(model="scripted", messages=say("hello")) for _ in range(20)))
        await asked.close()
        return [one.choices[0].message.content for one in said]
    equal("texts", asyncio.run(many()), [HELLO] * 20)


def test_audio_and_images_are_refused_as_bad_requests(scripted):
    image = "data:image/png;base64," + base64.b64encode(b"png").decode()
    raised(openai.BadRequestError, client(scripted).chat.completions.create, model="scripted", messages=[
        {"role": "user", "content": [{"type": "text", "text": "say hello."}, {"type": "image_url", "image_url": {"url": image}}]}])


def test_the_client_tries_again_when_it_is_told_to_wait(build):
    pair = Pair(build, "scripted", daemon=["--uid-requests", 1])
    held = client(pair).chat.completions.create(model="scripted", messages=say("forever"), stream=True)
    next(iter(held))
    error = raised(openai.RateLimitError, client(pair).chat.completions.create, model="scripted", messages=say("hello"))
    assert int(error.response.headers["retry-after"]) > 0
    held.close()
    pair.until_idle()
    equal("now", client(pair).chat.completions.create(model="scripted", messages=say("hello")).choices[0].message.content, HELLO)
