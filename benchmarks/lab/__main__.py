"""``python -m benchmarks.lab``: `ckptsim` that reads recordings of our own recorder as well, and `calibrate`."""

from __future__ import annotations

import typer

from benchmarks.lab.calibrate_command import VERB
from sim.app import cli
from sim.app.cli.overview import Overview

app = typer.Typer(name="python -m benchmarks.lab", cls=Overview, help=__doc__, epilog=cli.app.info.epilog)
app.registered_commands += cli.app.registered_commands
app.registered_groups += cli.app.registered_groups
VERB.add_to(app)

if __name__ == "__main__":
    cli.main(app)
