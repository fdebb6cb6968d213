"""A document without axes -> the frozen model of one run, and every check that needs values.

Each section has a builder of its own in its folder; they fill in what Flink would.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from sim.model.directories import Directories
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.versions import OLDEST_PROFILE, older_defaults, version_span
from sim.scenario import document as doc
from sim.scenario.actions import build_actions
from sim.scenario.checkpoint.builder import build_checkpoint
from sim.scenario.cluster import Cluster, build_cluster
from sim.scenario.environment import chosen
from sim.scenario.faults.builder import build_faults, build_rescale, build_restart, parallelisms
from sim.scenario.faults.document import Restart
from sim.scenario.grammar.options import attribute_of, built
from sim.scenario.history.residuals import build_residuals
from sim.scenario.instances import build_instances
from sim.scenario.job.builder import build_job
from sim.scenario.plausible import check
from sim.scenario.storage.builder import build_storage
from sim.scenario.storage.document import Storage
from sim.scenario.text.problems import Reading
from sim.units import format_duration


def build(
    document: doc.Document,
    reading: Reading,
    folder: FilePath,
    *,
    question: str,
    name: str,
    axes: tuple[tuple[str, str], ...],
) -> Scenario:
    """The scenario; mistakes go to `reading`, and the caller looks there before using it."""
    expect = [
        (metric, condition)
        for metric, given in (document.expect or {}).items()
        for condition in (given if isinstance(given, list) else [given])
    ]
    document = _as_of_version(document, reading)
    check(document, reading)
    job = build_job(document.job, reading, folder, duration_ns=document.run.duration)
    cluster = build_cluster(document.cluster or Cluster(), reading)
    sinks = [vertex.name for vertex in job.vertices if vertex.commit is not None]
    rescale = build_rescale(document.rescale, job, reading)
    return Scenario(
        question=question,
        name=name,
        axes=axes,
        written_keys=tuple(sorted(reading.written_keys.items())),
        expect=tuple(expect),
        job=job,
        cluster=cluster,
        checkpoint=build_checkpoint(document.checkpoint, document.job, reading, profile=cluster.profile),
        run=_run(document.run, reading),
        storage=build_storage(document.storage or Storage(), reading, folder),
        overheads=built(Overheads, document.overheads, ("overheads",), reading, chosen(document.environment, reading, folder)),
        actions=build_actions(document.actions or (), reading),
        faults=build_faults(document.faults or (), parallelisms(job, rescale), sinks, cluster, reading, folder),
        restart=build_restart(document.restart, reading),
        rescale=rescale,
        instances=build_instances(
            document.instances,
            reading,
            savepoints=bool(document.actions),
            checkpoints=bool(document.checkpoint.interval),
            rescaled=bool(document.rescale),
            changelog=any(vertex.state is not None and vertex.state.changelog is not None for vertex in job.vertices),
        ),
        directories=built(Directories, document.directories, ("directories",), reading),
        residuals=build_residuals(document.residuals, job.vertices, reading),
    )


def _as_of_version(document: doc.Document, reading: Reading) -> doc.Document:
    """The document with the defaults of a Flink that is older than the oldest profile; what is written stays."""
    version = document.cluster.version if document.cluster is not None else None
    if version is None or version_span(version).high > version_span(OLDEST_PROFILE).low:
        return document
    differing = []
    for older in older_defaults(version):
        given = getattr(document, older.section) or Restart()
        if getattr(given, attribute_of(older.key)) is None:
            given = given.model_copy(update={attribute_of(older.key): older.value})
            document = document.model_copy(update={older.section: given})
            differing.append(f"{older.section}.{older.key} is {older.value} ({older.why})")
    but = f", but for {' and '.join(differing)}" if differing else ""
    reading.warn(("cluster", "version"), f"{version} is simulated as {OLDEST_PROFILE}, the oldest modelled{but}")
    return document


def _run(given: doc.Run, reading: Reading) -> Run:
    run = built(Run, given, ("run",), reading)
    if run.duration_ns == 0:
        reading.wrong(("run", "duration"), "is 0: nothing would happen")
    elif run.warmup_ns >= run.duration_ns:
        reading.wrong(("run", "warmup"), f"leaves nothing of the run: it must be shorter than {format_duration(run.duration_ns)}")
    return run
