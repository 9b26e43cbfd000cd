#!/usr/bin/env python3
"""Imitates servers with the API of OpenAI for test-bench-servers.c.

    odd-openai.py

Prints its port.  http://127.0.0.1:PORT/NAME/v1 is the server NAME of the table SERVERS.  Each has
/models, /completions and /chat/completions, and answers like this unless its entry says otherwise:

- a prompt of N ids has N tokens, and one of N words has 2 N + 3;
- an answer has max_tokens tokens, each with a piece of text, and then the usage.
"""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAUSE_S = 0.3
TURN = 12       # after so many requests a server that refuses some of them begins again
NOT_FOUND = ("<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not "
             "Found</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n")
LLAMA_META = {"vocab_type": 2, "n_vocab": 128256, "n_ctx_train": 131072, "n_ctx": 8192,
              "n_embd": 2048, "n_params": 1235814432, "size": 799862912, "ftype": "Q4_K - Medium"}

# What each server does in another way.
SERVERS = {
    "plain": {},
    "busy-at-first": {"refuses": (1, 1), "status": 429, "words": "the queue of A is full"},
    "busy-later": {"refuses": (5, 8), "status": 503, "words": "B loads its model"},
    # The last token has no text: it comes as the end, after a pause.
    "silent-end": {"silent": True},
    # The model ends its answers after three tokens: also if the request has ignore_eos; unless it
    # has; and where the request is refused then.
    "stubborn": {"ends_at": 3, "ignore_eos": "ignored"},
    "obedient": {"ends_at": 3},
    "strict": {"ends_at": 3, "ignore_eos": "refused"},
    # No vocabulary: prompts come as text.
    "wordy": {"vocabulary": False},
    "no-usage": {"usage": lambda number: False},
    "no-usage-wordy": {"usage": lambda number: False, "vocabulary": False},
    "usage-at-times": {"usage": lambda number: number % 2 == 0},
    "locked": {"key": "open sesame"},
    "locked-later": {"key": "open sesame", "open_models": True},
    "chat-only": {"lacks": "/completions"},
    "chat-only-wordy": {"lacks": "/completions", "vocabulary": False},
    "completions-only": {"lacks": "/chat/completions"},
    "llama": {"form": "llama", "server": "llama.cpp", "owner": "llamacpp", "meta": LLAMA_META,
              "more": {"/props": {"build_info": "b6123-79c1160b"}}},
    "vllm": {"form": "vllm", "server": "uvicorn", "owner": "vllm", "length": 4096,
             "more": {"/version": {"version": "0.11.0"}}},
    # The usage is in the last chunk of the answer, and nothing says [DONE].
    "undone": {"form": "undone"},
    # Ends of lines are CR LF; there are comments and other fields; writes end anywhere.
    "torn": {"form": "torn"},
    # Two tokens are in each piece.
    "pairs": {"a_piece": 2},
    # Answers that fail after they have begun.
    "cut": {"fault": "cut"},
    "unfinished": {"fault": "unfinished"},
    "failing": {"fault": "error"},
    "whole": {"fault": "whole"},
}
lock, counts = threading.Lock(), {}


class Refusal(Exception):
    """A status and a body."""


def refusal(status, words):
    return Refusal(status, json.dumps({"error": {"message": words, "type": "invalid_request_error"}}))


def prompt_tokens(body):
    if "messages" in body:
        return 2 * sum(len(message["content"].split()) for message in body["messages"]) + 3
    return len(body["prompt"]) if isinstance(body["prompt"], list) else 2 * len(body["prompt"].split()) + 3


