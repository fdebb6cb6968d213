"""The `window:` of each vertex that the plan says has one, or whose state rises and falls as windows make it.

=================  ============================================================================================================
kind, sizes, time  the description of the operator in the plan; without one: a saw tooth through the sizes of its state, and a question
phase              where the sizes of the state fall, beside the triggers of the checkpoints
state-per-record   the slope of the sizes / records in
fan-out            records out per end / records in between two ends: totals of a short sample hold a broken number of windows
service, fire      busy time of a step of the counters = records in x service + records out x fire
=================  ============================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from sim.model.scenario import Overheads
from sim.recordings.infer.before_barrier import WatchedJob, usual_checkpoints
from sim.recordings.infer.draft import Draft, duration_text
from sim.recordings.infer.file_history import own_bytes
from sim.recordings.infer.flows import Flows, series
from sim.recordings.infer.state import backend_of
from sim.recordings.infer.windows.firing import outputs_per_end, split_of_busy_time
from sim.recordings.infer.windows.plan import PlannedWindow, planned_window, uses_event_time
from sim.recordings.infer.windows.rhythm import gathering
from sim.recordings.infer.windows.saw_tooth import SawTooth, fitted
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import MS, format_duration, format_number, format_size

FLOOR = 0.1  # of the height of the tooth: a lower floor is what arrived while the window ended
UNPLANNED = 0.97  # share of the variance: without a word in the plan the curve has to fit this well
RARE = 0.01  # probability of durations that gather so by chance
LONGEST_S = 120
SHORTEST_S = 2
TEETH = 3  # ends of windows within the history: fewer may be anything
WORKS = 0.05  # of its time busy: with less it does not matter what the time is spent on
RUN_ENDS = 12  # ends of windows in a run
LONGEST_RUN_NS = 3600 * 10**9
SLACK_MS = 250.0  # a watermark comes so much later
SHORTEST_NS = 1000  # of a record, where all of the busy time lies in the outputs


class _Found(NamedTuple):
    """A window of a vertex.  `tooth`: the saw tooth of its state, if there is one."""

    window: PlannedWindow
    tooth: SawTooth | None


def infer_windows(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `window:` of every vertex that has one, and what follows from it."""
    event_time = uses_event_time(vertex.description for vertex in job.vertices)
    for vertex in job.vertices:
        found = _found(job, vertex)
        if found is None:
            continue
        section = draft.document["job"][vertex.name]
        if not vertex.inputs and found.window.is_local:
            _window(draft, job, vertex, found, event_time=event_time)
            draft.put("window.stage", "local", job=vertex.name)
            continue
        if not vertex.inputs or "async-io" in section or "commit" in section:
            why = "it stands in the chain of a source" if not vertex.inputs else "its vertex also makes requests, or commits"
            draft.not_modelled.append(f"the window of '{vertex.name}' ({found.window.phrase}): {why}")
            continue
        _window(draft, job, vertex, found, event_time=event_time)
        _state_per_record(draft, vertex, found, flowed[vertex.name])
        _outputs(draft, job, vertex, found, flowed[vertex.name])
        _work(draft, job, vertex, flowed[vertex.name])


def longest_run_ns(job: RestJob) -> int:
    """How long a run has to be to show windows at all phases of the checkpoints."""
    periods = [found.window.every_ns for vertex in job.vertices if (found := _found(job, vertex)) is not None]
    return min(RUN_ENDS * max(periods, default=0), LONGEST_RUN_NS)


def _found(job: RestJob, vertex: RestVertex) -> _Found | None:
    planned, on_heap = planned_window(vertex.description), backend_of(job) == "hashmap"  # files of RocksDB rise and fall as they are merged
    if planned is not None:
        sizes = _sizes(job, vertex) if on_heap and planned.kind != "session" else []
        return _Found(planned, fitted(sizes, [planned.every_ns / MS]))
    tooth = timers_of(job, vertex) if on_heap else None
    if tooth is None:
        return None
    every_ns = round(tooth.period_ms) * MS
    return _Found(PlannedWindow("tumbling", every_ns, every_ns, "", "datastream", is_local=False, phrase=""), tooth)


