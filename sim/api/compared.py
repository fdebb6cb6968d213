"""Several studies or results side by side, under the names that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from sim.api.results import Results
from sim.api.study import Study, study_of
from sim.comparison.comparison import Comparison
from sim.runtime.run.result import Result

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine


def compare(
    *what: Study | Results | str | PathLike[str] | Mapping[str, Study | Results | str | PathLike[str]],
    jobs: int | None = None, engine: Engine = "compiled", checks: bool = True, progress: bool = True,
) -> Results:  # fmt: skip
    """Run studies side by side: ``sim.compare("job.yaml")``, ``sim.compare(study, changed)``, ``sim.compare({"today": a, "new": b})``.

    Studies, files and results that are there already may be mixed; results are taken as they are.  Without names, those of the studies
    are used, numbered where two are the same.  ValueError: nothing to compare.  TypeError: neither study, results nor path.
    """
    named = _named(what)
    if not named:
        raise ValueError("nothing to compare: give studies, results or scenario files")
    options = {"jobs": jobs, "engine": engine, "checks": checks, "progress": progress}
    done = {name: given if isinstance(given, Results) else study_of(given).run(**options) for name, given in named.items()}  # type: ignore[arg-type]
    if len(done) == 1 and not any(isinstance(given, Mapping) for given in what):
        return next(iter(done.values()))
    return _together(done)


def simulate(scenario: Study | Scenario, *, engine: Engine = "compiled", checks: bool = True) -> Result:
    """One run of one combination: its tables, journal and manifest.

    ValueError: the study has several combinations, or the engine is unknown.  TypeError: it is no scenario.
    """
    from sim.model.scenario import Scenario as Model
    from sim.runtime.run.simulate import simulate as run

    if isinstance(scenario, Study):
        scenario = scenario.single("simulate")
    if not isinstance(scenario, Model):
        raise TypeError(f'expected a study of one combination (sim.load(...)["aligned"]), not {type(scenario).__name__}')
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
    """One comparison, whose strategies begin with the given names; the history of a job stays if all have the same."""
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
