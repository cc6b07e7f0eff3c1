"""A provider with independent libraries: HTTP/2 is `h2`, tokens are `PyJWT`; and the simulator as a process."""

import json
import os
import socket as sockets
import ssl
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import jwt
import requests

from carillon_peer import PATIENCE

# h2 takes a GOAWAY for the end of everything; a provider must still read the answers that were promised.
OPEN = h2.connection.ConnectionState.CLIENT_OPEN
h2.connection.H2ConnectionStateMachine._transitions[(OPEN, h2.connection.ConnectionInputs.RECV_GOAWAY)] = (None, OPEN)

TOPIC = "com.example.app"
DEVICE = "00ff00ff00ff00ff00ff00ff00ff00ff"
BODY = b'{"aps":{"alert":"hello"}}'


class Simulator:
    """`carillon apns simulate` on free ports."""

    def __init__(self, executable: Path, directory: Path, *options):
        directory.mkdir(parents=True, exist_ok=True)
        self.data = directory / "data"
        self.plain = "--plain" in options
        places = ["--listen", "127.0.0.1:0", "--manage", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [executable, "apns", "simulate", "--data", self.data, "--json", *places, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ,
        )
        self.ports = {}
        while True:
            line = self.process.stdout.readline()
            assert line, f"the simulator ended with {self.process.wait(PATIENCE)}"
            event = json.loads(line)
            if event["event"] == "ready":
                break
            place = event["service"] if event.get("environment") != "production" else f"production {event['service']}"
            self.ports[place] = event["port"]
        self.key_id, self.team = event["keyID"], event["teamID"]
        self.key = (self.data / f"AuthKey_{self.key_id}.p8").read_text()
        self.url = f"http://127.0.0.1:{self.ports['control']}"
        self.connections = []

    def end(self):
        for connection in self.connections:
            connection.close()
        self.process.terminate()
        try:
            assert self.process.wait(PATIENCE) == 0
        finally:
            self.process.kill()
            self.process.stdout.close()

    def api(self, method: str, path: str, body=None, status=(200, 201, 204)):
        answer = requests.request(method, f"{self.url}/api/{path}", json=body, timeout=PATIENCE)
        assert answer.status_code in status, f"{answer.status_code} {answer.text}"
        return answer.json() if answer.text else None

    def add_device(self, token: str = DEVICE, topic: str = TOPIC, **more):
        self.api("PUT", f"devices/{token}", {"topic": topic, **more})

    def fault(self, fault: str, **more):
        self.api("POST", "faults", {"fault": fault, **more})

    def conditions(self, **conditions):
        self.api("PATCH", "conditions", conditions)

    def token(self, age: int = 0, key: str | None = None, **claims) -> str:
        now = self.api("GET", "status")["now"] // 1000
        claims = {"iss": self.team, "iat": now - age, **claims}
        return jwt.encode(claims, key or self.key, algorithm="ES256", headers={"kid": self.key_id})

    def connect(self, service: str = "push", **options) -> "Connection":
        connection = Connection(self, self.ports[service], **options)
        self.connections.append(connection)
        return connection

    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.data / "authority.pem")
        context.set_alpn_protocols(["h2"])
        return context


@dataclass
class Answer:
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[":status"])

    @property
    def reason(self) -> str | None:
        return json.loads(self.body)["reason"] if self.body else None


class Connection:
    """One HTTP/2 connection; a thread reads, and callers wait."""

    def __init__(self, simulator: Simulator, port: int, certificate: str | None = None, small_window: bool = False):
        self.simulator = simulator
        self.socket = sockets.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        if not simulator.plain:
            context = simulator.trust()
            if certificate:
                context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.settimeout(0.02)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        if small_window:
            self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1000})
        self.h2.initiate_connection()
        self.answers: dict[int, Answer] = {}
        self.limits: list[int] = []
        self.resets: list[tuple[int, int]] = []
        self.goaway = None
        self.pongs = 0
        self.is_over = False
        self.authorization = "bearer " + simulator.token()
        self.flush()
        self.await_that(lambda: self.limits or self.is_over, "the first SETTINGS")

    def close(self):
        self.socket.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.settimeout(PATIENCE)
            self.socket.sendall(data)
            self.socket.settimeout(0.02)

    def pump(self):
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            return
        except (ConnectionError, ssl.SSLError, OSError):
            data = b""
        if not data:
            self.is_over = True
            return
        for event in self.h2.receive_data(data):
            self.happened(event)
        try:
            self.flush()
        except OSError:
            self.is_over = True

    def happened(self, event):
        match event:
            case h2.events.RemoteSettingsChanged():
                changed = event.changed_settings.get(h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS)
                if changed:
                    self.limits.append(changed.new_value)
            case h2.events.ResponseReceived():
                self.answers[event.stream_id].headers = dict(event.headers)
            case h2.events.DataReceived():
                self.answers[event.stream_id].body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                self.answers[event.stream_id].ended = True
            case h2.events.StreamReset():
                self.resets.append((event.stream_id, event.error_code))
                self.answers[event.stream_id].reset = event.error_code
            case h2.events.ConnectionTerminated():
                self.goaway = event
            case h2.events.PingAckReceived():
                self.pongs += 1

    def await_that(self, accept, what: str, patience: float = PATIENCE):
        deadline = time.monotonic() + patience
        while not accept():
            assert time.monotonic() < deadline, f"{what} did not come"
            assert not self.is_over or accept(), f"the connection ended before {what}"
            self.pump()

    def begin(self, token: str = DEVICE, body: bytes = BODY, method="POST", path=None, ends=True, **fields) -> int:
        """Sends a request, as far as the windows allow, and returns its stream."""
        headers = {
            ":method": method,
            ":scheme": "http" if self.simulator.plain else "https",
            ":authority": "localhost",
            ":path": path or f"/3/device/{token}",
            "authorization": self.authorization,
            "apns-topic": TOPIC,
            "apns-push-type": "alert",
        }
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.h2.send_headers(
            stream, [(name, value) for name, value in headers.items() if value is not None], end_stream=ends and not body
        )
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
            if room == 0:
                self.flush()
                self.await_that(lambda: self.h2.local_flow_control_window(stream) > 0, "room in the window")
                continue
            self.h2.send_data(stream, body[:room], end_stream=ends and room == len(body))
            body = body[room:]
        self.flush()
        return stream

    def answer(self, stream: int, patience: float = PATIENCE) -> Answer:
        answer = self.answers[stream]
        self.await_that(lambda: answer.ended or answer.reset is not None, f"the answer on {stream}", patience)
        return answer

    def push(self, token: str = DEVICE, **options) -> Answer:
        return self.answer(self.begin(token, **options))

    def settle(self):
        """Returns when the simulator has read all that was sent."""
        before = self.pongs
        self.h2.ping(b"12345678")
        self.flush()
        self.await_that(lambda: self.pongs > before, "the answer to a PING")

    def await_end(self):
        self.await_that(lambda: self.is_over, "the end of the connection")
