"""Do the checkers notice faults?  A right transcript of each dialect passes; each wrong one does not.

Wrong ones are made by rule: each event left out, sent twice, or exchanged with the next one; each
field left out or of a wrong type. Those that change nothing a client needs are listed.
"""
import copy
import json

import checkers
from raw import Event, parsed

WHOLE_USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 4},
               "completion_tokens_details": {"reasoning_tokens": 2}}

THOUGHTS = ("completion_tokens_details", "reasoning_tokens")    # not of completions


def refused(check, *arguments, **more):
    try:
        check(*arguments, **more)
    except (AssertionError, KeyError, TypeError, AttributeError, ValueError):
        return True
    return False


def paths(thing, path=()):
    if isinstance(thing, dict):
        for name, value in thing.items():
            yield (*path, name)
            yield from paths(value, (*path, name))
    elif isinstance(thing, list):
        for at, value in enumerate(thing):
            yield from paths(value, (*path, at))


def without(thing, path):
    thing = copy.deepcopy(thing)
    place = thing
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return thing


def replaced(thing, path, value):
    thing = copy.deepcopy(thing)
    place = thing
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return thing


def notices(check, events, harmless=(), order=(), whole=()):
    """harmless: last names of paths that may be missing; order: positions of events that may be
    left out, repeated or moved without a fault that can be seen; whole: names whose value is free."""
    check(events)
    missed = []
    for at, event in enumerate(events):
        if at not in order:
            for what, wrong in (("left out", events[:at] + events[at + 1:]), ("twice", events[:at + 1] + events[at:])):
                if not refused(check, wrong):
                    missed.append("event %d %s: %s" % (at, what, event))
            if at + 1 < len(events) and at + 1 not in order and events[at] != events[at + 1]:
                if not refused(check, events[:at] + [events[at + 1], event] + events[at + 2:]):
                    missed.append("event %d behind the next: %s" % (at, event))
        if event[1] == "[DONE]":
            continue
        for path in paths(event[1]):
            if path[-1] in harmless:
                continue
            if not refused(check, events[:at] + [(event[0], without(event[1], path))] + events[at + 1:]):
                missed.append("event %d without %s" % (at, path))
            if path[-1] not in whole and not refused(check, events[:at] + [(event[0], replaced(event[1], path, [[]]))] + events[at + 1:]):
                missed.append("event %d with a wrong %s" % (at, path))
    assert not missed, "%d faults are not noticed:\n%s" % (len(missed), "\n".join(missed[:20]))


def events_of(pairs):
    return [Event(name, data if data == "[DONE]" else json.dumps(data)) for name, data in pairs]


def chunk(*choices, **more):
    return (None, {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795700000, "model": "m", "choices": list(choices),
                   "usage": None, **more})


def choice(delta, finish=None, index=0):
    return {"index": index, "delta": delta, "finish_reason": finish}


