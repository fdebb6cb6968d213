"""Advice in words: the tables and sentences an engineer would paste into a ticket, and the configuration to paste into Flink."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from sim.analysis.answers import Limit
from sim.analysis.stored import Section
from sim.analysis.words import bytes_text, change_text, count_text, ms_text
from sim.model.scenario import Scenario
from sim.scenario.flink_text import flink_text
from sim.sweep.advice.judgement import Advice, Limits, Setting, advise
from sim.sweep.advice.trials import PROTOCOLS, todays
from sim.units import format_duration, parse_duration

__all__ = ["Advised", "advised"]

OTHER_MTBFS_S = (3600.0, 86_400.0, 30 * 86_400.0)
_WORDS = {"checkpoint_ms": "checkpoints", "loss": "throughput", "visible_ms": "output visible", "recovery_ms": "recovery"}


@dataclass(frozen=True, slots=True)
class Advised:
    advice: Advice
    sections: Sequence[Section]
    sentences: Sequence[str]
    configuration: str  # empty: nothing is advised


def advised(scenario: Scenario, results: pd.DataFrame, *, limits: Limits, mtbf_s: float, unknown: Sequence[str]) -> Advised:
    """`scenario` is the job as it is set now; `results` are those of its trials."""
    interval_ns, protocol = todays(scenario)
    today = None if interval_ns is None else (format_duration(interval_ns), protocol.name)
    unlimited = any(vertex.source is not None and not vertex.source.rates for vertex in scenario.job.vertices)

    def at(mtbf_s: float) -> Advice:
        return advise(results, limits=limits, mtbf_s=mtbf_s, today=today, unlimited=unlimited)

    advice = at(mtbf_s)
    sentences = [_verdict(advice, limits)]
    if advice.chosen:
        others = {other: at(other).chosen for other in OTHER_MTBFS_S}
        sentences += [_against_today(advice), _theory(advice, mtbf_s), _failures(advice.chosen, others)]
    if unlimited:
        sentences.append("A source always has more, so nothing is ever caught up: recovery counts what is replayed at the job's own pace.")
    sentences += [f"UNKNOWN: {question}" for question in unknown]
    chosen = "" if advice.chosen is None else flink_text(_as_advised(scenario, advice.chosen))
    return Advised(advice, [_table(advice)], [told for told in sentences if told], chosen)


def _as_advised(scenario: Scenario, chosen: Setting) -> Scenario:
    protocol = next(known for known in (*PROTOCOLS, todays(scenario)[1]) if known.name == chosen.protocol)
    return protocol.on(replace(scenario, checkpoint=replace(scenario.checkpoint, interval_ns=parse_duration(chosen.interval))))


def _table(advice: Advice) -> Section:
    """Every setting; those that break a limit say which."""
    header = ["interval", "protocol", "checkpoints p99", "in flight", "throughput", "recovery", "replayed", "time lost", "remarks"]
    rows = [
        [
            one.interval, one.protocol, _ms(one.checkpoint_ms), bytes_text(one.persisted_bytes), change_text(-one.loss),
            _ms(one.recovery_ms), count_text(one.replayed), _share(one.lost), ", ".join(_remarks(one, advice)),
        ]
        for one in advice.settings
    ]  # fmt: skip
    return Section("What was tried, on the mean of all replications", header, rows)


def _remarks(one: Setting, advice: Advice) -> Iterator[str]:
    if one is advice.chosen:
        yield "advised"
    if one is advice.today:
        yield "today"
    if one.breaks:
        yield f"breaks: {', '.join(_WORDS[name] for name in one.breaks)}"


def _verdict(advice: Advice, limits: Limits) -> str:
    asked = ", ".join(f"{_WORDS[limit.column]} at most {_bound(limit)}" for limit in limits.of_means())
    if advice.chosen is None:
        return f"No setting that was tried keeps the limits ({asked}): look at what each breaks."
    keeps = f" It keeps the limits ({asked})." if asked else " No limits were given."
    stay = "Stay with" if advice.chosen is advice.today else "Use"
    sure = f"{100 * advice.confidence:.0f} % of resampled replications advise the same protocol."
    return f"{stay} {advice.chosen.protocol}, every {advice.chosen.interval}.{keeps} {sure}"


def _against_today(advice: Advice) -> str:
    now, then = advice.today, advice.chosen
    if now is None:
        return "Today there are no checkpoints: a failure begins the job anew."
    if now is then or then is None:
        return ""
    changes = [
        f"checkpoints p99 {_ms(now.checkpoint_ms)} -> {_ms(then.checkpoint_ms)}",
        f"recovery {_ms(now.recovery_ms)} -> {_ms(then.recovery_ms)}",
        f"throughput {change_text(-now.loss)} -> {change_text(-then.loss)}",
        f"in-flight data stored {bytes_text(now.persisted_bytes)} -> {bytes_text(then.persisted_bytes)}",
        f"time lost {_share(now.lost)} -> {_share(then.lost)}",
    ]
    return f"Against today ({now.protocol}, every {now.interval}): {', '.join(changes)}."


def _theory(advice: Advice, mtbf_s: float) -> str:
    theory = advice.theory
    if theory is None or math.isnan(theory.young_s):
        return "A checkpoint costs no throughput here, so Young and Daly would take as many as there can be; recovery decides."
    return (
        f"A checkpoint costs {_ms(1e3 * theory.cost_s)} of processing; with a failure every {_ms(1e3 * mtbf_s)} Young says every "
        f"{_ms(1e3 * theory.young_s)}, Daly {_ms(1e3 * theory.daly_s)}, the renewal optimum {_ms(1e3 * theory.renewal_s)}."
    )


def _failures(chosen: Setting, others: dict[float, Setting | None]) -> str:
    """What would be advised if failures were rarer or more frequent."""
    told = {mtbf_s: other for mtbf_s, other in others.items() if other is not None}
    if {other.name for other in told.values()} == {chosen.name}:
        return "The same is advised for a failure an hour, a day or a month."
    each = (f"for a failure every {_ms(1e3 * mtbf_s)} {other.protocol}, every {other.interval}" for mtbf_s, other in told.items())
    return f"How often the job fails matters: {'; '.join(each)}."


def _bound(limit: Limit) -> str:
    return _share(limit.at_most) if limit.column == "loss" else _ms(limit.at_most)


def _ms(value: float) -> str:
    return "not seen" if math.isinf(value) else ms_text(value)


def _share(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{100 * value:.2g} %"
