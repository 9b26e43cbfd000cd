#!/usr/bin/env python3
"""Small models of many families, with what transformers makes of them.

    families.py tests/golden/families [NAME ...]
    families.py --check tests/golden/families [NAME ...]

A folder is a model as Hugging Face has it (config.json and safetensors), NAME.gguf is the same
model as llama.cpp's converter would write it, and NAME.txt says which logits it gives: those of
transformers, in float64 but for norms, softmax and the angles of rope, which it
always computes in float32.
Prompts and tokens are in the format of forward.py; the first line names the files.

family_models.py has the models, family_wide.py those for GPUs, family_files.py spells their files,
and family_gguf.py writes GGUF.  family_gemma4.py has what Gemma 4 alone needs.  family_remote.py has
families whose code transformers does not have.
The numbers are random, and large enough that positions matter.  Models that differ in their
config.json alone share their tensors by a symbolic link.  Needs torch, transformers, safetensors
and gguf.  A model depends on its name alone, so it can be made again without the others.  Never
make one again because a test fails: find out first who is wrong.

With --check nothing is written: each setting and each tensor of a stored model is changed in turn,
and the logits have to notice.  witness.py compares the GGUF files with llama.cpp.
"""
import math
import os
import re
import sys
import zlib

import torch

import family_check
import family_files
import family_gguf
import family_remote
import family_wide
from family_models import MODELS, SMALL
from forward import wrapped

PROMPTS = [9, 40]
GREEDY = 12
NORM = re.compile(r"(^|\.)[^.]*(norm|ln_)[^.]*(\.norms\.\d+)?\.weight$")
EMBEDDING = re.compile(r"embed|wte|wpe")
family_wide.add(MODELS)
AROUND_ZERO = {"gemma", "gemma2", "gemma3_text", "nemotron"}  # the model adds 1 to a norm's weights


def scale_of(name, p, model, product):
    """Embeddings of 1, or less where they are multiplied or are the head; products of that size."""
    config = model.config.get_text_config()
    if not EMBEDDING.search(name):
        inputs = p.shape[0] if type(model.get_submodule(name.rpartition(".")[0])).__name__ == (
            "Conv1D") else p[0].numel()
        # in a deep model the branches add less, or rounding would decide about the logits
        deep = config.num_hidden_layers > 8 and re.search(r"o_proj|down_proj", name)
        return (0.15 if deep else product) / math.sqrt(inputs)
    if "per_layer" in name:
        return 0.3
    if config.model_type.startswith("gemma"):
        return 0.1
    if config.model_type.startswith("granite"):
        return 0.05
    return 0.2 if config.tie_word_embeddings else 1.0


def norm_of(name, model):
    """A tied head has small numbers, or tokens would follow themselves; the last norm makes up."""
    config = model.config.get_text_config()
    if config.model_type == "gemma4_text" and re.search(r"[qk]_norm", name):
        return 1.0 / model.get_parameter(name).numel() ** 0.25  # its scores are not scaled
    if config.model_type == "gemma4_text" and "post_" in name:
        return 0.4  # or each of its three branches would multiply rounding
    usual = 1
    if config.tie_word_embeddings and not re.search(r"\.\d+\.|per_layer", name):
        usual = 0.2 if "embed" in name else 2.5
    return usual - (config.model_type in AROUND_ZERO)


def fill(model, name):
    """Weights of about the size that keeps a stream's, norms near 1, biases that matter."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    for tensor, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if NORM.search(tensor):
            noise = norm_of(tensor, model) + 0.2 * noise
        elif tensor.endswith("bias"):
            noise = 0.4 * noise
        else:
            noise = scale_of(tensor, p, model, family_wide.product_of(name)) * noise
        p.data = noise.to(p.dtype)
    for tensor, p in model.named_buffers():
        if tensor.endswith("layer_scalar"):
            p.copy_(0.6 + 0.8 * torch.rand(p.shape, generator=generator, dtype=torch.float64))
    model.tie_weights()


def logits(model, tokens):
    with torch.no_grad(), family_files.wide_numbers(model.config.model_type):
        found = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
        return found.to(torch.float64).tolist()


def case(model, prompt):
    tokens, margins, all_logits = list(prompt), [], []
    for _ in range(GREEDY):
        numbers = logits(model, tokens)
        best, second = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[:2]
        margins.append(numbers[best] - numbers[second])
        all_logits.append(numbers)
        tokens.append(best)
    text = f"prompt {len(prompt)}" + wrapped([str(t) for t in prompt])
    text += f"greedy {GREEDY}" + wrapped([str(t) for t in tokens[len(prompt) :]])
    text += f"margin {GREEDY}" + wrapped([f"{m:.9g}" for m in margins])
    for at in (0, GREEDY - 1):
        numbers = all_logits[at]
        text += f"logits {at} {len(numbers)}" + wrapped([f"{a:.9g}" for a in numbers])
    return text


def prompts():
    generator = torch.Generator().manual_seed(7)
    return [torch.randint(3, SMALL["vocab_size"], (n,), generator=generator).tolist()
            for n in PROMPTS]


def make(name, folder):
    family_files.save(name, f"{folder}/{name}", fill)
    model = family_remote.computing(name, family_files.load(f"{folder}/{name}"))
    file = f"{name}.gguf" if family_gguf.can_write(name) else "-"
    text = f"files {name} {file}\n" + "".join(case(model, p) for p in prompts())
    with open(f"{folder}/{name}.txt", "w", encoding="ascii") as f:
        f.write(text)
    if file != "-":
        family_gguf.write(name, model, f"{folder}/{file}")
    if MODELS[name].remote:
        family_remote.respell(name, f"{folder}/{name}")


def main(arguments):
    checks = arguments[:1] == ["--check"]
    folder, *names = arguments[checks:]
    os.makedirs(folder, exist_ok=True)
    bad = 0
    for name in [name for name in MODELS if not names or name in names]:
        print(name, flush=True)
        if checks and not MODELS[name].remote:
            bad += family_check.check(name, f"{folder}/{name}", prompts()[-1])
        elif not checks:
            make(name, folder)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
