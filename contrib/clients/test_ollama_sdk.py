"""The official Python client of Ollama."""
import ollama

from dialects import TOOLS, WEATHER, chat_tools, equal
from scripted_model import text_of
from test_openai_sdk import raised, say

HELLO = text_of("hello").decode()


def client(pair):
    return ollama.Client(host=pair.url, headers={"Authorization": "Bearer " + pair.key}, timeout=30)


def test_teaspoon_answers_streams_and_counts(teaspoon):
    question = [{"role": "user", "content": "What is two plus three?"}]
    said = client(teaspoon).chat("teaspoon", question, options={"temperature": 0})
    assert "five" in said.message.content, said
    pieces = list(client(teaspoon).chat("teaspoon", question, options={"temperature": 0}, stream=True))
    equal("streamed", "".join(piece.message.content for piece in pieces), said.message.content)
    equal("counts", (pieces[-1].eval_count, pieces[-1].prompt_eval_count), (said.eval_count, said.prompt_eval_count))
    assert len(pieces) > 2, "it was not streamed"
    said = client(teaspoon).generate("teaspoon", "What is two plus three?", options={"temperature": 0})
    assert "five" in said.response, said


def test_teaspoon_calls_a_tool_and_reads_its_answer(teaspoon):
    turns, tools = [{"role": "user", "content": "Is it warm in Athens?"}], chat_tools((WEATHER,))
    first = client(teaspoon).chat("teaspoon", turns, tools=tools, options={"temperature": 0})
    call = first.message.tool_calls[0].function
    equal("call", (call.name, dict(call.arguments)), ("get_weather", {"city": "Athens"}))
    turns += [first.message, {"role": "tool", "content": "sunny, 29 degrees", "tool_name": "get_weather"}]
    last = client(teaspoon).chat("teaspoon", turns, tools=tools, options={"temperature": 0})
    assert "29" in last.message.content or "sunny" in last.message.content, last


def test_three_calls_are_gathered_from_a_stream(scripted):
    pieces = list(client(scripted).chat("scripted", say("calls"), tools=chat_tools(TOOLS), stream=True))
    calls = [call.function.arguments["city"] for piece in pieces for call in piece.message.tool_calls or []]
    equal("cities", calls, ["Oslo", "Turin", "Lima"])


def test_a_function_serves_as_a_tool(scripted):
    def get_weather(city: str) -> str:
        """Get the weather.

        Args:
            city: which city
        """
        return city
    said = client(scripted).chat("scripted", say("call"), tools=[get_weather])
    equal("call", dict(said.message.tool_calls[0].function.arguments), {"city": "Athens"})


def test_thoughts_have_a_field_of_their_own(scripted):
    said = client(scripted).chat("scripted", say("thought"), think=True)
    equal("thinking", (said.message.thinking.strip(), said.message.content), ("Two and two make four.", "The answer is four."))
    pieces = list(client(scripted).chat("scripted", say("thought"), think=True, stream=True))
    equal("streamed", "".join(piece.message.thinking or "" for piece in pieces).strip(), "Two and two make four.")


def test_a_prompt_is_generated_from_raw_and_with_a_system_text(scripted):
    asked = client(scripted)
    equal("raw", asked.generate("scripted", "Go!", raw=True).response, HELLO)
    equal("system", asked.generate("scripted", "say hello.", system="Be brief.").response, HELLO)
    equal("streamed", "".join(piece.response for piece in asked.generate("scripted", "say hello.", stream=True)), HELLO)


def test_models_are_listed_shown_and_running(scripted):
    asked = client(scripted)
    models = asked.list().models
    assert models[0].model.split(":")[0] == "scripted" and models[0].size > 0 and models[0].modified_at.year > 2000, models
    shown = asked.show("scripted")
    assert "tools" in shown.capabilities and shown.modelinfo["general.architecture"] == "llama", shown
    equal("running", asked.ps().models[0].model.split(":")[0], "scripted")


def test_errors_are_raised_with_their_status(scripted, teaspoon):
    error = raised(ollama.ResponseError, client(scripted).chat, "no-such", say("hello"))
    equal("status", (error.status_code, error.error), (404, "model 'no-such' not found"))
    error = raised(ollama.ResponseError, client(teaspoon).chat, "teaspoon", [{"role": "user", "content": "word " * 6000}])
    equal("status", error.status_code, 400)
    raised(ollama.ResponseError, client(scripted).embed, "scripted", "x")
    raised(ollama.ResponseError, ollama.Client(host=scripted.url).chat, "scripted", say("hello"))


def test_the_client_leaves_a_stream_and_it_ends(scripted):
    stream = client(scripted).chat("scripted", say("forever"), stream=True)
    for _, _ in zip(range(20), stream):
        pass
    equal("alive", scripted.alive(), 1)
    stream.close()
    scripted.until_idle()


def test_logprobs_come_with_each_record(teaspoon):
    said = client(teaspoon).chat("teaspoon", [{"role": "user", "content": "What is two plus three?"}], logprobs=True, top_logprobs=2,
                                 options={"temperature": 0})
    equal("text", "".join(entry.token for entry in said.logprobs), said.message.content)
    assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 2 for entry in said.logprobs)


def test_a_pull_of_what_is_served_succeeds(scripted):
    equal("status", client(scripted).pull("scripted").status, "success")
