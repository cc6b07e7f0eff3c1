"""The required number of events for each kill, on average: about a fifth of the number in 10 kills on a busy machine."""

FLOORS = {
    "accepted": 30,
    "acknowledged before it was written": 3,
    "alerts that came": 0.3,
    "attachments fetched": 0.3,
    "calls at a channel's end": 0.5,
    "cancelled": 0.7,
    "caught up": 1,
    "checks of closed items": 0.3,
    "checks of deleted items": 0.3,
    "crossings": 0.5,
    "cut off by a kill": 1,
    "dropped": 2,
    "expired": 0.3,
    "firings of a distinct item": 2,
    "firings of an item that merges": 0.3,
    "firings of conditions": 0.5,
    "firings of crossings": 0.5,
    "found stored by its key": 0.1,
    "keys": 1,
    "kills of the simulator": 0.1,
    "long polls cut off": 0.3,
    "messages in event streams": 10,
    "offered": 1,
    "outcomes asked for": 8,
    "parts of attachments": 1,
    "polls": 4,
    "pushes asked after": 0.5,
    "registrations and suspensions": 1,
    "repeated": 1,
    "repeated after a kill": 0.2,
    "replaced": 3,
    "results over HTTP": 10,
    "results over sockets": 10,
    "service replies that waited after a kill": 0.3,
    "steps of service requests": 1,
    "streams that caught up": 0.5,
    "subscriptions with a condition": 0.5,
    "updates done": 0.3,
    "updates for an audience": 1,
    "updates of distinct items": 1,
    "updates of items": 1,
    "updates that waited after a kill": 0.4,
    "updates withdrawn": 0.1,
    "waited after a kill": 25,
    "wakes that came": 0.2,
    "watches": 1,
}
# With faults of the disk, and with backups.
FLOORS_OF_FAULTS = {"messages refused": 0.1, "changes refused": 0.3}
FLOORS_OF_BACKUPS = {"messages in backups": 1, "outcomes in backups": 1, "things that a backup must have": 0.3}


def floors(kills, turns, faults, backup):
    """Returns the least counts of a run with so many kills: each turn that it came to happened."""
    least = {name: count * kills for name, count in FLOORS.items()}
    seen = [turns[number % len(turns)] for number in range(kills)]
    if any(turn in faults for turn in seen):
        least |= {name: count * kills for name, count in FLOORS_OF_FAULTS.items()}
    if backup in seen:
        least |= {name: count * kills for name, count in FLOORS_OF_BACKUPS.items()}
    return least | {turn: seen.count(turn) for turn in seen if turn}
