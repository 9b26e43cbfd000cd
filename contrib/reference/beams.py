#!/usr/bin/env python3
"""What transformers finds by beam search with the model that is shipped.

    beams.py models/teaspoon-q8_0.gguf contrib/teaspoon/dev.jsonl tests/golden/shipped/beams.txt

The prompts are those of shipped.py.  Each is a line of numbers: how many ways are followed, the
length penalty, the most tokens; then `prompt`, and for every way that was found `way`: its score,
whether the model ended it, and its tokens without the one that did.
"""
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from shipped import prompts_of

SEARCHES = [(4, 1.0, 40), (2, 0.0, 24), (8, 2.0, 16)]


def main():
    model_path, prompts, out = sys.argv[1:]
    folder, name = os.path.split(os.path.abspath(model_path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    ends = sorted({tokenizer.eos_token_id, *tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])})
    with open(out, "w", encoding="utf-8") as file:
        for prompt in prompts_of(prompts, tokenizer):
            for width, penalty, most in SEARCHES:
                found = model.generate(torch.tensor([prompt]), num_beams=width, length_penalty=penalty,
                                       max_new_tokens=most, num_return_sequences=width, do_sample=False,
                                       eos_token_id=ends, pad_token_id=ends[0], temperature=None,
                                       top_p=None, top_k=None,
                                       return_dict_in_generate=True, output_scores=True)
                file.write("search %d %g %d %d\n" % (width, penalty, most, width))
                file.write("prompt %d %s\n" % (len(prompt), " ".join(map(str, prompt))))
                for row, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
                    way = row[len(prompt):]
                    end = next((i for i, token in enumerate(way) if token in ends), None)
                    way = way[:end]
                    file.write("way %.7g %d %d %s\n" % (score, end is not None, len(way),
                                                        " ".join(map(str, way))))


if __name__ == "__main__":
    main()
