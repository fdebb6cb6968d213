"""The job that advice is about, made ready for trials.  Actions, faults and the end of bounded sources are taken out: they are no settings.

The option `--load` replaces what the sources emit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.advice.future.horizon import AHEAD_NS, horizon
from sim.advice.future.load import arriving
from sim.advice.trials import TASK_MANAGER, Bench, Failure
from sim.model.instances import Instances
from sim.model.scenario import Scenario
from sim.scenario import ScenarioError, load
from sim.scenario.history.file import write_parted
from sim.scenario.overrides import apply, key_of
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import Reading
from sim.sweeps.file.design import Point

ENDLESS = 10**12
"""Records of a source that does not end."""


def job_file(source: Path, text: str | None, folder: Path) -> Path:
    """The scenario file: the given one, or an imported one, which is kept in the folder of the results."""
    if text is None:
        return source
    write_parted(text, folder / "job.yaml")
    return folder / "job.yaml"


def prepared(
    file: Path, overrides: Sequence[str], load_files: Sequence[str], *, recovery_ms: float | None, ahead_ns: int = AHEAD_NS,
    failure: Failure = TASK_MANAGER,
) -> Bench:  # fmt: skip
    """The bench for trials.  `overrides` are ``key=value`` of the scenario, `load_files` are ``source=file.csv:column``.

    `ahead_ns`: for how long the limits have to be kept.  `failure`: what recovery is judged by.

    ScenarioError: the file holds no scenario or several, or a load cannot be read.
    """
    study = load(file, overrides)
    if len(study.scenarios) > 1:
        several = ", ".join(axis.name for axis in study.axes)
        raise ScenarioError.of(file, f"lists several values of {several}: give the one that is set today")
    scenario = study.scenarios[0]
    if scenario.instances != Instances():
        raise ScenarioError.of(file, "is about a chain of jobs: advice is about one")
    patience_ns = round((recovery_ms or 0) * 1.25 * 1e6)
    plain = _plain(file, overrides)
    unasked = _unasked_updates(scenario, plain)
    common = {**unasked, **_override_values(overrides), **_left_out(scenario, plain)}
    driven, worlds = arriving(file, plain, scenario, load_files)
    bench = Bench(file, common | driven, patience_ns=patience_ns, worlds=worlds, backtest=study.backtest, failure=failure)
    bench.warnings = study.warnings
    bench.unasked_updates = tuple(unasked)
    bench.horizon = horizon([bench.load(bench.common | changes) for changes in bench.worlds.values()], study.backtest, ahead_ns)
    return bench


def _plain(file: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
    """The document of the file with the overrides in it."""
    reading = Reading(str(file))
    plain: Mapping[str, Any] = apply(compose(read_text(file), reading), overrides, reading)
    return plain


def _unasked_updates(scenario: Scenario, plain: Mapping[str, Any]) -> Point:
    """Every record rewrites an entry of a state whose file says nothing of it: the most that increments and a changelog can write.

    Snapshots of a heap are full, and do not show it.  Without any, increments of such a job would be empty, and look like a gain.
    """
    point: Point = {}
    for vertex in scenario.job.vertices:
        state = vertex.state
        written = plain["job"].get(vertex.name, {}).get("state")  # committers and compactors stand in no file
        if state is not None and state.ttl is None and isinstance(written, Mapping) and not {"update", "growth"} & set(written):
            point[key_of(("job", vertex.name, "state", "update"))] = "100 %"
    return point


def _override_values(overrides: Sequence[str]) -> Point:
    """The overrides as changes of the scenario: the sweep file repeats them."""
    split = (override.partition("=") for override in overrides)
    return {key: compose(text, Reading(f"--set {key}")) for key, _, text in split}


def _left_out(scenario: Scenario, plain: Mapping[str, Any]) -> Point:
    point: Point = {key: empty for key, empty in (("actions", []), ("rescale", []), ("expect", {})) if plain.get(key)}
    if scenario.run.cold_start_ns:
        point["run.cold-start"] = "0 s"  # a setting is for a job that runs on
    for vertex in scenario.job.vertices:
        if vertex.source is not None and vertex.source.total is not None:
            is_total = "records" in plain["job"][vertex.name]["source"]
            key, records = ("records", ENDLESS * vertex.parallelism) if is_total else ("records-per-subtask", ENDLESS)
            point[f"job.{vertex.name}.source.{key}"] = records
    return point
