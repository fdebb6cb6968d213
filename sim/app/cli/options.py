"""Options that several verbs share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sim.app.cli.errors import Code, UserError

if TYPE_CHECKING:
    from sim.app.verbs.importing import JobPlace

T = TypeVar("T")


class Engine(StrEnum):
    """The engine of the data plane.  Both give the same bytes."""

    COMPILED = "compiled"
    INTERPRETED = "interpreted"


ChecksOption = Annotated[
    bool, typer.Option("--checks/--no-checks", help="Watch every run for lost, duplicated or inconsistent data.")
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's, as for spark-submit.", show_default=False),
]
DeadlineOption = Annotated[
    str | None,
    typer.Option(
        "--deadline", metavar="DURATION", help="Live jobs: for all questions. (--sample + 10 min)", show_default=False
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="How the data plane runs; both give the same results, interpreted slowly.")
]
EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE", help="Whose constants hold, as in `environment:` of a scenario.", show_default=False
    ),
]
FlinkOption = Annotated[
    Path | None,
    typer.Option(
        "--flink",
        metavar="FILE",
        help="What is deployed: flink-conf.yaml, config.yaml, a FlinkDeployment.",
        show_default=False,
    ),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="'NAME: VALUE'", help="Sent with every request.", show_default=False),
]
JobOption = Annotated[
    str | None, typer.Option("--job", metavar="ID", help="Which job, if there are several.", show_default=False)
]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Processes side by side. (Default: one per core.)", show_default=False)
]
OutOption = Annotated[
    Path | None, typer.Option(help="Folder for what is kept. (Default: runs/<name>-<id>.)", show_default=False)
]
PricesOption = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", help="Price list of an object store (YAML). (S3 Standard.)", show_default=False
    ),
]
SeedOption = Annotated[int | None, typer.Option(min=0, help="Instead of run.seed.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value, e.g. run.duration='1 h'.", show_default=False),
]

StrategyOption = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Only this strategy, as the table of run names it.", show_default=False),
]


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """A quantity as `parse` of `sim.model.units` reads it."""
    from sim.model.units import UnitError

    try:
        return parse(text)
    except UnitError as error:
        raise UserError(f"{option}: {error}", Code.USAGE) from None


def job_place(sources: Sequence[str], job: str | None, deadline: str | None, headers: Sequence[str] | None) -> JobPlace:
    """The job that the options are about."""
    from sim.app.verbs.importing import JobPlace

    return JobPlace(sources, job, deadline, dict(map(header_of, headers or ())))


def header_of(given: str) -> tuple[str, str]:
    """Split ``NAME: VALUE``."""
    name, colon, value = given.partition(":")
    if not colon or not name.strip() or not given.isprintable() or not given.isascii():
        raise UserError("--header: write 'NAME: VALUE'", Code.USAGE)
    return name.strip(), value.strip()


def in_environment(name_or_file: str | None, scenario: Path) -> list[str]:
    """The change of a scenario; a file is given from here, and written from where the scenario lies."""
    if name_or_file is None:
        return []
    place = Path(name_or_file)
    is_file = place.suffix or len(place.parts) > 1
    return [f"environment={json.dumps(os.path.relpath(place, scenario.parent) if is_file else name_or_file)}"]


def spark_settings(master: str | None, conf: list[str] | None, jobs: int | None = None) -> dict[str, str] | None:
    """The settings of --conf, checked before anything runs; None: not on Spark."""
    if master is None:
        if conf:
            raise UserError("--conf is for Spark: say --master as well", Code.USAGE)
        return None
    if jobs is not None:
        raise UserError("--jobs and --master exclude each other", Code.USAGE)
    from sim.studies.sweeps.spark_masters import checked

    return checked(master, conf or ())
