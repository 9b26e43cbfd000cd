"""What a stream or an answer of each dialect has to look like.

Each checker takes events, records or an object, raises AssertionError if a rule is broken, and
returns what was said in a form that does not depend on the dialect: a `Said`.
"""
import json
import re
from dataclasses import dataclass, field

from raw import strict_json

TEXT = (str,)
MAYBE_TEXT = (str, type(None))
NUMBER = (int, float)
FINISHES = {"stop", "length", "tool_calls", "content_filter"}


@dataclass
class Call:
    id: str
    name: str
    arguments: object               # parsed; a text if it is no JSON, as in a call that was cut


@dataclass
class Said:
    text: str = ""
    reasoning: str = ""
    calls: list = field(default_factory=list)
    finish: str = None              # in the words of the dialect
    stop: str = None                # Anthropic: the stop string that was met
    usage: dict = None
    logprobs: list = None
    id: str = None


def need(thing, names, where):
    """`names`: key to its types."""
    assert isinstance(thing, dict), "%s: not an object: %r" % (where, thing)
    for name, types in names.items():
        assert name in thing, "%s: %s is missing in %s" % (where, name, json.dumps(thing)[:300])
        value = thing[name]
        right = isinstance(value, types) and not (isinstance(value, bool) and bool not in types)
        assert right, "%s: %s is %r" % (where, name, value)


def count(value, where):
    assert type(value) is int and value >= 0, "%s: %r is not a count" % (where, value)
    return value


def arguments_of(text, whole=True):
    try:
        parsed = strict_json(text)
    except ValueError:
        assert not whole, "arguments that are no JSON: %r" % text
        return text
    assert isinstance(parsed, dict) or not whole, "arguments that are no object: %r" % text
    return parsed


# ---- OpenAI, chat/completions -------------------------------------------------------------------


def chat_usage(usage, where="usage", thinks=True):
    """thinks: whether the route tells thoughts from the answer, and so counts them."""
    need(usage, {"prompt_tokens": (int,), "completion_tokens": (int,), "total_tokens": (int,),
                 "prompt_tokens_details": (dict,)}, where)
    need(usage, {"completion_tokens_details": (dict,)} if thinks else {}, where)
    for name in ("prompt_tokens", "completion_tokens"):
        count(usage[name], where)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], usage
    cached = count(usage["prompt_tokens_details"].get("cached_tokens"), where + ": cached_tokens")
    assert cached <= usage["prompt_tokens"], usage
    reasoning = 0
    if thinks:
        reasoning = count(usage["completion_tokens_details"].get("reasoning_tokens"), where)
    assert reasoning <= usage["completion_tokens"], usage
    return {"input": usage["prompt_tokens"], "cached": cached,
            "output": usage["completion_tokens"], "reasoning": reasoning}


def logprob_entry(entry, where, top=True):
    need(entry, {"token": TEXT, "logprob": NUMBER, "bytes": (list, type(None))}, where)
    assert -1e4 < entry["logprob"] <= 0, "%s: logprob %r" % (where, entry["logprob"])
    if entry["bytes"] is not None:
        data = bytes(entry["bytes"])
        assert data.decode("utf-8", "replace") == entry["token"], "%s: bytes of %r" % (where, entry)
    if top:
        need(entry, {"top_logprobs": (list,)}, where)
        for other in entry["top_logprobs"]:
            logprob_entry(other, where + ".top", top=False)
        order = [other["logprob"] for other in entry["top_logprobs"]]
        assert order == sorted(order, reverse=True), "%s: top_logprobs are not sorted" % where


def chat_logprobs(logprobs, where):
    if logprobs is None:
        return []
    need(logprobs, {"content": (list, type(None))}, where)
    assert "refusal" in logprobs and logprobs["refusal"] is None, where
    for entry in logprobs["content"] or []:
        logprob_entry(entry, where)
    return logprobs["content"] or []


def chat_head(thing, kind, where):
    need(thing, {"id": TEXT, "object": TEXT, "created": (int,), "model": TEXT,
                 "choices": (list,)}, where)
    assert thing["object"] == kind, "%s: object %r" % (where, thing["object"])
    assert thing["id"].startswith("cmpl-" if kind == "text_completion" else "chatcmpl-"), thing["id"]
    assert 1.6e9 < thing["created"] < 4e9, "%s: created %r is not in seconds" % (
        where, thing["created"])


def call_of(call, where, whole=True):
    need(call, {"id": TEXT, "type": TEXT, "function": (dict,)}, where)
    assert call["type"] == "function" and call["id"], "%s: %r" % (where, call)
    need(call["function"], {"name": TEXT, "arguments": TEXT}, where)
    return Call(call["id"], call["function"]["name"],
                arguments_of(call["function"]["arguments"], whole))


