"""Lookup of Flink's configuration keys: modelled, known but not modelled, unknown, or later than a release.

The modelled keys come from the options of a scenario (`Option.flink`).  `keys.txt` has all keys of several versions of
Flink, which `benchmarks.flink.option_keys` reads from Flink's jars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from sim.model.checkpoint import BARRIERS, BarrierKind
from sim.model.cluster import version_span, was_added_after
from sim.model.faults import RESTARTS, RestartKind
from sim.model.frozen import frozen
from sim.model.options import Flink, Option, attribute_of
from sim.model.schema.document import Document
from sim.model.schema.sections import SectionKey, cached_until_added, keys_of
from sim.model.schema.text import DocumentPath, Reading


@frozen
class FlinkKey:
    """A key of Flink, its option, and the path of that option in a scenario."""

    flink: Flink
    record: Option
    model: type  # the dataclass that has the option as a field
    path: tuple[str, ...]  # path of the option in a scenario; the step VERTEX means every vertex
    is_independent: bool  # whether its value is moved to `path` without regard to other keys

    @property
    def form(self) -> str:
        """Return the name of the form in which Flink writes the value, such as ``duration``, or "" for plain text."""
        return self.flink.form or ("" if self.record.leaf is None else self.record.leaf.flink)


@cached_until_added
def modelled_keys() -> dict[str, FlinkKey]:
    """Return the keys of Flink that options of a scenario model, by their names in the newest version."""
    return {
        flink.name: FlinkKey(flink, record, key.model, key.path, _is_independent(key.path, record, key.inside))
        for key in keys_of(Document)
        if (record := key.record) is not None
        for flink in record.flink
    }


@cached_until_added
def current_names() -> dict[str, str]:
    """Return {older name: name in the newest version} of the modelled keys."""
    return {older: name for name, key in modelled_keys().items() for older in key.flink.older}


def with_current_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with the current names of their keys.  Of several names of one key, the newest counts."""
    names = current_names()
    return {names.get(key, key): options[key] for key in sorted(options, key=lambda key: (key not in names, key))}


def _is_independent(path: tuple[str, ...], record: Option, inside: Option | None) -> bool:
    """Return whether the value of a key is moved to `path` without regard to other keys.

    This is False if the option has several keys or is not a single value, for `strategy` and `slots`, in optional
    sections, and for options of vertices.
    """
    in_optional_section = inside is not None and inside.default is None
    return (
        len(record.flink) == 1
        and record.leaf is not None
        and record.key not in ("strategy", "slots")
        and not ("VERTEX" in path or in_optional_section)
    )


def document_options() -> Iterator[SectionKey]:
    """Yield the keys of a scenario that are options, and not sections."""
    return (key for key in keys_of(Document) if key.record is not None)


INTERVAL = "execution.checkpointing.interval"
UNLIMITED = "2147483647"
"""Integer.MAX_VALUE, as Flink writes that attempts have no limit."""
NAMES_BESIDE = {
    "execution.state-recovery.claim-mode": {"execution.savepoint-restore-mode": "1.19"},
    "state.changelog.dstl.dfs.base-path": {"dstl.dfs.base-path": "1.19"},
}
"""Older names of keys that advice sets and no option is about -> last version before the present one."""
NEWEST = "2.3"
"""The version that the profile 2.x stands for."""
APPROXIMATE = (
    "execution.state-recovery.approximate-local-recovery",
    "execution.checkpointing.approximate-local-recovery",
)
"""Present and older name of the switch of approximate local recovery (FLIP-135)."""
NOT_STARTED = (
    "Flink 1.20 to 2.3 does not start a job with approximate local recovery, whatever its scheduler "
    "(DefaultSchedulerComponents, AdaptiveScheduler#assertPreconditions)"
)
OPEN = tuple(
    """
$internal. internal. spec. job.autoscaler. env. containerized. metrics. traces. events. kubernetes. external-resource. security. yarn.
flink. s3. s3a. s3n. s3: fs. presto. hive. hadoop. dfs. oss. gs. abfs. wasb. azure. gcs. log. logger. rootLogger. log4j appender. java. jvm.
pipeline.global-job-parameters. pipeline.default-kryo-serializers. pipeline.registered- python. restart-strategy.
high-availability. classloader. zookeeper. jmx. user. client. rest. web. historyserver. sql-client. sql-gateway. prometheus. openlineage.
""".split()  # noqa: SIM905  # words read better without quotes
)
"""Beginnings of keys that take names of users' own, or belong to other systems: what comes after them is in no list."""


