#!/usr/bin/env python3
"""The speeds of rotary positions, worked out apart from the daemon's code, for tests/unit/test-rope.c.

    rope.py > tests/unit/rope-table.h
    rope.py --check                    against transformers, where it is installed

Written from the definitions: RoPE (Su et al.), linear interpolation (Chen et al.), Llama 3's by wave
length as Meta published it, YaRN (Peng et al.) with the ramp over pairs that its authors' program
has, and not the ramp over turns of the paper's formula: every model was trained with the former.
"""
import math
import sys

# name, kind, dims, base, factor, trained positions, low, high, whole
CASES = [
    ("plain", "plain", 8, 10000.0, 1, 0, 0, 0, False),
    ("Qwen3 without scaling", "plain", 128, 1000000.0, 1, 0, 0, 0, False),
    ("linear by 4", "linear", 64, 10000.0, 4.0, 2048, 0, 0, False),
    ("Llama 3.1", "llama3", 128, 500000.0, 8.0, 8192, 1.0, 4.0, False),
    ("Llama 3.2", "llama3", 64, 500000.0, 32.0, 8192, 1.0, 4.0, False),
    ("Qwen2.5 with YaRN", "yarn", 128, 1000000.0, 4.0, 32768, 1.0, 32.0, True),
    ("DeepSeek's YaRN", "yarn", 64, 10000.0, 40.0, 4096, 1.0, 32.0, True),
    ("YaRN with borders between pairs", "yarn", 64, 150000.0, 32.0, 4096, 1.0, 32.0, False),
    ("YaRN over all pairs", "yarn", 16, 10000.0, 8.0, 64, 0.001, 1000.0, True),
    ("YaRN with both borders at one pair", "yarn", 8, 1000000.0, 2.0, 4096, 10.0, 11.0, False),
]
# factor, mscale, what cos and sin are multiplied by
STRETCHES = [(1.0, 1.0), (4.0, 1.0), (40.0, 1.0), (40.0, 0.707), (32.0, 1.0)]


def plain(dims, base):
    return [math.exp(-math.log(base) * 2 * i / dims) for i in range(dims // 2)]


def by_wave_length(speed, factor, trained, low, high):
    length = 2 * math.pi / speed
    if length < trained / high:
        return speed
    if length > trained / low:
        return speed / factor
    smooth = (trained / length - low) / (high - low)
    return (1 - smooth) * speed / factor + smooth * speed


def yarn(dims, base, factor, trained, slow, fast, whole):
    def pair(turns):  # solves trained * base^(-2 i / dims) = 2 pi turns for i
        return dims / 2 * math.log(trained / (2 * math.pi * turns), base)

    first, last = pair(fast), pair(slow)
    if whole:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dims - 1)
    out = []
    for i, speed in enumerate(plain(dims, base)):
        stretched = min(max((i - first) / max(last - first, 0.001), 0), 1)
        out.append(stretched * speed / factor + (1 - stretched) * speed)
    return out


def speeds(kind, dims, base, factor, trained, low, high, whole):
    if kind == "plain":
        return plain(dims, base)
    if kind == "linear":
        return [s / factor for s in plain(dims, base)]
    if kind == "llama3":
        return [by_wave_length(s, factor, trained, low, high) for s in plain(dims, base)]
    return yarn(dims, base, factor, trained, low, high, whole)


def attention(factor, mscale):
    return 1 + mscale * math.log(factor) / 10 if factor > 1 else 1.0


def print_table():
    print("/* Made by contrib/reference/rope.py; not by the code that it tests. */")
    print("static const struct rope_case {")
    print("        const char *name;\n        struct rope_shape shape;\n        double speeds[64];")
    print("} rope_cases[] = {")
    for name, kind, dims, base, factor, trained, low, high, whole in CASES:
        print("        {")
        print(f'                "{name}",')
        print(f"                {{ .dims = {dims},\n                  .scaling = ROPE_{kind.upper()},")
        print(f"                  .whole = {str(whole).lower()},\n                  .base = {base:.17g},")
        print(f"                  .factor = {factor:.17g},\n                  .trained = {trained},")
        print(f"                  .low = {low:.17g},\n                  .high = {high:.17g} }},")
        numbers = [f"{s:.12e}" for s in speeds(kind, dims, base, factor, trained, low, high, whole)]
        print("                { " + ",\n                  ".join(numbers) + " },")
        print("        },")
    print("};\n\nstatic const struct {\n        double factor, mscale, attention;\n} stretches[] = {")
    for factor, mscale in STRETCHES:
        print(f"        {{ {factor:.17g}, {mscale:.17g}, {attention(factor, mscale):.15g} }},")
    print("};")


def check():
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for name, kind, dims, base, factor, trained, low, high, whole in CASES:
        mine = speeds(kind, dims, base, factor, trained, low, high, whole)
        parameters = {"rope_type": kind, "rope_theta": base, "factor": factor}
        if kind == "plain":
            continue
        if kind != "linear":
            parameters["original_max_position_embeddings"] = trained
        if kind == "llama3":
            parameters |= {"low_freq_factor": low, "high_freq_factor": high}
        if kind == "yarn":
            parameters |= {"beta_slow": low, "beta_fast": high, "truncate": whole}
        config = LlamaConfig(
            hidden_size=dims, num_attention_heads=1, head_dim=dims, rope_parameters=parameters,
            max_position_embeddings=int(max(trained, 1) * factor),
        )
        theirs, times = ROPE_INIT_FUNCTIONS[kind](config)
        worst = max(abs(a / b - 1) for a, b in zip(theirs.tolist(), mine))
        assert abs(times - (attention(factor, 1) if kind == "yarn" else 1)) < 1e-12, name
        print(f"{name}: differs by {worst:.1e} of a speed")
        assert worst < 2e-6, name


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else print_table()
