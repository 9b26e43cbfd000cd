"""LangChain by four roads: chat/completions, responses, Anthropic's messages and Ollama's chat."""
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

from dialects import equal
from scripted_model import text_of

HELLO = text_of("hello").decode()


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city"""
    return "sunny, 29 degrees"


def roads(pair):
    openai = {"model": pair.model, "base_url": pair.url + "/v1", "api_key": pair.key, "max_retries": 0, "timeout": 30}
    yield "chat", ChatOpenAI(**openai, temperature=0)
    yield "chat, streamed", ChatOpenAI(**openai, temperature=0, streaming=True, stream_usage=True)
    yield "responses", ChatOpenAI(**openai, temperature=0, use_responses_api=True, output_version="responses/v1")
    yield "responses, streamed", ChatOpenAI(**openai, temperature=0, use_responses_api=True, streaming=True)
    yield "messages", ChatAnthropic(model=pair.model, base_url=pair.url, api_key=pair.key, max_retries=0, timeout=30, max_tokens=500)
    yield "ollama", ChatOllama(model=pair.model, base_url=pair.url, temperature=0,
                               client_kwargs={"headers": {"Authorization": "Bearer " + pair.key}, "timeout": 30})


def text_in(message):
    return message.text if isinstance(message.text, str) else message.text()


def test_each_road_answers_and_counts(scripted):
    for name, model in roads(scripted):
        said = model.invoke([SystemMessage("Be brief."), HumanMessage("say hello.")])
        equal(name, text_in(said), HELLO)
        assert said.usage_metadata["output_tokens"] > 1 and said.usage_metadata["input_tokens"] > 1, (name, said.usage_metadata)


def test_each_road_streams(scripted):
    for name, model in roads(scripted):
        pieces = list(model.stream("say hello."))
        whole = pieces[0]
        for piece in pieces[1:]:
            whole += piece
        equal(name, text_in(whole), HELLO)
        assert len([piece for piece in pieces if text_in(piece)]) > 1, "%s: it was not streamed" % name


def test_each_road_calls_three_tools(scripted):
    for name, model in roads(scripted):
        said = model.bind_tools([get_weather]).invoke("say calls.")
        equal(name, [call["args"] for call in said.tool_calls], [{"city": city} for city in ("Oslo", "Turin", "Lima")])
        equal(name + ": invalid", said.invalid_tool_calls, [])


def test_each_road_streams_calls(scripted):
    for name, model in roads(scripted):
        whole = None
        for piece in model.bind_tools([get_weather]).stream("say calls."):
            whole = piece if whole is None else whole + piece
        equal(name, [call["args"] for call in whole.tool_calls], [{"city": city} for city in ("Oslo", "Turin", "Lima")])


def test_each_road_reads_the_answer_of_a_tool(scripted):
    for name, model in roads(scripted):
        turns = [HumanMessage("say call.")]
        turns.append(model.bind_tools([get_weather]).invoke(turns))
        call = turns[-1].tool_calls[0]
        turns.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
        equal(name, text_in(model.bind_tools([get_weather]).invoke(turns)), text_of("done").decode())


def test_teaspoon_holds_a_conversation_with_a_tool(teaspoon):
    for name, model in roads(teaspoon):
        if name == "messages":
            model = model.bind(temperature=0)
        turns = [HumanMessage("Is it warm in Athens?")]
        turns.append(model.bind_tools([get_weather]).invoke(turns))
        assert turns[-1].tool_calls, "%s: no call: %s" % (name, turns[-1])
        call = turns[-1].tool_calls[0]
        equal(name, (call["name"], call["args"]), ("get_weather", {"city": "Athens"}))
        turns.append(ToolMessage("sunny, 29 degrees", tool_call_id=call["id"]))
        said = text_in(model.bind_tools([get_weather]).invoke(turns))
        assert "29" in said or "sunny" in said, (name, said)


def test_errors_reach_the_caller(scripted):
    for name, model in roads(scripted):
        other = model.model_copy(update={"model_name" if hasattr(model, "model_name") else "model": "no-such"})
        try:
            other.invoke("say hello.")
        except Exception as error:
            assert getattr(error, "status_code", None) == 404, (name, repr(error))
        else:
            raise AssertionError("%s: no error" % name)


def test_logprobs_reach_the_caller(scripted):
    model = dict(roads(scripted))["chat"].bind(logprobs=True, top_logprobs=2)
    entries = model.invoke("say hello.").response_metadata["logprobs"]["content"]
    equal("text", "".join(entry["token"] for entry in entries), HELLO)


def test_a_stream_that_is_left_ends(scripted):
    for name, model in roads(scripted):
        if name == "messages":
            model = model.model_copy(update={"max_tokens": 10**6})
        stream = model.stream("say forever.")
        for _, _ in zip(range(5), stream):
            pass
        stream.close()
        del stream
        scripted.until_idle()
