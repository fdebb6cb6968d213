"""Signals that end a command, and worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, the request of a supervisor, a closed terminal."""

_DIE_WITH_PARENT = 1
"""Linux's PR_SET_PDEATHSIG."""


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Ending signals wait until the block is over, however it ends.  Half-started processes would stay for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in ENDING if _heeded(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def without_handlers() -> Iterator[None]:
    """Processes forked here react to ending signals after `end_with_parent` only: the handlers belong to the parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(*, forked_by_main_thread: bool) -> None:
    """Called first in a worker: an ending signal ends it at once and silently, and it never outlives its parent."""
    for number in ENDING:
        if _heeded(number):
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    parent = multiprocessing.parent_process()
    if parent is None:  # not a worker
        return
    if sys.platform == "linux" and forked_by_main_thread:  # the kernel watches the thread, which may end before its process
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent.pid:  # the parent is dead already
            os._exit(1)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: multiprocessing.process.BaseProcess) -> None:
    """Wait on a pipe to the parent: on every system its death closes the pipe."""
    parent.join()
    os._exit(1)


def _heeded(number: int) -> bool:
    """Whether the signal counts: `nohup` and background jobs of shells ignore signals, and that stays so."""
    return signal.getsignal(number) is not signal.SIG_IGN
