"""Commands about real jobs and results: import, explain, timeline, report, watch."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, UserError, print_message, speaking, stoppable
from sim.app.cli.options import (
    DeadlineOption,
    Engine,
    EngineOption,
    FlinkOption,
    HeaderOption,
    JobOption,
    SetOption,
    StrategyOption,
    header_of,
    job_place,
)
from sim.app.cli.overview import Purpose, Verb
from sim.app.cli.runs import show_run, show_sweep
from sim.app.cli.terminal import put
from sim.model.text import Address

if TYPE_CHECKING:
    from sim.app.verbs.importing import ImportedJob
    from sim.app.verbs.pictures import Made, WrittenReport, WrittenTimeline


# ---- ``ckptsim import``: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording.

IMPORT_HELP = "http(s)://HOST:8081, a folder or zip of --save, an archive of a history server, logs of a JobManager, or a recording."


def import_recording(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=IMPORT_HELP, show_default=False)],
    job: JobOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Instead of stdout; what was seen is kept beside it.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str, typer.Option("--sample", metavar="DURATION", help="Live jobs: how long metrics are watched.")
    ] = "60 s",
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FOLDER",
            help="Live jobs: keep all answers, to be imported again elsewhere.",
            show_default=False,
        ),
    ] = None,
    keep_secrets: Annotated[
        bool, typer.Option("--keep-secrets", help="Passwords, keys and tokens, too: else --save masks them.")
    ] = False,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Under three kinds of barriers instead of its own.")
    ] = False,
    backtest: Annotated[
        bool,
        typer.Option(
            "--backtest/--no-backtest", help="Simulate the job as it is, and hold that to its history of checkpoints."
        ),
    ] = True,
    flink: FlinkOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Scenario, UNKNOWN values and what is not modelled as one JSON object.")
    ] = False,
) -> None:
    """Turn a real Flink job into a scenario: of a recording the configuration alone, of any other source what was measured.

    Every value says where it comes from; what the source does not tell is marked UNKNOWN, with the question to answer.
    """
    with speaking():
        from sim.app.verbs.importing import import_job

        console = Console(lambda imported: _show(imported, out, as_json=as_json))
        import_job(
            job_place(sources, job, deadline, header),
            out=out,
            sample=sample,
            save=save,
            keep_secrets=keep_secrets,
            compare=compare,
            backtest=backtest,
            flink=flink,
            listener=console,
        )
        console.finish()


def _show(imported: ImportedJob, out: Path | None, *, as_json: bool) -> None:
    """The scenario on stdout if it is in no file; as JSON in any case."""
    from sim.model.schema.writer import placed

    scenario = placed(imported.text, None)
    if as_json:
        from sim.app.verbs.findings import known_issues_json

        found = {"scenario": scenario, "unknown": imported.unknown, "not_modelled": imported.not_modelled}
        print(json.dumps({**found, "known_issues": known_issues_json(imported.scenarios)}))
    elif out is None:
        print(scenario, end="")


IMPORT_VERB = Verb("import", Purpose.JOB, 1, "Turn a real Flink job into a scenario.", import_recording)


# ---- ``ckptsim explain``: where the time of a checkpoint went, simulated or real, in sentences and as a waterfall.

WHAT = (
    "A folder of results, or a scenario file.  Of a real job: http(s)://HOST:8081, another source of import, or one answer; "
    "-: standard input."
)


def explain_checkpoints(
    run: Annotated[str, typer.Argument(metavar="RUN", help=WHAT, show_default=False)],
    checkpoint: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Its id. (Default: a first upload, the median and the slowest; of a real job, the slow ones.)",
            show_default=False,
        ),
    ] = None,
    strategy: StrategyOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Simulate what each part would save.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of text; times in ns.")] = False,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Explain one checkpoint: what it waited for, where, and why.  Of a real job, also what its slow ones have in common."""
    with ExitStack() as stack, speaking(), stoppable("nothing is kept"):
        from sim.app.verbs.explain import explain_job, is_real

        run = stack.enter_context(named_input(run))
        console = Console(lambda found: print(json.dumps(found.plain)) if as_json else put(found.text))
        if is_real(run):
            refuse("is for simulated runs", strategy=strategy is not None, set=bool(overrides))
            explain_job(job_place([run], job, deadline, header), checkpoint=checkpoint, verify=verify, listener=console)
        else:
            refuse("is for real jobs", job=job is not None, deadline=deadline is not None, header=bool(header))
            from sim.app.verbs.explain import explain_runs
            from sim.studies.run_folder import runs_of

            explain_runs(
                runs_of(Path(run), overrides or ()),
                checkpoint,
                strategy=strategy,
                verify=verify,
                engine=engine.value,
                listener=console,
            )
        console.finish()


