"""The run of a setting with the events in the file: faults, savepoints and rescales, which trials leave out.

After the search the advised setting and today's run once as `ckptsim run` runs the file.  A limit that the advised one breaks
there is not said to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sim.advice.cautions import restart_attempts_caution
from sim.advice.judgement import FileRun, rows_of
from sim.advice.levers import PATIENT
from sim.advice.trials import FILE, Trial
from sim.model.faults import RESTARTS, kind_of_fault
from sim.model.text import listed
from sim.model.units import SECOND, format_duration
from sim.results.formats import ms_text
from sim.results.sweep_answers import DEAD

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Limits, Setting
    from sim.model.scenario import Scenario
    from sim.studies.sweeps.design import Point

MIN_CHECKPOINTS_OF_P99 = 100
"""With fewer checkpoints the longest one stands for p99."""


def advised_point(search: CandidateSearch, setting: Setting) -> Point:
    """Return the changes of the job that come with a setting, without those of trials.

    If the restarts are used up soon, more of them come with it, but not with today's setting if that is replaced.
    """
    point = {**search.candidate_of(setting.name).point, **search.own_keys(setting)}
    advised = search.bench.load({**search.bench.common, **point})
    is_replaced = search.replaced is not None and search.replaced.name == setting.name
    if not is_replaced and restart_attempts_caution(advised, search.mtbf_s, search.bench.failure):
        limit = RESTARTS[advised.restart.strategy].limit
        point[f"restart.{limit}"] = PATIENT[limit][1]
    return point


def file_trial(search: CandidateSearch, setting: Setting) -> Trial | None:
    """Return the trial of a setting with the events in the file, or None if other trials leave nothing out."""
    bench = search.bench
    point = {**bench.as_written, **advised_point(search, setting)}
    scenario = bench.load(point)
    if not (scenario.faults or scenario.actions or scenario.rescale):
        return None
    latest_ns = max((at_ns for fault in scenario.faults for at_ns in fault.when.at_ns), default=0)
    until_ns = max(scenario.run.duration_ns, latest_ns + bench.patience_ns)
    return Trial("", search.candidate_of(setting.name), FILE, {**point, "run.duration": format_duration(until_ns)})


def unjudged_event(scenario: Scenario, limits: Limits) -> str:
    """Return an event of the file of which no run shows whether a limit is kept: a long savepoint, or a backlog; else ""."""
    state, interval_ns = scenario.checkpoint.state, scenario.checkpoint.interval_ns
    sizes = [vertex.state.bytes / vertex.parallelism for vertex in scenario.job.vertices if vertex.state is not None]
    rate = state.savepoint_bytes_per_second
    if (
        limits.recovery_ms is not None
        and rate
        and interval_ns
        and any(action.format == "canonical" and not action.stop for action in scenario.actions)
        and max(sizes, default=0) * SECOND > rate * interval_ns
    ):
        return "recovery from a failure during its savepoint, in which no checkpoint is triggered,"
    sources = (vertex.source for vertex in scenario.job.vertices if vertex.source is not None)
    if limits.loss is not None and any(source.backlog is not None and source.backlog.records for source in sources):
        return "throughput loss while a backlog is read"
    return ""


def run_file(search: CandidateSearch, setting: Setting) -> None:
    """Run a setting with the events in the file, and store the result, unless there is nothing to do, or budget or time do not cover it."""
    trial = file_trial(search, setting)
    if trial is None or setting.name in search.file_runs:
        return
    rows = search.run_others([trial], 1, 1.0)
    scenario = search.bench.load(trial.point)
    if rows is None:
        length = ms_text(scenario.run.duration_ns / 1e6)
        search.skip(f"the file as it is ({length}) with {setting.protocol}, every {setting.interval}")
        return
    for row in rows_of(rows, setting.name, FILE).to_dict("records"):
        search.file_runs[setting.name] = file_run(
            scenario, search.limits, row, unlimited_rate=setting.per_second * search.unlimited
        )


def file_run(scenario: Scenario, limits: Limits, row: Mapping[Any, Any], *, unlimited_rate: float = 0.0) -> FileRun:
    """Return what the row of the run shows.

    While the job recovers, checkpoints and output wait for the recovery, which has its own limit: a run with failures shows
    neither.  `unlimited_rate`: throughput of a job whose sources always have more records, and so never catches up.
    """
    values: dict[str, float] = {}
    unsure, event = [], _events(scenario)
    ends = f"{row['job_status']} ({event})" if str(row.get("job_status", "")).startswith(DEAD) else ""
    restarts = event if "checkpoints (" in str(row.get("failure_kinds", "")) else ""
    bounds = str(row.get("unfinished", "")).split()
    if row.get("failures", 0):
        at_ns = [at_ns for fault in scenario.faults for at_ns in fault.when.at_ns]
        is_pooled = len(at_ns) > 1 or any(fault.when.every for fault in scenario.faults)
        all_ms = 1e3 * row.get("disturbed_share", 0.0) * row.get("ended_s", 0.0)
        if unlimited_rate:
            values["recovery_ms"] = row["downtime_ms"] + 1e3 * row["replayed_records"] / unlimited_rate
        else:
            values["recovery_ms"] = row["caught_up_ms"]
            unsure += ["recovery_ms"] * ("caught_up_ms" in bounds)
        if is_pooled:
            event = f"median, {event}"
            unsure += ["recovery_ms"] * (all_ms > (limits.recovery_ms or math.inf))
    else:
        few = row["completed"] < MIN_CHECKPOINTS_OF_P99
        of_checkpoints = "end_to_end_max_ms" if few else "end_to_end_p99_ms"
        for column, own in (("checkpoint_ms", of_checkpoints), ("visible_ms", "visible_p99_ms")):
            if not math.isnan(row[own]):
                values[column] = row[own]
                unsure += [column] * (own in bounds)
    return FileRun(values, event, tuple(dict.fromkeys(unsure)), restarts, ends)


def _events(scenario: Scenario) -> str:
    """Return the events of the file, e.g. ``a storage outage at 3.3 min``."""
    found = [(kind_of_fault(fault.what), fault.when.at_ns) for fault in scenario.faults]
    found += [(f"a {action.format} savepoint", (action.at_ns,)) for action in scenario.actions]
    found += [("a rescale", (rescale.at_ns,)) for rescale in scenario.rescale]
    if len(found) == 1 and len(found[0][1]) == 1:
        return f"{found[0][0]} at {ms_text(found[0][1][0] / 1e6)}"
    return listed(list(dict.fromkeys(kind for kind, _ in found)))
