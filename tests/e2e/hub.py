#!/usr/bin/env python3
"""Imitates the hub of Hugging Face for test-pull.c, with faults.

    hub.py FOLDER

FOLDER/repositories/OWNER/NAME has the files of a repository, and FOLDER/files those of plain URLs.
Files of at least 4096 bytes are in LFS: the listing has their SHA-256, and they are sent by a second
port, to which the first one redirects; smaller ones come from a path that it redirects to, as well.
Prints both ports.  FOLDER/log gets a line for each request:
which port, the path, Range, If-Range, Authorization and the status.

FOLDER/faults is read before each request.  Its lines are words and numbers:

    drop N              ends each file after at most N bytes, at a random place
    cut AT N            ends the first N answers with a file after AT bytes
    ignore-range        sends the whole file although a range is wanted
    etag WORD           weak, none, or another text
    longer N            says that a file has N bytes more than it has
    wrong N             changes a byte of the first N answers with a file
    change N            after N answers with a file, sends another file of the same size
    status CODE N [S]   the first N requests of files get this status, with Retry-After: S
    api CODE WORD       requests of the API get this status and X-Error-Code
    gated               needs the token "secret"
    expired             refuses every token, also for what needs none
    shift N             a range begins N bytes too late
    total N             a range says that the file has N bytes
    416                 each range is refused
    more N              sends N bytes more than there are, in chunks
    page N              lists N entries on a page
    slow MS             waits before each piece of 16 KiB
    etags               each answer with a file has another ETag
    unmarked            a range has no ETag
    short N FROM        files without a length; from answer FROM on they end after N bytes
    gzip                files are compressed, although nothing asks for that
    rate N              the first N requests of files get status 429 with RateLimit
    gated-files         the listing may be read, but files need the token "secret"
    disabled            files get status 403, with a text that turns a terminal red
    names               the listing has files with names of all kinds
    endless             each page of a listing has a next one
    huge                the listing says that files have 2^64 - 1 bytes
    padded              a redirect has an endless body
"""
import gzip
import hashlib
import json
import os
import random
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
LFS_BYTES = 4096
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 16384
lock = threading.Lock()
served, dice = 0, random.Random(os.environ.get("SMV_TEST_SEED"))


def faults():
    try:
        lines = (FOLDER / "faults").read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {line.split()[0]: line.split()[1:] for line in lines if line.strip()}


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def tree(root):
    """The entries of a repository, as /api/models/REPOSITORY/tree has them."""
    entries = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            entries.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": name})
            continue
        data = path.read_bytes()
        entry = {"type": "file", "oid": git_id(data), "size": len(data), "path": name}
        if len(data) >= LFS_BYTES:
            sha256 = hashlib.sha256(data).hexdigest()
            entry["oid"] = git_id(b"pointer " + sha256.encode())
            entry["lfs"] = {"oid": sha256, "size": len(data), "pointerSize": 134}
            entry["xetHash"] = sha256[::-1]
        entries.append(entry)
    return entries


