"""The events of a verb at work.  The command prints them, a notebook shows the progress, and a program may ignore them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sim.cells.local import Watch, no_watch


class Stopped(KeyboardInterrupt):
    """The work was interrupted, by Ctrl-C or a signal.  The message says what is kept."""


class Listener:
    """A listener that ignores all events of a verb.  Others override the events that they show."""

    def message(self, text: str) -> None:
        """A line about the job, the work or the folder."""

    def warning(self, text: str) -> None:
        """A line that questions the results."""
        self.message(f"warning: {text}")

    def result(self, result: Any) -> None:
        """The result of a verb, before it is kept: keeping and drawing may take longer than finding."""

    def progress(
        self, what: str, total_ns: int, count: int | None, *, what_each: str = "cells", details: Callable[[], str] = str,
    ) -> AbstractContextManager[Watch]:  # fmt: skip
        """Around long work: a receiver of (finished items, time of all [ns]), out of `count` items and `total_ns`.

        `count` None: their number is not known.  `details` says more about the work at any time.
        """
        del what, total_ns, count, what_each, details
        return nullcontext(no_watch)
