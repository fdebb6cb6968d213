"""Results folders: writing them, reading them, and running their scenarios again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from sim.model.files import ResultsNotWrittenError, locked, remove_partials
from sim.model.frozen import frozen
from sim.model.scenario import Scenario
from sim.model.schema.study import ScenarioFile, load, loads
from sim.model.text import PrintableError, one_line
from sim.runtime.result import code_version, manifest
from sim.studies.local import delayed_signals
from sim.studies.plan import cells, label

# ---- Replacing the results in the folder of `ckptsim run`. New results are written to the subfolder `unfinished`, and then moved
# to the folder.
#
# `comparison.json` is removed first and moved last: if it exists, all results next to it belong to it.

UNFINISHED = "unfinished"
SUMMARY = "comparison.json"
TABLE, SHEET = "comparison.parquet", "comparison.csv"
"""Files next to the summary.  They are missing if every run failed."""
RUNS = "runs"
"""Key of the summary whose value lists the folders of runs."""
_MARKER = ".ours"
"""Marker file in the subfolder for new results.  A subfolder with files but without the marker was not written by ckptsim."""


@contextmanager
def replacing(folder: Path, warn: Callable[[str], object]) -> Iterator[Path]:
    """Yield a folder for new results, which replace those in `folder` if the block ends normally.

    NotKeptError: files in the way are not results.  FolderInUseError: another command writes to the folder.
    """
    unfinished = folder / UNFINISHED
    with locked(folder, warn):
        unfinished.mkdir(exist_ok=True)
        remove_partials(folder)
        if not (unfinished / _MARKER).is_file() and any(unfinished.iterdir()):
            raise ResultsNotWrittenError(f"{unfinished} was not written by ckptsim: give another --out")
        (unfinished / _MARKER).touch()
        for leftover in _new_results(unfinished):
            _remove(leftover)
        yield unfinished
        new = [path.name for path in _new_results(unfinished)]
        for name in new:
            if (folder / name).is_dir() and not _is_run(folder / name):
                raise ResultsNotWrittenError(
                    f"{folder / name} is in the way and holds no run: move it; the results are in {unfinished}"
                )
        with delayed_signals():
            obsolete = _obsolete_names(folder)
            (folder / SUMMARY).unlink(missing_ok=True)
            for name in {*obsolete, *new}:
                _remove(folder / name)
            for name in sorted(new, key=lambda name: name == SUMMARY):
                (unfinished / name).rename(folder / name)
            shutil.rmtree(unfinished)


def _new_results(unfinished: Path) -> list[Path]:
    return sorted(path for path in unfinished.iterdir() if path.name != _MARKER)


def _obsolete_names(folder: Path) -> list[str]:
    """Return the names of the files and run folders that belong to the folder's summary; empty if ckptsim did not write it."""
    summary = folder / SUMMARY
    try:
        summary_json: Any = json.loads(summary.read_text()) if summary.is_file() else {}
        names = list(summary_json[RUNS])
    except (OSError, ValueError, LookupError, TypeError):  # not written by ckptsim
        return []
    runs = [name for name in names if _is_file_name(name) and _is_run(folder / name)]
    return [*runs, *(name for name in (TABLE, SHEET) if (folder / name).is_file())]


