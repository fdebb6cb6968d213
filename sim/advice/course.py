"""The course of a race: barriers and intervals first, levers where they do not suffice, then more and longer runs of the best."""

from __future__ import annotations

from sim.advice.ladder import try_intervals, try_neighbours, try_optimum, try_shorter
from sim.advice.left_out import LeftOut
from sim.advice.race import Race
from sim.advice.running.bounds import NothingRanError, TimeUpError

AGAIN = 3
"""Levers are pulled so often: a long run may break a limit that short ones kept."""


def run_until_sure(race: Race) -> None:
    """Run everything that the choice needs, or what the bounds allow.  NothingRanError: they allow nothing."""
    try:
        try_intervals(race)
        try_optimum(race)
        for _ in range(AGAIN):
            try_neighbours(race)
            try_shorter(race)
            if not race.has_room:
                race.levers.pull(race)
            before = len(race.runs), len(race.longer_ms)
            race.replicate_until_sure()
            race.repeat()
            race.confirm()
            if race.has_room or before == (len(race.runs), len(race.longer_ms)):
                break  # no long run broke what short ones kept
        if race.chosen is None:
            race.levers.relax(race)
            race.repeat()
            race.confirm()
        race.fail_tasks()
    except TimeUpError:
        race.left_out.append(LeftOut(race.lack(), what="runs that were under way, and all that would have followed"))
    if not race.runs:
        raise NothingRanError("time was up before a single setting had run: give more with --within, or a shorter job")
