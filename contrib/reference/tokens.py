#!/usr/bin/env python3
"""Ids that the makers' own programs give: goldens for tests/golden/test-vocabularies.c.

    python3 -m venv V && V/bin/pip install tokenizers tiktoken sentencepiece transformers
    V/bin/python contrib/reference/tokens.py FOLDER [--texts N] [--seed N] [--data SAMOVAR_DATA] [--real N] [--keep]

Trains small vocabularies of every kind that is served on text of its own making, writes them to
FOLDER and, beside each, NAME.txt with texts and ids, and NAME.pieces with the bytes of each id and
what it is; --keep: takes the vocabularies that are there.  With --data also texts for the vocabularies of that folder (data-*.txt).
--real: N texts for each tokenizer.json of real models in it, too, with that file's own added tokens in some of them.  The goldens in
the tree are of `--texts 60`; more, with another --seed, is a check by hand:

    V/bin/python contrib/reference/tokens.py /tmp/more --texts 20000 --seed 7 --data DIR
    GOLDENS=/tmp/more SAMOVAR_DATA=DIR build/tests/test-vocabularies
"""
import argparse
import base64
import io
import json
import os
import random
import shutil
import struct
import unicodedata

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
BLANKS = r"\s+(?!\S)|\s+"
GPT2 = CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|" + BLANKS


def modern(digits):
    return (
        "(?i:" + CONTRACTIONS + r")|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" + BLANKS
    )


LLAMA3 = modern(r"\p{N}{1,3}")
QWEN2 = modern(r"\p{N}")

# Where splitters, normalisers and added tokens have their corners.
PARTS = (
    " |  |   |\t|\n|\n\n|\r\n|\r|\x0b|\x0c|\x1c|\x85|\xa0|\u1680|\u2028|\u3000|\u200b|\u200d|\ufeff|\u2581|'|'s|'S|'\u017f|'re|'RE|'lL|"
    "'Ve|'d|'x|\u2019s|a|I|the|The| the|hello|world|don't|Zebra|\xe9|e\u0301|\xfc|\u0308|\u0301\u0327|\u0327\u0301|\u0316\u0300\u0323|"
    "\u212b|\u2126|\ufb01|\u0958|\U0001d15e|\u0344|\u1e9b\u0323|\uac00|\u1100\u1161\u11a8|\u1112\u1175|\uac01\u11a8|0|1|12|123|1234|12345|"
    "\xb2|\xbd|\u2167|\u0669|\u096b|\U0001d7d8|.|...|!|?!|-|--|=|_|__|<|>|<s>|</s>|<|end|>|<b>|<|end|><|end|>|<unk>|<0x0A>|$|\u20ac|"
    "\u0416\u0438|\u043d\u0435\u0449\u043e|\u6211\u60f3|\u5728apple|\u0e44\u0e17\u0e22|\u0915\u094d\u0937\u093f|\u05e9\u05c1|\u0645\u064e|"
    "\U0001f680|\U0001f636\u200d\U0001f32b\ufe0f|\U00010330|\U0002ebf0|\U000105c0|\u0558|\U000f0000|\ue000|\ufffd|\u0378|\U0010fffd|\x00|\x7f"
).split("|")
PARTS += ["|", "<|end|>", "<|end|>", "<s>", "<b>", "  <b>  ", " <|end|>\n"]


# Some of the rules of SentencePiece's nmt_nfkc, which has too many for a file in the tree.  Also a
# text of several letters, with a longer one, and more than ten characters for one.
SOME_RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\xa0": " ", "\u2028": " ", "\u1680": " ", "\u200b": "", "\xad": "", "\x7f": "",
    "\x1c": "", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645",
    "\u2460": "1", "\xbd": "1\u20442", "\u2167": "VIII", "\ufb01": "fi", "\uff41": "a", "\uff22": "B", "\u2026": "...",
    "a\u0308": "\xe4", "e\u0301": "\xe9", "\uff76": "\u30ab", "\uff76\uff9e": "\u30ac", "\uff9e": "\u3099",
    "\u0e33": "\u0e4d\u0e32", "\u212b": "\xc5", "\u1100\u1161": "\uac00", "the": "THE", "then": "t h e n",
}

# Where the rules of SentencePiece, and the clusters to which they are applied, have theirs.
RULES = "\uff76\uff9e|\u2460|\ufdfa|\xad|\uff41\uff22|\u0600a|\xa9\u200d|a\u0308|\u0e01\u0e33|\u2581a| \u2581|\u2581 |\u3000a|\u2026".split("|")


def texts(count, seed, rules=False):
    rng, more = random.Random(seed), random.Random(seed)
    yield ""
    for _ in range(count - 1):
        kind, out = rng.randrange(5), []
        for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 21])):
            part = rng.choice(PARTS)
            if kind == 0 or rng.random() < 0.1:
                while True:
                    c = rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x110000)])
                    if not 0xD800 <= c < 0xE000:
                        break
                part = chr(c)
            elif kind == 1:
                part = rng.choice(["the", "and", "house", "ing", "tion", "un"]) + rng.choice(["", " ", "s", "ed "])
            out.append(part * rng.choice([1, 1, 1, 1, 2, 3, 9]))
            if rules and more.random() < 0.2:
                out.append(more.choice(RULES) * more.choice([1, 1, 2]))
        yield "".join(out)


