"""`state:` and the keys about it in `checkpoint:` -> the model, with every check that needs values."""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.catalogs.backends import BACKENDS
from sim.model.state import Changelog, Lsm, State, StateOptions, Ttl
from sim.scenario.grammar.fields import either
from sim.scenario.grammar.options import Options, built
from sim.scenario.job.document import Vertex
from sim.scenario.state import document as doc
from sim.scenario.text.problems import DocumentPath, Reading


def build_state(given: doc.State | None, vertex: str, reading: Reading) -> State | None:
    """Mistakes go to `reading`."""
    if given is None:
        return None
    here: DocumentPath = ("job", vertex, "state")
    if given.value == 0:
        reading.wrong((*here, "value"), "an entry has at least 1 B")
    kind = BACKENDS[given.backend or next(iter(BACKENDS))]
    says_freeze = given.freeze is not None and (given.lsm is None or given.lsm.freeze is None)
    lsm = _without_freeze(given.lsm) if kind.keeps_files and says_freeze else given.lsm
    if given.lsm is not None and "lsm" not in kind.sections:
        reading.warn((*here, "lsm"), f"has no effect: only {_either('lsm')} has one")
    return built(
        State,
        given,
        here,
        reading,
        lsm=None if lsm is None else _lsm(lsm, (*here, "lsm"), reading),
        changelog=_changelog(given.changelog, (*here, "changelog"), reading),
        ttl=None if given.limit else _ttl(given, here, reading),
    )


def _without_freeze(given: doc.Lsm | None) -> doc.Lsm:
    """`freeze` of the state is all that its author knows of: the backend adds nothing."""
    return (given or doc.Lsm()).model_copy(update={"freeze": 0})


def build_state_options(given: Options, job: Mapping[str, Vertex], reading: Reading) -> StateOptions:
    """Mistakes go to `reading`."""
    backends = {vertex.state.backend for vertex in job.values() if vertex.state is not None}
    if given.incremental == "true" and not any(kind.keeps_files and name in backends for name, kind in BACKENDS.items()):
        kept = either([kind.name for kind in BACKENDS.values() if kind.keeps_files])
        reading.warn(("checkpoint", "incremental"), f"has no effect: no state is kept in {kept}, and the heap is always written in full")
    if given.savepoint_cpu == 1:
        reading.wrong(("checkpoint", "savepoint-cpu"), "leaves the task nothing to work with: write less than 100 %")
    return built(StateOptions, given, ("checkpoint",), reading)


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
    return built(Ttl, given, here, reading, after_ns=given.ttl)


def _lsm(given: doc.Lsm, here: DocumentPath, reading: Reading) -> Lsm:
    if given.multiplier == 1:
        reading.wrong((*here, "multiplier"), "is 1: a level must be larger than the one above it")
    return built(Lsm, given, here, reading)


def _changelog(given: doc.Changelog | str | None, here: DocumentPath, reading: Reading) -> Changelog | None:
    if isinstance(given, doc.Changelog):
        return built(Changelog, given, here, reading)
    return Changelog() if given in ("on", "true") else None
