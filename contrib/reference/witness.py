#!/usr/bin/env python3
"""Compares the GGUF files of families.py with llama.cpp, the second witness.

    witness.py FOLDER/libllama.so tests/golden/families [NAME ...]

What is printed for all files is kept as tests/golden/families/witness (contrib/dev/families).

llama.cpp reads the prompts and the chosen tokens of NAME.txt in one batch, with a KV cache in F32.
Printed is how far its logits are from those in NAME.txt, over the largest one.  llama.cpp reads the
betas of YaRN for few architectures, so they are given to its context here.  The structures below
are those of llama.h in llama.cpp b11434 (version 0.6.0 of the library); others crash.
"""
import ctypes
import glob
import os
import sys
import tempfile

import gguf
import numpy

FAR = 1e-4
# Differences that were looked into: its gelu is a table in F16.
ROUGH = {"gemma", "gemma2", "gemma3", "gemma3-wrapped", "gemma4", "gemma4-e",
         "gemma4-wrapped", "gpt2", "gpt_neox", "gpt_neox-serial", "falcon", "falcon-new",
         "falcon-new-one", "gpt_bigcode", "mpt", "mpt-clip", "bloom", "phi"}
# It knows no window for these architectures.
WITHOUT_WINDOW = {"mistral", "phi3", "starcoder2"}
CONTEXT = 256
POINTER, INT, FLOAT, BOOL = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float, ctypes.c_bool


class ModelParams(ctypes.Structure):
    _fields_ = [("devices", POINTER), ("buffers", POINTER), ("integers", INT * 5),
                ("split", POINTER), ("progress", POINTER), ("progress_data", POINTER),
                ("overrides", POINTER), ("flags", BOOL * 6)]


class ContextParams(ctypes.Structure):
    _fields_ = [("context", INT), ("batch", INT), ("ubatch", INT), ("sequences", INT * 4),
                ("threads", INT * 2), ("kinds", INT * 4), ("flash_attention", INT),
                ("rope", FLOAT * 6), ("trained", INT), ("defrag", FLOAT),
                ("evaluate", POINTER), ("evaluate_data", POINTER), ("type_k", INT),
                ("type_v", INT), ("abort", POINTER), ("abort_data", POINTER), ("flags", BOOL * 6),
                ("samplers", POINTER), ("sampler_count", ctypes.c_size_t), ("other", POINTER)]


class Batch(ctypes.Structure):
    _fields_ = [("count", INT), ("tokens", ctypes.POINTER(INT)), ("embeddings", POINTER),
                ("positions", POINTER), ("sequence_counts", POINTER), ("sequences", POINTER),
                ("wanted", ctypes.POINTER(ctypes.c_int8))]


def library(path):
    llama = ctypes.CDLL(path)
    quiet = ctypes.CFUNCTYPE(None, INT, ctypes.c_char_p, POINTER)
    llama.quiet = quiet(lambda level, text, data: print(
        "  " + text.decode().strip()) if level == 4 else None)
    llama.llama_log_set.argtypes = [quiet, POINTER]
    llama.llama_log_set(llama.quiet, None)
    llama.llama_model_default_params.restype = ModelParams
    llama.llama_context_default_params.restype = ContextParams
    llama.llama_model_load_from_file.argtypes = [ctypes.c_char_p, ModelParams]
    llama.llama_model_load_from_file.restype = POINTER
    llama.llama_init_from_model.argtypes = [POINTER, ContextParams]
    llama.llama_init_from_model.restype = POINTER
    llama.llama_decode.argtypes = [POINTER, Batch]
    llama.llama_get_logits_ith.argtypes = [POINTER, INT]
    llama.llama_get_logits_ith.restype = ctypes.POINTER(FLOAT)
    llama.llama_free.argtypes = llama.llama_model_free.argtypes = [POINTER]
    llama.llama_backend_init()
    return llama


