"""The constants of an environment in a file: what no configuration of Flink says, written by `python -m benchmarks.lab calibrate`.

A file has every constant, each with its value, the interval it lies in and how many recordings tell it; a run takes the values.
Those that come with this package lie in `environments/` and are known by name.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model

from sim.model.scenario import Overheads
from sim.scenario.grammar.fields import Duration, Natural, choice
from sim.scenario.grammar.section import Section, Texts
from sim.scenario.text.plain import Mapping, compose, read_text
from sim.scenario.text.problems import Reading, ScenarioError, did_you_mean
from sim.scenario.validation import validate_as

DEFAULT = "flink-2-loopback"
"""The environment of a scenario that names none; `Overheads()` has its values."""

_FOLDER = FilePath(__file__).parent / "environments"
_ENDINGS = (".yaml", ".yml")


class Constant(Section):
    """One constant, and how sure it is."""

    value: Duration
    interval: Annotated[list[Duration], Field(min_length=2, max_length=2)] | None = None
    recordings: Natural = 0


_OF_ALL: dict[str, Any] = {field.name.removesuffix("_ns"): (Constant, ...) for field in fields(Overheads)}
_Constants = create_model("_Constants", __base__=Section, **_OF_ALL)


class _Environment(Section):
    """The constants of an environment file."""

    HINTS: ClassVar[Texts] = {"overheads": "did you mean 'constants'?"}

    version: Annotated[str, choice("1")]
    constants: _Constants  # type: ignore[valid-type]  # made of the fields of Overheads


def names() -> list[str]:
    """The environments that come with this package."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


def load(name_or_file: str, folder: str | FilePath = ".") -> Overheads:
    """The constants of an environment: one of `names()`, or a file (in `folder`, if its path is relative).

    Raises `ScenarioError` with all that is wrong with the file, or the names there are.
    """
    return Overheads(**{f"{name}_ns": constant.value for name, constant in read(name_or_file, folder).items()})


def read(name_or_file: str, folder: str | FilePath = ".") -> dict[str, Constant]:
    """The constants of an environment with their intervals, by field of `Overheads` without `_ns`."""
    is_file = name_or_file.endswith(_ENDINGS) or "/" in name_or_file
    if not is_file and name_or_file not in names():
        guess = did_you_mean(name_or_file, names())
        what = f"there is no environment '{name_or_file}'{guess}; known are {', '.join(names())}, or a file (.yaml)"
        raise ScenarioError.of("", what)
    file = FilePath(folder) / name_or_file if is_file else _FOLDER / f"{name_or_file}.yaml"
    reading = Reading(str(file))
    plain = compose(read_text(file), reading)
    if not reading.problems and not isinstance(plain, Mapping):
        reading.wrong((), "is no environment: it begins with version: and constants:")
    found = validate_as(_Environment, plain, reading) if isinstance(plain, Mapping) else None
    if found is None or reading.problems:
        raise ScenarioError(reading.problems)
    return {name: getattr(found.constants, name) for name in _OF_ALL}


def chosen(name_or_file: str | None, reading: Reading, folder: FilePath) -> Overheads:
    """The constants that `environment:` of a scenario names; mistakes go to `reading`."""
    try:
        return Overheads() if name_or_file is None else load(name_or_file, folder)
    except ScenarioError as error:
        for problem in error.problems:
            if problem.file:
                reading.problems[problem] = None
            else:
                reading.wrong(("environment",), problem.message)
        return Overheads()
