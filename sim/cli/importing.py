"""``ckptsim import``: a recording of a real job becomes a scenario; what a scenario cannot say is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.errors import say, speaking

__all__ = ["import_recording"]


def import_recording(
    recording: Annotated[Path, typer.Argument(metavar="PATH", help="A recording (.json or .json.gz).", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.", show_default=False)] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Under three kinds of barriers instead of the recorded one.")] = False,
) -> None:
    """Turn a recording of a Flink job into a scenario: its configuration, nothing that was observed."""
    with speaking():
        from sim.recordings import read, to_document
        from sim.scenario import write

        imported = to_document(read(recording), compare=compare)
        text = write(imported.document, imported.question, imported.comments)
        if out is None:
            print(text, end="")
        else:
            out.write_text(text)
        for lost in imported.not_modelled:
            say(f"not modelled: {lost}")
