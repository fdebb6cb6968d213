"""Sentences on the checkpoints and the output of a run: barriers that stay aligned, files, sizes, limits, sinks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise

import pandas as pd

from sim.model.job import Job
from sim.model.scenario import Scenario
from sim.model.text import listed
from sim.model.units import UnitError, parse_flink_size
from sim.results.estimates import is_noise
from sim.results.formats import bytes_text, count_text, ms_text, per_second_text, share_text
from sim.results.journal import EventType
from sim.results.stored import (
    commits_per_hour,
    known_sinks,
    one_off_events_s,
    rate_basis,
    rolled_back_sentences,
    whole_periods_ms,
)
from sim.results.tables import EXPIRED, first_uploads, is_periodic, job_of
from sim.runtime.result import Result
from sim.storage.media.flat import slowness
from sim.studies.remarks.load import FULL_SHARE
from sim.studies.replications import Replications

_FRAME_BYTES = 10 * 1024**2
"""Default of pekko.framesize."""
_MAX_EMPTY_COMMITS = 10
"""Default of flink.max-continuous-empty-commits (Iceberg's FlinkSink and IcebergSink)."""
_MIN_WAIT_MS = 1000.0
"""Shorter waits are not reported."""
_MIN_FILES = 40
"""Minimum files per checkpoint (median) that are reported."""
_MIN_CHECKPOINTS_FOR_RATE = 3
"""With more completed checkpoints than this, their number is given per hour instead of per run."""
_MIN_TIMEOUT_SHARE = 0.05
"""Share of the checkpoint timeout above which the longest checkpoint is reported."""
_MIN_SIZES, _MIN_GROWN_BYTES, _GROWTH_FACTOR = 4, 8_000_000, 1.05
"""Minimum checkpoints per half of the run, and minimum growth [bytes], for which growth of the full size is reported; factor
by which the last size exceeds the third quarter of the run if the size still grows."""


def completed(result: Result) -> pd.DataFrame:
    """Return the rows of completed checkpoints and savepoints."""
    return result.checkpoints[result.checkpoints["status"] == "COMPLETED"]


# ---- Barriers.


def shared_file_sentence(runs: Replications) -> Iterator[str]:
    """Yield a sentence if the asynchronous part is mostly waiting for other subtasks, without in-flight data."""
    options, row = runs.scenario.checkpoint, runs.summary
    is_shared = options.barriers.kind == "unaligned" and options.subtasks_per_channel_state_file > 1
    if is_shared and row.persisted_bytes == 0 and not is_noise(row.async_ms, row.path.async_ms):
        yield (
            f"Async is {ms_text(row.async_ms)}, but {ms_text(row.path.async_ms)} on the critical path: a subtask "
            "acknowledges only when all that share its file of in-flight data, empty or not, have their last barrier "
            "(checkpoint.subtasks-per-channel-state-file)"
        )


def aligned_input_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence on each vertex at which barriers stay aligned although unaligned checkpoints are enabled.

    One input whose channels cannot store in-flight data keeps all inputs of its vertex aligned.
    """
    if not scenario.checkpoint.barriers.record.overtakes:
        return
    inlets = [inlet for vertex in scenario.job.vertices for inlet in vertex.inputs]
    if not any(inlet.shipping.overtaken for inlet in inlets):
        kinds = listed(sorted({inlet.shipping.name for inlet in inlets}))
        yield (
            f"No barrier overtakes data in this job: its edges are {kinds}, whose channels cannot store in-flight data."
        )
        return
    for vertex in scenario.job.vertices:
        aligned = [inlet for inlet in vertex.inputs if not inlet.shipping.overtaken]
        if aligned and not vertex.committer_of:
            others = ", and Flink then keeps all inputs of the vertex aligned" if len(vertex.inputs) > 1 else ""
            yield (
                f"No barrier overtakes data in front of '{vertex.name}': its input '{aligned[0].upstream}' ({aligned[0].shipping.name}) "
                f"cannot store in-flight data{others}."
            )


def harmed_sink(scenario: Scenario) -> str:
    """Return a clause on the first sink that unaligned checkpoints harm, or "" if there is none or they are disabled."""
    if not scenario.checkpoint.barriers.record.overtakes:
        return ""
    sinks = known_sinks(scenario.job).items()
    return next((f"'{name}' ({kind.title}) {kind.verdict}" for name, (_, kind) in sinks if kind.verdict), "")


def file_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the files of checkpoints: physical ones with file merging, or if they are many."""
    rows, every = result.files[result.files["scope"] != "savepoint"], result.checkpoints
    if rows.empty:
        return
    triggers_ms = every.loc[every["savepointFormat"] == "", "trigger_timestamp"]
    firsts = every[first_uploads(every)]
    of_first = {*zip(job_of(firsts), firsts["id"], strict=True)}
    later = rows[[pair not in of_first for pair in zip(rows["owner"], rows["checkpoint"], strict=True)]]
    later = rows if later.empty else later
    begin_ms, end_ms = whole_periods_ms(triggers_ms, -1.0, result.ended_ns / 1e6)
    counted = every[every["trigger_timestamp"] > begin_ms]
    counted_ids, hours = {*zip(job_of(counted), counted["id"], strict=True)}, (end_ms - max(begin_ms, 0.0)) / 3.6e6
    of_periods = rows[[pair in counted_ids for pair in zip(rows["owner"], rows["checkpoint"], strict=True)]]
    each = later.groupby(["owner", "checkpoint"]).size().median()
    done = completed(result)
    done = done[done["savepointFormat"] == ""]
    without = int((~done["id"].isin(rows["checkpoint"])).sum())
    subject = f"{without} of {len(done)} checkpoints write no files, one of the others" if without else "A checkpoint"
    if result.scenario.storage.merging is not None:
        # files that are too large to be merged are physical ones, too
        physical = rows.assign(physical=rows["physical"].where(rows["physical"] >= 0, -2 - rows.index.to_numpy()))
        of_each = physical.loc[later.index].groupby(["owner", "checkpoint"])["physical"].nunique().median()
        an_hour = count_text(physical["physical"][of_periods.index].nunique() / hours)
        yield (
            f"{subject} writes {count_text(each)} files in the median into {count_text(of_each)} physical ones, beside its metadata; "
            f"{an_hour} of these are created per hour; the space that they waste is not counted"
        )
    elif each >= _MIN_FILES or "storage.file-merging" in dict(result.scenario.axes):
        an_hour = count_text(len(of_periods) / hours)
        yield f"{subject} writes {count_text(each)} files in the median, beside its metadata; {an_hour} are written per hour"


def limit_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on changed options, slow files, reached limits (asynchronous requests, acknowledgements, timeout) and growing sizes."""
    done = completed(result)
    for row in result.journal.only({EventType.CHECKPOINTS_CHANGED}):
        yield f"From {ms_text(row.time_ns / 1e6)} on checkpoints have {row.detail}: the user changes them while the job runs (actions)"
    yield from _regional_sentences(result, done)
    yield from overlap_sentences(result)
    yield from _slow_file_sentences(result, done)
    yield from refusal_sentences(result.scenario, result.tables["requests"])
    yield from _limit_sentences(result, done)
    yield from _size_sentences(result, done[is_periodic(done)])


def _regional_sentences(result: Result, done: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the checkpoints that completed without regions that failed.  `done`: completed checkpoints."""
    if not result.scenario.checkpoint.region.enabled:
        return
    ids, replaced = {*done["id"]}, result.journal.only({EventType.PART_REPLACED})
    if kept := [(row.checkpoint, row.number) for row in replaced if row.checkpoint in ids]:
        checkpoint, part = max(kept, key=lambda row: row[0] - row[1])
        without = {number for number, _ in kept}
        yield (
            f"In {len(without)} of {len(done)} completed checkpoints tasks of regions that failed keep parts of older checkpoints, "
            f"the oldest that of checkpoint {part} in checkpoint {checkpoint}; after a failure these regions replay from there"
        )


def _slow_file_sentences(result: Result, done: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the checkpoints that wait for a file that is slow by chance.  `done`: completed checkpoints."""
    storage, path = result.scenario.storage, result.path
    if not storage.slow_probability or storage.merging is not None:  # in a merged file, its physical file decides
        return
    waits = path[path["id"].isin(done["id"]) & (path["file"] != "")]
    names = [tuple(int(part) if part.isdigit() else part for part in file.split("/")) for file in waits["file"]]
    slow = waits[[slowness(storage, result.scenario.run.seed, name) > 1 for name in names]]
    if len(slow):
        yield (
            f"{slow['id'].nunique()} of {len(done)} completed checkpoints wait for a slow file, up to {ms_text(slow['duration'].max() / 1e6)} "
            f"(storage.slow: {share_text(storage.slow_probability)} of the files take {storage.slow_factor} times as long)"
        )


def _limit_sentences(result: Result, done: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on reached limits: asynchronous requests, size of an acknowledgement, and checkpoint timeout.

    `done`: completed checkpoints.
    """
    scenario, timeout_ms = result.scenario, result.scenario.checkpoint.timeout_ns / 1e6
    read = result.tasks.groupby("vertex")["numRecordsIn"].sum() * 1e9 / result.ended_ns
    for vertex in scenario.job.vertices:
        if (requests := vertex.async_io) is None:
            continue
        most = vertex.parallelism * requests.answers_per_second
        if read[vertex.name] >= FULL_SHARE * most:
            yield (
                f"'{vertex.name}' has {requests.capacity} requests of {ms_text(requests.latency.mean / 1e6)} under way per subtask, and more are "
                f"not allowed: {per_second_text(most)} in all, whatever its threads could do (async-io.capacity)"
            )
    in_memory = {
        vertex.name
        for vertex in scenario.job.vertices
        if vertex.state and vertex.state.changelog and vertex.state.changelog.in_memory
    }
    keys, frame_bytes = dict(scenario.written_keys), _FRAME_BYTES
    with suppress(UnitError):  # the key has no effect in the simulation, so its value has not been validated
        frame_bytes = parse_flink_size(keys.get("pekko.framesize", keys.get("akka.framesize", _FRAME_BYTES)))
    rows = result.subtasks[result.subtasks["vertex"].isin(in_memory) & result.subtasks["id"].isin(done["id"])]
    largest = rows.groupby("id")["checkpointed_size"].max()
    if count := int((largest > frame_bytes).sum()):
        yield (
            f"{count} of {len(done)} completed checkpoints have an acknowledgement of more than pekko.framesize ({bytes_text(frame_bytes)}), up to "
            f"{bytes_text(largest.max())}, as the changelog is in memory: Flink drops it, and the checkpoint expires, which is not simulated"
        )
    longest_ms = done["end_to_end_duration"].max()
    min_ms = (
        0 if re.search("expire|(?<!with.)time.?out", scenario.question.lower()) else _MIN_TIMEOUT_SHARE * timeout_ms
    )
    is_known = scenario.has_one_timeout and EXPIRED not in {*result.checkpoints["failure_message"]}
    if min_ms < longest_ms <= timeout_ms and is_known:
        yield f"The longest checkpoint or savepoint takes {ms_text(longest_ms)} of {ms_text(timeout_ms)} (checkpoint.timeout)"


def _size_sentences(result: Result, rows: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the full size of checkpoints if it doubles during the run.  `rows`: completed checkpoints."""
    sizes = (rows["state_size"] - rows["persisted_data"]).tolist()
    half = len(sizes) // 2
    peak_bytes = max(sizes, default=0)
    if half >= _MIN_SIZES and peak_bytes - sizes[0] >= max(sizes[0], _MIN_GROWN_BYTES) and peak_bytes >= 2 * sizes[-1]:
        peak = rows["id"].iloc[sizes.index(peak_bytes)]
        yield (
            f"The full size goes from {bytes_text(sizes[0])} (checkpoint {rows['id'].iloc[0]}) to {bytes_text(peak_bytes)} "
            f"(checkpoint {peak}), and back to {bytes_text(sizes[-1])} (checkpoint {rows['id'].iloc[-1]})"
        )
    elif half >= _MIN_SIZES and sizes[-1] - sizes[0] >= max(sizes[0], _MIN_GROWN_BYTES):
        second_half = sizes[half:]
        is_growing = sizes[-1] > _GROWTH_FACTOR * max(sizes[half : -half // 2]) or all(
            a < b for a, b in pairwise(second_half)
        )
        still = (
            f"still grows, by {bytes_text((second_half[-1] - second_half[0]) / (len(second_half) - 1))} per checkpoint"
            if is_growing
            else "hardly grows"
        )
        still += " in the second half of the run"
        vertices = result.scenario.job.vertices
        if any(vertex.state and vertex.state.changelog for vertex in vertices):
            still += "; each materialization makes it smaller again"
        if len(result.recoveries) and any(vertex.union_state and not vertex.union_state.clears for vertex in vertices):
            still = "grows with each restart (union-state)"
        yield (
            f"The full size goes from {bytes_text(sizes[0])} (checkpoint {rows['id'].iloc[0]}) to {bytes_text(sizes[-1])} "
            f"(checkpoint {rows['id'].iloc[-1]}), and {still}"
        )


# ---- Output.


def output_sentences(runs: Replications) -> Iterator[str]:
    """Yield sentences on the visibility of output, on commits, and on output that is written again after restarts."""
    result, cost = runs.results[0], runs.consequences
    done = completed(result)
    if cost.commits:
        yield "Visible p50 is how long the oldest record of a transaction waits, by records; later ones wait less"
        waits_ms = {
            str(vertex): float(rows["visible_latency"].median())
            for vertex, rows in result.commits[result.commits["visible_latency"] >= 0].groupby("vertex")
        }
        if waits_ms and not is_noise(max(waits_ms.values()), min(waits_ms.values())):
            listed_waits = listed([f"{ms_text(ms)} of '{vertex}'" for vertex, ms in sorted(waits_ms.items())])
            yield f"Sinks differ: output waits {listed_waits} (median of transactions)"
        yield from chained_commits_sentences(result.scenario, waits_ms)
        if "checkpoint.interval" in dict(result.scenario.axes):
            written_bytes = float(done["checkpointed_size"].sum())
            usage = f"with {len(done)} checkpoint{'s' * (len(done) != 1)} and {bytes_text(written_bytes)} of state written in this run"
            if len(done) > _MIN_CHECKPOINTS_FOR_RATE:
                begin_ms, end_ms = whole_periods_ms(done["trigger_timestamp"], -math.inf, result.ended_ns / 1e6)
                counted, span = done[done["trigger_timestamp"] > begin_ms], (end_ms - max(begin_ms, 0.0)) / 3.6e6
                written_bytes = float(counted["checkpointed_size"].sum())
                usage = f"at {count_text(len(counted) / span)} checkpoints and {bytes_text(written_bytes / span)} of state written per hour"
                if runs.storage_use.has_requests and one_off_events_s(result.tables, result.ended_ns / 1e9):
                    usage += ", with one-off events, which the table of requests leaves out"
            yield f"The oldest record of a transaction waits {cost.ms_text('visible_p50_ms')} until it is visible, {usage}"
    commits, files = commits_per_hour([result.tables], [result.ended_ns / 1e9], warmup_s=runs.warmup_s)
    if files > 0:
        is_compacted = any(kind.name == "file-sink-compaction" for _, kind in known_sinks(result.scenario.job).values())
        before = ", as writers flush them; those of the compactor are not counted" * is_compacted
        yield f"Commits per hour: {count_text(commits)} with {count_text(files)} data files{before}"
    restarted = [text and re.split(", | and ", text) for text in result.recoveries["vertices"]]
    for name, (_, kind) in known_sinks(result.scenario.job).items():
        if kind.commit is None and any(not names or name in names for names in restarted):
            is_only = without_readers(result.scenario.job) == (name,)
            count = f": {count_text(result.recoveries['served_again'].sum())} records" if is_only else ""
            yield f"'{name}' writes at once: what is replayed after a restart is written again{count}"


_MIN_INTERVALS_OF_RATES = 10
"""Minimum number of intervals from which rates of requests are extrapolated without a remark: a compaction follows every fourth
checkpoint (`Lsm.level0_files`), and those of larger levels follow less often."""
_GROWING_FACTOR = 1.1
"""Requests in the second half of a run, as a multiple of those in the first, from which they are said to grow."""


def extrapolation_sentences(runs: Replications) -> Iterator[str]:
    """Yield a sentence if requests per hour and the cost per month are extrapolated from too few intervals, or from rates that grow."""
    if not runs.storage_use.has_requests:
        return
    basis = rate_basis(runs.tables, runs.ends_s, warmup_s=runs.warmup_s)
    if basis.intervals < _MIN_INTERVALS_OF_RATES:
        yield (
            f"Requests and bytes per hour and the cost per month are extrapolated from {count_text(basis.intervals)} "
            f"interval{'s' * (basis.intervals != 1)}: too few for a forecast (run.duration)"
        )
    elif basis.growth >= _GROWING_FACTOR:
        yield (
            f"Requests per hour are {share_text(basis.growth - 1)} more in the second half of the run than in the first: in a longer run, and "
            "in a month, requests, bytes and cost are higher (run.duration)"
        )


def sink_sentences(runs: Replications) -> Iterator[str]:
    """Yield sentences on output that is committed twice or not at all, and on windows that never fire."""
    job, result, known = runs.scenario.job, runs.results[0], known_sinks(runs.scenario.job)
    twice = sum(violation.records_twice for violation in result.violations)
    connectors = {vertex.known_connector for vertex in job.vertices}
    yield from rolled_back_sentences(result.tables, twice=twice, connectors=connectors)
    committing = [vertex.name for vertex in job.vertices if vertex.commit is not None and not vertex.committer_of]
    # with several sinks it is unknown which of them had no data
    is_iceberg = len(committing) == 1 and committing[0] in known and known[committing[0]][1].component == "iceberg"
    empty = runs.summary.completed - runs.consequences.commits * len(runs.results)
    if is_iceberg and empty >= _MAX_EMPTY_COMMITS:
        yield (
            f"{empty:.0f} of {runs.summary.completed} completed checkpoints had no data to commit; Iceberg makes an "
            f"empty commit after {_MAX_EMPTY_COMMITS} of these in a row (flink.max-continuous-empty-commits), which is not simulated"
        )
    for vertex in job.vertices if runs.is_finished else ():
        if vertex.window is not None and vertex.window.time == "processing":
            yield (
                f"'{vertex.name}' fires nothing at the end of the data: its windows are in processing time, and Flink drops "
                "timers that are not due"
            )


def timed_out_sentence(runs: Replications) -> Iterator[str]:
    """Yield a sentence on the records of all transactions that timed out, if there are several."""
    if all(
        vertex.commit is None or vertex.commit.transaction_timeout_ns is None for vertex in runs.scenario.job.vertices
    ):
        return
    lost = [records for tables in runs.tables for records in tables["commits"]["lost_records"] if records]
    if len(lost) > 1:
        yield (
            f"{count_text(sum(lost))} records are lost in all, of {len(lost)} commits whose transactions had timed out: one has "
            "to outlive the interval, the failure and the restart (commit.transaction-timeout)"
        )


def long_transaction_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield sentences on sinks whose transaction timeout exceeds the broker's default limit, or is shorter than the interval."""
    interval_ns = scenario.intervals_ns[0] if len(scenario.intervals_ns) == 1 else 0
    for name, (vertex, kind) in known_sinks(scenario.job).items():
        asked_ns = None if vertex.commit is None else vertex.commit.transaction_timeout_ns
        if asked_ns is None or kind.broker_allows_ns is None:
            continue
        asked = ms_text(asked_ns / 1e6)
        if asked_ns > kind.broker_allows_ns:
            allowed = ms_text(kind.broker_allows_ns / 1e6)
            yield (
                f"'{name}' asks for transactions of {asked} ({kind.timeout}): the job does not start unless the "
                f"broker allows it; commit.transaction-timeout: {allowed} shows what a shorter one loses"
            )
        if interval_ns > asked_ns:
            yield (
                f"'{name}' keeps each transaction open for {ms_text(interval_ns / 1e6)} (checkpoint.interval), longer than its "
                f"timeout, {asked}: the broker aborts it and fences its producer, so a real job fails at the next record and restarts, "
                "again and again; here it runs on, and the records of the transaction count as lost"
            )


def without_readers(job: Job) -> tuple[str, ...]:
    """Return the vertices whose records no vertex reads; committers do not count as readers."""
    read = {up for up, down in job.edges if down not in job.committers}
    return tuple(
        vertex.name for vertex in job.vertices if vertex.name not in read and vertex.name not in job.committers
    )


def overlap_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the savepoint that waits longest for the asynchronous thread of a subtask."""
    keys = [name for name in ("x_job", "id") if name in result.subtasks]
    acknowledged = result.subtasks.sort_values("ack_timestamp", kind="stable")
    last = acknowledged.drop_duplicates(keys, keep="last")
    ended = result.checkpoints.merge(last[[*keys, "x_async_queue"]], on=keys)
    ended = ended[(ended["status"] == "COMPLETED") & ended["checkpoint_type"].str.contains("SAVEPOINT")]
    for row in ended.sort_values("x_async_queue").tail(1).to_dict("records"):
        if row["x_async_queue"] >= _MIN_WAIT_MS and not is_noise(row["x_async_queue"], 0):
            yield (
                f"Savepoint {row['id']} waits {ms_text(row['x_async_queue'])} of its {ms_text(row['end_to_end_duration'])} for files of "
                "snapshots that were triggered before it: savepoints are not held back (max-concurrent), and a subtask writes one snapshot "
                "after the other"
            )


def chained_commits_sentences(scenario: Scenario, waits_ms: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on output that waits for several commits, as a sink reads what another one emits on its commit.

    `waits_ms`: median wait of the transactions of a vertex.
    """
    waits: dict[str, list[str]] = {}  # vertex -> the most vertices whose commits a record waits for up to there
    for vertex in scenario.job.vertices:
        before = max((waits[own.upstream] for own in vertex.inputs), key=len, default=[])
        is_last = vertex.commit is not None and vertex.name in waits_ms
        emits = vertex.commit is not None and vertex.commit.emits == "on-commit"
        waits[vertex.name] = [*before, vertex.name] if is_last and emits else before
        if is_last and before:
            path = [*before, vertex.name]
            quoted = listed([f"'{name}'" for name in path])
            yield (
                f"Output of '{vertex.name}' waits for the commits of {quoted} one after the other, "
                f"{ms_text(sum(waits_ms[name] for name in path))} in sum; visible p50 is the wait for one of them"
            )


def refusal_sentences(scenario: Scenario, requests: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on requests that the object store refuses.  `requests`: the table of a run."""
    refused, answered = (
        float(requests[names].to_numpy().sum()) for names in (["refused"], ["put", "list", "get", "refused"])
    )
    store = scenario.storage.object_store
    limit = None if store is None else store.requests_per_second
    if limit is not None and refused > _MIN_REFUSED_SHARE * answered:
        yield (
            f"{100 * refused / answered:.0f} % of the requests are refused (503), as a prefix takes {float(limit):g}/s "
            "(storage.object-store.requests), and tried again: writing takes longer by these waits, and no bandwidth shortens them"
        )


_MIN_REFUSED_SHARE = 0.1
"""Share of refused requests from which they are reported."""
