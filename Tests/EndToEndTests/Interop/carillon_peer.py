"""The common parts of the interop tests: the server as a process, a device, a socket, a channel.

Nothing here is the project's own code: HTTP is `requests`, WebSocket is `websockets`.
"""

import base64
import itertools
import json
import os
import signal
import socket as sockets
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as connect_websocket

from log_secrets import LEDGER

PATIENCE = 30  # seconds that any single awaited event may take on a busy machine
APP = "com.example.app"
# The variables with which a server is started: it refuses unknown ones.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CARILLON_")}
# The option of `serve` for the number of homes.
HOMES = ["--homes", os.environ["CARILLON_TEST_HOMES"]] if "CARILLON_TEST_HOMES" in os.environ else []


_ports = itertools.count(os.getpid() * 997)


def free_port() -> int:
    """A port that no process has, and that no other process of these tests is about to use.

    It lies below those that the system gives to whoever connects: a server keeps its port while it is stopped.
    """
    while True:
        port = 10_000 + next(_ports) % 22_000
        with sockets.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def encode64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def new_channel_id() -> str:
    return str(uuid.uuid4())


def await_value(ask, accept, what: str, patience: float = PATIENCE):
    """Asks until the answer is acceptable: for truths that only a question can reveal."""
    deadline = time.monotonic() + patience
    while True:
        value = ask()
        if accept(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: still {value!r} after {patience} s")
        time.sleep(0.02)


def in_parallel(jobs: list, patience: float = PATIENCE * 3) -> list:
    """Runs the callables at the same moment and returns their results in order."""
    results: list = [None] * len(jobs)
    gate = threading.Barrier(len(jobs))

    def run(index):
        gate.wait()
        results[index] = jobs[index]()

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
    return results


def assert_problem(answer, status, code=None):
    """The answer is a refusal as Carillon promises them: a problem document with a stable code."""
    statuses = (status,) if isinstance(status, int) else status
    assert answer.status_code in statuses, f"{answer.status_code} {dict(answer.headers)} {answer.text}"
    assert answer.headers["Content-Type"].split(";")[0] == "application/problem+json", answer.headers
    problem = answer.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys(), problem
    assert problem["status"] == answer.status_code
    if code is not None:
        assert problem["code"] == code, problem
    return problem


class Server:
    """A carillon process with a data directory and a port that outlive it."""

    def __init__(self, executable: Path, directory: Path, settings: dict | None = None):
        self.executable = executable
        self.data = directory / "data"
        self.log = directory / "server.log"
        self.settings = {name: str(value) for name, value in (settings or {}).items()}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.public_url = self.url
        self.process: subprocess.Popen | None = None
        directory.mkdir(parents=True, exist_ok=True)
        LEDGER.follow(self.log)

    def command(self, *arguments) -> str:
        """Runs `carillon …` on the data directory, while no server uses it."""
        done = subprocess.run(
            [self.executable, *arguments, "--data", self.data, "--json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE * 3,
            env=ENVIRONMENT,
        )
        assert done.returncode == 0, done.stderr
        LEDGER.note_body(done.stdout)
        return done.stdout

    def prepare(self):
        self.command("apps", "create", APP, "--init")
        self.admin_key = json.loads(self.command("keys", "create", "--role", "admin"))["secret"]
        self.sender_key = json.loads(self.command("keys", "create", "--role", "sender", "--app", APP))["secret"]
        self.client_key = json.loads(self.command("keys", "create", "--role", "client", "--app", APP))["secret"]

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self.executable,
                    "serve",
                    "--data",
                    self.data,
                    "--listen",
                    f"127.0.0.1:{self.port}",
                    "--public-url",
                    self.public_url,
                    "--anonymous-devices",
                    *HOMES,
                ],
                stdout=log,
                stderr=log,
                env=ENVIRONMENT | self.settings,
            )
        await_value(self.is_ready, bool, "ready", PATIENCE * 3)
        key_file = Path(self.settings.get("CARILLON_KEY_FILE", "none"))
        if key_file.is_file():
            LEDGER.note(key_file.read_text())

    def is_ready(self) -> bool:
        assert self.process.poll() is None, (
            f"the server ended with {self.process.returncode}: {self.log.read_text()}"
        )
        try:
            return requests.get(self.url + "/health/ready", timeout=PATIENCE).status_code == 200
        except requests.ConnectionError:
            return False

    def http_connections(self) -> int:
        """How many connections the system has open at the server's port."""
        port = f":{self.port:04X}"
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(1 for line in lines if line[1].endswith(port) and line[3] == "01")

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE * 2)

    def restart(self):
        assert self.stop() == 0
        self.start()

    def end(self):
        """Ends all processes, also after a failed test."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE * 2)
            except subprocess.TimeoutExpired:
                self.kill()
        LEDGER.keep(self.log)

    def request(self, method: str, path: str, key: str | None = None, **options) -> requests.Response:
        headers = dict(options.pop("headers", None) or {})
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        url = path if path.startswith("http") else self.url + path
        return requests.request(method, url, headers=headers, timeout=options.pop("timeout", PATIENCE), **options)

    def admin(self, method: str, path: str, body=None) -> requests.Response:
        return self.request(method, path, key=self.admin_key, json=body)

    def register_device(self, app: str = APP, key: str | None = None) -> "Device":
        answer = self.request("POST", "/v1/devices", key=key or self.client_key, json={"app": app})
        assert answer.status_code == 201, answer.text
        made = answer.json()
        return Device(self, made["id"], made["credential"], made["socket"])

    def devices_of(self, app: str) -> list[str]:
        """The ids of all devices of the app, page by page."""
        found, query = [], ""
        while True:
            page = self.admin("GET", f"/v1/apps/{app}/devices{query}").json()
            found += [device["id"] for device in page["devices"]]
            if not page.get("next"):
                return found
            query = "?after=" + page["next"]

    def connect(self, **options) -> "Socket":
        """A socket that has sent nothing yet."""
        return Socket(self, **options)

    def browser(self, uaid: str | None = None) -> "Socket":
        """A socket of an anonymous device, after its hello."""
        socket = self.connect()
        socket.hello(uaid=uaid)
        return socket

    def outcome(self, location: str) -> dict:
        answer = self.request("GET", location)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def await_outcome(self, location: str) -> dict:
        return await_value(
            lambda: self.outcome(location), lambda it: it["state"] == "final", f"outcome of {location}"
        )


@dataclass
class Channel:
    """An address to which senders post."""

    server: Server
    id: str
    endpoint: str

    def post(
        self, body: bytes = b"", *, ttl="60", encoding="aes128gcm", headers=None, **options
    ) -> requests.Response:
        fields = dict(headers or {})
        if ttl is not None:
            fields.setdefault("TTL", str(ttl))
        if body and encoding is not None:
            fields.setdefault("Content-Encoding", encoding)
        return self.server.request("POST", self.endpoint, data=body, headers=fields, **options)

    def send(self, body: bytes = b"", **options) -> "Sent":
        """Posts a message that must be accepted."""
        answer = self.post(body, **options)
        assert answer.status_code == 201, f"{answer.status_code} {answer.text}"
        return Sent(self.server, answer.headers["Location"], answer.headers.get("Carillon-Outcome"))


@dataclass
class Sent:
    server: Server
    location: str
    outcome_header: str | None

    @property
    def id(self) -> str:
        return self.location.rsplit("/", 1)[1]

    def status(self) -> dict:
        return self.server.outcome(self.location)

    def final(self) -> dict:
        return self.server.await_outcome(self.location)


@dataclass
class Device:
    """A registered install of an app."""

    server: Server
    id: str
    credential: str
    socket_url: str

    def request(self, method: str, path: str, body=None, **options) -> requests.Response:
        return self.server.request(method, path, key=self.credential, json=body, **options)

    def open_channel(self, channel_id: str | None = None, **fields) -> Channel:
        channel_id = channel_id or new_channel_id()
        answer = self.request("POST", "/v1/device/channels", {"channelID": channel_id, **fields})
        assert answer.status_code == 201, answer.text
        return Channel(self.server, channel_id, answer.json()["endpoint"])

    def connect(self) -> "Socket":
        """A socket of a Carillon client, after its hello."""
        socket = self.server.connect()
        socket.hello(carillon=1, device=self.id, credential=self.credential)
        return socket

    def inbox(self, wait=0, max=100, **options) -> dict:
        answer = self.request("GET", f"/v1/inbox?wait={wait}&max={max}", timeout=wait + PATIENCE, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def results(self, *results: dict) -> requests.Response:
        return self.request("POST", "/v1/inbox/results", {"results": list(results)})


class Socket:
    """A WebSocket of the autopush protocol, one JSON frame at a time."""

    def __init__(self, server: Server, **options):
        self.server = server
        self.last_text = ""
        url = server.url.replace("http", "ws", 1) + "/"
        self.websocket = connect_websocket(
            url,
            open_timeout=PATIENCE,
            close_timeout=PATIENCE,
            ping_interval=None,
            proxy=None,
            legacy=True,
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.websocket.close()

    def send(self, frame):
        frame = frame if isinstance(frame, (str, bytes)) else json.dumps(frame)
        LEDGER.note_body(frame)
        self.websocket.send(frame)

    def receive(self, patience: float = PATIENCE) -> dict:
        self.last_text = self.websocket.recv(timeout=patience)
        LEDGER.note_body(self.last_text)
        return json.loads(self.last_text)

    def expect(self, message_type: str) -> dict:
        frame = self.receive()
        assert frame.get("messageType") == message_type, frame
        return frame

    def hello(self, **fields) -> dict:
        fields = {name: value for name, value in fields.items() if value is not None}
        self.send({"messageType": "hello", "use_webpush": True, **fields})
        self.greeting = self.expect("hello")
        self.uaid = self.greeting.get("uaid")
        return self.greeting

    def register(self, channel_id: str | None = None, **fields) -> Channel:
        channel_id = channel_id or new_channel_id()
        self.send({"messageType": "register", "channelID": channel_id, **fields})
        frame = self.expect("register")
        assert frame["status"] == 200, frame
        return Channel(self.server, frame["channelID"], frame["pushEndpoint"])

    def unregister(self, channel_id: str) -> dict:
        self.send({"messageType": "unregister", "channelID": channel_id, "code": 200})
        return self.expect("unregister")

    def ack(self, *notifications: dict, code: int | None = 100):
        extra = {} if code is None else {"code": code}
        updates = [{"channelID": n["channelID"], "version": n["version"], **extra} for n in notifications]
        self.send({"messageType": "ack", "updates": updates})

    def notification(self) -> dict:
        return self.expect("notification")

    def notifications(self, count: int) -> list[dict]:
        return [self.notification() for _ in range(count)]

    def caught_up(self) -> list[dict]:
        """Every frame that comes before `caughtUp` (Carillon clients only)."""
        frames = []
        while (frame := self.receive()).get("messageType") != "caughtUp":
            frames.append(frame)
        return frames

    def before_pong(self) -> list[dict]:
        """Every frame that comes before the answer to a `{}` sent now."""
        self.send("{}")
        frames = []
        while frame := self.receive():
            frames.append(frame)
        return frames

    def close_code(self) -> int:
        """Waits for the server to close; later frames of the server are ignored."""
        try:
            while True:
                self.websocket.recv(timeout=PATIENCE)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None, "the connection ended without a close frame"
            return closed.rcvd.code


def body_of(notification: dict) -> bytes:
    return decode64(notification["data"])
