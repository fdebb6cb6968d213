"""What a Flink REST API answered about one job: every answer under its path, and metrics asked for again and again.

Knows neither where the answers come from (a live endpoint, a saved folder, an archive of a history server) nor what they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.foreign import shown
from sim.recordings.source.files import RecordingError
from sim.recordings.source.rest.paths import is_id

__all__ = ["Snapshot", "choose", "few"]

SHOWN = 8  # jobs named in one message


@dataclass(frozen=True, slots=True)
class Snapshot:
    source: str  # where the answers were read, without credentials
    job: str  # id of the job, 32 hexadecimal digits
    answers: Mapping[str, Any]  # path ("/jobs/<id>/plan") -> JSON
    samples: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # time [epoch ms] -> path -> JSON, in the order of time
    missing: Mapping[str, str] = field(default_factory=dict)  # path that was asked for and not answered -> why

    def of_job(self, path: str = "") -> Any:
        """The answer about the job: ``of_job("/plan")``; None if nobody asked."""
        return self.answers.get(f"/jobs/{self.job}{path}")


def few(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def choose(answers: Mapping[str, Any], wanted: str | None, source: str) -> str:
    """The id of the job that has answers of its own and begins with `wanted`.  RecordingError: none, or several; they are named."""
    ids = sorted({path.split("/")[2] for path in answers if path.startswith("/jobs/")} - {"overview"})
    ids = [name for name in ids if is_id(name)]
    meant = [name for name in ids if name.startswith(wanted.lower())] if wanted else ids
    if len(meant) == 1:
        return meant[0]
    names = few(ids)
    if meant:
        raise RecordingError(f"{source}: holds several jobs, choose one with --job: {names}")
    named = repr(shown(wanted or ""))
    raise RecordingError(f"{source}: holds no job {named}: {names}" if ids else f"{source}: holds no job")
