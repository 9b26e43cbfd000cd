#!/usr/bin/env python3
"""What transformers makes of the model that is shipped.

    shipped.py models/teaspoon-q8_0.gguf contrib/teaspoon/dev.jsonl tests/golden/shipped/teaspoon.txt

transformers reads the GGUF file by itself: its rows as the numbers they stand for, its vocabulary and
its chat template.  Twenty conversations, their first answers, and the logits that the first and the
last token of each were chosen from, computed in float32, are written in forward.py's format.
"""
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from forward import wrapped

TEXTS, ANSWER, PROMPT_MAX = 20, 12, 160


def prompts_of(path, tokenizer):
    """Of every kind some, as many tokens as the test has room for."""
    kinds = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            prompt = json.loads(line)
            ids = tokenizer.apply_chat_template(prompt["messages"], tools=prompt.get("tools"),
                                                add_generation_prompt=True, return_dict=False)
            if len(ids) <= PROMPT_MAX:
                kinds.setdefault(prompt["kind"], []).append(ids)
    most = max(map(len, kinds.values()))
    turns = [ids for row in range(most) for some in kinds.values() for ids in some[row : row + 1]]
    return turns[:TEXTS]


def main():
    model_path, prompts, out = sys.argv[1:]
    folder, name = os.path.split(os.path.abspath(model_path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    with open(out, "w", encoding="utf-8") as file:
        for prompt in prompts_of(prompts, tokenizer):
            text, rows = list(prompt), []
            for _ in range(ANSWER):
                with torch.no_grad():
                    rows.append(model(torch.tensor([text])).logits[0, -1])
                text.append(int(rows[-1].argmax()))
                if text[-1] == tokenizer.eos_token_id:
                    break
            best = [torch.topk(row, 2).values for row in rows]
            file.write(f"prompt {len(prompt)}" + wrapped([str(token) for token in prompt]))
            file.write(f"greedy {len(rows)}" + wrapped([str(t) for t in text[len(prompt):]]))
            file.write(f"margin {len(rows)}"
                       + wrapped([f"{float(two[0] - two[1]):.6g}" for two in best]))
            for at in (0, len(rows) - 1):
                file.write(f"logits {at} {len(rows[at])}"
                           + wrapped([f"{float(x):.6g}" for x in rows[at]]))


if __name__ == "__main__":
    main()
