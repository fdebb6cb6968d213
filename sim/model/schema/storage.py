"""`storage:` as it is written, its kinds, traces of slow places, and the model of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model import storage
from sim.model.catalog import Catalog, find_plugins, options_of
from sim.model.job import Distribution
from sim.model.schema.fields import Axis, Duration, OnOff, Positive, Share
from sim.model.schema.options import Options, built
from sim.model.schema.sections import MAP_OR_TEXT, Section, Texts, add_key, law
from sim.model.schema.text import DocumentPath, Reading, remembered
from sim.model.schema.trace import (
    TraceError,
    columns_and_rows,
    detect_clock,
    file_stamp,
    moment,
    must_have,
    not_increasing,
    time_column,
)
from sim.model.storage import NOT_FLAT, STORAGES, SlowTrace
from sim.model.storage import Disk as StorageDisk
from sim.model.storage import FileMerging as StorageFileMerging
from sim.model.storage import Retry as StorageRetry
from sim.model.storage import Storage as StorageStorage
from sim.model.units import MS, SECOND, UnitError, format_duration, parse_number

# ---- The page of a kind of storage: its key, its section, and the function that builds the model's options.


@dataclass(frozen=True, slots=True)
class StorageSchema:
    """A kind of storage, as scenarios write it.  One is defined here for each kind of `STORAGES`."""

    name: str  # its key in `storage:`
    section: type[Section]
    # section, where mistakes go, folder of the scenario -> options of the model
    build: Callable[[Any, Reading, Path], Any]
    # key of flat storage -> its own key for the same
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """The field of the section."""
        return self.name.replace("-", "_")


STORAGE_PAGES: Catalog[StorageSchema] = Catalog()
"""Filled by `sim.model.schema.storage`, and from outside."""


# ---- Measured speeds from a CSV file -> how slow a node is through time, one series per machine.


class SlowSeries(Section):
    """Measured speeds from a CSV file (also .csv.gz), relative to the scenario; the median through time is a usual node."""

    trace: str = Field(min_length=1)
    """The CSV file."""
    column: str
    """Speed, in any unit."""
    time: str | None = None
    """Column of the time stamps: seconds, epoch milliseconds and the like, or ISO 8601; default: one with such a name, else the first."""
    machine: str | None = None
    """Column that tells machines apart, each a series of its own."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """How far into the trace the run begins: nodes are its machines in turn, all at that moment.  Default: each node is one of them, from a
    moment of its own on."""


def read_slowness(series: SlowSeries, folder: Path) -> SlowTrace:
    """Factor = usual speed / speed of the row, until the next row of that machine.  A blank keeps the speed before it.

    The usual speed is the median over the time of all machines: half of their time they are faster, half of it slower.
    """
    file = folder / series.trace
    nodes, length_ns = _all_series(file, file_stamp(file), series.column, series.time, series.machine)
    begin_ns = series.from_
    if begin_ns is not None and begin_ns >= length_ns:
        raise TraceError(f"{file} has rows of {format_duration(length_ns)}: none from {format_duration(begin_ns)} on")
    return SlowTrace(nodes, length_ns, begin_ns)


@lru_cache(maxsize=8)
def _all_series(
    file: Path,
    stamp: tuple[int, int],
    column: str,
    time: str | None,
    machine: str | None,
) -> tuple[tuple[tuple[tuple[int, Fraction], ...], ...], int]:
    """The factors of every machine and the longest of their times, read once for the many cells of a sweep.

    `stamp` is not used here: another one is another file.
    """
    columns, rows = columns_and_rows(file)
    time = time or time_column(columns)
    must_have(file, columns, [time, column, *([machine] if machine else [])])
    machines: dict[str, list[tuple[Fraction, Fraction]]] = {}  # (time, speed)
    clock, rows = detect_clock(time, rows)
    for line, row in rows:
        if (text := (row[column] or "").strip()) != "":
            speeds = machines.setdefault((row[machine] or "") if machine else "", [])
            at = moment(clock, row[time], file, line)
            if speeds and at <= speeds[-1][0]:
                raise TraceError(f"{file}:{line}: {not_increasing(clock)}")
            speeds.append((at, _speed(text, file, line)))
    if not machines or min(map(len, machines.values())) < 2:
        raise TraceError(f"{file} has fewer than two speeds of a machine in column '{column}'")
    usual = _median(
        [(speed, after - at) for speeds in machines.values() for (at, speed), (after, _) in pairwise(speeds)]
    )
    length = max(speeds[-1][0] - speeds[0][0] for speeds in machines.values())
    return tuple(_steps(speeds, usual) for speeds in machines.values()), round(length * SECOND)


def _steps(speeds: list[tuple[Fraction, Fraction]], usual: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """The times at which the factor changes; noise of recorded speeds is left out."""
    steps: list[tuple[int, Fraction]] = []
    for at, speed in speeds:
        factor = (usual / speed).limit_denominator(100)
        if not steps or factor != steps[-1][1]:
            steps.append((round((at - speeds[0][0]) * SECOND), factor or Fraction(1, 100)))
    return tuple(steps)


def _median(weighted: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The weighted median of (value, weight) pairs."""
    half, so_far = sum(weight for _, weight in weighted) / 2, Fraction(0)
    for value, weight in sorted(weighted):
        so_far += weight
        if so_far >= half:
            return value
    raise ValueError("no values")