def corpus():
    """Enough to learn merges from; nobody else's text."""
    rng = random.Random(1)
    words = "the a house and of in to is was it with for on that samovar tea water kettle don't I'll we've he's".split()
    words += ["нещо", "на", "我想", "在", "1234", "2026", "e\u0301t\u00e9", "\u00e9t\u00e9", "...", "=>", "\U0001f680", "\uac00\ub098"]
    for _ in range(400):
        yield " ".join(rng.choice(words) for _ in range(rng.randrange(3, 14))) + rng.choice([".", "!\n", "\n\n", "  ", "\t"])


class Folder:
    def __init__(self, path, args):
        self.path, self.args = path, args
        os.makedirs(path, exist_ok=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def has(self, name):
        return self.args.keep and os.path.exists(self.at(name))

    def write(self, name, file, encode, by, splitter=None, controls=True, rules=False, source=None):
        with open(self.at(name + ".txt"), "w") as out:
            print("# contrib/reference/tokens.py: ids by", by, file=out)
            print("file", file, file=out)
            if splitter:
                print("splitter", splitter, file=out)
            if controls:
                print("controls", file=out)
            for text in source or texts(self.args.texts, self.args.seed, rules):
                ids = encode(text)
                if ids is not None:
                    print(text.encode().hex() or "-", *ids, file=out)


    def write_parts(self, name, file, encode, by):
        with open(self.at(name + ".txt"), "w") as out:
            print("# contrib/reference/tokens.py: ids by", by, file=out)
            print("file", file, file=out)
            print("parts", file=out)
            for parts in talks(self.args.texts, self.args.seed):
                print("/".join(part.encode().hex() for part in parts) or "-", *encode(parts), file=out)


    def write_decoded(self, name, file, path, by):
        """Texts that ids give, which come from texts.  The library writes the mark of a first piece; we do not."""
        t = Tokenizer.from_file(path)
        with open(self.at(name + ".txt"), "w") as out:
            print("# contrib/reference/tokens.py: texts by", by, file=out)
            print("file", file, file=out)
            print("decoded", file=out)
            for text in texts(self.args.texts, self.args.seed):
                ids = t.encode(text, add_special_tokens=False).ids
                if t.decode(ids).startswith(("##", "@@")):
                    continue
                print(t.decode(ids).encode().hex() or "-", *ids, file=out)

    def write_pieces(self, name, file, pieces, by):
        with open(self.at(name + ".pieces"), "w") as out:
            print("# contrib/reference/tokens.py: pieces by", by, file=out)
            print("file", file, file=out)
            for kind, piece in pieces:
                print(kind, piece.hex() or "-", file=out)


HF = "tokenizers " + tokenizers.__version__
SPM = "sentencepiece " + sentencepiece.__version__


def byte_level(pattern, alone=False, **model):
    t = Tokenizer(models.BPE(**model))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=alone)
    t.pre_tokenizer = level if alone else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), level])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
    )
    return t


def save(t, path, change=lambda j: None):
    j = json.loads(t.to_str())
    change(j)
    with open(path, "w") as out:
        json.dump(j, out, ensure_ascii=False, separators=(",", ":"))


def make_llama3(path):
    t = byte_level(LLAMA3, ignore_merges=True)
    t.add_special_tokens([AddedToken("<|end|>", normalized=False), AddedToken("<s>", normalized=False)])
    t.add_tokens([AddedToken("<b>", normalized=False, lstrip=True, rstrip=True)])
    bos = t.token_to_id("<s>")
    t.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])]
    )

    def forget(j):
        """Some merges less, so that whole words are in the vocabulary that no merge makes."""
        j["model"]["merges"] = [m for i, m in enumerate(j["model"]["merges"]) if i % 7]

    save(t, path, forget)


def make_qwen2(path):
    t = byte_level(QWEN2)
    t.normalizer = normalizers.NFC()
    t.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    save(t, path)


def make_gpt2(path):
    t = byte_level(GPT2, alone=True)
    t.add_tokens([AddedToken("<b>"), AddedToken("  ")])

    def old(j):
        """Merges as they were written until 2024."""
        j["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]]

    save(t, path, old)


def train_spm(path, **more):
    model = io.BytesIO()
    settings = {"model_type": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False, **more}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, minloglevel=2, **settings
    )
    with open(path, "wb") as out:
        out.write(model.getvalue())


def make_spm_json(model_path, path, scheme=None):
    """As Llama-2's was made: SentencePiece's pieces, and merges in the order of what they make."""
    spm = sentencepiece.SentencePieceProcessor(model_file=model_path)
    vocab = {spm.id_to_piece(i): i for i in range(spm.get_piece_size())}
    normal = [i for i in range(len(vocab)) if not (spm.is_byte(i) or spm.is_control(i) or spm.is_unknown(i))]
    merges = []
    for i in normal:
        p = spm.id_to_piece(i)
        local = [(p[:k], p[k:]) for k in range(1, len(p)) if p[:k] in vocab and p[k:] in vocab]
        local = sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))
        merges.extend((l, r, spm.get_score(i)) for l, r in local)
    merges = [(l, r) for l, r, _ in sorted(merges, key=lambda x: x[2], reverse=True)]
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if scheme:
        t.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", prepend_scheme=scheme, split=False)
        t.add_tokens([AddedToken("<b>", rstrip=True)])
    else:
        t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<unk>", "<s>", "</s>")])
    save(t, path)


