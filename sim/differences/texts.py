"""Differences as texts: a screen of at most fifteen lines of eighty characters, and the tables below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


def verdict(found: InputDifferences, answer: Sequence[QuantityDifference]) -> str:
    """What the differences of inputs do to the answer, in a sentence."""
    if not found.changes and not found.renamed:
        return NOTHING
    first = leading(answer)
    if first is None:
        return f"{_counted(found)}, and no quantity surely changes."
    before, after = first.sides_text()
    text = f"{capitalised(first.title)}: {before} -> {after} ({first.change_text()})"
    if len(found.steps) == 1:
        return f"{text}, from {found.steps[0].name}."
    largest = first.largest
    if not largest:
        return f"{text}: no input alone changes it, only all together."
    return f"{text}; {largest} alone: {first.effect_text(first.steps[largest])}."


def screen(found: InputDifferences, answer: Sequence[QuantityDifference], notes: Sequence[str]) -> str:
    """The verdict, the inputs that matter most, the quantities that lead, and what accounts for the first of them."""
    first = leading(answer)
    lines = wrap(verdict(found, answer), WIDTH)
    if not found.changes and not found.renamed:
        return "\n".join(lines)
    listed = _by_effect(found, first)[:MOST_INPUTS]
    left = len(found.changes) - len(listed)
    inputs = [change.sentence() for change in listed]
    heading = _counted(found) + (", those that matter first" if left else "")
    lines += _labelled("inputs", [heading, *_vertices(found), *inputs, *([f"... and {left} more below"] if left else [])])
    lines += _labelled("answer", list(_leading_lines(answer)))
    if first is not None and len(found.steps) > 1:
        lines += _labelled("because", list(_parts(first)))
    lines += _labelled("runs", [" ".join(notes[:1])] if notes else [])
    return "\n".join(lines[:LINES])


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
        rows = [[own.title, *own.sides_text(), own.change_text(), own.relative_text()] for own in apart]
        made.append(TextTable("Quantities, mean over the same seeds", ["quantity", "A", "B", "B - A", "share"], rows))
    if apart and len(found.steps) > 1:
        rows = [
            [own.title, name, own.effect_text(step)]
            for own in apart
            for name, step in (*own.steps.items(), ("all beyond their sum", PairedChange(own.interaction, math.inf)))
            if own.is_shown(step)
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
        before, after = own.sides_text()
        yield f"{own.title}: {before}" + (", the same" if own.is_same else f" -> {after} ({own.change_text()})")


def _parts(first: QuantityDifference) -> Iterator[str]:
    """``load (3 options) +3.1 s``, the largest first, and what all do together."""
    known = sorted(first.steps.items(), key=lambda item: -abs(item[1].value) if math.isfinite(item[1].value) else 0.0)
    for name, step in known[:MOST_STEPS]:
        yield f"{name} alone: {first.effect_text(step) if step.value else 'nothing'}"
    if not math.isfinite(first.interaction):
        yield "not all parts have a value: see the tables"
    elif abs(first.interaction) >= 0.01 * abs(first.change.value):
        sign = "+" if first.interaction > 0 else "-"
        yield f"all together beyond the sum: {sign}{value_text(first.column, abs(first.interaction))}"


def _labelled(label: str, texts: Sequence[str]) -> list[str]:
    """A line per text, the label beside the first."""
    return [f"{label if not i else '':{LABEL}}{_cut(text)}" for i, text in enumerate(texts)]


def _cut(text: str) -> str:
    line = one_line(text, 400)
    return line if len(line) <= WIDTH - LABEL else f"{line[: WIDTH - LABEL - 3].rstrip()}..."