def _speed(text: str, file: Path, line: int) -> Fraction:
    try:
        speed = parse_number(text)
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is not a speed") from None
    if speed == 0:
        raise TraceError(
            f"{file}:{line}: a speed of 0 would last for ever: leave the row blank, or write an outage under faults:"
        )
    return speed


# ---- `slow:` of nodes, prefixes and disks, as it is written and as the model has it: episodes, or a measured series.


class SlowPlaces(Options, of=(storage.SlowPlaces,)):
    """Each node, prefix or disk is slow for a share of its time, in episodes: bandwidth divided by the factor."""

    share: Axis[Share]
    factor: Axis[Positive]


def _slow_kind(value: object) -> str:
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


SlowPlacesField = Annotated[
    Annotated[SlowPlaces, Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]


def build_slow(
    given: SlowPlaces | SlowSeries | None, here: DocumentPath, reading: Reading, folder: Path
) -> storage.SlowPlaces | None:
    """Mistakes go to `reading`."""
    if given is None:
        return None
    if isinstance(given, SlowSeries):
        reading.reads_files = True
        try:
            return storage.SlowPlaces(trace=read_slowness(given, folder))
        except TraceError as error:
            reading.wrong((*here, "trace"), str(error))
            return None
    lasts = law(given.lasts, storage.SlowPlaces().lasts, (*here, "lasts"), reading)
    if isinstance(given.lasts, int):
        lasts = Distribution(given.lasts, "exponential")
    if lasts.mean == 0:
        reading.wrong((*here, "lasts"), "must be more than 0")
    elif lasts.mean < MS:
        reading.wrong((*here, "lasts"), f"is {format_duration(int(lasts.mean))}: write an episode of 1 ms or more")
    return storage.SlowPlaces(given.share, given.factor, lasts, given.first)


# ---- `dfs:` of `storage:`, a distributed file system, as it is written and as the model has it.


class Dfs(Options, of=(storage.Dfs,)):
    """A distributed file system: blocks are written through a pipeline of replicas, the slowest sets the pace."""

    slow: SlowPlacesField | None = None


def build_dfs(given: Dfs, reading: Reading, folder: Path) -> storage.Dfs:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "dfs")
    default = storage.Dfs(given.nodes).replication
    if given.replication is not None and given.replication > given.nodes:
        reading.wrong((*here, "replication"), f"is {given.replication}, but there are {given.nodes} nodes")
    return built(
        storage.Dfs,
        given,
        here,
        reading,
        replication=min(given.replication or default, given.nodes),
        slow=build_slow(given.slow, (*here, "slow"), reading, folder),
    )


