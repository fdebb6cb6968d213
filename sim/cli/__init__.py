"""The command `ckptsim`: one thin file per verb.  Heavy packages are imported inside the verbs: `--help` answers in a blink.

People and scripts call it.  It knows every room by its front door, and nothing of how a run goes.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated

import typer

from sim.cli.advise import advise_on
from sim.cli.calibrate import calibrate_environment
from sim.cli.console.errors import interrupted
from sim.cli.console.overview import Overview
from sim.cli.console.stopping import exit_code, is_reported, listen, stopped_by
from sim.cli.explain import explain_checkpoints
from sim.cli.explain_key import print_key
from sim.cli.importing import import_recording
from sim.cli.init import write_example
from sim.cli.report import write_report
from sim.cli.run import run_scenarios
from sim.cli.schema import print_schema
from sim.cli.sweep import run_sweep
from sim.cli.timeline import draw_timeline
from sim.cli.traces import traces_app
from sim.cli.validate import validate_recordings

__all__ = ["app", "main"]

app = typer.Typer(
    name="ckptsim",
    cls=Overview,
    help="What a checkpoint setting will do to a Flink job, before it touches production.",
    epilog="Exit codes: 0 fine, 1 an expectation failed, 2 usage, 3 invalid input,\n4 some cells failed, 5 missing dependency.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_BEGIN, _JOB, _WHY, _SWEEP, _TRUST, _LOOK = "Begin", "My own job", "See why", "Many runs", "Trust", "Look up"
"""Tasks, as the overview groups the verbs."""
app.command("init", rich_help_panel=_BEGIN, short_help="Write a first scenario or sweep, with comments.")(write_example)
app.command("run", rich_help_panel=_BEGIN, short_help="Simulate a scenario and compare its strategies.")(run_scenarios)
app.command("import", rich_help_panel=_JOB, short_help="Turn a real Flink job into a scenario.")(import_recording)
app.command("advise", rich_help_panel=_JOB, short_help="Recommend a setting that keeps your limits.")(advise_on)
app.command("explain", rich_help_panel=_WHY, short_help="Say what one checkpoint waited for, and where.")(explain_checkpoints)
app.command("timeline", rich_help_panel=_WHY, short_help="Write a run for Perfetto, as a trace.")(draw_timeline)
app.command("report", rich_help_panel=_WHY, short_help="Write results as one HTML file.")(write_report)
app.command("sweep", rich_help_panel=_SWEEP, short_help="Run every combination of settings and loads.")(run_sweep)
app.add_typer(traces_app, name="traces", rich_help_panel=_SWEEP, short_help="Read traces of load and failures, cut windows.")
app.command("validate", rich_help_panel=_TRUST, short_help="Compare predictions with recordings.")(validate_recordings)
app.command("calibrate", rich_help_panel=_TRUST, short_help="Estimate constants of your environment.")(calibrate_environment)
app.command("explain-key", rich_help_panel=_LOOK, short_help="Say what a key of a scenario means.")(print_key)
app.command("schema", rich_help_panel=_LOOK, short_help="Print what files and tables may hold.")(print_schema)


def _print_version(requested: bool) -> None:
    if requested:
        from sim import __version__

        print(f"ckptsim {__version__}")
        raise typer.Exit


@app.callback()
def _group(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="The version of ckptsim.")] = False,
) -> None:
    """The command is a group even with one verb."""


def main() -> None:
    """The command, its signals included."""
    atexit.register(gc.freeze)  # an interpreter that ends looks through all that is loaded once more: a fifth of a short run
    gc.set_threshold(500_000)  # what is loaded stays, and a short run makes no garbage: looking for it is a fifth of both
    listen()
    try:
        app()
    except (KeyboardInterrupt, SystemExit):
        if stopped_by() is None or is_reported():
            raise
        interrupted()  # while options were read, or on the way out
        sys.exit(exit_code())
