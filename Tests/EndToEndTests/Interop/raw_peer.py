"""Sockets without a library between: malformed HTTP and malformed WebSocket frames."""

import base64
import json
import os
import socket
import struct
import time

from carillon_peer import PATIENCE, Server

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


class RawHTTP:
    """A TCP connection to the server; `read_answer` understands just enough of HTTP/1.1."""

    def __init__(self, server: Server, patience: float = PATIENCE):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=patience)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes | str):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def read_answer(self) -> tuple[int, dict[str, str], bytes]:
        while b"\r\n\r\n" not in self.buffer:
            self._fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        while len(self.buffer) < int(fields.get("content-length", 0)):
            self._fill()
        length = int(fields.get("content-length", 0))
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(lines[0].split(" ")[1]), fields, body

    def read_problem(self) -> tuple[int, dict]:
        status, fields, body = self.read_answer()
        assert fields.get("content-type", "").startswith("application/problem+json"), (status, fields, body)
        problem = json.loads(body)
        assert problem["status"] == status and problem["code"] and problem["detail"], problem
        return status, problem

    def read_to_end(self) -> bytes:
        """Everything until the server closes; a reset counts as closing."""
        data, self.buffer = self.buffer, b""
        while True:
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def _fill(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(f"closed by the server after {self.buffer!r}")
        self.buffer += piece


class RawWebSocket:
    """A WebSocket connection on which every bit of a frame is the test's own."""

    def __init__(self, server: Server, extensions: str | None = None):
        self.http = RawHTTP(server)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            "GET / HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        if extensions:
            lines.append(f"Sec-WebSocket-Extensions: {extensions}")
        self.http.send("\r\n".join(lines) + "\r\n\r\n")
        status, self.handshake, _ = self.http.read_answer()
        assert status == 101, (status, self.handshake)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.socket.close()

    def send_frame(self, opcode: int, payload: bytes = b"", *, fin=True, rsv=0, masked=True, length=None):
        """`length` is the length that the frame claims, when it lies."""
        claimed = len(payload) if length is None else length
        head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
        mask_bit = 0x80 if masked else 0
        if claimed < 126:
            head += bytes([mask_bit | claimed])
        elif claimed < 65536:
            head += bytes([mask_bit | 126]) + struct.pack("!H", claimed)
        else:
            head += bytes([mask_bit | 127]) + struct.pack("!Q", claimed)
        if masked:
            mask = os.urandom(4)
            repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
            payload = (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(len(payload))
            head += mask
        self.http.send(head + payload)

    def send_text(self, text: str):
        self.send_frame(TEXT, text.encode())

    def hello(self) -> dict:
        self.send_text(json.dumps({"messageType": "hello", "use_webpush": True}))
        opcode, payload = self.read_frame()
        assert opcode == TEXT
        return json.loads(payload)

    def read_frame(self) -> tuple[int, bytes]:
        first, second = self._take(2)
        assert not second & 0x80, "a server's frames are never masked"
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._take(8))
        return first & 0x0F, self._take(length)

    def close_code(self, patience: float = PATIENCE) -> int:
        """Waits for a close frame and then for the end of the connection."""
        deadline = time.monotonic() + patience
        while True:
            self.http.socket.settimeout(max(0.1, deadline - time.monotonic()))
            opcode, payload = self.read_frame()
            if opcode == CLOSE:
                break
        (code,) = struct.unpack("!H", payload[:2])
        payload[2:].decode("utf-8")
        try:
            self.send_frame(CLOSE, payload[:2])
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.http.read_to_end()
        return code

    def _take(self, count: int) -> bytes:
        while len(self.http.buffer) < count:
            self.http._fill()
        taken, self.http.buffer = self.http.buffer[:count], self.http.buffer[count:]
        return taken
