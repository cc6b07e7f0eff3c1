"""A relay before a server that loses, delays, repeats and replaces requests, answers and frames.

As a program it prints its address. SIGUSR1 ends the faults, and prints how many there were of each.
"""

import argparse
import collections
import json
import random
import signal
import socket
import threading
import time

# The answer of a proxy or a login page in the server's place: status and body.
REPLACED = [
    (200, b"<html><body>Log in.</body></html>"), (200, b""), (204, b""), (302, b""), (401, b"<html>"), (403, b"<html>"),
    (404, b"<html>"), (410, b""), (511, b"<html>"),
]  # fmt: skip
FAULTS = ["request lost", "request cut", "answer lost", "answer cut", "delayed", "repeated", "replaced", "replaced after"]
SOCKET_FAULTS = ["frame lost", "frame delayed", "frame repeated", "socket cut", "socket replaced"]
LONGEST_DELAY = 1.5
PATIENCE = 40  # seconds that the server may take to answer


class FaultyRelay:
    """Passes requests and WebSockets on; the part `share` of them has a fault. `counts` has the number of each kind."""

    def __init__(self, port: int, seed: int, share: float):
        self.target, self.share = port, share
        self.chance, self.lock = random.Random(seed), threading.Lock()
        self.counts = collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def fault(self, kinds, share=1.0) -> str | None:
        """The fault that the next thing meets, which is counted."""
        with self.lock:
            if self.chance.random() >= self.share * share:
                return None
            kind = self.chance.choice(kinds)
            self.counts[kind] += 1
            return kind

    def number(self, least: float, most: float) -> float:
        with self.lock:
            return self.chance.uniform(least, most)

    def serve(self, client):
        with client:
            try:
                head, body = read_request(client)
                if b"\r\nupgrade: websocket" in head.lower():
                    self.serve_socket(client, head)
                else:
                    self.serve_request(client, head + body)
            except OSError:
                pass

    # Requests

    def serve_request(self, client, request: bytes):
        fault = self.fault(FAULTS)
        if fault == "request lost":
            return
        if fault == "request cut":
            with self.connect() as server:
                server.sendall(request[: int(len(request) * self.number(0, 1))])
                time.sleep(0.05)
            return
        if fault == "replaced":
            return client.sendall(self.replacement())
        if fault == "delayed":
            time.sleep(self.number(0, LONGEST_DELAY))
        answer = self.ask(request)
        if fault == "repeated":
            answer = self.ask(request)
        if fault == "answer lost":
            return
        if fault == "answer cut":
            answer = answer[: int(len(answer) * self.number(0, 1))]
        elif fault == "replaced after":
            answer = self.replacement()
        elif fault == "repeated":
            answer += answer
        client.sendall(answer)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.target), timeout=PATIENCE)

    def ask(self, request: bytes) -> bytes:
        with self.connect() as server:
            server.sendall(request)
            answer = b""
            while data := server.recv(65_536):
                answer += data
        return answer

    def replacement(self) -> bytes:
        with self.lock:
            status, body = self.chance.choice(REPLACED)
        head = f"HTTP/1.1 {status} Replaced\r\nContent-Type: text/html\r\nConnection: close\r\n"
        if status == 302:
            head += "Location: http://login.invalid/\r\n"
        if status != 204:
            head += f"Content-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    # WebSockets

    def serve_socket(self, client, head: bytes):
        if self.fault(["socket replaced"]):
            return client.sendall(self.replacement())
        with self.connect() as server:
            server.sendall(head)
            answer, rest = read_head(server)
            client.sendall(answer)
            server.settimeout(None)
            if not answer.startswith(b"HTTP/1.1 101"):
                return
            back = threading.Thread(target=self.pump, args=(server, client, rest), daemon=True)
            back.start()
            self.pump(client, server, b"")
            back.join()

    def pump(self, source, target, data: bytes):
        """Passes frames on until one side ends, or a fault ends both."""
        try:
            while True:
                frame, data = read_frame(source, data)
                is_whole = frame[0] & 0x80 and frame[0] & 0x0F in (1, 2)
                fault = self.fault(SOCKET_FAULTS[:4], 0.3) if is_whole else None
                if fault == "frame delayed":
                    time.sleep(self.number(0, LONGEST_DELAY))
                if fault == "frame repeated":
                    target.sendall(frame)
                if fault == "socket cut":
                    target.sendall(frame[: int(len(frame) * self.number(0, 1))])
                if fault in ("frame lost", "socket cut"):
                    return
                target.sendall(frame)
        except OSError:
            pass
        finally:
            for side in (source, target):
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def read_more(source, data: bytes) -> bytes:
    more = source.recv(65_536)
    if not more:
        raise ConnectionResetError
    return data + more


def read_head(source) -> tuple[bytes, bytes]:
    """The head of a message with its empty line, and the data read behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        data = read_more(source, data)
    end = data.index(b"\r\n\r\n") + 4
    return data[:end], data[end:]


def read_request(client) -> tuple[bytes, bytes]:
    """The head, which asks to close the connection, and the body as it was sent."""
    head, body = read_head(client)
    lines = [line for line in head.split(b"\r\n") if line]
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
    if b"upgrade" not in fields:
        kept = [line for line in lines if not line.lower().startswith((b"connection:", b"expect:"))]
        head = b"\r\n".join([*kept, b"Connection: close", b"", b""])
    if fields.get(b"expect", b"").lower() == b"100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while not body.endswith(b"0\r\n\r\n"):
            body = read_more(client, body)
    while len(body) < int(fields.get(b"content-length", 0)):
        body = read_more(client, body)
    return head, body


def read_frame(source, data: bytes) -> tuple[bytes, bytes]:
    """A whole frame (RFC 6455 section 5.2), and the data read behind it."""
    while True:
        if len(data) >= 2:
            short = data[1] & 0x7F
            wide = {126: 2, 127: 8}.get(short, 0)
            start = 2 + wide + (4 if data[1] & 0x80 else 0)
            if len(data) >= start:
                end = start + (int.from_bytes(data[2 : 2 + wide], "big") if wide else short)
                if len(data) >= end:
                    return data[:end], data[end:]
        data = read_more(source, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=int, required=True, help="the server's port")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--share", type=float, default=0.3, help="how much meets a fault")
    options = parser.parse_args()
    relay = FaultyRelay(options.target, options.seed, options.share)

    def end_faults(*_):
        relay.share = 0
        print(json.dumps(relay.counts), flush=True)

    signal.signal(signal.SIGUSR1, end_faults)
    print(relay.url, flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
