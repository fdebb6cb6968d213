"""The slot of a task without a plane: tests say how far its records have come, and read off what its parts do to thread and plane."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from types import SimpleNamespace

import numpy as np

from sim.model.job import Job, Vertex


class FakeClock:
    """Calls in the order of their times."""

    def __init__(self):
        self.now = 0
        self._calls = []
        self._number = count()

    def call_at(self, at_ns, action):
        self.call_in(at_ns - self.now, action)

    def call_in(self, delay_ns, action):
        if delay_ns:
            heappush(self._calls, (self.now + delay_ns, next(self._number), action))
        else:
            action()

    @property
    def next_ns(self):
        """When the next call is due."""
        return self._calls[0][0] if self._calls else None

    def run(self, until_ns, before=lambda _: None):
        """Everything due up to a time; `before`: called with the time of each call."""
        while self._calls and self._calls[0][0] <= until_ns:
            self.now, _, action = heappop(self._calls)
            before(self.now)
            action()
        self.now = until_ns


class Recorder:
    """Writes down what is called, with its arguments."""

    def __init__(self, log):
        self._log = log

    def __getattr__(self, name):
        return lambda *arguments, **named: self._log.append((name, *arguments, *named.values()))


class FakeSlot:
    """A task with a fake clock.  Mails run at once; `log` has what was done, in order."""

    task = 0

    def __init__(self, *, windows=(), log=None, channels=(0,), source=None, window=None):
        self.env = FakeClock()
        self.log = []
        self.served, self.late, self.read = 0, 0, [0] * len(channels)
        self.waited_ns = {"soft_ns": 0, "hard_ns": 0}
        self.channels = list(channels)
        others = [Vertex(f"window{number}", window=own) for number, own in enumerate(windows)]
        job = Job((Vertex("task", window=window, source=source), *others))
        self.vertex = job.vertices[0]
        self.checks = Recorder([])
        self.job = Recorder(self.log)
        self.thread = FakeThread(self.log)
        plane = FakePlane(self)
        scenario = SimpleNamespace(job=job, run=SimpleNamespace(seed=1))
        self.context = SimpleNamespace(
            env=self.env, plane=plane, scenario=scenario, log=lambda _: log, names=[("task", 0)]
        )

    @property
    def now(self):
        return self.env.now

    @property
    def position(self):
        return SimpleNamespace(served=self.served, late=self.late, records_read=np.array(self.read))

    def sent(self):
        """The numbers of the markers that have left."""
        return [row[2].number for row in self.log if row[0] == "forward"]

    def calls(self, *names):
        """What was done to plane, thread and JobManager since the last call, of these kinds or all."""
        found = [row for row in self.log if not names or row[0] in names]
        self.log.clear()
        return found


class FakeThread:
    """Runs mails at once."""

    def __init__(self, log):
        self.mails_only = self.stopped = False
        self._log = log

    def post(self, mail):
        mail()

    def release_late_outputs(self, until):
        self._log.append(("release_late_outputs", until))

    def occupy(self):
        self._log.append(("occupy",))

    def vacate(self):
        self._log.append(("vacate",))


class FakePlane:
    """Stands where the slot says; writes verbs down."""

    def __init__(self, slot):
        self._slot = slot

    def tasks(self, *_):
        return [self._slot.waited_ns]

    def forward(self, task, marker):
        self._slot.log.append(("forward", task, marker))

    def pause(self, task, *, on):
        self._slot.log.append(("pause", task, on))

    def report_written(self, task):
        self._slot.log.append(("report_written", task))
