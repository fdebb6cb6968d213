"""Read sweep files: the windows of a trace, the question (`answer:`), and the scenarios of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

from sim.model.backtest import Backtest
from sim.model.scenario import Scenario
from sim.model.schema.axes import MAX_CELLS, MAX_RUNS
from sim.model.schema.job import Trace
from sim.model.schema.study import ScenarioFile, load, loads
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
from sim.model.schema.trace import RateSeries, TraceError, columns_and_rows, series_of
from sim.model.schema.validation import validate_as
from sim.model.series.tables import rate_of
from sim.model.text import did_you_mean
from sim.model.units import format_duration, format_number
from sim.results.csv_files import unescaped
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
    changes: Point
    labels: tuple[tuple[str, str], ...] = ()  # (column of `answer: by`, value): the group of the window, if it has one


class WindowPlan(NamedTuple):
    """The windows of a sweep, and a description of their trace."""

    windows: list[TraceWindow]
    description: str = ""  # span of the trace, and number of windows


class _Piece(NamedTuple):
    """Start and length of a window."""

    begin_ns: int  # from the first row of the trace
    length_ns: int | None = None  # None: `length` of the sweep file applies
    trace: Path | None = None  # None: `trace` of the sweep file applies


def windows(given: Windows, folder: Path, scenario_folder: Path, reading: Reading, label: str = "") -> WindowPlan:
    """Return the windows of a sweep file.  Errors are added to `reading`, and then there are no windows.

    `given`: the section `windows:`.  `folder`, `scenario_folder`: folders of the sweep file and of its scenario.
    `label`: column of the table of windows that groups them (`answer: by`), or "".
    """
    if list(_missing(given, reading)):
        return WindowPlan([])
    place = next(name for name in ("file", "at", "every") if getattr(given, name) is not None)
    try:
        common = _common_rate(given, folder, scenario_folder)
        series = None if common is None else series_of(Trace.model_validate(common), scenario_folder)
        if given.file is not None:
            found = list(_of_table(folder / given.file, given, label))
        else:
            assert series is not None
            found = [(TraceWindow(format_duration(at_ns), {}), _Piece(at_ns)) for at_ns in _grid(given, series, folder)]
        if given.most and len(found) > given.most:
            found = [found[i * len(found) // given.most] for i in range(given.most)]
        if series is not None:
            for window, piece in found:
                _within(window, piece, given, series, folder)
    except TraceError as error:
        reading.wrong(("windows", place), str(error))
        return WindowPlan([])
    driven = [
        window._replace(changes={**_driven(given, piece, common, scenario_folder), **window.changes})
        for window, piece in found
    ]
    return WindowPlan(driven, _description(given, found, series))


def _missing(given: Windows, reading: Reading) -> Iterator[str]:
    """Yield the required keys that are missing, and add an error for each to `reading`."""
    for name in ("source", "trace", "length") if given.file is None else ():
        if getattr(given, name) is None:
            reading.wrong(("windows",), f"{name} is missing")
            yield name


def _rate(given: Windows, trace: Path, column: str, scenario_folder: Path) -> dict[str, Any]:
    """Return the value of the scenario key `rate` that replays a trace from its first row."""
    rate = {
        "trace": relpath(trace, scenario_folder),  # relative to the scenario
        "column": column,
        "time": given.time,
        "time-unit": given.time_unit,
        "zone": given.zone,
        "every": None if given.step is None else format_duration(given.step),
        "scale": None if given.scale is None else format_number(given.scale),
    }
    return {key: value for key, value in rate.items() if value is not None}


def _common_rate(given: Windows, folder: Path, scenario_folder: Path) -> dict[str, Any] | None:
    """Return the rate of the only trace.  Return None if no source is given, or if the table of windows names the traces."""
    if given.source is None or given.trace is None:
        return None
    file = folder / given.trace
    column = given.column or rate_of(columns_and_rows(file)[0]) or RATE
    return _rate(given, file, column, scenario_folder)


def _driven(given: Windows, piece: _Piece, common: dict[str, Any] | None, scenario_folder: Path) -> Point:
    """Return the changes of the scenario that replay this window: its duration, and the rate of the source if one is given."""
    length_ns = piece.length_ns if given.length is None else given.length
    assert length_ns is not None
    lasts = {"run.duration": format_duration(length_ns)}
    if given.source is None:
        return lasts
    if common is None:
        assert piece.trace is not None
        common = _rate(given, piece.trace, given.column or RATE, scenario_folder)
    return {f"job.{given.source}.source.rate": {**common, "from": format_duration(piece.begin_ns)}, **lasts}


def _grid(given: Windows, series: RateSeries, folder: Path) -> Sequence[int]:
    """Return the starts [ns] of windows: those of `at`, or all at the distance `every` that fit in the trace.

    The last row of a trace is assumed to last as long as the one before.  Raises TraceError if the trace is shorter than a
    window, or if there are more than MAX_IMPLICIT_WINDOWS.
    """
    if given.at:
        return given.at
    assert given.trace is not None and given.length is not None  # noqa: PT018 - else it is a problem
    file = folder / given.trace
    long_ns = series.length_ns + series.last_ns
    if given.length > long_ns:
        raise TraceError(f"{file} has {series}, less than one window of {format_duration(given.length)}")
    starts = range(0, long_ns - given.length + 1, given.every or given.length)
    if given.most is None and len(starts) > MAX_IMPLICIT_WINDOWS:
        raise TraceError(
            f"{len(starts):,} windows, {format_duration(given.every or given.length)} apart: {file} has {series}; "
            f"write a longer every:, most: 20 for so many of them, or at:{_other_unit(given, series)}"
        )
    return starts


def _within(window: TraceWindow, piece: _Piece, given: Windows, series: RateSeries, folder: Path) -> None:
    """Raise TraceError if the window ends after the trace.  The last row is assumed to last as long as the one before."""
    length_ns = given.length or piece.length_ns or 0
    if piece.begin_ns + length_ns <= series.length_ns + series.last_ns:
        return
    latest_ns = series.length_ns + series.last_ns - length_ns
    instead = f"begin at {format_duration(latest_ns)} or before" if latest_ns >= 0 else "write a shorter length:"
    raise TraceError(
        f"the window '{window.name}' of {format_duration(length_ns)} is not within {folder / (given.trace or '')}: it has {series}; "
        f"{instead}"
    )


def _other_unit(given: Windows, series: RateSeries) -> str:
    """Return a hint to set the unit of times, or "" if it is set, or if times are dates or count from 1970."""
    if series.clock is None or series.clock.unit_s is None or given.time_unit is not None or series.clock.epoch:
        return ""
    return "; if its times are milliseconds write time-unit: ms"


def _description(given: Windows, found: list[tuple[TraceWindow, _Piece]], series: RateSeries | None) -> str:
    """Return the span of the trace and its number of windows, to be printed before the sweep."""
    lengths = sorted({given.length or piece.length_ns or 0 for _, piece in found})
    long = format_duration(lengths[0]) + ("" if len(lengths) == 1 else f" to {format_duration(lengths[-1])}")
    count = f"{len(found):,} window{'s' if len(found) > 1 else ''} of {long}"
    if series is not None:
        sparse = series.sampling_interval_ns > lengths[-1]
        return f"{given.trace}: {series}{_other_unit(given, series) if sparse else ''}; {count}"
    traces = len({piece.trace for _, piece in found if piece.trace is not None})
    return f"{given.file}: {count}" + (f", of {traces} traces" if traces > 1 else "")


def _of_table(file: Path, given: Windows, label: str) -> Iterator[tuple[TraceWindow, _Piece]]:
    """Yield the windows of a table of windows.  TraceError: a column is missing, or a row is invalid."""
    columns, rows = columns_and_rows(file)
    needed = {NAME: "", FROM: ""}
    if given.source is None and (FILE in columns or not any("." in column for column in columns)):
        what = "names traces" if FILE in columns else "changes nothing of the scenario"
        raise TraceError(f"{file} {what}: write source: in the sweep file")
    if given.source is not None and given.trace is None:
        needed[FILE] = ": write trace: in the sweep file"
    if given.length is None:
        needed[LENGTH] = ": write length: in the sweep file"
    for column, instead in needed.items():
        if column not in columns:
            has = f"{did_you_mean(column, columns)}; it has {', '.join(columns) or 'none'}"
            raise TraceError(f"{file} has no column '{column}'{instead or has}")
    seen, traces = set[str](), set[str]()
    for line, row in rows:
        name = str(row[NAME])
        if name in seen:
            raise TraceError(f"{file}:{line}: the window '{name}' is there already")
        seen.add(name)
        traces.add(str(row.get(FILE) or ""))
        if given.trace is not None and len(traces) > 1:
            raise TraceError(
                f"{file}:{line}: windows of several traces, and the sweep file names one: leave trace: out"
            )
        if FILE in needed and not row[FILE]:
            raise TraceError(f"{file}:{line}: '{name}' names no file")
        changes = {column: row[column] for column in columns if "." in column and row[column] not in (None, "")}
        length = _nanoseconds(row[LENGTH], file, line) if given.length is None else None
        window = TraceWindow(name, changes, ((label, text_of(row[label])),) if label in columns else ())
        trace = file.parent / unescaped(str(row[FILE])) if FILE in columns else None
        yield window, _Piece(_nanoseconds(row[FROM], file, line), length, trace)
    if not seen:
        raise TraceError(f"{file} has no windows")


def _nanoseconds(value: object, file: Path, line: int) -> int:
    """Return a time in seconds as ns.  TraceError: it is not a number, or negative."""
    try:
        at_ns = round(float(str(value)) * 1e9)
    except (ValueError, OverflowError):
        raise TraceError(f"{file}:{line}: '{value}' is not a time in seconds") from None
    if at_ns < 0:
        raise TraceError(f"{file}:{line}: {value} s is before the first row of the trace")
    return at_ns


# ---- The question of a sweep (`answer:`). It is validated before anything runs.

_HERE = "answer"


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a sweep: which setting is best over all windows and all other varied values."""

    settings: tuple[str, ...]  # keys whose combinations of values are compared
    show: tuple[str, ...]  # result columns in the tables
    varied: tuple[str, ...]  # all varied keys of the scenario, and the window
    least: str = ""  # result column to minimize; "": no setting is recommended
    limits: tuple[Limit, ...] = ()  # limits that the recommended setting must keep
    against: tuple[tuple[str, str], ...] = ()  # (key, value) pairs of the reference setting; empty: there is none
    by: str = ""  # axis or column of the table of windows, each of whose values gets its own answer; "": one answer


