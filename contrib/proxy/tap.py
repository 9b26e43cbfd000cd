"""A plain relay in front of samovar-http, which counts the answers: one for each request that it saw."""
import socket
import threading

ANSWER = b"\r\nx-request-id: "                     # each answer has it once, also a refusal


class Tap:
    def __init__(self, port):
        self.behind, self.answers, self.lock = port, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                ours, _ = self.listener.accept()
            except OSError:
                return
            try:
                theirs = socket.create_connection(("127.0.0.1", self.behind))
            except OSError:
                ours.close()
                continue
            threading.Thread(target=self._pass, args=(ours, theirs, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(theirs, ours, True), daemon=True).start()

    def _pass(self, source, target, counts):
        """Until either side ends; then both are at their end, as if there were one connection."""
        tail = b""
        try:
            while piece := source.recv(65536):
                if counts:
                    found = (tail + piece).count(ANSWER)
                    tail = (tail + piece)[-(len(ANSWER) - 1):]
                    with self.lock:
                        self.answers += found
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