DFS = StorageSchema("dfs", Dfs, build_dfs, {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"})


# ---- `object-store:` of `storage:` as it is written and as the model has it.


class ObjectStore(Options, of=(storage.ObjectStore,)):
    """S3 and its kin: an object is there when it is closed, large ones go in parts, requests are limited."""

    slow: SlowPlacesField | None = None


def build_object_store(given: ObjectStore, reading: Reading, folder: Path) -> storage.ObjectStore:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "object-store")
    return built(
        storage.ObjectStore, given, here, reading, slow=build_slow(given.slow, (*here, "slow"), reading, folder)
    )


OBJECT_STORE = StorageSchema(
    "object-store",
    ObjectStore,
    build_object_store,
    {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"},
)


# ---- The `storage:` section as it is written: flat, a distributed file system or an object store, and local disks.


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Texts] = {
        "lasts": "nodes, prefixes and disks are slow for a while: write it in slow: of dfs:, object-store: or disk:"
    }

    share: Axis[Share]
    """Share of the files that are slow."""
    factor: Axis[Positive]
    """Bandwidth of a slow file is divided by this, latency multiplied."""


class Disk(Options, of=(storage.Disk,)):
    """The local disk of each task manager."""

    slow: SlowPlacesField | None = None


class Retry(Options, of=(storage.Retry,)):
    """How long a client of storage insists."""


class FileMerging(Options, of=(storage.FileMerging,)):
    """execution.checkpointing.file-merging.*: small files of a checkpoint share a physical one."""


class Storage(Options, of=(storage.Storage,)):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    HINTS: ClassVar[Texts] = {
        "slow-share": "write slow: {share: 2 %, factor: 20}",
        "nodes": "nodes stand in dfs: {nodes: 50}",
        "s3": "write object-store: {}",
        "hdfs": "write dfs: {nodes: 50}",
        "replication": "replication stands in dfs:",
    }

    slow: Slow | None = None
    dfs: Dfs | None = None
    object_store: ObjectStore | None = None
    disk: Disk | None = None
    retry: Retry | None = None
    file_merging: (
        Axis[Annotated[Annotated[OnOff, Tag("text")] | Annotated[FileMerging, Tag("map")], MAP_OR_TEXT]] | None
    ) = None


# ---- The `storage:` section -> the model, and every check that needs values.

_HERE = "storage"


@remembered
def build_storage(given: Storage, reading: Reading, folder: Path) -> StorageStorage:
    """Mistakes go to `reading`."""
    slow, page = given.slow, _page(given, reading)
    if given.retry is not None and given.retry.timeout == 0:
        reading.wrong((_HERE, "retry", "timeout"), "of 0 fails every attempt: write at least '1 ms'")
    return built(
        StorageStorage,
        given,
        (_HERE,),
        reading,
        slow_probability=None if slow is None else float(slow.share),
        slow_factor=None if slow is None else slow.factor,
        **({} if page is None else {_place(page): page.build(getattr(given, page.key), reading, folder)}),
        disk=_disk(given.disk, reading, folder),
        retry=built(StorageRetry, given.retry, (_HERE, "retry"), reading),
        merging=_merging(given, page, reading),
    )


def _disk(given: Disk | None, reading: Reading, folder: Path) -> StorageDisk:
    here: DocumentPath = (_HERE, "disk")
    if given is None:
        return StorageDisk()
    if given.slow is not None and given.bandwidth is None:
        reading.wrong((*here, "slow"), "has no effect on a disk that takes no time: write its bandwidth")
    return built(StorageDisk, given, here, reading, slow=build_slow(given.slow, (*here, "slow"), reading, folder))


def _place(page: StorageSchema) -> str:
    """The field of the model that holds the options of a kind."""
    return page.key if page.key in {field.name for field in fields(StorageStorage)} else "other"


def _page(given: Storage, reading: Reading) -> StorageSchema | None:
    """The kind of storage; None: it is flat."""
    written = [page for page in STORAGE_PAGES.values() if getattr(given, page.key) is not None]
    page = written[0] if written else None
    for other in written[1:]:
        reading.wrong((_HERE, other.name), f"storage is a {written[0].name} already: write one of the two")
    for key, record in options_of(StorageStorage).items():
        if page is not None and record.excludes == NOT_FLAT and getattr(given, key.replace("-", "_")) is not None:
            has = f": write {page.name}: {{{page.instead[key]}: ...}}" if key in page.instead else ""
            reading.wrong((_HERE, key), f"is a key of flat storage, which has no {page.name}{has}")
    if page is None and given.nic is not None:
        kinds = " or ".join(f"{name}:" for name in STORAGE_PAGES)
        reading.wrong((_HERE, "nic"), f"has no effect: the streams of flat storage share nothing; write {kinds}")
    return page


def _merging(given: Storage, page: StorageSchema | None, reading: Reading) -> StorageFileMerging | None:
    merging, here = given.file_merging, (_HERE, "file-merging")
    if isinstance(merging, FileMerging):
        options: StorageFileMerging | None = built(StorageFileMerging, merging, here, reading)
    else:
        options = StorageFileMerging() if merging in ("on", "true") else None
    if options is not None and page is not None and not (kind := STORAGES[page.name]).appends:
        article = "an" if kind.title[0] in "aeiou" else "a"
        reading.wrong(here, f"needs files that can be appended to: {article} {kind.title} has none")
    return options


# ---- `storage:`: flat, a distributed file system or an object store, as it is written, as the model has it, as Flink writes it.
#
# `sim.model.schema.study` calls the builder.  It knows no job.

for _storage_page in find_plugins(sys.modules[__name__], StorageSchema):
    STORAGE_PAGES.add(_storage_page)
    if _storage_page.key not in Storage.model_fields:
        add_key(Storage, _storage_page.name, _storage_page.section)