def question(
    given: Answer,
    axes: Sequence[str],
    values: dict[str, set[str]],
    reading: Reading,
    *,
    labels: Sequence[str],
) -> Question:
    """Validate `answer:`, and return the question.  Errors are added to `reading`.

    `axes`: varied keys, the window and the labels.  `values`: their values, as text.  `labels`: axes that only group windows.
    """
    settings = tuple(given.settings or [axis for axis in axes if axis not in ("window", given.by, *labels, SEED)])
    if given.by is not None and (given.by not in axes or given.by in settings):
        others = [axis for axis in axes if axis not in settings]
        reading.wrong(
            (_HERE, "by"),
            f"'{given.by}' neither varies beside the settings nor is it a column of a table of windows"
            f"{did_you_mean(given.by, others)}",
        )
    for i, key in enumerate(given.settings or ()):
        if key not in axes:
            reading.wrong(
                (_HERE, "settings", i),
                f"'{key}' does not vary{did_you_mean(key, axes)}; these do: {', '.join(axes) or 'none'}",
            )
    if not settings:
        reading.wrong((_HERE,), "there is nothing to compare: nothing else varies")
    columns: list[tuple[DocumentPath, str]] = [((_HERE, "show", i), name) for i, name in enumerate(given.show)]
    for place, column in [*columns, *([((_HERE, "least"), given.least)] if given.least else [])]:
        if column not in COLUMNS:
            reading.wrong(place, f"'{column}' is no column of the results with numbers{did_you_mean(column, COLUMNS)}")
    if given.least in COLUMNS and COLUMNS[given.least].worse == "less":
        reading.wrong(
            (_HERE, "least"),
            f"of '{given.least}' less is worse: write a limit for it ('> ...'), and the least of what it costs",
        )
    against = {key: text_of(value) for key, value in (given.against or {}).items()}
    if against and set(against) != set(settings):
        reading.wrong((_HERE, "against"), _incomplete(set(against), settings))
    for key, value in against.items():
        if key in values and value not in values[key]:
            reading.wrong(
                (_HERE, "against", key), f"'{value}' is not among the values of {key}: {', '.join(sorted(values[key]))}"
            )
    ordered = tuple((key, against[key]) for key in settings if key in against)
    varied = tuple(axis for axis in axes if axis not in labels)
    limits = _limits(given, reading)
    return Question(settings, tuple(given.show), varied, given.least or "", limits, ordered, given.by or "")


