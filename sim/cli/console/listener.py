"""What a verb says, on stderr: lines as they come, and a bar while it works."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from sim.cells.local import Watch
from sim.cli.console.errors import print_message
from sim.cli.console.progress import bar
from sim.verbs.listener import Listener


class Console(Listener):
    """The console as the listener of a verb.  `show` prints the result, before it is kept.

    A reader that goes away (``| head``) does not keep results from being kept: `finish` raises its BrokenPipeError afterwards.
    """

    def __init__(self, show: Callable[[Any], object] = lambda _: None) -> None:
        self._show = show
        self._gone: BrokenPipeError | None = None

    def message(self, text: str) -> None:
        print_message(text)

    def result(self, result: Any) -> None:
        try:
            self._show(result)
            sys.stdout.flush()  # keeping and drawing take longer than finding
        except BrokenPipeError as error:
            self._gone = error

    def finish(self) -> None:
        if self._gone is not None:
            raise self._gone

    def progress(
        self, what: str, total_ns: int, count: int | None, *, what_each: str = "cells", details: Callable[[], str] = str,
    ) -> AbstractContextManager[Watch]:  # fmt: skip
        return bar(what, total_ns, count, what_each=what_each, details=details)
