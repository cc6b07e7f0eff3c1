"""Kills the server with SIGKILL at random moments under load, and checks its guarantees (docs/guarantees.md).

Everything that the server keeps is changed at the same time. Of messages:

- What was accepted arrives, unless its device answered for it, or it was cancelled or replaced, or its TTL ended.
- Nothing arrives over a connection or a poll that was begun after it expired, was replaced, was cancelled or was
  answered for. TTL 0 to a device without a connection is answered as dropped, and never arrives.
- Of a topic one message waits: the last that was accepted, or one after it whose answer the kill cut off.
- What is sent again with its Idempotency-Key, because a kill took the answer, is one message for sender and device.
- The outcome that the server tells is one that somebody caused, and stays the same.

The class of each other kind states its guarantee: registrations, suspensions, keys, items and what they fire, watches, updates for
an audience, requests of services, attachments, wakes and alerts (the push service's simulator is killed too), backups (`Backup`) and
faults of the disk (`Trouble`).

Some kills come while the server starts or stops, and in some rounds strace makes the disk slow, full, or fail to sync. All of this must
have happened often enough to mean something. No log of a server shows a secret.

Run by hand:  CARILLON_EXECUTABLE=.build/debug/carillon python durability --kills 150

A seed repeats what is chosen, not when the server comes to what.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time

# Of the other tests: the signer of user tokens.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from log_secrets import LEDGER
from run import MANY, Run


def report(run):
    """Prints the events and the faults; returns whether there were no faults."""
    ledger = run.ledger
    faults = [f"VIOLATION in {where}: {text}" for text, where in ledger.violations.items()]
    least = run.least()
    for name in sorted(ledger.counts | least):
        count = ledger.counts[name]
        print(f"{count:>9} {name}" + (f" (at least {least[name]:.1f})" if name in least else ""))
        if count < least.get(name, 0):
            faults.append(f"TOO LITTLE: {name}, {count} and not {least[name]:.1f}")
    # Among a device's secrets, those of the operator are known at least.
    if len(LEDGER.secrets) < 10:
        faults.append(f"TOO LITTLE: {len(LEDGER.secrets)} secrets to look for in the logs")
    faults += LEDGER.shown()
    for fault in faults[: 2 * MANY]:
        print(fault)
    for line in run.server.log.read_text(errors="replace").splitlines()[-MANY:] if run.server.log.exists() else ():
        print(f"log: {line}")
    return not faults


async def main(kills, executable, seed):
    directory = tempfile.mkdtemp(prefix="carillon-durability-")
    run = Run(executable, directory, seed)
    began = time.monotonic()
    is_well = False
    try:
        try:
            await run.run(kills)
        finally:
            is_well = report(run)
            seconds = time.monotonic() - began
            print(f"{run.kills} kills in {seconds:.0f} seconds, {len(run.ledger.violations)} violations", flush=True)
    finally:
        await run.end()
        shutil.rmtree(directory, ignore_errors=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    executable = os.path.abspath(os.environ.pop("CARILLON_EXECUTABLE"))
    sys.exit(asyncio.run(main(options.kills, executable, options.seed)))
