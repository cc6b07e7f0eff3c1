"""The simulator of Apple's push service as a process that is killed too, and the pushes that it received."""

import asyncio
import json
import os
import signal

from server import GONE, Connection, free_port, send

KEY = "SIMULATED1"
TEAM = "SIMTEAM001"
START_SECONDS = 30
# A request that was read before the simulator stopped answering is in its list after this time.
SILENCE_SECONDS = 0.1


class Simulator:
    def __init__(self, executable, directory):
        self.executable = executable
        self.directory = directory
        self.port, self.control_port = free_port(1), free_port(2)
        self.process = None
        # All requests that it accepted, over all its runs.
        self.accepted = []
        # How many requests of this run are in the list.
        self.harvested = 0

    @property
    def settings(self):
        return {
            "CARILLON_APNS_CA": os.path.join(self.directory, "authority.pem"),
            "CARILLON_APNS_PRODUCTION": f"localhost:{self.port}",
        }

    @property
    def credentials(self):
        with open(os.path.join(self.directory, f"AuthKey_{KEY}.p8")) as key:
            return {"p8": key.read(), "keyID": KEY, "teamID": TEAM}

    async def api(self, method, path, value=None):
        with Connection(self.control_port) as http:
            body = b"" if value is None else json.dumps(value).encode()
            status, _, data = await http.request(method, f"/api/{path}", body=body)
        if status >= 300:
            raise SystemExit(f"the simulator answers {method} {path} with {status}: {data!r}")
        return json.loads(data) if data else None

    async def start(self):
        self.harvested = 0
        self.process = await asyncio.create_subprocess_exec(
            self.executable, "apns", "simulate", "--data", self.directory, "--environment", "production",
            "--listen", f"127.0.0.1:{self.port}", "--manage", "none", "--http", f"127.0.0.1:{self.control_port}",
            "--unknown-devices", "register", stdout=asyncio.subprocess.DEVNULL)
        async with asyncio.timeout(START_SECONDS):
            while True:
                try:
                    # Answers take a while, so that a kill finds pushes under way.
                    await self.api("PATCH", "conditions", {"roundTripMilliseconds": 20})
                    return
                except GONE:
                    if self.process.returncode is not None:
                        raise SystemExit(f"the simulator ended with {self.process.returncode}") from None
                    await asyncio.sleep(0.02)

    async def harvest(self):
        """Reads the requests that came since."""
        for request in await self.api("GET", f"requests?after={self.harvested}"):
            self.harvested = request["number"]
            if request.get("status") == 200:
                self.accepted.append(request)

    async def lose_no_answer(self):
        await self.api("DELETE", "faults")

    async def lose_an_answer(self):
        """The connection ends behind the next request, which is accepted."""
        await self.lose_no_answer()
        await self.api("POST", "faults", {"fault": "close", "at": "processed", "times": 1})

    async def kill(self):
        """Kills the process while requests are under way. The requests accepted before are known; then it accepts no more."""
        await self.lose_no_answer()
        await self.api("POST", "faults", {"fault": "silence"})
        await asyncio.sleep(SILENCE_SECONDS)
        await self.harvest()
        await self.end()

    async def end(self):
        if self.process is not None and self.process.returncode is None:
            send(self.process, signal.SIGKILL)
            await self.process.wait()
