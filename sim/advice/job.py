"""Preparation of the job for trials, and the sweep file that repeats them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from sim.advice.horizon import AHEAD_NS, horizon, load_worlds
from sim.advice.trials import TASK_MANAGER, Bench, Failure, Trial, document_of
from sim.model.files import replace_text
from sim.model.scenario import Instances, Scenario
from sim.model.schema.history_file import write_scenario_and_history
from sim.model.schema.study import key_of, load
from sim.model.schema.text import Reading, ScenarioError, compose
from sim.studies.sweeps.design import Point

# ---- The job for trials. Actions, rescaling, and the end of bounded sources are removed from the scenario, because they are
# not part of a setting. The option `--load` replaces the rates of sources.

UNBOUNDED_RECORDS = 10**12
"""Number of records per subtask that makes a bounded source practically unbounded."""


def job_file(source: Path, text: str | None, folder: Path) -> Path:
    """Return the scenario file of the job.

    If the scenario was imported, `text` is not None: it is stored as job.yaml in the results folder, with its history.
    """
    if text is None:
        return source
    write_scenario_and_history(text, folder / "job.yaml")
    return folder / "job.yaml"


def prepare_bench(
    file: Path,
    overrides: Sequence[str],
    load_files: Sequence[str],
    *,
    recovery_ms: float | None,
    ahead_ns: int = AHEAD_NS,
    failure: Failure = TASK_MANAGER,
    sees_output: bool = False,
) -> Bench:
    """Return the bench on which the settings of a job are tried.

    `overrides`: ``key=value`` of the scenario.  `load_files`: ``source=file.csv:column``.  `recovery_ms`: limit on recovery,
    None if there is none.  `ahead_ns`: time for which the limits must be kept.  `failure`: failure by which recovery is
    judged.  `sees_output`: there is a limit on output visible, for which sinks commit as their connectors do.

    Raises ScenarioError if the file contains no scenario or several, or if a load cannot be read.
    """
    study = load(file, overrides)
    if len(study.scenarios) > 1:
        names = ", ".join(axis.name for axis in study.axes)
        first = " ".join(shlex.join(["--set", f"{axis.name}={axis.values[0]}"]) for axis in study.axes)
        raise ScenarioError.of(file, f"lists several values of {names}: give the one that is set today, e.g. {first}")
    scenario = study.scenarios[0]
    if scenario.instances != Instances():
        raise ScenarioError.of(file, "is about a chain of jobs: advice is about one")
    patience_ns = round((recovery_ms or 0) * 1.25 * 1e6)
    plain = document_of(file, overrides)
    unasked = _unasked_updates(scenario, plain)
    split = (override.partition("=") for override in overrides)
    overridden = {key: compose(text, Reading(f"--set {key}")) for key, _, text in split}  # for the sweep file
    as_written = {**unasked, **overridden} | ({"expect": {}} if plain.get("expect") else {})
    if sees_output:
        as_written |= {
            key_of(("job", vertex.name, "commit")): "as-connector"
            for vertex in scenario.job.vertices
            if vertex.leaves_out_commit and "commit" not in plain["job"].get(vertex.name, {"commit": None})
        }
    driven, worlds = load_worlds(file, plain, scenario, load_files)
    as_written |= driven
    common = as_written | _left_out(scenario, plain)
    bench = Bench(
        file,
        common,
        as_written,
        patience_ns,
        worlds,
        study.backtest,
        failure,
        warnings=study.warnings,
        unasked_updates=tuple(unasked),
    )
    bench.horizon = horizon(
        [bench.load(bench.common | changes) for changes in bench.worlds.values()], study.backtest, ahead_ns
    )
    return bench


def _unasked_updates(scenario: Scenario, plain: Mapping[str, Any]) -> Point:
    """Return the assumption that every record rewrites an entry, for each state about whose rewrites the file says nothing.

    Full snapshots of heap state do not show how often entries are rewritten.  By default they never are, so incremental
    checkpoints and the changelog would write nothing and look better than they are.  The assumption is the upper bound of
    what they can write.
    """
    point: Point = {}
    for vertex in scenario.job.vertices:
        state = vertex.state
        # generated vertices, committers and compactors, are not in the file
        written = plain["job"].get(vertex.name, {}).get("state")
        if (
            state is not None
            and state.ttl is None
            and isinstance(written, Mapping)
            and not {"update", "growth"} & set(written)
        ):
            point[key_of(("job", vertex.name, "state", "update"))] = "100 %"
    return point


def _left_out(scenario: Scenario, plain: Mapping[str, Any]) -> Point:
    """Return the change that removes actions, rescaling, a cold start, history that sources read first, and the end of bounded sources."""
    point: Point = {key: [] for key in ("actions", "rescale") if plain.get(key)}
    if scenario.run.cold_start_ns:
        point["run.cold-start"] = "0 s"  # settings are compared on a warm job
    for vertex in scenario.job.vertices:
        if vertex.source is not None and vertex.source.backlog is not None and vertex.source.backlog.records:
            point[key_of(("job", vertex.name, "source", "backlog", "records"))] = 0
        if vertex.source is not None and vertex.source.total is not None:
            is_total = "records" in plain["job"][vertex.name]["source"]
            key, records = (
                ("records", UNBOUNDED_RECORDS * vertex.parallelism)
                if is_total
                else ("records-per-subtask", UNBOUNDED_RECORDS)
            )
            point[f"job.{vertex.name}.source.{key}"] = records
    return point


# ---- The trials as a sweep file, which users can inspect and run: ``ckptsim sweep sweep.yaml``.


def write_sweep(file: Path, bench: Bench, trials: Mapping[Trial, int]) -> None:
    """Write the sweep file that repeats the trials.  `trials`: {trial: replications}."""
    rows = [{**trial.point, "run.replications": count} for trial, count in trials.items()]
    keys = dict.fromkeys(key for row in rows for key in row)
    document = {
        "scenario": relpath(bench.file, file.parent),
        "together": [{key: [row.get(key) for row in rows] for key in keys}],
    }
    replace_text(
        file,
        "# What was tried to advise on this job: every setting undisturbed, and with a failure late in an interval.\n"
        f"# Again: ckptsim sweep {file.name} --out .\n{json.dumps(document, indent=1, default=str)}\n",
    )