def whole(finish):
    """Whether calls must be complete, so that a client may make them."""
    return finish == "tool_calls"


def is_call(call):
    """A call that was cut, or whose arguments are no JSON, is none that a client may make."""
    return isinstance(call.arguments, dict)


def chat_answer(answer, n=1, asked_logprobs=False):
    """A whole chat.completion. Returns one Said for each choice."""
    chat_head(answer, "chat.completion", "answer")
    need(answer, {"usage": (dict,)}, "answer")
    usage = chat_usage(answer["usage"])
    assert [choice.get("index") for choice in answer["choices"]] == list(range(n)), "indices"
    said = []
    for choice in answer["choices"]:
        need(choice, {"message": (dict,), "finish_reason": TEXT, "logprobs": (dict, type(None))},
             "choice")
        message = choice["message"]
        need(message, {"role": TEXT, "content": MAYBE_TEXT, "refusal": (type(None),)}, "message")
        assert message["role"] == "assistant", message["role"]
        finish = choice["finish_reason"]
        calls = message.get("tool_calls")
        assert calls != [], "an empty list of tool calls"
        calls = [call_of(call, "message", whole(finish)) for call in calls or []]
        assert message["content"] is not None or calls, "content is null without a call"
        check_finish(finish, calls)
        said.append(Said(message["content"] or "", message.get("reasoning_content") or "", calls,
                         finish, usage=usage, id=answer["id"],
                         logprobs=chat_logprobs(choice["logprobs"], "choice")))
    check_ids([call for one in said for call in one.calls])
    check_asked_logprobs(said, asked_logprobs)
    return said


def check_finish(finish, calls):
    assert finish in FINISHES, "finish_reason %r" % finish
    if finish == "tool_calls":
        assert calls, "finish_reason tool_calls without a call"
    if finish == "stop":
        assert not any(map(is_call, calls)), "a whole call, but finish_reason stop"


def check_ids(calls):
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids), "two calls of one id: %s" % ids


def check_asked_logprobs(said, asked):
    for one in said:
        assert asked or not one.logprobs, "logprobs that were not asked for"


class ChatChoice:
    """One choice of a stream of chunks."""

    def __init__(self, index):
        self.index, self.where = index, "choice %d" % index
        self.said, self.calls, self.role, self.ended = Said(logprobs=[]), [], False, False

    def take(self, choice):
        need(choice, {"index": (int,), "delta": (dict,), "finish_reason": MAYBE_TEXT}, self.where)
        delta, finish = choice["delta"], choice["finish_reason"]
        assert not self.ended, "%s goes on after its finish_reason" % self.where
        assert finish != "", "%s: finish_reason is an empty text" % self.where
        if not self.role:
            assert delta.get("role") == "assistant", "%s begins without a role" % self.where
            self.role = True
        else:
            assert "role" not in delta, "%s: the role comes twice, helpers concatenate it" % self.where
        extra = set(delta) - {"role", "content", "reasoning_content", "reasoning", "tool_calls", "refusal"}
        assert not extra, "%s: delta has %s" % (self.where, extra)
        if delta.get("content") is not None:
            assert isinstance(delta["content"], str), self.where
            self.said.text += delta["content"]
        self.said.reasoning += delta.get("reasoning_content") or ""
        for piece in delta.get("tool_calls") or []:
            self._piece(piece)
        self.said.logprobs += chat_logprobs(choice.get("logprobs"), self.where)
        if finish is not None:
            assert not delta.get("content") and not delta.get("tool_calls"), (
                "%s: content beside finish_reason" % self.where)
            self.ended, self.said.finish = True, finish

    def _piece(self, piece):
        need(piece, {"index": (int,), "function": (dict,)}, self.where)
        index = piece["index"]
        if index == len(self.calls):
            need(piece, {"id": TEXT, "type": TEXT}, self.where)
            assert piece["id"] and piece["type"] == "function", piece
            need(piece["function"], {"name": TEXT, "arguments": TEXT}, self.where)
            assert piece["function"]["name"], "a call without a name"
            self.calls.append([piece["id"], piece["function"]["name"], ""])
        else:
            assert index == len(self.calls) - 1, "%s: call %d after %d" % (
                self.where, index, len(self.calls) - 1)
            for name, place in (("id", piece), ("type", piece), ("name", piece["function"])):
                assert not place.get(name), "%s: %s comes twice, helpers concatenate it" % (
                    self.where, name)
        self.calls[index][2] += piece["function"].get("arguments") or ""

    def end(self):
        assert self.ended, "%s has no finish_reason" % self.where
        self.said.calls = [Call(id, name, arguments_of(text, whole(self.said.finish)))
                           for id, name, text in self.calls]
        check_finish(self.said.finish, self.said.calls)
        return self.said


