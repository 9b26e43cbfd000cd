"""Documents into rows of tokens, so that a row is full and no document is cut that fits in one.

What is known of a token: its id, how much its loss counts, and the document it belongs to within
its row (a token sees its own document only). Which documents come when depends on the seed alone,
so training that is taken up again goes on where it stopped.
"""
import itertools

import numpy

from documents import documents, render, spoken


class Corpus:
    """All tokens of a part of the corpus, one after the other, and where each document begins."""

    def __init__(self, folder, part, tokenizer, given):
        ids, weights, starts, self.chat = [], [], [0], []
        for document in documents(folder, part):
            text = render(document)
            pieces = [(text, True)] if "text" in document else spoken(text)
            for piece, said in pieces:
                tokens = tokenizer.encode(piece)
                ids.extend(tokens)
                weights.extend([1.0 if said else given] * len(tokens))
            starts.append(len(ids))
            self.chat.append("text" not in document and document["messages"][0]["role"] != "system"
                             and not document.get("tools"))
        self.ids = numpy.array(ids, dtype=numpy.int16)
        self.weights = numpy.array(weights, dtype=numpy.float16)
        self.starts = numpy.array(starts)
        self.chat = numpy.array(self.chat)
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

    def __init__(self, corpus, rows, room, many, joined=False):
        self.corpus, self.rows, self.room, self.many = corpus, rows, room, many
        self.joined = joined
        self.taken, self.due = 0, 0.0

    def state(self):
        return self.taken, self.due

    def resume(self, taken, due):
        """Only of a stream that nothing was taken from."""
        self.taken, self.due = taken, due
        self.rows = itertools.islice(self.rows, taken * self.many, None)

    def next(self):
        self.taken += 1
        return batch(self.corpus, list(itertools.islice(self.rows, self.many)), self.room,
                     self.joined)


def filled(corpus, row, room, joined):
    """A row's tokens, weights and documents: room + 1 tokens, as each has to guess the next.

    The guess of a document's first token counts for nothing, as nothing before it can tell it.
    """
    ids = numpy.full(room + 1, corpus.pad, dtype=numpy.int64)
    weights = numpy.zeros(room + 1, dtype=numpy.float32)
    which = numpy.full(room + 1, -1, dtype=numpy.int64)
    at = 0
    for number, i in enumerate(row):
        begin, end = corpus.starts[i], min(corpus.starts[i + 1], corpus.starts[i] + room + 1 - at)
        ids[at : at + end - begin] = corpus.ids[begin:end]
        weights[at : at + end - begin] = corpus.weights[begin:end]
        which[at : at + end - begin] = 0 if joined else number
        if not joined:
            weights[at] = 0.0
        at += end - begin
    return ids, weights, which


def batch(corpus, rows, room, joined=False):
    """Arrays (rows, room + 1) of ids, weights and documents."""
    return [numpy.stack(x) for x in zip(*(filled(corpus, row, room, joined) for row in rows))]
