"""The sentences of `ckptsim run`: a pattern each, and what its words mean to a Flink engineer, from the runs' tables and journals."""

import math
import re
from collections import Counter
from dataclasses import replace
from functools import wraps
from itertools import accumulate, chain, compress, pairwise
from statistics import fmean, median

import numpy as np
import pytest

from sim.model.checkpoint import Barriers
from sim.model.quantities import PLANNED_RESTARTS
from sim.model.sinks import SINKS
from sim.model.units import parse_duration, parse_flink_size
from sim.results.formats import bytes_text
from sim.results.journal import EventType
from sim.runtime.plane_spec import hosts
from sim.runtime.simulate import simulate
from tests.claims.printed import (
    CUT_SHORT,
    Template,
    always,
    end_of_data_ns,
    first_uploads,
    is_noise,
    mean_end_ms,
    moments_ms,
    number,
    same_count,
    same_ms,
)

QUEUES = ("task thread", "behind data", "end of input")
COLUMNS = (
    (QUEUES, ("until the timeout",)),
    (("alignment",),),
    (("file before barrier", "work before barrier"),),
    (("sync",),),
    (("async queue",), ("async work",), ("upload",), ("own output", "channel state")),
    (("trigger", "acknowledgement"),),
)
"""Parts of a critical path by kind of wait, and these by column of the table of strategies."""
SPENT = ("accumulateBusyTimeMs", "accumulateIdleTimeMs", "x_softBackPressuredTimeMs", "x_hardBackPressuredTimeMs")
TIMES = (
    r"after (?P<p>[\d.]+) % of the interval with (?P<a>NAME), after (?P<q>[\d.]+) % of the interval with (?P<b>NAME)"
)
LOAD = r" \((?P<load>[^)]*)\)"
FATE = r"(?P<count>\d+) of (?P<m>\d+) checkpoints (?:expired?|fail(?:ed)? \((?P<reason>[\w ]+)\))"


def of_each_run(holds):
    """A claim about the first run of each strategy that a sentence names."""

    @wraps(holds)
    def claim(told, match):
        return all(holds(runs[0], match) for runs in told.about(match))

    return claim


def of_each_strategy(holds):
    """A claim about the runs of each strategy that a sentence names."""

    @wraps(holds)
    def claim(told, match):
        return all(holds(told, match, runs) for runs in told.about(match))

    return claim


def finished(told, match):
    """All runs that the sentence names as finished did, and none that it names as unfinished."""
    is_over = [
        all(run.job_status == "FINISHED" for run in runs)
        for runs in told.listed(match.groupdict().get("names") or match["of"])
    ]
    others = match.groupdict().get("others")
    return all(is_over) and not (
        others and any(all(run.job_status == "FINISHED" for run in runs) for runs in told.listed(others))
    )


def some_finish(told, match):
    names = match["names"]
    return (
        finished(told, match)
        if names
        else any(all(run.job_status == "FINISHED" for run in runs) for runs in told.all_runs)
    )


def finishes(told, match):
    """At the earliest end; whoever is named ends then, nobody else does, and the latest is named if it is later."""
    over = {
        name.lower(): mean_end_ms(runs)
        for name, runs in zip(told.names, told.all_runs, strict=True)
        if all(run.job_status == "FINISHED" for run in runs)
    }
    first, last = min(over.values()), max(over.values())
    named = {name.lower() for name in re.split(r", | and ", match["names"] or "") if name} or {*over}
    soon = {name for name, end in over.items() if is_noise(end, first)}
    is_late = match["late"] is not None and same_ms(match["late_at"], last)
    return same_ms(match["at"], first) and named == soon and is_late == (not is_noise(first, last))


def passes_after_the_last_record(told, match):
    """Nothing was read in the last whole seconds, and so many checkpoints, triggered then, completed."""
    counts, idle = [], []
    for run in told.runs(match["of"]):
        rows = run.series[run.series["numRecordsInPerSecond"] > 0]
        last_ms = 1e3 * (rows["time"].max() if len(rows) else 0.0)
        done = run.checkpoints[run.checkpoints["status"] == "COMPLETED"]
        counts.append((done["trigger_timestamp"] >= last_ms).sum())
        idle.append(run.ended_ns / 1e6 - last_ms)
    return number(match["count"]) <= fmean(counts) + 0.05 and number(match["ms"]) <= 1.05 * fmean(idle)


def holds_the_end(told, match):
    """It completed after the last end of data of the job (no task had records left), or without such ends as the last one."""
    row, run = told.row(match), told.run_of(match)
    done = {entry.checkpoint: entry.time_ns for entry in run.journal if entry.event_type is EventType.COMPLETED}
    end_ns, done_ns = end_of_data_ns(run), done.get(int(match["id"]), -1)
    is_late = done_ns == max(done.values()) if end_ns is None else done_ns >= end_ns
    return (
        row["status"] == "COMPLETED"
        and is_late
        and same_ms(match["took"], row["end_to_end_duration"] + row["x_finalization"])
    )


def no_checkpoint_holds_the_end(told, match):
    """None was triggered after the last end of data and completed."""
    for run in (runs[0] for runs in told.listed(match["names"])):
        done = run.checkpoints.loc[run.checkpoints["status"] == "COMPLETED", "trigger_timestamp"]
        if (end_ns := end_of_data_ns(run)) is not None and done.max() * 1e6 > end_ns:
            return False
    return True


def commits_less(told, match):
    """Records of commits after the warm-up, each once, per run."""
    committed = {}
    for name, runs in zip(told.names, told.all_runs, strict=True):
        rows = [(run, row) for run in runs for row in run.commits.to_dict("records") if not row["again"]]
        kept = [
            row["records"]
            for run, row in rows
            if row["commit_timestamp"] - row["commit_latency"] >= told.warmup_ms(run)
        ]
        committed[name.lower()] = sum(kept) / len(runs)
    own = committed[match["of"].lower()]
    return (
        same_count(match["less"], own)
        and same_count(match["most"], *committed.values())
        and own < 0.99 * max(committed.values())
    )


def most_fail_so(told, match):
    """The number is of the most frequent reason, `m` of all that failed by themselves or completed."""
    runs = told.runs(match["of"])
    failures = told.failures(runs)
    count = failures[match["reason"] or "CHECKPOINT_EXPIRED"]
    return int(match["count"]) == count == max(failures.values()) and int(match["m"]) == failures.total() + len(
        told.durations(runs)
    )


def others_fail_so(told, match):
    return int(match["count"]) in [
        told.failures(runs)[match["reason"] or "CHECKPOINT_EXPIRED"] for runs in told.all_runs
    ]


def completes(told, match):
    durations = told.durations(told.runs(match["of"]))
    return (
        not told.failures(told.runs(match["of"]))
        and (match["longest"] is None or same_ms(match["longest"], durations[-1]))
        and len(durations) == int(match["n"] or 1)
        and same_ms(match["ms"], median(durations))
    )


def stores(told, match):
    if not match["size"]:
        return True
    rows = [told.periodic(runs, "COMPLETED") for runs in ([told.runs(match["of"])] if match["of"] else told.all_runs)]
    return match["size"] in {bytes_text(median(row["persisted_data"] for row in own)) for own in rows if own}


def has_status(*beginnings):
    return lambda told, match: any(run.job_status.startswith(beginnings) for run in told.runs(match["of"]))


def job_fails(told, match):
    """For the reason that is printed, after so many failures."""
    reasons = {run.job_status.partition(": ")[2].rstrip(".") for run in told.runs(match["of"])}
    return match["why"] in reasons and (not match["m"] or most_fail_so(told, match))


def restarts_for_good(told, match):
    """No checkpoint completed since the first of the failures, and the strategies that are said to go on do."""
    run = next(run for run in told.runs(match["of"]) if run.job_status.startswith("RESTARTING"))
    failures = [
        *moments_ms(run, EventType.TASK_FAILED, EventType.DEPLOYMENT_FAILED),
        *run.recoveries.loc[run.recoveries["kind"] == "checkpoints", "failed"],
    ]
    restarts = re.search(r"(\d+) times in a row", match[0])
    goes_on = told.listed(match["others"]) if match["others"] else ()
    return (restarts is None or len(failures) >= int(restarts[1])) and all(
        run.job_status in {"RUNNING", "FINISHED"} for runs in goes_on for run in runs
    )


def cannot_begin(told, match):
    return any(f"job {match['instance']} cannot start" in run.job_status for run in told.runs(match["of"]))


def interrupted(told, match):
    """Some were under way when a restart or the end came, and nothing else happened to any."""
    rows = [row for runs in told.all_runs for row in told.periodic(runs, "FAILED")]
    return bool(rows) and all(row["failure_message"] in CUT_SHORT for row in rows)


def restarts_interrupt_each(told, match):
    """So many of a strategy, none of which lasted longer; none completed."""
    ended = [
        [row["end_to_end_duration"] for row in told.periodic(runs, "FAILED") if row["failure_message"] in CUT_SHORT]
        for runs in told.all_runs
    ]
    found = [(len(own), True) for own in ended if own and same_ms(match["ms"], max(own))]
    return (int(match["count"]), True) in found and all(
        not run.recoveries.empty for runs in told.all_runs for run in runs
    )


def none_completed(told, match):
    return not any(told.durations(runs) for runs in told.all_runs)


def nothing_ended(told, match):
    return not any(told.durations(runs) or told.failures(runs) for runs in told.all_runs)


def under_way(told, match):
    return told.row(match)["status"] == "IN_PROGRESS" and same_ms(match["ms"], told.lasted_ms(match))


def bears_no_overtaking(told, match):
    """The sink is known for it, and barriers may overtake data in all of the named strategies."""
    runs = [run for runs in told.listed(match.groupdict().get("names")) for run in runs]
    known = {"does not start": "refused", "loses records": "loses"}[match["what"]]
    connectors = {
        vertex.known_connector for run in runs for vertex in run.scenario.job.vertices if vertex.name == match["at"]
    }
    return all(run.scenario.checkpoint.barriers.record.overtakes for run in runs) and [
        SINKS[name].overtaking for name in connectors if name
    ] == [known]


def no_output(told, match):
    runs = [run for runs in told.listed(match["names"]) for run in runs]
    return all(run.scenario.job.vertex(match["at"]).commit is not None and run.commits.empty for run in runs)


def has_savepoint(told, match):
    """Some savepoint has no in-flight data."""
    rows = [run.checkpoints for runs in told.all_runs for run in runs]
    return any((own.loc[own["savepointFormat"] != "", "persisted_data"] == 0).any() for own in rows)


def fails_after(told, match):
    return told.row(match)["status"] == "FAILED" and same_ms(match["ms"], told.lasted_ms(match))


def runs_on(told, match):
    """The job does, for at least three more intervals."""
    for run in (run for runs in told.listed(match["names"]) for run in runs):
        last_ms = max(moments_ms(run, EventType.TRIGGERED), default=0.0)
        interval_ns = run.scenario.checkpoint.interval_ns
        if run.job_status != "RUNNING" or interval_ns is None or run.ended_ns / 1e6 - last_ms <= 3 * interval_ns / 1e6:
            return False
    return True


def ends_with_one_that_completed(told, match):
    """The first of the named strategies takes its last checkpoint then, and that one completed: it is what a failure goes back to."""
    last = [
        max(
            (row for run in runs for row in run.checkpoints.to_dict("records")),
            key=lambda row: row["trigger_timestamp"],
        )
        for runs in told.listed(match["names"])
    ]
    first = min(last, key=lambda row: row["trigger_timestamp"])
    return same_ms(match["at"], first["trigger_timestamp"]) and first["status"] == "COMPLETED"


def none_triggered(told, match):
    return not any(moments_ms(run, EventType.TRIGGERED) for runs in told.listed(match["names"]) for run in runs)


def takes(told, match):
    """The slowest median, and the longest of that strategy; of several medians the quickest first."""
    named = told.names if match["of"] is None else [match["of"]]
    slow = [told.durations(told.runs(name)) for name in named if name in told.medians()]
    slowest = max(slow, key=median)
    low, high = match["ms"], match["high"] or match["ms"]
    return (
        same_ms(high, median(slowest))
        and (not match["high"] or same_ms(low, min(map(median, slow))))
        and (not match["longest"] or same_ms(match["longest"], slowest[-1]))
    )


def nothing_holds_barriers_up(told, match):
    """In most checkpoints of the strategies, barriers reach each task and are aligned within noise (150 ms)."""
    for runs in told.all_runs:
        waits = []
        for run in runs:
            ids = {row["id"] for row in told.periodic([run], "COMPLETED")}
            rows = run.subtasks[run.subtasks["id"].isin(ids) & (run.subtasks["ack_timestamp"] >= 0)]
            waits += list(rows.groupby("id")[["start_delay", "alignment_duration"]].max().max(axis=1))
        if waits and median(waits) >= 150:
            return False
    return load_is(told, match)


def load_is(told, match):
    """Mean shares over the seconds after the warm-up, or of one subtask over the run, under some strategy."""
    last = ""
    for named, kind, printed in re.findall(
        r"(?:'([^']+)' )?(?:is )?(?:never idle: )?(busy|back-pressured) (?:(\d+)|<1) %", match["load"]
    ):
        last = named or last or match["at"]
        vertex, _, index = last.partition("[")
        shares = []
        for runs in told.all_runs:
            of_runs = []
            for run in runs if index else ():
                # several after a rescale
                rows = run.tasks[(run.tasks["vertex"] == vertex) & (run.tasks["index"] == int(index.rstrip("]")))]
                of_runs += list(rows["accumulateBusyTimeMs"] / rows[list(SPENT)].sum(axis=1))
            shares += [of_runs, *([share] for share in of_runs)]
            column = {"busy": "busy", "back-pressured": "backPressured"}[kind]
            series = [
                run.series[(run.series["vertex"] == vertex) & (run.series["time"] > told.warmup_ms(run) / 1e3)]
                for run in runs
            ]
            shares += [] if index else [[value for row in series for value in row[column]]]
        if not any(abs(fmean(own) - int(printed or 0) / 100) <= 0.011 for own in shares if own):
            return False
    return True


