"""Wakes and alerts through the simulator of Apple's push service."""

import asyncio
import json
import os
import time
import uuid
from collections import defaultdict

from kinds import Kind
from server import APP

# A push that was under way at a kill is sent again when its lease of 60 seconds is over; then it can need another attempt.
LEASE_SECONDS = 130
STATES = {"scheduled", "handed"}


class Pushed:
    """A message for a device that sleeps."""

    def __init__(self, device, is_alert, body):
        self.device, self.is_alert, self.body = device, is_alert, body
        self.id = None
        # The identifier of the push that the server reports as handed over.
        self.handed = None


class Pushes(Kind):
    """Guarantee: after a message was accepted for a device that sleeps, Apple's service accepts a wake or the message's
    alert, whatever is killed. What is sent twice has one `apns-id`. What the server calls `handed` was accepted."""

    name = "messages that wake"

    async def prepare(self, http):
        self.simulator = self.run.simulator
        admin = self.run.admin_key
        await self.ask(
            http, "PUT", f"/v1/apps/{APP}/credentials/production", self.simulator.credentials, secret=admin)
        await self.ask(http, "PUT", f"/v1/apps/{APP}/alert", {"title": "News", "body": "A message"}, secret=admin)
        self.number = 0
        self.messages = []
        self.tokens = set()
        # In the last rounds no message begins to wake a device, and the simulator lives on.
        self.is_over = self.is_kill_wanted = False

    async def work(self):
        """The simulator is killed once in each round, if the round is long enough."""
        self.is_kill_wanted = not self.is_over
        if self.is_over:
            await self.simulator.lose_no_answer()
        await super().work()

    async def change(self, http):
        chance = self.random.random()
        if self.is_kill_wanted and chance < 0.2:
            self.is_kill_wanted = False
            await self.simulator.kill()
            await asyncio.sleep(self.random.choice([0, self.random.uniform(0, 0.5)]))
            await self.simulator.start()
            self.ledger.counts["kills of the simulator"] += 1
        elif self.is_over:
            await asyncio.sleep(0.05)
        elif chance < 0.23:
            await self.simulator.lose_an_answer()
        else:
            await self.wake(http)

    async def wake(self, http):
        """Registers a device that sleeps, and sends it one message, or a few."""
        self.number += 1
        token = f"cafe{self.number:08x}"
        self.tokens.add(token)
        device = await self.register(http, platform="apple", pushToken=token)
        device["token"] = token
        path = "/push/" + await self.open_channel(http, device["credential"], str(uuid.uuid4()))
        is_alert = self.random.random() < 0.6
        for _ in range(self.random.choice([1, 1, 1, 3]) if is_alert else 1):
            message = Pushed(device, is_alert, os.urandom(24))
            headers = ["TTL: 86400", "Content-Encoding: aes128gcm", f"Urgency: {'high' if is_alert else 'normal'}"]
            _, fields, _ = await self.ask(
                http, "POST", path, expected=(201,), headers=headers, body=message.body, commits=True)
            message.id = fields["location"].rsplit("/", 1)[1]
            self.messages.append(message)

    async def check(self, http, is_backup=False):
        if is_backup:
            return
        await self.simulator.harvest()
        self.compare_accepted()
        for message in self.random.sample(self.messages, min(10, len(self.messages))):
            await self.compare_fact(http, message)

    def compare_accepted(self):
        names = defaultdict(set)
        for request in self.simulator.accepted:
            token = request["path"].rsplit("/", 1)[1]
            if token not in self.tokens:
                self.violation(f"a push for {token}, which no device has")
            names[self.subject(request)].add(request["headers"]["apns-id"])
        for subject, ids in names.items():
            if len(ids) > 1:
                self.violation(f"{subject} was pushed under {len(ids)} names: {sorted(ids)}")
        self.ledger.counts["pushes that came twice"] = len(self.simulator.accepted) - len(names)
        return names

    def subject(self, request):
        """The device of a wake; the device and the message of an alert."""
        content = json.loads(request["payload"])["carillon"]
        return request["path"].rsplit("/", 1)[1], content["kind"], content.get("body")

    async def compare_fact(self, http, message):
        _, _, shown = await self.ask(http, "GET", f"/v1/messages/{message.id}", secret=self.run.sender_key)
        facts = shown.get("pushes", [])
        if strange := [fact for fact in facts if fact["state"] not in STATES]:
            self.violation(f"message {message.id} of {message.device['token']} has the pushes {strange}")
        handed = {fact["apnsID"].lower() for fact in facts if fact["state"] == "handed"}
        if message.handed and message.handed not in handed:
            self.violation(f"push {message.handed} was handed, and now the server says {facts}")
        for id in handed:
            message.handed = id
            if id not in self.accepted_ids():
                await self.simulator.harvest()
            if id not in self.accepted_ids():
                self.violation(f"push {id} of {message.device['token']} is said to be handed, and did not come")
        self.ledger.counts["pushes asked after"] += len(handed)

    def accepted_ids(self):
        return {request["headers"]["apns-id"].lower() for request in self.simulator.accepted}

    def is_pushed(self, message, names):
        from service_kind import encoded

        kind, body = ("alert", encoded(message.body)) if message.is_alert else ("wake", None)
        return (message.device["token"], kind, body) in names

    def coming(self):
        wakes = {message.device["token"] for message in self.messages if not message.is_alert}
        return {"wakes that came": len(wakes), "alerts that came": sum(message.is_alert for message in self.messages)}

    async def finish(self, http):
        deadline = time.monotonic() + LEASE_SECONDS
        while True:
            await self.simulator.harvest()
            names = self.compare_accepted()
            missing = [message for message in self.messages if not self.is_pushed(message, names)]
            if not missing or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
        for kind in ("wake", "alert"):
            self.ledger.counts[f"{kind}s that came"] += sum(subject[1] == kind for subject in names)
        # The connection may have ended meanwhile.
        http.close()
        for message in missing[:5]:
            _, _, shown = await self.ask(http, "GET", f"/v1/messages/{message.id}", secret=self.run.sender_key)
            kind = "alert" if message.is_alert else "wake"
            self.violation(
                f"no {kind} for message {message.id} of {message.device['token']}; {len(missing)} are missing; "
                f"the server says {shown.get('pushes')}")
        for message in self.random.sample(self.messages, min(50, len(self.messages))):
            await self.compare_fact(http, message)

    async def end(self):
        await self.simulator.end()
