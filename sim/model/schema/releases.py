"""Options and barrier modes that a release of Flink does not have yet, as `Flink.since` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from sim.model.catalog import attribute_of
from sim.model.checkpoint import BARRIERS, BarrierKind
from sim.model.cluster import OLDEST_PROFILE, older_defaults, version_span, was_added_after
from sim.model.faults import RESTARTS, RestartKind
from sim.model.schema.document import Action, Document
from sim.model.schema.flink_keys import document_options
from sim.model.schema.sections import REBUILDS
from sim.model.schema.text import DocumentPath, Reading

_BARRIERS = ("checkpoint", "barriers")
_INTERVAL_DURING_BACKLOG = ("checkpoint", "interval-during-backlog")
_CATALOGS: Mapping[tuple[str, ...], Mapping[str, BarrierKind | RestartKind]] = {
    _BARRIERS: BARRIERS,
    ("restart", "strategy"): RESTARTS,
}
"""Options whose values came one after the other."""


def later_options(version: str) -> Mapping[tuple[str, ...], str]:
    """Return {path of an option that a version of Flink lacks, with VERTEX for every vertex: the release that brought it}."""
    return _later_options(version, REBUILDS[0])


@lru_cache(maxsize=16)
def _later_options(version: str, rebuilds: int) -> dict[tuple[str, ...], str]:  # other options after each of them
    found = {}
    for key in document_options():
        releases = [] if key.record is None else [flink.since for flink in key.record.flink]
        if releases and all(was_added_after(since, version) for since in releases) and key.path != _BARRIERS:
            found[key.path] = min(releases, key=version_span)
    return found


def since(path: DocumentPath, value: Any, version: str) -> str:
    """Return the release that brought an option, or this value of it, if a version of Flink lacks it; else "", also if `value` is off."""
    if value in (None, False, "off", "false"):
        return ""
    if (catalog := _CATALOGS.get(tuple(map(str, path)))) is not None:
        release = catalog[value if isinstance(value, str) else next(iter(value))].since
        return release if was_added_after(release, version) else ""
    general = ("job", "VERTEX", *map(str, path[2:])) if path[0] == "job" else tuple(map(str, path))
    later = later_options(version)
    # a detail of an option came with it
    return next((later[general[:n]] for n in range(len(general), 0, -1) if general[:n] in later), "")


def without_later_options(document: Document, version: str, reading: Reading) -> Document:
    """Return the document without options that a version of Flink lacks; Flink ignores them, and a warning names each of them."""
    for path in _written(document, later_options(version)):
        reading.warn(path, f"has no effect with Flink {version}: it came with {since(path, True, version)}")
        document = _with(document, path, None)
    restart = document.restart
    if restart is not None and restart.strategy == "exponential-delay" and was_added_after("1.19", version):
        if restart.attempts is not None:
            reading.warn(
                ("restart", "attempts"), f"has no effect on exponential-delay with Flink {version}: it came with 1.19"
            )
            document = _with(document, ("restart", "attempts"), None)
    if was_added_after("1.15", version):
        document = document.model_copy(update={"actions": [*_canonical(document.actions or (), version, reading)]})
    written: Any = document.checkpoint.barriers or "aligned"
    name = written if isinstance(written, str) else _mode(written)
    if release := since(_BARRIERS, name, version):
        instead = next(kind for kind in ("unaligned", "aligned") if not since(_BARRIERS, kind, version))
        instead = instead if BARRIERS[name].has_deadline else "aligned"
        reading.warn(_BARRIERS, f"{name} came with {release}: with Flink {version} barriers are {instead}")
        document = _with(document, _BARRIERS, instead)
    return document


def _canonical(actions: Sequence[Action], version: str, reading: Reading) -> Iterator[Action]:
    """Yield the actions with canonical savepoints, the only ones before 1.15 (FLIP-203); a warning names each other one."""
    for i, action in enumerate(actions):
        for key in ("savepoint", "format"):
            if getattr(action, key) == "native":
                reading.warn(
                    ("actions", i, key), f"native came with 1.15: with Flink {version} savepoints are canonical"
                )
                action = action.model_copy(update={key: "canonical"})
        yield action


def summary(version: str) -> str:
    """Return what a version lacks of the oldest profile, e.g. ``cluster.network.debloat (1.14)``."""
    otherwise = {(older.section, older.key) for older in older_defaults(version)}
    found: dict[tuple[str, ...], str] = {
        (*_BARRIERS, name): kind.since for name, kind in BARRIERS.items() if was_added_after(kind.since, version)
    }
    found |= later_options(version)
    return ", ".join(
        f"{'.'.join(path).replace('checkpoint.barriers.', 'checkpoint.barriers: ')} ({release})"
        for path, release in found.items()
        if not was_added_after(release, OLDEST_PROFILE) and path not in otherwise
    )


def _mode(written: BaseModel) -> str:
    """Return the name of the barrier mode in ``{aligned-timeout: 1 s}``."""
    return next(name for name in BARRIERS if getattr(written, attribute_of(name), None) is not None)


def _written(document: Document, paths: Mapping[tuple[str, ...], str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths at which a document writes one of these options, and not that it is off, unless off is not its default."""
    for path in paths:
        vertices = document.job if "VERTEX" in path else [""]
        for vertex in vertices:
            own = tuple(vertex if step == "VERTEX" else step for step in path)
            if _at(document, own) not in ((None,) if path == _INTERVAL_DURING_BACKLOG else (None, False, 0)):
                yield own


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else getattr(node, attribute_of(step), None)
    return node


def _with(node: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of a section with another value at a path."""
    if not path:
        return value
    step, *rest = path
    inner = _with(_at(node, (step,)), tuple(rest), value)
    return {**node, step: inner} if isinstance(node, dict) else node.model_copy(update={attribute_of(step): inner})