def chat_stream(events, n=1, include_usage=False, asked_logprobs=False):
    """Chunks until [DONE]. Returns one Said for each choice."""
    choices, head, usage = [ChatChoice(i) for i in range(n)], None, None
    assert events and events[-1].done, "no [DONE]"
    begun = 0
    for event in events[:-1]:
        assert event.name is None, "a named event: %s" % event.name
        assert not event.done, "[DONE] twice"
        chunk = event.json()
        assert "error" not in chunk, chunk
        chat_head(chunk, "chat.completion.chunk", "chunk")
        head = head or (chunk["id"], chunk["created"], chunk["model"])
        assert head == (chunk["id"], chunk["created"], chunk["model"]), "the head changes"
        assert usage is None, "a chunk behind that of the usage"
        if not chunk["choices"] and "prompt_progress" not in chunk:
            assert include_usage, "usage that was not asked for"
            need(chunk, {"usage": (dict,)}, "last chunk")
            usage = chat_usage(chunk["usage"])
            continue
        if include_usage:
            assert "usage" in chunk and chunk["usage"] is None, "usage is not null before the last"
        else:
            assert chunk.get("usage") is None, "usage that was not asked for"
        for choice in chunk["choices"]:
            index = choice.get("index")
            assert type(index) is int and 0 <= index < n, "index %r" % index
            assert index <= begun, "choice %d begins before choice %d" % (index, begun)
            begun = max(begun, index + 1)
            choices[index].take(choice)
    assert usage is not None or not include_usage, "no usage"
    said = [choice.end() for choice in choices]
    for one in said:
        one.usage, one.id = usage, head[0]
    check_ids([call for one in said for call in one.calls])
    check_asked_logprobs(said, asked_logprobs)
    return said


# ---- OpenAI, completions ------------------------------------------------------------------------


def completion_logprobs(logprobs, where):
    if logprobs is None:
        return []
    need(logprobs, {"tokens": (list,), "token_logprobs": (list,),
                    "top_logprobs": (list, type(None)), "text_offset": (list,)}, where)
    sizes = {len(logprobs[name]) for name in ("tokens", "token_logprobs", "text_offset")}
    assert len(sizes) == 1, "%s: lists of different length" % where
    assert logprobs["top_logprobs"] is None or len(logprobs["top_logprobs"]) in sizes, where
    offsets = logprobs["text_offset"]
    assert offsets == sorted(offsets), "%s: text_offset goes back" % where
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"]))


def completion_choice(choice, where):
    need(choice, {"text": TEXT, "index": (int,), "finish_reason": MAYBE_TEXT,
                  "logprobs": (dict, type(None))}, where)
    return completion_logprobs(choice["logprobs"], where)


def completion_answer(answer, n=1):
    chat_head(answer, "text_completion", "answer")
    usage = chat_usage(answer.get("usage"), thinks=False)
    assert [choice.get("index") for choice in answer["choices"]] == list(range(n)), "indices"
    said = []
    for choice in answer["choices"]:
        logprobs = completion_choice(choice, "choice")
        assert choice["finish_reason"] in ("stop", "length"), choice["finish_reason"]
        said.append(Said(choice["text"], finish=choice["finish_reason"], usage=usage,
                         logprobs=logprobs))
    return said


def completion_stream(events, n=1, include_usage=False):
    said, head, usage = [Said(logprobs=[]) for _ in range(n)], None, None
    assert events and events[-1].done, "no [DONE]"
    for event in events[:-1]:
        assert event.name is None and not event.done, event
        chunk = event.json()
        chat_head(chunk, "text_completion", "chunk")
        head = head or (chunk["id"], chunk["created"], chunk["model"])
        assert head == (chunk["id"], chunk["created"], chunk["model"]), "the head changes"
        assert usage is None, "a chunk behind that of the usage"
        if not chunk["choices"]:
            assert include_usage, "usage that was not asked for"
            usage = chat_usage(chunk.get("usage"), thinks=False)
            continue
        if include_usage:
            assert "usage" in chunk and chunk["usage"] is None, "usage is not null before the last"
        for choice in chunk["choices"]:
            logprobs = completion_choice(choice, "chunk")
            assert 0 <= choice["index"] < n, choice
            one = said[choice["index"]]
            assert one.finish is None, "a choice goes on after its finish_reason"
            assert choice["finish_reason"] in (None, "stop", "length"), choice["finish_reason"]
            one.text += choice["text"]
            one.logprobs += logprobs
            one.finish = choice["finish_reason"]
    assert all(one.finish for one in said), "no finish_reason"
    assert usage is not None or not include_usage, "no usage"
    for one in said:
        one.usage = usage
    return said


