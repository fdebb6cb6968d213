"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ChecksOption", "Engine", "EngineOption", "JobsOption", "OutOption", "SeedOption", "SetOption"]


class Engine(StrEnum):
    """How the data plane runs; all give the same bytes."""

    COMPILED = "compiled"
    INTERPRETED = "interpreted"
    REFERENCE = "reference"


ChecksOption = Annotated[bool, typer.Option("--checks/--no-checks", help="Watch every run for lost, duplicated or inconsistent data.")]
EngineOption = Annotated[Engine, typer.Option(help="How the data plane runs; all give the same results, the last two slowly.")]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Processes side by side. (Default: one per core.)", show_default=False)]
OutOption = Annotated[Path | None, typer.Option(help="Folder for what is kept. (Default: runs/<name>-<id>.)", show_default=False)]
SeedOption = Annotated[int | None, typer.Option(min=0, help="Instead of run.seed.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value, e.g. checkpoint.interval='10 s'.", show_default=False),
]