def medians_are(told, match):
    """The lowest and the highest median are within noise."""
    medians = sorted(told.medians().values())
    low, high = match["low"], match["high"] or match["low"]
    return is_noise(medians[0], medians[-1]) and same_ms(low, medians[0]) and same_ms(high, medians[-1])


def slowest_tenth(told, match):
    """Of ten checkpoints or more, at least a tenth takes about so long: four times the median, or more."""
    durations = told.durations(told.runs(match["of"]) if match["of"] else told.all_runs[0])
    at = 0.9 * (len(durations) - 1)
    between, is_tenth = (durations[int(at)], durations[math.ceil(at)]), len(durations) >= 10
    is_there = between[0] <= number(match["ms"]) <= between[1] or any(same_ms(match["ms"], ms) for ms in between)
    return is_tenth and is_there and number(match["ms"]) >= 3.9 * median(durations)


def quantile_is(told, match):
    """p99 or the longest, of the named strategy and of another one, which is beyond noise."""
    at = 0.99 if match["quantile"] == "p99" else 1.0
    found = {name.lower(): float(np.quantile(told.durations(told.runs(name)), at)) for name in told.medians()}
    own, worst = found[match["of"].lower()], max(found.values())
    return same_ms(match["early"], own) and same_ms(match["late"], worst) and not is_noise(1.02 * worst, own)


def median_is(told, match):
    """Of the named strategy, instead of the slowest, which is slower by more than noise."""
    found = {name.lower(): value for name, value in told.medians().items()}
    own, worst = found[match["of"].lower()], max(found.values())
    others = [told.durations(told.runs(name))[-1] for name, value in found.items() if value == worst]
    if match["longest"] and not (
        same_ms(match["longest"], told.durations(told.runs(match["of"]))[-1])
        and same_ms(match["other"] or match["longest"], *others)
    ):
        return False
    return (
        same_ms(match["early"], own)
        and same_ms(match["late"], worst)
        and not is_noise(1.02 * worst, own)
        and stores(told, match)
    )


def exists(told, match):
    """The named checkpoint, or savepoint, is not cut short by a restart or the end of the job."""
    row = told.row(match)
    is_savepoint = match["savepoint"] is not None
    return bool(row["savepointFormat"]) == is_savepoint and row["failure_message"] not in CUT_SHORT


def completed(told, match):
    return exists(told, match) and told.row(match)["status"] == "COMPLETED"


def was_given_up(told, match):
    """It failed, and some subtask of the named vertex has not acknowledged it."""
    run = told.run_of(match)
    rows = run.subtasks[(run.subtasks["id"] == int(match["id"])) & (run.subtasks["vertex"] == match["at"])]
    has_failed = exists(told, match) and told.row(match)["status"] == "FAILED"
    return has_failed and (rows["ack_timestamp"] >= 0).sum() < run.scenario.job.vertex(match["at"]).parallelism


@of_each_run
def is_written_again(run, match):
    """A sink without transactions, of which restarts serve so many records again."""
    is_count = match["count"] is None or same_count(match["count"], sum(run.recoveries["served_again"]))
    restarts = any(not names or match["at"] in re.split(", | and ", names) for names in run.recoveries["vertices"])
    return run.scenario.job.vertex(match["at"]).commit is None and restarts and is_count


def may_fire(told, match):
    window = told.run_of(match).scenario.job.vertex(match["at"]).window
    return window is not None and window.fire_ns > 0


def was_cut_off(told, match):
    """It failed as its trigger was not answered, while a TaskManager was cut off."""
    run = told.run_of(match)
    cut_off = [entry for entry in run.journal if entry.event_type is EventType.FAULT and "cut off" in entry.detail]
    return bool(cut_off) and told.row(match)["failure_message"] == "TRIGGER_CHECKPOINT_FAILURE"


def was_lost_unknown(told, match):
    """It failed between the loss of that TaskManager and the restart that it causes, and lacks acknowledgements."""
    journal, row = told.run_of(match).journal, told.row(match)
    lost = [e for e in journal if e.event_type is EventType.TASK_MANAGER_LOST and e.number == int(match["lost"])]
    known = [
        e
        for e in journal
        if e.event_type is EventType.JOB_RESTARTING and e.detail == f"task manager {match['lost']} lost"
    ]
    failed_ms = row["trigger_timestamp"] + row["end_to_end_duration"]
    return (
        row["status"] == "FAILED"
        and row["num_acknowledged_subtasks"] < row["num_subtasks"]
        and any(e.time_ns / 1e6 < failed_ms and same_ms(match["at"], e.time_ns / 1e6) for e in lost)
        and any(failed_ms < e.time_ns / 1e6 and same_ms(match["known"], e.time_ns / 1e6) for e in known)
    )


def largest(*parts):
    """The printed time passes so at the named vertex: in the column with most of the named checkpoint's critical path, no kind takes more."""

    def claim(told, match):
        rows, named = told.parts(match), match.groupdict()
        spent = {
            column: [sum(row["duration"] for row in rows if row["part"] in kind) / 1e6 for kind in column]
            for column in COLUMNS
        }
        own_column = next(column for column in COLUMNS if any(part in kind for kind in column for part in parts))
        own = [row for row in rows if row["part"] in parts]
        vertex, whole = named.get("at"), named.get("whole")
        here = sum(row["duration"] for row in own if vertex in (None, row["vertex"])) / 1e6
        most = sum(row["duration"] for row in own) / 1e6
        return (
            most >= max(spent[own_column])
            and sum(spent[own_column]) >= max(map(sum, spent.values())) - 1e-6
            and same_ms(match["took"], most if whole else here)
            and (not vertex or 2 * here >= most)
            and (not named.get("load") or load_is(told, match))
            and (not whole or same_ms(whole, told.lasted_ms(match)))
        )

    return claim


def timed_out_in_all(told, match):
    lost = [
        [records for run in runs for records in run.commits["lost_records"] if records] for runs in told.about(match)
    ]
    return all(same_count(match["count"], sum(own)) and int(match["n"]) == len(own) for own in lost)


def late_records(told, match):
    """The last and the first of the strategies, of which the last one writes files before the barrier."""
    late_ms = {name: 1e3 * found.delay_p99_s for name, found in told.comparison.consequences.items()}
    return (
        (match["late"], match["early"]) == (max(late_ms, key=late_ms.get), min(late_ms, key=late_ms.get))
        and same_ms(match["most"], late_ms[match["late"]])
        and same_ms(match["least"], late_ms[match["early"]])
        and "pre-barrier" in match["late"]
    )


def commits_in_its_thread(told, match):
    """Commits of that length keep the vertex busy for at least half of the wait."""
    run, row = told.run_of(match), told.row(match)
    if (commit := run.scenario.job.vertex(match["at"]).commit) is None:
        return False
    commit_ms = commit.time_ns / 1e6
    begin_ms, end_ms = row["trigger_timestamp"], row["trigger_timestamp"] + row["end_to_end_duration"]
    ends_ms = run.commits.loc[run.commits["vertex"] == match["at"], "commit_timestamp"]
    held_ms = max(min(end_ms, ended) - max(begin_ms, ended - commit_ms) for ended in ends_ms)
    return same_ms(match["each"], commit_ms) and 2 * held_ms >= number(match["took"]) and largest(*QUEUES)(told, match)


def works_asynchronously(told, match):
    """Asynchronous work beside the files is the longest part, and not of a canonical savepoint, of which serialisation is named."""
    return told.row(match)["savepointFormat"] != "CANONICAL" and largest("async work")(told, match)


def serialises(told, match):
    """Of a canonical savepoint, its files and the work between them are the longest part, and the work is a tenth of it if it ended."""
    row, parts_ms = told.row(match), Counter()
    for part in told.parts(match):
        parts_ms[part["part"]] += part["duration"] / 1e6
    both_ms = parts_ms["upload"] + parts_ms["async work"]
    is_cut_off = match["decide"] == "barriers do not decide"
    return (
        row["savepointFormat"] == "CANONICAL"
        and same_ms(match["took"], both_ms)
        and same_ms(match["whole"], row["end_to_end_duration"])
        and is_cut_off == (row["status"] != "COMPLETED")
        and (is_cut_off or parts_ms["async work"] >= 0.1 * both_ms)
        and match["size"] in {None, bytes_text(row["checkpointed_size"])}
    )


def commits_meanwhile(told, match):
    """The barrier waits at a global committer, which does nothing but commit."""
    return bool(told.all_runs[0][0].scenario.job.vertex(match["at"]).committer_of) and largest(*QUEUES)(told, match)


def tail_waits_for_barriers(told, match):
    """As many checkpoints of the slowest quarter spend more of their paths on barriers than on files."""
    runs = next(runs for runs in told.all_runs if any(run is told.run_of(match) for run in runs))
    each = [(row["end_to_end_duration"], run, row) for run in runs for row in told.periodic([run], "COMPLETED")]
    tail = sorted(each, key=lambda item: -item[0])[: math.ceil(len(each) / 4)]
    held = 0
    for _, run, row in tail:
        parts = run.path[(run.path["id"] == row["id"]) & (run.path.get("x_job", 0) == row.get("x_job", 0))]
        spent = parts.groupby("part")["duration"].sum().to_dict()
        barriers = sum(spent.get(part, 0) for part in {*QUEUES, "until the timeout", "alignment"})
        held += barriers > sum(spent.get(part, 0) for part in ("upload", "own output", "channel state"))
    return match["held"] == f"{held}" and match["tail"] == f"{len(tail)}" and 2 * held >= len(tail)


def written(told, match):
    queued = [row for row in told.parts(match) if row["part"] == "async queue"]
    queued_ms = sum(row["duration"] for row in queued) / 1e6
    storage, managers = told.run_of(match).scenario.storage, len({*hosts(told.run_of(match).scenario)})
    uploaded_ms = sum(row["duration"] for row in told.parts(match) if row["part"] == "upload") / 1e6
    barriers_ms = (
        sum(row["duration"] for row in told.parts(match) if row["part"] in {*QUEUES, "until the timeout", "alignment"})
        / 1e6
    )
    card_ms = 1e3 * told.row(match)["checkpointed_size"] / managers / (storage.nic_bytes_per_second or math.inf)
    return (
        largest("upload")(told, match)
        and (match["cards"] is not None) == (card_ms >= 0.8 * uploaded_ms)
        and match["size"] in {None, bytes_text(told.row(match)["checkpointed_size"])}
        and (match["older"] is None or same_ms(match["older"], queued_ms))
        and (match["barriers"] is None or same_ms(match["barriers"], barriers_ms))
        and (match["do"] == "do") == (barriers_ms >= uploaded_ms)
        and (match["held"] is None or tail_waits_for_barriers(told, match))
        and {match["thread"]} <= {None, *(row["vertex"] for row in queued)}
    )


def wait_in_queues(told, match):
    """The longest of its waits is at that vertex; those at all vertices are given, too, if they are notably longer."""
    queued_ms = sum(row["duration"] for row in told.parts(match) if row["part"] in QUEUES) / 1e6
    return largest(*QUEUES)(told, match) and (
        is_noise(queued_ms, number(match["took"])) if match["all"] is None else same_ms(match["all"], queued_ms)
    )


def comes_last(told, match):
    """The task sends its barrier later than the other inputs of that subtask: it is the last of them to take the first one."""
    vertex, index = re.fullmatch(r"(.+)\[(\d+)\]", match["late"]).groups()
    run = told.run_of(match)
    subtasks = run.subtasks[run.subtasks["id"] == int(match["id"])]
    inputs = {inlet.upstream for inlet in run.scenario.job.vertex(match["at"]).inputs}
    own = subtasks[(subtasks["vertex"] == vertex) & (subtasks["index"] == int(index))]
    return vertex in inputs and len(own) == 1 and largest("alignment")(told, match)


def no_window_ends(told, match):
    """No record leaves the window, a subtask of the source reads none, and with an idle-timeout records do leave."""
    for runs in told.listed(match["names"]):
        tasks, scenario = runs[0].tasks, runs[0].scenario
        if tasks.loc[tasks["vertex"] == match["at"], "numRecordsOut"].any():
            return False
        if (
            scenario.job.vertex(match["at"]).window is None
            or tasks.loc[tasks["vertex"] == match["of"], "numRecordsIn"].all()
        ):
            return False
        vertices = [
            vertex
            if vertex.name != match["of"]
            else replace(
                vertex,
                source=replace(
                    vertex.source, watermark=replace(vertex.source.watermark, idle_timeout_ns=1_000_000_000)
                ),
            )
            for vertex in scenario.job.vertices
        ]
        mended = simulate(replace(scenario, job=replace(scenario.job, vertices=tuple(vertices))), check=False).tasks
        if not mended.loc[mended["vertex"] == match["at"], "numRecordsOut"].any():
            return False
    return True


def is_only_upload(told, match):
    """Each of the strategies completed one checkpoint, which wrote nearly all that it refers to."""
    uploads = [told.periodic(runs, "COMPLETED", uploads=True) for runs in told.listed(match["names"])]
    return all(len(rows) == 1 and rows[0]["checkpointed_size"] >= 0.9 * rows[0]["state_size"] for rows in uploads)


def axis_changes(told, match):
    """Both strategies have the same values of all other axes, and these medians; no other such pair differs more."""
    results, axis = told.comparison.results, match["axis"]
    fast, slow = results[match["fast"]], results[match["slow"]]
    one, other = dict(fast[0].scenario.axes), dict(slow[0].scenario.axes)
    is_alone = {name for name in one if one[name] != other[name]} == {axis}
    return (
        is_alone
        and same_ms(match["low"], median(told.durations(fast)))
        and same_ms(match["high"], median(told.durations(slow)))
    )


