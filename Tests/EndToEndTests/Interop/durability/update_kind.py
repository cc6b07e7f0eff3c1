"""Updates for an audience: published, withdrawn, delivered, and reported as done."""

import asyncio
import time

from kinds import Kind, Refused
from server import PATIENCE


class Published:
    def __init__(self):
        # Answered, or tried without an answer: the moment, or True.
        self.withdrawn_at = self.done_at = None
        self.may_be_withdrawn = self.may_be_done = False

    @property
    def must_come(self):
        return not self.may_be_withdrawn and not self.may_be_done

    def is_over(self, moment):
        return any(at is not None and at < moment for at in (self.withdrawn_at, self.done_at))


class Updates(Kind):
    """Guarantee: each update whose publication was answered is delivered, until the withdrawal or the result "done" was answered;
    then it is not given the update any more. An update that a backup has was not ended before."""

    name = "updates for an audience"
    most = 40

    async def prepare(self, http):
        self.device = await self.register(http)
        self.updates = {}
        self.given = {}
        self.position = None

    async def change(self, http):
        living = [id for id, it in self.updates.items() if it.must_come]
        chance = self.random.random()
        if chance < 0.45 and len(living) < self.most:
            value = {"kind": "popup", "payload": {"style": "important", "title": "t"}}
            _, _, made = await self.ask(http, "POST", "/v1/updates", value, (201,), self.run.sender_key, commits=True)
            self.updates[made["id"]] = Published()
        elif chance < 0.6 and living:
            update = self.updates[id := self.random.choice(living)]
            update.may_be_withdrawn = True
            await self.ask(http, "DELETE", f"/v1/updates/{id}", expected=(204,), secret=self.run.sender_key)
            update.withdrawn_at = time.time()
            self.ledger.counts["updates withdrawn"] += 1
        else:
            await self.poll(http, self.random.sample(sorted(self.given), min(1, len(self.given))))

    async def poll(self, http, done=(), is_new=False):
        """Reports some as done, and stores the deliveries."""
        began = time.time()
        value = {"protocol": 1, "kinds": ["popup"], "max": 500}
        if self.position and not is_new:
            value["position"] = self.position
        if done:
            value["results"] = [{"update": id, "entry": self.given[id], "result": "done"} for id in done]
        for id in done:
            if id in self.updates:
                self.updates[id].may_be_done = True
        _, _, page = await self.ask(http, "POST", "/v1/inbox", value, secret=self.device["credential"])
        for id in done:
            self.given.pop(id)
            if id in self.updates:
                self.updates[id].done_at = time.time()
                self.ledger.counts["updates done"] += 1
        self.position = page["position"]
        # Attempt 0 takes an update back.
        frames = [it for it in page["envelopes"] if it["messageType"] == "update" and it["attempt"] > 0]
        for frame in frames:
            id = frame["update"]["id"]
            if id in self.updates and self.updates[id].is_over(began):
                self.violation(f"update {id} is given after its end")
            self.given[id] = frame["entry"]
        return {it["update"]["id"] for it in frames}, page["more"]

    def certain(self):
        return {id for id, update in self.updates.items() if update.must_come}

    async def check(self, http, is_backup=False):
        """A device that lost its position receives everything again."""
        if is_backup:
            return await self.check_backup(http)
        seen, more = await self.poll(http, is_new=True)
        deadline = time.monotonic() + PATIENCE
        while missing := {id for id, it in self.updates.items() if it.must_come} - seen:
            if time.monotonic() > deadline:
                self.violation(f"{len(missing)} updates are not given: {sorted(missing)[:3]}")
                break
            some, more = await self.poll(http)
            seen |= some
            if not some:
                await asyncio.sleep(0.1)
        self.ledger.counts["updates that waited after a kill"] += len(seen)
        # An update that may have ended and is delivered has not; one that is not delivered has.
        for id, update in list(self.updates.items()):
            if id not in seen and not update.must_come:
                del self.updates[id]

    async def check_backup(self, http):
        for id in self.in_backup:
            status, _, shown = await self.ask(
                http, "GET", f"/v1/updates/{id}", expected=(200, 404), secret=self.run.sender_key)
            if status == 404 or shown["status"] != "live":
                self.violation(f"in a backup, update {id} is {shown}")

    async def finish(self, http):
        while self.given:
            try:
                await self.poll(http, list(self.given)[:100])
            except Refused:
                return
