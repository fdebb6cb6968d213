"""State of vertices: sizes, growth, updates."""

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

# ---- A history of sizes that rises ever more slowly: records meet keys of a bounded set, and ever fewer of them are new.
#
# Where all keys are equally likely, what is left of them falls exponentially with the records.

_MIN_SIZES_FOR_CURVE = 8
"""Fewer sizes do not tell a curve from a line."""
_BETTER = 0.2
"""A curve that leaves a larger share of a line's squares is none."""
_COME = 0.6
"""Unless so much of the limit is there, the curve does not tell where it ends."""
_RATES = 60
"""So many are tried."""


@dataclass(frozen=True, slots=True)
class Filling:
    """A curve of sizes: ``limit - left * exp(-rate * (t - begun))``."""

    limit_bytes: float
    left_bytes: float
    rate: float  # per second
    begun_s: float

    @property
    def per_second(self) -> float:
        """Bytes, where no key has come yet."""
        return self.limit_bytes * self.rate

    def at(self, second: float) -> float:
        """The size at a time."""
        return self.limit_bytes - self.left_bytes * math.exp(-self.rate * (second - self.begun_s))


def filling_of(seconds: Sequence[float], sizes: Sequence[float]) -> Filling | None:
    """The curve through sizes.  None: a line fits as well, or the curve does not show its limit."""
    span = seconds[-1] - seconds[0] if len(seconds) >= _MIN_SIZES_FOR_CURVE else 0.0
    if span <= 0:
        return None
    slope, begin = linear_regression(seconds, sizes)
    least = _BETTER * math.fsum(
        (size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True)
    )
    best = None
    for step in range(_RATES):
        rate = 0.5 / span * 20 ** (step / (_RATES - 1))
        falling = [math.exp(-rate * (second - seconds[0])) for second in seconds]
        fitted, limit = linear_regression(falling, sizes)
        squares = math.fsum((size - limit - fitted * left) ** 2 for left, size in zip(falling, sizes, strict=True))
        if squares < least and fitted < 0 and 0 < limit <= max(sizes) / _COME:
            best, least = Filling(limit, -fitted, rate, seconds[0]), squares
    return best


# ---- A history of sizes that rises along a line and then stays: as many keys leave as come, or all of them have come.
#
# The break is where a line before it and a constant behind it leave the least squares.

_MIN_SIZES_FOR_LEVEL = 5
"""Fewer sizes are neither a line nor a level."""
_MAX_SLOPE_OF_LEVEL = 0.1
"""A rise behind the break that has a larger share of the slope before it is no level."""
_LEVEL_GAIN = 0.5
"""A break that leaves a larger share of the squares of one line through all sizes tells nothing."""
_MEETS = 0.1
"""The line comes so near to the level at the break, as a share of the level."""


@dataclass(frozen=True, slots=True)
class Level:
    """The level at which sizes have stopped to rise."""

    first: int  # the first size at the level
    size_bytes: float
    per_second: float  # bytes, before


@dataclass(frozen=True, slots=True)
class _Line:
    """A line through sizes, by least squares."""

    slope: float
    begin: float
    squares: float

    def at(self, second: float) -> float:
        return self.begin + self.slope * second


def level_of(seconds: Sequence[float], sizes: Sequence[float]) -> Level | None:
    """The level of sizes.  None: they do not rise, or go on rising as far as they are known."""
    straight = _line(seconds, sizes)
    best, least = None, _LEVEL_GAIN * straight.squares
    for first in range(_MIN_SIZES_FOR_LEVEL, len(sizes) - _MIN_SIZES_FOR_LEVEL + 1):
        rise, rest = _line(seconds[:first], sizes[:first]), _line(seconds[first:], sizes[first:])
        size_bytes = fmean(sizes[first:])
        squares = rise.squares + math.fsum((size - size_bytes) ** 2 for size in sizes[first:])
        meets = abs(rise.at(seconds[first]) - size_bytes) <= max(
            _MEETS * size_bytes, rise.slope * (seconds[first] - seconds[first - 1])
        )
        if squares < least and rise.slope > 0 and abs(rest.slope) <= _MAX_SLOPE_OF_LEVEL * rise.slope and meets:
            best, least = Level(first, size_bytes, rise.slope), squares
    return best


