"""Items, and the subscriptions that fire."""

import asyncio
import time

from kinds import Cell, Kind
from server import APP, PATIENCE

RULES = {"items": [{"pattern": "stock.*", "open": True}, {"pattern": "event.*", "open": True, "mode": "distinct"}]}


class Fired(Kind):
    """A kind of subscription with a device of its own."""

    async def prepare(self, http):
        self.device = await self.register(http)
        await self.ask(http, "PUT", f"/v1/apps/{APP}/items", RULES, secret=self.run.admin_key)

    async def subscribe(self, http, **subscription):
        value = {"format": {"title": "${n}"}, "fields": ["n"], **subscription}
        _, _, answer = await self.ask(
            http, "POST", "/v1/device/subscriptions", value, (200, 201), self.device["credential"])
        return answer["id"]

    async def publish(self, http, item, number):
        _, _, answer = await self.ask(
            http, "POST", f"/v1/items/{item}/updates", {"fields": {"n": number}}, secret=self.run.sender_key,
            commits=True)
        return answer["version"]

    async def waiting(self, http):
        """Returns the firings that wait for the device: the envelope's version, the subscription's key and the number."""
        fired = []
        while True:
            _, _, page = await self.ask(
                http, "GET", "/v1/inbox?carillon=4&max=500", secret=self.device["credential"])
            frames = [frame for frame in page["envelopes"] if frame["messageType"] == "fired"]
            for frame in frames:
                number = int(float(frame["fired"]["notification"]["title"]))
                fired.append((frame["version"], frame["fired"].get("key"), number))
            if not page["more"]:
                return fired
            await self.acknowledge(http, [frame["version"] for frame in frames])

    async def acknowledge(self, http, versions):
        if versions:
            results = [{"version": version, "result": "acknowledged"} for version in versions]
            await self.ask(
                http, "POST", "/v1/inbox/results", {"results": results}, (204,), self.device["credential"])


class Items(Fired):
    """Guarantee: an item has the fields of its last answered update, its version never falls, and a subscription that fires with each
    update and is not acknowledged shows the present value, once."""

    name = "updates of items"

    async def prepare(self, http):
        await super().prepare(http)
        self.value, self.version, self.tried = Cell(0), 0, 0
        await self.publish(http, "stock.a", 0)
        await self.subscribe(http, items=["stock.a"])

    def cells(self):
        return [self.value]

    async def change(self, http):
        self.tried += 1
        number = self.tried
        self.value.trying(number)
        version = await self.publish(http, "stock.a", number)
        self.value.done(number)
        if version <= self.version:
            self.violation(f"version {version} comes after {self.version}")
        self.version = version

    async def read(self, http):
        _, _, item = await self.ask(http, "GET", "/v1/items/stock.a", secret=self.run.sender_key)
        return int(item["fields"]["n"]), item["version"]

    async def check(self, http, is_backup=False):
        value, version = await self.read(http)
        self.compare(self.value, value, "the item", is_backup)
        if is_backup:
            return
        if version < self.version:
            self.violation(f"the item's version is {version}, and was {self.version}")
        deadline = time.monotonic() + PATIENCE
        while value > 0 and (told := [number for _, _, number in await self.waiting(http)]) != [value]:
            if len(told) > 1 or told and told[0] > value or time.monotonic() > deadline:
                return self.violation(f"the item is {value}, and {told} wait as its notifications")
            await asyncio.sleep(0.1)
        self.ledger.counts["firings of an item that merges"] += 1


class DistinctItems(Fired):
    """Guarantee: each answered update of a distinct item fires once, and its notification waits until it is acknowledged."""

    name = "updates of distinct items"
    item, subscription, counted = "event.a", {}, "firings of a distinct item"

    async def prepare(self, http):
        await super().prepare(http)
        await self.subscribe(http, items=[self.item], **self.subscription)
        self.number = 0
        # Numbers that were answered, and those without an answer.
        self.published, self.unsure = set(), set()
        # Numbers that are over: their notifications were acknowledged.
        self.acknowledged = set()

    async def change(self, http):
        self.number += 1
        number = self.number
        self.unsure.add(number)
        await self.publish(http, self.item, number)
        self.unsure.discard(number)
        self.published.add(number)

    def certain(self):
        return set(self.published)

    async def check(self, http, is_backup=False):
        wanted = self.in_backup if is_backup else self.published
        deadline = time.monotonic() + PATIENCE
        while True:
            fired = await self.waiting(http)
            numbers = [number for _, _, number in fired]
            missing = wanted - set(numbers)
            if not missing or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        where = " in a backup" if is_backup else ""
        if missing:
            self.violation(f"no notification of {sorted(missing)[:5]}, {len(missing)} in all{where}")
        if len(set(numbers)) < len(numbers):
            self.violation(f"some numbers fired twice: {sorted(numbers)}{where}")
        if is_backup:
            return
        if strange := set(numbers) - self.published - self.unsure:
            was = "acknowledged" if strange <= self.acknowledged else "not published"
            self.violation(f"notifications of {sorted(strange)[:5]}, which were {was}")
        self.ledger.counts[self.counted] += len(numbers)
        await self.acknowledge(http, [version for version, _, _ in fired])
        self.acknowledged |= self.published
        self.published = set()


