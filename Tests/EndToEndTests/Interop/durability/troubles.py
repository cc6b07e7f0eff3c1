"""Faults of the disk, which strace injects into the system calls of the server."""

import asyncio
import os
import signal
import time

from server import PATIENCE, send

SLOW, FAILING, FULL = "slow fdatasync", "failing fdatasync", "a full disk"
INJECTED = {
    SLOW: ("fdatasync,fsync", "delay_enter=200000"),
    FAILING: ("fdatasync,fsync", "error=EIO"),
    FULL: ("pwrite64", "error=ENOSPC"),
}
ATTACH_SECONDS = 20
DETACH_SECONDS = 5


class Trouble:
    """One fault, from when it begins until it ends.

    Guarantee: while no commit can succeed, nothing that needs one is answered as done, and `/health/ready` is 503. Afterwards the server
    becomes ready by itself, and writes what it kept.
    """

    def __init__(self, name, server, ledger):
        self.name = name
        self.server = server
        self.ledger = ledger
        self.strace = None

    @property
    def prevents_commits(self):
        return self.name in (FAILING, FULL)

    async def begin(self, seconds):
        """Begins the fault; returns after so many seconds."""
        self.ledger.trouble_began()
        await self.attach()
        if self.prevents_commits:
            self.ledger.no_commit_since = time.time()
        ends_at = time.monotonic() + seconds
        if self.prevents_commits:
            if not await self.becomes(503):
                self.ledger.violation("no commit succeeds, and /health/ready is 200")
            elif await self.becomes(200, max(0.3, ends_at - time.monotonic())):
                self.ledger.violation("no commit succeeds, and /health/ready is 200 again")
        await asyncio.sleep(max(0, ends_at - time.monotonic()))

    async def recover(self, seconds):
        """Ends the fault; the server has this number of seconds for its unwritten data."""
        await self.end()
        self.ledger.trouble_ended()
        if not await self.becomes(200):
            self.ledger.violation("/health/ready is not 200 though the disk has no fault any more")
        await asyncio.sleep(seconds)

    async def becomes(self, wanted, seconds=PATIENCE):
        """Whether the server is ready, or not, within so many seconds."""
        deadline = time.monotonic() + seconds
        with self.server.connect() as http:
            while time.monotonic() < deadline:
                status, _, _ = await http.request("GET", "/health/ready")
                if status == wanted:
                    return True
                await asyncio.sleep(0.05)
        return False

    async def attach(self):
        calls, fault = INJECTED[self.name]
        pid = self.server.process.pid
        self.strace = await asyncio.create_subprocess_exec(
            "strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={calls}",
            "-e", f"inject={calls}:{fault}", stderr=asyncio.subprocess.PIPE)
        deadline = time.monotonic() + ATTACH_SECONDS
        while not self.is_attached(pid):
            if self.strace.returncode is not None or time.monotonic() > deadline:
                has_ended = self.strace.returncode is not None
                text = (await self.strace.stderr.read(500)).decode() if has_ended else "no answer"
                raise SystemExit(f"strace cannot attach to the server: {text}")
            await asyncio.sleep(0.01)

    def is_attached(self, pid):
        """Whether strace has every thread."""
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/status") as status:
                    if "\nTracerPid:\t0\n" in status.read():
                        return False
        except OSError:
            return False
        return True

    async def end(self):
        """Ends the fault if it has not ended. The server may have been killed before."""
        if self.strace is None:
            return
        if self.server.process.returncode is None:
            self.ledger.trouble_ends()
        send(self.strace, signal.SIGTERM)
        try:
            async with asyncio.timeout(DETACH_SECONDS):
                await self.strace.wait()
        except TimeoutError:
            # It waits for a thread that does not stop; the system detaches it from all of them.
            send(self.strace, signal.SIGKILL)
            await self.strace.wait()
        self.strace = None
