"""Requests of services: each comes to its provider, and has one reply."""

import asyncio
import base64
import os
import time

from kinds import Kind
from server import APP, PATIENCE
from service_peer import KEY_SET, SUITE_NAME, user_token

FILES = "com.example.files"
SERVICE = "com.example.transfer"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# The server checks no signature and opens nothing.
BUNDLE = {
    "identity": encoded(bytes([1] * 32)), "id": "00112233445566aa", "key": encoded(bytes([2] * 32)),
    "until": 4_000_000_000_000, "signature": encoded(bytes([3] * 64)),
}


def content(body):
    return {
        "suite": SUITE_NAME, "keyID": BUNDLE["id"], "sender": BUNDLE, "enc": encoded(bytes([4] * 32)),
        "body": encoded(body), "files": 0, "fileBytes": 0,
    }


class Request:
    def __init__(self):
        self.is_asked = self.may_be_replied = self.is_replied = False


class Services(Kind):
    """Guarantee: a request that was answered waits for its provider until it is replied to, and a reply that was answered waits for its
    consumer; there is one reply, and none without the provider's."""

    name = "steps of service requests"
    most = 20

    async def prepare(self, http):
        admin = self.run.admin_key
        await self.ask(http, "POST", "/v1/apps", {"id": FILES}, (201,), admin)
        _, _, key = await self.ask(http, "POST", "/v1/keys", {"role": "client", "app": FILES}, (201,), admin)
        for app in (APP, FILES):
            await self.ask(http, "PUT", f"/v1/apps/{app}/users", {"jwks": KEY_SET}, secret=admin)
            await self.ask(http, "PUT", f"/v1/apps/{app}/realm", {"realm": "house"}, secret=admin)
        self.consumer = await self.register(http)
        self.provider = await self.register(http, FILES, key["secret"])
        for device, app in ((self.consumer, APP), (self.provider, FILES)):
            token = {"userToken": user_token("ada", app)}
            await self.ask(http, "PATCH", "/v1/device", token, secret=device["credential"])
        offer = {"name": "Files", "version": "1.0", "services": [{"id": SERVICE, "version": "1.0.0.0"}], "keys": BUNDLE}
        await self.ask(http, "PUT", "/v1/device/services", offer, (204,), self.provider["credential"])
        self.requests = {}

    async def change(self, http):
        waiting = [id for id, it in self.requests.items() if it.is_asked and not it.may_be_replied]
        unsure = [id for id, it in self.requests.items() if not it.is_asked or it.may_be_replied and not it.is_replied]
        if unsure:
            # The same again is the same request, or the same reply.
            id = unsure[0]
            await (self.reply(http, id) if self.requests[id].is_asked else self.post(http, id))
        elif len(waiting) < self.most and self.random.random() < 0.5:
            self.requests[id := os.urandom(16).hex()] = Request()
            await self.post(http, id)
        elif waiting:
            await self.reply(http, self.random.choice(waiting))

    async def post(self, http, id):
        value = content(id.encode()) | {
            "id": id, "app": FILES, "device": self.provider["id"], "service": SERVICE, "version": "1.0.0.0",
            "method": "transfer",
        }
        await self.ask(http, "POST", "/v1/services/requests", value, (201,), self.consumer["credential"])
        self.requests[id].is_asked = True

    async def reply(self, http, id):
        self.requests[id].may_be_replied = True
        path = f"/v1/services/requests/{id}/reply"
        await self.ask(http, "POST", path, content(id[::-1].encode()), (204,), self.provider["credential"])
        self.requests[id].is_replied = True

    async def events(self, http, device, event):
        """The requests that events of this kind, which wait for the device, are about; with their versions."""
        _, _, page = await self.ask(http, "GET", "/v1/inbox?carillon=6&max=500", secret=device["credential"])
        frames = [it for it in page["envelopes"] if it["messageType"] == "service" and it["service"]["event"] == event]
        return {it["service"]["id"]: it["version"] for it in frames}

    def certain(self):
        return {id for id, it in self.requests.items() if it.is_asked and not it.may_be_replied}

    async def check(self, http, is_backup=False):
        if is_backup:
            asked = await self.events(http, self.provider, "request")
            if missing := self.in_backup - asked.keys():
                self.violation(f"a backup does not have the requests {sorted(missing)[:3]}")
            return
        deadline = time.monotonic() + PATIENCE
        while True:
            asked = await self.events(http, self.provider, "request")
            replied = await self.events(http, self.consumer, "reply")
            lost = [id for id in self.certain() if id not in asked]
            unanswered = [id for id, it in self.requests.items() if it.is_replied and id not in replied]
            if not lost and not unanswered:
                break
            if time.monotonic() > deadline:
                self.violation(f"requests are lost: {lost[:3]}, or replies are: {unanswered[:3]}")
                break
            await asyncio.sleep(0.1)
        if early := [id for id in replied if id in self.requests and not self.requests[id].may_be_replied]:
            self.violation(f"replied without a reply: {early[:3]}")
        self.ledger.counts["service replies that waited after a kill"] += len(replied)
        # A request that is finished at both ends is acknowledged and forgotten.
        over = [id for id, it in self.requests.items() if it.is_replied]
        for device, waiting in ((self.provider, asked), (self.consumer, replied)):
            results = [{"version": waiting[id], "result": "acknowledged"} for id in over if id in waiting]
            if results:
                await self.ask(
                    http, "POST", "/v1/inbox/results", {"results": results}, (204,), device["credential"])
        for id in over:
            del self.requests[id]
