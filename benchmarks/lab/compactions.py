"""`python -m benchmarks.lab.compactions`: how much longer snapshots of RocksDB take that start a compaction.

An incremental checkpoint that writes more than twice the median has the tables of a compaction, which the snapshot before it
started: its flush made the fourth file of level 0.  What that one takes longer than the others, in its synchronous and
asynchronous part, is a share of the time of the compaction (its tables at `Lsm.compaction_bytes_per_second`).
"""

from __future__ import annotations

from statistics import median

from benchmarks.lab.backtest_verdicts import DATA
from sim.jobs.infer.file_history import acknowledged_by, written_bytes
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.state import Lsm

RECORDINGS = ("users-jobs/J3-*", "users-jobs/R4-*", "backends/*-rocksdb")
LARGE = 2
"""Times the median: the tables of a compaction are among what is written."""


def main() -> None:
    print("| recording | compactions | written by a subtask | sync | async | longer | of the compaction |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    shares = []
    for path in sorted(path for pattern in RECORDINGS for path in DATA.glob(f"{pattern}.zip")):
        job = RestJob(read_saved(path))
        vertex = max(
            job.vertices, key=lambda each: sum(map(written_bytes, acknowledged_by(job.checkpoints[-1], each.name)))
        )
        found = {}
        for point in job.checkpoints[1:]:
            tasks = acknowledged_by(point, vertex.name)
            parts = zip(
                *((written_bytes(task), task.checkpoint.sync, task.checkpoint.async_) for task in tasks), strict=True
            )
            found[point.id] = tuple(median(part) for part in parts)
        usual = median(written for written, *_ in found.values())
        large = [number for number, (written, *_) in found.items() if written > LARGE * usual]
        starts = [number - 1 for number in large if number - 1 in found and number - 1 not in large]
        others = [number for number in found if number not in {*large, *starts}]
        if not starts or not others:
            continue
        merged = median(found[number][0] for number in large)
        sync, async_ = ([median(found[number][part] for number in of) for of in (starts, others)] for part in (1, 2))
        longer_ms = sync[0] - sync[1] + async_[0] - async_[1]
        shares.append(longer_ms / (merged / Lsm().compaction_bytes_per_second * 1000))
        cells = (
            f"{merged / 1e6:.1f} MB",
            *(f"{a:.0f} ms for {b:.0f}" for a, b in (sync, async_)),
            f"{longer_ms:.0f} ms",
        )
        print(f"| {path.stem} | {len(starts)} | {' | '.join(cells)} | {shares[-1]:.0%} |")
    print(f"\nMedian {median(shares):.0%}, {min(shares):.0%} to {max(shares):.0%}.")


if __name__ == "__main__":
    main()
