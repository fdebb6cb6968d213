"""Functions of Spark tasks that read files and cut windows.

They are pickled by value, because an executor cannot import `sim` before the task has called `bring`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any


def reader(shares: bytes, choices: bytes, bring: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for Spark's mapInArrow, which maps indices into `shares` to the rows of these files.

    `shares`: list of lists of files, pickled.  `choices`: options for reading, pickled.  `bring`: makes `sim` importable.
    """

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        bring()
        from sim.studies.traces.files import rows_of

        shares_of_tasks, choices_of_user = pickle.loads(shares), pickle.loads(choices)
        for numbers in batches:
            for i in numbers.column("id").to_pylist():
                for file in shares_of_tasks[i]:
                    yield from rows_of(file, choices_of_user)

    return read


def cutter(arguments: bytes, bring: Callable[[], None]) -> Callable[[Any], Any]:
    """Return a function for Spark's applyInPandas, which maps the rates of a trace to its windows.

    `arguments`: failures of all traces and the `Cutting`, pickled.  `bring`: makes `sim` importable.
    """

    def cut(rates: Any) -> Any:
        bring()
        from sim.studies.traces.windows import cut_trace

        return cut_trace(rates, *pickle.loads(arguments))

    return cut