def copy(path, length, out):
    """The file in F32, since llama.cpp rounds what it multiplies with F16 and BF16.

    The copy says that there is no vocabulary.  llama.cpp chooses the factors of LongRoPE by the
    size of the context, which is 256 at least, so a text that is not longer than the trained
    length gets a larger one.
    """
    reader = gguf.GGUFReader(path)
    w = gguf.GGUFWriter(out, reader.get_field("general.architecture").contents())
    for key, field in reader.fields.items():
        value = field.contents()
        if key == "phi3.rope.scaling.original_context_length" and length <= value:
            value = 1 << 20
        if not key.startswith("GGUF.") and key != "general.architecture":
            w.add_key_value(key, value, field.types[0], field.types[1] if field.types[1:] else None)
    w.add_tokenizer_model("no_vocab")
    for tensor in reader.tensors:
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        w.add_tensor(tensor.name, numbers.astype(numpy.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def logits(llama, path, tokens, at):
    """The logits behind each of the tokens `at`."""
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    if not model:
        return None
    get_field = gguf.GGUFReader(path).get_field
    architecture = get_field("general.architecture").contents()
    params = llama.llama_context_default_params()
    params.context = params.batch = params.ubatch = CONTEXT
    params.flash_attention, params.type_k, params.type_v = 0, 0, 0
    for i, key in ((4, "beta_fast"), (5, "beta_slow")):
        field = get_field(f"{architecture}.rope.scaling.yarn_{key}")
        params.rope[i] = field.contents() if field else -1
    context = llama.llama_init_from_model(model, params)
    batch = Batch(len(tokens), (INT * len(tokens))(*tokens))
    batch.wanted = (ctypes.c_int8 * len(tokens))(*[1] * len(tokens))
    failed = llama.llama_decode(context, batch)
    count = get_field(f"{architecture}.vocab_size").contents()
    out = None if failed else [
        numpy.array(llama.llama_get_logits_ith(context, i)[:count]) for i in at]
    llama.llama_free(context)
    llama.llama_model_free(model)
    return out


def texts(path):
    """(tokens, {position: logits}) of each text of a golden."""
    words = open(path, encoding="ascii").read().split()[3:]

    def numbers(key, kind, more=0):
        assert words[0] == key, (path, words[0])
        head, count = words[1 : 1 + more], int(words[1 + more])
        out = [kind(word) for word in words[2 + more : 2 + more + count]]
        del words[: 2 + more + count]
        return (int(head[0]), out) if more else out

    while words:
        prompt, greedy = numbers("prompt", int), numbers("greedy", int)
        numbers("margin", float)
        known = [numbers("logits", float, 1) for _ in range(2)]
        yield prompt + greedy[:-1], {len(prompt) - 1 + at: line for at, line in known}


def compare(llama, folder, name):
    """The largest difference, over the largest logit."""
    worst, path = 0, f"{tempfile.mkdtemp()}/{name}.gguf"
    for tokens, known in texts(f"{folder}/{name}.txt"):
        copy(f"{folder}/{name}.gguf", len(tokens), path)
        got = logits(llama, path, tokens, list(known))
        if got is None:
            return numpy.inf
        for ours, theirs in zip(known.values(), got):
            worst = max(worst, numpy.abs(theirs - ours).max() / numpy.abs(ours).max())
    return worst


def main(path, folder, *names):
    llama, far = library(path), 0
    found = sorted(os.path.basename(p)[:-5] for p in glob.glob(f"{folder}/*.gguf"))
    for name in names or found:
        differs = compare(llama, folder, name)
        most = 2e-3 if name in ROUGH else numpy.inf if name in WITHOUT_WINDOW else FAR
        far += not differs < most
        print(f"{name}: {differs:.2g}" + ("" if differs < most else "  FAR") +
              (" (without its window)" if name in WITHOUT_WINDOW else ""), flush=True)
    return far > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 2 else __doc__)
