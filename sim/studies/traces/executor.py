"""The code of Spark tasks that read files and cut windows.  Executors get its text as it stands here, as they may not have `sim` yet."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any


def reader(shares: bytes, choices: bytes, bring: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for Spark's mapInArrow.  It takes numbers of lists of files (`shares`, pickled) and returns the rows of their files."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        bring()
        from sim.studies.traces.files import rows_of

        shares_of_tasks, choices_of_user = pickle.loads(shares), pickle.loads(choices)
        for numbers in batches:
            for i in numbers.column("id").to_pylist():
                for file in shares_of_tasks[i]:
                    yield from rows_of(file, choices_of_user)

    return read


def cutter(given: bytes, bring: Callable[[], None]) -> Callable[[Any], Any]:
    """A function for Spark's applyInPandas.  It takes the rates of a trace; `given`: failures and how to cut, pickled."""

    def cut(rates: Any) -> Any:
        bring()
        from sim.studies.traces.windows import cut_trace

        return cut_trace(rates, *pickle.loads(given))

    return cut
