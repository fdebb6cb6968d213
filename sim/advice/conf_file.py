"""The user's own file of Flink's configuration, which an advice patches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.scenario.text.plain import compose, read_beside
from sim.scenario.text.problems import Reading, ScenarioError


@dataclass(frozen=True, slots=True)
class ConfFile:
    """A file with a key of Flink on each line: ``flink-conf.yaml``, or a ``config.yaml`` that is not nested."""

    name: str
    text: str


def read_conf(file: Path) -> ConfFile:
    """ScenarioError: it cannot be read, or its keys are nested."""
    text, reading = read_beside(file), Reading(str(file))
    plain = compose(text, reading)
    reading.stop_if_wrong()
    if not isinstance(plain, Mapping) or any(isinstance(value, Mapping) for value in plain.values()):
        what = "is no flat list of keys: its keys are nested, take the lines of the advice instead"
        raise ScenarioError.of(file, what)
    return ConfFile(file.name, text)
