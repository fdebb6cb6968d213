"""Messages and progress of a verb on stderr, its result on stdout.

On a terminal, work of more than two seconds has a progress bar.  Otherwise a line is printed every ten seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from sim.app.cli.errors import print_message
from sim.app.verbs.common import Listener, Work
from sim.studies.progress import Clock, TimeLeft, Watch


class Console(Listener):
    """Listener that prints.

    `show` prints the result before the verb stores it; with `as_json`, its `facts` are printed as JSON instead.  If the
    reader of stdout closes the pipe (``| head``), results are still stored: BrokenPipeError is raised when the `with`
    block ends.
    """

    def __init__(self, show: Callable[[Any], object], *, as_json: bool = False, indent: int | None = None) -> None:
        self._show = show
        if as_json:
            self._show = lambda found: print(json.dumps(found.facts, indent=indent, allow_nan=False))
        self._gone: BrokenPipeError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._gone is not None:
            raise self._gone

    def message(self, text: str) -> None:
        print_message(text)

    def result(self, result: Any) -> None:
        try:
            self._show(result)
            sys.stdout.flush()  # show the result now: storing and drawing may take long
        except BrokenPipeError as error:
            self._gone = error

    def progress(self, work: Work) -> AbstractContextManager[Watch]:
        return bar(work)


PATIENCE_S = 2.0
LOG_EVERY_S = 10.0
MIN_SHARE = 0.02
"""Share of the work that must be done before the remaining time is estimated."""


@contextmanager
def bar(work: Work) -> Iterator[Watch]:
    """Show progress.  Yield a function to call with (finished items, simulated time so far [ns])."""
    if not sys.stderr.isatty():
        yield log_lines(work)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = progress.add_task(work.name, total=work.total_ns, done="")
    begun = drawn = time.monotonic()

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < 0.1:
            return
        drawn = now
        progress.start()
        progress.update(task, completed=simulated_ns, done=_done(work, finished), refresh=True)

    try:
        yield watch
    finally:
        progress.stop()


def _done(work: Work, finished: int, left: str = "") -> str:
    """Return the number of finished items, what is left, and the best result so far."""
    counted = f"{finished}{'' if work.count is None else f'/{work.count}'} {work.items}"
    return ", ".join(filter(None, [counted, left, work.best()]))


def log_lines(work: Work, clock: Clock = time.monotonic) -> Watch:
    """Return a progress function that prints a line every ten seconds.

    The rate is measured from the first progress on, because the program compiles and imports before that.
    """
    logged_s = clock()
    first: tuple[float, float] | None = None  # time [s] and finished share at the first progress
    left = TimeLeft(clock)

    def share_done(share: float) -> str:
        if first is None or share - first[1] < MIN_SHARE:
            return f"{100 * share:.0f} %"
        estimate_s = min((clock() - first[0]) * (1 - share) / (share - first[1]), work.left_s())
        return f"{100 * share:.0f} %, {left.text(estimate_s, lambda: 'it is slower than it was')}"

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal logged_s, first
        share = work.share(simulated_ns)
        if first is None and simulated_ns:
            first = clock(), share
        if clock() - logged_s >= LOG_EVERY_S:
            logged_s = clock()
            print_message(f"{work.name}: {_done(work, finished, share_done(share))}")

    return watch
