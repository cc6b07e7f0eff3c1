"""Random faults around the client: nothing is lost, nothing comes twice, and a request has at most one result.

A relay loses, delays, repeats and replaces what the client and the server say; commands and the server are killed with SIGKILL, the
disk of the devices is full for a while, and devices change their user. `CARILLON_CLIENT_ROUNDS` is the least number of rounds, of about two
seconds each. `--seed`, or `CARILLON_SEED`, repeats what is chosen, not when the processes come to what.
"""

import contextlib
import os
import random
import sqlite3
import subprocess
import threading
import time

import pytest

from carillon_peer import ENVIRONMENT, Server, await_value
from faulty_relay import FAULTS, SOCKET_FAULTS, FaultyRelay
from random_devices import PATIENCE, Consumer, Listener, Provider
from random_model import Model
from test_services import prepare

ROUNDS = int(os.environ.get("CARILLON_CLIENT_ROUNDS", "10"))
SHARE_OF_FAULTS = 0.3
# On a slow machine less happens in a round: there are up to so many times as many, until enough has happened.
MOST_TIMES = 4


class World:
    """The server behind its relay, the devices, and the senders."""

    users = ["ada", "bob"]

    def __init__(self, executable, directory, disk, seed):
        self.executable, self.directory, self.disk, self.seed = executable, directory, disk, seed
        self.chance = random.Random(seed)
        self.model = Model()
        self.is_settling = self.is_over = False
        self.server = Server(executable, directory / "server")
        self.relay = FaultyRelay(self.server.port, seed, SHARE_OF_FAULTS)
        self.server.public_url = self.relay.url
        self.server.prepare()
        self.server.start()
        prepare(self.server)
        self.homes = {user: Provider(self, f"home-{user}", user) for user in self.users}
        self.rover = Provider(self, "rover", "ada")
        self.listeners = [Listener(self, f"listener-{user}", user) for user in self.users]
        self.consumers = [Consumer(self, f"consumer-{number}", user) for number, user in enumerate(self.users)]
        self.senders = [threading.Thread(target=self.send, args=(it,), daemon=True) for it in self.listeners]

    @property
    def lasting(self):
        return [*self.homes.values(), self.rover, *self.listeners]

    def start(self):
        for device in self.lasting:
            device.thread.start()
        for device in self.lasting[:3]:
            await_value(lambda: device.id, bool, f"the device of {device.name}", PATIENCE)
        # A provider can be called when the server has its offer.
        await_value(lambda: self.count("service_offer"), lambda it: it == 3, "the offers", PATIENCE)
        for thread in [*(it.thread for it in self.consumers), *self.senders]:
            thread.start()

    def count(self, rows: str) -> int:
        """The number of rows of a table of the server, or of some of them."""
        with contextlib.closing(sqlite3.connect(self.server.data / "carillon.sqlite")) as database:
            return database.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]

    def send(self, listener):
        """Sends one message after the other, each until the server accepts or refuses it."""
        chance, number = random.Random(f"{self.seed} sender {listener.name}"), 0
        while not self.is_settling:
            time.sleep(chance.uniform(0, 0.5))
            endpoint = listener.endpoint
            if endpoint is None:
                continue
            number += 1
            message = self.model.sending(f"{listener.name}-message-{number}", listener.name)
            if listener.endpoint != endpoint:
                message.is_void = True
            self.send_until_accepted(listener, message, endpoint)

    def send_until_accepted(self, listener, message, endpoint):
        while True:
            sent = subprocess.run(
                [self.executable, "send", endpoint, message.text, "--idempotency-key", message.text, "--json"],
                capture_output=True, text=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if sent.returncode == 0:
                self.model.note(f"{message.text} is accepted")
                return self.model.accepted(message)
            if sent.returncode not in (69, 75):
                # A message whose acceptance the relay took is refused when its channel was closed since.
                if not message.is_void and not message.shown:
                    self.model.wrong(f"{message.text} is refused: {sent.returncode} {sent.stderr}")
                return
            self.model.counts["messages sent again"] += 1
            time.sleep(0.05)

    # Troubles

    def trouble(self, filler):
        """The events of one round, beside the faults of the relay."""
        kind = self.chance.choice(["server", "device", "device", "stop", "user", "disk"])
        self.model.counts["trouble: " + kind] += 1
        device = self.chance.choice(self.lasting)
        if kind == "server":
            self.model.note("* the server is killed")
            self.server.kill()
            self.server.start()
        elif kind == "device":
            device.kill()
        elif kind == "stop":
            device.stop()
        elif kind == "user":
            device = self.chance.choice([self.rover, *self.listeners])
            device.next_user = next(it for it in self.users if it != device.user)
            self.chance.choice([device.kill, device.stop])()
        else:
            self.fill_disk(filler, self.chance.uniform(0.3, 3))

    def fill_disk(self, filler, seconds: float):
        period = [time.monotonic(), None]
        with self.model.lock:
            self.model.full.append(period)
        self.model.note("* the disk is full")
        filler.fill()
        if self.chance.random() < 0.5:
            self.chance.choice(self.lasting).kill()
        time.sleep(seconds)
        filler.empty()
        period[1] = time.monotonic()
        self.model.note("* the disk has room again")

    def settle(self):
        """Ends the faults, and waits for all that must come."""
        self.relay.share = 0
        self.is_settling = True
        self.model.note("* the faults end")
        for thread in [*self.senders, *(it.thread for it in self.consumers)]:
            thread.join(PATIENCE * 2)
            assert not thread.is_alive(), f"{thread.name} does not end\n{self.model.report()}"
        deadline = time.monotonic() + PATIENCE
        while self.model.missing_messages() and time.monotonic() < deadline:
            time.sleep(0.1)
        for text in self.model.missing_messages():
            self.model.wrong(f"{text} is lost")
        for consumer in self.consumers:
            for number in self.model.owed(consumer.name):
                self.model.wrong(f"the result of {number} is lost")
        # A request whose call was killed may come to its provider only now.
        await_value(lambda: self.count("service_request WHERE state < 2"), lambda it: it == 0, "the end of all requests", PATIENCE)

    def end(self):
        self.is_over = True
        for device in [*self.lasting, *self.consumers]:
            if device.process and device.process.poll() is None:
                device.was_killed = True
                device.process.kill()
        for device in self.lasting:
            if device.thread.is_alive():
                device.thread.join(PATIENCE)
        self.server.end()
        self.relay.close()


def too_little(world) -> list:
    """Returns the events that occurred too rarely until now."""
    counts, faults = world.model.counts, world.relay.counts
    least = {"messages shown": 1, "results": 0.2, "kills": 0.3, "requests handled": 0.1}
    missing = [f"{name}: {counts[name]}" for name, share in least.items() if counts[name] < share * ROUNDS]
    if sum(faults.values()) < 3 * ROUNDS:
        missing.append(f"faults: {sum(faults.values())}")
    # In a short run one kind may be missing by chance.
    if ROUNDS >= 40:
        missing += [f"no {kind}" for kind in [*FAULTS, *SOCKET_FAULTS] if faults[kind] == 0]
    return missing


@pytest.mark.timeout(240 + ROUNDS * 10 * MOST_TIMES)
@pytest.mark.parametrize("small_disk", ["96m"], indirect=True)
def test_nothing_is_lost_and_nothing_comes_twice(executable, tmp_path, small_disk, filler, seed):
    world = World(executable, tmp_path, small_disk, seed)
    model = world.model
    try:
        world.start()
        rounds = 0
        while rounds < ROUNDS or rounds < MOST_TIMES * ROUNDS and too_little(world):
            rounds += 1
            time.sleep(world.chance.uniform(0.5, 2))
            world.trouble(filler)
        world.settle()
    finally:
        world.end()
        print(dict(sorted((model.counts + world.relay.counts).items())))
    assert not model.violations, model.report()
    assert too_little(world) == []
