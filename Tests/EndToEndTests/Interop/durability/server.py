"""The server as a process that is killed and started again, and one HTTP connection to it."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import aiohttp
from log_secrets import LEDGER
from websockets.exceptions import WebSocketException

APP = "com.example.durability"
# How a connection ends when the server is killed.
GONE = (OSError, EOFError, WebSocketException, aiohttp.ClientError)
START_SECONDS = 60
STOP_SECONDS = 40
ANSWER_SECONDS = 60
# For consequences without a request.
PATIENCE = 30
SETTINGS = {
    "CARILLON_CHANNEL_RATE": "off",
    "CARILLON_DEVICE_RATE": "off",
    "CARILLON_APP_RATE": "off",
    # The oldest messages of a long run are asked for as well.
    "CARILLON_OUTCOMES_PER_DEVICE": "1000000",
    "CARILLON_REGISTRATION_RATE": "off",
    "CARILLON_ADDRESS_RATE": "off",
    # Backends are on this machine.
    "CARILLON_ALLOW_PRIVATE_ADDRESSES": "true",
}


def free_port(offset=0):
    """A port below those that the system assigns to clients: a server keeps its own while it is down."""
    port = 10_000 + (os.getpid() * 997 + offset * 101) % 22_000
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                port += 1


def send(process, number):
    """Sends a signal to a process that may have ended. The process's own method would take its exit code away from `wait`."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


class Server:
    def __init__(self, executable, directory, settings):
        self.executable = executable
        self.directory = directory
        self.log = Path(f"{directory}.log")
        LEDGER.follow(self.log)
        self.settings = os.environ | SETTINGS | settings
        self.port = free_port()
        self.process = None
        self.is_killed = False

    def command(self, *arguments):
        done = subprocess.run(
            [self.executable, *arguments, "--data", self.directory, "--json"],
            check=True, capture_output=True, text=True, env=self.settings)
        LEDGER.note_body(done.stdout)
        return json.loads(done.stdout.splitlines()[-1])

    async def launch(self):
        """Starts the process, and does not wait until it is ready."""
        address = f"127.0.0.1:{self.port}"
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                self.executable, "serve", "--data", self.directory, "--listen", address,
                "--public-url", f"http://{address}", "--log", "error", stdout=log, stderr=log, env=self.settings)

    async def start(self):
        await self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not await self.is_ready():
            if self.process.returncode is not None:
                raise SystemExit(f"the server ended with {self.process.returncode} instead of starting")
            if time.monotonic() > deadline:
                raise SystemExit(f"the server is not ready after {START_SECONDS} seconds")
            await asyncio.sleep(0.02)
        self.is_killed = False

    async def is_ready(self):
        try:
            with self.connect() as http:
                status, _, _ = await http.request("GET", "/health/ready")
                return status == 200
        except GONE:
            return False

    def connect(self):
        return Connection(self.port)

    async def stop(self, seconds):
        """Tells the server to stop, and kills it if it has not after so many seconds. Returns its exit code."""
        self.is_killed = True
        send(self.process, signal.SIGTERM)
        try:
            async with asyncio.timeout(seconds):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            return None

    async def kill(self):
        self.is_killed = True
        # The end of a connection without a kill was noticed by all connected clients.
        send(self.process, signal.SIGKILL)
        await self.process.wait()

    async def end(self):
        if self.process is not None and self.process.returncode is None:
            await self.kill()


class Connection:
    """One HTTP connection, kept alive."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """The next request makes a new one."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=b"", secret=None):
        async with asyncio.timeout(ANSWER_SECONDS):
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
            LEDGER.note_path(path)
            if secret is not None:
                LEDGER.note(secret)
                lines.append(f"Authorization: Bearer {secret}")
            self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status = int(head.split(" ", 2)[1])
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            fields = {name.lower(): value for name, value in fields.items()}
            data = b"" if method == "HEAD" else await self.read_body(fields)
            if status == 201:
                LEDGER.note_body(data)
            if fields.get("connection", "").lower() == "close":
                self.close()
            return status, fields, data

    async def read_body(self, fields):
        """Reads the body of an answer: its length is in the head, or it comes in chunks."""
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await self.reader.readexactly(int(fields.get("content-length", 0)))
        body = b""
        while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")
        return body