def chunk(chat, text, finish=None):
    choice = {"index": 0, "finish_reason": finish, "logprobs": None}
    choice.update({"delta": {"content": text}} if chat else {"text": text})
    return {"id": "cmpl-1", "object": "chat.completion.chunk" if chat else "text_completion",
            "created": 1764374400, "model": "tea-7b", "choices": [choice]}


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def version_string(self):
        return self.ways.get("server", "odd")

    def handle_as(self, act):
        """Finds the server of the path; what is left of it begins with a slash."""
        name, _, rest = self.path[1:].partition("/")
        self.ways, self.name, self.rest = SERVERS[name], name, "/" + rest
        try:
            act()
        except Refusal as why:
            self.answer(*why.args)

    def do_GET(self):
        self.handle_as(self.tell)

    def do_POST(self):
        self.handle_as(self.complete)

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def check_key(self):
        key = self.ways.get("key")
        if key and self.headers.get("Authorization") != "Bearer " + key:
            raise refusal(401, "the key is not valid")

    def tell(self):
        if self.rest in self.ways.get("more", {}):
            self.answer(200, json.dumps(self.ways["more"][self.rest]))
        elif self.rest not in ("/v1/models", "/models"):
            raise Refusal(404, NOT_FOUND)
        else:
            if not self.ways.get("open_models"):
                self.check_key()
            model = {"id": "tea-7b", "object": "model", "owned_by": self.ways.get("owner", "odd")}
            if self.ways.get("vocabulary", True) and self.ways.get("form") != "vllm":
                model["meta"] = self.ways.get("meta", {"n_vocab": 32000})
            if "length" in self.ways:
                model["max_model_len"] = self.ways["length"]
            self.answer(200, json.dumps({"object": "list", "data": [model]}))

    # ---- answers ----

    def complete(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            number = counts[self.name] = counts.get(self.name, 0) + 1
        first, last = self.ways.get("refuses", (0, -1))
        self.check_key()
        if self.rest == "/completions":
            self.complete_natively(body)
            return
        if self.rest == "/v1" + self.ways.get("lacks", "-"):
            raise Refusal(404, NOT_FOUND)
        if first <= (number - 1) % TURN + 1 <= last:
            raise refusal(self.ways["status"], self.ways["words"])
        if "ignore_eos" in body and self.ways.get("ignore_eos") == "refused":
            raise refusal(400, "Unrecognized request argument supplied: ignore_eos")
        if self.ways.get("fault") == "whole":
            answer = chunk(self.rest == "/v1/chat/completions", "tea", "stop")
            self.answer(200, json.dumps(answer))
            return
        self.begin_stream()
        self.stream(body, self.rest == "/v1/chat/completions", number)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def send_event(self, value):
        text = value if isinstance(value, str) else json.dumps(value)
        form = self.ways.get("form")
        if form == "llama":
            text = text if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        if form != "torn":
            self.write(f"data: {text}\n\n".encode())
            return
        whole = f": ping\r\n\r\nevent: message\r\ndata:{text}\r\nid: 1\r\n\r\n".encode()
        for at in range(0, len(whole), 11):
            self.write(whole[at:at + 11])

    def end_stream(self):
        if self.ways.get("form") != "undone":
            self.send_event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def answer_tokens(self, body):
        """How many tokens the answer has."""
        obeys = body.get("ignore_eos") and self.ways.get("ignore_eos") != "ignored"
        tokens = body.get("max_tokens", 16)
        return tokens if obeys else min(tokens, self.ways.get("ends_at", tokens))

    def stream(self, body, chat, number):
        tokens, form, fault = self.answer_tokens(body), self.ways.get("form"), self.ways.get("fault")
        a_piece = self.ways.get("a_piece", 1)
        pieces = (tokens + a_piece - 1) // a_piece - bool(self.ways.get("silent"))
        null = {"usage": None} if form == "vllm" else {}
        usage = {"prompt_tokens": prompt_tokens(body), "completion_tokens": tokens}
        usage["total_tokens"] = sum(usage.values())
        if form == "vllm":
            usage["prompt_tokens_details"] = None
        if chat:
            begin = chunk(chat, "")
            begin["choices"][0]["delta"]["role"] = "assistant"
            self.send_event(begin | null)
        for i in range(pieces // 2 if fault else pieces):
            self.send_event(chunk(chat, " tea") | null)
        if fault == "cut":
            self.close_connection = True
            return
        if fault == "unfinished":       # as HTTP it is complete
            self.wfile.write(b"0\r\n\r\n")
            return
        if fault == "error":
            self.send_event({"error": {"message": "the engine is dead", "code": 500,
                                       "type": "InternalServerError"}})
            self.end_stream()
            return
        if self.ways.get("silent"):
            time.sleep(PAUSE_S)
        told = body.get("stream_options", {}).get("include_usage")
        told = told and self.ways.get("usage", lambda number: True)(number)
        end = chunk(chat, "", "stop" if tokens < body.get("max_tokens", 16) else "length")
        if form == "llama":
            end["timings"] = {"prompt_n": usage["prompt_tokens"], "predicted_n": tokens}
        self.send_event(end | ({"usage": usage} if told and form == "undone" else null))
        if told and form != "undone":
            self.send_event(chunk(chat, "") | {"choices": [], "usage": usage})
        self.end_stream()

    def complete_natively(self, body):
        """As llama-server does at /completions, which is not /v1/completions."""
        self.begin_stream()
        for i in range(4):
            self.send_event({"index": 0, "content": " tea", "tokens": [5], "stop": False,
                             "id_slot": -1, "tokens_predicted": i + 1, "tokens_evaluated": 5})
        self.send_event({"index": 0, "content": "", "tokens": [], "stop": True, "stop_type": "limit",
                         "tokens_predicted": 4, "tokens_evaluated": 5, "truncated": False})
        self.wfile.write(b"0\r\n\r\n")


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass                            # a client that leaves in the middle is no fault


listener = Listener(("127.0.0.1", 0), Server)
print(listener.server_port, flush=True)
listener.serve_forever()