def write_rules(path):
    with open(path, "w") as out:
        for text, to in SOME_RULES.items():
            print(*(" ".join("%x" % ord(c) for c in x) for x in (text, to)), sep="\t", file=out)


def fields(message):
    """The fields of a protobuf message: their numbers and values."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else 8 if key & 7 == 1 else 4
        yield key >> 3, message[at : at + size]
        at += size


def rules_of(model_path):
    """The compiled rules of a SentencePiece file."""
    with open(model_path, "rb") as model:
        normalizer = next(value for number, value in fields(model.read()) if number == 3)
    return next(value for number, value in fields(normalizer) if number == 2)


def make_t5(model_path, path):
    """As T5's and XLM-R's were made, of a model of SentencePiece."""
    spm = sentencepiece.SentencePieceProcessor(model_file=model_path)
    pieces = [(spm.id_to_piece(i), spm.get_score(i)) for i in range(spm.get_piece_size())]
    t = Tokenizer(models.Unigram(pieces, spm.unk_id(), False))
    t.normalizer = normalizers.Precompiled(rules_of(model_path))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("\u2581", prepend_scheme="always")]
    )
    t.decoder = decoders.Metaspace("\u2581", prepend_scheme="always")
    t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<unk>", "<s>", "</s>")])
    t.add_tokens([AddedToken("<b>", lstrip=True)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])

    def old(j):
        """Without the model's type, and the first word of older files."""
        del j["model"]["type"]
        for part in (j["pre_tokenizer"]["pretokenizers"][1], j["decoder"]):
            del part["prepend_scheme"], part["split"]
            part.update(add_prefix_space=True, str_rep="\u2581")

    save(t, path, old)


def make_unigram(form, scheme, path):
    """Scores that `tokenizers` learns, whose digits no float holds."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([form, normalizers.Replace(Regex(" {2,}"), "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", prepend_scheme=scheme, split=scheme != "first")
    t.decoder = decoders.Metaspace("\u2581", prepend_scheme=scheme, split=scheme != "first")
    bytes_too = ["<0x%02X>" % byte for byte in range(256)] if scheme == "first" else []
    t.train_from_iterator(
        corpus(),
        trainers.UnigramTrainer(vocab_size=500, show_progress=False, special_tokens=["<unk>", *bytes_too], unk_token="<unk>"),
    )
    t.add_special_tokens([AddedToken("<|end|>", normalized=False)])

    def fall_back(j):
        j["model"]["byte_fallback"] = bool(bytes_too)
        j["added_tokens"] = [x for x in j["added_tokens"] if not x["content"].startswith("<0x")]

    save(t, path, fall_back)


SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def words(model, trainer, decoder, normalizer=None, pre=None, post=None):
    t = Tokenizer(model)
    t.normalizer = normalizer or normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre or pre_tokenizers.BertPreTokenizer()
    if decoder:
        t.decoder = decoder
    t.train_from_iterator(list(corpus()) * 3, trainer)
    if post:
        t.post_processor = post(t)
    return t


def bert_ends(t):
    return processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))


def make_wordpiece(path):
    t = words(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30),
        trainers.WordPieceTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIALS),
        decoders.WordPiece(), post=bert_ends,
    )
    t.add_tokens([AddedToken("<b>", normalized=False)])
    save(t, path)


def make_cased(path):
    """No BERT: other words, another mark, and no signs apart."""
    save(words(
        models.WordPiece(unk_token="[UNK]", continuing_subword_prefix="@@"),
        trainers.WordPieceTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIALS[:2], continuing_subword_prefix="@@"),
        decoders.WordPiece("@@", cleanup=False), normalizers.NFC(), pre_tokenizers.Whitespace(),
    ), path)


def make_word_level(path):
    save(words(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=60, show_progress=False, special_tokens=SPECIALS),
               decoders.WordPiece(cleanup=False), pre=pre_tokenizers.WhitespaceSplit()), path)


def make_suffix(path):
    """As GPT-1 has it."""
    save(words(
        models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>", fuse_unk=True),
        trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIALS, end_of_word_suffix="</w>"),
        decoders.BPEDecoder("</w>"),
    ), path)


def make_prefix(path):
    save(words(
        models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"),
        trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=SPECIALS, continuing_subword_prefix="##"),
        decoders.WordPiece(cleanup=False),
    ), path)


def make_clip(path):
    """Letters of bytes, and a mark behind words."""
    t = words(
        models.BPE(unk_token="<|end|>", end_of_word_suffix="</w>"),
        trainers.BpeTrainer(
            vocab_size=700, show_progress=False, special_tokens=["<s>", "<|end|>"], end_of_word_suffix="</w>",
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
        decoders.ByteLevel(),
        normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]),
        lambda t: processors.RobertaProcessing(("<|end|>", t.token_to_id("<|end|>")), ("<s>", t.token_to_id("<s>")), False, False),
    )
    save(t, path)


def make_falcon(path):
    """Steps behind ByteLevel see its letters, of which some are numbers."""
    save(words(
        models.BPE(), trainers.BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
        decoders.ByteLevel(), normalizers.Sequence([]),
        pre_tokenizers.Sequence([
            pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]),
    ), path)


def make_plain(path):
    """Characters without a decoder; a token listed twice, and ids without one."""
    def odd(j):
        j["model"]["vocab"]["kettle!"] = 3000
        j["model"]["dropout"] = 0.0

    save(words(models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(vocab_size=200, show_progress=False, special_tokens=SPECIALS),
               None, normalizers.Lowercase(), pre_tokenizers.Whitespace()), path, odd)


def make_vocab_txt(source, folder):
    """BERT's own files, of the vocabulary of a tokenizer.json."""
    os.makedirs(folder, exist_ok=True)
    vocab = json.load(open(source))["model"]["vocab"]
    with open(os.path.join(folder, "vocab.txt"), "w") as out:
        out.writelines(w + "\n" for w in sorted(vocab, key=vocab.get))
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as out:
        json.dump({"do_lower_case": False, "strip_accents": True, "unk_token": {"content": "[UNK]"}}, out)
    t = tokenizers.BertWordPieceTokenizer(os.path.join(folder, "vocab.txt"), lowercase=False, strip_accents=True)
    t.save(os.path.join(folder, "by-hf.json"))


