"""Invariants of limits and slowdowns: requests of an object store, uploads that are given up, and slow tasks."""

from __future__ import annotations

from collections.abc import Sequence

from sim.model.faults import SlowTask
from sim.model.units import SECOND
from sim.results.violations import milliseconds
from sim.runtime.context import RestoredState, TaskSnapshot
from sim.runtime.invariants.invariant import Invariant
from sim.storage.ledger import Name, StoredFile
from sim.storage.media.object_store import ObjectStorage
from sim.storage.media.slow_nodes import uniform

REQUEST_LIMIT = "an object store refuses requests beyond the limit of their prefix, and no others"
NO_MORE_PARTS = "no part of an upload is sent after it was given up"
SLOWED = "a task is slow during its faults, by the largest of their factors, during its warm-up, and at no other time"

_WRITTEN_BY_OTHERS = "channel-state"
"""Kind of files whose writer thread ends the write in progress when a checkpoint is aborted."""


class ObjectStoreRequests(Invariant):
    """Counts the requests of each prefix once more (token bucket of one second), and checks uploads that were given up."""

    def start(self) -> None:
        self._parts_ns: dict[Name, int] = {}  # file -> when a part of it was last sent or answered
        self._spare: dict[int, tuple[int, int]] = {}  # prefix -> (time [ns], requests left then x SECOND)
        if isinstance(store := self.context.storage.medium, ObjectStorage):
            self._store = store.options
            store.on_request = self._requested

    def _requested(self, what: str, name: Name, admitted: bool | None) -> None:
        """Observe a request that is sent.  `admitted`: whether its prefix is within its limit; None: it is answered."""
        now_ns, limit = self.now_ns, self._store.requests_per_second
        if what == "part":
            self._parts_ns[name] = now_ns
        if limit is None or admitted is None:
            return
        prefix = uniform(self._store.prefixes, self.context.storage.seed, "prefix", *name)
        since_ns, left = self._spare.get(prefix, (0, limit * SECOND))
        left = min(limit * SECOND, left + (now_ns - since_ns) * limit)
        if admitted != (left >= SECOND):
            fact = f"a {what} of prefix {prefix} is {'admitted' if admitted else 'refused'}, {left // SECOND} of {limit} requests are left"
            self.report(REQUEST_LIMIT, fact, where="the object store", once=True)
        self._spare[prefix] = now_ns, left - SECOND if admitted else left

    def at_the_end(self) -> None:
        uploads: dict[Name, list[StoredFile]] = {}  # a task that has restarted may write a file of the same name
        for row in self.context.storage.files if self._parts_ns else ():
            uploads.setdefault(row.name, []).append(row)
        for name, at_ns in self._parts_ns.items():
            given_up_ns = [row.given_up_ns for row in uploads.get(name, ()) if row.given_up_ns is not None]
            if not given_up_ns or name[0] == _WRITTEN_BY_OTHERS:
                continue
            ends_ns = [row.durable_ns if row.given_up_ns is None else row.given_up_ns for row in uploads[name]]
            if all(end_ns is not None and end_ns < at_ns for end_ns in ends_ns):
                fact = f"a part is sent {milliseconds(at_ns - max(given_up_ns))} after the upload was given up"
                self.report(NO_MORE_PARTS, fact, where="/".join(map(str, name)), time_ns=at_ns, once=True)


class Slowdowns(Invariant):
    """Checks the speed of tasks at their cuts, if the times of all faults that slow tasks down are known."""

    def start(self) -> None:
        slow = [(fault.what, fault.when) for fault in self.context.scenario.faults if isinstance(fault.what, SlowTask)]
        known = all(when.every is None for _, when in slow)
        self._warm_ns: dict[int, int] = {}  # task -> end of its warm-up
        self._faults = [(what, at_ns) for what, when in slow for at_ns in when.at_ns] if known else []

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        self._warm_ns[task] = self.now_ns + self.context.scenario.restart.warm_up_ns

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        if self._warm_ns.get(task, self.now_ns) < self.now_ns and self.context.speed.factor(task, "warm-up") != 1:
            self.report(SLOWED, "its warm-up is over, and it is slow", checkpoint=checkpoint, task=task, once=True)
        if not self._faults:
            return
        (vertex, subtask), now_ns, factor = self.context.names[task], self.now_ns, 1
        for what, at_ns in self._faults:
            end_ns = now_ns + 1 if what.lasts_ns is None else at_ns + what.lasts_ns
            if what.vertex == vertex and what.subtask in (None, subtask) and at_ns <= now_ns <= end_ns:
                if now_ns in (at_ns, end_ns):
                    return  # events at the same time may be in any order
                factor = max(factor, what.factor)
        if (actual := self.context.speed.factor(task, "fault")) != factor:
            fact = f"it is slower by {float(actual):g}, the faults of this time make it slower by {factor}"
            self.report(SLOWED, fact, checkpoint=checkpoint, task=task, once=True)