# ---- OpenAI, responses --------------------------------------------------------------------------


def responses_usage(usage):
    need(usage, {"input_tokens": (int,), "output_tokens": (int,), "total_tokens": (int,),
                 "input_tokens_details": (dict,), "output_tokens_details": (dict,)}, "usage")
    need(usage["input_tokens_details"], {"cached_tokens": (int,), "cache_write_tokens": (int,)},
         "input_tokens_details")
    need(usage["output_tokens_details"], {"reasoning_tokens": (int,)}, "output_tokens_details")
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], usage
    return {"input": usage["input_tokens"], "output": usage["output_tokens"],
            "cached": usage["input_tokens_details"]["cached_tokens"],
            "reasoning": usage["output_tokens_details"]["reasoning_tokens"]}


def responses_part(part, where):
    need(part, {"type": TEXT, "text": TEXT}, where)
    if part["type"] == "output_text":
        need(part, {"annotations": (list,)}, where)
        assert part["annotations"] == [], "%s: annotations %r" % (where, part["annotations"])
        for entry in part.get("logprobs") or []:
            logprob_entry(entry, where)
    else:
        assert part["type"] == "reasoning_text", "%s: part %r" % (where, part["type"])
    return part["text"]


def responses_item(item, cut=False):
    """A whole item of the output."""
    need(item, {"type": TEXT, "id": TEXT}, "item")
    kind = item["type"]
    prefix = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}.get(kind)
    assert prefix, "an item of type %r" % kind
    assert item["id"].startswith(prefix), item["id"]
    if kind == "message":
        need(item, {"role": TEXT, "status": TEXT, "content": (list,)}, "message")
        assert item["role"] == "assistant", item
        for part in item["content"]:
            responses_part(part, "message")
    elif kind == "reasoning":
        need(item, {"summary": (list,)}, "reasoning")
        assert item["summary"] == [], item
        for part in item.get("content") or []:
            responses_part(part, "reasoning")
    else:
        need(item, {"call_id": TEXT, "name": TEXT, "arguments": TEXT, "status": TEXT}, "call")
        assert item["call_id"].startswith("call_"), item["call_id"]
        arguments_of(item["arguments"], item["status"] == "completed")
    if kind != "reasoning":
        assert item["status"] in ("completed", "incomplete"), "item of status %r" % item["status"]
    if kind == "message":
        assert cut or item["status"] == "completed", "an item is incomplete in a whole answer"


def responses_head(answer):
    need(answer, {"id": TEXT, "object": TEXT, "created_at": NUMBER, "model": TEXT, "status": TEXT,
                  "output": (list,), "parallel_tool_calls": (bool,), "tool_choice": (str, dict),
                  "tools": (list,), "error": (dict, type(None)), "metadata": (dict, type(None)),
                  "incomplete_details": (dict, type(None)), "usage": (dict, type(None)),
                  "instructions": (str, list, type(None))}, "response")
    assert answer["object"] == "response" and answer["id"].startswith("resp_"), answer["id"]
    lists = [answer["tools"], answer["instructions"] if type(answer["instructions"]) is list else []]
    assert all(isinstance(one, dict) for each in lists for one in each), "tools or instructions"


def responses_answer(answer):
    responses_head(answer)
    status = answer["status"]
    assert status in ("completed", "incomplete", "failed"), "status %r" % status
    assert (answer["error"] is not None) == (status == "failed"), "error and status disagree"
    details = answer["incomplete_details"]
    assert (details is not None) == (status == "incomplete"), "details and status disagree"
    if details:
        assert details.get("reason") in ("max_output_tokens", "content_filter"), details
    for item in answer["output"]:
        responses_item(item, cut=status != "completed")
    ids = [item["id"] for item in answer["output"]]
    assert len(ids) == len(set(ids)), "two items of one id"
    assert status == "failed" or answer["usage"] is not None, "no usage"
    said = Said(finish=status, id=answer["id"],
                usage=responses_usage(answer["usage"]) if answer["usage"] else None)
    for item in answer["output"]:
        parts = "".join(part["text"] for part in item.get("content") or [])
        if item["type"] == "message":
            said.text += parts
        elif item["type"] == "reasoning":
            said.reasoning += parts
        else:
            said.calls.append(Call(item["call_id"], item["name"],
                                   arguments_of(item["arguments"], item["status"] == "completed")))
    check_ids(said.calls)
    return said


