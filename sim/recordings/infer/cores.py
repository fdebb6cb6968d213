"""The cores of the job's hosts, and the time per record on an idle core.

Busy time counts a thread that waits for a core as busy.  So the time per record that counters give grows with the number of threads, and
with the parallelism.  A scenario has the time on an idle core, and says how many cores there are.

It counts a thread that blocks or sleeps as busy, too.  Processor time of the processes tells both apart: only work uses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any

from sim.model.randomness.contention import slowdown
from sim.recordings.infer.async_io import NO_WORK
from sim.recordings.infer.draft import Draft, duration_text
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob
from sim.units import format_number, parse_duration

_LEAST = 0.02
"""A smaller slowdown is no more than what counters are off by."""
_WORKS = 0.7
"""See `threads_block`."""
_SERVICES = re.compile(r"^(service|window\.(fire|flush)|input\.[^.]+\.service)$")


def infer_cores(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `cluster: {cores, hosts, services}`, and divide services by what contention there was; nothing if no answer tells the cores.

    How busy the cores are is kept in the draft: what serialises state on the heap shares them.
    """
    managers = job.task_managers
    known = {manager.id: manager.hardware.cpu_cores for manager in managers if manager.hardware.cpu_cores > 0}
    places = {vertex.name: {place.subtask: place.taskmanager_id for place in job.details[vertex.name].subtasks} for vertex in job.vertices}
    used = {manager for subtasks in places.values() for manager in subtasks.values()}
    if not used or not used <= known.keys():
        return
    address = {manager.id: manager.address for manager in managers}
    hosts = sorted({address[manager] for manager in used})
    cores = min(known[manager] for manager in used)
    busy: dict[str, list[float]] = {host: [] for host in hosts}
    waiting = {name for name, given in draft.document["job"].items() if given.get("service") == NO_WORK and "async-io" in given}
    for vertex in job.vertices:
        for subtask, own in enumerate(flowed[vertex.name].subtasks):
            share = own.busy_ms / own.elapsed_ms if own.elapsed_ms > 0 else math.nan
            if subtask in places[vertex.name] and not math.isnan(share) and vertex.name not in waiting:
                busy[address[places[vertex.name][subtask]]].append(share)
    threads = {host: math.fsum(shares) for host, shares in busy.items()}
    dearest = max(hosts, key=threads.__getitem__)
    slower = slowdown(busy[dearest], cores)
    threads_busy = f"{format_number(Fraction(round(10 * threads[dearest]), 10))} threads of tasks are busy at once"
    used_cores = cores_used_by(job, [manager for manager in used if address[manager] == dearest])
    contend = slower > 1 + _LEAST
    blocked = contend and used_cores is not None and threads_block(used_cores, threads[dearest], slower)
    draft.core_load = (threads[dearest] if not blocked or used_cores is None else used_cores) / cores
    where = "" if len(hosts) == 1 else " on the busiest host"
    slowed = f", so records take {slower:.3g} times as long as on idle cores" if not blocked else ""
    draft.put("cluster.cores", cores, f"hardware.cpuCores in /taskmanagers; {threads_busy}{where}{slowed}")
    if len(used) > len(hosts):
        where = "one address" if len(hosts) == 1 else f"{len(hosts)} addresses"
        draft.put("cluster.hosts", len(hosts), f"{len(used)} task managers on {where}: more of them bring no more cores")
    if blocked:
        wait = f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time): tasks block, sleep, or wait for other processes"
        draft.put("cluster.services", "side-by-side", f"busy time / records{wait}")
        return
    origin = "busy time / records, divided by what threads waited for cores"
    question = "; do tasks block or sleep? Flink counts that as busy, too: then they waited for no core, and services are too short"
    proof = question if used_cores is None else f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time)"
    draft.put("cluster.services", "idle-core", f"{origin}{proof if contend else ''}")
    if contend:
        unless = " (unless tasks block or sleep: no sample of their processor time tells)" if used_cores is None else ""
        draft.scarce.append(f"{threads_busy} on {cores} cores, so records take {slower:.2g} times as long as on idle ones{unless}")
        _divide(draft, slower, f"{threads_busy} on {cores} cores")


def threads_block(used_cores: float, busy_threads: float, slower: float) -> bool:
    """Whether threads that count as busy sleep or wait for other processes: theirs use far fewer cores than work would."""
    return used_cores < _WORKS * busy_threads / slower


def cores_used_by(job: RestJob, managers: Collection[str]) -> float | None:
    """The cores that these TaskManagers use together; None: not known of all."""
    known = [job.cores_used[manager] for manager in managers if manager in job.cores_used]
    return math.fsum(known) if len(known) == len(managers) else None


def _divide(draft: Draft, slower: float, why: str) -> None:
    """All services are those of an idle core."""
    for vertex, given in draft.document["job"].items():
        for path, section, key in list(_services(given)):
            section[key] = duration_text(parse_duration(section[key]) / slower)
            draft.add_to(f"{path}", f"divided by {slower:.3g}: {why}", job=vertex)


def _services(section: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """(path, section, key) of each time that a record keeps the thread busy."""
    for key, value in section.items():
        path = f"{before}{key}"
        if isinstance(value, dict):
            yield from _services(value, f"{path}.")
        elif _SERVICES.match(path) and isinstance(value, str):
            yield path, section, key
