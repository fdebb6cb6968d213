"""The cores of a task manager: asynchronous work of snapshots shares them with the threads of its tasks.

Every thread that can run gets the same share of the cores, and none more than one core (processor sharing, as an operating system does).
Task threads count by the share of time they have been busy.  Services of records were measured beside each other, so only threads of
snapshots slow tasks down.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import simpy

from sim.storage.work import Work

_WINDOW_NS = 1_000_000_000
"""Task threads are looked at again after so long: tasks that take a snapshot one after the other see the same load."""
_THOUSAND = 1000
_UNIT = 1 << 20
"""Work is counted in such parts of a nanosecond: whole numbers, however often the number of threads changes."""


WorkOnCore = Callable[[simpy.Environment, Work[object], int], Work[None]]
"""A process for a work, and one that takes so long on a core; over when both are."""


def on_own_core(env: simpy.Environment, work: Work[object], work_ns: int) -> Work[None]:
    """Process: no thread waits for a core."""
    began_ns = env.now
    yield from work
    if (rest_ns := began_ns + work_ns - env.now) > 0:
        yield env.timeout(rest_ns)


class Busy:
    """A gauge of the task threads that want a core.  `total_ns`: how long all of them have been busy since `begin_ns`."""

    def __init__(self, total_ns: Callable[[], int], begin_ns: int = 0) -> None:
        self._total_ns = total_ns
        self._at_ns = begin_ns
        self._busy_ns = 0
        self._threads: Fraction | None = None

    def threads(self, now_ns: int) -> Fraction:
        """The mean number of busy threads since the last reading, in thousandths."""
        since_ns = now_ns - self._at_ns
        if since_ns >= _WINDOW_NS or (since_ns and self._threads is None):
            busy_ns = self._total_ns()
            self._threads = Fraction(max(busy_ns - self._busy_ns, 0) * _THOUSAND // since_ns, _THOUSAND)
            self._at_ns, self._busy_ns = now_ns, busy_ns
        return self._threads or Fraction(0)


class _Share:
    """Work of one thread on the shared cores."""

    def __init__(self, work_ns: int, done: simpy.Event) -> None:
        self.left = work_ns * _UNIT  # on a core of its own
        self.done = done


class Processor:
    """The cores of a task manager.  `slow` is called with the factor by which threads of snapshots slow the tasks down."""

    def __init__(self, env: simpy.Environment, cores: int, busy: Busy, slow: Callable[[Fraction], None]) -> None:
        self.env = env
        self.cores = cores
        self._busy = busy
        self._slow = slow
        self._shares: list[_Share] = []
        self._load = Fraction(0)
        self._since_ns = 0
        self._plans = 0  # so many have been made; only the latest holds

    def share(self, work: Work[object], work_ns: int) -> Work[None]:
        """Process: a work, and one that takes so long on a core of its own; over when both are."""
        share = _Share(work_ns, self.env.event())
        self._change(lambda: self._shares.append(share))
        try:
            yield from work
            if not share.done.triggered:
                yield share.done
        except GeneratorExit:
            raise  # the run and its plane have ended
        except BaseException:
            self._change(lambda: self._leave(share))
            raise

    def work_on_core(self, _: simpy.Environment, work: Work[object], work_ns: int) -> Work[None]:
        return self.share(work, work_ns)

    def _leave(self, share: _Share) -> None:
        if share in self._shares:
            self._shares.remove(share)

    def _change(self, change: Callable[[], None]) -> None:
        """Account for the time until now, change who works, and plan when the first of them will be done."""
        self._account()
        if not self._shares:
            self._load = self._busy.threads(int(self.env.now))
        change()
        self._plan()

    def _account(self) -> None:
        elapsed_ns, self._since_ns = int(self.env.now) - self._since_ns, int(self.env.now)
        speed = self._speed
        for share in self._shares:
            share.left -= elapsed_ns * _UNIT * speed.numerator // speed.denominator

    @property
    def _speed(self) -> Fraction:
        """The share of a core that each thread gets."""
        threads = self._load + len(self._shares)
        return min(Fraction(1), self.cores / threads) if threads else Fraction(1)

    def _plan(self) -> None:
        self._plans += 1
        self._slow(self._factor())
        if not self._shares:
            return
        plan, left, speed = self._plans, max(min(share.left for share in self._shares), 0), self._speed
        after_ns = -(-left * speed.denominator // (_UNIT * speed.numerator))
        self.env.timeout(after_ns).callbacks.append(lambda _: self._end() if plan == self._plans else None)

    def _factor(self) -> Fraction:
        """How much longer a record takes than beside task threads alone."""
        alone = max(Fraction(1), self._load / self.cores)
        return max(Fraction(1), (self._load + len(self._shares)) / self.cores) / alone

    def _end(self) -> None:
        """A piece of work is done."""
        self._account()
        for share in [share for share in self._shares if share.left <= 0]:
            self._shares.remove(share)
            share.done.succeed()
        self._plan()
