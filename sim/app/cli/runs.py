"""Commands about scenarios: run, sweep, diff, advise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Unpack

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, UserError, print_message
from sim.app.cli.options import Purpose, Verb, argument
from sim.app.cli.terminal import put, put_parts, show
from sim.app.verbs.options import (
    AdviseOptions,
    CheckOptions,
    DiffOptions,
    JsonOption,
    Option,
    RunFileOptions,
    RunOptions,
    SweepOptions,
    WhyOption,
    part_of,
)

if TYPE_CHECKING:
    from sim.app.verbs.advise import Advice
    from sim.app.verbs.diff import Diff
    from sim.app.verbs.run import RunOutcome
    from sim.app.verbs.sweep import Sweep
    from sim.results.columns import ResultColumn
    from sim.results.side_by_side import StrategyRow
    from sim.studies.comparison import Comparison


# ---- ``ckptsim run``


def run_scenarios(
    scenarios: Annotated[list[Path], argument("SCENARIO", "Scenario files (YAML).")],
    *,
    columns: Annotated[
        str | None, Option("Columns of the table, e.g. p50,max,written, or all. (Default: what fits.)", metavar="NAMES")
    ] = None,
    as_json: JsonOption = False,
    **options: Unpack[RunFileOptions],
) -> Code:
    """Simulate every checkpoint strategy of a scenario and compare them."""
    from sim.app.verbs.run import default_folder, read_file, run

    shown = _columns_named(columns)  # a wrong name is told before the run
    requests = [read_file(path, **options) for path in scenarios]
    run_options = part_of(RunOptions, options)
    code, out = Code.FINE, run_options["folder"]
    for request in requests:
        default = default_folder(request.study)
        run_options["folder"] = default if out is None else Path(out) / default.name if len(requests) > 1 else out
        with Console(partial(_show_run, columns=shown, must_fit=columns is None), as_json=as_json) as console:
            outcome = run(request, listener=console, **run_options)
        print_message(str(run_options["folder"]))
        code = max(code, _exit_code(outcome))
    return code


def _exit_code(outcome: RunOutcome) -> Code:
    if outcome.comparison.errors:
        return Code.CELLS_FAILED
    if outcome.comparison.violations:
        return Code.VIOLATED
    return Code.FINE if outcome.keeps_expectations else Code.EXPECTATION_FAILED


def _show_run(found: RunOutcome, columns: Sequence[ResultColumn], *, must_fit: bool) -> None:
    """Print the table of strategies with these columns (`must_fit`: those that fit), the verdict and further outcomes."""
    comparison = found.comparison
    if comparison.question:
        put(f"{comparison.question}\n")
    if comparison.strategies:
        _show_strategies(comparison.strategies, columns, must_fit=must_fit)
        for line in _missing_percentiles(comparison, columns, p99=not must_fit):
            put(f"\n{line}")
        put(f"\n{comparison.verdict}")
    for note in comparison.notes:
        put(note)
    if (consequences := comparison.consequences_texts()) is not None:
        print()
        show(*consequences, spare=_SPARE_OF_FAILURES)
        if sentence := comparison.consequences_sentence:
            put(f"\n{sentence}")
        elif found.outcomes and not comparison.stored:
            print()
    for section in comparison.stored:
        put(f"\n{section.title}")
        show(section.header, section.rows)
    if comparison.stored and found.expectations:
        print()
    for name, error in comparison.errors.items():
        print_message(f"{name}: {error}")
    for name, violations in comparison.violations.items():
        _print_violations(name, violations)
    for outcome in found.outcomes:
        put(outcome, is_red=outcome.startswith(("expectation failed", "expectation unknown")))


def _show_strategies(strategies: Sequence[StrategyRow], columns: Sequence[ResultColumn], *, must_fit: bool) -> None:
    """Print the table of strategies, and below it their first uploads with the columns that these have."""
    from sim.results.formats import MISSING
    from sim.results.side_by_side import texts

    header, rows = texts(strategies, columns)
    count = len(rows) - sum(line.first is not None for line in strategies)
    # what tells least of durations first; a heading may have vertices in brackets
    spare = [name for word in _SPARE for name in header if name.partition(" (")[0] == word] if must_fit else ()
    show(header, rows[:count], spare=spare, more="--columns all")
    if first := rows[count:]:
        end = header.index(_PATH_BEGINS) if _PATH_BEGINS in header else len(header)
        kept = [i for i in range(end) if any(row[i] != MISSING for row in first)]
        print()
        show([header[i] for i in kept], [[row[i] for i in kept] for row in first], spare=["completed (n)", "p50"])


def _missing_percentiles(comparison: Comparison, columns: Sequence[ResultColumn], *, p99: bool) -> Iterator[str]:
    """Yield for which percentiles a strategy completes too few checkpoints, and the run that completes enough."""
    from sim.results.estimates import longer_run

    for column in columns:
        if column.name not in ("end_to_end_p90_ms", *["end_to_end_p99_ms"] * p99):
            continue
        few = [
            own
            for own in comparison.strategies
            if 0 < own.summary.completed < column.smallest_sample and not own.is_over
        ]
        if few and (p99 or len(few) < len(comparison.strategies)):  # a column that nobody has is not shown
            least = min(few, key=lambda own: own.summary.completed)
            runs = comparison.replications[least.label]
            longer = longer_run(math.ceil(column.smallest_sample / len(runs.results)), *runs.checkpoint_times_ms)
            yield f"{column.heading} needs {column.smallest_sample} checkpoints, {least.label} completes {least.summary.completed}: {longer}"


_SPARE: Final = (
    "emitted",
    "vs none",
    "sync",
    "back-pressured",
    "busiest",
    "in flight",
    "throughput",
    "alignment",
    "async",
    "start delay",
    "written",
    "p99",
    "completed",
    "p90",
)
"""Columns that a terminal which is too narrow does not show, in this order."""
_SPARE_OF_FAILURES: Final = (
    "committed",
    "commits",
    "job",
    "visible p50",
    "failures",
    "replayed",
    "visible max",
    "largest lag",
)
"""The same for the table of failures and commits."""
_PATH_BEGINS: Final = "start delay"
"""Heading from which columns are about the path of a checkpoint; first uploads are shown with those before it."""


def _columns_named(names: str | None) -> Sequence[ResultColumn]:
    """Return the columns with these headings, separated by commas, or all.  UserError: there is none with such a heading."""
    from sim.results.summary import PRINTED

    if names in (None, "all"):
        return PRINTED
    known = {column.heading.partition(" (")[0]: column for column in PRINTED}
    wanted = [name.strip().lower() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        raise UserError(f"--columns: no column '{unknown[0]}': there are {', '.join(known)}", Code.USAGE)
    return [known[name] for name in wanted]


_MAX_PRINTED_VIOLATIONS: Final = 6


def _print_violations(strategy: str, violations: Sequence[str]) -> None:
    """Print the first violation in full and the first line of the next ones; violations.txt in the folder has all."""
    put(f"\nviolation: {strategy}: {violations[0]}")
    for violation in violations[1:_MAX_PRINTED_VIOLATIONS]:
        print(f"  also {violation.partition(chr(10))[0]}")
    if len(violations) > 1:
        print(f"  {len(violations)} violations in all, in the file violations.txt of its folder below")


RUN_VERB = Verb("run", Purpose.BEGIN, 2, "Simulate a scenario and compare its strategies.", run_scenarios)


# ---- ``ckptsim check``


def check_files(
    files: Annotated[list[Path], argument("FILE", "Scenarios and sweep files (YAML).")], **options: Unpack[CheckOptions]
) -> Code:
    """Validate scenarios and sweep files without running them: all mistakes, warnings, and what would run."""
    from sim.app.verbs.sweep import check_file
    from sim.model.schema.text import ScenarioError

    code = Code.FINE
    for file in files:
        try:
            put(check_file(file, listener=Console(put), **options))
        except ScenarioError as error:
            print_message(str(error))
            code = Code.INVALID_INPUT
    return code


CHECK_VERB = Verb("check", Purpose.BEGIN, 3, "Validate files without running them.", check_files)


# ---- ``ckptsim sweep``


def run_sweep(
    file: Annotated[Path, argument("SWEEP|SCENARIO", "A sweep file or a scenario (YAML).")],
    *,
    as_json: JsonOption = False,
    **options: Unpack[SweepOptions],
) -> Code:
    """Run every combination of the lists in a sweep file, in a scenario, and of --set.

    Each combination is a cell, one row of the result table.
    """
    from sim.app.verbs.sweep import sweep

    with Console(_show_sweep, as_json=as_json) as console:
        swept = sweep(file, listener=console, **options)
        (print_message if as_json else put)(swept.counted)
    if not swept.failed.empty:
        return Code.CELLS_FAILED
    return Code.FINE if swept.broken.empty else Code.VIOLATED


def _show_sweep(swept: Sweep) -> None:
    """Print the answer of a sweep, if its file asks a question (`answer:`)."""
    if swept.definition.question is not None:
        put_parts(swept.answer)
        put("")


SWEEP_VERB = Verb("sweep", Purpose.SWEEP, 1, "Run every combination of settings and loads.", run_sweep)


# ---- ``ckptsim diff``

_DIFF_HELP = "A scenario, or a source accepted by import."


def diff_of(
    a: Annotated[Path, argument("A", _DIFF_HELP)],
    b: Annotated[Path, argument("B", "Same as A.")],
    *,
    as_json: JsonOption = False,
    **options: Unpack[DiffOptions],
) -> Code:
    """Compare the inputs of A and B, and the results side by side.

    Both sides use the same seeds, so that differences are not noise.
    """
    from sim.app.verbs.diff import diff

    with Console(_show_diff, as_json=as_json, indent=1) as console:
        difference = diff(a, b, listener=console, **options)
    return Code.CELLS_FAILED if difference.has_failed else Code.VIOLATED if difference.has_violations else Code.FINE


def _show_diff(difference: Diff) -> None:
    put_parts(difference.parts)
    if difference.folder is not None:
        put(f"\n{difference.folder}: the answer (diff.json) and every run (results.parquet)")


DIFF_VERB = Verb("diff", Purpose.WHY, 4, "Compare two jobs and the effect of each difference.", diff_of)


# ---- ``ckptsim advise``

_ADVISE_HELP = "A scenario, or a source accepted by import: a recording, saved REST responses, an archive, logs."


def advise_on(
    source: Annotated[Path, argument("SOURCE", _ADVISE_HELP)],
    *,
    as_json: JsonOption = False,
    why: WhyOption = False,
    **options: Unpack[AdviseOptions],
) -> Code:
    """Simulate barrier modes and intervals on a job, with and without a failure, and recommend a setting that meets your limits.

    The output folder holds all runs, the job and a sweep file of the trials.

    Run the same command to resume after an interruption.
    """
    from sim.app.verbs.advise import advise

    with Console(partial(_show_advice, why=why), as_json=as_json, indent=1) as console:
        advised = advise(source, listener=console, **options)
    if advised.trouble:
        return Code.CELLS_FAILED
    return Code.FINE if advised.report.chosen or not advised.report.is_setting else Code.EXPECTATION_FAILED


def _show_advice(advised: Advice, *, why: bool) -> None:
    """Print what fits a terminal; with `why`, all of the advice."""
    put_parts(advised.report.parts if why else advised.report.screen)
    kept = "the job, the sweep (sweep.yaml) and every run (results.parquet)" if len(advised.table) else "the job"
    place = f"{advised.folder}: {kept}; {advised.work_s:.0f} s of work (--budget) in all"
    put(f"\n{place}{'' if why or not advised.report.is_setting else '. --why prints reasons and all settings tried'}")


ADVISE_VERB = Verb("advise", Purpose.JOB, 2, "Recommend barriers and interval for your limits.", advise_on)
