"""The official Python client of Anthropic."""
import anthropic
from anthropic import Anthropic

from dialects import TOOLS, WEATHER, equal, messages_tools
from scripted_model import text_of
from test_openai_sdk import raised, say

HELLO = text_of("hello").decode()


def client(pair, **more):
    return Anthropic(base_url=pair.url, max_retries=0, timeout=30, **({"api_key": pair.key} if "auth_token" not in more else {}), **more)


def ask(text):
    return {"max_tokens": 200, "messages": [{"role": "user", "content": text}]}


def test_teaspoon_answers_streams_and_counts(teaspoon):
    asked = client(teaspoon).messages
    question = {**ask("What is two plus three?"), "model": "teaspoon", "extra_body": {"temperature": 0}}
    said = asked.create(**question)
    assert "five" in said.content[0].text, said
    equal("ends", said.stop_reason, "end_turn")
    with asked.stream(**question) as stream:
        pieces = list(stream.text_stream)
        again = stream.get_final_message()
    assert len(pieces) > 1 and "five" in "".join(pieces), pieces
    equal("text", again.content[0].text, "".join(pieces))
    equal("usage", again.usage.input_tokens + (again.usage.cache_read_input_tokens or 0),
          asked.count_tokens(model="teaspoon", messages=question["messages"]).input_tokens)


def test_teaspoon_calls_a_tool_and_reads_its_answer(teaspoon):
    asked, tools = client(teaspoon).messages, messages_tools((WEATHER,))
    turns = [{"role": "user", "content": "Is it warm in Athens?"}]
    first = asked.create(model="teaspoon", max_tokens=200, messages=turns, tools=tools, extra_body={"temperature": 0})
    equal("ends", first.stop_reason, "tool_use")
    call = [block for block in first.content if block.type == "tool_use"][0]
    equal("call", (call.name, call.input), ("get_weather", {"city": "Athens"}))
    turns += [{"role": "assistant", "content": first.content},
              {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                            "content": [{"type": "text", "text": "sunny, 29 degrees"}]}]}]
    last = asked.create(model="teaspoon", max_tokens=200, messages=turns, tools=tools, extra_body={"temperature": 0})
    assert "29" in last.content[0].text or "sunny" in last.content[0].text, last


def test_a_stream_of_three_calls_is_gathered(scripted):
    with client(scripted).messages.stream(model="scripted", tools=messages_tools(), **ask("say calls.")) as stream:
        kinds = [event.type for event in stream]
        said = stream.get_final_message()
    equal("calls", [block.input["city"] for block in said.content if block.type == "tool_use"], ["Oslo", "Turin", "Lima"])
    assert kinds.count("content_block_stop") >= 3, kinds
    equal("ends", said.stop_reason, "tool_use")


def test_a_tool_that_failed_is_told(scripted):
    asked = client(scripted).messages
    first = asked.create(model="scripted", tools=messages_tools(), **ask("say call."))
    turns = [{"role": "user", "content": "say call."}, {"role": "assistant", "content": first.content},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": first.content[0].id, "is_error": True, "content": "no"}]}]
    equal("text", asked.create(model="scripted", max_tokens=99, tools=messages_tools(), messages=turns).content[0].text,
          text_of("done").decode())


def test_thoughts_are_blocks_of_their_own(scripted):
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with client(scripted).messages.stream(model="scripted", max_tokens=2000, messages=say("thought"), **thinking) as stream:
        list(stream)
        said = stream.get_final_message()
    equal("blocks", [block.type for block in said.content], ["thinking", "text"])
    turns = [*say("thought"), {"role": "assistant", "content": said.content}, *say("hello")]
    equal("sent back", client(scripted).messages.create(model="scripted", max_tokens=99, messages=turns).content[0].text, HELLO)


def test_which_stop_string_was_met_is_told(scripted):
    said = client(scripted).messages.create(model="scripted", stop_sequences=["nine", "e f"], **ask("say numbers."))
    equal("stop", (said.stop_reason, said.stop_sequence, said.content[0].text), ("stop_sequence", "e f", "one two thre"))


def test_errors_are_raised_as_what_they_are(scripted, teaspoon):
    asked = client(scripted).messages
    error = raised(anthropic.NotFoundError, asked.create, model="no-such", **ask("say hello."))
    equal("type", error.body["error"]["type"], "not_found_error")
    assert error.request_id, "no request id"
    error = raised(anthropic.BadRequestError, client(teaspoon).messages.create, model="teaspoon", **ask("word " * 6000))
    assert "prompt is too long" in str(error), error
    raised(anthropic.AuthenticationError, Anthropic(base_url=scripted.url, api_key="wrong").messages.create, model="scripted", **ask("x"))
    raised(anthropic.BadRequestError, asked.create, model="scripted", tools=messages_tools(), tool_choice={"type": "no-such"}, **ask("x"))


def test_a_bearer_token_serves_as_a_key(scripted):
    asked = client(scripted, auth_token=scripted.key)
    equal("text", asked.messages.create(model="scripted", **ask("say hello.")).content[0].text, HELLO)


def test_the_client_leaves_a_stream_and_it_ends(scripted):
    with client(scripted).messages.stream(model="scripted", max_tokens=10**6, messages=say("forever")) as stream:
        for _, _ in zip(range(20), stream):
            pass
        equal("alive", scripted.alive(), 1)
    scripted.until_idle()


def test_models_are_listed_in_its_form(scripted):
    models = list(client(scripted).models.list())
    equal("ids", [model.id for model in models], ["scripted"])
    assert models[0].display_name and models[0].created_at.year > 2000, models
    equal("one", client(scripted).models.retrieve("scripted").id, "scripted")


def test_tokens_are_counted_with_tools_and_system_blocks(scripted):
    asked = client(scripted).messages
    plain = asked.count_tokens(model="scripted", messages=say("hello")).input_tokens
    more = asked.count_tokens(model="scripted", messages=say("hello"), tools=messages_tools(TOOLS),
                              system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]).input_tokens
    assert more > plain + 100, (plain, more)
