"""A job with failures, rescales and resumes, held against the same job without any: `account(scenario)` says how they differ.

What does not depend on the order in which records meet is compared record by record:

- what the tasks of a vertex have served, if every stream before it is *order-free*: those of sources, and those of vertices that read only
  such streams and write a whole number of copies per record.  Which task got which record is not compared: that is the routing's doing.
- what such a vertex has committed.

Behind a vertex that writes a fraction of a copy per record it depends on the order which records go on.  Their number
does not, nor does their channel (copies are routed by their ordinals), so the records of each channel are counted.  A
rescaled vertex counts anew: behind it only what is order-free can be compared.  A vertex that emits what it commits may
do so when its readers have finished: they drop it, as in Flink, and how much that is depends on the checkpoints.
Windows of processing time lose what they hold at the end of data, and how much that is depends on when it comes.  So do
windows of event time, while all sources are idle.  What is left out is said by `not_compared`.
"""

from collections import Counter
from dataclasses import replace

from sim.model.scenario import Instances
from sim.plane.interface import Ship
from tests.worlds.traced import Lineage, traced


def undisturbed(scenario):
    """The same job: one instance of it, nothing fails, nobody asks for anything."""
    return replace(scenario, faults=(), actions=(), rescale=(), instances=Instances())


def account(scenario, twin=None):
    """How what came of the run differs from what came of the undisturbed one; compared if both come to the end of their data.

    `twin`: what came of the undisturbed one, if it is known.
    """
    if _never_ends(scenario):
        return []
    run, twin = traced(scenario), twin or traced(undisturbed(scenario))
    if run.status != twin.status:
        return [f"the job ends as {run.status}, undisturbed as {twin.status}"]
    return list(_differences(run, twin)) if run.status == "FINISHED" else []


def not_compared(scenario):
    """What `account` leaves out, and why; decided by the scenario alone."""
    if reason := _never_ends(scenario):
        return [reason]
    resized = {name for rescale in scenario.rescale for name, _ in rescale.parallelism}
    vertices = scenario.job.vertices
    partial = {inlet.upstream for v in vertices for inlet in v.inputs if scenario.job.fan_out(inlet).denominator != 1}
    fractions = [v.name for v in vertices if v.inputs and v.name in partial]
    left_out = [
        f"which records come behind {name}: it writes a fraction of a copy, so that depends on their order"
        for name in fractions
    ]
    emitting = [v.name for v in vertices if v.commit is not None and v.commit.emits == "on-commit"]
    left_out += [
        f"what comes behind {name}: its readers drop what it emits when they have finished" for name in emitting
    ]
    left_out += [
        f"what comes behind {v.name}: the end of its data loses what its windows hold"
        for v in vertices
        if _forgets(v, scenario)
    ]
    if resized and fractions:
        left_out.append(
            f"how many records come behind {', '.join(fractions)}: fractions are counted anew behind a rescale"
        )
    return left_out


def _forgets(vertex, scenario):
    """Pending timers are dropped; so is the last watermark where all inputs are idle."""
    sources = (v.source for v in scenario.job.vertices if v.source is not None)
    may_be_idle = any(source.watermark.idle_timeout_ns is not None for source in sources)
    return vertex.window is not None and (vertex.window.time == "processing" or may_be_idle)


def _never_ends(scenario):
    if any(vertex.source is not None and vertex.source.total is None for vertex in scenario.job.vertices):
        return "everything: a source has no end"
    if any(action.stop is not None for action in scenario.actions):
        return "everything: the job is stopped, the undisturbed one is not"
    return ""


def _differences(run, twin):
    if twin.spec is None:
        return
    open_ended = _behind(twin.spec, run.emits_late)
    free = [name for name in _order_free(twin.spec, run.resized) if name not in open_ended]
    for name in free:
        yield from _compared(f"{name} has served", run.seen[name], twin.seen[name])
    if not run.resized:
        for edge, counts in twin.counts.items():
            if edge.split("->")[1].split("#")[0] in open_ended:
                continue
            for channel, (expected, actual) in enumerate(zip(counts, run.counts[edge], strict=True)):
                if expected != actual:
                    yield f"{edge}, channel {channel}: {actual} records are read, {expected} if nothing fails"
    for name in sorted({*run.committed, *twin.committed}):
        actual, expected = (traced.committed.get(name, Counter[Lineage]()) for traced in (run, twin))
        if name in free:
            yield from _compared(f"{name} has committed", actual, expected)
        elif not run.resized and name not in open_ended and actual.total() != expected.total():
            yield f"{name} has committed {actual.total()} records, {expected.total()} if nothing fails"


def _order_free(spec, resized):
    """Vertices of which every record is known that they serve, in topological order."""
    free = []
    for number, vertex in enumerate(spec.vertices):
        inputs = [edge for edge in spec.edges if edge.downstream == number]
        known = all(_passes_on(spec, edge, free) for edge in inputs)
        # one per subtask, however many
        copies = vertex.name in resized and any(edge.ship == Ship.BROADCAST for edge in inputs)
        if known and not copies:
            free.append(vertex.name)
    return free


def _passes_on(spec, edge, free):
    """Whether the records on this edge do not depend on the order in which its writer got them."""
    writer = spec.vertices[edge.upstream]
    return writer.source is not None or (writer.name in free and edge.fan_out[1] == 1)


def _behind(spec, writers):
    """Vertices that read from these, or from those who do."""
    found = set()
    for edge in sorted(spec.edges, key=lambda edge: edge.downstream):  # vertices are in topological order
        if spec.vertices[edge.upstream].name in writers | found:
            found.add(spec.vertices[edge.downstream].name)
    return found


def _compared(what, actual, expected):
    missing, extra = expected - actual, actual - expected
    for phrase, records in (("too few", missing), ("too many", extra)):
        if records:
            vertex, index, ordinal = min(records)
            yield f"{what} {records.total()} records {phrase}, the first is record {ordinal} of {vertex}[{index}]"
