"""Requests that coding agents sent, recorded and trimmed (trim_body.py), asked again."""
import copy
import json
from pathlib import Path

import checkers
from dialects import CHAT, MESSAGES, RESPONSES, equal
from scripted_model import text_of

BODIES = Path(__file__).resolve().parent / "bodies"
HELLO = text_of("hello").decode()


def recorded(name):
    asked = json.loads((BODIES / (name + ".json")).read_text())
    return asked["path"], asked["headers"], {**asked["body"], "model": "scripted"}


def test_the_request_of_codex_is_answered(scripted):
    path, headers, body = recorded("codex")
    said = checkers.responses_stream(scripted.server().events(path, body, headers=headers))
    equal("text", (said.text, said.finish), (HELLO, "completed"))


def test_the_answers_of_codex_tools_are_taken(scripted):
    path, headers, body = recorded("codex")
    body = copy.deepcopy(body)
    tool = body["tools"][0]["name"]
    body["input"] += [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "function_call", "id": "fc_1", "name": tool, "arguments": '{"cmd": "ls"}', "call_id": "call_1"},
        {"type": "function_call", "name": tool, "arguments": '{"cmd": "pwd"}', "call_id": "call_2"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a\nb"},
        {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "/tmp"}]},
        {"type": "custom_tool_call", "call_id": "call_3", "name": "apply_patch", "input": "x"},
        {"type": "no_such_item", "x": 1}]
    said = checkers.responses_stream(scripted.server().events(path, body, headers=headers))
    assert said.text in (HELLO, text_of("done").decode()), said


def test_the_request_of_claude_code_is_answered(scripted):
    path, headers, body = recorded("claude-code")
    said = checkers.messages_stream(scripted.server().events(path, body, headers=headers))
    equal("text", (said.text, said.finish), (HELLO, "end_turn"))


def test_the_second_turn_of_claude_code_is_cached_although_its_first_block_changes(scripted):
    path, headers, body = recorded("claude-code")
    body = copy.deepcopy(body)
    # As long as it was, for the trimmed text is short.
    body["system"][2]["text"] += " Be brief." * 600
    first = checkers.messages_stream(scripted.server().events(path, body, headers=headers))
    assert body["system"][0]["text"].startswith("x-anthropic-billing-header:"), body["system"][0]
    body["system"][0]["text"] = "x-anthropic-billing-header: cc_version=2.1.332.fff; cc_entrypoint=sdk-cli;"
    body["messages"] += [{"role": "assistant", "content": [{"type": "text", "text": first.text}]},
                         {"role": "user", "content": [{"type": "text", "text": "Again."}]}]
    again = checkers.messages_stream(scripted.server().events(path, body, headers=headers))
    first_all = first.usage["input"] + first.usage["cached"]
    assert again.usage["cached"] > 0.95 * first_all, (first.usage, again.usage)
    counted = scripted.server().post("/v1/messages/count_tokens", {**body, "stream": False}, headers=headers).json()
    equal("count_tokens", counted["input_tokens"], again.usage["input"] + again.usage["cached"])


def test_codex_and_its_second_turn_are_cached(scripted):
    path, headers, body = recorded("codex")
    body = copy.deepcopy(body)
    body["input"][0]["content"][0]["text"] = "Be brief and careful. " * 600
    first = checkers.responses_stream(scripted.server().events(path, body, headers=headers))
    body["input"] += [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": first.text}]},
                      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Again."}]}]
    again = checkers.responses_stream(scripted.server().events(path, body, headers=headers))
    assert again.usage["cached"] > 0.95 * first.usage["input"], (first.usage, again.usage)


def test_each_field_that_the_agents_send_may_be_missing(scripted):
    needed = {"model", "messages", "input", "stream", "max_tokens"}
    for name, check in (("codex", checkers.responses_stream), ("claude-code", checkers.messages_stream)):
        path, headers, body = recorded(name)
        for field in set(body) - needed:
            less = {key: value for key, value in body.items() if key != field}
            assert check(scripted.server().events(path, less, headers=headers)).text == HELLO, (name, field)


def test_the_fields_that_the_sdks_know_are_accepted_one_by_one(scripted):
    """Each field that a client's types have, null or in its plainest form."""
    server = scripted.server()
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses
    from anthropic.types import message_create_params as messages
    for dialect, module, base in ((CHAT, chat, "CompletionCreateParamsBase"), (RESPONSES, responses, "ResponseCreateParamsBase"),
                                  (MESSAGES, messages, "MessageCreateParamsBase")):
        good = dialect.body("scripted", "say hello.")
        for field in getattr(module, base).__annotations__:
            if field in good:
                continue
            answer = server.post(dialect.path, {**good, field: None})
            assert answer.status == 200, "%s: %s: null is %r" % (dialect.name, field, answer)
