"""Run work items in local processes, with progress, and with signals that end all of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from sim.studies.progress import ENDING, Progress, Watch, no_watch

# ---- Signals, and worker processes that end with their parent.

_DIE_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG."""


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Delay the signals that end a command until the block has ended, e.g. while processes start.

    A process that is interrupted while it starts would never end.  Only the main thread can delay signals; in other threads
    this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: arrived.append(number))
        for number in ENDING
        if _has_default_handler(number)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def without_handlers() -> Iterator[None]:
    """Block the signals that end a command.  Processes forked inside receive them once they call `end_with_parent`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(*, forked_by_main_thread: bool) -> None:
    """Set up a worker process: it ends at once and without a message on a signal, and when its parent process ends.

    `forked_by_main_thread`: the main thread of the parent forked the worker, so the kernel may signal the parent's end.
    """
    for number in ENDING:
        if _has_default_handler(number):
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    parent = multiprocessing.parent_process()
    if parent is None:  # not a worker
        return
    # Linux sends the signal when the forking thread ends, so it is only right if that is the main thread
    if sys.platform == "linux" and forked_by_main_thread:
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent.pid:  # the parent has ended already
            os._exit(1)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: multiprocessing.process.BaseProcess) -> None:
    """End this process when the parent has ended.  It waits for the pipe to the parent to close, which works on every system."""
    parent.join()
    os._exit(1)


def _has_default_handler(number: int) -> bool:
    """Return True unless the signal is ignored, as under `nohup`."""
    return signal.getsignal(number) is not signal.SIG_IGN


# ---- Running items in worker processes. Outcomes are yielded in the order of completion; no worker outlives the command.

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

SHORT_S = 0.25
"""Maximum expected CPU time of the remaining items for which no worker is started; starting one takes 0.1 s of CPU."""

AHEAD = 4
"""Submitted items per worker: enough to keep every worker busy, and few enough that waiting for all of them is cheap."""

_clock: Any = None  # in a worker: array of simulated times by item, shared with the parent; -1: not started


class WorkerDiedError(RuntimeError):
    """Raised if a worker was killed, usually for lack of memory."""

    exit_code = 4


def cores() -> int:
    """Return the number of cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_each(
    work: Callable[[Item, Progress], Outcome],
    items: Sequence[Item],
    *,
    jobs: int | None,
    watch: Watch = no_watch,
    died: Callable[[Item], Outcome] | None = None,
) -> Generator[tuple[int, Outcome]]:
    """Yield (index, outcome) of every item, in the order of completion.  An exception in `work` ends all workers and is raised here.

    `jobs`: number of worker processes; 1 runs all items in this process.  None: short items run one by one in this process,
    and others on all cores.
    `watch`: called with (number of finished items, simulated time of all items [ns]).
    `died`: returns the outcome of an item that kills its worker, e.g. for lack of memory.  When a worker is killed, the items
    in progress run again, one at a time; an item that kills its worker then has the outcome `died(item)`.  Without `died`, a
    killed worker raises WorkerDiedError.
    """
    run = _Run(work, items, watch, died)
    yield from run.short_items_here() if jobs is None else run.side_by_side(jobs)


