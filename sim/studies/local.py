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
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, TypeVar

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
    if jobs is None:
        yield from _run_short_cells_here(work, items, watch, died)
        return
    jobs = min(jobs, len(items))
    yield from _one_by_one(work, items, watch) if jobs <= 1 else _side_by_side(work, items, jobs, watch, died)


def _one_by_one(
    work: Callable[[Item, Progress], Outcome],
    items: Sequence[Item],
    watch: Watch,
) -> Generator[tuple[int, Outcome]]:
    """Run all items in this process."""
    ended_ns = reached_ns = 0  # simulated time of finished items, and of the current one
    for i in range(len(items)):

        def progress(ns: int, i: int = i, before_ns: int = ended_ns) -> None:
            nonlocal reached_ns
            reached_ns = ns
            watch(i, before_ns + ns)

        yield i, work(items[i], progress)
        ended_ns, reached_ns = ended_ns + reached_ns, 0
        watch(i + 1, ended_ns)


def _run_short_cells_here(
    work: Callable[[Item, Progress], Outcome],
    items: Sequence[Item],
    watch: Watch,
    died: Callable[[Item], Outcome] | None,
) -> Generator[tuple[int, Outcome]]:
    """Run items in this process while the remaining ones are expected to take at most SHORT_S, and the others on all cores.

    Each remaining item is expected to take as long as the longest one so far.
    """
    ended, longest_s, reached_ns = 0, 0.0, 0

    def watched(finished: int, simulated_ns: int) -> None:
        nonlocal reached_ns
        reached_ns = simulated_ns
        watch(finished, simulated_ns)

    one_by_one = _one_by_one(work, items, watched)
    while ended < len(items) and (cores() == 1 or longest_s * (len(items) - ended) <= SHORT_S):
        begin_s = time.process_time()
        outcome = next(one_by_one)
        longest_s = max(longest_s, time.process_time() - begin_s)
        ended += 1
        yield outcome
    if ended == len(items):
        yield from one_by_one  # no item is left; this calls `watch` a last time
        return
    long_ones = run_each(
        work, items[ended:], jobs=cores(), watch=lambda done, ns: watch(ended + done, reached_ns + ns), died=died
    )
    with closing(long_ones):
        yield from ((ended + i, outcome) for i, outcome in long_ones)


def _side_by_side(
    work: Callable[[Item, Progress], Outcome],
    items: Sequence[Item],
    jobs: int,
    watch: Watch,
    died: Callable[[Item], Outcome] | None,
) -> Generator[tuple[int, Outcome]]:
    """Run all items in worker processes.  If a worker is killed, the items in progress run again, one at a time."""
    # forked workers share the parent's loaded and compiled code; forking is safe on Linux only
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    clock = context.Array("q", len(items), lock=False)
    memoryview(clock).cast("B").cast("q")[:] = array("q", [-1]) * len(items)
    done = bytearray(len(items))
    count = ended_ns = 0

    def watched(running: Iterable[int]) -> None:
        watch(count, ended_ns + sum(max(clock[i], 0) for i in running))

    def ended(i: int) -> None:
        nonlocal count, ended_ns
        done[i] = 1
        count += 1
        ended_ns += max(clock[i], 0)

    def run(indices: Iterable[int], jobs: int) -> Generator[tuple[int, Outcome]]:
        for i, outcome in _pool(work, items, indices, jobs, context, clock, watched):
            ended(i)
            yield i, outcome

    while count < len(items):
        try:
            yield from run([i for i in range(len(items)) if not done[i]], jobs)
        except BrokenProcessPool:
            if died is None:
                raise WorkerDiedError("a worker process was killed: too little memory? Try a smaller --jobs") from None
            # one of these items killed its worker, which ends the whole pool
            for i in [i for i in range(len(items)) if clock[i] >= 0 and not done[i]]:
                try:
                    yield from run([i], 1)
                except BrokenProcessPool:
                    ended(i)
                    yield i, died(items[i])


def _pool(
    work: Callable[[Item, Progress], Outcome],
    items: Sequence[Item],
    indices: Iterable[int],
    jobs: int,
    context: Any,
    clock: Any,
    tick: Callable[[Iterable[int]], None],
) -> Generator[tuple[int, Outcome]]:
    """Yield (index, outcome) of the items at `indices`.  No worker outlives this generator.

    `clock`: simulated time of each item [ns], shared with the workers; -1: not started.  `tick`: called with the indices of
    submitted items about every 0.2 s.  BrokenProcessPool: a worker was killed.
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
                running |= {pool.submit(_do, work, i, items[i]): i for i in islice(coming, AHEAD * jobs - len(running))}
            if not running:
                break
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            ended = {future: running.pop(future) for future in done}
            broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
            for future in done - set(broken):
                yield ended[future], future.result()
            for future in broken:
                future.result()
            tick(running.values())
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
