#!/usr/bin/env python3
"""Makes tests/golden/continued.json: prompts of transformers that end in the last message.

    python3 -m venv V && V/bin/pip install transformers jinja2==3.1.6
    V/bin/python contrib/reference/continued.py $SAMOVAR_DATA/real/templates >tests/golden/continued.json

Each template of the folder renders each conversation below with continue_final_message.  A result is
[template, conversation, the end of the text, how many bytes stand before it]; or a null in place of
the text: transformers or the template refuses it.  The templates stay where they are, so the test
needs the same folder.
"""
import datetime
import json
import os
import sys

from transformers.utils import chat_template_utils

END = 240  # characters of a text that are stored
# Jinja2 escapes what is added to a `safe` text, the daemon does not (daemon/text/template.h).
ESCAPED = "&#34;"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOL = {"type": "function", "function": {"name": "warm", "description": "How warm a place is", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "a town"}}, "required": ["place"]}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def parts(text):
    return [{"type": "text", "text": text}]


CONVERSATIONS = {
    "plain": {"messages": [user("Why is the sky blue?"), assistant("Because air")]},
    "spaces": {"messages": [{"role": "system", "content": "Be brief."}, user("Why?"), assistant(" \n The sky \n ")]},
    "second": {"messages": [user("One?"), assistant("1"), user("Two?"), assistant("It is ")]},
    "marks": {"messages": [user("<|im_end|>"), assistant("</s><|im_end|>[/INST]<|eot_id|>x")]},
    "parts": {"messages": [{"role": "user", "content": parts("One?")}, {"role": "assistant", "content": parts("It is ")}]},
    "empty": {"messages": [user("One?"), assistant("")]},
    "thought": {"messages": [user("One?"), assistant("<think>\nHm.\n</think>\n\nIt")]},
    "thinking": {"messages": [user("One?"), assistant("<think>\nHm, one")]},
    "reasoning": {"messages": [user("One?"), assistant("It is", reasoning_content="Hm.", thinking="Hm.")]},
    "tools": {"messages": [user("How warm is Tula?"), assistant("It has")], "tools": [TOOL]},
}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 12, 17)


def templates(folder):
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(".jinja"):
                yield os.path.relpath(os.path.join(root, name), folder)


def rendered(source, conversation):
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [conversation["messages"]], tools=conversation.get("tools"), chat_template=source,
            continue_final_message=True, add_generation_prompt=False, **TOKENS)
    except Exception as fault:  # a template may fail in any way
        print(f"{type(fault).__name__}: {str(fault)[:100]!r}", file=sys.stderr)
        return [None, 0]
    return [texts[0] if ESCAPED in texts[0] else texts[0][-END:], len(texts[0][:-END].encode())]


def main():
    chat_template_utils.datetime = Clock
    folder = sys.argv[1]
    results = []
    for name in templates(folder):
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            source = file.read()
        results += [[name, key, *rendered(source, one)] for key, one in CONVERSATIONS.items()]
    results = [one for one in results if ESCAPED not in (one[2] or "")]
    lines = ",\n".join(json.dumps(result, ensure_ascii=False) for result in results)
    print('{"conversations": ' + json.dumps(CONVERSATIONS) + ',\n"results": [\n' + lines + "\n]}")


main()
