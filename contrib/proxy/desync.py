"""Requests that servers read differently, each with a second request hidden where one reading ends.

A row is what a client sends: `request(hidden)` gives the bytes.  The hidden request is whole, and has
a key.  If a proxy takes it for a part of the body and samovar-http does not, samovar-http gives an
answer that the proxy did not ask for.
"""
FRONT = b"POST /tokenize HTTP/1.1\r\nHost: chat.example\r\nContent-Type: application/json\r\n"
BODY = b'{"content":"a"}'


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def with_lines(lines, body):
    """`lines` are header lines; %d in them is the length of the body."""
    def request(hidden):
        text = body(hidden) if callable(body) else body
        return FRONT + (lines % len(text) if b"%d" in lines else lines) + b"\r\n" + text
    return request


def inside(hidden):
    """A body whose chunks end at once, and whose length covers what follows."""
    return b"0\r\n\r\n" + hidden


def chunked(hidden):
    return chunk(BODY) + b"0\r\n\r\n" + hidden


def behind(hidden):
    return BODY + hidden


def odd_chunk(size):
    return lambda hidden: size + b"\r\n" + BODY + b"\r\n0\r\n\r\n" + hidden


SIZE = b"%x" % len(BODY)
LENGTH = b"%d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"

ROWS = {
    "a length and chunks": with_lines(b"Content-Length: %d\r\n" + CHUNKED, inside),
    "chunks and a length": with_lines(CHUNKED + b"Content-Length: %d\r\n", inside),
    "a short length and chunks": with_lines(b"Content-Length: 5\r\n" + CHUNKED, chunked),
    "chunked twice": with_lines(CHUNKED + CHUNKED, chunked),
    "chunked, then identity": with_lines(b"Content-Length: %d\r\n" + CHUNKED + b"Transfer-Encoding: identity\r\n", inside),
    "an unknown coding": with_lines(b"Content-Length: %d\r\nTransfer-Encoding: xchunked\r\n", inside),
    "a coding in front": with_lines(b"Content-Length: %d\r\nTransfer-Encoding: gzip, chunked\r\n", inside),
    "identity": with_lines(b"Content-Length: %d\r\nTransfer-Encoding: identity\r\n", inside),
    "a coding behind a tab": with_lines(b"Content-Length: %d\r\nTransfer-Encoding:\tchunked\r\n", inside),
    "a coding in quotes": with_lines(b"Content-Length: %d\r\nTransfer-Encoding: \"chunked\"\r\n", inside),
    "a blank before the colon of the coding": with_lines(b"Content-Length: %d\r\nTransfer-Encoding : chunked\r\n", inside),
    "a folded coding": with_lines(b"Content-Length: %d\r\nTransfer-Encoding:\r\n chunked\r\n", inside),
    "a coding behind a bare CR": with_lines(b"Content-Length: %d\r\nX: 1\rTransfer-Encoding: chunked\r\n", inside),
    "a coding behind a bare LF": with_lines(b"Content-Length: %d\r\nX: 1\nTransfer-Encoding: chunked\r\n", inside),
    "a coding behind a leading blank": with_lines(b"Content-Length: %d\r\n Transfer-Encoding: chunked\r\n", inside),
    "a coding with a NUL": with_lines(b"Content-Length: %d\r\nTransfer-Encoding: chunked\0\r\n", inside),
    "two lengths": with_lines(b"Content-Length: " + LENGTH + b"\r\nContent-Length: %d\r\n", behind),
    "two lengths, the long one first": with_lines(b"Content-Length: %d\r\nContent-Length: " + LENGTH + b"\r\n", behind),
    "a length with a sign": with_lines(b"Content-Length: +" + LENGTH + b"\r\n", behind),
    "a length in hexadecimal": with_lines(b"Content-Length: 0x" + SIZE + b"\r\n", behind),
    "a length in octal": with_lines(b"Content-Length: 0" + LENGTH + b"\r\n", behind),
    "two lengths in a line": with_lines(b"Content-Length: " + LENGTH + b", " + LENGTH + b"\r\n", behind),
    "a negative length": with_lines(b"Content-Length: -1\r\n", behind),
    "an empty length": with_lines(b"Content-Length: \r\n", behind),
    "a length of 2^64": with_lines(b"Content-Length: 18446744073709551616\r\n", behind),
    "a blank before the colon of the length": with_lines(b"Content-Length : %d\r\n", lambda hidden: hidden),
    "a folded length": with_lines(b"Content-Length:\r\n %d\r\n", lambda hidden: hidden),
    "a length behind a NUL": with_lines(b"X: a\0b\r\nContent-Length: %d\r\n", lambda hidden: hidden),
    "a header without a name": with_lines(b": x\r\nContent-Length: %d\r\n", lambda hidden: hidden),
    "a chunk size with a sign": with_lines(CHUNKED, odd_chunk(b"+" + SIZE)),
    "a chunk size in hexadecimal": with_lines(CHUNKED, odd_chunk(b"0x" + SIZE)),
    "a chunk size with blanks": with_lines(CHUNKED, odd_chunk(SIZE + b"   ")),
    "a chunk size that overflows": with_lines(CHUNKED, odd_chunk(b"1" + b"0" * (16 - len(SIZE)) + SIZE)),
    "a chunk extension with a bare LF": with_lines(CHUNKED, odd_chunk(SIZE + b";x\ny")),
    "a chunk without its end": with_lines(CHUNKED, lambda hidden: SIZE + b"\r\n" + BODY + b"0\r\n\r\n" + hidden),
    "chunks that end in bare LFs": with_lines(CHUNKED, lambda hidden: SIZE + b"\n" + BODY + b"\n0\n\n" + hidden),
    "a trailer with a length": with_lines(CHUNKED, lambda hidden: chunk(BODY) + b"0\r\nContent-Length: 5\r\n\r\n" + hidden),
    "a body of GET": lambda hidden: b"GET /v1/models HTTP/1.1\r\nHost: chat.example\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden,
    "chunks in HTTP/1.0": lambda hidden: FRONT.replace(b"1.1", b"1.0") + b"Content-Length: %d\r\n" % len(inside(hidden)) + CHUNKED + b"\r\n" + inside(hidden),
    "an upgrade": lambda hidden: b"GET /v1/models HTTP/1.1\r\nHost: chat.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                                 b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n" + hidden,
    "an expectation": with_lines(b"Expect: 100-continue\r\nContent-Length: " + LENGTH + b"\r\n", behind),
    "two hosts": with_lines(b"Host: evil\r\nContent-Length: " + LENGTH + b"\r\n", behind),
}
