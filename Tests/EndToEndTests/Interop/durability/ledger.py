"""The answers to the senders, the envelopes and reports of the devices, and the consequences for each message.

Times are those of the system's clock, which is the server's as well: a message expires to the millisecond.
"""

from collections import Counter

from journal import Journal


class Ledger(Journal):
    """Compares the reports of senders and devices."""

    def __init__(self):
        super().__init__()
        self.messages = {}
        self.answered = []
        # Of each topic of a device the messages that may wait, in the order in which they were sent.
        self.topics = {}
        # Messages that were acknowledged before they were written, with those whose place they took.
        self.overtaken = []
        # Messages of TTL 0 that were delivered to a connection of this server process.
        self.offered = []
        # Messages that have no answer yet.
        self.under_way = set()
        # When the last request began whose answer had to wait for the disk.
        self.synced_at = 0.0

    def settle(self, message, at, outcome=None):
        """The message waits no more."""
        if message.final_at is None or message.is_soft:
            message.final_at, message.is_soft = at, False
        if outcome is not None:
            message.outcome = outcome

    def is_over(self, message, moment):
        """Whether the message waited no more at that moment."""
        if message.final_at is None or message.final_at >= moment:
            return False
        # A message was acknowledged before it was written, and its place in the topic cannot be taken while the disk has a fault.
        return not (message.is_soft and self.was_unwritten(message.final_at))

    # Senders

    def sending(self, message):
        """Before each request, also when one is repeated that had no answer."""
        if message.tag not in self.messages:
            self.messages[message.tag] = message
            if not message.is_volatile:
                message.device.open[message.tag] = message
            if message.topic:
                self.topics.setdefault((message.device.id, message.topic), []).append(message)
        if message.answered_at is None:
            self.under_way.add(message)
            for earlier in self.earlier(message):
                earlier.ends.add("replaced")

    def earlier(self, message):
        chain = self.topics.get((message.device.id, message.topic), [])
        return chain[: chain.index(message)] if message in chain else []

    def later(self, message):
        chain = self.topics.get((message.device.id, message.topic), [])
        return chain[chain.index(message) + 1 :] if message in chain else []

    def accepted(self, message, id, ttl, outcome, began, now):
        """A 201, to the first request or a repeated one."""
        if message.id not in (None, id):
            self.violation(f"an answer names {id}", message)
        if ttl != message.ttl:
            self.violation(f"an answer says TTL {ttl}", message)
        message.id = id
        is_first = message.answered_at is None
        if is_first:
            self.counts["accepted"] += 1
            self.under_way.discard(message)
            self.answered.append(message)
            message.answer, message.answered_at, message.accepted_by = outcome, now, now
        if message.is_volatile:
            self.accepted_volatile(message, outcome, is_first)
        elif outcome == "waiting":
            if is_first:
                self.must_be_committed(message.sent_at, f"message {message.id}")
            self.heard(message, None, began, now)
            message.stored_at = message.stored_at or now
            self.synced_at = max(self.synced_at, began)
        else:
            self.heard(message, outcome, began, now)
        if is_first:
            self.took_place(message, outcome != "waiting" and not message.has_key, now)

    def accepted_volatile(self, message, outcome, is_first):
        if is_first and outcome == "offered":
            self.counts["offered"] += 1
            self.offered.append(message)
        elif is_first and outcome == "dropped":
            self.counts["dropped"] += 1
        if message.device.never_connects and outcome != "dropped":
            self.violation(f"TTL 0 to a device without a connection is answered {outcome}", message)
        if outcome == "dropped" and message.was_seen and not message.has_key:
            self.violation("dropped, and it came", message)
        if outcome not in {"offered"} | message.possible_outcomes(0):
            self.violation(f"TTL 0 is answered {outcome}", message)

    def took_place(self, message, did_overtake, now):
        """Earlier ones in its topic are final with its answer, except those that a kill may undo."""
        earlier = [other for other in self.earlier(message) if other.final_at is None or other.is_soft]
        if did_overtake:
            self.counts["acknowledged before it was written"] += 1
            self.overtaken.append((message, earlier))
        for other in earlier:
            if other.final_at is None:
                self.counts["replaced"] += other.stored_at is not None
                other.final_at, other.is_soft = now, did_overtake
            elif not did_overtake:
                self.settle(other, now)

    def refused(self, message, status):
        """Nothing is stored of it."""
        if status == 503 and self.may_refuse():
            # A commit that failed can be found after a kill: the message may be stored.
            self.counts["messages refused"] += 1
            return
        self.counts["refused"] += 1
        if status != 429:
            self.violation(f"sending is answered {status}", message)
        self.under_way.discard(message)
        self.close(message, message.sent_at)

    def trying(self, message, outcome):
        """Before the request for this end, which a kill may prevent."""
        if message.final_at is None or message.is_soft:
            message.ends.add(outcome)

    def took_back(self, message, status, began, now):
        """The answer to DELETE."""
        self.synced_at = max(self.synced_at, began)
        if status == 204:
            self.counts["cancelled"] += 1
            if "cancelled" not in message.possible_outcomes(now):
                self.violation("DELETE is answered 204", message)
            self.settle(message, now, "cancelled")
        elif status == 409:
            if not message.possible_outcomes(now) - {"cancelled"}:
                self.violation("DELETE is answered 409, and nothing ended it", message)
            self.settle(message, now)
        else:
            self.unknown(message, status)

    def unknown(self, message, status):
        if status == 503 and self.may_refuse():
            return
        is_without_row = message.answer == "dropped" and not message.has_key
        if status != 404 or not (message.may_be_unknown or is_without_row):
            self.violation(f"the message's address is answered {status}", message)

    def heard(self, message, outcome, began, now):
        """The server reports that it waits (no outcome), or its outcome."""
        if outcome is None:
            # For a delivered message of TTL 0, the outcome is awaited for a while.
            is_late = message.answer == "dropped" if message.is_volatile else message.expired_by < began
            if self.is_over(message, began) or is_late:
                self.violation("said to wait", message)
            return
        if outcome not in message.possible_outcomes(now):
            self.violation(f"said to be {outcome}", message)
        self.settle(message, now, outcome)

    # Devices

    def arrived(self, device, version, body, began):
        """Something came over a connection or a poll that was begun then. Answers with the message, if it is one."""
        message = self.messages.get(body[:16].decode("latin-1"))
        if message is None or message.device is not device or message.body != body:
            self.violation(f"{version} came to {device.name} and is not what was sent")
            return None
        if message.id not in (None, version):
            self.violation(f"{version} came, which is another", message)
        if self.is_over(message, began):
            self.violation("came after it was final", message)
        elif message.expired_by < began:
            self.violation("came after its TTL", message)
        elif message.answer == "dropped":
            self.violation("came after it was dropped", message)
        message.id = message.id or version
        message.was_seen = True
        return message

    def results_stored(self, messages, began, now):
        """The server answered 204 to a device's reports about these."""
        self.synced_at = max(self.synced_at, began)
        for message in messages:
            self.counts["results over HTTP"] += message.final_at is None
            self.settle(message, now)

    def was_complete(self, device, present, began, ended):
        """All that waited came, while there was load."""
        for message in list(device.open.values()):
            if message.tag not in present and message.must_wait(began, ended):
                self.lost(message, ended)

    def lost(self, message, now):
        self.violation("lost", message)
        self.settle(message, now)

    # Kills

    def killed(self, at):
        """Everything has ended that was under way."""
        for message, earlier in self.overtaken:
            if self.recorded_by(message.answered_at) > self.synced_at:
                message.may_be_unknown = True
                for other in earlier:
                    if other.is_soft:
                        self.counts["replacements that a kill may undo"] += 1
                        other.final_at = None
            for other in earlier:
                other.is_soft = False
        self.overtaken.clear()
        for message in self.offered:
            message.may_be_unknown = True
        self.offered.clear()
        for message in self.under_way:
            if not message.has_key:
                message.accepted_by = at
        self.counts["cut off by a kill"] += len(self.under_way)
        self.under_way.clear()

    def audited(self, device, present, began, ended):
        """All waiting messages, while nothing was under way: other messages are final, and these certainly wait."""
        absent = [message for tag, message in device.open.items() if tag not in present]
        for message in absent:
            if not self.is_excused(message, present, ended):
                self.lost(message, ended)
        for message in absent:
            # A message with a key that had no answer is going to be sent again.
            if message.answered_at is not None or not message.has_key or message.was_seen:
                if message.expired_by < began and message.possible_outcomes(ended) == {"expired"}:
                    self.counts["expired"] += 1
                self.close(message, ended)
        for message in present.values():
            message.stored_at = message.stored_at or began
            if message.final_at is None:
                message.ends.clear()
        self.counts["waited after a kill"] += len(present)
        waiting = Counter(message.topic for message in present.values() if message.topic)
        for topic, count in waiting.items():
            if count > 1:
                self.violation(f"{count} messages of topic {topic} wait for {device.name}")

    def is_excused(self, message, present, now):
        """Whether it may be gone."""
        if message.final_at is not None or message.stored_at is None:
            return True
        outcomes = message.possible_outcomes(now)
        if outcomes != {"replaced"}:
            return bool(outcomes)
        # One that took its place must be there, or have left for a reason of its own.
        return any(
            later.tag in present or later.final_at is not None or later.possible_outcomes(now) - {"replaced"}
            for later in self.later(message))

    def close(self, message, at):
        """It will never come again."""
        self.settle(message, at)
        message.device.open.pop(message.tag, None)
        chain = self.topics.get((message.device.id, message.topic), [])
        if message in chain:
            chain.remove(message)
