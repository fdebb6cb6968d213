"""The name of a recorded run, and what it says: its job, and its kind of barriers.

``J4-pressed-timeout500-r1`` is the first run of the job J4-pressed, unaligned with an aligned timeout of 500 ms.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sim.model.checkpoint import Barriers

_FORM = re.compile(r"(?P<job>.+?)-(?P<kind>aligned|unaligned|interruptible|timeout\d+)(-r\d+)?")


class RunName(NamedTuple):
    """The parts of a recording's name."""

    job: str
    kind: str  # the last part of the name; empty: it says nothing of barriers

    @property
    def barriers(self) -> Barriers:
        """Unaligned for an interruptible run."""
        if self.kind.startswith("timeout"):
            return Barriers("aligned-timeout", int(self.kind.removeprefix("timeout")) * 10**6)
        return Barriers("aligned" if self.kind == "aligned" else "unaligned")


def run_name(text: str) -> RunName:
    found = _FORM.fullmatch(text)
    return RunName(found["job"], found["kind"]) if found else RunName(text, "")
