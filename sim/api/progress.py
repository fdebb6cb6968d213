"""How far the runs are: a line below the cell of a notebook, if it takes longer than two seconds.  Elsewhere nothing is shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sim.cells.local import Watch, no_watch
from sim.verbs.listener import Listener

PATIENCE_S = 2.0
EVERY_S = 0.5
MARK = {"ckptsim": "progress"}
"""A mark in the metadata of the line: tools that keep notebooks leave it out."""


class Notebook(Listener):
    """The progress of a verb below a cell of a notebook.  Messages of the verb are in its result."""

    def __init__(self, *, show: bool = True) -> None:
        self._show = show

    def progress(
        self, what: str, total_ns: int, count: int | None, *, what_each: str = "cells", details: Callable[[], str] = str,
    ) -> AbstractContextManager[Watch]:  # fmt: skip
        del details  # the line of a notebook is short
        return watching(what, total_ns, count, show=self._show, what_each=what_each)


@contextmanager
def watching(what: str, total_ns: int, count: int | None, *, show: bool = True, what_each: str = "runs") -> Iterator[Watch]:
    """Yields a receiver of (finished items, simulated or spent time of all [ns]).  `count` None: the number is unknown."""
    if not show or not _in_notebook():
        yield no_watch
        return
    begun = drawn = time.monotonic()
    handle: Any = None

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn, handle
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < EVERY_S:
            return
        drawn = now
        done = f"{finished}{'' if count is None else f' of {count}'} {what_each}"
        line = {"text/plain": line_of(what, done, simulated_ns / max(1, total_ns), now - begun)}
        if handle is None:
            handle = _display(line)
        else:
            handle.update(line, raw=True, metadata=MARK)

    try:
        yield watch
    finally:
        if handle is not None:
            handle.update({"text/plain": f"{what}: {time.monotonic() - begun:.0f} s"}, raw=True, metadata=MARK)


def line_of(what: str, done: str, share: float, passed_s: float) -> str:
    """``p4: 3 of 12 runs, 25 %, 9 s left``; what is left is known once a little is done."""
    left = f", {passed_s * (1 - share) / share:.0f} s left" if share > 0.01 else ""
    return f"{what}: {done}, {100 * min(share, 1.0):.0f} %{left}"


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this; a terminal with IPython is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _display(line: dict[str, str]) -> Any:
    from IPython.display import display

    return display(line, raw=True, metadata=MARK, display_id=True)