def hostile():
    """Names that lead elsewhere, that are no names, or that a terminal would obey."""
    names = ["../../up.gguf", "/tmp/absolute.gguf", "a/../../up.gguf", "b\\c.gguf", "x" * 300 + ".gguf",
             ".hidden.gguf", "\x1b[31mred.gguf", "\x9b31mred.gguf", "new\nline.gguf", "\u202eturned.gguf",
             "\x7f.gguf"]
    return [{"type": "file", "oid": "0" * 40, "size": 5, "path": name} for name in names]


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def note(self, status):
        with lock, open(FOLDER / "log", "a") as log:
            log.write(f"{self.server.role} {self.path} range={self.headers.get('Range')} "
                      f"if-range={self.headers.get('If-Range')} "
                      f"authorization={self.headers.get('Authorization')} {status}\n")

    def answer(self, status, body=b"", **fields):
        self.note(status)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.faults = faults()
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        may_read = self.headers.get("Authorization") == "Bearer secret"
        if self.server.role == "store":
            self.send_file(FOLDER / path.lstrip("/"))
        elif path.startswith("/files/"):
            self.send_file(FOLDER / path.lstrip("/"))
        elif path.startswith("/api/resolve-cache/models/"):
            owner, name, _, file = path.removeprefix("/api/resolve-cache/models/").split("/", 3)
            self.send_file(FOLDER / "repositories" / owner / name / file, X_Repo_Commit=COMMIT)
        elif ("gated" in self.faults or ("gated-files" in self.faults and "/resolve/" in path)) and not may_read:
            self.answer(401, b"gated", X_Error_Code="GatedRepo", X_Error_Message="access is restricted")
        elif "expired" in self.faults and self.headers.get("Authorization"):
            self.answer(401, b"", X_Error_Message="Invalid credentials in Authorization header")
        elif path.startswith("/api/models/"):
            self.answer_api(path, urllib.parse.parse_qs(query))
        else:
            self.resolve(path)

    def repository(self, name):
        root = FOLDER / "repositories" / name
        if not root.is_dir():
            self.answer(401, b"", X_Error_Code="RepoNotFound", X_Error_Message="Invalid username or password.")
        return root if root.is_dir() else None

    def answer_api(self, path, query):
        found = re.fullmatch(r"/api/models/(.+?)/(revision|tree)/([^/]+)", path)
        if "api" in self.faults:
            status, *code = self.faults["api"]
            self.answer(int(status), b"{}", X_Error_Code=code[0] if code else "")
            return
        root = self.repository(found[1]) if found else None
        if not root:
            return
        if found[3] not in ("main", "v1", "refs/pr/1", COMMIT):
            self.answer(404, b"{}", X_Error_Code="RevisionNotFound", X_Error_Message="Invalid rev id")
        elif found[2] == "revision":
            body = {"id": found[1], "sha": COMMIT, "private": False,
                    "siblings": [{"rfilename": entry["path"]} for entry in tree(root) if entry["type"] == "file"]}
            self.answer(200, json.dumps(body).encode(), Content_Type="application/json")
        else:
            self.answer_tree(path, query, tree(root))

    def answer_tree(self, path, query, entries):
        count = int(self.faults.get("page", [1000])[0])
        begin = int(query.get("cursor", ["0"])[0])
        if query.get("recursive") != ["true"]:
            self.answer(400, b"{}")
            return
        if "names" in self.faults:
            entries = hostile() + entries
        if "huge" in self.faults:
            for entry in entries:
                entry["size"] = entry.get("lfs", {})["size"] = 2 ** 64 - 1
        fields = {"Content_Type": "application/json"}
        if begin + count < len(entries) or "endless" in self.faults:
            fields["Link"] = (f"<https://hub.invalid{path}?recursive=true&cursor={begin + count}>; "
                              'rel="next"')
        self.answer(200, json.dumps(entries[begin:begin + count]).encode(), **fields)

    def resolve(self, path):
        found = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        root = self.repository(found[1]) if found else self.answer(404)
        if not root:
            return
        file = root / found[3]
        if "disabled" in self.faults:
            self.answer(403, b"", X_Error_Message="Access to this resource is \x1b[31mdisabled.")
        elif not file.is_file():
            self.answer(404, b"", X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
        elif file.stat().st_size < LFS_BYTES:
            self.answer(307, b"", X_Repo_Commit=COMMIT, Location="/api/resolve-cache/models/"
                        + urllib.parse.quote(f"{found[1]}/{COMMIT}/{found[3]}") + "?etag=x")
        elif "padded" in self.faults:
            self.answer_endless(file)
        else:
            where = f"http://127.0.0.1:{store.server_port}/{urllib.parse.quote(str(file.relative_to(FOLDER)))}"
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            self.answer(302, b"Found. Redirecting to " + where.encode(), Location=where + "?signature=x",
                        X_Repo_Commit=COMMIT, X_Linked_Size=str(file.stat().st_size), X_Linked_ETag=f'"{digest}"')

    def answer_endless(self, file):
        self.note(302)
        self.close_connection = True
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.1:{store.server_port}/{file.relative_to(FOLDER)}")
        self.end_headers()
        while True:                     # until the client leaves
            self.wfile.write(b"x" * PIECE)

    # ---- files ----

    def send_file(self, file, **fields):
        global served
        if not file.is_file():
            self.answer(404)
            return
        with lock:
            served += 1
            turn = served
        if "status" in self.faults and turn <= int(self.faults["status"][1]):
            status, _, *after = self.faults["status"]
            self.answer(int(status), b"", **({"Retry_After": after[0]} if after else {}))
            return
        if "rate" in self.faults and turn <= int(self.faults["rate"][0]):
            self.answer(429, b"", RateLimit='"resolvers";r=0;t=1')
            return
        data = file.read_bytes()
        if "change" in self.faults and turn > int(self.faults["change"][0]):
            data = data[::-1]
        self.send_part(data, turn, fields)

    def wanted(self, data, etag):
        """The first byte that is wanted, and the one behind the last."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        condition = self.headers.get("If-Range")
        if not found or "ignore-range" in self.faults or (condition and condition != etag):
            return None
        return int(found[1]), min(int(found[2]) + 1 if found[2] else len(data), len(data))

    def send_part(self, data, turn, fields):
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        if "etag" in self.faults:
            etag = {"weak": "W/" + etag, "none": None}.get(self.faults["etag"][0], self.faults["etag"][0])
        if "etags" in self.faults:
            etag = f'"{turn}"'
        wanted, status, total = self.wanted(data, etag), 200, len(data)
        begin, end = wanted or (0, len(data))
        if wanted and (begin >= len(data) or "416" in self.faults):
            self.answer(416, b"no", Content_Range=f"bytes */{len(data)}")
            return
        body = data[begin:end]
        if wanted:
            status = 206
            begin += int(self.faults.get("shift", [0])[0])
            total = int(self.faults.get("total", [total])[0])
            fields["Content_Range"] = f"bytes {begin}-{end - 1}/{total}"
        if "wrong" in self.faults and turn <= int(self.faults["wrong"][0]) and body:
            body = body[:-1] + bytes([body[-1] ^ 1])
        if "gzip" in self.faults:
            body = gzip.compress(body)
            fields["Content_Encoding"] = "gzip"
        if etag and not (wanted and "unmarked" in self.faults):
            fields["ETag"] = etag
        self.send_body(status, body, turn, fields)

    def send_body(self, status, body, turn, fields):
        self.note(status)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        chunked = "more" in self.faults or "short" in self.faults
        if "short" in self.faults and turn >= int(self.faults["short"][1]):
            body = body[:int(self.faults["short"][0])]
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if "more" in self.faults:
            body += b"x" * int(self.faults["more"][0])
        if not chunked:
            self.send_header("Content-Length", str(len(body) + int(self.faults.get("longer", [0])[0])))
        self.end_headers()
        if self.command == "HEAD":
            return
        limit = len(body)
        if "drop" in self.faults:
            limit = min(limit, dice.randrange(int(self.faults["drop"][0])))
        if "cut" in self.faults and turn <= int(self.faults["cut"][1]):
            limit = min(limit, int(self.faults["cut"][0]))
        for at in range(0, limit, PIECE):
            piece = body[at:min(at + PIECE, limit)]
            time.sleep(int(self.faults.get("slow", [0])[0]) / 1000)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked and limit == len(body):
            self.wfile.write(b"0\r\n\r\n")
        if limit < len(body) or "longer" in self.faults:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, role):
        super().__init__(("127.0.0.1", 0), Hub)
        self.role = role

    def handle_error(self, request, client_address):
        pass                            # a client that leaves in the middle is no fault


hub, store = Server("hub"), Server("store")
threading.Thread(target=store.serve_forever, daemon=True).start()
print(hub.server_port, store.server_port, flush=True)
hub.serve_forever()
