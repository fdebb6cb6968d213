"""A comparison as a claim sees it: runs by the name that a sentence gives their strategy, and checkpoints by theirs.

A sentence is a text of one or several templates.  A template has a pattern, the precondition under which it may be
printed, and what its words claim.  Both are evaluated on data (tables, journals, answers of Flink), and never on what
chose the sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Any

from sim.results.formats import count_text, ms_text
from sim.results.journal import EventType
from sim.studies.comparison import Comparison

CHECKPOINT = (
    r"(?:[Cc]heckpoint|(?P<savepoint>[Ss]avepoint)) (?P<id>\d+)(?: of job (?P<job>\d+))?"
    r"(?: of replication (?P<replication>\d+))?(?: \((?P<of>NAME)\))?"
)
UNITS = {
    "ms": 1.0,
    "s": 1e3,
    "min": 6e4,
    "h": 3.6e6,
    "d": 8.64e7,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
}


@dataclass(frozen=True)
class Printed:
    """What was printed about `comparison`."""

    comparison: Comparison
    group: str = ""  # of several workloads the one that the sentences are about, as their first words say

    @property
    def lines(self):
        return [line for line in self.comparison.strategies if not self.group or line.group == self.group]

    @property
    def names(self):
        return [line.short_name for line in self.lines]

    @property
    def names_and_labels(self):
        """Verdicts have names of strategies, remarks their labels."""
        return [*dict.fromkeys([*self.names, *self.comparison.results])]

    @cached_property
    def all_runs(self):
        return [self.comparison.results[line.label] for line in self.lines]

    def runs(self, name):
        """The replications of a strategy; None: of the only one."""
        if name is None:
            (only,) = self.all_runs
            return only
        return self.all_runs[[called.lower() for called in self.names].index(name.lower())]

    def listed(self, names):
        """``a, b and c``; None: all."""
        known = "|".join(sorted(map(re.escape, self.names), key=len, reverse=True))
        return [self.runs(name) for name in (re.findall(known, names, re.IGNORECASE) if names else self.names)]

    def about(self, match):
        """The runs of the strategies whose labels a remark begins with; of none: of all."""
        results, rest, found = self.comparison.results, match["names"], []
        if rest is None:
            return list(results.values())
        for label in sorted(results, key=len, reverse=True):
            if re.search(own := rf"(?<![^ ]){re.escape(label)}(?=$|, | and )", rest):
                rest = re.sub(own, "", rest)
                found.append(results[label])
        return found

    def run_of(self, match):
        return self.runs(match["of"])[int(match["replication"] or 0)]

    def row(self, match):
        """The row of the checkpoint that a sentence names."""
        return _of_checkpoint(self.run_of(match).checkpoints, match).iloc[0]

    def lasted_ms(self, match):
        """How long the named checkpoint took, or has been under way."""
        row = self.row(match)
        ended_ms = self.run_of(match).ended_ns / 1e6
        return ended_ms - row["trigger_timestamp"] if row["status"] == "IN_PROGRESS" else row["end_to_end_duration"]

    def parts(self, match):
        """The named checkpoint's critical path until the last acknowledgement."""
        rows = _of_checkpoint(self.run_of(match).path, match)
        return rows[~rows["acknowledged"].astype(bool)].to_dict("records")

    def warmup_ms(self, run):
        strategies = self.comparison.replications.values()
        return next(own.warm_up.ns / 1e6 for own in strategies if any(run is other for other in own.results))

    def periodic(self, runs, *statuses, uploads=False):
        """Periodic checkpoints after the warm-up, of these statuses or all.  `uploads`: also those that upload everything at first."""
        rows = [
            row
            for run in runs
            for row in run.checkpoints.to_dict("records")
            if row["trigger_timestamp"] >= self.warmup_ms(run)
            and not row["savepointFormat"]
            and (uploads or (row["id"], row.get("x_job", 0)) not in first_uploads(run))
        ]
        return [row for row in rows if not statuses or row["status"] in statuses]

    def durations(self, runs):
        return sorted(row["end_to_end_duration"] for row in self.periodic(runs, "COMPLETED"))

    def medians(self):
        """Of strategies whose checkpoints neither failed nor hung, and whose jobs live."""
        sound = {
            name: self.durations(runs)
            for name, runs in zip(self.names, self.all_runs, strict=True)
            if not self.failures(runs) and not any(run.job_status.startswith(("FAILED", "RESTARTING")) for run in runs)
        }
        return {name: median(durations) for name, durations in sound.items() if durations}

    def failures(self, runs):
        """Reasons of checkpoints that failed by themselves."""
        return Counter(
            row["failure_message"] for row in self.periodic(runs, "FAILED") if row["failure_message"] not in CUT_SHORT
        )


CUT_SHORT = {
    "CHECKPOINT_COORDINATOR_SHUTDOWN",
    "CHECKPOINT_COORDINATOR_SUSPEND",
    "JOB_FAILOVER_REGION",
    "CHECKPOINT_DECLINED_TASK_CLOSING",
}
"""Reasons of Flink for checkpoints that were under way when their job, or a task of it, ended or restarted."""


