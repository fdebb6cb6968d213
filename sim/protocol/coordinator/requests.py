"""Requests waiting for their checkpoint, and which one may run now (CheckpointRequestDecider).

The wish list is not de-duplicated: with checkpoints longer than the interval, periodic requests pile up and run back to back.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from operator import attrgetter

from sim.protocol.value_class import value_class
from sim.protocol.vocabulary import RequestKind, Savepoint

MAX_WAITING = 1000
"""DEFAULT_MAX_QUEUED_REQUESTS."""


@value_class
class TriggerRequest:
    """A request for a checkpoint."""

    kind: RequestKind
    request_ns: int
    forced: bool = False  # obeys neither min-pause nor max-concurrent
    savepoint: Savepoint | None = None
    serial: int = 0  # ties: first come, first served

    @property
    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Savepoints first, then forced ones, then all but the periodic ones."""
        kind = self.kind
        return (kind is not RequestKind.SAVEPOINT, not self.forced, kind is RequestKind.PERIODIC, self.request_ns, self.serial)


_rank = attrgetter("rank")


@value_class
class NextRequest:
    """The request that runs or is postponed next.  Both None: no request is due."""

    run: TriggerRequest | None = None
    postpone: TriggerRequest | None = None  # drop this periodic request ...
    until_ns: int = 0  # ... and wake the timer up then


@value_class
class WaitingRequests:
    """The requests that wait for their checkpoint, by rank."""

    max_concurrent: int
    min_pause_ns: int
    waiting: tuple[TriggerRequest, ...] = ()  # by rank
    serial: int = 0

    def with_one(self, request: TriggerRequest) -> tuple[WaitingRequests, TriggerRequest | None]:
        """Add a request.  Also returns the request for which there was no room, if any: this one, or the last periodic one."""
        if len(self.waiting) >= MAX_WAITING and self.waiting[-1].kind is not RequestKind.PERIODIC:
            return self, request
        request = replace(request, serial=self.serial)
        place = bisect_left(self.waiting, request.rank, key=_rank)
        waiting = (*self.waiting[:place], request, *self.waiting[place:])
        dropped = waiting[-1] if len(waiting) > MAX_WAITING else None
        return replace(self, waiting=waiting[:MAX_WAITING], serial=self.serial + 1), dropped

    def choose(
        self, now: int, *, triggering: bool, pending: int, cleaning: int, last_completion_ns: int | None
    ) -> tuple[WaitingRequests, NextRequest]:
        """The head of the list, if it may run now.  Too much cleaning holds it back, too (CheckpointRequestDecider#chooseQueuedRequest)."""
        if triggering or not self.waiting or cleaning > self.max_concurrent:
            return self, NextRequest()
        first = self.waiting[0]
        rest = replace(self, waiting=self.waiting[1:])
        if pending >= self.max_concurrent:
            return (rest, NextRequest(run=first)) if first.forced else (self, NextRequest())
        if first.kind is RequestKind.PERIODIC and not first.forced and last_completion_ns is not None:
            earliest_ns = last_completion_ns + self.min_pause_ns
            if earliest_ns > now:
                return rest, NextRequest(postpone=first, until_ns=earliest_ns)
        return rest, NextRequest(run=first)

    def emptied(self) -> tuple[WaitingRequests, tuple[TriggerRequest, ...]]:
        return replace(self, waiting=()), self.waiting