class ResponsesMachine:
    """Follows the events of a response. At any time at most one item is open, and in it at most
    one part."""
    ENDS = {"response.completed": "completed", "response.incomplete": "incomplete",
            "response.failed": "failed"}

    def __init__(self):
        self.state, self.number = "new", 0
        self.items, self.item, self.part, self.text = [], None, None, ""
        self.response, self.text_done = None, False

    def take(self, event):
        assert not event.done or self.state == "end", "[DONE] before the end"
        if event.done:
            return
        assert self.state != "end", "an event behind the end"
        data = event.json()
        need(data, {"type": TEXT, "sequence_number": (int,)}, "event")
        assert event.name == data["type"], "event %r of type %r" % (event.name, data["type"])
        assert data["sequence_number"] == self.number, "sequence_number %d, not %d" % (
            data["sequence_number"], self.number)
        self.number += 1
        if data["type"] in self.ENDS:
            return self._end(data)
        handler = getattr(self, "_" + data["type"].removeprefix("response.").replace(".", "_"), None)
        assert handler, "the event %r" % data["type"]
        handler(data)

    def _begin(self, data, before, after):
        assert self.state == before, "%s in state %s" % (data["type"], self.state)
        need(data, {"response": (dict,)}, data["type"])
        responses_head(data["response"])
        assert data["response"]["output"] == [] and data["response"]["usage"] is None, data
        assert data["response"]["status"] in ("in_progress", "queued"), data["response"]["status"]
        assert self.response in (None, data["response"]["id"]), "the id changes"
        self.response, self.state = data["response"]["id"], after

    def _created(self, data):
        self._begin(data, "new", "created")

    def _in_progress(self, data):
        self._begin(data, "created", "open")

    def _output_item_added(self, data):
        assert self.state == "open" and self.item is None, "an item begins in another"
        need(data, {"output_index": (int,), "item": (dict,)}, "added")
        assert data["output_index"] == len(self.items), "output_index %d" % data["output_index"]
        item = data["item"]
        need(item, {"type": TEXT, "id": TEXT}, "added")
        if item["type"] == "message":
            need(item, {"role": TEXT, "status": TEXT, "content": (list,)}, "added")
            assert item["content"] == [] and item["status"] == "in_progress", item
        elif item["type"] == "function_call":
            need(item, {"call_id": TEXT, "name": TEXT, "arguments": TEXT, "status": TEXT}, "added")
            assert item["arguments"] == "" and item["status"] == "in_progress", item
        else:
            assert item["type"] == "reasoning", item
            need(item, {"summary": (list,), "content": (list, type(None))}, "added")
            assert item["summary"] == [] and not item["content"], item
        self.item, self.parts, self.text, self.text_done = item, [], "", False

    def _at(self, data, kind, part=True):
        assert self.item is not None, "%s outside an item" % data["type"]
        need(data, {"item_id": TEXT, "output_index": (int,)}, data["type"])
        assert data["item_id"] == self.item["id"], "%s of item %s" % (data["type"], data["item_id"])
        assert data["output_index"] == len(self.items), data
        assert self.item["type"] in kind, "%s in a %s" % (data["type"], self.item["type"])
        if part:
            need(data, {"content_index": (int,)}, data["type"])
            assert data["content_index"] == len(self.parts), data

    def _content_part_added(self, data):
        self._at(data, ("message", "reasoning"))
        assert self.part is None, "a part begins in another"
        need(data, {"part": (dict,)}, "part")
        assert responses_part(data["part"], "added") == "", "a part begins with text"
        self.part, self.text, self.text_done = data["part"]["type"], "", False

    def _content_part_done(self, data):
        self._at(data, ("message", "reasoning"))
        assert self.part, "a part that did not begin ends"
        need(data, {"part": (dict,)}, "part")
        assert responses_part(data["part"], "done") == self.text, "the part's text is another"
        assert self.text_done, "a part ends before its text"
        assert data["part"]["type"] == self.part, data
        self.parts.append(data["part"])
        self.part = None

    def _delta(self, data, kind, of):
        self._at(data, kind)
        need(data, {"delta": TEXT}, data["type"])
        # The SDK wants a part for text; for reasoning the part's events are optional.
        assert self.part == of or (of == "reasoning_text" and self.part is None), (
            "%s without its part" % data["type"])
        assert not self.text_done, "text goes on after its end"
        self.text += data["delta"]

    def _text_end(self, data, kind):
        self._at(data, kind)
        need(data, {"text": TEXT}, data["type"])
        assert data["text"] == self.text, "%s: %r is not %r" % (data["type"], data["text"], self.text)
        assert not self.text_done, "a text ends twice"
        self.text_done = True
        if self.part is None:
            self.parts.append({"type": "reasoning_text", "text": self.text})

    def _output_text_delta(self, data):
        need(data, {"logprobs": (list,)}, data["type"])
        for entry in data["logprobs"]:
            logprob_entry(entry, data["type"])
        assert self.part == "output_text", "text without its part"
        self._delta(data, ("message",), "output_text")

    def _output_text_done(self, data):
        need(data, {"logprobs": (list,)}, data["type"])
        for entry in data["logprobs"]:
            logprob_entry(entry, data["type"])
        assert self.part == "output_text", "text without its part"
        self._text_end(data, ("message",))

    def _reasoning_text_delta(self, data):
        self._delta(data, ("reasoning",), "reasoning_text")

    def _reasoning_text_done(self, data):
        self._text_end(data, ("reasoning",))

    def _function_call_arguments_delta(self, data):
        self._at(data, ("function_call",), part=False)
        need(data, {"delta": TEXT}, data["type"])
        assert not self.text_done, "arguments go on after their end"
        self.text += data["delta"]

    def _function_call_arguments_done(self, data):
        self._at(data, ("function_call",), part=False)
        need(data, {"arguments": TEXT, "name": TEXT}, data["type"])
        assert data["arguments"] == self.text, "arguments %r are not %r" % (data["arguments"], self.text)
        assert data["name"] == self.item["name"], "the name changes"
        assert not self.text_done, "arguments end twice"
        self.text_done = True

    def _output_item_done(self, data):
        need(data, {"output_index": (int,), "item": (dict,)}, "item done")
        assert self.item is not None, "an item that did not begin ends"
        assert self.part is None, "an item ends in a part"
        assert data["output_index"] == len(self.items), data
        item = data["item"]
        responses_item(item, cut=True)
        for name in ("id", "type", "call_id", "name"):
            assert item.get(name) == self.item.get(name), "%s of an item changes" % name
        if item["type"] == "function_call":
            assert self.text_done, "a call ends before its arguments"
            assert item["arguments"] == self.text, "the item has other arguments"
        else:
            assert item.get("content") or not self.parts, "the item has no content"
            assert [part["text"] for part in item.get("content") or []] == [
                part["text"] for part in self.parts], "the item has another text"
        self.items.append(item)
        self.item = None

    def _end(self, data):
        assert self.state == "open", "%s in state %s" % (data["type"], self.state)
        need(data, {"response": (dict,)}, data["type"])
        answer = data["response"]
        self.said = responses_answer(answer)
        assert answer["id"] == self.response, "the id changes"
        assert answer["status"] == self.ENDS[data["type"]], "%s of status %s" % (
            data["type"], answer["status"])
        if answer["status"] != "failed":
            assert self.item is None, "the response ends in an item"
            assert answer["output"] == self.items, "the output is not the items that were sent"
        self.state = "end"


