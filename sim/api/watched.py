"""A watch from Python."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from sim.api.progress import Notebook
from sim.verbs.watch import Watched, WatchOptions
from sim.verbs.watch import watch as watch_verb


def watch(
    url: str, out: str | PathLike[str], *, every: str = "60 s", duration: str | None = None, limit: str | None = None, sample: str = "60 s",
    listen: str | None = None, metrics: str | PathLike[str] | None = None, renew: bool = False, job: str | None = None,
    headers: Mapping[str, str] | None = None, progress: bool = True,
) -> Watched:  # fmt: skip
    """Watch a running job: look at it now and then, and hold its checkpoints to a forecast.

    `url`: its JobManager (``"http://jobmanager:8081"``).  `out`: the folder that is the memory of the watch; the same folder goes on.
    `every`: from one look to the next.  `duration`: then it ends (None: when it is interrupted).  `limit`: for p90 of checkpoints (None:
    their interval).  `sample`: how long metrics are watched for a forecast.  `listen`: a port, or host and port, that serves metrics for
    Prometheus and the page.  `metrics`: the file for the textfile collector.  `renew`: make a new forecast.
    Raises RestError (a new folder, and no answer), MemoryFileError (a damaged folder), OptionError (a ValueError: a bad value).
    """
    options = WatchOptions(
        url, Path(out), job, every, duration, sample, limit, listen, None if metrics is None else Path(metrics), renew, headers or {}
    )
    return watch_verb(options, listener=Notebook(show=progress))
