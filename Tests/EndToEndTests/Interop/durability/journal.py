"""The events of a run, the violations that were found, and the times when the server could not write."""

import time
from collections import Counter

# The record of an acknowledgement that overtook its message's write follows within 40 ms; a kill before that loses it.
# A busy machine may take longer: a disk operation that was requested so long afterwards, and completed, proves that it followed.
RECORD_SECONDS = 0.1
# Changes that could not be written while the disk had a fault are written within this time after the fault.
RECOVERY_SECONDS = 5


class Journal:
    def __init__(self):
        self.counts = Counter()
        # By their texts: where in the run each was found.
        self.violations = {}
        self.round = "before the first kill"
        self.began_at = time.time()
        # When the server could not write, as its disk had a fault or it was stopping: beginnings and ends.
        self.troubles = []
        self.refuses_until = 0.0
        # Since when no commit can succeed.
        self.no_commit_since = None

    def violation(self, text, message=None):
        text = text if message is None else f"{text}: {message}"
        self.violations.setdefault(text, f"{self.round}, second {time.time() - self.began_at:.1f}")

    def trouble_began(self, prevents_commits=False):
        self.troubles.append([time.time(), float("inf")])
        self.refuses_until = float("inf")
        self.no_commit_since = time.time() if prevents_commits else None

    def trouble_ends(self):
        """Before the fault is removed: commits can succeed from now on."""
        self.no_commit_since = None

    def trouble_ended(self):
        self.no_commit_since = None
        if self.troubles and self.troubles[-1][1] == float("inf"):
            self.troubles[-1][1] = time.time()
            self.refuses_until = time.time() + RECOVERY_SECONDS

    def restarted(self):
        """A server that is ready refuses nothing, regardless of the time before it started."""
        self.refuses_until = 0.0

    def may_refuse(self):
        """Whether a request may be refused."""
        return time.time() < self.refuses_until

    def must_be_committed(self, began, what):
        """A request that began then was answered as done, and cannot be done without a commit."""
        if self.no_commit_since is not None and began > self.no_commit_since:
            self.violation(f"{what} is answered as done while no commit can succeed")

    def was_unwritten(self, moment):
        """Whether a change that was reported at that moment, before its write, can be lost because of a fault of the disk."""
        for began, ended in reversed(self.troubles):
            if began - 1 < moment < ended + RECORD_SECONDS:
                return time.time() < ended + RECOVERY_SECONDS
        return False

    def recorded_by(self, moment):
        """The time by which an outcome is on disk that was reported at that moment, before it was written."""
        for began, ended in reversed(self.troubles):
            if began - 1 < moment < ended + RECORD_SECONDS:
                return ended + RECOVERY_SECONDS
        return moment + RECORD_SECONDS