class OnceSubscriptions(Fired):
    """Guarantee: a subscription that was answered with the policy `once` fires when its condition is true, and never again."""

    name = "subscriptions with a condition"

    async def prepare(self, http):
        await super().prepare(http)
        self.number = 0
        # By their keys: the least value that fires.
        self.thresholds = {}
        self.fired = set()
        self.ids = {}

    async def change(self, http):
        self.number += 1
        await self.remove_oldest(http)
        items = next(kind for kind in self.run.kinds if type(kind) is Items)
        key, threshold = f"key-{self.number}", items.tried + self.random.randint(0, 30)
        trigger = f"n >= {threshold}.0"
        self.ids[key] = await self.subscribe(http, items=["stock.a"], key=key, trigger=trigger, policy="once")
        self.thresholds[key] = threshold
        await asyncio.sleep(0.1)

    async def remove_oldest(self, http):
        """Of those that fired a device keeps 500: it may have 1,000 subscriptions."""
        if len(self.ids) <= 500 or (key := next((key for key in self.ids if key in self.fired), None)) is None:
            return
        path = f"/v1/device/subscriptions/{self.ids.pop(key)}"
        await self.ask(http, "DELETE", path, None, (204, 404), self.device["credential"])

    async def check(self, http, is_backup=False):
        if is_backup:
            return
        items = next(kind for kind in self.run.kinds if type(kind) is Items)
        value, _ = await items.read(http)
        wanted = {key for key, threshold in self.thresholds.items() if threshold <= value}
        deadline = time.monotonic() + PATIENCE
        while True:
            firings = await self.waiting(http)
            keys = [key for _, key, _ in firings]
            missing = wanted - set(keys)
            if not missing or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        if missing:
            self.violation(f"{sorted(missing)[:5]} did not fire, and the item is {value}")
        if len(set(keys)) < len(keys) or self.fired & set(keys):
            self.violation(f"subscriptions fired twice: {sorted(keys)}, {sorted(self.fired & set(keys))}")
        for _, key, number in firings:
            if key in self.thresholds and number < self.thresholds[key]:
                self.violation(f"{key} fired at {number}, before {self.thresholds[key]}")
        self.ledger.counts["firings of conditions"] += len(keys)
        await self.acknowledge(http, [version for version, _, _ in firings])
        self.fired |= set(keys)
        for key in keys:
            self.thresholds.pop(key, None)


class Crossings(DistinctItems):
    """Guarantee: a subscription with `everyCrossing` fires once for each answered update at which its condition is true after an
    answered update at which it did not."""

    name = "crossings"
    item, counted = "event.crossing", "firings of crossings"
    subscription = {"trigger": "n > 0.0", "policy": "everyCrossing"}

    async def change(self, http):
        await self.publish(http, self.item, -self.number - 1)
        await super().change(http)


class ClosedItems(Fired):
    """Guarantee: after an answered PUT of rules that close an item, no subscription on it is left or fires."""

    name = "closed items"

    async def prepare(self, http):
        await super().prepare(http)
        self.number = 0
        # Whether the last PUT of rules closed the item and was answered.
        self.is_closed = False
        # Numbers that were published while the item was closed for certain.
        self.silent = set()

    async def put_rules(self, http, rules):
        self.is_closed = False
        await self.ask(http, "PUT", f"/v1/apps/{APP}/items", rules, secret=self.run.admin_key, commits=True)

    async def change(self, http):
        self.number += 1
        await self.put_rules(http, {"items": [{"pattern": "closed.a", "open": True}, *RULES["items"]]})
        for place in range(3):
            await self.subscribe(http, items=["closed.a"], key=f"{self.number}-{place}", policy="every")
        await self.publish(http, "closed.a", self.number)
        # Without a rule the item is closed.
        await self.put_rules(http, RULES)
        self.is_closed = True
        await self.check_closed(http)
        self.number += 1
        self.silent.add(self.number)
        await self.publish(http, "closed.a", self.number)

    async def left(self, http):
        _, _, page = await self.ask(http, "GET", "/v1/device/subscriptions", secret=self.device["credential"])
        return [subscription["key"] for subscription in page["subscriptions"]]

    async def check_closed(self, http):
        if left := await self.left(http):
            self.violation(f"{left} are left on a closed item")
        self.ledger.counts["checks of closed items"] += 1

    async def check(self, http, is_backup=False):
        if is_backup:
            return
        if self.is_closed:
            await self.check_closed(http)
        else:
            _, _, rules = await self.ask(http, "GET", f"/v1/apps/{APP}/items", secret=self.run.admin_key)
            deadline = time.monotonic() + PATIENCE
            # Without an answer, the server ends the rest after its start.
            while len(rules["items"]) == len(RULES["items"]) and (left := await self.left(http)):
                if time.monotonic() > deadline:
                    return self.violation(f"{left} are left on a closed item, whose rules were not answered")
                await asyncio.sleep(0.1)
        firings = await self.waiting(http)
        if told := self.silent & {number for _, _, number in firings}:
            self.violation(f"a closed item fired: {sorted(told)}")
        await self.acknowledge(http, [version for version, _, _ in firings])


class DeletedItems(Fired):
    """Guarantee: after an answered DELETE an item is unknown, and the version of its next update is 1."""

    name = "deleted items"

    async def prepare(self, http):
        await super().prepare(http)
        self.number = 0
        # Whether the last request of the item was a DELETE that was answered.
        self.is_deleted = False
        await self.subscribe(http, items=["stock.deleted"])

    async def change(self, http):
        for _ in range(self.random.randint(1, 3)):
            self.number += 1
            is_first, self.is_deleted = self.is_deleted, False
            version = await self.publish(http, "stock.deleted", self.number)
            if is_first and version != 1:
                self.violation(f"the first version after a deletion is {version}")
        await self.ask(
            http, "DELETE", "/v1/items/stock.deleted", None, (204,), self.run.sender_key, commits=True)
        self.is_deleted = True
        await self.check(http)

    async def check(self, http, is_backup=False):
        if is_backup or not self.is_deleted:
            return
        await self.ask(http, "GET", "/v1/items/stock.deleted", None, (404,), self.run.sender_key)
        self.ledger.counts["checks of deleted items"] += 1
