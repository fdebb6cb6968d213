"""What sentences and tables of an advice say in rounded numbers, as data: each of their numbers stands there."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sim.advice.answer.differences import against_today
from sim.advice.doubts import agreements
from sim.advice.levers.situation import situation_of
from sim.advice.texts import changed_by_failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.advice.judgement import Choice, Setting
    from sim.advice.levers.requirements import NeededChange
    from sim.advice.race import Race


def numbers(race: Race, choice: Choice, needed: Sequence[NeededChange]) -> dict[str, Any]:
    """`needed`: what would be enough where no setting keeps the limits."""
    return {
        "times": [_times(race, setting) for setting in race.settings],
        "against_today": [row.plain() for row in against_today(race)],
        "alternatives": [{"setting": name, "share": share} for name, share in choice.others],
        "requirements": [asdict(own) for own in needed],
        "mtbf_changes_advice_s": [mtbf_s for mtbf_s, _ in changed_by_failures(race)],
        "not_run": [asdict(left) for left in race.left_out if left.sentence(race.trials)],
        "worlds": dict(race.bench.worlds),
        "history": _history(race),
    }


def _times(race: Race, setting: Setting) -> dict[str, Any]:
    """Parts of the slowest checkpoints of a setting and of its recovery, in ms, and what the slowest checkpoint uploads."""
    situation = situation_of(race, setting.name)
    return {
        "setting": setting.name, "parts_ms": dict(situation.milliseconds), "recovery_ms": dict(situation.recovery),
        "uploaded_bytes": situation.uploaded_bytes,
    }  # fmt: skip


def _history(race: Race) -> dict[str, Any] | None:
    """What the job was imported from; None: no history."""
    backtest = race.bench.backtest
    if backtest is None:
        return None
    return {
        "checkpoints": backtest.checkpoints,
        "longest_ms": list(backtest.longest_ms),
        "tail": backtest.tail,
        "agreements": [{"what": text, "share": share} for share, text in agreements(backtest, race.limits)],
    }
