"""The commented example files that `ckptsim init` writes, in a folder per example."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

__all__ = ["EXAMPLES", "contents", "main_file", "question", "with_answers"]

EXAMPLES = ("first", "failures", "slow-nodes", "end-of-job", "sweep", "day", "kafka-rocksdb-s3", "kafka-iceberg", "cdc")
"""Examples, simplest first, then jobs as in production with the values to replace marked UNKNOWN.

The folder NAME holds the main file `NAME.yaml` and the files that it reads."""


def contents(name: str) -> dict[str, str]:
    """Return {file name: text} of an example."""
    found = {
        path.name: path.read_text(encoding="utf-8") for path in (files(__name__) / name).iterdir() if path.is_file()
    }
    return dict(sorted(found.items()))


def main_file(name: str) -> tuple[str, str]:
    """Return (verb, file): the command that runs the example."""
    text = contents(name)[f"{name}.yaml"]
    return ("sweep" if "\nscenario:" in text else "run"), f"{name}.yaml"


def question(name: str) -> str:
    """Return the first comment line of the main file."""
    return contents(name)[f"{name}.yaml"].partition("\n")[0].removeprefix("#").strip()


_MARKED = re.compile(r"^( *[\w-]+: *)(\S.*?)( +# UNKNOWN: (.*))$", re.MULTILINE)


def with_answers(text: str, ask: Callable[[str, str], str]) -> str:
    """Return an example with answers in place of values marked UNKNOWN, without the mark.

    `ask`: returns the answer for (question, value of the example), or "" to keep value and mark.
    """
    for marked in [*_MARKED.finditer(text)]:
        if answer := ask(marked[4], marked[2]).strip():
            text = text.replace(marked[0], marked[1] + answer)
            # lines without a mark that have the same value: "which parallelism do source, function and sink have?"
            text = text.replace(f"\n{marked[1]}{marked[2]}\n", f"\n{marked[1]}{answer}\n")
    return text
