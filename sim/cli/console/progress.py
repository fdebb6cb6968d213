"""A bar on stderr, only for people and only if it takes more than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sim.cells.local import Watch, no_watch
from sim.cli.console.errors import print_message

__all__ = ["bar"]

PATIENCE_S = 2.0
LOG_EVERY_S = 60.0


@contextmanager
def bar(what: str, total_ns: int, count: int | None, *, what_each: str = "cells", details: Callable[[], str] = str) -> Iterator[Watch]:
    """Yields a receiver of (finished cells, ns so far).  `details` says more; with it, a log has a line now and then.

    `count` None: nobody knows how many there will be, and `details` says how long it takes.
    """
    if not sys.stderr.isatty():
        yield no_watch if details is str else _log(what, count, what_each, details)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"))
    left = () if count is None else (TimeRemainingColumn(),)
    progress = Progress(*columns, *left, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = progress.add_task(what, total=total_ns, done="")
    begun = drawn = time.monotonic()

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < 0.1:
            return
        drawn = now
        progress.start()
        progress.update(task, completed=simulated_ns, done=_done(finished, count, what_each, details), refresh=True)

    try:
        yield watch
    finally:
        progress.stop()


def _done(finished: int, count: int | None, what_each: str, details: Callable[[], str]) -> str:
    return ", ".join(filter(None, [f"{finished}{'' if count is None else f'/{count}'} {what_each}", details()]))


def _log(what: str, count: int | None, what_each: str, details: Callable[[], str]) -> Watch:
    """A line a minute for those who look at a log."""
    logged_s = time.monotonic()

    def watch(finished: int, _: int) -> None:
        nonlocal logged_s
        if time.monotonic() - logged_s >= LOG_EVERY_S:
            logged_s = time.monotonic()
            print_message(f"{what}: {_done(finished, count, what_each, details)}")

    return watch