@contextmanager
def named_input(name: str) -> Iterator[str]:
    """The file of this name; of ``-`` what is given to the command, in a file that is there meanwhile."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "standard-input"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(file)


def refuse(why: str, **given: bool) -> None:
    """Options that do not go with what was named end the command."""
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"--{option}: {why}", Code.USAGE)


VERB = Verb("explain", Purpose.WHY, 1, "Say what one checkpoint waited for, and where.", explain_checkpoints)


# ---- ``ckptsim timeline``: a run as a file that Perfetto opens.


def draw_timeline(
    run: Annotated[str, typer.Argument(metavar="RUN", help=WHAT, show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.json).", show_default=False)],
    strategy: StrategyOption = None,
    begin: Annotated[str, typer.Option("--from", metavar="TIME", help="Beginning of the window, e.g. '30 s'.")] = "0 s",
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Its end. (Default: of the run.)", show_default=False)
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Between two looks at threads and queues. (Default: 1/1000.)", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Events at most: viewers open about a million.")] = 300_000,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    checkpoint: Annotated[
        int | None, typer.Option(min=1, help="Of a real job: only the one of this id.", show_default=False)
    ] = None,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Write what every subtask, file and barrier did as Trace Event JSON, for ui.perfetto.dev.  Of a real job, what Flink tells of it."""
    with speaking(), stoppable("nothing is kept"):
        from sim.app.verbs.explain import is_real

        console = Console(_show_timeline)
        if is_real(run):
            refuse("is for simulated runs", strategy=strategy is not None, set=bool(overrides), step=step is not None)
            from sim.app.verbs.pictures import draw_job

            place = job_place([run], job, deadline, header)
            draw_job(place, out, checkpoint=checkpoint, begin=begin, end=end, limit=limit, listener=console)
        else:
            given = {"checkpoint": checkpoint is not None, "job": job is not None, "deadline": deadline is not None}
            refuse("is for real jobs", **given, header=bool(header))
            from sim.app.verbs.pictures import write_timeline
            from sim.studies.run_folder import runs_of

            write_timeline(
                runs_of(Path(run), overrides or ()),
                out,
                strategy=strategy,
                begin=begin,
                end=end,
                step=step,
                limit=limit,
                engine=engine.value,
                listener=console,
            )
        console.finish()


def _show_timeline(written: WrittenTimeline) -> None:
    if written.others:
        print_message(f"of {written.strategy}; --strategy picks another: {', '.join(written.others)}")
    if written.left_out:
        print_message(
            f"{written.left_out} events after {written.end} are left out: narrow the window with --from and --to, or raise --limit"
        )
    print_message(f"{written.file}: open it with ui.perfetto.dev")


TIMELINE_VERB = Verb("timeline", Purpose.WHY, 2, "Write a run for Perfetto, as a trace.", draw_timeline)


# ---- ``ckptsim report``: results as one HTML file.

REPORT_HELP = "What run, sweep or advise kept; or a file, which is run first.  Of a real job: http(s)://HOST:8081, or whatever else import reads."


def write_report(
    results: Annotated[str, typer.Argument(metavar="FOLDER|FILE|URL", help=REPORT_HELP, show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).", show_default=False)],
    checkpoint: Annotated[
        int | None, typer.Option(min=1, help="Of a real job, its id. (Default: the slow ones.)", show_default=False)
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Of a real job: simulate what would have helped.")] = False,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Write results, or what a real job's checkpoints spent their time on, as one HTML file."""
    with speaking():
        from sim.app.verbs.explain import is_real
        from sim.app.verbs.pictures import report_job
        from sim.app.verbs.pictures import write_report as write

        console = Console(_show_report)
        if is_real(results):
            with stoppable("nothing is kept"):
                place = job_place([results], job, deadline, header)
                written = report_job(place, out, checkpoint=checkpoint, verify=verify, listener=console)
        else:
            given = {"checkpoint": checkpoint is not None, "verify": verify, "job": job is not None}
            refuse("is for real jobs", **given, deadline=deadline is not None, header=bool(header))
            written = write(Path(results), out, listener=console)
        console.finish()
        if written.file is None:
            raise typer.Exit(Code.CELLS_FAILED)


def _show_report(found: WrittenReport | Made) -> None:
    """Print the results that were made for the page, as their verb does."""
    from sim.app.verbs.pictures import WrittenReport
    from sim.app.verbs.sweep import Sweep

    if isinstance(found, WrittenReport):
        print_message(str(found.file))
    elif isinstance(found, Sweep):
        show_sweep(found)
        put(found.counted)
    else:
        show_run(found)
        print_message(str(found.folder))


REPORT_VERB = Verb("report", Purpose.WHY, 3, "Write results as one HTML file.", write_report)


# ---- ``ckptsim watch``: a running job, its checkpoints held to a forecast, line by line.


def watch_job(
    url: Annotated[str, typer.Argument(metavar="URL", help="The JobManager, http(s)://HOST:8081.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder that is its memory. (Default: watched/HOST-PORT.)", show_default=False),
    ] = None,
    every: Annotated[str, typer.Option(metavar="DURATION", help="From one look to the next.")] = "60 s",
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Then it ends. (Default: with Ctrl-C.)", show_default=False),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="For p90 of checkpoints. (Default: their interval.)", show_default=False),
    ] = None,
    sample: Annotated[
        str, typer.Option(metavar="DURATION", help="How long metrics are watched for a forecast.")
    ] = "60 s",
    listen: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve /metrics for Prometheus, and the page.", show_default=False),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Metrics for the textfile collector. (Default: ckptsim.prom in the folder.)",
            show_default=False,
        ),
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Make a new forecast, of the job as it is now.")] = False,
    job: JobOption = None,
    header: HeaderOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="An event per line as JSON.")] = False,
) -> None:
    """Look at a running job now and then: hold its checkpoints to a forecast, and say what changes and why."""
    with speaking():
        from sim.app.verbs.watch import WatchOptions, watch

        console = Console(lambda event: print(json.dumps(event.plain)) if as_json else put(event.line))
        options = WatchOptions(
            url,
            out or Path("watched") / _name(url),
            job,
            every,
            duration,
            sample,
            limit,
            listen,
            metrics,
            renew,
            dict(map(header_of, header or ())),
        )
        watch(options, listener=console)
        console.finish()


def _name(url: str) -> str:
    """``jobmanager-8081``: a folder for each address."""
    place = urlsplit(str(Address(url))).netloc
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in place) or "job"


WATCH_VERB = Verb("watch", Purpose.JOB, 3, "Hold a running job to its forecast.", watch_job)
