"""Routes that are samovar's own, and sampling as each dialect asks for it."""
import checkers
from checkers import refusal
from dialects import ALL, CHAT, MESSAGES, OLLAMA, OPENAI_AND_ANTHROPIC, RESPONSES, TOOLS, WEATHER, chat_tools, equal
from raw import strict_json
from scripted_model import END, text_of
from servers import Pair

PROMPT = "<|im_start|>user\nsay hello.<|im_end|>\n<|im_start|>assistant\n<|say hello|>"
TURNS = [{"role": "user", "content": "say hello."}]


def test_a_text_becomes_tokens_and_they_become_the_text(teaspoon):
    server = teaspoon.server()
    for text in ("Hello there.", "na\u00efve \U0001F600 \u6f22\u5b57\n\ttab", " leading", "<|im_end|>"):
        tokens = server.post("/tokenize", {"model": "teaspoon", "content": text}).json()["tokens"]
        assert all(type(token) is int for token in tokens), tokens
        equal("text", server.post("/detokenize", {"model": "teaspoon", "tokens": tokens}).json()["content"], text)
    again = server.post("/tokenize", {"content": "Hello there."}).json()["tokens"]
    equal("without a model", again, server.post("/tokenize", {"model": "teaspoon", "content": "Hello there."}).json()["tokens"])
    refusal("/detokenize", server.post("/detokenize", {"tokens": [10**9]}), 400)
    refusal("/detokenize", server.post("/detokenize", {"tokens": "x"}), 400)
    refusal("/tokenize", server.post("/tokenize", {"content": 7}), 400)


def test_a_template_is_shown(scripted):
    server = scripted.server()
    equal("prompt", server.post("/apply-template", {"model": "scripted", "messages": TURNS}).json()["prompt"], PROMPT)
    shown = server.post("/apply-template", {"model": "scripted", "messages": TURNS, "tools": chat_tools(TOOLS)}).json()["prompt"]
    assert "get_weather" in shown and '"city"' in shown, shown


def test_a_prompt_counts_the_tokens_that_were_shown(scripted):
    usage = CHAT.whole(scripted.server(), CHAT.body("scripted", "say hello.")).usage
    equal("tokens", usage["input"], len(PROMPT) - len("<|im_start|>") * 2 - len("<|im_end|>") - len("<|say hello|>") + 4)


def test_an_answer_goes_on_from_its_beginning(teaspoon):
    server, turns = teaspoon.server(), [{"role": "user", "content": "What is two plus three?"}]
    whole = CHAT.whole(server, {"model": "teaspoon", "messages": turns, "temperature": 0}).text
    begun = whole[:8]
    for dialect, more in ((CHAT, {"temperature": 0}), (MESSAGES, {"temperature": 0, "max_tokens": 99}), (OLLAMA, {"options": {"temperature": 0}})):
        body = {"model": "teaspoon", "messages": [*turns, {"role": "assistant", "content": begun}], **more}
        said = dialect.whole(server, body).text
        assert (begun + said).split()[-1] == whole.split()[-1], (dialect.name, begun, said)


def test_greedy_is_greedy_and_a_seed_a_seed_in_each_dialect(teaspoon):
    server, text = teaspoon.server(), "Tell me a story about a fox."
    said = {}
    for dialect in ALL:
        more = {"options": {"temperature": 0}} if dialect is OLLAMA else {"temperature": 0}
        said[dialect.name] = dialect.whole(server, dialect.body("teaspoon", text, most=40, **more)).text
    equal("greedy", len(set(said.values())), 1)
    drawn = set()
    for seed in (1, 1, 2):
        for dialect, more in ((CHAT, {"temperature": 2, "seed": seed, "min_p": 0}),
                              (OLLAMA, {"options": {"temperature": 2, "seed": seed, "min_p": 0, "top_p": 1, "top_k": 0}})):
            drawn.add(dialect.whole(server, dialect.body("teaspoon", text, most=40, **more)).text)
    equal("drawn", len(drawn), 2)


