"""Readable names of folders: the same study with the same code has the same name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from sim.cells.plan import cells
from sim.model.scenario import Scenario


def run_folder(name: str, scenarios: Iterable[Scenario]) -> str:
    """``<name>-<id>``: the same study with the same code has the same folder."""
    return f"{slug(name)}-{hashlib.blake2b(cells(scenarios).ids.tobytes(), digest_size=4).hexdigest()}"


def slug(text: str) -> str:
    """Lower-case words with hyphens between them, for the name of a folder."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "run"
