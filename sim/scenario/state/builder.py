"""`state:` and the keys about it in `checkpoint:` -> the model, with every check that needs values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sim.model.catalogs.backends import BACKENDS
from sim.model.state import Changelog, Lsm, State, StateOptions, Ttl
from sim.scenario.grammar.fields import either
from sim.scenario.grammar.given import given_values, switch
from sim.scenario.job.document import Vertex
from sim.scenario.state import document as doc
from sim.scenario.text.problems import DocumentPath, Reading

__all__ = ["build_state", "build_state_options"]


def build_state(given: doc.State | None, vertex: str, reading: Reading) -> State | None:
    """Mistakes go to `reading`."""
    if given is None:
        return None
    here: DocumentPath = ("job", vertex, "state")
    if given.value == 0:
        reading.wrong((*here, "value"), "an entry has at least 1 B")
    kind = BACKENDS[given.backend or next(iter(BACKENDS))]
    if given.lsm is not None and "lsm" not in kind.sections:
        reading.warn((*here, "lsm"), f"has no effect: only {_either('lsm')} has one")
    if given.serialize is not None and "serialize" not in kind.sections:
        reading.warn((*here, "serialize"), f"has no effect: {kind.name} writes its files as they are")
    return given_values(
        State(given.size), backend=given.backend, value_bytes=given.value or None, update_share=given.update,
        lsm=None if given.lsm is None else _lsm(given.lsm, (*here, "lsm"), reading), sync_ns=given.freeze,
        changelog=_changelog(given.changelog, (*here, "changelog"), reading), serialize_bytes_per_second=given.serialize or None,
        growth_bytes=given.growth, limit_bytes=given.limit or None, ttl=None if given.limit else _ttl(given, here, reading),
    )  # fmt: skip


def build_state_options(given: doc.StateKeys, job: Mapping[str, Vertex], reading: Reading) -> StateOptions:
    """Mistakes go to `reading`."""
    backends = {vertex.state.backend for vertex in job.values() if vertex.state is not None}
    if given.incremental == "true" and not any(kind.keeps_files and name in backends for name, kind in BACKENDS.items()):
        kept = either([kind.name for kind in BACKENDS.values() if kind.keeps_files])
        reading.warn(("checkpoint", "incremental"), f"has no effect: no state is kept in {kept}, and the heap is always written in full")
    if given.savepoint_cpu == 1:
        reading.wrong(("checkpoint", "savepoint-cpu"), "leaves the task nothing to work with: write less than 100 %")
    options = given_values(
        StateOptions(), incremental=switch(given.incremental), transfer_threads=given.transfer_threads,
        savepoints_keep_base=switch(given.savepoint_keeps_base), savepoint_cpu=given.savepoint_cpu,
        local_recovery=switch(given.local_recovery), load_bytes_per_second=given.restore_rate or None,
    )  # fmt: skip
    return options if given.savepoint_rate is None else replace(options, savepoint_bytes_per_second=given.savepoint_rate or None)


def _either(section: str) -> str:
    return either([kind.name for kind in BACKENDS.values() if section in kind.sections])


def _ttl(given: doc.State, here: DocumentPath, reading: Reading) -> Ttl | None:
    kind = BACKENDS[given.backend or next(iter(BACKENDS))]
    for key in ("ttl-checks", "ttl-filter"):
        if getattr(given, key.replace("-", "_")) is None:
            continue
        if not given.ttl:
            reading.warn((*here, key), "has no effect: write ttl, how long after its last write a key leaves")
        elif key not in kind.sections:
            reading.warn((*here, key), f"has no effect: in {kind.name} expired keys leave when files are merged")
    if not given.ttl:
        return None
    return given_values(Ttl(given.ttl), checks=given.ttl_checks, filters_snapshots=switch(given.ttl_filter))


def _lsm(given: doc.Lsm, here: DocumentPath, reading: Reading) -> Lsm:
    sizes = {"memtable": given.memtable, "managed-memory": given.managed_memory, "base": given.base, "table": given.table}
    rates = {"flush": given.flush, "compaction": given.compaction}
    for key, value in (sizes | rates).items():
        if value == 0:
            reading.wrong((*here, key), "cannot be unlimited: write a rate" if key in rates else "must be more than 0")
    if given.multiplier == 1:
        reading.wrong((*here, "multiplier"), "is 1: a level must be larger than the one above it")
    return given_values(
        Lsm(), memtable_bytes=given.memtable, managed_bytes=given.managed_memory, level0_files=given.level0_files, base_bytes=given.base,
        multiplier=given.multiplier, table_bytes=given.table, flush_bytes_per_second=given.flush,
        compaction_bytes_per_second=given.compaction, compaction_thread=given.compaction_thread, link_ns=given.link, wait=given.wait,
    )  # fmt: skip


def _changelog(given: doc.Changelog | str | None, here: DocumentPath, reading: Reading) -> Changelog | None:
    if isinstance(given, str) or given is None:
        return Changelog() if given in ("on", "true") else None
    for key, value in (("materialize", given.materialize), ("threshold", given.threshold)):
        if value == 0:
            reading.wrong((*here, key), "must be more than 0")
    options = Changelog() if given.upload_timeout != 0 else Changelog(upload_timeout_ns=None)
    return given_values(
        options, materialize_ns=given.materialize, preemptive_bytes=given.threshold, batch_delay_ns=given.batch_delay,
        batch_bytes=given.batch_size, upload_threads=given.upload_threads, upload_timeout_ns=given.upload_timeout or None,
        upload_attempts=given.upload_attempts, reports_materialized=switch(given.reports_materialized),
    )  # fmt: skip
