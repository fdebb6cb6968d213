"""``ckptsim explain-key``: what a key of a scenario means, its unit and default, and Flink's key."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import speaking
from sim.cli.console.overview import Purpose, Verb


def print_key(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="storage.dfs.slow, Flink's, or a file. (Without: all.)", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what a key of a scenario means: values, default, Flink's key, and the keys below it.

    Of a file of Flink's configuration, or a scenario with flink:, it says of each key what it sets here.
    """
    with speaking():
        from sim.cli.console.terminal import put
        from sim.scenario.reference import all_keys, explain_key

        if keys and (file := Path(keys[0])).is_file():
            from sim.scenario.flink.file import about_file, read_flink_file

            lines = about_file(read_flink_file(file))
            print(json.dumps(lines) if as_json else "\n".join(f"{key}: {about}" for key, about in lines.items()))
        elif keys:
            found = [explain_key(key) for key in keys]
            if as_json:
                print(json.dumps([asdict(reference) for reference in found] if len(found) > 1 else asdict(found[0])))
            else:
                put("\n\n".join(map(str, found)))
        elif as_json:
            print(json.dumps([asdict(reference) for reference in all_keys()]))
        else:
            for reference in all_keys():
                put(f"{reference.key}: {reference.meaning}")


VERB = Verb("explain-key", Purpose.LOOK, 1, "Say what a key of a scenario means.", print_key)
