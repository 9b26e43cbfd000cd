"""A batch by a pipeline of transformers, for contrib/bench/offline.

    transformers_batch.py MODEL.gguf SIZE TOKENS THREADS <PROMPTS

Reads a prompt from each line of stdin, and prints tokens a second; loading and a first short batch
are not in the time.  The weights are the file's, as floats.
"""
import os
import sys
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline


def main():
    path, size, tokens, threads = sys.argv[1], *map(int, sys.argv[2:])
    prompts = [line.rstrip("\n") for line in sys.stdin]
    folder, name = os.path.split(os.path.abspath(path))
    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name, padding_side="left")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    run = pipeline("text-generation", model=model, tokenizer=tokenizer, batch_size=size)
    run(prompts[:size], max_new_tokens=2, min_new_tokens=2, do_sample=False)
    began = time.monotonic()
    answers = run(prompts, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, return_tensors=True)
    seconds = time.monotonic() - began
    if any(len(answer[0]["generated_token_ids"]) < tokens for answer in answers):
        sys.exit("the pipeline made fewer tokens than were asked for")
    print(len(prompts) * tokens / seconds)


if __name__ == "__main__":
    main()