def test_the_progress_of_a_prompt_with_and_without_usage(scripted):
    """The checker wants `usage: null` in each chunk but the last, if usage was asked for."""
    text = "say hello." + " Be brief, and kind to all." * 400
    for usage in (True, False):
        body = {**CHAT.body("scripted", "%d %s" % (usage, text)), "return_progress": True, "stream_options": {"include_usage": usage}}
        events = scripted.server().events(CHAT.path, body)
        told = [event.json()["prompt_progress"] for event in events if not event.done and "prompt_progress" in event.json()]
        assert told and told[-1]["processed"] <= told[-1]["total"], told
        checkers.chat_stream(events, include_usage=usage)


def test_logprobs_in_each_dialect_that_has_them(scripted):
    server = scripted.server()
    body = {**CHAT.body("scripted", "say numbers."), "logprobs": True, "top_logprobs": 5}
    whole = checkers.chat_answer(server.post(CHAT.path, body).json(), asked_logprobs=True)[0]
    streamed = checkers.chat_stream(server.events(CHAT.path, body), asked_logprobs=True)[0]
    equal("streamed", streamed.logprobs, whole.logprobs)
    equal("text", "".join(entry["token"] for entry in whole.logprobs), text_of("numbers").decode())
    said = checkers.completion_answer(server.post("/v1/completions", {
        "model": "scripted", "prompt": "Count?", "logprobs": 3, "max_tokens": 50}).json())[0]
    equal("completion", "".join(token for token, _ in said.logprobs), text_of("numbers").decode() + END)
    answer = server.post(RESPONSES.path, {**RESPONSES.body("scripted", "say numbers."), "top_logprobs": 2,
                                          "include": ["message.output_text.logprobs"]})
    part = answer.json()["output"][0]["content"][0]
    equal("responses", "".join(entry["token"] for entry in part["logprobs"]), text_of("numbers").decode())


def test_echo_has_one_entry_for_each_token_even_if_the_answer_ends_at_once(teaspoon):
    """lm-eval drops the last entry as that of the answer, and adds up those in front of it."""
    body = {"model": "teaspoon", "prompt": "Question: What is 2 + 3?\nAnswer: 5", "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
    answer = teaspoon.server().post("/v1/completions", body).json()
    said, usage = answer["choices"][0], answer["usage"]
    equal("finish", (said["finish_reason"], said["text"]), ("stop", body["prompt"]))
    equal("usage", usage["completion_tokens"], 1)
    for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        equal(name, len(said["logprobs"][name]), usage["prompt_tokens"] + 1)
    equal("end", (said["logprobs"]["tokens"][-1], said["logprobs"]["text_offset"][-1]), ("<|im_end|>", len(body["prompt"])))
    streamed = checkers.completion_stream(teaspoon.server().events("/v1/completions", body))[0]
    equal("streamed", streamed.logprobs, list(zip(said["logprobs"]["tokens"], said["logprobs"]["token_logprobs"])))


def test_logprobs_of_what_a_stop_string_hides_are_not_sent(scripted):
    body = {**CHAT.body("scripted", "say numbers.", stop=["five"]), "logprobs": True}
    for said in (checkers.chat_answer(scripted.server().post(CHAT.path, body).json(), asked_logprobs=True)[0],
                 checkers.chat_stream(scripted.server().events(CHAT.path, body), asked_logprobs=True)[0]):
        equal("text", said.text, "one two three four ")
        at = 0
        for entry in said.logprobs:
            assert at < len(said.text), "a hidden token: %s" % entry
            at += len(entry["token"])
        assert at >= len(said.text), said


def test_cached_tokens_of_a_second_turn(scripted):
    server, turns = scripted.server(), [{"role": "system", "content": "Be brief, and kind to all. " * 60}, *TURNS]
    first = CHAT.whole(server, {"model": "scripted", "messages": turns})
    turns += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "Again: say hello."}]
    again = CHAT.whole(server, {"model": "scripted", "messages": turns})
    assert again.usage["cached"] > 0.95 * first.usage["input"] - 32, (first.usage, again.usage)


