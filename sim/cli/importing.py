"""``ckptsim import``: a real job becomes a scenario, read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.options import DeadlineOption, FlinkOption, HeaderOption, JobOption, job_place

if TYPE_CHECKING:
    from sim.verbs.importing import ImportedJob

WHAT = "http(s)://HOST:8081, a folder or zip of --save, an archive of a history server, logs of a JobManager, or a recording."


def import_recording(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=WHAT, show_default=False)],
    job: JobOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout; what was seen is kept beside it.", show_default=False),
    ] = None,
    sample: Annotated[str, typer.Option("--sample", metavar="DURATION", help="Live jobs: how long metrics are watched.")] = "60 s",
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FOLDER", help="Live jobs: keep all answers, to be imported again elsewhere.", show_default=False),
    ] = None,
    keep_secrets: Annotated[bool, typer.Option("--keep-secrets", help="Passwords, keys and tokens, too: else --save masks them.")] = False,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
    compare: Annotated[bool, typer.Option("--compare", help="Under three kinds of barriers instead of its own.")] = False,
    backtest: Annotated[
        bool, typer.Option("--backtest/--no-backtest", help="Simulate the job as it is, and hold that to its history of checkpoints.")
    ] = True,
    flink: FlinkOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Scenario, UNKNOWN values and what is not modelled as one JSON object.")] = False,
) -> None:
    """Turn a real Flink job into a scenario: of a recording the configuration alone, of any other source what was measured.

    Every value says where it comes from; what the source does not tell is marked UNKNOWN, with the question to answer.
    """
    with speaking():
        from sim.verbs.importing import import_job

        console = Console(lambda imported: _show(imported, out, as_json=as_json))
        import_job(
            job_place(sources, job, deadline, header), out=out, sample=sample, save=save, keep_secrets=keep_secrets, compare=compare,
            backtest=backtest, flink=flink, listener=console,
        )  # fmt: skip
        console.finish()


def _show(imported: ImportedJob, out: Path | None, *, as_json: bool) -> None:
    """The scenario on stdout if it is in no file; as JSON in any case."""
    from sim.scenario.text.writer import placed

    scenario = placed(imported.text, None)
    if as_json:
        from sim.verbs.known_issues import known_issues_json

        found = {"scenario": scenario, "unknown": imported.unknown, "not_modelled": imported.not_modelled}
        print(json.dumps({**found, "known_issues": known_issues_json(imported.scenarios)}))
    elif out is None:
        print(scenario, end="")


VERB = Verb("import", Purpose.JOB, 1, "Turn a real Flink job into a scenario.", import_recording)
