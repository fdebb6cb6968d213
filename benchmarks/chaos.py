"""A sweep on a Spark cluster whose executor, Python worker and driver are killed in mid-run: what does it cost, and is a byte different?

    python -m benchmarks.chaos SWEEP|SCENARIO [OPTIONS OF SWEEP ...] [--keep FOLDER]

Runs `ckptsim sweep` three times.  First it runs undisturbed on two local processes.  Then it runs on a standalone
cluster (a master, four workers), where an executor, a Python worker and at last the driver are killed.  The third run
goes to the end.  With --keep, what an earlier call left in the folder is taken up: what has no row yet runs.

`scenarios/sweeps/khaos-windows.yaml` (two cores, shared): 2,304 cells; killed after so many rows: executor at 461, Python worker at 931,
driver at 1471.  Recomputed: 2 cells by a second attempt of their task, at most 5 that were under way when the driver
was killed, 0 that had a row.  Canonical rows and results the same bytes.
"""

from __future__ import annotations

import hashlib
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

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import event_log
from benchmarks.standalone import standalone
from sim.studies.sweeps.store import OUTCOME_TYPES, Store, table

__all__ = ["Damage", "canonical", "disturbed"]

PATIENCE_S = 3600.0


@dataclass(frozen=True)
class Damage:
    """What was done to a sweep and what it cost."""

    cells: int
    kept_at: dict[str, int]  # what was killed -> rows kept at that time
    retried: int  # rows from a second attempt of their task: an executor or a Python worker was killed
    under_way: int  # cells that had begun, at most, and had no row when the driver was killed: they ran again
    ran_twice: int  # cells that had a row already and ran again all the same
    digests: tuple[str, str]  # of the canonical rows, undisturbed and disturbed
    same: bool  # canonical rows and results are those of the undisturbed sweep, byte for byte

    def __str__(self) -> str:
        kills = ", ".join(f"{what} at {count}" for what, count in self.kept_at.items())
        verdict = "the same bytes" if self.same else "BYTES DIFFER"
        return (
            f"{self.cells} cells; killed after so many rows: {kills}. Recomputed: {self.retried} cells by a second attempt of their task, "
            f"at most {self.under_way} that were under way when the driver was killed, {self.ran_twice} that had a row. "
            f"Canonical rows {self.digests[0]} and {self.digests[1]}: {verdict}"
        )


def disturbed(options: Sequence[str], folder: Path) -> Damage:
    """`options`: what follows `ckptsim sweep`, without --out, --jobs and --master."""
    calm, out, events = folder / "undisturbed", folder / "disturbed", folder / "events"
    if _sweep([*options, "--jobs", "2", "--out", str(calm)]).wait():
        raise RuntimeError("the undisturbed sweep failed")
    count = pq.read_metadata(calm / "results.parquet").num_rows
    with standalone(folder / "cluster", workers=4) as cluster:
        conf = [word for key, value in event_log.settings(events).items() for word in ("--conf", f"{key}={value}")]
        arguments = [*options, "--master", cluster.url, *conf, "--out", str(out)]
        driver, kept = _sweep(arguments), {}
        victims: dict[str, Callable[[], list[int]]] = {
            "executor": cluster.executors,
            "Python worker": cluster.python_workers,
            "driver": lambda: [driver.pid],
        }
        try:
            for i, (what, alive) in enumerate(victims.items()):
                kept[what] = _reached(out, count * (i + 1) // 5, driver)
                os.kill(_one_of(alive), signal.SIGKILL)
            driver.wait(PATIENCE_S)
            kept["driver"] = len(_rows(out))
            if _sweep(arguments).wait(PATIENCE_S):
                raise RuntimeError("the second sweep failed")
        finally:
            driver.kill()
    rows = _rows(out)
    times = Counter(row["cell"] for row in rows)
    # there is no second one if the executors finished what the killed driver had begun
    first = event_log.logs(events)[0]
    rows_of = canonical(calm), canonical(out)
    return Damage(
        cells=count,
        kept_at=kept,
        retried=sum(row["attempt"] > 0 for row in rows),
        under_way=first.begun - kept["driver"],
        ran_twice=sum(times.values()) - len(times),
        digests=(_digest(rows_of[0]), _digest(rows_of[1])),
        same=rows_of[0] == rows_of[1]
        and all((out / name).read_bytes() == (calm / name).read_bytes() for name in ("results.parquet", "results.csv")),
    )


def canonical(folder: Path) -> bytes:
    """All rows of a sweep by cell, without host, times and attempt."""
    rows = table((row for _, row in sorted(Store(folder).rows().items())), OUTCOME_TYPES)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()


def _digest(rows: bytes) -> str:
    return hashlib.blake2b(rows, digest_size=10).hexdigest()


def _sweep(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "sim", "sweep", *arguments], stdout=subprocess.DEVNULL)


def _reached(out: Path, count: int, driver: subprocess.Popen[bytes]) -> int:
    """Waits until so many rows are kept; how many there are then."""
    end, counts = time.monotonic() + PATIENCE_S, dict[Path, int]()
    while time.monotonic() < end and driver.poll() is None:
        counts |= {
            path: pq.read_metadata(path).num_rows for path in (out / "cells").glob("*.parquet") if path not in counts
        }
        if (kept := sum(counts.values())) >= count:
            return kept
        time.sleep(0.2)
    raise RuntimeError(f"the sweep ended or stood still before {count} rows were kept")


def _rows(out: Path) -> list[dict[str, object]]:
    return [
        row
        for path in (out / "cells").glob("*.parquet")
        for row in pq.read_table(path, columns=["cell", "attempt"]).to_pylist()
    ]


def _one_of(alive: Callable[[], list[int]]) -> int:
    """The first process there is: executors come and go."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := alive():
            return found[0]
        time.sleep(0.1)
    raise RuntimeError("nothing to kill")


def main(arguments: Sequence[str]) -> None:
    """One sentence."""
    if "--keep" in arguments:
        at = arguments.index("--keep")
        print(disturbed([*arguments[:at], *arguments[at + 2 :]], Path(arguments[at + 1]).absolute()))
        return
    with tempfile.TemporaryDirectory(prefix="ckptsim-chaos-") as place:
        print(disturbed(arguments, Path(place)))


if __name__ == "__main__":
    main(sys.argv[1:])