def _of_checkpoint(rows, match):
    rows = rows[rows["id"] == int(match["id"])]
    return rows[rows["x_job"] == int(match["job"])] if match["job"] else rows


def first_uploads(run):
    """(id, job) of checkpoints before the first acknowledged one that write all they refer to, and later ones less than half of it."""
    rows = [
        row | {name: row[name] - row["persisted_data"] for name in ("checkpointed_size", "state_size")}
        for row in run.checkpoints.sort_values("trigger_timestamp", kind="stable").to_dict("records")
        if row["status"] == "COMPLETED" and not row["savepointFormat"]
    ]
    own = [row for row in rows if row.get("x_job", 0) == rows[0].get("x_job", 0)]
    ended = rows[0]["trigger_timestamp"] + rows[0]["end_to_end_duration"] if rows else 0
    first = [
        row
        for row in own
        if 0 < row["checkpointed_size"] >= 0.9 * row["state_size"] and row["trigger_timestamp"] < ended
    ]
    usual = [row for row in own if row not in first] or [row for row in rows if row not in first]
    written, referred = (median([row[name] for row in usual] or [0]) for name in ("checkpointed_size", "state_size"))
    return {
        (row["id"], row.get("x_job", 0))
        for row in first
        if usual and min(row["checkpointed_size"], referred) > 2 * written
    }


def moments_ms(run, *event_types):
    return [entry.time_ns / 1e6 for entry in run.journal if entry.event_type in event_types]


def end_of_data_ns(run):
    """When the last task came to its end of data for the last time; None: some task never did."""
    ends = {entry.task: entry.time_ns for entry in run.journal if entry.event_type is EventType.END_OF_DATA}
    tasks = {entry.task for entry in run.journal if entry.event_type is EventType.TASK_FINISHED}
    return max(ends.values()) if ends and tasks <= set(ends) else None


def mean_end_ms(runs):
    return fmean(run.ended_ns / 1e6 for run in runs)


def is_noise(one, other):
    """A hundredth more than the program, for values that are rounded or pooled otherwise."""
    return abs(one - other) <= 1.01 * max(100.0, 0.1 * max(one, other))


def same_ms(printed, *candidates):
    return printed in {ms_text(value) for value in candidates}


def same_count(printed, *candidates):
    return printed in {count_text(value) for value in candidates}


def number(text):
    """``3 s`` in ms, ``2 MB`` in bytes, ``4.1k`` and ``4.1k/s`` as they are."""
    value, _, unit = text.removesuffix("/s").partition(" ")
    return float(value.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(value[-1], 1) * UNITS.get(unit, 1)


Claim = Callable[[Any, "re.Match[str]"], bool]


@dataclass(frozen=True, slots=True)
class Template:
    """One sentence or clause as printed, when it may be printed, and what its words mean."""

    name: str
    pattern: str  # NAME: of a strategy; MS: a duration; COUNT, SIZE
    precondition: Claim
    claim: Claim

    def match(self, text, at, names):
        name = "(?:" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + ")"
        pattern = (
            self.pattern.replace("CHECKPOINT", CHECKPOINT)
            .replace("NAMES", rf"{name}(?:(?:, | and ){name})*")
            .replace("NAME", name)
        )
        for word, unit in (("MS", " (?:ms|s|min|h|d)"), ("COUNT", "[kMG]?"), ("SIZE", " [kMGT]?B")):
            pattern = pattern.replace(word, rf"\d+(?:\.\d+)?{unit}")
        return re.compile(pattern, re.IGNORECASE).match(text, at)

    def holds(self, told, match):
        return bool(self.precondition(told, match) and self.claim(told, match))


BETWEEN = re.compile(r"[.;:]? |[.:]$|, because ")


def split(text, names, templates):
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


def false_sentences(told, texts, names, templates):
    """Sentences whose claim does not hold or that have none; and the templates that were exercised."""
    found, exercised = [], set()
    for text in texts:
        try:
            for template, match in split(text, names, templates):
                exercised.add(template.name)
                if not template.holds(told, match):
                    found.append(f"{template.name}: {match[0]}")
        except ValueError as unknown:
            found.append(str(unknown))
    return found, exercised


def check(cases, templates):
    """False sentences by case, and by template how many cases exercised it.  `cases`: (name, what is told, texts)."""
    found, exercised = {}, Counter()
    for name, told, texts in cases:
        wrong, used = false_sentences(told, texts, names_of(told), templates)
        found |= {name: wrong} if wrong else {}
        exercised.update(used)
    return found, exercised


def weak_sentences(told, texts, templates, changed, skipped=()):
    """(how many changed sentences were tried, those for which the claim of their template holds all the same)"""
    count, weak = 0, []
    for text in texts:
        for template, match in split(text, names_of(told), templates):
            for wrong in changed(match[0]) if template.name not in skipped and template.holds(told, match) else ():
                count += 1
                again = template.match(wrong, 0, names_of(told))
                if again and again.end() == len(wrong) and template.holds(told, again):
                    weak.append((template.name, wrong))
    return count, weak


def names_of(told):
    """The strategies that sentences may name."""
    return getattr(told, "names_and_labels", ["-"])


def always(told, match):
    return True
