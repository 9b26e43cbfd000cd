#!/usr/bin/env python3
"""The logits of families.py's models when rows are rounded as a backend rounds them.

    rounded.py tests/golden/families OUT cpu|cuda [NAME ...]
    SOURCES=OUT FAMILY_DIFFERENCES=FILE BUILD/tests/test-families

The cpu backend rounds the rows that it multiplies with weights in BF16 to BF16.  The cuda backend
does the same, and has Q, K, V and the weights of attention in F16.  The rest is in float64, by
transformers.  The goldens' tokens are read, not chosen anew, and have no margin, so none is
compared.  OUT gets goldens with these logits, and links to the models.  The test then measures what
of a backend's difference is not rounding: it must be far below the difference that
tests/golden/families/bounds permits.

Models with other weights than BF16 are left out, as are those of family_remote.py.  With cuda, only
models are made whose attention transformers lets a caller replace.
"""
import os
import sys

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

import family_files
import family_wide
from family_models import MODELS
from forward import wrapped

family_wide.add(MODELS)
SLICE = 16  # positions


def rounded(numbers, kind):
    return numbers.to(kind).to(numbers.dtype)


def attend(module, query, key, value, mask, scaling=None, softcap=None, **_):
    """Attention of halves, with sums in float64, as kernels/cuda/attend.h rounds.

    Up to 64 positions each warp has one slice, and its weights are relative to the largest score
    of the slice.
    """
    times = query.shape[1] // key.shape[1]
    query, key, value = (rounded(x, torch.float16) for x in (query, key, value))
    key, value = (x.repeat_interleave(times, dim=1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores + mask[:, :, :, : key.shape[-2]]
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    sums = 0
    for at in range(0, scores.shape[-1], SLICE):
        part = scores[..., at : at + SLICE]
        most = part.amax(-1, keepdim=True)
        factor = torch.exp(most - scores.amax(-1, keepdim=True))
        part = rounded(torch.exp(part - most), torch.float16)
        sums = sums + factor * (part @ value[..., at : at + SLICE, :])
    out = sums / weights.sum(-1, keepdim=True)
    return out.transpose(1, 2).contiguous(), weights


AttentionInterface.register("halves", attend)
AttentionMaskInterface.register("halves", eager_mask)


def load(folder, backend):
    model = family_files.load(folder)
    if backend == "cuda":
        if not getattr(model, "_supports_attention_backend", False):
            return None
        model.set_attn_implementation("halves")
    for module in model.modules():
        if isinstance(module, (torch.nn.Linear, Conv1D)):
            module.register_forward_pre_hook(lambda _, x: (rounded(x[0], torch.bfloat16), *x[1:]))
    return model


def texts(path):
    """(lines before the logits, [prompt and greedy tokens], [positions of logits])"""
    with open(path, encoding="ascii") as f:
        words = f.read().split()
    at, out = 3, []
    while at < len(words):
        parts = {}
        for key in ("prompt", "greedy", "margin"):
            count = int(words[at + 1])
            parts[key] = words[at + 2 : at + 2 + count]
            at += 2 + count
        parts["at"] = []
        for _ in range(2):
            parts["at"].append(int(words[at + 1]))
            at += 3 + int(words[at + 2])
        out.append(parts)
    return words[:3], out


def golden(model, parts):
    tokens = [int(word) for word in parts["prompt"] + parts["greedy"]]
    text = "".join(f"{key} {len(parts[key])}" + wrapped(parts[key])
                   for key in ("prompt", "greedy"))
    text += f"margin {len(parts['greedy'])}" + wrapped(["0"] * len(parts["greedy"]))
    for at in parts["at"]:
        with torch.no_grad(), family_files.wide_numbers(model.config.model_type):
            fed = torch.tensor([tokens[: len(parts["prompt"]) + at]])
            numbers = model(fed, use_cache=False).logits[0, -1].tolist()
        text += f"logits {at} {len(numbers)}" + wrapped([f"{a:.9g}" for a in numbers])
    return text


def make(name, source, target, backend):
    model = load(f"{source}/{name}", backend)
    if model is None:
        return
    _, found = texts(f"{source}/{name}.txt")
    text = f"files {name} -\n" + "".join(golden(model, parts) for parts in found)
    with open(f"{target}/{name}.txt", "w", encoding="ascii") as f:
        f.write(text)
    os.symlink(os.path.abspath(f"{source}/{name}"), f"{target}/{name}")


def main(source, out, backend, *names):
    target = f"{out}/tests/golden/families"
    os.makedirs(target)
    for other in ("fp8", "types"):
        os.symlink(os.path.abspath(f"{source}/../{other}"), f"{out}/tests/golden/{other}")
    for name, model in MODELS.items():
        if model.number != "bf16" or model.remote or (names and name not in names):
            continue
        if backend == "cpu" or name.endswith("-wide"):
            print(name, flush=True)
            make(name, source, target, backend)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
