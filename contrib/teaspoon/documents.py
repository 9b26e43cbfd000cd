"""The corpus as it is read: documents, and the text that a model sees of each.

A chat is rendered through chat_template.jinja in the way transformers does it, which is the way it
is rendered when the model is served: what was trained and what is asked agree to the byte.
"""
import json
import os

from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
TURN, ASSISTANT, END = "<|im_start|>", "<|im_start|>assistant\n", "<|im_end|>"


def template():
    """The chat template, compiled as transformers compiles it."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    with open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8") as file:
        return env.from_string(file.read())


TEMPLATE = template()


def documents(folder, part):
    with open(os.path.join(folder, part + ".jsonl"), encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def chat(messages, tools=None, ask=False):
    """A chat as text; with ask, up to where the assistant begins to speak."""
    return TEMPLATE.render(messages=messages, tools=tools, add_generation_prompt=ask)


def render(document):
    if "text" in document:
        return document["text"] + "<|endoftext|>"
    return chat(document["messages"], document.get("tools"))


def spoken(text):
    """A chat's text as (piece, whether the assistant says it).

    What it says ends with <|im_end|>; the head of its turn is given, not said.
    """
    before = 0
    while (at := text.find(ASSISTANT, before)) >= 0:
        begin = at + len(ASSISTANT)
        end = text.index(END, begin) + len(END)
        yield text[before:begin], False
        yield text[begin:end], True
        before = end
    yield text[before:], False