def responses_stream(events):
    machine = ResponsesMachine()
    for event in events:
        machine.take(event)
    assert machine.state == "end", "no end of the response"
    return machine.said


# ---- Anthropic, messages ------------------------------------------------------------------------

STOPS = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "pause_turn",
         "model_context_window_exceeded"}


def messages_usage(usage, where="usage"):
    need(usage, {"input_tokens": (int,), "output_tokens": (int,)}, where)
    return {"input": usage["input_tokens"], "output": usage["output_tokens"],
            "cached": count(usage.get("cache_read_input_tokens") or 0, where)}


def messages_end(stop, sequence, calls):
    assert stop in STOPS, "stop_reason %r" % stop
    assert (sequence is not None) == (stop == "stop_sequence"), "stop_sequence %r with %s" % (
        sequence, stop)
    if stop == "tool_use":
        assert calls, "stop_reason tool_use without a call"
    if stop in ("end_turn", "stop_sequence"):
        assert not any(map(is_call, calls)), "a whole call, but stop_reason %s" % stop


def messages_head(message):
    need(message, {"id": TEXT, "type": TEXT, "role": TEXT, "model": TEXT, "content": (list,),
                   "usage": (dict,)}, "message")
    assert message["type"] == "message" and message["role"] == "assistant", message
    assert message["id"].startswith("msg_"), message["id"]
    assert "stop_reason" in message and "stop_sequence" in message, "no stop_reason"