def workload_takes(told, match):
    """Smallest and largest median, and longest checkpoint, of the strategies of this workload, which no other sentence is about."""
    labels = [line.label for line in told.comparison.strategies if line.group == match["workload"]]
    taken = [own for label in labels if (own := told.durations(told.comparison.results[label]))]
    failed = sum(sum(told.failures(told.comparison.results[label]).values()) for label in labels)
    medians = [median(own) for own in taken]
    return (
        bool(taken)
        and match["workload"] != told.group
        and same_ms(match["low"], min(medians))
        and same_ms(match["high"] or match["low"], max(medians))
        and same_ms(match["most"], max(map(max, taken)))
        and int(match["failed"] or 0) == failed
    )


def is_steady(times, end_ms):
    """Whether events go on until the end: their rate is that of whole periods, from the first to the last."""
    return len(times) > 1 and end_ms - times[-1] <= 2 * median(b - a for a, b in pairwise(times))


def has_one_off_event(run):
    """Whether requests to an object store leave time out: a planned restart, the only failure or the only savepoint."""
    kinds = [*run.recoveries["kind"]]
    failures = [kind for kind in kinds if kind not in ("rescale", "instance")]
    savepoints = (run.checkpoints["savepointFormat"] != "").sum()
    is_left_out = len(failures) == 1 or len(failures) < len(kinds) or savepoints == 1
    return is_left_out and len(run.tables["requests"]) > 0


def visible_after(told, match):
    """The median by records of commits after the warm-up; checkpoints and bytes of the first run, in all or per hour."""
    for runs in told.about(match):
        rows = [
            (row["visible_latency"], max(row["records"], 1))
            for run in runs
            for row in run.commits.to_dict("records")
            if not row["again"]
            and row["visible_latency"] >= 0
            and row["commit_timestamp"] - row["commit_latency"] >= told.warmup_ms(run)
        ]
        done = runs[0].checkpoints[runs[0].checkpoints["status"] == "COMPLETED"]
        hours = 1 if match["run"] else runs[0].ended_ns / 3.6e12
        counted, times = done, sorted(done["trigger_timestamp"])
        if not match["run"] and is_steady(times, runs[0].ended_ns / 1e6):
            counted, hours = done[done["trigger_timestamp"] > times[0]], (times[-1] - times[0]) / 3.6e6
        if match["more"]:  # what no checkpoint has committed when a run ends waits since the last that completed
            done_ms = [row["trigger_timestamp"] for row in told.periodic(runs, "COMPLETED", uploads=True)]
            mean = sum(records for _, records in rows) / len(rows) if rows else 1
            rows.append((runs[0].ended_ns / 1e6 - max(done_ms), mean))
        rows.sort()
        below = list(accumulate(records for _, records in rows))
        wait = next(ms for (ms, _), records in zip(rows, below, strict=True) if records >= below[-1] / 2)
        if not (
            abs(number(match["wait"]) / wait - 1) < 0.1
            and same_count(match["count"], len(counted) / hours)
            and match["size"] == bytes_text(counted["checkpointed_size"].sum() / hours)
            and (not match["events"] or has_one_off_event(runs[0]))
        ):
            return False
    return True


@of_each_run
def sinks_wait(run, match):
    """The median of the transactions of each vertex that commits."""
    waits = {vertex: number(text) for text, vertex in re.findall(r"(\S+ \w+) of '([^']+)'", match["waits"])}
    own = run.commits[run.commits["visible_latency"] >= 0].groupby("vertex")["visible_latency"].median()
    return waits == pytest.approx(own.to_dict(), rel=0.06)


def oldest_is_first(told, match):
    """Something became visible."""
    return all(any((run.commits["visible_latency"] >= 0).any() for run in runs) for runs in told.about(match))


def commits_files(told, match):
    for runs in told.about(match):
        rows, warmup_ms = runs[0].commits, told.warmup_ms(runs[0])
        rows = rows[(rows["commit_timestamp"] >= warmup_ms) & ~rows["again"].astype(bool)]
        end_ms = runs[0].ended_ns / 1e6
        triggers = (rows["commit_timestamp"] - rows["commit_latency"].clip(lower=0)).round(3)
        times = sorted(triggers.unique())
        if is_steady(times, end_ms):
            warmup_ms, end_ms = times[0], times[-1]
            rows = rows[triggers > warmup_ms]
        hours = (end_ms - warmup_ms) / 3.6e6
        if not (
            same_count(match["commits"], len(rows) / hours) and same_count(match["files"], rows["files"].sum() / hours)
        ):
            return False
    return True


def loses_a_task_manager(told, match):
    """One is killed, and what the journal or the table of restarts has of the first loss is within the range."""
    return any(
        run.recoveries["kind"].isin(["task-manager"]).any() or "task manager" in run.job_status
        for runs in told.about(match)
        for run in runs
    )


@of_each_run
def waits_since_its_checkpoint(run, match):
    """Some failure went back to that checkpoint; so long after its trigger something is committed, and about all that is replayed by then."""
    own = run.commits[~run.commits["again"].astype(bool)]
    if not same_ms(match["others"], own["visible_latency"].max()):
        return False
    began_ms = run.checkpoints.loc[run.checkpoints["id"] == int(match["number"]), "trigger_timestamp"].max()
    restored = run.recoveries[run.recoveries["restored_checkpoint"] == int(match["number"])]
    sources = {vertex.name for vertex in run.scenario.job.vertices if vertex.source}
    read = run.tasks.loc[run.tasks["vertex"].isin(sources), "numRecordsIn"].sum()
    found = False
    for failed_ms, replayed in zip(restored["failed"], restored["replayed_records"], strict=True):
        for _, own in run.commits.groupby("vertex"):
            own = own[own["commit_latency"] >= 0]
            after = own[own["commit_timestamp"] - own["commit_latency"] > failed_ms]
            at_ms = [ms for ms in after["commit_timestamp"].unique() if same_ms(match["ms"], ms - began_ms)]
            share = replayed * own["records"].sum() / read
            found |= any(after.loc[after["commit_timestamp"] <= ms, "records"].sum() >= 0.5 * share for ms in at_ms)
    return found


@of_each_run
def runs_on_without_a_leader(run, match):
    """So long after a loss the tasks stop: a TaskManager's heartbeats have timed out, or there is a successor."""
    lost_ms, elected_ms = (
        moments_ms(run, what) for what in (EventType.JOB_MANAGER_LOST, EventType.JOB_MANAGER_ELECTED)
    )
    timeout_ms, interval_ms = (
        ns / 1e6 for ns in (run.scenario.restart.heartbeat_timeout_ns, run.scenario.restart.heartbeat_interval_ns)
    )
    for at_ms, row in ((at, row) for at in lost_ms for row in run.recoveries.to_dict("records")):
        if not same_ms(match["ms"], row["failed"] - at_ms) or row["kind"] != "job-manager":
            continue
        is_missed = row["failed"] in moments_ms(run, EventType.TASK_FAILED)
        ends = is_missed and timeout_ms - interval_ms <= row["failed"] - at_ms <= timeout_ms
        if match["led"] or match["lost"] or match["task"]:
            stops = EventType.TASK_MANAGER_LOST if match["lost"] else EventType.TASK_FAILED
            ends = row["failed"] in (elected_ms if match["led"] else moments_ms(run, stops))
        is_told = int(match["number"] or 0) == row["restored_checkpoint"]
        if ends and is_told and same_count(match["count"], row["replayed_records"]):
            return True
    return False


@of_each_run
def applies_changes(run, match):
    """A vertex with a changelog is restored from a checkpoint, and the scenario has no rate."""
    logs = [own.name for own in run.scenario.job.vertices if own.state is not None and own.state.changelog is not None]
    has_rate = run.scenario.checkpoint.state.load_bytes_per_second is not None
    return bool(logs) and not has_rate and bool((run.recoveries["restored_checkpoint"] > 0).any())


@of_each_run
def wait_for_slow_files(run, match):
    """As many checkpoints have a file that takes longer than in a run without slow files; the longest is named."""
    storage = run.scenario.storage
    other = simulate(replace(run.scenario, storage=replace(storage, slow_probability=0.0)), check=False).path
    usual = {(row["id"], row["file"]): row["duration"] for row in other.to_dict("records") if row["file"]}
    done = run.checkpoints.loc[run.checkpoints["status"] == "COMPLETED", "id"]
    rows = run.path[run.path["id"].isin(done) & (run.path["file"] != "")].to_dict("records")
    # the latency of a file is not slowed down, and its size may differ; of a file that the other run did not wait for, it is not known
    may = [row for row in rows if row["duration"] >= 1.002 * usual.get((row["id"], row["file"]), 0)]
    known = {row["id"] for row in may if (row["id"], row["file"]) in usual}
    is_told = int(match["factor"]) == storage.slow_factor and int(match["share"]) == round(
        100 * storage.slow_probability
    )
    is_named = any(same_ms(match["ms"], row["duration"] / 1e6) for row in may)
    return (
        is_told
        and is_named
        and int(match["of"]) == len(done)
        and len(known) <= int(match["count"]) <= len({row["id"] for row in may})
    )


def is_mostly_disturbed(told, match):
    """With each strategy, failures until the job has caught up are at least so large a share of the run."""
    least = [min(share) for share in zip(*map(disturbed_shares, told.all_runs), strict=True)]
    is_told = any(abs(100 * share - int(match["share"])) <= 0.51 for share in least)
    return is_told and (match["all"] is not None) == (len(told.all_runs) > 1)


@of_each_run
def are_beyond_the_frame(run, match):
    """So many completed checkpoints have a subtask with so large a part of an in-memory log."""
    frame = parse_flink_size(dict(run.scenario.written_keys).get("pekko.framesize", "10 mb"))
    logs = {
        own.name
        for own in run.scenario.job.vertices
        if own.state and own.state.changelog and own.state.changelog.in_memory
    }
    done = {row["id"] for _, row in run.checkpoints.iterrows() if row["status"] == "COMPLETED"}
    sizes = Counter[int]()
    for _, row in run.subtasks.iterrows():
        if row["vertex"] in logs and row["id"] in done:
            sizes[row["id"]] = max(sizes[row["id"]], row["checkpointed_size"])
    beyond = [size for size in sizes.values() if size > frame]
    told_so = (int(match["beyond"]), int(match["of"]), match["frame"], match["largest"])
    return told_so == (len(beyond), len(done), bytes_text(frame), bytes_text(max(beyond, default=0)))


@of_each_run
def is_out_of_order(run, match):
    """Each restart restores that checkpoint, and none completes between the first and the last failure."""
    restored = [entry.checkpoint or 0 for entry in run.journal if entry.event_type is EventType.JOB_RESTORED]
    failed = run.recoveries["failed"]
    found = ("All" if len(failed) == len(restored) else "The first", len(restored), {*restored})
    is_between = any(failed.min() < at < failed.max() for at in moments_ms(run, EventType.COMPLETED))
    return not is_between and found == (match["which"], int(match["count"]), {int(match["checkpoint"] or 0)})


@of_each_run
def come_within(run, match):
    """So many failures in the journal lie within the interval of the strategy, one more than tolerated if the job fails."""
    restart, failed_ms = run.scenario.restart, moments_ms(run, EventType.JOB_RESTARTING, EventType.GIVEN_UP)
    within_ms = restart.rate_interval_ns / 1e6
    most = max(sum(0 <= ms - first <= within_ms for ms in failed_ms) for first in failed_ms)
    fails = run.job_status.startswith("FAILED") and most > restart.rate
    found = (str(most), str(restart.rate), fails)
    has_others = (run.recoveries["deployments"] > 1).any()
    return (
        same_ms(match["within"], within_ms)
        and (*match.group("count", "rate"), match["fails"] is not None) == found
        and (match["others"] is not None) == has_others
    )


@of_each_run
def has_no_room(run, match):
    """A restart has read so much, and two copies on all disks would not fit in so much room."""
    read, disk = run.recoveries["restored_bytes"].max(), run.scenario.storage.disk
    found = (bytes_text(read), bytes_text(disk.space_bytes))
    return (
        run.scenario.checkpoint.state.local_recovery
        and match.group("most", "room") == found
        and read > disk.space_bytes
    )


@of_each_run
def reads_no_state(run, match):
    """So many restarts of the whole job read no bytes from storage, and the most that others read is named."""
    tasks = sum(vertex.parallelism for vertex in run.scenario.job.vertices)
    rows = [row for row in run.recoveries.to_dict("records") if row["running"] >= 0 and row["tasks"] == tasks]
    read = [row["restored_bytes"] for row in rows if row["restored_checkpoint"] > 0]
    found = (str(read.count(0)), str(len(read)), bytes_text(max(read)) if max(read) else None)
    is_free = run.scenario.storage.disk.bytes_per_second is None
    is_local = run.scenario.checkpoint.state.local_recovery and bool(match["free"]) == is_free
    return is_local and match.group("local", "all", "most") == found


def runs_before(told, match):
    """So much is read back at most, some restarted tasks run before the next checkpoint has stored it again, and versions are right."""
    return all(
        runs[0].scenario.checkpoint.during_recovery
        and bool(match["disk"]) == (runs[0].scenario.cluster.version in ("2.4", "2.5"))
        and match["most"] == bytes_text(runs[0].recoveries["recovered_bytes"].max())
        for runs in told.about(match)
    )


@of_each_run
def uses_attempts(run, match):
    """The strategy allows so many, and the journal has as many failures that restarted the job, which lives if one may still come."""
    used = len(moments_ms(run, EventType.JOB_RESTARTING))
    most = run.scenario.restart.attempts
    is_right = (most, used, most + 1) == tuple(map(int, match.group("most", "used", "next")))
    is_right &= match["reset"] is None or same_ms(match["reset"], run.scenario.restart.reset_ns / 1e6)
    return is_right and run.job_status.startswith("FAILED") == (match["comes"] is None)