class Records:
    """The records of an Ollama stream, with what a stream of events has."""

    def __init__(self, connection, response):
        assert response.status == 200, response.read()
        self.connection, self.response, self.header = connection, response, response.getheader

    def __iter__(self):
        for line in self.response:
            record = strict_json(line)
            for name in ("created_at", "total_duration"):   # of this writing of the record
                record.pop(name, None)
            yield record

    def leave(self):
        self.response.close()
        self.connection.close()


def begun(server, dialect, body):
    if dialect is OLLAMA:
        return Records(*server.open("POST", dialect.path, body))
    return server.stream(dialect.path, body)


def resumed(server, dialect, path):
    return Records(*server.open("GET", path)) if dialect is OLLAMA else server.resumed(path)


def events_of(stream, count=None):
    """The next events of a stream as they were sent, or all that are left."""
    found = []
    for event in stream:
        found.append(event if isinstance(event, dict) else (event.name, event.data))
        if len(found) == count:
            break
    return found


def test_a_stream_that_was_lost_is_read_again_in_each_dialect(scripted):
    server, other = scripted.server(), scripted.server(1)
    for dialect in ALL:
        more = {"options": {"ignore_eos": True}} if dialect is OLLAMA else {"ignore_eos": True}
        stream = begun(server, dialect, {**dialect.body("scripted", "say forever.", most=400, **more), "stream_keep_ms": 60000})
        name = stream.header("x-samovar-stream-id")
        first = events_of(stream, 20)
        stream.leave()
        rest = events_of(resumed(server, dialect, "/v1/streams/%s?from=20" % name))
        whole = events_of(resumed(server, dialect, "/v1/streams/" + name))
        equal(dialect.name, first + rest, whole)
        assert len(rest) > 100, len(rest)
        refusal("/v1/streams", other.get("/v1/streams/" + name), 404)
        refusal("/v1/streams", other.ask("DELETE", "/v1/streams/" + name), 404)
        equal("dropped", server.ask("DELETE", "/v1/streams/" + name).status, 200)
        refusal("/v1/streams", server.get("/v1/streams/" + name), 404)


def test_a_stream_that_goes_on_without_its_client_can_be_ended(scripted):
    server = scripted.server()
    body = {**CHAT.body("scripted", "say forever.", most=60000), "stream_keep_ms": 60000, "ignore_eos": True}
    stream = server.stream(CHAT.path, body)
    name = stream.header("x-samovar-stream-id")
    events_of(stream, 5)
    stream.leave()
    equal("it goes on", len(events_of(server.resumed("/v1/streams/" + name), 50)), 50)
    assert scripted.alive() > 0
    server.ask("DELETE", "/v1/streams/" + name)
    scripted.until_idle()


def test_the_log_probabilities_of_a_prompt_are_those_of_an_answer(teaspoon):
    server = teaspoon.server()
    ask = {"model": "teaspoon", "temperature": 0, "logprobs": 2}
    said = server.post("/v1/completions", {**ask, "prompt": "Once upon a", "max_tokens": 12}).json()["choices"][0]
    score = {**ask, "prompt": "Once upon a" + said["text"], "echo": True, "max_tokens": 0}
    choice = server.post("/v1/completions", score).json()["choices"][0]
    equal("text", choice["text"], score["prompt"])
    equal("tokens", "".join(choice["logprobs"]["tokens"]), score["prompt"])
    equal("first", (choice["logprobs"]["token_logprobs"][0], choice["logprobs"]["top_logprobs"][0]), (None, None))
    count = len(said["logprobs"]["tokens"])
    for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        want = said["logprobs"][name]
        if name == "text_offset":
            want = [offset + len("Once upon a") for offset in want]
        equal(name, choice["logprobs"][name][-count:], want)
    more = server.post("/v1/completions", {**score, "max_tokens": 3}).json()["choices"][0]["logprobs"]
    equal("with an answer", more["token_logprobs"][:-3], choice["logprobs"]["token_logprobs"])


TIERS = {"flex": "background", "priority": "interactive", "fast": "interactive", "auto": "normal", "standard_only": "normal",
         "default": "normal", "scale": "normal", None: "normal"}