@dataclass(slots=True)
class _Run(Generic[Item, Outcome]):
    """The items of a call of `run_each`, and how many of them have ended.  Methods yield (index, outcome) of the others."""

    work: Callable[[Item, Progress], Outcome]
    items: Sequence[Item]
    watch: Watch
    died: Callable[[Item], Outcome] | None
    count: int = 0  # number of finished items
    ended_ns: int = 0  # their simulated time

    def one_by_one(self) -> Generator[tuple[int, Outcome]]:
        """Run the items in this process."""
        reached_ns = 0  # simulated time of the current item

        def progress(ns: int) -> None:
            nonlocal reached_ns
            reached_ns = ns
            self.watch(self.count, self.ended_ns + ns)

        for i in range(self.count, len(self.items)):
            outcome = self.work(self.items[i], progress)
            self.count, self.ended_ns, reached_ns = i + 1, self.ended_ns + reached_ns, 0
            yield i, outcome
            self.watch(self.count, self.ended_ns)

    def short_items_here(self) -> Generator[tuple[int, Outcome]]:
        """Run items in this process while the remaining ones are expected to take at most SHORT_S, and the others on all cores.

        Each remaining item is expected to take as long as the longest one so far.
        """
        longest_s, one_by_one = 0.0, self.one_by_one()
        while cores() == 1 or longest_s * (len(self.items) - self.count) <= SHORT_S:
            begin_s = time.process_time()
            if (ended := next(one_by_one, None)) is None:
                return
            longest_s = max(longest_s, time.process_time() - begin_s)
            yield ended
        yield from self.side_by_side(cores())

    def side_by_side(self, jobs: int) -> Generator[tuple[int, Outcome]]:
        """Run the items in worker processes, or here if one is enough.  After a worker was killed, items in progress run again, one at a time."""
        items, jobs = self.items, min(jobs, len(self.items) - self.count)
        if jobs <= 1:
            yield from self.one_by_one()
            return
        # forked workers share the parent's loaded and compiled code; forking is safe on Linux only
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
        clock = context.Array("q", len(items), lock=False)
        memoryview(clock).cast("B").cast("q")[:] = array("q", [-1]) * len(items)
        done = bytearray([1]) * self.count + bytearray(len(items) - self.count)

        def end(i: int) -> None:
            done[i] = 1
            self.count += 1
            self.ended_ns += max(clock[i], 0)

        def run(indices: Iterable[int], jobs: int) -> Generator[tuple[int, Outcome]]:
            for i, outcome in self._pool(indices, jobs, context, clock):
                end(i)
                yield i, outcome

        while self.count < len(items):
            try:
                yield from run([i for i in range(len(items)) if not done[i]], jobs)
            except BrokenProcessPool:
                if self.died is None:
                    raise WorkerDiedError(
                        "a worker process was killed: too little memory? Try a smaller --jobs"
                    ) from None
                # one of these items killed its worker, which ends the whole pool
                for i in [i for i in range(len(items)) if clock[i] >= 0 and not done[i]]:
                    try:
                        yield from run([i], 1)
                    except BrokenProcessPool:
                        end(i)
                        yield i, self.died(items[i])

    def _pool(self, indices: Iterable[int], jobs: int, context: Any, clock: Any) -> Generator[tuple[int, Outcome]]:
        """Run the items at `indices` in `jobs` workers, none of which outlives this generator.  `watch` is called every 0.2 s.

        `clock`: simulated time of each item [ns], shared with the workers; -1: not started.  BrokenProcessPool: a worker was
        killed.
        """
        others = set(multiprocessing.active_children())
        in_main = threading.current_thread() is threading.main_thread()
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(clock, in_main))
        coming = iter(indices)
        running: dict[Future[Outcome], int] = {}
        try:
            while True:
                # `submit` may fork workers, and exceptions in fork callbacks (as Ctrl-C raises) would be lost
                with delayed_signals(), without_handlers():
                    following = islice(coming, AHEAD * jobs - len(running))
                    running |= {pool.submit(_do, self.work, i, self.items[i]): i for i in following}
                if not running:
                    break
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                ended = {future: running.pop(future) for future in done}
                broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
                for future in done - set(broken):
                    yield ended[future], future.result()
                for future in broken:
                    future.result()
                self.watch(self.count, self.ended_ns + sum(max(clock[i], 0) for i in running.values()))
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(clock: Any, forked_by_main_thread: bool) -> None:
    """Initialize a worker process."""
    global _clock
    _clock = clock
    end_with_parent(forked_by_main_thread=forked_by_main_thread)


def _do(work: Callable[[Item, Progress], Outcome], index: int, item: Item) -> Outcome:
    """Run an item in a worker, and report its start and its simulated time to the parent."""
    _clock[index] = max(_clock[index], 0)
    return work(item, lambda ns: _clock.__setitem__(index, ns))