def _incomplete(given: set[str], settings: Sequence[str]) -> str:
    """Return the error message for an `against:` that lacks some settings, or has keys that are not settings."""
    missing, others = [key for key in settings if key not in given], sorted(given - set(settings))
    faults = [f"has no value for {', '.join(missing)}"] if missing else []
    faults += [f"{', '.join(others)} {'is no setting' if len(others) == 1 else 'are no settings'}"] if others else []
    return f"{'; '.join(faults)}: names one value of each setting: {', '.join(settings)}"


def _limits(given: Answer, reading: Reading) -> tuple[Limit, ...]:
    """Return the valid limits of `answer:`, and add an error for each invalid one to `reading`."""
    kept = []
    for column, condition in (given.limits or {}).items():
        if column not in COLUMNS:
            reading.wrong(
                (_HERE, "limits", column),
                f"'{column}' is no column of the results with numbers{did_you_mean(column, COLUMNS)}",
            )
            continue
        try:
            kept.append(limit(column, condition))
        except MeasureError as error:
            reading.wrong((_HERE, "limits", column), str(error))
    return tuple(kept)


# ---- The definition of a sweep.

_WINDOW = "window"


@dataclass(frozen=True, slots=True)
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
        return _read(file, tuple(overrides))
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


def _read(file: Path, overrides: tuple[str, ...]) -> Definition:
    """Read a sweep file.  Raises ScenarioError with all mistakes in it or in a scenario."""
    text, reading = read_text(file), Reading(str(file))
    given, overrides = _document(text, overrides, reading)
    points, seeds, block = _points(given, overrides, reading)
    trace_windows, load_text = _windows(given, file.parent, reading)
    reading.stop_if_wrong()
    _bounded(
        len(trace_windows) * len(points) * len(seeds or [0]), given, reading, f" ({load_text})" if load_text else ""
    )
    reading.stop_if_wrong()
    named = file.parent / given.scenario
    read = partial(_scenarios, named, read_text(named), given, overrides, reading)
    combinations_read = [list(read(window, point)) for window in trace_windows for point in points]
    name = file.name.removesuffix(file.suffix)
    scenarios = _seeded(name, [[scenario for scenario, _ in own] for own in combinations_read], seeds, block)
    _bounded_runs(scenarios, given, reading)
    answering = None
    if given.answer is not None:
        values, labels = scenarios.values(), [name for name, _ in trace_windows[0].labels]
        answering = question(given.answer, list(values), values, reading, labels=labels)
    reading.stop_if_wrong()
    studies = [study for own in combinations_read for _, study in own]
    warnings = {problem: None for study in studies for problem in study.warnings} | reading.warnings
    backtest = studies[0].backtest if studies else None
    described = f"{load_text}; {_runs_text(scenarios)}" if load_text else ""
    return Definition(
        name,
        first_comment(text),
        scenarios,
        answering,
        tuple(sorted(warnings)),
        backtest,
        described,
    )


