"""An archive of Flink's history server: a file per job that ended, `{"archive": [{"path": ..., "json": ...}]}`.

The JobManager writes it into `jobmanager.archive.fs.dir` (FsJobArchivist); the `json` of an entry is the answer of its path as text.
It holds no metrics, only the totals of each subtask.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.foreign import one_line
from sim.recordings.source.budget import Budget, BudgetError
from sim.recordings.source.files import RecordingError
from sim.recordings.source.rest.paths import climbs, is_path
from sim.recordings.source.rest.snapshot import RestSnapshot, choose


def is_archive(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("archive"), list)


def read_archive(document: Any, path: Path, job: str | None = None) -> RestSnapshot:
    """RecordingError: an entry is damaged, or it is not clear which job is wanted."""
    answers: dict[str, Any] = {}
    budget = Budget()
    for number, entry in enumerate(document["archive"]):
        name = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.startswith("/") or "json" not in entry:
            raise RecordingError(f"{path}: entry {number + 1} of the archive has no path and json")
        if climbs(name[1:]):
            raise RecordingError(f"{path}: entry {number + 1} of the archive has a path that leads elsewhere: {one_line(name)}")
        if not is_path(name.rstrip("/")):
            continue  # none of our requests has such a path
        try:
            answers[name.rstrip("/")] = budget.parse(entry["json"].encode(), name) if isinstance(entry["json"], str) else entry["json"]
        except BudgetError as error:
            raise RecordingError(f"{path}: {one_line(name)} of the archive {error}") from None
        except (ValueError, RecursionError) as error:
            raise RecordingError(f"{path}: {one_line(name)} of the archive is no JSON: {one_line(error, 100)}") from None
    return RestSnapshot(path.name, choose(answers, job, str(path)), answers)
