"""Infer the state of vertices: backend, size, growth, and updates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, takewhile
from statistics import correlation, fmean, linear_regression, median

from sim.jobs.infer.cores import usual_checkpoints
from sim.jobs.infer.draft import MARK, Draft, size_text
from sim.jobs.infer.file_history import (
    acknowledged,
    files_of,
    history,
    increment_bytes,
    own_bytes,
    rewritten_bytes,
    seconds_between,
    state_below_changelog,
    written_bytes,
)
from sim.jobs.infer.flows import Flows, infer_flushes
from sim.jobs.infer.options import infer_pauses
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.state import Lsm, backend_named
from sim.model.units import (
    UnitError,
    format_byte_rate,
    format_duration,
    format_share,
    format_size,
    parse_flink_duration,
    parse_size,
)

# ---- Saturating growth: keys are drawn from a bounded set, so fewer and fewer of them are new.
#
# If all keys are equally likely, the number of unseen keys decreases exponentially with the number of records.

_MIN_SIZES_FOR_CURVE = 8
_MAX_RESIDUAL_OF_CURVE = 0.2
"""Maximum residual sum of squares of the curve / that of a straight line."""
_MIN_SHARE_OF_LIMIT = 0.6
"""Minimum largest size / fitted limit.  With less, the limit is too uncertain."""
_RATES_TRIED = 60


@dataclass(frozen=True, slots=True)
class SaturatingGrowth:
    """State size over time: ``limit - left * exp(-rate * (t - begun))``."""

    limit_bytes: float
    left_bytes: float  # limit - size at `begun_s`
    rate: float  # per second
    begun_s: float

    @property
    def per_second(self) -> float:
        """Growth while all keys are new [bytes/s]."""
        return self.limit_bytes * self.rate

    def at(self, second: float) -> float:
        """Return the size at a time."""
        return self.limit_bytes - self.left_bytes * math.exp(-self.rate * (second - self.begun_s))


def fit_saturating_growth(seconds: Sequence[float], sizes: Sequence[float]) -> SaturatingGrowth | None:
    """Fit a curve to sizes.  Returns None if a straight line fits as well, or the limit is too uncertain."""
    span = seconds[-1] - seconds[0] if len(seconds) >= _MIN_SIZES_FOR_CURVE else 0.0
    if span <= 0:
        return None
    slope, begin = linear_regression(seconds, sizes)
    least = _MAX_RESIDUAL_OF_CURVE * math.fsum(
        (size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True)
    )
    best = None
    for step in range(_RATES_TRIED):
        rate = 0.5 / span * 20 ** (step / (_RATES_TRIED - 1))
        unseen = [math.exp(-rate * (second - seconds[0])) for second in seconds]
        slope, limit = linear_regression(unseen, sizes)
        squares = math.fsum((size - limit - slope * share) ** 2 for share, size in zip(unseen, sizes, strict=True))
        if squares < least and slope < 0 and 0 < limit <= max(sizes) / _MIN_SHARE_OF_LIMIT:
            best, least = SaturatingGrowth(limit, -slope, rate, seconds[0]), squares
    return best


# ---- Growth that ends: sizes rise linearly and then stay constant, because keys expire at the rate at which new keys
# arrive, or because there are no new keys.
#
# The break is chosen so that a line before it and a constant after it have the least sum of squares.

_MIN_SIZES_FOR_LEVEL = 5
"""Minimum number of sizes before and after the break."""
_MAX_SLOPE_OF_LEVEL = 0.1
"""Maximum slope after the break / slope before it."""
_MAX_RESIDUAL_OF_LEVEL = 0.5
"""Maximum sum of squares with the break / that of one line through all sizes."""
_MAX_GAP_AT_LEVEL = 0.1
"""Maximum distance between line and constant at the break / constant."""


@dataclass(frozen=True, slots=True)
class Level:
    """A constant size after linear growth."""

    first: int  # index of the first size at the level
    size_bytes: float
    per_second: float  # growth before [bytes/s]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line through sizes, by least squares."""

    slope: float
    begin: float
    squares: float

    def at(self, second: float) -> float:
        return self.begin + self.slope * second


