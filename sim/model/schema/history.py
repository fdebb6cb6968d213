"""The sections `backtest:` and `residuals:`: observations of a real job, as `ckptsim import` writes them to the history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field, create_model

from sim.model import randomness, scenario
from sim.model.fields import At, Duration, Natural, Number, Positive, RecordRate, Size, choice
from sim.model.job import Vertex
from sim.model.quantities import Kind, of_history
from sim.model.schema.sections import Options, Section, build_model
from sim.model.schema.text import Reading
from sim.model.text import did_you_mean

# ---- The keys of `backtest:`: one per quantity, with observed and predicted quantiles.


class _Quantiles(Section):
    """Quantiles over checkpoints, or over runs."""

    count: Natural
    """Values."""


class _Compared(Section):
    """A quantity, observed and predicted."""

    vertex: str | None = None
    """Not given: the whole checkpoint or job."""
    off: list[Annotated[str, choice("p50", "p90")]] | None = None
    """Quantiles that differ by more than repetitions do."""
    cause: str | None = None
    """The likely cause."""


_LEAVES: dict[Kind, Any] = {"duration": Duration, "size": Size, "rate": RecordRate}
_LEVELS = {"p50": "Median.", "p90": "90 % are not larger.", "max": "The largest."}


def _compared(kind: Kind) -> type[Section]:
    """Return the section class for quantities of this kind, with observed and predicted quantiles."""
    levels: dict[str, Any] = {
        name: (_LEAVES[kind] | None, Field(None, description=text)) for name, text in _LEVELS.items()
    }
    quantiles = create_model(f"{kind.capitalize()}s", __base__=_Quantiles, __doc__=_Quantiles.__doc__, **levels)
    sides: dict[str, Any] = {
        "observed": (quantiles, Field(description="In the history.")),
        "predicted": (quantiles, Field(description="In simulation.")),
    }
    return create_model(
        f"Compared{kind.capitalize()}s", __base__=_Compared, __doc__=f"Observed and predicted {kind}s.", **sides
    )


_KINDS: dict[Kind, type[Section]] = {kind: _compared(kind) for kind in _LEAVES}


class OtherSettings(Section):
    """Factors of end-to-end durations."""

    p50: Number | None = None
    """Factor of the median.  Not given: nothing is known."""
    p90: Number | None = None
    """Factor of the 90 % quantile.  Not given: nothing is known."""


def field_of(key: str) -> str:
    """Return the name of the field for a quantity: ``async_`` for `async`, which is a keyword of Python."""
    return "async_" if key == "async" else key.replace("-", "_")


_ROWS: dict[str, Any] = {
    field_of(key): (
        _KINDS[own[0].kind] | None,
        Field(None, description=f"{own[0].title.capitalize()}: {own[0].meaning}."),
    )
    for key, own in of_history().items()
}
_Rows = create_model("_Rows", __base__=Section, **_ROWS)


class Failures(Options, of=(scenario.ObservedFailures,), axes=False):
    """Checkpoints that failed, and failures of the job."""

    reason: str | None = None


class Backtest(_Rows):  # type: ignore[misc, valid-type]  # the base class is generated from the quantities
    """What `import` found when it simulated the job as it is.  Nothing of a run depends on it."""

    runs: Positive
    """Simulated runs."""
    simulated: Duration
    """Length of each run."""
    longest: list[Duration] | None = None
    """Recorded end-to-end durations, the longest first: the tail of the history."""
    tail: Number | None = None
    """The tail of end-to-end durations, observed / predicted, where both differ by more than repetitions do."""
    other_settings: OtherSettings | None = None
    """Factors within which other settings are predicted: chance in so short a history, the machine, and what is off."""
    failures: Failures | None = None
    """Not given: neither checkpoints nor the job failed."""


# ---- `residuals:`: observed minus modelled durations of the checkpoints of a history.


class OfVertex(Section):
    """For each subtask a list with a number per checkpoint of the history, in units of `unit`.  Further subtasks take theirs in turn."""

    scheduling: list[list[Natural]] | None = None
    """Sources only: from the call that triggers a checkpoint until their thread looks at it."""
    sync: list[list[Natural]] | None = None
    """Synchronous phase."""
    async_: list[list[Natural]] | None = None
    """Asynchronous phase."""
    acknowledgement: list[list[Natural]] | None = None
    """From the end of the asynchronous phase until the coordinator knows."""
    backend: str | None = None
    """The backend that sync and async were observed with, such as rocksdb or hashmap+changelog; with another one none are drawn."""


class Residuals(Section):
    """What checkpoints of a real job took beyond the model.  Each simulated checkpoint draws one of the history, for all its subtasks."""

    checkpoints: Positive
    """How many there are to draw from."""
    unit: Duration
    """The unit of all numbers below."""
    of: dict[str, OfVertex]
    """Vertex -> its residuals."""


def build_residuals(section: Residuals | None, vertices: Iterable[Vertex], reading: Reading) -> randomness.Residuals:
    """Return the model of `residuals:`, which draws nothing if `section` is None.  Errors are reported to `reading`.

    `vertices`: vertices of the job.
    """
    if section is None:
        return randomness.Residuals()
    found = list(vertices)
    sources = {vertex.name: vertex.source is not None for vertex in found}
    backends = {vertex.name: vertex.state.backend_name for vertex in found if vertex.state is not None}
    return randomness.Residuals(section.checkpoints, tuple(_residuals(section, sources, backends, reading)))


def _residuals(
    section: Residuals, sources: dict[str, bool], backends: dict[str, str], reading: Reading
) -> Iterator[randomness.Residual]:
    """Yield the residuals of each vertex and phase [ns].  Errors are reported to `reading`.

    Residuals of the sync and async phases are left out if they were observed with another state backend.  `sources`: vertex name ->
    whether it is a source.  `backends`: vertex name -> its state backend.
    """
    for name, of_vertex in section.of.items():
        if name not in sources:
            reading.wrong(("residuals", "of", name), f"there is no vertex '{name}'{did_you_mean(name, list(sources))}")
            continue
        for part in randomness.PARTS:
            lists = of_vertex.async_ if part == "async" else getattr(of_vertex, part)
            if lists is None or (
                part in ("sync", "async") and of_vertex.backend is not None and of_vertex.backend != backends.get(name)
            ):
                continue
            path = ("residuals", "of", name, part)
            if not lists:
                reading.wrong(path, "is empty: write a list per subtask, or remove the key")
            if part == "scheduling" and not sources[name]:
                reading.wrong(path, "only sources are called; the others get a barrier")
            for index, numbers in enumerate(lists):
                if len(numbers) != section.checkpoints:
                    message = f"has {len(numbers)} numbers for subtask {index}: expected one for each of {section.checkpoints} checkpoints"
                    reading.wrong((*path, index), message)
            yield randomness.Residual(
                name, part, tuple(tuple(number * section.unit for number in numbers) for numbers in lists)
            )


def tail_sentence(found: randomness.Residuals) -> str:
    """Return a clause on the residuals that are drawn, or "" if none are."""
    if not found.checkpoints:
        return ""
    return f"tails are drawn from the residuals of {found.checkpoints} checkpoints of the job's own history"


# ---- Building the model of `backtest:`.

# divisors: a section has durations in ns, and its model has them in ms
_UNIT: dict[Kind, float] = {"duration": 1e6, "size": 1.0, "rate": 1.0}


def build_backtest(written: Backtest, reading: Reading) -> scenario.Backtest:
    """Return the model of `backtest:`, with compared durations in ms.  Errors are reported to `reading`."""
    longest, failures, at = (
        written.longest or [],
        written.failures,
        At(("backtest", "failures"), reading),
    )
    if any(after > before for before, after in pairwise(longest)):
        reading.wrong(("backtest", "longest"), "write the longest duration first")
    compared = []
    for quantity, (first, *_) in of_history().items():
        section, kind = getattr(written, field_of(quantity)), first.kind
        if section is None:
            continue
        for side in ("observed", "predicted"):
            _check(getattr(section, side), At(("backtest", quantity, side), reading))
        compared.append(
            scenario.ComparedQuantity(
                quantity=quantity,
                observed=_quantiles(section.observed, kind),
                predicted=_quantiles(section.predicted, kind),
                vertex=section.vertex or "",
                off=tuple(section.off or ()),
                cause=section.cause or "",
            )
        )
    if written.tail is not None and not written.tail:
        reading.wrong(("backtest", "tail"), "expected more than 0")
    tail = 1.0 if written.tail is None else float(written.tail)
    return scenario.Backtest(
        tuple(compared),
        tuple(duration / 1e6 for duration in longest),
        tail,
        written.runs,
        written.simulated,
        _other_settings(written, reading),
        None if failures is None else build_model(scenario.ObservedFailures, failures, at, reason=failures.reason),
    )


def _other_settings(section: Backtest, reading: Reading) -> scenario.OtherSettings | None:
    """Return the factors for other settings, or None if the section has none.  A factor that is not set is infinite."""
    factors = section.other_settings
    if factors is None:
        return None
    p50, p90 = (math.inf if factor is None else float(factor) for factor in (factors.p50, factors.p90))
    if min(p50, p90) < 1:
        reading.wrong(("backtest", "other-settings"), "expected factors of 1 and more")
    return scenario.OtherSettings(p50, p90)


def _check(section: Any, at: At) -> None:
    """Report an error unless p50 <= p90 <= max are all set, or all unset if `count` is 0."""
    values = [value for value in (section.p50, section.p90, section.max) if value is not None]
    if len(values) != (3 if section.count else 0):
        at.wrong("write p50, p90, max and count, or count: 0 alone")
    elif "unlimited" in values or sorted(values) != values:
        at.wrong("expected p50 <= p90 <= max")


def _quantiles(section: Any, kind: Kind) -> scenario.Quantiles:
    """Return the quantiles of a section, in ms if they are durations."""
    p50, p90, largest = (_number(value, kind) for value in (section.p50, section.p90, section.max))
    return scenario.Quantiles(p50, p90, largest, section.count)


def _number(value: Any, kind: Kind) -> float:
    """Return a value in the unit of the model, or NaN if it is not set or "unlimited", which `_check` reports as an error."""
    return math.nan if value is None or value == "unlimited" else float(value) / _UNIT[kind]
