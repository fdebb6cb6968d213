"""Python functions that simulate: `simulate`, `compare`, `sweep` and `diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sim.app.api.results import Results
from sim.app.api.study import Study, lists_of, study_of
from sim.app.verbs import diff as verb
from sim.app.verbs.diff import Diff
from sim.app.verbs.options import DiffOptions, SweepOptions, documented, lines_of, with_defaults
from sim.app.verbs.run import StudySource
from sim.app.verbs.sweep import Sweep, SweepRequest, read_request
from sim.app.verbs.sweep import sweep as run_sweep
from sim.model.schema.flink_file import flink_change
from sim.runtime.result import Result
from sim.studies.comparison import Comparison
from sim.studies.plan import SeededScenarios
from sim.studies.sweeps.sweep_file import Definition

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine


# ---- Comparison of studies.


def compare(
    *what: Study | Results | str | PathLike[str] | Mapping[str, Study | Results | str | PathLike[str]],
    jobs: int | None = None,
    engine: Engine = "compiled",
    checks: bool = True,
    progress: bool = True,
) -> Results:
    """Run studies and compare them: ``sim.compare("job.yaml")`` or ``sim.compare({"today": a, "new": b})``.

    Studies, scenario files and existing results may be mixed; results are not computed again.  Without names, those of
    the studies are used, with a number if they are not unique.

    ValueError: nothing to compare.  TypeError: neither study, results nor path.
    """
    named = _named(what)
    if not named:
        raise ValueError("nothing to compare: give studies, results or scenario files")
    done = {
        name: given
        if isinstance(given, Results)
        else study_of(given).run(jobs=jobs, engine=engine, checks=checks, progress=progress)
        for name, given in named.items()
    }
    if len(done) == 1 and not any(isinstance(given, Mapping) for given in what):
        return next(iter(done.values()))
    return _together(done)


def simulate(scenario: Study | Scenario, *, engine: Engine = "compiled", checks: bool = True) -> Result:
    """Simulate one combination once, and return its tables, journal and manifest.

    ValueError: the study has several combinations, or the engine is unknown.  TypeError: not a scenario.
    """
    from sim.model.scenario import Scenario as Model
    from sim.runtime.simulate import simulate as run

    if isinstance(scenario, Study):
        scenario = scenario.single("simulate")
    if not isinstance(scenario, Model):
        raise TypeError(
            f'expected a study of one combination (sim.load(...)["aligned"]), not {type(scenario).__name__}'
        )
    return run(scenario, engine=engine, check=checks)


def _named(what: Sequence[object]) -> dict[str, object]:
    named: dict[str, object] = {}
    for given in what:
        if isinstance(given, Mapping):
            named |= {str(name): value for name, value in given.items()}
            continue
        name = _name(given)
        used = sum(other == name or other.startswith(f"{name} (") for other in named)
        named[f"{name} ({used + 1})" if used else name] = given
    return named


def _name(given: object) -> str:
    if isinstance(given, Results):
        return given.comparison.name
    return study_of(given).name


def _together(done: Mapping[str, Results]) -> Results:
    """Combine results in one comparison; labels of strategies begin with the given names.

    The backtest is kept if all results have the same one.
    """
    runs: dict[str, tuple[Result, ...]] = {}
    baselines: dict[str, Result] = {}
    errors: dict[str, str] = {}
    for name, results in done.items():
        several = len(results.runs) + len(results.errors) > 1
        baselines |= results.comparison.baselines
        for strategy, found in results.runs.items():
            own = found[0].scenario.axes or (("", strategy),)
            axes = (("", name), *(own if several else ()))
            key = f"{name}, {strategy}" if several else name
            runs[key] = tuple(replace(run, scenario=replace(run.scenario, axes=axes)) for run in found)
        errors |= {f"{name}, {strategy}" if several else name: error for strategy, error in results.errors.items()}
    questions = list(dict.fromkeys(results.question for results in done.values() if results.question))
    comparison = Comparison(questions[0] if len(questions) == 1 else "", " and ".join(done), runs, baselines, errors)
    assumptions = tuple(dict.fromkeys(line for results in done.values() for line in results.assumptions))
    backtests = {id(results.backtest): results.backtest for results in done.values() if results.backtest is not None}
    return Results(comparison, assumptions, backtest=next(iter(backtests.values())) if len(backtests) == 1 else None)


# ---- Sweep.


@documented(SweepOptions)
def sweep(
    what: Study | str | PathLike[str],
    axes: Mapping[str, Sequence[Any]] | None = None,
    **options: Unpack[SweepOptions],
) -> Sweep:
    """Run a sweep file, or every combination of a study and of `axes` (``{"checkpoint.interval": ["10 s", "30 s"]}``).

    Each cell has a row in `folder` (``runs/<name>-<id>`` by default); a repeated call resumes.  `jobs`: local processes;
    `master`: a Spark master instead, with settings in `conf`.

    ScenarioError, OptionError: mistakes in file or options.  TooManyFailuresError: more than `max_failures` cells failed.
    """
    options["changes"] = [*lines_of(options.get("changes", ())), *lists_of(axes or {})]
    request = _of_study(what, options) if isinstance(what, Study) else read_request(Path(what), **options)
    return run_sweep(request, **options)


def _of_study(study: Study, options: SweepOptions) -> SweepRequest:
    """Return the sweep of a study, with the changes that the options make."""
    given = with_defaults(SweepOptions, options)
    often, flink = given["replications"], given["flink"]
    deployed = [] if flink is None else [flink_change(Path(flink), study.origin.file)]
    repeated = [] if often is None else [f"run.replications={often}"]
    changed = study.with_([*deployed, *lines_of(given["changes"]), *repeated])
    definition = Definition(
        changed.name,
        changed.question,
        SeededScenarios.as_given(changed.models),
        warnings=changed.read.warnings,
        backtest=changed.read.backtest,
    )
    given["changes"], given["flink"], given["replications"] = changed.pinned, None, None
    return read_request(study.origin.file, definition, **given)


# ---- Diff.


@documented(DiffOptions)
def diff(
    a: Study | str | PathLike[str],
    b: Study | str | PathLike[str],
    **options: Unpack[DiffOptions],
) -> Diff:
    """Compare the inputs of `a` and `b`, and their results.

    `a`, `b`: studies, scenario files, sources that `import_job` reads, or folders written by `run`.
    `folder`: output folder for the answer and all rows.

    ScenarioError, RecordingError, FolderError: a side cannot be read.  OptionError: `folder` cannot be written.
    """
    return verb.diff(_given(a), _given(b), **options)


def _given(what: Study | str | PathLike[str]) -> Path | StudySource:
    """Return the source of a study, with its changes and chosen combination; or the path."""
    return replace(what.origin, changes=what.pinned) if isinstance(what, Study) else Path(what)