def messages_answer(message):
    messages_head(message)
    said = Said(finish=message["stop_reason"], stop=message["stop_sequence"], id=message["id"],
                usage=messages_usage(message["usage"]))
    for block in message["content"]:
        need(block, {"type": TEXT}, "block")
        if block["type"] == "text":
            need(block, {"text": TEXT}, "block")
            said.text += block["text"]
        elif block["type"] == "thinking":
            need(block, {"thinking": TEXT, "signature": TEXT}, "block")
            said.reasoning += block["thinking"]
        elif block["type"] == "tool_use":
            need(block, {"id": TEXT, "name": TEXT, "input": (dict,)}, "block")
            said.calls.append(Call(block["id"], block["name"], block["input"]))
        else:
            raise AssertionError("a block of type %r" % block["type"])
    messages_end(said.finish, said.stop, said.calls)
    check_ids(said.calls)
    return said


class MessagesMachine:
    """Follows the events of a message. Blocks do not lie in each other."""
    DELTAS = {"text_delta": ("text", "text"), "thinking_delta": ("thinking", "thinking"),
              "signature_delta": ("thinking", "signature"),
              "input_json_delta": ("tool_use", "partial_json")}

    def __init__(self):
        self.state, self.block, self.blocks, self.said = "new", None, 0, Said()
        self.partial = []           # the arguments of each call, as text

    def take(self, event):
        data = event.json()
        need(data, {"type": TEXT}, "event")
        assert event.name == data["type"], "event %r of type %r" % (event.name, data["type"])
        assert self.state != "end", "an event behind message_stop"
        handler = getattr(self, "_" + data["type"], None)
        assert handler, "the event %r" % data["type"]
        handler(data)

    def _ping(self, data):
        pass                        # it may come at any place

    def _message_start(self, data):
        assert self.state == "new", "message_start twice"
        need(data, {"message": (dict,)}, "message_start")
        message = data["message"]
        messages_head(message)
        assert message["content"] == [] and message["stop_reason"] is None, message
        assert message["stop_sequence"] is None, message
        self.said.usage, self.said.id = messages_usage(message["usage"]), message["id"]
        self.state = "open"

    def _content_block_start(self, data):
        assert self.state == "open" and self.block is None, "a block begins in another"
        need(data, {"index": (int,), "content_block": (dict,)}, "block")
        assert data["index"] == self.blocks, "index %d, not %d" % (data["index"], self.blocks)
        block = data["content_block"]
        need(block, {"type": TEXT}, "block")
        if block["type"] == "text":
            assert block.get("text") == "", block
        elif block["type"] == "thinking":
            assert block.get("thinking") == "" and block.get("signature") == "", block
        else:
            assert block["type"] == "tool_use", block
            need(block, {"id": TEXT, "name": TEXT, "input": (dict,)}, "block")
            assert block["input"] == {} and block["name"], block
            self.said.calls.append(Call(block["id"], block["name"], None))
            self.partial.append("")
        self.block = block

    def _content_block_delta(self, data):
        assert self.block is not None, "a delta outside a block"
        need(data, {"index": (int,), "delta": (dict,)}, "delta")
        assert data["index"] == self.blocks, "a delta of another block"
        need(data["delta"], {"type": TEXT}, "delta")
        assert data["delta"]["type"] in self.DELTAS, data["delta"]
        kind, name = self.DELTAS[data["delta"]["type"]]
        assert kind == self.block["type"], "%s in a block of %s" % (
            data["delta"]["type"], self.block["type"])
        need(data["delta"], {name: TEXT}, "delta")
        piece = data["delta"][name]
        if name == "text":
            self.said.text += piece
        elif name == "thinking":
            self.said.reasoning += piece
        elif name == "partial_json":
            self.partial[-1] += piece

    def _content_block_stop(self, data):
        assert self.block is not None, "a block that did not begin ends"
        need(data, {"index": (int,)}, "stop")
        assert data["index"] == self.blocks, "another block ends"
        self.block, self.blocks = None, self.blocks + 1

    def _message_delta(self, data):
        assert self.state == "open" and self.block is None, "message_delta in a block"
        need(data, {"delta": (dict,), "usage": (dict,)}, "message_delta")
        need(data["delta"], {"stop_reason": TEXT, "stop_sequence": MAYBE_TEXT}, "message_delta")
        said = self.said
        said.finish, said.stop = data["delta"]["stop_reason"], data["delta"]["stop_sequence"]
        said.usage["output"] = count(data["usage"].get("output_tokens"), "message_delta")
        if "input_tokens" in data["usage"]:
            said.usage["input"] = count(data["usage"]["input_tokens"], "message_delta")
        if "cache_read_input_tokens" in data["usage"]:
            said.usage["cached"] = count(data["usage"]["cache_read_input_tokens"] or 0, "delta")
        for call, text in zip(said.calls, self.partial):
            call.arguments = arguments_of(text or "{}", said.finish == "tool_use")
        messages_end(said.finish, said.stop, said.calls)
        self.state = "delta"

    def _message_stop(self, data):
        assert self.state == "delta", "message_stop in state %s" % self.state
        self.state = "end"


