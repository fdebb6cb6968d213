"""The report of ``advise``: runs the search, and describes its result as texts, tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.advice import texts
from sim.advice.answer import ADVISED, ROLLBACK, answer, lines_below, no_answer
from sim.advice.candidates import CandidateSearch
from sim.advice.configuration import diff_flink_keys
from sim.advice.job import write_sweep
from sim.advice.judgement import Choice, Limits, Setting
from sim.advice.levers import not_released
from sim.advice.optimizer import run_until_decided
from sim.advice.questions import assumed_text, marked_unknowns, questions
from sim.advice.requirements import requirements
from sim.advice.settings import Candidate
from sim.advice.situation import situation_of
from sim.advice.trials import Bench, TrialRunner
from sim.advice.uncertainty import agreements, remarks, with_capped_confidence
from sim.model.faults import Kill, TaskManagerLost
from sim.model.files import replace_text
from sim.model.scenario import Scenario
from sim.model.schema.history_file import contradiction
from sim.model.schema.option_values import configuration_text
from sim.model.schema.study import path_of
from sim.model.text import listed
from sim.results.formats import TextTable, json_ready, ms_text

ASSUMED_MTBF_MS = 86_400_000.0


@dataclass(frozen=True, slots=True)
class Report:
    """What ``advise`` prints, and its JSON data."""

    chosen: Setting | None  # the advised setting with its results; None: no setting keeps the limits
    advised: Candidate | None  # the same setting, as a change of the scenario
    parts: Sequence[str | TextTable]  # the verdict, then texts and tables, in the order in which they are printed
    data: dict[str, Any]  # JSON data; may contain NaN and infinity
    is_setting: bool = True  # False: restart times were asked for, not a setting

    @property
    def verdict(self) -> str:
        return str(self.parts[0])

    @property
    def screen(self) -> Sequence[str | TextTable]:
        """Return the parts that fit a terminal: the verdict and the overview."""
        return self.parts[:2] if self.is_setting else self.parts

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
    search = CandidateSearch(bench, limits, mtbf_s, runner, max_replications)
    run_until_decided(search)
    choice, chosen = with_capped_confidence(search.choice(), bench.backtest, limits), search.chosen
    configuration = "" if chosen is None else _configuration(search, chosen)
    unknowns, needed = marked_unknowns(bench), _requirements(search)
    verdict, *others = texts.verdict(search, choice, sum(not unknown.is_setting for unknown in unknowns))
    is_assumed = chosen is not None and not (mtbf_ms or known_mtbf_ms)
    line_count, assumed = lines_below(verdict), assumed_text(unknowns, ASSUMED_MTBF_MS if is_assumed else None)
    overview = (
        no_answer(search, line_count, needed, assumed)
        if chosen is None
        else answer(search, chosen, line_count, assumed)
    )
    parts: list[str | TextTable | None] = [
        verdict,
        overview.screen,
        *others,
        *remarks(bench.backtest, limits),
        texts.comparison_with_today(search),
        *overview.parts,
        # a full overview may have cut these sentences off
        *(needed if len(overview.screen.splitlines()) >= line_count else []),
        configuration,
        "" if chosen is None else texts.renewal_sentence(search),
        *_remarks_on_trials(search),
    ]
    if observed is not None and known_mtbf_ms is not None:
        times = "once" if observed.job_failures == 1 else f"{observed.job_failures} times"
        parts.append(
            f"The job failed {times} in the {ms_text(observed.ran_ns / 1e6)} of its history: a failure every {ms_text(known_mtbf_ms)}."
        )
    parts += questions(search, unknowns, mtbf_ms or known_mtbf_ms)
    parts += texts.tables_of_settings(search)
    _write_files(folder, search, overview.files)
    ahead_s = bench.horizon.ahead_ns / 1e9
    growing = {
        state.vertex: {"now_bytes": state.now_bytes, "then_bytes": state.after(ahead_s)}
        for state in bench.horizon.states
    }
    data = (
        _search_to_json(search, choice, chosen)
        | overview.data
        | {"configuration": configuration}
        | {"marked_unknown": {unknown.name: [unknown.assumed, unknown.question, unknown.known] for unknown in unknowns}}
        | {"horizon_s": ahead_s, "growing": growing}
    )
    candidate = None if chosen is None else search.candidate_of(chosen.name)
    return Report(chosen, candidate, [part for part in parts if part], data)


def _requirements(search: CandidateSearch) -> list[str]:
    """Return the changes of storage or operators that would be enough, if no setting keeps the limits."""
    if search.chosen is not None or not search.settings:
        return []
    if search.relaxed is not None:
        return requirements(search)
    search.skip("the smallest change of storage or operators with which a setting would fit")
    return []


def _write_files(folder: Path, search: CandidateSearch, patches: Mapping[str, str]) -> None:
    """Write the sweep file of all trials, and the patches {file name: text}, in place of those of an earlier run."""
    planned = {trial: count for candidate, count in search.runs.items() for trial in search.bench.trials(candidate)}
    write_sweep(folder / "sweep.yaml", search.bench, planned | search.other_trials)
    for name in (ADVISED, ROLLBACK):
        (folder / name).unlink(missing_ok=True)
    for name, text in patches.items():
        replace_text(folder / name, text)


def mtbf_of_faults_ms(scenario: Scenario) -> float | None:
    """Return the mean time between failures [ms] of all recurring `faults` together, or None if there are none.

    Only failing tasks and lost TaskManagers count.
    """
    means_ns = [
        fault.when.every.mean
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


def _remarks_on_trials(search: CandidateSearch) -> Iterator[str]:
    """Yield sentences on how the trials differ from the job, and on what was not run."""
    if search.unlimited:
        yield "A source is unlimited, so the job never catches up: recovery is the downtime and the time to process the replayed records again."
    if len(search.bench.worlds) > 1:
        names = ", ".join(
            f"{name} (from {', '.join(map(str, point.values()))})" for name, point in search.bench.worlds.items()
        )
        yield f"Load: windows of its trace: {names}. Limits must hold in each; differences and losses are means."
    if search.limits.visible_ms is not None and not any(
        math.isfinite(setting.visible_ms) for setting in search.settings
    ):
        yield "No sink is transactional: output is visible at once under any setting."
    if assumed := [str(path_of(key)[1]) for key, value in search.bench.common.items() if value == "as-connector"]:
        yield f"Assumed, as output has a limit: {listed(assumed)} commits as its connector does (commit: as-connector)."
    windows = [
        vertex.name
        for vertex in search.scenario.job.vertices
        if vertex.window is not None and not vertex.window.hold_ns
    ]
    if windows and search.scenario.cluster.profile == "2.x":
        yield (
            f"In trials windows of {listed(windows)} end right before a checkpoint, which waits for all that fires, whatever its "
            "barriers and the interval are. Windows of SQL let unaligned barriers pass with interruptible timers (FLIP-443); the "
            "DataStream WindowOperator never does."
        )
    if in_file := texts.file_runs_text(search):
        yield in_file
    if search.relaxed and search.chosen is None:
        yield f"All of these were relaxed at once, and the limits were not kept: {', '.join(search.relaxed)}."
    if later := _not_released(search):
        named = listed([f"{name} (since {release})" for name, release in later.items()])
        yield f"Not tried, as Flink {search.scenario.cluster.release} does not have it: {named}."
    yield from (f"Not run: {reason}." for reason in search.skipped_sentences)


def _not_released(search: CandidateSearch) -> dict[str, str]:
    """Return {barrier mode or change: the release that brought it} of all that the advised or nearest setting could have, else {}."""
    setting = search.chosen or (search.nearest if search.settings else None)
    return {} if setting is None else not_released(situation_of(search, setting.name))


def _configuration(search: CandidateSearch, chosen: Setting) -> str:
    """Return the Flink configuration of the advised setting, with a checkpoint timeout that has headroom."""
    candidate, scenario = search.candidate_of(chosen.name), texts.advised_scenario(search, chosen)
    text = configuration_text(scenario, candidate.point)
    is_old = scenario.cluster.profile == "1.15"
    lines = [
        "# flink-conf.yaml" if is_old else "# config.yaml (2.x, 1.19 and later) or flink-conf.yaml (1.x)",
        text.rstrip(),
        *(
            f"{item.key}: {item.advised}"
            for item in diff_flink_keys(search.scenario, scenario, candidate.changes)
            if item.advised and item.key not in text
        ),
    ]
    if candidate.point.get("checkpoint.operator-io") == "async":
        lines.append("# not available as an option: operators write their files after the barrier (FLINK-37375)")
    return "\n".join(lines)


def _search_to_json(search: CandidateSearch, choice: Choice, chosen: Setting | None) -> dict[str, Any]:
    """Return the JSON data of the search: settings, their results, the choice and its certainty."""
    backtest, current = search.bench.backtest, search.current
    return {
        "advised": None if chosen is None else asdict(chosen),
        "today": None if current is None else asdict(current),
        "confidence": {"setting": choice.same_setting, "protocol": choice.same_protocol},
        "grade": texts.grade(search),
        "confirmed": None if chosen is None else search.confirmed,
        "limits": asdict(search.limits),
        "mtbf_s": search.mtbf_s,
        "settings": [asdict(setting) for setting in search.settings],
        "file_runs": [{"setting": name, **asdict(run)} for name, run in search.file_runs.items()],
        "alternatives": [{"setting": name, "share": share} for name, share in choice.others],
        "not_run": [asdict(left) for left in search.skipped if left.sentence(search.trials)],
        "not_released": _not_released(search),
        "history": None
        if backtest is None
        else {
            "checkpoints": backtest.checkpoints,
            "longest_ms": list(backtest.longest_ms),
            "tail": backtest.tail,
            "agreements": [{"what": text, "share": share} for share, text in agreements(backtest, search.limits)],
        },
    }
