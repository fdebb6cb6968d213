"""Random tiny worlds as scenario files: a job, a way of checkpointing, what goes wrong.  The same seed writes the same file.

Every key of a scenario has its share of worlds (`tests.worlds.keys` holds that); sizes and times are such that most
runs take milliseconds.
"""

from sim.model.schema.text import write
from tests.places import DATA
from tests.worlds.draw import Draw, rescales
from tests.worlds.events import draw_actions, draw_faults, draw_instances, draw_rescale
from tests.worlds.idleness import draw_idleness
from tests.worlds.jobs import (
    draw_backlogs,
    draw_edges,
    draw_expiry,
    draw_first_stages,
    draw_growth,
    draw_job,
    draw_logs,
    draw_residuals,
    draw_second_edges,
    draw_service_factors,
    draw_waits,
    draw_windows,
)
from tests.worlds.rules import draw_rules
from tests.worlds.settings import (
    draw_checkpoint,
    draw_cluster,
    draw_cores,
    draw_detection,
    draw_directories,
    draw_exchanges,
    draw_overheads,
    draw_recovery,
    draw_restart,
    draw_scheduler,
    draw_storage,
)
from tests.worlds.together import draw_together
from tests.worlds.wrong import WRONG

FOLDER = DATA / "worlds"
"""Where the traces of worlds lie, and the worlds that once failed."""


def text(seed, wrong=""):
    """A scenario file."""
    return write(
        document(seed, wrong), f"Is everything processed exactly once? (world {seed}{', ' + wrong if wrong else ''})"
    )


def document(seed, wrong=""):
    """A world whose strategy is sound, unless it is to be wrong."""
    draw = Draw(seed)
    bounded = draw.chance(0.93)
    job = draw_job(draw, bounded=bounded)
    world = {"version": 1, "job": job, "checkpoint": draw_checkpoint(draw, job)}
    world["run"] = {"duration": "30 s" if bounded else draw.pick("2 s", "4 s"), "seed": draw.randint(1, 10**6)}
    world["run"] |= draw.section(0.05, warmup=lambda: draw.pick("300 ms", "auto"))
    world |= draw.section(0.9, cluster=lambda: draw_cluster(draw), storage=lambda: draw_storage(draw))
    world.setdefault("cluster", {}).setdefault("placement", "isolated")
    world["overheads"] = draw_overheads(draw)
    draw.chance(0.05)  # a key that is gone: the worlds of all seeds stay what they were
    world |= _events(draw, job)
    if world["checkpoint"].get("finish") == "naive" and not _ends_naively(world):
        del world["checkpoint"]["finish"]
    world["restart"] = draw_restart(draw)
    world |= draw.section(0.1, directories=lambda: draw_directories(draw))
    draw_windows(draw, world)
    draw_growth(draw, world)
    draw_edges(draw, world)
    draw_backlogs(draw, world)
    draw_residuals(draw, world)
    draw_recovery(draw, world)
    draw_first_stages(draw, world)
    draw_second_edges(draw, world)
    draw_service_factors(draw, world)
    draw_waits(draw, world)
    draw_expiry(draw, world)
    draw_cores(draw, world)
    draw_idleness(draw, world)
    draw_detection(draw, world)
    draw_exchanges(draw, world)
    draw_scheduler(draw, world)
    draw_logs(draw, world)
    draw_together(seed, world)
    draw_rules(seed, world)
    for vertex in job.values():  # small ones only: they are multiplied at each failover
        if seed % 3 and vertex.get("union-state") and vertex.get("snapshot", {}).get("operator-state") != "30 kB":
            vertex["union-state"] = {"clears": seed % 3 == 1}
    _fit_weights(job)
    if wrong in WRONG:
        WRONG[wrong](world)
    _write_as_flink(draw, world)
    return world


def _fit_weights(job):
    """RecordCounts weights are of key groups, and a vertex has no more of these than its largest parallelism."""
    for vertex in job.values():
        for way in vertex.get("input", {}).values():
            weights = way.get("weights") if isinstance(way, dict) else None
            if isinstance(weights, dict) and "counted" in weights and "max-parallelism" in vertex:
                weights["counted"] = weights["counted"][: vertex["max-parallelism"]]


def _ends_naively(world):
    """Whether each task may wait for a last checkpoint of its own.

    What tasks finish with behind a savepoint that drains the job is lost, as it was before FLIP-147.  With union state
    no checkpoint completes once one of its tasks has finished its operators and another has not, so both wait for ever
    (VertexFinishedStateChecker).
    """
    drained = any(action.get("stop") == "drain" for action in world.get("actions", ()))
    return not drained and not any(vertex.get("union-state") for vertex in world["job"].values())


def _events(draw, job):
    events = {}
    if actions := draw_actions(draw):
        events["actions"] = actions
    if not any("stop" in action for action in actions):
        if draw.chance(0.2) and (rescale := draw_rescale(draw, job)) is not None:
            events["rescale"] = rescale
        elif draw.chance(0.06):
            events["instances"] = draw_instances(draw, job, savepoints=bool(actions) and not _commits(job))
    if faults := draw_faults(draw, job, known_ms=_savepoint_ms(events) if _commits(job) else None):
        events["faults"] = faults
    return events


def _commits(job):
    return any("commit" in vertex for vertex in job.values())


def _savepoint_ms(events):
    """When the first savepoint is asked for that the job stops or goes on with; None: there is none."""
    rows = [row for row in rescales(events) if row.get("from") == "savepoint"]
    rows += [action for action in events.get("actions", ()) if "stop" in action]
    return min((int(row["at"].removesuffix(" ms")) for row in rows), default=None)


def _write_as_flink(draw, world):
    """Some worlds say a setting as Flink's own key."""
    options = world["checkpoint"]
    if draw.chance(0.05):
        world["flink"] = {"execution.checkpointing.interval": options.pop("interval")}
        if "min-pause" in options:
            world["flink"]["execution.checkpointing.min-pause"] = options.pop("min-pause")