def messages_stream(events):
    machine = MessagesMachine()
    for event in events:
        machine.take(event)
    assert machine.state == "end", "no message_stop"
    check_ids(machine.said.calls)
    return machine.said


# ---- Ollama -------------------------------------------------------------------------------------

WHEN = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
TIMES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def ollama_records(records, chat):
    """All records of /api/chat or /api/generate; one record if it was not streamed."""
    said = Said()
    assert records, "no records"
    for at, record in enumerate(records):
        need(record, {"model": TEXT, "created_at": TEXT, "done": (bool,)}, "record")
        assert "error" not in record, record
        assert WHEN.match(record["created_at"]), "created_at %r" % record["created_at"]
        assert record["done"] == (at == len(records) - 1), "done in record %d of %d" % (
            at, len(records))
        if chat:
            need(record, {"message": (dict,)}, "record")
            message = record["message"]
            need(message, {"role": TEXT, "content": TEXT}, "message")
            assert message["role"] == "assistant", message
            said.text += message["content"]
            for call in message.get("tool_calls") or []:
                need(call, {"function": (dict,)}, "call")
                need(call["function"], {"name": TEXT, "arguments": (dict,)}, "call")
                said.calls.append(Call(call.get("id"), call["function"]["name"],
                                       call["function"]["arguments"]))
            said.reasoning += message.get("thinking") or ""
        else:
            need(record, {"response": TEXT}, "record")
            said.text += record["response"]
            said.reasoning += record.get("thinking") or ""
        if not record["done"]:
            assert "done_reason" not in record, "done_reason before the end"
    last = records[-1]
    need(last, {"done_reason": TEXT}, "last record")
    assert last["done_reason"] in ("stop", "length", "load", "unload"), last["done_reason"]
    for name in TIMES:
        if name in last:
            assert type(last[name]) is int and last[name] >= 0, "%s is %r" % (name, last[name])
    said.finish = last["done_reason"]
    if said.finish in ("stop", "length"):
        need(last, {"total_duration": (int,), "eval_duration": (int,), "eval_count": (int,),
                    "prompt_eval_count": (int,)}, "last record")
        parts = last.get("load_duration", 0) + last.get("prompt_eval_duration", 0)
        parts += last["eval_duration"]
        assert last["total_duration"] >= parts * 0.99, "the parts are longer than the whole"
        said.usage = {"input": last["prompt_eval_count"], "output": last["eval_count"]}
    return said


def ollama_model(model, where="model"):
    need(model, {"name": TEXT, "model": TEXT, "size": (int,), "digest": TEXT, "details": (dict,)},
         where)
    need(model["details"], {"format": TEXT, "family": TEXT, "families": (list, type(None)),
                            "parameter_size": TEXT, "quantization_level": TEXT}, where)
    for name in ("modified_at", "expires_at"):
        if name in model:
            assert WHEN.match(model[name]), "%s: %s %r" % (where, name, model[name])
    assert re.fullmatch(r"(sha256:)?[0-9a-f]{64}", model["digest"]), model["digest"]


# ---- errors -------------------------------------------------------------------------------------


def dialect_of(path):
    if path.startswith("/v1/messages"):
        return "anthropic"
    return "ollama" if path.startswith("/api/") else "openai"


def error_body(dialect, body):
    """The message of an error, in the form of its dialect; also the type and the code."""
    if dialect == "ollama":
        assert set(body) == {"error"} and isinstance(body["error"], str), body
        return body["error"], None, None
    need(body, {"error": (dict,)}, "error")
    error = body["error"]
    need(error, {"message": TEXT, "type": TEXT}, "error")
    assert error["message"], "an error without a message"
    if dialect == "anthropic":
        assert body.get("type") == "error", "type %r" % body.get("type")
        need(body, {"request_id": TEXT}, "error")
        return error["message"], error["type"], None
    need(error, {"param": MAYBE_TEXT, "code": (str, int, type(None))}, "error")
    return error["message"], error["type"], error["code"]


def refusal(path, answer, status):
    """A refusal in the dialect of its route. Returns message, type and code."""
    assert answer.status == status, "status %d, not %d: %r" % (answer.status, status, answer.body[:300])
    for name in ("x-request-id", "request-id"):
        assert answer.header(name), "no %s" % name
    return error_body(dialect_of(path), answer.json())
