"""`answer:` of a sweep file -> a question about its results; what cannot be asked is told before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from sim.analysis.answers import Limit
from sim.analysis.measure import MeasureError, limit
from sim.scenario.problems import Path, Reading, did_you_mean
from sim.sweep.asked.answer import Question
from sim.sweep.asked.design import text_of
from sim.sweep.asked.document import Answer
from sim.sweep.columns import MEASURED

__all__ = ["question"]

_HERE = "answer"


def question(given: Answer, axes: Sequence[str], values: dict[str, set[str]], reading: Reading) -> Question:
    """`axes`: what varies, windows included; `values`: as they are written.  Mistakes go to `reading`."""
    settings = tuple(given.settings or [axis for axis in axes if axis != "window"])
    for i, key in enumerate(given.settings or ()):
        if key not in axes:
            reading.wrong((_HERE, "settings", i), f"'{key}' does not vary{did_you_mean(key, axes)}; these do: {', '.join(axes) or 'none'}")
    if not settings:
        reading.wrong((_HERE,), "there is nothing to compare: nothing varies but the window")
    asked: list[tuple[Path, str]] = [((_HERE, "show", i), name) for i, name in enumerate(given.show)]
    for place, column in [*asked, *([((_HERE, "least"), given.least)] if given.least else [])]:
        if column not in MEASURED:
            reading.wrong(place, f"'{column}' is no column of the results with numbers{did_you_mean(column, MEASURED)}")
    against = {key: text_of(value) for key, value in (given.against or {}).items()}
    if against and set(against) != set(settings):
        reading.wrong((_HERE, "against"), f"names one value of each setting: {', '.join(settings)}")
    for key, value in against.items():
        if key in values and value not in values[key]:
            reading.wrong((_HERE, "against", key), f"'{value}' is not among the values of {key}: {', '.join(sorted(values[key]))}")
    ordered = tuple((key, against[key]) for key in settings if key in against)
    return Question(settings, tuple(given.show), tuple(axes), given.least or "", _limits(given, reading), ordered)


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
