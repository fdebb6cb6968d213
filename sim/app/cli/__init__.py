"""The command `ckptsim`.  Verbs import heavy packages inside their functions, so that `--help` is fast.

Every `Verb` constant in a module of this package is registered automatically; there is no list of verbs.

This layer parses the command line, calls `sim.app.verbs`, prints the result and sets the exit code.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated

import typer

from sim.app.cli.errors import exit_code, interrupted, is_reported, listen, stopped_by
from sim.app.cli.options import Overview, Verb
from sim.model.catalogs import find_definitions

__all__ = ["app", "main"]

app = typer.Typer(
    name="ckptsim",
    cls=Overview,
    help="Predict how a checkpoint setting will behave on a Flink job, before production.",
    epilog="Exit codes: 0 success, 1 expectation, 2 usage, 3 input, 4 runs, 5 dependency.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _verb in sorted(find_definitions(sys.modules[__name__], Verb), key=lambda verb: verb.order):
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
    """Declare the options of `ckptsim` without a verb."""


def main(command: typer.Typer = app) -> None:
    """Run the command with its signal handlers."""
    # skip the garbage collection at interpreter exit: it takes a fifth of a short run
    atexit.register(gc.freeze)
    # collect rarely: imported modules stay, short runs create little garbage, and collection would take a fifth of the run
    gc.set_threshold(500_000)
    listen()
    try:
        command()
    except (KeyboardInterrupt, SystemExit):
        if stopped_by() is None or is_reported():
            raise
        interrupted()  # interrupted outside of a verb: while options were parsed, or during exit
        sys.exit(exit_code())
