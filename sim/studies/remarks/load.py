"""Sentences on the load of a run: service times, scarce cores, uneven subtasks, backlogs, windows that wait for silent sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain, pairwise

import pandas as pd

from sim.model.job import Distribution, Job, Vertex, key_groups
from sim.model.randomness import slowdown
from sim.model.scenario import Scenario
from sim.model.state import MAX_ROCKSDB_ACCESS_NS, MIN_ROCKSDB_ACCESS_NS, ROCKSDB_ACCESS_NS
from sim.model.units import format_duration
from sim.results.formats import change_text, count_text, more_text, ms_text, share_text
from sim.results.rates import MAX_REMAINING_SHARE, backlog
from sim.runtime.plane_spec import hosts
from sim.runtime.result import Result

FULL_SHARE = 0.95
"""Share of the time, or of the possible requests, from which a vertex counts as full."""


def is_full(result: Result) -> bool:
    """Return whether a vertex is busy all the time before the first restart, so that its capacity decides what follows."""
    before = result.series[result.series["time"] * 1e3 < result.recoveries["failed"].min()]
    return bool(before.groupby("vertex")["busy"].mean().max() >= FULL_SHARE)


def rocksdb_access_sentence(scenarios: Iterable[Scenario]) -> str:
    """Return a warning if vertices have the same service time on the heap and in RocksDB, which takes longer per record.

    Return "" if no vertex has both backends in the scenarios, or if each has another service time in RocksDB.
    """
    backends = defaultdict[tuple[str, tuple[Distribution, ...]], set[bool]](set)
    for vertex in chain.from_iterable(scenario.job.vertices for scenario in scenarios):
        if vertex.state is not None:
            services = tuple(inlet.service for inlet in vertex.inputs) or (vertex.service,)
            backends[vertex.name, services].add(vertex.state.kind.keeps_files)
    alike = {
        name: min(service.mean for service in services)
        for (name, services), kinds in backends.items()
        if len(kinds) > 1
    }
    if not alike:
        return ""
    name = min(alike, key=alike.__getitem__)
    access, least, most = map(format_duration, (ROCKSDB_ACCESS_NS, MIN_ROCKSDB_ACCESS_NS, MAX_ROCKSDB_ACCESS_NS))
    change, largest = (change_text(ns / alike[name]) for ns in (ROCKSDB_ACCESS_NS, MAX_ROCKSDB_ACCESS_NS))
    return (
        f"What RocksDB costs each record is not included, about {access} ({least} to {most}): '{name}'{more_text(len(alike) - 1)} takes "
        f"{ms_text(alike[name] / 1e6)} with both backends, and {access} are {change}, {most} {largest}. Give RocksDB a longer service."
    )


# ---- TaskManagers whose task threads need more cores than they have.

_MIN_SLOWDOWN_IF_FULL = 0.05
"""Minimum slowdown that is reported if threads need all cores or more on average."""
_MIN_SLOWDOWN_AT_TIMES = 0.25
"""Minimum slowdown that is reported if threads need fewer cores on average, so that they compete only at times."""


def scarce_cores(result: Result) -> str:
    """Return a clause on the host with the most busy threads, and on how much its records slow down.

    Return "" if the host has enough cores, if the number of cores is unknown, or if service times were measured side by side
    (`cluster.services`): they include waiting for cores already.  An import sets side-by-side for tasks that sleep.
    """
    scenario, tasks, cluster = result.scenario, result.tasks, result.scenario.cluster
    machines = [cluster.host(manager) for manager in hosts(scenario)]
    if cluster.cores is None or cluster.tasks_contend is False or len(tasks) != len(machines) or not result.ended_ns:
        return ""
    work_ns = tasks["vertex"].map({vertex.name: vertex.work_ns for vertex in scenario.job.vertices}).astype(float)
    busy_ns, records_ns = tasks["accumulateBusyTimeMs"] * 1e6, tasks["numRecordsIn"] * work_ns
    worked_ns = busy_ns.mask(records_ns < busy_ns, records_ns)
    busiest = max((shares.tolist() for _, shares in (worked_ns / result.ended_ns).groupby(machines)), key=sum)
    threads = sum(busiest)
    slower = float(tasks["x_coreSlowdown"].max()) if cluster.tasks_contend else slowdown(busiest, cluster.cores)
    if slower < 1 + (_MIN_SLOWDOWN_IF_FULL if threads >= cluster.cores else _MIN_SLOWDOWN_AT_TIMES):
        return ""
    cores = f"{cluster.cores} core{'s' * (cluster.cores > 1)}"
    load = f"on average over the run {threads:.1f} threads of tasks are busy at once on {cores}"
    if cluster.tasks_contend:
        return f"{load}, so records take {slower:.2g} times as long as on idle ones; subtasks added there would share these cores"
    return (
        f"{load}, and none of them waits: cluster: services does not say how services were measured. If on idle cores (idle-core), "
        f"throughput is up to {slower:.2g} times lower; if with all tasks at work, or if tasks sleep (side-by-side), it is as here"
    )


def _rescale_shares(upstream: int, parallelism: int) -> list[Fraction]:
    """Return the share of records that each of `parallelism` subtasks gets from `upstream` ones by rescale.

    Source: VertexInputInfoComputationUtils#computeVertexInputInfoForPointwise.
    """
    if upstream >= parallelism:
        bounds = [index * upstream // parallelism for index in range(parallelism + 1)]
        return [Fraction(end - begin, upstream) for begin, end in pairwise(bounds)]
    bounds = [-(-index * parallelism // upstream) for index in range(upstream + 1)]
    return [Fraction(1, upstream * (end - begin)) for begin, end in pairwise(bounds) for _ in range(begin, end)]


def uneven_subtask(vertex: Vertex, index: int, parallelism_of: Mapping[str, int]) -> str:
    """Return why a subtask is busier than the others of its vertex: key groups, records, or work per record.

    Return "" if the scenario does not explain it.  `parallelism_of`: parallelism by vertex.
    """
    reasons, groups = [], vertex.max_parallelism
    for inlet in vertex.inputs:
        if inlet.weights and (shares := vertex.shares(inlet))[index] > Fraction(1, vertex.parallelism):
            least = share_text(float(min(shares)))
            reasons.append(
                f"gets {share_text(float(shares[index]))} of the records of '{inlet.upstream}', and the least {least}"
            )
        elif inlet.shipping.name == "rescale":
            dealt = _rescale_shares(parallelism_of[inlet.upstream], vertex.parallelism)
            if dealt[index] > min(dealt):
                reasons.append(
                    f"gets {share_text(float(dealt[index]))} of the records of '{inlet.upstream}', and the least {share_text(float(min(dealt)))}: "
                    f"rescale connects {parallelism_of[inlet.upstream]} to {vertex.parallelism} subtasks, rebalance gives each as many"
                )
        elif inlet.shipping.keyed and not inlet.weights:
            owned = [len(key_groups(i, vertex.parallelism, groups)) for i in range(vertex.parallelism)]
            if owned[index] > min(owned):
                fewest = f"{owned.count(min(owned))} of its {vertex.parallelism} subtasks own {min(owned)}"
                reasons.append(
                    f"owns {owned[index]} of {groups} key groups, and {fewest} (a max-parallelism that is a multiple of "
                    f"{vertex.parallelism} gives each as many; state that exists keeps the one it has)"
                )
    if (factor := dict(vertex.service_factors).get(index, 1)) > 1:
        reasons.append(f"takes {float(factor):.2g} times as long per record")
    return "; it ".join(dict.fromkeys(reasons))


# ---- Backlogs, and event-time windows that a source without records holds back.


def peak_sentences(series: pd.DataFrame, emitting: Collection[str]) -> Iterator[str]:
    """Yield a sentence on the backlog that takes longest to be worked off, if the lag reaches a second.  `emitting`: sources."""
    waiting = backlog(series)
    is_high = waiting > MAX_REMAINING_SHARE * waiting.max()
    peaks = []
    for _, peak in waiting[is_high].groupby((~is_high).cumsum()[is_high]):
        top_s = float(peak.index[int(peak.to_numpy().argmax())])
        rest_s = waiting.index[(waiting.index > top_s) & (waiting <= MAX_REMAINING_SHARE * peak.max())]
        peaks.append(((rest_s[0] if len(rest_s) else waiting.index[-1]) - top_s, top_s, peak.max(), len(rest_s) > 0))
    if peaks and series["lag"].max() >= 1:
        lasts_s, top_s, records, is_over = max(peaks)
        after = f"than a tenth of it is left {ms_text(1e3 * lasts_s)} later"
        of_sources = series[series["time"] == top_s].groupby("vertex")["backlog"].sum()
        is_one = len(emitting) > 1 and of_sources.max() >= FULL_SHARE * records
        whose = (
            f"'{of_sources.idxmax()}', nearly all of that of the {len(emitting)} sources," if is_one else "the sources"
        )
        yield (
            f"The backlog of {whose} grows to {count_text(records)} records at {ms_text(1e3 * top_s)}, and "
            f"{f'less {after}' if is_over else f'more {after}, when the run ends'}"
        )


def sources_of(job: Job) -> dict[str, set[str]]:
    """Return {vertex: sources upstream of it}; a source is its own."""
    sources: dict[str, set[str]] = {}
    for vertex in job.vertices:
        above = (sources[inlet.upstream] for inlet in vertex.inputs)
        sources[vertex.name] = {vertex.name} if vertex.source else set().union(*above)
    return sources


def held_window(result: Result) -> str:
    """Return a clause on an event-time window that never fires because a silent subtask holds back its watermark, or ""."""
    job, counts = result.scenario.job, result.tasks.groupby("vertex")[["numRecordsIn", "numRecordsOut"]]
    emitted, least_read = counts.sum()["numRecordsOut"], counts.min()["numRecordsIn"]
    emitting = {inlet.upstream for reader in job.vertices for inlet in reader.inputs if job.fan_out(inlet)}
    silent = {
        vertex.name
        for vertex in job.vertices
        if vertex.source and not least_read[vertex.name] and not vertex.source.watermark.idle_timeout_ns
    }
    for name, sources in sources_of(job).items():
        window = job.vertex(name).window
        if sources & silent and window and window.time == "event" and name in emitting and not emitted[name]:
            source = max(sources & silent)
            return (
                f"no window of '{name}' ends: a subtask of '{source}' without records holds the watermark; "
                f"give '{source}' watermark: {{idle-timeout: 10 s}} (withIdleness in Flink)"
            )
    return ""


_MIN_LATE_S = 3
"""Minimum delay of results [s] for which a silent source is reported; rates are known by the second."""


def late_result_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the first event-time window that emits nothing for a while, as a source is silent meanwhile.

    Session windows are left out: they end when there are no records.
    """
    job, rates = result.scenario.job, ("numRecordsInPerSecond", "numBytesOutPerSecond")
    read, emitted = (
        result.series.pivot_table(index="time", columns="vertex", values=rate, aggfunc="sum") for rate in rates
    )
    for name, sources in sources_of(job).items():
        window = job.vertex(name).window
        if window is None or window.time != "event" or window.hold_ns or name not in emitted:
            continue
        times_s = [0.0, *emitted.index[emitted[name] > 0], emitted.index[-1]]
        begin_s, end_s = max(pairwise(times_s), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))
        step_s, phase_s = window.step_ns / 1e9, window.phase_ns / 1e9
        due_s = begin_s + step_s - (begin_s - phase_s) % step_s  # the next window end
        end_s -= 1  # it emits again in the second that ends with the sample
        meanwhile = read[(read.index > due_s) & (read.index < end_s)]
        silent = [own for own in sorted(sources) if not meanwhile[own].any()]
        if end_s - due_s < _MIN_LATE_S or not silent or not meanwhile[name].any():
            continue
        advice, late_ms, source = "", 1e3 * (end_s - due_s), job.vertex(silent[0]).source
        if source and not source.watermark.idle_timeout_ns and late_ms > 10_000:
            advice = f"; watermark: {{idle-timeout: 10 s}} of '{silent[0]}' (withIdleness in Flink) ends that sooner"
        yield (
            f"'{name}' emits nothing from {ms_text(1e3 * begin_s)} to {ms_text(1e3 * end_s)}, as '{silent[0]}' is silent and holds back its "
            f"watermark: results come up to {ms_text(late_ms)} after the end of their window, all at once{advice}"
        )
        return
