"""The answer on one screen: what the setting keeps, what it costs, the difference in Flink's configuration, what to know and to watch.

With the verdict above it, it takes fifteen lines of eighty characters; tables and sentences in full follow below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from sim.advice.judgement import room
from sim.advice.texts import close_value, quantity_of, share, value_text
from sim.analysis.number_texts import bytes_text, change_text
from sim.foreign import one_line
from sim.quantities.prices import S3_STANDARD, Prices, cost_text

if TYPE_CHECKING:
    from sim.advice.answer.configuration import KeyChange
    from sim.advice.answer.lost import OtherFailure
    from sim.advice.answer.watch import Watch
    from sim.advice.judgement import Limits, Setting
    from sim.advice.levers.cautions import Caution
    from sim.advice.levers.lever import Change

WIDTH, LINES = 80, 15
LABEL = 8
LONGEST = 400
"""Characters of a text that is then cut to a line."""
CHANGE_LINES = 4
"""So many lines of the difference stay before other texts do."""
ALWAYS = 9
"""The rank of what always stays."""
QUESTIONS = 2
CAUTIONS = 2


class Text(NamedTuple):
    """A text of the screen.  `rank`: among texts that do not fit, the lowest goes first; each of them stands in full below."""

    label: str
    text: str
    rank: int


def lines_below(verdict: str) -> int:
    """The lines that a verdict leaves for the screen below it, with an empty one between."""
    return LINES - 1 - len(wrap(verdict, WIDTH))


def summary(
    chosen: Setting, before: Setting | None, limits: Limits, *, line_count: int, dominant: str, changes: Sequence[Change],
    differences: Sequence[KeyChange], cautions: Sequence[Caution], refusals: Sequence[Caution], watch: Watch, others: Sequence[str] = (),
    other_failure: OtherFailure | None = None, recovery: str = "recovery", prices: Prices = S3_STANDARD, is_most: bool = False,
) -> str:  # fmt: skip
    """`before`: today's setting, where another one is advised.  `dominant`: where today's time goes.  `others`: what no key of Flink says.

    `recovery`: what it is called.  `other_failure`: the one that recovery is not judged by.
    """
    questions = [caution.short for caution in cautions if caution.is_question]
    known = [caution for caution in (*refusals, *cautions) if not caution.is_question]
    change = [line for difference in differences for line in difference.lines()] + [f"+ {other}" for other in others]
    above = [
        *_keeps(chosen, before, limits, other_failure, recovery),
        *([Text("today", dominant, 5)] if dominant else []),
        *_costs(chosen, before, changes, prices, is_most=is_most),
    ]
    below = [
        *(Text("ask", question, 4 - place) for place, question in enumerate(questions[:QUESTIONS])),
        *(Text("caution", own.short, 1 if place or own.is_of_catalogue else 6) for place, own in enumerate(known[:CAUTIONS])),
        Text("watch", watch.watched(), 7),
        Text("back", watch.taken_back(), ALWAYS),
    ]
    fitting = _fitting([*above, *below], line_count - min(len(change), CHANGE_LINES))
    middle = _change(change, line_count - len(fitting))
    return "\n".join(_labelled([text for text in above if text in fitting], middle, [text for text in below if text in fitting]))


def _fitting(texts: Sequence[Text], line_count: int) -> list[Text]:
    """The texts that stay, in their order; among equals the last goes first."""
    left = list(texts)
    while len(left) > line_count and (lowest := min(reversed(left), key=lambda text: text.rank)).rank < ALWAYS:
        left.remove(lowest)
    return left


def no_setting(dominant: str, closest: Sequence[str], enough: Sequence[str], refusals: Sequence[Caution], line_count: int) -> str:
    """What dominates, how near the nearest setting comes, and the smallest changes with which it would fit."""
    cautions = [caution.short for caution in refusals]
    lines = []
    for label, texts in (("closest", closest), ("time", [dominant] if dominant else []), ("fits", enough), ("caution", cautions)):
        lines += _with_label(label, [line for text in texts for line in wrap(text, WIDTH - LABEL)])
    return "\n".join(lines[:line_count])


def _keeps(chosen: Setting, before: Setting | None, limits: Limits, other: OtherFailure | None, recovery: str) -> Iterator[Text]:
    """``p99 of checkpoints 21 s -> 540 ms (limit 2 s: 270 % room)``, or ``longest of 37 checkpoints 21 s -> ...``."""
    breaks = other is not None and other.breaks
    for limit in limits.of_means():
        value, bound = float(getattr(chosen, limit.column)), limit.at_most
        if math.isnan(value):
            continue
        own = close_value(limit.column, value, bound)
        was = "" if before is None else f"{close_value(limit.column, getattr(before, limit.column), bound)} -> "
        is_recovery = limit.column == "recovery_ms"
        has_room = 0 < value <= bound and not (breaks and is_recovery)
        spare = f": {share(room(value, bound))} room" if has_room else ""
        what = recovery if is_recovery else quantity_of(limit.column, chosen).removeprefix("the ")
        yield Text("keeps", f"{what} {was}{own} (limit {value_text(limit.column, bound)}{spare})", ALWAYS)
        if other is not None and is_recovery:
            yield Text("keeps", other.short(), ALWAYS if breaks else 2)
    if limits.recovery_ms is None and math.isfinite(chosen.recovery_ms):
        was = "" if before is None else f"{value_text('recovery_ms', before.recovery_ms)} -> "
        yield Text("keeps", f"{recovery} {was}{value_text('recovery_ms', chosen.recovery_ms)} (no limit given)", 8)


def _costs(chosen: Setting, before: Setting | None, changes: Sequence[Change], prices: Prices, *, is_most: bool) -> Iterator[Text]:
    """`is_most`: how often records rewrite state is unknown, and the most is assumed."""
    written = f"{'up to ' if is_most else ''}{bytes_text(chosen.written_per_hour)} written per hour"
    than = f" (today {bytes_text(before.written_per_hour)})" if before else ""
    yield Text("costs", f"throughput {change_text(-chosen.loss)}; {written}{than}", 8)
    if math.isfinite(chosen.storage_cost):
        than = f" (today {cost_text(before.storage_cost)})" if before else ""
        yield Text("costs", f"object store {prices.text(chosen.storage_cost)} a month{than}", 7)
    if is_most:
        yield Text("ask", "UNKNOWN: how often do records rewrite state (update)? Assumed: all do", ALWAYS)
    for change in changes:
        if change.assumption is not None:
            yield Text("costs", f"UNKNOWN: {change.assumption.what}; {change.assumption.assumed} is assumed", 4)


def _change(lines: Sequence[str], most: int) -> list[Text]:
    """The lines of the difference that fit on the screen."""
    if len(lines) > max(most, 1):
        kept = max(most, 2) - 1
        lines = [*lines[:kept], f"  ... {len(lines) - kept} more lines: see below, and advised.yaml"]
    return [Text("change", line, ALWAYS) for line in lines]


def _cut(line: str) -> str:
    """Cut a long line at its end, between words: the beginning of a sentence, or of a name, says most."""
    if len(line) <= WIDTH - LABEL:
        return line
    kept = line[: WIDTH - LABEL - 3]
    beginning, space, _ = kept.rpartition(" ")
    return f"{beginning if space and len(beginning) > (WIDTH - LABEL) // 2 else kept.rstrip()}..."


def _labelled(*parts: Sequence[Text]) -> list[str]:
    """Each label once, its texts beside it, a line each."""
    texts = [text for part in parts for text in part]
    labels = dict.fromkeys(text.label for text in texts)
    return [
        line for label in labels for line in _with_label(label, [_cut(one_line(own.text, LONGEST)) for own in texts if own.label == label])
    ]


def _with_label(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{label if not i else '':{LABEL}}{line}" for i, line in enumerate(lines)]
