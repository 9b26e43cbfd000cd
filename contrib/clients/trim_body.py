#!/usr/bin/env python3
"""Trims the recorded request of a coding agent to test data: structure and names stay.

    trim_body.py RECORDED.json >bodies/NAME.json

RECORDED has method, path, headers and body.  A text of more than 100 characters becomes a filler
that says how long it was, an identifier becomes zeros, and only those headers stay that a server
could take for an instruction.  The prompts belong to the makers of the agents and are left out.
"""
import json
import re
import sys

LONG = 100
HEX = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{32,}")
KEPT = re.compile(r"(?i)^(accept|content-type|user-agent|anthropic-.*|originator|x-app|x-stainless-.*)$")
MARKED = "x-anthropic-billing-header:"


def trimmed(value, key=""):
    if isinstance(value, dict):
        return {name: trimmed(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [trimmed(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key in ("text", "description") and len(value) > LONG and not value.startswith(MARKED):
        return "(a text of %d characters)" % len(value)
    return HEX.sub(lambda found: re.sub("[0-9a-f]", "0", found.group()), value)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        recorded = json.load(file)
    headers = {name: value for name, value in recorded["headers"].items() if KEPT.match(name)}
    json.dump({"method": recorded["method"], "path": recorded["path"], "headers": headers,
               "body": trimmed(recorded["body"])}, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
