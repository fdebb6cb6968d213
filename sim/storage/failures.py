"""What can go wrong with storage: for the moment (and then it is tried again), or for good."""

from __future__ import annotations


class Transient(Exception):  # noqa: N818  # it is not an error yet: it is tried again
    """One attempt came to nothing."""


class Unreachable(Transient):
    """Storage is down."""


class TimedOut(Transient):
    """No answer within the time a request may take."""


class Refused(Transient):
    """Too many requests: come back later (S3's 503 Slow Down)."""


class StorageFailed(Exception):  # noqa: N818  # named like the event it brings about
    """For good: the attempts are used up.  What was being written is given up half-written."""


class DiskFull(StorageFailed):
    """No space left on a local disk."""
