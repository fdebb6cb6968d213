"""``ckptsim init``: a first scenario or sweep, with comments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking
from sim.cli.console.overview import Purpose, Verb


def _names() -> list[str]:
    from sim.examples import EXAMPLES

    return list(EXAMPLES)


def write_example(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Of the example. (Without: they are listed.)", show_default=False, autocompletion=_names),
    ] = None,
    folder: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write it.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a first scenario or sweep, with comments, and name the command that runs it."""
    with speaking():
        from sim.cli.console.terminal import show
        from sim.examples import EXAMPLES, contents, main_file, question
        from sim.whole_file import replace_text

        if name is None:
            show(("example", "question"), [(example, question(example)) for example in EXAMPLES], text_cells=True)
            print_message("\nckptsim init NAME writes one of them")
            return
        if name not in EXAMPLES:
            raise UserError(f"init: no example '{name}': there are {', '.join(EXAMPLES)}", Code.USAGE)
        texts = {folder / file: text for file, text in contents(name).items()}
        if not force and (existing := [str(path) for path in texts if path.exists()]):
            raise UserError(f"{', '.join(existing)}: exists already: --force replaces it, --out FOLDER writes elsewhere", Code.USAGE)
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            replace_text(path, text)
        verb, file = main_file(name)
        print_message(f"{', '.join(str(path) for path in texts)}: written; next: ckptsim {verb} {folder / file}")


VERB = Verb("init", Purpose.BEGIN, 1, "Write a first scenario or sweep, with comments.", write_example)