CHAT = [chunk(choice({"role": "assistant", "content": ""})), chunk(choice({"content": "Let me "})), chunk(choice({"content": "see."})),
        chunk(choice({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]})),
        chunk(choice({"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1'}}]})),
        chunk(choice({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})),
        chunk(choice({"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]})),
        chunk(choice({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})),
        chunk(choice({}, "tool_calls")), chunk(usage=WHOLE_USAGE), (None, "[DONE]")]


def chat(pairs):
    return checkers.chat_stream(events_of(pairs), include_usage=True)


def test_faults_of_a_chat_stream_are_noticed():
    notices(chat, CHAT, harmless=("content",), order=(1, 2))


def test_faults_of_two_choices_are_noticed():
    def two(pairs):
        return checkers.chat_stream(events_of(pairs), n=2)
    right = [chunk(choice({"role": "assistant", "content": ""})), chunk(choice({"role": "assistant", "content": ""}, index=1)),
             chunk(choice({"content": "b"}, index=1)), chunk(choice({"content": "a"})), chunk(choice({}, "stop")),
             chunk(choice({}, "length", 1)), (None, "[DONE]")]
    assert [one.text for one in two(right)] == ["a", "b"]
    for wrong in ([right[1], right[0], *right[2:]],                                  # choice 1 before 0
                  [right[0], right[1], right[2], right[4], right[3], *right[5:]],    # text behind its end
                  right[:-2] + right[-1:],                                           # no end of a choice
                  [*right[:4], chunk(choice({}, "")), *right[5:]], [*right[:4], chunk(choice({}, "eos")), *right[5:]],
                  [*right[:4], chunk(choice({"content": "x"}, "stop")), *right[5:]],
                  [*right[:6], chunk(usage=WHOLE_USAGE), right[6]],                  # usage that was not asked for
                  [*right[:4], chunk(choice({}, "tool_calls")), *right[5:]]):
        assert refused(two, wrong), wrong


def test_faults_of_calls_are_noticed():
    for at, path, value in ((3, ("tool_calls", 0, "index"), 1), (4, ("tool_calls", 0, "id"), "call_1"), (6, ("tool_calls", 0, "id"), "call_1"),
                            (4, ("tool_calls", 0, "function", "name"), "f"), (5, ("tool_calls", 0, "function", "arguments"), "]"),
                            (7, ("tool_calls", 0, "index"), 0), (3, ("tool_calls", 0, "function", "name"), ""),
                            (1, ("role",), "assistant")):
        wrong = copy.deepcopy(CHAT)
        place = wrong[at][1]["choices"][0]["delta"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert refused(chat, wrong), (at, path, value)


def test_faults_of_chat_answers_are_noticed():
    entry = {"token": "\u00e9", "logprob": -0.5, "bytes": [0xc3, 0xa9], "top_logprobs": [
        {"token": "\u00e9", "logprob": -0.5, "bytes": [0xc3, 0xa9]}, {"token": "x", "logprob": -2.0, "bytes": None}]}
    right = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1795700000, "model": "m", "usage": WHOLE_USAGE, "choices": [
        {"index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [entry], "refusal": None}, "message": {
            "role": "assistant", "content": "x", "refusal": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]}
    notices(lambda pairs: checkers.chat_answer(pairs[0][1], asked_logprobs=True), [(None, right)], order=(0,))
    for path, value in ((("choices", 0, "finish_reason"), "stop"), (("choices", 0, "message", "tool_calls"), []),
                        (("choices", 0, "logprobs", "content", 0, "logprob"), 0.5), (("choices", 0, "logprobs", "content", 0, "bytes"), [0xc3]),
                        (("choices", 0, "logprobs", "content", 0, "top_logprobs", 1, "logprob"), -0.1), (("created",), 1795700000000),
                        (("choices", 0, "message", "tool_calls", 0, "function", "arguments"), "{"), (("usage", "total_tokens"), 3),
                        (("choices", 0, "logprobs", "content", 0, "logprob"), float("-inf"))):
        assert refused(checkers.chat_answer, replaced(right, path, value), asked_logprobs=True), (path, value)


def test_faults_of_completions_are_noticed():
    def head(*choices, **more):
        return (None, {"id": "cmpl-1", "object": "text_completion", "created": 1795700000, "model": "m", "choices": list(choices), **more})

    def one(text, finish=None):
        return {"text": text, "index": 0, "finish_reason": finish, "logprobs": {
            "tokens": [text], "token_logprobs": [-0.1], "top_logprobs": [{text: -0.1}], "text_offset": [0]}}
    right = [head(one("a"), usage=None), head(one("b"), usage=None), head(one("c", "stop"), usage=None), head(usage=WHOLE_USAGE), (None, "[DONE]")]
    notices(lambda pairs: checkers.completion_stream(events_of(pairs), include_usage=True), right, order=(0, 1),
            harmless=("a", "b", "c", *THOUGHTS), whole=("top_logprobs", "token_logprobs", "tokens", "text_offset", *THOUGHTS))
    answer = {**right[0][1], "choices": [one("abc", "stop")], "usage": WHOLE_USAGE}
    notices(lambda pairs: checkers.completion_answer(pairs[0][1]), [(None, answer)], order=(0,), harmless=("abc", *THOUGHTS),
            whole=("top_logprobs", "token_logprobs", "tokens", "text_offset", *THOUGHTS))


def responses_transcript():
    base = {"id": "resp_1", "object": "response", "created_at": 1795700000, "model": "m", "status": "in_progress", "output": [],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "usage": None,
            "instructions": None, "metadata": {}}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    text = {"type": "output_text", "text": "Hello.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    called = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}', "status": "completed"}
    usage = {"input_tokens": 5, "output_tokens": 4, "total_tokens": 9, "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 1}}
    events = []

    def say(kind, **data):
        events.append((kind, {"type": kind, "sequence_number": len(events), **data}))

    def at(item, **more):
        return {"item_id": item["id"], "output_index": more.pop("index"), **more}
    say("response.created", response=base)
    say("response.in_progress", response=base)
    say("response.output_item.added", output_index=0, item={**thought, "content": []})
    say("response.reasoning_text.delta", **at(thought, index=0, content_index=0, delta="H"))
    say("response.reasoning_text.delta", **at(thought, index=0, content_index=0, delta="m."))
    say("response.reasoning_text.done", **at(thought, index=0, content_index=0, text="Hm."))
    say("response.output_item.done", output_index=0, item=thought)
    say("response.output_item.added", output_index=1, item={**message, "content": [], "status": "in_progress"})
    say("response.content_part.added", **at(message, index=1, content_index=0, part={**text, "text": ""}))
    say("response.output_text.delta", **at(message, index=1, content_index=0, delta="Hel", logprobs=[]))
    say("response.output_text.delta", **at(message, index=1, content_index=0, delta="lo.", logprobs=[]))
    say("response.output_text.done", **at(message, index=1, content_index=0, text="Hello.", logprobs=[]))
    say("response.content_part.done", **at(message, index=1, content_index=0, part=text))
    say("response.output_item.done", output_index=1, item=message)
    say("response.output_item.added", output_index=2, item={**called, "arguments": "", "status": "in_progress"})
    say("response.function_call_arguments.delta", **at(called, index=2, delta='{"a":'))
    say("response.function_call_arguments.delta", **at(called, index=2, delta="1}"))
    say("response.function_call_arguments.done", **at(called, index=2, arguments='{"a":1}', name="f"))
    say("response.output_item.done", output_index=2, item=called)
    say("response.completed", response={**base, "status": "completed", "output": [thought, message, called], "usage": usage})
    return events


def renumbered(pairs):
    return [(name, {**data, "sequence_number": at} if isinstance(data.get("sequence_number"), int) else data) for at, (name, data) in enumerate(pairs)]


def test_faults_of_responses_are_noticed_by_number_and_by_state():
    right = responses_transcript()
    notices(lambda pairs: checkers.responses_stream(events_of(pairs)), right)
    # The same with right numbers, so that only the machine can notice.
    harmless = []
    for at in range(len(right)):
        for name, wrong in (("left out", right[:at] + right[at + 1:]), ("twice", right[:at + 1] + right[at:]),
                            ("moved", right[:at] + right[at + 1:at + 2] + right[at:at + 1] + right[at + 2:])):
            if name == "moved" and (at + 1 == len(right) or right[at][0] == right[at + 1][0] and "added" in right[at][0]):
                continue
            if not refused(checkers.responses_stream, events_of(renumbered(wrong))):
                harmless.append("%s %s" % (right[at][0], name))
    assert not harmless, harmless


def test_ids_that_change_are_noticed():
    right = responses_transcript()
    for at, (_, data) in enumerate(right):
        for path in paths(data):
            if path[-1] in ("id", "item_id", "call_id", "name", "text", "arguments", "delta", "role", "status", "type"):
                wrong = right[:at] + [(right[at][0], replaced(data, path, "rs_x"))] + right[at + 1:]
                if path[-1] in ("role", "status") and "added" in right[at][0]:
                    continue
                assert refused(checkers.responses_stream, events_of(wrong)), (at, path)


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None,
           "usage": {"input_tokens": 5, "output_tokens": 1}}


def named(kind, **data):
    return (kind, {"type": kind, **data})


MESSAGES = [named("message_start", message=MESSAGE),
            named("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
            named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Hm."}),
            named("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
            named("content_block_stop", index=0),
            named("content_block_start", index=1, content_block={"type": "text", "text": ""}),
            named("content_block_delta", index=1, delta={"type": "text_delta", "text": "Hello."}),
            named("content_block_stop", index=1),
            named("content_block_start", index=2, content_block={"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
            named("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": '{"a":'}),
            named("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": "1}"}),
            named("content_block_stop", index=2),
            named("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 9}),
            named("message_stop")]


def test_faults_of_a_message_stream_are_noticed():
    notices(lambda pairs: checkers.messages_stream(events_of(pairs)), MESSAGES, order=(2, 3, 6))
    pings = MESSAGES[:1] + [named("ping")] + MESSAGES[1:6] + [named("ping")] + MESSAGES[6:]
    checkers.messages_stream(events_of(pings))
    for at, path, value in ((1, ("index",), 1), (12, ("delta", "stop_reason"), "end_turn"), (12, ("delta", "stop_sequence"), "x"),
                            (12, ("delta", "stop_reason"), "stop"), (0, ("message", "stop_reason"), "end_turn"), (8, ("content_block", "input"), {"a": 1})):
        wrong = MESSAGES[:at] + [(MESSAGES[at][0], replaced(MESSAGES[at][1], path, value))] + MESSAGES[at + 1:]
        assert refused(checkers.messages_stream, events_of(wrong)), (at, path, value)
    unnamed = [(None, data) for _, data in MESSAGES]
    assert refused(checkers.messages_stream, events_of(unnamed)), "events without names"


def test_faults_of_a_message_are_noticed():
    right = {**MESSAGE, "stop_reason": "tool_use", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "x"},
                                                              {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]}
    notices(lambda pairs: checkers.messages_answer(pairs[0][1]), [(None, right)], order=(0,), harmless=("a",), whole=("a",))


def test_faults_of_ollama_records_are_noticed():
    head = {"model": "m", "created_at": "2026-11-26T12:00:00.123456Z"}
    right = [{**head, "message": {"role": "assistant", "content": "a"}, "done": False},
             {**head, "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}, "done": False},
             {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "total_duration": 10, "load_duration": 1,
              "prompt_eval_count": 4, "prompt_eval_duration": 3, "eval_count": 2, "eval_duration": 5}]
    notices(lambda pairs: checkers.ollama_records([data for _, data in pairs], chat=True), [(None, record) for record in right], order=(0, 1),
            harmless=("x", "load_duration", "prompt_eval_duration", "tool_calls"), whole=("x",))
    for at, path, value in ((0, ("created_at",), "yesterday"), (2, ("done_reason",), "eos"), (2, ("total_duration",), 1.5), (2, ("eval_duration",), 10**6),
                            (0, ("done_reason",), "stop"), (1, ("message", "tool_calls", 0, "function", "arguments"), "{}")):
        assert refused(checkers.ollama_records, right[:at] + [replaced(right[at], path, value)] + right[at + 1:], chat=True), (at, path)


def test_faults_of_events_are_noticed():
    assert parsed([b": ping"], []) is None
    assert parsed([b"event: a", b"data: 1"], []).name == "a"
    for lines in ([b"data:"], [b"data: "], [b"id: 1"], [b"event: a"], [b"retry: 5", b"data: 1"], [b"data: 1", b"data: 2"], [b"error: x"], [b"nonsense"],
                  [b"data: \xff"]):
        assert refused(parsed, lines, []), lines


def test_faults_of_errors_are_noticed():
    for dialect, right, wrong in (
            ("openai", {"error": {"message": "m", "type": "t", "param": None, "code": None}},
             ({"error": "m"}, {"error": {"message": "m"}}, {"message": "m"}, {"error": {"message": "", "type": "t", "param": None, "code": None}},
              {"error": {"message": {"a": 1}, "type": "t", "param": None, "code": None}})),
            ("anthropic", {"type": "error", "error": {"type": "t", "message": "m"}, "request_id": "r"},
             ({"error": {"type": "t", "message": "m"}, "request_id": "r"}, {"type": "error", "error": {"type": "t", "message": "m"}}, {"error": "m"})),
            ("ollama", {"error": "m"}, ({"error": {"message": "m"}}, {"error": "m", "x": 1}, {}))):
        checkers.error_body(dialect, right)
        for body in wrong:
            assert refused(checkers.error_body, dialect, body), (dialect, body)
