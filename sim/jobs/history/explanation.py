"""Explain the checkpoints of a recorded job: the answer of `ckptsim explain` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from textwrap import fill
from typing import Any

from sim.explain.explanation import WIDTH, Account, AccountLine, record, text, title, what_if
from sim.jobs.history.causes import HistoryCauses, name_of, place
from sim.jobs.history.history import (
    History,
    SplitHistory,
    SubtaskId,
    find_checkpoint,
    garbage_text,
    is_unaligned,
    late_in,
    slow_subtasks,
    slow_subtasks_text,
    split,
)
from sim.jobs.history.in_common import InCommon, ProfileRow, circumstances, delayed_triggers, in_common, profile
from sim.jobs.history.path import steps
from sim.jobs.source.job_log import clock
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_answers import list_names
from sim.model.text import capitalised, one_line
from sim.model.units import MS
from sim.results.formats import TextTable, bytes_text, ms_text, share_text

# ---- Explanation of one recorded checkpoint.  It has the type of a simulated one, so both are printed by the same code.


def account(history: History, point: RecordedCheckpoint) -> Account:
    """Return the explanation of a checkpoint, with one line for each step of its critical path.

    It has no lines if the statistics of its subtasks are missing: Flink keeps those of the latest checkpoints only.
    """
    causes = HistoryCauses(history, point)
    lines = []
    for (kind, _, _), group in groupby(steps(history, point), key=lambda step: (step.kind, step.subtask, step.writer)):
        alike = list(group)
        first, spent_ns = alike[0], sum(step.duration_ns for step in alike)
        change = None if first.is_open else what_if(kind, spent_ns, is_unaligned=history.overtakes)
        lines.append(AccountLine(kind, first.begin_ns, alike[-1].end_ns, place(first), causes.text(first), change))
    savepoint = "stopping" if point.checkpoint_type.startswith("SYNC") else "requested"
    return Account(
        history.strategy or ("unaligned" if is_unaligned(point) else "barriers not known"),
        0,
        point.id,
        point.status,
        one_line(point.failure_message.rstrip(". "), 200),
        savepoint if point.is_savepoint else "",
        point.trigger_timestamp * MS,
        tuple(lines),
    )


# ---- The answer of `ckptsim explain` about a recorded job.  If the user names a checkpoint, it explains that one.
# Otherwise it explains a few checkpoints of the history, and says how slow checkpoints differ from the others.


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """The explanation of a recorded job: of one given checkpoint, or of the whole history."""

    history: History
    split: SplitHistory
    asked_for: int | None  # id of the given checkpoint; None for the whole history
    accounts: tuple[Account, ...]  # explanations of single checkpoints, step by step
    profile: tuple[ProfileRow, ...]  # time per kind of step: the given checkpoint, or slow ones, and the others
    in_common: InCommon | None  # None for a given checkpoint


def answer(history: History, checkpoint: int | None = None) -> HistoryAnswer:
    """Explain the checkpoint with this id or, if it is None, the whole history.

    Raises `MissingCheckpointError` if the checkpoint is not in the history, or if there are no checkpoints at all.
    """
    point, groups = None if checkpoint is None else find_checkpoint(history, checkpoint), split(history)
    if point is not None:
        others = [other for other in (*groups.slow, *groups.others) if other.id != checkpoint]
        rows = profile(history, [point], others) if point.tasks else []
        return HistoryAnswer(history, groups, checkpoint, (account(history, point),), tuple(rows), None)
    accounts = tuple(account(history, point) for point in _checkpoints_to_explain(groups))
    rows = profile(history, groups.slow, groups.others)
    return HistoryAnswer(history, groups, None, accounts, tuple(rows), in_common(history, groups.slow, groups.others))


def _checkpoints_to_explain(groups: SplitHistory) -> Iterator[RecordedCheckpoint]:
    """Yield the checkpoints to explain step by step: the latest in progress, the latest failed, and the slowest completed one.

    A completed checkpoint with statistics of its subtasks is preferred to a slower one without.
    """
    yield from groups.in_progress[-1:]
    yield from groups.failed[-1:]
    if groups.completed:
        yield max((*groups.slow, *groups.others), key=lambda point: (bool(point.tasks), point.end_to_end_duration))


# ---- The answer as text in 80 columns, and as values for JSON.  Times in JSON are in ns, as for simulated checkpoints.

_MAX_ROWS = 6
"""Maximum rows in each of the lists: slow checkpoints, profile, and associated features."""
_MAX_NAMED_SUBTASKS = 4
_MIN_SIZE_FACTOR = 2
"""Minimum median size of slow checkpoints / that of the others for a sentence about it."""
_MIN_NOTABLE_SHARE = 0.05
"""Minimum share in the total time of a row that the profile shows."""


def answer_text(answer: HistoryAnswer) -> str:
    """Return the answer as text: paragraphs and tables, separated by empty lines."""
    return "\n\n".join(filter(None, _blocks(answer)))


def _blocks(answer: HistoryAnswer) -> Iterator[str]:
    """Yield the paragraphs and tables of an answer; "" for those without content."""
    history, without_completions = answer.history, answer.history.silence
    yield fill(" ".join(() if without_completions is None else without_completions.sentences()), WIDTH)
    yield fill(" ".join(history.partial), WIDTH)
    if history.partial and not history.checkpoints:
        yield from (fill(remark, WIDTH) for remark in history.remarks)
        return
    yield fill(head_text(history), WIDTH)
    yield from (fill(remark, WIDTH) for remark in history.remarks)
    if answer.asked_for is None:
        yield fill(choice_text(answer), WIDTH)
        yield "\n".join(_slow_lines(answer))
    yield from (account_text(history, explained) for explained in answer.accounts)
    yield fill(slow_subtasks_text(history), WIDTH)
    yield "\n".join(_profile_lines(answer))
    yield "\n".join(() if answer.in_common is None else _feature_lines(answer.in_common))
    yield fill(history.contention, WIDTH)
    yield fill(garbage_text(history.garbage, history.age_ms), WIDTH)
    yield fill(" ".join(missing_information(history)), WIDTH)


def account_text(history: History, explained: Account) -> str:
    """Return the explanation of one checkpoint as text.

    It ends with the subtasks that have not acknowledged, if the checkpoint did not complete, and with its circumstances.
    """
    remarks = remarks_on(history, explained.number)
    if explained.lines:
        lines = "\n".join(fill(remark, WIDTH) for remark in remarks)
        return "\n\n".join(filter(None, [text(explained), lines]))
    point = find_checkpoint(history, explained.number)
    return fill(" ".join([without_statistics_text(explained, point), *remarks]), WIDTH)


def remarks_on(history: History, number: int) -> list[str]:
    """Return sentences on the subtasks that have not acknowledged a checkpoint, and on its circumstances."""
    point = find_checkpoint(history, number)
    unacknowledged = () if point.status == "COMPLETED" else unacknowledged_sentences(history, point)
    return [*unacknowledged, *circumstances(history, point)]


def head_text(history: History) -> str:
    """Return the first sentence: job, Flink version, barrier mode, and the number and times of the checkpoints."""
    version = f", Flink {one_line(history.flink_version)}" if history.flink_version else ""
    barriers = f", {history.strategy}" if history.strategy else ""
    count, detailed_count = len(history.checkpoints), len(history.detailed)
    counted = f" of {history.counted}" if history.counted > count else ""
    if not count:
        return f"{one_line(history.name, 60)}{version}{barriers}: no checkpoint is known."
    times = f"{' to '.join(clock(history.checkpoints[index].trigger_timestamp) for index in (0, -1))} UTC"
    subtasks = "" if detailed_count == count else f", {detailed_count} with statistics of their subtasks"
    return f"{one_line(history.name, 60)}{version}{barriers}: {count}{counted} checkpoint{' is' if count == 1 else 's are'} known{subtasks}, {times}."


# ------------------------------------------------------------------------------------------ the whole history


def choice_text(answer: HistoryAnswer) -> str:
    """Return a paragraph about the whole history.

    It counts slow, failed and in-progress checkpoints, and describes delayed triggers, growing state, and restores.
    """
    groups, silence = answer.split, answer.history.silence
    parts = []
    if groups.completed > 1:
        parts.append(f"Median {ms_text(groups.median_ms)}.")
        if groups.slow:
            verb = "is" if len(groups.slow) == 1 else "are"
            parts.append(
                f"{len(groups.slow)} of {groups.completed} completed ones {verb} slow (over {ms_text(groups.limit_ms)})"
                f"{_what_slow_ones_write(groups)}."
            )
        else:
            longest = max(point.end_to_end_duration for point in groups.others)
            limit = ms_text(groups.limit_ms)
            before = "Before that, none" if silence is not None else "None"
            parts.append(
                f"{before} of the {groups.completed} completed ones is slow (over {limit}); the longest took {ms_text(longest)}."
            )
        parts += _not_compared(answer)
    if (outside := slowest_outside(answer.history)) >= 0:
        parts.append(
            f"The job's slowest checkpoint took {ms_text(outside)} according to Flink's summary; it is no longer in the history."
        )
    if groups.failed:
        parts.append(f"{len(groups.failed)} did not complete{_where_they_ended(answer)}.")
        parts += _acknowledged_counts(groups.failed)
    if groups.in_progress:
        parts.append(f"{len(groups.in_progress)} in progress.")
    parts += delayed_triggers(answer.history)
    parts += _growth(answer.history.usual)
    if answer.history.restored:
        parts.append(
            f"The job was restored {'once' if answer.history.restored == 1 else f'{answer.history.restored} times'}."
        )
    return " ".join(parts)


def _what_slow_ones_write(groups: SplitHistory) -> str:
    """Return a clause if slow checkpoints write at least `_MIN_SIZE_FACTOR` times as much as the others.

    For example ``: they write 3.9 GB, the others 414 MB (medians)``.  Returns "" if they do not, or if sizes are unknown.
    """
    slow, others = (
        [point.checkpointed_size for point in points if point.checkpointed_size >= 0]
        for points in (groups.slow, groups.others)
    )
    if not slow or not others or median(slow) < _MIN_SIZE_FACTOR * median(others):
        return ""
    return f": they write {bytes_text(median(slow))}, the others {bytes_text(median(others))} (medians)"


def _acknowledged_counts(failed: Sequence[RecordedCheckpoint]) -> Iterator[str]:
    """Yield a sentence on how many subtasks had acknowledged the failed checkpoints, if they lack the statistics of these."""
    counts = Counter(
        (point.num_acknowledged_subtasks, point.num_subtasks)
        for point in failed
        if not point.tasks and 0 <= point.num_acknowledged_subtasks < point.num_subtasks
    )
    if counts.total() > 1:
        named = [f"{count} of {total} subtasks in {times}" for (count, total), times in counts.most_common(3)]
        (count, _), times = counts.most_common(1)[0]
        same = (
            f". That it is {count} in {times} speaks for one vertex that the barriers do not pass"
            if count and times > 2
            else ""
        )
        yield f"They were acknowledged by {', '.join(named)}{same}."


def _growth(points: Sequence[RecordedCheckpoint]) -> Iterator[str]:
    """Yield a sentence if state grows with each checkpoint, and by more than the checkpoints write."""
    sizes = [point.state_bytes for point in points]
    if len(points) < _MIN_GROWING or min(sizes) <= 0 or any(after <= before for before, after in pairwise(sizes)):
        return
    grown, apart_ms = sizes[-1] - sizes[0], points[-1].trigger_timestamp - points[0].trigger_timestamp
    each, written = grown / (len(points) - 1), median(point.checkpointed_size for point in points)
    if apart_ms <= 0 or written < 0 or each < _MIN_SIZE_FACTOR * written:
        return
    yield (
        f"State grows with each checkpoint, from {bytes_text(sizes[0])} to {bytes_text(sizes[-1])}: by {bytes_text(each)}, where a checkpoint "
        f"writes {bytes_text(written)} (median), so most of it was written before, as by a changelog. That is "
        f"{bytes_text(grown * 3_600_000 / apart_ms)} an hour, and a restore reads all of it."
    )


_MIN_GROWING = 5
"""Minimum number of checkpoints that grow."""


def _not_compared(answer: HistoryAnswer) -> Iterator[str]:
    """Yield a sentence about completed checkpoints that are not compared.

    These are savepoints, and the job's first checkpoint, which uploads all state.
    """
    counted = {point.id for point in (*answer.split.slow, *answer.split.others)}
    done = (point for point in answer.history.checkpoints if point.status == "COMPLETED")
    uncompared = [point for point in done if point.id not in counted]
    savepoints = [point for point in uncompared if point.is_savepoint]
    texts = [
        f"the first ({ms_text(point.end_to_end_duration)})"
        for point in uncompared
        if not point.is_savepoint and point.id == 1
    ]
    if savepoints:
        number = f"{len(savepoints)} savepoint{'s' if len(savepoints) > 1 else ''}"
        texts.append(f"{number} (up to {ms_text(max(point.end_to_end_duration for point in savepoints))})")
    if texts:
        yield f"Not counted: {' and '.join(texts)}."


def slowest_outside(history: History) -> int:
    """Return the duration [ms] of the job's slowest completed checkpoint if it is no longer in the history, otherwise -1."""
    longest_listed_ms = max(
        (point.end_to_end_duration for point in history.checkpoints if point.status == "COMPLETED"), default=-1
    )
    return history.slowest_ms if history.slowest_ms > longest_listed_ms else -1