def fit_level(seconds: Sequence[float], sizes: Sequence[float]) -> Level | None:
    """Fit linear growth followed by a constant size.  Returns None if sizes do not rise, or rise until the end."""
    straight = _fit_line(seconds, sizes)
    best, least = None, _MAX_RESIDUAL_OF_LEVEL * straight.squares
    for first in range(_MIN_SIZES_FOR_LEVEL, len(sizes) - _MIN_SIZES_FOR_LEVEL + 1):
        rise, rest = _fit_line(seconds[:first], sizes[:first]), _fit_line(seconds[first:], sizes[first:])
        size_bytes = fmean(sizes[first:])
        squares = rise.squares + math.fsum((size - size_bytes) ** 2 for size in sizes[first:])
        is_continuous = abs(rise.at(seconds[first]) - size_bytes) <= max(
            _MAX_GAP_AT_LEVEL * size_bytes, rise.slope * (seconds[first] - seconds[first - 1])
        )
        if squares < least and rise.slope > 0 and abs(rest.slope) <= _MAX_SLOPE_OF_LEVEL * rise.slope and is_continuous:
            best, least = Level(first, size_bytes, rise.slope), squares
    return best


def _fit_line(seconds: Sequence[float], sizes: Sequence[float]) -> _Line:
    if len(set(seconds)) < 2:
        return _Line(0.0, fmean(sizes), 0.0)
    slope, begin = linear_regression(seconds, sizes)
    return _Line(
        slope,
        begin,
        math.fsum((size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True)),
    )


# ---- Changelogs in memory: which vertices have one, and the cost of copying a change, from the checkpoint history.
#
# The option `state.changelog.storage` of a job is not conclusive, because TaskManagers read their own configuration.
# Sizes are: with a changelog in memory each checkpoint writes the whole log again, so referenced - written bytes is
# constant between two materializations.  With files it is the full size of the checkpoint before.

_MIN_CHANGES = 1000
"""Fewer changes are copied in a few milliseconds at most, which is the resolution of Flink's durations."""


def is_in_memory(points: Iterable[RecordedCheckpoint], vertex: str) -> bool:
    """Return whether most checkpoints of a vertex with a changelog wrote the whole log again."""
    rewritten = [
        is_whole
        for pairs in acknowledged(points, vertex).values()
        for is_whole in _rewrites_log([subtask for _, subtask in pairs])
    ]
    return sum(rewritten) * 2 > len(rewritten)


def _rewrites_log(own: Sequence[RecordedSubtask]) -> Iterable[bool]:
    """Yield for each checkpoint with more state than the one before whether it wrote the whole log again."""
    for before, after in pairwise(own):
        if own_bytes(after) > own_bytes(before):
            yield own_bytes(after) - written_bytes(after) == own_bytes(before) - written_bytes(before)


def infer_copying(draft: Draft, points: Iterable[RecordedCheckpoint], vertex: str) -> None:
    """Set the cost of one change on the task thread: synchronous phase / number of changes written."""
    value_bytes = parse_size(draft.document["job"][vertex]["state"].get("value", "1 kB"))
    found = [
        subtask.checkpoint.sync * 10**6 * value_bytes / written_bytes(subtask)
        for own in acknowledged(points, vertex).values()
        for _, subtask in own
        if subtask.checkpoint.sync >= 0 and written_bytes(subtask) >= _MIN_CHANGES * value_bytes
    ]
    if found:
        each_ns = round(median(found))
        origin = f"median over {len(found)} snapshots of sync duration / (written bytes / {value_bytes:,} bytes)"
        draft.put("state.changelog.change-copy", format_duration(max(each_ns, 1)), origin, job=vertex)


# ---- Updates: the share of records that rewrite an entry of the state.
#
# With RocksDB or a changelog, the bytes written between checkpoints show the product of updates and entry size.
# Snapshots of the heap are always full and show neither.  Then the user is asked for both, with the effect of the answers.

