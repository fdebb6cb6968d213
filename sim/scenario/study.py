"""From the text of a scenario file to concrete scenarios: the order of the steps, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path as FilePath

from sim.model.backtest import Backtest
from sim.model.scenario import Scenario
from sim.scenario.axes import Axis, find_axes, variants
from sim.scenario.build import build
from sim.scenario.flink.block import apply_flink
from sim.scenario.flink.file import IS_CONFIGURATION, is_configuration
from sim.scenario.history.builder import build_backtest
from sim.scenario.history.file import put_history
from sim.scenario.job.graph import check_graph
from sim.scenario.job.trace import file_stamp
from sim.scenario.overrides import apply
from sim.scenario.text.plain import compose, first_comment, read_text
from sim.scenario.text.problems import Problem, Reading, ScenarioError
from sim.scenario.validation import validate


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario file: a question, and a concrete scenario for every combination of its axes."""

    name: str
    question: str
    scenarios: tuple[Scenario, ...]
    axes: tuple[Axis, ...] = ()
    warnings: tuple[Problem, ...] = ()
    backtest: Backtest | None = None  # of the file, however it is varied


def load(path: str | PathLike[str], overrides: Sequence[str] = ()) -> ScenarioFile:
    """Read a scenario file; `overrides` are ``key.path=value``.  Raises `ScenarioError` with all that is wrong."""
    file = FilePath(path)
    return _study(read_text(file), str(file), file.name.removesuffix(file.suffix), file.parent, overrides)


def loads(
    text: str, name: str = "scenario", *, overrides: Sequence[str] = (), folder: str | PathLike[str] = ".", file: str | None = None
) -> ScenarioFile:
    """Read a scenario from text; traces are looked for in `folder`.  Mistakes and warnings name the `file`, or else the `name`."""
    return _study(text, file or name, name, FilePath(folder), overrides)


def _study(text: str, file: str, name: str, folder: FilePath, overrides: Sequence[str]) -> ScenarioFile:
    reading = Reading(file)
    plain = compose(text, reading)
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
    given = None if document is None else document.backtest
    backtest = None if given is None else build_backtest(given, reading)
    question = first_comment(text)
    scenarios: list[Scenario] = []
    for concrete, chosen in variants(plain, axes):
        if (variant := validate(concrete, reading) if axes else document) is not None:
            scenarios.append(build(variant, reading, folder, question=question, name=name, axes=chosen))
    reading.stop_if_wrong()
    if backtest is not None:
        stamp = file_stamp(folder / plain["history"]) if "history" in plain else None
        imported = _as_imported(text, file, name, folder, stamp) if overrides else scenarios[0]
        backtest = replace(backtest, imported=imported)
    return ScenarioFile(name, question, tuple(scenarios), axes, tuple(sorted(reading.warnings)), backtest)


@lru_cache(maxsize=4)
def _as_imported(
    text: str, file: str, name: str, folder: FilePath,
    stamp: tuple[int, int] | None,  # noqa: ARG001 - of the history: another one is another file
) -> Scenario | None:  # fmt: skip
    """The job of an imported file before any override, the first of its combinations.  None: only overrides make a scenario of it."""
    try:
        return _study(text, file, name, folder, ()).scenarios[0]
    except ScenarioError:
        return None
