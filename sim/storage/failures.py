"""Failures of storage: transient ones, after which a client tries again, and final ones."""

from __future__ import annotations


class Transient(Exception):  # noqa: N818  # it is not an error yet: it is tried again
    """An attempt has failed.  The client tries again."""


class Unreachable(Transient):
    """Storage is down."""


class TimedOut(Transient):
    """A request has had no answer within its time limit."""


class Refused(Transient):
    """Storage turns a request away, as there are too many (S3's 503 Slow Down)."""


class StorageFailed(Exception):  # noqa: N818  # named like the event it brings about
    """All attempts have failed.  The file being written is given up."""


class DiskFull(StorageFailed):
    """A local disk has no space left."""
