"""The senders: each has a topic of its own, so that its messages have one order, and a key for some of them."""

import asyncio
import json
import time
from collections import deque

from message import Message
from server import GONE

LONG = 86_400


class Sender:
    def __init__(self, name, server, ledger, random, devices):
        self.name = name
        self.server = server
        self.ledger = ledger
        self.random = random
        self.devices = devices
        self.number = 0
        self.recent = deque(maxlen=40)
        self.keyed = deque(maxlen=40)
        # Messages with a key whose answer did not come; each is sent again after the next kill.
        self.unanswered = []

    async def send(self):
        """Until the server is killed."""
        with self.server.connect() as http:
            try:
                await self.repeat_unanswered(http)
                while True:
                    await self.post(http, self.compose())
                    await self.look_back(http)
                    await asyncio.sleep(self.random.uniform(0, 0.01))
            except GONE as error:
                if not self.server.is_killed and not self.ledger.may_refuse():
                    self.ledger.violation(f"{self.name} lost its connection: {error!r}")

    def compose(self):
        self.number += 1
        tag = f"{self.name}-{self.number:0>{15 - len(self.name)}}"
        device = self.random.choices(self.devices, [it.share_of_messages for it in self.devices])[0]
        ttl = self.random.choices([LONG, self.random.randint(1, 3), 0], [63, 25, 12])[0]
        has_topic = ttl > 0 and self.random.random() < 0.3
        body = tag.encode() * self.random.choice([1, 13, 250])
        return Message(
            tag=tag, device=device, ttl=ttl, topic=self.name if has_topic else None,
            has_key=self.random.random() < 0.15, body=body, sent_at=time.time())

    async def post(self, http, message):
        """Sends it, or repeats it: with the same key it is the same message. Sometimes does not wait for the answer."""
        headers = [f"TTL: {message.ttl}", "Content-Encoding: aes128gcm"]
        headers += [f"Topic: {message.topic}"] if message.topic else []
        headers += [f"Idempotency-Key: {message.tag}"] if message.has_key else []
        is_first = message.answered_at is None
        self.ledger.sending(message)
        if message.has_key and is_first and message not in self.unanswered:
            self.unanswered.append(message)
        hurries = message.has_key and is_first and not message.topic and self.random.random() < 0.2
        began = time.time()
        try:
            async with asyncio.timeout(self.random.uniform(0, 0.01) if hurries else None):
                status, fields, _ = await http.request("POST", message.device.path, headers, message.body)
        except TimeoutError:
            if not hurries:
                raise
            return http.close()
        if message.has_key and is_first:
            self.unanswered.remove(message)
        if status != 201:
            return self.ledger.refused(message, status)
        id = fields["location"].rsplit("/", 1)[1]
        self.ledger.accepted(message, id, int(fields["ttl"]), fields["carillon-outcome"], began, time.time())
        if is_first:
            self.recent.append(message)
            if message.has_key:
                self.keyed.append(message)

    async def repeat_unanswered(self, http):
        for message in list(self.unanswered):
            was_stored = message.id is not None
            await self.post(http, message)
            if message.answered_at is not None:
                self.ledger.counts["repeated after a kill"] += 1
                self.ledger.counts["found stored by its key"] += was_stored

    async def look_back(self, http):
        """Now and then cancels, asks after, or repeats something, of this round or of one before a kill."""
        chance = self.random.random()
        if chance < 0.1 and self.recent:
            message = self.random.choice(self.recent)
            if not message.is_volatile:
                await self.cancel(http, message)
        elif chance < 0.15 and self.recent:
            await ask(self.ledger, http, self.random.choice(self.recent))
        elif chance < 0.2 and self.keyed:
            await self.post(http, self.random.choice(self.keyed))
            self.ledger.counts["repeated"] += 1

    async def cancel(self, http, message):
        self.ledger.trying(message, "cancelled")
        began = time.time()
        status, _, _ = await http.request("DELETE", f"/message/{message.id}")
        self.ledger.took_back(message, status, began, time.time())


async def ask(ledger, http, message, sender_key=None):
    """Asks for its outcome, at either address."""
    path = f"/message/{message.id}" if sender_key is None else f"/v1/messages/{message.id}"
    began = time.time()
    status, _, body = await http.request("GET", path, secret=sender_key)
    ledger.counts["outcomes asked for"] += 1
    if status == 200:
        ledger.heard(message, json.loads(body).get("outcome"), began, time.time())
    else:
        ledger.unknown(message, status)
