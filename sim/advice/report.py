"""The report of ``advise``: runs the search, and describes its result as texts, tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.advice import texts
from sim.advice.answer import ADVISED, ROLLBACK, advised_scenario, answer, lines_below, no_answer
from sim.advice.candidates import CandidateSearch, chances
from sim.advice.configuration import diff_flink_keys, differences_to_current
from sim.advice.job import write_sweep
from sim.advice.judgement import Choice, Limits, Setting
from sim.advice.optimizer import horizon_sentence, lasting, lasting_sentence, run_until_sure, to_json
from sim.advice.questions import assumed_text, marked_unknowns, questions
from sim.advice.requirements import requirements
from sim.advice.settings import Candidate
from sim.advice.situation import situation_of
from sim.advice.trials import Bench, TrialRunner
from sim.advice.uncertainty import agreements, capped, doubts, remarks
from sim.model.faults import Kill, TaskManagerLost
from sim.model.files import replace_text
from sim.model.scenario import Scenario
from sim.model.schema.flink_text import flink_text
from sim.model.schema.history_file import contradiction
from sim.model.text import listed
from sim.results.estimates import daly, renewal, young
from sim.results.formats import TextTable, json_ready, ms_text

ASSUMED_MTBF_MS = 86_400_000.0


@dataclass(frozen=True, slots=True)
class Report:
    """What ``advise`` prints, and its JSON data."""

    chosen: Setting | None  # the advised setting with its results; None: no setting keeps the limits
    advised: Candidate | None  # the same setting, as a change of the scenario
    parts: Sequence[str | TextTable]  # the verdict, then texts and tables, in the order in which they are printed
    data: dict[str, Any]  # JSON data; may contain NaN and infinity

    @property
    def verdict(self) -> str:
        return str(self.parts[0])

    def plain(self) -> dict[str, Any]:
        """Return `data` as valid JSON data, with None in place of NaN and infinity."""
        found: dict[str, Any] = json_ready(self.data)
        return found


def report(
    bench: Bench,
    limits: Limits,
    mtbf_ms: float | None,
    runner: TrialRunner,
    folder: Path,
    *,
    max_replications: int,
) -> Report:
    """Run the search, write the sweep file and patches to `folder`, and return the report.

    `mtbf_ms` is the mean time between failures [ms].  If None, it is taken from the job's history, else from the scenario's
    `faults`, else it is assumed (`ASSUMED_MTBF_MS`).
    """
    observed = None if bench.backtest is None or mtbf_ms is not None else bench.backtest.failures
    known_mtbf_ms = mtbf_of_faults_ms(bench.load(bench.common)) if observed is None else observed.mtbf_ms
    mtbf_s = (mtbf_ms or known_mtbf_ms or ASSUMED_MTBF_MS) / 1e3
    race = CandidateSearch(bench, limits, mtbf_s, runner, max_replications)
    run_until_sure(race)
    choice, chosen = capped(race.choice(), bench.backtest, limits), race.chosen
    configured = "" if chosen is None else _configuration(race, chosen)
    marked = marked_unknowns(bench)
    needed = []
    if chosen is None and race.settings:
        if race.relaxed is not None:
            needed = requirements(race)
        else:
            race.leave_out("the smallest change of storage, subtasks or operators with which a setting would fit")
    enough = [own.sentence for own in needed]
    lasts = lasting(race)
    verdict, *others = texts.verdict(race, choice, sum(not unknown.is_setting for unknown in marked))
    line_count, unknown_inputs = lines_below(verdict), assumed_text(marked)
    found = (
        no_answer(race, line_count, enough, unknown_inputs)
        if chosen is None
        else answer(race, chosen, line_count, unknown_inputs)
    )
    parts: list[str | TextTable | None] = [
        verdict,
        found.screen,
        *others,
        horizon_sentence(bench.horizon),
        lasting_sentence(race, lasts),
        *remarks(bench.backtest, limits),
        texts.comparison_with_today(race),
        *found.parts,
        # a full overview may have cut these sentences off
        *(enough if len(found.screen.splitlines()) >= line_count else []),
        configured,
    ]
    if chosen is not None:
        parts.append(texts.theory(race))
    parts += _remarks(race)
    if observed is not None and known_mtbf_ms is not None:
        times = "once" if observed.job_failures == 1 else f"{observed.job_failures} times"
        parts.append(
            f"The job failed {times} in the {ms_text(observed.ran_ns / 1e6)} of its history: a failure every {ms_text(known_mtbf_ms)}."
        )
    parts += questions(race, marked, mtbf_ms or known_mtbf_ms)
    parts += texts.tables_of_settings(race)
    planned = {trial: count for candidate, count in race.runs.items() for trial in bench.trials(candidate)}
    write_sweep(folder / "sweep.yaml", bench, planned | race.other_trials)
    for name in (ADVISED, ROLLBACK):
        (folder / name).unlink(missing_ok=True)  # left by an earlier run
    for name, text in found.files.items():
        replace_text(folder / name, text)
    data = (
        _to_json(race, choice, chosen)
        | found.data
        | {"configuration": configured, "requirements": [asdict(own) for own in needed]}
        | {"marked_unknown": {unknown.name: [unknown.assumed, unknown.question, unknown.known] for unknown in marked}}
        | to_json(bench.horizon, lasts)
    )
    candidate = None if chosen is None else race.candidate_of(chosen.name)
    return Report(chosen, candidate, [part for part in parts if part], data)


def mtbf_of_faults_ms(scenario: Scenario) -> float | None:
    """Return the mean time between failures [ms] of all recurring `faults` together, or None if there are none.

    Only failing tasks and lost TaskManagers count.
    """
    means_ns = [
        fault.when.every.mean_ns
        for fault in scenario.faults
        if fault.when.every is not None and isinstance(fault.what, Kill | TaskManagerLost)
    ]
    return 1 / sum(1 / mean_ns for mean_ns in means_ns) / 1e6 if means_ns else None


def no_advice(bench: Bench, limits: Limits, reasons: Sequence[str]) -> Report:
    """Return the report for a job whose history contradicts its simulation, so that no trials run.

    `reasons`: sentences on what the user should fix first.
    """
    first = f"No advice: {contradiction(bench.backtest)}."
    data = {
        "advised": None,
        "today": None,
        "limits": asdict(limits),
        "configuration": "",
        "settings": [],
        "no_advice": [first, *reasons],
    }
    return Report(None, None, [first, *filter(None, [" ".join(reasons)])], data)


def _remarks(race: CandidateSearch) -> Iterator[str]:
    """Yield sentences on how the trials differ from the job, and on what was not run."""
    if race.today is None:
        yield "Today there are no checkpoints: a failure begins the job anew."
    if race.unlimited:
        yield "A source always has more, so nothing is ever caught up: recovery counts what is replayed at the job's own pace."
    if len(race.bench.worlds) > 1:
        names = " and ".join(
            f"its {name} ({', '.join(map(str, point.values()))} on)" for name, point in race.bench.worlds.items()
        )
        yield f"Load: two pieces of its trace, {names}. Limits have to hold in both; differences and losses are means."
    if race.limits.visible_ms is not None and not any(math.isfinite(setting.visible_ms) for setting in race.settings):
        yield "No sink is transactional: output is visible at once under any setting."
    left_out = ["faults"] * bool(race.scenario.faults)
    left_out += [key for key in ("actions", "rescale") if key in race.bench.common]
    if left_out:
        yield f"Not in the trials, each of which has one failure of its own: {listed(left_out)} of the file. `ckptsim run` shows what they do."
    yield from (f"Not run: {reason}." for reason in race.given_up)


def _configuration(race: CandidateSearch, chosen: Setting) -> str:
    """Return the Flink configuration of the advised setting, with a checkpoint timeout that has headroom."""
    candidate, scenario = race.candidate_of(chosen.name), advised_scenario(race, chosen)
    text = flink_text(scenario, candidate.point)
    is_old = scenario.cluster.profile == "1.15"
    lines = [
        "# flink-conf.yaml" if is_old else "# config.yaml (2.x, 1.19 and later) or flink-conf.yaml (1.x)",
        text.rstrip(),
        *(
            f"{item.key}: {item.advised}"
            for item in diff_flink_keys(race.scenario, scenario, candidate.changes)
            if item.advised and item.key not in text
        ),
    ]
    if candidate.point.get("checkpoint.operator-io") == "async":
        lines.append("# and what no option says: operators write their files behind the barrier (FLINK-37375)")
    return "\n".join(lines)


def _to_json(race: CandidateSearch, choice: Choice, chosen: Setting | None) -> dict[str, Any]:
    """Return the JSON data of the search: settings, their results, the choice and its certainty."""
    cost, backtest, current = race.cost_s, race.bench.backtest, race.current
    rules = {"young": young, "daly": daly, "renewal": renewal}
    settings = race.settings
    situations = {setting.name: situation_of(race, setting.name) for setting in settings}
    return {
        "advised": None if chosen is None else asdict(chosen),
        "today": None if current is None else asdict(current),
        "confidence": {"setting": choice.same_setting, "protocol": choice.same_protocol},
        "doubts": doubts(backtest, race.limits),
        "grade": texts.grade(race),
        "chances": None if chosen is None or (found := chances(race, chosen)) is None else found._asdict(),
        "confirmed": None if chosen is None else race.confirmed,
        "checkpoints_seen": None if chosen is None else race.seen(chosen.name),
        "limits": asdict(race.limits),
        "mtbf_s": race.mtbf_s,
        "checkpoint_cost_s": cost,
        "intervals_by_theory_s": {name: rule(cost, race.mtbf_s) if cost else math.nan for name, rule in rules.items()},
        "settings": [asdict(setting) for setting in settings],
        "times": [
            {
                "setting": name,
                "parts_ms": dict(own.milliseconds),
                "recovery_ms": dict(own.recovery),
                "uploaded_bytes": own.uploaded_bytes,
            }
            for name, own in situations.items()
        ],
        "against_today": [row.plain() for row in differences_to_current(race)],
        "alternatives": [{"setting": name, "share": share} for name, share in choice.others],
        "mtbf_changes_advice_s": [mtbf_s for mtbf_s, _ in texts.changed_by_failures(race)],
        "not_run": [asdict(left) for left in race.left_out if left.sentence(race.trials)],
        "worlds": dict(race.bench.worlds),
        "history": None
        if backtest is None
        else {
            "checkpoints": backtest.checkpoints,
            "longest_ms": list(backtest.longest_ms),
            "tail": backtest.tail,
            "agreements": [{"what": text, "share": share} for share, text in agreements(backtest, race.limits)],
        },
    }