def timers_of(job: WatchedJob, vertex: RestVertex) -> SawTooth | None:
    """Timers of a keyed function that fire together, and let its state on the heap go; None: its sizes do not show them.

    Where a checkpoint comes while they fire, sizes lie off the curve.  Then long checkpoints must keep its rhythm as well.
    Sizes that only rise are no teeth, whatever period fits them: checkpoints a little more than a period apart rise along each tooth.
    """
    sizes = _sizes(job, vertex) if any(edge.ship == "HASH" for edge in vertex.inputs) else []
    if sum(after < before for (_, before), (_, after) in pairwise(sizes)) < TEETH - 1:
        return None
    tooth = fitted(sizes, [1000.0 * seconds for seconds in range(SHORTEST_S, LONGEST_S + 1)])
    if tooth is None or sizes[-1][0] - sizes[0][0] < TEETH * tooth.period_ms:
        return None
    if tooth.explained >= UNPLANNED:
        return tooth
    points = usual_checkpoints(job)
    turns = [point.trigger_timestamp % tooth.period_ms / tooth.period_ms for point in points]
    return tooth if gathering(turns, [point.end_to_end_duration for point in points]) < RARE else None


def _sizes(job: WatchedJob, vertex: RestVertex) -> list[tuple[float, float]]:
    """(time up to which records were read [epoch ms], bytes) of each usual checkpoint: a barrier waits in line with records."""
    sizes, sources = [], [source.name for source in job.vertices if not source.inputs]
    for point in usual_checkpoints(job):
        task = point.tasks.get(vertex.name)
        done = [subtask for subtask in task.subtasks if subtask.status == "completed"] if task else []
        if done and len(done) == vertex.parallelism:
            tasks = [point.tasks[source] for source in sources if source in point.tasks]
            delays = [max(subtask.start_delay, 0) for source in tasks for subtask in source.subtasks]
            cut_ms = point.trigger_timestamp + (fmean(delays) if delays else 0.0)
            sizes.append((cut_ms, float(sum(own_bytes(subtask) for subtask in done))))
    return sizes


def _window(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found, *, event_time: bool) -> None:
    """Set kind, sizes, time, api and phase."""
    window, size = found.window, format_duration(found.window.size_ns)
    if window.phrase:
        draft.put(f"window.{window.kind}", size, f"{window.phrase} in the plan", job=vertex.name)
    else:
        explained = found.tooth.explained if found.tooth else 0.0
        assumed = f"windows of {size}: its state rises and falls so, which explains {explained:.0%} of the variance of its sizes."
        draft.ask("window.tumbling", size, "Which of its timers fire together, and how often?", assumed, job=vertex.name)
    if window.kind == "sliding":
        draft.put("window.every", format_duration(window.every_ns), job=vertex.name)
    if window.time or window.phrase:
        draft.put("window.time", window.time or ("event" if event_time else "processing"), job=vertex.name)
    else:
        draft.ask("window.time", "processing", "Whose time are its timers of?", "the clock's.", job=vertex.name)
    if window.api == "datastream":
        draft.put("window.api", "datastream", job=vertex.name)
    if window.kind != "session":
        _phase(draft, job, vertex, found)


def _phase(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found) -> None:
    """Set when windows end, so that they meet the checkpoints of a run as they met those of the job."""
    every_ms = found.window.every_ns / MS
    grid_ms = _grid_ms(job)
    if found.tooth is not None and grid_ms is not None:
        phase_ms = (found.tooth.falls_ms(SLACK_MS) - grid_ms + _first_trigger_ms(job)) % every_ms
        origin = f"the sizes of its state fall then: a saw tooth explains {found.tooth.explained:.0%} of their variance"
        draft.put("window.phase", format_duration(round(phase_ms) % round(every_ms) * MS), origin, job=vertex.name)
        return
    phase_ms = 0.0 if grid_ms is None else (_first_trigger_ms(job) - grid_ms) % every_ms
    question = "When do its windows end, beside its checkpoints?"
    assumed = "at whole multiples of their size by the clock; the sizes of its state do not show it."
    draft.ask("window.phase", format_duration(round(phase_ms) % round(every_ms) * MS), question, assumed, job=vertex.name)


