"""The devices: some come and go by socket or event stream, some poll and answer over HTTP, some do all, some are never there."""

import asyncio
import base64
import json
import time

import aiohttp
import websockets

from server import ANSWER_SECONDS, GONE


class Device:
    def __init__(
        self, name, server, ledger, random, registration, socket_share=0.0, stream_share=0.0, answer_share=0.7,
        is_absent=False, share_of_messages=1.0,
    ):
        self.name = name
        self.server = server
        self.ledger = ledger
        self.random = random
        self.id = registration["id"]
        self.credential = registration["credential"]
        self.path = None
        # How often it connects by a socket, and by an event stream; otherwise it polls.
        self.socket_share = socket_share
        self.stream_share = stream_share
        self.answer_share = answer_share
        self.is_absent = is_absent
        self.share_of_messages = share_of_messages
        # Its messages that may wait, by their tags.
        self.open = {}

    @property
    def never_connects(self):
        """Before the end of the run, that is: polls are no connection."""
        return self.is_absent or self.socket_share + self.stream_share == 0

    async def come_and_go(self):
        """Until the server is killed."""
        with self.server.connect() as http:
            while not self.server.is_killed:
                try:
                    await self.come(http)
                    await asyncio.sleep(self.random.uniform(0, 0.1))
                except GONE as error:
                    http.close()
                    # Connections can end while the disk has a fault.
                    if not self.server.is_killed and not self.ledger.may_refuse():
                        self.ledger.violation(f"{self.name} lost its connection: {error!r}")

    async def come(self, http):
        chance = self.random.random()
        if chance < self.socket_share:
            await self.listen(self.random.uniform(0.1, 2))
        elif chance < self.socket_share + self.stream_share:
            await self.read_events(http, self.random.uniform(0.1, 2))
        else:
            await self.poll_once(http)

    def arrived(self, frame, began):
        body = base64.urlsafe_b64decode(frame.get("data", "") + "==")
        return self.ledger.arrived(self, frame["version"], body, began)

    # Sockets

    async def listen(self, seconds):
        """Acknowledges some of the envelopes, and leaves after a time, with or without a close frame."""
        began = time.time()
        async with self.connect() as link:
            try:
                async with asyncio.timeout(seconds):
                    await self.receive(link, began, self.answer_share)
            except TimeoutError:
                if self.random.random() < 0.5:
                    link.transport.abort()

    async def receive_all(self):
        """Acknowledges everything that waits, and returns when the server has read that."""
        began = time.time()
        async with asyncio.timeout(ANSWER_SECONDS), self.connect() as link:
            await self.receive(link, began, answer_share=1, until_caught_up=True)
            await link.send("{}")
            while await link.recv() != "{}":
                pass

    def connect(self):
        return websockets.connect(
            f"ws://127.0.0.1:{self.server.port}/", open_timeout=30, close_timeout=5, ping_interval=None, proxy=None)

    async def receive(self, link, began, answer_share, until_caught_up=False):
        hello = {"messageType": "hello", "carillon": 1, "device": self.id, "credential": self.credential}
        await link.send(json.dumps(hello))
        present = {}
        while True:
            frame = json.loads(await link.recv())
            if frame["messageType"] == "caughtUp":
                self.ledger.counts["caught up"] += 1
                self.ledger.was_complete(self, present, began, time.time())
                if until_caught_up:
                    return
            if frame["messageType"] != "notification":
                continue
            message = self.arrived(frame, began)
            if message is None:
                continue
            present[message.tag] = message
            if self.random.random() < answer_share:
                await self.acknowledge(link, frame, message)

    async def acknowledge(self, link, frame, message):
        is_delivered = self.random.random() < 0.9
        self.ledger.trying(message, "acknowledged" if is_delivered else "failed")
        self.ledger.counts["results over sockets"] += 1
        update = {"channelID": frame["channelID"], "version": frame["version"], "code": 100 if is_delivered else 101}
        await link.send(json.dumps({"messageType": "ack", "updates": [update]}))

    # Event streams

    async def read_events(self, http, seconds):
        """Answers over HTTP for some of the envelopes, and leaves after a time."""
        began, present = time.time(), {}
        deadline = asyncio.get_running_loop().time() + seconds
        events = self.events()
        try:
            while True:
                async with asyncio.timeout_at(deadline):
                    event, frame = await anext(events)
                if event == "caughtUp":
                    self.ledger.counts["streams that caught up"] += 1
                    self.ledger.was_complete(self, present, began, time.time())
                elif event == "end":
                    return self.stream_ended(frame)
                elif message := self.arrived(frame, began):
                    present[message.tag] = message
                    self.ledger.counts["messages in event streams"] += 1
                    if self.random.random() < self.answer_share:
                        await self.answer(http, [message])
        except (TimeoutError, StopAsyncIteration):
            pass
        finally:
            await events.aclose()

    async def events(self):
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {self.credential}"}
        url = f"http://127.0.0.1:{self.server.port}/v1/inbox"
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            if answer.status != 200:
                if answer.status != 503 or not self.ledger.may_refuse():
                    self.ledger.violation(f"an event stream is answered {answer.status}")
                return
            fields = {}
            async for line in answer.content:
                name, _, value = line.decode().rstrip("\r\n").partition(":")
                if name:
                    fields[name] = value.strip()
                elif "data" in fields:
                    yield fields["event"], json.loads(fields["data"])
                    fields = {}

    def stream_ended(self, frame):
        if not self.server.is_killed and not self.ledger.may_refuse():
            self.ledger.violation(f"an event stream of {self.name} ends with {frame}")

    # Polls

    async def poll_once(self, http):
        wait, count = self.random.choice([0, 1, 30]), self.random.choice([1, 20, 500])
        try:
            present, _ = await self.poll(http, wait, count)
        except GONE:
            self.ledger.counts["long polls cut off"] += wait > 0
            raise
        await self.answer(http, [it for it in present.values() if self.random.random() < self.answer_share])

    async def poll(self, http, wait, count):
        """The waiting envelopes, and whether they are all; none is acknowledged."""
        began = time.time()
        status, _, body = await http.request(
            "GET", f"/v1/inbox?wait={wait}&max={count}", secret=self.credential)
        if status != 200:
            if status != 503 or not self.ledger.may_refuse():
                self.ledger.violation(f"a poll is answered {status}")
            return {}, False
        page = json.loads(body)
        messages = [self.arrived(frame, began) for frame in page["envelopes"]]
        present = {message.tag: message for message in messages if message is not None}
        if present:
            self.ledger.counts["polls"] += 1
        if not page["more"]:
            self.ledger.was_complete(self, present, began, time.time())
        return present, not page["more"]

    async def answer(self, http, messages):
        if not messages:
            return
        began = time.time()
        results = []
        for message in messages:
            result = self.random.choices(["acknowledged", "failed"], [9, 1])[0]
            self.ledger.trying(message, result)
            results.append({"version": message.id, "result": result})
        body = json.dumps({"results": results}).encode()
        status, _, _ = await http.request("POST", "/v1/inbox/results", body=body, secret=self.credential)
        if status == 204:
            self.ledger.results_stored(messages, began, time.time())
        elif status != 503 or not self.ledger.may_refuse():
            self.ledger.violation(f"results are answered {status}")
