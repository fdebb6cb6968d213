"""``ckptsim known-issues``: known defects of Flink and of connectors; of a job those that apply to it, or may."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sim.cli.console.errors import speaking
from sim.cli.console.overview import Purpose, Verb
from sim.cli.options import HeaderOption, JobOption, job_place


def list_known_issues(
    source: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A scenario, or a source of import. (Without: all.)", show_default=False)
    ] = None,
    component: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of flink, hudi, iceberg, paimon, flink-cdc ...", show_default=False)
    ] = None,
    version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Of the component, Flink by default: those it has.", show_default=False)
    ] = None,
    job: JobOption = None,
    header: HeaderOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the entries as JSON.")] = False,
) -> None:
    """List known defects of Flink and of connectors, with versions, way out and source; of a job those that apply, or may, and why."""
    with speaking():
        from sim.cli.console.terminal import put, show
        from sim.verbs.importing import scenarios_of
        from sim.verbs.known_issues import HEADER, find_issues

        scenarios = None if source is None else scenarios_of(job_place([source], job, None, header))
        found = find_issues(scenarios, component, version)
        if as_json:
            print(json.dumps(found.plain))
            return
        if found.matches:
            show(HEADER, found.rows, text_cells=True)
        for own in found.matches:
            if own.applies:
                put(f"\n{own.issue.id}: {own.issue.happens} Way out: {own.issue.way_out}. {own.issue.source}")
        put(f"\n{found.summary}")


VERB = Verb("known-issues", Purpose.TRUST, 3, "List known defects that apply to a job.", list_known_issues)
