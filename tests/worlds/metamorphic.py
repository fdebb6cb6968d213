"""Laws about two runs of one random world: `python -m tests.worlds.metamorphic --count 1000`.

A law edits the world, runs both, and says what differs that may not.  A world that a law says nothing about does not
count for it.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from sim.model.job import Distribution
from sim.model.schema.text import write
from sim.runtime.simulate import simulate
from sim.studies.cells import warm
from sim.studies.local import cores, run_each
from tests.printing import print_line
from tests.scenarios import read_scenario
from tests.worlds.account import account, undisturbed
from tests.worlds.draw import Draw
from tests.worlds.events import movable
from tests.worlds.generator import FOLDER, document
from tests.worlds.trial import limited_cpu

MOST_CPU_S = 30
LATER = {"rescale", "instances", "actions"}


def _scenario(world):
    return read_scenario(write(world, "A world."), folder=FOLDER)


def _run(world, attach=lambda _: None):
    return simulate(_scenario(world), attach=attach)


# ---------------------------------------------------------------------------------------------- in-flight data


def in_flight_written_is_read(world):
    """The bytes of unaligned in-flight data in files are what the subtasks captured, and what a recovery reads."""
    if world["checkpoint"].get("barriers", "aligned") == "aligned" or LATER & set(world):
        return None
    world = world | {"storage": world.get("storage", {}) | {"inline-threshold": "0 B"}}
    instances = []
    result = _run(world, instances.append)
    captured = (
        (result.subtasks["x_captured_input"] + result.subtasks["x_captured_output"])
        .groupby(result.subtasks["id"])
        .sum()
    )
    written = Counter[int]()
    for file in instances[-1].storage.files:
        if file.name[0] == "channel-state" and file.complete:
            written[int(file.name[2])] += file.size_bytes
    complete = result.checkpoints.loc[result.checkpoints["status"] == "COMPLETED", "id"]
    for checkpoint in complete:
        if written[checkpoint] != captured.get(checkpoint, 0):
            return (
                f"checkpoint {checkpoint}: {written[checkpoint]} bytes in files, {captured.get(checkpoint, 0)} captured"
            )
    tasks = sum(vertex.get("parallelism", 1) for vertex in world["job"].values())
    full_restarts = result.recoveries[
        (result.recoveries["tasks"] == tasks) & (result.recoveries["restored_checkpoint"] > 0)
    ]
    for row in _undisturbed(full_restarts, result).itertuples():
        if row.recovered_bytes != captured.get(row.restored_checkpoint, 0):
            return f"restart {row.restart}: {row.recovered_bytes} bytes read, {captured.get(row.restored_checkpoint, 0)} captured"
    return "" if written.total() else None


def _undisturbed(recoveries, result):
    """Those that are over before the next failure."""
    begins = sorted(result.recoveries["failed"])
    over = [
        row.running > 0 and all(not row.failed < failed <= row.running for failed in begins)
        for row in recoveries.itertuples()
    ]
    return recoveries[pd.Series(over, index=recoveries.index, dtype=bool)]


# ---------------------------------------------------------------------------------------------- a run in two


def a_run_split_by_a_savepoint_comes_to_the_same(world):
    """Stopped with a savepoint and restored from it, a job serves and commits the same records."""
    plain = {key: section for key, section in world.items() if key not in LATER | {"faults"}}
    names = [name for name, vertex in world["job"].items() if movable(vertex)]
    if (
        not names
        or world["checkpoint"].get("finish", "flink") != "flink"
        or "lost-notifications" in world["checkpoint"]
    ):
        return None
    at_ms = Draw(world["run"]["seed"]).randint(100, 900)
    same = {names[0]: world["job"][names[0]].get("parallelism", 1)}
    split = plain | {"rescale": {"at": f"{at_ms} ms", "parallelism": same, "from": "savepoint"}}
    result = _run(split)
    if len(result.restores) == 0 or result.job_status != "FINISHED":
        return None  # it had come to its end, or storage is too slow for the savepoint
    if found := (*result.violations, *result.repetitions):
        return str(found[0]).splitlines()[0]
    lines = account(_scenario(split))[:1]
    if lines and simulate(undisturbed(_scenario(split))).job_status != "FINISHED":
        return None  # storage is too slow for its windows, say: there is no end to compare with
    return "; ".join(lines)


# ---------------------------------------------------------------------------------------------- storage


def faster_storage_never_lengthens_an_asynchronous_part(world):
    """The first checkpoint decides: until then both runs have come the same way."""
    storage = world.get("storage")
    if (
        storage is None
        or "unlimited" in str(storage)
        or "requests" in str(storage)
        or world.get("cluster", {}).keys() & {"cores", "nic"}
    ):
        # where cores, cards or requests per second are scarce, what ends sooner makes others work at the same time
        return None
    slow, fast = _first_subtasks(world), _first_subtasks(world | {"storage": _faster(storage)})
    same = [
        "vertex",
        "index",
        "start_delay",
        "alignment_duration",
        "x_pre_barrier",
        "sync_duration",
        "x_captured_input",
        "x_captured_output",
    ]
    both = slow.merge(fast, on=same, suffixes=("", "_fast"))
    longer = both[both["async_duration_fast"] > both["async_duration"]]
    for row in longer.itertuples():
        return f"{row.vertex}[{row.index}]: {row.async_duration} ms, {row.async_duration_fast} ms with storage four times as fast"
    return "" if (both["async_duration_fast"] < both["async_duration"]).any() else None


def _first_subtasks(world):
    rows = _run(world).subtasks
    return rows[(rows["id"] == 1) & rows["async_duration"].notna() & ~rows["aborted"]]


def _faster(section):
    """Every bandwidth is four times as large."""
    if isinstance(section, dict):
        return {key: _faster(value) for key, value in section.items()}
    if isinstance(section, str) and (match := re.fullmatch(r"(\d+) (kB|MB)/s", section)):
        return f"{4 * int(match[1])} {match[2]}/s"
    return section


# ---------------------------------------------------------------------------------------------- components that have nothing to do with it


def an_unrelated_vertex_changes_nothing(world):
    """A source of one record, which no other vertex reads, leaves the snapshots of all others as they were."""
    random = any(
        fault.get(key) in ("random-task", "random")
        for fault in world.get("faults", ())
        for key in ("kill", "task-manager", "network")
    )
    cluster, restart = world.get("cluster", {}), world["restart"]
    if (
        random
        or LATER & set(world)
        or "slots" in cluster
        or "cores" in cluster
        or cluster.get("placement", "isolated") != "isolated"
    ):
        return None
    if (
        world["checkpoint"].get("finish", "flink") != "flink"
        or restart.get("failover") == "full"
        or "job-manager" in str(world.get("faults"))
    ):
        return None
    idle = {"source": {"rate": "1/s", "record": "1 B"}, "parallelism": 1}
    before = _run(_without_end(world))
    after = _run(_without_end(world | {"job": world["job"] | {"zz": idle}}))
    same = [
        "id",
        "vertex",
        "index",
        "alignment_duration",
        "sync_duration",
        "async_duration",
        "checkpointed_size",
        "state_size",
    ]
    expected, seen = (
        run.subtasks.loc[run.subtasks["vertex"] != "zz", same].reset_index(drop=True) for run in (before, after)
    )
    if expected.equals(seen) and before.commits.equals(after.commits):
        return "" if len(expected) else None
    rows = [
        number
        for number, (a, b) in enumerate(zip(expected.itertuples(), seen.itertuples(), strict=False))
        if str(a) != str(b)
    ]
    return (
        f"subtask {expected.iloc[rows[0]].to_dict()} is {seen.iloc[rows[0]].to_dict()}"
        if rows
        else f"{len(seen)} for {len(expected)} snapshots"
    )


def _without_end(world):
    """For two seconds: neither source comes to its end."""
    world = deepcopy(world)
    for vertex in world["job"].values():
        for key in ("records", "records-per-subtask"):
            vertex.get("source", {}).pop(key, None)
    world["run"]["duration"] = "2 s"
    return world


# ---------------------------------------------------------------------------------------------- time


def all_times_scale(world):
    """Twice every time and half of every rate: whatever happens, happens at twice its time.

    Without what draws a phase, an episode or a size: it would be rounded to another nanosecond.  Rounding also decides
    who comes first of two at one instant, and all that follows.  So a finding has to come again where checkpoints begin
    and reach tasks at other moments.
    """
    plain = _without_draws(world)
    found = _does_not_scale(_scenario(plain))
    if found:
        # a restart counts from itself
        later = plain.get("overheads", {}) | {"first-trigger": "10137 us", "trigger": "1137 us"}
        return _does_not_scale(_scenario(plain | {"overheads": later}))
    return found


def _does_not_scale(base):
    try:
        twice = _scaled("", base)
    except _OddError:
        return None
    before, after = simulate(base), simulate(twice)
    expected, seen = (_happened(result, times) for result, times in ((before, 2), (after, 1)))
    for (time_ns, what), (seen_ns, seen_what) in zip(expected, seen, strict=False):
        if what != seen_what or abs(time_ns - seen_ns) > ROUNDED_NS:
            return f"{what} at {time_ns / 2e9:.9f} s is {seen_what} at twice {seen_ns / 2e9:.9f} s"
    return "" if len(expected) == len(seen) > 10 else f"{len(seen)} things happen, {len(expected)} in half of the time"


ROUNDED_NS = 1000
"""Times are whole nanoseconds."""


class _OddError(Exception):
    """A rate has no half."""


def _scaled(name, value):
    """The same with all durations twice, all rates half."""
    if isinstance(value, Distribution):
        return value if name == "record_bytes" else replace(value, mean=2 * value.mean)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{field.name: _scaled(field.name, getattr(value, field.name)) for field in fields(value) if field.init},
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_scaled(name, row) for row in value)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return value
    if "per_second" in name:
        if isinstance(value, int) and value % 2:
            raise _OddError(name)
        return value // 2 if isinstance(value, int) else value / 2
    return 2 * value if name.endswith("_ns") else value


def _without_draws(world):
    world = {
        key: _constant(section)
        for key, section in world.items()
        if key not in LATER | {"cluster", "storage", "residuals"}
    }
    world["cluster"] = {"network": {"segment-size": "4 KiB", "buffer-timeout": "never"}, "latency": "50 us"}
    world["storage"] = {"bandwidth": "4 MB/s", "file-latency": "2 ms"}
    for vertex in world["job"].values():
        for key in ("window", "async-io"):
            vertex.pop(key, None)
        if vertex.get("service") == "0 s":  # a record takes a nanosecond at least
            vertex["service"] = "1 us"
        for key in ("watermark", "backlog"):
            vertex.get("source", {}).pop(key, None)
        for key in ("changelog", "lsm", "backend", "ttl", "ttl-checks", "ttl-filter"):
            vertex.get("state", {}).pop(key, None)
    world["checkpoint"].pop("interval-during-backlog", None)
    world["restart"] = {"strategy": "fixed-delay", "delay": "20 ms"}
    world["faults"] = [
        fault for fault in world.get("faults", ()) if {"kill", "storage", "slow"} & set(fault) and "at" in fault
    ]
    return world


def _constant(section):
    """The means of laws, instead of the laws."""
    if isinstance(section, list):
        return [_constant(row) for row in section]
    if not isinstance(section, dict):
        return section
    if len(section) == 1 and (law := next(iter(section))) in (
        "exponential",
        "uniform",
        "lognormal",
        "erlang",
        "shifted-exponential",
    ):
        return section[law]["mean"] if isinstance(section[law], dict) else section[law]
    return {key: _constant(value) for key, value in section.items()}


def _happened(result, times):
    """(time, what) in the order of what, then of time: things of one instant have no order."""
    rows = [(times * row.time_ns, (str(row.event_type), row.checkpoint, row.task)) for row in result.journal]
    return sorted(rows, key=lambda row: (row[1], row[0]))


LAWS = {
    law.__name__.replace("_", " "): law
    for law in (
        in_flight_written_is_read,
        a_run_split_by_a_savepoint_comes_to_the_same,
        faster_storage_never_lengthens_an_asynchronous_part,
        an_unrelated_vertex_changes_nothing,
        all_times_scale,
    )
}
"""Each law by its name."""


class Found(NamedTuple):
    """What a law says of a world; None: nothing."""

    law: str
    seed: int
    broken: str | None


def found_in(seed, laws=LAWS):
    return [Found(name, seed, _verdict(LAWS[name], document(seed))) for name in laws]


def _verdict(law, world):
    try:
        with limited_cpu(MOST_CPU_S):
            return law(world)
    except TimeoutError:
        return None  # the worlds of the nightly run find those that take too long


def _found_in(item, _progress):
    seed, laws = item
    return found_in(seed, laws)


def report(found):
    kept, broken = Counter[str](), list[Found]()
    for row in found:
        kept[row.law] += row.broken == ""
        if row.broken:
            broken.append(row)
            print_line(f"seed {row.seed}: {row.law}: {row.broken}")
    for law in LAWS:
        print_line(f"{law:60} held in {kept[law]:5} worlds, broken in {sum(row.law == law for row in broken)}")
    return 1 if broken else 0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.worlds.metamorphic", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="laws whose name holds this text (default: all)")
    parser.add_argument("--count", type=int, default=200, help="worlds to draw (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    chosen = parser.parse_args()
    laws = tuple(name for name in LAWS if chosen.only in name)
    warm()
    began = time.process_time()
    items = [(seed, laws) for seed in range(chosen.first, chosen.first + chosen.count)]
    code = report(_flat(rows for _, rows in run_each(_found_in, items, jobs=chosen.jobs)))
    print_line(f"{chosen.count} worlds, CPU {time.process_time() - began:.0f} s in this process")
    return code


def _flat(rows):
    for row in rows:
        yield from row


if __name__ == "__main__":
    sys.exit(main())