def _where_they_ended(answer: HistoryAnswer) -> str:
    """Return a clause that counts the steps during which checkpoints failed, or "" if no critical path is known."""
    ends = Counter(
        f"{path[-1].kind.value}{f' of {path[-1].subtask[0]}' if path[-1].subtask else ''}"
        for point in answer.split.failed
        if (path := steps(answer.history, point))
    )
    return f": {', '.join(f'{count} ended at {where}' for where, count in ends.most_common(3))}" if ends else ""


def slow_rows(answer: HistoryAnswer, most: int) -> list[list[str]]:
    """Return a row per slow or failed checkpoint: id, trigger time, duration, and its longest step.

    Returns at most `most` slow and `most` failed ones, or nothing for a single checkpoint.
    """
    rows = []
    for point in (*answer.split.slow[:most], *reversed(answer.split.failed[-most:])):
        explained = account(answer.history, point)
        took = ms_text(point.end_to_end_duration) if point.end_to_end_duration >= 0 else "?"
        where = "no statistics of its subtasks"
        if explained.lines:
            longest = explained.longest
            where = f"{share_text(longest.duration_ns / explained.duration_ns)} {longest.name}, {longest.place}"
        failure = "" if point.status == "COMPLETED" else f"; {one_line(point.failure_message, 120)}"
        rows.append([str(point.id), clock(point.trigger_timestamp), took, f"{where}{failure}"])
    return rows if len(rows) > 1 else []


