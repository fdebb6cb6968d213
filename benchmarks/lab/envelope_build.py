"""Recordings -> the validity envelope: the file in `sim/jobs/evidence`, and the block in docs/truth.md that displays it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from sim.jobs.evidence.envelope import NUMBERS, Value, features, values_text
from sim.jobs.evidence.prediction import scenario_of, summary, truth
from sim.jobs.source.recorded_job import RecordedJob
from sim.model.quantities import QUANTITIES as OBSERVED
from sim.model.quantities import quantities

QUANTITIES = tuple(quantity.name for quantity in quantities(lambda quantity: quantity.in_envelope))
BEGIN, END = "<!-- envelope: written by `make envelope` -->", "<!-- /envelope -->"
_DIGITS = 4


class Judged(NamedTuple):
    """The contribution of a recording."""

    recording: str
    family: str
    features: Mapping[str, tuple[Value, ...]]
    table: pd.DataFrame  # its truth table


def judge(recording: RecordedJob, seeds: Iterable[int] = (1, 2, 3)) -> Judged:
    return Judged(recording.name, recording.family, features(scenario_of(recording)), truth(recording, seeds=seeds))


def document(judged: Sequence[Judged]) -> dict[str, Any]:
    """The document in the file."""
    families = sorted({recording.family for recording in judged})
    names = dict.fromkeys(name for recording in judged for name in recording.features)
    return {
        "recordings": len(judged),
        "overall": _errors(judged),
        "families": {
            family: _errors([recording for recording in judged if recording.family == family]) for family in families
        },
        "features": {
            name: {str(value): _errors(_with_value(judged, name, value)) for value in values}
            for name in names
            if (values := sorted({value for recording in judged for value in recording.features.get(name, ())}))
        },
    }


def _with_value(judged: Sequence[Judged], feature: str, value: Value) -> list[Judged]:
    return [recording for recording in judged if value in recording.features.get(feature, ())]


def _errors(judged: Sequence[Judged]) -> dict[str, Any]:
    """The number of recordings; for each quantity the number that have it, median and 90 % quantile."""
    table = pd.concat([recording.table for recording in judged], ignore_index=True)
    errors_of_quantity = summary(table).set_index("quantity")
    errors = {
        name: [int(row["recordings"]), round(float(row["median"]), _DIGITS), round(float(row["p90"]), _DIGITS)]
        for name, row in errors_of_quantity.reindex(
            [name for name in QUANTITIES if name in errors_of_quantity.index]
        ).iterrows()
        if not math.isnan(row["median"])
    }
    return {"recordings": len(judged), "errors": errors}


def envelope_text(made: Mapping[str, Any]) -> str:
    """The text of the file: a line per value of a feature."""

    def lines(values: Mapping[str, Any], indent: str) -> str:
        return ",\n".join(f"{indent}{json.dumps(name)}: {json.dumps(seen)}" for name, seen in values.items())

    groups = ",\n".join(
        f"    {json.dumps(name)}: {{\n{lines(values, '      ')}\n    }}" for name, values in made["features"].items()
    )
    return (
        f'{{\n  "recordings": {made["recordings"]},\n  "overall": {json.dumps(made["overall"])},\n'
        f'  "families": {{\n{lines(made["families"], "    ")}\n  }},\n  "features": {{\n{groups}\n  }}\n}}\n'
    )


def block(made: Mapping[str, Any]) -> str:
    """The block between `BEGIN` and `END`: errors per family, and the recorded values of each feature."""
    header = ["recordings of", *(OBSERVED[name].title for name in QUANTITIES)]
    rows = [
        [f"{family} ({evidence['recordings']})", *(_cell(evidence, name) for name in QUANTITIES)]
        for family, evidence in {**made["families"], "all": made["overall"]}.items()
    ]
    table = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    ranges = [
        f"* {name}: {values_text(name, map(int, values)) if name in NUMBERS else _counts(values)}"
        for name, values in made["features"].items()
    ]
    return "\n".join([BEGIN, *table, "", "Recorded values of each feature:", "", *ranges, END])


def _counts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} ({evidence['recordings']})" for value, evidence in values.items())


def replaced(page: str, new: str) -> str:
    """The text with its block replaced: what stands between the first line and the last line of the new one."""
    first, *_, last = new.splitlines()
    before, rest = page.split(first)
    return before + new + rest.split(last)[1]


def _cell(evidence: Mapping[str, Any], quantity: str) -> str:
    if (errors := evidence["errors"].get(quantity)) is None:
        return "–"
    _, at_median, at_p90 = errors
    return f"{_percent(at_median)}, {_percent(at_p90)}"


def _percent(share: float) -> str:
    return "0 %" if share < 0.0005 else f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"
