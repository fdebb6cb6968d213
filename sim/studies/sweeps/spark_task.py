"""The code of a Spark task.  The source of this module is sent to the executors, where `sim` may not be installed.

Therefore nothing of `sim` is imported at the top; the functions import the package after they have installed it.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class RowsAccumulatorParam:
    """Accumulator parameter that concatenates lists of rows."""

    def zero(self, value: list[Any]) -> list[Any]:
        del value
        return []

    def addInPlace(self, rows: list[Any], others: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        rows.extend(others)
        return rows


def runner(
    archive: str, version: str, check: bool, kernel: Any, sent: Any, series: Mapping[str, Any]
) -> Callable[[Iterator[bytes]], Iterator[str]]:
    """Return the function that Spark applies to each partition: it runs packed cells.

    Rows are added to the accumulator `sent`; the function itself returns no elements.  `archive`, `version`: the package that
    was sent, and its code version.  `kernel`: broadcast variable with the driver's machine code.  `series`: broadcast
    variables of `sim.studies.sweeps.packed_cells`.
    """

    def run(tasks: Iterator[bytes]) -> Iterator[str]:
        from pyspark import TaskContext

        import_pandas_without_pyarrow()
        import_driver_package(archive, version)
        from sim.studies.cells import timed, warm
        from sim.studies.sweeps.packed_cells import unpack

        # does nothing if an earlier task of this worker has done it
        warm(kernel.value)
        context = TaskContext.get()
        attempt = context.attemptNumber() if context else 0
        for packed in tasks:
            for cell in unpack(packed, series):
                sent.add([timed(cell, check=check, attempt=attempt)])
        return iter(())

    return run


def import_pandas_without_pyarrow() -> None:
    """Import pandas as if pyarrow were not installed: a cell needs none of it, and it takes 36 MB of each worker.

    Does nothing if pandas has been imported.  Pyarrow itself can still be imported afterwards.
    """
    if not {"pandas", "pyarrow"} & sys.modules.keys():
        # an import of it raises ModuleNotFoundError
        sys.modules["pyarrow"] = None  # type: ignore[assignment]
        try:
            import pandas as pd  # noqa: F401 - it is imported to be kept
        finally:
            del sys.modules["pyarrow"]


def import_driver_package(archive: str, version: str) -> None:
    """Make `sim` importable in the driver's version: the installed package if its version matches, else the sent archive."""
    try:
        from sim.runtime.result import code_version

        if code_version() == version:
            return
    except ImportError:
        pass
    from pyspark import SparkFiles

    for name in [name for name in sys.modules if name.partition(".")[0] == "sim"]:
        del sys.modules[name]
    sys.path.insert(0, SparkFiles.get(archive))


def reader(shares: bytes, choices: bytes, bring: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for Spark's mapInArrow, which maps indices into `shares` to the rows of these files.

    `shares`: list of lists of files, pickled.  `choices`: options for reading, pickled.  `bring`: makes `sim` importable.
    """

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        bring()
        from sim.studies.traces.reading import rows_of

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
