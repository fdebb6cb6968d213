"""Progress of a command below a notebook's cell: a line, if the work takes longer than two seconds.  Nothing is shown elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sim.app.verbs.common import Listener, Work
from sim.studies.progress import Watch

PATIENCE_S = 2.0
EVERY_S = 0.5
MARK = {"ckptsim": "progress"}
"""Metadata of the line, by which tools that store notebooks can remove it."""


class Notebook(Listener):
    """Listener that shows the progress of a verb below a notebook's cell.  Messages are not shown: results include them."""

    def __init__(self, *, show: bool = True) -> None:
        self._show = show

    def progress(self, work: Work) -> AbstractContextManager[Watch]:
        return watching(work) if self._show and _in_notebook() else super().progress(work)


@contextmanager
def watching(work: Work) -> Iterator[Watch]:
    """Show progress.  Yield a function to call with (finished items, simulated or spent time of all [ns])."""
    begun = drawn = time.monotonic()
    handle: Any = None

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn, handle
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < EVERY_S:
            return
        drawn = now
        done = f"{finished}{'' if work.count is None else f' of {work.count}'} {work.items}"
        line = {"text/plain": line_of(work.name, done, work.share(simulated_ns), now - begun)}
        if handle is None:
            handle = _display(line)
        else:
            handle.update(line, raw=True, metadata=MARK)

    try:
        yield watch
    finally:
        if handle is not None:
            handle.update({"text/plain": f"{work.name}: {time.monotonic() - begun:.0f} s"}, raw=True, metadata=MARK)


def line_of(what: str, done: str, share: float, passed_s: float) -> str:
    """Return a line such as ``p4: 3 of 12 runs, 25 %, 9 s left``; the remaining time is given once 1 % is done."""
    left = f", {passed_s * (1 - share) / share:.0f} s left" if share > 0.01 else ""
    return f"{what}: {done}, {100 * share:.0f} %{left}"


def _in_notebook() -> bool:
    """Return True in a Jupyter kernel; False in a terminal, also with IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _display(line: dict[str, str]) -> Any:
    from IPython.display import display

    return display(line, raw=True, metadata=MARK, display_id=True)
