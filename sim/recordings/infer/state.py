"""The state of each vertex, read off its latest checkpoint: size, backend, and the part that changes or is new.

It is `state_size` less in-flight data.  Behind a hash it counts as keyed state, elsewhere as operator state: the history does not tell
them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import takewhile
from statistics import correlation, linear_regression, median

from sim.model.catalogs.backends import backend_named
from sim.model.state import Lsm
from sim.recordings.infer.before_barrier import usual_checkpoints
from sim.recordings.infer.draft import MARK, Draft
from sim.recordings.infer.file_history import (
    acknowledged,
    below_log,
    files_of,
    history,
    own_bytes,
    rewritten_bytes,
    seconds_between,
    written_bytes,
)
from sim.recordings.infer.flows import Flows
from sim.recordings.infer.flushes import infer_flushes
from sim.recordings.infer.memory_log import infer_copying, is_in_memory
from sim.recordings.infer.pauses import infer_pauses
from sim.recordings.infer.sizes.filling import Filling, filling_of
from sim.recordings.infer.sizes.levels import Level, level_of
from sim.recordings.infer.updates import infer_rewritten
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import UnitError, format_byte_rate, format_duration, format_size, parse_flink_duration

TTL = "table.exec.state.ttl"

_LINE_POINTS = 5
"""Fewer checkpoints are no line."""
_RISE = 1.1
"""A state that is not so many times as large in the end does not grow."""
_ON_A_LINE = 0.95
"""Correlation of sizes with time from which they lie on a line: new keys come evenly."""
_LATEST_FALLS = 4


def infer_state(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `state:` and `snapshot:` of every vertex, and `checkpoint: {incremental}`."""
    points, incremental = usual_checkpoints(job), _is_incremental(job)
    for vertex in job.vertices:
        in_files = _is_keyed(vertex) and backend_of(job) != "hashmap" and not _logs(job)
        in_memory = _is_keyed(vertex) and _logs(job) and is_in_memory(points, vertex.name)
        infer_pauses(draft, job, vertex, with_sync=not (in_files or in_memory))
        latest = next((point for point in reversed(points) if _sizes(point, vertex)), None)
        if latest is None:
            draft.unknown.append(f"{vertex.name}: How much state does it keep?")
            unanswered = f"{MARK}: How much state does it keep? Assumed: none, because no completed checkpoint tells."
            draft.remark(unanswered, job=vertex.name)
        elif sum(_sizes(latest, vertex)) > 0:
            _of_vertex(draft, job, vertex, latest, points)
            state = draft.document["job"][vertex.name].get("state", {})
            if "backend" in state or "changelog" in state:
                _files(draft, job, vertex, points, flowed[vertex.name])
                if in_memory:
                    infer_copying(draft, points, vertex.name)
            elif state:
                _growth(draft, job, vertex, points, flowed[vertex.name])
    if incremental and any("backend" in vertex.get("state", {}) for vertex in draft.document["job"].values()):
        draft.put("checkpoint.incremental", True, "from the configuration of the cluster, or because less is written than referred to")


