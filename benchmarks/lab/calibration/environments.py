"""The section `overheads:` of an environment: every constant with its value, its confidence, its meaning and its estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from textwrap import wrap
from typing import TYPE_CHECKING

from benchmarks.lab.calibration.estimate import Estimate
from benchmarks.lab.calibration.estimators import CONSTANTS
from sim.model.scenario import Overheads
from sim.model.text import MAX_LINE_LENGTH, one_line
from sim.model.units import format_duration

if TYPE_CHECKING:
    from benchmarks.lab import Recording

WIDTH = 80
"""Characters of a line of comment: the file is printed on a terminal."""
HOW = (
    "A constant is the median over recordings of each recording's median. The interval holds 95 % of the medians of recordings drawn again "
    "with replacement. To half a millisecond below 20 ms, 1 ms below 100 ms, 10 ms below 1 s, 100 ms above."
)


def head(recordings: Sequence[Recording]) -> list[str]:
    """The first line of the file."""
    versions = ", ".join(sorted({recording.flink_version for recording in recordings}))
    return [f"What no configuration says, of the environment of {len(recordings)} recordings of Flink {versions}."]


def environment_text(found: Mapping[str, Estimate], about: Iterable[str]) -> str:
    """The section `overheads:` of a scenario; `about`: lines for its head."""
    lines = [f"# {one_line(line, MAX_LINE_LENGTH)}".rstrip() for line in about]
    lines += [*_comment(HOW), "overheads:"]
    for field in fields(Overheads):
        name = field.name.removesuffix("_ns")
        about_it = CONSTANTS[name]
        lines += [*_comment(about_it.what, "  "), *_comment(f"From {about_it.how}.", "  ")]
        lines += [f"  {name.replace('_', '-')}: {_constant(found[name])}"]
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _constant(estimate: Estimate) -> str:
    value = _duration(estimate.value_ms)
    if estimate.kept or estimate.low_ms is None or estimate.high_ms is None:
        few = "no recording tells it" if estimate.recordings == 0 else "too few recordings tell it"
        return f"{value} # not estimated: {few}, the default is kept"
    return f"{value} # {_duration(estimate.low_ms)} to {_duration(estimate.high_ms)}, from {estimate.recordings} recordings"


def _duration(value_ms: float) -> str:
    return format_duration(round(value_ms * 10**6))
