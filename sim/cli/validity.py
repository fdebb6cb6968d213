"""Before anything runs: a line on stderr if a scenario is unlike all that predictions were held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.cli.console.errors import print_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.model.scenario import Scenario

__all__ = ["warn_outside"]


def warn_outside(name: str, scenarios: Iterable[Scenario]) -> None:
    from sim.envelope.validity import warning

    if finding := warning(scenarios):
        print_message(f"warning: {name}: {finding}")
