#!/usr/bin/env python3
"""Asks samovar a question over its socket, without libsamovar.

    python3 ask.py "What can I cook with rice?"

Needs msgpack for Python (python3-msgpack).  docs/reference/protocol.md describes the frames: a
length of four bytes and a msgpack map.
"""
import os
import socket
import struct
import sys

import msgpack

TOKENS, END = 1, 3


def find_socket():
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "samovar/sock")
    return os.environ.get("SAMOVAR_SOCKET") or (own if os.path.exists(own) else "/run/samovar/sock")


def send(daemon, **fields):
    body = msgpack.packb(fields)
    daemon.sendall(struct.pack("<I", len(body)) + body)


def receive(stream):
    size = stream.read(4)
    if len(size) < 4:
        sys.exit("the daemon has closed the connection")
    return msgpack.unpackb(stream.read(struct.unpack("<I", size)[0]))


def records(frame):
    """(type, what follows the head) of each record; docs/reference/protocol.md, Records."""
    at = 0
    while at < len(frame):
        size, _, kind, _, head, _ = struct.unpack_from("<IIBBHI", frame, at)
        yield kind, frame[at + head:at + size]
        at += (size + 7) & ~7


def main():
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(find_socket())
    stream = daemon.makefile("rb")
    send(daemon, op="hello", id=1, versions=[0, 0], transport="socket")
    send(daemon, op="generate", id=2, messages=[{"role": "user", "content": " ".join(sys.argv[1:])}])
    while True:
        frame = receive(stream)
        if frame.get("ok") is False:
            sys.exit("%s: %s" % (frame["error"], frame["message"]))
        for kind, data in records(frame.get("records", b"")):
            if kind == TOKENS:
                ids = struct.unpack_from("<IH", data)[1]
                sys.stdout.buffer.write(data[8 + 4 * ids:])
                sys.stdout.flush()
            elif kind == END:
                return print()


main()
