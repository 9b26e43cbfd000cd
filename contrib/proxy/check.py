"""Do answers of samovar-http pass nginx, Caddy and HAProxy as they are: piece by piece, with pings?

    check.py BUILD [silence]

Called by `check`.  `silence` takes 130 s: the daemon is stopped for so long before its first token,
behind an nginx that ends an upstream after its default of 60 s without a byte.  One samovar-http
sends pings; one does not, and shows that nginx would cut the stream.
"""
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "contrib" / "clients"))

from raw import Server                             # noqa: E402
from run import raise_loopback                     # noqa: E402
from servers import Pair, free_port, until         # noqa: E402
from desync import ROWS                            # noqa: E402
from tap import Tap                                # noqa: E402

PAGE = (ROOT / "docs" / "guide" / "http-proxy.md").read_text()
NAME = "chat.example"
LARGE = 3 << 20                                    # more than a proxy takes by itself
SILENCE = 130                                      # seconds
READ_TIMEOUT = "                proxy_read_timeout 1h;          # an answer that is not streamed has no pings\n"
ENDLESS = {"prompt": "Once", "max_tokens": 1 << 20, "ignore_eos": True, "stream": True}


class TlsConnection(http.client.HTTPSConnection):
    """To a name that no server knows."""

    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), self.timeout), server_hostname=NAME)


class Proxied(Server):
    """The bridge behind a proxy."""

    def __init__(self, port, key, authority):
        super().__init__(port, key, NAME)
        self.trusted = ssl.create_default_context(cafile=authority)

    def open(self, method, path, body=None, headers=None, timeout=30):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = TlsConnection(NAME, self.port, timeout=timeout, context=self.trusted)
        connection.request(method, path, body, {**self._headers(headers, body), "Host": NAME})
        return connection, connection.getresponse()


