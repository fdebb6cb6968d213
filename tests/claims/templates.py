"""The sentences of `ckptsim run`: a pattern each, and what its words mean to a Flink engineer, from the runs' tables and journals."""

from __future__ import annotations

import re
from statistics import fmean, median

from sim.analysis.number_texts import count_text
from sim.metrics.journal import Happening
from tests.claims.printed import Claim, Printed, Template, end_of_data_ns, periodic_rows, same_ms, warmup_ms

CUT_SHORT = {"CHECKPOINT_COORDINATOR_SHUTDOWN", "CHECKPOINT_COORDINATOR_SUSPEND", "JOB_FAILOVER_REGION", "CHECKPOINT_DECLINED_TASK_CLOSING"}
"""Reasons of Flink for checkpoints that were under way when their job, or a task of it, ended or restarted."""
QUEUES = ("task thread", "behind data", "end of input")
KINDS = (
    *(QUEUES, ("until the timeout",), ("alignment",), ("file before barrier", "work before barrier"), ("sync",)),
    *(("async queue",), ("async work",), ("upload",), ("own output", "channel state"), ("trigger", "acknowledgement")),
)
"""Parts of a critical path by kind of wait."""
LOAD = r" \([^)]*\)"


def finishes(told: Printed, match: re.Match[str]) -> bool:
    for runs in told.listed(match["names"]):
        if any(run.job_status != "FINISHED" for run in runs):
            return False
    ends = [fmean(run.ended_ns / 1e6 for run in runs) for runs in told.listed(match["names"])]
    if not same_ms(match["at"], min(ends)):
        return False
    if match["late"] and not same_ms(match["late_at"], fmean(run.ended_ns / 1e6 for run in told.runs(match["late"]))):
        return False
    return all(any(run.job_status != "FINISHED" for run in runs) for runs in (told.listed(match["others"]) if match["others"] else ()))


def passes_after_the_last_record(told: Printed, match: re.Match[str]) -> bool:
    runs = told.runs(match["of"])
    completed = fmean((run.checkpoints["status"] == "COMPLETED").sum() for run in runs)
    return float(match["count"]) <= completed and _ms(match["ms"]) <= 1.05 * fmean(run.ended_ns / 1e6 for run in runs)


def holds_the_end(told: Printed, match: re.Match[str]) -> bool:
    """It completed after the last end of data of the job (no task had records left), or without such ends as the last one."""
    row, run = told.row(match), told.run_of(match)
    done = {entry.checkpoint: entry.time_ns for entry in run.journal if entry.happening is Happening.COMPLETED}
    end_ns, done_ns = end_of_data_ns(run), done.get(int(match["id"]), -1)
    is_late = done_ns == max(done.values()) if end_ns is None else done_ns >= end_ns
    return row["status"] == "COMPLETED" and is_late and same_ms(match["took"], row["end_to_end_duration"] + row["x_finalization"])


def no_checkpoint_holds_the_end(told: Printed, match: re.Match[str]) -> bool:
    """None was triggered after the last end of data and completed."""
    for runs in told.listed(match["names"]):
        run = runs[0]
        end_ns = end_of_data_ns(run)
        rows = run.checkpoints
        if end_ns is not None and ((rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] * 1e6 > end_ns)).any():
            return False
    return True


def commits_less(told: Printed, match: re.Match[str]) -> bool:
    """Records of commits after the warm-up, each once, per run."""
    committed = {}
    for name in told.names:
        runs = told.runs(name)
        rows = [(run, row) for run in runs for row in run.commits.to_dict("records") if not row["again"]]
        kept = [row["records"] for run, row in rows if row["commit_timestamp"] - row["commit_latency"] >= warmup_ms(told, run)]
        committed[name.lower()] = sum(kept) / len(runs)
    own = committed[match["of"].lower()]
    return match["less"] == count_text(own) and match["most"] in map(count_text, committed.values()) and own < max(committed.values())


def fail_by_themselves(told: Printed, match: re.Match[str]) -> bool:
    """Neither a restart nor the end of the job made them fail; `m` are these and the completed ones."""
    rows = [row for run in told.runs(match["of"]) for row in periodic_rows(told, run).to_dict("records")]
    own = [row for row in rows if row["status"] == "FAILED" and row["failure_message"] not in CUT_SHORT]
    completed = sum(row["status"] == "COMPLETED" for row in rows)
    expired = sum("EXPIRED" in row["failure_message"] for row in own)
    is_expiry = match["fate"] == "expire"
    return len(own) >= int(match["n"]) and len(own) + completed >= int(match["m"]) and bool(expired if is_expiry else own)


