"""Responses on handles have the tokens of a request with all items, whatever the template is.

Needs templates of real models in SAMOVAR_DATA; runs only if it is named.
"""
import json
import os
from pathlib import Path

import openai

import scripted_model
from dialects import equal, responses_tools
from servers import Pair
from test_histories import user, ways
from test_openai_sdk import client

TILDE = ord("~")
SETTINGS = [{}, {"instructions": "Be kind."}, {"tools": responses_tools()},
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}]


class OneByte(scripted_model.Vocabulary):
    """Every answer is one byte, which is the same token when it comes back as a text."""

    def __init__(self, seed):
        super().__init__(seed)
        self.next = {token: TILDE for token in range(len(self.tokens))}
        self.next[TILDE] = self[scripted_model.END]


def templates():
    folder = Path(os.environ["SAMOVAR_DATA"]) / "templates"
    found = {name: model["template"] for name, model in json.loads((folder / "jinja.cpp/chat_templates.json").read_text()).items()}
    for one in json.loads((folder / "hf-jinja/e2e.json").read_text()):
        found.setdefault(one["name"], one["chat_template"])
    return found


def talk(pair, what, more):
    """Three turns; returns how many continued. None: the template refuses such a conversation."""
    asked, items, last, before = client(pair).responses, [], None, ways(pair)[0]
    more = {"model": "scripted", "temperature": 0, **more}
    for turn in range(3):
        items.append(user("Question %d of %s" % (turn, what)))
        try:
            whole = asked.create(input=items, store=False, **more)
        except openai.BadRequestError:
            return None
        said = asked.create(input=[items[-1]], previous_response_id=last, **more)
        equal("%s: tokens of the prompt" % what, said.usage.input_tokens, whole.usage.input_tokens)
        equal("%s: the same tokens" % what, said.usage.input_tokens_details.cached_tokens, whole.usage.input_tokens - 1)
        items += [item.model_dump(exclude_none=True) for item in said.output]
        last = said.id
    return ways(pair)[0] - before


def test_handles_have_the_tokens_of_all_items_with_templates_in_use(build):
    scripted_model.Vocabulary = OneByte
    all_told = [0] * len(SETTINGS)
    for name, text in templates().items():
        scripted_model.template = lambda: text
        pair = Pair(build, "scripted", keys=None)
        for number, more in enumerate(SETTINGS):
            continued = talk(pair, "%s, setting %d" % (name, number), more)
            assert continued in (None, 0, 2), (name, number, continued)
            all_told[number] += continued == 2
        pair.end()
    assert min(all_told) > 30, all_told     # of 67, these continue on handles


test_handles_have_the_tokens_of_all_items_with_templates_in_use.limit = 600