# Metadata of a GGUF file.
def gguf_text(x):
    return struct.pack("<Q", len(x.encode())) + x.encode()


def gguf_pair(key, kind, value):
    return gguf_text("tokenizer.ggml." + key) + struct.pack("<I", kind) + value


def write_gguf(path, architecture, pairs):
    pairs = [gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text(architecture), *pairs]
    with open(path, "wb") as out:
        out.write(struct.pack("<IIQQ", 0x46554747, 3, 0, len(pairs)) + b"".join(pairs))


def make_t5_gguf(model_path, path, suffix):
    """As llama.cpp's converter writes a SentencePiece file of T5, but for the padding and with the file's own ids."""
    spm = sentencepiece.SentencePieceProcessor(model_file=model_path)
    with open(model_path, "rb") as model:
        normalizer = dict(fields(next(value for number, value in fields(model.read()) if number == 3)))
    names = [spm.id_to_piece(i) for i in range(spm.get_piece_size())]
    types = [2 if spm.is_unknown(i) else 3 if spm.is_control(i) else 1 for i in range(len(names))]
    rules = normalizer.get(2, b"")

    write_gguf(path, "t5", [
        gguf_pair("model", 8, gguf_text("t5")),
        gguf_pair("pre", 8, gguf_text("default")),
        gguf_pair("tokens", 9, struct.pack("<IQ", 8, len(names)) + b"".join(map(gguf_text, names))),
        gguf_pair("scores", 9, struct.pack("<IQ%df" % len(names), 6, len(names), *(spm.get_score(i) for i in range(len(names))))),
        gguf_pair("token_type", 9, struct.pack("<IQ%di" % len(types), 5, len(types), *types)),
        gguf_pair("add_space_prefix", 7, struct.pack("<?", normalizer.get(3, 1))),
        gguf_pair("remove_extra_whitespaces", 7, struct.pack("<?", normalizer.get(4, 1))),
        gguf_pair("treat_whitespace_as_suffix", 7, struct.pack("<?", suffix)),
        gguf_pair("precompiled_charsmap", 9, struct.pack("<IQ", 0, len(rules)) + rules),
        gguf_pair("eos_token_id", 4, struct.pack("<I", spm.eos_id())),
        gguf_pair("unknown_token_id", 4, struct.pack("<I", spm.unk_id())),
        gguf_pair("add_bos_token", 7, b"\0"),
        gguf_pair("add_eos_token", 7, b"\1"),
    ])


def make_bert_gguf(source, path):
    """As llama.cpp's converter writes BERT's words: a bar in front of those that begin one."""
    vocab = json.load(open(source))["model"]["vocab"]
    names = sorted(vocab, key=vocab.get)
    types = [2 if x == "[UNK]" else 3 if x in SPECIALS else 1 for x in names]
    names = [x if x in SPECIALS else x[2:] if x.startswith("##") else "\u2581" + x for x in names]
    write_gguf(path, "bert", [
        gguf_pair("model", 8, gguf_text("bert")),
        gguf_pair("tokens", 9, struct.pack("<IQ", 8, len(names)) + b"".join(map(gguf_text, names))),
        gguf_pair("token_type", 9, struct.pack("<IQ%di" % len(types), 5, len(types), *types)),
        gguf_pair("unknown_token_id", 4, struct.pack("<I", vocab["[UNK]"])),
        gguf_pair("cls_token_id", 4, struct.pack("<I", vocab["[CLS]"])),
        gguf_pair("seperator_token_id", 4, struct.pack("<I", vocab["[SEP]"])),
        gguf_pair("eos_token_id", 4, struct.pack("<I", vocab["[SEP]"])),
    ])


WORDS = (
    ("wordpiece", make_wordpiece), ("cased", make_cased), ("word-level", make_word_level), ("suffix", make_suffix),
    ("prefix", make_prefix), ("clip", make_clip), ("falcon", make_falcon), ("plain", make_plain),
)