def _of_vertex(draft: Draft, job: RestJob, vertex: RestVertex, latest: RecordedCheckpoint, points: list[RecordedCheckpoint]) -> None:
    backend, keyed = backend_of(job), _is_keyed(vertex)
    if keyed and backend != "hashmap":  # files hold overwritten values, too: right after a compaction they are smallest
        latest = min((point for point in points if _sizes(point, vertex)), key=lambda point: sum(_sizes(point, vertex)))
    sizes = _sizes(latest, vertex)
    which = f"checkpoint {latest.id}, {'the last' if backend == 'hashmap' or not keyed else 'the smallest'} known,"
    origin = f"state of {which} in {len(sizes)} subtasks, {min(sizes):,} to {max(sizes):,} bytes each"
    first = next(point for point in points if _sizes(point, vertex))
    if first is not latest and (before := sum(_sizes(first, vertex))) and abs(sum(sizes) / before - 1) > 0.1:
        origin += f"; {before:,} bytes in checkpoint {first.id}"
    if not keyed:
        draft.put("snapshot.operator-state", format_size(round(median(sizes))), origin, job=vertex.name)
        return
    draft.put("state.size", format_size(sum(sizes)), origin, job=vertex.name)
    if backend != "hashmap":
        named = job.checkpoint_config.state_backend if job.checkpoint_config else None
        known = "rocksdb" if backend == "other" else backend
        draft.put("state.backend", known, f"{named or 'state.backend.type'} in the configuration", job=vertex.name)
    if backend == "other":
        draft.not_modelled.append(f"the state backend of '{vertex.name}': taken as rocksdb")
    if _logs(job):
        every_ms = job.checkpoint_config.changelog_periodic_materialization_interval if job.checkpoint_config else None
        every = {"materialize": format_duration(every_ms * 10**6)} if every_ms and every_ms > 0 else "on"
        draft.put("state.changelog", every, "state_changelog_enabled in /jobs/:id/checkpoints/config", job=vertex.name)
        if backend != "hashmap":
            rate = format_byte_rate(Lsm().flush_bytes_per_second)
            assumed = f"{rate}. No checkpoint flushes under a changelog; without it each one waits for that."
            draft.ask("state.lsm.flush", rate, "How fast does RocksDB write its memtables to disk?", assumed, job=vertex.name)
        if is_in_memory(points, vertex.name):
            if every == "on":
                draft.put("state.changelog", {}, job=vertex.name)
            draft.put("state.changelog.storage", "memory", "each checkpoint writes the whole log again", job=vertex.name)


def _growth(draft: Draft, job: RestJob, vertex: RestVertex, points: list[RecordedCheckpoint], flow: Flows) -> None:
    """Set what every record adds, if the sizes of the history rise along a line; the scenario then begins where the history does."""
    sizes = [(point, sum(_sizes(point, vertex))) for point in points if _sizes(point, vertex)]
    per_second = flow.per_second("records_in")
    if len(sizes) < _LINE_POINTS or sizes[-1][1] <= _RISE * sizes[0][1] or not per_second > 0:  # or not a number
        return
    seconds, size_bytes = [point.trigger_timestamp / 1000 for point, _ in sizes], [size for _, size in sizes]
    if len(set(seconds)) < _LINE_POINTS:
        return
    level, numbers = level_of(seconds, size_bytes), [point.id for point, _ in sizes]
    if level is not None and level.per_second >= per_second:
        _levelled(draft, job, vertex, numbers, level, per_second, _same_at_the_end(size_bytes))
        return
    filling = filling_of(seconds, size_bytes)
    if filling is not None and filling.per_second >= per_second:
        _filling(draft, vertex, numbers, filling, per_second, begins=seconds[0] - seconds_between(points))
        if len(same := _same_at_the_end(size_bytes)) >= _LINE_POINTS:
            draft.drop("state.limit", job=vertex.name)
            _all_there(draft, vertex, same, per_second)
        return
    if correlation(seconds, size_bytes) < _ON_A_LINE:
        return
    slope = linear_regression(seconds, size_bytes).slope
    added = round(slope / per_second)
    if added < 1:
        return
    first, size = sizes[0]
    begins = max(size - slope * seconds_between(points), 0)
    (last, largest), line = sizes[-1], f"{len(sizes)} checkpoints on a line"
    draft.put("state.size", format_size(round(begins)), (
        f"one interval before checkpoint {first.id}, the first known with {size:,} bytes: it grows from there"
    ), job=vertex.name)  # fmt: skip
    draft.put("state.growth", format_size(added), (
        f"{slope:,.0f} bytes/s ({line}, to {largest:,} bytes in {last.id}) / {per_second:,.1f} records/s"
    ), job=vertex.name)  # fmt: skip
    _expiry(draft, job, vertex, seconds[-1] - seconds[0])


def _same_at_the_end(sizes: list[int]) -> list[int]:
    """The sizes at the end that are the same to the byte."""
    return list(takewhile(lambda size: size == sizes[-1], reversed(sizes)))


