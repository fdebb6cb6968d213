"""Python functions about runs: `simulate`, `compare`, `sweep` and `diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sim.app.api.results import Results
from sim.app.api.study import Study, axes_as_changes, study_of
from sim.app.verbs import diff as diff_verb
from sim.app.verbs import sweep as sweep_verb
from sim.app.verbs.diff import Diff
from sim.app.verbs.options import DiffOptions, SweepOptions, changes_as_lines, documented, with_defaults
from sim.app.verbs.run import StudySource
from sim.app.verbs.sweep import Sweep, SweepRequest, read_request
from sim.model.schema.flink_file import flink_change
from sim.runtime.result import Result
from sim.studies.comparison import Comparison
from sim.studies.sweeps.sweep_file import of_study

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine


# ---- Comparison of studies.


def compare(
    *studies: Study | Results | str | PathLike[str] | Mapping[str, Study | Results | str | PathLike[str]],
    jobs: int | None = None,
    checks: bool = True,
) -> Results:
    """Run studies and compare them: ``sim.compare("job.yaml")`` or ``sim.compare({"today": a, "new": b})``.

    Studies, scenario files and existing results may be mixed; results are not computed again.  Unnamed arguments take the
    name of their study, numbered if it is not unique.

    Raises:
        ValueError: There is nothing to compare.
        TypeError: An argument is not a study, results or a path.
    """
    by_name = _by_name(studies)
    if not by_name:
        raise ValueError("nothing to compare: give studies, results or scenario files")
    results = {
        name: study if isinstance(study, Results) else study_of(study).run(jobs=jobs, checks=checks)
        for name, study in by_name.items()
    }
    if len(results) == 1 and not isinstance(studies[0], Mapping):  # one unnamed study: its labels are unchanged
        return next(iter(results.values()))
    return _combine(results)


def simulate(scenario: Study | Scenario, *, engine: Engine = "compiled", checks: bool = True) -> Result:
    """Simulate one scenario once, and return its tables, journal and manifest.

    Raises:
        ValueError: The study has several combinations, or the engine is unknown.
        TypeError: `scenario` is not a scenario or a study.
    """
    from sim.model import scenario as model
    from sim.runtime import simulate as runtime

    if isinstance(scenario, Study):
        scenario = scenario.single("simulate")
    if not isinstance(scenario, model.Scenario):
        raise TypeError(
            f'expected a study with a single combination (sim.load(...)["aligned"]), not {type(scenario).__name__}'
        )
    return runtime.simulate(scenario, engine=engine, check=checks)


def _by_name(studies: Sequence[object]) -> dict[str, object]:
    """Return the studies by their given names, or by those of their files: ``job``, ``job (2)``."""
    named: dict[str, object] = {}
    uses: Counter[str] = Counter()
    for study in studies:
        if isinstance(study, Mapping):
            named |= {str(name): value for name, value in study.items()}
            uses.update(map(str, study))
            continue
        name = study.comparison.name if isinstance(study, Results) else study_of(study).name
        uses[name] += 1
        named[f"{name} ({uses[name]})" if uses[name] > 1 else name] = study
    return named


def _combine(by_name: Mapping[str, Results]) -> Results:
    """Combine results in one comparison, and prefix the labels of strategies with the given names.

    The backtest is kept if there is exactly one.
    """
    runs: dict[str, tuple[Result, ...]] = {}
    baselines: dict[str, Result] = {}
    errors: dict[str, str] = {}
    for name, results in by_name.items():
        has_several_strategies = len(results.runs) + len(results.errors) > 1
        baselines |= results.comparison.baselines
        for strategy, replications in results.runs.items():
            axes_of_strategy = replications[0].scenario.axes or (("", strategy),)
            axes = (("", name), *(axes_of_strategy if has_several_strategies else ()))
            label = f"{name}, {strategy}" if has_several_strategies else name
            runs[label] = tuple(replace(run, scenario=replace(run.scenario, axes=axes)) for run in replications)
        for strategy, error in results.errors.items():
            errors[f"{name}, {strategy}" if has_several_strategies else name] = error
    questions = list(dict.fromkeys(results.question for results in by_name.values() if results.question))
    comparison = Comparison(questions[0] if len(questions) == 1 else "", " and ".join(by_name), runs, baselines, errors)
    assumptions = tuple(dict.fromkeys(line for results in by_name.values() for line in results.assumptions))
    # the same backtest may belong to several results
    backtests = {id(results.backtest): results.backtest for results in by_name.values() if results.backtest is not None}
    return Results(comparison, assumptions, backtest=next(iter(backtests.values())) if len(backtests) == 1 else None)


# ---- Sweep.


@documented(SweepOptions)
def sweep(
    source: Study | str | PathLike[str],
    axes: Mapping[str, Sequence[Any]] | None = None,
    **options: Unpack[SweepOptions],
) -> Sweep:
    """Run a sweep file, or every combination of a study and of `axes` (``{"checkpoint.interval": ["10 s", "30 s"]}``).

    Each cell has a row in `folder` (``runs/<name>-<id>`` by default); calling it again resumes.  `jobs`: local processes;
    `master`: a Spark master instead, with settings in `conf`.

    Raises ScenarioError and OptionError for mistakes in file or options, and TooManyFailuresError if more than
    `max_failures` cells failed.
    """
    options["changes"] = [*changes_as_lines(options.get("changes", ())), *axes_as_changes(axes or {})]
    request = _sweep_of_study(source, options) if isinstance(source, Study) else read_request(Path(source), **options)
    return sweep_verb.sweep(request, **options)


def _sweep_of_study(study: Study, options: SweepOptions) -> SweepRequest:
    """Return the sweep of a study with `changes` and `flink` applied."""
    options = with_defaults(SweepOptions, options)
    flink = [] if options["flink"] is None else [flink_change(Path(options["flink"]), study.origin.file)]
    changed = study.with_([*flink, *changes_as_lines(options["changes"])])
    definition = replace(of_study(changed.read), name=changed.name)
    # These options are applied.  `pinned` reproduces the study, so that the printed command repeats the sweep.
    options["changes"], options["flink"] = changed.pinned, None
    return read_request(study.origin.file, definition, **options)


# ---- Diff.


@documented(DiffOptions)
def diff(
    a: Study | str | PathLike[str],
    b: Study | str | PathLike[str],
    **options: Unpack[DiffOptions],
) -> Diff:
    """Compare the inputs of `a` and `b`, and their results.

    `a`, `b`: studies, scenario files, sources that `import_job` reads, or folders written by `run`.
    `folder`: output folder for the comparison and its rows.

    Raises ScenarioError, RecordingError or FolderError if a side cannot be read, and OptionError if `folder` cannot be
    written.
    """
    return diff_verb.diff(_source_of(a), _source_of(b), **options)


def _source_of(side: Study | str | PathLike[str]) -> Path | StudySource:
    """Return the source of a study, with its changes and chosen combination; or the path."""
    return replace(side.origin, changes=side.pinned) if isinstance(side, Study) else Path(side)
