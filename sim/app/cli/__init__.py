"""The command `ckptsim`: one thin file per verb.  Heavy packages are imported inside the verbs, so that `--help` is fast.

A file that defines a `Verb` adds it: no list names the verbs.

People and scripts call it.  It knows every room by its front door, and nothing of how a run goes.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated

import typer

from sim.app.cli.errors import exit_code, interrupted, is_reported, listen, stopped_by
from sim.app.cli.overview import Overview, Verb
from sim.model.catalog import find_plugins

__all__ = ["app", "main"]

app = typer.Typer(
    name="ckptsim",
    cls=Overview,
    help="Predict how a checkpoint setting will behave on a Flink job, before production.",
    epilog="Exit codes: 0 fine, 1 an expectation failed, 2 usage, 3 invalid input,\n4 some cells failed, 5 missing dependency.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _verb in sorted(find_plugins(sys.modules[__name__], Verb), key=lambda verb: verb.order):
    _verb.add_to(app)


def _print_version(requested: bool) -> None:
    if requested:
        from sim import __version__

        print(f"ckptsim {__version__}")
        raise typer.Exit


@app.callback()
def _group(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


def main(command: typer.Typer = app) -> None:
    """The command, its signals included."""
    # an interpreter that ends looks through all that is loaded once more: a fifth of a short run
    atexit.register(gc.freeze)
    # what is loaded stays, and a short run makes no garbage: looking for it is a fifth of start and of run
    gc.set_threshold(500_000)
    listen()
    try:
        command()
    except (KeyboardInterrupt, SystemExit):
        if stopped_by() is None or is_reported():
            raise
        interrupted()  # while options were read, or on the way out
        sys.exit(exit_code())
