"""Predictions that were written down before the run they are about, beside the run, and what is predicted of it today.

`python -m benchmarks.blind` (`make blind`) writes the table of docs/truth.md, `--again` predicts every run anew before that.  Each family
of recordings in tests/data/users-jobs was imported from its aligned run alone.  `blind/FAMILY.json` is what the program
of that commit then said of the other runs, which had not begun.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.lab.envelope_build import replaced
from benchmarks.lab.settings import RunName
from sim.jobs.evidence.prediction import observed, predicted
from sim.jobs.reading import infer, read_any, to_recording
from sim.jobs.source.saved import read_saved
from sim.model.job import Job
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import Scenario
from sim.model.schema.study import loads
from sim.results.formats import bytes_text, ms_text, per_second_text
from sim.runtime.simulate import simulate

__all__ = ["FOLDER", "PAGE", "Run", "families", "main", "predict", "runs", "simulated", "table", "values_of"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "truth.md"
FOLDER = ROOT / "tests" / "data" / "users-jobs"
BEGIN, END = "<!-- blind: written by `make blind` -->", "<!-- /blind -->"
IMPORTED = "aligned"
SEEDS = (1, 2, 3, 4, 5)
Summary = Mapping[str, Mapping[str, Sequence[float]]]
"""Quantity -> vertex -> p50 and p90 over the checkpoints of a run."""

QUANTITIES = {
    "end to end, p50": ("end_to_end_duration", 0, ms_text, 0.15),
    "end to end, p90": ("end_to_end_duration", 1, ms_text, 0.30),
    "in flight": ("persisted_data", 0, bytes_text, 0.15),
    "written": ("checkpointed_size", 0, bytes_text, 0.15),
    "full size": ("state_size", 0, bytes_text, 0.15),
    "sync": ("sync_duration", 0, ms_text, 0.25),
    "async": ("async_duration", 0, ms_text, 0.25),
    "records in": ("numRecordsInPerSecond", 0, per_second_text, 0.05),
}
"""What a person reads -> its observations, quantile, text, and the error that is allowed in the median over runs.

