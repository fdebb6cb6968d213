"""Infer the state of each vertex from the checkpoint history: backend, size, growth, and updates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import correlation, linear_regression, median

from sim.jobs.infer.cores import infer_pauses, typical_checkpoints
from sim.jobs.infer.draft import Draft, Section, format_whole_ms, size_3_digits
from sim.jobs.infer.file_history import (
    FALLS_FOR_GROWTH,
    Files,
    acknowledged,
    acknowledged_by,
    files_of,
    increment_bytes,
    inline_bytes,
    own_bytes,
    rewritten_bytes,
    seconds_between,
    state_below_changelog,
    written_bytes,
    written_whole,
)
from sim.jobs.infer.options import configured_ms
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_job import Flows, RestJob, RestVertex
from sim.model.state import Lsm, backend_named
from sim.model.units import (
    SECOND,
    UnitError,
    format_byte_rate,
    format_duration,
    format_share,
    format_size,
    parse_flink_duration,
    parse_size,
)

# ---- Updates: the share of records that overwrite an existing entry of the state.
#
# With RocksDB or a changelog, the bytes written per checkpoint show the product of number of updates and entry size.
# Snapshots of the heap are always full, and show neither.  Then the user is asked for both, and told how they matter.

_EXAMPLE_SHARES = (1.0, 0.1)
"""Shares of updates whose effect the question describes, in addition to 0."""
_MIN_RECORD_BYTES, ASSUMED_ENTRY_BYTES = 5, 1000
"""Size of the smallest possible record on the wire, and the entry size that is assumed if record sizes are unknown."""
_MIN_UPDATE_SHARE = Fraction(1, 10)
"""The share of updates that is assumed at least, even if nearly every record adds a key."""
_UPDATE_QUESTION = "Which share of the records updates an entry?"
_VALUE_QUESTION = "How large is an entry of its state (state size / number of keys)?"


def infer_rewritten(
    section: Section, points: Sequence[RecordedCheckpoint], flow: Flows, rewritten: float, why: str
) -> None:
    """Set `state.update` and `state.value`, of which the history shows only the product.

    Args:
        section: The vertex in the draft.
        points: Its checkpoints.
        flow: The counters of the vertex.
        rewritten: Bytes that updates write per checkpoint; 0 if unknown.
        why: Origin of `rewritten`, as text.
    """
    per_second, between = flow.per_second("records_in"), seconds_between(points)
    read = round(flow.bytes_per_record) if flow.bytes_per_record > 0 else 0
    if not (rewritten and between and per_second > 0 and read):
        section.ask("state.update", "10 %", _UPDATE_QUESTION, "one in ten.")
        return
    records = per_second * between
    value = max(read, math.ceil(rewritten / records))  # a record updates at most one entry
    share = Fraction(f"{min(1.0, rewritten / (records * value)):.3f}")
    origin = f"{why} / ({records:,.0f} records between two checkpoints x {value} bytes)"
    section.put("state.update", format_share(share), origin)
    smallest = "every record updates an entry, and no files were merged; with merges it is smaller."
    assumed = "as large as the records it reads." if value == read else smallest
    section.ask("state.value", format_size(value), _VALUE_QUESTION, assumed)


def ask_for_updates(draft: Draft, job: RestJob) -> None:
    """Ask for the updates of each state on the heap.  They matter only when `advise` tries RocksDB or a changelog."""
    points = typical_checkpoints(job)
    for vertex in job.vertices:
        section, flow = draft.vertex(vertex.name), job.flows[vertex.name]
        state = section.values.get("state", {})
        if "size" in state and "window" not in section.values and not state.keys() & {"backend", "changelog", "update"}:
            # The size in the scenario may be 0, because the state grows during the run.  So the largest known size is used.
            totals = [sum(map(own_bytes, acknowledged_by(point, vertex.name))) for point in points]
            records = flow.per_second("records_in") * seconds_between(points)
            ask_for_update(section, flow, records, max(totals, default=0))


def ask_for_update(section: Section, flow: Flows | None, records: float, size: int) -> None:
    """Ask for the updates of a state of at most `size` bytes, in a vertex that reads `records` between two checkpoints."""
    state = section.values["state"]
    value = round(entry_bytes(state, flow))
    new = Fraction(parse_size(state.get("growth", "0 B")), value)
    share = max(1 - new, _MIN_UPDATE_SHARE)
    effect = f" {_checkpoint_sizes_text(size, value, records, share, new)}" if records > 0 else ""
    why = "all, as in an operator that counts or keeps a value per key" if share == 1 else "those without a new key"
    section.ask(
        "state.update",
        format_share(Fraction(f"{float(share):.3f}")),
        "Which share of the records updates an existing entry?",
        f"{why}; between 0 % and 100 %. Snapshots of the heap do not show it, and do not depend on it.{effect}",
    )
    assumed = f"as large as the records it reads, or 1 kB if these are not measured; at most {format_size(max(size, 1))}, with a single key."
    section.ask("state.value", format_size(value), _VALUE_QUESTION, assumed)


def entry_bytes(state: Mapping[str, str], flow: Flows | None) -> float:
    """Return the entry size of a state [bytes]: `value` if it is set, else the mean record size, else `ASSUMED_ENTRY_BYTES`."""
    if "value" in state:
        return max(parse_size(state["value"]), 1)
    counted = flow is not None and flow.bytes_per_record >= _MIN_RECORD_BYTES  # False for NaN
    read = flow.bytes_per_record if flow is not None and counted else ASSUMED_ENTRY_BYTES
    return min(read, parse_size(state["size"]) or read)


def _checkpoint_sizes_text(size: int, value: int, records: float, share: float | Fraction, new: Fraction) -> str:
    """Return a sentence on the checkpoint sizes with RocksDB and with a changelog, for some shares of updates.

    `share`: the largest share of records that update an entry.  `new`: share of the records with a new key.
    """
    shares, added = [Fraction(f"{float(part * share):.3f}") for part in _EXAMPLE_SHARES], float(new) * value * records
    tables = [size_3_digits(increment_bytes(size, value, part * records) + added) for part in shares]
    logs = [size_3_digits(value * part * records + added) for part in shares]
    only_new = f"{size_3_digits(added)} (new keys only)" if added else "new keys only"
    most, less = map(format_share, shares)
    return (
        f"An incremental checkpoint with RocksDB would write about {tables[0]} at {most}, {tables[1]} at {less}, {only_new} at 0 %; "
        f"with a changelog {logs[0]}, {logs[1]}, or {only_new}."
    )


# ---- Cost of RocksDB snapshots apart from uploading: the flush in the synchronous phase.


def infer_flushes(
    section: Section, points: Sequence[RecordedCheckpoint], vertex: str, files_by_subtask: Mapping[int, Files]
) -> None:
    """Set `state.lsm.freeze` and `state.lsm.flush`.  `files_by_subtask` has the files of each subtask, by index."""
    sync_phases_ms = [
        ms for point in points for subtask in acknowledged_by(point, vertex) if (ms := subtask.checkpoint.sync) >= 0
    ]
    if not sync_phases_ms:
        return
    sync_ms, flushed = median(sync_phases_ms), median(files.increment_bytes for files in files_by_subtask.values())
    flush_ms = flushed / Lsm().flush_bytes_per_second * 1000
    origin = f"median of {len(sync_phases_ms)} synchronous phases: {sync_ms:g} ms"
    if sync_ms >= flush_ms:
        freeze = format_whole_ms(sync_ms - flush_ms)
        section.put("state.lsm.freeze", freeze, f"{origin}, less the flush of {flushed:,.0f} bytes")
    else:
        rate = format_byte_rate(max(round(flushed / max(sync_ms, 1) * 1000), 1))
        section.put("state.lsm.flush", rate, f"{flushed:,.0f} bytes / {origin}")
        section.put("state.lsm.freeze", "0 s")


# ---- State of each vertex: backend and size from its latest checkpoint, growth and updates from the history.
#
# The size is `state_size` minus in-flight data.  The history does not separate keyed state from operator state.  So the
# state of a vertex with a keyed input is assumed to be keyed state, and that of other vertices operator state.

TTL = "table.exec.state.ttl"

_MIN_POINTS_OF_LINE = 5
"""Minimum number of checkpoints from which growth is inferred."""
_MIN_GROWTH_FACTOR = 1.1
"""Minimum last size / first size of a state that grows."""
_MIN_CORRELATION = 0.95
"""Minimum correlation of sizes with time for linear growth."""
_MIN_LATE_SLOPE = 0.6
"""Minimum slope of the second half of the sizes / that of all, for a state that goes on growing."""


def infer_state(draft: Draft, job: RestJob) -> None:
    """Set `state:` and `snapshot:` of each vertex, and `checkpoint.incremental`."""
    points = typical_checkpoints(job)
    savepoints = [point for point in job.checkpoints if point.status == "COMPLETED" and point.is_savepoint]
    for vertex in job.vertices:
        section, flow = draft.vertex(vertex.name), job.flows[vertex.name]
        is_keyed = any(edge.ship == "HASH" for edge in vertex.inputs)  # then its state is assumed to be keyed
        in_files = is_keyed and backend_of(job) != "hashmap"
        infer_pauses(section, job, vertex, with_sync=not in_files or _has_changelog(job))
        sizes = _sizes(points, vertex.name) or _sizes(savepoints, vertex.name)
        if not sizes:
            section.remark_question(
                "How much state does it keep?", "none: no completed checkpoint with it is known in detail."
            )
        elif not any(sizes[-1][1]):
            continue
        elif not is_keyed:
            _put_size(section, "snapshot.operator-state", *sizes[-1], "the last")
        elif in_files or _has_changelog(job):
            _infer_backend(section, job, sizes)
            if points:
                _infer_state_in_files(section, job, vertex, points, flow)
        else:
            _put_size(section, "state.size", *sizes[-1], "the last")
            infer_growth(
                section,
                job.options,
                [(point, sum(subtask_sizes)) for point, subtask_sizes in sizes],
                flow.per_second("records_in"),
            )
            if not _configured_backend(job):
                section.add_question("state.size", BACKEND_QUESTION, "on the heap, Flink's default.")
    if any("backend" in vertex.get("state", {}) for vertex in draft.document["job"].values()):
        if origin := _why_incremental(job):
            draft.put("checkpoint.incremental", True, origin)
        elif is_incremental_configured(job):
            origin = "configured, but not in effect: checkpoints write all that they refer to, in files; `ckptsim explain` says why that may be"
            draft.put("checkpoint.incremental", False, origin)


_Sizes = Sequence[tuple[RecordedCheckpoint, list[int]]]
"""Pairs of a checkpoint and the state of each subtask of a vertex in it [bytes]."""


def _sizes(points: Iterable[RecordedCheckpoint], vertex: str) -> _Sizes:
    sizes = ((point, list(map(own_bytes, acknowledged_by(point, vertex)))) for point in points)
    return [(point, subtask_sizes) for point, subtask_sizes in sizes if subtask_sizes]


def _put_size(section: Section, path: str, chosen: RecordedCheckpoint, subtask_sizes: list[int], which: str) -> None:
    """Set a size from the `chosen` checkpoint: the sum over subtasks for keyed state, their median for operator state.

    `subtask_sizes` has the size of each subtask, and `which` says in words which checkpoint was chosen.
    """
    each = f"{min(subtask_sizes):,} to {max(subtask_sizes):,} bytes each"
    origin = f"state of checkpoint {chosen.id}, {which} known, in {len(subtask_sizes)} subtasks, {each}"
    size = sum(subtask_sizes) if path == "state.size" else round(median(subtask_sizes))
    section.put(path, format_size(size), origin)


def _infer_backend(section: Section, job: RestJob, sizes: _Sizes) -> None:
    """Set size, backend and changelog of a vertex with RocksDB or a changelog."""
    backend = backend_of(job)
    if backend == "hashmap":
        _put_size(section, "state.size", *sizes[-1], "the last")
    else:  # files also contain overwritten values, so the smallest size is closest to that of the state
        _put_size(section, "state.size", *min(sizes, key=lambda pair: sum(pair[1])), "the smallest")
        put_backend(section, _configured_backend(job), f"{backend}: {_why_incremental(job)}.")
    if not _has_changelog(job):
        return
    every_ms = _materialization_ms(job)
    section.put("state.changelog", {}, "state.changelog.enabled in the configuration")
    if every_ms > 0:
        section.put("state.changelog.materialize", format_whole_ms(every_ms))
    if backend != "hashmap":
        rate = format_byte_rate(Lsm().flush_bytes_per_second)
        assumed = f"{rate}. With a changelog checkpoints do not flush; without it each of them waits for the flush."
        section.ask("state.lsm.flush", rate, "How fast does RocksDB write its memtables to disk?", assumed)
    storage = job.options.get("state.changelog.storage")
    if storage:
        section.put("state.changelog.storage", storage, "in the configuration")
    else:
        question = "Where is the changelog (state.changelog.storage)?"
        section.ask("state.changelog.storage", "memory", question, "memory, Flink's default.")


def infer_growth(
    section: Section,
    options: Mapping[str, str],
    sizes: Sequence[tuple[RecordedCheckpoint, int]],
    per_second: float,
) -> None:
    """Set size and growth per record of a state whose sizes rise over the history.

    The scenario starts with the size at the start of the history.  If the rise has slowed down, the state is assumed to
    stay at its last size, because it has nearly all of its keys, or as many expire as arrive.

    Args:
        section: The vertex in the draft.
        options: Configuration of the cluster.
        sizes: Pairs of a checkpoint and the state of the vertex [bytes], oldest first.
        per_second: Records per second that the vertex reads; NaN if unknown.
    """
    points, size_bytes = [point for point, _ in sizes], [size for _, size in sizes]
    seconds = [point.trigger_timestamp / 1000 for point in points]
    rises = len(sizes) >= _MIN_POINTS_OF_LINE and size_bytes[-1] > _MIN_GROWTH_FACTOR * size_bytes[0]
    if not rises or len(set(seconds)) < _MIN_POINTS_OF_LINE or not per_second > 0:  # False for NaN, too
        return
    slope, half = linear_regression(seconds, size_bytes).slope, len(sizes) // 2
    late_slope = linear_regression(seconds[half:], size_bytes[half:]).slope
    if late_slope < _MIN_LATE_SLOPE * slope and _is_line(seconds[:half], size_bytes[:half]):
        _put_level(section, options, points[half].id, size_bytes, per_second)
    elif _is_line(seconds, size_bytes) and round(slope / per_second) >= 1:
        begin = max(size_bytes[0] - slope * seconds_between(points), 0)
        origin = f"one interval before checkpoint {points[0].id}, the first known, which has {size_bytes[0]:,} bytes; it grows from there"
        why = f"({len(sizes)} checkpoints on a line, to {size_bytes[-1]:,} bytes in {points[-1].id})"
        _put_size_and_growth(section, begin, origin, slope, why, per_second)
        _put_or_ask_for_ttl(section, options, seconds[-1] - seconds[0])


def _is_line(seconds: Sequence[float], size_bytes: Sequence[int]) -> bool:
    return len({*size_bytes}) > 1 and correlation(seconds, size_bytes) >= _MIN_CORRELATION


def _put_size_and_growth(
    section: Section, size: float, origin: str, bytes_per_second: float, why: str, per_second: float
) -> None:
    """Set the size with its `origin`, and the growth per record, with the origin `why` of the bytes per second."""
    section.put("state.size", format_size(round(size)), origin)
    added = format_size(max(round(bytes_per_second / per_second), 1))
    section.put("state.growth", added, f"{bytes_per_second:,.0f} bytes/s {why} / {per_second:,.1f} records/s")


def _put_level(
    section: Section, options: Mapping[str, str], since: int, size_bytes: Sequence[int], per_second: float
) -> None:
    """Set the size of a state that hardly grows any more, `since` a checkpoint.

    With a TTL, the growth per record is that which keeps the size: as many keys expire as arrive.
    """
    size, same = size_bytes[-1], size_bytes[-_MIN_POINTS_OF_LINE:]
    stays = f"it hardly grows since checkpoint {since}"
    if len(set(same)) == 1:
        why = f"equal to the byte in the last {len(same)} checkpoints with {per_second:,.0f} records/s: all keys exist"
        section.put("state.size", format_size(size), f"{stays}; {why}")
    elif ttl_ns := _configured_ttl_ns(options):
        expires = f"expire in the TTL of {format_duration(ttl_ns)}, while as many arrive"
        _put_size_and_growth(section, size, stays, size / ttl_ns * SECOND, expires, per_second)
        _put_or_ask_for_ttl(section, options, 0.0)
    else:
        section.put("state.size", format_size(size), stays)
        question = "Has it reached its full number of keys, or do keys expire (StateTtlConfig)?"
        section.add_question("state.size", question, "all keys exist, so the size does not depend on the rate.")


def _put_or_ask_for_ttl(section: Section, options: Mapping[str, str], known_s: float) -> None:
    """Set the TTL of a growing state if it is configured (SQL), otherwise ask for it.

    `known_s` is the time over which it has grown, for the question.
    """
    ttl_ns = _configured_ttl_ns(options)
    if ttl_ns:
        section.put("state.ttl", format_duration(ttl_ns), f"{TTL} in the configuration of the cluster")
    elif ttl_ns is None:
        assumed = f"never. It has grown for {known_s:,.0f} s, the whole history."
        section.add_question("state.growth", "When do its keys expire (StateTtlConfig: ttl)?", assumed)


def _configured_ttl_ns(options: Mapping[str, str]) -> int | None:
    """Return the configured TTL of an SQL job [ns], 0 if keys never expire, or None if it is not configured or invalid."""
    try:
        return parse_flink_duration(options[TTL]) if TTL in options else None
    except UnitError:
        return None


def _infer_state_in_files(
    section: Section, job: RestJob, vertex: RestVertex, points: list[RecordedCheckpoint], flow: Flows
) -> None:
    """Set size, growth and updates of a state in files: RocksDB, or a changelog.

    The size is taken from checkpoints right after a compaction (or a materialization of the changelog), because files then
    contain the fewest overwritten values.  If none was observed, only the updates are inferred.
    """
    estimates = {index: files_of(pairs) for index, pairs in sorted(acknowledged(points, vertex.name).items())}
    files_by_subtask = {index: files for index, files in estimates.items() if files is not None}
    all_files, per_second, between = (
        list(files_by_subtask.values()),
        flow.per_second("records_in"),
        seconds_between(points),
    )
    if len(all_files) < vertex.parallelism:
        section.append_comment("state.size", "no compaction was observed: it may include overwritten values")
        if not (_why_incremental(job) or _has_changelog(job)):
            section.ask("state.update", "10 %", _UPDATE_QUESTION, "one in ten; full checkpoints do not show it.")
            return
        tasks = [point.tasks[vertex.name] for point in points if vertex.name in point.tasks]
        written = median(sum(map(written_bytes, task.subtasks)) for task in tasks)
        infer_rewritten(section, points, flow, written, f"median of {written:,.0f} bytes written per checkpoint")
        return
    size, slope, increment = (
        sum(getattr(files, name) for files in all_files)
        for name in ("size_bytes", "bytes_per_second", "increment_bytes")
    )
    state = section.values["state"]
    logs, last = "changelog" in state, max(files.falls[-1][0].id for files in all_files)
    why = "after a materialization, without the changelog" if logs else "after a compaction, without later writes"
    origin = f"checkpoint {last} {why}"
    if logs:
        slope = 0.0
        cycles = max(_materialization_ms(job) / 1000 / between, 1.0) if between else 1.0
        if "backend" in state:
            size = sum(state_below_changelog(files, cycles * files.increment_bytes) for files in all_files)
            origin += ", and without values that RocksDB had not compacted"
    why = f"files grow by {increment:,.0f} bytes from one checkpoint to the next (median)"
    if slope > 0 and per_second > 0 and round(slope / per_second):
        begin_s, end_s = points[0].trigger_timestamp / 1000, points[-1].trigger_timestamp / 1000
        origin = f"one interval before checkpoint {points[0].id}, on the line to {size:,.0f} bytes in {origin}"
        size = sum(files.size_at(begin_s - between) for files in all_files)
        latest = f"(the latest {FALLS_FOR_GROWTH} such checkpoints)"
        _put_size_and_growth(section, size, origin, slope, latest, per_second)
        _put_or_ask_for_ttl(section, job.options, end_s - begin_s)
        why += ", less new keys"
    else:
        section.put("state.size", format_size(round(size)), origin)
    if not logs:
        infer_flushes(section, points, vertex.name, files_by_subtask)
    increment = max(increment - slope * between, 0.0)
    infer_rewritten(section, points, flow, increment if logs else rewritten_bytes(increment, size), why)


def _has_changelog(job: RestJob) -> bool:
    enabled = job.checkpoint_config.state_changelog_enabled
    return job.options.get("state.changelog.enabled") == "true" if enabled is None else enabled


def _materialization_ms(job: RestJob) -> int:
    """Return the time between two materializations of a changelog, or 0 if it is unknown or unlimited."""
    every_ms = job.checkpoint_config.changelog_periodic_materialization_interval
    key = "state.changelog.periodic-materialize.interval"
    return max(configured_ms(job.options, key) if every_ms is None else every_ms, 0)


BACKEND_QUESTION = "Which state backend keeps it?"


def put_backend(section: Section, configured: str | None, assumed: str) -> None:
    """Set the backend of a state.  If it is not configured, ask for it: the first word of `assumed` is the assumption."""
    if not configured:
        section.ask("state.backend", re.split(r"\W", assumed)[0], BACKEND_QUESTION, assumed)
        return
    name = backend_named(configured)
    section.put("state.backend", name or "rocksdb", f"{configured} in the configuration")
    if name is None:
        section.draft.not_modelled.append(f"the state backend of '{section.name}': simulated as rocksdb")


def _configured_backend(job: RestJob) -> str | None:
    return job.checkpoint_config.state_backend or job.options.get("state.backend.type")


def backend_of(job: RestJob) -> str:
    """Return the name of the job's state backend in a scenario, or "other" if scenarios do not have that backend."""
    if configured := _configured_backend(job):
        return backend_named(configured) or "other"
    return "rocksdb" if _why_incremental(job) and not _has_changelog(job) else "hashmap"


def is_incremental_configured(job: RestJob) -> bool:
    """Return whether the configuration asks for incremental checkpoints, which need not be in effect."""
    return job.options.get("execution.checkpointing.incremental", "").lower() == "true"


@lru_cache(maxsize=1)
def _why_incremental(job: RestJob) -> str:
    """Return why checkpoints are taken to be incremental, or "" if they are not: they write 90 % of their size or more.

    Those that are configured as incremental are, unless they write all that they refer to, and more than goes inline.
    """
    points = typical_checkpoints(job)
    subtasks = [subtask for point in points for task in point.tasks.values() for subtask in task.subtasks]
    if is_incremental_configured(job):
        are_files = max(map(own_bytes, subtasks), default=0) > inline_bytes(job)
        is_in_effect = _has_changelog(job) or not are_files or not written_whole(points)[1]
        return "from the configuration of the cluster" if is_in_effect else ""
    full, written = math.fsum(map(own_bytes, subtasks)), math.fsum(map(written_bytes, subtasks))
    return "checkpoints write less than they refer to" if written < 0.9 * full else ""
