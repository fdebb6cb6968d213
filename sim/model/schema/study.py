"""Load scenario files: axes, validation and building of each scenario."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, TypeVar

from sim.model.backtest import Backtest
from sim.model.catalog import At, attribute_of
from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import OLDEST_PROFILE, older_defaults, was_added_after
from sim.model.cluster import Cluster as ClusterModel
from sim.model.faults import Restart
from sim.model.job import Job
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.schema import document as doc
from sim.model.schema.axes import Axis, apply, find_axes, variants
from sim.model.schema.document import Cluster, build_actions, build_instances
from sim.model.schema.faults import Restart as RestartSection
from sim.model.schema.faults import build_faults, build_rescale, parallelisms
from sim.model.schema.flink_block import apply_flink
from sim.model.schema.flink_file import IS_CONFIGURATION, is_configuration
from sim.model.schema.history import build_backtest, build_residuals
from sim.model.schema.history_file import put_history
from sim.model.schema.job import Checkpoint
from sim.model.schema.job_builder import build_job, check_graph
from sim.model.schema.releases import summary, without_later_options
from sim.model.schema.sections import Options, build_model
from sim.model.schema.storage import Storage, build_storage
from sim.model.schema.text import (
    Problem,
    Reading,
    ScenarioError,
    cached_builder,
    compose_document,
    first_comment,
    read_text,
    value_at,
)
from sim.model.schema.trace import file_signature
from sim.model.schema.validation import check, validate
from sim.model.state import StateOptions
from sim.model.storage import Directories

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
    return build_model(model, section, At((here,), reading))


@cached_builder
def _build_checkpoint(section: Checkpoint, job: Job, profile: str, reading: Reading) -> CheckpointOptions:
    at = At(("checkpoint",), reading, job=job, profile=profile)
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
        faults=build_faults(document.faults or (), parallelisms(job, rescale), sinks, cluster, reading, folder),
        restart=_built(Restart, document.restart, "restart", reading),
        rescale=rescale,
        instances=build_instances(
            document.instances,
            reading,
            savepoints=bool(document.actions),
            checkpoints=bool(document.checkpoint.interval),
            rescaled=bool(document.rescale),
            changelog=any(vertex.state is not None and vertex.state.changelog is not None for vertex in job.vertices),
        ),
        directories=_built(Directories, document.directories, "directories", reading),
        residuals=build_residuals(document.residuals, job.vertices, reading),
    )


def _with_version_defaults(document: doc.Document, reading: Reading) -> doc.Document:
    """Return the document without options that came later than its version of Flink, and with the defaults of that version."""
    cluster = document.cluster
    version = None if cluster is None else cluster.version or cluster.profile
    if version:
        document = without_later_options(document, version, reading)
    document = _with_default_restarts(document)
    differing = []
    for older in older_defaults(version or ""):
        section = getattr(document, older.section) or RestartSection()
        is_used = not older.of_strategy or section.strategy == older.of_strategy
        if is_used and getattr(section, attribute_of(older.key)) is None:
            section = section.model_copy(update={attribute_of(older.key): older.value})
            document = document.model_copy(update={older.section: section})
            if not older.of_strategy:
                differing.append(f"{older.section}.{older.key} is {older.value} ({older.why})")
    if cluster is not None and was_added_after(OLDEST_PROFILE, cluster.version or ""):
        but = f", but for {' and '.join(differing)}" if differing else ""
        without = (
            f"{', and' if but else ','} without what came later: {lacking}"
            if (lacking := summary(cluster.version))
            else ""
        )
        told = f"{cluster.version} is simulated as {OLDEST_PROFILE}, the oldest modelled{but}{without}"
        reading.warn(("cluster", "version"), told)
    return document


def _with_default_restarts(document: doc.Document) -> doc.Document:
    """Return the document with the restart strategy of a job without checkpoints, if it writes none: it is not restarted.

    Flink: RestartBackoffTimeStrategyFactoryLoader.
    """
    section = document.restart or RestartSection()
    if document.checkpoint.interval or section.strategy is not None:
        return document
    return document.model_copy(update={"restart": section.model_copy(update={"strategy": "none"})})


# ---- Options that decide in many jobs.  A file that leaves them out is told so (`sim.model.schema.option_values`).

INFLUENTIAL_OPTIONS_FILE = FilePath(__file__).with_name("defaults.csv")
OFTEN_DECIDING_SHARE, MIN_DECIDED_FILES = 0.15, 5
"""An option is named if it decides in a larger share of the files that leave it out, and so many do."""
_UNLIKE_FLINK = ("job.VERTEX.state.changelog.storage", "restart.attempts")
"""Options whose default is not that of Flink (docs/protocols.md, "The changelog")."""


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
    return (*often, *_UNLIKE_FLINK)


def _left_out(plain: Any) -> tuple[str, ...]:
    """Return the influential options that a document leaves out, at one of the vertices with such a section or altogether."""
    sections = [plain, *({"job": {"VERTEX": vertex}} for vertex in plain["job"].values())]

    def is_left_out(*section: str, key: str) -> bool:
        holders = [holder for part in sections if (holder := value_at(part, section)) not in (None, False, "off")]
        return not holders or any(value_at(holder, (key,)) is None for holder in holders)

    return tuple(
        option
        for option in influential_options()
        if is_left_out(*option.split(".")[:-1], key=option.rpartition(".")[2])
    )


# ---- The steps from the text of a scenario file to its scenarios.


@dataclass(frozen=True, slots=True)
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
