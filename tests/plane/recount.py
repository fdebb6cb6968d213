"""A recount of everything that must have travelled, made from the scenario file and the prose of ``sim/plane/RULES.md`` alone.

Both planes share their layout, positions, draws and the assembly of scenarios into specifications, so comparing the
planes says nothing about these.  This page shares no line with them: it imports nothing of `sim`, and reckons with
numpy and scipy instead of integer tables.

Totals do not depend on timing.  A channel's records are the copies its writer made, the m-th copy on a partition has
one reader (O5), and record i of a channel has one size (B1).  That holds after failures too, if every restore is exact.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
from scipy import stats

SLICES = 4096
SECOND = 1_000_000_000
_WORD = np.uint64(0xFFFFFFFF)


@dataclass
class TaskCount:
    """What a task has done when a bounded job has ended."""

    vertex: str
    subtask: int
    host: int
    served: int = 0
    service_ns: int | None = 0  # in all; None if it depends on the order in which inputs are read


@dataclass
class ChannelCount:
    """What has travelled from one task to another when a bounded job has ended."""

    writer: tuple[str, int]
    reader: tuple[str, int]
    local: bool
    records: int = 0
    bytes: int = 0


@dataclass
class Recount:
    tasks: list[TaskCount] = field(default_factory=list)
    channels: list[ChannelCount] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------- draws and laws


def uniform(seed, *names, count):
    """The first `count` numbers of a stream, as 32-bit integers."""
    digest = hashlib.blake2b(repr((seed, *names)).encode(), digest_size=8).digest()
    integers = np.frombuffer(digest, "<u4").astype(np.uint64)
    stride, offset = (integers[0] % np.uint64(2**31)) | np.uint64(1), integers[1]
    x = (np.arange(count, dtype=np.uint64) * stride + offset) & _WORD
    for _ in range(2):
        x = ((x ^ (x >> np.uint64(16))) * np.uint64(73244475)) & _WORD
    return x ^ (x >> np.uint64(16))


@cache
def quantiles(kind, mean, cv):
    """The mean of each of 4096 equally likely slices of a law, by integrating its quantile function (16 Gauss points a slice)."""
    law = {
        "exponential": lambda: stats.expon(scale=mean),
        "uniform": lambda: stats.uniform(0, 2 * mean),
        "erlang": lambda: stats.gamma(round(1 / cv**2), scale=mean / round(1 / cv**2)),
        "lognormal": lambda: stats.lognorm(math.sqrt(math.log1p(cv**2)), scale=mean / math.sqrt(1 + cv**2)),
        "shifted-exponential": lambda: stats.expon(mean * (1 - cv), mean * cv),
    }[kind]()
    points, weights = np.polynomial.legendre.leggauss(16)
    u = (np.arange(SLICES)[:, None] + (points + 1) / 2) / SLICES
    means = law.ppf(u) @ weights / 2
    means[-1] = SLICES * mean - means[:-1].sum()  # the tail is what is left: its quantile function is infinite at 1
    return np.maximum(means, 0)


def amounts(given, unit, stream, count):
    """The first `count` values of a law as a scenario writes it: a quantity, or {kind: mean} or {kind: {mean, cv}}."""
    if isinstance(given, str):
        return np.full(count, quantity(given, unit), np.float64)
    ((kind, how),) = given.items()
    mean, cv = (how["mean"], float(how["cv"])) if isinstance(how, Mapping) else (how, 1.0)
    table = quantiles(kind, quantity(mean, unit), cv)
    return table[(uniform(*stream, count=count) * np.uint64(SLICES)) >> np.uint64(32)]


BYTES = {"B": 1, "kB": 1000, "KiB": 1024}
TIMES = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": SECOND}


def quantity(text, unit):
    number, name = text.split()
    return round(float(number) * unit[name])


# ---------------------------------------------------------------------------------------------- who sends to whom


def readers_of(ship, writer, writers, readers):
    """Flink's pointwise pattern for forward and rescale, seen from the reader; everybody for all others."""
    if ship not in ("forward", "rescale"):
        return list(range(readers))
    if writers >= readers:
        return [r for r in range(readers) if r * writers // readers <= writer < (r + 1) * writers // readers]
    return [r for r in range(readers) if r * writers // readers == writer]


def key_group_shares(parallelism, max_parallelism):
    """How many key groups each subtask owns (KeyGroupRangeAssignment)."""
    owners = [group * parallelism // max_parallelism for group in range(max_parallelism)]
    return [owners.count(subtask) for subtask in range(parallelism)]


def default_max_parallelism(parallelism):
    """Half as many again, rounded up to a power of two, from 128 to 32768."""
    return min(max(1 << math.ceil(math.log2(parallelism + parallelism // 2)), 128), 1 << 15)


def weights_of(vertex, inlet):
    """The share of a hash edge's records that each reader gets."""
    parallelism = vertex["parallelism"]
    if "weights" in inlet:
        return [Fraction(weight) for weight in inlet["weights"]]
    shares = key_group_shares(parallelism, vertex.get("max-parallelism", default_max_parallelism(parallelism)))
    return [Fraction(1)] * parallelism if len(set(shares)) == 1 else [Fraction(share) for share in shares]


def places(ship, seed, edge, writer, weights, channels, copies):
    """(channel of the partition, how many of the copies go there)."""
    if ship == "hash":
        drawn = uniform(seed, "route", edge, writer, count=copies)
        if len(set(weights)) == 1:
            chosen = (drawn * np.uint64(channels)) >> np.uint64(32)
        else:
            bounds = [round(SLICES * sum(weights[:i], Fraction(0)) / sum(weights)) for i in range(1, channels)]
            chosen = np.searchsorted(bounds, (drawn * np.uint64(SLICES)) >> np.uint64(32), side="right")
        yield from ((c, int((chosen == c).sum())) for c in range(channels))
    elif ship in ("rebalance", "rescale"):
        first = int(uniform(seed, "start", edge, writer, count=1)[0]) * channels >> 32 if ship == "rebalance" else 0
        yield from ((c, len(range((c - first) % channels, copies, channels))) for c in range(channels))
    else:
        yield from ((c, copies if c == 0 or ship == "broadcast" else 0) for c in range(channels))


# ---------------------------------------------------------------------------------------------- the count


def recount(document):
    """Tasks by vertex and subtask, channels by edge, writer and reader, of a bounded job when it has ended."""
    job, seed = document["job"], document["run"]["seed"]
    cluster = document.get("cluster", {})
    result = Recount([task for name, vertex in job.items() for task in _tasks(name, vertex)])
    for number, task in enumerate(result.tasks):
        placement = cluster.get("placement", "spread")
        task.host = {"isolated": number, "single": 0, "spread": task.subtask // int(cluster.get("slots", 1))}[placement]
    tasks = {(task.vertex, task.subtask): task for task in result.tasks}
    for name, vertex in job.items():  # in topological order, which is the order of the file
        inputs = vertex.get("input", {})
        read = {upstream: [0] * vertex["parallelism"] for upstream in inputs}
        for position, (upstream, inlet) in enumerate(inputs.items()):
            edge = f"{upstream}->{name}#{position}"
            for channel in _channels(job, tasks, (upstream, name), inlet, (seed, edge)):
                result.channels.append(channel)
                read[upstream][channel.reader[1]] += channel.records
        for subtask in range(vertex["parallelism"]):
            _serve(tasks[name, subtask], vertex, [(inlet, read[up][subtask]) for up, inlet in inputs.items()], seed)
    return result


def _tasks(name, vertex):
    return [TaskCount(name, subtask, 0) for subtask in range(vertex["parallelism"])]


def _channels(
    job,
    tasks,
    ends,
    inlet,
    key,
):
    """The channels of one edge."""
    (up, down), (seed, edge) = ends, key
    writers, readers = job[up]["parallelism"], job[down]["parallelism"]
    fan_out = Fraction(str(job[up].get("fan-out", 1)))
    size = inlet.get("record") or record_of(job, up)
    for writer in range(writers):
        targets = readers_of(inlet["ship"], writer, writers, readers)
        copies = math.floor(tasks[up, writer].served * fan_out)
        weights = weights_of(job[down], inlet)
        for place, records in places(inlet["ship"], seed, edge, writer, weights, len(targets), copies):
            reader = targets[place]
            drawn_for = 0 if inlet["ship"] == "broadcast" else reader
            sizes = np.maximum(np.rint(amounts(size, BYTES, (seed, "size", edge, writer, drawn_for), records)), 1)
            local = tasks[up, writer].host == tasks[down, reader].host
            yield ChannelCount((up, writer), (down, reader), local, records, int(sizes.sum()))


def record_of(job, name):
    """The size of the records a vertex emits: said there, or that of what it reads."""
    vertex = job[name]
    if "source" in vertex:
        return vertex["source"]["record"]
    return vertex.get("record") or next(record_of(job, upstream) for upstream in vertex["input"])


def _serve(task, vertex, inputs, seed):
    """Records and time of service; every record takes 1 ns at least."""
    if "source" in vertex:
        inputs = [({}, int(vertex["source"]["records-per-subtask"]))]
    laws = [inlet.get("service", vertex.get("service", "1 us")) for inlet, _ in inputs]
    task.served = sum(records for _, records in inputs)
    if any(law != laws[0] for law in laws) and not all(isinstance(law, str) for law in laws):
        task.service_ns = None
        return
    task.service_ns = 0
    if all(isinstance(law, str) for law in laws):
        task.service_ns = sum(
            max(1, quantity(law, TIMES)) * records for law, (_, records) in zip(laws, inputs, strict=True)
        )
    else:
        times = amounts(laws[0], TIMES, (seed, "service", task.vertex, task.subtask), task.served)
        task.service_ns = int(np.maximum(np.rint(times), 1).sum())


def due_times(steps, until_s):
    """When each record of a source falls due [s], for steps of (start [s], records per second): where the integral of the rate is whole."""
    times, count = [], 0
    area = Fraction(0)
    for i, (start, rate) in enumerate(steps):
        begin = Fraction(str(start))
        end = Fraction(str(steps[i + 1][0])) if i + 1 < len(steps) else Fraction(str(until_s))
        while rate and begin + (count - area) / rate < end:
            times.append(begin + (count - area) / rate)
            count += 1
        area += rate * (end - begin)
    return [time for time in times if time < Fraction(str(until_s))]
