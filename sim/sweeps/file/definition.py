"""A sweep file -> the scenarios of all its runs, with all mistakes on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from sim.cells.columns import MEASURED
from sim.cells.plan import cells, distinct, with_baselines
from sim.cells.seeded import SEED, SeededScenarios
from sim.model.backtest import Backtest
from sim.model.scenario import Scenario
from sim.scenario import ScenarioError, ScenarioFile, load
from sim.scenario.axes import MAX_CELLS, MAX_RUNS
from sim.scenario.text.plain import Mapping, compose, first_comment, read_text
from sim.scenario.text.problems import Problem, Reading, did_you_mean
from sim.scenario.validation import validate_as
from sim.sweeps.file.design import Point, combinations, override, sampled, text_of, together
from sim.sweeps.file.document import Precision, SweepDocument
from sim.sweeps.file.question import Question, question, windows_of
from sim.sweeps.file.windows import TraceWindow, WindowPlan, windows

_WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Definition:
    """The content of a sweep file.

    `text` is its first comment.  The axes of `scenarios` are the values that tell them apart, windows among them.
    """

    name: str
    text: str
    scenarios: SeededScenarios
    precision: Precision | None = None
    question: Question | None = None
    warnings: tuple[Problem, ...] = ()
    backtest: Backtest | None = None  # of the scenario file
    load: str = ""  # the span of the trace, how its times were read, its windows and how many runs they make; empty: there is none
    job: Path | None = None  # the scenario file that is varied; None: the file itself is a scenario
    settings: tuple[str, ...] = ()  # ``key=value`` of all runs, as the sweep file sets them


def define(file: Path, overrides: Sequence[str] = ()) -> Definition:
    """Read a sweep file, or a scenario with lists in it.  `overrides` are ``key=value`` of the scenario, for all runs.

    ScenarioError: all mistakes in the sweep, or in a scenario of it.
    """
    if is_sweep(file):
        return _read(file, tuple(overrides))
    return of_study(load(file, overrides))


def of_study(study: ScenarioFile) -> Definition:
    """A scenario with lists in it as a sweep."""
    scenarios = SeededScenarios.as_given(study.scenarios)
    return Definition(study.name, study.question, scenarios, warnings=study.warnings, backtest=study.backtest)


def is_sweep(file: Path) -> bool:
    """Whether the file names a scenario instead of being one.  An unreadable file counts as a scenario, whose reader reports the error."""
    return varied_scenario(file) is not file


def varied_scenario(file: Path) -> Path:
    """The scenario that a sweep file varies; a scenario itself."""
    try:
        plain = compose(read_text(file), Reading(str(file)))
    except ScenarioError:
        return file
    return file.parent / str(plain["scenario"]) if isinstance(plain, Mapping) and "scenario" in plain and "job" not in plain else file


def _read(file: Path, overrides: tuple[str, ...]) -> Definition:
    text, reading = read_text(file), Reading(str(file))
    given, overrides = _document(text, overrides, reading)
    points, seeds, block = _points(given, overrides, reading)
    trace_windows, load_text = _windows(given, file.parent, reading)
    reading.stop_if_wrong()
    _bounded(len(trace_windows) * len(points) * len(seeds or [0]), given, reading, f" ({load_text})" if load_text else "")
    reading.stop_if_wrong()
    read = partial(_scenarios, file.parent / given.scenario, given, overrides, reading)
    combinations_read = [list(read(window, point)) for window in trace_windows for point in points]
    name = file.name.removesuffix(file.suffix)
    scenarios = _seeded(name, [[scenario for scenario, _ in own] for own in combinations_read], seeds, block)
    _bounded_runs(scenarios, given, reading)
    answering = _question(given, scenarios, [name for name, _ in trace_windows[0].labels], reading) if given.answer else None
    reading.stop_if_wrong()
    studies = [study for own in combinations_read for _, study in own]
    warnings = {problem: None for study in studies for problem in study.warnings} | reading.warnings
    backtest = studies[0].backtest if studies else None
    described = f"{load_text}; {_runs_text(scenarios)}" if load_text else ""
    fixed = tuple(override(key, value) for key, value in (given.set_ or {}).items())
    return Definition(
        name, first_comment(text), scenarios, given.precision, answering, tuple(sorted(warnings)), backtest, described,
        file.parent / given.scenario, fixed,
    )  # fmt: skip


def _document(text: str, overrides: tuple[str, ...], reading: Reading) -> tuple[SweepDocument, tuple[str, ...]]:
    """The sweep file as it is written, and the overrides that are not about its axes.  ScenarioError: mistakes in it."""
    plain = compose(text, reading)
    reading.stop_if_wrong()
    assert isinstance(plain, Mapping)  # noqa: S101 - else it is no sweep
    given = validate_as(SweepDocument, plain, reading)
    reading.stop_if_wrong()
    assert given is not None  # noqa: S101 - else there are problems
    given, overrides = _with_axes(given, overrides, reading)
    reading.stop_if_wrong()
    if given.precision and given.precision.of not in MEASURED:
        hint = did_you_mean(given.precision.of, MEASURED)
        reading.wrong(("precision", "of"), f"'{given.precision.of}' is no column of the results{hint}, or none with numbers")
    return given, overrides


def _windows(given: SweepDocument, folder: Path, reading: Reading) -> WindowPlan:
    """The windows of the trace; without a trace one window, which changes nothing."""
    if given.windows is None:
        return WindowPlan([TraceWindow("", {})])
    label = given.answer.by if given.answer else None
    return windows(given.windows, folder, (folder / given.scenario).parent, reading, label or "")


def _seeded(name: str, combinations_read: list[list[Scenario]], seeds: list[int], block: int) -> SeededScenarios:
    """The scenarios of all combinations with every seed; the scenario file may have lists, too, so a combination may be several."""
    named = [replace(scenario, name=name) for own in combinations_read for scenario in own]
    blocks = [sum(map(len, combinations_read[i : i + block])) for i in range(0, len(combinations_read), block)]
    return SeededScenarios.crossed(named, seeds, blocks) if seeds else SeededScenarios.as_given(named)


def _bounded(count: int, given: SweepDocument, reading: Reading, made: str = "") -> None:
    """More combinations than are usual are meant, or a mistake."""
    if count > (most := given.most or MAX_CELLS):
        reading.wrong((), f"asks for {count} combinations, at most {most} are allowed{made}: write most: {count} if they are meant")


def _bounded_runs(scenarios: SeededScenarios, given: SweepDocument, reading: Reading) -> None:
    replications = [scenario.run.replications for scenario in scenarios.different]
    count = sum(replications[of] for of in scenarios.of.tolist())
    if count > (most := given.most or MAX_RUNS):
        what = f"asks for {count} runs of all combinations and replications, at most {most} are allowed"
        reading.wrong(("replications",) if given.replications else (), f"{what}: write most: {count} if they are meant")


def _runs_text(scenarios: SeededScenarios) -> str:
    """``6 runs, 3 of them without checkpoints``."""
    planned = distinct(with_baselines(cells(scenarios)))
    bare = int(planned.is_bare.sum())
    return f"{len(planned):,} runs" + (f", {bare:,} of them without checkpoints" if bare else "")


def _with_axes(given: SweepDocument, overrides: tuple[str, ...], reading: Reading) -> tuple[SweepDocument, tuple[str, ...]]:
    """What varies in the file and is given another value varies over that; the other overrides stay."""
    fixed = {key for group in given.together or () for key in group} | set(given.sample.of if given.sample else ())
    varied, left = dict(given.vary or {}), []
    for line in overrides:
        key, _, value = line.partition("=")
        if key in fixed:
            reading.wrong((), f"'{key}' changes in the file together with others, or is sampled: change it there, not on the command line")
        elif key in varied:
            values = compose(value, reading)
            varied[key] = values if isinstance(values, list) else [values]
        else:
            left.append(line)
    return given.model_copy(update={"vary": varied or None}), tuple(left)


def _question(given: SweepDocument, scenarios: SeededScenarios, labels: Sequence[str], reading: Reading) -> Question:
    values = scenarios.values()
    assert given.answer is not None  # noqa: S101 - there is no question else
    windows = windows_of(scenarios.different, given.answer.by or "")
    return question(given.answer, list(values), values, reading, labels=labels, windows=windows, precise=given.precision is not None)


def _points(given: SweepDocument, overrides: Sequence[str], reading: Reading) -> tuple[list[Point], list[int], int]:
    """(points, seeds, block): every combination of `vary`, of the keys that change together, and of the sampled points.

    Seeds that vary by themselves are apart: each point has the first.  All seeds have a block of points before the next block comes.
    """
    groups = [together(group, ("together", i), reading) for i, group in enumerate(given.together or ())]
    groups.append(sampled(given.sample, ("sample",), reading) if given.sample else [{}])
    varied = given.vary or {}
    keys = [*varied, *(key for group in groups if group for key in group[0])]
    for key in {key for key in keys if keys.count(key) > 1}:
        reading.wrong((), f"'{key}' is varied twice")
    for key in set(keys) & set(given.set_ or {}):
        reading.wrong(("set", key), f"'{key}' varies: it cannot have one value in all runs")
    count = prod(map(len, groups)) * prod(map(len, varied.values()))
    _bounded(count, given, reading)
    if reading.problems:
        return [], [], 1
    seeds = _seeds(varied, [*keys, *(line.partition("=")[0].strip() for line in overrides)])
    points = combinations(varied | {SEED: seeds[:1]} if seeds else varied)
    for group in groups:
        points = [point | other for point in points for other in group]
    after = list(varied)[list(varied).index(SEED) + 1 :] if seeds else []
    return points, seeds, prod(len(varied[key]) for key in after) * prod(map(len, groups))


def _seeds(varied: dict[str, list[Any]], keys: Sequence[str]) -> list[int]:
    """The seeds of a list of several different ones; empty: nothing to set apart.  `keys`: all that have values."""
    seeds = varied.get(SEED, [])
    plain = len(set(map(str, seeds))) == len(seeds) > 1 and all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    return list(seeds) if plain and "run" not in keys else []  # the whole section has a seed, too


def _scenarios(
    file: Path, given: SweepDocument, overrides: tuple[str, ...], reading: Reading, window: TraceWindow, point: Point
) -> Iterator[tuple[Scenario, ScenarioFile]]:
    written = {override(key, value): key for key, value in ((given.set_ or {}) | window.changes | point).items()}
    if given.replications:
        written[override("run.replications", given.replications)] = "replications"
    try:
        study = load(file, [*written, *overrides])
    except ScenarioError as error:
        keys = {f"--set {text}": key for text, key in written.items()}
        raise ScenarioError(_placed(problem, keys.get(problem.file), reading) for problem in error.problems) from None
    named = ((_WINDOW, window.name), *window.labels) if window.name else ()
    chosen = (*named, *((key, text_of(value)) for key, value in point.items()))
    for scenario in study.scenarios:
        yield replace(scenario, axes=(*chosen, *scenario.axes)), study


def _placed(problem: Problem, key: str | None, reading: Reading) -> Problem:
    """The place of a mistake in the sweep file, if the value stands there."""
    if key is None:
        return problem
    places = [path for path in reading.marks if path and path[-1] == key]
    mark = reading.marks[places[0] if places else ("windows",)]
    return Problem(reading.file, mark.line, mark.column, problem.path, problem.message)
