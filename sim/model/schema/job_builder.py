"""Build the job of the model from the section `job:`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from sim.model.fields import At, attribute_of, either
from sim.model.job import (
    SHIPPING,
    SOURCES,
    Backlog,
    Distribution,
    Excess,
    Input,
    Job,
    Rate,
    Source,
    Vertex,
    default_max_parallelism,
    key_groups,
    redistribute_shares,
)
from sim.model.schema import job as doc
from sim.model.schema.job import build_window, upstream_of
from sim.model.schema.sections import Law, build_model, law
from sim.model.schema.text import DocumentPath, Reading, cached_builder
from sim.model.schema.trace import TraceError, rates_of_trace, series_of
from sim.model.sinks import SINKS, Commit, commit_of
from sim.model.state import BACKENDS, State, Ttl
from sim.model.units import format_number, format_share

# ---- `weights:` of an input -> shares of the reader's subtasks.

_MAX_SAID = 8
"""Maximum shares listed in a warning."""


def build_weights(section: doc.Input, readers: int, groups: int, at: At) -> tuple[Fraction, ...]:
    """Return the shares, which add up to 1.  Errors are reported at `at`."""
    weights = section.weights
    if weights is None:
        return ()
    if not SHIPPING[section.ship].keyed:
        at.wrong(f"only hash has weights, not {section.ship}")
        return ()
    if isinstance(weights, doc.Skew):
        return _skew(weights, excess_of(section), readers, max(groups, readers), at)
    if len(weights) != readers:
        how_many = f"{len(weights)} weights for {readers} subtasks"
        at.wrong(
            f"{how_many}: write one each, or {{counted: [...]}} if they were counted at a parallelism of {len(weights)}"
        )
        return ()
    return _shares(weights, at)


def excess_of(section: doc.Input) -> Excess:
    """Return how the excess of weights is distributed over key groups."""
    return (
        "key-groups" if isinstance(section.weights, doc.Skew) and section.weights.excess == "key-groups" else "one-key"
    )


def groups_of(section: doc.Vertex) -> int:
    """Return the number of key groups of a vertex."""
    return section.max_parallelism or default_max_parallelism(section.parallelism or 1)


def _skew(skew: doc.Skew, excess: Excess, readers: int, groups: int, at: At) -> tuple[Fraction, ...]:
    if skew.hot is not None:
        if skew.excess is not None:
            at.warn("has no effect: hot is one key already", "excess")
        return _hot(skew.hot, readers, groups) if readers > 1 else ()
    shares = _shares(skew.counted or [], at)
    counted = len(shares)
    if counted > groups:
        at.wrong(f"{counted} weights, more than the {groups} key groups", "counted")
        return ()
    if shares and counted != readers:
        kinds: tuple[Excess, Excess] = ("one-key", "key-groups") if excess == "one-key" else ("key-groups", "one-key")
        redistributed, alternative = (redistribute_shares(shares, readers, groups, kind) for kind in kinds)
        listed = ", ".join(format_share(Fraction(round(1000 * share), 1000)) for share in redistributed[:_MAX_SAID])
        excess_text = (
            "is one key, and stays in its key group" if excess == "one-key" else "is spread over its key groups"
        )
        most, other = (
            format_share(Fraction(round(1000 * max(dealt_out)), 1000)) for dealt_out in (redistributed, alternative)
        )
        at.warn(
            f"counted at a parallelism of {counted}, dealt out to {readers} subtasks: {listed}{', ...' if readers > _MAX_SAID else ''}."
            f" What a subtask reads beyond the least {excess_text}: the fullest gets {most} of the records. With excess: {kinds[1]} it gets "
            f"{other}; no answer of Flink counts records per key group, so what it limits lies between"
        )
    return shares


def _shares(weights: Sequence[Fraction], at: At) -> tuple[Fraction, ...]:
    if (total := sum(weights)) == 0:
        at.wrong("all weights are 0: no subtask would get a record")
        return ()
    return tuple(Fraction(weight) / total for weight in weights)


def _hot(hot: Fraction, readers: int, groups: int) -> tuple[Fraction, ...]:
    """Return the share of the first subtask, and those of the others by their key groups."""
    others = [len(key_groups(i, readers, groups)) for i in range(1, readers)]
    return (hot, *[(1 - hot) * count / sum(others) for count in others])


# ---- Validation of the job graph, on the plain document, so that its errors are reported together with all others.


def check_graph(plain: Any, reading: Reading) -> None:
    """Check that inputs exist, that there are no cycles, and that each vertex is reachable from a source."""
    job = plain.get("job") if isinstance(plain, dict) else None
    if isinstance(job, dict) and job:
        _check_graph(job, reading)


@cached_builder
def _check_graph(job: dict[str, Any], reading: Reading) -> None:
    inputs: dict[str, list[str]] = {}
    named: dict[tuple[str, str], DocumentPath] = {}  # (upstream, vertex) -> where it stands
    for name, vertex in job.items():
        if not isinstance(vertex, dict):
            inputs[name] = []
            continue
        edges = vertex.get("input")
        inputs[name] = []
        for key, details in edges.items() if isinstance(edges, dict) else ():
            upstream = upstream_of(key, details)
            inputs[name].append(upstream)
            path: DocumentPath = ("job", name, "input", key)
            named.setdefault((upstream, name), path if upstream == key else (*path, "from"))
            if upstream != key and key in job:
                reading.wrong(path, f"reads '{upstream}', but has the name of another vertex: choose another name")
    for name, upstreams in inputs.items():
        for upstream in upstreams:
            if upstream not in job:
                reading.wrong(
                    named[upstream, name], f"there is no vertex '{upstream}'{reading.did_you_mean(upstream, job)}"
                )
    sources = [name for name, vertex in job.items() if isinstance(vertex, dict) and "source" in vertex]
    if not sources:
        reading.wrong(("job",), "no vertex has a source: nothing would ever flow")
    if (cycle := _cycle(inputs)) is not None:
        reading.wrong(("job", cycle[0]), f"is part of a cycle: {' -> '.join([*cycle, cycle[0]])}")
    elif sources:
        reached = set(sources)
        for name in topological(inputs):
            if any(upstream in reached for upstream in inputs[name]):
                reached.add(name)
        for name in job:
            if name not in reached and inputs[name] and all(upstream in job for upstream in inputs[name]):
                reading.wrong(("job", name), "no source reaches this vertex")


def topological(inputs: dict[str, list[str]]) -> list[str]:
    """Return the vertices in topological order, without those in a cycle or downstream of one."""
    sorter, names = _sorter(inputs), list(inputs)
    position = {name: i for i, name in enumerate(names)}
    with suppress(CycleError):
        sorter.prepare()
    order: list[str] = []
    ready: list[int] = []
    while True:
        for name in sorter.get_ready():
            heappush(ready, position[name])
        if not ready:
            return order
        order.append(names[heappop(ready)])
        sorter.done(order[-1])


def _sorter(inputs: dict[str, list[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter(
        {name: [upstream for upstream in upstreams if upstream in inputs] for name, upstreams in inputs.items()}
    )


def _cycle(inputs: dict[str, list[str]]) -> list[str] | None:
    """Return the vertices of one cycle in the direction of records, beginning with the first in the file."""
    try:
        _sorter(inputs).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][1:]
        first = cycle.index(min(cycle, key=list(inputs).index))
        return cycle[first:] + cycle[:first]
    return None


# ---- `state:` of a vertex.


def build_state(section: doc.State | None, at: At) -> State | None:
    """Build the state of a vertex.  Errors are reported at `at`."""
    if section is None:
        return None
    return build_model(State, section, at, ttl=None if section.limit else _ttl(section, at))


def _ttl(section: doc.State, at: At) -> Ttl | None:
    kind = BACKENDS[section.backend or next(iter(BACKENDS))]
    for key in ("ttl-checks", "ttl-filter"):
        if getattr(section, attribute_of(key)) is None:
            continue
        if not section.ttl:
            at.warn("has no effect: write ttl, how long after its last write a key leaves", key)
        elif key not in kind.sections:
            at.warn(f"has no effect: in {kind.name} expired keys leave when files are merged", key)
    return build_model(Ttl, section, at, after_ns=section.ttl) if section.ttl else None


# ---- `commit:` of a vertex.  A global committer becomes a separate vertex.


def build_commit(section: doc.Commit | str | None, connector: str, at: At, *, has_input: bool) -> Commit | None:
    """Build the commit options; defaults are those of the connector."""
    if section is None or section == "none":
        return None
    kind = SINKS.get(connector)
    usual = Commit() if kind is None else commit_of(kind)
    if section == "as-connector" and kind is None:
        at.wrong("names no connector: write connector: beside it, or commit: two-phase")
    if usual is None:
        if section != "as-connector":
            at.wrong(
                f"'{connector}' commits nothing, its output is visible at once: leave commit out, or write as-connector"
            )
        return None
    if not has_input:
        at.wrong("a source commits nothing: commit stands in a vertex with an input")
    if isinstance(section, str):
        return usual
    if section.transaction_timeout == 0:
        at.wrong("a timeout of 0 loses every transaction: write at least '1 ms'", "transaction-timeout")
    commit = build_model(Commit, section, at, usual)
    if commit.emits == "on-commit" and commit.committer == "global":
        at.wrong("a global committer is no part of the vertex: only a chained one lets records go", "emits")
    return commit


def build_connector(section: doc.Connector | str | None, at: At, *, is_source: bool) -> dict[str, str]:
    """Return the fields of a vertex about its connector."""
    name, version = (section.name, section.version) if isinstance(section, doc.Connector) else (section, None)
    if name is not None and (name in SOURCES) is not is_source:
        expected = either([*(SOURCES if is_source else SINKS)])
        at.wrong(f"'{name}' is {'written to' if is_source else 'read'}: expected {expected}")
    return {"connector": name or "", "connector_version": version or ""}


def with_committers(vertices: tuple[Vertex, ...], at: At) -> tuple[Vertex, ...]:
    """Insert a vertex for each global committer, which reads committables of negligible size."""
    names, committers = {vertex.name for vertex in vertices}, list[Vertex]()
    for vertex in vertices:
        if vertex.commit is None or vertex.commit.committer != "global":
            continue
        name = f"{vertex.name}: committer"
        if name in names:
            at.wrong(f"is the name of the global committer of {vertex.name}: choose another", name)
        behind = Input(vertex.name, "global", service=Distribution(0), record_bytes=Distribution(1))
        committers.append(Vertex(name, inputs=(behind,), committer_of=vertex.name))
    return (*vertices, *committers)


# ---- The `job:` section -> the model's job: vertices in topological order, rates per subtask, weights as shares.

DEFAULT_SERVICE = Distribution(1000)  # ns
DEFAULT_RECORD = Distribution(1000)  # bytes
MIN_FACTOR, MAX_FACTOR = Fraction(1, 100), 100
LARGEST_RECORD_BYTES = 2**31 - 1
"""SpanningRecordSerializer writes the length of a record as an int."""


@cached_builder
def build_job(job: dict[str, doc.Vertex], reading: Reading, folder: Path, *, duration_ns: int) -> Job:
    """Build the job, with traces up to the end of the run.  Errors are added to `reading`."""
    at = At(("job",), reading, folder)
    order = topological({name: [up for up in vertex.upstreams.values() if up in job] for name, vertex in job.items()})
    built: dict[str, Vertex] = {}
    read = {upstream for vertex in job.values() for upstream in vertex.upstreams.values()}
    emitted: dict[str, Distribution] = {}  # size of the records of its main output
    for name in order:
        vertex = job[name]
        at_vertex = at.below(name)
        inputs = [
            _input(key, vertex, job, emitted, at_vertex)
            for key, upstream in vertex.upstreams.items()
            if upstream in built
        ]
        emitted[name] = _record(vertex, inputs, name in read, at_vertex)
        built[name] = _vertex(name, vertex, tuple(inputs), at_vertex, duration_ns)
    for name in built:
        _check_unions(job[name], at.below(name))
    _all_read(job, at)
    return Job(with_committers(tuple(built.values()), at))


def _check_unions(vertex: doc.Vertex, at: At) -> None:
    """Check that the edges of one input of a join are consecutive."""
    unions = {
        key: section.union
        for key, section in (vertex.input or {}).items()
        if isinstance(section, doc.Input) and section.union is not None
    }
    before, closed = "", set[str]()
    for key in vertex.input or {}:
        union = unions.get(key, "")
        if union and vertex.combine != "join":
            at.warn("has no effect: without combine: join all inputs are one stream", "input", key, "union")
        elif union in closed:
            apart = f"the inputs of '{union}' do not follow each other: write them one after the other"
            at.wrong(apart, "input", key, "union")
        if union != before and before:
            closed.add(before)
        before = union


def _all_read(job: dict[str, doc.Vertex], at: At) -> None:
    """Warn of side outputs without readers, whose records Flink drops."""
    details = [
        (vertex.upstreams[key], section) for vertex in job.values() for key, section in (vertex.input or {}).items()
    ]
    read = {(upstream, section.output) for upstream, section in details if isinstance(section, doc.Input)}
    for name, vertex in job.items():
        for tag in vertex.outputs or {}:
            if (name, tag) not in read:
                at.warn(f"has no effect: no input says output: {tag}", name, "outputs", tag)


def _vertex(name: str, section: doc.Vertex, inputs: tuple[Input, ...], at: At, duration_ns: int) -> Vertex:
    connector = build_connector(section.connector, at.below("connector"), is_source=section.source is not None)
    source = section.source
    return build_model(
        Vertex,
        section,
        at,
        name=name,
        max_parallelism=groups_of(section),
        inputs=inputs,
        joined=section.combine == "join",
        source=None if source is None else _source(source, at.below("source"), section.parallelism or 1, duration_ns),
        service_factors=_service_factors(section, name, at.below("service-factor")),
        window=build_window(section, at.below("window")),
        state=build_state(section.state, at.below("state")),
        commit=build_commit(section.commit, connector["connector"], at.below("commit"), has_input=bool(inputs)),
        **connector,
    )


def _service_factors(section: doc.Vertex, name: str, at: At) -> tuple[tuple[int, Fraction], ...]:
    parallelism, factors = section.parallelism or 1, list[tuple[int, Fraction]]()
    for subtask, factor in (section.service_factor or {}).items():
        if not (subtask.isascii() and subtask.isdecimal() and int(subtask) < parallelism):
            at.wrong(f"there is no subtask '{subtask}' of {name}: write a number from 0 to {parallelism - 1}", subtask)
        elif not MIN_FACTOR <= factor <= MAX_FACTOR:
            between = f"a factor stands between {format_number(MIN_FACTOR)} and {MAX_FACTOR}"
            at.wrong(f"is {format_number(factor)}: {between}", subtask)
        else:
            factors.append((int(subtask), factor))
    return tuple(sorted(factors))


def _input(
    key: str, vertex: doc.Vertex, job: dict[str, doc.Vertex], emitted: dict[str, Distribution], of_vertex: At
) -> Input:
    at = of_vertex.below("input").below(key)
    written, upstream = (vertex.input or {})[key], vertex.upstreams[key]
    details = written if isinstance(written, doc.Input) else doc.Input.model_validate({"ship": written})
    readers, writers = vertex.parallelism or 1, job[upstream].parallelism or 1
    ship = details.ship
    if SHIPPING[ship].one_to_one and readers != writers:
        at.warn(f"{ship} needs equal parallelism, not {writers} -> {readers}: rebalance instead, as Flink does")
        ship = "rebalance"
    default = _law(vertex.service, DEFAULT_SERVICE, of_vertex.below("service"))
    fan_out, size, at_size = details.fan_out, details.record, at.below("record")
    if details.output is not None and (side := _side_output(details, job[upstream], upstream, at)) is not None:
        fan_out, size = side.fan_out, side.record
        at_size = replace(at, here=("job", upstream, "outputs", details.output, "record"))
    return Input(
        upstream,
        ship,
        weights=build_weights(details, readers, groups_of(vertex), at.below("weights")),
        excess=excess_of(details),
        service=_law(details.service, default, at.below("service")),
        record_bytes=_law(size, emitted[upstream], at_size),
        union=details.union or "",
        output=details.output or "",
        fan_out=fan_out,
    )


def _side_output(section: doc.Input, writer: doc.Vertex, upstream: str, at: At) -> doc.Output | None:
    """Return the side output that an edge reads, or None if there is no such output."""
    outputs, tag = writer.outputs or {}, section.output or ""
    if tag not in outputs:
        guess = at.reading.did_you_mean(tag, outputs) or f": write outputs: {{{tag}: {{fan-out: 0.1}}}} there"
        at.wrong(f"'{upstream}' has no side output '{tag}'{guess}", "output")
        return None
    for key, value in (("fan-out", section.fan_out), ("record", section.record)):
        if value is not None:
            at.wrong(f"stands in outputs of '{upstream}': the edges of an output carry the same records", key)
    return outputs[tag]


def _record(section: doc.Vertex, inputs: list[Input], has_readers: bool, at: At) -> Distribution:
    if section.source is not None:
        if section.record is not None:
            at.wrong("a source says record inside source:", "record")
        return _law(section.source.record, DEFAULT_RECORD, at.below("source").below("record"))
    if section.record is None and has_readers and len({edge.record_bytes for edge in inputs}) > 1:
        at.wrong("reads records of different sizes: say record: for those it emits")
    return _law(section.record, inputs[0].record_bytes if inputs else DEFAULT_RECORD, at.below("record"))


def _source(section: doc.Source, at: At, parallelism: int, duration_ns: int) -> Source:
    silent = section.silent or 0
    if silent >= parallelism:
        most = f"is {silent}, of {parallelism} subtasks: one of them must have records; write rate: 0/s if none has"
        at.wrong(most, "silent")
    emitting = max(1, parallelism - silent)
    key, shared = ("rate", emitting) if section.rate is not None else ("rate-per-subtask", 1)
    rate = section.rate if section.rate is not None else section.rate_per_subtask
    total = section.records_per_subtask
    if section.records is not None:
        total, rest = divmod(section.records, emitting)
        if rest:
            at.wrong(
                f"{section.records} records do not divide by {emitting} subtasks: write records-per-subtask", "records"
            )
    if total == 0:
        key_of_total = "records" if section.records is not None else "records-per-subtask"
        at.wrong("each subtask emits at least one record", key_of_total)
    rates = _rates(rate, shared, at.below(key), duration_ns)
    backlog = _backlog(section, emitting, total, at.below("backlog"))
    return build_model(Source, section, at, rates=rates, total=total, backlog=backlog)


def _backlog(section: doc.Source, parallelism: int, total: int | None, at: At) -> Backlog | None:
    if section.backlog is None:
        return None
    if section.backlog.records is None:
        if section.rate == "unlimited" or section.rate_per_subtask == "unlimited":
            at.wrong("records of an unlimited source are never overdue: write records, or a rate", "lag")
        return Backlog(lag_ns=section.backlog.lag)
    records = -(-section.backlog.records // parallelism)
    if total is not None and records > total:
        at.wrong(f"is {section.backlog.records}, more than the source emits: {total * parallelism}", "records")
    return Backlog(records)


def _rates(written: object, shared: int, at: At, duration_ns: int) -> Sequence[Rate]:
    """Return the rates of one subtask, an equal part of the vertex's; empty if unlimited."""
    if isinstance(written, Fraction):
        return (Rate(0, written / shared),)
    if isinstance(written, doc.Trace):
        at.reading.reads_files = True
        try:
            rates = rates_of_trace(written, at.folder, until_ns=duration_ns, subtasks=shared)
            if assumed := series_of(written, at.folder).assumed:
                at.warn(f"{written.trace}: {assumed}", "trace")
            return rates
        except TraceError as error:
            at.wrong(str(error), "trace")
    if isinstance(written, list):
        steps: list[doc.Step] = written
        for i, step in enumerate(steps):
            if step.rate == "unlimited":
                at.wrong("a step cannot be unlimited: write a rate above what the job can serve", i, "rate")
            elif i and step.at <= steps[i - 1].at:
                at.wrong("is not after the step before it", i, "at")
        return tuple(Rate(step.at, step.rate / shared) for step in steps if isinstance(step.rate, Fraction))
    return ()


def _law(written: int | Law | None, default: Distribution, at: At) -> Distribution:
    distribution = law(written, default, at)
    if at.here[-1] == "record" and distribution.mean == 0:
        at.wrong("a record has at least 1 B")
    if at.here[-1] == "record" and written is not None and distribution.mean > LARGEST_RECORD_BYTES:
        at.wrong("a record of Flink has less than 2 GiB: its length is an int")
    return distribution
