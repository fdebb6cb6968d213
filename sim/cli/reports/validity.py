"""Before anything runs: a line on stderr if a scenario is unlike all that predictions were held to, and what its own backtest says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.cli.console.errors import print_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario

__all__ = ["print_backtest", "warn_outside"]


def warn_outside(name: str, scenarios: Iterable[Scenario]) -> None:
    from sim.envelope.validity import warning

    if finding := warning(scenarios):
        print_message(f"warning: {name}: {finding}")


def print_backtest(name: str, backtest: Backtest | None) -> None:
    """Nothing, for a file that was not imported."""
    from sim.scenario.backtest.verdict import verdict

    if backtest is not None:
        print_message(f"{'warning: ' if backtest.off else ''}{name}: {verdict(backtest)}")
