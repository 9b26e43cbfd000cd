"""The four dialects in one shape, so that a table of cases can be asked in each."""
import checkers

WEATHER = ("get_weather", "Get the weather of a city",
           {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
TIME = ("get_time", "Get the time", {"type": "object", "properties": {}})
MESSAGE = ("send_message", "Send a message",
           {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
            "required": ["to", "text"]})
TOOLS = (WEATHER, TIME, MESSAGE)


def chat_tools(tools=TOOLS):
    return [{"type": "function", "function": {"name": name, "description": what, "parameters": schema}}
            for name, what, schema in tools]


def responses_tools(tools=TOOLS):
    return [{"type": "function", "name": name, "description": what, "parameters": schema}
            for name, what, schema in tools]


def messages_tools(tools=TOOLS):
    return [{"name": name, "description": what, "input_schema": schema} for name, what, schema in tools]


class Chat:
    name, path = "chat", "/v1/chat/completions"
    ends = {"eos": "stop", "stop": "stop", "length": "length", "full": "length", "call": "tool_calls",
            "cut call": "length"}

    def body(self, model, text, /, most=None, stop=None, tools=None, **more):
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        if most is not None:
            body["max_tokens"] = most
        if stop is not None:
            body["stop"] = stop
        if tools is not None:
            body["tools"] = chat_tools(tools)
        return body

    def whole(self, server, body):
        answer = server.post(self.path, body)
        assert answer.status == 200, answer
        return checkers.chat_answer(answer.json())[0]

    def streamed(self, server, body):
        body = {**body, "stream_options": {"include_usage": True}}
        return checkers.chat_stream(server.events(self.path, body), include_usage=True)[0]


class Responses:
    name, path = "responses", "/v1/responses"
    ends = {"eos": "completed", "stop": None, "length": "incomplete", "full": "incomplete",
            "call": "completed", "cut call": "incomplete"}

    def body(self, model, text, /, most=None, stop=None, tools=None, **more):
        body = {"model": model, "input": text, "store": False, **more}
        if most is not None:
            body["max_output_tokens"] = most
        if tools is not None:
            body["tools"] = responses_tools(tools)
        return body

    def whole(self, server, body):
        answer = server.post(self.path, body)
        assert answer.status == 200, answer
        return checkers.responses_answer(answer.json())

    def streamed(self, server, body):
        return checkers.responses_stream(server.events(self.path, body))


class Messages:
    name, path = "messages", "/v1/messages"
    ends = {"eos": "end_turn", "stop": "stop_sequence", "length": "max_tokens",
            "full": "model_context_window_exceeded", "call": "tool_use", "cut call": "max_tokens"}

    def body(self, model, text, /, most=1000, stop=None, tools=None, **more):
        body = {"model": model, "max_tokens": most, "messages": [{"role": "user", "content": text}], **more}
        if stop is not None:
            body["stop_sequences"] = stop
        if tools is not None:
            body["tools"] = messages_tools(tools)
        return body

    def whole(self, server, body):
        answer = server.post(self.path, body)
        assert answer.status == 200, answer
        return checkers.messages_answer(answer.json())

    def streamed(self, server, body):
        return checkers.messages_stream(server.events(self.path, body))


class OllamaChat:
    name, path = "ollama", "/api/chat"
    ends = {"eos": "stop", "stop": "stop", "length": "length", "full": "length", "call": "stop",
            "cut call": "length"}

    def body(self, model, text, /, most=None, stop=None, tools=None, **more):
        options = dict(more.pop("options", {}))
        if most is not None:
            options["num_predict"] = most
        if stop is not None:
            options["stop"] = stop
        body = {"model": model, "messages": [{"role": "user", "content": text}], "options": options, **more}
        if tools is not None:
            body["tools"] = chat_tools(tools)
        return body

    def whole(self, server, body):
        answer = server.post(self.path, {**body, "stream": False})
        assert answer.status == 200, answer
        return checkers.ollama_records([answer.json()], chat=True)

    def streamed(self, server, body):
        return checkers.ollama_records(server.lines(self.path, body), chat=True)


CHAT, RESPONSES, MESSAGES, OLLAMA = Chat(), Responses(), Messages(), OllamaChat()
ALL = (CHAT, RESPONSES, MESSAGES, OLLAMA)
OPENAI_AND_ANTHROPIC = (CHAT, RESPONSES, MESSAGES)


def both(dialect, server, body):
    """Asks twice, whole and streamed, and wants the same. Returns what was said in the stream."""
    whole, streamed = dialect.whole(server, body), dialect.streamed(server, body)
    for name in ("text", "reasoning", "finish", "stop"):
        assert getattr(whole, name) == getattr(streamed, name), "%s: %s is %r whole, %r streamed" % (
            dialect.name, name, getattr(whole, name), getattr(streamed, name))
    cut = whole.finish in ("length", "incomplete", "max_tokens")     # arguments that are no JSON
    named = [[(call.name, None if cut else call.arguments) for call in one.calls] for one in (whole, streamed)]
    assert named[0] == named[1], "%s: calls are %s whole, %s streamed" % (dialect.name, *named)
    for name in ("input", "output"):
        if dialect is MESSAGES and name == "input":
            continue                    # what is cached does not count as input, so it may differ
        assert whole.usage[name] == streamed.usage[name], "%s: %s %s" % (dialect.name, whole.usage, streamed.usage)
    return streamed


def equal(what, is_now, should_be):
    assert is_now == should_be, "%s: %r, not %r" % (what, is_now, should_be)
