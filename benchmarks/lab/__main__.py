"""``python -m benchmarks.lab``: `ckptsim` that reads recordings of our own recorder, with bars, orderings and `calibrate`."""

from __future__ import annotations

import typer

from benchmarks.lab import calibrate_command, validate_command
from sim.app import cli
from sim.app.cli.options import Overview

app = typer.Typer(name="python -m benchmarks.lab", cls=Overview, help=__doc__, epilog=cli.app.info.epilog)
app.registered_commands += [verb for verb in cli.app.registered_commands if verb.name != "validate"]
app.registered_groups += cli.app.registered_groups
validate_command.VERB.add_to(app)
calibrate_command.VERB.add_to(app)

if __name__ == "__main__":
    cli.main(app)
