"""Differences as texts: a screen of at most fifteen lines of eighty characters, and the tables below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap

from sim.analysis.paired import PairedChange
from sim.analysis.section import TextTable
from sim.analysis.sweeps.measure import text as value_text
from sim.differences.effects import LEADING, QuantityDifference, leading
from sim.differences.inputs import InputChange, InputDifferences
from sim.foreign import one_line
from sim.prose import capitalised

WIDTH, LINES, LABEL = 80, 15, 8
MOST_INPUTS, MOST_QUANTITIES, MOST_STEPS = 4, 3, 3
"""So many lines of each stand on the screen; all stand in the tables."""
LONGEST = 60
"""Characters of a value in a table; JSON has all of it."""
NOTHING = "Nothing that is simulated differs: the same values, or values that mean the same."


def verdict(found: InputDifferences, answer: Sequence[QuantityDifference], *, has_failed: bool = False) -> str:
    """What the differences of inputs do to the answer, in a sentence.  `has_failed`: runs gave no values."""
    if not found.changes:
        only = [*(["names of vertices"] if found.renamed else []), *(["how they run"] if found.runs else [])]
        return f"Nothing that is simulated differs but {' and '.join(only)}." if only else NOTHING
    first = leading(answer)
    if has_failed and (first is None or first.is_of_one_side):
        return f"{_counted(found)}; runs failed, so what that changes is not known."
    if first is None:
        return f"{_counted(found)}, and no quantity surely changes."
    text = capitalised(first.text)
    if len(found.steps) == 1:
        return f"{text}, from {found.steps[0].name}."
    if largest := first.largest:
        return f"{text}; {largest} alone: {first.effect_text(largest)}."
    if not all(math.isfinite(step.value) for step in first.steps.values()):
        return f"{text}; what each input does alone has no value."
    return f"{text}: no input alone changes it, only all together."


def screen(found: InputDifferences, answer: Sequence[QuantityDifference], said: str, runs: str) -> str:
    """The verdict, the inputs that matter most, the quantities that lead, and what accounts for the first of them."""
    first = leading(answer)
    lines = wrap(said, WIDTH)
    if not found.changes:
        return "\n".join([*lines, *_labelled("inputs", list(_vertices(found)))])
    below = _labelled("answer", list(_leading_lines(answer)))
    if first is not None and len(found.steps) > 1 and math.isfinite(first.change.value):
        below += _labelled("because", list(_parts(first)))
    below += _labelled("runs", [runs])
    vertices = list(_vertices(found))
    room = LINES - len(lines) - len(below) - len(vertices) - 2
    listed = _by_effect(found, first)[: min(max(room, 0), MOST_INPUTS)]
    left = len(found.changes) - len(listed)
    heading = _counted(found) + (", those that matter first" if left and listed and first is not None else "")
    inputs = [change.sentence() for change in listed]
    lines += _labelled("inputs", [heading, *vertices, *inputs, *([f"... and {left} more below"] if left else [])])
    return "\n".join([*lines[: LINES - len(below)], *below][:LINES])


def tables(found: InputDifferences, answer: Sequence[QuantityDifference]) -> list[TextTable]:
    """Inputs, quantities, and the part of each step in them."""
    made = []
    if found.changes:
        rows = [
            [own.key, one_line(own.before_text, LONGEST), one_line(own.after_text, LONGEST), own.kind, ", ".join(own.flink)]
            for own in found.changes
        ]
        made.append(TextTable("Inputs that differ", ["key", "A", "B", "about", "Flink"], rows))
    apart = [own for own in answer if not own.is_same]
    if apart:
        rows = [[own.title, *own.sides_text(), own.effect_text(), own.relative_text()] for own in apart]
        made.append(TextTable("Quantities, mean over the same seeds", ["quantity", "A", "B", "B - A", "share"], rows))
    if apart and len(found.steps) > 1:
        rows = [
            [own.title, name, text]
            for own in apart
            for name, text in (
                *((name, own.effect_text(name)) for name in own.steps if own.is_shown(own.steps[name])),
                ("all beyond their sum", _beyond(own)),
            )
            if text
        ]
        made.append(TextTable("What each change alone does to A", ["quantity", "change", "effect"], rows))
    return made


def same_quantities(answer: Sequence[QuantityDifference]) -> str:
    """The quantities that both sides have alike; empty: all differ."""
    same = [own.title for own in answer if own.is_same]
    return f"The same on both sides: {'; '.join(same)}." if same else ""


def _counted(found: InputDifferences) -> str:
    count = len(found.changes)
    return f"{count} input{'' if count == 1 else 's'} {'differs' if count == 1 else 'differ'}"


def _vertices(found: InputDifferences) -> Iterator[str]:
    if found.renamed:
        yield f"renamed: {', '.join(f'{old} -> {new}' for old, new in found.renamed)}"
    for what, names in (("added", found.added), ("removed", found.removed)):
        if names:
            yield f"{what}: {', '.join(names)}"


def _by_effect(found: InputDifferences, first: QuantityDifference | None) -> list[InputChange]:
    """The inputs, those of the step that does most to the leading quantity first."""

    def size(name: str) -> float:
        step = None if first is None else first.steps.get(name)
        return abs(step.value) if step is not None and math.isfinite(step.value) else 0.0

    return [change for step in sorted(found.steps, key=lambda step: -size(step.name)) for change in step.changes]


def _leading_lines(answer: Sequence[QuantityDifference]) -> Iterator[str]:
    first = leading(answer)
    known = [own for column in LEADING for own in answer if own.column == column and own is not first]
    listed = [*([first] if first is not None else []), *known][:MOST_QUANTITIES]
    for own in listed:
        yield own.text


def _parts(first: QuantityDifference) -> Iterator[str]:
    """``load (3 options) +3.1 s``, the largest first, and what all do together."""
    known = sorted(first.steps.items(), key=lambda item: -abs(item[1].value) if math.isfinite(item[1].value) else 0.0)
    for name, step in known[:MOST_STEPS]:
        yield f"{name} alone: {'nothing' if step.value == 0 and name not in first.bounds else first.effect_text(name)}"
    if others := len(known[MOST_STEPS:]):
        yield f"... and {others} more below"
    if not math.isfinite(first.interaction):
        yield "not all parts have a value: see the tables"
    elif abs(first.interaction) >= 0.01 * abs(first.change.value) and (beyond := _beyond(first)):
        yield f"all together beyond the sum: {beyond}"


def _beyond(own: QuantityDifference) -> str:
    """What all changes do together beyond the sum; empty: nothing that is shown, or not known."""
    change = PairedChange(own.interaction, math.inf)
    return change.text(partial(value_text, own.column)) if math.isfinite(change.value) and own.is_shown(change) else ""


def _labelled(label: str, texts: Sequence[str]) -> list[str]:
    """A line per text, the label beside the first."""
    return [f"{label if not i else '':{LABEL}}{_cut(text)}" for i, text in enumerate(texts)]


def _cut(text: str) -> str:
    line = one_line(text, 400)
    return line if len(line) <= WIDTH - LABEL else f"{line[: WIDTH - LABEL - 3].rstrip()}..."