class Proxy:
    def __init__(self, folder, pair):
        self.folder, self.port, self.tap = folder, free_port(), Tap(pair.port)
        self.log = open(folder / "proxy.log", "wb")
        self.program = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log, cwd=folder,
                                        env={"HOME": str(folder), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})

    def configured(self, name, changes):
        text = (HERE / name).read_text()
        for old, new in {"127.0.0.1:7266": "127.0.0.1:%d" % self.tap.port, **changes}.items():
            assert old in text, old
            text = text.replace(old, str(new))
        return text

    def serves(self):
        try:
            return Proxied(self.port, None, self.authority()).get("/health", timeout=5).status == 200
        except (OSError, ssl.SSLError):
            return False

    def end(self):
        self.program.terminate()
        self.program.wait()
        self.log.close()
        self.tap.end()

    def certificate(self):
        """Of its own authority: cert.pem and key.pem."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem",
                        "-subj", "/CN=" + NAME, "-addext", "subjectAltName=DNS:" + NAME], cwd=self.folder, check=True, capture_output=True)


class Nginx(Proxy):
    name = "nginx.conf"
    more = {}

    def command(self):
        self.certificate()
        site = self.configured("nginx.conf", {**self.more, "443 ssl": "127.0.0.1:%d ssl" % self.port, "/etc/ssl/certs/chat.example.pem": self.folder / "cert.pem",
                                              "/etc/ssl/private/chat.example.key": self.folder / "key.pem"})
        places = "".join("%s_temp_path %s/%s;\n" % (kind, self.folder, kind) for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text("daemon off; user root; pid %s/pid; error_log stderr; events {}\nhttp { access_log off;\n%s%s}\n" % (
            self.folder, places, site))
        return ["nginx", "-c", self.folder / "nginx.conf", "-e", "stderr"]

    def authority(self):
        return self.folder / "cert.pem"


class ImpatientNginx(Nginx):
    more = {READ_TIMEOUT: ""}


class Caddy(Proxy):
    name = "Caddyfile"

    def command(self):
        site = self.configured("Caddyfile", {"chat.example {": "chat.example:%d {\n\ttls internal" % self.port})
        (self.folder / "Caddyfile").write_text(
            "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system %s/data\n}\n%s" % (self.folder, site))
        return ["caddy", "run", "--config", self.folder / "Caddyfile", "--adapter", "caddyfile"]

    def authority(self):
        path = self.folder / "data" / "pki" / "authorities" / "local" / "root.crt"
        if not path.exists():
            raise OSError("there is no certificate yet")
        return path


class HAProxy(Proxy):
    name = "haproxy.cfg"

    def command(self):
        self.certificate()
        (self.folder / "both.pem").write_text((self.folder / "cert.pem").read_text() + (self.folder / "key.pem").read_text())
        (self.folder / "haproxy.cfg").write_text(self.configured("haproxy.cfg", {
            "bind :443": "bind 127.0.0.1:%d" % self.port, "/etc/ssl/private/chat.example.pem": self.folder / "both.pem"}))
        return ["haproxy", "-db", "-f", "haproxy.cfg"]

    def authority(self):
        return self.folder / "cert.pem"


# ---- the checks

def check_the_page_shows_the_configuration(proxy, server, pair):
    assert "\n".join((HERE / proxy.name).read_text().splitlines()[1:]) in PAGE, proxy.name


def check_a_key_passes_in_either_header(proxy, server, pair):
    body = {"prompt": "Once", "max_tokens": 2}
    for headers, status in (({}, 200), ({"Authorization": None, "x-api-key": pair.key}, 200), ({"Authorization": None}, 401),
                            ({"Authorization": "Bearer wrong"}, 401)):
        assert server.post("/v1/completions", body, headers=headers).status == status, (headers, status)


def begin_endless_stream(server):
    connection, response = server.open("POST", "/v1/completions", ENDLESS)
    assert response.status == 200 and response.getheader("content-type").startswith("text/event-stream"), response.headers
    return connection, response


def until_line(response, start):
    while not (line := response.readline()).startswith(start):
        assert line, "the stream has ended"


def leave(pair, connection, response):
    """The bridge must notice it through the proxy."""
    assert pair.alive() == 1
    response.close()
    connection.close()
    pair.until_idle()


def check_pieces_come_before_the_end_and_a_client_that_leaves_is_noticed(proxy, server, pair):
    connection, response = begin_endless_stream(server)
    for _ in range(3):
        until_line(response, b"data: {")
    leave(pair, connection, response)


def check_pings_come_while_the_daemon_is_silent(proxy, server, pair):
    connection, response = begin_endless_stream(server)
    until_line(response, b"data: {")
    pair.pause("daemon")
    try:
        until_line(response, b": ping")
    finally:
        pair.go_on("daemon")
    leave(pair, connection, response)


def check_a_large_file_passes(proxy, server, pair):
    form = (b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name="file"; '
            b'filename="a.jsonl"\r\n\r\n' + b"x" * LARGE + b"\r\n--b--\r\n")
    answer = server.ask("POST", "/v1/files", form, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status == 200 and answer.json()["bytes"] == LARGE, answer


def check_a_page_of_the_site_may_ask(proxy, server, pair):
    answer = server.ask("GET", "/v1/models", headers={"Origin": "https://" + NAME})
    assert answer.status == 200 and answer.header("access-control-allow-origin") == "https://" + NAME, answer
    assert server.ask("GET", "/v1/models", headers={"Origin": "https://evil.test"}).status == 403


def send_raw(server, data):
    """What the proxy answers to these bytes, until it is silent for a moment or ends the connection."""
    plain = socket.create_connection(("127.0.0.1", server.port), 30)
    said = b""
    with server.trusted.wrap_socket(plain, server_hostname=NAME) as connection:
        connection.sendall(data)
        connection.settimeout(0.4)
        try:
            while piece := connection.recv(65536):
                said += piece
        except OSError:
            pass
    return said


def hidden_request(server):
    return b"GET /v1/models?hidden HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n" % (NAME.encode(), server.key.encode())


def check_no_request_hides_in_another(proxy, server, pair):
    """
    samovar-http sees no more requests than the proxy answers.  A proxy may read two requests where others read one; then it
    answers both.  The next clients get their own answers.
    """
    wrong, hidden = [], hidden_request(server)
    for name, request in ROWS.items():
        before = proxy.tap.answers
        said = send_raw(server, request(hidden))
        for path, word in (("/health", b'"status"'), ("/v1/models/scripted", b'"id"')):
            answer = server.get(path)
            if answer.status != 200 or word not in answer.body:
                wrong.append("%s: the next client got %r" % (name, answer))
        seen, answered = proxy.tap.answers - before - 2, len(re.findall(rb"HTTP/1\.[01] [2-5]\d\d ", said))
        if seen > answered:
            wrong.append("%s: samovar-http saw %d requests, and the proxy answered %d: %r" % (name, seen, answered, said[:200]))
    assert not wrong, "\n".join(wrong)


def check_two_requests_in_a_row_are_counted(proxy, server, pair):
    """Whether the check above can see a second request."""
    before, hidden = proxy.tap.answers, hidden_request(server)
    said = send_raw(server, hidden + hidden)
    assert said.count(b"HTTP/1.1 200") == 2 and proxy.tap.answers - before == 2, (proxy.tap.answers - before, said)


def run_checks(kind, pair):
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="samovar-proxy-") as folder:
        proxy = kind(Path(folder), pair)
        try:
            until("%s serves" % kind.__name__, proxy.serves, 30, [proxy.program])
            server = Proxied(proxy.port, pair.key, proxy.authority())
            for name, check in [(n, c) for n, c in globals().items() if n.startswith("check_")]:
                try:
                    check(proxy, server, pair)
                    passed += 1
                except Exception:
                    failed += 1
                    print("NOT %s: %s\n%s" % (kind.__name__, name, traceback.format_exc()))
        except AssertionError:
            failed += 1
            print("NOT %s: %s\n%s" % (kind.__name__, traceback.format_exc(), (Path(folder) / "proxy.log").read_text()[-2000:]))
        finally:
            proxy.end()
    return passed, failed


# ---- a long silence, by hand


def silent_stream(build, ping_ms, found):
    """Puts into `found` what a client got of a stream that is silent for SILENCE seconds before its first token."""
    pair = Pair(build, "scripted", bridge=["--allow-hosts", NAME, "--ping-ms", ping_ms])
    with tempfile.TemporaryDirectory(prefix="samovar-proxy-") as folder:
        proxy = ImpatientNginx(Path(folder), pair)
        try:
            until("nginx serves", proxy.serves, 30, [proxy.program])
            server = Proxied(proxy.port, pair.key, proxy.authority())
            # The headers come when the request is accepted; its prompt takes longer.
            connection, response = server.open("POST", "/v1/completions", {**ENDLESS, "prompt": "word " * 10000}, timeout=2 * SILENCE)
            pair.pause("daemon")
            began = time.monotonic()
            threading.Timer(SILENCE, pair.go_on, ["daemon"]).start()
            pings = 0
            while (line := response.readline()) and not line.startswith(b"data: {"):
                pings += line.startswith(b": ping")
            found[ping_ms] = pings, bool(line), time.monotonic() - began
            time.sleep(max(0, SILENCE + 1 - found[ping_ms][2]))
        finally:
            proxy.end()
            pair.end()


def outlast_silence(build):
    found, pings, none = {}, "10000", "3600000"
    both = [threading.Thread(target=silent_stream, args=(build, ping_ms, found)) for ping_ms in (pings, none)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    right = {pings: True, none: False}
    for ping_ms, (count, came, seconds) in found.items():
        print("ping_ms %s: %d pings; %s after %.1f s" % (ping_ms, count, "the first token" if came else "nginx ended the stream", seconds))
    passed = sum(ping_ms in found and found[ping_ms][1] == came for ping_ms, came in right.items())
    print("%d passed, %d failed, 0 skipped" % (passed, len(right) - passed))
    return passed < len(right)


def main():
    raise_loopback()
    if sys.argv[2:] == ["silence"]:
        return outlast_silence(sys.argv[1])
    pair = Pair(sys.argv[1], "scripted", bridge=["--allow-hosts", NAME, "--ping-ms", "1000", "--queue-bytes", "1G"])
    try:
        results = [run_checks(kind, pair) for kind in (Nginx, Caddy, HAProxy)]
    finally:
        pair.end()
    passed, failed = (sum(column) for column in zip(*results))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