def _is_file_name(name: object) -> bool:
    """Return True for a name of a file or folder without any path, so that a summary cannot name files outside its folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _is_run(path: Path) -> bool:
    """Return True for a folder with the results of a run."""
    return path.is_dir() and not path.is_symlink() and (path / "manifest.json").is_file()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---- Scenarios to run again, from a scenario file or a results folder. A results folder has a copy of its scenario file. Only
# scenarios that are equal to the one in the manifest of a run are used.

ANSWER, ADVICE, DIFF = "answer.json", "advice.json", "diff.json"
"""Files with the answers of `sweep`, `advise` and `diff`."""
SWEEP_RUNS = "runs.parquet"
"""File with the provenance of the cells of a sweep, which has one without an answer, too."""


def kept_scenario(folder: Path) -> Path | None:
    """Return the scenario file whose results `run` stored in a folder, or None without results."""
    try:
        return (folder / str(json.loads((folder / SUMMARY).read_text())["source"])).resolve()
    except (OSError, ValueError, LookupError, TypeError):
        return None


def kept_answers(folder: Path) -> list[dict[str, str]]:
    """Return what `run`, `sweep`, `advise` and `diff` stored in a folder and down to two folders below it, the newest first."""
    found = []
    for name in (SUMMARY, ANSWER, ADVICE, DIFF):
        for file in (path for below in ("", "*/", "*/*/") for path in folder.glob(f"{below}{name}")):
            with suppress(FolderError):
                kept = _read_json(file)
                texts = {key: str(kept.get(key, "")) for key in ("date", "question", "verdict", "command")}
                found.append({"folder": str(file.parent), **texts})
    return sorted(found, key=itemgetter("date"), reverse=True)


class FolderError(PrintableError, ValueError):
    """Raised if a folder has no results, or results that cannot be used."""

    exit_code = 3


@frozen
class Runs:
    """Scenarios to run again."""

    name: str
    question: str
    scenarios: dict[str, Scenario]  # label of a strategy -> its first replication
    is_changed: bool = False  # the folder was written by another version of the code


@frozen
class KeptRuns:
    """The study of a results folder, and the folders of its runs."""

    study: ScenarioFile
    text: str  # text of the scenario file
    summary: dict[str, Any]
    folders: dict[str, Path]  # scenario as JSON, as in the manifest -> folder of the run
    versions: frozenset[str]  # code versions of the runs

    def folder_of(self, scenario: Scenario) -> Path | None:
        """Return the folder of a run, or None if the scenario was not run, or has changed since."""
        return self.folders.get(_scenario_json(scenario))


def runs_of(path: Path, overrides: Sequence[str] = ()) -> Runs:
    """Return the scenarios of a results folder that have a run, or all scenarios of a scenario file.

    `overrides`: ``key=value`` changes, for a scenario file only.
    Raises FolderError or ScenarioError if `path` cannot be read, or if no run matches the scenario any more.
    """
    if not path.is_dir():
        study = load(path, overrides)
        return Runs(study.name, study.question, _first_replications(study.scenarios))
    if overrides:
        raise FolderError(f"{path}: a folder is run again as it was: give the scenario file to change a value")
    kept = read_folder(path)
    scenarios = {
        name: scenario
        for name, scenario in _first_replications(kept.study.scenarios).items()
        if kept.folder_of(scenario) is not None
    }
    if not scenarios:
        raise FolderError(
            f"{path}: its scenario, a trace that it reads or ckptsim has changed since: run it again with 'ckptsim run'"
        )
    return Runs(kept.study.name, kept.study.question, scenarios, kept.versions != {code_version()})


def read_folder(path: Path) -> KeptRuns:
    """Return the study and the runs of a results folder.  If `path` is the folder of a run, return its study and only this run.

    Raises FolderError or ScenarioError if it cannot be read.
    """
    is_run = (path / "manifest.json").is_file() and not (path / SUMMARY).is_file()
    folder = path.parent if is_run else path
    summary = _read_json(folder / SUMMARY)
    text, source = _read_text(folder / "scenario.yaml"), folder / str(summary.get("source", "scenario.yaml"))
    overrides = [str(line) for line in summary.get("overrides", ())]
    study = loads(text, source.stem, overrides=overrides, folder=source.parent if source.parent.is_dir() else folder)
    names = [path.name] if is_run else [str(name) for name in summary.get(RUNS, ())]
    manifests = {folder / name: _read_json(folder / name / "manifest.json") for name in names}
    folders = {json.dumps(row.get("scenario"), sort_keys=True): run for run, row in manifests.items()}
    return KeptRuns(
        study, text, summary, folders, frozenset(str(row.get("code_version")) for row in manifests.values())
    )


def _first_replications(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    """Return the first replication of each strategy, by label."""
    first: dict[str, Scenario] = {}
    for cell in cells(scenarios):
        first.setdefault(label(cell.scenario), cell.scenario)
    return first


def _scenario_json(scenario: Scenario) -> str:
    """Return the scenario as JSON, for comparison with manifests."""
    return json.dumps(manifest(scenario)["scenario"], sort_keys=True)


def _read_text(path: Path) -> str:
    """Return the text of a file.  FolderError: it cannot be read, so its folder is not a results folder."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        if (path.parent / SWEEP_RUNS).is_file():
            raise FolderError(
                f"{path.parent}: has rows of a sweep, but no answer: add answer: to the sweep file"
            ) from None
        raise FolderError(
            f"{path.parent}: is not a folder of results: it has no readable {path.name}; nor has it answers of Flink (jobs/ID.json) or logs"
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object.  FolderError: the file is not one."""
    try:
        value = json.loads(_read_text(path))
    except ValueError as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(f"{path}: is not what 'ckptsim run' wrote: {one_line(error)}") from None
    if not isinstance(value, dict):
        raise FolderError(f"{path}: is not what 'ckptsim run' wrote")
    return value
