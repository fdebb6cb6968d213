"""A sweep on a Spark cluster whose executor, Python worker and driver are killed in mid-run: what does it cost, and is a byte different?

    python -m benchmarks.chaos SCENARIO [OPTIONS OF SWEEP ...]

Runs `ckptsim sweep` three times: undisturbed on two local processes; on a standalone cluster (a master, two workers) until its
driver is killed, an executor and a Python worker having been killed before; and once more, to the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.standalone import standalone

__all__ = ["Damage", "disturbed"]

PATIENCE_S = 1800.0


@dataclass(frozen=True)
class Damage:
    """What was done to a sweep and what it cost."""

    cells: int
    kept_at: dict[str, int]  # what was killed -> rows kept at that time
    ran_twice: int  # rows of cells that had one already
    retried: int  # rows from a second attempt of their task
    same: bool  # results are those of the undisturbed sweep, byte for byte

    def __str__(self) -> str:
        kills = ", ".join(f"{what} at {count}" for what, count in self.kept_at.items())
        verdict = "results are the same bytes" if self.same else "RESULTS DIFFER"
        return (
            f"{self.cells} cells; killed after so many rows: {kills}; {self.retried} rows from a second attempt, "
            f"{self.ran_twice} cells ran again after the driver was killed: {verdict}"
        )


def disturbed(options: Sequence[str], folder: Path) -> Damage:
    """`options`: what follows `ckptsim sweep`, without --out, --jobs and --master."""
    _sweep([*options, "--jobs", "2", "--out", str(folder / "undisturbed")]).wait()
    count = pq.read_metadata(folder / "undisturbed" / "results.parquet").num_rows
    out = folder / "disturbed"
    with standalone(folder / "cluster") as cluster:
        words = [*options, "--master", cluster.url, "--out", str(out)]
        driver, kept = _sweep(words), {}
        victims: dict[str, Callable[[], list[int]]] = {
            "executor": cluster.executors, "Python worker": cluster.python_workers, "driver": lambda: [driver.pid],
        }  # fmt: skip
        try:
            for i, (what, alive) in enumerate(victims.items()):
                kept[what] = _reached(out, count * (i + 1) // 5, driver)
                os.kill(_one_of(alive), signal.SIGKILL)
            driver.wait(PATIENCE_S)
            if _sweep(words).wait(PATIENCE_S):
                raise RuntimeError("the second sweep failed")
        finally:
            driver.kill()
    rows = _rows(out)
    times = Counter(row["cell"] for row in rows)
    return Damage(
        cells=count, kept_at=kept, ran_twice=sum(times.values()) - len(times), retried=sum(row["attempt"] > 0 for row in rows),
        same=all((out / name).read_bytes() == (folder / "undisturbed" / name).read_bytes() for name in ("results.parquet", "results.csv")),
    )  # fmt: skip


def _sweep(words: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "sim", "sweep", *words], stdout=subprocess.DEVNULL)


def _reached(out: Path, count: int, driver: subprocess.Popen[bytes]) -> int:
    """Waits until so many rows are kept; how many there are then."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and driver.poll() is None:
        if (kept := len(_rows(out))) >= count:
            return kept
        time.sleep(0.2)
    raise RuntimeError(f"the sweep ended or stood still before {count} rows were kept")


def _rows(out: Path) -> list[dict[str, object]]:
    return [row for path in (out / "cells").glob("*.parquet") for row in pq.read_table(path, columns=["cell", "attempt"]).to_pylist()]


def _one_of(alive: Callable[[], list[int]]) -> int:
    """The first process there is: executors come and go."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := alive():
            return found[0]
        time.sleep(0.1)
    raise RuntimeError("nothing to kill")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ckptsim-chaos-") as place:
        print(disturbed(sys.argv[1:], Path(place)))
