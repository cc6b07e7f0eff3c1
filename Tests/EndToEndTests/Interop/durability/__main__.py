"""Kills the server with SIGKILL at random moments under load, and checks what it promised (docs/guarantees.md).

- What was accepted arrives, unless its device answered for it, or it was cancelled or replaced, or its TTL ended.
- Nothing arrives over a connection or a poll that was begun after it expired, was replaced, was cancelled or was
  answered for. TTL 0 to a device without a connection is answered as dropped, and never arrives.
- Of a topic one message waits: the last that was accepted, or one after it whose answer the kill cut off.
- What is sent again with its Idempotency-Key, because a kill took the answer, is one message for sender and device.
- The outcome that the server tells is one that somebody caused, and stays the same.
- All of this happened often enough to mean something.

Run by hand:  CARILLON_EXECUTABLE=.build/debug/carillon python durability --kills 300

A seed repeats what is chosen, not when the server comes to what.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
import uuid

from ledger import Ledger
from receivers import Device
from senders import Sender, ask
from server import APP, Server

ROUND_SECONDS = 10
# What waits for a device after an audit, roughly.
LEFT_WAITING = 60
# The run ends with so many violations.
MANY = 20
# What must have happened for each kill, on average: about a third of what is seen on a busy machine.
FLOORS = {
    "accepted": 60,
    "acknowledged before it was written": 8,
    "cancelled": 1.5,
    "caught up": 2,
    "cut off by a kill": 2.5,
    "dropped": 5,
    "expired": 0.7,
    "found stored by its key": 0.4,
    "long polls cut off": 0.8,
    "offered": 2,
    "outcomes asked for": 10,
    "polls": 8,
    "repeated": 3,
    "repeated after a kill": 0.7,
    "replaced": 7,
    "results over HTTP": 25,
    "results over sockets": 25,
    "waited after a kill": 50,
}


class Run:
    def __init__(self, executable, directory, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.server = Server(executable, directory)
        self.ledger = Ledger()
        self.devices = []
        self.senders = []
        self.sender_key = None

    async def prepare(self):
        self.server.command("apps", "create", APP, "--init")
        client_key = self.server.command("keys", "create", "--role", "client", "--app", APP)["secret"]
        self.sender_key = self.server.command("keys", "create", "--role", "sender", "--app", APP)["secret"]
        await self.server.start()
        with self.server.connect() as http:
            for number in range(3):
                await self.add_device(http, client_key, f"socket-{number}", socket_share=1.0)
                await self.add_device(http, client_key, f"poll-{number}")
                await self.add_device(http, client_key, f"both-{number}", socket_share=0.5)
            for number in range(2):
                await self.add_device(http, client_key, f"absent-{number}", is_absent=True, share_of_messages=2.0)
            # Its polls mostly find nothing, and wait.
            await self.add_device(http, client_key, "idle", answer_share=1.0, share_of_messages=0.03)
        for number in range(8):
            sender = Sender(f"s{number}", self.server, self.ledger, self.random_for(f"s{number}"), self.devices)
            self.senders.append(sender)

    async def add_device(self, http, client_key, name, **habits):
        _, _, body = await http.request("POST", "/v1/devices", secret=client_key)
        device = Device(name, self.server, self.ledger, self.random_for(name), json.loads(body), **habits)
        channel = json.dumps({"channelID": str(uuid.uuid4())}).encode()
        _, _, body = await http.request("POST", "/v1/device/channels", body=channel, secret=device.credential)
        device.path = "/push/" + json.loads(body)["token"]
        self.devices.append(device)

    def random_for(self, name):
        return random.Random(f"{self.seed} {name}")

    async def load_and_kill(self):
        """A number of messages rather than a time, so that a slow machine does as much."""
        counts = self.ledger.counts
        goal = counts["accepted"] + self.random.choice([self.random.randint(5, 100), self.random.randint(100, 800)])
        tasks = [sender.send() for sender in self.senders]
        tasks += [device.come_and_go() for device in self.devices if not device.is_absent]
        load = asyncio.gather(*tasks)
        deadline = time.monotonic() + ROUND_SECONDS
        while counts["accepted"] < goal and time.monotonic() < deadline and not load.done():
            await asyncio.sleep(0.005)
        await asyncio.sleep(self.random.uniform(0, 0.05))
        await self.server.kill()
        killed_at = time.time()
        await load
        self.ledger.killed(killed_at)

    async def audit(self):
        """Nothing is under way: what waits for each device is all that will come."""
        for device in self.devices:
            with self.server.connect() as http:
                began = time.time()
                waiting, is_all = await device.poll(http, wait=0, count=500)
                present = dict(waiting)
                while not is_all:
                    await device.answer(http, list(waiting.values()))
                    waiting, is_all = await device.poll(http, wait=0, count=500)
                    present |= waiting
                self.ledger.audited(device, present, began, time.time())
                surplus = max(0, len(waiting) - LEFT_WAITING)
                await device.answer(http, self.random.sample(list(waiting.values()), surplus))

    async def ask_outcomes(self, count):
        """Of the newest messages, and of all."""
        answered = self.ledger.answered
        newest = answered[-300:]
        chosen = self.random.sample(newest, min(count, len(newest))) + self.random.choices(answered, k=count)
        with self.server.connect() as http:
            for message in chosen:
                await ask(self.ledger, http, message, self.random.choice([None, self.sender_key]))

    async def finish(self):
        """Every device takes what waits; then nothing does."""
        with self.server.connect() as http:
            for sender in self.senders:
                await sender.repeat_unanswered(http)
        for device in self.devices:
            try:
                await device.receive_all()
            except TimeoutError:
                self.ledger.violation(f"{device.name} does not catch up")
            with self.server.connect() as http:
                left, _ = await device.poll(http, wait=0, count=500)
                for message in left.values():
                    self.ledger.violation("acknowledged, and waits without a kill", message)
        await self.ask_outcomes(200)

    async def run(self, kills):
        await self.prepare()
        for number in range(1, kills + 1):
            await self.load_and_kill()
            await self.server.start()
            await self.audit()
            await self.ask_outcomes(10)
            if number % 25 == 0 or number == kills:
                print(f"{number} kills, {self.ledger.counts['accepted']} accepted", flush=True)
            if len(self.ledger.violations) > MANY:
                return number
        await self.finish()
        return kills


def report(ledger, kills):
    """Says what happened and what is wrong; answers whether all was well."""
    faults = [f"VIOLATION: {text}" for text in ledger.violations]
    for name in sorted(ledger.counts | FLOORS):
        count, floor = ledger.counts[name], FLOORS.get(name, 0)
        print(f"{count:>9} {name}, {count / kills:.2f} for each kill" + (f" (at least {floor})" if floor else ""))
        if count < floor * kills:
            faults.append(f"TOO LITTLE: {name}")
    for fault in faults[: 2 * MANY]:
        print(fault)
    return not faults


async def main(kills, executable, seed):
    directory = tempfile.mkdtemp(prefix="carillon-durability-")
    run = Run(executable, directory, seed)
    began = time.monotonic()
    try:
        kills = await run.run(kills)
        is_well = report(run.ledger, kills)
        seconds = time.monotonic() - began
        print(f"{kills} kills in {seconds:.0f} seconds, {len(run.ledger.violations)} violations", flush=True)
    finally:
        await run.server.end()
        shutil.rmtree(directory, ignore_errors=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    executable = os.path.abspath(os.environ.pop("CARILLON_EXECUTABLE"))
    sys.exit(asyncio.run(main(options.kills, executable, options.seed)))