def _slow_lines(answer: HistoryAnswer) -> Iterator[str]:
    """Yield the lines of `slow_rows`."""
    numbers = len(answer.split.slow), len(answer.split.failed)
    # A line "and 1 more" would take as much space as the row that it replaces.
    rows = slow_rows(answer, _MAX_ROWS + 1 if max(numbers) == _MAX_ROWS + 1 else _MAX_ROWS)
    for number, at, took, what in rows:
        yield _cut(f"{number:>6}  {at[-8:]}  {took:>7}  {what}")
    if rows and (unlisted := sum(numbers) - len(rows)):
        yield f"        and {unlisted} more"


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def profile_table(answer: HistoryAnswer) -> TextTable:
    """Return a table of the time per kind of step and vertex, without steps that hardly take any.

    The first column is the mean over slow checkpoints (or the given checkpoint), the second the median over the others.
    """
    slow, others = (sum(bool(point.tasks) for point in points) for points in (answer.split.slow, answer.split.others))
    header = [f"{slow} slow (mean)", f"{others} others (median)"] if slow else [f"{others} checkpoints (median)"]
    if answer.asked_for is not None:
        header = [f"checkpoint {answer.asked_for}", "others (median)"]
    min_ns = _MIN_NOTABLE_SHARE * max(
        sum(row.slow_ns for row in answer.profile), sum(row.others_ns for row in answer.profile)
    )
    rows = []
    for row in answer.profile:
        if max(row.slow_ns, row.others_ns) >= min_ns:
            kind, vertex = row.where
            times = [row.slow_ns, row.others_ns][-len(header) :]
            name = f"{kind.value}{f' of {one_line(vertex, 24)}' if vertex else ''}"
            rows.append([name, *(ms_text(time_ns / 1e6) for time_ns in times)])
    return TextTable("Where the time goes", ["", *header], rows)