Of vertices the largest value counts, in the run and in its prediction.
"""
APART = 0.15
"""Repetitions on a busy machine differ by as much."""
ORDERED = ("end to end, p50", "end to end, p90", "in flight")


@dataclass(frozen=True, slots=True)
class Run:
    """One recording, and both predictions of it."""

    family: str
    kind: str
    observed: Mapping[str, float]
    blind: Mapping[str, float]
    again: Mapping[str, float]
    started_ms: int = 0

    @property
    def is_imported(self) -> bool:
        return self.kind == IMPORTED


def families(folder: Path = FOLDER) -> list[str]:
    """In the order of their numbers."""
    names = [path.stem for path in (folder / "blind").glob("*.json") if path.stem != "again"]
    return sorted(names, key=lambda name: int(re.sub(r"\D.*", "", name[1:])))


def runs(folder: Path = FOLDER) -> list[Run]:
    again = json.loads((folder / "blind" / "again.json").read_text(encoding="utf-8"))["families"]
    found = []
    for family in families(folder):
        blind = json.loads((folder / "blind" / f"{family}.json").read_text(encoding="utf-8"))["kinds"]
        for kind in blind:
            path = folder / f"{family}-{kind}.zip"
            if path.exists():
                recording = read_any(path)
                sides = (summary_of(observed(recording)), blind[kind], again[family][kind])
                started_ms = min(point.trigger_timestamp for point in recording.checkpoints.list)
                found.append(Run(family, kind, *(values_of(side) for side in sides), started_ms))
    return found


def summary_of(observations: pd.DataFrame) -> Summary:
    """What is kept of a run; its first checkpoint met a job that was still starting."""
    names = {quantity for quantity, *_ in QUANTITIES.values()}
    rows = observations[~observations["first"] & observations["quantity"].isin(names)]
    found: dict[str, dict[str, Sequence[float]]] = {}
    for (quantity, vertex), values in rows.groupby(["quantity", "vertex"], sort=False)["value"]:
        found.setdefault(str(quantity), {})[str(vertex)] = [
            float(f"{values.quantile(share):.4g}") for share in (0.5, 0.9)
        ]
    return found


def values_of(summary: Summary) -> dict[str, float]:
    """One number per quantity that the run has."""
    return {
        name: max(values[level] for values in summary[quantity].values())
        for name, (quantity, level, _, _) in QUANTITIES.items()
        if quantity in summary
    }


def predict(family: str, folder: Path = FOLDER) -> dict[str, Summary]:
    """What is to be expected under each kind of barriers that was recorded, from the aligned run alone.

    Each is simulated for as long as it was watched: state grows meanwhile.  (Blind predictions are of 100 s.)
    """
    source = read_saved(folder / f"{family}-{IMPORTED}.zip")
    imported = infer(source)
    scenario = loads(imported.text, name=family).scenarios[0]
    lengths = {
        path.stem.removeprefix(f"{family}-"): round(1000 * to_recording(read_saved(path)).duration_s)
        for path in folder.glob(f"{family}-*.zip")
    }
    return {
        kind: summary_of(pd.concat(_simulated(scenario, kind, lengths[kind]), ignore_index=True))
        for kind in sorted(lengths)
    }


def _simulated(scenario: Scenario, kind: str, length_ms: int) -> Iterator[pd.DataFrame]:
    interruptible = kind == "interruptible"
    options = replace(scenario.checkpoint, barriers=RunName("", kind).barriers, interruptible_timers=interruptible)
    scenario = replace(scenario, job=_yielding(scenario.job)) if interruptible else scenario
    return simulated(replace(scenario, checkpoint=options), SEEDS, length_ms)


def simulated(scenario: Scenario, seeds: Sequence[int], length_ms: int) -> Iterator[pd.DataFrame]:
    """What runs of that length show, one of each seed."""
    for seed in seeds:
        run = replace(scenario.run, seed=seed, duration_ns=length_ms * 10**6)
        yield predicted(simulate(replace(scenario, run=run), check=False))


def _yielding(job: Job) -> Job:
    """What no import can tell, and its author knows: timers are of event time, and their function lets barriers pass if its job does."""
    return replace(
        job,
        vertices=tuple(
            vertex if vertex.window is None else replace(vertex, window=replace(vertex.window, api="sql", time="event"))
            for vertex in job.vertices
        ),
    )


def error(name: str, measured: float, expected: float) -> float:
    """Relative; none below the noise of a machine."""
    difference = abs(expected - measured)
    if name_is_duration(name) and difference < NEGLIGIBLE_MS:
        return 0.0
    return difference / measured if measured else math.inf if difference else 0.0


def name_is_duration(name: str) -> bool:
    return QUANTITIES[name][2] is ms_text


def table(found: Sequence[Run], blind_commit: str, again_commit: str) -> str:
    """Markdown: a row per run, then how far off all of them are."""
    lines = [
        f"Observed, then predicted blind ({blind_commit}), then predicted again ({again_commit}):",
        "",
        f"| run | {' | '.join(QUANTITIES)} |",
        f"| --- |{' --- |' * len(QUANTITIES)}",
    ]
    lines += [f"| {run.family} {run.kind} | {' | '.join(_cell(run, name) for name in QUANTITIES)} |" for run in found]
    judged = [run for run in found if not run.is_imported]
    lines += ["", f"Of the {len(judged)} runs that nobody had seen, median error over runs (90 % quantile):", ""]
    lines += ["| quantity | limit | blind | again |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {name} | {limit:.0%} | {_errors(judged, name, 'blind')} | {_errors(judged, name, 'again')} |"
        for name, (*_, limit) in QUANTITIES.items()
    ]
    orders = [_orderings(found, side) for side in ("blind", "again")]
    lines += [
        "",
        "Orderings of two runs of one family that differ by more than 15 % and 60 ms: "
        + ", ".join(
            f"{right} of {total} right {side}" for side, (right, total) in zip(("blind", "again"), orders, strict=True)
        )
        + ".",
    ]
    return "\n".join(lines)


def _cell(run: Run, name: str) -> str:
    """'2.1 s: 45 ms, 1.9 s'; nothing where both sides have nothing."""
    sides = [side.get(name, 0.0) for side in (run.observed, run.blind, run.again)]
    text = QUANTITIES[name][2]
    return f"{text(sides[0])}: {text(sides[1])}, {text(sides[2])}" if any(sides) else "–"


def _errors(found: Sequence[Run], name: str, side: str) -> str:
    errors = [
        error(name, run.observed[name], getattr(run, side).get(name, 0.0)) for run in found if run.observed.get(name)
    ]
    if not errors:
        return "–"
    return f"{statistics.median(errors):.0%} ({pd.Series(errors).quantile(0.9):.0%})"


def _orderings(found: Sequence[Run], side: str) -> tuple[int, int]:
    """(right, of how many): pairs of one family whose quantities lie apart by more than repetitions of busy machines."""
    right = total = 0
    for this, that in combinations(found, 2):
        for name in ORDERED:
            values = this.observed.get(name, 0.0), that.observed.get(name, 0.0)
            if this.family != that.family or error(name, max(values), min(values)) <= APART:
                continue
            expected = getattr(this, side).get(name, 0.0) - getattr(that, side).get(name, 0.0)
            total += 1
            right += (values[0] - values[1]) * expected > 0
    return right, total


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blind", description=__doc__)
    parser.add_argument(
        "--again", nargs="*", metavar="FAMILY", help="predict these families, or all, with the program as it is"
    )
    chosen = parser.parse_args(arguments)
    page = FOLDER / "blind" / "again.json"
    if chosen.again is not None:
        known = json.loads(page.read_text(encoding="utf-8"))["families"] if chosen.again else {}
        found = known | {family: predict(family) for family in chosen.again or families()}
        page.write_text(json.dumps({"commit": _commit(), "families": found}, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), block(runs())), encoding="utf-8")


def block(found: Sequence[Run]) -> str:
    """What docs/truth.md says of blind predictions, from the files alone."""
    commits: set[Any] = {
        json.loads((FOLDER / "blind" / f"{name}.json").read_text(encoding="utf-8"))["commit"] for name in families()
    }
    again = json.loads((FOLDER / "blind" / "again.json").read_text(encoding="utf-8"))["commit"]
    return "\n".join([BEGIN, table(found, ", ".join(sorted(commits)), again), END])


def _commit() -> str:
    return subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