def _levelled(
    draft: Draft, job: RestJob, vertex: RestVertex, checkpoints: list[int], level: Level, per_second: float, same: list[int]
) -> None:
    """Set growth that has come to its limit.  The scenario begins there: it is about what comes after the history.

    Where keys come and go, sizes differ by chance from one checkpoint to the next.  Sizes that are the same to the byte while records
    arrive are those of keys that have all come.
    """
    limit, rise = f"{level.size_bytes:,.0f} bytes", f"{level.per_second:,.0f} bytes/s before checkpoint {checkpoints[level.first]}"
    stays = f"it rose until checkpoint {checkpoints[level.first]} and stays at {limit} to checkpoint {checkpoints[-1]}"
    size = format_size(round(level.size_bytes))
    added = format_size(round(level.per_second / per_second))
    draft.put("state.size", size, f"{stays}: the scenario begins there", job=vertex.name)
    draft.put("state.growth", added, f"{rise} / {per_second:,.1f} records/s", job=vertex.name)
    if len(same) >= _LINE_POINTS:
        draft.put("state.size", format_size(same[0]), f"{stays}: the scenario begins there", job=vertex.name)
        _all_there(draft, vertex, same, per_second)
        return
    if _configured_ttl_ns(job):
        _expiry(draft, job, vertex, 0.0)
        return
    lives = format_duration(max(round(level.size_bytes / level.per_second), 1) * 10**9)
    draft.put("state.ttl", lives, f"without a limit: as many leave as come, {limit} / {rise}", job=vertex.name)
    question = "Have all of its keys come, or do they expire (StateTtlConfig)?"
    assumed = "all have come, so it stays as large at any rate. With 0 B as many leave as come, and it is in proportion to the rate."
    draft.ask("state.limit", size, question, assumed, job=vertex.name)


def _all_there(draft: Draft, vertex: RestVertex, same: list[int], per_second: float) -> None:
    came = f"the same to the byte in the last {len(same)} checkpoints while {per_second:,.0f} records/s came: all keys are there"
    draft.put("state.limit", format_size(same[0]), came, job=vertex.name)


def _filling(draft: Draft, vertex: RestVertex, checkpoints: list[int], filling: Filling, per_second: float, *, begins: float) -> None:
    """Set growth that slows down as keys come.  The scenario begins where the history does."""
    limit = f"{filling.limit_bytes:,.0f} bytes"
    curve = f"{len(checkpoints)} checkpoints on a curve towards {limit}"
    draft.put("state.size", format_size(max(round(filling.at(begins)), 0)), (
        f"one interval before checkpoint {checkpoints[0]}, the first known: it grows from there"
    ), job=vertex.name)  # fmt: skip
    draft.put("state.growth", format_size(max(round(filling.per_second / per_second), 1)), (
        f"{filling.per_second:,.0f} bytes/s with no key there ({curve}) / {per_second:,.1f} records/s"
    ), job=vertex.name)  # fmt: skip
    question = "How large is it when all of its keys have come?"
    draft.put("state.limit", format_size(round(filling.limit_bytes)), f"{curve}: ever fewer keys are new", job=vertex.name)
    draft.doubt("state.limit", question, "all keys are equally likely. It is more if some are rare.", job=vertex.name)


def _expiry(draft: Draft, job: RestJob, vertex: RestVertex, known_s: float) -> None:
    """Set when growing state expires if the configuration tells; else ask: the history is too short to show it."""
    ttl_ns = _configured_ttl_ns(job)
    if ttl_ns:
        draft.put("state.ttl", format_duration(ttl_ns), f"{TTL} in the configuration of the cluster", job=vertex.name)
    elif ttl_ns is None:
        question = "When do its keys expire (StateTtlConfig: ttl)?"
        draft.doubt("state.growth", question, f"never. It has grown for {known_s:,.0f} s, as long as it is known.", job=vertex.name)


def _configured_ttl_ns(job: RestJob) -> int | None:
    """The time to live of a SQL job; 0: never.  None: nothing tells."""
    try:
        return parse_flink_duration(job.options[TTL]) if TTL in job.options else None
    except UnitError:
        return None


