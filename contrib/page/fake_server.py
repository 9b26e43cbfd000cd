"""A server that gives the browser the files of the real page, and the answers that a test wants.

The files and their headers come from samovar-http, byte for byte.  All other routes are the test's.
"""
import http.client
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = {"id": "fake", "object": "model", "created": 1, "max_model_len": 32768,
         "meta": {"architecture": "llama", "quantization": "Q8_0", "n_params": 3672320, "size": 3908608}}
NEVER = 60                          # seconds that no test needs


def say(text, piece=None, **usage):
    """An answer in pieces of so many characters."""
    def answer(stream, body):
        size = piece or max(1, len(text))
        for at in range(0, len(text), size):
            stream.delta(content=text[at:at + size])
        stream.end(**usage)
    return answer


def think(reasoning, text):
    def answer(stream, body):
        stream.delta(reasoning_content=reasoning)
        stream.delta(content=text)
        stream.end()
    return answer


def call(*calls, text=""):
    """Calls tools: (name, arguments as text), in several pieces."""
    def answer(stream, body):
        if text:
            stream.delta(content=text)
        for at, (name, arguments) in enumerate(calls):
            half = len(arguments) // 2
            stream.delta(tool_calls=[{"index": at, "id": "call_%d" % at, "type": "function",
                                      "function": {"name": name, "arguments": ""}}])
            for part in (arguments[:half], arguments[half:]):
                stream.delta(tool_calls=[{"index": at, "function": {"arguments": part}}])
        stream.end(finish="tool_calls")
    return answer


def refuse(status, message, **headers):
    def answer(stream, body):
        stream.json(status, {"error": {"message": message, "type": "error", "param": None, "code": None}}, headers)
    return answer


class Stream:
    """The answer to one request."""

    def __init__(self, handler):
        self.handler, self.begun = handler, False

    def json(self, status, data, headers=None):
        self.handler.reply(status, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})

    def head(self, **headers):
        self.begun = True
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()

    def raw(self, data):
        """Bytes that the browser may get as a piece of their own."""
        if not self.begun:
            self.head()
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def event(self, **data):
        self.raw(b"data: %s\n\n" % json.dumps({"object": "chat.completion.chunk", "model": self.handler.server.fake.name, **data},
                                              ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def delta(self, index=0, logprobs=None, **delta):
        self.event(choices=[{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}])

    def end(self, finish="stop", choices=1, prompt=20, output=5, cached=0, **timings):
        for index in range(choices):
            self.event(choices=[{"index": index, "delta": {}, "finish_reason": finish}])
        self.event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": output,
                                      "prompt_tokens_details": {"cached_tokens": cached}},
                   timings={"predicted_per_second": 50, "prompt_ms": 3.5, "queued_ms": 0.1, **timings})
        self.raw(b"data: [DONE]\n\n")
        self.handler.wfile.write(b"0\r\n\r\n")

    def cut(self):
        """The connection ends in the middle of the answer."""
        self.handler.connection.shutdown(socket.SHUT_RDWR)
        self.handler.close_connection = True

    def client_left(self):
        """Waits until the browser has closed the connection; false: it never did."""
        self.handler.connection.settimeout(NEVER)
        try:
            return self.handler.connection.recv(1) == b""
        except OSError:
            return False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, data, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def page_file(self):
        """What samovar-http sends."""
        files = http.client.HTTPConnection("127.0.0.1", self.server.fake.bridge.port, timeout=NEVER)
        sent = {name: value for name, value in self.headers.items()
                if name.lower() not in ("host", "connection", "origin")}
        files.request("GET", self.path, headers=sent)
        answer = files.getresponse()
        data = answer.read()
        self.reply(answer.status, data, {name: value for name, value in answer.getheaders() if name.lower() not in (
            "content-length", "date", "transfer-encoding", "connection")})
        files.close()

    def do_any(self):
        fake, path = self.server.fake, self.path.split("?")[0]
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None

        if path == "/" or path.startswith("/page/"):
            return self.page_file()
        with fake.lock:
            fake.asked.append((self.command, self.path, body, dict(self.headers)))
        try:
            self.route(fake, path, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self, fake, path, body):
        stream = Stream(self)
        for pattern, answer in fake.routes.items():
            method, _, place = pattern.partition(" ")
            if method == self.command and re.fullmatch(place, path):
                return answer(stream, body) if callable(answer) else stream.json(200, answer)
        if path == "/v1/chat/completions":
            with fake.lock:
                answer = fake.answers.pop(0) if fake.answers else say("Hello.")
            return answer(stream, body)
        return stream.json(404, {"error": {"message": "there is no route %s" % path}})

    do_GET = do_POST = do_DELETE = do_HEAD = do_any


class Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser may leave at any moment."""


class Fake:
    def __init__(self, bridge):
        self.bridge, self.lock = bridge, threading.Lock()
        self.asked, self.answers, self.name = [], [], MODEL["id"]
        self.routes = {"GET /health": {"status": "ok"}, "GET /v1/models": {"object": "list", "data": [MODEL]},
                       "DELETE /v1/streams/.*": {"deleted": True}}
        self.http = Listener(("127.0.0.1", 0), Handler)
        self.http.fake = self
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.http.server_address[1]

    def will(self, *answers):
        """What the next chats get, each its answer."""
        self.answers += answers

    def chats(self):
        """The bodies of the chats that were asked for."""
        with self.lock:
            return [body for method, path, body, _ in self.asked if path == "/v1/chat/completions"]

    def count(self, method, path):
        with self.lock:
            return sum(1 for each in self.asked if each[0] == method and re.fullmatch(path, each[1]))

    def end(self):
        self.http.shutdown()
        self.http.server_close()


class Elsewhere:
    """A port that counts who comes."""

    def __init__(self):
        self.came = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                self.listener.accept()[0].close()
                self.came += 1
            except OSError:
                return

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.listener.getsockname()[1]

    def end(self):
        self.listener.close()
