"""Kills the server with SIGKILL at random moments under load, and checks what it promised.

- Every message that was accepted (answered 201), and was neither acknowledged by its device nor taken back by its
  sender, arrives after the last restart.
- No message arrives on a connection that was opened after its outcome was final for its sender.

Run by hand:  CARILLON_EXECUTABLE=.build/debug/carillon python durability.py --kills 300
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import websockets

APP = "com.example.durability"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, executable, directory):
        self.executable = executable
        self.directory = directory
        self.port = free_port()
        self.process = None

    def command(self, *arguments):
        done = subprocess.run(
            [self.executable, *arguments, "--data", self.directory, "--json"],
            check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    async def start(self):
        address = f"127.0.0.1:{self.port}"
        self.process = await asyncio.create_subprocess_exec(
            self.executable, "serve", "--data", self.directory, "--listen", address,
            "--public-url", f"http://{address}", "--log", "error")
        while True:
            if self.process.returncode is not None:
                raise SystemExit(f"the server ended with {self.process.returncode} instead of starting")
            try:
                status, _, _ = await Connection(self.port).request("GET", "/health/ready")
                if status == 200:
                    return
            except OSError:
                await asyncio.sleep(0.02)

    async def kill(self):
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


class Connection:
    """One HTTP connection, kept alive."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=b""):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split(" ", 2)[1])
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        fields = {name.lower(): value for name, value in fields.items()}
        length = int(fields.get("content-length", 0))
        return status, fields, await self.reader.readexactly(length)

    def close(self):
        if self.writer is not None:
            self.writer.close()


class Ledger:
    """What the senders were told, and what the devices saw and said."""

    def __init__(self):
        self.accepted = {}
        self.acknowledged = set()
        self.cancelled = set()
        # A DELETE that the kill cut off may have been carried out.
        self.uncertain = set()
        self.final = {}
        self.seen = set()
        self.violations = []

    def arrived(self, message, connected_at):
        self.seen.add(message)
        if message in self.final and self.final[message] < connected_at:
            self.violations.append(f"{message} arrived after its outcome was final")


class Device:
    def __init__(self, server, ledger, registration):
        self.server = server
        self.ledger = ledger
        self.id = registration["id"]
        self.credential = registration["credential"]
        self.path = None

    async def listen(self, acknowledges, until_caught_up=False):
        """Receives, and acknowledges some or all. Ends when the connection does, or everything was seen."""
        connected_at = time.monotonic()
        arrived = set()
        try:
            async with websockets.connect(f"ws://127.0.0.1:{self.server.port}/", open_timeout=10) as link:
                hello = {"messageType": "hello", "carillon": 1, "device": self.id, "credential": self.credential}
                await link.send(json.dumps(hello))
                while True:
                    frame = json.loads(await asyncio.wait_for(link.recv(), 60))
                    if frame["messageType"] == "caughtUp" and until_caught_up:
                        return arrived
                    if frame["messageType"] != "notification":
                        continue
                    message = frame["version"]
                    self.ledger.arrived(message, connected_at)
                    arrived.add(message)
                    if random.random() < acknowledges:
                        self.ledger.acknowledged.add(message)
                        update = {"channelID": frame["channelID"], "version": message, "code": 100}
                        await link.send(json.dumps({"messageType": "ack", "updates": [update]}))
        except (OSError, websockets.exceptions.WebSocketException, EOFError):
            if until_caught_up:
                raise
            return arrived


async def send(server, ledger, devices, counters):
    """Sends until the server is gone; takes some messages back."""
    connection = Connection(server.port)
    try:
        while True:
            device = random.choice(devices)
            body = os.urandom(random.choice([0, 16, 200, 4000]))
            headers = ["TTL: 86400", "Content-Encoding: aes128gcm"]
            status, fields, _ = await connection.request("POST", device.path, headers, body)
            if status != 201:
                counters["refused"] += 1
                continue
            counters["accepted"] += 1
            message = fields["location"].rsplit("/", 1)[1]
            ledger.accepted[message] = device
            if fields["carillon-outcome"] == "acknowledged":
                ledger.final[message] = time.monotonic()
            elif random.random() < 0.1:
                ledger.uncertain.add(message)
                status, _, _ = await connection.request("DELETE", f"/message/{message}")
                ledger.uncertain.discard(message)
                if status == 204:
                    ledger.cancelled.add(message)
                    ledger.final[message] = time.monotonic()
                    counters["cancelled"] += 1
    except (OSError, asyncio.IncompleteReadError):
        return
    finally:
        connection.close()


async def come_and_go(device):
    while True:
        await asyncio.wait({asyncio.create_task(device.listen(acknowledges=0.7))}, timeout=random.uniform(0.1, 2))
        await asyncio.sleep(random.uniform(0, 0.2))


async def round_of_load(server, ledger, devices, counters):
    senders = [asyncio.create_task(send(server, ledger, devices, counters)) for _ in range(8)]
    listeners = [asyncio.create_task(come_and_go(device)) for device in devices[: len(devices) // 2]]
    await asyncio.sleep(random.uniform(0.1, 1.2))
    await server.kill()
    await asyncio.gather(*senders)
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def main(kills, executable, seed):
    random.seed(seed)
    directory = tempfile.mkdtemp(prefix="carillon-durability-")
    server = Server(executable, directory)
    server.command("apps", "create", APP, "--init")
    key = server.command("keys", "create", "--role", "client", "--app", APP)["secret"]
    ledger = Ledger()
    counters = {"accepted": 0, "refused": 0, "cancelled": 0}
    try:
        await server.start()
        setup = Connection(server.port)
        devices = []
        for _ in range(12):
            _, _, body = await setup.request("POST", "/v1/devices", [f"Authorization: Bearer {key}"])
            device = Device(server, ledger, json.loads(body))
            channel = json.dumps({"channelID": str(uuid.uuid4())}).encode()
            _, _, body = await setup.request(
                "POST", "/v1/device/channels", [f"Authorization: Bearer {device.credential}"], channel)
            device.path = "/push/" + json.loads(body)["token"]
            devices.append(device)
        setup.close()
        for number in range(1, kills + 1):
            await round_of_load(server, ledger, devices, counters)
            await server.start()
            if number % 5 == 0 or number == kills:
                print(f"{number} kills, {counters}, {len(ledger.seen)} seen", flush=True)
        arrived = set()
        for device in devices:
            arrived |= await device.listen(acknowledges=1, until_caught_up=True)
        lost = list(set(ledger.accepted) - ledger.acknowledged - ledger.cancelled - ledger.uncertain - arrived)
        for message in lost[:5]:
            ledger.violations.append(f"{message} was accepted, and did not arrive")
        print(f"{len(lost)} lost of {counters['accepted']} accepted; {len(arrived)} arrived at the end", flush=True)
    finally:
        if server.process and server.process.returncode is None:
            await server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    for violation in ledger.violations[:20]:
        print("VIOLATION:", violation)
    return 1 if ledger.violations else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    executable = os.path.abspath(os.environ.pop("CARILLON_EXECUTABLE"))
    sys.exit(asyncio.run(main(options.kills, executable, options.seed)))
