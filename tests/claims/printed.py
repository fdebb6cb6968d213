"""A comparison as a claim sees it: runs by the name that a sentence gives their strategy, and checkpoints by theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sim.analysis.number_texts import ms_text
from sim.comparison.comparison import Comparison
from sim.metrics.journal import Happening
from sim.runtime.run.result import Result

CHECKPOINT = r"[Cc]heckpoint (?P<id>\d+)(?: of job (?P<job>\d+))?(?: of replication (?P<replication>\d+))?(?: \((?P<of>NAME)\))?"


@dataclass(frozen=True, slots=True)
class Printed:
    """What was printed about `comparison`."""

    comparison: Comparison

    @property
    def names(self) -> list[str]:
        return [line.called for line in self.comparison.strategies]

    def runs(self, name: str | None) -> tuple[Result, ...]:
        """The replications of a strategy; None: of the only one."""
        called = {line.called.lower(): self.comparison.results[line.label] for line in self.comparison.strategies}
        if name is None:
            (only,) = called.values()
            return only
        return called[name.lower()]

    def listed(self, names: str | None) -> list[tuple[Result, ...]]:
        """``a, b and c``; None: all."""
        return [self.runs(name) for name in (re.split(r", | and ", names) if names else self.names)]

    def run_of(self, match: re.Match[str]) -> Result:
        return self.runs(match["of"])[int(match["replication"] or 0)]

    def row(self, match: re.Match[str]) -> Any:
        """The row of the checkpoint that a sentence names."""
        rows = self.run_of(match).checkpoints
        rows = rows[rows["id"] == int(match["id"])]
        return (rows[rows["x_job"] == int(match["job"])] if match["job"] else rows).iloc[0]

    def parts_ms(self, match: re.Match[str]) -> dict[str, float]:
        """Part of the named checkpoint's critical path -> what it takes until the last acknowledgement."""
        rows = self.run_of(match).path
        rows = rows[(rows["id"] == int(match["id"])) & ~rows["acknowledged"].astype(bool)]
        if match["job"]:
            rows = rows[rows["x_job"] == int(match["job"])]
        return {str(part): float(ns) / 1e6 for part, ns in rows.groupby("part")["duration"].sum().items()}


def warmup_ms(told: Printed, run: Result) -> float:
    return next(
        told.comparison.warm_ups[name].ns / 1e6 for name, runs in told.comparison.results.items() if any(run is own for own in runs)
    )


def periodic_rows(told: Printed, run: Result) -> Any:
    """Periodic checkpoints after the warm-up."""
    rows = run.checkpoints
    kept = (rows["trigger_timestamp"] >= warmup_ms(told, run)) & (rows["checkpoint_type"] != "SAVEPOINT")
    return rows[kept & ~rows["checkpoint_type"].str.startswith("SYNC")]


def end_of_data_ns(run: Result) -> int | None:
    """When the last task came to its end of data for the last time; None: some task never did."""
    ends = {entry.task: entry.time_ns for entry in run.journal if entry.happening is Happening.END_OF_DATA}
    tasks = {entry.task for entry in run.journal if entry.happening is Happening.TASK_FINISHED}
    return max(ends.values()) if ends and tasks <= set(ends) else None


def same_ms(printed: str, *candidates: float) -> bool:
    return printed in {ms_text(value) for value in candidates}


Claim = Callable[[Printed, "re.Match[str]"], bool]


@dataclass(frozen=True, slots=True)
class Template:
    """One sentence or clause as printed, when it may be printed, and what its words mean."""

    name: str
    pattern: str  # NAME: of a strategy; MS: a duration
    claim: Claim

    def match(self, text: str, at: int, names: list[str]) -> re.Match[str] | None:
        name = "(?:" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + ")"
        pattern = self.pattern.replace("CHECKPOINT", CHECKPOINT).replace("NAMES", rf"{name}(?:(?:, | and ){name})*").replace("NAME", name)
        for word, unit in (("MS", " (?:ms|s|min|h)"), ("COUNT", "[kMG]?"), ("SIZE", " [kMGT]?B")):
            pattern = pattern.replace(word, rf"\d+(?:\.\d+)?{unit}")
        return re.compile(pattern, re.IGNORECASE).match(text, at)


BETWEEN = re.compile(r"[.;:]? |\.$|, because ")


def split(text: str, names: list[str], templates: tuple[Template, ...]) -> Iterator[tuple[Template, re.Match[str]]]:
    """The sentences and clauses of a printed answer.  ValueError: one is not in the table of templates."""
    at = 0
    while at < len(text):
        found = [(template, match) for template in templates if (match := template.match(text, at, names))]
        if not found:
            raise ValueError(f"no template for: {text[at:]}")
        template, match = max(found, key=lambda item: item[1].end())
        yield template, match
        between = BETWEEN.match(text, match.end())
        at = between.end() if between else match.end()
        if not between and at < len(text):
            raise ValueError(f"{template.name} ends before: {text[at:]}")