def _line(seconds: Sequence[float], sizes: Sequence[float]) -> _Line:
    if len(set(seconds)) < 2:
        return _Line(0.0, fmean(sizes), 0.0)
    slope, begin = linear_regression(seconds, sizes)
    return _Line(
        slope,
        begin,
        math.fsum((size - begin - slope * second) ** 2 for second, size in zip(seconds, sizes, strict=True)),
    )


# ---- A changelog that lies in memory: which jobs have one, and what copying a change costs, read off the history of checkpoints.
#
# `state.changelog.storage` of a job does not tell: TaskManagers read their own configuration.  Sizes do.  What a checkpoint refers to
# beside what was written for it stays the same from one materialisation to the next, because each writes the whole log.
# With files it is all that the checkpoint before had.

_MIN_CHANGES = 1000
"""Fewer are copied within less than a millisecond or a few, which Flink's whole milliseconds do not tell."""


def is_in_memory(points: Iterable[RecordedCheckpoint], vertex: str) -> bool:
    """Whether most checkpoints of a vertex with a changelog wrote the whole log again."""
    same = [kept for own in acknowledged(points, vertex).values() for kept in _kept([subtask for _, subtask in own])]
    return sum(same) * 2 > len(same)


def _kept(own: Sequence[RecordedSubtask]) -> Iterable[bool]:
    """For each checkpoint with more state than the one before: whether it refers to as much beside what it wrote."""
    for before, after in pairwise(own):
        if own_bytes(after) > own_bytes(before):
            yield own_bytes(after) - written_bytes(after) == own_bytes(before) - written_bytes(before)


def infer_copying(draft: Draft, points: Iterable[RecordedCheckpoint], vertex: str) -> None:
    """Set what one change costs on the task thread: the synchronous part over the changes that were written."""
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


# ---- How much of its state a vertex rewrites: read off files, or asked.
#
# Files of RocksDB and a changelog show the bytes that are rewritten: the product of the records that rewrite an entry
# and the size of one.  Snapshots of the heap are always written in full and show neither.  Then both are asked, with
# what the answers change.

_SHARES = (1.0, 0.1)
"""Answers whose effect the question names, beside none."""
_MIN_RECORD, _USUAL_BYTES = 5, 1000
"""The smallest record on the wire, and the assumed size of an entry where records are not counted [bytes]."""
_MIN_SHARE = Fraction(1, 10)
"""Assumed of a state to which nearly every record adds a key."""
_VALUE = "How large is an entry of its state: its size / the number of its keys?"


def infer_rewritten(
    draft: Draft, vertex: RestVertex, points: Sequence[RecordedCheckpoint], flow: Flows, rewritten: float, why: str
) -> None:
    """Set the entries rewritten between two checkpoints.  The history shows only their product with the size of an entry."""
    per_second, between = flow.per_second("records_in"), seconds_between(points)
    read = round(flow.bytes_per_record) if flow.bytes_per_record > 0 else 0
    if not (rewritten and between and per_second > 0 and read):
        draft.ask(
            "state.update", "10 %", "Which share of the records rewrites an entry?", "one in ten.", job=vertex.name
        )
        return
    records = per_second * between
    least = rewritten / records  # if every record rewrites an entry
    value = max(read, math.ceil(least))
    share = Fraction(f"{min(1.0, rewritten / (records * value)):.3f}")
    draft.put(
        "state.update",
        format_share(share),
        f"{why} / ({records:,.0f} records between two x {value} bytes)",
        job=vertex.name,
    )
    assumed = (
        "as large as the records it reads." if value == read else "as small as it can be: every record rewrites one."
    )
    draft.ask("state.value", format_size(value), _VALUE, assumed, job=vertex.name)


