"""One run: load, kills, faults of the disk, and the audits between."""

import asyncio
import collections
import contextlib
import json
import os
import random
import shutil
import time
import uuid

from attachment_kind import Attachments
from backups import Backup
from floors import floors
from item_kinds import ClosedItems, Crossings, DeletedItems, DistinctItems, Items, OnceSubscriptions
from kinds import Refused
from ledger import Ledger
from push_kind import Pushes
from receivers import Device
from senders import Sender, ask
from server import APP, STOP_SECONDS, Server
from service_kind import Services
from simulator import Simulator
from state_kinds import Keys, Registrations, Watches
from troubles import FAILING, FULL, SLOW, Trouble
from update_kind import Updates

KINDS = [
    Registrations, Keys, Items, DistinctItems, OnceSubscriptions, Crossings, ClosedItems, DeletedItems, Watches, Updates, Services, Attachments, Pushes,
]
STARTING, STOPPING, STOPPED, BACKUP = "a kill at the start", "a kill at the stop", "a stop", "a backup"
# The events beside the kill, in turns.
TURNS = [None, SLOW, STARTING, FAILING, STOPPING, FULL, BACKUP, None, STOPPED, None]
FAULTS = (SLOW, FAILING, FULL)
ROUND_SECONDS = 10
# The approximate number of waiting envelopes of a device after an audit.
LEFT_WAITING = 60
# The run ends with so many violations.
MANY = 20
# So that the end of the run does not wait long for pushes.
ROUNDS_WITHOUT_WAKES = 5
# On a slow machine less happens between two kills. Up to so many times the kills are made until enough has happened.
MOST_TIMES = 3


def turns_here():
    """The turns of this machine: faults of the disk need strace, which only CI must have."""
    if shutil.which("strace"):
        return TURNS
    if os.environ.get("CI"):
        raise SystemExit("strace is missing; `Scripts/setup tests` installs it")
    print("strace is missing, so that the disk has no faults", flush=True)
    return [turn for turn in TURNS if turn not in FAULTS]


