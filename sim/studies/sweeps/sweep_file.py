"""Read sweep files: the windows of a trace, the question (`answer:`), and the scenarios of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim.model.frozen import frozen
from sim.model.scenario import Backtest, Scenario
from sim.model.schema.sections import validate_as
from sim.model.schema.study import MAX_CELLS, MAX_RUNS, ScenarioFile, load, loads
from sim.model.schema.text import (
    DocumentPath,
    Mapping,
    Problem,
    Reading,
    ScenarioError,
    compose,
    first_comment,
    read_text,
)
from sim.model.schema.trace import RateSeries, Trace, TraceError, TraceTable, series_of
from sim.model.series.columns import find_rate_column
from sim.model.text import did_you_mean
from sim.model.units import format_duration, format_number
from sim.results.formats import unescaped
from sim.results.sweep_answers import Limit, MeasureError, limit
from sim.studies.cells import COLUMNS
from sim.studies.plan import SEED, SeededScenarios, cells, distinct, with_baselines
from sim.studies.sweeps.design import (
    Answer,
    Point,
    SweepDocument,
    Windows,
    combinations,
    override,
    text_of,
    together,
)

# ---- Windows of a trace, as changes of the scenario. (`sim.studies.traces` writes tables of windows, chosen by their features.)

NAME, FROM, FILE, LENGTH = "window", "from_s", "file", "length_s"
"""Columns of a table of windows.  Further columns whose names contain a dot are keys of the scenario."""
RATE = "rate"
"""Name of the column with the rate of a source, if no column of the trace is recognized as a rate."""
MAX_IMPLICIT_WINDOWS = 1000
"""Maximum windows at a fixed distance if `most:` is not set; more are probably a mistake."""


class TraceWindow(NamedTuple):
    """A window of a trace, and the changes of the scenario that replay it."""

    name: str
    begin_ns: int  # from the first row of the trace
    length_ns: int
    trace: Path | None  # None: `trace` of the sweep file applies
    changes: Point
    labels: tuple[tuple[str, str], ...] = ()  # (column of `answer: by`, value): the group of the window, if it has one


class WindowPlan(NamedTuple):
    """The windows of a sweep, and a description of their trace."""

    windows: list[TraceWindow]
    description: str = ""  # span of the trace, and number of windows


def plan_windows(
    section: Windows, folder: Path, scenario_folder: Path, reading: Reading, label: str = ""
) -> WindowPlan:
    """Return the windows of a sweep file.  Errors are added to `reading`, and then there are no windows.

    `section`: the section `windows:`.  `folder`, `scenario_folder`: folders of the sweep file and of its scenario.
    `label`: column of the table of windows that groups them (`answer: by`), or "".
    """
    if list(_missing_keys(section, reading)):
        return WindowPlan([])
    try:
        common = _common_rate(section, folder, scenario_folder)
        series = None if common is None else series_of(Trace.model_validate(common), scenario_folder)
        if section.file is not None:
            windows = list(_windows_of_table(folder / section.file, section, label))
        else:
            assert series is not None and section.length is not None  # noqa: PT018 - else a key is missing
            windows = [
                TraceWindow(format_duration(begin_ns), begin_ns, section.length, None, {})
                for begin_ns in _window_starts_ns(section, series, folder)
            ]
        if section.most and len(windows) > section.most:
            windows = [windows[i * len(windows) // section.most] for i in range(section.most)]
        if series is not None:
            for window in windows:
                _check_end(window, section, series, folder)
    except TraceError as error:
        key = next(name for name in ("file", "at", "every") if getattr(section, name) is not None)
        reading.wrong(("windows", key), str(error))
        return WindowPlan([])
    replayed = [
        window._replace(changes={**_replay_changes(section, window, common, scenario_folder), **window.changes})
        for window in windows
    ]
    return WindowPlan(replayed, _windows_text(section, windows, series))


def _missing_keys(section: Windows, reading: Reading) -> Iterator[str]:
    """Yield the required keys that are missing, and add an error for each to `reading`."""
    for name in ("source", "trace", "length") if section.file is None else ():
        if getattr(section, name) is None:
            reading.wrong(("windows",), f"{name} is missing")
            yield name


def _replayed_rate(section: Windows, trace: Path, column: str, scenario_folder: Path) -> dict[str, Any]:
    """Return the value of the scenario key `rate` that replays a trace from its first row."""
    rate = {
        "trace": relpath(trace, scenario_folder),  # relative to the scenario
        "column": column,
        "time": section.time,
        "time-unit": section.time_unit,
        "zone": section.zone,
        "every": None if section.step is None else format_duration(section.step),
        "scale": None if section.scale is None else format_number(section.scale),
    }
    return {key: value for key, value in rate.items() if value is not None}


def _common_rate(section: Windows, folder: Path, scenario_folder: Path) -> dict[str, Any] | None:
    """Return the rate of the only trace.  Return None if no source is section, or if the table of windows names the traces."""
    if section.source is None or section.trace is None:
        return None
    file = folder / section.trace
    column = section.column or find_rate_column(TraceTable(file).columns) or RATE
    return _replayed_rate(section, file, column, scenario_folder)


def _replay_changes(
    section: Windows, window: TraceWindow, common: dict[str, Any] | None, scenario_folder: Path
) -> Point:
    """Return the changes of the scenario that replay a window: its duration, and the rate of the source if one is given."""
    duration = {"run.duration": format_duration(window.length_ns)}
    if section.source is None:
        return duration
    if common is None:
        assert window.trace is not None
        common = _replayed_rate(section, window.trace, section.column or RATE, scenario_folder)
    return {f"job.{section.source}.source.rate": {**common, "from": format_duration(window.begin_ns)}, **duration}


def _window_starts_ns(section: Windows, series: RateSeries, folder: Path) -> Sequence[int]:
    """Return the starts [ns] of windows: those of `at`, or all at the distance `every` that fit in the trace.

    The last row of a trace is assumed to last as long as the one before.  Raises TraceError if the trace is shorter than a
    window, or if there are more than MAX_IMPLICIT_WINDOWS.
    """
    if section.at:
        return section.at
    assert section.trace is not None and section.length is not None  # noqa: PT018 - else a key is missing
    file = folder / section.trace
    trace_ns, distance_ns = series.length_ns + series.last_ns, section.every or section.length
    if section.length > trace_ns:
        raise TraceError(f"{file} has {series}, less than one window of {format_duration(section.length)}")
    begins = range(0, trace_ns - section.length + 1, distance_ns)
    if section.most is None and len(begins) > MAX_IMPLICIT_WINDOWS:
        raise TraceError(
            f"{len(begins):,} windows, {format_duration(distance_ns)} apart: {file} has {series}; "
            f"write a longer every:, most: 20 for so many of them, or at:{_time_unit_hint(section, series)}"
        )
    return begins


def _check_end(window: TraceWindow, section: Windows, series: RateSeries, folder: Path) -> None:
    """Raise TraceError if the window ends after the trace.  The last row is assumed to last as long as the one before."""
    latest_ns = series.length_ns + series.last_ns - window.length_ns
    if window.begin_ns <= latest_ns:
        return
    instead = f"begin at {format_duration(latest_ns)} or before" if latest_ns >= 0 else "write a shorter length:"
    raise TraceError(
        f"the window '{window.name}' of {format_duration(window.length_ns)} is not within {folder / (section.trace or '')}: "
        f"it has {series}; {instead}"
    )


def _time_unit_hint(section: Windows, series: RateSeries) -> str:
    """Return a hint to set the unit of times, or "" if it is set, or if times are dates or count from 1970."""
    if (
        series.time_format is None
        or series.time_format.unit_s is None
        or section.time_unit is not None
        or series.time_format.is_epoch
    ):
        return ""
    return "; if its times are milliseconds write time-unit: ms"


def _windows_text(section: Windows, windows: list[TraceWindow], series: RateSeries | None) -> str:
    """Return the span of the trace and its number of windows, to be printed before the sweep."""
    shortest_ns, longest_ns = (bound(window.length_ns for window in windows) for bound in (min, max))
    lengths = " to ".join(dict.fromkeys(map(format_duration, (shortest_ns, longest_ns))))
    count = f"{len(windows):,} window{'s' if len(windows) > 1 else ''} of {lengths}"
    if series is not None:
        is_sparse = series.sampling_interval_ns > longest_ns
        return f"{section.trace}: {series}{_time_unit_hint(section, series) if is_sparse else ''}; {count}"
    traces = len({window.trace for window in windows if window.trace is not None})
    return f"{section.file}: {count}" + (f", of {traces} traces" if traces > 1 else "")


def _windows_of_table(file: Path, section: Windows, label: str) -> Iterator[TraceWindow]:
    """Yield the windows of a table of windows.  TraceError: a column is missing, or a row is invalid."""
    table = TraceTable(file)
    columns = table.columns
    needed = {NAME: "", FROM: ""}
    if section.source is None and (FILE in columns or not any("." in column for column in columns)):
        fault = "names traces" if FILE in columns else "changes nothing of the scenario"
        raise TraceError(f"{file} {fault}: write source: in the sweep file")
    if section.source is not None and section.trace is None:
        needed[FILE] = ": write trace: in the sweep file"
    if section.length is None:
        needed[LENGTH] = ": write length: in the sweep file"
    for column, instead in needed.items():
        if column not in columns:
            has = f"{did_you_mean(column, columns)}; it has {', '.join(columns) or 'none'}"
            raise TraceError(f"{file} has no column '{column}'{instead or has}")
    names, traces = set[str](), set[str]()
    for line, row in table.rows:
        name = str(row[NAME])
        if name in names:
            raise TraceError(f"{file}:{line}: the window '{name}' is there already")
        names.add(name)
        traces.add(str(row.get(FILE) or ""))
        if section.trace is not None and len(traces) > 1:
            raise TraceError(
                f"{file}:{line}: windows of several traces, and the sweep file names one: leave trace: out"
            )
        if FILE in needed and not row[FILE]:
            raise TraceError(f"{file}:{line}: '{name}' names no file")
        yield TraceWindow(
            name,
            _nanoseconds(row[FROM], file, line),
            _nanoseconds(row[LENGTH], file, line) if section.length is None else section.length,
            file.parent / unescaped(str(row[FILE])) if FILE in columns else None,
            {column: row[column] for column in columns if "." in column and row[column] not in (None, "")},
            ((label, text_of(row[label])),) if label in columns else (),
        )
    if not names:
        raise TraceError(f"{file} has no windows")


def _nanoseconds(value_s: object, file: Path, line: int) -> int:
    """Return a time in seconds as ns.  TraceError: it is not a number, or negative."""
    try:
        time_ns = round(float(str(value_s)) * 1e9)
    except (ValueError, OverflowError):
        raise TraceError(f"{file}:{line}: '{value_s}' is not a time in seconds") from None
    if time_ns < 0:
        raise TraceError(f"{file}:{line}: {value_s} s is before the first row of the trace")
    return time_ns


# ---- The question of a sweep (`answer:`). It is validated before anything runs.

_SECTION = "answer"


@frozen
class Question:
    """The question of a sweep: which setting is best over all windows and all other varied values."""

    settings: tuple[str, ...]  # keys whose combinations of values are compared
    show: tuple[str, ...]  # result columns in the tables
    least: str = ""  # result column to minimize; "": no setting is recommended
    limits: tuple[Limit, ...] = ()  # limits that the recommended setting must keep
    against: tuple[tuple[str, str], ...] = ()  # (key, value) pairs of the reference setting; empty: there is none
    by: str = ""  # axis or column of the table of windows, each of whose values gets its own answer; "": one answer


def question_of(
    section: Answer,
    axes: Sequence[str],
    values: dict[str, set[str]],
    reading: Reading,
    *,
    labels: Sequence[str],
) -> Question:
    """Validate `answer:`, and return the question.  Errors are added to `reading`.

    `axes`: varied keys, the window and the labels.  `values`: their values, as text.  `labels`: axes that only group windows.
    """
    by, least = section.by or "", section.least or ""
    settings = tuple(section.settings or [axis for axis in axes if axis not in ("window", by, *labels, SEED)])
    if by and (by not in axes or by in settings):
        others = [axis for axis in axes if axis not in settings]
        reading.wrong(
            (_SECTION, "by"),
            f"'{by}' neither varies beside the settings nor is it a column of a table of windows"
            f"{did_you_mean(by, others)}",
        )
    for i, key in enumerate(section.settings or ()):
        if key not in axes:
            reading.wrong(
                (_SECTION, "settings", i),
                f"'{key}' does not vary{did_you_mean(key, axes)}; these do: {', '.join(axes) or 'none'}",
            )
    if not settings:
        reading.wrong((_SECTION,), "there is nothing to compare: nothing else varies")
    columns: dict[DocumentPath, str] = {(_SECTION, "show", i): name for i, name in enumerate(section.show)}
    columns |= {(_SECTION, "least"): least} if least else {}
    columns |= {(_SECTION, "limits", column): column for column in section.limits or ()}
    for path, column in columns.items():
        if column not in COLUMNS:
            reading.wrong(path, f"'{column}' is no column of the results with numbers{did_you_mean(column, COLUMNS)}")
    if least in COLUMNS and COLUMNS[least].worse == "less":
        reading.wrong(
            (_SECTION, "least"),
            f"of '{least}' less is worse: write a limit for it ('> ...'), and the least of what it costs",
        )
    reference = {key: text_of(value) for key, value in (section.against or {}).items()}
    if reference and set(reference) != set(settings):
        reading.wrong((_SECTION, "against"), _incomplete_reference_text(set(reference), settings))
    for key, value in reference.items():
        if key in values and value not in values[key]:
            reading.wrong(
                (_SECTION, "against", key),
                f"'{value}' is not among the values of {key}: {', '.join(sorted(values[key]))}",
            )
    limits = list[Limit]()
    for column, condition in (section.limits or {}).items():
        try:
            limits += [limit(column, condition)] if column in COLUMNS else []
        except MeasureError as error:
            reading.wrong((_SECTION, "limits", column), str(error))
    return Question(
        settings,
        tuple(section.show),
        least,
        tuple(limits),
        tuple((key, reference[key]) for key in settings if key in reference),
        by,
    )


def _incomplete_reference_text(keys: set[str], settings: Sequence[str]) -> str:
    """Return the error message for an `against:` that lacks some settings, or has keys that are not settings."""
    missing, others = [key for key in settings if key not in keys], sorted(keys - set(settings))
    faults = [f"has no value for {', '.join(missing)}"] if missing else []
    faults += [f"{', '.join(others)} {'is no setting' if len(others) == 1 else 'are no settings'}"] if others else []
    return f"{'; '.join(faults)}: names one value of each setting: {', '.join(settings)}"


# ---- The definition of a sweep.

_WINDOW = "window"


@frozen
class Definition:
    """A sweep: the content of a sweep file, or of a scenario file with lists of values."""

    name: str
    text: str  # first comment of the file
    scenarios: SeededScenarios  # `axes` of a scenario has the window and the varied values
    question: Question | None = None  # None: no `answer:`
    warnings: tuple[Problem, ...] = ()
    backtest: Backtest | None = None  # backtest of the scenario file
    load: str = ""  # description of the trace, and number of windows and of runs; "" without windows


def define(file: Path, overrides: Sequence[str] = ()) -> Definition:
    """Read a sweep file, or a scenario file with lists of values.

    `overrides`: ``key=value`` changes of the scenario in all runs; for a key under `vary:`, they replace its values.
    Raises ScenarioError with all mistakes in the sweep file or in a scenario.
    """
    if is_sweep(file):
        return _read_sweep_file(file, tuple(overrides))
    return of_study(load(file, overrides))


def of_study(study: ScenarioFile) -> Definition:
    """Return the sweep over the lists of values in a scenario file."""
    scenarios = SeededScenarios.as_given(study.scenarios)
    return Definition(study.name, study.question, scenarios, warnings=study.warnings, backtest=study.backtest)


def is_sweep(file: Path) -> bool:
    """Return True for a sweep file.  Return False for an unreadable file: the reader of scenarios reports the error."""
    return varied_scenario(file) is not file


def varied_scenario(file: Path) -> Path:
    """Return the scenario file that a sweep file varies, or the file itself if it is not a sweep file."""
    try:
        plain = compose(read_text(file), Reading(str(file)))
    except ScenarioError:
        return file
    return (
        file.parent / str(plain["scenario"])
        if isinstance(plain, Mapping) and "scenario" in plain and "job" not in plain
        else file
    )


def _read_sweep_file(file: Path, overrides: tuple[str, ...]) -> Definition:
    """Read a sweep file.  Raises ScenarioError with all mistakes in it or in a scenario."""
    text, reading = read_text(file), Reading(str(file))
    document, overrides = _document(text, overrides, reading)
    points, seeds = _points(document, overrides, reading)
    windows, trace_text = _windows(document, file.parent, reading)
    reading.stop_if_wrong()
    count = len(windows) * len(points) * len(seeds or [0])
    _check_combinations(count, document, reading, f" ({trace_text})" if trace_text else "")
    reading.stop_if_wrong()
    scenario_file = file.parent / document.scenario
    read = partial(_scenarios, scenario_file, read_text(scenario_file), document, overrides, reading)
    by_combination = [list(read(window, point)) for window in windows for point in points]
    name = file.name.removesuffix(file.suffix)
    named = [replace(scenario, name=name) for pairs in by_combination for scenario, _ in pairs]
    scenarios = SeededScenarios.crossed(named, seeds) if seeds else SeededScenarios.as_given(named)
    _check_runs(scenarios, document, reading)
    question = None
    if document.answer is not None:
        values, labels = scenarios.values(), [label for label, _ in windows[0].labels]
        question = question_of(document.answer, list(values), values, reading, labels=labels)
    reading.stop_if_wrong()
    studies = [study for pairs in by_combination for _, study in pairs]
    warnings = {problem for study in studies for problem in study.warnings} | {*reading.warnings}
    return Definition(
        name,
        first_comment(text),
        scenarios,
        question,
        tuple(sorted(warnings)),
        studies[0].backtest if studies else None,
        f"{trace_text}; {_runs_text(scenarios)}" if trace_text else "",
    )


def _document(text: str, overrides: tuple[str, ...], reading: Reading) -> tuple[SweepDocument, tuple[str, ...]]:
    """Return the validated sweep file with overrides of varied keys applied, and the remaining overrides.

    Raises ScenarioError if the file is invalid.
    """
    plain = compose(text, reading)
    reading.stop_if_wrong()
    assert isinstance(plain, Mapping)
    document = validate_as(SweepDocument, plain, reading)
    reading.stop_if_wrong()
    assert document is not None
    document, overrides = _with_axes(document, overrides, reading)
    reading.stop_if_wrong()
    return document, overrides


def _windows(document: SweepDocument, folder: Path, reading: Reading) -> WindowPlan:
    """Return the windows of the trace; without a trace, a single window without changes."""
    if document.windows is None:
        return WindowPlan([TraceWindow("", 0, 0, None, {})])
    label = document.answer.by if document.answer else None
    return plan_windows(document.windows, folder, (folder / document.scenario).parent, reading, label or "")


def _check_combinations(count: int, document: SweepDocument, reading: Reading, remark: str = "") -> None:
    """Add an error to `reading` if there are more combinations than allowed, which may be a mistake."""
    if count > (most := document.most or MAX_CELLS):
        reading.wrong(
            (),
            f"asks for {count} combinations, at most {most} are allowed{remark}: write most: {count} if they are meant",
        )


def _check_runs(scenarios: SeededScenarios, document: SweepDocument, reading: Reading) -> None:
    """Add an error to `reading` if there are more runs, with replications, than allowed."""
    replications = np.array([scenario.run.replications for scenario in scenarios.different])
    count = int(replications[scenarios.of].sum())
    if count > (most := document.most or MAX_RUNS):
        excess = f"asks for {count} runs of all combinations and replications, at most {most} are allowed"
        path = ("replications",) if document.replications else ()
        reading.wrong(path, f"{excess}: write most: {count} if they are meant")


def _runs_text(scenarios: SeededScenarios) -> str:
    """Return ``6 runs, 3 of them without checkpoints``."""
    planned = distinct(with_baselines(cells(scenarios)))
    bare = int(planned.is_without_checkpoints.sum())
    return f"{len(planned):,} runs" + (f", {bare:,} of them without checkpoints" if bare else "")


def _with_axes(
    document: SweepDocument, overrides: tuple[str, ...], reading: Reading
) -> tuple[SweepDocument, tuple[str, ...]]:
    """Replace the values of varied keys by those of overrides.  Return the changed document and the remaining overrides."""
    together_keys = {key for group in document.together or () for key in group}
    varied, remaining = dict(document.vary or {}), list[str]()
    for line in overrides:
        key, _, value = line.partition("=")
        if key in together_keys:
            reading.wrong(
                (),
                f"'{key}' changes in the file together with others: change it there, not on the command line",
            )
        elif key in varied:
            values = compose(value, reading)
            varied[key] = values if isinstance(values, list) else [values]
        else:
            remaining.append(line)
    return document.model_copy(update={"vary": varied or None}), tuple(remaining)


def _points(document: SweepDocument, overrides: Sequence[str], reading: Reading) -> tuple[list[Point], list[int]]:
    """Return (points, seeds) for all combinations of `vary:` and `together:`.

    Seeds that vary independently of other keys are returned separately, and then all points have the first seed.  This saves
    memory: scenarios that differ only in their seed are stored once.
    """
    groups = [together(group, ("together", i), reading) for i, group in enumerate(document.together or ())]
    varied = document.vary or {}
    keys = [*varied, *(key for group in groups if group for key in group[0])]
    for key in {key for key in keys if keys.count(key) > 1}:
        reading.wrong((), f"'{key}' is varied twice")
    for key in set(keys) & set(document.set_ or {}):
        reading.wrong(("set", key), f"'{key}' varies: it cannot have one value in all runs")
    count = prod(map(len, groups)) * prod(map(len, varied.values()))
    _check_combinations(count, document, reading)
    if reading.problems:
        return [], []
    seeds = _seeds(varied, [*keys, *(line.partition("=")[0].strip() for line in overrides)])
    points = combinations(varied | {SEED: seeds[:1]} if seeds else varied)
    for group in groups:
        points = [point | other for point in points for other in group]
    return points, seeds


def _seeds(varied: dict[str, list[Any]], keys: Sequence[str]) -> list[int]:
    """Return the seeds if they are valid, distinct, and vary independently of other keys; otherwise [].

    `keys`: all keys that vary or are overridden.  A change of the whole section `run` may set the seed too.
    """
    seeds = varied.get(SEED, [])
    are_valid = len(set(map(str, seeds))) == len(seeds) > 1 and all(
        type(seed) is int and 0 <= seed < 2**31 for seed in seeds
    )
    return list(seeds) if are_valid and "run" not in keys else []


def _scenarios(
    file: Path,
    text: str,
    document: SweepDocument,
    overrides: tuple[str, ...],
    reading: Reading,
    window: TraceWindow,
    point: Point,
) -> Iterator[tuple[Scenario, ScenarioFile]]:
    """Yield (scenario, its file) for each scenario of a window and a point.  Errors name the line of the sweep file."""
    changes = (document.set_ or {}) | window.changes | {key: value for key, value in point.items() if value is not None}
    key_of = {override(key, value): key for key, value in changes.items()}
    if document.replications:
        key_of[override("run.replications", document.replications)] = "replications"
    try:
        name = file.name.removesuffix(file.suffix)
        study = loads(text, name, overrides=[*key_of, *overrides], folder=file.parent, file=str(file))
    except ScenarioError as error:
        raise ScenarioError(
            _at_sweep_file(problem, key_of.get(problem.file.removeprefix("--set ")), reading)
            for problem in error.problems
        ) from None
    window_axes = ((_WINDOW, window.name), *window.labels) if window.name else ()
    axes = (*window_axes, *((key, text_of(value)) for key, value in point.items()))
    for scenario in study.scenarios:
        yield replace(scenario, axes=(*axes, *scenario.axes)), study


def _at_sweep_file(problem: Problem, key: str | None, reading: Reading) -> Problem:
    """Return the problem at the line of the sweep file that has the key `key`.

    If `key` is None, the sweep file does not cause the problem, which is returned unchanged.
    """
    if key is None:
        return problem
    path = next((path for path in reading.marks if path and path[-1] == key), ("windows",))
    mark = reading.marks[path]
    return Problem(reading.file, mark.line, mark.column, problem.path, problem.message)
