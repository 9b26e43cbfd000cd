#!/usr/bin/env python3
"""What the types of weights cost: perplexity on what is not trained on.

    perplexity.py CORPUS_DIR tokenizer.json RUN_DIR

Of plain texts and of what the assistant says, given all that comes before it in its document. The
weights are those of the files that export.py writes; everything is computed in float32.
"""
import math
import sys

import numpy
import torch

from export import stored_as
from packing import Corpus, batch, binned
from quantise import KINDS, meant
from tokenizer import Tokenizer
from train import load_model, losses, sight

ROOM, ROWS = 512, 16


def quantised(model, kind):
    """The model with its weights as a file of that kind gives them back."""
    for name, weight in model.named_parameters():
        stored = stored_as(name, weight, kind)
        rows = weight.detach().numpy()
        numbers = meant(KINDS[stored](rows), stored, rows.shape)
        weight.data = torch.from_numpy(numbers.copy())
    return model


@torch.no_grad()
def loss_of(model, corpus):
    total = many = 0
    dice = numpy.random.default_rng(0)
    for rows in binned(numpy.arange(len(corpus)), corpus.lengths(), ROOM):
        for i in range(0, len(rows), ROWS):
            arrays = batch(corpus, rows[i : i + ROWS], ROOM, False, 0.0, dice)
            ids, which, wanted = map(torch.from_numpy, arrays)
            at = wanted.flatten().nonzero()[:, 0]
            logits = model(ids[:, :-1], sight(which).float(), at)
            total += float(losses(logits, ids, at).double().sum())
            many += len(at)
    return total / many, many


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    corpus = Corpus(sys.argv[1], "valid", Tokenizer(sys.argv[2]))
    for kind in KINDS:
        loss, many = loss_of(quantised(load_model(sys.argv[3]), kind), corpus)
        print("%-5s loss %.5f  perplexity %.4f  on %d tokens" % (kind, loss, math.exp(loss), many))


if __name__ == "__main__":
    main()
