"""The answer on one screen: what the setting keeps, what it costs, the difference in Flink's configuration, what to know and to watch.

With the verdict above it, it takes fifteen lines of eighty characters; tables and sentences in full follow below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sim.advice.judgement import room
from sim.advice.texts import close_value, quantity_of, share, value_text
from sim.analysis.number_texts import bytes_text, change_text
from sim.foreign import one_line

if TYPE_CHECKING:
    from sim.advice.answer.configuration import KeyChange
    from sim.advice.answer.lost import OtherFailure
    from sim.advice.answer.watch import Watch
    from sim.advice.judgement import Limits, Setting
    from sim.advice.levers.cautions import Caution
    from sim.advice.levers.lever import Change

WIDTH, LINES = 80, 12
"""The verdict takes two or three more lines, and one stays empty."""
LABEL = 8
LONGEST = 400
"""Characters of a text that is then cut to a line."""
QUESTIONS = 2


def summary(
    chosen: Setting, today: Setting | None, limits: Limits, *, dominant: str, changes: Sequence[Change], differences: Sequence[KeyChange],
    cautions: Sequence[Caution], refusals: Sequence[Caution], watch: Watch, others: Sequence[str] = (),
    other_failure: OtherFailure | None = None, recovery: str = "recovery",
) -> str:  # fmt: skip
    """`dominant`: where today's time goes.  `others`: what no key of Flink says.

    `recovery`: what it is called.  `other_failure`: the one that recovery is not judged by.
    """
    head = [
        *_labelled("keeps", _keeps(chosen, today, limits, other_failure, recovery)),
        *_labelled("today", [dominant] if dominant else []),
    ]
    head += _labelled("costs", _costs(chosen, today, changes))
    known = [caution.short for caution in (*refusals, *cautions) if not caution.is_question][:1]
    questions = [caution.short for caution in cautions if caution.is_question][:QUESTIONS]
    last = [*_labelled("watch", [watch.watched()]), *_labelled("back", [watch.taken_back()])]
    line_count = sum(len(difference.lines()) for difference in differences) + len(others)
    if line_count + len(head) + len(questions) + len(known) + len(last) > LINES:
        questions = questions[:1]
    tail = [*_labelled("ask", questions), *_labelled("caution", known), *last]
    return "\n".join([*head, *_change(differences, others, LINES - len(head) - len(tail)), *tail])


def no_setting(dominant: str, closest: Sequence[str], enough: Sequence[str], refusals: Sequence[Caution]) -> str:
    """What dominates, how near the nearest setting comes, and the smallest changes with which it would fit."""
    cautions = [caution.short for caution in refusals]
    lines = []
    for label, texts in (("closest", closest), ("time", [dominant] if dominant else []), ("fits", enough), ("caution", cautions)):
        lines += _labelled(label, texts, wrapped=True)
    return "\n".join(lines[:LINES])


def _keeps(chosen: Setting, today: Setting | None, limits: Limits, other: OtherFailure | None, recovery: str) -> Iterator[str]:
    """``p99 of checkpoints 21 s -> 540 ms (limit 2 s: 270 % room)``, or ``longest of 37 checkpoints 21 s -> ...``."""
    breaks = other is not None and other.breaks
    for limit in limits.of_means():
        value, bound = float(getattr(chosen, limit.column)), limit.at_most
        if math.isnan(value):
            continue
        own = close_value(limit.column, value, bound)
        before = (
            "" if today is None or today.name == chosen.name else f"{close_value(limit.column, getattr(today, limit.column), bound)} -> "
        )
        is_recovery = limit.column == "recovery_ms"
        has_room = 0 < value <= bound and not (breaks and is_recovery)
        spare = f": {share(room(value, bound))} room" if has_room else ""
        what = recovery if is_recovery else quantity_of(limit.column, chosen).removeprefix("the ")
        yield f"{what} {before}{own} (limit {value_text(limit.column, bound)}{spare})"
        if other is not None and is_recovery:
            yield other.short()
    if limits.recovery_ms is None and math.isfinite(chosen.recovery_ms):
        before = "" if today is None or today.name == chosen.name else f"{value_text('recovery_ms', today.recovery_ms)} -> "
        yield f"{recovery} {before}{value_text('recovery_ms', chosen.recovery_ms)} (no limit given)"


def _costs(chosen: Setting, today: Setting | None, changes: Sequence[Change]) -> Iterator[str]:
    before = None if today is None or today.name == chosen.name else today
    than = f" (today {bytes_text(before.written_per_hour)})" if before else ""
    yield f"throughput {change_text(-chosen.loss)}; {bytes_text(chosen.written_per_hour)} written per hour{than}"
    for change in changes:
        if change.assumption is not None:
            yield f"UNKNOWN: {change.assumption.what}; {change.assumption.assumed} is assumed"


def _change(differences: Sequence[KeyChange], others: Sequence[str], most: int) -> list[str]:
    """The lines of the difference that fit on the screen."""
    lines = [line for difference in differences for line in difference.lines()] + [f"+ {other}" for other in others]
    if not lines:
        return []
    if len(lines) > max(most, 1):
        kept = max(most, 2) - 1
        lines = [*lines[:kept], f"  ... {len(lines) - kept} more lines: see below, and advised.yaml"]
    return _labelled("change", lines)


def _cut(line: str) -> str:
    """At its end: the beginning of a sentence, or of a name, says most."""
    return line if len(line) <= WIDTH - LABEL else f"{line[: WIDTH - LABEL - 3].rstrip()}..."


def _labelled(label: str, texts: Sequence[str] | Iterator[str], *, wrapped: bool = False) -> list[str]:
    """The label once, texts beside it; each is cut to a line, or wrapped."""
    from textwrap import wrap

    lines: list[str] = []
    for text in texts:
        lines += wrap(text, WIDTH - LABEL) if wrapped else [_cut(one_line(text, LONGEST))]
    return [f"{label if not i else '':{LABEL}}{line}" for i, line in enumerate(lines)]
