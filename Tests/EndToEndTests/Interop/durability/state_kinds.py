"""Things that have one value at a time: registrations, suspensions, keys, watches."""

import asyncio
import contextlib
import time
import uuid

from kinds import Cell, Kind
from server import APP, PATIENCE


class Registrations(Kind):
    """Guarantee: the reports of a device, and the settings of an operator for it, stay as they were answered."""

    name = "registrations and suspensions"

    async def prepare(self, http):
        self.device = await self.register(http)
        self.locale, self.status = Cell(None), Cell("registered")
        self.number = 0

    def cells(self):
        return [self.locale, self.status]

    async def change(self, http):
        if self.random.random() < 0.6:
            self.number += 1
            locale = f"de-{self.number}"
            await self.change_cell(
                http, self.locale, locale, "PATCH", "/v1/device", {"locale": locale}, secret=self.device["credential"])
        else:
            verb, status = self.random.choice([("suspend", "suspended"), ("resume", "registered")])
            path = f"/v1/devices/{self.device['id']}/{verb}"
            await self.change_cell(http, self.status, status, "POST", path, secret=self.run.admin_key)

    async def check(self, http, is_backup=False):
        path = f"/v1/devices/{self.device['id']}"
        _, _, shown = await self.ask(http, "GET", path, secret=self.run.admin_key)
        self.compare(self.locale, shown.get("locale"), "the locale", is_backup)
        self.compare(self.status, shown["status"], "the status", is_backup)


class Keys(Kind):
    """Guarantee: a key that was made works, and a key that was revoked does not."""

    name = "keys"
    most = 30

    async def prepare(self, http):
        # By their identifiers: the secret, and whether it works.
        self.keys = {}

    def cells(self):
        return [cell for _, cell in self.keys.values()]

    async def change(self, http):
        living = [id for id, (_, cell) in self.keys.items() if cell.possible == {True}]
        if living and (len(living) >= self.most or self.random.random() < 0.4):
            id = self.random.choice(living)
            await self.change_cell(
                http, self.keys[id][1], False, "DELETE", f"/v1/keys/{id}", expected=(204,), secret=self.run.admin_key)
        else:
            value = {"role": "sender", "app": APP}
            _, _, made = await self.ask(http, "POST", "/v1/keys", value, (201,), self.run.admin_key, commits=True)
            self.keys[made["id"]] = made["secret"], Cell(True)

    async def check(self, http, is_backup=False):
        chosen = self.random.sample(sorted(self.keys), min(12, len(self.keys)))
        for id in chosen:
            secret, cell = self.keys[id]
            if is_backup and cell.in_backup is None:
                continue
            status, _, _ = await self.ask(http, "GET", "/v1/items/stock.none", expected=(200, 404, 401), secret=secret)
            self.compare(cell, status != 401, f"that key {id} works", is_backup)


class Watches(Kind):
    """Guarantee: a watch stays as it was answered. When the closing of a watched channel was answered, its backend is called;
    and it is not called for a channel that nobody closed."""

    name = "watches"

    async def prepare(self, http):
        self.calls = set()
        self.backend = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.port = self.backend.sockets[0].getsockname()[1]
        self.device = await self.register(http)
        self.token = await self.open_channel(http, self.device["credential"], str(uuid.uuid4()))
        self.watched = Cell(None)
        self.number = 0
        # Channels that were closed, and those whose closing had no answer.
        self.closed, self.closing = set(), set()

    async def answer(self, reader, writer):
        with contextlib.suppress(OSError, EOFError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            await reader.readexactly(int(fields.get("content-length", 0)))
            self.calls.add(head.split(" ")[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    def address(self, number):
        return f"http://127.0.0.1:{self.port}/{number}"

    def cells(self):
        return [self.watched]

    async def change(self, http):
        self.number += 1
        path = f"/push/{self.token}/watch"
        chance = self.random.random()
        if chance < 0.5:
            address = self.address(self.number)
            await self.change_cell(
                http, self.watched, address, "PUT", path, {"disconnectAddress": address}, expected=(200, 201))
        elif chance < 0.7:
            await self.change_cell(http, self.watched, None, "DELETE", path, expected=(204, 404))
        else:
            channel = str(uuid.uuid4())
            token = await self.open_channel(http, self.device["credential"], channel)
            watch = {"disconnectAddress": self.address(self.number)}
            await self.ask(http, "PUT", f"/push/{token}/watch", watch, (201,), commits=True)
            name = f"/{self.number}"
            self.closing.add(name)
            await self.ask(
                http, "DELETE", f"/v1/device/channels/{channel}", expected=(204,), secret=self.device["credential"])
            self.closed.add(name)

    async def check(self, http, is_backup=False):
        status, _, shown = await self.ask(http, "GET", f"/push/{self.token}/watch", expected=(200, 404))
        self.compare(self.watched, shown["disconnectAddress"] if status == 200 else None, "the watch", is_backup)
        if not is_backup and (strange := self.calls - self.closing):
            self.violation(f"called though nothing was closed: {sorted(strange)[:5]}")

    def coming(self):
        return {"calls at a channel's end": len(self.closed)}

    async def finish(self, http):
        deadline = time.monotonic() + 2 * PATIENCE
        while (missing := self.closed - self.calls) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        if missing:
            self.violation(f"{len(missing)} of {len(self.closed)} backends were not called: {sorted(missing)[:5]}")
        self.ledger.counts["calls at a channel's end"] += len(self.closed & self.calls)

    async def end(self):
        self.backend.close()