def _profile_lines(answer: HistoryAnswer) -> Iterator[str]:
    """Yield the lines of `profile_table`."""
    table = profile_table(answer)
    rows = [[table.title, *table.header[1:]], *([f"  {name}", *times] for name, *times in table.rows[:_MAX_ROWS])]
    for name, *cells in rows if table.rows else ():
        yield f"{_cut(name):<40}{''.join(f'{cell:>{40 // len(cells)}}' for cell in cells)}"


def features_text(common: InCommon) -> str:
    """Return a sentence about the tests for features of slow checkpoints, or "" if none was tested."""
    if not common.tried:
        return ""
    if common.slow and common.is_too_few:
        return (
            f"Associated with slow checkpoints: {common.slow} slow and {common.others} other checkpoints are too few to rule out chance "
            f"(a feature of all slow checkpoints and no others would have p = {common.least_p:.2g})."
        )
    sample = (
        f"{common.slow} slow {'one' if common.slow == 1 else 'ones'}, {common.others} others, {common.tried} features tested"
        if common.slow
        else f"{common.others} checkpoints"
    )
    if not common.findings:
        return f"Associated with slow checkpoints: nothing that chance would not explain ({sample})."
    which = "slow" if common.slow else "longer"
    return f"Associated with {which} checkpoints ({sample}; p-value, then p-value corrected for all tests):"


