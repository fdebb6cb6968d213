"""The manifest and the segments of a run, and its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sim.model.files import replace_file
from sim.model.packed_records import PackedRecords
from sim.model.scenario import Action, Scenario
from sim.protocol.options import FailureReason
from sim.results.journal import EventType, Journal
from sim.results.violations import Violation, time_text
from sim.runtime.host_loop import with_parallelism

if TYPE_CHECKING:
    import pandas as pd


# ---- The manifest of a run: effective scenario, seed and code version.
# Runs with the same manifest have results that are identical to the byte, on any engine and machine.

SERIES_ITEMS = 32
"""Minimum items of a tuple that is hashed as a whole, because scenarios may share it (a rate series)."""
_SCALAR_TYPES = {str, int, float, bool, type(None)}
_PACKAGE = Path(__file__).parents[1]
_PARTS = tuple(
    field.name
    for field in dataclasses.fields(Scenario)
    if field.name not in {"question", "name", "axes", "expect", "run", "written_keys", "left_out"}
)
"""The fields of a scenario that its results depend on.  `run` is hashed separately, because it contains the seed."""


def manifest(scenario: Scenario) -> dict[str, Any]:
    """Return a description of a run that can be written as JSON.  It does not contain the engine, which has no effect on results."""
    return {"scenario": _plain(scenario), "seed": scenario.run.seed, "code_version": code_version()}


def identity(scenario: Scenario) -> str:
    """Return the hash of the manifest, which is used as a file name of results.

    With it a sweep can resume and never mixes results of different versions.  Name, question and expectations of a
    scenario do not change it, because they do not change the run.
    """
    return identity_of(content(scenario), scenario.run.seed)


def content(scenario: Scenario) -> bytes:
    """Return the hash of the manifest without its seed.  Parts that scenarios share are hashed once."""
    parts = [_digest(_Same(getattr(scenario, name))) for name in _PARTS]
    return hashlib.blake2b(_text([parts, _run(_Same(scenario.run)), code_version()]).encode(), digest_size=16).digest()


def identity_of(run: bytes, seed: int) -> str:
    """Return the identity of a run with this `content` and seed."""
    return hashlib.blake2b(run + b"%d" % seed, digest_size=10).hexdigest()


@cache
def code_version() -> str:
    """Return a hash of the package's source.  Every change of the code is a new version."""
    digest = hashlib.blake2b(digest_size=8)
    inside = len(str(_PACKAGE))
    for file in sorted(
        f"{folder}/{name}" for folder, _, names in os.walk(_PACKAGE) for name in names if name.endswith(".py")
    ):
        digest.update(file[inside:].encode() + b"\0" + Path(file).read_bytes() + b"\0")
    return digest.hexdigest()


def _plain(value: Any, short: Callable[[_Same], Any] | None = None) -> Any:
    """Return a value as JSON values.  `short` returns a replacement for a long tuple; by default all its items are included."""
    kind: Any = type(value)
    if kind in _SCALAR_TYPES:  # most values
        return value
    if kind is Fraction:
        return str(value)
    if isinstance(value, (list, tuple, PackedRecords)):
        if short is not None and len(value) >= SERIES_ITEMS and kind in {tuple, PackedRecords}:
            return short(_Same(value))
        return [_plain(item, short) for item in value]
    if names := _names(kind):
        return {name: _plain(getattr(value, name), short) for name in names}
    return value


