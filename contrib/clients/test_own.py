"""Routes that are samovar's own, and sampling as each dialect asks for it."""
import checkers
from checkers import refusal
from dialects import ALL, CHAT, MESSAGES, OLLAMA, RESPONSES, TOOLS, chat_tools, equal
from scripted_model import END, text_of

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


def events_of(stream, count=None):
    """The data of the next events of a stream, or of all that are left."""
    found = []
    for event in stream:
        found.append(event.data)
        if len(found) == count:
            break
    return found


def test_a_stream_that_was_lost_is_read_again(scripted):
    server, other = scripted.server(), scripted.server(1)
    for dialect in (CHAT, RESPONSES):
        body = {**dialect.body("scripted", "say forever.", most=400), "stream_keep_ms": 60000, "ignore_eos": True}
        stream = server.stream(dialect.path, body)
        name = stream.header("x-samovar-stream-id")
        first = events_of(stream, 20)
        stream.leave()
        rest = events_of(server.resumed("/v1/streams/%s?from=20" % name))
        whole = events_of(server.resumed("/v1/streams/" + name))
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
