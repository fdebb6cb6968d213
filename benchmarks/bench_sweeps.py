"""What the ready sweeps cost in all, and whether another version answers them alike.

    python -m benchmarks.bench_sweeps [NAME ...] [--against OTHER_CHECKOUT ...] [--complete] [--jobs 1]

Every version runs `ckptsim sweep` on the files of this checkout, one after the other.  Seconds are CPU time of all
processes, from start to end.  Two sweeps take a quarter of an hour: without `--complete` a fixed part of their cells
runs, the same in all versions.  Both answers are made from the rows by the code of this checkout: words cannot differ,
numbers can.  An answer is the line of the best setting and the means of the columns that the sweep shows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from benchmarks.answers import SWEEPS, names
from benchmarks.bench_run import ROOT, spent
from benchmarks.measure import print_table, record
from sim.results.sweep_answers import means
from sim.studies.sweeps.answer import groups, sentence
from sim.studies.sweeps.sweep_file import Question, define

__all__ = ["PARTS", "Run", "differences", "main", "part"]

PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "khaos-windows": {"windows": {"most": 12}},
    "khaos-ysb-day": {"set": {"run.duration": "6 h"}},
}
"""Sweep -> what makes it shorter: section -> keys."""


@dataclass(frozen=True)
class Run:
    """A sweep as one version has run it."""

    cpu_s: float
    cells_s: float  # of it the cells themselves
    rows: pd.DataFrame


def part(name: str, folder: Path, *, complete: bool) -> Path:
    """The sweep file to run: the ready one, or one in `folder` that asks for a part of its cells."""
    file = SWEEPS / f"{name}.yaml"
    if complete or name not in PARTS:
        return file
    yaml = YAML()
    yaml.width = 1000
    content = yaml.load(file)
    for section, keys in PARTS[name].items():
        content[section].update(keys)
    content["scenario"] = str((SWEEPS / content["scenario"]).resolve())
    if "windows" in content:
        content["windows"]["trace"] = str((SWEEPS / content["windows"]["trace"]).resolve())
    shorter = folder / file.name
    with shorter.open("w", encoding="utf-8") as text:
        yaml.dump(content, text)
    return shorter


def differences(question: Question, ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[str]:
    """A line per part of the answer that is not the same in both; none if the answers are equal."""
    answers = [sentence(question, rows) for rows in (ours, theirs)]
    for line, before in zip(*(answer.splitlines() for answer in answers), strict=True):
        if line != before:
            yield f"here: {line}"
            yield f"there: {before}"
    parts = [dict(groups(question, rows)) for rows in (ours, theirs)]
    tables = [
        pd.concat(
            {value: means(rows, question.settings, question.show) for value, rows in found.items()}, names=["part"]
        )
        for found in parts
    ]
    for column in question.show:
        here, there = (table[column] for table in tables)
        differ = here.ne(there) & ~(here.isna() & there.isna())
        if differ.any():
            apart = ((here - there) / there).abs()[differ]
            yield f"{column}: {len(apart)} of {len(here)} means differ, by up to {apart.max():.2%}, at the median by {apart.median():.2%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """A row per sweep and version, the totals, and what differs between their answers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_sweeps", description=str(__doc__).splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="of a sweep in scenarios/sweeps; default: all")
    parser.add_argument(
        "--against", type=Path, action="append", default=[], help="A checkout of another version, whose kernel is warm."
    )
    parser.add_argument("--complete", action="store_true", help="All cells of all sweeps.")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    checkouts = {"here": ROOT} | {checkout.resolve().name: checkout.resolve() for checkout in given.against}
    total = dict.fromkeys(checkouts, 0.0)
    for name in given.names or names():
        with tempfile.TemporaryDirectory(prefix="ckptsim-sweeps-") as place:
            file = part(name, Path(place), complete=given.complete)
            question = define(file).question
            assert question is not None
            runs = {
                where: _run(file, checkout, Path(place) / where, given.jobs) for where, checkout in checkouts.items()
            }
        _tell(name, question, runs, shortened=file.parent != SWEEPS)
        for where, run in runs.items():
            total[where] += run.cpu_s
    if len(given.names or names()) > 1:
        print_table(
            ["all of them", "CPU s", "here / there"],
            [(where, spent_s, total["here"] / spent_s) for where, spent_s in total.items()],
        )
        record("sweeps", [("all", f"CPU, {where}", spent_s, "s") for where, spent_s in total.items()])


def _run(file: Path, checkout: Path, folder: Path, jobs: int) -> Run:
    cpu_s = spent(["-m", "sim", "sweep", str(file), "--jobs", str(jobs), "--out", str(folder)], checkout)
    cells_s = pq.read_table(folder / "runs.parquet", columns=["cpu_s"])["cpu_s"].to_pandas().sum()
    return Run(cpu_s, float(cells_s), pd.read_parquet(folder / "results.parquet"))


def _tell(name: str, question: Question, runs: dict[str, Run], *, shortened: bool) -> None:
    ours = runs["here"]
    case = f"{name}{', a part' if shortened else ''}"
    print_table(
        [case, "cells", "CPU s", "of it cells", "here / there"],
        [(where, str(len(run.rows)), run.cpu_s, run.cells_s, ours.cpu_s / run.cpu_s) for where, run in runs.items()],
    )
    for where, run in runs.items():
        if where != "here":
            found = list(differences(question, ours.rows, run.rows))
            print(
                f"  {where}: {'the same answer' if not found else 'another answer'}", *found, sep="\n    ", flush=True
            )
    record("sweeps", [(case, f"CPU, {where}", run.cpu_s, "s") for where, run in runs.items()])


if __name__ == "__main__":
    main()
