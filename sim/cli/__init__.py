"""The command `ckptsim`: one thin file per verb.  Whatever is heavy is imported inside the verbs: `--help` answers in a blink.

People and scripts call it.  It knows every room by its front door, and nothing of how a run goes.
"""

from __future__ import annotations

import atexit
import gc
import sys

import typer

from sim.cli.advise import advise_on
from sim.cli.calibrate import calibrate_environment
from sim.cli.console.errors import interrupted
from sim.cli.console.stopping import exit_code, is_reported, listen, stopped_by
from sim.cli.importing import import_recording
from sim.cli.looking.explain import explain_checkpoints
from sim.cli.looking.report import write_report
from sim.cli.looking.timeline import draw_timeline
from sim.cli.run import run_scenarios
from sim.cli.schema import print_schema
from sim.cli.sweep import run_sweep
from sim.cli.traces import traces_app
from sim.cli.validate import validate_recordings

__all__ = ["app", "main"]

app = typer.Typer(
    name="ckptsim",
    help="What a checkpoint setting will do to a Flink job, before it touches production.",
    epilog="Exit codes: 0 fine, 1 an expectation failed, 2 usage, 3 invalid input, 4 some cells failed, 5 missing dependency.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("run")(run_scenarios)
app.command("explain")(explain_checkpoints)
app.command("timeline")(draw_timeline)
app.command("report")(write_report)
app.command("sweep")(run_sweep)
app.command("import")(import_recording)
app.command("validate")(validate_recordings)
app.command("calibrate")(calibrate_environment)
app.command("advise")(advise_on)
app.add_typer(traces_app, name="traces")
app.command("schema")(print_schema)


@app.callback()
def _group() -> None:
    """More than one verb, whatever is registered."""


def main() -> None:
    """The command, its signals included."""
    atexit.register(gc.freeze)  # an interpreter that ends looks through all that is loaded once more: a fifth of a short run
    gc.set_threshold(50_000)  # what is loaded stays: looking through it for garbage, again and again, is a fifth of the start
    listen()
    try:
        app()
    except (KeyboardInterrupt, SystemExit):
        if stopped_by() is None or is_reported():
            raise
        interrupted()  # while options were read, or on the way out
        sys.exit(exit_code())
