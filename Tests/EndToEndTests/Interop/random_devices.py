"""The devices of the random test. Each is a state directory with commands of `carillon`, which are started again when they end."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from carillon_peer import APP, ENVIRONMENT
from random_model import Model, Request
from service_peer import user_token
from test_services import FILES, METHOD

LISTENING = "com.example.app.news"
DEADLINE = 600  # seconds; longer than a run may need to recover
LOOSE_DEADLINE = 20
PATIENCE = 90
# How a request may end whose provider got another user, beside its deadline.
GONE = {"user_mismatch", "application_not_found", "service_not_found", "service_version_not_found", "deadline_exceeded"}


class Device:
    """A state directory, with the commands that use it one after the other."""

    def __init__(self, world, name: str, app: str, user: str):
        self.world, self.name, self.app, self.user = world, name, app, user
        self.model: Model = world.model
        self.chance = random.Random(f"{world.seed} {name}")
        self.state = world.disk / name
        self.errors = world.directory / f"{name}.err"
        self.process: subprocess.Popen | None = None
        self.run = 0
        self.was_killed = self.was_stopped = False
        self.next_user: str | None = None
        self.thread = threading.Thread(target=self.live_on, name=name, daemon=True)

    def start(self, *arguments) -> float:
        """Starts a command, and answers when."""
        self.run += 1
        self.was_killed = self.was_stopped = False
        key = self.world.server.files_key if self.app == FILES else self.world.server.client_key
        environment = ENVIRONMENT | {
            "CARILLON_SERVER": self.world.relay.url,
            "CARILLON_KEY": key,
            "CARILLON_USER_TOKEN": user_token(self.user, self.app),
        }
        began = time.monotonic()
        with self.errors.open("a") as errors:
            errors.write(f"--- {self.run} at {began - self.model.began:.2f}: {' '.join(map(str, arguments))}\n")
            errors.flush()
            self.process = subprocess.Popen(
                [self.world.executable, *arguments, "--app", self.app, "--state", self.state, "--json"],
                stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        return began

    def kill(self):
        self.was_killed = True
        self.model.note(f"* {self.name}.{self.run} is killed")
        self.model.counts["kills"] += 1
        self.process.kill()

    def stop(self):
        self.was_stopped = True
        self.model.note(f"* {self.name}.{self.run} is stopped")
        self.process.terminate()

    def said(self) -> str:
        """The last lines on standard error."""
        return self.errors.read_text().split("\n--- ")[-1][-600:]

    def live_on(self):
        try:
            self.live()
        except Exception as error:  # A thread that ends by itself must not pass.
            self.model.wrong(f"the test's own {self.name} failed: {error!r}")
            raise

    def judge(self, began: float, code: int):
        """Whether a command may end like this that goes on until it is stopped."""
        self.model.note(f"{self.name}.{self.run} ended with {code}")
        is_full = code == 73 and self.model.disk_was_full_since(began)
        if is_full:
            self.model.counts["ends by a full disk"] += 1
        # `services list` has nothing to finish, and ends by the signal.
        if not (self.was_killed or is_full or self.was_stopped and code in (0, -signal.SIGTERM)):
            self.model.wrong(f"{self.name}-{self.run} ended with {code}: {self.said()}")


class Listener(Device):
    """`carillon listen`, and the data that a sender needs of it."""

    def __init__(self, world, name, user):
        super().__init__(world, name, APP, user)
        self.endpoint = self.former = None
        self.is_registered = False

    def live(self):
        while not self.world.is_over:
            if self.next_user or not self.is_registered:
                self.sign_in()
                continue
            began = self.start("listen", "--channel", LISTENING)
            last, failed = None, None
            for line in self.process.stdout:
                event = json.loads(line)
                if event["event"] == "message":
                    last = event["body"]
                    self.model.shown(self.name, self.run, event["id"], last)
                elif event["event"] == "opened":
                    self.opened(event["endpoint"])
                elif event["event"] == "error":
                    failed = event["code"]
            code = self.process.wait()
            if last:
                self.model.showed_last(self.name, last)
            if failed == 203 and self.former:
                self.model.note(f"{self.name}.{self.run}: the channel was closed for another user")
                continue
            self.judge(began, code)
            time.sleep(self.chance.uniform(0, 0.3))

    def opened(self, endpoint: str):
        if endpoint == self.former:
            return
        if self.endpoint not in (None, endpoint):
            self.model.wrong(f"{self.name} has another endpoint than before")
        self.endpoint, self.former = endpoint, None

    def sign_in(self):
        """Sets another user of the device: messages to the former one may end."""
        user = self.next_user or self.user
        if self.endpoint:
            self.former, self.endpoint = self.endpoint, None
            self.model.user_leaves(self.name)
        self.user = user
        began = self.start("services", "list")
        self.process.communicate()
        code = self.process.returncode
        if code == 0:
            self.model.note(f"* {self.name} belongs to {user}")
            self.model.counts["changes of user"] += self.is_registered
            self.is_registered, self.next_user = True, None
        elif code != 69:
            self.judge(began, code)


class Provider(Device):
    """`carillon services provide --echo`."""

    def __init__(self, world, name, user):
        super().__init__(world, name, FILES, user)
        self.id = None

    def live(self):
        while not self.world.is_over:
            if self.next_user:
                self.user, self.next_user = self.next_user, None
                self.model.note(f"* {self.name} gets the user {self.user}")
                self.model.counts["changes of user"] += 1
            began = self.start("services", "provide", "--method", METHOD, "--echo")
            for line in self.process.stdout:
                event = json.loads(line)
                if event["event"] == "device":
                    if self.id not in (None, event["device"]):
                        self.model.wrong(f"{self.name} became another device")
                    self.id = event["device"]
                elif event["event"] == "request":
                    number = json.loads(event["parameters"])
                    self.model.handled(self.name, self.run, self.user, event["id"], number)
            self.judge(began, self.process.wait())
            time.sleep(self.chance.uniform(0, 0.3))


class Consumer(Device):
    """`carillon services call`, and `results` for the calls that were killed."""

    def __init__(self, world, name, user):
        super().__init__(world, name, APP, user)
        self.count = 0
        self.has_loose = False

    def live(self):
        while not self.world.is_settling:
            if self.chance.random() < 0.15:
                self.change_user()
            self.call()
            if self.chance.random() < 0.4:
                self.read_results(self.chance.choice([0, 1, 2]), may_kill=True)
        deadline = time.monotonic() + PATIENCE
        while self.model.owed(self.name) and time.monotonic() < deadline:
            self.read_results(2)
        # Nothing comes twice.
        self.read_results(1)

    def change_user(self):
        self.user = self.chance.choice([it for it in self.world.users if it != self.user])
        self.model.note(f"* {self.name} gets the user {self.user}")
        self.model.counts["changes of user"] += 1
        self.model.consumer_leaves(self.name)
        self.has_loose = False

    def call(self):
        self.count += 1
        is_strict = self.chance.random() < 0.7
        provider = self.world.homes[self.user] if is_strict else self.world.rover
        request = Request(f"{self.name}-{self.count}", self.name, self.user, provider.name, is_strict)
        self.has_loose = self.has_loose or not is_strict
        arguments = ["services", "call", METHOD, "--of", f"{FILES}/{provider.id}"]
        arguments += ["--parameters", json.dumps(request.number)]
        arguments += ["--deadline", str(DEADLINE if is_strict else LOOSE_DEADLINE)]
        if self.chance.random() < 0.4:
            request.file = os.urandom(self.chance.choice([100, 30_000]))
            path = self.world.directory / f"{request.number}.bin"
            path.write_bytes(request.file)
            arguments += ["--attach", str(path)]
        kill_after = self.chance.uniform(0, 2.5) if self.chance.random() < 0.4 else None
        self.model.asking(request)
        began = self.start(*arguments)
        out = self.finish("reply", kill_after, DEADLINE)
        for event in out:
            again = self.model.disk_was_full_since(began)
            self.model.result(request, "call", self.user, event["value"], again_allowed=again)
            self.check(request, event)
        request.was_killed, request.is_over = self.was_killed, True
        code = self.process.returncode
        self.model.note(f"the call of {request.number} ended with {code}")
        if not self.was_killed:
            self.judge_call(request, began, code, len(out))

    def judge_call(self, request: Request, began: float, code: int, results: int):
        said = self.said()
        if code == 0:
            if results != 1:
                self.model.wrong(f"the call of {request.number} printed {results} results")
        elif code == 73 and self.model.disk_was_full_since(began):
            self.model.counts["ends by a full disk"] += 1
            # Its result, if it has one, comes later.
        elif not request.is_strict and any(f"carillon: {name}:" in said for name in GONE):
            self.model.result(request, "call", self.user, "failed", again_allowed=self.model.disk_was_full_since(began))
        else:
            self.model.wrong(f"the call of {request.number} ended with {code}: {said}")

    def finish(self, name: str, kill_after: float | None, patience: float) -> list[dict]:
        """Kills a command after a time, or waits for its end; answers the events that it printed under a name."""
        try:
            out, _ = self.process.communicate(timeout=patience if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            if kill_after is None:
                self.model.wrong(f"{self.name}-{self.run} does not end")
            self.kill()
            out, _ = self.process.communicate()
        lines = out.splitlines()
        if self.was_killed and lines and not out.endswith("\n"):
            lines.pop()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def check(self, request: Request, event: dict):
        if json.loads(event["value"]) != request.number:
            self.model.wrong(f"{request.number} has the result {event['value']}")
        expected = [request.file] if request.file else []
        if [open(path, "rb").read() for path in event["attachments"]] != expected:
            self.model.wrong(f"the files of {request.number} are not as they were sent")

    def read_results(self, wait: int, may_kill=False):
        kill_after = self.chance.uniform(0.2, 2) if may_kill and self.chance.random() < 0.3 else None
        began = self.start("services", "results", "--wait", str(wait))
        events = self.finish("result", kill_after, PATIENCE)
        code = self.process.returncode
        again = self.was_killed or self.model.disk_was_full_since(began)
        for event in events:
            request = self.model.request_of(event["id"])
            if "value" in event:
                request = request or self.model.requests.get(json.loads(event["value"]))
                self.model.result(request, "results", self.user, event["value"], again_allowed=again)
                self.check(request, event)
            elif request is None:
                self.model.note(f"{self.name} hears that {event['id']} failed with {event['error']}")
                if not self.has_loose:
                    self.model.wrong(f"a request of {self.name}-{self.run} failed: {event['error']}: {event['text']}")
            else:
                self.model.result(request, "results", self.user, "failed", again_allowed=again)
                if request.is_strict or event["error"] not in GONE:
                    self.model.wrong(f"{request.number} failed with {event['error']}: {event['text']}")
        is_full = code == 73 and self.model.disk_was_full_since(began)
        if not (self.was_killed or is_full or code == 0):
            self.model.wrong(f"{self.name}-{self.run} (results) ended with {code}: {self.said()}")
