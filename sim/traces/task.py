"""What runs in a Spark executor to read files.  Sent there as it stands here: on arrival there may be no `sim` to import yet."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["reader"]


def reader(files: bytes, choices: bytes, bring: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow over the numbers of pickled `files`: all their rows."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        bring()
        from sim.traces.files import rows_of

        listed, choices_of_user = pickle.loads(files), pickle.loads(choices)  # noqa: S301 - our own
        for numbers in batches:
            for i in numbers.column("id").to_pylist():
                yield from rows_of(listed[i], choices_of_user)

    return read
