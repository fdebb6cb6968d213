"""Options at their defaults that decide in many jobs: their names, for one line next to the axes of a file.

Which options decide was measured: `benchmarks/defaults.py` gives each option that a file leaves out another plausible value, and keeps
those that change the duration of checkpoints or their data in flight by more than a quarter.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sim.scenario.flink.keys import document_options
from sim.scenario.flink.text import records_of

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

FILE = Path(__file__).with_name("defaults.csv")
OFTEN, FEWEST_FILES = 0.15, 5
"""An option is named if it decides in a larger share of the files that leave it out, and so many do."""


@cache
def _deciding() -> tuple[str, ...]:
    """Options that decide often, the most frequent first."""
    with FILE.open(encoding="utf-8", newline="") as file:
        shares = {
            row["option"]: int(row["decides"]) / int(row["files"]) for row in csv.DictReader(file) if int(row["files"]) >= FEWEST_FILES
        }
    return tuple(option for option in sorted(shares, key=lambda option: -shares[option]) if shares[option] > OFTEN)


def deciding_defaults(scenarios: Sequence[Scenario]) -> list[str]:
    """``cluster.slots``: options at their defaults in all of these scenarios, of those that decide in many jobs."""
    options = {".".join(path): (model, record) for path, model, record, _ in document_options()}
    parts = [part for scenario in scenarios for part in records_of(scenario)]
    found = []
    for path in _deciding():
        model, record = options[path]
        values = {str(getattr(part, record.field)) for part in parts if isinstance(part, model)}
        decides = {"cluster.slots": _has_several_slots, "cluster.profile": _has_no_version}.get(path)
        if values == {str(record.default)} and (decides is None or any(map(decides, scenarios))):
            found.append(path.replace("VERTEX.", ""))
    return found


def _has_no_version(scenario: Scenario) -> bool:
    """Whether no version of Flink tells the profile."""
    return not scenario.cluster.version


def _has_several_slots(scenario: Scenario) -> bool:
    """Whether slots say which tasks share a TaskManager."""
    return scenario.cluster.placement == "spread" and any(vertex.parallelism > 1 for vertex in scenario.job.vertices)
