"""Valid paths of Flink's REST API.  Foreign ids of jobs and vertices become parts of paths and files, so they are checked.

The ids of jobs (JobID) and vertices (JobVertexID) are AbstractIDs: 16 bytes in hexadecimal digits.
"""

from __future__ import annotations

import re

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