def completes(told: Printed, match: re.Match[str]) -> bool:
    rows = [row for run in told.runs(match["of"]) for row in periodic_rows(told, run).to_dict("records")]
    failed = [row for row in rows if row["status"] == "FAILED" and row["failure_message"] not in CUT_SHORT]
    completed = [row for row in rows if row["status"] == "COMPLETED"]
    return not failed and len(completed) >= int(match["n"] or 1)


def takes(told: Printed, match: re.Match[str]) -> bool:
    """The median of some strategy, and where a longest one is named, that there is such a checkpoint."""
    of = [[row for run in runs for row in periodic_rows(told, run).to_dict("records") if row["status"] == "COMPLETED"]
          for runs in told.comparison.results.values()]  # fmt: skip
    durations = [[row["end_to_end_duration"] for row in rows] for rows in of if rows]
    longest = match["longest"]
    return any(min(own) <= _ms(match["ms"]) * 1.1 and (not longest or same_ms(longest, *own)) for own in durations)


def nothing_holds_barriers_up(told: Printed, match: re.Match[str]) -> bool:
    """In most checkpoints of the strategies, barriers reach each task and are aligned within noise (150 ms)."""
    for runs in told.comparison.results.values():
        waits = []
        for run in runs:
            ids = set(periodic_rows(told, run).query("status == 'COMPLETED'")["id"])
            rows = run.subtasks[run.subtasks["id"].isin(ids) & (run.subtasks["ack_timestamp"] >= 0)]
            waits += list(rows.groupby("id")[["start_delay", "alignment_duration"]].max().max(axis=1))
        if waits and median(waits) >= 150:
            return False
    return True


def differ_by_noise(told: Printed, match: re.Match[str]) -> bool:
    low, high = _ms(match["low"]), _ms(match["high"] or match["low"])
    return high - low < max(100.0, 0.1 * high) * 1.05


def largest(*parts: str, named: bool = True) -> Claim:
    """The named parts of the named checkpoint's critical path take most of it."""

    def claim(told: Printed, match: re.Match[str]) -> bool:
        found = told.parts_ms(match)
        own = sum(found.get(part, 0.0) for part in parts)
        others = [sum(found.get(part, 0.0) for part in kind) for kind in KINDS if not set(kind) & set(parts)]
        printed = match["took"]
        return own >= max(others) and (same_ms(printed, own) if named else _ms(printed) <= 1.1 * own)

    return claim


def tails_differ(told: Printed, match: re.Match[str]) -> bool:
    return _ms(match["early"]) < _ms(match["late"])


def costs_the_same(told: Printed, match: re.Match[str]) -> bool:
    """Every strategy that failed and runs or finished: medians of downtime within noise, of replayed records within a tenth."""
    down, replayed = [], []
    for runs in told.comparison.results.values():
        rows = [row for run in runs if not run.job_status.startswith("FAILED") for row in run.recoveries.to_dict("records")]
        if rows := [row for row in rows if row["running"] >= 0]:
            down.append(median(row["running"] - row["failed"] for row in rows))
            replayed.append(median(row["replayed_records"] for row in rows))
    return max(down) - min(down) < max(100.0, 0.1 * max(down)) and max(replayed) <= 1.1 * min(replayed)


def replays(told: Printed, match: re.Match[str]) -> bool:
    runs = told.runs(match["of"])
    rows = [row for run in runs for row in run.recoveries.to_dict("records") if row["running"] >= 0]
    return bool(rows) and min(row["replayed_records"] for row in rows) <= _count(match["records"]) * 1.05


def restarts_for_good(told: Printed, match: re.Match[str]) -> bool:
    return any(run.job_status.startswith("RESTARTING") for run in told.runs(match["of"]))


def job_fails(told: Printed, match: re.Match[str]) -> bool:
    return any(run.job_status.startswith("FAILED") for run in told.runs(match["of"]))


def cannot_begin(told: Printed, match: re.Match[str]) -> bool:
    return any(f"job {match['job']} cannot begin" in run.job_status for run in told.runs(match["of"]))


def none_completed(told: Printed, match: re.Match[str]) -> bool:
    return not any((periodic_rows(told, run)["status"] == "COMPLETED").any() for runs in told.comparison.results.values() for run in runs)


def none_triggered_after(told: Printed, match: re.Match[str]) -> bool:
    """The job runs on, and the journal has no later trigger in any of its runs."""
    for runs in told.listed(match["names"]):
        for run in runs:
            last = max((entry.time_ns / 1e6 for entry in run.journal if entry.happening is Happening.TRIGGERED), default=0.0)
            if run.job_status != "RUNNING" or ("at" in match.re.groupindex and last > 1.1 * _ms(match["at"]) and len(told.names) == 1):
                return False
    return True


