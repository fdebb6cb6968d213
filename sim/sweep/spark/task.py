"""What runs in a Spark executor.  Sent there as it stands here: on arrival there may be no `sim` to import yet.

Nothing of `sim` is imported above the functions: they bring the package themselves.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["runner"]


def runner(tasks: list[bytes], archive: str, version: str, engine: str, check: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow over the numbers of `tasks`, each of which is some pickled cells: their rows, as JSON."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        bring(archive, version)
        from sim.cells.cell import timed, warm

        warm(engine)  # type: ignore[arg-type] # a worker is used for many tasks: after the first this costs nothing
        context = TaskContext.get()
        attempt = context.attemptNumber() if context else 0
        for numbers in batches:
            for i in numbers.column("id").to_pylist():
                rows = [json.dumps(timed(cell, engine, check=check, attempt=attempt)) for cell in pickle.loads(tasks[i])]  # type: ignore[arg-type] # noqa: S301 - our own
                yield pa.RecordBatch.from_pydict({"row": rows})

    return run


def bring(archive: str, version: str) -> None:
    """The driver's version of the package: the one installed here, with its compiled kernel, if it is the same; else what was sent."""
    try:
        from sim.runtime.run.manifest import code_version

        if code_version() == version:
            return
    except ImportError:
        pass
    from pyspark import SparkFiles

    for name in [name for name in sys.modules if name.partition(".")[0] == "sim"]:
        del sys.modules[name]
    sys.path.insert(0, str(_lasting(Path(SparkFiles.get(archive)), version)))


def _lasting(sent: Path, version: str) -> Path:
    """A copy in the user's cache, for all executors of this machine and for later sweeps: the compiled kernel is kept beside it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ckptsim"
    place = home / version
    try:
        if not place.exists():
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy = Path(tempfile.mkdtemp(dir=home))
            shutil.copytree(sent, copy, dirs_exist_ok=True)
            copy.rename(place)  # whole or not at all; another executor may have been first
    except OSError:
        return place if place.exists() else sent
    return place
