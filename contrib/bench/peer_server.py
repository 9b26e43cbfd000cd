"""Measures llama-server as bench-serve measures samovard: the same waves of prompts and names of rows."""
import http.client
import json
import random
import socket
import subprocess
import threading
import time

from peer import LEAVINGS, Failed, find, help_of, variants

CLIENTS, SHARED = 8, 2048
SLOT = 2304  # positions: the shared prefix, an own prompt, an answer
IDS = range(256, 956)  # every vocabulary has them
START_S, ANSWER_S = 600, 1800


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A llama-server with eight slots, on a port of its own."""

    def __init__(self, program, flags, model, threads):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-np", str(CLIENTS), "-c",
             str(CLIENTS * SLOT), "-t", str(threads)] + flags,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=LEAVINGS)
        self.random = random.Random(1)

    def __enter__(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                c.request("GET", "/health")
                if c.getresponse().status == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        self.__exit__()
        raise Failed("llama-server did not begin to serve")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def draw(self, count):
        return self.random.choices(IDS, k=count)

    def ask(self, prompt, tokens, times, failures):
        """The times at which the pieces of the answer came, in seconds after the request."""
        began = time.monotonic()
        body = {"prompt": prompt, "n_predict": tokens, "stream": True, "ignore_eos": True, "temperature": 0,
                "cache_prompt": True}
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
            c.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
            answer = c.getresponse()
            for line in answer:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                times.append(time.monotonic() - began)
                told = json.loads(line[6:])
                if told.get("stop") or "error" in told:
                    break
        except (OSError, ValueError, http.client.HTTPException) as problem:
            failures.append(str(problem))
        if len(times) < 2:
            failures.append(f"an answer of {len(times)} pieces")

    def wave(self, prompts, tokens):
        """The times of each prompt, and the seconds that all took."""
        times, failures = [[] for _ in prompts], []
        began = time.monotonic()
        threads = [threading.Thread(target=self.ask, args=(p, tokens, t, failures)) for p, t in zip(prompts, times)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise Failed(f"llama-server: {failures[0]}")
        return times, time.monotonic() - began

    def measure(self):
        figures = {}
        self.wave([self.draw(16) for _ in range(CLIENTS)], 8)

        def first_tokens(times, name, first=None, last=None):
            firsts = sorted(t[0] * 1e3 for t in times)
            if first:
                figures[first] = firsts[0]
            figures[name] = firsts[len(firsts) // 2]
            if last:
                figures[last] = firsts[-1]

        times, _ = self.wave([self.draw(128)], 64)
        figures["one stream"] = 63 / (times[0][-1] - times[0][0])
        first_tokens(times, "one stream, first token")
        times, seconds = self.wave([self.draw(128) for _ in range(CLIENTS)], 64)
        figures["eight streams, over all"] = CLIENTS * 64 / seconds
        first_tokens(times, "eight streams, first token", first="eight streams, the first first token",
                     last="eight streams, the last first token")
        shared = self.draw(SHARED)
        times, _ = self.wave([shared + self.draw(16)], 16)
        first_tokens(times, "2048 to be shared, first token")
        times, _ = self.wave([shared + self.draw(16) for _ in range(CLIENTS)], 16)
        first_tokens(times, "2048 shared by eight, first token",
                     last="2048 shared by eight, the last first token")
        times, _ = self.wave([shared + self.draw(16)], 16)
        first_tokens(times, "2048 shared once more, first token")
        return figures


class PeerServer:
    def __init__(self, prefix, folder, threads):
        self.prefix, self.threads, self.program = prefix, threads, find(folder, "llama-server")
        if not self.program:
            raise Failed(f"{folder} has no llama-server")

    def measure(self, model):
        """As Peer.measure(), but only with flash attention: eight contexts without it take too long."""
        for name, flags in variants(help_of(self.program), flashes=(True,)).items():
            try:
                with Server(self.program, flags, model, self.threads) as server:
                    yield from ((self.prefix + name, row, value) for row, value in server.measure().items())
            except Failed as failed:
                yield self.prefix + name, None, str(failed)
