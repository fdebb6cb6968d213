"""The answers of a Flink REST API about one job: every answer under its path, and repeated samples of metrics.

It knows neither the origin of the answers (a live endpoint, a saved folder, an archive of a history server) nor their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.foreign import one_line
from sim.recordings.source.files import RecordingError
from sim.recordings.source.rest.paths import is_id

MAX_NAMED = 8  # number of jobs in one message


@dataclass(frozen=True, slots=True)
class RestSnapshot:
    """The answers of a REST API about one job."""

    source: str  # where the answers were read, without credentials
    job: str  # id of the job, 32 hexadecimal digits
    answers: Mapping[str, Any]  # path ("/jobs/<id>/plan") -> JSON
    samples: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # time [epoch ms] -> path -> JSON, ascending
    missing: Mapping[str, str] = field(default_factory=dict)  # path of a request without an answer -> reason

    def of_job(self, path: str = "") -> Any:
        """The answer about the job: ``of_job("/plan")``; None: not requested."""
        return self.answers.get(f"/jobs/{self.job}{path}")


def first_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    return ", ".join(names[:MAX_NAMED]) + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "")


def choose(answers: Mapping[str, Any], prefix: str | None, source: str) -> str:
    """The id of the job that has answers of its own and begins with `prefix`.  RecordingError: none or several; the message names them."""
    ids = sorted({path.split("/")[2] for path in answers if path.startswith("/jobs/")} - {"overview"})
    ids = [name for name in ids if is_id(name)]
    meant = [name for name in ids if name.startswith(prefix.lower())] if prefix else ids
    if len(meant) == 1:
        return meant[0]
    names = first_names(ids)
    if meant:
        raise RecordingError(f"{source}: holds several jobs, choose one with --job: {names}")
    named = repr(one_line(prefix or ""))
    raise RecordingError(f"{source}: holds no job {named}: {names}" if ids else f"{source}: holds no job")