_EXAMPLE_SHARES = (1.0, 0.1)
"""Answers whose effect the question names, in addition to 0."""
_MIN_RECORD_BYTES, _ASSUMED_ENTRY_BYTES = 5, 1000
"""The smallest possible record on the wire, and the entry size assumed if records are not counted."""
_MIN_UPDATE_SHARE = Fraction(1, 10)
"""Assumed if nearly every record adds a key."""
_VALUE_QUESTION = "How large is an entry of its state (state size / number of keys)?"


def infer_rewritten(
    draft: Draft, vertex: RestVertex, points: Sequence[RecordedCheckpoint], flow: Flows, rewritten: float, why: str
) -> None:
    """Set `state.update` and `state.value`, of which the history shows only the product: `rewritten` bytes per checkpoint.

    `why` is the origin of `rewritten`.
    """
    per_second, between = flow.per_second("records_in"), seconds_between(points)
    read = round(flow.bytes_per_record) if flow.bytes_per_record > 0 else 0
    if not (rewritten and between and per_second > 0 and read):
        draft.ask(
            "state.update", "10 %", "Which share of the records updates an entry?", "one in ten.", job=vertex.name
        )
        return
    records = per_second * between
    least = rewritten / records  # if every record rewrites an entry
    value = max(read, math.ceil(least))
    share = Fraction(f"{min(1.0, rewritten / (records * value)):.3f}")
    draft.put(
        "state.update",
        format_share(share),
        f"{why} / ({records:,.0f} records between two checkpoints x {value} bytes)",
        job=vertex.name,
    )
    assumed = (
        "as large as the records it reads."
        if value == read
        else "the smallest possible size: every record updates an entry."
    )
    draft.ask("state.value", format_size(value), _VALUE_QUESTION, assumed, job=vertex.name)


