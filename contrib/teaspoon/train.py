#!/usr/bin/env python3
"""Trains teaspoon, or pinch, on the CPU.

    train.py CORPUS_DIR tokenizer.json RUN_DIR --minutes 600
    train.py CORPUS_DIR tokenizer.json RUN_DIR --shape pinch --tokens 50e6 --distil TEASPOON_RUN

RUN_DIR gets checkpoint.pt every few minutes, curve.csv and curve.svg. A run that was stopped goes
on from its checkpoint when it is started again with the same flags. With --tokens the result is the
same whenever seed, machine and libraries are; with --minutes it depends on how fast they were.

The rate of learning rises at once, stays, and falls to nothing as the budget ends. Most rows are
short and hold whole documents that do not see each other. Late in the run a few are one long
conversation, so that the model has seen all the positions that it says it serves.
"""
import argparse
import os
import time

import numpy
import torch
import torch.nn.functional as F

import curve
from model import SHAPES, Llama
from muon import optimizers
from packing import Corpus, Stream, batch, binned, guesses, long_rows, whole_rows
from tokenizer import Tokenizer

VALID_ROWS = 48


def arguments():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("corpus")
    ask.add_argument("tokenizer")
    ask.add_argument("run")
    ask.add_argument("--shape", choices=SHAPES, default="teaspoon")
    budget = ask.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, help="of wall-clock, compiling included")
    budget.add_argument("--tokens", type=float, help="for example 100e6")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--threads", type=int, default=2)
    ask.add_argument("--optimizer", choices=["muon", "adamw"], default="muon")
    ask.add_argument("--rate", type=float, default=3e-3)
    ask.add_argument("--decay", type=float, default=0.1, help="of weights")
    ask.add_argument("--warmup", type=float, default=0.01, help="share of the budget")
    ask.add_argument("--falls", type=float, default=0.4, help="from this share on the rate falls")
    ask.add_argument("--room", type=int, default=256, help="tokens in a row")
    ask.add_argument("--rows", type=int, default=32, help="rows in a step")
    ask.add_argument("--wide", type=int, default=512, help="in a row of longer documents")
    ask.add_argument("--long", type=int, default=4096, help="tokens in a long row")
    ask.add_argument("--long-share", type=float, default=0.03, help="of the steps, once there are")
    ask.add_argument("--long-from", type=float, default=0.7, help="share of the budget")
    ask.add_argument("--given", type=float, default=0.1,
                     help="share of what is said to the model that it has to guess as well")
    ask.add_argument("--distil", metavar="RUN_DIR", help="learn from that model's logits as well")
    ask.add_argument("--kl", type=float, default=0.9, help="share of the teacher in the loss")
    ask.add_argument("--eager", action="store_true", help="do not compile")
    ask.add_argument("--save-minutes", type=float, default=5.0)
    ask.add_argument("--valid-steps", type=int, default=200)
    return ask.parse_args()


def load_model(run):
    """The model of a run as it was saved last."""
    saved = torch.load(os.path.join(run, "checkpoint.pt"), weights_only=True)
    model = Llama(SHAPES[saved["shape"]])
    model.load_state_dict(saved["model"])
    return model.eval()


def sight(which):
    """Who sees whom (rows, 1, to, from), added to scores: no one what comes, or other documents."""
    same = which[:, :, None] == which[:, None, :]
    before = torch.ones(which.shape[1], which.shape[1], dtype=torch.bool).tril()
    never = torch.full((), -torch.inf, dtype=torch.bfloat16)
    return torch.where(same & before, torch.zeros_like(never), never)[:, None]


def losses(logits, ids, at):
    """Of the guesses after some places."""
    return F.cross_entropy(logits.float(), ids[:, 1:].flatten()[at], reduction="none")


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


