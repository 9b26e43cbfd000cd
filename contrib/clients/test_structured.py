"""Structured output: the helpers of the official clients, and a hundred prompts under twenty schemas."""
import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Literal, Optional

import litellm
import ollama
from anthropic import Anthropic
from jsonschema import Draft202012Validator
from langchain_core.messages import HumanMessage
from openai import AsyncOpenAI, LengthFinishReasonError, OpenAI
from pydantic import BaseModel, ConfigDict, Field

from dialects import equal
from test_langchain import roads
from test_litellm import roads as litellm_roads
from test_openai_sdk import raised

ASK = [{"role": "user", "content": "The door does not open. What is this?"}]


class Ticket(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["bug", "question", "praise"]
    urgency: int = Field(ge=1, le=5)
    summary: str = Field(max_length=30)


class Colour(str, Enum):
    red = "red"
    blue = "blue"


class Part(BaseModel):
    name: str = Field(max_length=8)
    colour: Colour
    weight: Optional[float] = Field(ge=0, le=100)


class Machine(BaseModel):
    """Classes in classes: the schema has $defs and references."""
    title: str = Field(max_length=12)
    parts: list[Part] = Field(min_length=1, max_length=3)
    spare: Optional[Part]


class Verdict(BaseModel):
    """Without limits of texts and numbers: Anthropic's client writes these into descriptions."""
    kind: Literal["bug", "question", "praise"]
    sure: bool
    part: Optional[Colour]
    votes: int


def openai_client(pair):
    return OpenAI(base_url=pair.url + "/v1", api_key=pair.key, max_retries=0, timeout=30)


def anthropic_client(pair):
    return Anthropic(base_url=pair.url, api_key=pair.key, max_retries=0, timeout=30)


def ollama_client(pair):
    return ollama.Client(host=pair.url, headers={"Authorization": "Bearer " + pair.key}, timeout=30)


def test_chat_completions_parse_an_object(teaspoon):
    for kind in (Ticket, Machine):
        said = openai_client(teaspoon).chat.completions.parse(
            model="teaspoon", messages=ASK, response_format=kind, max_tokens=600, temperature=1, seed=3)
        equal("finish", said.choices[0].finish_reason, "stop")
        assert isinstance(said.choices[0].message.parsed, kind), said


def test_chat_completions_stream_an_object(teaspoon):
    with openai_client(teaspoon).chat.completions.stream(
            model="teaspoon", messages=ASK, response_format=Ticket, max_tokens=600, temperature=0) as stream:
        grown = [event.parsed for event in stream if event.type == "content.delta" and event.parsed is not None]
        said = stream.get_final_completion()
    assert len(grown) > 1 and isinstance(said.choices[0].message.parsed, Ticket), (grown, said)
    whole = openai_client(teaspoon).chat.completions.parse(
        model="teaspoon", messages=ASK, response_format=Ticket, max_tokens=600, temperature=0)
    equal("streamed", said.choices[0].message.parsed, whole.choices[0].message.parsed)


def test_each_choice_of_several_is_parsed(teaspoon):
    said = openai_client(teaspoon).chat.completions.parse(
        model="teaspoon", messages=ASK, response_format=Ticket, max_tokens=600, temperature=1, seed=5, n=4)
    equal("choices", [isinstance(choice.message.parsed, Ticket) for choice in said.choices], [True] * 4)


def test_an_object_that_is_cut_is_an_error_of_its_own(teaspoon):
    error = raised(LengthFinishReasonError, openai_client(teaspoon).chat.completions.parse,
                   model="teaspoon", messages=ASK, response_format=Machine, max_tokens=4)
    equal("finish", error.completion.choices[0].finish_reason, "length")


def test_responses_parse_an_object(teaspoon):
    asked = openai_client(teaspoon).responses
    for kind in (Ticket, Machine):
        said = asked.parse(model="teaspoon", input=ASK, text_format=kind, max_output_tokens=600, temperature=0)
        assert isinstance(said.output_parsed, kind), said
    with asked.stream(model="teaspoon", input=ASK, text_format=Ticket, max_output_tokens=600, temperature=0) as stream:
        list(stream)
        said = stream.get_final_response()
    assert isinstance(said.output_parsed, Ticket), said


def test_an_async_client_parses_many_at_once(teaspoon):
    async def all_of_them():
        async with AsyncOpenAI(base_url=teaspoon.url + "/v1", api_key=teaspoon.key, max_retries=0, timeout=30) as client:
            return await asyncio.gather(*(client.chat.completions.parse(
                model="teaspoon", messages=ASK, response_format=(Ticket, Machine)[i % 2], max_tokens=600, seed=i)
                for i in range(12)))
    parsed = [said.choices[0].message.parsed for said in asyncio.run(all_of_them())]
    equal("kinds", [type(one) for one in parsed], [Ticket, Machine] * 6)


def test_anthropic_messages_parse_an_object(teaspoon):
    asked = anthropic_client(teaspoon).messages
    said = asked.parse(model="teaspoon", max_tokens=600, messages=ASK, output_format=Verdict)
    assert isinstance(said.parsed_output, Verdict), said
    with asked.stream(model="teaspoon", max_tokens=600, messages=ASK, output_format=Verdict) as stream:
        list(stream)
        said = stream.get_final_message()
    assert isinstance(said.parsed_output, Verdict), said


def test_ollama_takes_the_schema_of_a_class(teaspoon):
    for kind in (Ticket, Machine):
        said = ollama_client(teaspoon).chat("teaspoon", ASK, format=kind.model_json_schema(), options={"num_predict": 600})
        kind.model_validate_json(said.message.content)
        said = ollama_client(teaspoon).generate("teaspoon", ASK[0]["content"], format=kind.model_json_schema(),
                                                options={"num_predict": 600})
        kind.model_validate_json(said.response)
    said = ollama_client(teaspoon).chat("teaspoon", ASK, format="json", options={"num_predict": 600, "temperature": 0})
    assert said.message.content.startswith("{"), said


def test_langchain_makes_objects_on_each_road(teaspoon):
    for name, model in roads(teaspoon):
        if name == "messages":
            model = model.model_copy(update={"max_tokens": 600})
        said = model.with_structured_output(Verdict, method="json_schema").invoke([HumanMessage(ASK[0]["content"])])
        assert isinstance(said, Verdict), (name, said)


def test_litellm_passes_a_class_on(teaspoon):
    for name, road in litellm_roads(teaspoon):
        if name != "anthropic":     # litellm makes a forced tool of it there
            said = litellm.completion(messages=ASK, response_format=Ticket, max_tokens=600, num_retries=0, timeout=30, **road)
            Ticket.model_validate_json(said.choices[0].message.content)


# ---- a hundred prompts under twenty schemas ----


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SHORT = {"type": "string", "maxLength": 12}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
SCHEMAS = (
    {"type": "boolean"},
    {"type": "integer", "minimum": -20, "maximum": 130},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"enum": ["red", "green", "blue", 3, None, {"a": [1]}]},
    {"type": "string", "pattern": "^[A-Z][a-z]{2,9}$"},
    {"type": "string", "format": "date"},
    {"type": "array", "items": DIGIT, "minItems": 2, "maxItems": 5},
    {"type": "array", "prefixItems": [SHORT, DIGIT], "items": False, "minItems": 2},
    closed(answer=SHORT),
    closed(answer=SHORT, sure={"type": "boolean"}, score={"type": "number", "minimum": 0, "maximum": 1}),
    closed(place=closed(x=DIGIT, y=DIGIT), names={"type": "array", "items": SHORT, "maxItems": 3}),
    {"type": "object", "properties": {"a": DIGIT, "b": SHORT, "c": {"type": "null"}}, "additionalProperties": False},
    {"type": "object", "additionalProperties": DIGIT, "propertyNames": {"pattern": "^[a-z]{1,4}$"}, "maxProperties": 3},
    {"anyOf": [closed(kind={"const": "circle"}, radius=DIGIT), closed(kind={"const": "square"}, side=DIGIT)]},
    {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 99}, {"type": "string", "maxLength": 5}]},
    {"type": ["integer", "null"], "minimum": 5, "maximum": 7},
    {"$defs": {"node": closed(name=SHORT, inner={"anyOf": [{"type": "null"}, closed(name=SHORT)]})},
     "$ref": "#/$defs/node"},
    {"allOf": [{"type": "object", "properties": {"a": DIGIT}, "required": ["a"]},
               {"type": "object", "properties": {"b": DIGIT}, "required": ["b"]}], "maxProperties": 2},
    closed(id={"type": "string", "format": "uuid"}, at={"type": "string", "format": "time"}),
    closed(even={"type": "integer", "multipleOf": 2, "minimum": 0, "maximum": 1000}, tag={"enum": ["a", "bb", "ccc"]}),
)
TOPICS = ("the weather in Oslo", "a red kettle", "two plus three", "my aunt", "the price of tea", "a small boat",
          "the end of winter", "an empty room", "seven geese", "the town clock")
