"""A backend as its developer would write it: the HTTP server of Python, and the verifier of Standard Webhooks."""

import json
import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

from carillon_peer import PATIENCE, await_value


@dataclass
class Call:
    path: str
    headers: dict
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def json(self) -> dict:
        return json.loads(self.body)

    def verify(self, secret: str) -> dict:
        """The body, if the signature is right; raises otherwise."""
        return Webhook(secret).verify(self.body, self.headers)


class Backend:
    """Answers every call with `status`; while `gate` is closed, answers wait. With a certificate and its key it speaks TLS."""

    def __init__(self, certificate=None, key=None):
        self.status = 204
        self.calls: list[Call] = []
        self.gate = threading.Event()
        self.gate.set()
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                backend.calls.append(Call(self.path, headers, body))
                status = backend.status
                backend.gate.wait(PATIENCE * 3)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if context:
            context.load_cert_chain(certificate, key)

        def make(port: int) -> Server:
            server = Server(("127.0.0.1", port), Handler)
            if context:
                server.socket = context.wrap_socket(server.socket, server_side=True)
            return server

        self._make = make
        self.server = self._make(0)
        self.port = self.server.server_port
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self._serve()

    def _serve(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def start(self):
        self.server = self._make(self.port)
        self._serve()

    def await_calls(self, count: int, patience: float = PATIENCE) -> list[Call]:
        await_value(lambda: len(self.calls), lambda it: it >= count, f"{count} calls", patience)
        return list(self.calls)