class _Same:
    """A key for caches: it is compared by the identity of its value, not by content."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=4096)
def _digest(part: _Same) -> str:
    """Return the hash of a long tuple or of a part of a scenario.  Cached, because the settings of a sweep share their rate series."""
    value = part.value
    plain = (
        [_plain(item, _digest) for item in value]
        if isinstance(value, (tuple, PackedRecords))
        else _plain(value, _digest)
    )
    return hashlib.blake2b(_text(plain).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _run(run: _Same) -> dict[str, Any]:
    """Return the fields of `run` except for the seed."""
    return {name: value for name, value in _plain(run.value).items() if name != "seed"}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the field names of a dataclass, or () for other types.  Cached, because a rate series has thousands of values."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


# ---- The segments of a run: in each, one job instance runs with one parallelism, until the next segment begins.
#
# Job instances (`instances:`) divide the duration equally.  A rescaling (`rescale:`) ends a segment at its time, or when
# the savepoint taken for it completes.


NOT_STOPPED = "stops with was not complete at the end of the run"
"""Last words of the status of a job whose successor has no savepoint to begin from yet: it runs on."""


class Segment(NamedTuple):
    """A part of a run in which one job instance has one parallelism."""

    scenario: Scenario  # with the job of this segment and the actions requested in it
    until_ns: int  # latest end; a job that stops with a savepoint ends earlier
    stop: Action | None = None  # stop-with-savepoint that ends the segment; the next one is restored from it
    # what it is restored from, taken in the previous segment
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"
    kind: Literal["instance", "rescale"] = "instance"


def segments(scenario: Scenario) -> list[Segment]:
    """Return the segments of a run in order of time; without `instances:` and `rescale:` there is one."""
    return _segments_of_rescales(scenario) if scenario.rescale else _segments_of_instances(scenario)


def _segments_of_instances(scenario: Scenario) -> list[Segment]:
    """Return one segment of equal length for each job instance."""
    chain, begin_ns, parts = scenario.instances, 0, []
    for number in range(chain.count):
        until_ns = scenario.run.duration_ns * (number + 1) // chain.count
        # an action belongs to exactly one segment
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < until_ns)
        updates = tuple(row for row in scenario.checkpoint_updates if begin_ns <= row.at_ns < until_ns)
        part = replace(scenario, actions=actions, checkpoint_updates=updates)  # a new job has its own options
        parts.append(Segment(part, until_ns, start_from=chain.start_from))
        begin_ns = until_ns
    return parts


def _segments_of_rescales(scenario: Scenario) -> list[Segment]:
    """Return the segments between the rescalings of a run."""
    parts: list[Segment] = []
    job, begin_ns, updates = scenario.job, 0, scenario.checkpoint_updates
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"
    for rescale in (row for row in scenario.rescale if row.at_ns < scenario.run.duration_ns):
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < rescale.at_ns)
        until_ns, stop = rescale.at_ns, None
        if rescale.savepoint:
            stop = Action(rescale.at_ns, "native", "no-drain")
            actions, until_ns = (*actions, stop), scenario.run.duration_ns
        part = replace(scenario, job=job, actions=actions, checkpoint_updates=updates)
        parts.append(Segment(part, until_ns, stop, start_from, "rescale"))
        if rescale.savepoint:  # another job with its own options
            updates = tuple(row for row in updates if row.at_ns >= rescale.at_ns)
        job, begin_ns = with_parallelism(job, dict(rescale.parallelism)), rescale.at_ns
        start_from = "savepoint" if rescale.savepoint else "checkpoint"
    actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns)
    end_ns = scenario.run.duration_ns
    last = replace(scenario, job=job, actions=actions, checkpoint_updates=updates)
    return [*parts, Segment(last, end_ns, None, start_from, "rescale")]


# ---- The result of a run: tables, journal and manifest, and how they are stored in a folder.


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The result of one run.  `sim.results.columns` defines the columns of the tables and their units."""

    scenario: Scenario
    checkpoints: pd.DataFrame  # one row per checkpoint
    subtasks: pd.DataFrame  # one row per checkpoint and subtask
    tasks: pd.DataFrame  # one row per subtask, totals of the run
    series: pd.DataFrame  # one row per second and vertex
    commits: pd.DataFrame  # one row per commit of a transactional sink
    recoveries: pd.DataFrame  # one row per restart
    files: pd.DataFrame  # one row per file of a snapshot
    snapshots: pd.DataFrame  # one row per snapshot retained at the end, with its dependencies
    restores: pd.DataFrame  # one row per job instance restored from a snapshot of another job
    path: pd.DataFrame  # one row per part of the critical path of each checkpoint
    requests: pd.DataFrame  # one row per second in which an object store received requests
    journal: Journal
    job_status: str  # RUNNING, FINISHED, or a reason after "FAILED: " or "RESTARTING FOR EVER: "
    ended_ns: int  # end of the run: its duration, or the time when the job finished or failed without a restart
    # violated guarantees of checkpoints, each with the journal entries that show it
    violations: tuple[Violation, ...] = ()
    manifest_read: dict[str, Any] | None = None  # of a stored run; None: `manifest` derives it from the scenario
    # duplicates after restarts, which at-least-once permits
    repetitions: tuple[Violation, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the run.  It is computed on demand because the rates of a long run make it large."""
        return manifest(self.scenario) if self.manifest_read is None else self.manifest_read

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.type == "pd.DataFrame"}

    @property
    def refused(self) -> list[str]:
        """A phrase for each savepoint or stop that was requested and refused: its time and the reason."""
        scenario = self.scenario
        if not scenario.actions and not any(rescale.savepoint for rescale in scenario.rescale):
            return []  # saves a pass over a long journal
        rows = (row for row in self.journal if row.event_type is EventType.REFUSED and row.number)
        return [
            f"a savepoint or stop at {time_text(row.time_ns)}: {FailureReason[row.detail].text.rstrip('.')}"
            for row in rows
        ]

    def __repr__(self) -> str:
        status = self.checkpoints["status"].value_counts()
        counts = ", ".join(f"{count} {name}" for name, count in status.items()) or "none"
        shape = ", ".join(f"{name} {len(table)}" for name, table in self.tables.items())
        broken = f"\n{len(self.violations)} violations of what checkpoints promise" if self.violations else ""
        return (
            f"Result({self.scenario.name}, {self.scenario.checkpoint.barriers}: job {self.job_status} at {self.ended_ns / 1e9:g} s)\n"
            f"checkpoints: {counts}\nrows: {shape}{broken}"
        )

    def write(self, folder: Path) -> None:
        """Write the tables as Parquet, the manifest as JSON and the journal as JSON lines to a folder.

        Violations, if there are any, are written as text.  Each file is replaced atomically.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables.items():
            replace_file(folder / f"{name}.parquet", partial(table.to_parquet, index=False), others_follow=True)
        text = json.dumps({**self.manifest, "job_status": self.job_status}, indent=1, sort_keys=True)
        replace_file(folder / "manifest.json", lambda path: path.write_text(text + "\n"), others_follow=True)
        stories = "\n\n".join(map(str, self.violations))
        if stories:
            replace_file(folder / "violations.txt", lambda path: path.write_text(stories + "\n"), others_follow=True)
        else:
            (folder / "violations.txt").unlink(missing_ok=True)  # of an earlier run
        rows = "".join(json.dumps(entry) + "\n" for entry in self.journal)
        replace_file(folder / "journal.jsonl", lambda path: path.write_text(rows))
