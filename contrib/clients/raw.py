"""HTTP by the standard library alone: what a server sent, to the byte, and no client's patience."""
import http.client
import json
import socket

TIMEOUT = 30


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        return self.headers.get(name)

    def json(self):
        assert (self.header("content-type") or "").split(";")[0] == "application/json", (
            "content type %r, status %d" % (self.header("content-type"), self.status))
        return strict_json(self.body)

    def __repr__(self):
        return "%d %s" % (self.status, self.body[:300])


def strict_json(data):
    """JSON without what Python alone allows: NaN, double keys, bytes that are no UTF-8."""
    def refuse(word):
        raise AssertionError("%s is not JSON" % word)

    def once(pairs):
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), "a key occurs twice: %s" % names
        return dict(pairs)

    text = data.decode("utf-8") if isinstance(data, bytes) else data
    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


class Server:
    """Where to ask, and with which key."""

    def __init__(self, port, key=None, host="127.0.0.1"):
        self.port, self.key, self.host = port, key, host

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def _headers(self, headers, body):
        sent = {"Host": "%s:%d" % (self.host, self.port)}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if self.key:
            sent["Authorization"] = "Bearer " + self.key
        for name, value in (headers or {}).items():
            sent = {other: old for other, old in sent.items() if other.lower() != name.lower()}
            sent[name] = value
        return {name: value for name, value in sent.items() if value is not None}

    def open(self, method, path, body=None, headers=None, timeout=TIMEOUT):
        """Sends a request; returns the connection and the response, whose body is not yet read."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._headers(headers, body).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, headers=None, timeout=TIMEOUT):
        connection, response = self.open(method, path, body, headers, timeout)
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        return answer

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def stream(self, path, body, headers=None, timeout=TIMEOUT):
        return Stream(*self.open("POST", path, {**body, "stream": True}, headers, timeout))

    def resumed(self, path):
        """A stream that is read again."""
        return Stream(*self.open("GET", path))

    def events(self, path, body, **more):
        """All events of a stream that ends by itself."""
        return list(self.stream(path, body, **more))

    def lines(self, path, body, headers=None):
        """All records of an Ollama stream that ends by itself."""
        connection, response = self.open("POST", path, body, headers)
        assert response.status == 200, response.read()
        kind = response.getheader("content-type")
        assert kind == "application/x-ndjson", "content type %r" % kind
        data = response.read()
        connection.close()
        assert data.endswith(b"\n"), "the last line has no end"
        lines = data[:-1].split(b"\n")
        assert b"" not in lines, "a blank line, on which the Python client breaks"
        return [strict_json(line) for line in lines]

    def tunnel(self, buffer=None):
        """buffer: how many bytes the system may keep that were not read."""
        tunnel = socket.socket()
        if buffer:
            tunnel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        tunnel.settimeout(TIMEOUT)
        tunnel.connect(("127.0.0.1", self.port))
        return tunnel


class Event:
    def __init__(self, name, data):
        self.name, self.data = name, data

    @property
    def done(self):
        return self.data == "[DONE]"

    def json(self):
        return strict_json(self.data)

    def __repr__(self):
        return "%s: %s" % (self.name, self.data[:200])


class Stream:
    """Server-sent events, one at a time. `ended` tells that the body ended as HTTP wants it."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status, self.comments, self.ended = response.status, [], False
        if self.status != 200:
            raise AssertionError("status %d: %s" % (self.status, response.read()[:300]))
        kind = (response.getheader("content-type") or "").split(";")[0]
        assert kind == "text/event-stream", "content type %r" % kind
        caching = (response.getheader("cache-control") or "").replace(" ", "").split(",")
        assert {"no-cache", "no-transform"} <= set(caching), "cache-control %r" % caching
        assert response.getheader("x-accel-buffering") == "no", "x-accel-buffering is not no"
        assert response.getheader("content-encoding") is None, "a compressed stream"

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            block = self._block()
            if block is None:
                raise StopIteration
            event = parsed(block, self.comments)
            if event:
                return event

    def _block(self):
        lines = []
        while True:
            line = self.response.readline()
            if not line:
                assert not lines, "the stream ends inside an event: %r" % lines
                self.ended = True
                return None
            assert line.endswith(b"\n"), "a line without an end: %r" % line
            line = line.rstrip(b"\n")
            if not line:
                if lines:
                    return lines
                raise AssertionError("two blank lines: an event without fields")
            lines.append(line)

    def header(self, name):
        return self.response.getheader(name)

    def leave(self):
        """Goes away, as a client that was closed."""
        self.response.close()
        self.connection.close()


def parsed(lines, comments):
    """An event of its lines; None if they are comments only. Only `event` and `data` may occur:
    the official clients break on other fields without data, and on empty data."""
    name, data = None, []
    for line in lines:
        if line.startswith(b":"):
            comments.append(line)
            continue
        field, colon, value = line.partition(b":")
        assert colon, "a field without a colon: %r" % line
        value = value[1:] if value.startswith(b" ") else value
        if field == b"event":
            assert name is None, "two names of an event"
            name = value.decode()
        elif field == b"data":
            data.append(value.decode("utf-8"))
        else:
            raise AssertionError("the field %r" % field)
    if not data:
        assert name is None, "an event without data: %s" % name
        return None
    assert data != [""], "empty data"
    assert len(data) == 1, "data on two lines"
    return Event(name, data[0])
