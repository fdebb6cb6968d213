"""The client side of storage requests: work that can run detached, retries and timeouts, threads, and request counts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import simpy

from sim.model.storage import Retry
from sim.model.units import SECOND
from sim.storage.ledger import Name, StorageFailed, TimedOut, Transient, Unreachable

# ---- Work that takes time. It is a generator of SimPy events, which runs without a SimPy process of its own, because processes
# are slower.

T = TypeVar("T")
Work = Generator[simpy.Event, Any, T]
"""A generator that yields the events it waits for, and returns T."""


def resume_work(
    work: Work[T],
    awaited: simpy.Event,
    watch: Callable[[simpy.Event], None] = lambda _: None,
    *,
    outlasts: bool = False,
) -> Work[T]:
    """Continue work that was started with `next(work)` and waits for `awaited`.  Return its result.

    Failures of events, and interrupts, are thrown into the work.  `watch` is called with each event before the work waits
    for it.  If `outlasts`, an interrupt ends this generator, and the work continues detached (see `shield_from_interrupt`).
    """
    try:
        while True:
            watch(awaited)
            try:
                value = yield awaited
            except BaseException as failure:  # passed to the work
                if outlasts and isinstance(failure, simpy.Interrupt):
                    rest = _run_to_completion(work, awaited)
                    run_detached(rest, next(rest))
                    raise
                awaited = work.throw(failure)
            else:
                awaited = work.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def shield_from_interrupt(work: Work[T]) -> Work[T]:
    """Run work in such a way that it continues if its process is interrupted.  A storage failure after that is ignored."""
    try:
        awaited = next(work)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return (yield from resume_work(work, awaited, outlasts=True))


def _run_to_completion(work: Work[T], awaited: simpy.Event) -> Work[None]:
    """Continue work like `resume_work`, but ignore its result and a storage failure."""
    with suppress(StorageFailed):
        yield from resume_work(work, awaited)


def schedule_urgent_callback(env: simpy.Environment, action: Callable[[], None]) -> None:
    """Call `action` in a separate event at the present time, before all other events at this time."""
    turn = simpy.Event(env)
    turn._ok, turn._value = True, None  # noqa: SLF001  # as in simpy.events.Initialize
    turn.callbacks.append(lambda _: action())
    env.schedule(turn, simpy.events.URGENT, 0)


class DetachedWork:
    """Work that runs by itself, like a SimPy process, but faster.

    No process can wait for it, and its start and end are not events.
    """

    def __init__(self, work: Work[None]) -> None:
        self._work = work
        self._awaited: simpy.Event | None = None

    def wait_for(self, event: simpy.Event) -> None:
        """Continue after the event, or at once if it has been processed."""
        if event.callbacks is None:
            self._on_event(event)
        else:
            self._awaited = event
            event.callbacks.append(self._on_event)

    def break_off(self) -> None:
        """Throw `simpy.Interrupt` into the work, unless it has ended."""
        if self._awaited is not None:
            self._awaited.callbacks.remove(self._on_event)
            self._proceed(lambda: self._work.throw(simpy.Interrupt(None)))

    def _on_event(self, event: simpy.Event) -> None:
        self._proceed(lambda: self._resume_with(event))

    def _proceed(self, step: Callable[[], simpy.Event]) -> None:
        """Advance the work by `step`, and then until it waits for an event that has not been processed."""
        self._awaited = None
        with suppress(StopIteration):
            awaited = step()
            while awaited.callbacks is None:
                awaited = self._resume_with(awaited)
            self.wait_for(awaited)

    def _resume_with(self, event: simpy.Event) -> simpy.Event:
        """Send the value of an event to the work, or throw its failure into it.  Return the next event that the work waits for."""
        event.defused = True
        return self._work.send(event.value) if event.ok else self._work.throw(event.value)  # type: ignore[arg-type]  # a failure


def run_detached(work: Work[None], awaited: simpy.Event) -> DetachedWork:
    """Continue work, which was started with `next(work)` and waits for `awaited`, detached from the caller."""
    carried = DetachedWork(work)
    carried.wait_for(awaited)
    return carried


# ---- The requests that an object store answers, counted per second and per class of its price list.

PRICED_AS = {
    "put": "put",
    "initiate": "put",
    "part": "put",
    "complete": "put",
    "list": "list",
    "get": "get",
    "head": "get",
    "exists": "get",
    "delete": "delete",
}
"""Request -> its class in the price list (S3: PUT, COPY and POST; LIST; GET and all others; DELETE is free)."""


@dataclass(slots=True)
class RequestSecond:
    """The number of requests in one second, the bytes written and read by them, and the bytes stored at its end."""

    time: int  # start of the second [s]
    put: int = 0
    get: int = 0
    list: int = 0
    delete: int = 0
    refused: int = 0
    written: int = 0
    read: int = 0
    stored: int = 0


class RequestLog:
    """Counts of requests per second: answered ones, and those refused with 503, which are not charged."""

    def __init__(self) -> None:
        self._seconds: list[RequestSecond] = []
        self._sizes: dict[Name, int] = {}  # existing objects
        self._older: dict[Name, int] = {}  # of previous job instances, which are in other directories
        self._stored_bytes = 0

    def __iter__(self) -> Iterator[RequestSecond]:
        """Iterate over the seconds with requests."""
        return iter(self._seconds)

    def continue_from(self, older: RequestLog) -> None:
        """Count the objects of the previous job instance as stored, until they are deleted."""
        self._older, self._stored_bytes = {**older._older, **older._sizes}, older._stored_bytes

    def answered(self, what: str, now_ns: int, size_bytes: int) -> None:
        """Count an answered request.  `what`: a key of `PRICED_AS`.  `size_bytes`: its payload."""
        second, kind = self._at(now_ns), PRICED_AS[what]
        setattr(second, kind, getattr(second, kind) + 1)
        if kind == "put":
            second.written += size_bytes
        else:
            second.read += size_bytes

    def refused(self, now_ns: int) -> None:
        """Count a request that was refused with 503."""
        self._at(now_ns).refused += 1

    def created(self, name: Name, size_bytes: int, now_ns: int) -> None:
        """Record that an object exists.  It replaces an older object of the same name."""
        self._stored_bytes += size_bytes - self._sizes.get(name, 0)
        self._sizes[name] = size_bytes
        self._at(now_ns).stored = self._stored_bytes

    def removed(self, name: Name, now_ns: int) -> None:
        """Record that an object was deleted, if it existed."""
        self._stored_bytes -= (self._sizes if name in self._sizes else self._older).pop(name, 0)
        self._at(now_ns).stored = self._stored_bytes

    def _at(self, now_ns: int) -> RequestSecond:
        """Return the counts of the current second."""
        time = now_ns // SECOND
        if not self._seconds or self._seconds[-1].time != time:
            self._seconds.append(RequestSecond(time, stored=self._stored_bytes))
        return self._seconds[-1]


# ---- Waiting for storage: waits that an outage ends, timeouts of attempts, retries with backoff.
#
# A client retries each request, block or part as often as `Retry` says.  After the last attempt, it raises `StorageFailed`.


class ImmediateEvent(simpy.Event):
    """An event whose callbacks run at once when it fires.  Those of other events run in a later step of the same time."""

    def fire(self) -> None:
        if not self.triggered:
            self._ok, self._value = True, None
            waiters, self.callbacks = self.callbacks, None  # type: ignore[assignment]  # simpy's mark of a processed event
            for waiter in waiters:
                waiter(self)

    def break_off(self, failure: Exception) -> None:
        """Fail the event in a later step of the present time.  It is not an error if no process waits for it any more."""
        if not self.triggered:
            self.fail(failure)
            self.defused = True


class Attempts:
    """The clock and the retries of one storage.  All waits are registered here, so that an outage can end them."""

    def __init__(self, env: simpy.Environment, retry: Retry) -> None:
        self.env = env
        self.retry = retry
        self.down_until_ns = 0  # the end of the last outage
        self._pending: dict[ImmediateEvent, None] = {}  # in the order of their start

    @property
    def now(self) -> int:
        return int(self.env.now)

    def wait(self, delay_ns: int) -> ImmediateEvent:
        """Return an event that fires after `delay_ns`, unless an outage or the timeout of the attempt fails it before."""
        done = self.pending()
        self.env.timeout(delay_ns).callbacks.append(lambda _: self.fire(done))
        return done

    def pending(self) -> ImmediateEvent:
        """Return an event that the caller fires by `fire`, unless an outage fails it before."""
        done = ImmediateEvent(self.env)
        self._pending[done] = None
        return done

    def fire(self, done: ImmediateEvent) -> None:
        self._pending.pop(done, None)
        done.fire()

    def forget(self, done: ImmediateEvent) -> None:
        """Unregister an event that will not fire."""
        self._pending.pop(done, None)

    def fail_until(self, until_ns: int) -> None:
        """Begin an outage: all waits in progress fail now, and storage is unreachable until `until_ns`."""
        self.down_until_ns = max(self.down_until_ns, until_ns)
        pending, self._pending = self._pending, {}
        for done in pending:
            done.break_off(Unreachable(f"storage is down until {until_ns / 1e9:g} s"))

    def run_with_retries(self, attempt: Callable[[int], Work[T]]) -> Work[T]:
        """Process: run `attempt(0)`, `attempt(1)`, ... until one succeeds, and return its result.

        Raises StorageFailed if the last one fails, too.
        """
        for number in range(self.retry.attempts):
            try:
                if self.now < self.down_until_ns:
                    raise Unreachable(f"storage is down until {self.down_until_ns / 1e9:g} s")
                work = attempt(number)
                return (
                    yield from (work if self.retry.timeout_ns is None else self._limited(work, self.retry.timeout_ns))
                )
            except Transient as failure:
                last = failure
            if number + 1 < self.retry.attempts:
                yield self.env.timeout(min(self.retry.backoff_ns << number, self.retry.max_backoff_ns))
        raise StorageFailed(f"{last} ({self.retry.attempts} attempts)")

    def spend(self, delay_ns: int) -> Work[None]:
        """Process: wait for `delay_ns`, again from its start after an outage."""

        def attempt(_: int) -> Work[None]:
            yield self.wait(delay_ns)

        yield from self.run_with_retries(attempt)

    def _limited(self, work: Work[T], limit_ns: int) -> Work[T]:
        """Process: run work.  When the timeout `limit_ns` has passed, the event that the work waits for fails with TimedOut."""
        awaited: simpy.Event | None = None

        def expire(_: simpy.Event) -> None:
            if isinstance(awaited, ImmediateEvent):
                awaited.break_off(TimedOut(f"no answer within {limit_ns / 1e9:g} s"))

        def wait(event: simpy.Event) -> None:
            nonlocal awaited
            awaited = event

        self.env.timeout(limit_ns).callbacks.append(expire)
        try:
            return (yield from resume_work(work, next(work), wait))
        except StopIteration as end:  # the work takes no time
            return end.value  # type: ignore[no-any-return]
        finally:
            awaited = None


# ---- Work in parallel. Each thread takes the next work of the list when it has finished one (list scheduling).


def in_parallel(env: simpy.Environment, works: Sequence[Work[object]], threads: int) -> Work[None]:
    """Process: run all works with a number of threads, started in the order of the list.

    The first failure stops all other works, and is raised.
    """
    if threads <= 1 or len(works) <= 1:
        for work in works:
            yield from work
    else:
        yield from _Threads(env, works, threads).all()


class _Threads:
    """Threads that take works from one list."""

    def __init__(self, env: simpy.Environment, works: Sequence[Work[object]], threads: int) -> None:
        self.env = env
        self.works = works
        self.threads = min(threads, len(works))
        self._next = 0
        self._done = 0
        self._running: list[DetachedWork] = []
        self._over = ImmediateEvent(env)  # all done, or one failed

    def all(self) -> Work[None]:
        """Process: run all works.  A failure of one, or an interrupt, stops the others."""
        schedule_urgent_callback(self.env, self._begin)
        try:
            yield self._over
        except BaseException:
            schedule_urgent_callback(self.env, self._break_off)
            raise

    def _begin(self) -> None:
        """Start the threads.  They are not SimPy processes, because most works take no time."""
        for _ in range(self.threads):
            if self._next == len(self.works):
                break  # earlier threads have taken all works
            thread = self._thread()
            if (awaited := next(thread, None)) is not None:
                self._running.append(run_detached(thread, awaited))

    def _break_off(self) -> None:
        for thread in self._running:
            thread.break_off()

    def _thread(self) -> Work[None]:
        """Run works from the list, one after the other, until none is left or one fails."""
        try:
            while self._next < len(self.works):
                work, self._next = self.works[self._next], self._next + 1
                yield from work
                self._done += 1
        except StorageFailed as failure:
            self._over.break_off(failure)  # not raised at once: the waiting process may be interrupted at the same time
        except simpy.Interrupt:
            return
        else:
            if self._done == len(self.works) and not self._over.triggered:
                self._over.succeed()
