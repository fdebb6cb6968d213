"""The answers of the ready sweeps: runs scenarios/sweeps/NAME.yaml and puts what `ckptsim sweep` prints into the page beside it.

`python -m benchmarks.answers [NAME...]`; without names, `make answers`, all of them.  The words around the answer are written by whoever
read it.  Rows are kept in runs/answers/NAME, so that a second call runs only what is new.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["BEGIN", "END", "SWEEPS", "AnswerError", "answer", "block", "main", "names", "replaced"]

ROOT = Path(__file__).parents[1]
SWEEPS = ROOT / "scenarios" / "sweeps"
ROWS = ROOT / "runs" / "answers"
BEGIN, END = "<!-- answer -->", "<!-- /answer -->"
_COUNT = re.compile(r"(\d+) of (\d+) cells have a row in .*")


class AnswerError(Exception):
    """One line, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def names() -> list[str]:
    """All ready sweeps."""
    return sorted(path.stem for path in SWEEPS.glob("*.yaml"))


def answer(file: Path, folder: Path, jobs: int) -> str:
    """What `ckptsim sweep` prints about a sweep, without the line on where its rows are.

    AnswerError: cells failed, or the sweep has no question; what ckptsim says of it goes to stderr.
    """
    arguments = ["-m", "sim", "sweep", str(file), "--jobs", str(jobs), "--out", str(folder)]
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise AnswerError(f"{file.name}: ckptsim sweep ended with {done.returncode}", done.returncode)
    text, _, last = done.stdout.rstrip("\n").rpartition("\n")
    if not _COUNT.fullmatch(last) or not text.strip():
        raise AnswerError(f"{file.name}: no answer: {last or 'nothing was printed'}", 3)
    return text.strip("\n")


def block(name: str, text: str, folder: Path) -> str:
    """The answer, and below it the command, the number of cells and what they took."""
    cpu_s = pq.read_table(folder / "runs.parquet", columns=["cpu_s"])["cpu_s"]
    cost = f"`ckptsim sweep scenarios/sweeps/{name}.yaml`: {len(cpu_s)} cells, {pc.sum(cpu_s).as_py() / 60:.1f} minutes of CPU."
    return f"{BEGIN}\n```\n{text}\n```\n{cost}\n{END}"


def replaced(page: str, new: str) -> str:
    """The text with its block exchanged.

    AnswerError: it has none, or several.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in after or END in after:
        raise AnswerError(f"write {BEGIN} and {END} once, where the answer shall stand", 3)
    return before + new + after


def _written(name: str, jobs: int) -> None:
    file, page = SWEEPS / f"{name}.yaml", SWEEPS / f"{name}.md"
    if not file.exists():
        raise AnswerError(f"there is no {file.name}; there are: {', '.join(names()) or 'none'}", 3)
    if not page.exists():
        raise AnswerError(f"{page.name} is missing: say there what an engineer should do", 3)
    _ = replaced(page.read_text(encoding="utf-8"), "")  # before anything runs
    text = answer(file, ROWS / name, jobs)
    page.write_text(replaced(page.read_text(encoding="utf-8"), block(name, text, ROWS / name)), encoding="utf-8")
    print(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="of a sweep in scenarios/sweeps; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    code = 0
    for name in given.names or names():
        try:
            _written(name, given.jobs)
        except AnswerError as error:
            print(f"{name}: {error}", file=sys.stderr)
            code = code or error.code
    return code


if __name__ == "__main__":
    sys.exit(main())