def write_words(f):
    for name, make in WORDS:
        if not f.has(name + ".json"):
            make(f.at(name + ".json"))
        encode = known_in_all_forms(hf(f.at(name + ".json")))
        f.write(name, name + ".json", encode, HF)
        if name in ("wordpiece", "cased", "word-level", "prefix"):
            f.write_decoded("decoded-" + name, name + ".json", f.at(name + ".json"), HF)
    if not f.has("bert"):
        make_vocab_txt(f.at("wordpiece.json"), f.at("bert"))
    f.write("bert", "bert/vocab.txt", known_in_all_forms(hf(f.at("bert/by-hf.json"))), HF)
    if not f.has("bert.gguf"):
        make_bert_gguf(f.at("bert/by-hf.json"), f.at("bert.gguf"))
    small = Tokenizer.from_file(f.at("bert/by-hf.json"))
    small.normalizer = normalizers.BertNormalizer(lowercase=True)
    f.write("bert-gguf", "bert.gguf", known_in_all_forms(lambda text: small.encode(text, add_special_tokens=False).ids), HF)


# Files that complete a vocabulary which lacks its added tokens: all flags, and tokens that the
# vocabulary has.
def listed(first, more=(), normalized=True):
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}
    tokens = [("<|end|>", {"special": True}), ("<|user|>", {"special": True, "rstrip": True}), ("<b>", {"lstrip": True, "normalized": normalized}),
              ("<alone>", {"single_word": True, "normalized": normalized}), ("end>", {})]
    known = {i: {**flags, "special": x != "the", "content": x} for i, x in more}
    return {**known, **{first + i: {**flags, "content": x, **on} for i, (x, on) in enumerate(tokens)}}


def write_json(path, value):
    with open(path, "w") as out:
        json.dump(value, out, ensure_ascii=False, indent=1)


def by_transformers(folder, kind):
    """Texts on which the library's class for the folder and, if there is one, its program for SentencePiece agree."""
    import transformers
    from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

    fast = getattr(transformers, kind).from_pretrained(folder)
    config = json.load(open(os.path.join(folder, "tokenizer_config.json")))
    slow = SentencePieceBackend.from_pretrained(folder) if config.get("legacy") else None

    def ids(text):
        out = fast.encode(text, add_special_tokens=False)
        if slow and slow.encode(text, add_special_tokens=False) != out:
            return None
        # Its class for Llama adds no blank before one; SentencePiece does.
        return None if "legacy" in config and text.startswith((" ", "\u2581")) else out

    return ids


def make_pair(source, folder):
    os.makedirs(folder, exist_ok=True)
    model = json.load(open(source))["model"]
    model["vocab"]["<fim>"] = len(model["vocab"])
    write_json(os.path.join(folder, "vocab.json"), model["vocab"])
    with open(os.path.join(folder, "merges.txt"), "w") as out:
        out.writelines((x if isinstance(x, str) else " ".join(x)) + "\n" for x in ["#version: 0.2", *model["merges"]])
    return model["vocab"]


