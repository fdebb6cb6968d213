"""Results for a report: read from the folder of `ckptsim run`, or of a study that has just been run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from sim.cells.plan import cells, with_baselines
from sim.comparison.assumption import DecidingAssumption
from sim.comparison.compare import compare
from sim.comparison.comparison import Comparison
from sim.evidence.envelope.validity import warning
from sim.evidence.what_ifs.factors import sentences
from sim.explain.runs import FolderError, kept_in
from sim.metrics.journal import Journal
from sim.metrics.schema import TABLES
from sim.model.backtest import Backtest
from sim.model.scenario import Scenario
from sim.quantities.prices import S3_STANDARD, Prices
from sim.runtime.run.result import Result
from sim.scenario import ScenarioFile
from sim.scenario.history.verdict import verdict

_UNKNOWN = re.compile(r"^\s*(?P<value>[^#]*?)\s*#\s*UNKNOWN:\s*(?P<why>.*)$")


@dataclass(frozen=True, slots=True)
class ReportedResults:
    """The results of `run`, for a report."""

    comparison: Comparison
    assumptions: tuple[str, ...]
    command: str  # makes them again
    violations: dict[str, str]  # by strategy: the first story of what its runs broke
    backtest: Backtest | None = None  # of an imported job: its history beside its simulation
    findings: tuple[str, ...] = ()  # what was known of the job before it ran
    notes: tuple[str, ...] = ()  # how the numbers were made
    outcomes: tuple[str, ...] = ()  # what else came of it
    errors: dict[str, str] = field(default_factory=dict)  # by strategy: why it has no result
    made: str = ""  # by which version, when


def read_results(folder: Path) -> ReportedResults:
    """Raises FolderError, ScenarioError."""
    kept = kept_in(folder)
    if (folder / "manifest.json").is_file() and not (folder / "comparison.json").is_file():
        raise FolderError(f"{folder}: is one run of a comparison: give the folder above it")
    found, own = [], cells(kept.study.scenarios)
    for cell in with_baselines(own):
        place = kept.folder_of(cell.scenario)
        if place is not None:
            found.append(_read(place, cell.scenario))
    if all(kept.folder_of(cell.scenario) is None for cell in own):
        raise FolderError(f"{folder}: its scenario, a trace that it reads or ckptsim has changed since: run it again with 'ckptsim run'")
    command = str(kept.summary.get("command", ""))
    deciding = tuple(DecidingAssumption(**row) for row in kept.summary.get("assumptions", ()))
    comparison = replace(
        compare(found), question=kept.study.question, name=kept.study.name, deciding=deciding, prices=_prices(kept.summary)
    )
    stories = {
        str(name): str(found_stories[0]) for name, found_stories in dict(kept.summary.get("violations", {})).items() if found_stories
    }
    findings, notes, outcomes = (tuple(map(str, kept.summary.get(name, ()))) for name in ("findings", "notes", "outcomes"))
    errors = {str(name): str(error) for name, error in dict(kept.summary.get("errors", {})).items()}
    return ReportedResults(
        comparison, assumptions(kept.study, kept.text), command, stories, kept.study.backtest, findings, notes, outcomes, errors,
        provenance_text(kept.summary),
    )  # fmt: skip


def assumptions(study: ScenarioFile, text: str) -> tuple[str, ...]:
    """Assumptions: values marked UNKNOWN, values that no recording has, and the backtest of an imported job."""
    found = unknown_values(text)
    if finding := warning(study.scenarios):
        found.append(finding)
    if study.backtest is not None:
        found += [verdict(study.backtest), *sentences(study.backtest, study.scenarios)]
    found.append("Simulated: one run repeats itself exactly, a real job does not.")
    return tuple(found)


def unknown_values(text: str) -> list[str]:
    """``interval: 1 s (unknown: how often?)`` of every value that a scenario file marks UNKNOWN."""
    lines, found = text.splitlines(), []
    for i, line in enumerate(lines):
        if (match := _UNKNOWN.match(line)) is None:
            continue
        below = list(takewhile(lambda text: text.startswith("#") and "UNKNOWN:" not in text, map(str.strip, lines[i + 1 :])))
        rest = lines[i + 1 + len(below) :]
        value = match["value"] or (rest[0].strip() if rest else "") or "a value"  # a comment may stand above
        why = " ".join([match["why"], *(text.lstrip("# ") for text in below)]) if not match["value"] else match["why"]
        found.append(f"{value} (unknown: {why})")
    return found


def provenance_text(kept: Mapping[str, Any]) -> str:
    """``ckptsim 0.1.0 (code ...), 2026-11-23 07:15 UTC``; empty: an older version kept it."""
    return f"ckptsim {kept['version']}, {kept['date']}" if "version" in kept and "date" in kept else ""


def _read(folder: Path, scenario: Scenario) -> Result:
    import pandas as pd

    try:
        tables: dict[str, Any] = {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        status = str(manifest["job_status"])
        ended_ns = scenario.run.duration_ns if status == "RUNNING" and not scenario.run.ends_caught_up else _last_ns(folder)
    except (OSError, ValueError, LookupError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim run' wrote: {error}".splitlines()[0]) from None
    return Result(scenario=scenario, **tables, journal=Journal(), manifest_read=manifest, job_status=status, ended_ns=ended_ns)


def _prices(summary: Mapping[str, Any]) -> Prices:
    """The prices of the run."""
    return Prices(**summary["prices"]) if "prices" in summary else S3_STANDARD


def _last_ns(folder: Path) -> int:
    """When the last thing happened: a job that is over has no later entry."""
    with (folder / "journal.jsonl").open(encoding="utf-8") as journal:
        return max((int(json.loads(line)[0]) for line in journal), default=0)