class Trainer:
    def __init__(self, args):
        self.args = args
        self.tokenizer = Tokenizer(args.tokenizer)
        self.corpus = Corpus(args.corpus, "train", self.tokenizer)
        self.valid = self.validation()
        self.model = Llama(SHAPES[args.shape]).initialise(args.seed)
        self.teacher = load_model(args.distil) if args.distil else None
        self.optimizers = optimizers(self.model, args.optimizer, args.rate, args.decay)
        self.compiled = self.loss if args.eager else torch.compile(self.loss, dynamic=False)
        self.streams = self.make_streams()
        self.tokens = self.steps = 0
        self.minutes, self.rows = 0.0, []
        self.path = os.path.join(args.run, "checkpoint.pt")

    def validation(self):
        """Some rows of what is not trained on; only what the model has to say counts."""
        corpus, room = Corpus(self.args.corpus, "valid", self.tokenizer), self.args.room
        lengths = corpus.lengths()
        fits = numpy.flatnonzero(lengths <= room)
        rows = next(binned(fits, lengths, room))[:VALID_ROWS]
        dice = numpy.random.default_rng(self.args.seed)
        ids, which, wanted = batch(corpus, rows, room, False, 0.0, dice)
        return tensors(ids, which, *guesses(wanted, wanted.sum(), dice))

    def loss(self, ids, which, at, weights, joined):
        mask = None if joined else sight(which)
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(ids[:, :-1], mask, at)
            if self.teacher:
                with torch.no_grad():
                    taught = self.teacher(ids[:, :-1], mask, at)
        told = (losses(logits, ids, at) * weights).sum() / weights.sum()
        if not self.teacher:
            return told
        away = F.kl_div(logits.float().log_softmax(-1), taught.float().log_softmax(-1),
                        log_target=True, reduction="none").sum(-1)
        away = (away * weights).sum() / weights.sum()
        return self.args.kl * away + (1 - self.args.kl) * told

    @torch.no_grad()
    def validate(self):
        ids, which, at, weights = self.valid
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(ids[:, :-1], sight(which), at)
        return float((losses(logits, ids, at) * weights).sum() / weights.sum())

    def progress(self):
        if self.args.tokens:
            return self.tokens / self.args.tokens
        return self.minutes / self.args.minutes

    def rate(self):
        at = self.progress()
        rising = min(1.0, (at + 1e-9) / self.args.warmup) if self.args.warmup else 1.0
        falling = min(1.0, (1.0 - at) / (1.0 - self.args.falls))
        return max(0.0, min(rising, falling))

    def make_streams(self):
        """Short documents, those that fit into no short row, and long conversations."""
        args, corpus, size = self.args, self.corpus, self.args.rows * self.args.room
        lengths = corpus.lengths()
        fits = lengths <= args.room
        made = [Stream(corpus, whole_rows(corpus, numpy.flatnonzero(fits), args.room, args.seed),
                       args.room, args.rows, args.seed)]
        if not fits.all():
            wide = numpy.flatnonzero(~fits)
            made.append(Stream(corpus, whole_rows(corpus, wide, args.wide, args.seed),
                               args.wide, max(1, size // args.wide), args.seed))
        if corpus.chat.any() and args.long_share:
            made.append(Stream(corpus, long_rows(corpus, args.long, args.seed), args.long,
                               max(1, size // args.long), args.seed, joined=True))
        self.wide_share = float(lengths[~fits].sum() / lengths[fits].sum())
        return made

    def next(self):
        """The next batch. Streams beside the first are spread evenly, not by dice."""
        for stream in self.streams[1:]:
            if not stream.joined:
                stream.due += self.wide_share
            elif self.progress() >= self.args.long_from:
                stream.due += self.args.long_share
            if stream.due >= stream.taken + 1:
                return *tensors(*stream.next(self.args.given)), stream.joined
        return *tensors(*self.streams[0].next(self.args.given)), False

    def step(self, ids, which, at, weights, joined):
        loss = self.compiled(ids, which, at, weights, joined)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = self.rate()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.tokens += ids.shape[0] * (ids.shape[1] - 1)
        self.steps += 1
        return float(loss.detach())

    def report(self, recent):
        self.rows.append({"tokens": self.tokens, "minutes": round(self.minutes, 2),
                          "rate": round(self.args.rate * self.rate(), 8),
                          "train": round(sum(recent) / len(recent), 4),
                          "valid": round(self.validate(), 4)})
        row = self.rows[-1]
        print("%5.1f %%  step %d  %.2f M tokens  %.1f min  %.0f tokens/s  rate %.2g  train %.4f"
              "  valid %.4f" % (100 * self.progress(), self.steps, self.tokens / 1e6, self.minutes,
                                self.tokens / 60 / self.minutes, row["rate"], row["train"],
                                row["valid"]), flush=True)
        curve.save(os.path.join(self.args.run, "curve.csv"), self.rows)
        curve.draw(os.path.join(self.args.run, "curve.svg"), self.rows, self.args.shape)

    def save(self):
        saved = {"shape": self.args.shape, "model": self.model.state_dict(),
                 "optimizers": [o.state_dict() for o in self.optimizers],
                 "rows": self.rows, "minutes": self.minutes, "tokens": self.tokens,
                 "steps": self.steps,
                 "streams": [stream.state() for stream in self.streams]}
        torch.save(saved, self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def resume(self):
        saved = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        for optimizer, state in zip(self.optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
        for name in ("rows", "minutes", "tokens", "steps"):
            setattr(self, name, saved[name])
        for stream, state in zip(self.streams, saved["streams"]):
            stream.resume(*state)
        print("goes on after step %d" % self.steps, flush=True)

    def run(self):
        if os.path.exists(self.path):
            self.resume()
        begun = time.monotonic() - 60 * self.minutes
        recent, saved_at = [], self.minutes
        while self.progress() < 1.0:
            recent.append(self.step(*self.next()))
            self.minutes = (time.monotonic() - begun) / 60
            if self.steps % self.args.valid_steps == 0:
                self.report(recent)
                recent = []
            if self.minutes - saved_at >= self.args.save_minutes:
                self.save()
                saved_at = self.minutes
        if recent:
            self.report(recent)
        self.save()


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)  # else what two threads add to one gradient is rounded as they come
    os.makedirs(args.run, exist_ok=True)
    trainer = Trainer(args)
    print("%d parameters, %.2f M tokens in %d documents" % (
        sum(w.numel() for w in trainer.model.parameters()), len(trainer.corpus.ids) / 1e6,
        len(trainer.corpus)), flush=True)
    trainer.run()


if __name__ == "__main__":
    main()
