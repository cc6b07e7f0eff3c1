"""Backups that are made under load, and compared after they were restored."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import time

from kinds import Refused
from server import Server

# A restored server must not push, nor call backends: its pushes and calls would hide those that the server owes.
ALONE = {"CARILLON_APNS_PRODUCTION": "localhost:1", "CARILLON_ALLOW_PRIVATE_ADDRESSES": "false"}
# Of how many messages the outcome is asked for.
ASKED = 40


class Backup:
    """Guarantee: a backup is as all was at one moment after the command began. A message that waited all the time waits in it; a message
    that ended before does not; its outcome is the same."""

    def __init__(self, run, directory):
        self.run = run
        self.ledger = run.ledger
        self.path = os.path.join(directory, "backup")
        self.directory = os.path.join(directory, "restored")
        self.ended_at = 0.0
        # By devices: messages that must be there. And messages that must not.
        self.waiting = {}
        self.over = []

    async def make(self):
        if os.path.exists(self.path):
            os.remove(self.path)
            shutil.rmtree(self.path + ".attachments", ignore_errors=True)
        began = time.time()
        self.over = [it for it in self.ledger.answered[-5000:] if it.final_at is not None and not it.is_soft]
        for kind in self.run.kinds:
            kind.backup_begins()
        status, text = await self.command("backup", self.path, "--data", self.run.server.directory)
        self.ended_at = time.time()
        for kind in self.run.kinds:
            kind.backup_ended()
        for device in self.run.devices:
            self.waiting[device] = [it for it in device.open.values() if it.must_wait(began, self.ended_at)]
        if status != 0:
            self.ledger.violation(f"a backup ends with {status}: {text}")

    async def compare(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        status, text = await self.command("restore", self.path, "--data", self.directory)
        if status != 0:
            return self.ledger.violation(f"a restore ends with {status}: {text}")
        server = self.run.server
        restored = Server(server.executable, self.directory, server.settings | ALONE)
        try:
            await restored.start()
            with restored.connect() as http:
                await self.compare_outcomes(http)
                for device in self.run.devices:
                    await self.compare_waiting(http, device)
                for kind in self.run.kinds:
                    with contextlib.suppress(Refused):
                        await kind.check(http, is_backup=True)
        finally:
            await restored.end()
            shutil.rmtree(self.directory, ignore_errors=True)

    async def compare_outcomes(self, http):
        over = [it for it in self.over if it.answer == "waiting"]
        waiting = [message for messages in self.waiting.values() for message in messages]
        for is_over, messages in ((True, over), (False, waiting)):
            for message in self.run.random.sample(messages, min(ASKED, len(messages))):
                status, _, body = await http.request("GET", f"/message/{message.id}")
                shown = json.loads(body).get("outcome") if status == 200 else f"answered {status}"
                allowed = {message.outcome or shown} - {None} if is_over else {None, "expired"}
                if status != 200 or shown not in allowed:
                    self.ledger.violation(f"in a backup, the outcome is {shown}, and {'not' if is_over else 'must'} wait", message)
                self.ledger.counts["outcomes in backups"] += 1

    async def compare_waiting(self, http, device):
        asked_at = time.time()
        present = await self.read_inbox(http, device)
        for message in self.waiting[device]:
            if message.tag not in present and not message.may_expire_by(time.time()):
                self.ledger.violation(f"a backup of second {self.ended_at - self.ledger.began_at:.1f} has it not", message)
        over = {message.tag for message in self.over}
        for tag, body in present.items():
            message = self.ledger.messages.get(tag)
            if message is None or message.device is not device or message.body != body:
                self.ledger.violation(f"a backup has {tag} for {device.name}, which is not what was sent")
            elif tag in over or message.sent_at > self.ended_at or message.expired_by < asked_at:
                self.ledger.violation("waits in a backup", message)
        self.ledger.counts["messages in backups"] += len(present)

    async def read_inbox(self, http, device):
        """Takes all that waits; the restored server is not used any more."""
        present = {}
        while True:
            status, _, data = await http.request("GET", "/v1/inbox?max=500", secret=device.credential)
            if status != 200:
                self.ledger.violation(f"a restored server answers a poll of {device.name} with {status}: {data[:200]!r}")
                return present
            page = json.loads(data)
            for frame in page["envelopes"]:
                body = base64.urlsafe_b64decode(frame.get("data", "") + "==")
                present[body[:16].decode("latin-1")] = body
            if not page["more"]:
                return present
            results = [{"version": frame["version"], "result": "acknowledged"} for frame in page["envelopes"]]
            body = json.dumps({"results": results}).encode()
            await http.request("POST", "/v1/inbox/results", body=body, secret=device.credential)

    async def command(self, *arguments):
        server = self.run.server
        process = await asyncio.create_subprocess_exec(
            server.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env=server.settings)
        text, _ = await process.communicate()
        return process.returncode, text.decode()
