"""``key.path=v1,v2`` of the command line -> a list in the scenario, which is an axis there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sim.scenario import ScenarioError


def override(axis: str) -> str:
    """``checkpoint.interval=10 s,30 s`` -> ``checkpoint.interval=[10 s,30 s]``, which YAML divides at the right commas.

    ScenarioError: it has no ``=``.
    """
    key, equals, text = axis.partition("=")
    if not equals or not key.strip():
        raise ScenarioError.of(_option(axis), "expected key.path=v1,v2, e.g. --axis checkpoint.interval='10 s,30 s'")
    return f"{key}{equals}[{text}]" if text.strip() else axis


@contextmanager
def naming_axes(axes: Sequence[str]) -> Iterator[None]:
    """Mistakes in these axes cite the option that was given: to a scenario they are overrides like any other."""
    options = {f"--set {override(axis)}": _option(axis) for axis in axes}
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(replace(problem, file=options.get(problem.file, problem.file)) for problem in error.problems) from None


def _option(axis: str) -> str:
    return f"--axis {axis}"