class Run:
    def __init__(self, executable, directory, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.simulator = Simulator(executable, os.path.join(directory, "simulator"))
        settings = {"CARILLON_KEY_FILE": os.path.join(directory, "key-file"), **self.simulator.settings}
        self.server = Server(executable, os.path.join(directory, "data"), settings)
        self.ledger = Ledger()
        self.devices = []
        self.senders = []
        self.admin_key = self.client_key = self.sender_key = None
        self.kinds = [kind(self) for kind in KINDS]
        self.backup = Backup(self, directory)
        self.turns = turns_here()
        self.kills = self.wanted = 0

    async def prepare(self):
        self.server.command("apps", "create", APP, "--init")
        self.admin_key = self.server.command("keys", "create", "--role", "admin")["secret"]
        self.client_key = self.server.command("keys", "create", "--role", "client", "--app", APP)["secret"]
        self.sender_key = self.server.command("keys", "create", "--role", "sender", "--app", APP)["secret"]
        await self.simulator.start()
        await self.server.start()
        with self.server.connect() as http:
            for number in range(2):
                await self.add_device(http, f"socket-{number}", socket_share=1.0)
                await self.add_device(http, f"stream-{number}", stream_share=1.0)
                await self.add_device(http, f"poll-{number}")
                await self.add_device(http, f"all-{number}", socket_share=0.4, stream_share=0.3)
                await self.add_device(http, f"absent-{number}", is_absent=True, share_of_messages=2.0)
            # Its polls mostly find nothing, and wait.
            await self.add_device(http, "idle", answer_share=1.0, share_of_messages=0.03)
            for kind in self.kinds:
                await kind.prepare(http)
        for number in range(8):
            sender = Sender(f"s{number}", self.server, self.ledger, self.random_for(f"s{number}"), self.devices)
            self.senders.append(sender)

    async def add_device(self, http, name, **habits):
        _, _, body = await http.request("POST", "/v1/devices", secret=self.client_key)
        device = Device(name, self.server, self.ledger, self.random_for(name), json.loads(body), **habits)
        channel = json.dumps({"channelID": str(uuid.uuid4())}).encode()
        _, _, body = await http.request("POST", "/v1/device/channels", body=channel, secret=device.credential)
        device.path = "/push/" + json.loads(body)["token"]
        self.devices.append(device)

    def random_for(self, name):
        return random.Random(f"{self.seed} {name}")

    async def run(self, kills):
        self.wanted = kills
        await self.prepare()
        while self.kills < kills:
            if not await self.round(has_wakes=self.kills < max(1, kills - ROUNDS_WITHOUT_WAKES)):
                return
        if self.too_little():
            while self.too_little() and self.kills < MOST_TIMES * kills:
                if not await self.round(has_wakes=True):
                    return
            for _ in range(ROUNDS_WITHOUT_WAKES):
                if not await self.round(has_wakes=False):
                    return
        self.ledger.round = "after the last kill"
        await self.finish()

    async def round(self, has_wakes):
        """Kills the server once, and compares. Returns whether the run goes on."""
        turn = self.turns[self.kills % len(self.turns)]
        self.kills += 1
        self.ledger.round = f"round {self.kills} ({turn or 'a kill'})"
        for kind in self.kinds:
            if isinstance(kind, Pushes):
                kind.is_over = not has_wakes
        await self.load_and_kill(turn)
        await self.server.start()
        self.ledger.restarted()
        await self.audit()
        if turn == BACKUP:
            await self.backup.compare()
        await self.ask_outcomes(10)
        if self.kills % 10 == 0 or self.kills == self.wanted:
            print(f"{self.kills} kills, {self.ledger.counts['accepted']} accepted", flush=True)
        if len(self.ledger.violations) > MANY:
            print("the run ends early, with many violations", flush=True)
            return False
        return True

    def least(self):
        """Returns the required events with their numbers."""
        return floors(min(self.kills, self.wanted), self.turns, FAULTS, BACKUP)

    def too_little(self):
        """Returns whether something has happened too rarely until now."""
        counts = collections.Counter(self.ledger.counts)
        for kind in self.kinds:
            counts.update(kind.coming())
        return any(counts[name] < number for name, number in self.least().items())

    async def load_and_kill(self, turn):
        """A number of messages rather than a time, so that a slow machine does as much."""
        goal = self.random.choice([self.random.randint(5, 100), self.random.randint(100, 400)])
        tasks = [sender.send() for sender in self.senders]
        tasks += [device.come_and_go() for device in self.devices if not device.is_absent]
        tasks += [kind.work() for kind in self.kinds]
        load = asyncio.gather(*tasks)
        await self.accept(goal, load)
        trouble = making = None
        if turn in FAULTS:
            trouble = Trouble(turn, self.server, self.ledger)
            await trouble.begin(self.random.uniform(0.3, 2))
            if self.random.random() < 0.6:
                await trouble.recover(self.random.uniform(0, 7))
                await self.accept(goal, load)
        elif turn == BACKUP:
            making = asyncio.ensure_future(self.backup.make())
            if self.random.random() < 0.6:
                await making
        await asyncio.sleep(self.random.uniform(0, 0.05))
        if turn in (STOPPING, STOPPED):
            self.ledger.trouble_began()
            code = await self.server.stop(self.random.uniform(0, 0.3) if turn == STOPPING else STOP_SECONDS)
            if turn == STOPPED and code != 0:
                self.ledger.violation(f"a stop ends with {code}")
        else:
            await self.server.kill()
        killed_at = time.time()
        if trouble is not None:
            await trouble.end()
        await load
        if making is not None:
            await making
        self.ledger.killed(killed_at)
        self.ledger.trouble_ended()
        if turn == STARTING:
            for _ in range(self.random.randint(1, 3)):
                await self.server.launch()
                await asyncio.sleep(self.random.uniform(0, 0.4))
                await self.server.kill()
        if turn:
            self.ledger.counts[turn] += 1

    async def accept(self, goal, load):
        """Returns when so many messages more were accepted, or after some time."""
        counts = self.ledger.counts
        goal += counts["accepted"]
        deadline = time.monotonic() + ROUND_SECONDS
        while counts["accepted"] < goal and time.monotonic() < deadline and not load.done():
            await asyncio.sleep(0.005)

    async def audit(self):
        """Nothing is under way: each device receives only its waiting envelopes."""
        with self.server.connect() as http:
            for kind in self.kinds:
                with contextlib.suppress(Refused):
                    await kind.check(http)
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
        """Every device acknowledges its waiting envelopes; then none waits."""
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
        with self.server.connect() as http:
            for kind in self.kinds:
                with contextlib.suppress(Refused):
                    await kind.finish(http)

    async def end(self):
        for kind in self.kinds:
            await kind.end()
        await self.server.end()
