"""`flush:` and `commit:` of a vertex -> the model; a global committer becomes a vertex of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sim.model.catalogs.sinks import SINKS
from sim.model.catalogs.sources import SOURCES
from sim.model.job import Distribution, Input, Snapshot, Vertex
from sim.model.sink import Commit, Flush, commit_of
from sim.scenario.grammar.fields import either
from sim.scenario.grammar.options import built
from sim.scenario.job import document as document_job
from sim.scenario.sink import document as doc
from sim.scenario.text.problems import DocumentPath, Reading


def build_flush(given: doc.Flush | None, here: DocumentPath, *, has_input: bool, reading: Reading) -> Flush | None:
    if given is None:
        return None
    if not has_input:
        reading.wrong(here, "a source writes no files: flush stands in a vertex with an input")
    if given.bytes is None and given.share is None:
        reading.wrong(here, "write bytes: (per subtask and snapshot), share: (of the bytes read), or both")
    return built(Flush, given, here, reading)


def build_commit(given: doc.Commit | str | None, connector: str, here: DocumentPath, *, has_input: bool, reading: Reading) -> Commit | None:
    """What is not written is as the connector has it."""
    if given is None or given == "none":
        return None
    kind = SINKS.get(connector)
    usual = Commit() if kind is None else commit_of(kind)
    if given == "as-connector" and kind is None:
        reading.wrong(here, "names no connector: write connector: beside it, or commit: two-phase")
    if usual is None:
        if given != "as-connector":
            reading.wrong(here, f"'{connector}' commits nothing, its output is visible at once: leave commit out, or write as-connector")
        return None
    if not has_input:
        reading.wrong(here, "a source commits nothing: commit stands in a vertex with an input")
    if isinstance(given, str):
        return usual
    if given.transaction_timeout == 0:
        reading.wrong((*here, "transaction-timeout"), "a timeout of 0 loses every transaction: write at least '1 ms'")
    commit = built(Commit, given, here, reading, usual)
    if commit.emits == "on-commit" and commit.committer == "global":
        reading.wrong((*here, "emits"), "a global committer is no part of the vertex: only a chained one lets records go")
    return commit


def build_connector(given: doc.Connector | str | None, here: DocumentPath, *, is_source: bool, reading: Reading) -> dict[str, str]:
    """The fields of a vertex about its connector."""
    name, version = (given.name, given.version) if isinstance(given, doc.Connector) else (given, None)
    if name is not None and (name in SOURCES) is not is_source:
        reading.wrong(here, f"'{name}' is {'written to' if is_source else 'read'}: expected {either([*(SOURCES if is_source else SINKS)])}")
    return {"connector": name or "", "connector_version": version or ""}


def build_staging(given: doc.Staging | None, job: Mapping[str, document_job.Vertex], reading: Reading) -> dict[str, object]:
    """The fields of the checkpoint options; a file that never fits would wait for ever."""
    if given is None:
        return {}
    for name, vertex in job.items():
        flush = vertex.flush
        if flush is not None and (flush.bytes or 0) > given.space * (flush.files or 1):
            reading.wrong(("checkpoint", "staging", "space"), f"is less than one file of {name}")
    return {"staging_bytes": given.space, "staging_full": given.when_full}


def with_committers(vertices: tuple[Vertex, ...], reading: Reading) -> tuple[Vertex, ...]:
    """The vertices, and behind each with a global committer that committer: it reads committables, which take no room."""
    names, committers = {vertex.name for vertex in vertices}, list[Vertex]()
    for vertex in vertices:
        if vertex.commit is None or vertex.commit.committer != "global":
            continue
        name = f"{vertex.name}: committer"
        if name in names:
            reading.wrong(("job", name), f"is the name of the global committer of {vertex.name}: choose another")
        behind = Input(vertex.name, "global", service=Distribution(0), record_bytes=Distribution(1))
        committers.append(replace(Vertex(name, inputs=(behind,), snapshot=Snapshot()), committer_of=vertex.name))
    return (*vertices, *committers)
