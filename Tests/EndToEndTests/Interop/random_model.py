"""The messages that the random test of the client sent, and those that each user must receive once."""

import collections
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Message:
    text: str
    listener: str
    # Whether its user changed, so that the message may end unseen.
    is_void: bool = False
    is_accepted: bool = False
    ids: set = field(default_factory=set)
    # The runs of the listener that showed it.
    shown: list = field(default_factory=list)


@dataclass
class Request:
    number: str
    consumer: str
    user: str
    provider: str
    # Whether the provider keeps its user, so that the request must succeed.
    is_strict: bool
    file: bytes | None = None
    is_over: bool = False
    was_killed: bool = False
    is_void: bool = False
    ids: set = field(default_factory=set)
    # The runs of the provider whose handler was called.
    shown: list = field(default_factory=list)
    results: list = field(default_factory=list)


class Model:
    """Threads report events; `violations` has the forbidden ones."""

    def __init__(self):
        self.lock = threading.RLock()
        self.began = time.monotonic()
        self.journal, self.violations = [], []
        self.counts = collections.Counter()
        self.messages: dict[str, Message] = {}
        self.requests: dict[str, Request] = {}
        self.full = []
        # The last output of a command before its end, or while its storage was full: it may be printed once more.
        self.may_repeat = set()

    def note(self, text: str):
        with self.lock:
            self.journal.append(f"{time.monotonic() - self.began:7.2f} {text}")

    def wrong(self, text: str):
        with self.lock:
            self.note("VIOLATION " + text)
            self.violations.append(text)

    # The disk

    def disk_was_full_since(self, moment: float) -> bool:
        with self.lock:
            return any(end is None or end + 1 >= moment for _, end in self.full)

    # Messages

    def sending(self, text: str, listener: str) -> Message:
        with self.lock:
            self.messages[text] = message = Message(text, listener)
            return message

    def accepted(self, message: Message):
        with self.lock:
            message.is_accepted = True
            self.counts["messages accepted"] += 1

    def shown(self, listener: str, run: int, id: str, text: str):
        with self.lock:
            self.note(f"{listener}.{run} shows {text} ({id})")
            message = self.messages.get(text)
            if message is None or message.listener != listener:
                return self.wrong(f"{listener} shows {text}, which was not sent to it")
            message.ids.add(id)
            if len(message.ids) > 1:
                self.wrong(f"{text} was sent once, and comes under {sorted(message.ids)}")
            if message.shown and (run in message.shown or (listener, text) not in self.may_repeat):
                self.wrong(f"{listener} shows {text} in the runs {message.shown + [run]}")
            if not message.shown:
                self.counts["messages shown"] += 1
                later = [it for it in self.messages.values() if it.listener == listener and it.shown]
                if any(int(it.text.split("-")[-1]) > int(text.split("-")[-1]) for it in later):
                    self.wrong(f"{listener} shows {text} behind later messages")
            message.shown.append(run)

    def showed_last(self, listener: str, text: str):
        """A run of a listener ended, maybe before it could report that it had shown its last message."""
        with self.lock:
            self.may_repeat = {it for it in self.may_repeat if it[0] != listener}
            self.may_repeat.add((listener, text))

    def user_leaves(self, listener: str):
        """The user of a listener changes: messages that were not shown may never be shown."""
        with self.lock:
            for message in self.messages.values():
                if message.listener == listener and not message.shown:
                    message.is_void = True

    def missing_messages(self) -> list[str]:
        with self.lock:
            return [it.text for it in self.messages.values() if it.is_accepted and not it.is_void and not it.shown]

    # Requests

    def asking(self, request: Request):
        with self.lock:
            self.requests[request.number] = request
            self.note(
                f"{request.consumer} of {request.user} asks {request.provider} for {request.number}"
                + (" with a file" if request.file else "")
            )

    def handled(self, provider: str, run: int, user: str, id: str, number: str):
        with self.lock:
            self.note(f"{provider}.{run} of {user} handles {number} ({id})")
            request = self.requests.get(number)
            if request is None or request.provider != provider or request.user != user:
                return self.wrong(f"{provider} of {user} handles {number}, which is {request}")
            request.ids.add(id)
            if len(request.ids) > 1:
                self.wrong(f"{number} was asked once, and comes under {sorted(request.ids)}")
            if run in request.shown:
                self.wrong(f"{provider} handles {number} twice in the run {run}")
            request.shown.append(run)
            self.counts["requests handled"] += 1

    def result(self, request: Request, how: str, user: str, text: str, *, again_allowed=False):
        """`text` is the result; it may be printed again if the command that printed it could not report that."""
        with self.lock:
            self.note(f"{request.consumer} of {user} has the result of {request.number} by {how}: {text}")
            if request.user != user:
                self.wrong(f"the result of {request.number} of {request.user} is shown to {user}")
            key = (request.consumer, request.number)
            if request.results and (key not in self.may_repeat or text not in request.results):
                self.wrong(f"{request.number} has the results {request.results + [text]}")
            if not request.results:
                self.counts["results"] += 1
                self.counts["late results"] += how == "results"
            if again_allowed:
                self.may_repeat.add(key)
            else:
                self.may_repeat.discard(key)
            request.results.append(text)

    def request_of(self, id: str) -> Request | None:
        with self.lock:
            return next((it for it in self.requests.values() if id in it.ids), None)

    def consumer_leaves(self, consumer: str):
        with self.lock:
            for request in self.requests.values():
                if request.consumer == consumer and not request.results:
                    request.is_void = True

    def owed(self, consumer: str) -> list[str]:
        """Requests that reached their provider, and that have no result yet."""
        with self.lock:
            return [
                it.number for it in self.requests.values()
                if it.consumer == consumer and it.is_strict and it.shown and not it.results and not it.is_void
            ]  # fmt: skip

    def report(self) -> str:
        """The violations, and the events of the numbers that they name."""
        with self.lock:
            lines = self.violations[:20]
            names = {word.strip(",()") for text in lines for word in text.split() if "-" in word}
            found = [it for it in self.journal if any(name in it.split() for name in names) or it[8:9] == "*"]
            return "\n".join([*lines, "", *found[-200:]])