def feature_rows(common: InCommon) -> list[list[str]]:
    """Return a row per feature that is associated with slow checkpoints: text, significance, and its two p-values."""
    findings = () if common.slow and common.is_too_few else common.findings
    return [[row.text, row.how_sure, f"{row.p:.2g}", f"{row.corrected:.2g}"] for row in findings]


def _feature_lines(common: InCommon) -> Iterator[str]:
    """Yield the lines of `features_text` and `feature_rows`."""
    yield fill(features_text(common), WIDTH)
    for feature, sure, p, corrected in feature_rows(common)[:_MAX_ROWS]:
        text = f"{feature} ({sure}: p = {p}, {corrected})"
        yield fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ")


# ------------------------------------------------------------------------------------------ missing information


def unacknowledged_sentences(history: History, point: RecordedCheckpoint) -> Iterator[str]:
    """Yield sentences on the subtasks that have not acknowledged a checkpoint, and on their progress."""
    unacknowledged = late_in(history, point)
    if not unacknowledged:
        if point.tasks:
            yield "All subtasks with statistics had acknowledged."
        return
    total = sum(vertex.parallelism for vertex in history.vertices if vertex.name in point.tasks)
    yield f"Not acknowledged by {len(unacknowledged)} of {total} subtasks: {_names(list(unacknowledged))}."
    begun = [name for name, row in unacknowledged.items() if row is not None and row.start_delay >= 0]
    if begun:
        yield f"Of these, {_names(begun)} had received their first barrier."
    else:
        yield "Flink reports nothing else about them; their progress is inferred from their upstream subtasks."


def _names(names: Sequence[SubtaskId]) -> str:
    return list_names([*map(name_of, names)], _MAX_NAMED_SUBTASKS)


def without_statistics_text(explained: Account, point: RecordedCheckpoint) -> str:
    """Return sentences about a checkpoint whose subtask statistics are missing."""
    name = capitalised(title(explained))
    took = ms_text(point.end_to_end_duration) if point.end_to_end_duration >= 0 else "a time that is not known"
    written = (
        f"{bytes_text(point.checkpointed_size)} written" if point.checkpointed_size >= 0 else "bytes written unknown"
    )
    size = f", with {bytes_text(point.state_bytes)} of state ({written})" if point.state_bytes > 0 else ""
    if point.status == "FAILED":
        why = one_line(point.failure_message.rstrip(". "), 200) or "no reason is known"
        return f"{name} was given up after {took} ({why}). {_acknowledged_of(point)}"
    if point.status == "IN_PROGRESS":
        # Flink's own duration is until the latest acknowledgement.
        is_until_now = point.end_to_end_duration > max(-1, point.latest_ack_timestamp - point.trigger_timestamp)
        since = f", {took} after its trigger" if is_until_now else ""
        return f"{name} was still in progress at the end of what was read{since}. {_acknowledged_of(point)}"
    return (
        f"{name} took {took}{size}. Statistics of its subtasks are missing, so it is unknown where it spent its time."
    )


