"""What the answer rests on without being known: the inputs that decide, the one to ask for first, and those that move nothing.

An input decides if another plausible value changes the advice.  That is tried: for every value that the scenario marks
UNKNOWN, and for what is assumed without a mark: the network card towards storage, and the rate of storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.advice import texts
from sim.advice.candidates import CandidateSearch
from sim.advice.horizon import served
from sim.advice.sensitivity import Sensitivity, section
from sim.advice.settings import Candidate
from sim.advice.trials import SETTLED_NS, Bench
from sim.advice.unknowns import Unknown, plausible, unknowns
from sim.model.scenario import Scenario
from sim.model.schema.axes import path_of
from sim.model.units import format_byte_rate, format_rate
from sim.results.formats import TextTable, bytes_text

UPDATE_SHARES = ("1 %", "10 %")
"""Shares of records that rewrite an entry, beside all of them."""
CARDS = ("1.25 GB/s", "125 MB/s")
"""Network cards of 10 and of 1 Gbit/s."""


def marked_unknowns(bench: Bench) -> list[Unknown]:
    """The unknowns that the scenario marks, without those that an override has answered."""
    return [unknown for unknown in unknowns(bench.file.read_text(encoding="utf-8")) if unknown.key not in bench.common]


def assumptions(scenario: Scenario, marked: Sequence[Unknown]) -> Iterator[Unknown]:
    """What is assumed without a mark, and the values to try instead: half and twice a rate, or a card that the network could have."""
    known = {unknown.path for unknown in marked}
    if ("storage", "nic") not in known and scenario.storage.nic_bytes_per_second is None:
        yield Unknown(("storage", "nic"), "unlimited", "Which network card has a task manager?", others=CARDS)
    rate = scenario.storage.bytes_per_second
    if ("storage", "bandwidth") not in known and rate is not None:
        others = format_byte_rate(rate // 2), format_byte_rate(rate * 2)
        yield Unknown(
            ("storage", "bandwidth"), format_byte_rate(rate), "How fast is checkpoint storage?", others=others
        )


def unasked_updates(race: CandidateSearch, candidates: Iterable[Candidate]) -> Iterator[Unknown]:
    """States of which the file does not say how often records rewrite them, where these settings write no more than what changed."""
    for key in race.unasked_updates(candidates):
        path = path_of(key)
        question = f"Which share of the records that '{path[1]}' reads rewrites an entry of its state, and how large is one (value)?"
        yield Unknown(path, "100 %", question, others=UPDATE_SHARES)


def greatest_rates(race: CandidateSearch, marked: Sequence[Unknown]) -> dict[str, float]:
    """The most records per second that each source can emit; computed only if a marked source is unlimited."""
    if not any(unknown.assumed == "unlimited" for unknown in marked):
        return {}
    return served(race.scenario, 2 * SETTLED_NS)


def questions(
    race: CandidateSearch,
    marked: Sequence[Unknown],
    found: Sequence[Sensitivity],
    rates: Mapping[str, float],
    mtbf_ms: float | None,
) -> Iterator[str | TextTable]:
    """The inputs that move something, what to answer first, and a line for all that move nothing.  `found`: in order of importance."""
    marked_names = {unknown.name for unknown in marked}
    deciding = [row for row in found if row.changes_advice]
    if rows := [row for row in found if row.changes_advice or (row.moves and row.name in marked_names)]:
        yield section(rows)
    if assumed := [row for row in deciding if row.name not in marked_names]:
        yield f"The answer rests on what is assumed: {'; '.join(f'{row.name} {row.assumed}' for row in assumed)}. {assumed[0].question}"
    question, matters = texts.unknown_failures(race)
    if mtbf_ms is None:
        yield question
    if first := next((row for row in deciding if row.name in marked_names), None):
        yield f"Answer first: {first.question} ({first.name})"
    elif matters and mtbf_ms is None:
        yield "Answer first: how often does the job fail?"
    for unknown in unasked_updates(race, race.runs):
        low = next(
            (setting for row in found if row.name == unknown.name for _, setting, _ in row.ends if setting is not None),
            None,
        )
        least = (
            ""
            if low is None
            else f" With {UPDATE_SHARES[0]} the setting above writes {bytes_text(low.written_per_hour)} per hour."
        )
        state = race.scenario.job.vertex(unknown.vertex).state
        size = "" if state is None else f", of {bytes_text(state.value_bytes)} each"
        yield (
            f"UNKNOWN: {unknown.question} The file does not say, and full snapshots do not show it. Assumed: all of them{size}, so "
            f"increments and a changelog write no more than what is said here ({unknown.key}).{least}"
        )
    idle = [f"{row.name} ({_range(row)})" for row in found if row.name in marked_names and not row.moves]
    varied = {row.name for row in found}
    for unknown in marked:
        rate = rates.get(unknown.vertex, 0.0)
        if unknown.name in varied:
            continue
        if unknown.is_setting:
            yield f"UNKNOWN: {unknown.question} Only what is said of today depends on it ({unknown.name} {unknown.assumed} is assumed)."
        elif settled := _settled(unknown, rate):
            idle.append(f"{unknown.name} ({settled})")
        else:
            yield f"UNKNOWN: {unknown.question} Not varied ({unknown.name} {unknown.assumed} is assumed)."
    if idle:
        yield f"Moves nothing, and need not be answered: {'; '.join(idle)}."


def _range(row: Sensitivity) -> str:
    return " ... ".join(str(value) for value, _, _ in row.ends)


def _settled(unknown: Unknown, rate: float) -> str:
    """Why no value that is possible makes another job; empty: there may be one."""
    if unknown.assumed == "unlimited" and unknown.least is not None and rate > 0 and not plausible(unknown, rate):
        most = format_rate(round(rate))
        return f"at least {unknown.least.written()} is known, and the job serves {most} at most: any rate is a backlog"
    return ""
