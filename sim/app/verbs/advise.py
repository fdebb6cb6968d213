"""`advise`: recommend a setting for a job and its limits, with reasons and Flink configuration, and store all trial runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack, cast

import pandas as pd

from sim.advice.job import job_file, prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import Report, no_advice, report
from sim.advice.restart_times import restart_times_report
from sim.advice.trials import FAILURES, INTERVAL, PROTOCOL, Bench, Failure, TrialRunner
from sim.app.report.results_page import unknown_values
from sim.app.verbs.common import (
    SILENT,
    Displayed,
    Listener,
    OptionError,
    Stopped,
    Work,
    parse_option,
    parse_positive_seconds,
    writable_folder,
)
from sim.app.verbs.findings import Remark, job_findings, keep_answer, of_problem, report_remarks
from sim.app.verbs.importing import draft_of, text_of, with_backtest
from sim.app.verbs.options import AdviseOptions, FilePath, changes_as_lines, command_line, path_of, with_all_options
from sim.app.verbs.study import Study, load
from sim.jobs.infer.heap import last_restart_ms
from sim.jobs.reading import read_source
from sim.jobs.source.job_log import where_to_look
from sim.jobs.source.recorded_job import ConfiguredJob
from sim.model.files import locked
from sim.model.frozen import frozen
from sim.model.schema.flink_file import flink_change, read_flink_file
from sim.model.schema.history_file import contradiction
from sim.model.schema.prices import load_prices
from sim.model.units import parse_share
from sim.results.formats import TextTable
from sim.studies.run_folder import ADVICE


@frozen
class AdvisedJob:
    """The job to recommend a setting for."""

    name: str
    source: Path  # the scenario file, or what the job was imported from
    text: str | None = None  # the imported scenario; None: `source` is the scenario
    changes: tuple[str, ...] = ()  # ``key=value``
    findings: tuple[str, ...] = ()  # messages of the import
    restart_ms: float | None = None  # duration of the last recorded restart


@dataclass(frozen=True, repr=False, eq=False)
class Advice(Displayed):
    """The result of `advise`: the recommended setting, its reasons and their confidence, and the rows of its trial runs."""

    report: Report
    folder: Path
    file: Path  # the scenario of the job
    changes: tuple[str, ...]  # ``key=value``
    work_s: float  # of all runs, as `--budget` counts it
    table: pd.DataFrame = field(repr=False)  # a row per run

    @property
    def trouble(self) -> str:
        """Return how many runs failed, or violated an invariant with the advised setting, with the first error; "" if none did.

        Under another setting a violation, e.g. lost output, is a reason not to advise it.
        """
        failed, broken = self.table[self.table["status"] != "ok"], self.table[self.table["violations"] > 0]
        if len(failed):
            return f"{len(failed)} runs failed, the first: {failed.iloc[0]['error']}"
        if self.setting is not None:
            broken = broken[(broken[INTERVAL] == self.setting[0]) & (broken[PROTOCOL] == self.setting[1])]
        if len(broken):
            return f"{len(broken)} runs broke what checkpoints promise, the first: {broken.iloc[0]['violation'].splitlines()[0]}"
        return ""

    @property
    def verdict(self) -> str:
        """Return the first sentence of the advice: what to do, and which limits that keeps."""
        return self.report.verdict

    @property
    def parts(self) -> Sequence[str | TextTable]:
        """Return the texts and tables of the advice, in the order in which they are printed."""
        return self.report.parts

    @property
    def setting(self) -> tuple[str, str] | None:
        """Return the recommended (interval, barrier mode), e.g. ("10 s", "unaligned"), or None if no trial keeps the limits."""
        return None if self.report.chosen is None else self.report.chosen.name

    @property
    def configuration(self) -> str:
        """Return the recommended lines of the Flink configuration, or "" without a recommendation."""
        return str(self.report.data["configuration"])

    @property
    def study(self) -> Study:
        """Return the job with the recommended setting, or unchanged without a recommendation."""
        advised = {} if self.report.advised is None else dict(self.report.advised.point)
        return load(self.file, self.changes).with_(advised)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the advice for `--json`; times in ms, shares between 0 and 1."""
        return self.report.plain()

    def _parts(self) -> Sequence[str | TextTable]:
        return self.parts


def job_of(source: Study | FilePath, listener: Listener = SILENT) -> AdvisedJob:
    """Return the job of a study or a scenario file, or import it from any other source.  RecordingError: the import fails."""
    if isinstance(source, Study):
        source.single("advise")
        origin = source.origin
        return AdvisedJob(origin.name, origin.file, None if origin.file.is_file() else source.text, source.pinned)
    source = Path(source)
    if source.suffix in (".yaml", ".yml"):
        return AdvisedJob(source.stem, source)
    read = read_source([source])
    draft = draft_of(read)
    findings = [Remark(f"not modelled: {lost}") for lost in draft.not_modelled]
    if draft.counts_text:
        findings.append(Remark(draft.counts_text))
    lines = report_remarks(findings, listener)
    complete, history = with_backtest(read, draft, listener)
    name = read.name if isinstance(read, ConfiguredJob) else source.name.partition(".")[0]
    findings_told = (*lines, *filter(None, ["\n".join(history)]))
    return AdvisedJob(name, source, text_of(complete), findings=findings_told, restart_ms=last_restart_ms(read))


