#!/usr/bin/env python3
"""How well drafts guess what teaspoon says: which of them is worth having.

    acceptance.py CORPUS_DIR TEASPOON_FOLDER DRAFT_FOLDER...

teaspoon answers chats of the corpus that it was not trained on, greedily and by dice, and a draft
guesses along. With p and q the two distributions of a next token:

    overlap    mean of sum min(p, q): the share of drafted tokens that the rule of speculative
               sampling keeps, where the tokens are drawn
    match      how often both think the same token the likeliest: the share where nothing is drawn
    kept of 4  how many of four drafted tokens are kept, on average over all places to begin at. Of
               greedy answers it is exact; of drawn ones it takes the chances along what teaspoon
               said for those along what was drafted.
"""
import argparse

import torch

from documents import chat, documents
from served import Folder

DRAFTED = 4


def prompts(folder, many):
    """Chats up to the last answer."""
    out = []
    for document in documents(folder, "valid"):
        messages = document.get("messages")
        if messages and messages[-1]["role"] == "assistant" and len(out) < many:
            out.append(chat(messages[:-1], document.get("tools"), ask=True))
    return out


def kept(chances):
    """Mean of c1 + c1 c2 + c1 c2 c3 + ... over all places; behind the answer's end nothing is."""
    padded = torch.cat([chances, torch.zeros(DRAFTED)])
    windows = padded.unfold(0, DRAFTED, 1)[: len(chances)]
    return windows.cumprod(dim=1).sum(dim=1)


def along(teacher, draft, texts, answers, greedy):
    """The chance of each drafted token to be kept, and of four in a row from each place."""
    chances, fours = [], []
    for text, answer in zip(texts, answers):
        p, q = teacher.logits(text, answer), draft.logits(text, answer)
        if greedy:
            chance = (p.argmax(-1) == q.argmax(-1)).float()
        else:
            chance = torch.minimum(p.softmax(-1), q.softmax(-1)).sum(-1)
        chances.append(chance)
        fours.append(kept(chance))
    return float(torch.cat(chances).mean()), float(torch.cat(fours).mean())


def main():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("corpus")
    ask.add_argument("teaspoon")
    ask.add_argument("draft", nargs="+")
    ask.add_argument("--chats", type=int, default=200)
    ask.add_argument("--max", type=int, default=150, help="most tokens in an answer")
    args = ask.parse_args()
    torch.manual_seed(1)
    teacher, texts = Folder(args.teaspoon), prompts(args.corpus, args.chats)
    greedy = teacher.answers(texts, args.max)
    drawn = teacher.answers(texts, args.max, temperature=1.0)
    print("%d answers, %d and %d tokens" % (len(texts), sum(map(len, greedy)),
                                            sum(map(len, drawn))))
    for path in args.draft:
        draft = Folder(path)
        match, most = along(teacher, draft, texts, greedy, True)
        overlap, some = along(teacher, draft, texts, drawn, False)
        print("%s: greedy: match %.3f, kept of 4 %.2f; drawn: overlap %.3f, kept of 4 %.2f"
              % (path, match, most, overlap, some))


if __name__ == "__main__":
    main()