def _grid_ms(job: RestJob) -> float | None:
    """A point of the grid on which the job triggers its checkpoints, one interval before its first usual one; None: there is no grid."""
    every_ms = job.checkpoint_config.interval if job.checkpoint_config else 0
    triggers = [point.trigger_timestamp for point in usual_checkpoints(job)]
    if not triggers or every_ms <= 0:
        return None
    off = median((trigger - triggers[0] + every_ms / 2) % every_ms - every_ms / 2 for trigger in triggers)
    return triggers[0] + off - every_ms


def _first_trigger_ms(job: RestJob) -> float:
    """When a run triggers first (2.x profile)."""
    pause_ms = job.checkpoint_config.min_pause if job.checkpoint_config else 0
    return Overheads().first_trigger_ns / MS + (pause_ms or 0)


def _state_per_record(draft: Draft, vertex: RestVertex, found: _Found, flow: Flows) -> None:
    """Set the state of a record that is held; the state of the vertex is what lies below the teeth."""
    per_second = flow.per_second("records_in")
    if found.tooth is None or not per_second > 0:
        return
    tooth, state = found.tooth, draft.document["job"][vertex.name].get("state", {})
    per_record = round(tooth.per_second / per_second)
    origin = f"{tooth.per_second:,.0f} bytes/s between two ends / {per_second:,.1f} records/s"
    draft.put("window.state-per-record", format_size(per_record), origin, job=vertex.name)
    height = tooth.per_second * tooth.period_ms / 1000
    draft.drop("state.growth", job=vertex.name)
    draft.drop("state.ttl", job=vertex.name)
    if tooth.floor > FLOOR * height:
        draft.put("state.size", format_size(round(tooth.floor)), "what is left of its state at the end of a window", job=vertex.name)
    elif state.keys() <= {"size", "growth", "backend"}:
        draft.drop("state", job=vertex.name)


def _outputs(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found, flow: Flows) -> None:
    """Set the fan-out by whole windows."""
    counted = outputs_per_end(series(job, vertex), found.tooth.falls_ms(SLACK_MS), found.tooth.period_ms) if found.tooth else None
    per_second = flow.per_second("records_in")
    if counted is None or not per_second > 0 or not job.readers(vertex.name):
        return
    (per_end, ends), arrived = counted, per_second * found.window.every_ns / 10**9
    origin = f"{per_end:,.0f} records out at each of {ends} ends / {arrived:,.0f} in between two"
    draft.put("fan-out", format_number(Fraction(f"{per_end / arrived:.4g}")), origin, job=vertex.name)


def _work(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    """Set what a record takes that arrives, and one that leaves."""
    busy = flow.share("busy_ms")
    split = split_of_busy_time(series(job, vertex))
    if split is not None:
        origin = "busy time by least squares over records in and out"
        per_record = split.per_record if split.per_record * MS > SHORTEST_NS else SHORTEST_NS / MS
        draft.put("service", duration_text(per_record * MS), origin, job=vertex.name)
        draft.put("window.fire", duration_text(split.per_output * MS), origin, job=vertex.name)
    elif busy > WORKS and flow.total("records_out") > 0:
        most = duration_text(flow.total("busy_ms") / flow.total("records_out") * MS)
        question = "How long does its thread work for each record that leaves at the end of a window?"
        why = f"none: its service has all of the busy time; between 0 and {most}, its counters do not tell the two apart."
        draft.ask("window.fire", "0 s", question, why, job=vertex.name)