def make_side(f):
    """Folders without a tokenizer.json; NAME-old as they were written before the list of added tokens was."""
    vocab = make_pair(f.at("gpt2.json"), f.at("side-pair"))
    make_pair(f.at("gpt2.json"), f.at("side-pair-old"))
    first, named = max(vocab.values()) + 1, {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|end|>", "eos_token": "<|end|>", "unk_token": "<|end|>"}
    write_json(f.at("side-pair/tokenizer_config.json"), {**named, "added_tokens_decoder": listed(first, [(vocab[x], x) for x in ("the", "<fim>")])})
    write_json(f.at("side-pair-old/tokenizer_config.json"), {"tokenizer_class": "GPT2Tokenizer"})
    write_json(f.at("side-pair-old/added_tokens.json"), {"<b>": first + 1, "<|end|>": first, "<|user|>": first + 2})
    write_json(f.at("side-pair-old/special_tokens_map.json"),
               {**{k: v for k, v in named.items() if k != "tokenizer_class"}, "additional_special_tokens": ["<|user|>", "<fim>"]})
    spm_size = sentencepiece.SentencePieceProcessor(model_file=f.at("bytes.model")).get_piece_size()
    for name, legacy in (("side-model", False), ("side-model-each", True)):
        os.makedirs(f.at(name), exist_ok=True)
        shutil.copy(f.at("bytes.model"), f.at(name + "/tokenizer.model"))
        write_json(f.at(name + "/tokenizer_config.json"),
                   {"tokenizer_class": "LlamaTokenizer", "legacy": legacy, "add_bos_token": False, "bos_token": "<s>", "eos_token": "<|end|>",
                    "unk_token": "<unk>", "added_tokens_decoder": listed(spm_size, zip(range(3), ("<unk>", "<s>", "</s>")), False)})
    make_vocab_txt(f.at("wordpiece.json"), f.at("side-words"))
    words = sum(1 for _ in open(f.at("side-words/vocab.txt")))
    write_json(f.at("side-words/tokenizer_config.json"),
               {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "unk_token": "[UNK]", "added_tokens_decoder": listed(words)})
    os.remove(f.at("side-words/by-hf.json"))


def beside_tokens(count, seed):
    """Texts, after some in which a joiner, which is part of a word, or another token is beside a token."""
    yield from ("\u200d<alone> a", "a <alone>\u200c", "the<alone> a", "<alone>the<alone>")
    yield from with_tokens(["<|end|>", "<|user|>", "<b>", "<alone>", "end>", "the", "<fim>", "<s>"], count, seed)


def write_side(f):
    try:
        import transformers
    except ImportError:
        print("no transformers: no ids for vocabularies with files beside them")
        return
    by = "transformers " + transformers.__version__
    if not f.has("side-pair"):
        make_side(f)
    for i, (name, file, kind, splitter) in enumerate((
        ("side-pair", "vocab.json", "GPT2Tokenizer", "gpt2"), ("side-pair-old", "vocab.json", "GPT2Tokenizer", "gpt2"),
        ("side-model", "tokenizer.model", "LlamaTokenizer", None), ("side-model-each", "tokenizer.model", "LlamaTokenizer", None),
        ("side-words", "vocab.txt", "BertTokenizer", None),
    )):
        encode = by_transformers(f.at(name), kind)
        f.write(name, name + "/" + file, known_in_all_forms(encode) if name == "side-words" else encode, by, splitter,
                source=beside_tokens(f.args.texts, f.args.seed + i))
    if f.args.data:
        folder = "real/granite-3.1-1b-a400m"
        encode = by_transformers(os.path.join(f.args.data, folder), "GPT2Tokenizer")
        f.write("data-granite", folder + "/vocab.json", encode, by, "gpt2",
                source=with_tokens(["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<fim_pad>"], f.args.texts, f.args.seed))


def make_ranks(vocab_path, folder):
    """A file of ranks, and a list of control tokens that leaves out some ids."""
    byte, first = letters(), 600
    os.makedirs(folder, exist_ok=True)
    with open(vocab_path) as f:
        words = sorted((i, word) for word, i in json.load(f)["model"]["vocab"].items() if not word.startswith("<|"))
    with open(os.path.join(folder, "qwen.tiktoken"), "w") as out:
        for rank, (_, word) in enumerate(words):
            print(base64.b64encode(bytes(byte[c] for c in word)).decode(), rank, file=out)
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    write_json(os.path.join(folder, "tokenizer_config.json"),
               {"tokenizer_class": "Other", "added_tokens_decoder": {first + 3 * i: {**flags, "content": x} for i, x in enumerate(RANKS_SPECIAL)}})


RANKS_SPECIAL = ["<|end|>", "<|user|>", "<b>", "the<|end|>"]


def ranks(folder, pattern):
    with open(os.path.join(folder, "qwen.tiktoken"), "rb") as f:
        known = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, f)}
    with open(os.path.join(folder, "tokenizer_config.json")) as f:
        special = {x["content"]: int(i) for i, x in json.load(f)["added_tokens_decoder"].items()}
    t = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=known, special_tokens=special)
    return lambda text: t.encode(text, allowed_special="all")


def write_ranks(f):
    if not f.has("side-ranks"):
        make_ranks(f.at("qwen2.json"), f.at("side-ranks"))
    f.write("side-ranks", "side-ranks/qwen.tiktoken", ranks(f.at("side-ranks"), QWEN2), "tiktoken " + tiktoken.__version__, "qwen2",
            source=with_tokens(RANKS_SPECIAL, f.args.texts, f.args.seed))


def hf(path):
    t = Tokenizer.from_file(path)
    return lambda text: t.encode(text, add_special_tokens=False).ids


def talks(count, seed):
    """What a template writes and what it is given, in turns; it begins and ends with the template's."""
    rng = random.Random(seed)
    for _ in range(count):
        parts = []
        for i in range(rng.choice([1, 3, 5, 7, 9])):
            mine = ["<|end|>", "<|end|>", "\n", "user", " ", "<|end", "|>", "the"]
            pool = PARTS if i % 2 else mine
            parts.append("".join(rng.choice(pool) for _ in range(rng.choice([1, 1, 2, 3, 5]))))
        yield parts


def in_parts(path, control="<|end|>"):
    """Control tokens where the template wrote them; what is between goes to the maker's program whole,
    which is told to take control tokens in it for text."""
    t = Tokenizer.from_file(path)
    t.encode_special_tokens = True
    one = t.token_to_id(control)

    def ids(parts):
        pieces = [""]
        for i, part in enumerate(parts):
            head, *tail = [part] if i % 2 else part.split(control)
            pieces[-1] += head
            pieces += tail
        out = []
        for i, piece in enumerate(pieces):
            out += [one] * (i > 0) + t.encode(piece, add_special_tokens=False).ids
        return out

    return ids


def known_marks(encode, form=normalizers.NFC()):
    """`tokenizers` composes as Unicode 9 did: only texts on which Unicode has not learnt since."""
    name = type(form).__name__

    def ids(text):
        if any(unicodedata.category(c) == "Cn" for c in text):
            return None
        return encode(text) if unicodedata.normalize(name, text) == form.normalize_str(text) else None

    return ids


def known_in_all_forms(encode):
    return known_marks(known_marks(encode), normalizers.NFD())


