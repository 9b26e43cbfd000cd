"""Documents into rows of tokens, so that a row is full and no document is cut that fits in one.

What is known of a token: its id, whether the model is to say it, and the document it belongs to
within its row (a token sees its own document only). Which documents come when depends on the seed
alone, so training that is taken up again goes on where it stopped.
"""
import itertools

import numpy

from documents import documents, render, spoken


class Corpus:
    """All tokens of a part of the corpus, one after the other, and where each document begins."""

    def __init__(self, folder, part, tokenizer):
        ids, said, starts, chat = [], [], [0], []
        for document in documents(folder, part):
            text = render(document)
            pieces = [(text, True)] if "text" in document else spoken(text)
            for piece, is_said in pieces:
                tokens = tokenizer.encode(piece)
                ids.extend(tokens)
                said.extend([is_said] * len(tokens))
            starts.append(len(ids))
            chat.append("text" not in document and document["messages"][0]["role"] != "system"
                        and not document.get("tools"))
        self.ids = numpy.array(ids, dtype=numpy.int16)
        self.said = numpy.array(said)
        self.starts = numpy.array(starts)
        self.chat = numpy.array(chat)
        self.pad = tokenizer.special["<|endoftext|>"]

    def __len__(self):
        return len(self.starts) - 1

    def lengths(self):
        return numpy.diff(self.starts)


def binned(order, lengths, room, window=4096):
    """Documents into rows of `room` tokens: of a window of them, the long ones first, each into
    the fullest row that takes it. Windows keep rows as mixed as the order is."""
    for at in range(0, len(order), window):
        rows, by_room = [], [[] for _ in range(room + 1)]
        part = order[at : at + window]
        for i in part[numpy.argsort(-lengths[part], kind="stable")]:
            size = min(int(lengths[i]), room)
            left = next((r for r in range(size, room) if by_room[r]), None)
            row = by_room[left].pop() if left is not None else len(rows)
            if left is None:
                left = room
                rows.append([])
            rows[row].append(i)
            by_room[left - size].append(row)
        yield rows


def whole_rows(corpus, which, room, seed):
    """Rows without end, as lists of documents of `which`: one epoch after the other."""
    lengths, epoch = corpus.lengths(), 0
    while True:
        dice = numpy.random.default_rng([seed, room, epoch])
        for rows in binned(dice.permutation(which), lengths, room):
            for row in dice.permutation(len(rows)):
                yield rows[row]
        epoch += 1


def long_rows(corpus, room, seed):
    """Rows that are one long conversation: chats without a head of their own, one upon another."""
    chats = numpy.flatnonzero(corpus.chat)
    lengths, dice = corpus.lengths(), numpy.random.default_rng([seed, room])
    while True:
        row, size = [], 0
        while size < room:
            row.append(int(dice.choice(chats)))
            size += lengths[row[-1]]
        yield row


class Stream:
    """Batches of one kind without end. How many have been taken says where it stands."""

    def __init__(self, corpus, rows, room, many, seed, joined=False):
        self.corpus, self.rows, self.room, self.many = corpus, rows, room, many
        self.seed, self.joined = seed, joined
        self.taken, self.due = 0, 0.0

    def state(self):
        return self.taken, self.due

    def resume(self, taken, due):
        """Only of a stream that nothing was taken from."""
        self.taken, self.due = taken, due
        self.rows = itertools.islice(self.rows, taken * self.many, None)

    def next(self, given):
        """Arrays of ids, documents, positions to guess after, and which of those are real."""
        self.taken += 1
        dice = numpy.random.default_rng([self.seed, self.room, self.taken])
        rows = list(itertools.islice(self.rows, self.many))
        ids, which, wanted = batch(self.corpus, rows, self.room, self.joined, given, dice)
        return ids, which, *guesses(wanted, wanted.size // 2, dice)


def filled(corpus, row, room, joined, given, dice):
    """A row's tokens and documents, one token more than there is room for, as each has to guess
    the next, and after which the guess counts.

    It counts where the model is to say what comes, and at a share `given` of all other places. The
    first token of a document is no guess: nothing before it can tell it.
    """
    ids = numpy.full(room + 1, corpus.pad, dtype=numpy.int64)
    which = numpy.full(room + 1, -1, dtype=numpy.int64)
    counts = numpy.zeros(room + 1, dtype=bool)
    at = 0
    for number, i in enumerate(row):
        begin, end = corpus.starts[i], min(corpus.starts[i + 1], corpus.starts[i] + room + 1 - at)
        here = slice(at, at + end - begin)
        ids[here] = corpus.ids[begin:end]
        which[here] = 0 if joined else number
        counts[here] = corpus.said[begin:end] | (dice.random(end - begin) < given)
        if not joined:
            counts[at] = False
        at += end - begin
    return ids, which[:-1], counts[1:]


def batch(corpus, rows, room, joined, given, dice):
    """Arrays of ids (rows, room + 1), documents and guesses that count (rows, room)."""
    parts = (filled(corpus, row, room, joined, given, dice) for row in rows)
    return [numpy.stack(x) for x in zip(*parts)]


def guesses(wanted, many, dice):
    """Exactly `many` places of those wanted, with a weight each: what has one shape is compiled
    once. If there are more some are left out by chance; if fewer, place 0 fills up for nothing."""
    places = numpy.flatnonzero(wanted)
    if len(places) > many:
        places = numpy.sort(dice.choice(places, many, replace=False))
    weights = numpy.zeros(many, dtype=numpy.float32)
    weights[: len(places)] = 1.0
    return numpy.pad(places, (0, many - len(places))), weights
