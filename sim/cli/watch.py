"""``ckptsim watch``: a running job, its checkpoints held to a forecast, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from sim.address import Address
from sim.cli.console.errors import speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put
from sim.cli.options import HeaderOption, JobOption, header_of


def watch_job(
    url: Annotated[str, typer.Argument(metavar="URL", help="The JobManager, http(s)://HOST:8081.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The folder that is its memory. (Default: watched/HOST-PORT.)", show_default=False)
    ] = None,
    every: Annotated[str, typer.Option(metavar="DURATION", help="From one look to the next.")] = "60 s",
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Then it ends. (Default: with Ctrl-C.)", show_default=False)
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="For p90 of checkpoints. (Default: their interval.)", show_default=False),
    ] = None,
    sample: Annotated[str, typer.Option(metavar="DURATION", help="How long metrics are watched for a forecast.")] = "60 s",
    listen: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Serve /metrics for Prometheus, and the page.", show_default=False)
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Metrics for the textfile collector. (Default: ckptsim.prom in the folder.)", show_default=False),
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Make a new forecast, of the job as it is now.")] = False,
    job: JobOption = None,
    header: HeaderOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="An event per line as JSON.")] = False,
) -> None:
    """Look at a running job now and then: hold its checkpoints to a forecast, and say what changes and why."""
    with speaking():
        from sim.verbs.watch import WatchOptions, watch

        console = Console(lambda event: print(json.dumps(event.plain)) if as_json else put(event.line))
        options = WatchOptions(
            url, out or Path("watched") / _name(url), job, every, duration, sample, limit, listen, metrics, renew,
            dict(map(header_of, header or ())),
        )  # fmt: skip
        watch(options, listener=console)
        console.finish()


def _name(url: str) -> str:
    """``jobmanager-8081``: a folder for each address."""
    place = urlsplit(str(Address(url))).netloc
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in place) or "job"


VERB = Verb("watch", Purpose.JOB, 3, "Hold a running job to its forecast.", watch_job)
