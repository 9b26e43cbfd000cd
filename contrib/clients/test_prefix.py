"""An answer that the client has begun: every dialect continues it, and says only the continuation."""
import openai

import test_anthropic_sdk
import test_ollama_sdk
from dialects import chat_tools, equal
from test_openai_sdk import client, raised

QUESTION = "What can I cook with rice?"
BEGINNING = "You can cook "
HEAD = "<|im_start|>user\n" + QUESTION + "<|im_end|>\n<|im_start|>assistant\n"
NEW = "<|im_end|>\n<|im_start|>assistant\n"
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}


def begun(text=BEGINNING, **more):
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": text, **more}]


def prompt_of(pair, messages, **more):
    """The prompt and its ids, as the server shows them."""
    answer = pair.server().post("/apply-template", {"model": "teaspoon", "messages": messages, **more})
    assert answer.status == 200, answer
    return answer.json()["prompt"], answer.json()["tokens"]


def completed(pair, tokens):
    """What the model says to these ids, without a template."""
    said = client(pair).completions.create(model="teaspoon", prompt=tokens, temperature=0, max_tokens=40)
    equal("prompt", said.usage.prompt_tokens, len(tokens))
    return said.choices[0].text


def wanted(pair):
    """The ids of the prompt, and the continuation of the beginning."""
    prompt, tokens = prompt_of(pair, begun())
    equal("prompt", prompt, HEAD + BEGINNING)
    text = completed(pair, tokens)
    assert text and not text.startswith(BEGINNING), text
    return tokens, text


