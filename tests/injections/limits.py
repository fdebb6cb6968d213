"""Bugs of limits and waits: requests, uploads that are given up, slow tasks, slots, transactions that expire."""

from fractions import Fraction

import numpy as np

from sim.protocol import commit
from sim.protocol.recovery import FixedDelay, Heartbeats
from sim.runtime import redistribution
from sim.runtime.jobmanager.faults import Faults
from sim.runtime.jobmanager.task_managers import WarmUp
from sim.storage.media.object_store import ObjectStorage, RequestLimit, _Object
from sim.storage.state_backends import ChangelogBackend
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, source, world

INJECTIONS = Injections("limits and waits")
add = INJECTIONS.add

OBJECTS = {"part": "4 kB", "parallel-parts": 2, "latency": "30 ms", "bandwidth": "100 kB/s"}
REQUESTS = world(
    chain(m=reader(state={"size": "40 kB"})),
    storage={"bandwidth": None, "object-store": {"prefixes": 2, "requests": "8/s"}, "retry": {"attempts": 8}},
)
PARTS = world(
    chain(m=reader(state={"size": "60 kB"})),
    checkpoint={"timeout": "120 ms"},
    storage={"bandwidth": None, "object-store": OBJECTS},
)
for _scenario in (REQUESTS, PARTS):
    for _key in ("bandwidth", "file-latency"):
        del _scenario["storage"][_key]
EXPIRING = world(
    chain(k=sink(commit={"transaction-timeout": "250 ms"})),
    checkpoint={"lost-notifications": "60 %"},
    restart={"delay": "300 ms"},
    faults=[KILL, {"kill": "k[0]", "at": "600 ms"}],
)
IN_FLIGHT = world(
    chain(s=source(rate=300, records=300), m=reader(service="8 ms")),
    checkpoint={"barriers": "unaligned"},
    rescale={"at": "400 ms", "parallelism": {"m": 3}},
)
SLOW = world(
    faults=[
        {"slow": "m[0]", "factor": 3, "at": "100 ms", "lasts": "500 ms"},
        {"slow": "m", "factor": 2, "at": "200 ms", "lasts": "300 ms"},
    ]
)
LOST = world(faults=[{"task-manager": 2, "at": "500 ms", "silent": True}])
CHANGELOG = {
    "size": "20 kB",
    "backend": "hashmap",
    "update": "50 %",
    "value": "100 B",
    "changelog": {"materialize": "60 ms"},
}


@add(redistribution, "_split_in_flight", IN_FLIGHT)
def records_in_flight_go_to_all_readers(original):
    """Records in flight of a hashed edge are dealt out evenly."""

    def split(before, after, edge, old, new, groups):
        in_flight = original(before, after, edge, old, new, groups)
        return np.full(len(new), in_flight.sum() // len(new)) + (np.arange(len(new)) < in_flight.sum() % len(new))

    return split


@add(commit, "commit_unexpired", EXPIRING)
def expired_transactions_are_committed_again(original):
    """A restore commits transactions that have expired."""
    return lambda *given, again: original(*given[:3], None if again else given[3], again=again)


@add(_Object, "_stop", PARTS)
def parts_of_a_given_up_upload_are_sent(_):
    """The parts of an upload that is given up go on."""
    return lambda self: None


@add(RequestLimit, "admits", REQUESTS)
def one_prefix_has_a_limit(original):
    """Only the last prefix limits requests."""
    return lambda self, prefix, now: prefix == 0 or original(self, prefix, now)


@add(RequestLimit, "admits", REQUESTS)
def prefixes_share_a_limit(original):
    """All prefixes together have the limit of one."""
    return lambda self, _, now: original(self, 0, now)


@add(ObjectStorage, "prefix", REQUESTS)
def all_files_have_one_prefix(_):
    """All files have the same prefix."""
    return lambda self, name: 0


@add(Heartbeats, "missed_ns", LOST)
def a_loss_is_missed_late(original):
    """A silent loss is detected an interval later."""
    return lambda self, lost_ns, *, silent: original(self, lost_ns, silent=silent) + self.interval_ns


@add(FixedDelay, "failed", world(faults=[KILL]))
def restarts_wait_too_long(original):
    """The delay of a restart is longer by a second."""

    def failed(self, now, draw):
        strategy, at_ns = original(self, now, draw)
        return strategy, at_ns if at_ns is None else at_ns + 10**9

    return failed


@add(Faults, "_scale", SLOW)
def slow_faults_multiply(_):
    """Faults at the same time slow a task down by their product."""

    def scale(self, vertex):
        for task in self._tasks_of(vertex, None):
            subtask, factor = self.context.names[task][1], Fraction(1)
            for what, _ in self._slowdowns:
                factor *= what.factor if what.vertex == vertex and what.subtask in (None, subtask) else 1
            self.context.speed.set_factor(task, "fault", factor)

    return scale


@add(Faults, "_slow_down_until", SLOW)
def slow_faults_never_end(original):
    """A task stays slow."""
    return lambda self, what, _: original(self, what, None)


@add(WarmUp, "_end", world(restart={"warm-up": "100 ms", "warm-up-factor": 2}, faults=[KILL]))
def warm_ups_never_end(_):
    """A restarted task stays slow."""
    return lambda self, task: None


@add(ChangelogBackend, "may_materialise", world(chain(m=reader(state=CHANGELOG))))
def a_changelog_is_materialized_too_soon(_):
    """The next materialization does not wait for a completed checkpoint."""
    return lambda self: True
