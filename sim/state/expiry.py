"""Keys that expire some time after they were last written (StateTtlConfig: processing time, UpdateType.OnCreateAndWrite).

Each age has its expected number of bytes.  Rewrites meet all live keys alike, and what they meet is young again.  Integers throughout: the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from sim.state.sorted_tables import distinct

_STEPS = 32
"""Steps within a time to live.  New keys and rewrites are evenly spread over a step."""
_MOST_STEPS = 256
"""A call has at most so many.  After a longer time the steps are longer."""


class Cohort(NamedTuple):
    """The keys that were last written within one interval, evenly spread over it."""

    begin_ns: int
    end_ns: int
    size_bytes: int


Ages = tuple[Cohort, ...]
"""The live keys of a subtask, the oldest first."""


class ExpiryTurnover(NamedTuple):
    """The change of the live keys since the last call."""

    live_bytes: int
    expired_bytes: int


def together(parts: Iterable[tuple[Ages, Fraction]]) -> Ages:
    """The keys of several subtasks, of each the share of its key groups."""
    return tuple(sorted(cohort._replace(size_bytes=int(cohort.size_bytes * share)) for ages, share in parts for cohort in ages))


class Expiry:
    """The live keys of one subtask, by age.  Those that a run begins with were written evenly over the time to live before it."""

    def __init__(self, ttl_ns: int, size_bytes: int, entry_bytes: int) -> None:
        self.ttl_ns = ttl_ns
        self.entry_bytes = entry_bytes
        self.ages: Ages = (Cohort(-ttl_ns, 0, size_bytes),) if size_bytes else ()
        self._now_ns = 0

    @property
    def live_bytes(self) -> int:
        return sum(cohort.size_bytes for cohort in self.ages)

    def stand(self, ages: Ages, now_ns: int) -> None:
        """Take over the keys of a snapshot, with the times of their last writes."""
        self.ages, self._now_ns = ages, now_ns

    def advance(self, added_bytes: int, rewritten: int, now_ns: int) -> ExpiryTurnover:
        """Let time pass: keys of `added_bytes` came and `rewritten` entries were written anew, evenly since the last call."""
        begin_ns, before_bytes = self._now_ns, self.live_bytes + added_bytes
        steps = max(1, min(-(-(now_ns - begin_ns) * _STEPS // self.ttl_ns), _MOST_STEPS))
        for step in range(steps):
            first_ns, last_ns = (begin_ns + (now_ns - begin_ns) * at // steps for at in (step, step + 1))
            added, writes = (amount * (step + 1) // steps - amount * step // steps for amount in (added_bytes, rewritten))
            self._write(added, writes, first_ns, last_ns)
            self._expire(last_ns)
        self._now_ns = now_ns
        return ExpiryTurnover(self.live_bytes, before_bytes - self.live_bytes)

    def _write(self, added_bytes: int, writes: int, first_ns: int, last_ns: int) -> None:
        """New keys and those that are rewritten form the youngest cohort."""
        young_bytes = added_bytes
        if writes and (keys := self.live_bytes // self.entry_bytes):
            met = distinct(writes, keys)
            kept = tuple(cohort._replace(size_bytes=cohort.size_bytes - cohort.size_bytes * met // keys) for cohort in self.ages)
            young_bytes += self.live_bytes - sum(cohort.size_bytes for cohort in kept)
            self.ages = kept
        if not young_bytes:
            return
        if self.ages and last_ns - self.ages[-1].begin_ns <= self.ttl_ns // _STEPS:  # snapshots come often: one step has one cohort
            first_ns, young_bytes = self.ages[-1].begin_ns, young_bytes + self.ages[-1].size_bytes
            self.ages = self.ages[:-1]
        self.ages += (Cohort(first_ns, last_ns, young_bytes),)

    def _expire(self, now_ns: int) -> None:
        horizon_ns = now_ns - self.ttl_ns
        self.ages = tuple(left for cohort in self.ages if (left := _younger(cohort, horizon_ns)).size_bytes)


def _younger(cohort: Cohort, horizon_ns: int) -> Cohort:
    """The keys of a cohort that were written after that time.

    Whole bytes go, and the cohort begins behind them: the answer does not depend on how often it is asked for.
    """
    if horizon_ns <= cohort.begin_ns:
        return cohort
    if horizon_ns >= cohort.end_ns or not cohort.size_bytes:  # small shares and rewrites leave nothing of some
        return cohort._replace(size_bytes=0)
    span_ns = cohort.end_ns - cohort.begin_ns
    gone_bytes = cohort.size_bytes * (horizon_ns - cohort.begin_ns) // span_ns
    return Cohort(cohort.begin_ns + gone_bytes * span_ns // cohort.size_bytes, cohort.end_ns, cohort.size_bytes - gone_bytes)
