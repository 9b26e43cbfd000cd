#!/usr/bin/env python3
"""The token ring, read without libsamovar: its format as a program.

    python3 ring_reader.py SOCKET PROMPT MAX_TOKENS [SEED]

include/samovar/ring.h draws the memory, docs/reference/protocol.md has the frames.  Nothing but Python's
own library is needed, but an x86-64 is: there 8 aligned bytes are read and written whole, loads
keep their order and stores keep theirs.  Only a store and a later load may change places, which
is what fence() is for.  An arm64 may reorder two plain loads, too, the tail's and a record's: a
reader there needs libsamovar, or the transport "socket".
"""
import mmap, os, platform, socket, struct, sys, threading

DATA, TAIL, STATE = 4096, 0x80, 0x100  # segment D: offsets of its records and of its words
HEAD, WAKE = 0x00, 0x80  # segment C
NEVER = 2**64 - 1
TOKENS, END = 1, 3
NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
           0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
LENGTHS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I",
           0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


def pack(value):
    """msgpack, of what we send."""
    if isinstance(value, int):
        return struct.pack(">BI", 0xCE, value)
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(map(pack, value))
    return bytes([0x80 | len(value)]) + b"".join(pack(k) + pack(v) for k, v in value.items())


def unpack(data, at=0):
    """One msgpack value, and where it ends."""
    kind, at = data[at], at + 1
    if kind < 0x80 or kind >= 0xE0:
        return kind if kind < 0x80 else kind - 256, at
    if kind in (0xC0, 0xC2, 0xC3):
        return (None, None, False, True)[kind & 3], at
    if kind in NUMBERS:
        return struct.unpack_from(NUMBERS[kind], data, at)[0], at + struct.calcsize(NUMBERS[kind])
    if kind in LENGTHS:
        (count,) = struct.unpack_from(LENGTHS[kind], data, at)
        at += struct.calcsize(LENGTHS[kind])
    else:
        count = kind & (0x1F if kind >= 0xA0 else 0x0F)
    if kind < 0x90 or kind >= 0xDE:
        found = {}
        for _ in range(count):
            key, at = unpack(data, at)
            found[key], at = unpack(data, at)
        return found, at
    if kind < 0xA0 or kind >= 0xDC:
        found = []
        for _ in range(count):
            one, at = unpack(data, at)
            found.append(one)
        return found, at
    body = bytes(data[at : at + count])
    return (body if kind in (0xC4, 0xC5, 0xC6) else body.decode()), at + count


def ask(sock, request, fd_count=0):
    """A request's reply, and the descriptors that came with it; empty frames are kicks."""
    body, data, fds = pack(request), b"", []
    sock.sendall(struct.pack("<I", len(body)) + body)
    while True:
        while len(data) >= 4 and len(data) - 4 >= struct.unpack_from("<I", data)[0]:
            (length,) = struct.unpack_from("<I", data)
            reply, data = (unpack(data[4 : 4 + length])[0] if length else {}), data[4 + length :]
            if "error" in reply:
                sys.exit(f"{reply.get('field', reply['error'])}: {reply['message']}")
            if reply.get("id") == request["id"]:
                return reply, fds
        more, came, _, _ = socket.recv_fds(sock, 65536, fd_count)
        if not more:
            sys.exit("the daemon hung up")
        data, fds = data + more, fds + came


lock = threading.Lock()


def fence():
    """What is stored before it is seen before what is loaded behind it: taking a lock does that."""
    with lock:
        pass


def map_segment(reply, fds, kind, protection):
    (segment,) = [s for s in reply["segments"] if s["kind"] == kind]
    return mmap.mmap(fds[segment["fd"]], segment["bytes"], mmap.MAP_SHARED, protection)


def read_end(payload):
    """Members of an END.  One of an older daemon is shorter: what is missing is 0."""
    body = bytes(payload).ljust(72, b"\0")
    preemptions, _, recomputed, restored = struct.unpack_from("<4I", body, 56)
    return {"reason": body[0], "stopped_by": body[1], "stop_index": body[2],
            "preemptions": preemptions, "recomputed": recomputed, "restored": restored}


def read_ring(sock, ring, control, out):
    """Writes the text of the connection's one stream to `out`, until its END: see read_end()."""
    words, states = memoryview(ring).cast("Q"), memoryview(ring).cast("I")
    wishes = memoryview(control).cast("Q")
    size = struct.unpack_from("<Q", ring, 0x18)[0]
    head, sequence = 0, 0
    while True:
        wishes[WAKE // 8] = NEVER  # we are awake
        tail = words[TAIL // 8]
        while head != tail:
            at, left = DATA + head % size, size - head % size
            if left < 16:  # too few bytes for a record before the end
                head += left
                continue
            length, _, kind, flags, head_bytes, number = struct.unpack_from("<IIBBHI", ring, at)
            payload = at + head_bytes
            if kind and number != sequence:  # 0 is PAD, which belongs to no stream
                sys.exit("a record is missing")
            sequence += kind != 0
            if kind == TOKENS:
                _, count, text_bytes = struct.unpack_from("<IHH", ring, payload)
                text = payload + 8 + 4 * count  # the ids stand before it
                out.write(ring[text : text + text_bytes])
            elif kind == END:
                return read_end(ring[payload : at + length])
            elif flags & 1:
                sys.exit("a record that must be understood is not")
            head += (length + 7) & ~7
        out.flush()

        wishes[HEAD // 8] = head  # what is before it may be overwritten
        fence()
        if states[STATE // 4]:
            sock.sendall(bytes(4))  # the daemon waits for room: there is some

        wishes[WAKE // 8] = head  # wake us for the next record
        fence()
        if words[TAIL // 8] == head and not sock.recv(4096) and words[TAIL // 8] == head:
            sys.exit("the daemon hung up")


def main(path, prompt, max_tokens, seed=None):
    if platform.machine() != "x86_64":
        sys.exit("this reader relies on an x86-64's memory order")
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    reply, fds = ask(sock, {"op": "hello", "id": 1, "versions": [0, 0], "transport": "ring"}, 2)
    ring = map_segment(reply, fds, "ring", mmap.PROT_READ)
    control = map_segment(reply, fds, "control", mmap.PROT_READ | mmap.PROT_WRITE)
    for fd in fds:
        os.close(fd)
    wish = {"op": "generate", "id": 2, "prompt": prompt, "max_tokens": int(max_tokens)}
    ask(sock, wish if seed is None else wish | {"seed": int(seed)})
    end = read_ring(sock, ring, control, sys.stdout.buffer)
    if end["preemptions"]:
        sys.stderr.write("preempted {preemptions} times, {recomputed} tokens computed again, "
                         "{restored} restored\n".format(**end))
    if end["reason"] == 6:
        sys.exit("the stream failed")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
