"""One message, and its possible outcomes."""

from dataclasses import dataclass, field

# The server's times are whole milliseconds.
TICK = 0.001


@dataclass(slots=True, eq=False)
class Message:
    """One message, by the tag that its body repeats: a kill may keep its identifier from the sender."""

    # The first 16 characters of the body, and its key if it has one.
    tag: str
    device: object
    ttl: int
    topic: str | None
    has_key: bool
    body: bytes
    sent_at: float
    id: str | None = None
    was_seen: bool = False
    # The outcome in the first answer, and the time of the answer.
    answer: str | None = None
    answered_at: float | None = None
    # By then it was accepted, if it ever was.
    accepted_by: float = float("inf")
    # Since when it is known to wait in the store.
    stored_at: float | None = None
    # The outcomes that may have been caused since it was last known to wait.
    ends: set = field(default_factory=set)
    outcome: str | None = None
    # Since when it is known to wait no more; `is_soft` when a kill at the wrong moment may still undo that.
    final_at: float | None = None
    is_soft: bool = False
    may_be_unknown: bool = False

    @property
    def is_volatile(self):
        return self.ttl == 0

    @property
    def expired_by(self):
        return self.accepted_by + self.ttl

    def may_expire_by(self, moment):
        return moment >= self.sent_at + self.ttl - TICK

    def possible_outcomes(self, now):
        if self.outcome is not None:
            return {self.outcome}
        outcomes = set(self.ends)
        if self.is_volatile:
            outcomes.add("dropped")
        elif self.may_expire_by(now if self.final_at is None else self.final_at):
            outcomes.add("expired")
        return outcomes

    def must_wait(self, began, ended):
        """Whether it waited all that time, with any result of the unanswered requests."""
        is_stored = self.stored_at is not None and self.stored_at < began
        return is_stored and self.final_at is None and not self.ends and not self.may_expire_by(ended)

    def __str__(self):
        parts = [f"message {self.id or self.tag}: TTL {self.ttl}, answered {self.answer}"]
        parts += [f"topic {self.topic}"] if self.topic else []
        parts += ["with a key"] if self.has_key else []
        parts += [f"ended {self.outcome or ' or '.join(self.ends)}"] if self.outcome or self.ends else []
        return ", ".join(parts)
