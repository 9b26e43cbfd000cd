#!/usr/bin/env python3
"""Asks a model prompts and says how many of its replies pass, of each kind and in all.

    evaluate.py OUT_DIR/teaspoon PROMPTS.jsonl [--show failures]
    evaluate.py --build BUILD_DIR MODEL.gguf PROMPTS.jsonl

The first asks transformers, the second samovard, which needs nothing of Python's. A line of PROMPTS is {"id", "kind", "messages", "tools" if there are any, "check"}; checks.py says
what a check may hold. Replies are greedy. By default only numbers are printed: prompts that are
held out are not to be looked at.
"""
import argparse
import collections
import json

from checks import passes


def show(prompt, reply, passed):
    print("%s %s" % ("pass" if passed else "FAIL", prompt["id"]))
    for message in prompt["messages"]:
        print("    %s: %s" % (message["role"], message.get("content") or message["tool_calls"]))
    print("    -> %s\n    %s" % (reply, json.dumps(prompt["check"])))


def replies_of(args, prompts):
    if args.build:
        from asked import Daemon

        daemon = Daemon(args.build, args.model)
        try:
            return daemon.replies(prompts, args.max)
        finally:
            daemon.close()
    from documents import chat
    from served import Folder

    texts = [chat(p["messages"], p.get("tools"), ask=True) for p in prompts]
    return Folder(args.model).replies(texts, args.max)


def main():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("model")
    ask.add_argument("prompts")
    ask.add_argument("--show", choices=["failures", "all", "none"], default="none")
    ask.add_argument("--max", type=int, default=200, help="most tokens in a reply")
    ask.add_argument("--build", help="where samovar was built; MODEL is a file it can serve")
    ask.add_argument("--at-least", type=float, default=0.0, help="per cent; fewer is a failure")
    ask.add_argument("--each-at-least", type=float, default=0.0, help="the same of every kind")
    args = ask.parse_args()
    with open(args.prompts, encoding="utf-8") as file:
        prompts = [json.loads(line) for line in file if line.strip()]
    replies = replies_of(args, prompts)
    score = collections.defaultdict(list)
    for prompt, reply in zip(prompts, replies):
        passed = passes(prompt["check"], reply)
        score[prompt["kind"]].append(passed)
        if args.show == "all" or args.show == "failures" and not passed:
            show(prompt, reply, passed)
    for kind in sorted(score):
        print("%-18s %4d of %4d" % (kind, sum(score[kind]), len(score[kind])))
    every = sum(score.values(), [])
    print("%-18s %4d of %4d   %.1f %%" % ("all", sum(every), len(every),
                                         100 * sum(every) / len(every)))
    if 100 * sum(every) < args.at_least * len(every):
        raise SystemExit("fewer than %g %%" % args.at_least)
    poor = [kind for kind in sorted(score) if 100 * sum(score[kind]) < args.each_at_least * len(score[kind])]
    if poor:
        raise SystemExit("fewer than %g %%: %s" % (args.each_at_least, ", ".join(poor)))


if __name__ == "__main__":
    main()