def ask_for_updates(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Ask how much of each state on the heap is rewritten: it decides what RocksDB or a changelog would write, and nothing today."""
    points = usual_checkpoints(job)
    for vertex in job.vertices:
        given = draft.document["job"].get(vertex.name, {})
        state = given.get("state", {})
        if "size" in state and "window" not in given and not state.keys() & {"backend", "changelog", "update"}:
            tasks = [point.tasks[vertex.name] for point in points if vertex.name in point.tasks]
            # one that grows may begin with nothing
            largest = max((sum(map(own_bytes, task.subtasks)) for task in tasks), default=0)
            _ask(draft, vertex, flowed[vertex.name], seconds_between(points), largest)


def _ask(draft: Draft, vertex: RestVertex, flow: Flows, between: float, size: int) -> None:
    state = draft.document["job"][vertex.name]["state"]
    value = round(entry_bytes(state, flow))
    records = flow.per_second("records_in") * between
    effect = f" {_written(size, value, records)}" if records > 0 else ""
    new = Fraction(0) if "limit" in state else Fraction(parse_size(state.get("growth", "0 B")), value)
    share = max(1 - new, _MIN_SHARE)
    why = (
        "each one, as an operator that counts or keeps a value per key does"
        if share == 1
        else "those that bring no new key"
    )
    draft.ask(
        "state.update",
        format_share(Fraction(f"{float(share):.3f}")),
        "Which share of the records rewrites an entry that is there?",
        f"{why}; between 0 % and 100 %. Snapshots of the heap do not show it, and it changes nothing on the heap.{effect}",
        job=vertex.name,
    )
    assumed = f"as large as the records it reads, or 1 kB if nothing counts those; at most {format_size(max(size, 1))}, if there is one key."
    draft.ask("state.value", format_size(value), _VALUE, assumed, job=vertex.name)


def entry_bytes(state: Mapping[str, str], flow: Flows | None) -> float:
    """The size of an entry of a state: as asked, else as the records read, where these are counted."""
    if "value" in state:
        return max(parse_size(state["value"]), 1)
    counted = flow is not None and flow.bytes_per_record >= _MIN_RECORD  # NaN is not
    read = flow.bytes_per_record if flow is not None and counted else _USUAL_BYTES
    return min(read, parse_size(state["size"]) or read)


def _written(size: int, value: int, records: float) -> str:
    """What checkpoints of other backends would write, by the answer."""
    tables = [size_text(increment_bytes(size, value, share * records)) for share in _SHARES]
    logs = [size_text(value * share * records) for share in _SHARES]
    return (
        f"With RocksDB and incremental checkpoints one writes some {tables[0]} at 100 %, {tables[1]} at 10 %, new keys only at 0 %; "
        f"a changelog writes {logs[0]}, {logs[1]}, or new keys only."
    )


# ---- The state of each vertex, read off its latest checkpoint: size, backend, and the part that changes or is new.
#
# It is `state_size` less in-flight data.  Behind a hash it counts as keyed state, elsewhere as operator state: the
# history does not tell them apart.

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
        draft.put(
            "checkpoint.incremental",
            True,
            "from the configuration of the cluster, or because less is written than referred to",
        )


def _of_vertex(
    draft: Draft, job: RestJob, vertex: RestVertex, latest: RecordedCheckpoint, points: list[RecordedCheckpoint]
) -> None:
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
            draft.ask(
                "state.lsm.flush", rate, "How fast does RocksDB write its memtables to disk?", assumed, job=vertex.name
            )
        if is_in_memory(points, vertex.name):
            if every == "on":
                draft.put("state.changelog", {}, job=vertex.name)
            draft.put(
                "state.changelog.storage", "memory", "each checkpoint writes the whole log again", job=vertex.name
            )


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
    draft.put(
        "state.size",
        format_size(round(begins)),
        (f"one interval before checkpoint {first.id}, the first known with {size:,} bytes: it grows from there"),
        job=vertex.name,
    )
    draft.put(
        "state.growth",
        format_size(added),
        (f"{slope:,.0f} bytes/s ({line}, to {largest:,} bytes in {last.id}) / {per_second:,.1f} records/s"),
        job=vertex.name,
    )
    _expiry(draft, job, vertex, seconds[-1] - seconds[0])


def _same_at_the_end(sizes: list[int]) -> list[int]:
    """The sizes at the end that are the same to the byte."""
    return list(takewhile(lambda size: size == sizes[-1], reversed(sizes)))


def _levelled(
    draft: Draft,
    job: RestJob,
    vertex: RestVertex,
    checkpoints: list[int],
    level: Level,
    per_second: float,
    same: list[int],
) -> None:
    """Set growth that has come to its limit.  The scenario begins there: it is about what comes after the history.

    Where keys come and go, sizes differ by chance from one checkpoint to the next.  Sizes that are the same to the byte
    while records arrive are those of keys that have all come.
    """
    limit, rise = (
        f"{level.size_bytes:,.0f} bytes",
        f"{level.per_second:,.0f} bytes/s before checkpoint {checkpoints[level.first]}",
    )
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


def _filling(
    draft: Draft, vertex: RestVertex, checkpoints: list[int], filling: Filling, per_second: float, *, begins: float
) -> None:
    """Set growth that slows down as keys come.  The scenario begins where the history does."""
    limit = f"{filling.limit_bytes:,.0f} bytes"
    curve = f"{len(checkpoints)} checkpoints on a curve towards {limit}"
    draft.put(
        "state.size",
        format_size(max(round(filling.at(begins)), 0)),
        (f"one interval before checkpoint {checkpoints[0]}, the first known: it grows from there"),
        job=vertex.name,
    )
    draft.put(
        "state.growth",
        format_size(max(round(filling.per_second / per_second), 1)),
        (f"{filling.per_second:,.0f} bytes/s with no key there ({curve}) / {per_second:,.1f} records/s"),
        job=vertex.name,
    )
    question = "How large is it when all of its keys have come?"
    draft.put(
        "state.limit", format_size(round(filling.limit_bytes)), f"{curve}: ever fewer keys are new", job=vertex.name
    )
    draft.doubt("state.limit", question, "all keys are equally likely. It is more if some are rare.", job=vertex.name)


def _expiry(draft: Draft, job: RestJob, vertex: RestVertex, known_s: float) -> None:
    """Set when growing state expires if the configuration tells; else ask: the history is too short to show it."""
    ttl_ns = _configured_ttl_ns(job)
    if ttl_ns:
        draft.put("state.ttl", format_duration(ttl_ns), f"{TTL} in the configuration of the cluster", job=vertex.name)
    elif ttl_ns is None:
        question = "When do its keys expire (StateTtlConfig: ttl)?"
        draft.doubt(
            "state.growth",
            question,
            f"never. It has grown for {known_s:,.0f} s, as long as it is known.",
            job=vertex.name,
        )


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
        written = [
            sum(written_bytes(subtask) for subtask in point.tasks[vertex.name].subtasks)
            for point in _known(points, vertex)
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
    why = (
        "after a materialisation, without its log"
        if logs
        else "after files were merged, without what was written since"
    )
    every = median(files.checkpoints_per_fall for files in found)
    origin = f"checkpoint {last} {why}{'' if math.isnan(every) else f' (every {every:g} checkpoints)'}"
    if logs:
        config, between = job.checkpoint_config, seconds_between(points)
        every_ms = config.changelog_periodic_materialization_interval if config is not None else None
        slope, cycles = 0.0, max(every_ms / 1000 / between, 1.0) if every_ms and between else 1.0
        if "backend" in draft.document["job"][vertex.name]["state"]:
            size = sum(state_below_changelog(files, cycles * files.increment_bytes) for files in found)
            origin += ", and without what RocksDB had not merged"
    if slope > 0 and per_second > 0 and (added := round(slope / per_second)):
        begins = points[0].trigger_timestamp / 1000 - seconds_between(points)
        origin = f"one interval before checkpoint {points[0].id}, on the line to {size:,.0f} bytes in {origin}"
        size = sum(files.size_at(begins) for files in found)
        draft.put(
            "state.growth",
            format_size(added),
            (f"{slope:,.0f} bytes/s (the latest {_LATEST_FALLS} such checkpoints) / {per_second:,.1f} records/s"),
            job=vertex.name,
        )
        _expiry(draft, job, vertex, (points[-1].trigger_timestamp - points[0].trigger_timestamp) / 1000)
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
    subtasks = [
        subtask for point in usual_checkpoints(job) for task in point.tasks.values() for subtask in task.subtasks
    ]
    own, written = math.fsum(map(own_bytes, subtasks)), math.fsum(map(written_bytes, subtasks))
    return written < 0.9 * own
