"""The common part of all kinds of things that the server keeps: they are changed under load, and read after each kill."""

import asyncio
import json
import time

from server import APP, GONE


class Refused(Exception):
    """The server refused a change for now, as it may. The change may have been made."""


class Cell:
    """A value that changes at the server, and its possible states: the value of the last change that was answered, or of a change
    after it whose answer did not come."""

    def __init__(self, value):
        self.possible = {value}
        self.in_backup = None
        self.is_backup_open = False

    def trying(self, value):
        self.possible.add(value)
        if self.is_backup_open:
            self.in_backup.add(value)

    def done(self, value):
        self.possible = {value}

    def saw(self, value, is_backup=False):
        """Whether the server may return it. Without a change under way, the value is known from then on."""
        if is_backup:
            return self.in_backup is None or value in self.in_backup
        is_right = value in self.possible
        self.possible = {value}
        return is_right

    def backup_begins(self):
        self.in_backup, self.is_backup_open = set(self.possible), True

    def backup_ended(self):
        self.is_backup_open = False


class Kind:
    """One kind of thing, with one worker that changes it."""

    name = ""

    def __init__(self, run):
        self.run = run
        self.server = run.server
        self.ledger = run.ledger
        self.random = run.random_for(self.name)
        # The state that the last backup must have.
        self.in_backup = set()

    async def prepare(self, http):
        """Creates the objects that exist from the beginning."""

    async def change(self, http):
        """Makes one change."""

    async def check(self, http, is_backup=False):
        """Compares the server's state with its answers. Nothing is under way.

        With `is_backup`, `http` leads to a server that was restored from the last backup, and nothing is concluded from its answers.
        """

    async def finish(self, http):
        """Makes the checks at the end of the run."""

    def coming(self):
        """Returns the counts of `finish` if there is no fault."""
        return {}

    async def end(self):
        """Ends the processes beside the server."""

    def cells(self):
        """Returns the cells that a backup must have right."""
        return []

    def certain(self):
        """Returns the names of the objects that are certainly at the server. A backup must contain those that stay certain."""
        return set()

    def backup_begins(self):
        self.in_backup = self.certain()
        for cell in self.cells():
            cell.backup_begins()

    def backup_ended(self):
        self.in_backup &= self.certain()
        self.ledger.counts["things that a backup must have"] += len(self.in_backup)
        for cell in self.cells():
            cell.backup_ended()

    def violation(self, text):
        self.ledger.violation(f"{self.name}: {text}")

    async def work(self):
        """Changes things until the server is killed."""
        with self.server.connect() as http:
            while not self.server.is_killed:
                try:
                    await self.change(http)
                    self.ledger.counts[self.name] += 1
                    await asyncio.sleep(self.random.uniform(0.005, 0.06))
                except Refused:
                    self.ledger.counts["changes refused"] += 1
                    await asyncio.sleep(0.05)
                except GONE as error:
                    http.close()
                    # Connections can end while the disk has a fault.
                    if not self.server.is_killed and not self.ledger.may_refuse():
                        return self.violation(f"lost its connection: {error!r}")

    async def ask(
        self, http, method, path, value=None, expected=(200,), secret=None, headers=(), body=None, commits=False
    ):
        """Returns the status, the fields of the head and the body, as JSON where it is JSON.

        `commits`: the request changes something for certain, so that an answer of success needs a commit.
        """
        if body is None:
            body = b"" if value is None else json.dumps(value).encode()
        began = time.time()
        status, fields, data = await http.request(method, path, headers, body, secret)
        if status in expected:
            if commits:
                self.ledger.must_be_committed(began, f"{method} {path}")
            return status, fields, json.loads(data) if data and "json" in fields.get("content-type", "") else data
        # An item takes no update while firings of earlier ones are left, as after a kill.
        is_busy = status == 429 and b"item_busy" in data
        if not is_busy and (status not in (503, 507) or not self.ledger.may_refuse()):
            self.violation(f"{method} {path} is answered {status}: {data[:200]!r}")
        raise Refused()

    async def change_cell(self, http, cell, value, method, path, body=None, expected=(200,), secret=None):
        """Changes the object of a cell."""
        commits = value not in cell.possible
        cell.trying(value)
        answer = await self.ask(http, method, path, body, expected, secret, commits=commits)
        cell.done(value)
        return answer

    def compare(self, cell, value, what, is_backup):
        possible = cell.in_backup if is_backup else cell.possible
        if not cell.saw(value, is_backup):
            self.violation(f"{what} is {value!r}{' in a backup' if is_backup else ''}, and may be {possible!r}")

    async def register(self, http, app=APP, key=None, **details):
        """Registers a device."""
        _, _, made = await self.ask(http, "POST", "/v1/devices", details, (201,), key or self.run.client_key)
        return made

    async def open_channel(self, http, credential, channel):
        """Opens a channel; returns its token."""
        _, _, made = await self.ask(http, "POST", "/v1/device/channels", {"channelID": channel}, (201,), credential)
        return made["token"]
