"""Results for a report: read from the folder of `ckptsim run`, or of a study that has just been run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.cells.plan import cells, with_baselines
from sim.comparison.compare import compare
from sim.envelope.validity import warning
from sim.explain.runs import FolderError, kept_in
from sim.metrics.journal import Journal
from sim.metrics.schema import TABLES
from sim.runtime.run.result import Result
from sim.scenario.backtest.verdict import verdict

if TYPE_CHECKING:
    from sim.comparison.comparison import Comparison
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario
    from sim.scenario import Study

__all__ = ["Results", "assumptions", "read_results"]

_UNKNOWN = re.compile(r"^\s*(?P<value>[^#]*?)\s*#\s*UNKNOWN:\s*(?P<why>.*)$")


@dataclass(frozen=True, slots=True)
class Results:
    comparison: Comparison
    assumptions: tuple[str, ...]
    command: str  # makes them again
    violations: dict[str, str]  # by strategy: the first story of what its runs broke
    backtest: Backtest | None = None  # of an imported job: its history beside its simulation


def read_results(folder: Path) -> Results:
    """Raises FolderError, ScenarioError."""
    kept = kept_in(folder)
    if (folder / "manifest.json").is_file() and not (folder / "comparison.json").is_file():
        raise FolderError(f"{folder}: is one run of a comparison: give the folder above it")
    found = []
    for cell in with_baselines(cells(kept.study.scenarios)):
        place = kept.folder_of(cell.scenario)
        if place is not None:
            found.append(_read(place, cell.scenario))
    if not any(result.scenario.checkpoint.interval_ns is not None or result.scenario.actions for result in found):
        raise FolderError(f"{folder}: its scenario, a trace that it reads or ckptsim has changed since: run it again with 'ckptsim run'")
    command = str(kept.summary.get("command", ""))
    sentences = tuple(map(str, kept.summary.get("deciding", ())))
    comparison = replace(compare(found), question=kept.study.question, name=kept.study.name, deciding=sentences)
    stories = {
        str(name): str(found_stories[0]) for name, found_stories in dict(kept.summary.get("violations", {})).items() if found_stories
    }
    return Results(comparison, assumptions(kept.study, kept.text), command, stories, kept.study.backtest)


def assumptions(study: Study, text: str) -> tuple[str, ...]:
    """What nobody knows: values marked UNKNOWN, what no recording has, and what its own history says of an imported job."""
    marked = [match for line in text.splitlines() if (match := _UNKNOWN.match(line))]
    found = [f"{match['value'] or 'a value'} (unknown: {match['why']})" for match in marked]
    if finding := warning(study.scenarios):
        found.append(finding)
    if study.backtest is not None:
        found.append(verdict(study.backtest))
    found.append("Simulated: one run repeats itself exactly, a real job does not.")
    return tuple(found)


def _read(folder: Path, scenario: Scenario) -> Result:
    import pandas as pd

    try:
        tables: dict[str, Any] = {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        status = str(manifest["job_status"])
        ended_ns = scenario.run.duration_ns if status == "RUNNING" else _last_ns(folder)
    except (OSError, ValueError, LookupError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim run' wrote: {error}".splitlines()[0]) from None
    return Result(scenario=scenario, **tables, journal=Journal(), manifest_read=manifest, job_status=status, ended_ns=ended_ns)


def _last_ns(folder: Path) -> int:
    """When the last thing happened: a job that is over has no later entry."""
    with (folder / "journal.jsonl").open(encoding="utf-8") as journal:
        return max((int(json.loads(line)[0]) for line in journal), default=0)
