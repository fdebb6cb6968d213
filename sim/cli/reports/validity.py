"""Before anything runs: lines on stderr about what predictions were held to, what the backtest says, and what tails rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.cli.console.errors import print_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario

__all__ = ["print_backtest", "print_tails", "warn_outside"]


def warn_outside(name: str, scenarios: Iterable[Scenario]) -> None:
    from sim.envelope.validity import warning

    if finding := warning(scenarios):
        print_message(f"warning: {name}: {finding}")


def print_backtest(name: str, backtest: Backtest | None) -> None:
    """Nothing, for a file that was not imported."""
    from sim.scenario.backtest.verdict import verdict

    if backtest is not None:
        print_message(f"{'warning: ' if backtest.off else ''}{name}: {verdict(backtest)}")


def print_tails(name: str, scenarios: Iterable[Scenario]) -> None:
    """Nothing, where no residuals are drawn."""
    from sim.scenario.residuals.sentence import tail_sentence

    for sentence in dict.fromkeys(tail_sentence(scenario.residuals) for scenario in scenarios):
        if sentence:
            print_message(f"{name}: {sentence}")