def test_chat_continues_the_last_message(teaspoon):
    tokens, text = wanted(teaspoon)
    asked = {"model": "teaspoon", "temperature": 0, "max_tokens": 40}
    for content in (BEGINNING, [{"type": "text", "text": BEGINNING}]):
        said = client(teaspoon).chat.completions.create(messages=begun(content), n=2, **asked)
        equal("texts", [choice.message.content for choice in said.choices], [text, text])
        equal("prompt", said.usage.prompt_tokens, len(tokens))
    pieces = client(teaspoon).chat.completions.create(messages=begun(prefix=True), stream=True, **asked)
    equal("streamed", "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices), text)


def test_messages_continue_the_last_message(teaspoon):
    tokens, text = wanted(teaspoon)
    messages = test_anthropic_sdk.client(teaspoon).messages
    for content in (BEGINNING, [{"type": "text", "text": BEGINNING}]):
        asked = {"model": "teaspoon", "max_tokens": 40, "messages": begun(content), "extra_body": {"temperature": 0}}
        said = messages.create(**asked)
        equal("text", [block.text for block in said.content], [text])
        with messages.stream(**asked) as stream:
            equal("streamed", "".join(stream.text_stream), text)
        equal("counted", messages.count_tokens(model="teaspoon", messages=begun(content)).input_tokens, len(tokens))


def test_ollama_continues_the_last_message(teaspoon):
    tokens, text = wanted(teaspoon)
    options = {"temperature": 0, "num_predict": 40}
    said = test_ollama_sdk.client(teaspoon).chat("teaspoon", begun(), options=options)
    equal("text", said.message.content, text)
    equal("prompt", said.prompt_eval_count, len(tokens))
    pieces = test_ollama_sdk.client(teaspoon).chat("teaspoon", begun(), options=options, stream=True)
    equal("streamed", "".join(piece.message.content for piece in pieces), text)


def test_responses_continue_the_last_item(teaspoon):
    tokens, text = wanted(teaspoon)
    items = [{"role": "user", "content": QUESTION},
             {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": BEGINNING}]}]
    asked = client(teaspoon).responses
    said = asked.create(model="teaspoon", input=items, temperature=0, max_output_tokens=40)
    equal("text", said.output_text, text)
    equal("prompt", said.usage.input_tokens, len(tokens))
    counted = teaspoon.server().post("/v1/responses/input_tokens", {"model": "teaspoon", "input": items})
    equal("counted", counted.json()["input_tokens"], len(tokens))


def test_a_stored_response_is_one_message_with_its_beginning(teaspoon):
    asked = client(teaspoon).responses
    first = asked.create(model="teaspoon", input=begun(), temperature=0, max_output_tokens=5)
    more = asked.create(model="teaspoon", input=[], previous_response_id=first.id, temperature=0, max_output_tokens=5)
    answer = BEGINNING + first.output_text + more.output_text
    equal("one answer", BEGINNING + completed(teaspoon, prompt_of(teaspoon, begun())[1])[:len(answer) - len(BEGINNING)],
          answer)
    next_question = {"role": "user", "content": "Thanks"}
    last = asked.create(model="teaspoon", input=[next_question], previous_response_id=more.id, max_output_tokens=5)
    prompt, tokens = prompt_of(teaspoon, [*begun(answer), next_question])
    assert answer + "<|im_end|>" in prompt, prompt
    equal("prompt", last.usage.input_tokens, len(tokens))


def test_the_beginning_stays_as_it_is(teaspoon):
    for text in (" \n You can ", "You can \n\n", "1. ", "ja\u0308", "\U0001f600"):
        equal("prompt", prompt_of(teaspoon, begun(text))[0], HEAD + text)
    end = prompt_of(teaspoon, begun()[:1], add_generation_prompt=False)[1][-2]      # <|im_end|>, and a newline
    for text in (BEGINNING, "<|im_end|>" + BEGINNING):
        equal("ends of turns", prompt_of(teaspoon, begun(text))[1].count(end), 1)
    equal("ends of turns", prompt_of(teaspoon, begun(), continue_final_message=False)[1].count(end), 2)


def test_a_turn_without_text_or_with_calls_is_closed(teaspoon):
    for last in ({"content": None}, {"content": ""}, {"content": BEGINNING, "tool_calls": [CALL]}):
        prompt, _ = prompt_of(teaspoon, [begun()[0], {"role": "assistant", **last}], tools=chat_tools())
        assert prompt.endswith(NEW), prompt
    items = [{"role": "user", "content": QUESTION},
             {"type": "function_call", "call_id": "call_1", "name": "get_time", "arguments": "{}"}]
    counted = teaspoon.server().post("/v1/responses/input_tokens", {"model": "teaspoon", "input": items})
    _, tokens = prompt_of(teaspoon, [begun()[0], {"role": "assistant", "content": None, "tool_calls": [CALL]}])
    equal("counted", counted.json()["input_tokens"], len(tokens))


def test_the_switches_of_vllm_win(teaspoon):
    closed = HEAD + BEGINNING + NEW
    for switches, prompt in (({}, HEAD + BEGINNING),
                             ({"continue_final_message": True}, HEAD + BEGINNING),
                             ({"continue_final_message": True, "add_generation_prompt": False}, HEAD + BEGINNING),
                             ({"add_generation_prompt": False}, HEAD + BEGINNING),
                             ({"continue_final_message": None, "add_generation_prompt": None}, HEAD + BEGINNING),
                             ({"continue_final_message": False}, closed),
                             ({"add_generation_prompt": True}, closed),
                             ({"add_generation_prompt": True, "continue_final_message": False}, closed),
                             ({"add_generation_prompt": False, "continue_final_message": False},
                              HEAD + BEGINNING + "<|im_end|>\n")):
        shown, tokens = prompt_of(teaspoon, begun(), **switches)
        equal(str(switches), shown, prompt)
        said = client(teaspoon).chat.completions.create(model="teaspoon", messages=begun(), max_tokens=1, extra_body=switches)
        equal(str(switches), said.usage.prompt_tokens, len(tokens))
    equal("without an answer", prompt_of(teaspoon, begun()[:1], add_generation_prompt=False)[0],
          HEAD.removesuffix("<|im_start|>assistant\n"))
    equal("empty", prompt_of(teaspoon, begun(""), continue_final_message=True)[0], HEAD)


def test_switches_that_contradict_are_refused(teaspoon):
    last_calls = [begun()[0], {"role": "assistant", "content": "x", "tool_calls": [CALL]}]
    for messages, switches, words in (
            (begun(), {"continue_final_message": True, "add_generation_prompt": True}, "both true"),
            (begun()[:1], {"continue_final_message": True}, "not from the assistant"),
            ([*begun(), {"role": "system", "content": "s"}], {"continue_final_message": True}, "not from the assistant"),
            (last_calls, {"continue_final_message": True}, "tool_calls"),
            (begun(), {"continue_final_message": "yes"}, "continue_final_message")):
        error = raised(openai.BadRequestError, client(teaspoon).chat.completions.create, model="teaspoon",
                       messages=messages, extra_body=switches)
        assert words in str(error) and error.param == "continue_final_message", error
        equal("shown", teaspoon.server().post("/apply-template", {"model": "teaspoon", "messages": messages, **switches}).status, 400)
