"""``python -m benchmarks.flink.watched``: a real job whose load doubles in the middle, watched; prints what the watch said and when."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.flink.cluster import Cluster
from benchmarks.flink.job import PacedJob
from benchmarks.flink.standalone import free_port
from sim.app.verbs.common import Listener
from sim.app.verbs.options import WatchOptions
from sim.app.verbs.watch import WatchResult, watch
from sim.jobs.watch.watcher import WatchEvent

RATE = 2400
"""Records per second; the sink serves 4,000."""
STORAGE = {"fs.paced.bandwidth": "20000000", "fs.paced.close-ms": "20"}
SETTLED = 8
"""Checkpoints before it is watched."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often [s]: checkpoints, looks; how long an import samples; after how long Flink asks its TaskManagers for counters again."""

    interval: float = 4
    every: float = 20
    sample: float = 40
    fetched: float = 10


USUAL = Pace()
QUICK = Pace(interval=1, every=4, sample=12, fetched=1)


class _Lines(Listener):
    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report

    def message(self, text: str) -> None:
        self.report(text)

    def result(self, result: WatchEvent) -> None:
        self.report(result.line)


def watched(
    folder: Path,
    minutes: float,
    *,
    report: Callable[[str], None],
    pace: Pace = USUAL,
    scrape: Callable[[str], None] | None = None,
    nice: int = 0,
) -> WatchResult:
    """Watch for so long; the load doubles in the middle.  `scrape` gets the address of the metrics while they are served."""
    middle_s = round(60 * minutes / 2)
    begun, port = time.monotonic(), free_port()
    options = STORAGE | {"metrics.fetcher.update-interval": f"{pace.fetched:g} s"}
    with Cluster(task_managers=2, options=options, nice=nice) as flink:
        # seconds count from when the source starts: the cluster's start and the first checkpoints are not of the watch
        job = flink.submit(
            PacedJob(
                rate=RATE,
                then=2 * RATE,
                at=middle_s + round(pace.interval * SETTLED),
                record=200,
                sink=500,
                state=8_000_000,
            ),
            {"execution.checkpointing.interval": f"{pace.interval:g} s"},
        )
        flink.await_checkpoints(job, SETTLED, within_s=180)
        report(f"watched from {time.monotonic() - begun:.0f} s on; the load doubles {middle_s} s later")
        chosen = WatchOptions(
            folder=folder,
            every=f"{pace.every:g} s",
            duration=f"{60 * minutes:g} s",
            sample=f"{pace.sample:g} s",
            limit="2 s",
            listen=None if scrape is None else str(port),
        )
        timer = (
            None
            if scrape is None
            else threading.Timer(60 * minutes * 0.9, scrape, [f"http://127.0.0.1:{port}/metrics"])
        )
        if timer is not None:
            timer.start()
        found = watch(flink.url, listener=_Lines(report), **chosen)
        if timer is not None:
            timer.join()
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink.watched", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, help="the folder of the watch")
    parser.add_argument("--nice", type=int, default=0)
    chosen = parser.parse_args()
    begun = time.monotonic()
    folder = chosen.out or Path(mkdtemp(prefix="ckptsim-watch-"))
    found = watched(
        folder,
        chosen.minutes,
        report=lambda line: print(f"{time.monotonic() - begun:6.0f} s  {line}", flush=True),
        nice=chosen.nice,
    )
    print(found.verdict)
    print(f"{len(found.checkpoints)} checkpoints: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