def first_upload(told: Printed, match: re.Match[str]) -> bool:
    row = told.row(match)
    return row["status"] == "COMPLETED" and same_ms(match["took"], row["end_to_end_duration"])


def serves(told: Printed, match: re.Match[str]) -> bool:
    """The first serves more: no job has ended, and its sinks have read more records per run."""
    high, low = (fmean(run.tasks["numRecordsIn"].sum() / run.ended_ns for run in told.runs(match[name])) for name in ("high", "low"))
    return high >= 0.98 * low


def changes(told: Printed, match: re.Match[str]) -> bool:
    """Throughput of unended jobs only."""
    return all(run.job_status == "RUNNING" for runs in told.comparison.results.values() for run in runs)


def waits_in_a_circle(told: Printed, match: re.Match[str]) -> bool:
    """Some checkpoint that did not complete stood still."""
    rows = [row for runs in told.comparison.results.values() for run in runs for row in run.checkpoints.to_dict("records")]
    return any(row["x_standstill"] and row["status"] != "COMPLETED" for row in rows)


def not_completed(told: Printed, match: re.Match[str]) -> bool:
    """Some strategy completed no checkpoint after its warm-up."""
    return any(all((periodic_rows(told, run)["status"] != "COMPLETED").all() for run in runs) for runs in told.comparison.results.values())


def acknowledged_by_all(told: Printed, match: re.Match[str]) -> bool:
    row = told.row(match)
    return row["num_acknowledged_subtasks"] == row["num_subtasks"] and row["status"] != "COMPLETED"


def falls_short(told: Printed, match: re.Match[str]) -> bool:
    """Some source has a backlog that grew."""
    runs = told.comparison.results[match["label"]]
    return any(run.series["backlog"].max() > 0 for run in runs)