@of_each_run
def results_are_late(run, match):
    """Between two samples with output of the window it has none, and the source none from the end of the next window on."""
    begin_s, end_s = number(match["from"]) / 1e3, number(match["to"]) / 1e3
    rows = run.series.groupby(["vertex", "time"])[["numBytesOutPerSecond", "numRecordsInPerSecond"]].sum()
    out, read = rows.loc[match["at"], "numBytesOutPerSecond"], rows.loc[match["of"], "numRecordsInPerSecond"]
    window, source = run.scenario.job.vertex(match["at"]).window, run.scenario.job.vertex(match["of"]).source
    ends_s = np.arange(window.phase_ns, run.ended_ns, window.step_ns) / 1e9
    due_s = ends_s[ends_s > begin_s].min()
    quiet = out[(out.index > begin_s) & (out.index <= end_s)]
    return (
        (begin_s == 0 or out.get(begin_s, 0) > 0)
        and (out.get(end_s + 1, 0) > 0 or end_s + 1 == out.index[-1])
        and not quiet.any()
        and not read[(read.index > due_s) & (read.index < end_s)].any()
        and same_ms(match["late"], 1e3 * (end_s - due_s))
        and (match["advice"] is not None) == (not source.watermark.idle_timeout_ns and end_s - due_s > 10)
    )


@of_each_run
def failed_for_good(run, match):
    """The journal gives the job up; of the completed checkpoints the named one was triggered last, then."""
    done = run.checkpoints[run.checkpoints["status"] == "COMPLETED"].sort_values("id")
    if not run.job_status.startswith("FAILED") or (match["id"] is None) != done.empty:
        return False
    return done.empty or (int(match["id"]), True) == (
        int(done["id"].iloc[-1]),
        same_ms(match["ms"], done["trigger_timestamp"].iloc[-1]),
    )


@of_each_run
def restart_delay_grew(run, match):
    """Each failure multiplies the delay, up to the longest one, within its jitter, as none follows a quiet time of the reset."""
    restart = run.scenario.restart
    begun_ms = moments_ms(run, EventType.JOB_RESTARTING)
    last_ns = min(restart.initial_ns * restart.multiplier ** (len(begun_ms) - 1), restart.max_ns)
    spread = float(restart.jitter) + 0.05
    is_reset = any(later - earlier > restart.reset_ns / 1e6 for earlier, later in pairwise(begun_ms))
    return (
        restart.strategy == "exponential-delay"
        and not is_reset
        and same_ms(match["reset"], restart.reset_ns / 1e6)
        and all(
            (1 - spread) * expected_ns <= parse_duration(text) <= (1 + spread) * expected_ns
            for text, expected_ns in ((match["first"], restart.initial_ns), (match["last"], last_ns))
        )
    )


@of_each_run
def has_all_requests(run, match):
    """Little's law: requests under way are what the vertex reads per second times their latency, close to all that it may have."""
    vertex = run.scenario.job.vertex(match["at"])
    if vertex.async_io is None or int(match["capacity"]) != vertex.async_io.capacity:
        return False
    latency_s = vertex.async_io.latency.mean / 1e9
    read = run.tasks.loc[run.tasks["vertex"] == match["at"], "numRecordsIn"].sum() / (run.ended_ns / 1e9)
    all_requests = vertex.parallelism * vertex.async_io.capacity
    return bool(
        same_ms(match["latency"], 1e3 * latency_s)
        and abs(number(match["rate"]) * latency_s / all_requests - 1) < 0.05
        and read * latency_s > 0.9 * all_requests
    )


@of_each_run
def longest_of_timeout(run, match):
    longest = run.checkpoints.loc[run.checkpoints["status"] == "COMPLETED", "end_to_end_duration"].max()
    return (
        same_ms(match["took"], longest)
        and same_ms(match["timeout"], run.scenario.checkpoint.timeout_ns / 1e6)
        and not any("expired" in entry.detail.lower() for entry in run.journal if entry.event_type is EventType.ABORTED)
    )


@of_each_run
def regions_keep_parts(run, match):
    """Tasks of failed regions have parts of older checkpoints in these completed ones, the oldest as stated."""
    done = {*run.checkpoints.loc[run.checkpoints["status"] == "COMPLETED", "id"]}
    ages = {}
    for entry in run.journal.only({EventType.PART_REPLACED}):
        if entry.checkpoint in done:
            ages.setdefault(entry.checkpoint, []).append(entry.checkpoint - entry.number)
    oldest = max(chain.from_iterable(ages.values()))
    of, part = int(match["of"]), int(match["part"])
    return [len(ages), len(done), oldest] == [int(match["n"]), int(match["m"]), of - part] and oldest in ages[of]