def without_new_controls(path):
    """The pieces of `tokenizers` include its control tokens, so that normalising can make one of a text; ours do
    not.  And it knows the clusters of a newer Unicode: only texts of characters that are in both."""
    t = Tokenizer.from_file(path)
    controls = [x.content for x in t.get_added_tokens_decoder().values()]

    def ids(text):
        made = t.normalizer.normalize_str(text)
        if any(unicodedata.category(c) == "Cn" for c in text) or any(made.count(x) != text.count(x) for x in controls):
            return None
        return t.encode(text, add_special_tokens=False).ids

    return ids


def with_added(t, count, seed):
    """Texts, with added tokens of the vocabulary in some of them."""
    yield from with_tokens([x.content for x in t.get_added_tokens_decoder().values()][:40], count, seed)


def with_tokens(added, count, seed):
    rng = random.Random(seed)
    for text in texts(count, seed):
        if added and rng.random() < 0.4:
            k = rng.randrange(len(text) + 1)
            text = text[:k] + rng.choice(["", " ", "x"]) + rng.choice(added) + rng.choice(["", " ", "x", "\n"]) + text[k:]
        yield text


def or_none(encode):
    """Some vocabularies have no token for unknown text, and then the library fails; we leave it out."""
    def ids(text):
        try:
            return encode(text)
        except Exception:
            return None

    return ids


def real_files(data):
    """Each tokenizer.json that the library reads.  Empty vocabularies are refused; unigram has goldens of its own."""
    for folder, _, names in sorted(os.walk(os.path.join(data, "real"))):
        if "tokenizer.json" not in names:
            continue
        path = os.path.join(folder, "tokenizer.json")
        try:
            t = Tokenizer.from_file(path)
        except Exception as fault:
            print("not read:", path, str(fault)[:80])
            continue
        if t.get_vocab_size() and not isinstance(t.model, models.Unigram):
            yield os.path.relpath(path, data), t


def write_real(f, data, count, seed):
    for file, t in real_files(data):
        t.no_truncation()
        t.no_padding()

        def encode(text, t=t):
            return t.encode(text, add_special_tokens=False).ids

        f.write("data-" + file.replace("/", "-"), file, or_none(known_in_all_forms(encode) if t.normalizer else encode), HF,
                source=with_added(t, count, seed))


def pair(vocab, merges, pattern, form=None, **model):
    t = Tokenizer(models.BPE.from_file(vocab, merges, **model))
    t.normalizer = form
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return lambda text: t.encode(text).ids


def letters():
    """GPT-2's: from letter to byte."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in keep]
    return {**{chr(b): b for b in keep}, **{chr(256 + i): b for i, b in enumerate(others)}}


def rust(vocab_path, pattern):
    """tiktoken takes a pre-token that is an entry whole, and merges by id: Llama-3's own way."""
    byte = letters()
    with open(vocab_path) as f:
        ranks = {bytes(byte[c] for c in word): i for word, i in json.load(f).items()}
    return tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def unless_blanks(encode):
    return lambda text: None if "  " in text or text.strip(" \u2581") != text else encode(text)


def spm(path):
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return model.encode


def unless_even(path):
    """SentencePiece adds scores as floats, llama.cpp as doubles: texts that have one best division by far."""
    model = sentencepiece.SentencePieceProcessor(model_file=path)

    def ids(text):
        sums = [sum(map(model.get_score, x)) for x in model.nbest_encode_as_ids(text, 2)] if text else []
        return model.encode(text) if len(sums) < 2 or abs(sums[0] - sums[1]) > 1e-3 else None

    return ids


def spm_pieces(path, users=()):
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    for i in range(model.get_piece_size()):
        name = model.id_to_piece(i)
        if model.is_byte(i):
            yield "byte", bytes([int(name[3:5], 16)])
        elif model.is_control(i) or model.is_unknown(i):
            yield "control" if model.is_control(i) else "unknown", name.encode()
        else:
            yield "user" if name in users else "text", name.replace("\u2581", " ").encode()