def _document(text: str, overrides: tuple[str, ...], reading: Reading) -> tuple[SweepDocument, tuple[str, ...]]:
    """Return the validated sweep file with overrides of varied keys applied, and the remaining overrides.

    Raises ScenarioError if the file is invalid.
    """
    plain = compose(text, reading)
    reading.stop_if_wrong()
    assert isinstance(plain, Mapping)
    given = validate_as(SweepDocument, plain, reading)
    reading.stop_if_wrong()
    assert given is not None
    given, overrides = _with_axes(given, overrides, reading)
    reading.stop_if_wrong()
    return given, overrides


def _windows(given: SweepDocument, folder: Path, reading: Reading) -> WindowPlan:
    """Return the windows of the trace; without a trace, a single window without changes."""
    if given.windows is None:
        return WindowPlan([TraceWindow("", {})])
    label = given.answer.by if given.answer else None
    return windows(given.windows, folder, (folder / given.scenario).parent, reading, label or "")


def _seeded(name: str, combinations_read: list[list[Scenario]], seeds: list[int], block: int) -> SeededScenarios:
    """Return the scenarios of all combinations with every seed; without `seeds`, each with its own seed.

    A combination may have several scenarios, because the scenario file may have lists too.  `block`: number of combinations
    that run with one seed before the next seed.
    """
    named = [replace(scenario, name=name) for own in combinations_read for scenario in own]
    blocks = [sum(map(len, combinations_read[i : i + block])) for i in range(0, len(combinations_read), block)]
    return SeededScenarios.crossed(named, seeds, blocks) if seeds else SeededScenarios.as_given(named)


