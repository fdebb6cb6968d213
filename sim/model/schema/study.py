"""Load scenario files: axes, validation and building of each scenario."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, product
from math import prod
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import OLDEST_PROFILE, was_added_after
from sim.model.cluster import Cluster as ClusterModel
from sim.model.faults import Restart
from sim.model.frozen import frozen
from sim.model.job import Job
from sim.model.options import ValidationContext
from sim.model.scenario import Backtest, Overheads, Run, Scenario
from sim.model.schema import document as doc
from sim.model.schema.document import (
    Cluster,
    Storage,
    build_actions,
    build_checkpoint_updates,
    build_instances,
    build_storage,
    check,
    validate,
)
from sim.model.schema.faults import Restart as RestartSection
from sim.model.schema.faults import build_faults, build_rescale, parallelisms
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.flink_file import IS_CONFIGURATION, is_configuration
from sim.model.schema.flink_keys import without_later_options
from sim.model.schema.history_file import build_backtest, build_residuals, put_history
from sim.model.schema.job import Checkpoint, build_job, check_graph
from sim.model.schema.sections import AxisValues, Options, build_model
from sim.model.schema.text import (
    DocumentPath,
    Mapping,
    Mark,
    Problem,
    Reading,
    ScenarioError,
    cached_builder,
    compose,
    compose_document,
    copy_node,
    dotted,
    first_comment,
    read_text,
    value_at,
)
from sim.model.schema.trace import file_signature
from sim.model.state import StateOptions
from sim.model.storage import Directories
from sim.model.text import did_you_mean
from sim.model.units import SECOND

# ---- Axes of a study (a list where a value is expected), and overrides of single keys.

# ---- Sweep axes: lists where one value is expected.  Axes are independent; their product is the study.

MAX_CELLS = 20_000
"""Maximum combinations of a study."""
MAX_RUNS = 200_000
"""Maximum runs of a study, over all combinations and replications."""


@frozen
class Axis:
    """An axis: a list in the document where one value is expected."""

    path: DocumentPath
    name: str  # the dotted path, e.g. ``checkpoint.barriers``
    values: tuple[str, ...]


def find_axes(document: doc.Document, plain: Any, reading: Reading) -> tuple[Axis, ...]:
    """Return the axes of a study in the order of the file.  Errors, e.g. too many combinations, are reported to `reading`.

    `document`: the parsed scenario.  `plain`: its plain values, from which the labels of the values are taken.
    """
    axes_found = []
    sections = ((key_of_field(document, name), value) for name, value in document.__dict__.items() if value is not None)
    for path, values in chain.from_iterable(_axes_of(value, (key,), reading) for key, value in sections):
        axes_found.append(Axis(path, dotted(path), tuple(_label(value) for value in value_at(plain, path))))
        for inner, _ in _lists_below(list(values), path):
            reading.wrong(
                inner, f"is a list within a value of the axis {dotted(path)}: write that value once for each of them"
            )
    axes_found.sort(key=lambda axis: _position(plain, axis.path))
    if (cells := prod(len(axis.values) for axis in axes_found)) > MAX_CELLS:
        axes = ", ".join(f"{axis.name} ({len(axis.values)})" for axis in axes_found)
        reading.wrong((), f"lists {cells} combinations, at most {MAX_CELLS} are allowed: {axes}")
    elif (runs := cells * (replications := document.run.replications or 1)) > MAX_RUNS:
        request = f"asks for {runs} runs (combinations: {cells}, replications: {replications}), at most {MAX_RUNS} are allowed"
        reading.wrong(
            ("run", "replications"), f"{request}; a hundred replications tell a mean to a tenth of the spread"
        )
    return tuple(axes_found)


@cached_builder
def _axes_of(section: Any, path: DocumentPath, reading: Reading) -> list[tuple[DocumentPath, AxisValues]]:
    """Return (path, values) of each axis in a section.  Cached for sections that did not change."""
    return list(_lists_below(section, path))


def key_of_field(section: BaseModel, name: str) -> str:
    """Return the key of a scenario for a field."""
    return type(section).model_fields[name].alias or name


def variants(plain: Mapping, axes: tuple[Axis, ...]) -> Iterator[tuple[Mapping, tuple[tuple[str, str], ...]]]:
    """Yield (document without axes, chosen values) of each combination; the last axis varies fastest."""
    for chosen in product(*(range(len(axis.values)) for axis in axes)):
        concrete = copy_node(plain)
        for axis, index in zip(axes, chosen, strict=True):
            _put(concrete, axis.path, value_at(plain, axis.path)[index], Reading(""))
        yield concrete, tuple((axis.name, axis.values[index]) for axis, index in zip(axes, chosen, strict=True))


def _lists_below(node: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, AxisValues]]:
    """Yield (path, values) of each axis, without lists inside the values of another axis."""
    if isinstance(node, AxisValues):
        yield path, node
    elif isinstance(node, BaseModel):
        for name, value in node.__dict__.items():
            if value is not None:  # most keys are not set, and skipping them is fast
                yield from _lists_below(value, (*path, key_of_field(node, name)))
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _lists_below(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _lists_below(value, (*path, i))


def _position(plain: Any, path: DocumentPath) -> tuple[int, ...]:
    """Return the position of a path in the file: indices among the keys of each mapping and in each list."""
    position: tuple[int, ...] = ()
    for step in path:
        position = (*position, step if isinstance(step, int) else list(plain).index(step))
        plain = plain[step]
    return position


def _label(value: Any) -> str:
    """Return a value as text: ``5 s``, ``aligned-timeout 5 s``, ``lognormal mean 1 ms, cv 2``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_label(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(map(_label, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- Overrides ``key.path=value`` from the command line, applied before validation; values in YAML syntax.

_STEP = re.compile(r'"([^"]+)"|([^.="]+)')
MAX_VALUES_KEPT = 256
"""Maximum cached copies of a section with another value, which the combinations of a sweep share."""
_VERBATIM = ("flink", "expect")
"""Sections whose keys contain dots: the rest of the path is one key."""


def key_of(path: DocumentPath) -> str:
    """Return a path as the key of an override: ``("job", "my.sink", "state")`` -> ``job."my.sink".state``."""
    return ".".join(f'"{step}"' if re.search(r'[."=\s]', str(step)) else str(step) for step in path)


def apply(plain: Any, overrides: Sequence[str], reading: Reading) -> Any:
    """Apply overrides such as ``checkpoint.interval=30 s`` to the top level of `plain`, and return it.

    Sections are copied before they are changed.  Errors, warnings and the positions of new values are added to `reading`.
    """
    for override in overrides:
        path, text = _split(override)
        section = plain.get(str(path[0])) if path and isinstance(plain, Mapping) else None
        parsed = section.read if isinstance(section, Mapping) else {}
        if override not in parsed:
            source = Reading(f"--set {override}")
            _apply(plain, path, text, source)
            if len(parsed) >= MAX_VALUES_KEPT:
                parsed.clear()
            parsed[override] = (
                source,
                plain[str(path[0])] if not source.problems and isinstance(plain, Mapping) else section,
            )
        source, section = parsed[override]
        if section is not None:
            plain[str(path[0])] = section
        reading.problems.update(source.problems)
        reading.warnings.update(source.warnings)
        reading.marks.update({at: Mark(source.file, 1, mark.column) for at, mark in source.marks.items() if at})
    return plain


def _apply(plain: Any, path: DocumentPath, text: str, source: Reading) -> None:
    """Apply one override.  Errors, warnings and positions are added to `source`."""
    source.marks[path] = Mark(source.file, 1, 1)
    if not path:
        source.wrong((), "expected key.path=value, e.g. --set checkpoint.interval='30 s'")
    elif isinstance(plain, Mapping):
        value = compose(text, source, path)
        if value is None and not source.problems:
            source.wrong(path, "has no value: write one after the =")
        if not source.problems:
            _put(plain, path, value, source)


def path_of(key: str) -> DocumentPath:
    """Return the path that the key of an override refers to."""
    return _split(f"{key}=")[0]


@lru_cache(1024)
def _split(override: str) -> tuple[DocumentPath, str]:
    """Split an override: ``a."b.c".d=text`` -> (("a", "b.c", "d"), "text").  Returns ((), "") if it is invalid."""
    path: list[str] = []
    at = 0
    while match := _STEP.match(override, at):
        path.append((match[1] or match[2]).strip())
        at = match.end()
        if path[0] in _VERBATIM and len(path) == 1 and override[at : at + 1] == ".":
            key, equals, text = override[at + 1 :].partition("=")
            return ((path[0], key.strip().strip('"')), text) if equals and key else ((), "")
        if override[at : at + 1] != ".":
            break
        at += 1
    return (tuple(path), override[at + 1 :]) if path and override[at : at + 1] == "=" else ((), "")


def _put(plain: Mapping, path: DocumentPath, value: Any, source: Reading) -> None:
    """Replace or add one value.  Sections on its path are copied first, and missing ones are added, except vertices.

    Errors and warnings are added to `source`.
    """
    node: Any = plain
    for depth, step in enumerate(path):
        is_item = isinstance(node, list) and str(step).isdigit() and int(step) < len(node)
        key: Any = int(step) if is_item else str(step)
        if not is_item and not isinstance(node, Mapping):
            source.wrong(path, f"there is no mapping at {'.'.join(map(str, path[:depth]))} to set '{step}' in")
            return
        if depth == len(path) - 1:
            if not is_item:
                _warn_of_dropped_keys(node.get(key), path, value, source)
            node[key] = value
            return
        if not is_item and key not in node:
            if path[0] == "job" and depth == 1:
                source.wrong(path, f"there is no vertex '{step}'{did_you_mean(key, node)}")
                return
            node[key] = Mapping().at(path[: depth + 1])
        node[key] = node = copy_node(node[key])


def _warn_of_dropped_keys(before: Any, path: DocumentPath, value: Any, source: Reading) -> None:
    """Warn of keys that are dropped because a mapping replaces a section.

    An empty mapping clears the section on purpose and causes no warning.  `before`: the section that is replaced.
    """
    if (
        isinstance(before, Mapping)
        and isinstance(value, Mapping)
        and value
        and (dropped := [key for key in before if key not in value])
    ):
        listed, one = ", ".join(f"{key}: {before[key]}" for key in dropped), key_of(path)
        source.warn(
            path,
            f"replaces the whole section and drops {{{listed}}}; to keep it, set single keys: --set {one}.KEY=VALUE",
        )


# ---- Build and validate the immutable Scenario of one run.
#
# Each section has a builder, which applies Flink's defaults.

T = TypeVar("T")


@cache
def _empty(section: type[T]) -> T:
    """Return an empty section, always the same object, so that builders with `cached_builder` recognize it."""
    return section()


@cached_builder
def _built(model: type[T], section: Options | None, here: str, reading: Reading) -> T:
    return build_model(model, section, ValidationContext((here,), reading))


@cached_builder
def _build_checkpoint(section: Checkpoint, job: Job, profile: str, reading: Reading) -> CheckpointOptions:
    at = ValidationContext(("checkpoint",), reading, job=job, profile=profile)
    return build_model(CheckpointOptions, section, at, state=build_model(StateOptions, section, at))


def build(
    document: doc.Document,
    reading: Reading,
    folder: FilePath,
    *,
    question: str,
    name: str,
    axes: tuple[tuple[str, str], ...],
    left_out: tuple[str, ...],
) -> Scenario:
    """Build the scenario of one run.  The caller must check `reading.problems` before using it."""
    expect = [
        (metric, condition)
        for metric, conditions in (document.expect or {}).items()
        for condition in (conditions if isinstance(conditions, list) else [conditions])
    ]
    document = _with_version_defaults(document, reading)
    check(document, reading)
    job = build_job(document.job, reading, folder, duration_ns=document.run.duration)
    cluster = _built(ClusterModel, document.cluster or _empty(Cluster), "cluster", reading)
    sinks = [vertex.name for vertex in job.vertices if vertex.commit is not None]
    rescale = build_rescale(document.rescale, job, reading)
    return Scenario(
        question=question,
        name=name,
        axes=axes,
        written_keys=tuple(sorted(reading.written_keys.items())),
        left_out=left_out,
        expect=tuple(expect),
        job=job,
        cluster=cluster,
        checkpoint=_build_checkpoint(document.checkpoint, job, cluster.profile, reading),
        run=_built(Run, document.run, "run", reading),
        storage=build_storage(document.storage or _empty(Storage), reading, folder),
        overheads=_built(Overheads, document.overheads, "overheads", reading),
        actions=build_actions(document.actions or (), reading),
        checkpoint_updates=build_checkpoint_updates(document, reading),
        faults=build_faults(document.faults or (), parallelisms(job, rescale), sinks, cluster, reading, folder),
        restart=_built(Restart, document.restart, "restart", reading),
        rescale=rescale,
        instances=build_instances(
            document.instances,
            reading,
            savepoints=any(action.checkpoint is None for action in document.actions or ()),
            checkpoints=bool(document.checkpoint.interval),
            rescaled=bool(document.rescale),
            changelog=any(vertex.state is not None and vertex.state.changelog is not None for vertex in job.vertices),
        ),
        directories=_built(Directories, document.directories, "directories", reading),
        residuals=build_residuals(document.residuals, job.vertices, reading),
    )


def _with_version_defaults(document: doc.Document, reading: Reading) -> doc.Document:
    """Return the document without options that came later than its version of Flink, and with the restarts of that version.

    A job without checkpoints is not restarted (RestartBackoffTimeStrategyFactoryLoader).  Before 1.19 the default is
    fixed-delay (FLINK-33738), and delays of exponential-delay grow faster (FLINK-33736).
    """
    cluster = document.cluster
    version = "" if cluster is None else cluster.version or cluster.profile or ""
    if version:
        document = without_later_options(document, version, reading)
    if was_added_after(OLDEST_PROFILE, version):
        but = ""
        if document.checkpoint.finish is None:
            but = ", but for checkpoint.finish is off (checkpoints after tasks finished, FLIP-147, are on since 1.15)"
            document = document.model_copy(
                update={"checkpoint": document.checkpoint.model_copy(update={"finish": "off"})}
            )
        reading.warn(("cluster", "version"), f"{version} is simulated as {OLDEST_PROFILE}, the oldest modelled{but}")
    restart, usual = document.restart or RestartSection(), dict[str, Any]()
    if not document.checkpoint.interval:
        usual["strategy"] = "none"
    elif was_added_after("1.19", version):
        usual["strategy"] = "fixed-delay"
    if was_added_after("1.19", version) and restart.strategy == "exponential-delay":
        usual |= {"multiplier": 2, "max": 300 * SECOND}
    missing = {key: value for key, value in usual.items() if getattr(restart, key) is None}
    return document.model_copy(update={"restart": restart.model_copy(update=missing)}) if missing else document


# ---- Options with a large effect in many jobs.  If a file does not set them, a note names them (`sim.model.schema.option_values`).

INFLUENTIAL_OPTIONS_FILE = FilePath(__file__).with_name("defaults.csv")
OFTEN_DECIDING_SHARE, MIN_DECIDED_FILES = 0.15, 5
"""An option is named if it matters in a larger share of the files that do not set it, and enough of them exist."""
_OPTIMISTIC = ("job.VERTEX.state.changelog.storage", "restart.attempts", "restart.replacement")
"""Options whose default is not that of Flink (docs/protocols.md, "The changelog"), or that few clusters have: spare TaskManagers."""


@cache
def influential_options() -> tuple[str, ...]:
    """Return the dotted names of options that decide often, the most frequent first."""
    with INFLUENTIAL_OPTIONS_FILE.open(encoding="utf-8", newline="") as file:
        shares = {
            row["option"]: int(row["decides"]) / int(row["files"])
            for row in csv.DictReader(file)
            if int(row["files"]) >= MIN_DECIDED_FILES
        }
    often = sorted((option for option in shares if shares[option] > OFTEN_DECIDING_SHARE), key=lambda it: -shares[it])
    return (*often, *_OPTIMISTIC)


def _left_out(plain: Any) -> tuple[str, ...]:
    """Return the influential options that a document leaves out, at one of the vertices with such a section or altogether."""
    sections = [plain, *({"job": {"VERTEX": vertex}} for vertex in plain["job"].values())]

    def is_left_out(*section: str, key: str) -> bool:
        holders = [holder for part in sections if (holder := value_at(part, section)) not in (None, False, "off")]
        return not holders or any(value_at(holder, (key,)) is None for holder in holders)

    # without a strategy Flink has one with attempts without end, which is simulated
    has_strategy = value_at(plain, ("restart", "strategy")) is not None
    return tuple(
        option
        for option in influential_options()
        if is_left_out(*option.split(".")[:-1], key=option.rpartition(".")[2])
        and (has_strategy or option != "restart.attempts")
    )


# ---- The steps from the text of a scenario file to its scenarios.


@frozen
class ScenarioFile:
    """A scenario file: a question, and a scenario for each combination of its axes."""

    name: str
    question: str
    scenarios: tuple[Scenario, ...]
    axes: tuple[Axis, ...] = ()
    warnings: tuple[Problem, ...] = ()
    backtest: Backtest | None = None  # of the file without overrides


def load(path: str | PathLike[str], overrides: Sequence[str] = ()) -> ScenarioFile:
    """Read a scenario file; `overrides` are ``key.path=value``.  Raises `ScenarioError` with all errors."""
    file = FilePath(path)
    return _load_study(read_text(file), str(file), file.name.removesuffix(file.suffix), file.parent, overrides)


def loads(
    text: str,
    name: str = "scenario",
    *,
    overrides: Sequence[str] = (),
    folder: str | PathLike[str] = ".",
    file: str | None = None,
) -> ScenarioFile:
    """Read a scenario from text.  Traces are read from `folder`; errors and warnings refer to `file`, or else to `name`."""
    return _load_study(text, file or name, name, FilePath(folder), overrides)


def _load_study(text: str, file: str, name: str, folder: FilePath, overrides: Sequence[str]) -> ScenarioFile:
    reading = Reading(file)
    plain = compose_document(text, reading)
    if plain is None:
        reading.stop_if_wrong()
    if is_configuration(plain):
        raise ScenarioError.of(file, IS_CONFIGURATION)
    plain = apply(plain, overrides, reading)
    apply_flink(plain, reading, folder)
    put_history(plain, reading, folder)
    document = validate(plain, reading)
    check_graph(plain, reading)
    axes = find_axes(document, plain, reading) if document is not None else ()
    reading.stop_if_wrong()
    section = None if document is None else document.backtest
    backtest = None if section is None else build_backtest(section, reading)
    question = first_comment(text)
    scenarios: list[Scenario] = []
    for concrete, chosen in variants(plain, axes):
        if (variant := validate(concrete, reading) if axes else document) is not None:
            left_out = _left_out(concrete)
            scenarios.append(
                build(variant, reading, folder, question=question, name=name, axes=chosen, left_out=left_out)
            )
    reading.stop_if_wrong()
    if backtest is not None:
        stamp = file_signature(folder / plain["history"]) if "history" in plain else None
        imported = _imported_scenario(text, file, name, folder, stamp) if overrides else scenarios[0]
        backtest = replace(backtest, imported=imported)
    return ScenarioFile(name, question, tuple(scenarios), axes, tuple(sorted(reading.warnings)), backtest)


@lru_cache(maxsize=4)
def _imported_scenario(
    text: str,
    file: str,
    name: str,
    folder: FilePath,
    stamp: tuple[int, int] | None,
) -> Scenario | None:
    """Return the first scenario of a file without overrides, or None if it is invalid without them."""
    try:
        return _load_study(text, file, name, folder, ()).scenarios[0]
    except ScenarioError:
        return None