TOLD = {"background": ("flex", "batch"), "interactive": ("priority", "priority"), "normal": ("default", "standard")}


def test_a_service_tier_is_a_priority_of_the_daemon(scripted):
    server = scripted.server()
    for dialect in OPENAI_AND_ANTHROPIC:
        for tier, priority in TIERS.items():
            stream = server.stream(dialect.path, dialect.body("scripted", "say forever.", most=10**6, service_tier=tier))
            next(stream)
            equal("%s, %s" % (dialect.name, tier), [row["priority"] for row in scripted.streams()], [priority])
            stream.leave()
            scripted.until_idle()
            said = server.post(dialect.path, dialect.body("scripted", "say hello.", service_tier=tier)).json()
            told = said["usage"]["service_tier"] if dialect is MESSAGES else said["service_tier"]
            equal("%s, %s: told" % (dialect.name, tier), told, TOLD[priority][dialect is MESSAGES])
        refusal(dialect.path, server.post(dialect.path, dialect.body("scripted", "say hello.", service_tier="gold")), 400)


def diagnosis(server, dialect, system, tool, text, streamed):
    """What an answer says of the cache, and the tokens of its prompt."""
    tools = ((tool, *WEATHER[1:]),)
    if dialect is MESSAGES:
        more, last = {"system": system, "diagnostics": {"previous_message_id": None}}, "message_delta"
    else:
        more, last = {"instructions": system, "prompt_cache_options": {"comparison_response_id": "resp_none"}}, "response.completed"
    body = dialect.body("scripted", text, tools=tools, **more)
    if not streamed:
        answer = server.post(dialect.path, body).json()
    else:
        answer = [event.json() for event in server.events(dialect.path, body) if event.name == last][0]
        answer = {"usage": answer["usage"], **answer["delta"]} if dialect is MESSAGES else answer["response"]
    usage = answer["usage"]
    if dialect is MESSAGES:
        return answer["diagnostics"], usage["input_tokens"] + usage["cache_read_input_tokens"]
    return answer["prompt_cache_diagnostics"], usage["input_tokens"]


def test_the_part_of_a_prompt_that_left_the_cache_is_named(build):
    server = Pair(build, "scripted").server()
    first = ["Be brief, first.", "first_tool", "First: say hello."]
    equal("nothing is cached", diagnosis(server, RESPONSES, *first, False)[0], {"type": "unavailable"})
    for dialect, unchanged, reasons in (
            (MESSAGES, None, ("system_changed", "tools_changed", "messages_changed")),
            (RESPONSES, {"type": "cache_hit"}, ("input_changed", "tools_changed", "input_changed"))):
        for streamed in (False, True):
            equal("%s: unchanged" % dialect.name, diagnosis(server, dialect, *first, streamed)[0], unchanged)
            for part, reason in enumerate(reasons):
                # Each is asked for once: what was asked for is cached.
                changed = [*first]
                changed[part] = changed[part].replace("irst", "%d%d" % (dialect is MESSAGES, streamed))
                said, tokens = diagnosis(server, dialect, *changed, streamed)
                if dialect is MESSAGES:
                    missed = said["cache_miss_reason"]["cache_missed_input_tokens"]
                    equal("%s, %d" % (dialect.name, part), said["cache_miss_reason"]["type"], reason)
                else:
                    missed = said["cache_missed_tokens"]
                    equal("%s, %d" % (dialect.name, part), (said["type"], said["reason"]), ("cache_miss", reason))
                    equal("before and after", said["comparison_reusable_tokens"] + missed, tokens)
                assert 0 < missed < tokens, (said, tokens)


def test_why_the_cache_missed_is_told_only_if_it_was_asked_for(scripted):
    server = scripted.server()
    for text in ("One: say hello.", "Two: say hello."):
        assert "diagnostics" not in server.post(MESSAGES.path, MESSAGES.body("scripted", text)).json()
        for more in ({}, {"prompt_cache_options": {}}, {"prompt_cache_options": {"comparison_response_id": None}}):
            assert "prompt_cache_diagnostics" not in server.post(RESPONSES.path, RESPONSES.body("scripted", text, **more)).json()