def _ms(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ms": 1, "s": 1e3, "min": 6e4, "h": 3.6e6}[unit]


def _count(text: str) -> float:
    return float(text.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)


TEMPLATES = (
    Template("finishes", r"The job finishes at (?P<at>MS)(?: with (?P<names>NAMES))?(?:, and at (?P<late_at>MS) with (?P<late>NAME))?"
             r"(?:; with (?P<others>NAMES) it does not)?(?=\.)", finishes),
    Template("after the last record", r"With (?P<of>NAME) (?P<ms>MS) and (?P<count>COUNT) checkpoints pass after its last record",
             passes_after_the_last_record),
    Template("holds the end", r"CHECKPOINT holds its end and takes (?P<took>MS)", holds_the_end),
    Template("no checkpoint holds the end", r"With (?P<names>NAMES) no checkpoint holds its end", no_checkpoint_holds_the_end),
    Template("commits less", r"(?P<of>NAME) commits (?P<less>COUNT) records of (?P<most>COUNT)", commits_less),
    Template("checkpoints fail", r"With (?P<of>NAME) (?P<n>\d+) of (?P<m>\d+) checkpoints (?P<fate>expire|fail)(?: \([^)]*\))?",
             fail_by_themselves),
    Template("completes all", r"(?P<of>NAME) completes (?:its one|all (?P<n>\d+)) in MS(?: and stores SIZE of in-flight data each)?",
             completes),
    Template("job fails", r"With (?P<of>NAME) the job fails \(.*?\)(?: after \d+ of \d+ checkpoints (?:failed|expired))?", job_fails),
    Template("restarts for ever", r"With (?P<of>NAME) the job restarts for ever: [^;]*(?:; with [\w ]+ it does not)?", restarts_for_good),
    Template("cannot begin", r"With (?P<of>NAME) job (?P<job>\d+) cannot begin[^;]*?(?:; with [\w ]+ it goes on)?(?=\.)", cannot_begin),
    Template("none completed", r"After the warm-up no checkpoint was completed: a restart or the end of the "
                               r"job interrupted them; run longer",
             none_completed),
    Template("none completed or failed", r"No checkpoint was completed or failed after the warm-up: run longer, or set an interval",
             none_completed),
    Template("checkpoints end", r"With (?P<names>NAMES) checkpoints end while the job runs on: none is triggered after (?P<at>MS), "
             r"and a failure goes back to that one", none_triggered_after),
    Template("none triggered", r"With (?P<names>NAMES) no checkpoint is triggered", none_triggered_after),
    Template("takes", r"Checkpoints take (?P<ms>MS)(?: in the median, the longest (?P<longest>MS))?", takes),
    Template("nothing holds barriers up", r"nothing holds the barriers up" + LOAD, nothing_holds_barriers_up),
    Template("differ by noise", r"the strategies differ by less than noise \((?P<low>MS)(?: to (?P<high>MS))?\)", differ_by_noise),
    Template("medians alike", r"Medians are alike \((?P<low>MS)(?: to (?P<high>MS))?\), tails are not", differ_by_noise),
    Template("tail", r"the (?:p99|longest) of NAME is (?P<early>MS) instead of (?P<late>MS)", tails_differ),
    Template("instead", r"NAME checkpoints take (?P<early>MS) instead of (?P<late>MS)(?: and store SIZE of "
                        r"in-flight data each)?", tails_differ),
    Template("queue", r"Barriers of CHECKPOINT wait behind (?P<took>MS) of queued data in front of '[^']+'" + LOAD,
             largest(*QUEUES, named=False)),
    Template("source thread", r"'[^']+' takes the trigger of CHECKPOINT only after (?P<took>MS): its task thread is held up" + LOAD,
             largest(*QUEUES, named=False)),
    Template("overtaking barriers", r"Even barriers that overtake data, as in CHECKPOINT, wait (?P<took>MS) for the task thread of '[^']+'"
             + LOAD, largest(*QUEUES, named=False)),
    Template("alignment timeout", r"Barriers of CHECKPOINT wait (?P<took>MS) in front of '[^']+' until the alignment timeout lets them "
             r"overtake" + LOAD, largest("until the timeout")),
    Template("alignment", r"In CHECKPOINT '[^']+' waits (?P<took>MS) from its first to its last barrier: one "
                          r"of its inputs is behind" + LOAD,
             largest("alignment", named=False)),
    Template("before the barrier", r"Work before the barrier takes (?P<took>MS) of the MS of CHECKPOINT, one vertex after the other",
             largest("file before barrier", "work before barrier")),
    Template("sync", r"The synchronous phase takes (?P<took>MS) of the MS of CHECKPOINT, on the task threads", largest("sync")),
    Template("async queue", r"Snapshots wait (?P<took>MS) of the MS of CHECKPOINT for the asynchronous thread "
                            r"of '[^']+', at work for older "
             r"checkpoints", largest("async queue")),
    Template("async work", r"Asynchronous work of '[^']+' takes (?P<took>MS) of the MS of CHECKPOINT, beside "
                           r"its files: neither storage nor "
             r"barriers decide", largest("async work")),
    Template("upload", r"Writing (?:SIZE|files) takes (?P<took>MS) of the MS of CHECKPOINT: storage decides, not the barriers",
             largest("upload")),
    Template("channel state", r"Writing in-flight data of '[^']+' takes (?P<took>MS) of the MS of CHECKPOINT: "
                              r"storage decides, once barriers "
             r"are through", largest("own output", "channel state")),
    Template("messages", r"Messages to and from the coordinator take (?P<took>MS) of the MS of CHECKPOINT",
             largest("trigger", "acknowledgement")),
    Template("first upload", r"CHECKPOINT uploads everything, SIZE in (?P<took>MS): it has a row of its own, and all else is about later "
             r"ones", first_upload),
    Template("serves", r"(?P<high>NAME) serves (?:COUNT)/s, (?P<low>NAME) (?:COUNT)/s", serves),
    Template("throughput", r"throughput (?:is the same|rises|drops) \([^)]*\)", changes),
    Template("cost of checkpoints", r"checkpoints cost (?:no throughput|[\d.]+ % of throughput)|throughput is "
                                    r"\S+ % with checkpoints", changes),
    Template("circle", r"(?:With NAME a checkpoint hangs, because )?tasks wait for each other: .*?; with aligned barriers they do not",
             waits_in_a_circle),
    Template("barriers do not get through", r"barriers do not get through in time: [^;]*?(?=\.$|;)", not_completed),
    Template("metadata in time", r"All tasks of CHECKPOINT acknowledge it, and its metadata is not written in time", acknowledged_by_all),
    Template("costs the same", r"A (?:failure|planned restart) costs the same under all of them", costs_the_same),
    Template("replays", r"(?:After a (?:failure|planned restart) )?(?P<of>NAME) replays (?P<records>COUNT) "
                        r"records, lags by up to MS and is "
             r"disturbed \d+ % of the time(?: by COUNT failures? and COUNT planned restarts?)?", replays),
    Template("overloaded", r"Overloaded: (?P<label>NAME): sources emit .*? that are due(?: before anything fails \(until MS\))?, and their "
             r"backlog grows; '[^']+' is busy \d+ % over the whole run(?:\. So (?:is|are) [^.]+)?", falls_short),
)  # fmt: skip
