"""What a user names, a scenario file or a folder of results -> scenarios to run again, by the labels of their strategies.

A folder is run again from the scenario that was copied into it; what was run is compared with its manifest before anything is said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.cells.plan import cells
from sim.comparison.comparison import label
from sim.comparison.run_folder import RUNS, SUMMARY
from sim.foreign import Readable, one_line
from sim.model.scenario import Scenario
from sim.runtime.run.manifest import code_version, manifest
from sim.scenario import ScenarioFile, load
from sim.scenario.study import loads


class FolderError(Readable, ValueError):
    """A folder that holds no results, or results that cannot be run again."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The scenarios to run again."""

    name: str
    question: str
    scenarios: dict[str, Scenario]  # by label: the first replication
    is_changed: bool = False  # the code is not that of the folder any more


@dataclass(frozen=True, slots=True)
class KeptRuns:
    """The results of `run` in a folder: the study, and the folders of its runs."""

    study: ScenarioFile
    text: str  # of the scenario file
    summary: dict[str, Any]
    folders: dict[str, Path]  # by the scenario, as its manifest has it
    versions: frozenset[str]  # of the code

    def folder_of(self, scenario: Scenario) -> Path | None:
        """The folder of a run.  None: the scenario was not run, or has changed since."""
        return self.folders.get(_plain(scenario))


def runs_of(place: Path, overrides: Sequence[str] = ()) -> Runs:
    """Raises FolderError, ScenarioError."""
    if not place.is_dir():
        study = load(place, overrides)
        return Runs(study.name, study.question, _first_of(study.scenarios))
    if overrides:
        raise FolderError(f"{place}: a folder is run again as it was: give the scenario file to change a value")
    kept = kept_in(place)
    again = {name: scenario for name, scenario in _first_of(kept.study.scenarios).items() if kept.folder_of(scenario) is not None}
    if not again:
        raise FolderError(f"{place}: its scenario, a trace that it reads or ckptsim has changed since: run it again with 'ckptsim run'")
    return Runs(kept.study.name, kept.study.question, again, kept.versions != {code_version()})


def kept_in(place: Path) -> KeptRuns:
    """`place`: the folder of a comparison, or of one of its runs.  Raises FolderError, ScenarioError."""
    single = (place / "manifest.json").is_file() and not (place / SUMMARY).is_file()
    folder = place.parent if single else place
    summary = _json(folder / SUMMARY)
    text, source = _text(folder / "scenario.yaml"), folder / str(summary.get("source", "scenario.yaml"))
    overrides = [str(line) for line in summary.get("overrides", ())]
    study = loads(text, source.stem, overrides=overrides, folder=source.parent if source.parent.is_dir() else folder)
    names = [place.name] if single else [str(name) for name in summary.get(RUNS, ())]
    manifests = {folder / name: _json(folder / name / "manifest.json") for name in names}
    folders = {json.dumps(row.get("scenario"), sort_keys=True): path for path, row in manifests.items()}
    return KeptRuns(study, text, summary, folders, frozenset(str(row.get("code_version")) for row in manifests.values()))


def _first_of(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    found: dict[str, Scenario] = {}
    for cell in cells(scenarios):
        found.setdefault(label(cell.scenario), cell.scenario)
    return found


def _plain(scenario: Scenario) -> str:
    return json.dumps(manifest(scenario)["scenario"], sort_keys=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise FolderError(
            f"{path.parent}: is no folder of results: it has no readable {path.name}; nor has it answers of Flink (jobs/ID.json) or logs"
        ) from None


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path))
    except ValueError as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(f"{path}: is not what 'ckptsim run' wrote: {one_line(error)}") from None
    if not isinstance(value, dict):
        raise FolderError(f"{path}: is not what 'ckptsim run' wrote")
    return value