def _bounded(count: int, given: SweepDocument, reading: Reading, made: str = "") -> None:
    """Add an error to `reading` if there are more combinations than allowed, which may be a mistake."""
    if count > (most := given.most or MAX_CELLS):
        reading.wrong(
            (),
            f"asks for {count} combinations, at most {most} are allowed{made}: write most: {count} if they are meant",
        )


def _bounded_runs(scenarios: SeededScenarios, given: SweepDocument, reading: Reading) -> None:
    """Add an error to `reading` if there are more runs, with replications, than allowed."""
    replications = [scenario.run.replications for scenario in scenarios.different]
    count = sum(replications[of] for of in scenarios.of.tolist())
    if count > (most := given.most or MAX_RUNS):
        what = f"asks for {count} runs of all combinations and replications, at most {most} are allowed"
        reading.wrong(("replications",) if given.replications else (), f"{what}: write most: {count} if they are meant")


def _runs_text(scenarios: SeededScenarios) -> str:
    """Return ``6 runs, 3 of them without checkpoints``."""
    planned = distinct(with_baselines(cells(scenarios)))
    bare = int(planned.is_bare.sum())
    return f"{len(planned):,} runs" + (f", {bare:,} of them without checkpoints" if bare else "")


def _with_axes(
    given: SweepDocument, overrides: tuple[str, ...], reading: Reading
) -> tuple[SweepDocument, tuple[str, ...]]:
    """Replace the values of varied keys by those of overrides.  Return the changed document and the remaining overrides."""
    fixed = {key for group in given.together or () for key in group}
    varied, left = dict(given.vary or {}), []
    for line in overrides:
        key, _, value = line.partition("=")
        if key in fixed:
            reading.wrong(
                (),
                f"'{key}' changes in the file together with others: change it there, not on the command line",
            )
        elif key in varied:
            values = compose(value, reading)
            varied[key] = values if isinstance(values, list) else [values]
        else:
            left.append(line)
    return given.model_copy(update={"vary": varied or None}), tuple(left)


def _points(given: SweepDocument, overrides: Sequence[str], reading: Reading) -> tuple[list[Point], list[int], int]:
    """Return (points, seeds, block size) for all combinations of `vary:` and `together:`.

    Seeds that vary independently of other keys are returned separately, and then all points have the first seed.  This saves
    memory: scenarios that differ only in their seed are stored once.  Runs are ordered by block of points, then by seed.
    """
    groups = [together(group, ("together", i), reading) for i, group in enumerate(given.together or ())]
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
    """Return the seeds if they are valid, distinct, and vary independently of other keys; otherwise [].

    `keys`: all keys that vary or are overridden.  A change of the whole section `run` may set the seed too.
    """
    seeds = varied.get(SEED, [])
    plain = len(set(map(str, seeds))) == len(seeds) > 1 and all(
        type(seed) is int and 0 <= seed < 2**31 for seed in seeds
    )
    return list(seeds) if plain and "run" not in keys else []


def _scenarios(
    file: Path,
    text: str,
    given: SweepDocument,
    overrides: tuple[str, ...],
    reading: Reading,
    window: TraceWindow,
    point: Point,
) -> Iterator[tuple[Scenario, ScenarioFile]]:
    """Yield (scenario, its file) for each scenario of a window and a point.  Errors name the line of the sweep file."""
    written = {override(key, value): key for key, value in ((given.set_ or {}) | window.changes | point).items()}
    if given.replications:
        written[override("run.replications", given.replications)] = "replications"
    try:
        name = file.name.removesuffix(file.suffix)
        study = loads(text, name, overrides=[*written, *overrides], folder=file.parent, file=str(file))
    except ScenarioError as error:
        keys = {f"--set {text}": key for text, key in written.items()}
        raise ScenarioError(_placed(problem, keys.get(problem.file), reading) for problem in error.problems) from None
    named = ((_WINDOW, window.name), *window.labels) if window.name else ()
    chosen = (*named, *((key, text_of(value)) for key, value in point.items()))
    for scenario in study.scenarios:
        yield replace(scenario, axes=(*chosen, *scenario.axes)), study


def _placed(problem: Problem, key: str | None, reading: Reading) -> Problem:
    """Return the problem at the line of the sweep file that has the key `key`.

    If `key` is None, the sweep file does not cause the problem, which is returned unchanged.
    """
    if key is None:
        return problem
    places = [path for path in reading.marks if path and path[-1] == key]
    mark = reading.marks[places[0] if places else ("windows",)]
    return Problem(reading.file, mark.line, mark.column, problem.path, problem.message)