def ask_for_updates(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Ask for the updates of state on the heap.  They matter only if `advise` tries RocksDB or a changelog."""
    points = usual_checkpoints(job)
    for vertex in job.vertices:
        given = draft.document["job"].get(vertex.name, {})
        state = given.get("state", {})
        if "size" in state and "window" not in given and not state.keys() & {"backend", "changelog", "update"}:
            tasks = [point.tasks[vertex.name] for point in points if vertex.name in point.tasks]
            # The size in the scenario may be 0, if the state grows from there.
            largest = max((sum(map(own_bytes, task.subtasks)) for task in tasks), default=0)
            flow = flowed[vertex.name]
            ask_for_update(draft, vertex.name, flow, flow.per_second("records_in") * seconds_between(points), largest)


def ask_for_update(draft: Draft, vertex: str, flow: Flows | None, records: float, size: int) -> None:
    """Ask for the updates of a vertex's state of at most `size` bytes, which reads `records` between two checkpoints."""
    state = draft.document["job"][vertex]["state"]
    value = round(entry_bytes(state, flow))
    effect = f" {_checkpoint_sizes_text(size, value, records)}" if records > 0 else ""
    new = Fraction(0) if "limit" in state else Fraction(parse_size(state.get("growth", "0 B")), value)
    share = max(1 - new, _MIN_UPDATE_SHARE)
    why = "all, as in an operator that counts or keeps a value per key" if share == 1 else "those without a new key"
    draft.ask(
        "state.update",
        format_share(Fraction(f"{float(share):.3f}")),
        "Which share of the records updates an existing entry?",
        f"{why}; between 0 % and 100 %. Snapshots of the heap do not show it, and do not depend on it.{effect}",
        job=vertex,
    )
    assumed = f"as large as the records it reads, or 1 kB if these are not measured; at most {format_size(max(size, 1))}, with a single key."
    draft.ask("state.value", format_size(value), _VALUE_QUESTION, assumed, job=vertex)


def entry_bytes(state: Mapping[str, str], flow: Flows | None) -> float:
    """Return the size of an entry of a state: `value` if set, else the mean record size if measured, else an assumption."""
    if "value" in state:
        return max(parse_size(state["value"]), 1)
    counted = flow is not None and flow.bytes_per_record >= _MIN_RECORD_BYTES  # NaN is not
    read = flow.bytes_per_record if flow is not None and counted else _ASSUMED_ENTRY_BYTES
    return min(read, parse_size(state["size"]) or read)


def _checkpoint_sizes_text(size: int, value: int, records: float) -> str:
    """Describe the sizes of checkpoints with other backends, for the possible answers."""
    tables = [size_text(increment_bytes(size, value, share * records)) for share in _EXAMPLE_SHARES]
    logs = [size_text(value * share * records) for share in _EXAMPLE_SHARES]
    return (
        f"An incremental checkpoint with RocksDB would write about {tables[0]} at 100 %, {tables[1]} at 10 %, new keys only at 0 %; "
        f"with a changelog {logs[0]}, {logs[1]}, or new keys only."
    )


# ---- State of each vertex: backend and size from its latest checkpoint, growth and updates from the history.
#
# The size is `state_size` less in-flight data.  The history does not separate keyed state from operator state, so the
# state of a vertex with a keyed input is taken as keyed state, and that of other vertices as operator state.

TTL = "table.exec.state.ttl"

_MIN_POINTS_OF_LINE = 5
"""Minimum checkpoints from which linear growth is inferred."""
_MIN_GROWTH_FACTOR = 1.1
"""Minimum last size / first size."""
_MIN_CORRELATION = 0.95
"""Minimum correlation of sizes with time for linear growth."""
_LATEST_FALLS = 4


def infer_state(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `state:` and `snapshot:` of every vertex, and `checkpoint: {incremental}`."""
    points, incremental = usual_checkpoints(job), _is_incremental(job)
    for vertex in job.vertices:
        in_files = _is_keyed(vertex) and backend_of(job) != "hashmap" and not _has_changelog(job)
        in_memory = _is_keyed(vertex) and _has_changelog(job) and is_in_memory(points, vertex.name)
        infer_pauses(draft, job, vertex, with_sync=not (in_files or in_memory))
        latest = next((point for point in reversed(points) if _sizes(point, vertex)), None)
        if latest is None:
            draft.unknown.append(f"{vertex.name}: How much state does it keep?")
            unanswered = f"{MARK}: How much state does it keep? Assumed: none, because it has no completed checkpoint."
            draft.remark(unanswered, job=vertex.name)
        elif sum(_sizes(latest, vertex)) > 0:
            _put_size_and_backend(draft, job, vertex, latest, points)
            state = draft.document["job"][vertex.name].get("state", {})
            if "backend" in state or "changelog" in state:
                _infer_state_in_files(draft, job, vertex, points, flowed[vertex.name])
                if in_memory:
                    infer_copying(draft, points, vertex.name)
            elif state:
                sizes = [(point, sum(_sizes(point, vertex))) for point in points if _sizes(point, vertex)]
                infer_growth(draft, job.options, vertex.name, sizes, flowed[vertex.name].per_second("records_in"))
    if incremental and any("backend" in vertex.get("state", {}) for vertex in draft.document["job"].values()):
        draft.put(
            "checkpoint.incremental",
            True,
            "from the configuration of the cluster, or because checkpoints write less than they refer to",
        )


def _put_size_and_backend(
    draft: Draft, job: RestJob, vertex: RestVertex, latest: RecordedCheckpoint, points: list[RecordedCheckpoint]
) -> None:
    """Set size and backend of the state.  `latest` is the last checkpoint in which the vertex has sizes."""
    backend, keyed = backend_of(job), _is_keyed(vertex)
    if keyed and backend != "hashmap":  # files also contain overwritten values; the smallest are nearest to the state
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
        draft.not_modelled.append(f"the state backend of '{vertex.name}': simulated as rocksdb")
    if _has_changelog(job):
        every_ms = job.checkpoint_config.changelog_periodic_materialization_interval if job.checkpoint_config else None
        every = {"materialize": format_duration(every_ms * 10**6)} if every_ms and every_ms > 0 else "on"
        draft.put("state.changelog", every, "state_changelog_enabled in /jobs/:id/checkpoints/config", job=vertex.name)
        if backend != "hashmap":
            rate = format_byte_rate(Lsm().flush_bytes_per_second)
            assumed = f"{rate}. With a changelog checkpoints do not flush; without it each of them waits for the flush."
            draft.ask(
                "state.lsm.flush", rate, "How fast does RocksDB write its memtables to disk?", assumed, job=vertex.name
            )
        if is_in_memory(points, vertex.name):
            if every == "on":
                draft.put("state.changelog", {}, job=vertex.name)
            draft.put(
                "state.changelog.storage", "memory", "each checkpoint writes the whole log again", job=vertex.name
            )


def infer_growth(
    draft: Draft,
    options: Mapping[str, str],
    vertex: str,
    sizes: Sequence[tuple[RecordedCheckpoint, int]],
    per_second: float,
) -> None:
    """Set the growth per record if the sizes of the history rise.  The scenario then begins with the size at its start.

    `options` of the cluster, `sizes` of the vertex's state, oldest first, and the records/s that it reads.
    """
    points = [point for point, _ in sizes]
    if (
        len(sizes) < _MIN_POINTS_OF_LINE or sizes[-1][1] <= _MIN_GROWTH_FACTOR * sizes[0][1] or not per_second > 0
    ):  # or not a number
        return
    seconds, size_bytes = [point.trigger_timestamp / 1000 for point, _ in sizes], [size for _, size in sizes]
    if len(set(seconds)) < _MIN_POINTS_OF_LINE:
        return
    level, numbers = fit_level(seconds, size_bytes), [point.id for point, _ in sizes]
    if level is not None and level.per_second >= per_second:
        _put_level(draft, options, vertex, numbers, level, per_second, _equal_last_sizes(size_bytes))
        return
    filling = fit_saturating_growth(seconds, size_bytes)
    if filling is not None and filling.per_second >= per_second:
        _put_saturating_growth(draft, vertex, numbers, filling, per_second, begins=seconds[0] - seconds_between(points))
        if len(same := _equal_last_sizes(size_bytes)) >= _MIN_POINTS_OF_LINE:
            draft.drop("state.limit", job=vertex)
            _put_constant_size(draft, vertex, same, per_second)
        return
    if correlation(seconds, size_bytes) < _MIN_CORRELATION:
        return
    slope = linear_regression(seconds, size_bytes).slope
    added = round(slope / per_second)
    if added < 1:
        return
    first, size = sizes[0]
    begins = max(size - slope * seconds_between(points), 0)
    (last, largest), line = sizes[-1], f"{len(sizes)} checkpoints on a line"
    draft.put(
        "state.size",
        format_size(round(begins)),
        f"one interval before checkpoint {first.id}, the first known, which has {size:,} bytes; it grows from there",
        job=vertex,
    )
    draft.put(
        "state.growth",
        format_size(added),
        (f"{slope:,.0f} bytes/s ({line}, to {largest:,} bytes in {last.id}) / {per_second:,.1f} records/s"),
        job=vertex,
    )
    _put_or_ask_for_ttl(draft, options, vertex, seconds[-1] - seconds[0])


def _equal_last_sizes(sizes: list[int]) -> list[int]:
    """Return the sizes at the end of the history that are equal to the byte."""
    return list(takewhile(lambda size: size == sizes[-1], reversed(sizes)))


def _put_level(
    draft: Draft,
    options: Mapping[str, str],
    vertex: str,
    checkpoints: list[int],
    level: Level,
    per_second: float,
    same: list[int],
) -> None:
    """Set size and growth of a state that has reached its level, at which the scenario begins.

    If keys expire and new keys arrive, sizes vary from one checkpoint to the next.  Sizes that are equal to the byte
    while records arrive mean that all keys exist.
    """
    limit, rise = (
        f"{level.size_bytes:,.0f} bytes",
        f"{level.per_second:,.0f} bytes/s before checkpoint {checkpoints[level.first]}",
    )
    stays = f"it rose until checkpoint {checkpoints[level.first]} and stays at {limit} to checkpoint {checkpoints[-1]}"
    size = format_size(round(level.size_bytes))
    added = format_size(round(level.per_second / per_second))
    draft.put("state.size", size, f"{stays}: the scenario begins there", job=vertex)
    draft.put("state.growth", added, f"{rise} / {per_second:,.1f} records/s", job=vertex)
    if len(same) >= _MIN_POINTS_OF_LINE:
        draft.put("state.size", format_size(same[0]), f"{stays}: the scenario begins there", job=vertex)
        _put_constant_size(draft, vertex, same, per_second)
        return
    if _configured_ttl_ns(options):
        _put_or_ask_for_ttl(draft, options, vertex, 0.0)
        return
    lives = format_duration(max(round(level.size_bytes / level.per_second), 1) * 10**9)
    draft.put("state.ttl", lives, f"used without a limit: as many keys expire as arrive, {limit} / {rise}", job=vertex)
    question = "Has it reached its full number of keys, or do keys expire (StateTtlConfig)?"
    assumed = "all keys exist, so the size does not depend on the rate. With 0 B keys expire, and the size is proportional to the rate."
    draft.ask("state.limit", size, question, assumed, job=vertex)


def _put_constant_size(draft: Draft, vertex: str, same: list[int], per_second: float) -> None:
    origin = f"equal to the byte in the last {len(same)} checkpoints with {per_second:,.0f} records/s: all keys exist"
    draft.put("state.limit", format_size(same[0]), origin, job=vertex)


def _put_saturating_growth(
    draft: Draft,
    vertex: str,
    checkpoints: list[int],
    filling: SaturatingGrowth,
    per_second: float,
    *,
    begins: float,
) -> None:
    """Set growth that slows down as fewer keys are new.  The scenario begins with the size at the start of the history."""
    limit = f"{filling.limit_bytes:,.0f} bytes"
    curve = f"{len(checkpoints)} checkpoints on a curve towards {limit}"
    draft.put(
        "state.size",
        format_size(max(round(filling.at(begins)), 0)),
        f"one interval before checkpoint {checkpoints[0]}, the first known; it grows from there",
        job=vertex,
    )
    draft.put(
        "state.growth",
        format_size(max(round(filling.per_second / per_second), 1)),
        f"{filling.per_second:,.0f} bytes/s while all keys are new ({curve}) / {per_second:,.1f} records/s",
        job=vertex,
    )
    question = "How large is it when all of its keys exist?"
    origin = f"{curve}: fewer and fewer keys are new"
    draft.put("state.limit", format_size(round(filling.limit_bytes)), origin, job=vertex)
    assumed = "as for equally likely keys. It is larger if some keys are rare."
    draft.doubt("state.limit", question, assumed, job=vertex)


def _put_or_ask_for_ttl(draft: Draft, options: Mapping[str, str], vertex: str, known_s: float) -> None:
    """Set the TTL of growing state if it is configured (SQL), else ask for it."""
    ttl_ns = _configured_ttl_ns(options)
    if ttl_ns:
        draft.put("state.ttl", format_duration(ttl_ns), f"{TTL} in the configuration of the cluster", job=vertex)
    elif ttl_ns is None:
        question = "When do its keys expire (StateTtlConfig: ttl)?"
        draft.doubt(
            "state.growth",
            question,
            f"never. It has grown for {known_s:,.0f} s, the whole history.",
            job=vertex,
        )


def _configured_ttl_ns(options: Mapping[str, str]) -> int | None:
    """Return the TTL of a SQL job, 0 if keys never expire, or None if it is not configured."""
    try:
        return parse_flink_duration(options[TTL]) if TTL in options else None
    except UnitError:
        return None


def _infer_state_in_files(
    draft: Draft, job: RestJob, vertex: RestVertex, points: list[RecordedCheckpoint], flow: Flows
) -> None:
    """Set size, growth and updates of state in files."""
    by_subtask = {index: files_of(history(own)) for index, own in sorted(acknowledged(points, vertex.name).items())}
    found = [files for files in by_subtask.values() if files is not None]
    per_second, logs = flow.per_second("records_in"), "changelog" in draft.document["job"][vertex.name]["state"]
    if len(found) < vertex.parallelism:
        draft.comments[f"job.{vertex.name}.state.size"] += (
            "; no compaction was observed: it may include overwritten values"
        )
        written = [
            sum(written_bytes(subtask) for subtask in point.tasks[vertex.name].subtasks)
            for point in _points_with_vertex(points, vertex)
        ]
        infer_rewritten(
            draft,
            vertex,
            points,
            flow,
            median(written),
            f"median of {median(written):,.0f} bytes written per checkpoint",
        )
        return
    size, slope = (sum(getattr(files, name) for files in found) for name in ("size_bytes", "bytes_per_second"))
    increment, added, last = (
        sum(files.increment_bytes for files in found),
        0,
        max(files.falls[-1].checkpoint for files in found),
    )
    why = "after a materialization, without the changelog" if logs else "after a compaction, without later writes"
    every = median(files.checkpoints_per_fall for files in found)
    origin = f"checkpoint {last} {why}{'' if math.isnan(every) else f' (every {every:g} checkpoints)'}"
    if logs:
        config, between = job.checkpoint_config, seconds_between(points)
        every_ms = config.changelog_periodic_materialization_interval if config is not None else None
        slope, cycles = 0.0, max(every_ms / 1000 / between, 1.0) if every_ms and between else 1.0
        if "backend" in draft.document["job"][vertex.name]["state"]:
            size = sum(state_below_changelog(files, cycles * files.increment_bytes) for files in found)
            origin += ", and without values that RocksDB had not compacted"
    if slope > 0 and per_second > 0 and (added := round(slope / per_second)):
        begins = points[0].trigger_timestamp / 1000 - seconds_between(points)
        origin = f"one interval before checkpoint {points[0].id}, on the line to {size:,.0f} bytes in {origin}"
        size = sum(files.size_at(begins) for files in found)
        draft.put(
            "state.growth",
            format_size(added),
            f"{slope:,.0f} bytes/s (the latest {_LATEST_FALLS} such checkpoints) / {per_second:,.1f} records/s",
            job=vertex.name,
        )
        _put_or_ask_for_ttl(
            draft, job.options, vertex.name, (points[-1].trigger_timestamp - points[0].trigger_timestamp) / 1000
        )
    draft.put("state.size", format_size(round(size)), origin, job=vertex.name)
    if not logs:
        infer_flushes(
            draft, vertex.name, points, [(index, files) for index, files in by_subtask.items() if files is not None]
        )
    why = f"files grow by {increment:,.0f} bytes from one checkpoint to the next (median)"
    if added:
        why += ", less new keys"
    increment = max(increment - slope * seconds_between(points), 0.0)
    infer_rewritten(draft, vertex, points, flow, increment if logs else rewritten_bytes(increment, size), why)


def _points_with_vertex(points: list[RecordedCheckpoint], vertex: RestVertex) -> list[RecordedCheckpoint]:
    return [point for point in points if vertex.name in point.tasks]


def _sizes(point: RecordedCheckpoint, vertex: RestVertex) -> list[int]:
    task = point.tasks.get(vertex.name)
    return [own_bytes(subtask) for subtask in task.subtasks if subtask.status == "completed"] if task else []


def _is_keyed(vertex: RestVertex) -> bool:
    return any(edge.ship == "HASH" for edge in vertex.inputs)


def _has_changelog(job: RestJob) -> bool:
    return job.checkpoint_config is not None and bool(job.checkpoint_config.state_changelog_enabled)


def backend_of(job: RestJob) -> str:
    """Return the name of the job's state backend in a scenario, or `other` if scenarios do not have it."""
    named = job.checkpoint_config.state_backend if job.checkpoint_config else None
    name = named or job.options.get("state.backend.type") or job.options.get("state.backend") or "hashmap"
    return backend_named(name) or "other"


def _is_incremental(job: RestJob) -> bool:
    """Return whether checkpoints are incremental: by configuration, or because they write less than 90 % of their bytes."""
    if job.options.get("execution.checkpointing.incremental", job.options.get("state.backend.incremental")) == "true":
        return True
    subtasks = [
        subtask for point in usual_checkpoints(job) for task in point.tasks.values() for subtask in task.subtasks
    ]
    own, written = math.fsum(map(own_bytes, subtasks)), math.fsum(map(written_bytes, subtasks))
    return written < 0.9 * own