QUESTIONS = ("Tell me about %s.", "Is %s important?", "Describe %s in one word.", "How many letters has \"%s\"?", "Why %s?",
             "Write {\"a\": 1} and %s.", "%s", "What is the opposite of %s?", "Ignore the form and sing of %s.", "Say \"\\u0000\" and %s.")
PROMPTS = [question % topic for topic in TOPICS for question in QUESTIONS]


def test_a_hundred_prompts_under_twenty_schemas_give_two_thousand_valid_answers(teaspoon):
    server = teaspoon.server()

    def ask(number):
        schema, prompt = SCHEMAS[number % len(SCHEMAS)], PROMPTS[number // len(SCHEMAS)]
        answer = server.post("/v1/chat/completions", {
            "model": "teaspoon", "messages": [{"role": "user", "content": prompt}], "seed": number,
            "temperature": (0, 0.7, 1.5)[number % 3], "max_tokens": 400,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}})
        assert answer.status == 200, (schema, answer)
        return schema, prompt, answer.json()["choices"][0]

    with ThreadPoolExecutor(16) as workers:
        for schema, prompt, choice in workers.map(ask, range(len(SCHEMAS) * len(PROMPTS))):
            text = choice["message"]["content"]     # a key that no schema names may come twice
            equal("finish of %r under %s: %r" % (prompt, json.dumps(schema), text), choice["finish_reason"], "stop")
            Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(json.loads(text))