def hf_pieces(path):
    """Bytes are written as letters, or as <0x0A> where blanks are written as bars."""
    t = Tokenizer.from_file(path)
    added, byte = t.get_added_tokens_decoder(), letters()
    bars = t.model.byte_fallback
    for i in range(t.get_vocab_size()):
        name = t.id_to_token(i)
        if i in added:
            yield "control" if added[i].special else "user", name.encode()
        elif bars and len(name) == 6 and name.startswith("<0x"):
            yield "byte", bytes([int(name[3:5], 16)])
        else:
            yield "text", name.replace("\u2581", " ").encode() if bars else bytes(byte[c] for c in name)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--texts", type=int, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--data")
    p.add_argument("--real", type=int, default=0)
    p.add_argument("--keep", action="store_true")
    args = p.parse_args()
    f = Folder(args.folder, args)

    for name, make in (("llama3", make_llama3), ("qwen2", make_qwen2), ("gpt2", make_gpt2)):
        if not f.has(name + ".json"):
            make(f.at(name + ".json"))
        encode = hf(f.at(name + ".json"))
        f.write(name, name + ".json", known_marks(encode) if name == "qwen2" else encode, HF)
        f.write_pieces(name, name + ".json", hf_pieces(f.at(name + ".json")), HF)
    f.write_parts("parts-llama3", "llama3.json", in_parts(f.at("llama3.json")), HF)
    if not f.has("bytes.model"):
        train_spm(f.at("bytes.model"), vocab_size=420, byte_fallback=True, character_coverage=0.98)
    f.write("bytes", "bytes.model", spm(f.at("bytes.model")), SPM, controls=False)
    if not f.has("unknown.model"):
        train_spm(f.at("unknown.model"), vocab_size=160, user_defined_symbols=["<b>", "house"], remove_extra_whitespaces=True)
    f.write("unknown", "unknown.model", spm(f.at("unknown.model")), SPM, controls=False)
    if not f.has("llama2.json"):
        make_spm_json(f.at("bytes.model"), f.at("llama2.json"))
    f.write("llama2", "llama2.json", hf(f.at("llama2.json")), HF)
    f.write_pieces("llama2", "llama2.json", hf_pieces(f.at("llama2.json")), HF)
    f.write_pieces("bytes", "bytes.model", spm_pieces(f.at("bytes.model")), SPM)
    f.write_pieces("unknown", "unknown.model", spm_pieces(f.at("unknown.model"), ["<b>", "house"]), SPM)

    for scheme in ("first", "always"):
        if not f.has("mistral-" + scheme + ".json"):
            make_spm_json(f.at("bytes.model"), f.at("mistral-" + scheme + ".json"), scheme)
        f.write("mistral-" + scheme, "mistral-" + scheme + ".json", hf(f.at("mistral-" + scheme + ".json")), HF)

    write_rules(f.at("rules.tsv"))
    rules = {"normalization_rule_tsv": f.at("rules.tsv")}
    for name, more in (
        ("unigram", {"vocab_size": 300, **rules, "remove_extra_whitespaces": True}),
        ("unigram-bytes", {"vocab_size": 560, **rules, "byte_fallback": True,
                           "user_defined_symbols": ["<b>", "house", "1", "12", "\ufb01"]}),
        ("unigram-suffix", {"vocab_size": 300, "treat_whitespace_as_suffix": True}),
        ("rules-bpe", {"vocab_size": 260, "model_type": "bpe", **rules, "user_defined_symbols": ["<b>", "\u2167", "\ufb01"]}),
    ):
        if not f.has(name + ".model"):
            train_spm(f.at(name + ".model"), **{"model_type": "unigram", "hard_vocab_limit": False, **more})
        f.write(name, name + ".model", spm(f.at(name + ".model")), SPM, controls=False, rules=True)
        f.write_pieces(name, name + ".model", spm_pieces(f.at(name + ".model"), more.get("user_defined_symbols", ())), SPM)
    for name in ("unigram", "unigram-suffix"):
        if not f.has(name + ".gguf"):
            make_t5_gguf(f.at(name + ".model"), f.at(name + ".gguf"), name == "unigram-suffix")
        f.write(name + "-gguf", name + ".gguf", unless_even(f.at(name + ".model")), SPM, controls=False, rules=True)
    if not f.has("t5.json"):
        make_t5(f.at("unigram.model"), f.at("t5.json"))
    f.write("t5", "t5.json", without_new_controls(f.at("t5.json")), HF, rules=True)
    for scheme, form in (("always", normalizers.NFKC()), ("first", normalizers.NFKD()), ("never", normalizers.NFKC())):
        name = "unigram-" + scheme
        if not f.has(name + ".json"):
            make_unigram(form, scheme, f.at(name + ".json"))
        f.write(name, name + ".json", known_marks(hf(f.at(name + ".json")), form), HF, rules=True)

    write_words(f)
    write_ranks(f)
    write_side(f)

    if args.data and args.real:
        write_real(f, args.data, args.real, args.seed)
    if args.data:
        at = os.path.join(args.data, "tokenizers")
        qwen = [os.path.join(at, "qwen2.5", x) for x in ("vocab.json", "merges.txt")]
        llama = [os.path.join(at, "llama3.2", x) for x in ("encoder.json", "vocab.bpe")]
        f.write("data-qwen2", "tokenizers/qwen2.5/vocab.json", known_marks(pair(*qwen, QWEN2, normalizers.NFC())), HF, "qwen2", False)
        f.write("data-llama3", "tokenizers/llama3.2/encoder.json", rust(llama[0], LLAMA3), "tiktoken " + tiktoken.__version__, "llama3", False)
        f.write("data-llama3-hf", "tokenizers/llama3.2/encoder.json", pair(*llama, LLAMA3, ignore_merges=True), HF, "llama3", False)
        stories = os.path.join(args.data, "models", "stories260K", "tok512.model")
        f.write("data-stories", "models/stories260K/tok512.model", spm(stories), SPM, controls=False)
        for name, file in (("t5", "t5-base-translation/tokenizer.json"),
                           ("iree-unigram", "iree-fixtures/unigram_sequence_normalizer_utf8/tokenizer.json")):
            f.write("data-" + name, "real/" + file, without_new_controls(os.path.join(args.data, "real", file)), HF, rules=True)
        for name in ("iree-spm", "internlm-20b", "chatglm3-6b"):
            file = name + "/tokenizer.model"
            f.write("data-" + name, "real/" + file, spm(os.path.join(args.data, "real", file)), SPM, controls=False, rules=True)
        # SentencePiece removes extra blanks, and GGUF files do not ask for that: texts without any.
        f.write("data-stories-gguf", "models/stories260K/stories260K.gguf", unless_blanks(spm(stories)), SPM, controls=False)


main()
