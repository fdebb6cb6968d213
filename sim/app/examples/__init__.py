"""What `ckptsim init` writes: commented example files, a folder per example.

The command `init` calls it.  It knows only its own files.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["EXAMPLES", "contents", "main_file", "question"]

EXAMPLES = ("first", "failures", "slow-nodes", "end-of-job", "sweep", "day")
"""Simple ones first.  The folder of each has its name, and holds `NAME.yaml`, which is run, and what that reads."""


def contents(name: str) -> dict[str, str]:
    """File -> text."""
    found = {
        path.name: path.read_text(encoding="utf-8") for path in (files(__name__) / name).iterdir() if path.is_file()
    }
    return dict(sorted(found.items()))


def main_file(name: str) -> tuple[str, str]:
    """(verb, file): the command that answers the question of the example."""
    text = contents(name)[f"{name}.yaml"]
    return ("sweep" if "\nscenario:" in text else "run"), f"{name}.yaml"


def question(name: str) -> str:
    """The first comment of the file that is run."""
    return contents(name)[f"{name}.yaml"].partition("\n")[0].removeprefix("#").strip()