@with_all_options(AdviseOptions)
def advise(source: Study | FilePath, *, listener: Listener = SILENT, **given: Unpack[AdviseOptions]) -> Advice:
    """Simulate barrier modes and intervals on a job, with and without a failure, and recommend a setting that meets the limits.

    `source`: a study of one combination, a scenario file, or a source that `import_job` reads.  Limits, all optional:
    `p99` of checkpoint durations ("2 s"), `recovery` time ("2 min"), `loss` of throughput ("3 %"), delay until output of
    transactional sinks is `visible` ("30 s").  When the CPU `budget` or the time limit `within` is reached, the
    recommendation is based on the finished runs, and skipped candidates are listed.

    Runs and advice are stored in the `folder` (``runs/advise-<name>`` by default).

    ScenarioError, RecordingError: the source cannot be read, or is a job that advise does not support.  OptionError (a UnitError):
    an invalid limit.
    """
    limits, failure, mtbf_ms = _limits(given), _failure(given["failure"]), _ms("mtbf", given["mtbf"])
    within_s, budget_s, ahead_s = (
        parse_positive_seconds(name, given[name]) for name in ("within", "budget", "horizon")
    )
    job = job_of(source, listener)
    job = replace(job, changes=(*job.changes, *changes_as_lines(given["changes"])))
    prices = load_prices(given["prices"])
    flink = path_of(given["flink"])
    deployed = None if flink is None else read_flink_file(flink)
    folder = writable_folder(path_of(given["folder"]) or Path("runs") / f"advise-{job.name}")
    runner = TrialRunner(
        folder,
        jobs=given["jobs"],
        master=given["master"],
        conf=given["conf"],
        budget_s=budget_s,
        within_s=within_s,
    )
    work = Work("trying settings", round(budget_s * 1e9), None, "runs", lambda: runner.best, runner.left_s)
    trying = listener.progress(work)
    try:
        with locked(folder, listener.message), runner.workers, trying as runner.watch:
            file = job_file(job.source, job.text, folder)
            changes = job.changes if flink is None else (flink_change(flink, file), *job.changes)
            bench = prepare_bench(
                file,
                changes,
                given["load"],
                recovery_ms=limits.recovery_ms,
                ahead_ns=round(ahead_s * 1e9),
                failure=failure,
                sees_output=limits.visible_ms is not None,
            )
            bench.prices, bench.conf = prices, deployed
            findings = (*job.findings, *report_remarks(_findings(job, bench), listener))
            if contradiction(bench.backtest):
                found = no_advice(bench, limits, _what_to_do(bench))
            elif given["restart_times"]:
                found = restart_times_report(bench, job.restart_ms)
            else:
                found = report(bench, limits, mtbf_ms, runner, folder, max_replications=given["replications"])
    except KeyboardInterrupt:
        raise Stopped(f"results so far are in {folder}; run the same command to resume") from None
    advised = Advice(found, folder, file, changes, runner.spent_s(), runner.collected())
    for finding in runner.store.report_invalid_files():
        listener.message(finding)
    listener.result(advised)
    _keep(advised, job, given, findings)
    if advised.trouble:
        listener.message(advised.trouble)
    return advised


def _what_to_do(bench: Bench) -> list[str]:
    """Return first steps for a job most of whose checkpoints fail, since the simulation lacks the cause of the failures."""
    failures = None if bench.backtest is None else bench.backtest.failures
    found = list(where_to_look([failures.reason] if failures else []))
    if failures and failures.job_failures:
        tolerable = bench.load(bench.common).checkpoint.tolerable_failed
        found.append(
            f"The job tolerates {tolerable} failed checkpoints in a row (execution.checkpointing.tolerable-failed-checkpoints): more let "
            "it run on while the cause is looked for, and so does a longer execution.checkpointing.timeout if they expire."
        )
    return found


def _findings(job: AdvisedJob, bench: Bench) -> list[Remark]:
    """Return remarks about the job; the backtest is left out for an import, which has reported it already."""
    scenario = bench.load(bench.common)
    return [
        *map(of_problem, bench.warnings),
        *job_findings(scenario.name, [scenario], bench.backtest if job.text is None else None),
    ]


def _keep(advised: Advice, job: AdvisedJob, given: AdviseOptions, findings: Sequence[str]) -> None:
    """Store the advice for `report`."""
    keep_answer(
        advised.folder,
        ADVICE,
        title=f"Advice for {job.name}",
        question="Which checkpoint settings keep the limits?"
        if advised.report.is_setting
        else "How long does a restart take, by parallelism?",
        verdict=advised.verdict,
        parts=advised.parts[1:],
        findings=findings,
        assumptions=[
            *unknown_values(advised.file.read_text(encoding="utf-8")),
            "Simulated; what is marked UNKNOWN in the job was varied if its table says so.",
        ],
        data=advised.facts,
        command=command_line(
            "advise", [job.source], AdviseOptions, {**given, "changes": job.changes, "folder": advised.folder}
        ),
    )


def _limits(given: AdviseOptions) -> Limits:
    """Return the limits given as options.  OptionError: a value is not a quantity."""
    loss = None if given["loss"] is None else float(parse_option("loss", given["loss"], parse_share))
    return Limits(_ms("recovery", given["recovery"]), _ms("p99", given["p99"]), loss, _ms("visible", given["visible"]))


def _failure(name: str) -> Failure:
    """Return the name of the failure.  OptionError: it is unknown."""
    if name not in FAILURES:
        raise OptionError("failure", f"expected {' or '.join(FAILURES)}, not '{name}'")
    return cast("Failure", name)


def _ms(option: str, text: str | None) -> float | None:
    """Return a duration in ms, or None if the option is not given.  OptionError: not a positive duration."""
    return None if text is None else 1e3 * parse_positive_seconds(option, text)