def _files(draft: Draft, job: RestJob, vertex: RestVertex, points: list[RecordedCheckpoint], flow: Flows) -> None:
    """Set size and growth of state in files, and the entries rewritten between two checkpoints."""
    by_subtask = {index: files_of(history(own)) for index, own in sorted(acknowledged(points, vertex.name).items())}
    found = [files for files in by_subtask.values() if files is not None]
    per_second, logs = flow.per_second("records_in"), "changelog" in draft.document["job"][vertex.name]["state"]
    if len(found) < vertex.parallelism:
        draft.comments[f"job.{vertex.name}.state.size"] += "; no files were merged: some of it may be overwritten"
        written = [sum(written_bytes(subtask) for subtask in point.tasks[vertex.name].subtasks) for point in _known(points, vertex)]
        infer_rewritten(draft, vertex, points, flow, median(written), f"median of {median(written):,.0f} bytes written per checkpoint")
        return
    size, slope = (sum(getattr(files, name) for files in found) for name in ("size_bytes", "bytes_per_second"))
    increment, added, last = sum(files.increment_bytes for files in found), 0, max(files.falls[-1].checkpoint for files in found)
    why = "after a materialisation, without its log" if logs else "after files were merged, without what was written since"
    every = median(files.every for files in found)
    origin = f"checkpoint {last} {why}{'' if math.isnan(every) else f' (every {every:g} checkpoints)'}"
    if logs:
        config, between = job.checkpoint_config, seconds_between(points)
        every_ms = config.changelog_periodic_materialization_interval if config is not None else None
        slope, cycles = 0.0, max(every_ms / 1000 / between, 1.0) if every_ms and between else 1.0
        if "backend" in draft.document["job"][vertex.name]["state"]:
            size = sum(below_log(files, cycles * files.increment_bytes) for files in found)
            origin += ", and without what RocksDB had not merged"
    if slope > 0 and per_second > 0 and (added := round(slope / per_second)):
        begins = points[0].trigger_timestamp / 1000 - seconds_between(points)
        origin = f"one interval before checkpoint {points[0].id}, on the line to {size:,.0f} bytes in {origin}"
        size = sum(files.size_at(begins) for files in found)
        draft.put("state.growth", format_size(added), (
            f"{slope:,.0f} bytes/s (the latest {_LATEST_FALLS} such checkpoints) / {per_second:,.1f} records/s"
        ), job=vertex.name)  # fmt: skip
        _expiry(draft, job, vertex, (points[-1].trigger_timestamp - points[0].trigger_timestamp) / 1000)
    draft.put("state.size", format_size(round(size)), origin, job=vertex.name)
    if not logs:
        infer_flushes(draft, vertex.name, points, [(index, files) for index, files in by_subtask.items() if files is not None])
    why = f"files grow by {increment:,.0f} bytes from one checkpoint to the next (median)"
    if added:
        why += ", less new keys"
    increment = max(increment - slope * seconds_between(points), 0.0)
    infer_rewritten(draft, vertex, points, flow, increment if logs else rewritten_bytes(increment, size), why)


def _known(points: list[RecordedCheckpoint], vertex: RestVertex) -> list[RecordedCheckpoint]:
    return [point for point in points if vertex.name in point.tasks]


def _sizes(point: RecordedCheckpoint, vertex: RestVertex) -> list[int]:
    task = point.tasks.get(vertex.name)
    return [own_bytes(subtask) for subtask in task.subtasks if subtask.status == "completed"] if task else []


def _is_keyed(vertex: RestVertex) -> bool:
    return any(edge.ship == "HASH" for edge in vertex.inputs)


def _logs(job: RestJob) -> bool:
    return job.checkpoint_config is not None and bool(job.checkpoint_config.state_changelog_enabled)


def backend_of(job: RestJob) -> str:
    """The name of the backend in a scenario; other: it has none."""
    named = job.checkpoint_config.state_backend if job.checkpoint_config else None
    name = named or job.options.get("state.backend.type") or job.options.get("state.backend") or "hashmap"
    return backend_named(name) or "other"


def _is_incremental(job: RestJob) -> bool:
    """Configured so, or seen in the history: less than nine tenths of the referenced bytes were written for their own checkpoint."""
    if job.options.get("execution.checkpointing.incremental", job.options.get("state.backend.incremental")) == "true":
        return True
    subtasks = [subtask for point in usual_checkpoints(job) for task in point.tasks.values() for subtask in task.subtasks]
    own, written = math.fsum(map(own_bytes, subtasks)), math.fsum(map(written_bytes, subtasks))
    return written < 0.9 * own