@of_each_run
def full_size_grows(run, match):
    """Both checkpoints have these full sizes; whether it still grows, and how much, in the second half."""
    rows = {row["id"]: row for row in run.checkpoints.to_dict("records") if row["status"] == "COMPLETED"}
    sizes = [row["state_size"] - row["persisted_data"] for row in rows.values() if not row["savepointFormat"]]
    first, last = (rows[int(match[name])] for name in ("first", "last"))
    found = [bytes_text(row["state_size"] - row["persisted_data"]) for row in (first, last)]
    half = np.array(sizes[len(sizes) // 2 :])
    grows = (np.diff(half) > 0).all() or half[-1] > 1.05 * half[: len(half) // 2].max()
    each = bytes_text(np.diff(half).mean()) if grows else None
    if match["restarts"]:  # the list is not cleared, so each restart multiplies it
        unions = [own.union_state for own in run.scenario.job.vertices if own.union_state]
        is_union = not run.recoveries.empty and not all(union.clears for union in unions)
        return is_union and [match["low"], match["high"]] == found
    return [match["low"], match["high"], match["each"]] == [*found, each]


@of_each_run
def worked_off_after(run, match):
    """So much waits then, and a tenth of it or less for the first time in the sample after that wait, or in none."""
    waits = run.series.groupby("time")["backlog"].sum().to_dict()
    tops = [time for time in waits if same_ms(match["at"], 1e3 * time) and same_count(match["most"], waits[time])]
    ends = [time for top in tops for time, count in waits.items() if time > top and count <= waits[top] / 10]
    is_open = (match["how"] == "more", match["open"] is not None) == (not ends, not ends)
    if match["at_source"]:
        own = run.series[(run.series["vertex"] == match["at_source"]) & run.series["time"].isin(tops)]["backlog"]
        is_open &= own.max() >= 0.9 * max(waits[top] for top in tops)
        is_open &= int(match["n"]) == sum(vertex.source is not None for vertex in run.scenario.job.vertices)
    return tops and is_open and same_ms(match["wait"], 1e3 * min(ends, default=max(waits)) - 1e3 * tops[0])


def lags_differ(told, match):
    """No source waits longer with any strategy, and with the other one that source waits least."""
    waits_s = {
        label: runs[0].series[runs[0].series["time"] * 1e3 > told.warmup_ms(runs[0])].groupby("vertex")["lag"].max()
        for label, runs in told.comparison.results.items()
    }
    own_s = {label: waits.get(match["source"], math.nan) for label, waits in waits_s.items()}
    least_s = own_s.get(match["early"], math.nan)
    return (
        same_ms(match["most"], 1e3 * max(waits.max() for waits in waits_s.values()))
        and same_ms(match["most"], 1e3 * own_s.get(match["late"], math.nan))
        and least_s == min(own_s.values())
        and (same_ms(match["least"], 1e3 * least_s) if match["least"] else least_s == 0)
        and all(run.recoveries.empty for runs in told.all_runs for run in runs)
    )


@of_each_run
def writes_files(run, match):
    """So many files were written for each later snapshot, and per hour over whole intervals; those in one physical file count once."""
    rows = run.files[run.files["scope"] != "savepoint"]
    is_later = [pair not in first_uploads(run) for pair in zip(rows["checkpoint"], rows["owner"], strict=True)]
    later = rows[is_later] if any(is_later) else rows
    counts = later.groupby(["owner", "checkpoint"]).size()
    done = run.checkpoints[(run.checkpoints["status"] == "COMPLETED") & (run.checkpoints["savepointFormat"] == "")]
    without = len({*done["id"]} - {*rows["checkpoint"]})
    if (int(match["none"] or 0), int(match["n"] or len(done))) != (without, len(done)):
        return False
    triggers, end_ms = sorted(triggers_ms(run)), run.ended_ns / 1e6
    span = (triggers[0], triggers[-1]) if is_steady(triggers, end_ms) else (-1, end_ms)
    every = run.checkpoints[run.checkpoints["trigger_timestamp"].between(*span, inclusive="right")]
    is_counted = rows["checkpoint"].isin(every["id"]).to_numpy()
    hours = (span[1] - max(span[0], 0)) / 3.6e6
    if match["physical"]:
        names = [
            str(inside) if inside >= 0 else path for inside, path in zip(rows["physical"], rows["path"], strict=True)
        ]
        found = rows.assign(name=names).loc[later.index].groupby(["owner", "checkpoint"])["name"].nunique().median()
        hourly = len({*compress(names, is_counted)}) / hours
        return (
            run.scenario.storage.merging is not None
            and same_count(match["each"], counts.median())
            and same_count(match["physical"], found)
            and same_count(match["all"], hourly)
        )
    return same_count(match["each"], counts.median()) and same_count(match["all"], is_counted.sum() / hours)


def metadata_fails(told, match):
    row = told.row(match)
    return (
        row["num_acknowledged_subtasks"] == row["num_subtasks"]
        and row["failure_message"] == "FINALIZE_CHECKPOINT_FAILURE"
    )


def first_upload(told, match):
    """It wrote so much in that time, and is not among those that other sentences are about."""
    row = told.row(match)
    others = [
        other["id"]
        for other in told.periodic([told.run_of(match)], "COMPLETED")
        if other.get("x_job") == row.get("x_job")
    ]
    is_apart = row["id"] not in others and row["status"] == "COMPLETED"
    return (
        is_apart
        and same_ms(match["took"], row["end_to_end_duration"])
        and match["size"] == bytes_text(row["checkpointed_size"])
    )


def some_restart(told, match):
    """Two strategies at least restart and live."""
    alive = [runs for runs in told.all_runs if not any(run.job_status.startswith("FAILED") for run in runs)]
    return sum(any(len(run.recoveries) for run in runs) for runs in alive) > 1


def fails_at_unlike_times(told, match):
    """By how much of the interval a failure comes after the latest trigger, its own rounding aside, on average."""
    shares = []
    for of, stated in (("a", "p"), ("b", "q")):
        runs, passed = told.runs(match[of]), []
        for run in runs:
            triggers = run.checkpoints.loc[run.checkpoints["savepointFormat"] == "", "trigger_timestamp"]
            failures = run.recoveries.loc[~run.recoveries["kind"].isin(PLANNED_RESTARTS), "failed"]
            since_ms = [failed - triggers[triggers <= failed].max() for failed in failures]
            passed += [min(1e6 * ms / run.scenario.checkpoint.interval_ns, 1) for ms in since_ms if not math.isnan(ms)]
        shares.append(sum(passed) / len(passed))
        if abs(100 * shares[-1] - float(match[stated])) > 0.51:
            return False
    return abs(shares[0] - shares[1]) > 0.0999


def costs_the_same(told, match):
    """Every strategy that failed and runs or finished: medians of downtime within noise, of replayed records within a tenth."""
    down, replayed = [], []
    for runs in told.all_runs:
        if not any(run.job_status.startswith("FAILED") for run in runs):
            if ran := [restart for restart in costs_of(runs) if restart[-1]["running"] >= 0]:
                down.append(median(rows[-1]["running"] - rows[0]["failed"] for rows in ran))
                replayed.append(median(sum(row["replayed_records"] for row in rows) for rows in ran))
    return max(down) - min(down) < max(100.0, 0.1 * max(down)) and max(replayed) <= 1.1 * min(replayed)


def triggers_of_requests_s(told, run):
    """Of periodic checkpoints after the first upload."""
    rows = run.checkpoints[run.checkpoints["savepointFormat"] == ""]
    first = [pair in first_uploads(run) for pair in zip(rows["id"], rows.get("x_job", 0 * rows["id"]), strict=True)]
    ended_ms = (rows["trigger_timestamp"] + rows["end_to_end_duration"])[first].max()
    begin_ms = max(told.warmup_ms(run), 0 if math.isnan(ended_ms) else ended_ms)
    return sorted(rows.loc[rows["trigger_timestamp"] >= begin_ms, "trigger_timestamp"] / 1e3)


@of_each_strategy
def has_few_intervals_of_requests(told, match, runs):
    """Between the triggers of the checkpoints, or one more if they begin and end with the run."""
    count = fmean(len(triggers_of_requests_s(told, run)) for run in runs)
    return number(match["count"]) < 10 and -1.5 < number(match["count"]) - count < 1


@of_each_strategy
def requests_grow(told, match, runs):
    """Parts and files of whole seconds between the first trigger and the last."""
    halves = np.zeros(2)
    for run in runs:
        first_s, *_, last_s = map(math.floor, triggers_of_requests_s(told, run))
        middle_s = (first_s + last_s) // 2
        for half, (begin_s, end_s) in enumerate(((first_s, middle_s), (middle_s, last_s))):
            counted = run.tables["requests"]["time"].between(begin_s, end_s, inclusive="left")
            halves[half] += run.tables["requests"].loc[counted, "put"].sum() / (end_s - begin_s)
    return abs(100 * (halves[1] / halves[0] - 1) - float(match["share"])) <= 1 and halves[1] > 1.09 * halves[0]


def have_too_few_intervals(told, match):
    """Fewer fit into each run of these, also if it began when the warm-up does; they all fit into the longer run, and hardly more."""
    intervals_ms = {
        name: told.runs(name)[0].scenario.checkpoint.interval_ns / 1e6
        for name in told.names
        if told.durations(told.runs(name))
    }
    named = re.split(", | and ", match["names"].lower())
    lengths = [ms for name, ms in intervals_ms.items() if name.lower() in named]
    warmup_ms = max(told.warmup_ms(run) for name in intervals_ms if name.lower() in named for run in told.runs(name))
    fitting = [
        (run.ended_ns / 1e6 - told.warmup_ms(run)) / run.scenario.checkpoint.interval_ns * 1e6
        for name in intervals_ms
        if name.lower() in named
        for run in told.runs(name)
    ]
    needed_ms = warmup_ms + int(match["few"]) * max(lengths)
    is_enough = 0 <= number(match["longer"]) - needed_ms < (1e3 if needed_ms <= 3e5 else 6e4)
    return int(match["few"]) == 3 and max(fitting) < 3 and min(lengths) > min(intervals_ms.values()) and is_enough


def costs_of(runs):
    """The failures with their attempts; or the planned restarts, where nothing failed."""
    restarts = [restart for run in runs for restart in restarts_with_attempts(run)]
    return [rows for rows in restarts if rows[0]["kind"] not in PLANNED_RESTARTS] or restarts


def restarts_with_attempts(run):
    """The restarts of a run: a failure, and those that follow before the job runs again; of tasks that fail at once, the last."""
    found = []
    at_once = {row["failed"]: row for row in sorted(run.recoveries.to_dict("records"), key=lambda row: row["failed"])}
    for row in at_once.values():
        last = found[-1][-1] if found else None
        is_planned = row["kind"] in PLANNED_RESTARTS
        if last is None or last["running"] >= 0 or (last["kind"] in PLANNED_RESTARTS) != is_planned:
            found.append([])
        found[-1].append(row)
    return found


def replays(told, match):
    """The median over its failures, or over planned restarts where nothing failed; and its largest lag."""
    runs = told.runs(match["of"])
    ran = [own for own in costs_of(runs) if own[-1]["running"] >= 0] or costs_of(runs)
    ran = [sum(row["replayed_records"] for row in own) for own in ran]
    lags_ms = [(1e3 * run.series["lag"].max(), run.recoveries["lag_at_start"].max()) for run in runs]
    lag_ms = float(np.nanmax(lags_ms))  # without a lag in any second it is not known
    return (
        same_count(match["records"], median(ran))
        and (same_ms(match["lag"], lag_ms) if match["lag"] else not lag_ms)
        and any(abs(100 * share - int(match["share"])) <= 0.51 for share in disturbed_shares(runs))
    )


def disturbed_shares(runs):
    """Shares of the time from failures until the job has caught up; and to the end, if a backlog is not worked off after the first one."""
    disturbed, to_the_end = 0.0, 0.0
    for run in runs:
        own = sorted(run.recoveries.to_dict("records"), key=lambda row: row["failed"])
        # not every replication has a failure
        ends = [*(row["failed"] for row in own[1:]), run.ended_ns / 1e6] if own else []
        caught_up = [row["caught_up"] if row["caught_up"] >= 0 else end for row, end in zip(own, ends, strict=True)]
        lasted = sum(map(min, ends, caught_up)) - sum(row["failed"] for row in own)
        disturbed += lasted
        waiting = run.series.groupby("time")["backlog"].sum()
        before = waiting[waiting.index <= own[0]["failed"] / 1e3] if own else waiting
        is_left = own and waiting.iloc[len(before) :].min() > before.max() / 10 > 0
        to_the_end += run.ended_ns / 1e6 - own[0]["failed"] if is_left else lasted
    return [1e6 * time / sum(run.ended_ns for run in runs) for time in (disturbed, to_the_end)]


def served(told, name):
    return fmean(run.tasks["numRecordsIn"].sum() / run.ended_ns for run in told.runs(name))


def none_is_over(told, match):
    return all(run.job_status == "RUNNING" for runs in told.all_runs for run in runs)


def serves(told, match):
    """The first serves more, by all that its tasks have read, and by as many times as is printed."""
    ratio = number(match["more"]) / number(match["less"])
    return ratio > 1 and abs(served(told, match["high"]) / served(told, match["low"]) / ratio - 1) < 0.1


def throughput_changes(told, match):
    """By so much between two of the strategies, in the direction of the word."""
    change = float(match["change"].replace("±", "")) / 100
    word = "is the same" if abs(change) < 0.0155 else "rises" if change > 0 else "drops"
    found = [
        served(told, one) / served(told, other) - 1 for one in told.names for other in told.names if served(told, other)
    ]
    if match["change"].startswith("±") and change:
        return False  # a change has a sign
    return match["word"] == word and any(abs(change - own) < 0.03 for own in found)


def serves_instead(told, match):
    """One of the strategies has no record for its sinks, another one so many per second after the warm-up."""
    found = []
    for runs in told.all_runs:
        read = {up for up, _ in runs[0].scenario.job.edges}
        rows = [run.series[(run.series["time"] > told.warmup_ms(run) / 1e3)] for run in runs]
        sinks = [own[~own["vertex"].isin(read)].groupby("time")["numRecordsInPerSecond"].sum().mean() for own in rows]
        found.append(fmean(sinks))
    numbers = [number(match[name]) for name in ("more", "less")]
    return min(numbers) == 0 in found and any(abs(max(numbers) - own) <= 0.02 * own for own in found if own)


def checkpoints_cost(told, match):
    """Beside the same job without checkpoints: of all vertices, or of the last one, which a source may be far ahead of."""
    (run, *_), (bare,) = (
        next(runs for runs in told.all_runs if runs[0].scenario.checkpoint.interval_ns),
        told.comparison.baselines.values(),
    )
    last = run.scenario.job.vertices[-1].name
    changes = [
        now["numRecordsIn"].sum() / run.ended_ns / (before["numRecordsIn"].sum() / bare.ended_ns) - 1
        for now, before in (
            (run.tasks, bare.tasks),
            [own.tasks[own.tasks["vertex"] == last] for own in (run, bare)],
        )
        if before["numRecordsIn"].any()
    ]
    printed = (
        0.0
        if match["cost"] is None and match["change"] is None
        else -float(match["cost"] or 0) or float(match["change"] or 0)
    )
    has_savepoints = ((run.checkpoints["savepointFormat"] != "") & (run.checkpoints["status"] != "IN_PROGRESS")).any()
    is_named = (match["both"] or match["both_too"]) is not None
    return any(abs(change - printed / 100) < 0.03 for change in changes) and is_named == has_savepoints


def writes_in_no_time(told, match):
    """The largest share of a subtask, of keyed state or of files, where the scenario gives storage no rate."""
    shares = []
    for run in (runs[0] for runs in told.all_runs):
        if run.scenario.storage.bytes_per_second is None:
            shares += [own.state.bytes / own.parallelism for own in run.scenario.job.vertices if own.state]
            shares += [own.flush.bytes for own in run.scenario.job.vertices if own.flush]
    return match["size"] == bytes_text(max(shares))


def in_a_row(told, match):
    """The longest stretch of failures in the journal without a completed one, of a strategy that tolerates so many, and no restart."""
    for run in (run for runs in told.all_runs for run in runs):
        failed = {
            row["id"] for row in told.periodic([run], "FAILED", uploads=True) if row["failure_message"] not in CUT_SHORT
        }
        over = [entry for entry in run.journal if entry.event_type in (EventType.COMPLETED, EventType.ABORTED)]
        # one that a restart cut off ends a stretch here
        marks = ["x" if entry.checkpoint in failed else " " for entry in over]
        stretches = "".join(marks).split()
        is_told = (
            str(max(map(len, stretches), default=0)) == match["n"]
            and str(run.scenario.checkpoint.tolerable_failed) == match["most"]
        )
        if is_told and not (run.recoveries["kind"] == "checkpoints").any():
            return True
    return False


def failures_do_not_count(told, match):
    """Of a strategy that tolerates so many, all failed checkpoints failed because no task answered their trigger."""
    for runs in told.all_runs:
        reasons = [
            row["failure_message"]
            for row in told.periodic(runs, "FAILED", uploads=True)
            if row["failure_message"] not in CUT_SHORT
        ]
        is_one = len(reasons) == len(runs)
        if {*reasons} == {"TRIGGER_CHECKPOINT_FAILURE"} and is_one == (match["one"] == "it does"):
            if str(runs[0].scenario.checkpoint.tolerable_failed) == match["most"]:
                return not any((run.recoveries["kind"] == "checkpoints").any() for run in runs)
    return False


def restarts_by_failed_checkpoints(told, match):
    """Some strategy has so many restarts with that cause in the journal; those from the beginning restore no checkpoint."""
    count = int(match["n"] or 1)
    from_beginning = 0 if match["place"] is None else int(match["part"] or count)
    for runs in told.all_runs:
        causes = [cause for run in runs for cause in run.recoveries["cause"]]
        numbers = [
            (run.recoveries["restart"].iloc[i], run)
            for run in runs
            for i, cause in enumerate(run.recoveries["cause"])
            if cause.startswith("tolerable failed checkpoints exceeded")
        ]
        fresh = [
            number
            for number, run in numbers
            if any(
                entry.event_type is EventType.JOB_RESTORED and entry.number == number and not entry.checkpoint
                for entry in run.journal
            )
        ]
        most = {run.scenario.checkpoint.tolerable_failed for run in runs}
        if causes and len(numbers) == count and len(fresh) == from_beginning and most == {int(match["most"] or 0)}:
            return True
    return False


def some_fail(told, match):
    return any(told.periodic(runs, "FAILED", uploads=True) for runs in told.all_runs)


def some_completed(told, match):
    return any(told.periodic(runs, "COMPLETED", uploads=True) for runs in told.all_runs)


def stands_still(told, match):
    rows = [row for runs in told.all_runs for run in runs for row in run.checkpoints.to_dict("records")]
    return any(row["x_standstill"] and row["status"] != "COMPLETED" for row in rows)


def passes_when_aligned(told, match):
    """The same run with aligned barriers: nothing stands still."""
    run = next(run for runs in told.all_runs for run in runs if run.checkpoints["x_standstill"].any())
    checkpoint = replace(run.scenario.checkpoint, barriers=Barriers("aligned"))
    return not simulate(replace(run.scenario, checkpoint=checkpoint), check=False).checkpoints["x_standstill"].any()


def falls_short(told, match):
    """Records were due that its sources did not emit, ever more of them until the first failure; and the vertex is as busy as is said."""
    until_s = number(match["until"]) / 1e3 if match["until"] else np.inf
    for run in told.comparison.results[match["label"]]:
        stops = [action.at_ns / 1e6 for action in run.scenario.actions if action.stop]
        if match["until"] and not same_ms(
            match["until"], run.recoveries["failed"].min(), *moments_ms(run, EventType.FAULT), *stops
        ):
            return False
        if (match["held"] is not None) != (re.search(r"\]?' is busy [1-4]?\d %", match["load"]) is not None):
            return False
        since_s = number(match["since"]) / 1e3 if match["since"] else 0
        rows = run.series[(run.series["time"] <= until_s) & (run.series["time"] > since_s)]
        of = rows if match["source"] is None else rows[rows["vertex"] == match["source"]]
        waiting = of.groupby("time")["backlog"].sum()
        if waiting.empty:
            return False
        seconds, begun = float(waiting.index[-1] - waiting.index[0]), waiting.iloc[len(waiting) // 2]
        short = (waiting.iloc[-1] - waiting.iloc[0]) / seconds
        if waiting.iloc[-1] > begun and abs(short - (number(match["due"]) - number(match["emitted"]))) <= 0.1 * number(
            match["due"]
        ):
            name, busy = re.search(r"'([^']+)'.* busy (\d+) %", match["load"]).groups()
            busy_since = rows.loc[rows["vertex"] == name, "busy"].mean()
            return load_is(told, match) if not since_s else abs(int(busy) / 100 - busy_since) <= 0.03
    return False


def medians_are_the_same(told, match):
    return all(same_ms(match["all"], median(told.durations(runs))) for runs in told.all_runs if told.durations(runs))


def triggers_ms(run):
    return [entry.time_ns / 1e6 for entry in run.journal if entry.event_type is EventType.TRIGGERED]


def none_due(told, match):
    """The journal of no run has a trigger, and nothing of the vertices that are named became visible."""
    hidden, job = re.findall(r"'([^']+)'", match["hidden"] or ""), told.all_runs[0][0].scenario.job
    if any(job.vertex(name).commit is None for name in hidden):
        return False
    return not any(
        triggers_ms(run) or run.commits["vertex"].isin(hidden).any()
        for runs in told.listed(match["names"])
        for run in runs
    )


def triggered_late(told, match):
    """Triggers are so far apart in the median, or once where one waits for an older one; interval and pause are those of the scenario."""
    runs = told.runs(match["of"])
    options = runs[0].scenario.checkpoint
    apart = [b - a for run in runs for a, b in pairwise(triggers_ms(run))]
    if match["concurrent"] is not None and int(match["concurrent"]) != options.max_concurrent:
        return False
    is_pause = match["pause"] is None or same_ms(match["pause"], options.min_pause_ns / 1e6)
    done = [row["status"] == "COMPLETED" for row in told.periodic(runs, "COMPLETED", "FAILED", uploads=True)]
    is_pause &= match["begins"] is None or match["begins"].startswith("starts") == (2 * sum(done) >= len(done))
    if match["longest"]:
        waits = match["pause"] or match["concurrent"] or match["expires"]
        if not (is_pause and same_ms(match["interval"], options.interval_ns / 1e6)):
            return False
        if not match["restarts"]:
            return waits_once(match, runs) if waits else same_ms(match["longest"], *apart)
    periodic = [sorted(row["trigger_timestamp"] for row in told.periodic([run], uploads=True)) for run in runs]
    gaps = [b - a for times in periodic for a, b in pairwise(times)]
    if match["apart"] and 4 * sum(1 / 1.26 < gap / median(apart) < 1.26 for gap in gaps) < 3 * len(gaps):
        return False
    if match["restarts"]:
        moments, min_ms = EventType.JOB_RESTARTING, 0.99 * number(match["longest"] or match["interval"])
        late = [(run, a, b) for run in runs for a, b in pairwise(triggers_ms(run)) if b - a > min_ms]
        if 2 * sum(any(a < at < b for at in moments_ms(run, moments)) for run, a, b in late) <= len(late):
            return False
        if match["longest"]:
            return same_ms(match["longest"], *apart)
    expire = [row["failure_message"] == "CHECKPOINT_EXPIRED" for row in told.periodic(runs, uploads=True)]
    return (
        same_ms(match["apart"], median(apart))
        and same_ms(match["interval"], options.interval_ns / 1e6)
        and is_pause
        and (match["expires"] is None or sum(expire) > len(expire) / 3)  # others lie before the end of the warm-up
    )


def waits_once(match, runs):
    """Two triggers are so far apart, an older checkpoint ends shortly before the second, and others are nearer to each other."""
    options, found, apart = runs[0].scenario.checkpoint, [], []
    for run in runs:
        rows = sorted(
            (row for row in run.checkpoints.to_dict("records") if not row["savepointFormat"]),
            key=lambda row: row["trigger_timestamp"],
        )
        for i, (one, other) in enumerate(pairwise(rows), 1):
            apart.append(other["trigger_timestamp"] - one["trigger_timestamp"])
            older = rows[max(0, i - options.max_concurrent)]
            waits_ms = other["trigger_timestamp"] - older["trigger_timestamp"] - older["end_to_end_duration"]
            is_expired = older["failure_message"] == "CHECKPOINT_EXPIRED"
            if waits_ms <= (options.min_pause_ns + 0.11 * options.interval_ns) / 1e6 and is_expired >= bool(
                match["expires"]
            ):
                found.append(apart[-1])
    typical_ms = median(apart)
    are_alike = 4 * sum(1 / 1.24 < gap / typical_ms < 1.24 for gap in apart) >= 3 * len(apart)
    return same_ms(match["longest"], *found) and (
        len(apart) < 3 or typical_ms < 1.1 * number(match["interval"]) or not are_alike
    )


def long_savepoint(told, match):
    """Some run has that savepoint with that duration; if no checkpoint is triggered meanwhile, no trigger lies within it."""
    for run in (run for runs in told.all_runs for run in runs):
        rows = run.checkpoints[(run.checkpoints["id"] == int(match["id"])) & (run.checkpoints["savepointFormat"] != "")]
        others = told.periodic([run], "COMPLETED")
        usual = median([row["checkpointed_size"] for row in others] or [0])
        rows = rows[(rows["status"] == "FAILED") == (match["failed"] is not None)]
        for began, took, written in zip(
            rows["trigger_timestamp"], rows["end_to_end_duration"], rows["checkpointed_size"], strict=True
        ):
            is_alone = not any(began < at < began + took for at in triggers_ms(run))
            sizes = match["size"] in {None, bytes_text(written)}, match["usual"] in {None, bytes_text(usual)}
            if same_ms(match["took"] or match["failed"], took) and all(sizes) and (is_alone or not match["alone"]):
                return follow_savepoint(run, match, began, began + took)
    return False


def follow_savepoint(run, match, began_ms, ended_ms):
    """So many are triggered, each as soon as the one before ends, and the longest lag is that of the time until then."""
    if match["following"] is None:
        return match["lag"] is None
    count, interval_ms = int(match["following"]), (run.scenario.checkpoint.interval_ns or 0) / 1e6
    after = [at for at in triggers_ms(run) if at >= ended_ms][:count]
    done = run.checkpoints[run.checkpoints["trigger_timestamp"].isin(after)]
    ends = [ended_ms, *(done["trigger_timestamp"] + done["end_to_end_duration"])]
    until = float(np.nanmax(ends))
    series = run.series[(run.series["time"] * 1e3 >= began_ms) & (run.series["time"] * 1e3 <= until)]
    return (
        len(after) == count
        and same_ms(match["within"], until - ended_ms)
        and all(at - end <= interval_ms / 10 for end, at in zip(ends, after, strict=False))
        and (match["lag"] is None or same_ms(match["lag"], 1e3 * series["lag"].max()))
        and (match["decide"] is None or 2 * count > (run.checkpoints["savepointFormat"] == "").sum() - 2)
    )


@of_each_run
def were_changed(run, match):
    """By an action of that time, and what no action has changed is as the file says."""
    options, updates = run.scenario.checkpoint, run.scenario.checkpoint_updates
    due = [update for update in updates if same_ms(match["at"], update.at_ns / 1e6)]
    interval_ns, timeout_ns = options.interval_ns, options.timeout_ns
    for update in updates[: updates.index(due[0]) + 1] if due else ():
        interval_ns, timeout_ns = update.interval_ns or interval_ns, update.timeout_ns or timeout_ns
    said = parse_duration(match["interval"]), parse_duration(match["timeout"])
    return bool(due) and said == (interval_ns, timeout_ns)


def template(name, pattern, claim, when=always):
    return Template(name, pattern, when, claim)


ABOUT = r"(?:(?P<names>NAMES): )?"
TOOK = r"takes (?P<took>MS) of the (?P<whole>MS) of CHECKPOINT"
AT = r"'(?P<at>[^']+)'"
TEMPLATES = (
    template(
        "finishes",
        r"The job finishes at (?P<at>MS)(?: with (?P<names>NAMES))?(?:, and at (?P<late_at>MS) with (?P<late>NAME))?"
        r"(?:; with (?P<others>NAMES) it does not)?(?=\.)",
        finishes,
        some_finish,
    ),
    template(
        "after the last record",
        r"With (?P<of>NAME) the job ends (?P<ms>MS) and (?P<count>COUNT) checkpoints after its last record",
        passes_after_the_last_record,
        finished,
    ),
    template(
        "few with the end",
        r"Not compared: (?P<names>NAMES), where the final checkpoint is one of few",
        lambda told, match: all(
            len(rows := told.periodic(runs, "COMPLETED")) < 4
            and rows[-1]["trigger_timestamp"] >= (end_of_data_ns(runs[0]) or 0) / 1e6
            for runs in told.listed(match["names"])
        ),
        finished,
    ),
    template(
        "changed at run time",
        ABOUT
        + r"From (?P<at>MS) on checkpoints have an interval of (?P<interval>[\d.]+ \w+) and a timeout of (?P<timeout>[\d.]+ \w+): "
        r"the user changes them while the job runs \(actions\)",
        were_changed,
    ),
    template("holds the end", r"CHECKPOINT is the final one and completes in (?P<took>MS)", holds_the_end),
    template(
        "no checkpoint holds the end",
        r"With (?P<names>NAMES) no final checkpoint completes",
        no_checkpoint_holds_the_end,
        finished,
    ),
    template("commits less", r"(?P<of>NAME) commits (?P<less>COUNT) records of (?P<most>COUNT)", commits_less),
    template("checkpoints fail", r"With (?P<of>NAME) " + FATE, most_fail_so),
    template("other reasons", r"(?P<count>\d+) (?:expire|fail \((?P<reason>[\w ]+)\))", others_fail_so),
    template(
        "completes all",
        r"(?P<of>NAME) completes (?:its one|all (?P<n>\d+)) in (?P<ms>MS)"
        r"(?: in the median, the longest in (?P<longest>MS))?(?: and stores (?P<size>SIZE) of in-flight "
        r"data each)?",
        completes,
        stores,
    ),
    template(
        "none completes",
        r"No checkpoint completes with any strategy: each failure restarts the job from its beginning",
        lambda told, match: (
            not any(
                (run.checkpoints["status"] == "COMPLETED").any() or (run.recoveries["restored_checkpoint"] > 0).any()
                for runs in told.all_runs
                for run in runs
            )
        ),
        some_fail,
    ),
    template("hangs", r"With (?P<of>NAME) a checkpoint hangs", stands_still),
    template(
        "job fails",
        rf"With (?P<of>NAME) the job fails \((?P<why>.*?)\)(?: after {FATE})?(?=[;.,])",
        job_fails,
        has_status("FAILED", "RESTARTING"),
    ),
    template(
        "restarts forever",
        r"With (?P<of>NAME) the job restarts forever: .*?(?:; with (?P<others>NAME(?: or NAME)*) it does not)?"
        r"(?=\.(?:$| )|; '|; (?:barriers|even|in|work|the|snapshots|asynchronous|writing|messages|all) )",
        restarts_for_good,
        has_status("RESTARTING"),
    ),
    template(
        "cannot start",
        r"With (?P<of>NAME) job (?P<instance>\d+) cannot start[^;]*?(?:; with [\w ]+ it goes on)?(?=\.)",
        cannot_begin,
    ),
    template(
        "none completed",
        r"After the warm-up no checkpoint was completed: a restart or the end of the job interrupted them; run "
        r"longer",
        none_completed,
        interrupted,
    ),
    template(
        "none completed between failures",
        r"After the warm-up no checkpoint was completed: (?P<count>\d+) are interrupted by restarts, the longest after (?P<ms>MS): none is "
        r"over before the next failure",
        none_completed,
        restarts_interrupt_each,
    ),
    template(
        "none completed or failed",
        r"No checkpoint was completed or failed after the warm-up: run longer",
        nothing_ended,
    ),
    template(
        "none is due",
        r"No checkpoint is due: set checkpoint\.interval",
        lambda told, match: not any(told.periodic(runs) for runs in told.all_runs),
    ),
    template(
        "under way at the end",
        r"No checkpoint was completed or failed after the warm-up: CHECKPOINT has been under way for (?P<ms>MS) when the run ends, "
        r"so run longer",
        nothing_ended,
        under_way,
    ),
    template(
        "checkpoints end",
        r"With (?P<names>NAMES) checkpoints stop before the job does: none is triggered after (?P<at>MS), "
        r"and a failure restores that last one",
        ends_with_one_that_completed,
        runs_on,
    ),
    template(
        "none is due",
        r"With (?P<names>NAMES) checkpoints are off \(checkpoint.interval\): (?:output of (?P<hidden>'.*') never "
        r"becomes visible, and )?a failure finds none to restore, and ends the job unless restart\.strategy is written",
        none_due,
    ),
    template("none triggered", r"With (?P<names>NAMES) no checkpoint is triggered", none_triggered, runs_on),
    template(
        "takes",
        r"Checkpoints(?: of (?P<of>NAME))? take (?P<ms>MS)(?: to (?P<high>MS))?(?: in the median, the longest (?P<longest>MS))?",
        takes,
    ),
    template("nothing holds barriers up", r"nothing holds the barriers up" + LOAD, nothing_holds_barriers_up),
    template(
        "differ as repetitions do",
        r"the strategies differ by less than repetitions of one real job do \((?P<low>MS)(?: to (?P<high>MS))?\)",
        medians_are,
    ),
    template("same for all", r"checkpoints take (?P<all>MS) with all strategies", medians_are_the_same),
    template(
        "triggered late",
        r"(?:Checkpoints are triggered )?(?:every (?P<apart>MS)|up to (?P<longest>MS) apart)(?: with (?P<of>NAME))? instead of every "
        r"(?P<interval>MS)(?: \((?:min-pause, (?P<pause>MS), (?P<begins>starts when a checkpoint completes|"
        r"is the minimum interval; only a completed one starts a pause)|"
        r"(?:each|a checkpoint) waits for (?:the one before|an older one), as max-concurrent is (?P<concurrent>\d+)|"
        r"(?:each|a checkpoint) waits until the one before (?P<expires>expires)|"
        r"(?P<restarts>the job restarts in between))\))?",
        triggered_late,
    ),
    template(
        "long savepoint",
        r"(?:Canonical|Native) savepoint (?P<id>\d+)(?: \(NAME\))? (?:writes (?P<size>SIZE)(?: \(a checkpoint: (?P<usual>SIZE)\))? "
        r"and takes (?P<took>MS)|fails after (?P<failed>MS))"
        r"(?P<alone>, during which no checkpoint is triggered)?"
        r"(?:; (?P<following>\d+) overdue checkpoints follow it back to back, within (?P<within>MS)"
        r"(?P<decide>, and determine the median)?)?(?:; records wait up to (?P<lag>MS))?",
        long_savepoint,
    ),
    template(
        "not compared",
        r"Not compared: (?P<names>NAMES), with which '(?P<at>[^']+)' \([^)]*\) (?P<what>does not start|loses records)\.",
        bears_no_overtaking,
    ),
    template(
        "none is compared",
        r"A real job does not run like this: with barriers that overtake data '(?P<at>[^']+)' \([^)]*\) (?P<what>does not start|loses records)\. "
        r"As simulated:",
        bears_no_overtaking,
    ),
    template(
        "no output", r"With (?P<names>NAMES) no output of '(?P<at>[^']+)'[^.]* becomes visible in this run", no_output
    ),
    template("savepoint fails", r"CHECKPOINT fails after (?P<ms>MS)", fails_after, exists),
    template("savepoints are aligned", r"savepoints are always aligned", has_savepoint),
    template("medians alike", r"Medians are alike \((?P<low>MS)(?: to (?P<high>MS))?\), tails are not", medians_are),
    template("one in ten", r"One in ten takes (?P<ms>MS) or more(?: with (?P<of>NAME))?", slowest_tenth),
    template(
        "tail", r"the (?P<quantile>p99|longest) of (?P<of>NAME) is (?P<early>MS) instead of (?P<late>MS)", quantile_is
    ),
    template(
        "instead",
        r"(?P<of>NAME) checkpoints take (?P<early>MS) instead of (?P<late>MS)"
        r"(?: \(longest (?P<longest>MS)(?: instead of (?P<other>MS)|, as there)\))?"
        r"(?: and store (?P<size>SIZE) of in-flight data each)?",
        median_is,
    ),
    template(
        "queue",
        rf"Barriers of CHECKPOINT wait behind (?:(?P<all>MS) of queued data, )?(?P<took>MS) of (?:queued data|it) in front of {AT}{LOAD}",
        wait_in_queues,
        exists,
    ),
    template(
        "a firing window",
        rf"Barriers of CHECKPOINT wait (?P<took>MS) behind data in front of {AT}, or while its window fires{LOAD}",
        largest(*QUEUES),
        may_fire,
    ),
    template(
        "source thread",
        rf"{AT} takes the trigger of CHECKPOINT only after (?P<took>MS): its task thread is held up{LOAD}",
        largest(*QUEUES),
        completed,
    ),
    template(
        "no answer to the trigger",
        rf"{AT} does not answer the trigger of CHECKPOINT within (?P<took>MS), pekko.ask.timeout: its TaskManager is cut off",
        largest(*QUEUES),
        was_cut_off,
    ),
    template(
        "loss not known",
        r"task manager (?P<lost>\d+) is lost at (?P<at>MS), which the JobManager learns at (?P<known>MS): its tasks do not "
        r"acknowledge CHECKPOINT",
        was_lost_unknown,
    ),
    template(
        "source thread, no trigger",
        rf"{AT} does not take the trigger of CHECKPOINT within (?P<took>MS): its task thread is held "
        rf"up{LOAD}",
        largest(*QUEUES),
        was_given_up,
    ),
    template(
        "a committer",
        r"Barriers of CHECKPOINT wait (?P<took>MS) for '(?P<at>[^']+)', whose thread is at work on an older commit"
        + LOAD,
        commits_meanwhile,
        exists,
    ),
    template(
        "a commit in the chain",
        r"Barriers of CHECKPOINT wait (?P<took>MS) for the thread of '(?P<at>[^']+)', whose commit of an older checkpoint takes "
        rf"(?P<each>MS) \(commit\.time\), which none overtakes{LOAD}",
        commits_in_its_thread,
        exists,
    ),
    template(
        "deployments without slots",
        rf"{ABOUT}(?P<count>\d+) deployments? fails? for lack of slots \(NoResourceAvailableException\), and each uses an attempt of the "
        r"restart strategy: a (?:request for slots waits|standalone cluster waits for task managers only in the first) (?P<limit>MS)"
        r"(?: of a JobManager)? \(restart\.slot-timeout\)",
        of_each_run(
            lambda run, match: (
                int(match["count"])
                == sum(
                    row.event_type is EventType.DEPLOYMENT_FAILED and "no slots" in row.detail for row in run.journal
                )
                and same_ms(match["limit"], run.scenario.restart.slot_timeout_ns / 1e6)
            )
        ),
    ),
    template(
        "all slots are waited for",
        rf"{ABOUT}The simulation waits for all slots, because of the transactions or windows of processing time of {AT}; Flink goes on with the "
        r"slots that are left after (?P<stable>MS) \(restart\.stabilization\)",
        of_each_run(
            lambda run, match: (
                run.scenario.job.vertex(match["at"]).commit is not None
                and same_ms(match["stable"], run.scenario.restart.stabilization_ns / 1e6)
                and "rescale" not in set(run.recoveries["kind"])
            )
        ),
    ),
    template(
        "on fewer slots",
        rf"{ABOUT}The job runs on fewer slots (?:for (?P<ms>MS)|from (?P<since>MS) to the end of the run): it is rescaled "
        r"when slots are back, (?P<cool>MS) \(restart\.cooldown\) after it "
        r"began at the earliest, and then when a checkpoint has completed, 2 have failed \(restart\.rescale-failures\) or (?P<most>MS) are "
        r"over \(restart\.rescale-delay\)",
        of_each_run(
            lambda run, match: (
                (
                    same_ms(match["since"], *run.recoveries["deployed"])
                    if match["since"]
                    else same_ms(match["ms"], *(run.recoveries["failed"] - run.recoveries["deployed"].shift()))
                )
                and same_ms(match["cool"], run.scenario.restart.cooldown_ns / 1e6)
                and same_ms(match["most"], 3 * run.scenario.checkpoint.interval_ns / 1e6)
            )
        ),
    ),
    template(
        "windows behind subtasks that are idle",
        rf"{ABOUT}After a restart no window of {AT} ends for (?P<ms>MS): subtasks of '(?P<of>[^']+)' without records count as active again until "
        r"they are idle for that long \(watermark\.idle-timeout\)",
        of_each_run(
            lambda run, match: (
                (source := run.scenario.job.vertex(match["of"]).source)
                and same_ms(match["ms"], source.watermark.idle_timeout_ns / 1e6)
                and not run.series[
                    (run.series["vertex"] == match["at"])
                    & run.series["time"].between(
                        run.recoveries["running"].max() / 1e3 + 2,
                        run.recoveries["running"].max() / 1e3 + number(match["ms"]) / 1e3 - 1,
                    )
                ]["numBytesOutPerSecond"].any()
            )
        ),
    ),
    template(
        "firings that no checkpoint meets",
        rf"{ABOUT}{AT} fires for (?P<ms>MS) every (?P<step>MS), and no checkpoint meets that: it and the triggers, every (?P<interval>MS), have one "
        r"phase in this run \(job\.(?P<of>\w+)\.window\.phase shifts it\); in a real job (?P<share>\d+) % of the phases do",
        of_each_run(
            lambda run, match: (
                (window := run.scenario.job.vertex(match["at"]).window)
                and (match["of"], number(match["step"])) == (match["at"], window.step_ns / 1e6)
                and number(match["interval"]) == run.scenario.checkpoint.interval_ns / 1e6
                and abs(
                    int(match["share"])
                    - 100 * number(match["ms"]) / min(window.step_ns, number(match["interval"]) * 1e6) * 1e6
                )
                < 2
                and run.checkpoints["end_to_end_duration"].max() < number(match["ms"]) / 2
                and same_ms(
                    match["ms"],
                    run.tasks.loc[run.tasks["vertex"] == match["at"], "numRecordsOut"].max()
                    * window.fire_ns
                    / 1e6
                    / ((run.ended_ns - 1) // window.step_ns),
                )
            )
        ),
    ),
    template(
        "requests in one phase",
        rf"{ABOUT}{AT} always has (?P<capacity>\d+) requests under way \(async-io.capacity\), each answered after (?P<each>MS), and every "
        r"checkpoint meets them in one phase of this run: the interval, (?P<interval>MS), is a multiple\. In a real job its barriers wait up to "
        r"(?P<wait>MS) for an answer",
        of_each_run(
            lambda run, match: (
                (requests := run.scenario.job.vertex(match["at"]).async_io)
                and requests.latency.kind == "constant"
                and int(match["capacity"]) == requests.capacity
                and {number(match[name]) for name in ("each", "wait")} == {requests.latency.mean / 1e6}
                and number(match["interval"]) == run.scenario.checkpoint.interval_ns / 1e6
                and not number(match["interval"]) % number(match["each"])
                and run.tasks.loc[run.tasks["vertex"] == match["at"], "numRecordsIn"].min() * number(match["each"])
                >= 0.8 * requests.capacity * run.ended_ns / 1e6
            )
        ),
    ),
    template(
        "a window that ends while the job is down",
        rf"{ABOUT}A window of {AT} ends at (?P<end>MS), while the job is down, and fires up to (?P<late>MS) late: windows of processing time take "
        r"a record when it is processed, so what is replayed \((?P<count>COUNT) records\) and what was due meanwhile are in the next one",
        of_each_run(
            lambda run, match: any(
                same_ms(match["end"], end) and failed <= end < running and same_ms(match["late"], running - end)
                for window in [run.scenario.job.vertex(match["at"]).window]
                if window
                for end in np.arange(window.phase_ns, run.ended_ns, window.step_ns) / 1e6
                for failed, running in run.recoveries[["failed", "running"]].to_numpy()
            )
        ),
    ),
    template(
        "savepoints that queue",
        rf"{ABOUT}Savepoint (?P<id>\d+) waits (?P<queue>MS) of its (?P<took>MS) for files of snapshots that were triggered before it: savepoints "
        r"are not held back \(max-concurrent\), and a subtask writes one snapshot after the other",
        of_each_run(
            lambda run, match: (
                same_ms(match["queue"], run.subtasks.loc[run.subtasks["id"] == int(match["id"]), "x_async_queue"].max())
                and same_ms(match["took"], run.checkpoints.set_index("id").loc[int(match["id"]), "end_to_end_duration"])
            )
        ),
    ),
    template(
        "commits one after the other",
        rf"{ABOUT}Output of {AT} waits for the commits of '(?P<first>[^']+)' and '(?P=at)' one after the other, (?P<ms>MS) in sum; visible p50 is "
        r"the wait for one of them",
        of_each_run(
            lambda run, match: same_ms(
                match["ms"],
                sum(
                    run.commits.loc[
                        (run.commits["vertex"] == name) & (run.commits["visible_latency"] >= 0), "visible_latency"
                    ].median()
                    for name in (match["first"], match["at"])
                ),
            )
        ),
    ),
    template(
        "refused requests",
        rf"{ABOUT}(?P<share>\d+) % of the requests are refused \(503\), as a prefix takes (?P<limit>[\d.]+)/s \(storage\.object-store\.requests\), "
        r"and tried again: writing takes longer by these waits, and no bandwidth shortens them",
        of_each_run(
            lambda run, match: (
                float(match["limit"]) == run.scenario.storage.object_store.requests_per_second
                and match["share"]
                == f"{100 * run.tables['requests']['refused'].sum() / run.tables['requests'][['put', 'list', 'get', 'refused']].sum().sum():.0f}"
            )
        ),
    ),
    template(
        "timed out in all",
        rf"{ABOUT}(?P<count>COUNT) records are lost in all, of (?P<n>\d+) commits whose transactions had timed out: one has to outlive "
        r"the interval, the failure and the restart \(commit\.transaction-timeout\)",
        timed_out_in_all,
    ),
    template(
        "overtaking barriers",
        r"Even barriers that overtake data, as in CHECKPOINT, wait (?P<took>MS) for the task thread of "
        rf"{AT}{LOAD}",
        largest(*QUEUES),
        exists,
    ),
    template(
        "alignment timeout",
        rf"Barriers of CHECKPOINT wait (?P<took>MS) in front of {AT} until the alignment timeout lets them "
        rf"overtake{LOAD}",
        largest("until the timeout"),
        exists,
    ),
    template(
        "alignment",
        rf"In CHECKPOINT {AT} waits (?P<took>MS) from its first to its last barrier, which comes from (?P<late>[\w-]+\[\d+\]){LOAD}",
        comes_last,
        exists,
    ),
    template(
        "before the barrier",
        rf"Work before the barrier {TOOK}",
        largest("file before barrier", "work before barrier"),
        exists,
    ),
    template("sync", rf"The synchronous phase {TOOK}, on the task threads", largest("sync"), exists),
    template(
        "async queue",
        r"Snapshots wait (?P<took>MS) of the (?P<whole>MS) of CHECKPOINT for the asynchronous thread "
        rf"of {AT}, at work for older checkpoints",
        largest("async queue"),
        exists,
    ),
    template(
        "async work",
        rf"Asynchronous work of {AT} {TOOK}, not counting its files: neither storage nor barriers decide",
        works_asynchronously,
        exists,
    ),
    template(
        "serialising",
        rf"Serialising and writing (?:(?P<size>SIZE)|files) {TOOK}(?:, after MS in which the asynchronous thread of '[^']+' writes an older "
        r"checkpoint)? \(canonical: at most at checkpoint\.savepoint-rate\): (?P<decide>barriers do not decide|neither storage nor barriers "
        r"decide)",
        serialises,
        exists,
    ),
    template(
        "upload",
        rf"Writing (?:(?P<size>SIZE)|files) {TOOK}"
        r"(?:, after (?P<older>MS) in which the asynchronous thread of '(?P<thread>[^']+)' writes an older checkpoint)?: "
        r"(?:storage decides|(?P<cards>the network cards) \(storage\.nic\) decide)(?:, not the barriers|, and so (?P<do>do|partly do) the "
        r"barriers, which wait (?P<barriers>MS)| here, but (?P<held>\d+) of the slowest (?P<tail>\d+) checkpoints wait longer for barriers "
        r"than for files)",
        written,
        exists,
    ),
    template(
        "channel state",
        rf"Writing in-flight data of {AT} {TOOK}: storage decides, once barriers are through",
        largest("own output", "channel state"),
        exists,
    ),
    template(
        "messages",
        r"Messages to and from the coordinator take (?P<took>MS) of the (?P<whole>MS) of CHECKPOINT",
        largest("trigger", "acknowledgement"),
        exists,
    ),
    template(
        "first upload",
        r"CHECKPOINT uploads everything, (?P<size>SIZE) in (?P<took>MS): it has its own row, and everything but commits is "
        r"about later ones",
        first_upload,
    ),
    template(
        "serves", r"(?P<high>NAME) serves (?P<more>COUNT/s), (?P<low>NAME) (?P<less>COUNT/s)", serves, none_is_over
    ),
    template(
        "throughput",
        r"throughput (?P<word>is the same|rises|drops) \((?P<change>[±+-][\d.]+) %\)",
        throughput_changes,
        none_is_over,
    ),
    template(
        "throughput of one only",
        r"throughput is (?P<more>COUNT/s) instead of (?P<less>COUNT/s)",
        serves_instead,
        none_is_over,
    ),
    template(
        "cost of checkpoints",
        r"checkpoints(?P<both> and savepoints)? cost (?:no throughput|(?P<cost>[\d.]+) % of throughput)|throughput is "
        r"(?P<change>[+-][\d.]+) % with checkpoints(?P<both_too> and savepoints)?",
        checkpoints_cost,
    ),
    template(
        "no limit of storage",
        r"writing up to (?P<size>SIZE) per subtask takes no time here, as storage has no limit: how long it "
        r"takes is unknown until you write storage\.bandwidth",
        writes_in_no_time,
        some_completed,
    ),
    template(
        "failures in a row",
        r"at most (?P<n>\d+) in a row, of (?P<most>\d+) that are tolerated: a completed one resets the count",
        in_a_row,
        some_completed,
    ),
    template(
        "failures that do not count",
        r"(?P<one>it does|they do) not count against checkpoint\.tolerable-failed \((?P<most>\d+)\)",
        failures_do_not_count,
        some_fail,
    ),
    template(
        "restarts by failed checkpoints",
        r"the job restarts (?P<times>once|(?P<n>\d+) times)(?P<place>, (?:(?P<part>\d+) of them )?from the beginning)?, "
        r"as (?:a checkpoint fails|more than (?P<most>\d+) checkpoints? in a row fails?) \(checkpoint\.tolerable-failed\)",
        restarts_by_failed_checkpoints,
        some_fail,
    ),
    template(
        "circle",
        r"tasks wait for each other: .*?; with aligned barriers they do not",
        passes_when_aligned,
        stands_still,
    ),
    template(
        "metadata",
        r"All tasks of CHECKPOINT acknowledge it, and its metadata cannot be written",
        metadata_fails,
        exists,
    ),
    template(
        "costs the same",
        rf"Downtime and replay after a (?:failure|planned restart) are the same with all of them(?: here, but failures come {TIMES}, "
        r"on average: at other times their costs may differ)?",
        lambda told, match: costs_the_same(told, match) and (not match["a"] or fails_at_unlike_times(told, match)),
        some_restart,
    ),
    template(
        "fails at unlike times",
        rf"Failures come {TIMES}, on average: what is replayed may differ by that alone",
        fails_at_unlike_times,
        some_restart,
    ),
    template(
        "replays",
        r"(?:After a (?:failure|planned restart) )?(?P<of>NAME) replays (?P<records>COUNT) records(?:, lags by up to "
        r"(?P<lag>MS))? and is disturbed (?P<share>\d+) % of the time(?: by COUNT failures? and "
        r"COUNT planned restarts?)?",
        replays,
        some_restart,
    ),
    template(
        "overloaded",
        r"(?:Overloaded|(?P<held>Held up), not overloaded): (?P<label>NAME): "
        r"(?:sources emit|'(?P<source>[^']+)' emits) (?P<emitted>COUNT/s) of (?P<due>COUNT/s) "
        r"that are due(?: before the first failure or stop \((?P<until>MS)\))?, and (?:their|its) backlog grows; (?P<load>'[^']+' is "
        r"(?:never idle: )?busy \d+ %(?: and back-pressured \d+ %)?) (?:over the whole run|until then|from (?P<since>MS) on)"
        r"(?:\. Also overloaded: [^.]+)?",
        falls_short,
    ),
    template(
        "no window ends",
        rf"With (?P<names>NAMES) no window of {AT} ends: a subtask of '(?P<of>[^']+)' without records holds the watermark; "
        r"give '(?P=of)' watermark: \{idle-timeout: 10 s\} \(withIdleness in Flink\)(?:\. Of the others:)?",
        no_window_ends,
    ),
    template(
        "another workload",
        r"with (?P<workload>[^:;]+?) checkpoints take (?P<low>MS)(?: to (?P<high>MS))? \(longest (?P<most>MS)(?:, (?P<failed>\d+) fail)?\)",
        workload_takes,
    ),
    template(
        "too few intervals",
        r"Durations with (?P<names>NAMES) are not compared: the run has fewer than (?P<few>\d+) such intervals, and its first checkpoint "
        r"meets a job that has just started \(--set run\.duration='(?P<longer>MS)'\)",
        have_too_few_intervals,
    ),
    template(
        "extrapolated",
        rf"{ABOUT}Requests and bytes per hour and the cost per month are extrapolated from (?P<count>\d+) intervals?: too few for a forecast "
        r"\(run\.duration\)",
        has_few_intervals_of_requests,
    ),
    template(
        "requests that grow",
        rf"{ABOUT}Requests per hour are (?P<share>\d+) % more in the second half of the run than in the first: in a longer run, and in a "
        r"month, requests, bytes and cost are higher \(run\.duration\)",
        requests_grow,
    ),
    template("only a first upload", r"So does the only one of (?P<names>NAMES), which is not compared", is_only_upload),
    template(
        "an axis alone",
        r"(?P<axis>[\w.-]+) alone: (?P<low>MS) in the median \((?P<fast>NAME)\) instead of (?P<high>MS) \((?P<slow>NAME)\)",
        axis_changes,
    ),
    template(
        "sinks differ",
        rf"{ABOUT}Sinks differ: output waits (?P<waits>.*) \(median of transactions\)",
        sinks_wait,
    ),
    template(
        "visible p50",
        rf"{ABOUT}Visible p50 is how long the oldest record of a transaction waits, by records; later ones wait less",
        oldest_is_first,
    ),
    template(
        "commits per hour",
        rf"{ABOUT}Commits per hour: (?P<commits>COUNT) with (?P<files>COUNT) data files"
        r"(?:, as writers flush them; those of the compactor are not counted)?",
        commits_files,
    ),
    template(
        "a killed task manager",
        rf"{ABOUT}(?:The JobMaster learns|A killed task manager fails the job)[^.]*(?:\.\d[^.]*)*",
        loses_a_task_manager,
    ),
    template(
        "restarts go back",
        rf"{ABOUT}(?P<which>All|The first) (?P<count>\d+) restarts go back to (?:the beginning|checkpoint (?P<checkpoint>\d+)): "
        r"no checkpoint completes in between",
        is_out_of_order,
    ),
    template(
        "replayed output",
        rf"{ABOUT}What is replayed after a failure becomes visible up to (?P<ms>MS) after checkpoint (?P<number>\d+), from which it is "
        r"replayed: visible max counts from there, and the longest transaction is visible after (?P<others>MS)",
        waits_since_its_checkpoint,
    ),
    template(
        "without a JobManager",
        rf"{ABOUT}Tasks run on for (?P<ms>MS) without a JobManager, until (?:(?P<led>another one leads)|(?P<lost>a task manager is lost)"
        r"|(?P<task>a task fails)|they miss its heartbeats \(restart\.heartbeat-timeout\)): what they emit is replayed, (?P<count>COUNT) "
        r"records since "
        r"(?:the beginning|checkpoint (?P<number>\d+))",
        runs_on_without_a_leader,
    ),
    template(
        "a log that is applied",
        rf"{ABOUT}Restores apply the log of a changelog one change after the other: assumed are 2\.8 us for each and 690 MB/s "
        r"\(checkpoint\.restore-rate\)",
        applies_changes,
    ),
    template(
        "mostly disturbed",
        r"The job is down or catching up for (?P<share>\d+) % of the time(?P<all> or more with all strategies)?: failures decide, not "
        r"checkpoints",
        is_mostly_disturbed,
    ),
    template(
        "acknowledgements beyond the frame",
        rf"{ABOUT}(?P<beyond>\d+) of (?P<of>\d+) completed checkpoints have an acknowledgement of more than pekko\.framesize \((?P<frame>SIZE)\), "
        r"up to (?P<largest>SIZE), as the changelog is in memory: Flink drops it, and the checkpoint expires, which is not simulated",
        are_beyond_the_frame,
    ),
    template(
        "written again",
        rf"{ABOUT}{AT} writes at once: what is replayed after a restart is written again(?:: (?P<count>COUNT) records)?",
        is_written_again,
    ),
    template(
        "attempts",
        rf"{ABOUT}The (?:job|first run) uses (?P<used>\d+) of (?P<most>\d+) attempts \(restart\.attempts\), and fails at failure "
        r"(?P<next>\d+)(?P<comes>, whenever it comes)?(?:: only (?P<reset>MS) without a failure \(restart\.reset\) would count anew)?",
        uses_attempts,
    ),
    template(
        "failure rate",
        rf"{ABOUT}(?:At most )?(?P<count>\d+) failures?(?P<others>, deployments that fail among them,)? comes? within (?P<within>MS), "
        r"of (?P<rate>\d+) that restart\.rate "
        r"tolerates(?P<fails>: the job fails)?",
        come_within,
    ),
    template(
        "no room for local copies",
        rf"{ABOUT}Restarts read up to (?P<most>SIZE) from storage, as a local copy that does not fit into the (?P<room>SIZE) of its "
        r"TaskManager is left out \(local-recovery, storage\.disk\.space\)",
        has_no_room,
    ),
    template(
        "local copies",
        rf"{ABOUT}(?P<local>\d+) of (?P<all>\d+) restarts read no state from storage, as tasks have copies on their disks "
        r"\(local-recovery\)(?P<free>, which take no time to read \(storage\.disk\.bandwidth\))?(?:, others up to (?P<most>SIZE))?",
        reads_no_state,
    ),
    template(
        "during recovery",
        rf"{ABOUT}Restarted tasks run before they have processed the in-flight data that they read back, up to (?P<most>SIZE) "
        r"\(during-recovery\): downtime ends before(?P<disk>; since Flink 2\.4 they write it to local disks first \(storage\.disk\))?",
        runs_before,
    ),
    template(
        "failed for good",
        rf"{ABOUT}The job has failed for good: (?:there is no checkpoint to begin again from|checkpoint (?P<id>\d+) is the last to begin "
        r"again from, if it is retained \(execution\.checkpointing\.externalized-checkpoint-retention; by default it is deleted\), and "
        r"nothing replays what sources emitted after it was triggered at (?P<ms>MS))",
        failed_for_good,
    ),
    template(
        "a restart delay that grows",
        rf"{ABOUT}The restart delay grows from (?P<first>MS) to (?P<last>MS): exponential-delay begins anew only after (?P<reset>MS) "
        r"without a failure \(restart\.reset\)",
        restart_delay_grew,
    ),
    template(
        "requests at their limit",
        rf"{ABOUT}{AT} has (?P<capacity>\d+) requests of (?P<latency>MS) under way per subtask, and more are not allowed: (?P<rate>COUNT/s) in all, "
        r"whatever its threads could do \(async-io\.capacity\)",
        has_all_requests,
    ),
    template(
        "within its timeout",
        rf"{ABOUT}The longest checkpoint or savepoint takes (?P<took>MS) of (?P<timeout>MS) \(checkpoint\.timeout\)",
        longest_of_timeout,
    ),
    template(
        "without regions that failed",
        rf"{ABOUT}In (?P<n>\d+) of (?P<m>\d+) completed checkpoints tasks of regions that failed keep parts of older checkpoints, "
        r"the oldest that of checkpoint (?P<part>\d+) in checkpoint (?P<of>\d+); after a failure these regions replay from there",
        regions_keep_parts,
    ),
    template(
        "after a peak of the load",
        rf"{ABOUT}The backlog of (?:the sources|'(?P<at_source>[^']+)', nearly all of that of the (?P<n>\d+) sources,) "
        r"grows to (?P<most>COUNT) records at (?P<at>MS), and (?P<how>less|more) than a tenth of it "
        r"is left (?P<wait>MS) later(?P<open>, when the run ends)?",
        worked_off_after,
    ),
    template(
        "lags that differ",
        r"Records of '(?P<source>[^']+)' are read up to (?P<most>MS) after they are due with (?P<late>NAME), and "
        r"(?:up to (?P<least>MS)|at once) with (?P<early>NAME)",
        lags_differ,
    ),
    template(
        "late results",
        rf"{ABOUT}{AT} emits nothing from (?P<from>MS) to (?P<to>MS), as '(?P<of>[^']+)' is silent and holds back its watermark: results come "
        r"up to (?P<late>MS) after the end of their window, all at once(?P<advice>; watermark: \{idle-timeout: 10 s\} of '(?P=of)' "
        r"\(withIdleness in Flink\) ends that sooner)?",
        results_are_late,
    ),
    template(
        "files per checkpoint",
        rf"{ABOUT}(?:(?P<none>\d+) of (?P<n>\d+) checkpoints write no files, one of the others|A checkpoint) writes "
        r"(?P<each>COUNT) files in the median(?: into (?P<physical>COUNT) physical ones)?, beside its metadata; "
        r"(?P<all>COUNT) (?:are written per hour|of these are created per hour; the space that they waste is not counted)",
        writes_files,
    ),
    template(
        "late records",
        r"Records are up to (?P<most>MS) late with (?P<late>NAMES), and (?P<least>MS) with (?P<early>NAMES) \(99th percentile\): tasks that write "
        r"files before the barrier process no records meanwhile",
        late_records,
    ),
    template(
        "visible after",
        rf"{ABOUT}The oldest record of a transaction waits (?P<more>more than )?(?P<wait>MS) until it is visible, (?:at|with) "
        r"(?P<count>COUNT) checkpoints? and (?P<size>SIZE) of state written "
        r"(?:per hour(?P<events>, with one-off events, which the table of requests leaves out)?|(?P<run>in this run))",
        visible_after,
    ),
    template(
        "slow files",
        rf"{ABOUT}(?P<count>\d+) of (?P<of>\d+) completed checkpoints wait for a slow file, up to (?P<ms>MS) "
        r"\(storage\.slow: (?P<share>\d+) % of the files take (?P<factor>\d+) times as long\)",
        wait_for_slow_files,
    ),
    template(
        "a peak of the full size",
        rf"{ABOUT}The full size goes from (?P<low>SIZE) \(checkpoint (?P<first>\d+)\) to (?P<peak>SIZE) \(checkpoint (?P<top>\d+)\), and back "
        r"to (?P<high>SIZE) \(checkpoint (?P<last>\d+)\)",
        of_each_run(
            lambda run, match: all(
                match[size] == bytes_text(run.checkpoints.set_index("id").loc[int(match[id_]), "state_size"])
                for size, id_ in (("low", "first"), ("peak", "top"), ("high", "last"))
            )
        ),
    ),
    template(
        "full size",
        rf"{ABOUT}The full size goes from (?P<low>SIZE) \(checkpoint (?P<first>\d+)\) to (?P<high>SIZE) \(checkpoint (?P<last>\d+)\), and "
        r"(?:(?P<restarts>grows with each restart \(union-state\))|(?:still grows, by (?P<each>SIZE) per checkpoint|hardly grows) in the "
        r"second half of the run(?P<logs>; each materialization makes it smaller again)?)",
        full_size_grows,
    ),
)
"""Each sentence that `run` prints is in the table of templates; each has a precondition, and its words hold in tables and journal."""
