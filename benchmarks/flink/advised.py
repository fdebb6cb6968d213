"""A real job is imported; `advise` is asked for a limit that today's setting breaks; what it prints is set; the limit is kept or not.

Nothing is chosen by hand: the keys are those of the patch that the advice keeps (advised.yaml), applied to the job's
own options.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from benchmarks.flink.cluster import Cluster
from benchmarks.flink.measured import measured
from benchmarks.flink.switch import Experiment, Report
from sim.advice.answer import ADVISED
from sim.advice.situation import FOLDER
from sim.app.verbs.advise import advise
from sim.app.verbs.options import AdviseOptions
from sim.jobs.source.fetching import fetch
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import save
from sim.results.formats import ms_text

__all__ = ["Kept", "carry_out", "patched", "text"]

ROUND_MS = 10.0
LIMIT_SHARE = 0.5
"""The limit, as a share of the longest checkpoint under today's setting."""
RECOVERY = "30 s"
BUDGET, WITHIN = "60 s", "4 min"


@dataclass(frozen=True, slots=True)
class Kept:
    """What was asked, what was answered, and what the real job then did; durations [ms]."""

    limit_ms: float
    today: pd.Series  # durations of checkpoints under today's setting
    verdict: str
    keys: Mapping[str, str | None]  # of Flink; None: taken out
    unpatched: tuple[str, ...]  # changes that no key of Flink makes
    predicted: Mapping[str, Any] | None  # of the advised setting; None: nothing fits
    after: pd.Series  # durations under the advised setting; empty: it was not carried out

    @property
    def carried_out(self) -> bool:
        return self.predicted is not None and not self.unpatched

    @property
    def kept(self) -> bool:
        return self.carried_out and len(self.after) > 0 and bool(self.after.max() <= self.limit_ms)


def carry_out(experiment: Experiment, *, report: Report = print, nice: int = 0, watch_s: float | None = None) -> Kept:
    """Import, ask, set, watch.  FlinkError, MissingDependencyError: one line.

    `watch_s`: of the advised setting (default: as long as today's is watched).
    """
    first = experiment.protocols[0]
    options = experiment.options | first.options
    with (
        TemporaryDirectory(prefix="ckptsim-advised-") as folder,
        Cluster(
            task_managers=experiment.task_managers, slots=experiment.slots, options=experiment.cluster, nice=nice
        ) as flink,
    ):
        job = flink.submit(experiment.job, options)
        flink.await_running(job)
        report(f"{first.name}: the real job runs at {flink.url}")
        snapshot, today = _watched(flink, job, experiment.settle_s, experiment.watch_s)
        save(snapshot, Path(folder) / "answers")
        savepoint = flink.stop(job)
        limit_ms = max(round(today.max() * LIMIT_SHARE / ROUND_MS), 1) * ROUND_MS
        report(
            f"imported; the longest of {len(today)} checkpoints took {ms_text(today.max())}: advice for {ms_text(limit_ms)}"
        )
        request = AdviseOptions(
            folder=Path(folder) / "advice",
            p99=f"{limit_ms:.0f} ms",
            recovery=RECOVERY,
            failure="task",
            budget=BUDGET,
            within=WITHIN,
            horizon=f"{3 * experiment.watch_s:.0f} s",
        )
        advised = advise(Path(folder) / "answers", changes=_answers(experiment), **request)
        unpatched = tuple(f"{what}: {value}" for what, value in advised.facts.get("beside_flinks_keys", {}).items())
        keys = _keys(Path(folder) / "advice" / ADVISED)
        found = Kept(
            limit_ms,
            today,
            advised.verdict.splitlines()[0],
            keys,
            unpatched,
            advised.facts["advised"],
            pd.Series(dtype=float),
        )
        if not found.carried_out:
            return found
        report(f"{found.verdict}: set on the real job")
        log = {FOLDER: flink.storage("log")}
        given = {key: None if value is None else log.get(value, value) for key, value in keys.items()}
        job = flink.submit(experiment.job, patched(options, given), restore=savepoint)
        flink.await_running(job)
        _, after = _watched(flink, job, experiment.settle_s, watch_s or experiment.watch_s)
        return replace(found, after=after)


def patched(options: Mapping[str, str], keys: Mapping[str, str | None]) -> dict[str, str]:
    """The options of a job with a patch applied; None takes a key out."""
    return {key: value for key, value in (dict(options) | dict(keys)).items() if value is not None}


def text(found: Kept) -> str:
    """The outcome, as lines that fit a ticket."""
    lines = [
        f"Limit: {ms_text(found.limit_ms)} for the 99 % quantile of checkpoints, {LIMIT_SHARE:.0%} of today's longest.",
        f"Advice: {found.verdict}",
        *(f"  {key}: {'(taken out)' if value is None else value}" for key, value in found.keys.items()),
        f"Today:      {_durations(found.today)}",
    ]
    if found.predicted is None:
        return "\n".join([*lines, "Nothing was advised, so nothing was carried out."])
    lines.append(
        f"Predicted:  p50 {ms_text(found.predicted['checkpoint_p50_ms'])}, p99 {ms_text(found.predicted['checkpoint_ms'])}"
    )
    if found.unpatched:
        return "\n".join([*lines, f"Not carried out: no key of Flink says {'; '.join(found.unpatched)}."])
    lines.append(f"Measured:   {_durations(found.after)}")
    if found.after.empty:
        return "\n".join([*lines, "Whether the limit is kept is not known."])
    return "\n".join([*lines, f"The limit is {'kept' if found.kept else 'BROKEN'}."])


def _durations(values: pd.Series) -> str:
    """Median, and the longest of so many."""
    if values.empty:
        return "no checkpoint completed"
    return f"p50 {ms_text(values.median())}, longest of {len(values)}: {ms_text(values.max())}"


def _watched(flink: Cluster, job: str, settle_s: float, watch_s: float) -> tuple[Any, pd.Series]:
    time.sleep(settle_s)
    begun_ms = time.time_ns() // 10**6
    snapshot = fetch(flink.url, job, sample_s=watch_s)
    table = measured(RestJob(snapshot), since_ms=begun_ms)
    return snapshot, table[table["quantity"] == "end_to_end_duration"]["value"]


def _answers(experiment: Experiment) -> list[str]:
    """What its author answers, as changes of the imported job."""
    return [
        f"job.{vertex}.{key}={value}"
        for vertex, answers in experiment.answers.items()
        for key, value in answers.items()
    ]


def _keys(file: Path) -> dict[str, str | None]:
    """The keys of a patch that are Flink's own; nothing was advised: none."""
    if not file.exists():
        return {}
    keys = YAML(typ="safe").load(file.read_text())["spec"]["flinkConfiguration"]
    return {key: value for key, value in keys.items() if not key.startswith("kubernetes.operator.")}
