"""`answer:` of a sweep file -> a question about its results; impossible questions are refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.analysis.sweeps.answers import Limit
from sim.analysis.sweeps.measure import MeasureError, limit
from sim.cells.columns import COLUMNS, MEASURED
from sim.model.scenario import Scenario
from sim.scenario.text.problems import DocumentPath, Reading, did_you_mean
from sim.sweeps.file.design import text_of
from sim.sweeps.file.document import Answer

_HERE = "answer"


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a sweep.

    `settings` are compared across all other varied values; each value of `by` has its own answer.
    """

    settings: tuple[str, ...]
    show: tuple[str, ...]
    varied: tuple[str, ...]  # all axes that are keys of the scenario, and the window
    least: str = ""
    limits: tuple[Limit, ...] = ()
    against: tuple[tuple[str, str], ...] = ()
    by: str = ""
    racing: int = 0  # worlds of the first pass; 0: all settings run everywhere


LEAST_RACING = 8
"""Fewer windows tell hardly any setting from another with the confidence that racing asks for."""


def windows_of(scenarios: Sequence[Scenario], by: str) -> int | None:
    """The number of windows, of the value of `by` that has the fewest; None: there are no windows, or a single one."""
    windows: dict[str, set[str]] = {}
    for axes in (dict(scenario.axes) for scenario in scenarios):
        windows.setdefault(axes.get(by, ""), set()).add(axes.get("window", ""))
    return min(map(len, windows.values())) if len(set.union(*windows.values())) > 1 else None


def racing_fault(racing: int, least: str | None, windows: int | None, *, precise: bool) -> str | None:
    """Why settings cannot race; None: they can.  `windows`: see `windows_of`."""
    if not least:
        return "settings race for the smallest value of a column: name it in answer.least"
    if precise:
        return "precision: adds replications to every setting, racing takes settings out: write one of them"
    if racing < LEAST_RACING:
        return f"{racing} windows x seeds tell no setting from another: {LEAST_RACING} or more"
    if windows is not None and windows < LEAST_RACING:
        return f"settings race through windows, and there are {windows}: {LEAST_RACING} or more tell settings apart; leave racing out"
    return None


def question(
    given: Answer, axes: Sequence[str], values: dict[str, set[str]], reading: Reading, *, labels: Sequence[str],
    windows: int | None, precise: bool,
) -> Question:  # fmt: skip
    """Build the question.  Mistakes go to `reading`.

    `axes`: the varied keys, windows included; `values`: their values, as written; `labels`: axes that only sort windows into groups;
    `windows`: see `windows_of`.
    """
    settings = tuple(given.settings or [axis for axis in axes if axis not in ("window", given.by, *labels)])
    if given.by is not None and (given.by not in axes or given.by in settings):
        others = [axis for axis in axes if axis not in settings]
        reading.wrong((_HERE, "by"), f"'{given.by}' neither varies beside the settings nor is it a column of a table of windows"
                      f"{did_you_mean(given.by, others)}")  # fmt: skip
    for i, key in enumerate(given.settings or ()):
        if key not in axes:
            reading.wrong((_HERE, "settings", i), f"'{key}' does not vary{did_you_mean(key, axes)}; these do: {', '.join(axes) or 'none'}")
    if not settings:
        reading.wrong((_HERE,), "there is nothing to compare: nothing else varies")
    columns: list[tuple[DocumentPath, str]] = [((_HERE, "show", i), name) for i, name in enumerate(given.show)]
    for place, column in [*columns, *([((_HERE, "least"), given.least)] if given.least else [])]:
        if column not in MEASURED:
            reading.wrong(place, f"'{column}' is no column of the results with numbers{did_you_mean(column, MEASURED)}")
    if given.least in COLUMNS and COLUMNS[given.least].worse == "less":
        reading.wrong((_HERE, "least"), f"of '{given.least}' less is worse: write a limit for it ('> ...'), and the least of what it costs")
    against = {key: text_of(value) for key, value in (given.against or {}).items()}
    if against and set(against) != set(settings):
        reading.wrong((_HERE, "against"), _incomplete(set(against), settings))
    for key, value in against.items():
        if key in values and value not in values[key]:
            reading.wrong((_HERE, "against", key), f"'{value}' is not among the values of {key}: {', '.join(sorted(values[key]))}")
    if given.racing is not None and (fault := racing_fault(given.racing, given.least, windows, precise=precise)):
        reading.wrong((_HERE, "racing"), fault)
    ordered = tuple((key, against[key]) for key in settings if key in against)
    varied = tuple(axis for axis in axes if axis not in labels)
    limits = _limits(given, reading)
    return Question(settings, tuple(given.show), varied, given.least or "", limits, ordered, given.by or "", given.racing or 0)


def _incomplete(given: set[str], settings: Sequence[str]) -> str:
    """Which settings have no value here, and which keys are none of them."""
    missing, others = [key for key in settings if key not in given], sorted(given - set(settings))
    faults = [f"has no value for {', '.join(missing)}"] if missing else []
    faults += [f"{', '.join(others)} {'is no setting' if len(others) == 1 else 'are no settings'}"] if others else []
    return f"{'; '.join(faults)}: names one value of each setting: {', '.join(settings)}"


def _limits(given: Answer, reading: Reading) -> tuple[Limit, ...]:
    kept = []
    for column, condition in (given.limits or {}).items():
        if column not in MEASURED:
            reading.wrong((_HERE, "limits", column), f"'{column}' is no column of the results with numbers{did_you_mean(column, MEASURED)}")
            continue
        try:
            kept.append(limit(column, condition))
        except MeasureError as error:
            reading.wrong((_HERE, "limits", column), str(error))
    return tuple(kept)
