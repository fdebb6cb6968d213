"""`check`: validate a scenario or a sweep file without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from sim.app.verbs import run as running
from sim.app.verbs import sweep as sweeping
from sim.app.verbs.common import SILENT, Listener
from sim.app.verbs.findings import tell
from sim.app.verbs.options import CheckOptions, portable, with_all_options
from sim.studies.comparison import label
from sim.studies.sweeps.sweep_file import is_sweep


@with_all_options(CheckOptions)
def check(file: Path, *, listener: Listener = SILENT, **given: Unpack[CheckOptions]) -> str:
    """Return what would run, and report remarks as before a run.  ScenarioError: all mistakes in the file."""
    if is_sweep(file):
        definition = sweeping.read_request(file, **given).definition
        tell(sweeping.findings_of(definition), listener)
        return f"{portable(file)}: valid; ckptsim sweep runs {len(definition.scenarios)} cells"
    request = running.read_file(file, **given)
    tell(running.findings_of(request), listener)
    labels = [label(scenario) for scenario in request.study.scenarios]
    count = "1 strategy" if len(labels) == 1 else f"{len(labels)} strategies"
    return f"{portable(file)}: valid; ckptsim run simulates {count}: {', '.join(labels)}"
