"""``ckptsim explain-key``: what a key of a scenario means, its unit and default, and Flink's key."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from sim.cli.console.errors import speaking

__all__ = ["print_key"]


def print_key(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="storage.dfs.slow, or Flink's. (Without: all.)", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what a key of a scenario means: values, default, Flink's key, and the keys below it."""
    with speaking():
        from sim.cli.console.terminal import put
        from sim.scenario.reference import all_keys, explain_key

        if key is not None:
            found = explain_key(key)
            put(json.dumps(asdict(found)) if as_json else str(found))
        elif as_json:
            print(json.dumps([asdict(reference) for reference in all_keys()]))
        else:
            for reference in all_keys():
                put(f"{reference.key}: {reference.meaning}")