@lru_cache(maxsize=1)
def listed_keys() -> dict[str, tuple[str, ...]]:
    """Return {key of Flink: versions that have it}, for the versions in `keys.txt`."""
    found: dict[str, tuple[str, ...]] = {}
    versions: tuple[str, ...] = ()
    for line in Path(__file__).with_name("keys.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            versions = tuple(line[1:-1].split())
        elif not line.startswith("#"):
            found[line] = versions
    return found


def has_key(profile: str, key: str) -> bool:
    """Return whether Flink of a profile reads a key.

    The result is True if it cannot be known: for keys that are not in `keys.txt`, such as those of file systems, and if
    `profile` is the text of a list of profiles.
    """
    return (NEWEST if profile == "2.x" else profile) in listed_keys().get(key, (profile, NEWEST)) or profile.startswith(
        "["
    )


def is_flink_key(key: str) -> bool:
    """Return whether a key belongs to Flink, its Kubernetes operator, a file system or a metric reporter.

    The result is also True for a probable misspelling of a modelled key.
    """
    return key in listed_keys() or key.startswith(OPEN) or bool(similar_key(key, modelled=True))


@lru_cache(maxsize=1024)
def similar_key(key: str, *, modelled: bool) -> str:
    """Return the most similar key, or "" if none is similar enough.

    With `modelled`, only modelled keys are compared, and only a probable misspelling is similar enough.  Otherwise all
    keys of Flink are compared, with a lower threshold, unless words were added at the end of one.
    """
    names = [*modelled_keys(), *current_names(), *(() if modelled else listed_keys())]
    if not modelled and (shorter := [name for name in names if key.startswith(f"{name}-")]):
        return str(max(shorter, key=len))
    return next(iter(get_close_matches(key, names, n=1, cutoff=0.92 if modelled else 0.6)), "")


def about_key(key: str) -> str:
    """Return a text on what a key of Flink sets in a scenario, or why it has no effect."""
    if (modelled := modelled_keys().get(current_names().get(key, key))) is not None:
        return f"sets {'.'.join(modelled.path)}"
    if key in APPROXIMATE:
        return NOT_STARTED
    if key in listed_keys():
        return f"not modelled, no effect here (a key of Flink {', '.join(listed_keys()[key])})"
    return "not modelled, no effect here" if key.startswith(OPEN) else "not a key of Flink, no effect here"


# ---- Options and barrier modes that a release of Flink does not have yet, as `Flink.since` says.

_BARRIERS = ("checkpoint", "barriers")
_INTERVAL_DURING_BACKLOG = ("checkpoint", "interval-during-backlog")
_CATALOGS: Mapping[tuple[str, ...], Mapping[str, BarrierKind | RestartKind]] = {
    _BARRIERS: BARRIERS,
    ("restart", "strategy"): RESTARTS,
}
"""Options whose values were introduced one after the other."""


@cached_until_added
def options_missing_in_release(version: str) -> Mapping[tuple[str, ...], str]:
    """Return {path of an option that a version of Flink lacks, with VERTEX for every vertex: the release that brought it}."""
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
    later = options_missing_in_release(version)
    # a detail of an option came with it
    return next((later[general[:n]] for n in range(len(general), 0, -1) if general[:n] in later), "")


def without_later_options(document: Document, version: str, reading: Reading) -> Document:
    """Return the document without options that a version of Flink lacks; Flink ignores them, and a warning names each of them."""
    for path in _written_paths(document, options_missing_in_release(version)):
        reading.warn(path, f"has no effect with Flink {version}: it came with {since(path, True, version)}")
        document = _with_value(document, path, None)
    restart = document.restart
    if restart is not None and restart.strategy == "exponential-delay" and was_added_after("1.19", version):
        if restart.attempts is not None:
            reading.warn(
                ("restart", "attempts"), f"has no effect on exponential-delay with Flink {version}: it came with 1.19"
            )
            document = _with_value(document, ("restart", "attempts"), None)
    written: Any = document.checkpoint.barriers or "aligned"
    name = written if isinstance(written, str) else written.only_key[0]
    if release := since(_BARRIERS, name, version):
        instead = next(kind for kind in ("unaligned", "aligned") if not since(_BARRIERS, kind, version))
        instead = instead if BARRIERS[name].has_deadline else "aligned"
        reading.warn(_BARRIERS, f"{name} came with {release}: with Flink {version} barriers are {instead}")
        document = _with_value(document, _BARRIERS, instead)
    return document


def _written_paths(document: Document, paths: Mapping[tuple[str, ...], str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths at which a document writes one of these options, and not that it is off, unless off is not its default."""
    for path in paths:
        vertices = document.job if "VERTEX" in path else [""]
        for vertex in vertices:
            own = tuple(vertex if step == "VERTEX" else step for step in path)
            if _value_at(document, own) not in ((None,) if path == _INTERVAL_DURING_BACKLOG else (None, False, 0)):
                yield own


def _value_at(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else getattr(node, attribute_of(step), None)
    return node


def _with_value(node: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of a section with another value at a path."""
    if not path:
        return value
    step, *rest = path
    inner = _with_value(_value_at(node, (step,)), tuple(rest), value)
    return {**node, step: inner} if isinstance(node, dict) else node.model_copy(update={attribute_of(step): inner})
