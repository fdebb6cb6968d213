"""The answers of a Flink REST API about one job: every answer under its path, and repeated samples of metrics.

It knows neither the origin of the answers (a live endpoint, a saved folder, an archive of a history server) nor their meaning.
Foreign ids of jobs and vertices become parts of paths and files, so they are checked: both are AbstractIDs, 16 bytes in hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.foreign import one_line
from sim.recordings.source.files import RecordingError

ID = "[0-9a-f]{32}"
_ID = re.compile(ID)
_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")  # ids of task managers have dots and colons
MOST_STEPS = 12
_NAMED_JOBS = frozenset({"overview"})  # names behind /jobs/ that are no jobs


def is_id(text: object) -> bool:
    """Whether a text is the id of a job or of a vertex."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def is_path(path: str) -> bool:
    """Whether ``/jobs/<id>/plan`` is a valid request, and a safe name of a file below a folder."""
    first, *steps = path.split("/")
    if first or not 1 <= len(steps) <= MOST_STEPS or not all(_STEP.fullmatch(step) for step in steps):
        return False
    return steps[0] != "jobs" or len(steps) == 1 or is_id(steps[1]) or steps[1] in _NAMED_JOBS


def climbs(name: str) -> bool:
    """Whether a name in an archive would leave the folder that it is unpacked in."""
    steps = re.split(r"[/\\]", name)
    return ".." in steps or not steps[0] or ":" in steps[0] or "\x00" in name


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


HOW_TO_SAVE = "`ckptsim import http://HOST:8081 --save FOLDER` saves all answers under their names, `ckptsim explain FILE` reads one alone"


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
    if ids:
        raise RecordingError(f"{source}: holds no job {named}: {names}")
    called = "the answer to /jobs/ID is called jobs/ID.json, with the job's id of 32 hexadecimal digits"
    raise RecordingError(f"{source}: holds no job: {called}; {HOW_TO_SAVE}")