def _acknowledged_of(point: RecordedCheckpoint) -> str:
    """Return a sentence with the number of acknowledgements, which Flink reports even without statistics of the subtasks."""
    count, total = point.num_acknowledged_subtasks, point.num_subtasks
    after_ms = point.latest_ack_timestamp - point.trigger_timestamp
    if point.status == "FAILED" and 0 < count == total and 0 <= after_ms < point.end_to_end_duration:
        return (
            f"All {total} subtasks had acknowledged after {ms_text(after_ms)}: what failed is the JobManager, which writes _metadata and stores "
            "the checkpoint for its recovery (high-availability). Look there, not at tasks."
        )
    if not 0 <= count < total:
        return "Statistics of its subtasks are missing."
    if not count:
        look = (
            ": look at their threads, and at the storage that they write to"
            if "expired" in point.failure_message
            else ""
        )
        return f"None of its {total} subtasks had acknowledged, not even one of a source, which waits for no barrier{look}."
    last = f", the last {ms_text(after_ms)} after the trigger" if after_ms >= 0 else ""
    return (
        f"{count} of {total} subtasks had acknowledged{last}. "
        f"GET /jobs/JOB/checkpoints/details/{point.id}/subtasks/VERTEX lists the others."
    )


def missing_information(history: History) -> Iterator[str]:
    """Yield sentences about the information that the source of the history does not contain."""
    if not history.detailed and not history.partial:
        yield "Without subtask statistics, critical paths are unknown."
        yield "Logs contain none; the JobManager keeps only those of the latest checkpoints."
        return
    if history.partial and not history.detailed:
        return
    yield (
        "Flink's statistics do not record the channel of the last barrier, the data queued before it, work before the barrier, what the "
        "asynchronous phase waited for, "
        "and the time to write _metadata."
    )
    if not history.threads:
        yield "This source has no times of the task threads."
    if not history.task_managers:
        yield "This source does not say on which TaskManagers subtasks run."


def plain(answer: HistoryAnswer) -> dict[str, Any]:
    """Return the answer as values for JSON.

    `explained` has one record per explained checkpoint, in the format of simulated ones, plus those of `_history_only_fields`.
    """
    history, groups = answer.history, answer.split
    explained = [record(account) | _history_only_fields(history, account.number) for account in answer.accounts]
    common = answer.in_common
    return {
        "job": history.name,
        "flink_version": history.flink_version,
        "barriers": history.strategy,
        "known": [point.id for point in history.checkpoints],
        "median_ns": round(groups.median_ms * MS),
        "slow": [_brief(point) for point in groups.slow],
        "failed": [_brief(point) | {"failure": point.failure_message} for point in groups.failed],
        "under_way": [point.id for point in groups.in_progress],
        "explained": explained,
        "where": [
            {
                "part": row.where[0].value,
                "vertex": row.where[1],
                "slow_ns": round(row.slow_ns),
                "others_ns": round(row.others_ns),
            }
            for row in answer.profile
        ],
        "in_common": None
        if common is None
        else {
            "slow": common.slow,
            "others": common.others,
            "tried": common.tried,
            "findings": [
                {"text": row.text, "how_sure": row.how_sure, "p": row.p, "p_corrected": row.corrected}
                for row in common.findings
            ],
        },
        "silence": None if history.silence is None else list(history.silence.sentences()),
        "partial": list(history.partial),
        "remarks": list(history.remarks),
        "slowest_outside_ns": slowest_outside(history) * MS if slowest_outside(history) >= 0 else None,
        "slow_subtasks": [slow._asdict() for slow in slow_subtasks(history)],
        "contention": history.contention,
        "garbage_collection": garbage_text(history.garbage, history.age_ms),
        "not_told": list(missing_information(history)),
    }


def _brief(point: RecordedCheckpoint) -> dict[str, Any]:
    """Return id, duration (None if unknown) and trigger time of a checkpoint."""
    duration_ns = point.end_to_end_duration * MS if point.end_to_end_duration >= 0 else None
    return {"checkpoint": point.id, "duration_ns": duration_ns, "trigger_ns": point.trigger_timestamp * MS}


def _history_only_fields(history: History, number: int) -> dict[str, list[str]]:
    """Return the JSON values of a recorded checkpoint that a simulated one does not have."""
    point = find_checkpoint(history, number)
    unacknowledged = () if point.status == "COMPLETED" else late_in(history, point)
    return {
        "not_acknowledged": [f"{vertex}[{index}]" for vertex, index in unacknowledged],
        "circumstances": list(circumstances(history, point)),
    }
