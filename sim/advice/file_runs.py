"""Runs of a setting in the job as its file is: with its faults, savepoints, rescales and backlogs, which trials leave out.

    file         the file with the setting, as `ckptsim run` runs it           recovery, checkpoints, visible output
    savepoint    the file, with a failure late in its first long savepoint     recovery
    backlog      the file without faults, until its backlog is read            throughput loss

After the search the advised setting and today's run once.  If the advised one breaks a limit there, levers against the
cause are tried, and other settings that may keep it, `MAX_FILE_RUNS` in all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sim.advice.constraints import RAISE_ATTEMPTS_BELOW_S, restart_attempts_cautions
from sim.advice.judgement import AT_LIMIT, FileRun, rows_of
from sim.advice.levers import PATIENT
from sim.advice.trials import BACKLOG, FAILURE_PHASE, FILE, LONGEST_NS, SAVEPOINT, Trial
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

MAX_FILE_RUNS = 6
"""Maximum number of settings that run as the file is."""
MIN_CHECKPOINTS_OF_P99 = 100
"""With fewer checkpoints the longest one stands for p99."""


def advised_point(search: CandidateSearch, setting: Setting) -> Point:
    """Return the changes of the job that come with a setting, without those of trials.

    If the restarts are used up soon, more of them come with it, but not with today's setting if that is replaced.
    """
    point = {**search.candidate_of(setting.name).point, **search.own_keys(setting)}
    advised = search.bench.load({**search.bench.common, **point})
    is_replaced = search.replaced is not None and search.replaced.name == setting.name
    if not is_replaced and restart_attempts_cautions(
        advised, search.mtbf_s, search.bench.failure, RAISE_ATTEMPTS_BELOW_S
    ):
        limit = RESTARTS[advised.restart.strategy].limit
        point[f"restart.{limit}"] = PATIENT[limit][1]
    return point


def file_trials(search: CandidateSearch, setting: Setting) -> list[Trial]:
    """Return the trials of a setting in the job as its file is; [] if other trials leave nothing out."""
    bench, candidate = search.bench, search.candidate_of(setting.name)
    point = {**bench.as_written, **advised_point(search, setting)}
    scenario, duration = bench.load(point), "run.duration"
    trials = []
    if scenario.faults or scenario.actions or scenario.rescale:
        latest_ns = max((at_ns for fault in scenario.faults for at_ns in fault.when.at_ns), default=0)
        until_ns = max(scenario.run.duration_ns, latest_ns + bench.patience_ns)
        trials.append(Trial("", candidate, FILE, {**point, duration: format_duration(until_ns)}))
    if search.limits.recovery_ms is not None and (late_ns := _late_in_savepoint_ns(scenario)):
        length = {
            duration: format_duration(late_ns + bench.slots_ns + bench.patience_ns),
            "run.warmup": "0 s",
            "run.until": "caught-up",
            "faults": [{**bench.failing(scenario), "at": format_duration(late_ns)}],
        }
        trials.append(Trial("", candidate, SAVEPOINT, point | length))
    if read_ns := _backlog_ns(scenario, setting):
        length = {duration: format_duration(read_ns), "run.warmup": "0 s", "run.until": "duration", "faults": []}
        trials.append(Trial("", candidate, BACKLOG, point | length))
    return trials


def _late_in_savepoint_ns(scenario: Scenario) -> int:
    """Return a time late in the first canonical savepoint that takes longer than the interval [ns], or 0 if there is none.

    No checkpoint is triggered during a savepoint, so that a failure at its end loses most work.
    """
    rate, interval_ns = scenario.checkpoint.state.savepoint_bytes_per_second, scenario.checkpoint.interval_ns
    begin_ns = [action.at_ns for action in scenario.actions if action.format == "canonical" and not action.stop]
    states = [vertex.state.bytes / vertex.parallelism for vertex in scenario.job.vertices if vertex.state]
    if not rate or not interval_ns or not begin_ns or not states or max(states) * SECOND <= rate * interval_ns:
        return 0
    return begin_ns[0] + round(max(states) * SECOND / rate * FAILURE_PHASE[0] / FAILURE_PHASE[1])


def _backlog_ns(scenario: Scenario, setting: Setting) -> int:
    """Return when the backlog with which sources begin has been emitted, if they emit all that is due [ns]; 0 without one."""
    latest_ns = 0
    for vertex in scenario.job.vertices:
        source = vertex.source
        if source is None or source.backlog is None or source.backlog.records is None:
            continue
        left, rates = Fraction(source.backlog.records), [(rate.start_ns, rate.per_second) for rate in source.rates]
        rates = rates or [(0, Fraction(setting.per_second) / vertex.emitting)]
        ends_ns = [start_ns for start_ns, _ in rates[1:]] + [LONGEST_NS]
        for (start_ns, per_second), end_ns in zip(rates, ends_ns, strict=True):
            due = per_second * (end_ns - start_ns) / SECOND
            if due >= left > 0:
                latest_ns = max(latest_ns, start_ns + round(left * SECOND / per_second))
            left -= due
    return latest_ns


def run_file(search: CandidateSearch, setting: Setting) -> bool:
    """Run a setting as the file is, and store the result.  Return False if that is nothing to do, or budget or time do not cover it."""
    trials = file_trials(search, setting)
    if not trials or setting.name in search.file_runs:
        return False
    rows = search.run_others(trials, 1, 1.0)
    if rows is None:
        seconds = sum(search.bench.scenario(trial).run.duration_ns for trial in trials) / SECOND
        search.skip(f"the file as it is ({ms_text(1e3 * seconds)}) with {setting.protocol}, every {setting.interval}")
        return False
    found: list[dict[str, Any] | None] = []
    for kind in (FILE, SAVEPOINT, BACKLOG):
        records = rows_of(rows, setting.name, kind).to_dict("records")
        found.append(records[0] if records else None)  # type: ignore[arg-type]  # names of columns are texts
    scenario = search.bench.load(trials[0].point)
    search.file_runs[setting.name] = file_run(
        scenario, search.limits, *found, unlimited_rate=setting.per_second * search.unlimited
    )
    return True


def file_run(
    scenario: Scenario,
    limits: Limits,
    file: Mapping[str, Any] | None,
    savepoint: Mapping[str, Any] | None = None,
    backlog: Mapping[str, Any] | None = None,
    *,
    unlimited_rate: float = 0.0,
) -> FileRun:
    """Return what the rows of the runs show.

    While the job recovers, checkpoints and output wait for the recovery, which has its own limit: a run with failures shows
    neither.  `unlimited_rate`: throughput of a job whose sources always have more records, and so never catches up.
    """
    values: dict[str, float] = {}
    events: dict[str, str] = {}
    unsure, restarts, ends = [], "", ""
    if file is not None:
        what = _events(scenario)
        if str(file.get("job_status", "")).startswith(DEAD):
            ends = f"{file['job_status']} ({what})"
        if "checkpoints (" in str(file.get("failure_kinds", "")):
            restarts = what
        bounds = str(file.get("unfinished", "")).split()
        if file.get("failures", 0):
            values["recovery_ms"], is_bound = _recovery_ms(file, unlimited_rate)
            at_ns = [at_ns for fault in scenario.faults for at_ns in fault.when.at_ns]
            is_pooled = len(at_ns) > 1 or any(fault.when.every for fault in scenario.faults)
            events["recovery_ms"] = f"median, {what}" if is_pooled else what
            all_ms = 1e3 * file.get("disturbed_share", 0.0) * file.get("ended_s", 0.0)
            if is_bound or (is_pooled and all_ms > (limits.recovery_ms or math.inf)):
                unsure.append("recovery_ms")
        else:
            few = file["completed"] < MIN_CHECKPOINTS_OF_P99
            of_checkpoints = "end_to_end_max_ms" if few else "end_to_end_p99_ms"
            for column, own in (("checkpoint_ms", of_checkpoints), ("visible_ms", "visible_p99_ms")):
                if not math.isnan(file[own]):
                    values[column], events[column] = float(file[own]), what
                    unsure += [column] * (own in bounds)
    if savepoint is not None:
        takes_ms, is_bound = _recovery_ms(savepoint, unlimited_rate)
        if not takes_ms <= values.get("recovery_ms", 0.0):
            at = format_duration(next(action.at_ns for action in scenario.actions if action.format == "canonical"))
            values["recovery_ms"], events["recovery_ms"] = takes_ms, f"late in the {SAVEPOINT} of {at}"
            unsure += ["recovery_ms"] * is_bound
    if backlog is not None and math.isfinite(backlog["throughput_change"]):
        values["loss"], events["loss"] = max(-backlog["throughput_change"], 0.0), "while a backlog is read"
    broken = [column for column, bound in limits.bounds.items() if values.get(column, 0.0) > bound * (1 + AT_LIMIT)]
    return FileRun(values, events, tuple(unsure), tuple(broken), restarts, ends)


def _recovery_ms(row: Mapping[str, Any], unlimited_rate: float) -> tuple[float, bool]:
    """Return the recovery of a run [ms], and whether it is a lower bound."""
    if unlimited_rate:
        return float(row["downtime_ms"] + 1e3 * row["replayed_records"] / unlimited_rate), False
    return float(row["caught_up_ms"]), "caught_up_ms" in str(row.get("unfinished", "")).split()


def _events(scenario: Scenario) -> str:
    """Return the events of the file, e.g. ``a storage outage at 3.3 min``."""
    found = [(kind_of_fault(fault.what), fault.when.at_ns) for fault in scenario.faults]
    found += [(f"a {action.format} savepoint", (action.at_ns,)) for action in scenario.actions]
    found += [("a rescale", (rescale.at_ns,)) for rescale in scenario.rescale]
    if len(found) == 1 and len(found[0][1]) == 1:
        return f"{found[0][0]} at {ms_text(found[0][1][0] / 1e6)}"
    return listed(list(dict.fromkeys(kind for kind, _ in found)))
